# SPDX-License-Identifier: BSD-3-Clause
"""phones.py - many phones, each at a distance of its own, that ask a server by several applications in turn

The phones take turns on a few places: whoever has one has its round trips (linkem's hosts), makes one connection by each application,
in an order of its own, and leaves. So all applications of a phone meet the same networks, whatever disturbs one disturbs all, and as
many connections are open at a time as there are places.

Phones with one network share the client: a place is one of its addresses. Multipath TCP adds each path that the host has, so that
phones with two networks need a host for each place, with an address in either network; the client routes for them.
"""
import os
import random
import selectors
import subprocess

from convertlab import LabError
from convertlab.topology import ACCESS

from .proxies import SERVER_PORT

PROGRAM = "bench/tools/first_byte"
PATIENCE = 60  # seconds without any answer
NETWORKS = {"wifi": "10.64.0", "lte": "10.65.0"}  # of the places, by the link that leads there
ROUTER = "10.63.0.1"  # the client, seen from phones with two networks


class Asking:
    """A process of first_byte, or of the same under libconvert.so, with a thread for each of its places.

    targets: {(source, address, port): place}; wrapper: words in front of the command.
    """

    def __init__(self, lab, host, name, targets, options=(), env=None, wrapper=()):
        self.name = name
        self._places = {"%s %s %d" % target: place for target, place in targets.items()}
        self._lines = {place: line for line, place in self._places.items()}
        self._partial = b""
        self._process = host.popen([*wrapper, lab.build.program(PROGRAM), *options, lab.server.addr4, SERVER_PORT, len(targets)], env=env,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.answering = self._process.stdout
        os.set_blocking(self.answering.fileno(), False)

    def ask(self, place):
        """Has it make a connection."""
        self._process.stdin.write((self._lines[place] + "\n").encode())
        self._process.stdin.flush()

    def answers(self):
        """Yields (place, times, reason) of the connections that are over: the four times of first_byte in ms, None if it failed."""
        piece = self.answering.read()
        if piece == b"":
            raise LabError("%s has ended with %s" % (self.name, self._process.wait()))
        *lines, self._partial = (self._partial + (piece or b"")).split(b"\n")
        for line in lines:
            source, host, port, said = line.decode().split(" ", 3)
            failed = said.startswith("failed: ")
            yield (self._places["%s %s %s" % (source, host, port)], None if failed else [float(word) / 1000 for word in said.split()],
                   said if failed else "")

    def close(self):
        """Ends it."""
        self._process.stdin.close()
        self._process.wait()
        self.answering.close()


class Application:
    """One application at all places: a process on the client, or one on the host of each place.

    target: a function that makes (source, address, port) of a place's number.
    """

    def __init__(self, lab, name, hosts, target, options=(), env=None, wrapper=()):
        self.name = name
        places = {host: {target(place): place for place, at in enumerate(hosts) if at is host} for host in hosts}
        self.processes = [Asking(lab, host, name, some, options, env, wrapper) for host, some in places.items()]
        self._at = {place: process for process, some in zip(self.processes, places.values()) for place in some.values()}

    def ask(self, place):
        """Has it make a connection at a place."""
        self._at[place].ask(place)

    def close(self):
        """Ends it."""
        for process in self.processes:
            process.close()


def address(place, network="wifi"):
    """The address in a network that stands for a place."""
    return "%s.%d" % (NETWORKS[network], place + 1)


def make_places(lab, count):
    """Makes places of phones with one network; returns the host of each, the client.

    It has their addresses. As a phone with one network has it, there is no other path to add.
    """
    lab.client.ip("mptcp endpoint flush", *["addr add %s/32 dev lo" % address(place) for place in range(count)])
    lab.converter.ip("route add %s.0/24 via %s dev wifi" % (NETWORKS["wifi"], lab.client.wifi4))
    return [lab.client] * count


def make_hosts(lab, count):
    """Makes places of phones with two networks; returns the host of each. A connection begins on wifi, and Multipath TCP adds lte."""
    for network, prefix in NETWORKS.items():
        lab.converter.ip("route add %s.0/24 via %s dev %s" % (prefix, getattr(lab.client, network + "4"), network))
    lab.client.sysctl("net.ipv4.ip_forward", 1)
    lab.client.ip("addr add %s/32 dev lo" % ROUTER, "rule add from %s.0/24 table %d" % (NETWORKS["lte"], ACCESS["lte"].table))
    hosts = []
    for place in range(count):
        host, device = lab.add_host("phone%d" % place), "phone%d" % place
        addresses = [address(place, network) for network in NETWORKS]
        lab.client.ip("link add %s type veth peer name net netns %s" % (device, host.name), "link set %s up" % device,
                      *["route add %s dev %s" % (each, device) for each in addresses])
        host.ip("link set lo up", "link set net up", *["addr add %s/32 dev net" % each for each in addresses],
                "route add %s dev net scope link" % ROUTER, "route add default via %s src %s" % (ROUTER, addresses[0]),
                "mptcp endpoint add %s dev net subflow" % addresses[1], "mptcp limits set subflows 1")
        hosts.append(host)
    return hosts


def ask_in_turn(lab, applications, round_trips, places, seed):
    """Yields (number of the phone, {name: times in ms}, reasons) for each phone, as they are done.

    round_trips: {network: those of all phones in ms}. reasons: for each connection that failed a text, while its times are None.
    """
    generator = random.Random(seed)
    phones = iter(range(len(round_trips["wifi"])))
    at = {}  # place -> (number, applications to come, times, reasons)
    with selectors.DefaultSelector() as selector:
        for process in [process for application in applications for process in application.processes]:
            selector.register(process.answering, selectors.EVENT_READ, process)

        def enter(place):
            number = next(phones, None)
            if number is None:
                at.pop(place, None)
                return
            for network, each in round_trips.items():
                getattr(lab, network).host(address(place, network), each[number] / 2)
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
