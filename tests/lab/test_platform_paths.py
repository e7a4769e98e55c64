#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_platform_paths.py - does this kernel let a connection begin on another network, as the shim expects?

No code of the project runs here. Linux 6.18: if the default network drops all packets, no new connection ever succeeds, while a socket
that is bound to another network's address connects at once.
"""
import contextlib
import select
import socket

from convertlab import check, equal, kernel, main, wait_until
from test_platform import (IN, MSG_FASTOPEN, OUT, PORT, ET, TCPI_OPT_SYN_DATA, client_socket, disconnect, listener, new_lab, so_error,
                           tcp_info)

IP_BIND_ADDRESS_NO_PORT = 24
SO_BINDTOIFINDEX = 62


@kernel.needs("fastopen")
def test_other_network():
    """The default network drops all packets: the same descriptor connects over another one, and keeps its epoll registration."""
    seen = []
    for protocol in kernel.protocols_with_fastopen():
        with new_lab() as lab, listener(lab, protocol) as listening, client_socket(lab, protocol) as client, select.epoll() as epoll:
            epoll.register(client, IN | OUT | ET)
            lab.wifi.down()
            client.sendto(b"one", MSG_FASTOPEN, (lab.converter.addr4, PORT))
            disconnect(client)
            equal(so_error(client), {socket.IPPROTO_TCP: "ECONNRESET"}.get(protocol, "0"), "SO_ERROR after the disconnect")
            client.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
            client.bind((lab.client.lte4, 0))
            equal(client.sendto(b"two", MSG_FASTOPEN, (lab.converter.addr4, PORT)), 3, "bytes taken the second time")
            # epoll looks for the disconnect's events when a wait ends, and they are over by then
            seen.append(epoll.poll(0))
            accepted, peer = listening.accept()
            with accepted:
                equal((accepted.recv(10), peer[0]), (b"two", lab.client.lte4), "the data of the second SYN, and its source")
            wait_until(lambda: any(event & OUT for _, event in epoll.poll(1)), 5, "the second SYN+ACK")
            check(tcp_info(client)[1] & TCPI_OPT_SYN_DATA, "the second SYN's data wasn't taken")
            disconnect(client)
            client.bind((lab.client.wifi4, 0))
            lab.wifi.up()
            with contextlib.suppress(ConnectionAbortedError):
                client.sendto(b"three", MSG_FASTOPEN, (lab.converter.addr4, PORT))
            equal(listening.accept()[1][0], lab.client.wifi4, "the source of the third SYN")
    equal(seen, [[] for _ in seen], "events between the disconnect and the second SYN+ACK")


def test_device_without_rights():
    """Any user may bind a socket to a device, once; then the kernel takes that device's route, whatever its metric."""
    with new_lab() as lab, listener(lab, socket.IPPROTO_TCP) as listening:
        lab.client.ip("rule del from %s table 102" % lab.client.lte4)
        program = ("import socket, sys\ns = socket.socket()\nif sys.argv[3] != '0':\n s.setsockopt(1, %d, int(sys.argv[3]))\n"
                   "s.bind((sys.argv[1], 0))\ns.settimeout(2)\ns.connect((sys.argv[2], %d))\n" % (SO_BINDTOIFINDEX, PORT))
        with lab.client.entered():
            index = socket.if_nametoindex("lte")
        user = ["setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]
        lab.wifi.down()
        lab.client.run([*user, "python3", "-c", program, lab.client.lte4, lab.converter.addr4, index])
        equal(listening.accept()[1][0], lab.client.lte4, "the source of the connection")
        result = lab.client.run([*user, "python3", "-c", program, lab.client.lte4, lab.converter.addr4, 0], check=False)
        check(result.returncode, "the address alone leads there, without a rule")



if __name__ == "__main__":
    main()
