#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_platform_outages.py - what this kernel's Multipath TCP makes of paths that fail, as doc/kernel-mptcp-outages.md reports it

The path manager's theory (src/paths/outage.c) rests on it. On a kernel without one of these faults nothing is wrong, and the report
says what can be relaxed.
"""
from convertlab import Lab, check, equal, main

REPRODUCER = "doc/reproducers/mptcp-outages"
CASES = ("timer", "close", "number", "limit", "window", "join")  # "return" takes a minute, and is seen in most outages, not in each


def test_reproducer():
    """Each case is tried, whatever comes of it."""
    with Lab(wifi=None, lte=None, core=None) as lab:
        host = lab.add_host("alone")
        result = host.run([lab.build.program(REPRODUCER), *CASES], check=False)
        check(result.returncode in (0, 1), "it ended with %d:\n%s" % (result.returncode, result.stderr))
        equal([line.split(":")[0] for line in result.stdout.splitlines()], list(CASES), "the cases, in\n" + result.stdout)
        return "\n" + result.stdout.rstrip()


if __name__ == "__main__":
    main()
