#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""many.py - many connections at once in one event loop; each sends bytes of its own and gets them back

  many.py poll|epoll|epoll-edge|select ADDRESS PORT COUNT [AT-ONCE]

The server echoes. Prints "done COUNT slowest SECONDS"; ends with 1 and the reason if one connection fails, gets a wrong byte,
or makes no progress for 20 s.
"""
import select
import socket
import sys
import time

STALL = 20  # seconds
IN, OUT = select.POLLIN, select.POLLOUT


class Select:
    """select() with the interface of a poll object."""

    def __init__(self):
        self.interest = {}

    def register(self, fd, events):
        self.interest[fd] = events

    modify = register

    def unregister(self, fd):
        del self.interest[fd]

    def poll(self, timeout):
        wanted = [[fd for fd, events in self.interest.items() if events & bit] for bit in (IN, OUT)]
        readable, writable, _ = select.select(*wanted, [], timeout)
        found = {fd: IN for fd in readable}
        for fd in writable:
            found[fd] = found.get(fd, 0) | OUT
        return list(found.items())


class Connection:
    """One connection: it connects, sends its message, reads the same message, and then the end."""

    def __init__(self, target, number):
        self.message = b"%d:" % number + bytes((number + i) % 256 for i in range(200 + number % 1000))
        self.received = b""
        self.sock = socket.socket(socket.AF_INET6 if ":" in target[0] else socket.AF_INET)
        self.sock.setblocking(False)
        self.started = time.monotonic()
        self.sock.connect_ex(target)
        self.writing = True

    def step(self):
        """Does the next step; returns whether the connection has ended."""
        if self.writing:
            error = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if error:
                raise OSError(error, "connect")
            self.sock.getpeername()
            if self.sock.send(self.message) != len(self.message):
                raise OSError("short write")
            self.sock.shutdown(socket.SHUT_WR)
            self.writing = False
        while True:
            try:
                data = self.sock.recv(65536)
            except BlockingIOError:
                return False
            if not data:
                if self.received != self.message:
                    raise OSError("wrong bytes: %r… of %d" % (self.received[:40], len(self.received)))
                return True
            self.received += data


def main():
    way, address, port, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    at_once = int(sys.argv[5]) if len(sys.argv) > 5 else count
    poller = {"poll": select.poll, "select": Select}.get(way, select.epoll)()
    second = 1000 if way == "poll" else 1
    edge = select.EPOLLET if way == "epoll-edge" else 0
    open_ones, begun, done, slowest = {}, 0, 0, 0
    while done < count:
        while begun < count and len(open_ones) < at_once:
            connection = Connection((address, port), begun)
            open_ones[connection.sock.fileno()] = connection
            poller.register(connection.sock.fileno(), IN | OUT | edge if edge else OUT)
            begun += 1
        events = poller.poll(STALL * second)
        if not events:
            sys.exit("%d of %d are stuck: %s" % (len(open_ones), count, list(open_ones)[:5]))
        for fd, _ in events:
            connection = open_ones[fd]
            was_writing = connection.writing
            if connection.step():
                slowest = max(slowest, time.monotonic() - connection.started)
                poller.unregister(fd)
                connection.sock.close()
                del open_ones[fd]
                done += 1
            elif was_writing and not edge:
                poller.modify(fd, IN)
    print("done %d slowest %.3f" % (done, slowest))


if __name__ == "__main__":
    main()
