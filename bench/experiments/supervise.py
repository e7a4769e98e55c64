# SPDX-License-Identifier: BSD-3-Clause
"""supervise - what it costs a program to be supervised by convertize, beside preloading, ptrace and no converter at all

The same programs, dynamic ones so that all ways reach them, run directly, under libconvert.so, by `convertize --method
supervise`, by graftcp, which traces the program by ptrace(2) and sends its connections to a SOCKS5 proxy, and by
proxychains4. The proxy is microsocks, on the converter's host.

Links without delay show the cost of a call. A link with 50 ms to the converter and 5 ms from there to the server shows how
long a program waits. To count failures, an event loop opens connections over the same link with loss; a way causes the
failures beyond those of direct connections.
"""
import os
import re
import shutil

from benchlib import median, spread
from convertlab import Lab, Link, Veth
from convertlab.programs import c_program

DURATION = "5 minutes"

CALLS, CALLS_QUICK = 2000, 100
ROUNDS, ROUNDS_QUICK = 10, 2
AT_ONCE = (8, 500)
LOSSES = (0, 0.01, 0.05)
LOSSY, LOSSY_QUICK = 2000, 100  # connections with each loss
SERVER_PORT = 5000
SOCKS_PORT = 1080
DIRECT, PRELOAD, SUPERVISE, GRAFTCP, PROXYCHAINS = "direct", "preloaded", "supervised", "graftcp (ptrace)", "proxychains4"
MGRAFTCP = "mgraftcp"
PROXYCHAINS_CONF = "strict_chain\nquiet_mode\n[ProxyList]\nsocks5 %s %d\n"
CONNECTED, FIRST = 1, 2  # of the times of first_byte


class Ways:
    """How programs are started on the lab's client; `names` are those that this machine has."""

    def __init__(self, lab):
        self._lab = lab
        lab.convertd(["--log-level", "warning"])
        lab.start_listening(lab.converter, ["microsocks", "-p", SOCKS_PORT], SOCKS_PORT)
        self._env = lab.converted(XDG_RUNTIME_DIR=lab.directory)
        preload = self._env.pop("LD_PRELOAD")
        config = os.path.join(lab.directory, "proxychains.conf")
        with open(config, "w", encoding="ascii") as file:
            file.write(PROXYCHAINS_CONF % (lab.converter.addr4, SOCKS_PORT))
        convertize = [lab.build.program("convertize"), "--config", "none", "--library", lab.build.shim, "--method"]
        self._ways = {
            DIRECT: ([], {}),
            PRELOAD: ([], dict(self._env, LD_PRELOAD=preload)),
            SUPERVISE: ([*convertize, "supervise", "--"], self._env),
            GRAFTCP: ([MGRAFTCP, "--socks5", "%s:%d" % (lab.converter.addr4, SOCKS_PORT),
                       "--select_proxy_mode", "only_socks5"], {}),
            PROXYCHAINS: (["proxychains4", "-q", "-f", config], {}),
        }
        self.names = [name for name, (words, _) in self._ways.items() if not words or shutil.which(words[0])]

    def run(self, name, words, **options):
        """Runs a program in this way; returns what it prints."""
        launcher, env = self._ways[name]
        return self._lab.client.run([*launcher, *words], env=env, timeout=300, **options).stdout


def _calls(bench):
    """What each call takes."""
    count = CALLS_QUICK if bench.quick else CALLS
    found = {}
    with Lab(wifi=Veth(), lte=None, core=None) as lab:
        lab.echo()
        ways = Ways(lab)
        for name in ways.names:
            bench.progress("calls: %s" % name)
            said = ways.run(name, [lab.build.program("bench/tools/socket_calls"), lab.server.addr4, count])
            found[name] = {line.split()[0]: [int(word) / 1000 for word in line.split()[1:]]
                           for line in said.splitlines() if re.match(r"[a-z_]+( \d+)+$", line)}
            for call, values in found[name].items():
                bench.samples("%s: %s, us" % (name, call), values)
    calls = list(found[DIRECT])
    bench.setting("connections for the calls", count)
    bench.table("What a call takes, microseconds: median and middle half", ["", *calls], [
        [name, *("%.1f (%s)" % (median(values[call]), spread(values[call], "%.1f")) for call in calls)] for name, values in found.items()])
    bench.table("More than directly, microseconds: difference of the medians", ["", *calls], [
        [name, *("%+.1f" % (median(found[name][call]) - median(found[DIRECT][call])) for call in calls)]
        for name in found if name != DIRECT])


def _asked(lab, ways, name, at_once):
    """The times of so many connections at once by first_byte, [(connected, first byte) in ms, …], and how many have failed."""
    line = "0.0.0.0 %s %d\n" % (lab.server.addr4, SERVER_PORT)
    # graftcp now and then has a close() fail with ENOSYS, of which the program dies: its connections have failed
    said = ways.run(name, [lab.build.program("bench/tools/first_byte"), lab.server.addr4, SERVER_PORT, at_once],
                    input=line * at_once, check=name != GRAFTCP)
    times = []
    for answer in said.splitlines():
        words = answer.split()[3:]
        if len(words) == 4 and words[0] != "failed:":
            times.append((float(words[CONNECTED]) / 1000, float(words[FIRST]) / 1000))
    return times, at_once - len(times)


def _waits(bench):
    """How long a program waits for a connection and for the first byte."""
    rounds = ROUNDS_QUICK if bench.quick else ROUNDS
    bench.setting("rounds", rounds)
    series = {}
    with Lab(wifi=Link(delay_ms=25), lte=None, core=Link(delay_ms=2.5)) as lab:
        lab.start_listening(lab.server, [lab.build.program("bench/tools/load/load"), "serve", SERVER_PORT], SERVER_PORT)
        ways = Ways(lab)
        for name in ways.names:
            _asked(lab, ways, name, 1)  # from now on all know what the path is like
        for at_once in AT_ONCE:
            found = {name: [] for name in ways.names}
            failed = dict.fromkeys(ways.names, 0)
            for number in range(rounds):
                bench.progress("%d at once: round %d" % (at_once, number + 1))
                for name in ways.names:
                    times, lost = _asked(lab, ways, name, at_once)
                    found[name].append([median(column) for column in zip(*times)])  # empty if all have failed
                    failed[name] += lost
            rows = []
            for name, rounds_of in found.items():
                of_direct = [median([own[which] / direct[which] for own, direct in zip(rounds_of, found[DIRECT]) if own])
                             for which in (0, 1)]
                medians = [own for own in rounds_of if own]
                rows.append([name, *("%.1f" % median(column) for column in zip(*medians)),
                             *("%.3f" % share for share in of_direct), failed[name]])
                bench.samples("%d at once: %s, ms" % (at_once, name), medians)
                series.setdefault(name, []).append(of_direct[1])
            bench.table("%d connections at once" % at_once, [
                "", "connected ms", "first byte ms", "connected, of direct", "first byte, of direct", "failed"], rows)
    bench.plot("bars", "Time to the first byte, of direct", series, ylabel="of direct",
               categories=["%d at once" % number for number in AT_ONCE])


def _failures(bench):
    """How many connections fail on links that lose packets."""
    count = LOSSY_QUICK if bench.quick else LOSSY
    bench.setting("connections with each loss", count)
    tally = c_program("tally-bench", "static/tally.c")
    rows = []
    for loss in LOSSES:
        with Lab(wifi=Link(delay_ms=25, loss=loss), lte=None, core=Link(delay_ms=2.5)) as lab:
            lab.echo()
            ways = Ways(lab)
            for name in (DIRECT, PRELOAD, SUPERVISE):
                bench.progress("loss %g%%: %s" % (100 * loss, name))
                said = ways.run(name, [tally, lab.server.addr4, "echo", count, 20, "epoll"])
                figures = dict(re.findall(r"(\w+)=([\d.]+)", said))
                rows.append(["%g%%" % (100 * loss), name, *(figures[key] for key in ("done", "failed", "foreign", "slowest"))])
    bench.table("Connections of an event loop, by the loss of the first link in either direction",
                ["loss", "", "done", "failed", "bytes that no server sent", "longest connect() ms"], rows)


def run(bench):
    """The experiment."""
    if not shutil.which(MGRAFTCP):
        bench.remark("%s isn't installed, and was not measured." % GRAFTCP)
    _calls(bench)
    _waits(bench)
    _failures(bench)
