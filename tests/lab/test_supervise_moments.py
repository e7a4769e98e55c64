#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_supervise_moments.py - events while a supervised program's connect() waits have the same effect as without a supervisor

Each test compares the transcript of moments.c with its transcript without convertize. The links are slow, so that there is time for an
event before the connection is made.
"""
import contextlib
import os
import shutil
import signal

from convertlab import Lab, Link, Unsuitable, check, equal, kernel, long, main, need, repetitions, side_by_side, wait_until, waits
from convertlab.programs import c_program, go_program
from convertlab.supervised import first_lost

PORT, SILENT, CLOSED = 7, 11, 9
OVER = kernel.supervised_verdict()
CONNECT = {"x86_64": "42", "aarch64": "203"}.get(os.uname().machine)  # the number of connect()
INTERRUPTIONS = ("alarm", "again", "restart", "thread", "timeout")
SILENCE = "table inet silent {\n chain input {\n  type filter hook input priority 0;\n  tcp dport %d drop\n }\n}\n" % SILENT


class Place:
    """A lab with an echo server and a silent port."""

    def __init__(self, lab):
        self.lab = lab
        self.program = c_program("moments-static", "static/moments.c", flags=["-static"])
        self.launcher = [lab.build.program("convertize"), "--config", "none", "--method", "supervise", "--"]
        lab.server.run(["nft", "-f", "-"], input=SILENCE)

    def env(self, known, **variables):
        """The environment of convertize. known: whether it has a cache."""
        cache = self.lab.directory if known else "none"
        return {"CONVERT_ADDR": self.lab.converter.addr4, "CONVERT_CACHE": cache, "CONVERT_LOG": "-",
                "CONVERT_LIBRARY": self.lab.build.shim, **variables}

    def words(self, moment, port=PORT, *more):
        return [self.program, self.lab.server.addr4, port, moment, *more]

    def run(self, moment, port=PORT, known=True, more=(), **variables):
        """Runs the program under a supervisor; returns (its output, the log)."""
        got = self.lab.client.run([*self.launcher, *self.words(moment, port, *more)], env=self.env(known, **variables), check=False)
        return got.stdout, got.stderr

    def as_directly(self, moment, port=PORT, known=True, more=(), **variables):
        """Compares its outputs with and without a supervisor; returns the log."""
        (said, log), direct = side_by_side(lambda run: run(), (
            lambda: self.run(moment, port, known, more, **variables),
            lambda: self.lab.client.run(self.words(moment, port, *more), check=False).stdout))
        equal(said, direct, "%s, port %d, %s: %s" % (moment, port, "known" if known else "unknown", log))
        return log


@contextlib.contextmanager
def place(delay_ms=150):
    """A Place whose converter is known."""
    if os.environ.get("SANITIZER_PRELOAD"):
        raise Unsuitable("not under sanitizers: the programs are static")
    with Lab(wifi=Link(delay_ms=25), lte=None, core=Link(delay_ms=delay_ms)) as lab:
        lab.convertd()
        lab.echo()
        here = Place(lab)
        check(OVER in here.run("wait")[1], "the first connection")
        yield here


@long
@waits
@kernel.needs("fastopen")
def test_interrupted():
    """A signal or SO_SNDTIMEO ends the call as without a supervisor (or not, with SA_RESTART), and the socket goes on connecting: by the
    converter if it is known to take blind requests, otherwise directly."""
    with place(delay_ms=300) as here:
        for moment in INTERRUPTIONS:
            # an answer ends the doubt that the refused connection before has left, so that the next request may be blind
            check(OVER in here.run("wait")[1], "the connection before " + moment)
            check("converted over MPTCP, request in the SYN, blindly" in here.as_directly(moment), moment)
            check(": direct, the program waits no longer" in here.as_directly(moment, known=False), moment)
            check("direct: CONVERT_BYPASS" in here.as_directly(moment, CONVERT_BYPASS=here.lab.server.addr4), moment)
            here.as_directly(moment, CLOSED)


@long
@waits
@kernel.needs("fastopen")
def test_interrupted_and_lost():
    """The supervisor makes the interrupted connection's request again while a second connect() waits for it in the kernel."""
    with place(delay_ms=500) as here:  # longer than the converter withholds a SYN
        for moment in ("again", "restart", "blocking"):
            log = here.as_directly(moment)
            check("asked again" in log, moment + log)


def test_fallback_none():
    """If direct connections are forbidden, a call that ends early leaves a socket that isn't connected, and says why it ended."""
    with place(delay_ms=300) as here:
        for moment, error in (("alarm", "Interrupted system call"), ("timeout", "Connection timed out")):
            said, log = here.run(moment, known=False, CONVERT_FALLBACK="none")
            check("connect: %s\n" % error in said and "echo: hello" not in said, said + log)
            check("direct" not in log, log)


def test_cancelled():
    """A thread that waits for a silent server can be cancelled at once."""
    with place() as here:
        here.as_directly("cancel", SILENT)


def test_blocking_again():
    """A blocking connect() waits for the connection that a non-blocking one has begun."""
    with place() as here:
        for known in (True, False):
            here.as_directly("blocking", known=known)
        here.as_directly("blocking", CONVERT_BYPASS=here.lab.server.addr4)


def test_another_file():
    """Another thread closes the socket and opens a file with its number: the file keeps that number when connect() ends."""
    with place(delay_ms=300) as here:
        file = os.path.join("/run/convertlab", "reopened")
        for variables in ({}, {"CONVERT_BYPASS": here.lab.server.addr4}, {"CONVERT_ADDR": here.lab.converter.addr4 + ":9"}):
            here.as_directly("reopen", more=(file,), **variables)


@long
def test_no_foreign_byte():
    """Other threads, and programs that they execute, never read a converter's response, even where each request has one."""
    with place() as here:
        for variables in ({"CONVERT_SILENCE": "never"}, {}):
            for _ in range(repetitions(3)):
                log = here.as_directly("reader", known=False, **variables)
                check(OVER in log, log)
                said, log = here.run("exec", known=False, **variables)
                equal(said, "", log)


def test_response_behind_a_lost_syn():
    """Nor do other threads read a response that comes because the SYN was lost."""
    with place(delay_ms=20) as here:
        for _ in range(repetitions(3)):
            here.lab.converter.run(["nft", "-f", "-"], input=first_lost(1))
            here.as_directly("reader")
            here.lab.converter.run(["nft", "delete", "table", "inet", "lost"])


def test_many_descriptors():
    """The supervisor replaces a socket under each of its 40 descriptors."""
    with place() as here:
        here.as_directly("dups")
        here.as_directly("dups", CONVERT_BYPASS=here.lab.server.addr4)


def test_arguments():
    """Calls with wrong arguments get the kernel's errno."""
    with place() as here:
        here.as_directly("arguments")
        here.as_directly("arguments", CONVERT_BYPASS=here.lab.server.addr4)


QEMU = "qemu-aarch64-static"
# runs a program with a list of emulators of its own (binfmt_misc), with one for programs of arm64 (ELF, e_machine 183)
WITH_EMULATOR = r"""mount -t binfmt_misc none "$1" || exit 77
printf '%%s' ':convertlab:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:%s:' >"$1/register" || exit 77
shift
exec "$@"
"""


@long
def test_emulated():
    """A program for another architecture is converted under an emulator, whether the command names it or the kernel knows it."""
    need(QEMU, "qemu-user-static")
    program = go_program("moments-go-arm64", "task.go", "net.go", GOARCH="arm64")
    with place(delay_ms=20) as here:
        task = [program, "tally", here.lab.server.addr4, "echo", 8, 4]
        directory = os.path.join("/run/convertlab", "binfmt")
        os.makedirs(directory, exist_ok=True)
        known = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", WITH_EMULATOR % shutil.which(QEMU), "sh", directory]
        launcher = [word for word in here.launcher if word not in ("--method", "supervise")]
        for words in ([*launcher, QEMU, *task], [*known, *launcher, *task]):
            run = here.lab.client.run(words, env=here.env(True), check=False)
            if run.returncode == 77 and words[0] == "unshare":
                raise Unsuitable("this kernel has one list of emulators for all (Linux 6.7 has one for each user namespace)")
            equal(run.returncode, 0, run.stdout + run.stderr)
            check("done=8 failed=0 foreign=0 peers=0" in run.stdout, run.stdout + run.stderr)
            equal(run.stderr.count(OVER), 8, run.stderr)
            check("it is supervised" in run.stderr, run.stderr)


def state_of(pid):
    """A process's state, as /proc has it: "T" is stopped."""
    with open("/proc/%d/stat" % pid, encoding="utf-8") as file:
        return file.read().rsplit(")", 1)[1].split()[0]


def call_of(pid):
    """The number of the system call that a process waits in, as /proc has it."""
    kernel.need("calls")
    with open("/proc/%d/syscall" % pid, encoding="ascii") as file:
        return file.read().split()[0]


def find(program):
    """The process that runs a program of the tests."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.readlink("/proc/%s/exe" % name) == program:
                return int(name)
    return None


def test_stopped():
    """While its connect() waits, a program can be stopped and continued, and ended by SIGQUIT (^\\)."""
    if not CONNECT:
        raise Unsuitable("the number of connect() is another one on this machine")
    with place() as here:
        process = here.lab.client.popen([*here.launcher, *here.words("wait", SILENT)], env=here.env(True))
        pid = wait_until(lambda: find(here.program), 10, "the program")
        wait_until(lambda: call_of(pid) == CONNECT, 10, "its connect()")
        os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: state_of(pid) == "T", 5, "its stop")
        wait_until(lambda: state_of(process.pid) == "T", 5, "the stop of its front")
        os.kill(process.pid, signal.SIGCONT)  # the front hands it on
        wait_until(lambda: state_of(pid) != "T", 5, "it to go on")
        os.kill(pid, signal.SIGQUIT)
        equal(process.wait(10), -signal.SIGQUIT, "the end")


@long
@waits
@kernel.needs("fastopen")
def test_interrupted_with_two_paths():
    """A call ends while the supervisor probes the converter's other address: the probe stays with the blind request that goes on.

    The supervisor doesn't crash, and converts the next connections.
    """
    with place(delay_ms=300) as here:
        both = "%s,%s" % (here.lab.converter.addr4, here.lab.converter.addr6)
        for moment in INTERRUPTIONS:
            log = here.as_directly(moment, CONVERT_ADDR=both)
            check("request in the SYN, blindly" in log and "the supervisor was killed" not in log, "%s: %s" % (moment, log))


if __name__ == "__main__":
    main()
