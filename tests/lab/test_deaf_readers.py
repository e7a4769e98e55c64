#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_deaf_readers.py - our programs go on if the reader of their messages has stopped reading, or has ended

A service manager's socket holds net.unix.max_dgram_qlen messages, and by default the sender of another one waits for room, as
sd_notify(3) does. A log may be a pipe, for example to a pager: it holds some kilobytes, and writing to it raises SIGPIPE once its reader
has ended.
"""
import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import tempfile

from convertlab import Lab, Link, Unsuitable, equal, kernel, main, wait_until
from convertlab.paths import DEVICES, bare, endpoints
from convertlab.peers import MPTCP, Client, Server, extended_header, read_exactly
from convertlab.supervised import PORT, build


def near():
    """Returns a lab whose links are too fast to matter."""
    return Lab(wifi=Link(delay_ms=0.5), lte=None, core=Link(delay_ms=0.1))


@contextlib.contextmanager
def manager():
    """Yields the path of a manager's socket, a function that waits for a message, and one that fills the socket."""
    with tempfile.TemporaryDirectory(prefix="d-", dir="/run") as directory, \
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as filler:
        path = os.path.join(directory, "notify")
        sock.bind(path)
        sock.settimeout(30)

        def hear(text):
            while text not in sock.recv(4096).decode():
                pass

        def fill():
            with contextlib.suppress(BlockingIOError):
                while True:
                    filler.sendto(b"STATUS=of somebody else", socket.MSG_DONTWAIT, path)

        yield path, hear, fill


def test_the_path_manager():
    """Networks come and go, and endpoints with them."""
    with Lab() as lab, manager() as (path, hear, fill):
        bare(lab)
        command = [lab.build.program("convertize"), "paths", "--manage", "--config", "none", *DEVICES]
        process = lab.client.popen(command, name="paths", env={"NOTIFY_SOCKET": path})
        hear("READY=1")
        fill()
        for number in range(3, 7):
            lab.client.ip("addr flush dev lte scope global", "addr add 10.2.0.%d/24 dev lte" % number,
                          "route replace default via 10.2.0.1 dev lte metric 200")
            wait_until(lambda n=number: "10.2.0.%d" % n in endpoints(lab), 10, "the endpoint of an address, said:\n" + process.log_text())
        equal(process.stop(), 0, "the status: " + process.log_text())


def test_convertd():
    """The process that talks to the manager also lets SYNs go: it converts connections while it can't send its messages."""
    with near() as lab, manager() as (path, hear, fill), Server(lab, 80) as server:
        process = lab.convertd(env={"NOTIFY_SOCKET": path})
        hear("READY=1")
        fill()
        for _ in range(3):
            process.send_signal(signal.SIGHUP)
            process.wait_log("reloaded")
            with Client(lab.client, lab.converter.addr4, MPTCP) as client:
                extended_header(client.send(server.connect()).answer())
                with server.accept() as sock:
                    client.sock.sendall(b"u")
                    equal(read_exactly(sock, 1), b"u", "what the client has sent")
                equal(client.syn_data_taken(), kernel.has("fastopen"), "whether the request was taken in the SYN")
        equal(process.stop(), 0, "the status: " + process.log_text())


def run_supervised(lab, log):
    """Runs three supervised clients whose log is this end of a pipe: each is converted, and gets its bytes."""
    if os.environ.get("SANITIZER_PRELOAD"):
        raise Unsuitable("not under sanitizers: the programs are static")
    directory = os.path.join(lab.directory, "programs")
    os.makedirs(directory)
    lab.convertd()
    lab.echo()
    script = "for i in 1 2 3; do %s %s %s || exit; done" % (build("static", directory), lab.server.addr4, PORT)
    process = lab.client.popen([lab.build.program("convertize"), "--method", "supervise", "sh", "-c", script], stdout=subprocess.PIPE,
                               stderr=log, env={"CONVERT_ADDR": lab.converter.addr4, "CONVERT_CACHE": "none", "CONVERT_LOG": "-"})
    try:
        said = process.communicate(timeout=30)[0].decode()
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    protocol = kernel.protocols_with_fastopen()[0]
    equal((process.returncode, said.count("answer=hello"), said.count("protocol=%d" % protocol)), (0, 3, 3), "status and connections, in\n" + said)


def test_the_supervisors_log():
    """Its pipe is full."""
    with near() as lab:
        reader, writer = os.pipe()
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        os.set_blocking(writer, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(writer, bytes(4096))
        os.set_blocking(writer, True)
        run_supervised(lab, writer)
        os.close(reader)
        os.close(writer)


def test_the_supervisors_log_that_is_gone():
    """The reader has ended."""
    with near() as lab:
        reader, writer = os.pipe()
        os.close(reader)
        run_supervised(lab, writer)
        os.close(writer)


if __name__ == "__main__":
    main()
