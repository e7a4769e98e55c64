#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertd_limits.py - the limits for one client, and for all together; floods, and clients that are served meanwhile"""
import contextlib
import os
import select
import signal
import socket
import time

from convertlab import Lab, Link, between, check, equal, kernel, long, main, need, wait_until, waits
from convertlab.metrics import OPTIONS as METRICS, Metrics
from convertlab.peers import (MPTCP, TCP, Client, Forger, Server, connect, converter, descriptors, error, extended_header,
                              memory, message, octets, readable)

EXCEEDED = 0x40
DELAY = 7
INFO = octets("01010000")
LAB = ("--allow-client", "::/0", "--allow-destination", "10.0.0.0/8", "--allow-destination", "fd00::/8")
UNLIMITED = ("--max-connections-per-client", "0", "--max-pending-per-client", "0", "--max-errors-per-client", "0")


def near(**options):
    """Returns a lab with both of the client's links, which are too fast to matter."""
    options.setdefault("lte", Link(delay_ms=0.5))
    return Lab(wifi=Link(delay_ms=0.5), core=Link(delay_ms=0.1), **options)


class Limited:
    """convertd with these options and otherwise its default limits, and its clients, which are closed before it ends."""

    def __init__(self, lab, *arguments, **options):
        self.lab = lab
        self._stack = contextlib.ExitStack()
        self._converter = converter(lab, "--retry-delay", str(DELAY), *arguments, defaults=LAB, **options)

    def __enter__(self):
        self.process = self._stack.enter_context(self._converter)
        self.at_start = descriptors(self.process)
        return self

    def __exit__(self, *error_):
        return self._stack.__exit__(*error_)

    def client(self, address=None, protocol=TCP, delivery="syn", source=None):
        """Returns a new Client, which is reset at the end: after a close convertd would go on waiting for the server's answer."""
        client = Client(self.lab.client, address or self.lab.converter.addr4, protocol, delivery)
        if source:
            client.sock.bind((source, 0))
        self._stack.callback(abort, client)
        return client

    def keep(self, sock):
        """Closes a server's socket at the end, too."""
        return self._stack.enter_context(sock)

    def wait_descriptors(self, count):
        """Waits until convertd has this many more descriptors than at the start."""
        wait_until(lambda: descriptors(self.process) == self.at_start + count, 10,
                   lambda: "%d descriptors, there are %d" % (count, descriptors(self.process) - self.at_start))


def abort(client):
    """Resets the client if it is open."""
    with contextlib.suppress(OSError):
        client.reset()
    client.sock.close()


def exceeded(client, request, what):
    """Checks that the answer is Resource Exceeded with the delay, and that the stream ends."""
    client.send(request)
    equal(client.answer().hex(), error(EXCEEDED, DELAY).hex(), what)
    equal(client.end(), (b"", "closed"), what)
    client.sock.close()


def silent_client(limited, protocol):
    """Returns a Client that connects and sends nothing, or None if it was reset at once."""
    client = limited.client(None, protocol, "behind")
    try:
        return client.send(b"")
    except ConnectionResetError:
        return None


def ended(client, what):
    """Checks that the client was reset without an answer."""
    if client:
        equal(client.end(), (b"", "reset"), what)
        client.sock.close()


def replies_until_reset(limited, request, protocol=TCP, sources=(None,)):
    """Sends the request again and again, from these addresses in turn, until it is reset without an answer. Returns how often it was answered."""
    for count in range(100):
        client = limited.client(None, protocol, source=sources[count % len(sources)]).send(request)
        answer, how = client.end()
        client.sock.close()
        if not answer:
            equal(how, "reset", "the end without an answer to %s" % request.hex())
            return count
    raise AssertionError("100 answers to %s without an end" % request.hex())


def serve(client, server):
    """Checks that the client is connected to the server; returns the server's socket."""
    extended_header(client.send(server.connect()).answer())
    return server.accept()


def serve_once(client, server):
    """Checks that a client is connected to the server, and closes both sides."""
    serve(client, server).close()
    client.sock.close()


# --- requests that wait -------------------------------------------------------------------------------------------


def test_pending_of_a_client():
    """Requests for a silent server. An address in another prefix is another client; another IPv6 address in the same /64 isn't."""
    with near() as lab, Server(lab, 80) as server:
        lab.client.run(["ip", "addr", "add", "fd01::77/64", "dev", "wifi", "nodad"])
        for address, request, same, other in (
                (lab.converter.addr4, connect(lab.addresses.blackhole4, 80), lab.client.wifi4, lab.client.lte4),
                (lab.converter.addr6, connect(lab.addresses.blackhole6, 80), "fd01::77", lab.client.lte6)):
            # one worker forgets an answered client before it accepts the next one
            with Limited(lab, "--max-pending-per-client", "4", "--workers", "1") as limited:
                waiting = [limited.client(address, (TCP, MPTCP)[i % 2]).send(request) for i in range(4)]
                limited.wait_descriptors(8)
                for protocol in kernel.protocols_with_fastopen():
                    exceeded(limited.client(address, protocol, source=same), request, "the fifth")
                for protocol in (TCP, MPTCP):
                    # a client that hasn't sent its whole request may not wait, either
                    ended(limited.client(address, protocol).send(request[:20]), "a part of the fifth")
                    serve_once(limited.client(address, protocol, source=other), server)
                waiting[0].reset()
                wait_until(lambda: "client lost while connecting" in limited.process.log_text(), 5, "one to go")  # pylint: disable=W0640
                # connected clients aren't pending
                for protocol in (TCP, MPTCP) * 2:
                    limited.keep(serve(limited.client(address, protocol), server))


def test_prefixes_that_make_a_client():
    """By default a client is a /32 or a /64; with a shorter prefix, the addresses of both links are one client."""
    with near() as lab:
        request = connect(lab.addresses.blackhole4, 80)
        for prefix, address, sources in (("--client-prefix-v4=8", lab.converter.addr4, ("10.1.0.2", "10.2.0.2")),
                                         ("--client-prefix-v6=8", lab.converter.addr6, ("fd01::2", "fd02::2"))):
            with Limited(lab, "--max-pending-per-client", "1", prefix) as limited:
                limited.client(address, source=sources[0]).send(request)
                limited.wait_descriptors(2)
                exceeded(limited.client(address, source=sources[1]), request, "the other address")


def test_silent_clients():
    """Too many clients send nothing, or a part of a request: the oldest have to go, and a whole request is served at once."""
    with near() as lab, Server(lab, 80) as server:
        # one worker: of several, one without a CPU would accept its old clients last, as if they were young
        with Limited(lab, "--max-pending", "16", "--workers", "1", *UNLIMITED) as limited:
            silent = []
            for i in range(100):
                client = limited.client((lab.converter.addr4, lab.converter.addr6)[i // 4 % 2], (TCP, MPTCP)[i % 2],
                                        "behind" if i % 3 else "syn")
                silent.append(client.send(b"" if i % 3 == 1 else server.connect()[:10]))
            limited.wait_descriptors(16)
            wait_until(lambda: sum(not readable(client.sock, 0) for client in silent) == 16, 5, "84 to go")
            staying = [i for i, client in enumerate(silent) if not readable(client.sock, 0)]
            # the worker accepts from several sockets, so neighbours may change places
            check(staying[0] >= 80, "an old one stayed: %s" % staying)
            for i, client in enumerate(silent):
                if i not in staying:
                    ended(client, "an old one")
            silent = [silent[i] for i in staying]
            for protocol in (TCP, MPTCP):
                for delivery in ("syn", "behind", "syn-bytewise"):
                    sent_again = lab.client.counters()["TcpExtTCPSynRetrans"]
                    overflows = lab.converter.counters()["TcpExtListenOverflows"]
                    client = limited.client(None, protocol, delivery)
                    serve(client, server).close()
                    check(lab.client.counters()["TcpExtTCPSynRetrans"] == sent_again or not client.first_syn_is_lost(),
                          "the first SYN was lost: it wasn't served at once (%s)" % client.name)
                    client.sock.close()
                    equal(lab.converter.counters()["TcpExtListenOverflows"], overflows, "full queues (%s)" % client.name)
            # each client whose request took a while has pushed one out, an older one
            check(not readable(silent[-1].sock, 0), "the newest went")
            wait_until(lambda: limited.process.log_text().count("is reset: too many pending requests") == 1, 5, "one line")
        # one client's limit: the newest have to go
        with Limited(lab, "--max-pending-per-client", "8", "--request-timeout", "60") as limited:
            silent = [silent_client(limited, (TCP, MPTCP)[i % 2]) for i in range(20)]
            check(all(silent[:8]), "one of the first went")
            for client in silent[8:]:
                ended(client, "one too many")
            serve_once(limited.client(source=lab.client.lte4), server)
            limited.wait_descriptors(8)


# --- connections --------------------------------------------------------------------------------------------------


def test_connections():
    """The limits for a client and for all: a closed connection makes room. If one prefix has all, its idle ones make room for another's."""
    with near() as lab, Server(lab, 80) as server:
        for option, other in (("--max-connections-per-client", True), ("--max-connections", False)):
            with Limited(lab, option, "6") as limited:
                pairs = []
                for i in range(6):
                    client = limited.client(None, (TCP, MPTCP)[i % 2])
                    pairs.append((client, limited.keep(serve(client, server))))
                for protocol in kernel.protocols_with_fastopen():
                    exceeded(limited.client(None, protocol), server.connect(), "the seventh")
                for protocol in (TCP, MPTCP):
                    stranger = limited.client(None, protocol, source=lab.client.lte4)
                    serve_once(stranger, server)
                    left = ":%d to " % stranger.port
                    wait_until(lambda: left in limited.process.log_text(), 5, "the stranger to go")  # pylint: disable=W0640
                    if not other:
                        # the one that was idle for longest; and when the stranger goes, its place is free
                        ended(pairs[0][0], "the oldest")
                        pairs.pop(0)
                        pairs.append((limited.client(None, protocol), None))
                        pairs[-1] = pairs[-1][0], limited.keep(serve(pairs[-1][0], server))
                    ended(limited.client(None, protocol).send(server.connect()[:20]), "a part of it")
                # open connections go on
                for client, sock in pairs:
                    sock.sendall(b"x")
                    equal(client.read(1), b"x", client.name)
                pairs[0][1].close()
                pairs[0][0].sock.close()
                # its own line: others have ended before
                gone = ":%d to " % pairs[0][0].port
                wait_until(lambda: gone in limited.process.log_text(), 5, "one to go")  # pylint: disable=W0640
                limited.keep(serve(limited.client(), server))


@kernel.needs("fastopen")
def test_refused_before_the_third_ack():
    """Refused unproven clients take no place: a newcomer displaces one connection of the client that has them all."""
    with near() as lab, Server(lab, 80) as server, Forger(lab.client, lab.converter.addr4) as forger, \
            Limited(lab, "--max-connections", "6", "--client-prefix-v4", "8", "--hold-syn", "off", *METRICS) as limited:
        lab.converter.ip("route add 10.50.0.0/16 via %s" % lab.client.wifi4)
        pairs = [(client, limited.keep(serve(client, server))) for client in (limited.client() for _ in range(6))]
        for port in (1024, 1025, 1026):
            forger.syn("10.50.0.1", port, server.connect())
        wait_until(lambda: Metrics(lab.converter)("convertd_pending_requests") == 3, 5, "three refused requests")
        serve_once(limited.client(lab.converter.addr6), server)
        ended(pairs.pop(0)[0], "the oldest")
        for client, sock in pairs:
            sock.sendall(b"x")
            equal(client.read(1), b"x", client.name)


def test_descriptors_are_enough():
    """Without --max-connections, the limit of open files decides: no client has to wait for a descriptor."""
    need("prlimit", "util-linux")
    with near() as lab, Server(lab, 80) as server:
        with Limited(lab, "--workers", "1", wrapper=["prlimit", "--nofile=140:140"]) as limited:
            pairs = []
            while True:
                client = limited.client()
                answer = client.send(server.connect()).answer()
                if answer[4] != 0x14:
                    break
                pairs.append((client, limited.keep(server.accept())))
                check(len(pairs) < 70, "70 connections with 140 descriptors")
            equal(answer.hex(), error(EXCEEDED, DELAY).hex(), "the first that is refused")
            # convertd has some 40 of its own
            check(len(pairs) > 45, "%d connections with 140 descriptors" % len(pairs))
            # silent clients are reset, too, and don't wait
            for client in [silent_client(limited, TCP) for _ in range(40)]:
                ended(client, "silent")
            check("clients have to wait" not in limited.process.log_text(), limited.process.log_text())


def test_out_of_descriptors_is_told():
    """Many more clients than open files allow: besides a line for each, convertd logs one warning, with the remedy."""
    need("prlimit", "util-linux")
    for arguments, wrapper, words in (
            ((), ["prlimit", "--nofile=300:300"], "the limit of open files (300)"), (("--max-connections", "50"), (), "--max-connections")):
        with near() as lab, Server(lab, 80, backlog=512) as server, \
                Limited(lab, "--workers", "2", "--max-errors-per-client", "0", *arguments, wrapper=wrapper) as limited:
            for i in range(200):
                client = Client(lab.client, lab.converter.addr4, (TCP, MPTCP)[i % 2]).send(server.connect())
                with contextlib.suppress(ConnectionResetError):
                    if client.answer()[4] == 0x14:
                        limited.keep(client.sock)
                        limited.keep(server.accept())
                        continue
                client.sock.close()
            log = limited.process.log_text()
            refused = log.count(": too many connections")
            # clients whose requests aren't in SYNs are reset instead
            check(refused > (50 if kernel.has("fastopen") else 25), "%d were refused" % refused)
            told = [line for line in log.splitlines() if "warning: all " in line]
            check(len(told) == 1 and words in told[0] and "raise" in told[0], "%s\n%s" % (told, log[-2000:]))


def test_descriptors_are_for_connections():
    """convertd keeps all but a few of many open files for connections, two for each."""
    need("prlimit", "util-linux")
    with near() as lab, Limited(lab, "--workers", "1", *METRICS, wrapper=["prlimit", "--nofile=4096:4096"]):
        most = Metrics(lab.converter)("convertd_max_connections")
        check(0.96 * 4096 / 2 < most < 4096 / 2, "%d connections with 4,096 descriptors" % most)


# --- error replies ------------------------------------------------------------------------------------------------


def test_error_replies():
    """A client may get five seconds' worth of error replies at once, then resets, and later some again; another client has its own."""
    with near() as lab:
        request = connect(lab.server.addr4, lab.addresses.refused_port)
        with Limited(lab, "--max-errors-per-client", "2") as limited:
            start = time.monotonic()
            for kind in (request, message(INFO), octets("01022263 00010000"), connect("192.168.0.1", 80), request) * 2:
                client = limited.client(None, MPTCP).send(kind)
                check(client.answer(), "no answer to %s" % kind.hex())
                client.sock.close()
            # meanwhile the client earns some again, two a second
            count = 10 + replies_until_reset(limited, request)
            for protocol in (TCP, MPTCP):
                for kind in (octets("01012263"), connect("192.168.0.1", 80)):
                    count += replies_until_reset(limited, kind, protocol)
                    between(count, 10, 10 + 2 * (time.monotonic() - start) + 1, "error replies")
                client = limited.client(None, protocol, source=lab.client.lte4).send(request)
                equal(client.answer(), error(0x60), "another client")

            def answered():
                with limited.client().send(request) as again:
                    with contextlib.suppress(ConnectionResetError):
                        return again.answer()
                return None
            wait_until(answered, 5, "another error reply")
        with Limited(lab, "--max-errors", "1") as limited:
            start = time.monotonic()
            for i in range(5):
                client = limited.client(source=(lab.client.wifi4, lab.client.lte4)[i % 2]).send(request)
                equal(client.answer(), error(0x60), "error %d" % i)
            count = 5 + replies_until_reset(limited, request, sources=(lab.client.lte4, lab.client.wifi4))
            between(count, 5, 5 + (time.monotonic() - start) + 1, "error replies to all")


def test_refused_clients_that_stay():
    """They neither read nor close: convertd keeps as many as may be pending, for 5 s, and resets the others."""
    with near() as lab:
        request = connect(lab.server.addr4, lab.addresses.refused_port)
        with Limited(lab, "--max-pending-per-client", "10", "--max-errors-per-client", "0") as limited:
            staying = [limited.client(None, (TCP, MPTCP)[i % 2]).send((request, b"GET / HTTP/1.1\r\n\r\n")[i % 3 == 2])
                       for i in range(40)]
            wait_until(lambda: sum(readable(client.sock, 0) for client in staying) == 40, 5, "answers or resets for all")
            check(descriptors(limited.process) <= limited.at_start + 10, "descriptors: %d" % descriptors(limited.process))
            limited.wait_descriptors(0)


# --- floods -------------------------------------------------------------------------------------------------------


FORGED = 3000


@long
@waits
def test_forged_syns():
    """SYNs with requests, each from another address, that never complete their handshakes.

    The kernel keeps half of --max-pending in this state, and leaves the data of other SYNs out. So few requests reach the server, memory
    stays as it is, and clients are served meanwhile.
    """
    with near() as lab, Server(lab, 80, backlog=4096) as server:
        lab.converter.ip("route add 10.50.0.0/16 via %s" % lab.client.wifi4)
        with Limited(lab, "--max-pending", "64", "--connect-timeout", "2", "--request-timeout", "2") as limited:
            before = memory(limited.process)
            with lab.capture(lab.converter, "core", "tcp") as capture, Forger(lab.client, lab.converter.addr4) as forger:
                for i in range(FORGED):
                    forger.syn("10.50.%d.%d" % (i // 250, i % 250 + 1), 1024 + i, server.connect())
                    if i % 1000 == 999:
                        for protocol in (TCP, MPTCP):
                            client = limited.client(None, protocol)
                            serve_among(client, server).close()
                            client.sock.close()
            asked = {packet.sport for packet in capture.packets() if packet.syn and packet.dport == 80}
            check(6 < len(asked) < 300, "%d of %d forged requests reached the server" % (len(asked) - 6, FORGED))
            grown = memory(limited.process) - before
            # AddressSanitizer keeps what is freed
            check(grown < (16 if os.environ.get("SANITIZER_PRELOAD") else 1) << 20, "memory grew by %d" % grown)
            limited.wait_descriptors(0)
            return "%d of %d asked the server, %d KB" % (len(asked) - 6, FORGED, grown >> 10)


def serve_among(client, server):
    """As serve(), if the server has other connections, too: returns the one that brings the client's bytes."""
    extended_header(client.send(server.connect() + b"it is me").answer())
    accepted = []
    with contextlib.ExitStack() as others:
        while True:
            # a new connection, or bytes of an accepted one
            ready, _, _ = select.select([server.sock, *accepted], [], [], 10)
            check(ready, "no sign of the client's connection")
            for sock in ready:
                if sock is server.sock:
                    accepted.append(others.enter_context(server.accept()))
                    continue
                accepted.remove(sock)
                with contextlib.suppress(ConnectionResetError):
                    if sock.recv(8) == b"it is me":
                        return sock.dup()


@kernel.needs("fastopen")
def test_forged_syns_are_not_multiplied():
    """Section 9.3: SYNs to the server aren't longer than the client's, and repeated twice at most until its handshake is complete."""
    with near() as lab:
        lab.converter.ip("route add 10.50.0.0/16 via %s" % lab.client.wifi4)
        with Limited(lab, "--connect-timeout", "5") as limited:
            with lab.capture(lab.converter, "core", "tcp") as capture, Forger(lab.client, lab.converter.addr4) as forger:
                for i in range(5):
                    forger.syn("10.50.0.%d" % (i + 1), 1024, connect(lab.addresses.blackhole4, 100 + i))
                # a server answers, so that convertd blames the silent ones, not their family
                with Client(lab.client, lab.converter.addr4) as first:
                    equal(first.send(connect(lab.server.addr4, 9)).answer(), error(0x60), "the answer of a server")
                real = [limited.client(None, protocol).send(connect(lab.addresses.blackhole4, 200 + protocol % 100))
                        for protocol in (TCP, MPTCP)]
                for client in real:
                    equal(client.answer(), error(0x41), "the answer after 5 s")
                    client.sock.close()
                wait_until(lambda: limited.process.log_text().count("Network Failure") == 7, 10, "the end of all")
            count = {}
            for packet in capture.packets():
                if packet.syn:
                    count[packet.dport] = count.get(packet.dport, 0) + 1
                    # the forged SYN has 68 bytes, the clients' more
                    check(packet.size <= 68, "a SYN of %d bytes to the server" % packet.size)
            for i in range(5):
                check(count[100 + i] <= 3, "SYNs for forged request %d: %d" % (i, count[100 + i]))
            for protocol in (TCP, MPTCP):
                check(count[200 + protocol % 100] >= 4, "SYNs for a client's: %s" % count)


# --- relays on which nothing moves ----------------------------------------------------------------------------------


def test_clients_that_never_read():
    """Each client asks for a long answer, and costs bounded memory; convertd resets it after --stall-timeout, unless it reads slowly."""
    clients = 60
    with near() as lab:
        lab.http()
        # The limits of memory are out of reach: on a busy machine they would end one of the clients before the stall time-out does.
        with Limited(lab, "--stall-timeout", "2", "--max-memory", "4096", "--max-memory-per-client", "4096") as limited:
            before = memory(limited.process)
            request = connect(lab.server.addr4, 80) + b"GET /bytes/20000000 HTTP/1.0\r\n\r\n"
            stalled = []
            for i in range(clients):
                client = limited.client(None, (TCP, MPTCP)[i % 2])
                client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 20000)
                stalled.append(client.send(request))
            slow = stalled.pop(), stalled.pop()
            for client in slow:
                extended_header(client.answer())
            grown = 0

            def read_until(condition, what):
                """Reads slowly, some times a second, until the condition holds."""
                def look():
                    nonlocal grown
                    for client in slow:
                        check(client.read(20000), "a slow reader was ended (%s)" % client.name)
                    grown = max(grown, memory(limited.process) - before)
                    return condition()
                wait_until(look, 30, what, interval=0.2)
            read_until(lambda: limited.process.log_text().count("client takes nothing") >= clients - 2, "the stalled ones to be ended")
            # the bytes of one read for each, and the allocator's share
            check(grown < clients * (256 << 10) + (2 << 20), "memory grew by %d KB" % (grown >> 10))
            # two slow ones: their sockets, and the pipes through which bytes are on their way
            read_until(lambda: 4 <= descriptors(limited.process) - limited.at_start <= 8,
                       lambda: "4 to 8 descriptors more, there are %d" % (descriptors(limited.process) - limited.at_start))
            for client in stalled:
                equal(client.end()[1], "reset", "the end (%s)" % client.name)
            return "%d KB for %d clients" % (grown >> 10, clients)


def test_servers_that_never_read():
    """The same, for servers."""
    with near() as lab, Server(lab, 80, SO_RCVBUF=20000) as server:
        with Limited(lab, "--stall-timeout", "1") as limited:
            for protocol in (TCP, MPTCP):
                client = limited.client(None, protocol)
                limited.keep(serve(client, server))
                client.sock.settimeout(0.1)
                with contextlib.suppress(TimeoutError, ConnectionResetError, BrokenPipeError):
                    while True:
                        client.sock.sendall(bytes(65536))
            wait_until(lambda: limited.process.log_text().count("server takes nothing") == 2, 10, "a line for each")
            limited.wait_descriptors(0)


def move_until(limited, pairs, text, count):
    """Has a byte relayed on each of these sessions, again and again, until convertd's log has the text so many times, and once more."""
    def moved():
        for client, sock in pairs:
            sock.sendall(b"x")
            equal(client.read(1), b"x", "a session on which something moves")
        return limited.process.log_text().count(text) >= count
    wait_until(moved, 20, lambda: "%d lines \"%s\":\n%s" % (count, text, limited.process.log_text()), interval=0.02)
    moved()
    equal(limited.process.log_text().count(text), count, "lines \"%s\"" % text)


def test_half_closed():
    """convertd ends half-closed sessions after their time-out; they go on as long as something moves, for two time-outs here."""
    with near() as lab, Server(lab, 80) as server, Limited(lab, "--half-close-timeout", "2") as limited:
        pairs = []
        for protocol in (TCP, MPTCP):
            for half in ("client", "server", "client", "none"):
                client = limited.client(None, protocol)
                pairs.append((half, client, limited.keep(serve(client, server))))
                if half == "client":
                    client.shutdown()
                elif half == "server":
                    pairs[-1][2].shutdown(socket.SHUT_WR)
        lively = [pair[1:] for pair in (pairs.pop(2), pairs.pop(5))]
        move_until(limited, lively, "half-closed, and nothing moves", 4)
        for half, client, sock in pairs:
            if half == "none":
                sock.sendall(b"x")
                equal(client.read(1), b"x", "an open session")
                client.shutdown()
        move_until(limited, lively, "half-closed, and nothing moves", 6)


def test_idle():
    """convertd ends idle sessions after their time-out; sessions go on as long as something moves, for two time-outs here."""
    with near() as lab, Server(lab, 80) as server, Limited(lab, "--idle-timeout", "2") as limited:
        def new(protocol):
            client = limited.client(None, protocol)
            return client, limited.keep(serve(client, server))
        lively = [new(MPTCP)]
        idle = [new(protocol) for protocol in (TCP, MPTCP)]
        move_until(limited, lively, "s: idle", 2)
        idle.append(new(TCP))
        move_until(limited, lively, "s: idle", 3)
        for client, sock in idle:
            ended(client, "an idle session")
            with contextlib.suppress(ConnectionResetError):
                check(not sock.recv(1), "the server sees data")


def test_time_outs_change():
    """A reload: open sessions get the new time-outs."""
    with near() as lab, Server(lab, 80) as server:
        path = lab.directory + "/time-outs"
        with open(path, "w", encoding="ascii") as file:
            file.write("stall-timeout 0\nhalf-close-timeout 0\n")
        with Limited(lab, "--config", path) as limited:
            client = limited.client(None, MPTCP)
            limited.keep(serve(client, server))
            with open(path, "w", encoding="ascii") as file:
                file.write("idle-timeout 1\n")
            limited.process.send_signal(signal.SIGHUP)
            ended(client, "an idle session from before the reload")


# --- change ------------------------------------------------------------------------------------------------------


def test_limits_change():
    """A reload: new clients meet the new limits, and no session ends."""
    with near() as lab, Server(lab, 80) as server:
        path = lab.directory + "/limits"

        def write(limit):
            with open(path, "w", encoding="ascii") as file:
                file.write("max-connections-per-client %d\n" % limit)
        write(2)
        with Limited(lab, "--config", path) as limited:
            pairs = [(client, limited.keep(serve(client, server))) for client in (limited.client(), limited.client())]
            exceeded(limited.client(), server.connect(), "the third")
            for limit, more in ((3, True), (1, False)):
                write(limit)
                count = limited.process.log_text().count("reloaded")
                limited.process.send_signal(signal.SIGHUP)
                wait_until(lambda: limited.process.log_text().count("reloaded") > count, 5, "the reload")  # pylint: disable=W0640
                if more:
                    client = limited.client()
                    pairs.append((client, limited.keep(serve(client, server))))
                exceeded(limited.client(), server.connect(), "one more than %d" % limit)
                for client, sock in pairs:
                    sock.sendall(b"x")
                    equal(client.read(1), b"x", "an open session")


if __name__ == "__main__":
    main()
