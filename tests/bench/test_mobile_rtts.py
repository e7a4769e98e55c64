#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_mobile_rtts.py - are the phones' round trips drawn from the distribution that is stated?"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../lab"), os.path.join(HERE, "../../bench")]

# pylint: disable=wrong-import-position
from convertlab import check, equal, main
from models.mobile_rtts import QUANTILES, draw, rtt_ms


def test_quantiles():
    """The distribution goes through its quantiles, and halfway between two by the logarithm's mean."""
    for share, rtt in QUANTILES:
        check(abs(rtt_ms(share) - rtt) < 1e-9, "%g ms at a share of %g, not %g" % (rtt_ms(share), share, rtt))
    check(abs(rtt_ms(0.5, ((0, 10), (1, 1000))) - 100) < 1e-9, "halfway between 10 and 1000 ms is not 100")


def test_published_shares():
    """15% of the connections are above 50 ms, 5% above 150 ms, in a small sample as in a large one."""
    for count in (20, 100, 5000):
        rtts = draw(count, 1)
        equal((len(rtts), sum(rtt > 50 for rtt in rtts), sum(rtt > 150 for rtt in rtts)), (count, count * 15 // 100, count // 20),
              "how many there are, above 50 ms and above 150 ms, of %d" % count)
        check(6 <= min(rtts) and max(rtts) <= 800, "%g to %g ms" % (min(rtts), max(rtts)))


def test_seed():
    """The same seed gives the same round trips, another one others; they are in no order."""
    equal(draw(50, 7), draw(50, 7), "two draws with one seed")
    check(draw(50, 7) != draw(50, 8), "two seeds give the same round trips")
    check(draw(50, 7) != sorted(draw(50, 7)), "the round trips are sorted")


def test_shares_outside():
    for share in (-0.01, 1.01):
        try:
            rtt_ms(share)
        except ValueError as error:
            check(str(share) in str(error), str(error))
        else:
            check(False, "a share of %g has a round trip" % share)


if __name__ == "__main__":
    main()
