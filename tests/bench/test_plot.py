#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_plot.py - plots show what they are given: plain numbers, ours thick, what was published in its system's colour, the same bytes each time"""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lab"))

# pylint: disable=wrong-import-position
from convertlab import Skip, check, equal, main
from convertlab.build import SRCDIR

sys.path.insert(0, os.path.join(SRCDIR, "bench"))
import plot
from benchlib import Report, palette

OURS = palette.SYSTEMS["libconvert"][0]
SOCKS = palette.SYSTEMS["SOCKS5"][0]


def drawn(kind, series, **options):
    """The text of the file that plot.py draws of one plot."""
    with tempfile.TemporaryDirectory() as place:
        bench = Report("some", "title", True)
        bench.plot(kind, "A plot", series, key="it", **options)
        bench.write(place)
        found = []
        for _ in range(2):
            said = subprocess.run([sys.executable, os.path.join(SRCDIR, "bench", "plot.py"), place], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True, check=False)
            if said.returncode == 77:
                raise Skip(said.stderr.strip())
            equal((said.returncode, sorted(os.listdir(place))), (0, ["it.svg", "results.json", "table.md"]), said.stderr)
            with open(os.path.join(place, "it.svg"), encoding="utf-8") as file:
                found.append(file.read())
        equal(found[0], found[1], "the same results drawn twice")
        return found[0]


def texts(svg):
    """All words and numbers in it."""
    return re.findall(r"<text [^>]*>([^<]*)</text>", svg)


def strokes(svg, color):
    """The styles of what is drawn in this colour."""
    return [style for style in re.findall(r'style="([^"]*)"', svg) if "stroke: " + color in style]


def width(style):
    """How thick a line is; it isn't said of those that are 1 thick."""
    found = re.search(r"stroke-width: ([\d.]+)", style)
    return float(found.group(1)) if found else 1.0


def test_numbers_are_plain():
    for value, expected in ((0, "0"), (0.05, "0.05"), (7.0, "7"), (1500, "1,500"), (100000, "100,000"), (0.1 + 0.2, "0.3"), (-2.5, "-2.5")):
        equal(plot.plain(value), expected, "on an axis: %r" % value)
    for value, expected in ((0, "0"), (1, "1.00"), (0.0123, "0.0123"), (12.34, "12.3"), (1234.5, "1,234"), (0.5, "0.50")):
        equal(plot.short(value), expected, "at a bar: %r" % value)


def test_lines():
    series = {"libconvert": [[1, 1, 0.5, 2], [100, 20, 10, 30], [100000, 300, 200, 400]], "SOCKS5": [[1, 1], [100000, 100]]}
    svg = drawn("lines", series, xlog=True, ylog=True, xlabel="size, kB", ylabel="Mbit/s", published={"SOCKS5: a document": [[10, 2], [1000, 20]]})
    check({"A plot", "size, kB", "Mbit/s", "libconvert", "SOCKS5: a document", "10", "1,000", "100,000"} <= set(texts(svg)), texts(svg))
    check("mathdefault" not in svg and "10^" not in svg, "numbers on an axis are powers")
    equal({width(style) for style in strokes(svg, OURS) if "fill: none" in style}, {plot.OURS_WIDTH}, "how thick ours is")
    equal({width(style) for style in strokes(svg, SOCKS) if "fill: none" in style}, {plot.WIDTH, plot.PUBLISHED_WIDTH}, "how thick others are")
    check(any("stroke-dasharray" in style for style in strokes(svg, SOCKS)), "what was published isn't dashed")


def test_cdf():
    svg = drawn("cdf", {"libconvert": [3, 1, 2], "SOCKS5": [5.5] * 4}, xlabel="ms", published={"SOCKS5 (a document)": [[4, 0.5]]})
    check({"libconvert", "SOCKS5", "SOCKS5 (a document)", "0.2", "1"} <= set(texts(svg)), texts(svg))


def test_bars():
    series = {"libconvert": [[1.25, 1, 2], None], "SOCKS5": [1.5, 2000]}
    svg = drawn("bars", series, categories=["near", "far"], ylabel="ratio",
                published={"SOCKS5: as pairs": [["far", 1900]], "libconvert: as a list": [1.1, None]})
    check({"near", "far", "1.25", "1.50", "2,000", "ratio", "SOCKS5: as pairs", "libconvert: as a list"} <= set(texts(svg)), texts(svg))
    equal(texts(svg).count("0"), 1, "zeros: a value that isn't there was drawn as one")


def test_heatmap():
    svg = drawn("heatmap", {"libconvert": [[0.25, 0.5], [None, 1]], "plain MPTCP": [[0.125, 0], [0, 0.75]]}, xticks=["1", "2"], yticks=["a", "b"],
                xlabel="Mbit/s", ylabel="ms", zlabel="benefit", zlim=[0, 1], published={"libconvert: a document": [[0.33, None], [None, None]]})
    check({"0.25", "(0.33)", "0.50", "-", "0.12", "a", "b", "libconvert", "plain MPTCP", "benefit"} <= set(texts(svg)), texts(svg))


def test_published_belongs_to_its_system():
    _, published = plot._styles({"series": {"SOCKS5": [], "SOCKS5, password": [], "here": []},  # pylint: disable=protected-access
                                 "published": {"SOCKS5, password: theirs": [], "here: theirs": [], "shadowsocks: theirs": []}})
    equal([style["like"] for style in published.values()], ["SOCKS5, password", "here", None], "the series that each belongs to")
    equal(published["shadowsocks: theirs"]["color"], palette.SYSTEMS["shadowsocks"][0], "the colour of a system that wasn't measured")


if __name__ == "__main__":
    main()
