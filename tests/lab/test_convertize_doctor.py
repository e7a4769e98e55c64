#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertize_doctor.py - one thing is broken: the doctor names it and nothing else, and its remedy, as printed, cures it

Here SYNs and converters are broken, in test_convertize_paths.py sizes, routes and firewalls.
"""
import os
import shlex

from convertlab import Lab, Link, check, equal, kernel, long, main, waits
from test_convertize_check import DEGRADED, FAILED, OK, ONE_SECOND, Report

WITHOUT_NET_ADMIN = ["setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin"]
ON_THE_CONVERTER = "on the converter, "


def two_networks(**options):
    """Returns a lab with wifi, which connections take, and LTE."""
    return Lab(**{"wifi": Link(delay_ms=5), "lte": Link(delay_ms=10), "core": Link(delay_ms=1), **options})


class Patient:
    """A lab and its convertd, with the check, and the remedies for either."""

    def __init__(self, lab, *arguments, **options):
        self.lab = lab
        self._start = lambda: lab.convertd(arguments, **options)
        self.convertd = self._start()

    def _service(self, verb):
        """Does as systemctl would."""
        if verb == "restart":
            self.convertd.stop()
        self.convertd = self._start()

    def apply(self, remedy):
        """Runs the commands of a printed remedy, on the host that it names."""
        host = self.lab.converter if remedy.startswith(ON_THE_CONVERTER) else self.lab.client
        for command in remedy.removeprefix(ON_THE_CONVERTER).split("; ")[0].split(" && "):
            words = shlex.split(command)
            if words[0] == "systemctl":
                equal(words[2:], ["convertd"], command)
                self._service(words[1])
            else:
                check(words[0] in ("ip", "sysctl"), "the command in \"%s\"" % remedy)
                host.run(words)

    def says(self, status, *bad, cause="", words=(), converter=None, env=None):
        """Runs the check, and returns its Report. @bad: the (name, status) of all bad facts; cause: a part of the first one's text."""
        report = Report(self.lab, *words, converter=converter, env=env)
        equal((report.status, report.bad()), (status, list(bad)), "status and bad facts: %s" % report.facts)
        if bad:
            fact, = [fact for fact in report.all(bad[0][0]) if fact["status"] == bad[0][1]]
            check(cause in fact["text"], fact)
        return report

    def is_cured_by(self, report):
        """Applies the remedies of a report, and checks that all is well then."""
        for remedy in report.remedies():
            self.apply(remedy)
        self.says(OK)


# --- SYNs ---------------------------------------------------------------------------------------


@long
@waits
@kernel.needs("fastopen")
def test_large_syns_are_dropped():
    """SYNs with 8 bytes of data, as a request for information has, get through; those with 32, as for a server, don't."""
    with two_networks() as lab:
        patient = Patient(lab)
        for size, passed in ((72, 8), (90, 8)):
            lab.wifi.set("a-to-b", max_syn=size)
            report = patient.says(DEGRADED, ("converter.syn_data", "warn"), cause="with %d bytes of data over wifi, not" % passed)
            check("with 32" in report.one("converter.syn_data")["text"], report.one("converter.syn_data"))
            equal(report.one("converter.mptcp")["status"], "ok", "MPTCP over wifi with %d" % size)
            lab.lte.set("a-to-b", max_syn=size)
            patient.says(DEGRADED, ("converter.syn_data", "warn"), cause="with %d bytes of data, not" % passed)
            lab.wifi.set("a-to-b", max_syn=0)
            patient.says(DEGRADED, ("path.syn_data", "warn"), cause="over lte with 32 bytes of data, as a request has, get no answer")
            lab.lte.set("a-to-b", max_syn=0)
        lab.wifi.set("a-to-b", max_syn=70)
        patient.says(DEGRADED, ("converter.syn_data", "warn"), cause="SYNs without data over wifi, not")
        lab.wifi.set("a-to-b", max_syn=0)
        patient.says(OK)


@long
@waits
@kernel.needs("fastopen")
def test_full_syns_are_dropped():
    """Requests get through, and SYNs with early data don't: the doctor tells which sizes do."""
    with two_networks() as lab:
        patient = Patient(lab)
        for size, passed, lost in ((100, 32, 80), (600, 528, 784), (1400, 1040, 1420)):
            lab.wifi.set("a-to-b", max_syn=size)
            report = patient.says(DEGRADED, ("converter.syn_bytes", "warn"), cause="with %d bytes of data, not to those with %d" % (passed, lost))
            equal(report.one("converter.syn_bytes")["value"], passed, "the value")
        check("--early-data" not in report.remedies()[0], report.remedies())
        report = patient.says(DEGRADED, ("converter.syn_bytes", "warn"), words=["--early-data"])
        check("leave out --early-data" in report.remedies()[0], report.remedies())
        lab.lte.set("a-to-b", max_syn=700)
        patient.says(DEGRADED, ("converter.syn_bytes", "warn"))
        lab.wifi.set(max_syn=0)
        report = patient.says(DEGRADED, ("path.syn_bytes", "warn"), cause="over lte with 784 bytes of data get no answer, with 528 they do")
        lab.lte.set(max_syn=0)
        equal(patient.says(OK).one("converter.syn_bytes")["value"], 1420, "when all is well")


@kernel.needs("fastopen")
def test_data_in_syns_is_stripped():
    with two_networks() as lab:
        patient = Patient(lab)
        lab.wifi.set(strip_syn_data=True)
        patient.says(DEGRADED, ("converter.syn_data", "warn"), cause="though it does over lte")
        lab.lte.set(strip_syn_data=True)
        report = patient.says(DEGRADED, ("converter.syn_data", "warn"), cause="did not take")
        check(report.remedies()[0].endswith("ask the operator of the network to let data in SYNs through"), report.remedies())
        lab.wifi.set(strip_syn_data=False)
        patient.says(DEGRADED, ("path.syn_data", "warn"), cause="over lte does not arrive")


@kernel.needs("fastopen")
def test_fast_open_is_off():
    """Fast Open is off at either end: each remedy is a command."""
    with two_networks(converter_fastopen=1) as lab:
        patient = Patient(lab)
        patient.is_cured_by(patient.says(DEGRADED, ("converter.syn_data", "warn"), cause="did not take the data"))
        lab.client.sysctl("net.ipv4.tcp_fastopen", 2)
        patient.is_cured_by(patient.says(DEGRADED, ("kernel.syn_data", "warn"), cause="off for clients"))


@long
@waits
@kernel.needs("blackhole")
@kernel.needs("fastopen")
def test_syns_with_mptcp_are_dropped():
    with two_networks() as lab:
        patient = Patient(lab)
        lab.wifi.set("a-to-b", drop_mptcp_syn=True)
        patient.says(DEGRADED, ("converter.mptcp", "warn"), cause="get no answer over wifi, those without do")
        lab.lte.set("a-to-b", drop_mptcp_syn=True)
        patient.says(DEGRADED, ("converter.mptcp", "warn"), cause="get no answer, those without do")
        lab.wifi.set("a-to-b", drop_mptcp_syn=False)
        patient.says(DEGRADED, ("path", "warn"), cause="get no answer over lte, those without do")
        equal(lab.client.counters()["MPTcpExtBlackhole"], 0, "times that a check has switched MPTCP off")


def test_mptcp_is_stripped():
    with two_networks() as lab:
        patient = Patient(lab)
        lab.wifi.set(strip_mptcp=True)
        patient.says(DEGRADED, ("converter.mptcp", "warn"), cause="does not get through over wifi, though")
        lab.lte.set(strip_mptcp=True)
        patient.says(DEGRADED, ("converter.mptcp", "warn"), cause="does not get through, though the converter has it")
        lab.wifi.set(strip_mptcp=False)
        patient.says(DEGRADED, ("path", "warn"), cause="does not get through over lte")


@long
@waits
def test_joins_are_dropped():
    """Each path works alone: only a connection over both shows the fault."""
    with two_networks() as lab:
        patient = Patient(lab)
        lab.lte.set("a-to-b", drop_join=True)
        report = patient.says(DEGRADED, ("paths", "warn"), cause="had 0 paths besides its first, and not 1")
        equal((report.one("path")["status"], report.one("paths")["value"]), ("ok", 1), "the path alone, and paths")
        lab.lte.set(drop_join=False)
        equal(patient.says(OK).one("paths")["value"], 2, "paths")


# --- converters -----------------------------------------------------------------------------------


def test_converter_without_mptcp():
    """convertd looks for Multipath TCP at its start only: the remedy restarts it."""
    with two_networks() as lab:
        lab.converter.sysctl("net.mptcp.enabled", 0)
        patient = Patient(lab)
        report = patient.says(DEGRADED, ("converter.mptcp", "warn"), cause="or is off at the converter")
        lab.converter.sysctl("net.mptcp.enabled", 1)
        patient.says(DEGRADED, ("converter.mptcp", "warn"), cause="or is off at the converter")
        lab.converter.sysctl("net.mptcp.enabled", 0)
        patient.is_cured_by(report)


def test_converter_without_privileges():
    """convertd without CAP_NET_ADMIN doesn't correct windows: the doctor tells the cost; CAP_NET_ADMIN cures it."""
    with two_networks() as lab:
        patient = Patient(lab, wrapper=WITHOUT_NET_ADMIN)
        report = patient.says(DEGRADED, ("converter.windows", "warn"), cause="one more round trip")
        check("CAP_NET_ADMIN" in report.remedies()[0], report.remedies())
        patient.convertd.stop()
        Patient(lab).says(OK)


def test_converter_refuses():
    """The doctor reports only the refusal, of the client or of its cookie."""
    with two_networks() as lab:
        patient = Patient(lab, "--allow-client", "fd00::/8", defaults=())
        report = patient.says(FAILED, ("converter", "fail"), cause="refuses this client (")
        words = report.remedies()[0].split("--allow-client ")[1].split(",")[0]
        equal(words, lab.client.wifi4, "the client that the remedy admits")
        patient.convertd.stop()
        patient = Patient(lab, "--allow-client", words, defaults=())
        report = patient.says(OK)
        # the client's address over LTE isn't admitted, and needn't be
        check("refuses connections that begin there" in report.one("path")["text"], report.one("path"))
        equal(report.one("paths")["value"], 2, "paths")
        patient.convertd.stop()
        path = os.path.join(lab.directory, "cookies")
        with open(path, "w", encoding="ascii") as file:
            file.write("right\n")
        os.chmod(path, 0o600)
        patient = Patient(lab, "--cookie-list", path)
        patient.says(FAILED, ("converter", "fail"), cause="refuses this client, or its cookie (", words=["--cookie", "wrong"])
        patient.says(FAILED, ("converter", "fail"), cause="refuses this client")
        patient.says(OK, words=["--cookie", "right"])
        patient.convertd.stop()
        key = os.path.join(lab.directory, "key")
        lab.converter.run([lab.build.program("convertd"), "--make-key", key])
        patient = Patient(lab, "--cookie-key", key)
        report = patient.says(FAILED, ("converter", "fail"), cause="refuses the cookie, and needs none", words=["--cookie", "wrong"])
        check("leave out --cookie" in report.remedies()[0], report.remedies())
        patient.says(OK)


@long
@waits
def test_converter_is_down():
    with two_networks() as lab:
        patient = Patient(lab)
        patient.convertd.stop()
        patient.is_cured_by(patient.says(FAILED, ("converter", "fail"), cause="Connection refused"))
        patient.convertd.stop()
        lab.converter.run(["ip", "route", "add", "blackhole", lab.client.wifi4])
        lab.wifi.down()
        lab.lte.down()
        patient.says(FAILED, ("converter", "fail"), cause="nothing comes back for 1 s", words=ONE_SECOND)


def test_limits_of_a_converter():
    """A check of two addresses over two networks, all with a fault, stays within convertd's default limits."""
    with two_networks() as lab:
        lab.convertd(["--allow-client", "::/0"], defaults=())
        lab.wifi.set(strip_mptcp=True)
        lab.lte.set(strip_mptcp=True)
        report = Report(lab, converter="%s,%s" % (lab.converter.addr4, lab.converter.addr6))
        equal((report.status, report.bad()), (DEGRADED, [("converter.mptcp", "warn")] * 2), "status and bad facts")


if __name__ == "__main__":
    main()
