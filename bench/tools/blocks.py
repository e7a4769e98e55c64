#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""blocks.py - an application that is always sending blocks of 8 KB, and the server that tells how old each one was on arrival

  blocks.py receive [--mptcp] PORT
  blocks.py send [--mptcp] [--from ADDRESS] [--send-buffer BYTES] ADDRESS PORT SECONDS

Each block begins with the time at which the application gave it to its socket; the server takes its age when the last byte of the
block has arrived. Both processes run on one machine and share its monotonic clock, so that no clock has to be compared with another.

`receive` serves one connection, and prints when it has ended, as JSON: for each block its "sent" time (seconds since the first block)
and its "age" (ms), and the size of its "receive buffer" as the kernel states it. `send` prints the size of its "send buffer", as
the kernel states it, and for each block, when it was added, how many unacknowledged bytes were "waiting" in the socket, and how
large a "window" the peer had announced (over Multipath TCP: on the first subflow; they share one).
"""
import argparse
import array
import fcntl
import json
import socket
import struct
import termios
import time

SIZE = 8192
STAMP = struct.Struct("!d")
MPTCP = 262
TCP_INFO_WINDOW = struct.Struct("=228xI")  # tcpi_snd_wnd of struct tcp_info in linux/tcp.h


def _protocol(arguments):
    return MPTCP if arguments.mptcp else 0


def _receive(arguments):
    sent, ages = [], []
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, _protocol(arguments)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("", arguments.port))
        listener.listen(1)
        sock, _ = listener.accept()
        # The listener stays open meanwhile: Linux refuses further subflows of a connection when nothing listens on their port.
        with sock, sock.makefile("rb", buffering=SIZE) as stream:
            while len(block := stream.read(SIZE)) == SIZE:
                now, stamp = time.monotonic(), STAMP.unpack_from(block)[0]
                sent.append(stamp)
                ages.append(round((now - stamp) * 1000, 2))
            buffer = sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
    print(json.dumps({"sent": [round(stamp - sent[0], 4) for stamp in sent], "age": ages, "receive buffer": buffer}))


def _waiting(sock):
    count = array.array("i", [0])
    fcntl.ioctl(sock, termios.TIOCOUTQ, count)
    return count[0]


def _window(sock):
    return TCP_INFO_WINDOW.unpack(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_WINDOW.size))[0]


def _send(arguments):
    waiting, windows = [], []
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, _protocol(arguments)) as sock:
        if arguments.send_buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, arguments.send_buffer)
        if arguments.source:
            sock.bind((arguments.source, 0))
        sock.connect((arguments.address, arguments.port))
        end = time.monotonic() + arguments.seconds
        while time.monotonic() < end:
            sock.sendall(STAMP.pack(time.monotonic()).ljust(SIZE, b"."))
            waiting.append(_waiting(sock))
            windows.append(_window(sock))
        print(json.dumps({"send buffer": sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF), "waiting": waiting, "window": windows}))


def main():
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    verbs = parser.add_subparsers(required=True, metavar="receive|send")
    receive = verbs.add_parser("receive")
    receive.set_defaults(run=_receive)
    send = verbs.add_parser("send")
    send.set_defaults(run=_send)
    for verb in (receive, send):
        verb.add_argument("--mptcp", action="store_true", help="by Multipath TCP; without it by TCP")
    send.add_argument("--from", dest="source", metavar="ADDRESS", help="the local address")
    send.add_argument("--send-buffer", type=int, metavar="BYTES", help="what SO_SNDBUF is set to; the kernel doubles it")
    send.add_argument("address")
    receive.add_argument("port", type=int)
    send.add_argument("port", type=int)
    send.add_argument("seconds", type=float)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
