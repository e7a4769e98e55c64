#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_supervise_slow.py - supervised programs reach servers that take longer to answer than a converter may withhold a SYN

The supervisor makes each request again, with its data, until the server has answered: all connections succeed, also the first, and the
server sees each of them once.
"""
import re
import signal
import time

from convertlab import Lab, Link, check, equal, kernel, long, main, need, timeout, wait_until, waits
from convertlab.forging import LINUX, Forge, route_back, victim
from convertlab.metrics import OPTIONS as METRICS, Metrics
from convertlab.programs import c_program
from convertlab.supervised import first_lost
from test_silence_blind import asks
from test_supervise_begin import Supervised
from test_supervise_streams import TALLY, Counted

AT_ONCE = 4
ANSWERS_AFTER = ((1, ("epoll", "blocking", "epoll")), (5, ("epoll", "blocking")))  # seconds, and how connections are made
LATE = "answers later than the converter waits"
ASKED_AGAIN = "no answer yet, asked again"


def lab_of_path():
    return Lab(wifi=Link(delay_ms=25), lte=None, core=Link(delay_ms=2.5))


class Slow(Counted):
    """Connections to a server that speaks first, so that only the handshake takes long."""

    def __init__(self, lab, arguments=()):
        super().__init__(lab, arguments)
        self.programs = {"static": c_program("streams-static", TALLY, flags=["-static"])}
        # one run before fills the cache
        self.tally("epoll")

    def tally(self, method, count=AT_ONCE):
        """Makes so many connections at once; returns (their outcomes, how many the server has seen)."""
        before = self.said()[1].count(" accepted ")
        command = [*self.launcher, self.programs["static"], self.lab.server.addr4, "chorus", count, count, method]
        said = self.lab.client.run(command, env=self.environment(), timeout=100).stdout
        return {name: int(value) for name, value in re.findall(r"(done|failed|foreign|peers)=(\d+)", said)}, \
            self.said()[1].count(" accepted ") - before


def expect(got, count, what):
    equal(got, ({"done": count, "failed": 0, "foreign": 0, "peers": 0}, count), what)


@long
@waits
@timeout(300)
@kernel.needs("fastopen")
def test_first_connections():
    """The server answers after 1 or 5 s: the first connections to it succeed, blocking ones and an event loop's, and so do later ones."""
    waited = []
    for seconds, methods in ANSWERS_AFTER:
        with lab_of_path() as lab:
            slow = Slow(lab)
            lab.core.set(delay_ms=seconds * 500)
            for method in methods:
                begin = time.monotonic()
                got = slow.tally(method)
                waited.append("%.1f" % (time.monotonic() - begin))
                expect(got, AT_ONCE, "%s, after %g s, in\n%s" % (method, seconds, lab.shim_log()))
            check("blindly" in lab.shim_log() and LATE not in lab.shim_log(), lab.shim_log())
    return "after %s s" % ", ".join(waited)


@timeout(120)
@kernel.needs("fastopen")
def test_socket_that_is_elsewhere():
    """The SYN is lost, and the socket has another descriptor or process by then: the supervisor makes the request again all the same.

    If the program has begun to connect it to another server, the supervisor drops the first request.
    """
    with lab_of_path() as lab:
        slow = Slow(lab)
        program = c_program("elsewhere", "static/elsewhere.c", flags=["-static"])
        other = "10.8.0.2"
        lab.server.ip("addr add %s/32 dev lo" % other)
        for word, lost, peer in (("moved", 1, lab.server.addr4), ("child", 1, lab.server.addr4), ("parent", 1, lab.server.addr4),
                                 ("again", 2, other), ("refused", 0, lab.server.addr4)):
            lab.converter.run(["nft", "-f", "-"], input=first_lost(lost) if lost else "table inet lost {\n}\n")
            said = lab.client.run([*slow.launcher, program, lab.server.addr4, word, other], env=slow.environment(), check=False).stdout
            equal(said, "hello %s:7\n" % peer, "%s: %s" % (word, lab.shim_log()))
            lab.converter.run(["nft", "delete", "table", "inet", "lost"])
        # on a busy machine the converter may have given a connection to the server up before it carried a byte
        wait_until(lambda: slow.said()[0].count(" bytes=") == slow.said()[0].count(" accepted "), 10, lambda: slow.said()[0])
        equal(slow.said()[0].count(" accepted "), 5 + slow.said()[0].count(" bytes=0 "), slow.said()[0])


@timeout(120)
@kernel.needs("fastopen")
def test_cookies_are_demanded():
    """Forged SYNs make convertd demand cookies: a supervised event loop has none, but its connections succeed, each once."""
    with lab_of_path() as lab, Forge(lab) as forge:
        slow = Slow(lab, ("--max-pending", "400", *METRICS))
        route_back(lab)
        blackholes = asks(lab.addresses.blackhole4, 80, False), asks(lab.addresses.blackhole6, 80, False)
        for number in range(40):  # a listener takes the data of 100 SYNs that wait for their third ACKs
            for v6 in (False, True):
                forge.syn(victim(number, v6), 30000, blackholes[v6], LINUX)
        wait_until(lambda: Metrics(lab.converter)("convertd_cookies_demanded") == 1, 5, "cookies to be demanded")
        expect(slow.tally("epoll", 8), 8, lab.shim_log())
        equal(Metrics(lab.converter)("convertd_cookies_demanded"), 1, "cookies that are demanded still")


@long
@waits
@timeout(120)
@kernel.needs("fastopen")
def test_programs_that_poll():
    """They wait by poll() with a time-out, and don't notice that the supervisor makes their requests again, in each of three runs."""
    with lab_of_path() as lab:
        lab.convertd()
        lab.echo()
        program = Supervised(lab)
        program.echo()
        lab.core.set(delay_ms=1000)
        for _ in range(3):
            program.echo("poll", "threads=%d" % AT_ONCE)
        check(lab.shim_log().count(ASKED_AGAIN) >= 2 * 3, lab.shim_log())


@long
@waits
@timeout(120)
@kernel.needs("fastopen")
def test_answers_between_two_syns():
    """The answer comes when the converter may not let the SYN go any more, before the next SYN: the server sees each connection once."""
    for ms in (720, 900):
        with lab_of_path() as lab:
            slow = Slow(lab)
            lab.core.set(delay_ms=ms / 2)
            for count in (1, 3):
                expect(slow.tally("epoll", count), count, "after %g ms, in\n%s" % (ms, lab.shim_log()))


@long
@waits
@timeout(120)
@kernel.needs("fastopen")
def test_answers_to_far_clients():
    """
    The client's round trip is 400 ms, so it lets its SYNs be withheld for 150 ms. The converter keeps an answer that comes later for the
    next SYN.
    """
    for ms in (420, 680):
        with lab_of_path() as lab:
            lab.wifi.set(delay_ms=200)
            slow = Slow(lab)
            lab.core.set(delay_ms=ms / 2)
            for count in (1, 3):
                expect(slow.tally("epoll", count), count, "after %g ms, in\n%s" % (ms, lab.shim_log()))


def asked(lab):
    """The converter's pending connections to servers."""
    return lab.converter.run(["ss", "-Htn", "state", "syn-sent"]).stdout.splitlines()


def started(lab, slow):
    """Starts a program; returns it once the supervisor has made its request again twice."""
    client = lab.client.popen([*slow.launcher, slow.programs["static"], lab.server.addr4, "chorus", 1, 1, "epoll"],
                              env=slow.environment(), name="tally")
    wait_until(lambda: lab.shim_log().count(ASKED_AGAIN) >= 2, 10, lambda: "two repeats, in\n" + lab.shim_log())
    equal(len(asked(lab)), 1, "connections to the server")
    return client


@kernel.needs("fastopen")
def test_lost_on_the_way_to_the_server():
    """The server's network loses the first SYNs: the converter's kernel repeats them, as for a direct connection."""
    need("ss", "iproute2")
    with lab_of_path() as lab:
        slow = Slow(lab)
        lab.core.down()
        client = started(lab, slow)
        lab.core.up()
        wait_until(lambda: client.poll() is not None, 20, "the end of the program")
        check("done=1 failed=0 foreign=0" in client.log_text(), client.log_text() + lab.shim_log())


@kernel.needs("fastopen")
def test_a_program_that_gives_up():
    """The program ends: the supervisor stops making its request again, and the converter gives the server up."""
    need("ss", "iproute2")
    with lab_of_path() as lab:
        slow = Slow(lab)
        lab.core.down()
        client = started(lab, slow)
        client.stop(signal.SIGKILL)
        wait_until(lambda: not asked(lab), 10, lambda: "an end of the converter's attempt, in\n" + lab.shim_log())
        check(lab.shim_log().count(ASKED_AGAIN) <= 3, lab.shim_log())


if __name__ == "__main__":
    main()
