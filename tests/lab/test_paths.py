#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_paths.py - "convertize paths --manage": nobody types "ip mptcp" or "ip rule", and it takes away what it made and nothing else

The client has two networks as DHCP leaves them: addresses, and default routes with different metrics. The lab's links are TUN devices,
or ends of veth pairs: neither is looked after by itself, so that --device names them.
"""
import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import socket
import struct
import tempfile

from convertlab import Lab, Link, Veth, check, equal, main, wait_until
from convertlab.systemd import PLACE, Systemd
from test_convertize_doctor import WITHOUT_NET_ADMIN

BULK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "apps", "bulk.py")
STANDINS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "standins", "networks")
NOBODY = 65534
EXPOSURE_MAX = 1.5
OURS = "proto 88"
DEVICES = ("--device", "wifi,lte")


def ip(lab, *words):
    """What an ip command of the client prints, without blanks at the ends of lines."""
    return [line.strip() for line in lab.client.run(["ip", *words]).stdout.splitlines()]


def bare(lab):
    """Takes away what the lab has set up for its client, but for addresses and default routes, and listens at the converter."""
    for family in ("-4", "-6"):
        for rule in ip(lab, family, "rule"):
            if " lookup 10" in rule:
                lab.client.run(["ip", family, "rule", "del", "priority", rule.split(":")[0]])
        for table in (101, 102):
            lab.client.run(["ip", family, "route", "flush", "table", str(table)], check=False)
    lab.client.ip("mptcp endpoint flush", "mptcp limits set subflows 0 add_addr_accepted 0")


def state(lab):
    """All that the path manager might have changed on the client."""
    # counters and lifetimes run
    return [ip(lab, "-4", "rule"), ip(lab, "-6", "rule"), ip(lab, "-4", "route", "show", "table", "all"),
            [re.sub(r" expires \d+sec", "", line) for line in ip(lab, "-6", "route", "show", "table", "all")],
            ip(lab, "mptcp", "endpoint"), ip(lab, "mptcp", "limits")]


def endpoints(lab):
    """{address: (ID, flags and device)}."""
    found = {}
    for line in ip(lab, "mptcp", "endpoint"):
        address, _, number, rest = line.split(None, 3)
        found[address] = (int(number), rest)
    return found


class PathManager:
    """convertize paths --manage, as a service manager starts it: within `with` it has said that it is ready."""

    def __init__(self, lab, *words, env=None, wrapper=()):
        self._lab = lab
        self._command = [*wrapper, lab.build.program("convertize"), "paths", "--manage", "--config", "none", *(words or DEVICES)]
        self._env = env or {}
        self.process = None
        self._directory = tempfile.mkdtemp(prefix="p-", dir="/run")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(os.path.join(self._directory, "notify"))
        self._socket.settimeout(30)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._socket.close()
        shutil.rmtree(self._directory)

    def hears(self, text):
        """Waits for a message to the service manager."""
        while text not in self._socket.recv(4096).decode():
            pass

    def start(self):
        """Starts it, again perhaps."""
        self.process = self._lab.client.popen(self._command, name="paths", env={
            "NOTIFY_SOCKET": os.path.join(self._directory, "notify"), **self._env})
        self.hears("READY=1")

    def stop(self):
        """Ends it as systemd does."""
        equal(self.process.stop(), 0, "the status: " + self.process.log_text())

    def said(self, text):
        """Waits until it has said that."""
        self.process.wait_log(text)

    def done(self):
        """The commands that stand for what it has done so far."""
        return [line.split("+ ", 1)[1] for line in self.process.log_text().splitlines() if "convertize: paths: + " in line]


def serve(lab):
    """A converter, and what transfers go to."""
    lab.convertd()
    lab.start_listening(lab.server, ["python3", BULK, "serve", "tcp", 6000], 6000)


def download(lab, size):
    """Starts a download through the converter; its end is an error if a byte is missing or wrong."""
    return lab.client.popen(["python3", BULK, "get", "tcp", lab.server.addr4, size and 6000, size], name="download",
                            env=lab.converted(CONVERT_CACHE="none"))


def subflows(lab, address):
    """How many connections the client has to the converter from an address."""
    return len(lab.client.run(["ss", "-Htn", "state", "established", "src", address, "dport", "=", ":1234"]).stdout.splitlines())


def arrives(process):
    """Waits for the end of a transfer."""
    equal(process.wait(60), 0, "the transfer: " + process.log_text())


def carried(lab):
    """Bytes that each link has carried towards the client."""
    return {name: getattr(lab, name).stats()["b-to-a"]["out_bytes"] for name in ("wifi", "lte")}


# --- what it is for ------------------------------------------------------------------------------


def test_a_transfer_uses_both_networks():
    """Without it one; with it both, in both families; when it ends all is as it was."""
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
            arrives(download(lab, 12000000))
            shares = {name: count - counted[name] for name, count in carried(lab).items()}
            check(min(shares.values()) > 0.1 * sum(shares.values()), "what each network has carried: %s" % shares)
            # a program that is bound to an address leaves by that address' network, in either family
            for address in (lab.client.lte4, lab.client.lte6):
                way, = [line for line in ip(lab, "-6" if ":" in address else "-4", "route", "get",
                                            lab.converter.addr6 if ":" in address else lab.converter.addr4, "from", address) if "dev" in line]
                check(" dev lte " in way, way)
            manager.stop()
        equal(state(lab), before, "what there is when it has ended")


def test_commands_are_shown():
    """--dry-run needs no privilege, changes nothing, and prints what is then done; they can be typed."""
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
        equal(lab.client.run([*words, "--once"]).stderr.count("+ "), 0, "what there is to do for another one")
        removed = lab.client.run([*words, "--remove", "--dry-run"]).stdout.splitlines()
        equal(state(lab), after, "what there is after --remove --dry-run")
        lab.client.run([*words, "--remove"])
        equal(state(lab), before, "what there is after --remove")
        lab.client.run(["sh", "-ec", "\n".join(commands)])
        equal(state(lab), after, "what there is when the commands are typed")
        lab.client.run(["sh", "-ec", "\n".join(removed)])
        equal(state(lab), before, "and when those of --remove are typed")


# --- networks change ------------------------------------------------------------------------------


def test_an_address_is_replaced():
    """While a transfer runs: the new address carries it, the old one nothing; not a byte is wrong."""
    with Lab() as lab:
        bare(lab)
        serve(lab)
        with PathManager(lab):
            running = download(lab, 30000000)
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


def test_a_link_goes_and_comes():
    """While a transfer runs, each of the two: it goes on over the other one, and is back on both afterwards."""
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


def test_all_links_go_and_come():
    """Both at once, during an upload, so that the converter can't be told, and has nothing to send: it takes both again afterwards."""
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
    """A network without carrier has no endpoint, unless it is the only one; its rule stays."""
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
            manager.said("lte 10.2.0.2: left alone: it has no carrier")
            lab.converter.ip("link set wifi down")
            wait_until(lambda: {"10.1.0.2", "10.2.0.2"} <= set(endpoints(lab)), 10, "the endpoints of those that may come back")


def test_renewals():
    """An address that gets new lifetimes, or is gone for a moment, keeps its endpoint, and a transfer its subflow."""
    with Lab() as lab:
        bare(lab)
        serve(lab)
        with PathManager(lab) as manager:
            known, done = endpoints(lab), len(manager.done())
            running = download(lab, 20000000)
            wait_until(lambda: subflows(lab, "10.2.0.2") == 1, 10, "the subflow")
            for lifetime in (3600, 7200):
                lab.client.ip("addr change 10.2.0.2/24 dev lte valid_lft %d preferred_lft %d" % (lifetime, lifetime))
            # in one process, as a DHCP client does it; the kernel takes all routes of the device with its last address
            lab.client.ip("addr del 10.2.0.2/24 dev lte", "addr add 10.2.0.2/24 dev lte valid_lft 3600 preferred_lft 3600",
                          "route replace default via 10.2.0.1 dev lte metric 200")
            table, = [rule.split(" lookup ")[1].split()[0] for rule in ip(lab, "rule") if "from 10.2.0.2 " in rule]
            wait_until(lambda: any(line.startswith("default via 10.2.0.1 dev lte " + OURS) for line in
                                   ip(lab, "route", "show", "table", table)), 10, "the table as it was")
            arrives(running)
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
    """The kernel's own addresses and routes; one prefix is given up and another one comes; a link-local address is no network's."""
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
            table, = [rule.split(" lookup ")[1].split()[0] for rule in ip(lab, "-6", "rule") if "from %s " % first in rule]
            found = ip(lab, "-6", "route", "show", "table", table)
            check([line for line in found if line.startswith("default via fe80::99 dev wifi " + OURS)] and
                  [line for line in found if line.startswith("2001:db8:1::/64 dev wifi " + OURS)], found)
            # the provider has renumbered: RFC 4862 lets connections go on, and begins none
            advertise(lab, "2001:db8:1::", preferred=0)
            advertise(lab, "2001:db8:2::", preferred=600)
            wait_until(lambda: of_prefix("2001:db8:2:"), 20, "the endpoint of the second prefix")
            wait_until(lambda: not of_prefix("2001:db8:1:"), 20, "none of the first one")
            added = [command for command in manager.done() if "endpoint add 2001:db8:2:" in command]
            check(manager.done().index(added[0]) < max(i for i, command in enumerate(manager.done()) if "endpoint delete" in command),
                  "the new one comes first: %s" % manager.done())
            # the router takes its leave
            advertise(lab, "2001:db8:2::", preferred=600, lifetime=0)
            wait_until(lambda: not of_prefix("2001:"), 20, "none without a default route")
            check(not [rule for rule in ip(lab, "-6", "rule") if "2001:" in rule], ip(lab, "-6", "rule"))


def test_more_messages_than_it_can_take():
    """While it stands still the kernel loses messages for it (ENOBUFS); then it sees what there is."""
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
    """As of an upgrade: the kernel closes the subflows of endpoints that go, and opens new ones; no transfer ends with it."""
    with Lab() as lab:
        bare(lab)
        serve(lab)
        with PathManager(lab) as manager:
            running = download(lab, 40000000)
            wait_until(lambda: subflows(lab, "10.1.0.2") == subflows(lab, "10.2.0.2") == 1, 10, "both subflows")
            manager.stop()
            # the transfer goes on over the preferred network alone
            equal(set(endpoints(lab)), {"10.1.0.2"}, "endpoints when it has ended")
            wait_until(lambda: (subflows(lab, "10.1.0.2"), subflows(lab, "10.2.0.2")) == (1, 0), 10, "the first subflow alone")
            manager.start()
            wait_until(lambda: subflows(lab, "10.2.0.2") == 1, 10, "the second subflow again")
            arrives(running)


def test_a_stop_ends_no_connection():
    """A connection has lost its first network, and is over the second one alone: that one's endpoint, rule and table stay; --remove takes them."""
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


def test_a_network_falls_silent():
    """Either one, during a transfer: it is asked again until it answers, and then carries bytes again."""
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


# --- what is somebody else's ------------------------------------------------------------------------


def test_killed():
    """After a kill -9 all that it made is there; the next one knows it, mends it, and takes it away."""
    with Lab(wifi=Veth(), lte=Veth(), core=None) as lab:
        bare(lab)
        before = state(lab)
        with PathManager(lab) as manager:
            manager.process.kill()
            manager.process.wait()
            known = endpoints(lab)
            equal(len(known), 4, "endpoints after a kill")
            # one of them goes meanwhile, and its number is given to somebody else's
            lab.client.ip("addr del 10.2.0.2/24 dev lte", "addr add 10.2.0.9/24 dev lte", "route replace default via 10.2.0.1 dev lte metric 200",
                          "mptcp endpoint del id %d" % known["10.2.0.2"][0],
                          "mptcp endpoint add 10.99.0.1 id %d signal" % known["10.2.0.2"][0])
            manager.start()
            now = endpoints(lab)
            equal((now["10.1.0.2"], now["fd01::2"], now["fd02::2"]), (known["10.1.0.2"], known["fd01::2"], known["fd02::2"]), "those that stay")
            check(now["10.2.0.9"][0] != known["10.2.0.2"][0] and "10.99.0.1" in now, now)
            check(not [rule for rule in ip(lab, "rule") if "10.2.0.2 " in rule], ip(lab, "rule"))
            manager.stop()
        lab.client.ip("mptcp endpoint del id %d" % known["10.2.0.2"][0], "addr del 10.2.0.9/24 dev lte", "addr add 10.2.0.2/24 dev lte",
                      "route replace default via 10.2.0.1 dev lte metric 200")
        equal(state(lab), before, "what there is in the end")
        # and without another one: what is left is taken away by --remove
        with PathManager(lab) as manager:
            manager.process.kill()
            manager.process.wait()
            lab.client.run([lab.build.program("convertize"), "paths", "--remove", "--config", "none"])
        equal(state(lab), before, "what there is after --remove")


def test_others_are_left_alone():
    """Rules, routes, tables, endpoints and limits of others: the same before, meanwhile and afterwards."""
    with Lab(wifi=Veth(), lte=Veth(), core=None) as lab:
        bare(lab)
        lab.client.ip("rule add from 10.1.0.2 table 101", "route add default via 10.1.0.1 dev wifi table 101",
                      "rule add from 10.50.0.1 table 77 protocol 88", "route add 10.50.0.0/24 via 10.1.0.1 table 77 proto 88",
                      "route add 10.51.0.0/24 via 10.1.0.1 proto 88", "route add unreachable 10.52.0.0/16 table 8810",
                      "rule add fwmark 7 table 8811", "mptcp endpoint add 10.2.0.2 id 100 dev lte subflow backup",
                      "mptcp endpoint add 10.99.0.1 id 101 signal", "mptcp limits set subflows 3 add_addr_accepted 2")
        foreign = state(lab)
        with PathManager(lab) as manager:
            for kind, lines in enumerate(foreign):
                now = state(lab)[kind]
                equal([line for line in lines if line not in now], [], "what isn't there any more")
            ours = [line for kind in (0, 1, 2, 3) for line in state(lab)[kind] if line not in foreign[kind]]
            check(all(OURS in line for line in ours) and not [line for line in ours if "8810" in line or "8811" in line], ours)
            check("from 10.1.0.2 " not in "\n".join(manager.done()), manager.done())
            manager.said("lte 10.2.0.2: used, table ")
            manager.said("its endpoint is somebody else's, and left alone")
            manager.said("wifi 10.1.0.2: used, table 101, by somebody else's rule")
            # somebody takes one of ours, and the limit: it is put back, and what is somebody's is somebody's
            lab.client.ip("mptcp endpoint del id %d" % endpoints(lab)["10.1.0.2"][0])
            manager.process.send_signal(signal.SIGHUP)
            wait_until(lambda: "10.1.0.2" in endpoints(lab), 10, "the endpoint that was taken")
            manager.stop()
        equal(state(lab), foreign, "what there is when it has ended")


def test_vpn():
    """While all traffic goes through a tunnel there are no paths beside it, unless that is wanted."""
    with Lab(wifi=Veth(), lte=Veth(), core=None) as lab:
        bare(lab)
        before = state(lab)
        with PathManager(lab) as manager:
            lab.client.ip("tuntap add tun7 mode tun", "addr add 10.77.0.2/24 dev tun7", "link set tun7 up")
            lab.client.ip("route add 10.78.0.0/16 dev tun7")
            equal(len(endpoints(lab)), 4, "endpoints beside a VPN for some destinations")
            lab.client.ip("route add 0.0.0.0/1 dev tun7", "route add 128.0.0.0/1 dev tun7")
            wait_until(lambda: not endpoints(lab), 10, "no endpoint beside a VPN")
            check(not [rule for rule in ip(lab, "rule") if OURS in rule], ip(lab, "rule"))
            lab.client.ip("link del tun7")
            wait_until(lambda: len(endpoints(lab)) == 4, 10, "the endpoints again")
            manager.stop()
        equal(state(lab), before, "what there is when it has ended")


@contextlib.contextmanager
def stand_in(lab, name, sockets=True):
    """A process of that name with a netlink socket, as the real one has it, on the client; for NetworkManager there is nmcli as well."""
    text = ("import ctypes, os, socket, time\n"
            "ctypes.CDLL(None).prctl(15, b%r, 0, 0, 0)\n"
            "sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) if %r else None\n"
            "if sock: sock.bind((os.getpid(), 0))\n"
            "print('ready', flush=True)\n"
            "time.sleep(1000)\n") % (name, sockets)
    process = lab.client.popen(["python3", "-c", text], name=name)
    process.wait_log("ready")
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_network_manager_keeps_the_endpoints():
    """Those of its devices, and as connection.mptcp-flags says; rules and tables are still to be made."""
    with Lab(wifi=Veth(), lte=Veth(), core=None) as lab:
        bare(lab)
        # in front of PATH, where "nmcli" stands for the real one; it says what the file says
        facts = os.path.join(lab.directory, "nm")
        env = {"PATH": STANDINS + ":" + os.environ["PATH"], "LAB_NM": facts}
        os.makedirs(facts)

        def says(device, flags, metered="unknown"):
            with open(os.path.join(facts, device), "w", encoding="ascii") as file:
                file.write("%s\n%s\n" % (flags, metered))

        says("wifi", "0x0 (default)", "no (guessed)")
        with PathManager(lab, env=env) as manager:
            equal(len(endpoints(lab)), 4, "endpoints where nmcli is there, and NetworkManager doesn't run")
            with stand_in(lab, "NetworkManager"):
                manager.process.send_signal(signal.SIGHUP)
                manager.said("wifi 10.1.0.2: used, table ")
                manager.said("its endpoint is left to NetworkManager (connection.mptcp-flags)")
                wait_until(lambda: set(endpoints(lab)) == {"10.2.0.2", "fd02::2"}, 10, "no endpoint for what is NetworkManager's")
                check([rule for rule in ip(lab, "rule") if "from 10.1.0.2 " in rule], "its rule")
                # one before 1.40 has no such property, and knows that lte is metered
                says("lte", "", "yes")
                manager.process.send_signal(signal.SIGHUP)
                wait_until(lambda: endpoints(lab).get("10.2.0.2", (0, ""))[1] == "subflow backup dev lte", 10, "a backup, since it is metered")
                shown = lab.client.run([lab.build.program("convertize"), "paths", "--json", "--config", "none", *DEVICES], env=env)
                networks = {row["address"]: row for row in json.loads(shown.stdout)["networks"]}
                equal((networks["10.2.0.2"]["metered"], networks["10.2.0.2"]["metered_by"], networks["10.1.0.2"]["keeper"]),
                      ("yes", "NetworkManager", "NetworkManager"), "what is shown")
                says("lte", "0x2 (disabled)")
                manager.process.send_signal(signal.SIGHUP)
                wait_until(lambda: not endpoints(lab), 10, "nothing of ours")
                check(not [rule for rule in ip(lab, "rule") if "from 10.2.0.2 " in rule], ip(lab, "rule"))
            manager.process.send_signal(signal.SIGHUP)
            wait_until(lambda: len(endpoints(lab)) == 4, 10, "the endpoints, once NetworkManager is gone")
            manager.stop()


def test_mptcpd_keeps_the_endpoints():
    """A process of that name in this network namespace; one elsewhere is no reason. Rules and tables are made."""
    with Lab(wifi=Veth(), lte=Veth(), core=None) as lab:
        bare(lab)
        with stand_in(lab, "mptcpd", sockets=False), PathManager(lab) as manager:
            equal(len(endpoints(lab)), 4, "endpoints beside a process without a socket here")
            with stand_in(lab, "mptcpd"):
                manager.process.send_signal(signal.SIGHUP)
                manager.said("its endpoint is left to mptcpd")
                wait_until(lambda: not endpoints(lab), 10, "no endpoint of ours")
                equal(len([rule for rule in ip(lab, "rule") if OURS in rule]), 2, "rules")
            manager.process.send_signal(signal.SIGHUP)
            wait_until(lambda: len(endpoints(lab)) == 4, 10, "the endpoints, once mptcpd is gone")
            lab.client.sysctl("net.mptcp.pm_type", 1)
            manager.process.send_signal(signal.SIGHUP)
            wait_until(lambda: not endpoints(lab), 10, "no endpoint with a path manager in user space")
            manager.stop()


# --- what can't be done --------------------------------------------------------------------------------


def test_errors_name_the_remedy():
    """No privilege, MPTCP switched off, another one, options that are wrong."""
    with Lab(wifi=Veth(), lte=Veth(), core=None) as lab:
        bare(lab)
        before = state(lab)

        def fails(*words, wrapper=(), status=1, env=None):
            result = lab.client.run([*wrapper, lab.build.program("convertize"), "paths", "--config", "none", *words], check=False, env=env)
            equal((result.returncode, result.stdout), (status, ""), "status and output of %s" % (words,))
            return result.stderr

        for wrapper in (["setpriv", "--reuid", NOBODY, "--clear-groups"], WITHOUT_NET_ADMIN):
            for word in ("--manage", "--once", "--remove"):
                said = fails(word, wrapper=wrapper)
                check("CAP_NET_ADMIN" in said and "systemctl enable --now convertize-paths" in said, said)
        lab.client.sysctl("net.mptcp.enabled", 0)
        check("sysctl -w net.mptcp.enabled=1" in fails("--manage"), "MPTCP switched off")
        lab.client.sysctl("net.mptcp.enabled", 1)
        check("--tables: \"250-260\" has tables that are the kernel's" in fails("--once", "--tables", "250-260", status=2), "--tables")
        check("CONVERTIZE_DEVICE: \"a/b\" is no device's name" in fails("--once", status=2, env={"CONVERTIZE_DEVICE": "a/b"}), "in the environment")
        check("different things" in fails("--once", "--manage", status=2), "two at once")
        check("leave --dry-run out" in fails("--dry-run", status=2), "--dry-run alone")
        equal(state(lab), before, "what there is after all that failed")
        with PathManager(lab):
            check("another one manages paths here already" in fails("--manage"), "two managers")
            check("another one" in fails("--remove"), "--remove beside a manager")
            lab.client.run([lab.build.program("convertize"), "paths", "--manage", "--dry-run", "--config", "none"])


def test_the_configuration_file():
    """The administrator's file has the same words; what is wrong there is named with its line."""
    with Lab(wifi=Veth(), lte=Veth(), core=None) as lab:
        bare(lab)
        path = os.path.join(lab.directory, "convertize.conf")

        def run(text, *words, check=True):  # pylint: disable=redefined-outer-name
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
            return lab.client.run([lab.build.program("convertize"), "paths", "--config", path, *words], check=check)

        shown = run("device wifi\ndevice lte\nbackup-device l*\ntables 500-501\nbypass nonsense-for-others\n", "--once", "--dry-run").stdout
        check("table 500" in shown and "table 501" in shown and "10.2.0.2 id 101 dev lte subflow backup" in shown, shown)
        check("device names others" in run("device lte\n", "--once", "--dry-run").stdout, "one device only")
        result = run("converter 10.9.0.1\ntables 5\n", "--once", "--dry-run", check=False)
        equal((result.returncode, result.stderr), (2, "convertize: %s:2: tables: \"5\" is no range of routing tables; write it as in 8803-8866\n" % path),
              "a wrong line")
        # they are no variables of programs
        with open(path, "w", encoding="ascii") as file:
            file.write("converter 10.9.0.1\ndevice lte\n")
        sanitizers = shlex.split(os.environ.get("SANITIZER_PRELOAD", ""))
        said = lab.client.run([lab.build.program("convertize"), "--config", path, "--library", lab.build.shim, "env"],
                              env={"LD_PRELOAD": ":".join(sanitizers)} if sanitizers else None).stdout
        check("CONVERT_ADDR=10.9.0.1" in said and "CONVERTIZE_DEVICE" not in said, said)


# --- as a service --------------------------------------------------------------------------------------


def test_the_unit():
    """Under the real systemd: it starts with its one capability, is watched, reloads, and leaves nothing when it is stopped."""
    with Lab(wifi=Veth(), lte=Veth(), core=None) as lab:
        bare(lab)
        before = state(lab)
        with Systemd(lab, host=lab.client) as systemd:
            with open(os.path.join(lab.build.directory, "contrib/systemd/convertize-paths.service"), encoding="ascii") as file:
                unit = file.read()
            exposure = systemd.run("sh", "-c", "cat >/run/convertize-paths.service; systemd-analyze --no-pager security --offline=true "
                                   "/run/convertize-paths.service", input=unit, check=False).stdout
            level = re.search(r"Overall exposure level for \S+: ([0-9.]+)", exposure)
            check(level and float(level[1]) <= EXPOSURE_MAX, exposure)
            said = systemd.run("sh", "-c", "systemd-analyze verify --man=no /run/convertize-paths.service 2>&1", check=False).stdout
            equal([line for line in said.splitlines() if "convertize-paths" in line and "not executable" not in line], [], "systemd-analyze verify")
            systemd.run("cp", lab.build.program("convertize"), PLACE + "/convertize")
            unit = re.sub(r"ExecStart=\S*/convertize paths --manage", "ExecStart=%s/convertize paths --manage --config none %s" % (
                PLACE, " ".join(DEVICES)), unit)
            systemd.write("convertize-paths.service", unit)
            systemd.systemctl("daemon-reload")
            systemd.systemctl("start", "convertize-paths")
            equal(len(endpoints(lab)), 4, "endpoints once it has started")
            main_pid = systemd.systemctl("show", "-P", "MainPID", "convertize-paths").stdout.strip()
            status = systemd.run("cat", "/proc/%s/status" % main_pid).stdout
            equal(re.search(r"CapEff:\s*(\w+)", status)[1], "%016x" % (1 << 12), "capabilities")
            check(re.search(r"Uid:\s*(\d+)", status)[1] != "0", status)
            equal(systemd.systemctl("show", "-P", "StatusText", "convertize-paths").stdout.strip(), "4 network addresses used", "its status")
            lab.client.ip("mptcp endpoint del id %d" % endpoints(lab)["10.1.0.2"][0])
            systemd.systemctl("reload", "convertize-paths")
            wait_until(lambda: len(endpoints(lab)) == 4, 10, "the endpoint that was taken")
            # killed: systemd starts another one, which knows what is its own
            known = endpoints(lab)
            systemd.run("kill", "-9", main_pid)
            wait_until(lambda: systemd.systemctl("show", "-P", "MainPID", "convertize-paths").stdout.strip() not in ("0", main_pid) and
                       systemd.systemctl("is-active", "convertize-paths", check=False).stdout.strip() == "active", 20, "another one")
            equal(endpoints(lab), known, "endpoints after a kill")
            systemd.systemctl("stop", "convertize-paths")
            equal(state(lab), before, "what there is when it has been stopped")
            return "exposure %s" % level[1]


# --- what is shown ----------------------------------------------------------------------------------


def test_what_is_shown():
    """To an ordinary user: which networks work, by asking the converter over each; what they carry; who keeps their endpoints."""
    with Lab(wifi=Link(delay_ms=5, rate_mbit=50), lte=Link(delay_ms=10, rate_mbit=30), core=Link(delay_ms=1)) as lab:
        bare(lab)
        serve(lab)

        def shows(*words, status=0, text=False):
            result = lab.client.run(["setpriv", "--reuid", NOBODY, "--clear-groups", lab.build.program("convertize"), "paths", "--config",
                                     "none", *DEVICES, *([] if text else ["--json"]), *words], check=False)
            equal(result.returncode, status, "the status: " + result.stdout + result.stderr)
            return result.stdout if text else json.loads(result.stdout)

        asked = ["--converter", lab.converter.addr4, "--converter", lab.converter.addr6]
        found = shows()
        equal([row["works"] for row in found["networks"]], [None] * 4, "without a converter")
        equal((found["managed"], found["subflow_limit"]), (False, 0), "without a manager")
        found = {row["address"]: row for row in shows(*asked)["networks"]}
        check(all(row["endpoint"] is None and row["works"] for row in found.values()), found)
        equal((found["10.2.0.2"]["leaves_by_device"], found["10.1.0.2"]["leaves_by_device"]), (False, True), "ways without rules")
        with PathManager(lab, *DEVICES, "--backup-device", "lte"):
            running = download(lab, 30000000)
            wait_until(lambda: subflows(lab, "10.1.0.2") == 1, 10, "a subflow")
            wait_until(lambda: shows(*asked)["networks"][0]["subflows"]["received"] > 100000, 20, "bytes that are carried")
            found = shows(*asked)
            equal((found["managed"], found["subflow_limit"]), (True, 2), "with a manager")
            rows = {row["address"]: row for row in found["networks"]}
            wifi, lte = rows["10.1.0.2"], rows["10.2.0.2"]
            equal((wifi["device"], wifi["gateway"], wifi["endpoint"]["flags"], wifi["endpoint"]["ours"], wifi["verdict"]),
                  ("wifi", "10.1.0.1", ["subflow"], True, "used"), "wifi")
            equal((lte["gateway"], lte["endpoint"]["flags"], lte["leaves_by_device"]), ("10.2.0.1", ["subflow", "backup"], True), "lte")
            check(8803 <= lte["table"] <= 8866 and lte["endpoint"]["since"] > 1000000000 and wifi["subflows"]["count"] >= 1, rows)
            check(wifi["mptcp"] and 12 <= wifi["answer_ms"] < 1000, wifi)
            check(wifi["device_received"] > wifi["subflows"]["received"] > 0, wifi)
            lab.lte.down()
            rows = {row["address"]: row for row in shows(*asked)["networks"]}
            equal((rows["10.1.0.2"]["works"], rows["10.2.0.2"]["works"], rows["10.2.0.2"]["problem"], rows["10.2.0.2"]["converter"]),
                  (True, False, "nothing comes back", "10.9.0.1:1234"), "lte is silent")
            table = shows(*asked, text=True)
            check(re.search(r"^lte +10\.2\.0\.2 +10\.2\.0\.1 +\d+ subflow backup +88\d\d +unknown +no +\d{4}-", table, re.MULTILINE), table)
            check(re.search(r"^wifi +10\.1\.0\.2 +10\.1\.0\.1 +\d+ subflow +88\d\d +unknown +\d+ ms ", table, re.MULTILINE), table)
            check("lte 10.2.0.2 doesn't work: nothing comes back (10.9.0.1:1234)" in table, table)
            lab.wifi.down()
            shows(*asked, status=1)
            lab.wifi.up()
            lab.lte.up()
            arrives(running)


if __name__ == "__main__":
    main()
