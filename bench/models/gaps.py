# SPDX-License-Identifier: BSD-3-Clause
"""gaps.py - how long a transfer stood still, from the times at which something arrived"""


def longest_gap(arrivals, since, until):
    """The longest time without an arrival after `since`, in seconds. A gap that has begun before counts from then on only: nothing could
    arrive earlier. What has never arrived until then is a gap up to `until`.
    """
    times = [since] + [at for at in arrivals if since < at < until] + [until]
    return max(after - before for before, after in zip(times, times[1:]))
