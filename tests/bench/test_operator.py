#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_operator.py - the figures of the experiment "operator": what a core carries, what a connection occupies, and who is ahead"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lab"))

# pylint: disable=wrong-import-position
from convertlab import check, equal, main
from convertlab.build import SRCDIR

sys.path.insert(0, os.path.join(SRCDIR, "bench"))
from models import operator as model

OURS = "convertd"


def near(value, expected, what):
    """equal() for figures that were computed with fractions."""
    check(abs(value - expected) < 1e-9, "%s: %r, not %r" % (what, value, expected))


def figures():
    """Three systems: ours is ahead in goodput, behind in new connections, level in p99; of one the kernel's memory is not known."""
    return {
        OURS: model.Figures(10000, 40.0, 1.0, 9.0, 10.0, 0.5, 0.8),
        "haproxy": model.Figures(15000, 16.0, 3.0, 5.0, 11.0, 0.6, 0.4),
        "dante": model.Figures(2000, 20.0, 300.0, None, 30.0, 0.2, 0.5),
    }


def test_what_a_core_carries():
    near(model.per_core(5000, 0.5), 10000, "5,000 connections in half a CPU second")
    near(model.gbit_per_core(3 * 10**9, 1.5), 16, "3 GB in 1.5 CPU seconds")
    equal((model.per_core(5, 0), model.gbit_per_core(5, None)), (None, None), "without CPU time")


def test_memory_is_without_that_of_client_and_server():
    equal(model.ends_kb(800, 1200, False), 800, "both ends by TCP")
    equal(model.ends_kb(800, 1200, True), 1000, "one end by MPTCP, the other by TCP")
    equal(model.memory_each(300, 1700, 800, 100), (3, 9), "of 100 connections")
    equal(model.memory_each(300, 700, 800, 100), (3, None), "of a kernel that has given memory back meanwhile")
    equal(model.Figures(user_kb=3, kernel_kb=9).memory_kb, 12, "in all")
    equal(model.Figures(user_kb=3).memory_kb, None, "in all, where the kernel's part is not known")


def test_connections_that_fit():
    equal(model.connections_in(16), 65536, "16 KB each, in 1 GiB")
    equal(model.connections_in(16, 4), 262144, "in 4 GiB")
    equal(model.connections_in(None), None, "of unknown size")


def test_growth_is_from_the_fewest_to_the_most():
    near(model.growth({9000: 60, 10: 40, 1000: 10}), 1.5, "from 10 to 9,000")
    near(model.growth({10: None, 100: 4, 1000: 2}), 0.5, "from 100 on, where 10 is not known")
    equal(model.growth({10: 4}), None, "of one figure")


def test_advantage_has_a_direction():
    near(model.advantage(30, 20, False), 1.5, "more, where more is better")
    near(model.advantage(30, 20, True), 2 / 3, "more, where less is better")
    equal(model.advantage(None, 20, True), None, "unknown")
    equal([model.verdict(times) for times in (1.2, 1.1, 1, 0.9, 0.8, None)], ["ahead", "level", "level", "level", "behind", "not compared"],
          "verdicts")


def test_the_best_of_the_others():
    found = figures()
    equal(model.best(found, OURS, "rate_per_core", False), ("haproxy", 15000), "of rates")
    equal(model.best(found, OURS, "gbit_per_core", False), ("dante", 20.0), "of goodput, without ours")
    equal(model.best(found, OURS, "memory_kb", True), ("haproxy", 8.0), "of memory, without what is not known")
    equal(model.best({OURS: found[OURS]}, OURS, "p99_ms", True), None, "without others")


def test_standing_beside_the_best():
    found = {merit: (name, times) for merit, _, _, name, _, times in model.standing(figures(), OURS)}
    equal(sorted(found), ["gbit_per_core", "memory_kb", "p99_ms", "rate_per_core"], "merits")
    equal(found["gbit_per_core"], ("dante", 2.0), "goodput")
    near(found["rate_per_core"][1], 2 / 3, "rate")
    near(found["memory_kb"][1], 0.8, "memory")
    text = model.in_words(figures(), OURS)
    check(text.startswith("ahead in goodput for each core (2.00 times as good as dante"), text)
    check("; level in p99 of new connections (1.10 times" in text, text)
    check("; behind in new connections a second for each core (0.67 times" in text, text)
    equal(model.in_words({OURS: figures()[OURS]}, OURS), "not compared with any other", "without others")


def test_orders_that_differ():
    own = {"a": 10, "b": 20, "c": 21, "d": 40}
    equal(model.turned_round(own, {"a": 30, "b": 60, "c": 50, "d": 90}), [], "b and c are level by one measure")
    found = model.turned_round(own, {"a": 30, "b": 60, "c": 50, "d": 20})
    equal(found, [("a", "d"), ("b", "d"), ("c", "d")], "d is the last by one measure and the first by the other")
    equal(model.order_in_words(found[:2]), "it turns round the order of a and d, b and d", "in words")
    equal(model.order_in_words([]), "it puts the systems in the same order", "in words")


if __name__ == "__main__":
    main()
