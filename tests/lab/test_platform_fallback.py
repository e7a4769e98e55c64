#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_platform_fallback.py - does this kernel lose bytes on MPTCP sockets that fell back to TCP?

Linux 6.18 does, where a segment overlaps what was delivered before; doc/kernel-mptcp-fallback-overlap.md is the report to its
developers. The library and convertd never leave an application, or a relay, with such a socket. Each test says whether this kernel has the
fault; none fails on a kernel without it, for which the report says what can be relaxed.
"""
import contextlib
import socket
import struct

from convertlab import Lab, Link, check, equal, main, wait_until
from convertlab.peers import unsent
from test_platform import IPPROTO_MPTCP, PORT

REPRODUCER = "doc/reproducers/mptcp-fallback-overlap"
SOL_MPTCP, MPTCP_INFO = 284, 1
MPTCP_INFO_FLAG_FALLBACK = 1
TRIES = 3
STREAM = bytes((i * 7 + i // 251) % 256 for i in range(1060))
OVERLAPS = ("60 of 1060 again", "60 of 1060 again, read at the end", "60 of 1060 again, then 1000 more", "500 of 600 again",
            "60 of 1060 again, with the end of the stream", "a hole that is filled by more than it is")


def verdict(wrong, of):
    """Returns the result for this kernel."""
    if wrong:
        return "this kernel has the fault: %d of %d wrong on sockets that fell back, and on no others" % (wrong, of)
    return "THIS KERNEL LACKS THE FAULT: see \"When a kernel lacks the fault\" in doc/kernel-mptcp-fallback-overlap.md"


def test_reproducer():
    """The reproducer writes each packet itself: plain TCP is right, and so is MPTCP without overlaps."""
    with Lab(wifi=None, lte=None, core=None) as lab:
        host = lab.add_host("alone")
        result = host.run([lab.build.program(REPRODUCER)], check=False)
        check(result.returncode in (0, 1), "it ended with %d:\n%s" % (result.returncode, result.stderr))
        wrong, tried = [], 0
        for line in result.stdout.splitlines():
            state, rest = line.split(None, 1)
            side, scenario, _ = rest.split("; ", 2) if rest.count("; ") > 1 else (*rest.split("; ")[:2], "")
            scenario = scenario.rsplit(": ", 1)[0] if ": " in scenario else scenario
            fell_back = side.startswith("MPTCP") and side != "MPTCP, accepted from a peer without"
            overlaps = any(scenario.startswith(name) for name in OVERLAPS)
            if state == "WRONG":
                check(fell_back and overlaps, "wrong where no kernel was wrong before:\n" + line)
                wrong.append(line)
            tried += fell_back and overlaps
        equal(tried, 3 * len(OVERLAPS), "overlaps tried on sockets that fell back, in\n" + result.stdout)
        equal(result.returncode, 1 if wrong else 0, "its status")
        return verdict(len(wrong), tried)


@contextlib.contextmanager
def connection(lab, client_protocol, server_protocol):
    """Yields a client's and a server's connected socket, after some bytes in each direction."""
    with lab.converter.socket(socket.AF_INET, socket.SOCK_STREAM, server_protocol) as listening, \
            lab.client.socket(socket.AF_INET, socket.SOCK_STREAM, client_protocol) as client:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((lab.converter.addr4, PORT))
        listening.listen(1)
        client.settimeout(10)
        client.connect((lab.converter.addr4, PORT))
        server, _ = listening.accept()
        with server:
            server.settimeout(10)
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for sender, receiver in ((client, server), (server, client)):
                sender.sendall(b"hello")
                equal(receiver.recv(5, socket.MSG_WAITALL), b"hello", "the first bytes")
            yield client, server


def lost_and_sent_again(lab, client, server):
    """Loses the acknowledgement of 60 bytes, and the first sending of the 1,000 behind them; returns the bytes that the client reads."""
    wait_until(lambda: unsent(server) == 0 and unsent(client) == 0, 5, "all to be acknowledged")
    lab.wifi.wait_idle()
    lab.wifi.down("a-to-b")
    server.sendall(STREAM[:60])
    client.setblocking(False)
    got = b""

    def read():
        nonlocal got
        with contextlib.suppress(BlockingIOError):
            got += client.recv(4096)
        return len(got)
    wait_until(lambda: read() >= 60, 5, "the first 60 bytes")
    lab.wifi.down("b-to-a")
    lost = lab.wifi.stats()["b-to-a"]["down_drop"]
    server.sendall(STREAM[60:])
    wait_until(lambda: lab.wifi.stats()["b-to-a"]["down_drop"] > lost, 5, "the 1,000 bytes to be lost")
    lab.wifi.up()
    wait_until(lambda: unsent(server) == 0, 20, "all to be acknowledged")
    # acknowledged bytes can be read
    read()
    read()
    return got


def overlapping(lab, client_protocol, server_protocol):
    """Returns how many of TRIES were wrong; in each, one segment brings all 1,060 bytes, or two if MPTCP keeps them apart."""
    wrong = 0
    for _ in range(TRIES):
        with connection(lab, client_protocol, server_protocol) as (client, server), \
                lab.capture(lab.client, "wifi", "tcp") as capture:
            got = lost_and_sent_again(lab, client, server)
        again = [len(packet.payload) for packet in capture.packets() if packet.sport == PORT and packet.payload]
        check(1060 in again or client_protocol == server_protocol == IPPROTO_MPTCP, "no overlap among segments of %s" % again)
        wrong += got != STREAM
    return wrong


def test_retransmission():
    """Between two hosts, plain TCP and true MPTCP lose nothing; an MPTCP socket that fell back may."""
    with Lab(wifi=Link(delay_ms=10), lte=None, core=None) as lab:
        # no probe of the last segment alone (RFC 8985 7): the time-out sends all, from the first byte that isn't acknowledged
        lab.converter.sysctl("net.ipv4.tcp_early_retrans", 0)
        tcp, mptcp = socket.IPPROTO_TCP, IPPROTO_MPTCP
        equal(overlapping(lab, tcp, tcp), 0, "plain TCP: wrong of %d" % TRIES)
        equal(overlapping(lab, mptcp, mptcp), 0, "MPTCP: wrong of %d" % TRIES)
        return verdict(overlapping(lab, mptcp, tcp), TRIES)


def fell_back(sock):
    """MPTCP_INFO's fallback flag of a socket; None if it isn't an MPTCP socket, or is one no longer."""
    try:
        flags, = struct.unpack_from("8xI", sock.getsockopt(SOL_MPTCP, MPTCP_INFO, 100))
        return bool(flags & MPTCP_INFO_FLAG_FALLBACK)
    except OSError:
        return None


def test_who_fell_back():
    """MPTCP_INFO fails on a client's socket that fell back; accept() returns a TCP socket if the SYN had no MP_CAPABLE."""
    with Lab(wifi=Link(delay_ms=1), lte=None, core=None) as lab:
        tcp, mptcp = socket.IPPROTO_TCP, IPPROTO_MPTCP
        for client_protocol, server_protocol, client_says, server_says in (
                (mptcp, mptcp, False, False), (mptcp, tcp, None, None), (tcp, mptcp, None, None)):
            with connection(lab, client_protocol, server_protocol) as (client, server):
                equal((fell_back(client), fell_back(server)), (client_says, server_says),
                      "have client and server fallen back, protocols %d and %d" % (client_protocol, server_protocol))


if __name__ == "__main__":
    main()
