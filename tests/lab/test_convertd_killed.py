#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertd_killed.py - when convertd is killed, connections that their peers haven't ended are reset on both sides"""
import collections
import contextlib
import errno
import fcntl
import os
import signal
import socket
import struct
import tempfile
import termios
import threading

from convertlab import Lab, Link, Skip, check, equal, kernel, long, main, need, same_data, servers, wait_until, waits
from convertlab.peers import MPTCP, PORT, TCP, Client, Server, connect, descriptors, ended, extended_header, octets
from test_silence import box

# Multipath TCP, as an Extended Connect TLV has it
MPTCP_OPTION = bytes([30, 2, 0, 0])
# the bytes of a transfer, and those that its ends have moved before convertd is killed
SIZE = 64 << 20
SOME = 256 << 10

# one end of a session: its name in messages, and its socket
Peer = collections.namedtuple("Peer", ("name", "sock"))


def shaped(**options):
    """Returns a lab whose links are so slow that a transfer lasts for seconds."""
    return Lab(wifi=Link(delay_ms=5, rate_mbit=50, queue=200), lte=None, core=Link(delay_ms=1), **options)


def near(**options):
    """Returns a lab whose links are too fast to matter."""
    return Lab(wifi=Link(delay_ms=0.5), lte=None, core=Link(delay_ms=0.1), **options)


class Mover(threading.Thread):
    """Sends to a socket, or reads from it, until that ends; `result` says how."""

    def __init__(self, peer, sends):
        super().__init__(daemon=True)
        self.name, self.sock = peer
        self.sends = sends
        self.moved = 0
        self.result = None
        self.start()

    def run(self):
        piece = bytes(65536)
        try:
            while self.moved < SIZE:
                size = self.sock.send(piece) if self.sends else len(self.sock.recv(65536))
                if not size:
                    self.result = "closed"
                    return
                self.moved += size
            self.result = "all of it"
        except (ConnectionResetError, BrokenPipeError) as error:
            self.result = type(error).__name__
        except OSError as error:
            self.result = repr(error)


def check_resets(movers):
    """Checks that each Mover got an error, and none a regular end of the stream."""
    for mover in movers:
        mover.join(15)
    seen = {"%s %s" % (mover.name, "sends" if mover.sends else "reads"): mover.result for mover in movers}
    wrong = {name: result for name, result in seen.items() if result not in ("ConnectionResetError", "BrokenPipeError")}
    check(not wrong, "no reset: %s" % wrong)


def kinds(lab, tcp, mptcp):
    """Yields (a client that has asked for a server, that Server): over TCP and MPTCP, of both families, to servers of TCP and of MPTCP."""
    for protocol in (TCP, MPTCP):
        for address, request, server in ((lab.converter.addr4, tcp.connect(), tcp), (lab.converter.addr6, tcp.connect(v6=True), tcp),
                                         (lab.converter.addr4, mptcp.connect(options=MPTCP_OPTION), mptcp)):
            yield Client(lab.client, address, protocol).send(request), server


@contextlib.contextmanager
def both_servers(lab):
    """Yields a server that speaks TCP and one that speaks MPTCP."""
    with Server(lab, 80) as tcp, Server(lab, 81, MPTCP) as mptcp:
        yield tcp, mptcp


def sessions(lab, tcp, mptcp):
    """Returns [(client's Peer, server's Peer), …], a session of each kind."""
    found = []
    for client, server in kinds(lab, tcp, mptcp):
        sock = server.accept()
        extended_header(client.answer())
        name = "%s, to a server over %s" % (client.name, "MPTCP" if server is mptcp else "TCP")
        found.append((Peer("the client of %s" % name, client.sock), Peer("the server of %s" % name, sock)))
    return found


def transfers(lab, both):
    """Begins six downloads and six uploads; returns the Movers at all their ends."""
    movers = []
    for upload in (False, True):
        for client, server in sessions(lab, *both):
            reader, writer = (server, client) if upload else (client, server)
            movers += [Mover(reader, False), Mover(writer, True)]
    for mover in movers:
        wait_until(lambda: mover.moved >= SOME or mover.result, 30, "bytes of %s" % mover.name)  # pylint: disable=W0640
        equal(mover.result, None, "the end of %s before convertd's" % mover.name)
    return movers


def how_it_ends(peer):
    """Returns the rest of the peer's bytes, and "closed" or "reset"; on MPTCP a reset behind a FIN is EPIPE."""
    try:
        return ended(peer.sock)
    except BrokenPipeError:
        return b"", "reset"


def check_reset(peers):
    """Checks that each peer gets a reset, and no more bytes before it."""
    for peer in peers:
        equal(how_it_ends(peer), (b"", "reset"), "the end of " + peer.name)


@long
def test_transfers():
    """However convertd ends, six downloads and six uploads over TCP and MPTCP end in errors at both ends, none in an end of file."""
    # sanitizers catch this signal, and exit with a status
    crashes = () if os.environ.get("SANITIZER_PRELOAD") else (signal.SIGSEGV,)
    for number in (signal.SIGKILL, signal.SIGABRT, *crashes, signal.SIGTERM):
        with shaped() as lab, both_servers(lab) as both:
            process = lab.convertd()
            movers = transfers(lab, both)
            equal(process.stop(number), 0 if number == signal.SIGTERM else -number, "the status")
            check_resets(movers)


def test_either_process():
    """Of two processes, the serving one is killed (test_transfers kills the main process)."""
    with shaped() as lab, both_servers(lab) as both:
        process = lab.convertd()
        check(process.serving != process.pid, "there is one process")
        movers = transfers(lab, both)
        os.kill(process.serving, signal.SIGKILL)
        equal(process.wait(10), -signal.SIGKILL, "the status")
        check(not lab.converter.listening(PORT), "a process still listens")
        check_resets(movers)


@long
@waits
def test_sessions_that_have_ended():
    """The bytes of sessions that their peers have ended all arrive, and a FIN, even if convertd is killed while they are on their way."""
    # as many bytes as the converter takes for a client that doesn't read
    data = servers.pattern(50000)
    for number in (signal.SIGKILL, signal.SIGTERM):
        for loss in (0, 0.02):
            with Lab(wifi=Link(delay_ms=20, rate_mbit=2, queue=100, loss=loss), lte=None, core=Link(delay_ms=1)) as lab, \
                    both_servers(lab) as both:
                process = lab.convertd()
                process.wait_log("ready")
                at_start = descriptors(process)
                ended_sessions = sessions(lab, *both)
                for client, server in ended_sessions:
                    client.sock.shutdown(socket.SHUT_WR)
                    server.sock.sendall(data)
                    server.sock.close()
                wait_until(lambda: descriptors(process) == at_start, 30, "the end of all sessions")  # pylint: disable=W0640
                waiting = sum(readable_bytes(client.sock) for client, _ in ended_sessions)
                equal(process.stop(number), 0 if number == signal.SIGTERM else -number, "the status")
                check(waiting < len(ended_sessions) * len(data), "all bytes had arrived before convertd's end")
                for client, _ in ended_sessions:
                    got, how = ended(client.sock)
                    same_data(data.startswith(got), "other bytes (%s)" % client.name)
                    check(got == data and how == "closed", "%s, has got %d bytes, then: %s; %d%% loss" % (client.name, len(got), how, 100 * loss))


def readable_bytes(sock):
    """Returns how many bytes have arrived and haven't been read."""
    return struct.unpack("i", fcntl.ioctl(sock, termios.FIONREAD, bytes(4)))[0]


def test_idle_sessions():
    """Both ends of a session are reset, even if nothing moved when convertd was killed."""
    with near() as lab, both_servers(lab) as both:
        process = lab.convertd()
        idle = sessions(lab, *both)
        process.stop(signal.SIGKILL)
        for pair in idle:
            check_reset(pair)


def test_half_closed_sessions():
    """The ended direction stays ended; the reader and the writer of the other one get errors."""
    with near() as lab, both_servers(lab) as both:
        process = lab.convertd()
        client_ended, server_ended = sessions(lab, *both), sessions(lab, *both)
        for client, server in client_ended:
            client.sock.sendall(b"question")
            client.sock.shutdown(socket.SHUT_WR)
            equal(ended(server.sock), (b"question", "closed"), "the bytes of " + server.name)
        for client, server in server_ended:
            server.sock.sendall(b"answer")
            server.sock.shutdown(socket.SHUT_WR)
            equal(ended(client.sock), (b"answer", "closed"), "the bytes of " + client.name)
        process.stop(signal.SIGKILL)
        check_reset([client for client, _ in client_ended] + [server for _, server in server_ended])
        for writer in [server for _, server in client_ended] + [client for client, _ in server_ended]:
            wait_until(lambda: fails_to_send(writer.sock), 10, "an error for " + writer.name)  # pylint: disable=W0640


def fails_to_send(sock):
    """Tells whether the connection has failed."""
    try:
        sock.send(b"more")
        return False
    except (ConnectionResetError, BrokenPipeError):
        return True


def test_clients_without_a_session():
    """Clients that have sent nothing, or a part of a request, or wait for their server, are reset, too; a refused one keeps its answer."""
    refused = octets("01022263 00010000")
    for number in (signal.SIGKILL, signal.SIGTERM):
        with near() as lab, Server(lab, 80) as server:
            process = lab.convertd(["--hold-syn", "off"])
            process.wait_log("ready")
            at_start = descriptors(process)
            # a server of this family answers first, so that convertd blames the silent server, not its family
            with Client(lab.client, lab.converter.addr4) as client:
                extended_header(client.send(server.connect()).answer())
                server.accept().close()
            wait_until(lambda: descriptors(process) == at_start, 5, "the end of the first session")  # pylint: disable=W0640
            peers = []
            for protocol in (TCP, MPTCP):
                silent = Client(lab.client, lab.converter.addr4, protocol)
                silent.sock.connect((lab.converter.addr4, PORT))
                part = Client(lab.client, lab.converter.addr4, protocol).send(octets("0106"))
                waits = Client(lab.client, lab.converter.addr6, protocol).send(connect(lab.addresses.blackhole4, 80))
                peers += [Peer(name + client.name, client.sock) for name, client in
                          (("nothing by ", silent), ("a part by ", part), ("a request by ", waits))]
            wrong = [Client(lab.client, lab.converter.addr4, protocol).send(refused) for protocol in (TCP, MPTCP)]
            wait_until(lambda: descriptors(process) == at_start + 10, 5, "all sockets")  # pylint: disable=W0640
            answers = [client.answer() for client in wrong]
            process.stop(number)
            check_reset(peers)
            for client, answer in zip(wrong, answers):
                equal(answer, octets("01042263 1e030200") + refused, "the answer to " + client.name)
                how_it_ends(client)


@contextlib.contextmanager
def memory_group():
    """Yields (directory, limit, usage): a new memory control group and the paths of its two files; skips the test if there can be none."""
    for parent, limit, usage in (("/sys/fs/cgroup", "memory.max", "memory.current"),
                                 ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes")):
        try:
            path = tempfile.mkdtemp(prefix="lab-", dir=parent)
        except OSError:
            continue
        try:
            if os.path.exists(os.path.join(path, limit)):
                yield path, os.path.join(path, limit), os.path.join(path, usage)
                return
        finally:
            os.rmdir(path)
    raise Skip("no control group for memory can be made")


def confine(limit, usage):
    """Limits a control group to the memory that it uses now. Returns False if it already uses more (EBUSY, in version 1 only)."""
    with open(usage, encoding="ascii") as file:
        used = file.read()
    try:
        with open(limit, "w", encoding="ascii") as file:
            file.write(used)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        return False
    return True


def test_out_of_memory():
    """The OOM killer takes convertd, not its survivor."""
    with memory_group() as (group, limit, usage), shaped() as lab, both_servers(lab) as both:
        # a shell joins the group first, so that all of convertd is in it
        process = lab.convertd(wrapper=["sh", "-c", "echo $$ > %s/cgroup.procs && exec \"$@\"" % group, "sh"])
        movers = transfers(lab, both)
        wait_until(lambda: confine(limit, usage), 10, "the group's limit")
        others = []
        while process.poll() is None:
            # each takes some memory, whether convertd answers it or not
            others.append(Client(lab.client, lab.converter.addr4, TCP))
            with contextlib.suppress(OSError):
                others[-1].send(octets("01ff2263"))
            check(len(others) < 20000, "convertd has memory for 20,000 clients")
        equal(process.returncode, -signal.SIGKILL, "the status")
        check_resets(movers)
        return "after %d more clients" % len(others)


@kernel.needs("fastopen")
def test_before_the_third_ack():
    """convertd is killed before the client's third ACK: the client is reset, though Linux by itself would tell it nothing over MPTCP."""
    need("nft", "nftables")
    with near() as lab, box(lab.client, "output", "tcp flags & (syn | ack) == ack drop"):
        process = lab.convertd(["--hold-syn", "off"])
        process.wait_log("ready")
        at_start = descriptors(process)
        waiting = [Client(lab.client, lab.converter.addr4, protocol).send(octets("0106")) for protocol in (TCP, MPTCP)]
        wait_until(lambda: descriptors(process) == at_start + 2, 5, "both sockets")
        check(lab.converter.run(["ss", "-Htn", "state", "syn-recv"]).stdout, "no handshake is incomplete")
        process.stop(signal.SIGKILL)
        check_reset(waiting)


@kernel.needs("fastopen")
def test_withheld_syns():
    """convertd is killed while it withholds clients' SYNs: the kernel refuses them, as any host without a converter does."""
    with near() as lab:
        process = lab.convertd(["--hold-time", "2900"])
        process.wait_log("ready")
        at_start = descriptors(process)
        clients = [Client(lab.client, lab.converter.addr4, protocol).send(connect(lab.addresses.blackhole4, 80))
                   for protocol in (TCP, MPTCP)]
        wait_until(lambda: descriptors(process) == at_start + 2, 5, "both servers' sockets")
        process.stop(signal.SIGKILL)
        for client in clients:
            try:
                client.sock.recv(1)
                check(False, "%s has an answer" % client.name)
            except ConnectionRefusedError:
                pass


if __name__ == "__main__":
    main()
