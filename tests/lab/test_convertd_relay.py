#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertd_relay.py - convertd relays all bytes and both ends of the streams between client and server, and in time"""
import os
import select
import signal
import socket
import threading

from convertlab import Lab, Link, check, equal, kernel, long, main, need, same_data, servers, wait_until, waits
from convertlab.peers import (MPTCP, TCP, Client, Server, await_closed, clients, connect, connected, connections, converter, descriptors, ended,
                              error, extended_header, octets, read_exactly, readable, reset, unsent)

INFO = octets("01010000")
SANITIZED = bool(os.environ.get("SANITIZER_PRELOAD"))


def near(core_ms=0.1, **options):
    """Returns a lab whose links are too fast to matter."""
    return Lab(wifi=Link(delay_ms=0.5), lte=None, core=Link(delay_ms=core_ms), **options)


# --- bytes ---------------------------------------------------------------------------------------------------


def test_early_data():
    """The bytes behind the TLVs reach the server in order, once, before all others, even if they are more than a SYN takes."""
    with near(core_ms=5) as lab, Server(lab, 80) as server, converter(lab):
        for size in (1, 700, 5000, 300000):
            early = servers.pattern(size)
            for client in clients(lab, deliveries=["syn", "behind"] + ["bytewise", "syn-bytewise"] * (size < 1000)):
                thread = threading.Thread(target=client.send, args=[server.connect() + early])
                thread.start()
                sock = server.accept()
                thread.join()
                client.sock.sendall(b"and this")
                client.shutdown()
                data, how = ended(sock)
                same_data(data == early + b"and this" and how == "closed",
                      "%d bytes of %d, %s (%s)" % (len(data), size + 8, how, client.name))
                extended_header(client.answer())
                sock.close()
                equal(client.end(), (b"", "closed"), client.name)


@kernel.needs("fastopen")
def test_early_data_in_the_syn_arrives_with_the_handshake():
    """Early data is in the client's first segment, and in the converter's first segment with data to the server."""
    with near() as lab, Server(lab, 80) as server, converter(lab):
        for protocol in (TCP, MPTCP):
            with lab.capture(lab.client, "wifi", "tcp") as first, lab.capture(lab.converter, "core", "tcp") as second:
                client, sock = connected(lab, server, protocol, early=b"early")
                equal(sock.recv(100), b"early", "the server's bytes")
                client.sock.close()
                sock.close()
            check(first.packets()[0].syn and first.packets()[0].payload.endswith(b"early"), "not in the SYN")
            carriers = [packet.payload for packet in second.packets() if packet.dport == 80 and packet.payload]
            equal(carriers, [b"early"], "the segments with data to the server")


def test_server_that_speaks_first():
    """The server's bytes come right behind the response, and none are lost."""
    greeting = servers.pattern(100000)
    with near() as lab, Server(lab, 80) as server, converter(lab):
        for client in clients(lab):
            client.send(server.connect())
            sock = server.accept()
            sock.sendall(greeting)
            sock.close()
            extended_header(client.answer())
            check(client.end() == (greeting, "closed"), "the greeting differs (%s)" % client.name)


def test_urgent_data():
    """Urgent data arrives in its place in the stream, among few bytes or many, and the bytes behind it follow."""
    with near() as lab, Server(lab, 80) as server, converter(lab):
        for size in (10, 3000000):
            data = servers.pattern(size)
            for protocol in (TCP, MPTCP):
                for down in (False, True):
                    client, sock = connected(lab, server, protocol)
                    source, sink = (sock, client.sock) if down else (client.sock, sock)

                    def send(source=source, data=data):
                        source.sendall(data)
                        source.send(b"urgent", socket.MSG_OOB)
                        source.sendall(data)
                        source.shutdown(socket.SHUT_WR)
                    sender = threading.Thread(target=send)
                    sender.start()
                    got, how = ended(sink)
                    sender.join()
                    same_data(got == data + b"urgent" + data and how == "closed", "%d bytes of %d, or others, %s (%s, %s)" % (
                        len(got), 2 * size + 6, how, client.name, "down" if down else "up"))
                    client.sock.close()
                    sock.close()


# --- orderly ends ----------------------------------------------------------------------------------------------


def test_half_close_by_the_client():
    """A client's FIN, right behind its request or later, reaches the server, whose later bytes still reach the client."""
    with near(core_ms=10) as lab, Server(lab, 80) as server, converter(lab):
        for moment in ("with the request", "connected"):
            for client in clients(lab, deliveries=["syn", "behind"]):
                client.send(server.connect() + b"question")
                if moment == "with the request":
                    client.shutdown()
                sock = server.accept()
                extended_header(client.answer())
                if moment == "connected":
                    client.shutdown()
                equal(ended(sock), (b"question", "closed"), "the server's bytes, and the end (%s, %s)" % (moment, client.name))
                for _ in range(3):
                    sock.sendall(b"answer")
                    equal(client.read(6), b"answer", client.name)
                sock.close()
                equal(client.end(), (b"", "closed"), client.name)


def test_half_close_by_the_server():
    with near() as lab, Server(lab, 80) as server, converter(lab):
        for client in clients(lab, deliveries=["syn", "behind"]):
            client.send(server.connect())
            sock = server.accept()
            sock.sendall(b"bye")
            sock.shutdown(socket.SHUT_WR)
            extended_header(client.answer())
            equal(client.end(), (b"bye", "closed"), client.name)
            for _ in range(3):
                client.sock.sendall(b"more")
                equal(sock.recv(100), b"more", client.name)
            client.sock.close()
            equal(ended(sock), (b"", "closed"), "the end at the server (%s)" % client.name)
            sock.close()


# --- resets ------------------------------------------------------------------------------------------------------


def test_reset_by_the_server():
    """The client gets the bytes before the reset, and then a reset, on MPTCP with MP_FASTCLOSE."""
    with near() as lab, Server(lab, 80) as server, converter(lab):
        for protocol in (TCP, MPTCP):
            for before in (b"", b"half an answer", servers.pattern(300000)):
                with lab.capture(lab.client, "wifi", "tcp") as capture:
                    client, sock = connected(lab, server, protocol)
                    sock.sendall(before)
                    # a reset drops unsent bytes
                    wait_until(lambda: not unsent(sock), 5, "the bytes to be sent")  # pylint: disable=W0640
                    reset(sock)
                    data, how = client.end()
                    check(data == before, "%d bytes of %d before the reset" % (len(data), len(before)))
                    equal(how, "reset", "the end (%s)" % client.name)
                    client.sock.close()
                resets = [p for p in capture.packets() if p.sport == 1234 and p.rst]
                check(resets, "no RST from the converter")
                if protocol == MPTCP:
                    check(any("MP_FASTCLOSE" in p.mptcp for p in capture.packets() if p.sport == 1234), "no MP_FASTCLOSE")


def test_reset_by_the_server_before_the_third_ack():
    """A server near the converter accepts and resets at once: the client is connected and reset, or refused; it never hangs."""
    with Lab(wifi=Link(delay_ms=10), lte=None, core=Link(delay_ms=0.1)) as lab, converter(lab):
        lab.resetter()
        for client in clients(lab, deliveries=["syn", "behind"]):
            client.send(connect(lab.server.addr4, 7777))
            first = client.answer() if readable(client.sock, 5) else check(False, "no answer (%s)" % client.name)
            if first != error(0x60):
                extended_header(first)
                equal(client.end(), (b"", "reset"), "the end (%s)" % client.name)


def test_reset_by_the_client():
    """The server gets the bytes before the reset, and then a reset."""
    with near() as lab, Server(lab, 80) as server, converter(lab):
        for protocol in (TCP, MPTCP):
            for early in (b"", b"half a question"):
                client, sock = connected(lab, server, protocol, early=early)
                wait_until(lambda: not unsent(client.sock), 5, "the bytes to be sent")  # pylint: disable=W0640
                client.reset()
                equal(ended(sock), (early, "reset"), "the server's bytes, and the end (%s)" % client.name)
                sock.close()


@long
@waits
def test_client_that_gives_up_while_the_server_is_asked():
    """A client's reset ends the connection attempt to the server at once; its FIN doesn't, as it may be a half-close."""
    syn_sent = "02"
    with near() as lab, converter(lab) as process:
        before = descriptors(process)
        for client in clients(lab, deliveries=["syn", "behind"]):
            client.send(connect(lab.addresses.blackhole4, 4711))
            wait_until(lambda: 4711 in connections(lab.converter, syn_sent), 5, "the attempt")
            client.reset()
            wait_until(lambda: 4711 not in connections(lab.converter, syn_sent), 5, "the end of the attempt for " + client.name)
        await_closed(process, before)
        # Without Fast Open on MPTCP, convertd has no connection of the TCP clients here, which give up while their SYNs are withheld.
        equal(process.log_text().count("client lost while connecting"), 8 if kernel.has("fastopen") else 6, "lines about it")
    with near() as lab, converter(lab, "--connect-timeout", "1") as process:
        for client in clients(lab, deliveries=["syn"], protocols=[TCP]):
            client.send(connect(lab.addresses.blackhole4, 4711))
            client.shutdown()
            equal(client.answer(), error(0x41), "the answer after a half-close")
            equal(client.end(), (b"", "closed"), "the end behind it")


# --- slow receivers ------------------------------------------------------------------------------------------


def rss(process):
    """Returns the resident memory of a process in bytes."""
    with open("/proc/%d/statm" % process.serving, encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def fill(sock, data):
    """Sends until the socket has been full for 0.3 s; returns how much it took."""
    sock.setblocking(False)
    view, sent = memoryview(data), 0
    while sent < len(data) and select.select([], [sock], [], 0.3)[1]:
        sent += sock.send(view[sent:sent + 65536])
    sock.setblocking(True)
    return sent


def slow_receiver(lab, server, process, protocol, down):
    """One side sends while the other doesn't read; then the other reads all. Returns by how much the converter's memory grew."""
    data = servers.pattern(24 << 20)
    before = rss(process)
    client, sock = connected(lab, server, protocol)
    source, sink = (sock, client.sock) if down else (client.sock, sock)
    sent = fill(source, data)
    what = "%s, %s" % (client.name, "down" if down else "up")
    check(sent < 12 << 20, "nothing held the sender back: it has sent %d bytes (%s)" % (sent, what))
    grown = rss(process) - before

    def rest():
        source.sendall(data[sent:])
        source.shutdown(socket.SHUT_WR)
    sender = threading.Thread(target=rest)
    sender.start()
    got = read_exactly(sink, len(data) + 1)
    sender.join()
    same_data(got == data, "%d bytes of %d, or others (%s)" % (len(got), len(data), what))
    client.sock.close()
    sock.close()
    return grown


def test_slow_receivers():
    """A slow receiver holds its sender back; the converter keeps one buffer, and the kernels as much as their windows allow."""
    with near() as lab, Server(lab, 80) as server, converter(lab) as process:
        for host in lab.hosts.values():
            host.sysctl("net.ipv4.tcp_rmem", "4096 131072 1048576")
            host.sysctl("net.ipv4.tcp_wmem", "4096 65536 1048576")
        grown = [slow_receiver(lab, server, process, protocol, down) for protocol in (TCP, MPTCP) for down in (True, False)]
        check(SANITIZED or max(grown) < 2 << 20, "the converter has grown by %s bytes" % grown)
        return "memory grown by %s KiB" % [size // 1024 for size in grown]


@long
@waits
def test_many_slow_receivers():
    """Each of 200 clients that don't read costs the converter a buffer, and no more."""
    with near() as lab, Server(lab, 80, backlog=256) as server, converter(lab) as process:
        for host in lab.hosts.values():
            host.sysctl("net.ipv4.tcp_rmem", "4096 16384 65536")
            host.sysctl("net.ipv4.tcp_wmem", "4096 16384 65536")
        before = rss(process)
        pairs = [connected(lab, server, (TCP, MPTCP)[i % 2]) for i in range(200)]
        data = servers.pattern(2 << 20)
        poller = {sock.fileno(): [sock, 0] for _, sock in pairs}
        for _, sock in pairs:
            sock.setblocking(False)
        while ready := select.select([], list(poller), [], 0.3)[1]:
            for number in ready:
                sock, sent = poller[number]
                poller[number][1] += sock.send(data[sent:sent + 65536])
        check(all(sent < len(data) for _, sent in poller.values()), "nothing held back a sender")
        grown = (rss(process) - before) // 200
        check(SANITIZED or grown < 300000, "the converter has grown by %d bytes a session" % grown)
        for client, sock in pairs:
            sent = poller[sock.fileno()][1]
            sock.shutdown(socket.SHUT_WR)
            same_data(client.end() == (data[:sent], "closed"), "the bytes differ (%s)" % client.name)
            client.sock.close()
            sock.close()
        return "%d KiB a session" % (grown // 1024)


def test_several_that_have_much():
    """Three connections have more bytes than one round relays, and FINs: convertd goes on with each, though nothing new comes."""
    data = servers.pattern(3 << 20)
    with near() as lab:
        for name in ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"):
            lab.converter.sysctl(name, "4096 16777216 16777216")
        with Server(lab, 80) as server, converter(lab, "--workers", "1") as process:
            pairs = [connected(lab, server) for _ in range(3)]
            os.kill(process.serving, signal.SIGSTOP)
            for client, _ in pairs:
                client.sock.sendall(data)
                client.shutdown()
            wait_until(lambda: not any(unsent(client.sock) for client, _ in pairs), 10, "all to be in convertd's sockets")
            os.kill(process.serving, signal.SIGCONT)
            for client, sock in pairs:
                got = ended(sock)
                same_data(got == (data, "closed"), "%d bytes of %d, %s" % (len(got[0]), len(data), got[1]))
                client.sock.close()
                sock.close()


# --- time ----------------------------------------------------------------------------------------------------------

STUCK = 20  # seconds without any progress; convertd ends a client that is stuck after --connect-timeout, 30 s


def test_200_connections_with_the_server_next_to_the_converter():
    """The answer is ready long before the third ACK, and no client gets stuck."""
    for delivery in ("syn", "behind") if kernel.has("fastopen") else ("behind",):
        with Lab(wifi=Link(delay_ms=25), lte=None, core=Link(delay_ms=0.1)) as lab, \
                Server(lab, 80, backlog=256) as server, converter(lab):
            waiting = {}
            for _ in range(200):
                client = Client(lab.client, lab.converter.addr4, MPTCP, delivery)
                client.sock.setblocking(False)
                waiting[client.sock.fileno()] = client
                if delivery == "syn":
                    client.send(server.connect())
                elif client.sock.connect_ex((lab.converter.addr4, 1234)) == 0:
                    check(False, "connected at once")
            if delivery == "behind":
                for client in waiting.values():
                    check(select.select([], [client.sock], [], STUCK)[1], "not connected")
                    client.sock.sendall(server.connect())
            clients_left = dict(waiting)
            while clients_left:
                ready = select.select(list(clients_left), [], [], STUCK)[0]
                check(ready, "%d of 200 have no answer, and for %d s none has come" % (len(clients_left), STUCK))
                for number in ready:
                    client = clients_left.pop(number)
                    client.sock.settimeout(STUCK)
                    extended_header(client.answer())
            for client in waiting.values():
                client.sock.close()
                server.accept().close()


@kernel.needs("fastopen")
def test_client_that_never_completes_its_handshake():
    """convertd can't send the answer: it resets the client after --connect-timeout, or when convertd stops; at the stop it also lets
    withheld SYNs go, and resets their clients."""
    need("nft", "nftables")
    drop = ("table inet lose {\nchain input {\ntype filter hook input priority 0\n"
            "tcp dport 1234 tcp flags & (syn | ack | rst) == ack drop\n}\n}\n")
    for stop in (False, True):
        with near() as lab, Server(lab, 80) as server, \
                converter(lab, "--connect-timeout", "30" if stop else "1") as process:
            lab.converter.run(["nft", "-f", "-"], input=drop)
            requests = server.connect(), octets("01022263 01010000"), connect(lab.addresses.blackhole4, 80)
            waiting = [Client(lab.client, lab.converter.addr4, MPTCP).send(request) for request in requests[:2 + stop]]
            sock = server.accept()
            check(not any(readable(client.sock, 0.2) for client in waiting), "an answer without the third ACK")
            if stop:
                process.terminate()
            else:
                waiting.pop().sock.close()
                process.wait_log("client never completed its handshake")
            for client in waiting:
                equal(client.end(), (b"", "reset"), "the end of the client")
                client.sock.close()
            equal(ended(sock), (b"", "reset"), "the end of the server")
            sock.close()
            lab.converter.run(["nft", "delete", "table", "inet", "lose"])
            if stop:
                process.wait(10)  # a second signal could come when convertd has no handler any more


if __name__ == "__main__":
    main()
