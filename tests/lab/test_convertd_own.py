#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertd_own.py - behind a NAT with hairpinning, clients can't reach the converter's host by its own public address"""
import contextlib
import socket
import threading

from convertlab import Lab, Link, check, equal, main
from convertlab.harness import need
from convertlab.topology import CONVERTD_OPEN
from convertlab.peers import MPTCP, TCP, Client, Server, connect, converter, error, extended_header

NOT_AUTHORIZED = error(0x20)
PUBLIC = {4: "10.50.0.1", 6: "fd50::1"}  # the NAT has them, and translates them to the converter's
INSIDE = {4: "10.3.0.1", 6: "fd03::1"}
LISTEN = 1234
MAPPED = 4321  # of the public address, leads to LISTEN

# What the NAT makes of the source of what the converter sends to its own public address.
SOURCES = {"public": "snat %(ip)s to %(public)s",           # a cloud's 1:1 NAT
           "router": "snat %(ip)s to %(router)s",           # a router's hairpin NAT
           "ports": "snat %(ip)s to %(public)s fully-random"}  # other ports as well


def near(**options):
    """Returns a lab whose links are too fast to matter."""
    options.setdefault("lte", None)
    return Lab(wifi=Link(delay_ms=0.5), core=Link(delay_ms=0.1), **options)


def translate(lab, source="public"):
    """Makes the lab's server a NAT in front of the converter, with hairpinning."""
    need("nft", "nftables")
    rules = []
    for family, ip in ((4, "ip"), (6, "ip6")):
        words = {"ip": ip, "public": PUBLIC[family], "inside": INSIDE[family],
                 "router": lab.server.core4 if family == 4 else lab.server.core6}
        snat = SOURCES[source] % words
        to = "%(inside)s:1234" if family == 4 else "[%(inside)s]:1234"
        rules += ["table %(ip)s nat {" % words,
                  "chain pre { type nat hook prerouting priority -100;",
                  ("%(ip)s daddr %(public)s tcp dport 4321 dnat to " + to) % words,
                  "%(ip)s daddr %(public)s dnat to %(inside)s" % words, "}",
                  "chain post { type nat hook postrouting priority 100;",
                  "%(ip)s saddr %(inside)s %(ip)s daddr %(inside)s " % words + snat,
                  "}", "}"]
    lab.server.run(["nft", "-f", "-"], input="\n".join(rules) + "\n")
    lab.converter.ip("route add %s via %s" % (PUBLIC[4], lab.server.core4))
    lab.converter.run(["ip", "-6", "route", "add", PUBLIC[6], "via", lab.server.core6])


class Service:
    """A service on the converter's host that is meant for the host itself: it counts connections, and greets them."""

    def __init__(self, lab, port):
        self.sock = lab.converter.socket(socket.AF_INET6)
        self.sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        self.sock.bind(("::", port))
        self.sock.listen(64)
        self.port = port
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self.sock.accept()
                with contextlib.suppress(OSError):
                    sock.sendall(b"SSH-2.0-secret\r\n")
                sock.close()

    def close(self):
        """Stops the service."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        self.thread.join(5)
        self.sock.close()


def asked(lab, request, protocol=TCP, delivery="syn", address=None):
    """Returns (the converter's answer, the bytes behind it)."""
    with Client(lab.client, address or lab.converter.addr4, protocol, delivery) as client:
        client.send(request)
        answer = client.answer()
        return answer, client.end()[0]


def accepted(lab):
    """Returns how many connections convertd has accepted, by its metrics."""
    text = lab.converter.run(["curl", "-s", "http://127.0.0.1:9103/metrics"]).stdout
    return sum(int(float(line.split()[-1])) for line in text.splitlines() if line.startswith("convertd_connections_accepted_total"))


def test_services_by_the_public_address():
    """What the converter's host has for itself is refused by its public address, too; learned from the first try."""
    for source in ("public", "router"):
        with near() as lab:
            translate(lab, source)
            service = Service(lab, 22)
            try:
                with converter(lab, "--metrics", "127.0.0.1:9103") as process:
                    for family in (4, 6):
                        for _ in range(3):
                            answer, behind = asked(lab, connect(PUBLIC[family], 22))
                            equal((answer, behind), (NOT_AUTHORIZED, b""), "ssh by %s (%s)" % (PUBLIC[family], source))
                        check("%s is an address of this host" % PUBLIC[family] in process.log_text(), process.log_text())
                    status = lab.converter.run(["curl", "-s", "http://127.0.0.1:9103/status"]).stdout
                    equal(status.count("leads back here"), 2, "addresses in the status:\n" + status)
            finally:
                service.close()


def test_addresses_that_are_told():
    """Nothing has to be found out then, and nothing is sent there. A rule for the very address opens it."""
    with near() as lab, Server(lab, 80) as server:
        translate(lab, "ports")
        lab.server.ip("addr add 10.50.0.1/32 dev lo")
        for told in (("--own-address", "10.50.0.0/24", "--own-address", PUBLIC[6]),
                     ("--shared-address", PUBLIC[4], "--shared-address", PUBLIC[6])):
            with converter(lab, *told), lab.capture(lab.converter, "core", "tcp") as capture:
                for family in (4, 6):
                    for port in (22, 80, LISTEN):
                        equal(asked(lab, connect(PUBLIC[family], port)), (NOT_AUTHORIZED, b""), "%s:%d" % (PUBLIC[family], port))
            check(not [packet for packet in capture.packets() if packet.syn], "SYNs: %s" % capture.packets())
        lab.server.run(["nft", "flush", "ruleset"])
        with converter(lab, "--own-address", PUBLIC[4], "--allow-destination", PUBLIC[4]):
            with Client(lab.client, lab.converter.addr4) as client:
                extended_header(client.send(connect(PUBLIC[4], 80)).answer())
                server.accept().close()


def nested(address, port, depth):
    """Returns requests to connect to the converter through the converter, nested this deep."""
    return connect(address, port) * depth


def test_requests_within_requests():
    """One connection with nested requests: convertd had 20 connections with itself."""
    for source in SOURCES:
        for port in (LISTEN, MAPPED):
            for delivery in ("syn", "behind"):
                with near() as lab, Server(lab, 80) as server:
                    translate(lab, source)
                    with converter(lab, "--metrics", "127.0.0.1:9103") as process:
                        for family in (4, 6):
                            before = accepted(lab)
                            request = nested(PUBLIC[family], port, 20) + server.connect()
                            with Client(lab.client, lab.converter.addr4, TCP, delivery, seconds=2) as client:
                                # refused, or cut off
                                client.send(request)
                                with contextlib.suppress(ConnectionResetError):
                                    client.answer()
                                    client.end()
                            # the one, and the one that looks where it leads
                            own = accepted(lab) - before - 1
                            check(own <= 2, "%d connections of convertd with itself (%s, port %d, %s)" % (own, source, port, delivery))
                        check("--own-address" in process.log_text(), process.log_text())


def test_requests_one_by_one():
    """Each request comes when the one before it was answered."""
    with near() as lab:
        translate(lab, "ports")
        with converter(lab, "--metrics", "127.0.0.1:9103"), Client(lab.client, lab.converter.addr4, MPTCP) as client:
            request = connect(PUBLIC[4], MAPPED)
            client.send(request)
            extended_header(client.answer())
            client.sock.sendall(request)
            equal(client.end()[0], b"", "what comes behind the answer")
            check(accepted(lab) <= 3, "%d connections" % accepted(lab))


def test_by_a_forwarder():
    """Somewhere else is something that forwards to the converter: that port of it alone is refused."""
    need("socat", "socat")
    with near() as lab, Server(lab, 80) as server:
        lab.start_listening(lab.server, ["socat", "TCP-LISTEN:7000,fork,reuseaddr", "TCP:10.3.0.1:1234"], 7000)
        with converter(lab, "--metrics", "127.0.0.1:9103"):
            with Client(lab.client, lab.converter.addr4, seconds=2) as client:
                client.send(nested(lab.server.addr4, 7000, 20) + server.connect())
                with contextlib.suppress(ConnectionResetError):
                    client.answer()
                    client.end()
            check(accepted(lab) <= 3, "%d connections" % accepted(lab))
            equal(asked(lab, connect(lab.server.addr4, 7000)), (NOT_AUTHORIZED, b""), "the forwarder's port")
            with Client(lab.client, lab.converter.addr4) as client:
                extended_header(client.send(server.connect()).answer())
                server.accept().close()


def test_one_converter_behind_another():
    """That is the operator's choice: it works, with the one request in the other."""
    with near() as lab, Server(lab, 80) as server:
        lab.start_listening(lab.server, [lab.build.program("convertd"), *CONVERTD_OPEN, "--allow-destination", lab.server.addr4], LISTEN,
                            name="second")
        with converter(lab):
            for request in (connect(lab.server.addr4, LISTEN), connect(lab.server.addr6, LISTEN)):
                for protocol in (TCP, MPTCP):
                    with Client(lab.client, lab.converter.addr4, protocol) as client:
                        client.send(request + server.connect())
                        extended_header(client.answer())
                        extended_header(client.answer())
                        server.accept().close()


if __name__ == "__main__":
    main()
