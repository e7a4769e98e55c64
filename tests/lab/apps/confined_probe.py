#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""confined_probe.py - a program that connects a socket of another user or network namespace, or under Landlock

  confined_probe.py WAY ADDRESS PORT [ALLOWED PORT...]

WAY: user (root made the socket, and the program has become nobody's), given (the socket was given to another user), network (the socket is
of another network namespace than the program), landlock (the program may connect to the allowed ports only), landlock-privileged (the
same, without no_new_privs). It prints a transcript; the server is an echo server.
"""
import ctypes
import errno
import os
import socket
import struct
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
NET_CONNECT_TCP, RULE_NET_PORT = 2, 2
PR_SET_NO_NEW_PRIVS, CLONE_NEWNET = 38, 0x40000000


def restrict(ports, privileged):
    handled = struct.pack("QQ", 0, NET_CONNECT_TCP)
    ruleset = LIBC.syscall(CREATE_RULESET, handled, len(handled), 0)
    if ruleset < 0:
        sys.exit(77)
    for port in ports:
        LIBC.syscall(ADD_RULE, ruleset, RULE_NET_PORT, struct.pack("QQ", NET_CONNECT_TCP, int(port)), 0)
    if not privileged:
        LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if LIBC.syscall(RESTRICT_SELF, ruleset, 0) != 0:
        sys.exit("landlock_restrict_self: %s" % os.strerror(ctypes.get_errno()))


def owner_of(sock):
    """The user to whom the socket belongs for firewalls and routing rules."""
    for table in ("/proc/self/net/tcp", "/proc/self/net/tcp6"):
        with open(table, encoding="utf-8") as file:
            for words in map(str.split, file):
                if words[9] == str(os.fstat(sock.fileno()).st_ino):
                    return words[7]
    return "nobody knows"


def main(way, address, port, *ports):
    sock = socket.socket()
    if way == "user":
        os.setgid(65534)
        os.setuid(65534)
    elif way == "given":
        os.fchown(sock.fileno(), 1234, 1234)
    elif way == "network":
        LIBC.unshare(CLONE_NEWNET)
    else:
        restrict(ports, way == "landlock-privileged")
    error = sock.connect_ex((address, int(port)))
    print("connect", errno.errorcode.get(error, error))
    if not error:
        sock.send(b"hello")
        print("echo", sock.recv(100))
    if way in ("user", "given"):
        print("owner", owner_of(sock), os.fstat(sock.fileno()).st_uid)


main(*sys.argv[1:])
