#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""signal_probe.py - a program that waits only for signals about its socket (O_ASYNC, fcntl(2))

  signal_probe.py WAY ADDRESS PORT

WAY says how and when it asks for them: before (connect(), by fcntl), ioctl (before, by ioctl), process-group (before, for its process
group), duplicate (before, through another descriptor), pending (after connect(), by fcntl), pending-ioctl. The transcript must be the same
with the shim and without it. The server is an echo server.
"""
import errno
import fcntl
import os
import select
import signal
import socket
import struct
import sys

F_SETSIG, F_GETSIG = 10, 11
FIOASYNC, FIOSETOWN = 0x5452, 0x8901
SIGNAL = signal.SIGRTMIN + 3
LIMIT = 20  # seconds; reached by no test that passes


def ask(sock, way):
    if way.endswith("ioctl"):
        fcntl.ioctl(sock, FIOSETOWN, struct.pack("i", os.getpid()))
        fcntl.ioctl(sock, FIOASYNC, struct.pack("i", 1))
        return
    owner = -os.getpgid(0) if way == "process-group" else os.getpid()
    target = os.dup(sock.fileno()) if way == "duplicate" else sock.fileno()
    fcntl.fcntl(target, fcntl.F_SETOWN, owner)
    fcntl.fcntl(target, F_SETSIG, SIGNAL)
    fcntl.fcntl(target, fcntl.F_SETFL, fcntl.fcntl(target, fcntl.F_GETFL) | os.O_ASYNC)


def told():
    """Waits for the next signal; returns its code and band as text."""
    info = signal.sigtimedwait([SIGNAL, signal.SIGIO], LIMIT)
    return "no signal" if info is None else "%s code %d band %#x" % (
        signal.Signals(info.si_signo).name if info.si_signo == signal.SIGIO else "SIGNAL", info.si_code, info.si_band)


def begin(way, address, port):
    """Connects and asks for signals; returns the socket and the errno. If a socket is connected before we ask, we try another one."""
    for _ in range(20):
        sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        sock.setblocking(False)
        if not way.startswith("pending"):
            ask(sock, way)
            return sock, sock.connect_ex((address, port))
        said = sock.connect_ex((address, port))
        ask(sock, way)
        poll = select.poll()
        poll.register(sock, select.POLLOUT)
        if not poll.poll(0):
            return sock, said
        sock.close()
        while signal.sigtimedwait([SIGNAL, signal.SIGIO], 0):
            pass
    raise SystemExit("always connected at once")


def main(way, address, port):
    signal.pthread_sigmask(signal.SIG_BLOCK, [SIGNAL, signal.SIGIO])
    if way == "process-group":
        os.setpgid(0, 0)
    sock, said = begin(way, address, int(port))
    print("connect", errno.errorcode[said])
    print("connected:", told())
    print("error", sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), "peer", sock.getpeername()[:2])
    print("sent", sock.send(b"hello"))
    print("answered:", told(), sock.recv(100))
    print("asks for", bool(fcntl.fcntl(sock, fcntl.F_GETFL) & os.O_ASYNC), fcntl.fcntl(sock, F_GETSIG),
          fcntl.fcntl(sock, fcntl.F_GETOWN) in (os.getpid(), -os.getpgid(0)))


main(*sys.argv[1:])
