# SPDX-License-Identifier: BSD-3-Clause
"""varying.py - a link whose round-trip time changes all the time, as that of a radio network does

linkem has a jitter of its own, which is uniform. Round-trip times of radio networks are not: most lie near the least one, and a few far
above it. So a thread draws a round-trip time from a distribution, again and again, and sets the link's delay to it.
"""
import random
import threading

STEP = 0.01  # seconds between two changes


class VaryingLink:
    """Within this context, round-trip times of a RunningLink are `delays.draw(random)` in ms, a new one each STEP seconds.

    Only the way up (a-to-b) varies, so that what a packet meets there is one draw and no sum of two; the way down has half of the least
    round-trip time. The link should have reorder=True: otherwise a packet that has met a long delay would hold up those of later draws,
    and round trips would be longer on average than the distribution's mean.
    """

    def __init__(self, link, delays, seed):
        self._link, self._delays = link, delays
        self._random = random.Random(seed)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._vary, daemon=True)
        self._error = None

    def __enter__(self):
        self._link.set("b-to-a", delay_ms=self._delays.least / 2)
        self._set()
        self._thread.start()
        return self

    def __exit__(self, kind, error, trace):
        self._end.set()
        self._thread.join()
        if self._error and not kind:
            raise self._error

    def _set(self):
        self._link.set("a-to-b", delay_ms=self._delays.draw(self._random) - self._delays.least / 2)

    def _vary(self):
        try:
            while not self._end.wait(STEP):
                self._set()
        except Exception as error:  # pylint: disable=broad-except
            self._error = error  # for who leaves the context
