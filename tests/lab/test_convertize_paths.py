#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertize_paths.py - paths that lose large packets, wrong routes, firewalls: the doctor names the fault, and cures it

The tests are like those of test_convertize_doctor.py, and use its Patient.
"""
import os
import shutil

from convertlab import Link, Unsuitable, Veth, check, equal, long, main, sandbox, waits
from test_convertize_check import DEGRADED, FAILED, NOBODY, OK, ONE_SECOND, Report
from test_convertize_doctor import WITHOUT_NET_ADMIN, Patient, two_networks

# --- sizes --------------------------------------------------------------------------------------


def black_holes(name, *holes):
    """Black holes in one direction or both: the doctor finds the size to the byte, and its remedy is a command."""
    with two_networks() as lab:
        patient = Patient(lab)
        link = getattr(lab, name)
        for way, size, words in holes:
            link.set(way, max_size=size)
            report = Report(lab)
            equal((report.status, report.bad()), (DEGRADED, [("path.mtu", "warn")]), "%s %s %d" % (name, way, size))
            fact, = [fact for fact in report.all("path.mtu") if fact["status"] == "warn"]
            equal(fact["value"], size, "the size, %s %s" % (name, way))
            check("over %s " % name in fact["text"] and "larger ones %s the converter" % words in fact["text"], fact)
            patient.is_cured_by(report)
            link.set(max_size=0)
            lab.client.ip("link set dev %s mtu 1500" % name)
            # the remedy for sizes that are too small for IPv6, in whichever table it is
            lab.client.ip("route flush table all exact %s" % lab.converter.addr4)


@long
@waits
def test_path_mtu_black_holes_of_the_first_network():
    black_holes("wifi", ("a-to-b", 1399, "to"), ("b-to-a", 1280, "from"), (None, 1000, "to"))


@long
@waits
def test_path_mtu_black_holes_of_the_second_network():
    black_holes("lte", ("a-to-b", 1492, "to"), ("b-to-a", 1300, "from"), (None, 1433, "to"))


@long
@waits
def test_black_hole_with_another_converter():
    """The converter doesn't echo, so large packets go towards it only: the doctor still finds a black hole on the way there."""
    with two_networks() as lab:
        lab.start_listening(lab.converter, ["python3", os.path.join(os.path.dirname(os.path.abspath(__file__)), "scripted_converter.py"),
                                            lab.converter.addr4, 1234, "whole", "010522631502000004081e00" "f002010207d06c63"], 1234)
        report = Report(lab)
        equal((report.status, report.bad()), (OK, []), "when all is well")
        lab.wifi.set("a-to-b", max_size=1450)
        report = Report(lab)
        equal((report.status, report.bad()), (DEGRADED, [("path.mtu", "warn")]), "black hole")
        check(1450 in [fact["value"] for fact in report.all("path.mtu")], report.all("path.mtu"))


# --- routes and firewalls -------------------------------------------------------------------------


@long
@waits
def test_routes_of_the_second_network():
    """Each part of the routes is missing once; "--fix=run" adds it, and says that all is well."""
    with two_networks(lte=Veth(), core=None) as lab:
        lab.converter.sysctl("net.ipv4.conf.all.arp_ignore", 1)  # no ARP replies for another network's address
        lab.client.ip("route del default dev lte")
        patient = Patient(lab)
        patient.says(OK)
        for missing in (["rule del from 10.2.0.2"], ["route del default table 102"], ["rule del from 10.2.0.2", "route flush table 102"]):
            lab.client.ip(*missing)
            report = patient.says(DEGRADED, ("path", "warn"), cause="no route to it over lte")
            said = lab.client.run([lab.build.program("convertize"), "check", "--fix", "--converter", lab.converter.addr4, "--timeout", 1],
                                  env={"CONVERT_BESIDE_VPN": "1"}, check=False)
            equal(said.stdout.splitlines()[-1 - report.remedies()[0].count("&&"):], report.remedies()[0].split(" && "), "what --fix prints")
            fixed = Report(lab, "--fix=run")
            equal((fixed.status, fixed.bad(), [ran["status"] for ran in fixed.whole["ran"]]),
                  (OK, [], [0] * (1 + report.remedies()[0].count("&&"))), "after --fix=run without %s" % missing)
            # for the next one, all in one table again
            lab.client.run(["sh", "-c", "ip rule del from 10.2.0.2; ip route flush table 103; ip route replace default via 10.2.0.1 dev lte table 102; "
                                        "ip rule add from 10.2.0.2 table 102"])


@long
@waits
def test_routes_that_lead_nowhere():
    """A router that isn't there, a strict reverse path filter without a rule, an endpoint that leaves by the first network."""
    with two_networks(lte=Veth(), core=None) as lab:
        lab.converter.sysctl("net.ipv4.conf.all.arp_ignore", 1)
        patient = Patient(lab)
        lab.client.ip("route replace default via 10.2.0.99 dev lte table 102")
        patient.is_cured_by(patient.says(DEGRADED, ("path", "warn"), cause="the router of its route, 10.2.0.99, does not answer there"))
        lab.client.sysctl("net.ipv4.conf.all.rp_filter", 1)
        patient.says(OK)
        lab.client.ip("rule del from 10.2.0.2")
        patient.is_cured_by(patient.says(DEGRADED, ("path", "warn"), cause="rp_filter = 1"))
        lab.client.sysctl("net.ipv4.conf.all.rp_filter", 0)
        lab.client.ip("rule del from 10.2.0.2", "mptcp endpoint flush", "mptcp endpoint add 10.2.0.2 subflow",
                      "mptcp endpoint add fd02::2 dev lte subflow")
        patient.is_cured_by(patient.says(DEGRADED, ("path", "warn"), cause="leave by another network"))


@long
@waits
def test_loss_is_no_fault():
    """Both networks lose 3% of packets: the doctor concludes nothing from a lost one."""
    with two_networks(wifi=Link(delay_ms=5, loss=0.03), lte=Link(delay_ms=10, loss=0.03)) as lab:
        patient = Patient(lab)
        for _ in range(5):
            patient.says(OK)


@long
@waits
def test_firewalls():
    """A network that drops one port has a firewall, not a wrong route; if connections take that network, the remedy leads around it."""
    with two_networks() as lab:
        patient = Patient(lab)
        lab.lte.set("a-to-b", drop_port=1234)
        report = patient.says(DEGRADED, ("path", "warn"), cause="a firewall on the way drops TCP to port 1234")
        check("route" not in report.remedies()[0] and "rule" not in report.remedies()[0], report.remedies())
        lab.lte.down()
        patient.says(DEGRADED, ("path", "warn"), cause="no answer over lte, though packets leave there")
        lab.lte.up()
        lab.lte.set(drop_port=0)
        lab.wifi.set("a-to-b", drop_port=1234)
        report = patient.says(FAILED, ("converter", "fail"), cause="over wifi, which connections take, though it answers over lte")
        patient.apply(report.remedies()[0])
        patient.says(DEGRADED, ("path", "warn"), cause="no answer over wifi, though its host answers there")
        lab.lte.set("a-to-b", drop_port=1234)
        patient.says(FAILED, ("converter", "fail"), cause="nothing comes back for 1 s, though its host answers at another port",
                     words=ONE_SECOND)
        lab.lte.set(drop_port=0)
        lab.wifi.set(drop_port=0)
        patient.says(OK)


def test_endpoints_are_missing():
    with two_networks() as lab:
        patient = Patient(lab)
        lab.client.ip("mptcp endpoint flush", "mptcp limits set subflows 0")
        fixed = Report(lab, "--fix=run")
        equal((fixed.status, fixed.bad(), len(fixed.whole["ran"])), (OK, [], 3), "after --fix=run")
        equal(fixed.one("paths")["value"], 2, "paths")
        patient.says(OK)


def test_nothing_leaves_a_vpn():
    """
    Wifi, a TUN device, counts as a VPN that takes all traffic, working or silent: the doctor proposes no command for LTE but to remove its
    endpoints, and sends nothing there. If the user allows connections beside the VPN, it proposes the usual commands.
    """
    inside, beside = {"CONVERT_BESIDE_VPN": "0"}, {"CONVERT_BESIDE_VPN": "1"}
    with two_networks(lte=Veth()) as lab:
        patient = Patient(lab)

        def sent():
            """Returns the counter of TCP packets: neighbour discovery and multicast groups have other causes."""
            return lab.client.run(["nft", "list chain inet seen out"]).stdout

        def routes_now():
            return lab.client.run(["sh", "-c", "ip route show table all; ip -6 route show table all"]).stdout

        lab.client.run(["nft", "add table inet seen; add chain inet seen out { type filter hook output priority 0; };"
                        "add rule inet seen out oifname lte meta l4proto tcp counter"])
        report = Report(lab, env=inside)
        equal((report.bad(), report.one("network.vpn")["value"]), ([("network.endpoint", "warn")] * 2, "wifi"), "endpoints beside the VPN")
        for remedy in report.remedies():
            patient.apply(remedy)
        for silent in (False, True):
            if silent:
                lab.wifi.down()
            before, routes = sent(), routes_now()
            report = Report(lab, "--fix=run", env=inside)
            equal(report.status, FAILED if silent else OK, "status, silent: %s" % silent)
            equal(report.whole.get("ran", []), [], "commands run, silent: %s" % silent)
            check("lte" not in "".join(report.remedies()), report.remedies())
            equal(routes_now(), routes, "routes")
            check("lte" not in lab.client.run(["ip", "mptcp", "endpoint"]).stdout, "endpoints")
            equal(sent(), before, "packets sent by lte, silent: %s" % silent)
        lab.wifi.up()
        report = Report(lab, "--fix=run", env=beside)
        equal((report.status, len(report.whole["ran"])), (OK, 2), "beside the VPN")


def test_fixing_needs_a_privilege():
    """Without the privilege --fix=run changes nothing, and says so."""
    with two_networks() as lab:
        lab.convertd()
        lab.client.ip("mptcp limits set subflows 0")
        said = lab.client.run([*WITHOUT_NET_ADMIN, lab.build.program("convertize"), "check", "--fix=run", "--converter",
                               lab.converter.addr4, "--timeout", 1], env={"CONVERT_BESIDE_VPN": "1"}, check=False)
        equal(said.returncode, DEGRADED, "status")
        for line in ("+ ip mptcp limits set subflows 1", "# status 2"):
            check(line in said.stdout, said.stdout)
        equal(said.stdout.splitlines()[-1], "ip mptcp limits set subflows 1", "the last line, which is still to be done")
        result = lab.client.run([lab.build.program("convertize"), "check", "--fix=walk"], env={"CONVERT_ADDR": "192.0.2.1"}, check=False)
        equal((result.returncode, result.stdout), (2, ""), "--fix=walk")
        check("--fix=walk" in result.stderr, result.stderr)


def test_fixing_as_an_ordinary_user():
    """An ordinary user reads why the commands failed, and at the end which ones to enter as root: sudo would lose the user's settings."""
    if sandbox.in_user_namespace():
        raise Unsuitable("in a user namespace of an ordinary user there is only one user; run it as root")
    with two_networks() as lab:
        lab.convertd()
        lab.client.ip("mptcp limits set subflows 0")
        place = os.path.join("/run/convertlab", "fix")
        os.mkdir(place)
        program = shutil.copy(lab.build.program("convertize"), place)
        library = shutil.copy(lab.build.shim, place)
        said = lab.client.run(["setpriv", "--reuid=%d" % NOBODY, "--regid=%d" % NOBODY, "--clear-groups", program, "check", "--fix=run",
                               "--library", library, "--timeout", 1], check=False,
                              env={"CONVERT_ADDR": lab.converter.addr4, "CONVERT_BESIDE_VPN": "1", "CONVERT_CACHE": "none"})
        equal(said.returncode, DEGRADED, "status")
        for line in ("# status 2: it needs root; the end of this output has the commands to enter as root", "# here, as root:"):
            check(line in said.stdout.splitlines(), said.stdout)
        equal(said.stdout.splitlines()[-1], "ip mptcp limits set subflows 1", "the last line, which is still to be done")
        shutil.rmtree(place)


def test_names_of_devices_are_quoted():
    """Remedies quote the name of a device, which may have almost any characters."""
    name = "l;t$e'x"
    with two_networks(lte=Veth()) as lab:
        patient = Patient(lab)
        lab.client.run(["sh", "-c", "ip mptcp endpoint flush; ip link set lte down; ip link set lte name \"$1\"; ip link set \"$1\" up; "
                                    "ip route add default via 10.2.0.1 dev \"$1\" table 102", "sh", name])
        report = Report(lab)
        patient.apply(report.remedies()[0])
        equal(Report(lab).one("paths")["value"], 2, "paths after %s" % report.remedies()[0])


if __name__ == "__main__":
    main()
