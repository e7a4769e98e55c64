# SPDX-License-Identifier: BSD-3-Clause
"""field.py - the lab as benchmarks need it, and the load generator in it"""
import contextlib
import json
import os
import subprocess

from convertlab import CommandError, Lab, LabError, Veth

from . import noise, processes, proxies
from .stats import median

LOAD = "bench/tools/load/load"
OPENING = 64  # connections at a time that are being opened, of those to be held

# thousands of connections a second, each of them new
SYSCTLS = {
    "net.core.somaxconn": 65535,
    "net.ipv4.tcp_max_syn_backlog": 65535,
    "net.ipv4.ip_local_port_range": "1025 65000",
    "net.ipv4.tcp_tw_reuse": 1,
    "net.ipv4.tcp_no_metrics_save": 1,
}


# More of the CPUs used by others than that is called disturbed. From within the sandbox kernel threads can't be told from others: with
# MPTCP they work, too.
DISTURBED, DISTURBED_MPTCP = noise.OTHERS_MAX, 0.25


class Result(dict):
    """What load has printed, and what was used meanwhile: proxy_cpu and system_cpu in seconds; others, a share of all CPUs, is what
    neither the lab nor the load has used.
    """

    @property
    def gbit(self):
        """Goodput."""
        return self["bytes"] * 8e-9 / self["seconds"]

    @property
    def rate(self):
        """Connections a second."""
        return self["connections"] / self["seconds"]

    def cpu_per_gb(self, whose="proxy_cpu"):
        """CPU seconds for a gigabyte (10^9 bytes)."""
        return self[whose] / (self["bytes_all"] * 1e-9) if self["bytes_all"] else None

    def cpu_us_per_connection(self, whose="proxy_cpu"):
        """CPU microseconds for a connection."""
        return self[whose] * 1e6 / self["opened"] if self["opened"] else None


class Field(Lab):
    """A lab of veth pairs with the generator's servers (TCP on SERVER_PORT, MPTCP on the other) and room for many connections.

    BENCH_PATIENCE in the environment: so many seconds at most are waited before each transfer until nothing else runs, and as many
    times it is repeated if something else ran meanwhile all the same.
    """

    patience = int(os.environ.get("BENCH_PATIENCE", 0))

    def __init__(self, rate_mbit=None, **options):
        link = Veth(rate_mbit)
        super().__init__(**dict({"wifi": link, "lte": None, "core": link}, **options))

    def _start(self):
        super()._start()
        for host in self.hosts.values():
            for name, value in SYSCTLS.items():
                host.sysctl(name, value)
        load = self.build.program(LOAD)
        for port, options in ((proxies.SERVER_PORT, []), (proxies.SERVER_PORT_MPTCP, ["--mptcp"])):
            self.start_listening(self.server, [load, "serve", *options, port], port)

    def congestion(self, name):
        """Sets the congestion control of later connections."""
        for host in self.hosts.values():
            host.sysctl("net.ipv4.tcp_congestion_control", name)

    def load(self, proxy, *options, timeout=120):
        """Runs the generator through a proxy; returns a Result."""
        command = self.load_command(proxy, *options)

        def run():
            said = proxy.host.run(command, timeout=timeout, check=False)
            if not said.stdout:
                raise CommandError("%s: %s" % (" ".join(map(str, command)), said.stderr), said)
            return Result(json.loads(said.stdout), status=said.returncode)
        return self.measured(proxy, run)

    def load_command(self, proxy, *options):
        """The generator's command line for a proxy."""
        return [self.build.program(LOAD), "run", *proxy.arguments(), *options] + (["--mptcp"] if proxy.mptcp else [])

    def measured(self, proxy, run):
        """Returns the Result of run(), with what was used meanwhile; runs it again while others disturb it, as patience has it."""
        limit = DISTURBED_MPTCP if proxy.mptcp else DISTURBED
        results = []
        for _ in range(1 + self.patience):
            if self.patience:
                processes.wait_for_quiet(self.patience)
            results.append(self._measured_once(proxy, run))
            if results[-1]["others"] <= limit:
                break
        return min(results, key=lambda result: result["others"])

    @staticmethod
    def _measured_once(proxy, run):
        cpu, system = proxy.cpu_seconds(), processes.system_cpu_seconds()
        before = noise.read([os.getpid()])
        result = run()
        result["proxy_cpu"] = proxy.cpu_seconds() - cpu
        result["system_cpu"] = processes.system_cpu_seconds() - system
        meanwhile = noise.between(before, noise.read([os.getpid()]), os.cpu_count())
        result["others"] = max(0, meanwhile.busy + meanwhile.stolen - meanwhile.ours)
        return result

    def hold(self, proxy, count, *options):
        """Opens so many connections through a proxy that stay open; returns them as a Held."""
        return Held(self, proxy, count, *options)

    @staticmethod
    def remark_others(bench, results):
        """Reports how much other processes ran while these results were measured."""
        shares = [result["others"] for result in results]
        bench.remark("Others had %.0f%% of the CPUs meanwhile (median), %.0f%% at most." % (100 * median(shares), 100 * max(shares)))

    @contextlib.contextmanager
    def running(self, bench, among=proxies.ALL, mptcp=False, threads=proxies.THREADS):
        """The proxies, started side by side, by name."""
        started = {}
        for kind in proxies.available(bench, among, mptcp):
            proxy = kind(self, mptcp, threads)
            bench.progress("starting " + proxy.name)
            proxy.start()
            started[proxy.name] = proxy
            if proxy.version():
                bench.version(proxy.name, proxy.version())
        yield started
        for proxy in started.values():
            proxy.stop()


class Held:
    """Connections of the generator that stay open until close(). They are idle but while be_busy() runs."""

    def __init__(self, field, proxy, count, *options):
        self._field, self._proxy = field, proxy
        self._process = proxy.host.popen(
            field.load_command(proxy, "--hold", "--connections", count, "--concurrency", min(count, OPENING), *options),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        line = self._process.stdout.readline()
        if line != "held %d\n" % count:
            raise LabError("%s: %s%s" % (proxy.name, line, self._process.communicate()[0]))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def be_busy(self):
        """Has each connection repeat its request for as long as --seconds among the options says. Returns a Result, which begins
        when they are idle, and ends when they are idle again.
        """
        return self._field.measured(self._proxy, self._be_busy)

    def _be_busy(self):
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        try:
            return Result(json.loads(line))
        except ValueError as error:
            raise LabError("%s: %s%s" % (self._proxy.name, line, self._process.communicate()[0])) from error

    def close(self):
        """Closes them all."""
        self._process.communicate()
