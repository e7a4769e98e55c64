# SPDX-License-Identifier: BSD-3-Clause
"""startup - what a preloaded library adds to the start of a process

A program that does nothing (tools/nothing.c) runs many times, in turn without a preload, with an empty library (the
least cost of any preload), and with libconvert.so, torsocks and proxychains4, each configured to act on a
connect(). Times are those of the whole process; a library adds the difference of the medians to no preload.
"""
import os
import subprocess
import tempfile

from benchlib import machine, median, spread
from convertlab.build import Build
from convertlab.harness import Skip

RUNS = 2000
RUNS_QUICK = 50
PROXYCHAINS_CONF = "strict_chain\nquiet_mode\n[ProxyList]\nsocks5 192.0.2.1 1080\n"
# where Debian, Fedora, Arch and a build from source have them
LIBRARY_DIRECTORIES = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib")
PEERS = {"torsocks": ("torsocks/libtorsocks.so", "torsocks"),
         "proxychains4": ("libproxychains.so.4", "proxychains4")}


def _library(peer):
    name, package = PEERS[peer]
    for directory in LIBRARY_DIRECTORIES:
        path = os.path.join(directory, name)
        if os.path.exists(path):
            return path
    raise Skip("%s is missing; on Debian: apt-get install %s" % (name, package))


def _environments(build, directory):
    """The environment of each variant, by its name."""
    config = os.path.join(directory, "proxychains.conf")
    with open(config, "w", encoding="ascii") as file:
        file.write(PROXYCHAINS_CONF)
    empty = os.path.join(build.directory, ".libs/libpreloadnothing.so")
    return {
        "no preload": {},
        "empty library": {"LD_PRELOAD": empty},
        "libconvert": {"LD_PRELOAD": build.shim, "CONVERT_ADDR": "192.0.2.1"},
        "torsocks": {"LD_PRELOAD": _library("torsocks")},
        "proxychains4": {"LD_PRELOAD": _library("proxychains4"), "PROXYCHAINS_CONF_FILE": config,
                         "PROXYCHAINS_QUIET_MODE": "1"},
    }


def _measure(build, runs):
    """({name: [(wall ns, CPU ns, page faults), …]}, {name: (instructions, system calls)})"""
    with tempfile.TemporaryDirectory() as directory:
        command = [build.program("bench/tools/startup"), str(runs), build.program("bench/tools/nothing")]
        for name, environment in _environments(build, directory).items():
            command += ["--", name] + ["%s=%s" % pair for pair in environment.items()]
        said = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    times, counts = {}, {}
    for line in said.splitlines():
        kind, name, *values = line.split("\t")
        if kind == "run":
            times.setdefault(name, []).append(tuple(map(int, values)))
        else:
            counts[name] = tuple(map(int, values))
    return times, counts


def run(bench):
    """The experiment."""
    build = Build()
    runs = RUNS_QUICK if bench.quick else RUNS
    times, counts = _measure(build, runs)
    bench.setting("runs of each", runs)
    for peer in PEERS:
        bench.version(peer, machine.package_version(_library(peer)))
    rows, series = [], {"wall clock": [], "user + system": []}
    base = [median(column) for column in zip(*times["no preload"])]
    for name, samples in times.items():
        wall, cpu, faults = zip(*samples)
        added = [median(wall) - base[0], median(cpu) - base[1]]
        rows.append([name, "%.0f" % (median(wall) / 1e3), spread([value / 1e3 for value in wall]),
                     "%+.0f" % (added[0] / 1e3), "%.0f" % (median(cpu) / 1e3), spread([value / 1e3 for value in cpu]),
                     "%+.0f" % (added[1] / 1e3), "%d" % median(faults), "%d" % counts[name][0], "%d" % counts[name][1]])
        series["wall clock"].append(added[0] / 1e3)
        series["user + system"].append(added[1] / 1e3)
        bench.samples("wall ns, CPU ns, page faults: " + name, samples)
    bench.table("A process that does nothing, from fork to wait; times in µs: medians and middle halves of %d runs" % runs,
                ["preload", "wall", "half within", "added", "user + system", "half within", "added", "page faults",
                 "instructions", "system calls"], rows)
    names = list(times)[1:]
    bench.plot("bars", "What a preload adds to a process that does nothing",
               {name: values[1:] for name, values in series.items()}, categories=names, ylabel="µs, median")
