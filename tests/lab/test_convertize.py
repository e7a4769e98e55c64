#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertize.py - the launcher: programs that it runs are converted, and those that it refuses couldn't be"""
import contextlib
import ctypes
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys

from convertlab import Lab, LabError, Link, Skip, Unsuitable, check, equal, kernel, long, main, need, sandbox
from convertlab.build import SRCDIR

NOBODY = 65534
CAPABILITY = bytes.fromhex("01000002 00200000 00000000 00000000 00000000")  # cap_net_raw+ep, linux/capability.h
MACHINE_AT, X86_64, AARCH64 = 18, 62, 183  # elf(5)

PROGRAM = r"""
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(7) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char answer[6] = "";

	if (argc < 2 || inet_pton(AF_INET, argv[1], &to.sin_addr) != 1 ||
	    connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0 || write(fd, "hello", 5) != 5 ||
	    read(fd, answer, 5) < 1)
		return EXIT_FAILURE;
	puts(answer);
	return EXIT_SUCCESS;
}
"""

GO_PROGRAM = """
package main
%s
import "syscall"

func main() {
	answer := make([]byte, 5)
	fd, _ := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	err := syscall.Connect(fd, &syscall.SockaddrInet4{Port: 7, Addr: [4]byte{%s}})
	if err != nil {
		panic(err)
	}
	syscall.Write(fd, []byte("hello"))
	syscall.Read(fd, answer)
	syscall.Write(1, append(answer, 10))
}
"""


class Launcher:
    """convertize on the lab's client, a converter, an echo server, and a directory for programs that all users can reach."""

    def __init__(self, lab):
        self.lab = lab
        lab.convertd()
        lab.echo()
        self.place = os.path.join("/run/convertlab", "programs")
        os.mkdir(self.place)
        # an ordinary user may not reach the build directory
        self.program = shutil.copy(lab.build.program("convertize"), self.place)
        self.library = shutil.copy(lab.build.shim, self.place)
        self.log = os.path.join(self.place, "log")
        os.close(os.open(self.log, os.O_CREAT))
        os.chmod(self.log, 0o666)
        self.source = self.write("program.c", PROGRAM)

    def close(self):
        shutil.rmtree(self.place)

    def write(self, name, text, mode=0o644):
        """Writes a file among the programs; returns its path."""
        path = os.path.join(self.place, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def compile(self, name, *flags):
        """Compiles the source under this name; returns its path."""
        path = os.path.join(self.place, name)
        compiler = next(filter(shutil.which, ("cc", "gcc", "clang")), "cc")
        said = subprocess.run([compiler, "-o", path, self.source, *flags], stderr=subprocess.PIPE, text=True, check=False)
        if said.returncode:
            raise Skip("cc %s: %s; a static C library may be missing; on Fedora: dnf install glibc-static"
                       % (" ".join(flags), said.stderr))
        return path

    def sanitized(self):
        """The environment with which programs without sanitizers can load a library that has them; see asan_first.c."""
        before = self.lab.shim_env()["LD_PRELOAD"].split(":")[:-1]
        if not before:
            return {}
        # then libconvert.so comes before the sanitizer's library, which works as well
        return {"LD_PRELOAD": ":".join(before), "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0"}

    def run(self, *words, env=None, uid=0, options=(), start=()):
        """Runs convertize with the lab's converter in the environment; returns the CompletedProcess. start: words in front of convertize."""
        full = {"CONVERT_ADDR": self.lab.converter.addr4, "CONVERT_LOG": self.log, "CONVERT_LIBRARY": self.library,
                "CONVERT_CACHE": "none"}
        full.update(self.sanitized())
        full.update(env or {})
        user = ["setpriv", "--reuid=%d" % uid, "--regid=%d" % uid, "--clear-groups"] if uid else []
        return self.lab.client.run([*start, *user, self.program, *options, *words], env=full, check=False)

    def conversions(self):
        """Returns how many connections were converted since the last call."""
        with open(self.log, "r+", encoding="utf-8") as file:
            # without Fast Open on Multipath TCP, supervised programs' connections go over TCP
            count = file.read().count("converted over MPTCP" if kernel.has("fastopen") else "converted over ")
            file.truncate(0)
        return count

    def works(self, *words, warning=None, converted=1, **options):
        """Checks that the program runs, and its connection is converted; warning: and that convertize warns of this."""
        result = self.run(*words, self.lab.server.addr4, **options)
        check(result.returncode == 0 and result.stdout == "hello\n", "%s: %s" % (words, result))
        equal(self.conversions(), converted, "conversions of %s" % (words,))
        if warning:
            line, = result.stderr.splitlines()
            check(line.startswith("convertize: warning: ") and warning in line, result.stderr)
        else:
            equal(result.stderr, "", "what convertize says about %s" % (words,))

    def supervises(self, path, reason, options=(), **more):
        """Checks that convertize supervises the program, since the library can't reach it, and says so in one line; its connection is
        converted. --method preload refuses it."""
        result = self.run(path, self.lab.server.addr4, options=options, **more)
        line, = result.stderr.splitlines()
        check(line.startswith("convertize: " + path) and reason in line and line.endswith("; it is supervised"), line)
        check(result.returncode == 0 and result.stdout == "hello\n", "%s: %s" % (path, result))
        equal(self.conversions(), 1, "conversions of %s" % path)
        self.refuses(path, reason, options=[*options, "--method", "preload"], **more)
        self.works(path, warning=reason, converted=0, options=[*options, "--method", "preload", "--force"], **more)

    def refuses(self, path, reason, status=126, **options):
        """Checks that convertize doesn't run the program, and one line says why."""
        result = self.run(path, self.lab.server.addr4, **options)
        lines = result.stderr.splitlines()
        check(result.returncode == status and len(lines) == 1 and not result.stdout, "%s: %s" % (path, result))
        check(lines[0].startswith("convertize: " + path) and reason in lines[0], lines[0])

    def refuses_rightly(self, path, reason, **options):
        """As refuses(); and if --force runs it nevertheless, nothing is converted."""
        self.refuses(path, reason, **options)
        self.works(path, warning=reason, converted=0, options=["--force"], **options)


@contextlib.contextmanager
def launcher():
    """A Launcher in a lab."""
    with Lab(wifi=Link(delay_ms=1), lte=None, core=None) as lab:
        running = Launcher(lab)
        try:
            yield running
        finally:
            running.close()


def test_programs_that_are_converted():
    with launcher() as run:
        program = run.compile("dynamic")
        run.works(program)
        run.works(run.compile("no-pie", "-no-pie"))
        run.works(run.write("script", "#!/bin/sh\nexec %s \"$@\"\n" % program, 0o755))
        path = run.place + ":" + os.environ["PATH"]
        run.works("dynamic", env={"PATH": path})
        run.write("without-line", "exec %s \"$@\"\n" % program, 0o755)
        run.works("without-line", env={"PATH": path})
        run.works(run.write("by-env", "#!/usr/bin/env -S A=b sh -e\nexec %s \"$@\"\n" % program, 0o755))
        # a shell in a shell inherits the environment
        run.works("sh", "-c", "sh -c '%s \"$0\"' \"$0\"" % program)
        # convertize can't read this program, and it works
        os.chmod(program, 0o711)
        # (not with AddressSanitizer, which must read /proc/self, which is root's then)
        if not sandbox.in_user_namespace() and not run.sanitized():
            run.works(program, uid=NOBODY, warning="can't be read")


def test_programs_that_are_refused():
    with launcher() as run:
        static = run.compile("static", "-static")
        run.supervises(static, "statically linked")
        run.supervises(run.compile("static-pie", "-static-pie"), "statically linked")
        checked = run.lab.client.run([run.lab.build.program("convertize"), "check", "--converter", run.lab.converter.addr4, static], check=False).stdout
        check("ok    %s is statically linked: no library can be preloaded into it; convertize supervises it\n" % static in checked, checked)
        script = run.write("script", "#!%s\n" % static, 0o755)
        result = run.run(script, options=["--method", "preload"])
        equal((result.returncode, result.stderr.split(" is ")[0]), (126, "convertize: %s, which runs %s," % (static, script)),
              "a script whose interpreter is static")
        dynamic = run.compile("dynamic")
        run.refuses(run.compile("loader", "-Wl,--dynamic-linker=/nonexistent/loader"), "/nonexistent/loader, which isn't there")
        other = "ld-musl-x.so.1" if platform.libc_ver()[0] == "glibc" else "ld-linux.so.2"
        run.refuses(run.compile("libc", "-Wl,--dynamic-linker=/lib/" + other), "which isn't there")
        with open(dynamic, "rb") as file:
            data = bytearray(file.read())
        run.refuses(run.write("interpreter", "#!/nonexistent/perl6\n", 0o755), "/nonexistent/perl6, which isn't there")
        for name, content, reason, options in (("foreign", foreign(data), "another machine", ["--method", "preload"]),
                                               ("damaged", data[:100], "damaged", [])):
            path = run.write(name, "", 0o755)
            with open(path, "wb") as file:
                file.write(content)
            run.refuses(path, reason, options=options)
        run.refuses(run.place + "/nothing", "No such file", status=127)
        run.refuses("no-such-command", "command not found", status=127)
        run.refuses(run.write("data", "", 0o644), "Permission denied")
        run.refuses(run.place, "Permission denied")
        path = {"PATH": run.place + ":" + os.environ["PATH"]}
        run.refuses("data", "Permission denied", env=path)
        if not sandbox.in_user_namespace():
            run.refuses("no-such-command", "command not found", status=127, uid=NOBODY,
                        env={"PATH": run.lab.directory + ":/bin"})
        # as execvp(3), convertize skips a directory of that name in PATH
        run.write(os.path.basename(run.place), "#!/bin/sh\necho found\n", 0o755)
        path = "%s:%s:%s" % (os.path.dirname(run.place), run.place, os.environ["PATH"])
        equal(run.run(os.path.basename(run.place), env={"PATH": path}).stdout, "found\n", "the second place in PATH")


def foreign(data):
    """A program for another machine."""
    data = bytearray(data)
    machine = int.from_bytes(data[MACHINE_AT:MACHINE_AT + 2], "little")
    data[MACHINE_AT:MACHINE_AT + 2] = (X86_64 if machine == AARCH64 else AARCH64).to_bytes(2, "little")
    return data


def test_other_roots():
    """Programs that chroot and unshare --root start are converted, static or not; below a shell they aren't, and one line says so."""
    with launcher() as run:
        root = os.path.join(run.place, "root")
        os.mkdir(root)
        shutil.copy(run.compile("static", "-static"), root)
        dynamic = run.compile("dynamic")
        shutil.copy(dynamic, root)
        for path in re.findall(r"/\S+", subprocess.run(["ldd", dynamic], stdout=subprocess.PIPE, text=True, check=True).stdout):
            os.makedirs(os.path.dirname(root + path), exist_ok=True)
            shutil.copy(path, root + path)
        for words in (["chroot", root, "/static"], ["chroot", root, "/dynamic"], ["unshare", "--root", root, "/static"],
                      ["nice", "chroot", root, "/dynamic"]):
            result = run.run(*words, run.lab.server.addr4)
            check(result.returncode == 0 and result.stdout == "hello\n", result)
            line, = (line for line in result.stderr.splitlines() if "ld.so" not in line)  # it can't preload a sanitizer's library there
            check(line.startswith("convertize: ") and line.endswith("; it is supervised"), line)
            equal(run.conversions(), 1, "conversions of %s" % words)
        pivot = "unshare --mount sh -c 'mount --bind %s %s; cd %s; mkdir -p old; pivot_root . old; exec /%s \"$0\"' \"$0\"; true"
        for name, missing, command in (("static", "convertize", "chroot %s /%s \"$0\"; true" % (root, "static")),
                                       ("dynamic", "libconvert.so", "chroot %s /%s \"$0\"; true" % (root, "dynamic")),
                                       ("static", "convertize", pivot % (root, root, root, "static")),
                                       ("dynamic", "libconvert.so", pivot % (root, root, root, "dynamic"))):
            result = run.run("sh", "-c", command, run.lab.server.addr4)
            check(result.returncode == 0 and result.stdout == "hello\n", result)
            said = [line for line in result.stderr.splitlines() if "ld.so" not in line]
            equal(said, ["convertize: %s: can't be converted: /%s is started where %s isn't, such as in another root directory or sandbox"
                         % (name, name, missing)], "errors")
            equal(run.conversions(), 0, "conversions")


LANDLOCK = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
rights = ctypes.c_uint64(int(sys.argv[1]))
ruleset = libc.syscall(444, ctypes.byref(rights), ctypes.c_size_t(8), 0)
for path in sys.argv[2].split(":"):
    beneath = (ctypes.c_char * 12).from_buffer_copy(bytes(rights) + os.open(path, os.O_PATH).to_bytes(4, "little"))
    assert libc.syscall(445, ruleset, 1, beneath, 0) == 0, path
libc.prctl(38, 1, 0, 0, 0)
assert libc.syscall(446, ruleset, 0) == 0
os.execv(sys.argv[3], sys.argv[3:])
"""
LANDLOCK_EXECUTE, LANDLOCK_READ = 1, 4


def test_sandboxes():
    """A sandbox allows the program, but not convertize or the library: the program runs, and one line says that it isn't converted."""
    with launcher() as run:
        if ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1) < 1:
            raise Unsuitable("this kernel has no Landlock")
        allowed = os.path.join(run.place, "allowed")
        os.mkdir(allowed)
        static = shutil.copy(run.compile("static", "-static"), allowed)
        dynamic = shutil.copy(run.compile("dynamic"), allowed)
        paths = ":".join(path for path in ("/usr", "/lib", "/lib64", "/bin", "/etc", "/proc", allowed) if os.path.exists(path))
        python = os.path.realpath(sys.executable)
        paths += "".join(":" + path for path in {os.path.dirname(os.path.dirname(python))} if not path.startswith("/usr"))
        for right, path, missing in ((LANDLOCK_EXECUTE, static, "can't be executed here"), (LANDLOCK_READ, dynamic, "is started where libconvert.so isn't")):
            result = run.run(python, "-c", LANDLOCK, str(right), paths, path, run.lab.server.addr4)
            check(result.returncode == 0 and result.stdout == "hello\n", result)
            said = [line for line in result.stderr.splitlines() if "ld.so" not in line]
            check(len(said) == 1 and "can't be converted" in said[0] and missing in said[0] and os.path.basename(path) in said[0], result)
            equal(run.conversions(), 0, "conversions")


def test_privileged_programs():
    """Set-user-ID, set-group-ID and file capabilities make the loader ignore LD_PRELOAD; if they have no effect, programs are converted."""
    if sandbox.in_user_namespace():
        raise Unsuitable("in a user namespace of an ordinary user there is only one user; run it as root")
    with launcher() as run:
        program = run.compile("setuid")
        os.chown(program, NOBODY, 0)
        os.chmod(program, 0o4755)
        run.refuses_rightly(program, "set-user-ID")
        # its owner runs it
        run.works(program, uid=NOBODY)
        # another user runs it, with no_new_privs
        os.chown(program, 0, 0)
        os.chmod(program, 0o4755)
        run.refuses_rightly(program, "set-user-ID", uid=NOBODY)
        result = run.lab.client.run(["setpriv", "--no-new-privs", "--reuid=%d" % NOBODY, run.program, program,
                                     run.lab.server.addr4], check=False,
                                    env={"CONVERT_ADDR": run.lab.converter.addr4, "CONVERT_LOG": run.log,
                                         "CONVERT_LIBRARY": run.library, "CONVERT_CACHE": "none", **run.sanitized()})
        equal((result.returncode, result.stderr, run.conversions()), (0, "", 1), "under no_new_privs")
        program = run.compile("setgid")
        os.chown(program, 0, NOBODY)
        os.chmod(program, 0o2755)
        run.refuses_rightly(program, "set-group-ID")
        program = run.compile("capable")
        os.setxattr(program, "security.capability", CAPABILITY)
        run.refuses_rightly(program, "file capabilities", uid=NOBODY)
        run.works(program)


def go_build(run, name, preamble, cgo):
    """Builds a Go program that talks to the echo server; returns its path."""
    source = run.write(name + ".go", GO_PROGRAM % (preamble, ", ".join(run.lab.server.addr4.split("."))))
    path = os.path.join(run.place, name)
    env = dict(os.environ, CGO_ENABLED=cgo, GOCACHE=os.path.join(run.place, "cache"), GOFLAGS="-mod=mod", GO111MODULE="off",
               GOTOOLCHAIN="local", HOME=run.place)
    said = subprocess.run(["go", "build", "-o", path, source], env=env, stderr=subprocess.PIPE, text=True, check=False)
    if said.returncode:
        raise LabError("go build: " + said.stderr)
    return path


@long
def test_go_programs():
    """convertize knows Go programs, with C or without, by what the Go linker writes (test_elf.c tests that without a Go compiler)."""
    if os.environ.get("SANITIZER_PRELOAD"):
        raise Unsuitable("this build has sanitizers")
    need("go", "golang-go")
    with launcher() as run:
        run.supervises(go_build(run, "go-static", "", "0"), "is a Go program")
        program = go_build(run, "go-with-c", "import \"C\"", "1")
        result = run.run(program, run.lab.server.addr4)
        check(result.stdout == "hello\n" and "is a Go program: its Go code" in result.stderr, result)
        equal(run.conversions(), 1, "conversions")
        run.works(program, warning="is a Go program: its Go code", converted=0, options=["--method", "preload"])


def test_programs_that_connect_by_themselves():
    """convertize supervises programs that make system calls past the C library, as Rust's rustix does; the doctor says so, too."""
    if os.environ.get("SANITIZER_PRELOAD"):
        raise Unsuitable("this build has sanitizers")
    with launcher() as run:
        run.source = run.write("own-connects.c", "#include \"common/rawcall.h\"" + PROGRAM.replace("connect(", "RAWCALL(SYS_connect, "))
        program = run.compile("own-connects", "-O1", "-I", os.path.join(SRCDIR, "src"))
        result = run.run(program, run.lab.server.addr4)
        check(result.stdout == "hello\n" and "has code that connects by system calls of its own" in result.stderr, result)
        equal(run.conversions(), 1, "conversions")
        run.works(program, warning="has code that connects by system calls", converted=0, options=["--method", "preload"])
        said = run.lab.client.run([run.program, "check", "--library", run.library, "--converter", run.lab.converter.addr4, program],
                                  env={"CONVERT_BESIDE_VPN": "1"}).stdout
        check("convertize supervises it" in " ".join(said.split()), said)


def test_statuses_and_environment():
    """convertize ends as the program does, keeps the user's LD_PRELOAD, and turns options into variables."""
    with launcher() as run:
        equal(run.run("sh", "-c", "exit 7").returncode, 7, "status")
        equal(run.run("sh", "-c", "kill -TERM $$").returncode, -signal.SIGTERM, "status")
        before = run.sanitized().get("LD_PRELOAD", "")
        expected = (before + ":" if before else "") + run.library
        show = ["sh", "-c", "echo \"$LD_PRELOAD\""]
        equal(run.run(*show).stdout, expected + "\n", "LD_PRELOAD")
        other = run.compile("other.so", "-shared", "-fPIC")
        there = " ".join(filter(None, [other, before]))
        # last, nearest to the C library: the user's libraries see the program's own calls
        equal(run.run(*show, env={"LD_PRELOAD": there}).stdout, "%s:%s\n" % (there.replace(" ", ":"), run.library), "LD_PRELOAD")
        copy = os.path.join(run.place, "copy")
        os.mkdir(copy)
        there = ":".join(filter(None, [shutil.copy(run.library, copy), before]))
        equal(run.run(*show, env={"LD_PRELOAD": there}).stdout, expected + "\n", "LD_PRELOAD with another copy of the library")
        equal(run.run(run.program, *show).stdout, expected + "\n", "LD_PRELOAD of a convertize under convertize")
        words = ["--converter", "192.0.2.1", "--converter=[2001:db8::1]:99", "--port", "98", "--bypass", ":22", "--bypass",
                 "10.0.0.0/8", "--fallback", "none", "--cookie", "a b", "--timeout", "0.5",
                 "--early-data", "--no-bypass-mptcp", "--log", run.log, "--warn"]
        names = ["CONVERT_" + name for name in ("ADDR", "PORT", "BYPASS", "FALLBACK", "COOKIE", "TIMEOUT", "EARLY_DATA",
                                                "BYPASS_MPTCP", "LOG", "WARN")]
        said = run.run("sh", "-c", "; ".join("echo \"$%s\"" % name for name in names), options=words).stdout
        equal(said.splitlines(), ["192.0.2.1,[2001:db8::1]:99", "98", ":22,10.0.0.0/8", "none", "a b", "0.5", "1", "0",
                                  run.log, "1"], "variables")
        # options behind a program's name are the program's, and "check" behind -- is a program
        equal(run.run("echo", "--json", "--", "--converter").stdout, "--json -- --converter\n", "arguments")
        # by the lab's sh: /bin/sh may have another C library than the tested build
        run.write("check", "#!%s\necho \"checked $*\"\n" % shutil.which("sh"), 0o755)
        path = {"PATH": run.place + ":" + os.environ["PATH"]}
        equal(run.run("--", "check", "--json", env=path).stdout, "checked --json\n", "a program called check")


def test_a_relative_log():
    """It is a file in the directory in which convertize is started, wherever the program goes, and whoever writes the lines."""
    with launcher() as run:
        elsewhere = ["sh", "-c", "cd / && exec %s \"$0\"" % run.compile("dynamic")]
        here = ["sh", "-c", "cd %s && exec \"$@\"" % os.path.dirname(run.log), "sh"]
        name = os.path.basename(run.log)
        for options, env in ((["--log", name], {"CONVERT_LOG": ""}), ([], {"CONVERT_LOG": name}),
                             (["--log", name, "--method", "supervise"], {"CONVERT_LOG": ""})):
            run.works(*elsewhere, start=here, options=options, env=env)


BAD = (  # options, environment, a part of the error
    ([], {"CONVERT_ADDR": None}, "--converter"), ([], {"CONVERT_ADDR": ""}, "CONVERT_ADDR is empty"),
    ([], {"CONVERT_ADDR": "192.0.2.1.5"}, "CONVERT_ADDR: \"192.0.2.1.5\""),
    (["--converter", "192.0.2.1.5"], {}, "--converter: \"192.0.2.1.5\""), (["--port", "0"], {}, "--port: \"0\""),
    ([], {"CONVERT_PORT": "x"}, "CONVERT_PORT: \"x\""), (["--bypass", "10.0.0.1/8"], {}, "--bypass: \"10.0.0.1/8\""),
    (["--fallback", "maybe"], {}, "--fallback: \"maybe\""), (["--cookie", "x" * 256], {}, "--cookie has 256 bytes"),
    (["--library", "/nonexistent.so"], {}, "/nonexistent.so: No such file"), (["--library", "/etc/passwd"], {}, "/etc/passwd"),
    ([], {"CONVERT_LIBRARY": "/proc/self/fd/9"}, "/proc/self/fd/9"), (["--no-such-option"], {}, "--no-such-option"), (["-x"], {}, "-x"), (["--force=1"], {}, "--force=1"),
    (["--json"], {}, "--json belongs to \"convertize check\""), (["--timeout", "x"], {}, "--timeout: \"x\""),
    (["--early-data=1"], {}, "--early-data=1"), ([], {"CONVERT_EARLY_DATA": "yes"}, "CONVERT_EARLY_DATA: \"yes\""),
)


def test_bad_options():
    """Status 125 and one line that quotes the bad input; convertize runs nothing."""
    with launcher() as run:
        for options, env, quoted in BAD:
            env = dict(env)
            unset = [name for name, value in env.items() if value is None]
            result = run.lab.client.run(
                ["env", *["--unset=" + name for name in unset], run.program, *options, "echo", "run"], check=False,
                env={"CONVERT_ADDR": "192.0.2.1", "CONVERT_LIBRARY": run.library,
                     **{name: value for name, value in env.items() if value is not None}})
            lines = result.stderr.splitlines()
            check(result.returncode == 125 and len(lines) == 1 and lines[0].startswith("convertize: ") and quoted in lines[0],
                  "%s %s: %s" % (options, env, result))
            equal(result.stdout, "", "output")
        result = run.run("--converter")
        equal((result.returncode, result.stderr.split(";")[0]), (125, "convertize: --converter needs a value"), "without a value")
        result = run.run()
        check(result.returncode == 125 and result.stderr.startswith("Usage: convertize "), result)
        odd = shutil.copy(run.library, os.path.join(run.place, "lib with blanks.so"))
        result = run.run("true", options=["--library", odd])
        check(result.returncode == 125 and "blanks and colons" in result.stderr, result)
        for word, first in (("--help", "Usage: convertize"), ("--version", "convertize (")):
            result = run.run(word)
            check(result.returncode == 0 and result.stdout.startswith(first) and not result.stderr, result)
        equal(run.lab.client.run(["sh", "-c", shlex.quote(run.program) + " --help >/dev/full"], check=False).returncode, 1,
              "status with a full disk")


def test_habits():
    """Input by habit or by mistake: convertize does as the user means, or asks in one line whether they meant something else."""
    with launcher() as run:
        for words, first in ((["-h"], "Usage: convertize"), (["help"], "Usage: convertize"), (["-V"], "convertize ("), (["version"], "convertize (")):
            result = run.lab.client.run([run.program, *words])
            check(result.stdout.startswith(first) and not result.stderr, result)
        cases = ((["chek"], 127, "did you mean \"convertize check\"?"), (["--convertor", "a", "true"], 125, "did you mean --converter?"),
                 (["enable", "--sesion"], 2, "did you mean --session?"), (["--json=x", "true"], 125, "--json takes no value"),
                 (["--check", "true"], 125, "did you mean \"convertize check\"?"), (["check", "-converter", "a"], 2, "did you mean --converter?"),
                 (["check", "sh", "http://www.example.com/x"], 2, "write www.example.com:80"),
                 (["check", "sh", "https://www.example.com:8443"], 2, "write www.example.com:8443"),
                 (["check", "sh", "www.example.com:http"], 2, "\"http\" is not a port; say a number from 1 to 65535"),
                 (["check", "sh", "www.example.com:0"], 2, "\"0\" is not a port"), (["check", "20.0.0.80:99999"], 2, "\"99999\" is not a port"),
                 (["check", "curl -O http://www.example.com/"], 2, "leave the quotes out"),
                 (["--converter", "192.0.2.1", "curl -O http://www.example.com/"], 127, "leave the quotes out"),
                 (["paths", "--json", "--manage"], 2, "--json"), (["status", "--json", "--watch"], 2, "give one"),
                 (["--converter", "2001:db8::1:1234", "true"], 125, "write [2001:db8::1]:1234"),
                 (["check", "--converter", "192.0.2.1,2001:db8::1:1234"], 2, "write [2001:db8::1]:1234"),
                 (["--converter", "192.0.2.1", "--log", "yes", "true"], 125, "\"yes\" would be a file"),
                 (["paths", "--device", "wlan7"], 2, "there is no device \"wlan7\""),
                 (["paths", "--once", "--dry-run", "--device", "wlan7"], 2, "there is no device \"wlan7\""))
        for words, status, said in cases:
            result = run.lab.client.run([run.program, *words], check=False, env={"CONVERT_LIBRARY": run.library, "CONVERT_CONFIG": "none"})
            lines = result.stderr.splitlines()
            check(result.returncode == status and len(lines) == 1 and lines[0].startswith("convertize: ") and said in lines[0], (words, result))
        for pattern in ("w*", "w?fi", "[vw]ifi"):
            result = run.lab.client.run([run.program, "paths", "--once", "--dry-run", "--device", pattern], env={"CONVERT_CONFIG": "none"})
            check("there is no device" not in result.stderr, result)
        # a device that isn't there may come later: this is a warning
        for option in ("--never-device", "--backup-device"):
            result = run.lab.client.run([run.program, "paths", "--once", "--dry-run", option, "wlan7"], env={"CONVERT_CONFIG": "none"})
            check("warning: %s: there is no device \"wlan7\" now" % option in result.stderr, result)
        result = run.run("true", options=["--converter", "192.0.2.1"], env={"CONVERT_FALBACK": "none", "CONVERT_OF_MINE": "1"})
        equal((result.returncode, result.stderr), (0, "convertize: warning: CONVERT_FALBACK isn't a variable of convertize; did you mean "
                                                      "CONVERT_FALLBACK?\n"), "a variable that is mistyped")
        # unambiguous addresses
        for address in ("[2001:db8::1:1234]", "[2001:db8::1]:1234", "2001:db8::1", "2001:db8::1:12", "2001:db8:1:2:3:4:5:1234"):
            result = run.run("true", options=["--converter", address])
            equal((result.returncode, result.stderr), (0, ""), address)
        # a program of that name takes precedence
        other = run.write("chek", "#!/bin/sh\necho mine\n", 0o755)
        equal(run.lab.client.run(["env", "PATH=%s:/usr/bin:/bin" % run.place, run.program, "--converter", "192.0.2.1", "--library", run.library,
                                  os.path.basename(other)], env=run.sanitized()).stdout, "mine\n", "a program called chek")
        static = run.compile("static", "-static")
        result = run.run(static, options=["--quiet", "--log", run.log])
        check("supervised" not in result.stderr, result)
        result = run.lab.client.run([run.program, "check", "--quiet", "--library", run.library, "--converter", run.lab.converter.addr4, "sh"], check=False)
        check(not re.search("^(ok|note)  ", result.stdout, re.MULTILINE), result)


def test_the_library_of_the_build_tree():
    """Without --library, convertize finds the library of its build tree; it makes a relative name absolute."""
    with Lab(wifi=Link(delay_ms=1), lte=None, core=None) as lab:
        program, shim = lab.build.program("convertize"), lab.build.shim
        for options, env in (([], {}), (["--library", os.path.relpath(shim)], {})):
            said = lab.client.run([program, "--converter", "192.0.2.1", *options, "sh", "-c", "echo $LD_PRELOAD"],
                                  env={"ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0", **env}).stdout
            equal(said.split(":")[0].strip(), os.path.realpath(shim), "LD_PRELOAD")


def test_a_library_for_each_machine():
    """LD_PRELOAD has a path with $LIB, by which the loader finds the program's library: it may be for any machine that has one."""
    with launcher() as run:
        if not run.lab.build.loader_lib:
            raise Unsuitable("the C library's loader knows no $LIB, as musl's")
        own, other = (os.path.join(run.place, directory) for directory in (run.lab.build.loader_lib, "lib/other-linux-gnu"))
        for directory in (own, other):
            os.makedirs(directory)
        pattern = run.place + "/$LIB/libconvert.so"
        options = ["--library", pattern]
        result = run.run("true", options=options)
        check(result.returncode == 125 and "%s (%s/libconvert.so): No such file" % (pattern, own) in result.stderr, result)
        with open(shutil.move(run.library, own), "rb") as file:
            data = file.read()
        program = run.compile("dynamic")
        run.works(program, options=options)
        run.works("sh", "-c", "%s \"$0\"" % program, options=options)
        said = run.run("sh", "-c", "echo $LD_PRELOAD", options=options)
        check(said.stdout.rstrip().endswith(pattern) and not said.stderr, said)
        with open(program, "rb") as file:
            stranger = foreign(file.read())
        path = run.write("stranger", "", 0o755)
        with open(path, "wb") as file:
            file.write(stranger)
        # convertize leaves the decision to the kernel, since there may be an emulator
        said = run.run(path, options=options)
        check(said.returncode == 126 and "another machine" in said.stderr and said.stderr.endswith(": Exec format error\n"), said)
        run.refuses(path, "install libconvert for that machine, too", options=[*options, "--method", "preload"])
        with open(os.path.join(other, "libconvert.so"), "wb") as file:
            file.write(foreign(data))
        # now only the kernel, or an emulator of that machine, fails on the file
        result = run.run(path, run.lab.server.addr4, options=options)
        check("another machine" not in result.stderr and result.returncode, result)
        said = run.run(path, options=["check", *options]).stdout
        check(re.search("the library is %s, for .*64 bit; .*64 bit" % re.escape(pattern), said), said)
        check(path + " is dynamically linked" in said, said)


def test_manuals_have_every_option():
    """--help and convertize(1) list the same options and variables; libconvert.so(7) has all of the library's variables."""
    with Lab(wifi=Link(delay_ms=1), lte=None, core=None) as lab:
        said = lab.client.run([lab.build.program("convertize"), "--help"]).stdout
    variables = {}
    for block in re.split(r"^  --", said, flags=re.MULTILINE)[1:]:
        variables[re.match(r"[a-z-]+", block)[0]] = (re.findall(r"^ +\[(CONVERT(?:IZE)?_\w+)", block, re.MULTILINE) or [None])[0]
    with open(os.path.join(SRCDIR, "man/convertize.1"), encoding="ascii") as file:
        manual = file.read()
    described = dict(re.findall(r"^\.It Fl Fl ([a-z-]+).*\n(?:\.Pq Ev (CONVERT(?:IZE)?_\w+))?", manual, re.MULTILINE))
    equal({name: variable or None for name, variable in described.items()}, variables, "options in convertize(1), and those of --help")
    with open(os.path.join(SRCDIR, "man/convertize.conf.5"), encoding="ascii") as file:
        settings = set(re.findall(r"^\.It Ic ([a-z-]+)", file.read(), re.MULTILINE))
    equal(settings, {name for name, variable in variables.items() if variable} - {"config"}
          | {"session", "session-user", "session-group"}, "settings in convertize.conf(5)")
    with open(os.path.join(SRCDIR, "man/libconvert.so.7"), encoding="ascii") as file:
        manual = file.read()
    own = {variable for variable in variables.values() if variable and variable.startswith("CONVERT_")} - {"CONVERT_LIBRARY", "CONVERT_CONFIG"}
    equal(set(re.findall(r"^\.It Ev (CONVERT_\w+)", manual, re.MULTILINE)), own, "variables in libconvert.so(7)")
    equal(set(re.findall(r"^(?:\.Op |\.)Ev (CONVERT_\w+) Ns = Ns", manual[:manual.index(".Sh DESC")], re.MULTILINE)), own, "its synopsis")


if __name__ == "__main__":
    main()
