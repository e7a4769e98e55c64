#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""shared_probe.py - one thread waits for a connection while another looks at the same socket all the time

  shared_probe.py ADDRESS PORT COUNT

The second thread must never see another peer than the server, or read a byte: the server is an echo server, to which the program sends
nothing. Prints "clean COUNT", or ends with 1 and the wrong observations.
"""
import errno
import select
import socket
import sys
import threading

LIMIT_MS = 20000


def look(sock, target, stop, seen):
    while not stop.is_set():
        try:
            peer = sock.getpeername()
            if peer != target:
                seen.append("peer %s" % (peer,))
        except OSError as error:
            if error.errno != errno.ENOTCONN:
                seen.append("getpeername %s" % error)
        try:
            seen.append("read %r" % sock.recv(100))
        except BlockingIOError:
            pass


def main():
    target, count = (sys.argv[1], int(sys.argv[2])), int(sys.argv[3])
    for _ in range(count):
        sock, stop, seen = socket.socket(), threading.Event(), []
        sock.setblocking(False)
        sock.connect_ex(target)
        looker = threading.Thread(target=look, args=(sock, target, stop, seen))
        looker.start()
        poller = select.poll()
        poller.register(sock, select.POLLOUT)
        events = poller.poll(LIMIT_MS)
        stop.set()
        looker.join()
        if not events or seen:
            sys.exit("events %s, seen %s" % (events, seen[:3]))
        sock.close()
    print("clean", count)


if __name__ == "__main__":
    main()
