#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_upload_round_trips.py - an upload by way of the converter takes no more round trips than a direct one

We count them by the order of captured packets (pcap.round_trips()). Up to 64 KiB, neither the initial windows of a kernel limit an upload,
nor the send buffer that the program asks for. For longer uploads convertd opens its window.
"""
from convertlab import Lab, Link, check, equal, kernel, main
from convertlab.pcap import ACK, OPT_WSCALE, SYN, Packet, round_trips
from convertlab.peers import Server, read_exactly
from test_silence_shim import SILENTLY, learn

PORT = 80
SIZES = 1000, 16384, 65536
LONG, LOOK, OPENED = 131072, 45000, 120000
UPLOAD = """
import socket, sys
with socket.socket() as sock:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, int(sys.argv[4]))
    sock.connect((sys.argv[1], int(sys.argv[2])))
    sock.sendall(bytes(int(sys.argv[3])))
    print(len(sock.recv(1)))
"""


def far(core_ms):
    """60 ms to the converter: longer than a program on a busy machine waits for a CPU."""
    return Lab(wifi=Link(delay_ms=30), lte=None, core=Link(delay_ms=core_ms))


def upload(lab, server, size, no_delay, env=None):
    """Makes an upload; returns its round trips."""
    with lab.capture(lab.client, "wifi", "tcp port %d or tcp port 1234" % PORT) as capture:
        client = lab.client.popen(["python3", "-c", UPLOAD, lab.server.addr4, PORT, size, int(no_delay)], env=env, name="upload")
        with server.accept() as sock:
            equal(len(read_exactly(sock, size)), size, "bytes that the server reads")
            sock.sendall(b".")
            equal(client.wait(10), 0, "status of the program")
    return round_trips(capture.packets())


def test_counting():
    """round_trips(): a last segment that waits for an acknowledgement adds one; other connections don't count."""
    def ours(seq, data=b"", flags=ACK):
        return Packet(0, "c", "s", 6, 0, 1, 80, seq=seq % 2**32, flags=flags, payload=data)

    def theirs(ack, flags=ACK):
        return Packet(0, "s", "c", 6, 0, 80, 1, ack=ack % 2**32, flags=flags)

    first = 2**32 - 5  # the numbers overflow
    start = [ours(first, flags=SYN), theirs(first + 1, SYN | ACK), ours(first + 1), ours(first + 1, b"0123456789")]
    at_once = [*start, ours(first + 11, b"end"), theirs(first + 11), theirs(first + 14), ours(first + 14)]
    waits = [*start, theirs(first + 11), ours(first + 11, b"end"), theirs(first + 14)]
    stranger = [Packet(0, "s", "c", 6, 0, 80, 2, ack=99, flags=ACK)]
    equal((round_trips(at_once), round_trips(waits), round_trips(waits[:4] + stranger + waits[4:])), (2, 3, 3), "round trips")
    equal(round_trips([ours(first, b"0123", SYN), theirs(first + 5, SYN | ACK)]), 1, "round trips of data in the SYN")


@kernel.needs("fastopen")
def test_silent():
    """Silent requests, with and without Nagle's algorithm, to near and far servers."""
    near = [(size, False) for size in SIZES] + [(SIZES[-1], True)]
    for core_ms, uploads in ((1, near), (30, [(SIZES[-1], False)])):
        with far(core_ms) as lab, Server(lab, PORT) as server:
            lab.convertd()
            lab.echo()
            env = lab.remembering()
            learn(lab, env)
            for size, no_delay in uploads:
                direct = upload(lab, server, size, no_delay)
                equal(upload(lab, server, size, no_delay, env), direct, "round trips of %d bytes, server at %d ms, TCP_NODELAY %d" % (
                    size, core_ms, no_delay))
            equal(lab.shim_log().count(SILENTLY), len(uploads), "silent connections in\n" + lab.shim_log())


@kernel.needs("fastopen")
def test_with_a_response():
    """The response comes between the segments of an upload. Programs that set TCP_NODELAY don't wait for it."""
    with far(1) as lab, Server(lab, PORT) as server:
        lab.convertd()
        lab.echo()
        env = lab.remembering(CONVERT_SILENCE="never")
        learn(lab, env)
        for size in SIZES:
            direct = upload(lab, server, size, True)
            equal(upload(lab, server, size, True, env), direct, "round trips of %d bytes" % size)
        check(SILENTLY not in lab.shim_log(), "silent connections in\n" + lab.shim_log())
        with_nagle = [upload(lab, server, SIZES[-1], False, variables) for variables in (None, env)]
        return "64 KiB with Nagle's algorithm: %d round trips, %d directly" % (with_nagle[1], with_nagle[0])


def windows(packets):
    """(bytes acknowledged, the window announced) of each packet to the host that opened the first connection."""
    syn = next(packet for packet in packets if packet.syn)
    scale = next(packet for packet in packets if packet.synack).option(OPT_WSCALE)[0]
    return [(packet.ack - syn.seq & 0xffffffff, packet.window << scale) for packet in packets
            if (packet.dst, packet.dport) == (syn.src, syn.sport) and not packet.synack]


@kernel.needs("fastopen")
def test_window():
    """convertd opens the window at an upload's first bytes. At the place of this test Linux by itself announces 91 KB at most."""
    with far(1) as lab, Server(lab, PORT) as server:
        lab.convertd()
        with lab.capture(lab.client, "wifi", "tcp port 1234") as capture:
            client = lab.client.popen(["python3", "-c", UPLOAD, lab.server.addr4, PORT, LONG, 1], env=lab.converted(), name="upload")
            with server.accept() as sock:
                equal(len(read_exactly(sock, LONG)), LONG, "bytes that the server reads")
                sock.sendall(b".")
                equal(client.wait(10), 0, "status of the program")
        acknowledged, window = next(each for each in windows(capture.packets()) if LOOK <= each[0] <= LONG)
        check(window >= OPENED, "a window of %d bytes when %d were acknowledged" % (window, acknowledged))


if __name__ == "__main__":
    main()
