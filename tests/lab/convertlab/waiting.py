# SPDX-License-Identifier: BSD-3-Clause
"""waiting.py - waits for a condition, and raises an error if it doesn't come true

The factor CONVERT_PATIENCE makes all of the lab's time limits longer. An emulated machine needs that (tests/kernels): there a program
takes some twenty times as long.
"""
import concurrent.futures
import os
import time


class LabError(Exception):
    """The lab itself has failed; the text says how and, where known, names the remedy."""


def patience(seconds):
    """Returns a time limit in seconds, longer on a slow machine; None, for no limit, stays None."""
    return None if seconds is None else seconds * float(os.environ.get("CONVERT_PATIENCE") or 1)


def repetitions(count):
    """Returns how often a test repeats something that it does `count` times on an ordinary machine: less often on a slow one."""
    return max(1, round(count / patience(1)))


def wait_until(condition, timeout=10.0, what="the condition", interval=0.002):
    """Calls condition() until it returns something true, and returns that.

    Raises LabError after patience(timeout) seconds; the error names `what` (a string, or a function that returns one). It looks
    every `interval` seconds at first, then less and less often, so that many tests can wait at once: a look is never later than a
    twentieth of the time waited.
    """
    start = time.monotonic()
    timeout = patience(timeout)
    while True:
        value = condition()
        if value:
            return value
        waited = time.monotonic() - start
        if waited >= timeout:
            raise LabError("waited %gs in vain for %s" % (timeout, what() if callable(what) else what))
        time.sleep(max(interval, waited / 20))


def side_by_side(function, *arguments, at_once=4):
    """Calls a function with each of these, as map() does, in several threads, as tests mostly wait. Returns a list."""
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(function, *arguments))
