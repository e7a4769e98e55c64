# SPDX-License-Identifier: BSD-3-Clause
"""goodput_mptcp - bulk transfers, MPTCP from the client to the proxy, TCP to the server

As goodput; haproxy and nginx are handed an MPTCP listener, and connect to the server by TCP. "direct" is MPTCP all the way. Over
veth pairs without a limit Linux 6.18 with BBR is noisy here: each retransmission costs about 0.2 s.
"""
from benchlib.proxies import Convertd, Direct, Haproxy, HaproxySplice, Nginx, Socat

from . import goodput

PROXIES = (Direct, Convertd, Haproxy, HaproxySplice, Nginx, Socat)
CASES = (("reno", "down", 1), ("reno", "down", 16), ("reno", "up", 1), ("bbr", "down", 1), ("bbr", "down", 16))


def run(bench):
    """The experiment."""
    goodput.measure(bench, PROXIES, mptcp=True, cases=CASES,
                    title="Goodput through a proxy to which clients speak MPTCP, of direct MPTCP")
