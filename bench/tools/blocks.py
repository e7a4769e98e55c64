#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""blocks.py - a stream of 8 KB blocks, each with the time at which it was given to the socket

  blocks.py receive PORT                          one connection; prints the age of each block on arrival in ms, as JSON
  blocks.py send SOURCE ADDRESS PORT SECONDS      from the local address SOURCE

Both on one machine, whose monotonic clock they share.
"""
import json
import socket
import struct
import sys
import time

SIZE = 8192
SEND_BUFFER = 200 * 1024
STAMP = struct.Struct("!d")


def receive(port):
    ages = []
    with socket.create_server(("", port)) as listener:
        sock, _ = listener.accept()
    with sock, sock.makefile("rb", buffering=SIZE) as stream:
        while len(block := stream.read(SIZE)) == SIZE:
            ages.append(round((time.monotonic() - STAMP.unpack_from(block)[0]) * 1000, 2))
    print(json.dumps(ages))


def send(source, address, port, seconds):
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER // 2)  # the kernel doubles it
        sock.bind((source, 0))
        sock.connect((address, port))
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            sock.sendall(STAMP.pack(time.monotonic()).ljust(SIZE, b"."))


if __name__ == "__main__":
    if sys.argv[1] == "receive":
        receive(int(sys.argv[2]))
    else:
        send(sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5]))
