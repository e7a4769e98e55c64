#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertd_privileges.py - convertd gives up privileges, and everything works without them"""
import contextlib
import errno
import grp
import os
import pwd
import re
import shutil
import signal

from convertlab import Lab, Link, Skip, Unsuitable, check, equal, main, metrics, need, sandbox, wait_until
from convertlab.peers import MPTCP, TCP, Client, Server, connect, converter, extended_header, listens

CAP_NET_BIND_SERVICE, CAP_NET_ADMIN = 1 << 10, 1 << 12
SECCOMP_MODE_FILTER = "2"
KEY = "5a" * 32 + "\n"
SANITIZED = bool(os.environ.get("SANITIZER_PRELOAD"))


@contextlib.contextmanager
def near(**options):
    """Yields a lab whose links are too fast to matter, and whose directory is open to other users."""
    if sandbox.in_user_namespace():
        raise Unsuitable("in a user namespace of an ordinary user there is only one user; run it as root")
    with Lab(wifi=Link(delay_ms=0.5), lte=None, core=Link(delay_ms=0.1), **options) as lab:
        os.chmod(lab.directory, 0o755)
        yield lab


def nobody():
    """Returns the user "nobody", which nearly each system has."""
    try:
        return pwd.getpwnam("nobody")
    except KeyError as error:
        raise Skip("there is no user \"nobody\"") from error


def status(number):
    """Returns [{name: value}, …] of /proc/PID/status for the threads of the process."""
    found = []
    for thread in os.listdir("/proc/%d/task" % number):
        with open("/proc/%d/task/%s/status" % (number, thread), encoding="ascii") as file:
            found.append(dict(re.findall(r"^(\w+):\s+(.*)$", file.read(), re.MULTILINE)))
    return found


def write(lab, name, text, mode=0o644, gid=0):
    """Writes a file in the lab's directory; returns its path."""
    path = os.path.join(lab.directory, name)
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    os.chown(path, 0, gid)
    os.chmod(path, mode)
    return path


def converts(lab, server, port=1234, protocol=MPTCP):
    """Makes a connection through the converter, from its beginning to its end."""
    with Client(lab.client, lab.converter.addr4, protocol, port=port) as client:
        extended_header(client.send(server.connect()).answer())
        server.accept().close()
        equal(client.end(), (b"", "closed"), "the end")


def reload(process, line):
    """Sends SIGHUP, and waits until convertd has logged this line."""
    process.send_signal(signal.SIGHUP)
    process.wait_log(line)


def test_user():
    """With --user each thread has that user, and no capabilities but two in the main process, for ever. Everything works, reloads, too."""
    need("nft", "nftables")
    user = nobody()
    with near() as lab, Server(lab, 80) as server:
        write(lab, "keys", KEY, 0o640, user.pw_gid)
        path = write(lab, "convertd.conf", "listen [::]:443\n")
        with converter(lab, "--config", path, "--user", "nobody", port=443) as process:
            check("runs as root" not in process.log_text() and "can't be read" not in process.log_text(), process.log_text())
            kept = CAP_NET_BIND_SERVICE | CAP_NET_ADMIN
            for thread in status(process.pid) + status(process.serving):
                equal((thread["Uid"].split(), thread["Gid"].split()), ([str(user.pw_uid)] * 4, [str(user.pw_gid)] * 4), "ids")
                check("0" not in thread["Groups"].split(), "groups: " + thread["Groups"])
                rights = kept if thread["Pid"] == str(process.pid) else 0
                equal([int(thread[name], 16) for name in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb")],
                      [rights, rights, 0, 0, 0], "capabilities")
                equal(thread["NoNewPrivs"], "1", "NoNewPrivs")
                check(SANITIZED or thread["Seccomp"] == SECCOMP_MODE_FILTER, "Seccomp: " + thread["Seccomp"])
            converts(lab, server, 443)
            # a reload reads a file of the group, and needs another low port, and rules for it
            write(lab, "convertd.conf", "listen [::]:444\ncookie-key %s\n" % os.path.join(lab.directory, "keys"))
            reload(process, "reloaded: " + listens("[::]:444"))
            rules = lab.converter.run(["nft", "list", "ruleset"]).stdout
            check("dport 444" in rules and "dport 443" not in rules, rules)
            with Client(lab.client, lab.converter.addr4, port=444) as client:
                equal(client.send(server.connect()).answer()[4:7].hex(), "1e0503", "the answer without a cookie")
            write(lab, "convertd.conf", "listen [::]:443\nuser daemon\n")
            # the command line takes precedence
            reload(process, "reloaded: " + listens("[::]:443"))
            check("takes a restart" not in process.log_text(), process.log_text())
            converts(lab, server, 443)


def test_group_and_no_rules():
    """--user may name a group; without nftables rules convertd doesn't keep CAP_NET_ADMIN. Another user takes a restart."""
    nobody()
    with near() as lab, Server(lab, 80) as server:
        path = write(lab, "convertd.conf", "user nobody:daemon\nhold-syn off\n")
        with converter(lab, "--config", path) as process:
            for thread in status(process.pid) + status(process.serving):
                equal(int(thread["CapEff"], 16), CAP_NET_BIND_SERVICE if thread["Pid"] == str(process.pid) else 0, "CapEff")
                equal(thread["Gid"].split(), [str(grp.getgrnam("daemon").gr_gid)] * 4, "the group")
            converts(lab, server, protocol=TCP)
            write(lab, "convertd.conf", "user daemon\nhold-syn off\n")
            reload(process, "--user has changed, which takes a restart")
            process.wait_log("reloaded")


def test_files_that_a_reload_cannot_read():
    """convertd names them at its start, with the remedy; a reload names them again, and changes nothing."""
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


def test_remedy_for_a_file_that_cannot_be_read():
    """A service learns which group needs the right. A person isn't told to take the file from the service."""
    need("setpriv", "util-linux")
    with near() as lab:
        # other users may have no access to the build directory
        program = os.path.join(lab.directory, "convertd")
        shutil.copy(lab.build.program("convertd"), program)
        keys = write(lab, "keys", KEY, 0o600)
        closed = os.path.join(lab.directory, "closed")
        os.mkdir(closed, 0o700)
        for number, path, said in ((1, keys, "; let its group read it: chgrp %s and chmod 640 it" % grp.getgrgid(1).gr_name),
                                   (1, os.path.join(closed, "keys"), "; chmod +x the directories above it"),
                                   (12345, keys, "; be root, or chgrp it to the service's group and chmod 640 it")):
            result = lab.converter.run(["setpriv", "--reuid", number, "--regid", number, "--clear-groups", program, "--cookie-key", path,
                                        "--check-config"], check=False)
            equal(result.returncode, 2, "the status: " + result.stderr)
            check(result.stderr.endswith("can't be read: %s%s\n" % (os.strerror(errno.EACCES), said)), result.stderr)


def test_secrets_of_the_user():
    """A key file may belong to --user, though root reads it at the start; another user's may not."""
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
    """Unknown users and groups, bad names, a directory of root's, and a user other than root: one line with the remedy."""
    user = nobody()
    with near() as lab:
        # other users may have no access to the build directory
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
        # a user may name itself; without privileges convertd has no rules, says so, and works
        process = lab.start_listening(lab.converter, [*as_nobody, "--user", "nobody"], 1234, name="convertd")
        process.wait_log("ready")
        check("CAP_NET_ADMIN" in process.log_text() and "runs as root" not in process.log_text(), process.log_text())
        equal(process.stop(), 0, "the status")


def test_root_is_warned():
    """Root without --user: one line with the remedy. The filter and no_new_privs are in force nevertheless."""
    with near() as lab:
        with converter(lab) as process:
            line, = [line for line in process.log_text().splitlines() if "runs as root" in line]
            check("--user" in line and "useradd" in line, line)
            for thread in status(process.pid) + status(process.serving):
                equal(thread["CapEff"] == "0" * 16, thread["Pid"] != str(process.pid), "CapEff " + thread["CapEff"])
                equal(thread["NoNewPrivs"], "1", "NoNewPrivs")
                check(SANITIZED or thread["Seccomp"] == SECCOMP_MODE_FILTER, "Seccomp: " + thread["Seccomp"])
        with converter(lab, "--no-syscall-filter") as process:
            equal([thread["Seccomp"] for thread in status(process.serving)][0], "0", "Seccomp")


def test_root_cannot_look_a_user_up():
    """A reload names a user for the first time: that takes a restart, but the rest of the file is in force."""
    nobody()
    with near() as lab, Server(lab, 80) as server:
        for options in ((), ("--no-landlock",)):
            path = write(lab, "convertd.conf", "")
            with converter(lab, "--config", path, *options) as process:
                write(lab, "convertd.conf", "user nobody\nlisten [::]:99\n")
                reload(process, "--user has changed, which takes a restart")
                process.wait_log("reloaded: " + listens("[::]:99"))
                converts(lab, server, 99)


def test_no_call_is_missed():
    """A trace of convertd at work: the filter refuses none of its system calls."""
    need("strace")
    nobody()
    if SANITIZED:
        raise Unsuitable("sanitizers need more system calls, and so there is no filter")
    with near() as lab, Server(lab, 80) as server:
        trace = os.path.join(lab.directory, "trace")
        path = write(lab, "convertd.conf", "log-level debug\n")
        # convertd's own directory, as RuntimeDirectory= makes it
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
                equal(client.end(), (b"", "reset"), "a client without a request")
        for page in ("/", "/status", "/metrics"):
            equal(metrics.get(lab.converter, page)[0], 200, page)
            equal(metrics.ask(lab.converter, b"GET %s HTTP/1.0\r\n\r\n" % page.encode(), path=unix)[0], 200, page)
        write(lab, "convertd.conf", "listen [::]:99\n")
        with open("/proc/%d/task/%d/children" % (process.serving, process.pid), encoding="ascii") as file:
            traced = int(file.read().split()[0])
        os.kill(traced, signal.SIGHUP)
        process.wait_log("reloaded: [::]:99")
        converts(lab, server, 99)
        os.kill(traced, signal.SIGTERM)
        equal(process.wait(20), 0, "the status")
        with open(trace, encoding="ascii", errors="replace") as file:
            text = file.read()
        check(text.count("accept4(") > 6 and "SECCOMP_SET_MODE_FILTER" in text, "the trace lacks calls")
        missed = [line for line in text[text.index("SECCOMP_SET_MODE_FILTER"):].splitlines() if "ENOSYS" in line or "SIGSYS" in line]
        # The C library tries clone3() before clone(); convertd finds out whether there is Landlock by calling it.
        known = ["clone3"] + ["landlock_create_ruleset"] * ("this kernel has no Landlock" in process.log_text())
        equal([line for line in missed if not any(call in line for call in known)], [], "system calls that were refused")


def descriptors_of(number):
    """Returns what each descriptor of a process refers to."""
    directory = "/proc/%d/fd" % number
    return {os.readlink(os.path.join(directory, name)) for name in os.listdir(directory)}


def holders(lab):
    """Returns the processes that have sockets of connected clients."""
    lines = lab.converter.run(["ss", "-HOtnp", "state", "established", "sport", "=", ":1234"]).stdout
    return {int(number) for number in re.findall(r"pid=(\d+)", lines)}


def test_surroundings():
    """convertd keeps no descriptors and no umask of the process that starts it. A reload finds files by relative names."""
    with near() as lab, Server(lab, 80) as server:
        secret = write(lab, "secret", "")
        write(lab, "convertd.conf", "cookie-key keys\n")
        write(lab, "keys", KEY, 0o600)
        script = "cd %s; umask 0; exec 9<%s; exec \"$@\"" % (lab.directory, secret)
        process = lab.convertd(["--config", "convertd.conf", "--metrics", "unix:%s/status.sock" % lab.directory],
                               wrapper=["bash", "-c", script, "sh"])
        process.wait_log("ready")
        for number in (process.pid, process.serving):
            check(secret not in descriptors_of(number), "an inherited descriptor: %s" % descriptors_of(number))
        check(not os.stat(lab.directory + "/status.sock").st_mode & 0o022, "others may write to its socket")
        # only the serving process has clients' sockets: in the main process they would stay open
        with Client(lab.client, lab.converter.addr4, delivery="behind") as client:
            client.send(server.connect()[:7])
            wait_until(lambda: process.serving in holders(lab), 10, "the client's socket")
            check(process.pid not in holders(lab), "the main process has the client's socket")
        write(lab, "keys", KEY.replace("5a", "5b"), 0o600)
        reload(process, "reloaded")
        with Client(lab.client, lab.converter.addr4) as client:
            equal(client.send(server.connect()).answer()[4:7].hex(), "1e0503", "the answer without a cookie")
        equal(process.stop(), 0, "the status")


def test_no_debugger_of_the_same_user():
    """Another process of convertd's user sees neither its memory nor its environment."""
    need("setpriv", "util-linux")
    user = nobody()
    if SANITIZED:
        raise Unsuitable("the leak sanitizer has to look at the process")
    with near() as lab, converter(lab, "--user", "nobody") as process:
        for number in (process.pid, process.serving):
            for name in ("mem", "environ", "maps"):
                result = lab.converter.run(["setpriv", "--reuid", user.pw_uid, "--regid", user.pw_gid, "--clear-groups", "head", "-c", "1",
                                            "/proc/%d/%s" % (number, name)], check=False)
                check("Permission denied" in result.stderr, "%s: %s" % (name, result))


def test_incomplete_sandbox():
    """On a kernel without Landlock or filters, convertd logs one line about it, and works."""
    need("strace")
    if SANITIZED:
        raise Unsuitable("there is no sandbox")
    for call, error, said in (("landlock_create_ruleset", "ENOSYS", "this kernel has no Landlock"),
                              ("landlock_create_ruleset", "EOPNOTSUPP", "Landlock is switched off"), ("seccomp", "EINVAL", "Invalid argument")):
        with near() as lab, Server(lab, 80) as server:
            inject = "inject=%s:error=%s" % (call, error)
            process = lab.convertd(wrapper=["strace", "-f", "-qq", "-o", "/dev/null", "-e", inject])
            process.wait_log("ready")
            line, = [line for line in process.log_text().splitlines() if "the sandbox is incomplete" in line]
            check(said in line, line)
            converts(lab, server)
            traced, = process.children()
            os.kill(traced, signal.SIGTERM)
            equal(process.wait(20), 0, "the status")
    with near() as lab, converter(lab, "--no-landlock", "--no-syscall-filter") as process:
        check("incomplete" not in process.log_text(), process.log_text())


def test_files_elsewhere():
    """A reload names files in new directories: convertd logs the reason for its refusal, and the remedy; with --no-landlock it reloads."""
    if SANITIZED:
        raise Unsuitable("there is no sandbox")
    with near() as lab:
        os.mkdir(lab.directory + "/conf")
        os.mkdir(lab.directory + "/elsewhere")
        keys = write(lab, "elsewhere/keys", KEY, 0o600)
        for options, line in (((), "not reloaded"), (("--no-landlock",), "reloaded: ")):
            path = write(lab, "conf/convertd.conf", "")
            process = lab.convertd(["--config", path, *options])
            process.wait_log("ready")
            if "incomplete" in process.log_text():
                raise Skip("this kernel has no Landlock")
            for text in ("cookie-key %s\n" % keys, "metrics unix:%s/elsewhere/sock\n" % lab.directory):
                write(lab, "conf/convertd.conf", text)
                before = len(process.log_text())
                process.send_signal(signal.SIGHUP)
                wait_until(lambda: line in process.log_text()[before:], 5, "\"%s\"" % line)  # pylint: disable=W0640
                if not options:
                    wait_until(lambda: "start convertd anew" in process.log_text()[before:], 5, "the remedy")  # pylint: disable=W0640
            equal(process.stop(), 0, "the status")


def test_congestion_that_is_not_for_all():
    """net.ipv4.tcp_allowed_congestion_control forbids an algorithm to unprivileged processes: the main process sets it, if configured."""
    with open("/proc/sys/net/ipv4/tcp_allowed_congestion_control", encoding="ascii") as allowed, \
            open("/proc/sys/net/ipv4/tcp_available_congestion_control", encoding="ascii") as available:
        names = set(available.read().split()) - set(allowed.read().split())
    if not names:
        raise Skip("this kernel has no congestion control that only privileged processes may use")
    name = sorted(names)[0]
    with near() as lab, Server(lab, 80) as server:
        path = write(lab, "convertd.conf", "")
        with converter(lab, "--config", path, "--hold-syn", "off") as process, contextlib.ExitStack() as stack:
            for text, found in (("", False), ("congestion-client %s\ncongestion-server %s\n" % (name, name), True)):
                write(lab, "convertd.conf", text)
                before = len(process.log_text())
                process.send_signal(signal.SIGHUP)
                wait_until(lambda: "reloaded: " in process.log_text()[before:], 5, "a reload")  # pylint: disable=W0640
                client = stack.enter_context(Client(lab.client, lab.converter.addr4, TCP))
                extended_header(client.send(server.connect()).answer())
                stack.enter_context(server.accept())
                sockets = lab.converter.run(["ss", "-tinH", "sport", "=", ":1234", "or", "dport", "=", ":80"]).stdout
                equal(sockets.count(" %s " % name), 2 if found else 0, "sockets with it among\n" + sockets)


def attacked(process):
    """Returns {attempt of attack.c: the name of the error, or "ok"}."""
    found = re.findall(r"^attack: (.*): (\d+)$", process.log_text(), re.MULTILINE)
    return {name: errno.errorcode[int(number)] if int(number) else "ok" for name, number in found}


def host_of(lab):
    """Returns the state that an attacker would change: other programs' rules, and whether lo is up."""
    rules = lab.converter.run(["nft", "list", "table", "inet", "firewall"]).stdout
    return rules, "UP" in lab.converter.run(["ip", "-o", "link", "show", "lo"]).stdout.split("<")[1].split(">")[0].split(",")


def library(lab):
    """Returns the path of the library made from attack.c."""
    path = os.path.join(lab.build.directory, ".libs", "libattack.so")
    if not os.path.exists(path):
        raise Skip("%s is not there; run \"make check TESTS=\"" % path)
    return path


# The error of each attempt of attack.c: from the filter, for want of capabilities, or from Landlock.
FILTER, RIGHTS, FILES = {"ENOSYS"}, {"EPERM"}, {"EACCES"}
ATTACKS = {
    "a socket to netfilter": FILTER, "flush ruleset": RIGHTS, "take a queue": RIGHTS, "lo down": RIGHTS, "ss --kill": FILTER,
    "rules for another port": {"EACCES"}, **{name: FILTER for name in (
        "AF_VSOCK", "AF_PACKET", "AF_ALG", "AF_KEY", "AF_TIPC", "AF_XDP", "raw IP", "UDP", "SCTP",
        "NETLINK_XFRM", "SO_ATTACH_FILTER", "RWX memory", "memory made executable", "memfd_create", "write a file", "write a sysctl",
        "signal the main process", "signal it as a thread", "its limits", "another user", "io_uring", "a process")},
    "port 22": {"EACCES"}, "IP_TRANSPARENT": RIGHTS, "SO_MARK": RIGHTS | FILTER,
    "read /etc/passwd": FILES, "read /proc/1/environ": FILES, "remove a file": FILES,
}


def test_attack_from_within():
    """An attacker in the serving process, even root's, can't reach rules, devices, other sockets, executable memory, files or processes."""
    need("nft", "nftables")
    if SANITIZED:
        raise Unsuitable("sanitizers need more, and so there is no sandbox")
    for user in ((), ("--user", "nobody")):
        with near() as lab, Server(lab, 80) as server:
            lab.converter.run(["nft", "add table inet firewall"])
            before = host_of(lab)
            victim = write(lab, "victim", "", 0o666)
            os.chmod(lab.directory, 0o777)
            process = lab.convertd([*user, "--workers", "1"], env={"LD_PRELOAD": library(lab), "ATTACK_FILE": victim})
            process.wait_log("ready: ")  # before that the serving process asks the main process, and would get the attack's answers
            converts(lab, server)
            process.wait_log("attack: the end: 0")
            found = attacked(process)
            found.pop("the end")
            for name, result in found.items():
                # without Landlock, convertd has warned that it can reach all files of its user
                if ATTACKS[name] is not FILES or "convertd can reach all files" not in process.log_text():
                    check(result in ATTACKS[name], "%s: %s (%s)" % (name, result, user))
            equal(set(found), set(ATTACKS), "attempts")
            equal(host_of(lab), before, "rules, and lo")
            # convertd still serves
            converts(lab, server)
            equal(process.stop(), 0, "the status")


def test_garbage_for_the_main_process():
    """The serving process sends a message that convertd never sends: convertd ends by SIGKILL, and a service manager would restart it."""
    if SANITIZED:
        raise Unsuitable("sanitizers must be the first preloaded library")
    with near() as lab, Server(lab, 80) as server:
        process = lab.convertd(["--workers", "1"], env={"LD_PRELOAD": library(lab), "ATTACK_GARBAGE": 1, "ATTACK_FILE": "/nowhere"})
        with Client(lab.client, lab.converter.addr4) as client:
            client.send(server.connect())
            equal(process.wait(10), -signal.SIGKILL, "the status")
        check("sends an unknown message" in process.log_text(), process.log_text())


if __name__ == "__main__":
    main()
