# SPDX-License-Identifier: BSD-3-Clause
"""connections - how long new connections take through convertd and its peers, and how many there are a second

Each connection carries one small request and its response, then the server closes it. A fixed number is under way at a time. Latency runs
from connect() to the last byte of the response. CPU time is the proxy's own for one connection; "all CPU" is the
whole machine's: client, server, interrupts and all other programs. "of direct" is the median of the ratios within
each round.

Early data saves the client a wait and a packet: convertd gets the request together with the destination, as a proxy with a fixed target
does. The client asks "convertd" silently, as libconvert.so does: the SYN+ACK says that the server was reached (doc/private-tlvs.md). With
"response" it asks as RFC 8803 describes. "hold-syn off" is asked likewise, and withholds no SYN: compare it with the row above for the
cost of withholding. CPU time doesn't show all of that cost. The kernel charges a withheld SYN's handshake to convertd, whose verdict
continues it. Without withholding, and for all other proxies, it charges the client, which sends the SYN. Withholding saves a round trip
(zero_rtt).

Clients speak TCP to the proxy first, and MPTCP afterwards; proxies speak TCP to the server. haproxy and nginx inherit an MPTCP
listener; "direct" is then MPTCP all the way. Kernel workers do a part of MPTCP's work, which no process is charged with: see
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
