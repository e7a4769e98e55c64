#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_shim_semantics.py - a connection through the shim looks as one without it, call by call

apps/connect_probe.py writes down all that it sees; it runs directly and under the shim, and the two must agree.
"""
import os
import subprocess

from convertlab import Lab, Link, check, equal, kernel, long, main, patience, side_by_side, waits
from convertlab.waiting import wait_until

PROBE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "apps", "connect_probe.py")
WAYS = ["blocking", "poll", "select", "epoll", "epoll-edge", "epoll-once", "epoll-sole", "epoll-before", "epoll-dup", "epoll-past",
        "epoll-tried", "connect"]


def probe(lab, way, address, port, env=None):
    """(the transcript as lines, milliseconds until connect() was answered)"""
    result = lab.client.run(["python3", PROBE, way, address, port], env=env)
    return result.stdout.splitlines(), float(result.stderr.split()[-1])


def lab_for(**options):
    return Lab(wifi=Link(delay_ms=10), lte=None, core=Link(delay_ms=20), **options)


def slow_lab(**options):
    """For transcripts of events before the answer, which takes longer than a program waits for a CPU."""
    return Lab(wifi=Link(delay_ms=60, **options), lte=None, core=Link(delay_ms=60))


def comparable(transcript):
    """A transcript without the differences that the kernel itself makes."""
    # a waiter that wakes between the error and the end of the connection sees the error alone
    return ["wait [error]" if line.startswith("wait [") and "ERR" in line else line for line in transcript]


def compare(lab, address, port, ways=WAYS):
    direct, converted = (side_by_side(lambda way, env=env: comparable(probe(lab, way, address, port, env)[0]), ways)
                         for env in (None, lab.converted()))
    for way, there, here in zip(ways, direct, converted):
        equal("\n".join(here), "\n".join(there), "%s to %s port %d" % (way, address, port))


@long
@waits
def test_success():
    with slow_lab() as lab:
        lab.convertd()
        lab.echo()
        for address in (lab.server.addr4, lab.server.addr6):
            compare(lab, address, 7)
        log = lab.shim_log()
        equal(log.count(kernel.verdict()), 2 * len(WAYS), "conversions in\n" + log)


@long
@waits
def test_refused():
    with slow_lab() as lab:
        lab.convertd()
        for address in (lab.server.addr4, lab.server.addr6):
            compare(lab, address, lab.addresses.refused_port)
        log = lab.shim_log()
        equal(log.count("failed: Connection Reset"), 2 * len(WAYS), "refusals in\n" + log)


@long
@waits
def test_unreachable():
    with slow_lab() as lab:
        lab.convertd()
        for address in (lab.addresses.unreachable4, lab.addresses.unreachable6, lab.addresses.prohibited4,
                        lab.addresses.prohibited6, lab.addresses.noroute4, lab.addresses.noroute6):
            compare(lab, address, 80, ways=["blocking", "poll", "epoll-edge"])
        log = lab.shim_log()
        equal(log.count("failed: Destination Unreachable"), 12, "unreachable in\n" + log)
        # the host may have a route that the converter lacks
        equal(log.count("direct, the converter fails: Not Authorized"), 6, "without a route in\n" + log)


def test_writable_only_once_the_server_has_been_reached():
    """20 ms to the converter and 40 from there: the application waits for all 60, by any call."""
    with lab_for() as lab:
        lab.convertd()
        lab.echo()
        for way in WAYS:
            for port in (7, lab.addresses.refused_port):
                _, ms = probe(lab, way, lab.server.addr4, port, env=lab.converted())
                check(ms >= 59.5, "%s, port %d: told after %.1f ms, before the server can have answered" %
                      (way, port, ms))


def test_registration_out_of_reach():
    """One that the shim can't change, or that changes again: writable at the SYN+ACK; no byte of the response, errors at the first look."""
    with lab_for() as lab:
        lab.convertd()
        lab.echo()
        for way in ("epoll-exclusive", "epoll-changed"):
            said, _ = probe(lab, way, lab.server.addr4, 7, env=lab.converted())
            equal(said[-3:], ["answer b'hello'", "end b''", "close None"], "the stream")
            check(way != "epoll-changed" or "events IN|OUT" in said, "its own registration is gone:\n" + "\n".join(said))
            said, _ = probe(lab, way, lab.server.addr4, lab.addresses.refused_port, env=lab.converted())
            check("SO_ERROR ECONNREFUSED" in said, "refused:\n" + "\n".join(said))


@long
@waits
def test_interrupted_connects():
    """Signals, time-outs and forks while a connection is pending."""
    program = os.path.join(os.path.dirname(PROBE), "interrupt_probe.py")
    with Lab(wifi=Link(delay_ms=60), lte=None, core=Link(delay_ms=patience(60))) as lab:
        lab.convertd()
        lab.echo()
        for case in ("signal", "restart", "timeout", "receive-timeout", "child", "parent"):
            direct, converted = (lab.client.run(["python3", program, case, lab.server.addr4, 7], env=env).stdout
                                 for env in (None, lab.converted()))
            equal(converted, direct, case)
        equal(lab.shim_log().count("converted over MPTCP"), 6, "conversions in\n" + lab.shim_log())


LEAVES_UNSEEN = """
import os, socket, sys
sock = socket.socket()
sock.setblocking(False)
sock.connect_ex((sys.argv[1], 7))
print("asked", flush=True)
sys.stdin.readline()
number = sock.detach()
if sys.argv[2] == "close":
    os.close(number)
"""


@kernel.needs("fastopen")  # otherwise the request leaves only when the application looks
def test_closed_before_a_look():
    """The kernel has the response, and the application hasn't asked: the server sees a regular end."""
    with lab_for() as lab:
        lab.convertd()
        echo = lab.echo()
        for how in ("close", "exit"):
            client = lab.client.popen(["python3", "-c", LEAVES_UNSEEN, lab.server.addr4, how], env=lab.converted(),
                                      stdin=subprocess.PIPE, text=True)
            wait_until(lambda: received(lab.client), what="the response to %s" % how)
            client.communicate("\n")
        wait_until(lambda: echo.log_text().count("bytes=0") == 2, what=echo.log_text)
        equal(echo.log_text().count("bytes=0 eof"), 2, "ends in\n" + echo.log_text())


def received(host):
    """How many bytes the host's MPTCP sockets have for programs to read."""
    sockets = host.run(["ss", "--no-header", "--mptcp", "--numeric"]).stdout.splitlines()
    return sum(int(line.split()[1]) for line in sockets)


# A process with a second thread and 64 descriptors connects 40 sockets, registered before ("idle") or after connect(). Waits until each
# has had an event, and prints the numbers of its timers.
MANY_PENDING = """
import os, resource, select, socket, sys, threading
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
threading.Thread(target=threading.Event().wait, daemon=True).start()
waiting, sockets = select.epoll(), []
for _ in range(40):
    sock = socket.socket()
    sockets.append(sock)
    sock.setblocking(False)
    if sys.argv[2] == "idle":
        waiting.register(sock, select.EPOLLOUT)
    assert sock.connect_ex((sys.argv[1], 7)) == 115
    if sys.argv[2] != "idle":
        waiting.register(sock, select.EPOLLOUT)
os.close(os.open("/dev/null", os.O_RDONLY))
timers = []
for fd in range(64):
    if os.path.islink("/proc/self/fd/%d" % fd) and os.readlink("/proc/self/fd/%d" % fd) == "anon_inode:[timerfd]":
        timers.append(fd)
while sockets:
    for fd, _ in waiting.poll(20):
        waiting.unregister(fd)
        sockets.remove(next(sock for sock in sockets if sock.fileno() == fd))
print(*timers)
sys.stdout.flush()
os._exit(0)
"""


@waits
def test_few_descriptors():
    """Timers wake threads; they leave the upper half of the 64 descriptors for the application's own."""
    with lab_for() as lab:
        lab.echo()
        lab.converter.ip("route add blackhole 10.9.0.66")
        for when in ("idle", "pending"):
            env = lab.converted(CONVERT_ADDR="10.9.0.66", CONVERT_TIMEOUT="2")
            timers = lab.client.run(["python3", "-c", MANY_PENDING, lab.server.addr4, when], env=env).stdout.split()
            check(timers and all(int(number) < 32 for number in timers), "the timers of those registered when %s: %s" % (when, timers))


@kernel.needs("fastopen")
def test_no_deadline_no_timer():
    """A direct connection needs no timer: the server speaks Multipath TCP, as the converter told the first program."""
    with slow_lab() as lab:
        lab.convertd()
        lab.serve("mptcp-echo", 7)
        env = lab.converted(XDG_RUNTIME_DIR=lab.directory)
        probe(lab, "blocking", lab.server.addr4, 7, env)
        for when in ("idle", "pending"):
            equal(lab.client.run(["python3", "-c", MANY_PENDING, lab.server.addr4, when], env=env).stdout, "\n", when)
        equal(lab.shim_log().count("the server speaks Multipath TCP itself"), 80, "direct connections in\n" + lab.shim_log())


def test_local_destinations_are_not_converted():
    with lab_for() as lab:
        lab.convertd()
        lab.echo(host=lab.client)
        lab.echo(host=lab.converter)
        for address in ("127.0.0.1", "::1", lab.converter.addr4, lab.converter.addr6):
            compare(lab, address, 7, ways=["blocking"])
        check("converted" not in lab.shim_log(), lab.shim_log())


@long
@waits
def test_without_a_converter_all_is_direct():
    """No converter is set, the setting is wrong, or the converter is dead: the application works, and the log says why."""
    with lab_for() as lab:
        lab.echo()
        direct, _ = probe(lab, "blocking", lab.server.addr4, 7)
        for variables, reason in (({}, "CONVERT_ADDR is not set"),
                                  ({"CONVERT_ADDR": "10.9.0.300"}, "\"10.9.0.300\""),
                                  ({"CONVERT_ADDR": "10.9.0.1", "CONVERT_PORT": "x"}, "\"x\" is not a port"),
                                  ({"CONVERT_ADDR": "nosuch.invalid"}, "the converter's name"),
                                  ({"CONVERT_ADDR": "10.9.0.1"}, "the converter fails: Connection refused")):
            for way in ("blocking", "poll", "epoll", "epoll-before"):
                env = lab.shim_env(CONVERT_LOG="-", RES_OPTIONS="timeout:1 attempts:1", **variables)
                result = lab.client.run(["python3", PROBE, way, lab.server.addr4, "7"], env=env)
                check(reason in result.stderr, "%s, %s: %s" % (variables, way, result.stderr))
                if way == "blocking":
                    equal(result.stdout.splitlines(), direct, "%s, %s" % (variables, way))
                else:
                    check("answer b'hello'" in result.stdout, "%s, %s: %s" % (variables, way, result.stdout))


if __name__ == "__main__":
    main()
