#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_platform_processes.py - does this kernel tell all processes that have a socket what one of them has done?

What src/shim/connect/shared_handshake.c rests on: a lock that no killed process leaves behind, and what can be asked of a socket.
"""
import array
import fcntl
import os
import select
import signal
import socket
import struct
import termios

from convertlab import between, check, equal, kernel, main, wait_until
from test_platform import (IPPROTO_MPTCP, PORT, TCP_ESTABLISHED, TCP_FASTOPEN_NO_COOKIE, again, client_socket,
                           disconnect, events, listener, new_lab, peek, reach, tcp_info)

TCP_FASTOPEN_CONNECT = 30
SOL_MPTCP, MPTCP_INFO = 284, 1


def lock(sock, kind=fcntl.F_WRLCK):
    """A POSIX record lock on the socket: is it ours now?"""
    try:
        fcntl.fcntl(sock, fcntl.F_SETLK, struct.pack("hhqqi", kind, os.SEEK_SET, 0, 0, 0))
        return True
    except BlockingIOError:
        return False


def test_record_lock_on_a_socket():
    """One process holds it, a child doesn't inherit it, and it is gone when its holder is killed."""
    for protocol in (IPPROTO_MPTCP, socket.IPPROTO_TCP):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol) as sock:
            check(lock(sock), "the lock isn't to be had")
            reader, writer = os.pipe()
            pid = os.fork()
            if pid == 0:
                os.write(writer, b"yes" if lock(sock) else b"no")
                lock(sock, fcntl.F_WRLCK)
                while not lock(sock):
                    os.sched_yield()
                os.write(writer, b"got")
                signal.pause()
            equal(os.read(reader, 3), b"no", "a child has its parent's lock")
            lock(sock, fcntl.F_UNLCK)
            equal(os.read(reader, 3), b"got", "the child")
            check(not lock(sock), "two have the lock")
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            wait_until(lambda: lock(sock), 5, "the lock of a killed process")  # pylint: disable=cell-var-from-loop


def counters(sock, in_syn=0):
    """(bytes received, bytes sent), as shared_handshake.c asks for them; MPTCP doesn't count those in the SYN."""
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    received, notsent, sent, again = (struct.unpack_from(form, info, at)[0] for form, at in
                                      (("Q", 128), ("I", 144), ("Q", 200), ("Q", 208)))
    try:
        info = sock.getsockopt(SOL_MPTCP, MPTCP_INFO, 96)
    except OSError:
        info = b""
    if len(info) < 96:
        # TCP; or MPTCP before Linux 6.5, of which the first subflow's are taken
        return received, sent - again + notsent
    write_seq, snd_una = struct.unpack_from("QQ", info, 16)
    received, acked = struct.unpack_from("QQ", info, 64)
    return received, in_syn + acked + write_seq - snd_una


def taken(sock):
    """How many bytes somebody has taken off the stream; its end counts as one, on either side."""
    readable = array.array("i", [0])
    fcntl.ioctl(sock, termios.FIONREAD, readable)
    return counters(sock)[0] - readable[0]


def test_bytes_taken_off_a_stream():
    """Received less readable: MPTCP, MPTCP that has fallen back, TCP; before and after the end of the stream."""
    for client_protocol, protocol in ((IPPROTO_MPTCP, IPPROTO_MPTCP), (IPPROTO_MPTCP, socket.IPPROTO_TCP),
                                      (socket.IPPROTO_TCP, socket.IPPROTO_TCP)):
        with new_lab() as lab, listener(lab, protocol) as listening, client_socket(lab, client_protocol) as client:
            reach(client, (lab.converter.addr4, PORT), b"e" * 24)
            accepted, _ = listening.accept()
            with accepted:
                wait_until(lambda: tcp_info(accepted)[0] == TCP_ESTABLISHED, 5, "the third ACK")
                accepted.sendall(b"response" + b"server")
                wait_until(lambda: peek(client) == b"responseserver", 5, "the bytes")
                equal(taken(client), 0, "bytes taken with all there")
                accepted.shutdown(socket.SHUT_WR)
                wait_until(lambda: events(client, 0, select.POLLRDHUP), 5, "the end")
                between(taken(client), -1, 1, "bytes taken with all there and the end")
                client.recv(8)
                between(taken(client), 7, 9, "bytes taken after 8 were")
                client.recv(6)
                between(taken(client), 13, 15, "bytes taken after all were")


def test_bytes_sent():
    """What was sent is known to every process, however often it was; also if MPTCP falls back to TCP on the way."""
    for fastopen in (3, 1):
        for protocol in (IPPROTO_MPTCP, socket.IPPROTO_TCP):
            with new_lab(converter_fastopen=fastopen) as lab, listener(lab, protocol) as listening, \
                    client_socket(lab, protocol) as client:
                in_syn = reach(client, (lab.converter.addr4, PORT), b"e" * 24)
                accepted, _ = listening.accept()
                equal(events(client, 5, select.POLLOUT), select.POLLOUT, "events at the SYN+ACK")
                with accepted:
                    accepted.settimeout(5)
                    equal(accepted.recv(100), b"e" * 24, "the data of the SYN")
                    equal(counters(client, in_syn)[1], 24, "bytes sent")
                    client.sendall(b"f" * 10)
                    equal(counters(client, in_syn)[1], 34, "bytes sent with those behind the SYN")
                    equal(accepted.recv(100), b"f" * 10, "what was sent")
                    equal(counters(client, in_syn)[1], 34, "bytes sent after their acknowledgement")


@kernel.needs("fastopen")
def test_attempts_can_be_told_apart():
    """A new SYN has another local port; TCP_FASTOPEN_NO_COOKIE stays as it was set; a held SYN has sent no segment."""
    segments = lambda sock: struct.unpack_from("I", sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256), 136)[0]  # noqa: E731
    for protocol in (IPPROTO_MPTCP, socket.IPPROTO_TCP):
        with new_lab() as lab, client_socket(lab, protocol) as client:
            ports = set()
            for _ in range(20):
                again(client, (lab.addresses.blackhole4, PORT))
                check(client.getsockname()[1] not in ports, "a port comes again at once")
                ports.add(client.getsockname()[1])
                disconnect(client)
                equal(client.getsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE), 1, "the mark")
                client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            client.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 0)
            equal(client.getsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE), 0, "the mark, cleared")
        with new_lab() as lab, listener(lab), client_socket(lab, protocol) as client:
            client.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1)
            client.connect((lab.converter.addr4, PORT))
            equal(segments(client), 0, "segments sent before the first bytes")
            client.send(b"e")
            check(segments(client) > 0, "no segment with the first bytes")


if __name__ == "__main__":
    main()
