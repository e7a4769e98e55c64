# SPDX-License-Identifier: BSD-3-Clause
"""withheld.py - SYNs that convertd withholds: the labs and captures of their tests, netfilter's queues and rules"""
import contextlib

from . import servers
from .harness import check
from .peers import Forger
from .topology import Lab, Link

WITHHELD = "SYNs are withheld"
# runs a command without CAP_NET_ADMIN, the only capability that withholding needs
WITHOUT_NET_ADMIN = ("setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin")
DROP_FORGED = """table inet forged {
 chain input {
  type filter hook input priority filter
  ip saddr 10.66.0.0/16 drop
 }
}
"""


def far(first_ms=5, core_ms=25, lte=None, **options):
    """Returns a lab whose server is farther from the converter than the client, so that captures show an answer before the server's."""
    return Lab(wifi=Link(delay_ms=first_ms), lte=lte, core=Link(delay_ms=core_ms), **options)


@contextlib.contextmanager
def captures(lab):
    """Captures on both sides of the converter; yields a function that returns a client's packets and all of the servers' link, in order."""
    with lab.capture(lab.converter, "wifi", "tcp") as wifi, lab.capture(lab.converter, "core", "tcp") as core:
        def packets(client):
            mine = [packet for packet in wifi.packets() if client.port in (packet.sport, packet.dport)]
            return sorted(mine + core.packets(), key=lambda packet: packet.time)
        yield packets


def first(packets, what, condition):
    """Returns the first packet that meets the condition."""
    found = next((packet for packet in packets if condition(packet)), None)
    check(found, "no %s among\n%s" % (what, "\n".join(map(str, packets))))
    return found


def forged(lab):
    """Routes 10.66.0.0/16, which no host has: without a route for the SYN+ACK the kernel would make no connection."""
    lab.converter.ip("route add 10.66.0.0/16 via %s" % lab.client.wifi4)


def syns_to(packets, port):
    """Returns the source ports of SYNs to that port."""
    return {packet.sport for packet in packets if packet.syn and packet.dport == port}


def rules(lab):
    """Returns the converter's nftables rules."""
    # on a kernel without the queue statement the rule has a form that nft can't show: nft says so on stderr
    return lab.converter.run(["nft", "list", "ruleset"]).stdout


def queue_fields(lab, number):
    """Returns that field of each of the converter's netfilter queues."""
    lines = lab.converter.run(["cat", "/proc/net/netfilter/nfnetlink_queue"]).stdout.splitlines()
    return [int(line.split()[number]) for line in lines]


def netfilter_queues(lab):
    """Returns how many packets wait in each netfilter queue."""
    return queue_fields(lab, 2)


def overflow(lab):
    """Sends forged SYNs until the queue of a stopped convertd is full: large ones first, then smaller ones. Returns how many it holds."""
    full, lots = -1, 0
    with Forger(lab.client, lab.converter.addr4) as forger:
        for data in (servers.pattern(1300), b""):
            before = None
            while full != before:
                for i in range(1000):
                    forger.syn("10.66.%d.%d" % (4 * lots + i // 250, i % 250 + 1), 1111, data)
                # the last one has arrived: links keep the order
                lab.client.ping(lab.converter.addr4)
                before, full = full, sum(netfilter_queues(lab))
                lots += 1
    return full
