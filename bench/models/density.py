# SPDX-License-Identifier: BSD-3-Clause
"""density.py - the probability density of samples, as a curve whose area is 1

A kernel density estimate: each of n samples contributes a hump of area 1/n (Epanechnikov's parabola, which is 0 at a distance of the
bandwidth and beyond), and the curve is their sum. Unlike a histogram it doesn't depend on where bins begin. The bandwidth is
Silverman's rule: it suits a single hump; where there are several of different widths it smooths the narrow ones, and hides none
that is further from the others than the bandwidth.
"""
import bisect
import itertools
import math
import statistics

# Silverman's rule is made for a normal kernel; this factor makes Epanechnikov's equally smooth (the ratio of their canonical
# bandwidths, 15 ** (1/5) and (1 / (2 * sqrt(pi))) ** (1/5)).
CANONICAL = (15 * 2 * math.sqrt(math.pi)) ** 0.2
NORMAL_QUARTILES = 1.349  # the distance between a normal distribution's quartiles, in standard deviations


def bandwidth(values):
    """The half width of the kernel, by Silverman's rule: 0.9 min(standard deviation, quartiles' distance / 1.349) n^(-1/5), converted.

    Samples that are all alike have no width; they get 1, so that they become a narrow hump.
    """
    spread = statistics.pstdev(values)
    if len(values) > 1:
        quartiles = statistics.quantiles(values, n=4, method="inclusive")
        spread = min(spread, (quartiles[2] - quartiles[0]) / NORMAL_QUARTILES) or spread
    return 0.9 * spread * len(values) ** -0.2 * CANONICAL or 1.0


def estimate(values, points=200, width=None):
    """The curve, as pairs (x, density) at equal distances, from where it leaves 0 to where it is 0 again.

    values: the samples; width: the kernel's half width, by default bandwidth(values). The unit of the density is 1 / the unit of x.
    """
    ordered = sorted(values)
    width = width or bandwidth(ordered)
    low, high = ordered[0] - width, ordered[-1] + width
    # With y = (x - v) / width a sample v contributes 3/4 (1 - y^2) / width. Sums of the v and of their squares give the sum over
    # a range of samples at once; they are taken from the middle, where no digits are lost.
    middle = (low + high) / 2
    shifted = [(value - middle) / width for value in ordered]
    sums = [0.0, *itertools.accumulate(shifted)]
    squares = [0.0, *itertools.accumulate(value * value for value in shifted)]
    curve = []
    for number in range(points):
        x = low + (high - low) * number / (points - 1)
        at = (x - middle) / width
        begin, end = bisect.bisect_left(shifted, at - 1), bisect.bisect_right(shifted, at + 1)
        total = (end - begin) * (1 - at * at) + 2 * at * (sums[end] - sums[begin]) - (squares[end] - squares[begin])
        curve.append((x, max(0.0, 0.75 * total / (width * len(ordered)))))
    return curve


def area(curve):
    """The area below a curve of pairs (x, y), by trapezoids: 1 for a whole density."""
    return sum((right[0] - left[0]) * (left[1] + right[1]) / 2 for left, right in zip(curve, curve[1:]))


def peak(curve):
    """Where the curve is highest."""
    return max(curve, key=lambda point: point[1])[0]
