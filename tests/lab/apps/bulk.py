#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""bulk.py - one bulk transfer, timed from connect() to the last byte

  bulk.py serve tcp|mptcp PORT
  bulk.py get|put tcp|mptcp ADDRESS PORT BYTES

The client prints the seconds of the transfer. It asks by a line, "get BYTES" or "put BYTES"; at the end of a put the server answers a
byte. Neither end compares the bytes, which are random. "mptcp" makes a plain MPTCP connect(), without data in the SYN, to compare the
same paths without a converter.
"""
import os
import socket
import sys
import threading
import time

PROTOCOLS = {"tcp": socket.IPPROTO_TCP, "mptcp": 262}
BLOCK = os.urandom(1 << 20)


def send(sock, size):
    while size > 0:
        sock.sendall(BLOCK[:size])
        size -= len(BLOCK[:size])


def receive(sock, size):
    buffer = bytearray(1 << 20)
    while size > 0:
        got = sock.recv_into(buffer)
        if not got:
            sys.exit("the stream ended %d bytes early" % size)
        size -= got


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
            receive(sock, 1)
        print("%.4f" % (time.monotonic() - start))


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2], int(sys.argv[3]))
    else:
        transfer(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
