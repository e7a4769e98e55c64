#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertd_privileges.py - the rights that convertd gives up, and that everything works without them"""
import contextlib
import grp
import os
import pwd
import re
import shutil
import signal

from convertlab import Lab, Link, Skip, Unsuitable, check, equal, main, metrics, need, sandbox
from convertlab.peers import MPTCP, TCP, Client, Server, connect, converter, extended_header

CAP_NET_BIND_SERVICE, CAP_NET_ADMIN = 1 << 10, 1 << 12
SECCOMP_MODE_FILTER = "2"
KEY = "5a" * 32 + "\n"
SANITIZED = bool(os.environ.get("SANITIZER_PRELOAD"))


@contextlib.contextmanager
def near(**options):
    """Links without limits worth speaking of; the directory of the lab is open to other users."""
    if sandbox.in_user_namespace():
        raise Unsuitable("in a user namespace of an ordinary user there is only one user; run it as root")
    with Lab(wifi=Link(delay_ms=0.5), lte=None, core=Link(delay_ms=0.1), **options) as lab:
        os.chmod(lab.directory, 0o755)
        yield lab


def nobody():
    """An ordinary user that each system has."""
    try:
        return pwd.getpwnam("nobody")
    except KeyError as error:
        raise Skip("there is no user \"nobody\"") from error


def status(process):
    """{name: value} of /proc/PID/status, for each thread of the process."""
    found = []
    for thread in os.listdir("/proc/%d/task" % process.pid):
        with open("/proc/%d/task/%s/status" % (process.pid, thread), encoding="ascii") as file:
            found.append(dict(re.findall(r"^(\w+):\s+(.*)$", file.read(), re.MULTILINE)))
    return found


def write(lab, name, text, mode=0o644, gid=0):
    """A file in the lab's directory; returns its path."""
    path = os.path.join(lab.directory, name)
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    os.chown(path, 0, gid)
    os.chmod(path, mode)
    return path


def converts(lab, server, port=1234, protocol=MPTCP):
    """A connection through the converter, from its beginning to its end."""
    with Client(lab.client, lab.converter.addr4, protocol, port=port) as client:
        extended_header(client.send(server.connect()).answer())
        server.accept().close()
        equal(client.end(), (b"", "closed"), "the end")


def reload(process, line):
    """SIGHUP, and what convertd has to say."""
    process.send_signal(signal.SIGHUP)
    process.wait_log(line)


def test_user():
    """Another user, two capabilities, none to be had again; each thread. And then it works as ever, reloads as well."""
    need("nft", "nftables")
    user = nobody()
    with near() as lab, Server(lab, 80) as server:
        write(lab, "keys", KEY, 0o640, user.pw_gid)
        path = write(lab, "convertd.conf", "listen [::]:443\n")
        with converter(lab, "--config", path, "--user", "nobody", port=443) as process:
            check("runs as root" not in process.log_text() and "can't be read" not in process.log_text(), process.log_text())
            kept = CAP_NET_BIND_SERVICE | CAP_NET_ADMIN
            for thread in status(process):
                equal((thread["Uid"].split(), thread["Gid"].split()), ([str(user.pw_uid)] * 4, [str(user.pw_gid)] * 4), "ids")
                check("0" not in thread["Groups"].split(), "groups: " + thread["Groups"])
                equal([int(thread[name], 16) for name in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb")],
                      [kept, kept, 0, 0, 0], "capabilities")
                equal(thread["NoNewPrivs"], "1", "NoNewPrivs")
                check(SANITIZED or thread["Seccomp"] == SECCOMP_MODE_FILTER, "Seccomp: " + thread["Seccomp"])
            converts(lab, server, 443)
            # a file for a reload, another low port, rules for it
            write(lab, "convertd.conf", "listen [::]:444\ncookie-key %s\n" % os.path.join(lab.directory, "keys"))
            reload(process, "reloaded: [::]:444 (MPTCP, Fast Open)")
            rules = lab.converter.run(["nft", "list", "ruleset"]).stdout
            check("dport 444" in rules and "dport 443" not in rules, rules)
            with Client(lab.client, lab.converter.addr4, port=444) as client:
                equal(client.send(server.connect()).answer()[4:7].hex(), "1e0503", "the answer without a cookie")
            write(lab, "convertd.conf", "listen [::]:443\nuser daemon\n")
            # what the command line says counts
            reload(process, "reloaded: [::]:443 (MPTCP, Fast Open)")
            check("takes a restart" not in process.log_text(), process.log_text())
            converts(lab, server, 443)


def test_group_and_no_rules():
    """A group of its own; without nftables rules there is no CAP_NET_ADMIN to keep. To change the user takes a restart."""
    nobody()
    with near() as lab, Server(lab, 80) as server:
        path = write(lab, "convertd.conf", "user nobody:daemon\nno-syn-window-fix\nhold-syn off\n")
        with converter(lab, "--config", path) as process:
            for thread in status(process):
                equal(int(thread["CapEff"], 16), CAP_NET_BIND_SERVICE, "CapEff")
                equal(thread["Gid"].split(), [str(grp.getgrnam("daemon").gr_gid)] * 4, "the group")
            converts(lab, server, protocol=TCP)
            write(lab, "convertd.conf", "user daemon\nno-syn-window-fix\nhold-syn off\n")
            reload(process, "--user has changed, which takes a restart")
            process.wait_log("reloaded")


def test_files_that_a_reload_cannot_read():
    """They are named at the start, with the remedy; the reload says it again and changes nothing."""
    nobody()
    with near() as lab, Server(lab, 80) as server:
        keys = write(lab, "keys", KEY, 0o600)
        with converter(lab, "--user", "nobody", "--cookie-key", keys) as process:
            warning, = [line for line in process.log_text().splitlines() if "can't be read" in line]
            check(keys in warning and "nobody" in warning and "chmod 640" in warning, warning)
            reload(process, "not reloaded")
            check("--cookie-key: \"%s\" can't be read" % keys in process.log_text(), process.log_text())
            with Client(lab.client, lab.converter.addr4) as client:
                equal(client.send(server.connect()).answer()[4:7].hex(), "1e0503", "the answer without a cookie")


def test_secrets_of_the_user():
    """A key that belongs to --user is right, for root at the start as well; another user's isn't."""
    user = nobody()
    with near() as lab:
        keys = write(lab, "keys", KEY, 0o600)
        os.chown(keys, user.pw_uid, user.pw_gid)
        with converter(lab, "--user", "nobody", "--cookie-key", keys) as process:
            reload(process, "reloaded")
            check("can't be read" not in process.log_text(), process.log_text())
        result = lab.converter.run([lab.build.program("convertd"), "--user", "daemon", "--cookie-key", keys], check=False)
        check(result.returncode == 2 and "belongs to user %d" % user.pw_uid in result.stderr, result)


def test_what_cannot_be_done():
    """No such user or group, no name, a directory of root's, and who isn't root: a line with the remedy."""
    user = nobody()
    with near() as lab:
        # where the build is, other users may have no way in
        program = os.path.join(lab.directory, "convertd")
        shutil.copy(lab.build.program("convertd"), program)
        for words, number, said in ((["no-such-user"], 2, "useradd"), (["nobody:no-such-group"], 2, "groupadd"),
                                    ([""], 2, "NAME:GROUP"), (["nobody:"], 2, "NAME:GROUP"), (["x" * 64], 2, "NAME:GROUP")):
            result = lab.converter.run([program, "--user", *words], check=False)
            check(result.returncode == number and result.stderr.startswith("convertd: --user: ") and said in result.stderr, result)
        result = lab.converter.run([program, "--user", "nobody", "--metrics", "unix:%s/x" % lab.directory], check=False)
        check(result.returncode == 1 and "chown it to that user" in result.stderr, result)
        need("setpriv", "util-linux")
        as_nobody = ["setpriv", "--reuid", user.pw_uid, "--regid", user.pw_gid, "--clear-groups", program]
        result = lab.converter.run([*as_nobody, "--user", "daemon"], check=False)
        check(result.returncode == 1 and "only root" in result.stderr, result)
        # an own name is no change; no rights, so no rules: it says so and works
        process = lab.start_listening(lab.converter, [*as_nobody, "--user", "nobody"], 1234, name="convertd")
        process.wait_log("ready")
        check("CAP_NET_ADMIN" in process.log_text() and "runs as root" not in process.log_text(), process.log_text())
        equal(process.stop(), 0, "the status")


def test_root_is_warned():
    """Root without --user: one line that says what to do. The filter and no_new_privs are there nevertheless."""
    with near() as lab:
        with converter(lab) as process:
            line, = [line for line in process.log_text().splitlines() if "runs as root" in line]
            check("--user" in line and "useradd" in line, line)
            for thread in status(process):
                equal(thread["NoNewPrivs"], "1", "NoNewPrivs")
                check(SANITIZED or thread["Seccomp"] == SECCOMP_MODE_FILTER, "Seccomp: " + thread["Seccomp"])
        with converter(lab, "--no-syscall-filter") as process:
            equal([thread["Seccomp"] for thread in status(process)][0], "0", "Seccomp")


def test_no_call_is_missed():
    """All that convertd does, traced: the filter refuses none of its system calls."""
    need("strace")
    nobody()
    if SANITIZED:
        raise Unsuitable("sanitizers need more system calls, and so there is no filter")
    with near() as lab, Server(lab, 80) as server:
        trace = os.path.join(lab.directory, "trace")
        path = write(lab, "convertd.conf", "log-level debug\n")
        # a directory as RuntimeDirectory= makes it
        place = os.path.join(lab.directory, "run")
        os.mkdir(place)
        os.chown(place, nobody().pw_uid, nobody().pw_gid)
        unix = os.path.join(place, "metrics.sock")
        process = lab.convertd(["--user", "nobody", "--config", path, "--request-timeout", "1", *metrics.OPTIONS,
                                "--metrics", "unix:" + unix], wrapper=["strace", "-f", "-o", trace])
        process.wait_log("ready")
        for protocol in (TCP, MPTCP):
            converts(lab, server, protocol=protocol)
            with Client(lab.client, lab.converter.addr4, protocol) as client:
                check(client.send(connect(lab.server.addr4, 9)).answer()[4:5] == b"\x1e", "no error")
            with Client(lab.client, lab.converter.addr4, protocol, "behind") as client:
                client.send(b"\x01")
                equal(client.end(), (b"", "closed"), "a client without a request")
        for page in ("/", "/status", "/metrics"):
            equal(metrics.get(lab.converter, page)[0], 200, page)
            equal(metrics.ask(lab.converter, b"GET %s HTTP/1.0\r\n\r\n" % page.encode(), path=unix)[0], 200, page)
        write(lab, "convertd.conf", "listen [::]:99\n")
        with open("/proc/%d/task/%d/children" % (process.pid, process.pid), encoding="ascii") as file:
            traced = int(file.read().split()[0])
        os.kill(traced, signal.SIGHUP)
        process.wait_log("reloaded: [::]:99")
        converts(lab, server, 99)
        os.kill(traced, signal.SIGTERM)
        equal(process.wait(20), 0, "the status")
        with open(trace, encoding="ascii", errors="replace") as file:
            text = file.read()
        check(text.count("accept4(") > 6 and "SECCOMP_SET_MODE_FILTER" in text, "the trace is no good")
        missed = [line for line in text[text.index("SECCOMP_SET_MODE_FILTER"):].splitlines() if "ENOSYS" in line or "SIGSYS" in line]
        # the C library tries it before clone()
        equal([line for line in missed if " clone3(" not in line], [], "system calls that were refused")


if __name__ == "__main__":
    main()
