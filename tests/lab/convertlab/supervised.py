# SPDX-License-Identifier: BSD-3-Clause
"""supervised.py - for the supervisor's tests: clients that no library reaches, under convertize in a lab"""
import contextlib
import os
import re
import subprocess

from . import kernel
from .build import SRCDIR
from .harness import Skip, Unsuitable, check, equal, measured, need
from .links import Link
from .topology import Lab

SOURCE = os.path.join(SRCDIR, "tests/lab/apps/supervised.c")
TCP, MPTCP = "6", "262"
SYN, SYNACK = ("dport", "syn"), ("sport", "(syn | ack)")
SILENT_MAGIC = b"\x6c\x63"  # doc/private-tlvs.md

PORT, CLOSED = "7", "9"

# compiler and flags for each kind of program
KINDS = {
    "static": ["gcc", "-static"],
    "musl": ["musl-gcc", "-static"],
    "i386": ["i686-linux-gnu-gcc", "-static"],
    "dynamic": ["gcc"],
}


def first_lost(count, packets=SYN):
    """The rules by which a host loses the first `count` SYNs or SYN+ACKs of connections to the converter that arrive."""
    return ("table inet lost {\n chain lost {\n  type filter hook prerouting priority -300;\n"
            "  tcp %s 1234 tcp flags & (syn | ack) == %s limit rate 1/hour burst %d packets drop\n }\n}\n" % (*packets, count))


def build(kind, place):
    """Compiles the client; returns its path."""
    compiler, *flags = KINDS[kind]
    need(compiler)
    path = os.path.join(place, "client-" + kind)
    said = subprocess.run([compiler, "-O1", "-pthread", *flags, "-o", path, SOURCE], stderr=subprocess.PIPE, text=True, check=False)
    if said.returncode:
        raise Skip("%s: %s; on Debian: apt-get install gcc-i686-linux-gnu libc6-dev-i386-cross musl-tools libc6-dev" % (" ".join(KINDS[kind]), said.stderr[-300:]))
    kernel.must_run(path)
    return path


class Run:
    """The output of a program under convertize."""

    def __init__(self, result):
        self.status = result.returncode
        self.lines = [dict(re.findall(r"(\w+)=(.*?)(?= \w+=|$)", line)) for line in result.stdout.splitlines()]
        self.stdout, self.stderr = result.stdout, result.stderr
        self.log = [line for line in result.stderr.splitlines() if line.startswith("libconvert: ")]

    def logged(self, text):
        """How many lines of the log contain a text."""
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
        """The environment of convertize."""
        return {"CONVERT_ADDR": self.lab.converter.addr4, "CONVERT_CACHE": "none", "CONVERT_LOG": "-",
                "CONVERT_LIBRARY": self.lab.build.shim, "CONVERT_BESIDE_VPN": "1", **variables}

    def run(self, *words, options=(), env=None, **more):
        """Runs any command under convertize."""
        full = {name: value for name, value in self.env(**(env or {})).items() if value is not None}
        return Run(self.lab.client.run([self.convertize, *options, *words], env=full, check=False, **more))

    def connect(self, *words, to=None, port=PORT, **more):
        """Runs the client."""
        return self.run(self.client, to or self.lab.server.addr4, port, *words, **more)

    @contextlib.contextmanager
    def losing(self, count, packets=SYN, repeatable=True):
        """Loses the first `count` SYNs or SYN+ACKs of connections to the converter, in a test that measures.

        Linux repeats a lost SYN after a second, without the request. The harness repeats the test if the supervisor, which repeats the
        request unless `repeatable` is false, is later than that.
        """
        host = self.lab.converter if packets == SYN else self.lab.client
        host.run(["nft", "-f", "-"], input=first_lost(count, packets))
        with self.lab.capture(self.lab.client, "wifi", "tcp port 1234") as capture:
            yield
        host.run(["nft", "delete", "table", "inet", "lost"])
        syns = [packet for packet in capture.packets() if packet.syn]
        requests = {packet.sport for packet in syns if packet.payload[2:4] == SILENT_MAGIC}
        check(requests, "no SYN with a silent request was captured")
        late = [str(packet) for packet in syns if packet.sport in requests and not packet.payload]
        measured(not late or not repeatable, "the kernel has repeated SYNs before the supervisor did: %s" % late)

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


def converted(run, to, count=1, shown=None):
    """Checks that the connections work and are converted over MPTCP, or over TCP on kernels whose MPTCP sockets have no Fast Open.

    shown: the protocol that the program sees: for preloaded programs TCP.
    """
    over = (MPTCP, "converted over MPTCP") if kernel.has("fastopen") or shown else (TCP, "converted over TCP")
    equal(run.status, 0, run.stdout + run.stderr)
    equal([line.get("answer") for line in run.lines], ["hello"] * count, run.stdout + run.stderr)
    equal({line["peer"] for line in run.lines}, {"%s:7" % to}, "the peers")
    equal({line["protocol"] for line in run.lines}, {shown or over[0]}, run.stdout + run.stderr)
    equal(run.logged(over[1]), count, run.stderr)
