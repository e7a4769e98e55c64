#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_fallback.py - no application is left with a Multipath TCP socket that has fallen back to TCP

Linux loses bytes on such sockets (test_platform_fallback.py). A direct connection has a plain TCP socket from the beginning. If
Multipath TCP doesn't get through to the converter, or to a server that is known to speak it, the shim begins the connection anew over
TCP before the application has it. The kernel's own list of sockets shows which sockets an application has in the end.
"""
import contextlib
import errno
import os
import re
import socket
import subprocess

from convertlab import Lab, LabError, Link, check, equal, first_syns, kernel, long, main, patience, side_by_side, wait_until, waits
from convertlab.peers import message, octets
from test_shim_semantics import PROBE, WAYS, compare, probe, slow_lab

LOST = "Multipath TCP is lost on the way, asked over TCP"

# Connects in its way, says hello, says "ready", and ends when its standard input does.
KEEPS = """
import os, select, socket, sys
way, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
sock = socket.socket()
other = socket.socket(fileno=os.dup(sock.fileno())) if way == "dup" else sock
if way in ("blocking", "dup"):
    sock.connect((address, port))
else:
    sock.setblocking(False)
    sock.connect_ex((address, port))
    select.select([], [sock], [])
    sock.setblocking(True)
other.sendall(b"hello")
assert sock.recv(5, socket.MSG_WAITALL) == b"hello"
print("ready", flush=True)
sys.stdin.read()
"""


def near(**options):
    return Lab(wifi=Link(delay_ms=5, **options), lte=None, core=Link(delay_ms=2))


def runtime(lab):
    """A cache directory, in which each connection leaves what it has learned for the next one."""
    directory = os.path.join(lab.directory, "runtime")
    os.makedirs(directory, mode=0o700, exist_ok=True)
    return directory


def mptcp_sockets(lab, env, way="blocking", port=7):
    """The client's Multipath TCP sockets while an application has its connection to the server."""
    process = lab.client.popen(["python3", "-c", KEEPS, way, lab.server.addr4, port], env=env, name="keeps",
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        equal(process.stdout.readline(), b"ready\n", "what the application said; the shim:\n" + lab.shim_log())
        return lab.client.run(["ss", "-HnM", "state", "established"]).stdout
    finally:
        process.stdin.close()
        process.wait(10)


# Sends hello, prints after each read how many bytes it has, and at the end of the stream these bytes.
READS = """
import socket, sys
sock = socket.socket()
sock.connect((sys.argv[1], int(sys.argv[2])))
sock.sendall(b"hello")
got = b""
while piece := sock.recv(4096):
    got += piece
    print(len(got), flush=True)
print("end", got.hex(), flush=True)
"""
STREAM = bytes((i * 7 + i // 251) % 256 for i in range(1060))


def greeted(listening):
    """Accepts the first connection that sends hello: the shim closes one that it begins anew without sending a byte."""
    while True:
        server, _ = listening.accept()
        server.settimeout(10)
        with contextlib.suppress(ConnectionError):
            if server.recv(5, socket.MSG_WAITALL) == b"hello":
                return server
        server.close()


def lose(lab, way, send, what):
    """Takes one direction of the link down and calls send(); returns once that direction has lost a packet."""
    lost = lab.wifi.stats()[way]["down_drop"]
    lab.wifi.down(way)
    send()
    wait_until(lambda: lab.wifi.stats()[way]["down_drop"] > lost, 5, what + " to be lost")


def overlapped(lab, env):
    """Returns what an application reads of 60 bytes and 1,000 behind them. The acknowledgement of the 60 is lost, and so is the first
    sending of the 1,000: Linux sends both again in one segment.
    """
    with lab.server.socket(socket.AF_INET, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((lab.server.addr4, 1901))
        listening.listen(1)
        listening.settimeout(10)
        with lab.client.popen(["python3", "-c", READS, lab.server.addr4, 1901], env=env, name="reads", stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE) as reader, greeted(listening) as server:
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            lab.wifi.wait_idle()
            lose(lab, "a-to-b", lambda: server.sendall(STREAM[:60]), "the acknowledgement")
            equal(reader.stdout.readline(), b"60\n", "the first read")
            lose(lab, "b-to-a", lambda: server.sendall(STREAM[60:]), "the 1,000 bytes")
            lab.wifi.up()
            reader.stdout.readline()  # a FIN before that would make the client acknowledge the first 60
            server.shutdown(socket.SHUT_WR)
            return bytes.fromhex(reader.stdout.read().split(b"end ")[1].decode())


@long
@waits
def test_overlapping_retransmissions():
    """Directly, and through a converter without Multipath TCP and with it: each byte is there, three times each."""
    for mptcp in (0, 1):
        with Lab(wifi=Link(delay_ms=10), lte=None, core=None) as lab:
            for sender in (lab.server, lab.converter):
                # no probe of the last segment alone (RFC 8985 7): the time-out sends all, from the first byte that isn't acknowledged
                sender.sysctl("net.ipv4.tcp_early_retrans", 0)
            lab.converter.sysctl("net.mptcp.enabled", mptcp)
            lab.convertd()
            for what, env in (("without the library", None), ("direct", lab.converted(CONVERT_ADDR="%s:9" % lab.converter.addr4)),
                              ("converted", lab.converted(CONVERT_ADDR=lab.converter.addr4))):
                for _ in range(3):
                    with lab.capture(lab.client, "wifi", "tcp") as capture:
                        got = overlapped(lab, env)
                    sizes = [len(p.payload) for p in capture.packets() if p.payload and p.dst == lab.client.wifi4]
                    check(1060 in sizes or (mptcp and what == "converted"), "no overlap among segments of %s" % sizes)
                    equal(got.hex(), STREAM.hex(), "what was read of 1,060 bytes, %s, MPTCP %d" % (what, mptcp))


def syns(capture, address):
    """The first SYN of each connection, without the shim's probes: after a late answer, as on a busy machine, it asks for a path."""
    packets = [p for p in capture.packets() if p.dst == address]
    probes = {p.sport for p in packets if p.payload == message(octets("01010000"))}
    return [p for p in first_syns(packets) if p.sport not in probes]


def test_a_direct_connection_is_plain_tcp():
    with near() as lab:
        lab.convertd()
        lab.echo()
        env = lab.converted(CONVERT_BYPASS=lab.server.addr4)
        with lab.capture(lab.client, "wifi", "tcp") as capture:
            for way in ("blocking", "select", "dup"):
                equal(mptcp_sockets(lab, env, way), "", "MPTCP sockets, " + way)
        sent = syns(capture, lab.server.addr4)
        equal((len(sent), [p.mptcp for p in sent if p.mptcp]), (3, []), "SYNs to the server, and what they say of MPTCP")


def test_a_converted_connection_is_multipath_tcp():
    """The list that the other tests find empty isn't always empty."""
    with near() as lab:
        lab.convertd()
        lab.echo()
        for way in ("blocking", "select", "dup"):
            check(lab.converter.addr4 in mptcp_sockets(lab, lab.converted(), way), "no MPTCP socket, " + way)


@long
@waits
def test_a_converter_without_multipath_tcp():
    """In every way to wait, with an empty cache: the application doesn't notice that the shim begins anew."""
    with slow_lab() as lab:
        lab.converter.sysctl("net.mptcp.enabled", 0)
        lab.convertd()
        lab.echo()
        compare(lab, lab.server.addr4, 7)
        compare(lab, lab.server.addr6, 7, ["blocking", "epoll-before"])
        compare(lab, lab.server.addr4, lab.addresses.refused_port, ["blocking", "poll", "epoll-edge"])
        log = lab.shim_log()
        equal(log.count("converted over TCP"), len(WAYS) + 2, "conversions in\n" + log)
        # the server's refusal comes back before the loss shows, unless the request follows the handshake
        equal(log.count(LOST), len(WAYS) + 2 + (0 if kernel.has("fastopen") else 3), "new beginnings in\n" + log)
        for way in ("blocking", "select", "dup"):
            equal(mptcp_sockets(lab, lab.converted(), way), "", "MPTCP sockets, " + way)


def test_a_registration_that_cannot_be_moved():
    """It is exclusive, and bypasses the shim: an error, rather than a wait without end or a socket that has fallen back."""
    # long enough for the registration to be made before the answer
    with Lab(wifi=Link(delay_ms=patience(20)), lte=None, core=None) as lab:
        lab.converter.sysctl("net.mptcp.enabled", 0)
        lab.convertd()
        lab.echo()
        said, _ = probe(lab, "epoll-exclusive", lab.server.addr4, 7, lab.converted())
        check("SO_ERROR ECONNABORTED" in said, "\n".join(said) + lab.shim_log())
        check("wait []" not in said, "a wait has ended without an event: " + "\n".join(said))


def test_the_loss_is_learned():
    """Only the first connection pays for it, in any process; later SYNs have no MP_CAPABLE."""
    with near(strip_mptcp=True) as lab:
        lab.convertd()
        lab.echo()
        env = lab.converted(CONVERT_CACHE=runtime(lab), CONVERT_ADDR=lab.converter.addr4)
        with lab.capture(lab.client, "wifi", "tcp") as capture:
            for _ in range(3):
                equal(mptcp_sockets(lab, env), "", "MPTCP sockets")
        equal([bool(p.mptcp) for p in syns(capture, lab.converter.addr4)], [True, False, False, False], "MP_CAPABLE in the SYNs")
        # Where Multipath TCP has no Fast Open, neither the client's first SYN nor the converter's socket has it.
        if kernel.has("fastopen"):
            check(all(p.payload for p in syns(capture, lab.converter.addr4)), "a SYN without the request")


@long
@waits
def test_options_that_are_lost_behind_the_handshake():
    """In both directions, or in one: the converter's first bytes show it, before the application has the connection."""
    for lost in ({"strip_mptcp_behind": True}, {"a_to_b": {"strip_mptcp_behind": True}}, {"b_to_a": {"strip_mptcp_behind": True}}):
        with slow_lab(**lost) as lab:
            lab.convertd()
            lab.echo()
            for way in ("blocking", "select", "dup"):
                equal(mptcp_sockets(lab, lab.converted(), way), "", "MPTCP sockets, %s, %s" % (lost, way))
            compare(lab, lab.server.addr4, 7, ["blocking", "poll", "epoll", "epoll-edge", "epoll-before", "epoll-past"])
            equal(lab.shim_log().count("converted over TCP"), 9, "conversions in\n" + lab.shim_log())


@kernel.needs("fastopen")  # else no SYN+ACK confirms anything
def test_a_path_that_begins_to_lose_options():
    """The SYN+ACK of a converter that withholds SYNs confirms a server, so the application has its connection before the loss shows.

    One connection is reset, and none loses a byte; later ones are TCP from the beginning. On a slow machine the shim may see the loss
    before it hands the connection over, and begins it anew.
    """
    with near() as lab:
        lab.convertd()
        lab.echo()
        env = lab.converted(CONVERT_CACHE=runtime(lab), CONVERT_ADDR=lab.converter.addr4)
        for _ in range(2):
            check(mptcp_sockets(lab, env), "no MPTCP before")
        check("confirmed by the SYN+ACK" in lab.shim_log(), lab.shim_log())
        lab.wifi.set(strip_mptcp_behind=True)
        said = lab.client.run(["python3", PROBE, "blocking", lab.server.addr4, 7], env=env, check=False)
        # on a slow machine the reset comes before the program looks or sends
        reset = "ConnectionResetError" in said.stderr or "ECONNRESET" in said.stdout
        check(reset or "answer b'hello'" in said.stdout, said.stdout + said.stderr)
        for way in ("blocking", "select"):
            equal(mptcp_sockets(lab, env, way), "", "MPTCP sockets afterwards, " + way)
        check(LOST in lab.shim_log(), lab.shim_log())
        silent = re.findall("converted over MPTCP, .* silently", lab.shim_log())
        equal(len(silent), 2 if reset else 1, "silent connections, of which the second one was reset, in\n" + lab.shim_log())


# Connects, waits until the connection has been reset, and asks for the error in one way.
LATE = """
import os, select, socket, sys
way, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
sock = socket.socket()
sock.connect((address, port))
poller = select.poll()
poller.register(sock, 0)
if not poller.poll(3000):
    print("no reset")
elif way == "SO_ERROR":
    print(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
else:
    try:
        {"recv": lambda: sock.recv(5), "send": lambda: sock.send(b"hello"), "write": lambda: os.write(sock.fileno(), b"hello"),
         "writev": lambda: os.writev(sock.fileno(), [b"hello"]), "sendmsg": lambda: sock.sendmsg([b"hello"])}[way]()
    except OSError as error:
        print(error.errno)
"""


def reset_once(lab, way):
    """Has a silent connection of LATE reset, on a path that begins to lose options. Returns the environment for the next ones."""
    for number in range(5):
        lab.wifi.set(strip_mptcp_behind=False, delay_ms=5)
        cache = os.path.join(runtime(lab), "%s-%d" % (way, number))
        os.mkdir(cache, 0o700)
        env = lab.converted(CONVERT_CACHE=cache, CONVERT_ADDR=lab.converter.addr4)
        for _ in range(2):
            check(mptcp_sockets(lab, env), "no MPTCP before")
        # the reset comes two delays after the SYN+ACK, so that the program has its connection first
        lab.wifi.set(strip_mptcp_behind=True, delay_ms=60)
        said = lab.client.run(["python3", "-c", LATE, way, lab.server.addr4, 7], env=env).stdout.strip()
        if said != "no reset":
            equal(said, str(errno.ECONNRESET), "what the program is told, " + way)
            return env
        # a slow machine has seen the loss before the program had the connection
        check(LOST in lab.shim_log().splitlines()[-2], lab.shim_log())
    raise LabError("no connection was reset in " + lab.shim_log())


@kernel.needs("fastopen")  # else no SYN+ACK confirms anything
def test_a_reset_is_noticed():
    """Whichever call tells a program that its silent connection was reset, the next connection isn't reset."""
    with near() as lab:
        lab.convertd()
        lab.echo()
        for way in ("SO_ERROR", "recv", "send", "write", "writev", "sendmsg"):
            env = reset_once(lab, way)
            equal(mptcp_sockets(lab, env), "", "MPTCP sockets afterwards, " + way)


def test_one_fallback_is_no_loss():
    """If other connections keep Multipath TCP, a lost packet may be the cause, and the next one uses it again. Two fallbacks are a loss."""
    with near() as lab:
        lab.convertd()
        lab.echo()
        env = lab.converted(CONVERT_CACHE=runtime(lab), CONVERT_ADDR=lab.converter.addr4, CONVERT_WITHHOLDING=0)
        check(mptcp_sockets(lab, env), "no MPTCP before")
        for times in (1, 2):
            lab.wifi.set(strip_mptcp_behind=True)
            for _ in range(times):
                equal(mptcp_sockets(lab, env), "", "MPTCP sockets meanwhile")
            lab.wifi.set(strip_mptcp_behind=False)
            equal(bool(mptcp_sockets(lab, env)), times == 1, "an MPTCP socket after %d" % times)


@kernel.needs("fastopen")  # else no SYN+ACK confirms anything
def test_a_doubted_path_is_no_confirmation():
    """After one fallback the next connection waits for the converter's first bytes, so that a path that loses options resets none."""
    with near() as lab:
        lab.convertd()
        lab.echo()
        env = lab.converted(CONVERT_CACHE=runtime(lab), CONVERT_ADDR=lab.converter.addr4)
        for _ in range(2):
            check(mptcp_sockets(lab, env), "no MPTCP before")
        lab.wifi.set(strip_mptcp_behind=True)
        # this connection sees the loss itself, as its SYN+ACK confirms nothing
        equal(mptcp_sockets(lab, env | {"CONVERT_WITHHOLDING": "0"}), "", "MPTCP sockets of the first")
        for way in ("blocking", "select"):
            equal(mptcp_sockets(lab, env, way), "", "MPTCP sockets afterwards, " + way)
        equal(lab.shim_log().count(LOST), 2, "fallbacks in\n" + lab.shim_log())


def test_errors_are_no_loss():
    """A converter's error reply to a withheld SYN has no MP_CAPABLE: the shim doesn't take that for a path that loses options."""
    with slow_lab() as lab:
        lab.convertd()
        lab.echo()
        env = lab.converted(CONVERT_CACHE=runtime(lab), CONVERT_ADDR=lab.converter.addr4)
        check(mptcp_sockets(lab, env), "no MPTCP")
        for way in ("blocking", "epoll-edge"):
            said, _ = probe(lab, way, lab.server.addr4, lab.addresses.refused_port, env)
            check("SO_ERROR ECONNREFUSED" in said or "connect ECONNREFUSED" in said, "\n".join(said))
        check(mptcp_sockets(lab, env), "no MPTCP after an error")
        check(LOST not in lab.shim_log(), lab.shim_log())


def test_a_server_that_spoke_multipath_tcp():
    """While it is known to, the shim connects to it directly; once it no longer does, over TCP, and the application doesn't notice."""
    with near() as lab:
        lab.convertd()
        server = lab.serve("mptcp-echo", 7)
        env = lab.converted(CONVERT_CACHE=runtime(lab), CONVERT_ADDR=lab.converter.addr4)
        for _ in range(2):
            found = mptcp_sockets(lab, env)
        check(lab.server.addr4 in found, "no direct connection:\n%s%s" % (found, lab.shim_log()))
        server.stop()
        lab.echo()
        equal(mptcp_sockets(lab, env), "", "MPTCP sockets, blocking")
        check("no Multipath TCP without the converter" in lab.shim_log(), lab.shim_log())
        check(lab.converter.addr4 in mptcp_sockets(lab, env, "select"), "the converter isn't asked afterwards:\n" + lab.shim_log())


BINDS = """
import socket, sys
sock = socket.socket()
try:
    sock.connect((sys.argv[1], 7))
finally:
    sock.close()
later = socket.socket()
later.bind(("127.0.0.1", 23456))
later.listen()
print(later.getsockname(), flush=True)
"""


def test_a_later_socket_keeps_its_address():
    """A new socket gets the slot of a socket whose converter has failed, without remains of the old one."""
    with near() as lab:
        lab.echo()
        said = lab.client.run(["python3", "-c", BINDS, lab.server.addr4], env=lab.converted()).stdout
        equal(said, "('127.0.0.1', 23456)\n", "where it listens")


# Two threads connect one descriptor: prints the sorted errors of the two calls, and how often each pair occurred.
TWICE = """
import collections, errno, socket, sys, threading
said = collections.Counter()
for _ in range(5):
    sock, results, together = socket.socket(), [], threading.Barrier(2)
    def connect():
        together.wait()
        results.append(sock.connect_ex((sys.argv[1], int(sys.argv[2]))))
    threads = [threading.Thread(target=connect) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    said[tuple(sorted(errno.errorcode.get(error, "0") for error in results))] += 1
    if 0 in results:
        sock.sendall(b"hello")
        assert sock.recv(5, socket.MSG_WAITALL) == b"hello"
        assert sock.getpeername() == (sys.argv[1], int(sys.argv[2]))
    sock.close()
print(said)
"""


@long
@waits
def test_two_threads_connect_one_descriptor():
    """Both calls return success, but only one of them a failure. The second call begins long before the answer comes.

    If the client's Fast Open is off, the request follows the handshake, and the shim's own connect() is non-blocking: the second thread
    must not notice.
    """
    with Lab(wifi=Link(delay_ms=60), lte=None, core=Link(delay_ms=1)) as lab:
        lab.convertd()
        lab.echo()
        for fastopen in (1, 0):
            lab.client.sysctl("net.ipv4.tcp_fastopen", fastopen)
            for port in (7, lab.addresses.refused_port):
                converted, direct = side_by_side(lambda env, port=port: lab.client.run(["python3", "-c", TWICE, lab.server.addr4, port], env=env).stdout,
                                                 (lab.converted(), None))
                equal(converted, direct, "port %d, net.ipv4.tcp_fastopen=%d" % (port, fastopen))


BOUND = """
import socket, sys
for port in (0, int(sys.argv[3])):
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 100000)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 12345)
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, -1)
    sock.bind((sys.argv[2], port))
    bound = sock.getsockname()
    sock.connect((sys.argv[1], 7))
    print(sock.getsockname() == bound, bound[1] == port or port == 0, sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE),
          sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF), sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY),
          sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT), sock.getsockopt(socket.IPPROTO_IP, socket.IP_TTL),
          sock.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL))
    sock.sendall(b"hello")
    print(sock.recv(5, socket.MSG_WAITALL), flush=True)
    sock.close()
"""


def test_address_and_options_stay():
    """Over Multipath TCP, and where that is lost: the shim replaces the socket twice, and keeps all that the application has set."""
    for options in ({}, {"strip_mptcp": True}):
        with near(**options) as lab:
            lab.convertd()
            lab.echo()
            said = lab.client.run(["python3", "-c", BOUND, lab.server.addr4, lab.client.wifi4, 23457], env=lab.converted()).stdout
            direct = lab.client.run(["python3", "-c", BOUND, lab.server.addr4, lab.client.wifi4, 23458]).stdout
            equal(said, direct, "what the application sees, %s" % options)
            equal(lab.shim_log().count("converted over %s" % ("TCP" if options else "MPTCP")), 2, "conversions in\n" + lab.shim_log())


if __name__ == "__main__":
    main()
