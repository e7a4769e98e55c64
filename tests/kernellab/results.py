# SPDX-License-Identifier: BSD-3-Clause
"""results.py - what the files of tests have said, and tables of it

A file's log is what harness.py prints: a line for each test, behind it what explains a failure. Nothing here does any I/O.
"""
import collections
import re

LINE = re.compile(r"(ok|skip|n/a|FAIL|FAULT|left out) (test_\w+)(?: \(([\d.]+)s[^)]*\))?(?:: (.*))?$")
STATUS = re.compile(r"status (.+) after (\d+) s$")
# The words of the tables, in the order in which they are counted.
WORDS = {"ok": "passed", "FAIL": "failed", "n/a": "n/a", "skip": "skipped", "left out": "left out"}

Result = collections.namedtuple("Result", ["result", "reason"])


def parse_log(text):
    """(status, {test: Result}) of a file's log; the status is "0", "1", "77", "99", or says why the file was ended."""
    found, status = {}, "none: it was cut off"
    for line in text.splitlines():
        match = LINE.match(line)
        if match:
            found[match.group(2)] = Result(match.group(1).replace("FAULT", "FAIL"), match.group(4) or "")
        match = STATUS.match(line)
        if match:
            status = match.group(1)
    return status, found


def parse_kernel_log(text):
    """The lines of dmesg(1) that say that the kernel itself is wrong."""
    return [line for line in text.splitlines() if re.search(r"\b(BUG|WARNING|Oops|general protection fault|kernel panic)\b", line, re.IGNORECASE)]


def is_fine(status, tests):
    """Tells whether a file has come to its end, and nothing in it has failed."""
    return status in ("0", "77") and all(result.result != "FAIL" for result in tests.values())


def counts(tests):
    """{"ok": 3, …} of {test: Result}, only what is there."""
    found = collections.Counter(result.result for result in tests.values())
    return {word: found[word] for word in WORDS if found[word]}


def cell(status, tests):
    """A file's cell: "14 passed, 2 failed". A file that was ended early says so."""
    text = ", ".join("%d %s" % (number, WORDS[word]) for word, number in counts(tests).items())
    if status.startswith("none"):
        text = ", ".join(filter(None, [text, "then " + status.partition(": ")[2]]))
    elif not tests and status == "77":
        text = "can't be run"
    elif not tests:
        text = "status " + status
    return text


def table(head, rows):
    """A table in Markdown."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(text.replace("|", "\\|") for text in row) + " |" for row in rows]) + "\n"


def file_table(columns, order):
    """A row for each file of tests, a column for each kernel.

    columns: {title: {file: (status, {test: Result})}}; order: all files, as the rows are to be; those that nobody has run are left out.
    """
    rows = []
    for name in order:
        if any(name in files for files in columns.values()):
            rows.append([name] + [cell(*files[name]) if name in files else "not run" for files in columns.values()])
    totals = []
    for files in columns.values():
        everything = {(name, test): result for name, (_, tests) in files.items() for test, result in tests.items()}
        totals.append(cell("0", everything) or "0")
    rows.append(["all"] + totals)
    return table(["file", *columns], rows)


def short(result):
    """A test's cell: its result, and the first line of why."""
    text = WORDS[result.result]
    return "%s: %s" % (text, result.reason) if result.reason and result.result != "ok" else text


def test_table(columns, order):
    """A row for each test that didn't pass on some kernel, and that isn't left out on all; "" if there is none."""
    rows = []
    for name in order:
        ran = {title: files[name][1] for title, files in columns.items() if name in files}
        tests = list(dict.fromkeys(test for found in ran.values() for test in found))
        for test in tests:
            results = [found[test] for found in ran.values() if test in found]
            if all(result.result in ("ok", "left out") for result in results):
                continue
            rows.append(["%s: %s" % (name, test)] + [short(ran[title][test]) if test in ran.get(title, {}) else "not run" for title in columns])
    return table(["test", *columns], rows) if rows else ""


def page(columns, order, troubles):
    """The whole page. troubles: {title: lines of the kernel's log}"""
    text = "# The lab's tests on Debian's kernels\n\nMade by `tests/kernels`; tests that measure times and rates are left out, since an emulated " \
        "machine has times of its own.\n\n" + file_table(columns, order)
    details = test_table(columns, order)
    if details:
        text += "\n## What didn't pass\n\n" + details
    for title, lines in troubles.items():
        if lines:
            text += "\n## What the kernel %s complains of\n\n```\n%s\n```\n" % (title, "\n".join(lines))
    return text
