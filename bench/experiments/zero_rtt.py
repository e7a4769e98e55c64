# SPDX-License-Identifier: BSD-3-Clause
"""zero_rtt - withholding SYNs: round trips that it saves, what it costs, and how it behaves under loss and load

Round trips: a program connects to a server that accepts, to a closed port, and to an unreachable host, then sends a request. We give
ratios to direct TCP over the same links, for several pairs of round trips (client to converter + converter to server), by a
blocking program and by one with epoll. The client of RFC 8803 in tools/connects.py takes the SYN+ACK for the confirmation where
it may; libconvert.so uses its own rules.

Loss: many connections over a first leg that loses packets; none may fail or stall. Then connections a second, and many SYNs
withheld at once towards a server that never answers.
"""
import json
import os
import sys
import time

from benchlib import median
from benchlib.field import LOAD, Field
from benchlib.proxies import SERVER_PORT, Convertd, Direct, convertd_options
from convertlab import Lab, Link, Veth, wait_until
from convertlab.build import SRCDIR
from convertlab.peers import Client, Forger, Server, connect, descriptors, extended_header, memory

PAIRS = (50, 5), (20, 40), (5, 100), (100, 1)  # ms of round trip
ROUNDS, ROUNDS_QUICK = 3, 1
EACH, EACH_QUICK = 4, 1  # of one process; one more goes before
LOSSES = 0, 0.01, 0.05
CONNECTIONS, CONNECTIONS_QUICK = 10000, 100
RATE_ROUNDS, RATE_ROUNDS_QUICK = 6, 1
SECONDS, SECONDS_QUICK = 1.5, 0.3
AT_A_TIME = 64
WITHHELD, WITHHELD_QUICK = 10000, 500
ON, OFF = "withheld", "not withheld"
OFF_PORT = 1235


class ConvertdOff(Convertd):
    """The same, without withholding."""

    name = "convertd, not withheld"
    port = OFF_PORT

    def version(self):
        return ""

    def start(self):
        process = self.lab.convertd([*convertd_options(self.lab.build), *off_options()], port=OFF_PORT)
        self.roots.append(process.pid)
        return self

    def arguments(self):
        return self.to(self.lab.converter.addr4, OFF_PORT) + ["--via", "convert-syn", "--server", self._target]


def off_options():
    """Starts a second convertd, which withholds no SYNs."""
    return ["--hold-syn", "off", "--listen", "[::]:%d" % OFF_PORT]


# --- round trips ---------------------------------------------------------------------------------------------


def _connects(lab, how, count, target, way):
    """[(what was said, ms, ms until the first byte or None), …]"""
    converter, env = way
    words = [sys.executable, os.path.join(SRCDIR, "bench", "tools", "connects.py"), how, count, *target, *converter]
    return json.loads(lab.client.run(words, env=env, timeout=120).stdout)


def _ways(lab):
    """(the tool's words for a converter, environment) by name."""
    on, off = ("%s:%d" % (lab.converter.addr4, port) for port in (1234, OFF_PORT))
    return {"direct": ([], None), "client, " + ON: ([on, "withholds"], None), "client, " + OFF: ([off], None),
            "libconvert, " + ON: ([], lab.shim_env(CONVERT_ADDR=on)),
            "libconvert, " + OFF: ([], lab.shim_env(CONVERT_ADDR=off))}


def _measure_pair(bench, pair, found):
    first, second = pair
    with Lab(wifi=Link(delay_ms=first / 2), lte=None, core=Link(delay_ms=second / 2)) as lab:
        for host in lab.hosts.values():
            host.sysctl("net.ipv4.tcp_no_metrics_save", 1)
        lab.http()
        lab.convertd(convertd_options(lab.build))
        lab.convertd([*convertd_options(lab.build), *off_options()], port=OFF_PORT)
        targets = {"connected": (lab.server.addr4, 80), "ECONNREFUSED": (lab.server.addr4, lab.addresses.refused_port),
                   # over IPv4 the kernel says so to one peer once a second, which can't be changed in a namespace
                   "ENETUNREACH": (lab.addresses.unreachable6, 80)}
        each = EACH_QUICK if bench.quick else EACH
        for number in range(ROUNDS_QUICK if bench.quick else ROUNDS):
            bench.progress("%d + %d ms: round %d" % (*pair, number + 1))
            for how in ("blocking", "epoll"):
                for outcome, target in targets.items():
                    for name, way in _ways(lab).items():
                        # the first one of a process finds cold caches, and libconvert.so may learn from it
                        for said, connected, byte in _connects(lab, how, each + 1, target, way)[1:]:
                            found.setdefault((pair, how, outcome, name), []).append(
                                (connected if said == outcome else None, byte))


def _ratios(found, pair, outcome, name, how):
    """(of direct: connect(), of direct: the first byte), each None where there is none."""
    mine, direct = (found[pair, how, outcome, who] for who in (name, "direct"))
    columns = []
    for column in (0, 1):
        values = [[sample[column] for sample in samples if sample[column] is not None] for samples in (mine, direct)]
        columns.append(median(values[0]) / median(values[1]) if all(values) else None)
    return columns


def _table_trips(bench, found):
    rows, plots = [], {}
    for (pair, how, outcome, name), samples in found.items():
        bench.samples("ms: %d + %d, %s, %s, %s" % (*pair, how, outcome, name), samples)
        if name == "direct" or how == "epoll":
            continue
        ratios = [_ratios(found, pair, outcome, name, how) for how in ("blocking", "epoll")]
        wrong = sum(sample[0] is None for how in ("blocking", "epoll") for sample in found[pair, how, outcome, name])
        rows.append(["%d + %d" % pair, outcome, name,
                     *[ratio and "%.3f" % ratio for column in zip(*ratios) for ratio in column], wrong])
        plots.setdefault(outcome, {}).setdefault(name, []).append(ratios[1][0])
    bench.table("Of direct TCP, medians: connect(), and the first byte of the answer", [
        "ms", "outcome", "way", "connect, blocking", "connect, epoll", "first byte, blocking", "first byte, epoll",
        "another outcome"], rows)
    for outcome, series in plots.items():
        bench.plot("bars", "connect(), of direct: %s (epoll)" % outcome, series, ylabel="share of direct",
                   categories=["%d + %d ms" % pair for pair in PAIRS])


# --- loss ----------------------------------------------------------------------------------------------------


def _measure_loss(bench):
    rows, cdf = [], {}
    count = CONNECTIONS_QUICK if bench.quick else CONNECTIONS
    for loss in LOSSES:
        bench.progress("%d%% of loss" % (loss * 100))
        with Lab(wifi=Link(delay_ms=5, loss=loss), lte=None, core=Link(delay_ms=5)) as lab:
            program = lab.build.program(LOAD)
            lab.start_listening(lab.server, [program, "serve", SERVER_PORT], SERVER_PORT)
            lab.convertd(convertd_options(lab.build))
            lab.client.sysctl("net.mptcp.blackhole_timeout", 0)
            said = lab.client.run([program, "run", "--to", "%s:1234" % lab.converter.addr4, "--via", "convert-syn", "--server",
                                   "%s:%d" % (lab.server.addr4, SERVER_PORT), "--mptcp", "--connections", count,
                                   "--concurrency", 200, "--request", 100, "--response", 1000], timeout=280, check=False)
            found = json.loads(said.stdout)
        latency = found["latency"]
        rows.append(["%d%%" % (loss * 100), found["connections"], found["failed"], found["unfinished"],
                     *["%.0f" % (latency[quantile] / 1000) for quantile in ("p50", "p99", "max")]])
        cdf["%d%% of loss" % (loss * 100)] = [us / 1000 for us in latency["cdf"]]
        bench.samples("loss of %d%%" % (loss * 100), [latency["cdf"]])
    bench.table("%d connections, 10 + 10 ms, of which the first leg loses packets" % count, [
        "loss", "connections", "failed", "unfinished", "p50 ms", "p99 ms", "longest ms"], rows)
    bench.plot("cdf", "Connection, request and response, 10 + 10 ms", cdf, xlabel="ms", ylabel="share", xlog=True)


# --- connections a second ------------------------------------------------------------------------------------


def _measure_rate(bench, mptcp):
    """Table of what withholding costs where nothing is far."""
    with Field() as lab:
        proxies = [kind(lab, mptcp) for kind in (Direct, Convertd, ConvertdOff)]
        results = {proxy.name: [] for proxy in proxies}
        for proxy in proxies:
            proxy.start()
        for number in range(RATE_ROUNDS_QUICK if bench.quick else RATE_ROUNDS):
            bench.progress("connections a second%s: round %d" % (", MPTCP" if mptcp else "", number + 1))
            for proxy in proxies:
                results[proxy.name].append(lab.load(proxy, "--concurrency", AT_A_TIME, "--request", 100, "--response", 1000,
                                                    "--seconds", SECONDS_QUICK if bench.quick else SECONDS, "--warmup", 0.2))
        for proxy in proxies:
            proxy.stop()
    rows = []
    for name, found in results.items():
        shares = [mine.rate / off.rate for mine, off in zip(found, results[ConvertdOff.name])]
        rows.append([name, "%.0f" % median([result.rate for result in found]), "%.2f" % median(shares),
                     None if name == Direct.name else "%.0f" % median([result.cpu_us_per_connection() for result in found]),
                     "%.1f" % (median([result["latency"].get("p99", 0) for result in found]) / 1000),
                     sum(result["failed"] for result in found)])
        bench.samples("connections a second%s: %s" % (", MPTCP" if mptcp else "", name), [
            [result.rate, result.cpu_us_per_connection()] for result in found])
    bench.table("Connections a second, %d at a time, %s" % (AT_A_TIME, "MPTCP" if mptcp else "TCP"), [
        "", "connections/s", "of " + OFF, "CPU µs each", "p99 ms", "failed"], rows)
    Field.remark_others(bench, sum(results.values(), []))


# --- many at once --------------------------------------------------------------------------------------------


def _measure_many(bench):
    count = WITHHELD_QUICK if bench.quick else WITHHELD
    with Lab(wifi=Veth(), lte=None, core=Veth()) as lab, Server(lab, 80) as server, \
            Forger(lab.client, lab.converter.addr4) as forger:
        # a SYN that is withheld has one descriptor, of the two that a connection will have
        process = lab.convertd(["--hold-time", 2900, "--connect-timeout", 3, "--max-connections", count * 2, "--log-level", "error"])
        before, files, cpu, start = memory(process), descriptors(process), process.cpu_seconds(), time.monotonic()
        request = connect(lab.addresses.blackhole4, 80)
        for number in range(count):
            forger.syn("10.66.%d.%d" % (number // 250, number % 250 + 1), 1111, request)
        wait_until(lambda: descriptors(process) >= files + count, 2.5, "all SYNs to be withheld", interval=0.01)
        seconds, cpu, grown = time.monotonic() - start, process.cpu_seconds() - cpu, memory(process) - before
        others = []
        for _ in range(5):
            with Client(lab.client, lab.converter.addr4) as client:
                begin = time.monotonic()
                client.send(server.connect())
                extended_header(client.answer())
                others.append((time.monotonic() - begin) * 1000)
                server.accept().close()
    bench.table("SYNs withheld at once, towards a server that never answers", [
        "SYNs", "seconds until all are", "CPU µs each", "bytes each", "ms for another client meanwhile"],
                [[count, "%.2f" % seconds, "%.0f" % (cpu * 1e6 / count), "%.0f" % (grown / count), "%.1f" % median(others)]])


def run(bench):
    """The experiment."""
    found = {}
    for pair in PAIRS:
        _measure_pair(bench, pair, found)
    _table_trips(bench, found)
    _measure_loss(bench)
    for mptcp in (False, True):
        _measure_rate(bench, mptcp)
    _measure_many(bench)
    bench.setting("connections of each kind and pair of round trips", ROUNDS_QUICK * EACH_QUICK if bench.quick else ROUNDS * EACH)
