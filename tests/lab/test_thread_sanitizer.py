#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_thread_sanitizer.py - no data race in the shim, in an instrumented program with many threads; nor in convertd

Only in builds with --enable-sanitizers=thread: ThreadSanitizer ends a program that has a race with 66.
"""
import contextlib
import os
import signal
import threading

from convertlab import Lab, Link, check, equal, main, metrics, wait_until
from convertlab.peers import MPTCP, TCP, Client, connect, converter, octets


def run(threads, connections, *more, **env):
    with Lab(wifi=Link(delay_ms=5), lte=None, core=Link(delay_ms=1)) as lab:
        lab.convertd()
        lab.echo()
        directory = os.path.join(lab.directory, "runtime")
        os.mkdir(directory, 0o700)
        env = lab.converted(XDG_RUNTIME_DIR=directory, TSAN_OPTIONS="exitcode=66", **env)
        program = lab.build.program("tests/lab/apps/threads")
        result = lab.client.run([program, lab.server.addr4, 7, threads, connections, *more], env=env)
        equal((result.stdout, result.stderr), ("done %d\n" % (threads * connections), ""), "what the program says")
        equal(lab.shim_log().count("converted over"), threads * connections, "conversions")


def test_handshakes():
    run(16, 50)


def test_early_data():
    run(16, 50, CONVERT_EARLY_DATA="1")


def test_confirmed():
    """Several threads use connections that the SYN+ACK has confirmed, before the response comes."""
    run(16, 50, CONVERT_WITHHOLDING="2000")


def test_forks():
    """The shim's work on pending connections before fork(), and the steps that processes share after it."""
    run(8, 30, "forks")


def test_next_converter():
    """All threads find at once that the first converter refuses."""
    run(16, 20, CONVERT_ADDR="10.9.0.1:999,10.9.0.1")


class Churn(threading.Thread):
    """Clients of every kind, one after the other, while go_on is true. convertd's limits are low, so it may reset any of them."""

    def __init__(self, lab):
        super().__init__()
        self._lab, self.served, self.go_on = lab, 0, True

    def _client(self, stack, protocol, delivery):
        return stack.enter_context(Client(self._lab.client, self._lab.converter.addr4, protocol, delivery))

    def _converse(self, stack):
        for _ in range(6):
            with contextlib.suppress(OSError):
                self._client(stack, TCP, "behind").send(octets("01"))
        for protocol in (TCP, MPTCP):
            for delivery, request in (("bytewise", connect(self._lab.server.addr4, self._lab.addresses.refused_port)),
                                      ("syn", octets("01022263 00010000")), ("syn", connect(self._lab.server.addr4, 7) + b"hello")):
                with contextlib.suppress(OSError):
                    client = self._client(stack, protocol, delivery).send(request)
                    if client.answer()[4:5] == b"\x14":
                        self.served += client.read(5) == b"hello"

    def run(self):
        while self.go_on:
            with contextlib.ExitStack() as stack:
                self._converse(stack)


class Asker(threading.Thread):
    """Fetches all of convertd's pages, while go_on is true."""

    def __init__(self, lab):
        super().__init__()
        self._lab, self.served, self.go_on = lab, 0, True

    def run(self):
        while self.go_on:
            for page in ("/", "/status", "/metrics", "/healthz"):
                self.served += metrics.get(self._lab.converter, page)[0] == 200


def test_convertd():
    """Three workers, clients that come and go, limits for which workers make room for each other, pages, reloads, the end."""
    with Lab(wifi=Link(delay_ms=0.5), lte=None, core=Link(delay_ms=0.1)) as lab:
        lab.echo()
        path = os.path.join(lab.directory, "convertd.conf")

        def write(number):
            with open(path, "w", encoding="ascii") as file:
                file.write("listen 10.9.0.1:1234\nlisten 10.9.0.1:%d\nmax-pending 8\nidle-timeout %d\nmax-errors-per-client 5\n"
                           % (1235 + number % 2, number + 5))
        write(0)
        with converter(lab, "--workers", "3", "--log-level", "debug", "--config", path, *metrics.OPTIONS,
                       env={"TSAN_OPTIONS": "exitcode=66"},
                       defaults=("--allow-client", "::/0", "--allow-destination", "10.0.0.0/8")) as process:
            churn = [Churn(lab) for _ in range(4)] + [Asker(lab)]
            for thread in churn:
                thread.start()
            for i in range(20):
                write(i)
                count = process.log_text().count("reloaded:")
                process.send_signal(signal.SIGHUP)
                wait_until(lambda: process.log_text().count("reloaded:") > count, 20, "the reload")  # pylint: disable=W0640
            wait_until(lambda: all(thread.served >= 20 for thread in churn), 30, "clients that are served")
            for thread in churn:
                thread.go_on = False
            for thread in churn:
                thread.join()
            check("too many pending requests" in process.log_text(), "no worker had to make room")


if __name__ == "__main__":
    main()
