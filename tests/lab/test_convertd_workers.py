#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertd_workers.py - several workers: clients are spread over them, limits hold for all together, a reload loses no client"""
import os
import re
import signal
import threading

from convertlab import Lab, Link, check, equal, main, wait_until
from convertlab.peers import MPTCP, TCP, Client, Server, connect, converter, error, extended_header, octets, readable

LAB = ("--allow-client", "::/0", "--allow-destination", "10.0.0.0/8", "--allow-destination", "fd00::/8")


def near(**options):
    """Returns a lab whose links are too fast to matter."""
    return Lab(wifi=Link(delay_ms=0.5), lte=None, core=Link(delay_ms=0.1), **options)


def threads(process):
    """Returns {name: id} of a process's threads."""
    found = {}
    for task in os.listdir("/proc/%d/task" % process.serving):
        with open("/proc/%d/task/%s/comm" % (process.serving, task), encoding="utf-8") as file:
            found[file.read().strip()] = int(task)
    return found


def sleeps(process, worker):
    """Returns how often a thread has gone to sleep, which grows only if it works."""
    with open("/proc/%d/task/%d/status" % (process.serving, threads(process)[worker]), encoding="ascii") as file:
        return int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", file.read(), re.MULTILINE)[1])


def test_threads():
    """convertd has as many workers as --workers says; by default one for each CPU that it may run on."""
    with near() as lab:
        for arguments, count in ((["--workers", "3"], 3), (["--workers", "1"], 1), ([], len(os.sched_getaffinity(0)))):
            with converter(lab, *arguments) as process:
                names = {"worker-%d" % i for i in range(count)}
                equal({name for name in threads(process) if name.startswith("worker-")}, names, "workers")
                check("; %d worker" % count in process.log_text(), process.log_text())


def test_clients_spread():
    """Each worker serves some of many clients, over TCP and MPTCP, with requests in the SYN and behind it."""
    with near() as lab, Server(lab, 80, backlog=256) as server, converter(lab, "--workers", "2") as process:
        before = {worker: sleeps(process, worker) for worker in ("worker-0", "worker-1")}
        pairs = []
        for i in range(80):
            client = Client(lab.client, (lab.converter.addr4, lab.converter.addr6)[i // 4 % 2], (TCP, MPTCP)[i % 2],
                            ("syn", "behind")[i // 2 % 2])
            extended_header(client.send(server.connect() + b"%04d" % i).answer())
            pairs.append((client, server.accept()))
            equal(pairs[-1][1].recv(4), b"%04d" % i, "the server's bytes")
        for worker, count in before.items():
            # all but certain: in 80 throws, a coin shows a side less than 10 times in one of 10^11 runs
            check(sleeps(process, worker) - count >= 10, "%s has slept %d times" % (worker, sleeps(process, worker) - count))
        for client, sock in pairs:
            client.sock.close()
            sock.close()


def test_limits_of_all():
    """Limits hold for all workers together: there are exactly --max-connections connections, and --max-pending waiting requests."""
    with near() as lab, Server(lab, 80) as server:
        with converter(lab, "--workers", "4", "--max-connections", "20", "--max-errors-per-client", "0", defaults=LAB):
            pairs = []
            for i in range(20):
                client = Client(lab.client, lab.converter.addr4, (TCP, MPTCP)[i % 2])
                extended_header(client.send(server.connect()).answer())
                pairs.append((client, server.accept()))
            for i in range(8):
                with Client(lab.client, lab.converter.addr4, (TCP, MPTCP)[i % 2]) as client:
                    equal(client.send(server.connect()).answer(), error(0x40, 10), "one too many")
            for client, sock in pairs:
                sock.close()
                client.sock.close()
        with converter(lab, "--workers", "4", "--max-pending", "8", "--max-pending-per-client", "0", defaults=LAB):
            waiting = [Client(lab.client, lab.converter.addr4, TCP, "behind").send(octets("01")) for i in range(40)]
            # the oldest have to go, of whichever workers
            wait_until(lambda: sum(not readable(client.sock, 0) for client in waiting) == 8, 5, "32 to go")
            for i in range(8):
                with Client(lab.client, lab.converter.addr4) as client:
                    extended_header(client.send(server.connect()).answer())
                    server.accept().close()
            for client in waiting:
                client.sock.close()


class Comers:
    """A thread with clients that connect one after the other; each has a number echoed."""

    def __init__(self, lab, request):
        self._lab, self._request = lab, request
        self._go_on, self.done, self.problems = True, 0, []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        while self._go_on:
            text = b"%08d" % self.done
            try:
                with Client(self._lab.client, self._lab.converter.addr4, (TCP, MPTCP)[self.done % 2]) as client:
                    extended_header(client.send(self._request + text).answer())
                    equal(client.read(8), text, "the echo")
            except Exception as problem:  # pylint: disable=broad-except
                self.problems.append("client %d: %r" % (self.done, problem))
            self.done += 1

    def end(self):
        """Waits for the last client; fails if one was lost."""
        self._go_on = False
        self._thread.join()
        check(not self.problems, self.problems[:5])
        return self.done


def test_reload_under_load():
    """30 times a reload replaces a listener: clients in the old one's queue are served, and so are those of another listener meanwhile."""
    with near() as lab, Server(lab, 80) as server:
        lab.echo()
        request = connect(lab.server.addr4, 7)
        path = os.path.join(lab.directory, "convertd.conf")

        def write(*ports):
            with open(path, "w", encoding="ascii") as file:
                file.write("".join("listen 10.9.0.1:%d\n" % port for port in ports))
        write(1234, 1235)
        with converter(lab, "--workers", "2", "--config", path) as process:
            before = Client(lab.client, lab.converter.addr4, MPTCP, port=1235)
            extended_header(before.send(server.connect()).answer())
            sock = server.accept()
            comers = [Comers(lab, request) for _ in range(2)]
            for i in range(30):
                queued = [Client(lab.client, lab.converter.addr4, (TCP, MPTCP)[j % 2], port=(1235, 1236)[i % 2]) for j in range(4)]
                for client in queued:
                    client.send(request + b"queued").shutdown()
                write(1234, (1236, 1235)[i % 2])
                count = process.log_text().count("reloaded:")
                process.send_signal(signal.SIGHUP)
                wait_until(lambda: process.log_text().count("reloaded:") > count, 5, "the reload")  # pylint: disable=W0640
                for client in queued:
                    extended_header(client.answer())
                    equal(client.end(), (b"queued", "closed"), "a client whose listener is gone")
                    client.sock.close()
            total = sum(comer.end() for comer in comers)
            sock.sendall(b"still here")
            equal(before.read(10), b"still here", "a session from before the reloads")
            before.sock.close()
            sock.close()
            return "%d clients meanwhile" % total


if __name__ == "__main__":
    main()
