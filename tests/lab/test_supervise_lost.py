#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_supervise_lost.py - the supervisor makes a blind request again if its SYN or SYN+ACK is lost, before the kernel repeats the SYN"""
from convertlab import check, equal, kernel, main, measured, measures
from convertlab.supervised import CLOSED, SYN, SYNACK, bench, converted
from test_supervise_late import CONNECTS, SUPERVISE


@measures
@kernel.needs("fastopen")
def test_lost_syns():
    """The supervisor makes a lost blind request again, with its data. The program's epoll instance reports only the connection, and later
    requests are blind as well."""
    count = 8
    with bench() as place:
        cache = {"CONVERT_CACHE": place.lab.directory}
        converted(place.connect(env=cache), place.lab.server.addr4)
        for packets in SYN, SYNACK:
            with place.losing(count, packets):
                run = place.connect("threads=%d" % count, "nonblocking", env=cache)
            converted(run, place.lab.server.addr4, count=count)
            equal([run.logged("blindly"), run.logged("asked again")], [count, count], run.stderr)
        run = place.connect("nonblocking", env=cache)
        converted(run, place.lab.server.addr4)
        equal(run.logged("blindly"), 1, run.stderr)


@measures
@kernel.needs("fastopen")
@kernel.needs("calls")
def test_lost_often():
    """The supervisor makes requests again several times while threads wait by poll(), which reports only the connection."""
    count, times = 12, 5
    with bench() as place:
        cache = {"CONVERT_CACHE": place.lab.directory}
        converted(place.connect(env=cache), place.lab.server.addr4)
        with place.losing(times * count):
            run = place.connect("threads=%d" % count, "poll", env=cache)
        converted(run, place.lab.server.addr4, count=count)
        equal(run.logged("blindly"), count, run.stderr)
        check(run.logged("asked again") >= 3 * count, run.stderr)  # probes of the path are lost, too


@measures
@kernel.needs("fastopen")
def test_blind_by_another_family():
    """Blind requests also go to a converter of the other family than the program's sockets, and a lost one is made again.

    The stand-in takes the socket's descriptors and registrations before connect() returns.
    """
    count = 4
    with bench() as place:
        env = {"CONVERT_CACHE": place.lab.directory, "CONVERT_ADDR": "[%s]" % place.lab.converter.addr6}
        converted(place.connect(env=env), place.lab.server.addr4)
        for way in ([], ["poll"], ["dup"]):
            run = place.connect(*(["nonblocking"] + way if way != ["poll"] else way), env=env)
            converted(run, place.lab.server.addr4)
            equal(run.logged("request in the SYN, blindly"), 1, run.stderr)
        with place.losing(count):
            run = place.connect("threads=%d" % count, "nonblocking", env=env)
        converted(run, place.lab.server.addr4, count=count)
        equal([run.logged("blindly"), run.logged("asked again")], [count, count], run.stderr)
        run = place.connect("nonblocking", env=env, port=CLOSED)
        equal((run.status, run.lines[0].get("error")), (1, "Connection refused"), run.stdout + run.stderr)


# as CONNECTS, but waits for the echo
ECHOES = CONNECTS + """
    import select
    poller = select.poll()
    poller.register(sock, select.POLLOUT)
    poller.poll(20000)
    sock.send(b"hello")
    sock.setblocking(True)
    print(sock.recv(5).decode())
"""


@measures
@kernel.needs("fastopen")
def test_lost_on_a_chosen_device():
    """The supervisor also makes a lost blind request again if the program has bound its socket to a device."""
    with bench() as place:
        program = ["python3", "-c", ECHOES, place.lab.server.addr4]
        place.run(*program, "any", options=SUPERVISE, env={"CONVERT_CACHE": place.lab.directory})
        with place.losing(1):
            run = place.run(*program, "wifi", options=SUPERVISE, env={"CONVERT_CACHE": place.lab.directory})
        equal((run.stdout, run.logged("blindly"), run.logged("asked again")), ("hello\n", 1, 1), run.stderr)


# gives the supervisor fewer descriptors than the program uses
FEW_DESCRIPTORS = CONNECTS + """
    import os, resource, select
    resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (64, 64))
    os.dup2(sock.fileno(), 100)
    sock.close()
    poller = select.epoll()
    poller.register(100, select.EPOLLOUT)
    poller.poll(20)
"""


@measures
@kernel.needs("fastopen")
def test_too_few_descriptors():
    """The supervisor lacks descriptors for making a request again, and ends with its program all the same."""
    with bench() as place:
        program = ["python3", "-c", ECHOES, place.lab.server.addr4, "any"]
        place.run(*program, options=SUPERVISE, env={"CONVERT_CACHE": place.lab.directory})
        program[2] = FEW_DESCRIPTORS
        with place.losing(1, repeatable=False):
            run = place.run(*program, options=SUPERVISE, env={"CONVERT_CACHE": place.lab.directory}, timeout=30)
        equal(run.status, 0, run.stderr)
        measured(run.logged("the SYN can't be sent again") == 1, run.stderr)


if __name__ == "__main__":
    main()
