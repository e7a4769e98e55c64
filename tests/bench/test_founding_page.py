#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_founding_page.py - bench/FOUNDING.md is what its templates and the stored results give, and templates are filled as they say"""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lab"))

# pylint: disable=wrong-import-position
from convertlab import check, equal, main
from convertlab.build import SRCDIR

sys.path.insert(0, os.path.join(SRCDIR, "bench"))
import founding
from benchlib import Report, plots

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


def test_results_may_be_older():
    equal(fill("${value:speed?}, ${table:cdf?}, ${plot:delays?}"), ", ".join(["*not in the stored run*"] * 3), "what older results lack")
    equal(fill("${value:gain?}"), "1.50", "what they have")
    equal(founding.fill_head("${some:speed?} ${some:gain?}", lambda name: RESULTS), "*not in the stored run* 1.50", "the head")


def test_head_is_filled():
    text = founding.fill_head("${some:gain} ${other:gain}", lambda name: RESULTS if name == "some" else None)
    equal(text, "1.50 not measured", "the head")
    check("no value \"speed\"" in refused(lambda template: founding.fill_head(template, lambda name: RESULTS), "${some:speed}"), "a missing value")


def test_what_results_lack_is_refused():
    for place, word in (("${value:speed}", "no value \"speed\", only count, gain"), ("${table:cdf}", "no table \"cdf\", only delays"),
                        ("${plot:delays}", "no plot \"delays\", only cdf"), ("so ${figure:cdf}\nends", "stands for nothing: ${figure:cdf}")):
        check(word in refused(fill, place), "%s: %s" % (place, refused(fill, place)))


def test_links_lead_to_the_same_file():
    there = os.path.join(os.sep, "bench")
    text = founding.relinked("[a](../README.md#top) [b](https://example.org/x) [c](#here)", os.path.join(there, "founding"), there)
    equal(text, "[a](README.md#top) [b](https://example.org/x) [c](#here)", "links of a page made elsewhere")


def results_of_a_run(directory, quick):
    """A run's results and plots, as bench/run leaves them, of the experiment ttfb."""
    bench = Report("ttfb", "a title", quick)
    bench.value("gain", "1.50")
    bench.samples("ms", [[1, 2.123456789]] * 20)
    bench.plot("cdf", "How long it takes", {"direct TCP": [1.5, 2.5]}, key="cdf")
    there = os.path.join(directory, "ttfb")
    bench.write(there)
    with open(os.path.join(there, "results.json"), encoding="utf-8") as file:
        text = plots.digest(json.load(file)["plots"][0])
    with open(os.path.join(there, "cdf.svg"), "w", encoding="ascii") as file:
        file.write("<svg>%s</svg>\n" % text)


def test_stored_results_make_the_page():
    """What is stored gives the page, and is noticed to be other than the page or than the plot once it is changed."""
    before = (founding.RESULTS, founding.PAGE, founding.TEMPLATES)
    with tempfile.TemporaryDirectory() as place:
        founding.RESULTS, founding.PAGE, founding.TEMPLATES = (os.path.join(place, name) for name in ("results", "FOUNDING.md", "founding"))
        try:
            os.mkdir(founding.TEMPLATES)
            for name, text in (("head.md", "# A page\n"), ("ttfb.md", "## 1. A\n\n${value:gain} ${plot:cdf}\n"), ("exam.md", "## 5. B\n\n${value:x}\n")):
                with open(os.path.join(founding.TEMPLATES, name), "w", encoding="ascii") as file:
                    file.write(text)
            results_of_a_run(os.path.join(place, "quick"), True)
            check("quick run" in refused(founding.store, os.path.join(place, "quick")), "a quick run was stored")
            results_of_a_run(os.path.join(place, "run"), False)
            founding.store(os.path.join(place, "run"))
            text = founding.make_page(founding.RESULTS, place)
            check(text.startswith("# A page\n\n## 1. A\n\n1.50 ![How long it takes](results/ttfb/cdf.svg)\n\n## 5. B\n\nNot measured yet"), text)
            check("FOUNDING.md isn't what" in founding.check()[0], "no page is no current page")
            with open(founding.PAGE, "w", encoding="utf-8") as file:
                file.write(text)
            equal(founding.check(), [], "what is wrong with a page that was made just now")
            path = os.path.join(founding.RESULTS, "ttfb", "results.json")
            with open(path, encoding="utf-8") as file:
                stored = file.read()
            for old, new, word in (("1.50", "1.60", "FOUNDING.md isn't what"), ("[1.5, 2.5]", "[1.5, 3.5]", "drawn from other results")):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(stored.replace(old, new))
                equal([word in line for line in founding.check()], [True], "what is wrong with %s for %s" % (new, old))
            os.unlink(os.path.join(founding.RESULTS, "ttfb", "cdf.svg"))
            check("cdf.svg is missing" in founding.check()[-1], "a plot that is missing")
        finally:
            founding.RESULTS, founding.PAGE, founding.TEMPLATES = before


def test_missing_results_are_said_to_be_missing():
    text = founding.unmeasured("## 2. A title\n\n${value:unknown}\n", "poc5g")
    check(text.startswith("## 2. A title\n\nNot measured yet") and "$" not in text, text)


if __name__ == "__main__":
    main()
