# SPDX-License-Identifier: BSD-3-Clause
"""goodput - bulk transfers through convertd and its peers, by direction, congestion control and number of streams

Client, proxy and server are on veth pairs without a limit, so CPUs are the limit. One transfer follows the other, through each
proxy in turn, in several rounds. CPU seconds are the proxy's own (user and system); "all CPU" is the whole machine's: both
ends, interrupts and all other programs. "of direct" is the median of the ratios within each round, so a disturbance of a whole
round isn't attributed to one proxy.

Clients speak TCP to the proxy first, and MPTCP afterwards; proxies speak TCP to the server. haproxy and nginx inherit an MPTCP
listener; "direct" is then MPTCP all the way. Over veth pairs without a limit Linux 6.18 with BBR is noisy with MPTCP: each
retransmission costs about 0.2 s.
"""
from benchlib import median
from benchlib.field import Field
from benchlib.proxies import ALL, Convertd, ConvertdEarly, Direct, Haproxy, HaproxySplice, Nginx, Socat

DURATION = "9 minutes"
NEEDS = ("bench-peers",)

ENDLESS = "1000T"
ROUNDS, ROUNDS_QUICK = 5, 1
SECONDS, SECONDS_QUICK = 1, 0.3
WARMUP, WARMUP_QUICK = 0.3, 0.1
PROXIES = tuple(proxy for proxy in ALL if proxy is not ConvertdEarly)  # a transfer begins but once
PROXIES_MPTCP = (Direct, Convertd, Haproxy, HaproxySplice, Nginx, Socat)
# what is measured: congestion control, direction, streams
CASES = (("reno", "down", 1), ("reno", "down", 16), ("reno", "up", 1), ("bbr", "down", 1), ("bbr", "down", 16))


def _options(bench, direction, streams):
    sizes = {"down": ["--response", ENDLESS], "up": ["--request", ENDLESS]}
    return [*sizes[direction], "--concurrency", streams, "--seconds", SECONDS_QUICK if bench.quick else SECONDS,
            "--warmup", WARMUP_QUICK if bench.quick else WARMUP]


def _usable(lab, congestion):
    return congestion in lab.client.sysctl("net.ipv4.tcp_available_congestion_control").split()


def measure_case(bench, lab, proxies, case):
    """{name: [Result, …]} of one of the cases."""
    congestion, direction, streams = case
    found = {name: [] for name in proxies}
    for number in range(ROUNDS_QUICK if bench.quick else ROUNDS):
        bench.progress("%s, %s, %d streams: round %d" % (congestion, direction, streams, number + 1))
        for name, proxy in proxies.items():
            result = lab.load(proxy, *_options(bench, direction, streams))
            found[name].append(result)
            if result["errors"]:
                bench.remark("%s (%s): %s" % (name, ", ".join(map(str, case)), result["errors"]))
    return found


def table_case(bench, case, found):
    """One table: the medians, as ratios to direct. Returns {name: share of direct}."""
    congestion, direction, streams = case
    rows, figures = [], {}
    for name, results in found.items():
        goodput = median([result.gbit for result in results])
        # MPTCP over links without a limit may stall for a whole round
        ratios = [result.gbit / direct.gbit for result, direct in zip(results, found[Direct.name]) if direct.gbit]
        share = median(ratios) if ratios else 0
        own = None if name == Direct.name else median([result.cpu_per_gb() or 0 for result in results])
        figures[name] = share
        rows.append([name, "%.1f" % goodput, "%.1f-%.1f" % (min(r.gbit for r in results), max(r.gbit for r in results)),
                     "%.2f" % share, own and "%.2f" % own, "%.2f" % median([r.cpu_per_gb("system_cpu") or 0 for r in results])])
        bench.samples("%s %s %d: %s" % (congestion, direction, streams, name),
                      [[result.gbit, result.cpu_per_gb(), result.cpu_per_gb("system_cpu")] for result in results])
    bench.table("%s, %sload, %d stream%s" % (congestion, direction, streams, "s" if streams > 1 else ""),
                ["", "Gbit/s", "range", "of direct", "CPU s/GB", "all CPU s/GB"], rows)
    Field.remark_others(bench, sum(found.values(), []))
    return figures


def measure(bench, among=PROXIES, mptcp=False, cases=CASES, rate_mbit=None, title="Goodput through a proxy, of direct"):
    """The experiment, for these proxies and cases."""
    series, found = {}, {}
    for congestion in dict.fromkeys(case[0] for case in cases):
        with Field(rate_mbit=rate_mbit) as lab:
            if not _usable(lab, congestion):
                continue
            # before the proxies: connections of MPTCP listeners have what these began with
            lab.congestion(congestion)
            with lab.running(bench, among, mptcp) as proxies:
                for case in (case for case in cases if case[0] == congestion):
                    found[case] = table_case(bench, case, measure_case(bench, lab, proxies, case))
    for figures in found.values():
        for name, share in figures.items():
            series.setdefault(name, []).append(share)
    bench.setting("rounds", ROUNDS_QUICK if bench.quick else ROUNDS)
    bench.setting("seconds each", SECONDS_QUICK if bench.quick else SECONDS)
    series.pop(Direct.name)
    bench.plot("bars", title, series, categories=["%s %s %d" % case for case in found], ylabel="share of direct")


def run(bench):
    """The experiment."""
    with bench.section("TCP to the proxy"):
        measure(bench)
    with bench.section("MPTCP to the proxy"):
        measure(bench, PROXIES_MPTCP, mptcp=True)
