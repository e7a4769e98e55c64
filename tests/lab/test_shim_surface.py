#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_shim_surface.py - every call that an application makes on a socket answers as it does without the shim

Programs under apps/ write down all that they see. Each runs directly and under the shim, and the two must agree.
"""
import difflib
import os

from convertlab import Lab, Link, Unsuitable, check, equal, main
from convertlab.build import Build


def program(name):
    """A C program under apps/, as it was built."""
    return os.path.join(Build().directory, "tests", "lab", "apps", name)


def same(direct, converted, what):
    """Fails the test with what differs of two transcripts."""
    changes = [line for line in difflib.unified_diff(direct.splitlines(), converted.splitlines(), lineterm="", n=0)
               if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    check(not changes, "%s: without the shim (-) and with it (+):\n%s" % (what, "\n".join(changes)))
    check(direct.strip(), "%s says nothing" % what)


def lab_for(**options):
    return Lab(wifi=Link(delay_ms=10), lte=None, core=Link(delay_ms=20), **options)


def test_local_sockets():
    """Sockets that aren't connected, listeners, loopback: real TCP at both ends, whatever is set on them."""
    with lab_for() as lab:
        for family in ("4", "6"):
            command = [program("surface_local"), family]
            direct, converted = (lab.client.run(command, env=env).stdout for env in (None, lab.converted()))
            same(direct, converted, "surface_local %s" % family)
            equal(direct.count("MPTCP"), 0, "MPTCP sockets in\n" + direct)


def remote(lab, kind, address, port, *, converted=()):
    """surface_remote directly and under the shim, there with more arguments; by library calls and by syscall()."""
    for name in ("surface_remote", "surface_syscall"):
        command = [program(name), kind, address, port]
        direct = lab.client.run(command).stdout
        same(direct, lab.client.run(command + list(converted), env=lab.converted()).stdout,
             " ".join([name, kind, address, str(port), *converted]))


def test_pending():
    """A server that never answers, through a converter that has answered already, or has not yet."""
    with lab_for() as lab:
        lab.convertd(["--hold-syn", "off"])  # each answer would take --hold-time
        for address in (lab.addresses.blackhole4, lab.addresses.blackhole6):
            for converted in ((), ("answered",)):
                remote(lab, "silent", address, 80, converted=converted)


def interrupts(scenes):
    with lab_for() as lab:
        lab.convertd()
        command = [program("surface_interrupts"), scenes, lab.addresses.blackhole4, 80]
        direct, converted = (lab.client.run(command, env=env).stdout for env in (None, lab.converted()))
        same(direct, converted, "surface_interrupts")


def test_signals():
    """They interrupt calls that wait, and their handlers call them."""
    interrupts("signals")


def test_cancellation():
    """Threads are cancelled in calls that wait, and their sockets stay as they were."""
    if os.environ.get("SANITIZER_PRELOAD"):
        raise Unsuitable("not under sanitizers: they take what cancelled functions had on their stack for what is there now")
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


if __name__ == "__main__":
    main()
