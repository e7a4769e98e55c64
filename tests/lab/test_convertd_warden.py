#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertd_warden.py - the main process, which has the privileges, and the serving process: how they end"""
import os
import signal

from convertlab import Lab, Link, check, equal, main, wait_until
from convertlab.hosts import is_alive
from convertlab.peers import Client, Server, converter, extended_header

SANITIZED = bool(os.environ.get("SANITIZER_PRELOAD"))


def near(**options):
    """Returns a lab whose links are too fast to matter."""
    return Lab(wifi=Link(delay_ms=0.5), lte=None, core=Link(delay_ms=0.1), **options)


def names(numbers):
    """Returns the names of processes."""
    found = []
    for number in numbers:
        with open("/proc/%d/comm" % number, encoding="ascii") as file:
            found.append(file.read().strip())
    return found


def test_two_processes():
    """With privileges there are two processes, besides the survivor; without, there is one, and it works."""
    with near() as lab, Server(lab, 80) as server:
        with converter(lab) as process:
            check(process.serving != process.pid, "one process has privileges and serves")
            equal(process.children(), [process.serving], "the children")
        without = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
        process = \
            lab.start_listening(lab.converter, [*without, lab.build.program("convertd"), "--hold-syn", "off",
                                                "--allow-client", "::/0", "--allow-destination", "10.0.0.0/8"], 1234, name="convertd")
        equal((process.serving, names(process.children())), (process.pid, ["rfc8803-resets"]), "the only process, and its children")
        with Client(lab.client, lab.converter.addr4) as client:
            extended_header(client.send(server.connect()).answer())
            server.accept().close()
        equal(process.stop(), 0, "the status")


def test_one_dies_with_the_other():
    """If either process is killed, the other one ends at once, and the status has the signal."""
    for killed, number in (("pid", signal.SIGKILL), ("serving", signal.SIGKILL), ("serving", signal.SIGABRT)):
        with near() as lab, Server(lab, 80) as server:
            process = lab.convertd(["--drain-timeout", "30"])
            process.wait_log("ready")
            serving = process.serving
            with Client(lab.client, lab.converter.addr4) as client:
                extended_header(client.send(server.connect()).answer())
                os.kill(getattr(process, killed), number)
                equal(process.wait(10), -number, "the status")
                wait_until(lambda: not is_alive(serving), 5, "the end of the serving process")
            # wait() waited for the main process only: the survivor may still have the listener
            wait_until(lambda: not lab.converter.listening(1234), 5, "the listener to be closed")


def test_a_signal_to_both_counts_once():
    """A service manager or a terminal signals all processes at once: a second signal would cut the sessions."""
    with near() as lab, Server(lab, 80) as server:
        for number in (signal.SIGTERM, signal.SIGINT):
            process = lab.convertd(["--drain-timeout", "30"])
            process.wait_log("ready")
            with Client(lab.client, lab.converter.addr4) as client:
                extended_header(client.send(server.connect()).answer())
                for each in (process.serving, process.pid):
                    os.kill(each, number)
                process.wait_log("no new clients, 1 session may go on")
                server.accept().close()
                equal(client.end(), (b"", "closed"), "the end")
            equal(process.wait(10), 0, "the status")
            check("cut" not in process.log_text().split("a second signal")[1].split("\n", 1)[1], process.log_text())


def test_status_of_a_failure():
    """If the serving process fails, convertd ends with its status."""
    with near() as lab:
        with converter(lab):
            result = lab.converter.run([lab.build.program("convertd"), "--allow-client", "::/0"], check=False)
            equal(result.returncode, 1, "the status")
            check("--listen" in result.stderr, result.stderr)


if __name__ == "__main__":
    main()
