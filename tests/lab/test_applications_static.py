#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_applications_static.py - static programs in C, Rust and Go, and those with io_uring, supervised by convertize"""
from convertlab import check, equal, kernel, long, main, waits
from convertlab.applications import NAME, application
from convertlab.programs import c_program, go_program, library, tokio_program

LIBEVENT = ("", "libevent_core", "libevent-dev")
LIBEV = ("-lev -lm", "ev.h", "libev-dev")
LIBUV = ("", "libuv-static", "libuv1-dev")
LIBURING = ("", "liburing", "liburing-dev")

DOWN = 8 * 200000
UP = 1000000
SIZE = 4000000


def http(lab):
    lab.http()


def echo(lab):
    lab.echo()


def both(lab):
    lab.echo()
    lab.chorus()


# --- event loops in C --------------------------------------------------------------------------------------------

of_loop = application(server=echo, connections=20, carried=2 * 20 * 200000, refused=True, method="supervise")


def static_loop(run, name, *needed, method=()):
    # these programs resolve the name themselves; ld warns of the libraries that glibc loads for that
    program = c_program(name + "-static", "loops/%s.c" % name, flags=[*library(*needed), "-static"])
    equal(run([program, NAME, *method]).stdout, "20 done\nrefused\n", "the program's output")


@of_loop
def test_libevent_epoll(run):
    static_loop(run, "loop_libevent", *LIBEVENT, method=["epoll"])


@of_loop
def test_libevent_select(run):
    static_loop(run, "loop_libevent", *LIBEVENT, method=["select"])


@of_loop
def test_libev(run):
    static_loop(run, "loop_libev", *LIBEV, method=["poll"])


@long
@of_loop
def test_libuv(run):
    static_loop(run, "loop_libuv", *LIBUV)


# --- tally.c, with each C library and each way to connect ------------------------------------------------------------

TALLY = "static/tally.c"


def count(run, program, method, used=None):
    """Makes twenty connections over each family to a server that speaks second, and as many to one that speaks first."""
    for address in (run.lab.server.addr4, run.lab.server.addr6):
        for server in ("echo", "chorus"):
            said = run([program, address, server, "20", "10", method]).stdout
            check(said.startswith("done=20 failed=0 foreign=0 peers=0 "), said)
            check(not used or said.endswith("(%s)\n" % used) or run.converted, said)


of_tally = application(server=both, connections=80, carried=40 * 20000, method="supervise")


@long
@of_tally
def test_glibc(run):
    count(run, c_program("tally-glibc", TALLY, flags=["-static"]), "blocking")


@long
@of_tally
def test_glibc_epoll(run):
    count(run, c_program("tally-glibc", TALLY, flags=["-static"]), "epoll")


@of_tally
def test_glibc_fastopen(run):
    """MSG_FASTOPEN, which without a cookie of the server's kernel acts as a connect() and a send()."""
    count(run, c_program("tally-glibc", TALLY, flags=["-static"]), "fastopen")


@of_tally
def test_glibc_fastopen_connect(run):
    count(run, c_program("tally-glibc", TALLY, flags=["-static"]), "fastopen-connect")


@long
@of_tally
def test_musl(run):
    program = c_program("tally-musl", TALLY, flags=["-static"], compiler="musl-gcc", package="musl-tools")
    count(run, program, "blocking")


@of_tally
def test_musl_epoll(run):
    program = c_program("tally-musl", TALLY, flags=["-static"], compiler="musl-gcc", package="musl-tools")
    count(run, program, "epoll")


@of_tally
def test_i386(run):
    program = c_program("tally-i386", TALLY, flags=["-static"], compiler="i686-linux-gnu-gcc",
                        package="gcc-i686-linux-gnu libc6-dev-i386-cross")
    kernel.must_run(program)
    count(run, program, "epoll")


# --- io_uring ------------------------------------------------------------------------------------------------------


def tally_uring(static):
    return c_program("tally-uring" + ("-static" if static else ""), TALLY, "static/tally_uring.c",
                     flags=["-DWITH_URING", *library(*LIBURING), *(["-static"] if static else [])])


@of_tally
def test_uring(run):
    """It connects, sends and receives by io_uring."""
    count(run, tally_uring(static=False), "uring", used="uring")


@long
@waits
@of_tally
def test_uring_static(run):
    count(run, tally_uring(static=True), "uring", used="uring")


@of_tally
def test_uring_receives(run):
    """It connects by the C library and receives by io_uring: preloaded, it could find the converter's bytes before the server's."""
    count(run, tally_uring(static=False), "uring-recv", used="uring-recv")


# --- Rust, Go --------------------------------------------------------------------------------------------------------


def echo_for_tokio(lab):
    lab.echo()
    return tokio_program(static=True)


@long
@application(server=echo_for_tokio, connections=8, carried=2 * DOWN, refused=True, method="supervise")
def test_rust_tokio(run):
    equal(run([run.server, NAME]).stdout, "8 done, 1000000 up\nrefused\n", "the program's output")


def go_task(run, program, **env):
    equal(run([program, NAME], env=env).stdout, "8 done, 1000000 up\nrefused\n", "the program's output")


# If a connection takes longer than 300 ms, Go also tries the address of the other family
of_go = application("go:golang-go", server=http, connections=(8, 18), carried=DOWN + UP, refused=True, method="supervise")


@long
@of_go
def test_go_http(run):
    go_task(run, go_program("http", "task.go", "http.go"))


@long
@of_go
def test_go_http_with_cgo(run):
    """The C library resolves the name, and Go's own code connects."""
    go_task(run, go_program("http-cgo", "task.go", "http.go", cgo=True), GODEBUG="netdns=cgo")


@application("go:golang-go", server=echo, connections=(8, 16), carried=2 * DOWN, refused=True, method="supervise")
def test_go_net(run):
    go_task(run, go_program("net", "task.go", "net.go"))


@long
@application("go:golang-go", server=echo, connections=(8, 16), carried=2 * DOWN, refused=True, method="supervise")
def test_go_i386(run):
    """A program for i386, whose socket calls are one system call, socketcall(2), with their arguments in memory."""
    program = go_program("net-386", "task.go", "net.go", GOARCH="386")
    kernel.must_run(program)
    go_task(run, program)


# --- BusyBox ----------------------------------------------------------------------------------------------------------


@application("busybox:busybox-static", server=http, connections=1, carried=SIZE, method="supervise")
def test_busybox_wget(run):
    run(["busybox", "wget", "-q", "-O", run.path("file"), "http://%s/bytes/%d" % (run.lab.server.addr4, SIZE)])
    run.holds("file", SIZE)


@application("busybox:busybox-static", server=both, connections=1, method="supervise")
def test_busybox_nc(run):
    equal(run(["busybox", "nc", run.lab.server.addr4, "1900"], text=False).stdout, bytes(range(0x80, 0x100)), "what it received")


# --- programs that start one another ---------------------------------------------------------------------------------


@application("busybox:busybox-static", "curl", server=http, connections=3, carried=3 * SIZE, method="auto")
def test_static_from_preloaded(run):
    """A dynamic shell starts a static program, which starts a dynamic one."""
    url = "http://%s/bytes/%d" % (run.lab.server.addr4, SIZE)
    run(["bash", "-c", "cd $HOME && curl -sSf -o one $0 && busybox wget -q -O two $0 && busybox sh -c 'curl -sSf -o three $0' $0",
         url])
    for name in ("one", "two", "three"):
        run.holds(name, SIZE)


if __name__ == "__main__":
    main()
