# SPDX-License-Identifier: BSD-3-Clause
"""aggregation - goodput over two networks at once, by how different they are

After Cordero (Multi-path TCP performance evaluation in dual-homed devices): wifi has 50 Mbit/s and 10 ms, lte 25 ms and ever less
bandwidth. The benefit is his, after Kaspar: 0 is the better network alone, 1 the sum of both, less than 0 worse than the better
one. libconvert is measured with the shim in the client and convertd in front of a plain TCP server; "plain MPTCP" talks to an
MPTCP server in the converter's place, over the same links: what Multipath TCP itself gives.
"""
import json

from benchlib import median
from benchlib.field import LOAD
from benchlib.proxies import SERVER_PORT, convertd_options
from convertlab import Lab, Link

WIFI_MBIT, WIFI_MS, LTE_MS = 50, 10, 25
QUEUE = 200  # packets: about two bandwidth-delay products of wifi
# lte's Mbit/s, congestion control
CASES = ((50, "reno"), (30, "reno"), (10, "reno"), (5, "reno"), (30, "bbr"))
ROUNDS, ROUNDS_QUICK = 3, 1
SECONDS, SECONDS_QUICK = 3.5, 0.5
WARMUP, WARMUP_QUICK = 1, 0.2
ENDLESS = "1000T"
DIRECTIONS = {"download": "--response", "upload": "--request"}


def _mbit(bench, lab, direction, host, *options, env=None):
    times = ["--seconds", SECONDS_QUICK if bench.quick else SECONDS, "--warmup", WARMUP_QUICK if bench.quick else WARMUP]
    command = [lab.build.program(LOAD), "run", "--to", "%s:%d" % (host.addr4, SERVER_PORT), DIRECTIONS[direction], ENDLESS,
               *times, *options]
    found = json.loads(lab.client.run(command, env=env).stdout)
    return found["bytes"] * 8e-6 / found["seconds"]


def _ways(bench, lab):
    """How the client reaches a server: a function of the direction for each name."""
    return {
        "wifi": lambda way: _mbit(bench, lab, way, lab.server, "--from", lab.client.wifi4),
        "lte": lambda way: _mbit(bench, lab, way, lab.server, "--from", lab.client.lte4),
        "libconvert": lambda way: _mbit(bench, lab, way, lab.server, env=lab.converted()),
        "plain MPTCP": lambda way: _mbit(bench, lab, way, lab.converter, "--mptcp"),
    }


def _benefit(goodput, alone):
    best = max(alone)
    return (goodput - best) / (sum(alone) - best if goodput >= best else best)


def _measure_case(bench, lte_mbit, congestion):
    """{direction: {way: median Mbit/s}}"""
    found = {direction: {} for direction in DIRECTIONS}
    with Lab(wifi=Link(delay_ms=WIFI_MS, rate_mbit=WIFI_MBIT, queue=QUEUE),
             lte=Link(delay_ms=LTE_MS, rate_mbit=lte_mbit, queue=QUEUE), core=Link(delay_ms=1), congestion=congestion) as lab:
        lab.convertd(convertd_options(lab.build))
        load = lab.build.program(LOAD)
        lab.start_listening(lab.server, [load, "serve", SERVER_PORT], SERVER_PORT)
        lab.start_listening(lab.converter, [load, "serve", "--mptcp", SERVER_PORT], SERVER_PORT)
        for number in range(ROUNDS_QUICK if bench.quick else ROUNDS):
            bench.progress("%d + %d Mbit/s, %s: round %d" % (WIFI_MBIT, lte_mbit, congestion, number + 1))
            for name, measure in _ways(bench, lab).items():
                for direction in DIRECTIONS:
                    found[direction].setdefault(name, []).append(measure(direction))
    return found


def run(bench):
    """The experiment."""
    series = {"libconvert": {}, "plain MPTCP": {}}
    rows = {direction: [] for direction in DIRECTIONS}
    for lte_mbit, congestion in CASES:
        case = "%d + %d, %s" % (WIFI_MBIT, lte_mbit, congestion)
        for direction, samples in _measure_case(bench, lte_mbit, congestion).items():
            bench.samples("%s, %s" % (case, direction), sorted(samples.items()))
            found = {name: median(values) for name, values in samples.items()}
            alone = [found["wifi"], found["lte"]]
            benefits = {name: _benefit(found[name], alone) for name in series}
            rows[direction].append([case] + ["%.1f" % value for value in found.values()] + [
                "%.2f" % benefits["libconvert"], "%.2f" % benefits["plain MPTCP"],
                "%.2f" % (found["libconvert"] / found["plain MPTCP"])])
            if direction == "download":
                for name, value in benefits.items():
                    series[name][case] = value
    for direction, lines in rows.items():
        bench.table("%s in Mbit/s, each network alone by plain TCP, and both" % direction.capitalize(),
                    ["wifi + lte"] + list(found) + ["benefit, libconvert", "benefit, plain MPTCP",
                                                    "libconvert of plain MPTCP"], lines)
    bench.plot("bars", "Benefit of the second network for a download (0: none, 1: the sum of both)",
               {name: list(values.values()) for name, values in series.items()}, categories=list(series["libconvert"]))
