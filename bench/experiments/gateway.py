# SPDX-License-Identifier: BSD-3-Clause
"""gateway - stock hosts behind a router with two networks: convertgw beside plain routing, redsocks, ss-redir and hev-socks5-tproxy

Each way has its own LAN behind the same router, so one lab measures all in turn. "of routing" is the median of the
ratios to plain routing within each round. redsocks and hev-socks5-tproxy use microsocks in the converter's place, ss-redir
ss-server; with "MPTCP", mptcpize runs both ends, as OpenMPTCProuter does.

Links with delay show how long a host waits; the first connection of a way that has just started is listed apart. A port where
nothing listens shows which way says "connected" before the server has answered: connect() succeeds, and the host learns of the refusal
later, or sees only an end. Links with a rate show goodput. Over both networks it stands beside plain MPTCP from the router itself
to a server in the converter's place, the best possible case. New connections, bulk transfers and memory are
measured on veth pairs without a limit. CPU time is that of the gateway's processes on the router; "all CPU" is the whole
machine's: the proxy's at the converter's place, both ends, and the kernel's own work. Memory in the kernel is that of gateway and proxy
together. At the end all ways download at once while wifi falls silent.
"""
import errno
import json
import socket
import struct
import subprocess
import time

from benchlib import gateways, median, processes
from benchlib.field import Field
from benchlib.gateways import PlainMptcp, Routing, start_ways
from benchlib.proxies import SERVER_PORT, available
from convertlab import LabError, Link
from models.gaps import longest_gap
from models.operator import memory_each

DURATION = "8 minutes"
NEEDS = ("bench-peers", "poc5g")

ROUNDS, ROUNDS_QUICK = 5, 1
WAITS, WAITS_QUICK = 40, 6      # connections of each way in a round
SECONDS, SECONDS_QUICK = 1.5, 0.3
GOODPUT, GOODPUT_QUICK = 5, 1   # seconds on links with a rate
WARMUP, WARMUP_QUICK = 2, 0.7
HELD = 1000                     # idle connections
NEW = 64                        # new connections at a time
REQUEST, RESPONSE, ENDLESS = 100, 1000, "1000T"
SILENT_AT, WATCHED, WATCHED_QUICK = 2, 15, 5  # seconds
INTERVAL_MS = 20
PATIENCE = 20                   # seconds until a host gives up
CLOSED_PORT = 9

NEAR, FAR, CORE = Link(delay_ms=10), Link(delay_ms=15), Link(delay_ms=5)
WIFI, LTE = Link(delay_ms=10, rate_mbit=50, queue=200), Link(delay_ms=15, rate_mbit=30, queue=200)
BROAD_WIFI, BROAD_LTE = Link(delay_ms=10, rate_mbit=100, queue=400), Link(delay_ms=15, rate_mbit=100, queue=400)
HEAD = struct.Struct("!4sIQQ")  # of a request to the generator's server (tools/load/payload.h)


class Asked:
    """One connection of a stock host, with one small request: `error` of connect(), and times in ms since then."""

    def __init__(self, host, address, port):
        self.first = None
        with host.socket() as sock:
            sock.settimeout(PATIENCE)
            start = time.monotonic()
            self.error = sock.connect_ex((address, port))
            self.connected = (time.monotonic() - start) * 1000
            self.then = "" if self.error else self._exchange(sock)
            self.known = (time.monotonic() - start) * 1000
            if self.then == "a byte":
                self.first = self.known

    @staticmethod
    def _exchange(sock):
        """Asks; returns what comes."""
        try:
            sock.sendall(HEAD.pack(b"load", 1, REQUEST, RESPONSE) + bytes(HEAD.size + at & 0xff for at in range(REQUEST - HEAD.size)))
            return "a byte" if sock.recv(1) else "an end"
        except OSError as error:
            return errno.errorcode.get(error.errno, "nothing")


def _shares(found, base):
    """The median of the ratios within each round, of lists by the round."""
    return "%.3f" % median([own / other for own, other in zip(found, base)])


class Gateways:
    """The experiment's parts; `rounds` of each."""

    def __init__(self, bench):
        self.bench = bench
        self.kinds = available(bench, gateways.WAYS)
        self.rounds = ROUNDS_QUICK if bench.quick else ROUNDS
        self.names = [kind.name for kind in self.kinds]
        bench.setting("rounds", self.rounds)

    def _quick(self, full, quick):
        return quick if self.bench.quick else full

    def _by_name(self):
        return {name: [] for name in self.names}

    # --- waits, and a closed port -----------------------------------------------------------------

    def waits(self):
        """How long a host waits for a connection and for the first byte, and what it learns of a closed port."""
        cold, warm, closed = self._by_name(), self._by_name(), self._by_name()
        for number in range(self.rounds):
            self.bench.progress("waits: round %d" % (number + 1))
            with Field(wifi=NEAR, lte=FAR, core=CORE) as lab:
                ways = start_ways(lab, self.kinds)
                for name, way in ways.items():
                    cold[name].append(self._answered(way))
                    if number == 0 and way.version():
                        self.bench.version(name, way.version())
                found = self._by_name()
                for _ in range(self._quick(WAITS, WAITS_QUICK)):
                    for name, way in ways.items():
                        found[name].append(self._answered(way))
                for name, way in ways.items():
                    warm[name].append(found[name])
                    closed[name].append(Asked(way.host, lab.server.addr4, CLOSED_PORT))
        self._table_waits(cold, warm)
        self._table_closed(closed)

    @staticmethod
    def _answered(way):
        asked = Asked(way.host, way.lab.server.addr4, SERVER_PORT)
        if asked.first is None:
            raise LabError("%s: errno %d, then %s" % (way.name, asked.error, asked.then))
        return asked

    def _table_waits(self, cold, warm):
        rows, shares = [], {}
        medians = {name: [[median([getattr(asked, what) for asked in found]) for found in rounds] for what in ("connected", "first")]
                   for name, rounds in warm.items()}
        for name in self.names:
            connected, first = medians[name]
            of_routing = [_shares(own, other) for own, other in zip(medians[name], medians[Routing.name])]
            shares[name] = [float(share) for share in of_routing]
            rows.append([name, "%.1f" % median(connected), of_routing[0], "%.1f" % median(first), of_routing[1],
                         *("%.1f" % median([getattr(asked, what) for asked in cold[name]]) for what in ("connected", "first"))])
            self.bench.samples("waits: %s: connected ms, first byte ms" % name, [
                [asked.connected, asked.first] for found in warm[name] for asked in found])
        self.bench.table("A host waits, %d connections each" % sum(map(len, warm[Routing.name])), [
            "", "connected ms", "of routing", "first byte ms", "of routing", "the way's first one: connected ms", "first byte ms"],
            rows, key="waits")
        self.bench.plot("bars", "A host waits, of plain routing", shares, key="waits", ylabel="of routing",
                        categories=["until connected", "until the first byte"])

    def _table_closed(self, closed):
        rows = []
        for name, found in closed.items():
            asked = found[0]
            said = errno.errorcode.get(asked.error, str(asked.error)) if asked.error else "connected"
            rows.append([name, said, "%.1f" % median([each.connected for each in found]), asked.then or "-",
                         "%.1f" % median([each.known for each in found]), "no" if all(each.error for each in found) else "yes"])
            self.bench.samples("a closed port: %s: errno, ms, then, ms" % name, [
                [each.error, each.connected, each.then, each.known] for each in found])
        self.bench.table("A port where nothing listens", ["", "connect() says", "after ms", "then", "known after ms",
                                                          "\"connected\" before the server answered"], rows, key="closed")

    # --- goodput ------------------------------------------------------------------------------------

    def goodput(self):
        """Downloads on one network and on both."""
        options = ["--response", ENDLESS, "--seconds", self._quick(GOODPUT, GOODPUT_QUICK), "--warmup", self._quick(WARMUP, WARMUP_QUICK)]
        found = {}
        for networks, lte in ((1, None), (2, LTE)):
            with Field(wifi=WIFI, lte=lte, core=CORE) as lab:
                ways = start_ways(lab, self.kinds)
                ways[PlainMptcp.name] = PlainMptcp(lab).start()
                for number in range(self.rounds):
                    self.bench.progress("goodput, %d network%s: round %d" % (networks, "s" * (networks - 1), number + 1))
                    for name, way in ways.items():
                        found.setdefault(name, {}).setdefault(networks, []).append(lab.load(way, *options).gbit * 1000)
        rows = []
        for name, by_networks in found.items():
            rows.append([name, "%.1f" % median(by_networks[1]), _shares(by_networks[1], found[Routing.name][1]),
                         "%.1f" % median(by_networks[2]), _shares(by_networks[2], found[PlainMptcp.name][2])])
            for networks, rates in by_networks.items():
                self.bench.samples("goodput, %d networks: %s, Mbit/s" % (networks, name), rates)
        self.bench.table("A download, %d and %d Mbit/s" % (WIFI.rate_mbit, LTE.rate_mbit), [
            "", "one network: Mbit/s", "of routing", "both: Mbit/s", "of plain MPTCP"], rows, key="goodput")
        self.bench.plot("bars", "A download by a host of the LAN", {
            name: [median(rates) for rates in by_networks.values()] for name, by_networks in found.items()}, key="goodput",
                        categories=["one network", "both networks"], ylabel="Mbit/s")

    # --- what it costs ------------------------------------------------------------------------------

    def work(self):
        """New connections, bulk transfers and memory, on links without a limit."""
        new, bulk, memory = self._by_name(), self._by_name(), self._by_name()
        times = ["--seconds", self._quick(SECONDS, SECONDS_QUICK), "--warmup", 0.2]
        with Field() as lab:
            lab.congestion("reno")
            ways = start_ways(lab, self.kinds)
            # first of all: the kernel frees what thousands of connections leave behind while others are measured
            for number in range(self.rounds):
                self.bench.progress("memory: round %d" % (number + 1))
                for name, way in ways.items():
                    memory[name].append(self._held(lab, way))
            for number in range(self.rounds):
                self.bench.progress("work: round %d" % (number + 1))
                for name, way in ways.items():
                    new[name].append(lab.load(way, "--concurrency", NEW, "--request", REQUEST, "--response", RESPONSE, *times))
                    bulk[name].append(lab.load(way, "--response", ENDLESS, *times))
        self._table_work(new, bulk)
        self._table_memory(memory)
        Field.remark_others(self.bench, [result for found in (new, bulk) for results in found.values() for result in results])

    @staticmethod
    def _held(lab, way):
        """KB that idle connections add in user space of the gateway, and in the kernel of the whole machine."""
        processes.settle_kernel_memory()
        user, kernel = way.memory_kb(), processes.kernel_memory_kb()
        with lab.hold(way, HELD):
            return way.memory_kb() - user, processes.kernel_memory_kb() - kernel

    def _table_work(self, new, bulk):
        rows, costs = [], {}
        for name in self.names:
            has_processes = name != Routing.name
            cpu = [median([result.cpu_us_per_connection() for result in new[name]]), median([result.cpu_per_gb() for result in bulk[name]])]
            rows.append([
                name, "%.0f" % median([result.rate for result in new[name]]),
                _shares([result.rate for result in new[name]], [result.rate for result in new[Routing.name]]),
                *("%.2f" % (median([result["latency"].get(q, 0) for result in new[name]]) / 1000) for q in ("p50", "p99")),
                "%.0f" % cpu[0] if has_processes else None,
                "%.0f" % median([result.cpu_us_per_connection("system_cpu") for result in new[name]]),
                sum(result["failed"] for result in new[name]),
                "%.1f" % median([result.gbit for result in bulk[name]]), "%.2f" % cpu[1] if has_processes else None,
                "%.2f" % median([result.cpu_per_gb("system_cpu") for result in bulk[name]])])
            costs[name] = cpu
            self.bench.samples("new connections: %s: a second, p50 us, p99 us, CPU us, all CPU us, errors" % name, [
                [result.rate, result["latency"].get("p50"), result["latency"].get("p99"), result.cpu_us_per_connection(),
                 result.cpu_us_per_connection("system_cpu"), result["errors"]] for result in new[name]])
            self.bench.samples("bulk: %s: Gbit/s, CPU s/GB, all CPU s/GB" % name, [
                [result.gbit, result.cpu_per_gb(), result.cpu_per_gb("system_cpu")] for result in bulk[name]])
        self.bench.table("New connections, %d at a time, and one download, on links without a limit" % NEW, [
            "", "connections/s", "of routing", "p50 ms", "p99 ms", "CPU µs each", "all CPU µs each", "failed", "Gbit/s", "CPU s/GB",
            "all CPU s/GB"], rows, key="work")
        for nth, (key, unit) in enumerate((("new", "µs for a connection"), ("bulk", "s for a GB"))):
            self.bench.plot("bars", "CPU time of the gateway", {name: [cost[nth]] for name, cost in costs.items() if name != Routing.name},
                            key="cpu_" + key, categories=[unit], ylabel=unit)

    def _table_memory(self, memory):
        ends = median([kernel for _, kernel in memory[Routing.name]])
        rows = []
        for name, found in memory.items():
            self.bench.samples("memory: %s: KB of %d connections in the gateway's processes, in the kernel" % (name, HELD), found)
            if name != Routing.name:
                users, kernels = zip(*found)
                # processes keep what they have allocated once, for later rounds
                user, kernel = memory_each(max(users), median(kernels), ends, HELD)
                rows.append([name, "%.1f" % user, None if kernel is None else "%.1f" % kernel])
        self.bench.table("KB of an idle connection, %d open" % HELD, [
            "", "the gateway's processes", "the kernel, proxy's end included"], rows, key="memory")

    # --- the death of a network ---------------------------------------------------------------------

    def survival(self):
        """Downloads by all ways at once, while wifi falls silent for good."""
        seconds = SILENT_AT + self._quick(WATCHED, WATCHED_QUICK)
        gaps, carried, lines = self._by_name(), self._by_name(), {}
        for number in range(self.rounds):
            self.bench.progress("a network dies: round %d" % (number + 1))
            with Field(wifi=BROAD_WIFI, lte=BROAD_LTE, core=CORE) as lab:
                ways = start_ways(lab, self.kinds)
                # on each way there was a connection before, as on any router that runs
                for way in ways.values():
                    self._answered(way)
                begin = time.monotonic()
                loads = {name: way.host.popen(lab.load_command(way, "--response", ENDLESS, "--seconds", seconds, "--timeline", INTERVAL_MS),
                                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                         for name, way in ways.items()}
                time.sleep(max(0, begin + SILENT_AT - time.monotonic()))
                lab.wifi.down()
                silent = time.monotonic()
                for name, process in loads.items():
                    found = json.loads(process.communicate(timeout=60)[0])
                    arrivals = [found["start"] + (place + 0.5) * INTERVAL_MS / 1000 for place, size in enumerate(found["timeline"]) if size]
                    end = found["start"] + seconds
                    gaps[name].append(longest_gap(arrivals, silent, end))
                    carried[name].append(any(at > silent + 1 for at in arrivals))
                    lines[name] = [[round(place * INTERVAL_MS / 1000, 3), sum(found["timeline"][place:place + 10]) * 8e-6 / 0.2]
                                   for place in range(0, len(found["timeline"]), 10)]
        rows = []
        for name in self.names:
            survived = all(carried[name])
            rows.append([name, "%.2f" % median(gaps[name]) if survived else "the rest (%.1f)" % median(gaps[name]),
                         "%.2f" % max(gaps[name]), "yes" if survived else "no"])
            self.bench.samples("a network dies: %s: longest gap s, goes on" % name, list(zip(gaps[name], carried[name])))
        self.bench.table("Wifi falls silent during a download; %d s are watched" % (seconds - SILENT_AT), [
            "", "seconds without a byte", "at most", "goes on"], rows, key="survival")
        self.bench.plot("lines", "Wifi falls silent after %d s (one run; all ways share the networks)" % SILENT_AT, lines, key="survival",
                        xlabel="s", ylabel="Mbit/s")


def run(bench):
    """The experiment."""
    found = Gateways(bench)
    bench.setting("workers of convertgw", gateways.THREADS)
    found.waits()
    found.goodput()
    found.work()
    found.survival()
