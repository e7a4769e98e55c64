#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_losses.py - whichever packet is lost between library and converter, the connection is at most CONVERT_TIMEOUT late, and converted"""
import os
import time

from convertlab import Lab, Link, check, equal, long, main, waits
from convertlab.peers import TCP, Client, asked_to_connect, connect
from convertlab.waiting import LabError, patience, wait_until

SCRIPTED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scripted_converter.py")
PORT = 1234
TIMEOUT = 3.0    # CONVERT_TIMEOUT's default
LATE = 5700      # ms that a connection may be later than a direct one: CONVERT_TIMEOUT twice, or the kernel's own repeats, would be more
PACKETS = 8      # how many of each direction are lost, one by one: more than a handshake has
ECHO = 7
WAYS = ("away", "back")

CLIENT = """
import socket, sys, time
start = time.monotonic()
try:
    sock = socket.create_connection((sys.argv[1], int(sys.argv[2])))
    ms = (time.monotonic() - start) * 1000
    sock.sendall(b"hello")
    said = sock.recv(5).decode()
except OSError as error:
    ms, said = (time.monotonic() - start) * 1000, error.strerror
print("%.1f %s" % (ms, said))
"""


def lab_for(**options):
    return Lab(wifi=Link(delay_ms=10), lte=None, core=Link(delay_ms=10), **options)


def cases():
    """[(direction, number of the lost packet), …]"""
    return [(way, number) for way in WAYS for number in range(PACKETS)]


def lose(lab, rules):
    """Drops, for each (way, match, n), only the n-th packet from now on that matches, counted from 0."""
    for host, way in ((lab.converter, "away"), (lab.client, "back")):
        lines = ["table inet losses", "delete table inet losses", "table inet losses {", "chain arrivals {",
                 "type filter hook prerouting priority -1000;"]
        lines += ["%s numgen inc mod 1000000 == %d drop" % (match, number) for which, match, number in rules if which == way]
        host.run(["nft", "-f", "-"], input="\n".join([*lines, "}", "}", ""]))


def match(way, address, port):
    return "ip %saddr %s tcp %sport %d" % (("d", address, "d", port) if way == "away" else ("s", address, "s", port))


class Connection:
    """A program of its own that makes one connection."""

    def __init__(self, lab, address, port, env=None):
        self._process = lab.client.popen(["python3", "-c", CLIENT, address, port], env=env, name="connects")

    def result(self):
        """(milliseconds until connect() returned, the echo or the error)"""
        if self._process.wait(60):
            raise LabError(self._process.log_text())
        ms, _, said = self._process.log_text().strip().partition(" ")
        return float(ms), said


def direct_times(lab):
    """Milliseconds of a direct connection for each case."""
    ports = {case: 7000 + i for i, case in enumerate(cases())}
    for port in ports.values():
        lab.echo(port)
    lose(lab, [(way, match(way, lab.server.addr4, port), number) for (way, number), port in ports.items()])
    running = {case: Connection(lab, lab.server.addr4, port) for case, port in ports.items()}
    found = {}
    for case, connection in running.items():
        found[case], said = connection.result()
        equal(said, "hello", "directly, %s" % (case,))
    return found


class Converters:
    """The converter under an address for each case, so that all cases can be tried at once."""

    def __init__(self, lab):
        self._lab = lab
        self.addresses = {case: "10.9.1.%d" % (i + 1) for i, case in enumerate(cases())}
        lab.converter.ip(*("addr add %s/32 dev lo" % address for address in self.addresses.values()))
        self._runtime = os.path.join(lab.directory, "runtime-%d" % time.monotonic_ns())

    def env(self, case):
        runtime = "%s-%s-%d" % (self._runtime, *case)
        os.makedirs(runtime, mode=0o700, exist_ok=True)
        return self._lab.converted(CONVERT_ADDR=self.addresses[case], XDG_RUNTIME_DIR=runtime, CONVERT_LOG=self.log(case))

    def log(self, case):
        return os.path.join(self._lab.directory, "shim-%s-%d.log" % case)

    def logged(self, case):
        with open(self.log(case), encoding="utf-8") as file:
            return file.read()

    def connect(self, port=ECHO):
        """{case: (ms, the echo or the error)}"""
        running = {case: Connection(self._lab, self._lab.server.addr4, port, self.env(case)) for case in cases()}
        return {case: connection.result() for case, connection in running.items()}

    def lose(self):
        lose(self._lab, [(way, match(way, address, PORT), number) for (way, number), address in self.addresses.items()])


def one_lost(hold, mptcp, warm):
    with lab_for() as lab:
        if not mptcp:
            lab.client.sysctl("net.mptcp.enabled", 0)
        lab.convertd(["--hold-syn", "on" if hold else "off"])
        lab.echo(ECHO)
        direct = direct_times(lab)
        converters = Converters(lab)
        if warm:
            converters.connect()
            for case in cases():
                os.unlink(converters.log(case))
        converters.lose()
        wrong = []
        found = converters.connect()
        for case, (ms, said) in found.items():
            if said != "hello" or ms > patience(direct[case] + LATE) or "converted over" not in converters.logged(case):
                wrong.append("%s: %.1f ms, direct %.1f: %s\n%s" % (case, ms, direct[case], said, converters.logged(case)))
        check(not wrong, "\n".join(wrong))
        longest = max(found, key=lambda case: found[case][0] - direct[case])
        return "longest beyond direct: %.0f ms, of %s" % (found[longest][0] - direct[longest], longest)


@long
def test_mptcp_held_cold():
    return one_lost(True, True, False)


@long
def test_mptcp_held_warm():
    return one_lost(True, True, True)


def test_mptcp_cold():
    return one_lost(False, True, False)


@long
def test_mptcp_warm():
    return one_lost(False, True, True)


@long
def test_tcp_held_cold():
    return one_lost(True, False, False)


@long
def test_tcp_held_warm():
    return one_lost(True, False, True)


@long
def test_tcp_cold():
    return one_lost(False, False, False)


@long
def test_tcp_warm():
    return one_lost(False, False, True)


REFUSED = "Connection refused"


def exhaust_errors(lab):
    """Uses up the error replies that the converter may send for the moment."""
    for _ in range(20):
        with Client(lab.client, lab.converter.addr4, TCP) as client:
            client.send(connect(lab.server.addr4, lab.addresses.refused_port))
            if client.end()[1] == "reset":
                return
    raise LabError("the converter has no limit")


def a_reset_lost(mptcp, fastopen=3):
    """Beyond its limit of error replies convertd resets. Whichever packet is lost, the client learns of the refusal."""
    with Lab(wifi=Link(delay_ms=10), lte=None, core=Link(delay_ms=10), converter_fastopen=fastopen) as lab:
        if not mptcp:
            lab.client.sysctl("net.mptcp.enabled", 0)
        lab.convertd(["--hold-syn", "off", "--max-errors", "1"])
        lab.echo(ECHO)
        converters = Converters(lab)
        for _ in range(1 if fastopen == 3 else 2):
            converters.connect()
        for case in cases():
            os.unlink(converters.log(case))
        exhaust_errors(lab)
        converters.lose()
        found = converters.connect(lab.addresses.refused_port)
        wrong = ["%s: %.1f ms, %s\n%s" % (case, ms, said, converters.logged(case)) for case, (ms, said) in found.items()
                 if said != REFUSED or ms > patience(1000 + LATE)]
        check(not wrong, "\n".join(wrong))
        logs = [converters.logged(case) for case in cases()]
        resets = [log for log in logs if "Connection reset by peer" in log]
        check(len(resets) > PACKETS, "too few were reset:\n" + "\n".join(logs))
        return "longest: %.0f ms" % max(ms for ms, _ in found.values())


def test_mptcp_reset():
    return a_reset_lost(True)


def test_mptcp_reset_behind_the_request():
    """The request follows the handshake, so more packets can be lost."""
    return a_reset_lost(True, fastopen=1)


def test_tcp_reset():
    return a_reset_lost(False)


def vanish(lab):
    """Drops all packets between client and converter but SYN and SYN+ACK from now on."""
    for host, way in ((lab.converter, "away"), (lab.client, "back")):
        host.run(["nft", "-f", "-"], input="table inet vanish {\nchain arrivals {\ntype filter hook prerouting priority -1000;\n"
                 "%s tcp flags & syn == 0 drop\n}\n}\n" % match(way, lab.converter.addr4, PORT))


def remembering(lab):
    return lab.remembering(CONVERT_ADDR=lab.converter.addr4)


def one(lab, port=ECHO, address=None):
    """(ms, the echo or the error) of a connection of a new process, which shares the cache."""
    return Connection(lab, address or lab.server.addr4, port, remembering(lab)).result()


def vanishing(warm):
    with lab_for() as lab:
        lab.convertd(["--hold-syn", "off"])
        lab.echo(ECHO)
        lab.echo(ECHO + 1)
        if warm:
            one(lab)
        vanish(lab)
        first, second = one(lab), one(lab, ECHO + 1)
        equal((first[1], second[1]), ("hello", "hello"), "the echoes")
        # CONVERT_TIMEOUT once, and not twice
        check(first[0] < patience(LATE), "the first connection took %.0f ms" % first[0])
        log = lab.shim_log()
        check("left alone for 30 s\n" in log and log.count(":%d: direct: the converter is left alone for a while" % (ECHO + 1)) == 1, log)


@long
@waits
def test_what_vanishes_behind_the_handshake():
    """It is the converter's fault, or its path's, whatever was learned before: of all processes' connections only one waits."""
    vanishing(False)
    vanishing(True)


def silent_server(hold):
    with lab_for() as lab:
        lab.convertd(["--hold-syn", hold])
        lab.echo(ECHO)
        # the server never answers, not even directly
        waiting = lab.client.popen(["python3", "-c", CLIENT, lab.addresses.blackhole4, str(ECHO)], env=remembering(lab), name="waits")
        wait_until(lambda: "direct, the converter fails" in lab.shim_log(), 20, lab.shim_log)
        check("left alone for 30 s for this server" in lab.shim_log(), lab.shim_log())
        equal(one(lab)[1], "hello", "what another server says")
        check("%s:7: converted over MPTCP" % lab.server.addr4 in lab.shim_log(), lab.shim_log())
        waiting.kill()
        # the converter has answered by now, so the library blames the server for further silence, and waits
        lab.server.ip("route add blackhole 10.8.0.69")
        probes = lab.client.counters()["TcpExtTCPKeepAlive"]
        waiting = lab.client.popen(["python3", "-c", CLIENT, "10.8.0.69", str(ECHO)], env=remembering(lab), name="waits")
        wait_until(lambda: lab.client.counters()["TcpExtTCPKeepAlive"] > probes, 20, "a probe")
        over = time.monotonic() + 2 * TIMEOUT
        wait_until(lambda: time.monotonic() > over and lab.client.counters()["TcpExtTCPKeepAlive"] > probes + 2, 20, "more probes")
        check("10.8.0.69:" not in lab.shim_log(), lab.shim_log())
        waiting.kill()


@long
@waits
def test_one_silent_server():
    """With an empty cache the shim connects to it directly. The converter serves others, which ends the doubt in it."""
    for hold in ("off", "on"):
        silent_server(hold)


@long
@waits
def test_no_converter():
    """All processes leave a converter alone that acknowledges requests, but answers none, for three servers in a row."""
    with lab_for() as lab:
        lab.start_listening(lab.converter, ["python3", SCRIPTED, lab.converter.addr4, PORT, "silent"], PORT, name="silent")
        for port in range(ECHO, ECHO + 4):
            lab.echo(port)
        times, asked = [], []
        for port in (ECHO, ECHO, ECHO + 1, ECHO + 2, ECHO + 3):
            with lab.capture(lab.client, "wifi", "tcp port %d" % PORT) as capture:
                times.append(one(lab, port))
            asked.append(bool(asked_to_connect(capture)))
        equal([said for _, said in times], ["hello"] * 5, "the echoes")
        equal(asked, [True, False, True, True, False], "which ones have asked, of %s" % (times,))
        check(max(ms for ms, _ in times) < patience(LATE), "one has waited too long, of %s" % (times,))


KEEPALIVE = """
import select, socket, sys
names = ((socket.SOL_SOCKET, socket.SO_KEEPALIVE), (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE),
         (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL), (socket.IPPROTO_TCP, socket.TCP_KEEPCNT))
def seen():
    print([sock.getsockopt(*name) for name in names])
def refused(level, name, value):
    try:
        sock.setsockopt(level, name, value)
    except OSError as error:
        print(error.strerror)
sock = socket.socket()
sock.setblocking(False)
if sys.argv[2] == "before":
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 55)
seen()
sock.connect_ex((sys.argv[1], 7))
poller = select.poll()
poller.register(sock, select.POLLOUT)
print(poller.poll(1800))
seen()
if sys.argv[2] == "meanwhile":
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 66)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    refused(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4000)
    seen()
print(len(poller.poll()))
seen()
"""


@long
@waits
def test_keepalive_is_the_applications():
    """The application sees the settings that it makes before or while the library uses keepalive, and these hold afterwards."""
    with Lab(wifi=Link(delay_ms=10), lte=None, core=Link(delay_ms=1300)) as lab:
        lab.convertd(["--hold-syn", "off"])
        lab.echo(ECHO)
        for when in ("never", "before", "meanwhile"):
            command = ["python3", "-c", KEEPALIVE, lab.server.addr4, when]
            with lab.capture(lab.client, "wifi", "tcp port %d" % PORT) as capture:
                said = lab.client.run(command, env=remembering(lab)).stdout
            equal(said, lab.client.run(command).stdout, "what an application sees that sets them " + when)
            # a probe is one byte in front of what is to come next, without data
            ours = [packet for packet in capture.packets() if packet.dport == PORT and not packet.syn and not packet.payload]
            check(len({packet.seq for packet in ours}) > 1, "no probe among %s" % (ours,))
        equal(lab.shim_log().count("converted over MPTCP"), 3, lab.shim_log())


if __name__ == "__main__":
    main()
