# SPDX-License-Identifier: BSD-3-Clause
"""round_trips.py - counts the round trips that an exchange of packets has needed, from captures at both ends of each link

A host sends a packet because of the packet that arrived last before it, where programs compute for far less time than a link takes.
Followed backwards from the first byte of the response to the SYN, these packets are the critical path. It crosses each link a number of
times, and two crossings of a link are a round trip. We divide nothing by a link's round trip, so the count doesn't depend on it. The
share of the elapsed time that the crossings explain tells whether the path is right.
"""
import collections
import dataclasses


@dataclasses.dataclass(frozen=True)
class Hop:
    """A packet that has crossed a link."""

    link: str
    source: str      # the hosts
    target: str
    sent: float      # seconds
    arrived: float
    payload: bytes = b""


def hops(link, host_a, packets_a, host_b, packets_b):
    """Joins what was captured at the two ends of a link, in order of sending; packets have `time`, `data` and `payload`.

    A packet is the same at both ends, byte by byte; where there are several, they belong together in their order. It was sent
    where it was seen first. One that was seen at one end only was lost, and crosses nothing.
    """
    waiting = collections.defaultdict(collections.deque)
    for packet in packets_b:
        waiting[packet.data].append(packet)
    found = []
    for packet in packets_a:
        if not waiting[packet.data]:
            continue
        other = waiting[packet.data].popleft()
        source, target, first, last = (host_a, host_b, packet, other) if packet.time <= other.time else (host_b, host_a, other, packet)
        found.append(Hop(link, source, target, first.time, last.time, packet.payload))
    return sorted(found, key=lambda hop: hop.sent)


def first_hop(found, link, source, mark=None):
    """The first hop that carries these bytes, or anything at all without a mark, over a link from a host. None: there is none."""
    return next((hop for hop in found if (hop.link, hop.source) == (link, source) and hop.payload and
                 (mark is None or mark in hop.payload)), None)


def critical_path(found, last):
    """The hops that led to the hop `last`, which is their last one."""
    path = [last]
    while True:
        causes = [hop for hop in found if hop.target == path[0].source and hop.arrived <= path[0].sent]
        if not causes:
            return path
        path.insert(0, max(causes, key=lambda hop: hop.arrived))


def count(path):
    """The round trips on each link, by name: {"access": 2, "core": 1.5}."""
    return {link: crossings / 2 for link, crossings in collections.Counter(hop.link for hop in path).items()}


def explained(path):
    """The share of the time that has passed on the path which its links explain; what programs did in between is the rest."""
    return sum(hop.arrived - hop.sent for hop in path) / (path[-1].arrived - path[0].sent)
