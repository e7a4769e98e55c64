#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""plot.py - draws plot.svg from the results.json of an experiment

    plot.py [--png] DIRECTORY...

Kinds of plots (report.Report.plot): "bars" has `categories` and, for each of its series, a value a category; "lines" has pairs
(x, y); "cdf" has samples. `xlabel`, `ylabel`, `xlog`, `ylog` are for any.
"""
import json
import os
import shutil
import subprocess
import sys

SYSTEM_PYTHON = "/usr/bin/python3"
REMEDY = "on Debian: apt-get install python3-matplotlib; Fedora, Arch: python3-matplotlib, python-matplotlib"
PLOT_SIZE = (7.5, 4)  # inches

try:
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
except ImportError:
    plt = None


def _bars(axes, plot):
    count, width = len(plot["series"]), 0.8 / len(plot["series"])
    for number, (name, values) in enumerate(plot["series"].items()):
        places = [i + (number - (count - 1) / 2) * width for i in range(len(values))]
        drawn = axes.bar(places, [value or 0 for value in values], width, label=name)
        axes.bar_label(drawn, ["" if value is None else "%.3g" % value for value in values], fontsize="small")
    axes.set_xticks(range(len(plot["categories"])))
    axes.set_xticklabels(plot["categories"], rotation=20 if len(plot["categories"]) > 5 else 0)


def _lines(axes, plot):
    for name, pairs in plot["series"].items():
        axes.plot([x for x, _ in pairs], [y for _, y in pairs], label=name, linewidth=1.2)


def _cdf(axes, plot):
    for name, values in plot["series"].items():
        ordered = sorted(values)
        axes.step(ordered, [(i + 1) / len(ordered) for i in range(len(ordered))], where="post", label=name)
    axes.set_ylim(0, 1.01)


KINDS = {"bars": _bars, "lines": _lines, "cdf": _cdf}


def draw(directory, suffix):
    """Draws all plots of one experiment below each other into plot.SUFFIX."""
    with open(os.path.join(directory, "results.json"), encoding="utf-8") as file:
        results = json.load(file)
    plots = results["plots"]
    if not plots:
        return
    figure, all_axes = plt.subplots(len(plots), 1, figsize=(PLOT_SIZE[0], PLOT_SIZE[1] * len(plots)), squeeze=False)
    for axes, plot in zip(all_axes[:, 0], plots):
        KINDS[plot["kind"]](axes, plot)
        axes.set_title(plot["title"], fontsize="medium")
        axes.set_xlabel(plot.get("xlabel", ""))
        axes.set_ylabel(plot.get("ylabel", ""))
        axes.set_xscale("log" if plot.get("xlog") else "linear") if plot["kind"] != "bars" else None
        axes.set_yscale("log" if plot.get("ylog") else "linear")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", alpha=0.3)
        if len(plot["series"]) > 1:
            axes.legend(fontsize="small", frameon=False)
    figure.tight_layout()
    # text stays text, and the same results give the same file
    matplotlib.rcParams["svg.fonttype"] = "none"
    matplotlib.rcParams["svg.hashsalt"] = results["experiment"]
    figure.savefig(os.path.join(directory, "plot." + suffix), metadata={"Date": None} if suffix == "svg" else None)
    plt.close(figure)
    print("%s: plot.%s" % (directory, suffix))


def main():
    """The program."""
    arguments = [word for word in sys.argv[1:] if word != "--png"]
    if plt is None:
        # another Python may have been found first, and matplotlib be packaged for the system's
        if shutil.which(SYSTEM_PYTHON) and os.path.realpath(sys.executable) != os.path.realpath(SYSTEM_PYTHON):
            sys.exit(subprocess.call([SYSTEM_PYTHON] + sys.argv))
        print("bench: no plot: matplotlib is missing; " + REMEDY, file=sys.stderr)
        sys.exit(77)
    for directory in arguments:
        draw(directory, "png" if "--png" in sys.argv else "svg")


if __name__ == "__main__":
    main()
