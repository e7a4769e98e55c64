#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""survive.py - one long transfer whose every byte is checked, and which says when bytes have arrived

  survive.py serve tcp|mptcp PORT
  survive.py get|put tcp|mptcp ADDRESS PORT [OWN ADDRESS]

A transfer lasts until the end of standard input. The stream is the same block again and again; in the end the sender says how many bytes it has
sent. What has received prints JSON: "bytes",
"exact" (all that was sent has arrived, each byte in its place) and "arrivals", the times by CLOCK_MONOTONIC at which something was
received. For a put it is the server that prints it: it runs on the same machine, and its clock is the client's.
"""
import json
import os
import random
import select
import socket
import struct
import sys
import threading
import time

PROTOCOLS = {"tcp": socket.IPPROTO_TCP, "mptcp": 262}
PERIOD = 1000003                # bytes; no multiple of a segment, so that a piece in another's place is wrong
BLOCK = random.Random(1).randbytes(PERIOD)
STREAM = memoryview(BLOCK * 2)
PIECE = 65536
TRAILER = struct.Struct("!Q")   # the bytes before it
RESOLUTION = 0.002              # seconds: arrivals that are closer are one
PATIENCE = 150                  # seconds without a byte after which the connection is given up


class Checker:
    """What has arrived. The trailer comes last, so that the last bytes are withheld until there are more."""

    def __init__(self):
        self._held, self.bytes, self.wrong, self.arrivals = b"", 0, 0, []

    def take(self, data):
        now = time.monotonic()
        if not self.arrivals or now - self.arrivals[-1] >= RESOLUTION:
            self.arrivals.append(round(now, 4))
        data = self._held + data
        size = max(0, len(data) - TRAILER.size)
        self._held = data[size:]
        at = self.bytes % PERIOD
        self.wrong += data[:size] != STREAM[at:at + size]
        self.bytes += size

    def found(self):
        exact = not self.wrong and len(self._held) == TRAILER.size and TRAILER.unpack(self._held)[0] == self.bytes
        return {"bytes": self.bytes, "exact": exact, "arrivals": self.arrivals}


def receive(sock):
    """All until the stream's end, or until it is broken; returns the findings."""
    checker = Checker()
    sock.settimeout(PATIENCE)
    try:
        while data := sock.recv(PIECE):
            checker.take(data)
    except OSError as error:
        return dict(checker.found(), exact=False, error=str(error))
    return checker.found()


def send(sock, is_over):
    """Sends until is_over() says so, then the trailer and the stream's end."""
    sock.settimeout(PATIENCE)
    sent = 0
    while not is_over():
        at = sent % PERIOD
        sent += sock.send(STREAM[at:at + PIECE])
    sock.sendall(TRAILER.pack(sent))
    sock.shutdown(socket.SHUT_WR)


def answer(sock):
    """One connection: what is asked for stands in its first line."""
    with sock:
        verb = sock.makefile("rb", buffering=0).readline().strip()
        if verb == b"get":
            # the client ends the download by closing its side
            poller = select.poll()
            poller.register(sock, select.POLLIN)
            send(sock, lambda: poller.poll(0))
            sock.recv(1)
        else:
            print(json.dumps(receive(sock)), flush=True)


def try_to_answer(sock):
    try:
        answer(sock)
    except OSError as error:
        print(error, file=sys.stderr, flush=True)


def serve(protocol, port):
    listener = socket.socket(socket.AF_INET6, socket.SOCK_STREAM, PROTOCOLS[protocol])
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("::", port))
    listener.listen(64)
    while True:
        threading.Thread(target=try_to_answer, args=(listener.accept()[0],), daemon=True).start()


def transfer(verb, protocol, address, own=""):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, PROTOCOLS[protocol]) as sock:
        if own:
            sock.bind((own, 0))
        sock.connect(address)
        sock.sendall(verb.encode() + b"\n")
        if verb == "get":
            threading.Thread(target=lambda: (sys.stdin.read(), sock.shutdown(socket.SHUT_WR)), daemon=True).start()
            print(json.dumps(receive(sock)), flush=True)
        else:
            poller = select.poll()
            poller.register(sys.stdin, select.POLLIN)
            send(sock, lambda: poller.poll(0))
            sock.recv(1)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2], int(sys.argv[3]))
    else:
        transfer(sys.argv[1], sys.argv[2], (sys.argv[3], int(sys.argv[4])), *sys.argv[5:])
