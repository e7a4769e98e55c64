#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_platform_outages.py - how this kernel's Multipath TCP treats paths that fail; doc/kernel-mptcp-outages.md is the report

The path manager's theory (src/paths/outage.c) rests on it. The test doesn't fail on a kernel without one of these faults; the report says
what can be relaxed then.
"""
from convertlab import Lab, check, equal, main

REPRODUCER = "doc/reproducers/mptcp-outages"
CASES = ("timer", "close", "number", "limit", "window", "join")  # "return" takes a minute, and doesn't show in each outage


def test_reproducer():
    """The reproducer tries each case, with any result."""
    with Lab(wifi=None, lte=None, core=None) as lab:
        host = lab.add_host("alone")
        result = host.run([lab.build.program(REPRODUCER), *CASES], check=False)
        check(result.returncode in (0, 1), "it ended with %d:\n%s" % (result.returncode, result.stderr))
        equal([line.split(":")[0] for line in result.stdout.splitlines()], list(CASES), "the cases, in\n" + result.stdout)
        return "\n" + result.stdout.rstrip()


if __name__ == "__main__":
    main()
