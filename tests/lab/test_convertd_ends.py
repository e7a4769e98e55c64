#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertd_ends.py - whether ICMP errors, vanished peers and resets end a connection through the converter (RFC 8803 4.2, 5.1)"""
import hashlib
import os
import re
import select
import socket
import struct
import threading

from convertlab import Lab, Link, check, equal, long, main, need, same_data, servers, wait_until, waits
from convertlab.peers import MPTCP, TCP, Server, checksum, connected, converter, ended, read_exactly, unsent

APPS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "apps")
# how often Linux sends a segment again: with 1 it gives up within a few seconds
RETRIES = 1
# after this time convertd resets a connection with bytes that are still on their way (LINGER_SECONDS)
RESET_SECONDS = 5
# Multipath TCP, as an Extended Connect TLV has it
MPTCP_OPTION = bytes([30, 2, 0, 0])


def near(**options):
    """Returns a lab whose links are too fast to matter."""
    return Lab(wifi=Link(delay_ms=0.5), lte=None, core=Link(delay_ms=0.1), **options)


def rules(host, *lines):
    """Replaces the host's nftables rules by these."""
    need("nft", "nftables")
    chains = ["chain %s { type filter hook %s priority 0; }" % (name, name) for name in ("input", "output")]
    host.run(["nft", "-f", "-"], input="\n".join(
        ["table inet ends {}", "delete table inet ends", "table inet ends {"] + chains + ["}"] +
        ["add rule inet ends " + line for line in lines] + [""]))


def unreachable_messages(host):
    """Returns the number of ICMP Destination Unreachable messages that a host has received."""
    return sum(count for name, count in icmp_counters(host).items() if name.endswith("InDestUnreachs"))


def icmp_counters(host):
    """Returns the ICMP counters of both families."""
    found = {"4" + name: value for name, value in host.counters().items() if name.startswith("Icmp")}
    with host.entered(), open("/proc/thread-self/net/snmp6", encoding="ascii") as file:
        found.update((name, int(value)) for name, value in map(str.split, file) if name.startswith("Icmp6"))
    return found


def test_icmp_errors_once_connected():
    """Section 4.2: a soft error ends nothing, TCP sends the data again. On Linux a hard one doesn't, either (RFC 5927 6)."""
    with near() as lab, Server(lab, 80) as server, converter(lab):
        for request, kinds in ((server.connect(), ("icmp type host-unreachable", "icmp type net-unreachable",
                                                   "icmp type port-unreachable")),
                               (server.connect(v6=True), ("icmpv6 type no-route", "icmpv6 type addr-unreachable"))):
            for kind in kinds:
                client, sock = connected(lab, server, request=request)
                before = unreachable_messages(lab.converter)
                rules(lab.server, "input tcp dport 80 reject with " + kind)
                client.sock.sendall(b"question")
                wait_until(lambda: unreachable_messages(lab.converter) > before, 10, kind)  # pylint: disable=W0640
                rules(lab.server)
                equal(read_exactly(sock, 8), b"question", "the server's bytes after " + kind)
                sock.sendall(b"answer")
                equal(client.read(6), b"answer", "the client's bytes after " + kind)
                client.sock.close()
                sock.close()


def unread(host, port):
    """Returns how many bytes the host hasn't read of its only connection to that port."""
    return int(host.run(["ss", "-Htn", "dport = :%d" % port]).stdout.split()[1])


def host_unreachable(packet):
    """Returns an ICMP Host Unreachable message about this packet."""
    addresses = socket.inet_aton(packet.src) + socket.inet_aton(packet.dst)
    quoted = struct.pack("!BBHHHBBH", 0x45, 0, 40, 0, 0, 64, socket.IPPROTO_TCP, 0) + addresses + \
        struct.pack("!HHI", packet.sport, packet.dport, packet.seq)
    return struct.pack("!BBHI", 3, 1, checksum(struct.pack("!BBHI", 3, 1, 0, 0) + quoted), 0) + quoted


def test_icmp_error_while_the_client_reads_nothing():
    """convertd doesn't read the server, since the client takes no bytes: a soft error from there ends nothing, either."""
    with near() as lab, Server(lab, 80) as server, converter(lab) as process:
        lab.client.sysctl("net.ipv4.tcp_rmem", "4096 16384 16384")
        lab.converter.sysctl("net.ipv4.tcp_wmem", "4096 16384 16384")
        data, sent = servers.pattern(1 << 20), 0
        with lab.capture(lab.converter, "core", "tcp") as core:
            client, sock = connected(lab, server)
            while unread(lab.converter, 80) < 16384:
                sock.sendall(data[sent:sent + 4096])
                sent += 4096
                wait_until(lambda: not unsent(sock), 10, "the converter's ACK")
            message = host_unreachable([packet for packet in core.packets() if packet.dport == 80][-1])
        with lab.server.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as icmp:
            before = unreachable_messages(lab.converter)
            icmp.sendto(message, (lab.converter.core4, 0))
            wait_until(lambda: unreachable_messages(lab.converter) > before, 10, "the ICMP message")
        sock.sendall(data[sent:sent + 10])
        sent += 10
        wait_until(lambda: not unsent(sock), 10, process.log_text)
        same_data(client.read(sent) == data[:sent], process.log_text())
        client.sock.sendall(b"question")
        equal(read_exactly(sock, 8), b"question", "the server's bytes afterwards")
        sock.sendall(b"answer")
        equal(client.read(6), b"answer", "the client's bytes afterwards")
        client.sock.close()
        sock.close()


def test_peer_that_vanishes():
    """Section 4.2: when convertd's kernel gives up its retransmissions to one side, convertd resets the other."""
    with near() as lab, Server(lab, 80) as server, converter(lab) as process:
        lab.converter.sysctl("net.ipv4.tcp_retries2", RETRIES)
        for protocol in (TCP, MPTCP):
            client, sock = connected(lab, server, protocol)
            rules(lab.server, "input tcp dport 80 drop")
            client.sock.sendall(b"to nowhere")
            equal(client.end(), (b"", "reset"), "the client's end (%s)" % client.name)
            rules(lab.server)
            client.sock.close()
            sock.close()
        process.wait_log("server lost")
        client, sock = connected(lab, server)
        rules(lab.client, "input tcp sport 1234 drop")
        sock.sendall(b"to nowhere")
        equal(ended(sock), (b"", "reset"), "the server's end")
        rules(lab.client)
        client.sock.close()
        sock.close()
        process.wait_log("client lost")


def test_reset_before_a_byte():
    """A client's reset reaches the server at once, also a server that was asked for MPTCP in vain."""
    with near() as lab, Server(lab, 80) as server, converter(lab) as process:
        for options in (b"", MPTCP_OPTION):
            client, sock = connected(lab, server, MPTCP, request=server.connect(options=options))
            client.reset()
            equal(ended(sock), (b"", "reset"), "the server's end")
            sock.close()
        wait_until(lambda: process.log_text().count("client lost") == 2, what=process.log_text)
        lasted = [float(seconds) for seconds in re.findall(r"([\d.]+) s: client lost", process.log_text())]
        check(max(lasted) < RESET_SECONDS, "the sessions lasted for %s s" % lasted)


@long
@waits
def test_reset_behind_bytes_that_nobody_takes():
    """The reset also reaches a server that doesn't read: the bytes that it doesn't take don't hold the reset up for ever."""
    with near() as lab, Server(lab, 80, SO_RCVBUF=4096) as server, converter(lab) as process:
        client, sock = connected(lab, server, MPTCP)
        client.sock.setblocking(False)
        while select.select([], [client.sock], [], 1)[1]:
            client.sock.send(bytes(65536))
        client.reset()
        failed = select.poll()
        failed.register(sock, 0)
        check(failed.poll(30000), "the server heard of nothing\n" + process.log_text())
        sock.close()
        process.wait_log("client lost")


def test_reset_of_a_subflow():
    """Section 5.1: an RST on one subflow closes that subflow; the connection goes on over the others."""
    size = 16000000
    with Lab(wifi=Link(delay_ms=5, rate_mbit=40, queue=200), lte=Link(delay_ms=10, rate_mbit=40, queue=200)) as lab, \
            Server(lab, 80) as server, converter(lab):
        client, sock = connected(lab, server, MPTCP)
        data = servers.pattern(size)
        with lab.capture(lab.converter, "lte", "tcp") as capture:
            sender = threading.Thread(target=client.sock.sendall, args=[data])
            sender.start()
            got = read_exactly(sock, size // 8)
            wait_until(lambda: lab.converter.counters()["MPTcpExtMPJoinAckRx"] > 0, 10, "the second subflow")
            # to the converter these RSTs look like the client's own
            rules(lab.client, 'input iifname "lte" tcp sport 1234 reject with tcp reset')
            while not lab.converter.counters()["TcpEstabResets"]:
                check(len(got) < size, "the subflow has not ended")
                got += read_exactly(sock, min(100000, size - len(got)))
            got += read_exactly(sock, size - len(got))
            sender.join()
        equal(hashlib.sha256(got).digest(), hashlib.sha256(data).digest(), "the server's bytes")
        check(any(packet.rst and packet.dport == 1234 for packet in capture.packets()), "no RST came to the converter")
        sock.sendall(b"answer")
        equal(client.read(6), b"answer", "the client's bytes")
        client.sock.close()
        sock.close()


if __name__ == "__main__":
    main()
