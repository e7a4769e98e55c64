#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertd_messages.py - convertd's answer to every message of RFC 8803 Section 6, byte by byte

Each goes over TCP and MPTCP, IPv4 and IPv6, in the SYN and behind it, whole and a byte at a time.
"""
import contextlib
import socket
import threading

from convertlab import Lab, Link, check, equal, first_syns, kernel, long, main, need, waits
from convertlab.peers import (MPTCP, TCP, WITHHOLDING, WITHHOLDING_SILENTLY, Client, Forger, Server, clients, connect, connect_tlv, converter,
                              descriptor_targets, descriptors, echo, error, extended_header, message, octets, readable, unsent)
from convertlab.waiting import wait_until

INFO = octets("01010000")
ECHO = octets("f1020100 00006c63")
SUPPORTED = octets("15020000 04081e00") + WITHHOLDING  # SACK-permitted, timestamps, Multipath TCP
COOKIE = octets("16030000 0011223344556677")
SACK, TIMESTAMPS, MULTIPATH = octets("0402"), octets("0802"), octets("1e02")
MP_CAPABLE = (0x1e, octets("0101"))  # version 1, HMAC-SHA256
WHOLE = ("syn", "behind")


def near(**options):
    """Returns a lab whose links are too fast to matter."""
    options.setdefault("core", Link(delay_ms=0.1))
    return Lab(wifi=Link(delay_ms=0.5), lte=None, **options)


def refused(lab, request, answer, what="", **choice):
    """Checks that each client gets this answer to this request, and then the end of the stream."""
    for client in clients(lab, **choice):
        client.send(request)
        equal(client.answer().hex(), answer.hex(), "the answer to %s%s (%s)" % (what + " " if what else "", request.hex(),
                                                                              client.name))
        equal(client.end(), (b"", "closed"), "the end behind it (%s)" % client.name)


def accepted(lab, server, requests, *before, **choice):
    """Checks that the request for the client's address family connects each client to the server. Yields (client, the answer's options)."""
    for client in clients(lab, **choice):
        client.send(requests[":" in client.name])
        answer = client.answer()
        sock = server.accept()
        for tlv in before:
            equal(answer[4:4 + len(tlv)].hex(), tlv.hex(), "the first TLV (%s)" % client.name)
            answer = message(answer[4 + len(tlv):])
        options = extended_header(answer)
        sock.sendall(b"from the server")
        client.sock.sendall(b"from the client")
        equal((client.read(15), sock.recv(100)), (b"from the server", b"from the client"), client.name)
        sock.close()
        yield client, options


def synacks(capture, port):
    """Returns the server's SYN+ACKs, one for each connection, in order."""
    found = {}
    for packet in capture.packets():
        if packet.synack and packet.sport == port:
            found.setdefault(packet.dport, packet)
    return list(found.values())


# --- Connect -----------------------------------------------------------------------------------------------------


def test_base_connect():
    """Section 6.2.6: the answer has the options of the SYN+ACK, whichever the server chose."""
    with near() as lab, Server(lab, 80) as server, converter(lab):
        for sysctls, mss in (({}, None), ({"tcp_timestamps": 0}, None), ({"tcp_sack": 0}, 1000),
                             ({"tcp_window_scaling": 0}, None), ({"tcp_timestamps": 0, "tcp_sack": 0, "tcp_window_scaling": 0}, 900)):
            for name in ("tcp_timestamps", "tcp_sack", "tcp_window_scaling"):
                lab.server.sysctl("net.ipv4." + name, sysctls.get(name, 1))
            for change in ("ip route change 10.3.0.0/24", "ip -6 route change fd03::/64 metric 256"):
                lab.server.run((change + " dev core advmss %d" % (mss or 0)).split())
            with lab.capture(lab.converter, "core", "tcp port 80") as capture:
                got = list(accepted(lab, server, (server.connect(), server.connect(v6=True)),
                                    deliveries=WHOLE if sysctls else ("syn", "behind", "bytewise", "syn-bytewise")))
            seen = synacks(capture, 80)
            equal(len(seen), len(got), "connections to the server")
            for (client, options), synack in zip(got, seen):
                equal(sorted(kind for kind, _ in options), sorted(kind for kind, _ in synack.options),
                      "kinds (%s)" % client.name)
                values = dict(options)
                for kind, what in ((2, "MSS"), (3, "window scale")):
                    equal(values.get(kind), synack.option(kind), "%s (%s)" % (what, client.name))
                equal(values.get(8), bytes(8) if "tcp_timestamps" not in sysctls else None, "timestamps")
                check(not mss or values[2] == mss.to_bytes(2, "big"), "the server's MSS is %s" % values[2].hex())


@kernel.needs("fastopen")
def test_data_in_the_syn_is_taken():
    """The delivery "syn" of these tests really delivers the request in the SYN."""
    with near() as lab, Server(lab, 80) as server, converter(lab):
        for client, _ in accepted(lab, server, (server.connect(), server.connect(v6=True)), deliveries=["syn"]):
            check(client.syn_data_taken(), "the SYN's data was not acknowledged (%s)" % client.name)


def test_multipath_towards_the_server():
    """Kind 30 without a value: MP_CAPABLE in the SYN to the server, and in the answer if the server accepts it.

    For a while, convertd doesn't ask a server again that hasn't accepted it.
    """
    with near() as lab, Server(lab, 80) as plain, Server(lab, 81, protocol=MPTCP) as multipath, converter(lab):
        for v6 in (False, True):
            with lab.capture(lab.converter, "core", "tcp") as capture, Client(lab.client, lab.converter.addr4, MPTCP) as client:
                client.send(plain.connect(v6, MULTIPATH))
                with plain.accept():
                    check(MP_CAPABLE not in extended_header(client.answer()), "the answer says that the server accepts it")
            asked = ["MP_CAPABLE" in packet.mptcp for packet in first_syns(capture.packets())]
            equal(asked, [True], "MP_CAPABLE in the SYNs to the server")
        for server, option, takes in ((plain, MULTIPATH, False), (multipath, MULTIPATH, True),
                                      (multipath, SACK + MULTIPATH + TIMESTAMPS, True), (multipath, b"", False)):
            with lab.capture(lab.converter, "core", "tcp") as capture:
                requests = server.connect(options=option), server.connect(v6=True, options=option)
                for client, options in accepted(lab, server, requests):
                    equal(MP_CAPABLE in options, takes, "MP_CAPABLE among %s (%s)" % (options, client.name))
                    equal({kind for kind, _ in options} - {30}, {2, 3, 4, 8}, "the other kinds (%s)" % client.name)
            asked = ["MP_CAPABLE" in packet.mptcp for packet in first_syns(capture.packets())]
            equal((set(asked), len(asked)), ({takes}, 16), "MP_CAPABLE in the SYNs to the server")
            took = ["MP_CAPABLE" in packet.mptcp for packet in synacks(capture, server.port)]
            equal(set(took), {takes}, "MP_CAPABLE in the server's SYN+ACKs")


def test_supported_and_ignored_options():
    """Sections 7.1 to 7.4: convertd sends kinds 4 and 8 anyway, and ignores 0, 1, 2, 3 and 5, with a value or without."""
    with near() as lab, Server(lab, 80) as server, converter(lab):
        for option in ("0402", "0802", "0402 0802", "00000000", "01010101", "0204 0218", "0303 0e", "0502",
                       "050a 0000000100000002", "01 0303 02 0204 0100 01 0502 0402 00"):
            requests = server.connect(options=octets(option)), server.connect(v6=True, options=octets(option))
            with lab.capture(lab.converter, "core", "tcp") as capture:
                for client, options in accepted(lab, server, requests, deliveries=["syn", "bytewise"]):
                    equal([kind for kind, _ in options], [2, 4, 8, 3], "kinds (%s)" % client.name)
            for packet in capture.packets():
                if packet.syn:
                    equal({kind for kind, _ in packet.options}, {2, 3, 4, 8}, "kinds in the SYN to the server")
                    check(packet.option(2) in (octets("05b4"), octets("05a0")), "MSS %s" % packet.option(2).hex())


def test_unsupported_options():
    """Section 6.2.8: the error lists each unsupported kind once, padded with zeros."""
    with near() as lab, converter(lab):
        for options, listed in (("2202", "1e01 21 22"), ("220a 0001020304050607", "1e01 21 22"),  # Fast Open, Section 7.6
                                ("1d04 0000", "1e01 21 1d"),                # TCP-AO, Section 7.7
                                ("fd02", "1e01 21 fd"), ("ff02", "1e01 21 ff"),
                                ("0602 0702", "1e02 21 06 07000000"),
                                ("1e03 00", "1e01 21 1e"),                  # the client can't choose the value
                                ("0403 00 0804 0000 1e04 0000", "1e02 21 04 081e0000"),
                                ("1e02 0402 2302 0204 05b4", "1e01 21 23"),  # only unsupported ones
                                ("2302 2302 1d02 2303 00 1302", "1e02 21 23 1d130000"),
                                ("2302 1d02 1302 0602 0702", "1e02 21 23 1d130607"),
                                ("2302 1d02 1302 0602 0702 fe02", "1e03 21 23 1d130607 fe000000")):
            for address in (lab.server.addr4, lab.server.addr6):
                refused(lab, connect(address, 80, octets(options)), message(octets(listed)), deliveries=["syn", "bytewise"])
        many = b"".join(bytes([kind, 2]) for kind in range(6, 256))
        answer = message(octets("1e3f 21") + bytes(kind for kind in range(6, 256) if kind not in (8, 30)) + bytes(1))
        refused(lab, connect(lab.server.addr4, 80, many), answer)


def test_features_of_the_host():
    """convertd neither announces nor accepts options that its host's SYNs don't have."""
    for sysctl, value, supported, kind in (("net.ipv4.tcp_sack", 0, "15020000 081e0000", "04"),
                                           ("net.ipv4.tcp_timestamps", 0, "15020000 041e0000", "08"),
                                           ("net.mptcp.enabled", 0, "15020000 04080000", "1e")):
        with near() as lab:
            lab.converter.sysctl(sysctl, value)
            with converter(lab):
                # without Multipath TCP it listens on TCP, whose Fast Open each kernel has
                protocols, withholding = ((TCP,), WITHHOLDING_SILENTLY) if kind == "1e" else ((TCP, MPTCP), WITHHOLDING)
                refused(lab, message(INFO), message(octets(supported) + withholding), deliveries=["syn"], protocols=protocols)
                refused(lab, connect(lab.server.addr4, 80, octets(kind + "02")), octets("01022263 1e0121" + kind),
                        deliveries=["syn"], protocols=protocols)


# --- Info and Cookie -----------------------------------------------------------------------------------------


def test_info():
    with near() as lab, converter(lab):
        refused(lab, octets("01022263 01010000"), message(SUPPORTED))
        # convertd ignores data behind it
        refused(lab, octets("01022263 01010000") + b"data", message(SUPPORTED))


def test_echo():
    """doc/private-tlvs.md: the bytes behind such a request come back, even before the client's end, up to the limit."""
    with near() as lab, converter(lab):
        answer = message(SUPPORTED + octets("f1020100 01006c63"))
        for client in clients(lab):
            client.send(message(INFO, ECHO) + b"early")
            client.sock.sendall(b" and late")
            equal(client.answer().hex(), answer.hex(), "the answer (%s)" % client.name)
            equal(client.read(14), b"early and late", "the echo (%s)" % client.name)
            client.sock.sendall(b"later")
            equal(client.read(5), b"later", "the later echo (%s)" % client.name)
            client.shutdown()
            equal(client.end(), (b"", "closed"), "the end (%s)" % client.name)
        data = bytes(range(256)) * 1200  # 300 KiB
        for client in clients(lab, deliveries=["behind"]):
            client.send(message(INFO, ECHO))
            sender = threading.Thread(target=client.sock.sendall, args=(data,))
            sender.start()
            equal(client.answer().hex(), answer.hex(), "the answer (%s)" % client.name)
            equal((client.read(256 * 1024) == data[:256 * 1024], client.end()), (True, (b"", "closed")), "the limit (%s)" % client.name)
            sender.join()
        # another party's private TLV of this type is an unknown one
        request = message(INFO, octets("f1020100 00006c64"))
        refused(lab, request, echo(2, request))
        # beside a Connect TLV it has no effect: the server may send something back
        with Server(lab, 80) as server:
            for _ in accepted(lab, server, [message(connect_tlv(address, 80), ECHO) for address in (lab.server.addr4, lab.server.addr6)],
                              deliveries=["syn"]):
                pass


def test_echo_is_no_amplifier():
    """A client that doesn't complete its handshake gets only SYN+ACKs; one that isn't admitted gets only the error."""
    with near() as lab, converter(lab, "--request-timeout", 1), Forger(lab.client, lab.converter.addr4) as forger:
        with lab.capture(lab.converter, "wifi", "tcp") as capture:
            before = lab.converter.counters()["TcpOutSegs"]
            forger.syn("10.1.0.77", 4000, message(INFO, ECHO) + bytes(1000))
            wait_until(lambda: lab.converter.counters()["TcpOutSegs"] > before, 5, "the SYN+ACK")
            with Client(lab.client, lab.converter.addr4) as client:
                client.send(message(INFO))
                client.answer()
        sent = [packet for packet in capture.packets() if packet.dst == "10.1.0.77"]
        check(sent and all(packet.synack and not packet.payload for packet in sent), sent)
    with near() as lab, converter(lab, "--deny-client", "0.0.0.0/0"):
        with Client(lab.client, lab.converter.addr4) as client:
            client.send(message(INFO, ECHO) + bytes(1000))
            equal((client.answer(), client.end()), (error(0x20), (b"", "closed")), "the answer to a client that isn't admitted")


def test_info_and_connect():
    with near() as lab, Server(lab, 80) as server, converter(lab):
        for order in ("%i%c", "%c%i", "%i%k%c", "%c%k%i"):
            requests = []
            for address in (lab.server.addr4, lab.server.addr6):
                tlvs = {"i": INFO, "c": connect_tlv(address, 80), "k": COOKIE}
                requests.append(message(*(tlvs[letter] for letter in order.split("%")[1:])))
            for client, options in accepted(lab, server, requests, SUPPORTED):
                equal([kind for kind, _ in options], [2, 4, 8, 3], "kinds (%s)" % client.name)


def test_info_and_failing_connect():
    """The answer to Info comes first, and then the error about the server; a malformed message gets only its error."""
    with near() as lab, converter(lab):
        for tail, last in ((connect_tlv(lab.server.addr4, lab.addresses.refused_port), "1e01 6000"),
                           (connect_tlv(lab.addresses.prohibited6, 80), "1e01 6101"),
                           (connect_tlv(lab.server.addr6, 80, octets("1302")), "1e01 2113")):
            refused(lab, message(INFO, tail), message(SUPPORTED, octets(last)))
            refused(lab, message(tail, INFO), message(SUPPORTED, octets(last)), deliveries=["syn"])
        request = message(INFO, connect_tlv("127.0.0.1", 80))
        refused(lab, request, echo(1, request))


def test_cookie_that_nobody_asked_for():
    with near() as lab, Server(lab, 80) as server, converter(lab):
        for cookie in (COOKIE, octets("16020000 deadbeef"), octets("16e60000") + bytes(229 * 4)):
            for order in (1, -1):
                requests = [message(*(connect_tlv(address, 80), cookie)[::order])
                            for address in (lab.server.addr4, lab.server.addr6)]
                list(accepted(lab, server, requests))
        refused(lab, message(COOKIE, INFO), message(SUPPORTED))


# --- malformed and unsupported messages -------------------------------------------------------------------------


def test_unsupported_version():
    """The error lists the one supported version, 1."""
    with near() as lab, converter(lab):
        for version in ("00", "02", "ff"):
            for rest in ("012263", "022263 01010000", "062263 0a050050 00000000000000000000ffff 0a080001", "ff2263"):
                refused(lab, octets(version + rest), octets("01022263 1e010001"))


SERVER = "00000000000000000000ffff0a080001"

MALFORMED = (
    # a header alone; no TLV that asks for something
    "01012263", "01042263 16030000 0011223344556677",
    # the same TLV twice
    "01032263 01010000 01010000", "010b2263 0a050050" + SERVER + "0a050050" + SERVER,
    "010a2263 16020000 00000001 0a050050" + SERVER + "16020000 00000001", "01082263 01010000 0a050050" + SERVER + "01010000",
    # Length 0; past the end
    "01022263 01000000", "01062263 0a000050" + SERVER, "01022263 16000000",
    "01022263 01020000", "01022263 0a050050", "01062263 0a060050" + SERVER, "01062263 0aff0050" + SERVER,
    "01032263 01010000 16020000",
    # impossible lengths for the TLV, a Zero field that isn't zero
    "01032263 01020000 00000000", "01022263 01010001", "01022263 0a010050", "01052263 0a040050" + SERVER[:24],
    "01072263 16010000 0a050050" + SERVER, "01082263 16020001 00000000 0a050050" + SERVER,
    # TCP options: Length 0, 1, past the field
    "01072263 0a060050" + SERVER + "1e000000", "01072263 0a060050" + SERVER + "1e010000",
    "01072263 0a060050" + SERVER + "1e050000", "01072263 0a060050" + SERVER + "01010122",
    # addresses: loopback, unspecified and "this network", multicast, broadcast
    *("01062263 0a050050 00000000000000000000ffff" + v4 for v4 in (
        "7f000001", "7ffffffe", "00000000", "00010203", "e0000001", "efffffff", "ffffffff")),
    *("01062263 0a050050" + v6 for v6 in (
        "00000000000000000000000000000001", "00000000000000000000000000000000", "ff020000000000000000000000000001",
        "ff0e0000000000000000000000000101")),
    # the first fault counts
    "01082263 0a050050 00000000000000000000ffff 7f000001 0b010000 00000000",
)


def test_malformed():
    with near() as lab, converter(lab):
        # two answers byte by byte
        refused(lab, octets("01012263"), octets("01032263 1e020100 01012263"))
        refused(lab, octets("01062263 0a050050 00000000000000000000ffff 7f000001"), octets(
            "01082263 1e070100 01062263 0a050050 00000000000000000000ffff 7f000001"))
        for request in MALFORMED:
            refused(lab, octets(request), echo(1, octets(request)), "the malformed", deliveries=["syn", "bytewise"])


UNSUPPORTED = (
    # the reserved type, whatever its length; unknown types; the converter's own
    "01022263 00010000", "01022263 00000000", "01022263 00ff0000", "01032263 01010000 00010000",
    "01022263 02010000", "01022263 0b010000", "01022263 63000000", "01022263 ff010000",
    "01072263 0a050050" + SERVER + "63010000",
    "01022263 14010000", "01032263 15020000 1e000000", "01022263 1e016000", "01072263 1e010000 0a050050" + SERVER,
    # the first fault counts
    "01032263 00010000 01000000", "01042263 0b010000 01010000 01010000",
)


def test_unsupported_message():
    with near() as lab, converter(lab):
        refused(lab, octets("01022263 00010000"), octets("01042263 1e030200 01022263 00010000"))
        for request in UNSUPPORTED:
            refused(lab, octets(request), echo(2, octets(request)), "the unsupported", deliveries=["syn", "bytewise"])


def test_echo_is_the_message_alone_and_fits():
    """The error has the message without the data behind it; of a message that doesn't fit, its first 1012 bytes: 1020 less two words."""
    with near() as lab, converter(lab):
        request = octets("01022263 00010000")
        refused(lab, request + b"and data behind it", echo(2, request))
        for words in (252, 253, 254, 255):
            request = bytes([1, words, 0x22, 0x63, 0x63, words - 1]) + bytes(range(240)) * 4
            request = (request + bytes(1020))[:words * 4]
            refused(lab, request, echo(2, request[:1012]))
            refused(lab, request + bytes(5000), echo(2, request[:1012]), deliveries=WHOLE)


def test_not_convert():
    """Section 6: bytes of other protocols are silently ignored. Section 6.1: Total Length 0 is answered by a reset."""
    with near() as lab, converter(lab):
        for request in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", octets("01022264 01010000"), octets("01022363 01010000"),
                        octets("16030100"), octets("01002262"), b"\0" * 1000):
            for client in clients(lab):
                data, how = client.send(request).end()
                equal(data, b"", "the answer to %s (%s)" % (request.hex(), client.name))
                # a byte that comes after the end is answered by an RST
                check(how == "closed" or "bytewise" in client.name, "%s (%s)" % (how, client.name))
        for request in ("01002263", "01002263 01010000", "02002263", "00002263", "ff002263"):
            for client in clients(lab):
                equal(client.send(octets(request)).end(), (b"", "reset"), "the end of %s (%s)" % (request, client.name))


def test_requests_that_arrive_together():
    """Clients send byte by byte in turn: convertd doesn't mix their bytes."""
    with near() as lab, converter(lab):
        failing = connect(lab.server.addr4, lab.addresses.refused_port)
        pairs = ((message(INFO), message(SUPPORTED)), (failing, error(0x60)), (octets("01022263 00010000"), None),
                 (message(INFO, failing[4:]), message(SUPPORTED, octets("1e016000"))), (octets("01022263 63010000"), None),
                 (connect(lab.server.addr6, 80, octets("1302")), octets("01022263 1e012113")))
        talking = []
        for request, answer in pairs:
            for protocol in (TCP, MPTCP):
                client = Client(lab.client, lab.converter.addr6, protocol, "behind").send(b"")
                talking.append((client, request, answer or echo(2, request)))
        for at in range(max(len(request) for request, _ in pairs)):
            for client, request, _ in talking:
                client.sock.sendall(request[at:at + 1])
        for client, request, answer in talking:
            equal(client.answer().hex(), answer.hex(), "the answer to %s (%s)" % (request.hex(), client.name))
            equal(client.end(), (b"", "closed"), "the end behind it (%s)" % client.name)
            client.sock.close()


def test_no_request_in_time():
    """Clients that send nothing, or any beginning of a request, are reset after --request-timeout."""
    with near() as lab, converter(lab, "--request-timeout", "1") as process:
        request = connect(lab.server.addr4, 80)
        waiting = []
        for size in range(len(request)):
            for protocol in (TCP, MPTCP):
                for delivery in ("syn", "behind") if size else ("behind",):
                    client = Client(lab.client, lab.converter.addr6, protocol, delivery)
                    waiting.append(client.send(request[:size]))
        check(not any(readable(client.sock, 0) for client in waiting[-8:]), "closed at once")
        for client in waiting:
            equal(client.end(), (b"", "reset"), "the end (%s)" % client.name)
            client.sock.close()
        wait_until(lambda: process.log_text().count("no request in time") == len(waiting), 5, "a line for each")
        # a client that keeps sending gets no more time
        with Client(lab.client, lab.converter.addr4, delivery="behind") as client:
            client.send(b"")
            sent = 0
            # the reset may come while a byte is being sent
            with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                while not readable(client.sock, 0.1):
                    client.sock.sendall(request[sent:sent + 1])
                    sent += 1
                    check(sent < 20, "a byte every 0.1 s for 2 s, and not reset")
            equal(client.end()[0], b"", "the answer")


# --- failures of the server and of the converter -------------------------------------------------------------------


def test_server_that_refuses():
    with near() as lab, converter(lab):
        for address in (lab.server.addr4, lab.server.addr6):
            for port in (lab.addresses.refused_port, 65535, 0):
                for options in (b"", MULTIPATH):
                    refused(lab, connect(address, port, options), octets("01022263 1e016000"), deliveries=WHOLE)


def test_destination_unreachable():
    with near() as lab, converter(lab):
        failing = lab.addresses
        for address, code in ((failing.unreachable6, 0), (failing.prohibited6, 1)):
            refused(lab, connect(address, 80), octets("01022263 1e0161") + bytes([code]), deliveries=WHOLE)
        # Linux's ip_error() sends a host five of these messages, then one a second, over all namespaces
        for address, code in ((failing.unreachable4, 1), (failing.prohibited4, 13)):
            refused(lab, connect(address, 80), octets("01022263 1e0161") + bytes([code]), deliveries=["syn"],
                    protocols=[MPTCP])
        # an MPTCP socket doesn't report the code: convertd sends the usual one
        refused(lab, connect(failing.unreachable6, 80, MULTIPATH), octets("01022263 1e016100"), deliveries=WHOLE)


def test_no_route():
    """Other hosts may have a route to the server: the client is to do without this converter, and not to give the server up."""
    with near() as lab, converter(lab) as process:
        for address in (lab.addresses.noroute4, lab.addresses.noroute6):
            for options in (b"", MULTIPATH):
                refused(lab, connect(address, 80, options), error(0x20), deliveries=WHOLE)
        check("no way to" in process.log_text() and "add a route" in process.log_text(), process.log_text())
        for command in ("-4 route add blackhole 10.7.9.1", "-6 route add blackhole fd07:9::1", "-4 route add unreachable 10.7.9.2",
                        "-6 route add unreachable fd07:9::2", "-4 route add throw 10.7.9.3"):
            lab.converter.run(["ip", *command.split()])
        for address in ("10.7.9.1", "fd07:9::1", "10.7.9.2", "fd07:9::2", "10.7.9.3"):
            refused(lab, connect(address, 80), error(0x20), deliveries=["syn"])


def test_no_address_to_come_from():
    """If IPv6 is switched off, as in many containers, the converter can't say whether servers can be reached."""
    with near() as lab, converter(lab):
        lab.converter.sysctl("net.ipv6.conf.all.disable_ipv6", 1)
        for address in (lab.server.addr6, "2001:4860::1"):
            for options in (b"", MULTIPATH):
                for protocol in (TCP, MPTCP):
                    with Client(lab.client, lab.converter.addr4, protocol) as client:
                        equal(client.send(connect(address, 80, options)).answer().hex(), "010222631e012000",
                              "the answer (%s)" % client.name)


REJECT = {4: ((0, "net-unreachable"), (1, "host-unreachable"), (2, "prot-unreachable"), (3, "port-unreachable"),
              (9, "net-prohibited"), (10, "host-prohibited"), (13, "admin-prohibited")),
          6: ((0, "no-route"), (1, "admin-prohibited"), (3, "addr-unreachable"), (4, "port-unreachable"))}


def test_every_icmp_code():
    """The error has the Code field of the ICMP message."""
    need("nft", "nftables")
    rules = ["ip protocol tcp tcp dport %d reject with icmp type %s" % (100 + code, name) for code, name in REJECT[4]]
    rules += ["ip6 nexthdr tcp tcp dport %d reject with icmpv6 type %s" % (100 + code, name) for code, name in REJECT[6]]
    with near() as lab, converter(lab):
        rules = ["table inet refuse {", "chain input {", "type filter hook input priority 0"] + rules + ["}", "}", ""]
        lab.server.run(["nft", "-f", "-"], input="\n".join(rules))
        for family, address in ((4, lab.server.addr4), (6, lab.server.addr6)):
            for code, _ in REJECT[family]:
                refused(lab, connect(address, 100 + code), octets("01022263 1e0161") + bytes([code]), deliveries=WHOLE)


def test_network_failure():
    """No answer, or an ICMP Time Exceeded, which isn't a Destination Unreachable, is a Network Failure."""
    with near() as lab, converter(lab, "--connect-timeout", "1"):
        waiting = []
        for address in (lab.addresses.blackhole4, lab.addresses.blackhole6):
            for options in (b"", MULTIPATH):
                for protocol in (TCP, MPTCP):
                    client = Client(lab.client, lab.converter.addr4, protocol)
                    waiting.append(client.send(connect(address, 80, options)))
        for client in waiting:
            equal(client.answer().hex(), "010222631e014100", "the answer (%s)" % client.name)
            equal(client.end(), (b"", "closed"), "the end behind it (%s)" % client.name)
            client.sock.close()
    # By the time-out these would have no answer for 30 s. Servers of both families answer first, so that convertd doesn't blame the family.
    with near() as lab, converter(lab):
        for address in (lab.server.addr4, lab.server.addr6):
            refused(lab, connect(address, lab.addresses.refused_port), error(0x60), deliveries=["syn"])
        lab.converter.ip("route add 10.7.7.0/24 via %s hoplimit 1" % lab.server.core4)
        lab.converter.run(["ip", "-6", "route", "add", "fd07:7::/64", "via", lab.server.core6, "hoplimit", "1"])
        for address in ("10.7.7.1", "fd07:7::1"):
            refused(lab, connect(address, 80), error(0x41), deliveries=["syn"])


def test_prohibited_route():
    """A prohibiting route of the converter's administrator has the answer that a router's message has."""
    with near() as lab, converter(lab):
        lab.converter.ip("route add prohibit 10.7.8.1")
        lab.converter.run(["ip", "-6", "route", "add", "prohibit", "fd07:8::1"])
        for address, code in (("10.7.8.1", "0d"), ("fd07:8::1", "01")):
            for options in (b"", MULTIPATH):
                refused(lab, connect(address, 80, options), octets("01022263 1e0161" + code), deliveries=WHOLE)


@long
@waits
def test_resource_exceeded():
    """With one descriptor left, a client gets Resource Exceeded, since there is none for its server; with none left, clients wait."""
    need("prlimit", "util-linux")
    limit = 60
    with near() as lab, Server(lab, 80) as server:
        with converter(lab, "--request-timeout", "60", "--max-connections", "1000", "--retry-delay", "7",
                       wrapper=["prlimit", "--nofile=%d:%d" % (limit, limit)]) as process:
            check("--max-connections 1000 needs" in process.log_text(), process.log_text())
            idle = []

            def used():
                return len(descriptor_targets(process))

            def fill(count):
                while used() < count:
                    before = used()
                    idle.append(Client(lab.client, lab.converter.addr4, delivery="behind").send(b""))
                    wait_until(lambda: used() > before, 5, "the client to be accepted")  # pylint: disable=W0640
            fill(limit - 1)
            with lab.capture(lab.converter, "core", "tcp port 80") as capture:
                refused(lab, server.connect(), octets("01022263 1e014007"), deliveries=WHOLE)
                refused(lab, message(INFO, server.connect()[4:]), message(SUPPORTED, octets("1e014007")), deliveries=["syn"])
            equal(capture.packets(), [], "packets to the server for refused clients")
            wait_until(lambda: used() == limit - 1, 5, "the refused clients' descriptors to be closed")
            fill(limit)
            with Client(lab.client, lab.converter.addr4, MPTCP) as late:
                late.send(server.connect())
                # there is no such line before the one about refused clients is 10 s old
                process.wait_log("clients have to wait: Too many open files", 20)
                check(not readable(late.sock, 0.2), "answered without a descriptor")
                for client in idle:
                    client.sock.close()
                # convertd accepts it as soon as one descriptor is free, and may have none for its server yet
                answer = late.answer()
                if answer != error(0x40, 7):
                    extended_header(answer)
                    server.accept().close()
                check(kernel.speaks_mptcp(late.sock), "its connection is not Multipath TCP")
            wait_until(lambda: used() <= limit - len(idle), 10, "the clients' descriptors to be closed")
            for _, options in accepted(lab, server, [server.connect(), server.connect(v6=True)], deliveries=["syn"]):
                check(options, "no options")


# --- how an answer ends ----------------------------------------------------------------------------------------


def test_no_reset_behind_an_error():
    """Section 6.2.2: convertd sends the Error TLV and a FIN, and before the client ends it no RST, whatever the client still sends."""
    with near() as lab, converter(lab):
        for protocol in (TCP, MPTCP):
            for more, ends_by in ((b"", "reset"), (b"", "close"), (bytes(200000), "reset"), (bytes(200000), "close")):
                request = connect(lab.server.addr4, lab.addresses.refused_port)
                with lab.capture(lab.converter, "wifi", "tcp port 1234") as capture:
                    with Client(lab.client, lab.converter.addr4, protocol) as client:
                        client.send(request + more)
                        equal(client.answer(), error(0x60), "the answer")
                        equal(client.end(), (b"", "closed"), "the end behind it")
                        # convertd still takes these bytes
                        client.sock.sendall(b"after the end of the answer")
                        wait_until(lambda: not unsent(client.sock), 5, "the bytes to be taken")  # pylint: disable=W0640
                        if ends_by == "reset":
                            client.reset()
                packets = capture.packets()
                said = b"".join(packet.payload for packet in packets if packet.sport == 1234)
                equal(said[:8], error(0x60), "the converter's bytes")
                if protocol == TCP:
                    check(any(packet.fin for packet in packets if packet.sport == 1234), "no FIN")
                for packet in packets:
                    if packet.sport != 1234 and (packet.rst or packet.fin):
                        break
                    check(not packet.rst, "an RST before the client's end: %s" % packet)


def test_client_that_stays_after_an_error():
    """After 5 s the converter forgets it, on MPTCP too."""
    with near() as lab, converter(lab) as process:
        before = descriptors(process)
        staying = [client for protocol in (TCP, MPTCP)
                   for client in [Client(lab.client, lab.converter.addr4, protocol)]]
        for client in staying:
            client.send(connect(lab.server.addr4, lab.addresses.refused_port))
            equal(client.answer(), error(0x60), "the answer")
        equal(descriptors(process), before + 2, "descriptors while the clients stay")
        wait_until(lambda: descriptors(process) == before, 8, "the converter to forget them")
        for client in staying:
            client.sock.close()


if __name__ == "__main__":
    main()
