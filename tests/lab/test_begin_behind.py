#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_begin_behind.py - the SYN is answered, the request behind the handshake isn't: the connection begins anew on a path that works"""
import os

from convertlab import Link, check, equal, kernel, long, main, waits
from convertlab.peers import asked_to_connect
from test_begin import APPS, lab_for, remembering, served
from test_supervise_begin import Supervised

# Matches for packets from wifi. Packets with data are longer than any acknowledgement; probes are SYNs without Multipath TCP.
DATA = "tcp flags & syn == 0 ip length > 100"
PROBES = "tcp flags & (syn | ack) == syn tcp option mptcp missing"
INFO_ASKED = "information ("


def losing(*rules):
    """An nftables ruleset for the converter's host that drops the packets to the converter that meet one of these matches."""
    return "table netdev lost { chain in { type filter hook ingress device wifi priority 0; %s }; }" % \
        " ".join("tcp dport 1234 %s drop;" % rule for rule in rules)


def preloaded(lab, way):
    """Checks that a preloaded program, which has learned nothing before, reaches the server."""
    said = lab.client.run(["python3", os.path.join(APPS, "connect_probe.py"), way, lab.server.addr4, 7], env=remembering(lab)).stdout
    check("hello" in said, "no answer by %s; the program saw:\n%s" % (way, said))


def supervised(lab, way):
    Supervised(lab).echo(*([way] if way else []))


# Where Multipath TCP has no Fast Open, supervised programs' connections go over TCP, with their requests in SYNs.
WAYS = [(preloaded, way) for way in ("blocking", "poll", "epoll", "connect")]
WAYS += [(supervised, way) for way in ("", "nonblocking", "poll") if kernel.has("fastopen")]


def moved_once(ruleset, complaint):
    """In each way: the connection moves from wifi to lte, the log has this complaint, and the converter sees one request on lte."""
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
    """Wifi lets the handshake through, and then neither data nor probes."""
    moved_once(losing(DATA, PROBES), "is silent")


@long
@waits
def test_data_is_lost():
    """Wifi lets SYNs through, with data or without, and loses the data that follow them."""
    moved_once(losing(DATA), "loses packets")


@long
@waits
def test_all_data_is_lost():
    """Wifi loses all data, of probes' SYNs as well."""
    moved_once(losing(DATA, PROBES + " ip length > 70"), "loses packets")


@long
@waits
def test_request_lost_once():
    """TCP sends the request again, and the connection stays on wifi."""
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
    """The request is acknowledged, and its response waits for the server: no path is probed."""
    for connect, way in [each for each in WAYS if each[1] in ("blocking", "epoll", "")]:
        with lab_for(core=Link(delay_ms=500)) as lab:
            converter = lab.convertd()
            lab.echo()
            connect(lab, way)
            equal((converter.log_text().count(INFO_ASKED), lab.shim_log().count("request behind the handshake")), (0, 1),
                  "probes by %s %s, in\n%s" % (connect.__name__, way, lab.shim_log()))


if __name__ == "__main__":
    main()
