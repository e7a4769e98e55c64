# SPDX-License-Identifier: BSD-3-Clause
"""phones.py - many phones, each at a distance of its own, that ask a server by several applications in turn

The phones take turns on a few hosts (places): whoever has one has its round trips (linkem's hosts), makes one connection by each
application, in an order of its own, and leaves. So all applications of a phone meet the same networks, whatever disturbs one disturbs
all, and as many connections are open at a time as there are places. A place has an address in each network of the phones, and the
client routes for it. (Addresses of the client would do for phones with one network, but a host that has been in dozens of networks is no
phone: libconvert remembers what it learned in the last few.)
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


class Application:
    """One application at all places: on each of the hosts a process of first_byte, or of the same under libconvert.so.

    target: a function that makes (source, address, port) of a place's number; wrapper: words in front of the command.
    """

    def __init__(self, lab, name, hosts, target, options=(), env=None, wrapper=()):
        self.name = name
        self._lines = [("%s %s %d\n" % target(place)).encode() for place in range(len(hosts))]
        self._processes = [host.popen([*wrapper, lab.build.program(PROGRAM), *options, lab.server.addr4, SERVER_PORT, 1], env=env,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE) for host in hosts]

    def ask(self, place):
        """Has it make a connection at a place."""
        self._processes[place].stdin.write(self._lines[place])
        self._processes[place].stdin.flush()

    def answering(self):
        """Returns [(what is readable once a connection is over, its place)]."""
        return [(process.stdout, place) for place, process in enumerate(self._processes)]

    def answer(self, place):
        """Returns (the four times of first_byte in ms, or None if the connection has failed; why it has)."""
        process = self._processes[place]
        line = process.stdout.readline()
        if not line:
            raise LabError("%s has ended with %s" % (self.name, process.wait()))
        said = line[len(self._lines[place]):].decode().rstrip()
        return (None, said) if said.startswith("failed: ") else ([float(word) / 1000 for word in said.split()], "")

    def close(self):
        """Ends it."""
        for process in self._processes:
            process.stdin.close()
            process.wait()
            process.stdout.close()


def address(place, network="wifi"):
    """The address in a network that stands for a place."""
    return "%s.%d" % (NETWORKS[network], place + 1)


def make_hosts(lab, count, networks):
    """Makes the places; returns their hosts. A connection begins on the first network, and Multipath TCP adds a second one."""
    for network in networks:
        lab.converter.ip("route add %s.0/24 via %s dev %s" % (NETWORKS[network], getattr(lab.client, network + "4"), network))
    lab.client.sysctl("net.ipv4.ip_forward", 1)
    lab.client.ip("addr add %s/32 dev lo" % ROUTER, *["rule add from %s.0/24 table %d" % (NETWORKS[network], ACCESS[network].table)
                                                      for network in networks])
    hosts = []
    for place in range(count):
        host, device = lab.add_host("phone%d" % place), "phone%d" % place
        addresses = [address(place, network) for network in networks]
        lab.client.ip("link add %s type veth peer name net netns %s" % (device, host.name), "link set %s up" % device,
                      *["route add %s dev %s" % (each, device) for each in addresses])
        host.ip("link set lo up", "link set net up", *["addr add %s/32 dev net" % each for each in addresses],
                "route add %s dev net scope link" % ROUTER, "route add default via %s src %s" % (ROUTER, addresses[0]),
                *["mptcp endpoint add %s dev net subflow" % each for each in addresses[1:]], "mptcp limits set subflows 1")
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
        for application in applications:
            for stream, place in application.answering():
                selector.register(stream, selectors.EVENT_READ, (application, place))

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
                application, place = key.data
                number, to_come, found, reasons = at[place]
                found[application.name], reason = application.answer(place)
                reasons += ["%s: %s" % (application.name, reason)] if reason else []
                to_come.pop()
                if to_come:
                    to_come[-1].ask(place)
                    continue
                yield number, found, reasons
                enter(place)
