# SPDX-License-Identifier: BSD-3-Clause
"""ways - moving bytes between two sockets: copies of several sizes, splice, MSG_ZEROCOPY, SO_RCVLOWAT

Ways that convertd's relay could use, each in a proxy that does nothing else (bench/tools/ways.c), with convertd beside them. One bulk
transfer follows the other in each way, in several rounds, for each pair of socket kinds between which bytes move. "of direct"
is the median of the ratios within each round; CPU seconds are the proxy's own.
"""
from benchlib import median
from benchlib.field import Field
from benchlib.proxies import Convertd, Direct, Proxy

ENDLESS = "1000T"
ROUNDS, ROUNDS_QUICK = 5, 1
SECONDS, SECONDS_QUICK = 1, 0.2
WARMUP = 0.2
K = 1024
# the way, the bytes of its buffer or pipe, SO_RCVLOWAT
WAYS = (("copy", 16 * K, 1), ("copy", 64 * K, 1), ("copy", 128 * K, 1), ("copy", 256 * K, 1), ("copy", 512 * K, 1),
        ("copy", 1024 * K, 1), ("copy", 256 * K, 128 * K), ("splice", 64 * K, 1), ("splice", 256 * K, 1), ("splice", 1024 * K, 1),
        ("zerocopy", 256 * K, 1))
# congestion control, Mbit/s of the links (None: no limit), MPTCP to the client, direction
CASES = (("reno", None, False, "down"), ("bbr", None, False, "down"), ("reno", None, True, "down"), ("reno", None, True, "up"),
         ("reno", 2000, False, "down"))


class Way(Proxy):
    """A way with its sizes."""

    def __init__(self, lab, mptcp, way, size, lowat, port):
        super().__init__(lab, mptcp)
        self.name = "%s %d KB%s" % (way, size // K, ", SO_RCVLOWAT %d KB" % (lowat // K) if lowat > 1 else "")
        self._words = [way, size, lowat, "mptcp" if mptcp else "tcp"]
        self._port = port

    def start(self):
        self._run([self.lab.build.program("bench/tools/ways"), *self._words, "0.0.0.0:%d" % self._port, self._target], self._port)
        return self

    def arguments(self):
        return self.to(self.lab.converter.addr4, self._port)


def _proxies(lab, mptcp):
    yield Direct(lab, mptcp)
    yield Convertd(lab, mptcp).start()
    for number, (way, size, lowat) in enumerate(WAYS):
        # MPTCP sockets have no SO_ZEROCOPY
        if not (mptcp and way == "zerocopy"):
            yield Way(lab, mptcp, way, size, lowat, 2100 + number).start()


def _measure_case(bench, case):
    congestion, rate_mbit, mptcp, direction = case
    title = "%s, %s, %s" % (congestion, "%d Mbit/s" % rate_mbit if rate_mbit else "no limit",
                            {(False, "down"): "TCP to TCP", (True, "down"): "TCP to MPTCP", (True, "up"): "MPTCP to TCP"}[mptcp, direction])
    found = {}
    with Field(rate_mbit=rate_mbit) as lab:
        lab.congestion(congestion)
        proxies = list(_proxies(lab, mptcp))
        for number in range(ROUNDS_QUICK if bench.quick else ROUNDS):
            bench.progress("%s: round %d" % (title, number + 1))
            for proxy in proxies:
                found.setdefault(proxy.name, []).append(lab.load(
                    proxy, "--response" if direction == "down" else "--request", ENDLESS, "--warmup", WARMUP,
                    "--seconds", SECONDS_QUICK if bench.quick else SECONDS))
    rows, direct = [], found[Direct.name]
    for name, results in found.items():
        rows.append([name, "%.1f" % median([result.gbit for result in results]),
                     "%.2f" % median([result.gbit / other.gbit for result, other in zip(results, direct)]),
                     None if name == Direct.name else "%.2f" % median([result.cpu_per_gb() or 0 for result in results])])
        bench.samples("%s: %s" % (title, name), [[result.gbit, result.cpu_per_gb()] for result in results])
    bench.table(title, ["", "Gbit/s", "of direct", "CPU s/GB"], rows)
    Field.remark_others(bench, sum(found.values(), []))
    return title, {row[0]: float(row[2]) for row in rows if row[0] != Direct.name}


def run(bench):
    """The experiment."""
    titles, series = [], {}
    for case in CASES:
        title, shares = _measure_case(bench, case)
        titles.append(title)
        for name, share in shares.items():
            series.setdefault(name, {})[title] = share
    bench.setting("rounds", ROUNDS_QUICK if bench.quick else ROUNDS)
    bench.setting("seconds each", SECONDS_QUICK if bench.quick else SECONDS)
    bench.plot("bars", "Ways to move bytes, of direct", {name: [shares.get(title) for title in titles] for name, shares in series.items()},
               categories=titles, ylabel="share of direct")
