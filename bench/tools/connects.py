# SPDX-License-Identifier: BSD-3-Clause
"""connects.py - measures how long a program waits for a connection, and for the first byte of a response

    connects.py HOW COUNT ADDRESS PORT [CONVERTER [withholds]]

HOW is blocking or epoll. Prints a JSON list of [what connect() says, its milliseconds, those until the first byte or null]. With
CONVERTER ("10.9.0.1:1234") it is a client of RFC 8803 over Multipath TCP, written here; if that withholds SYNs, it takes a SYN+ACK
for the server's confirmation where doc/private-tlvs.md says that it may, and else waits for the response. Without, it is a
plain program, that connects directly or under libconvert.so.
"""
import errno
import ipaddress
import json
import select
import socket
import struct
import sys
import time

REQUEST = b"GET /bytes/100 HTTP/1.0\r\n\r\n"
MPTCP, MSG_FASTOPEN, TCP_FASTOPEN_NO_COOKIE = 262, 0x20000000, 34
TIMESTAMPS, SYN_DATA = 1, 32  # TCPI_OPT_…
# by code and value, RFC 8803 6.2.8: refused; ICMP host unreachable; ICMPv6 no route to destination
ERRORS = {(96, 0): errno.ECONNREFUSED, (97, 1): errno.EHOSTUNREACH, (97, 0): errno.ENETUNREACH}
LIMIT = 60  # seconds


class Plain:
    """An ordinary program."""

    protocol = 0

    def __init__(self, how, address):
        self.how, self.address = how, address
        self.sock = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET, socket.SOCK_STREAM,
                                  self.protocol)
        self.poller = None
        if how == "epoll":
            self.sock.setblocking(False)
            self.poller = select.epoll()
            self.poller.register(self.sock, select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)

    def close(self):
        """Closes the connection."""
        self.sock.close()
        if self.poller:
            self.poller.close()

    def begin(self):
        """Calls connect(), or what replaces it; returns 0 or an errno."""
        return self.sock.connect_ex(self.address)

    def wait(self):
        """Waits for an event of the socket."""
        if self.poller and not self.poller.poll(LIMIT):
            raise TimeoutError("nothing for %d s" % LIMIT)

    def connect(self):
        """The errno of the attempt."""
        error = self.begin()
        while error == errno.EINPROGRESS:
            self.wait()
            error = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        return error

    def receive(self):
        """Reads what there is, at least one byte."""
        while True:
            try:
                return self.sock.recv(65536)
            except BlockingIOError:
                self.wait()

    def first_byte(self):
        """Sends the request and waits for the first byte of its response."""
        self.sock.sendall(REQUEST)
        if not self.receive():
            raise ConnectionError("the server has closed")


class Converting(Plain):
    """A client of a converter, whose response is the first thing on the stream."""

    protocol = MPTCP

    def __init__(self, how, address, converter, withholds):
        self.withholds = withholds
        super().__init__(how, converter)
        self.sock.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 1)
        host, port = address
        packed = ipaddress.ip_address(host).packed
        mapped = packed if len(packed) == 16 else bytes(10) + b"\xff\xff" + packed
        self.message = b"\1\6\x22\x63\x0a\5" + struct.pack("!H", port) + mapped
        self.response = b""

    def begin(self):
        try:
            self.sock.sendto(self.message, MSG_FASTOPEN, self.address)
        except BlockingIOError:
            return errno.EINPROGRESS
        return 0

    def is_confirmed(self):
        """Tells whether the SYN+ACK confirms the server."""
        options = self.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 8)[5]
        return self.withholds and options & (SYN_DATA | TIMESTAMPS) == SYN_DATA | TIMESTAMPS

    def is_done(self):
        """Tells whether the response was taken off the stream."""
        return len(self.response) >= 4 and len(self.response) >= self.response[1] * 4

    def take_response(self):
        """Reads the response; returns (its errno, the bytes behind it)."""
        while not self.is_done():
            piece = self.receive()
            if not piece:
                raise ConnectionError("the converter has closed")
            self.response += piece
        size = self.response[1] * 4
        return (ERRORS[self.response[6], self.response[7]] if self.response[4] == 30 else 0), self.response[size:]

    def connect(self):
        # a non-blocking sendto() takes the data into the SYN and returns
        self.begin()
        self.wait()
        return 0 if self.is_confirmed() else self.take_response()[0]

    def first_byte(self):
        self.sock.sendall(REQUEST)
        behind = b"" if self.is_done() else self.take_response()[1]
        if not behind and not self.receive():
            raise ConnectionError("the server has closed")


def measure(client):
    """One connection; closes it."""
    start = time.monotonic()
    error = client.connect()
    connected, first = time.monotonic(), None
    if not error:
        client.first_byte()
        first = (time.monotonic() - start) * 1000
    client.close()
    return errno.errorcode[error] if error else "connected", (connected - start) * 1000, first


def main(how, count, host, port, converter=None, withholds=False):
    """The program."""
    found = []
    for _ in range(int(count)):
        address = host, int(port)
        if converter:
            converter_host, converter_port = converter.split(":")
            client = Converting(how, address, (converter_host, int(converter_port)), bool(withholds))
        else:
            client = Plain(how, address)
        found.append(measure(client))
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
