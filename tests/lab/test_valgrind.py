#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_valgrind.py - valgrind has nothing to say of programs with the shim in them: memory, and threads

Where valgrind is there and starts; it needs the C library's symbols for that, on Debian the package libc6-dbg.
"""
import os
import shutil

from convertlab import Lab, Link, Unsuitable, equal, main
from convertlab.build import SRCDIR

THREADS, CONNECTIONS = 4, 4
FAILED = 99
# which tool, and what the connections are like
RUNS = (("memcheck", {"CONVERT_EARLY_DATA": 1}), ("helgrind", {"CONVERT_WITHHOLDING": 2000}), ("drd", {}))


def valgrind(tool):
    # what of libconvert.so Helgrind and DRD can't understand
    suppressions = os.path.join(SRCDIR, "contrib/valgrind/libconvert.supp")
    return ["valgrind", "--tool=" + tool, "-q", "--error-exitcode=%d" % FAILED, "--suppressions=" + suppressions]


def need_valgrind(lab):
    if os.environ.get("SANITIZER_PRELOAD"):
        raise Unsuitable("not under sanitizers: they want the same memory")
    # not a failure even in CI: the symbols must be of the very version of the C library
    if not shutil.which("valgrind") or lab.client.run([*valgrind("memcheck"), "true"], check=False).returncode:
        raise Unsuitable("valgrind doesn't run here; on Debian: apt-get install valgrind libc6-dbg")


def test_threads_that_connect():
    with Lab(wifi=Link(delay_ms=5), lte=None, core=Link(delay_ms=1)) as lab:
        need_valgrind(lab)
        lab.convertd(["--hold-syn", "off"])
        lab.echo()
        runtime = os.path.join(lab.directory, "runtime")
        os.mkdir(runtime, 0o700)
        program = lab.build.program("tests/lab/apps/threads")
        for tool, variables in RUNS:
            result = lab.client.run([*valgrind(tool), program, lab.server.addr4, 7, THREADS, CONNECTIONS],
                                    env=lab.converted(XDG_RUNTIME_DIR=runtime, **variables), timeout=60, check=False)
            equal((result.returncode, result.stdout, result.stderr), (0, "done %d\n" % (THREADS * CONNECTIONS), ""),
                  "%s, %s" % (tool, variables))
        equal(lab.shim_log().count("converted over"), len(RUNS) * THREADS * CONNECTIONS, "conversions")


if __name__ == "__main__":
    main()
