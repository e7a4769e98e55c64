# SPDX-License-Identifier: BSD-3-Clause
"""links.py - the properties of a link, and the process (linkem) that emulates it"""
import dataclasses
import os
import socket
import subprocess
from typing import Mapping, Optional

from .waiting import LabError, wait_until


def _setting_words(settings):
    """Settings by the names that Link has, as linkem's words: loss=0.01 becomes "loss=1%"."""
    formats = {"delay_ms": ("delay", "%.6fms"), "jitter_ms": ("jitter", "%.6fms"), "rate_mbit": ("rate", "%.6fmbit"),
               "queue": ("queue", "%d"), "max_size": ("max-size", "%d"), "max_syn": ("max-syn", "%d"),
               "drop_port": ("drop-port", "%d")}
    words = []
    for name, value in settings.items():
        if name in formats:
            word, pattern = formats[name]
            words.append("%s=%s" % (word, "none" if value is None else pattern % value))
        elif name == "loss":
            if not 0 <= value <= 1:
                raise LabError("loss is a share from 0 to 1, not %r" % value)
            words.append("loss=%.7f%%" % (value * 100))
        elif name in ("reorder", "strip_mptcp", "strip_mptcp_behind", "strip_syn_data", "drop_mptcp_syn", "drop_join"):
            words.append("%s=%s" % (name.replace("_", "-"), "on" if value else "off"))
        else:
            raise LabError("\"%s\" is not a setting of a link" % name)
    return " ".join(words)


@dataclasses.dataclass
class Link:
    """What a link does to packets, in each direction. Side A is the one nearer to the client.

    a_to_b and b_to_a override settings for one direction: Link(rate_mbit=50, a_to_b={"rate_mbit": 10}).
    """

    delay_ms: float = 0          # one way
    rate_mbit: Optional[float] = None
    queue: int = 1000            # packets
    loss: float = 0              # share, 0 to 1
    jitter_ms: float = 0         # ms; each packet has up to so much more delay
    reorder: bool = False        # whether jitter may reorder packets
    strip_mptcp: bool = False
    strip_mptcp_behind: bool = False  # of all packets but SYNs
    strip_syn_data: bool = False
    max_size: int = 0            # bytes, from the IP header on: larger packets vanish (a PMTU black hole); 0: any
    max_syn: int = 0             # the same, of packets with the SYN flag
    drop_mptcp_syn: bool = False
    drop_join: bool = False      # only those that join a connection
    drop_port: int = 0           # TCP segments to this port are dropped; 0: none
    mtu: int = 1500
    seed: int = 1
    a_to_b: Mapping[str, object] = dataclasses.field(default_factory=dict)
    b_to_a: Mapping[str, object] = dataclasses.field(default_factory=dict)
    words: str = ""              # more settings in linkem's own words, for both directions

    @classmethod
    def parse(cls, words):
        """From linkem's words, as the command line has them: "delay=10ms rate=50mbit mtu=1400"."""
        link, rest = cls(), []
        for word in words.replace(",", " ").split():
            name, _, value = word.partition("=")
            if name in ("mtu", "seed"):
                setattr(link, name, int(value))
            else:
                rest.append(word)
        link.words = " ".join(rest)
        return link

    def arguments(self):
        """The options of linkem."""
        both = {name: getattr(self, name) for name in (
            "delay_ms", "rate_mbit", "queue", "loss", "jitter_ms", "reorder", "strip_mptcp", "strip_mptcp_behind",
            "strip_syn_data", "max_size", "max_syn", "drop_mptcp_syn", "drop_join", "drop_port")}
        arguments = ["--mtu", str(self.mtu), "--seed", str(self.seed)]
        for way, override in (("--a-to-b", self.a_to_b), ("--b-to-a", self.b_to_a)):
            arguments += [way, _setting_words(both)]
            arguments += [way, self.words] if self.words else []
            arguments += [way, _setting_words(override)] if override else []
        # It is precise under load then. A link without limits may use a whole CPU, and must not take it from other processes.
        if self.delay_ms or self.rate_mbit or self.words:
            arguments.append("--realtime")
        return arguments


class RunningLink:
    """A link of the lab while it runs. Directions are "a-to-b" (away from the client), "b-to-a", or None for both."""

    def __init__(self, program, link, name, side_a, side_b, directory):
        self.name = name
        self._path = os.path.join(directory, name + ".control")
        self._log = os.path.join(directory, "linkem-%s.log" % name)
        with open(self._log, "wb") as log:
            self.process = subprocess.Popen(
                [program, *link.arguments(), "--control", self._path, side_a.path, name, side_b.path, name],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log)
        # linkem prints one line, when it is ready
        if self.process.stdout.readline() != b"ready\n":
            self.process.wait()
            with open(self._log, encoding="utf-8") as log:
                raise LabError("linkem for %s: %s" % (name, log.read()))
        self._control = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._control.connect(self._path)
        self._answers = self._control.makefile("r", encoding="ascii")

    def command(self, *words):
        """Sends a line to linkem and returns its answer without the "ok"."""
        self._control.sendall((" ".join(word for word in words if word) + "\n").encode())
        answer = self._answers.readline().strip()
        if not answer.startswith("ok"):
            raise LabError("linkem for %s: %s" % (self.name, answer or "it has ended"))
        return answer[2:].strip()

    def down(self, way=None):
        """Drops all packets from now on. The hosts see no event, as with a lost radio link and unlike a pulled cable."""
        self.command("down", way)

    def up(self, way=None):
        """Ends down()."""
        self.command("up", way)

    def set(self, way=None, **settings):
        """Changes settings for the packets to come: set(loss=0.05), set("a-to-b", delay_ms=30)."""
        self.command("set", way, _setting_words(settings))

    def host(self, address, delay_ms, way=None):
        """Gives packets from and to an address on side A this one-way delay instead of the link's; None: the link's again."""
        self.command("host", way, address, "none" if delay_ms is None else "%.6fms" % delay_ms)

    def stats(self):
        """Counters: {"a-to-b": {"in": …, "out": …, "lost": …, "queue_drop": …}, "b-to-a": …}; see linkem.h."""
        found = {"a-to-b": {}, "b-to-a": {}}
        for pair in self.command("stats").split():
            name, _, value = pair.partition("=")
            way, _, counter = name.partition(".")
            found[way][counter] = int(value)
        return found

    def wait_idle(self, timeout=10):
        """Waits until no packet is under way."""
        wait_until(lambda: not any(way["under_way"] for way in self.stats().values()), timeout,
                   "%s to be idle" % self.name)

    def close(self):
        """Ends linkem, and with it the two devices."""
        self._answers.close()
        self._control.close()
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@dataclasses.dataclass(frozen=True)
class Veth:
    """A link that is a veth pair: no delay and no control, but faster than linkem's few Gbit/s, and cheaper for the CPUs.

    The defaults have room for some of the largest packets of segmentation offload, and are a queue of 4 ms at 2 Gbit/s. The kernel cuts
    packets that are larger than the burst; their segments then queue and pass one by one, as on a slow link.
    """

    rate_mbit: Optional[float] = None
    burst: str = "256kb"  # how much passes at once, in tc's words
    limit: str = "1mb"    # of the queue
    switched: bool = False  # whether rate and queue are those of a switch between the hosts (Switch)


class Cable:
    """A Veth while it runs."""

    def __init__(self, link, name, side_a, side_b):
        self.name = name
        side_a.ip("link add %s type veth peer name %s netns %s" % (name, name, side_b.name), "link set %s up" % name)
        side_b.ip("link set %s up" % name)
        # neighbour discovery for a forwarded packet needs a link-local address
        side_a.ip("addr add fe80::1/64 dev %s nodad" % name)
        side_b.ip("addr add fe80::2/64 dev %s nodad" % name)
        if link.rate_mbit:
            for side in (side_a, side_b):
                side.run(["tc", "qdisc", "replace", "dev", name, "root", "tbf", "rate", "%gmbit" % link.rate_mbit,
                          "burst", link.burst, "limit", link.limit])

    def close(self):
        """The devices go with their namespaces."""


class Switch:
    """A Veth with a switch in the middle while it runs, as Mininet has them; `host` is the switch's own.

    If the queue of a host's own device is full, the host's TCP learns it at once and sends no faster. TCP has to notice what a switch
    drops by itself, as in a network.
    """

    def __init__(self, link, name, side_a, side_b, host):
        self.name = name
        self.host = host
        host.ip("link add bridge type bridge mcast_snooping 0", "link set bridge up")
        for number, side in ((1, side_a), (2, side_b)):
            side.ip("link add %s type veth peer name to-%s netns %s" % (name, side.name, host.name), "link set %s up" % name,
                    "addr add fe80::%d/64 dev %s nodad" % (number, name))
            host.ip("link set to-%s master bridge up" % side.name)
            if link.rate_mbit:
                host.run(["tc", "qdisc", "replace", "dev", "to-" + side.name, "root", "tbf", "rate", "%gmbit" % link.rate_mbit,
                          "burst", link.burst, "limit", link.limit])

    def close(self):
        """The devices go with their namespaces."""
