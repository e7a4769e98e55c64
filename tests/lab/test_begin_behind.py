#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_begin_behind.py - the SYN is answered, and the request behind the handshake isn't: the connection begins anew on a path that works"""
import os

from convertlab import Link, check, equal, kernel, long, main, waits
from convertlab.peers import asked_to_connect
from test_begin import APPS, lab_for, remembering, served
from test_supervise_begin import Supervised

# Rules for what comes from wifi. What has data is longer than any acknowledgement; probes are those that aren't Multipath TCP's.
DATA = "tcp flags & syn == 0 ip length > 100"
PROBES = "tcp flags & (syn | ack) == syn tcp option mptcp missing"
INFO_ASKED = "information ("


def losing(*rules):
    """An nftables ruleset for the converter's host, which drops what one of the rules says of packets to the converter."""
    return "table netdev lost { chain in { type filter hook ingress device wifi priority 0; %s }; }" % \
        " ".join("tcp dport 1234 %s drop;" % rule for rule in rules)


def preloaded(lab, way):
    """The address that a program's connection came from, which knows nothing before."""
    said = lab.client.run(["python3", os.path.join(APPS, "connect_probe.py"), way, lab.server.addr4, 7], env=remembering(lab)).stdout
    check("hello" in said, "what the program saw by %s:\n%s" % (way, said))


def supervised(lab, way):
    Supervised(lab).echo(*([way] if way else []))


# Where Multipath TCP has no Fast Open, supervised programs' connections go over TCP, with their requests in SYNs.
WAYS = [(preloaded, way) for way in ("blocking", "poll", "epoll", "connect")]
WAYS += [(supervised, way) for way in ("", "nonblocking", "poll") if kernel.has("fastopen")]


def moved_once(ruleset, complaint):
    """By each way: the connection moves from wifi, of which @complaint is told, to lte, and the converter sees one request there."""
    for connect, way in WAYS:
        with lab_for() as lab:
            served(lab)
            lab.converter.run(["nft", "-f", "-"], input=ruleset)
            with lab.capture(lab.converter, "lte", "tcp port 1234") as lte:
                connect(lab, way)
            log = lab.shim_log()
            what = "by %s %s, in\n%s" % (connect.__name__, way, log)
            equal((log.count("the path to it %s, asked by lte" % complaint), log.count("converted over MPTCP"), log.count("direct")), (1, 1, 0), what)
            equal(len(asked_to_connect(lte)), 1, "requests over lte " + what)


@long
@waits
def test_silent_since_the_handshake():
    """Wifi lets the handshake through, and nothing any more."""
    moved_once(losing(DATA, PROBES), "is silent")


@long
@waits
def test_data_is_lost():
    """Wifi lets SYNs through, with data or without, and loses what follows them."""
    moved_once(losing(DATA), "loses packets")


@long
@waits
def test_all_data_is_lost():
    """Wifi lets SYNs without data through, and nothing else."""
    moved_once(losing(DATA, PROBES + " ip length > 70"), "loses packets")


@long
@waits
def test_one_that_is_lost():
    """The request is lost once, or its acknowledgement late: TCP sends it again, and the connection stays where it is."""
    for connect, way in WAYS:
        with lab_for() as lab:
            served(lab)
            lab.converter.run(["nft", "-f", "-"], input=losing(DATA + " numgen inc mod 1000 0"))
            connect(lab, way)
            log = lab.shim_log()
            equal((log.count("asked by"), log.count("request behind the handshake"), log.count("direct")), (0, 1, 0),
                  "by %s %s, in\n%s" % (connect.__name__, way, log))


@long
@waits
def test_a_slow_server():
    """The request is acknowledged, and its answer is the server's to give: no path is asked."""
    for connect, way in [each for each in WAYS if each[1] in ("blocking", "epoll", "")]:
        with lab_for(core=Link(delay_ms=500)) as lab:
            converter = lab.convertd()
            lab.echo()
            connect(lab, way)
            equal((converter.log_text().count(INFO_ASKED), lab.shim_log().count("request behind the handshake")), (0, 1),
                  "questions by %s %s, in\n%s" % (connect.__name__, way, lab.shim_log()))


if __name__ == "__main__":
    main()
