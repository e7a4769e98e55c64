# SPDX-License-Identifier: BSD-3-Clause
"""applications.py - runs a real application twice in the lab: as it is, and converted, under the shim or by convertize

    @application("wget", server=web, connections=1, carried=SIZE)
    def test_wget(run):
        run(["wget", "-q", "-O", run.path("file"), "http://%s/file" % NAME])
        run.holds("file", SIZE)

The function runs the application and checks its results, the same in both runs. In addition, the server's kernel counts the
connections that reach it. In the first run neither shim nor converter may see any of them. In the second the shim must convert,
and the converter carry, the expected number of connections, with at least the expected number of bytes: nothing bypasses the
converter.

In the second run convertize starts programs that can't be preloaded, and programs that start such programs: with
method="supervise", or with "auto", which lets convertize choose.
"""
import functools
import hashlib
import os
import re
import socket
import subprocess
import time

from . import kernel, sandbox
from .harness import Skip, Unsuitable, between, check, equal, need
from .links import Link
from .servers import pattern
from .topology import Lab
from .waiting import wait_until

NAME = "server.lab"  # the server's addresses of both families, in the lab's /etc/hosts
REFUSED_PORT = 9999  # nothing listens there; not the lab's port 9, which browsers and fetch() refuse by themselves


class Run:
    """Represents one of the two runs. Called with a command, it runs that on the client as Host.run() does.

    server: what the server's function returned. directory: empty at first, and the application's home.
    converted: is this the converted run? method: how it is converted, see application().
    """

    def __init__(self, lab, server, converted, method):
        self.lab = lab
        self.server = server
        self.converted = converted
        self.directory = os.path.join(lab.directory, "converted" if converted else "direct")
        os.mkdir(self.directory)
        # as in a user's session, whose processes all know after the first connection that the converter withholds SYNs
        common = {"HOME": self.directory, "XDG_RUNTIME_DIR": self.path("runtime"), "LC_ALL": "C.UTF-8"}
        os.mkdir(self.path("runtime"), 0o700)
        self.env = lab.converted(**common) if converted else common
        self._launcher = _launcher(lab, self.env, method) if converted and method != "shim" else []

    def __call__(self, cmd, env=None, **options):
        return self.lab.client.run([*self._launcher, *cmd], env=dict(self.env, **(env or {})), **options)

    def start(self, cmd, port):
        """Starts a program that listens on a port of the client; returns its Process."""
        return self.lab.start_listening(self.lab.client, [*self._launcher, *cmd], port, env=self.env)

    def path(self, *names):
        """The path of a file in this run's directory."""
        return os.path.join(self.directory, *names)

    def write(self, name, content):
        """Makes a file there; returns its path."""
        with open(self.path(name), "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return self.path(name)

    def holds(self, name, size):
        """Fails the test unless the file has the first `size` bytes of servers.pattern()."""
        equal(digest(self.path(name)), digest_of_pattern(size), "%s (%d bytes)" % (name, os.path.getsize(self.path(name))))


def _launcher(lab, env, method):
    """Returns the words that make convertize start a command, and removes the shim from LD_PRELOAD in `env`: convertize preloads it."""
    sanitizers = env.pop("LD_PRELOAD").split(":")[:-1]
    if sanitizers and method == "auto":  # convertize preloads the shim behind them
        env["LD_PRELOAD"] = ":".join(sanitizers)
    env["CONVERT_LIBRARY"] = lab.build.shim
    return [lab.build.program("convertize"), "--config", "none", *([] if method == "auto" else ["--method", method]), "--"]


def git(*arguments, cwd):
    """Runs git outside the lab, without the user's configuration."""
    env = dict(os.environ, HOME=cwd, GIT_CONFIG_NOSYSTEM="1", GIT_AUTHOR_NAME="lab", GIT_AUTHOR_EMAIL="lab",
               GIT_COMMITTER_NAME="lab", GIT_COMMITTER_EMAIL="lab")
    return subprocess.run(["git", *arguments], cwd=cwd, env=env, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True).stdout


def digest(path):
    """The SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


@functools.lru_cache
def digest_of_pattern(size):
    """The SHA-256 of servers.pattern(size)."""
    return hashlib.sha256(pattern(size)).hexdigest()


def _set_names(lab):
    """Gives the server and this machine names, and keeps applications from the user's name servers and proxies."""
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        del os.environ[name]
    for host in (lab.client, lab.server):
        host.file("/etc/hosts", "127.0.0.1 localhost %s\n::1 localhost\n%s %s\n%s %s\n"
                  % (socket.gethostname(), lab.server.addr4, NAME, lab.server.addr6, NAME))
        if os.path.lexists("/etc/resolv.conf"):
            # the C library's default as well; nothing listens there, so each question fails at once
            host.file("/etc/resolv.conf", "nameserver 127.0.0.1\n")


def _sessions(lab, converter):
    """Returns [bytes in both directions, …] of the connections to the server that the converter has relayed to their end."""
    lines = re.findall(r" to (\S+):(\d+): (\d+) bytes up, (\d+) down", converter.log_text())
    ours = (lab.server.addr4, "[%s]" % lab.server.addr6)
    return [int(up) + int(down) for server, port, up, down in lines
            if server in ours and int(port) != REFUSED_PORT]


def _given_up(converter):
    """How many connections the client closed unused. The shim logs no conversion for those that it closed while they were pending."""
    return len(re.findall(r": 0 bytes up, 0 down, [\d.]+ s: client (?:lost|never completed its handshake) ", converter.log_text()))


def _check_log(lab, opened, given_up, refused, method):
    """The log has a conversion for each connection of the server, and otherwise only refusals of the port where nothing listens."""
    # Without Fast Open on Multipath TCP, in Linux 6.1, supervised programs are converted over TCP; where
    # convertize chooses ("auto") it is either.
    over = "MPTCP" if method == "shim" or kernel.has("fastopen") else "TCP" if method == "supervise" else ""
    # A program may take over its parent's connections, as Git's do. If a child that the shim can't convert opens connections, the server
    # counts them. The address on which a connection begins doesn't tell how it ends.
    lines = [line for line in lab.shim_log().splitlines()
             if not line.endswith("taken over from the program before") and ": can't be converted: " not in line and ": begins on " not in line]
    refusals = [line for line in lines if ":%d: " % REFUSED_PORT in line]
    told = re.compile("failed: Connection Reset|failed: Connection refused|, blindly after")  # by a message, a RST, or the kernel alone
    check(all(told.search(line) for line in refusals) and bool(refusals) == refused,
          "refused connections in\n" + lab.shim_log())
    # a connection that the application closes while it is pending never reached the server
    others = [line for line in lines if line not in refusals and not line.endswith(": given up by the application")]
    strange = [line for line in others if "converted over " + over not in line]
    check(not strange, "not converted:\n" + "\n".join(strange))
    between(len(others), opened - given_up, opened, "conversions, with as many connections at the server; the shim says\n" + lab.shim_log())


def _check_converter(lab, converter, opened, carried, breaks_off):
    if breaks_off:
        converter.stop()
    wait_until(lambda: len(_sessions(lab, converter)) >= opened, 10,
               lambda: "%d connections to end at the converter:\n%s" % (opened, converter.log_text()))
    equal(len(_sessions(lab, converter)), opened, "connections that the converter carried:\n" + converter.log_text())
    check(sum(_sessions(lab, converter)) >= carried, "%d bytes carried, not %d:\n%s"
          % (sum(_sessions(lab, converter)), carried, converter.log_text()))


def _run(client, lab, converter, server, converted, options):
    """Returns how many seconds the application took."""
    before, start = lab.server.counters()["TcpPassiveOpens"], time.monotonic()
    client(Run(lab, server, converted, options["method"]))
    seconds = time.monotonic() - start
    opened = lab.server.counters()["TcpPassiveOpens"] - before
    given_up = 0
    if converted:
        _check_converter(lab, converter, opened, options["carried"], options["breaks_off"])
        given_up = _given_up(converter)
        _check_log(lab, opened, given_up, options["refused"], options["method"])
    else:
        equal(lab.shim_log(), "", "the shim's log of a run without it")
        equal(_sessions(lab, converter), [], "what the converter carried in a run without the shim")
    # on a busy machine an answer may come so late that the shim gives its first attempt up and begins another one
    low, high = options["connections"]
    check(low <= opened <= high + given_up, "%d connections %s, %d of them given up, not %d to %d"
          % (opened, "converted" if converted else "without a converter", given_up, low, high))
    return seconds


def application(*needs, server, connections, carried=0, refused=False, breaks_off=False, root=False, sanitizers=None,
                method="shim"):
    """Makes a test of a function that gets a Run, see above.

    needs: programs, as "PROGRAM" or "PROGRAM:DEBIAN-PACKAGE".
    server: called with the Lab before the runs.
    connections: how many in each run; (least, most) where the application is free to choose.
    carried: the converter carries at least so many bytes in all.
    refused: does it also try a port where nothing listens?
    breaks_off: does it close connections on which more is coming? On MPTCP Linux doesn't reset these, but keeps them for a
        minute (test_platform.py). The converter would report them only then, so we stop it instead.
    root: does it need the real root, and not only that of a user's own namespace?
    sanitizers: why it can't run with a sanitizer's run-time library preloaded.
    method: "shim": under the preloaded library; "supervise": by convertize --method supervise; "auto": as convertize chooses.
    """
    if isinstance(connections, int):
        connections = (connections, connections)

    def decorate(client):
        @functools.wraps(client)
        def test():
            for program in needs:
                need(*program.split(":"))
            if root and sandbox.in_user_namespace():
                raise Skip("needs other users than root; run it as root")
            if sanitizers and os.environ.get("SANITIZER_PRELOAD"):
                raise Unsuitable("not under sanitizers: " + sanitizers)
            with Lab(wifi=Link(delay_ms=2), lte=Link(delay_ms=3), core=Link(delay_ms=1)) as lab:
                _set_names(lab)
                converter = lab.convertd()
                started = server(lab)
                seconds = [_run(client, lab, converter, started, converted,
                                {"connections": connections, "carried": carried, "refused": refused, "breaks_off": breaks_off,
                                 "method": method})
                           for converted in (False, True)]
                return "%.1f s directly, %.1f s converted" % tuple(seconds)
        return test
    return decorate
