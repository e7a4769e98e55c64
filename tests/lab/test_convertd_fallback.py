#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertd_fallback.py - no byte of a stream is lost unnoticed on convertd's MPTCP sockets that fall back to TCP

Linux loses bytes where a segment overlaps what such a socket has delivered already (doc/kernel-mptcp-fallback-overlap.md). Here
that is forced, on the way from the server to the converter, and from the client.
"""
import ipaddress
import socket
import struct
import threading

from convertlab import Lab, Link, check, equal, long, main, wait_until, waits
from convertlab.pcap import ACK, PSH, RST, SYN, parse
from convertlab.peers import MPTCP, TCP, Client, Server, converter, ended, extended_header, unsent

MULTIPATH = bytes([30, 2])
MP_CAPABLE = (30, b"\x01\x01")
STREAM = bytes((i * 7 + i // 251) % 256 for i in range(1060))
TRIES = 3


def near(**options):
    return Lab(wifi=Link(delay_ms=5), lte=None, core=Link(delay_ms=10), **options)


def asked(lab, server, protocol, v6):
    """Returns a client that has asked for Multipath TCP to the server, and the server's connection."""
    client = Client(lab.client, lab.converter.addr4, protocol)
    client.send(server.connect(v6, MULTIPATH))
    sock = server.accept()
    options = extended_header(client.answer())
    check(MP_CAPABLE not in options, "the server is said to speak MPTCP: %s" % options)
    return client, sock


def send_overlapping(link, towards, back, sender, receive, enough):
    """Loses the acknowledgement of 60 bytes, and the 1,000 bytes behind them: the retransmission is one segment with all bytes.

    towards, back: the link's directions, of the bytes and of the acknowledgements. receive: reads all that has come, and returns how many
    bytes that makes; enough: as many as the first 60 make.
    """
    sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    wait_until(lambda: unsent(sender) == 0, 5, "all to be acknowledged")
    link.wait_idle()
    link.down(back)
    sender.sendall(STREAM[:60])
    wait_until(lambda: receive() >= enough, 5, "the first 60 bytes")
    link.down(towards)
    lost = link.stats()[towards]["down_drop"]
    sender.sendall(STREAM[60:])
    wait_until(lambda: link.stats()[towards]["down_drop"] > lost, 5, "the 1,000 bytes to be lost")
    link.up()


class Reader:
    """Reads a socket and keeps its bytes."""

    def __init__(self, sock):
        self.sock = sock
        self.sock.setblocking(False)
        self.data = b""
        self.end = ""

    def __call__(self):
        while not self.end:
            try:
                piece = self.sock.recv(65536)
            except BlockingIOError:
                break
            except ConnectionResetError:
                self.end = "reset"
                break
            self.data += piece
            self.end = "" if piece else "closed"
        return len(self.data)


def take_overlapping(lab, client, sock):
    """Has the server send overlapping segments. Returns (the client's bytes, how its stream ended)."""
    read = Reader(client.sock)
    send_overlapping(lab.core, "b-to-a", "a-to-b", sock, read, 60)
    wait_until(lambda: read() >= len(STREAM) or read.end, 20, lambda: "1,060 bytes, or an end: %d" % len(read.data))
    sock.close()
    wait_until(lambda: read() and read.end, 5, "the end")
    return read.data, read.end


@long
@waits
def test_from_a_server_that_does_not_speak_it():
    """The connection that asks for Multipath TCP is reset where bytes are missing, before convertd relays those behind the gap; later ones
    are TCP, on which all bytes arrive. The server sees one connection for each.
    """
    fault = False
    for arguments in ((), ("--hold-syn", "off")):
        for protocol, v6 in ((TCP, False), (MPTCP, False), (MPTCP, True)):
            with near() as lab, Server(lab, 80) as server, converter(lab, *arguments):
                # without tail loss probes (RFC 8985 7): the retransmission time-out sends all that isn't acknowledged
                lab.server.sysctl("net.ipv4.tcp_early_retrans", 0)
                with lab.capture(lab.converter, "core", "tcp") as capture:
                    for number in range(TRIES):
                        client, sock = asked(lab, server, protocol, v6)
                        with client, sock:
                            got = take_overlapping(lab, client, sock)
                        if number == 0 and got != (STREAM, "closed"):
                            equal(got, (STREAM[:60], "reset"), "bytes and end of the connection that fell back")
                            fault = True
                        else:
                            equal(got, (STREAM, "closed"), "the server's bytes, and the end")
                packets = capture.packets()
            equal(["MP_CAPABLE" in packet.mptcp for packet in packets if packet.syn and packet.dport == 80],
                  [True] + [False] * (TRIES - 1), "MP_CAPABLE in the SYNs to the server")
            check(any(packet.sport == 80 and len(packet.payload) == 1060 for packet in packets), "no segment overlapped: %s"
                  % [len(packet.payload) for packet in packets if packet.sport == 80])
    return "nothing came from behind the gap" if fault else "this kernel has not the fault: all bytes arrived"


def test_server_that_speaks_it_is_asked_each_time():
    with near() as lab, Server(lab, 80, protocol=MPTCP) as server, converter(lab):
        for _ in range(3):
            with Client(lab.client, lab.converter.addr4, MPTCP) as client:
                client.send(server.connect(options=MULTIPATH))
                with server.accept():
                    check(MP_CAPABLE in extended_header(client.answer()), "the server is not said to speak MPTCP")


class Handmade:
    """A client that sends packet by packet, and has MPTCP options in its handshake only, so that its connection falls back."""

    ADDRESS, ISN, KEY = "10.66.0.1", 1000, bytes(range(8))

    def __init__(self, lab):
        # the answers have a route, and are captured on the client's device
        lab.converter.ip("route add 10.66.0.0/16 via %s" % lab.client.wifi4)
        self.converter = lab.converter.addr4
        self.out = lab.client.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        self.seen = lab.client.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
        self.seen.bind(("wifi", 0x0800))
        self.seen.settimeout(10)
        self.sent = self.acknowledges = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.out.close()
        self.seen.close()

    def segment(self, flags, at, data=b"", options=b""):
        """Returns a segment of the client's stream from that byte on."""
        ends = [ipaddress.ip_address(address).packed for address in (self.ADDRESS, self.converter)]
        words = 5 + len(options) // 4
        tcp = struct.pack("!HHIIBBHHH", 2000, 1234, self.ISN + 1 + at, self.acknowledges, words << 4, flags, 65535, 0, 0)
        tcp += options + data
        total = sum(struct.unpack("!%dH" % ((len(tcp) + 1) // 2 + 6), b"".join(ends) + struct.pack("!HH", 6, len(tcp)) + tcp
                                  + bytes(len(tcp) % 2)))
        while total >> 16:
            total = (total & 0xffff) + (total >> 16)
        tcp = tcp[:16] + struct.pack("!H", ~total & 0xffff) + tcp[18:]
        # the kernel fills in what is zero
        ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0, 64, socket.IPPROTO_TCP, 0) + b"".join(ends)
        self.out.sendto(ip + tcp, (self.converter, 0))
        self.sent = max(self.sent, at + len(data))

    def await_packet(self, condition):
        """Waits for the converter's next packet to this client that meets the condition."""
        while True:
            packet = parse(0, self.seen.recv(2000))
            if packet and packet.dst == self.ADDRESS and condition(packet):
                self.acknowledges = packet.seq + len(packet.payload) + packet.synack
                return packet

    def connect(self, request):
        """Makes a handshake with MP_CAPABLE, and sends a request without a mapping; returns the answer."""
        capable = bytes([30, 4, 1, 1])
        self.segment(SYN, -1, options=capable)
        key = self.await_packet(lambda packet: packet.synack).option(30)[2:]
        self.segment(ACK, 0, options=bytes([30, 20, 1, 1]) + self.KEY + key)
        self.segment(ACK | PSH, 0, request)
        answer = self.await_packet(lambda packet: packet.payload).payload
        self.segment(ACK, self.sent)
        return answer


def test_from_a_client_that_fell_back():
    """Bytes are missing: convertd relays none of those behind the gap, resets both sides, and logs the reason."""
    said = "the server got nothing from behind the gap"
    for arguments in ((), ("--hold-syn", "off")):
        with near() as lab, Server(lab, 80) as server, converter(lab, *arguments) as process, Handmade(lab) as client:
            check(extended_header(client.connect(server.connect())), "no answer")
            with server.accept() as sock:
                read, start = Reader(sock), client.sent
                client.segment(ACK | PSH, start, STREAM[:60])
                wait_until(lambda: read() == 60, 5, "the first 60 bytes")
                client.segment(ACK | PSH, start, STREAM)
                wait_until(lambda: read() == len(STREAM) or read.end, 10, lambda: "an end, behind %d bytes" % len(read.data))
                if read.data == STREAM:
                    client.segment(RST, client.sent)  # nothing else ends it
                    said = "this kernel has not the fault: all bytes arrived"
                    continue
                equal((read.data, read.end), (STREAM[:60], "reset"), "the server's bytes, and the end")
            client.await_packet(lambda packet: packet.rst)
            process.wait_log("bytes lost by the kernel")
    return said


def fallen_back(lab, server):
    """Returns a client whose MPTCP options are lost behind the handshake, and its server's connection."""
    client = lab.client.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP)
    client.settimeout(10)
    client.connect((lab.converter.addr4, 1234))
    lab.wifi.wait_idle()
    lab.wifi.set(strip_mptcp=True)
    client.sendall(server.connect())
    sock = server.accept()
    check(extended_header(client.recv(1000)), "no answer")
    return client, sock


def test_client_that_fell_back_and_misses_nothing():
    """No segments overlap: small and large streams arrive in full, as over TCP."""
    for size in (5, 3000000):
        with near() as lab, Server(lab, 80) as server, converter(lab) as process:
            client, sock = fallen_back(lab, server)
            with client, sock:
                content = STREAM * (size // len(STREAM)) + STREAM[:size % len(STREAM)]
                upload = threading.Thread(target=lambda: (client.sendall(content), client.shutdown(socket.SHUT_WR)))
                upload.start()
                data, end = ended(sock)
                upload.join()
                equal((data == content, len(data), end), (True, size, "closed"), "the bytes, and the end of the stream")
                sock.close()
                equal(client.recv(10), b"", "the client's end")
            process.wait_log(": done")
            check("fallback" in process.log_text() or "fell back" in process.log_text(), process.log_text())


if __name__ == "__main__":
    main()
