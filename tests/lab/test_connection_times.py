#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_connection_times.py - connections and their first bytes come as soon as the links and the server allow"""
import time

from convertlab import Lab, Link, equal, kernel, main, measured, measures, repetitions
from convertlab.peers import TCP, Client, connect, connect_tlv, converter, extended_header, message
from test_convertd_reflection import GET, Behaving, near
from test_fallback import runtime
from test_shim_semantics import probe
from test_transfers import slowest_of


@measures
def test_first_bytes():
    """Over plain TCP the answer comes before the third ACK, and so do the server's first bytes if the SYN had early data: these pay for
    one more segment."""
    with near(wifi=Link(delay_ms=100)) as lab, Behaving(lab, 25, lambda sock: sock.sendall(b"2" * 3000)):
        with converter(lab, "--hold-syn", "off"):
            for address in (lab.converter.addr4, lab.converter.addr6):
                for early in (b"", GET):
                    with Client(lab.client, address, TCP) as client:
                        start = time.monotonic()
                        client.send(connect(lab.server.addr4, 25) + early)
                        extended_header(client.answer())
                        answered = time.monotonic() - start
                        first = client.read(1), time.monotonic() - start
                        rest = client.read(2999), time.monotonic() - start
                    equal((first[0], rest[0]), (b"2", b"2" * 2999), "bytes")
                    # a round trip is 200 ms; an answer that waits for the third ACK takes two
                    measured(0.195 < answered < 0.35, "the answer after %.0f ms" % (answered * 1000))
                    measured(not early or first[1] < 0.35, "the first byte after %.0f ms" % (first[1] * 1000))
                    measured(0.39 < rest[1] < 0.59, "the last byte after %.0f ms" % (rest[1] * 1000))


@measures
def test_first_bytes_with_a_cookie():
    """A client that has proved its address gets the server's bytes before its third ACK, without early data, too."""
    with near(wifi=Link(delay_ms=40)) as lab, Behaving(lab, 25, lambda sock: sock.sendall(b"2" * 3000)):
        path = lab.directory + "/keys"
        lab.converter.run([lab.build.program("convertd"), "--make-key", path])
        with converter(lab, "--hold-syn", "off", "--cookie-key", path):
            target = connect_tlv(lab.server.addr4, 25)
            with Client(lab.client, lab.converter.addr4, TCP) as client:
                cookie = client.send(message(target)).answer()[8:]
            equal(len(cookie), 16, "bytes of a cookie")
            with Client(lab.client, lab.converter.addr4, TCP) as client:
                start = time.monotonic()
                extended_header(client.send(message(target, b"\x16\x05\0\0" + cookie)).answer())
                first = client.read(1), time.monotonic() - start
                equal(first[0] + client.read(2999), b"2" * 3000, "bytes")
                measured(0.075 < first[1] < 0.12, "the first byte after %.0f ms" % (first[1] * 1000))


@measures
def test_a_slow_server():
    """
    A client's second SYN, after a second, would cost the connection its Multipath TCP: convertd lets the withheld SYN go before that,
    and connects to the server once.
    """
    with Lab(wifi=Link(delay_ms=10), lte=None, core=Link(delay_ms=600)) as lab:
        lab.convertd()
        echo = lab.echo()
        env = lab.converted(CONVERT_CACHE=runtime(lab), CONVERT_ADDR=lab.converter.addr4)
        for _ in range(3):
            _, ms = probe(lab, "blocking", lab.server.addr4, 7, env)
            # a SYN that was sent again would cost a second
            measured(1200 <= ms < 2100, "connected after %.0f ms; the shim:\n%s" % (ms, lab.shim_log()))
        equal(lab.shim_log().count(kernel.verdict()), 3, "conversions in\n" + lab.shim_log())
        equal(echo.log_text().count("accepted"), 3, "connections at the server")


@measures
def test_1000_connections_to_a_server_near_the_converter():
    """The answer is ready long before the third ACK, and waits for nothing else (kernel: MPTCP in SYN_RECV)."""
    with Lab(wifi=Link(delay_ms=25), lte=None, core=None) as lab:
        lab.convertd()
        lab.echo()
        count = repetitions(1000)
        slowest = slowest_of(lab, "epoll", count, count // 20)
        measured(slowest < 1.0, "the slowest of %d took %.3f s, with 0.15 s of round trips" % (count, slowest))
        equal(lab.shim_log().count(kernel.verdict()), count, "conversions")
        return "slowest %.3f s" % slowest


if __name__ == "__main__":
    main()
