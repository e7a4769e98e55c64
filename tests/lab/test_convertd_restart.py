#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertd_restart.py - one convertd replaces another: new clients are served at once, and old connections go on to their ends

A slow download runs all the time, so that the old process has to go on; other clients connect meanwhile.
"""
import contextlib
import os
import signal
import threading
import time

from convertlab import Lab, Link, Unsuitable, check, equal, long, main, metrics, need, timeout, wait_until, waits
from convertlab.hosts import is_alive
from convertlab.manager import Manager
from convertlab.peers import MPTCP, TCP, Client, Server, connect, connections, error, extended_header
from convertlab.systemd import Systemd

SANITIZED = bool(os.environ.get("SANITIZER_PRELOAD"))

PIECE = 500
SYN_SENT = "02"  # include/net/tcp_states.h
DRAIN, STOPPED_BY_FORCE = 30, 90  # seconds: the default of --drain-timeout, and of systemd's TimeoutStopSec


@contextlib.contextmanager
def near():
    """Yields a lab whose links are too fast to matter, and a server that echoes."""
    with Lab(wifi=Link(delay_ms=0.5), lte=None, core=Link(delay_ms=0.1)) as lab:
        lab.echo()
        yield lab


def start(lab, *arguments):
    """Starts convertd as a shell does, even beside another one, with its default time to drain."""
    return lab.converter.popen([lab.build.program("convertd"), "--allow-client", "::/0", "--allow-destination", "10.0.0.0/8",
                                "--workers", "2", *arguments], name="convertd")


class Download:
    """A connection with up to a hundred pieces a second from the server, until end() or cut(), which compares all bytes."""

    def __init__(self, lab, port=8080, protocol=MPTCP):
        self._server = Server(lab, port)
        with self._server:
            self.client = Client(lab.client, lab.converter.addr4, protocol).send(self._server.connect())
            self._sock = self._server.accept()
        extended_header(self.client.answer())
        self._stop = threading.Event()
        self._sent = 0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    @staticmethod
    def _piece(number):
        return (b"%09d " % number) * (PIECE // 10)

    def _run(self):
        with contextlib.suppress(OSError), self._sock:
            while not self._stop.wait(0.01):
                self._sock.sendall(self._piece(self._sent))
                self._sent += 1

    def look(self):
        """Reads a piece; fails if the download has ended."""
        return self.client.read(PIECE)

    def end(self, read=0):
        """Ends it at the server; all pieces must arrive, and then a regular end. read: how many pieces were read already."""
        self._stop.set()
        self._thread.join(30)
        for number in range(read, self._sent):
            equal(self.client.read(PIECE), self._piece(number), "piece %d of the download" % number)
        equal(self.client.end(), (b"", "closed"), "the end of the download")
        self.client.sock.close()
        return self._sent * PIECE


    def cut(self):
        """Checks that it was cut: the stream ends by a reset."""
        self._stop.set()
        self._thread.join(30)
        with contextlib.suppress(ConnectionResetError):
            while self.client.sock.recv(65536):
                pass
            check(False, "a stream that was cut ended as if it were whole")
        self.client.sock.close()


class Comers:
    """Clients that connect one after the other; each has a number echoed, and is timed."""

    def __init__(self, lab, protocol, delivery):
        self.name = "%s, %s" % ("TCP" if protocol == TCP else "MPTCP", delivery)
        self._what = (lab, protocol, delivery)
        self.times = []
        self.without_data = 0  # clients whose SYN has arrived without its data
        self.error = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        lab, protocol, delivery = self._what
        request = connect(lab.server.addr4, 7)
        while not self._stop.is_set() and not self.error:
            text = b"%08d" % len(self.times)
            start = time.monotonic()
            try:
                with Client(lab.client, lab.converter.addr4, protocol, delivery) as client:
                    extended_header(client.send(request + text).answer())
                    equal(client.read(8), text, "the echo")
                    self.without_data += client.first_syn_is_lost()
            except (OSError, AssertionError) as error:
                self.error = "client %d, after %.2f s: %r" % (len(self.times), time.monotonic() - start, error)
            self.times.append(time.monotonic() - start)

    def end(self):
        """Waits for the last client."""
        self._stop.set()
        self._thread.join(40)


@contextlib.contextmanager
def load(lab):
    """Runs clients of each kind inside `with`: each must be served, and no SYN may be lost, or find a full queue. Yields a function that
    waits for more of them."""
    sent_again, overflows = lab.client.counters()["TcpExtTCPSynRetrans"], lab.converter.counters()["TcpExtListenOverflows"]
    comers = [Comers(lab, protocol, delivery) for protocol in (TCP, MPTCP) for delivery in ("syn", "behind")]

    def more():
        before = [len(kind.times) for kind in comers]
        wait_until(lambda: all(kind.error or len(kind.times) > count + 5 for kind, count in zip(comers, before)), 40, "clients")
    try:
        more()
        yield more
        more()
    finally:
        for kind in comers:
            kind.end()
    check(not any(kind.error for kind in comers), [kind.name + ": " + kind.error for kind in comers if kind.error])
    equal(lab.converter.counters()["TcpExtListenOverflows"], overflows, "clients that found a full queue")
    # a busy machine may answer so late that SYNs are sent again
    sent_again = lab.client.counters()["TcpExtTCPSynRetrans"] - sent_again
    check(not sent_again or not any(kind.without_data for kind in comers), "%d SYNs were sent again, since first ones were lost: %s" % (
        sent_again, {kind.name: kind.without_data for kind in comers}))
    slowest = max(max(kind.times) for kind in comers)
    more.said = "%d clients, the slowest took %.0f ms" % (sum(len(kind.times) for kind in comers), 1000 * slowest)


def tables(lab):
    """Returns the nftables tables of the converter's host."""
    return lab.converter.run(["nft", "list", "tables"]).stdout


# --- each way of restarting --------------------------------------------------------------------------------------------


def test_service_manager():
    """Restarts as by systemctl, while each old process has a download; with SYNs withheld or not."""
    for hold in ("auto", "off"):
        with near() as lab, Manager(lab) as manager:
            arguments = ("--workers", "2", "--hold-syn", hold, *metrics.OPTIONS)
            process = manager.start(*arguments)
            manager.wait("READY=1")
            downloads, serving = [Download(lab)], [process.serving]
            with load(lab) as more:
                for i in range(3):
                    more()
                    start = time.monotonic()
                    process = manager.restart(process, *arguments)
                    manager.wait("READY=1")
                    took = time.monotonic() - start
                    check(took < DRAIN, "the restart took %.1f s, as if it waited for the downloads" % took)
                    downloads.append(Download(lab, 8081 + i, (TCP, MPTCP)[i % 2]))
                    serving.append(process.serving)
            check(all(is_alive(number) for number in serving), "a process has not waited for its download")
            for number, download in zip(serving, downloads):
                download.end()
                if number != process.serving:
                    wait_until(lambda: not is_alive(number), 10, "the end of a process without sessions")  # pylint: disable=W0640
            equal(process.stop(), 0, "the status")
            manager.forget()
            wait_until(lambda: not is_alive(serving[-1]), 10, "the end of the last process")
    return more.said


def test_fewer_workers():
    """The next process has fewer workers than its predecessor has left sockets: a worker serves several of them."""
    with near() as lab, Manager(lab) as manager:
        process = manager.start("--workers", "4")
        manager.wait("READY=1")
        with load(lab) as more:
            more()
            process = manager.restart(process, "--workers", "1")
            manager.wait("READY=1")
        equal(len(manager.kept), 4, "sockets that are kept")
        equal(process.stop(), 0, "the status")
    return more.said


@long
@waits
@timeout(240)
def test_systemd():
    """The real systemd, with the installed unit: restarts, a changed configuration, a stop."""
    need("nft", "nftables")
    if SANITIZED:
        raise Unsuitable("the unit's sandbox and a sanitizer's run-time library don't go together")
    with near() as lab, Systemd(lab, "drain-timeout 60", "workers 2") as systemd:
        systemd.systemctl("start", "convertd")
        downloads = [Download(lab)]
        with load(lab) as more:
            for i in range(3):
                more()
                start_time = time.monotonic()
                systemd.systemctl("restart", "convertd")
                took = time.monotonic() - start_time
                check(took < 60, "the restart took %.1f s, as if it waited for the downloads" % took)
                equal(systemd.show("ActiveState"), "active", "the state")
                downloads.append(Download(lab, 8081 + i, (TCP, MPTCP)[i % 2]))
            equal(systemd.serving(), len(downloads), "processes that serve")
            systemd.configure("drain-timeout 2", "workers 2")
            systemd.systemctl("restart", "convertd")
        for download in downloads:
            download.end()
        # the old processes end with their connections
        wait_until(lambda: systemd.serving() == 1, 10, "the end of the old ones")
        left = Download(lab, 8090)
        start_time = time.monotonic()
        systemd.systemctl("stop", "convertd")
        took = time.monotonic() - start_time
        check(took < STOPPED_BY_FORCE, "the stop took %.1f s, as if by force" % took)
        left.look()
        wait_until(lambda: not systemd.processes(), 10, "the end of all")
        equal(tables(lab), "", "tables")
        left.cut()
        return more.said


def test_same_command():
    """SIGTERM, and the same command while the old process drains: all addresses but the one for HTTP are free, and new clients served."""
    with near() as lab:
        process = start(lab, *metrics.OPTIONS)
        process.wait_log("ready")
        old, downloads = [], []
        for i in range(3):
            downloads.append(Download(lab, 8080 + i))
            process.send_signal(signal.SIGTERM)
            process.wait_log("may go on")
            old.append(process)
            process = start(lab)
            process.wait_log("ready")
            with load(lab):
                pass
        equal(metrics.get(lab.converter, "/healthz")[::2], (503, "draining\n"), "health of the first process, which drains")
        for one, download in zip(old, downloads):
            check(one.poll() is None, "an old process has not waited for its download")
            download.end()
            equal(one.wait(10), 0, "the status")
        equal(process.stop(), 0, "the status")


def test_place_is_not_shared():
    """A second convertd while the first one serves: it ends with the remedy, and disturbs nothing."""
    with near() as lab:
        first = start(lab, *metrics.OPTIONS)
        first.wait_log("ready")
        with load(lab):
            second = start(lab)
            equal(second.wait(10), 1, "the status")
            check("another process listens there (end it first" in second.log_text(), second.log_text())
        equal(metrics.get(lab.converter, "/healthz")[::2], (200, "ok\n"), "health")
        equal(first.stop(), 0, "the status")


# --- failures and stops ------------------------------------------------------------------------------------------------


def test_next_one_fails():
    """The next convertd's configuration is wrong, or impossible on this host: clients wait in the kept sockets, until it is mended."""
    with near() as lab, Manager(lab) as manager:
        path = os.path.join(lab.directory, "convertd.conf")

        def configure(text):
            with open(path, "w", encoding="ascii") as file:
                file.write("workers 2\n" + text)
        configure("")
        process = manager.start("--config", path)
        manager.wait("READY=1")
        old = process.serving
        download = Download(lab)
        process.send_signal(signal.SIGTERM)
        equal(process.wait(20), 0, "the status")
        request = connect(lab.server.addr4, 7)
        with contextlib.ExitStack() as stack:
            waiting = [stack.enter_context(Client(lab.client, lab.converter.addr4, protocol, delivery)).send(request + b"12345678")
                       for protocol in (TCP, MPTCP) for delivery in ("syn", "behind")]
            for text, status in (("connect-timeout soon\n", 2), ("listen 192.0.2.77:1234\nlisten [::]:1234\n", 1)) * 2:
                configure(text)
                process = manager.start("--config", path)
                equal(process.wait(20), status, "the status with a wrong configuration: " + process.log_text())
            check(is_alive(old), "the old one hasn't gone on with its download")
            configure("")
            process = manager.start("--config", path)
            manager.wait("READY=1")
            for client in waiting:
                extended_header(client.answer())
                equal(client.read(8), b"12345678", "the echo")
        download.end()
        wait_until(lambda: not is_alive(old), 10, "the end of the old one")
        equal(process.stop(), 0, "the status")


@long
@waits
def test_stopped_for_good():
    """The manager closes the kept sockets: new clients are refused, sessions have --drain-timeout, and then nothing is left."""
    need("nft", "nftables")
    with near() as lab, Manager(lab) as manager:
        process = manager.start("--workers", "2", "--drain-timeout", "15")
        manager.wait("READY=1")
        serving = process.serving
        with Client(lab.client, lab.converter.addr4, MPTCP) as client, Server(lab, 80) as server:
            extended_header(client.send(server.connect()).answer())
            sock = server.accept()
            process.send_signal(signal.SIGTERM)
            manager.wait("STOPPING=1")
            equal(process.wait(20), 0, "the status")
            check(is_alive(serving), "the serving process has gone with its session")
            manager.forget()

            def refused():
                try:
                    with Client(lab.client, lab.converter.addr4, TCP, "behind") as late:
                        late.send(b"")
                    return False
                except ConnectionResetError:
                    return False  # the listener was closed amid its handshake
                except ConnectionRefusedError:
                    return True
            wait_until(refused, 10, "new clients to be refused")
            sock.sendall(b"d")
            equal(client.read(1), b"d", "a byte in the drain")
            wait_until(lambda: not is_alive(serving), 30, "the end of the drain")
            equal(client.end(), (b"", "reset"), "the end of a session that was cut")
            sock.close()
        equal(tables(lab), "", "tables")


def test_no_manager_that_keeps():
    """With FileDescriptorStoreMax=0 the main process stays until the drain is over, since the manager knows nothing but its process ID."""
    with near() as lab, Manager(lab, keeps=False) as manager:
        process = manager.start()
        manager.wait("READY=1")
        download = Download(lab)
        process.send_signal(signal.SIGTERM)
        manager.wait("STOPPING=1")
        download.look()
        check(process.poll() is None, "the main process has gone")
        download.end(read=1)
        equal(process.wait(10), 0, "the status")


def test_requests_on_their_way():
    """A restart loses no client that has sent half a request, or whose server hasn't answered yet."""
    arguments = "--workers", "1", "--connect-timeout", "30"
    with near() as lab, Server(lab, 80) as server, Manager(lab) as manager:
        process = manager.start(*arguments)
        manager.wait("READY=1")
        half = [Client(lab.client, lab.converter.addr4, protocol, "behind").send(server.connect()[:7]) for protocol in (TCP, MPTCP)]
        # the server answers late, since its host drops SYNs
        lab.server.run(["nft", "add table inet late; add chain inet late in { type filter hook input priority 0; }; "
                        "add rule inet late in tcp dport 80 drop"])
        pending = [Client(lab.client, lab.converter.addr4, protocol, delivery).send(server.connect())
                   for protocol in (TCP, MPTCP) for delivery in ("syn", "behind")]
        # convertd has read these requests, and has accepted the clients before them
        wait_until(lambda: connections(lab.converter, SYN_SENT).count(80) == len(pending), 10, "SYNs to the server")
        process = manager.restart(process, *arguments)
        manager.wait("READY=1")
        lab.server.run(["nft", "delete table inet late"])
        for client in half:
            client.sock.sendall(server.connect()[7:])
        for client in half + pending:
            extended_header(client.answer())
            client.sock.close()
        equal(process.stop(), 0, "the status")


def test_right_that_ended():
    """A request that is whole only after a restart, and would need the main process: its client is to try again, and isn't refused."""
    with near() as lab, Server(lab, 80) as server, Manager(lab) as manager:
        process = manager.start("--preserve-client-address", "--hold-syn", "off")
        manager.wait("READY=1")
        half = [Client(lab.client, lab.converter.addr4, protocol, "behind").send(server.connect()[:7]) for protocol in (TCP, MPTCP)]
        wait_until(lambda: lab.converter.run(["ss", "-HOtnp", "sport", "=", ":1234"]).stdout.count("pid=%d," % process.serving) == 2, 10,
                   "both clients to be accepted")
        process = manager.restart(process, "--preserve-client-address", "--hold-syn", "off")
        manager.wait("READY=1")
        for client in half:
            client.sock.sendall(server.connect()[7:])
            equal(client.answer(), error(0x40, 10), "the answer")
            client.sock.close()
        equal(process.stop(), 0, "the status")


if __name__ == "__main__":
    main()
