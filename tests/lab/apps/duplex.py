#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""duplex.py - sends many bytes to an echo server and reads them back at the same time, comparing each

  duplex.py ADDRESS PORT BYTES

Prints "same BYTES", or ends with 1 and the place of the first difference.
"""
import socket
import sys
import threading

BLOCK = bytes(range(251)) * 1044  # 251 is a prime: a missing or doubled byte shifts all that follows
LONG = BLOCK * 3                  # more than one recv() returns, from any offset of the pattern


def send(sock, size):
    while size > 0:
        piece = BLOCK[:size]
        sock.sendall(piece)
        size -= len(piece)
    sock.shutdown(socket.SHUT_WR)


def main():
    size = int(sys.argv[3])
    sock = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=30)
    sender = threading.Thread(target=send, args=(sock, size))
    sender.start()
    got = 0
    while data := sock.recv(262144):
        start = got % 251
        if data != LONG[start:start + len(data)]:
            sys.exit("a wrong byte between %d and %d" % (got, got + len(data)))
        got += len(data)
    sender.join()
    if got != size:
        sys.exit("%d bytes came back, not %d" % (got, size))
    print("same", got)


if __name__ == "__main__":
    main()
