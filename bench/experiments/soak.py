# SPDX-License-Identifier: BSD-3-Clause
"""soak - resources of convertd under a mixed load over a long time

Many kinds of clients connect at a modest rate (benchlib/mixed.py), with reloads in between. The experiment samples the resources of
convertd and its host. It compares those after all clients have gone with those after the clients of the first two minutes had gone.
BENCH_SOAK_SECONDS in the environment sets the duration; 3600 for an hour.
"""
import contextlib
import json
import os
import re
import signal
import time

from benchlib import mixed
from benchlib.field import Field
from convertlab import LabError, Veth, metrics, wait_until
from convertlab.topology import CONVERT_PORT

SECONDS, SECONDS_QUICK = 240, 15
SAMPLES = 240          # at most, and one a second at most
RELOADS = 15           # seconds between two
SETTLE = 60            # seconds that convertd has to give memory back at the end, at most
WARM_UP = 120          # seconds of the load before the begin is noted, at most: buffers that stay have been used then
LONG = 120             # seconds of the longest connections, at most
CONFIGURATIONS = 4     # different ones
FAILURES_TOLD = 20
OTHER_PORT = 1024      # below those that the lab's connections come from: one of these would be in the way

# name: its unit in the table
SAMPLED = {"memory, anonymous": "kB", "memory, resident": "kB", "descriptors": "", "threads": "", "sessions on the status page": "",
           "pending requests": "", "TCP sockets of the host": "", "rules in nftables": "", "SYNs in the queue": "",
           "conntrack entries": ""}


class Converter:
    """convertd with a configuration file that changes, and all that can be known of it."""

    def __init__(self, lab):
        self._lab = lab
        self._path = os.path.join(lab.directory, "convertd.conf")
        self.reloads = self._failed = 0
        self._write(False)
        self.process = lab.convertd(["--config", self._path, "--workers", "2", "--log-level", "warning", "--request-timeout", "5",
                                     *metrics.OPTIONS])
        self._descriptors = self.descriptors()

    def _write(self, other):
        with open(self._path, "w", encoding="ascii") as file:
            file.write("listen [::]:%d\nconnect-timeout %d\n" % (CONVERT_PORT, 10 + self.reloads % CONFIGURATIONS))
            file.write("listen [::]:%d\n" % OTHER_PORT if other else "")

    def reload(self):
        """Another configuration: a second port comes and goes, another time-out. Raises LabError where it isn't taken."""
        self.reloads += 1
        self._write(self.reloads % 2 == 1)
        self.process.send_signal(signal.SIGHUP)
        told = wait_until(self._reloaded, 20, "a reload", interval=0.1)
        if told("convertd_reloads_total", result="failed") > self._failed:
            self._failed += 1
            raise LabError("a reload failed: " + self.process.log_text().splitlines()[-1])

    def _reloaded(self):
        told = metrics.Metrics(self._lab.converter)
        return told if sum(told.family("convertd_reloads_total", "result").values()) == self.reloads else None

    def _nftables(self):
        said = self._lab.converter.run(["nft", "--json", "list", "ruleset"], check=False)
        if said.returncode:
            return None
        return sum("rule" in entry for entry in json.loads(said.stdout)["nftables"])

    def _file(self, path):
        with self._lab.converter.entered(), contextlib.suppress(OSError), open(path, encoding="ascii") as file:
            return file.read()
        return ""

    def descriptors(self):
        """How many convertd has."""
        return len(os.listdir("/proc/%d/fd" % self.process.serving))

    def sample(self):
        """{name: figure, None where it isn't to be had}, as SAMPLED has the names."""
        with open("/proc/%d/status" % self.process.serving, encoding="ascii") as file:
            status = dict(line.split(":\t", 1) for line in file)
        # before who asks has a descriptor and a socket for a moment
        descriptors = self.descriptors()
        page = metrics.get(self._lab.converter, "/status")[2]
        sockets = re.search(r"TCP: inuse (\d+)", self._file("/proc/thread-self/net/sockstat"))
        queues = self._file("/proc/thread-self/net/netfilter/nfnetlink_queue").splitlines()
        conntrack = self._file("/proc/sys/net/netfilter/nf_conntrack_count")
        return dict(zip(SAMPLED, (
            int(status["RssAnon"].split()[0]), int(status["VmRSS"].split()[0]), descriptors, int(status["Threads"]),
            int(re.search(r"^  all +(\d+)", page, re.MULTILINE)[1]), int(re.search(r"^  pending +(\d+)", page, re.MULTILINE)[1]),
            int(sockets[1]) if sockets else None, self._nftables(), sum(int(line.split()[2]) for line in queues) if queues else None,
            int(conntrack) if conntrack else None)))

    def wait_quiet(self):
        """Reloads until the first configuration is in force again; then until all clients have gone, and all withheld SYNs."""
        while self.reloads % CONFIGURATIONS:
            self.reload()

        def quiet():
            sample = self.sample()
            return sample["descriptors"] <= self._descriptors and not any(sample[name] for name in (
                "sessions on the status page", "pending requests", "SYNs in the queue"))
        wait_until(quiet, 60, lambda: "the sessions to end: %s" % self.sample(), interval=0.2)


def _seconds(quick):
    return float(os.environ.get("BENCH_SOAK_SECONDS", SECONDS_QUICK if quick else SECONDS))


def _watch(bench, converter, load, seconds):
    """[(seconds, sample, connections so far), …] while the load runs."""
    found, start = [], time.monotonic()
    reload_at, told = RELOADS / 3, 0
    while time.monotonic() - start < seconds and converter.process.poll() is None:
        now = time.monotonic() - start
        try:
            if now >= reload_at:
                reload_at += RELOADS
                converter.reload()
            found.append((now, converter.sample(), sum(load.outcomes.values())))
        except (AssertionError, LabError, OSError) as error:
            load.failures.append("the sample after %.0f s: %s" % (now, error))
        if found and now >= told:
            bench.progress("%.0f of %.0f s: %d connections, %d failures, %d kB" % (
                now, seconds, found[-1][2], len(load.failures), found[-1][1]["memory, anonymous"]))
            told += 60
        time.sleep(max(1, seconds / SAMPLES))
    return found


def _settled(converter, begin, seconds):
    """What there is at the end, once memory is back or its time is over."""
    converter.wait_quiet()
    end = time.monotonic() + min(SETTLE, seconds)
    while True:
        sample = converter.sample()
        if sample["memory, anonymous"] <= begin["memory, anonymous"] or time.monotonic() > end:
            return sample
        time.sleep(1)


def _tell(bench, fresh, begin, end, samples, load, reloads):
    rows = []
    for name, unit in SAMPLED.items():
        if begin[name] is not None and end[name] is not None:
            most = max(sample[name] for _, sample, _ in samples)
            rows.append([name + (", " + unit if unit else ""), fresh[name], begin[name], most, end[name],
                         "%+d" % (end[name] - begin[name])])
    bench.table("convertd and its host; without clients but for the most", ["", "just started", "begin", "most", "end", "difference"], rows)
    outcomes = [[*key, "%d" % count] for key, count in sorted(load.outcomes.items())]
    bench.table("What clients saw", ["clients", "end", "connections"], outcomes + [
        ["all", "", "%d" % sum(load.outcomes.values())], ["not as expected", "", "%d" % len(load.failures)],
        ["reloads", "", "%d" % reloads]])
    for text in load.failures[:FAILURES_TOLD]:
        bench.remark("Not as expected: " + text)
    minutes = [(at / 60, sample, count) for at, sample, count in samples]
    bench.plot("lines", "Memory", {name: [(at, sample[name]) for at, sample, _ in minutes] for name in list(SAMPLED)[:2]},
               xlabel="minutes", ylabel="kB")
    bench.plot("lines", "What there is", {name: [(at, sample[name]) for at, sample, _ in minutes] for name in (
        "descriptors", "sessions on the status page", "threads", "pending requests")}, xlabel="minutes")
    bench.plot("lines", "Connections so far", {"": [(at, count) for at, _, count in minutes]}, xlabel="minutes")


def run(bench):
    """The experiment."""
    seconds = _seconds(bench.quick)
    bench.setting("seconds", "%g" % seconds)
    bench.setting("seconds between two reloads", RELOADS)
    with Field(lte=Veth()) as lab:
        converter = Converter(lab)
        load = mixed.Load(lab, min(LONG, seconds / 4))
        fresh = converter.sample()
        bench.progress("warming up")
        load.start()
        time.sleep(min(WARM_UP, seconds / 2))
        load.stop()
        converter.reload()
        converter.wait_quiet()
        begin = converter.sample()
        load.outcomes.clear()
        load.start()
        samples = _watch(bench, converter, load, seconds)
        load.stop()
        end = _settled(converter, begin, seconds)
        strange = [line for line in converter.process.log_text().splitlines() if not line.startswith("convertd: warning: ")]
        load.failures += ["convertd's log: " + line for line in strange]
        status = converter.process.stop()
        if status:
            load.failures.append("convertd ended with %d" % status)
    bench.samples("just started", [fresh])
    bench.samples("begin", [begin])
    bench.samples("seconds, sample, connections", samples)
    bench.samples("end", [end])
    _tell(bench, fresh, begin, end, samples, load, converter.reloads)
