#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_release.py - has the tree one version, and does the release's checklist see what is wrong?

The first check is about this tree. The others are about build-tools/release and check_abi.py: each breaks one thing of a small tree
that is ready for its release, and the checklist must report exactly that.
"""
import glob
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import tempfile

import check_abi

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
# A tree in which all is right.
READY = {
    "configure.ac": "AC_INIT([libconvert], [1.2.3], [], [libconvert])\nAC_SUBST([CONVERTPROTO_VERSION_INFO], [4:0:1])\n",
    "lib/convert/convert.h": "".join("#define CONVERT_LIBRARY_VERSION_%s %d\n" % pair
                                     for pair in (("MAJOR", 1), ("MINOR", 2), ("PATCH", 3))),
    "lib/convertproto.abi": "# release: 1.2.3\n# version-info: 4:0:1\n",
    "NEWS": "libconvert NEWS\n\n1.2.3 (2026-01-31)\n\n* Text.\n\n1.2.2 (2025-12-31)\n",
    "README.md": "The version is 1.2.3.\n", "SECURITY.md": "Text.\n",
    "man/page.1": ".Dd January 31, 2026\n.Dt PAGE 1\n", "debian/changelog": "libconvert (1.2.3-1) unstable; urgency=medium\n",
    "contrib/arch/PKGBUILD": "pkgname=libconvert\npkgver=1.2.3\n",
}
# (the file that is broken, what stands there, what is put in its place, what the checklist says)
BROKEN = (
    ("lib/convert/convert.h", "PATCH 3", "PATCH 4", "lib/convert/convert.h: CONVERT_LIBRARY_VERSION_… is 1.2.4"),
    ("README.md", "1.2.3", "1.2.2", "README.md:1: 1.2.2, and configure.ac has 1.2.3"),
    ("NEWS", "1.2.3 (", "1.2.4 (", "NEWS:3: 1.2.4, and configure.ac has 1.2.3"),
    ("NEWS", "2026-01-31", "unreleased", "NEWS: the section of 1.2.3 has \"unreleased\""),
    ("debian/changelog", "1.2.3", "1.2.2", "debian/changelog:1: 1.2.2"),
    ("contrib/arch/PKGBUILD", "pkgver=1.2.3", "pkgver=x", "contrib/arch/PKGBUILD: no version"),
    ("README.md", "The version", "This is unreleased. The version", "README.md:1: says \"is unreleased\""),
    ("SECURITY.md", "Text", "There has been no release yet", "SECURITY.md:1: says \"no release yet\""),
    ("man/page.1", "January 31", "January 30", "man/page.1: .Dd is 2026-01-30, and it was changed on 2026-01-31"),
    ("man/page.1", ".Dd January", ".Dd Januar", "man/page.1: no date"),
    ("lib/convertproto.abi", "release: 1.2.3", "release: 1.2.2", "lib/convertproto.abi: it is that of release 1.2.2"),
    ("lib/convertproto.abi", "4:0:1", "3:0:0", "lib/convertproto.abi: version-info is 3:0:0, and configure.ac has 4:0:1"),
)
BEFORE = ["function f", "constant X 1", "struct s size 8 align 8", "member s.a int offset 0 size 4"]
# (the interface now, version-infos that are right for it, after a release with 4:2:1)
INTERFACES = (
    (BEFORE, ((4, 2, 1), (4, 3, 1))),
    (BEFORE + ["function g"], ((5, 0, 2),)),
    (BEFORE + ["struct t size 1 align 1", "member t.x bool offset 0 size 1"], ((5, 0, 2),)),
    (BEFORE + ["member s.b int offset 4 size 4"], ((5, 0, 0),)),
    (BEFORE[1:], ((5, 0, 0),)),
    (BEFORE[:3] + ["member s.a long offset 0 size 8"], ((5, 0, 0),)),
)


def checklist():
    """build-tools/release as a module."""
    path = os.path.join(TOP, "build-tools", "release")
    loader = importlib.machinery.SourceFileLoader("release", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("release", loader))
    loader.exec_module(module)
    return module


def write(top, path, text):
    """Makes a file of the small tree."""
    os.makedirs(os.path.dirname(os.path.join(top, path)), exist_ok=True)
    with open(os.path.join(top, path), "w", encoding="utf-8") as file:
        file.write(text)


def commit(top):
    """Commits all of the small tree, on the day of its release."""
    environment = {**os.environ, "GIT_AUTHOR_DATE": "2026-01-31T12:00:00Z", "GIT_COMMITTER_DATE": "2026-01-31T12:00:00Z",
                   "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    for words in (["add", "-A"], ["-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run(["git", "-C", top, *words], check=True, env=environment)


def said(release, top):
    """What the checklist has to say, in one list."""
    return [line for _, check in release.CHECKS for line in check(top)]


def check_small_tree(release):
    """Breaks one thing after the other. Yields each mistake that the checklist doesn't report, or not alone."""
    with tempfile.TemporaryDirectory() as top:
        subprocess.run(["git", "init", "-q", top], check=True)
        for path, text in READY.items():
            write(top, path, text)
        commit(top)
        if said(release, top):
            yield "a tree that is ready for its release: %s" % said(release, top)
        for path, old, new, words in BROKEN:
            write(top, path, READY[path].replace(old, new, 1))
            commit(top)
            found = said(release, top)
            if len(found) != 1 or not found[0].startswith(words):
                yield "%s with \"%s\": %s, where \"%s\" was to be said" % (path, new, found, words)
            write(top, path, READY[path])
        commit(top)
        write(top, "left-over", "")
        if len(said(release, top)) != 1:
            yield "a file that isn't committed: %s" % said(release, top)
        commit(top)
        subprocess.run(["git", "-C", top, "-c", "user.name=x", "-c", "user.email=x@example.org", "tag", "v1.2.3"], check=True)
        if len(said(release, top)) != 1:
            yield "a tag that is there: %s" % said(release, top)


def unmatched_patterns(release):
    """Patterns of the checklist that match no file, as after a move: it checks nothing there. A tarball lacks debian/."""
    for pattern, _, _ in release.PLACES:
        is_here = not pattern.startswith("debian/") or os.path.isdir(os.path.join(TOP, "debian"))
        if is_here and not glob.glob(os.path.join(TOP, pattern)):
            yield "build-tools/release: PLACES names %s, which isn't there" % pattern


def check_rules():
    """libtool's rules, as check_abi.py has them."""
    head = {"release": "1.2.3", "version-info": "4:2:1"}
    for now, right in INTERFACES:
        for current in ((4, 2, 1), (4, 3, 1), (5, 0, 2), (5, 0, 0), (4, 2, 0)):
            wrong = check_abi.verdict(head, current, *check_abi.compare(BEFORE, now))
            if bool(wrong) == (current in right):
                yield "%s with version-info %s: \"%s\"" % (now, current, wrong)
    if not check_abi.verdict({"release": "none", "version-info": "0:0:0"}, (0, 0, 0), *check_abi.compare(BEFORE, BEFORE + ["function g"])):
        yield "before the first release a difference has to be said"


def main():
    """Returns the status."""
    release = checklist()
    wrong = list(unmatched_patterns(release)) + list(release.check_versions(TOP)) + list(check_rules())
    try:
        subprocess.run(["git", "--version"], check=True, stdout=subprocess.DEVNULL)
        wrong += check_small_tree(release)
    except FileNotFoundError:
        print("SKIP: git is missing, without which only a part is checked; on Debian: apt-get install git")
        return 1 if wrong or os.environ.get("CONVERT_NO_SKIP") else 77
    print("\n".join(wrong) or "one version, %s; %d mistakes are seen" % (release.version(TOP), len(BROKEN) + 2))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
