# SPDX-License-Identifier: BSD-3-Clause
"""forging.py - sends SYNs from addresses that aren't the sender's, and captures the answers to these addresses

The lab routes the forged networks to the client's host, which forwards nothing and has none of the addresses. So this host drops the
answers silently, like a victim behind a firewall. Its kernel doesn't know of these connections.
"""
import collections
import ipaddress
import socket
import struct

from .harness import check
from .peers import PORT, checksum, connect, octets
from .waiting import wait_until

NETWORK4, NETWORK6 = ipaddress.ip_network("10.50.0.0/16"), ipaddress.ip_network("fd50::/16")

# Options of SYNs: the shortest useful one, those of Linux, and that of Multipath TCP (RFC 9293, 7323, 2018, 8684 3.1).
MSS = octets("020405b4")
LINUX = MSS + octets("0402 080a 00bc614e 00000000 01 030307")
MP_CAPABLE = octets("1e040101")
OPTIONS = {"bare": b"", "mss": MSS, "linux": LINUX, "bare MPTCP": MP_CAPABLE, "linux MPTCP": LINUX + MP_CAPABLE}


def route_back(lab):
    """Has the converter route the forged addresses to the client's link."""
    lab.converter.ip("route add %s via %s" % (NETWORK4, lab.client.wifi4))
    lab.converter.ip("route add %s via %s" % (NETWORK6, lab.client.wifi6))


def victim(number, v6=False):
    """Returns the forged address of that number; each of IPv6 is in a /64 of its own."""
    return str(NETWORK6[(number << 64) + 1] if v6 else NETWORK4[256 + number])


class Forge:
    """Raw sockets of the lab's client, which send to the converter's addresses."""

    def __init__(self, lab, port=PORT):
        self._lab = lab
        self._port = port
        self._socks = {v6: lab.client.socket(family, socket.SOCK_RAW, socket.IPPROTO_RAW)
                       for v6, family in ((False, socket.AF_INET), (True, socket.AF_INET6))}
        self.sent = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for sock in self._socks.values():
            sock.close()

    def tcp(self, source, port, flags, data=b"", options=b"", seq=12345, ack=0):
        """A segment from source:port."""
        source = ipaddress.ip_address(source)
        v6 = source.version == 6
        where = self._lab.converter.addr6 if v6 else self._lab.converter.addr4
        target = ipaddress.ip_address(where)
        segment = struct.pack("!HHIIBBHHH", port, self._port, seq, ack, (5 + len(options) // 4) << 4, flags, 65535, 0, 0)
        segment += options + data
        pseudo = source.packed + target.packed + struct.pack("!II", len(segment), socket.IPPROTO_TCP)
        segment = segment[:16] + struct.pack("!H", checksum(pseudo + segment)) + segment[18:]
        if v6:
            header = struct.pack("!IHBB", 6 << 28, len(segment), socket.IPPROTO_TCP, 64)
        else:
            header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(segment), 0, 0, 64, socket.IPPROTO_TCP, 0)
        self._socks[v6].sendto(header + source.packed + target.packed + segment, (where, 0))
        self.sent += 1

    def syn(self, source, port, data, options=MSS, seq=12345):
        """A SYN with that payload."""
        self.tcp(source, port, 2, data, options, seq)

    def request(self, number, target, port, options=MSS, early=b"", v6=False):
        """A SYN from the address of that number that asks for a connection to target:port, with early data."""
        self.syn(victim(number, v6), 1024 + number % 60000, connect(target, port) + early, options)


def is_forged(address):
    """Tells whether that is a forged address, which no host has."""
    ip = ipaddress.ip_address(address)
    return ip in (NETWORK6 if ip.version == 6 else NETWORK4)


ETHERNET = 14


class Traffic:
    """Bytes of IP packets from (`sent`) and to (`back`) the forged addresses in a capture on the converter's link, for each flow.

    framed: bytes back less three times the bytes sent, both with the link's headers, which weigh more on many small packets.
    """

    def __init__(self, packets):
        self.sent, self.back, self.kinds = collections.Counter(), collections.Counter(), collections.Counter()
        self.framed = collections.Counter()
        for packet in packets:
            if is_forged(packet.src):
                self.sent[packet.src, packet.sport] += packet.size
                self.framed[packet.src, packet.sport] -= 3 * (packet.size + ETHERNET)
            elif is_forged(packet.dst):
                self.back[packet.dst, packet.dport] += packet.size
                self.framed[packet.dst, packet.dport] += packet.size + ETHERNET
                self.kinds["SYN+ACK" if packet.synack else "RST" if packet.rst else "FIN" if packet.fin else
                           "data" if packet.payload else "other"] += 1

    @property
    def ratio(self):
        """The ratio over all flows."""
        return sum(self.back.values()) / sum(self.sent.values())

    @property
    def worst(self):
        """The highest ratio of a flow."""
        return max(self.back[flow] / sent for flow, sent in self.sent.items())

    def __str__(self):
        return "%.2f (worst flow %.2f, %d to %d bytes, %s)" % (
            self.ratio, self.worst, sum(self.sent.values()), sum(self.back.values()),
            ", ".join("%d %s" % (count, kind) for kind, count in self.kinds.most_common()))


def wait_forgotten(lab, seconds=90, port=PORT):
    """Waits until the converter's kernel has no socket of a client any more: then no packet can come back."""
    def sockets():
        said = lab.converter.run(["ss", "-Htan", "sport", "= :%d" % port]).stdout
        return [line for line in said.splitlines() if line and "LISTEN" not in line]
    wait_until(lambda: not sockets(), seconds, lambda: "the end of:\n" + "\n".join(sockets()[:20]), interval=0.2)


def within(traffic, what, most=3.0):
    """No flow got more than `most` times its bytes back, in bytes of IP, and three times with the link's headers."""
    check(traffic.sent, "no forged packet was captured (%s)" % what)
    check(traffic.worst <= most, "%s: %s" % (what, traffic))
    check(max(traffic.framed.values()) <= 0, "%s, with the link's headers: %s" % (what, traffic))
