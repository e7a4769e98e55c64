#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_platform.py - does this kernel behave as the shim and convertd expect?

Each test shows one behaviour that the design rests on (DESIGN.md, doc/decisions.md). Where the product works around a defect, the test
proves the cure and says whether the defect is there.
"""
import contextlib
import ctypes
import errno
import fcntl
import os
import select
import signal
import socket
import struct
import sys
import termios
import threading
import time

from convertlab import Lab, Link, Skip, Unsuitable, check, equal, kernel, main, need, wait_until
from convertlab.pcap import OPT_WSCALE, parse, round_trips
from convertlab.peers import read_exactly, unsent

IPPROTO_MPTCP = 262
MSG_FASTOPEN = 0x20000000
SO_COOKIE = 57
TCP_SAVE_SYN, TCP_SAVED_SYN = 27, 28
TCP_FASTOPEN, TCP_FASTOPEN_NO_COOKIE, TCP_IS_MPTCP = 23, 34, 43
TCP_ESTABLISHED, TCP_SYN_RECV, TCP_CLOSE = 1, 3, 7
TCPI_OPT_SYN_DATA = 32
PORT = 7000
DELAY = 0.010  # one way, of both links
LONG_DELAY = 0.150  # for tests that look between a SYN and the third ACK: longer than any process waits for a CPU

OUT, IN, ERR, HUP, ET = select.EPOLLOUT, select.EPOLLIN, select.EPOLLERR, select.EPOLLHUP, select.EPOLLET


def new_lab(delay=DELAY, **options):
    """The lab of most tests: 20 ms of round trip to the converter."""
    return Lab(wifi=Link(delay_ms=delay * 1000), lte=Link(delay_ms=delay * 1000), **options)


def listener(lab, protocol=IPPROTO_MPTCP, address=None):
    """A listener on the converter that takes data in SYNs without a cookie; over MPTCP only if the kernel can."""
    address = address or lab.converter.addr4
    sock = lab.converter.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM, protocol)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if protocol == socket.IPPROTO_TCP or kernel.has("fastopen"):
        sock.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN, 100)
        sock.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 1)
    sock.bind((address, PORT))
    sock.listen(100)
    sock.settimeout(10)
    return sock


def client_socket(lab, protocol=IPPROTO_MPTCP, family=socket.AF_INET):
    """A non-blocking socket of the client that sends data in its SYN without a cookie, if the kernel can."""
    sock = lab.client.socket(family, socket.SOCK_STREAM, protocol)
    if protocol in kernel.protocols_with_fastopen():
        sock.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 1)
    sock.setblocking(False)
    return sock


def reach(client, address, data):
    """Connects with data in the SYN, or behind the handshake without Fast Open. Returns how many bytes the SYN takes."""
    if client.proto in kernel.protocols_with_fastopen():
        return client.sendto(data, MSG_FASTOPEN, address)
    client.connect_ex(address)
    equal(events(client, 5, select.POLLOUT), select.POLLOUT, "events at the SYN+ACK")
    equal(client.send(data), len(data), "bytes sent behind the handshake")
    return 0


def disconnect(sock):
    """connect(AF_UNSPEC), which Python's socket module can't call."""
    address = struct.pack("H14x", socket.AF_UNSPEC)
    if ctypes.CDLL(None, use_errno=True).connect(sock.fileno(), address, len(address)) != 0:
        raise OSError(ctypes.get_errno(), "connect(AF_UNSPEC)")


def events(sock, wait, mask=select.POLLIN | select.POLLOUT):
    """The events of poll() within `wait` seconds."""
    poller = select.poll()
    poller.register(sock, mask)
    found = poller.poll(wait * 1000)
    return found[0][1] if found else 0


def so_error(sock):
    """SO_ERROR by its name, "0" for none."""
    value = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    return errno.errorcode.get(value, str(value))


def tcp_info(sock):
    """(tcpi_state, tcpi_options)"""
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
    return info[0], info[5]


def cookie(sock):
    """SO_COOKIE."""
    return sock.getsockopt(socket.SOL_SOCKET, SO_COOKIE, 8)


def ms(seconds):
    """A time as text."""
    return "%.1f ms" % (seconds * 1000)


# --- the client's side -----------------------------------------------------------------


@kernel.needs("fastopen")
def test_fastopen_most():
    """How much data a SYN takes: at least MTU - 100 bytes on IPv4, and MTU - 120 on IPv6."""
    found = []
    with new_lab() as lab:
        for address in (lab.converter.addr4, lab.converter.addr6):
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            with listener(lab, address=address), client_socket(lab, family=family) as client:
                found.append(client.sendto(b"e" * 3000, MSG_FASTOPEN, (address, PORT)))
    check(found[0] >= 1400 and found[1] >= 1380, "a SYN takes %s bytes only" % found)
    return "%d bytes on IPv4, %d on IPv6" % tuple(found)


@kernel.needs("fastopen")
def test_fastopen_not_taken():
    """If the listener takes no data in SYNs, the data comes behind the handshake, and the client can tell."""
    with new_lab(converter_fastopen=1) as lab, listener(lab) as listening, client_socket(lab) as client:
        client.sendto(b"e" * 300, MSG_FASTOPEN, (lab.converter.addr4, PORT))
        accepted, _ = listening.accept()
        with accepted:
            accepted.settimeout(5)
            equal(accepted.recv(1000), b"e" * 300, "the data")
            check(not tcp_info(client)[1] & TCPI_OPT_SYN_DATA, "TCPI_OPT_SYN_DATA is set")
            accepted.sendall(b"reply")
            check(events(client, 5, select.POLLIN), "no reply")
            equal(client.recv(100), b"reply", "the reply")
            still = kernel.speaks_mptcp(client)
    return "and the connection %s MPTCP" % ("is still" if still else "has lost its")


@kernel.needs("fastopen")
def test_cookie():
    """SO_COOKIE names a socket through connect, failure, disconnect and dup, and no other socket gets it."""
    with new_lab() as lab, listener(lab), client_socket(lab) as client:
        first = cookie(client)
        client.sendto(b"e", MSG_FASTOPEN, (lab.converter.addr4, lab.addresses.refused_port))
        equal(cookie(client), first, "the cookie while connecting")
        events(client, 1)
        disconnect(client)
        equal(cookie(client), first, "the cookie after connect(AF_UNSPEC)")
        with contextlib.suppress(ConnectionError):
            client.connect_ex((lab.converter.addr4, PORT))
        with client.dup() as other:
            equal(cookie(other), first, "the cookie of a duplicate")
        seen = {first}
        for _ in range(50):
            with client_socket(lab) as other:
                check(cookie(other) not in seen, "a cookie came twice")
                seen.add(cookie(other))


@kernel.needs("rcvlowat")
def test_rcvlowat():
    """With SO_RCVLOWAT poll and epoll don't report fewer bytes; peeking shows them all the same and consumes nothing."""
    with new_lab() as lab, listener(lab) as listening, client_socket(lab) as client, select.epoll() as epoll:
        reach(client, (lab.converter.addr4, PORT), b"e")
        equal(events(client, 1), select.POLLOUT, "events at the SYN+ACK")
        accepted, _ = listening.accept()
        with accepted:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 8)
            epoll.register(client, IN)
            wait_until(lambda: tcp_info(accepted)[0] == TCP_ESTABLISHED, 5, "the third ACK")
            accepted.sendall(b"abc")
            wait_until(lambda: peek(client) == b"abc", 5, "three bytes")
            equal((events(client, 0.05, select.POLLIN), epoll.poll(0.05)), (0, []), "events with 3 of 8 bytes there")
            accepted.sendall(b"defghij")
            equal([event for _, event in epoll.poll(1)], [IN], "events with 10 of 8 bytes there")
            equal(client.recv(8), b"abcdefgh", "the bytes")
            equal(events(client, 0.05, select.POLLIN), 0, "events with 2 of 8 bytes there")
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
            equal(events(client, 1, select.POLLIN), select.POLLIN, "events once SO_RCVLOWAT is 1 again")


def peek(sock):
    """The bytes in the receive queue."""
    try:
        return sock.recv(100, socket.MSG_PEEK)
    except BlockingIOError:
        return b""


def test_peek_again():
    """MSG_PEEK shows bytes behind bytes that were peeked at before, at the latest after FIONREAD. Both answers are fine."""
    with new_lab() as lab, listener(lab) as listening, client_socket(lab) as client:
        reach(client, (lab.converter.addr4, PORT), b"e")
        accepted, _ = listening.accept()
        with accepted:
            wait_until(lambda: tcp_info(accepted)[0] == TCP_ESTABLISHED, 5, "the third ACK")
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            accepted.sendall(b"abc")
            wait_until(lambda: peek(client) == b"abc", 5, "three bytes")
            accepted.sendall(b"defghij")
            wait_until(lambda: unsent(accepted) == 0, 5, "the acknowledgement of the others")
            hidden = peek(client) != b"abcdefghij"
            equal(struct.unpack("i", fcntl.ioctl(client, termios.FIONREAD, bytes(4)))[0], 10, "readable bytes")
            equal(peek(client), b"abcdefghij", "what MSG_PEEK shows then")
            equal(client.recv(100), b"abcdefghij", "what is read")
    return "hidden until FIONREAD was asked" if hidden else "shown at once"


def test_epoll_mod_rearms():
    """After EPOLL_CTL_MOD an edge-triggered registration reports a state again."""
    with new_lab() as lab, listener(lab), client_socket(lab) as client, select.epoll() as epoll:
        reach(client, (lab.converter.addr4, PORT), b"e")
        epoll.register(client, OUT | ET)
        equal([event for _, event in epoll.poll(1)], [OUT], "events at the SYN+ACK")
        # Linux 6.12 and older report room once more when the peer acknowledges the data
        wait_until(lambda: epoll.poll(0.05) == [], 5, "an end of the events")
        epoll.modify(client, OUT | ET)
        equal([event for _, event in epoll.poll(1)], [OUT], "events after EPOLL_CTL_MOD")


def test_connect_again():
    """connect(AF_UNSPEC), then data in a SYN again, on the same descriptor; its epoll registration stays."""
    notes = []
    for protocol in kernel.protocols_with_fastopen():
        for before in ("refused", "unanswered", "established"):
            with new_lab() as lab, listener(lab, protocol) as listening, client_socket(lab, protocol) as client, \
                    select.epoll() as epoll:
                epoll.register(client, IN | OUT | ET)
                first = {"refused": (lab.converter.addr4, lab.addresses.refused_port),
                         "unanswered": (lab.addresses.blackhole4, PORT),
                         "established": (lab.converter.addr4, PORT)}[before]
                client.sendto(b"one", MSG_FASTOPEN, first)
                wanted = {"refused": HUP, "unanswered": 0, "established": OUT}[before]
                wait_until(lambda: not wanted or any(event & wanted for _, event in epoll.poll(1)), 5, "the first answer")
                if before == "refused":
                    equal(so_error(client), "ECONNREFUSED", "SO_ERROR")
                if before == "established":
                    listening.accept()[0].close()
                disconnect(client)
                notes.append("%s after %s" % (so_error(client), before))
                # the events of the disconnect itself
                while epoll.poll(0.01):
                    pass
                equal(again(client, (lab.converter.addr4, PORT)), 3, "bytes taken the second time, after %s" % before)
                accepted, _ = listening.accept()
                with accepted:
                    equal(accepted.recv(10), b"two", "the data of the second SYN")
                check(any(event & OUT for _, event in epoll.poll(1)), "no event after the second SYN, after %s" % before)
                equal(so_error(client), "0", "SO_ERROR after the second SYN+ACK")
                check(tcp_info(client)[1] & TCPI_OPT_SYN_DATA, "the second SYN's data wasn't taken, after %s" % before)
    return "SO_ERROR after the disconnect, of MPTCP where the kernel has its Fast Open, then of TCP: " + ", ".join(notes)


def again(client, address):
    """Sends data in a SYN. The first try may fail with ECONNABORTED, an error left from before."""
    try:
        return client.sendto(b"two", MSG_FASTOPEN, address)
    except ConnectionAbortedError:
        return client.sendto(b"two", MSG_FASTOPEN, address)


# --- the converter's side ----------------------------------------------------------------


def accept_early(lab, listening, client):
    """Connects with data in the SYN; returns the accepted socket, which is still in SYN_RECV."""
    client.sendto(b"request", MSG_FASTOPEN, (lab.converter.addr4, PORT))
    accepted, _ = listening.accept()
    equal(tcp_info(accepted)[0], TCP_SYN_RECV, "the state of the accepted socket")
    accepted.setblocking(False)
    return accepted


@kernel.needs("fastopen")
def test_accept_in_syn_recv():
    """accept() returns at the SYN, and its data is there."""
    with new_lab(LONG_DELAY) as lab, listener(lab) as listening, client_socket(lab) as client:
        with accept_early(lab, listening, client) as accepted:
            equal(accepted.recv(100), b"request", "the data")
            equal(accepted.getsockopt(socket.IPPROTO_TCP, TCP_IS_MPTCP), 1, "TCP_IS_MPTCP")
            wait_until(lambda: tcp_info(accepted)[0] == TCP_ESTABLISHED, 5, "the third ACK")


@kernel.needs("fastopen")
def test_early_reply_is_stuck():
    """Does a reply arrive that was written before the third ACK? convertd doesn't write then, so both answers are fine."""
    arrived = {}
    with new_lab(LONG_DELAY) as lab:
        for name, protocol in (("MPTCP", IPPROTO_MPTCP), ("TCP", socket.IPPROTO_TCP)):
            with listener(lab, protocol) as listening, client_socket(lab, protocol) as client:
                with accept_early(lab, listening, client) as accepted:
                    start = time.monotonic()
                    equal(accepted.send(b"reply"), 5, "bytes that send() takes")
                    got = events(client, 0.5, select.POLLIN)
                    arrived[name] = "after %s" % ms(time.monotonic() - start) if got else "not within 500 ms"
    check("not" not in arrived["TCP"], "a reply on plain TCP came " + arrived["TCP"])
    return "the reply came on MPTCP %(MPTCP)s, on TCP %(TCP)s" % arrived


@kernel.needs("fastopen")
def test_nodelay_flushes():
    """A reply that was written before the third ACK leaves when TCP_NODELAY is set after it."""
    with new_lab(LONG_DELAY) as lab, listener(lab) as listening, client_socket(lab) as client:
        with accept_early(lab, listening, client) as accepted:
            accepted.send(b"reply")
            wait_until(lambda: tcp_info(accepted)[0] == TCP_ESTABLISHED, 5, "the third ACK")
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            check(events(client, 1, select.POLLIN), "the reply didn't arrive")


def test_nagle_of_uploads():
    """A byte that arrives during an upload makes Multipath TCP's options 4 bytes longer, so that Linux splits segments again.

    Nagle's algorithm may hold the short last one back for a round trip; with TCP_NODELAY it doesn't.
    """
    size, found = 65536, {}
    with Lab(wifi=Link(delay_ms=30), lte=None) as lab, listener(lab) as listening:
        for greets, no_delay in ((False, False), (True, False), (True, True)):
            with lab.capture(lab.client, "wifi", "tcp") as capture, lab.client.socket(protocol=IPPROTO_MPTCP) as client:
                client.settimeout(10)
                client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, no_delay)
                client.connect((lab.converter.addr4, PORT))
                client.sendall(bytes(size))
                with listening.accept()[0] as accepted:
                    accepted.settimeout(10)
                    if greets:
                        accepted.sendall(b"g")
                    equal(len(read_exactly(accepted, size)), size, "bytes of the upload")
                    accepted.sendall(b".")
                    equal(len(read_exactly(client, 1 + greets)), 1 + greets, "bytes of the server")
            found[greets, no_delay] = round_trips(capture.packets())
    equal(found[True, True], found[False, False], "round trips with TCP_NODELAY and a byte, and with neither")
    return "%d round trips, %d with a byte, %d with a byte and TCP_NODELAY" % tuple(found.values())


def test_data_after_close():
    """A closed TCP socket answers data by a reset. Does an MPTCP one take data until its window is full? Both answers are fine."""
    said = {}
    with new_lab() as lab:
        for name, protocol in (("MPTCP", IPPROTO_MPTCP), ("TCP", socket.IPPROTO_TCP)):
            with listener(lab, protocol) as listening, lab.client.socket(protocol=protocol) as client:
                client.connect((lab.converter.addr4, PORT))
                with listening.accept()[0] as accepted:
                    client.close()
                    equal(accepted.recv(1), b"", "what comes before the FIN")
                    accepted.settimeout(1)
                    taken = 0
                    try:
                        while True:
                            taken += accepted.send(bytes(10000))
                    except ConnectionError as error:
                        said[name] = errno.errorcode[error.errno]
                    except TimeoutError:
                        said[name] = "%d kB taken and no reset" % (taken // 1000)
    check("taken" not in said["TCP"], "TCP: " + said["TCP"])
    return "MPTCP: %(MPTCP)s; TCP: %(TCP)s" % said


def keepalive(sock):
    """Probes after a second of silence, then each second; the connection ends when a third probe would be due."""
    for level, name, value in ((socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1), (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 2),
                               (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1)):
        sock.setsockopt(level, name, value)


def tcp_state(sock):
    """The TCP state; of an MPTCP socket, that of its first subflow."""
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]


def test_keepalive_behind_the_handshake():
    """Keepalive that is set after the SYN+ACK: the first probe brings a reset that was lost, over MPTCP and TCP."""
    with new_lab() as lab:
        for protocol in kernel.protocols_with_fastopen():
            with listener(lab, protocol) as listening, client_socket(lab, protocol) as client:
                client.sendto(b"request", MSG_FASTOPEN, (lab.converter.addr4, PORT))
                accepted, _ = listening.accept()
                check(select.select([], [client], [], 5)[1], "no SYN+ACK")
                lab.wifi.down()
                accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                accepted.close()
                lab.wifi.wait_idle()
                lab.wifi.up()
                keepalive(client)
                check(select.select([client], [], [], 3)[0], "protocol %d: nothing after 3 s" % protocol)
                equal(client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), errno.ECONNRESET, "the error of protocol %d" % protocol)


def test_keepalive_of_an_established_connection():
    """On TCP ETIMEDOUT. Does MPTCP only close the subflow, without an event? The shim looks at the state. Both answers are fine."""
    with new_lab() as lab:
        for protocol in (socket.IPPROTO_TCP, IPPROTO_MPTCP):
            with listener(lab, protocol) as listening, lab.client.socket(protocol=protocol) as client:
                client.connect((lab.converter.addr4, PORT))
                with listening.accept()[0] as accepted:
                    accepted.send(b"x")
                    equal(client.recv(1), b"x", "what comes")
                    lab.wifi.down()
                    keepalive(client)
                    wait_until(lambda: tcp_state(client) == TCP_CLOSE, 10, "keepalive to give it up")  # pylint: disable=W0640
                    told = bool(select.select([client], [], [], 0)[0])
                lab.wifi.up()
            check(told or protocol != socket.IPPROTO_TCP, "TCP reports nothing")
    return "MPTCP reports it" if told else "MPTCP reports nothing"


LAST_SENDER = 6  # seconds of SO_SNDTIMEO, so that a sender also ends if nothing wakes it


def sends_without_end(sock, ended):
    """Runs in a thread: sends until there is an error, and notes the time of that."""
    try:
        while True:
            sock.send(bytes(65536))
    except OSError:
        ended.append(time.monotonic())


def test_last_path_is_reset():
    """A peer without the connection resets it. TCP reports that at once, MPTCP after close_timeout; when does a waiting sender end?"""
    said = {}
    with new_lab() as lab:
        adjustable = lab.client.has_sysctl("net.mptcp.close_timeout")
        if adjustable:
            lab.client.sysctl("net.mptcp.close_timeout", 1)
        for protocol in (socket.IPPROTO_TCP, IPPROTO_MPTCP):
            if protocol == IPPROTO_MPTCP and not adjustable:
                raise Unsuitable("TCP tells it; this kernel has no net.mptcp.close_timeout (6.1), and MPTCP tells nothing for %d s" % LAST_SENDER)
            with listener(lab, protocol) as listening, lab.client.socket(protocol=protocol) as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", LAST_SENDER, 0))
                client.connect((lab.converter.addr4, PORT))
                with listening.accept()[0] as accepted:
                    ended = []
                    sender = threading.Thread(target=sends_without_end, args=(client, ended))
                    sender.start()
                    accepted.recv(65536, socket.MSG_WAITALL)
                    nft(lab.converter, "table inet lost {\nchain input {\ntype filter hook input priority 0;\n"
                        "tcp dport %d reject with tcp reset\n}\n}\n" % PORT)
                    start = time.monotonic()
                    check(events(client, LAST_SENDER, 0), "protocol %d: nothing is polled" % protocol)  # HUP and ERR
                    polled = time.monotonic() - start
                    sender.join(2 * LAST_SENDER)
                    check(ended, "protocol %d: the sender is told nothing" % protocol)
                    said[protocol] = polled, ended[0] - start
                lab.converter.run(["nft", "delete", "table", "inet", "lost"])
    check(max(said[socket.IPPROTO_TCP]) < 1, "TCP takes %s" % (said[socket.IPPROTO_TCP],))
    check(said[IPPROTO_MPTCP][0] < 4, "poll() takes %.1f s" % said[IPPROTO_MPTCP][0])
    return "MPTCP, close_timeout 1 s: poll() after %.1f s, a waiting sender after %.1f" % said[IPPROTO_MPTCP]


# --- nftables -------------------------------------------------------------------------------

# The window of a SYN isn't scaled, but MPTCP takes it for scaled. One rule for each scale.
RULE = "tcp dport %d tcp flags & (syn|ack) == syn tcp option mptcp subtype 0 tcp option window count %d " \
    "tcp window set tcp window >> %d"


def syn_window_table(flags=""):
    """A table that shifts the window of MP_CAPABLE SYNs, for every scale."""
    rules = "\n".join("    " + RULE % (PORT, scale, scale) for scale in range(1, 15))
    return "table inet convert_test {\n %s\n chain syn {\n type filter hook input priority filter;\n%s\n }\n}\n" % (
        flags, rules)


def nft(host, text):
    """Has nft apply the rules; skips the test if it can't."""
    need("nft", "nftables")
    result = host.run(["nft", "-f", "-"], input=text, check=False)
    if result.returncode != 0:
        raise Skip("nft %s on this kernel refuses the rules: %s" % (nft_version(host), result.stderr))


def nft_version(host):
    """nft's version."""
    return host.run(["nft", "--version"]).stdout.split()[1]


def saved_syn(lab, protocol, receive_buffer=0):
    """The SYN that the converter's TCP received (a plain TCP listener can save it, also for an MPTCP client)."""
    with listener(lab, socket.IPPROTO_TCP) as listening, lab.client.socket(protocol=protocol) as client:
        listening.setsockopt(socket.IPPROTO_TCP, TCP_SAVE_SYN, 1)
        if receive_buffer:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        client.settimeout(5)
        client.connect((lab.converter.addr4, PORT))
        accepted, _ = listening.accept()
        with accepted:
            return parse(0, accepted.getsockopt(socket.IPPROTO_TCP, TCP_SAVED_SYN, 500))


def test_nft_syn_window():
    """nftables shifts the window of MP_CAPABLE SYNs by their own scale, and changes no other SYN."""
    found = []
    with new_lab() as lab:
        nft(lab.converter, syn_window_table())
        for size, most in ((20000, 0), (60000, 0), (150000, 0), (0, 16 << 20), (0, 64 << 20), (0, 512 << 20), (0, 2000 << 20)):
            if most:
                lab.client.sysctl("net.ipv4.tcp_rmem", "4096 131072 %d" % most)
            plain, shifted = saved_syn(lab, socket.IPPROTO_TCP, size), saved_syn(lab, IPPROTO_MPTCP, size)
            scale = plain.option(OPT_WSCALE)[0]
            equal(shifted.option(OPT_WSCALE)[0], scale, "scale of the MPTCP SYN")
            check("MP_CAPABLE" in shifted.mptcp, "no MP_CAPABLE in the SYN")
            equal(shifted.window, plain.window >> scale, "window of %d with a scale of %d" % (plain.window, scale))
            found.append("%d>>%d=%d" % (plain.window, scale, shifted.window))
        check(len(set(found)) > 4, "scales don't differ: %s" % found)
        return "nft %s: %s" % (nft_version(lab.client), ", ".join(found))


OWNER = """
import ctypes, signal, sys
nft = ctypes.CDLL("libnftables.so.1")
nft.nft_ctx_new.restype = ctypes.c_void_p
context = ctypes.c_void_p(nft.nft_ctx_new(0))
if nft.nft_run_cmd_from_buffer(context, sys.stdin.buffer.read()) != 0:
    sys.exit(1)
print("installed", flush=True)
signal.pause()
"""


def test_nft_owner_table():
    """Other processes can't remove a table with an owner. It goes with its owner's netlink socket, even after SIGKILL."""
    need("nft", "nftables")
    with new_lab() as lab:
        path = os.path.join(lab.directory, "table")
        with open(path, "w", encoding="ascii") as file:
            file.write(syn_window_table("flags owner;"))
        with open(path, "rb") as file:
            owner = lab.converter.popen([sys.executable, "-c", OWNER], stdin=file, name="owner")
        try:
            owner.wait_log("installed")
        except Exception as error:
            raise Skip("libnftables: %s" % error) from error
        tables = lambda: lab.converter.run(["nft", "list", "tables"]).stdout  # noqa: E731
        check("convert_test" in tables(), "the table isn't there")
        refused = lab.converter.run(["nft", "delete", "table", "inet", "convert_test"], check=False)
        check(refused.returncode != 0, "another process can delete the table")
        lab.converter.run(["nft", "flush", "ruleset"], check=False)
        check("convert_test" in tables(), "another process can flush the table")
        check(saved_syn(lab, IPPROTO_MPTCP).window < 8192, "the rule has no effect")
        owner.stop(signal.SIGKILL)
        wait_until(lambda: "convert_test" not in tables(), 5, "the table to go")
        return "delete by another: " + refused.stderr.strip().splitlines()[0]


if __name__ == "__main__":
    main()
