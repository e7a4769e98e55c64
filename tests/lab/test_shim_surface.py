#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_shim_surface.py - every call of an application on a socket returns the same as without the shim

Programs under apps/ write transcripts. Each runs directly and under the shim, and the two transcripts must agree.
"""
import concurrent.futures
import contextlib
import difflib
import os

from convertlab import Lab, Link, Unsuitable, check, equal, kernel, long, main, waits
from convertlab.build import Build
from convertlab.peers import Client, connect


def program(name):
    """The path of a C program under apps/ in the build."""
    return os.path.join(Build().directory, "tests", "lab", "apps", name)


def same(direct, converted, what):
    """Fails the test with the differences of two transcripts."""
    changes = [line for line in difflib.unified_diff(direct.splitlines(), converted.splitlines(), lineterm="", n=0)
               if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    check(not changes, "%s: without the shim (-) and with it (+):\n%s" % (what, "\n".join(changes)))
    check(direct.strip(), "%s says nothing" % what)


def lab_for(**options):
    return Lab(wifi=Link(delay_ms=10), lte=None, core=Link(delay_ms=20), **options)


@contextlib.contextmanager
def lab_with_silence():
    """A lab for servers that never answer."""
    with lab_for() as lab:
        lab.convertd(["--hold-syn", "off"])  # otherwise each answer would take --hold-time
        # Where no server of a family has ever answered, convertd soon takes the family for broken, and sends clients elsewhere.
        for address in (lab.server.addr4, lab.server.addr6):
            with Client(lab.client, lab.converter.addr4).send(connect(address, lab.addresses.refused_port)) as client:
                check(client.answer(), "convertd hasn't answered")
        yield lab


def test_local_sockets():
    """Sockets that aren't connected, listeners, loopback: TCP at both ends, with any options."""
    with lab_for() as lab:
        for family in ("4", "6"):
            command = [program("surface_local"), family]
            direct, converted = (lab.client.run(command, env=env).stdout for env in (None, lab.converted()))
            same(direct, converted, "surface_local %s" % family)
            equal(direct.count("MPTCP"), 0, "MPTCP sockets in\n" + direct)


def remote(lab, kind, address, port, *, converted=()):
    """Compares surface_remote directly and under the shim, there with more arguments; also by syscall(), whose connections stay direct."""
    for name, more in (("surface_remote", list(converted)), ("surface_syscall", [])):
        command = [program(name), kind, address, port]
        direct = lab.client.run(command).stdout
        same(direct, lab.client.run(command + more, env=lab.converted()).stdout, " ".join([name, kind, address, str(port), *more]))


@kernel.needs("calls")
def test_pending():
    """A server that never answers, through a converter that has answered already, or has not yet."""
    with lab_with_silence() as lab:
        for address in (lab.addresses.blackhole4, lab.addresses.blackhole6):
            for converted in ((), ("answered",)):
                remote(lab, "silent", address, 80, converted=converted)


def interrupts(scenes):
    kernel.need("calls")
    with lab_for() as lab:
        lab.convertd()
        command = [program("surface_interrupts"), scenes, lab.addresses.blackhole4, 80]
        direct, converted = (lab.client.run(command, env=env).stdout for env in (None, lab.converted()))
        same(direct, converted, "surface_interrupts")


@long
@waits
def test_signals():
    """Signals interrupt calls that wait, and their handlers make such calls."""
    interrupts("signals")


def test_cancellation():
    """Cancellation ends threads in calls that wait, and their sockets stay as they were."""
    if os.environ.get("SANITIZER_PRELOAD"):
        raise Unsuitable("not under sanitizers: they take the stack of cancelled functions for the present one")
    interrupts("cancellation")


def test_refused():
    with lab_for() as lab:
        lab.convertd()
        for address in (lab.server.addr4, lab.server.addr6):
            remote(lab, "refused", address, lab.addresses.refused_port)


def test_echo():
    with lab_for() as lab:
        lab.convertd()
        lab.echo()
        for address in (lab.server.addr4, lab.server.addr6):
            remote(lab, "echo", address, 7)


BOUND = """
import socket, sys
mine, server, when = sys.argv[1:]
NO_PORT = 24 # IP_BIND_ADDRESS_NO_PORT
with socket.socket() as sock:
    if when == "before":
        sock.setsockopt(socket.IPPROTO_IP, NO_PORT, 1)
        sock.bind((mine, 0))
    sock.connect((server, 7))
    print(sock.getsockopt(socket.IPPROTO_IP, NO_PORT), sock.getsockname()[0])
    sock.setsockopt(socket.IPPROTO_IP, NO_PORT, when == "behind")
    print(sock.getsockopt(socket.IPPROTO_IP, NO_PORT))
    sock.sendall(b"hello")
    print(sock.recv(5))
"""


def test_ports_that_are_chosen_late():
    """IP_BIND_ADDRESS_NO_PORT before or after connect(): converted, also with Linux 6.1, whose MPTCP sockets refuse the option."""
    with lab_for() as lab:
        lab.convertd()
        lab.echo()
        for env in (lab.converted(), lab.build.on_older_linux(lab.converted())):
            for when in ("before", "behind"):
                command = ["python3", "-c", BOUND, lab.client.wifi4, lab.server.addr4, when]
                same(lab.client.run(command).stdout, lab.client.run(command, env=env).stdout, "IP_BIND_ADDRESS_NO_PORT %s connect()" % when)
        equal(lab.shim_log().count("converted over MPTCP"), 4, "conversions in\n" + lab.shim_log())


BAD_CALLS_ROWS = 2400  # at least; musl has the fewest, without those of sendmmsg() and recvmmsg()
BAD_CALLS_SHARES = 4  # of the rows, side by side: they mostly wait for the server


def bad_calls(lab, scene, *server, **environment):
    """Compares calls with bad pointers and lengths, directly and under the shim."""
    if os.environ.get("SANITIZER_PRELOAD"):
        raise Unsuitable("not under sanitizers: they follow the pointers before the kernel does")
    runs = [(env, share) for env in (environment, lab.converted(BAD_CALLS_CONVERTED="1", **environment))
            for share in range(BAD_CALLS_SHARES)]

    def transcript(run):
        env, share = run
        return lab.client.run([program("bad_calls"), scene, *server, share, BAD_CALLS_SHARES], env=env, timeout=120).stdout

    with concurrent.futures.ThreadPoolExecutor(len(runs)) as pool:
        transcripts = list(pool.map(transcript, runs))
    direct, converted = "".join(transcripts[:BAD_CALLS_SHARES]), "".join(transcripts[BAD_CALLS_SHARES:])
    same(direct, converted, " ".join(["bad_calls", scene, *map(str, server)]))
    check(direct.count("\n") >= BAD_CALLS_ROWS, "no more than %d rows of %s" % (direct.count("\n"), scene))


@long
def test_bad_calls_elsewhere():
    """On descriptors that don't concern the shim."""
    with lab_for() as lab:
        for scene in ("closed", "pipe", "unix"):
            bad_calls(lab, scene, lab.addresses.blackhole4, 80)


def test_bad_calls_idle():
    with lab_with_silence() as lab:
        bad_calls(lab, "idle", lab.addresses.blackhole4, 80)


@long
def test_bad_calls_pending():
    with lab_with_silence() as lab:
        for scene in ("pending", "answered", "beside"):
            bad_calls(lab, scene, lab.addresses.blackhole4, 80)


def test_bad_calls_held():
    with lab_with_silence() as lab:
        bad_calls(lab, "held", lab.addresses.blackhole4, 80)


@long
def test_bad_calls_sandboxed():
    """In a sandbox that forbids the system calls that copy memory of processes."""
    with lab_with_silence() as lab:
        for scene in ("idle", "pending", "held"):
            bad_calls(lab, scene, lab.addresses.blackhole4, 80, BAD_CALLS_SANDBOX="1")


def near_lab():
    """A fast lab for scenes that wait for a server some ten thousand times."""
    return Lab(wifi=Link(delay_ms=1), lte=None, core=None)


@long
def test_bad_calls_refused():
    with near_lab() as lab:
        lab.convertd()
        for scene in ("refused", "over"):
            bad_calls(lab, scene, lab.server.addr4, lab.addresses.refused_port)


@long
def test_bad_calls_connected():
    with near_lab() as lab:
        lab.convertd()
        lab.echo()
        for address in (lab.server.addr4, lab.server.addr6):
            bad_calls(lab, "connected", address, 7)


if __name__ == "__main__":
    main()
