#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertd_drain.py - how convertd ends: it accepts no new clients, and its sessions have some time"""
import hashlib
import os
import signal

from convertlab import Lab, Link, check, equal, main, metrics, need, servers, wait_until
from convertlab.peers import MPTCP, TCP, Client, Server, descriptors, extended_header, read_exactly

SIZE = 30000000  # many seconds on these links: no transfer ends before the drain begins


def near(**options):
    """Returns a lab whose links are too fast to matter."""
    return Lab(wifi=Link(delay_ms=0.5), lte=None, core=Link(delay_ms=0.1), **options)


def drained(lab, seconds, *arguments):
    """Starts convertd with this many seconds to drain; returns it once it is ready."""
    process = lab.convertd(["--drain-timeout", seconds, *arguments])
    process.wait_log("ready")
    return process


def order_end(process, number=signal.SIGTERM, line="may go on"):
    """Sends the signal, and waits until convertd has logged it."""
    process.send_signal(number)
    process.wait_log(line)


def refused(lab, protocol=TCP):
    """Tells whether a new client is refused."""
    try:
        with Client(lab.client, lab.converter.addr4, protocol, "behind") as client:
            client.send(b"")
        return False
    except ConnectionRefusedError:
        return True


def thread_states(process):
    """Returns the state of each thread, as in proc(5)."""
    states = []
    for thread in os.listdir("/proc/%d/task" % process.serving):
        with open("/proc/%d/task/%s/stat" % (process.serving, thread), encoding="ascii") as file:
            states.append(file.read().rsplit(")", 1)[1].split()[0])
    return states


def open_sessions(lab, server):
    """Opens a session for each protocol; returns [(client, server's socket), …]."""
    pairs = []
    for protocol in (TCP, MPTCP):
        client = Client(lab.client, lab.converter.addr4, protocol).send(server.connect())
        pairs.append((client, server.accept()))
        extended_header(client.answer())
    return pairs


def check_cut(pairs):
    """Checks that each session was reset on both sides."""
    for client, sock in pairs:
        equal(client.end(), (b"", "reset"), "the end of a session (%s)" % client.name)
        try:
            equal(sock.recv(1), b"", "the server's bytes")
            check(False, "the server sees a regular end of a stream that was cut")
        except ConnectionResetError:
            pass
        client.sock.close()
        sock.close()


# --- sessions that end by themselves -----------------------------------------------------------------------------------


def test_transfers_survive():
    """Downloads and uploads over two paths arrive in full; new connections go to the next converter, or directly."""
    need("curl")
    with Lab(wifi=Link(delay_ms=5, rate_mbit=50), lte=Link(delay_ms=10, rate_mbit=30)) as lab:
        lab.http()
        process = drained(lab, 300, *metrics.OPTIONS)
        other = lab.convertd(["--listen", "[::]:1235"], port=1235)
        url, env = "http://%s/" % lab.server.addr4, lab.converted()
        path = os.path.join(lab.directory, "file")
        content = servers.pattern(SIZE)
        with open(path, "wb") as file:
            file.write(content)
        commands = [["curl", "-sS", "-o", "%s%d" % (path, i), url + "bytes/%d" % SIZE] for i in range(4)]
        commands += [["curl", "-sS", "-o", "%s%d" % (path, i), "-T", path, url] for i in range(4, 6)]
        running = [lab.client.popen(command, env=env) for command in commands]
        wait_until(lambda: lab.shim_log().count("converted over MPTCP") == len(running), 30, "transfers")
        # The first connections also probe the other paths, by sessions that the drain would count.
        metrics.wait_metrics(lab.converter, lambda found: found.family("convertd_connections", "state") == {"relay": len(running)},
                             "the end of all probes")
        order_end(process)
        check("no new clients, %d sessions may go on for 300 s" % len(running) in process.log_text(), process.log_text())
        check(all(transfer.poll() is None for transfer in running), "a transfer had ended before the drain")
        check(refused(lab, TCP) and refused(lab, MPTCP), "a new client is taken")
        said = [lab.client.run(["curl", "-sS", url + "bytes/5"], env=lab.converted(CONVERT_ADDR=addresses)).stdout
                for addresses in (lab.converter.addr4, "%s,%s:1235" % (lab.converter.addr4, lab.converter.addr4))]
        equal(said, [servers.pattern(5).decode()] * 2, "the bytes of new connections")
        check("direct, the converter fails" in lab.shim_log(), lab.shim_log())
        other.wait_log(" to %s:80: " % lab.server.addr4)
        for transfer in running:
            equal(transfer.wait(200), 0, "curl's status: " + transfer.log_text())
        for i in range(4):
            with open("%s%d" % (path, i), "rb") as file:
                check(file.read() == content, "a download during the drain has other bytes")
        digest = "bytes=%d sha256=%s" % (SIZE, hashlib.sha256(content).hexdigest())
        for i in range(4, 6):
            with open("%s%d" % (path, i), encoding="ascii") as file:
                check(digest in file.read(), "an upload during the drain has other bytes")
        equal(process.wait(30), 0, "convertd's status")
        check("all sessions have ended" in process.log_text() and "cut" not in process.log_text().split("at once")[-1],
              process.log_text())


def test_queue_and_half_requests():
    """After either signal, convertd still serves clients in its listeners' queues, and clients that have sent half a request."""
    for number in (signal.SIGTERM, signal.SIGINT):
        with near() as lab, Server(lab, 80, backlog=256) as server:
            # a withheld SYN would wait for convertd, which stands still, outside of the listener's queue
            process = drained(lab, 60, "--hold-syn", "off")
            at_start = descriptors(process)
            half = [Client(lab.client, lab.converter.addr4, protocol, "behind").send(server.connect()[:7])
                    for protocol in (TCP, MPTCP)]
            wait_until(lambda: descriptors(process) == at_start + len(half), 30, "half a request")  # pylint: disable=W0640
            os.kill(process.serving, signal.SIGSTOP)
            wait_until(lambda: set(thread_states(process)) == {"T"}, 30, "convertd to stand still")  # pylint: disable=W0640
            # more than the listener takes in one round
            queued = [Client(lab.client, lab.converter.addr4, protocol, delivery).send(server.connect() + b"%03d" % i)
                      for i in range(25) for protocol in (TCP, MPTCP) for delivery in ("syn", "behind")]
            wait_until(lambda: lab.converter.queued(1234) == len(queued), 30, "clients in the queue")  # pylint: disable=W0640
            process.send_signal(number)
            os.kill(process.serving, signal.SIGCONT)
            process.wait_log("%d sessions may go on" % (len(queued) + len(half)))
            for client in half:
                client.sock.sendall(server.connect()[7:] + b"abc")
            said = []
            for _ in queued + half:
                sock = server.accept()
                said.append(read_exactly(sock, 3))
                sock.close()
            equal(sorted(said), sorted([b"%03d" % i for i in range(25)] * 4 + [b"abc"] * 2), "the server's bytes")
            for client in queued + half:
                extended_header(client.answer())
                equal(client.end(), (b"", "closed"), "the end of " + client.name)
                client.sock.close()
            equal(process.wait(30), 0, "the status")


# --- sessions that are cut ---------------------------------------------------------------------------------------------


def test_deadline():
    """convertd resets sessions that don't end in time; its status is 0 nevertheless."""
    with near() as lab, Server(lab, 80) as server:
        process = drained(lab, 1)
        pairs = open_sessions(lab, server)
        process.send_signal(signal.SIGTERM)
        equal(process.wait(30), 0, "the status")
        check("2 sessions may go on for 1 s" in process.log_text(), process.log_text())
        check("the time to drain is over: stopping; 2 sessions are cut" in process.log_text(), process.log_text())
        equal(process.log_text().count(": the daemon stops"), 2, "lines of sessions that were cut:\n" + process.log_text())
        check_cut(pairs)


def test_second_signal():
    """A second signal ends the drain at once; until then nothing is reloaded, and sessions work."""
    for first, second in ((signal.SIGTERM, signal.SIGINT), (signal.SIGINT, signal.SIGTERM)):
        with near() as lab, Server(lab, 80) as server:
            process = drained(lab, 3600, *metrics.OPTIONS)
            pairs = open_sessions(lab, server)
            equal(metrics.get(lab.converter, "/healthz")[::2], (200, "ok\n"), "health")
            order_end(process, first)
            # tells load balancers to send no new clients
            equal(metrics.get(lab.converter, "/healthz")[::2], (503, "draining\n"), "health in the drain")
            order_end(process, signal.SIGHUP, "not reloaded: convertd is stopping")
            for client, sock in pairs:
                client.sock.sendall(b"up")
                sock.sendall(b"down")
                equal((read_exactly(sock, 2), client.read(4)), (b"up", b"down"), "in the drain (%s)" % client.name)
            process.send_signal(second)
            equal(process.wait(30), 0, "the status")
            check("2 sessions are cut" in process.log_text(), process.log_text())
            check_cut(pairs)


def test_nothing_to_wait_for():
    """Without a session, or with --drain-timeout 0, convertd ends at once."""
    with near() as lab, Server(lab, 80) as server:
        equal(drained(lab, 3600).stop(), 0, "the status without a session")
        process = drained(lab, 0)
        pairs = open_sessions(lab, server)
        equal(process.stop(), 0, "the status without time")
        check("stopping; 2 sessions are cut" in process.log_text(), process.log_text())
        check_cut(pairs)


if __name__ == "__main__":
    main()
