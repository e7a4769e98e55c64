# SPDX-License-Identifier: BSD-3-Clause
"""failover - one network loses all packets during a transfer

A download, and an upload, over wifi (50 Mbit/s, 10 ms) and lte (30 Mbit/s, 25 ms) through libconvert and convertd. One of the two
networks drops all packets in both directions, without telling the hosts, and later recovers. We measure plain TCP
over wifi alone as well. The gap is the longest time without a byte.
"""
import json
import subprocess
import time

from benchlib import median
from benchlib.field import LOAD
from benchlib.proxies import SERVER_PORT, convertd_options
from convertlab import Lab, LabError, Link

WIFI = Link(delay_ms=10, rate_mbit=50, queue=200)
LTE = Link(delay_ms=25, rate_mbit=30, queue=200)
INTERVAL_MS = 20
DOWN_AT, UP_AT, END_AT = 3, 7, 10           # seconds
QUICK = 0.3                                 # of these times
ROUNDS, ROUNDS_QUICK = 3, 1
ENDLESS = "1000T"
CASES = {
    "libconvert, wifi falls silent": ("wifi", True, "--response"),
    "libconvert, lte falls silent": ("lte", True, "--response"),
    "libconvert, wifi, upload": ("wifi", True, "--request"),
    "libconvert, lte, upload": ("lte", True, "--request"),
    "plain TCP over wifi, which falls silent": ("wifi", False, "--response"),
}


def _transfer(bench, lab, case):
    """(bytes of each interval, when the link went down and up, in intervals)"""
    name, through_shim, direction = case
    times = [at * (QUICK if bench.quick else 1) for at in (DOWN_AT, UP_AT, END_AT)]
    command = [lab.build.program(LOAD), "run", "--to", "%s:%d" % (lab.server.addr4, SERVER_PORT), direction, ENDLESS,
               "--seconds", times[2], "--timeline", INTERVAL_MS]
    link = getattr(lab, name)
    start = time.monotonic()
    process = lab.client.popen(command, env=lab.converted() if through_shim else None, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    with process:
        time.sleep(max(0, start + times[0] - time.monotonic()))
        down = time.monotonic()
        link.down()
        time.sleep(max(0, start + times[1] - time.monotonic()))
        link.up()
        up = time.monotonic()
        said, complaint = process.communicate(timeout=30)
    if not said:
        raise LabError("%s: %s" % (" ".join(map(str, command)), complaint.decode()))
    found = json.loads(said)
    count = int(times[2] * 1000 / INTERVAL_MS)
    timeline = (found["timeline"] + [0] * count)[:count]
    return timeline, [(at - found["start"]) * 1000 / INTERVAL_MS for at in (down, up)]


def _longest_gap(timeline, first, last):
    """The longest run of empty intervals between two places, in ms."""
    longest = current = 0
    for size in timeline[int(first):int(last)]:
        current = 0 if size else current + 1
        longest = max(longest, current)
    return longest * INTERVAL_MS


def _mbit(timeline, first, last):
    part = timeline[int(first):int(last)]
    return sum(part) * 8e-6 / (len(part) * INTERVAL_MS / 1000) if part else 0


def _smooth(timeline, width=5):
    return [[round(i * INTERVAL_MS / 1000, 3), round(_mbit(timeline, max(0, i - width), i + width), 2)]
            for i in range(0, len(timeline), width)]


def run(bench):
    """The experiment."""
    rows, series = [], {}
    for title, case in CASES.items():
        gaps, rates = [], []
        for number in range(ROUNDS_QUICK if bench.quick else ROUNDS):
            bench.progress("%s: round %d" % (title, number + 1))
            # a lab each: a subflow that was given up is not opened again
            with Lab(wifi=WIFI, lte=LTE, core=Link(delay_ms=1)) as lab:
                lab.convertd(convertd_options(lab.build))
                lab.start_listening(lab.server, [lab.build.program(LOAD), "serve", SERVER_PORT], SERVER_PORT)
                timeline, (down, up) = _transfer(bench, lab, case)
            gaps.append(_longest_gap(timeline, down, len(timeline)))
            middle = (down + up) / 2
            rates.append([_mbit(timeline, down / 2, down), _mbit(timeline, middle, up), _mbit(timeline, (up + len(timeline)) / 2,
                                                                                          len(timeline))])
            bench.samples(title, [[gaps[-1], rates[-1], timeline]])
        rows.append([title, "%.0f" % median(gaps), "%.0f" % max(gaps)] + ["%.1f" % median(column) for column in zip(*rates)])
        series[title] = _smooth(timeline)
    bench.table("Silent from %d to %d s of %d; %d runs each" % (DOWN_AT, UP_AT, END_AT, len(gaps)),
                ["", "longest gap ms", "at most", "Mbit/s before", "meanwhile", "afterwards"], rows)
    bench.plot("lines", "One network is silent from %d to %d s (one run each)" % (DOWN_AT, UP_AT),
               {title: pairs for title, pairs in series.items() if "upload" not in title}, xlabel="s", ylabel="Mbit/s")
