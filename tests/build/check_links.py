#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_links.py - do the Markdown pages name what exists?

The check fails where a link or an image of a page leads to no file, or an anchor to no heading; where a page names a source file
between backquotes that isn't in the tree, or a function that no source knows; where a comment of the sources names a page of doc/ that
isn't there; and where no page leads to a page of doc/.
"""
import glob
import os
import re
import sys

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
# where a name between backquotes may begin, besides the page's own folder
PLACES = ("", "src", "tests", "src/convertd", "src/shim")
CODE = (".c", ".h", ".py", ".sym", ".ac", ".S")
# their functions are Linux's
KERNEL_PAGES = ("doc/kernel-mptcp-fallback-overlap.md",)
FUNCTION = re.compile(r"(\w+)\(\)$")
SOURCE = re.compile(r"(?:[\w.*-]+/)*[\w.*-]+\.(?:c|h|py|md|mk|sym|dot|svg)$")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+(?:\([^()]*\))?)\)")
REFERENCE = re.compile(r"^\[[^\]]+\]:\s*(\S+)", re.MULTILINE)
IMAGE = re.compile(r'<(?:img|source)[^>]*\bsrc(?:set)?="([^"]+)"')


def is_foreign(directory):
    """Is this a build directory, or one that belongs to a tool?"""
    name = os.path.basename(directory)
    return name.startswith((".", "_")) or name in ("autom4te.cache", "bench-results", "__pycache__") or \
        (directory != TOP and os.path.exists(os.path.join(directory, "config.status"))) or re.fullmatch(r"libconvert-[\d.]+.*", name)


def tree():
    """All files of the tree, as paths below TOP."""
    for directory, folders, names in os.walk(TOP):
        folders[:] = [name for name in folders if not is_foreign(os.path.join(directory, name))]
        for name in names:
            yield os.path.relpath(os.path.join(directory, name), TOP)


def read(path):
    """The text of a file below TOP."""
    with open(os.path.join(TOP, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def anchors(text):
    """The anchors that forges make of a page's headings."""
    found = {}
    for line in FENCE.sub("", text).splitlines():
        heading = re.match(r"#{1,6}\s+(.*?)\s*#*$", line)
        if heading is None:
            continue
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.group(1)).lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        found[name] = found.get(name, -1) + 1
        if found[name]:
            found["%s-%d" % (name, found[name])] = 0
    return set(found) | set(re.findall(r'<a (?:id|name)="([^"]+)"', text))


def check_link(page, target, texts, wrong):
    """One link of a page. Returns the file that it leads to, None for one that leads out of the tree."""
    if re.match(r"[a-z][a-z0-9+.-]*:", target):
        return None
    path, _, anchor = target.partition("#")
    there = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
    if not os.path.exists(os.path.join(TOP, there)):
        wrong.append("%s: a link leads to %s, which isn't there" % (page, target))
    elif anchor and there in texts and anchor not in anchors(texts[there]):
        wrong.append("%s: a link leads to %s, and that page has no such heading" % (page, target))
    return there


def is_there(page, name, names):
    """Does the file exist, below the page's folder or one of PLACES, or anywhere if its name has no folder?"""
    if "/" not in name and "*" not in name and name in names:
        return True
    starts = [os.path.dirname(page)] + list(PLACES)
    return any(glob.glob(os.path.join(TOP, start, name)) for start in starts)


def main():
    """Returns 0 if everything that is named exists."""
    files = sorted(tree())
    names = {os.path.basename(path) for path in files}
    texts = {path: read(path) for path in files if path.endswith(".md")}
    wrong, reached, links, named = [], set(), 0, 0
    words = set(re.findall(r"\w+", "\n".join(read(path) for path in files if path.endswith(CODE))))
    # a release leaves out what only a clone needs
    is_clone = os.path.exists(os.path.join(TOP, ".git"))
    for page, text in texts.items():
        prose = FENCE.sub("", text)
        targets = LINK.findall(re.sub(r"`[^`\n]*`", "", prose)) + REFERENCE.findall(prose) + IMAGE.findall(prose)
        # a link's text may be between backquotes
        targets += re.findall(r"\[`[^`]*`\]\(([^()\s]+)\)", prose)
        for target in targets:
            links += 1
            there = check_link(page, target, texts, wrong)
            if there != page:
                reached.add(there)
        for quoted in re.findall(r"`([^`\n]+)`", prose) if is_clone else ():
            name = quoted.partition(":")[0]
            function = FUNCTION.match(quoted)
            if function and function[1] not in words and page not in KERNEL_PAGES:
                wrong.append("%s: names `%s`, which no source has" % (page, quoted))
            if SOURCE.match(name):
                named += 1
                if not is_there(page, name, names):
                    wrong.append("%s: names `%s`, which isn't there" % (page, name))
    for path in files:
        if path.endswith((".c", ".h", ".py", ".mk", ".ac", ".m4", ".conf", ".yaml", ".1", ".3", ".7", ".8")):
            for name in set(re.findall(r"(?<![\w/])doc/[\w-]+\.md", read(path))):
                if name not in texts:
                    wrong.append("%s: names %s, which isn't there" % (path, name))
    wrong += ["%s: no other page leads here" % page for page in texts if page.startswith("doc/") and page not in reached]
    for line in sorted(set(wrong)):
        print(line)
    print("%d pages, %d links, %d files between backquotes: %s" % (
        len(texts), links, named, "%d things are wrong" % len(set(wrong)) if wrong else "all of it is there"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
