#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertd_demand.py - convertd demands cookies while too many clients haven't proved their addresses: when, of whom, until when"""
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
PENDING = 400           # --max-pending, of which this is what --cookie-demand has by default:
MOST = PENDING * 12 // 100
UNLIMITED = ("--max-pending-per-client", "0", "--max-errors-per-client", "0")


def near(delay_ms=60, **options):
    """Returns a lab whose round trip is so long that requests in SYNs are decided before any third ACK, even on a busy machine."""
    return Lab(wifi=Link(delay_ms=delay_ms), lte=None, core=Link(delay_ms=0.1), **options)


def served(client, server, request):
    """Checks that the client is connected to the server. Forged SYNs ask for the server as well, so the client is known by its bytes."""
    extended_header(client.send(request + MINE).answer())
    wait_heard(server)


MINE = b"it is me"


def wait_heard(server):
    """Accepts connections until one brings the client's bytes; those of forged SYNs stay silent, or end."""
    accepted = []

    def hears():
        # Forged SYNs of before may have left more connections than one a turn could take in time.
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
    """Forged SYNs with requests for a server, all the time: each from another address, TCP and MPTCP in turn.

    So many in a second are three times what has cookies demanded, as each is unproven for three seconds, and fewer than the kernel
    takes data from SYNs for (half of --max-pending): clients whose data it doesn't take prove themselves by their handshakes.
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
            # of everybody, as there are too many of each family: strangers of both come from one prefix each
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
    """It begins, nothing that is forged reaches the server, clients are served with a cookie or behind their handshake; it ends."""
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
            # another one's, or one of before a restart
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
    """A flood from one prefix is that one's affair: nothing of it reaches the server, and others are served without a cookie."""
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
    """A reload keeps the key; after a restart clients are given another cookie."""
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
        check(other != cookie, "the key of before")
        with Client(lab.client, lab.converter.addr4) as client:
            served(client, server, message(target, cookie_tlv(other)))


@long
@waits
@kernel.needs("fastopen")
def test_shared_address():
    """Another converter's cookie isn't replaced, to and fro: such a client is served behind its handshake."""
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
    """Where a flood has used up the errors, clients without a cookie are served behind their handshake, and none is reset."""
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
    """0 stands for never; and where cookies are required anyway, none but those count."""
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
    """curl under the shim, during a flood: it learns the cookie, and has it in the SYN from then on."""
    for hold in HOLD:
        with near(delay_ms=15) as lab:  # a first connection whose answer is late would ask the path as well, and have more answers
            lab.http(8080)
            with flooded(lab, hold) as (_, process, _):
                curl = ["curl", "-q", "-sS", "--http1.0", "-w", "%{size_download} "]
                curl += ["-o", "/dev/null", "http://%s:8080/bytes/1000" % lab.server.addr4] * 5
                result = lab.client.run(curl, env=lab.converted(CONVERT_FALLBACK="none"))
                equal(result.stdout, "1000 " * 5, "bytes")
                ours = [line for line in process.log_text().splitlines() if lab.client.wifi4 in line]
                asked = [line for line in ours if " to nowhere: " not in line]  # a busy machine has the shim ask the path as well
                equal(sum("missing cookie" in line for line in asked), 1, "answers without a cookie: %s" % ours)
                equal(lab.shim_log().count("converted over MPTCP"), 5, "converted connections: " + lab.shim_log())


if __name__ == "__main__":
    main()
