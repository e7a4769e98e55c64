#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""bed.py - where one part of a suite runs: a host of its own with nothing but its loopback, and maybe a converter

  unshare --net --pid --fork --kill-child --mount-proc bed.py [--converter CONVERTD LOG on|off] COMMAND…

"on" has the converter withhold SYNs until the server has answered.

Ends as the command does. Every process that it leaves behind ends with it, by the process namespace.
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lab"))
# pylint: disable=wrong-import-position
from convertlab.waiting import wait_until

CONVERTER = "192.0.2.1"  # RFC 5737: without a converter, no route leads there
# What libuv takes for hosts that never answer: packets for them end in the loopback interface.
SILENT = ["1.2.3.4", "8.8.8.8"]
# So that getaddrinfo(3) doesn't leave one family out (AI_ADDRCONFIG), in any of the runs.
OWN = ["198.51.100.1/32", "2001:db8::1/128"]
START_LIMIT = 30  # seconds
# convertd doesn't connect to its own host unless each address is allowed
DESTINATIONS = ["127.0.0.%d" % host for host in range(1, 9)] + ["::1", "::/0"]


def start_converter(convertd, log_path, withhold):
    """Runs it at CONVERTER, ready for clients."""
    subprocess.run(["ip", "address", "add", CONVERTER + "/32", "dev", "lo", "scope", "host"], check=True)
    for name, value in (("ipv4/tcp_fastopen", "3"), ("mptcp/blackhole_timeout", "0")):
        with open("/proc/sys/net/" + name, "w", encoding="ascii") as file:
            file.write(value)
    command = [convertd, "--listen", CONVERTER + ":1234", "--hold-syn", withhold]
    for destination in DESTINATIONS:
        command += ["--allow-destination", destination]
    with open(log_path, "w", encoding="utf-8") as log:
        converter = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def said():
        with open(log_path, encoding="utf-8") as file:
            return file.read()

    wait_until(lambda: ": ready" in said() or converter.poll() is not None, START_LIMIT, said)
    if converter.poll() is not None:
        sys.exit("convertd isn't ready: " + said())


def main():
    command = sys.argv[1:]
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for address in OWN:
        subprocess.run(["ip", "address", "add", address, "dev", "lo"] + ["nodad"] * (":" in address), check=True)
    for host in SILENT:
        subprocess.run(["ip", "route", "add", host, "dev", "lo"], check=True)
    if command[0] == "--converter":
        start_converter(*command[1:4])
        command = command[4:]
    # this process reaps what the suite leaves behind, as the first of its namespace
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BED_")}
    environment.update((name[4:], value) for name, value in os.environ.items() if name.startswith("BED_"))
    status = subprocess.run(command, env=environment, check=False).returncode
    sys.exit(status if status >= 0 else 128 - status)


if __name__ == "__main__":
    main()
