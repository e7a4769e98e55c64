#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_density.py - the density of samples has an area of 1 and is high where the samples are; delays of blocks are counted right"""
import math
import os
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lab"))

# pylint: disable=wrong-import-position
from convertlab import check, equal, main
from convertlab.build import SRCDIR

sys.path.insert(0, os.path.join(SRCDIR, "bench"))
from models import block_delay, density


def normal(count, middle=0.0, deviation=1.0):
    """Samples at equal steps of a normal distribution's quantiles: as normal as so many samples can be, and the same each time."""
    distribution = statistics.NormalDist(middle, deviation)
    return [distribution.inv_cdf((number + 0.5) / count) for number in range(count)]


def near(value, expected, tolerance, what):
    check(abs(value - expected) <= tolerance, "%s: %g, not %g" % (what, value, expected))


def height(curve, x):
    """The curve's height at x, between its points."""
    for left, right in zip(curve, curve[1:]):
        if left[0] <= x <= right[0]:
            return left[1] + (right[1] - left[1]) * (x - left[0]) / (right[0] - left[0])
    return 0.0


# --- density ----------------------------------------------------------------------------------------


def test_area_is_one():
    for samples in (normal(500, 300, 20), [5.0], [7.0] * 40, [1, 2, 2, 3, 50], normal(900, 250, 5) + normal(100, 2000, 300)):
        near(density.area(density.estimate(samples, points=4000)), 1, 1e-3, "the area of %d samples" % len(samples))


def test_one_sample_is_one_kernel():
    curve = density.estimate([100.0], points=201, width=4.0)
    equal((curve[0], curve[-1]), ((96.0, 0.0), (104.0, 0.0)), "where the curve begins and ends")
    near(height(curve, 100), 0.75 / 4, 1e-12, "the middle of Epanechnikov's kernel")
    near(height(curve, 102), 0.75 / 4 * 0.75, 1e-12, "half way to its edge")


def test_it_is_the_sum_of_kernels():
    samples, width = [3.0, 4.5, 4.6, 9.0], 2.0
    for x, found in density.estimate(samples, points=57, width=width):
        expected = sum(max(0, 0.75 * (1 - ((x - value) / width) ** 2)) for value in samples) / (width * len(samples))
        near(found, expected, 1e-12, "at %g" % x)


def test_normal_density():
    curve = density.estimate(normal(5000, 300, 20), points=1000)
    near(density.peak(curve), 300, 1, "the peak")
    for x in (270, 290, 300, 325):
        expected = statistics.NormalDist(300, 20).pdf(x)
        near(height(curve, x), expected, 0.04 * expected, "at %g" % x)


def test_uniform_density():
    curve = density.estimate([number / 1000 for number in range(2001)], points=800)
    for x in (0.5, 1.0, 1.5):
        near(height(curve, x), 0.5, 0.01, "inside, at %g" % x)


def test_two_humps_keep_their_shares():
    curve = density.estimate(normal(900, 250, 20) + normal(100, 2000, 20), points=3000)
    near(density.area([point for point in curve if point[0] < 1000]), 0.9, 2e-3, "the share of the first hump")
    near(density.area([point for point in curve if point[0] >= 1000]), 0.1, 2e-3, "the share of the second one")


def test_bandwidth():
    # Silverman's rule for a normal kernel is 0.9 s n^(-1/5); for this one it is 2.214 times as wide.
    near(density.CANONICAL, 2.214, 1e-3, "the ratio of the canonical bandwidths")
    samples = normal(1024, 0, 10)
    near(density.bandwidth(samples), 0.9 * 10 * 1024 ** -0.2 * 2.214, 0.05, "of a normal distribution")
    near(density.bandwidth(samples + [1e6]), density.bandwidth(samples), 0.05, "one outlier hardly changes it")
    equal(density.bandwidth([3.0, 3.0, 3.0]), 1.0, "of samples that are all alike")
    # both quartiles are 0 here, and the standard deviation is 0.3
    near(density.bandwidth([0.0] * 90 + [1.0] * 10), 0.9 * 0.3 * 100 ** -0.2 * 2.214, 1e-3, "where the quartiles are alike")


def test_scale():
    """Twice the delays: half the density at twice the place."""
    single, double = (density.estimate([factor * value for value in normal(300, 50, 7)], points=99) for factor in (1, 2))
    for (x, y), (twice, half) in zip(single, double):
        near(twice, 2 * x, 1e-9, "x")
        near(half, y / 2, 1e-12, "y")


# --- delays of blocks -------------------------------------------------------------------------------


def test_head_is_left_out():
    equal(block_delay.settled([0, 1, 2.5, 3], [10, 20, 30, 40], 2.5), [30, 40], "blocks sent from then on")


def test_rate():
    # three blocks of 1,000 bytes arrive at 2.1, 2.2 and 2.5 seconds: 2,000 bytes in 0.4 s after the first one
    near(block_delay.rate_mbit([0, 2, 2.05, 2.1], [5, 100, 150, 400], 1, 1000), 0.04, 1e-9, "Mbit/s")


def counters(wifi, lte):
    return {name: {"a-to-b": {"out_bytes": count}, "b-to-a": {"out_bytes": 7777}} for name, count in (("wifi", wifi), ("lte", lte))}


def test_paths():
    parts = block_delay.carried(counters(1000, 50), counters(4000, 1050))
    equal(parts, {"wifi": 3000, "lte": 1000}, "what each has carried towards the server")
    near(block_delay.share(parts, "lte"), 0.25, 1e-12, "the share of lte")
    equal(block_delay.share({"wifi": 0, "lte": 0}, "lte"), 0.0, "of nothing")
    equal(block_delay.idle_paths({"wifi": 9000, "lte": 200}, 1000), ["lte"], "a path with a handshake only")
    equal(block_delay.idle_paths({"wifi": 9000, "lte": 1000}, 1000), [], "both have carried enough")


def test_verdict():
    equal([block_delay.verdict(holds) for holds in (True, False)], ["confirmed", "contradicted"], "verdicts")
    equal([block_delay.verdict_without(holds) for holds in (True, False)], ["confirmed, without them", "not testable: mainline lacks the mechanisms"], "without a mechanism")
    equal(block_delay.verdict_by_way({"a": True, "b": True}), "confirmed", "both ways")
    equal(block_delay.verdict_by_way({"a": True, "b": False}), "a: confirmed; b: contradicted", "one of them")
    check(math.isclose(density.area([(0, 0), (1, 1), (3, 1)]), 2.5), "an area by trapezoids")


if __name__ == "__main__":
    main()
