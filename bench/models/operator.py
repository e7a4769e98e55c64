# SPDX-License-Identifier: BSD-3-Clause
"""operator.py - figures that an operator plans with: what a core carries, what a connection occupies, and who is ahead

CPU time is in seconds, memory in KB of 1024 bytes, a gigabyte of goodput has 10^9 bytes, one of memory 2^20 KB.
"""
from typing import NamedTuple, Optional

KB_IN_GIB = 2**20
LEVEL = 0.15  # what differs by less is called level: so much do two runs differ on a machine that does nothing else


class Figures(NamedTuple):
    """What an operator asks of a system first; None where it was not measured."""

    rate_per_core: Optional[float] = None   # new connections for each CPU second of the proxy's
    gbit_per_core: Optional[float] = None   # Gbit for each CPU second of the proxy's
    user_kb: Optional[float] = None         # of an idle connection, in user space
    kernel_kb: Optional[float] = None       # the same in the kernel
    p99_ms: Optional[float] = None          # of new connections
    rate_of_direct: Optional[float] = None  # new connections a second
    gbit_of_direct: Optional[float] = None

    @property
    def memory_kb(self):
        """User space and kernel, of an idle connection."""
        return None if self.user_kb is None or self.kernel_kb is None else self.user_kb + self.kernel_kb


# what a system can be better in: the figure's name, how it is called, whether less is better
MERITS = (("rate_per_core", "new connections a second for each core", False),
          ("gbit_per_core", "goodput for each core", False),
          ("memory_kb", "memory of an idle connection", True),
          ("p99_ms", "p99 of new connections", True))


def per_core(count, cpu_seconds):
    """How much of something a core does in a second, where this much of it took so many CPU seconds; None where that is unknown."""
    return count / cpu_seconds if cpu_seconds else None


def gbit_per_core(size, cpu_seconds):
    """Gbit/s that a core carries, where so many bytes took so many CPU seconds."""
    return per_core(size * 8e-9, cpu_seconds)


def ends_kb(direct_tcp, direct_mptcp, mptcp):
    """Kernel memory that client and server have themselves, from that of direct connections by TCP and by MPTCP.

    Through a proxy to which clients speak MPTCP, the client's end is one of MPTCP and the server's one of TCP: half of each. Both
    ends of a direct connection are assumed to take the same.
    """
    return (direct_tcp + direct_mptcp) / 2 if mptcp else direct_tcp


def memory_each(user, kernel, ends, count):
    """(user space, kernel) of one of `count` connections, from what all have added; `ends` is what client and server have of it.

    What the kernel has added is that of the whole machine: if it is less than what client and server have, then others have given
    memory back meanwhile, and it is not known (None).
    """
    return user / count, (kernel - ends) / count if kernel > ends else None


def connections_in(kb_each, gib=1):
    """How many connections fit into so much memory; None where it is unknown what one takes."""
    return int(gib * KB_IN_GIB / kb_each) if kb_each else None


def growth(by_count):
    """How a figure changes from the smallest to the largest number of connections for which it is known: the last over the first."""
    known = [(count, value) for count, value in sorted(by_count.items()) if value]
    return known[-1][1] / known[0][1] if len(known) > 1 else None


def advantage(value, other, less):
    """How many times better than `other` a value is: above 1 it is the better one. None where one of them is not known."""
    if not value or not other:
        return None
    return other / value if less else value / other


def best(figures, own, merit, less):
    """(name, value) of the best of the others in a merit; None where no other has it."""
    known = {name: getattr(found, merit) for name, found in figures.items() if name != own and getattr(found, merit)}
    if not known:
        return None
    name = (min if less else max)(known, key=known.get)
    return name, known[name]


def verdict(times_better):
    """Says in a word what an advantage means."""
    if times_better is None:
        return "not compared"
    return "ahead" if times_better > 1 + LEVEL else "behind" if times_better < 1 / (1 + LEVEL) else "level"


def standing(figures, own):
    """Beside the best of the others: [(merit, its title, own value, the best's name, its value, own advantage)] where both are known."""
    found = []
    for merit, title, less in MERITS:
        value, other = getattr(figures[own], merit), best(figures, own, merit, less)
        if value and other:
            found.append((merit, title, value, *other, advantage(value, other[1], less)))
    return found


def in_words(figures, own):
    """The same as a phrase: "ahead in …; level in …; behind haproxy in … (0.7 times as good)"."""
    words = {"ahead": [], "level": [], "behind": []}
    for _, title, _, name, _, times in standing(figures, own):
        words[verdict(times)].append("%s (%.2f times as good as %s, the best of the others)" % (title, times, name))
    return "; ".join("%s in %s" % (word, ", ".join(titles)) for word, titles in words.items() if titles) or "not compared with any other"


def turned_round(one, other):
    """Pairs of names that two measures put in opposite orders, where both tell them apart: [(less by `one`, less by `other`)]."""
    def is_less(measure, left, right):
        return measure[left] * (1 + LEVEL) < measure[right]

    return [(left, right) for left in one for right in one if is_less(one, left, right) and is_less(other, right, left)]


def order_in_words(turned):
    """What turned_round() says, as a clause."""
    if not turned:
        return "it puts the systems in the same order"
    return "it turns round the order of " + ", ".join("%s and %s" % pair for pair in turned)
