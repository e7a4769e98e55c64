# SPDX-License-Identifier: BSD-3-Clause
"""begin - connections begun while a network fails

Curl after curl, each a separate process, connects through libconvert and convertd over wifi (20 ms, the default route) and lte (50 ms),
while one of them fails in some way. Beside it we measure plain TCP over the default route, and plain TCP bound to the network that works,
the best possible case. If the converter was asked for a connection twice, the client began it anew although its first SYN had arrived.
"""
import os
import time

from benchlib import median
from convertlab import Lab, Link
from convertlab.peers import asked_to_connect

DURATION = "4 minutes"
COUNT, COUNT_QUICK = 20, 6
PATIENCE = 10  # seconds, of curl
PORT = 1234
TWO_ADDRESSES = "10.9.0.66"  # of the converter's, and nobody is there
DIRECT, BOUND, OURS = "plain TCP", "plain TCP, the network that works", "libconvert"


def _drop_ipv6(lab):
    for device in ("wifi", "lte"):
        table = "table netdev begin-%s" % device
        lab.converter.run(["nft", "add %s; add chain netdev begin-%s in { type filter hook ingress device %s priority 0; };"
                           "add rule netdev begin-%s in meta protocol ip6 drop" % (table, device, device, device)])


# title: (what happens, CONVERT_ADDR, the network that works, to an IPv6 server)
FAULTS = {
    "nothing": (lambda lab: None, None, "wifi", False),
    "wifi falls silent": (lambda lab: lab.wifi.down(), None, "lte", False),
    "wifi loses what comes back": (lambda lab: lab.wifi.down("b-to-a"), None, "lte", False),
    "wifi loses 30%": (lambda lab: lab.wifi.set(loss=0.3), None, "lte", False),
    "wifi loses SYNs with data": (lambda lab: lab.wifi.set("a-to-b", max_syn=66), None, "wifi", False),
    "IPv6 leads nowhere": (_drop_ipv6, "%(addr6)s,%(addr4)s", "wifi", True),
    "one of two addresses is dead": (lambda lab: lab.converter.ip("route add blackhole %s" % TWO_ADDRESSES),
                                     TWO_ADDRESSES + ",%(addr4)s", "wifi", False),
    "the server takes 600 ms": (lambda lab: lab.core.set(delay_ms=300), None, "wifi", False),
}


def _curl(lab, env, *options, ipv6=False):
    """Milliseconds until curl is connected, or None."""
    address = "[%s]" % lab.server.addr6 if ipv6 else lab.server.addr4
    result = lab.client.run(["curl", "-sS", "-g", "-m", PATIENCE, "-o", "/dev/null", "-w", "%{time_pretransfer} %{http_code}", *options,
                             "http://%s/bytes/10" % address], env=env, check=False)
    seconds, status = result.stdout.split()
    return float(seconds) * 1000 if status == "200" else None


def _env(lab, addresses):
    directory = os.path.join(lab.directory, "runtime")
    os.makedirs(directory, mode=0o700, exist_ok=True)
    addr = (addresses or "%(addr4)s") % {"addr4": lab.converter.addr4, "addr6": lab.converter.addr6}
    return lab.converted(CONVERT_ADDR=addr, XDG_RUNTIME_DIR=directory)


def _one(bench, title):
    """({way: milliseconds of each connection, None if it failed}, how many the converter was asked for twice)"""
    fault, addresses, works, ipv6 = FAULTS[title]
    count = COUNT_QUICK if bench.quick else COUNT
    with Lab(wifi=Link(delay_ms=10), lte=Link(delay_ms=25), core=Link(delay_ms=10)) as lab:
        lab.convertd()
        lab.http()
        env = _env(lab, addresses)
        found = {DIRECT: [], BOUND: [], OURS: []}
        if not addresses:
            _curl(lab, env)
        fault(lab)
        bound = getattr(lab.client, works + "4")
        with lab.capture(lab.converter, "wifi", "tcp port %d" % PORT) as wifi, \
                lab.capture(lab.converter, "lte", "tcp port %d" % PORT) as lte:
            for number in range(count):
                bench.progress("%s: connection %d" % (title, number + 1))
                found[OURS].append(_curl(lab, env, ipv6=ipv6))
                found[BOUND].append(_curl(lab, None, "--interface", bound))
                if number < 3:  # of those that fail some are enough
                    found[DIRECT].append(_curl(lab, None))
                time.sleep(0.2)
        return found, len(asked_to_connect(wifi)) + len(asked_to_connect(lte)) - count


def _text(times):
    good = [ms for ms in times if ms is not None]
    return "%.0f" % median(good) if good else "never"


def run(bench):
    """The experiment."""
    rows, series = [], {}
    for title in FAULTS:
        found, twice = _one(bench, title)
        ours = found[OURS]
        good = [ms for ms in ours if ms is not None]
        later = [ms for ms in ours[1:] if ms is not None]
        best = median([ms for ms in found[BOUND] if ms is not None])
        for way, times in found.items():
            bench.samples("%s, %s" % (title, way), times)
        rows.append([title, _text(found[DIRECT]), "%.0f" % best, "%d of %d" % (len(good), len(ours)), _text(ours[:1]), _text(later),
                     "%.2f" % (median(later) / best) if later else "-", "%d" % twice])
        series[title] = [[number + 1, ms] for number, ms in enumerate(ours) if ms is not None]
    bench.table("Milliseconds until a connection is there, while a network fails",
                ["", "plain TCP", "the network that works", "libconvert began", "the first", "median of the others",
                 "of the network that works", "asked for twice"], rows)
    bench.plot("lines", "Connections one after the other, while a network fails", series, xlabel="connection", ylabel="ms")
