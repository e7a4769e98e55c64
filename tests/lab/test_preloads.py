#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_preloads.py - the shim beside other preload libraries, in each order: it works, or convertize says why not"""
import contextlib
import glob
import os
import shlex
import shutil
import subprocess

from convertlab import Lab, Link, Skip, Unsuitable, check, equal, kernel, long, main, need, sandbox, waits
from test_shim_surface import same

SIZE = 300000
NOBODY = 65534
PROXY_PORT = 1080
TOR_PORT = 9050
LIBRARIES = {  # our name of a library: the pattern of its file, and Debian's package
    "mptcpize": ("libmptcpwrap.so.*", "mptcpize"),
    "proxychains": ("libproxychains.so.4", "libproxychains4"),
    "torsocks": ("libtorsocks.so", "torsocks"),
    "faketime": ("libfaketime.so.1", "libfaketime"),
    "jemalloc": ("libjemalloc.so.2", "libjemalloc2"),
}

# A preload library whose functions end in syscall(), by a jump if the compiler turns the call into one.
THROUGH_SYSCALL = r"""
#define _GNU_SOURCE
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define THROUGH(type, name, params, ...) type name params { return syscall(SYS_##name, __VA_ARGS__); }
THROUGH(int, socket, (int domain, int type, int protocol), domain, type, protocol)
THROUGH(int, connect, (int fd, const struct sockaddr *addr, socklen_t len), fd, addr, len)
THROUGH(ssize_t, sendto, (int fd, const void *buf, size_t len, int flags, const struct sockaddr *addr, socklen_t room),
	fd, buf, len, flags, addr, room)
THROUGH(ssize_t, sendmsg, (int fd, const struct msghdr *msg, int flags), fd, msg, flags)
THROUGH(ssize_t, recvfrom, (int fd, void *buf, size_t len, int flags, struct sockaddr *addr, socklen_t *room),
	fd, buf, len, flags, addr, room)
THROUGH(ssize_t, recvmsg, (int fd, struct msghdr *msg, int flags), fd, msg, flags)
THROUGH(int, getsockopt, (int fd, int level, int name, void *value, socklen_t *len), fd, level, name, value, len)
THROUGH(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t len), fd, level, name, value, len)
THROUGH(int, getpeername, (int fd, struct sockaddr *addr, socklen_t *len), fd, addr, len)
THROUGH(int, shutdown, (int fd, int how), fd, how)
THROUGH(int, close, (int fd), fd)
THROUGH(ssize_t, read, (int fd, void *buf, size_t count), fd, buf, count)
THROUGH(ssize_t, write, (int fd, const void *buf, size_t count), fd, buf, count)
THROUGH(int, dup, (int fd), fd)
THROUGH(int, ioctl, (int fd, unsigned long request, void *arg), fd, request, arg)
THROUGH(int, fcntl, (int fd, int command, void *arg), fd, command, arg)
ssize_t send(int fd, const void *buf, size_t len, int flags) { return syscall(SYS_sendto, fd, buf, len, flags, 0, 0); }
ssize_t recv(int fd, void *buf, size_t len, int flags) { return syscall(SYS_recvfrom, fd, buf, len, flags, 0, 0); }
#ifdef SYS_poll
THROUGH(int, poll, (struct pollfd *fds, nfds_t count, int timeout), fds, count, timeout)
#endif
"""


def library(name):
    """The path of an installed library."""
    pattern, package = LIBRARIES[name]
    # in /usr/lib64 or a directory of the architecture, or below that in one of the package
    paths = [path for place in ("/usr/lib*/", "/usr/lib*/*/", "/usr/lib*/*/*/") for path in sorted(glob.glob(place + pattern))]
    if not paths:
        raise Skip("%s is missing; on Debian: apt-get install %s" % (pattern, package))
    return paths[0]


def compiled(lab, name, source, *flags):
    """A C source, compiled."""
    path = os.path.join(lab.directory, name)
    with open(path + ".c", "w", encoding="ascii") as file:
        file.write(source)
    compiler = next(filter(shutil.which, ("cc", "gcc", "clang")), "cc")
    said = subprocess.run([compiler, "-O2", "-o", path, path + ".c", *flags], stderr=subprocess.PIPE, text=True, check=False)
    if said.returncode:
        raise Skip("cc %s: %s" % (" ".join(flags), said.stderr))
    return path


def busybox():
    """The path of a static busybox."""
    need("busybox", "busybox-static")
    path = shutil.which("busybox")
    if subprocess.run(["ldd", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0:
        raise Skip("%s is dynamically linked; on Debian: apt-get install busybox-static" % path)
    return path


class Client:
    """Runs curl on the lab's client, and checks the log of its connections; the proxy is on the server."""

    def __init__(self, lab):
        self.lab = lab
        lab.convertd()
        lab.http()
        self.url = "http://%s/bytes/%d" % (lab.server.addr4, SIZE)
        self.curl = ["curl", "-sS", "-o", "/dev/null", "-w", "%{size_download}", self.url]
        self.convertize = lab.build.program("convertize")
        self.conf = os.path.join(lab.directory, "proxychains.conf")
        with open(self.conf, "w", encoding="ascii") as file:
            file.write("strict_chain\n[ProxyList]\nsocks5 %s %d\n" % (lab.server.addr4, PROXY_PORT))

    def proxy(self):
        need("microsocks")
        self.lab.start_listening(self.lab.server, ["microsocks", "-p", PROXY_PORT], PROXY_PORT)

    def log(self):
        """The lines of the log since the last call."""
        text = self.lab.shim_log()
        before, self.seen = getattr(self, "seen", 0), len(text)
        return text[before:]

    def run(self, words, preloads=(), env=()):
        full = self.lab.converted()
        del full["LD_PRELOAD"]
        full.update({"PROXYCHAINS_CONF_FILE": self.conf, "PROXYCHAINS_QUIET_MODE": "1",
                     "CONVERT_LIBRARY": self.lab.build.shim})
        full.update(env)
        if preloads:
            full["LD_PRELOAD"] = ":".join(preloads)
        return self.lab.client.run(words, env=full, check=False, timeout=20)

    def gets(self, what, words, said="", port=80, **options):
        """curl gets all bytes, over a conversion. said: convertize's warning; port: of the converted connection; None: there is none."""
        result = self.run(words, **options)
        log = self.log()
        check((result.returncode, result.stdout) == (0, str(SIZE)), "%s: %s\n%s" % (what, result, log))
        check(said in result.stderr if said else not result.stderr, "%s says: %s" % (what, result.stderr))
        if port:
            # supervised programs use TCP if Multipath TCP has no Fast Open
            equal(log.count(":%d: converted over %s" % (port, "MPTCP" if kernel.has("fastopen") else "")), 1, "%s: conversions in\n%s" % (what, log))
        else:
            check("converted over" not in log, "%s: %s" % (what, log))
        return log

    def refuses(self, words, reason, **options):
        """convertize runs nothing, and says why in a line."""
        result = self.run([self.convertize, *words], **options)
        lines = result.stderr.splitlines()
        check(result.returncode == 126 and not result.stdout and len(lines) == 1, "%s: %s" % (words, result))
        check(lines[0].startswith("convertize: ") and reason in lines[0] and "--force" in lines[0], lines[0])
        equal(self.log(), "", "the log, although convertize runs nothing")


@contextlib.contextmanager
def client():
    if os.environ.get("SANITIZER_PRELOAD"):
        raise Unsuitable("not under sanitizers: their run-time library has to be the first that is preloaded")
    with Lab(wifi=Link(delay_ms=1), lte=None, core=None) as lab:
        yield Client(lab)


def test_each_order():
    """Both orders of LD_PRELOAD by hand, and convertize under the library."""
    with client() as run:
        shim = run.lab.build.shim
        cases = [("mptcpize", {}), ("jemalloc", {}), ("faketime", {"FAKETIME": "2020-01-01 00:00:00"}),
                 ("faketime", {"FAKETIME": "+0 x10"}), ("faketime", {"FAKETIME": "@2035-01-01 00:00:00 x0.1"})]
        for name, env in cases:
            path = library(name)
            for preloads in ([shim, path], [path, shim]):
                run.gets("%s %s" % (preloads, env), run.curl, preloads=preloads, env=env)
            run.gets("convertize under " + name, [run.convertize, *run.curl], preloads=[path], env=env)


def test_functions_that_end_in_syscall():
    """Behind the shim, its hooks call these functions, which must not call the hooks again. In front of it, they keep all calls from it."""
    with client() as run:
        path = compiled(run.lab, "through.so", THROUGH_SYSCALL, "-shared", "-fPIC", "-fno-builtin", "-w")
        shim = run.lab.build.shim
        run.gets("behind", run.curl, preloads=[shim, path])
        for preloads in ([path, shim], [path, shim, path]):
            run.gets(preloads, run.curl, preloads=preloads, port=None)
        run.gets("convertize", [run.convertize, *run.curl], preloads=[path], port=None)


@long
@waits
@kernel.needs("calls")
def test_a_library_that_ends_in_syscall_changes_nothing():
    """The application sees the same, by functions and by syscall(), and in signal handlers."""
    with client() as run:
        path = compiled(run.lab, "through.so", THROUGH_SYSCALL, "-shared", "-fPIC", "-fno-builtin", "-w")
        run.lab.echo()
        silent = run.lab.addresses.blackhole4
        for name, *words in (("surface_remote", "echo", run.lab.server.addr4, 7), ("surface_syscall", "echo", run.lab.server.addr4, 7),
                             ("surface_syscall", "refused", run.lab.server.addr4, run.lab.addresses.refused_port),
                             ("surface_interrupts", "signals", silent, 80)):
            words.insert(0, run.lab.build.program("tests/lab/apps/" + name))
            direct = run.lab.client.run(words).stdout
            same(direct, run.run(words, preloads=[run.lab.build.shim, path]).stdout, "%s" % words)


def test_a_converter_is_given_up_while_time_stands_still():
    """The shim takes its deadlines from the kernel's clock, and the cache has times that other processes believe."""
    with client() as run:
        path = library("faketime")
        env = {"FAKETIME": "2020-01-01 00:00:00", "CONVERT_TIMEOUT": "4", "CONVERT_ADDR":
               "%s,%s" % (run.lab.addresses.blackhole4, run.lab.converter.addr4)}
        for preloads in ([run.lab.build.shim, path], [path, run.lab.build.shim]):
            run.gets("a silent converter first", run.curl, preloads=preloads, env=env)


def test_wrappers():
    """Commands that preload libraries, in front of convertize and behind it."""
    with client() as run:
        for name in ("mptcpize", "torsocks", "proxychains4", "faketime"):
            need(name)
        convertize = [run.convertize, "--"]
        run.gets("mptcpize run convertize", ["mptcpize", "run", *convertize, *run.curl])
        run.gets("convertize mptcpize run", [*convertize, "mptcpize", "run", *run.curl],
                 said="mptcpize replaces LD_PRELOAD, and libconvert.so with it; it is supervised")
        for words in (["stdbuf", "-oL"], ["faketime", "2020-01-01 00:00:00"], ["faketime", "-f", "+0 x10"], ["nice", "-n", "5"]):
            run.gets(words, [*convertize, *words, *run.curl])
            run.gets(words, [*words, *convertize, *run.curl])
        run.gets("env LD_PRELOAD", [*convertize, "env", "A=b", "LD_PRELOAD=libc.so.6", *run.curl], said="env replaces LD_PRELOAD")
        run.refuses(["torsocks", *run.curl], "torsocks takes the program's connections to Tor")
        run.refuses(["nice", "-n", "5", "env", "A=b", "/usr/bin/torsocks", *run.curl], "torsocks takes")
        run.refuses(run.curl, "torsocks takes", preloads=[library("torsocks")])
        run.proxy()
        # as the user wants: the proxy gets the server's address, and the shim converts the connection to the proxy
        warning = "convertize: warning: proxychains takes"
        run.gets("proxychains4 convertize", ["proxychains4", *convertize, *run.curl], said=warning, port=PROXY_PORT)
        run.gets("convertize proxychains4", [*convertize, "proxychains4", *run.curl], said=warning, port=PROXY_PORT)


def test_sudo():
    """sudo isn't privileged for root's programs: convertize supervises the program that it starts."""
    need("sudo")
    with client() as run:
        if sandbox.in_user_namespace():
            raise Unsuitable("sudo needs root outside of user namespaces")
        for words in (["sudo"], ["sudo", "-u", "nobody"]):
            run.gets(words, [run.convertize, "--", *words, *run.curl], said="sudo starts programs with an environment of its own, without "
                     "LD_PRELOAD; it is supervised")


def test_torsocks_by_force():
    """With a stand-in for Tor on this machine the program's connections go there, and none bypasses it."""
    need("torsocks")
    need("microsocks")
    with client() as run:
        torsocks, forced, by_hand = library("torsocks"), [run.convertize, "--force"], ""
        warning = "convertize: warning: torsocks takes"
        orders = [(["torsocks", *forced, *run.curl], (), warning), ([*forced, "torsocks", *run.curl], (), warning),
                  (run.curl, [run.lab.build.shim, torsocks], by_hand), (run.curl, [torsocks, run.lab.build.shim], by_hand)]
        for words, preloads, _ in orders:
            result = run.run(words, preloads=preloads)
            equal((result.returncode, result.stdout), (7, "0"), "without Tor: %s" % result)
        check("converted over" not in run.log(), "past Tor")
        run.lab.start_listening(run.lab.client, ["microsocks", "-i", "127.0.0.1", "-p", TOR_PORT], TOR_PORT)
        for words, preloads, said in orders:
            run.gets("%s %s" % (words, preloads), words, preloads=preloads, said=said, port=None)


def test_a_proxy_behind_the_library():
    """By hand, in the wrong order: the proxy gets the connections, and the log says why."""
    with client() as run:
        run.proxy()
        log = run.gets("libproxychains behind it", run.curl, preloads=[run.lab.build.shim, library("proxychains")], port=None)
        check("nothing is converted: %s stands behind" % library("proxychains") in log, log)


CONNECTS = r"""
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

int main(int argc, char **argv)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(80) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (argc < 2 || inet_pton(AF_INET, argv[1], &to.sin_addr) != 1 || connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0)
		return EXIT_FAILURE;
	printf("%s", argv[2]);
	return EXIT_SUCCESS;
}
"""


def test_address_sanitizer():
    """Its library must be the first: convertize keeps it first, and finds the one with which a program is linked."""
    with client() as run:
        with_it = compiled(run.lab, "with", CONNECTS, "-fsanitize=address")
        without = compiled(run.lab, "without", CONNECTS)
        library_of_it = [line.split()[2] for line in subprocess.run(["ldd", with_it], stdout=subprocess.PIPE, text=True,
                                                                   check=True).stdout.splitlines() if "libasan" in line]
        if not library_of_it:
            raise Unsuitable("this compiler links AddressSanitizer statically, which is first then")
        words = [run.lab.server.addr4, SIZE]
        run.gets("a program with ASan", [run.convertize, with_it, *words])
        run.gets("a program with ASan, and options", [run.convertize, with_it, *words], env={"ASAN_OPTIONS": "detect_leaks=0"})
        for program in (with_it, without):
            run.gets("ASan's library in LD_PRELOAD", [run.convertize, program, *words], preloads=library_of_it,
                     env={"ASAN_OPTIONS": "detect_leaks=0"})


# Loads a library with flags from its arguments; the library connects. Both have a function that(), and the loader has a RUNPATH.
LOADS_DEEPLY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int that(void) { return 1; }

int main(int argc, char **argv)
{
	int (*plugin)(const char *address);
	void *library = argc > 3 ? dlopen(argv[1], atoi(argv[2]) | RTLD_DEEPBIND) : NULL;

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return EXIT_FAILURE;
	}
	*(void **)&plugin = dlsym(library, "plugin");
	printf("%d", plugin(argv[3]));
	return EXIT_SUCCESS;
}
"""

PLUGIN = r"""
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

int that(void) { return 2; }
static int (*const by_pointer)(int fd, const struct sockaddr *addr, socklen_t len) = connect;

/* Returns what this library's that() says, or 0 without a connection. */
int plugin(const char *address)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(80) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), ret;

	inet_pton(AF_INET, address, &to.sin_addr);
	ret = by_pointer(fd, (struct sockaddr *)&to, sizeof(to)) == 0 ? that() : 0;
	close(fd);
	return ret;
}
"""


def test_loaded_deeply():
    """With RTLD_DEEPBIND a library's own names and the C library's come first: the shim changes only the functions that it hooks."""
    with client() as run:
        directory = os.path.join(run.lab.directory, "deep")
        os.mkdir(directory)
        loader = compiled(run.lab, "loader", LOADS_DEEPLY, "-rdynamic", "-ldl", "-Wl,--enable-new-dtags,-rpath," + directory)
        for how, flags in (("now", ["-Wl,-z,now,-z,relro"]), ("lazily", ["-Wl,-z,lazy,-z,norelro"]),
                           ("read-only", ["-Wl,-z,lazy,-z,relro"])):
            name = "lib%s.so" % how
            path = compiled(run.lab, "deep/" + name, PLUGIN, "-shared", "-fPIC", "-w", *flags)
            for mode in (os.RTLD_LAZY, os.RTLD_NOW):
                result = run.run([run.convertize, loader, path, mode, run.lab.server.addr4])
                equal((result.returncode, result.stdout, result.stderr), (0, "2", ""), "%s %d" % (how, mode))
                equal(run.log().count(":80: converted over MPTCP"), 1, "conversions of a function that is bound " + how)
            # only the caller's RUNPATH leads to this library: the loader finds it, as without the shim
            result = run.run([run.convertize, loader, name, os.RTLD_NOW, run.lab.server.addr4])
            equal((result.returncode, result.stdout, result.stderr), (0, "2", ""), "by RUNPATH, " + how)
            run.log()


def test_php_curl():
    """PHP loads its extensions with RTLD_DEEPBIND, and libcurl with one of them."""
    need("php", "php-cli")
    with client() as run:
        if "curl" not in run.run(["php", "-m"]).stdout.split():
            raise Skip("PHP has no curl; on Debian: apt-get install php-curl")
        run.log()
        script = ("$curl = curl_init('%s'); curl_setopt($curl, CURLOPT_RETURNTRANSFER, 1); echo strlen(curl_exec($curl));"
                  % run.url)
        run.gets("PHP's curl", [run.convertize, "php", "-r", script])
        run.gets("PHP's own", [run.convertize, "php", "-r", "echo strlen(file_get_contents('%s'));" % run.url])


def go_program(lab):
    need("go")
    source = os.path.join(lab.directory, "hello.go")
    with open(source, "w", encoding="ascii") as file:
        file.write("package main\n\nfunc main() {}\n")
    env = dict(os.environ, CGO_ENABLED="0", GOCACHE=os.path.join(lab.directory, "cache"), GOFLAGS="-mod=mod", GO111MODULE="off",
               GOTOOLCHAIN="local", HOME=lab.directory)
    path = os.path.join(lab.directory, "hello")
    subprocess.run(["go", "build", "-o", path, source], env=env, check=True)
    return path


def told(run, words, *reasons, options=("--warn",), method="preload", **more):
    """The log has a line for each reason and no other; so has standard error without --quiet. The method preload supervises nothing."""
    result = run.run([run.convertize, "--method", method, *options, "--", *words], **more)
    equal(result.returncode, 0, "%s: %s" % (words, result))
    for what, lines, start in (("log", run.log().splitlines(), "libconvert: "),
                               ("standard error", result.stderr.splitlines(), "convertize: ")):
        expected = reasons if what == "log" or "--quiet" not in options else ()
        equal(len(lines), len(expected), "%s: lines of the %s: %s" % (words, what, lines))
        for line, reason in zip(lines, expected):
            check(line.startswith(start) and "can't be converted: " in line and reason in line, line)


@long
def test_children_that_cannot_be_converted():
    """However they are started, the log names them; it doesn't mention those that can be converted."""
    with client() as run:
        path = busybox()
        static = "busybox: can't be converted: %s is statically linked" % path
        told(run, ["bash", "-c", "busybox true; true"], static)
        told(run, ["bash", "-c", "busybox true; true"], static, options=())
        told(run, ["bash", "-c", "busybox true; true"], static, options=("--quiet",))
        told(run, ["sh", "-c", "cd / && ls >/dev/null; for i in 1 2; do env true; done"])
        told(run, ["sh", "-c", "cd %s && ./busybox true; true" % os.path.dirname(path)],
             "./busybox is statically linked")
        script = os.path.join(run.lab.directory, "script")
        with open(script, "w", encoding="ascii") as file:
            file.write("#!%s true\n" % path)
        os.chmod(script, 0o755)
        told(run, ["sh", "-c", script + "; true"], "busybox, which runs %s, is statically linked" % script)
        spawn = ("import os, subprocess; subprocess.run(['busybox', 'true']); "
                 "os.waitpid(os.posix_spawnp('busybox', ['busybox', 'true'], os.environ), 0); "
                 "os.waitpid(os.posix_spawn('%s', ['busybox', 'true'], os.environ), 0); "
                 "os.system('busybox true; true'); "
                 "file = os.open('%s', os.O_RDONLY); os.execve(file, ['busybox', 'true'], os.environ)")
        told(run, ["python3", "-c", spawn % (path, path)],
             static, static, static, static, "/proc/self/fd/3 is statically linked")
        true = "true: can't be converted: %s is started " % shutil.which("true")
        told(run, ["env", "-u", "LD_PRELOAD", "true"], true + "without LD_PRELOAD")
        told(run, ["sh", "-c", "LD_PRELOAD=libc.so.6 true; env LD_PRELOAD=libc.so.6 true"],
             true + "with another LD_PRELOAD")
        told(run, ["env", "-i", shutil.which("true")], true + "without LD_PRELOAD")
        make = os.path.join(run.lab.directory, "Makefile")
        with open(make, "w", encoding="ascii") as file:
            file.write("all:\n\t@%s\n" % go_program(run.lab))
        told(run, ["make", "-s", "-f", make], "hello is a Go program", env={"MAKEFLAGS": ""})


def test_children_for_another_machine():
    """They can't be converted, and the log says so, unless LD_PRELOAD has $LIB: then their loader looks for a library of their own."""
    with client() as run:
        path = os.path.join(run.lab.directory, "foreign")
        with open(shutil.which("true"), "rb") as file:
            data = bytearray(file.read())
        data[18:20] = (0xf3 if data[18] != 0xf3 else 0x3e).to_bytes(2, "little")  # e_machine, elf(5): RISC-V, or else x86-64
        with open(path, "wb") as file:
            file.write(data)
        os.chmod(path, 0o755)
        words = ["python3", "-c", "import contextlib, os\nwith contextlib.suppress(OSError): os.execv('%s', ['foreign'])" % path]
        told(run, words, "foreign: can't be converted: %s is for another machine" % path)
        if not run.lab.build.loader_lib:
            raise Unsuitable("the C library's loader knows no $LIB, as musl's")
        place = os.path.join(run.lab.directory, run.lab.build.loader_lib)
        os.makedirs(place)
        shutil.copy(run.lab.build.shim, place)
        told(run, words, options=["--warn", "--library", run.lab.directory + "/$LIB/libconvert.so"])


def test_children_of_sudo():
    """sudo clears LD_PRELOAD even for root, for whom it isn't privileged."""
    need("sudo")
    with client() as run:
        if sandbox.in_user_namespace():
            raise Skip("sudo refuses a user's own namespace; run it as root")
        log = run.gets("bash -c sudo curl", [run.convertize, "bash", "-c", "sudo %s; true" % shlex.join(run.curl)], port=None,
                       said="convertize: curl: can't be converted")
        check("curl: can't be converted: %s is started without LD_PRELOAD" % shutil.which("curl") in log, log)
        run.gets("sudo convertize", ["sudo", "--preserve-env=CONVERT_ADDR,CONVERT_LOG,CONVERT_LIBRARY", run.convertize,
                                     *run.curl])


def test_what_an_ordinary_user_starts_with_sudo():
    """sudo is set-user-ID, and the log says so."""
    need("sudo")
    if sandbox.in_user_namespace():
        raise Skip("there is but one user here; run it as root")
    with client() as run:
        place = os.path.join("/run/convertlab", "preloads")
        os.mkdir(place)
        try:
            log = os.path.join(place, "log")
            os.close(os.open(log, os.O_CREAT))
            os.chmod(log, 0o666)
            shim = shutil.copy(run.lab.build.shim, place)
            words = ["setpriv", "--reuid=%d" % NOBODY, "--regid=%d" % NOBODY, "--clear-groups",
                     shutil.copy(run.convertize, place), "--warn", "bash", "-c", "sudo -n true; true"]
            result = run.run(words, env={"CONVERT_LIBRARY": shim, "CONVERT_LOG": log})
            reason = "sudo: can't be converted: %s is set-user-ID" % shutil.which("sudo")
            check("convertize: " + reason in result.stderr, result.stderr)
            with open(log, encoding="utf-8") as file:
                check(reason in file.read(), "the log")
        finally:
            shutil.rmtree(place)


def test_logs_that_cannot_be_written():
    with client() as run:
        for options, env, where in ((["--log", "/nonexistent/log"], {}, "--log: /nonexistent/log: No such file"),
                                    ([], {"CONVERT_LOG": "/"}, "CONVERT_LOG: /: Is a directory")):
            result = run.run([run.convertize, *options, "echo", "run"], env=env)
            lines = result.stderr.splitlines()
            check(result.returncode == 125 and not result.stdout and len(lines) == 1, result)
            check(lines[0].startswith("convertize: " + where) and "; name a file" in lines[0], lines[0])


if __name__ == "__main__":
    main()
