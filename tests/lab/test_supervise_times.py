#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_supervise_times.py - on long links, connect() of supervised event loops returns at once, and lost SYNs are repeated in time"""
from convertlab import Lab, Link, check, equal, main, measured_between, measures
from convertlab.programs import c_program
from convertlab.supervised import first_lost
from test_supervise_streams import TALLY, Counted, fields

LONGEST_MS = 10
MANY = 200


@measures
def test_connect_of_event_loops():
    """A non-blocking connect() returns at once if the cache says that the converter takes blind requests and the path data in SYNs, also if
    packets get lost."""
    slowest = []
    for loss in (0, 0.05):
        with Lab(wifi=Link(delay_ms=25), lte=None, core=Link(delay_ms=2.5)) as lab:
            counted = Counted(lab)
            static = c_program("streams-static", TALLY, flags=["-static"])
            # the cache fills without loss: otherwise the supervisor may ask the converter's other address
            counted.run([static], ["epoll"], "echo", supervised=True)
            lab.wifi.set(loss=loss)
            slowest.append(counted.run([static], ["epoll"], "echo", supervised=True)["slowest"])
            measured_between(slowest[-1], 0, LONGEST_MS, "ms of the longest connect() at a loss of %g" % loss)
    return "at most %.1f ms, and with loss %.1f ms" % tuple(slowest)


@measures
def test_many_lost_at_once():
    """The first SYNs of an event loop's many connections are lost: the supervisor makes all requests again in less than two tenths of a
    second, before the kernel sends SYNs without data."""
    with Lab(wifi=Link(delay_ms=25), lte=None, core=Link(delay_ms=2.5)) as lab:
        counted = Counted(lab)
        static = c_program("streams-static", TALLY, flags=["-static"])
        counted.run([static], ["epoll"], "chorus", supervised=True)
        lab.converter.run(["nft", "-f", "-"], input=first_lost(MANY))
        command = [*counted.launcher, static, lab.server.addr4, "chorus", MANY, MANY, "epoll"]
        got = fields(lab.client.run(command, env=counted.environment(), timeout=100).stdout)
        equal((got["foreign"], got["peers"], got["done"] + got["failed"]), (0, 0, MANY), str(got))
        check(lab.shim_log().count("asked again") >= MANY / 2, lab.shim_log())
        measured_between(got["failed"], 0, 0, "connections that failed")


if __name__ == "__main__":
    main()
