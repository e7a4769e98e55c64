#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertd_memory.py - after a crowd of clients has gone, convertd is as small as before"""
import json
import os
import subprocess

from convertlab import Lab, LabError, Unsuitable, Veth, check, equal, kernel, long, main, wait_until
from convertlab.peers import MPTCP, TCP, await_closed, converter, descriptors, memory

LOAD = "bench/tools/load/load"
PORT = 6000
SMALL, LARGE = 100, 4000
# convertd keeps room for as many sockets and timers as it had at once: poller.c's slots, libevent's heap of timers
KEPT = 3 << 19
WITHIN = 90  # seconds


def crowd(lab, process, count, protocol):
    """Opens this many connections at once; returns convertd's memory while they are open."""
    before = descriptors(process)
    load = lab.client.popen([lab.build.program(LOAD), "run", "--to", "%s:1234" % lab.converter.addr4, "--via",
                             kernel.load_way(protocol == MPTCP), "--server", "%s:%d" % (lab.server.addr4, PORT), "--hold", "--connections", count,
                             "--concurrency", 32] + (["--mptcp"] if protocol == MPTCP else []),
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    with load:
        line = load.stdout.readline().decode()
        if line != "held %d\n" % count:
            raise LabError("load: %s%s" % (line, load.stdout.read().decode()))
        found = memory(process)
        load.stdin.close()
        equal(json.loads(load.stdout.read())["failed"], 0, "connections that failed")
    await_closed(process, before)
    return found


@long
def test_after_a_crowd():
    """A crowd takes megabytes; when it has gone, convertd has as much as after a small one."""
    if os.environ.get("SANITIZER_PRELOAD"):
        raise Unsuitable("sanitizers keep what was freed, to find its use")
    with Lab(wifi=Veth(), lte=None) as lab:
        lab.start_listening(lab.server, [lab.build.program(LOAD), "serve", PORT], PORT)
        with converter(lab, "--log-rate", "10", "--workers", "2") as process:
            for protocol in (TCP, MPTCP):
                crowd(lab, process, SMALL, protocol)
            before = memory(process)
            for protocol in (TCP, MPTCP):
                grown = crowd(lab, process, LARGE, protocol) - before
                check(grown > KEPT + (1 << 20), "%d clients took %d bytes, too few to see whether convertd frees them" % (LARGE, grown))
                wait_until(lambda: memory(process) - before < KEPT, WITHIN,
                           lambda: "memory to go back: %d bytes are left of %d" % (memory(process) - before, grown))
            return "%d kB in a crowd, %d kB are left" % (grown // 1000, (memory(process) - before) // 1000)


if __name__ == "__main__":
    main()
