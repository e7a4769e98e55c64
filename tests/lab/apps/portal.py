#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""portal.py - a captive portal, which answers in the place of each server

  portal.py PORT http|tls|close|reset

It accepts each connection, waits for its first bytes, and answers them by a redirection of HTTP, by an alert of TLS, by the end of the
stream, or by a reset.
"""
import socket
import struct
import sys
import threading

ANSWERS = {"http": b"HTTP/1.1 302 Found\r\nLocation: http://portal.example/login\r\nContent-Length: 0\r\n\r\n",
           "tls": bytes.fromhex("1503010002020a")}


def serve(sock, way):
    with sock:
        sock.recv(2000)
        if way == "reset":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif way in ANSWERS:
            sock.sendall(ANSWERS[way])
            sock.recv(2000)


def main(port, way):
    listener = socket.create_server(("", int(port)))
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0], way), daemon=True).start()


main(*sys.argv[1:])
