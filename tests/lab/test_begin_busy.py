#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_begin_busy.py - a busy converter or machine isn't a dead path: no connection is moved, and the converter sees none twice"""
import os
import signal

from convertlab import Link, equal, kernel, long, main, wait_until, waits
from convertlab.peers import asked_to_connect
from test_begin import curl, lab_for, remembering
from test_supervise_begin import Supervised

PROBES_COUNTED = """table netdev counted {
 chain in { type filter hook ingress device lte priority 0; tcp dport 1234 tcp flags & (syn | ack) == syn tcp option mptcp missing counter name probes; }
 counter probes { }
}"""


def probes_on_lte(lab):
    said = lab.converter.run(["nft", "list", "counter", "netdev", "counted", "probes"]).stdout
    return int(said.split("packets")[1].split()[0])


def preloaded(lab):
    command = ["curl", "-sS", "-m", "15", "-o", "/dev/null", "-w", "%{local_ip}", "http://%s/bytes/10" % lab.server.addr4]
    return command, remembering(lab)


def supervised(lab):
    command, _ = preloaded(lab)
    return [lab.build.program("convertize"), "--method", "supervise", *command], Supervised(lab).env


def supervised_blocking(lab):
    program = Supervised(lab)
    return [lab.build.program("convertize"), "--method", "supervise", program.client, lab.server.addr4, 7], program.env


@long
@waits
def test_converter_that_is_late():
    """
    It stands still until the other network has been probed, too, and then answers everything. The nearer network's answer arrives first, as
    it would if the other path were dead.
    """
    for way in (preloaded, supervised, supervised_blocking):
        with lab_for(wifi=Link(delay_ms=100), lte=Link(delay_ms=10)) as lab:
            converter = lab.convertd(["--workers", "1"])
            lab.http()
            lab.echo()
            command, env = way(lab)
            lab.lte.down()
            lab.client.run(command, env=env)
            lab.lte.up()
            curl(lab, env=remembering(lab, CONVERT_PATHS="lte"))
            lab.converter.run(["nft", "-f", "-"], input=PROBES_COUNTED)
            before = len(lab.shim_log())
            with lab.capture(lab.converter, "wifi", "tcp port 1234") as wifi, lab.capture(lab.converter, "lte", "tcp port 1234") as lte:
                os.kill(converter.serving, signal.SIGSTOP)
                running = lab.client.popen(command, env=env, name="late")
                wait_until(lambda: probes_on_lte(lab), 5, "a probe on the other network")
                os.kill(converter.serving, signal.SIGCONT)
                equal(running.wait(20), 0, "the status by %s, in\n%s" % (way.__name__, lab.shim_log()[before:]))
            log = lab.shim_log()[before:]
            behind = way is preloaded and not kernel.has("fastopen")
            equal((log.count("asked by"), log.count("direct"), log.count("behind the handshake")), (0, 0, behind),
                  "moved by %s, in\n%s" % (way.__name__, log))
            equal((len(asked_to_connect(wifi)), len(asked_to_connect(lte))), (1, 0), "connections by %s, in\n%s" % (way.__name__, log))


# The first probe on wifi gets through; the next six don't, so that a connection finds loss. No SYN of Multipath TCP is lost.
SOME_PROBES_LOST = """table netdev lost { chain in { type filter hook ingress device wifi priority 0;
 tcp dport 1234 tcp flags & (syn | ack) == syn tcp option mptcp missing numgen inc mod 1000 1-6 drop; }; }"""

BOTH_AT_ONCE = """
import os, socket, sys, threading
def connect():
    with socket.create_connection((sys.argv[1], 7)) as sock:
        os.write(1, sock.getsockname()[0].encode() + b"\\n")  # a whole line, though both threads write
threads = [threading.Thread(target=connect) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


@long
@kernel.needs("fastopen")
def test_what_another_connection_has_found():
    """
    The server is slow, and one of two connections finds that the path loses packets: it moves. The other one judges for itself,
    because its SYN has probably arrived.
    """
    with lab_for() as lab:
        lab.convertd(["--hold-time", "940"])
        lab.echo()
        for paths in ("", "lte"):
            lab.client.run(["python3", "-c", BOTH_AT_ONCE, lab.server.addr4], env=remembering(lab, CONVERT_PATHS=paths))
        lab.core.set(delay_ms=450)
        lab.converter.run(["nft", "-f", "-"], input=SOME_PROBES_LOST)
        before = len(lab.shim_log())
        found = lab.client.run(["python3", "-c", BOTH_AT_ONCE, lab.server.addr4], env=remembering(lab)).stdout.split()
        equal(sorted(found), [lab.client.wifi4, lab.client.lte4], "addresses, in\n" + lab.shim_log()[before:])
        equal(lab.shim_log()[before:].count("the path to it loses packets, asked by"), 1, "moved, in\n" + lab.shim_log()[before:])


if __name__ == "__main__":
    main()
