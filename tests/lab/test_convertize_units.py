#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertize_units.py - convertize enable, disable and list, with a real systemd that starts real services"""
import contextlib
import os
import shutil
import tempfile

from convertlab import Lab, Link, check, equal, long, main, need, waits
from convertlab.harness import Unsuitable
from convertlab.systemd import PLACE, UNITS, Systemd
from convertlab.waiting import wait_until

LOG = PLACE + "/convert.log"
DROPIN = UNITS + "/%s.d/zz-convertize.conf"
COOKIE = UNITS + "/%s.d/zz-convertize.cookie"

FETCH = """
[Service]
Type=oneshot
Environment="LD_PRELOAD=libm.so.6" "SPACED=a b"
User=nobody
NoNewPrivileges=yes
RestrictAddressFamilies=AF_INET AF_INET6
SystemCallFilter=@system-service
ExecStart=%(curl)s -s -o /dev/null http://%(server)s/bytes/1000
"""

RELAY = """
[Unit]
DefaultDependencies=no
[Service]
ExecStart=%(socat)s TCP-LISTEN:8080,fork,reuseaddr TCP:%(server)s:7
"""


class Services:
    """systemd on the lab's client, and copies of convertize and its library that unprivileged users can reach."""

    def __init__(self, lab, systemd):
        self.lab = lab
        self.systemd = systemd
        # the ordinary users of services may not reach the build directory
        for name, source in (("convertize", lab.build.program("convertize")), ("libconvert.so", lab.build.shim)):
            systemd.run("cp", source, "%s/%s" % (PLACE, name))
            systemd.run("chmod", "755", "%s/%s" % (PLACE, name))
        systemd.run("sh", "-c", ": > %s; chmod 666 %s" % (LOG, LOG))

    def convertize(self, *words, env=None):
        """Runs convertize beside systemd; returns the CompletedProcess."""
        return self.systemd.run(PLACE + "/convertize", *words, check=False,
                                env={"CONVERT_CONFIG": "none", "CONVERT_LIBRARY": PLACE + "/libconvert.so",
                                     "XDG_CONFIG_HOME": PLACE + "/config", **(env or {})})

    def right(self, *words, **options):
        """Runs convertize, which must succeed without errors; returns its output."""
        result = self.convertize(*words, **options)
        equal((result.returncode, result.stderr), (0, ""), "convertize %s" % " ".join(words))
        return result.stdout

    def refuses(self, reason, *words, status=1, lines=1, **options):
        """Runs convertize, which must end with this status, and this many lines on standard error, one with the reason."""
        result = self.convertize(*words, **options)
        equal(result.returncode, status, "the status of convertize %s: %s" % (words, result))
        said = [line for line in result.stderr.splitlines() if line.startswith("convertize: ")]
        check(len(said) == lines and any(reason in line for line in said), result.stderr)

    def enable(self, *words):
        """Runs convertize enable with the lab's converter, and a log."""
        return self.right("enable", "--converter", self.lab.converter.addr4, "--log", LOG, *words)

    def unit(self, name, text):
        """Adds a unit."""
        self.systemd.write(name, text)
        self.systemd.systemctl("daemon-reload")

    def text(self, path):
        """Returns a file's text, as systemd sees it; None: there is no such file."""
        result = self.systemd.run("cat", path, check=False)
        return result.stdout if result.returncode == 0 else None

    def conversions(self):
        """Returns how many connections were converted since the last call."""
        count = self.text(LOG).count("converted over MPTCP")
        self.systemd.run("sh", "-c", ": > " + LOG)
        return count

    def state(self, name):
        """Returns a unit's state in "convertize list"; None: it isn't in the list."""
        for line in self.right("list").splitlines():
            if line.split()[0] == name:
                return line[33:49].strip()
        return None


@contextlib.contextmanager
def services():
    """Yields Services in a lab."""
    if os.environ.get("SANITIZER_PRELOAD"):
        raise Unsuitable("services would need the sanitizers' library in front of their own")
    with Lab(wifi=Link(delay_ms=1), lte=None, core=None) as lab, Systemd(lab, host=lab.client) as systemd:
        yield Services(lab, systemd)


def program(name):
    """Returns the path of a program; skips the test if it is missing."""
    need(name)
    return shutil.which(name)


def test_service():
    """A service with a user and a sandbox: once enabled, it is converted at its next start; once disabled, it isn't."""
    with services() as run:
        run.lab.convertd()
        run.lab.http()
        run.unit("fetch.service", FETCH % {"curl": program("curl"), "server": run.lab.server.addr4})
        before = run.systemd.run("ls", "-A", UNITS).stdout
        run.systemd.systemctl("start", "fetch.service")
        equal(run.conversions(), 0, "conversions before")
        said = run.enable("fetch")
        equal(said, "fetch.service: enabled by %s\n" % (DROPIN % "fetch.service"), "the output of enable")
        shown = run.systemd.systemctl("show", "-P", "Environment", "fetch.service").stdout
        check("LD_PRELOAD=libm.so.6:%s/libconvert.so" % PLACE in shown and "\"SPACED=a b\"" in shown, shown)
        run.systemd.systemctl("start", "fetch.service")
        equal(run.conversions(), 1, "conversions")
        equal(run.state("fetch.service"), "not running", "its state")
        check("is enabled by" in run.enable("fetch.service"), "the same again")
        equal(run.systemd.systemctl("show", "-P", "Environment", "fetch.service").stdout, shown, "variables")
        run.right("disable", "fetch.service")
        run.systemd.systemctl("start", "fetch.service")
        equal(run.conversions(), 0, "conversions afterwards")
        equal(run.systemd.run("ls", "-A", UNITS).stdout, before, "files that are left")
        equal(run.right("disable", "fetch.service"), "fetch.service: was not enabled\n", "disabled again")
        equal(run.state("fetch.service"), None, "its state")


def test_running_service():
    """A running service isn't converted until it is restarted, and the list says so; only root can read a cookie."""
    with services() as run:
        run.lab.convertd()
        run.lab.echo()
        run.unit("relay.service", RELAY % {"socat": program("socat"), "server": run.lab.server.addr4})
        run.systemd.systemctl("start", "relay.service")

        def hello():
            wait_until(lambda: run.lab.client.listening(8080), 20, "the relay")
            equal(run.systemd.run("socat", "-t5", "-", "TCP:127.0.0.1:8080", input="hello").stdout, "hello", "the answer")
            return run.conversions()
        equal(hello(), 0, "conversions")
        cookie = "crumbs \"and\" $more% \\of them"
        said = run.enable("relay", "--cookie", cookie)
        check("systemctl restart relay.service" in said, said)
        equal((hello(), run.state("relay.service")), (0, "needs a restart"), "before the restart")
        run.systemd.systemctl("restart", "relay.service")
        equal((hello(), run.state("relay.service")), (1, "converted"), "after it")
        pid = run.systemd.systemctl("show", "-P", "MainPID", "relay.service").stdout.strip()
        environment = run.text("/proc/%s/environ" % pid).split("\0")
        check("CONVERT_COOKIE=" + cookie in environment, environment)
        check("crumbs" not in run.text(DROPIN % "relay.service"), "the cookie is in the drop-in")
        equal(run.systemd.run("stat", "-c", "%a %U", COOKIE % "relay.service").stdout, "600 root\n", "the cookie's file")
        run.enable("relay")
        equal(run.text(COOKIE % "relay.service"), None, "the file of a cookie that enable wasn't given")
        run.right("disable", "relay")
        run.systemd.systemctl("restart", "relay.service")
        equal(hello(), 0, "conversions of the disabled service")


def test_names():
    """A template, its instances, an alias, and names of no service."""
    with services() as run:
        text = "[Service]\nExecStart=%s 100 %%i\n" % program("sleep")
        run.unit("many@.service", text)
        run.unit("real.service", text)
        run.systemd.run("ln", "-s", "real.service", PLACE + "/alias.service")
        run.unit("masked.socket", "[Socket]\nListenStream=1\n")
        run.systemd.run("ln", "-s", "/dev/null", UNITS + "/masked.service")
        run.systemd.systemctl("daemon-reload")
        run.enable("many@.service", "alias.service")
        for name in ("many@.service", "real.service"):
            check(run.text(DROPIN % name), "no drop-in of " + name)
        equal(run.state("many@.service"), "template", "the list")
        run.systemd.systemctl("start", "many@5.service")
        check("CONVERT_ADDR" in run.systemd.systemctl("show", "-P", "Environment", "many@5.service").stdout, "an instance")
        run.enable("many@5.service")
        equal(run.state("many@5.service"), "converted", "an instance, which the template's drop-in has converted already")
        run.right("disable", "many@.service", "many@5.service", "alias")
        equal(run.systemd.run("sh", "-c", "ls -d %s/*.d" % UNITS, check=False).stdout, "", "drop-ins that are left")
        options = ("enable", "--converter", "192.0.2.1")
        for name, reason in (("nothing.service", "no such service"), ("masked.service", "masked"),
                             ("masked.socket", "not a service"), ("../x.service", "is a file"), ("a b", "can't be the name"), ("", "can't be the name")):
            run.refuses(reason, *options, name)
        run.refuses("no such service", "disable", "nothing.service")
        # a unit that is gone can still be disabled
        run.enable("real.service")
        run.systemd.run("rm", PLACE + "/real.service", PLACE + "/alias.service")
        run.systemd.systemctl("daemon-reload")
        equal(run.state("real.service"), "not installed", "the list")
        run.right("disable", "real.service")


@long
@waits
def test_units_that_cannot_be_converted():
    """enable refuses them with the reason, and makes no drop-in; --force overrides that, unless it would break the service."""
    with services() as run:
        sleep = program("sleep")
        setuid = PLACE + "/setuid"
        run.systemd.run("sh", "-c", "cp %s %s; chmod 4755 %s; cp %s %s/convertd" % (sleep, setuid, setuid, sleep, PLACE))
        cases = (("User=nobody\nExecStart=\nExecStart=%s 1" % setuid, "set-user-ID"),
                 ("ExecStart=\nExecStart=%s/convertd 1" % PLACE, "is a converter"),
                 ("ExecStart=\nExecStart=/nowhere/program", "can't be executed"))
        options = ("enable", "--converter", "192.0.2.1", "bad")
        for line, reason in cases:
            run.unit("bad.service", "[Service]\nExecStart=%s 1\n%s\n" % (sleep, line))
            run.refuses(reason, *options)
            equal(run.text(DROPIN % "bad.service"), None, "the drop-in of a unit with " + line)
        result = run.convertize(*options, "--force")
        check(result.returncode == 0 and result.stderr.startswith("convertize: warning: bad.service: "), result)
        run.right("disable", "bad")
        run.unit("bad.service", "[Service]\nExecStart=%s 1\nSystemCallFilter=~process_vm_readv\n" % sleep)
        run.refuses("the library needs", *options, "--force")
        run.unit("bad.service", "[Service]\nExecStart=%s 1\nSystemCallFilter=~process_vm_readv\n"
                 "SystemCallErrorNumber=EPERM\n" % sleep)
        run.right(*options)


def test_services_that_run_unconverted():
    """If something keeps the library out of a running service, the list and its exit status tell so."""
    with services() as run:
        sleep = program("sleep")
        run.unit("odd.service", "[Service]\nExecStart=%s 100\nInaccessiblePaths=%s/libconvert.so\n" % (sleep, PLACE))
        run.enable("odd")
        run.systemd.systemctl("start", "odd.service")
        result = run.convertize("list")
        check(result.returncode == 1 and "not converted" in result.stdout and "without the library" in result.stderr, result)
        run.systemd.systemctl("stop", "odd.service")
        equal(run.state("odd.service"), "not running", "its state")
        run.systemd.run("tee", "/run/preload.env", input="LD_PRELOAD=libc.so.6\n")
        run.unit("file.service", "[Service]\nExecStart=%s 100\nEnvironmentFile=/run/preload.env\n" % sleep)
        run.enable("file")
        run.systemd.systemctl("start", "file.service")
        listed = run.convertize("list").stdout.splitlines()
        check(any(line.startswith("file.service") and "not converted" in line for line in listed), "another LD_PRELOAD from a file: %s" % listed)


def test_files():
    """--dry-run changes nothing, nor do wrong options; convertize doesn't touch other programs' files."""
    with services() as run:
        run.unit("one.service", "[Service]\nExecStart=%s 1\n" % program("sleep"))
        options = ("enable", "--converter", "192.0.2.1", "--bypass", ":22", "--bypass", "10.0.0.0/8", "one")
        said = run.right(*options, "--dry-run", "--cookie", "secret")
        for line in ("# %s\n" % (DROPIN % "one.service"), "[Service]\n", "Environment=\"CONVERT_ADDR=192.0.2.1\"\n",
                     "Environment=\"CONVERT_BYPASS=:22,10.0.0.0/8\"\n", "EnvironmentFile=%s\n" % (COOKIE % "one.service"),
                     "CONVERT_COOKIE=\"secret\"\n"):
            check(line in said, "%r is missing: %s" % (line, said))
        # convertize switches warnings on for a shell, which a service whose drop-in is made there shall not have
        said = run.convertize("--converter", "192.0.2.1", "sh", "-c", PLACE + "/convertize enable --dry-run one").stdout
        check(DROPIN % "one.service" in said and "CONVERT_WARN" not in said, said)
        equal(run.systemd.run("ls", "-A", UNITS).stdout, "", "files after --dry-run")
        run.right(*options)
        check("remove " + DROPIN % "one.service" in run.right("disable", "--dry-run", "one"), "disable --dry-run")
        path = DROPIN % "one.service"
        equal(run.systemd.run("stat", "-c", "%a", path).stdout, "644\n", "the mode")
        equal(run.systemd.run("ls", "-A", os.path.dirname(path)).stdout, os.path.basename(path) + "\n", "files")
        run.systemd.run("sh", "-c", "echo '[Service]' > " + path)
        run.refuses("is not convertize's", *options)
        run.refuses("is not convertize's", "disable", "one")
        equal(run.text(path), "[Service]\n", "another program's file")
        run.systemd.run("rm", "-r", os.path.dirname(path))
        wrong = ((("enable", "one"), {}, "no converter"), (("enable", "one", "--converter", "1.2.3"), {}, "--converter"),
                 (("enable", "--log", "x", "--converter", "a", "one"), {}, "not an absolute path"),
                 (("enable", "one"), {"CONVERT_ADDR": "1.2.3"}, "CONVERT_ADDR"), (("enable",), {}, "name a service"),
                 (("enable", "--session", "one"), {}, "say one of them"), (("list", "one"), {}, "one word too many"),
                 (("list", "--force"), {}, "no meaning with \"list\""))
        for words, env, reason in wrong:
            run.refuses(reason, *words, status=2, env=env)
        equal(run.systemd.run("ls", "-A", UNITS).stdout, "", "files")
        run.right(*options)
        result = run.systemd.run("setpriv", "--reuid=65534", "--clear-groups", PLACE + "/convertize", "disable", "one", check=False)
        check(result.returncode == 1 and "run convertize as root" in result.stderr, result)


def test_user_services():
    """--user enables a service of the user's own service manager, with the user's settings."""
    with services() as run:
        run.lab.convertd()
        run.lab.http()
        manager = run.systemd.run("sh", "-c", "ls /usr/lib/systemd/systemd /lib/systemd/systemd 2>/dev/null", check=False).stdout.split()[0]
        run.unit("manager.service", "[Service]\nType=notify\nDelegate=yes\nRuntimeDirectory=manager\nExecStart=%s --user\n"
                 "Environment=HOME=%s XDG_RUNTIME_DIR=/run/manager XDG_CONFIG_HOME=%s/config\n" % (manager, PLACE, PLACE))
        run.systemd.run("sh", "-c", "mkdir -p %s/config/systemd/user; cat > %s/config/systemd/user/fetch.service" % (PLACE, PLACE),
                        input="[Unit]\nDefaultDependencies=no\n[Service]\nType=oneshot\nExecStart=%s -s -o /dev/null http://%s/bytes/1000\n"
                        % (program("curl"), run.lab.server.addr4))
        run.systemd.run("sh", "-c", "cat > %s/config/convertize.conf" % PLACE,
                        input="converter %s\nlog %s\n" % (run.lab.converter.addr4, LOG))
        run.systemd.systemctl("start", "manager.service")
        env = {"XDG_RUNTIME_DIR": "/run/manager", "CONVERT_CONFIG": ""}

        def start():
            run.systemd.run("systemctl", "--user", "start", "fetch.service", env=env)
            return run.conversions()
        equal(start(), 0, "conversions before")
        said = run.right("enable", "--user", "fetch", env=env)
        equal(said, "fetch.service: enabled by %s/config/systemd/user/fetch.service.d/zz-convertize.conf\n" % PLACE, "the output of enable")
        equal(start(), 1, "conversions")
        check("fetch.service" in run.right("list", "--user", env=env), "the list")
        run.refuses("no such service", "enable", "--user", "nothing", env=env)
        run.right("disable", "--user", "fetch", env=env)
        equal(start(), 0, "conversions afterwards")


def test_without_systemd():
    """Without systemctl, or under another service manager, convertize enable fails with the reason."""
    with Lab(wifi=Link(delay_ms=1), lte=None, core=None) as lab, tempfile.TemporaryDirectory(dir=lab.directory) as place:
        env = {"CONVERT_CONFIG": "none", "CONVERT_ADDR": "192.0.2.1", "XDG_RUNTIME_DIR": "/nowhere"}
        result = lab.client.run(["env", "PATH=" + place, lab.build.program("convertize"), "enable", "x.service"], env=env, check=False)
        check(result.returncode == 1 and "systemctl: command not found" in result.stderr, result)
        if shutil.which("systemctl"):
            result = lab.client.run([lab.build.program("convertize"), "enable", "x.service"], env=env, check=False)
            check(result.returncode == 1 and "is systemd the service manager here?" in result.stderr, result)


def test_ignored_children():
    """convertize waits for the programs that it runs, even if its caller ignores SIGCHLD."""
    with Lab(wifi=Link(delay_ms=1), lte=None, core=None) as lab, tempfile.TemporaryDirectory(dir=lab.directory) as place:
        with open(os.path.join(place, "systemctl"), "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\necho 'no manager' >&2\nexit 1\n")
        os.chmod(file.name, 0o755)
        result = lab.client.run(["env", "--ignore-signal=CHLD", "PATH=" + place, lab.build.program("convertize"), "enable", "x.service"],
                                env={"CONVERT_CONFIG": "none", "CONVERT_ADDR": "192.0.2.1"}, check=False)
        check(result.returncode == 1 and "convertize: systemctl: no manager\n" in result.stderr, result)


if __name__ == "__main__":
    main()
