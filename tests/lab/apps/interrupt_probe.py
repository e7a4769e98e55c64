#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""interrupt_probe.py - a blocking connect() that a signal, a time-out or a fork interrupts

  interrupt_probe.py CASE ADDRESS PORT

CASE is signal (a handler without SA_RESTART), restart (one with it), timeout (SO_SNDTIMEO), receive-timeout (SO_RCVTIMEO, which doesn't
concern connect()), child (a child goes on with the connection, the parent closes it), parent (the other way round). The last two don't
block. The server is an echo server whose round trip is much longer than SOON. The transcript must be the same with the shim and without.
"""
import contextlib
import ctypes
import errno
import os
import select
import signal
import socket
import struct
import sys

PATIENCE = float(os.environ.get("CONVERT_PATIENCE") or 1)  # see convertlab's waiting.py
SOON = 0.02 * PATIENCE   # seconds: after the call, before the server can have answered
LATER = 5 * PATIENCE     # seconds: long after

libc = ctypes.CDLL(None, use_errno=True)


def say(*words):
    print(*words, flush=True)


def connect(sock, address, port):
    """Calls connect(2) itself, since Python's continues after a signal."""
    target = struct.pack("=H", socket.AF_INET) + struct.pack("!H", port) + socket.inet_aton(address) + bytes(8)
    if libc.connect(sock.fileno(), target, len(target)) == 0:
        return "0"
    return errno.errorcode[ctypes.get_errno()]


def talk(sock, who):
    poller = select.poll()
    poller.register(sock, select.POLLOUT)
    say(who, "writable", len(poller.poll(LATER * 1000)), sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
    sock.setblocking(True)
    sock.sendall(b"hello")
    say(who, "answer", sock.recv(100), sock.getpeername())


def interrupted(sock, address, port, restart):
    signal.signal(signal.SIGALRM, lambda *_: say("handler"))
    signal.siginterrupt(signal.SIGALRM, not restart)
    signal.setitimer(signal.ITIMER_REAL, SOON)
    say("connect", connect(sock, address, port))
    say("again", connect(sock, address, port))
    say("and again", connect(sock, address, port))
    talk(sock, "it")


def timed(sock, address, port, option):
    sock.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", int(SOON), int(SOON % 1 * 1e6)))
    say("connect", connect(sock, address, port))
    sock.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", 0, 0))
    say("again", connect(sock, address, port))
    talk(sock, "it")


def forked(sock, address, port, child_goes_on):
    sock.setblocking(False)
    say("connect", connect(sock, address, port))
    pid = os.fork()
    if (pid == 0) == child_goes_on:
        talk(sock, "child" if pid == 0 else "parent")
    sock.close()
    if pid == 0:
        os._exit(0)
    say("child", os.waitpid(pid, 0)[1])


def main():
    case, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
    sock = socket.socket()
    if case in ("signal", "restart"):
        interrupted(sock, address, port, case == "restart")
    elif case in ("timeout", "receive-timeout"):
        timed(sock, address, port, socket.SO_SNDTIMEO if case == "timeout" else socket.SO_RCVTIMEO)
    else:
        forked(sock, address, port, case == "child")


if __name__ == "__main__":
    # a high priority, since the events that it looks for don't wait for it; ordinary users lack the right
    with contextlib.suppress(OSError):
        os.nice(-19)
    main()
