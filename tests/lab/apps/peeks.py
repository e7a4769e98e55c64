# SPDX-License-Identifier: BSD-3-Clause
"""peeks.py ADDRESS PORT - looks at a stream by MSG_PEEK in several ways, and prints the bytes that each shows

It sends the server a letter for the next part of the stream, which comes at once for a small letter, and for a capital one when this
program waits. At "I" the server interrupts it by SIGALRM instead, at "F" before.
"""
import select
import signal
import socket
import struct
import sys

PEEK, ALL = socket.MSG_PEEK, socket.MSG_PEEK | socket.MSG_WAITALL


def ask(letter):
    sock.sendall(letter)


def say(what, got):
    print(what, got.decode(), flush=True)


def limit(seconds, microseconds):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", seconds, microseconds))


sock = socket.create_connection((sys.argv[1], int(sys.argv[2])))
ask(b"a")
say("first", sock.recv(100, PEEK))
ask(b"b")
poller = select.poll()
poller.register(sock, select.POLLIN)
seen = b""
while len(seen) < 10:  # an event loop that looks until all of a header is there
    poller.poll()
    seen = sock.recv(100, PEEK | socket.MSG_DONTWAIT)
say("looked at again", seen)
ask(b"C")
say("waited for", sock.recv(15, ALL))
ask(b"D")
buffers = [bytearray(12), bytearray(8)]
got = sock.recvmsg_into(buffers, 0, ALL)[0]
say("waited for by recvmsg", b"".join(buffers)[:got])
ask(b"E")
say("waited for by recvfrom", sock.recvfrom(25, ALL)[0])
limit(0, 200000)
say("time is over", sock.recv(30, ALL))
limit(0, 0)
signal.signal(signal.SIGALRM, lambda *_: None)
signal.siginterrupt(signal.SIGALRM, True)
ask(b"I")
say("interrupted", sock.recv(30, ALL))
signal.siginterrupt(signal.SIGALRM, False)
ask(b"F")
say("interrupted between", sock.recv(30, ALL))
sock.setblocking(False)
say("non-blocking", sock.recv(100, ALL))
sock.setblocking(True)
ask(b"Z")
say("the end", sock.recv(100, ALL))
say("taken", sock.recv(100, socket.MSG_WAITALL))
