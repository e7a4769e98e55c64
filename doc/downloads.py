#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""downloads.py - draws the plot that README.md links, doc/downloads.svg, from bench/results/grid/table.md

Downloads over two networks, by libconvert from a plain TCP server and by plain MPTCP from a server that speaks it. Run it again when
the table has changed; it needs nothing but Python.
"""
import os
import re

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
NETWORKS = "50 + 30"
QUEUES = "0.5"
WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP_EDGE, BOTTOM = 52, 12, 58, 42
HIGHEST = 80  # Mbit/s, what both networks have
STYLE = """  .page { fill: #ffffff } text { fill: #1b2733 } .dim { fill: #54616e; font-size: 12px } .head { font-weight: bold; font-size: 15px }
  .grid { stroke: #d5dbe1 } .axis { stroke: #54616e } .ours { fill: #1769aa } .plain { fill: #d9a441 } .value { font-size: 11px; paint-order: stroke; stroke: #ffffff; stroke-width: 3 }
  .link { stroke: #54616e; stroke-dasharray: 5 4; fill: none }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117 } text { fill: #e3eaf1 } .dim { fill: #a3b0bc } .grid { stroke: #2a333d } .axis { stroke: #a3b0bc }
    .ours { fill: #4ea1e0 } .plain { fill: #c08a2c } .link { stroke: #a3b0bc } .value { stroke: #0d1117 }
  }"""


def rows():
    """[(ms of round trip, libconvert's Mbit/s, plain MPTCP's)]"""
    with open(os.path.join(TOP, "bench/results/grid/table.md"), encoding="utf-8") as file:
        for line in file:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if len(cells) == 6 and cells[0] == NETWORKS and cells[1] == QUEUES:
                yield cells[2], float(cells[3]), float(cells[4])


def plot(points):
    """The SVG, as text."""
    def height(rate):
        return (HEIGHT - TOP_EDGE - BOTTOM) * rate / HIGHEST

    floor = HEIGHT - BOTTOM
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="Helvetica, Arial, sans-serif" font-size="13" role="img"'
           ' aria-labelledby="t">' % (WIDTH, HEIGHT),
           '<title id="t">Downloads over two networks: libconvert beside plain Multipath TCP</title>',
           '<!-- made by doc/downloads.py -->', "<style>", STYLE, "</style>",
           '<rect class="page" width="%d" height="%d"/>' % (WIDTH, HEIGHT),
           '<text class="head" x="12" y="22">15 MB over %s Mbit/s, in Mbit/s</text>' % NETWORKS,
           '<rect class="ours" x="14" y="33" width="12" height="12"/><text x="32" y="44">libconvert, from a plain TCP server</text>',
           '<rect class="plain" x="270" y="33" width="12" height="12"/><text x="288" y="44">plain MPTCP, from a server that speaks it</text>']
    for rate in range(0, HIGHEST + 1, 20):
        y = floor - height(rate)
        out += ['<path class="%s" d="M%d %.1f H%d"/>' % ("grid" if rate else "axis", LEFT, y, WIDTH - RIGHT),
                '<text class="dim" x="%d" y="%.1f" text-anchor="end">%d</text>' % (LEFT - 8, y + 4, rate)]
    best = floor - height(max(int(rate) for rate in re.findall(r"\d+", NETWORKS)))
    out.append('<path class="link" d="M%d %.1f H%d"/>' % (LEFT, best, WIDTH - RIGHT))
    step = (WIDTH - LEFT - RIGHT) / len(points)
    for number, (ms, ours, plain) in enumerate(points):
        x = LEFT + step * number + step / 2
        for kind, rate, left in (("ours", ours, x - 34), ("plain", plain, x + 2)):
            y = floor - height(rate)
            out += ['<rect class="%s" x="%.1f" y="%.1f" width="32" height="%.1f"/>' % (kind, left, y, height(rate)),
                    '<text class="value" x="%.1f" y="%.1f" text-anchor="middle">%.0f</text>' % (left + 16, y - 4, rate)]
        out.append('<text x="%.1f" y="%d" text-anchor="middle">%s ms</text>' % (x, floor + 18, ms))
    out += ['<text class="dim" x="%d" y="%.1f" text-anchor="end">the better network has 50</text>' % (WIDTH - RIGHT, best - 5),
            '<text class="dim" x="%d" y="%d" text-anchor="middle">round trip of both networks</text>' % ((WIDTH + LEFT) // 2, HEIGHT - 6), "</svg>"]
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    with open(os.path.join(TOP, "doc/downloads.svg"), "w", encoding="utf-8") as svg:
        svg.write(plot(list(rows())))
