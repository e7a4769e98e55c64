#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_benefit.py - the metrics of the benefit of a second path: their fixed points, bounds and edge cases, by hand-computed values"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lab"))

# pylint: disable=wrong-import-position
from convertlab import check, equal, main
from convertlab.build import SRCDIR

sys.path.insert(0, os.path.join(SRCDIR, "bench"))
from models import benefit


def near(value, expected, what):
    check(abs(value - expected) < 1e-9, "%s: %r, not %r" % (what, value, expected))


def raises(function, *arguments):
    try:
        function(*arguments)
    except ValueError:
        return
    check(False, "%s%r raised no ValueError" % (function.__name__, arguments))


def test_aggregation_fixed_points():
    """0 is the better path alone, whichever of them that is; 1 is the sum."""
    for alone in ((50, 30), (30, 50), (48, 3), (10, 10), (5, 20, 5)):
        near(benefit.aggregation_benefit(max(alone), alone), 0, "the better of %r" % (alone,))
        near(benefit.aggregation_benefit(sum(alone), alone), 1, "the sum of %r" % (alone,))
        near(benefit.aggregation_benefit(0, alone), -1, "nothing over %r" % (alone,))


def test_aggregation_between():
    near(benefit.aggregation_benefit(65, (50, 30)), 0.5, "half of the second path's capacity")
    near(benefit.aggregation_benefit(25, (50, 30)), -0.5, "half of what the better path has")
    near(benefit.aggregation_benefit(49, (48, 2)), 0.5, "1 Mbit/s counts much where the second path has 2")
    near(benefit.aggregation_benefit(86, (50, 30)), 1.2, "more than the sum of what was measured")


def test_aggregation_needs_a_second_path():
    raises(benefit.aggregation_benefit, 50, (50,))
    raises(benefit.aggregation_benefit, 50, (50, 0))
    near(benefit.aggregation_benefit(25, (50, 0)), -0.5, "a loss can be told without one")


def test_ideal_time():
    near(benefit.ideal_time((4, 4)), 2, "two equal paths take half of the time")
    near(benefit.ideal_time((1, 3)), 0.75, "rates of 1 and 1/3 add up to 4/3")
    near(benefit.ideal_time((7,)), 7, "one path")


def test_delay_fixed_points():
    for alone in ((1, 1), (3, 1), (0.06, 0.24), (2, 3, 6)):
        near(benefit.delay_benefit(min(alone), alone), 0, "the quicker of %r" % (alone,))
        near(benefit.delay_benefit(benefit.ideal_time(alone), alone), 1, "the ideal time of %r" % (alone,))


def test_delay_between():
    near(benefit.delay_benefit(0.875, (1, 3)), 0.5, "half of what could be saved")
    near(benefit.delay_benefit(2, (1, 3)), -0.5, "twice the time")
    near(benefit.delay_benefit(4, (3, 1)), -0.75, "four times")


def test_delay_bounds():
    """However long it takes it is more than -1, and it falls with the time."""
    found = [benefit.delay_benefit(time, (1, 2)) for time in (0.7, 0.9, 1, 1.1, 5, 1e6)]
    equal(found, sorted(found, reverse=True), "benefits of ever longer times")
    check(-1 < found[-1] < -0.999, "the benefit of a time without end: %r" % found[-1])


def test_both_metrics_agree_in_sign():
    """Of the same transfers, where a goodput is the size by the time."""
    for both in (0.3, 0.8, 0.999, 1.001, 1.5, 9):
        bandwidth = benefit.aggregation_benefit(1 / both, (1, 1 / 4))
        delay = benefit.delay_benefit(both, (1, 4))
        equal(bandwidth > 0, delay > 0, "the signs of %r and %r" % (bandwidth, delay))


def test_rank_correlation():
    near(benefit.rank_correlation([(1, 9), (2, 5), (4, 4), (16, -1)]), -1, "always down, not in a straight line")
    near(benefit.rank_correlation([(1, 1), (2, 8), (3, 27)]), 1, "always up")
    near(benefit.rank_correlation([(1, 1), (2, 3), (3, 2), (4, 4)]), 0.8, "6 * 2 / (4 * 15) less than 1")
    near(benefit.rank_correlation([(1, 5), (1, 5), (2, 3), (2, 3)]), -1, "with ties")
    near(benefit.rank_correlation([(1, 1), (2, 1), (3, 2), (3, 3)]), 4 / 4.5, "ties at different places on both sides")
    equal(benefit.rank_correlation([(1, 5), (2, 5)]), None, "a constant")


def test_falls():
    down = {1: [0.7, 0.72, 0.71, 0.69], 4: [0.4, 0.41, 0.3, 0.42], 16: [0.1, 0.2, 0.15, 0.11]}
    equal(benefit.falls(down)[0], benefit.CONFIRMED, "down")
    equal(benefit.falls({1 / ratio: values for ratio, values in down.items()})[0], benefit.CONTRADICTED, "up")
    spread = {1: [0.1, 0.9, 0.2, 0.8], 16: [0.0, 0.8, 0.1, 0.7]}
    verdict, correlation = benefit.falls(spread)
    equal(verdict, benefit.OPEN, "a difference within the spread")
    check(-1 < correlation < 0, "its correlation: %r" % correlation)


def test_falls_needs_the_ends():
    """What only dips between equal ends doesn't fall."""
    equal(benefit.falls({1: [0.5, 0.5], 4: [0.1, 0.1], 16: [0.5, 0.5]})[0], benefit.OPEN, "a dip")


def test_verdict():
    equal([benefit.verdict(*pair) for pair in ((True, False), (False, True), (False, False), (True, True))],
          [benefit.CONFIRMED, benefit.CONTRADICTED, benefit.OPEN, benefit.OPEN], "verdicts")


def test_losses_and_gains():
    equal(benefit.middle([5, 1, 2, 4, 3]), (3, 2, 4), "median and quartiles")
    check(benefit.loses([-0.3, -0.2, -0.1, 0.5, -0.4]), "four of five are below zero")
    check(not benefit.loses([-0.3, -0.2, 0.1, 0.5, -0.4]), "two of five are above zero")
    check(not benefit.loses([-0.01] * 5, 0.02), "less than the margin")
    check(benefit.gains([0.3, 0.2, 0.1, -0.5, 0.4]), "four of five are above zero")
    check(not benefit.gains([-0.3, -0.2, 0.1, 0.5, 0.4]), "two of five are below zero")
    check(not benefit.gains([0.01] * 5, 0.02), "less than the margin")


if __name__ == "__main__":
    main()
