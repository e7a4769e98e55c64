#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertd_reflection.py - how much convertd sends to unproven clients, and to servers, because of forged SYNs"""
import contextlib
import select
import socket
import threading

from convertlab import Lab, Link, check, equal, kernel, long, main, wait_until, waits
from convertlab.forging import OPTIONS, Forge, Traffic, route_back, victim, wait_forgotten, within
from convertlab.harness import timeout
from convertlab.metrics import OPTIONS as METRICS, Metrics
from convertlab.peers import await_closed, connect, converter, descriptors, reset

# SYNs withheld or not, on a host with convertd's sysctls or with the kernel's defaults (net.ipv4.tcp_synack_retries).
HOLD = {"withheld": ("--hold-syn", "on"), "not withheld": ("--hold-syn", "off")}
LAB = ("--allow-client", "::/0", "--allow-destination", "10.0.0.0/8", "--log-rate", "1")
KERNELS = {"its own sysctls": 1, "the kernel's defaults": 5}


def near(**options):
    """Returns a lab whose links are too fast to matter."""
    options.setdefault("wifi", Link(delay_ms=0.5))
    return Lab(lte=None, core=Link(delay_ms=0.1), **options)


class Behaving:
    """A server that treats each connection in one way, whatever the client does; `treated` counts connections."""

    def __init__(self, lab, port, behave):
        self._behave = behave
        self.treated = 0
        self.port = port
        self._kept = []
        self.sock = lab.server.socket(socket.AF_INET6, socket.SOCK_STREAM)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        self.sock.bind(("::", port))
        self.sock.listen(4096)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()
        for sock in self._kept:
            sock.close()
        self.sock.close()

    def _serve(self):
        while not self._stop.is_set():
            if not select.select([self.sock], [], [], 0.05)[0]:
                continue
            sock, _ = self.sock.accept()
            stays = False
            with contextlib.suppress(OSError):
                stays = self._behave(sock)
            if stays:
                self._kept.append(sock)
            else:
                sock.close()
            self.treated += 1


def send_and_reset(sock):
    """Sends 12 KB, and an RST behind them."""
    sock.sendall(bytes(12000))
    reset(sock)


def send_and_close(sock):
    """Sends 12 KB and a FIN."""
    sock.sendall(bytes(12000))
    sock.shutdown(socket.SHUT_WR)
    return True


def send_and_stay(sock):
    """Sends as much as the socket takes at once, and nothing more."""
    sock.setblocking(False)
    sock.send(bytes(200000))
    return True


def send_bits(sock):
    """Makes many small writes, and closes."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for _ in range(40):
        sock.sendall(b"bit")
    return True


def stay(_):
    """Sends nothing."""
    return True


def close_at_once(_):
    """Sends a FIN and nothing else."""


SERVERS = {"sends and resets": send_and_reset, "sends and closes": send_and_close, "sends and stays": send_and_stay,
           "sends bits": send_bits, "is silent": stay, "closes": close_at_once, "resets": reset}
PORT = 7000


@contextlib.contextmanager
def servers(lab):
    """
    Yields {name: (address, port)} of a server of each kind, of one that refuses and of one that doesn't answer; and a list of those that
    are Behaving.
    """
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(Behaving(lab, PORT + i, behave)) for i, behave in enumerate(SERVERS.values())]
        yield {**{name: (lab.server.addr4, PORT + i) for i, name in enumerate(SERVERS)},
               "refuses": (lab.server.addr4, lab.addresses.refused_port), "doesn't answer": (lab.addresses.blackhole4, 80)}, running


def attack(forge, places, first, options, early, v6):
    """For each server sends three SYNs from new addresses, with numbers above `first`, and as many from the address number `first`."""
    number = first
    for target, port in places.values():
        for _ in range(3):
            number += 1
            forge.request(number, target, port, options, early, v6)
            forge.syn(victim(first, v6), 1024 + number, connect(target, port) + early, options)


GET = b"GET / HTTP/1.1\r\nHost: server.example\r\nUser-Agent: x\r\n\r\n"
CASES = {"bare": (b"", False), "mss": (GET, False), "linux": (b"", True), "bare MPTCP": (b"", False), "linux MPTCP": (GET, True)}


def reflect(hold, sysctls):
    """Sends each kind of SYN for each kind of server; checks that no more than three times its bytes come back."""
    kernel.need("fastopen")  # without it, the kernel's answers to these SYNs don't depend on convertd
    with near() as lab, servers(lab) as (places, _):
        route_back(lab)
        lab.converter.sysctl("net.ipv4.tcp_synack_retries", KERNELS[sysctls])
        with converter(lab, *HOLD[hold], "--log-rate", "1") as process:
            at_start = descriptors(process)
            with lab.capture(lab.converter, "wifi", "tcp") as capture, Forge(lab) as forge:
                for i, (name, (early, v6)) in enumerate(CASES.items()):
                    attack(forge, places, 1000 * i, OPTIONS[name], early, v6)
                wait_forgotten(lab)
                await_closed(process, at_start)
        packets = capture.packets()
        for i, name in enumerate(CASES):
            addresses = {victim(number, v6) for number in range(1000 * i, 1000 * i + 1000) for v6 in (False, True)}
            traffic = Traffic(packet for packet in packets if packet.src in addresses or packet.dst in addresses)
            print("  %s, %s, %s: %s" % (hold, sysctls, name, traffic), flush=True)
            equal(len(traffic.sent), 6 * len(places), "forged connections")
            # the answer goes at once, as far as the limit allows; only over MPTCP it waits for the third ACK
            check("MPTCP" in name or traffic.kinds["data"] > len(traffic.sent) / 2, "answers (%s): %s" % (name, traffic))
            within(traffic, "%s, %s, %s" % (hold, sysctls, name))
        return str(Traffic(packets))


def pending(lab):
    """Returns (pending requests, all connections)."""
    metrics = Metrics(lab.converter)
    return metrics("convertd_pending_requests"), sum(metrics.family("convertd_connections", "state").values())


@long
@waits
@kernel.needs("fastopen")
@timeout(300)
def test_they_count_as_pending():
    """Whatever the server does, each forged request is pending until it ends, and there are no more than --max-pending."""
    for options in ("linux", "linux MPTCP"):
        with near() as lab, servers(lab) as (places, running):
            route_back(lab)
            with converter(lab, "--hold-syn", "off", "--max-pending", "300", "--cookie-demand", "0", *METRICS) as process, \
                    Forge(lab) as forge:
                for i in range(10 * len(places)):
                    forge.request(i, *list(places.values())[i % len(places)], OPTIONS[options])
                wait_until(lambda: pending(lab)[1] == 10 * len(places), 5, "connections")
                wait_until(lambda: all(server.treated == 10 for server in running), 5, "the servers to act")  # pylint: disable=W0640
                lab.core.wait_idle()
                for _ in range(20):
                    equal(pending(lab), (10 * len(places),) * 2, "pending requests, and all (%s)" % options)
                for i in range(1000):
                    forge.request(1000 + i, *list(places.values())[i % len(places)], OPTIONS[options])
                    if i % 50 == 49:
                        found = pending(lab)
                        check(found[0] == found[1] <= 300, "pending requests, and all: %s (%s)" % (found, options))
                # none keeps real clients out for longer
                wait_until(lambda: pending(lab) == (0, 0), 15, "the end of all")
                check("never completed its handshake" in process.log_text(), process.log_text())


@long
@waits
@timeout(300)
def test_flood():
    """4,000 forged requests with a GET each, half a megabyte: no more than three times as much comes back."""
    with near() as lab, Behaving(lab, PORT, send_and_reset) as server:
        route_back(lab)
        for hold in HOLD.values():
            with converter(lab, *hold, *LAB, defaults=()), lab.capture(lab.converter, "wifi", "tcp") as capture, \
                    Forge(lab) as forge:
                for i in range(4000):
                    forge.request(i, lab.server.addr4, PORT, early=GET)
                wait_forgotten(lab)
            traffic = Traffic(capture.packets())
            within(traffic, "a flood")
            print("  %s: %s, %d connections to the server" % (" ".join(hold), traffic, server.treated), flush=True)
            server.treated = 0
        return str(traffic)


@long
@waits
@timeout(900)
def test_withheld():
    """SYNs withheld, with convertd's sysctls."""
    return reflect("withheld", "its own sysctls")


@long
@waits
@timeout(900)
def test_not_withheld():
    """SYNs not withheld, with convertd's sysctls."""
    return reflect("not withheld", "its own sysctls")


@long
@waits
@timeout(900)
def test_default_kernel():
    """SYNs not withheld, with the kernel's defaults: it repeats SYN+ACKs for a minute."""
    return reflect("not withheld", "the kernel's defaults")


@long
@waits
@timeout(900)
def test_withheld_default_kernel():
    """SYNs withheld, with the kernel's defaults."""
    return reflect("withheld", "the kernel's defaults")


if __name__ == "__main__":
    main()
