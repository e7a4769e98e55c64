#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertd_process.py - convertd as a process: its options, its end, its descriptors, and mutated requests"""
import collections
import contextlib
import os
import random
import resource
import select
import signal
import time

from convertlab import Lab, Link, Skip, check, equal, main, need, wait_until
from convertlab.peers import (MPTCP, TCP, Client, Server, clients, connect, connect_tlv, converter, descriptors,
                              ended, extended_header, message, octets, tlvs)

VALID_TLVS = {0x14, 0x15, 0x1e, 0xf0}
INFO = octets("01010000")
COOKIE = octets("16030000 0011223344556677")


def near(**options):
    """Returns a lab whose links are too fast to matter."""
    return Lab(wifi=Link(delay_ms=0.5), lte=None, core=Link(delay_ms=0.1), **options)


# --- options ---------------------------------------------------------------------------------------------------


BAD_OPTIONS = (
    (["--listen", "example.org:1234"], "example.org:1234"), (["--listen", "10.9.0.1"], "10.9.0.1"),
    (["--listen", "fd09::1"], "[fd09::1]:1234"), (["--listen", "10.9.0.1:0"], "10.9.0.1:0"),
    (["--listen", "10.9.0.1:65536"], "10.9.0.1:65536"), (["--listen", ""], "\"\""), (["--listen"], "--listen"),
    (["--connect-timeout", "0"], "\"0\""), (["--connect-timeout", "soon"], "\"soon\""),
    (["--connect-timeout", "-1"], "\"-1\""), (["--connect-timeout", "86401"], "\"86401\""),
    (["--connect-timeout", "1s"], "\"1s\""), (["--connect-timeout", " 1"], "\" 1\""), (["--request-timeout", ""], "\"\""),
    (["--request-timeout", "99999999999999999999"], "\"99999999999999999999\""), (["--request-timeout"], "--request-timeout"),
    (["--log-level", "loud"], "\"loud\""), (["--log-level", ""], "\"\""), (["--no-such-option"], "--no-such-option"),
    (["--no-silence=1"], "--no-silence"), (["-x"], "-x"), (["-vx"], "-v"),
    (["10.9.0.1:1234"], "\"10.9.0.1:1234\""),
    (["--listen", "[::]:1"] * 65, "[::]:1"),
)


def test_options():
    """A wrong option: status 2 and one line that quotes it. --help and --version: status 0 and nothing on standard error."""
    with near() as lab:
        program = lab.build.program("convertd")
        for words, quoted in BAD_OPTIONS:
            result = lab.converter.run([program, *words], check=False)
            lines = result.stderr.splitlines()
            check(result.returncode == 2 and len(lines) == 1 and lines[0].startswith("convertd: ") and quoted in lines[0],
                  "%s: status %d, \"%s\"" % (words[:4], result.returncode, result.stderr))
            equal(result.stdout, "", "standard output after %s" % words[:4])
        for word, first in (("--help", "Usage: convertd"), ("--version", "convertd (")):
            result = lab.converter.run([program, word])
            check(result.stdout.startswith(first) and not result.stderr, result)
        options = lab.converter.run([program, "--help"]).stdout
        for word in ("--listen", "--connect-timeout", "--request-timeout", "--log-level", "--no-silence", "--version"):
            check(word in options, "--help without %s" % word)
        # a full disk isn't a success
        equal(lab.converter.run(["sh", "-c", "%s --help >/dev/full" % program], check=False).returncode, 1, "status")


def test_closed_standard_descriptors():
    """convertd opens /dev/null in their places: the log must not go to another file or socket."""
    with near() as lab:
        words = ["sh", "-c", "exec \"$@\" <&- >&- 2>&-", "sh"]
        process = lab.convertd(wrapper=words)
        equal({os.readlink("/proc/%d/fd/%d" % (process.serving, number)) for number in range(3)}, {"/dev/null"}, "descriptors 0 to 2")
        equal(process.stop(), 0, "the status")


def test_ignored_children():
    """Whoever starts convertd may ignore SIGCHLD: the main process still ends when the serving one is killed."""
    with near() as lab:
        process = lab.convertd(wrapper=["env", "--ignore-signal=CHLD"])
        process.wait_log("ready")
        check(process.serving != process.pid, "one process")
        os.kill(process.serving, signal.SIGKILL)
        check(process.wait(30) != 0, "the status")


def test_listening():
    """convertd listens at several addresses; if it can't have one, it ends with status 1 and the reason."""
    with near() as lab, Server(lab, 80) as server:
        program = lab.build.program("convertd")
        with converter(lab, "--listen", lab.converter.addr4 + ":1234", "--listen", "[%s]:4321" % lab.converter.addr6) as process:
            check("%s:1234" % lab.converter.addr4 in process.log_text(), process.log_text())
            for address, port, answers in ((lab.converter.addr4, 1234, True), (lab.converter.addr6, 4321, True),
                                           (lab.converter.addr6, 1234, False), (lab.converter.addr4, 4321, False)):
                with Client(lab.client, address, MPTCP, "behind", port) as client:
                    if answers:
                        extended_header(client.send(server.connect()).answer())
                        server.accept().close()
                        continue
                    try:
                        client.send(server.connect())
                        check(False, "%s port %d answers" % (address, port))
                    except ConnectionRefusedError:
                        pass
            for address, reason in (("%s:1234" % lab.converter.addr4, "in use"), ("10.99.0.1:1234", "assign")):
                result = lab.converter.run([program, "--listen", address], check=False)
                check(result.returncode == 1 and address in result.stderr and reason in result.stderr, result)


def nft_state(lab):
    """Returns all nftables rules of the converter's host."""
    return lab.converter.run(["nft", "list", "ruleset"]).stdout


def test_end():
    """SIGTERM and SIGINT: status 0. However convertd ends, its nftables table goes, and clients' connections end, sessions by resets."""
    need("nft", "nftables")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
        with near() as lab, Server(lab, 80) as server:
            before = nft_state(lab)
            process = lab.convertd()
            process.wait_log("ready")
            check("table inet convertd_" in nft_state(lab), "no nftables table")
            at_start, pairs = descriptors(process), []
            for protocol in (TCP, MPTCP):
                client = Client(lab.client, lab.converter.addr4, protocol)
                client.send(server.connect())
                pairs.append((client, server.accept()))
                extended_header(client.answer())
            idle = [Client(lab.client, lab.converter.addr4, protocol).send(data) for protocol in (TCP, MPTCP)
                    for data in (octets("0106"), connect(lab.addresses.blackhole4, 80), octets("01022263 00010000"))]
            # two for each session and each client whose server is asked, one for each other client
            wait_until(lambda: descriptors(process) == at_start + 12, 5, "all sockets")  # pylint: disable=W0640
            equal(process.stop(number), 0 if number != signal.SIGKILL else -signal.SIGKILL, "the status")
            wait_until(lambda: nft_state(lab) == before, 5, "the nftables rules to go")  # pylint: disable=W0640
            for client, sock in pairs:
                equal(client.end(), (b"", "reset"), "the end of a session (%s)" % client.name)
                equal(ended(sock), (b"", "reset"), "the server's end")
                client.sock.close()
                sock.close()
            for client in idle:
                # a reset behind the FIN of a refusal is EPIPE
                with contextlib.suppress(BrokenPipeError):
                    client.end()
                client.sock.close()
            check("Sanitizer" not in process.log_text() and "runtime error" not in process.log_text(), process.log_text())
            # the next convertd finds the place free
            with converter(lab), Client(lab.client, lab.converter.addr4) as client:
                extended_header(client.send(server.connect()).answer())
                server.accept().close()


# --- many ----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def open_files(count):
    """Raises this process's limit of open files; skips the test if its hard limit is lower."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < count:
        raise Skip("the hard limit of open files is %d, the test needs %d; raise it with \"ulimit -Hn\"" % (hard, count))
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_2000_sessions_at_once():
    """All open together, each with its own bytes; afterwards descriptors and rules are as before."""
    need("nft", "nftables")
    count = 2000
    with open_files(2 * count + 200), near() as lab, Server(lab, 80, backlog=4096) as server, converter(lab) as process:
        before = descriptors(process), nft_state(lab)
        by_number, accepted = {}, {}
        for i in range(count):
            client = Client(lab.client, (lab.converter.addr4, lab.converter.addr6)[i // 4 % 2], (TCP, MPTCP)[i % 2])
            by_number[i] = client.send(server.connect(v6=i % 4 > 1) + b"%04d" % i)
            if i % 100 == 99:
                # the queues of linkem and of the listener take no burst of 2,000 SYNs
                for _ in range(100):
                    sock = server.accept()
                    accepted[int(sock.recv(4))] = sock
        equal(sorted(accepted), list(range(count)), "sessions")
        for client in by_number.values():
            extended_header(client.answer())
        check(descriptors(process) >= 2 * count, "descriptors: %d" % descriptors(process))
        for i, sock in accepted.items():
            sock.sendall(b"to %04d" % i)
            sock.close()
        for i, client in by_number.items():
            equal(client.end(), (b"to %04d" % i, "closed"), "the bytes and the end of session %d" % i)
            client.sock.close()
        wait_until(lambda: descriptors(process) == before[0], 10, lambda: "%d descriptors to be closed" % descriptors(process))
        equal(nft_state(lab), before[1], "nftables rules")


# --- mutated requests ------------------------------------------------------------------------------------------------


def mutated(rng, seeds):
    """Returns a valid request with up to 16 changes."""
    data = bytearray(rng.choice(seeds))
    for _ in range(rng.choice((0, 1, 1, 1, 2, 4, 16))):
        at = rng.randrange(len(data)) if data else 0
        what = rng.randrange(7)
        if not data or what == 0:
            data[at:at] = rng.randbytes(rng.randrange(1, 9))
        elif what == 1:
            data[at] = rng.randrange(256)
        elif what == 2:
            data[at] ^= 1 << rng.randrange(8)
        elif what == 3:
            del data[at:]
        elif what == 4:
            del data[at:at + rng.randrange(1, 5)]
        elif what == 5:
            data[at] = rng.choice((0, 1, 2, 127, 128, 254, 255))
        else:
            # a length, which matters most
            data[min(rng.choice((1, 5)), len(data) - 1)] = rng.randrange(256)
    if rng.random() < 0.3:
        # a Total Length that fits again, so that convertd reads the TLVs
        data += bytes(-len(data) % 4)
        if len(data) >= 4:
            data[:4] = bytes([1, min(len(data) // 4, 255), 0x22, 0x63])
    return bytes(data)


class FuzzedClient:
    """One of many clients, until the converter has answered or closed."""

    def __init__(self, lab, rng, request):
        self.request = request
        self.client = Client(lab.converter, "127.0.0.1", TCP, rng.choice(("syn", "behind")) if request else "behind")
        self.client.send(request)
        self.client.sock.setblocking(False)
        self.data = b""
        self.outcome = None
        if rng.random() < 0.5:
            # it may be closed already
            with contextlib.suppress(OSError):
                self.client.shutdown()

    def read(self):
        """Reads what has arrived; tells whether the stream has ended."""
        try:
            piece = self.client.sock.recv(65536)
        except BlockingIOError:
            return False
        except (ConnectionResetError, ConnectionRefusedError):  # a blind request is refused by a RST to its SYN
            self.outcome = "reset"
            return True
        self.data += piece
        if piece and not (len(self.data) >= 4 and self.data[4:5] == b"\x14" and len(self.data) >= self.data[1] * 4):
            return False
        self.outcome = "closed"
        return True

    def judge(self):
        """Returns how the connection has ended; fails if that isn't a proper answer."""
        if not self.data:
            return self.outcome
        size = self.data[1] * 4 if len(self.data) > 1 else 0
        types = [kind for kind, _ in tlvs(self.data[:size])]
        check(types and set(types) <= VALID_TLVS and len(set(types)) == len(types),
              "%s is answered by %s" % (self.request.hex(), self.data.hex()))
        return "answer %s" % "+".join("%02x" % kind for kind in types if kind != 0xf0)


def test_3000_mutated_requests():
    """The converter answers each by a well-formed message, closes, or resets; and then serves as before."""
    rng = random.Random(8803)
    with open_files(1200), near() as lab, Server(lab, 80, backlog=4096) as server, \
            converter(lab, "--request-timeout", "1", "--connect-timeout", "1") as process:
        target = connect_tlv(lab.server.addr4, 80)
        seeds = [message(target), message(INFO), message(INFO, target), message(target, COOKIE, INFO),
                 message(connect_tlv(lab.server.addr6, 80, octets("1e02 0402 0802"))),
                 message(connect_tlv(lab.server.addr4, 80, octets("2202 0303 07 01 1d04 0000"))) + b"data",
                 message(connect_tlv(lab.server.addr4, lab.addresses.refused_port)), message(COOKIE, target) + bytes(2000)]
        server.sock.setblocking(False)
        outcomes, poller, running, started = collections.Counter(), select.epoll(), {}, 0
        poller.register(server.sock, select.EPOLLIN)
        silent = time.monotonic()
        while started < 3000 or running:
            while started < 3000 and len(running) < 500:
                fuzzed = FuzzedClient(lab, rng, mutated(rng, seeds))
                running[fuzzed.client.sock.fileno()] = fuzzed
                poller.register(fuzzed.client.sock, select.EPOLLIN)
                started += 1
            for number, _ in poller.poll(0.5):
                silent = time.monotonic()
                if number == server.sock.fileno():
                    server.accept().close()
                elif running[number].read():
                    fuzzed = running.pop(number)
                    outcomes[fuzzed.judge()] += 1
                    fuzzed.client.sock.close()
            check(process.poll() is None, "convertd ended with %s" % process.returncode)
            check(time.monotonic() - silent < 60, "no end of %s" % [fuzzed.request.hex() for fuzzed in running.values()])
        poller.close()
        server.sock.settimeout(10)
        for kind, least in (("answer 14", 100), ("answer 1e", 500), ("answer 15", 50), ("answer 15+14", 20), ("closed", 200)):
            check(outcomes[kind] >= least, "too few mutations have the outcome %s: %s" % (kind, outcomes))
        for client in clients(lab, deliveries=["syn"]):
            client.send(server.connect() + b"still there?")
            extended_header(client.answer())
            wait_until(lambda: hears(server, b"still there?"), 5, "the request")
        return ", ".join("%s %d" % pair for pair in sorted(outcomes.items()))


def hears(server, data):
    """Accepts a connection; tells whether it brings these bytes: one of a mutated request may still be in the queue."""
    with server.accept() as sock:
        return sock.recv(100) == data


if __name__ == "__main__":
    main()
