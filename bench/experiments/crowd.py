# SPDX-License-Identifier: BSD-3-Clause
"""crowd - 4,000 clients' requests over two paths, and a page beside a download

The load of `exam` without its programs: 4,000 clients with 20 requests each begin evenly within 160 s down to 100 s. The load generator
asks for pages of the same size over two paths of 50 Mbit/s: by TCP over one of them, by libconvert, and by plain MPTCP to the same
server. Each link counts its bytes, so bytes sent in vain show.

Then one application downloads 32 MB again and again over a fast path and a slow one with a deep queue, while another one asks for pages,
one after the other. Does a page wait behind the download on the slower path?
"""
import json
import os
import resource
import subprocess

from benchlib import examination, median
from benchlib.examination import Meter
from benchlib.field import LOAD, SYSCTLS
from benchlib.proxies import SERVER_PORT, SERVER_PORT_MPTCP, THREADS
from benchlib.twopaths import allowed_congestion_controls, link
from convertlab import Lab, LabError, wait_until
from models import highload

DURATION = "36 minutes"

CONGESTION = ("cubic", "reno")  # as in exam
DIRECT, OURS, PLAIN = "direct TCP", "libconvert", "plain MPTCP"
SYSTEMS = (DIRECT, OURS, PLAIN)
PATHS = ("wifi", "lte")
FILES = 20000                   # descriptors of the generator

RAMPS, RAMPS_QUICK = (160, 130, 100), (100,)
SHARE_QUICK = 0.05
PAGE = round(highload.wire_bytes() * highload.DATA / highload.MTU)  # bytes of a response
MORE_MAX = 0.05                 # how much more than the pages may be carried

# beside a download: Mbit/s, ms of round trip and ms of queue of each path
FAST, SLOW = (48, 20, 100), (8, 60, 500)
DOWNLOAD = 32000000
PAGES = {"10 kB": PAGE, "100 kB": 100000}
PAGES_A_CONNECTION = 20
FLOWING = 2000000               # bytes of the download that have come before pages are asked for
SECONDS, SECONDS_QUICK = 4, 1
ROUNDS = 12
LONGER_MAX = 1.1                # times the wait beside a download over the fast path alone
JUDGED = (90, 99)               # the slowest tenth and hundredth both count; a round has one page or none of the latter


class Application:
    """The load generator, as an application of a system in the lab."""

    def __init__(self, lab):
        self._lab, self._load = lab, lab.build.program(LOAD)
        lab.convertd(["--log-level", "warning", "--workers", THREADS])
        for port, options in ((SERVER_PORT, []), (SERVER_PORT_MPTCP, ["--mptcp"])):
            lab.start_listening(lab.server, [self._load, "serve", *options, port], port)
        for host in lab.hosts.values():
            for name, value in SYSCTLS.items():
                host.sysctl(name, value)
        runtime = os.path.join(lab.directory, "runtime")
        os.mkdir(runtime, 0o700)
        self._env = lab.converted(XDG_RUNTIME_DIR=runtime, CONVERT_ADDR=lab.converter.addr4)
        self.converted = 0

    def start(self, system, *options):
        """Starts it; returns its process."""
        port, more = (SERVER_PORT_MPTCP, ["--mptcp"]) if system == PLAIN else (SERVER_PORT, [])
        source = ["--from", self._lab.client.wifi4] if system == DIRECT else []
        command = [self._load, "run", "--to", "%s:%d" % (self._lab.server.addr4, port), *source, *more, *options]
        return self._lab.client.popen(command, env=self._env if system == OURS else None, stdout=subprocess.PIPE, text=True)

    def end(self, system, process, timeout):
        """Waits for its end; returns what it has printed."""
        found = json.loads(process.communicate(timeout=timeout)[0])
        self.converted += found["opened"] if system == OURS else 0
        if found["failed"] or found["errors"]:
            raise LabError("%s: %d connections failed: %s" % (system, found["failed"], found["errors"]))
        return found

    def run(self, system, *options, timeout=600):
        """Both."""
        return self.end(system, self.start(system, *options), timeout)

    def check(self):
        """All of libconvert's connections went by Multipath TCP."""
        count = self._lab.shim_log().count("converted over MPTCP")
        if count != self.converted:
            raise LabError("%d of %d connections were converted over MPTCP" % (count, self.converted))


# --- a crowd ------------------------------------------------------------------------------------------------------------------


class Crowd:
    """What has come of one crowd: its requests, and what was carried and sent again meanwhile."""

    def __init__(self, found, notes, counters, ramp):
        self.found, self.ramp = found, ramp
        whole = [sum(note[1].values()) for note in (notes[0], notes[-1])]
        self.more = highload.more_carried(whole[1] - whole[0], found["requests"], PAGE * highload.MTU / highload.DATA)
        self.mbit = [(notes[-1][1][path] - notes[0][1][path]) * 8e-6 / found["seconds_all"] for path in PATHS]
        self.counters = counters

    @property
    def rate(self):
        """Requests a second that were answered while clients began: what came in whole seconds."""
        seconds = int(self.ramp)
        return sum(self.found["timeline"][:seconds]) / PAGE / seconds if seconds else self.found["requests"] / self.found["seconds_all"]

    def wait(self, quantile):
        """A quantile of the waits for a response, in ms."""
        return self.found["latency"][quantile] / 1000


def _crowd(lab, application, system, clients, ramp):
    sender = lab.server if system != OURS else lab.converter
    before, meter = sender.counters(), Meter(lab.client, PATHS)
    found = application.run(system, "--connections", clients, "--over", "%g" % ramp, "--requests", highload.REQUESTS, "--response", PAGE,
                            "--timeline", 1000, timeout=ramp * 5 + 60)
    notes, after = meter.stop(), sender.counters()
    if found["requests"] != clients * highload.REQUESTS:
        raise LabError("%s: %d requests were answered, not %d" % (system, found["requests"], clients * highload.REQUESTS))
    return Crowd(found, notes, {name: after[name] - before[name] for name in ("TcpRetransSegs", "MPTcpExtMPTCPRetrans")}, ramp)


def _measure_crowds(bench, congestion):
    """{(ramp, system): a Crowd}"""
    share = SHARE_QUICK if bench.quick else bench.sample
    clients, ramps = max(1, round(highload.THREADS * share)), [ramp * share for ramp in (RAMPS_QUICK if bench.quick else RAMPS)]
    found = {}
    with Lab(wifi=examination.path(), lte=examination.path(), core=None, congestion=congestion) as lab:
        application = Application(lab)
        for system in SYSTEMS:
            application.run(system, "--response", 1, "--connections", 1)  # neighbours are resolved, and the converter is known
        items = [(ramp, system) for ramp in ramps for system in SYSTEMS]
        for ramp, system in bench.over(items, label=lambda item: "%s, within %g s" % item[::-1], weight=lambda item: item[0] + 2):
            found[ramp, system] = _crowd(lab, application, system, clients, ramp)
        application.check()
    bench.setting("clients", clients)
    bench.setting("page", "%d bytes" % PAGE)
    bench.value("clients", "{:,}".format(clients))
    bench.value("requests", "{:,}".format(clients * highload.REQUESTS * len(found)))
    return found


def _tell_crowds(bench, found):
    rows = []
    for (ramp, system), crowd in found.items():
        rows.append(["%g" % ramp, system, "%.0f" % crowd.rate, *["%.0f" % crowd.wait(quantile) for quantile in ("p50", "p99", "max")],
                     "%.1f" % (crowd.found["seconds_all"] - ramp), *["%.1f" % mbit for mbit in crowd.mbit],
                     "%.1f" % (100 * crowd.more), crowd.counters["MPTcpExtMPTCPRetrans"], crowd.counters["TcpRetransSegs"]])
    bench.table("Clients with %d requests each over two paths of %d Mbit/s, by the seconds within which they begin. More: bytes that the "
                "paths have carried beyond full packets of the pages; sent again: by Multipath TCP on another path, by TCP on the same one" % (
                    highload.REQUESTS, highload.MBIT),
                ["begun within s", "", "answered /s", "median ms", "99 of 100, ms", "longest ms", "last answer, s later", "path 1, Mbit/s",
                 "path 2", "more, %", "sent again, pieces", "segments"], rows, key="crowd")
    least = min(ramp for ramp, _ in found)
    ours, plain, direct = (found[least, system] for system in (OURS, PLAIN, DIRECT))
    for key, text in (("more", "%.1f%%" % (100 * ours.more)), ("more-plain", "%.1f%%" % (100 * plain.more)),
                      ("median", "%.0f ms" % ours.wait("p50")), ("median-plain", "%.0f ms" % plain.wait("p50")),
                      ("of-plain", "%.2f" % (ours.rate / plain.rate)), ("of-tcp", highload.percent(ours.rate / direct.rate)),
                      ("late", "%.1f s" % (ours.found["seconds_all"] - least)),
                      ("verdict-more", "met" if ours.more <= MORE_MAX else "not met"),
                      ("verdict-plain", "met" if ours.rate >= 0.97 * plain.rate and ours.wait("p50") <= max(1.1 * plain.wait("p50"), 5)
                       else "not met"),
                      ("verdict-of-tcp", highload.ratio_verdict(ours.rate / direct.rate, highload.PUBLISHED["MPTCP of TCP"]))):
        bench.value(key, text)
    bench.plot("cdf", "How long requests take at the greatest load", {
        system: [us / 1000 for us in found[least, system].found["latency"]["cdf"]] for system in SYSTEMS}, key="waits", xlog=True,
               xlabel="ms from the request to the last byte of its page", ylabel="share of requests")


# --- a page beside a download -------------------------------------------------------------------------------------------------


def _carried(lab):
    return sum(getattr(lab, path).stats()["b-to-a"]["out_bytes"] for path in PATHS)


def _pages(lab, application, system, size, seconds, download):
    """What the generator says of pages of this size; with the goodput of the download in Mbit/s, if there is one, else None."""
    ask = ["--response", size, "--requests", PAGES_A_CONNECTION, "--seconds", seconds]
    if not download:
        return application.run(system, *ask), None
    before = _carried(lab)
    bulk = application.start(system, "--response", DOWNLOAD, "--seconds", seconds, "--warmup", seconds, "--timeline", 1000)
    wait_until(lambda: _carried(lab) - before > FLOWING, 20, "the download to flow")
    pages = application.run(system, *ask)
    found = application.end(system, bulk, 60)
    begin, end = (int(pages["start"] - found["start"]) + 1, int(pages["start"] + pages["seconds"] - found["start"]))
    return pages, sum(found["timeline"][begin:end]) * 8e-6 / (end - begin) if end > begin else None


def _measure_pages(bench, congestion):
    """{(page's name, beside a download?): {system: [(waits in ms, Mbit/s of the download), …]}}"""
    seconds, rounds = SECONDS_QUICK if bench.quick else SECONDS, bench.count(ROUNDS, 1)
    cases = [(name, beside) for name in PAGES for beside in (False, True)]
    found = {case: {system: [] for system in SYSTEMS} for case in cases}
    with Lab(wifi=link(*FAST), lte=link(*SLOW), core=None, congestion=congestion) as lab:
        application = Application(lab)
        items = [(case, system) for _ in range(rounds) for case in cases for system in SYSTEMS]
        for case, system in bench.over(items, label=lambda item: "%s, pages of %s" % (item[1], item[0][0]),
                                       weight=lambda item: seconds * (1 + 1.5 * item[0][1])):
            said, mbit = _pages(lab, application, system, PAGES[case[0]], seconds, case[1])
            found[case][system].append(([us / 1000 for us in said["latency"]["cdf"]], mbit))
    bench.value("rounds", rounds)
    for name, path in (("fast path", FAST), ("slow path", SLOW)):
        bench.setting(name, "%d Mbit/s, %d ms of round trip, %d ms of queue" % path)
        bench.value(name.replace(" ", "-"), "%d Mbit/s, a round trip of %d ms and a queue of %d ms" % path)
    return found


def _wait(rounds, percent):
    """The median over rounds of a percentile of the waits."""
    return median([waits[percent] for waits, _ in rounds])


def _tell_pages(bench, found):
    rows = []
    for (name, beside), systems in found.items():
        for system, rounds in systems.items():
            mbit = [mbit for _, mbit in rounds if mbit is not None]
            rows.append([name, "32 MB" if beside else "nothing", system, *["%.0f" % _wait(rounds, percent) for percent in (50, 90, 99)],
                         *["%.2f" % (_wait(rounds, percent) / _wait(systems[DIRECT], percent)) for percent in JUDGED],
                         "%.1f" % median(mbit) if mbit else None])
    bench.table("Pages one after the other, beside a download and alone: ms from the request to the last byte; rounds: %d" % len(rounds),
                ["page", "beside", "", "median", "9 of 10", "99 of 100", "9 of 10, of direct TCP", "99 of 100, of direct TCP", "download, Mbit/s"], rows, key="pages")
    for name in PAGES:
        beside = found[name, True]
        times = {system: [_wait(beside[system], percent) / _wait(beside[DIRECT], percent) for percent in JUDGED] for system in SYSTEMS}
        key = name.replace(" ", "")
        bench.value("page-%s" % key, "%.2f and %.2f" % tuple(times[OURS]))
        bench.value("page-%s-plain" % key, "%.2f and %.2f" % tuple(times[PLAIN]))
        bench.value("page-%s-median" % key, "%.2f" % (_wait(beside[OURS], 50) / _wait(beside[DIRECT], 50)))
        bench.value("verdict-page-%s" % key, "no page waits longer" if max(times[OURS]) <= LONGER_MAX else
                    "pages wait longer, as by plain MPTCP" if max(times[OURS]) <= LONGER_MAX * max(times[PLAIN]) else "pages wait longer")
        bench.plot("cdf", "Pages of %s beside a download of 32 MB" % name, {
            system: [_wait(rounds, percent) for percent in range(101)] for system, rounds in beside.items()}, key="page-" + key, xlog=True,
                   xlabel="ms from the request to the last byte of the page", ylabel="share of pages")


def run(bench):
    """The experiment."""
    bench.cpu_matters = True
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, FILES)), hard))
    congestion = allowed_congestion_controls(CONGESTION)[0]
    bench.setting("congestion control", congestion)
    _tell_crowds(bench, _measure_crowds(bench, congestion))
    _tell_pages(bench, _measure_pages(bench, congestion))
