#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_applications_loops.py - C programs on libevent, libev, libuv and GLib, with each of their ways to wait"""
from convertlab import equal, main
from convertlab.applications import NAME, application
from convertlab.programs import c_program, library

CARRIED = 2 * 20 * 200000


def echo(lab):
    lab.echo()


def built(name, *needed):
    return c_program(name, "loops/%s.c" % name, flags=library(*needed))


def task(run, program, *method):
    """Runs a program, which does as loops/task.h says."""
    equal(run([program, NAME, *method]).stdout, "20 done\nrefused\n", "the program's output")


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


# GLib tries the server's other address after 250 ms (RFC 8305), and closes the later connection. Answers on a busy machine may be so late.
@application(server=echo, connections=(20, 40), carried=CARRIED, refused=True)
def test_glib(run):
    task(run, built("loop_glib", "", "gio-2.0", "libglib2.0-dev"))


if __name__ == "__main__":
    main()
