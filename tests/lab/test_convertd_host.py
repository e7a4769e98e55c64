#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertd_host.py - convertd checks the host's settings at its start, and names remedies that work"""
import re
import signal

from convertlab import Lab, Link, check, equal, kernel, main
from convertlab.peers import TCP, Client, Server, converter, extended_header

WRONG = {"net.ipv4.tcp_fastopen": 1, "net.mptcp.enabled": 0, "net.mptcp.blackhole_timeout": 3600, "net.core.somaxconn": 128,
         "net.ipv4.tcp_syncookies": 2, "net.ipv4.tcp_synack_retries": 5}


def near(**options):
    """Returns a lab whose links are too fast to matter."""
    return Lab(wifi=Link(delay_ms=0.5), lte=None, core=Link(delay_ms=0.1), **options)


def remedies(process):
    """Returns the commands that convertd's warnings name."""
    return re.findall(r"warning: (\S+) is \d+: .*; set it with: (sysctl -w (\S+)=\d+)$", process.log_text(), re.MULTILINE)


def test_sysctls():
    """With the shipped sysctls there is no warning; each wrong one has a warning, with a remedy that works."""
    with near() as lab:
        with converter(lab) as process:
            equal(remedies(process), [], "warnings with the settings that are shipped")
        wrong = {name: value for name, value in WRONG.items() if lab.converter.has_sysctl(name)}
        for name, value in wrong.items():
            lab.converter.sysctl(name, value)
        with converter(lab) as process:
            found = remedies(process)
            equal(sorted(name for name, _, _ in found), sorted(wrong), "settings in warnings")
        for name, command, named in found:
            equal(named, name, "the remedy's setting")
            lab.converter.run(command.split())
        with converter(lab) as process:
            equal(remedies(process), [], "warnings after the remedies")


def test_mptcp_that_comes_later():
    """A reload can't turn listening sockets into Multipath TCP's; convertd logs that this takes a restart."""
    with near() as lab:
        lab.converter.sysctl("net.mptcp.enabled", 0)
        with converter(lab) as process:
            check("ready: [::]:1234 (TCP, Fast Open)" in process.log_text(), process.log_text())
            lab.converter.sysctl("net.mptcp.enabled", 1)
            process.send_signal(signal.SIGHUP)
            process.wait_log("reloaded: [::]:1234 (TCP until a restart, Fast Open)")


@kernel.needs("fastopen")
def test_syncookies():
    """The reason for wanting 1: with 2, the kernel takes no data from SYNs."""
    with near() as lab, Server(lab, 80) as server, converter(lab):
        taken = []
        for value in (1, 2):
            lab.converter.sysctl("net.ipv4.tcp_syncookies", value)
            with Client(lab.client, lab.converter.addr4, TCP) as client:
                extended_header(client.send(server.connect()).answer())
                server.accept().close()
                taken.append(client.syn_data_taken())
        equal(taken, [True, False], "the SYN's data taken")


if __name__ == "__main__":
    main()
