#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_shim_confined.py - properties that a socket or a program has before connect() hold for a connection through the shim

Signals about the socket, its owner, its network namespace, and the rights that Landlock has left the program: apps/signal_probe.py and
apps/confined_probe.py run directly and under the shim.
"""
import os

from convertlab import Lab, Link, Skip, check, equal, long, main, side_by_side
from test_silence_shim import SILENTLY, learn

APPS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "apps")
SIGNALS = ["before", "ioctl", "process-group", "duplicate", "pending", "pending-ioctl"]


def lab_for():
    return Lab(wifi=Link(delay_ms=20), lte=None, core=Link(delay_ms=20))


def probe(lab, env, name, *arguments):
    result = lab.client.run(["python3", os.path.join(APPS, name), *arguments], env=env, check=False)
    if result.returncode == 77:
        raise Skip("the kernel has no Landlock for networks")
    return result.stdout + result.stderr


@long
def test_signals():
    """O_ASYNC: the first signal comes when the server was reached, also to a client that knows of silent requests."""
    with lab_for() as lab:
        lab.convertd()
        lab.echo()
        for learned in (False, True):
            env = lab.remembering() if learned else lab.converted()
            if learned:
                learn(lab, env)
            for address in (lab.server.addr4, lab.server.addr6):
                direct, converted = (side_by_side(lambda way, env=env, address=address: probe(lab, env, "signal_probe.py", way, address, "7"),
                                                  SIGNALS) for env in (None, env))
                for way, there, here in zip(SIGNALS, direct, converted):
                    check("connected: SI" in there, there)
                    equal(here, there, "%s to %s" % (way, address))
        check(SILENTLY not in lab.shim_log().split("waits for signals", 1)[1], lab.shim_log())


def test_signals_where_nothing_may_be_direct():
    with lab_for() as lab:
        lab.convertd()
        lab.echo()
        env = lab.remembering(CONVERT_FALLBACK="none")
        learn(lab, env)
        equal(probe(lab, env, "signal_probe.py", "before", lab.server.addr4, "7"),
              probe(lab, None, "signal_probe.py", "before", lab.server.addr4, "7"), "before connect()")
        check("direct" not in lab.shim_log(), lab.shim_log())


def test_owner():
    """To firewalls and routing rules a socket belongs to the user who made it, not to the one who connects it."""
    with lab_for() as lab:
        lab.convertd()
        lab.echo()
        for way, owner in (("user", "0"), ("given", "1234")):
            direct = probe(lab, None, "confined_probe.py", way, lab.server.addr4, "7")
            equal(direct, "connect 0\necho b'hello'\nowner %s %s\n" % (owner, owner), "directly, " + way)
            converted = probe(lab, lab.converted(), "confined_probe.py", way, lab.server.addr4, "7")
            equal(converted, direct, way)
        check("converted over TCP" in lab.shim_log(), lab.shim_log())


def test_another_network_namespace():
    with lab_for() as lab:
        lab.convertd()
        lab.echo()
        direct, converted = (probe(lab, env, "confined_probe.py", "network", lab.server.addr4, "7") for env in (None, lab.converted()))
        equal(direct, "connect 0\necho b'hello'\n", "directly")
        equal(converted, direct, "converted")


def test_landlock():
    """Landlock must permit the server's port, as for connect(); if it forbids the converter's port, the connection is direct."""
    with lab_for() as lab:
        lab.convertd()
        lab.echo()
        for way in ("landlock", "landlock-privileged"):
            before = lab.shim_log()
            for ports, seen, said in ((["1234"], "connect EACCES\n", ""),
                                      (["7", "1234"], "connect 0\necho b'hello'\n", "converted over MPTCP"),
                                      (["7"], "connect 0\necho b'hello'\n", "direct: Permission denied")):
                for env in (None, lab.converted()):
                    equal(probe(lab, env, "confined_probe.py", way, lab.server.addr4, "7", *ports), seen, "%s, %s" % (way, ports))
                log = lab.shim_log()
                check(said in log[len(before):] and (said or log == before), "%s, %s:\n%s" % (way, ports, log))
                before = log
            closed = lab.converted(CONVERT_FALLBACK="none")
            equal(probe(lab, closed, "confined_probe.py", way, lab.server.addr4, "7", "7"), "connect EACCES\n", "fail closed, " + way)


if __name__ == "__main__":
    main()
