#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_rfc8803.py - does doc/rfc8803.md name what exists, and leave nothing out?

Each `file: name` in it must be a function or a test that exists. Each section must have as many key words as the RFC's (KEY_WORDS,
counted in its text), and each row must say where the requirement is met and which test proves it (but WITHOUT_PROOF).
"""
import collections
import os
import re
import sys

SOURCE = os.environ.get("CONVERT_SRCDIR") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")

KEY_WORDS = {
    "1.3": {"MUST": 2}, "4.3": {"MUST": 2}, "6": {"MUST": 2, "SHOULD": 1}, "6.1": {"MUST": 3, "MUST NOT": 1}, "6.2.1": {"MUST": 4},
    "6.2.2": {"MUST": 3, "MUST NOT": 1}, "6.2.4": {"MUST": 1, "MUST NOT": 1, "SHOULD": 1},
    "6.2.5": {"MUST": 8, "MUST NOT": 2, "SHOULD": 1}, "6.2.6": {"MUST": 2}, "6.2.7": {"MUST": 4, "MAY": 1},
    "6.2.8": {"MUST": 16, "SHOULD": 3}, "7.1": {"MUST": 1, "MUST NOT": 1}, "7.2": {"MUST": 1, "MUST NOT": 1, "SHOULD": 1, "MAY": 1},
    "7.3": {"MUST": 1, "MUST NOT": 1, "MAY": 2}, "7.4": {"MAY": 2}, "7.5": {"MUST": 1}, "7.6": {"MUST": 2, "MAY": 1},
    "7.7": {"MUST": 1, "MUST NOT": 1}, "8": {"MUST": 1}, "9": {"MUST": 1}, "9.1": {"MUST": 2},
    "9.2": {"MUST": 1, "RECOMMENDED": 1}, "9.3": {"SHOULD": 3},
}
# no code meets these: the cell says whose task it is, or what we do instead
WITHOUT_PROOF = ("*operator*", "*kernel*", "none is", "not done")
DEFINITIONS = {
    ".c": r"^(?!\s)(?!#)[^;=\n]*\b%s\(|START_TEST\(%s\)",
    ".py": r"^def %s\(",
}


def rows(text):
    """(line, [section, requirement, where, proof]) of each row of the tables."""
    for number, line in enumerate(text.splitlines(), 1):
        cells = [cell.strip() for cell in line.strip("|").split(" | ")] if line.startswith("|") else []
        if cells and cells[0][:1].isdigit():
            cells += [""] * (4 - len(cells))
            yield number, [cell.strip("| ") for cell in cells]


def find(path):
    """The text of a file that the table names, None if it isn't there."""
    for directory in ("", "src", "tests"):
        full = os.path.join(SOURCE, directory, path)
        if os.path.exists(full):
            with open(full, encoding="utf-8") as file:
                return file.read()
    return None


def check_reference(path, name):
    """What is wrong with `path: name`, or None."""
    text = find(path)
    if text is None:
        return "there is no %s" % path
    pattern = DEFINITIONS[os.path.splitext(path)[1]]
    if not re.search(pattern.replace("%s", re.escape(name)), text, re.MULTILINE):
        return "%s has no %s" % (path, name)
    return None


def check_row(cells):
    """What is wrong with a row."""
    section, requirement, where, proof = cells
    wrong = [problem for path, name in re.findall(r"`([\w/.]+\.(?:c|py)): (\w+)`", where + proof)
             if (problem := check_reference(path, name))]
    if not where:
        wrong.append("it doesn't say where")
    if "/test_" not in proof and not where.startswith(WITHOUT_PROOF):
        wrong.append("no test proves it")
    return ["%s \"%s\": %s" % (section, requirement, problem) for problem in wrong]


def main():
    """Prints what is wrong; returns the status."""
    with open(os.path.join(SOURCE, "doc", "rfc8803.md"), encoding="utf-8") as file:
        table = list(rows(file.read()))
    wrong, counted = [], collections.defaultdict(collections.Counter)
    for number, cells in table:
        wrong += ["doc/rfc8803.md:%d: %s" % (number, problem) for problem in check_row(cells)]
        counted[cells[0]].update(re.findall(r"\*\*([A-Z ]+)\*\*", cells[1]))
    for section in sorted(set(KEY_WORDS) | set(counted)):
        here, there = dict(counted.get(section, {})), KEY_WORDS.get(section, {})
        if here != there:
            wrong.append("doc/rfc8803.md: Section %s has the key words %s, the RFC has %s" % (section, here, there))
    if len(table) < 80:
        wrong.append("doc/rfc8803.md: only %d requirements were found: the check doesn't look where they are" % len(table))
    print("\n".join(wrong) or "%d requirements, each with its place and its proof" % len(table))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
