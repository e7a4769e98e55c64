#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_supervise.py - the supervisor converts programs that no library reaches"""
import errno
import os

from convertlab import Link, Unsuitable, check, equal, kernel, long, main, repetitions, waits
from convertlab.build import SRCDIR
from convertlab.programs import c_program
from convertlab.supervised import CLOSED, MPTCP, PORT, TCP, Run, bench, build, converted

WAYS = ([], ["nonblocking"], ["poll"], ["dup"], ["dup", "nonblocking"], ["cloexec"], ["bind"], ["options"], ["options", "nonblocking"],
        ["fastopen"], ["fastopen", "nonblocking"], ["sendmsg"], ["threads=8"], ["threads=8", "nonblocking"])


def ways(kind):
    """Checks each way to connect, for one kind of program."""
    with bench(kind) as place:
        for way in WAYS:
            if way != ["bind"] or kind == "static":
                run = place.connect(*way)
                converted(run, place.lab.server.addr4, count=8 if "threads=8" in way else 1)
                equal({line["cloexec"] for line in run.lines}, {"1" if "cloexec" in way else "0"}, "FD_CLOEXEC")
                equal({line["again"] for line in run.lines}, {"0" if {"nonblocking", "poll"} & set(way) else "EISCONN"},
                      "another connect(), after %s" % way)
        first, *rest = run.stderr.splitlines()
        check("it is supervised" in first and not [line for line in rest if not line.startswith("libconvert: ")], run.stderr)


def test_static():
    """A static program of glibc's."""
    ways("static")


def test_musl():
    """A static program of musl's."""
    ways("musl")


def test_i386():
    """A 32-bit program, whose calls have other numbers and layouts."""
    ways("i386")


def test_server_sees_the_converter():
    """The converter is the server's peer, and the client sends the server no packet."""
    with bench() as place:
        with place.lab.capture(place.lab.server, "core") as capture:
            converted(place.connect(), place.lab.server.addr4)
        equal({packet.src for packet in capture.packets() if packet.dport == 7}, {"10.3.0.1"}, "who has connected")


def test_signals_of_a_socket():
    """With O_ASYNC the signal comes when the server was reached, as without a supervisor: the connection is direct."""
    with bench() as place:
        probe = ["python3", os.path.join(SRCDIR, "tests/lab/apps/signal_probe.py")]
        for way in ("before", "ioctl", "duplicate"):
            words = [*probe, way, place.lab.server.addr4, PORT]
            run = place.run(*words, options=["--method", "supervise"])
            equal(run.stdout, place.lab.client.run(words).stdout, "%s: %s" % (way, run.stderr))
            equal(run.logged("direct: the program waits for signals"), 1, run.stderr)


def test_errors():
    """A refused port has the errno of a direct connection, blocking and not."""
    with bench() as place:
        for way in WAYS:
            if "threads=8" not in way and "bind" not in way:
                run, direct = place.connect(*way, port=CLOSED), place.directly(*way, port=CLOSED)
                equal((run.status, run.lines[0]["error"]), (1, direct.lines[0]["error"]), "%s: %s" % (way, run.stderr))
                check(run.logged("failed: Connection Reset"), run.stderr)


def test_direct_destinations():
    """A direct connection is plain TCP under the program's descriptors: in its epoll instances, with its options and address."""
    with bench() as place:
        place.lab.echo(host=place.lab.client)
        for way in WAYS:
            run, direct = place.connect(*way, to="127.0.0.1"), place.directly(*way, to="127.0.0.1")
            equal(run.status, 0, "%s: %s" % (way, run.stderr))
            for ours, natives in zip(run.lines, direct.lines):
                for name in set(natives) - {"local", "call_ms", "connected_ms"}:
                    equal(ours.get(name), natives[name], "%s: %s, as without convertize; %s" % (way, name, run.stdout + run.stderr))
            check(run.logged("direct: the destination is this host"), run.stderr)
        run = place.connect(env={"CONVERT_BYPASS": place.lab.server.addr4})
        equal((run.lines[0]["answer"], run.lines[0]["protocol"]), ("hello", TCP), run.stderr)


def test_fallback():
    """Without a converter: a direct connection over plain TCP, or an error; likewise with a silent one, after CONVERT_TIMEOUT."""
    with bench(converter=False) as place:
        for way in ([], ["nonblocking"], ["fastopen"]):
            run = place.connect(*way)
            equal((run.lines[0].get("answer"), run.lines[0].get("protocol")), ("hello", TCP), run.stdout + run.stderr)
            check(run.logged("direct, the converter fails"), run.stderr)
            run = place.connect(*way, options=["--fallback", "none"])
            equal((run.status, run.lines[0].get("error")), (1, "Connection refused"), run.stdout + run.stderr)
        run = place.connect("nonblocking", env={"CONVERT_ADDR": place.lab.addresses.blackhole4, "CONVERT_TIMEOUT": "4"})
        equal((run.lines[0].get("answer"), run.lines[0].get("protocol")), ("hello", TCP), run.stdout + run.stderr)
        # the default is 3 s
        check(float(run.lines[0]["connected_ms"]) >= 4000, "connected before CONVERT_TIMEOUT: " + run.stdout + run.stderr)


INHERITS = """
import os, socket, sys
sock = socket.socket()
sock.setblocking("nonblocking" not in sys.argv)
os.dup2(sock.fileno(), 9)
os.execvp(sys.argv[1], sys.argv[1:])
"""


def test_inherited_socket():
    """The supervisor can't replace a socket that it hasn't made: the socket stays TCP, serves each attempt, and gets the connection."""
    with bench() as place:
        server, nowhere = place.lab.server.addr4, place.lab.addresses.unreachable4
        for way in (["inherited"], ["inherited", "nonblocking"]):
            for env, verdict in ({}, "converted over TCP"), ({"CONVERT_ADDR": nowhere}, "direct, the converter fails"):
                run = Run(place.lab.client.run(["python3", "-c", INHERITS, place.convertize, place.client, server, PORT, *way],
                                               env=place.env(**env), check=False))
                equal([(line.get("answer"), line.get("peer"), line.get("protocol")) for line in run.lines],
                      [("hello", "%s:%s" % (server, PORT), TCP)], "%s, %s:\n%s" % (way, verdict, run.stdout + run.stderr))
                check(run.logged(verdict) and "never writable" not in run.stderr, run.stderr)


def test_several_converters():
    """The first one refuses connections: the second one is asked, on the same socket."""
    with bench() as place:
        closed = "%s:%s" % (place.lab.server.addr4, CLOSED)
        run = place.connect("nonblocking", env={"CONVERT_ADDR": "%s,%s" % (closed, place.lab.converter.addr4),
                                                "CONVERT_BYPASS": "10.99.0.0/16"}, to=place.lab.server.addr4)
        # the server's host is a converter's now, so connections to it aren't converted
        equal(run.lines[0]["answer"], "hello", run.stderr)
        closed = "%s:%s" % (place.lab.converter.addr4, CLOSED)
        run = place.connect("nonblocking", env={"CONVERT_ADDR": "%s,%s" % (closed, place.lab.converter.addr4)})
        converted(run, place.lab.server.addr4)
        check(run.logged("converter %s: Connection refused" % closed), run.stderr)


def test_losses():
    """At 5 % loss each connection succeeds, and gets the server's answer. None is direct on an MPTCP socket."""
    with bench(wifi=Link(delay_ms=5, loss=0.05)) as place:
        for way in ([], ["nonblocking"]):
            count = repetitions(20)
            run = place.connect("threads=%d" % count, *way, timeout=120)
            equal([line.get("answer") for line in run.lines], ["hello"] * count, run.stdout + run.stderr)
            direct = run.logged(": direct")
            equal(sum(line["protocol"] == MPTCP for line in run.lines), run.logged("converted over MPTCP"), run.stderr)
            check(run.logged("converted over ") + direct == count, run.stderr)


@kernel.needs("fastopen")
def test_blind():
    """Once the cache says that the converter takes blind requests, a non-blocking connect() in any process makes one.

    Refusals come as from the network. For a blocking connect() the SYN+ACK confirms the server, silently.
    """
    with bench() as place:
        cache = {"CONVERT_CACHE": place.lab.directory}
        converted(place.connect(env=cache), place.lab.server.addr4)
        run = place.connect("threads=8", "nonblocking", env=cache)
        converted(run, place.lab.server.addr4, count=8)
        equal(run.logged("request in the SYN, blindly"), 8, run.stderr)
        run = place.connect("nonblocking", env=cache, port=CLOSED)
        equal((run.status, run.lines[0].get("error")), (1, "Connection refused"), run.stdout + run.stderr)
        run = place.connect(env=cache)
        converted(run, place.lab.server.addr4)
        check(run.logged("server confirmed by the SYN+ACK, silently"), run.stderr)
        run = place.connect("nonblocking", env={**cache, "CONVERT_SILENCE": "never"})
        converted(run, place.lab.server.addr4)
        check(not run.logged("blindly"), run.stderr)


def test_blind_where_no_data_is_taken():
    """By the kernel's default of net.ipv4.tcp_fastopen the converter's host takes no data in SYNs, or a middlebox removes it.

    No connection fails: the supervisor makes no blind requests then, which have only their SYN.
    """
    for sysctl, stripped in ((1, False), (3, True)):
        with bench(converter=False, wifi=Link(delay_ms=5, strip_syn_data=stripped)) as place:
            place.lab.converter.sysctl("net.ipv4.tcp_fastopen", sysctl)
            place.lab.convertd()
            for _ in range(4):
                converted(place.connect("nonblocking", env={"CONVERT_CACHE": place.lab.directory}), place.lab.server.addr4)


@long
@waits
@kernel.needs("fastopen")
def test_refused():
    """Refusals of servers are no reason against blind requests, whether others have succeeded before or not."""
    count = 40
    tally = c_program("streams-static", "static/tally.c", flags=["-static"])
    for known in (True, False):
        with bench(wifi=Link(delay_ms=25)) as place:  # refused sooner than the supervisor looks again
            cache = {"CONVERT_CACHE": place.lab.directory}
            if known:
                converted(place.connect(env=cache), place.lab.server.addr4)
            run = place.run(tally, place.lab.server.addr4, "chorus", str(count), "2", "epoll", env=cache, options=["--method", "supervise"])
            check("errno-%d=%d" % (errno.ECONNREFUSED, count) in run.stdout, run.stdout + run.stderr)
            # with an empty cache the first ones wait until the converter has answered
            check(run.logged("blindly") >= (count if known else count - 5), run.stderr)


@kernel.needs("fastopen")
def test_refused_by_the_converter():
    """The supervisor connects directly to a destination that the converter refuses, for which a blind request would fail.

    It makes blind requests for private addresses, which most converters refuse, only after an answer; for others until one has failed.
    """
    elsewhere = "44.0.0.1"  # no special address; it exists only in the lab
    with bench(converter=False) as place:
        server = place.lab.server
        place.lab.convertd(["--allow-client", "::/0", "--allow-destination", server.addr4 + "/32", "--deny-destination", elsewhere],
                           defaults=("--max-errors", "0", "--max-errors-per-client", "0"))
        server.ip("addr add %s/32 dev lo" % elsewhere)
        place.lab.converter.ip("route add %s via %s" % (elsewhere, server.core4))
        cache = {"CONVERT_CACHE": place.lab.directory}
        converted(place.connect("nonblocking", env=cache), server.addr4)
        run = place.connect("nonblocking", env=cache)
        converted(run, server.addr4)
        equal(run.logged("blindly"), 1, run.stderr)
        for _ in range(2):  # the second one knows of the refusal
            run = place.connect("nonblocking", to=server.core4, env=cache)
            equal((run.status, run.lines[0].get("answer"), run.logged("direct")), (0, "hello", 1), run.stdout + run.stderr)
        run = place.run("sh", "-c", "until \"$@\"; do :; done; \"$@\"", "sh", place.client, elsewhere, PORT, "nonblocking", env=cache,
                        options=["--method", "supervise"], timeout=20)
        said = [line.get("error") or line.get("answer") for line in run.lines]
        equal((set(said[:-2]), said[-2:]), ({"No route to host"}, ["hello", "hello"]), run.stdout + run.stderr)
        converted(place.connect("nonblocking", env=cache), server.addr4)  # its answer clears the doubt that failed requests leave of a path
        run = place.connect("nonblocking", env=cache, port=CLOSED)
        equal((run.lines[0].get("error"), run.logged("blindly")), ("Connection refused", 1), run.stdout + run.stderr)


def test_addresses_of_this_host():
    """Connections to this host's own addresses are direct, as the converter may not reach them; also preloaded. Others are converted."""
    with bench() as place:
        client = place.lab.client
        place.lab.serve("echo", int(PORT), client)
        client.ip("addr add 44.0.0.1/32 dev lo", "addr add 10.1.0.77/24 dev wifi")
        dynamic = build("dynamic", place.place)
        for address in (client.wifi4, client.wifi6, "44.0.0.1", "10.1.0.77", place.lab.server.addr4):
            for words in ([], ["nonblocking"]):
                for program in (place.client, dynamic):
                    run = place.run(program, address, PORT, *words)
                    here = address != place.lab.server.addr4
                    equal((run.lines[0].get("answer"), run.logged("direct: the destination is this host"), run.logged("converted")),
                          ("hello", int(here), int(not here)), "%s: %s" % (address, run.stdout + run.stderr))


def test_waits_of_its_own():
    """A program that waits for its sockets past the C library, as Bun does, is supervised: it is connected once the server has answered.

    Preloaded, it would take the converter's SYN+ACK for the server's.
    """
    count = 8
    tally = c_program("own-waits", "static/tally.c", flags=["-DOWN_WAITS", "-I", os.path.join(SRCDIR, "src")])
    with bench(wifi=Link(delay_ms=25)) as place:
        for server, done in (("chorus", 0), ("echo", count)):
            run = place.run(tally, place.lab.server.addr4, server, str(count), "2", "epoll")
            check("waits for sockets by system calls of its own" in run.stderr, run.stderr)
            check("done=%d failed=%d foreign=0 peers=0 early=0 " % (done, count - done) in run.stdout, run.stdout + run.stderr)
            check(done or "errno-%d=%d" % (errno.ECONNREFUSED, count) in run.stdout, run.stdout + run.stderr)


@long
@kernel.needs("fastopen")
def test_advice():
    """Options that MPTCP refuses behave as on TCP. One that changes the connection's packets keeps it on TCP."""
    for kind in ("static", "i386"):
        with bench(kind) as place:
            place.lab.echo(host=place.lab.client)
            for to, shown in ((place.lab.server.addr4, MPTCP), ("127.0.0.1", TCP)):
                run = place.connect("advice", to=to)
                direct = place.directly("advice", to=to)
                check(not [line for line in run.stderr.splitlines() if "setsockopt" in line], run.stderr)
                for ours, natives in zip(run.lines, direct.lines):
                    for name in set(natives) & {"timeout", "syncnt", "hops", "wrong"}:
                        equal(ours.get(name), natives[name], "%s: %s; %s" % (to, name, run.stdout + run.stderr))
                equal((run.lines[-1].get("answer"), run.lines[-1].get("protocol")), ("hello", shown), run.stdout + run.stderr)
            run = place.connect("ttl")
            equal((run.lines[0].get("answer"), run.lines[0].get("protocol")), ("hello", TCP), run.stdout + run.stderr)
            equal(run.logged("converted over TCP"), 1, run.stderr)


def test_listen():
    """A program that listens has a TCP socket, with its address, mode, and registrations, as without convertize."""
    for kind in ("static", "i386"):
        with bench(kind) as place:
            run, direct = place.connect("listen"), place.directly("listen")
            equal(run.lines, direct.lines, run.stdout + run.stderr)
            equal((run.lines[0]["listener"], run.lines[0]["data"]), (TCP, "77"), run.stdout)


def test_io_uring():
    """io_uring, which would go past the supervisor, isn't there."""
    with bench() as place:
        run = place.connect("uring")
        check("uring=Function not implemented" in run.stdout, run.stdout)


@kernel.needs("fastopen")
def test_x32():
    """x32's calls, with amd64's architecture and other numbers, don't bypass the supervisor, even if the kernel has none of them."""
    if os.uname().machine != "x86_64":
        raise Unsuitable("x32 is amd64's")
    with bench() as place:
        converted(place.connect("x32"), place.lab.server.addr4)


if __name__ == "__main__":
    main()
