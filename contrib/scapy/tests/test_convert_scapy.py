# SPDX-License-Identifier: BSD-3-Clause
"""test_convert_scapy.py - the layers against bytes that are spelled after the RFC's figures: python3 -m unittest discover -s tests

It needs Scapy, and nothing of libconvert's.
"""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

# pylint: disable=wrong-import-position
from scapy.layers.inet import IP, TCP
from scapy.packet import Raw

from convert_scapy import (Connect, Convert, Cookie, Echo, Error, ExtendedTCPHeader, HoldTime, Info, Silence, SupportedTCPExtensions,
                           TCPOption, UnknownTLV, Withholding, find)

V4 = "00000000000000000000ffffc0000250"
V6 = "20010db8000000000000000000000080"

# what is built, and what its bytes are; each is dissected into the same again
VECTORS = (
    ([Info()], "01022263 01010000"),
    ([Connect(address="192.0.2.80", port=443)], "01062263 0a0501bb" + V4),
    ([Connect(address="2001:db8::80", port=80)], "01062263 0a050050" + V6),
    ([Connect(address="192.0.2.80", port=80, options=[TCPOption(kind=30)]), Info()], "01082263 0a060050" + V4 + "1e020000 01010000"),
    ([Connect(address="192.0.2.80", port=80, options=[TCPOption(kind=34, value=b"\1\2\3\4"), TCPOption(kind=4)])],
     "01082263 0a070050" + V4 + "2206010203040402"),
    ([Cookie(cookie=b"12345678")], "01042263 16030000 3132333435363738"),
    ([SupportedTCPExtensions(kinds=[4, 8, 30, 34])], "01032263 15020000 04081e22"),
    ([ExtendedTCPHeader(options=[TCPOption(kind=2, value=b"\5\xb4"), TCPOption(kind=1), TCPOption(kind=3, value=b"\7")])],
     "01042263 14030000 020405b4 01030307"),
    ([Error(code=0, value=b"\1")], "01022263 1e010001"),
    ([Error(code=1, value=b"\0" + bytes.fromhex("0102226300010000"))], "01042263 1e030100 01022263 00010000"),
    ([Error(code=97, value=b"\3")], "01022263 1e016103"),
    ([Withholding(flags="withheld+corrects", limit=700)], "01032263 f0020103 02bc6c63"),
    ([Withholding(flags="withheld+corrects+silent+blind", limit=700)], "01032263 f002011b 02bc6c63"),
    ([Silence(flags="blind+mptcp"), Connect(address="192.0.2.80", port=443)], "01086c63 f2020103 00006c63 0a0501bb" + V4),
    ([Withholding(flags="withheld+corrects+hold_times", limit=700)], "01032263 f0020143 02bc6c63"),
    ([Withholding(flags="corrects+no_way", limit=0)], "01032263 f0020182 00006c63"),
    ([HoldTime(limit=450), Connect(address="192.0.2.80", port=443)], "01082263 f3020100 01c26c63 0a0501bb" + V4),
    ([Silence(), HoldTime(limit=450), Connect(address="192.0.2.80", port=443)],
     "010a6c63 f2020100 00006c63 f3020100 01c26c63 0a0501bb" + V4),
    ([Info(), Echo()], "01042263 01010000 f1020100 00006c63"),
    ([UnknownTLV(type=200, value=b"ab")], "01022263 c8016162"),
    ([], "01012263"),
)


class Vectors(unittest.TestCase):
    """Each message, built and dissected."""

    def test_build(self):
        """The bytes are those of the figures, lengths and padding included."""
        for tlvs, text in VECTORS:
            self.assertEqual(bytes(Convert(tlvs=tlvs)).hex(), text.replace(" ", ""), tlvs)

    def test_dissect(self):
        """The fields are those that it was built of; what follows is the payload."""
        for tlvs, text in VECTORS:
            found = Convert(bytes.fromhex(text) + b"GET /")
            self.assertEqual([type(tlv) for tlv in found.tlvs], [type(tlv) for tlv in tlvs], text)
            self.assertEqual(bytes(found[Raw]), b"GET /", text)
            for tlv, wanted in zip(found.tlvs, tlvs):
                for name, value in wanted.fields.items():
                    if name == "options":
                        pairs = [(option.kind, bytes(option.value or b"")) for option in tlv.options if option.kind]
                        self.assertEqual(pairs, [(option.kind, bytes(option.value or b"")) for option in value], text)
                    else:
                        self.assertEqual(getattr(tlv, name), getattr(wanted, name), "%s of %s" % (name, text))

    def test_every_cut(self):
        """A message that is cut raises nothing, and no byte of it is lost."""
        for _, text in VECTORS:
            data = bytes.fromhex(text)
            for size in range(len(data)):
                self.assertEqual(bytes(Convert(data[:size])), data[:size], text)


class Uses(unittest.TestCase):
    """What tests and researchers do with the layers."""

    def test_in_tcp(self):
        """A SYN is dissected, and so is an answer; other segments are data."""
        syn = IP(bytes(IP(dst="192.0.2.1") / TCP(dport=1234, flags="S") / Convert(tlvs=[Connect(port=25)]) / b"early"))
        self.assertEqual((find(syn, Connect).port, find(syn, Connect).address, bytes(syn[Raw])), (25, "192.0.2.80", b"early"))
        self.assertIsNone(find(syn, Cookie))
        self.assertIn("Not Authorized", IP(bytes(IP() / TCP(sport=1234, dport=9) / Convert(tlvs=[Error(code=32)]))).summary())
        data = IP(bytes(IP() / TCP(dport=1234) / b"relayed data"))
        self.assertFalse(data.haslayer(Convert))
        self.assertEqual(bytes(data[Raw]), b"relayed data")

    def test_wrong_on_purpose(self):
        """Lengths, versions and magic numbers are as they are given."""
        self.assertEqual(bytes(Convert(version=2, total_length=9, magic=1, tlvs=[Info(length=7)])).hex(), "0209000101070000")
        self.assertEqual(bytes(Convert(tlvs=[Connect(options=[TCPOption(kind=30, length=9)])])).hex()[-8:], "1e090000")
        with self.assertRaisesRegex(ValueError, "Cookie TLV has 1204 bytes"):
            bytes(Convert(tlvs=[Cookie(cookie=bytes(1200))]))

    def test_errors_in_words(self):
        """Each code and its Value."""
        for value, text in (("0001", "Unsupported Version, supported: 1"), ("2000", "Not Authorized"),
                            ("211e", "Unsupported TCP Option, Multipath TCP"), ("4000", "Resource Exceeded, ask again after 30 s or more"),
                            ("4105", "Network Failure, ask again after 5 s"), ("6103", "Destination Unreachable, ICMP Code 3"),
                            ("c807", "unknown code 200")):
            self.assertEqual(find(Convert(bytes.fromhex("010222631e01" + value)), Error).explain(), text)
        error = find(Convert(bytes.fromhex("01042263 1e030100 01022263 00010000")), Error)
        self.assertEqual((type(error.message().tlvs[0]), error.message().tlvs[0].type), (UnknownTLV, 0))

    def test_impossible_lengths(self):
        """TLVs that their classes couldn't hold, and those of others, keep their bytes."""
        for text in ("0102226301000000", "010222630a010050", "0103226301020000 00000000", "01022263160100ff", "01032263f002020102bc6c63",
                     "01022263f0010101", "01022263 1e090000"):
            data = bytes.fromhex(text)
            self.assertIsInstance(Convert(data).tlvs[0], UnknownTLV, text)
            self.assertEqual(bytes(Convert(data)), data, text)


if __name__ == "__main__":
    unittest.main()
