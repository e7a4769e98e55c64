#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""outage.py - draws README.md's first picture, doc/outage.svg: a download during which wifi falls silent

    outage.py            draws bench/results/survive/outage.txt
    outage.py --measure  measures it anew in network namespaces, as root, and then draws it

bench/results/survive/outage.txt has the rate of each network in each quarter of a second, in Mbit/s: of a download by stock curl with
libconvert over wifi and lte, with the service convertize-paths, and of one by TCP alone. doc/overview.svg is the picture's upper part.
"""
import os
import re
import sys
import time

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
DATA = os.path.join(TOP, "bench/results/survive/outage.txt")
STEP = 0.25                # seconds
SILENT, BACK, END = 6, 13, 20  # seconds after the download has begun
WAYS = (("libconvert", "wifi"), ("libconvert", "lte"), ("direct", "wifi"))


# --- measuring ----------------------------------------------------------------------------------------------------


def measure():
    """{(way, network): [Mbit/s]}"""
    sys.path.insert(0, os.path.join(TOP, "tests/lab"))
    from convertlab import sandbox  # pylint: disable=import-outside-toplevel
    sandbox.enter()
    rates = {}
    for way in ("direct", "libconvert"):
        rates.update(_download(way))
    return rates


def _download(way):
    from convertlab import Lab, Link, wait_until  # pylint: disable=import-outside-toplevel
    with Lab(wifi=Link(delay_ms=10, rate_mbit=50, queue=200), lte=Link(delay_ms=25, rate_mbit=30, queue=200), core=Link(delay_ms=5)) as lab:
        lab.convertd()
        with open(os.path.join(lab.directory, "file"), "wb") as file:
            file.truncate(1 << 30)
        lab.start_listening(lab.server, [sys.executable, "-m", "http.server", "80", "--directory", lab.directory], 80, name="www")
        if way == "libconvert":
            lab.client.ip("mptcp endpoint flush", "mptcp limits set subflows 0 add_addr_accepted 0")
            service = lab.client.popen([lab.build.program("convertize"), "paths", "--manage", "--config", "none", "--device", "wifi,lte"],
                                       name="paths")
            for address in (lab.client.wifi4, lab.client.lte4):
                service.wait_log("+ ip mptcp endpoint add " + address)
        curl = lab.client.popen(["curl", "-q", "-s", "-o", "/dev/null", "http://%s/file" % lab.server.addr4],
                                env=lab.converted() if way == "libconvert" else None)
        links = {"wifi": lab.wifi, "lte": lab.lte}
        arrived = {name: [] for name in links}
        wait_until(lambda: lab.wifi.stats()["b-to-a"]["out_bytes"] > 20000, 10, "the download to begin")
        start = time.monotonic()
        for i in range(round(END / STEP) + 1):
            time.sleep(max(0, start + i * STEP - time.monotonic()))
            for name, link in links.items():
                arrived[name].append(link.stats()["b-to-a"]["out_bytes"])
            if i in (SILENT / STEP, BACK / STEP):
                (lab.wifi.down if i < BACK / STEP else lab.wifi.up)()
        curl.stop()
    return {(way, name): [(after - before) * 8 / STEP / 1e6 for before, after in zip(counts, counts[1:])] for name, counts in arrived.items()}


def write(rates):
    """Writes the data: a line for each network of each way."""
    with open(DATA, "w", encoding="ascii") as file:
        for way, name in WAYS:
            file.write("%s %s %s\n" % (way, name, " ".join("%.1f" % rate for rate in rates[way, name])))


def read():
    """Reads what write() has written."""
    with open(DATA, encoding="ascii") as file:
        return {(way, name): [float(rate) for rate in rates] for way, name, *rates in (line.split() for line in file)}


# --- drawing ------------------------------------------------------------------------------------------------------

WIDTH, HEIGHT, UPPER = 860, 470, 226
LEFT, RIGHT, ABOVE, FLOOR = 58, 20, 300, 430
HIGHEST = 80  # Mbit/s, what both networks have
STYLE = """  .wifiarea { fill: #1769aa; opacity: .8 } .ltearea { fill: #c2601f; opacity: .8 } .grid { stroke: #d5dbe1 } .axis { stroke: #54616e }
  .direct { fill: none; stroke: #1b2733; stroke-width: 2; stroke-dasharray: 6 4 } .key { stroke-width: 0 } .fault { stroke: #1b2733; fill: none }
  @media (prefers-color-scheme: dark) {
    .wifiarea { fill: #4ea1e0 } .ltearea { fill: #e08a4a } .grid { stroke: #2a333d } .axis { stroke: #a3b0bc } .direct, .fault { stroke: #e3eaf1 }
  }"""


def _across(second):
    return LEFT + (WIDTH - LEFT - RIGHT) * second / END


def _up(rate):
    return FLOOR - (FLOOR - ABOVE) * min(rate, HIGHEST) / HIGHEST


def _steps(tops):
    """The words of a path along these rates."""
    return " ".join("L%.1f %.1f H%.1f" % (_across(i * STEP), _up(rate), _across((i + 1) * STEP)) for i, rate in enumerate(tops))


def _area(kind, lower, upper):
    back = " ".join("L%.1f %.1f H%.1f" % (_across((i + 1) * STEP), _up(rate), _across(i * STEP)) for i, rate in reversed(list(enumerate(lower))))
    return '<path class="%s" d="M%s %s Z"/>' % (kind, _steps(upper)[1:], back)


def plot(rates):
    """The SVG, as text."""
    with open(os.path.join(TOP, "doc/overview.svg"), encoding="utf-8") as file:
        overview = file.read()
    wifi, lte, direct = (rates[way] for way in WAYS)
    both = [a + b for a, b in zip(wifi, lte)]
    style, body = re.search(r"<style>\n(.*?)\n</style>\n(.*)</svg>", overview, re.DOTALL).groups()
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="Helvetica, Arial, sans-serif" font-size="15" role="img"'
           ' aria-labelledby="t">' % (WIDTH, HEIGHT),
           '<title id="t">One connection over wifi and LTE by way of a converter; a download of it, measured, goes on while wifi is silent</title>',
           "<!-- made by doc/outage.py -->", "<style>", style, STYLE, "</style>",
           '<rect class="page" width="%d" height="%d"/>' % (WIDTH, HEIGHT), body.strip(),
           '<text class="head" x="16" y="%d">One download while wifi falls silent</text>' % (UPPER + 34)]
    x = 326
    for kind, word, width in (("wifiarea", "over wifi", 96), ("ltearea", "over LTE", 96), ("direct", "the same download by TCP alone, over wifi", 0)):
        out.append('<rect class="%s key" x="%d" y="%d" width="14" height="12"/>' % (kind, x, UPPER + 23) if width else
                   '<path class="direct" d="M%d %d h22"/>' % (x, UPPER + 29))
        out.append('<text class="dim" x="%d" y="%d">%s</text>' % (x + (20 if width else 28), UPPER + 34, word))
        x += width
    for rate in range(0, HIGHEST + 1, 20):
        out += ['<path class="%s" d="M%d %.1f H%d"/>' % ("grid" if rate else "axis", LEFT, _up(rate), WIDTH - RIGHT),
                '<text class="dim" x="%d" y="%.1f" text-anchor="end">%d</text>' % (LEFT - 8, _up(rate) + 4, rate)]
    out += [_area("wifiarea", [0] * len(wifi), wifi), _area("ltearea", wifi, both),
            '<path class="direct" d="M%s"/>' % _steps(direct)[1:]]
    for second, word in ((SILENT, "wifi falls silent"), (BACK, "wifi is back")):
        out += ['<path class="fault" d="M%.1f %d V%d"/>' % (_across(second), ABOVE - 12, FLOOR),
                '<text class="dim" x="%.1f" y="%d" text-anchor="middle">%s</text>' % (_across(second), ABOVE - 17, word)]
    out += ['<text class="dim" x="%.1f" y="%d" text-anchor="middle">%d s</text>' % (_across(second), FLOOR + 18, second) for second in range(0, END, 5)]
    out += ['<text class="dim" x="%d" y="%d" text-anchor="end">Mbit/s, measured with emulated networks of 50 and 30</text>' % (WIDTH - RIGHT, HEIGHT - 6),
            "</svg>"]
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["--measure"]:
        write(measure())
    with open(os.path.join(TOP, "doc/outage.svg"), "w", encoding="utf-8") as svg:
        svg.write(plot(read()))
