# SPDX-License-Identifier: BSD-3-Clause
"""convertlab - a client with two access links, a converter and a server, each in a network namespace of its own.

    from convertlab import Lab, Link

    with Lab(wifi=Link(delay_ms=10, rate_mbit=50), core=Link(delay_ms=20)) as lab:
        lab.convertd([...])
        lab.http()
        lab.client.run(["curl", "http://%s/bytes/1000" % lab.server.addr4], env=lab.shim_env(CONVERT_...=...))

A script uses this through `lab run SCRIPT.py`, a test through harness.main(). Both first enter the sandbox (sandbox.py), without
which nothing here works.
"""
from . import kernel
from .build import Build
from .capture import Capture
from .harness import Skip, Unsuitable, between, check, equal, long, main, measured, measured_between, measures, need, same_data, timeout, waits
from .hosts import CommandError, Host, Process
from .links import Link, Veth
from .pcap import Packet, bytes_by_path, first_syns, mptcp_subflows, read_pcap
from .topology import Lab
from .waiting import LabError, patience, repetitions, side_by_side, wait_until

__all__ = [
    "Build", "Capture", "CommandError", "Host", "Lab", "LabError", "Link", "Packet", "Process", "Skip", "Unsuitable", "Veth",
    "between", "bytes_by_path", "check", "equal", "first_syns", "kernel", "long", "main", "measured", "measured_between", "measures",
    "mptcp_subflows", "need", "patience", "read_pcap", "repetitions", "same_data", "side_by_side", "timeout", "wait_until", "waits",
]
