# SPDX-License-Identifier: BSD-3-Clause
"""survive - a transfer while something happens to its networks

A download, and an upload, over wifi (50 Mbit/s, 20 ms, where the connection begins) and lte (30 Mbit/s, 50 ms), in four ways: plain MPTCP
to a server in the converter's place, with endpoints typed as in ip(8); libconvert and convertd with the same; both with "convertize paths
--manage", which finds bare addresses and routes; and these on hosts that bound the time between two retransmissions. Where both networks
lose their carrier the links are slow, and direct TCP over the network that comes back stands beside them, if that network keeps its
address. We check every byte. The gap is the longest time without a byte, from the fault on, or, where no network was left, from the
moment when one worked again. In the last seconds each network that works must carry bytes again. Several labs run side by side, since the
links are the limit and most of the time passes in waits.
"""
import concurrent.futures
import ctypes
import json
import os
import subprocess
import sys
import time

from benchlib import median
from benchlib.proxies import SERVER_PORT, convertd_options
from convertlab import Lab, LabError, Link, wait_until
from models.gaps import longest_gap

DURATION = "45 minutes"
PROGRAM = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tools", "survive.py")
WIFI = Link(delay_ms=10, rate_mbit=50, queue=200)
LTE = Link(delay_ms=25, rate_mbit=30, queue=200)
SLOW_WIFI = Link(delay_ms=10, rate_mbit=6, queue=100)
SLOW_LTE = Link(delay_ms=25, rate_mbit=4, queue=100)
FAULT_AT = 3            # seconds after the transfer has begun, until both networks are full
WATCHED = 3             # of the end: what each network carries then
CARRIES = 100000        # bytes in that time: less is no use of a network
ROUNDS, ROUNDS_QUICK = 3, 1
SIDE_BY_SIDE = 5
CLONE_NEWNS = 0x20000   # unshare(2)
MS_PRIVATE = 0x40000     # mount(2)
DIRECT = "direct TCP"
PLAIN, OURS, MANAGED = "plain MPTCP", "libconvert", "libconvert, convertize-paths"
BOUNDED = "libconvert, convertize-paths, tcp_rto_max_ms"
WAYS = (PLAIN, OURS, MANAGED, BOUNDED)
# Linux 6.15. Retransmissions are a second apart at most, so that as many as there may be take four minutes: then TCP gives up
BOUNDS = {"net.ipv4.tcp_rto_max_ms": 1000, "net.ipv4.tcp_retries2": 255}
DIRECTIONS = {"get": ("download", "b-to-a"), "put": ("upload", "a-to-b")}


class Network:
    """One of the client's, as a DHCP client looks after it; `tables` says whether rules and tables by source address were typed as well."""

    def __init__(self, lab, name, tables):
        self._lab, self.name, self._tables = lab, name, tables
        self._number = {"wifi": 1, "lte": 2}[name]
        self.link = getattr(lab, name)

    def _routes(self):
        via = "route replace default via 10.%d.0.1 dev %s " % (self._number, self.name)
        lines = [via + "metric %d" % (100 * self._number)]
        self._lab.client.ip(*lines + ([via + "table %d" % (100 + self._number)] if self._tables else []))

    def cut(self):
        """The device goes down, and the address stays, as it does with Ethernet."""
        self._lab.client.ip("link set %s down" % self.name)

    def mend(self):
        """Ends cut()."""
        self._lab.client.ip("link set %s up" % self.name)
        self._routes()

    def lose_carrier(self):
        """As out of the reach of a radio network: addresses and routes stay."""
        self.link.down()
        self._lab.client.ip("link set %s carrier off" % self.name)

    def find_carrier(self):
        """Ends lose_carrier()."""
        self.link.up()
        self._lab.client.ip("link set %s carrier on" % self.name)

    def readdress(self):
        """The lease is over, and there is another one."""
        self._lab.client.ip("addr del 10.%d.0.2/24 dev %s" % (self._number, self.name),
                            "addr add 10.%d.0.9/24 dev %s" % (self._number, self.name))
        self._routes()


def _silence(*networks):
    for network in networks:
        network.link.down()


def _speak(*networks):
    for network in networks:
        network.link.up()


def _cut(*networks):
    for network in networks:
        network.cut()


def _mend(*networks):
    for network in networks:
        network.mend()


def _nothing(*_):
    pass


def _lose_carriers(order, back, readdressed):
    """Returns a function of a round's number that returns that round's fault, as FAULTS has them.

    The networks of `order` lose their carrier one after the other, and `back` alone comes back, with its address or with another one.
    """
    def fault(number):
        between, lasts = ((0, 6), (1.5, 7), (3, 8))[number % 3]

        def begin(*networks):
            first, second = sorted(networks, key=lambda network: order.index(network.name))
            first.lose_carrier()
            time.sleep(between)
            second.lose_carrier()

        def end(*networks):
            network, = [network for network in networks if network.name == back]
            network.find_carrier()
            if readdressed:
                network.readdress()
        return begin, lasts, end, 16, True, (back,)
    return fault


# title: (what happens, seconds until, its end, seconds after that, does none work meanwhile?, those that work in the end)
FAULTS = {
    "wifi silent for 5 s": (lambda wifi, lte: _silence(wifi), 5, lambda wifi, lte: _speak(wifi), 9, False, ("wifi", "lte")),
    "lte silent for 5 s": (lambda wifi, lte: _silence(lte), 5, lambda wifi, lte: _speak(lte), 9, False, ("wifi", "lte")),
    "wifi cut for 5 s": (lambda wifi, lte: _cut(wifi), 5, lambda wifi, lte: _mend(wifi), 9, False, ("wifi", "lte")),
    "lte cut for 5 s": (lambda wifi, lte: _cut(lte), 5, lambda wifi, lte: _mend(lte), 9, False, ("wifi", "lte")),
    "another address on wifi": (lambda wifi, lte: wifi.readdress(), 0, _nothing, 10, False, ("wifi", "lte")),
    "another address on lte": (lambda wifi, lte: lte.readdress(), 0, _nothing, 10, False, ("wifi", "lte")),
    "wifi silent for good": (lambda wifi, lte: _silence(wifi), 0, _nothing, 12, False, ("lte",)),
    "both silent for 10 s": (_silence, 10, _speak, 16, True, ("wifi", "lte")),
    "both silent for 10 s, wifi comes back": (_silence, 10, lambda wifi, lte: _speak(wifi), 16, True, ("wifi",)),
    "both silent for 10 s, lte comes back": (_silence, 10, lambda wifi, lte: _speak(lte), 16, True, ("lte",)),
    "both cut for 10 s": (_cut, 10, _mend, 16, True, ("wifi", "lte")),
}
# title: (the order in which carriers are lost, the network that comes back, with another address?): up to 3 s apart, and 6 to 8 s later
CARRIERS = {"carrier lost on %s, then on %s; %s comes back%s" % (*order, back, " with another address" if readdressed else ""):
            (order, back, readdressed)
            for order in (("wifi", "lte"), ("lte", "wifi")) for back in ("wifi", "lte") for readdressed in (False, True)}
FAULTS.update((title, _lose_carriers(*case)) for title, case in CARRIERS.items())
QUICK = ("wifi silent for 5 s", "both silent for 10 s", "carrier lost on wifi, then on lte; wifi comes back")


def _ways(title):
    """The ways in which it is tried. A TCP connection ends with its address."""
    _, _, readdressed = CARRIERS.get(title, (None, None, True))
    return WAYS if readdressed else (DIRECT, *WAYS)


def _unconfigure(lab):
    """Leaves the client addresses and default routes, as it is before anybody has typed anything."""
    for family in ("-4", "-6"):
        for rule in lab.client.run(["ip", family, "rule"]).stdout.splitlines():
            if " lookup 10" in rule:
                lab.client.run(["ip", family, "rule", "del", "priority", rule.split(":")[0]])
    lab.client.ip("mptcp endpoint flush", "mptcp limits set subflows 0 add_addr_accepted 0")


def _manage(lab):
    _unconfigure(lab)
    manager = lab.client.popen([lab.build.program("convertize"), "paths", "--manage", "--config", "none", "--device", "wifi,lte"],
                               name="paths")
    for address in (lab.client.wifi4, lab.client.lte4):
        manager.wait_log("+ ip mptcp endpoint add " + address)


def _start(lab, way, verb, back):
    """(client, server) of a transfer over both networks, or over `back` alone; on a busy machine that takes its time to begin."""
    host = lab.converter if way in (DIRECT, PLAIN) else lab.server
    protocol = "mptcp" if way == PLAIN else "tcp"
    if host is lab.server:
        lab.convertd(convertd_options(lab.build))
    server = lab.start_listening(host, [sys.executable, PROGRAM, "serve", protocol, SERVER_PORT], SERVER_PORT)
    if way in (MANAGED, BOUNDED):
        _manage(lab)
    own = [getattr(lab.client, back + "4")] if way == DIRECT else []
    client = lab.client.popen([sys.executable, PROGRAM, verb, protocol, host.addr4, SERVER_PORT, *own],
                              env=lab.converted(CONVERT_CACHE="none") if host is lab.server else None, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    links = [getattr(lab, back)] if way == DIRECT else [lab.wifi, lab.lte]
    wait_until(lambda: min(link.stats()[DIRECTIONS[verb][1]]["out_bytes"] for link in links) > CARRIES, 30, "bytes over each network")
    return client, server


def _findings(client, server, verb):
    """What the program has found on the side that received."""
    said, complaint = client.communicate(timeout=200)
    if verb == "put":
        wait_until(lambda: "arrivals" in server.log_text(), 200, "the server's findings")
        said = [line for line in server.log_text().splitlines() if "arrivals" in line][0]
    if not said:
        raise LabError("survive.py: %s" % complaint.decode())
    return json.loads(said)


def _carried(networks, way):
    return {network.name: network.link.stats()[way]["out_bytes"] for network in networks}


def _one(number, title, verb, way):
    """In a round: (gap in seconds, are the bytes exact?, is each network used that works in the end?)"""
    slow = title in CARRIERS
    fault, lasts, end, after, none_works, works = FAULTS[title](number) if slow else FAULTS[title]
    with Lab(wifi=SLOW_WIFI if slow else WIFI, lte=SLOW_LTE if slow else LTE, core=Link(delay_ms=1)) as lab:
        networks = [Network(lab, name, tables=way in (DIRECT, PLAIN, OURS)) for name in ("wifi", "lte")]
        for host in lab.hosts.values() if way == BOUNDED else ():
            for name, value in BOUNDS.items():
                host.sysctl(name, value)
        client, server = _start(lab, way, verb, works[0])
        with client:
            time.sleep(FAULT_AT)
            at = time.monotonic()
            fault(*networks)
            time.sleep(lasts)
            since = time.monotonic() if none_works else at
            end(*networks)
            until = time.monotonic() + after
            time.sleep(after - WATCHED)
            before = _carried(networks, DIRECTIONS[verb][1])
            time.sleep(max(0, until - time.monotonic()))
            carried = {name: count - before[name] for name, count in _carried(networks, DIRECTIONS[verb][1]).items()}
            for network in networks if slow else ():
                # so that a transfer that stands still ends
                network.find_carrier()
            found = _findings(client, server, verb)
    return longest_gap(found["arrivals"], since, until), found["exact"], all(carried[name] > CARRIES for name in works)


def _have_own_names():
    """Gives this process network namespaces that are named as those of the labs beside it are."""
    libc = ctypes.CDLL(None, use_errno=True)
    os.makedirs("/run/netns", exist_ok=True)
    # The sandbox shares the mounts below /run/netns (sandbox.py); the one made here must not reach the labs beside it.
    if (libc.unshare(CLONE_NEWNS) or libc.mount(None, b"/run/netns", None, MS_PRIVATE, None)
            or libc.mount(b"none", b"/run/netns", b"tmpfs", 0, None)):
        raise OSError(ctypes.get_errno(), "no mount namespace")


def run(bench):
    """The experiment."""
    titles = [title for title in FAULTS if not bench.quick or title in QUICK]
    rounds = ROUNDS_QUICK if bench.quick else ROUNDS
    cases = [(number, title, verb, way) for number in range(rounds) for title in titles for verb in DIRECTIONS for way in _ways(title)]
    results = {case[1:]: [] for case in cases}
    with concurrent.futures.ProcessPoolExecutor(SIDE_BY_SIDE, initializer=_have_own_names) as pool:
        started = [(case[1:], pool.submit(_one, *case)) for case in cases]
        for case, future in bench.over(started, label=lambda item: ", ".join((item[0][0], DIRECTIONS[item[0][1]][0], item[0][2]))):
            results[case].append(future.result())
    rows = []
    for (title, verb, way), found in results.items():
        gaps = [gap for gap, _, _ in found]
        bench.samples("%s, %s, %s" % (title, DIRECTIONS[verb][0], way), found)
        rows.append([title, DIRECTIONS[verb][0], way, len(found), "%.2f" % min(gaps), "%.2f" % median(gaps), "%.2f" % max(gaps),
                     sum(exact for _, exact, _ in found), sum(used for _, _, used in found)])
    bench.setting("runs of each", rounds)
    bench.setting("runs side by side", SIDE_BY_SIDE)
    bench.table("Longest gap in seconds, while something happens to the networks",
                ["what happens", "", "way", "tried", "least", "median", "most", "bytes exact", "all used again"], rows)
    for verb, (direction, _) in DIRECTIONS.items():
        bench.plot("bars", "Longest gap of a%s %s, median and extremes" % ("n" if verb == "put" else "", direction), {
            way: [[median(gaps), min(gaps), max(gaps)] for gaps in
                  ([gap for gap, _, _ in results[title, verb, way]] for title in titles)] for way in WAYS},
                   key=direction, categories=titles, ylabel="s")
