#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""early_probe.py - an application whose first bytes may be in the SYN

  early_probe.py WAY ADDRESS PORT

The server is an echo server, or for the ways called greeted-… one that speaks first.
"""
import array
import contextlib
import errno
import fcntl
import os
import select
import socket
import sys
import termios

TCP_FASTOPEN_CONNECT = 30
SENDERS = {
    "write": lambda sock, data: os.write(sock.fileno(), data),
    "writev": lambda sock, data: os.writev(sock.fileno(), [data[:2], b"", data[2:]]),
    "sendmsg": lambda sock, data: sock.sendmsg([data[:1], data[1:]]),
}


def wait_for(sock, events, poller=None):
    if poller is None:
        poller = select.poll()
        poller.register(sock, events)
        return poller.poll(10000)
    return poller.poll(10)


def finish(sock):
    sock.setblocking(True)
    answer = b""
    while len(answer) < 5 and (piece := sock.recv(100)):
        answer += piece
    print("answer", answer)
    sock.shutdown(socket.SHUT_WR)
    print("end", sock.recv(100))


def blocking(way, sock, target):
    if way == "fastopen-connect":
        sock.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1)
    if way == "sendto-fastopen":
        print("sent", sock.sendto(b"hello", socket.MSG_FASTOPEN, target))
    elif way == "sendmsg-fastopen":
        print("sent", sock.sendmsg([b"hel", b"lo"], [], socket.MSG_FASTOPEN, target))
    else:
        sock.connect(target)
        print("peer", sock.getpeername(), "again", errno.errorcode[sock.connect_ex(target)])
        print("sent", SENDERS.get(way, socket.socket.send)(sock, b"hello"))
    finish(sock)


def nonblocking(way, sock, target):
    sock.setblocking(False)
    poller = select.epoll() if way.startswith("epoll") else None
    if way == "epoll-before":
        poller.register(sock, select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)
    if way == "sendto-fastopen-nonblocking":
        print("sent", sock.sendto(b"hello", socket.MSG_FASTOPEN | socket.MSG_DONTWAIT, target))
    else:
        status = sock.connect_ex(target)
        if way == "epoll":
            poller.register(sock, select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)
        print("connect", errno.errorcode.get(status, "0"), wait_for(sock, select.POLLIN | select.POLLOUT, poller) != [])
        print("sent", sock.send(b"hello"))
    while not any(events & (select.EPOLLIN | select.EPOLLERR) for _, events in wait_for(sock, select.POLLIN, poller)):
        pass
    finish(sock)


def greeted(way, sock, target):
    sock.connect(target)
    if way in ("poll", "ioctl"):
        if way == "ioctl":
            fcntl.ioctl(sock, termios.FIONREAD, array.array("i", [0]))
        wait_for(sock, select.POLLIN)
    elif way == "select":
        select.select([sock], [], [], 10)
    elif way.startswith("epoll"):
        poller = select.epoll()
        poller.register(sock, select.EPOLLIN | (select.EPOLLOUT | select.EPOLLET if way == "epoll-edge" else 0))
        while not any(events & select.EPOLLIN for _, events in poller.poll(10)):
            pass
    print("greeting", sock.recv(100))


def bulk(way, sock, target):
    data = os.urandom(1000000)
    sent = 0
    if way == "fastopen":
        sent = sock.sendto(data, socket.MSG_FASTOPEN, target)
    else:
        sock.setblocking(way == "blocking")
        sock.connect_ex(target)
    if way == "blocking":
        sent = sock.send(data)
    back = b""
    poller = select.poll()
    sock.setblocking(False)
    poller.register(sock, select.POLLIN | (select.POLLOUT if sent < len(data) else 0))
    if sent == len(data):
        sock.shutdown(socket.SHUT_WR)
    while len(back) < len(data):
        ready = poller.poll(10000)
        if not ready:
            print("stalled: %d sent, %d back" % (sent, len(back)))
            return
        for _, events in ready:
            if events & select.POLLOUT and sent < len(data):
                sent += sock.send(data[sent:])
                if sent == len(data):
                    poller.modify(sock, select.POLLIN)
                    sock.shutdown(socket.SHUT_WR)
            if events & select.POLLIN:
                piece = sock.recv(1 << 20)
                if not piece:
                    print("ended early: %d sent, %d back" % (sent, len(back)))
                    return
                back += piece
    print("same" if back == data else "different", len(back))


def main():
    way, target = sys.argv[1], (sys.argv[2], int(sys.argv[3]))
    sock = socket.socket()
    try:
        if way.startswith("greeted-"):
            greeted(way[8:], sock, target)
        elif way.startswith("bulk-"):
            bulk(way[5:], sock, target)
        elif way.startswith(("nonblocking", "epoll")) or way.endswith("-nonblocking"):
            nonblocking(way, sock, target)
        else:
            blocking(way, sock, target)
    except OSError as error:
        print(errno.errorcode[error.errno])


if __name__ == "__main__":
    # a high priority, since the events that it looks for don't wait for it; ordinary users lack the right
    with contextlib.suppress(OSError):
        os.nice(-19)
    main()
