#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_paths_service.py - "convertize paths" for an administrator: its errors, its configuration, its unit, and its output"""
import json
import os
import re
import shlex
import subprocess

from convertlab import Lab, Link, Veth, check, equal, long, main, patience, wait_until, waits
from convertlab.paths import DEVICES, PathManager, arrives, bare, carried, download, endpoints, ip, serve, state, subflows
from convertlab.systemd import PLACE, Systemd
from test_convertize_doctor import WITHOUT_NET_ADMIN
from test_metered import WITHOUT_NETLINK

NOBODY = 65534
# systemd counts as exposure: the host's network, Internet sockets, addresses without limits, one capability, and /proc; each systemd weighs
# a little differently
EXPOSURE_MAX = 1.9
# socket(AF_INET, …) fails with EAFNOSUPPORT.
WITHOUT_INTERNET = WITHOUT_NETLINK.replace("(0x15, 0, 1, 16)", "(0x15, 0, 1, 2)")


# --- errors --------------------------------------------------------------------------------------------


def test_errors_name_the_remedy():
    """No privilege, MPTCP switched off, another manager, wrong options."""
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
        check("sysctl -w net.mptcp.enabled=1" in fails("--manage", status=2), "MPTCP switched off: systemd doesn't start it again")
        lab.client.sysctl("net.mptcp.enabled", 1)
        check("--tables: \"250-260\" has tables that are the kernel's" in fails("--once", "--tables", "250-260", status=2), "--tables")
        check("CONVERTIZE_DEVICE: \"a/b\" isn't a device's name" in fails("--once", status=2, env={"CONVERTIZE_DEVICE": "a/b"}), "in the environment")
        check("exclude each other" in fails("--once", "--manage", status=2), "two at once")
        check("leave --dry-run out" in fails("--dry-run", status=2), "--dry-run alone")
        equal(state(lab), before, "the host after all these errors")
        with PathManager(lab):
            check("another one manages paths here already" in fails("--manage"), "two managers")
            check("another one" in fails("--remove"), "--remove beside a manager")
            lab.client.run([lab.build.program("convertize"), "paths", "--manage", "--dry-run", "--config", "none"])


def test_locks_of_other_users():
    """Other users can't stop the service by locking its files. It removes its files at its end, and those of namespaces that are gone."""
    with Lab(wifi=Veth(), lte=Veth(), core=None) as lab:
        bare(lab)
        with PathManager(lab, wrapper=["sh", "-c", "umask 077; exec \"$@\"", "sh"]) as manager:
            number = os.stat("/proc/%d/ns/net" % manager.process.pid).st_ino
            # a service under another user must be able to read the file of root's
            equal(os.stat("/run/convertize/paths-%d" % number).st_mode & 0o777, 0o644, "the file's mode, whatever the umask is")
            manager.process.kill()
            manager.process.wait()
            # a user who can open a file can lock it
            holders = [lab.client.popen(["setpriv", "--reuid", NOBODY, "--clear-groups", "flock", "/run/convertize/" + name, "sh", "-c",
                                         "echo held; read -r _"], name="holder", stdin=subprocess.PIPE)
                       for name in os.listdir("/run/convertize") if name.startswith("paths-%d" % number)]
            for holder in holders:
                wait_until(lambda h=holder: h.poll() is not None or "held" in h.log_text(), 10, "a lock, or none")
            manager.start()
            for holder in holders:
                holder.stdin.close()
                holder.wait()
            shown = lab.client.run(["setpriv", "--reuid", NOBODY, "--clear-groups", lab.build.program("convertize"), "paths", "--json",
                                    "--config", "none"], check=False).stdout
            check('"managed": true' in shown, shown)
            manager.stop()
            check('"managed": false' in lab.client.run([lab.build.program("convertize"), "paths", "--json", "--config", "none"],
                                                       check=False).stdout, "managed by nobody")
        # a namespace that has gone
        with open("/run/convertize/paths-4242", "w", encoding="ascii") as file:
            file.write("tables 1 2\n")
        with PathManager(lab) as manager:
            check("paths-4242" not in os.listdir("/run/convertize"), os.listdir("/run/convertize"))
            manager.stop()


def test_names_of_devices_in_a_terminal():
    """Names may contain any characters but blanks: none may become a command for a shell or a terminal."""
    with Lab(wifi=Veth(), lte=Veth(), core=None) as lab:
        bare(lab)
        name = "x;id>z\x1b[7m\a"
        lab.client.run(["ip", "link", "set", "lte", "down"])
        lab.client.run(["ip", "link", "set", "lte", "name", name])
        lab.client.run(["ip", "link", "set", name, "up"])
        lab.client.run(["ip", "route", "replace", "default", "via", "10.2.0.1", "dev", name, "metric", "200"])
        shown = lab.client.run([lab.build.program("convertize"), "paths", "--once", "--dry-run", "--config", "none", "--device", "*"]).stdout
        table = lab.client.run([lab.build.program("convertize"), "paths", "--config", "none", "--device", "*"], check=False).stdout
        check("x;id>z?[7m?" in table and "x;id>z?[7m?" in shown, table + shown)
        check(not [c for c in shown + table if c != "\n" and ord(c) < 32], shown + table)
        lab.client.run(["sh", "-e"], input=shown)
        check("10.2.0.2" in endpoints(lab), endpoints(lab))
        check(not os.path.exists("z"), "a file by a name")


def test_the_configuration_file():
    """The administrator's file has the same settings; an error names the line."""
    with Lab(wifi=Veth(), lte=Veth(), core=None) as lab:
        bare(lab)
        path = os.path.join(lab.directory, "convertize.conf")

        def run(text, *words, check=True):  # pylint: disable=redefined-outer-name
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
            return lab.client.run([lab.build.program("convertize"), "paths", "--config", path, *words], check=check)

        shown = run("device wifi\ndevice lte\nbackup-device l*\ntables 500-501\nbypass nonsense-for-others\n", "--once", "--dry-run").stdout
        check("table 500" in shown and "table 501" in shown and "10.2.0.2 id 101 dev lte subflow backup" in shown, shown)
        check("--device (device in convertize.conf) names others" in run("device lte\n", "--once", "--dry-run").stdout, "one device only")
        result = run("converter 10.9.0.1\ntables 5\n", "--once", "--dry-run", check=False)
        equal((result.returncode, result.stderr), (2, "convertize: %s:2: tables: \"5\" isn't a range of routing tables; write it as in 8803-8866\n" % path),
              "a wrong line")
        # programs don't get these settings as variables
        with open(path, "w", encoding="ascii") as file:
            file.write("converter 10.9.0.1\ndevice lte\n")
        sanitizers = shlex.split(os.environ.get("SANITIZER_PRELOAD", ""))
        said = lab.client.run([lab.build.program("convertize"), "--config", path, "--library", lab.build.shim, "env"],
                              env={"LD_PRELOAD": ":".join(sanitizers)} if sanitizers else None).stdout
        check("CONVERT_ADDR=10.9.0.1" in said and "CONVERTIZE_DEVICE" not in said, said)


# --- as a service --------------------------------------------------------------------------------------


def unit_text(lab):
    """The text of convertize-paths.service as it is installed."""
    with open(os.path.join(lab.build.directory, "contrib/systemd/convertize-paths.service"), encoding="ascii") as file:
        return file.read()


def as_nobody(unit):
    """The text of a unit with a user that exists."""
    return unit.replace("=convertize\nGroup=convertize", "=nobody\nGroup=nogroup")


def test_the_unit():
    """Under the real systemd: it starts with its one capability, reloads, recovers from a kill, and leaves nothing behind."""
    with Lab(wifi=Veth(), lte=Veth(), core=None) as lab:
        bare(lab)
        before = state(lab)
        with Systemd(lab, host=lab.client) as systemd:
            unit = unit_text(lab)
            exposure = systemd.run("sh", "-c", "cat >/run/convertize-paths.service; systemd-analyze --no-pager security --offline=true "
                                   "/run/convertize-paths.service", input=unit, check=False).stdout
            level = re.search(r"Overall exposure level for \S+: ([0-9.]+)", exposure)
            check(level and float(level[1]) <= EXPOSURE_MAX, exposure)
            said = systemd.run("sh", "-c", "systemd-analyze verify --man=no /run/convertize-paths.service 2>&1", check=False).stdout
            equal([line for line in said.splitlines() if "convertize-paths" in line and "not executable" not in line], [], "systemd-analyze verify")
            systemd.run("cp", lab.build.program("convertize"), PLACE + "/convertize")
            unit = re.sub(r"ExecStart=\S*/convertize paths --manage", "ExecStart=%s/convertize paths --manage --config none %s" % (
                PLACE, " ".join((*DEVICES, "--quota", "lte=5G/month"))), unit)
            systemd.write("convertize-paths.service", as_nobody(unit))
            systemd.systemctl("daemon-reload")
            systemd.systemctl("start", "convertize-paths")
            equal(len(endpoints(lab)), 4, "endpoints once it has started")
            main_pid = systemd.systemctl("show", "-P", "MainPID", "convertize-paths").stdout.strip()
            status = systemd.run("cat", "/proc/%s/status" % main_pid).stdout
            equal(re.search(r"CapEff:\s*(\w+)", status)[1], "%016x" % (1 << 12), "capabilities")
            check(re.search(r"Uid:\s*(\d+)", status)[1] != "0", status)
            said = systemd.systemctl("show", "-P", "StatusText", "convertize-paths").stdout.strip()
            check(re.fullmatch(r"4 network addresses used; lte \d\.\d MB of 5\.00 GB this month", said), said)

            def shown():
                """What a user sees who isn't the service's."""
                user = ("setpriv", "--reuid", str(NOBODY - 1), "--clear-groups")
                said = systemd.run(*user, PLACE + "/convertize", "paths", "--json", "--config", "none", *DEVICES, check=False).stdout
                return json.loads(said)
            found = shown()
            equal(found["managed"], True, "whether a user sees the manager")
            equal([(row["keeper"], row["endpoint"]["ours"]) for row in found["networks"]], [("convertize", True)] * 4, "whose endpoints they are")
            check(all(row["endpoint"]["since"] > 1000000000 for row in found["networks"]), found)
            lab.client.ip("mptcp endpoint del id %d" % endpoints(lab)["10.1.0.2"][0])
            systemd.systemctl("reload", "convertize-paths")
            wait_until(lambda: len(endpoints(lab)) == 4, 10, "the endpoint that was taken")
            # systemd restarts a killed service, which knows its own endpoints
            known = endpoints(lab)
            systemd.run("kill", "-9", main_pid)
            wait_until(lambda: systemd.systemctl("show", "-P", "MainPID", "convertize-paths").stdout.strip() not in ("0", main_pid) and
                       systemd.systemctl("is-active", "convertize-paths", check=False).stdout.strip() == "active", 20, "another one")
            equal(endpoints(lab), known, "endpoints after a kill")
            systemd.systemctl("stop", "convertize-paths")
            equal(state(lab), before, "what there is when it has been stopped")
            equal(shown()["managed"], False, "whether a user sees a manager then")
            systemd.systemctl("start", "convertize-paths")
            lab.client.run(["sh", "-c", "ip -4 route flush default; ip -6 route flush default"])
            wait_until(lambda: not [rule for family in ("-4", "-6") for rule in ip(lab, family, "rule") if re.search(r"from (10\.|fd)", rule)],
                       10, "the rules to go")
            equal(shown()["managed"], True, "whether a user sees a manager that has no network")
            return "exposure %s" % level[1]


def test_the_units_sandbox():
    """The unit permits what the service needs: within it, probes over each network, by IPv4 and IPv6, get the converter's answers."""
    with Lab(wifi=Veth(), lte=Veth(), core=None) as lab:
        bare(lab)
        unit = unit_text(lab)
        families = re.search(r"^RestrictAddressFamilies=(.*)$", unit, re.MULTILINE)[1].split()
        equal(sorted(families), ["AF_INET", "AF_INET6", "AF_NETLINK", "AF_UNIX"], "the families that the service uses")
        check("\nIPAddressDeny=" not in unit and "\nIPAddressAllow=" not in unit, "packets are dropped:\n" + unit)
        lab.convertd()
        with Systemd(lab, host=lab.client) as systemd:
            systemd.run("cp", lab.build.program("convertize"), PLACE + "/convertize")
            unit = re.sub("^(?:Restart|WatchdogSec)=.*\n", "", unit, flags=re.MULTILINE)
            # sanitizers may complain of the sandbox
            unit = unit.replace("Type=notify\n", "Type=oneshot\nStandardOutput=file:{0}/answers\nStandardError=file:{0}/errors\n".format(PLACE))
            unit = re.sub("^ExecStart=.*$", "ExecStart=%s/convertize paths --json --config none %s" % (PLACE, " ".join(
                (*DEVICES, "--converter", lab.converter.addr4, "--converter", lab.converter.addr6))), unit, flags=re.MULTILINE)
            systemd.write("asks.service", as_nobody(unit))
            systemd.systemctl("daemon-reload")
            systemd.systemctl("start", "asks", check=False)
            found = json.loads(systemd.run("cat", PLACE + "/answers").stdout)["networks"]
            equal([(row["address"], row["works"]) for row in found if not row["works"]], [], "networks over which no answer came")
            equal(len(found), 4, "networks")


@long
def test_a_forbidden_probe():
    """Where a filter forbids Internet sockets, the manager says once that it can't ask a silent network."""
    with Lab() as lab:
        bare(lab)
        serve(lab)
        with PathManager(lab, wrapper=["python3", "-c", WITHOUT_INTERNET]) as manager:
            running = download(lab, 90000000)
            wait_until(lambda: carried(lab)["lte"] > 10000000, 20, "a subflow that has been in use for some looks")
            lab.lte.down()
            manager.said("lte 10.2.0.2: silent; ")
            manager.said("can't be asked whether they work again: Address family not supported by protocol")
            lab.lte.up()
            arrives(running)
            equal(manager.process.log_text().count("can't be asked"), 1, "how often it says so")


# --- output -----------------------------------------------------------------------------------------


@long
@waits
def test_what_is_shown():
    """An ordinary user sees which networks reach the converter, what they carry, and which program keeps their endpoints."""
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
            # twice the delay of 6 ms; microseconds would be more
            check(wifi["mptcp"] and 12 <= wifi["answer_ms"] < patience(12000), wifi)
            lab.lte.down()
            rows = {row["address"]: row for row in shows(*asked)["networks"]}
            # convertize reads the devices before the subflows, and bytes arrive in between
            check(rows["10.1.0.2"]["device_received"] > wifi["subflows"]["received"] > 0, (wifi, rows))
            equal((rows["10.1.0.2"]["works"], rows["10.2.0.2"]["works"], rows["10.2.0.2"]["problem"], rows["10.2.0.2"]["converter"]),
                  (True, False, "nothing comes back", "10.9.0.1:1234"), "lte is silent")
            table = shows(*asked, text=True)
            check(re.search(r"^lte 10\.2\.0\.2 doesn't work: .*\n +gateway 10\.2\.0\.1, endpoint \d+ subflow backup, table 88\d\d, metered\s+unknown,"
                            r"\s+since \d{4}-", table, re.MULTILINE), table)
            check(re.search(r"^wifi 10\.1\.0\.2 works, \d+ ms\n +gateway 10\.1\.0\.1, endpoint \d+ subflow, table 88\d\d, metered\s+unknown,", table,
                            re.MULTILINE), table)
            equal([line for line in table.splitlines() if len(line) > 80], [], "lines of more than 80 columns")
            check("lte 10.2.0.2 doesn't work: nothing comes back (10.9.0.1:1234)" in table, table)
            lab.wifi.down()
            shows(*asked, status=1)
            lab.wifi.up()
            lab.lte.up()
            arrives(running)


if __name__ == "__main__":
    main()
