# SPDX-License-Identifier: BSD-3-Clause
"""idle - memory that an idle connection takes in a proxy

Many connections are opened through each proxy, carry one small request, and stay. User space is what the proxy's processes occupy
(Pss); "in all" is what the machine has less afterwards, without what the same connections take without a proxy: the proxy's
sockets in the kernel, stacks, page tables. Other processes move that too: medians of a few runs, in turn.
"""
import json
import subprocess

from benchlib import median, processes
from benchlib.field import LOAD, Field
from benchlib.proxies import Convertd, Dante, Direct, Haproxy, Microsocks, Nginx, Shadowsocks, available
from convertlab import LabError

CONNECTIONS, CONNECTIONS_QUICK = 9800, 500
ROUNDS, ROUNDS_QUICK = 3, 1
PROXIES = (Direct, Convertd, Haproxy, Nginx, Microsocks, Dante, Shadowsocks)


def _hold(lab, proxy, count):
    """Opens them; returns (user-space KB, KB of the machine) that they have added."""
    command = [lab.build.program(LOAD), "run", *proxy.arguments(), "--hold", "--connections", count, "--concurrency", 64] + (
        ["--mptcp"] if proxy.mptcp else [])
    user, system = proxy.memory_kb(), processes.system_memory_kb()
    process = lab.client.popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    with process:
        line = process.stdout.readline().decode()
        if line != "held %d\n" % count:
            raise LabError("%s: %s%s" % (proxy.name, line, process.stdout.read().decode()))
        added = proxy.memory_kb() - user, processes.system_memory_kb() - system
        process.stdin.close()
        result = json.loads(process.stdout.read())
    if result["failed"]:
        raise LabError("%s: %s" % (proxy.name, result["errors"]))
    return added


def _measure_once(kind, mptcp, count):
    # a lab of its own: nothing that was freed for another proxy is taken up again
    with Field() as lab:
        proxy = kind(lab, mptcp)
        proxy.start()
        found = _hold(lab, proxy, count)
        version = proxy.version()
        proxy.stop()
    return found, version


def measure(bench, mptcp=False):
    """Returns {name: (user-space KB, KB in all) of one connection}."""
    count = CONNECTIONS_QUICK if bench.quick else CONNECTIONS
    word = "MPTCP" if mptcp else "TCP"
    kinds = available(bench, PROXIES, mptcp)
    samples = {kind.name: [] for kind in kinds}
    for number in range(ROUNDS_QUICK if bench.quick else ROUNDS):
        for kind in kinds:
            bench.progress("%s, %s: round %d" % (kind.name, word, number + 1))
            found, version = _measure_once(kind, mptcp, count)
            samples[kind.name].append(found)
            if version:
                bench.version(kind.name, version)
    base = median([system for _, system in samples[Direct.name]])
    rows, found = [], {}
    for name, pairs in samples.items():
        bench.samples("KB added in user space and in the machine, %s: %s" % (word, name), pairs)
        if name != Direct.name:
            user, system = (median(column) for column in zip(*pairs))
            found[name] = user / count, (system - base) / count
            rows.append([name] + ["%.1f" % value for value in found[name]])
    bench.table("%d idle connections, %s to the proxy: KB each" % (count, word), ["", "user space", "in all"], rows)
    return found


def run(bench):
    """The experiment."""
    found = measure(bench)
    bench.plot("bars", "An idle connection", {"user space": [pair[0] for pair in found.values()],
                                              "in all": [pair[1] for pair in found.values()]},
               categories=list(found), ylabel="KB", ylog=True)
    measure(bench, mptcp=True)
