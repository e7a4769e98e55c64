#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertize_situations_here.py - one thing is wrong with this machine itself: the doctor blames neither network nor converter"""
import os
import shutil

from convertlab import Lab, Veth, check, equal, long, main, wait_until, waits
from test_convertize_check import DEGRADED, FAILED, OK, Report
from test_convertize_doctor import two_networks

FIREWALL = "add table inet lab; add chain inet lab out { type filter hook output priority 0; }; add rule inet lab out %s"

# a seccomp filter makes socket(AF_NETLINK) fail with EAFNOSUPPORT
NO_NETLINK = """
import ctypes, os, platform, struct, sys
number = {"x86_64": 41, "aarch64": 198}[platform.machine()]
steps = [(0x20, 0, 0, 0), (0x15, 0, 3, number), (0x20, 0, 0, 16), (0x15, 0, 1, 16), (0x06, 0, 0, 0x50061), (0x06, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
libc = ctypes.CDLL(None)
filter = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code))
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, filter, 0, 0):
    sys.exit("prctl")
os.execvp(sys.argv[1], sys.argv[1:])
"""


def blames(lab, cause, *words, name="converter", status=FAILED, **options):
    """Runs the check; checks that one fact alone is bad, and names the cause. Returns the fact."""
    report = Report(lab, *words, **options)
    equal((report.status, report.bad()), (status, [(name, "warn" if status == DEGRADED else "fail")]), report.facts)
    fact, = [fact for fact in report.all(name) if fact["status"] in ("warn", "fail")]
    check(cause in fact["text"], fact)
    return fact


def test_own_firewall_rejects():
    with two_networks() as lab:
        lab.convertd()
        for verdict in ("reject with tcp reset", "reject with icmpx type admin-prohibited", "reject"):
            lab.client.run(["nft", FIREWALL % ("tcp dport 1234 " + verdict)])
            check("this machine's firewall" in blames(lab, "this machine's own firewall")["remedy"], verdict)
            lab.client.run(["nft", "delete", "table", "inet", "lab"])
        equal(Report(lab).status, OK, "without it")
        lab.converter.run(["nft", "add table inet lab; add chain inet lab in { type filter hook input priority 0; }; "
                           "add rule inet lab in tcp dport 1234 reject with tcp reset"])
        check("own firewall" not in Report(lab).one("converter")["text"], "the converter's firewall isn't this machine's")


@long
@waits
def test_own_firewall_drops():
    """This machine's firewall silently drops SYNs, on all networks, on one, or only those with Multipath TCP; or it removes that option."""
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
        lab.client.run(["sh", "-c", "ip -6 route flush default; ip -6 route flush table 101"])
        report = Report(lab, converter=lab.converter.addr6)
        check("this machine has no route to it" in report.one("converter")["text"], "a router that went silent")


def test_names_with_an_address_of_this_machine():
    """Resolvers that block names answer so."""
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
        for address in ("192.168.77.1", "fd77::1"):  # routers limit their ICMP messages, so the doctor may not learn which one refuses
            report = Report(lab, converter=address)
            fact = report.one("converter")
            check("has no route to it" in fact["text"] or "says a host on the way" in fact["text"], fact)
            check(fact["remedy"].startswith("see that the address is right"), fact)


@long
@waits
def test_address_that_no_neighbour_has():
    """ICMP messages of this machine's own kernel are the cause: the doctor blames no router."""
    with Lab(wifi=Veth(), lte=None, core=None) as lab:
        lab.converter.sysctl("net.ipv4.conf.all.arp_ignore", 1)  # no ARP replies for another network's address
        for family in "-4", "-6":
            lab.client.run(["ip", family, "route", "flush", "table", "101"])  # its route leads to the router
        for address, timeout in (("10.1.0.77", "1"), ("fd01::77", "1"), ("10.1.0.78", "4")):
            fact = Report(lab, "--timeout", timeout, converter=address).one("converter")
            equal(fact["text"], "no host on wifi has this address", fact)
            equal(fact["remedy"], "see that the address is right, and that its machine is on and connected to wifi", fact)


def loses_carrier(lab):
    """Takes wifi's carrier away, and waits until the kernel sees that, which may take a second."""
    lab.converter.ip("link set wifi down")
    wait_until(lambda: "state DOWN" in lab.client.run(["ip", "link", "show", "wifi"]).stdout, 10, "wifi without a carrier")


@long
@waits
def test_first_hop():
    """No carrier, beside a working network or alone; a missing router; an address that can't be used yet."""
    with two_networks(wifi=Veth()) as lab:
        lab.convertd()
        loses_carrier(lab)
        blames(lab, "that network has no carrier")
    with Lab(wifi=Veth(), lte=None, core=None) as lab:
        lab.convertd()
        lab.converter.sysctl("net.ipv4.conf.all.arp_ignore", 1)  # no ARP replies for another network's address
        lab.client.ip("route replace default via 10.1.0.99 dev wifi metric 100", "route flush table 101")
        blames(lab, "the router of its route, 10.1.0.99, does not answer on wifi")
        loses_carrier(lab)
        fact = blames(lab, "wifi, which connections take, has no carrier")
        check(fact["remedy"].startswith("connect wifi"), fact)
    with two_networks(lte=Veth()) as lab:
        lab.convertd()
        lab.client.sysctl("net.ipv6.conf.lte.dad_transmits", 100)
        lab.client.ip("addr del fd02::2/64 dev lte", "addr add fd02::2/64 dev lte")
        fact = blames(lab, "this machine can't connect over lte: Cannot assign requested address", name="path", status=DEGRADED,
                      converter=lab.converter.addr6)
        check("dadfailed" in fact["remedy"], fact)


def test_without_netlink():
    """A sandbox without netlink sockets (RestrictAddressFamilies=) hides the networks; nothing else is wrong."""
    with two_networks() as lab:
        lab.convertd()
        fact = blames(lab, "the networks can't be read", name="network.interfaces", status=DEGRADED, wrapper=["python3", "-c", NO_NETLINK])
        check("AF_NETLINK" in fact["remedy"], fact)


def test_library_that_no_loader_takes():
    """The library is on a file system mounted noexec, or cut off: the loader would ignore it, or crash."""
    with two_networks() as lab:
        lab.convertd()
        place = os.path.join(lab.directory, "place")
        os.mkdir(place)
        copy = "mount -t tmpfs -o %s none \"$1\" && head -c %s \"$2\" >\"$1/libconvert.so\" && shift 2 && exec \"$@\""
        for options, count, cause in (("noexec", "-0", "failed to map segment"), ("exec", "5000", "place/libconvert.so: ")):
            wrapper = ["unshare", "--mount", "sh", "-c", copy % (options, count), "sh", place, lab.build.shim]
            fact = blames(lab, cause, "--library", place + "/libconvert.so", name="library", wrapper=wrapper)
            check(fact["remedy"].startswith("install it again"), fact)
        said = lab.client.run([lab.build.program("convertize"), "check", "--json", "--converter", lab.converter.addr4],
                              env={"CONVERT_BESIDE_VPN": "1", "CONVERT_CACHE": "none", "LD_PRELOAD": "/nonexistent.so"}, check=False)
        equal(said.returncode, OK, "another library that isn't there: " + said.stdout)


def test_rules_that_exclude_everything():
    with two_networks() as lab:
        lab.convertd()
        blames(lab, "CONVERT_BYPASS excludes all destinations", "--bypass", "::/0", name="bypass")
        blames(lab, "all destinations with IPv4 addresses", "--bypass", "0.0.0.0/0", name="bypass", status=DEGRADED)
        equal(Report(lab, "--bypass", ":443,10.0.0.0/8,[::/0]:80").status, OK, "rules that leave something")
        lab.client.ip("mptcp endpoint flush", "mptcp limits set add_addr_accepted 0")
        fact = blames(lab, "CONVERT_PATHS or a quota allows no network", "--paths", "wifi=never,lte=never", name="network.interfaces")
        check("--paths" in fact["remedy"], fact)


def test_programs_in_sandboxes():
    """Links to snap(8), and scripts that start one; scripts of Flatpak; torsocks, which takes over the program's connections."""
    with two_networks() as lab:
        lab.convertd()
        shutil.copy("/bin/true", os.path.join(lab.directory, "snap"))
        os.symlink("snap", os.path.join(lab.directory, "browser"))
        for name, text in (("browser.sh", "#!/bin/sh\nexec /snap/bin/browser \"$@\"\n"), ("torsocks", "#!/bin/sh\n"),
                           ("org.example.App", "#!/bin/sh\nexec /usr/bin/flatpak run --branch=stable org.example.App \"$@\"\n")):
            with open(os.path.join(lab.directory, name), "w", encoding="ascii") as file:
                file.write(text)
            os.chmod(file.name, 0o755)
        for name, status, cause in (("browser", FAILED, "snap starts its program by a launcher with privileges"),
                                    ("browser.sh", FAILED, "snap starts its program by a launcher with privileges"),
                                    ("torsocks", FAILED, "torsocks takes the program's connections to Tor"),
                                    ("org.example.App", DEGRADED, "flatpak starts its program in a sandbox"), ("snap", OK, None)):
            path = os.path.join(lab.directory, name)
            if cause:
                blames(lab, cause, path, name="program", status=status)
            else:
                equal(Report(lab, path).status, status, name)
            run = lab.client.run([lab.build.program("convertize"), "--converter", lab.converter.addr4, path], check=False)
            equal(run.returncode == 126, status == FAILED, "%s: %s" % (name, run))
            check(not cause or cause in run.stderr or name == "org.example.App", run)


def test_full_cache():
    """A file system without room for the cache, and one that can't be written."""
    with two_networks() as lab:
        lab.convertd()
        place = os.path.join(lab.directory, "cache")
        os.mkdir(place, 0o700)
        for options in ("size=4k", "ro"):
            wrapper = ["unshare", "--mount", "sh", "-c", "mount -t tmpfs -o mode=700,%s none \"$0\" && exec \"$@\"" % options, place]
            fact = blames(lab, "it is full or read-only", name="cache", status=DEGRADED, wrapper=wrapper, env={"CONVERT_CACHE": place})
            check("--cache DIRECTORY" in fact["remedy"], fact)


@long
@waits
def test_endpoint_on_the_wrong_device():
    with two_networks() as lab:
        lab.convertd()
        lab.client.ip("mptcp endpoint flush", "mptcp endpoint add 10.2.0.2 dev wifi subflow", "mptcp endpoint add fd02::2 dev lte subflow")
        report = Report(lab)
        fact, = [fact for fact in report.all("network.endpoint") if fact["status"] == "warn"]
        check("MPTCP endpoint 10.2.0.2 is bound to another device" in fact["text"], fact)
        for command in fact["remedy"].split(" && "):
            lab.client.run(command.split())
        report = Report(lab)
        equal((report.status, report.one("paths")["value"]), (OK, 2), "cured")


@long
@waits
def test_path_manager_that_does_nothing():
    with two_networks() as lab:
        lab.convertd()
        lab.client.sysctl("net.mptcp.pm_type", 1)
        fact = blames(lab, "the path manager in user space makes no others", name="paths", status=DEGRADED)
        equal(fact["remedy"], "sysctl -w net.mptcp.pm_type=0", fact)
        lab.client.run(fact["remedy"].split())
        report = Report(lab)
        equal((report.status, report.one("paths")["value"]), (OK, 2), "cured")


def test_check_without_a_server():
    """Without a server's name the doctor notes that it hasn't tried any; with one, it finds that the converter reaches none."""
    with two_networks() as lab:
        lab.convertd()
        lab.echo()
        lab.converter.run(["nft", FIREWALL % "oifname core tcp flags & (syn|ack) == syn drop"])
        report = Report(lab)
        equal((report.status, report.one("server")["status"]), (OK, "note"), report.facts)
        check("convertize check SERVER[:PORT]" in report.one("server")["remedy"], report.one("server"))
        equal(Report(lab, lab.server.addr4 + ":7").status, FAILED, "with a server")


if __name__ == "__main__":
    main()
