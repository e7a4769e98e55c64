#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_poc5g.py - what the experiment poc5g computes: round trips, delays, and the moments of connections in packets made by hand"""
import hashlib
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lab"))

# pylint: disable=wrong-import-position
from convertlab import LabError, Packet, between, check, equal, main, wait_until
from convertlab.build import SRCDIR
from convertlab.pcap import ACK, SYN

sys.path.insert(0, os.path.join(SRCDIR, "bench"))
from benchlib.varying import VaryingLink
from models import poc5g

PHONE, PHONE_WIFI, CONVERTER, PORT = "10.2.0.2", "10.1.0.2", "10.9.0.1", 1234
KEY_PHONE, KEY_CONVERTER = b"phone's.", b"convert."
UP, DOWN = 1000, 5000  # the numbers of the SYN and of the SYN+ACK

# Convert's request for 10.8.0.1:80, with a Connect TLV, and a response with an empty Extended TCP Header TLV
REQUEST = bytes.fromhex("01062263 0a050050 00000000 00000000 0000ffff 0a080001".replace(" ", ""))
RESPONSE = bytes.fromhex("01022263 14010000".replace(" ", ""))
REFUSAL = bytes.fromhex("01022263 1e016000".replace(" ", ""))  # error 96, Connection Reset
GET, ANSWER = b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"
# RFC 1928, RFC 1929
METHODS, METHOD = b"\x05\x02\x00\x02", b"\x05\x02"
LOGIN, WELCOME = b"\x01\x08somebody\x06secret", b"\x01\x00"
CONNECT, REPLY = b"\x05\x01\x00\x01\x0a\x08\x00\x01\x00\x50", b"\x05\x00\x00\x01" + bytes(6)


def packet(time, up, seq, payload=b"", flags=ACK, ack=0, options=(), phone=(PHONE, 40000)):
    """A packet between the phone and the converter; `time` in ms."""
    ends = phone + (CONVERTER, PORT) if up else (CONVERTER, PORT) + phone
    return Packet(time / 1000, ends[0], ends[2], 6, 40 + len(payload), ends[1], ends[3], seq, ack, flags, options=list(options),
                  payload=payload)


def capable(*keys):
    """An MP_CAPABLE option of version 1."""
    return (30, b"\x01\x81" + b"".join(keys))


def join(token=None):
    """An MP_JOIN option: that of a SYN has the token."""
    return (30, b"\x10\x01" + (token or b"") + b"anynonce")


def mapped(key, position, size):
    """A DSS option for data at this position of the stream, without what SYNs carry: data sequence number of 8 bytes, no Data ACK."""
    start = int.from_bytes(hashlib.sha256(key).digest()[-8:], "big") + 1
    return (30, b"\x20\x0c" + (start + position & (1 << 64) - 1).to_bytes(8, "big") + bytes(4) + size.to_bytes(2, "big"))


def handshake(payload=b"", mptcp=False, answered=44.0, taken=True):
    """SYN, SYN+ACK and ACK; `taken`: does the SYN+ACK acknowledge what the SYN has with it?"""
    acknowledged = UP + 1 + (len(payload) if taken else 0)
    options = [[capable()], [capable(KEY_CONVERTER)], [capable(KEY_PHONE, KEY_CONVERTER)]] if mptcp else [[], [], []]
    return [packet(0, True, UP, payload, SYN, options=options[0]),
            packet(answered, False, DOWN, flags=SYN | ACK, ack=acknowledged, options=options[1]),
            packet(answered + 0.1, True, acknowledged, ack=DOWN + 1, options=options[2])]


def exchange(packets, sent, received):
    """Appends what both sides say, as (ms, bytes), by plain TCP; returns all packets."""
    for up, first, pieces in ((True, packets[2].seq, sent), (False, DOWN + 1, received)):
        for time, payload in pieces:
            packets.append(packet(time, up, first, payload))
            first += len(payload)
    return packets


def one(packets):
    """The only connection among these packets."""
    found = poc5g.connections(packets, CONVERTER, PORT)
    equal(len(found), 1, "connections")
    return found[0]


def near(value, expected, what, tolerance=1e-6):
    """equal() for what was computed with fractions."""
    between(value, expected - tolerance, expected + tolerance, what)


def moments(found, accepted, first_byte, request):
    """Checks Moments against times in ms."""
    near(found.syn, 0, "A")
    near(found.ttfb, accepted, "B - A")
    near(found.ttgtfb, first_byte, "C - A")
    near(found.request * 1000, request, "the application's first byte")


def refused(function, *arguments):
    """The text of the ValueError that comes of the call."""
    try:
        function(*arguments)
    except ValueError as error:
        return str(error)
    return "nothing was refused"


# --- round trips ------------------------------------------------------------------------------------------------


def test_round_trips_of_the_published_means():
    a, c = poc5g.round_trips(64.7, 195.9)
    near(a, 43.7333, "a", 1e-4)
    near(c, 20.9667, "c", 1e-4)
    near(poc5g.ttfb(poc5g.TRIPS_CONVERT, a, c), 64.7, "Convert")
    near(poc5g.ttfb(poc5g.TRIPS_SOCKS, a, c), 195.9, "SOCKS5")
    near(poc5g.ttfb_ratio(c / a), 195.9 / 64.7, "the ratio")


def test_ratios_depend_on_the_links():
    for r, ttfb, ttgtfb in ((0, 4, 2.5), (0.5, 3, 2), (1, 2.5, 1.75), (1e9, 1, 1)):
        near(poc5g.ttfb_ratio(r), ttfb, "TTFB at c/a = %g" % r)
        near(poc5g.ttgtfb_ratio(r), ttgtfb, "TTGTFB at c/a = %g" % r)
    near(poc5g.ttgtfb(1, 40, 20), 120, "Convert's two round trips all the way")
    near(poc5g.ttgtfb(4, 40, 20), 240, "SOCKS5's five to the proxy and two to the server")


def test_published_figures():
    equal(poc5g.figure_verdict("mean", 64.7, [65.7, 60.0], 44, True), "met; a link follows from it", "both are near")
    equal(poc5g.figure_verdict("mean", 64.7, [65.7, 75.0], 44, False), "met over IPv4 only", "one is near")
    equal(poc5g.figure_verdict("max", 107.7, [140.0, 86.0], 44, False), "met over IPv6 only", "an extreme may be further away")
    equal(poc5g.figure_verdict("mean", 120.5, [195.9, 195.0], 44, False), "not met", "none is near")
    check("44.0 ms at least" in poc5g.figure_verdict("min", 5.4, [45.0, 45.0], 44, False), "less than links allow")


def test_spreads():
    near(poc5g.spread_ratio((10, 20), (100, 140)), 4, "one round-trip time a connection")
    near(poc5g.spread_ratio((49.2, 107.7), (160.9, 258.8)), 1.6735, "published", 1e-4)


def test_ratio_of_means():
    """90 to 110 has a mean of 100 with a standard error of 10/√3; the mean of 50 has none."""
    found = poc5g.ratio([90, 100, 110], [50, 50])
    near(found.value, 2, "the ratio")
    near(found.high - 2, 2 * 1.96 * 10 / 3 ** 0.5 / 100, "above it", 1e-4)
    near(2 - found.low, found.high - 2, "below it")
    both = poc5g.ratio([90, 100, 110], [45, 50, 55])
    near(both.high - 2, (found.high - 2) * 2 ** 0.5, "above it, with the same relative error of the other mean")


def test_delays_meet_their_targets():
    for mean, low, high, count in ((43.7, 28.2, 86.7, 150), (6.8, 2, 22.6, 120), (43.7, 28.2, 86.7, 1000)):
        found = poc5g.Delays.through(mean, low, high, count)
        near(found.mean, mean, "the mean", 1e-4)
        near(found.quantile(1 / (count + 1)), low, "the least of %d" % count, 1e-4)
        near(found.quantile(count / (count + 1)), high, "the greatest of %d" % count, 1e-4)
        chance = random.Random(1)
        draws = [found.draw(chance) for _ in range(20000)]
        near(sum(draws) / len(draws), mean, "the mean of draws", 0.02 * mean)
        check(min(draws) > found.least, "a draw is below the least")
        ninth = found.quantile(0.9)
        near(len([draw for draw in draws if draw <= ninth]) / len(draws), 0.9, "the share of draws below a quantile", 0.01)


def test_impossible_delays_are_refused():
    for mean in (28, 58, 90):
        check("must lie between" in refused(poc5g.Delays.through, mean, 28.2, 86.7, 100), "mean %g" % mean)
    check("so near" in refused(poc5g.Delays.through, 28.3, 28.2, 86.7, 100), "a mean next to the least value")


class FakeLink:
    """Notes what a RunningLink would be told, up to so many settings; then it fails."""

    def __init__(self, count=100000):
        self.told = []
        self._count = count

    def set(self, way, delay_ms):
        """As RunningLink.set()."""
        if len(self.told) == self._count:
            raise LabError("it has ended")
        self.told.append((way, delay_ms))


def test_links_vary_as_their_seed_says():
    delays, runs = poc5g.Delays(20, 15, 0.5), []
    for _ in range(2):
        link = FakeLink()
        with VaryingLink(link, delays, 7):
            wait_until(lambda link=link: len(link.told) >= 4, 10, "three round-trip times")
        count = len(link.told)
        runs.append(link.told)
    equal(len(link.told), count, "settings after the end")
    equal(runs[0][:4], runs[1][:4], "two runs with one seed")
    chance = random.Random(7)
    equal(runs[0][0], ("b-to-a", 10), "the way down, which has half of the least round trip")
    for way, delay in runs[0][1:4]:
        equal(way, "a-to-b", "the way that varies")
        near(delay + 10, delays.draw(chance), "a round trip")


def test_links_that_fail_are_noticed():
    link = FakeLink(3)
    try:
        with VaryingLink(link, poc5g.Delays(20, 15, 0.5), 7) as varying:
            varying._thread.join(10)  # pylint: disable=protected-access
    except LabError as error:
        equal(str(error), "it has ended", "error")
    else:
        check(False, "nobody heard of it")


# --- Convert ----------------------------------------------------------------------------------------------------


def test_convert_withheld():
    """The SYN+ACK confirms the server where the converter withholds SYNs, and acknowledges the request."""
    said = [(65, GET)], [(109, RESPONSE), (130, ANSWER)]
    moments(poc5g.convert_moments(one(exchange(handshake(REQUEST, answered=64), *said)), True), 64, 130, 65)
    moments(poc5g.convert_moments(one(exchange(handshake(REQUEST, answered=44), *said)), False), 109, 130, 65)


def test_convert_silent():
    """A silent request has no response where the SYN+ACK confirms the server, and one where it doesn't."""
    sent = REQUEST[:2] + b"\x6c\x63" + REQUEST[4:]
    silent = exchange(handshake(sent, answered=64), [(65, GET)], [(130, ANSWER)])
    moments(poc5g.convert_moments(one(silent), True), 64, 130, 65)
    lost = exchange(handshake(sent, taken=False), [(45, sent), (110, GET)], [(109, RESPONSE), (175, ANSWER)])
    moments(poc5g.convert_moments(one(lost), True), 109, 175, 110)
    check("what the converter sent doesn't begin" in refused(poc5g.convert_moments, one(silent), False), "no response of one that doesn't withhold")


def test_convert_behind_the_handshake():
    """A request that the SYN+ACK doesn't acknowledge, or that comes behind it, is confirmed by the response."""
    later = exchange(handshake(), [(45, REQUEST), (110, GET)], [(109, RESPONSE), (175, ANSWER)])
    moments(poc5g.convert_moments(one(later), True), 109, 175, 110)
    lost = exchange(handshake(REQUEST, taken=False), [(45, REQUEST), (110, GET)], [(109, RESPONSE), (175, ANSWER)])
    moments(poc5g.convert_moments(one(lost), True), 109, 175, 110)


def test_convert_in_pieces_and_in_one():
    pieces = exchange(handshake(REQUEST), [(110, GET)], [(100, RESPONSE[:3]), (109, RESPONSE[3:] + ANSWER[:1]), (112, ANSWER[1:])])
    moments(poc5g.convert_moments(one(pieces), False), 109, 109, 110)


def test_packets_out_of_order():
    packets = exchange(handshake(REQUEST), [(110, GET)], [(109, RESPONSE), (133, ANSWER[:4]), (132, ANSWER[4:8]), (131, ANSWER[8:])])
    found = one(packets)
    equal(found.stream(False).data, RESPONSE + ANSWER, "what the phone got")
    moments(poc5g.convert_moments(found, False), 109, 133, 110)


def test_convert_refused():
    packets = exchange(handshake(REQUEST), [(110, GET)], [(109, REFUSAL + ANSWER)])
    equal(refused(poc5g.convert_moments, one(packets), False), "the converter has answered with error 96", "refusal")
    for wrong in (GET, REQUEST[:2] + bytes(2) + REQUEST[4:], b"\x02" + REQUEST[1:]):
        packets = exchange(handshake(wrong), [(110, GET)], [(109, RESPONSE + ANSWER)])
        text = refused(poc5g.convert_moments, one(packets), False)
        check("what the phone sent doesn't begin with a Convert message" in text, text)
    packets = exchange(handshake(REQUEST), [(110, GET)], [(109, RESPONSE)])
    check("before byte %d" % (len(RESPONSE) + 1) in refused(poc5g.convert_moments, one(packets), False), "no answer")


def begun_at(packets, time, port):
    """The same packets, so many ms later, from another port of the phone."""
    return [packet(time + each.time * 1000, each.dst == CONVERTER, each.seq, each.payload, each.flags, each.ack, phone=(PHONE, port))
            for each in packets]


def test_connections_that_are_begun_anew():
    """A SYN without an answer, then one with; a probe amid the next connection, which doesn't count."""
    whole = exchange(handshake(REQUEST, answered=64), [(65, GET)], [(109, RESPONSE), (130, ANSWER)])
    syn = [packet(0, True, UP, REQUEST, SYN)]
    packets = syn + begun_at(whole, 300, 40001) + begun_at(syn, 310, 40002) + begun_at(whole, 500, 40003) + begun_at(syn, 510, 40004)
    done, others = poc5g.completed(poc5g.connections(packets, CONVERTER, PORT), lambda each: poc5g.convert_moments(each, True))
    equal(len(done), 2, "connections that succeeded")
    equal(others, ["the converter hasn't answered the SYN"] * 3, "what the others lack")
    moments(done[0][1], 364, 430, 365)
    near(done[1][1].ttfb, 64, "B - A of the next one")
    near(done[1][1].syn, 0.5, "A of the next one")


def test_direct():
    moments(poc5g.direct_moments(one(exchange(handshake(answered=64), [(65, GET)], [(130, ANSWER)]))), 64, 130, 65)
    check("hasn't answered" in refused(poc5g.direct_moments, one(handshake()[:1])), "a SYN alone")


# --- SOCKS5 -----------------------------------------------------------------------------------------------------

SENT = [(44.1, METHODS), (88, LOGIN), (133, CONNECT), (198, GET)]
RECEIVED = [(87, METHOD), (132, WELCOME), (197, REPLY), (264, ANSWER)]


def test_socks():
    moments(poc5g.socks_moments(one(exchange(handshake(), SENT, RECEIVED))), 197, 264, 198)


def test_socks_in_pieces():
    """Each byte in a packet of its own; the moments are those of the last byte of the reply and of the first behind it."""
    received = b"".join(piece for _, piece in RECEIVED)
    pieces = [(100 + number, received[number:number + 1]) for number in range(len(received))]
    sent = b"".join(piece for _, piece in SENT)
    found = poc5g.socks_moments(one(exchange(handshake(), [(50 + number, sent[number:number + 1]) for number in range(len(sent))], pieces)))
    moments(found, 100 + 2 + 2 + 10 - 1, 100 + 2 + 2 + 10, 50 + 4 + 17 + 10)


def test_socks_addresses():
    for address in (b"\x03\x0bexample.org", b"\x04" + bytes(16)):
        sent = SENT[:2] + [(133, b"\x05\x01\x00" + address + b"\x00\x50"), (198, GET)]
        received = RECEIVED[:2] + [(197, b"\x05\x00\x00" + address + b"\x00\x50" + ANSWER)]
        moments(poc5g.socks_moments(one(exchange(handshake(), sent, received))), 197, 197, 198)


def test_socks_refused():
    for at, reply, text in ((0, b"\x05\x00", "didn't ask for a password: 0500"), (1, b"\x01\x01", "didn't accept the password: 0101"),
                            (2, b"\x05\x05\x00\x01" + bytes(6), "didn't connect: 0505"), (2, b"\x05", "didn't connect: 05"),
                            (2, b"\x05\x00\x00\x07" + bytes(6), "no address type 7"), (2, b"\x05\x00\x00", "ends amid")):
        received = RECEIVED[:at] + [(197, reply)]
        found = refused(poc5g.socks_moments, one(exchange(handshake(), SENT, received)))
        check(text in found, "%s: %s" % (reply.hex(), found))


# --- Multipath TCP ----------------------------------------------------------------------------------------------


def with_wifi(packets, begun=88.0):
    """Appends a subflow over WiFi that joins the connection."""
    token = hashlib.sha256(KEY_CONVERTER).digest()[:4]
    wifi = (PHONE_WIFI, 50000)
    return packets + [packet(begun, True, 7000, flags=SYN, options=[join(token)], phone=wifi),
                      packet(begun + 7, False, 9000, flags=SYN | ACK, ack=7001, options=[join()], phone=wifi)]


def test_two_subflows_are_one_stream():
    """The answer's end comes first, over WiFi; its first byte isn't there before the packet on 5G, which comes twice."""
    first, second = ANSWER[:5], ANSWER[5:]
    packets = with_wifi(handshake(REQUEST, mptcp=True, answered=65)) + [
        packet(66, True, UP + 1 + len(REQUEST), GET, options=[capable(KEY_PHONE, KEY_CONVERTER, bytes(2))]),
        packet(110, False, DOWN + 1, RESPONSE, options=[mapped(KEY_CONVERTER, 0, len(RESPONSE))]),
        packet(115, False, 9001, second, options=[mapped(KEY_CONVERTER, len(RESPONSE) + 5, len(second))], phone=(PHONE_WIFI, 50000)),
        packet(131, False, DOWN + 1 + len(RESPONSE), first, options=[mapped(KEY_CONVERTER, len(RESPONSE), 5)]),
        packet(140, False, 9001 + len(second), first, options=[mapped(KEY_CONVERTER, len(RESPONSE), 5)], phone=(PHONE_WIFI, 50000)),
        packet(145, False, 9000, flags=SYN | ACK, ack=7001, options=[join()], phone=(PHONE_WIFI, 50000)),
        packet(150, True, 7001, b"more", options=[mapped(KEY_PHONE, len(GET), 4)], phone=(PHONE_WIFI, 50000))]
    # as two captures have them, one behind the other
    found = one(sorted(packets, key=lambda each: PHONE_WIFI in (each.src, each.dst), reverse=True))
    check(found.mptcp, "both sides have agreed on MPTCP")
    moments(poc5g.convert_moments(found, True), 65, 131, 66)
    equal(found.stream(False).data, RESPONSE + ANSWER, "what the phone got")
    # what a SYN carries isn't counted by MPTCP
    equal(found.stream(True).data, REQUEST + GET + b"more", "what the phone sent")
    equal([found.joined_by(time / 1000) for time in (64, 65, 94, 95)], [0, 1, 1, 2], "subflows")
    equal([found.messages(address, 0.131) for address in (PHONE, PHONE_WIFI)], [4, 1], "packets with payload until the first byte")


def test_data_sequence_numbers_of_four_bytes():
    """Numbers may be cut to 32 bits, have a Data ACK in front of them, and pass the end of 32 bits."""
    key = next(key for key in (number.to_bytes(8, "big") for number in range(1 << 20))
               if hashlib.sha256(key).digest()[-4:-2] == b"\xff\xff")
    start = int.from_bytes(hashlib.sha256(key).digest()[-4:], "big") + 1
    packets = handshake(REQUEST, mptcp=True)
    packets[1].options, at = [capable(key)], 0
    for piece in (RESPONSE, bytes(1 << 16), ANSWER):
        number = (start + at & 0xffffffff).to_bytes(4, "big")
        for ack, flags in ((bytes(4), b"\x05"), (bytes(8), b"\x07")):
            packets.append(packet(109 + at / 1000, False, DOWN + 1 + at, piece, options=[(30, b"\x20" + flags + ack + number + bytes(6))]))
        at += len(piece)
    equal(one(packets).stream(False).data, RESPONSE + bytes(1 << 16) + ANSWER, "what the phone got")


def test_data_without_a_mapping():
    """A DSS option that only acknowledges data says nothing about where the payload belongs: TCP's number does, on the first subflow."""
    packets = handshake(REQUEST, mptcp=True)
    packets.append(packet(109, False, DOWN + 1, RESPONSE, options=[mapped(KEY_CONVERTER, 0, len(RESPONSE) + len(ANSWER))]))
    packets.append(packet(130, False, DOWN + 1 + len(RESPONSE), ANSWER, options=[(30, b"\x20\x01" + bytes(range(1, 5)))]))
    equal(one(packets).stream(False).data, RESPONSE + ANSWER, "what the phone got")


def test_connections_are_told_apart():
    """Two connections, one of which sends its SYN twice; a join that belongs to none, and packets of another server."""
    again = handshake(REQUEST)
    again.insert(1, packet(30, True, UP, flags=SYN))
    later = [packet(500 + each.time * 1000, each.dst == CONVERTER, each.seq + 100, each.payload, each.flags) for each in handshake(REQUEST)]
    strange = [packet(600, True, 1, flags=SYN, options=[join(b"none")], phone=(PHONE_WIFI, 3)),
               packet(601, False, 2, b"x", phone=(PHONE, 4))]
    elsewhere = packet(602, True, 1, flags=SYN)
    elsewhere.dport = 80
    found = poc5g.connections(again + later + strange + [elsewhere], CONVERTER, PORT)
    equal([len(connection.packets) for connection in found], [4, 3], "packets of each connection")
    check(not any(connection.mptcp for connection in found), "MPTCP, which nobody has asked for")


if __name__ == "__main__":
    main()
