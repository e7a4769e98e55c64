#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""plot.py - draws the plots of an experiment from its results.json

    plot.py [--png] DIRECTORY...

A plot with a key becomes a file of its own, KEY.svg; those without are drawn below each other in plot.svg. Kinds of plots (report.Report.plot):

bars     `categories` and, for each of the series, a value a category; a value may be (value, low, high), which gives an error bar
lines    pairs (x, y), or (x, y, low, high), which gives a band; `xticks` are the only values that have ticks, where they are given
cdf      samples
heatmap  a matrix for each panel: rows from the top, `xticks` and `yticks` are their labels

`xlabel`, `ylabel`, `xlog`, `ylog`, `xlim`, `ylim` are for any. `published` has what a document gives: pairs (x, y) for lines and cdf, values
a category for bars, a matrix for a heatmap, by the name of the system with the document's name behind it.
"""
import json
import math
import os
import sys
import textwrap

from benchlib import interpreter, palette, plots as plot_files

MODULES = ("matplotlib",)
REMEDY = "on Debian: apt-get install python3-matplotlib; Fedora, Arch: python3-matplotlib, python-matplotlib"
PLOT_SIZE = (7.2, 4.2)  # inches, without what the legend takes
OURS_WIDTH, WIDTH, PUBLISHED_WIDTH = 3.0, 1.6, 1.4
MARKERS_MAX = 25  # with more points than that a line has no markers
VALUES_MAX = 24   # with more bars than that their values aren't written at them
LEGEND_CHARS = 30  # of a line in the legend; longer names have several lines
CHAR_WIDTH = 0.075  # inches, about
LABELS_MAX = 80   # characters of all categories together: with more they are turned
TITLE_MAX = 85    # of a line of the title

try:
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    from matplotlib import patheffects, ticker
except ImportError:
    plt = None


def plain(value, _=None):
    """A number as people write it: 0.05, 7, 1,500."""
    if value and (abs(value) < 1e-4 or abs(value) >= 1e9):
        return "%g" % value
    text = "{:,.6f}".format(float("%.6g" % value))
    return text.rstrip("0").rstrip(".") if "." in text else text


def short(value):
    """A number to be written at a bar or into a cell: three digits count."""
    if not value:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return "{:,.{}f}".format(value, min(digits, 4 if abs(value) < 0.1 else 2))


def _parts(value):
    """(value, low, high) of a bar; the bounds are None where there are none."""
    return value if isinstance(value, (list, tuple)) else (value, None, None)


def _hollow(style, marker=None):
    return {"marker": marker or style["marker"], "markerfacecolor": "white", "markeredgecolor": style["color"], "markeredgewidth": 1.5, "markersize": 7}


def _styles(plot):
    """The styles of what is measured and of what was published, which has its system's colour."""
    measured = palette.styles(list(plot["series"]))
    published = {}
    for name in plot.get("published") or {}:
        same = [known for known in measured if name == known or name.startswith(tuple(known + mark for mark in palette.SEPARATORS))]
        alike = [known for known in measured if palette.system(known) and palette.system(known) == palette.system(name)]
        nearest = max(same, key=len, default=None) or (alike[0] if alike else None)
        published[name] = dict(measured[nearest], like=nearest) if nearest else dict(palette.styles([name])[name], like=None)
    return measured, published


def _value_at(published, categories, number):
    """The published value of a category: of a list of values, or of pairs (category, value)."""
    if published and isinstance(published[0], (list, tuple)):
        return dict((str(category), value) for category, value in published).get(str(categories[number]))
    return published[number] if number < len(published) else None


def _bar_series(axes, name, style, bars, width):
    """The bars of one series: (place, parts)."""
    axes.bar([place for place, _ in bars], [part[0] for _, part in bars], width, label=name, color=style["color"],
             hatch=("", "//", "..", "xx")[style["nth"] % 4], edgecolor="black" if palette.is_ours(name) else "white",
             linewidth=1.2 if palette.is_ours(name) else 0.4, zorder=2)
    bounds = [(place, part) for place, part in bars if part[1] is not None]
    if bounds:
        axes.errorbar([place for place, _ in bounds], [part[0] for _, part in bounds],
                      yerr=[[max(0, part[0] - part[1]) for _, part in bounds], [max(0, part[2] - part[0]) for _, part in bounds]],
                      fmt="none", ecolor="black", elinewidth=1, capsize=3, zorder=3)


def _bar_values(axes, bars):
    """Writes the values above the bars."""
    for place, part in bars:
        axes.annotate(short(part[0]), (place, max(part[0], part[2] or 0)), xytext=(0, 3), textcoords="offset points",
                      ha="center", va="bottom", fontsize="x-small", zorder=5,
                      bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.7})


def _bars(axes, plot):
    measured, published = _styles(plot)
    categories, count = plot["categories"], len(plot["series"])
    width, places = 0.84 / count, {}
    for number, (name, values) in enumerate(plot["series"].items()):
        places[name] = [i + (number - (count - 1) / 2) * width for i in range(len(categories))]
        bars = [(place, _parts(value)) for place, value in zip(places[name], values) if value is not None]
        _bar_series(axes, name, measured[name], bars, width * 0.94)
        if count * len(categories) <= VALUES_MAX:
            _bar_values(axes, bars)
    for name, values in (plot.get("published") or {}).items():
        like = published[name]["like"]
        points = [(places[like][i] if like else i, _value_at(values, categories, i)) for i in range(len(categories))]
        points = [point for point in points if point[1] is not None]
        # the marker is on a bar of its colour: a white line around it keeps it visible, if its shape is simple
        axes.plot([x for x, _ in points], [y for _, y in points], linestyle="none", label=name, zorder=6,
                  path_effects=[patheffects.withStroke(linewidth=3.5, foreground="white")], **_hollow(published[name], "o"))
    axes.set_xticks(range(len(categories)))
    axes.set_xlim(-0.5, len(categories) - 0.5)
    long = max(len(str(name)) for name in categories) * len(categories) > LABELS_MAX
    axes.set_xticklabels(categories, rotation=20 if long else 0, ha="right" if long else "center")
    axes.margins(y=0.12)


def _width(name):
    return OURS_WIDTH if palette.is_ours(name) else WIDTH


def _lines(axes, plot):
    # ours are thick and lie beneath, so that a thin curve that coincides with them is seen all the same
    measured, published = _styles(plot)
    for name, points in plot["series"].items():
        style = measured[name]
        order = 2 if palette.is_ours(name) else 3
        axes.plot([point[0] for point in points], [point[1] for point in points], label=name, color=style["color"], linestyle=style["line"],
                  linewidth=_width(name), zorder=order, marker=style["marker"] if len(points) <= MARKERS_MAX else None,
                  markersize=6 if palette.is_ours(name) else 5)
        band = [point for point in points if len(point) > 2 and point[2] is not None]
        if band:
            axes.fill_between([point[0] for point in band], [point[2] for point in band], [point[3] for point in band],
                              color=style["color"], alpha=0.15, linewidth=0, zorder=1)
    _published_lines(axes, plot, published)


def _cdf(axes, plot):
    # ours are thick and lie beneath, so that a thin curve that coincides with them is seen all the same
    measured, published = _styles(plot)
    for name, values in plot["series"].items():
        ordered, style = sorted(values), measured[name]
        axes.step([ordered[0]] + ordered, [i / len(ordered) for i in range(len(ordered) + 1)], where="post", label=name,
                  color=style["color"], linestyle=style["line"], linewidth=_width(name), zorder=2 if palette.is_ours(name) else 3)
    _published_lines(axes, plot, published)
    axes.set_ylim(0, 1.01)


def _published_lines(axes, plot, published):
    for name, points in (plot.get("published") or {}).items():
        style = published[name]
        axes.plot([point[0] for point in points], [point[1] for point in points], label=name, color=style["color"], linestyle=(0, (4, 3)),
                  linewidth=PUBLISHED_WIDTH, zorder=4, **(_hollow(style) if len(points) <= MARKERS_MAX else {}))


def _luminance(color):
    """How light a colour looks, from 0 to 1."""
    red, green, blue = color[:3]
    return 0.299 * red + 0.587 * green + 0.114 * blue


def _panel(axes, plot, name, matrix, limits):
    image = axes.imshow([[math.nan if value is None else value for value in row] for row in matrix], cmap=plot.get("cmap", "cividis"),
                        aspect="auto", vmin=limits[0], vmax=limits[1])
    like = [values for key, values in (plot.get("published") or {}).items() if key.startswith(name)]
    for y, row in enumerate(matrix):
        for x, value in enumerate(row):
            theirs = like[0][y][x] if like else None
            text = ("-" if value is None else plot.get("format", "%.2f") % value) + (
                "" if theirs is None else "\n(%s)" % (plot.get("format", "%.2f") % theirs))
            dark = value is not None and _luminance(image.cmap(image.norm(value))) < 0.5
            axes.text(x, y, text, ha="center", va="center", fontsize="small", color="white" if dark else "black")
    axes.set_title(name, fontsize="small", fontweight="bold" if palette.is_ours(name) else "normal")
    axes.set_xticks(range(len(matrix[0])))
    axes.set_xticklabels(plot.get("xticks") or range(len(matrix[0])))
    axes.set_yticks(range(len(matrix)))
    axes.set_yticklabels(plot.get("yticks") or range(len(matrix)))
    axes.set_xlabel(plot.get("xlabel", ""))
    return image


def _heatmap(figure, plot):
    """Panels side by side, with one scale for all of them: options zlim (its ends), zlabel, format of the values in the cells, cmap."""
    panels = figure.subplots(1, len(plot["series"]), squeeze=False, sharey=True)[0]
    values = [value for matrix in plot["series"].values() for row in matrix for value in row if value is not None]
    limits = plot.get("zlim") or (min(values), max(values))
    if limits[0] < 0 < limits[1]:
        # less than nothing is red, more is blue, and nothing is white
        plot = dict({"cmap": "RdBu"}, **plot)
        limits = (-max(limits[1], -limits[0]), max(limits[1], -limits[0]))
    for axes, (name, matrix) in zip(panels, plot["series"].items()):
        image = _panel(axes, plot, name, matrix, limits)
    panels[0].set_ylabel(plot.get("ylabel", ""))
    figure.colorbar(image, ax=list(panels), label=plot.get("zlabel", ""), format=ticker.FuncFormatter(plain))
    about = ["(in parentheses: %s)" % key for key in plot.get("published") or {}]
    figure.suptitle("\n".join([textwrap.fill(plot["title"], TITLE_MAX)] + about), fontsize="medium")


def _log_axis(axis):
    """Ticks at 1, 2, 5, 10, 20, 50 …, or at powers of ten where that is too many, as plain numbers."""
    low, high = sorted(axis.get_view_interval())
    decades = math.log10(high / low) if low > 0 else 3
    axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5) if decades <= 3.2 else (1,), numticks=20))
    axis.set_minor_formatter(ticker.NullFormatter())


def _axes(axes, plot):
    axes.set_xlabel(plot.get("xlabel", ""))
    axes.set_ylabel(plot.get("ylabel", ""))
    if plot["kind"] != "bars":
        axes.set_xscale("log" if plot.get("xlog") else "linear")
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(plain))
    axes.set_yscale("log" if plot.get("ylog") else "linear")
    for limits, setter in ((plot.get("xlim"), axes.set_xlim), (plot.get("ylim"), axes.set_ylim)):
        if limits:
            setter(*limits)
    for axis, log in ((axes.xaxis, plot.get("xlog") and plot["kind"] != "bars"), (axes.yaxis, plot.get("ylog"))):
        if log:
            _log_axis(axis)
    if plot["kind"] == "lines" and plot.get("xticks"):
        axes.set_xticks(plot["xticks"])
        axes.minorticks_off()
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(plain))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y" if plot["kind"] == "bars" else "both", alpha=0.3, zorder=0)
    if len(plot["series"]) + len(plot.get("published") or {}) > 1:
        # beside the plot, where it covers nothing
        handles, labels = axes.get_legend_handles_labels()
        order = sorted(range(len(labels)), key=lambda i: labels[i] in (plot.get("published") or {}))
        axes.legend([handles[i] for i in order], [textwrap.fill(labels[i], LEGEND_CHARS) for i in order], fontsize="small", frameon=False, loc="upper left",
                    bbox_to_anchor=(1.01, 1.0), borderaxespad=0, handlelength=2.6)


KINDS = {"bars": _bars, "lines": _lines, "cdf": _cdf}


def _draw_into(figure, plots):
    if len(plots) == 1 and plots[0]["kind"] == "heatmap":
        _heatmap(figure, plots[0])
        return
    parts = figure.subfigures(len(plots), 1, squeeze=False)[:, 0]
    for part, plot in zip(parts, plots):
        if plot["kind"] == "heatmap":
            _heatmap(part, plot)
            continue
        axes = part.subplots()
        KINDS[plot["kind"]](axes, plot)
        axes.set_title(textwrap.fill(plot["title"], TITLE_MAX), fontsize="medium")
        _axes(axes, plot)


def _beside(plot):
    """Inches that a plot takes besides its axes, for the legend, or for a heatmap's scale and its many cells."""
    if plot["kind"] == "heatmap":
        return 1.0 + max(0.0, 0.45 * (sum(len(matrix[0]) for matrix in plot["series"].values()) - 10))
    names = [*plot["series"], *(plot.get("published") or {})]
    return CHAR_WIDTH * max(len(line) for name in names for line in textwrap.wrap(name, LEGEND_CHARS) or [""])


def draw_file(directory, name, plots, suffix):
    """Draws these plots below each other into NAME.SUFFIX."""
    # text stays text, and the same results give the same file
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": name, "font.family": "DejaVu Sans", "hatch.linewidth": 0.6})
    figure = plt.figure(figsize=(PLOT_SIZE[0] + max(map(_beside, plots)), PLOT_SIZE[1] * len(plots)), layout="constrained")
    _draw_into(figure, plots)
    path = os.path.join(directory, "%s.%s" % (name, suffix))
    if suffix == "svg":
        figure.savefig(path, metadata={"Date": None, "Description": plot_files.digest(plots[0])})
    else:
        figure.savefig(path, dpi=110)
    plt.close(figure)
    print(path)


def draw(directory, suffix):
    """Draws all plots of one experiment: those with a key into files of their own, the others into plot.SUFFIX."""
    with open(os.path.join(directory, "results.json"), encoding="utf-8") as file:
        plots = json.load(file)["plots"]
    rest = [plot for plot in plots if not plot.get("key")]
    for plot in plots:
        if plot.get("key"):
            draw_file(directory, plot["key"], [plot], suffix)
    if rest:
        draw_file(directory, "plot", rest, suffix)


def main():
    """The program."""
    interpreter.prefer(*MODULES)
    if plt is None:
        print("bench: no plot: matplotlib is missing; " + REMEDY, file=sys.stderr)
        sys.exit(77)
    for directory in [word for word in sys.argv[1:] if word != "--png"]:
        draw(directory, "png" if "--png" in sys.argv else "svg")


if __name__ == "__main__":
    main()
