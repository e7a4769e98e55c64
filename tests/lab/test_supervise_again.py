#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_supervise_again.py - sockets that a program doesn't simply connect once: the same as without a supervisor

Programs shut them down or close them while they connect, connect them again after a failure, or move to another network. Each test
compares the transcript of again.c with its transcript without convertize.
"""
import contextlib

from convertlab import Unsuitable, check, equal, kernel, long, main, waits
from convertlab.programs import c_program
from test_supervise_moments import CLOSED, OVER, PORT, place

AGAIN = "static/again.c"


class Modes:
    """A Place with again.c, which runs with a full and an empty cache, with a bypass, and with a dead converter."""

    def __init__(self, here):
        self.here = here
        self.program = c_program("again-static", AGAIN, flags=["-static"])
        self.modes = {
            "known": {"known": True},
            "unknown": {"known": False},
            "bypassed": {"known": False, "CONVERT_BYPASS": here.lab.server.addr4},
            "the converter is dead": {"known": False, "CONVERT_ADDR": here.lab.converter.addr4 + ":9"},
        }

    def log(self, case, mode, address=None, **variables):
        """Checks that the program sees the same as without convertize; returns the log."""
        words = [self.program, address or self.here.lab.server.addr4, PORT, CLOSED, case]
        env = self.here.env(**self.modes[mode], **variables)
        got = self.here.lab.client.run([*self.here.launcher, *words], env=env, check=False)
        direct = self.here.lab.client.run(words, check=False)
        if direct.returncode == 77:
            raise Unsuitable("no other network can be made here")
        equal(got.stdout, direct.stdout, "%s, %s: %s" % (case, mode, got.stderr))
        return got.stderr


@contextlib.contextmanager
def modes(delay_ms=20):
    with place(delay_ms=delay_ms) as here:
        yield Modes(here)


@long
@waits
@kernel.needs("calls")
def test_shut_down():
    """The program's shutdown() ends the attempt. It is no fault of the converter, which the supervisor continues to use."""
    with modes(delay_ms=300) as these:
        for mode in these.modes:
            log = these.log("shutdown", mode)
            # without Fast Open the kernel itself makes direct connections, on the program's own socket
            check("shut the socket down" in log or (": direct" in log and not kernel.has("fastopen")), log)
            if mode != "the converter is dead":
                check("left alone" not in log, log)
        for mode in ("known", "unknown"):
            log = these.log("shutdown", mode)
            equal(log.count(OVER), 1, log)


@long
@waits
def test_closed():
    """The connection is made nevertheless, as by Linux, and another descriptor for the socket has it."""
    with modes(delay_ms=150) as these:
        for mode in these.modes:
            these.log("close", mode)


@long
@waits
def test_refused_before():
    """Whichever call told the program, it can connect the socket again, and the connection is converted."""
    with modes() as these:
        for case in ("refused", "told", "unspec"):
            for mode in these.modes:
                log = these.log(case, mode)
                if "known" in mode:
                    check(":%d: %s" % (PORT, OVER) in log, "%s, %s: %s" % (case, mode, log))


@long
@waits
def test_refused_before_over_ipv6():
    """Likewise with an IPv6 converter: Linux wouldn't connect the socket to it any more if it had been connected to an IPv4 address."""
    with modes() as these:
        for converter in ("[%s]" % these.here.lab.converter.addr6, these.here.lab.converter.addr4):
            for case in ("refused", "told"):
                for mode in ("known", "unknown"):
                    log = these.log(case, mode, these.here.lab.server.addr6, CONVERT_ADDR=converter)
                    check(":%d: %s" % (PORT, OVER) in log, "%s, %s, %s: %s" % (converter, case, mode, log))


def test_another_network():
    """The supervisor reaches nothing for a program that the program's own network namespace can't reach."""
    with modes() as these:
        for mode in these.modes:
            these.log("network", mode)


def test_owner():
    """The owner of a socket, who gets its signals, stays when another socket takes its place."""
    with modes() as these:
        for mode in these.modes:
            these.log("owner", mode)


@kernel.needs("calls")
def test_executed_meanwhile():
    """The supervisor doesn't write the count of a sendmmsg() into the memory of a program that was executed meanwhile."""
    with modes(delay_ms=5) as these:
        for mode in these.modes:
            these.log("message", mode)


def test_odd_calls():
    with modes() as these:
        for mode in these.modes:
            these.log("odd", mode)


if __name__ == "__main__":
    main()
