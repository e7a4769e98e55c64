#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_peeks.py - programs that look at a stream by MSG_PEEK see the same as on TCP

On MPTCP, Linux before 6.18 shows nothing behind bytes that it has shown before, and loops without end if MSG_WAITALL wants more.
"""
import os
import socket
import threading
import time

from convertlab import Lab, Link, check, equal, main


PEEKS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "apps", "peeks.py")


def answer(listening, times):
    """Answers each letter on `times` connections by five bytes, a capital after a moment; closes after "Z"."""
    for _ in range(times):
        sock, _ = listening.accept()
        with sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while letter := sock.recv(1):
                if letter.isupper():
                    time.sleep(0.3)  # so that the program waits
                if letter == b"Z":
                    break
                sock.sendall(letter * 5)


def test_what_is_seen():
    """Each way shows the same, directly and converted."""
    with Lab(wifi=Link(delay_ms=5), lte=None, core=Link(delay_ms=1)) as lab, lab.server.socket(socket.AF_INET, socket.SOCK_STREAM) as listening:
        listening.bind((lab.server.addr4, 1900))
        listening.listen(1)
        server = threading.Thread(target=answer, args=(listening, 2))
        server.start()
        lab.convertd()
        direct = lab.client.run(["python3", PEEKS, lab.server.addr4, 1900]).stdout
        equal(direct.splitlines()[-1], "taken aaaaabbbbbCCCCCDDDDDEEEEEFFFFF", "all that has come")
        said = lab.client.run(["python3", PEEKS, lab.server.addr4, 1900], env=lab.converted()).stdout
        server.join()
        equal(said, direct, "converted")
        check("converted over MPTCP" in lab.shim_log(), lab.shim_log())


if __name__ == "__main__":
    main()
