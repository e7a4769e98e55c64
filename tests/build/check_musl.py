#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_musl.py - does musl's compiler take all sources, without a warning?

Routers and containers have musl, whose headers declare less than glibc's. configure looks at musl here as anywhere, in a directory of its
own, and makes the config.h with which the sources of src and lib are compiled, as far as syntax and types go: nothing is linked or run,
which tests/platforms/musl does. Headers of other libraries are this machine's, as they differ with no C library. Sources that include
one which isn't there are left out, and named.
"""
import concurrent.futures
import glob
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, "..", "platforms"))

# pylint: disable=wrong-import-position
import platform_tools as tools

SKIP = 77
COMPILER = "musl-gcc"
# what configure reads of the source tree
CONFIGURED_FROM = ("configure", "build-aux", "config.h.in", "lib")
# what sources include of other libraries, besides uthash
LIBRARIES = ("cap-ng.h", "event2", "libmnl", "libnetfilter_queue", "libnfnetlink", "libnftnl", "microhttpd.h", "seccomp-syscalls.h",
             "seccomp.h", "sodium", "sodium.h")
# what Makefile gives the compiler for some folders
DEFINED = {"src/shim/": ["-DNATIVE_TIMES"],
           "src/convertize/": ['-DCONVERTIZE_SYSCONFDIR="/etc"', '-DLIBCONVERT_DIR="/usr/lib/libconvert"']}


def link_headers(directory, gnu):
    """Has `directory` find the kernel's headers, uthash's and the libraries'; returns the libraries' that aren't there."""
    tools.kernel_headers(directory, gnu)
    missing = []
    for name in LIBRARIES:
        places = [place + name for place in ("/usr/include/", "/usr/include/%s/" % gnu) if os.path.exists(place + name)]
        if places:
            os.symlink(places[0], os.path.join(directory, name))
        else:
            missing.append(name)
    return missing


def configure(place, machine):
    """Makes config.h in `place`, as configure finds it with musl; returns the project's warnings for this compiler."""
    for name in CONFIGURED_FROM:
        os.symlink(os.path.join(TOP, name), os.path.join(place, name))
    with open(os.path.join(place, "warnings.in"), "w", encoding="ascii") as file:
        file.write("@CONVERT_CFLAGS@\n")
    # --no-create: only what is asked for below is made of what it has found
    for command in (["./configure", "--no-create", "--silent", "--enable-werror", "--host=%s-linux-musl" % machine, "CC=" + COMPILER,
                     "CFLAGS=", "CPPFLAGS=-idirafter %s/include" % place],
                    ["./config.status", "--silent", "--header=config.h", "--file=warnings"]):
        subprocess.run(command, cwd=place, check=True, stdin=subprocess.DEVNULL)
    with open(os.path.join(place, "warnings"), encoding="ascii") as file:
        return shlex.split(file.read())


def sources():
    """All C files of src and lib, as paths below the top of the tree."""
    return sorted(os.path.relpath(path, TOP) for root in ("src", "lib")
                  for path in glob.glob(os.path.join(TOP, root, "**", "*.c"), recursive=True))


def compile_one(path, place, warnings):
    """What the compiler says of a source file, "" if it takes it."""
    defined = [flag for folder, flags in DEFINED.items() if path.startswith(folder) for flag in flags]
    return subprocess.run([COMPILER, "-std=gnu11", "-fsyntax-only", "-DHAVE_CONFIG_H", "-I" + place, "-I" + os.path.join(TOP, "lib"),
                           "-I" + os.path.join(TOP, "src"), "-idirafter", place + "/include", *warnings, *defined,
                           os.path.join(TOP, path)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False).stdout


def main():
    """Returns the status."""
    if not shutil.which(COMPILER):
        print("SKIP: %s is missing: build-tools/install-needs test" % COMPILER, file=sys.stderr)
        return 1 if os.environ.get("CONVERT_NO_SKIP") else SKIP
    machine = os.uname().machine
    with tempfile.TemporaryDirectory() as place:
        os.mkdir(os.path.join(place, "include"))
        missing = link_headers(os.path.join(place, "include"), machine + "-linux-gnu")
        warnings = configure(place, machine)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            paths = sources()
            said = dict(zip(paths, pool.map(lambda path: compile_one(path, place, warnings), paths)))
    wrong = 0
    for path, text in said.items():
        header = re.search(r"fatal error: ([^/\s:]+)\S*: No such file", text)
        if header and header[1] in missing:
            print("left out: %s: this machine has no %s" % (path, header[1]))
        elif text:
            wrong += 1
            print("FAIL %s\n%s" % (path, text))
    print("%d files: %s" % (len(said), "musl's compiler doesn't take %d" % wrong if wrong else "musl's compiler takes all"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
