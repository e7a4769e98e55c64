#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_wireshark.py - the dissector: names, fields and notes, messages in pieces, the bytes behind them, and our own traffic

The messages are the vectors of tests/unit/test_codec_read.c and the fuzzers' corpus. libconvertproto judges them: a message must have a
note of its fault in Wireshark if, and only if, the library finds one.
"""
import functools
import os
import re
import tempfile

from convertlab import Lab, Link, check, equal, kernel, long, main, waits
from convertlab.dissector import FAULTS, SCRIPT, Flow, dissected, need_tshark, rows, tshark
from convertlab.golden import Library, enumeration, golden, source, vectors
from convertlab.pcap import ACK, FIN, SYN, write_pcap
from convertlab.peers import WITHHOLDING, connect, connect_tlv, echo, message, octets, silent

INFO = octets("01010000")
MULTIPATH = octets("1e02")
TCP_HEADER = octets("14020000 020405b4")
SUPPORTED = octets("15020000 04081e22")
REQUEST = message(connect_tlv("192.0.2.80", 80, MULTIPATH), INFO)
ANSWER = message(SUPPORTED, WITHHOLDING, TCP_HEADER)
GET = b"GET /a?b HTTP/1.1\r\nHost: server.example\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nhello, world"

# The notes for each fault that the library finds, by the names of enum convert_status without their prefix.
NOTES = {
    "BAD_MAGIC": {"magic.bad"}, "BAD_VERSION": {"version.unknown"}, "ZERO_TOTAL_LENGTH": {"total_length.zero"}, "NO_TLV": {"tlv.none"},
    "TLV_PAST_END": {"tlv.past_end"}, "TLV_ZERO_LENGTH": {"tlv.length.zero"}, "TLV_TYPE_RESERVED": {"tlv.type.reserved"},
    "TLV_TWICE": {"tlv.duplicate"}, "TLV_UNKNOWN": {"tlv.type.unknown"}, "TLV_WRONG_DIRECTION": {"tlv.wrong_direction"},
    "TLV_BAD_LENGTH": {"tlv.length.bad"}, "TLV_BAD_VALUE": {"zero.nonzero", "tcp_option.truncated", "tcp_option.length.bad"},
    "BAD_ADDRESS": {"connect.address.bad"}, "NEED_MORE": {"total_length.past_end"},
}
NOTES["BAD_SILENCE"] = set.union({"silence.bad"}, *(NOTES[name] for name in NOTES if name != "NEED_MORE"))


def with_tshark(test):
    """Gives a test a directory of its own, and skips it without tshark."""
    @functools.wraps(test)
    def run():
        need_tshark()
        with tempfile.TemporaryDirectory() as directory:
            return test(directory)
    del run.__wrapped__
    return run


# --- the dissector's notes on messages, and the library's statuses -----------------------------------------------------------------


def in_a_packet(number, data, from_client):
    """The message as the payload of a SYN or a SYN+ACK."""
    return Flow(number).send(from_client, data, SYN if from_client else SYN | ACK).packets


def notes_of(directory, messages):
    """The notes on each of these (message, from_client), as sets."""
    packets = [packet for number, (data, from_client) in enumerate(messages) for packet in in_a_packet(number, data, from_client)]
    names = sorted(set.union(set(FAULTS), *NOTES.values()))
    # Without reassembly the dissector doesn't wait for the rest of a cut message.
    found = dissected(directory, packets, ["frame.number"] + ["convert." + name for name in names],
                      "-o", "tcp.desegment_tcp_streams:FALSE")
    equal(len(found), len(messages), "packets that were dissected")
    return [{name[len("convert."):] for name in row if name != "frame.number"} for row in found]


def compare(directory, messages):
    """Checks the dissector's notes against the library's statuses; returns how many of each status there were."""
    library, counts = Library(), {}
    for (data, from_client), notes in zip(messages, notes_of(directory, messages)):
        status = library.judge(data, from_client)
        where = "%s %s: %s by the library, %s by the dissector" % ("request" if from_client else "answer", data.hex(), status,
                                                                  sorted(notes))
        counts[status] = counts.get(status, 0) + 1
        if status == "OK":
            check(not notes & set(FAULTS), where)
        elif status == "BAD_MAGIC" or (status == "NEED_MORE" and len(data) < 4 and data[0] != 1):
            # bytes that don't look like a message are left to other dissectors
            check(notes <= {"magic.bad", "total_length.past_end"}, where)
        else:
            check(notes & NOTES[status], where)
    return counts


# --- tests ----------------------------------------------------------------------------------------------------------


@with_tshark
def test_faults_are_those_of_the_library(directory):
    """The vectors of the codec's tests: each status has its note, and a valid message has none."""
    counts = compare(directory, list(vectors()))
    equal(sorted(set(NOTES) - set(counts)), [], "statuses that no vector has")
    check(counts["OK"] >= 20, counts)
    check(octets("02002263") in [data for data, _ in vectors()], "no vector has another version and a Total Length of 0")


@long
@waits
@with_tshark
def test_every_truncation_and_flip(directory):
    """Golden messages cut behind each byte, and with each byte changed: no error in Lua, and always the library's verdict."""
    messages = []
    for data, from_client in golden():
        messages += [(data[:size], from_client) for size in range(1, len(data) + 1)]
        for at in range(len(data)):
            for change in (0x01, 0x80, 0xff):
                messages.append((data[:at] + bytes([data[at] ^ change]) + data[at + 1:], from_client))
    check(len(messages) > 2000, "%d messages" % len(messages))
    counts = compare(directory, messages)
    equal(sorted(set(NOTES) - set(counts)), [], "statuses that none has")
    return "%d messages" % len(messages)


@with_tshark
def test_notes_on_lesser_faults(directory):
    """Faults that a receiver has to accept, but that help to find a mistake."""
    wanted = (
        (message(octets("15020001 1e000000")), False, "unassigned.nonzero"),
            (message(octets("14010001")), False, "unassigned.nonzero"),
            (message(octets("15020000 1e020000")), False, "supported.forbidden"),
            (message(octets("15020000 1e1d0000")), False, "supported.forbidden"),
            (message(connect_tlv("192.0.2.1", 80, octets("01040200"))), True, "tcp_option.forbidden"),
            (message(connect_tlv("192.0.2.1", 80, octets("1d02"))), True, "tcp_option.forbidden"),
            (message(octets("1e016100")), False, "error.received"),
            (message(octets("1e01c807")), False, "error.code.unknown"),
            (message(octets("1e016007")), False, "error.value.bad"),
            (message(octets("1e010300")), False, "error.value.bad"),
            (message(octets("1e020301 00112233")), False, "padding.nonzero"),
            (message(octets("1e024005 00000001")), False, "padding.nonzero"),
            (message(octets("f0020201 02bc6c63")), False, "mark.foreign"),
            (message(octets("c0010000")), False, "tlv.type.unknown"),
            (octets("01022262 0a050050"), True, "magic.bad"),
            (message(octets("14020000 1e0a0000")), False, "tcp_header.bad"))
    packets = [packet for number, (data, from_client, _) in enumerate(wanted) for packet in in_a_packet(number, data, from_client)]
    found = dissected(directory, packets, ["frame.number"] + sorted({"convert." + note for _, _, note in wanted}))
    for (data, _, note), row in zip(wanted, found):
        expected = ["convert." + note, "frame.number"]
        if note.startswith(("error.value", "padding")):
            expected.append("convert.error.received")
        equal(sorted(row), sorted(expected), "the notes on %s" % data.hex())
    flow = Flow().handshake(REQUEST, message())
    found = dissected(directory, flow.packets, ["convert.answer.no_tcp_header"])
    equal([sorted(row) for row in found], [[], ["convert.answer.no_tcp_header"], []], "an answer without an Extended TCP Header TLV")


@with_tshark
def test_every_type_and_code_has_its_name(directory):
    """All TLV types and error codes of lib/convert/convert.h."""
    types = {name: number for name, number in enumeration("convert_tlv_type").items() if "PRIVATE" not in name}
    codes = {name: number for name, number in enumeration("convert_error_code").items() if "PRIVATE" not in name}
    names = {int(codes[name]): text for name, text in re.findall(r'\[CONVERT_ERROR_(\w+)\] = "([^"]+)"', source("lib/names.c"))}
    equal(sorted(names), sorted(codes.values()), "error codes with a name in lib/names.c")
    check(len(types) >= 9 and len(codes) >= 10, (types, codes))
    flows = [Flow(number).send(False, message(bytes([number, 1, 0, 0])), SYN | ACK) for number in types.values()]
    flows += [Flow(1000 + code).send(False, message(bytes([30, 1, code, 7])), SYN | ACK) for code in codes.values()]
    path = os.path.join(directory, "names.pcap")
    write_pcap(path, [packet for flow in flows for packet in flow.packets])
    said = tshark(path, "-O", "convert")
    for name, number in types.items():
        found = re.search(r"^ *Type: (.*) \(%d\)$" % number, said, re.MULTILINE)
        check(found and found.group(1) != "Unknown", "type %d (%s) has no name" % (number, name))
        words = name.replace("_", " ").lower()
        check(found.group(1).lower() in (words, words + " tlv"), "type %d (%s) is called %s" % (number, name, found.group(1)))
    for code, name in names.items():
        check(re.search(r"^ *Error Code: %s \(%d\)$" % (name, code), said, re.MULTILINE), "code %d isn't called %s" % (code, name))


def test_page():
    """doc/wireshark.md names exactly the dissector's fields and notes, with their severities."""
    page, script = source("doc/wireshark.md"), source("contrib/wireshark/convert.lua")
    named = set(re.findall(r"`convert\.([a-z0-9_.]+)[`: ]", page)) - {"tcp.port", "lua", "pcap"}
    notes = dict(re.findall(r'^note\("([a-z_.]+)", "[^"]*",\s*"\w+", "(\w+)"\)', script, re.MULTILINE))
    fields = set(re.findall(r'^field\("([a-z0-9_.]+)"', script, re.MULTILINE)) - {"tlv", "tcp_option"}
    check(len(notes) == len(re.findall(r"^note\(", script, re.MULTILINE)) and len(fields) > 40, (notes, fields))
    equal(sorted(named ^ (fields | set(notes))), [], "fields and notes that only the page or only the dissector has")
    for row, severity in (("error", "ERROR"), ("warning", "WARN"), ("note", "NOTE")):
        listed = re.search(r"^\| %s \| (.*) \|$" % row, page, re.MULTILINE).group(1)
        equal(sorted(re.findall(r"`convert\.([a-z_.]+)`", listed)),
              sorted(name for name, its in notes.items() if its == severity), row + "s")


@with_tshark
def test_filters_of_the_page(directory):
    """Wireshark understands the filters that doc/wireshark.md proposes."""
    table = re.search(r"\| to see \| filter \|\n(.*?)\n\n", source("doc/wireshark.md"), re.DOTALL).group(1)
    filters = re.findall("`([^`]+)`", table)
    check(len(filters) > 12, filters)
    found = dissected(directory, Flow().handshake(REQUEST, ANSWER).packets, ["frame.number"],
                      "-Y", " || ".join("(%s)" % one for one in filters))
    equal([row["frame.number"] for row in found], [["1"], ["2"]], "frames with a message")


@with_tshark
def test_fields(directory):
    """Requests and answers of all TLVs, by the fields that people filter by."""
    cookie = octets("16030000 0011223344556677")
    options = octets("2206a1b2c3d4 0402 080a0000000100000002 1e02")
    six = message(connect_tlv("2001:db8::80", 443, options), cookie)
    answer = message(octets("15020000 04081e22"), octets("f0020103 02bc6c63"),
                     octets("14070000 020405b4 030307 0402 1e0c0181 0000000000000001 000000"))
    errors = [message(octets(text)) for text in ("1e010002", "1e020300 a1a2a3a4", "1e01211e", "1e014005", "1e016101")]
    errors += [echo(1, connect("127.0.0.1", 25))]
    flows = [Flow(1).handshake(REQUEST, answer), Flow(2, v6=True).handshake(six)]
    flows += [Flow(3 + number).send(False, data, SYN | ACK) for number, data in enumerate(errors)]
    flows += [Flow(99).handshake(message(octets("f1020100 00006c63"), INFO), message(octets("f1020100 01006c63")))]
    flows += [Flow(100).send(True, message(octets("f3020100 01c26c63"), connect_tlv("192.0.2.80", 80)), SYN)]
    fields = ["version", "total_length", "magic", "request", "answer", "response_to", "connect.port", "connect.ip",
              "connect.ipv6", "tlv.type", "tcp_option.kind", "tcp_option.fastopen_cookie", "tcp_option.tsval", "tcp_option.mss",
              "tcp_option.wscale", "tcp_option.mptcp_subtype",
              "supported.kind", "cookie", "error.code", "error.version", "error.kind", "error.delay", "error.icmp_code", "withholding.limit",
              "withholding.withheld", "withholding.corrects", "echo.limit", "hold_time.limit", "server"]
    found = dissected(directory, [packet for flow in flows for packet in flow.packets], ["convert." + name for name in fields],
                      "-Y", "convert")
    found = [{name[len("convert."):]: ",".join(values) for name, values in row.items()} for row in found]
    for row in found:  # versions of Wireshark write some of them differently
        for name in ("request", "answer", "withholding.withheld", "withholding.corrects"):
            if name in row:
                row[name] = row[name].replace("True", "1")
        row["magic"] = row["magic"].replace("0x0000", "0x")
    head = {"version": "1", "magic": "0x2263"}
    an_error = dict(head, answer="1", total_length="2")
    an_error["tlv.type"] = "30"
    expected = [
        dict(head, total_length="8", request="1",
             **{"connect.port": "80", "connect.ip": "192.0.2.80", "tlv.type": "10,1", "tcp_option.kind": "30"}),
        dict(head, total_length="12", answer="1", response_to="1", server="192.0.2.80:80",
             **{"tlv.type": "21,240,20", "supported.kind": "4,8,30,34", "withholding.limit": "700", "withholding.withheld": "1",
                "withholding.corrects": "1", "tcp_option.kind": "2,3,4,30", "tcp_option.mss": "1460", "tcp_option.wscale": "7",
                "tcp_option.mptcp_subtype": "0"}),
        dict(head, total_length="14", request="1",
             **{"connect.port": "443", "connect.ipv6": "2001:db8::80", "tlv.type": "10,22", "tcp_option.kind": "34,4,8,30",
                "tcp_option.fastopen_cookie": "a1b2c3d4", "tcp_option.tsval": "1", "cookie": "0011223344556677"}),
        dict(an_error, **{"error.code": "0", "error.version": "2"}),
        dict(an_error, total_length="3", cookie="a1a2a3a4", **{"error.code": "3"}),
        dict(an_error, **{"error.code": "33", "error.kind": "30"}),
        dict(an_error, **{"error.code": "64", "error.delay": "5"}),
        dict(an_error, **{"error.code": "97", "error.icmp_code": "1"}),
        dict(answer="1", version="1,1", magic="0x2263,0x2263", total_length="8,6",
             **{"error.code": "1", "tlv.type": "30,10", "connect.port": "25", "connect.ip": "127.0.0.1"}),
        dict(head, total_length="4", request="1", **{"tlv.type": "241,1", "echo.limit": "0"}),
        dict(head, total_length="3", answer="1", response_to="13", **{"tlv.type": "241", "echo.limit": "256"}),
        dict(head, total_length="8", request="1",
             **{"tlv.type": "243,10", "hold_time.limit": "450", "connect.port": "80", "connect.ip": "192.0.2.80"}),
    ]
    for number, (row, wanted) in enumerate(zip(found, expected)):
        equal(row, wanted, "message %d" % number)
    equal(len(found), len(expected), "messages")


@with_tshark
def test_words_behind_silence(directory):
    """A Silence TLV may have an Attempt, and padding behind it or in place of it."""
    connected, begin, attempt = connect_tlv("192.0.2.80", 80), "0100 0002 6c63", "1122334455667788"
    wanted = (("f202" + begin, {}), ("f203" + begin + "00000000", {"padding": ["00000000"]}),
              ("f204" + begin + attempt, {"silence.attempt": ["0x" + attempt]}),
              ("f205" + begin + attempt + "00000000", {"silence.attempt": ["0x" + attempt], "padding": ["00000000"]}),
              ("f205" + begin + attempt + "00000001", {"silence.attempt": ["0x" + attempt], "padding": ["00000001"]}))
    messages = [octets(text) + connected for text, _ in wanted]
    messages = [bytes([1, 1 + len(body) // 4]) + octets("6c63") + body for body in messages]
    equal(messages[2], silent(connected, attempt=int(attempt, 16), repeat=2), "the message with an Attempt alone")
    fields = ["silence.repeat", "silence.attempt", "padding", "padding.nonzero", "tlv.value"]
    found = dissected(directory, [packet for number, data in enumerate(messages) for packet in in_a_packet(number, data, True)],
                      ["convert." + name for name in fields])
    for (text, its), row in zip(wanted, found):
        equal(bool(row.pop("convert.padding.nonzero", None)), text.endswith("1"), "the note on the padding of " + text)
        equal({name[len("convert."):]: values for name, values in row.items()}, dict(its, **{"silence.repeat": ["2"]}), text)


def whole_of(flows, directory, *arguments):
    """{number of a TCP stream: {field: its values in the order of the packets}}."""
    fields = ["convert.connect.ip", "convert.connect.port", "convert.withholding.limit", "convert.tcp_option.mss", "http.request.method",
              "http.response.code", "http.file_data", "_ws.malformed"]
    packets = [packet for flow in flows for packet in flow.packets]
    found = {}
    for row in dissected(directory, packets, ["tcp.stream"] + fields, *arguments):
        stream = found.setdefault(row["tcp.stream"][0], {})
        for name in fields:
            stream.setdefault(name, []).extend(row.get(name, []))
    return found


@long
@waits
@with_tshark
def test_messages_in_pieces(directory):
    """A request with early data and an answer with the server's first bytes, cut anywhere, and byte by byte: always the same result."""
    client, server = REQUEST + GET, ANSWER + OK
    flows = [Flow(0).handshake(client, b"").pieces(False, server)]
    for cut in range(1, len(client)):
        flows.append(Flow(len(flows)).handshake().pieces(True, client, cut).pieces(False, server))
        flows.append(Flow(len(flows)).handshake(client[:cut]).send(True, client[cut:]).pieces(False, server))
    for cut in range(1, len(server)):
        flows.append(Flow(len(flows)).handshake(client).pieces(False, server, cut))
        flows.append(Flow(len(flows), v6=True).handshake(client, server[:cut]).send(False, server[cut:]))
    flows.append(Flow(len(flows)).handshake().pieces(True, client, *range(1, len(client))).pieces(False, server, *range(1, len(server))))
    flows.append(Flow(len(flows)).handshake().pieces(True, client, len(REQUEST)).pieces(False, server, len(ANSWER)))
    for passes in ((), ("-2",)):
        found = whole_of(flows, directory, *passes)
        equal(len(found), len(flows), "streams")
        data = found["0"].pop("http.file_data")
        equal(found["0"], {"convert.connect.ip": ["192.0.2.80"], "convert.connect.port": ["80"], "convert.withholding.limit": ["700"],
                           "convert.tcp_option.mss": ["1460"], "http.request.method": ["GET"], "http.response.code": ["200"],
                           "_ws.malformed": []}, "one segment in each direction%s" % (passes,))
        check(data, "no body in the HTTP response")
        for stream, fields in found.items():
            if stream != "0":
                equal(fields, dict(found["0"], **{"http.file_data": data}), "stream %s%s" % (stream, passes))


@with_tshark
def test_pieces_that_nobody_joins(directory):
    """Without TCP's reassembly, the first part of a message has a note, and the dissector skips the rest."""
    flow = Flow().handshake().pieces(True, REQUEST + GET, 29, 30).pieces(False, ANSWER + OK, 13, 20)
    found = dissected(directory, flow.packets, ["convert.total_length.past_end", "convert.data", "http.request.method",
                                              "http.response.code"], "-o", "tcp.desegment_tcp_streams:FALSE", "-Y", "tcp.len > 0")
    equal([sorted(row) for row in found],
          [["convert.total_length.past_end"], ["convert.data"], ["convert.data", "http.request.method"],
           ["convert.total_length.past_end"], ["convert.data"], ["convert.data", "http.response.code"]], "the segments")
    header = Flow(1).handshake().pieces(True, REQUEST + GET, 1, 2, 3).send(True, GET)
    other = Flow(2).handshake().send(True, b"\1").send(True, b"\2\3\4\5 of something else").send(True, b"\1 and more")
    found = dissected(directory, header.packets + other.packets, ["convert.data", "convert.relayed"],
                      "-o", "tcp.desegment_tcp_streams:FALSE", "-Y", "tcp.len > 0")
    equal([(row.get("convert.data"), "convert.relayed" in row) for row in found],
          [(["01"], False), (["08"], False), (["22"], False), ([REQUEST[3:].hex()], True), (None, True),
           (["01"], False), (None, False), (None, False)], "segments of a header, and of what begins as one")


@with_tshark
def test_captures_of_short_packets(directory):
    """A capture has only the beginning of some packets: the dissector shows that part, finds no fault in it, and knows what follows it."""
    packets, sizes = [], []
    for size in range(1, max(len(REQUEST + GET), len(ANSWER + OK))):
        packets += Flow(size).handshake(REQUEST + GET, ANSWER + OK).send(True, GET).send(False, OK).packets
        sizes += [40 + size] * 2 + [None] * 3
    path = os.path.join(directory, "short.pcap")
    write_pcap(path, packets, sizes)
    found = rows(path, ["convert.connect.port", "convert.total_length.past_end", "convert.next.malformed", "convert.data",
                        "convert.relayed", "http.request.method", "http.response.code"])
    equal(sum("convert.connect.port" in row for row in found), len(packets) // 5 - 27, "requests with a Connect TLV, which ends at 28")
    for note in ("convert.total_length.past_end", "convert.next.malformed"):
        check(not any(note in row for row in found), "a packet that was cut has the note " + note)
    for size in range(2, len(packets) // 5 + 1):  # a single byte tells nothing
        for row, http in zip(found[5 * size - 2:5 * size], ("http.request.method", "http.response.code")):
            equal(sorted(row), ["convert.relayed"] + [http] * (size >= 28), "what follows packets of which %d bytes were captured" % size)


@with_tshark
def test_parts_of_messages_in_short_packets(directory):
    """A capture lacks the end of an answer's first segment: the bytes behind the answer begin in the second one, and TCP joins them."""
    packets = Flow().handshake(REQUEST + GET).send(False, ANSWER[:20]).send(False, ANSWER[20:] + OK[:20]).send(False, OK[20:]).packets
    path = os.path.join(directory, "short.pcap")
    write_pcap(path, packets, [None] * 3 + [40 + 18] + [None] * 2)
    found = rows(path, ["convert.data", "convert.relayed", "http.response.code", "convert.total_length.past_end"])
    equal([sorted(row) for row in found[3:]],
          [[], ["convert.data", "convert.relayed"], ["convert.relayed", "http.response.code"]], "the answer")
    equal(found[4]["convert.data"], [ANSWER[20:].hex()], "the rest of the answer")


@with_tshark
def test_relayed_bytes_in_short_packets(directory):
    """A capture lacks the end of relayed packets, where the next dissector would read on: it shows the rest, and what follows is as usual."""
    cut, whole = (Flow(number).handshake(REQUEST + GET).send(False, ANSWER + OK) for number in range(2))
    for _ in range(5):
        cut.send(True, GET).send(False, OK)
    whole.send(True, GET).send(False, OK)
    path = os.path.join(directory, "short.pcap")
    write_pcap(path, cut.packets + whole.packets, [None] * 4 + [40 + 20] * 10 + [None] * 6)
    found = rows(path, ["tcp.stream", "http.request.method", "http.response.code", "convert.request", "convert.answer", "convert.relayed",
                        "convert.next.malformed"], "-Y", "tcp.len > 0")
    exchanged = [["convert.relayed", "http.request.method"], ["convert.relayed", "http.response.code"]]
    begun = [["convert.request", "http.request.method"], ["convert.answer", "http.response.code"]]
    equal([sorted(set(row) - {"tcp.stream"}) for row in found], begun + exchanged * 5 + begun + exchanged, "the packets of both connections")


@with_tshark
def test_what_follows(directory):
    """The server's port chooses the next dissector and the directions; for unknown ports the first bytes do. None follows an error."""
    def conversion(number, port, *exchange, answer=message(TCP_HEADER), converter=1234):
        flow = Flow(number, port=converter).handshake(connect("192.0.2.80", port), answer)
        for from_client, data in exchange:
            flow.send(from_client, data)
        return flow
    hello = octets("1603010005 0100000100")
    flows = [
        conversion(0, 25, (False, b"220 ready\r\n"), (True, b"EHLO client.example\r\n"), (False, b"250 server.example\r\n")),
        conversion(1, 110, (False, b"+OK ready\r\n"), (True, b"STAT\r\n"), (False, b"+OK 0 0\r\n")),
        conversion(2, 47113, (True, GET), (False, OK)),
        conversion(3, 47114, (True, hello)),
        conversion(4, 47115, (True, b"neither of them"), (False, b"is known")),
        conversion(5, 80, (False, OK), answer=message(octets("1e014000"))),
        conversion(6, 80, (True, GET), (False, OK), converter=4321),
        conversion(7, 1234, (True, REQUEST)),
        Flow(8).handshake().send(True, GET).send(False, OK),
        Flow(9).handshake().send(True, b"\1").send(True, b"\2\3\4\5 of something else"),
    ]
    fields = ["tcp.stream", "frame.protocols", "smtp.req.command", "smtp.response.code", "pop.request.command", "pop.response.indicator",
              "http.request.method", "http.response.code", "convert.relayed", "convert.server"]
    streams = {}
    for row in dissected(directory, [packet for flow in flows for packet in flow.packets], fields, "-Y", "tcp.len > 0"):
        streams.setdefault(int(row["tcp.stream"][0]), []).append(row)

    def values(stream, name):
        return [value for row in streams[stream] for value in row.get(name, [])]

    def bare(row):  # older versions don't count data among the protocols
        return row["frame.protocols"][0].endswith((":convert", ":convert:data"))
    equal((values(0, "smtp.response.code"), values(0, "smtp.req.command")), (["220", "250"], ["EHLO"]), "SMTP")
    equal((values(1, "pop.response.indicator"), values(1, "pop.request.command")), (["+OK", "+OK"], ["STAT"]), "POP")
    for stream in (2, 6):
        equal((values(stream, "http.request.method"), values(stream, "http.response.code")), (["GET"], ["200"]), "HTTP in stream %d" % stream)
        check(values(stream, "convert.relayed"), streams[stream])
        check(set(values(stream, "convert.server")) <= {"192.0.2.80:47113", "192.0.2.80:80"}, streams[stream])
    check(streams[3][-1]["frame.protocols"][0].endswith(":convert:tls"), streams[3])
    check(all(bare(row) for row in streams[4][2:]) and len(streams[4]) == 4, streams[4])
    check(not values(5, "http.response.code"), "what follows an error isn't a stream of the server's: %s" % streams[5])
    check(bare(streams[7][-1]), "a converter behind the converter: %s" % streams[7])
    check("convert" not in streams[9][1]["frame.protocols"][0], "what begins as a message, and isn't one: %s" % streams[9])
    check(not values(8, "convert.server") and "convert" not in values(8, "frame.protocols")[0], "plain HTTP to port 1234: %s" % streams[8])


@with_tshark
def test_ports_that_come_again(directory):
    """A repeated SYN has the same message; a new connection from the same port has its own, with another server."""
    first = Flow(0)
    first.send(True, REQUEST + GET, SYN)
    again = first.packets[0]
    first.send(False, b"", SYN | ACK).send(False, ANSWER + OK).send(True, flags=ACK | FIN).send(False, flags=ACK | FIN)
    second = Flow(0, seq=90000000).handshake(connect("192.0.2.81", 25), message(TCP_HEADER)).send(False, b"220 ready\r\n")
    found = dissected(directory, [first.packets[0], again, *first.packets[1:3], *first.packets[2:], *second.packets],
                      ["convert.connect.ip", "http.response.code", "smtp.response.code", "convert.response_to"], "-2", "-Y", "convert",
                      "-o", "tcp.no_subdissector_on_error:FALSE", "-o", "tcp.desegment_tcp_streams:FALSE")
    equal([row["convert.connect.ip"] for row in found if "convert.connect.ip" in row], [["192.0.2.80"]] * 2 + [["192.0.2.81"]], "servers")
    equal([row.get("http.response.code") or row.get("smtp.response.code") for row in found if len(row) and "convert.connect.ip" not in row],
          [["200"], ["200"], None, ["220"]], "answers in %s" % found)


def same_again(port, seq, in_syn=True, answer=ANSWER + OK):
    """A connection of the same ports as others by this function, with the same request."""
    flow = Flow(0, port=port, seq=seq).handshake(REQUEST + GET if in_syn else b"")
    if not in_syn:
        flow.send(True, REQUEST + GET)
    if answer:
        flow.send(False, answer).send(False, OK)
    return flow.packets


@with_tshark
def test_ports_and_requests_that_come_again(directory):
    """New connections with the ports and the request of an old one: each answer belongs to its own, and a repeated SYN to the first."""
    for port in (1234, 4321):
        first = same_again(port, 1000)
        packets = [first[0], *first, *same_again(port, 10 ** 6, in_syn=False), *same_again(port, 2 * 10 ** 6, answer=b""),
                   *same_again(port, 3 * 10 ** 6), *Flow(0, port=port, seq=4 * 10 ** 6).handshake().send(True, GET).packets]
        fields = ["tcp.stream", "frame.number", "convert.response_to", "convert.request_in", "convert.request", "convert.relayed"]
        found = dissected(directory, packets, fields, "-2", "-Y", "tcp.len > 0")
        streams = {}
        for row in found:
            streams.setdefault(row["tcp.stream"][0], []).append(row)
        what = "port %d: %s" % (port, found)
        for stream in "013":
            request = [row["frame.number"] for row in streams[stream] if "convert.request" in row][0]
            equal([row.get("convert.response_to") or row.get("convert.request_in") for row in streams[stream][-2:]], [request] * 2, what)
        equal([["convert.request" in row for row in streams[stream]] for stream in "24"], [[True], [False]], what)
        check("convert.relayed" not in streams["4"][0], what)


@with_tshark
def test_ports_of_a_request_that_was_cut(directory):
    """An old connection ended in the middle of its request: a new one with the same ports has its own."""
    old = Flow(0).handshake().send(True, REQUEST[:10])
    new = Flow(0, seq=10 ** 6).handshake(connect("192.0.2.81", 80) + GET, message(TCP_HEADER) + OK).send(True, GET)
    found = dissected(directory, old.packets + new.packets, ["convert.connect.ip", "convert.response_to", "convert.server"], "-Y", "convert")
    equal([value for row in found for values in row.values() for value in values],
          ["192.0.2.81", "5", "192.0.2.81:80", "192.0.2.81:80"], "what is known of the new connection")


@with_tshark
def test_port_preference(directory):
    """On other ports than 1234 only undoubted messages reach the dissector, unless a preference names the port."""
    flow = Flow(0, port=9999).handshake(octets("01022262 0a050050"))
    for preference, noted in ((), False), (("-o", "convert.tcp.port:1234,9990-9999"), True):
        found = dissected(directory, flow.packets, ["convert.magic.bad"], *preference)
        equal(bool(found[0]), noted, "a broken message to port 9999 with %s" % (preference,))


@with_tshark
def test_converter_on_the_port_of_a_server(directory):
    """A converter at port 443: the bytes of a server at port 443 are TLS, through this converter and through another one."""
    for port in (443, 1234):
        flow = Flow(0, port=port).handshake(connect("192.0.2.80", 443), message(TCP_HEADER)).send(True, octets("1603010005 0100000100"))
        found = dissected(directory, flow.packets, ["frame.protocols"], "-o", "convert.tcp.port:1234,443", "-Y", "tcp.len > 0")
        protocols = [row["frame.protocols"][0] for row in found]
        equal([":".join(text.split(":")[3:]) for text in protocols], ["convert", "convert", "convert:tls"], "protocols over port %d" % port)


@with_tshark
def test_script_is_loaded_twice(directory):
    """A package's and a personal copy don't conflict."""
    path = os.path.join(directory, "made.pcap")
    write_pcap(path, Flow().handshake(REQUEST, ANSWER).packets)
    equal(tshark(path, "-X", "lua_script:" + SCRIPT, "-Y", "convert.request", "-T", "fields", "-e", "convert.tlv.type"), "10,1\n", "types")


# --- our own traffic ------------------------------------------------------------------------------------------------


def own_rows(capture, *fields):
    return rows(capture.path, ["tcp.flags.syn", "tcp.stream", *fields], "-Y", "convert")


@long
@waits
def test_own_traffic():
    """curl through convertd: the request with early data in the SYN, over Multipath TCP and TCP, IPv4 and IPv6, HTTP in both directions."""
    need_tshark()
    with Lab(wifi=Link(delay_ms=30), lte=None, core=Link(delay_ms=1)) as lab:
        lab.convertd()
        lab.http()
        for enabled in (1, 0):
            lab.client.sysctl("net.mptcp.enabled", enabled)
            for address in (lab.server.addr4, "[%s]" % lab.server.addr6):
                with lab.capture(lab.client, "wifi", "tcp") as capture:
                    lab.client.run(["curl", "-sS", "-o", "/dev/null", "http://%s/bytes/5000" % address],
                                   env=lab.converted(CONVERT_EARLY_DATA="1", CONVERT_BYPASS_MPTCP="0"))
                found = own_rows(capture, "convert.request", "convert.answer", "convert.server", "http.request.method", "http.response.code",
                                 "convert.response_to", "mptcp.stream", "_ws.expert.severity")
                what = "Multipath TCP %d, to %s: %s" % (enabled, address, found)
                # a busy machine may also have sent probes
                stream, = {row["tcp.stream"][0] for row in found if "http.request.method" in row}
                ours = [row for row in found if row["tcp.stream"] == [stream]]
                in_syn = kernel.has("fastopen") or not enabled
                check((ours[0]["tcp.flags.syn"][0] in ("1", "True")) == in_syn and ours[0].get("convert.request"), "the request in the SYN, " + what)
                equal([row["http.request.method"] for row in found if "http.request.method" in row], [["GET"]], what)
                equal([row["http.response.code"] for row in found if "http.response.code" in row], [["200"]], what)
                answers = [row for row in ours if "convert.answer" in row]
                equal([(row["convert.server"], "convert.response_to" in row) for row in answers], [([address + ":80"], True)], what)
                equal(any("mptcp.stream" in row for row in found), enabled == 1, what)


@long
@waits
def test_own_errors_and_cookies():
    """convertd's errors by their names, and a cookie that it gives and gets back."""
    need_tshark()
    with Lab(wifi=Link(delay_ms=5), lte=None, core=Link(delay_ms=1)) as lab:
        lab.http()
        key = os.path.join(lab.directory, "key")
        lab.converter.run([lab.build.program("convertd"), "--make-key", key])
        with lab.capture(lab.client, "wifi", "tcp port 1234") as capture:
            lab.convertd(["--cookie-key", key])
            lab.client.run(["curl", "-sS", "-o", "/dev/null", "http://%s/bytes/5" % lab.server.addr4], env=lab.converted())
            lab.client.run(["curl", "-sS", "http://%s:81/" % lab.server.addr4], env=lab.converted(CONVERT_FALLBACK="none"), check=False)
        path = capture.path
        said = tshark(path, "-Y", "convert.answer", "-T", "fields", "-e", "_ws.col.Info")
        check("Error Missing Cookie" in said and "Error Connection Reset" in said, said)
        given = rows(path, ["convert.cookie"], "-Y", "convert.error.code == 3")[0]["convert.cookie"]
        shown = rows(path, ["convert.cookie"], "-Y", "convert.request && convert.tlv.type == 22")
        check(shown and shown[0]["convert.cookie"] == given, "%s was given, %s was shown" % (given, shown))


@long
@waits
def test_own_subflows():
    """Two networks: the dissector assigns a further subflow to the stream whose message is on the first one."""
    need_tshark()
    with Lab(wifi=Link(delay_ms=5, rate_mbit=20), lte=Link(delay_ms=5, rate_mbit=20), core=Link(delay_ms=1)) as lab:
        lab.convertd()
        lab.http()
        with lab.capture(lab.client, "wifi", "tcp") as wifi, lab.capture(lab.client, "lte", "tcp") as lte:
            lab.client.run(["curl", "-sS", "-o", "/dev/null", "http://%s/bytes/4000000" % lab.server.addr4],
                           env=lab.converted(CONVERT_BYPASS_MPTCP="0"))
        packets = sorted(wifi.packets() + lte.packets(), key=lambda packet: packet.time)
        fields = ["tcp.stream", "convert.connect.port", "convert.subflow_of", "convert.next.gap", "http.response.code"]
        found = dissected(lab.directory, [packet.data for packet in packets], fields, "-Y", "convert", "-o", "http.desegment_body:FALSE")
    first = next(row["tcp.stream"] for row in found if "convert.connect.port" in row)
    further = [row for row in found if "convert.subflow_of" in row]
    check(further and all(row["convert.subflow_of"] == first for row in further), "subflows of %s: %s" % (first, further[:3]))
    check(any("http.response.code" in row for row in found), "no HTTP response: %s" % found[:5])
    check(any("convert.next.gap" in row and row["tcp.stream"] == first for row in found), "no note of the gap")


if __name__ == "__main__":
    main()
