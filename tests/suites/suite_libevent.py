# SPDX-License-Identifier: BSD-3-Clause
"""libevent's regression tests, with each of its ways to wait

In its source: ./configure; make; make -C test regress. --source is the build directory.
"""
import os
import re

LIMIT = 900  # seconds for a part
ENVIRONMENT = {}
# The server answers and then resets, and the client must not see the answer: the converter hands it on in front of the reset.
EXPLAINED = [" http/data_length_constraints$"]
BACKENDS = ("EPOLL", "POLL", "SELECT")
TEST = re.compile(r"^([\w+]+/[\w/]+): (.*?)(?=^[\w+]+/[\w/]+: |\Z)", re.M | re.S)


def parts(source):  # pylint: disable=unused-argument
    return ["epoll", "poll", "select"]


def command(source, part, tests, directory):  # pylint: disable=unused-argument
    """The other ways to wait are turned off. What measures time or asks the world's name servers is left out."""
    without = ["EVENT_NO%s=1" % backend for backend in BACKENDS if backend != part.upper()]
    regress = os.path.join(source, "test", ".libs", "regress")
    regress = regress if os.path.exists(regress) else os.path.join(source, "test", "regress")
    tests = [test.split(" ", 1)[1] for test in tests or ()]
    return ["env", *without, os.path.abspath(regress), *tests]


def outcomes(part, log, directory):  # pylint: disable=unused-argument
    found = {}
    for name, text in TEST.findall(log):
        failed = "FAILED" in text or "Lost connection" in text
        skipped = "SKIPPED" in text or "DISABLED" in text
        found["%s %s" % (part, name)] = "FAILED" if failed else "skip" if skipped else "ok" if "OK" in text else "no end"
    return found
