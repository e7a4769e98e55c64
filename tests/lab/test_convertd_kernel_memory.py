#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertd_kernel_memory.py - the limits of kernel memory for peers that don't read, and the sessions that convertd ends for them"""
import contextlib
import os
import select
import socket
import threading

from convertlab import Lab, Skip, Veth, check, equal, kernel, long, main, same_data, wait_until
from convertlab.metrics import OPTIONS as METRICS, Metrics
from convertlab.peers import MPTCP, TCP, Client, Server, connect, converter, extended_header, reset
from convertlab.servers import pattern

LAB = ("--allow-client", "::/0", "--allow-destination", "10.0.0.0/8", "--allow-destination", "fd00::/8")
SIZE = 100_000_000
MB = 1 << 20


def held(lab):
    """Returns the bytes of kernel memory that convertd's sessions hold, by its metrics."""
    return Metrics(lab.converter)("convertd_kernel_memory_bytes")


def ended(lab):
    """Returns how many sessions convertd has ended because they held too much."""
    return Metrics(lab.converter)("convertd_connections_ended_total", outcome="limit_memory")


def really_held(lab):
    """Returns the kernel memory in bytes as the kernel counts it: the buffers of all sockets in the converter's namespace (ss -m)."""
    total = 0
    for line in lab.converter.run(["ss", "-tmnH"]).stdout.splitlines():
        for word in line[line.find("skmem:(") + 7:line.rfind(")")].split(","):
            for name in ("r", "w"):
                if word.startswith(name) and word[1:].isdigit():
                    total += int(word[1:])
    return total


class Stalled(contextlib.ExitStack):
    """Clients that ask for SIZE bytes and never read."""

    def __init__(self, lab, count, source=None, protocols=(TCP, MPTCP)):
        super().__init__()
        request = connect(lab.server.addr4, 80) + b"GET /bytes/%d HTTP/1.0\r\n\r\n" % SIZE
        for i in range(count):
            protocol = protocols[i % len(protocols)]
            client = Client(lab.client, lab.converter.addr4, protocol)
            self.callback(self._abort, client)
            if source:
                client.sock.bind((source, 0))
            client.sock.setblocking(protocol not in kernel.protocols_with_fastopen())
            client.send(request)

    @staticmethod
    def _abort(client):
        with contextlib.suppress(OSError):
            reset(client.sock)
        client.sock.close()


class Reader(threading.Thread):
    """A client that reads this many bytes a second, and compares each."""

    def __init__(self, lab, rate, protocol=TCP, source=None):
        super().__init__()
        self._client = Client(lab.client, lab.converter.addr4, protocol, seconds=30)
        if source:
            self._client.sock.bind((source, 0))
        self._client.send(connect(lab.server.addr4, 80) + b"GET /bytes/%d HTTP/1.0\r\n\r\n" % SIZE)
        self._piece = rate // 10
        self._ends = threading.Event()
        self.bytes, self.failed = 0, None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._ends.set()
        self.join()
        reset(self._client.sock)

    def run(self):
        try:
            extended_header(self._client.answer())
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += self._client.read(1)
            while not self._ends.wait(0.1) and self.bytes + self._piece < SIZE:
                data = self._client.read(self._piece)
                same_data(data == pattern(self._piece, self.bytes), "%d bytes, or wrong ones, at %d" % (len(data), self.bytes))
                self.bytes += len(data)
        except Exception as error:  # pylint: disable=broad-exception-caught
            self.failed = error

    def goes_on(self):
        """Fails if the reader has failed; returns whether it has got bytes since the last call."""
        if self.failed:
            raise self.failed
        before, self._seen = getattr(self, "_seen", 0), self.bytes
        return self.bytes > before


@contextlib.contextmanager
def downloads(*arguments):
    """Yields a lab with a server of a large file, and convertd."""
    with Lab(wifi=Veth(), lte=Veth(), core=Veth()) as lab:
        lab.http()
        with converter(lab, *arguments, *METRICS, defaults=LAB):
            yield lab


# --- clients that never read --------------------------------------------------------------------------------------------


def without_reading(lab, clients, budget, seconds, buffer):
    """Runs this many stalled clients, and two slow readers, one of them at the stalled clients' address: within `seconds` convertd ends
    stalled ones until these hold no more than the budget.

    convertd never ends readers, however much the kernel holds for them, which may be tens of megabytes. So their buffers are limited
    here: any memory above the budget and these buffers belongs to stalled clients.
    """
    for name in ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"):
        least, default, _ = lab.converter.run(["sysctl", "-n", name]).stdout.split()
        lab.converter.sysctl(name, "%s %s %d" % (least, default, buffer))
    budget += 2 * buffer + 2 * MB  # both sides of the reader at the other address, and memory that isn't counted
    with Reader(lab, 200_000) as neighbour, Reader(lab, 100_000, MPTCP, lab.client.lte4) as other:
        with Stalled(lab, clients):
            most = 0

            def sees():
                nonlocal most
                now = max(really_held(lab), held(lab))  # ss sees subflows, convertd also the connections' own queues
                most = max(most, now)
                return ended(lab) > 0 and now < budget
            wait_until(sees, seconds, lambda: "%d MB at most, there are %d, of which convertd knows %d" % (
                budget // MB, really_held(lab) // MB, held(lab) // MB))
            for _ in range(5):
                wait_until(lambda: neighbour.goes_on() and other.goes_on(), 10, "the readers to go on")
            now = really_held(lab)
            check(now < budget, "%d MB are held" % (now // MB))
            known = held(lab)
            check(known > 0.6 * now, "convertd knows of %d MB of %d" % (known // MB, now // MB))
        return "%d MB at most, then %d MB (convertd knows of %d); %d of %d ended" % (
            most // MB, now // MB, known // MB, ended(lab), clients)


# a control group of at most 64 MB, as /sys/fs/cgroup shows it in a container, with a limit's file that can't be read
IN_A_GROUP = """
set -e
mount -t tmpfs none /sys/fs/cgroup
group=/sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup)
mkdir -p "$group/memory.high"
echo 67108864 > "$group/memory.max"
exec "$@"
"""


def test_memory_of_a_control_group():
    """The budget is half of the group's limit, in convertd's sandbox, too. convertd logs one line about a limit that it can't read."""
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        if "0::/" not in file.read():
            raise Skip("no control groups of version 2")
    with Lab(lte=None) as lab:
        process = lab.convertd(METRICS, wrapper=["unshare", "--mount", "sh", "-c", IN_A_GROUP, "sh"])
        equal(Metrics(lab.converter)("convertd_max_kernel_memory_bytes"), 32 * MB, "the budget")
        equal(process.log_text().count("memory can't be read: "), 1, "lines in\n" + process.log_text())


@long
def test_clients_that_never_read():
    """With the budget from this host's tcp_mem, and with a small one."""
    with downloads() as lab:
        total = Metrics(lab.converter)("convertd_max_kernel_memory_bytes")
        # Linux's default, since a namespace can't see the setting
        check(0.8 < total / (os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE") / 32) < 1.2, "%d bytes" % total)
        first = without_reading(lab, 150, total / 8, 40, 16 * MB)
    with downloads("--max-memory", "64", "--max-memory-per-client", "16") as lab:
        return "%s; %s" % (first, without_reading(lab, 60, 16 * MB, 40, 2 * MB))


@long
def test_stalled_uploads():
    """The server reads nothing: the kernel holds its clients' bytes, and convertd ends some of these clients."""
    with Lab(wifi=Veth(), lte=Veth(), core=Veth()) as lab, Server(lab, 81, backlog=256) as server:
        with converter(lab, "--max-memory", "64", "--max-memory-per-client", "16", *METRICS, defaults=LAB):
            with contextlib.ExitStack() as stack:
                clients = []
                for i in range(40):
                    client = stack.enter_context(Client(lab.client, lab.converter.addr4, (TCP, MPTCP)[i % 2]))
                    extended_header(client.send(server.connect()).answer())
                    stack.enter_context(server.accept())
                    client.sock.setblocking(False)
                    clients.append(client)

                def full():
                    for client in clients:
                        with contextlib.suppress(OSError):
                            client.sock.send(bytes(1 << 20))
                    return ended(lab) > 0 and really_held(lab) < 20 * MB
                wait_until(full, 30, lambda: "16 MB at most, there are %d" % (really_held(lab) // MB))
                return "%d of 40 ended" % ended(lab)


@long
def test_total_of_all_clients():
    """No client holds too much, but all together do: convertd ends sessions of the greediest prefix, those that stall longest first."""
    with downloads("--max-memory", "40", "--max-memory-per-client", "39") as lab:
        with Reader(lab, 500_000, TCP, lab.client.lte4) as stranger, Stalled(lab, 1, lab.client.lte4):
            with Stalled(lab, 40):
                wait_until(lambda: ended(lab) > 0 and really_held(lab) < 48 * MB, 30,
                           lambda: "48 MB at most, there are %d" % (really_held(lab) // MB))
                wait_until(stranger.goes_on, 10, "the reader to go on")
        return "%d of 41 ended" % ended(lab)


# --- sessions that move, and sessions that end -----------------------------------------------------------------------------


@long
def test_ends_that_do_not_arrive():
    """Both sides have sent their FINs, and the client reads nothing: its bytes still count, and convertd ends such sessions."""
    with downloads("--max-memory", "64", "--max-memory-per-client", "4") as lab, contextlib.ExitStack() as stack:
        request = connect(lab.server.addr4, 80) + b"GET /bytes/400000 HTTP/1.0\r\n\r\n"
        for i in range(40):
            client = stack.enter_context(Client(lab.client, lab.converter.addr4, (TCP, MPTCP)[i % 2]))
            client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 20000)
            client.send(request).shutdown()
        wait_until(lambda: ended(lab) > 0 and really_held(lab) < 6 * MB, 30, lambda: "4 MB at most, there are %d" % (really_held(lab) // MB))
        check(held(lab) > 1 * MB, "convertd knows of %d bytes" % held(lab))
        # a client that reads gets everything
        client = stack.enter_context(Client(lab.client, lab.converter.addr4, TCP))
        client.send(request).shutdown()
        wait_until(lambda: select.select([client.sock], [], [], 0)[0], 10, "its first bytes")
        extended_header(client.answer())
        data, how = client.end()
        check(how == "closed" and data.endswith(pattern(400000)), "%d bytes, %s" % (len(data), how))
        return "%d of 40 ended" % ended(lab)


if __name__ == "__main__":
    main()
