# SPDX-License-Identifier: BSD-3-Clause
"""gateways.py - a LAN behind the lab's client, which is a router with two networks, and convertgw on it

       lan  10.20.0.0/24 fd20::/64          wifi, lte
   phone ========================== client ============ converter ------- server
     .2                          .1 (router, masquerades)
"""
import contextlib
import errno
import os
import signal
import socket

from .harness import Unsuitable, equal, need
from .links import Cable, Link, Veth
from .topology import Lab
from .waiting import wait_until

LAN = "lan"
PORT = 8080  # of the test's own server
MASQUERADE = """table inet nat {
 chain out { type nat hook postrouting priority srcnat; oifname { "wifi", "lte" } masquerade; }
}
"""


NOT_BUILT = "convertgw isn't built, since libnftables or libnetfilter_queue is missing"


def is_built(lab):
    """Tells whether there is a convertgw; NOT_BUILT says why not."""
    return os.path.exists(os.path.join(lab.build.directory, "convertgw"))


def gateway_lab(**options):
    """A lab for a gateway."""
    need("nft", "nftables")
    lab = Lab(**{"wifi": Link(delay_ms=10), "lte": Link(delay_ms=15), "core": Link(delay_ms=5), **options})
    if not is_built(lab):
        raise Unsuitable(NOT_BUILT)
    return lab


def add_lan(lab, device=LAN, network=20, name="phone"):
    """Makes the client a router, and returns a new host behind its device."""
    phone = lab.add_host(name)
    Cable(Veth(), device, lab.client, phone)
    give_addresses(lab, phone, device, network)
    return phone


def give_addresses(lab, phone, device=LAN, network=20):
    """Makes the client the router of a host with a device of the same name."""
    lab.client.ip("addr add 10.%d.0.1/24 dev %s" % (network, device), "addr add fd%d::1/64 dev %s nodad" % (network, device))
    phone.ip("addr add 10.%d.0.2/24 dev %s" % (network, device), "addr add fd%d::2/64 dev %s nodad" % (network, device),
             "route add default via 10.%d.0.1" % network, "route add default via fd%d::1" % network)
    phone.lan4, phone.lan6 = "10.%d.0.2" % network, "fd%d::2" % network
    lab.client.sysctl("net.ipv4.ip_forward", 1)
    lab.client.sysctl("net.ipv6.conf.all.forwarding", 1)
    lab.client.sysctl("net.ipv4.icmp_ratelimit", 0)
    lab.client.sysctl("net.ipv6.icmp.ratelimit", 0)


def masquerade(lab):
    """The router's own masquerading, so that routed connections get through."""
    lab.client.run(["nft", "-f", "-"], input=MASQUERADE)


def start_gateway(lab, args=("--lan", LAN), converter=None, wait=True, private=True, log_level="debug", cache=True, **options):
    """Starts convertgw on the client; returns its Process once it is ready.

    converter: an address; None: both of the lab's converter; False: none, since args name it. cache: whether it keeps a cache, in the
    lab's directory. options: popen()'s
    """
    converters = [converter] if converter else [lab.converter.addr4, lab.converter.addr6] if converter is None else []
    words = [lab.build.program("convertgw"), *args]
    for address in converters:
        words += ["--converter", address]
    if private:  # the lab's servers have private addresses, which convertgw routes by default
        words += ["--convert", "destination 10.8.0.0/24", "--convert", "destination fd08::/64"]
    if cache:
        words += ["--cache", os.path.join(lab.directory, "gateway-cache")]
    process = lab.client.popen([*words, "--log-level", log_level], name="convertgw", **options)
    if wait:
        process.wait_log("ready")
    return process


@contextlib.contextmanager
def gateway(lab, *args, **options):
    """A LAN, its phone, and convertgw: yields (phone, process)."""
    phone = add_lan(lab)
    masquerade(lab)
    yield phone, start_gateway(lab, *args, **options)


class ConfiguredGateway:
    """convertgw with a configuration file, for the lab's servers; a reload replaces the file. process: its Process"""

    def __init__(self, lab, *lines, **options):
        self._path = os.path.join(lab.directory, "convertgw.conf")
        self._reloads = 0
        self._write(lines)
        self.process = start_gateway(lab, args=("--config", self._path), converter=False, private=False, **options)

    def _write(self, lines):
        with open(self._path, "w", encoding="ascii") as file:
            file.write("\n".join((*lines, "convert destination 10.8.0.0/24", "")))

    def reload(self, *lines):
        """Replaces the file by these lines, and waits until they are in force."""
        self._write(lines)
        self._reloads += 1
        self.process.send_signal(signal.SIGHUP)
        wait_until(lambda: self.process.log_text().count("info: reloaded") == self._reloads, 10, self.process.log_text)

    def fail_to_reload(self, *lines):
        """Replaces the file by these lines, which convertgw refuses."""
        self._write(lines)
        self.process.send_signal(signal.SIGHUP)
        self.process.wait_log("not reloaded")


def family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def connect(host, address, port, timeout=15, hops=0):
    """Returns (errno, socket) of a stock client's connection; EAGAIN without an answer. hops: the TTL or hop limit; 0: the default"""
    sock = host.socket(family(address))
    sock.settimeout(timeout)
    if hops:
        sock.setsockopt(*((socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS) if ":" in address else (socket.IPPROTO_IP, socket.IP_TTL)), hops)
    error = sock.connect_ex((address, port))
    if not error and not is_connected(sock):
        # Linux 6.18 wakes poll(2) for an ICMP error a moment before SO_ERROR has it (tcp_v4_err()).
        error = wait_until(lambda: sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), 10, "the error of a connection that has failed")
    return error, sock


def outcome(host, address, port, timeout=15, hops=0):
    """Returns the name of the errno of connect(), "" for success."""
    error, sock = connect(host, address, port, timeout, hops)
    sock.close()
    return errno.errorcode[error] if error else ""


def is_connected(sock):
    """Tells whether the handshake of a non-blocking socket is complete."""
    with contextlib.suppress(OSError):
        return bool(sock.getpeername())
    return False


@contextlib.contextmanager
def listening(host, address, port=PORT):
    """Yields a listening socket, from which the test itself accepts."""
    with host.socket(family(address)) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address, port))
        sock.listen()
        sock.settimeout(15)
        yield sock


@contextlib.contextmanager
def pair(phone, address, listener):
    """Yields both ends of a connection from the phone, and the address that the server sees."""
    error, client = connect(phone, address, PORT)
    equal(error, 0, "errno of connect()")
    accepted, peer = listener.accept()
    accepted.settimeout(15)
    with client, accepted:
        yield client, accepted, peer[0]
