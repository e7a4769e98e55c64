#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_platform_processes.py - does this kernel tell all processes with a socket the outcome of its SYN?

src/shim/connect/follow.c rests on this: each process sees the facts of the handshake, and they belong to one SYN.
"""
import fcntl
import os
import select
import socket
import struct
import termios

from convertlab import check, equal, kernel, main, wait_until
from test_platform import IPPROTO_MPTCP, PORT, again, client_socket, disconnect, events, listener, new_lab, reach, tcp_info

TCPI_OPT_TIMESTAMPS, TCPI_OPT_SYN_DATA = 1, 32
CONFIRMS = TCPI_OPT_SYN_DATA | TCPI_OPT_TIMESTAMPS


def facts(sock):
    """The bits of tcpi_options for data taken from the SYN, and for timestamps."""
    return tcp_info(sock)[1] & CONFIRMS


def received(sock):
    """How many bytes MSG_PEEK shows. On Linux 6.12 it shows nothing behind bytes that it has shown before, until FIONREAD."""
    fcntl.ioctl(sock, termios.FIONREAD, bytes(4))
    return len(sock.recv(64, socket.MSG_PEEK))


def in_child(look):
    """Calls look() in a child process; returns its result, an integer."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(writer, struct.pack("I", look()))
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(writer)
    with os.fdopen(reader, "rb") as told:
        return struct.unpack("I", told.read())[0]


@kernel.needs("fastopen")
def test_attempts_can_be_told_apart():
    """Each new SYN has another local port."""
    for protocol in (IPPROTO_MPTCP, socket.IPPROTO_TCP):
        with new_lab() as lab, client_socket(lab, protocol) as client:
            ports = set()
            for _ in range(20):
                again(client, (lab.addresses.blackhole4, PORT))
                check(client.getsockname()[1] not in ports, "a port comes again at once")
                ports.add(client.getsockname()[1])
                disconnect(client)
                client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)


@kernel.needs("fastopen")
def test_facts_are_everybodys():
    """A process that was forked before the SYN+ACK sees the facts, also after the end of the stream; a disconnected socket has none."""
    for protocol in (IPPROTO_MPTCP, socket.IPPROTO_TCP):
        with new_lab(converter_fastopen=3) as lab, listener(lab, protocol) as listening, client_socket(lab, protocol) as client:
            reach(client, (lab.converter.addr4, PORT), b"e" * 24)

            def look():
                equal(events(client, 5, select.POLLOUT), select.POLLOUT, "events at the SYN+ACK")
                return facts(client)
            equal(in_child(look), CONFIRMS, "facts in a child")
            equal(facts(client), CONFIRMS, "facts in its parent")
            accepted, _ = listening.accept()
            # an MPTCP socket sends nothing that was written before the third ACK, nor the end (test_platform_handshake.py)
            client.sendall(b"x")
            wait_until(lambda: received(accepted) == 25, 5, "what follows the third ACK")
            accepted.shutdown(socket.SHUT_WR)
            check(events(client, 5, select.POLLRDHUP) & select.POLLRDHUP, "the end")
            equal(facts(client), CONFIRMS, "facts behind the end")
            port = client.getsockname()[1]
            in_child(lambda: disconnect(client) or 0)
            check(not facts(client) or client.getsockname()[1] != port, "facts of a socket that another process has disconnected")


if __name__ == "__main__":
    main()
