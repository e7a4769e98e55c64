#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scripted_converter.py - a converter that answers as a test says

  scripted_converter.py ADDR PORT SCRIPT [RESPONSE-HEX]

SCRIPT says how it sends the response (a header with an empty Extended TCP Header
TLV, or RESPONSE-HEX) to each request:

  whole       in one piece, together with the server's first bytes if it speaks first
  bytewise    a byte at a time, each in a segment of its own
  split:N     the first N bytes, the rest once they have been acknowledged
  truncate:N  the first N bytes, then the end of the stream
  close       the end of the stream at once
  reset       a reset at once
  silent      nothing, ever
  cookie      a Missing Cookie error with RESPONSE-HEX as the cookie to a request without a cookie, Not Authorized to one with
              another cookie; to one with this cookie as whole
  option      an Unsupported TCP Option error to a Connect TLV with options; to others as whole
  hold-time   an Unsupported Message error to a request with a Hold Time TLV; RESPONSE-HEX to others with an Info TLV; else as whole

It relays the connection to the server once all of a response without an Error TLV has gone to a request with a Connect TLV.
For each connection it prints "request HEX early N", and "reset" or "closed" when the client
is gone. It exists to misbehave; convertd is the converter that people run.
"""

import array
import contextlib
import fcntl
import os
import select
import socket
import struct
import sys
import termios
import threading

TCP_INFO_STATE_ESTABLISHED = 1
RESPONSE = bytes.fromhex("01022263" "14010000")
UNSUPPORTED_MESSAGE = bytes.fromhex("01022263" "1e010200")
UNSUPPORTED_OPTION = bytes.fromhex("01022263" "1e01211e")
NOT_AUTHORIZED = bytes.fromhex("01022263" "1e012000")


def say(*words):
    """Prints a line in one piece, since several threads print: print() writes each word by itself."""
    os.write(1, (" ".join(str(word) for word in words) + "\n").encode())


def wait_until_established(sock):
    """A reply written to an MPTCP socket before the third ACK would be stuck (Linux 6.18)."""
    poller = select.epoll()
    poller.register(sock, select.EPOLLOUT | select.EPOLLET)
    while sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] != TCP_INFO_STATE_ESTABLISHED:
        poller.poll(1)
    poller.close()


def wait_until_acknowledged(sock):
    """Waits until all that was sent is acknowledged, so that the next bytes are in a segment of their own."""
    unacknowledged = array.array("i", [1])
    while unacknowledged[0]:
        select.select([], [], [], 0.0005)  # the kernel has no event for this
        fcntl.ioctl(sock, termios.TIOCOUTQ, unacknowledged)


def read_request(sock):
    data = b""
    while len(data) < 4 or len(data) < data[1] * 4:
        piece = sock.recv(65536)
        if not piece:
            return None, b""
        data += piece
    length = data[1] * 4
    return data[:length], data[length:]


def asks_for_server(request):
    """Tells whether the request begins with a Connect TLV, as all requests of the tests do that don't ask for information."""
    return request[4] == 10


def connect_to_server(request):
    port, = struct.unpack_from("!H", request, 6)
    address = request[8:24]
    if address[:12] == bytes(10) + b"\xff\xff":
        return socket.create_connection((socket.inet_ntop(socket.AF_INET, address[12:]), port))
    return socket.create_connection((socket.inet_ntop(socket.AF_INET6, address), port))


def pump(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def relay(client, server):
    thread = threading.Thread(target=pump, args=(client, server), daemon=True)
    thread.start()
    pump(server, client)
    thread.join()


def wait_for_end(sock):
    try:
        while sock.recv(65536):
            pass
        say("closed")
    except ConnectionError:
        say("reset")


def has_tlv(request, kind):
    position = 4
    while position < len(request):
        if request[position] == kind:
            return True
        position += request[position + 1] * 4
    return False


def missing_cookie(cookie):
    words = 1 + len(cookie) // 4
    return bytes([1, 1 + words, 0x22, 0x63, 30, words, 3, 0]) + cookie


def answer(sock, script, response):
    verb, _, argument = script.partition(":")
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if verb == "silent":
        return False
    if verb == "reset":
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
        return False
    cut = {"close": 0, "truncate": int(argument or 0)}.get(verb)
    if cut is not None:
        sock.sendall(response[:cut])
        sock.shutdown(socket.SHUT_WR)
        return False
    size = {"bytewise": 1, "split": int(argument or 0)}.get(verb, len(response))
    while response:
        sock.sendall(response[:size])
        response = response[size:]
        if response:
            wait_until_acknowledged(sock)
            size = 1 if verb == "bytewise" else len(response)
    return True


def serve(sock, script, response):
    try:
        request, early = read_request(sock)
        if request is None:
            say("closed")
            return
        say("request", request.hex(), "early", len(early))
        wait_until_established(sock)
        if script == "cookie":
            cookie = response
            tlv = bytes([22, 1 + len(cookie) // 4, 0, 0]) + cookie
            wrong = NOT_AUTHORIZED if has_tlv(request, 22) else missing_cookie(cookie)
            script, response = "whole", RESPONSE if request.endswith(tlv) else wrong
        if script == "option":
            script, response = "whole", RESPONSE if request[5] == 5 else UNSUPPORTED_OPTION
        if script == "hold-time":
            script, response = "whole", UNSUPPORTED_MESSAGE if has_tlv(request, 243) else response if has_tlv(request, 1) else RESPONSE
        says_reached = response[2:4] == b"\x22\x63" and response[1] == len(response) // 4 and response[4:5] != b"\x1e"
        relays = script.split(":")[0] in ("whole", "bytewise", "split") and says_reached and asks_for_server(request)
        server = connect_to_server(request) if relays else None
        if answer(sock, script, response) and server:
            server.sendall(early)
            relay(sock, server)
        wait_for_end(sock)
    except OSError as error:
        say("error", error)
    finally:
        sock.close()


def main():
    address, port, script = sys.argv[1:4]
    response = bytes.fromhex(sys.argv[4]) if len(sys.argv) > 4 else RESPONSE
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, 262)  # IPPROTO_MPTCP
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Linux before 6.2 has no such options on MPTCP sockets: there the request comes behind the handshake
    with contextlib.suppress(OSError):
        listener.setsockopt(socket.IPPROTO_TCP, 23, 1024)  # TCP_FASTOPEN
        listener.setsockopt(socket.IPPROTO_TCP, 34, 1)     # TCP_FASTOPEN_NO_COOKIE
    listener.bind((address, int(port)))
    listener.listen(1024)
    say("ready")
    while True:
        sock, _ = listener.accept()
        threading.Thread(target=serve, args=(sock, script, response), daemon=True).start()


if __name__ == "__main__":
    main()
