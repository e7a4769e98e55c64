# SPDX-License-Identifier: BSD-3-Clause
"""syscalls - system calls that a proxy makes for one new connection

strace counts them during connections with one small request each, 64 at a time, by TCP and MPTCP to the proxy. The figures
don't depend on the machine, and hardly on its load, which changes only how many events one wait returns.
"""
import os
import re
import signal

from benchlib import processes
from benchlib.field import Field
from benchlib.proxies import Convertd, ConvertdEarly, ConvertdResponse, Dante, Haproxy, Microsocks, Nginx, Shadowsocks
from convertlab import need

NEEDS = ("bench-peers",)
CONNECTIONS, CONNECTIONS_QUICK = 2000, 200
REQUEST, RESPONSE = 100, 1000
PROXIES = (Convertd, ConvertdResponse, ConvertdEarly, Haproxy, Nginx, Microsocks, Dante, Shadowsocks)
SHOWN = 0.05  # of a call a connection: what is rarer is start-up and timers


def _counts(path):
    """{system call: count} of a table by strace -c."""
    found = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            fields = line.split()
            if len(fields) >= 5 and re.fullmatch(r"[\d.]+", fields[0]) and fields[3].isdigit() and fields[-1] != "total":
                found[fields[-1]] = int(fields[3])
    return found


def _measure(lab, proxy, count):
    """{system call: calls a connection}"""
    path = os.path.join(lab.directory, "strace-%s-%s" % (proxy.name, proxy.mptcp))
    pids = [word for pid in processes.tree(proxy.roots) for word in ("-p", str(pid))]
    strace = lab.converter.popen(["strace", "-f", "-c", "-o", path, *pids])
    # it says so for each process, or the number of its threads
    strace.wait_log("attached")
    result = lab.load(proxy, "--concurrency", 64, "--connections", count, "--request", REQUEST, "--response", RESPONSE)
    strace.stop(signal.SIGINT)
    return {name: calls / result["opened"] for name, calls in _counts(path).items()}


def run(bench):
    """The experiment."""
    need("strace")
    count = CONNECTIONS_QUICK if bench.quick else CONNECTIONS
    series, names = {}, []
    for mptcp in (False, True):
        rows = []
        word = "MPTCP" if mptcp else "TCP"
        with Field() as lab, lab.running(bench, PROXIES, mptcp) as proxies:
            for name, proxy in proxies.items():
                bench.progress("%s, %s" % (name, word))
                found = _measure(lab, proxy, count)
                often = sorted(((calls, call) for call, calls in found.items() if calls >= SHOWN), reverse=True)
                rows.append([name, "%.1f" % sum(found.values()), " ".join("%s %.2g" % (call, calls) for calls, call in often)])
                bench.samples("%s: %s" % (word, name), sorted(found.items()))
                series.setdefault(word, {})[name] = sum(found.values())
                names = names or list(proxies)
        bench.table("System calls a connection, %s to the proxy" % word, ["", "in all", "which"], rows)
    bench.plot("bars", "System calls a connection", {word: [found.get(name) for name in names] for word, found in series.items()},
               categories=names)
