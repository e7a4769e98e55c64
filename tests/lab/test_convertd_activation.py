#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertd_activation.py - convertd under a service manager: the sockets that it inherits, and its messages

The manager here is the lab's (manager.py): it makes the sockets, starts convertd with them as sd_listen_fds(3) says, and reads its
messages.
"""
import contextlib
import ctypes
import os
import signal
import socket
import threading

from convertlab import Lab, Link, check, equal, kernel, long, main, need, wait_until, waits
from convertlab.manager import Manager
from convertlab.peers import MPTCP, TCP, Client, Server, extended_header, listens, read_exactly, writable

RESTARTS = 3


def near(**options):
    """Returns a lab whose links are too fast to matter."""
    return Lab(wifi=Link(delay_ms=0.5), lte=None, core=Link(delay_ms=0.1), **options)


def listening(lab, address, port, protocol=MPTCP, kind=socket.SOCK_STREAM):
    """Returns a listening socket of the converter's host, as a socket unit makes it: convertd sets the other options."""
    sock = lab.converter.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, kind, protocol)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    if ":" in address:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    sock.bind((address, port))
    if kind == socket.SOCK_STREAM:
        sock.listen(128)
    return sock


def converts(lab, server, protocol=MPTCP, port=1234, delivery="syn"):
    """Connects through the converter, sends a byte each way and ends; returns whether the SYN's data was taken."""
    with Client(lab.client, lab.converter.addr4, protocol, delivery, port) as client:
        extended_header(client.send(server.connect()).answer())
        client.sock.sendall(b"u")
        with accept_open(server) as sock:
            sock.sendall(b"d")
            equal(client.read(1), b"d", "the byte that came down")
        return client.syn_data_taken()


def accept_open(server):
    """Accepts connections until one brings b"u": another one, of the previous convertd, may be ending (close_all())."""
    while True:
        sock = server.accept()
        with contextlib.suppress(ConnectionResetError):
            if read_exactly(sock, 1) == b"u":
                return sock
        sock.close()


def refuses(lab, port):
    """Tells whether nothing listens there."""
    try:
        with Client(lab.client, lab.converter.addr4, TCP, "behind", port) as client:
            client.send(b"")
        return False
    except ConnectionResetError:  # the socket was closed during the handshake
        return False
    except ConnectionRefusedError:
        return True


# --- sockets -----------------------------------------------------------------------------------------------------


def test_inherited_sockets():
    """convertd takes MPTCP and TCP sockets, with Fast Open, and doesn't listen at its default place."""
    with near() as lab, Server(lab, 80) as server, \
            Manager(lab, listening(lab, "::", 5000), listening(lab, lab.converter.addr4, 5001, TCP)) as manager:
        process = manager.start(env={"LISTEN_FDNAMES": "first.socket:second.socket"})
        manager.wait("READY=1")
        places = "%s, %s" % (listens("[::]:5000", "MPTCP", "inherited"), listens("10.9.0.1:5001", "TCP", "inherited"))
        check("ready: %s; " % places in process.log_text(), process.log_text())
        check("STATUS=Listening on " + places in manager.heard, manager.heard)
        warning, = [line for line in process.log_text().splitlines() if "plain TCP" in line]
        check("\"second.socket\"" in warning and "10.9.0.1:5001" in warning and "SocketProtocol=mptcp" in warning, warning)
        for port in (5000, 5001):
            for protocol in (TCP, MPTCP):
                # data in the SYN works on both sockets, on MPTCP's if the kernel has that
                equal(converts(lab, server, protocol, port), kernel.has("fastopen") or (protocol, port) == (TCP, 5001),
                      "whether the SYN's data was taken on port %d" % port)
        check(refuses(lab, 1234), "convertd listens at the default place")
        equal(process.stop(), 0, "the status")


def test_inherited_and_configured():
    """The setting "listen" names an inherited socket or adds a place; a reload changes the added ones, and keeps the inherited ones."""
    with near() as lab, Server(lab, 80) as server, Manager(lab, listening(lab, "::", 5000)) as manager:
        path = os.path.join(lab.directory, "convertd.conf")
        for added in ("[::]:5001", "10.9.0.1:5002"):
            with open(path, "w", encoding="ascii") as file:
                file.write("listen [::]:5000\nlisten %s\n" % added)
            if added == "[::]:5001":
                process = manager.start("--config", path)
                manager.wait("READY=1")
            else:
                process.send_signal(signal.SIGHUP)
                check(int(manager.wait("RELOADING=1")["MONOTONIC_USEC"]) > 0, manager.heard)
                manager.wait("READY=1")
            line = [line for line in process.log_text().splitlines() if listens("[::]:5000", "MPTCP", "inherited") in line][-1]
            check(listens(added) in line, line)
            for port in (5000, int(added[-4:])):
                converts(lab, server, port=port)
        check(refuses(lab, 5001), "a place that is no longer configured still answers")
        # a wrong configuration changes nothing, and convertd tells the manager
        with open(path, "a", encoding="ascii") as file:
            file.write("connect-timeout soon\n")
        process.send_signal(signal.SIGHUP)
        manager.wait("RELOADING=1")
        check("soon" in manager.wait("READY=1")["STATUS"], manager.heard)
        converts(lab, server, port=5000)
        equal(process.stop(), 0, "the status")


def test_what_cannot_be_inherited():
    """Status 1 and one line that names the socket and the remedy."""
    with near() as lab:
        udp = listening(lab, "::", 5000, 0, socket.SOCK_DGRAM)
        stream = lab.converter.socket(socket.AF_INET6, socket.SOCK_STREAM)
        unix = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        right = listening(lab, "::", 5000)
        for sockets, words in (((udp,), ("3", "SocketProtocol=mptcp")), ((stream,), ("3", "Accept=no")),
                               ((unix,), ("3", "SocketProtocol=mptcp")), ((right, right), ("4", "same address"))):
            manager = Manager(lab, *sockets)
            process = manager.start(env={"LISTEN_FDNAMES": "one:two"})
            equal(process.wait(30), 1, "the status: " + process.log_text())
            line, = process.log_text().splitlines()
            check(line.startswith("convertd: error: inherited socket %s, \"%s\": " % (words[0], "two" if words[0] == "4" else "one"))
                  and words[1] in line, line)
        for sock in (udp, stream, unix, right):
            sock.close()


def test_not_meant_for_us():
    """The variables are for another process, says LISTEN_PID: convertd ignores them."""
    with near() as lab, Server(lab, 80) as server:
        process = lab.convertd(env={"LISTEN_PID": "1", "LISTEN_FDS": "1"})
        process.wait_log("ready: %s; " % listens("[::]:1234"))
        converts(lab, server)
        equal(process.stop(), 0, "the status")


def test_systemd_socket_activate():
    """systemd's own program starts convertd at the first client, which is served."""
    need("systemd-socket-activate", "systemd")
    with near() as lab, Server(lab, 80) as server:
        allowed = ["--allow-client", "::/0", "--allow-destination", "10.0.0.0/8"]
        process = lab.start_listening(lab.converter, ["systemd-socket-activate", "-l", "5000", "--fdname=convertd.socket",
                                                      lab.build.program("convertd"), *allowed], 5000, name="activate")
        with Client(lab.client, lab.converter.addr4, TCP, "behind", 5000) as client:
            extended_header(client.send(server.connect()).answer())
            server.accept().close()
        process.wait_log("ready: [::]:5000 (TCP, Fast Open, inherited)")  # by then it serves already
        check(converts(lab, server, TCP, 5000), "no Fast Open")
        equal(process.stop(), 0, "the status")


def test_more_cpus_than_workers():
    """The host has 400 CPUs, the manager 300 sockets: convertd runs 256 workers, its maximum, keeps a socket for each, and serves all."""
    with near() as lab, Server(lab, 80) as server, Manager(lab) as manager:
        for _ in range(300):
            sock = listening(lab, "::", 5000)
            manager.kept.append(sock.detach())
        process = manager.start("--listen", "[::]:5000", env={
            "LD_PRELOAD": lab.build.preloaded("libmanycpus.so"), "MANY_CPUS": "400"})
        manager.wait("READY=1")
        check(listens("[::]:5000", "MPTCP", "inherited") + "; 256 workers" in process.log_text(), process.log_text())
        equal(len(manager.kept), 256, "kept sockets")
        for i in range(40):
            converts(lab, server, (TCP, MPTCP)[i % 2], 5000)
        equal(process.stop(), 0, "the status")


# --- a restart -----------------------------------------------------------------------------------------------------


class Stream:
    """Clients that connect one after the other; each must be served."""

    def __init__(self, lab, port, protocol, delivery):
        self._what = (lab, port, protocol, delivery)
        self._stop = threading.Event()
        self.served = 0
        self.error = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        lab, port, protocol, delivery = self._what
        request = b""
        try:
            with Server(lab, 8000 + port) as server:
                request = server.connect()
                threading.Thread(target=close_all, args=(server,), daemon=True).start()
                while not self._stop.is_set():
                    with Client(lab.client, lab.converter.addr4, protocol, delivery, 5000) as client:
                        extended_header(client.send(request).answer())
                        equal(client.end(), (b"", "closed"), "the end")
                    self.served += 1
        except (OSError, AssertionError) as error:
            self.error = "%s after %d clients that were served" % (error, self.served)

    def end(self):
        """Ends the stream. Returns how many clients were served; fails if one wasn't."""
        self._stop.set()
        self._thread.join(30)
        check(self.error is None, "%s, %s: %s" % (*self._what[2:], self.error))
        return self.served


def close_all(server):
    """Closes all connections. A client may have two: one that a convertd made for a withheld SYN before it ended, and the next one's."""
    with contextlib.suppress(OSError):
        while True:
            server.accept().close()


def restart_under_load(lab, manager, *arguments):
    """Stops and starts convertd while clients connect all the time, each of which must be served. Returns a summary."""
    with contextlib.ExitStack() as ends:
        process = manager.start(*arguments)
        manager.wait("READY=1")
        streams = [Stream(lab, i, protocol, delivery) for i, (protocol, delivery) in enumerate(
            (protocol, delivery) for protocol in (TCP, MPTCP) for delivery in ("syn", "behind"))]
        for stream in streams:
            ends.callback(stream.end)
        logs = []
        for _ in range(RESTARTS):
            before = [stream.served for stream in streams]
            wait_until(lambda: all(stream.error or stream.served > count + 5  # pylint: disable=W0640
                                   for stream, count in zip(streams, before)), 30, "served clients")  # pylint: disable=W0640
            process.send_signal(signal.SIGTERM)
            equal(process.wait(40), 0, "the status")
            logs.append(process.log_text())
            # some clients connect while there is no convertd at all
            process = manager.start(*arguments)
            manager.wait("READY=1")
        last = process
        before = [stream.served for stream in streams]
        wait_until(lambda: all(stream.error or stream.served > count for stream, count in zip(streams, before)), 30,
                   "clients of the last convertd")
        served = sum(stream.end() for stream in streams)
        equal(last.stop(), 0, "the status")
        logs.append(last.log_text())
        carried = [log.count(": done ") for log in logs]
        check(min(carried) > 0, "sessions of each convertd: %s" % carried)
        return "%d clients, %d restarts, none refused; each convertd served %s" % (served, RESTARTS, carried)


def test_restart_with_a_socket_unit():
    """The manager has made the socket."""
    with near() as lab, Manager(lab, listening(lab, "::", 5000)) as manager:
        return restart_under_load(lab, manager)


def test_restart_with_kept_sockets():
    """convertd has made its sockets, one for each worker, and the manager keeps them for the next convertd."""
    with near() as lab, Manager(lab) as manager:
        said = restart_under_load(lab, manager, "--listen", "[::]:5000", "--workers", "2")
        equal(len(manager.kept), 2, "kept sockets")
        return said


@kernel.needs("fastopen")
def test_confirmations_between_two():
    """Between one convertd and the next, SYN+ACKs confirm no server; nor do those of a convertd that doesn't withhold SYNs."""
    need("nft", "nftables")
    with near() as lab, Server(lab, 80) as server, Manager(lab, listening(lab, "::", 5000)) as manager:
        arguments = ["--listen", "[::]:5001", "--workers", "1", "--hold-time", "2900"]
        for way in ("on", "off"):
            process = manager.start(*arguments)
            manager.wait("READY=1")
            for port in (5000, 5001):
                with Client(lab.client, lab.converter.addr4, port=port) as client:
                    extended_header(client.send(server.connect()).answer())
                    server.accept().close()
                    check(client.confirmed(), "a SYN+ACK of port %d confirms nothing" % port)
            process.stop(signal.SIGKILL)
            with contextlib.ExitStack() as stack:
                waiting = [stack.enter_context(Client(lab.client, lab.converter.addr4, port=port)) for port in (5000, 5001)]
                for client in waiting:
                    client.send(server.connect())
                    check(writable(client.sock, 5), "no SYN+ACK")
                    check(not client.confirmed(), "a SYN+ACK confirms a server, though there is no convertd")
                process = manager.start(*arguments, "--hold-syn", way)
                manager.wait("READY=1")
                for client in waiting:
                    server.accept().close()
                    extended_header(client.answer())
            with Client(lab.client, lab.converter.addr4, port=5000) as client:
                extended_header(client.send(server.connect()).answer())
                server.accept().close()
                equal(client.confirmed(), way == "on", "whether a SYN+ACK confirms the server")
            equal(process.stop(), 0, "the status")
            listed = lab.converter.run(["nft", "list", "tables"]).stdout
            equal(listed.count("convertd_syns"), 1, "tables:\n" + listed)
        manager.forget()
        wait_until(lambda: lab.converter.run(["nft", "list", "tables"]).stdout == "", 10, "the end of the tables")


def test_kept_sockets_follow_the_configuration():
    """The manager keeps the sockets of the configuration in force; convertd closes inherited ones that it has no use for."""
    with near() as lab, Server(lab, 80) as server, Manager(lab, listening(lab, "::", 5000)) as manager:
        path = os.path.join(lab.directory, "convertd.conf")

        def configure(*ports):
            with open(path, "w", encoding="ascii") as file:
                file.write("workers 2\n" + "".join("listen [::]:%d\n" % port for port in ports))

        configure(5000, 5001, 5002)
        process = manager.start("--config", path)
        manager.wait("READY=1")
        equal(len(manager.kept), 4, "kept sockets: those of two places, not the socket unit's")
        configure(5000, 5002, 5003)
        process.send_signal(signal.SIGHUP)
        manager.wait("READY=1")
        equal(len(manager.kept), 4, "kept sockets after the reload")
        check(refuses(lab, 5001), "a place that is no longer configured is kept")
        equal(process.stop(), 0, "the status")
        configure(5003)
        process = manager.start("--config", path)
        manager.wait("READY=1")
        equal(len(manager.kept), 2, "kept sockets of the next convertd")
        places = ", ".join(listens("[::]:%d" % port, "MPTCP", "inherited") for port in (5000, 5003))
        check(places + "; " in process.log_text(), process.log_text())
        wait_until(lambda: refuses(lab, 5002), 10, "the end of a place that isn't configured")
        for port in (5000, 5003):
            converts(lab, server, port=port)
        # fewer workers than sockets: the worker serves all of them
        equal(process.stop(), 0, "the status")
        process = manager.start("--config", path, "--workers", "1")
        manager.wait("READY=1")
        equal(len(manager.kept), 2, "kept sockets of one worker")
        for _ in range(16):
            converts(lab, server, port=5003)
        equal(process.stop(), 0, "the status")


def test_kept_sockets_after_a_crash():
    """Clients that connect while there is no convertd wait for the next one."""
    with near() as lab, Server(lab, 80) as server, Manager(lab) as manager:
        process = manager.start("--workers", "2")
        manager.wait("READY=1")
        equal(process.stop(signal.SIGKILL), -signal.SIGKILL, "the status")
        waiting = [Client(lab.client, lab.converter.addr4, protocol, delivery).send(server.connect())
                   for protocol in (TCP, MPTCP) for delivery in ("syn", "behind") * 4]
        wait_until(lambda: lab.converter.queued(1234) == len(waiting), 30, "clients in the queue")
        process = manager.start("--workers", "2")
        for _ in waiting:
            server.accept().close()
        for client in waiting:
            extended_header(client.answer())
            equal(client.end(), (b"", "closed"), "the end")
            client.sock.close()
        equal(process.stop(), 0, "the status")


def test_kept_sockets_from_before_mptcp():
    """convertd uses them, and logs the remedy."""
    with near() as lab, Server(lab, 80) as server, Manager(lab) as manager:
        lab.converter.sysctl("net.mptcp.enabled", 0)
        process = manager.start("--workers", "1")
        manager.wait("READY=1")
        check("plain TCP" not in process.log_text(), process.log_text())
        equal(process.stop(), 0, "the status")
        lab.converter.sysctl("net.mptcp.enabled", 1)
        process = manager.start("--workers", "1")
        manager.wait("READY=1")
        line, = [line for line in process.log_text().splitlines() if "plain TCP" in line]
        check("stop convertd, then start it" in line and "[::]:1234" in line, line)
        converts(lab, server, TCP)
        equal(process.stop(), 0, "the status")


# --- messages --------------------------------------------------------------------------------------------------------


def test_messages_of_the_end():
    """If the manager keeps no descriptors: STOPPING=1 with the time that the drain may take, and how many sessions are left."""
    with near() as lab, Server(lab, 80) as server, Manager(lab, keeps=False) as manager:
        process = manager.start("--drain-timeout", "100")
        manager.wait("READY=1")
        with Client(lab.client, lab.converter.addr4) as client:
            extended_header(client.send(server.connect()).answer())
            process.send_signal(signal.SIGTERM)
            said = manager.wait("STOPPING=1")
            check(int(said["EXTEND_TIMEOUT_USEC"]) > 100000000, said)
            manager.wait("STATUS=Stopping: 1 session left")
            server.accept().close()
        equal(process.wait(30), 0, "the status")


def test_watchdog():
    """convertd sends WATCHDOG=1 in time; it sends none if another process is watched."""
    with near() as lab, Manager(lab) as manager:
        for watched in (True, False):
            process = manager.start(env={"WATCHDOG_USEC": 200000, **({} if watched else {"WATCHDOG_PID": 1})})
            manager.wait("READY=1")
            manager.heard.clear()
            if watched:
                for _ in range(3):
                    manager.wait("WATCHDOG=1")
            equal(process.stop(), 0, "the status")
            manager.wait("STOPPING=1")
            check(watched or not any("WATCHDOG" in text for text in manager.heard), manager.heard)



def test_socket_unit_that_is_stopped_meanwhile():
    """Sessions go on, but no client waits in the queue of a unit's socket that only a stopping convertd still has."""
    with near() as lab, Server(lab, 80) as server, Manager(lab, listening(lab, "::", 5000)) as manager:
        process = manager.start("--drain-timeout", "100")
        manager.wait("READY=1")
        with Client(lab.client, lab.converter.addr4, port=5000) as client:
            extended_header(client.send(server.connect()).answer())
            with server.accept() as sock:
                process.send_signal(signal.SIGTERM)
                manager.wait("STOPPING=1")
                manager.sockets[0].close()
                wait_until(lambda: refuses(lab, 5000), 10, "clients to be refused")
                sock.sendall(b"d")
                equal(client.read(1), b"d", "the byte that came down meanwhile")
        equal(process.wait(30), 0, "the status")


@long
@waits
def test_watchdog_of_standing_workers():
    """convertd sends nothing while one of its threads stands still, be it a worker or the main one, and goes on when all do."""
    with near() as lab, Manager(lab) as manager:
        process = manager.start("--workers", "3", env={"WATCHDOG_USEC": 800000})
        manager.wait("READY=1")
        for name in ("worker-0", "worker-2", "worker-1", None):
            manager.wait("WATCHDOG=1")
            line = "warning: %s stands still" % name
            before = process.log_text().count(line)
            with standing(process, name):
                # answers that were on their way; then nothing for as long as the manager waits
                with contextlib.suppress(TimeoutError):
                    manager.wait("WATCHDOG=1", seconds=0.4)
                    manager.wait("WATCHDOG=1", seconds=0.4)
                try:
                    manager.wait("WATCHDOG=1", seconds=0.8)
                    check(False, "WATCHDOG=1 though %s stands still" % (name or "the main thread"))
                except TimeoutError:
                    pass
                # on a busy machine there may be others about workers that are slow
                check(process.log_text().count(line) == before + bool(name), "not one more line \"%s\":\n%s" % (line, process.log_text()))
            manager.wait("WATCHDOG=1")
        equal(process.stop(), 0, "the status")


PTRACE_ATTACH, PTRACE_DETACH = 16, 17  # ptrace(2)


def thread_of(process, name):
    """Returns the ID of the thread of that name; with None, of the main thread."""
    for task in os.listdir("/proc/%d/task" % process.serving):
        with open("/proc/%d/task/%s/comm" % (process.serving, task), encoding="ascii") as file:
            if file.read().strip() == name:
                return int(task)
    return process.serving


@contextlib.contextmanager
def standing(process, name):
    """Stops one thread of a process while the others run on."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long] * 4
    thread = thread_of(process, name)
    equal(libc.ptrace(PTRACE_ATTACH, thread, 0, 0), 0, "ptrace: " + os.strerror(ctypes.get_errno()))
    os.waitpid(thread, 0x40000000)  # __WALL
    try:
        yield
    finally:
        equal(libc.ptrace(PTRACE_DETACH, thread, 0, 0), 0, "ptrace: " + os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    main()
