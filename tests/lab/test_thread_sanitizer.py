#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_thread_sanitizer.py - no data race in the shim, with many threads in a program that is instrumented as well

Only in builds with --enable-sanitizers=thread: ThreadSanitizer ends a program that has a race with 66.
"""
import os

from convertlab import Lab, Link, equal, main


def run(threads, connections, *more, **env):
    with Lab(wifi=Link(delay_ms=5), lte=None, core=Link(delay_ms=1)) as lab:
        lab.convertd()
        lab.echo()
        directory = os.path.join(lab.directory, "runtime")
        os.mkdir(directory, 0o700)
        env = lab.converted(XDG_RUNTIME_DIR=directory, TSAN_OPTIONS="exitcode=66", **env)
        program = lab.build.program("tests/lab/apps/threads")
        result = lab.client.run([program, lab.server.addr4, 7, threads, connections, *more], env=env, timeout=50)
        equal((result.stdout, result.stderr), ("done %d\n" % (threads * connections), ""), "what the program says")
        equal(lab.shim_log().count("converted over"), threads * connections, "conversions")


def test_handshakes():
    run(16, 50)


def test_early_data():
    run(16, 50, CONVERT_EARLY_DATA="1")


def test_forks():
    """What is done to pending connections before a fork(), and the steps that are shared after it."""
    run(8, 30, "forks")


def test_next_converter():
    """All threads find at once that the first converter refuses."""
    run(16, 20, CONVERT_ADDR="10.9.0.1:999,10.9.0.1")


if __name__ == "__main__":
    main()
