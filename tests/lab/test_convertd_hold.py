#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertd_hold.py - SYNs that convertd withholds until the server has answered

The tests compare the order of packets within one capture on one host; delays that they need are the links'.
"""
import contextlib
import json
import os
import signal
import socket
import time

from convertlab import Lab, Link, Unsuitable, between, check, equal, kernel, long, main, need, wait_until, waits
from convertlab.metrics import OPTIONS as METRICS, Metrics
from convertlab.pcap import OPT_TIMESTAMP, mptcp_subflows
from convertlab.peers import (MP_JOIN, MPTCP, MSS, TCP, Client, Forger, Server, clients, connect, connect_tlv, converter,
                              descriptors, echo, error, extended_header, memory, message, octets, read_exactly, tlvs, unsent, writable)
from convertlab.withheld import DROP_FORGED, WITHOUT_NET_ADMIN, captures, far, first, forged, overflow, queue_fields, syns_to
from test_begin import curl, served

INFO = octets("01010000")
NOT_AUTHORIZED = 0x20
SANITIZED = bool(os.environ.get("SANITIZER_PRELOAD"))


# --- confirmations -------------------------------------------------------------------------------------------


@kernel.needs("fastopen")
def test_synack_confirms():
    """The converter's SYN+ACK comes after the server's, acknowledges the data, and has the client's options."""
    with far() as lab, Server(lab, 80) as server, converter(lab, "--hold-time", "2900"):
        for client in clients(lab, deliveries=["syn"]):
            v6 = ":" in client.name
            with captures(lab) as packets:
                client.send(server.connect(v6) + b"early")
                sock = server.accept()
                equal(read_exactly(sock, 5), b"early", "the server's bytes (%s)" % client.name)
                extended_header(client.answer())
                check(client.syn_data_taken(), "the data in the SYN wasn't taken (%s)" % client.name)
            seen = packets(client)
            there = first(seen, "SYN+ACK of the server", lambda p: p.synack and p.sport == 80)
            here = first(seen, "SYN+ACK of the converter", lambda p: p.synack and p.sport == 1234)
            check(there.time < here.time, "the converter's SYN+ACK came before the server's (%s)" % client.name)
            equal("MP_CAPABLE" in here.mptcp, "MPTCP" in client.name, "MPTCP (%s)" % client.name)
            check(here.option(OPT_TIMESTAMP), "no timestamps: it confirms nothing (%s)" % client.name)
            sock.sendall(b"answer")
            equal(client.read(6), b"answer", client.name)
            sock.close()


@kernel.needs("fastopen")
def test_workers():
    """The worker that accepts a connection finds its SYN's attempt, another worker's, too: all are confirmed, by one SYN to the server."""
    with far() as lab, Server(lab, 80) as server, converter(lab, "--workers", "4", "--hold-time", "2900"), contextlib.ExitStack() as stack:
        with lab.capture(lab.converter, "core", "tcp") as core:
            at_once = []
            for i in range(40):
                at_once.append(stack.enter_context(Client(lab.client, (lab.converter.addr4, lab.converter.addr6)[i % 2], MPTCP)))
                at_once[-1].sock.setblocking(False)
                at_once[-1].send(server.connect())
            for client in at_once:
                client.sock.settimeout(10)
                extended_header(client.answer())
                check(client.confirmed(), "the SYN+ACK confirms nothing (%s)" % client.name)
                server.accept().close()
        equal(len(syns_to(core.packets(), 80)), len(at_once), "connections to the server")


def test_workers_share_syns():
    """Each worker has a queue, and clients are spread over the queues."""
    with far(core_ms=1) as lab, converter(lab, "--workers", "4"), Forger(lab.client, lab.converter.addr4) as forger:
        forged(lab)
        for i in range(200):
            forger.syn("10.66.0.%d" % (i + 1), 1111, b"")
        wait_until(lambda: sum(queue_fields(lab, 7)) == 200, 5, lambda: "200 SYNs in the queues: %s" % queue_fields(lab, 7))
        check(len(queue_fields(lab, 7)) == 4 and min(queue_fields(lab, 7)) > 0, "SYNs of each queue: %s" % queue_fields(lab, 7))


@kernel.needs("fastopen")
def test_server_that_greets_at_once():
    """The server's bytes may come before the client has its SYN+ACK."""
    with far(first_ms=25, core_ms=1) as lab, converter(lab):
        lab.greeter()
        for client in clients(lab, deliveries=["syn"]):
            client.send(connect(lab.server.addr4, 25))
            extended_header(client.answer())
            equal(client.read(15), b"220 lab ready\r\n", client.name)


COUNT_WINDOWS = """table inet windows {
 chain small {
  counter
 }
 chain large {
  counter
 }
 chain input {
  type filter hook input priority filter
  tcp dport 1234 tcp flags & (syn | ack) == syn tcp window < 1024 jump small
  tcp dport 1234 tcp flags & (syn | ack) == syn tcp window >= 1024 jump large
 }
}
"""


@kernel.needs("fastopen")
def test_windows_of_syns():
    """convertd corrects the window of an MPTCP SYN with data if SYNs are withheld; all others stay as they are."""
    need("nft", "nftables")
    with far(core_ms=1) as lab, Server(lab, 80) as server:
        def windows_of_one_syn(arguments, protocol, delivery):
            """Returns whether there was one SYN with a small window, and one with a large one; None if Linux sent the SYN again, without data."""
            before = lab.client.counters()["TcpExtTCPSynRetrans"]
            lab.converter.run(["nft", "-f", "-"], input=COUNT_WINDOWS)
            with converter(lab, *arguments), Client(lab.client, lab.converter.addr4, protocol, delivery) as client:
                client.send(server.connect())
                server.accept().close()
                extended_header(client.answer())
                seen = {name: "packets 1 " in lab.converter.run(["nft", "list", "chain", "inet", "windows", name]).stdout
                        for name in ("small", "large")}
            lab.converter.run(["nft", "delete", "table", "inet", "windows"])
            return seen if lab.client.counters()["TcpExtTCPSynRetrans"] == before else None

        for arguments in ((), ("--hold-syn", "off")):
            for protocol, delivery in ((MPTCP, "syn"), (MPTCP, "behind"), (TCP, "syn")):
                # on a busy machine the SYN+ACK may take the second after which Linux sends a SYN again
                seen = next(filter(None, (windows_of_one_syn(arguments, protocol, delivery) for _ in range(5))), None)
                small = (protocol, delivery) == (MPTCP, "syn") and not arguments
                equal(seen, {"small": small, "large": not small}, "windows (%d, %s, %s)" % (protocol, delivery, arguments))


@kernel.needs("fastopen")
def test_joins_pass():
    """A second subflow forms, and carries bytes."""
    with far(lte=Link(delay_ms=5), core_ms=5) as lab, Server(lab, 80) as server, converter(lab):
        with lab.capture(lab.converter, "lte", "tcp") as lte, Client(lab.client, lab.converter.addr4, MPTCP) as client:
            client.send(server.connect())
            sock = server.accept()
            extended_header(client.answer())
            wait_until(lambda: lab.client.run(["ss", "-HtnO", "state", "established", "dst", lab.converter.addr4]).stdout
                       .count(":1234") == 2, 5, "the second subflow")
            sock.sendall(b"answer")
            equal(client.read(6), b"answer", "the client's bytes")
            sock.close()
        equal([flow[0] for flow in mptcp_subflows(lte.packets())], ["MP_JOIN"], "subflows on lte")


# --- errors --------------------------------------------------------------------------------------------------


# A round trip within which convertd answers also on a busy machine, though shorter than the second after which Linux repeats a SYN.
FAR_MS = 400
# No other worker has to get a CPU first, and SYNs are withheld for longer than a busy machine stands still.
ALONE = ("--workers", "1", "--hold-time", "2900")


def same_flight(lab, *requests):
    """Sends requests, (client, bytes); returns the answers, after checking that each came behind the SYN+ACK, before the third ACK."""
    with captures(lab) as packets:
        for client, request in requests:
            client.send(request)
        answers = [client.answer() for client, _ in requests]
        for client, _ in requests:
            equal(client.end(), (b"", "closed"), client.name)
    for client, _ in requests:
        seen = packets(client)
        synack = first(seen, "SYN+ACK", lambda p: p.synack and p.sport == 1234)
        data = first(seen, "data of the converter", lambda p: p.sport == 1234 and p.payload)
        third = first(seen, "third ACK", lambda p: p.dport == 1234 and not p.syn)
        check(synack.time <= data.time < third.time, "the answer waited for the third ACK (%s)" % client.name)
        check(not synack.mptcp and not synack.option(OPT_TIMESTAMP), "the SYN+ACK seems to confirm something (%s)" % client.name)
    return answers


@kernel.needs("fastopen")
def test_errors_come_with_the_synack():
    """Each error comes with the SYN+ACK, whether convertd has asked a server or not."""
    with far(first_ms=FAR_MS) as lab, converter(lab, *ALONE), contextlib.ExitStack() as stack:
        there, nowhere = lab.addresses, lab.server.addr4
        bad = octets("01022263 c0010000")
        cases = [(MPTCP, lab.converter.addr6, request, want) for request, want in (
            (connect(there.unreachable4, 80), error(0x61, 1)),
            (connect(there.prohibited4, 80), error(0x61, 13)),
            (connect(there.unreachable6, 80), error(0x61, 0)),
            (connect(there.noroute4, 80), error(0x20)),
            (message(connect_tlv(nowhere, 80, octets("1d04 0000"))), error(0x21, 0x1d)),
            (bad, echo(2, bad)))]
        cases += [(protocol, address, connect(nowhere, there.refused_port), error(0x60))
                  for protocol in (TCP, MPTCP) for address in (lab.converter.addr4, lab.converter.addr6)]
        requests = [(stack.enter_context(Client(lab.client, address, protocol)), request) for protocol, address, request, _ in cases]
        for (client, request), (_, _, _, want), answer in zip(requests, cases, same_flight(lab, *requests)):
            equal(answer, want, "the answer to %s (%s)" % (request.hex(), client.name))


@kernel.needs("fastopen")
def test_refused_clients():
    """Clients that are denied, have no cookie, or are too many: nothing goes to the server."""
    with far(first_ms=FAR_MS) as lab, Server(lab, 80) as server:
        lists = os.path.join(lab.directory, "cookies")
        with open(lists, "w", encoding="ascii") as file:
            file.write("00112233\n")
        os.chmod(lists, 0o600)
        for arguments, want in ((("--deny-client", "10.1.0.2"), error(0x20)),
                                (("--deny-destination", lab.server.addr4), error(0x20)),
                                (("--cookie-list", lists), error(0x20)),
                                (("--max-connections", "1"), None)):
            with converter(lab, *ALONE, *arguments), contextlib.ExitStack() as stack:
                if not want:
                    other = stack.enter_context(Client(lab.client, lab.converter.addr4))
                    other.send(server.connect())
                    stack.enter_context(server.accept())
                    extended_header(other.answer())
                with Client(lab.client, lab.converter.addr4, MPTCP) as client, \
                        lab.capture(lab.converter, "core", "tcp") as core:
                    answer, = same_flight(lab, (client, server.connect()))
                equal(answer if want else answer[:7], want or error(0x40)[:7], "the answer with %s" % (arguments,))
            check(want is None or not core.packets(), "packets to the server with %s" % (arguments,))


@kernel.needs("fastopen")
def test_server_that_speaks_first():
    """When the worker gets a turn, the server's SYN+ACK, greeting and FIN have all come: the client gets the greeting, and the end."""
    for ends in (False, True):
        with far() as lab, Server(lab, 80) as server, converter(lab, *ALONE, *METRICS) as process, \
                Client(lab.client, lab.converter.addr4) as client:
            client.sock.setblocking(False)
            # the server answers only when the worker stands still, to the second SYN
            lab.core.down()
            client.send(server.connect())
            wait_until(lambda: Metrics(lab.converter)("convertd_withheld_syns") == 1, 10, "the SYN to be withheld")  # pylint: disable=W0640
            with stopped(process):
                lab.core.up()
                sock = server.accept()
                sock.sendall(b"220 hello")
                if ends:
                    sock.shutdown(socket.SHUT_WR)
                wait_until(lambda: not unsent(sock), 10, "the greeting to arrive")  # pylint: disable=W0640
            client.sock.settimeout(10)
            extended_header(client.answer())
            equal(client.read(9), b"220 hello", "the greeting")
            if ends:
                equal(client.end(), (b"", "closed"), "the end")
            sock.close()


@contextlib.contextmanager
def stopped(process):
    """Stops the serving process inside `with`."""
    os.kill(process.serving, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process.serving, signal.SIGCONT)


# --- SYNs that aren't withheld, or not for long ---------------------------------------------------------------


@kernel.needs("fastopen")
def test_hold_time():
    """If the server takes longer than --hold-time, convertd lets the SYN go, marked as unconfirmed; the response comes later."""
    with far(core_ms=400) as lab, Server(lab, 80) as server, converter(lab, "--hold-time", "100"):
        for client in clients(lab, deliveries=["syn"]):
            with captures(lab) as packets:
                client.send(server.connect())
                server.accept().close()
                extended_header(client.answer())
            seen = packets(client)
            there = first(seen, "SYN+ACK of the server", lambda p: p.synack and p.sport == 80)
            here = first(seen, "SYN+ACK of the converter", lambda p: p.synack and p.sport == 1234)
            check(here.time < there.time, "the SYN was withheld until the server's answer (%s)" % client.name)
            equal("MP_CAPABLE" in here.mptcp, "MPTCP" in client.name, "MPTCP (%s)" % client.name)
            check(not here.option(OPT_TIMESTAMP), "it seems to confirm something (%s)" % client.name)
            equal(len(syns_to(seen, 80)), 1, "connections to the server (%s)" % client.name)


@long
@waits
def test_far_clients():
    """
    The client's round trip is 400 ms, and the server takes a second. If convertd withheld SYNs for all of --hold-time, the client would
    send them again, and lose Multipath TCP. A client that knows its round trip asks for less: the server sees each connection once.
    """
    with far(first_ms=200, core_ms=5) as lab:
        served(lab)
        curl(lab)
        lab.core.set(delay_ms=500)
        with lab.capture(lab.server, "core", "tcp dst port 80 and tcp[tcpflags] == tcp-syn") as core, \
                lab.capture(lab.converter, "wifi", "tcp port 1234") as wifi:
            for _ in range(4):
                curl(lab)
        equal(len({p.sport for p in core.packets()}), 4, "connections to the server, in\n" + lab.shim_log())
        syns = [p for p in wifi.packets() if p.syn and p.dport == 1234]
        equal(len(syns), 4, "SYNs to the converter")
        for syn in syns:
            mine = [p for p in wifi.packets() if p.sport == syn.sport and not p.syn and p.mptcp]
            check("MP_CAPABLE" in syn.mptcp and "MP_CAPABLE" in mine[0].mptcp and "DSS" in mine[-1].mptcp, "not Multipath TCP: %s" % mine)


def test_connect_timeout():
    """--connect-timeout counts from the SYN to the server, however long the client's SYN is withheld."""
    with far() as lab, Server(lab, 80) as server, converter(lab, "--workers", "1", "--hold-time", "2900", "--connect-timeout", "4"):
        # a server answers first, so that convertd blames the silent server, not its family
        with Client(lab.client, lab.converter.addr4) as other:
            extended_header(other.send(server.connect()).answer())
            server.accept().close()
        with captures(lab) as packets, Client(lab.client, lab.converter.addr4, seconds=20) as client, \
                Client(lab.client, lab.converter.addr4, delivery="behind", seconds=20) as later:
            begin = time.monotonic()
            client.send(connect(lab.addresses.blackhole4, 80))
            # The kernel sends the SYN to the server again after a second: a time that begins then ends before one that begins with the
            # hold time's end.
            wait_until(lambda: sum(packet.syn and packet.dst == lab.addresses.blackhole4 for packet in packets(client)) > 1, 10, "its SYNs")
            later.send(connect(lab.addresses.blackhole4, 80))
            for waiting in (client, later):
                equal(waiting.answer(), error(0x41, 0), "the answer")
            check(time.monotonic() - begin >= 4, "it came after %.1f s" % (time.monotonic() - begin))
        answers = [first(packets(waiting), "answer", lambda packet, port=waiting.port: packet.dport == port and packet.payload)
                   for waiting in (client, later)]
        check(answers[0].time < answers[1].time, "the withheld client's time didn't begin with the SYN to the server")


@kernel.needs("fastopen")
def test_ordinary_way():
    """Requests behind the handshake, Info alone, and bytes of other protocols: as without withholding."""
    with far() as lab, Server(lab, 80) as server, converter(lab):
        for client in clients(lab, deliveries=["behind", "bytewise", "syn-bytewise"]):
            client.send(server.connect())
            server.accept().close()
            extended_header(client.answer())
        for client in clients(lab, deliveries=["syn"]):
            client.send(message(INFO))
            equal([kind for kind, _ in tlvs(client.answer())], [0x15, 0xf0], "TLVs (%s)" % client.name)
            equal(client.end(), (b"", "closed"), client.name)
        for client in clients(lab, deliveries=["syn"]):
            client.send(b"GET / HTTP/1.1\r\n\r\n")
            equal(client.end()[0], b"", client.name)


@kernel.needs("fastopen")
def test_info_tells():
    """The answer to an Info TLV tells that convertd withholds SYNs and corrects their windows, if it does; other answers don't."""
    need("setpriv", "util-linux")
    with far() as lab, Server(lab, 80) as server:
        for arguments, value, wrapper in (((), "017b 02bc 6c63", ()),
                                          (("--no-silence",), "0143 02bc 6c63", ()),
                                          (("--hold-syn", "off"), None, ()), ((), None, WITHOUT_NET_ADMIN)):
            with converter(lab, *arguments, wrapper=wrapper):
                for request, asked in ((message(INFO, connect_tlv(lab.server.addr4, 80)), True), (server.connect(), False)):
                    with Client(lab.client, lab.converter.addr4, MPTCP) as client:
                        client.send(request)
                        server.accept().close()
                        told = [found for kind, found in tlvs(client.answer()) if kind == 0xf0]
                        equal(told, [octets(value)] if asked and value else [], "the TLV with %s" % (arguments,))


def test_foreign_syns_dropped():
    """With --drop-foreign-syns, convertd answers no SYN that doesn't begin with a request; requests are served."""
    with far(core_ms=1) as lab, Server(lab, 80) as server, converter(lab, "--drop-foreign-syns"):
        with lab.capture(lab.client, "wifi", "tcp") as capture:
            for delivery, data in (("syn", b"GET / HTTP/1.1\r\n\r\n"), ("behind", b"")):
                with Client(lab.client, lab.converter.addr4, TCP, delivery, seconds=0.3) as client:
                    with contextlib.suppress(TimeoutError, socket.timeout):
                        client.send(data)
                        check(client.end() and False, "there is a connection")
            with Client(lab.client, lab.converter.addr4) as client:
                client.send(server.connect())
                server.accept().close()
                extended_header(client.answer())
        equal(len([p for p in capture.packets() if p.synack]), 1, "SYN+ACKs")


# --- loss, and repeated SYNs --------------------------------------------------------------------------------------------


@kernel.needs("fastopen")
def test_retransmissions():
    """A Linux client sends its SYN again after a second, without data: one connection to the server, one SYN+ACK."""
    with far(core_ms=600) as lab, Server(lab, 80) as server, converter(lab, "--hold-time", "2000"):
        with captures(lab) as packets, Client(lab.client, lab.converter.addr4, MPTCP) as client:
            client.send(server.connect())
            sock = server.accept()
            extended_header(client.answer())
            check(client.syn_data_taken(), "the data in the SYN wasn't taken")
        sock.close()
        seen = packets(client)
        check(len([p for p in seen if p.syn and p.dport == 1234]) > 1, "no SYN was sent again")
        equal(len(syns_to(seen, 80)), 1, "connections to the server")
        equal(len([p for p in seen if p.synack and p.sport == 1234]), 1, "SYN+ACKs")


def test_loss():
    """
    The client's link loses 2% of packets: no connection is stuck, and only one whose handshake is lost twice may fail. Such a client
    gets a reset, which may be lost, too: convertd sends it once.
    """
    with Lab(wifi=Link(delay_ms=1, loss=0.02), lte=None, core=Link(delay_ms=1)) as lab, converter(lab) as process:
        if kernel.has("blackhole"):
            lab.client.sysctl("net.mptcp.blackhole_timeout", 0)  # three lost SYNs must not switch MPTCP off
        program = lab.build.program("bench/tools/load/load")
        lab.start_listening(lab.server, [program, "serve", "--verify", 6000], 6000)
        said = lab.client.run([program, "run", "--to", "%s:1234" % lab.converter.addr4, "--via", "convert-syn",
                               *(["--mptcp"] if kernel.has("fastopen") else []), "--server", "%s:6000" % lab.server.addr4,
                               "--connections", 200, "--concurrency", 100, "--response", 1000, "--verify"],
                              check=False)
        found = json.loads(said.stdout)
        check(said.returncode == 0 or found["unfinished"], said.stderr)
        # convertd sends an unproven client few SYN+ACKs (proof.c)
        given_up = process.log_text().count("client never completed its handshake")
        check(given_up <= 2, process.log_text())
        reset = {"ECONNRESET": given_up - found["unfinished"]}
        equal((found["connections"], found["errors"]), (200 - given_up, {name: count for name, count in reset.items() if count}),
              "connections and errors, with %d unfinished" % found["unfinished"])


def test_syns_that_change():
    """A forged SYN comes again with another request: the first one counts."""
    with far(core_ms=100) as lab, Server(lab, 80) as server, Server(lab, 81) as other, \
            converter(lab, "--connect-timeout", "1"), Forger(lab.client, lab.converter.addr4) as forger:
        forged(lab)
        with lab.capture(lab.converter, "core", "tcp") as core:
            for target in (server, other, other):
                forger.syn("10.66.0.1", 1111, target.connect())
            forger.syn("10.66.0.2", 1111, server.connect())
            for _ in range(2):
                server.accept()
        equal(len(syns_to(core.packets(), 80)), 2, "connections to the first server")
        equal(len(syns_to(core.packets(), 81)), 0, "connections to the other")
        with lab.capture(lab.converter, "core", "tcp") as core:
            # the same SYN again, after convertd has let it go
            for _ in range(3):
                forger.syn("10.66.0.1", 1111, server.connect())
            with Client(lab.client, lab.converter.addr4) as client:
                client.send(other.connect())
                other.accept().close()
                extended_header(client.answer())
        equal(len(syns_to(core.packets(), 80)), 0, "connections for a repeated SYN")


# --- floods --------------------------------------------------------------------------------------------------


@long
@waits
def test_forged_syns_are_bounded():
    """convertd connects to servers only for a part of --max-pending forged SYNs, and lets the others go; a real client is served."""
    hold_seconds, pending = 0.3, 200
    with far(core_ms=1) as lab, Server(lab, 80) as server, \
            converter(lab, "--max-pending", pending, "--hold-time", int(hold_seconds * 1000), "--connect-timeout", "1",
                      "--request-timeout", "1") as process:
        forged(lab)
        before = memory(process)
        asks = connect(lab.addresses.blackhole4, 80)
        contents = ((asks, MSS), (b"GET / HTTP/1.1\r\n\r\n", MSS), (b"", MSS), (asks + bytes(1400), MSS), (b"", MP_JOIN),
                    (asks, MP_JOIN), (b"\1\xff\x22\x63" + bytes(1400), MSS))
        with lab.capture(lab.converter, "core", "tcp") as core, Forger(lab.client, lab.converter.addr4) as forger:
            start = time.monotonic()
            for i in range(4200):
                forger.syn("10.66.%d.%d" % (i // 250, i % 250 + 1), 1111, *contents[i % len(contents)])
            with Client(lab.client, lab.converter.addr4) as client:
                client.send(server.connect())
                server.accept().close()
                extended_header(client.answer())
            seconds = time.monotonic() - start
        asked = len(syns_to([p for p in core.packets() if p.dst == lab.addresses.blackhole4], 80))
        # on a slow machine the hold time of the first ones ends meanwhile, and makes room
        between(asked, 1, pending * (1 + int(seconds / hold_seconds)), "SYNs to the server")
        check(memory(process) - before < 4 << 20, "memory has grown by %d bytes" % (memory(process) - before))
        return "%d SYNs to the server in %.1f s" % (asked, seconds)


@long
@waits
@kernel.needs("fastopen")
def test_limit_of_a_client():
    """Forged SYNs from one client's prefix: convertd connects to servers for no more of them than --max-pending-per-client."""
    with far(core_ms=1) as lab, Server(lab, 80) as server, \
            converter(lab, "--max-pending-per-client", "5", "--connect-timeout", "4", "--hold-time", "2900"), \
            Forger(lab.client, lab.converter.addr4) as forger:
        forged(lab)
        with lab.capture(lab.converter, "core", "tcp") as core:
            for port in range(1, 101):
                forger.syn("10.66.0.1", port, connect(lab.addresses.blackhole4, 80))
            with Client(lab.client, lab.converter.addr4) as client:
                client.send(server.connect())
                server.accept().close()
                extended_header(client.answer())
                check(client.confirmed(), "another client's SYN wasn't withheld")
        equal(len(syns_to([p for p in core.packets() if p.dst == lab.addresses.blackhole4], 80)), 5, "SYNs to the server")


def test_damaged_syns():
    """A SYN with a wrong checksum gets no answer, and causes no SYN to the server."""
    with far(core_ms=1) as lab, Server(lab, 80) as server, converter(lab, "--connect-timeout", "1"), \
            Forger(lab.client, lab.converter.addr4) as forger:
        forged(lab)
        with lab.capture(lab.converter, "core", "tcp") as core, lab.capture(lab.converter, "wifi", "tcp") as wifi:
            forger.syn("10.66.0.1", 1111, server.connect(), damaged=True)
            forger.syn("10.66.0.2", 1111, server.connect())
            server.accept().close()
            wait_until(lambda: any(p.synack and p.sport == 1234 for p in wifi.packets()), 5, "a SYN+ACK for the one that is right")
        equal(len(syns_to(core.packets(), 80)), 1, "connections to the server")
        equal([p.dst for p in wifi.packets() if p.synack and p.sport == 1234][:1], ["10.66.0.2"], "the address of the first SYN+ACK")


@long
@waits
@kernel.needs("fastopen")
def test_many_at_once():
    """convertd withholds the SYNs of 1,000 clients of a silent server at once; another client is served meanwhile."""
    with far(core_ms=1) as lab, Server(lab, 80) as server, converter(lab, "--hold-time", "2900") as process:
        # a server answers first, so that convertd blames the silent server, not its family, however long these clients take
        with Client(lab.client, lab.converter.addr4) as other:
            extended_header(other.send(server.connect()).answer())
            server.accept().close()
        before = memory(process), descriptors(process)
        with contextlib.ExitStack() as stack:
            for i in range(1000):
                client = stack.enter_context(Client(lab.client, (lab.converter.addr4, lab.converter.addr6)[i % 2], MPTCP))
                client.sock.setblocking(False)
                client.send(connect(lab.addresses.blackhole4, 80))
            wait_until(lambda: descriptors(process) >= before[1] + 1000, 30, "sockets for all of them")
            grown = (memory(process) - before[0]) // 1000
            client = stack.enter_context(Client(lab.client, lab.converter.addr4))
            client.send(server.connect())
            server.accept().close()
            extended_header(client.answer())
        check(grown < 4096, "%d bytes for each" % grown)
        return "%d bytes for each" % grown


# --- libconvert.so -----------------------------------------------------------------------------------------


ASKS = """
import socket, sys
for port in (7, 9):
    try:
        with socket.create_connection((sys.argv[1], port)) as sock:
            sock.sendall(b"hello")
            print(sock.recv(5).decode(), flush=True)
    except OSError as error:
        print(error.strerror, flush=True)
"""


@kernel.needs("fastopen")
def test_info_is_not_withheld():
    """convertd doesn't withhold the SYN of a request with an Info TLV: its client doesn't know yet that SYN+ACKs may confirm servers."""
    with far() as lab, Server(lab, 80) as server, converter(lab):
        for client in clients(lab, deliveries=["syn"]):
            v6 = ":" in client.name
            address = lab.server.addr6 if v6 else lab.server.addr4
            with captures(lab) as packets:
                client.send(message(INFO, connect_tlv(address, 80)))
                server.accept().close()
                client.answer()
            seen = packets(client)
            there = first(seen, "SYN+ACK of the server", lambda p: p.synack and p.sport == 80)
            here = first(seen, "SYN+ACK of the converter", lambda p: p.synack and p.sport == 1234)
            check(here.time < there.time, "the converter's SYN+ACK waited for the server's (%s)" % client.name)


@kernel.needs("fastopen")
def test_the_shim():
    """The shim learns by its first connection that SYNs are withheld; from then on SYN+ACKs confirm servers, and refusals come at once."""
    with far(first_ms=25) as lab, converter(lab):
        lab.echo()
        env = lab.converted(XDG_RUNTIME_DIR=lab.directory)
        os.chmod(lab.directory, 0o700)
        for _ in range(2):
            equal(lab.client.run(["python3", "-c", ASKS, lab.server.addr4], env=env).stdout, "hello\nConnection refused\n",
                  "the program's output")
        log = lab.shim_log()
        check("confirmed by the SYN+ACK" in log, log)
        check("confirmed a server that it has not reached" not in log, log)


def test_stands_still():
    """A convertd that stands still answers no SYN: the client connects directly after CONVERT_TIMEOUT, and lets the converter rest."""
    with far(core_ms=1) as lab:
        process = lab.convertd()
        lab.echo()
        os.chmod(lab.directory, 0o700)
        env = lab.converted(XDG_RUNTIME_DIR=lab.directory, CONVERT_TIMEOUT=2)
        words = ["python3", "-c", ASKS, lab.server.addr4]
        equal(lab.client.run(words, env=env).stdout, "hello\nConnection refused\n", "the program's output")
        os.kill(process.serving, signal.SIGSTOP)
        with lab.capture(lab.client, "wifi", "tcp port 1234") as capture:
            equal(lab.client.run(words, env=env).stdout, "hello\nConnection refused\n", "the program's output meanwhile")
        os.kill(process.serving, signal.SIGCONT)
        equal([str(p) for p in capture.packets() if p.synack], [], "SYN+ACKs of a convertd that stands still")
        equal(lab.shim_log().count("direct, the converter fails"), 1, lab.shim_log())


@kernel.needs("fastopen")
def test_overflow():
    """If convertd doesn't keep up, the kernel lets SYNs pass. Their SYN+ACKs come at once and confirm nothing."""
    need("nft", "nftables")
    with far(core_ms=1) as lab, Server(lab, 80) as server, converter(lab) as process:
        lab.converter.run(["nft", "-f", "-"], input=DROP_FORGED)
        os.kill(process.serving, signal.SIGSTOP)
        overflow(lab)
        with contextlib.ExitStack() as stack:
            waiting = []
            for protocol in (TCP, MPTCP):
                for address in (lab.converter.addr4, lab.converter.addr6):
                    client = stack.enter_context(Client(lab.client, address, protocol))
                    client.send(server.connect(":" in address))
                    check(writable(client.sock, 5), "no SYN+ACK (%s)" % client.name)
                    check(client.syn_data_taken(), "the data in the SYN wasn't taken (%s)" % client.name)
                    check(not client.confirmed(), "the SYN+ACK confirms a server to which convertd hasn't connected (%s)" % client.name)
                    waiting.append(client)
            os.kill(process.serving, signal.SIGCONT)
            for client in waiting:
                server.accept().close()
                extended_header(client.answer())


def test_waiting_syns_come_first():
    """A worker that is behind first connects to the servers of all waiting SYNs, since clients repeat only SYNs so soon."""
    need("strace")
    if SANITIZED:
        raise Unsuitable("sanitizers don't work under strace")
    count = 300
    with far(core_ms=1) as lab:
        process = lab.convertd(["--workers", "1"])
        load = lab.build.program("bench/tools/load/load")
        lab.start_listening(lab.server, [load, "serve", 80], 80)
        trace = os.path.join(lab.directory, "trace")
        strace = lab.converter.popen(["strace", "-f", "-o", trace, "-e", "trace=connect,epoll_wait", "-p", str(process.serving)])
        strace.wait_log("attached")
        os.kill(process.serving, signal.SIGSTOP)
        crowd = lab.client.popen([load, "run", "--to", lab.converter.addr4 + ":1234", "--server", lab.server.addr4 + ":80",
                                  "--via", "convert-syn", "--concurrency", count, "--connections", count])
        wait_until(lambda: sum(queue_fields(lab, 2)) >= count, 10, "all SYNs to wait")
        os.kill(process.serving, signal.SIGCONT)
        equal(crowd.wait(30), 0, "the clients' status")
        strace.stop(signal.SIGINT)
        with open(trace, encoding="ascii", errors="replace") as file:
            calls = file.read().splitlines()
        asked = [i for i, call in enumerate(calls) if 'inet_addr("%s")' % lab.server.addr4 in call]
        worker = calls[asked[0]].split()[0]
        waits = [call for call in calls[asked[0]:asked[count - 1]] if call.startswith(worker) and "epoll_wait(" in call]
        equal(waits, [], "waits for other events before the last of %d servers is asked" % count)


if __name__ == "__main__":
    main()
