#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_gateway_lans.py - convertgw with LANs of many kinds: tunnels, VLANs' names, patterns, public prefixes; devices that come and go"""
import contextlib
import socket
import struct

from convertlab import Link, check, equal, main, wait_until
from convertlab.gateways import PORT, add_lan, connect, family, gateway_lab, give_addresses, listening, masquerade, start_gateway
from convertlab.links import Cable, RunningLink, Veth
from test_gateway_beside import nft, ways
from test_gateway_rules import CONVERTED, REFUSED, ROUTED, scene, tellers, way

PUBLIC4, PUBLIC6 = "11.22.33.44", "2600:22:33::44"


@contextlib.contextmanager
def lans(**options):
    """A lab with a converter and tellers. The tests add LANs and public servers."""
    with gateway_lab(**options) as lab:
        lab.convertd()
        tellers(lab, PORT)
        masquerade(lab)
        yield lab


def test_patterns():
    """--lan cali*: every interface with such a name, as soon as it exists; connections between two of these LANs are routed."""
    with lans() as lab:
        first, second = add_lan(lab, "cali1", 20, "first"), add_lan(lab, "cali2", 21, "second")
        other = add_lan(lab, "cal", 22, "other")
        process = start_gateway(lab, args=("--lan", "cali*", "--lan", "br0", "--route", "device cali7*", "--require", "destination :81"))
        for pod in (first, second):
            equal(ways(lab, pod), [CONVERTED] * 2, "of a matching name")
        equal(ways(lab, other), [ROUTED] * 2, "of another name")
        later = add_lan(lab, "cali3", 23, "later")
        equal(ways(lab, later), [CONVERTED] * 2, "of an interface that came later")
        equal(ways(lab, add_lan(lab, "cali71", 24, "last")), [ROUTED] * 2, "of a rule with a pattern")
        second.ip("addr add %s/32 dev lo" % PUBLIC4, "addr add %s/128 dev lo nodad" % PUBLIC6)
        lab.client.ip("route add %s via 10.21.0.2" % PUBLIC4, "route add %s via fd21::2" % PUBLIC6)
        tellers(lab, PORT, host=second)
        withheld = process.log_text().count("SYN of")
        equal([way(lab, first, PUBLIC4), way(lab, first, PUBLIC6)], [ROUTED] * 2, "between two of the pattern")
        equal(process.log_text().count("SYN of"), withheld, "withheld SYNs")
        lab.client.ip("link set cali3 down", "link set cali3 name lan3", "link set lan3 up")
        later.ip("route replace default via 10.23.0.1", "route replace default via fd23::1")
        wait_until(lambda: way(lab, later) == ROUTED, 10, "the renamed interface's connections to be routed")
        nft(lab.converter, "table inet off {\n chain input { type filter hook input priority -450; tcp dport 1234 reject; }\n}\n")
        check(way(lab, first, port=81).startswith(REFUSED), "it wasn't refused without a converter")
        said = lab.client.run([lab.build.program("convertgw"), "--check-config", "--lan", "cali*", "--lan", "dock*", "--route", "device cali2",
                               "--converter", lab.converter.addr4]).stderr
        check("no interface dock* yet" in said, said)
        check("cali" not in said.replace("the private addresses of cali", ""), said)


def test_marks_in_lookups_of_patterns():
    """--lan with a pattern: converted if the kernel validates source addresses with the packet's mark, as WireGuard's tools set it."""
    with lans() as lab:
        pod = add_lan(lab, "cali1")
        start_gateway(lab, args=("--lan", "cali*"))
        for name in ("ipv4.conf.all.src_valid_mark", "ipv4.conf.all.rp_filter", "ipv4.tcp_fwmark_accept"):
            lab.client.sysctl("net." + name, 1)
            equal(ways(lab, pod), [CONVERTED] * 2, "clients, with " + name)


def test_a_tunnel():
    """A LAN whose device has no link-layer header, as those of tunnels (here a TUN), and a smaller MTU: converted, refused."""
    with lans() as lab:
        phone = lab.add_host("phone")
        link = RunningLink(lab.build.program("linkem"), Link(delay_ms=5, mtu=1420), "wg0", lab.client, phone, lab.directory)
        with contextlib.closing(link):
            give_addresses(lab, phone, "wg0")
            start_gateway(lab, args=("--lan", "wg0"))
            equal(ways(lab, phone), [CONVERTED] * 2, "both families")
            for address in (lab.server.addr4, lab.server.addr6):
                check(way(lab, phone, address, lab.addresses.refused_port).startswith(REFUSED), "a closed port")
                exchange(lab, phone, address)


def exchange(lab, phone, address, size=300000, dscp=0):
    """Moves bytes over a connection with this DSCP, in both directions. Returns the address that the server sees."""
    with listening(lab.server, address, 90) as listener, phone.socket(family(address)) as client:
        client.settimeout(15)
        client.setsockopt(*((socket.IPPROTO_IPV6, socket.IPV6_TCLASS) if ":" in address else (socket.IPPROTO_IP, socket.IP_TOS)), dscp << 2)
        equal(client.connect_ex((address, 90)), 0, "errno of connect()")
        server, peer = listener.accept()
        with server:
            server.settimeout(15)
            for one, two in ((client, server), (server, client)):
                one.settimeout(15)
                sent = got = 0
                while got < size:
                    if sent < size:
                        sent += one.send(bytes(min(size - sent, 16000)))
                    with contextlib.suppress(BlockingIOError):
                        part = len(two.recv(65536, socket.MSG_DONTWAIT if sent < size else 0))
                        check(part, "the connection ended")
                        got += part
    return peer[0]


def test_small_networks():
    """Uplinks with the MTU of PPPoE and the least one of IPv6: bytes pass in both directions and families, converted and routed."""
    with lans(wifi=Link(delay_ms=10, mtu=1280), lte=Link(delay_ms=15, mtu=1492)) as lab:
        phone = add_lan(lab)
        start_gateway(lab, args=("--lan", "lan", "--route", "destination :90 dscp 8"))
        for address, converter, router in ((lab.server.addr4, lab.converter.core4, lab.client.wifi4),
                                           (lab.server.addr6, lab.converter.core6, lab.client.wifi6)):
            for dscp, peer in ((0, converter), (8, router)):
                equal(exchange(lab, phone, address, dscp=dscp), peer, "who connects to %s, with DSCP %d" % (address, dscp))


def test_macvlan():
    """A LAN that is a macvlan, and one whose name is a VLAN's."""
    with lans() as lab:
        phone, tablet = lab.add_host("phone"), add_lan(lab, "eth0.10", 21, "tablet")
        Cable(Veth(), "trunk", lab.client, phone)
        lab.client.ip("link add link trunk name mac0 type macvlan mode bridge", "link set mac0 up")
        lab.client.sysctl("net.ipv4.conf.trunk.arp_ignore", 1)  # otherwise it would answer for the macvlan
        phone.ip("link set trunk down", "link set trunk name mac0", "link set mac0 up")
        give_addresses(lab, phone, "mac0")
        start_gateway(lab, args=("--lan", "mac0", "--lan", "eth0.10"))
        for host in (phone, tablet):
            equal(ways(lab, host), [CONVERTED] * 2, host.name)


def unreachable_from_the_converter(lab, *prefixes):
    """Gives the converter routes to these networks, which the next router refuses."""
    routes_of_the_converter(lab, *prefixes)
    lab.server.ip(*("route add unreachable " + prefix for prefix in prefixes))


def routes_of_the_converter(lab, *prefixes):
    for prefix in prefixes:
        lab.converter.ip("route add %s via %s" % (prefix, lab.server.core6 if ":" in prefix else lab.server.core4))


def test_only_ipv6():
    """A LAN with IPv6 alone and a delegated public prefix: converted, also by an IPv4 converter; connections through NAT64 are routed."""
    with lans() as lab:
        phone = add_lan(lab)
        lab.client.ip("addr del 10.20.0.1/24 dev lan", "addr add 2600:20::1/64 dev lan nodad")
        phone.ip("addr flush dev lan scope global", "addr add 2600:20::2/64 dev lan nodad", "route replace default via 2600:20::1")
        translator = lab.add_host("translator")
        Cable(Veth(), "clat", lab.client, translator)
        translator.ip("addr add fd64::2/64 dev clat nodad", "addr add 64:ff9b::808:808/128 dev lo nodad", "route add default via fd64::1")
        lab.client.ip("addr add fd64::1/64 dev clat nodad", "route add 64:ff9b::/96 via fd64::2")
        tellers(lab, PORT, host=translator)
        unreachable_from_the_converter(lab, "64:ff9b::/96")
        start_gateway(lab, converter=lab.converter.addr4)
        equal(way(lab, phone, lab.server.addr6), CONVERTED, "to a server with IPv6")
        equal(way(lab, phone, "64:ff9b::808:808"), ROUTED, "to a server with IPv4")


def shared_lan(lab):
    """Makes the client a router of a LAN; returns two hosts. The second one has more addresses, and is a router to further networks."""
    lab.client.ip("link add lan type bridge", "link set lan up")
    hosts = [shared_host(lab, number, name) for number, name in ((2, "phone"), (3, "neighbour"))]
    lab.client.ip("addr add 10.20.0.1/24 dev lan", "addr add fd20::1/64 dev lan nodad", "addr add fe80::1/64 dev lan nodad",
                  "addr add 11.22.33.1/24 dev lan", "addr add 2600:22:33::1/64 dev lan nodad",
                  "route add 11.22.34.0/24 via 10.20.0.3", "route add 2600:22:34::/64 via fd20::3", "route add 10.21.0.0/24 via 10.20.0.3",
                  "route add fd21::/64 via fe80::3 dev lan")
    lab.client.sysctl("net.ipv4.ip_forward", 1)
    lab.client.sysctl("net.ipv6.conf.all.forwarding", 1)
    hosts[0].ip("route add default via 10.20.0.1", "route add default via fe80::1 dev lan")
    hosts[1].ip("addr add %s/24 dev lan" % PUBLIC4, "addr add %s/64 dev lan nodad" % PUBLIC6, "addr add 11.22.34.5/32 dev lo",
                "addr add 2600:22:34::5/128 dev lo nodad", "addr add 10.21.0.3/32 dev lo", "addr add fd21::3/128 dev lo nodad")
    tellers(lab, PORT, host=hosts[1])
    return hosts


def shared_host(lab, number, name):
    """One more host of the shared LAN."""
    host = lab.add_host(name)
    Cable(Veth(), "port%d" % number, lab.client, host)
    lab.client.ip("link set port%d master lan" % number)
    host.ip("link set port%d down" % number, "link set port%d name lan" % number, "link set lan up", "addr add 10.20.0.%d/24 dev lan" % number,
            "addr add fd20::%d/64 dev lan nodad" % number, "addr add fe80::%d/64 dev lan nodad" % number)
    return host


def test_neighbours():
    """Two public prefixes on one LAN, and one behind another router there: routed."""
    with lans() as lab:
        phone, _ = shared_lan(lab)
        unreachable_from_the_converter(lab, "11.22.0.0/16", "2600:22::/32")
        start_gateway(lab)
        # first, as the kernel sends few redirects a second
        for address, router in (("10.21.0.3", "10.20.0.3"), ("fd21::3", "fe80::3")):
            phone.ping(address, count=6, interval=0.1)
            check("via " + router in phone.run(["ip", "route", "get", address]).stdout, "no redirect to a private network's router")
        for address in (PUBLIC4, PUBLIC6, "11.22.34.5", "2600:22:34::5"):
            equal(way(lab, phone, address), ROUTED, address)
        equal(ways(lab, phone), [CONVERTED] * 2, "to the Internet")


def test_one_arm():
    """The uplink is a router in the LAN: converted, and no redirect to that router leads a converted connection past the gateway."""
    with lans() as lab:
        phone, _ = shared_lan(lab)
        uplink = shared_host(lab, 4, "uplink")
        Cable(Veth(), "north", uplink, lab.converter)
        uplink.ip("addr add 10.30.0.2/24 dev north", "addr add fd30::2/64 dev north nodad", "route add default via 10.30.0.1",
                  "route add default via fd30::1")
        uplink.sysctl("net.ipv4.ip_forward", 1)
        uplink.sysctl("net.ipv6.conf.all.forwarding", 1)
        lab.client.ip("route add default via 10.20.0.4 metric 1", "route add default via fe80::4 dev lan metric 1")
        lab.converter.ip("addr add 10.30.0.1/24 dev north", "addr add fd30::1/64 dev north nodad", "route add 10.20.0.0/24 via 10.30.0.2",
                         "route add fd20::/64 via fd30::2")
        lab.server.ip("addr add 11.99.0.1/32 dev lo", "addr add 2600:99::1/128 dev lo nodad")
        routes_of_the_converter(lab, "11.99.0.0/24", "2600:99::/64")
        start_gateway(lab)
        equal(ways(lab, phone) + [way(lab, phone, PUBLIC4)], [CONVERTED, CONVERTED, ROUTED], "to the Internet, and to the neighbour")
        for address in ("11.99.0.1", "2600:99::1"):
            with listening(lab.server, address, 90) as listener, connect(phone, address, 90)[1] as client, listener.accept()[0] as server:
                phone.ping(address, count=4, interval=0.05)
                client.sendall(b"x")
                server.settimeout(5)
                equal(server.recv(1), b"x", "a byte after other packets to the server")


def test_a_vpn():
    """A tunnel to a network, and one for all packets of a client by a policy rule: routed into it, unless a rule matches."""
    with lans() as lab, lab_tunnel(lab, "wg1", "office") as office:
        phone, tablet, laptop = add_lan(lab), add_lan(lab, "lan2", 21, "tablet"), add_lan(lab, "lan3", 22, "laptop")
        lab.client.ip("addr add 10.66.0.1/24 dev wg1", "addr add fd66::1/64 dev wg1 nodad", "route add 11.22.0.0/16 dev wg1",
                      "route add 2600:22::/32 dev wg1", "route add default dev wg1 table 66")
        lab.client.ip("rule add from 10.21.0.0/24 lookup 66 pref 1000", "rule add fwmark 0x20 lookup 66 pref 1001")
        office.ip("route add default dev wg1", "route add fd20::/64 dev wg1", "addr add %s/32 dev lo" % PUBLIC4,
                  "addr add %s/128 dev lo nodad" % PUBLIC6, "addr add 11.99.0.1/32 dev lo")
        lab.server.ip("addr add 11.99.0.1/32 dev lo")
        routes_of_the_converter(lab, "11.99.0.0/24")
        unreachable_from_the_converter(lab, "11.22.0.0/16", "2600:22::/32")
        tellers(lab, PORT, 90, host=office)
        rules = ("destination :90", "device lan3", "dscp 46", "mark 0x40")
        converts = [word for rule in rules for word in ("--convert", rule)]
        start_gateway(lab, args=("--lan", "lan", "--lan", "lan2", "--lan", "lan3", "--host", *converts))
        equal([way(lab, phone, PUBLIC4), way(lab, phone, PUBLIC6), way(lab, tablet, "11.99.0.1")], [ROUTED] * 3, "into the tunnel")
        equal([way(lab, lab.client, PUBLIC4), way(lab, lab.client, "11.99.0.1", mark=0x20)], [ROUTED] * 2, "of this host's programs")
        equal(ways(lab, phone) + [way(lab, host, "11.99.0.1") for host in (phone, lab.client)], [CONVERTED] * 4, "to the Internet")
        named = (way(lab, phone, PUBLIC4, 90), way(lab, laptop, PUBLIC4), way(lab, phone, PUBLIC4, tos=46 << 2),
                 way(lab, lab.client, PUBLIC4, mark=0x40))
        for rule, said in zip(rules, named):
            check(said.startswith(REFUSED), "%s: the converter wasn't asked for what the rule names: %s" % (rule, said))


@contextlib.contextmanager
def lab_tunnel(lab, device, name):
    """A host behind a TUN of the client's."""
    host = lab.add_host(name)
    with contextlib.closing(RunningLink(lab.build.program("linkem"), Link(delay_ms=2), device, lab.client, host, lab.directory)):
        yield host


def test_two_lans():
    """Rules and LANs that overlap: a name and a pattern that matches it, both families, one network on two interfaces."""
    with lans() as lab:
        phone, tablet = add_lan(lab), add_lan(lab, "lan2", 21, "tablet")
        start_gateway(lab, args=("--lan", "lan", "--lan", "la*", "--lan", "lan2", "--route", "client 10.20.0.0/15 destination :82",
                                 "--convert", "device lan", "--route", "client 10.21.0.0/24", "--route", "device lan2"))
        equal(ways(lab, phone), [CONVERTED] * 2, "the first one's")
        equal(ways(lab, tablet), [ROUTED] * 2, "the second one's")


def forget_connections(host):
    """Does as "conntrack -F"."""
    with host.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12) as netlink:  # NETLINK_NETFILTER
        netlink.send(struct.pack("=LHHLLBBH", 20, 1 << 8 | 2, 5, 1, 0, 0, 0, 0))  # IPCTNL_MSG_CT_DELETE; a request with an answer
        equal(struct.unpack_from("=i", netlink.recv(1000), 16)[0], 0, "errno of the flush")


def test_forgotten_by_conntrack():
    """conntrack -F while connections are open: bytes still pass in both directions, and no packet bypasses the converter."""
    with lans() as lab, contextlib.ExitStack() as stack:
        phone = add_lan(lab)
        start_gateway(lab)
        wifi = stack.enter_context(lab.capture(lab.client, "wifi", "tcp port %d" % PORT))
        listeners = [stack.enter_context(listening(lab.server, address, 90)) for address in (lab.server.addr4, lab.server.addr6)]
        pairs = []
        for listener in listeners:
            error, client = connect(phone, listener.getsockname()[0], 90)
            equal(error, 0, "errno of connect()")
            pairs.append((stack.enter_context(client), stack.enter_context(listener.accept()[0])))
        for first in (0, 1):
            forget_connections(lab.client)
            for ends in pairs:
                for one, two in (ends, ends[::-1]) if first else (ends[::-1], ends):
                    one.sendall(b"x")
                    two.settimeout(5)
                    equal(two.recv(1), b"x", "a byte")
        equal(ways(lab, phone), [CONVERTED] * 2, "afterwards")
        equal([str(p) for p in wifi.packets()], [], "packets past the converter")


def test_a_device_that_comes_back():
    """The LAN's interface disappears during a connection and comes back: the connection goes on, and new ones are converted."""
    with lans() as lab, listening(lab.server, lab.server.addr4, 90) as listener:
        start_gateway(lab)
        phone = add_lan(lab)
        equal(ways(lab, phone), [CONVERTED] * 2, "of an interface that came after the gateway")
        error, client = connect(phone, lab.server.addr4, 90)
        equal(error, 0, "errno of connect()")
        with client, listener.accept()[0] as server:
            lab.client.ip("link del lan")
            server.sendall(b"x")
            Cable(Veth(), "lan", lab.client, phone)
            give_addresses(lab, phone)
            client.settimeout(15)
            equal(client.recv(1), b"x", "a byte to the client")
            client.sendall(b"y")
            equal(server.recv(1), b"y", "a byte from the client")
        equal(ways(lab, phone), [CONVERTED] * 2, "afterwards")


def test_ipv6_off_and_on():
    """IPv6 is switched off and on again, which removes the route to the gateway: the gateway restores it."""
    with scene() as (lab, phone, _):
        equal(ways(lab, phone), [CONVERTED] * 2, "before")
        lab.client.sysctl("net.ipv6.conf.lo.disable_ipv6", 1)
        lab.client.sysctl("net.ipv6.conf.lo.disable_ipv6", 0)
        wait_until(lambda: "local default" in lab.client.run(["ip", "-6", "route", "show", "table", "8803"], check=False).stdout, 10, "the route")
        equal(ways(lab, phone), [CONVERTED] * 2, "afterwards")


if __name__ == "__main__":
    main()
