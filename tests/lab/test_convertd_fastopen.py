#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertd_fastopen.py - Fast Open towards the server, as clients ask for it (RFC 8803 Section 7.6)"""
import socket

from convertlab import Lab, Link, check, equal, kernel, main
from convertlab.pcap import OPT_FASTOPEN
from convertlab.peers import (MPTCP, TCP, Client, Server, connect, converter, error, extended_header, message, octets,
                              read_exactly)

ASK = octets("2202")
REFUSED = message(octets("1e01 21 22"))
EARLY = b"early, and it may arrive twice"


def near():
    """Returns a lab whose links are too fast to matter."""
    return Lab(wifi=Link(delay_ms=0.5), lte=None, core=Link(delay_ms=0.1))


def option(cookie):
    """Returns a Fast Open option with this cookie."""
    return bytes([OPT_FASTOPEN, 2 + len(cookie)]) + cookie


def fastopen_server(lab, port, protocol=TCP):
    """Starts a server that hands out cookies."""
    if protocol == MPTCP:
        kernel.need("fastopen")
    lab.server.sysctl("net.ipv4.tcp_fastopen", 3)
    server = Server(lab, port, protocol)
    server.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 64)
    return server


def served(lab, server, protocol, address, options, early=EARLY):
    """Makes a connection; returns (the options in the answer, the SYN to the server, the server's SYN+ACK)."""
    with lab.capture(lab.converter, "core", "tcp port %d" % server.port) as capture:
        with Client(lab.client, lab.converter.addr4, protocol) as client:
            client.send(connect(address, server.port, options) + early)
            # data in a SYN is enough for accept()
            with server.accept() as sock:
                equal(read_exactly(sock, len(early)), early, "what the server gets, %s" % client.name)
                answer = extended_header(client.answer())
                sock.sendall(b"answer")
                equal(client.read(6), b"answer", "what the client gets")
    packets = capture.packets()
    return (dict(answer), next(packet for packet in packets if packet.syn),
            next(packet for packet in packets if packet.synack))


def test_cookie_is_asked_for_and_used():
    """First an empty option and no data, then the server's cookie and the data in the SYN."""
    with near() as lab, converter(lab):
        for port, protocol, towards, more in ((80, TCP, TCP, b""), (81, MPTCP, MPTCP, octets("1e02")), (82, MPTCP, TCP, b"")):
            with fastopen_server(lab, port, towards) as server:
                for address in (lab.server.addr4, lab.server.addr6):
                    # what other ports have brought: cookies are an address's
                    lab.converter.run(["ip", "tcp_metrics", "flush"])
                    got, syn, synack = served(lab, server, protocol, address, ASK + more)
                    equal((syn.option(OPT_FASTOPEN), syn.payload), (b"", b""), "the option, and the data, in the first SYN")
                    cookie = synack.option(OPT_FASTOPEN)
                    check(cookie, "the server has given no cookie")
                    equal(got.get(OPT_FASTOPEN), cookie, "the cookie that the client is told")
                    got, syn, synack = served(lab, server, protocol, address, option(cookie) + more)
                    equal((syn.option(OPT_FASTOPEN), syn.payload), (cookie, EARLY), "the second SYN")
                    equal((synack.option(OPT_FASTOPEN), got.get(OPT_FASTOPEN)), (None, None), "what is said of it")
                    equal("MP_CAPABLE" in syn.mptcp, bool(more), "MP_CAPABLE in the SYN")


def test_cookie_that_is_known_is_told():
    """Another client that asks is told the cookie that the kernel has; its data waits for the handshake."""
    with near() as lab, converter(lab), fastopen_server(lab, 80) as server:
        first, _, _ = served(lab, server, TCP, lab.server.addr4, ASK)
        second, syn, _ = served(lab, server, TCP, lab.server.addr4, ASK)
        equal((second.get(OPT_FASTOPEN), syn.payload), (first[OPT_FASTOPEN], b""), "the second answer")
        # and a request without the option is as before
        plain, syn, _ = served(lab, server, TCP, lab.server.addr4, b"")
        equal((plain.get(OPT_FASTOPEN), syn.option(OPT_FASTOPEN)), (None, None), "without the option")


def test_cookie_that_is_another():
    """The kernel can't be given a cookie: refused rather than left out, before and after it has one of its own."""
    with near() as lab, converter(lab), fastopen_server(lab, 80) as server:
        for _ in range(2):
            for cookie in (bytes(range(8)), bytes(range(4)), bytes(range(16))):
                with lab.capture(lab.converter, "core", "tcp port 80") as capture, \
                        Client(lab.client, lab.converter.addr6) as client:
                    client.send(server.connect(options=option(cookie)) + EARLY)
                    equal(client.answer(), REFUSED, "the answer")
                equal(capture.packets(), [], "what the server gets")
            served(lab, server, TCP, lab.server.addr4, ASK)


def test_cookie_that_is_stale():
    """The server has another key by now: its new cookie is told, and the data arrives all the same."""
    with near() as lab, converter(lab), fastopen_server(lab, 80) as server:
        lab.server.sysctl("net.ipv4.tcp_fastopen_key", "-".join(["00000000"] * 3 + ["00000001"]))
        first, _, _ = served(lab, server, TCP, lab.server.addr4, ASK)
        lab.server.sysctl("net.ipv4.tcp_fastopen_key", "-".join(["00000000"] * 3 + ["00000002"]))
        second, syn, synack = served(lab, server, TCP, lab.server.addr4, option(first[OPT_FASTOPEN]))
        equal(syn.option(OPT_FASTOPEN), first[OPT_FASTOPEN], "the cookie in the SYN")
        equal(second[OPT_FASTOPEN], synack.option(OPT_FASTOPEN), "the cookie that the client is told")
        check(second[OPT_FASTOPEN] != first[OPT_FASTOPEN], "the same cookie")


def test_server_without_fast_open():
    """It ignores the option; so does the answer. One that refuses is told as ever."""
    with near() as lab, converter(lab), Server(lab, 80) as server:
        for address in (lab.server.addr4, lab.server.addr6):
            got, syn, _ = served(lab, server, MPTCP, address, ASK)
            equal((syn.option(OPT_FASTOPEN), got.get(OPT_FASTOPEN)), (b"", None), "asked, and not answered")
        with Client(lab.client, lab.converter.addr4) as client:
            client.send(connect(lab.server.addr4, lab.addresses.refused_port, ASK))
            equal(client.answer(), error(0x60), "the answer about a closed port")


if __name__ == "__main__":
    main()
