#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_compilers.py - do the compilers for musl and for i386 take all sources, without a warning?

Routers and containers have musl, whose headers declare less than glibc's; on i386 types have other sizes, and compilers other macros.
For each compiler, configure makes a config.h in a directory of its own. With it the compiler checks syntax and types of the sources of src
and lib: nothing is linked or run, which the commands of tests/platforms do. The headers of other libraries are this machine's, since
no C library changes them. A source that includes a missing one is left out, and named.
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
# {compiler: the host that configure is told}; None: this machine's architecture, with musl
COMPILERS = {"musl-gcc": None, "i686-linux-gnu-gcc": "i686-linux-gnu"}
# what configure reads of the source tree
CONFIGURED_FROM = ("configure", "build-aux", "config.h.in", "lib")
# what sources include of other libraries, besides uthash
LIBRARIES = ("event2", "libmnl", "libnetfilter_queue", "libnfnetlink", "libnftnl", "microhttpd.h", "nftables",
             "qrencode.h", "seccomp-syscalls.h", "seccomp.h", "sodium", "sodium.h")
# what Makefile gives the compiler for some folders
DEFINED = {"src/shim/": ["-DNATIVE_TIMES"],
           "src/convertize/": ['-DCONVERTIZE_SYSCONFDIR="/etc"', '-DLIBCONVERT_DIR="/usr/lib/libconvert"']}


def link_headers(directory, gnu):
    """Links the headers of the kernel, of uthash and of the libraries into `directory`; returns the missing ones of the libraries."""
    tools.kernel_headers(directory, gnu)
    missing = []
    for name in LIBRARIES:
        places = [place + name for place in ("/usr/include/", "/usr/include/%s/" % gnu) if os.path.exists(place + name)]
        if places:
            os.symlink(places[0], os.path.join(directory, name))
        else:
            missing.append(name)
    return missing


def configure(place, compiler, host):
    """Makes config.h in `place`, as configure finds it with a compiler; returns the project's warnings for it."""
    for name in CONFIGURED_FROM:
        os.symlink(os.path.join(TOP, name), os.path.join(place, name))
    with open(os.path.join(place, "warnings.in"), "w", encoding="ascii") as file:
        file.write("@CONVERT_CFLAGS@\n")
    # --no-create: only what is asked for below is made of what it has found
    for command in (["./configure", "--no-create", "--silent", "--enable-werror", "--host=" + host, "CC=" + compiler, "CFLAGS=",
                     "CPPFLAGS=-idirafter %s/include" % place],
                    ["./config.status", "--silent", "--header=config.h", "--file=warnings"]):
        subprocess.run(command, cwd=place, check=True, stdin=subprocess.DEVNULL)
    with open(os.path.join(place, "warnings"), encoding="ascii") as file:
        return shlex.split(file.read())


def sources():
    """All C files of src and lib, as paths below the top of the tree."""
    return sorted(os.path.relpath(path, TOP) for root in ("src", "lib")
                  for path in glob.glob(os.path.join(TOP, root, "**", "*.c"), recursive=True))


def compile_one(path, compiler, place, warnings):
    """What a compiler says of a source file; "" if it compiles it, with or without notes."""
    defined = [flag for folder, flags in DEFINED.items() if path.startswith(folder) for flag in flags]
    result = subprocess.run([compiler, "-std=gnu11", "-fsyntax-only", "-DHAVE_CONFIG_H", "-I" + place, "-I" + os.path.join(TOP, "lib"),
                             "-I" + os.path.join(TOP, "src"), "-idirafter", place + "/include", *warnings, *defined,
                             os.path.join(TOP, path)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return result.stdout if result.returncode else ""


def check_compiler(compiler, host):
    """Checks all sources with a compiler; returns how many it rejects."""
    machine = os.uname().machine
    with tempfile.TemporaryDirectory() as place:
        os.mkdir(os.path.join(place, "include"))
        missing = link_headers(os.path.join(place, "include"), machine + "-linux-gnu")
        warnings = configure(place, compiler, host or machine + "-linux-musl")
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            paths = sources()
            said = dict(zip(paths, pool.map(lambda path: compile_one(path, compiler, place, warnings), paths)))
    wrong = 0
    for path, text in said.items():
        header = re.search(r"fatal error: ([^/\s:]+)\S*: No such file", text)
        if header and header[1] in missing:
            print("left out: %s: this machine has no %s" % (path, header[1]))
        elif text:
            wrong += 1
            print("FAIL %s\n%s" % (path, text))
    print("%d files: %s" % (len(said), "%s doesn't take %d" % (compiler, wrong) if wrong else "%s takes all" % compiler), flush=True)
    return wrong


def main():
    """Returns the status: SKIP if a compiler is missing and the others reject nothing."""
    wrong = skipped = 0
    for compiler, host in COMPILERS.items():
        if shutil.which(compiler):
            wrong += check_compiler(compiler, host)
        else:
            skipped += 1
            print("SKIP: %s is missing: build-tools/install-needs test" % compiler, file=sys.stderr)
    if wrong or (skipped and os.environ.get("CONVERT_NO_SKIP")):
        return 1
    return SKIP if skipped else 0


if __name__ == "__main__":
    sys.exit(main())
