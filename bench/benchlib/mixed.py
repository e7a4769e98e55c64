# SPDX-License-Identifier: BSD-3-Clause
"""mixed.py - a mix of well-behaved and misbehaving clients, such as a converter on the Internet has

Each kind is a function that makes one or a few connections, checks each, and reports how each ended. Load runs each kind in its own
thread, and records every deviation as a failure, with its text.
"""
import collections
import contextlib
import json
import random
import threading
import time

from convertlab import check, equal
from convertlab.peers import MPTCP, TCP, Client, Forger, connect, extended_header, message, octets
from convertlab.servers import pattern

from . import proxies

LOAD = "bench/tools/load/load"
ECHO, CHORUS, RESETTER = 7, 1900, 7777
SECONDS = 20     # that a client waits for anything
BULK = 4000000   # bytes each way
FLOOD = 200      # SYNs at a time
IDLE = 40        # connections at a time
LONG_PIECE, LONG_PAUSE = 20000, 0.25  # bytes, seconds
CHORUS_SAYS = bytes(range(0x80, 0x100))
HALF_REQUEST = octets("01062263 0a05")


class Load:
    """The mix, against the converter of a lab; `seconds` is how long the longest connections last."""

    def __init__(self, lab, seconds):
        self.lab = lab
        self.outcomes = collections.Counter()  # {(kind, how it ended): connections}
        self.failures = []                     # texts
        self._seconds = seconds
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._threads = []
        lab.echo(ECHO)
        lab.chorus(CHORUS)
        lab.resetter(RESETTER)

    # --- running it -----------------------------------------------------------------------------------------

    def start(self):
        """Runs all kinds at once, until stop()."""
        self._stop.clear()
        self._threads = [threading.Thread(target=self._run, args=pair, daemon=True) for pair in KINDS]
        for thread in self._threads:
            thread.start()

    def stop(self):
        """Lets connections that have begun end, and begins no more."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, kind, pause):
        chance = random.Random(kind.__name__)
        while not self._stop.wait(pause):
            self._try(kind, chance)

    def _try(self, kind, chance):
        try:
            kind(self, chance)
        except Exception as error:  # pylint: disable=broad-except
            with self._lock:
                self.failures.append("%s: %s: %s" % (kind.__name__, type(error).__name__, error))

    def ended(self, kind, outcome, count=1):
        """Counts connections."""
        with self._lock:
            self.outcomes[kind, outcome] += count

    def wait(self, seconds):
        """Waits until that time, or until the load ends."""
        return self._stop.wait(seconds)

    @property
    def longest(self):
        """Seconds that long connections last."""
        return self._seconds

    # --- for the kinds --------------------------------------------------------------------------------------

    def client(self, chance, delivery=None):
        """Chooses among TCP and MPTCP, IPv4 and IPv6, and a request in the SYN or behind the handshake."""
        converter = self.lab.converter
        return Client(self.lab.client, chance.choice((converter.addr4, converter.addr6)), chance.choice((TCP, MPTCP)),
                      delivery or chance.choice(("syn", "behind", "syn-bytewise")), seconds=SECONDS)

    def request(self, chance, port):
        """Returns a request for a server of the lab."""
        return connect(chance.choice((self.lab.server.addr4, self.lab.server.addr6)), port)

    def connected(self, chance, port=ECHO, early=b""):
        """Returns a client whose server was reached."""
        client = self.client(chance, "syn" if early else None)
        client.send(self.request(chance, port) + early)
        extended_header(client.answer())
        return client


def _ends(client, said, what):
    """After these bytes the stream ends in order."""
    equal(client.end(), (said, "closed"), what)


def short(load, chance):
    """Sends a few bytes and a FIN; the server's answer comes after that FIN."""
    for _ in range(10):
        with load.connected(chance) as client:
            said = pattern(chance.randrange(1, 3000), chance.randrange(251))
            client.sock.sendall(said)
            client.shutdown()
            _ends(client, said, "the echo")
        load.ended("short, half-closed by the client", "done")


def early(load, chance):
    """Sends the first bytes of the application in the SYN."""
    for _ in range(10):
        said = pattern(chance.randrange(1, 1000), chance.randrange(251))
        with load.connected(chance, early=said) as client:
            client.shutdown()
            _ends(client, said, "the echo")
        load.ended("early data", "done")


def half_closed(load, chance):
    """Has the server close first, and the client some time later."""
    with load.connected(chance, CHORUS) as client:
        _ends(client, CHORUS_SAYS, "what the server said")
        load.wait(chance.random())
    load.ended("half-closed by the server", "done")


def bulk(load, chance):
    """Sends megabytes in both directions at once."""
    with load.connected(chance) as client:
        said = pattern(BULK, chance.randrange(251))

        def send():
            client.sock.sendall(said)
            client.shutdown()
        sender = threading.Thread(target=send, daemon=True)
        sender.start()
        check(client.read(BULK) == said, "other bytes came back than were sent")
        sender.join()
        _ends(client, b"", "behind the echo")
    load.ended("4 MB each way", "done")


def long(load, chance):
    """Keeps one connection busy in both directions for minutes."""
    until = time.monotonic() + load.longest
    with load.connected(chance) as client:
        while True:
            piece = pattern(LONG_PIECE, chance.randrange(251))
            client.sock.sendall(piece)
            check(client.read(LONG_PIECE) == piece, "other bytes came back than were sent")
            if load.wait(LONG_PAUSE) or time.monotonic() > until:
                break
        client.shutdown()
        _ends(client, b"", "behind the echo")
    load.ended("minutes long, both ways", "done")


def idle(load, chance):
    """Opens many connections that send something, idle for a while, send again and close."""
    clients = []
    try:
        for _ in range(IDLE):
            clients.append(load.connected(chance))
        load.wait(chance.uniform(0.2, 1) * load.longest)
        for client in clients:
            client.sock.sendall(b"still there")
            equal(client.read(11), b"still there", "the echo after a while")
    finally:
        for client in clients:
            client.sock.close()
    load.ended("idle", "done", IDLE)


def reset_by_client(load, chance):
    """Closes or resets the connection in the middle of a transfer."""
    for _ in range(3):
        client = load.connected(chance)
        client.sock.sendall(pattern(2000))
        client.reset()
        load.ended("reset by the client", "reset")


def reset_by_server(load, chance):
    """Asks for a server that resets its connections, before the converter's response or after it."""
    for _ in range(3):
        with load.client(chance) as client:
            client.send(load.request(chance, RESETTER))
            answer, how = client.end()
            if how == "reset":
                load.ended("reset by the server", "reset")
            else:
                equal(answer[4:5] + answer[6:7], octets("1e 60"), "an error")
                load.ended("reset by the server", "Connection Reset")


def refused(load, chance):
    """Asks for closed ports and unreachable hosts, and expects an Error TLV, or a reset where none can be sent."""
    addresses = load.lab.addresses
    for address, port, code in ((load.lab.server.addr4, addresses.refused_port, 96), (addresses.unreachable4, 80, 97),
                                (addresses.prohibited6, 80, 97), (addresses.noroute4, 80, 97)):
        with load.client(chance) as client:
            client.send(connect(address, port))
            answer, _ = client.end()
            equal((len(answer) > 7 and answer[4], answer[6:7]), (0x1e, bytes([code])), "the answer: " + answer.hex())
        load.ended("refused servers", "Error %d" % code)


def garbage(load, chance):
    """Sends what is no request, and expects that the connection is closed, with or without an Error TLV."""
    faults = (b"GET / HTTP/1.1\r\nHost: convert\r\n\r\n", octets("01002263"), octets("01022263 00010000"),
              message(octets("0a010050")), chance.randbytes(chance.randrange(4, 900)))
    for data in faults:
        with load.client(chance) as client:
            client.send(data)
            with contextlib.suppress(OSError):
                # it may be reset already
                client.shutdown()
            answer, _ = client.end()
            check(not answer or answer[4] == 0x1e, "an answer to %s: %s" % (data.hex(), answer.hex()))
        load.ended("garbage", "Error %d" % answer[6] if answer else "closed")


def silent(load, chance):
    """Sends a part of a request, and closes the connection some time later."""
    clients = [load.client(chance).send(HALF_REQUEST) for _ in range(5)]
    load.wait(1)
    for client in clients:
        client.sock.close()
    load.ended("half a request", "left", len(clients))


def flood(load, chance):
    """Sends SYNs from forged addresses: empty, with garbage, with half a request, and with requests for servers that never answer."""
    contents = (b"", b"", b"", b"", b"", HALF_REQUEST, b"GET / HTTP/1.1\r\n\r\n", connect(load.lab.addresses.blackhole4, 80))
    with Forger(load.lab.client, load.lab.converter.addr4) as forger:
        for i in range(FLOOD):
            source = "10.66.%d.%d" % (chance.randrange(256), chance.randrange(1, 255))
            forger.syn(source, chance.randrange(1024, 65536), contents[i % len(contents)])
    load.ended("forged SYNs", "never completed", FLOOD)


def bursts(load, chance):
    """Opens many connections at once by the load program, which checks every byte."""
    way = chance.choice((["--via", "convert-syn"], ["--via", "convert-behind"], ["--via", "convert-syn", "--early"]))
    lab = load.lab
    said = lab.client.run([lab.build.program(LOAD), "run", "--to", "%s:1234" % lab.converter.addr4, *way,
                           *chance.choice(([], ["--mptcp"])), "--server", "%s:%d" % (lab.server.addr4, proxies.SERVER_PORT),
                           "--connections", 200, "--concurrency", 50, "--response", chance.choice((100, 20000)), "--verify"],
                          check=False, timeout=60)
    result = json.loads(said.stdout)
    equal((result["failed"], result["unfinished"]), (0, 0), "a burst of %s: %s" % (" ".join(way), result["errors"]))
    load.ended("50 at a time", "done", result["connections"])


# and the seconds between two of a kind
KINDS = ((short, 1), (early, 1), (half_closed, 1), (bulk, 10), (long, 0.1), (idle, 1), (reset_by_client, 1), (reset_by_server, 1),
         (refused, 2), (garbage, 2), (silent, 2), (flood, 5), (bursts, 5))
