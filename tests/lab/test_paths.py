#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_paths.py - "convertize paths --manage" makes MPTCP endpoints and policy rules, and follows changes of networks"""
import json
import signal
import socket
import struct
import subprocess

from convertlab import Lab, Link, Veth, check, equal, long, main, wait_until, waits
from convertlab.pcap import OPT_MPTCP
from convertlab.paths import BULK, DEVICES, OURS, PathManager, arrives, bare, carried, download, endpoints, ip, serve, state, subflow_ports, subflows

TALK = 'exec 3<>/dev/tcp/%s/7; read -r line; echo "$line" >&3; read -r -u 3 back; [ "$back" = "$line" ]'
NOBODY = 65534
REMOVE_ADDR = 4  # a subtype, RFC 8684 8.2
NLM_F_REQUEST, NLM_F_ACK, NLM_F_CREATE = 0x1, 0x4, 0x400
RTM_NEWADDR, RTM_DELADDR, RTM_NEWROUTE = 20, 21, 24
IFA_LOCAL, IFA_CACHEINFO, RTA_OIF, RTA_GATEWAY, RTA_PRIORITY = 2, 6, 4, 5, 6
RT_TABLE_MAIN, RTPROT_BOOT, RTN_UNICAST = 254, 3, 1


# --- its purpose ---------------------------------------------------------------------------------


def test_a_transfer_uses_both_networks():
    """Without the service one; with it both, in both families. When it ends, all is as before."""
    with Lab() as lab:
        bare(lab)
        serve(lab)
        before = state(lab)
        arrives(download(lab, 3000000))
        check(carried(lab)["lte"] < 10000, "without a path manager: %s" % carried(lab))
        with PathManager(lab) as manager:
            equal({address: rest for address, (_, rest) in endpoints(lab).items()},
                  {"10.1.0.2": "subflow dev wifi", "10.2.0.2": "subflow dev lte", "fd01::2": "subflow dev wifi",
                   "fd02::2": "subflow dev lte"}, "endpoints")
            counted = carried(lab)
            arrives(download(lab, 40000000))
            shares = {name: count - counted[name] for name, count in carried(lab).items()}
            check(min(shares.values()) > 0.1 * sum(shares.values()), "what each network has carried: %s" % shares)
            # the packets of a program that is bound to an address leave by its network, in either family
            for address in (lab.client.lte4, lab.client.lte6):
                way, = [line for line in ip(lab, "-6" if ":" in address else "-4", "route", "get",
                                            lab.converter.addr6 if ":" in address else lab.converter.addr4, "from", address) if "dev" in line]
                check(" dev lte " in way, way)
            # at its end the service leaves the subflows of open connections as they are
            wait_until(lambda: subflows(lab, lab.client.wifi4) + subflows(lab, lab.client.lte4) == 0, 10, "the connection to end")
            manager.stop()
        equal(state(lab), before, "the host when it has ended")


def test_commands_are_shown():
    """--dry-run needs no privilege, changes nothing, and prints the commands that would run; they also work by hand."""
    with Lab(wifi=Veth(), lte=Veth(), core=None) as lab:
        bare(lab)
        before = state(lab)
        words = [lab.build.program("convertize"), "paths", "--config", "none", *DEVICES, "--backup-device", "lte"]
        shown = lab.client.run(["setpriv", "--reuid", NOBODY, "--clear-groups", *words, "--manage", "--dry-run"]).stdout.splitlines()
        equal(state(lab), before, "what there is after --dry-run")
        commands = [line for line in shown if not line.startswith("#")]
        check("# lte 10.2.0.2: used as a backup, table" in "\n".join(shown), shown)
        done = lab.client.run([*words, "--once"]).stderr.splitlines()
        equal([line.split("+ ")[1] for line in done if "+ " in line], commands, "what --once does")
        after = state(lab)
        equal(lab.client.run([*words, "--once"]).stderr.count("+ "), 0, "commands of a second --once")
        removed = lab.client.run([*words, "--remove", "--dry-run"]).stdout.splitlines()
        equal(state(lab), after, "what there is after --remove --dry-run")
        lab.client.run([*words, "--remove"])
        equal(state(lab), before, "what there is after --remove")
        lab.client.run(["sh", "-ec", "\n".join(commands)])
        equal(state(lab), after, "what there is when the commands are typed")
        lab.client.run(["sh", "-ec", "\n".join(removed)])
        equal(state(lab), before, "and when those of --remove are typed")


# --- networks change ------------------------------------------------------------------------------


def talks(lab, **variables):
    """Starts a program with a connection to the echo server, which is idle until goes_on()."""
    env = lab.converted(CONVERT_CACHE="none", **variables)
    return lab.client.popen(["bash", "-c", TALK % lab.server.addr4], name="talk", env=env, stdin=subprocess.PIPE)


def goes_on(talk):
    """Fails unless the connection still carries a line there and back."""
    talk.stdin.write(b"line\n")
    talk.stdin.flush()
    arrives(talk)


def test_an_address_is_replaced():
    """While a transfer runs: the new address carries it, and the old one has no subflow; no byte is missing."""
    with Lab() as lab:
        bare(lab)
        serve(lab)
        with PathManager(lab):
            running = download(lab, 100000000)
            wait_until(lambda: subflows(lab, "10.2.0.2") == 1, 10, "the subflow from the old address")
            lab.client.ip("addr del 10.2.0.2/24 dev lte", "addr add 10.2.0.9/24 dev lte",
                          "route replace default via 10.2.0.1 dev lte metric 200")
            wait_until(lambda: subflows(lab, "10.2.0.9") == 1, 10, "the subflow from the new address")
            wait_until(lambda: subflows(lab, "10.2.0.2") == 0, 10, "no subflow from the old address")
            counted = carried(lab)["lte"]
            arrives(running)
            check(carried(lab)["lte"] > counted + 1000000, "what the new address has carried: %d" % (carried(lab)["lte"] - counted))
            check("10.2.0.9" in endpoints(lab) and "10.2.0.2" not in endpoints(lab), endpoints(lab))
            check(not [rule for rule in ip(lab, "rule") if "10.2.0.2 " in rule], ip(lab, "rule"))


def test_a_temporary_address_is_replaced():
    """
    A connection keeps its only subflow, from the deprecated address, until it has one from the new address; then the old one goes.

    The connection is idle meanwhile, so that it lasts for as long as a busy machine takes.
    """
    with Lab(wifi=Link(delay_ms=100, rate_mbit=50)) as lab:
        bare(lab)
        lab.convertd()
        lab.echo()
        with PathManager(lab, "--device", "wifi") as manager:
            talk = talks(lab, CONVERT_ADDR=lab.converter.addr6)
            wait_until(lambda: subflows(lab, "[fd01::2]") == 1, 10, "the connection")
            with lab.capture(lab.client, "wifi", "tcp port 1234") as capture:
                lab.client.ip("addr add fd01::9/64 dev wifi nodad", "addr change fd01::2/64 dev wifi preferred_lft 0")
                wait_until(lambda: subflows(lab, "[fd01::9]") == 1, 10, "the subflow from the new address")
                wait_until(lambda: set(endpoints(lab)) == {"10.1.0.2", "fd01::9"}, 10, "the end of the old endpoint")
                wait_until(lambda: not [rule for rule in ip(lab, "-6", "rule") if "fd01::2 " in rule], 10, "the end of the old rule")
            goes_on(talk)
            manager.stop()
        packets = capture.packets()
        joined = next(at for at, packet in enumerate(packets) if packet.synack and "MP_JOIN" in packet.mptcp)
        removed = [at for at, packet in enumerate(packets) for kind, value in packet.options
                   if kind == OPT_MPTCP and value[0] >> 4 == REMOVE_ADDR]
        check(removed and removed[0] > joined, "RM_ADDR in %s, the answer to the join in %d" % (removed, joined))


@long
def test_a_link_goes_and_comes():
    """While a transfer runs, one of the two links: the transfer goes on over the other one, and uses both afterwards."""
    with Lab() as lab:
        bare(lab)
        serve(lab)
        with PathManager(lab):
            for name, address, metric in (("lte", "10.2.0.2", 200), ("wifi", "10.1.0.2", 100)):
                running = download(lab, 40000000)
                wait_until(lambda: subflows(lab, "10.1.0.2") == subflows(lab, "10.2.0.2") == 1, 10, "both subflows")
                lab.client.ip("link set %s down" % name)
                wait_until(lambda a=address: a not in endpoints(lab), 10, "no endpoint for " + address)
                lab.client.ip("link set %s up" % name, "route add default via %s1 dev %s metric %d" % (address[:-1], name, metric))
                wait_until(lambda a=address: a in endpoints(lab) and subflows(lab, a) == 1, 10, "a subflow from %s again" % address)
                arrives(running)
                # IPv6 loses its addresses with the link
                number = address[3]
                lab.client.ip("addr add fd0%s::2/64 dev %s nodad" % (number, name))
                lab.client.run(["ip", "-6", "route", "add", "default", "via", "fd0%s::1" % number, "dev", name, "metric", str(metric)])
                wait_until(lambda n=number: "fd0%s::2" % n in endpoints(lab), 10, "the endpoint of IPv6")


@long
@waits
def test_all_links_go_and_come():
    """Both at once, during an upload, so that the converter isn't told, and has nothing to send: afterwards the upload uses both."""
    networks = (("wifi", "10.1.0.2", 100), ("lte", "10.2.0.2", 200))

    def sent():
        return {name: getattr(lab, name).stats()["a-to-b"]["out_bytes"] for name, _, _ in networks}

    with Lab(wifi=Link(delay_ms=5, rate_mbit=20), lte=Link(delay_ms=10, rate_mbit=20)) as lab:
        bare(lab)
        serve(lab)
        with PathManager(lab) as manager:
            running = lab.client.popen(["python3", BULK, "put", "tcp", lab.server.addr4, 6000, 120000000], name="upload",
                                       env=lab.converted(CONVERT_CACHE="none"))
            wait_until(lambda: min(sent().values()) > 1000000, 20, "both subflows in use")
            lab.client.ip(*("link set %s down" % name for name, _, _ in networks))
            for name, address, _ in networks:
                manager.said("%s %s: left alone: it is down" % (name, address))
            check("10.2.0.2" in endpoints(lab), "the last one's endpoint is there: %s" % endpoints(lab))
            for name, address, metric in networks:
                lab.client.ip("link set %s up" % name, "route add default via %s1 dev %s metric %d" % (address[:-1], name, metric))
            before = sent()
            wait_until(lambda: all(sent()[name] > before[name] + 1000000 for name, _, _ in networks), 20,
                       lambda: "bytes over both again: %s, %s" % (before, sent()))
            arrives(running)


def test_carrier():
    """A network without carrier keeps its rule, but has no endpoint, unless no other network is there."""
    with Lab(wifi=Veth(), lte=Veth(), core=None) as lab:
        bare(lab)
        with PathManager(lab) as manager:
            for _ in range(3):
                lab.converter.ip("link set lte down")
                wait_until(lambda: "10.2.0.2" not in endpoints(lab), 10, "no endpoint")
                check([rule for rule in ip(lab, "rule") if "from 10.2.0.2 " in rule], ip(lab, "rule"))
                lab.converter.ip("link set lte up")
                wait_until(lambda: "10.2.0.2" in endpoints(lab), 10, "the endpoint")
            lab.converter.ip("link set lte down")
            wait_until(lambda: "10.2.0.2" not in endpoints(lab), 10, "no endpoint")
            lab.converter.ip("link set wifi down")
            # wifi keeps its endpoint, as no network has a carrier; lte gets one when its carrier is back
            wait_until(lambda: manager.process.log_text().rfind("lte 10.2.0.2: used") > manager.process.log_text().rfind("lte 10.2.0.2: left"),
                       10, "lte to count again")
            check("10.1.0.2" in endpoints(lab) and "10.2.0.2" not in endpoints(lab), endpoints(lab))
            lab.converter.ip("link set lte up")
            wait_until(lambda: "10.2.0.2" in endpoints(lab) and "10.1.0.2" not in endpoints(lab), 10, "the endpoint of the one that is back")


def both_are_lost_and_one_is_back(verb, first, second, returns, cable=True):
    """Both networks lose their carrier or their address, one after the other: the transfer goes on over the one that is back."""
    def bytes_over(lab, name, verb):
        link, = json.loads(lab.client.run(["ip", "-j", "-s", "link", "show", name]).stdout)
        return link["stats64"]["rx" if verb == "get" else "tx"]["bytes"]

    def away(lab, name):
        lab.client.run(["ip", "-4", "addr", "flush", "dev", name])

    def back(lab, name, number):
        lab.client.ip("addr add 10.%d.0.2/24 dev %s" % (number, name),
                      "route add default via 10.%d.0.1 dev %s metric %d" % (number, name, 100 * number))

    slow = Veth(rate_mbit=8, burst="16kb", limit="64kb")
    with Lab(wifi=slow, lte=slow, core=None) as lab:
        bare(lab)
        serve(lab)
        with PathManager(lab) as manager:
            running = lab.client.popen(["python3", BULK, verb, "tcp", lab.server.addr4, 6000, 9000000], name="transfer",
                                       env=lab.converted(CONVERT_CACHE="none"))
            wait_until(lambda: min(bytes_over(lab, name, verb) for name in ("wifi", "lte")) > 1000000, 20, "both subflows in use")
            for name in (first, second):
                number = 1 if name == "wifi" else 2
                if cable:
                    lab.converter.ip("link set %s down" % name)
                else:
                    away(lab, name)
                if name == first:
                    wait_until(lambda a="10.%d.0.2" % number: a not in endpoints(lab), 10, "no endpoint")
            # until the last subflow has retransmitted for some time
            wait_until(lambda: "backoff:3" in lab.converter.run(["ss", "-tnoiHe"]).stdout or verb == "put" and
                       "backoff:3" in lab.client.run(["ss", "-tnoiHe"]).stdout, 30, "retransmissions")
            before = bytes_over(lab, returns, verb)
            if cable:
                lab.converter.ip("link set %s up" % returns)
            else:
                back(lab, returns, 1 if returns == "wifi" else 2)
            wait_until(lambda: bytes_over(lab, returns, verb) > before + 300000, 10,
                       lambda: "bytes over %s, %s:\n%s" % (returns, (verb, first, second, cable), manager.process.log_text()))
            arrives(running)


@long
@waits
def test_both_lose_their_carrier_and_the_first_is_back():
    both_are_lost_and_one_is_back("get", "wifi", "lte", "wifi")


@long
@waits
def test_both_lose_their_carrier_and_the_second_is_back():
    both_are_lost_and_one_is_back("get", "lte", "wifi", "wifi")


@long
@waits
def test_both_lose_their_carrier_during_an_upload():
    both_are_lost_and_one_is_back("put", "lte", "wifi", "lte")


@long
@waits
def test_both_lose_their_addresses_and_one_is_back():
    both_are_lost_and_one_is_back("get", "wifi", "lte", "wifi", cable=False)


def message(kind, flags, body, *attributes):
    """A netlink message; each attribute is a kind and its bytes, whose number is a multiple of 4."""
    body += b"".join(struct.pack("=HH", 4 + len(value), name) + value for name, value in attributes)
    return struct.pack("=IHHII", 16 + len(body), kind, flags | NLM_F_REQUEST | NLM_F_ACK, 0, 0) + body


def replace_address(lab, device, address, router, metric):
    """Deletes an address and adds it again in one system call, so that it is gone for a moment also on a busy machine.

    The kernel deletes the routes of a device with its last address, so the default route comes back as well.
    """
    with lab.client.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as sock, lab.client.entered():
        index = socket.if_nametoindex(device)
        own, hour = (IFA_LOCAL, socket.inet_aton(address)), struct.pack("=IIII", 3600, 3600, 0, 0)
        header = struct.pack("=BBBBI", socket.AF_INET, 24, 0, 0, index)
        route = struct.pack("=BBBBBBBBI", socket.AF_INET, 0, 0, 0, RT_TABLE_MAIN, RTPROT_BOOT, 0, RTN_UNICAST, 0)
        sock.send(message(RTM_DELADDR, 0, header, own) + message(RTM_NEWADDR, NLM_F_CREATE, header, own, (IFA_CACHEINFO, hour))
                  + message(RTM_NEWROUTE, NLM_F_CREATE, route, (RTA_OIF, struct.pack("=I", index)),
                            (RTA_GATEWAY, socket.inet_aton(router)), (RTA_PRIORITY, struct.pack("=I", metric))))
        answers = b""
        while len(answers) < 3 * 36:
            answers += sock.recv(4096)
        equal([error for _, _, _, _, _, error in struct.iter_unpack("=IHHIIi16x", answers)], [0, 0, 0], "errors")


def test_renewals():
    """An address that gets new lifetimes, or disappears for a moment, keeps its endpoint, and a connection its subflow.

    The connection is idle meanwhile: on a busy machine, a network that carries a transfer may be silent for a moment.
    """
    with Lab() as lab:
        bare(lab)
        lab.convertd()
        lab.echo()
        with PathManager(lab) as manager:
            known, done = endpoints(lab), len(manager.done())
            talk = talks(lab)
            wait_until(lambda: subflows(lab, "10.2.0.2") == 1, 10, "the subflow")
            ports = subflow_ports(lab, "10.2.0.2")
            for lifetime in (3600, 7200):
                lab.client.ip("addr change 10.2.0.2/24 dev lte valid_lft %d preferred_lft %d" % (lifetime, lifetime))
            replace_address(lab, "lte", "10.2.0.2", "10.2.0.1", 200)
            table, = [rule.split(" lookup ")[1].split()[0] for rule in ip(lab, "rule") if "from 10.2.0.2 " in rule and "suppress" not in rule]
            wait_until(lambda: any(line.startswith("default via 10.2.0.1 dev lte " + OURS) for line in
                                   ip(lab, "route", "show", "table", table)), 10, "the table as it was")
            equal(subflow_ports(lab, "10.2.0.2"), ports, "subflows")
            goes_on(talk)
            equal(endpoints(lab), known, "endpoints")
            check(all(command.startswith("ip route replace") for command in manager.done()[done:]), manager.done()[done:])


def advertise(lab, prefix, preferred, lifetime=600):
    """The router on wifi sends an advertisement (RFC 4861) with a prefix for autoconfiguration."""
    text = struct.pack("!BBHBBHII", 134, 0, 0, 64, 0, lifetime, 0, 0)
    text += struct.pack("!BBBBIII16s", 3, 4, 64, 0xc0, 600, preferred, 0, socket.inet_pton(socket.AF_INET6, prefix))
    with lab.converter.entered(), socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6) as sock:
        index = socket.if_nametoindex("wifi")
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
        sock.bind(("fe80::99", 0, 0, index))
        sock.sendto(text, ("ff02::1", 0, 0, index))


def test_prefixes_of_router_advertisements():
    """Addresses and routes of the kernel's own; a second prefix replaces the first; a link-local address gets no endpoint."""
    with Lab(wifi=Veth(), lte=Veth(), core=None) as lab:
        bare(lab)
        for line in ("addr del fd01::2/64 dev wifi", "route flush default dev wifi"):
            lab.client.run(["ip", "-6", *line.split()], check=False)
        lab.converter.ip("addr add fe80::99/64 dev wifi nodad")
        lab.client.sysctl("net.ipv6.conf.wifi.accept_ra", 2)

        def of_prefix(prefix):
            return [address for address in endpoints(lab) if address.startswith(prefix)]

        with PathManager(lab) as manager:
            equal(of_prefix("f"), ["fd02::2"], "endpoints of IPv6 before")
            advertise(lab, "2001:db8:1::", preferred=600)
            wait_until(lambda: of_prefix("2001:db8:1:"), 20, "the endpoint of the first prefix")
            first, = of_prefix("2001:db8:1:")
            equal(of_prefix("fe80"), [], "link-local endpoints")
            table, = [rule.split(" lookup ")[1].split()[0] for rule in ip(lab, "-6", "rule") if "from %s " % first in rule and "suppress" not in rule]
            found = ip(lab, "-6", "route", "show", "table", table)
            check([line for line in found if line.startswith("default via fe80::99 dev wifi " + OURS)] and
                  [line for line in found if line.startswith("2001:db8:1::/64 dev wifi " + OURS)], found)
            # the provider renumbers: with a deprecated address connections go on, and none begins (RFC 4862)
            advertise(lab, "2001:db8:1::", preferred=0)
            advertise(lab, "2001:db8:2::", preferred=600)
            wait_until(lambda: of_prefix("2001:db8:2:"), 20, "the endpoint of the second prefix")
            wait_until(lambda: not of_prefix("2001:db8:1:"), 20, "none of the first one")
            added = [command for command in manager.done() if "endpoint add 2001:db8:2:" in command]
            check(manager.done().index(added[0]) < max(i for i, command in enumerate(manager.done()) if "endpoint delete" in command),
                  "the new endpoint isn't made first: %s" % manager.done())
            # the router announces that it is no default router any more
            advertise(lab, "2001:db8:2::", preferred=600, lifetime=0)
            wait_until(lambda: not of_prefix("2001:"), 20, "none without a default route")
            wait_until(lambda: not [rule for rule in ip(lab, "-6", "rule") if "2001:" in rule], 20, "no rule for it either")


def test_more_messages_than_it_can_take():
    """While the service stands still the kernel drops messages for it (ENOBUFS); then it reads the whole state."""
    with Lab(wifi=Veth(), lte=Veth(), core=None) as lab:
        bare(lab)
        with PathManager(lab) as manager:
            manager.process.send_signal(signal.SIGSTOP)
            lines = []
            for i in range(3000):
                lines += ["addr add 10.66.%d.%d/32 dev lo" % (i % 250, i // 250), "addr del 10.66.%d.%d/32 dev lo" % (i % 250, i // 250)]
            lab.client.ip(*lines)
            lab.client.ip("addr del 10.2.0.2/24 dev lte", "addr add 10.2.0.9/24 dev lte", "route replace default via 10.2.0.1 dev lte metric 200")
            dropped = [line.split()[8] for line in lab.client.run(["cat", "/proc/net/netlink"]).stdout.splitlines()[1:] if line.split()[8] != "0"]
            check(dropped, "the kernel has dropped no message")
            manager.process.send_signal(signal.SIGCONT)
            wait_until(lambda: "10.2.0.9" in endpoints(lab) and "10.2.0.2" not in endpoints(lab), 10, "the new address alone")
            manager.stop()


def test_a_restart_while_a_transfer_runs():
    """As for an upgrade: the kernel closes the subflows of removed endpoints, and opens new ones; no transfer ends."""
    with Lab() as lab:
        bare(lab)
        serve(lab)
        with PathManager(lab) as manager:
            running = download(lab, 100000000)
            wait_until(lambda: subflows(lab, "10.1.0.2") == subflows(lab, "10.2.0.2") == 1, 10, "both subflows")
            manager.stop()
            # the transfer goes on over the preferred network alone
            equal(set(endpoints(lab)), {"10.1.0.2"}, "endpoints when it has ended")
            wait_until(lambda: (subflows(lab, "10.1.0.2"), subflows(lab, "10.2.0.2")) == (1, 0), 10, "the first subflow alone")
            manager.start()
            wait_until(lambda: subflows(lab, "10.2.0.2") == 1, 10, "the second subflow again")
            arrives(running)


@long
@waits
def test_a_stop_ends_no_connection():
    """A connection has lost its first network: the endpoint, rule and table of the second one stay until --remove."""
    with Lab() as lab:
        bare(lab)
        serve(lab)
        before = state(lab)
        with PathManager(lab) as manager:
            running = download(lab, 40000000)
            wait_until(lambda: subflows(lab, "10.1.0.2") == subflows(lab, "10.2.0.2") == 1, 10, "both subflows")
            lab.client.ip("link set wifi down")
            wait_until(lambda: (subflows(lab, "10.1.0.2"), subflows(lab, "10.2.0.2")) == (0, 1), 10, "the second subflow alone")
            manager.stop()
            equal(set(endpoints(lab)), {"10.2.0.2"}, "endpoints when it has ended")
            check([rule for rule in ip(lab, "rule") if "from 10.2.0.2 " in rule and OURS.split()[1] in rule], ip(lab, "rule"))
            equal(ip(lab, "mptcp", "limits"), before[-1], "the limits")
            arrives(running)
            lab.client.run([lab.build.program("convertize"), "paths", "--remove", "--config", "none"])
            equal(endpoints(lab), {}, "endpoints after --remove")
            check(not [rule for rule in ip(lab, "rule") if OURS.split()[1] in rule.split()], ip(lab, "rule"))


@long
def test_a_network_falls_silent():
    """One of the two, during a transfer: the kernel sends it SYNs until it answers, and then it carries bytes again."""
    with Lab() as lab:
        bare(lab)
        serve(lab)
        with PathManager(lab) as manager:
            for name, address in (("wifi", "10.1.0.2"), ("lte", "10.2.0.2")):
                running = download(lab, 90000000)
                wait_until(lambda: subflows(lab, "10.1.0.2") == subflows(lab, "10.2.0.2") == 1, 10, "both subflows")
                at = carried(lab)[name]
                wait_until(lambda n=name, at=at: carried(lab)[n] > at + 10000000, 20, "a subflow that has been in use for some looks")
                getattr(lab, name).down()
                manager.said("%s %s: silent" % (name, address))
                wait_until(lambda a=address: a in endpoints(lab) and subflows(lab, a) == 0, 10, "a SYN without an answer")
                getattr(lab, name).up()
                wait_until(lambda a=address: subflows(lab, a) == 1, 30, "the subflow again")
                arrives(running)


@long
@waits
def test_the_last_network_is_back():
    """Both are silent during a download, then one works: the converter learns that the other one's subflow is gone, and is prompted."""
    with Lab(wifi=Link(delay_ms=10, rate_mbit=50), lte=Link(delay_ms=25, rate_mbit=30)) as lab:
        bare(lab)
        serve(lab)
        with PathManager(lab) as manager:
            running = download(lab, 60000000)
            wait_until(lambda: min(carried(lab).values()) > 2000000, 20, "both subflows in use")
            lab.wifi.down()
            # without bytes over lte that follow those lost on wifi, the receiver might miss nothing
            before = carried(lab)["lte"]
            wait_until(lambda: carried(lab)["lte"] > before + 50000, 10, "bytes over lte")
            lab.lte.down()
            manager.said("lte 10.2.0.2: silent, as all are")
            # long enough to count as silence, and not as a pause: three SYNs a second
            asked = lab.lte.stats()["a-to-b"]["in_bytes"]
            wait_until(lambda: lab.lte.stats()["a-to-b"]["in_bytes"] > asked + 1200, 20, "SYNs for some seconds")
            before = carried(lab)["lte"]
            with lab.capture(lab.client, "lte", "tcp port 1234") as capture:
                lab.lte.up()
                wait_until(lambda: carried(lab)["lte"] > before + 2000000, 30, "bytes over lte")
            lab.wifi.up()
            arrives(running)
        packets = capture.packets()
        removed = [(at, value[-1]) for at, packet in enumerate(packets) for kind, value in packet.options
                   if kind == OPT_MPTCP and value[0] >> 4 == REMOVE_ADDR]
        # wifi's address ID is 0, as the connection began there
        own = next(at for at, number in removed if number != 0)
        # by a SYN of plain TCP, unless data has come before its answer
        answer = max([at for at in range(own) if packets[at].synack and not packets[at].mptcp], default=0)
        equal([number for at, number in removed if answer <= at < own][-1:], [0], "the address removed before lte's old subflow ends")
        port = next(packet.sport for packet in packets[own:] if packet.syn and "MP_JOIN" in packet.mptcp)
        prompts = [packet for packet in packets if packet.sport == port and "MP_PRIO" in packet.mptcp]
        check(len(prompts) >= 2, "%d acknowledgements that prompt" % len(prompts))


if __name__ == "__main__":
    main()
