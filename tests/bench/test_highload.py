#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_highload.py - the published figures on MPTCP under high load fit together, and statements are confirmed where they should be"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lab"))

# pylint: disable=wrong-import-position
from convertlab import check, equal, main
from convertlab.build import SRCDIR

sys.path.insert(0, os.path.join(SRCDIR, "bench"))
from models import highload
from models.highload import Outcome

RAMPS = (160, 100)
# throughput, share that failed, how many, running time
TCP = [Outcome(500, 0.01, 800, 165), Outcome(580, 0.05, 4000, 170)]
MPTCP = [Outcome(560, 0.0, 0, 161), Outcome(840, 0.0, 0, 102)]


def verdicts(tcp, mptcp):
    return {each.key: each.verdict for each in highload.statements(tcp, mptcp, RAMPS)}


def test_what_agrees_is_confirmed():
    equal(set(verdicts(TCP, MPTCP).values()), {highload.CONFIRMED}, "verdicts")
    shown = {each.key: (each.published, each.here) for each in highload.statements(TCP, MPTCP, RAMPS)}
    equal(shown["mptcp-growth"], ("+50%", "+50%"), "MPTCP's growth")
    equal(shown["tcp-growth"], ("+16%", "+16%"), "TCP's growth")
    equal(shown["mptcp-of-tcp"], ("+45%", "+45%"), "MPTCP of TCP")
    equal(shown["tcp-errors"], ("rises", "from 1.00% to 5.00%"), "TCP's errors")
    equal(shown["mptcp-late"], ("almost immediately", "2.0 s later at most"), "MPTCP's end")


def test_each_statement_can_be_contradicted():
    changes = (
        ("mptcp-growth", TCP, [MPTCP[0], Outcome(550, 0.0, 0, 102)]),
        ("tcp-growth", [TCP[0], Outcome(490, 0.05, 4000, 170)], MPTCP),
        ("mptcp-of-tcp", TCP, [Outcome(300, 0.0, 0, 161), Outcome(570, 0.0, 0, 102)]),
        ("tcp-errors", [TCP[0], Outcome(580, 0.01, 800, 170)], MPTCP),
        ("mptcp-errors", TCP, [MPTCP[0], Outcome(840, 0.0, 1, 102)]),
        ("tcp-time", [TCP[0], Outcome(580, 0.05, 4000, 164)], MPTCP),
        ("mptcp-time", TCP, [MPTCP[0], Outcome(840, 0.0, 0, 162)]),
        ("mptcp-late", TCP, [MPTCP[0], Outcome(840, 0.0, 0, 106)]),
    )
    equal({key for key, _, _ in changes}, set(verdicts(TCP, MPTCP)), "statements")
    for key, tcp, mptcp in changes:
        equal(verdicts(tcp, mptcp)[key], highload.CONTRADICTED, key)


def test_ratios_that_agree_in_direction_only():
    equal(highload.ratio_verdict(1.2, 1.45), highload.DIRECTION, "20% instead of 45%")
    equal(highload.ratio_verdict(1.36, 1.45), highload.CONFIRMED, "36%, which is near")
    equal(highload.ratio_verdict(1.0, 1.45), highload.CONTRADICTED, "nothing")


def test_more_carried():
    check(abs(highload.more_carried(1050 * highload.wire_bytes(), 1000, highload.wire_bytes()) - 0.05) < 1e-9, "5% more")
    # 500 requests each second and 16% more fill a path of 50 Mbit/s
    check(abs(highload.wire_bytes() * 580 * 8 - 50e6) < 1, "bytes of a request")


def test_published_curves_have_the_published_ratios():
    curves = highload.published_throughput(500, 800)
    (least, tcp_least), (greatest, tcp_greatest) = curves["TCP"]
    (_, mptcp_least), (_, mptcp_greatest) = curves["MPTCP"]
    equal((least, greatest), (500, 800), "loads")
    for name, found in (("TCP's growth", tcp_greatest / tcp_least), ("MPTCP's growth", mptcp_greatest / mptcp_least),
                        ("MPTCP of TCP", mptcp_greatest / tcp_greatest)):
        check(abs(found - highload.PUBLISHED[name]) < 1e-9, "%s: %g" % (name, found))


def test_bytes_of_a_request():
    found = highload.bytes_per_request(50, 500, 1.16)
    check(abs(found - 10775.86) < 0.01, "%.2f bytes" % found)
    check(abs(found * 8 * 500 * 1.16 - 50e6) < 1e-3, "580 of them a second are 50 Mbit/s")


if __name__ == "__main__":
    main()
