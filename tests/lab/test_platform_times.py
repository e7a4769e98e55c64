#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_platform_times.py - is this kernel as quick as the shim and convertd expect? (See test_platform.py.)"""
import select
import socket
import threading
import time

from convertlab import Lab, Link, check, equal, main, measured, measured_between, measures
from test_platform import (DELAY, ET, IN, IPPROTO_MPTCP, MSG_FASTOPEN, OUT, PORT, TCP_ESTABLISHED, TCP_SYN_RECV,
                           TCPI_OPT_SYN_DATA, accept_early, client_socket, events, listener, ms, new_lab, nft, so_error,
                           syn_window_table, tcp_info)


@measures
def test_fastopen_without_cookie():
    """A non-blocking sendto(MSG_FASTOPEN) takes the data at once, puts it into the SYN, and EPOLLOUT comes with the SYN+ACK."""
    took = []
    with new_lab() as lab:
        for protocol in (socket.IPPROTO_TCP, IPPROTO_MPTCP):
            for address in (lab.converter.addr4, lab.converter.addr6):
                family = socket.AF_INET6 if ":" in address else socket.AF_INET
                with listener(lab, address=address) as listening, client_socket(lab, protocol, family) as client:
                    with lab.capture(lab.client, "wifi", "tcp") as capture:
                        start = time.monotonic()
                        equal(client.sendto(b"e" * 300, MSG_FASTOPEN, (address, PORT)), 300, "bytes taken")
                        measured(time.monotonic() - start < DELAY, "the call waited for an answer")
                        measured((events(client, 0), so_error(client)) == (0, "0"), "events or an error before the SYN+ACK")
                        equal(events(client, 1), select.POLLOUT, "events at the SYN+ACK")
                        took.append(time.monotonic() - start)
                        accepted, _ = listening.accept()
                        accepted.close()
                    syn = next(packet for packet in capture.packets() if packet.syn)
                    equal(len(syn.payload), 300, "data in the SYN")
                    equal("MP_CAPABLE" in syn.mptcp, protocol == IPPROTO_MPTCP, "is there an MP_CAPABLE")
                    check(tcp_info(client)[1] & TCPI_OPT_SYN_DATA, "TCP_INFO doesn't know that the data was taken")
    check(min(took) >= 2 * DELAY, "EPOLLOUT after %s, before the SYN+ACK" % ms(min(took)))
    measured(max(took) <= 2 * DELAY + 0.010, "EPOLLOUT after %s" % ms(max(took)))
    return "EPOLLOUT after " + " ".join(map(ms, took))


@measures
def test_fastopen_refused():
    """A SYN to a closed port takes data, too; SO_ERROR has the error after one round trip."""
    with new_lab() as lab, client_socket(lab) as client:
        equal(client.sendto(b"e" * 300, MSG_FASTOPEN, (lab.converter.addr4, lab.addresses.refused_port)), 300, "taken")
        start = time.monotonic()
        got = events(client, 1)
        check(got & select.POLLOUT and got & select.POLLHUP and got & select.POLLERR, "events are %#x" % got)
        measured(time.monotonic() - start < 2 * DELAY + 0.010, "the refusal took %s" % ms(time.monotonic() - start))
        equal((so_error(client), so_error(client)), ("ECONNREFUSED", "0"), "SO_ERROR, read twice")
        return "poll says %#x" % got


@measures
def test_second_edge():
    """Registered edge-triggered before anything is written, the socket reports EPOLLOUT again at the third ACK."""
    times = []
    with new_lab(3 * DELAY) as lab, listener(lab) as listening:
        for _ in range(20):
            with client_socket(lab) as client, accept_early(lab, listening, client) as accepted, select.epoll() as epoll:
                start = time.monotonic()
                epoll.register(accepted, IN | OUT | ET)
                equal(epoll.poll(1), [(accepted.fileno(), IN | OUT)], "the first edge")
                equal(tcp_info(accepted)[0], TCP_SYN_RECV, "state at the first edge")
                edge = epoll.poll(1)
                check(edge and edge[0][1] & OUT, "no second edge")
                times.append(time.monotonic() - start)
                equal(tcp_info(accepted)[0], TCP_ESTABLISHED, "state at the second edge")
                accepted.send(b"reply")
                equal(events(client, 1, select.POLLIN), select.POLLIN, "events on the client")
                equal(client.recv(100), b"reply", "the reply")
    measured_between(max(times), 6 * DELAY - 0.002, 6 * DELAY + 0.010, "seconds from accept to the second edge")
    return "20 of 20; the second edge after %s to %s" % (ms(min(times)), ms(max(times)))


def download(lab, size):
    """Mbit/s that reach the client by MPTCP from the converter, after data in the SYN."""
    def send():
        accepted, _ = listening.accept()
        with accepted, select.epoll() as epoll:
            epoll.register(accepted, OUT | ET)
            while tcp_info(accepted)[0] != TCP_ESTABLISHED:
                epoll.poll(1)
            accepted.setblocking(True)
            # unread bytes would make close() send a reset
            accepted.recv(100)
            accepted.sendall(bytes(size))
    with listener(lab) as listening, client_socket(lab) as client:
        thread = threading.Thread(target=send, daemon=True)
        thread.start()
        client.sendto(b"e", MSG_FASTOPEN, (lab.converter.addr4, PORT))
        client.settimeout(30)
        start, got = time.monotonic(), 0
        while got < size:
            data = client.recv(1 << 20)
            check(data, "the stream ends after %d bytes" % got)
            got += len(data)
        thread.join()
        return size * 8 / 1e6 / (time.monotonic() - start)


@measures
def test_syn_window_cure():
    """A download over 50 + 30 Mbit/s after data in the SYN, without and with the rules."""
    rates, dropped = {}, {}
    for cured in (False, True):
        with Lab(wifi=Link(delay_ms=10, rate_mbit=50, queue=200), lte=Link(delay_ms=25, rate_mbit=30, queue=200),
                 congestion="reno") as lab:
            if cured:
                nft(lab.converter, syn_window_table())
            rates[cured] = download(lab, 20000000)
            dropped[cured] = lab.client.counters().get("MPTcpExtNoDSSInWindow", 0)
    measured(dropped[True] == 0, "%d segments past the window, with the rules" % dropped[True])
    measured_between(rates[True], 55, 77, "Mbit/s with the rules")
    return "%.1f Mbit/s and %d segments past the window without, %.1f and %d with" % (
        rates[False], dropped[False], rates[True], dropped[True])


if __name__ == "__main__":
    main()
