# SPDX-License-Identifier: BSD-3-Clause
"""poc5g.py - the round trips of Convert and SOCKS5, the links that published figures imply, the moments of a connection in its packets

Nothing in here opens a file or a socket. Times are in ms where the name doesn't say otherwise.

The model: a is the round trip from the phone to the converter (or to the SOCKS server), c the one from there to the server. Convert
confirms a connection after a + c, since the request travels in the SYN. SOCKS5 with a password needs four round trips to the proxy,
of which the last includes the one to the server: 4a + c. Both have the server's first byte another a + c later.
"""
import dataclasses
import hashlib
import math
import statistics
from typing import NamedTuple, Optional

# How many round trips to the proxy pass until the connection is known to be accepted.
TRIPS_CONVERT = 1
TRIPS_SOCKS = 4        # TCP's handshake, the choice of a method, the password, CONNECT (RFC 1928, RFC 1929)

MAGIC = 0x2263         # RFC 8803 Section 4.1
MAGIC_SILENT = 0x6c63  # of a request that wants no response where the SYN+ACK confirms the server: doc/private-tlvs.md
TLV_ERROR = 30
OPTION_MPTCP, MP_CAPABLE, MP_JOIN, DSS = 30, 0, 1, 2   # RFC 8684
MS = 1000
NORMAL = statistics.NormalDist()


# --- round trips ------------------------------------------------------------------------------------------------


def ttfb(trips, a, c):
    """The time until the connection is known to be accepted."""
    return trips * a + c


def ttgtfb(trips, a, c):
    """The time until the server's first byte is there: the request and that byte take a round trip all the way."""
    return ttfb(trips, a, c) + a + c


def round_trips(convert, socks):
    """(a, c) such that Convert takes a + c and SOCKS5 with a password 4a + c: two equations with two unknowns."""
    a = (socks - convert) / (TRIPS_SOCKS - TRIPS_CONVERT)
    return a, convert - a


def ttfb_ratio(r):
    """How many times longer SOCKS5 takes than Convert where c is r times a: from 4 at r = 0 down to 1; 3 at r = 1/2."""
    return ttfb(TRIPS_SOCKS, 1, r) / ttfb(TRIPS_CONVERT, 1, r)


def ttgtfb_ratio(r):
    """The same ratio of the times until the server's first byte: from 2.5 at r = 0 down to 1."""
    return ttgtfb(TRIPS_SOCKS, 1, r) / ttgtfb(TRIPS_CONVERT, 1, r)


def spread_ratio(convert, socks):
    """How many times wider SOCKS5's times lie apart than Convert's; each argument is (min, max).

    If a connection kept one round-trip time for all its life, four round trips would lie 4 times as wide apart as one. If each round
    trip had a time of its own, independent of those before, they would lie about 2 times as wide apart, which is the square root of 4.
    """
    return (socks[1] - socks[0]) / (convert[1] - convert[0])


class Ratio(NamedTuple):
    """A ratio of two means, and between which bounds it would lie in 95% of the runs."""

    value: float
    low: float
    high: float


def ratio(above, below):
    """The Ratio of the means of two lists of times that were measured independently, each with two values at least.

    The relative errors of both means add up as squares; that is exact enough while they are a few per cent.
    """
    value = statistics.fmean(above) / statistics.fmean(below)
    error = NORMAL.inv_cdf(0.975) * math.hypot(*(
        statistics.stdev(values) / math.sqrt(len(values)) / statistics.fmean(values) for values in (above, below)))
    return Ratio(value, value * (1 - error), value * (1 + error))


# --- published figures ------------------------------------------------------------------------------------------

# how far a mean, and a least or greatest time, which is a single connection's, may be from a published one
MEAN_NEAR, EXTREME_NEAR = 0.1, 0.25


def is_near(figure, ours, published):
    """Is a "mean", "min" or "max" met?"""
    return abs(ours / published - 1) <= (MEAN_NEAR if figure == "mean" else EXTREME_NEAR)


def figure_verdict(figure, published, ours, least, fitted):
    """What becomes of a published figure. ours: those over IPv4 and over IPv6; least: the shortest time that the links allow;
    fitted: whether a link follows from this figure.
    """
    if published < least:
        return "can't be met: the links, from the other figures, allow for %.1f ms at least" % least
    met = [is_near(figure, value, published) for value in ours]
    if all(met):
        return "met; a link follows from it" if fitted else "met"
    return "not met" if not any(met) else "met over IPv%d only" % (4 if met[0] else 6)


# --- how the round-trip time varies -----------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Delays:
    """Delays of at least `least`; what is above that is log-normal, with this median and shape."""

    least: float
    median: float
    sigma: float

    @property
    def mean(self):
        """The mean of all draws."""
        return self.least + self.median * math.exp(self.sigma ** 2 / 2)

    def quantile(self, share):
        """The delay that this share of the draws doesn't exceed."""
        return self.least + self.median * math.exp(self.sigma * NORMAL.inv_cdf(share))

    def draw(self, random):
        """A delay, from a random.Random."""
        return self.least + random.lognormvariate(math.log(self.median), self.sigma)

    @classmethod
    def through(cls, mean, low, high, count):
        """The Delays with this mean of which `count` draws typically have `low` as the least and `high` as the greatest.

        Typically means: low and high are the quantiles 1/(count + 1) and count/(count + 1). The mean has to lie nearer to low.
        """
        if not low < mean < (low + high) / 2:
            raise ValueError("the mean %g must lie between %g and the middle of %g and %g" % (mean, low, low, high))
        far = NORMAL.inv_cdf(count / (count + 1))

        def position(sigma):
            """Where the mean lies between low (0) and high (1), which falls as sigma grows."""
            return (math.exp(sigma ** 2 / 2) - math.exp(-far * sigma)) / (math.exp(far * sigma) - math.exp(-far * sigma))
        wanted, least, most = (mean - low) / (high - low), 1e-6, far  # beyond far the position rises again
        if position(most) > wanted:
            raise ValueError("no log-normal distribution has its mean %g so near to its least value %g" % (mean, low))
        while most - least > 1e-9:
            middle = (least + most) / 2
            least, most = (middle, most) if position(middle) > wanted else (least, middle)
        median = (high - low) / (math.exp(far * least) - math.exp(-far * least))
        return cls(low - median * math.exp(-far * least), median, least)


# --- connections in a list of packets ---------------------------------------------------------------------------


def _mptcp(packet, subtype):
    """The value of a packet's MPTCP option of this subtype, None if there is none."""
    return next((value for kind, value in packet.options if kind == OPTION_MPTCP and value and value[0] >> 4 == subtype), None)


def _sequence_number(packet):
    """The data sequence number of the packet's payload, its lower 32 bits; None where the packet has no mapping."""
    value = _mptcp(packet, DSS)
    if value is None or not value[1] & 4:
        return None
    at = 2 + ((8 if value[1] & 2 else 4) if value[1] & 1 else 0)
    size = 8 if value[1] & 8 else 4
    return int.from_bytes(value[at:at + size], "big") & 0xffffffff


class _Stream:
    """The bytes of one direction in their order, and when each was there together with all before it."""

    def __init__(self):
        self.data = b""
        self._waiting = []  # (position, bytes)
        self._grown = []    # (time, length from then on)

    def add(self, time, position, payload):
        """Takes a packet's payload; what came before is recognized by its position."""
        self._waiting.append((position, payload))
        for position, payload in sorted(self._waiting, key=lambda pair: pair[0]):
            if position <= len(self.data):
                self._waiting.remove((position, payload))
                self.data += payload[len(self.data) - position:]
        if not self._grown or len(self.data) > self._grown[-1][1]:
            self._grown.append((time, len(self.data)))

    def when(self, size):
        """The time since which the first `size` bytes are there."""
        found = next((time for time, length in self._grown if length >= size), None)
        if found is None:
            raise ValueError("the stream ends after %d bytes, before byte %d" % (len(self.data), size))
        return found


@dataclasses.dataclass
class Subflow:
    """One TCP connection. `joined`: when its SYN+ACK was there, None before."""

    address: str                    # the phone's
    sequence: int                   # of the SYN
    joined: Optional[float] = None
    answer_sequence: int = 0        # of the SYN+ACK


class Connection:
    """A connection of the phone with its subflows. `packets` are those of all subflows, as they were captured."""

    def __init__(self, syn):
        self.packets = []
        self.subflows = {}          # by (address, port) of the phone
        self.first = (syn.src, syn.sport)
        self.mptcp = False          # whether both sides have agreed on it
        self._keys = {}             # whether it is the phone's (True) or the converter's: key

    def take(self, packet, up):
        """Notes a packet, which goes up to the converter or down from it."""
        flow = (packet.src, packet.sport) if up else (packet.dst, packet.dport)
        self.packets.append(packet)
        if packet.syn:
            self.subflows.setdefault(flow, Subflow(flow[0], packet.seq))
        subflow, capable = self.subflows[flow], _mptcp(packet, MP_CAPABLE)
        if packet.synack and subflow.joined is None:
            subflow.joined, subflow.answer_sequence = packet.time, packet.seq
            self.mptcp = self.mptcp or capable is not None
        if capable is not None and not packet.syn and len(capable) >= 10:
            self._keys.setdefault(up, capable[2:10])

    @property
    def token(self):
        """By which other subflows name it (RFC 8684 Section 3.2), None where the converter sent no key."""
        return hashlib.sha256(self._keys[False]).digest()[:4] if False in self._keys else None

    def _is_up(self, packet):
        return (packet.src, packet.sport) in self.subflows

    def stream(self, up):
        """The bytes that went up or down, whichever subflows they took.

        A mapped payload has its place by its data sequence number. What has no mapping is on the first subflow and has its place
        by TCP's own number: plain TCP, and the data with MP_CAPABLE, among it that of a SYN, which MPTCP doesn't count.
        """
        found, key, early = _Stream(), self._keys.get(up), 0
        start = int.from_bytes(hashlib.sha256(key).digest()[-4:], "big") + 1 if key else 0
        for packet in self.packets:
            if not packet.payload or self._is_up(packet) != up:
                continue
            number, subflow = _sequence_number(packet), self.subflows[self.first]
            if packet.syn:
                early, position = len(packet.payload), 0
            elif number is not None and key:
                position = early + (number - start & 0xffffffff)
            else:
                position = packet.seq - (subflow.sequence if up else subflow.answer_sequence) - 1 & 0xffffffff
            found.add(packet.time, position, packet.payload)
        return found

    def joined_by(self, time):
        """How many subflows stood by then, the first included."""
        return len([subflow for subflow in self.subflows.values() if subflow.joined is not None and subflow.joined <= time])

    def messages(self, address, until):
        """How many packets with payload went to or from this address of the phone up to a moment."""
        return len([packet for packet in self.packets
                    if packet.payload and packet.time <= until and address in (packet.src, packet.dst)])


def connections(packets, converter, port):
    """The connections from the phone to a port of the converter, in the order of their SYNs."""
    found, flows, tokens = [], {}, {}
    for packet in sorted(packets, key=lambda packet: packet.time):
        up = (packet.dst, packet.dport) == (converter, port)
        if not up and (packet.src, packet.sport) != (converter, port):
            continue
        flow = (packet.src, packet.sport) if up else (packet.dst, packet.dport)
        if packet.syn:
            join, known = _mptcp(packet, MP_JOIN), flows.get(flow)
            if known is None or known.subflows[flow].sequence != packet.seq:
                flows[flow] = tokens.get(join[2:6]) if join else Connection(packet)
                if not join:
                    found.append(flows[flow])
        connection = flows.get(flow)
        if connection is None:
            continue
        connection.take(packet, up)
        if connection.token:
            tokens[connection.token] = connection
    return found


# --- the moments ------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Moments:
    """The moments that the slides define, in seconds as captured, and `request`, when the application's first byte was sent."""

    syn: float         # A: the phone has sent its SYN
    accepted: float    # B: the connection to the server is known to be accepted
    first_byte: float  # C: the server's first byte is there
    request: float

    @property
    def ttfb(self):
        """B - A in ms: "time to first byte", as the slides call the time until the first byte may be sent."""
        return (self.accepted - self.syn) * MS

    @property
    def ttgtfb(self):
        """C - A in ms: "time to get the first byte"."""
        return (self.first_byte - self.syn) * MS


def _convert_message(data, what, magics):
    """(the length, the magic number) of the Convert message that the data begins with."""
    magic = int.from_bytes(data[2:4], "big")
    if len(data) < 4 or data[0] != 1 or magic not in magics:
        raise ValueError("%s doesn't begin with a Convert message: %s" % (what, data[:12].hex() or "nothing"))
    return data[1] * 4, magic


def _refuse_error(message):
    """Raises ValueError for a response with an Error TLV."""
    at = 4
    while at + 3 <= len(message) and message[at + 1]:
        if message[at] == TLV_ERROR:
            raise ValueError("the converter has answered with error %d" % message[at + 2])
        at += message[at + 1] * 4


def convert_moments(connection, withheld):
    """The Moments of a connection by Convert (RFC 8803).

    withheld: does this converter withhold SYNs until the server has answered? Then B is the SYN+ACK, if that acknowledges the request
    that the SYN had with it (Section 4.2); of a silent request no response follows. Otherwise B is the end of the converter's response.
    """
    syn, up, down = connection.packets[0], connection.stream(True), connection.stream(False)
    asked, magic = _convert_message(up.data, "what the phone sent", (MAGIC, MAGIC_SILENT))
    answer = next((packet for packet in connection.packets if packet.synack), None)
    if answer is None:
        raise ValueError("the converter hasn't answered the SYN")
    confirmed = withheld and len(syn.payload) >= asked and answer.ack == syn.seq + 1 + len(syn.payload) & 0xffffffff
    response = 0
    if not confirmed or magic != MAGIC_SILENT:
        response = _convert_message(down.data, "what the converter sent", (MAGIC,))[0]
        _refuse_error(down.data[:response])
    return Moments(syn.time, answer.time if confirmed else down.when(response), down.when(response + 1), up.when(asked + 1))


def direct_moments(connection):
    """The Moments of a connection to the server itself: B is the SYN+ACK."""
    answer = next((packet for packet in connection.packets if packet.synack), None)
    if answer is None:
        raise ValueError("the server hasn't answered the SYN")
    return Moments(connection.packets[0].time, answer.time, connection.stream(False).when(1), connection.stream(True).when(1))


def _address_size(data, at):
    """How many bytes an address with its type and port takes (RFC 1928 Section 5)."""
    sizes = {1: 1 + 4 + 2, 4: 1 + 16 + 2}
    if data[at] == 3:
        return 1 + 1 + data[at + 1] + 2
    if data[at] not in sizes:
        raise ValueError("SOCKS5 has no address type %d" % data[at])
    return sizes[data[at]]


def socks_moments(connection):
    """The Moments of a connection by SOCKS5 with a password (RFC 1928, RFC 1929): B is the end of the reply to CONNECT."""
    syn, up, down = connection.packets[0], connection.stream(True), connection.stream(False)
    try:
        if down.data[:2] != b"\x05\x02":
            raise ValueError("the SOCKS server didn't ask for a password: %s" % (down.data[:2].hex() or "nothing"))
        if down.data[2:4] != b"\x01\x00":
            raise ValueError("the SOCKS server didn't accept the password: %s" % down.data[2:4].hex())
        if down.data[4:6] != b"\x05\x00":
            raise ValueError("the SOCKS server didn't connect: %s" % down.data[4:6].hex())
        reply = 4 + 3 + _address_size(down.data, 7)
        asked = 2 + up.data[1]                 # the methods
        asked += 2 + up.data[asked + 1]        # the name
        asked += 1 + up.data[asked]            # the password
        asked += 3 + _address_size(up.data, asked + 3)
    except IndexError:
        raise ValueError("the connection ends amid SOCKS5's messages") from None
    return Moments(syn.time, down.when(reply), down.when(reply + 1), up.when(asked + 1))


def completed(found, moments_of):
    """([(Connection, Moments), …] of the connections that have carried a request and its response, what each of the others lacks).

    found: in the order of their SYNs; moments_of: what makes Moments of one. A client without an answer begins anew after a while, or asks
    whether the converter is there: moment A of the connection that succeeds is then the first SYN.
    """
    done, others, begun = [], [], None
    for connection in found:
        try:
            moments = moments_of(connection)
        except ValueError as error:
            others.append(str(error))
            syn = connection.packets[0].time
            if begun is None and (not done or syn > done[-1][1].first_byte):
                begun = syn
            continue
        done.append((connection, moments if begun is None else dataclasses.replace(moments, syn=begun)))
        begun = None
    return done, others
