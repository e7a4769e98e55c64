# SPDX-License-Identifier: BSD-3-Clause
"""sizes - what a transfer costs by its size, in both directions, beside a direct one

A connection transfers one file; its time runs from connect() to the last byte. We transfer directly by TCP, by libconvert and convertd to
a plain TCP server, and by plain MPTCP to a server in the converter's place, in turn; each round compares neighbours. The round trip to
the converter, 60 ms, dwarfs the programs' computing, so a lost round trip is a step of 60 ms.

"with responses" is a client whose requests aren't silent (CONVERT_SILENCE=never): its first transfer ever, or one through
another make of converter. We don't measure plain MPTCP towards far servers, since its server would be near.

Client and server set TCP_NODELAY, as browsers, curl, Go and nginx do. "Nagle" is a pair that doesn't, and sends the head of a request in
a separate segment. Nagle's algorithm keeps back a last short segment while another short one is unacknowledged: a round trip. Multipath
TCP sends short segments where TCP doesn't (doc/limits.md).

Captures explain the rows of uploads above 1.03. 192 to 384 KiB over two paths: Linux's scheduler gives a subflow up to 64 KB at once,
whatever its congestion window. A second subflow has a window of 14 KB at first, so the last bytes wait there for one or two round trips,
while the first subflow has sent everything and could take them. Plain MPTCP does the same. The receiver's window changes how often; the
client's tcp_notsent_lowat doesn't. "No data in SYNs": the request follows the handshake, and the client waits for its response: one round
trip, whatever the size. We haven't captured downloads of 128 KiB to 1 MiB over 48 + 6 Mbit/s; plain MPTCP's are above direct ones, too.
"""
import dataclasses
import statistics

from benchlib.twopaths import BETTER, OURS, OURS_ANSWERED, PLAIN, Paths, allowed_congestion_controls, link
from convertlab import Lab, Link
from models import benefit

DURATION = "14 minutes"

MBIT, ROUND_TRIP_MS, QUEUE_MS = 48, 60, 100
NEAR_MS, FAR_MS = 0.1, 30  # one way between converter and server
CONGESTION = ("cubic", "reno", "bbr")
DIRECTIONS = "upload", "download"
LIMIT = 1.03  # of direct

KIB = 1024
SIZES = tuple(kib * KIB for kib in (1, 4, 16, 64, 128, 256, 1024, 4096))
SIZES_QUICK = 16 * KIB, 64 * KIB
ROUNDS, ROUNDS_QUICK = 5, 1


@dataclasses.dataclass(frozen=True)
class Case:
    """Links, a converter and an application."""

    name: str
    second_mbit: float = 0  # of a second path with the same round trip; 0: there is none
    core_ms: float = NEAR_MS
    options: tuple = ()     # of convertd
    nagle: bool = False

    @property
    def ways(self):
        """The ways of a file that are compared."""
        return (BETTER, OURS, OURS_ANSWERED) if self.core_ms == FAR_MS else (BETTER, OURS, OURS_ANSWERED, PLAIN)

    def lab(self, congestion):
        """Its lab."""
        second = link(self.second_mbit, ROUND_TRIP_MS, QUEUE_MS) if self.second_mbit else None
        return Lab(wifi=link(MBIT, ROUND_TRIP_MS, QUEUE_MS), lte=second, core=Link(delay_ms=self.core_ms), congestion=congestion)


CASES = (
    Case("one path"),
    Case("one path, far server", core_ms=FAR_MS),
    Case("%d + %d Mbit/s" % (MBIT, MBIT), second_mbit=MBIT),
    Case("%d + 6 Mbit/s" % MBIT, second_mbit=6),
    Case("%d + %d Mbit/s, far server" % (MBIT, MBIT), second_mbit=MBIT, core_ms=FAR_MS),
    # a client with several paths sends no data in SYNs to a converter that doesn't correct their windows
    Case("%d + %d Mbit/s, no data in SYNs" % (MBIT, MBIT), second_mbit=MBIT, options=("--hold-syn", "off")),
    Case("one path, Nagle", nagle=True),
)
CASES_QUICK = CASES[0], CASES[-1]


def _size_text(size):
    return "%d KiB" % (size / KIB) if size < KIB * KIB else "%d MiB" % (size / KIB / KIB)


def _measure(bench, cases, sizes, rounds, congestion):
    """{(case, direction, size): {way: seconds of each round}}"""
    found = {(case, direction, size): {way: [] for way in case.ways} for case in cases for direction in DIRECTIONS for size in sizes}
    turns = [(case, direction) for case in cases for direction in DIRECTIONS]
    for case, direction in bench.over(turns, label=lambda turn: "%s, %ss" % (turn[0].name, turn[1]), weight=lambda turn: len(turn[0].ways)):
        with case.lab(congestion) as lab:
            paths = Paths(lab, direction, options=case.options, no_delay=not case.nagle)
            for _ in range(rounds):
                for size in sizes:
                    for way in case.ways:
                        found[case, direction, size][way].append(paths.transfer(way, size).whole)
            paths.check()
    for (case, direction, size), ways in found.items():
        bench.samples("%s, %s, %s: seconds to the last byte" % (case.name, direction, _size_text(size)), list(ways.items()))
    return found


def _ratios(ways, way):
    """What a way takes, of the direct transfer of the same round."""
    return [ours / direct for ours, direct in zip(ways[way], ways[BETTER])]


def _rows(found, direction, sizes):
    for case in dict.fromkeys(case for case, _, _ in found):
        for size in sizes:
            ways = found[case, direction, size]
            times = ["%.0f" % (1e3 * statistics.median(ways[way])) if way in ways else "" for way in (BETTER, OURS, OURS_ANSWERED, PLAIN)]
            ratios = ["%.2f (%.2f to %.2f)" % benefit.middle(_ratios(ways, OURS))]
            ratios += ["%.2f" % statistics.median(_ratios(ways, way)) if way in ways else "" for way in (OURS_ANSWERED, PLAIN)]
            yield [case.name, _size_text(size), *times, *ratios]


def run(bench):
    """The experiment."""
    bench.cpu_matters = True
    cases, sizes, rounds = (CASES_QUICK, SIZES_QUICK, ROUNDS_QUICK) if bench.quick else (CASES, SIZES, ROUNDS)
    congestion = allowed_congestion_controls(CONGESTION)[0]
    for name, value in (("first path", "%g Mbit/s, %g ms of round trip" % (MBIT, ROUND_TRIP_MS)), ("queue", "%g ms of each path" % QUEUE_MS),
                        ("round trip between converter and server", "%g ms, %g ms if it is far" % (2 * NEAR_MS, 2 * FAR_MS)),
                        ("congestion control", congestion), ("rounds", rounds)):
        bench.setting(name, value)
    found = _measure(bench, cases, sizes, rounds, congestion)
    for direction in DIRECTIONS:
        bench.table("%ss: median ms from connect() to the last byte, and medians (quartiles) of direct" % direction.capitalize(),
                    ["paths", "file", "direct TCP", OURS, OURS_ANSWERED, PLAIN, "%s, of direct" % OURS, "%s, of direct" % OURS_ANSWERED,
                     "%s, of direct" % PLAIN], list(_rows(found, direction, sizes)), key=direction + "s")
        series = {case.name: [(size / KIB, *benefit.middle(_ratios(found[case, direction, size], OURS))) for size in sizes] for case in cases}
        bench.plot("lines", "%ss by libconvert, in times of direct ones; bands: quartiles" % direction.capitalize(), series,
                   key=direction + "s", xlabel="file in KiB", ylabel="time, of direct", xlog=True)
    above = [(statistics.median(_ratios(ways, OURS)), case, direction, size) for (case, direction, size), ways in found.items()]
    worst = max(above, key=lambda one: one[0])
    bench.remark("%d of %d medians of libconvert are above %g of direct; the largest is %.2f (%s, %s of %s)." % (
        sum(ratio > LIMIT for ratio, *_ in above), len(above), LIMIT, worst[0], worst[1].name, worst[2], _size_text(worst[3])))
