#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_supervise.py - the supervisor: programs that no library reaches are converted, and notice as little of it"""
import contextlib
import errno
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import time

from convertlab import Lab, LabError, Link, Skip, Unsuitable, check, equal, main, need, repetitions, wait_until
from convertlab.build import SRCDIR
from convertlab.programs import c_program

SOURCE = os.path.join(SRCDIR, "tests/lab/apps/supervised.c")
TCP, MPTCP = "6", "262"
PORT, CLOSED = "7", "9"

# compiler and flags for each kind of program
KINDS = {
    "static": ["gcc", "-static"],
    "musl": ["musl-gcc", "-static"],
    "i386": ["i686-linux-gnu-gcc", "-static"],
    "dynamic": ["gcc"],
}


def build(kind, place):
    """Compiles the client; returns its path."""
    compiler, *flags = KINDS[kind]
    need(compiler)
    path = os.path.join(place, "client-" + kind)
    said = subprocess.run([compiler, "-O1", "-pthread", *flags, "-o", path, SOURCE], stderr=subprocess.PIPE, text=True, check=False)
    if said.returncode:
        raise Skip("%s: %s; on Debian: apt-get install gcc-i686-linux-gnu libc6-dev-i386-cross musl-tools libc6-dev" % (" ".join(KINDS[kind]), said.stderr[-300:]))
    return path


class Run:
    """What a program under convertize has said."""

    def __init__(self, result):
        self.status = result.returncode
        self.lines = [dict(re.findall(r"(\w+)=(.*?)(?= \w+=|$)", line)) for line in result.stdout.splitlines()]
        self.stdout, self.stderr = result.stdout, result.stderr
        self.log = [line for line in result.stderr.splitlines() if line.startswith("libconvert: ")]

    def logged(self, text):
        """How many lines of the log have a text."""
        return sum(text in line for line in self.log)


class Bench:
    """A lab with a converter, an echo server, and the client."""

    def __init__(self, lab, kind="static"):
        self.lab = lab
        self.place = os.path.join("/run/convertlab", "programs")
        os.makedirs(self.place, exist_ok=True)
        self.client = build(kind, self.place)
        self.convertize = lab.build.program("convertize")

    def env(self, **variables):
        """What convertize is run with."""
        return {"CONVERT_ADDR": self.lab.converter.addr4, "CONVERT_CACHE": "none", "CONVERT_LOG": "-",
                "CONVERT_LIBRARY": self.lab.build.shim, **variables}

    def run(self, *words, options=(), env=None, **more):
        """Runs any command under convertize."""
        full = {name: value for name, value in self.env(**(env or {})).items() if value is not None}
        return Run(self.lab.client.run([self.convertize, *options, *words], env=full, check=False, **more))

    def connect(self, *words, to=None, port=PORT, **more):
        """Runs the client."""
        return self.run(self.client, to or self.lab.server.addr4, port, *words, **more)

    def directly(self, *words, to=None, port=PORT):
        """Runs the client without convertize."""
        return Run(self.lab.client.run([self.client, to or self.lab.server.addr4, port, *words], check=False))


@contextlib.contextmanager
def bench(kind="static", converter=True, wifi=None, core=None):
    """A Bench in a lab."""
    if os.environ.get("SANITIZER_PRELOAD"):
        raise Unsuitable("not under sanitizers: the programs are static")
    with Lab(wifi=wifi or Link(delay_ms=5), lte=None, core=core or Link(delay_ms=5)) as lab:
        if converter:
            lab.convertd()
        lab.echo()
        yield Bench(lab, kind)


def converted(run, to, count=1, shown=MPTCP):
    """The connections are right, and go by way of the converter, over MPTCP. Preloaded programs see TCP's protocol."""
    equal(run.status, 0, run.stdout + run.stderr)
    equal([line.get("answer") for line in run.lines], ["hello"] * count, run.stdout + run.stderr)
    equal({line["peer"] for line in run.lines}, {"%s:7" % to}, "the peers")
    equal({line["protocol"] for line in run.lines}, {shown}, run.stdout + run.stderr)
    equal(run.logged("converted over MPTCP"), count, run.stderr)


WAYS = ([], ["nonblocking"], ["poll"], ["dup"], ["dup", "nonblocking"], ["cloexec"], ["bind"], ["options"], ["options", "nonblocking"],
        ["fastopen"], ["fastopen", "nonblocking"], ["sendmsg"], ["threads=8"], ["threads=8", "nonblocking"])


def ways(kind):
    """Each way to connect, of one kind of program."""
    with bench(kind) as place:
        for way in WAYS:
            if way != ["bind"] or kind == "static":
                run = place.connect(*way)
                converted(run, place.lab.server.addr4, count=8 if "threads=8" in way else 1)
                equal({line["cloexec"] for line in run.lines}, {"1" if "cloexec" in way else "0"}, "FD_CLOEXEC")
                equal({line["again"] for line in run.lines}, {"0" if {"nonblocking", "poll"} & set(way) else "EISCONN"},
                      "another connect(), after %s" % way)
        first, *rest = run.stderr.splitlines()
        check("it is supervised" in first and not [line for line in rest if not line.startswith("libconvert: ")], run.stderr)


def test_static():
    """A static program of glibc's."""
    ways("static")


def test_musl():
    """A static program of musl's."""
    ways("musl")


def test_i386():
    """A program for another machine, whose calls have other numbers and layouts."""
    ways("i386")


def test_server_sees_the_converter():
    """The converter is the server's peer, and no packet goes to the server from the client itself."""
    with bench() as place:
        with place.lab.capture(place.lab.server, "core") as capture:
            converted(place.connect(), place.lab.server.addr4)
        equal({packet.src for packet in capture.packets() if packet.dport == 7}, {"10.3.0.1"}, "who has connected")


def test_errors():
    """A refused port has the errno of a direct connection, blocking and not."""
    with bench() as place:
        for way in WAYS:
            if "threads=8" not in way and "bind" not in way:
                run, direct = place.connect(*way, port=CLOSED), place.directly(*way, port=CLOSED)
                equal((run.status, run.lines[0]["error"]), (1, direct.lines[0]["error"]), "%s: %s" % (way, run.stderr))
                check(run.logged("failed: Connection Reset"), run.stderr)


def test_direct_destinations():
    """What isn't converted is plain TCP under the program's descriptors: in its epoll instances, with its options and address."""
    with bench() as place:
        place.lab.echo(host=place.lab.client)
        for way in WAYS:
            run, direct = place.connect(*way, to="127.0.0.1"), place.directly(*way, to="127.0.0.1")
            equal(run.status, 0, "%s: %s" % (way, run.stderr))
            for ours, natives in zip(run.lines, direct.lines):
                for name in set(natives) - {"local", "call_ms", "connected_ms"}:
                    equal(ours.get(name), natives[name], "%s: %s, as without convertize; %s" % (way, name, run.stdout + run.stderr))
            check(run.logged("direct: the destination is this host"), run.stderr)
        run = place.connect(env={"CONVERT_BYPASS": place.lab.server.addr4})
        equal((run.lines[0]["answer"], run.lines[0]["protocol"]), ("hello", TCP), run.stderr)


def test_fallback():
    """Without a converter: a direct connection over plain TCP, or an error. A call that doesn't block takes CONVERT_TIMEOUT at most."""
    with bench(converter=False) as place:
        for way in ([], ["nonblocking"], ["fastopen"]):
            run = place.connect(*way)
            equal((run.lines[0].get("answer"), run.lines[0].get("protocol")), ("hello", TCP), run.stdout + run.stderr)
            check(run.logged("direct, the converter fails"), run.stderr)
            run = place.connect(*way, options=["--fallback", "none"])
            equal((run.status, run.lines[0].get("error")), (1, "Connection refused"), run.stdout + run.stderr)
        silent = "10.9.0.77"  # nobody has this address
        run = place.connect("nonblocking", env={"CONVERT_ADDR": silent, "CONVERT_TIMEOUT": "1"})
        equal((run.lines[0].get("answer"), run.lines[0].get("protocol")), ("hello", TCP), run.stdout + run.stderr)


def test_several_converters():
    """The first one refuses connections: the second one is asked, on the same socket."""
    with bench() as place:
        closed = "%s:%s" % (place.lab.server.addr4, CLOSED)
        run = place.connect("nonblocking", env={"CONVERT_ADDR": "%s,%s" % (closed, place.lab.converter.addr4),
                                                "CONVERT_BYPASS": "10.99.0.0/16"}, to=place.lab.server.addr4)
        # the server's host is a converter's now, and so it isn't converted
        equal(run.lines[0]["answer"], "hello", run.stderr)
        closed = "%s:%s" % (place.lab.converter.addr4, CLOSED)
        run = place.connect("nonblocking", env={"CONVERT_ADDR": "%s,%s" % (closed, place.lab.converter.addr4)})
        converted(run, place.lab.server.addr4)
        check(run.logged("converter %s: Connection refused" % closed), run.stderr)


def test_losses():
    """At 5 % loss each connection succeeds, and has the server's bytes and no others. None is direct on an MPTCP socket."""
    with bench(wifi=Link(delay_ms=5, loss=0.05)) as place:
        for way in ([], ["nonblocking"]):
            count = 20 * repetitions(1)
            run = place.connect("threads=%d" % count, *way, timeout=120)
            equal([line.get("answer") for line in run.lines], ["hello"] * count, run.stdout + run.stderr)
            direct = run.logged(": direct")
            equal(sum(line["protocol"] == MPTCP for line in run.lines), run.logged("converted over MPTCP"), run.stderr)
            check(run.logged("converted over ") + direct == count, run.stderr)


def test_blind():
    """Once a converter is known to take blind requests, a connect() that doesn't wait returns at once, in any process. Refusals are the
    network's. A call that waits is answered by the SYN+ACK, silently."""
    with bench() as place:
        cache = {"CONVERT_CACHE": place.lab.directory}
        converted(place.connect(env=cache), place.lab.server.addr4)
        run = place.connect("threads=8", "nonblocking", env=cache)
        converted(run, place.lab.server.addr4, count=8)
        equal(run.logged("request in the SYN, blindly"), 8, run.stderr)
        run = place.connect("nonblocking", env=cache, port=CLOSED)
        equal((run.status, run.lines[0].get("error")), (1, "Connection refused"), run.stdout + run.stderr)
        run = place.connect(env=cache)
        converted(run, place.lab.server.addr4)
        check(run.logged("server confirmed by the SYN+ACK, silently"), run.stderr)
        run = place.connect("nonblocking", env={**cache, "CONVERT_SILENCE": "never"})
        converted(run, place.lab.server.addr4)
        check(not run.logged("blindly"), run.stderr)


def test_refused():
    """Servers that refuse say nothing against blind requests, whether others have succeeded before or not: connect() returns at once."""
    count = 40
    tally = c_program("streams-static", "static/tally.c", flags=["-static"])
    for known in (True, False):
        with bench(wifi=Link(delay_ms=25)) as place:  # refused sooner than the supervisor looks again
            cache = {"CONVERT_CACHE": place.lab.directory}
            if known:
                converted(place.connect(env=cache), place.lab.server.addr4)
            run = place.run(tally, place.lab.server.addr4, "chorus", str(count), "2", "epoll", env=cache, options=["--method", "supervise"])
            check("errno-%d=%d" % (errno.ECONNREFUSED, count) in run.stdout, run.stdout + run.stderr)
            # with nothing known before, the first ones wait until the converter was asked
            check(run.logged("blindly") >= (count if known else count - 5), run.stderr)


def test_blind_by_another_family():
    """A converter that is known by an address of the other family than the program's sockets have is asked blindly as well, and a lost SYN is
    made good: the socket that stands in for the program's is under its descriptors, and registered, before connect() returns."""
    count = 4
    with bench() as place:
        env = {"CONVERT_CACHE": place.lab.directory, "CONVERT_ADDR": "[%s]" % place.lab.converter.addr6}
        converted(place.connect(env=env), place.lab.server.addr4)
        for way in ([], ["poll"], ["dup"]):
            run = place.connect(*(["nonblocking"] + way if way != ["poll"] else way), env=env)
            converted(run, place.lab.server.addr4)
            equal(run.logged("request in the SYN, blindly"), 1, run.stderr)
        place.lab.converter.run(["nft", "-f", "-"], input=FIRST_LOST % ("dport", "syn", count))
        run = place.connect("threads=%d" % count, "nonblocking", env=env)
        converted(run, place.lab.server.addr4, count=count)
        equal([run.logged("blindly"), run.logged("asked again")], [count, count], run.stderr)
        run = place.connect("nonblocking", env=env, port=CLOSED)
        equal((run.status, run.lines[0].get("error")), (1, "Connection refused"), run.stdout + run.stderr)


def test_advice():
    """Options that MPTCP refuses are taken, told and refused as TCP's are. One that changes what the connection is keeps it on TCP."""
    for kind in ("static", "i386"):
        with bench(kind) as place:
            place.lab.echo(host=place.lab.client)
            for to, shown in ((place.lab.server.addr4, MPTCP), ("127.0.0.1", TCP)):
                run = place.connect("advice", to=to)
                direct = place.directly("advice", to=to)
                check(not [line for line in run.stderr.splitlines() if "setsockopt" in line], run.stderr)
                for ours, natives in zip(run.lines, direct.lines):
                    for name in set(natives) & {"timeout", "syncnt", "hops", "wrong"}:
                        equal(ours.get(name), natives[name], "%s: %s; %s" % (to, name, run.stdout + run.stderr))
                equal((run.lines[-1].get("answer"), run.lines[-1].get("protocol")), ("hello", shown), run.stdout + run.stderr)
            run = place.connect("ttl")
            equal((run.lines[0].get("answer"), run.lines[0].get("protocol")), ("hello", TCP), run.stdout + run.stderr)
            equal(run.logged("converted over TCP"), 1, run.stderr)


def test_listen():
    """A program that listens has a TCP socket, with its address, mode, and registrations, as without convertize."""
    for kind in ("static", "i386"):
        with bench(kind) as place:
            run, direct = place.connect("listen"), place.directly("listen")
            equal(run.lines, direct.lines, run.stdout + run.stderr)
            equal((run.lines[0]["listener"], run.lines[0]["data"]), (TCP, "77"), run.stdout)


FIRST_LOST = ("table inet lost {\n chain lost {\n  type filter hook prerouting priority -300;\n"
              "  tcp %s 1234 tcp flags & (syn | ack) == %s limit rate 1/hour burst %d packets drop\n }\n}\n")


def test_lost_syns():
    """A blind request whose SYN or SYN+ACK is lost is made again, with its data. The program's epoll instance tells of nothing but the
    connection, and the connections that follow are as blind."""
    count = 8
    with bench() as place:
        cache = {"CONVERT_CACHE": place.lab.directory}
        converted(place.connect(env=cache), place.lab.server.addr4)
        for host, rule in ((place.lab.converter, ("dport", "syn")), (place.lab.client, ("sport", "(syn | ack)"))):
            host.run(["nft", "-f", "-"], input=FIRST_LOST % (*rule, count))
            run = place.connect("threads=%d" % count, "nonblocking", env=cache)
            converted(run, place.lab.server.addr4, count=count)
            equal([run.logged("blindly"), run.logged("asked again")], [count, count], run.stderr)
            host.run(["nft", "delete", "table", "inet", "lost"])
        run = place.connect("nonblocking", env=cache)
        converted(run, place.lab.server.addr4)
        equal(run.logged("blindly"), 1, run.stderr)


def test_lost_often():
    """The request is made again several times while a thread waits by poll(), which sees nothing of it but the connection."""
    count, times = 12, 5
    with bench() as place:
        cache = {"CONVERT_CACHE": place.lab.directory}
        converted(place.connect(env=cache), place.lab.server.addr4)
        place.lab.converter.run(["nft", "-f", "-"], input=FIRST_LOST % ("dport", "syn", times * count))
        run = place.connect("threads=%d" % count, "poll", env=cache)
        converted(run, place.lab.server.addr4, count=count)
        equal(run.logged("blindly"), count, run.stderr)
        check(run.logged("asked again") >= 3 * count, run.stderr)  # probes of the path are lost, too


def test_io_uring():
    """io_uring, which would go past the supervisor, isn't there."""
    with bench() as place:
        run = place.connect("uring")
        check("uring=Function not implemented" in run.stdout, run.stdout)


def test_children():
    """Shells under either method, which start programs of either kind, under further convertizes: each connection is converted."""
    with bench() as place:
        dynamic = build("dynamic", place.place)
        server = place.lab.server.addr4
        for options in ([], ["--method", "supervise"]):
            for start in ("%s", place.convertize + " %s", "sh -c 'exec %s'", place.convertize + " sh -c '%s; true'"):
                for program in (dynamic, place.client):
                    run = place.run("sh", "-c", start % ("%s %s 7" % (program, server)) + "; exit $?", options=options)
                    preloaded = program == dynamic and not options
                    converted(run, server, shown=TCP if preloaded else MPTCP)


def test_preload_forced():
    """--method preload has what it had before: what it doesn't reach isn't run."""
    with bench() as place:
        run = place.connect(options=["--method", "preload"])
        check(run.status == 126 and "statically linked" in run.stderr, run.stderr)
        run = place.connect(options=["--method", "nonsense"])
        check(run.status == 125 and '"nonsense" is no method; it is preload or supervise' in run.stderr, run.stderr)


STATUSES = (("exit 7", 7), ("true", 0), ("kill -TERM $$", -signal.SIGTERM), ("kill -SEGV $$", -signal.SIGSEGV),
            ("kill -KILL $$", -signal.SIGKILL), ("exec /nonexistent", 127))


def test_exit_status():
    """The front ends as the program does."""
    with bench() as place:
        for script, status in STATUSES:
            equal(place.run("sh", "-c", script, options=["--method", "supervise"]).status, status, script)
        for path, status, text in (("/nonexistent", 127, "No such file"), ("/etc/passwd", 126, "Permission denied"),
                                   ("nonexistent", 127, "command not found")):
            run = place.run(path, options=["--method", "supervise"])
            check(run.status == status and text in run.stderr and len(run.stderr.splitlines()) == 1, run.stderr)


def processes(text):
    """The process IDs of those whose command lines contain a text."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open("/proc/%s/cmdline" % name, "rb") as file:
            if text.encode() in file.read():
                found.append(int(name))
    return found


def test_signals():
    """Signals to the front are the program's; SIGKILL to it is the program's end; and nothing is left behind."""
    with bench() as place:
        for number, status in ((signal.SIGTERM, 3), (signal.SIGUSR1, 4)):
            process = place.lab.client.popen([place.convertize, "--method", "supervise", "sh", "-c",
                                              "trap 'exit 3' TERM; trap 'exit 4' USR1; echo ready; while :; do sleep 0.05; done"],
                                             env=place.env())
            process.wait_log("ready")
            os.kill(process.pid, number)
            equal(process.wait(10), status, number)
        process = place.lab.client.popen([place.convertize, "--method", "supervise", "sh", "-c", "echo ready; exec sleep 4321"],
                                         env=place.env())
        process.wait_log("ready")
        wait_until(lambda: processes("sleep\0004321"), 5, "the program")
        os.kill(process.pid, signal.SIGKILL)
        process.wait(10)
        wait_until(lambda: not processes("sleep\0004321"), 5, "the program's end")


def test_daemon():
    """A daemon goes on under supervision when the program that started it has ended. The supervisor ends with it."""
    with bench() as place:
        log = os.path.join(place.place, "daemon.log")
        script = "(setsid sh -c 'while ! [ -e %s.go ]; do sleep 0.05; done; %s %s 7' >/dev/null 2>&1 &) ; exit 5" % (
            log, place.client, place.lab.server.addr4)
        run = place.run("sh", "-c", script, options=["--method", "supervise"], env={"CONVERT_LOG": log})
        equal(run.status, 5, run.stderr)
        check(processes(place.convertize), "the supervisor goes on")
        open(log + ".go", "w", encoding="utf-8").close()
        wait_until(lambda: os.path.exists(log) and "converted over MPTCP" in open(log, encoding="utf-8").read(), 10, "a converted connection")
        wait_until(lambda: not [pid for pid in processes(place.convertize) if not is_zombie(pid)], 10, "the supervisor's end")


def is_zombie(pid):
    """Has the process ended, and its parent not asked for its status?"""
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def test_output_ends():
    """Who reads from the program's output sees its end when the program closes it, not when it ends."""
    with bench() as place:
        process = place.lab.client.popen(["sh", "-c", "{ %s --method supervise sh -c 'exec >&- 2>&-; exec sleep 30' & } | cat; echo closed"
                                          % place.convertize], env=place.env(CONVERT_LOG=""))
        process.wait_log("closed")
        process.wait(10)
        for pid in processes("sleep\00030"):
            os.kill(pid, signal.SIGKILL)


def test_supervisor_killed():
    """The program keeps its connections, gets ENOSYS for new ones, and the front waits for it and says why."""
    with bench() as place:
        run = place.run("sh", "-c", "kill -KILL $PPID; %s %s 7; exit 6" % (place.client, place.lab.server.addr4),
                        options=["--method", "supervise"])
        equal(run.status, 6, run.stderr)
        check("socket=Function not implemented" in run.stdout, run.stdout)
        check("the supervisor was killed" in run.stderr, run.stderr)


def test_refusals():
    """What can't be supervised is found before it runs, in one line with the remedy."""
    with bench() as place:
        supervised = ["env", "-u", "CONVERT_SUPERVISED"]
        run = place.run(*supervised, place.convertize, "--method", "supervise", "true", options=["--method", "supervise"])
        check(run.status == 125 and "supervised already" in run.stderr and len(run.stderr.splitlines()) == 1, run.stderr)
        program = shutil.copy(place.client, os.path.join(place.place, "setuid"))
        os.chown(program, 65534, 65534)
        os.chmod(program, 0o4755)
        run = place.run(program, options=["--method", "supervise"])
        check(run.status == 126 and "set-user-ID" in run.stderr and "no_new_privs" in run.stderr, run.stderr)


# what a container's seccomp profile may answer, and what of that is said; system calls by their numbers on amd64
DENIED = [
    (317, errno.EPERM, "a container's seccomp profile forbids seccomp()"),
    (317, errno.ENOSYS, "doesn't permit seccomp filters"),
    (317, errno.EINVAL, "this kernel is too old"),
    (310, errno.EPERM, "trace processes"),
    (310, errno.ENOSYS, "process_vm_readv() isn't permitted"),
    (434, errno.ENOSYS, "pidfd_getfd() isn't permitted"),
    (438, errno.EPERM, "pidfd_getfd() isn't permitted"),
]


def test_denied():
    """Where the host or a container forbids what a supervisor needs, that is found before the program runs, and said in a line."""
    if os.uname().machine != "x86_64":
        raise Unsuitable("the numbers of system calls are amd64's")
    deny = c_program("deny", "deny.c")
    with bench() as place:
        for call, error, said in DENIED:
            run = Run(place.lab.client.run([deny, call, error, place.convertize, "--method", "supervise", "echo", "it has run"],
                                           env=place.env(), check=False))
            what = "%d, %s: %s" % (call, errno.errorcode[error], run.stdout + run.stderr)
            equal((run.status, run.stdout, len(run.stderr.splitlines())), (125, "", 1), what)
            check(said in run.stderr and "--method preload" in run.stderr, what)


def test_denied_by_itself():
    """Where convertize has chosen to supervise, what it says next is what helps: preloading wouldn't reach the program, --force runs it."""
    if os.uname().machine != "x86_64":
        raise Unsuitable("the numbers of system calls are amd64's")
    deny = c_program("deny", "deny.c")
    with bench() as place:
        words = [place.client, place.lab.server.addr4, PORT]
        for call, error, said in DENIED:
            run = Run(place.lab.client.run([deny, call, error, place.convertize, *words], env=place.env(), check=False))
            what = "%d, %s: %s" % (call, errno.errorcode[error], run.stdout + run.stderr)
            equal((run.status, run.stdout), (125, ""), what)
            check(said in run.stderr and "; --force runs it unconverted\n" in run.stderr and "--method preload" not in run.stderr, what)
            run = Run(place.lab.client.run([deny, call, error, place.convertize, "--force", *words], env=place.env(), check=False))
            what = "--force, %d, %s: %s" % (call, errno.errorcode[error], run.stdout + run.stderr)
            equal((run.status, run.lines[0].get("answer")), (0, "hello"), what)
            check(said in run.stderr and "; it runs unconverted\n" in run.stderr, what)


def test_hidden():
    """A process that isn't dumpable can't be looked into: it connects directly, over TCP, and the log says why."""
    with bench() as place:
        nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        os.chmod(place.place, 0o755)
        for way in ([], ["nonblocking"]):
            run = Run(place.lab.client.run([*nobody, place.convertize, place.client, place.lab.server.addr4, PORT, "hidden", *way],
                                           env=place.env(), check=False))
            equal((run.status, run.lines[0].get("answer"), run.lines[0].get("protocol")), (0, "hello", TCP), run.stdout + run.stderr)
            equal(run.logged("will connect directly: this process can't be looked into"), 1, run.stderr)
            run = Run(place.lab.client.run([*nobody, place.convertize, place.client, place.lab.server.addr4, PORT, *way],
                                           env=place.env(), check=False))
            converted(run, place.lab.server.addr4)


def test_x32():
    """x32's calls, which have amd64's architecture and other numbers, don't go past the supervisor, even where the kernel has none of them."""
    if os.uname().machine != "x86_64":
        raise Unsuitable("x32 is amd64's")
    with bench() as place:
        converted(place.connect("x32"), place.lab.server.addr4)


def read_until(terminal, text, seconds=10):
    """Reads from a terminal until a text has come; returns all."""
    got, end = "", time.monotonic() + seconds
    while text not in got:
        if not select.select([terminal], [], [], max(0, end - time.monotonic()))[0]:
            raise LabError("%r hasn't come within %d s: %r" % (text, seconds, got))
        got += os.read(terminal, 4096).decode(errors="replace")
    return got


def test_job_control():
    """In a shell with job control: ^Z stops the program, fg continues it, ^C ends it, and it has the terminal meanwhile."""
    need("bash")
    with bench() as place:
        pid, terminal = pty.fork()
        if pid == 0:
            os.environ.update(place.env(PS1="PROMPT ", CONVERT_LOG=""))
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # whoever runs tests in the background has it ignored
            os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
        try:
            read_until(terminal, "PROMPT ")
            os.write(terminal, b"%s --method supervise sh -c 'read a; echo got-$a; read b; echo then-$b; sleep 77'\n"
                     % place.convertize.encode())
            read_until(terminal, "sleep 77")
            os.write(terminal, b"one\n")
            read_until(terminal, "got-one")
            os.write(terminal, b"\x1a")
            read_until(terminal, "Stopped")
            os.write(terminal, b"fg\n")
            read_until(terminal, "read a")
            os.write(terminal, b"two\n")
            read_until(terminal, "then-two")
            # this one, not an earlier test's
            wait_until(lambda: processes("sleep\00077"), 5, "the program's last command")
            os.write(terminal, b"\x03")
            read_until(terminal, "PROMPT ")
            os.write(terminal, b"echo status-$?\n")
            read_until(terminal, "status-130")
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(terminal)


def test_descriptors():
    """The program inherits none of the supervisor's descriptors, and its signal mask and dispositions are the caller's."""
    with bench() as place:
        script = "ls /proc/self/fd | tr '\\n' ' '; grep -E '^Sig(Blk|Ign)' /proc/self/status"
        ours = place.run("sh", "-c", script, options=["--method", "supervise"]).stdout
        native = place.lab.client.run(["sh", "-c", script]).stdout
        equal(ours, native, "descriptors and signals")


if __name__ == "__main__":
    main()
