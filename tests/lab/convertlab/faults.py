# SPDX-License-Identifier: BSD-3-Clause
"""faults.py - failures that no load explains: a wrong byte, a crash, a sanitizer's report, a leak

A busy machine may cause other failures, so CI may repeat their tests alone. These here are final.
"""
import re
import signal

CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP, signal.SIGSYS)
# What sanitizers, the C library, assert(3), the shell and valgrind print.
REPORTS = re.compile(r"(ERROR|WARNING|SUMMARY): (Address|Leak|Thread|Memory|UndefinedBehavior)Sanitizer"
                     r"|: runtime error: |Assertion `.*' failed|\*\*\* stack smashing|malloc\(\): |free\(\): |double free or corruption"
                     r"|Segmentation fault|Bus error|Illegal instruction|core dumped|definitely lost: [1-9]"
                     r"|\bforeign'?(=|: )[1-9]")  # the programs of the tests: bytes that their servers haven't sent


class Fault(AssertionError):
    """An error of the program under test, on every machine. Its test is never repeated."""


def is_crash(status):
    """Tells whether a process that ended with this status crashed: as Popen.returncode has it, or as a shell and env(1) say it."""
    return type(status) is int and any(status in (-number, 128 + number) for number in CRASHES)  # not a bool


def is_data(value):
    """Tells whether it is transferred data: bytes, or their SHA-256 sum."""
    return isinstance(value, (bytes, bytearray, memoryview)) or (isinstance(value, str) and bool(re.search(r"\b[0-9a-f]{64}\b", value)))


def report_in(text):
    """Returns the line that reports a fault, "" if there is none."""
    found = REPORTS.search(text)
    return found.string[found.string.rfind("\n", 0, found.start()) + 1:].split("\n", 1)[0] if found else ""
