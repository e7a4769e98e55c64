# SPDX-License-Identifier: BSD-3-Clause
"""converter - convertd and its peers: all experiments that compare them in one run, and the goals

The experiments goodput, goodput_mptcp, shaped, connections, connections_mptcp, idle and syscalls, one after the other; then a table of
what convertd is to reach, next to what it has reached and to the best of its peers in the same column. An aim is met or not as the
medians say: on a machine that does something else as well, look at the ranges too.
"""
from benchlib.proxies import Convertd, ConvertdEarly, Direct

from . import connections, connections_mptcp, goodput, goodput_mptcp, idle, shaped, syscalls

OURS = (Direct.name, Convertd.name, ConvertdEarly.name)
# what is aimed at
GOODPUT, CPU, SHAPED = 0.6, 0.33, 0.98
RATE, P99, IDLE = 0.75, 1.5, 3.0  # at 64 at a time, of direct; KB


class Aims:
    """The table at the end."""

    def __init__(self):
        self.rows = []

    def add(self, what, figures, aim=None, less=False):
        """figures: {name: figure}; aim: None where it is only to be ahead of the others; less: the lower the better."""
        own = figures[Convertd.name]
        # none, where a transfer's processes had gone before they were asked for their CPU time
        others = {name: figure for name, figure in figures.items() if name not in OURS and figure}
        best = (min if less else max)(others, key=others.get) if others else None
        reached = aim is None or (own <= aim if less else own >= aim)
        ahead = best is None or (own <= others[best] if less else own >= others[best])
        self.rows.append([what, None if aim is None else "%s %.2f" % ("at most" if less else "at least", aim), "%.2f" % own,
                          best and "%.2f (%s)" % (others[best], best), "yes" if reached and ahead else
                          "not ahead" if reached else "no"])


def _goodput(aims, word, found, goodput_aim=None, cpu_aim=None):
    for (congestion, direction, streams), figures in found.items():
        what = "%s, %s, %sload, %d stream%s" % (word, congestion, direction, streams, "s" if streams > 1 else "")
        aims.add(what + ": goodput of direct", {name: share for name, (share, _) in figures.items()}, goodput_aim)
        aims.add(what + ": CPU s/GB", {name: cpu for name, (_, cpu) in figures.items()}, cpu_aim, less=True)


def _connections(aims, word, found, rate_aim=None, p99_aim=None):
    for number, (shares, p99) in found.items():
        what = "%s, %d at a time" % (word, number)
        many = number > 1
        aims.add(what + ": connections a second, of direct", shares, rate_aim if many else None)
        if many:
            aims.add(what + ": p99, of direct's", {name: us / (p99[Direct.name] or 1) for name, us in p99.items()}, p99_aim, less=True)


def run(bench):
    """The experiment."""
    aims = Aims()
    with bench.section("TCP to TCP"):
        _goodput(aims, "TCP", goodput.measure(bench), GOODPUT, CPU)
        _connections(aims, "TCP", connections.measure(bench), RATE, P99)
    with bench.section("MPTCP to TCP"):
        _goodput(aims, "MPTCP", goodput.measure(bench, goodput_mptcp.PROXIES, mptcp=True, cases=goodput_mptcp.CASES))
        _connections(aims, "MPTCP", connections.measure(bench, connections_mptcp.PROXIES, mptcp=True))
    for mptcp in (False, True):
        word = "%d Mbit/s, %s" % (shaped.RATE_MBIT, "MPTCP" if mptcp else "TCP")
        with bench.section(word):
            _goodput(aims, word, goodput.measure(bench, shaped.PROXIES, mptcp=mptcp, cases=shaped.CASES, rate_mbit=shaped.RATE_MBIT),
                     SHAPED)
    aims.add("idle connection, KB of user space", {name: user for name, (user, _) in idle.measure(bench).items()}, IDLE, less=True)
    syscalls.run(bench)
    bench.table("What is aimed at", ["", "aim", "convertd", "best peer", "met"], aims.rows)
