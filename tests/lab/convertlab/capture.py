# SPDX-License-Identifier: BSD-3-Clause
"""capture.py - captures packets of a device, from a definite moment to a definite moment

tcpdump is ready when it prints "listening on". At the end its buffer may still hold packets. So we send a marker on the device, a
UDP datagram that the filter always accepts, and wait until it is in the file: all earlier packets are then there, too. packets()
leaves the markers out.
"""
import os
import re
import shutil
import signal
import socket
import subprocess

from . import sandbox
from .pcap import read_pcap
from .waiting import LabError, wait_until

MARKER_PORT = 47953
SO_BINDTODEVICE = 25


class Capture:
    """With lab.capture(host, "wifi", "tcp port 80") as capture: …; then capture.packets(). `path` is the file."""

    def __init__(self, host, device, expression, directory, snaplen):
        if not shutil.which("tcpdump"):
            raise LabError("tcpdump is missing; on Debian: apt-get install tcpdump")
        self._host = host
        self._device = device
        self.path = os.path.join(directory, "%02d-%s-%s.pcap" % (len(os.listdir(directory)), host.name, device))
        self._expression = "(%s) or udp port %d" % (expression or "ip or ip6", MARKER_PORT)
        self._snaplen = snaplen
        self._process = None

    def __enter__(self):
        self._process = self._host.popen(self._command(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        said = b""
        for line in self._process.stderr:
            said += line
            if b"listening on" in line:
                return self
        raise LabError("tcpdump on %s: %s" % (self._host.name, said.decode(errors="replace")))

    def _command(self):
        if sandbox.in_user_namespace():
            return ["python3", os.path.join(os.path.dirname(os.path.abspath(__file__)), "sniffer.py"), self._device,
                    self.path, self._expression]
        # in immediate mode each packet takes snaplen bytes of the buffer, so that few packets would fill the default one
        return ["tcpdump", "-Z", "root", "-U", "-n", "--immediate-mode", "-s", str(self._snaplen), "-B", "32768",
                "-i", self._device, "-w", self.path, self._expression]

    def __exit__(self, kind, error, trace):
        try:
            if kind is None:
                self._flush()
        finally:
            self._process.stop(signal.SIGINT)
            said = self._process.stderr.read().decode(errors="replace")
            self._process.stderr.close()
        dropped = re.search(r"(\d+) packets? dropped by kernel", said)
        if kind is None and int(dropped.group(1)) > 0:
            raise LabError("the capture on %s lacks %s packets" % (self._host.name, dropped.group(1)))

    def _flush(self):
        """Waits until a packet sent now is in the file."""
        token = b"convertlab marker " + os.urandom(8)
        with self._host.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            if self._device != "any":
                sender.setsockopt(socket.SOL_SOCKET, SO_BINDTODEVICE, self._device.encode())
            # one hop at most: the broadcast reaches only the neighbour, which ignores it
            target = "127.0.0.1" if self._device in ("lo", "any") else "255.255.255.255"
            sender.sendto(token, (target, MARKER_PORT))
        wait_until(lambda: self._contains(token), 30, "the end of the capture on %s" % self._device)

    def _contains(self, token):
        with open(self.path, "rb") as file:
            file.seek(max(0, os.path.getsize(self.path) - 65536))
            return token in file.read()

    def packets(self):
        """The packets, as pcap.Packet."""
        return [packet for packet in read_pcap(self.path) if MARKER_PORT not in (packet.sport, packet.dport)]
