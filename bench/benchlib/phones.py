# SPDX-License-Identifier: BSD-3-Clause
"""phones.py - many phones, each at a distance of its own, that ask a server by several applications in turn

The phones take turns on a few addresses of the client (places): whoever has one has its round trip (linkem's hosts), makes one
connection by each application, in an order of its own, and leaves. So all applications of a phone meet the same network, whatever
disturbs one disturbs all, and as many connections are open at a time as there are places.
"""
import os
import random
import selectors
import subprocess

from convertlab import LabError

from .proxies import SERVER_PORT

PROGRAM = "bench/tools/first_byte"
PATIENCE = 60  # seconds without any answer
NETWORK = "10.64.0"  # of the places


class Application:
    """A process of first_byte, or of the same under libconvert.so.

    target: a function that makes (source, address, port) of a place's number.
    """

    def __init__(self, lab, name, places, target, options=(), env=None):
        self.name = name
        self._target = target
        self._partial = b""
        self.process = lab.client.popen([lab.build.program(PROGRAM), *options, lab.server.addr4, SERVER_PORT, places], env=env,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        os.set_blocking(self.process.stdout.fileno(), False)
        self._places = {" ".join(map(str, target(place))): place for place in range(places)}

    def ask(self, place):
        """Has it make a connection."""
        self.process.stdin.write(("%s %s %d\n" % self._target(place)).encode())
        self.process.stdin.flush()

    def answers(self):
        """Yields (place, times, reason) of the connections that are over: the four times of first_byte in ms, None if it failed."""
        piece = self.process.stdout.read()
        if piece == b"":
            raise LabError("%s has ended with %s" % (self.name, self.process.wait()))
        *lines, self._partial = (self._partial + (piece or b"")).split(b"\n")
        for line in lines:
            source, host, port, said = line.decode().split(" ", 3)
            failed = said.startswith("failed: ")
            yield (self._places["%s %s %s" % (source, host, port)], None if failed else [float(word) / 1000 for word in said.split()],
                   said if failed else "")

    def close(self):
        """Ends it."""
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def address(place):
    """The client's address that stands for a place."""
    return "%s.%d" % (NETWORK, place + 1)


def make_places(lab, count):
    """Gives the client these addresses. As a phone with one network has it, there is no other path to add."""
    lab.client.ip("mptcp endpoint flush", *["addr add %s/32 dev lo" % address(place) for place in range(count)])
    lab.converter.ip("route add %s.0/24 via %s dev wifi" % (NETWORK, lab.client.wifi4))


def ask_in_turn(lab, applications, round_trips, places, seed):
    """Yields (number of the phone, {name: times in ms}, reasons) for each phone, as they are done.

    round_trips: the phones', in ms. reasons: for each connection that failed a text, while its times are None.
    """
    generator = random.Random(seed)
    phones = iter(list(enumerate(round_trips)))
    at = {}  # place -> (number, applications to come, times, reasons)
    with selectors.DefaultSelector() as selector:
        for application in applications:
            selector.register(application.process.stdout, selectors.EVENT_READ, application)

        def enter(place):
            number, round_trip = next(phones, (None, None))
            if number is None:
                at.pop(place, None)
                return
            lab.wifi.host(address(place), round_trip / 2)
            at[place] = number, generator.sample(applications, len(applications)), {}, []
            at[place][1][-1].ask(place)

        for place in range(places):
            enter(place)
        while at:
            events = selector.select(PATIENCE)
            if not events:
                raise LabError("no application has had an answer for %d s" % PATIENCE)
            for key, _ in events:
                for place, times, reason in key.data.answers():
                    number, to_come, found, reasons = at[place]
                    found[key.data.name] = times
                    reasons += ["%s: %s" % (key.data.name, reason)] if reason else []
                    to_come.pop()
                    if to_come:
                        to_come[-1].ask(place)
                        continue
                    yield number, found, reasons
                    enter(place)
