#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_supervise_processes.py - supervised programs as processes: children, signals, terminals, descriptors, and unsupervised ones"""
import contextlib
import errno
import os
import pty
import select
import shutil
import signal
import time

from convertlab import LabError, Unsuitable, check, equal, main, need, wait_until
from convertlab.programs import c_program
from convertlab.supervised import PORT, TCP, Run, bench, build, converted


def test_children():
    """Shells under either method start programs of either kind, also under another convertize: each connection is converted."""
    with bench() as place:
        dynamic = build("dynamic", place.place)
        server = place.lab.server.addr4
        for options in ([], ["--method", "supervise"]):
            for start in ("%s", place.convertize + " %s", "sh -c 'exec %s'", place.convertize + " sh -c '%s; true'"):
                for program in (dynamic, place.client):
                    run = place.run("sh", "-c", start % ("%s %s 7" % (program, server)) + "; exit $?", options=options)
                    preloaded = program == dynamic and not options
                    converted(run, server, shown=TCP if preloaded else None)


def test_preload_forced():
    """--method preload runs no program that it can't reach, and an unknown method is an error."""
    with bench() as place:
        run = place.connect(options=["--method", "preload"])
        check(run.status == 126 and "statically linked" in run.stderr, run.stderr)
        run = place.connect(options=["--method", "nonsense"])
        check(run.status == 125 and "\"nonsense\" isn't a method; it is preload or supervise" in run.stderr, run.stderr)


STATUSES = (("exit 7", 7), ("true", 0), ("kill -TERM $$", -signal.SIGTERM), ("kill -SEGV $$", -signal.SIGSEGV),
            ("kill -KILL $$", -signal.SIGKILL), ("exec /nonexistent", 127))


def test_exit_status():
    """convertize ends with the program's status."""
    with bench() as place:
        for script, status in STATUSES:
            equal(place.run("sh", "-c", script, options=["--method", "supervise"]).status, status, script)
        for path, status, text in (("/nonexistent", 127, "No such file"), ("/etc/passwd", 126, "Permission denied"),
                                   ("nonexistent", 127, "command not found")):
            run = place.run(path, options=["--method", "supervise"])
            check(run.status == status and text in run.stderr and len(run.stderr.splitlines()) == 1, run.stderr)


def processes(text):
    """The IDs of processes whose command lines contain a text."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open("/proc/%s/cmdline" % name, "rb") as file:
            if text.encode() in file.read():
                found.append(int(name))
    return found


def test_signals():
    """convertize passes signals on to the program; SIGKILL to convertize ends the program, and no process stays behind."""
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
    """A daemon goes on under supervision after its parent has ended. The supervisor ends with the daemon."""
    with bench() as place:
        log = os.path.join(place.place, "daemon.log")
        script = "(setsid sh -c 'while ! [ -e %s.go ]; do sleep 0.05; done; %s %s 7' >/dev/null 2>&1 &) ; exit 5" % (
            log, place.client, place.lab.server.addr4)
        run = place.run("sh", "-c", script, options=["--method", "supervise"], env={"CONVERT_LOG": log})
        equal(run.status, 5, run.stderr)
        check(processes(place.convertize), "the supervisor goes on")
        open(log + ".go", "w", encoding="utf-8").close()
        wait_until(lambda: os.path.exists(log) and "converted over " in open(log, encoding="utf-8").read(), 10, "a converted connection")
        wait_until(lambda: not [pid for pid in processes(place.convertize) if not is_zombie(pid)], 10, "the supervisor's end")


def is_zombie(pid):
    """Tells whether the process has ended, reaped or not."""
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def test_output_ends():
    """A reader of what the program writes to any descriptor sees the end when the program closes it, not only when the program ends."""
    with bench() as place:
        for closing, redirected in ((">&- 2>&-", ""), ("3>&-", "3>&1 >/dev/null 2>&1")):
            command = "%s --method supervise sh -c 'exec %s; exec sleep 30' %s" % (place.convertize, closing, redirected)
            process = place.lab.client.popen(["sh", "-c", "{ %s & } | cat; echo closed" % command], env=place.env(CONVERT_LOG=""))
            process.wait_log("closed")
            process.wait(10)
            for pid in processes("sleep\00030"):
                os.kill(pid, signal.SIGKILL)


def test_closed_standard_descriptors():
    """A program that has no standard input, output or error is converted all the same."""
    with bench() as place:
        for number, closed in enumerate(("<&-", ">&-", "2>&-", "<&- >&- 2>&-")):
            log = os.path.join(place.place, "closed-%d.log" % number)
            words = ["sh", "-c", "exec \"$@\" " + closed, "sh", place.convertize, "--method", "supervise", place.client,
                     place.lab.server.addr4, PORT]
            run = Run(place.lab.client.run(words, env=place.env(CONVERT_LOG=log), check=False))
            equal(run.status, 0, closed + run.stdout + run.stderr)
            with open(log, encoding="utf-8") as file:
                check("converted over " in file.read(), closed)


def test_inherited_timer():
    """A timer that runs when convertize is started ends the program, and convertize with it."""
    with bench() as place:
        command = "import os, signal, sys; signal.alarm(1); os.execv(sys.argv[1], sys.argv[1:])"
        words = ["python3", "-c", command, place.convertize, "--method", "supervise", "sleep", "654321"]
        run = place.lab.client.run(words, env=place.env(), check=False)
        equal(run.returncode, -signal.SIGALRM, run.stdout + run.stderr)
        wait_until(lambda: not processes("sleep\000654321"), 5, "the program's end")


def test_service():
    """The program of a service is the process for which its manager's variables are meant. Variables for others stay."""
    meant = "export LISTEN_PID=%s WATCHDOG_PID=%s LISTEN_PIDFDID=5; exec \"$@\""
    with bench() as place:
        for number, seen in (("$$", "$$-$$-none"), ("1", "1-1-5")):
            run = place.lab.client.run(["sh", "-c", meant % (number, number), "sh", place.convertize, "--method", "supervise", "sh", "-c",
                                        "echo \"$LISTEN_PID-$WATCHDOG_PID-${LISTEN_PIDFDID-none} %s\"" % seen], env=place.env())
            got, expected = run.stdout.split()
            equal(got, expected, "LISTEN_PID=" + number)


def test_supervisor_killed():
    """The program goes on, and gets ENOSYS for new sockets; convertize waits for it and says why."""
    with bench() as place:
        run = place.run("sh", "-c", "kill -KILL $PPID; %s %s 7; exit 6" % (place.client, place.lab.server.addr4),
                        options=["--method", "supervise"])
        equal(run.status, 6, run.stderr)
        check("socket=Function not implemented" in run.stdout, run.stdout)
        check("the supervisor was killed" in run.stderr, run.stderr)


def test_refusals():
    """convertize refuses a program that it can't supervise before it runs, in one line with the remedy."""
    with bench() as place:
        supervised = ["env", "-u", "CONVERT_SUPERVISED"]
        run = place.run(*supervised, place.convertize, "--method", "supervise", "true", options=["--method", "supervise"])
        check(run.status == 125 and "supervised already" in run.stderr and len(run.stderr.splitlines()) == 1, run.stderr)
        program = shutil.copy(place.client, os.path.join(place.place, "setuid"))
        os.chown(program, 65534, 65534)
        os.chmod(program, 0o4755)
        run = place.run(program, options=["--method", "supervise"])
        check(run.status == 126 and "set-user-ID" in run.stderr and "no_new_privs" in run.stderr, run.stderr)


# errors of a container's seccomp profile, and convertize's words for them; system calls by their numbers on amd64
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
    """If the host or a container forbids a call that a supervisor needs, convertize says so in a line before the program runs."""
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
    """If convertize itself has chosen to supervise, it proposes --force: preloading wouldn't reach the program."""
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
    """A supervisor can't examine a process that isn't dumpable: it connects directly, over TCP, and the log says why."""
    with bench() as place:
        nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        os.chmod(place.place, 0o755)
        for way in ([], ["nonblocking"]):
            run = Run(place.lab.client.run([*nobody, place.convertize, place.client, place.lab.server.addr4, PORT, "hidden", *way],
                                           env=place.env(), check=False))
            equal((run.status, run.lines[0].get("answer"), run.lines[0].get("protocol")), (0, "hello", TCP), run.stdout + run.stderr)
            equal(run.logged("will connect directly: this process can't be examined"), 1, run.stderr)
            run = Run(place.lab.client.run([*nobody, place.convertize, place.client, place.lab.server.addr4, PORT, *way],
                                           env=place.env(), check=False))
            converted(run, place.lab.server.addr4)


def read_until(terminal, text, seconds=10):
    """Reads from a terminal until a text has come; returns all."""
    got, end = "", time.monotonic() + seconds
    while text not in got:
        if not select.select([terminal], [], [], max(0, end - time.monotonic()))[0]:
            raise LabError("%r hasn't come within %d s: %r" % (text, seconds, got))
        got += os.read(terminal, 4096).decode(errors="replace")
    return got


def test_job_control():
    """In a shell with job control: ^Z stops the program, fg continues it, ^C ends it, and it can read from the terminal."""
    need("bash")
    with bench() as place:
        pid, terminal = pty.fork()
        if pid == 0:
            os.environ.update(place.env(PS1="PROMPT ", CONVERT_LOG=""))
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # tests in the background inherit it as ignored
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
            # until the program's own sleep runs
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


def test_ignored_children():
    """convertize ends with the program even if its caller ignores SIGCHLD. The program ignores it as well."""
    with bench() as place:
        ignoring = ["env", "--ignore-signal=CHLD"]
        words = [*ignoring, place.convertize, "--method", "supervise"]
        equal(place.lab.client.run([*words, "sh", "-c", "exit 7"], env=place.env(), check=False).returncode, 7, "the status")
        ignored = ["grep", "^SigIgn", "/proc/self/status"]
        equal(place.lab.client.run([*words, *ignored], env=place.env()).stdout, place.lab.client.run([*ignoring, *ignored]).stdout,
              "ignored signals")


if __name__ == "__main__":
    main()
