# SPDX-License-Identifier: BSD-3-Clause
"""shaped - bulk transfers over links of 2 Gbit/s, by TCP and by MPTCP

If the link is the limit, no proxy should be: the share of direct should be 1, and CPU seconds for each gigabyte show what each
needs for it.
"""
from benchlib.proxies import Convertd, Direct, Haproxy, Nginx, Socat

from . import goodput

NEEDS = ("bench-peers",)
RATE_MBIT = 2000
PROXIES = (Direct, Convertd, Haproxy, Nginx, Socat)
CASES = (("reno", "down", 1), ("reno", "down", 16), ("bbr", "down", 1))


def run(bench):
    """The experiment."""
    for mptcp in (False, True):
        word = "MPTCP" if mptcp else "TCP"
        bench.remark("Clients speak %s to the proxy:" % word)
        goodput.measure(bench, PROXIES, mptcp=mptcp, cases=CASES, rate_mbit=RATE_MBIT,
                        title="%d Mbit/s, %s to the proxy" % (RATE_MBIT, word))
