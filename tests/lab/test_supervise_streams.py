#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_supervise_streams.py - on long links that lose packets, supervised programs receive the server's bytes and no others

The round trip is 50 ms to the converter and 5 ms from there to the server. tally.c and net.go count the outcomes of connections. We also
count those of direct ones, since links that lose packets make these fail, too.
"""
import errno
import re

from convertlab import Lab, Link, check, equal, long, main, same_data, side_by_side, timeout, waits
from convertlab.programs import c_program, go_program, library

EACH = 24  # connections of a program with a method to a server
AT_ONCE = 8
TALLY = "static/tally.c"


def programs():
    """Yields (name, the words in front of the address, the words at the end: a method, none for Go)."""
    uring = ["-DWITH_URING", *library("", "liburing", "liburing-dev")]
    static = c_program("streams-static", TALLY, flags=["-static"])
    ring = c_program("streams-uring", TALLY, "static/tally_uring.c", flags=uring)
    musl = c_program("streams-musl", TALLY, flags=["-static"], compiler="musl-gcc", package="musl-tools")
    yield "static, blocking", [static], ["blocking"]
    yield "static, epoll", [static], ["epoll"]
    yield "static, MSG_FASTOPEN", [static], ["fastopen"]
    yield "static, TCP_FASTOPEN_CONNECT", [static], ["fastopen-connect"]
    yield "musl, epoll", [musl], ["epoll"]
    yield "io_uring", [ring], ["uring"]
    yield "libc and io_uring", [ring], ["uring-recv"]
    yield "Go", [go_program("streams-go", "task.go", "net.go"), "tally"], []


def fields(said):
    """The counts that tally.c has printed: {"done": 20, …, "ECONNRESET": 1}."""
    found = {name: float(value) for name, value in re.findall(r"(\S+)=([\d.]+)", said)}
    return {errno.errorcode[int(name[6:])] if name.startswith("errno-") else name: value for name, value in found.items()}


class Counted:
    """A converter and two servers in a lab, and runs of programs that count their connections."""

    def __init__(self, lab, arguments=()):
        self.lab = lab
        self.converter = lab.convertd(arguments)
        self.servers = [lab.echo(), lab.chorus()]
        self.launcher = [lab.build.program("convertize"), "--config", "none", "--fallback", "none", "--method", "supervise", "--"]

    def environment(self):
        """The environment of a user's session, which has a cache."""
        env = self.lab.converted(XDG_RUNTIME_DIR=self.lab.directory)
        del env["LD_PRELOAD"]
        return env

    def run(self, words, method, server, supervised, address=None):
        """Runs one program; returns its counts."""
        command = [*words, address or self.lab.server.addr4, server, EACH, AT_ONCE, *method]
        if supervised:
            return fields(self.lab.client.run([*self.launcher, *command], env=self.environment(), timeout=250).stdout)
        return fields(self.lab.client.run(command, timeout=250).stdout)

    def said(self):
        """The output of each server."""
        return [server.log_text() for server in self.servers]

    def peers_since(self, before):
        """The addresses from which connections have come to the servers since then."""
        return {address for then, now in zip(before, self.said()) for address in re.findall(r" accepted (\S+) ", now[len(then):])}


def text(sums):
    return ", ".join("%g %s" % (value, name) for name, value in sorted(sums.items()) if value and name != "slowest")


def count(loss):
    """Runs all programs, supervised and directly; each byte must be the server's, and each peer the server."""
    cases = [(*program, server) for program in programs() for server in ("echo", "chorus")]
    sums = {True: {}, False: {}}
    with Lab(wifi=Link(delay_ms=25, loss=loss), lte=None, core=Link(delay_ms=2.5)) as lab:
        counted = Counted(lab)
        for supervised in (True, False):
            before = counted.said()
            found = side_by_side(lambda case, way=supervised: counted.run(case[1], case[2], case[3], way), cases)
            peers = counted.peers_since(before)
            if supervised:
                equal(peers, {lab.converter.core4}, "the servers' peers")
            for (name, _, _, server), got in zip(cases, found):
                what = "%s, %s, loss %g, %s: %s" % (name, server, loss, "supervised" if supervised else "direct", got)
                same_data((got["foreign"], got["peers"]) == (0, 0), what)
                equal(got["done"] + got["failed"], EACH, what)
                check(loss or not got["failed"], what)
                for key, value in got.items():
                    sums[supervised][key] = sums[supervised].get(key, 0) + value
    return "supervised: %s; direct: %s" % (text(sums[True]), text(sums[False]))


@long
@waits
def test_no_loss():
    return count(0)


@long
@waits
@timeout(900)
def test_one_percent():
    return count(0.01)


@long
@waits
@timeout(900)
def test_five_percent():
    return count(0.05)


if __name__ == "__main__":
    main()
