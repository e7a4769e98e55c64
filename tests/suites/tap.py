# SPDX-License-Identifier: BSD-3-Clause
"""tap.py - the Test Anything Protocol: the outcome of every test in a log"""
import re

LINE = re.compile(r"^(not ok|ok) (\d+)(?: -)? *([^#\n]*?)\s*(# *(?:skip|todo)\b.*)?$", re.M | re.I)
PLAN = re.compile(r"^1\.\.(\d+)", re.M)


def outcomes(part, log, numbered=False):
    """{test: outcome}. Tests are known by their names, or by numbers where names change from run to run or aren't unique."""
    found = {}
    for verdict, number, name, directive in LINE.findall(log):
        key = "%s %s" % (part, number) if numbered or not name else name
        if found.get(key) != "not ok":
            found[key] = "skip" if "skip" in directive.lower() else verdict.lower()
    plan = PLAN.search(log)
    if plan and len(LINE.findall(log)) < int(plan.group(1)):
        found[part] = "ended early"
    return found
