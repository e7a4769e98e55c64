#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertd_access.py - which clients may use convertd, and which destinations they may reach: rules, its own addresses, hairpins"""
import signal
import socket

from convertlab import Lab, Link, check, equal, main, wait_until
from convertlab.peers import (MPTCP, TCP, WITHHOLDING, Client, Server, clients, connect, converter, echo, error, extended_header,
                              message, octets)

INFO = octets("01010000")
SUPPORTED = octets("15020000 04081e00") + WITHHOLDING
NOT_AUTHORIZED = 0x20
LAB = ("--allow-destination", "10.0.0.0/8", "--allow-destination", "fd00::/8")


def near(**options):
    """Returns a lab whose links are too fast to matter."""
    options.setdefault("lte", None)
    return Lab(wifi=Link(delay_ms=0.5), core=Link(delay_ms=0.1), **options)


def strict(lab, *arguments):
    """Starts convertd with its own defaults, not the lab's, and these options."""
    return converter(lab, *arguments, defaults=())


def answers(lab, request, answer, what="", **choice):
    """Checks that each client gets this answer, and then the end of the stream."""
    choice.setdefault("deliveries", ["syn", "behind"])
    for client in clients(lab, **choice):
        client.send(request)
        equal(client.answer().hex(), answer.hex(), "the answer to %s%s (%s)" % (what + " " if what else "", request.hex(),
                                                                              client.name))
        equal(client.end(), (b"", "closed"), "the end behind the answer (%s)" % client.name)


def reaches(lab, server, v6=False, request=None, **choice):
    """Checks that each client is connected to the server."""
    choice.setdefault("deliveries", ["syn"])
    for client in clients(lab, **choice):
        extended_header(client.send(request or server.connect(v6=v6)).answer())
        server.accept().close()


# --- destinations ------------------------------------------------------------------------------------------------


# tests/unit/test_access.c has each prefix
DENIED = ("10.8.0.1", "169.254.169.254", "fd08::1", "64:ff9b::10.8.0.1")


def test_private_destinations():
    """Without a rule, convertd refuses destinations that aren't public and sends them no SYN; it still answers an Info TLV."""
    with near() as lab, Server(lab, 80):
        for command in ("route add default via %s" % lab.server.core4, "-6 route add default via %s" % lab.server.core6):
            lab.converter.run(["ip", *command.split()])
        with strict(lab) as process:
            check("--allow-client" in process.log_text(), "no warning about being open to everybody: " + process.log_text())
            with lab.capture(lab.converter, "core", "tcp or proto 41 or ip6") as capture:
                for address in DENIED:
                    answers(lab, connect(address, 80), error(NOT_AUTHORIZED), address, deliveries=["syn"], protocols=[MPTCP])
                answers(lab, connect("10.8.0.1", 80), error(NOT_AUTHORIZED))
                answers(lab, message(INFO, connect("10.8.0.1", 80)[4:]), message(SUPPORTED, octets("1e012000")))
            sent = [packet for packet in capture.packets() if packet.syn]
            check(not sent, "SYNs: %s" % sent)


def test_public_destinations():
    """They need no rule."""
    with near() as lab, Server(lab, 80) as server:
        lab.server.ip("addr add 8.8.8.8/32 dev lo", "addr add 2600::8/128 dev lo")
        lab.converter.ip("route add 8.8.8.8 via %s" % lab.server.core4)
        lab.converter.run(["ip", "-6", "route", "add", "2600::8", "via", lab.server.core6])
        with strict(lab):
            for address in ("8.8.8.8", "2600::8"):
                reaches(lab, server, request=connect(address, 80))


def test_allowed_destinations():
    """A rule allows a private network, another one denies a port in it; a rule that allows something denies everything else."""
    with near() as lab, Server(lab, 80) as server, Server(lab, 81) as other:
        with strict(lab, "--allow-client", "::/0", "--allow-destination", "10.8.0.0/16", "--deny-destination", "10.8.0.1:81") as process:
            check("--allow-client" not in process.log_text(), process.log_text())
            reaches(lab, server)
            answers(lab, other.connect(), error(NOT_AUTHORIZED))
            answers(lab, server.connect(v6=True), error(NOT_AUTHORIZED))
            # with such a rule, public destinations need one, too
            answers(lab, connect("8.8.8.8", 80), error(NOT_AUTHORIZED), deliveries=["syn"])
        with strict(lab, "--deny-destination", "fd08::1", *LAB):
            reaches(lab, server)
            answers(lab, server.connect(v6=True), error(NOT_AUTHORIZED))


def test_own_addresses():
    """Clients can't reach the host's own services, convertd among them, on any address that it has now or later, unless a rule names it."""
    with near() as lab, Server(lab, 80) as server, lab.converter.socket(socket.AF_INET6) as service:
        service.bind(("::", 22))
        service.listen(8)
        service.settimeout(10)
        lab.converter.ip("route add local 10.77.0.0/16 dev lo")
        own = ("10.9.0.1", "10.1.0.1", "10.3.0.1", "10.77.1.2", "fd09::1", "fd01::1", "fd03::1")
        with strict(lab, *LAB, "--allow-destination", "10.3.0.1", "--allow-destination", "[fd03::1]:22") as process:
            for address in own:
                if address in ("10.3.0.1", "fd03::1"):
                    continue
                for port in (22, 1234):
                    answers(lab, connect(address, port), error(NOT_AUTHORIZED), address, deliveries=["syn"])
            # IPv6's subnet-router anycast address
            answers(lab, connect("fd01::", 22), error(NOT_AUTHORIZED), deliveries=["syn"])
            # a request for a broadcast address is malformed
            for address in ("10.1.0.255", "10.3.0.255"):
                request = connect(address, 80)
                if address == "10.1.0.255":
                    lab.converter.ip("addr del 10.1.0.1/24 dev wifi", "addr add 10.1.0.1/24 brd + dev wifi")
                else:
                    lab.converter.ip("addr change 10.3.0.1/24 brd 10.3.0.255 dev core")
                answers(lab, request, echo(1, request), address, deliveries=["syn"])
            # rules for these very addresses
            reaches(lab, Listening(service), request=connect("10.3.0.1", 22))
            reaches(lab, Listening(service), request=connect("fd03::1", 22))
            answers(lab, connect("fd03::1", 1234), error(NOT_AUTHORIZED), deliveries=["syn"])
            # an address is denied while the host has it
            lab.server.ip("addr add 10.8.0.2/32 dev lo")
            reaches(lab, server, request=connect("10.8.0.2", 80))
            lab.converter.ip("addr add 10.8.0.2/32 dev lo")
            answers(lab, connect("10.8.0.2", 80), error(NOT_AUTHORIZED), deliveries=["syn"])
            lab.converter.ip("addr del 10.8.0.2/32 dev lo")
            reaches(lab, server, request=connect("10.8.0.2", 80))
            check("destination is the converter" in process.log_text(), process.log_text())


class Listening:
    """The part of a Server that reaches() needs, around a listening socket of any host."""

    def __init__(self, sock):
        self._sock = sock

    def accept(self):
        """Accepts the next connection."""
        return self._sock.accept()[0]


def test_hairpin():
    """A client reaches a client's address, with --no-hairpin not."""
    with near() as lab, lab.client.socket(socket.AF_INET6) as service:
        service.bind(("::", 8080))
        service.listen(8)
        service.settimeout(10)
        for address in (lab.client.wifi4, lab.client.wifi6):
            with converter(lab):
                reaches(lab, Listening(service), request=connect(address, 8080))
            with strict(lab, *LAB, "--allow-client", "10.1.0.0/16", "--allow-client", "fd01::/64", "--no-hairpin"):
                answers(lab, connect(address, 8080), error(NOT_AUTHORIZED))


# --- clients -----------------------------------------------------------------------------------------------------


def test_clients():
    """A denied client gets Not Authorized for any request, even for Info; a malformed one has its own answer."""
    with near(lte=Link(delay_ms=0.5)) as lab, Server(lab, 80) as server:
        with strict(lab, *LAB, "--allow-client", "10.0.0.0/8", "--deny-client", "10.1.0.0/24"):
            requests = (server.connect(), message(INFO),
                        message(INFO, server.connect()[4:]), connect("10.8.0.1", 80, octets("2202")))
            for request in requests:
                answers(lab, request, error(NOT_AUTHORIZED))
            request = connect("127.0.0.1", 80)
            answers(lab, request, echo(1, request), deliveries=["syn"])
            # over the other link the client has another address
            for protocol in (TCP, MPTCP):
                with Client(lab.client, lab.converter.addr4, protocol) as client:
                    client.sock.bind((lab.client.lte4, 0))
                    extended_header(client.send(server.connect()).answer())
                    server.accept().close()
                with Client(lab.client, lab.converter.addr6, protocol) as client:
                    client.sock.bind((lab.client.lte6, 0))
                    equal(client.send(server.connect()).answer(), error(NOT_AUTHORIZED), "no rule for IPv6")


def test_rules_change():
    """A reload: sessions go on, and new requests are judged by the new rules."""
    with near() as lab, Server(lab, 80) as server:
        path = lab.directory + "/rules"

        def write(*lines):
            with open(path, "w", encoding="ascii") as file:
                file.write("\n".join(lines))
        write("allow-client ::/0", "allow-destination 10.8.0.1")
        with strict(lab, "--config", path) as process, Client(lab.client, lab.converter.addr4, MPTCP) as client:
            extended_header(client.send(server.connect()).answer())
            sock = server.accept()
            write("allow-client fd01::/64", "allow-destination 10.8.0.0/24", "deny-destination 10.8.0.1")
            process.send_signal(signal.SIGHUP)
            process.wait_log("reloaded")
            answers(lab, server.connect(), error(NOT_AUTHORIZED))
            sock.sendall(b"still here")
            equal(client.read(10), b"still here", "the session from before the reload")
            sock.close()
            write("allow-client fd01::/64", "allow-client fd01::/64 # twice does no harm", "allow-client 10.0.0.0/7:80")
            process.send_signal(signal.SIGHUP)
            process.wait_log("not reloaded")
            check("%s:3: allow-client: \"10.0.0.0/7:80\"" % path in process.log_text(), process.log_text())


def test_curl_through_the_shim():
    """An application reaches an allowed server, and gets EHOSTUNREACH for a denied one."""
    with near() as lab:
        lab.http()
        with strict(lab, *LAB, "--deny-destination", "10.8.0.66"):
            result = lab.client.run(["curl", "-q", "-sS", "-o", "/dev/null", "-w", "%{size_download}",
                                     "http://%s/bytes/1000" % lab.server.addr4], env=lab.converted())
            equal(result.stdout, "1000", "bytes")
            result = lab.client.run(["curl", "-q", "-sSv", "http://10.8.0.66/"],
                                    env=lab.converted(CONVERT_FALLBACK="none"), check=False)
            check(result.returncode == 7 and "No route to host" in result.stderr, result)
            wait_until(lambda: "destination denied" in lab.log_tails(), 5, "the converter's line")


if __name__ == "__main__":
    main()
