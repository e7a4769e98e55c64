#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_supervise_begin.py - supervised programs' connections begin on a path that works"""
import os
import time

from convertlab import check, equal, kernel, long, main, need, wait_until, waits
from convertlab.supervised import build
from test_begin import BEGINS, DIRECT_BY, MOVED, NOWHERE, lab_for, remembering, router_says, served, unmoved, well

WAYS = ((), ("nonblocking",), ("poll",), ("threads=4",))


class Supervised:
    """A static program under the supervisor, which remembers what it learns, under a name for remembering()."""

    def __init__(self, lab, **env):
        directory = os.path.join(lab.directory, "programs")
        os.makedirs(directory, exist_ok=True)
        self.lab = lab
        self.client = build("static", directory)
        self.env = {name: value for name, value in remembering(lab, **env).items() if name != "LD_PRELOAD"}

    def run(self, *words):
        """Runs any command; returns what it has printed."""
        return self.lab.client.run([self.lab.build.program("convertize"), "--method", "supervise", *words], env=self.env).stdout

    def curl(self):
        """Runs curl, which waits by poll(2) and must get its answer; returns its address."""
        need("curl")
        status, address = self.run("curl", "-sS", "-m", "25", "-o", "/dev/null", "-w", "%{http_code} %{local_ip}",
                                   "http://%s/bytes/10" % self.lab.server.addr4).split()
        equal(status, "200", "what curl got, in\n" + self.lab.shim_log()[-3000:])
        return {address}

    def echo(self, *way):
        """Runs the client; each of its threads must get its answer. Returns their addresses."""
        lines = self.run(self.client, self.lab.server.addr4, 7, *way).splitlines()
        for line in lines:
            check("answer=hello" in line, "what the program saw by %s: %s, in\n%s" % (way, lines, self.lab.shim_log()[-3000:]))
        return {word.split("=")[1].rpartition(":")[0] for line in lines for word in line.split() if word.startswith("local=")}


@long
@waits
@kernel.needs("calls")
def test_dead_default_path():
    """Wifi drops all packets: the first connection moves to lte, in each way to wait; later ones begin there."""
    for way in WAYS:
        with lab_for() as lab:
            served(lab)
            program = Supervised(lab, name=well(lab, lambda name, lab=lab, way=way: Supervised(lab, name=name).echo(*way), {lab.client.wifi4}))
            before = len(lab.shim_log())
            lab.wifi.down()
            addresses = [program.echo(*way) for _ in range(3)]
            log = lab.shim_log()[before:]
            equal(addresses, [{lab.client.lte4}] * 3, "addresses by %s, in\n%s" % (way, log))
            moved = range(1, 5 if way == ("threads=4",) else 2)  # a line for each connection that notices it
            check(log.count(MOVED) in moved and log.count(BEGINS) >= 2 and "direct" not in log, "moved by %s, in\n%s" % (way, log))


@long
@waits
def test_nothing_known():
    """The same with an empty cache."""
    for way in WAYS:
        with lab_for() as lab:
            served(lab)
            program = Supervised(lab)
            lab.wifi.down()
            equal([program.echo(*way) for _ in range(2)], [{lab.client.lte4}] * 2, "addresses by %s, in\n%s" % (way, lab.shim_log()))


@kernel.needs("fastopen")
@kernel.needs("calls")
def test_blind():
    """The supervisor makes a blind request again on the path that works, for programs that wait by epoll and by poll."""
    for ask in (lambda program: program.echo("nonblocking"), Supervised.curl):
        with lab_for() as lab:
            served(lab)
            name = well(lab, lambda name, lab=lab, ask=ask: [ask(Supervised(lab, name=name)) for _ in range(2)], [{lab.client.wifi4}] * 2)
            program, before = Supervised(lab, name=name), lab.shim_log().count(MOVED)
            lab.wifi.down()
            equal([ask(program) for _ in range(3)], [{lab.client.lte4}] * 3, "the address, in\n" + lab.shim_log())
            log = lab.shim_log()
            check("blindly" in log and log.count(MOVED) == before + 1, log)


def test_path_that_is_back():
    """Wifi works again: a connection finds that out, and the next one uses it."""
    with lab_for() as lab:
        served(lab)
        program = Supervised(lab)
        lab.wifi.down()
        equal([program.echo() for _ in range(2)], [{lab.client.lte4}] * 2, "addresses, in\n" + lab.shim_log())
        lab.wifi.up()
        back = time.monotonic()
        wait_until(lambda: program.echo() == {lab.client.wifi4}, 10, lambda: "wifi to be used again:\n" + lab.shim_log())
        return "after %.1f s" % (time.monotonic() - back)


@long
@waits
def test_slow_servers():
    """Servers take 0.1 to 2 s to answer, for blind requests only as long as these can wait: no connection moves."""
    with lab_for() as lab:
        served(lab)
        program = Supervised(lab)
        for delay in (0.1, 0.4, 0.65):
            lab.core.set(delay_ms=delay * 500)
            equal([program.curl() for _ in range(2)], [{lab.client.wifi4}] * 2, "after %g s, in\n%s" % (delay, lab.shim_log()))
        for delay in (0.1, 0.65, 0.75, 2.0):
            lab.core.set(delay_ms=delay * 500)
            equal([program.echo() for _ in range(2)], [{lab.client.wifi4}] * 2, "after %g s, in\n%s" % (delay, lab.shim_log()))
        equal(lab.shim_log().count(MOVED), 0, "moved, in\n" + lab.shim_log())


def test_path_that_leads_nowhere():
    """Wifi's router reports all hosts unreachable: connections use lte at once, and wifi again once it works."""
    with lab_for() as lab:
        served(lab)
        program = Supervised(lab)
        program.echo()
        router_says(lab, "host-unreachable")
        equal([program.echo() for _ in range(3)], [{lab.client.lte4}] * 3, "addresses, in\n" + lab.shim_log())
        equal((lab.shim_log().count(NOWHERE), lab.shim_log().count("direct")), (1, 0), "in\n" + lab.shim_log())
        lab.converter.run(["nft", "delete table inet router"])
        wait_until(lambda: program.echo() == {lab.client.wifi4}, 10, lambda: "wifi to be used again:\n" + lab.shim_log())


def test_dead_address_of_two():
    """The converter's first address is dead, and the log names that one."""
    with lab_for() as lab:
        served(lab)
        lab.converter.ip("route add blackhole 10.9.0.66")

        def connect(name):
            program = Supervised(lab, name=name, CONVERT_ADDR="10.9.0.66,%s" % lab.converter.addr4)
            return [program.echo() for _ in range(2)]
        found, said = unmoved(lab, connect, moves=1)
        equal(found, [{lab.client.wifi4}] * 2, "addresses, in\n" + said)
        equal(said.count("converter 10.9.0.66:1234: " + MOVED), 1, "moved, in\n" + said)


@kernel.needs("fastopen")
def test_blind_where_data_in_syns_is_lost():
    """A blind request has only its SYN: the supervisor makes it again on the other network, which carries the data."""
    with lab_for() as lab:
        served(lab)
        program = Supervised(lab)
        for _ in range(2):
            program.echo("nonblocking")
        lab.wifi.set("a-to-b", max_syn=66)
        equal(program.echo("nonblocking"), {lab.client.lte4}, "the address, in\n" + lab.shim_log())
        check("blindly" in lab.shim_log() and "the path to it loses SYNs with data, asked by lte" in lab.shim_log(), lab.shim_log())


@kernel.needs("fastopen")
def test_blind_where_short_programs_fail():
    """Wifi begins to remove data from SYNs, or its router reports all hosts unreachable: a blind request fails.

    Its program ends before the supervisor has found out why. The next request isn't blind.
    """
    for begins in (lambda lab: lab.wifi.set("a-to-b", strip_syn_data=True), lambda lab: router_says(lab, "host-unreachable")):
        with lab_for() as lab:
            served(lab)
            program = Supervised(lab)
            for _ in range(3):
                program.echo("nonblocking")
            check("blindly" in lab.shim_log(), lab.shim_log())
            begins(lab)
            words = [lab.build.program("convertize"), "--method", "supervise", program.client, lab.server.addr4, 7, "nonblocking"]
            said = [lab.client.run(words, env=program.env, check=False).stdout for _ in range(4)]
            equal(["answer=hello" in text for text in said[1:]], [True] * 3, "%s, in\n%s" % (said, lab.shim_log()[-3000:]))


@kernel.needs("fastopen")
def test_path_that_loses_data_in_syns():
    """Wifi loses SYNs with data: the request follows the handshake there."""
    with lab_for() as lab:
        served(lab)
        lab.wifi.set("a-to-b", max_syn=66)

        def connect(name):
            program = Supervised(lab, name=name)
            return [program.echo() for _ in range(3)]
        found, said = unmoved(lab, connect)
        equal(found, [{lab.client.wifi4}] * 3, "addresses, in\n" + said)
        check("asked behind the handshake" in said, said)


def test_direct_takes_a_path_that_works():
    """The converter refuses on lte, wifi is dead: the direct connection goes over lte."""
    with lab_for() as lab:
        lab.convertd(["--deny-client", "%s/32" % lab.client.lte4])
        lab.echo()
        program = Supervised(lab)
        lab.wifi.down()
        equal([program.echo() for _ in range(2)], [{lab.client.lte4}] * 2, "addresses, in\n" + lab.shim_log())
        check(DIRECT_BY in lab.shim_log(), lab.shim_log())


def test_what_the_user_wants():
    """CONVERT_PATHS: lte first, or wifi never."""
    for wants in ("lte", "wifi=never"):
        with lab_for() as lab:
            served(lab)
            found, said = unmoved(lab, lambda name, lab=lab, wants=wants: Supervised(lab, name=name, CONVERT_PATHS=wants).echo())
            equal(found, {lab.client.lte4}, "the address with %s, in\n%s" % (wants, said))


def test_networks_that_are_not_there():
    """CONVERT_PATHS names a network that doesn't exist: the log says so."""
    with lab_for() as lab:
        served(lab)
        found, said = unmoved(lab, lambda name: Supervised(lab, name=name, CONVERT_PATHS="wlan9 lte").echo())
        equal(found, {lab.client.lte4}, "the address, in\n" + said)
        equal([line.split("]: ")[1] for line in said.splitlines() if "CONVERT_PATHS" in line],
              ["CONVERT_PATHS names wlan9: there is no such device or address now"], "what the log says")


def test_bound_socket_stays():
    """A socket that the program has bound to an address keeps it."""
    with lab_for() as lab:
        served(lab)
        program = Supervised(lab)
        equal(program.echo("bind"), {lab.client.wifi4}, "the address, in\n" + lab.shim_log())


if __name__ == "__main__":
    main()
