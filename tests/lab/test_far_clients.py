#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_far_clients.py - a client with a long round trip, which the converter doesn't know, and a slow server: one connection

If convertd withholds a far client's SYN for all of --hold-time, the SYN+ACK arrives more than a second after the SYN, when the client's
kernel has sent the SYN again. The client then connects anew, and the server sees two connections. So such a client states for how long its
SYN may be withheld.
"""
import json
import os
import re
import signal

from convertlab import check, equal, kernel, long, main, timeout, wait_until, waits
from convertlab.pcap import OPT_TIMESTAMP
from convertlab.peers import (MPTCP, TCP, Client, Server, clients, connect_tlv, converter, echo, extended_header, hold_time_tlv, message,
                              octets, silent)
from convertlab.withheld import captures, far, first
from test_begin import APPS, curl, remembering, served
from test_supervise_begin import Supervised

ANEW = "behind the handshake"
HOLD_TIME = b"\xf3\x02\x01"
LONG = 200  # ms on the client's link, each way: a round trip of 0.4 s


# --- first connections ---------------------------------------------------------------------------------------


def probe(lab, way):
    """Returns the transcript of a preloaded program's connection to the echo server."""
    return lab.client.run(["python3", os.path.join(APPS, "connect_probe.py"), way, lab.server.addr4, 7], env=remembering(lab)).stdout


class Converter:
    """A convertd, and servers behind it. After each start it knows nothing of any client."""

    def __init__(self, lab):
        self.lab = lab
        self.process = lab.convertd()
        lab.http()
        lab.echo()

    def renew(self):
        self.process.stop()
        self.process = self.lab.convertd()


def one_each(lab, first_converter, connect, ways, what):
    """In each way, the first connection to a converter that knows nothing of the client is one connection at the server."""
    for way in ways:
        first_converter.renew()
        before = len(lab.shim_log())
        with lab.capture(lab.server, "core", "tcp and tcp[tcpflags] == tcp-syn") as core, \
                lab.capture(lab.converter, "wifi", "tcp port 1234") as wifi:
            connect(way)
        log = lab.shim_log()[before:]
        equal((len({p.sport for p in core.packets()}), log.count(ANEW)), (1, 0),
              "connections to the server %s by %s, in\n%s" % (what, way, log))
        syns = [p for p in wifi.packets() if p.syn and p.dport == 1234 and HOLD_TIME in p.payload]
        check(syns and all("MP_CAPABLE" in p.mptcp for p in syns), "no SYN of Multipath TCP with a Hold Time TLV: %s" % wifi.packets())


@long
@waits
@timeout(200)
@kernel.needs("fastopen")
def test_first_connections():
    """The round trip is 400 ms, and the server answers after a second. The client knows its round trip from an earlier connection."""
    with far(first_ms=LONG, core_ms=5) as lab:
        mine = Converter(lab)
        curl(lab)
        lab.core.set(delay_ms=500)
        one_each(lab, mine, lambda way: probe(lab, way), ("blocking", "poll", "epoll", "connect"), "after 1 s")


@long
@waits
@timeout(200)
@kernel.needs("fastopen")
def test_first_connections_of_supervised_programs():
    """The same under the supervisor, also with servers whose answers come after it repeats a blind request, at 0.9 s."""
    with far(first_ms=LONG, core_ms=5) as lab:
        mine = Converter(lab)
        program = Supervised(lab)
        program.echo()
        for ms in (550, 680, 1000):
            lab.core.set(delay_ms=ms / 2)
            one_each(lab, mine, lambda way: program.echo(*way), ((), ("nonblocking",), ("poll",)), "after %d ms" % ms)


# --- which requests have a Hold Time TLV, and which don't -----------------------------------------------------


@kernel.needs("fastopen")
def test_early_data():
    """The application's first bytes go into the same SYN, behind the request."""
    with far(first_ms=LONG, core_ms=5) as lab, converter(lab):
        lab.echo()
        program = ["python3", os.path.join(APPS, "early_probe.py"), "sendto-fastopen", lab.server.addr4, 7]
        usual = lab.client.run(program).stdout
        with lab.capture(lab.converter, "wifi", "tcp dst port 1234 and tcp[tcpflags] & tcp-syn != 0") as wifi:
            for _ in range(2):
                equal(lab.client.run(program, env=remembering(lab)).stdout, usual, "what the program saw, in\n" + lab.shim_log())
        syns = [p.payload for p in wifi.packets() if p.payload.endswith(b"hello")]
        equal([HOLD_TIME in payload for payload in syns], [False, True], "SYNs with early data and a Hold Time TLV: %s" % syns)


def known_rtt_ms(lab):
    """The round trip to the converter that curl()'s earlier connections have learned, 0 if there were none."""
    env = {"XDG_RUNTIME_DIR": os.path.join(lab.directory, "runtime"), "CONVERT_ADDR": lab.converter.addr4}
    shown = lab.client.run([lab.build.program("convertize"), "paths", "--config", "none", "--device", "wifi", "--json"], env=env, check=False)
    learned = [row["learned"] for row in json.loads(shown.stdout)["networks"] if row["address"] == lab.client.wifi4]
    return learned[0]["rtt_ms"] if learned[0] else 0


@kernel.needs("fastopen")
def test_near_clients_say_nothing():
    """A request has the TLV if the client has learned a round trip of 178 ms or more. None over plain TCP has it."""
    def connect(env=None):
        """Connects once. Returns the SYNs' payloads."""
        with lab.capture(lab.converter, "wifi", "tcp dst port 1234 and tcp[tcpflags] & tcp-syn != 0") as wifi:
            curl(lab, env=env)
        return [p.payload for p in wifi.packets() if p.payload]

    with far(first_ms=40, core_ms=5) as lab:
        served(lab)
        for number in range(3):
            known = known_rtt_ms(lab)  # usually 80 ms, more if the machine was busy
            equal(known > 0, number > 0, "known round trip in ms: %d" % known)
            syns = connect()
            check(syns and any(HOLD_TIME in payload for payload in syns) == (known >= 178), "with %d ms: %s" % (known, syns))
        lab.wifi.set(delay_ms=LONG)
        lab.client.sysctl("net.mptcp.enabled", 0)
        for _ in range(2):
            syns = connect(env=remembering(lab, "runtime-tcp"))
            check(syns and not any(HOLD_TIME in payload for payload in syns), "over plain TCP: %s" % syns)


OFFER = "01052263" "150200001e000000" "f002014302bc6c63"  # Supported TCP Extensions, and 0x43: withholds, corrects, hold times


@long
@waits
@kernel.needs("fastopen")
def test_converter_that_does_not_understand():
    """It has offered the TLV, but answers Unsupported Message, as an older version does: the client asks again without the TLV."""
    with far(first_ms=LONG, core_ms=5) as lab:
        lab.converter.sysctl("net.ipv4.tcp_timestamps", 0)  # nothing is confirmed, as if convertd had refused a withheld SYN
        mine = lab.start_listening(lab.converter, ["python3", os.path.join(os.path.dirname(APPS), "scripted_converter.py"),
                                                   lab.converter.addr4, 1234, "hold-time", OFFER], 1234)
        lab.http()
        for name, connect in (("preloaded", lambda: curl(lab)), ("supervised", lambda: Supervised(lab, name="other").curl())):
            before = len(mine.log_text())
            for _ in range(3):
                connect()
            requests = re.findall(r"request ([0-9a-f]{48,}) early", mine.log_text()[before:])
            equal([HOLD_TIME.hex() in request for request in requests], [False, True, False, False],
                  "requests with a Hold Time TLV, %s: %s, in\n%s" % (name, requests, lab.shim_log()))


# --- how convertd treats the TLV -----------------------------------------------------------------------------


def synacks(lab, packets, client):
    """Whether the converter's SYN+ACK came before the server's, and whether it has timestamps."""
    seen = packets(client)
    there = first(seen, "SYN+ACK of the server", lambda p: p.synack and p.sport == 80)
    here = first(seen, "SYN+ACK of the converter", lambda p: p.synack and p.sport == 1234)
    equal(len({p.sport for p in seen if p.syn and p.dport == 80}), 1, "connections to the server (%s)" % client.name)
    return here.time < there.time, bool(here.option(OPT_TIMESTAMP))


@long
@waits
@timeout(120)
@kernel.needs("fastopen")
def test_the_lesser_limit_counts():
    """convertd withholds a SYN for the lesser of its client's limit and --hold-time. The server answers after 300 ms."""
    for hold_ms, says_ms, early, protocols in ((700, 100, True, (TCP, MPTCP)), (100, 700, True, (TCP,)), (700, 65535, False, (MPTCP,))):
        with far(core_ms=150) as lab, Server(lab, 80) as server, converter(lab, "--hold-time", str(hold_ms)):
            tlvs = [hold_time_tlv(says_ms), connect_tlv(lab.server.addr4, 80)]
            for request in (message(*reversed(tlvs)), silent(*tlvs)):
                for protocol in protocols:
                    with Client(lab.client, lab.converter.addr4, protocol) as client, captures(lab) as packets:
                        client.send(request)
                        sock = server.accept()
                        if early or request[2] == 0x22:
                            extended_header(client.answer())
                        sock.sendall(b"done")
                        equal(client.read(4), b"done", client.name)
                        sock.close()
                    equal(synacks(lab, packets, client), (early, not early),
                          "--hold-time %d, the client's limit %d, in %s: before the server's, and confirms (%s)"
                          % (hold_ms, says_ms, request.hex(), client.name))


@kernel.needs("fastopen")
def test_where_nothing_is_withheld():
    """The TLV has no effect behind the handshake, nor if convertd withholds nothing: it serves the request."""
    with far() as lab, Server(lab, 80) as server:
        for arguments in ((), ("--hold-syn", "off")):
            with converter(lab, *arguments):
                for client in clients(lab):
                    client.send(message(hold_time_tlv(100), connect_tlv(lab.server.addr4, 80)))
                    server.accept().close()
                    extended_header(client.answer())


@kernel.needs("fastopen")
def test_faults():
    """Another version or mark makes it an unknown TLV, a wrong length or a second one a malformed message; no server gets a SYN."""
    with far() as lab, lab.capture(lab.server, "core", "tcp dst port 80") as core, converter(lab):
        target = connect_tlv(lab.server.addr4, 80)
        for code, wrong in ((2, "f3020000 01c26c63"), (2, "f3020200 01c26c63"), (2, "f3020100 01c26c64"), (2, "f3010100"),
                            (1, "f3000100 01c26c63"), (1, "f3ff0100 01c26c63"), (1, "f3020100 01c26c63 f3020100 01c26c63")):
            request = message(octets(wrong), target)
            with Client(lab.client, lab.converter.addr4, MPTCP) as client:
                equal(client.send(request).answer(), echo(code, request), "the answer to %s" % wrong)
            with Client(lab.client, lab.converter.addr4, MPTCP) as client:
                client.send(silent(octets(wrong), target))
                try:
                    end = client.end()
                except ConnectionRefusedError:  # the SYN itself was reset
                    end = b"", "reset"
                equal(end, (b"", "reset"), "the end of a silent request with %s" % wrong)
        equal(core.packets(), [], "packets to the server")


@kernel.needs("fastopen")
def test_reload():
    """A reload switches withholding off, which clients then learn, and the next one switches it on: convertd refuses none of them."""
    with far(first_ms=LONG, core_ms=5) as lab:
        path = os.path.join(lab.directory, "convertd.conf")

        def configure(text):
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
        configure("")
        with converter(lab, "--config", path) as process:
            lab.http()
            curl(lab)
            for text in ("hold-syn off\n", "hold-syn on\n"):
                configure(text)
                before = process.log_text().count("reloaded")
                process.send_signal(signal.SIGHUP)
                wait_until(lambda: process.log_text().count("reloaded") > before, 10, process.log_text)
                log = len(lab.shim_log())
                with lab.capture(lab.server, "core", "tcp and tcp[tcpflags] == tcp-syn") as core, \
                        lab.capture(lab.converter, "wifi", "tcp dst port 1234 and tcp[tcpflags] & tcp-syn != 0") as wifi:
                    curl(lab)
                equal(len({p.sport for p in core.packets()}), 1, "connections to the server with %s, in\n%s" % (text, lab.shim_log()[log:]))
                equal(any(HOLD_TIME in p.payload for p in wifi.packets()), text == "hold-syn off\n", "is there a Hold Time TLV with " + text)


if __name__ == "__main__":
    main()
