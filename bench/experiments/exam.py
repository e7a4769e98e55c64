# SPDX-License-Identifier: BSD-3-Clause
"""exam - an online examination under high load: 4,000 JMeter threads, one path against two

Hou et al. (Performance Analysis of MPTCP Under High Load Based on SDN Environment, figures 2 to 5): JMeter starts 4,000 threads with 20
requests each within 160 s, and within ever less time down to 100 s; a web server answers them from a database behind it. Direct TCP has
one path of 50 Mbit/s to the web server, and one from there to the database. libconvert has two, through convertd, with the same client
and web server; the web server reaches the database by Multipath TCP over two. At the greatest load "plain MPTCP" shows the kernel's own
performance: client and web server both speak it, without a converter. There we measure both once more with links of unlimited rate to the
database, which shows the effect of these links.

BENCH_EXAM_RAMPS="160 130 100" in the environment measures only these times.
"""
import os
import resource
import subprocess

from benchlib import examination, machine, processes
from benchlib.examination import DATABASE_LINKS, QUEUE, WEBS, Examination, Meter, mptcpize
from benchlib.proxies import THREADS as CONVERTD_THREADS
from benchlib.twopaths import allowed_congestion_controls
from convertlab import Lab, LabError
from models import highload, jtl
from models.highload import DATA, MBIT, MTU, RAMPS, REQUESTS, THREADS

DURATION = "52 minutes"
NEEDS = ("exam",)

CONGESTION = ("cubic", "reno")  # the paper's, or, where hosts of the lab may not use that, the one that also goes by losses
THREADS_QUICK, RAMPS_QUICK = 200, (8, 5)  # as many requests a second, for a twentieth of the time
CONNECT_MS, RESPONSE_MS = 10000, 10000    # time-outs: how long a request waits for a connection, and for the response's next bytes
INTERVAL = 2, 0.5                         # seconds of a point in the plots over time; with --quick
FILES = 20000                             # descriptors that a process may have
SYSTEMS = ("direct TCP", "libconvert")
REFERENCE = "plain MPTCP"
WEB = dict(zip((*SYSTEMS, REFERENCE), WEBS))
AGAIN = ("TcpRetransSegs", "TcpExtTCPTimeouts", "MPTcpExtMPTCPRetrans")  # counters of what was sent again, of all hosts
PATHS = {"direct TCP": ("wifi",), "libconvert": ("wifi", "lte"), REFERENCE: ("wifi", "lte")}
LINK_NAMES = {"wifi": "path 1", "lte": "path 2"}
PAGE_AROUND = 830                         # bytes of a response besides the passage: HTTP's header, the question and its choices


class Trial:
    """One run of JMeter's plan: a system, the seconds within which the threads start, and what came of it. limited: are the database's
    links as slow as the clients'?
    """

    def __init__(self, system, ramp, limited=True):
        self.system = system
        self.ramp = ramp
        self.limited = limited
        self.samples, self.links, self.database, self.cpu, self.active, self.again = [], [], [], {}, 0, {}
        self.wrong = []  # sentences: what isn't as it has to be

    @property
    def label(self):
        """The system, for tables."""
        return self.system + ("" if self.limited else ", database without limit")

    @property
    def name(self):
        """For people."""
        return "%s, started within %g s" % (self.label, self.ramp)


def page_bytes():
    """How long the passage of a question is, so that a request takes as much of a path as the published figures say (models/highload.py)."""
    wire = highload.wire_bytes()
    return wire, round(wire * DATA / MTU) - PAGE_AROUND


def _ramps(bench):
    told = os.environ.get("BENCH_EXAM_RAMPS")
    try:
        ramps = tuple(float(word) for word in told.split()) if told else RAMPS_QUICK if bench.quick else [
            ramp * bench.sample for ramp in RAMPS]
    except ValueError as error:
        raise LabError("BENCH_EXAM_RAMPS is \"%s\"; it takes seconds, as in \"160 130 100\"" % told) from error
    return sorted(ramps, reverse=True)


class _Cpu:
    """CPU seconds of each program since it was made."""

    def __init__(self, roots):
        self._roots = roots
        self._before = {name: processes.cpu_seconds([pid]) for name, pid in roots.items()}

    def used(self):
        return {name: processes.cpu_seconds([pid]) - self._before[name] for name, pid in self._roots.items()}


def _again(lab, exam):
    counters = [host.counters() for host in (*lab.hosts.values(), exam.database)]
    return {name: sum(each[name] for each in counters) for name in AGAIN}


def _measure(lab, exam, converter, trial, threads):
    """Runs JMeter once; fills the Trial."""
    system, ramp, web = trial.system, trial.ramp, WEB[trial.system]
    exam.reset(trial.limited)
    directory = os.path.join(lab.directory, "jmeter-%s-%g" % (trial.label.replace(" ", "-"), ramp))
    shim_log = directory + "-shim.log"
    env = lab.converted(CONVERT_LOG=shim_log) if system == "libconvert" else {}
    cpu = _Cpu(dict(exam.pids(web), convertd=converter.pid))
    own, again = resource.getrusage(resource.RUSAGE_CHILDREN), _again(lab, exam)
    meters = Meter(lab.client, PATHS["libconvert"]), Meter(lab.server, DATABASE_LINKS)
    jmeter, records = examination.jmeter(lab, env, directory, {
        "server": lab.server.addr4, "port": web.port, "threads": threads, "ramp": "%g" % ramp,
        "connect": CONNECT_MS, "response": RESPONSE_MS}, mptcpize() if web.to_clients else ())
    try:
        status = jmeter.wait(timeout=ramp * 5 + 120)  # far above the time that the slowest link takes for it
    except subprocess.TimeoutExpired as late:
        raise LabError("JMeter has not come to an end:\n%s" % jmeter.log_text()[-2000:]) from late
    notes, trial.cpu = [meter.stop() for meter in meters], cpu.used()
    trial.again = {name: count - again[name] for name, count in _again(lab, exam).items()}
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    trial.cpu["JMeter"] = used.ru_utime + used.ru_stime - own.ru_utime - own.ru_stime
    if status or not os.path.exists(records):
        raise LabError("JMeter ended with %d:\n%s" % (status, jmeter.log_text()[-2000:]))
    with open(records, encoding="utf-8", newline="") as file:
        trial.samples, epoch = jtl.parse(file)
    trial.links, trial.database = ([[note[0] + meter.epoch - epoch, *note[1:]] for note in each] for meter, each in zip(meters, notes))
    trial.active = jtl.most_active(trial.samples)
    _check(trial, exam, threads, shim_log)


def _check(trial, exam, threads, shim_log):
    """Notes what isn't as it has to be; what failed is a result with one path, and an error with two."""
    if len(trial.samples) != threads * REQUESTS:
        trial.wrong.append("JMeter has recorded %d requests, not %d" % (len(trial.samples), threads * REQUESTS))
    recorded = sum(sample.success and sample.label == "answer" for sample in trial.samples)
    failed = sum(not sample.success for sample in trial.samples)
    if not recorded <= exam.answers() <= recorded + failed:
        trial.wrong.append("the database has %d answers, while JMeter was told of %d, and %d requests failed"
                           % (exam.answers(), recorded, failed))
    if trial.system != "libconvert":
        return
    for cause, count in jtl.causes(trial.samples).items():
        trial.wrong.append("%d requests failed: %s" % (count, cause))
    with open(shim_log, encoding="utf-8", errors="replace") as file:
        lines = file.read().splitlines()
    converted = [line for line in lines if "converted over MPTCP" in line]
    direct = [line for line in lines if ": direct: " in line]
    if direct:
        trial.wrong.append("%d connections went past the converter; the shim says first: %s" % (len(direct), direct[0]))
    if len(converted) < threads:
        trial.wrong.append("%d connections went through the converter over MPTCP, not %d at least" % (len(converted), threads))


# --- what is made of it -------------------------------------------------------------------------------


def _load(threads, ramp):
    """Requests a second that the threads are to make while they start."""
    return threads * REQUESTS / ramp


def _by(runs, ramp, system):
    return next(trial for trial in runs if (trial.ramp, trial.system, trial.limited) == (ramp, system, True))


def _main_table(bench, runs, ramps, threads):
    rows = []
    for ramp in ramps:
        tcp, ours = (_by(runs, ramp, system).samples for system in SYSTEMS)
        rates = [jtl.throughput(samples, ramp) for samples in (tcp, ours)]
        rows.append(["%g" % ramp, "%.0f" % _load(threads, ramp)] + ["%.0f" % rate for rate in rates] + ["%.2f" % (rates[1] / rates[0])]
                    + ["%.0f" % jtl.throughput(samples) for samples in (tcp, ours)]
                    + ["%.2f" % (100 * jtl.error_rate(samples)) for samples in (tcp, ours)]
                    + ["%.0f" % jtl.running_time(samples) for samples in (tcp, ours)])
    bench.table("%s threads with %d requests each, by the seconds within which they start. Throughput: requests a second that were "
                "answered, while threads start and over the whole running time" % ("{:,}".format(threads), REQUESTS),
                ["started within s", "asked for /s", "TCP /s", "libconvert /s", "libconvert of TCP", "TCP, whole time /s",
                 "libconvert, whole time /s", "TCP % failed", "libconvert % failed", "TCP running s", "libconvert running s"], rows, key="exam")


def _errors_table(bench, runs):
    rows = [["%g" % trial.ramp, trial.label, cause, count] for trial in runs for cause, count in jtl.causes(trial.samples).items()]
    bench.table("Requests that failed, by cause", ["started within s", "", "cause", "requests"], rows or [["all", "both", "none failed", 0]],
                key="causes")


def _waits_table(bench, runs):
    rows = []
    for trial in runs:
        waits = sorted(sample.elapsed * 1000 for sample in trial.samples)
        rows.append(["%g" % trial.ramp, trial.label, trial.active] + ["%.0f" % waits[min(len(waits) - 1, int(len(waits) * share))]
                                                                for share in (0.5, 0.9, 0.99, 1)])
    bench.table("How long requests took, ms, and how many were under way at once at most",
                ["started within s", "", "at once", "median", "9 of 10", "99 of 100", "longest"], rows, key="waits")


def _cpu_table(bench, runs):
    names = ["JMeter", "nginx", "PHP", "MariaDB", "convertd"]
    rows = []
    for trial in runs:
        busy = (trial.links[-1][2] - trial.links[0][2]) / (trial.links[-1][0] - trial.links[0][0]) / os.cpu_count()
        rows.append(["%g" % trial.ramp, trial.label] + ["%.0f" % trial.cpu[name] for name in names] + ["%.0f" % (100 * busy)])
    bench.table("CPU seconds of each program, and how busy the whole machine was meanwhile",
                ["started within s", ""] + names + ["machine %"], rows, key="cpu")


def _carried(trial, path, to_server=False):
    """Mbit/s that a path has carried to the client, or a link to the server from the database, while threads started, on average."""
    of = trial.database if to_server else trial.links
    notes = [(time, carried[path]) for time, carried, _ in of if 0 <= time <= trial.ramp]
    return (notes[-1][1] - notes[0][1]) * 8e-6 / (notes[-1][0] - notes[0][0])


def _paths_table(bench, runs, wire):
    rows = []
    for trial in runs:
        first, second = (_carried(trial, path) for path in ("wifi", "lte"))
        rows.append(["%g" % trial.ramp, trial.label, "%.1f" % first, "%.1f" % second,
                     *["%.1f" % _carried(trial, link, True) for link in DATABASE_LINKS], "%.0f" % _outcome(trial).throughput,
                     "%.1f" % (100 * highload.more_carried(first + second, _outcome(trial).throughput, wire * 8e-6))])
    bench.table("What each path has carried to the client, and each link from the database to the web server, while threads started, "
                "Mbit/s; the requests that were answered then, and how much more was carried to the client than these take",
                ["started within s", "", "path 1", "path 2", "database 1", "database 2", "requests/s", "more, %"], rows, key="paths")
    reference, ours = (_by(runs, runs[-1].ramp, system) for system in (REFERENCE, "libconvert"))
    bench.value("of-plain-mptcp", "%.2f times that of plain MPTCP" % (_outcome(ours).throughput / _outcome(reference).throughput))
    direct = _outcome(_by(runs, runs[-1].ramp, "direct TCP")).throughput
    unlimited, most = (_outcome(trial).throughput for trial in runs if not trial.limited)
    bench.value("unlimited", "%.2f times that of direct TCP by libconvert, %.2f times by plain MPTCP" % (unlimited / direct, most / direct))
    bench.value("most", "%.2f" % (_load(THREADS, RAMPS[-1]) / direct))


def _tail_table(bench, runs):
    rows = []
    for trial in runs:
        tail = jtl.tail(trial.samples)
        rows.append(["%g" % trial.ramp, trial.label, "%.1f" % (jtl.running_time(trial.samples) - trial.ramp), "%.0f" % (1000 * tail.least),
                     "%.0f" % tail.start, "%.0f" % (100 * tail.waited), *trial.again.values()])
    bench.table("Where the tail comes from: seconds from the last start to the last answer; of the slowest hundredth of the requests the least "
                "time, the median start, and the share that waited for their first byte rather than for the rest; and what all hosts sent again",
                ["started within s", "", "last answer, s later", "slowest: ms at least", "begun at s", "for the first byte, %",
                 "TCP, segments", "TCP, time-outs", "Multipath TCP, pieces"], rows, key="tail")


def _rates(notes, link):
    return jtl.rates_of_counter([(time, carried[link]) for time, carried, _ in notes if time >= -Meter.INTERVAL])


def _plots_over_time(bench, runs, ramps, threads):
    width = INTERVAL[bench.quick]
    for ramp in ramps:
        name = "%g" % (ramp * THREADS / threads)  # so that samples of a run have the same keys
        pair = {trial.system: trial for trial in runs if trial.ramp == ramp and trial.limited}
        longest = max(jtl.running_time(trial.samples) for trial in pair.values())
        asked = _load(threads, ramp)
        series = {system: jtl.rate_over_time(trial.samples, width) for system, trial in pair.items()}
        series["asked for by the threads that start"] = [(0, asked), (ramp, asked), (ramp, 0), (longest, 0)]
        bench.plot("lines", "Requests answered a second, threads started within %g s (figure 2)" % ramp, series, key="throughput-" + name,
                   xlabel="s since the first request", ylabel="requests/s", ylim=(0, None), xlim=(0, None))
        bench.plot("lines", "What the paths carry to the client, threads started within %g s (figure 3)" % ramp,
                   {"%s (%s)" % (system, LINK_NAMES[path]): _rates(trial.links, path)
                    for system, trial in pair.items() for path in PATHS[system]},
                   key="links-" + name, xlabel="s since the first request", ylabel="Mbit/s", ylim=(0, None), xlim=(0, None))
        bench.plot("lines", "What the database sends to the web server, threads started within %g s (figure 3)" % ramp,
                   {"%s (link %d)" % (system, number): _rates(trial.database, link) for system, trial in pair.items()
                    for number, link in enumerate(list(DATABASE_LINKS)[:1 + WEB[system].to_database], 1)},
                   key="database-" + name, xlabel="s since the first request", ylabel="Mbit/s", ylim=(0, None), xlim=(0, None))


def _plots(bench, runs, ramps, threads):
    loads = [_load(threads, ramp) for ramp in ramps]
    base = _outcome(_by(runs, ramps[0], "direct TCP")).throughput

    def curve(function):
        return {system: [(load, function(_outcome(_by(runs, ramp, system)))) for load, ramp in zip(loads, ramps)] for system in SYSTEMS}
    as_published = _is_published_range(loads)
    published = highload.published_throughput(loads[0], loads[-1])
    bench.plot("lines", "Throughput while threads start, by load; 1 is direct TCP at the least load",
               curve(lambda outcome: outcome.throughput / base), key="throughput", xlabel="requests/s asked for",
               ylabel="throughput / direct TCP's at the least load", ylim=(0, None),
               published={"direct TCP: Hou et al.": published["TCP"],
                          "libconvert: Hou et al., MPTCP": published["MPTCP"]} if as_published else {})
    bench.plot("lines", "Requests that failed, by load (figure 4)", curve(lambda outcome: 100 * outcome.error_rate), key="errors",
               xlabel="requests/s asked for", ylabel="% of all requests",
               published={"libconvert: Hou et al., MPTCP": [(loads[0], 0), (loads[-1], 0)]} if as_published else {})
    series = curve(lambda outcome: outcome.running_time)
    series["time within which the threads start"] = list(zip(loads, ramps))
    bench.plot("lines", "Total running time, by load (figure 5)", series, key="running",
               xlabel="requests/s asked for", ylabel="s", ylim=(0, None))


def _is_published_range(loads):
    """Are the least and the greatest load those of the paper?"""
    least, greatest = (_load(THREADS, ramp) for ramp in (RAMPS[0], RAMPS[-1]))
    return len(loads) > 1 and abs(loads[0] - least) < 1 and abs(loads[-1] - greatest) < 1


def _outcome(trial):
    samples = trial.samples
    return highload.Outcome(jtl.throughput(samples, trial.ramp), jtl.error_rate(samples), sum(not sample.success for sample in samples),
                            jtl.running_time(samples))


def _compare(bench, runs, ramps):
    """The paper's statements beside what was found, as a table and as values for the page."""
    found = {system: [_outcome(_by(runs, ramp, system)) for ramp in ramps] for system in SYSTEMS}
    statements = highload.statements(found["direct TCP"], found["libconvert"], ramps)
    bench.table("What Hou et al. state, and what was found from %g s to %g s" % (ramps[0], ramps[-1]),
                ["statement", "published", "here", ""], [[each.text, each.published, each.here, each.verdict] for each in statements],
                key="statements")
    for each in statements:
        bench.value(each.key, each.here)
        bench.value(each.key + "-verdict", each.verdict)


def _settings(bench, wire, page, congestion):
    bench.setting("paths", "two of %d Mbit/s to the client, and two to the database, queues of %d packets, no delay" % (MBIT, QUEUE))
    bench.value("database", "two links of %d Mbit/s" % MBIT)
    bench.setting("page", "a request takes %.0f bytes of a path, %d of them the passage of a question" % (wire, page))
    bench.setting("congestion control", congestion)
    bench.value("congestion", {"cubic": "CUBIC", "reno": "Reno"}[congestion])
    bench.setting("connections", "one a thread, kept alive")
    bench.setting("time-outs", "%g s for a connection, %g s for the next bytes of a response" % (CONNECT_MS / 1000, RESPONSE_MS / 1000))
    bench.setting("threads of convertd", CONVERTD_THREADS)
    bench.value("page", "%.1f" % (wire / 1000))
    bench.value("connect", "%g" % (CONNECT_MS / 1000))
    bench.value("response", "%g" % (RESPONSE_MS / 1000))
    for name, path in examination.files().items():
        bench.version(name, machine.package_version(path))


def run(bench):
    """The experiment."""
    examination.need_programs()
    bench.cpu_matters = True
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, FILES)), hard))
    ramps = _ramps(bench)
    threads = bench.count(THREADS, THREADS_QUICK)
    wire, page = page_bytes()
    congestion = allowed_congestion_controls(CONGESTION)[0]
    _settings(bench, wire, page, congestion)
    runs = []
    with Lab(wifi=examination.path(), lte=examination.path(), core=None, congestion=congestion) as lab:
        exam = Examination(lab, threads, page)
        converter = lab.convertd(["--log-level", "warning", "--workers", CONVERTD_THREADS])
        items = [Trial(system, ramp) for ramp in ramps for system in SYSTEMS] + [
            Trial(REFERENCE, ramps[-1]), *(Trial(system, ramps[-1], False) for system in ("libconvert", REFERENCE))]
        for trial in bench.over(items, label=lambda trial: trial.name, weight=lambda trial: trial.ramp + 10):
            _measure(lab, exam, converter, trial, threads)
            runs.append(trial)
            for sentence in trial.wrong:
                bench.remark("ERROR: %s: %s." % (trial.name, sentence))
            bench.samples("second, requests answered, requests failed: " + trial.name, jtl.by_second(trial.samples))
    _main_table(bench, runs, ramps, threads)
    _compare(bench, runs, ramps)
    _paths_table(bench, runs, wire)
    _errors_table(bench, runs)
    _tail_table(bench, runs)
    _waits_table(bench, runs)
    _cpu_table(bench, runs)
    _plots(bench, runs, ramps, threads)
    _plots_over_time(bench, runs, ramps, threads)
    complaints = exam.errors()
    if complaints:
        bench.remark("The web server complained: %s" % complaints[:500])
    bench.value("ramps", "%d of the document's seven times of start" % len(ramps))
    bench.value("requests", "{:,}".format(threads * REQUESTS * len(runs)))
    bench.value("wrong", sum(len(found.wrong) for found in runs))
