# SPDX-License-Identifier: BSD-3-Clause
"""mobile_rtts.py - round trips between phones and a proxy, drawn from a distribution like that of mobile networks

The distribution goes through QUANTILES. Between two of them the logarithm of the round trip grows linearly with the share of
connections, as fits figures that range over two orders of magnitude.
"""
import math
import random

# (share of connections, their longest round trip in ms)
QUANTILES = (
    # "Third-Party Assessment of Mobile Performance in the 5G Era" (arXiv 2507.18834, 2025), of phones and a content delivery
    # network: "latency, even as low as 6 ms"; "only the top 5% users regularly experience less than 20 ms"
    (0, 6), (0.05, 20),
    # Tessares, "Performance analysis - MPTCP deployment options": "the last 15% of the connections have RTTs higher than 50ms",
    # and the last 5% wait 450 ms for the three additional round trips of SOCKS5
    (0.85, 50), (0.95, 150),
    # Chosen. From a second on, a SYN would be sent again before its answer can have come.
    (1, 800),
)


def rtt_ms(share, quantiles=QUANTILES):
    """Returns the round trip that this share of connections, 0 to 1, does not exceed."""
    if not 0 <= share <= 1:
        raise ValueError("%r is not a share from 0 to 1" % share)
    for (low_share, low), (high_share, high) in zip(quantiles, quantiles[1:]):
        if share <= high_share:
            part = (share - low_share) / (high_share - low_share)
            return math.exp(math.log(low) + part * (math.log(high) - math.log(low)))
    raise ValueError("the quantiles end at %r" % quantiles[-1][0])


def draw(count, seed, quantiles=QUANTILES):
    """Draws `count` round trips in ms, in random order; the same ones for the same seed.

    One is drawn from each of `count` slices of the distribution (a stratified sample), so that few of them have its shape as well.
    """
    generator = random.Random(seed)
    found = [rtt_ms((number + generator.random()) / count, quantiles) for number in range(count)]
    generator.shuffle(found)
    return found
