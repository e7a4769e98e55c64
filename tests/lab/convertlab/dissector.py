# SPDX-License-Identifier: BSD-3-Clause
"""dissector.py - runs tshark with the dissector in contrib/wireshark, and makes captures of hand-made connections"""
import functools
import ipaddress
import os
import re
import shutil
import socket
import struct
import subprocess
import tempfile

from .build import SRCDIR
from .harness import Skip, check
from .pcap import ACK, FIN, PSH, SYN, write_pcap
from .peers import PORT, checksum
from .waiting import LabError

SCRIPT = os.path.join(SRCDIR, "contrib", "wireshark", "convert.lua")

# The notes on faults for which a receiver refuses a message (RFC 8803). Notes on lesser faults are not among them.
FAULTS = ("magic.bad", "silence.bad", "version.unknown", "total_length.zero", "total_length.past_end", "tlv.none", "tlv.past_end", "tlv.length.zero",
          "tlv.length.bad", "tlv.type.reserved", "tlv.duplicate", "tlv.wrong_direction", "zero.nonzero", "connect.address.bad",
          "tcp_option.truncated", "tcp_option.length.bad")


class Flow:
    """A TCP connection of the client's, packet by packet; `packets` are its IP packets."""

    def __init__(self, number=0, v6=False, port=PORT, seq=1000):
        self._ports = {True: 10000 + number % 50000, False: port}
        base = "fd01:%x::" % (number // 50000) if v6 else "10.1.%d." % (number // 50000)
        self._addresses = {True: ipaddress.ip_address(base + "2"), False: ipaddress.ip_address(base + "1")}
        self._seq = {True: seq + number, False: 500000 + seq + number}
        self.packets = []

    def _packet(self, from_client, flags, data, options):
        source, target = self._addresses[from_client], self._addresses[not from_client]
        segment = struct.pack("!HHIIBBHHH", self._ports[from_client], self._ports[not from_client], self._seq[from_client],
                              self._seq[not from_client] if flags & ACK else 0, (5 + len(options) // 4) << 4, flags, 65535, 0, 0)
        segment += options + data
        pseudo = source.packed + target.packed + struct.pack("!II", len(segment), socket.IPPROTO_TCP)
        segment = segment[:16] + struct.pack("!H", checksum(pseudo + segment)) + segment[18:]
        if source.version == 6:
            header = struct.pack("!IHBB", 6 << 28, len(segment), socket.IPPROTO_TCP, 64) + source.packed + target.packed
        else:
            header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(segment), 0, 0, 64, socket.IPPROTO_TCP, 0)
            header += source.packed + target.packed
            header = header[:10] + struct.pack("!H", checksum(header)) + header[12:]
        self.packets.append(header + segment)

    def send(self, from_client, data=b"", flags=ACK | PSH, options=b""):
        """One segment."""
        self._packet(from_client, flags, data, options)
        self._seq[from_client] += len(data) + bool(flags & SYN) + bool(flags & FIN)
        return self

    def handshake(self, request=b"", answer=b""):
        """The SYN, which may carry a request, and the SYN+ACK, which may carry an answer."""
        self.send(True, request, SYN)
        self.send(False, answer, SYN | ACK)
        return self.send(True, flags=ACK)

    def pieces(self, from_client, data, *cuts):
        """The data in segments that begin at 0 and at each of the cuts."""
        for start, end in zip((0,) + cuts, cuts + (len(data),)):
            self.send(from_client, data[start:end])
        return self


def need_tshark():
    """Skips the test without a tshark that runs Lua."""
    if not shutil.which("tshark"):
        raise Skip("tshark is missing; on Debian: apt-get install tshark")
    said = subprocess.run(["tshark", "--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout
    if not re.search(r"with\s+Lua", said):
        raise Skip("this tshark is built without Lua; on Debian: apt-get install tshark")


@functools.lru_cache(maxsize=None)
def _prefix():
    """The words in front of the command: Wireshark 4.4 runs no user's scripts as root, so it must not see that it is root."""
    prefix = ("unshare", "--user", "--map-user=1000", "--map-group=1000")
    if os.geteuid() != 0 or subprocess.run([*prefix, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        return ()
    return prefix


def tshark(path, *arguments):
    """The output of tshark for the capture with these arguments, without settings and plugins other than the dissector."""
    with tempfile.TemporaryDirectory() as empty:
        env = dict(os.environ, HOME=empty, WIRESHARK_CONFIG_DIR=empty, WIRESHARK_PLUGIN_DIR=empty, LC_ALL="C.UTF-8")
        done = subprocess.run([*_prefix(), "tshark", "-n", "-X", "lua_script:" + SCRIPT, "-r", path, *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=env, check=False)
    said, complaints = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    if done.returncode:
        raise LabError("tshark -r %s %s ended with %d: %s" % (path, " ".join(arguments), done.returncode, complaints))
    # wslua names errors of a script in the output, on standard error, or both
    wrong = [line for line in (said + complaints).splitlines() if "Lua Error" in line or "lua_script" in line or SCRIPT in line]
    check(not wrong, "the dissector has failed: %s" % wrong[:3])
    return said


def rows(path, fields, *arguments):
    """A dict for each packet: {field: its values as strings}, without the fields that the packet lacks."""
    names = [*fields, "_ws.lua.error"]
    words = [word for field in names for word in ("-e", field)]
    said = tshark(path, "-T", "fields", "-E", "separator=/t", "-E", "aggregator=|", *words, *arguments)
    found = [{field: text.split("|") for field, text in zip(names, line.split("\t")) if text} for line in said.splitlines()]
    check(not any("_ws.lua.error" in row for row in found), "the dissector has failed; tshark -V names the line: %s" % path)
    return found


def dissected(directory, packets, fields, *arguments):
    """rows() of hand-made packets."""
    path = os.path.join(directory, "made.pcap")
    write_pcap(path, packets)
    return rows(path, fields, *arguments)
