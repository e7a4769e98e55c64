#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_supervise_late.py - the supervisor blames the right side for silence, and copes if it runs late, is busy, or lacks descriptors"""
import os
import signal
import time

from convertlab import Link, check, equal, main, need, wait_until
from convertlab.supervised import bench
from test_begin import lab_for, served
from test_supervise_begin import Supervised

SUPERVISE = ["--method", "supervise"]

# makes a non-blocking connect() over each of these devices, "any" for none, and doesn't wait
CONNECTS = """
import socket, sys
for device in sys.argv[2:]:
    sock = socket.socket()
    if device != "any":
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
    sock.setblocking(False)
    sock.connect_ex((sys.argv[1], 7))
"""


def test_silence_of_one_connection():
    """A program has chosen a dead network for one connection: the converter, which answers others, doesn't rest."""
    with lab_for() as lab:
        served(lab)
        lab.lte.down()
        Supervised(lab, CONVERT_TIMEOUT="4").run("python3", "-c", CONNECTS, lab.server.addr4, "lte", "any")
        log = lab.shim_log()
        check("no answer within CONVERT_TIMEOUT" in log and "but it answers others" in log, log)
        check("left alone" not in log and "converted over" in log, log)


def supervisor_of(front):
    """The ID of the supervisor that convertize has started; None before that."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % name, encoding="utf-8") as file:
                comm, _, rest = file.read().partition("(")[2].rpartition(") ")
        except OSError:
            continue
        if comm == "convertize-sup" and int(rest.split()[1]) == front:
            return int(name)
    return None


def test_answer_that_is_seen_late():
    """The converter answers in time, but the supervisor runs again only after CONVERT_TIMEOUT: the connection is converted."""
    need("ss", "iproute2")
    with bench(wifi=Link(delay_ms=150)) as place:
        client = place.lab.client
        process = client.popen([place.convertize, *SUPERVISE, place.client, place.lab.server.addr4, 7, "nonblocking"],
                               env=place.env(CONVERT_TIMEOUT="1"))

        def sockets():
            return client.run(["ss", "-Htin", "dport", "=", ":1234"]).stdout

        wait_until(lambda: "SYN-SENT" in sockets(), 5, "the SYN", interval=0.01)
        over = time.monotonic() + 1
        supervisor = supervisor_of(process.pid)
        os.kill(supervisor, signal.SIGSTOP)
        wait_until(lambda: "bytes_received:" in sockets(), 5, "the response")
        wait_until(lambda: time.monotonic() >= over, 5, "the end of CONVERT_TIMEOUT")
        os.kill(supervisor, signal.SIGCONT)
        equal(process.wait(10), 0, process.log_text())
        check("answer=hello" in process.log_text() and "converted over" in process.log_text(), process.log_text())


# connects while the supervisor can open no descriptor, and again when it can
NO_DESCRIPTORS = """
import os, resource, socket, sys
sock = socket.socket()
soft, hard = resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE)
for limit in (3, soft):
    resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (limit, hard))
    print(os.strerror(sock.connect_ex((sys.argv[1], 7))))
"""


def test_no_descriptors():
    """If the supervisor has no descriptor left for the socket, connect() fails: the kernel would connect directly over Multipath TCP."""
    with bench() as place:
        run = place.run("python3", "-c", NO_DESCRIPTORS, place.lab.server.addr4, options=SUPERVISE)
        equal(run.stdout, "No buffer space available\nSuccess\n", run.stderr)
        equal((run.logged("too many open files"), run.logged("converted over")), (1, 1), run.stderr)


# prints "in time" if connect() returns before the children end, whose listen() calls each make the supervisor search all descriptors
BUSY = """
import os, signal, socket, sys
children = []
for _ in range(12):
    children.append(os.fork())
    if not children[-1]:
        signal.alarm(60)
        descriptors = [os.dup(0) for _ in range(200)]
        while True:
            socket.socket().listen()
sock = socket.socket()
sock.setblocking(False)
sock.connect_ex((sys.argv[1], 7))
print("late" if os.waitpid(-1, os.WNOHANG)[0] else "in time")
for child in children:
    os.kill(child, signal.SIGKILL)
"""


def test_time_out_of_a_busy_supervisor():
    """CONVERT_TIMEOUT ends an attempt although other processes call without a pause."""
    with bench(converter=False) as place:
        run = place.run("python3", "-uc", BUSY, place.lab.server.addr4, options=SUPERVISE,
                        env={"CONVERT_ADDR": place.lab.addresses.blackhole4, "CONVERT_TIMEOUT": "1", "CONVERT_LOG": ""})
        equal(run.stdout, "in time\n", run.stderr)


if __name__ == "__main__":
    main()
