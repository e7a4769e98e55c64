# SPDX-License-Identifier: BSD-3-Clause
"""sniffer.py - tcpdump's stand-in in a user namespace that an ordinary user made: sniffer.py DEVICE FILE FILTER

tcpdump, run by root, changes its user ID and groups before it captures, even with -Z root. Such a user namespace doesn't allow
that. tcpdump can still compile the filter there; a packet socket does the rest.
"""
import ctypes
import signal
import socket
import struct
import subprocess
import sys

ETH_P_ALL = 3
SO_ATTACH_FILTER = 26
SO_TIMESTAMPNS = 35
SOL_PACKET, PACKET_STATISTICS = 263, 6
PACKET_OUTGOING = 4
ARPHRD_LOOPBACK, ARPHRD_NONE = 772, 65534
LINKTYPE_ETHERNET, LINKTYPE_RAW = 1, 101
SNAPLEN = 262144


def _attach(packets, device, expression):
    """Compiles the expression and has the kernel apply it."""
    text = subprocess.run(["tcpdump", "-ddd", "-i", device, expression], check=True, stdout=subprocess.PIPE,
                          text=True).stdout
    rows = [tuple(map(int, line.split())) for line in text.splitlines()[1:]]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
    # struct sock_fprog
    packets.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HL", len(rows), ctypes.addressof(code)))


def main(device, path, expression):
    """Captures until SIGINT."""
    # protocol 0 receives nothing, so no packet gets in before the filter is there
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    packets.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    packets.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
    _attach(packets, device, expression)
    with open(path, "wb", buffering=0) as file:
        packets.bind((device, ETH_P_ALL))
        hardware = packets.getsockname()[3]
        link = LINKTYPE_RAW if hardware == ARPHRD_NONE else LINKTYPE_ETHERNET
        file.write(struct.pack("IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, SNAPLEN, link))

        def end(number, frame):
            dropped = struct.unpack("II", packets.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))[1]
            print("%d packets dropped by kernel" % dropped, file=sys.stderr)
            sys.exit(0)
        signal.signal(signal.SIGINT, end)
        print("listening on", device, file=sys.stderr, flush=True)
        while True:
            data, control, _, address = packets.recvmsg(SNAPLEN, 64)
            if hardware == ARPHRD_LOOPBACK and address[2] == PACKET_OUTGOING:
                continue
            seconds, nanos = struct.unpack("ll", control[0][2])
            file.write(struct.pack("IIII", seconds, nanos // 1000, len(data), len(data)) + data)


if __name__ == "__main__":
    main(*sys.argv[1:])
