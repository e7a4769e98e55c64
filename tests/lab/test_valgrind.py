#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_valgrind.py - memcheck finds no error in a program with threads under the shim

It needs the C library's symbols, on Debian the package libc6-dbg. test_thread_sanitizer.py looks for races: Helgrind and DRD don't
understand C11's atomics (contrib/valgrind).
"""
import os
import shutil

from convertlab import Lab, Link, Unsuitable, equal, long, main

THREADS, CONNECTIONS = 4, 4
FAILED = 99
MEMCHECK = ["valgrind", "-q", "--error-exitcode=%d" % FAILED]
KINDS = {}, {"CONVERT_EARLY_DATA": 1}, {"CONVERT_WITHHOLDING": 2000}  # of connections


def need_valgrind(lab):
    if os.environ.get("SANITIZER_PRELOAD"):
        raise Unsuitable("not under sanitizers: they need the same memory")
    # not a failure even in CI, since the symbols must match the C library's exact version
    if not shutil.which("valgrind") or lab.client.run([*MEMCHECK, "true"], check=False).returncode:
        raise Unsuitable("valgrind doesn't run here; on Debian: apt-get install valgrind libc6-dbg")


@long
def test_threads_that_connect():
    with Lab(wifi=Link(delay_ms=5), lte=None, core=Link(delay_ms=1)) as lab:
        need_valgrind(lab)
        lab.convertd(["--hold-syn", "off"])
        lab.echo()
        runtime = os.path.join(lab.directory, "runtime")
        os.mkdir(runtime, 0o700)
        program = lab.build.program("tests/lab/apps/threads")
        for variables in KINDS:
            result = lab.client.run([*MEMCHECK, program, lab.server.addr4, 7, THREADS, CONNECTIONS],
                                    env=lab.converted(XDG_RUNTIME_DIR=runtime, **variables), check=False)
            equal((result.returncode, result.stdout, result.stderr), (0, "done %d\n" % (THREADS * CONNECTIONS), ""),
                  str(variables))
        equal(lab.shim_log().count("converted over"), len(KINDS) * THREADS * CONNECTIONS, "conversions")


if __name__ == "__main__":
    main()
