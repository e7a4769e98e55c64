#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_scripts.py - have the linters of shell and of Lua nothing to say of the tree's scripts?

shellcheck reads each file that names a shell, in its first line or, if another program reads it, in a comment of shellcheck's. Such a
comment also excuses what a file does on purpose. luacheck reads the dissector where it is installed; not all distributions have it.

Nor may a Python file of tests/lab have two functions of the same name: the second one hides the first, a test that never runs then.
"""
import collections
import os
import re
import shutil
import subprocess
import sys

from check_links import TOP, tree

# Scripts of zsh and fish are read by their own shells, in tests/lab/test_completions.py.
SHELL = re.compile(rb"\A#! ?(?:/usr)?/bin/(?:env )?(?:ba|da|a)?sh\b|^# shellcheck shell=", re.MULTILINE)
HEAD_BYTES = 1500  # the comment stands below the file's header
# inputs of a fuzzer; files of autotools, or made by configure
NOT_OURS = re.compile(r"tests/fuzz/corpus/|(?:build-aux|m4)/|"
                      r"(?:configure~?|config\.\w+|libtool|install-sh|missing|depcomp|compile|ltmain\.sh|test-driver|ar-lib)$")
# Configure makes NAME of NAME.in: shellcheck reads the latter alone.
TEMPLATE = ".in"
CI = ".ci/run"  # in a folder that isn't looked into, and not in tarballs


def scripts(paths):
    """Those of the files that are shell scripts."""
    paths = {*paths, *([CI] if os.path.exists(os.path.join(TOP, CI)) else [])}
    for path in sorted(paths):
        if NOT_OURS.search(path) or path + TEMPLATE in paths or os.path.islink(os.path.join(TOP, path)):
            continue
        with open(os.path.join(TOP, path), "rb") as file:
            if path != os.path.relpath(os.path.abspath(__file__), TOP) and SHELL.search(file.read(HEAD_BYTES)):
                yield path


def complaints(command):
    """The output of a program that fails, else ""."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, cwd=TOP)
    return done.stdout + "%s: status %d\n" % (command[0], done.returncode) if done.returncode else ""


def hidden_functions(paths):
    """A line for each name that two functions of a file of tests/lab have."""
    for path in sorted(paths):
        if path.startswith("tests/lab/") and path.endswith(".py"):
            with open(os.path.join(TOP, path), encoding="utf-8") as file:
                names = collections.Counter(re.findall(r"^def (\w+)\(", file.read(), re.MULTILINE))
            yield from ("%s: has two functions %s()\n" % (path, name) for name, count in names.items() if count > 1)


def main():
    """Returns the status."""
    paths = list(tree())
    wrong = "".join(hidden_functions(paths))
    if not shutil.which("shellcheck"):
        print(wrong + "SKIP: there is no shellcheck; on Debian: apt-get install shellcheck")
        return 1 if wrong or os.environ.get("CONVERT_NO_SKIP") else 77
    found = list(scripts(paths))
    wrong += complaints(["shellcheck", "--format=gcc", *found])
    readers = "shellcheck"
    if shutil.which("luacheck"):
        wrong += complaints(["luacheck", "--no-color", "--codes", "contrib/wireshark/convert.lua"])
        readers += " and luacheck"
    if len(found) < 10:
        wrong += "only %s were found: the check doesn't look where scripts are\n" % found
    print(wrong or "%d scripts, %s: nothing to say" % (len(found), readers))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
