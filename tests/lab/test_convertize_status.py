#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertize_status.py - "convertize status": which programs' connections are converted, to which servers, over which networks

Real programs have connections open, preloaded and supervised; their user, another user and root ask for the status."""
import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import termios
import time

from convertlab import Lab, Link, check, equal, main, wait_until
from convertlab.paths import BULK, PathManager, bare

NOBODY = 65534
COLUMNS = 80
# Connects, and says so. With an argument it sends as many bytes of bulk.py after a line on its standard input. Then it waits for a line.
CLIENT = """
import hashlib, socket, sys
sock = socket.create_connection((sys.argv[1], int(sys.argv[2])))
print("connected", flush=True)
if len(sys.argv) > 3:
    size = int(sys.argv[3])
    sys.stdin.readline()
    sock.sendall(b"put %d\\n" % size + (2 * hashlib.shake_256(b"bulk").digest(1048573))[:size])
    sock.recv(1)
    print("done", flush=True)
sys.stdin.readline()
"""


@contextlib.contextmanager
def two_networks():
    """Yields a lab with wifi, which has the preferred default route, lte, a converter, and a server that takes bytes at port 6000."""
    with Lab(wifi=Link(delay_ms=5, rate_mbit=50), lte=Link(delay_ms=10, rate_mbit=50), core=Link(delay_ms=1)) as lab:
        lab.convertd()
        lab.start_listening(lab.server, ["python3", BULK, "serve", "tcp", 6000], 6000)
        yield lab


def subflows_on_lte(lab):
    """The number of connections and subflows to the converter that lte has."""
    shown = lab.client.run(["ss", "-HtnO", "state", "established", "dport", "=", ":1234"]).stdout.split()
    return sum(word.rpartition(":")[0].partition("%")[0].strip("[]") in (lab.client.lte4, lab.client.lte6) for word in shown)


class Runs:
    """Programs that keep a connection until their standard input is closed."""

    def __init__(self, lab, directory):
        self._lab = lab
        self.env = {**lab.converted(CONVERT_CACHE=directory), "LD_PRELOAD": ""}
        os.makedirs(directory, mode=0o700, exist_ok=True)

    def begin(self, *words, method="preload", wrapper=(), size=0, joins=False, **env):
        """
        Starts a program, and waits until it is connected, and has sent its bytes. joins: its request isn't silent, and it sends them once lte
        has a subflow.
        """
        command = [*wrapper, self._lab.build.program("convertize"), "--config", "none", "--method", method, "python3", "-c", CLIENT,
                   *(words or (self._lab.server.addr4, 6000)), *([size] if size else [])]
        process = self._lab.client.popen(command, name="program", stdin=-1, env={**self.env, **env})
        process.wait_log("connected", 20)
        if size:
            wait_until(lambda: not joins or subflows_on_lte(self._lab), 20, "the second subflow")
            process.stdin.write(b"\n")
            process.stdin.flush()
            process.wait_log("done", 20)
        return process


def ask(lab, *words, wrapper=(), text=False, env=None, check=True):  # pylint: disable=redefined-outer-name
    result = lab.client.run([*wrapper, lab.build.program("convertize"), "status", "--config", "none", *([] if text else ["--json"]), *words],
                            env=env, check=check)
    return result.stdout if text else json.loads(result.stdout)


def test_programs_servers_networks():
    """A preloaded and a supervised program, one that goes directly, and the bytes of each network."""
    with two_networks() as lab:
        runs = Runs(lab, os.path.join(lab.directory, "cache"))
        start = time.monotonic()
        first = runs.begin(size=2000000, joins=True)
        took = time.monotonic() - start
        second = runs.begin(lab.server.addr6, 6000, method="supervise")
        direct = runs.begin(CONVERT_BYPASS=lab.server.addr4)
        wait_until(lambda: subflows_on_lte(lab) == 2, 20, "both programs' second subflows")
        found = ask(lab)
        equal((found["users"], len(found["connections"])), ("all", 3), found)
        one, two, three = found["connections"]
        equal((one["program"], one["pid"], one["user"], one["server"], one["converter"], one["direct"], one["mptcp"], one["client"]),
              ("python3", first.pid, "root", "%s:6000" % lab.server.addr4, "%s:1234" % lab.converter.addr4, None, True, None), "the preloaded one")
        equal((two["server"], two["mptcp"], two["direct"]), ("[%s]:6000" % lab.server.addr6, True, None), "the supervised one")
        check(two["program"] == "python3" and two["pid"] not in (first.pid, direct.pid), two)
        equal((three["server"], three["converter"], three["direct"], three["mptcp"], three["pid"]),
              ("%s:6000" % lab.server.addr4, None, "CONVERT_BYPASS says so", False, direct.pid), "the direct one")
        check(0 <= one["age_s"] <= time.monotonic() - start + 1 and 10 <= one["connect_ms"] <= 1000 * took, one)
        networks = {network["device"]: network for network in one["networks"]}
        equal(sorted(networks), ["lte", "wifi"], "networks")
        sent = sum(network["sent"] for network in networks.values())
        check(2000000 <= sent < 2200000 and all(network["sent"] > 100000 for network in networks.values()), networks)
        sums = {network["device"]: network for network in found["networks"]}
        equal({name: sums[name]["subflows"] for name in sums}, {"wifi": 2, "lte": 2}, "subflows of all")
        check(sums["lte"]["sent"] >= networks["lte"]["sent"], sums)
        text = ask(lab, text=True)
        equal([line for line in text.splitlines() if len(line) > COLUMNS], [], "lines that are too long")
        check("\x1b" not in text and text.startswith("2 connections converted, 1 known to go directly; of all users"), text)
        check("python3[%d] of root to %s:6000, by %s:1234" % (first.pid, lab.server.addr4, lab.converter.addr4) in text and
              "began normally, connected after" in text and "directly: CONVERT_BYPASS says so" in text, text)
        for process in (first, second, direct):
            process.stdin.close()
            equal(process.wait(20), 0, "its end")
        wait_until(lambda: not ask(lab)["connections"], 20, "the end of the connections")


def test_users():
    """An unprivileged user sees all about their own connections, and none of other users'; root sees all."""
    with two_networks() as lab:
        wrapper = ("setpriv", "--reuid", NOBODY, "--clear-groups", "--bounding-set", "-all", "--inh-caps", "-all")
        theirs = os.path.join("/dev/shm", "libconvert-test-%d" % os.getpid())
        os.makedirs(theirs, mode=0o700)
        os.chown(theirs, NOBODY, -1)
        try:
            mine = Runs(lab, os.path.join(lab.directory, "cache")).begin()
            other = Runs(lab, theirs).begin(wrapper=wrapper, size=500000, CONVERT_LOG="")
            wait_until(lambda: subflows_on_lte(lab) == 2, 20, "both programs' second subflows")
            found = ask(lab, wrapper=wrapper)
            equal((found["users"], [one["pid"] for one in found["connections"]]), ("own", [other.pid]), found)
            equal(found["connections"][0]["server"], "%s:6000" % lab.server.addr4, "its server")
            equal(sorted(network["device"] for network in found["connections"][0]["networks"]), ["lte", "wifi"], "its networks")
            check("only yours: root sees all" in ask(lab, text=True, wrapper=wrapper), "no word about other users' connections")
            equal(sorted(one["pid"] for one in ask(lab)["connections"]), sorted([mine.pid, other.pid]), "processes that root sees")
        finally:
            os.unlink(os.path.join(theirs, "libconvert-cache-3"))
            os.rmdir(theirs)


def test_without_a_note():
    """If programs keep no cache, status needs the converter's address to find converted connections, and doesn't know their servers."""
    with two_networks() as lab:
        process = Runs(lab, os.path.join(lab.directory, "cache")).begin(CONVERT_CACHE="none")
        wait_until(lambda: subflows_on_lte(lab) == 1, 20, "the second subflow")
        equal(ask(lab)["connections"], [], "without the converter")
        found, = ask(lab, "--converter", lab.converter.addr4)["connections"]
        equal((found["pid"], found["server"], found["age_s"], len(found["networks"])), (process.pid, None, None, 2), found)
        text = ask(lab, "--converter", lab.converter.addr4, text=True)
        check("to an unknown server, by %s:1234" % lab.converter.addr4 in text and "no note says" in text, text)


def test_another_network():
    """status tells that a connection began on another network, because the usual one was silent."""
    with two_networks() as lab:
        lab.wifi.down()
        Runs(lab, os.path.join(lab.directory, "cache")).begin()
        found, = ask(lab)["connections"]
        check("anew" in found["began"] or "other-network" in found["began"], found)
        equal([network["device"] for network in found["networks"] if network["received"] or network["sent"]], ["lte"], "its networks")
        check("another network, since the" in re.sub(r"\s+", " ", ask(lab, text=True)), "its text")


def test_a_network_ends():
    """status tells, and counts, that a connection has outlived the network on which it began."""
    with two_networks() as lab:
        Runs(lab, os.path.join(lab.directory, "cache")).begin(size=200000)
        equal((ask(lab)["outlived"], ask(lab)["connections"][0]["outlived"]), (0, False), "before")
        check("outlived" not in ask(lab, text=True), "its text before")
        wait_until(lambda: len(ask(lab)["connections"][0]["networks"]) == 2, 20, "the second network")
        lab.client.ip("mptcp endpoint delete id 0 %s" % lab.client.wifi4)  # as path managers do when an address goes
        wait_until(lambda: ask(lab)["outlived"] == 1, 20, "the end of its first subflow: %s" % ask(lab))
        found, = ask(lab)["connections"]
        equal((found["outlived"], [network["device"] for network in found["networks"]]), (True, ["lte"]), "afterwards")
        text = re.sub(r"\s+", " ", ask(lab, text=True))
        check("1 of them has outlived the network on which it began" in text, text)


def test_outlived_today():
    """The path service counts each connection that outlives a network once; it still counts after its end, and after the service's."""
    with two_networks() as lab:
        bare(lab)
        env = {"STATE_DIRECTORY": os.path.join(lab.directory, "state")}
        os.mkdir(env["STATE_DIRECTORY"])
        with PathManager(lab, env=env) as manager:
            wait_until(lambda: ask(lab, env=env)["outlived_today"] == 0, 20, "the service's sums")
            runs = Runs(lab, os.path.join(lab.directory, "cache"))
            programs = [runs.begin(size=100000), runs.begin(size=100000, method="supervise")]
            wait_until(lambda: all(len(one["networks"]) == 2 for one in ask(lab)["connections"]), 20, "the second network")
            lab.client.ip("link set dev wifi down")
            wait_until(lambda: ask(lab, env=env)["outlived_today"] == 2, 20, "the count")
            for process in programs:
                process.stdin.close()
                equal(process.wait(20), 0, "its end")
            text = re.sub(r"\s+", " ", ask(lab, env=env, text=True))
            check("2 connections have outlived the network on which they began" in text, text)
            equal(ask(lab, env=env)["outlived"], 0, "open ones")
            manager.stop()
        equal(ask(lab, env=env)["outlived_today"], 2, "after the service's end")


class Terminal:
    """The client's "convertize top" at a terminal of 80 columns."""

    def __init__(self, lab, *words):
        self._fd, side = pty.openpty()
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
        self.before = termios.tcgetattr(side)
        self._side = side
        self.shown = b""
        self.process = lab.client.popen([lab.build.program("convertize"), "--config", "none", *words] if words else
                                        [lab.build.program("convertize"), "top", "--config", "none"], stdin=side, stdout=side, stderr=side,
                                        env={"TERM": "xterm"}, start_new_session=True)

    def reads(self, text, times=1):
        """Reads until the terminal has shown the text this often."""
        def there():
            if select.select([self._fd], [], [], 0)[0]:
                self.shown += os.read(self._fd, 65536)
            return self.shown.count(text) >= times
        wait_until(there, 20, "%r on the terminal" % text)

    def keys(self, keys):
        os.write(self._fd, keys)

    def ends(self):
        status = self.process.wait(10)
        self.reads(b"\x1b[?1049l")
        return status, termios.tcgetattr(self._side) == self.before

    def close(self):
        os.close(self._fd)
        os.close(self._side)


def test_at_a_terminal():
    """convertize top redraws in place; q, SIGINT and SIGTERM end it, and leave the terminal as it was. A pipe gets one answer."""
    with two_networks() as lab:
        Runs(lab, os.path.join(lab.directory, "cache")).begin()
        for end in (b"q", signal.SIGINT, signal.SIGTERM):
            terminal = Terminal(lab)
            terminal.reads(b"\x1b[H", 2)
            terminal.reads(b"1 connection converted", 2)
            # the sums come first: the end of the output is cut first
            terminal.reads(b"in none of the above\x1b[K\r\r\n\x1b[1mpython3[")
            check(b"\x1b[1m" in terminal.shown and b"\x1b[2J" not in terminal.shown, "colours, and no cleared screen")
            if isinstance(end, bytes):
                terminal.keys(end)
            else:
                terminal.process.send_signal(end)
            equal(terminal.ends(), (0, True), "status, and whether the terminal is as it was, after %r" % end)
            terminal.close()
        shown = lab.client.run([lab.build.program("convertize"), "top", "--config", "none"], env={"TERM": "xterm"}).stdout
        check(shown.startswith("1 connection converted") and "\x1b" not in shown, shown)


if __name__ == "__main__":
    main()
