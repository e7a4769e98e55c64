#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertize_situations.py - one thing is wrong with networks, names or servers: the doctor names it, and a remedy"""
import os

from convertlab import Lab, Link, Veth, check, equal, long, main, wait_until, waits
from test_convertize_check import DEGRADED, FAILED, OK, Report
from test_convertize_doctor import two_networks

PORTAL = 8080
REDIRECTED = "HTTP/1.1 302 Found\r\nLocation: http://portal.example/\r\nContent-Length: 0\r\n\r\n"


def named(lab):
    """Gives the converter a name with addresses of both families; returns the name."""
    lab.names("one.example A " + lab.converter.addr4, "one.example AAAA " + lab.converter.addr6)
    return "one.example"


def portal(lab, device):
    """Redirects this network's connections to the converter to a web server."""
    page = os.path.join(lab.directory, "portal")
    with open(page, "w", encoding="ascii") as file:
        file.write(REDIRECTED)
    lab.start_listening(lab.converter, ["socat", "TCP6-LISTEN:%d,fork,reuseaddr" % PORTAL, "SYSTEM:cat %s" % page], PORTAL,
                        name="portal-" + device)
    lab.converter.run(["nft", "add table ip portal; add chain ip portal pre { type nat hook prerouting priority -100; }; "
                       "add rule ip portal pre iifname %s tcp dport 1234 redirect to :%d" % (device, PORTAL)])


def test_laptop_without_ipv6():
    with two_networks() as lab:
        lab.convertd()
        name = named(lab)
        equal(Report(lab, converter=name).status, OK, "with both families")
        lab.client.run(["sh", "-c", "ip -6 addr flush dev wifi; ip -6 addr flush dev lte; ip mptcp endpoint flush; "
                        "ip mptcp endpoint add 10.2.0.2 dev lte subflow"])
        report = Report(lab, converter=name)
        equal((report.status, report.bad()), (OK, []), report.facts)
        fact, = [fact for fact in report.all("converter") if fact["status"] == "note"]
        check("this machine has no IPv6, and the same name answers by IPv4" in fact["text"], fact)


@long
@waits
def test_ipv6_leads_nowhere():
    with two_networks() as lab:
        lab.convertd()
        name = named(lab)
        lab.converter.run(["nft", "add table ip6 lost; add chain ip6 lost in { type filter hook input priority 0; }; "
                           "add rule ip6 lost in tcp dport 1234 drop"])
        report = Report(lab, converter=name)
        equal((report.status, report.bad()), (DEGRADED, [("converter", "warn")]), report.facts)
        fact, = [fact for fact in report.all("converter") if fact["status"] == "warn"]
        check("doesn't answer by IPv6, and the same name answers by IPv4" in fact["text"], fact)
        lab.converter.run(["nft", "delete", "table", "ip6", "lost"])
        equal(Report(lab, converter=name).status, OK, "mended")


@waits
def test_captive_portals():
    with two_networks() as lab:
        lab.convertd()
        portal(lab, "lte")
        report = Report(lab)
        equal((report.status, report.bad()), (DEGRADED, [("path", "warn")]), report.facts)
        check("over lte a web server answers instead: a captive portal" in report.one("path")["text"], report.one("path"))
        check("log in to that network" in report.remedies()[0], report.remedies())
    with two_networks() as lab:
        lab.convertd()
        portal(lab, "wifi")
        report = Report(lab)
        equal((report.status, report.bad()), (FAILED, [("converter", "fail")]), report.facts)
        fact = report.one("converter")
        check("a web server answers over wifi, which connections take, though it answers over lte: a captive portal" in fact["text"], fact)
        lab.converter.run(["nft", "delete", "table", "ip", "portal"])
        equal(Report(lab).status, OK, "logged in")


@long
@waits
def test_network_that_loses_packets():
    with Lab(wifi=Link(delay_ms=5), lte=Link(delay_ms=10, loss=0.3), core=Veth()) as lab:
        lab.convertd()
        facts = []
        for _ in range(3):  # if no SYN, or no large packet, gets through, another fact tells of the loss
            report = Report(lab)
            equal(report.status, DEGRADED, report.facts)
            facts += report.all("path.loss")
        check(facts and all("over lte " in fact["text"] and "loses packets" in fact["text"] + fact["remedy"] for fact in facts), facts)


def test_networks_that_no_connection_uses():
    with two_networks() as lab:
        lab.convertd()
        lab.client.run(["sh", "-c", "for f in -4 -6; do ip $f route del default dev lte; ip $f route flush table 102; done; ip mptcp endpoint flush"])
        report = Report(lab)
        equal((report.status, ("network.route", "warn") in report.bad()), (DEGRADED, True), report.facts)
        check("there is no default route over it: no connection uses it" in report.one("network.route")["text"], report.facts)
    with two_networks() as lab:
        lab.convertd()
        lab.client.run(["sh", "-c", "ip -6 addr flush dev wifi; ip -4 addr flush dev lte"])
        report = Report(lab)
        check(("network.family", "warn") in report.bad(), report.facts)
        fact = report.one("network.family")
        equal((fact["about"], report.status), ("lte", DEGRADED), fact)
        check("has no IPv4" in fact["text"], fact)


@waits
def test_servers():
    """The whole way to a server: reached, refused, forbidden by the converter's rules, or blocked by its firewall."""
    with two_networks() as lab:
        convertd = lab.convertd()
        lab.serve("echo", 7)
        lab.names("server.example A " + lab.server.addr4, "server.example AAAA " + lab.server.addr6)
        report = Report(lab, "server.example:7")
        equal((report.status, [fact["status"] for fact in report.all("server")]), (OK, ["ok", "ok"]), report.facts)
        equal({fact["about"] for fact in report.all("server")},
              {"%s:7 (server.example)" % lab.server.addr4, "[%s]:7 (server.example)" % lab.server.addr6}, "both families")
        report = Report(lab, lab.server.addr4 + ":9")
        check("can't be reached, and not directly either" in report.one("server")["text"], report.one("server"))
        lab.converter.run(["nft", "add table inet lab; add chain inet lab out { type filter hook output priority 0; }; "
                           "add rule inet lab out oifname core tcp flags & (syn|ack) == syn drop"])
        report = Report(lab, lab.server.addr4 + ":7")
        equal((report.status, report.one("server")["status"]), (FAILED, "fail"), report.facts)
        check("though it answers directly" in report.one("server")["text"], report.one("server"))
        lab.converter.run(["nft", "delete", "table", "inet", "lab"])
        convertd.stop()
        lab.convertd(["--allow-client", "::/0"], defaults=())
        report = Report(lab, lab.server.addr4 + ":7")
        check("the converter's rules forbid it" in report.one("server")["text"], report.one("server"))
        equal(Report(lab, "no..name:7").one("server")["status"], "warn", "an invalid name")


def test_firewall_of_the_converter():
    """The firewall rejects by ICMP: the doctor blames neither a stopped daemon nor a wrong address."""
    with two_networks() as lab:
        lab.convertd()
        for rule in ("reject", "reject with icmpx type admin-prohibited"):
            lab.converter.run(["nft", "add table inet lab; add chain inet lab in { type filter hook input priority 0; }; "
                               "add rule inet lab in tcp dport 1234 " + rule])
            for address in (lab.converter.addr4, lab.converter.addr6):
                report = Report(lab, converter=address)
                equal((report.status, report.bad()), (FAILED, [("converter", "fail")]), report.facts)
                check("a firewall at %s rejects connections to it" % address in report.one("converter")["text"], report.one("converter"))
                check("have the firewall of %s let TCP to port 1234 through" % address in report.remedies()[0], report.remedies())
            lab.converter.run(["nft", "delete", "table", "inet", "lab"])
        equal(Report(lab).status, OK, "mended")


def test_load_balancer():
    """Connections to one address of the name lose Multipath TCP, those to the other don't."""
    with two_networks() as lab:
        lab.convertd()
        lab.converter.ip("addr add 10.9.0.2/32 dev lo")
        lab.names("one.example A " + lab.converter.addr4, "one.example A 10.9.0.2")
        lab.converter.run(["nft", "add table inet lab; add chain inet lab pre { type filter hook prerouting priority -300; }; "
                           "add rule inet lab pre ip daddr 10.9.0.2 reset tcp option mptcp"])
        report = Report(lab, converter="one.example")
        equal((report.status, report.bad()), (DEGRADED, [("converter.mptcp", "warn")]), report.facts)
        fact, = [fact for fact in report.all("converter.mptcp") if fact["status"] == "warn"]
        check(fact["about"].startswith("10.9.0.2:") and "though it does to 10.9.0.1:1234" in fact["text"], fact)


def test_proxy_in_front_of_the_converter():
    """A proxy like SYNPROXY answers in the converter's place: neither data in SYNs nor Multipath TCP arrives."""
    with two_networks() as lab:
        lab.convertd()
        for option in ("strip_mptcp", "strip_syn_data"):
            lab.wifi.set("a-to-b", **{option: True})
            lab.lte.set("a-to-b", **{option: True})
        report = Report(lab)
        equal((report.status, report.bad()), (DEGRADED, [("converter.mptcp", "warn")]), report.facts)
        check("something in front of the converter takes its connections" in report.one("converter.mptcp")["text"], report.facts)


@long
@waits
def test_limit_on_new_connections():
    """A firewall accepts a few connections at once, and six a minute then, as ufw limit does."""
    with two_networks() as lab:
        lab.convertd()
        said = []
        # which connection is one too many depends on the order in which they begin
        while len(said) < 5 and not any("a firewall limits the rate of new connections" in text for text in said):
            lab.converter.run(["nft", "add table inet lab; add chain inet lab in { type filter hook input priority 0; }; "
                               "add rule inet lab in tcp dport 1234 ct state new limit rate over 6/minute burst %d packets reject" % (4 + len(said))])
            report = Report(lab)
            equal(report.status, DEGRADED, report.facts)
            said.append(report.one("paths")["text"])
            lab.converter.run(["nft", "delete", "table", "inet", "lab"])
        check("a firewall limits the rate of new connections" in said[-1], said)
        equal(Report(lab).status, OK, "without it")


@long
@waits
def test_converter_that_reaches_no_server():
    """The converter reports that: it has no route, or its firewall lets nothing out, as its first clients' requests show."""
    with two_networks() as lab:
        lab.convertd()
        lab.converter.run(["nft", "add table inet lab; add chain inet lab out { type filter hook output priority 0; }; "
                           "add rule inet lab out oifname core tcp flags & (syn|ack) == syn drop"])
        for server in (lab.server.addr4, "[%s]" % lab.server.addr6):  # requests as of programs
            for port in (7, 8):
                Report(lab, "%s:%d" % (server, port))
        report = Report(lab)
        equal((report.status, report.bad()), (FAILED, [("converter.reach", "fail")]), report.facts)
        check("its firewall lets TCP out" in report.remedies()[0], report.remedies())
    with two_networks() as lab:
        lab.converter.run(["sh", "-c", "ip route flush 10.8.0.0/24; ip -6 route flush fd08::/64"])
        lab.convertd()
        report = Report(lab)
        equal((report.status, report.bad()), (FAILED, [("converter.reach", "fail")]), report.facts)
        lab.converter.ip("route add default via 10.3.0.2")

        def is_cured():
            return Report(lab).status == OK
        wait_until(is_cured, 20, "the converter to see its route")


if __name__ == "__main__":
    main()
