#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_gateway_parts.py - hold, serve and relay without the Convert Protocol: a transparent gateway of 300 lines (tiny_gateway.c)"""
import contextlib
import errno
import socket

from convertlab import Lab, Link, check, equal, main, need, wait_until

PORT, QUEUE = 4444, 700
GATEWAY = "10.3.0.1"  # its address towards the server
# Ports of the server: one that answers and one that is closed, whose SYNs are withheld, the same without the queue, and one that is routed.
ANSWERS, CLOSED, PLAIN, PLAIN_CLOSED, ROUTED = 80, 81, 82, 83, 84
# The queue has the priority of iptables' table mangle: some kernels have this target, and no queue statement of nftables.
QUEUE_RULE = ["-A", "PREROUTING", "-i", "wifi", "-p", "tcp", "--syn", "-m", "multiport", "--dports", "%d,%d,%d" % (ANSWERS, CLOSED, ROUTED),
              "-j", "NFQUEUE", "--queue-num", str(QUEUE), "--queue-bypass"]
RULES = """table inet gateway {
 chain divert {
  type filter hook prerouting priority -149; policy accept;
  iifname "wifi" meta l4proto tcp socket transparent 1 meta mark set 1 accept
  iifname "wifi" meta nfproto ipv4 meta l4proto tcp tcp dport { 80, 81, 84 } tcp urgptr 0 accept
  iifname "wifi" meta nfproto ipv4 meta l4proto tcp tcp dport 80-84 tproxy ip to :%d meta mark set 1 accept
 }
 chain refuse {
  type filter hook input priority -10; policy accept;
  meta mark 1 tcp flags & (fin|syn|rst|ack) == syn tcp urgptr 0x6d80 reject with tcp reset
 }
}
""" % PORT


@contextlib.contextmanager
def gateway():
    """Yields a lab whose converter's host is a transparent gateway between client and server."""
    need("nft", "nftables")
    need("iptables")
    with Lab(wifi=Link(delay_ms=10), lte=None, core=Link(delay_ms=30)) as lab:
        lab.converter.run(["iptables", "-t", "mangle", *QUEUE_RULE])
        lab.converter.run(["nft", "-f", "-"], input=RULES)
        lab.converter.ip("rule add fwmark 1 lookup 100")
        lab.converter.ip("route add local default dev lo table 100")
        process = lab.start_listening(lab.converter, [lab.build.program("tests/lab/tiny_gateway"), str(PORT), str(QUEUE)], PORT, name="gateway")
        yield lab, process


def dial(lab, port):
    """Returns (errno, socket) of a connection from a stock client."""
    sock = lab.client.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.settimeout(10)
    return sock.connect_ex((lab.server.addr4, port)), sock


def listen(lab, port):
    sock = lab.server.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.bind((lab.server.addr4, port))
    sock.listen()
    sock.settimeout(10)
    return sock


def first(packets, **wanted):
    """When the first such packet was seen."""
    return min(p.time for p in packets if all(getattr(p, name) == value for name, value in wanted.items()))


def exchange(client, accepted, source):
    """Bytes go both ways, each end is passed on, and the server sees the gateway."""
    conn, (peer, _) = accepted
    with conn:
        equal(peer, source, "the server's client")
        client.sendall(b"question")
        equal(conn.recv(100), b"question", "what the server gets")
        client.shutdown(socket.SHUT_WR)
        equal(conn.recv(100), b"", "the end of the client's stream")
        conn.sendall(b"answer")
    equal(client.recv(100) + client.recv(100), b"answer", "what the client gets")


def test_connected_only_when_the_server_has_answered():
    """The client's SYN is withheld until the server's SYN+ACK is there; sent again, it makes no second connection."""
    with gateway() as (lab, _), listen(lab, ANSWERS) as server, lab.capture(lab.converter, "wifi", "tcp") as near, \
            lab.capture(lab.converter, "core", "tcp") as far:
        error, client = dial(lab, ANSWERS)
        equal(error, 0, "errno")
        with client:
            exchange(client, server.accept(), GATEWAY)
        near, far = near.packets(), far.packets()
        times = [first(near, dport=ANSWERS, syn=True), first(far, dport=ANSWERS, syn=True),
                 first(far, sport=ANSWERS, synack=True), first(near, sport=ANSWERS, synack=True)]
        equal(times, sorted(times), "the order of SYN, SYN to the server, and the two SYN+ACKs")
        equal(sum(p.dport == ANSWERS and p.syn for p in far), 1, "SYNs to the server")


def test_refused_as_the_server_refuses():
    """A closed port of the server: a reset in answer to the SYN, and no SYN+ACK before that."""
    with gateway() as (lab, _), lab.capture(lab.converter, "wifi", "tcp") as near:
        error, client = dial(lab, CLOSED)
        client.close()
        equal(error, errno.ECONNREFUSED, "errno")
        wait_until(lambda: any(p.rst for p in near.packets()), 5, "the reset")
        check(not any(p.synack for p in near.packets()), "a SYN+ACK")


def test_routed():
    """What the dialler can't do isn't the client's loss: the withheld SYN goes on, and the router forwards the connection."""
    with gateway() as (lab, process), listen(lab, ROUTED) as server:
        error, client = dial(lab, ROUTED)
        equal(error, 0, "errno")
        with client:
            exchange(client, server.accept(), lab.client.wifi4)
        check(" -> " not in process.log_text(), "a session:\n" + process.log_text())


def test_not_withheld():
    """A SYN that went past the queue: its session asks the server itself, by a dialler that goes from one socket to another."""
    with gateway() as (lab, process), listen(lab, PLAIN) as server:
        error, client = dial(lab, PLAIN)
        equal(error, 0, "errno")
        with client:
            exchange(client, server.accept(), GATEWAY)
        error, client = dial(lab, PLAIN_CLOSED)
        with client:
            if not error:
                with contextlib.suppress(ConnectionResetError):
                    equal(client.recv(1), "a reset", "what the client gets")
        wait_until(lambda: process.log_text().count(" -> CLOSED") == 2, 5, "both sessions to end")


if __name__ == "__main__":
    main()
