# SPDX-License-Identifier: BSD-3-Clause
"""grid - downloads over two paths and over one, whatever the round trip, the rates and the queues

Downloads of one size, from the SYN to the last byte. We divide the goodput through libconvert.so and convertd to a plain TCP server by
that of plain MPTCP to an MPTCP server in the converter's place, over the same links. The SYN takes the first path. lte is the faster one
in half of the cases: there a misread window overruns the client's buffer. The rows with one fast path would show a window that is too
small. Queues are given in bandwidth-delay products of their link.
"""
import json

from benchlib import median
from benchlib.field import LOAD
from benchlib.proxies import SERVER_PORT, convertd_options
from convertlab import Lab, Link

ROUND_TRIPS = 5, 20, 50, 100, 300  # ms, of both paths
RATES = (50, 30), (20, 50)         # Mbit/s of wifi and lte
QUEUES = 0.5, 2
FAST_MBIT, FAST_QUEUE = 200, 1
BYTES, BYTES_QUICK = 15000000, 300000
ROUNDS, ROUNDS_QUICK = 3, 1
PACKET = 1500
QUEUE_MIN = 20                     # packets; less holds no burst of a kernel that sends 64 KB at once
CORE_MS = 0.1


def _link(round_trip, mbit, products):
    packets = products * mbit * 1e6 * round_trip / 1000 / 8 / PACKET
    return Link(delay_ms=round_trip / 2, rate_mbit=mbit, queue=max(QUEUE_MIN, int(packets)))


def _mbit(bench, lab, host, *options, env=None):
    size = BYTES_QUICK if bench.quick else BYTES
    found = json.loads(lab.client.run(
        [lab.build.program(LOAD), "run", "--to", "%s:%d" % (host.addr4, SERVER_PORT), "--request", 100, "--response", size,
         "--connections", 1, *options], env=env, timeout=120).stdout)
    return found["connections"] * size * 8e-6 / found["seconds"]


def _measure(bench, what, wifi, lte):
    """Medians in Mbit/s: (through libconvert, plain MPTCP); and the median of their ratios."""
    ours, plain = [], []
    with Lab(wifi=wifi, lte=lte, core=Link(delay_ms=CORE_MS)) as lab:
        lab.convertd(convertd_options(lab.build))
        load = lab.build.program(LOAD)
        lab.start_listening(lab.server, [load, "serve", SERVER_PORT], SERVER_PORT)
        lab.start_listening(lab.converter, [load, "serve", "--mptcp", SERVER_PORT], SERVER_PORT)
        for host in lab.hosts.values():
            host.sysctl("net.ipv4.tcp_no_metrics_save", 1)
        for number in range(ROUNDS_QUICK if bench.quick else ROUNDS):
            bench.progress("%s: round %d" % (what, number + 1))
            plain.append(_mbit(bench, lab, lab.converter, "--mptcp"))
            ours.append(_mbit(bench, lab, lab.server, env=lab.converted()))
    bench.samples("%s: libconvert, plain MPTCP in Mbit/s" % what, list(zip(ours, plain)))
    return median(ours), median(plain), median([mine / its for mine, its in zip(ours, plain)])


def run(bench):
    """The experiment."""
    rows, series = [], {}
    for rates in RATES:
        for products in QUEUES:
            name = "%d + %d Mbit/s, queues of %g" % (*rates, products)
            for round_trip in ROUND_TRIPS:
                wifi, lte = (_link(round_trip, mbit, products) for mbit in rates)
                ours, plain, ratio = _measure(bench, "%s, %d ms" % (name, round_trip), wifi, lte)
                rows.append(["%d + %d" % rates, products, round_trip, "%.1f" % ours, "%.1f" % plain, "%.2f" % ratio])
                series.setdefault(name, []).append(ratio)
    bench.table("Two paths: a download of %g MB in Mbit/s" % ((BYTES_QUICK if bench.quick else BYTES) / 1e6),
                ["wifi + lte", "queues", "ms of round trip", "libconvert", "plain MPTCP", "of plain MPTCP"], rows)
    rows = []
    for round_trip in ROUND_TRIPS:
        ours, plain, ratio = _measure(bench, "%d Mbit/s, %d ms" % (FAST_MBIT, round_trip),
                                      _link(round_trip, FAST_MBIT, FAST_QUEUE), None)
        rows.append([FAST_MBIT, round_trip, "%.1f" % ours, "%.1f" % plain, "%.2f" % ratio])
        series.setdefault("one path of %d Mbit/s" % FAST_MBIT, []).append(ratio)
    bench.table("One path", ["Mbit/s", "ms of round trip", "libconvert", "plain MPTCP", "of plain MPTCP"], rows)
    bench.setting("round trip from the converter to the server", "%g ms" % (2 * CORE_MS))
    bench.plot("bars", "Goodput of downloads, of plain MPTCP", series, ylabel="share of plain MPTCP",
               categories=["%d ms" % round_trip for round_trip in ROUND_TRIPS])
