#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_peeks.py - programs that look at a stream by MSG_PEEK see the same as on TCP

On MPTCP, Linux before 6.18 shows nothing behind bytes that it has shown before, and loops without end if MSG_WAITALL wants more.
"""
import os
import re
import signal
import socket
import subprocess

from convertlab import Lab, Link, check, equal, main, patience, wait_until

PEEKS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "apps", "peeks.py")


def status(process, name):
    """A line of /proc/PID/status."""
    with open("/proc/%d/status" % process.pid, encoding="utf-8") as file:
        return re.search(r"^%s:\s*(\S+)" % name, file.read(), re.M)[1]


def sleeps(process):
    """Tells whether the program sleeps, and has handled all signals; that first, as a signal wakes it."""
    return int(status(process, "ShdPnd"), 16) == 0 and status(process, "State") == "S"


def serve(process, sock):
    """Answers each letter by five bytes, a capital once the program waits; interrupts it at "I" and "F", and closes after "Z"."""
    while letter := sock.recv(1):
        if letter.isupper():
            wait_until(lambda: sleeps(process), 10, "the program to wait")
        if letter in b"IF":
            process.send_signal(signal.SIGALRM)
        if letter == b"F":
            wait_until(lambda: sleeps(process), 10, "the program to wait again")
        if letter == b"Z":
            break
        if letter != b"I":
            sock.sendall(letter * 5)


def seen(lab, listening, env=None):
    """What the program says."""
    process = lab.client.popen(["python3", PEEKS, lab.server.addr4, 1900], env=env, stdout=subprocess.PIPE)
    sock, _ = listening.accept()
    with sock, process.stdout:
        sock.settimeout(patience(30))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        serve(process, sock)
        sock.close()
        said = process.stdout.read().decode()
    equal(process.wait(30), 0, "the program's status; it says " + said)
    return said


def test_what_is_seen():
    """Each way shows the same, directly and converted."""
    with Lab(wifi=Link(delay_ms=5), lte=None, core=Link(delay_ms=1)) as lab, lab.server.socket(socket.AF_INET, socket.SOCK_STREAM) as listening:
        listening.bind((lab.server.addr4, 1900))
        listening.listen(1)
        listening.settimeout(patience(30))
        lab.convertd()
        direct = seen(lab, listening)
        equal(direct.splitlines()[-1], "taken aaaaabbbbbCCCCCDDDDDEEEEEFFFFF", "all that has come")
        equal(seen(lab, listening, lab.converted()), direct, "converted")
        check("converted over MPTCP" in lab.shim_log(), lab.shim_log())


if __name__ == "__main__":
    main()
