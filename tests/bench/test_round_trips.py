#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_round_trips.py - are round trips counted right, from packets made by hand?

In all of them the access link takes 100 ms each way and the core link 30 ms; hosts take a millisecond or two.
"""
import dataclasses
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../lab"), os.path.join(HERE, "../../bench")]

# pylint: disable=wrong-import-position
from convertlab import check, equal, main
from models.round_trips import Hop, count, critical_path, explained, first_hop, hops

LINKS = {("phone", "proxy"): ("access", 0.1), ("proxy", "server"): ("core", 0.03)}
GET, RESPONSE = b"GET / HTTP/1.1", b"HTTP/1.1 200 OK"


def hop(source, target, sent, payload=b""):
    """A packet that is sent at a time."""
    link, delay = LINKS.get((source, target)) or LINKS[target, source]
    return Hop(link, source, target, sent, sent + delay, payload)


def socks5():
    """A SOCKS5 connection with a password, its request and its response, and ACKs that nothing waits for."""
    return [hop("phone", "proxy", 0), hop("proxy", "phone", 0.101),                        # SYN
            hop("phone", "proxy", 0.202), hop("phone", "proxy", 0.2021, b"\5\1\2"), hop("proxy", "phone", 0.3025),
            hop("proxy", "phone", 0.303, b"\5\2"),
            hop("phone", "proxy", 0.404, b"\1user"), hop("proxy", "phone", 0.505, b"\1\0"),
            hop("phone", "proxy", 0.606, b"\5\1\0connect"),
            hop("proxy", "server", 0.707), hop("server", "proxy", 0.738), hop("proxy", "server", 0.7685),
            hop("proxy", "phone", 0.769, b"\5\0\0"),
            hop("phone", "proxy", 0.870, GET), hop("proxy", "server", 0.971, GET), hop("server", "proxy", 1.0012),
            hop("server", "proxy", 1.002, RESPONSE), hop("proxy", "phone", 1.033, RESPONSE)]


def test_socks5():
    """Four round trips before the request, five with it."""
    found = socks5()
    request = critical_path(found, first_hop(found, "access", "phone", GET))
    equal(count(request[:-1]), {"access": 4, "core": 1}, "round trips before the request")
    path = critical_path(found, first_hop(found, "access", "proxy", RESPONSE))
    equal(count(path), {"access": 5, "core": 2}, "round trips until the response")
    check(0.985 < explained(path) < 0.995, "%g of the time is explained; it is 1120 of 1133 ms" % explained(path))


def test_response_that_waits_for_an_ack():
    """The server has answered long before, but it is the phone's ACK that lets the response go."""
    found = [hop("phone", "proxy", 0, GET), hop("proxy", "phone", 0.1005), hop("proxy", "server", 0.101, GET),
             hop("server", "proxy", 0.132, RESPONSE), hop("phone", "proxy", 0.201), hop("proxy", "phone", 0.302, RESPONSE)]
    path = critical_path(found, first_hop(found, "access", "proxy", RESPONSE))
    equal(count(path), {"access": 2}, "round trips until the response")
    del found[4]
    found[-1] = hop("proxy", "phone", 0.163, RESPONSE)
    equal(count(critical_path(found, found[-1])), {"access": 1, "core": 1}, "the same without waiting")


def test_unexplained_time():
    """A packet that a timer sent belongs to no other, which shows in the time that nothing explains."""
    found = [hop("phone", "proxy", 0), hop("proxy", "phone", 1.1, RESPONSE)]
    equal(round(explained(critical_path(found, found[-1])), 3), 0.167, "200 of 1200 ms")


def test_marks():
    """Without a mark it is the first payload; another host's and another link's don't count."""
    found = socks5()
    equal(first_hop(found, "access", "phone").payload, b"\5\1\2", "the phone's first payload")
    equal(first_hop(found, "core", "proxy").payload, GET, "the first payload on the core link")
    equal(first_hop(found, "core", "phone"), None, "what a phone sends on the core link")


@dataclasses.dataclass
class Packet:
    """What a capture has of a packet."""

    time: float
    data: bytes
    payload: bytes = b""


def test_hops():
    """Both directions, one of two equal packets lost, and nothing else."""
    phone = [Packet(0, b"syn"), Packet(0.3, b"synack"), Packet(1, b"syn"), Packet(1.4, b"lost")]
    proxy = [Packet(0.1, b"syn"), Packet(0.2, b"synack"), Packet(1.1, b"syn"), Packet(2, b"other")]
    equal([(one.source, one.sent, one.arrived) for one in hops("access", "phone", phone, "proxy", proxy)],
          [("phone", 0, 0.1), ("proxy", 0.2, 0.3), ("phone", 1, 1.1)], "the hops")


if __name__ == "__main__":
    main()
