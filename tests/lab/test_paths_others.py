#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_paths_others.py - "convertize paths --manage" removes only what it has made, and leaves the settings of others alone"""
import json
import os
import signal

from convertlab import Lab, Veth, check, equal, main, need, wait_until
from convertlab.paths import DEVICES, OURS, Nmcli, PathManager, bare, endpoints, ip, published, stand_in, state


def test_killed():
    """After kill -9 all that it made stays; the next service knows it, mends it, and removes it."""
    with Lab(wifi=Veth(), lte=Veth(), core=None) as lab:
        bare(lab)
        before = state(lab)
        with PathManager(lab) as manager:
            manager.process.kill()
            manager.process.wait()
            known = endpoints(lab)
            equal(len(known), 4, "endpoints after a kill")
            # meanwhile one endpoint goes, and another program's gets its ID
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
        # and without another service: --remove removes what is left
        with PathManager(lab) as manager:
            manager.process.kill()
            manager.process.wait()
            lab.client.run([lab.build.program("convertize"), "paths", "--remove", "--config", "none"])
        equal(state(lab), before, "what there is after --remove")


def test_endpoints_cannot_be_read():
    """The service can't list the endpoints for a moment: it remembers which are its own."""
    need("strace")
    with Lab(wifi=Veth(), lte=Veth(), core=None) as lab:
        bare(lab)
        before = state(lab)
        with PathManager(lab) as manager:
            strace = lab.client.popen(["strace", "-e", "trace=socket", "-e", "inject=socket:error=ENFILE", "-p", str(manager.process.pid)])
            strace.wait_log("attached")
            manager.process.send_signal(signal.SIGHUP)
            strace.wait_log("NETLINK_GENERIC) = -1 ENFILE")
            strace.stop(signal.SIGINT)
            manager.stop()
        equal(state(lab), before, "what there is when it has ended")


def test_it_ends_in_spite_of_errors():
    """It removes what it made if the kernel fails for a moment, or it can't write its memory; it fails if it can't wait for events."""
    need("strace")
    with Lab(wifi=Veth(), lte=Veth(), core=None) as lab:
        bare(lab)
        before = state(lab)
        with PathManager(lab, env={"ASAN_OPTIONS": "detect_leaks=0"}) as manager:  # LeakSanitizer doesn't work under strace
            # the sockets to the service manager, for subflows, routes and endpoints, and those of its second try
            strace = lab.client.popen(["strace", "-e", "trace=socket", "-e", "inject=socket:error=ENFILE:when=1..7", "-p",
                                       str(manager.process.pid)])
            strace.wait_log("attached")
            manager.stop()
            check("NETLINK_GENERIC) = -1 ENFILE" in strace.log_text(), strace.log_text())
            equal(state(lab), before, "what there is after errors")
            manager.start()
            draft = "/run/convertize/paths-%d.new" % os.stat("/proc/%d/ns/net" % manager.process.pid).st_ino
            os.mkdir(draft)
            manager.stop()
            equal(state(lab), before, "what there is when the memory couldn't be written")
            os.rmdir(draft)
            manager.start()
            lab.client.popen(["strace", "-e", "inject=?poll,ppoll:error=ENOMEM", "-p", str(manager.process.pid)]).wait_log("attached")
            manager.process.send_signal(signal.SIGHUP)
            equal(manager.process.wait(10), 1, "the status if poll(2) fails")
            equal(state(lab), before, "what there is then")


def test_others_are_left_alone():
    """The service never changes others' rules, routes, tables, endpoints and limits."""
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
                equal([line for line in lines if line not in now], [], "others' lines that are gone")
            ours = [line for kind in (0, 1, 2, 3) for line in state(lab)[kind] if line not in foreign[kind]]
            check(all(OURS in line for line in ours) and not [line for line in ours if "8810" in line or "8811" in line], ours)
            check("from 10.1.0.2 " not in "\n".join(manager.done()), manager.done())
            manager.said("lte 10.2.0.2: used, table ")
            manager.said("its endpoint is somebody else's, and left alone")
            manager.said("wifi 10.1.0.2: used, table 101, by somebody else's rule")
            # another program removes one of our endpoints: the service makes it again
            lab.client.ip("mptcp endpoint del id %d" % endpoints(lab)["10.1.0.2"][0])
            manager.process.send_signal(signal.SIGHUP)
            wait_until(lambda: "10.1.0.2" in endpoints(lab), 10, "the endpoint that was taken")
            manager.stop()
        equal(state(lab), foreign, "what there is when it has ended")


def way(lab, to, source):
    """Returns the device by which packets from this address leave, and their router."""
    words = ip(lab, "route", "get", to, "from", source)[0].split()
    router = words[words.index("via") + 1:] if "via" in words else [None]
    return words[words.index("dev") + 1], router[0] if router[0] != "inet6" else router[1]


def test_other_ways_of_this_host():
    """Packets from its addresses to containers, into tunnels and to other routers' networks leave as without the service."""
    with Lab(wifi=Veth(), lte=Veth(), core=None) as lab:
        bare(lab)
        lab.client.ip("link add docker0 type bridge", "addr add 172.17.0.1/16 dev docker0", "addr add fd17::1/64 dev docker0 nodad",
                      "link set docker0 up", "tuntap add tun7 mode tun", "link set tun7 up", "route add 10.70.0.0/16 dev tun7",
                      "route add 10.60.0.0/16 via 10.1.0.9", "route add unreachable 10.80.0.0/16",
                      # a second device with the same prefix, which the main table prefers
                      "route prepend 10.1.0.0/24 dev lte")
        before = state(lab)
        with PathManager(lab) as manager:
            for source in ("10.1.0.2", "10.2.0.2"):
                equal([way(lab, to, source) for to in ("172.17.0.2", "10.70.0.1", "10.60.0.1")],
                      [("docker0", None), ("tun7", None), ("wifi", "10.1.0.9")], "ways from " + source)
                refused = lab.client.run(["ip", "route", "get", "10.80.0.1", "from", source], check=False)
                check("No route to host" in refused.stderr, refused.stderr)
            equal([way(lab, "fd17::2", source)[0] for source in ("fd01::2", "fd02::2")], ["docker0"] * 2, "ways of IPv6")
            equal([way(lab, "192.0.2.9", source) for source in ("10.1.0.2", "10.2.0.2")], [("wifi", "10.1.0.1"), ("lte", "10.2.0.1")],
                  "ways to the Internet")
            equal(way(lab, "10.1.0.1", "10.1.0.2"), ("wifi", None), "the way to a host on the link")
            manager.stop()
        equal(state(lab), before, "what there is when it has ended")


def test_router_of_ipv6_for_ipv4():
    """A default route of IPv4 by a router that has only an IPv6 address (RFC 8950): the service's table has the same one."""
    with Lab(wifi=Veth(), lte=Veth(), core=None) as lab:
        bare(lab)
        lab.converter.ip("addr add fe80::99/64 dev wifi nodad")
        lab.client.run(["ip", "-4", "route", "replace", "default", "via", "inet6", "fe80::99", "dev", "wifi", "metric", "100"])
        with PathManager(lab) as manager:
            equal(way(lab, "192.0.2.9", "10.1.0.2"), ("wifi", "fe80::99"), "the way to the Internet")
            manager.stop()


def test_vpn():
    """While all traffic goes through a tunnel the service makes no paths beside it."""
    with Lab(wifi=Veth(), lte=Veth(), core=None) as lab:
        bare(lab)
        before = state(lab)
        with PathManager(lab) as manager:
            lab.client.ip("tuntap add tun7 mode tun", "addr add 10.77.0.2/24 dev tun7", "link set tun7 up")
            lab.client.ip("route add 10.78.0.0/16 dev tun7")
            equal(len(endpoints(lab)), 4, "endpoints beside a VPN for some destinations")
            lab.client.ip("route add 0.0.0.0/1 dev tun7", "route add 128.0.0.0/1 dev tun7")
            wait_until(lambda: not endpoints(lab), 10, "no endpoint beside a VPN")
            wait_until(lambda: not [rule for rule in ip(lab, "rule") if OURS in rule], 10, "no rule beside a VPN: they go after the endpoints")
            lab.client.ip("link del tun7")
            wait_until(lambda: len(endpoints(lab)) == 4, 10, "the endpoints again")
            manager.stop()
        equal(state(lab), before, "what there is when it has ended")


def test_network_manager_keeps_the_endpoints():
    """NetworkManager makes its devices' endpoints by connection.mptcp-flags; the service still makes rules and tables."""
    with Lab(wifi=Veth(), lte=Veth(), core=None) as lab:
        bare(lab)
        nm = Nmcli(lab)
        nm.says("wifi", "0x0 (default)", "no (guessed)")
        with PathManager(lab, env=nm.env) as manager:
            equal(len(endpoints(lab)), 4, "endpoints where nmcli is there, and NetworkManager doesn't run")
            with stand_in(lab, "NetworkManager"):
                manager.process.send_signal(signal.SIGHUP)
                manager.said("wifi 10.1.0.2: used, table ")
                manager.said("its endpoint is left to NetworkManager (connection.mptcp-flags)")
                wait_until(lambda: set(endpoints(lab)) == {"10.2.0.2", "fd02::2"}, 10, "no endpoint for what is NetworkManager's")
                check([rule for rule in ip(lab, "rule") if "from 10.1.0.2 " in rule], "its rule")
                # a NetworkManager before 1.40 has no such property, but knows that lte is metered
                nm.says("lte", "", "yes")
                manager.process.send_signal(signal.SIGHUP)
                wait_until(lambda: endpoints(lab).get("10.2.0.2", (0, ""))[1] == "subflow backup dev lte", 10, "a backup, since it is metered")
                wait_until(lambda: published(lab) == [("8805", "lte"), ("8807", "lte")], 10, "what programs are told: a backup")
                shown = lab.client.run([lab.build.program("convertize"), "paths", "--json", "--config", "none", *DEVICES], env=nm.env)
                networks = {row["address"]: row for row in json.loads(shown.stdout)["networks"]}
                equal((networks["10.2.0.2"]["metered"], networks["10.2.0.2"]["metered_by"], networks["10.1.0.2"]["keeper"]),
                      ("yes", "NetworkManager", "NetworkManager"), "what is shown")
                nm.says("lte", "0x2 (disabled)")
                manager.process.send_signal(signal.SIGHUP)
                wait_until(lambda: not endpoints(lab), 10, "nothing of ours")
                wait_until(lambda: not published(lab), 10, "nothing for programs, which may begin a connection there")
                check(not [rule for rule in ip(lab, "rule") if "from 10.2.0.2 " in rule], ip(lab, "rule"))
            manager.process.send_signal(signal.SIGHUP)
            wait_until(lambda: len(endpoints(lab)) == 4, 10, "the endpoints, once NetworkManager is gone")
            equal(published(lab), [], "what programs are told then")
            manager.stop()


def test_network_manager_does_not_answer():
    """While nmcli fails, the service keeps its earlier answer, and makes no endpoint."""
    with Lab(wifi=Veth(), lte=Veth(), core=None) as lab:
        bare(lab)
        nm = Nmcli(lab)
        nm.says("wifi", "0x2 (disabled)")
        nm.says("lte", "", "yes")
        nm.first("exit 8")
        with stand_in(lab, "NetworkManager"), PathManager(lab, env=nm.env) as manager:
            equal(endpoints(lab), {}, "endpoints while nothing is known")
            manager.said("NetworkManager runs, but nmcli")
            nm.first("")
            wait_until(lambda: set(endpoints(lab)) == {"10.2.0.2", "fd02::2"}, 10, "no endpoint where its user forbids it")
            known = endpoints(lab)
            nm.first("exit 8")
            manager.process.send_signal(signal.SIGHUP)
            wait_until(lambda: manager.process.log_text().count("NetworkManager runs, but nmcli") == 2, 10, "the second failure")
            lab.client.ip("addr add 10.1.0.9/24 dev wifi")
            manager.said("wifi 10.1.0.9: left alone: NetworkManager has connection.mptcp-flags disabled")
            equal((endpoints(lab), published(lab)), (known, [("8805", "lte"), ("8807", "lte")]), "what its user said before")
            manager.stop()


def test_network_goes_while_nmcli_runs():
    """The service reads the host again afterwards, and makes no endpoint for an address that is gone."""
    with Lab(wifi=Veth(), lte=Veth(), core=None) as lab:
        bare(lab)
        nm = Nmcli(lab)
        nm.first("ip addr del 10.2.0.2/24 dev lte; rm $LAB_NM.first")
        with stand_in(lab, "NetworkManager"), PathManager(lab, env=nm.env) as manager:
            equal(set(endpoints(lab)), {"10.1.0.2", "fd01::2", "fd02::2"}, "endpoints")
            check("10.2.0.2" not in "\n".join(manager.done()), manager.done())
            manager.stop()


def test_mptcpd_keeps_the_endpoints():
    """It is a process of that name with a netlink socket in this network namespace. The service still makes rules and tables."""
    with Lab(wifi=Veth(), lte=Veth(), core=None) as lab:
        bare(lab)
        with stand_in(lab, "mptcpd", sockets=False), PathManager(lab) as manager:
            equal(len(endpoints(lab)), 4, "endpoints beside a process without a socket here")
            with stand_in(lab, "mptcpd"):
                manager.process.send_signal(signal.SIGHUP)
                manager.said("its endpoint is left to mptcpd")
                wait_until(lambda: not endpoints(lab), 10, "no endpoint of ours")
                equal(len([rule for rule in ip(lab, "rule") if OURS in rule]), 6, "rules")
            manager.process.send_signal(signal.SIGHUP)
            wait_until(lambda: len(endpoints(lab)) == 4, 10, "the endpoints, once mptcpd is gone")
            lab.client.sysctl("net.mptcp.pm_type", 1)
            manager.process.send_signal(signal.SIGHUP)
            wait_until(lambda: not endpoints(lab), 10, "no endpoint with a path manager in user space")
            manager.stop()


if __name__ == "__main__":
    main()
