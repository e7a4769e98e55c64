#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertd_fairness.py - the client that uses most makes room: greedy prefixes and other clients, under convertd's default limits"""
import collections
import contextlib
import errno
import ipaddress
import json
import random
import socket
import threading
import time

from convertlab import Lab, Link, Veth, check, equal, kernel, long, main, wait_until
from convertlab.metrics import OPTIONS as METRICS, Metrics
from convertlab.peers import MPTCP, TCP, Client, Server, connect, converter, extended_header, reset

LOAD = "bench/tools/load/load"
# if a client ends amid its handshake, convertd doesn't learn that, and waits for it until these time-outs
LAB = ("--connect-timeout", "8", "--request-timeout", "8", "--allow-client", "::/0", "--allow-destination", "10.0.0.0/8", "--allow-destination", "fd00::/8")
WORLD = "fdaa::/16"  # addresses of clients; the lab's client has all of them
FREEBIND = {socket.AF_INET: (socket.IPPROTO_IP, 15), socket.AF_INET6: (socket.IPPROTO_IPV6, 78)}
PROMPT = 8  # seconds; on an idle machine milliseconds are enough
# Of so few, an eighth is unproven whenever the machine is slow: convertd would demand cookies, and keep most of the flood from pending.
FEW = ("--max-pending", "800", "--cookie-demand", "0")


@contextlib.contextmanager
def world():
    """Returns a lab whose client has all addresses of fdaa::/16 and 10.64.0.0/10."""
    with Lab(wifi=Veth(), lte=None, core=Veth()) as lab:
        for route in (WORLD, "10.64.0.0/10"):
            lab.client.run(["ip", "-6" if ":" in route else "-4", "route", "add", "local", route, "dev", "lo"])
        lab.converter.run(["ip", "-6", "route", "add", WORLD, "via", lab.client.wifi6])
        lab.converter.run(["ip", "route", "add", "10.64.0.0/10", "via", lab.client.wifi4])
        yield lab


def client_from(lab, source, protocol=TCP, delivery="syn"):
    """Returns a Client that connects from that address."""
    v6 = ":" in source
    client = Client(lab.client, lab.converter.addr6 if v6 else lab.converter.addr4, protocol, delivery)
    client.sock.setsockopt(*FREEBIND[socket.AF_INET6 if v6 else socket.AF_INET], 1)
    client.sock.bind((source, 0))
    return client


def addresses(network, bits, count):
    """Yields random addresses from the first `count` prefixes of `bits` bits of that network, without end."""
    network = ipaddress.ip_network(network)
    step = network.max_prefixlen - bits
    chance = random.Random(1)
    while True:
        # behind the prefix, each address is another one: a host may have as many as it likes
        rest = chance.randrange(1, 1 << min(step, 60)) if step else 0
        yield str(network.network_address + (chance.randrange(count) << step) + rest)


def abort(client):
    """Resets a client in any state: after a FIN alone, convertd would go on waiting for the server."""
    with contextlib.suppress(OSError):
        reset(client.sock)
    client.sock.close()


class Flood:
    """A thread that connects from one address after the other, sends these bytes each time, and keeps the last `most` connections."""

    def __init__(self, lab, sources, data, most=6000, delivery="syn"):
        self._lab, self._sources, self._data, self._most, self._delivery = lab, sources, data, most, delivery
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.opened = 0
        self.failed = None

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()

    def _run(self):
        kept = collections.deque()
        try:
            while not self._stop.is_set():
                client = client_from(self._lab, next(self._sources), (TCP, MPTCP)[self.opened % 2], self._delivery)
                client.sock.setblocking(False)
                try:
                    client.send(self._data)
                except OSError as error:
                    if error.errno not in (errno.EINPROGRESS, errno.ECONNRESET):
                        raise
                kept.append(client)
                self.opened += 1
                # at most some thousands a second, to leave convertd some CPU
                if self.opened % 50 == 0:
                    self._stop.wait(0.02)
                if len(kept) > self._most:
                    abort(kept.popleft())
        except Exception as error:  # pylint: disable=broad-exception-caught
            self.failed = error
        for client in kept:
            abort(client)


def serve_promptly(lab, server, source, protocol, delivery="syn"):
    """Checks that a client is connected to the server soon; returns the seconds that it took."""
    start = time.monotonic()
    with client_from(lab, source, protocol, delivery) as client:
        extended_header(client.send(server.connect(":" in source)).answer())
        took = time.monotonic() - start
        check(took < PROMPT, "%s, %s was served after %.1f s" % (source, client.name, took))
        server.accept().close()
    return took


def made_room(lab):
    """Returns how many sessions convertd has ended or refused because there were too many."""
    metrics = Metrics(lab.converter)
    return metrics("convertd_syns_total", fate="stopped") + sum(metrics("convertd_connections_ended_total", outcome=outcome)
                                                                for outcome in ("limit_pending", "limit_client_pending", "limit_errors"))


def flooded(lab, sources, strangers, *arguments, data=None, most=14000, room=2000):
    """Floods convertd, beyond its limit, and connects strangers meanwhile; returns a text about the slowest of these."""
    slowest = 0
    with Server(lab, 80) as server, converter(lab, *arguments, *METRICS, defaults=LAB):
        request = connect(lab.addresses.blackhole6, 80) if data is None else data
        # servers of both families answer first, so that convertd blames the flood's silent server, not its family
        for source in (lab.client.wifi6, lab.client.wifi4):
            serve_promptly(lab, server, source, TCP)
        with Flood(lab, sources, request, most, "syn" if request else "behind") as flood:
            wait_until(lambda: flood.failed or made_room(lab) >= room, 60, lambda: "%d to make room, %d have" % (room, made_room(lab)))
            for _ in range(5):
                opened = flood.opened
                for source in strangers:
                    for protocol in (TCP, MPTCP):
                        slowest = max(slowest, serve_promptly(lab, server, source, protocol))
                slowest = max(slowest, serve_promptly(lab, server, strangers[0], TCP, "behind"))
                wait_until(lambda: flood.failed or flood.opened > opened + 100, 20, "the flood to go on")  # pylint: disable=W0640
        if flood.failed:
            raise flood.failed
    return "the slowest of %d strangers after %d ms, among %d" % (5 * (2 * len(strangers) + 1), slowest * 1000, flood.opened)


# --- all that may be pending -------------------------------------------------------------------------------------------


@long
def test_a_household():
    """A flood from sixteen links of one /56, with convertd's default limits; neighbours and others are served."""
    with world() as lab:
        return flooded(lab, addresses("fdaa:1:2:300::/56", 64, 16), ("fdaa:1:2:400::1", "fdaa:1:3::1", lab.client.wifi4))


@long
def test_one_address():
    """A flood from one IPv4 address, or one IPv6 address; other addresses of its /24, or /56, are served."""
    with world() as lab:
        return "; ".join((flooded(lab, addresses("10.64.1.1/32", 32, 1), ("10.64.1.2", "10.65.0.1", lab.client.wifi6)),
                          flooded(lab, addresses("fdaa:1:2:300::1/128", 128, 1), ("fdaa:1:2:301::1", lab.client.wifi4))))


@long
def test_many_prefixes():
    """Floods from 256 households of a site, its links, a provider's sites, and a provider's IPv4 addresses; neighbours are served."""
    with world() as lab:
        return "; ".join(flooded(lab, addresses(network, bits, count), (stranger, lab.client.wifi4), *FEW, most=3000, room=300)
                         for network, bits, count, stranger in (("fdaa:1:2::/48", 56, 256, "fdaa:1:3::1"),
                                                                ("fdaa:1:2::/48", 64, 65536, "fdaa:1:3::1"),
                                                                ("fdaa:1::/32", 48, 65536, "fdaa:2::1"),
                                                                ("10.66.0.0/16", 32, 65536, "10.67.0.1")))


@long
def test_everywhere():
    """A flood from 64 providers at once; a stranger of another one is served."""
    with world() as lab:
        return flooded(lab, addresses("10.64.0.0/10", 32, 1 << 22), (lab.client.wifi6, lab.client.wifi4), *FEW, most=3000, room=300)


@long
def test_silent_ones():
    """A flood of connections that send nothing; at this rate newcomers push each out after about a quarter of a second."""
    with world() as lab:
        return flooded(lab, addresses("fdaa:1:2:300::/56", 64, 256), ("fdaa:1:2:400::1", lab.client.wifi4), *FEW, data=b"",
                       most=3000, room=300)


@long
def test_little_room():
    """A smaller limit, and one worker or four: sessions of other workers make room, too."""
    with world() as lab:
        return "; ".join(flooded(lab, addresses("fdaa:1:2:300::/56", 64, 16), ("fdaa:1:2:400::1", lab.client.wifi4),
                                 "--max-pending", "100", "--workers", workers, most=300, room=100) for workers in ("1", "4"))


# --- one address that needs much ------------------------------------------------------------------------------------------


def crowd(lab, at_once, connections, *options):
    """Opens this many connections at once from one address; returns the results of the load tool."""
    return json.loads(lab.client.run([lab.build.program(LOAD), "run", "--to", "%s:1234" % lab.converter.addr4, "--via",
                                      kernel.load_way("--mptcp" in options), "--server", "%s:%d" % (lab.server.addr4, 6000), "--concurrency", at_once,
                                      "--connections", connections, *options]).stdout)


@long
def test_many_users_of_one_address():
    """1,000 and 2,500 clients at once, with a server that is near, or far: all are served, none is reset."""
    for delay in (Veth(), Link(delay_ms=40)):
        with Lab(wifi=Veth(), lte=None, core=delay) as lab:
            lab.start_listening(lab.server, [lab.build.program(LOAD), "serve", 6000], 6000)
            with converter(lab, "--log-rate", "10", defaults=LAB):
                for at_once in (1000, 2500):
                    for options in ((), ("--mptcp",)):
                        result = crowd(lab, at_once, 3 * at_once, *options)
                        equal(result["failed"], 0, "failed of %d at once (%s): %s" % (at_once, options, result["errors"]))


# --- open connections ------------------------------------------------------------------------------------------------------


@long
def test_open_connections():
    """One household has all connections of --max-connections; strangers take the places of idle ones, and no busy one ends."""
    with world() as lab, Server(lab, 80, backlog=1000) as server, contextlib.ExitStack() as stack:
        with converter(lab, "--max-connections", "200", "--idle-timeout", "8", *METRICS, defaults=LAB):
            pairs = []
            sources = addresses("fdaa:1:2:300::/56", 64, 16)
            for i in range(200):
                client = stack.enter_context(client_from(lab, next(sources), (TCP, MPTCP)[i % 2]))
                extended_header(client.send(server.connect(True)).answer())
                pairs.append((client, stack.enter_context(server.accept())))
            busy = pairs[:20]

            def moving():
                for client, sock in busy:
                    sock.sendall(b"x")
                    equal(client.read(1), b"x", "a busy one")
                return Metrics(lab.converter)("convertd_connections", state="relay")
            # convertd looks once a second which sessions move, and doesn't say when: the busy ones send some times a second, for two looks
            end = time.monotonic() + 2.5
            wait_until(lambda: moving() and time.monotonic() > end, 10, "two looks", interval=0.1)
            for source in ("fdaa:1:2:400::1", lab.client.wifi4, lab.client.wifi6):
                for protocol in (TCP, MPTCP) * 3:
                    client = stack.enter_context(client_from(lab, source, protocol))
                    extended_header(client.send(server.connect(":" in source)).answer())
                    stack.enter_context(server.accept())
            wait_until(lambda: moving() <= 200, 5, "200 at most")
            # the household that has most gets no place
            client = stack.enter_context(client_from(lab, next(sources)))
            equal(client.send(server.connect(True)).answer()[4:7].hex(), "1e0140", "one more of the greedy one")
            for client, sock in pairs:
                reset(client.sock)


if __name__ == "__main__":
    main()
