#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_times.py - measures the first byte with data in the SYN, the converter's answers, and the round trips that convertize shows

We compare each with the known delays of the links. The docstrings derive the expected times.
"""
import os
import statistics
import time

from convertlab import Lab, Link, Unsuitable, check, main, measured, measured_between, measures, need
from convertlab.peers import MPTCP, TCP, Client, Server, connect, connect_tlv, converter, message, octets
from test_convertize_check import Report

INFO = octets("01010000")

PAIRS = 41
SURE = 14     # the fourteenth smallest of 41 is below the true median in 98 of 100 cases (sign test)
SAVED = 0.9   # the least share of a round trip to the converter


def first_byte(lab, env):
    """Milliseconds from connect() to the first byte of the answer."""
    return float(lab.client.run(["curl", "-s", "-o", "/dev/null", "-w", "%{time_starttransfer}",
                                 "http://%s/bytes/10" % lab.server.addr4], env=env).stdout) * 1000


@measures
def test_first_byte():
    """Data in the SYN saves nearly all of the round trip to the converter: 120 ms directly, 100 ms converted.

    Runs alternate, and we compare each with its neighbour. The median of the saved time must be at least SAVED of that round trip, with a
    confidence of 98 %, so that at most a third of PAIRS may be disturbed.
    """
    need("curl")
    if os.environ.get("SANITIZER_PRELOAD"):
        raise Unsuitable("not under sanitizers: it measures")
    trip = 20
    with Lab(wifi=Link(delay_ms=trip / 2), lte=None, core=Link(delay_ms=20)) as lab:
        lab.convertd(["--hold-syn", "off", "--workers", "1"])  # so that only the round trip counts
        lab.http()
        pairs = [(first_byte(lab, None), first_byte(lab, lab.converted(CONVERT_EARLY_DATA="1"))) for _ in range(PAIRS)]
        saved = sorted(direct - converted for direct, converted in pairs)
        found = "saved %.1f ms of %d in the median, %.1f with confidence; medians %.1f ms directly, %.1f converted" % (
            statistics.median(saved), trip, saved[SURE - 1], *map(statistics.median, zip(*pairs)))
        measured(saved[SURE - 1] >= SAVED * trip, found)
        return found


def seconds_to_answer(client, request):
    """Seconds from the SYN to the whole answer."""
    start = time.monotonic()
    client.send(request)
    client.answer()
    return time.monotonic() - start


@measures
def test_time_of_answers():
    """A TCP client gets any answer with the server's, after one round trip of each leg. So are refusals over MPTCP, since convertd lets a
    withheld SYN that ends in an error go as one of TCP. Other answers over MPTCP wait for the third ACK, before which Linux sends nothing:
    a second round trip of the first leg, if convertd withheld the SYN. It doesn't withhold a request with an Info TLV, whose third ACK
    comes before the server's answer."""
    first, second = 0.020, 0.060  # round trips
    with Lab(wifi=Link(delay_ms=first * 500), lte=None, core=Link(delay_ms=second * 500)) as lab, \
            Server(lab, 80) as server, converter(lab):
        median = {}
        for protocol in (TCP, MPTCP):
            for name, request in (("connected", server.connect()), ("info", message(INFO)),
                                  ("both", message(INFO, connect_tlv(lab.server.addr4, 80))),
                                  ("refused", connect(lab.server.addr4, lab.addresses.refused_port))):
                times = []
                for _ in range(5):
                    with Client(lab.client, lab.converter.addr4, protocol) as client:
                        times.append(seconds_to_answer(client, request))
                    if name in ("connected", "both"):
                        server.accept().close()
                check(min(times) > first + (0 if name == "info" else second) - 0.001,
                      "%s is answered after %.4f s, before the server can have been asked" % (name, min(times)))
                median[protocol, name] = statistics.median(times)
        for protocol in (TCP, MPTCP):
            for name in ("connected", "both", "refused"):
                trips = first * (2 if (protocol, name) == (MPTCP, "connected") else 1) + second
                measured_between(median[protocol, name], trips - 0.001, trips * 1.25, "seconds until %s" % name)
        measured_between(median[TCP, "info"], first - 0.001, first * 1.6, "seconds until the answer to Info over TCP")
        measured_between(median[MPTCP, "info"], first * 2 - 0.001, first * 2.6, "seconds until the answer to Info over MPTCP")


@measures
def test_round_trip_that_convertize_tells():
    """The links' round trip, and little more for convertd and the machine."""
    with Lab(wifi=Link(delay_ms=10), lte=Link(delay_ms=25), core=Link()) as lab:
        lab.convertd()
        report = Report(lab, "sh", converter="%s,%s" % (lab.converter.addr4, lab.converter.addr6))
        for fact in report.all("converter.round_trip_ms"):
            measured_between(fact["value"], 20, 30, "round trip in ms to " + fact["about"])


if __name__ == "__main__":
    main()
