# SPDX-License-Identifier: BSD-3-Clause
"""benefit.py - what a second path gains or costs: the bandwidth aggregation benefit, the delay benefit, and what they tell

Both metrics say where a transfer over all paths lies between the better path alone, which is 0, and what the paths would give if
they added up, which is 1. A result worse than the better path alone is negative; -1 would be a transfer that never ends.

The bandwidth aggregation benefit is Kaspar's (Multipath Aggregation of Heterogeneous Access Networks), as Paasch, Khalili and
Bonaventure use it (On the Benefits of Applying Experimental Design to Improve Multipath TCP). There a path counts with its
capacity. Cordero's variant, and the experiments here, use the goodput measured over each path instead.

Cordero's delay benefit follows the same intuition, but its formula is not in the public part of the article. delay_benefit() is
therefore this project's own.
"""
from benchlib.stats import quantile

CONFIRMED, CONTRADICTED, OPEN = "confirmed", "contradicted", "neither confirmed nor contradicted"


def aggregation_benefit(both, alone):
    """The bandwidth aggregation benefit of a goodput over all paths; `alone` has the capacity, or the goodput, of each path.

    It is never less than -1. Goodputs that were measured may add up to less than both paths together give, so that values slightly
    above 1 are possible; they are left as they are.
    """
    best = max(alone)
    gain = both - best
    if gain < 0:
        return gain / best
    rest = sum(alone) - best
    if rest <= 0:
        raise ValueError("the benefit of a second path needs a second path that carries something: %r" % (alone,))
    return gain / rest


def ideal_time(alone):
    """The time of a transfer at the sum of the rates that the paths had alone; `alone` has the time of the transfer over each."""
    return 1 / sum(1 / time for time in alone)


def delay_benefit(both, alone):
    """The delay benefit of a transfer that took the time `both` over all paths, and the times `alone` over each of them.

    A transfer that is quicker than over the better path is compared with the ideal time, and one that is slower with itself: what
    takes twice as long has -0.5. With goodputs of the same transfers instead of times this has the sign of aggregation_benefit().
    """
    best = min(alone)
    if both > best:
        return best / both - 1
    return (best - both) / (best - ideal_time(alone))


def _ranks(values):
    """The rank of each value; equal ones share the mean of their ranks."""
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) - 1) / 2 for value in values]


def rank_correlation(pairs):
    """Spearman's: -1 if the second of a pair always falls where the first rises, 1 if it always rises as well; None if one is constant."""
    columns = [_ranks(column) for column in zip(*pairs)]
    means = [sum(column) / len(column) for column in columns]
    first, second = ([value - mean for value in column] for column, mean in zip(columns, means))
    squares = sum(value * value for value in first) * sum(value * value for value in second)
    return sum(a * b for a, b in zip(first, second)) / squares ** 0.5 if squares else None


def middle(samples):
    """(median, lower quartile, upper quartile)"""
    return tuple(quantile(samples, share) for share in (0.5, 0.25, 0.75))


def is_above(samples, others):
    """Tells whether samples are greater than others beyond the spread of both: their middle halves don't overlap."""
    return quantile(samples, 0.25) > quantile(others, 0.75)


def verdict(claim_holds, opposite_holds):
    """What becomes of a published conclusion: the data may show it, or its opposite, or neither."""
    return CONFIRMED if claim_holds and not opposite_holds else CONTRADICTED if opposite_holds and not claim_holds else OPEN


def falls(samples):
    """Judges "the benefit falls with the ratio": `samples` has a list for each ratio.

    It is confirmed if the benefit at the smallest ratio lies above that at the greatest one beyond the spread, and it goes down
    on the whole; it is contradicted if the same holds upside down. Returns (verdict, rank correlation).
    """
    least, most = samples[min(samples)], samples[max(samples)]
    correlation = rank_correlation([(ratio, value) for ratio, values in samples.items() for value in values])
    down = correlation is not None and correlation < 0 and is_above(least, most)
    up = correlation is not None and correlation > 0 and is_above(most, least)
    return verdict(down, up), correlation


def loses(samples, margin=0):
    """Tells whether three of four samples are below zero, by more than the margin."""
    return quantile(samples, 0.75) < -margin


def gains(samples, margin=0):
    """Tells whether three of four samples are above zero, by more than the margin."""
    return quantile(samples, 0.25) > margin
