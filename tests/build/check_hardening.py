#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_hardening.py - are the programs and libraries built with what compiler and linker offer against attackers?

m4/convert_hardening.m4 asks for it. This check examines the result with readelf: the programs and libraries, and each object
file that goes into them. It doesn't check a property that the builder has turned off (--disable-hardening, sanitizers, flags of
their own).

    check_hardening.py [FILE…]     with files: these programs and libraries, as they are installed, and no object files
"""
import glob
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("CONVERT_BUILDDIR") or os.path.abspath(os.path.join(HERE, "..", ".."))
PROGRAMS = ("convertd", "convertize")
LIBRARIES = (".libs/libconvert.so", ".libs/libconvertproto.so")
# what goes into them; tests and tools may be built otherwise
OBJECTS = ("lib", "src")

# the builder's flags that take a property back
PIE_OFF = r"-no-?pie\b|-fno-(pie|PIE|pic|PIC)\b|-static\b"
NOW_OFF = r"-z,?\s*lazy\b"
RELRO_OFF = r"-z,?\s*norelro\b"
STACK_OFF = r"-z,?\s*execstack\b"
CANARY_OFF = r"-fno-stack-protector\b"
FORTIFY_OFF = r"_FORTIFY_SOURCE\b|-O0\b|-fsanitize="
BRANCH_OFF = r"-fcf-protection=|-mbranch-protection=|-mindirect-branch"


def makefile_variables():
    """The variables that configure has put into the Makefile."""
    with open(os.path.join(BUILD, "Makefile"), encoding="utf-8") as file:
        return dict(re.findall(r"^(\w+) = (.*)$", file.read(), re.MULTILINE))


def readelf(*arguments):
    """What it prints."""
    return subprocess.run(["readelf", "-W", *arguments], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, env={**os.environ, "LC_ALL": "C"}).stdout


def segments(path):
    """[(type, flags)] of the program headers."""
    return re.findall(r"^\s+([A-Z_]+)\s+0x\S+ 0x\S+ 0x\S+ 0x\S+ 0x\S+ ([RWE ]{3})", readelf("-l", path), re.MULTILINE)


class Checks:
    """What is wrong, gathered over all files."""

    def __init__(self, variables):
        self.wrong = []
        self.said = " ".join([variables.get(name, "") for name in ("CC", "CPPFLAGS", "CFLAGS", "LDFLAGS", "SANITIZER_CFLAGS")])
        self.musl = "musl" in variables.get("host_os", "") + variables.get("CC", "")

    def check(self, right, path, what, taken_back=None):
        """Notes @what is wrong with @path, unless it is @right or the builder's flags match @taken_back."""
        if not right and not (taken_back and re.search(taken_back, self.said)):
            self.wrong.append("%s: %s" % (os.path.relpath(path, BUILD), what))

    def linked(self, path, program):
        """A program or a shared library."""
        dynamic, loads = readelf("-d", path), segments(path)
        self.check("Type:                              DYN" in readelf("-h", path), path, "isn't position-independent", PIE_OFF)
        if program:
            self.check(re.search(r"FLAGS_1\).*\bPIE\b", dynamic), path, "isn't linked as a position-independent program", PIE_OFF)
        self.check(re.search(r"BIND_NOW|FLAGS_1\).*\bNOW\b", dynamic), path, "isn't bound at its start (-z now)", NOW_OFF)
        self.check(any(kind == "GNU_RELRO" for kind, _ in loads), path, "nothing is read-only after relocation (-z relro)", RELRO_OFF)
        self.check([flags for kind, flags in loads if kind == "GNU_STACK"] == ["RW "], path, "its stack is executable", STACK_OFF)
        for kind, flags in loads:
            self.check(kind != "LOAD" or not ("W" in flags and "E" in flags), path, "memory is writable and executable")
        # -z separate-code: headers and constants come before and behind the code, in segments of their own
        self.check([flags for kind, flags in loads if kind == "LOAD"][:1] == ["R  "], path, "its code isn't apart from what is only read")
        self.check("TEXTREL" not in dynamic, path, "the loader writes into its code (TEXTREL)")
        self.check(not re.search(r"\((RPATH|RUNPATH)\)", dynamic), path, "it names directories for libraries (RPATH)")

    def protected(self, path):
        """A program or a library of several files: what the compiler has put in."""
        symbols = readelf("-s", path)
        self.check(re.search(r"\b__stack_chk_(fail|guard)\b", symbols), path, "no function has a stack canary", CANARY_OFF)
        if not self.musl:  # musl has no such functions: its fortified ones are inline
            self.check(re.search(r"UND __(mem|str|v?s?n?printf)\w*_chk\b", symbols), path, "nothing is fortified", FORTIFY_OFF)

    def object_file(self, path):
        """An object file of ours restricts indirect jumps (a whole program's note depends on the C library's files, too)."""
        machine = readelf("-h", path)
        note = readelf("-n", path)
        if "X86-64" in machine:
            self.check("IBT" in note and "SHSTK" in note, path, "isn't compiled with -fcf-protection", BRANCH_OFF)
        elif "AArch64" in machine:
            self.check("BTI" in note and "PAC" in note, path, "isn't compiled with -mbranch-protection", BRANCH_OFF)


def main():
    """Prints what is wrong; returns the status."""
    variables = makefile_variables()
    skipped = 1 if os.environ.get("CONVERT_NO_SKIP") else 77
    if variables.get("enable_hardening") == "no":
        print("SKIP: built with --disable-hardening")
        return skipped
    if subprocess.run(["sh", "-c", "command -v readelf"], stdout=subprocess.DEVNULL, check=False).returncode:
        print("SKIP: readelf is missing; on Debian: apt-get install binutils")
        return skipped
    checks = Checks(variables)
    if sys.argv[1:]:
        linked = [(path, "/lib" not in path.rsplit("bin/", 1)[-1]) for path in sys.argv[1:]]
        objects = []
    else:
        linked = [(os.path.join(BUILD, name), True) for name in PROGRAMS] + [(os.path.join(BUILD, name), False) for name in LIBRARIES]
        objects = [path for directory in OBJECTS for hidden in ("", ".libs/")  # libtool's, for shared and without static libraries
                   for path in glob.glob(os.path.join(BUILD, directory, "**", hidden + "*.o"), recursive=True)]
    for path, program in linked:
        checks.linked(path, program)
        if program or path.endswith("libconvert.so"):
            checks.protected(path)
    for path in objects:
        checks.object_file(path)
    checks.check(sys.argv[1:] or len(objects) > 100, BUILD, "only %d object files" % len(objects))
    print("\n".join(checks.wrong) or "%d programs and libraries, %d object files: as they should be" % (len(linked), len(objects)))
    return 1 if checks.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
