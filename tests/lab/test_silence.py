#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_silence.py - silent requests: if the SYN+ACK confirms the server, no response follows

doc/private-tlvs.md has the rules. Captured packets show that the converter sends no byte but the server's.
"""
import contextlib
import hashlib
import itertools
import os
import signal
import socket
import threading

from convertlab import Lab, Link, check, equal, kernel, long, main, need, same_data, wait_until, waits
from convertlab.pcap import OPT_MPTCP, OPT_TIMESTAMP
from convertlab.manager import Manager
from convertlab.peers import (MPTCP, TCP, WITHHOLDING, Client, Server, connect, connect_tlv, connections, converter, error, extended_header,
                              message, octets, read_exactly, silent, tlvs, writable)
from convertlab.topology import CONVERTD_OPEN
from convertlab.withheld import DROP_FORGED, overflow

INFO = octets("01010000")
# SYNs are withheld for longer than a busy machine stands still.
PATIENT = ("--hold-time", "2900")


def far(core_ms=5, **options):
    """A lab without the second path."""
    return Lab(wifi=Link(delay_ms=2), lte=None, core=Link(delay_ms=core_ms), **options)


def asks(lab, address, v6=False, port=80, **flags):
    """A silent request for a port of the lab's server, or of that address."""
    return silent(connect_tlv(address or (lab.server.addr6 if v6 else lab.server.addr4), port), **flags)


def each(lab, delivery="syn", protocols=(TCP, MPTCP)):
    """(client, flags of its request, whether over IPv6): TCP and MPTCP, both families, blind or not."""
    for protocol in protocols:
        for v6 in (False, True):
            for blind in (False, True):
                address = lab.converter.addr6 if v6 else lab.converter.addr4
                with Client(lab.client, address, protocol, delivery) as client:
                    client.name += ", blind" if blind else ", silent"
                    yield client, {"blind": blind, "mptcp": protocol == MPTCP}, v6


def sent(packets, client):
    """The stream that the converter has sent to that client, without repetitions."""
    first = next(p for p in packets if p.synack and p.dport == client.port)
    stream = {}
    for p in packets:
        if p.sport == 1234 and p.dport == client.port and p.payload:
            stream[p.seq - first.seq & 0xffffffff] = p.payload
    return b"".join(stream[at] for at in sorted(stream))


def is_reset(client):
    """Fails unless the connection ends with a reset and without a byte."""
    equal(client.end(), (b"", "reset"), client.name)


# --- silence -------------------------------------------------------------------------------------------------


@kernel.needs("fastopen")
def test_offered():
    """convertd offers silence to an Info TLV if it withholds SYNs; not with --no-silence, nor if its host takes no data in SYNs."""
    with far() as lab:
        for fastopen, arguments, want in ((3, (), WITHHOLDING), (3, ("--no-silence",), octets("f0020143 02bc 6c63")),
                                          (3, ("--hold-syn", "off"), None), (1, (), octets("f0020103 02bc 6c63"))):
            lab.converter.sysctl("net.ipv4.tcp_fastopen", fastopen)
            with converter(lab, *arguments), Client(lab.client, lab.converter.addr4) as client:
                client.send(message(INFO))
                equal(dict(tlvs(client.answer())).get(0xf0), want and want[2:], "what it withholds, with %s, tcp_fastopen %d" % (arguments, fastopen))


@kernel.needs("fastopen")
def test_not_one_byte():
    """Whether the server or the client speaks first, the stream is the server's from its first byte to its last."""
    with far() as lab, Server(lab, 80) as server, converter(lab, *PATIENT) as process:
        lab.greeter()
        for speaks_first in (True, False):
            for client, flags, v6 in each(lab):
                with lab.capture(lab.client, "wifi", "tcp port 1234") as capture:
                    client.send(asks(lab, None, v6, 25 if speaks_first else 80, **flags) + (b"" if speaks_first else b"early"))
                    check(client.read(1) == b"2" if speaks_first else True, client.name)
                    if speaks_first:
                        equal(client.read(14), b"20 lab ready\r\n", client.name)
                        client.shutdown()
                        want = b"220 lab ready\r\n" + client.end()[0]
                    else:
                        sock = server.accept()
                        equal(read_exactly(sock, 5), b"early", client.name)
                        client.sock.sendall(b"late")
                        equal(read_exactly(sock, 4), b"late", client.name)
                        sock.sendall(b"answer")
                        sock.close()
                        want = b"answer"
                        equal(client.read(7), want, client.name)
                    check(client.confirmed(), "the SYN+ACK confirms nothing (%s)" % client.name)
                    client.sock.close()
                equal(sent(capture.packets(), client), want, "bytes of the converter (%s)" % client.name)
        wait_until(lambda: process.log_text().count(", silent)") == 16, 5, lambda: process.log_text())


@kernel.needs("fastopen")
def test_much():
    """Megabytes in both directions at once arrive unchanged."""
    data = hashlib.shake_256(b"silence").digest(4 << 20)
    with far(core_ms=1) as lab, Server(lab, 80) as server, converter(lab, *PATIENT):
        for client, flags, v6 in each(lab):
            client.send(asks(lab, None, v6, **flags))
            sock = server.accept()
            back = threading.Thread(target=sock.sendall, args=(data,))
            there = threading.Thread(target=client.sock.sendall, args=(data,))
            got = []
            take = threading.Thread(target=lambda sock=sock, got=got: got.append(read_exactly(sock, len(data))))
            for thread in (back, there, take):
                thread.start()
            same_data(client.read(len(data)) == data, "what came down differs (%s)" % client.name)
            for thread in (back, there, take):
                thread.join()
            same_data(got == [data], "what went up differs (%s)" % client.name)
            sock.close()
            equal(client.read(1), b"", client.name)


@kernel.needs("fastopen")
def test_server_that_closes():
    """At once, by a FIN or by a reset: the client sees the same, and no byte."""
    with far() as lab, Server(lab, 80) as server, converter(lab, *PATIENT):
        for reset in (False, True):
            for client, flags, v6 in each(lab):
                client.send(asks(lab, None, v6, **flags))
                sock = server.accept()
                if reset:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, octets("0100000000000000"))
                sock.close()
                equal(client.end(), (b"", "reset" if reset else "closed"), client.name)


@long
@waits
@kernel.needs("fastopen")
def test_reset_before_a_look():
    """A server accepts and resets at once, and a busy converter sees both together: the client is connected, then reset, as directly."""
    syn_sent, established = "02", "01"
    with far(core_ms=100) as lab, Server(lab, 80) as server, converter(lab, *PATIENT) as process:
        for last_words in (b"", b"last words"):
            for client, flags, v6 in each(lab):
                client.send(asks(lab, None, v6, **flags))
                # on a busy machine the server may have answered by now, which doesn't matter
                wait_until(lambda: 80 in connections(lab.converter, syn_sent) + connections(lab.converter, established), 5, "the SYN to the server")
                os.kill(process.serving, signal.SIGSTOP)
                sock = server.accept()
                sock.sendall(last_words)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, octets("0100000000000000"))
                sock.close()
                wait_until(lambda: 80 not in connections(lab.converter, syn_sent) + connections(lab.converter, established), 5, "the reset")
                os.kill(process.serving, signal.SIGCONT)
                equal(client.end(), (last_words, "reset"), client.name)


@kernel.needs("fastopen")
def test_half_close():
    """The client's FIN reaches the server, whose bytes still reach the client."""
    with far() as lab, Server(lab, 80) as server, converter(lab, *PATIENT):
        for client, flags, v6 in each(lab):
            client.send(asks(lab, None, v6, **flags))
            sock = server.accept()
            client.shutdown()
            equal(read_exactly(sock, 1), b"", client.name)
            sock.sendall(b"answer")
            sock.close()
            equal(client.end(), (b"answer", "closed"), client.name)


@kernel.needs("fastopen")
def test_asks_for_multipath_tcp():
    """Silence means that the server doesn't speak it, a response that it does. A blind client can't learn it."""
    with far() as lab, Server(lab, 80) as plain, Server(lab, 81, MPTCP) as speaker, converter(lab, *PATIENT):
        for server in (plain, speaker):
            for client, flags, v6 in each(lab):
                address = lab.server.addr6 if v6 else lab.server.addr4
                client.send(silent(connect_tlv(address, server.port, octets("1e020000")), **flags))
                sock = server.accept()
                sock.sendall(b"answer")
                sock.close()
                told = server is speaker and not flags["blind"]
                if told:
                    check(OPT_MPTCP in dict(extended_header(client.answer())), "the response doesn't say so (%s)" % client.name)
                equal(client.end(), (b"answer", "closed"), client.name)
                equal(client.confirmed(), not told, "does the SYN+ACK confirm the server (%s)?" % client.name)


@kernel.needs("fastopen")
def test_others_are_served_as_before():
    """A request with the RFC's Magic Number gets its response; with a Silence TLV in it, Unsupported Message."""
    with far() as lab, Server(lab, 80) as server, converter(lab):
        for protocol in (TCP, MPTCP):
            with Client(lab.client, lab.converter.addr4, protocol) as client:
                client.send(server.connect())
                server.accept().close()
                extended_header(client.answer())
            with Client(lab.client, lab.converter.addr4, protocol) as client:
                body = asks(lab, None)[4:]
                client.send(message(body))
                equal(client.answer()[:8], octets("010a2263 1e090200"), "the answer to a Silence TLV of the RFC's Magic Number")


# --- not confirmed: the ordinary response, or a reset ---------------------------------------------------------


@kernel.needs("fastopen")
def test_behind_the_handshake():
    """No SYN+ACK confirms the server: an ordinary response, to a whole request or pieces; blind clients are reset."""
    with far() as lab, Server(lab, 80) as server, converter(lab) as process:
        for delivery in ("behind", "bytewise"):
            for client, flags, v6 in each(lab, delivery):
                with lab.capture(lab.client, "wifi", "tcp port 1234") as capture:
                    client.send(asks(lab, None, v6, **flags))
                    if flags["blind"]:
                        is_reset(client)
                    else:
                        server.accept().close()
                        extended_header(client.answer())
                if flags["blind"]:
                    equal(sent(capture.packets(), client), b"", "bytes of the converter (%s)" % client.name)
        wait_until(lambda: process.log_text().count("whose SYN+ACK has confirmed nothing") == 8, 5, lambda: process.log_text())


@kernel.needs("fastopen")
def test_pieces_in_the_syn():
    """convertd refuses a SYN with a part of a silent request."""
    with far() as lab, converter(lab):
        for client, flags, v6 in each(lab, "syn-bytewise"):
            try:
                client.send(asks(lab, None, v6, **flags))
                check(not flags["blind"] or client.end() == (b"", "reset"), client.name)
            except ConnectionRefusedError:
                pass


def strip(host, hook, what):
    """Applies a middlebox's rules to that host's packets to or from the converter's port."""
    port = "tcp dport 1234" if hook == "output" else "tcp sport 1234"
    host.run(["nft", "-f", "-"], input="table inet box {\n chain packets {\n  type filter hook %s priority mangle\n  %s %s\n }\n}\n"
             % (hook, port, what))


@contextlib.contextmanager
def box(host, hook, what):
    """A middlebox within this context."""
    strip(host, hook, what)
    try:
        yield
    finally:
        host.run(["nft", "delete", "table", "inet", "box"])


@kernel.needs("fastopen")
def test_timestamps_stripped_on_the_way_there():
    """Neither end has timestamps: the ordinary response, or for a blind client silence all the same."""
    need("nft", "nftables")
    with far() as lab, Server(lab, 80) as server, converter(lab), \
            box(lab.client, "output", "tcp flags & syn == syn reset tcp option timestamp"):
        for client, flags, v6 in each(lab):
            client.send(asks(lab, None, v6, **flags))
            if not flags["blind"]:
                extended_header(client.answer())
                check(client.syn_data_taken(), client.name)
            server.accept().close()
            if flags["blind"]:
                equal(client.end(), (b"", "closed"), client.name)


@kernel.needs("fastopen")
def test_timestamps_stripped_on_the_way_back():
    """Only the client sees that: to it the SYN+ACK confirms nothing, and the server's bytes come instead of a response."""
    need("nft", "nftables")
    with far() as lab, converter(lab, *PATIENT), box(lab.client, "input", "tcp flags & syn == syn reset tcp option timestamp"):
        lab.greeter()
        for client, flags, v6 in each(lab, protocols=(TCP,)):
            client.send(asks(lab, None, v6, 25, **flags))
            equal(client.read(4), b"220 ", client.name)
            check(not client.confirmed(), client.name)


@kernel.needs("fastopen")
def test_data_not_taken():
    """Without Fast Open the converter's host doesn't acknowledge the data: a response, or for a blind client a reset."""
    with far() as lab, Server(lab, 80) as server, converter(lab):
        lab.converter.sysctl("net.ipv4.tcp_fastopen", 1)
        for client, flags, v6 in each(lab, protocols=(TCP,)):
            client.send(asks(lab, None, v6, **flags))
            if flags["blind"]:
                is_reset(client)
            else:
                extended_header(client.answer())
                check(not client.syn_data_taken(), client.name)
            server.accept().close()


@kernel.needs("fastopen")
def test_lost_syn():
    """The client's kernel sends it again without its data: a response, or for a blind client a reset."""
    need("nft", "nftables")
    with far() as lab, Server(lab, 80) as server, converter(lab), box(lab.client, "output", "@ih,16,16 0x6c63 tcp flags syn drop"):
        for client, flags, v6 in each(lab):
            client.send(asks(lab, None, v6, **flags))
            if flags["blind"]:
                is_reset(client)
            else:
                server.accept().close()
                extended_header(client.answer())


@long
@waits
@kernel.needs("fastopen")
def test_lost_synack():
    """The second SYN+ACK confirms the server as the first one would have; if Multipath TCP has fallen back, a reset and no byte.

    It falls back if the client has repeated its SYN before (Linux 6.18: the third ACK then lacks MP_CAPABLE), so either may happen.
    """
    need("nft", "nftables")
    with far() as lab, converter(lab, *PATIENT):
        lab.greeter()
        for client, flags, v6 in each(lab):
            with box(lab.client, "input", "tcp flags & (syn | ack) == (syn | ack) limit rate 1/hour burst 1 packets drop"):
                client.send(asks(lab, None, v6, 25, **flags))
                try:
                    equal(client.read(15), b"220 lab ready\r\n", client.name)
                    check(client.confirmed(), "the SYN+ACK confirms nothing (%s)" % client.name)
                except ConnectionResetError:
                    check(flags["mptcp"], "a reset (%s)" % client.name)


@kernel.needs("fastopen")
def test_hold_time():
    """The server answers after --hold-time: convertd has let an ordinary SYN go, which confirms nothing. It withholds a blind one longer,
    and confirms it, or refuses it over Multipath TCP."""
    # the answer takes much longer than the hold time, as a busy convertd lets SYNs go late; so all clients ask at once
    with far(core_ms=400) as lab, converter(lab, "--hold-time", "100"), contextlib.ExitStack() as stack:
        asked = []
        with lab.capture(lab.client, "wifi", "tcp port 1234") as capture:
            for number, (protocol, v6, blind) in enumerate(itertools.product((TCP, MPTCP), (False, True), (False, True))):
                server = stack.enter_context(Server(lab, 80 + number))
                client = stack.enter_context(Client(lab.client, lab.converter.addr6 if v6 else lab.converter.addr4, protocol))
                client.name += ", blind" if blind else ", silent"
                client.send(asks(lab, None, v6, server.port, blind=blind, mptcp=protocol == MPTCP))
                asked.append((client, server, protocol == MPTCP, blind))
            for client, server, mptcp, blind in asked:
                sock = stack.enter_context(server.accept())
                if blind and mptcp:
                    try:
                        client.read(1)
                        check(False, "it was served (%s)" % client.name)
                    except ConnectionRefusedError:
                        continue
                if not blind:
                    extended_header(client.answer())
                sock.sendall(b"answer")
                equal(client.read(6), b"answer", client.name)
        for client, _, mptcp, blind in asked:
            if not blind or not mptcp:
                synack = next(p for p in capture.packets() if p.synack and p.dport == client.port)
                equal(bool(synack.option(OPT_TIMESTAMP)), blind, "timestamps (%s)" % client.name)


@kernel.needs("fastopen")
def test_errors():
    """Clients that aren't blind get the usual Error TLVs, with the RFC's Magic Number."""
    with far() as lab, converter(lab):
        for client, flags, v6 in each(lab):
            if not flags["blind"]:
                client.send(asks(lab, None, v6, lab.addresses.refused_port, **flags))
                equal(client.answer(), error(0x60), client.name)


@kernel.needs("fastopen")
def test_multipath_or_not_at_all():
    """A middlebox removes MP_CAPABLE. From the SYN: a response, for the client to judge; from the SYN+ACK: a reset."""
    need("nft", "nftables")
    with far() as lab, Server(lab, 80) as server, converter(lab, *PATIENT):
        with box(lab.client, "output", "tcp flags & syn == syn reset tcp option 30"):
            for client, flags, v6 in each(lab, protocols=(MPTCP,)):
                if not flags["blind"]:
                    client.send(asks(lab, None, v6, **flags))
                    server.accept().close()
                    extended_header(client.answer())
        with box(lab.client, "input", "tcp flags & syn == syn reset tcp option 30"):
            for client, flags, v6 in each(lab, protocols=(MPTCP,)):
                client.send(asks(lab, None, v6, **flags))
                server.accept().close()
                is_reset(client)
        with box(lab.client, "input", "tcp flags & syn == syn reset tcp option 30"):
            for client, flags, v6 in each(lab, protocols=(MPTCP,)):
                # convertd serves a client that doesn't insist on Multipath TCP over TCP
                client.send(asks(lab, None, v6, blind=flags["blind"]))
                sock = server.accept()
                sock.sendall(b"answer")
                sock.close()
                equal(client.end(), (b"answer", "closed"), client.name)


@kernel.needs("fastopen")
def test_not_offered():
    """--no-silence: a client that asks nevertheless gets no byte, and no connection to the server."""
    with far() as lab, converter(lab, "--no-silence"), lab.capture(lab.converter, "core", "tcp") as core:
        for delivery in ("syn", "behind"):
            for client, flags, v6 in each(lab, delivery):
                with lab.capture(lab.client, "wifi", "tcp port 1234") as capture:
                    client.send(asks(lab, None, v6, **flags))
                    is_reset(client)
                equal(sent(capture.packets(), client), b"", "bytes of the converter (%s)" % client.name)
        equal([str(p) for p in core.packets() if p.syn and p.dport == 80], [], "packets to the server")


def test_faults():
    """A faulty silent request gets no byte, in a SYN and behind the handshake."""
    with far() as lab, converter(lab):
        good = asks(lab, None)
        faults = (good[:1] + b"\0" + good[2:], b"\2" + good[1:], octets("01066c63") + good[12:],
                  silent(connect_tlv(lab.server.addr4, 80), INFO), silent(connect_tlv("127.0.0.1", 80)), silent(), silent(connect_tlv(lab.server.addr4, 80), octets("c0010000")))
        for number, fault in enumerate(faults):
            for delivery in ("syn", "behind"):
                with Client(lab.client, lab.converter.addr4, TCP, delivery) as client, \
                        lab.capture(lab.client, "wifi", "tcp port 1234") as capture:
                    with contextlib.suppress(ConnectionRefusedError):
                        client.send(fault)
                        equal(client.end()[0], b"", "what came (fault %d)" % number)
                equal(b"".join(p.payload for p in capture.packets() if p.sport == 1234), b"", "bytes (fault %d)" % number)


# --- convertd ends, or doesn't know the SYN -------------------------------------------------------------------


@kernel.needs("fastopen")
def test_marked_syn_that_was_not_withheld():
    """A marked SYN reaches convertd's socket without having been withheld, as after a restart: convertd asks the server now, silently.

    The client's host sets the mark itself, and another SYN takes all the room for withheld ones.
    """
    need("nft", "nftables")
    with far() as lab, converter(lab, "--max-pending", "4", "--hold-time", "2900") as process, \
            box(lab.client, "output", "tcp flags syn tcp urgptr set 0x6c63"):
        lab.greeter()
        with Client(lab.client, lab.converter.addr4) as other:
            other.send(connect(lab.addresses.blackhole4, 80))
            wait_until(lambda: lab.converter.run(["ss", "-Htan", "state", "syn-sent"]).stdout, 5, "the other one's SYN to its server")
            with Client(lab.client, lab.converter.addr4) as client:
                client.send(asks(lab, None, False, 25))
                equal(client.read(15), b"220 lab ready\r\n", client.name)
                check(client.confirmed(), client.name)
        wait_until(lambda: ", silent)" in process.log_text(), 5, lambda: process.log_text())


@kernel.needs("fastopen")
def test_overflow():
    """If convertd doesn't keep up, SYNs pass and confirm nothing: a response, or for a blind client only the server's bytes."""
    need("nft", "nftables")
    with far() as lab, Server(lab, 80) as server, converter(lab) as process, contextlib.ExitStack() as stack:
        lab.converter.run(["nft", "-f", "-"], input=DROP_FORGED)
        os.kill(process.serving, signal.SIGSTOP)
        overflow(lab)
        waiting = []
        for protocol in (TCP, MPTCP):
            for blind in (False, True):
                client = stack.enter_context(Client(lab.client, lab.converter.addr4, protocol))
                client.send(asks(lab, None, blind=blind, mptcp=protocol == MPTCP))
                check(writable(client.sock, 5), "no SYN+ACK (%s)" % client.name)
                check(not client.confirmed(), "the SYN+ACK confirms a server that nobody has asked (%s)" % client.name)
                waiting.append((client, blind))
        os.kill(process.serving, signal.SIGCONT)
        for _ in waiting:
            server.accept().close()
        for client, blind in waiting:
            if blind:
                equal(client.end(), (b"", "closed"), client.name)
            else:
                extended_header(client.answer())


def is_greeted(lab):
    """Fails unless another client is served in silence: the greeter's bytes, and the end of the stream."""
    with Client(lab.client, lab.converter.addr4) as client:
        client.send(asks(lab, None, port=25))
        equal(client.read(15), b"220 lab ready\r\n", client.name)
        client.shutdown()
        equal(client.end(), (b"", "closed"), client.name)


@kernel.needs("fastopen")
def test_stands_still_and_is_killed():
    """While convertd stands still no SYN is answered; after a kill the next one serves or refuses the repeated SYN, and serves others."""
    def start():
        """A convertd that is ready; the one before it has gone."""
        process = lab.converter.popen([lab.build.program("convertd"), *CONVERTD_OPEN, *PATIENT], name="convertd")
        process.wait_log("ready")
        return process
    with far() as lab, Server(lab, 80) as server:
        process = start()
        lab.greeter()
        for blind in (False, True):
            os.kill(process.serving, signal.SIGSTOP)
            with Client(lab.client, lab.converter.addr4, TCP) as client, lab.capture(lab.converter, "wifi", "tcp port 1234") as capture:
                client.send(asks(lab, None, blind=blind))
                wait_until(lambda capture=capture: [p for p in capture.packets() if p.syn], 5, "the SYN")
                process.stop(signal.SIGKILL)
                wait_until(lambda: not lab.converter.listening(1234), 10, "the survivor to close the socket")
                process = start()
                if blind:
                    with contextlib.suppress(ConnectionRefusedError):
                        equal(client.end()[0], b"", "what came")
                else:
                    with contextlib.suppress(ConnectionRefusedError):
                        answer = client.answer()
                        check(not answer or extended_header(answer), "what came: %s" % answer.hex())
                        server.accept().close()
            if blind:
                equal(b"".join(p.payload for p in capture.packets() if p.sport == 1234), b"", "bytes of the converter")
            is_greeted(lab)
        equal(process.stop(), 0, "convertd's status")


@kernel.needs("fastopen")
def test_restart():
    """convertd lets withheld SYNs go, which get a response or a refusal; the new one serves its clients in silence."""
    with far() as lab, Server(lab, 80) as server, Manager(lab) as manager:
        arguments = ("--drain-timeout", "20", *PATIENT)
        old = manager.start(*arguments)
        manager.wait("READY=1")
        lab.greeter()
        with Client(lab.client, lab.converter.addr4) as client, Client(lab.client, lab.converter.addr4) as blind:
            # the server answers after the restart
            lab.core.down("b-to-a")
            for which, flags in ((client, {}), (blind, {"blind": True})):
                which.sock.setblocking(False)
                which.send(asks(lab, None, **flags))
                which.sock.settimeout(10)
            wait_until(lambda: lab.converter.run(["ss", "-Htan", "state", "syn-sent"]).stdout.count("\n") == 2, 5, "two SYNs to the server")
            new = manager.restart(old, *arguments)
            manager.wait("READY=1")
            lab.core.up()
            extended_header(client.answer())
            server.accept().close()
            try:
                equal(blind.end()[0], b"", "what the blind one got")
            except ConnectionRefusedError:
                pass
        is_greeted(lab)
        equal(new.stop(), 0, "convertd's status")


if __name__ == "__main__":
    main()
