# SPDX-License-Identifier: BSD-3-Clause
"""names.py - a name server that knows the few records that a test gives it

Run as a program: names.py [--truncate] [--silent NAME]... ADDRESS RECORD...

RECORD is "NAME TYPE VALUE", with A, AAAA, CNAME or SRV as TYPE, such as
  "_convert._tcp.lab.example SRV 10 0 1234 near.lab.example"
It answers over UDP and TCP, at port 53, includes the CNAMEs on the way, and prints each question on standard output.

  --truncate   truncate every answer over UDP, so that the resolver asks again over TCP
  --silent     never answer a question about this name

It ignores the case of names, and delegates nothing.
"""
import argparse
import ipaddress
import os
import socket
import socketserver
import struct
import threading

TYPES = {1: "A", 5: "CNAME", 28: "AAAA", 33: "SRV"}
NUMBERS = {name: number for number, name in TYPES.items()}
RESPONSE, TRUNCATED, NXDOMAIN = 0x8580, 0x0200, 3


def program(*arguments):
    """The command that runs the name server."""
    return ["python3", os.path.abspath(__file__), *arguments]


def wire_name(name):
    labels = [label for label in name.split(".") if label]
    return b"".join(bytes([len(label)]) + label.encode() for label in labels) + b"\0"


def read_name(message, at):
    """(the name, where it ends); a question isn't compressed"""
    labels = []
    while message[at]:
        labels.append(message[at + 1:at + 1 + message[at]].decode())
        at += 1 + message[at]
    return ".".join(labels), at + 1


def wire_value(kind, words):
    if kind == "SRV":
        return struct.pack("!HHH", *map(int, words[:3])) + wire_name(words[3])
    if kind == "CNAME":
        return wire_name(words[0])
    return ipaddress.ip_address(words[0]).packed


class Zone:
    """The records, as [(name in lower case, type, value in words)]."""

    def __init__(self, records, silent):
        words = [record.split() for record in records]
        self.records = [(name.lower().rstrip("."), kind, value) for name, kind, *value in words]
        self.silent = {name.lower() for name in silent}

    def answers(self, name, kind):
        """The records that answer the question, as (name, type, value)."""
        found, name = [], name.lower()
        while True:
            of_name = [record for record in self.records if record[0] == name]
            found += [record for record in of_name if record[1] in (kind, "CNAME")]
            alias = [value[0].lower() for _, known, value in of_name if known == "CNAME" and kind != "CNAME"]
            if not alias or len(found) > 20:
                return found
            name = alias[0]

    def respond(self, query, transport, truncate):
        """Returns the response to a query, or None where it isn't to be answered."""
        name, end = read_name(query, 12)
        number, = struct.unpack_from("!H", query, end)
        kind = TYPES.get(number, str(number))
        print(transport, kind, name, flush=True)
        if name.lower() in self.silent:
            return None
        found = self.answers(name, kind)
        known = found or any(record[0] == name.lower() for record in self.records)
        flags = RESPONSE | (0 if known else NXDOMAIN)
        question = query[12:end + 4]
        if truncate:
            return query[:2] + struct.pack("!HHHHH", flags | TRUNCATED, 1, 0, 0, 0) + question
        body = b""
        for owner, of_type, words in found:
            value = wire_value(of_type, words)
            body += wire_name(owner) + struct.pack("!HHIH", NUMBERS[of_type], 1, 60, len(value)) + value
        return query[:2] + struct.pack("!HHHHH", flags, 1, len(found), 0, 0) + question + body


def serve_udp(sock, zone, truncate):
    while True:
        query, client = sock.recvfrom(4096)
        response = zone.respond(query, "udp", truncate)
        if response:
            sock.sendto(response, client)


class OverTcp(socketserver.StreamRequestHandler):
    """Each message has its length in front (RFC 1035 4.2.2)."""

    def handle(self):
        while length := self.rfile.read(2):
            response = self.server.zone.respond(self.rfile.read(*struct.unpack("!H", length)), "tcp", False)
            if response:
                self.wfile.write(struct.pack("!H", len(response)) + response)


class TcpServer(socketserver.ThreadingTCPServer):
    """For both families of addresses."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, address, zone):
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.zone = zone
        super().__init__((address, 53), OverTcp)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address")
    parser.add_argument("--truncate", action="store_true")
    parser.add_argument("--silent", action="append", default=[])
    parser.add_argument("records", nargs="*")
    arguments = parser.parse_args()
    zone = Zone(arguments.records, arguments.silent)
    udp = socket.socket(socket.AF_INET6 if ":" in arguments.address else socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind((arguments.address, 53))
    threading.Thread(target=serve_udp, args=(udp, zone, arguments.truncate), daemon=True).start()
    server = TcpServer(arguments.address, zone)
    print("ready", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
