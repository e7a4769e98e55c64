# SPDX-License-Identifier: BSD-3-Clause
"""connections_mptcp - new connections a second, MPTCP from the client to the proxy, TCP to the server

As connections; haproxy and nginx are handed an MPTCP listener. "direct" is MPTCP all the way. A part of what MPTCP costs is done
in workers of the kernel and is charged to no process: see all CPU.
"""
from benchlib.proxies import Convertd, ConvertdEarly, Direct, Haproxy, Nginx, Socat

from . import connections

PROXIES = (Direct, Convertd, ConvertdEarly, Haproxy, Nginx, Socat)


def run(bench):
    """The experiment."""
    connections.measure(bench, PROXIES, mptcp=True)
