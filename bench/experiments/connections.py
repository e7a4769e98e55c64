# SPDX-License-Identifier: BSD-3-Clause
"""connections - how long new connections take through convertd and its peers, and how many there are a second

Each connection carries one small request and its response, then the server closes. So many are under way at a time. Latency is
from connect() to the last byte of the response. CPU time is the proxy's own for one connection; "all CPU" is that of the
whole machine: the client, the server, interrupts, and whatever else ran. "of direct" is the median of the ratios within
each round.

Early data saves the client a wait and a packet: then convertd is sent the request and where it is to go at once, which is what a
proxy with a fixed target gets. "convertd" is asked as libconvert.so asks it, silently: the SYN+ACK says that the server was reached
(doc/private-tlvs.md). With "response" it is asked as RFC 8803 has it. "hold-syn off" is asked so, too, and withholds no SYN: the row
above it says what withholding costs. CPU time isn't all of it: a withheld SYN's handshake is charged to convertd, since it goes on when
convertd says so; without withholding, and for all other proxies, it is charged to the client, who sends the SYN. Withholding
gains a round trip (zero_rtt).

Clients speak TCP to the proxy first, and MPTCP afterwards; proxies speak TCP to the server. haproxy and nginx are handed an MPTCP
listener; "direct" is MPTCP all the way then. A part of what MPTCP costs is done in workers of the kernel and is charged to no process: see
all CPU.
"""
from benchlib import median
from benchlib.field import Field
from benchlib.proxies import ALL, Convertd, ConvertdEarly, ConvertdOff, ConvertdResponse, Direct, Haproxy, HaproxySplice, Nginx, Socat

DURATION = "7 minutes"
NEEDS = ("bench-peers",)

REQUEST, RESPONSE = 100, 1000
ROUNDS, ROUNDS_QUICK = 6, 1
SECONDS, SECONDS_QUICK = 1.5, 0.3
WARMUP, WARMUP_QUICK = 0.3, 0.1
AT_A_TIME = (1, 64)
PROXIES = (Direct, Convertd, ConvertdResponse, ConvertdOff) + tuple(
    proxy for proxy in ALL if proxy not in (Direct, Convertd, HaproxySplice))  # splicing is for bulk
PROXIES_MPTCP = (Direct, Convertd, ConvertdResponse, ConvertdOff, ConvertdEarly, Haproxy, Nginx, Socat)


def _measure_case(bench, lab, proxies, at_a_time):
    found = {name: [] for name in proxies}
    for number in range(ROUNDS_QUICK if bench.quick else ROUNDS):
        bench.progress("%d at a time: round %d" % (at_a_time, number + 1))
        for name, proxy in proxies.items():
            found[name].append(lab.load(
                proxy, "--concurrency", at_a_time, "--request", REQUEST, "--response", RESPONSE,
                "--seconds", SECONDS_QUICK if bench.quick else SECONDS, "--warmup", WARMUP_QUICK if bench.quick else WARMUP))
    return found


def _table_case(bench, at_a_time, found):
    rows, shares = [], {}
    for name, results in found.items():
        rate = median([result.rate for result in results])
        shares[name] = median([result.rate / direct.rate for result, direct in zip(results, found[Direct.name])])
        latency = ["%.2f" % (median([r["latency"].get(q, 0) for r in results]) / 1000) for q in ("p50", "p99")]
        own = None if name == Direct.name else "%.0f" % median([result.cpu_us_per_connection() for result in results])
        rows.append([name, "%.0f" % rate, "%.0f-%.0f" % (min(r.rate for r in results), max(r.rate for r in results)),
                     "%.2f" % shares[name], *latency, own,
                     "%.0f" % median([result.cpu_us_per_connection("system_cpu") for result in results]),
                     sum(result["failed"] for result in results)])
        bench.samples("%d at a time: %s" % (at_a_time, name), [
            [r.rate, r["latency"].get("p50"), r["latency"].get("p99"), r.cpu_us_per_connection(), r["errors"]] for r in results])
    bench.table("%d at a time" % at_a_time, ["", "connections/s", "range", "of direct", "p50 ms", "p99 ms", "CPU µs each",
                                             "all CPU µs each", "failed"], rows)
    Field.remark_others(bench, sum(found.values(), []))
    return shares


def measure(bench, among=PROXIES, mptcp=False, at_a_time=AT_A_TIME):
    """The experiment, for these proxies."""
    series, cdf = {}, {}
    with Field() as lab, lab.running(bench, among, mptcp) as proxies:
        for number in at_a_time:
            found = _measure_case(bench, lab, proxies, number)
            for name, share in _table_case(bench, number, found).items():
                series.setdefault(name, []).append(share)
            cdf = {name: [us / 1000 for us in results[-1]["latency"].get("cdf", [0])] for name, results in found.items()}
    bench.setting("bytes of a request and its response", "%d and %d" % (REQUEST, RESPONSE))
    bench.setting("rounds", ROUNDS_QUICK if bench.quick else ROUNDS)
    bench.setting("seconds each", SECONDS_QUICK if bench.quick else SECONDS)
    series.pop(Direct.name)
    bench.plot("bars", "New connections a second, of direct", series, ylabel="share of direct",
               categories=["%d at a time" % number for number in at_a_time])
    bench.plot("cdf", "Latency, %d at a time" % at_a_time[-1], cdf, xlabel="ms", ylabel="share of requests", xlog=True)


def run(bench):
    """The experiment."""
    with bench.section("TCP to the proxy"):
        measure(bench)
    with bench.section("MPTCP to the proxy"):
        measure(bench, PROXIES_MPTCP, mptcp=True)
