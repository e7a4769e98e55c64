#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_applications_loops.py - C programs on libevent, libev, libuv and GLib, with each way to wait that these have"""
import functools
import os
import shlex
import subprocess

from convertlab import Build, Skip, equal, main, need
from convertlab.applications import NAME, application

LOOPS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "apps/loops")
CARRIED = 2 * 20 * 200000


def echo(lab):
    lab.echo()


@functools.lru_cache
def flags(library, probe, package):
    """What the compiler needs for a library: pkg-config's word for it, or "-l…" where it has none. Skips without the library."""
    need("pkg-config")
    if probe.endswith(".h"):
        found = subprocess.run([*compiler(), "-E", "-x", "c", "-"], input="#include <%s>\n" % probe, text=True, check=False,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
        words = [library]
    else:
        asked = subprocess.run(["pkg-config", "--cflags", "--libs", probe], text=True, check=False, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
        found, words = asked.returncode == 0, shlex.split(asked.stdout)
    if not found:
        raise Skip("%s is missing; on Debian: apt-get install %s" % (probe, package))
    return words


def compiler():
    return shlex.split(os.environ.get("CC", "cc"))


def built(name, *library):
    """Compiles loops/NAME.c, as a stranger to this package: without its sanitizers."""
    need(compiler()[0], "gcc")
    directory = os.path.join(Build().directory, "tests/lab/apps/build/loops")
    os.makedirs(directory, exist_ok=True)
    program = os.path.join(directory, name)
    warnings = ["-Wall", "-Wextra"] + (["-Werror"] if os.environ.get("CONVERT_NO_SKIP") else [])
    subprocess.run([*compiler(), "-std=gnu11", "-O1", *warnings, "-o", program, os.path.join(LOOPS, name + ".c"),
                    *flags(*library)], check=True)
    return program


def task(run, program, *method):
    """What every program does is in loops/task.h."""
    equal(run([program, NAME, *method]).stdout, "20 done\nrefused\n", "what it did")


LIBEVENT = ("", "libevent_core", "libevent-dev")
LIBEV = ("-lev", "ev.h", "libev-dev")


of_loop = application(server=echo, connections=20, carried=CARRIED, refused=True)

@of_loop
def test_libevent_epoll(run):
    task(run, built("loop_libevent", *LIBEVENT), "epoll")


@of_loop
def test_libevent_poll(run):
    task(run, built("loop_libevent", *LIBEVENT), "poll")


@of_loop
def test_libevent_select(run):
    task(run, built("loop_libevent", *LIBEVENT), "select")


@of_loop
def test_libev_epoll(run):
    task(run, built("loop_libev", *LIBEV), "epoll")


@of_loop
def test_libev_poll(run):
    task(run, built("loop_libev", *LIBEV), "poll")


@of_loop
def test_libev_select(run):
    task(run, built("loop_libev", *LIBEV), "select")


@of_loop
def test_libuv(run):
    task(run, built("loop_libuv", "", "libuv", "libuv1-dev"))


@of_loop
def test_glib(run):
    task(run, built("loop_glib", "", "gio-2.0", "libglib2.0-dev"))


if __name__ == "__main__":
    main()
