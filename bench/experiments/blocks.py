# SPDX-License-Identifier: BSD-3-Clause
"""blocks - 3G and WiFi at once: how old an application's 8 KB blocks are on arrival

The experiment of figure 7 of Raiciu et al., How Hard Can It Be? Designing and Implementing a Deployable Multipath TCP (NSDI 2012), with
the links and buffers of its reproduction by Wen-Chien Chen and Kevin Han, Reproducing the 3G/WiFi application level latency results in
MPTCP (Stanford's CS 244, 2015). An application on the client sends blocks of 8 KB to a server without a pause. The server notes a block's
age when its last byte arrives. Blocks go by TCP over either network, through libconvert and convertd over both, and by plain Multipath
TCP over both to a server in the converter's place, which shows the converter's part.

The receive buffer at the end of the Multipath TCP connection counts: the converter's. convertd has no option for it, so
net.ipv4.tcp_rmem in its namespace sets it, and the server's likewise. The network between converter and server has no limit,
so nothing queues behind the converter.
"""
import contextlib
import dataclasses
import json
import os
import re
import subprocess

from benchlib import median, quantile
from benchlib.proxies import convertd_options
from convertlab import Lab, LabError, Link
from models import block_delay, density

DURATION = "25 minutes"

BLOCKS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tools", "blocks.py")
BLOCK = 8192
PORT = 6000
CONVERTER_PORT = 1234
PACKET = 1500

WIFI_MBIT, WIFI_RTT_MS, WIFI_QUEUE_MS = 8, 20, 80
G3_MBIT, G3_RTT_MS, G3_QUEUE_MS = 2, 150, 2000
G3_JITTER_MS = 50
FASTER_WIFI = (16, 32, 64)  # Mbit/s, of the sensitivity analysis

# Buffers as an application asks for them by setsockopt(); the kernel doubles that, for its own use. A sysctl it takes as it is.
SEND_BUFFER = 200 * 1024
RECEIVE_BUFFER = 32 * 1024
SMALL = "4096 %d %d" % (2 * RECEIVE_BUFFER, 2 * RECEIVE_BUFFER)
DEFAULT = "4096 131072 6291456"  # of a mainline kernel with 4 GB of memory and more; a machine's own may have been changed

SYSCTLS = {
    "net.ipv4.tcp_wmem": "4096 16384 4194304",  # mainline's default, for what convertd sends to the server
    "net.ipv4.tcp_no_metrics_save": 1,          # a connection must not begin with what the one before it has learned
}
CONGESTION = "reno"  # the one that each kernel has and lets every namespace use

SECONDS, SECONDS_QUICK = 20, 3
SECONDS_FASTER = 12  # more blocks a second
HEAD, HEAD_QUICK = 4, 0.4  # seconds: blocks sent while buffers fill and the second path joins don't count
NEARLY = 0.8  # of the seconds: when the buffers in force are looked at
STALLED = 20  # seconds without an end after the last block: the connection stands still
ATTEMPTS = 3  # a connection that stands still is begun again, in a lab of its own, and is reported
LEAST_BYTES = BLOCK  # a path that has carried less than one block has had a handshake, and no data

WIFI, G3, LIBCONVERT, MPTCP = "TCP over WiFi", "TCP over 3G", "libconvert", "plain MPTCP"
ALL = (WIFI, G3, LIBCONVERT, MPTCP)
OVER_BOTH = (LIBCONVERT, MPTCP)
COMPARABLE = 1.25  # times the median delay of TCP over WiFi: up to that they are called comparable
HIGHER = 2         # and from that on significantly higher
NOT_TESTABLE = block_delay.NOT_TESTABLE
# names of the links in the lab, and what they are here
LINKS = {"wifi": "WiFi", "lte": "3G"}


@dataclasses.dataclass(frozen=True)
class Case:
    """A setting, and the ways by which blocks are sent in it."""

    name: str
    wifi_mbit: int = WIFI_MBIT
    receive: str = SMALL   # net.ipv4.tcp_rmem of converter and server
    overtaking: bool = True  # whether the 3G network's jitter lets packets overtake each other
    ways: tuple = ALL
    rounds: int = 3
    seconds: float = SECONDS


MAIN = Case("32 KB", rounds=6)
KEPT = Case("32 KB, 3G keeps the order", overtaking=False, ways=OVER_BOTH)
LARGE = Case("default buffer", receive=DEFAULT)
LARGE_KEPT = Case("default buffer, 3G keeps the order", receive=DEFAULT, overtaking=False, ways=OVER_BOTH)
FASTER = tuple(Case("32 KB, WiFi %d Mbit/s" % mbit, wifi_mbit=mbit, ways=(WIFI, *OVER_BOTH), seconds=SECONDS_FASTER)
               for mbit in FASTER_WIFI)
CASES = (MAIN, KEPT, LARGE, LARGE_KEPT, *FASTER)


def packets(mbit, milliseconds):
    """How many full packets a queue of so many milliseconds holds, as the document reckons: rounded up."""
    return -(-round(mbit * 1e3 * milliseconds) // (8 * PACKET))


class Run:
    """What was found by one connection: the ages of the blocks that count, and what was in force."""

    def __init__(self, received, sent, carried, dropped, receive_buffer, head):
        self.ages = block_delay.settled(received["sent"], received["age"], head)
        if len(self.ages) < 2:
            raise LabError("only %d of %d blocks were sent after the first %g seconds" % (len(self.ages), len(received["age"]), head))
        self.mbit = block_delay.rate_mbit(received["sent"], received["age"], head, BLOCK)
        self.carried, self.dropped = carried, dropped
        self.send_buffer, self.receive_buffer = sent["send buffer"], receive_buffer
        self.waiting, self.windows = sent["waiting"], sent["window"]


class StandsStill(LabError):
    """Nothing moves any more on a connection."""


class Field(Lab):
    """The lab with the two networks, and a connection by each of the ways."""

    def __init__(self, case):
        super().__init__(
            wifi=Link(delay_ms=WIFI_RTT_MS / 2, rate_mbit=case.wifi_mbit, queue=packets(case.wifi_mbit, WIFI_QUEUE_MS)),
            # Link adds jitter to the delay, up to so much; netem, which was used there, adds and subtracts it.
            lte=Link(delay_ms=G3_RTT_MS / 2 - G3_JITTER_MS, jitter_ms=2 * G3_JITTER_MS, reorder=case.overtaking,
                     rate_mbit=G3_MBIT, queue=packets(G3_MBIT, G3_QUEUE_MS)),
            core=Link(), congestion=CONGESTION)
        self._case = case

    def _start(self):
        super()._start()
        for host in self.hosts.values():
            for name, value in SYSCTLS.items():
                host.sysctl(name, value)
        # before anything listens there: a connection inherits the listener's buffer
        for host in (self.converter, self.server):
            host.sysctl("net.ipv4.tcp_rmem", self._case.receive)
        self.convertd(convertd_options(self.build))

    def _counters(self):
        return {name: getattr(self, name).stats() for name in LINKS}

    def _converter_buffers(self):
        """The receive buffers of the client's connection at convertd, as the kernel states them."""
        said = self.converter.run(["ss", "-Hntm", "state", "established", "sport = :%d" % CONVERTER_PORT]).stdout
        return [int(size) for size in re.findall(r"skmem:\(r\d+,rb(\d+)", said)]

    def _way(self, way):
        """(the host that receives, options of both programs, those of the sender, its environment)"""
        client = self.client
        return {WIFI: (self.server, [], ["--from", client.wifi4], None),
                G3: (self.server, [], ["--from", client.lte4], None),
                LIBCONVERT: (self.server, [], [], self.converted()),
                MPTCP: (self.converter, ["--mptcp"], [], None)}[way]

    def send(self, way, seconds, head):
        """Sends blocks for so many seconds; returns a Run."""
        host, both, options, env = self._way(way)
        before = self._counters()
        receiver = self.start_listening(host, ["python3", BLOCKS, "receive", *both, PORT], PORT)
        command = ["python3", BLOCKS, "send", *both, *options, "--send-buffer", SEND_BUFFER, host.addr4, PORT, seconds]
        sender = self.client.popen(command, env=env, name="blocks.py-send")
        # buffers that the kernel adapts have grown by the end
        with contextlib.suppress(subprocess.TimeoutExpired):
            sender.wait(timeout=seconds * NEARLY)
        buffers = self._converter_buffers() if way == LIBCONVERT else []
        if way == LIBCONVERT and not buffers:
            raise LabError("%s, %s: there is no connection to convertd" % (self._case.name, way))
        self._wait_end(way, sender, seconds + STALLED)
        self._wait_end(way, receiver, STALLED)
        received, sent, after = json.loads(receiver.log_text()), json.loads(sender.log_text()), self._counters()
        run = Run(received, sent, block_delay.carried(before, after), block_delay.carried(before, after, "queue_drop"),
                  max(buffers, default=received["receive buffer"]), head)
        self._check_paths(way, run)
        return run

    def _wait_end(self, way, process, limit):
        try:
            status = process.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            sockets = "".join("\n%s:\n%s" % (name, host.run(["ss", "-ntMmie"]).stdout + host.run(["ss", "-ntmieo"]).stdout)
                              for name, host in self.hosts.items())
            raise StandsStill("%s, %s: the connection stands still; sockets:%s" % (self._case.name, way, sockets)) from None
        if status != 0:
            raise LabError("%s ended with %d:\n%s" % (process.title, status, process.log_text()))

    def _check_paths(self, way, run):
        """Were exactly those networks used that were to be used? It was the document's first caveat that the second one wasn't."""
        idle = block_delay.idle_paths(run.carried, LEAST_BYTES)
        expected = {WIFI: ["lte"], G3: ["wifi"]}.get(way, [])
        if idle != expected:
            counts = "; ".join("%s has carried %d bytes" % (LINKS[name], count) for name, count in run.carried.items())
            raise LabError("%s, %s: %s, but %s to be used" % (
                self._case.name, way, counts, "only the other than %s is" % LINKS[expected[0]] if expected else "both are"))


class Labs:
    """One lab at a time, the one of the current setting."""

    def __init__(self, stack):
        self._stack = stack
        self._case, self._lab = None, None

    def of(self, case):
        """The running lab of this setting."""
        if case is not self._case:
            self.close()
            self._lab, self._case = self._stack.enter_context(Field(case)), case
        return self._lab

    def close(self):
        """Ends it; the next one is a new one."""
        self._case = None
        self._stack.close()


def _cases(bench):
    if bench.quick:
        return [dataclasses.replace(case, rounds=1, seconds=SECONDS_QUICK) for case in (MAIN, LARGE, FASTER[-1])]
    return [dataclasses.replace(case, rounds=bench.count(case.rounds, 1)) for case in CASES]


def _measure(bench):
    """({case: {way: [Run, …]}}, how many connections stood still by way)"""
    cases, head = _cases(bench), HEAD_QUICK if bench.quick else HEAD
    found = {case.name: {way: [] for way in case.ways} for case in cases}
    still = dict.fromkeys(ALL, 0)
    sends = [(case, way) for case in cases for _ in range(case.rounds) for way in case.ways]
    with contextlib.ExitStack() as stack:
        labs = Labs(stack)
        for case, way in bench.over(sends, label=lambda send: "%s, %s" % (send[0].name, send[1]),
                                    weight=lambda send: send[0].seconds):
            for attempt in range(ATTEMPTS):
                try:
                    found[case.name][way].append(labs.of(case).send(way, case.seconds, head))
                    break
                except StandsStill as problem:
                    bench.progress(str(problem))
                    still[way] += 1
                    labs.close()
                    if attempt == ATTEMPTS - 1:
                        raise
            bench.samples("ms: %s: %s" % (case.name, way), found[case.name][way][-1].ages)
    return found, still


def _remark_still(bench, found, still):
    """Says which connections had to be measured again."""
    begun = {way: sum(len(ways.get(way, [])) for ways in found.values()) + still[way] for way in ALL}
    words = ["%d of %d by %s" % (still[way], begun[way], way) for way in ALL if still[way]]
    text = "; ".join(words) if words else "none of %d" % sum(begun.values())
    bench.remark("Connections that stood still for %d seconds and were measured again: %s." % (STALLED, text))
    bench.value("stood_still", text)


def _ages(runs):
    return [age for run in runs for age in run.ages]


def _mbit(runs):
    return sum(run.mbit for run in runs) / len(runs)


def _total(runs, what):
    return {name: sum(getattr(run, what)[name] for run in runs) for name in LINKS}


def _delays_table(bench, key, caption, found):
    base = median(_ages(found[WIFI])) if WIFI in found else None
    rows = []
    for way, runs in found.items():
        ages = _ages(runs)
        rows.append([way, len(ages), "%.1f" % _mbit(runs)]
                    + ["%.0f" % quantile(ages, share) for share in (0.05, 0.5)] + ["%.0f" % (sum(ages) / len(ages))]
                    + ["%.0f" % quantile(ages, share) for share in (0.95, 0.99)] + (["%.2f" % (median(ages) / base)] if base else []))
    bench.table(caption, ["", "blocks", "Mbit/s", "1 of 20, ms", "median, ms", "mean, ms", "19 of 20, ms", "99 of 100, ms"]
                + (["median, of TCP over WiFi"] if base else []), rows, key=key)


def _paths_table(bench, found):
    rows = []
    for case, ways in found.items():
        for way in OVER_BOTH:
            carried, dropped = _total(ways[way], "carried"), _total(ways[way], "dropped")
            rows.append([case, way] + ["%.2f" % (carried[name] / 1e6) for name in LINKS]
                        + ["%.0f%%" % (100 * block_delay.share(carried, "lte"))] + [str(dropped[name]) for name in LINKS])
    bench.table("What each network has carried towards the server, counted by the links: megabytes with headers, and packets that "
                "full queues have dropped",
                ["receive buffer", "", "WiFi, MB", "3G, MB", "share of 3G", "dropped, WiFi", "dropped, 3G"], rows, key="paths")


def _force_table(bench, found):
    rows = []
    for case in (name for name in (MAIN.name, LARGE.name) if name in found):
        for way, runs in found[case].items():
            waiting = [count for run in runs for count in run.waiting]
            windows = [window for run in runs for window in run.windows]
            rows.append([case, way] + ["%.0f" % (value / 1024) for value in (
                runs[0].send_buffer, median(waiting), max(run.receive_buffer for run in runs), median(windows), max(windows))])
    bench.table("Buffers in force, KB: sizes as the kernel states them, what waited in the sending socket, and the window that was announced to it",
                ["receive buffer", "", "send buffer", "waiting, median", "receive buffer, at the end", "window, median",
                 "window, largest"], rows, key="in_force")


def _pdf(bench, key, title, found):
    curves = {way: density.estimate(_ages(runs)) for way, runs in found.items()}
    bench.plot("lines", title, curves, key=key, xlabel="delay of a block, ms", ylabel="share of the blocks in each ms",
               xlim=(0, None), ylim=(0, None))
    return curves


def _ratio(wifi_mbit):
    return wifi_mbit / G3_MBIT


def _sensitivity(bench, found):
    """By the ratio of the networks' bandwidths: the main setting and those with a faster WiFi."""
    rows, series = [], {}
    for case in (MAIN, *FASTER):
        for way in (WIFI, *OVER_BOTH) if case.name in found else ():
            runs = found[case.name][way]
            ages, wifi = _ages(runs), _ages(found[case.name][WIFI])
            middle, low, high = (quantile(ages, share) for share in (0.5, 0.05, 0.95))
            series.setdefault(way, []).append((middle, low, high))
            rows.append(["%g" % _ratio(case.wifi_mbit), "%d + %d" % (case.wifi_mbit, G3_MBIT), way]
                        + ["%.0f" % value for value in (low, middle, high)]
                        + ["%.1f" % (high / middle), "%.2f" % (middle / median(wifi)),
                           "%.0f%%" % (100 * block_delay.share(_total(runs, "carried"), "lte"))])
    bench.table("Delay of blocks by the ratio of the networks' bandwidths, receive buffer 32 KB",
                ["WiFi / 3G", "Mbit/s", "", "1 of 20, ms", "median, ms", "19 of 20, ms", "19 of 20 / median",
                 "median, of TCP over WiFi", "share of 3G"], rows, key="sensitivity")
    bench.plot("bars", "Delay of 8 KB blocks, receive buffer 32 KB: median, and where 18 of 20 blocks lie", series, key="ratios",
               categories=["%g (%d + %d)" % (_ratio(case.wifi_mbit), case.wifi_mbit, G3_MBIT)
                           for case in (MAIN, *FASTER) if case.name in found],
               xlabel="bandwidth of WiFi / bandwidth of 3G (in Mbit/s)", ylabel="delay of a block, ms")


def _claims(bench, found):
    """The findings of the document, and whether ours agree."""
    main, large = found[MAIN.name], found[LARGE.name]
    medians = {way: median(_ages(runs)) for way, runs in main.items()}
    times = {way: value / medians[WIFI] for way, value in medians.items()}
    furthest = found[max(FASTER, key=lambda case: case.name in found and case.wifi_mbit).name]
    far = {way: median(_ages(runs)) for way, runs in furthest.items()}
    tails = {way: [quantile(_ages(runs[way]), 0.95) / median(_ages(runs[way])) for runs in (main, furthest)] for way in OVER_BOTH}
    ratios = [found[case.name] for case in (MAIN, *FASTER) if case.name in found]
    peaks = {way: [density.peak(density.estimate(_ages(ways[way]))) for ways in ratios] for way in OVER_BOTH}
    peaks_text = "; ".join("%s %.0f to %.0f ms" % (way, min(each), max(each)) for way, each in peaks.items())
    share = block_delay.share(_total(main[LIBCONVERT], "carried"), "lte")
    by_buffer = medians[LIBCONVERT] / median(_ages(large[LIBCONVERT]))
    verdicts = {
        "3g": block_delay.verdict(times[G3] >= HIGHER),
        "comparable": block_delay.verdict_without(times[LIBCONVERT] <= COMPARABLE),
        "between": block_delay.verdict(COMPARABLE < times[LIBCONVERT] < times[G3]),
        "second": block_delay.verdict(share > 0),
        "buffer": block_delay.verdict(by_buffer >= COMPARABLE),
        "tail": NOT_TESTABLE,
        "peaks": block_delay.verdict_by_way({way: max(each) <= COMPARABLE * min(each) for way, each in peaks.items()}),
        "far": block_delay.verdict_without(far[LIBCONVERT] <= COMPARABLE * far[WIFI]),
    }
    bench.table("The document's findings (the mechanisms are opportunistic retransmission and penalisation, which mainline doesn't have)",
                ["finding", "ours", "by our figures"], [
                    ["The delay of TCP over 3G is significantly higher than over WiFi (from %g times on)" % HIGHER,
                     "%.1f times its median" % times[G3], verdicts["3g"]],
                    ["MPTCP with the mechanisms is comparable to TCP over WiFi (up to %g times)" % COMPARABLE,
                     "%.1f times its median, without them" % times[LIBCONVERT], verdicts["comparable"]],
                    ["The mechanisms make the range of delays narrower and the mean smaller", "mainline has no switch for them", NOT_TESTABLE],
                    ["Without them the delay lies between that over WiFi and that over 3G",
                     "%.1f, between 1 and %.1f" % (times[LIBCONVERT], times[G3]), verdicts["between"]],
                    ["MPTCP uses the second path, once it has learned of it", "3G carries %.0f%% of the bytes" % (100 * share), verdicts["second"]],
                    ["A small receive buffer makes delays longer than the default one does (from %g times on)" % COMPARABLE,
                     "%.2f times the median" % by_buffer, verdicts["buffer"]],
                    ["The larger the ratio of bandwidths, the less the mechanisms help: more blocks are late (19 of 20 / median grows)",
                     "from %.1f to %.1f, without them" % tuple(tails[LIBCONVERT]), verdicts["tail"]],
                    ["The peak of each MPTCP curve stays similar at all ratios (the latest is up to %g times the earliest)" % COMPARABLE,
                     peaks_text, verdicts["peaks"]],
                    ["At the largest ratio MPTCP with the mechanisms is still comparable to TCP over WiFi",
                     "%.1f times its median, without them" % (far[LIBCONVERT] / far[WIFI]), verdicts["far"]],
                ], key="findings")
    bench.value("peaks", peaks_text)
    bench.value("tails", "%.1f, then %.1f times the median, without them" % tuple(tails[LIBCONVERT]))
    for name, text in verdicts.items():
        bench.value("verdict_" + name, text)
    for name, value in (("3g_of_wifi", times[G3]), ("libconvert_of_wifi", times[LIBCONVERT]), ("mptcp_of_wifi", times[MPTCP]),
                        ("by_buffer", by_buffer), ("libconvert_of_mptcp", medians[LIBCONVERT] / medians[MPTCP]),
                        ("default_of_wifi", median(_ages(large[LIBCONVERT])) / median(_ages(large[WIFI])))):
        bench.value(name, "%.1f" % value if abs(value - 1) > 0.3 else "%.2f" % value)
    if KEPT.name in found:
        bench.value("kept_of_main", "%.2f" % (median(_ages(found[KEPT.name][LIBCONVERT])) / medians[LIBCONVERT]))
        bench.value("kept_default_of_wifi", "%.2f" % (median(_ages(found[LARGE_KEPT.name][LIBCONVERT])) / median(_ages(large[WIFI]))))
    for name, ways in (("rate_of_wifi", main), ("rate_default_of_wifi", large)):
        bench.value(name, "%.2f" % (_mbit(ways[LIBCONVERT]) / _mbit(ways[WIFI])))
    bench.value("share_3g", "%.0f%%" % (100 * share))


def _settings(bench):
    bench.setting("WiFi", "%d Mbit/s, %d ms, queue of %d packets" % (WIFI_MBIT, WIFI_RTT_MS, packets(WIFI_MBIT, WIFI_QUEUE_MS)))
    bench.setting("3G", "%d Mbit/s, %d ms, %d ms of jitter, queue of %d packets" % (
        G3_MBIT, G3_RTT_MS, G3_JITTER_MS, packets(G3_MBIT, G3_QUEUE_MS)))
    bench.setting("SO_SNDBUF", "%d (the kernel doubles it)" % SEND_BUFFER)
    bench.setting("net.ipv4.tcp_rmem of converter and server", "%s, as SO_RCVBUF %d would give, or %s" % (SMALL, RECEIVE_BUFFER, DEFAULT))
    bench.setting("congestion control in the lab", CONGESTION)


def run(bench):
    """The experiment."""
    bench.cpu_matters = True
    _settings(bench)
    found, still = _measure(bench)
    _delays_table(bench, "delays", "Delay of 8 KB blocks, receive buffer 32 KB", found[MAIN.name])
    _delays_table(bench, "delays_default", "Delay of 8 KB blocks, mainline's default receive buffer", found[LARGE.name])
    for key, case in (("delays_kept", KEPT), ("delays_default_kept", LARGE_KEPT)):
        if case.name in found:
            _delays_table(bench, key, "Delay of 8 KB blocks: " + case.name, found[case.name])
    _sensitivity(bench, found)
    _paths_table(bench, found)
    _force_table(bench, found)
    _remark_still(bench, found, still)
    _claims(bench, found)
    curves = _pdf(bench, "pdf", "Density of the delay of 8 KB blocks, receive buffer 32 KB (each area is 1)", found[MAIN.name])
    bench.value("areas", ", ".join("%.2f" % density.area(curve) for curve in curves.values()))
    _pdf(bench, "pdf_default", "Density of the delay of 8 KB blocks, default receive buffer (each area is 1)", found[LARGE.name])
