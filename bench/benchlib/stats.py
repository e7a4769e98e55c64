# SPDX-License-Identifier: BSD-3-Clause
"""stats.py - a few figures for many samples"""


def quantile(values, share):
    """The value below which this share (0 to 1) of the values lies, interpolated."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def median(values):
    """The median, which a few disturbed samples hardly change."""
    return quantile(values, 0.5)


def spread(values, pattern="%.0f"):
    """The middle half of the values, "low-high"."""
    return "%s-%s" % (pattern % quantile(values, 0.25), pattern % quantile(values, 0.75))
