#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_abi.py - is the binary interface of the libraries what it was?

lib/convertproto.abi has the interface of libconvertproto: its functions with their symbol versions and declarations, its constants,
and each structure with the offset and size of each member. src/shim/libconvert.abi has the names that libconvert.so takes over from
the C library. This script makes both, and compares them with the header and with the exports of the build.

libconvertproto.abi names its release. Until the first release every difference is an error, so that nobody makes one by
accident: --update writes the files anew. After a release a difference needs another CONVERTPROTO_VERSION_INFO in configure.ac, by
libtool's rules, and this script says which (--update then writes libconvert.abi alone):

    nothing differs                    current and age stay
    functions or constants were added  current + 1, revision 0, age + 1
    anything else                      current + 1, revision 0, age 0, and another number in lib/convertproto.map

build-tools/release writes the files of a release (--update --release VERSION). The offsets are those of 64-bit machines; elsewhere they
aren't compared. Nor is libconvert.so with another C library than glibc, or on 32-bit machines, which have more names. In a clone
debian/libconvertproto0.symbols has to name each function, too.
"""
import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BUILD = os.environ.get("CONVERT_BUILDDIR") or TOP
PROTO, SHIM = os.path.join(TOP, "lib", "convertproto.abi"), os.path.join(TOP, "src", "shim", "libconvert.abi")
SIZES = re.compile(r" (?:offset|size|align) \d+")
UNRELEASED = "none"


class Failure(Exception):
    """The check can't be made; the text says why."""


def without_comments(text):
    """The text of a C header without its comments."""
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)


def read(*path):
    """The text of a file of the source tree."""
    with open(os.path.join(TOP, *path), encoding="utf-8") as file:
        return file.read()


def exported(library):
    """{name: symbol version, "" for none} of what a library exports."""
    said = subprocess.run(["nm", "-D", "--defined-only", library], check=True, stdout=subprocess.PIPE, text=True).stdout
    symbols = (line.split()[-1].partition("@@") for line in said.splitlines() if " A " not in line)
    return {name: version for name, _, version in symbols}


def functions(header, symbols):
    """Lines about the functions of the header, which have to be those of the library."""
    found = []
    for said, name in re.findall(r"^CONVERT_API\s+([^;(]*?\b(\w+)\([^;]*\));", header, re.MULTILINE):
        declaration = re.sub(r"\s*([*(),])\s*", r"\1", " ".join(said.split()))
        found.append("function %s %s %s" % (name, symbols.get(name, "not-exported"), declaration))
    return sorted(found)


def constants(header):
    """The names of the header's macros with a value and of its enumerators; not its version, which changes anyway."""
    macros = re.findall(r"^#define (CONVERT_\w+) +\S", header, re.MULTILINE)
    macros = [name for name in macros if not name.startswith("CONVERT_LIBRARY_VERSION") and name != "CONVERT_API"]
    enumerators = [name for body in re.findall(r"^enum \w+ \{(.*?)^\}", header, re.MULTILINE | re.DOTALL)
                   for name in re.findall(r"^\s*(CONVERT_\w+)", body, re.MULTILINE)]
    # how many statuses there are may grow, as the header says
    return macros + [name for name in enumerators if name != "CONVERT_STATUS_COUNT"]


def structures(header):
    """[(structure, [(type, member), …]), …]"""
    return [(name, re.findall(r"^\s*([\w *]+?[ *])(\w+);", body, re.MULTILINE))
            for name, body in re.findall(r"^struct (\w+) \{(.*?)^\};", header, re.MULTILINE | re.DOTALL)]


def measured(header):
    """The lines about constants and structures, by a program that is compiled with the header."""
    lines = ["printf(\"constant %s %%lld\\n\", (long long)%s);" % (name, name) for name in constants(header)]
    for name, members in structures(header):
        lines.append("printf(\"struct %s size %%zu align %%zu\\n\", sizeof(struct %s), _Alignof(struct %s));" % (name, name, name))
        for kind, member in members:
            lines.append("printf(\"member %s.%s %s offset %%zu size %%zu\\n\", offsetof(struct %s, %s), sizeof(((struct %s *)0)->%s));"
                         % (name, member, kind.strip(), name, member, name, member))
    program = "#include <convert/convert.h>\n#include <stddef.h>\n#include <stdio.h>\n"
    program += "int main(void)\n{\n%s\nreturn 0;\n}\n" % "\n".join(lines)
    with open(os.path.join(BUILD, "Makefile"), encoding="utf-8") as file:
        compiler = re.search(r"^CC = (.*)$", file.read(), re.MULTILINE)[1]
    with tempfile.TemporaryDirectory() as directory:
        source, result = os.path.join(directory, "abi.c"), os.path.join(directory, "abi")
        with open(source, "w", encoding="utf-8") as file:
            file.write(program)
        done = subprocess.run([*shlex.split(compiler), "-std=gnu11", "-I" + os.path.join(TOP, "lib"), "-o", result, source],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            raise Failure("the header can't be compiled: %s" % done.stdout)
        return subprocess.run([result], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()


def interface():
    """The lines of libconvertproto's interface as it is now."""
    header = without_comments(read("lib", "convert", "convert.h"))
    return functions(header, exported(os.path.join(BUILD, ".libs", "libconvertproto.so"))) + measured(header)


def stored(path):
    """({name: value of its head}, [lines]) of a file that this script has written."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    head = dict(re.match(r"# ([\w-]+): (.*)", line).groups() for line in lines if re.match(r"# [\w-]+: ", line) and "SPDX" not in line)
    return head, [line for line in lines if line and not line.startswith("#")]


def version_info():
    """(current, revision, age) of configure.ac."""
    found = re.search(r"AC_SUBST\(\[CONVERTPROTO_VERSION_INFO\], \[(\d+):(\d+):(\d+)\]\)", read("configure.ac"))
    return tuple(int(number) for number in found.groups())


def compare(old, new, has_offsets=True):
    """(what was removed or changed, what was added), as lines."""
    if not has_offsets:
        old, new = [SIZES.sub("", line) for line in old], [SIZES.sub("", line) for line in new]
    gone, come = sorted(set(old) - set(new)), sorted(set(new) - set(old))
    # a member or a size is a part of what existed: only whole functions, constants and structures can be added without harm
    known = {line.split()[1] for line in old if line.startswith("struct ")}
    changed = gone + [line for line in come if line.startswith(("struct ", "member ")) and line.split()[1].split(".")[0] in known]
    return changed, [line for line in come if line not in changed]


def verdict(head, current, changed, added):
    """What is wrong, given the head of the stored interface, the version-info of configure.ac and the differences; "" for nothing."""
    differences = "".join("\n  %s %s" % (sign, line) for sign, lines in (("changed:", changed), ("added:", added)) for line in lines)
    if head["release"] == UNRELEASED:
        if changed or added:
            return "libconvertproto differs from lib/convertproto.abi; if that is meant: tests/build/check_abi.py --update%s" % differences
        return ""
    was = tuple(int(number) for number in head["version-info"].split(":"))
    if changed:
        right, why = [(was[0] + 1, 0, 0)], "since what release %s had was changed or removed" % head["release"]
    elif added:
        right, why = [(was[0] + 1, 0, was[2] + 1)], "since something was added to release %s" % head["release"]
    else:
        # the revision may have been raised for the release to come
        right, why = [was, (was[0], was[1] + 1, was[2])], "since the interface is that of release %s" % head["release"]
    if current in right:
        return ""
    return "configure.ac: CONVERTPROTO_VERSION_INFO is %d:%d:%d and has to be %s, %s%s" % (
        *current, " or ".join("%d:%d:%d" % each for each in right), why, differences)


def unlisted():
    """What is wrong with Debian's list of the functions, by which its packages know the versions they need; a tarball has none."""
    path = os.path.join("debian", "libconvertproto0.symbols")
    if not os.path.exists(os.path.join(TOP, path)):
        return []
    listed = set(re.findall(r"^ (convert_\w+)@", read(path), re.MULTILINE))
    names = set(exported(os.path.join(BUILD, ".libs", "libconvertproto.so")))
    return ["%s: %s %s" % (path, name, "is missing" if name in names else "isn't exported") for name in sorted(listed ^ names)]


def is_usual_host():
    """Is this a 64-bit machine with glibc, on which both files are compared in full?"""
    return sys.maxsize > 1 << 32 and os.path.exists(os.path.join(BUILD, ".libs", "libconvert.so")) and \
        "GLIBC" in subprocess.run(["nm", "-D", os.path.join(BUILD, ".libs", "libconvert.so")], stdout=subprocess.PIPE, text=True,
                                  check=True).stdout


def write(path, title, head, lines):
    """Writes an interface to its file."""
    with open(path, "w", encoding="utf-8") as file:
        file.write("# SPDX-License-Identifier: BSD-3-Clause\n# %s; made by tests/build/check_abi.py --update\n" % title)
        file.write("".join("# %s: %s\n" % pair for pair in head) + "".join(line + "\n" for line in lines))


def main():
    """Compares, or updates; returns the status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="write the files anew")
    parser.add_argument("--release", help="with --update: the release that the interface belongs to from now on")
    arguments = parser.parse_args()
    lines, names = interface(), sorted(exported(os.path.join(BUILD, ".libs", "libconvert.so")))
    if arguments.update:
        if not is_usual_host():
            raise Failure("--update needs a 64-bit machine with glibc, as the files are compared there")
        head = [("release", arguments.release or (stored(PROTO)[0]["release"] if os.path.exists(PROTO) else UNRELEASED)),
                ("version-info", "%d:%d:%d" % version_info())]
        if head[0][1] != UNRELEASED and not arguments.release:
            print("lib/convertproto.abi stays that of release %s: what differs needs another CONVERTPROTO_VERSION_INFO" % head[0][1])
        else:
            write(PROTO, "convertproto.abi - the interface of libconvertproto", head, lines)
        write(SHIM, "libconvert.abi - what libconvert.so takes over from the C library", [], names)
        return 0
    head, old = stored(PROTO)
    wrong = [verdict(head, version_info(), *compare(old, lines, sys.maxsize > 1 << 32)), *unlisted()]
    if is_usual_host():
        before = stored(SHIM)[1]
        wrong += ["libconvert.so no longer takes over %s" % name for name in sorted(set(before) - set(names))]
        wrong += ["libconvert.so takes over %s, which src/shim/libconvert.abi hasn't" % name for name in sorted(set(names) - set(before))]
        if before != names:
            wrong.append("if that is meant: tests/build/check_abi.py --update")
    else:
        extra = set(names) - set(read("src", "shim", "libconvert.sym").split())
        wrong += ["libconvert.so exports %s, which src/shim/libconvert.sym hasn't" % name for name in sorted(extra)]
    wrong = [line for line in wrong if line]
    print("\n".join(wrong) or
          "%d lines of libconvertproto's interface, %d functions of the C library: as they were" % (len(old), len(names)))
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit("FAIL: %s" % failure)
