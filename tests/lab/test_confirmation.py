#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_confirmation.py - the SYN+ACK of a converter that withholds SYNs confirms the server, before the response comes

With CONVERT_WITHHOLDING the library takes any timely SYN+ACK for a confirmation, also one of a converter that withholds nothing. So the
time between SYN+ACK and response, which these tests look at, is the server's round trip.
"""
import ctypes
import os

from convertlab import Lab, Link, check, equal, kernel, long, main, side_by_side, waits
from convertlab.waiting import wait_until

HERE = os.path.dirname(os.path.abspath(__file__))
PROBE = os.path.join(HERE, "apps", "connect_probe.py")
SCRIPTED = os.path.join(HERE, "scripted_converter.py")
WAYS = ("blocking", "poll", "select", "epoll", "epoll-edge", "epoll-before", "epoll-dup", "connect")
CONFIRMED = "server confirmed by the SYN+ACK"


def lab_for(**options):
    """A round trip of 120 ms to the converter and 240 ms on to the server, longer than programs on a busy machine wait for a CPU."""
    return Lab(wifi=Link(delay_ms=60), lte=None, core=Link(delay_ms=120), **options)


def withheld(lab, **variables):
    return lab.converted(CONVERT_WITHHOLDING=2000, **variables)


def probe(lab, way, address, port, env):
    result = lab.client.run(["python3", PROBE, way, address, port], env=env)
    return result.stdout.splitlines(), float(result.stderr.split()[-1])


def ask(lab, program, *words, env):
    """Returns the output of a small program."""
    return lab.client.run(["python3", "-c", program, lab.server.addr4, *words], env=env, text=False).stdout.decode("latin-1")


def until_confirmed(lab, connect):
    """
    Calls connect(), which makes a connection, until the SYN+ACK has confirmed one. On a busy machine the program may sleep until the response
    is there, too: then it needs no confirmation. Returns the results of all calls.
    """
    results = []
    for _ in range(5):
        before = lab.shim_log().count(CONFIRMED)
        results.append(connect())
        if lab.shim_log().count(CONFIRMED) > before:
            return results
    raise AssertionError("none was confirmed by the SYN+ACK: %s, in\n%s" % (results, lab.shim_log()))


@long
@waits
@kernel.needs("fastopen")
def test_writable_at_the_syn_ack():
    """In each way to wait: the socket is writable after the converter's round trip, and the program reads the server's bytes alone."""
    with lab_for() as lab:
        lab.convertd(["--hold-syn", "off"])
        lab.echo()
        def as_directly(way, address):
            direct, _ = probe(lab, way, address, 7, None)
            said, ms = probe(lab, way, address, 7, withheld(lab))
            equal(said, direct, "%s to %s" % (way, address))
            check(ms >= 119.5, "%s: connected after %.1f ms, before the SYN+ACK can have come" % (way, ms))

        for address in (lab.server.addr4, lab.server.addr6):
            side_by_side(as_directly, WAYS, [address] * len(WAYS))
        equal(lab.shim_log().count(CONFIRMED), 2 * len(WAYS), "confirmed in\n" + lab.shim_log())


@long
@waits
@kernel.needs("fastopen")
def test_response_in_pieces():
    """Byte by byte, in front of the server's: the program sees none of them, and they don't wake it."""
    with lab_for() as lab:
        lab.start_listening(lab.converter, ["python3", SCRIPTED, lab.converter.addr4, 1234, "bytewise"], 1234, name="scripted")
        lab.echo()

        def as_directly(way):
            direct, _ = probe(lab, way, lab.server.addr4, 7, None)
            said, _ = probe(lab, way, lab.server.addr4, 7, withheld(lab, CONVERT_ADDR=lab.converter.addr4))
            equal(said, direct, way)

        side_by_side(as_directly, WAYS)
        equal(lab.shim_log().count(CONFIRMED), len(WAYS), "confirmed in\n" + lab.shim_log())


@long
@waits
def test_what_confirms_nothing():
    """Without timestamps or data in the SYN, with CONVERT_WITHHOLDING=0, or behind that time, the library waits for the response."""
    for sysctl, variables in (("net.ipv4.tcp_timestamps", {}), ("net.ipv4.tcp_fastopen", {}), (None, {"CONVERT_WITHHOLDING": 0}),
                              (None, {"CONVERT_WITHHOLDING": 10})):
        with lab_for() as lab:
            if sysctl:
                lab.client.sysctl(sysctl, 0)
            lab.convertd(["--hold-syn", "off"])
            lab.echo()

            def as_directly(way, env):
                direct, _ = probe(lab, way, lab.server.addr4, 7, None)
                said, ms = probe(lab, way, lab.server.addr4, 7, env)
                equal(said, direct, way)
                check(ms >= 359.5, "%s: connected after %.1f ms, before the server can have answered" % (way, ms))

            side_by_side(as_directly, ("blocking", "poll", "epoll-edge"), [{**withheld(lab), **{k: str(v) for k, v in variables.items()}}] * 3)
            check(CONFIRMED not in lab.shim_log(), lab.shim_log())


SAYS_HELLO = """
import socket, sys
try:
    sock = socket.create_connection((sys.argv[1], 7))
    print("connected")
    sock.sendall(b"hello")
    print(sock.recv(5).decode())
except OSError as error:
    print(error.strerror)
"""


@kernel.needs("fastopen")
def test_converter_that_lied():
    """The server wasn't there: the connection is reset, as if it had gone. The next one, of any process, waits for the response."""
    with lab_for() as lab:
        runtime = os.path.join(lab.directory, "runtime")
        os.mkdir(runtime, 0o700)
        converter = ["python3", SCRIPTED, lab.converter.addr4, 1234, "whole"]
        # supports nothing, withholds SYNs for 2,000 ms (doc/private-tlvs.md), and reached the server
        answer = "01052263" "14010000" "15010000" "f0020101" "07d06c63"
        first = lab.start_listening(lab.converter, [*converter, answer], 1234, name="scripted")
        lab.echo()
        env = lab.converted(CONVERT_ADDR=lab.converter.addr4, XDG_RUNTIME_DIR=runtime)
        probe(lab, "blocking", lab.server.addr4, 7, env)
        check(CONFIRMED not in lab.shim_log(), "confirmed before the converter has said that it withholds SYNs:\n" + lab.shim_log())
        until_confirmed(lab, lambda: probe(lab, "blocking", lab.server.addr4, 7, env))  # learned from the answer to Info
        equal(lab.shim_log().count(CONFIRMED), 1, "confirmed in\n" + lab.shim_log())
        first.stop()
        lab.start_listening(lab.converter, [*converter, "01022263" "1e016000"], 1234, name="reset")
        *unconfirmed, said = until_confirmed(lab, lambda: ask(lab, SAYS_HELLO, env=env))
        equal(set(unconfirmed) - {"Connection refused\n"}, set(), "the output of an application that found the response with the SYN+ACK")
        equal(said, "connected\nConnection reset by peer\n", "the application's output")
        equal(ask(lab, SAYS_HELLO, env=env), "Connection refused\n", "the next one's output")
        equal(lab.shim_log().count(CONFIRMED), 2, "confirmed in\n" + lab.shim_log())
        check("confirmed a server that it has not reached" in lab.shim_log(), lab.shim_log())


SENDS_AND_LEAVES = """
import os, socket, sys
sock = socket.create_connection((sys.argv[1], 7))
sock.sendall(b"last words")
if sys.argv[2] == "close":
    sock.close()
elif sys.argv[2] == "shutdown":
    sock.shutdown(socket.SHUT_RDWR)
elif sys.argv[2] == "dup2":  # as Java before version 13
    os.dup2(os.open("/dev/null", os.O_RDONLY), sock.fileno())
elif sys.argv[2] == "close_range":
    os.closerange(3, sock.detach() + 1)
"""


@kernel.needs("fastopen")
def test_sends_and_leaves():
    """The application's last bytes arrive, though it ends the stream before the response comes."""
    with lab_for() as lab:
        lab.convertd(["--hold-syn", "off"])
        echo = lab.echo()
        runs = sum(len(until_confirmed(lab, lambda how=how: ask(lab, SENDS_AND_LEAVES, how, env=withheld(lab))))
                   for how in ("close", "shutdown", "exit", "dup2", "close_range"))
        wait_until(lambda: echo.log_text().count("bytes=10 eof") == runs, what=echo.log_text)
        equal(lab.shim_log().count(CONFIRMED), 5, "confirmed in\n" + lab.shim_log())


UPLOADS_AND_LEAVES = """
import ctypes, os, socket, sys, termios, time
SYS_close, SYS_ioctl = (3, 16) if os.uname().machine == "x86_64" else (57, 29)  # else <asm-generic/unistd.h>
syscall = ctypes.CDLL(None).syscall
waiting = ctypes.c_int()
sock = socket.create_connection((sys.argv[1], 80))
sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 300000)
sock.sendall(b"PUT / HTTP/1.1\\r\\nContent-Length: 300000\\r\\n\\r\\n" + bytes(300000))
while not waiting.value:  # past the shim, which would take the response off the stream
    time.sleep(0.001)
    syscall(ctypes.c_long(SYS_ioctl), sock.fileno(), ctypes.c_ulong(termios.FIONREAD), ctypes.byref(waiting))
if sys.argv[2] == "close":
    sock.close()
elif sys.argv[2] == "syscall":  # as libuv does
    syscall(ctypes.c_long(SYS_close), sock.detach())
elif sys.argv[2] == "dup2":
    os.dup2(os.open("/dev/null", os.O_RDONLY), sock.fileno())
elif sys.argv[2] == "close_range":
    os.closerange(3, sock.detach() + 1)
elif sys.argv[2] == "closefrom":
    ctypes.CDLL(None).closefrom(3)
"""


@kernel.needs("fastopen")
def test_closed_with_the_response_unread():
    """The kernel would reset such a connection and drop unsent bytes: the upload arrives in full, however it is closed."""
    with lab_for() as lab:
        lab.convertd(["--hold-syn", "off"])
        http = lab.http()
        ways = ("close", "syscall", "exit", "dup2", "close_range") + (("closefrom",) if hasattr(ctypes.CDLL(None), "closefrom") else ())
        runs = sum(len(until_confirmed(lab, lambda how=how: ask(lab, UPLOADS_AND_LEAVES, how, env=withheld(lab)))) for how in ways)
        wait_until(lambda: http.log_text().count('"PUT / HTTP/1.1" 200') == runs, what=http.log_text)
        equal(lab.shim_log().count(CONFIRMED), len(ways), "confirmed in\n" + lab.shim_log())


@kernel.needs("fastopen")
def test_threads():
    """Many connections at once: on a busy machine some threads find the response together with the SYN+ACK."""
    with Lab(wifi=Link(delay_ms=1), lte=None, core=Link(delay_ms=5)) as lab:
        lab.convertd(["--hold-syn", "off"])
        lab.echo()
        said = lab.client.run([lab.build.program("tests/lab/apps/threads"), lab.server.addr4, 7, 16, 60], env=withheld(lab)).stdout
        equal(said, "done 960\n", "the program's output")
        check(CONFIRMED in lab.shim_log(), "none was confirmed")
        return "%d confirmed" % lab.shim_log().count(CONFIRMED)


LEAVES_IT_TO = """
import os, select, socket, subprocess, sys
sock = socket.socket()
sock.setblocking(False)
sock.connect_ex((sys.argv[1], 25))
select.select([], [sock], [])
if sys.argv[2] == "fork":
    if os.fork():
        os.wait()
        sys.exit()
elif sys.argv[2] in ("program", "bare"):
    os.dup2(sock.fileno(), 0)
    os.set_blocking(0, True)
    os.execvpe("head", ["head", "-n1"], os.environ if sys.argv[2] == "program" else {"PATH": os.environ["PATH"]})
elif sys.argv[2] == "vfork":
    sock.setblocking(True)
    subprocess.run(["head", "-n1"], stdin=sock, env={"PATH": os.environ["PATH"]})
    sys.exit()
elif sys.argv[2] == "sent":
    here, there = socket.socketpair(socket.AF_UNIX)
    child = os.fork()
    if child:
        socket.send_fds(here, [b"x"], [sock.fileno()])
        sock.close()
        os.wait()
        sys.exit()
    sock.close()
    sock = socket.socket(fileno=socket.recv_fds(there, 1, 1)[1][0])
elif sys.argv[2] == "copy":
    copy = sock.dup()
    sock.close()
    sock = copy
    if os.fork():
        os.wait()
        sys.exit()
sock.setblocking(True)
print(sock.recv(100).decode(), end="")
"""


@kernel.needs("fastopen")
def test_left_to_others():
    """Between SYN+ACK and response the socket goes to a child, to another program with the shim or without, or over a Unix socket.

    "copy" does as bash, which connects a descriptor, duplicates it, and closes the first one.
    """
    with lab_for() as lab:
        lab.convertd(["--hold-syn", "off"])
        lab.greeter()
        for how in ("fork", "program", "bare", "vfork", "sent", "copy"):
            said = until_confirmed(lab, lambda how=how: ask(lab, LEAVES_IT_TO, how, env=withheld(lab)))
            equal(set(said), {"220 lab ready\r\n"}, how)
        equal(lab.shim_log().count(CONFIRMED), 6, "confirmed in\n" + lab.shim_log())


STREAMS = """
import ctypes, os, socket, sys
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
def stream(fd):
    return ctypes.c_void_p(libc.fdopen(fd, b"r+"))
server, how = sys.argv[1:]
sock = socket.socket()
if how == "opened before":
    file = stream(sock.fileno())
sock.connect((server, 7))
if how == "opened after":
    file = stream(sock.fileno())
elif how == "standard input":
    os.dup2(sock.fileno(), 0)
    file = ctypes.c_void_p.in_dll(libc, "stdin")
elif how == "opened after output":
    sock.sendall(b"hello" + bytes([10]))
    file = stream(sock.fileno())
if how == "standard input":
    sock.sendall(b"hello" + bytes([10]))
elif how != "opened after output":
    libc.fputs(b"hello" + bytes([10]), file)
    libc.fflush(file)
line = ctypes.create_string_buffer(100)
libc.fgets(line, 100, file)
print(line.value.decode("latin-1"), end="")
"""


@long
@waits
@kernel.needs("fastopen")
def test_streams():
    """The C library's streams read and write past the hooks: they read only the server's bytes, and all of theirs reach the server."""
    with lab_for() as lab:
        lab.convertd(["--hold-syn", "off"])
        lab.echo()
        for how in ("opened before", "opened after", "opened after output", "standard input"):
            for early in ("0", "1"):
                said = ask(lab, STREAMS, how, env=withheld(lab, CONVERT_EARLY_DATA=early))
                equal(said, "hello\n", "%s, early data %s" % (how, early))
        check(CONFIRMED in lab.shim_log(), "none was confirmed by the SYN+ACK:\n" + lab.shim_log())


if __name__ == "__main__":
    main()
