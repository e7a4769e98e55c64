# SPDX-License-Identifier: BSD-3-Clause
"""peers.py - both ends of a conversion, driven call by call: clients that send any bytes, servers that obey the test

It builds and parses messages by the figures of RFC 8803, and uses none of the product's code.
"""
import contextlib
import ctypes
import fcntl
import ipaddress
import os
import select
import socket
import struct
import termios

from . import kernel
from .faults import Fault
from .harness import check, equal, same_data
from .waiting import LabError, wait_until

TCP, MPTCP = socket.IPPROTO_TCP, 262
MSG_FASTOPEN = 0x20000000
TCP_FASTOPEN_NO_COOKIE = 34
TCPI_OPT_TIMESTAMPS, TCPI_OPT_SYN_DATA = 1, 32
PORT = 1234

# A converter that withholds SYNs adds this TLV to its answer to an Info TLV (doc/private-tlvs.md). Without Fast Open it takes no silent
# requests.
WITHHOLDING_SILENTLY = bytes.fromhex("f002017b 02bc 6c63")
WITHHOLDING = WITHHOLDING_SILENTLY if kernel.has("fastopen") else bytes.fromhex("f0020103 02bc 6c63")

# How a client sends its bytes: in the SYN, behind the handshake, or one by one, the first of them perhaps in the SYN.
DELIVERIES = ("syn", "behind", "bytewise", "syn-bytewise")
# Where the kernel sends no data in SYNs, these deliveries replace those in the SYN.
WITHOUT_FASTOPEN = {"syn": "behind", "syn-bytewise": "bytewise"}

_libc = ctypes.CDLL(None, use_errno=True)


def listens(place, protocol="MPTCP", *more):
    """How convertd logs a place at which it listens on this kernel, such as "[::]:1234 (MPTCP, Fast Open, inherited)"."""
    fast = ["Fast Open"] if protocol != "MPTCP" or kernel.has("fastopen") else []
    return "%s (%s)" % (place, ", ".join([protocol, *fast, *more]))


# --- messages, RFC 8803 Section 6 ----------------------------------------------------------------------------


def octets(text):
    """Bytes from hexadecimal digits; blanks don't count."""
    return bytes.fromhex(text)


def message(*tlvs):
    """The fixed header (Figure 13) in front of TLVs."""
    body = b"".join(tlvs)
    equal(len(body) % 4, 0, "bytes beyond a multiple of 4")
    return bytes([1, 1 + len(body) // 4, 0x22, 0x63]) + body


def connect_tlv(address, port, options=b""):
    """A Connect TLV (Figures 17 and 18); pads the options."""
    ip = ipaddress.ip_address(address)
    full = bytes(10) + b"\xff\xff" + ip.packed if ip.version == 4 else ip.packed
    options += bytes(-len(options) % 4)
    return bytes([0x0a, 5 + len(options) // 4]) + struct.pack("!H", port) + full + options


def connect(address, port, options=b""):
    """A request that is a Connect TLV alone."""
    return message(connect_tlv(address, port, options))


def silent(*tlvs_behind, blind=False, mptcp=False, attempt=0, repeat=0):
    """A silent request (doc/private-tlvs.md): its own Magic Number, and a Silence TLV in front of the others."""
    number = attempt.to_bytes(8, "big") if attempt else b""
    silence = bytes([1, blind | mptcp << 1]) + repeat.to_bytes(2, "big") + octets("6c63") + number
    body = bytes([0xf2, (2 + len(silence)) // 4]) + silence + b"".join(tlvs_behind)
    return bytes([1, 1 + len(body) // 4, 0x6c, 0x63]) + body


def hold_time_tlv(milliseconds):
    """A Hold Time TLV (doc/private-tlvs.md): the client's SYN may be withheld for so long at most."""
    return octets("f3020100") + milliseconds.to_bytes(2, "big") + octets("6c63")


def cookie_tlv(cookie):
    """Returns a Cookie TLV (RFC 8803 Figure 21)."""
    cookie += bytes(-len(cookie) % 4)
    return bytes([0x16, 1 + len(cookie) // 4, 0, 0]) + cookie


def error(code, value=0):
    """The answer that is an Error TLV of one word (Figure 22)."""
    return octets("01022263 1e01") + bytes([code, value])


def echo(code, request):
    """The answer that is an Error TLV with the message that it is about (Figure 23)."""
    return message(bytes([0x1e, 1 + len(request) // 4, code, 0]) + request)


def tcp_options(field):
    """[(kind, value), …] of a TCP options field, such as that of an Extended TCP Header TLV; no NOP, no EOL."""
    found = []
    while field:
        if field[0] < 2:
            field = field[1:]
            continue
        check(len(field) > 1 and 2 <= field[1] <= len(field), "no TCP options: %s" % field.hex())
        found.append((field[0], field[2:field[1]]))
        field = field[field[1]:]
    return found


def asked_to_connect(capture, port=1234):
    """{(address, port), …} of the clients that have sent the converter a packet that begins with a request with a Connect TLV."""
    def connects(request):
        at = 4
        while at + 1 < len(request) and request[at] != 0x0a and request[at + 1]:
            at += 4 * request[at + 1]
        return at < len(request) and request[at] == 0x0a

    return {(p.src, p.sport) for p in capture.packets()
            if p.dport == port and p.payload[:1] == b"\x01" and p.payload[2:4] in (b"\x22\x63", b"\x6c\x63") and connects(p.payload)}


def requests(scripted):
    """
    The requests that a scripted_converter.py has got, in hexadecimal. A probe, an Info TLV alone, is none: the shim asks so about a path after
    a late answer, as on a busy machine.
    """
    got = [line.split()[1] for line in scripted.log_text().splitlines() if line.startswith("request ")]
    return [request for request in got if request != message(octets("01010000")).hex()]


def tlvs(answer):
    """[(type, value behind the Length field), …] of a whole message; fails if it isn't one."""
    check(len(answer) >= 4 and answer[0] == 1 and answer[2:4] == b"\x22\x63" and len(answer) == answer[1] * 4,
          "no message: %s" % answer.hex())
    found, rest = [], answer[4:]
    while rest:
        size = rest[1] * 4
        check(0 < size <= len(rest), "no TLV at %s of %s" % (rest.hex(), answer.hex()))
        found.append((rest[0], rest[2:size]))
        rest = rest[size:]
    return found


def extended_header(answer):
    """The TCP options in an answer that is an Extended TCP Header TLV (Figure 20) alone."""
    check(len(answer) >= 8 and answer[4] == 0x14, "no Extended TCP Header TLV: %s" % answer.hex())
    (_, value), = tlvs(answer)
    equal(value[:2], b"\0\0", "Unassigned")
    return tcp_options(value[2:])


def missing_cookie(answer):
    """Returns the cookie of a Missing Cookie error (3), which must be the only TLV of the answer."""
    check(len(answer) > 8 and answer[4] == 0x1e and answer[6:8] == b"\x03\0" and len(answer) == 4 + 4 * answer[5],
          "no Missing Cookie error: %s" % answer.hex())
    return answer[8:]


# --- clients -------------------------------------------------------------------------------------------------


def reset(sock):
    """An RST, on MPTCP with MP_FASTCLOSE: connect(AF_UNSPEC), which does it for both."""
    nowhere = struct.pack("H14x", socket.AF_UNSPEC)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    if _libc.connect(sock.fileno(), nowhere, len(nowhere)) != 0:
        raise OSError(ctypes.get_errno(), "connect(AF_UNSPEC)")
    sock.close()


class Client:
    """A client on one of the lab's hosts; `sock` is its socket, `port` its own port once it has sent something."""

    def __init__(self, host, address, protocol=TCP, delivery="syn", port=PORT, seconds=10):
        self.name = "%s, %s, %s" % ("MPTCP" if protocol == MPTCP else "TCP", address, delivery)
        self._to = (address, port)
        self._delivery = delivery
        self._was_reset = False  # and the kernel has reported it, which it does once
        self.port = 0
        self.sock = host.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM, protocol)
        if protocol == MPTCP and not kernel.has("fastopen"):
            self._delivery = WITHOUT_FASTOPEN.get(delivery, delivery)
        else:
            self.sock.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 1)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.settimeout(seconds)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def send(self, data):
        """Connects and sends, in the way that was chosen. A converter that has closed before the last byte isn't an error."""
        start = {"syn": len(data), "syn-bytewise": 1}.get(self._delivery, 0)
        if start:
            # non-blocking, as there is a time-out: it returns what the SYN took
            start = self.sock.sendto(data[:start], MSG_FASTOPEN, self._to)
        else:
            self.sock.connect(self._to)
        self.port = self.sock.getsockname()[1]
        pieces = [data[start:]] if self._delivery in ("syn", "behind") else [data[i:i + 1] for i in range(start, len(data))]
        try:
            for piece in pieces:
                if piece:
                    self.sock.sendall(piece)
        except ConnectionResetError:
            self._was_reset = True
        except BrokenPipeError:
            pass
        return self

    def shutdown(self):
        """Sends a FIN. Before the SYN+ACK, Linux would give the whole connection up instead."""
        select.select([], [self.sock], [], 30)
        self.sock.shutdown(socket.SHUT_WR)

    def syn_data_taken(self):
        """Tells whether the SYN+ACK has acknowledged the data of the SYN."""
        return bool(self._negotiated() & TCPI_OPT_SYN_DATA)

    def first_syn_is_lost(self):
        """
        Tells of a client whose SYN was sent again whether the converter has lost the first one. Otherwise a busy machine has answered late.
        Only the first one has data. Of a client without data in its SYN nobody can tell: False.
        """
        return self._delivery in ("syn", "syn-bytewise") and not self.syn_data_taken()

    def confirmed(self):
        """Tells whether the SYN+ACK of a converter that withholds SYNs confirms that the server was reached (doc/private-tlvs.md)."""
        both = TCPI_OPT_SYN_DATA | TCPI_OPT_TIMESTAMPS
        return self._negotiated() & both == both

    def _negotiated(self):
        return self.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)[5]

    def read(self, size):
        """Returns so many bytes, or fewer at the end of the stream."""
        data = b""
        while len(data) < size:
            piece = self.sock.recv(min(size - len(data), 1 << 20))
            if not piece:
                break
            data += piece
        return data

    def answer(self):
        """Returns the converter's message, or b"" if the stream ends without one."""
        header = self.read(4)
        return header + self.read(header[1] * 4 - 4) if len(header) == 4 else header

    def end(self):
        """Returns (the rest of the stream, "closed" or "reset")."""
        data = b""
        try:
            while piece := self.sock.recv(1 << 20):
                data += piece
            return data, "reset" if self._was_reset else "closed"
        except ConnectionResetError:
            return data, "reset"

    def reset(self):
        """Aborts the connection."""
        reset(self.sock)


def clients(lab, deliveries=DELIVERIES, protocols=(TCP, MPTCP), host=None):
    """Yields a Client for each protocol, address family and delivery, and closes it before the next one."""
    for protocol in protocols:
        for address in (lab.converter.addr4, lab.converter.addr6):
            for delivery in deliveries:
                with Client(host or lab.client, address, protocol, delivery) as client:
                    yield client


def checksum(data):
    """Returns the Internet checksum of these bytes (RFC 1071)."""
    data += bytes(len(data) % 2)
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


# Options of SYNs: RFC 9293 3.2 and RFC 8684 3.2, a join to a connection that isn't there.
MSS, MP_JOIN = octets("020405b4"), octets("1e0c1001 11111111 22222222")


class Forger:
    """Sends SYNs with data from IPv4 addresses that aren't the host's, so that answers reach nobody."""

    def __init__(self, host, address, port=PORT):
        self._to = (ipaddress.ip_address(address).packed, port)
        self._where = (address, port)
        self.sock = host.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def syn(self, source, port, data, options=MSS, damaged=False):
        """A SYN from source:port, with these TCP options, a multiple of four bytes; damaged: its checksum is wrong."""
        src = ipaddress.ip_address(source).packed
        dst, dport = self._to
        words = 5 + len(options) // 4
        tcp = struct.pack("!HHIIBBHHH", port, dport, 12345, 0, words << 4, 2, 65535, 0, 0) + options + data
        pseudo = src + dst + struct.pack("!BBH", 0, socket.IPPROTO_TCP, len(tcp))
        tcp = tcp[:16] + struct.pack("!H", checksum(pseudo + tcp) ^ damaged) + tcp[18:]
        # the kernel fills in what is zero
        ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0, 64, socket.IPPROTO_TCP, 0) + src + dst
        self.sock.sendto(ip + tcp, self._where)


# --- servers -------------------------------------------------------------------------------------------------


class Server:
    """A listening socket on the lab's server, for both families; its connections are plain sockets."""

    def __init__(self, lab, port, protocol=TCP, backlog=64, **options):
        self._lab = lab
        self.port = port
        self.sock = lab.server.socket(socket.AF_INET6, socket.SOCK_STREAM, protocol)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        for name, value in options.items():
            self.sock.setsockopt(socket.SOL_SOCKET, getattr(socket, name), value)
        self.sock.bind(("::", port))
        self.sock.listen(backlog)
        self.sock.settimeout(10)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def connect(self, v6=False, options=b""):
        """Returns a request for a connection to this server."""
        return connect(self._lab.server.addr6 if v6 else self._lab.server.addr4, self.port, options)

    def accept(self):
        """Accepts and returns the next connection."""
        sock, _ = self.sock.accept()
        sock.settimeout(10)
        return sock


def read_exactly(sock, size):
    """Returns so many bytes of a server's connection, or fewer at its end."""
    data = bytearray()
    while len(data) < size:
        piece = sock.recv(min(size - len(data), 1 << 20))
        if not piece:
            break
        data += piece
    return bytes(data)


def ended(sock):
    """Returns (the rest of the stream, "closed" or "reset") of a server's connection."""
    data = b""
    try:
        while piece := sock.recv(1 << 20):
            data += piece
        return data, "closed"
    except ConnectionResetError:
        return data, "reset"


def connected(lab, server, protocol=TCP, delivery="syn", early=b"", address=None, request=None, **options):
    """(a Client that has its answer, the server's socket)"""
    client = Client(lab.client, address or lab.converter.addr4, protocol, delivery, **options)
    client.send((request or server.connect()) + early)
    sock = server.accept()
    extended_header(client.answer())
    return client, sock


def unsent(sock):
    """Bytes that the other kernel hasn't acknowledged, the FIN included."""
    return struct.unpack("i", fcntl.ioctl(sock, termios.TIOCOUTQ, bytes(4)))[0]


def readable(sock, seconds):
    """Tells whether something arrives within so many seconds."""
    return bool(select.select([sock], [], [], seconds)[0])


def writable(sock, seconds):
    """Tells whether it is connected and writable within so many seconds."""
    return bool(select.select([], [sock], [], seconds)[1])


# --- the converter -------------------------------------------------------------------------------------------


def descriptors(process):
    """Returns how many descriptors convertd has open, without the spare pipe that each worker keeps (src/relay/relay_pipe.c).

    The kernel denies a worker this pipe for as long as all processes of its user have too many pipes (fs.pipe-user-pages-soft in pipe(7)),
    among them those of a test that runs beside this one. So it may be missing when convertd is ready, and be made later.
    """
    directory, spare_ends = "/proc/%d/fd" % process.serving, 2 * _workers(process)
    numbers = os.listdir(directory)
    return len(numbers) - min(sum(_is_relay_pipe(os.path.join(directory, number)) for number in numbers), spare_ends)


def _workers(process):
    """Returns the number of convertd's workers: each is a thread that is named so."""
    names = []
    for thread in os.listdir("/proc/%d/task" % process.serving):
        with contextlib.suppress(OSError), open("/proc/%d/task/%s/comm" % (process.serving, thread), encoding="ascii") as file:
            names.append(file.read())
    return sum(name.startswith("worker-") for name in names)


def _is_relay_pipe(path):
    """Tells whether this descriptor in /proc is an end of a pipe of RELAY_PIPE_SIZE (src/relay/relay.h)."""
    try:
        if not os.readlink(path).startswith("pipe:"):
            return False
        with open(path, "rb", buffering=0, opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as pipe:
            return fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ) >= 256 << 10
    except FileNotFoundError:  # closed meanwhile
        return False


def descriptor_targets(process):
    """Returns the targets of convertd's descriptors in /proc: "socket:[1234]", "pipe:[5678]", a path."""
    directory = "/proc/%d/fd" % process.serving
    targets = []
    for number in os.listdir(directory):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            targets.append(os.readlink(os.path.join(directory, number)))
    return sorted(targets)


def memory(process):
    """Returns how many bytes of a process are resident in memory."""
    with open("/proc/%d/statm" % process.serving, encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def connections(host, state):
    """Returns the remote ports of the host's TCP connections in this state (include/net/tcp_states.h)."""
    found = []
    with host.entered():
        for table in ("tcp", "tcp6"):
            with open("/proc/thread-self/net/" + table, encoding="ascii") as file:
                lines = [line.split() for line in file.readlines()[1:]]
            found += [int(fields[2].rsplit(":", 1)[1], 16) for fields in lines if fields[3] == state]
    return found


def await_closed(process, at_start):
    """Waits until convertd has no more descriptors() than `at_start`: all sessions are over. The error lists those that stay open.

    A session ends with the last packet of its client, a refused one after 5 s at most. After the client of a withheld SYN has gone,
    convertd may keep the server's socket for five to six seconds more.
    """
    try:
        wait_until(lambda: process.poll() is not None or descriptors(process) <= at_start, 30)
    except LabError:
        raise Fault("convertd has left %d descriptors open, %d at the start: %s" % (
            descriptors(process), at_start, descriptor_targets(process))) from None


@contextlib.contextmanager
def converter(lab, *arguments, **options):
    """Yields a running convertd. At the end it must have closed the descriptors of all sessions, and end with status 0.

    Any line that convertd itself doesn't print, such as a sanitizer's report or a failed assertion, fails the test.
    """
    process = lab.convertd(arguments, **options)
    process.wait_log("ready")
    at_start = descriptors(process)
    yield process
    await_closed(process, at_start)
    same_data(process.stop() == 0, "convertd's status: %s" % process.returncode)
    strange = [line for line in process.log_text().splitlines() if not line.startswith("convertd: ")]
    same_data(not strange, "convertd printed:\n" + "\n".join(strange[:100]))
