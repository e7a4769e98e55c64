#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_frame.py - the frame of the experiments: what is made of readings of CPU time, of results, and of the names of systems"""
import io
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lab"))

# pylint: disable=wrong-import-position
from convertlab import check, equal, main
from convertlab.build import SRCDIR

sys.path.insert(0, os.path.join(SRCDIR, "bench"))
from benchlib import Report, noise, palette, processes, report


def second(**shares):
    """A second of a run, in which nothing happened but what is said."""
    values = {"seconds": 1.0, "busy": 0.0, "stolen": 0.0, "ours": 0.0, "kernel": 0.0, "others": 0.0, "unseen": 0.0, "names": {}}
    return noise.Second(**dict(values, **shares))


def reading(at, **used):
    """What had been used so far at a moment, in seconds."""
    values = {"user": 0.0, "busy": 0.0, "stolen": 0.0, "ours": 0.0, "ours_user": 0.0, "kernel": 0.0, "others": 0.0, "others_user": 0.0,
              "by_process": {}}
    return noise.Reading(at, **dict(values, **used))


def process(parent, name, used=0.0, is_kernel=False):
    """A process of a made-up table."""
    return processes.Process(parent, name, 1, is_kernel, used, 0.0, 0.0, 0.0)


def near(value, expected, what):
    """equal() for figures that were computed with fractions."""
    check(abs(value - expected) < 1e-9, "%s: %r, not %r" % (what, value, expected))


def test_run_from_a_shell():
    """bench/run waits until it is alone, enters the lab, and names what is missing there: here a link emulator that emulates nothing."""
    with tempfile.TemporaryDirectory() as directory:
        with open(os.path.join(directory, "linkem"), "w", encoding="ascii") as file:
            file.write("#!/bin/sh\n")
            os.fchmod(file.fileno(), 0o755)
        result = subprocess.run([sys.executable, os.path.join(SRCDIR, "bench", "run"), "--quick", "--output", directory, "calls"],
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False,
                                env=dict(os.environ, CONVERT_BUILDDIR=directory, CONVERTLAB_OUTER="", CONVERTLAB_TURN=""))
    check(result.stderr.startswith("bench: calls: linkem for wifi: "), result.stderr)
    equal(result.returncode, 1, "its status")


# --- noise ----------------------------------------------------------------------------------------


def test_descendants_are_ours():
    among = {1: process(0, "init"), 2: process(0, "kthreadd", is_kernel=True), 5: process(2, "kworker", is_kernel=True), 10: process(1, "sh"),
             11: process(10, "run"), 12: process(11, "curl"), 13: process(12, "child"), 20: process(1, "compiler")}
    equal(processes.descendants(among, [11]), {11, 12, 13}, "what run has started")
    equal(processes.descendants(among, [99]), set(), "what a process that has ended has started")


def test_shares_of_a_second():
    before = reading(100.0, user=50.0, busy=80.0, ours=10.0, ours_user=4.0, kernel=3.0, others=20.0, others_user=15.0,
                     by_process={(7, 1): ("cc1", 5.0)})
    after = reading(102.0, user=51.4, busy=82.4, stolen=0.2, ours=11.0, ours_user=4.6, kernel=3.2, others=20.6, others_user=15.4,
                    by_process={(7, 1): ("cc1", 5.2), (8, 1): ("cc1", 0.2), (7, 2): ("ld", 0.1)})
    found = noise.between(before, after, 2)
    for name, expected in (("seconds", 2.0), ("busy", 0.6), ("stolen", 0.05), ("ours", 0.25), ("kernel", 0.05), ("others", 0.15), ("unseen", 0.1)):
        near(getattr(found, name), expected, name)
    equal(sorted(found.names), ["cc1", "ld"], "who")
    near(found.names["cc1"], 0.1, "two processes of one name, one of them new")
    near(found.names["ld"], 0.025, "a process that has the number of one that has ended")


def test_lost_processes_make_no_negative_share():
    found = noise.between(reading(0.0, others=9.0, ours=5.0), reading(1.0, others=8.0, ours=5.5), 1)
    equal((found.others, found.ours), (0.0, 0.5), "others, ours")


def test_own_work_is_no_noise():
    verdict = noise.judge([second(busy=1.0, ours=0.7, kernel=0.3)] * 10)
    equal(verdict.verdict, noise.QUIET, "of a run that has used all of the machine itself")
    check("were" not in verdict.text and "kernel's own threads had 30%" in verdict.text, verdict.text)


def test_saturation_counts_where_cpus_matter():
    run = [second(busy=1.0, ours=1.0)] * 2 + [second()] * 18
    equal(noise.judge(run).verdict, noise.QUIET, "without cpu_matters")
    verdict = noise.judge(run, cpu_matters=True)
    equal(verdict.verdict, noise.NOISY, "with cpu_matters")
    check("in 10% of the seconds, more than 5.0%, no CPU was idle" in verdict.text, verdict.text)
    equal(noise.judge([second(busy=1.0, ours=1.0)] + [second()] * 39, cpu_matters=True).verdict, noise.QUIET, "one second of forty")


def test_others_are_noise():
    limit = noise.OTHERS_MAX
    equal(noise.judge([second(others=limit - 0.01)] * 3).verdict, noise.QUIET, "below the limit")
    verdict = noise.judge([second(others=limit + 0.05, names={"cc1": 0.1, "make": 0.03})] * 3)
    equal(verdict.verdict, noise.NOISY, "above it")
    check("too noisy to believe" in verdict.text and "other programs had 15% of the CPUs, more than 10% (cc1 10%, make 3.0%)" in verdict.text,
          verdict.text)
    equal(noise.judge([second(stolen=noise.STOLEN_MAX + 0.01)] * 3).verdict, noise.NOISY, "the hypervisor")
    equal(noise.judge([second(stolen=noise.STOLEN_MAX - 0.01)] * 3).verdict, noise.QUIET, "the hypervisor, a little")


def test_unseen_processes_are_noise():
    equal(noise.judge([second(unseen=0.2)] * 3).verdict, noise.NOISY, "user time that belongs to no process that is seen")
    # an account of time that is inexact goes both ways
    equal(noise.judge([second(unseen=0.2), second(unseen=-0.2)] * 5).figures["others"], 0.0, "others")


def test_bursts_are_noise():
    burst = second(others=noise.BURST + 0.05)
    equal(noise.judge([burst] + [second()] * 9).verdict, noise.QUIET, "one second of ten")
    verdict = noise.judge([burst] * 2 + [second()] * 8)
    equal(verdict.verdict, noise.NOISY, "two of ten")
    check("in 20% of the seconds, more than 10%, others had more than 25% of the CPUs" in verdict.text, verdict.text)
    # a longer look counts for as long as it took
    equal(noise.judge([burst._replace(seconds=3.0)] + [second()] * 9).verdict, noise.NOISY, "three seconds in one look")


def test_unwatched_runs_are_no_quiet_ones():
    equal(noise.judge([]).verdict, noise.UNKNOWN, "of a run that nobody has watched")


# --- results --------------------------------------------------------------------------------------


def test_results_are_compact_and_the_same():
    results = {"samples": {"ms": [[1, 2.5]] * 300, "other": list(range(300))}, "findings": [{"remark": "so", "rows": [["a", None], ["b", 0.1]]}],
               "empty": {}, "figure": 0.12345678901}
    text = report.as_json(results)
    equal(json.loads(text), dict(results, figure=0.1234568), "what was written")
    check(max(len(line) for line in text.splitlines()) > 1000 and len(text.splitlines()) < 20, "samples aren't on one line:\n" + text[:500])
    equal(report.as_json(json.loads(text)), text, "what is written of what was read")


def test_keys_are_unique():
    bench = Report("some", "title", True)
    for put in (lambda: bench.value("gain", 1), lambda: bench.plot("cdf", "title", {}, key="gain")):
        put()
        try:
            put()
        except ValueError as error:
            check('"gain"' in str(error), str(error))
        else:
            check(False, "a key was taken twice")


def test_samples_of_runs():
    counts = [Report("some", "a title", quick, sample).count(30000, 200) for quick, sample in ((False, 1.0), (False, 0.25), (False, 1e-9), (True, 0.25))]
    equal(counts, [30000, 7500, 1, 200], "a full run, samples, and a quick one")


def test_how_long_runs_take():
    equal(report.expected_seconds(["8 minutes", "25 minutes"]), 33 * 60, "both")
    equal(report.expected_seconds(["8 minutes", "25 minutes"], sample=0.1), 198, "a sample")
    equal(report.expected_seconds(["8 minutes", "25 minutes"], quick=True), 120, "quick ones")
    equal([report.duration(seconds) for seconds in (40, 180, 119 * 60, 220 * 60)], ["40 s", "3 min", "119 min", "3 h 40 min"], "as people say it")


def test_progress_without_a_terminal():
    stream = io.StringIO()
    progress = report._Progress(10, stream)  # pylint: disable=protected-access
    progress.begin("first")
    equal(stream.getvalue(), "", "what is said at once")
    progress.end(4)
    progress._start -= 60  # pylint: disable=protected-access
    progress._said -= 60  # pylint: disable=protected-access
    progress.begin("second")
    equal(stream.getvalue(), "   40%, 60 s gone, 90 s left: second\n", "what is said after a minute")


def test_over_yields_all():
    bench = Report("some", "title", True)
    found = [(outer, inner) for outer in bench.over("ab", weight=lambda item: 1 + (item == "b")) for inner in bench.over([1, 2], label=str)]
    equal(found, [("a", 1), ("a", 2), ("b", 1), ("b", 2)], "items of two loops")
    equal(list(bench.over([])), [], "no items")


class Recorded(list):
    """In the place of progress: what it is told."""

    def __getattr__(self, name):
        return lambda *arguments: self.append((name, *arguments))


def test_over_tells_progress():
    told, before = Recorded(), report._Progress  # pylint: disable=protected-access
    report._Progress = lambda total: told.append(total) or told  # pylint: disable=protected-access
    try:
        bench = Report("some", "title", True)
        for number in bench.over([1, 3], label="case {}".format, weight=lambda number: 10 * number):
            if number == 3:
                break
    finally:
        report._Progress = before  # pylint: disable=protected-access
    equal(told, [40, ("begin", "case 1"), ("end", 10), ("begin", "case 3"), ("close",)], "what progress is told of a loop that ends early")


# --- colours --------------------------------------------------------------------------------------


def test_systems_keep_their_colours():
    for name, expected in (("SOCKS5", "SOCKS5"), ("SOCKS5, password", "SOCKS5, password"), ("SOCKS5, password: KT and Tessares", "SOCKS5, password"),
                           ("SOCKS5 (microsocks)", "SOCKS5"), ("libconvert, early data (60 ms)", "libconvert, early data"), ("SOCKS5x", None),
                           ("haproxy-splice", "haproxy-splice"), ("nothing known", None)):
        equal(palette.system(name), expected, name)
    styles = palette.styles(["direct TCP", "libconvert", "libconvert (2 flows)", "something"])
    equal(styles["libconvert"]["color"], styles["libconvert (2 flows)"]["color"], "colours of one system")
    check(styles["libconvert"]["line"] != styles["libconvert (2 flows)"]["line"], "two lines of one system can't be told apart")
    equal(len({style["color"] for style in styles.values()}), 3, "colours of three systems")


def test_ours_have_a_colour_of_their_own():
    ours = {palette.SYSTEMS[name][0] for name in palette.SYSTEMS if palette.is_ours(name)}
    others = {palette.SYSTEMS[name][0] for name in palette.SYSTEMS if not palette.is_ours(name)} | {style[0] for style in palette.REST}
    equal(len(ours), 2, "colours")
    equal(ours & others, set(), "colours that others have as well")


if __name__ == "__main__":
    main()
