#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""bulk.py - one bulk transfer, timed from connect() to the last byte

  bulk.py serve tcp|mptcp PORT
  bulk.py get|put tcp|mptcp ADDRESS PORT BYTES

The client prints the seconds of the transfer. It asks by a line, "get BYTES" or "put BYTES"; at the end of a put the server answers a
byte. Both know the bytes of a transfer, and the one that receives them compares them. "mptcp" makes a plain MPTCP connect(), without data
in the SYN, to compare the same paths without a converter.
"""
import hashlib
import socket
import sys
import threading
import time

PROTOCOLS = {"tcp": socket.IPPROTO_TCP, "mptcp": 262}
BLOCK = hashlib.shake_256(b"bulk").digest(1048573)  # repeated; a prime number of bytes, so that no buffer is a multiple of it
TWICE = 2 * BLOCK  # has a block from each place on


def send(sock, size):
    while size > 0:
        sock.sendall(BLOCK[:size])
        size -= len(BLOCK[:size])


def fail(text):
    """Ends the client with an error, or the server's thread."""
    print(text, file=sys.stderr, flush=True)
    sys.exit(1)


def receive(sock, size):
    """Receives what send() sends."""
    buffer, place = bytearray(len(BLOCK)), 0
    while place < size:
        got = sock.recv_into(buffer)
        if not got:
            fail("the stream ended %d bytes early" % (size - place))
        first = place % len(BLOCK)
        if buffer[:got] != TWICE[first:first + got]:
            fail("foreign: %d bytes behind %d, or a part of them" % (got, place))
        place += got
    if place > size:
        fail("foreign: %d bytes behind the end" % (place - size))


def serve_one(sock):
    with sock:
        request = sock.makefile("rb", buffering=0).readline().split()
        if request[0] == b"get":
            send(sock, int(request[1]))
        else:
            receive(sock, int(request[1]))
            sock.sendall(b".")
        sock.recv(1)


def serve(protocol, port):
    listener = socket.socket(socket.AF_INET6, socket.SOCK_STREAM, PROTOCOLS[protocol])
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("::", port))
    listener.listen(64)
    while True:
        sock, _ = listener.accept()
        threading.Thread(target=serve_one, args=(sock,), daemon=True).start()


def transfer(verb, protocol, address, port, size):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    start = time.monotonic()
    with socket.socket(family, socket.SOCK_STREAM, PROTOCOLS[protocol]) as sock:
        sock.connect((address, port))
        sock.sendall(b"%s %d\n" % (verb.encode(), size))
        if verb == "get":
            receive(sock, size)
        else:
            send(sock, size)
            if sock.recv(1) != b".":
                fail("the server has not received all")
        print("%.4f" % (time.monotonic() - start))


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2], int(sys.argv[3]))
    else:
        transfer(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
