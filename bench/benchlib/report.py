# SPDX-License-Identifier: BSD-3-Clause
"""report.py - the findings of an experiment, and the files that are made of them

results.json has everything: the machine, versions, raw samples, tables, what is plotted. table.md is for people. The plot is
drawn from results.json by ../plot.py.
"""
import contextlib
import json
import os
import re
import sys
import time

from . import machine

try:
    import tqdm
except ImportError:
    tqdm = None

LAST_COLUMN_MAX = 20  # what is longer there isn't aligned
LINE_EVERY = 20  # seconds between two lines about progress, where there is no terminal for a bar
DIGITS = 7  # of a figure in results.json: more than anything is measured to


def _text(value):
    return "-" if value is None else value if isinstance(value, str) else "%g" % value


LINE_MAX = 250  # of JSON, unless it is a list of figures


def _rounded(value):
    """The same with figures rounded to DIGITS digits, which makes raw samples half as long."""
    if isinstance(value, float):
        return float("%.*g" % (DIGITS, value))
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, (list, tuple)) else value


def _is_flat(value):
    """Is it a list of figures and words, or of short lists of them, as raw samples are?"""
    return isinstance(value, list) and not any(
        isinstance(part, dict) or isinstance(part, list) and any(isinstance(item, (list, dict)) for item in part) for part in value)


def _json(value, indent=""):
    """As JSON, with each list of samples on one line: they are most of it."""
    line, is_list = json.dumps(value), isinstance(value, list)
    parts = [item for item in (value if is_list else value.values() if isinstance(value, dict) else []) if isinstance(item, (dict, list))]
    if not isinstance(value, (dict, list)) or _is_flat(value) or not parts and len(line) <= LINE_MAX:
        return line
    inner = indent + " "
    items = [_json(item, inner) for item in value] if is_list else [
        "%s: %s" % (json.dumps(key), _json(item, inner)) for key, item in value.items()]
    return "%s\n%s%s\n%s%s" % (line[0], inner, (",\n" + inner).join(items), indent, line[-1])


def as_json(results):
    """The text of results.json."""
    return _json(_rounded(results)) + "\n"


def markdown(columns, rows):
    """A table that reads well as it is, too: figures to the right, words to the left."""
    cells = [list(map(_text, row)) for row in [columns] + rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    widths[-1] = min(widths[-1], LAST_COLUMN_MAX)
    figures = [all(row[i][:1] in "+-.0123456789" for row in cells[1:]) for i in range(len(columns))]
    lines = ["| %s |" % " | ".join(cell.rjust(width) if figure else cell.ljust(width)
                                  for cell, width, figure in zip(row, widths, figures)) for row in cells]
    rule = "|%s|" % "|".join("-" * (width + 1) + (":" if figure else "-") for width, figure in zip(widths, figures))
    return "\n".join([lines[0], rule] + lines[1:])


def duration(seconds):
    """A time as people say it, "40 s", "3 min" or "3 h 40 min"."""
    minutes = round(seconds / 60)
    return "%.0f s" % seconds if seconds < 100 else "%d min" % minutes if minutes < 120 else "%d h %02d min" % divmod(minutes, 60)


QUICK_SECONDS = 60  # at most, of each experiment with --quick


def expected_seconds(durations, quick=False, sample=1.0):
    """How long experiments take that say they take so long: "8 minutes"."""
    if quick:
        return QUICK_SECONDS * len(durations)
    return 60 * sample * sum(int(re.fullmatch(r"(\d+) minutes", text).group(1)) for text in durations)


class _Progress:
    """How far a loop of known length is: a bar on a terminal, elsewhere a line now and then. Only one loop has it; those inside it don't."""

    BAR = "  {percentage:3.0f}% |{bar}| {elapsed} gone, {remaining} left{postfix}"

    def __init__(self, total, stream=None):
        self._total, self._done = total, 0
        self._stream = stream or sys.stderr
        self._start = self._said = time.monotonic()
        self._bar = None
        if tqdm and self._stream.isatty():
            tqdm.tqdm.monitor_interval = 0  # no thread beside what is measured
            # smoothing 0: the time that is left follows from all that is done, since items differ
            self._bar = tqdm.tqdm(total=total, bar_format=self.BAR, smoothing=0, file=self._stream, dynamic_ncols=True, leave=False)

    def begin(self, name):
        """This item is next."""
        if self._bar is not None:
            self._bar.set_postfix_str(name)
        elif time.monotonic() - self._said >= LINE_EVERY:
            self._said = time.monotonic()
            gone = self._said - self._start
            print("  %3.0f%%, %s gone, %s left: %s" % (100 * self._done / self._total, duration(gone),
                                                     duration(gone * (self._total - self._done) / self._done)
                                                     if self._done else "not known how much", name),
                  file=self._stream, flush=True)

    def end(self, weight):
        """An item of this weight is done."""
        self._done += weight
        if self._bar is not None:
            self._bar.update(weight)

    def print(self, text, file):
        """Prints a text above the bar."""
        if self._bar is not None:
            tqdm.tqdm.write(text, file=file)
        else:
            print(text, file=file, flush=True)

    def close(self):
        """Removes the bar."""
        if self._bar is not None:
            self._bar.close()


class Report:
    """The findings of one experiment; `quick` asks for a short run that shows only that everything works, and `sample` for this share of
    what a full run counts.

    `cpu_matters`: an experiment sets it if links and round trips should be the limit, so that its figures are wrong where the CPUs
    were; the run is then called noisy if the experiment itself has left no CPU idle.
    """

    def __init__(self, name, title, quick, sample=1.0):
        self.quick = quick
        self.sample = sample
        self.cpu_matters = False
        self._section = ""
        self._progress = None
        self._start = time.monotonic()
        options = (" --quick" if quick else "") + (" --sample %g" % sample if sample != 1 else "")
        self._results = {"experiment": name, "title": title, "quick": quick, "sample": sample, "command": "bench/run " + name + options,
                         "machine": machine.facts(), "load at the start": machine.load(), "versions": {}, "settings": {}, "noise": {},
                         "values": {}, "findings": [], "plots": [], "samples": {}}

    # --- what experiments call --------------------------------------------------------------------

    def count(self, full, quick):
        """How many of something this run measures, where a full run has `full` and a quick one `quick`: one at least."""
        return quick if self.quick else max(1, round(full * self.sample))

    @contextlib.contextmanager
    def section(self, title):
        """Names of samples, tables and plots begin with this title meanwhile: for experiments that consist of others."""
        before, self._section = self._section, self._section + title + ": "
        yield
        self._section = before

    def version(self, name, text):
        """Notes the version of something that takes part."""
        self._results["versions"][name] = text or "unknown"

    def setting(self, name, value):
        """Notes how it was measured."""
        self._results["settings"][name] = value

    def samples(self, name, values):
        """Keeps raw values."""
        self._results["samples"].setdefault(self._section + name, []).extend(values)

    def value(self, key, value):
        """Keeps a figure or a word by a name, for the prose of ../FOUNDING.md: text, or a number that is rounded already."""
        self._unused(key, self._results["values"])
        self._results["values"][key] = value

    def table(self, caption, columns, rows, key=None):
        """A table; cells are strings or numbers, None where there is nothing. It is printed at once. ../FOUNDING.md names it by its key."""
        self._unused(key, [found.get("key") for found in self._results["findings"]])
        caption = self._section + caption
        self._results["findings"].append(dict({"key": key} if key else {}, caption=caption, columns=columns, rows=rows))
        self._print("\n%s\n\n%s" % (caption, markdown(columns, rows)))

    def remark(self, text):
        """Adds a sentence at this place among the tables."""
        self._results["findings"].append({"remark": text})
        self._print("\n" + text)

    def plot(self, kind, title, series, key=None, **options):
        """A plot, drawn afterwards by ../plot.py, which says what each kind wants and which options there are; in a file KEY.svg of its own if
        it has a key.
        """
        self._unused(key, [plot.get("key") for plot in self._results["plots"]])
        self._results["plots"].append(dict(dict({"key": key} if key else {}, **options), kind=kind, title=self._section + title, series=series))

    def over(self, items, label=str, weight=None):
        """Yields the items while it shows how many of them are done and how long the rest will take. `label` gives an item's name, `weight` how
        long one takes, as compared with others. In a loop inside of another one the outer one's progress stays.
        """
        items = list(items)
        weights = [weight(item) if weight else 1 for item in items]
        if self._progress or not items:
            yield from items
            return
        self._progress = _Progress(sum(weights))
        try:
            for item, part in zip(items, weights):
                self._progress.begin(label(item))
                yield item
                self._progress.end(part)
        finally:
            self._progress.close()
            self._progress = None

    def progress(self, text):
        """Prints on the terminal what is being done."""
        self._print("  " + text, sys.stderr)

    def _print(self, text, file=None):
        if self._progress:
            self._progress.print(text, file or sys.stdout)
        else:
            print(text, file=file or sys.stdout, flush=True)

    @staticmethod
    def _unused(key, others):
        if key is not None and key in others:
            raise ValueError("two have the key \"%s\"" % key)

    # --- what run calls ---------------------------------------------------------------------------

    def _heading(self):
        results = self._results
        lines = ["# %s" % results["title"], "", provenance(results)]
        for title, key in (("Versions", "versions"), ("Settings", "settings")):
            if results[key]:
                lines += ["", "%s: %s." % (title, ", ".join("%s %s" % pair for pair in results[key].items()))]
        return lines

    def noise(self, verdict):
        """Keeps what was found about other load on the machine: a noise.Verdict."""
        self._results["noise"] = verdict.facts()

    def write(self, directory):
        """Writes results.json and table.md."""
        results = self._results
        results["load at the end"] = machine.load()
        results["seconds"] = round(time.monotonic() - self._start)
        os.makedirs(directory, exist_ok=True)
        with open(os.path.join(directory, "results.json"), "w", encoding="utf-8") as file:
            file.write(as_json(results))
        lines = self._heading()
        for found in results["findings"]:
            lines += ["", found["remark"]] if "remark" in found else ["", table_text(found)]
        with open(os.path.join(directory, "table.md"), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")


def table_text(found):
    """A table with its caption, for a page."""
    return "**%s**\n\n%s" % (found["caption"], markdown(found["columns"], found["rows"]))


def provenance(results):
    """A sentence or two: what was run where, and whether the machine was quiet."""
    where = results["machine"]
    text = ("Measured by `%s` in %s on %s: %s, %d cores, %s%s, Linux %s, %s, %s, congestion control %s; load average %.1f at the start, "
            "%.1f at the end." % (
                results["command"], duration(results["seconds"]), where["date"], where["processor"], where["cores"], where["memory"],
                " (virtual machine)" if where["virtual"] else "", where["kernel"], where["system"], where["libc"], where["congestion control"],
                results["load at the start"], results["load at the end"]))
    share = results.get("sample", 1)
    return text + (" A sample: %g of what a full run counts." % share if share != 1 else "") + (
        " " + results["noise"]["text"] if results.get("noise") else "")
