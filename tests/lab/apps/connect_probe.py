#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""connect_probe.py - writes a transcript of all that an application can see of one connection

  connect_probe.py WAY ADDRESS PORT

The transcript must be the same with the shim and without it. WAY is blocking, poll, select, epoll (level-triggered), epoll-edge,
epoll-once (one-shot), epoll-sole (exclusive, as gRPC did), epoll-before (registered before connect(), edge-triggered, as nginx does),
epoll-dup (registered by a duplicate of the epoll descriptor that it waits on, as tokio does), epoll-past (registered past the shim, as by
io_uring or the program's own system call), epoll-tried (the same, after a registration that it removes at once, as libuv's uv_poll does),
connect (it calls only connect() again and again). Two have a transcript of their own, but the same stream: epoll-exclusive (registered past
the shim and exclusively, so that the shim can't change it) and epoll-changed (registered past the shim for output, then also for input).
The server is an echo server, or one that can't be reached.
"""
import contextlib
import ctypes
import errno
import os
import select
import socket
import struct
import sys
import time

SO_DOMAIN = 39
LIMIT = 20  # seconds; reached by no test that passes
EPOLL_CTL_ADD, EPOLL_CTL_MOD = 1, 3
EARLY, HELLO = b"early", b"hello"
INTEREST = select.POLLIN | select.POLLOUT
MODES = {"epoll-edge": select.EPOLLET, "epoll-before": select.EPOLLET, "epoll-dup": select.EPOLLET,
         "epoll-once": select.EPOLLONESHOT, "epoll-sole": select.EPOLLET | select.EPOLLEXCLUSIVE}
OUT_OF_REACH = ("epoll-exclusive", "epoll-changed")


def say(*words):
    print(*words, flush=True)


def name(number):
    return errno.errorcode.get(number, number) if number else "0"


def outcome(call, *arguments):
    """Returns the result of a call, or the name of its error."""
    try:
        return call(*arguments)
    except OSError as error:
        return name(error.errno)


def flags(bits):
    names = ["IN", "PRI", "OUT", "ERR", "HUP"]
    return "|".join(n for i, n in enumerate(names) if bits >> i & 1) or "0"


def so_error(sock):
    return name(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))


class Waiter:
    """Waits in one of the ways until the socket is writable; wait() returns the system's answer."""

    def __init__(self, way, sock):
        self.way, self.sock, self.poller = way, sock, None
        self.early = self.received = None
        if way == "poll":
            self.poller = select.poll()
        elif way.startswith("epoll"):
            self.poller = select.epoll()
        self.registry = self.poller
        if way == "epoll-dup":
            self.registry = select.epoll.fromfd(os.dup(self.poller.fileno()))
        if way == "epoll-before":
            self.register()

    def register(self):
        past = {"epoll-past": INTEREST | select.EPOLLET, "epoll-tried": INTEREST | select.EPOLLET,
                "epoll-exclusive": INTEREST | select.EPOLLET | select.EPOLLEXCLUSIVE, "epoll-changed": select.EPOLLOUT | select.EPOLLET}
        if self.way == "epoll-tried":
            self.registry.register(self.sock, select.EPOLLIN)
            self.registry.unregister(self.sock)
        if self.way in past:
            self.control(EPOLL_CTL_ADD, past[self.way])
            return
        self.registry.register(self.sock, INTEREST | MODES.get(self.way, 0))

    def control(self, operation, events):
        """Calls the C library's own epoll_ctl(), not a preloaded one. In a 32-bit Python EPOLLET is negative."""
        event = struct.pack("=IQ" if os.uname().machine == "x86_64" else "@IQ", events & 0xffffffff, self.sock.fileno())
        ctypes.CDLL("libc.so.6").epoll_ctl(self.poller.fileno(), operation, self.sock.fileno(), event)

    def drain(self):
        """Prints the events before connect()."""
        if self.way == "epoll-before":
            say("before connect", [flags(bits) for _, bits in self.poller.poll(0)])

    def wait(self):
        if self.way == "select":
            found = select.select([self.sock], [self.sock], [], LIMIT)
            return "in %d out %d" % tuple(len(x) for x in found[:2])
        if self.way == "connect":
            while (status := self.sock.connect_ex(self.sock_target)) == errno.EALREADY:
                select.select([], [], [], 0.002)  # a program that has other things to do
            return name(status)
        limit = LIMIT * 1000 if self.way == "poll" else LIMIT
        return [flags(bits) for _, bits in self.poller.poll(limit)]


def open_nonblocking(way, target, sock):
    sock.setblocking(False)
    waiter = Waiter(way, sock)
    waiter.sock_target = target
    waiter.drain()
    say("connect", name(sock.connect_ex(target)))
    say("again", name(sock.connect_ex(target)))
    say("SO_ERROR", so_error(sock))
    say("getpeername", outcome(sock.getpeername))
    # usually too early; if it isn't, on a busy machine, these bytes come back in front of the answer
    waiter.early = outcome(sock.send, EARLY)
    say("send", waiter.early)
    waiter.received = outcome(sock.recv, 10)
    say("recv", waiter.received)
    if way in ("poll", "epoll", "epoll-edge", "epoll-once", "epoll-sole", "epoll-dup", "epoll-past", "epoll-tried", *OUT_OF_REACH):
        waiter.register()
        say("at once", [flags(bits) for _, bits in waiter.poller.poll(0)])
    if way == "epoll-changed":
        waiter.control(EPOLL_CTL_MOD, INTEREST)
    say("wait", waiter.wait())
    if way == "epoll-once":
        say("told once", waiter.poller.poll(0))
    if way == "epoll-sole":
        say("modified", outcome(waiter.poller.modify, sock, INTEREST))
    error = so_error(sock)
    while way in OUT_OF_REACH and error == "0" and outcome(sock.getpeername) == "ENOTCONN":
        say("wait", waiter.wait())  # as mio does: writable doesn't mean connected
        error = so_error(sock)
    say("SO_ERROR", error)
    if way != "connect":
        say("connect again", name(sock.connect_ex(target)))
    return error == "0" and not isinstance(outcome(sock.getpeername), str), waiter


def talk(sock, waiter):
    """Checks that the stream has only the server's bytes, to its end."""
    peer = sock.getpeername()
    say("getpeername", peer[:2])
    say("connected again", name(sock.connect_ex(peer)))
    say("protocol", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL))
    if waiter and waiter.way == "epoll-edge":
        say("no more edges", waiter.poller.poll(0))
    say("sent", outcome(sock.send, HELLO))
    if waiter and waiter.way == "epoll-changed":
        while "IN" not in (events := waiter.wait()[0]):
            pass
        say("events", events)
    sock.setblocking(True)
    early = len(EARLY) if waiter and waiter.early == len(EARLY) and waiter.received != EARLY else 0
    answer = sock.recv(early + len(HELLO), socket.MSG_WAITALL)
    say("answer", answer[early:])
    sock.shutdown(socket.SHUT_WR)
    say("end", sock.recv(100))


def main():
    way, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    start = time.monotonic()
    if way == "blocking":
        error = sock.connect_ex((address, port))
        say("connect", name(error))
        say("SO_ERROR", so_error(sock))
        reached, waiter = error == 0, None
    else:
        reached, waiter = open_nonblocking(way, (address, port), sock)
    say("domain", sock.getsockopt(socket.SOL_SOCKET, SO_DOMAIN), "of the name", len(sock.getsockname()),
        sock.getsockname()[0] if reached else "")
    print("%.1f" % ((time.monotonic() - start) * 1000), file=sys.stderr)
    if reached:
        talk(sock, waiter)
    say("close", os.close(sock.detach()))


if __name__ == "__main__":
    # a high priority, since the events that it looks for don't wait for it; ordinary users lack the right
    with contextlib.suppress(OSError):
        os.nice(-19)
    main()
