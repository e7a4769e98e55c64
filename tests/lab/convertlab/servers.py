# SPDX-License-Identifier: BSD-3-Clause
"""servers.py - small ordinary servers: plain TCP, both families, one thread per connection

Run as a program: servers.py KIND PORT; with "mptcp-" before KIND it speaks Multipath TCP. It prints a line for each connection.
"""
import contextlib
import hashlib
import http.server
import os
import socket
import socketserver
import struct
import sys

# 251 is a prime: a byte that is missing or doubled shifts all that follows
PATTERN = bytes(range(251)) * 4177


def pattern(size, start=0):
    """The bytes that GET /bytes/N answers, from `start` on: byte i is i modulo 251."""
    first = start % 251
    return (PATTERN[first:] + PATTERN * (size // len(PATTERN) + 1))[:size]


class _Server(socketserver.ThreadingTCPServer):
    address_family = socket.AF_INET6
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 1024

    def server_bind(self):
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()


class _MptcpServer(_Server):
    def __init__(self, address, handler):
        super().__init__(address, handler, bind_and_activate=False)
        self.socket.close()
        self.socket = socket.socket(self.address_family, self.socket_type, 262)  # IPPROTO_MPTCP
        self.server_bind()
        self.server_activate()


def _say(*words):
    """Prints a line in one piece: print() writes a line's end separately, and another thread's line could come before it."""
    os.write(1, (" ".join(words) + "\n").encode())


def _peer(handler):
    return "%s %d" % (handler.client_address[0].replace("::ffff:", ""), handler.client_address[1])


class Http(http.server.BaseHTTPRequestHandler):
    """GET /bytes/N; PUT or POST anywhere."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self):
        super().setup()
        _say("http accepted", _peer(self))

    def _answer(self, status, size):
        self.send_response(status)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(size))
        if self.close_connection:
            # otherwise a client may send another request while the stream ends, as curl does
            self.send_header("Connection", "close")
        self.end_headers()

    def do_GET(self):  # pylint: disable=invalid-name
        """/bytes/N, or 404."""
        number = self.path[len("/bytes/"):]
        if not self.path.startswith("/bytes/") or not number.isdigit():
            self._answer(404, 0)
            return
        left = int(number)
        self._answer(200, left)
        block = memoryview(PATTERN)
        while left > 0 and self.command == "GET":
            self.wfile.write(block[:left])
            left -= min(left, len(block))

    do_HEAD = do_GET

    def do_PUT(self):  # pylint: disable=invalid-name
        """Reads the body; answers its size and digest."""
        left = int(self.headers.get("Content-Length", 0))
        digest, size = hashlib.sha256(), 0
        if self.headers.get("Expect", "").lower() == "100-continue":
            self.send_response_only(100)
            self.end_headers()
        while left > 0:
            data = self.rfile.read1(min(left, 262144))
            if not data:
                return
            digest.update(data)
            size += len(data)
            left -= len(data)
        text = ("bytes=%d sha256=%s\n" % (size, digest.hexdigest())).encode()
        self._answer(200, len(text))
        self.wfile.write(text)

    do_POST = do_PUT

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        _say("http", _peer(self), format % args)


class Greeter(socketserver.StreamRequestHandler):
    """As SMTP and FTP servers do, it speaks first."""

    def handle(self):
        _say("greeter accepted", _peer(self))
        self.wfile.write(b"220 lab ready\r\n")
        for line in self.rfile:
            self.wfile.write(b"250 " + line)


class Resetter(socketserver.BaseRequestHandler):
    """Accepts connections and resets them."""

    def handle(self):
        _say("resetter accepted", _peer(self))
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        # shutdown_request() would send a FIN first
        os.close(self.request.detach())


class Echo(socketserver.BaseRequestHandler):
    """Sends back what it receives."""

    def handle(self):
        _say("echo accepted %s" % _peer(self))
        size = 0
        try:
            while True:
                data = self.request.recv(262144)
                if not data:
                    break
                size += len(data)
                self.request.sendall(data)
            self.request.shutdown(socket.SHUT_WR)
            end = "eof"
        except OSError as error:
            end = error.strerror
        _say("echo %s bytes=%d %s" % (_peer(self), size, end))


class Returner(socketserver.BaseRequestHandler):
    """Sends everything back, but only after the peer's FIN, so that a client that sends all before it reads never blocks."""

    def handle(self):
        _say("returner accepted %s" % _peer(self))
        said = bytearray()
        with contextlib.suppress(OSError):
            while data := self.request.recv(262144):
                said += data
            self.request.sendall(said)


class Chorus(socketserver.BaseRequestHandler):
    """Sends each byte from 0x80 to 0xff once, in pieces, and ends: readers in several processes can count them."""

    def handle(self):
        _say("chorus accepted %s" % _peer(self))
        said = bytes(range(0x80, 0x100))
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for start in range(0, len(said), 32):
            self.request.sendall(said[start:start + 32])


KINDS = {"http": Http, "greeter": Greeter, "resetter": Resetter, "echo": Echo, "returner": Returner, "chorus": Chorus}


def program(kind, port):
    """The command that runs a server."""
    if kind.removeprefix("mptcp-") not in KINDS:
        raise ValueError("\"%s\" is none of %s" % (kind, ", ".join(KINDS)))
    return ["python3", os.path.abspath(__file__), kind, str(port)]


if __name__ == "__main__":
    KIND = sys.argv[1]
    MAKE = _MptcpServer if KIND.startswith("mptcp-") else _Server
    with MAKE(("::", int(sys.argv[2])), KINDS[KIND.removeprefix("mptcp-")]) as server:
        server.serve_forever()
