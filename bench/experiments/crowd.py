# SPDX-License-Identifier: BSD-3-Clause
"""crowd - 4,000 clients at once, 20 connections each, TCP and MPTCP

What Hou et al. (Performance Analysis of MPTCP Under High Load Based on SDN Environment) did with a web application: the load is
far above what is served at a time. All have to come through without an error; how long they wait tells who is fair.
"""
from benchlib.field import Field
from benchlib.proxies import Convertd, Dante, Direct, Haproxy, Microsocks, Nginx, Shadowsocks

CLIENTS, CLIENTS_QUICK = 4000, 400
EACH, EACH_QUICK = 20, 2
REQUEST, RESPONSE = 100, 1000
PROXIES = (Direct, Convertd, Haproxy, Nginx, Microsocks, Dante, Shadowsocks)


def _measure(bench, mptcp):
    clients = CLIENTS_QUICK if bench.quick else CLIENTS
    each = EACH_QUICK if bench.quick else EACH
    rows, rates, results = [], {}, []
    with Field() as lab, lab.running(bench, PROXIES, mptcp) as proxies:
        base = None
        for name, proxy in proxies.items():
            bench.progress("%s, %s" % (name, "MPTCP" if mptcp else "TCP"))
            result = lab.load(proxy, "--concurrency", clients, "--connections", clients * each, "--request", REQUEST,
                              "--response", RESPONSE, timeout=200)
            results.append(result)
            base = base or result.rate
            rates[name] = result.rate
            latency = result["latency"]
            rows.append([name, "%.0f" % result.rate, "%.2f" % (result.rate / base), latency.get("p50", 0) // 1000,
                         latency.get("p99", 0) // 1000, latency.get("max", 0) // 1000, result["failed"], result["unfinished"],
                         None if name == Direct.name else "%.0f" % result.cpu_us_per_connection()])
            bench.samples("%s: %s" % ("MPTCP" if mptcp else "TCP", name),
                          [[result.rate, result["failed"], result["errors"], latency.get("cdf")]])
    bench.table("%d clients, %d connections each, %s to the proxy" % (clients, each, "MPTCP" if mptcp else "TCP"),
                ["", "connections/s", "of direct", "p50 ms", "p99 ms", "longest ms", "failed", "hung", "CPU µs each"], rows)
    Field.remark_others(bench, results)
    return rates


def run(bench):
    """The experiment."""
    series = {"TCP": _measure(bench, False), "MPTCP": _measure(bench, True)}
    names = list(series["TCP"])
    bench.plot("bars", "A crowd: connections a second", categories=names, ylabel="connections/s",
               series={word: [rates.get(name) for name in names] for word, rates in series.items()})
