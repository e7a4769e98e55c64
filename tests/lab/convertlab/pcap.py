# SPDX-License-Identifier: BSD-3-Clause
"""pcap.py - reads tcpdump's files: IPv4 and IPv6, TCP with its options, the MPTCP subtype; and writes such files"""
import collections
import dataclasses
import ipaddress
import struct
from typing import List, Tuple

# link types (https://www.tcpdump.org/linktypes.html): how many bytes stand before the IP header
LINK_HEADER = {1: 14, 101: 0, 113: 16, 276: 20}

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16

OPT_MSS, OPT_WSCALE, OPT_SACK_OK, OPT_SACK, OPT_TIMESTAMP, OPT_MPTCP, OPT_FASTOPEN = 2, 3, 4, 5, 8, 30, 34

# RFC 8684 Section 8.2
MPTCP_SUBTYPES = ("MP_CAPABLE", "MP_JOIN", "DSS", "ADD_ADDR", "REMOVE_ADDR", "MP_PRIO", "MP_FAIL", "MP_FASTCLOSE",
                  "MP_TCPRST")


@dataclasses.dataclass
class Packet:
    """One packet. The TCP fields are 0 or empty where it isn't TCP; ports are there for UDP too."""

    time: float                  # seconds since the epoch
    src: str
    dst: str
    protocol: int
    size: int                    # of the IP packet
    sport: int = 0
    dport: int = 0
    seq: int = 0
    ack: int = 0
    flags: int = 0
    window: int = 0              # as on the wire
    options: List[Tuple[int, bytes]] = dataclasses.field(default_factory=list)  # (kind, value), no NOP, no EOL
    payload: bytes = b""
    data: bytes = b""            # the whole IP packet

    @property
    def syn(self):
        """A SYN that isn't a SYN+ACK?"""
        return self.flags & (SYN | ACK) == SYN

    @property
    def synack(self):
        """A SYN+ACK?"""
        return self.flags & (SYN | ACK) == SYN | ACK

    @property
    def rst(self):
        """Is the RST flag set?"""
        return bool(self.flags & RST)

    @property
    def fin(self):
        """Is the FIN flag set?"""
        return bool(self.flags & FIN)

    def option(self, kind):
        """The value of the first option of this kind, None if there is none."""
        return next((value for found, value in self.options if found == kind), None)

    @property
    def mptcp(self) -> List[str]:
        """The names of the MPTCP options in it, such as ["MP_CAPABLE"]."""
        numbers = [value[0] >> 4 for kind, value in self.options if kind == OPT_MPTCP and value]
        return [MPTCP_SUBTYPES[number] if number < len(MPTCP_SUBTYPES) else str(number) for number in numbers]

    def __str__(self):
        names = "".join(letter for bit, letter in ((SYN, "S"), (FIN, "F"), (RST, "R"), (PSH, "P"), (ACK, "."))
                        if self.flags & bit)
        return "%.6f %s.%d > %s.%d [%s] seq %d ack %d win %d %s len %d" % (
            self.time, self.src, self.sport, self.dst, self.dport, names, self.seq, self.ack, self.window,
            ",".join(self.mptcp), len(self.payload))


def _options(data):
    found, at = [], 0
    while at < len(data) and data[at] != 0:
        if data[at] == 1:
            at += 1
            continue
        if at + 1 >= len(data) or data[at + 1] < 2 or at + data[at + 1] > len(data):
            break
        found.append((data[at], bytes(data[at + 2:at + data[at + 1]])))
        at += data[at + 1]
    return found


def _network(data):
    """(src, dst, protocol, the IP packet, its payload), or None where it isn't IP."""
    version = data[0] >> 4 if data else 0
    if version == 4 and len(data) >= 20:
        data = data[:struct.unpack_from("!H", data, 2)[0]]
        header = (data[0] & 15) * 4
        return (str(ipaddress.IPv4Address(data[12:16])), str(ipaddress.IPv4Address(data[16:20])), data[9], data,
                data[header:])
    if version == 6 and len(data) >= 40:
        data = data[:40 + struct.unpack_from("!H", data, 4)[0]]
        return (str(ipaddress.IPv6Address(data[8:24])), str(ipaddress.IPv6Address(data[24:40])), data[6], data,
                data[40:])
    return None


def parse(time, data):
    """A Packet from the bytes of an IP packet; None where it isn't one."""
    network = _network(data)
    if not network:
        return None
    src, dst, protocol, data, rest = network
    packet = Packet(time, src, dst, protocol, len(data), data=data)
    if protocol in (6, 17) and len(rest) >= 8:
        packet.sport, packet.dport = struct.unpack_from("!HH", rest)
    if protocol == 17:
        packet.payload = rest[8:]
    if protocol == 6 and len(rest) >= 20:
        packet.seq, packet.ack, offset, packet.flags, packet.window = struct.unpack_from("!IIBBH", rest, 4)
        header = (offset >> 4) * 4
        packet.options = _options(rest[20:header])
        packet.payload = rest[header:]
    return packet


def read_pcap(path):
    """The packets of a file, as a list of Packet; an unfinished last record is left out."""
    with open(path, "rb") as file:
        data = file.read()
    order = {b"\xd4\xc3\xb2\xa1": "<", b"\xa1\xb2\xc3\xd4": ">"}.get(data[:4])
    if not order:
        raise ValueError("%s: not a pcap file with microseconds" % path)
    link = struct.unpack_from(order + "I", data, 20)[0] & 0xffff
    if link not in LINK_HEADER:
        raise ValueError("%s: link type %d is none of %s" % (path, link, sorted(LINK_HEADER)))
    found, at, skip = [], 24, LINK_HEADER[link]
    while at + 16 <= len(data):
        seconds, micros, size = struct.unpack_from(order + "III", data, at)
        at += 16
        if at + size > len(data):
            break
        packet = parse(seconds + micros / 1e6, data[at + skip:at + size])
        if packet:
            found.append(packet)
        at += size
    return found


def first_syns(packets):
    """The first SYN of each connection, in order. If a busy machine answers late, Linux sends a SYN again after a second, from the same port."""
    found = {}
    for packet in packets:
        if packet.syn:
            found.setdefault((packet.src, packet.sport, packet.dst, packet.dport), packet)
    return list(found.values())


def bytes_by_path(packets):
    """TCP payload by (src, dst) address, retransmissions included: {("10.1.0.2", "10.9.0.1"): 4711, …}."""
    sums = collections.Counter()
    for packet in packets:
        if packet.payload and packet.protocol == 6:
            sums[packet.src, packet.dst] += len(packet.payload)
    return dict(sums)


def round_trips(packets):
    """The round trips, the handshake's included, until all data of the host that opened the first connection is acknowledged.

    packets: as captured at that host. Their order counts, as congestion controls do it: a round trip is over when the peer acknowledges
    a byte that the host sent after the end of the round trip before.
    """
    syn = next(packet for packet in packets if packet.syn)
    ours = (syn.src, syn.sport, syn.dst, syn.dport)
    sent = ended = count = 0  # behind the SYN's number
    last = max(_behind(packet, syn) for packet in packets if (packet.src, packet.sport, packet.dst, packet.dport) == ours and
               (packet.payload or packet.syn))
    for packet in packets:
        if (packet.src, packet.sport, packet.dst, packet.dport) == ours:
            sent = max(sent, _behind(packet, syn))
        elif (packet.dst, packet.dport, packet.src, packet.sport) == ours and packet.flags & ACK:
            acknowledged = packet.ack - syn.seq & 0xffffffff
            if acknowledged > ended:
                count, ended = count + 1, sent
            if acknowledged >= last:
                return count
    raise ValueError("%d bytes, and not all of them acknowledged" % last)


def _behind(packet, syn):
    """The sequence number behind a packet's data, from that of the SYN on."""
    return (packet.seq - syn.seq & 0xffffffff) + len(packet.payload) + packet.syn


def mptcp_subflows(packets):
    """The MPTCP subflows that were established: [("MP_CAPABLE", src, sport, dst, dport), ("MP_JOIN", …)].

    A subflow counts once its SYN was answered, and the list is in the order of the answers; src is the side that opened it.
    """
    found = []
    for packet in packets:
        kinds = [kind for kind in packet.mptcp if kind in ("MP_CAPABLE", "MP_JOIN")]
        flow = kinds and (kinds[0], packet.dst, packet.dport, packet.src, packet.sport)
        if packet.synack and flow and flow not in found:
            found.append(flow)
    return found


def write_pcap(path, packets, captured=None):
    """Writes IP packets (bytes) into a file, a millisecond apart. captured: how many bytes of each packet; None: all."""
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 101))
        for number, packet in enumerate(packets):
            part = packet[:captured[number]] if captured else packet
            file.write(struct.pack("<IIII", 1700000000 + number // 1000, number % 1000 * 1000, len(part), len(packet)) + part)
