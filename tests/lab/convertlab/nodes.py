# SPDX-License-Identifier: BSD-3-Clause
"""nodes.py - several converters behind the lab's converter, which then is their router

    client ==== router (the host "converter") ----------- server
                  |         |         |
                node1     node2     node3        10.4.N.2 fd04:N::2
                  all with the shared address 10.9.9.9 fd09:9::9, spread over them by ports (ECMP)
"""
import contextlib
import time

from .links import Cable, Veth
from .peers import MPTCP, PORT, Client, connect
from .topology import CONVERTD_OPEN
from .waiting import wait_until

SOL_MPTCP, MPTCP_INFO = 284, 1


class Node:
    """One converter; `host` is its Host, `process` its convertd once that was started."""

    def __init__(self, lab, number, c_flag, announces):
        self._lab = lab
        self.name = "node%d" % number
        self.host = host = lab.add_host(self.name)
        self.process = None
        router = lab.converter
        self.addr4, self.addr6 = "10.4.%d.2" % number, "fd04:%d::2" % number
        gateway4, gateway6 = "10.4.%d.1" % number, "fd04:%d::1" % number
        Cable(Veth(), self.name, router, host)
        for side, address4, address6 in ((router, gateway4, gateway6), (host, self.addr4, self.addr6)):
            side.ip("addr add %s/24 dev %s" % (address4, self.name), "addr add %s/64 dev %s nodad" % (address6, self.name))
        host.ip("addr add %s/32 dev lo" % Nodes.ADDR4, "addr add %s/128 dev lo nodad" % Nodes.ADDR6,
                "route add default via %s" % gateway4)
        host.run(["ip", "-6", "route", "add", "default", "via", gateway6])
        host.sysctl("net.ipv4.tcp_fastopen", 3)
        if c_flag:
            host.sysctl("net.mptcp.allow_join_initial_addr_port", 0)
        if announces:
            host.ip("mptcp endpoint add %s dev %s signal" % (self.addr4, self.name),
                    "mptcp endpoint add %s dev %s signal" % (self.addr6, self.name))

    def start(self, *arguments):
        """Starts convertd; returns its Process once it is ready and has logged its warnings."""
        self.process = self._lab.start_listening(self.host, [self._lab.build.program("convertd"), *CONVERTD_OPEN, *arguments],
                                                 PORT, name="convertd-" + self.name)
        # it listens before it has checked everything that it warns of
        self.process.wait_log("ready")
        return self.process

    def client_ports(self):
        """The clients' ports of the connections that came to the shared address."""
        said = self.host.run(["ss", "-Htn", "state", "established", "sport", "=", ":%d" % PORT]).stdout
        found = set()
        for line in said.splitlines():
            local, peer = line.split()[2:4]
            if Nodes.ADDR4 in local or Nodes.ADDR6 in local:
                found.add(int(peer.rsplit(":", 1)[1]))
        return found


class Nodes:
    """All converters, and the router's routes to their shared address.

    c_flag, announces: is each node set up as doc/several-converters.md says? endpoints: the client's kind.
    """

    ADDR4, ADDR6 = "10.9.9.9", "fd09:9::9"

    def __init__(self, lab, count=3, c_flag=True, announces=True, endpoints="subflow fullmesh"):
        self._lab = lab
        for family in ("ipv4", "ipv6"):
            lab.converter.sysctl("net.%s.fib_multipath_hash_policy" % family, 1)  # by ports, too
        self.nodes = [Node(lab, number + 1, c_flag, announces) for number in range(count)]
        self.route(*self.nodes)
        client = lab.client
        client.ip("mptcp limits set subflows 4 add_addr_accepted 4", "mptcp endpoint flush", *("mptcp endpoint add %s dev %s %s" % (address, device, endpoints) for device, address in (
            ("wifi", client.wifi4), ("lte", client.lte4), ("wifi", client.wifi6), ("lte", client.lte6))))

    def route(self, *nodes):
        """Has the router spread the shared address over these nodes from now on."""
        for option, address, own in (("-4", self.ADDR4 + "/32", "addr4"), ("-6", self.ADDR6 + "/128", "addr6")):
            hops = [word for node in nodes for word in ("nexthop", "via", getattr(node, own), "dev", node.name)]
            self._lab.converter.run(["ip", option, "route", "replace", address, *hops])

    def counters(self, name):
        """The sum of a counter over all nodes."""
        return sum(node.host.counters().get(name, 0) for node in self.nodes)


class Conversation:
    """A client's connection to an echo server by way of the shared address; `port` is the client's."""

    def __init__(self, lab, port, address=Nodes.ADDR4, protocol=MPTCP):
        self._client = Client(lab.client, address, protocol)
        self.sock = self._client.sock
        self._client.send(connect(lab.server.addr4, port))
        answer = self._client.answer()
        if answer[4:5] != b"\x14":
            raise OSError("no Extended TCP Header TLV: %s" % answer.hex())
        self.port = self.sock.getsockname()[1]

    def subflows(self):
        """Returns how many subflows there are besides the first."""
        return self.sock.getsockopt(SOL_MPTCP, MPTCP_INFO, 1)[0]

    def say(self, data):
        """Sends to the server; errors show when the echo is missing."""
        with contextlib.suppress(OSError):
            self.sock.sendall(data)

    def hears(self, data):
        """Tells whether the server sends all of it back."""
        with contextlib.suppress(OSError):
            return self._client.read(len(data)) == data
        return False

    def close(self):
        """Closes the connection."""
        self.sock.close()


def lost(conversations, data, seconds=10):
    """Sends `data` on all conversations at once; returns those without a whole echo in time."""
    end = time.monotonic() + seconds
    for each in conversations:
        each.say(data)
    found = []
    for each in conversations:
        each.sock.settimeout(max(0.001, end - time.monotonic()))
        if not each.hears(data):
            found.append(each)
    return found


def converse(lab, port, count, subflows=2, address=Nodes.ADDR4, seconds=20, protocol=MPTCP):
    """Opens so many conversations and waits for their subflows. Returns all, also those with fewer subflows."""
    found = [Conversation(lab, port, address, protocol) for _ in range(count)]
    with contextlib.suppress(Exception):
        wait_until(lambda: all(each.subflows() >= subflows for each in found), seconds, "subflows")
    return found
