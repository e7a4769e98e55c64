#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_supervise_late.py - what the supervisor makes of silence, and of answers that it sees late"""
from convertlab import check, main
from test_begin import lab_for, served
from test_supervise_begin import Supervised

# connects without blocking over each of these devices, "any" for none; the first one's outcome matters to nobody
CONNECTS = """
import socket, sys
for device in sys.argv[2:]:
    sock = socket.socket()
    if device != "any":
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
    sock.setblocking(False)
    sock.connect_ex((sys.argv[1], 7))
"""


def test_silence_of_one_connection():
    """A program's connection is silent, since the program has chosen a dead network: the converter, which answers others, doesn't rest."""
    with lab_for() as lab:
        served(lab)
        lab.lte.down()
        Supervised(lab, CONVERT_TIMEOUT="1").run("python3", "-c", CONNECTS, lab.server.addr4, "lte", "any")
        log = lab.shim_log()
        check("no answer within CONVERT_TIMEOUT" in log and "but it answers others" in log, log)
        check("left alone" not in log and "converted over MPTCP" in log, log)


if __name__ == "__main__":
    main()
