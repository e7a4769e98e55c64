#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_platform_handshake.py - how Linux treats a late third ACK if data was in the SYN

No code of the project runs here. doc/decisions.md rests on this for lost third ACKs.
"""
import select
import socket
import struct

from convertlab import Lab, Link, Unsuitable, check, kernel, main
from convertlab.peers import MPTCP, MSG_FASTOPEN, TCP, TCP_FASTOPEN_NO_COOKIE

PORT = 5000
TCP_SYN_RECV = 3
RTT_MS = 20
# More bytes than one third ACK with timestamps has, and fewer than two: without MP_CAPABLE and with it
ONE_ACK = {TCP: 60, MPTCP: 80}


def listen(lab, protocol):
    """Returns a listening socket that takes data in SYNs, if the kernel can."""
    lab.converter.sysctl("net.ipv4.tcp_fastopen", 3)
    sock = lab.converter.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
    if protocol == TCP or kernel.has("fastopen"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 16)
        sock.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 1)
    sock.bind(("", PORT))
    sock.listen(16)
    sock.settimeout(10)
    return sock


def lose_third_ack(lab, protocol):
    """Drops a client's first ACK."""
    lab.converter.run(["nft", "-f", "-"], input="""
        table inet lose {
            chain input {
                type filter hook input priority 0
                tcp dport %d tcp flags & (syn | ack) == ack quota until %d bytes drop
            }
        }
        """ % (PORT, ONE_ACK[protocol]))


def timers(sock):
    """(state, RTO, RTT), the times in milliseconds, of TCP_INFO."""
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232)
    return info[0], struct.unpack_from("I", info, 8)[0] / 1000, struct.unpack_from("I", info, 68)[0] / 1000


def after_handshake(lab, protocol, lost, early):
    """(RTO, RTT) of a server's socket as soon as it is established, whether or not its client's first ACK was lost."""
    with listen(lab, protocol) as listening, lab.client.socket(socket.AF_INET, socket.SOCK_STREAM, protocol) as client:
        if lost:
            lose_third_ack(lab, protocol)
        client.settimeout(20)
        if early:
            client.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 1)
            client.sendto(b"request", MSG_FASTOPEN, (lab.converter.addr4, PORT))
        else:
            client.connect((lab.converter.addr4, PORT))
            client.send(b"request")
        sock, _ = listening.accept()
        with sock, select.epoll() as events:
            events.register(sock, select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)
            while timers(sock)[0] == TCP_SYN_RECV:
                check(events.poll(20), "no third ACK")
            sock.recv(7)
            return timers(sock)[1:]


def test_late_third_ack():
    """Linux measures the RTT from the first SYN+ACK to the ACK of the last one. The RTO, which delays a lost answer, is three times that.

    The client's ACK of a repeated SYN+ACK echoes the timestamp of the first one. Without data in the SYN the client doesn't wait for the
    server: its request completes the handshake, at its own RTO.
    """
    seen = []
    for protocol, name in ((TCP, "TCP"), (MPTCP, "MPTCP")):
        for lost, early in ((False, True), (True, True), (True, False)):
            if early and protocol == MPTCP and not kernel.has("fastopen"):
                continue
            with Lab(wifi=Link(delay_ms=RTT_MS / 2), lte=None, core=Link()) as lab:
                rto, rtt = after_handshake(lab, protocol, lost, early)
            seen.append("%s, %s, data %s: RTT %.0f ms, RTO %.0f ms"
                        % (name, "lost" if lost else "not lost", "in the SYN" if early else "behind", rtt, rto))
            if lost and early:
                check(rtt > 900 and rto > 2700, "this kernel is better: " + seen[-1])
            else:
                check(rtt < 500 and rto < 1100, seen[-1])
    return "; ".join(seen)


def test_way_around():
    """net.ipv4.tcp_rto_max_ms (Linux 6.15) bounds that RTO. TCP_RTO_MAX_MS does so for one socket, but not for an MPTCP one."""
    with Lab(wifi=Link(delay_ms=RTT_MS / 2), lte=None, core=Link()) as lab:
        if not lab.converter.has_sysctl("net.ipv4.tcp_rto_max_ms"):
            raise Unsuitable("this kernel has no net.ipv4.tcp_rto_max_ms (Linux 6.15)")
        lab.converter.sysctl("net.ipv4.tcp_rto_max_ms", 2000)
        rto, rtt = after_handshake(lab, MPTCP, True, True)
        check(rtt > 900 and rto <= 2000, "RTT %.0f ms, RTO %.0f ms" % (rtt, rto))
        return "RTT %.0f ms, RTO %.0f ms" % (rtt, rto)


if __name__ == "__main__":
    main()
