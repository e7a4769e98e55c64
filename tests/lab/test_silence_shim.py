#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_silence_shim.py - applications whose connections have no response in front of the server's bytes (doc/private-tlvs.md)

convertd offers silence in its answer to an Info TLV, which the first request with an empty cache has. Later requests are silent. The first
request for each server asks whether it speaks Multipath TCP, and gets a response if it does.
"""
import os

from convertlab import Lab, Link, check, equal, kernel, long, main, need, same_data, side_by_side, timeout, waits
from test_confirmation import PROBE, SCRIPTED, WAYS

APPS = os.path.dirname(PROBE)
SILENTLY = "server confirmed by the SYN+ACK, silently"
DIRECTLY = "direct: the server speaks Multipath TCP itself"
MAGIC, SILENT_MAGIC = b"\x22\x63", b"\x6c\x63"


def far(loss=0, **options):
    """60 ms to the server by way of the converter: longer than a program on a busy machine waits for a CPU."""
    return Lab(wifi=Link(delay_ms=10, loss=loss), lte=None, core=Link(delay_ms=20), **options)


def probe(lab, way, env, port=7, address=None):
    result = lab.client.run(["python3", PROBE, way, address or lab.server.addr4, port], env=env)
    return result.stdout.splitlines()


def learn(lab, env, address=None):
    """One connection, after which requests to that server are silent."""
    probe(lab, "blocking", env, address=address)
    check(SILENTLY not in lab.shim_log(), "before anything was learned:\n" + lab.shim_log())


def from_converter(packets):
    return b"".join(p.payload for p in packets if p.sport == 1234)


def silent_syns(packets):
    return [p for p in packets if p.syn and not p.ack and p.payload[2:4] == SILENT_MAGIC]


@long
@waits
@kernel.needs("fastopen")
def test_transcripts():
    """In every way of waiting, in both families, the application sees the same as on a direct connection."""
    with far() as lab:
        lab.convertd()
        lab.echo()
        for address in (lab.server.addr4, lab.server.addr6):
            env = lab.remembering(CONVERT_LOG=os.path.join(lab.directory, "shim-%d.log" % (":" in address)))
            probe(lab, "blocking", env, address=address)
            ways = WAYS + ("epoll-past", "epoll-tried")
            direct, converted = (side_by_side(lambda way, env=env, address=address: probe(lab, way, env, address=address), ways)
                                 for env in (None, env))
            for way, there, here in zip(ways, direct, converted):
                equal(here, there, "%s to %s" % (way, address))
            with open(env["CONVERT_LOG"], encoding="utf-8") as log:
                text = log.read()
            equal(text.count(SILENTLY), len(WAYS) + 2, "silent connections in\n" + text)


@kernel.needs("fastopen")
def test_not_one_byte():
    """The converter sends only the server's bytes, and one segment less than with a response."""
    with far() as lab:
        lab.convertd()
        lab.echo()
        env = lab.remembering()
        learn(lab, env)
        segments = {}
        for silence in ("auto", "never"):
            with lab.capture(lab.client, "wifi", "tcp port 1234") as capture:
                said = probe(lab, "poll", dict(env, CONVERT_SILENCE=silence))
            check("answer b'hello'" in said, said)
            packets = capture.packets()
            segments[silence] = len({(p.src, p.dport, p.seq) for p in packets if p.sport == 1234 and p.payload})  # not those sent again
            equal(len(silent_syns(packets)), 1 if silence == "auto" else 0, "silent requests")
            equal(from_converter(packets) == b"hello", silence == "auto", "bytes of the converter: %r" % from_converter(packets))
            check((MAGIC in from_converter(packets)) == (silence == "never"), from_converter(packets))
        equal(segments["never"] - segments["auto"], 1, "segments with data: %s" % segments)


@kernel.needs("fastopen")
def test_server_that_speaks_first():
    """Its greeting follows the SYN+ACK at once."""
    with far() as lab:
        lab.convertd()
        lab.greeter()
        env = lab.remembering()
        program = ("import socket, sys\n"
                   "for i in range(5):\n"
                   "    sock = socket.create_connection((sys.argv[1], 25))\n"
                   "    print(sock.recv(100))\n"
                   "    sock.close()\n")
        said = lab.client.run(["python3", "-c", program, lab.server.addr4], env=env).stdout
        equal(said, "b'220 lab ready\\r\\n'\n" * 5, "what it reads")
        equal(lab.shim_log().count(SILENTLY), 4, "silent connections in\n" + lab.shim_log())


@kernel.needs("fastopen")
def test_servers_that_are_new():
    """The first request for a server asks whether it speaks Multipath TCP, and is silent all the same: it gets a response if so."""
    with far() as lab:
        lab.convertd()
        lab.echo()
        lab.greeter()
        lab.serve("mptcp-http", 80)
        env = lab.remembering()
        learn(lab, env)
        program = ("import socket, sys\n"
                   "with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as sock:\n"
                   "    sock.sendall(b'GET /bytes/10 HTTP/1.0\\r\\n\\r\\n')\n"
                   "    print(sock.recv(8))\n")
        for port, first, silently, directly in ((25, b"220 lab ", 2, 0), (80, b"HTTP/1.1", 0, 1)):
            before = lab.shim_log()
            with lab.capture(lab.client, "wifi", "tcp port 1234") as capture:
                said = [lab.client.run(["python3", "-c", program, lab.server.addr4, port], env=env).stdout for _ in range(2)]
            equal(said, ["%r\n" % first] * 2, "what it reads from port %d" % port)
            log = lab.shim_log()[len(before):]
            equal((log.count(SILENTLY), log.count(DIRECTLY)), (silently, directly), "silent and direct connections in\n" + log)
            equal(MAGIC in from_converter(capture.packets()), port == 80, "is there a response for port %d?" % port)


def test_refused_and_unreachable():
    """A silent request whose server refuses is answered, and becomes the errno of a direct connection."""
    with far() as lab:
        lab.convertd()
        lab.echo()
        env = lab.remembering()
        learn(lab, env)
        for way in ("blocking", "poll", "epoll-edge"):
            for port in (9, 7):
                direct = probe(lab, way, None, port=port)
                probe(lab, way, env, port=port)  # the first request asks whether the server speaks Multipath TCP
                equal(probe(lab, way, env, port=port), direct, "%s, port %d" % (way, port))


def test_no_timestamps():
    """Without them no SYN+ACK confirms a server: a response comes, and the shim takes it off the stream."""
    with far() as lab:
        lab.convertd()
        lab.echo()
        env = lab.remembering()
        learn(lab, env)
        lab.client.sysctl("net.ipv4.tcp_timestamps", 0)
        for way in WAYS:
            direct = probe(lab, way, None)
            equal(probe(lab, way, env), direct, way)
        check(SILENTLY not in lab.shim_log(), lab.shim_log())


@kernel.needs("fastopen")
def test_no_converter_any_more():
    """The program at the address now knows no Convert: the shim asks again without silence, and then connects directly."""
    with far() as lab:
        first = lab.convertd()
        lab.echo()
        env = lab.remembering()
        learn(lab, env)
        first.stop()
        lab.start_listening(lab.converter, ["python3", SCRIPTED, lab.converter.addr4, 1234, "whole", b"HTTP/1.1 400 Bad".hex()], 1234,
                            name="scripted")
        lab.client.sysctl("net.ipv4.tcp_timestamps", 0)  # otherwise its SYN+ACK would confirm the server, for ten minutes at most
        with lab.capture(lab.client, "wifi", "tcp port 1234") as capture:
            said = probe(lab, "poll", env)
        check("answer b'hello'" in said, said)
        syns = [p.payload[2:4] for p in capture.packets() if p.syn and not p.ack and p.dst == lab.converter.addr4]
        equal(syns, [SILENT_MAGIC, MAGIC], "requests")


@kernel.needs("fastopen")
def test_standard_streams():
    """A shell and its child, which read past the hooks, get only the server's bytes."""
    with far() as lab:
        lab.convertd()
        lab.echo()
        env = lab.remembering()
        learn(lab, env)
        for _ in range(3):
            said = lab.client.run(["bash", "-c", "exec 3<>/dev/tcp/$0/7; echo hello >&3; head -n1 <&3", lab.server.addr4],
                                  env=env).stdout
            equal(said, "hello\n", "what bash's child reads")
        equal(lab.shim_log().count(SILENTLY), 3, "silent connections in\n" + lab.shim_log())


def test_processes():
    """fork(), exec() and posix_spawn() before the SYN+ACK: the child with the descriptor reads the server's bytes."""
    program = """
import os, socket, sys
for how in ("fork", "exec", "spawn"):
    sock = socket.socket()
    sock.setblocking(False)
    sock.connect_ex((sys.argv[1], 7))
    sock.set_inheritable(True)
    child = [sys.executable, "-c", "import socket, select\\n"
             "sock = socket.socket(fileno=0)\\n"
             "select.select([], [sock], [], 10)\\n"
             "sock.setblocking(True)\\n"
             "sock.sendall(b'hello')\\n"
             "print(sock.recv(5, socket.MSG_WAITALL), flush=True)"]
    if how == "spawn":
        pid = os.posix_spawn(child[0], child, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, sock.fileno(), 0)])
    else:
        pid = os.fork()
        if pid == 0:
            os.dup2(sock.fileno(), 0)
            if how == "exec":
                os.execv(child[0], child)
            exec(child[2])
            os._exit(0)
    os.waitpid(pid, 0)
    sock.close()
"""
    with far() as lab:
        lab.convertd()
        lab.echo()
        env = lab.remembering()
        learn(lab, env)
        said = lab.client.run(["python3", "-c", program, lab.server.addr4], env=env).stdout
        equal(said, "b'hello'\n" * 3, "what the children read, with the log\n" + lab.shim_log())


@kernel.needs("fastopen")
def test_child_that_does_not_use_it():
    """It waits for something else until its deadline for the connection is over, or closes it: its parent's registration stays as it is."""
    program = """
import os, select, socket, sys
for what in ("wait", "close", "close one of two"):
    sock = socket.socket()
    sock.setblocking(False)
    epoll = select.epoll()
    epoll.register(sock, select.EPOLLOUT)
    sock.connect_ex((sys.argv[1], 7))
    copy = sock.dup() if what == "close one of two" else None
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.read(read_end, 1)
        if what == "wait":
            select.epoll().poll(1.5)  # the deadline is a second after connect()
        else:
            sock.close()
        os._exit(0)
    writable = epoll.poll(10)
    epoll.modify(sock, select.EPOLLIN)
    sock.sendall(b"hello")
    readable = epoll.poll(10)
    os.write(write_end, b"!")
    os.waitpid(pid, 0)
    print(what, [events for _, events in writable + readable + epoll.poll(10)], sock.recv(5))
"""
    with far() as lab:
        lab.convertd()
        lab.echo()
        env = lab.remembering()
        learn(lab, env)
        said = lab.client.run(["python3", "-c", program, lab.server.addr4], env=env).stdout
        equal(said, "".join("%s [4, 1, 1] b'hello'\n" % what for what in ("wait", "close", "close one of two")), "what the parent sees")
        equal(lab.shim_log().count(SILENTLY), 3, "silent connections in\n" + lab.shim_log())


@kernel.needs("fastopen")
def test_early_data():
    """The first bytes follow a silent request in the SYN, also if it has no room for all of them."""
    program = ("import hashlib, socket, sys\n"
               "for size in (5, 900, 4000, 60000):\n"
               "    data = hashlib.shake_256(b'%d' % size).digest(size)\n"
               "    sock = socket.create_connection((sys.argv[1], 7))\n"
               "    sock.sendall(data)\n"
               "    sock.shutdown(socket.SHUT_WR)\n"
               "    got = b''\n"
               "    while part := sock.recv(100000):\n"
               "        got += part\n"
               "    print(size, got == data)\n")
    with far() as lab:
        lab.convertd()
        lab.echo()
        env = lab.remembering(CONVERT_EARLY_DATA="1")
        learn(lab, env)
        said = lab.client.run(["python3", "-c", program, lab.server.addr4], env=env).stdout
        equal(said.split(), ["5", "True", "900", "True", "4000", "True", "60000", "True"], "what comes back")
        equal(lab.shim_log().count(SILENTLY), 4, "silent connections in\n" + lab.shim_log())


@kernel.needs("fastopen")
def test_curl():
    need("curl")
    with far() as lab:
        lab.convertd()
        lab.http()
        env = lab.remembering()
        for _ in range(4):
            said = lab.client.run(["curl", "-sS", "-o", "/dev/null", "-w", "%{size_download}\n", "http://%s/bytes/300000" %
                                   lab.server.addr4], env=env).stdout
            equal(said, "300000\n", "bytes")
        equal(lab.shim_log().count(SILENTLY), 3, "silent connections in\n" + lab.shim_log())


# --- programs that read past the hooks ------------------------------------------------------------------------

RINGS = [(way, how, when) for way in ("blocking", "waiting") for how, when in (("raw", "first"), ("libc", "first"), ("libc", "last"))]


def rings(lab, way, how, when, env, count, port=7):
    """The outcome of each connection of a program that reads and writes by io_uring."""
    program = lab.build.program("tests/lab/apps/rings")
    result = lab.client.run([program, way, how, when, lab.server.addr4, port, count], env=env, check=False, timeout=500)
    if result.returncode == 77:
        need("io_uring")
    equal(result.returncode, 0, "status of %s" % result.args)
    return result.stdout.splitlines()


@long
@waits
@timeout(600)
def test_rings():
    """io_uring reads only the server's bytes, with silence and without, with loss and without."""
    for silence in ("auto", "never"):
        for loss, count in ((0, 4), (0.05, 6)):
            with far(loss=loss) as lab:
                lab.convertd()
                lab.echo()
                env = lab.remembering(CONVERT_SILENCE=silence)
                for ring, said in zip(RINGS, side_by_side(lambda ring, lab=lab, env=env, count=count: rings(lab, *ring, env, count), RINGS)):
                    same_data(not [line for line in said if line.startswith("wrong")], "%s, %s" % (" ".join(ring), silence))
                    equal(len(said), count, "connections")
                    if not loss:
                        equal(said, ["right"] * count, "%s, %s" % (" ".join(ring), silence))


@long
@waits
@timeout(600)
def test_rings_that_hold_sockets():
    """A ring's registered file can't be replaced by another socket, so the shim converts that one, over TCP."""
    for hold in ((), ("--hold-syn", "off")):
        for loss, count in ((0, 4), (0.05, 6)):
            with far(loss=loss) as lab:
                lab.convertd(hold)
                echo = lab.echo()
                env = lab.remembering()
                for way in ("blocking", "waiting"):
                    said = rings(lab, way, "files", "first", env, count)
                    same_data(not [line for line in said if line.startswith("wrong")], way)
                    equal(len(said), count, "connections")
                    if not loss:
                        equal(said, ["right"] * count, way)
                if not loss:
                    equal(lab.shim_log().count("converted over TCP"), 2 * count, lab.shim_log())
                    equal(echo.log_text().count("accepted %s " % lab.converter.core4), 2 * count, "connections by way of the converter")


def test_ring_behind_connect():
    """The program makes its ring by an instruction of its own after the first connect() to a server."""
    ports = range(7001, 7005)
    with far() as lab:
        lab.convertd()
        for port in (7, *ports):
            lab.echo(port)
        env = lab.remembering()
        learn(lab, env)
        for port, way in zip(ports, ("blocking", "waiting") * 2):
            equal(rings(lab, way, "raw", "last", env, 1, port=port), ["right"], "%s, port %d" % (way, port))


def test_rings_and_another_converter():
    """A converter that withholds nothing and knows no silence: rings read only the server's bytes."""
    with far() as lab:
        lab.convertd(["--hold-syn", "off"])
        lab.echo()
        env = lab.remembering()
        for ring in RINGS + [("blocking", "raw", "last")]:
            equal(rings(lab, *ring, env, 3), ["right"] * 3, " ".join(ring))


@long
@waits
def test_rings_and_errors():
    """A refusal of the server is ECONNREFUSED; after CONVERT_TIMEOUT of a silent converter the connection is direct."""
    with far() as lab:
        converter = lab.convertd()
        lab.echo()
        env = lab.remembering(CONVERT_TIMEOUT="0.5")
        for ring in RINGS:
            equal(rings(lab, *ring, env, 2), ["right"] * 2, " ".join(ring))
            equal(rings(lab, *ring, env, 2, port=9), ["failed: Connection refused"] * 2, " ".join(ring))
        converter.stop()
        lab.start_listening(lab.converter, ["python3", SCRIPTED, lab.converter.addr4, 1234, "silent"], 1234, name="scripted")
        env = lab.converted(CONVERT_TIMEOUT="0.5", CONVERT_CACHE="none")
        for ring in RINGS:
            equal(rings(lab, *ring, env, 2), ["right"] * 2, " ".join(ring))


if __name__ == "__main__":
    main()
