#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertize_situations_here.py - one thing is wrong with this machine itself: the doctor doesn't blame the network or the converter"""
from convertlab import check, equal, long, main, waits
from test_convertize_check import DEGRADED, FAILED, OK, Report
from test_convertize_doctor import two_networks

FIREWALL = "add table inet lab; add chain inet lab out { type filter hook output priority 0; }; add rule inet lab out %s"


def blames(lab, cause, *words, name="converter", status=FAILED, **options):
    """Runs the check; one fact isn't right, and names the cause. Returns the fact."""
    report = Report(lab, *words, **options)
    equal((report.status, report.bad()), (status, [(name, "warn" if status == DEGRADED else "fail")]), report.facts)
    fact, = [fact for fact in report.all(name) if fact["status"] in ("warn", "fail")]
    check(cause in fact["text"], fact)
    return fact


@long
@waits
def test_own_firewall_drops():
    """It drops without a word, on all networks, on one, and SYNs with Multipath TCP alone; or it removes that option."""
    with two_networks() as lab:
        lab.convertd()
        for rule, name, status, cause in (
                ("tcp dport 1234 drop", "converter", FAILED, "this machine's own firewall lets no SYN to it out"),
                ("oifname wifi tcp dport 1234 drop", "converter", FAILED, "this machine's own firewall lets no SYN to it out"),
                ("oifname lte tcp dport 1234 drop", "path", DEGRADED, "this machine's own firewall lets no SYN to it out over lte"),
                ("tcp option mptcp exists drop", "converter.mptcp", DEGRADED, "this machine's own firewall removes Multipath TCP"),
                ("tcp flags & (syn|ack) == syn reset tcp option mptcp", "converter.mptcp", DEGRADED, "own firewall removes Multipath TCP")):
            lab.client.run(["nft", FIREWALL % rule])
            check("nft list ruleset" in blames(lab, cause, name=name, status=status)["remedy"], rule)
            lab.client.run(["nft", "delete", "table", "inet", "lab"])
        equal(Report(lab).status, OK, "without it")


def test_own_routes():
    with two_networks() as lab:
        lab.convertd()
        for kind in ("blackhole", "unreachable", "prohibit"):
            lab.client.ip("route add %s %s" % (kind, lab.converter.addr4))
            fact = blames(lab, "a route of this machine forbids it")
            check("ip route show table all" in fact["remedy"], fact)
            lab.client.ip("route del %s %s" % (kind, lab.converter.addr4))
        equal(Report(lab).status, OK, "without such a route")
        lab.client.ip("mptcp endpoint flush", "route flush table main")
        fact, = Report(lab).all("converter")
        check("this machine has no route to it" in fact["text"] and "ip route add default via ROUTER" in fact["remedy"], fact)
        lab.client.run(["sh", "-c", "ip addr flush dev wifi; ip addr flush dev lte; ip -6 addr add fd01::2/64 dev wifi nodad; "
                        "ip -6 route add default via fd01::1 dev wifi"])
        check("this machine has no IPv4 network" in Report(lab).one("converter")["text"], "a laptop with IPv6 only")
        equal(Report(lab, converter=lab.converter.addr6).status, OK, "with an address of the family that it has")


def test_names_with_an_address_of_this_machine():
    """As resolvers that block names answer."""
    with two_networks() as lab:
        lab.names("loop.example A 127.0.0.1", "self.example A " + lab.client.wifi4)
        for name in ("loop.example", "self.example"):
            fact = blames(lab, "is this machine's own address, and no converter answers there", converter=name)
            equal(fact["remedy"], "see that DNS is right: getent ahosts " + name, fact)
        check("systemctl start convertd here" in blames(lab, "is this machine's own address", converter="127.0.0.1")["remedy"], "no name")


@long
@waits
def test_addresses_that_no_router_knows():
    with two_networks() as lab:
        fact = blames(lab, "Network is unreachable, says a router on the way", converter="192.168.77.1")
        equal(fact["remedy"], "see that the address is right", fact)


if __name__ == "__main__":
    main()
