# SPDX-License-Identifier: BSD-3-Clause
"""report.py - the findings of an experiment, and the files that are made of them

results.json has everything: the machine, versions, raw samples, tables, what is plotted. table.md is for people. The plot is
drawn from results.json by ../plot.py.
"""
import contextlib
import json
import os
import sys

from . import machine

LAST_COLUMN_MAX = 20  # what is longer there isn't aligned


def _text(value):
    return "-" if value is None else value if isinstance(value, str) else "%g" % value


LINE_MAX = 250  # of JSON, unless it is a list of figures


def _json(value, indent=""):
    """As JSON, with what has no parts of its own on one line: raw samples are most of it."""
    line, is_list = json.dumps(value), isinstance(value, list)
    parts = [item for item in (value if is_list else value.values() if isinstance(value, dict) else []) if isinstance(item, (dict, list))]
    if not isinstance(value, (dict, list)) or not parts and (is_list or len(line) <= LINE_MAX):
        return line
    inner = indent + " "
    items = [_json(item, inner) for item in value] if is_list else [
        "%s: %s" % (json.dumps(key), _json(item, inner)) for key, item in value.items()]
    return "%s\n%s%s\n%s%s" % (line[0], inner, (",\n" + inner).join(items), indent, line[-1])


def _markdown(columns, rows):
    """A table that reads well as it is, too: figures to the right, words to the left."""
    cells = [list(map(_text, row)) for row in [columns] + rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    widths[-1] = min(widths[-1], LAST_COLUMN_MAX)
    figures = [all(row[i][:1] in "+-.0123456789" for row in cells[1:]) for i in range(len(columns))]
    lines = ["| %s |" % " | ".join(cell.rjust(width) if figure else cell.ljust(width)
                                  for cell, width, figure in zip(row, widths, figures)) for row in cells]
    rule = "|%s|" % "|".join("-" * (width + 1) + (":" if figure else "-") for width, figure in zip(widths, figures))
    return "\n".join([lines[0], rule] + lines[1:])


class Report:
    """The findings of one experiment; `quick` asks for a short run that shows only that everything works."""

    def __init__(self, name, title, quick):
        self.quick = quick
        self._section = ""
        self._results = {"experiment": name, "title": title, "quick": quick, "machine": machine.facts(),
                         "load at the start": machine.load(), "versions": {}, "settings": {}, "findings": [], "plots": [],
                         "samples": {}}

    # --- what experiments call --------------------------------------------------------------------

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

    def table(self, caption, columns, rows):
        """A table; cells are strings or numbers, None where there is nothing. It is printed at once."""
        caption = self._section + caption
        self._results["findings"].append({"caption": caption, "columns": columns, "rows": rows})
        print("\n%s\n\n%s" % (caption, _markdown(columns, rows)), flush=True)

    def remark(self, text):
        """Adds a sentence at this place among the tables."""
        self._results["findings"].append({"remark": text})
        print("\n" + text, flush=True)

    def plot(self, kind, title, series, **options):
        """A plot, drawn afterwards by ../plot.py, which says what each kind wants: bars, lines, cdf."""
        self._results["plots"].append(dict(options, kind=kind, title=self._section + title, series=series))

    @staticmethod
    def progress(text):
        """Prints on the terminal what is being done."""
        print("  " + text, file=sys.stderr, flush=True)

    # --- what run calls ---------------------------------------------------------------------------

    def _heading(self):
        results = self._results
        where = results["machine"]
        lines = ["# %s" % results["title"], "",
                 "Measured by `bench/run %s%s` on %s: %s, %d cores, %s%s, Linux %s, %s, %s, congestion control %s; load average "
                 "%.1f at the start, %.1f at the end." % (
                     results["experiment"], " --quick" if results["quick"] else "", where["date"], where["processor"],
                     where["cores"], where["memory"], " (virtual machine)" if where["virtual"] else "", where["kernel"],
                     where["system"], where["libc"], where["congestion control"], results["load at the start"],
                     results["load at the end"])]
        for title, key in (("Versions", "versions"), ("Settings", "settings")):
            if results[key]:
                lines += ["", "%s: %s." % (title, ", ".join("%s %s" % pair for pair in results[key].items()))]
        return lines

    def write(self, directory):
        """Writes results.json and table.md."""
        results = self._results
        results["load at the end"] = machine.load()
        os.makedirs(directory, exist_ok=True)
        with open(os.path.join(directory, "results.json"), "w", encoding="utf-8") as file:
            file.write(_json(results) + "\n")
        lines = self._heading()
        for found in results["findings"]:
            lines += ["", found["remark"]] if "remark" in found else [
                "", "**%s**" % found["caption"], "", _markdown(found["columns"], found["rows"])]
        with open(os.path.join(directory, "table.md"), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
