# SPDX-License-Identifier: BSD-3-Clause
"""highload.py - what Hou et al. publish on MPTCP under high load, and how measured figures compare with it

The paper (Performance Analysis of MPTCP Under High Load Based on SDN Environment, sections 5 and 6) gives ratios in its text; its figures
have no table behind them. We count throughput while threads start. In the paper TCP's throughput and its total running time both rise with
the load, for a fixed number of requests, so its throughput can't be that of the whole running time.
"""
import dataclasses

PUBLISHED = {
    "MPTCP's growth": 1.50,      # of throughput, from the least load to the greatest
    "TCP's growth": 1.16,
    "MPTCP of TCP": 1.45,        # at the greatest load
}
NEAR = 0.10      # a ratio is confirmed that is as near to the published one as that
AT_ONCE = 0.05   # "almost immediately" after the threads have started: this share of that time, or AT_ONCE_S
AT_ONCE_S = 2
MBIT = 50                           # of each path
THREADS, REQUESTS = 4000, 20        # and of each thread
RAMPS = (160, 150, 140, 130, 120, 110, 100)  # the seconds within which they start
MTU, DATA = 1500, 1448              # bytes of a full packet, and of data in it, where it has time stamps
CONFIRMED, DIRECTION, CONTRADICTED = "confirmed", "in direction only", "contradicted"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """One run: requests a second while the threads started, the share of requests that failed, how many did, and seconds in all."""

    throughput: float
    error_rate: float
    failed: int
    running_time: float


@dataclasses.dataclass(frozen=True)
class Statement:
    """One of the paper's statements, and whether it was found to be so."""

    key: str
    text: str
    published: str
    here: str
    verdict: str


def bytes_per_request(mbit, requests_per_second, growth):
    """Bytes that a request takes of a path, from how much throughput can still grow there.

    The path carries requests_per_second, all that is asked for, at the least load, and `growth` times that when it is full.
    """
    return mbit * 1e6 / 8 / (requests_per_second * growth)


def wire_bytes():
    """Bytes that a request of the paper takes of a path, by its figures."""
    return bytes_per_request(MBIT, THREADS * REQUESTS / RAMPS[0], PUBLISHED["TCP's growth"])


def more_carried(carried, requests, wire):
    """How much more was carried than the answered requests take, as a share: 0.05 for 5% more."""
    return carried / (requests * wire) - 1


def published_throughput(least, greatest):
    """The published throughput by load as pairs, where TCP's at the least load is 1: {"TCP": …, "MPTCP": …}."""
    tcp = PUBLISHED["TCP's growth"]
    mptcp = PUBLISHED["MPTCP of TCP"] * tcp
    return {"TCP": [(least, 1.0), (greatest, tcp)], "MPTCP": [(least, mptcp / PUBLISHED["MPTCP's growth"]), (greatest, mptcp)]}


def ratio_verdict(here, published):
    """Does a ratio confirm a published one that is above 1?"""
    if abs(here - published) <= NEAR:
        return CONFIRMED
    return DIRECTION if here > 1 else CONTRADICTED


def percent(ratio):
    """1.5 as "+50%"."""
    return "%+.0f%%" % (100 * (ratio - 1))


def _yes(condition):
    return CONFIRMED if condition else CONTRADICTED


def _ratio(key, text, here, published):
    return Statement(key, text, percent(published), percent(here), ratio_verdict(here, published))


def statements(tcp, mptcp, ramps):
    """The paper's statements, from the outcomes of direct TCP and of two paths by ramp, the longest (the least load) first."""
    late = [outcome.running_time - ramp for outcome, ramp in zip(mptcp, ramps)]
    at_once = all(seconds <= max(AT_ONCE * ramp, AT_ONCE_S) for seconds, ramp in zip(late, ramps))
    rates = [100 * outcome.error_rate for outcome in tcp]
    return [
        _ratio("mptcp-growth", "MPTCP's throughput grows with the load", mptcp[-1].throughput / mptcp[0].throughput, PUBLISHED["MPTCP's growth"]),
        _ratio("tcp-growth", "TCP's throughput grows by less", tcp[-1].throughput / tcp[0].throughput, PUBLISHED["TCP's growth"]),
        _ratio("mptcp-of-tcp", "MPTCP's throughput above TCP's at the greatest load", mptcp[-1].throughput / tcp[-1].throughput,
               PUBLISHED["MPTCP of TCP"]),
        Statement("tcp-errors", "TCP's share of requests that fail rises with the load", "rises", "from %.2f%% to %.2f%%" % (rates[0], rates[-1]),
                  _yes(rates[-1] > rates[0])),
        Statement("mptcp-errors", "With MPTCP no request fails", "none", "%d" % sum(outcome.failed for outcome in mptcp),
                  _yes(not any(outcome.failed for outcome in mptcp))),
        Statement("tcp-time", "TCP's total running time rises with the load", "rises",
                  "from %.0f s to %.0f s" % (tcp[0].running_time, tcp[-1].running_time), _yes(tcp[-1].running_time > tcp[0].running_time)),
        Statement("mptcp-time", "MPTCP's total running time falls with the load", "falls",
                  "from %.0f s to %.0f s" % (mptcp[0].running_time, mptcp[-1].running_time),
                  _yes(mptcp[-1].running_time < mptcp[0].running_time)),
        Statement("mptcp-late", "MPTCP's requests are completed almost immediately after the threads have started", "almost immediately",
                  "%.1f s later at most" % max(late), _yes(at_once)),
    ]
