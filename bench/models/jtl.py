# SPDX-License-Identifier: BSD-3-Clause
"""jtl.py - what JMeter has recorded (a .jtl file as CSV), and what follows from it: throughput, errors, running time

Times are in seconds, from the start of the first request on. A request belongs to the moment of its end.
"""
import collections
import csv
import dataclasses
from typing import NamedTuple

OK = "200"
# JMeter's response code of what has failed without a response is the Java class of the exception; its message tells more
NO_RESPONSE = "Non HTTP response code: "
CAUSES = (
    ("ConnectTimeoutException", "", "time-out of the connection"),
    ("SocketTimeoutException", "connect timed out", "time-out of the connection"),
    ("SocketTimeoutException", "", "time-out of the response"),
    ("HttpHostConnectException", "refused", "connection refused"),
    ("ConnectException", "refused", "connection refused"),
    ("HttpHostConnectException", "timed out", "time-out of the connection"),
    ("ConnectException", "timed out", "time-out of the connection"),
    ("SocketException", "reset", "connection reset"),
    ("NoHttpResponseException", "", "connection closed without a response"),
    ("ConnectionClosedException", "", "response cut short"),
)


@dataclasses.dataclass(frozen=True)
class Sample:
    """A request. size: bytes of its response as JMeter counts them, headers included; first_byte: seconds until the first of them."""

    start: float
    elapsed: float
    label: str
    code: str
    message: str
    success: bool
    size: int
    first_byte: float = 0.0

    @property
    def end(self):
        """The moment at which the response was there, or its failure."""
        return self.start + self.elapsed

    @property
    def cause(self):
        """Why it has failed, in words; "" if it hasn't."""
        if self.success:
            return ""
        if not self.code.startswith(NO_RESPONSE):
            return "status " + self.code if self.code != OK else self.message
        name = self.code[len(NO_RESPONSE):].rsplit(".", 1)[-1]
        for of, words, cause in CAUSES:
            if name == of and words.lower() in self.message.lower():
                return cause
        return name


def parse(lines):
    """Returns (samples, the time of the first start in seconds since 1970) from the lines of a .jtl file that begins with names."""
    rows = list(csv.DictReader(lines))
    if not rows:
        raise ValueError("JMeter has recorded no request")
    epoch = min(int(row["timeStamp"]) for row in rows)
    return [Sample((int(row["timeStamp"]) - epoch) / 1000, int(row["elapsed"]) / 1000, row["label"], row["responseCode"],
                   row["responseMessage"], row["success"] == "true", int(row["bytes"]), int(row.get("Latency") or 0) / 1000)
            for row in rows], epoch / 1000


def running_time(samples):
    """Seconds from the first start to the last end."""
    return max(sample.end for sample in samples) - min(sample.start for sample in samples)


def throughput(samples, until=None):
    """Requests a second that have succeeded: over the whole running time, or until so many seconds after the first start."""
    if until is None:
        return sum(sample.success for sample in samples) / running_time(samples)
    return sum(sample.success and sample.end <= until for sample in samples) / until


def rate_over_time(samples, width):
    """[(the middle of an interval, requests a second that have succeeded in it)], for intervals of that many seconds.

    The last interval, which the end of the run cuts short, counts with the part of it that the run has had.
    """
    begin, total = min(sample.start for sample in samples), running_time(samples)
    counts = collections.Counter(int((sample.end - begin) / width) for sample in samples if sample.success)
    found = []
    for number in range(int(total / width) + 1):
        length = min(width, total - number * width)
        if length <= 0:
            # the last request ended exactly at an interval's end, and counts for the interval before
            if found and counts[number]:
                middle, rate = found[-1]
                found[-1] = (middle, rate + counts[number] / width)
            break
        found.append((number * width + length / 2, counts[number] / length))
    return found


def causes(samples):
    """How many requests have failed, by cause: {"time-out of the response": 3}, the most frequent first."""
    return dict(collections.Counter(sample.cause for sample in samples if not sample.success).most_common())


def error_rate(samples):
    """The share of requests that have failed."""
    return sum(not sample.success for sample in samples) / len(samples)


def rates_of_counter(notes):
    """[(seconds, bytes)] of a counter that only grows, as read now and then -> [(the middle of each interval, Mbit/s)]."""
    return [((begin + end) / 2, (after - before) * 8e-6 / (end - begin))
            for (begin, before), (end, after) in zip(notes, notes[1:]) if end > begin]


def most_active(samples):
    """How many requests were under way at once, at most."""
    steps = sorted([(sample.start, 1) for sample in samples] + [(sample.end, -1) for sample in samples])
    active = most = 0
    for _, step in steps:
        active += step
        most = max(most, active)
    return most


class Tail(NamedTuple):
    """The slowest requests: what the quickest of them took, their median start, and the share that waited for the first byte above all."""

    least: float
    start: float
    waited: float


def tail(samples, share=0.01):
    """The Tail of this share of the requests, one at least."""
    slowest = sorted(samples, key=lambda sample: sample.elapsed)[-max(1, round(len(samples) * share)):]
    return Tail(slowest[0].elapsed, sorted(sample.start for sample in slowest)[len(slowest) // 2],
                sum(2 * sample.first_byte > sample.elapsed for sample in slowest) / len(slowest))


def by_second(samples):
    """[[second, requests that have succeeded in it, requests that have failed in it]], seconds without any left out."""
    good, bad = (collections.Counter(int(sample.end) for sample in samples if sample.success is outcome) for outcome in (True, False))
    return [[second, good[second], bad[second]] for second in sorted(set(good) | set(bad))]
