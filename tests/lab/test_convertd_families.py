#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertd_families.py - a converter's IPv6 or IPv4 leads nowhere: its clients soon reach servers of that family directly"""
import os
import re
import resource
import time

from convertlab import Lab, Link, check, equal, long, main, wait_until, waits
from convertlab.harness import need
from convertlab.links import Cable, Veth
from convertlab.peers import Client, connect, converter, descriptors, error, extended_header

NOT_AUTHORIZED = error(0x20)
FAMILIES = {4: "IPv4", 6: "IPv6"}
NETWORKS = {4: "10.8.0.0/24", 6: "fd08::/64"}
# Seconds: for so long convertd waits for a server before it says that the client had better connect directly (FAMILIES_PATIENCE_MS in
# src/convertd/policy/families.h), and for so long it tries to connect (the default of --connect-timeout). Without a wait it's milliseconds.
PATIENCE, CONNECT_TIMEOUT = 2.8, 30


def apart():
    """Returns a lab, to be closed, where another link joins client and server, past the converter's host."""
    lab = Lab(wifi=Link(delay_ms=0.5), core=Link(delay_ms=0.1), lte=None).__enter__()
    Cable(Veth(), "direct", lab.client, lab.server)
    for host, number in ((lab.client, 1), (lab.server, 2)):
        host.ip("addr add 10.4.0.%d/24 dev direct" % number)
        host.run(["ip", "addr", "add", "fd04::%d/64" % number, "dev", "direct", "nodad"])
    lab.client.ip("route add %s via 10.4.0.2" % NETWORKS[4])
    lab.client.run(["ip", "-6", "route", "add", NETWORKS[6], "via", "fd04::2"])
    return lab


def server_address(lab, family):
    return lab.server.addr4 if family == 4 else lab.server.addr6


def url(lab, family, port=80):
    address = server_address(lab, family)
    return "http://%s:%d/bytes/1000" % ("[%s]" % address if family == 6 else address, port)


def fetch(lab, family, env=None, port=80):
    """Returns how many seconds curl takes."""
    start = time.monotonic()
    got = lab.client.run(["curl", "-sS", "--fail", "-o", "/dev/null", "-w", "%{size_download}", url(lab, family, port)], env=env, timeout=60)
    equal(got.stdout, "1000", "bytes")
    return time.monotonic() - start


def unroute(lab, family):
    """Removes the converter's routes to servers of that family."""
    lab.converter.run(["ip", "-%d" % family, "route", "flush", "root", NETWORKS[family]])


def silence(lab, family):
    """Drops, on the server's host, packets from the core link to addresses of that family: the direct link still works."""
    need("nft", "nftables")
    name = "ip" if family == 4 else "ip6"
    lab.server.run(["nft", "-f", "-"], input="table inet swallow { chain input { type filter hook prerouting priority -300; iif core %s daddr %s drop; }; }\n"
                   % (name, NETWORKS[family]))


def speak(lab):
    """Ends silence()."""
    lab.server.run(["nft", "flush", "ruleset"])


def test_no_route():
    """The converter has no route for one family: connections of it are direct, and soon (curl -6 once failed); the other is converted."""
    need("curl", "curl")
    for family, other in ((6, 4), (4, 6)):
        lab = apart()
        try:
            lab.http()
            unroute(lab, family)
            with converter(lab) as process:
                check("no route to %s servers" % FAMILIES[family] in process.log_text(), process.log_text())
                check("no route to %s servers" % FAMILIES[other] not in process.log_text(), process.log_text())
                cache = os.path.join(lab.directory, "cache")
                os.mkdir(cache, 0o700)
                env = lab.converted(CONVERT_CACHE=cache)
                for _ in range(4):
                    took = fetch(lab, family, env)
                    check(took < PATIENCE, "%.1f s, as if convertd had waited for the server" % took)
                    fetch(lab, other, env)
                log = lab.shim_log()
                equal(log.count("converted over MPTCP"), 4, "connections of the other family that are converted:\n" + log)
                equal(log.count("the converter has refused this destination"), 3, "processes that don't ask in vain:\n" + log)
                # convertd sees the new route without a restart
                via = lab.server.core4 if family == 4 else lab.server.core6
                lab.converter.run(["ip", "-%d" % family, "route", "add", NETWORKS[family], "via", via])
                process.wait_log("has a route to %s servers now" % FAMILIES[family])
                unroute(lab, family)
                wait_until(lambda: process.log_text().count("no route to %s servers" % FAMILIES[family]) == 2, 10, "the warning")
                remedy = re.search(r"no route to %s servers.* --deny-destination (\S+)" % FAMILIES[family], process.log_text())[1]
            # the remedy that the warning names silences it, and the other family is still converted
            with converter(lab, "--allow-destination", "::/0", "--deny-destination", remedy) as process:
                reaches(lab, server_address(lab, other))
                check("no route to" not in process.log_text(), process.log_text())
        finally:
            lab.close()


@long
@waits
def test_uplink_that_swallows():
    """Packets of one family vanish (each curl -6 once took half a minute): after one connection, others are direct until it works."""
    need("curl", "curl")
    for family, other in ((6, 4), (4, 6)):
        lab = apart()
        try:
            lab.http()
            lab.http(81)
            silence(lab, family)
            with converter(lab, "--metrics", "127.0.0.1:9103") as process:
                env = lab.converted(CONVERT_CACHE="none")
                times = [fetch(lab, family, env) for _ in range(5)]
                check(max(times) < CONNECT_TIMEOUT, "seconds: %s" % times)
                # on a busy machine one or the other takes long
                check(min(times[1:]) < PATIENCE, "seconds, as if convertd had waited for the server each time: %s" % times)
                fetch(lab, other, env)
                process.wait_log("no %s server answers" % FAMILIES[family], timeout=15)
                metrics = lab.converter.run(["curl", "-s", "http://127.0.0.1:9103/metrics"]).stdout
                check("convertd_family_works{family=\"%s\"} 0" % FAMILIES[family] in metrics, metrics)
                check("convertd_family_works{family=\"%s\"} 1" % FAMILIES[other] in metrics, metrics)
                status = lab.converter.run(["curl", "-s", "http://127.0.0.1:9103/status"]).stdout
                check("no server answers" in status, status)
                speak(lab)
                process.wait_log("%s servers answer again" % FAMILIES[family], timeout=15)
                before = lab.shim_log().count("converted over MPTCP")
                fetch(lab, family, env)
                equal(lab.shim_log().count("converted over MPTCP"), before + 1, lab.shim_log())
        finally:
            lab.close()


def asked(lab, address):
    """Returns the answer to a request for that address, which must come before convertd gives up to connect: that takes CONNECT_TIMEOUT."""
    with Client(lab.client, lab.converter.addr4, seconds=20) as client:
        return client.send(connect(address, 80)).answer()


def reaches(lab, address, port=80):
    """Checks that a client is connected to that server."""
    with Client(lab.client, lab.converter.addr4) as client:
        extended_header(client.send(connect(address, port)).answer())


def test_dead_servers_alone_say_nothing():
    """If some servers of a family answer, requests for dead ones don't make the converter give the family up."""
    lab = apart()
    try:
        lab.http()
        with converter(lab, "--connect-timeout", "4") as process:
            reaches(lab, lab.server.addr6)
            lab.server.run(["ip", "-6", "route", "add", "blackhole", "fd08:0:0:0:1::/80"])
            waiting = [Client(lab.client, lab.converter.addr4, seconds=20) for _ in range(6)]
            for number, client in enumerate(waiting):
                client.send(connect("fd08::1:0:0:%d" % (number + 1), 80))
            for client in waiting:
                equal(client.answer(), error(0x41), "the answer for a dead server")
                client.sock.close()
            check("server answers" not in process.log_text(), process.log_text())
            reaches(lab, lab.server.addr6)
    finally:
        lab.close()


@long
@waits
def test_family_that_stops_working():
    """convertd finds that out from several silent servers, and then refuses requests at once."""
    lab = apart()
    try:
        lab.http()
        with converter(lab) as process:
            for number in range(1, 5):
                lab.server.run(["ip", "addr", "add", "fd08::%d:0/128" % number, "dev", "lo", "nodad"])
            reaches(lab, lab.server.addr6)
            silence(lab, 6)
            waiting = [Client(lab.client, lab.converter.addr4, seconds=20) for _ in range(4)]
            for number, client in enumerate(waiting):
                client.send(connect("fd08::%d:0" % (number + 1), 80))
            process.wait_log("no IPv6 server answers", timeout=20)
            for client in waiting:
                client.sock.close()
            equal(asked(lab, "fd08::1:0"), NOT_AUTHORIZED, "the answer")
            speak(lab)
            process.wait_log("IPv6 servers answer again", timeout=15)
    finally:
        lab.close()


@long
@waits
def test_no_descriptor_is_left():
    """convertd has no descriptor to test a family with: it concludes nothing, and tests as soon as it can."""
    with Lab(wifi=Link(delay_ms=0.5), core=Link(delay_ms=0.1), lte=None) as lab, converter(lab, "--hold-syn", "off") as process:
        at_start = descriptors(process)
        with Client(lab.client, lab.converter.addr4, seconds=20) as client:
            client.send(connect(lab.addresses.blackhole6, 80))
            wait_until(lambda: descriptors(process) == at_start + 2, 5, "the server's socket")
            used = {int(number) for number in os.listdir("/proc/%d/fd" % process.serving)}
            limit = min(set(range(len(used) + 1)) - used)
            before = resource.prlimit(process.serving, resource.RLIMIT_NOFILE)
            resource.prlimit(process.serving, resource.RLIMIT_NOFILE, (limit, before[1]))
            equal(client.answer(), NOT_AUTHORIZED, "the answer")
            check("server answers" not in process.log_text(), process.log_text())
            resource.prlimit(process.serving, resource.RLIMIT_NOFILE, before)
        process.wait_log("no IPv6 server answers", timeout=15)


@long
@waits
def test_router_that_is_gone():
    """A router that doesn't answer ARP or neighbour discovery isn't the server's fault: the converter refuses such requests soon."""
    lab = apart()
    try:
        lab.converter.ip("route add 10.66.0.0/24 via 10.3.0.77")
        lab.converter.run(["ip", "-6", "route", "add", "fd66::/64", "via", "fd03::77"])
        with converter(lab):
            for address in ("10.66.0.1", "fd66::1"):
                equal(asked(lab, address), NOT_AUTHORIZED, "the answer for %s" % address)
    finally:
        lab.close()


if __name__ == "__main__":
    main()
