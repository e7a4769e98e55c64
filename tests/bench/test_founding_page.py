#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_founding_page.py - bench/FOUNDING.md is what its templates and the stored results give, and templates are filled as they say"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lab"))

# pylint: disable=wrong-import-position
from convertlab import check, equal, main
from convertlab.build import SRCDIR

sys.path.insert(0, os.path.join(SRCDIR, "bench"))
import founding

RESULTS = {"values": {"gain": "1.50", "count": 3}, "findings": [
    {"remark": "A sentence."}, {"key": "delays", "caption": "Delays", "columns": ["", "ms"], "rows": [["direct", "60.4"], ["SOCKS5", None]]}],
           "plots": [{"key": "cdf", "title": "How long it takes", "kind": "cdf", "series": {}}]}


def fill(template):
    return founding.fill(template, RESULTS, "some", lambda key: "results/some/%s.svg" % key)


def refused(function, *arguments):
    """What founding.py says when it refuses."""
    try:
        function(*arguments)
    except founding.Wrong as problem:
        return str(problem)
    return "nothing was refused"


def test_page_is_current():
    equal(founding.check(), [], "what is wrong with the page")


def test_places_are_filled():
    equal(fill("${value:gain} times, ${value:count} runs"), "1.50 times, 3 runs", "values")
    equal(fill("${table:delays}"), "**Delays**\n\n|        |   ms |\n|--------|-----:|\n| direct | 60.4 |\n| SOCKS5 |    - |", "a table")
    equal(fill("${plot:cdf}"), "![How long it takes](results/some/cdf.svg)", "a plot")


def test_what_results_lack_is_refused():
    for place, word in (("${value:speed}", "no value \"speed\", only count, gain"), ("${table:cdf}", "no table \"cdf\", only delays"),
                        ("${plot:delays}", "no plot \"delays\", only cdf"), ("so ${figure:cdf}\nends", "stands for nothing: ${figure:cdf}")):
        check(word in refused(fill, place), "%s: %s" % (place, refused(fill, place)))


def test_links_lead_to_the_same_file():
    there = os.path.join(os.sep, "bench")
    text = founding.relinked("[a](../README.md#top) [b](https://example.org/x) [c](#here)", os.path.join(there, "founding"), there)
    equal(text, "[a](README.md#top) [b](https://example.org/x) [c](#here)", "links of a page made elsewhere")


def test_missing_results_are_said_to_be_missing():
    text = founding.unmeasured("## 2. A title\n\n${value:unknown}\n", "poc5g")
    check(text.startswith("## 2. A title\n\nNot measured yet") and "$" not in text, text)


if __name__ == "__main__":
    main()
