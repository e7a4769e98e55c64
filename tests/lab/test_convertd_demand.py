#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertd_demand.py - convertd demands cookies while too many clients are unproven: when, from which clients, and until when"""
import contextlib
import select
import signal
import threading

from convertlab import Lab, Link, check, equal, kernel, long, main, wait_until, waits
from convertlab.forging import LINUX, MP_CAPABLE, Forge, is_forged, route_back
from convertlab.harness import timeout
from convertlab.metrics import OPTIONS as METRICS, Metrics, wait_metrics
from convertlab.peers import (MPTCP, TCP, Client, Server, connect_tlv, converter, cookie_tlv, extended_header, message,
                              missing_cookie)

HOLD = ("on", "off")
PENDING = 400              # --max-pending
MOST = PENDING * 12 // 100  # unproven clients: --cookie-demand is 12 percent of --max-pending by default
UNLIMITED = ("--max-pending-per-client", "0", "--max-errors-per-client", "0")


def near(delay_ms=60, **options):
    """Returns a lab with a round trip so long that convertd judges requests in SYNs before any third ACK, even on a busy machine."""
    return Lab(wifi=Link(delay_ms=delay_ms), lte=None, core=Link(delay_ms=0.1), **options)


def served(client, server, request):
    """Checks that the client is connected to the server, which knows it by its bytes, since forged SYNs ask for the server, too."""
    extended_header(client.send(request + MINE).answer())
    wait_heard(server)


MINE = b"it is me"


def wait_heard(server):
    """Accepts connections until one brings the client's bytes; those for forged SYNs stay silent, or end."""
    accepted = []

    def hears():
        # Earlier forged SYNs may have left so many connections that one for each call would take too long.
        while select.select([server.sock], [], [], 0)[0]:
            accepted.append(server.accept())
        for sock in select.select(accepted, [], [], 0.2)[0]:
            with contextlib.suppress(ConnectionResetError):
                if sock.recv(8) == MINE:
                    return True
            accepted.remove(sock)
            sock.close()
        return False
    try:
        wait_until(hears, 10, "the client's connection")
    finally:
        for sock in accepted:
            sock.close()


class Flood:
    """Sends forged SYNs with requests for a server all the time: each from another address, TCP and MPTCP in turn.

    At this rate three times as many clients are unproven as convertd permits without cookies, since each is unproven for three seconds.
    That is less than half of --max-pending, above which the kernel leaves data in SYNs out: such clients prove themselves by handshakes.
    """

    def __init__(self, lab, server, rate=50, families=(False, True)):
        self._lab, self._server, self._rate, self._families = lab, server, rate, families
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def stop(self):
        """Ends the flood."""
        self._stop.set()
        self._thread.join()

    def __exit__(self, *_):
        self.stop()

    def _send(self):
        with Forge(self._lab) as forge:
            number = 0
            while not self._stop.is_set():
                for _ in range(10):
                    number += 1
                    forge.request(number % 60000, self._lab.server.addr4, self._server.port,
                                  LINUX + (MP_CAPABLE if number % 2 else b""), v6=self._families[number // 2 % len(self._families)])
                self._stop.wait(10 / self._rate)


@contextlib.contextmanager
def flooded(lab, hold, *arguments, flood=None):
    """Yields (the server, convertd, the flood) while cookies are demanded."""
    route_back(lab)
    with Server(lab, 80, backlog=4096) as server, \
            converter(lab, "--hold-syn", hold, "--max-pending", str(PENDING), *UNLIMITED, *METRICS, *arguments) as process:
        with Flood(lab, server) if flood is None else flood(lab, server) as flooding:
            wait_metrics(lab.converter, lambda metrics: metrics("convertd_cookies_demanded") == 1, "cookies to be demanded")
            # from all clients, since both families have too many: the forged addresses of each are one prefix
            wait_metrics(lab.converter, lambda metrics: metrics("convertd_unproven_clients") > 2.4 * MOST, "both to be too many")
            yield server, process, flooding


def servers_syns(lab, capture):
    """Returns the captured SYNs to the server."""
    return [packet for packet in capture.packets() if packet.syn and packet.dst in (lab.server.addr4, lab.server.addr6)]


@long
@waits
@kernel.needs("fastopen")
@timeout(300)
def test_demand():
    """The demand begins; no forged SYN reaches the server, and clients are served with a cookie or behind their handshake; it ends."""
    for hold in HOLD:
        with near() as lab, flooded(lab, hold) as (server, process, flood):
            process.wait_log("cookies are demanded")
            target = connect_tlv(lab.server.addr4, 80)
            cookies = {}
            with lab.capture(lab.converter, "core", "tcp") as core, lab.capture(lab.converter, "wifi", "tcp") as wifi:
                for address in (lab.converter.addr4, lab.converter.addr6):
                    for protocol in (TCP, MPTCP):
                        with Client(lab.client, address, protocol) as client:
                            cookie = missing_cookie(client.send(message(target)).answer())
                            cookies.setdefault(address, cookie)
                            equal(cookie, cookies[address], "the cookie for one address")
                wait_until(lambda: Metrics(lab.converter)("convertd_connections_accepted_total") > 4 * MOST, 20, "a flood")
            equal(len(servers_syns(lab, core)), 0, "SYNs to the server")
            forged = sum(packet.syn and is_forged(packet.src) for packet in wifi.packets())
            check(forged > MOST, "%d forged SYNs meanwhile" % forged)
            with lab.capture(lab.converter, "core", "tcp") as core:
                asked = 0
                for address, cookie in cookies.items():
                    for protocol in (TCP, MPTCP):
                        for delivery, tlvs in (("syn", (target, cookie_tlv(cookie))), ("behind", (target,))):
                            asked += 1
                            with Client(lab.client, address, protocol, delivery) as client:
                                served(client, server, message(*tlvs))
            equal(len(servers_syns(lab, core)), asked, "SYNs to the server")
            # a wrong cookie, such as another client's, or one from before a restart
            for protocol in (TCP, MPTCP):
                with Client(lab.client, lab.converter.addr4, protocol) as client:
                    wrong = message(target, cookie_tlv(bytes(16)))
                    equal(missing_cookie(client.send(wrong).answer()), cookies[lab.converter.addr4], "instead of a wrong cookie")
            flood.stop()
            wait_metrics(lab.converter, lambda metrics: metrics("convertd_unproven_clients") <= MOST // 2, "a calm")
            wait_until(lambda: Metrics(lab.converter)("convertd_cookies_demanded") == 0, 15, "the end of the demand")
            check("cookies are no longer demanded" in process.log_text(), process.log_text())
            for protocol in (TCP, MPTCP):
                with Client(lab.client, lab.converter.addr4, protocol) as client:
                    served(client, server, message(target))
            metrics = Metrics(lab.converter)
            equal((metrics("convertd_cookie_demands_total"), metrics("convertd_max_unproven_clients")), (1, MOST), "metrics")
            wait_metrics(lab.converter, lambda metrics: metrics("convertd_unproven_clients") == 0, "none to be left")


@long
@waits
@kernel.needs("fastopen")
def test_of_one_prefix():
    """convertd demands cookies from a prefix that floods it: none of its SYNs reach the server, and other clients need no cookie."""
    for hold in HOLD:
        with near() as lab, Server(lab, 80, backlog=4096) as server:
            route_back(lab)
            with converter(lab, "--hold-syn", hold, "--max-pending", str(PENDING), *UNLIMITED, *METRICS), \
                    Flood(lab, server, families=(False,)):
                wait_metrics(lab.converter, lambda metrics: metrics("convertd_cookies_demanded") == 1, "cookies to be demanded")
                accepted = Metrics(lab.converter)("convertd_connections_accepted_total")
                with lab.capture(lab.converter, "core", "tcp") as core:
                    for address in (lab.converter.addr4, lab.converter.addr6):
                        for protocol in (TCP, MPTCP):
                            with Client(lab.client, address, protocol) as client:
                                served(client, server, message(connect_tlv(lab.server.addr4, 80)))
                    wait_metrics(lab.converter, lambda metrics: metrics("convertd_connections_accepted_total") > accepted + MOST,  # pylint: disable=W0640
                                 "more of the flood")
                equal(len(servers_syns(lab, core)), 4, "SYNs to the server")


@long
@waits
@kernel.needs("fastopen")
@timeout(300)
def test_reload_and_restart():
    """A reload keeps the key; after a restart, clients get another cookie."""
    with near() as lab:
        target = connect_tlv(lab.server.addr4, 80)
        with flooded(lab, "off") as (server, process, _):
            with Client(lab.client, lab.converter.addr4) as client:
                cookie = missing_cookie(client.send(message(target)).answer())
            process.send_signal(signal.SIGHUP)
            process.wait_log("reloaded:")
            with Client(lab.client, lab.converter.addr4) as client:
                served(client, server, message(target, cookie_tlv(cookie)))
    with near() as lab, flooded(lab, "off") as (server, process, _):
        with Client(lab.client, lab.converter.addr4) as client:
            other = missing_cookie(client.send(message(target, cookie_tlv(cookie))).answer())
        check(other != cookie, "the key has survived the restart")
        with Client(lab.client, lab.converter.addr4) as client:
            served(client, server, message(target, cookie_tlv(other)))


@long
@waits
@kernel.needs("fastopen")
def test_shared_address():
    """With --shared-address, convertd doesn't replace another converter's cookie, but serves this client behind its handshake."""
    with near() as lab, flooded(lab, "off", "--shared-address", "192.0.2.1") as (server, _, _):
        target = connect_tlv(lab.server.addr4, 80)
        for protocol in (TCP, MPTCP):
            with Client(lab.client, lab.converter.addr4, protocol) as client:
                served(client, server, message(target, cookie_tlv(bytes(16))))
            with Client(lab.client, lab.converter.addr4, protocol) as client:
                missing_cookie(client.send(message(target)).answer())


@long
@waits
@kernel.needs("fastopen")
def test_errors_are_few():
    """When a flood has used up --max-errors, convertd serves clients without a cookie behind their handshake, and resets none."""
    for hold in HOLD:
        with near() as lab, flooded(lab, hold, "--max-errors", "2") as (server, _, _):
            behind = 0
            for number in range(6):
                with Client(lab.client, lab.converter.addr4, (TCP, MPTCP)[number % 2]) as client:
                    answer = client.send(message(connect_tlv(lab.server.addr4, 80)) + MINE).answer()
                    if answer[4:7] != b"\x1e\x05\x03":
                        extended_header(answer)
                        wait_heard(server)
                        behind += 1
            check(behind > 2, "%d of 6 were served behind their handshake" % behind)


def test_never():
    """With --cookie-demand 0, convertd never demands cookies."""
    with near() as lab:
        route_back(lab)
        with Server(lab, 80, backlog=4096) as server, \
                converter(lab, "--max-pending", str(PENDING), *UNLIMITED, *METRICS, "--cookie-demand", "0"), \
                Flood(lab, server):
            wait_metrics(lab.converter, lambda metrics: metrics("convertd_unproven_clients") > MOST, "a flood")
            equal(Metrics(lab.converter)("convertd_cookies_demanded"), 0, "demanded")
            with Client(lab.client, lab.converter.addr4) as client:
                served(client, server, message(connect_tlv(lab.server.addr4, 80)))


@long
@waits
@kernel.needs("fastopen")
def test_the_shim():
    """curl under the shim, during a flood: it learns the cookie by its first connection, and then sends it in SYNs."""
    for hold in HOLD:
        with near(delay_ms=15) as lab:  # if its first answer is late, the shim also probes the path, and gets more answers
            lab.http(8080)
            with flooded(lab, hold) as (_, process, _):
                curl = ["curl", "-q", "-sS", "--http1.0", "-w", "%{size_download} "]
                curl += ["-o", "/dev/null", "http://%s:8080/bytes/1000" % lab.server.addr4] * 5
                result = lab.client.run(curl, env=lab.converted(CONVERT_FALLBACK="none"))
                equal(result.stdout, "1000 " * 5, "bytes")
                ours = [line for line in process.log_text().splitlines() if lab.client.wifi4 in line]
                asked = [line for line in ours if " to nowhere: " not in line]  # without the probes that a busy machine may cause
                equal(sum("missing cookie" in line for line in asked), 1, "answers without a cookie: %s" % ours)
                equal(lab.shim_log().count("converted over MPTCP"), 5, "converted connections: " + lab.shim_log())


if __name__ == "__main__":
    main()
