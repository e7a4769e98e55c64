#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_documents.py - runs all commands of the deployment guide and the troubleshooting page: they print what the pages show

We run the blocks unchanged on the hosts that they name, in the order of the page (convertlab/documents.py explains their marks,
convertlab/scenes.py has the networks). We repeat a command that only looks until it prints the page's output, since readers type more
slowly than this test. For blocks that can't run here, the tool that their mark names checks them.
"""
import contextlib
import glob
import os
import re
import shlex
import shutil
import subprocess
import tempfile

from convertlab import Unsuitable, check, equal, kernel, long, main, need, sandbox, wait_until, waits
from convertlab.build import SRCDIR, Build
from convertlab.documents import DocumentError, Step, commands, read, shows
from convertlab.scenes import SCENES, Scene
from convertlab import topology

# How commands begin that change nothing.
LOOKS = ("ss ", "nstat ", "ip mptcp ", "ip route ", "ip rule", "nft list", "convertd status", "journalctl ", "curl -s http://127.0.0.1:9103/",
         "convertize check ", "convertize paths")
STATUSES = {"ok": 0, "failed": 1, "degraded": 3}  # of "convertize check", by the first word of its last line
PAGES = ("doc/deployment.md", "doc/troubleshooting.md")


def steps(page):
    """The steps of a page of doc/."""
    return read(os.path.join(SRCDIR, page), page)


def scenes(page):
    """{name of the scene: its steps}, of one page."""
    found, current = {}, None
    for step in steps(page):
        if step.kind == "lab":
            equal(step.host, "", step.place + ": words in front of the colon")
            check(step.detail in SCENES and step.detail not in found, "%s: a new scene of scenes.py: %s" % (step.place, step.detail))
            current = found.setdefault(step.detail, [])
        elif current is not None:
            current.append(step)
        else:
            check(step.kind in ("text", "unrun"), "%s: stands in front of the first scene" % step.place)
    return found


def hears(process):
    """Tells whether a process waits for messages of netlink, so that it misses none from now on."""
    with open("/proc/%d/wchan" % process.pid, encoding="ascii") as file:
        if "wait_for_more_packets" in file.read():
            return True
    with open("/proc/%d/net/netlink" % process.pid, encoding="ascii") as file:
        sockets = [line.split() for line in file]
    return any(int(socket[3], 16) for socket in sockets[1:] if socket[2] == str(process.pid))


class Performance:
    """Runs the steps of a scene."""

    def __init__(self, scene):
        self._scene = scene
        self._pending = []  # the output that we still expect of background commands, as (step, process, lines)

    def _host(self, step):
        check(step.host in self._scene.hosts,
              "%s: the scene has no host %s, but %s" % (step.place, step.host, ", ".join(self._scene.hosts)))
        return self._scene.hosts[step.host]

    def run(self, step):
        """Does one step."""
        getattr(self, "_" + step.kind)(step)

    def end(self):
        """Waits for the rest of the background commands' output."""
        for step, process, lines in self._pending:
            wait_until(lambda p=process, shown=lines: shows(p.log_text(), shown), 60,
                       lambda p=process, at=step: "what is shown at %s; there is:\n%s" % (at.place, p.log_text()))

    # --- one method for each kind --------------------------------------------

    def _text(self, _):
        pass

    def _unrun(self, _):
        pass  # test_what_cannot_be_run_is_read

    def _on(self, step):
        self._sh(Step("sh", step.place, step.host, "", step.detail))

    def _link(self, step):
        check(step.host in self._scene.links, "%s: there is no such link" % step.place)
        link, settings = self._scene.links[step.host], dict(word.split("=") for word in step.detail.split())
        if settings.pop("down", None):
            link.down()
            return
        link.up()
        fields = {"strip_mptcp": False, "strip_syn_data": False, "drop_mptcp_syn": False, "drop_join": False, "max_size": 0, "max_syn": 0,
                  "drop_port": 0}
        check(set(settings) <= set(fields), "%s: unknown settings of a link" % step.place)
        link.set(**{name: type(none)(int(settings.get(name, 0))) for name, none in fields.items()})

    def _file(self, step):
        done = self._host(step).shell("mkdir -p %s; cat >%s" % (shlex.quote(os.path.dirname(step.detail)), shlex.quote(step.detail)),
                                      input=step.text)
        check(done.returncode == 0, "%s: %s" % (step.place, done.stderr))

    def _sh(self, step):
        done = self._host(step).shell(step.text)
        check(done.returncode == 0, "%s: ends with %d:\n%s%s" % (step.place, done.returncode, done.stdout, done.stderr))

    def _console(self, step):
        for command, lines in commands(step):
            if command.endswith(" &"):
                self._stay(step, command[:-2], lines)
            else:
                self._look(step, command, lines)

    def _stay(self, step, command, lines):
        """Starts a command in the background."""
        process = self._host(step).shell("exec " + command, background=True)
        if command.startswith("ip mptcp monitor"):
            wait_until(lambda: hears(process), 30, "the monitor to listen")
        if lines:
            self._pending.append((step, process, lines))

    def _look(self, step, command, lines):
        """Runs a command and compares its output; again and again if it only looks."""
        said = {}

        def right():
            done = self._host(step).shell("exec 2>&1\n" + command)
            said.update(output=done.stdout, status=done.returncode)
            last = done.stdout.splitlines()[-1:] or [""]
            status = STATUSES.get(last[0].split(":")[0], 0) if command.startswith("convertize check") else 0
            return done.returncode == status and (not lines or shows(done.stdout, lines))

        def wrong():
            return "%s: \"%s\" ends with %d and prints\n%sin place of\n%s" % (
                step.place, command, said["status"], said["output"], "\n".join(lines))
        if not command.startswith(LOOKS):
            check(right(), wrong() if said else command)
        else:
            wait_until(right, 60, wrong)


def perform(page, name):
    """Runs all steps of a page for one scene."""
    directory = tempfile.mkdtemp(prefix="scene-", dir="/run/convertlab")
    with Scene(name, directory) as scene:
        performance = Performance(scene)
        try:
            for step in scenes(page)[name]:
                performance.run(step)
            performance.end()
        except BaseException:
            topology.failure_reports.append(logs(directory))
            raise
    shutil.rmtree(directory)


def logs(directory):
    """The ends of all logs of a scene."""
    found = []
    for where, _, names in os.walk(directory):
        for name in sorted(names):
            if name.endswith(".log"):
                with open(os.path.join(where, name), encoding="utf-8", errors="replace") as file:
                    found.append("--- %s\n%s" % (name, "".join(file.readlines()[-15:])))
    return "\n".join(found)


def test_blocks_are_understood():
    """Each page parses, and the tests below run each of its scenes."""
    run = {("doc/deployment.md", name) for name in ("laptop", "router", "fleet")} | {("doc/troubleshooting.md", "works")}
    equal({(page, name) for page in PAGES for name in scenes(page)}, run, "the scenes of the pages")


def test_unmarked_blocks_are_errors():
    """read() refuses a page with any of these mistakes, so that no command is left out."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "page.md")
        for text in ("```\nls\n```\n", "```sh\nls\n```\n", "    ls\n", "```sh unrun sh\nls\n```\n", "```sh host\nls\n", "<!-- lob: x -->\n",
                     "```conf host\nx\n```\n", "```text\n$ ls\n```\n", "```sh host words\nls\n```\n"):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            with contextlib.suppress(DocumentError):
                read(path, "page")
                raise AssertionError("no error for %r" % text)
    check(shows("a  b 17\nc\nd\n", ["a b …", "…", "d"]) and not shows("a b\nx\n", ["a b"]) and not shows("", ["a"]), "comparisons")


# The pages show the output of a kernel that they recommend.
@kernel.needs("fastopen")
def test_laptop():
    perform("doc/deployment.md", "laptop")


@kernel.needs("fastopen")
def test_router():
    if not os.path.exists(os.path.join(Build().directory, "convertgw")):
        raise Unsuitable("convertgw isn't built, since libnftables or libnetfilter_queue is missing")
    if sandbox.in_user_namespace():
        raise Unsuitable("systemd-networkd needs a user of its own, and there is but one here; run it as root")
    need("/lib/systemd/systemd-networkd", "systemd")
    perform("doc/deployment.md", "router")


@kernel.needs("fastopen")
def test_fleet():
    perform("doc/deployment.md", "fleet")


@long
@waits
@kernel.needs("fastopen")
def test_troubleshooting():
    perform("doc/troubleshooting.md", "works")


# --- blocks that aren't run ---------------------------------------------------------------------


def check_sh(text, place):
    """A shell can parse it."""
    done = subprocess.run(["sh", "-n"], input=text, text=True, stderr=subprocess.PIPE, check=False)
    equal((done.returncode, done.stderr), (0, ""), place)


def check_nmcli(text, place):
    """NetworkManager's own tool accepts each "nmcli connection modify", offline, for a profile that this test makes."""
    check_sh(text, place)
    if not shutil.which("nmcli"):
        raise Unsuitable("nmcli isn't here; we ask nobody to install NetworkManager, since it would manage this machine's network")

    def offline(*words, profile=""):
        done = subprocess.run(["nmcli", "--offline", "connection", *words], input=profile, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)
        check(done.returncode == 0, "%s: nmcli connection %s: %s" % (place, " ".join(words), done.stderr))
        return done.stdout
    profile = offline("add", "type", "ethernet", "con-name", "any")
    for line in text.splitlines():
        words = shlex.split(line)
        equal(words[:3], ["nmcli", "connection", "modify"], "%s: the only commands of NetworkManager that can be tried here" % place)
        changed = offline("modify", *words[4:], profile=profile)
        check(changed != profile, "%s: %s changes nothing" % (place, line))


TOOLS = {"sh": check_sh, "nmcli": check_nmcli}


def unrun():
    """The blocks that aren't run."""
    return [step for page in PAGES for step in steps(page) if step.kind == "unrun"]


def test_what_cannot_be_run_is_read():
    """Each such block names a known tool, and a shell can parse it."""
    for step in unrun():
        check(step.host in TOOLS, "%s: no such tool: %s" % (step.place, step.host))
        check_sh(step.text, step.place)


def test_networkmanager_takes_its_commands():
    for step in unrun():
        if step.host == "nmcli":
            check_nmcli(step.text, step.place)


def test_units_are_understood():
    """systemd-analyze verify has no complaint about the units of the pages."""
    need("systemd-analyze", "systemd")
    build = Build()
    for page in PAGES:
        for step in steps(page):
            if step.kind != "file" or not step.detail.startswith("/etc/systemd/system/"):
                continue
            with tempfile.TemporaryDirectory() as directory:
                path = os.path.join(directory, os.path.basename(step.detail))
                text = re.sub(r"ExecStart=\S*/convertize", "ExecStart=" + build.program("convertize"), step.text)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                done = subprocess.run(["systemd-analyze", "verify", "--man=no", path], text=True, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, check=False)
                said = [line for line in done.stdout.splitlines() if os.path.basename(path) in line]
                equal(said, [], step.place)


# --- what the troubleshooting page quotes -----------------------------------------------------

# How commands and configuration lines begin, in prose.
COMMANDS = ("ip ", "sysctl ", "convertd ", "convertize ", "systemctl ", "allow-", "deny-", "listen ", "reset tcp option", "make install")
VALUES = re.compile(r"wlan0|wwan0|10\.2\.0\.99|\b1234\b|%[-+0-9.*]*(?:ll|z|l)?[a-z]")


def source_texts():
    """The string literals of the sources that print the quoted texts, in one text, with "…" for each value."""
    found = []
    for pattern in ("src/convertize/*.c", "src/convertize/*/*.[ch]", "src/shim/*/*.c", "src/client/*.c", "src/engine/*.c"):
        for path in sorted(glob.glob(os.path.join(SRCDIR, pattern))):
            with open(path, encoding="utf-8") as file:
                text = re.sub(r'"\s*\n\s*"', "", file.read())
            found += re.findall(r'"((?:[^"\\]|\\.)*)"', text)
    return VALUES.sub("…", "\n".join(found))


def test_quotations_are_what_programs_say():
    """The sources contain each quotation of the check and of the log outside of the page's examples."""
    with open(os.path.join(SRCDIR, "doc/troubleshooting.md"), encoding="utf-8") as file:
        prose = re.sub(r"^```.*?^```", "", file.read(), flags=re.MULTILINE | re.DOTALL)
    texts = source_texts()
    quoted = [span for span in re.findall(r"`([^`\n]+)`", prose) if " " in span.strip() and not span.startswith(COMMANDS)]
    for span in quoted:
        if span not in ("log-format json", "systemctl -u"):
            check(VALUES.sub("…", span).rstrip(":") in texts, "doc/troubleshooting.md quotes `%s`, which no program says" % span)
    check(len(quoted) > 20, "only %d quotations: %s" % (len(quoted), quoted))


def test_each_bad_finding_is_named():
    """The page has the name of each fact that can be a warning or a failure."""
    bad = set()
    for path in sorted(glob.glob(os.path.join(SRCDIR, "src/convertize/check/*.c"))):
        with open(path, encoding="utf-8") as file:
            bad |= set(re.findall(r"(?:report_fact|report_plain|check_fact)\(\w+(?:->\w+)*,\s*[^;]*?FACT_(?:WARN|FAIL)[^;]*?\"([a-z_]+(?:\.[a-z_]+)?)\"", file.read()))
    with open(os.path.join(SRCDIR, "doc/troubleshooting.md"), encoding="utf-8") as file:
        named = set(re.findall(r"`([a-z_.]+)`", file.read()))
    check(len(bad) > 12, "the sources aren't understood: %s" % bad)
    equal(sorted(bad - named), [], "findings that the page doesn't name")
    return "%d findings" % len(bad)


if __name__ == "__main__":
    main()
