#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_manual.py - are the manual's pages without faults, and is there one for everything that is installed?

man-db (man --warnings, as in Debian's lintian) and mandoc, or groff in place of either, read each page of man/, and none may complain.
Of mandoc's messages about style only those about other pages, which this machine lacks, are ignored.

Each program, each library, each file of configuration and each unit that "make install" puts somewhere has a page, which the Makefile
installs: by its name, or the page that PAGES names for it, where that has the file's name in its text.
"""
import fnmatch
import glob
import os
import re
import shutil
import subprocess
import sys

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BUILD = os.environ.get("CONVERT_BUILDDIR") or TOP
# messages about other pages than the one that is read
ELSEWHERE = re.compile(r"referenced manual not found|outdated mandoc\.db|mandoc\.db")
# (what is installed, the page that describes it); the first that fits counts. An empty page: it describes itself.
PAGES = (
    ("*/user-environment-generators/60-convertize", "convertize.1"),
    ("*/convertize-paths.service", "convertize.1"), ("*/convertd.service", "convertd.8"), ("*/convertd.socket", "convertd.8"),
    ("*/convertgw.service", "convertgw.8"), ("*/sysusers.d/convertgw.conf", "convertgw.8"), ("*/etc/convertgw/convertgw.conf", "convertgw.8"),
    ("*/sysctl.d/*convertd.conf", "convertd.8"), ("*/sysusers.d/convertd.conf", "convertd.8"),
    ("*/sysusers.d/convertize.conf", "convertize.1"),
    ("*/lib*/libconvertproto.*", "convertproto.3"), ("*/pkgconfig/convertproto.pc", "convertproto.3"),
    ("*/convert/convert.h", "convertproto.3"),
    ("*/libconvert.so", "libconvert.so.7"), ("*/libconvert.la", ""), ("*/libconvert.a", ""), ("*/share/doc/*", ""), ("*/share/man/*", ""),
    ("*/completions/*", ""), ("*/site-functions/*", ""), ("*/vendor_completions.d/*", ""), ("*/profile.d/*", ""), ("*/wireshark/*", ""),
)


def pages():
    """The pages of the tree, without those that only name another."""
    for path in sorted(glob.glob(os.path.join(TOP, "man", "*.[1-9]"))):
        with open(path, encoding="utf-8") as file:
            if not file.read(4) == ".so ":
                yield path


def complaints(command, **variables):
    """What a program prints, without the messages about other pages."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={**os.environ, **variables}, check=False)
    found = [line for line in done.stdout.splitlines() if line and not ELSEWHERE.search(line)]
    if done.returncode and not found and "mandoc" not in command[0]:
        found.append("%s ends with %d" % (" ".join(command), done.returncode))
    return found


def lint(tools):
    """The programs' complaints about each page."""
    for path in pages():
        if "mandoc" in tools:
            yield from complaints(["mandoc", "-T", "lint", "-W", "style", path])
        if "groff" in tools:
            yield from complaints(["groff", "-mandoc", "-T", "utf8", "-ww", "-z", "-I", TOP, path])
        if "man" in tools:
            # without -l man would look for an installed page; only its complaints matter, not the page that it prints
            shown = ["sh", "-c", 'exec man --warnings -E UTF-8 -l -Tutf8 -Z "$1" 2>&1 >/dev/null', "sh", path]
            said = complaints(shown, LC_ALL="C.UTF-8", MANROFFSEQ="", MANWIDTH="80")
            yield from ("man --warnings %s: %s" % (os.path.relpath(path, TOP), line) for line in said)


def page_of(path):
    """The name of the page that has to describe an installed file; "" if it needs none."""
    folder, name = os.path.split("/" + path)
    if folder.endswith(("/bin", "/sbin")):
        return name + (".8" if folder.endswith("/sbin") else ".1")
    for pattern, page in PAGES:
        if fnmatch.fnmatch("/" + path, pattern):
            return page
    return name + ".5" if "/etc/" in folder + "/" else "some page, see PAGES in tests/build/check_manual.py"


def undescribed(files, root):
    """Says which of the files that are installed below root has no page there, or one that doesn't name it."""
    manual = {os.path.basename(path): os.path.join(root, path) for path in files if "/man/man" in path}
    for path in files:
        page, name = page_of(path), os.path.basename(path)
        if not page:
            continue
        if page not in manual:
            yield "%s is installed, and %s isn't" % (path, page)
            continue
        with open(manual[page], encoding="utf-8") as file:
            text = file.read().replace("\\-", "-")
        # a page has the library's name without the endings of its versions
        if re.sub(r"^lib(\w+)\.(?:so|la|a)[\d.]*$|\.pc$", r"\1", name) not in text:
            yield "%s is installed, and %s doesn't name it" % (path, page)


def main():
    """Returns the status."""
    tools = [name for name in ("mandoc", "man") if shutil.which(name)]
    if "man" in tools and "--warnings" not in subprocess.run(["man", "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                                             check=False).stdout:
        tools.remove("man")  # another one than man-db's
    if len(tools) < 2 and shutil.which("groff"):
        tools.append("groff")
    if not tools:
        print("SKIP: neither mandoc nor man-db nor groff is there; on Debian: apt-get install mandoc man-db")
        return 1 if os.environ.get("CONVERT_NO_SKIP") else 77
    wrong = list(lint(tools))
    print("\n".join(wrong) or "%d pages: %s have nothing to say" % (len(list(pages())), " and ".join(tools)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
