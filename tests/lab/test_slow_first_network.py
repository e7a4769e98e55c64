#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_slow_first_network.py - convertd moves answers off the network on which a connection began while that is far slower than the second

If nothing is under way, Linux sends an answer on a connection's first subflow, whatever its round trip. convertd sends a few bytes first,
which brings the rest to the second subflow (src/relay/relay_steer.c). Captures show the bytes of each network.
"""
from convertlab import Lab, Link, check, equal, main, wait_until
from convertlab.pcap import bytes_by_path
from convertlab.peers import Server, read_exactly

PORT = 80
FAST_MS, SLOW_MS = 5, 50  # one way
ANSWER = 12000            # less than the first window
SHORT = 3000              # not worth another packet: less than STEER_MIN
LEAD = 64                 # STEER_LEAD
CLIENT = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as sock:
    for line in sys.stdin:
        sock.sendall(b"?")
        print(len(sock.recv(int(line), socket.MSG_WAITALL)), flush=True)
"""


def answered(lab, size, client, sock):
    """Has the client ask and the server answer; returns the bytes of the answer that each network carried."""
    with lab.capture(lab.client, "wifi", "tcp") as wifi, lab.capture(lab.client, "lte", "tcp") as lte:
        client.stdin.write("%d\n" % size)
        client.stdin.flush()
        equal(len(read_exactly(sock, 1)), 1, "bytes of the request")
        sock.sendall(bytes(size))
        equal(client.stdout.readline(), "%d\n" % size, "bytes of the answer")
    return tuple(bytes_by_path(capture.packets()).get((lab.converter.addr4, address), 0)
                 for capture, address in ((wifi, lab.client.wifi4), (lte, lab.client.lte4)))


def answers(wifi_ms, lte_ms, *sizes):
    """(bytes over wifi, bytes over lte) of each answer on a connection that began over wifi, with a second subflow over lte.

    The server is so near that convertd reads each answer whole, and writes it whole if it doesn't split it.
    """
    with Lab(wifi=Link(delay_ms=wifi_ms), lte=Link(delay_ms=lte_ms), core=None) as lab, Server(lab, PORT) as server:
        lab.convertd()
        client = lab.client.popen(["python3", "-c", CLIENT, lab.server.addr4, PORT], env=lab.converted(), stdin=-1, stdout=-1, text=True)
        with server.accept() as sock:
            answered(lab, 1, client, sock)
            wait_until(lambda: lab.converter.counters()["MPTcpExtMPJoinAckRx"] > 0, 10, "the second subflow")
            found = [answered(lab, size, client, sock) for size in sizes]
        client.stdin.close()
        equal(client.wait(10), 0, "status of the program")
        check("converted over MPTCP" in lab.shim_log(), lab.shim_log())
        return found


def test_first_is_slow():
    """The second network carries all but the leading bytes, except of a short answer."""
    equal(answers(SLOW_MS, FAST_MS, ANSWER, SHORT, ANSWER), [(LEAD, ANSWER - LEAD), (SHORT, 0), (LEAD, ANSWER - LEAD)], "bytes by network")


def test_first_is_fast():
    """convertd splits no answer, and the slower network carries no byte."""
    equal(answers(FAST_MS, SLOW_MS, ANSWER), [(ANSWER, 0)], "bytes by network")


if __name__ == "__main__":
    main()
