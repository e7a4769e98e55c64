# SPDX-License-Identifier: BSD-3-Clause
"""convert_scapy - Scapy layers for the messages of the 0-RTT TCP Convert Protocol (RFC 8803)

Sections and figures are those of RFC 8803. A Convert packet is a message, its tlvs are packets as well, and its payload is what
follows it in the byte stream. Lengths that are None are computed, and Values are padded, when a packet is built.
"""
import ipaddress

from scapy.config import conf
from scapy.fields import (BitField, ByteEnumField, ByteField, ConditionalField, Field, FieldListField, FlagsField,
                          PacketListField, ShortField, StrLenField, XShortField)
from scapy.layers.inet import TCP
from scapy.packet import Packet, bind_layers

__all__ = ["Connect", "Convert", "Cookie", "Echo", "Error", "ExtendedTCPHeader", "HoldTime", "Info", "Silence", "SupportedTCPExtensions",
           "TCPOption", "UnknownTLV", "Withholding", "ERROR_NAMES", "TLV_NAMES", "MAGIC", "MARK", "PORT", "SILENT_MAGIC", "find"]

MAGIC = 0x2263
SILENT_MAGIC = 0x6c63  # of a request that begins with a Silence TLV
PORT = 1234
WORD = 4     # bytes; the unit of all lengths
MARK = 0x6c63  # of the private TLVs

TLV_NAMES = {0: "Reserved", 1: "Info", 10: "Connect", 20: "Extended TCP Header", 21: "Supported TCP Extensions", 22: "Cookie", 30: "Error",
             240: "Withholding", 241: "Echo", 242: "Silence", 243: "Hold Time"}

ERROR_NAMES = {0: "Unsupported Version", 1: "Malformed Message", 2: "Unsupported Message", 3: "Missing Cookie", 32: "Not Authorized",
               33: "Unsupported TCP Option", 64: "Resource Exceeded", 65: "Network Failure", 96: "Connection Reset",
               97: "Destination Unreachable"}

OPTION_NAMES = {0: "End of Option List", 1: "No-Operation", 2: "Maximum Segment Size", 3: "Window Scale", 4: "SACK Permitted", 5: "SACK",
                8: "Timestamps", 29: "TCP-AO", 30: "Multipath TCP", 34: "Fast Open"}


class AddressField(Field):
    """The 16 bytes of an address: IPv4 is mapped (Section 6.2.5), and shown as IPv4."""

    def __init__(self, name, default):
        Field.__init__(self, name, default, "16s")

    def any2i(self, pkt, x):
        """The text of an address from that, from 16 bytes, or from an object of the module ipaddress."""
        if x is None:
            return None
        if isinstance(x, bytes) and len(x) == 16:
            return self.m2i(pkt, x)
        return str(ipaddress.ip_address(x.decode() if isinstance(x, bytes) else x))

    def i2m(self, pkt, x):
        """16 bytes."""
        address = ipaddress.ip_address(x or "::")
        return bytes(10) + b"\xff\xff" + address.packed if address.version == 4 else address.packed

    def m2i(self, pkt, x):
        """A text."""
        address = ipaddress.IPv6Address(x)
        return str(address.ipv4_mapped or address)

    def i2repr(self, pkt, x):
        """The text itself."""
        return str(x)


def words(pkt, what):
    """The length of that in words; a ValueError where a Length field has no room for it."""
    if len(pkt) > 255 * WORD:
        raise ValueError("%s has %d bytes, of which a Length field counts 1020 at most: give the length yourself" % (what, len(pkt)))
    return bytes([len(pkt) // WORD])


class Item(Packet):
    """What stands in a list: its payload is the rest of the list, and none of its own."""

    def extract_padding(self, s):
        """Leaves what follows to the list."""
        return b"", s


class TCPOption(Item):
    """One TCP option (Figure 19). Kinds 0 and 1 have nothing but their kind; zeros at the end of a list are of kind 0."""

    name = "TCP option"
    fields_desc = [
        ByteEnumField("kind", 4, OPTION_NAMES),
        ConditionalField(ByteField("length", None), lambda pkt: pkt.kind > 1),
        ConditionalField(StrLenField("value", b"", length_from=lambda pkt: max(pkt.length - 2, 0)), lambda pkt: pkt.kind > 1),
    ]

    def post_build(self, pkt, pay):
        """Fills the length in."""
        if self.kind > 1 and self.length is None:
            pkt = pkt[:1] + bytes([len(pkt)]) + pkt[2:]
        return pkt + pay


def rest_of(pkt, fixed):
    """How many bytes a TLV has behind the fixed ones."""
    return max((pkt.length or 0) * WORD - fixed, 0)


def head(number):
    """The fields with which each TLV begins (Figure 14)."""
    return [ByteEnumField("type", number, TLV_NAMES), ByteField("length", None)]


def options(fixed):
    """A list of TCP options behind the fixed bytes."""
    return PacketListField("options", [], TCPOption, length_from=lambda pkt: rest_of(pkt, fixed))


class TLV(Item):
    """A TLV, which takes whole words: min_words at least."""

    min_words = 1

    def post_build(self, pkt, pay):
        """Pads, and fills the length in."""
        pkt += bytes(-len(pkt) % WORD)
        if self.length is None:
            pkt = pkt[:1] + words(pkt, self.name) + pkt[2:]
        return pkt + pay


class Info(TLV):
    """Figure 15: which TCP extensions does the converter support?"""

    name = "Info TLV"
    fields_desc = head(1) + [ShortField("zero", 0)]


class Connect(TLV):
    """Figures 17 and 18: a connection to this server is asked for."""

    name = "Connect TLV"
    min_words = 5
    fields_desc = head(10) + [ShortField("port", 80), AddressField("address", "192.0.2.80"), options(20)]


class ExtendedTCPHeader(TLV):
    """Figure 20: the TCP options of the server's SYN+ACK."""

    name = "Extended TCP Header TLV"
    fields_desc = head(20) + [ShortField("unassigned", 0), options(4)]


class SupportedTCPExtensions(TLV):
    """Figure 16: the kinds of TCP options that the converter supports, with the padding of the list."""

    name = "Supported TCP Extensions TLV"
    fields_desc = head(21) + [ShortField("unassigned", 0),
                              FieldListField("kinds", [], ByteEnumField("kind", 0, OPTION_NAMES), length_from=lambda pkt: rest_of(pkt, 4))]


class Cookie(TLV):
    """Figure 21."""

    name = "Cookie TLV"
    min_words = 2
    fields_desc = head(22) + [ShortField("zero", 0), StrLenField("cookie", b"", length_from=lambda pkt: rest_of(pkt, 4))]


class Error(TLV):
    """Figure 22. What the Value is depends on the code: explain() tells, message() is the echo of codes 1 and 2."""

    name = "Error TLV"
    fields_desc = head(30) + [ByteEnumField("code", 32, ERROR_NAMES), StrLenField("value", b"\0", length_from=lambda pkt: rest_of(pkt, 3))]

    def message(self):
        """The message that triggered the error (Figure 23); None where there is none."""
        echoed = bytes(self.value)[1:]
        return Convert(echoed) if self.code in (1, 2) and echoed else None

    def explain(self):
        """The error in words, with its Value."""
        value = bytes(self.value) or b"\0"
        details = {
            0: lambda: "supported: " + ", ".join(str(version) for version in value.rstrip(b"\0")),
            1: lambda: "the message was " + value[1:].hex(),
            2: lambda: "the message was " + value[1:].hex(),
            3: lambda: "the cookie is " + value[1:].hex(),
            33: lambda: ", ".join(OPTION_NAMES.get(kind, "Kind %d" % kind) for kind in value.rstrip(b"\0")),
            64: lambda: "ask again after %s" % ("%d s" % value[0] if value[0] else "30 s or more"),
            65: lambda: "ask again after %s" % ("%d s" % value[0] if value[0] else "30 s or more"),
            97: lambda: "ICMP Code %d" % value[0],
        }
        name = ERROR_NAMES.get(self.code, "unknown code %d" % self.code)
        return "%s, %s" % (name, details[self.code]()) if self.code in details else name


class Withholding(TLV):
    """libconvert's own TLV (doc/private-tlvs.md): what the converter does with SYNs. `more` is for its future."""

    name = "Withholding TLV"
    min_words = 2
    fields_desc = head(240) + [ByteField("version", 1), 
                               FlagsField("flags", 0, 8, ["withheld", "corrects", "uncorrected", "silent", "blind", "repeats",
                                                          "hold_times", "no_way"]),
                               ShortField("limit", 0), XShortField("mark", MARK),
                               StrLenField("more", b"", length_from=lambda pkt: rest_of(pkt, 8))]


class Echo(TLV):
    """libconvert's own TLV (doc/private-tlvs.md): what follows the request is to come back, limit KiB of it at most."""

    name = "Echo TLV"
    min_words = 2
    fields_desc = head(241) + [ByteField("version", 1), ByteField("flags", 0), ShortField("limit", 0), XShortField("mark", MARK),
                               StrLenField("more", b"", length_from=lambda pkt: rest_of(pkt, 8))]


class Silence(TLV):
    """libconvert's own TLV (doc/private-tlvs.md), the first of a silent request: no response where the SYN+ACK says it all.

    `more` begins with the Attempt, 8 bytes, of a blind request that may be made again.
    """

    name = "Silence TLV"
    min_words = 2
    fields_desc = head(242) + [ByteField("version", 1), BitField("more_flags", 0, 6), FlagsField("flags", 0, 2, ["blind", "mptcp"]),
                               ShortField("repeat", 0), XShortField("mark", MARK),
                               StrLenField("more", b"", length_from=lambda pkt: rest_of(pkt, 8))]


class HoldTime(TLV):
    """libconvert's own TLV (doc/private-tlvs.md): the client's SYN may be withheld for so many milliseconds at most."""

    name = "Hold Time TLV"
    min_words = 2
    fields_desc = head(243) + [ByteField("version", 1), ByteField("flags", 0), ShortField("limit", 0), XShortField("mark", MARK),
                               StrLenField("more", b"", length_from=lambda pkt: rest_of(pkt, 8))]


class UnknownTLV(TLV):
    """A TLV of another type, of an impossible length, or of another implementation."""

    name = "TLV"
    fields_desc = head(192) + [StrLenField("value", b"", length_from=lambda pkt: rest_of(pkt, 2))]


CLASSES = {1: Info, 10: Connect, 20: ExtendedTCPHeader, 21: SupportedTCPExtensions, 22: Cookie, 30: Error, 240: Withholding,
           241: Echo, 242: Silence, 243: HoldTime}


def class_of(_packet, _before, _last, remaining):
    """The class of the TLV with which these bytes begin."""
    if len(remaining) < 2:
        return conf.raw_layer if remaining else None
    number, length = remaining[:2]
    found = CLASSES.get(number, UnknownTLV)
    if length < found.min_words or length * WORD > len(remaining) or (found is Info and length > 1):
        return UnknownTLV
    if number in (240, 241, 242, 243) and (remaining[2] != 1 or remaining[6:8] != MARK.to_bytes(2, "big")):
        return UnknownTLV
    return found


class Convert(Packet):
    """A message: the fixed header (Figure 13) and its TLVs."""

    name = "Convert"
    fields_desc = [
        ByteField("version", 1),
        ByteField("total_length", None),
        XShortField("magic", None),
        PacketListField("tlvs", [], next_cls_cb=class_of, length_from=lambda pkt: max((pkt.total_length or 0) * WORD - 4, 0)),
    ]

    def post_build(self, pkt, pay):
        """Fills the length in, and the Magic Number, which is another one in front of a Silence TLV."""
        if self.total_length is None:
            pkt = pkt[:1] + words(pkt, self.name) + pkt[2:]
        if self.magic is None:
            magic = SILENT_MAGIC if self.tlvs and isinstance(self.tlvs[0], Silence) else MAGIC
            pkt = pkt[:2] + magic.to_bytes(2, "big") + pkt[4:]
        return pkt + pay

    @classmethod
    def dispatch_hook(cls, _pkt=None, *_args, **_kargs):
        """Bytes that aren't the beginning of a message are data: most segments of a connection are."""
        if _pkt is not None and (len(_pkt) < 4 or int.from_bytes(_pkt[2:4], "big") not in (MAGIC, SILENT_MAGIC)):
            return conf.raw_layer
        return cls

    def mysummary(self):
        """What Scapy shows in a line."""
        return "Convert " + ", ".join(tlv.explain() if isinstance(tlv, Error) else tlv.name for tlv in self.tlvs)


def find(packet, kind):
    """The first TLV of this class in a packet; None where there is none."""
    message = packet.getlayer(Convert) if packet is not None else None
    return next((tlv for tlv in message.tlvs if isinstance(tlv, kind)), None) if message is not None else None


bind_layers(TCP, Convert, dport=PORT)
bind_layers(TCP, Convert, sport=PORT)
