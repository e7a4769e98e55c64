# SPDX-License-Identifier: BSD-3-Clause
"""benefit - what a second path gains or costs, by capacity ratio, delay ratio and file size

After Cordero (Multi-path TCP performance evaluation in dual-homed (wired/wireless) devices); ../models/benefit.py has the metrics.
We transfer a file over the better of two paths by plain TCP, over the worse one by plain TCP, and over both by libconvert: with
the shim in the client and convertd in front of a plain TCP server. Multipath TCP begins with the path of the default route: with
"libconvert" the better path, with "libconvert, worse path first" the other one. "plain MPTCP" talks
to an MPTCP server in the converter's place over the same links, and shows the kernel's own performance.

Each round's benefits are computed from its own transfers. A transfer's time runs from connect() to the last
byte; its goodput is its size divided by the time from the established connection to the last byte.
"""
import dataclasses
import statistics

from benchlib.twopaths import BETTER, OURS, OURS_WORSE_FIRST, PLAIN, WORSE, Paths, allowed_congestion_controls, link
from convertlab import Lab, Link
from models import benefit

DURATION = "26 minutes"

MBIT, ROUND_TRIP_MS = 48, 10  # of the better path
QUEUE_MS = 100                # of both: so long does a packet wait at most
CORE_MS = 0.1
CONGESTION = ("cubic", "reno", "bbr")  # the first one that a host of the lab is allowed is that of the grids

KIB = 1024
SIZES = 16 * KIB, 64 * KIB, 256 * KIB, KIB * KIB, 4 * KIB * KIB
SIZES_QUICK = 64 * KIB, KIB * KIB
# {the other ratio: ratios}
CAPACITIES = {1: (1, 2, 4, 8, 16), 4: (1, 4, 16)}
CAPACITIES_QUICK = {1: (1, 4, 16), 4: (1,)}
DELAYS = {1: (1, 2, 4, 8), 4: (1, 4, 8)}
DELAYS_QUICK = {1: (1, 4), 4: (1,)}
CAPACITIES_UPLOAD, CAPACITIES_CONGESTION = (1, 8), (1, 4)
CAPACITIES_FEW_QUICK = (1,)
ROUNDS, ROUNDS_QUICK = 10, 2  # ten rounds are 3,150 transfers, Cordero's 3,000 and more

BOTH = OURS, OURS_WORSE_FIRST, PLAIN
WAYS = BETTER, WORSE, *BOTH
WAYS_FEW = BETTER, WORSE, OURS, PLAIN

MARGIN = 0.05  # a benefit that is nearer to zero counts as none: of a short transfer that is a millisecond or two
LIMITED = 0.1  # a transfer that takes less than so much longer than over the better path is called one of limited cost


@dataclasses.dataclass(frozen=True)
class Point:
    """Two paths, and how files are transferred over them."""

    capacity: int  # of the better path, in those of the worse one
    delay: int     # of the worse path, in those of the better one
    congestion: str
    direction: str = "download"

    def __str__(self):
        return "%g + %g Mbit/s, %g + %g ms, %s, %s" % (MBIT, MBIT / self.capacity, ROUND_TRIP_MS, ROUND_TRIP_MS * self.delay,
                                                     self.congestion, self.direction)

    def links(self):
        """The better path and the worse one."""
        return link(MBIT, ROUND_TRIP_MS, QUEUE_MS), link(MBIT / self.capacity, ROUND_TRIP_MS * self.delay, QUEUE_MS)


def size_text(size):
    """A size in the unit that suits it."""
    return "%d KiB" % (size / KIB) if size < KIB * KIB else "%d MiB" % (size / KIB / KIB)


# --- what is measured -------------------------------------------------------------------------------------


class Plan:
    """The points of this run, and the grids that they make."""

    def __init__(self, quick, rounds, controls):
        self.rounds = rounds
        self.sizes = SIZES_QUICK if quick else SIZES
        self.capacities = CAPACITIES_QUICK if quick else CAPACITIES
        self.delays = DELAYS_QUICK if quick else DELAYS
        self.main = controls[0]
        self.controls = controls
        self.points = {}  # (sizes, ways) of each
        for delay, ratios in self.capacities.items():
            self._add([self.grid(capacity, delay) for capacity in ratios])
        for capacity, ratios in self.delays.items():
            self._add([self.grid(capacity, delay) for delay in ratios])
        self.uploads = [Point(capacity, 1, self.main, "upload") for capacity in (CAPACITIES_FEW_QUICK if quick else CAPACITIES_UPLOAD)]
        self._add(self.uploads, self.sizes if quick else self.sizes[1::2] + self.sizes[-1:], WAYS_FEW)
        self.others = {control: [Point(capacity, 1, control) for capacity in (CAPACITIES_FEW_QUICK if quick else CAPACITIES_CONGESTION)]
                       for control in controls}
        for points in self.others.values():
            self._add(points, self.sizes[-2:], WAYS_FEW)

    def grid(self, capacity, delay):
        """A point of the grids of downloads."""
        return Point(capacity, delay, self.main)

    def _add(self, points, sizes=None, ways=WAYS):
        for point in points:
            self.points.setdefault(point, (sizes or self.sizes, ways))

    @property
    def largest(self):
        """The largest file."""
        return self.sizes[-1]

    @property
    def downloads(self):
        """All points of the grids of downloads."""
        return [point for point, (_, ways) in self.points.items() if OURS_WORSE_FIRST in ways]

    def seconds(self, point):
        """About how long a round of a point takes."""
        sizes, ways = self.points[point]
        alone = sum(sizes) * 8e-6 / MBIT
        setups = 6 * ROUND_TRIP_MS * 1e-3 * len(sizes) * (len(ways) + (1 + (OURS_WORSE_FIRST in ways)) * (point.delay - 1))
        return 0.7 + alone * (len(ways) - 1 + point.capacity) + setups


def _measure(bench, plan):
    """{(point, size): {way: a Transfer of each round}}"""
    found = {(point, size): {way: [] for way in ways} for point, (sizes, ways) in plan.points.items() for size in sizes}
    turns = [(number, point) for number in range(plan.rounds) for point in plan.points]
    for _, point in bench.over(turns, label=lambda turn: "round %d of %d: %s" % (turn[0] + 1, plan.rounds, turn[1]),
                               weight=lambda turn: plan.seconds(turn[1])):
        wifi, lte = point.links()
        sizes, ways = plan.points[point]
        with Lab(wifi=wifi, lte=lte, core=Link(delay_ms=CORE_MS), congestion=point.congestion) as lab:
            paths = Paths(lab, point.direction)
            for size in sizes:
                for way in ways:
                    found[point, size][way].append(paths.transfer(way, size))
            paths.check()
    for (point, size), transfers in found.items():
        bench.samples("%s, %s: seconds to the connection, to the last byte, and the worse path's share of the bytes" % (
            point, size_text(size)), [(way, [dataclasses.astuple(one)[1:] for one in ones]) for way, ones in transfers.items()])
    return found


# --- what follows from it -----------------------------------------------------------------------------------


class Findings:
    """The benefits of all transfers, a sample for each round."""

    def __init__(self, found):
        self._found = found

    def transfers(self, point, size, way):
        """The Transfers."""
        return self._found[point, size][way]

    def bandwidth(self, point, size, way=OURS):
        """The bandwidth aggregation benefit, from the goodput that each path had alone."""
        return [benefit.aggregation_benefit(both.mbit, [one.mbit for one in alone]) for both, alone in self._rounds(point, size, way)]

    def bandwidth_nominal(self, point, size, way=OURS):
        """The same from the rates of the links, as Kaspar and Paasch have it."""
        return [benefit.aggregation_benefit(both.mbit, (MBIT, MBIT / point.capacity)) for both in self.transfers(point, size, way)]

    def delay(self, point, size, way=OURS):
        """The delay benefit."""
        return [benefit.delay_benefit(both.whole, [one.whole for one in alone]) for both, alone in self._rounds(point, size, way)]

    def _rounds(self, point, size, way):
        return [(both, alone) for both, *alone in zip(*(self.transfers(point, size, name) for name in (way, BETTER, WORSE)))]

    def median(self, point, size, way, what="whole"):
        """The median of what a transfer has."""
        return statistics.median(getattr(one, what) for one in self.transfers(point, size, way))


def _spread(samples):
    # 0 is added so that nothing is "-0.00"
    return "%.2f (%.2f to %.2f)" % tuple(round(value, 2) + 0 for value in benefit.middle(samples))


def _point_rows(plan, findings, points):
    for point in points:
        sizes, ways = plan.points[point]
        for size in sizes:
            both = [way for way in ways if way in BOTH]
            yield [str(point), size_text(size)] + ["%.0f" % (1e3 * findings.median(point, size, way)) for way in ways] + [
                _spread(metric(point, size, way)) for metric in (findings.bandwidth, findings.delay) for way in both]


def _point_columns(ways):
    both = [way for way in ways if way in BOTH]
    return ["paths", "file"] + ["%s, ms" % way for way in ways] + [
        "%s benefit, %s" % (metric, way) for metric in ("bandwidth", "delay") for way in both]


def _all_points(bench, plan, findings):
    """Every point, with medians of the times, and the median and the quartiles of the benefits."""
    for title, key, points, ways in (
            ("Downloads", "points", plan.downloads, WAYS),
            ("Uploads", "uploads", plan.uploads, WAYS_FEW)):
        bench.table("%s: median times from connect() to the last byte, and benefits: median (quartiles) of %d rounds" % (
            title, plan.rounds), _point_columns(ways), list(_point_rows(plan, findings, points)), key=key)


def _heatmaps(bench, plan, findings):
    """Medians of both metrics over file size and ratio."""
    grids = [("capacity", "1:%d", delay, ratios, [plan.grid(ratio, delay) for ratio in ratios])
             for delay, ratios in plan.capacities.items()]
    grids += [("delay", "%d:1", capacity, ratios, [plan.grid(capacity, ratio) for ratio in ratios])
              for capacity, ratios in plan.delays.items()]
    for what, pattern, other, ratios, points in grids:
        alike = {"capacity": "round trips of %g and %g ms" % (ROUND_TRIP_MS, ROUND_TRIP_MS * other),
                 "delay": "rates of %g and %g Mbit/s" % (MBIT, MBIT / other)}[what]
        for way, start, key in ((OURS, "better", ""), (OURS_WORSE_FIRST, "worse", "-worse-first")):
            panels = {name: [[round(statistics.median(metric(point, size, way)), 2) + 0 for size in plan.sizes] for point in points]
                      for name, metric in (("bandwidth aggregation benefit", findings.bandwidth), ("delay benefit", findings.delay))}
            bench.plot("heatmap", "libconvert over paths with %s, %s path first" % (alike, start), panels,
                       key="%s-%d%s" % (what, other, key), xticks=[size_text(size) for size in plan.sizes],
                       yticks=[pattern % ratio for ratio in ratios], xlabel="file", ylabel="%s, worse path to better one" % what,
                       zlim=(-1, 1), zlabel="0: better path alone, 1: sum of both")


def _capacity(bench, plan, findings):
    """The benefit of the largest file against the capacity ratio."""
    ratios, size = plan.capacities[1], plan.largest
    rows, series = [], {way: [] for way in BOTH}
    for ratio in ratios:
        point = plan.grid(ratio, 1)
        for way, pairs in series.items():
            pairs.append((ratio, *benefit.middle(findings.bandwidth(point, size, way))))
        rows.append(["%g + %g" % (MBIT, MBIT / ratio)] + ["%.1f" % findings.median(point, size, way, "mbit") for way in WAYS_FEW] + [
            _spread(findings.bandwidth(point, size, way)) for way in BOTH] + [
                _spread(findings.bandwidth_nominal(point, size)),
                "%.0f%%" % (100 * findings.median(point, size, OURS, "share")), "%.0f%%" % (100 / (1 + ratio))])
    bench.table("Bandwidth aggregation benefit of a download of %s, round trips of %g ms: goodput in Mbit/s, and median (quartiles)" % (
        size_text(size), ROUND_TRIP_MS), ["Mbit/s", *WAYS_FEW, *("benefit, %s" % way for way in BOTH), "libconvert, by the links' rates",
                                          "worse path's share of the bytes", "of the rates"], rows, key="capacity")
    bench.plot("lines", "Download of %s over two paths, round trips of %g ms; bands: quartiles" % (size_text(size), ROUND_TRIP_MS), series,
               key="benefit", xlabel="capacity of the better path, in those of the worse one",
               ylabel="bandwidth aggregation benefit\n(0: better path alone, 1: sum of both)", xlog=True)


def _short(bench, plan, findings):
    """The delay benefit against the size of the file, where round trips differ."""
    capacity, delay = 1, 4
    point = plan.grid(capacity, delay)
    series = {way: [(size / KIB, *benefit.middle(findings.delay(point, size, way))) for size in plan.sizes] for way in BOTH}
    rows = [[size_text(size)] + ["%.0f" % (1e3 * findings.median(point, size, way)) for way in WAYS] + [
        _spread(findings.delay(point, size, way)) for way in BOTH] for size in plan.sizes]
    paths = "two paths of %g Mbit/s with round trips of %g and %g ms" % (MBIT, ROUND_TRIP_MS, ROUND_TRIP_MS * delay)
    bench.table("Delay benefit of a download over %s: median times in ms, and median (quartiles)" % paths,
                ["file", *WAYS, *("benefit, %s" % way for way in BOTH)], rows, key="short")
    bench.plot("lines", "Downloads over %s; bands: quartiles" % paths, series, key="short", xlabel="file in KiB",
               ylabel="delay benefit\n(0: better path alone, 1: sum of both)", xlog=True)


def _congestion(bench, plan, findings):
    """The benefit with each congestion control."""
    rows = []
    for control, points in plan.others.items():
        for point in points:
            for size in plan.sizes[-2:]:
                rows.append([control, "%g + %g" % (MBIT, MBIT / point.capacity), size_text(size)] + [
                    "%.1f" % findings.median(point, size, way, "mbit") for way in WAYS_FEW] + [
                        _spread(findings.bandwidth(point, size, way)) for way in (OURS, PLAIN)])
    bench.table("Congestion control of all hosts: goodput of downloads in Mbit/s, round trips of %g ms, and the bandwidth benefit: median "
                "(quartiles)" % ROUND_TRIP_MS, ["congestion control", "Mbit/s", "file", *WAYS_FEW, "benefit, libconvert",
                                                "benefit, plain MPTCP"], rows, key="congestion")


# --- what the article concludes ------------------------------------------------------------------------------


def _degrades(bench, plan, findings):
    """Rows for "the bandwidth benefit substantially degrades when the interfaces have very different capacities"."""
    for way, key in ((OURS, "degrades"), (OURS_WORSE_FIRST, "degrades-worse-first"), (PLAIN, "degrades-plain")):
        samples = {ratio: findings.bandwidth(plan.grid(ratio, 1), plan.largest, way) for ratio in plan.capacities[1]}
        verdict, correlation = benefit.falls(samples)
        text = "%s at 1:1, %s at %d:1; rank correlation with the ratio %.2f" % (
            _spread(samples[min(samples)]), _spread(samples[max(samples)]), max(samples), correlation or 0)
        bench.value(key, verdict)
        bench.value(key + "-figures", text)
        yield ["The bandwidth benefit degrades as capacities diverge", "%s, %s" % (way, size_text(plan.largest)), text, verdict]


def _short_lose(bench, plan, findings):
    """Rows for "differences in path latency may lead MPTCP to perform worse than TCP" where the transfer is too short for both paths."""
    points = [point for point in plan.downloads if point.delay > 1]
    for way, key in ((OURS, "short"), (OURS_WORSE_FIRST, "short-worse-first")):
        lost = [(point, size) for point in points for size in plan.sizes[:-1]
                if benefit.loses(findings.delay(point, size, way), MARGIN)]
        recovered = [(point, size) for point, size in lost
                     if benefit.is_above(findings.delay(point, plan.largest, way), findings.delay(point, size, way))]
        verdict = benefit.verdict(bool(recovered), not lost)
        worst = min((statistics.median(findings.delay(point, size, way)), size) for point in points for size in plan.sizes[:-1])
        largest = size_text(plan.largest)
        text = ("%d of %d transfers of less than %s have a delay benefit below %g, the lowest being %.2f (%s); over the same paths that "
                "of %s is higher beyond the spread in %d cases") % (
            len(lost), len(points) * len(plan.sizes[:-1]), largest, -MARGIN, worst[0], size_text(worst[1]), largest, len(recovered))
        bench.value(key, verdict)
        bench.value(key + "-figures", text)
        yield ["With different latencies short transfers can be slower than over the better path", way, text, verdict]


def _mostly(bench, plan, findings):
    """Rows for "MPTCP is able, in most cases, to take advantage of additional bandwidth with limited cost in terms of delay"."""
    cases = [(point, size) for point in plan.downloads for size in plan.sizes]
    for way, key in ((OURS, "mostly"), (OURS_WORSE_FIRST, "mostly-worse-first")):
        long = [benefit.gains(findings.bandwidth(point, plan.largest, way), MARGIN) for point in plan.downloads]
        costly = [benefit.loses(findings.delay(point, size, way), 1 - 1 / (1 + LIMITED)) for point, size in cases]
        verdict = benefit.verdict(2 * sum(long) > len(long) and 2 * sum(costly) < len(costly),
                                  2 * sum(long) < len(long) or 2 * sum(costly) > len(costly))
        text = "%d of %d transfers of %s gain bandwidth; %d of all %d take more than %g%% longer than over the better path" % (
            sum(long), len(long), size_text(plan.largest), sum(costly), len(costly), 100 * LIMITED)
        bench.value(key, verdict)
        bench.value(key + "-figures", text)
        yield ["In most cases bandwidth is gained, at a limited cost in delay", way, text, verdict]


def _conclusions(bench, plan, findings):
    """What the article concludes, beside what was found here."""
    rows = [row for judge in (_degrades, _short_lose, _mostly) for row in judge(bench, plan, findings)]
    bench.table("The article's conclusions, judged by the figures of this run", ["conclusion", "over both by", "here", "verdict"], rows,
                key="conclusions")
    ratios = [plain.whole / ours.whole for point in plan.downloads for size in plan.sizes
              for plain, ours in zip(findings.transfers(point, size, PLAIN), findings.transfers(point, size, OURS))]
    bench.value("of-plain", "%.2f (%.2f to %.2f)" % benefit.middle(ratios))
    bench.remark("The time of plain MPTCP by that of libconvert, all downloads: %.2f (quartiles %.2f to %.2f)." % benefit.middle(ratios))


def _settings(bench, plan):
    bench.setting("better path", "%g Mbit/s and %g ms of round trip" % (MBIT, ROUND_TRIP_MS))
    bench.setting("queue", "%g ms of each path" % QUEUE_MS)
    bench.setting("round trip between converter and server", "%g ms" % (2 * CORE_MS))
    bench.setting("rounds", plan.rounds)
    bench.setting("congestion control of the grids", plan.main)
    bench.setting("congestion controls allowed here", " ".join(plan.controls))
    for key, value in (("rounds", plan.rounds), ("congestion", plan.main), ("controls", " and ".join(plan.controls)),
                       ("largest", size_text(plan.largest))):
        bench.value(key, value)


def run(bench):
    """The experiment."""
    bench.cpu_matters = True
    plan = Plan(bench.quick, bench.count(ROUNDS, ROUNDS_QUICK), allowed_congestion_controls(CONGESTION))
    _settings(bench, plan)
    findings = Findings(_measure(bench, plan))
    _capacity(bench, plan, findings)
    _short(bench, plan, findings)
    _congestion(bench, plan, findings)
    _all_points(bench, plan, findings)
    _heatmaps(bench, plan, findings)
    _conclusions(bench, plan, findings)
