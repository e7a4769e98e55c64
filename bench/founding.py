#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""founding.py - makes FOUNDING.md, the page on the experiments that libconvert was founded on, from stored results

    founding.py                         makes the page
    founding.py --check                 says whether the page is what would be made, and changes nothing
    founding.py --store DIR             first copies the results of a run (bench/run --output DIR) into results/
    founding.py --results DIR --output FILE   makes the page of the results of a run, to look at it

The page consists of founding/head.md and, for each experiment, founding/NAME.md. In the head ${NAME:KEY} stands for a figure of
results/NAME. In the others ${table:KEY}, ${plot:KEY} and ${value:KEY} stand for a table, a plot and a figure of results/NAME, and
${provenance} for the command, the machine and its noise. A "?" behind a KEY permits older results that lack it. Links are relative to
founding/.
"""
import argparse
import json
import os
import re
import shutil
import sys

from benchlib import plots
from benchlib.report import as_json, provenance, table_text

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "FOUNDING.md")
RESULTS = os.path.join(HERE, "results")
TEMPLATES = os.path.join(HERE, "founding")
# in the order of the page: those after a document, then what none has
NAMES = (
    "ttfb",
    "poc5g",
    "blocks",
    "benefit",
    "exam",
    "crowd",
    "operator",
)
SAMPLES_MAX = 5000  # of a list that is stored: a run's own directory has all
ABSENT = "*not in the stored run*"
PLACE = re.compile(r"\$\{(?:(table|plot|value):([\w.-]+)(\??)|(provenance))\}")
HEAD_PLACE = re.compile(r"\$\{([\w]+):([\w.-]+\??)\}")
LINK = re.compile(r"(\]\()([^)#:\s]+)([)#])")


class Wrong(Exception):
    """A template asks for what the results don't have, or results can't be stored."""


def _read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def load(directory, name):
    """The results of an experiment; None where there are none."""
    path = os.path.join(directory, name, "results.json")
    return json.loads(_read(path)) if os.path.exists(path) else None


def relinked(text, where, there):
    """The text of a page in the directory `where` with its links changed so that they lead to the same from the directory `there`."""
    return LINK.sub(lambda found: found.group(1) + os.path.relpath(os.path.join(where, found.group(2)), there) + found.group(3), text)


def _by_key(parts, key, name, kind):
    found = [part for part in parts if part.get("key") == key]
    if not found:
        raise Wrong("founding/%s.md: the results have no %s \"%s\", only %s" % (
            name, kind, key, ", ".join(sorted(part["key"] for part in parts if part.get("key"))) or "none at all"))
    return found[0]


def fill(template, results, name, plot_link):
    """The section of one experiment: its template with the places filled from its results. plot_link: from a key to the link to its file."""
    parts = {"value": results["values"], "table": results["findings"], "plot": results["plots"]}

    def is_there(kind, key):
        return key in (parts[kind] if kind == "value" else [part.get("key") for part in parts[kind]])

    def replace(place):
        kind, key, optional, is_provenance = place.groups()
        if is_provenance:
            return provenance(results)
        if optional and not is_there(kind, key):
            return ABSENT
        if kind == "value":
            if key not in results["values"]:
                raise Wrong("founding/%s.md: the results have no value \"%s\", only %s" % (
                    name, key, ", ".join(sorted(results["values"])) or "none at all"))
            value = results["values"][key]
            return value if isinstance(value, str) else "%g" % value
        if kind == "table":
            return table_text(_by_key(results["findings"], key, name, kind))
        return "![%s](%s)" % (_by_key(results["plots"], key, name, kind)["title"], plot_link(key))

    text = PLACE.sub(replace, template)
    if "${" in text:
        raise Wrong("founding/%s.md: this stands for nothing: %s" % (name, text[text.index("${"):].split("\n", 1)[0]))
    return text


def fill_head(template, find):
    """The head with its places filled. find: from an experiment's name to its results, or None, whose figures are "not measured"."""
    def replace(place):
        name, key = place.groups()
        results = find(name)
        return fill("${value:%s}" % key, results, name, None) if results else "not measured"

    return HEAD_PLACE.sub(replace, template)


def unmeasured(template, name):
    """The section of an experiment whose results aren't stored: its heading, and a sentence that says so."""
    return "%s\n\nNot measured yet: results of a full run of `make bench-%s` have not been stored.\n" % (template.split("\n", 1)[0], name)


def make_page(results_directory, page_directory):
    """The text of the page."""
    head = relinked(_read(os.path.join(TEMPLATES, "head.md")), TEMPLATES, page_directory)
    parts = [fill_head(head, lambda name: load(results_directory, name))]
    for name in NAMES:
        path = os.path.join(TEMPLATES, name + ".md")
        if not os.path.exists(path):
            continue
        template, results = relinked(_read(path), TEMPLATES, page_directory), load(results_directory, name)
        parts.append(fill(template, results, name, lambda key, name=name: os.path.relpath(
            os.path.join(results_directory, name, key + ".svg"), page_directory)) if results else unmeasured(template, name))
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def check():
    """What is wrong with the page and the plots that it shows: sentences."""
    wrong = []
    if not os.path.exists(PAGE) or _read(PAGE) != make_page(RESULTS, os.path.dirname(PAGE)):
        wrong.append("bench/FOUNDING.md isn't what its templates and results/ give; make bench-page makes it")
    for name in NAMES:
        results = load(RESULTS, name) or {"plots": []}
        for plot in results["plots"]:
            path = os.path.join(RESULTS, name, plot.get("key", "plot") + ".svg")
            if not os.path.exists(path):
                wrong.append("%s is missing; bench/plot.py draws it" % os.path.relpath(path, HERE))
            elif plot.get("key") and plots.digest(plot) not in _read(path):
                wrong.append("%s was drawn from other results; bench/plot.py %s draws it again" % (
                    os.path.relpath(path, HERE), os.path.relpath(os.path.dirname(path), HERE)))
    return wrong


def store(directory, too_quick=False):
    """Copies the results of these experiments from a run's directory into results/. Those of quick runs show nothing and aren't stored."""
    stored = []
    for name in NAMES:
        results = load(directory, name)
        if results is None:
            continue
        if results["quick"] and not too_quick:
            raise Wrong("%s/%s is of a quick run, which is none to be stored" % (directory, name))
        there = os.path.join(RESULTS, name)
        shutil.rmtree(there, ignore_errors=True)
        os.makedirs(there)
        for file in sorted(os.listdir(os.path.join(directory, name))):
            if file == "table.md" or file.endswith(".svg"):
                shutil.copy(os.path.join(directory, name, file), there)
        results["samples"] = {key: values[:SAMPLES_MAX] for key, values in results["samples"].items()}
        with open(os.path.join(there, "results.json"), "w", encoding="utf-8") as file:
            file.write(as_json(results))
        stored.append(name)
        if results["noise"].get("verdict") != "quiet":
            print("founding.py: %s: %s" % (name, results["noise"].get("text", "it isn't known how quiet the machine was")), file=sys.stderr)
    if not stored:
        raise Wrong("%s has results of none of %s" % (directory, ", ".join(NAMES)))
    print("stored: " + ", ".join(stored))


def _arguments():
    parser = argparse.ArgumentParser(prog="bench/founding.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only say whether the page is current")
    parser.add_argument("--store", metavar="DIR", help="copy the results of a run first")
    parser.add_argument("--results", metavar="DIR", default=RESULTS, help="where results are (default: bench/results)")
    parser.add_argument("--output", metavar="FILE", default=PAGE, help="the page (default: bench/FOUNDING.md)")
    return parser.parse_args()


def main():
    """The program; its status is 1 if the page can't be made or isn't current."""
    arguments = _arguments()
    try:
        if arguments.check:
            wrong = check()
            print("\n".join(wrong) or "bench/FOUNDING.md is current")
            return 1 if wrong else 0
        if arguments.store:
            store(arguments.store)
        text = make_page(os.path.abspath(arguments.results), os.path.dirname(os.path.abspath(arguments.output)))
        with open(arguments.output, "w", encoding="utf-8") as file:
            file.write(text)
        print(arguments.output)
    except Wrong as problem:
        print("founding.py: %s" % problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
