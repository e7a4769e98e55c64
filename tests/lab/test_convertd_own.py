#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertd_own.py - behind a NAT with hairpinning, clients can't reach the converter's host by an --own-address or --shared-address"""
from convertlab import Lab, Link, check, equal, main
from convertlab.harness import need
from convertlab.topology import CONVERTD_OPEN
from convertlab.peers import MPTCP, TCP, Client, Server, connect, converter, error, extended_header

NOT_AUTHORIZED = error(0x20)
PUBLIC = {4: "10.50.0.1", 6: "fd50::1"}  # the NAT translates these to the converter's addresses, INSIDE
INSIDE = {4: "10.3.0.1", 6: "fd03::1"}
LISTEN = 1234


def near(**options):
    """Returns a lab whose links are too fast to matter."""
    options.setdefault("lte", None)
    return Lab(wifi=Link(delay_ms=0.5), core=Link(delay_ms=0.1), **options)


def translate(lab):
    """Makes the lab's server a NAT in front of the converter, with hairpinning: its packets to itself come from the public address."""
    need("nft", "nftables")
    rules = []
    for family, ip in ((4, "ip"), (6, "ip6")):
        words = {"ip": ip, "public": PUBLIC[family], "inside": INSIDE[family]}
        rules += ["table %(ip)s nat {" % words,
                  "chain pre { type nat hook prerouting priority -100;",
                  "%(ip)s daddr %(public)s dnat to %(inside)s" % words, "}",
                  "chain post { type nat hook postrouting priority 100;",
                  "%(ip)s saddr %(inside)s %(ip)s daddr %(inside)s snat %(ip)s to %(public)s fully-random" % words,
                  "}", "}"]
    lab.server.run(["nft", "-f", "-"], input="\n".join(rules) + "\n")
    lab.converter.ip("route add %s via %s" % (PUBLIC[4], lab.server.core4))
    lab.converter.run(["ip", "-6", "route", "add", PUBLIC[6], "via", lab.server.core6])


def asked(lab, request, protocol=TCP, delivery="syn", address=None):
    """Returns (the converter's answer, the bytes behind it)."""
    with Client(lab.client, address or lab.converter.addr4, protocol, delivery) as client:
        client.send(request)
        answer = client.answer()
        return answer, client.end()[0]


def test_configured_own_addresses():
    """convertd refuses the configured addresses, and sends nothing there. A rule for the very address allows it."""
    with near() as lab, Server(lab, 80) as server:
        translate(lab)
        lab.server.ip("addr add 10.50.0.1/32 dev lo")
        for options in (("--own-address", "10.50.0.0/24", "--own-address", PUBLIC[6]),
                        ("--shared-address", PUBLIC[4], "--shared-address", PUBLIC[6])):
            with converter(lab, *options), lab.capture(lab.converter, "core", "tcp") as capture:
                for family in (4, 6):
                    for port in (22, 80, LISTEN):
                        equal(asked(lab, connect(PUBLIC[family], port)), (NOT_AUTHORIZED, b""), "%s:%d" % (PUBLIC[family], port))
            check(not [packet for packet in capture.packets() if packet.syn], "SYNs: %s" % capture.packets())
        lab.server.run(["nft", "flush", "ruleset"])
        with converter(lab, "--own-address", PUBLIC[4], "--allow-destination", PUBLIC[4]):
            with Client(lab.client, lab.converter.addr4) as client:
                extended_header(client.send(connect(PUBLIC[4], 80)).answer())
                server.accept().close()


def test_one_converter_behind_another():
    """It works if the operator allows it, with the second converter's request behind the first one's."""
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
