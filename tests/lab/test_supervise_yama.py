#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_supervise_yama.py - supervision where the Yama LSM restricts who may look into a process

Yama's sysctl holds for the whole machine, and its highest value until the next boot. So these tests don't set it: they try the present
value, if there is one, and check the messages for each value with a file in its place. By hand, on a disposable
machine: for value in 0 1 2 3; do sysctl kernel.yama.ptrace_scope=$value; tests/lab/test_supervise_yama.py; done
"""
import errno
import os

from convertlab import Unsuitable, check, equal, kernel, main, wait_until
from convertlab.programs import c_program
from convertlab.supervised import Run, bench, converted

SCOPE = "/proc/sys/kernel/yama/ptrace_scope"
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
# may an ordinary user, and root, look into a descendant? by the sysctl's value
ALLOWED = {0: (True, True), 1: (True, True), 2: (False, True), 3: (False, False)}
# convertize's words if it is forbidden, by the sysctl's value; None: this kernel has no Yama
SAID = {
    None: ("run a container with --cap-add SYS_PTRACE",),
    0: ("run a container with --cap-add SYS_PTRACE",),
    1: ("run a container with --cap-add SYS_PTRACE",),
    2: ("kernel.yama.ptrace_scope is 2", "set it to 1"),
    3: ("kernel.yama.ptrace_scope is 3", "until the next boot"),
}
PROCESS_VM_READV = 310  # amd64's number


def scope():
    """The sysctl's value."""
    if not os.path.exists(SCOPE):
        raise Unsuitable("this kernel has no Yama: there is no " + SCOPE)
    with open(SCOPE, encoding="ascii") as file:
        return int(file.read())


def users():
    """(user, the words that run a command as this user, whether supervision works with the sysctl's present value)."""
    return zip(("an ordinary user", "root"), (NOBODY, []), ALLOWED[scope()])


def test_present_value():
    """By the value, convertize converts a program, or refuses it before it runs; with --force it runs unconverted."""
    scope()
    with bench() as place:
        os.chmod(place.place, 0o755)
        words = [place.client, place.lab.server.addr4, "7"]
        for who, become, works in users():
            if works:
                # if a program waits in poll(2), the supervisor also traces its threads by ptrace(2)
                for way in ([], ["nonblocking"], ["poll"], ["threads=8", "nonblocking"]):
                    run = Run(place.lab.client.run([*become, place.convertize, *words, *way], env=place.env(), check=False))
                    converted(run, place.lab.server.addr4, count=8 if "threads=8" in way else 1)
                continue
            run = Run(place.lab.client.run([*become, place.convertize, *words], env=place.env(), check=False))
            equal((run.status, run.stdout), (125, ""), "%s: %s" % (who, run.stderr))
            check(all(text in run.stderr for text in SAID[scope()]), run.stderr)
            run = Run(place.lab.client.run([*become, place.convertize, "--force", *words], env=place.env(), check=False))
            equal((run.status, run.lines[0].get("answer")), (0, "hello"), "%s, --force: %s" % (who, run.stderr))


def test_orphans():
    """A program whose parent has ended becomes the supervisor's child, so that the supervisor may still look into it."""
    scope()
    with bench() as place:
        os.chmod(place.place, 0o777)
        for who, become, works in users():
            if not works:
                continue
            log = os.path.join(place.place, "orphan.log")
            script = "(setsid sh -c 'while ! [ -e %s.go ]; do sleep 0.05; done; %s %s 7' >/dev/null 2>&1 &) ; exit 5" % (
                log, place.client, place.lab.server.addr4)
            run = Run(place.lab.client.run([*become, place.convertize, "--method", "supervise", "sh", "-c", script],
                                           env=place.env(CONVERT_LOG=log), check=False))
            equal(run.status, 5, "%s: %s" % (who, run.stderr))
            open(log + ".go", "w", encoding="ascii").close()
            wait_until(lambda: os.path.exists(log) and kernel.supervised_verdict() in open(log, encoding="utf-8").read(), 10, who + "'s orphan")
            for path in (log, log + ".go"):
                os.unlink(path)


def test_messages():
    """The line names the value that forbids it, and a remedy that works with this value; and Yama only if it is the cause."""
    if os.uname().machine != "x86_64":
        raise Unsuitable("the number of the system call is amd64's")
    deny = c_program("deny", "deny.c")
    with bench() as place:
        for value, texts in SAID.items():
            # only this command sees another /proc/sys/kernel, with nothing but Yama's file in it, if any
            script = "mount -t tmpfs none /proc/sys/kernel && { [ $1 = None ] || { mkdir /proc/sys/kernel/yama && echo $1 >%s; }; } && " \
                     "shift && exec \"$@\"" % SCOPE
            run = Run(place.lab.client.run(["unshare", "--mount", "sh", "-c", script, "sh", value, deny, PROCESS_VM_READV, errno.EPERM,
                                            place.convertize, "--method", "supervise", "echo", "it has run"], env=place.env(), check=False))
            what = "ptrace_scope %s: %s%s" % (value, run.stdout, run.stderr)
            equal((run.status, run.stdout, len(run.stderr.splitlines())), (125, "", 1), what)
            check(all(text in run.stderr for text in texts) and "--method preload" in run.stderr, what)
            equal("yama" in run.stderr, value in (2, 3), what)


if __name__ == "__main__":
    main()
