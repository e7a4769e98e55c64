#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertize_check.py - the doctor: its facts about kernels, addresses, paths and converters, and its remedies"""
import json
import os
import shutil
import socket

from convertlab import Lab, Link, Unsuitable, between, check, equal, kernel, long, main, sandbox, wait_until, waits

SCRIPTED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scripted_converter.py")
NOBODY = 65534
OK, FAILED, USAGE, DEGRADED = 0, 1, 2, 3  # exit statuses
NEWER_KERNEL = "upgrade to Linux 6.2 or newer"  # the remedy where Multipath TCP has no Fast Open
ONE_SECOND = ("--timeout", "1")  # of Report, for a test of silence itself: in the others a converter on a busy machine has more time
RESULTS = {OK: "ok", FAILED: "failed", DEGRADED: "degraded"}


class Report:
    """
    The output of one "convertize check --json", and its exit_status. On a kernel without Fast Open for Multipath TCP each has a warning
    about that, which test_without_fastopen.py tests: status and bad() leave it out, so that other tests are the same on each kernel.
    """

    def __init__(self, lab, *words, converter=None, program=None, wrapper=(), env=None):
        command = [*wrapper, program or lab.build.program("convertize"), "check", "--json", "--converter",
                   converter or lab.converter.addr4, "--timeout", "5", *words]
        # without what programs outside of the lab have learned
        env = dict(env or {})
        env.setdefault("CONVERT_BESIDE_VPN", "1")  # linkem's links are TUN devices, and so are VPNs
        if "XDG_RUNTIME_DIR" not in env:
            env.setdefault("CONVERT_CACHE", "none")
        result = lab.client.run(command, env=env, check=False)
        equal(result.stderr, "", "standard error of " + " ".join(map(str, command)))
        self.status = self.exit_status = result.returncode
        self.whole = json.loads(result.stdout)
        equal(self.whole["result"], RESULTS[self.status], "the result with status %d" % self.status)
        self.facts = self.whole["facts"]
        if self.status == DEGRADED and not self.bad():
            self.status = OK
        for fact in self.facts:
            check(set(fact) <= {"name", "status", "about", "value", "text", "remedy"}, fact)
            check(fact["status"] in ("ok", "note", "warn", "fail"), fact)

    def all(self, name):
        """Returns the facts of this name."""
        return [fact for fact in self.facts if fact["name"] == name]

    def one(self, name):
        """Returns the only fact of this name."""
        fact, = self.all(name)
        return fact

    def _bad_facts(self):
        lacking = not kernel.has("fastopen")
        return [fact for fact in self.facts if fact["status"] in ("warn", "fail") and
                not (lacking and fact["name"] == "kernel.syn_data" and fact["remedy"] == NEWER_KERNEL)]

    def bad(self):
        """Returns [(name, status), …] of the facts that warn or fail."""
        return [(fact["name"], fact["status"]) for fact in self._bad_facts()]

    def remedies(self):
        """Returns their remedies."""
        return [fact["remedy"] for fact in self._bad_facts()]


def near(**options):
    """Returns a lab with one network, whose links have no limits."""
    return Lab(wifi=Link(delay_ms=5), lte=None, core=Link(delay_ms=1), **options)


def scripted(lab, script, *response, port=1234):
    """Starts scripted_converter.py on the converter's IPv4 address."""
    return lab.start_listening(lab.converter, ["python3", SCRIPTED, lab.converter.addr4, port, script, *response], port,
                               name="scripted")


def apply_remedy(lab, remedy):
    """Runs a remedy, which must be a command of sysctl or ip mptcp, on the client."""
    words = remedy.split()
    if words[:2] == ["sysctl", "-w"]:
        name, value = words[2].split("=")
        lab.client.sysctl(name, value)
        return
    equal(words[:2], ["ip", "mptcp"], "the command in \"%s\"" % remedy)
    lab.client.run(words)


def test_all_is_well():
    with Lab(wifi=Link(delay_ms=10), lte=Link(delay_ms=25), core=Link()) as lab:
        lab.convertd()
        both = "%s,%s" % (lab.converter.addr4, lab.converter.addr6)
        report = Report(lab, "sh", converter=both)
        equal((report.status, report.bad()), (OK, []), "the result")
        for name, value in (("kernel.mptcp", True), ("kernel.syn_data", kernel.has("fastopen")), ("network.interfaces", 2), ("program", "works"),
                            ("library", os.path.realpath(lab.build.shim)), ("network.subflow_limit", 2)):
            equal(report.one(name)["value"], value, name)
        converters = ["%s:1234" % lab.converter.addr4, "[%s]:1234" % lab.converter.addr6]
        for name, value in (("converter", "answered"), ("converter.syn_data", kernel.has("fastopen")), ("converter.mptcp", True),
                            ("converter.supports", [4, 8, 30]), ("path", True)):
            equal([(fact["about"], fact["value"]) for fact in report.all(name)], [(about, value) for about in converters], name)
        for fact in report.all("converter.round_trip_ms"):
            check(fact["value"] >= 20, fact)  # test_times.py measures the maximum
        equal(sorted(fact["value"] for fact in report.all("network.endpoint")),
              sorted([lab.client.wifi4, lab.client.wifi6, lab.client.lte4, lab.client.lte6]), "endpoints")
        # the output for people has a line for each fact
        result = lab.client.run([lab.build.program("convertize"), "check", "sh", "--converter", both],
                                env={"CONVERT_CACHE": "none", "CONVERT_BESIDE_VPN": "1"}, check=False)
        equal(result.returncode, report.exit_status, "its status")
        said = result.stdout.splitlines()
        equal(len(said), len(report.facts) + 1, "lines")
        equal(said[-1], "ok: connections are converted" if kernel.has("fastopen") else
              "degraded: connections are converted, but not as well as they could be", "the last line")
        for line, fact in zip(said, report.facts):
            check(line.startswith(fact["status"] + " "), "%s: %s" % (line, fact))
            check("answers after" in line or "ms" in line or fact["text"] in line, "%s: %s" % (line, fact))


def test_an_ordinary_user():
    """The check needs no privilege."""
    if sandbox.in_user_namespace():
        raise Unsuitable("in a user namespace of an ordinary user there is only one user; run it as root")
    with near() as lab:
        lab.convertd()
        place = os.path.join("/run/convertlab", "check")
        os.mkdir(place)
        program = shutil.copy(lab.build.program("convertize"), place)
        library = shutil.copy(lab.build.shim, place)
        user = ["setpriv", "--reuid=%d" % NOBODY, "--regid=%d" % NOBODY, "--clear-groups"]
        report = Report(lab, "--library", library, program=program, wrapper=user)
        equal((report.status, report.bad()), (OK, []), "the result")
        equal(report.one("network.subflow_limit")["value"], 1, "the limit")
        shutil.rmtree(place)


def test_programs():
    """A program that can't be converted is a failure; the doctor says of it what the launcher says (test_convertize.py)."""
    with near() as lab:
        lab.convertd()
        for program, value, status in (("sh", "works", OK), ("no-such-command", "missing", FAILED), (lab.directory, "missing", FAILED)):
            report = Report(lab, program)
            equal((report.status, report.one("program")["value"]), (status, value), program)
            equal("remedy" in report.one("program"), status == FAILED, "a remedy for " + program)
        script = os.path.join(lab.directory, "script")
        with open(script, "w", encoding="utf-8") as file:
            file.write("#!/nonexistent/x \xff\n")
        os.chmod(script, 0o755)
        report = Report(lab, script)
        equal((report.status, report.one("program")["value"]), (FAILED, "no-interpreter"), script)
        strange = os.path.join(lab.directory.encode(), b"\xff\xfe\n\"\\")
        os.rename(script, strange)
        check("\ufffd\ufffd\n\"\\" in Report(lab, os.fsdecode(strange)).one("program")["text"], "a name that isn't UTF-8")
        report = Report(lab, "--library", "/nonexistent.so")
        equal((report.status, report.one("library")["status"]), (FAILED, "fail"), "without a library")


@kernel.needs("fastopen")
def test_kernel_settings_and_their_remedies():
    with near() as lab:
        lab.convertd()
        for sysctl, value, name in (("net.mptcp.enabled", 0, "kernel.mptcp"), ("net.ipv4.tcp_fastopen", 0, "kernel.syn_data"),
                                    ("net.ipv4.tcp_fastopen", 2, "kernel.syn_data")):
            lab.client.sysctl(sysctl, value)
            report = Report(lab)
            equal((report.status, report.bad()), (DEGRADED, [(name, "warn")]), sysctl)
            equal(report.one(name)["value"], False, name)
            apply_remedy(lab, report.one(name)["remedy"])
            equal(Report(lab).bad(), [], "after " + report.one(name)["remedy"])
            equal(lab.client.sysctl(sysctl), str(value | 1), sysctl)
        lab.client.sysctl("net.mptcp.blackhole_timeout", 0)
        equal(Report(lab).one("kernel.mptcp_blackhole")["status"], "ok", "net.mptcp.blackhole_timeout=0")
        # a path manager of the user's own
        lab.client.sysctl("net.mptcp.pm_type", 1)
        report = Report(lab)
        equal((report.one("network.path_manager")["status"], report.all("network.endpoint")), ("note", []), "mptcpd's")


@long
@waits
@kernel.needs("blackhole")
def test_lost_syns_switch_mptcp_off():
    """After lost SYNs, Linux from 6.12 on leaves MPTCP out of all SYNs for an hour; the check says so, and its remedy ends that."""
    with near() as lab:
        lab.convertd()
        lab.wifi.down()
        # a check gives up before its third SYN, so that it switches nothing off itself
        equal(Report(lab, "--timeout", "10").one("converter")["value"], "no-syn-ack", "with the network down")
        equal(lab.client.counters()["MPTcpExtBlackhole"], 0, "times that MPTCP was switched off")
        before = lab.client.counters()["TcpExtTCPSynRetrans"]
        client = lab.client.socket(protocol=socket.IPPROTO_MPTCP)
        client.setblocking(False)
        client.connect_ex((lab.converter.addr4, 1234))
        # three SYNs; the fourth is the first without MP_CAPABLE, and gets an answer
        wait_until(lambda: lab.client.counters()["TcpExtTCPSynRetrans"] == before + 2, 10, "three SYNs")
        lab.wifi.up()
        wait_until(lambda: lab.client.counters()["MPTcpExtBlackhole"], 10, "MPTCP to be switched off")
        client.close()
        report = Report(lab)
        equal(report.bad(), [("kernel.mptcp_blackhole", "warn")], "what is wrong")
        equal(report.one("kernel.mptcp_blackhole")["value"], True, "switched off")
        equal(report.one("converter.mptcp")["status"], "note", "the converter's fact, which isn't the cause")
        check("did not offer" in report.one("converter.mptcp")["text"], report.facts)
        apply_remedy(lab, report.one("kernel.mptcp_blackhole")["remedy"])
        equal(Report(lab).bad(), [], "after the remedy")


def test_endpoints_and_limits():
    """The doctor prints the commands that add missing endpoints and limits, word by word."""
    with Lab(wifi=Link(delay_ms=5), lte=Link(delay_ms=5), core=Link(delay_ms=1)) as lab:
        lab.convertd()
        lab.client.ip("mptcp endpoint flush", "mptcp limits set subflows 0")
        report = Report(lab)
        equal((report.status, report.remedies()),
              (DEGRADED, ["ip mptcp endpoint add %s dev lte subflow" % lab.client.lte4,
                          "ip mptcp endpoint add %s dev lte subflow" % lab.client.lte6, "ip mptcp limits set subflows 1"]),
              "remedies")
        for remedy in report.remedies():
            apply_remedy(lab, remedy)
        report = Report(lab)
        equal((report.status, report.bad()), (OK, []), "after them")
        equal(report.one("path")["value"], True, "the second path")
        # an endpoint without "subflow" makes no path to a converter without other addresses
        lab.client.ip("mptcp endpoint flush", "mptcp endpoint add %s dev lte id 66 fullmesh" % lab.client.lte4,
                      "mptcp endpoint add %s dev lte subflow fullmesh" % lab.client.lte6)
        report = Report(lab)
        equal(report.remedies(), ["ip mptcp endpoint delete id 66 && ip mptcp endpoint add %s dev lte subflow fullmesh"
                                  % lab.client.lte4], "remedies")
        for command in report.remedies()[0].split(" && "):
            apply_remedy(lab, command)
        report = Report(lab)
        equal((report.status, report.bad()), (OK, []), "after that")
        # an endpoint with an address that this host doesn't have any more
        lab.client.ip("mptcp endpoint add 10.99.0.1 id 77 subflow")
        equal(Report(lab).remedies(), ["ip mptcp endpoint delete id 77"], "remedies")
        apply_remedy(lab, "ip mptcp endpoint delete id 77")
        # devices without a default route don't count; nor do endpoints that are only announced
        lab.client.ip("link add docker0 type veth peer name inside", "link set inside up", "link set docker0 up",
                      "addr add 172.17.0.1/16 dev docker0", "mptcp endpoint add 172.17.0.1 signal")
        report = Report(lab)
        equal((report.status, report.one("network.interfaces")["value"]), (OK, 2), "with a bridge")
        lab.lte.down()
        report = Report(lab)
        equal((report.bad(), report.one("path")["value"]), ([("path", "warn")], False), "with a path that is dead")
        check("over lte" in report.one("path")["text"], report.one("path"))


def test_one_network_and_none():
    with near() as lab:
        lab.convertd()
        lab.client.ip("mptcp endpoint flush", "mptcp limits set subflows 0")
        report = Report(lab)
        equal((report.status, report.one("network.interfaces")["status"]), (OK, "note"), "one network")
        lab.client.ip("link set wifi down")
        report = Report(lab)
        equal(report.bad(), [("network.interfaces", "fail"), ("converter", "fail")], "without a network")
        equal(report.one("converter")["value"], "unreachable", "the outcome")
        check("this machine has no IPv4 network" in report.one("converter")["text"], report.one("converter"))


@long
@waits
def test_converters_that_do_not_answer():
    """Each gets a line with the reason."""
    with near() as lab:
        lab.greeter(port=25)
        lab.resetter(port=7777)
        lab.serve("echo", 7)
        for converter, value, words in (
                (lab.converter.addr4, "unreachable", "Connection refused"),
                (lab.addresses.unreachable4, "unreachable", "No route to host"),
                ("[%s]" % lab.addresses.prohibited6, "unreachable", "Permission denied"),
                (lab.addresses.blackhole4, "no-syn-ack", "nothing comes back for 1 s"),
                (lab.server.addr4 + ":25", "not-convert", "(wrong magic number: \"220 lab ready..\")"),
                (lab.server.addr4 + ":7777", "reset", "resets"),
                # an Info TLV isn't an answer to itself
                ("[%s]:7" % lab.server.addr6, "not-convert", "TLV that only the other peer may send")):
            report = Report(lab, *(ONE_SECOND if value == "no-syn-ack" else ()), converter=converter)
            fact = report.one("converter")
            equal((report.status, fact["status"], fact["value"]), (FAILED, "fail", value), converter)
            check(words in fact["text"], fact)
        # a resolver asks no server for a name with two dots
        report = Report(lab, converter="no..name")
        equal((report.status, report.bad()), (FAILED, [("converter.name", "warn"), ("converter", "fail")]), "no..name")
        result = lab.client.run([lab.build.program("convertize"), "check", "--json"], check=False)
        equal((result.returncode, json.loads(result.stdout)["facts"][-1]["status"]), (FAILED, "fail"), "without a converter")


def test_one_converter_of_several():
    """One converter that works is enough; the others' faults are warnings."""
    with near() as lab:
        lab.convertd()
        report = Report(lab, converter="%s:99,localhost:99" % lab.converter.addr4, *["--converter", lab.converter.addr6])
        equal(report.status, DEGRADED, "status")
        equal({(fact["about"], fact["status"], fact["value"]) for fact in report.all("converter")} -
              {("[::1]:99 (localhost)", "warn", "unreachable")},
              {("%s:99" % lab.converter.addr4, "warn", "unreachable"), ("127.0.0.1:99 (localhost)", "warn", "unreachable"),
               ("[%s]:1234" % lab.converter.addr6, "ok", "answered")}, "converters")


def test_converters_by_name():
    """The doctor finds them as libconvert.so does: both addresses of a name, and the targets of a service, each with its port."""
    with near() as lab:
        lab.convertd()
        lab.convertd(["--listen", "[::]:99"], port=99)
        lab.names("one.example A " + lab.converter.addr4, "one.example AAAA " + lab.converter.addr6,
                  "_convert._tcp.lab.example SRV 10 0 99 one.example", "_convert._tcp.lab.example SRV 20 0 1234 one.example")
        for name, port in (("one.example", 1234), ("_convert._tcp.lab.example", 99)):
            report = Report(lab, converter=name)
            equal(report.status, OK, name)
            abouts = [fact["about"] for fact in report.all("converter")]
            equal(sorted(abouts[:2]), sorted(["%s:%d (%s)" % (lab.converter.addr4, port, name),
                                              "[%s]:%d (%s)" % (lab.converter.addr6, port, name)]), "addresses")
        equal(len(abouts), 4, "addresses of the service")
        report = Report(lab, converter="none.example,one.example")
        equal((report.status, report.bad()), (DEGRADED, [("converter.name", "warn")]), "a name that isn't there")


def test_converter_that_rests():
    """Programs have learned that the converter fails: it works again, but they connect directly for a while, of which the doctor warns."""
    with near() as lab:
        place = os.path.join(lab.directory, "runtime")
        os.mkdir(place, 0o700)
        lab.echo()
        connect = "import socket, sys; socket.create_connection((sys.argv[1], 7))"
        lab.client.run(["python3", "-c", connect, lab.server.addr4], env=lab.converted(XDG_RUNTIME_DIR=place))
        check("direct" in lab.shim_log(), lab.shim_log())
        lab.convertd()
        report = Report(lab, env={"XDG_RUNTIME_DIR": place})
        equal((report.status, report.bad()), (DEGRADED, [("converter.rest_s", "warn")]), "the result")
        between(report.one("converter.rest_s")["value"], 1, 30, "seconds")
        os.unlink(report.one("converter.rest_s")["remedy"].split(" rm ")[1])
        equal(Report(lab, env={"XDG_RUNTIME_DIR": place}).bad(), [], "after the remedy")
        equal(os.listdir(place), [], "files that a check has left there")


ANSWERS = (  # script, response, status, value of "converter", words in its text
    ("silent", None, FAILED, "silent", "says nothing for 1 s"),
    ("close", None, FAILED, "closed", "closes"),
    ("truncate:7", "0102226315010408", FAILED, "closed", "closes"),
    ("whole", "01002263", FAILED, "not-convert", "Total Length is 0"),
    ("whole", "010322631502000004081e00", DEGRADED, "answered", "answers after"),  # converter.windows
    ("whole", "010522631502000004081e00" "f002010207d06c63", OK, "answered", "answers after"),
    ("bytewise", "010522631502000004081e00" "f002010207d06c63", OK, "answered", "answers after"),
    ("whole", "010222631e010000", FAILED, "Unsupported Version", "error 0"),
    ("whole", "010222631e010100", DEGRADED, "Malformed Message", "doesn't say what it supports"),
    ("whole", "010222631e010200", DEGRADED, "Unsupported Message", "doesn't say what it supports"),
    ("whole", "010222631e010300", FAILED, "Missing Cookie", "wants a cookie"),
    ("whole", "010222631e012000", FAILED, "Not Authorized", "refuses this client"),
    ("whole", "010222631e01401e", FAILED, "Resource Exceeded", "no resources"),
    ("whole", "010222631e014100", FAILED, "Network Failure", "trouble"),
    ("whole", "010222631e01c800", FAILED, "unknown", "error 200"),
)


def test_answers():
    with near() as lab:
        for port, (script, response, status, value, words) in enumerate(ANSWERS, 2000):
            process = scripted(lab, script, *([response] if response else []), port=port)
            report = Report(lab, "--port", port, *(ONE_SECOND if script == "silent" else ()))
            fact = report.one("converter")
            equal((report.status, fact["value"]), (status, value), "%s %s" % (script, response))
            check(words in fact["text"], fact)
            check("request 01022263" "01010000" in process.log_text(), process.log_text())
            # a converter that doesn't serve has no other fault; of one that does, only the windows may be one
            equal(report.bad(), {OK: [], FAILED: [("converter", "fail")], DEGRADED: [("converter.windows", "warn")]}[status],
                  "%s %s" % (script, response))


def test_unknown_tlvs():
    """The doctor lists private TLVs, and those of a later protocol, but they are no fault."""
    with near() as lab:
        scripted(lab, "whole", "01092263" "1502000004001e00" "c8020000deadbeef" "2a010000" "ff010000" "f002010207d06c63")
        report = Report(lab)
        equal((report.status, report.one("converter.supports")["value"]), (OK, [4, 0, 30]), "what it supports")
        equal((report.one("converter.unknown_tlvs")["value"], report.one("converter.unknown_tlvs")["status"]),
              ([200, 42, 255], "note"), "TLVs")


def test_withholding():
    """doc/private-tlvs.md: the converter says that it withholds SYNs, or doesn't, or says nothing; and whether it corrects windows."""
    with near() as lab:
        for port, (tlv, words, facts, windows) in enumerate((("f002010307d06c63", "05", [(True, "ok")], True),
                                                             ("f002010107d06c63", "05", [(True, "ok")], True),
                                                             ("f002010507d06c63", "05", [(True, "ok")], False),
                                                             ("f002010207d06c63", "05", [(False, "note")], True),
                                                             ("f002010007d06c63", "05", [(False, "note")], False),
                                                             ("", "03", [], False)), 3000):
            scripted(lab, "whole", "01%s2263" % words + "1502000004001e00" + tlv, port=port)
            report = Report(lab, "--port", port)
            equal([(fact["value"], fact["status"]) for fact in report.all("converter.withholds")], facts, tlv)
            equal((report.status, report.all("converter.unknown_tlvs")), (OK if windows else DEGRADED, []), tlv)
            # a client whose SYN's window is corrected isn't flooded (doc/decisions.md); without that, the doctor warns
            equal(report.one("converter.windows")["value"], windows, tlv)
            equal(report.bad(), [] if windows else [("converter.windows", "warn")], tlv)


def test_cookies():
    """The doctor sends a configured cookie, and uses one that the converter gives it."""
    cookie = "00112233aabbccdd"
    with near() as lab:
        process = scripted(lab, "cookie", cookie)
        report = Report(lab)
        equal((report.one("converter.cookie")["status"], process.log_text().count("request 01022263")), ("note", 1),
              "a cookie that is given")
        for line in process.log_text().splitlines()[2:]:
            check("request" not in line or "1603" "0000" + cookie in line, process.log_text())
    with near() as lab:
        process = scripted(lab, "whole", "010222631e012000")
        Report(lab, "--cookie", "seven-8")
        check("01052263" "01010000" "16030000" + b"seven-8\0".hex() in process.log_text(), process.log_text())


@kernel.needs("fastopen")
def test_data_in_the_syn_is_not_taken():
    """The doctor warns, and still finds Multipath TCP, without data in SYNs; whether path or converter is the cause doesn't show."""
    for options in ({"wifi": Link(delay_ms=5, strip_syn_data=True)}, {"converter_fastopen": 1}):
        with Lab(**{"wifi": Link(delay_ms=5), "lte": None, "core": None, **options}) as lab:
            lab.convertd()
            report = Report(lab)
            equal((report.status, report.bad()), (DEGRADED, [("converter.syn_data", "warn")]), options)
            equal((report.one("converter.syn_data")["value"], report.one("converter.mptcp")["value"]), (False, True), options)


def test_mptcp_is_stripped_on_the_way():
    with Lab(wifi=Link(delay_ms=5, strip_mptcp=True), lte=Link(delay_ms=5), core=None) as lab:
        lab.convertd()
        report = Report(lab)
        equal((report.status, report.bad()), (DEGRADED, [("converter.mptcp", "warn")]), "over wifi")
        check("though the converter has it" in report.one("converter.mptcp")["text"], report.facts)
        equal((report.one("converter.syn_data")["value"], report.one("path")["value"]), (kernel.has("fastopen"), True), "the rest")
        lab.wifi.set(strip_mptcp=False)
        lab.lte.set(strip_mptcp=True)
        report = Report(lab)
        equal((report.status, report.bad()), (DEGRADED, [("path", "warn")]), "over lte")
    with near() as lab:
        lab.converter.sysctl("net.mptcp.enabled", 0)
        lab.convertd()
        report = Report(lab)
        equal(report.bad(), [("converter.mptcp", "warn")], "a converter without MPTCP")
        check("or is off at the converter" in report.one("converter.mptcp")["text"], report.facts)


BAD = (
    (["--force"], "--force has no meaning"), (["--timeout", "0"], "--timeout: \"0\""), (["--timeout", "3601"], "\"3601\""),
    (["--timeout", "1s"], "\"1s\""), (["--timeout", "nan"], "\"nan\""),
    (["sh", "-c"], "-c: no such option"), (["sh", "true"], "\"true\" is one word too many"), (["--port", "x"], "--port: \"x\""),
    (["--converter", "1.2.3"], "--converter: \"1.2.3\""), (["--bogus"], "--bogus"), (["--timeout"], "--timeout needs a value"),
)


def test_bad_options():
    """Status 2 and one line that quotes the bad input."""
    with near() as lab:
        for words, quoted in BAD:
            result = lab.client.run([lab.build.program("convertize"), "check", *words],
                                    env={"CONVERT_ADDR": lab.converter.addr4}, check=False)
            lines = result.stderr.splitlines()
            check(result.returncode == USAGE and len(lines) == 1 and lines[0].startswith("convertize: ") and quoted in lines[0],
                  "%s: %s" % (words, result))
            equal(result.stdout, "", "output")
        # a full disk isn't a success
        lab.convertd()
        command = "%s check %s --converter %s >/dev/full"
        for option in ("", "--json"):
            equal(lab.client.run(["sh", "-c", command % (lab.build.program("convertize"), option, lab.converter.addr4)],
                                 check=False).returncode, FAILED, "status")


if __name__ == "__main__":
    main()
