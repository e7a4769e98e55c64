#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertd_counts.py - the counters for SYNs that convertd withholds, and for pipes"""
import contextlib
import os
import pwd
import re
import signal
import sys

from convertlab import Lab, Link, Skip, check, equal, main
from convertlab.metrics import OPTIONS, Metrics, get, wait_metrics
from convertlab.peers import Client, Forger, Server, connect, connected, converter, octets

DENIED = "10.8.0.1:25"  # of the server
INFO = octets("01022263 01010000")


def near():
    """Returns a lab whose links are too fast to matter."""
    return Lab(wifi=Link(delay_ms=0.5), lte=None, core=Link(delay_ms=0.1))


def fates(metrics):
    """Returns {fate: number of SYNs}, without zeros."""
    return metrics.family("convertd_syns_total", "fate")


def finished(client):
    """Reads until the end of the stream, and closes the client."""
    client.end()
    client.sock.close()


# --- SYNs ---------------------------------------------------------------------------------------------------------


def test_what_becomes_of_syns():
    """Each SYN is counted once, by its fate; metrics and status have the withheld ones."""
    with near() as lab, Server(lab, 80) as server, \
            converter(lab, "--hold-time", "2900", "--connect-timeout", "5", "--deny-destination", DENIED, *OPTIONS):
        client, sock = connected(lab, server)
        client.sock.close()
        sock.close()
        finished(Client(lab.client, lab.converter.addr4).send(connect(lab.server.addr4, lab.addresses.refused_port)))
        finished(Client(lab.client, lab.converter.addr4).send(connect(lab.server.addr4, 25)))
        finished(Client(lab.client, lab.converter.addr4).send(INFO))
        finished(Client(lab.client, lab.converter.addr4, delivery="behind").send(INFO))
        expected = {"answered": 1, "failed": 1, "not_granted": 1, "passed": 2}

        def as_expected(metrics):
            # a SYN that is sent again, on a slow machine, is "repeated" or "unconfirmed"
            return expected.items() <= fates(metrics).items()
        wait_metrics(lab.converter, as_expected, "%s" % expected)
        with Client(lab.client, lab.converter.addr4).send(connect(lab.addresses.blackhole4, 80)) as client:
            waiting = wait_metrics(lab.converter, lambda metrics: metrics("convertd_withheld_syns") == 1, "one that is withheld")
            check(as_expected(waiting), "fates of the others: %s" % fates(waiting))
            check("withheld SYNs                              1\n" in get(lab.converter, "/status")[2], "it isn't in the status")
            # the client's kernel sends it again after a second
            wait_metrics(lab.converter, lambda metrics: fates(metrics).get("repeated"), "one that is dropped")
            metrics = wait_metrics(lab.converter, lambda metrics: fates(metrics).get("late"), "the end of its time")
            equal((metrics("convertd_withheld_syns"), fates(metrics)["late"]), (0, 1), "withheld, late")
            client.reset()
        check("let go: the server was silent              1\n" in get(lab.converter, "/status")[2], "it isn't in the status")


def test_syns_that_were_missed():
    """While convertd stands still, more SYNs come than its queue has room for: it counts those that the kernel lets pass."""
    count, data = 8000, bytes(1400)  # more than the queue's buffer has room for
    # one worker, and so one queue: a queue's next SYN tells how many it has missed
    with near() as lab, Server(lab, 80) as server, converter(lab, "--workers", "1", *OPTIONS) as process:
        client, sock = connected(lab, server)
        client.sock.close()
        sock.close()
        os.kill(process.serving, signal.SIGSTOP)
        try:
            with Forger(lab.client, lab.converter.wifi4) as forger:
                for i in range(count):
                    forger.syn("10.66.%d.%d" % (i // 250, i % 250 + 1), 1111, data)
        finally:
            os.kill(process.serving, signal.SIGCONT)

        def told(metrics):
            # the next SYN tells how many were missed before it
            connected(lab, server)[0].sock.close()
            return sum(fates(metrics).values()) > count
        found = fates(wait_metrics(lab.converter, told, "all SYNs to be counted"))
        check(found.get("missed", 0) > 0, "none was missed: %s" % found)
        return "%d of %d missed" % (found["missed"], count)


def test_foreign_syns():
    """With --drop-foreign-syns, convertd drops and counts SYNs that don't begin with a request."""
    with near() as lab, converter(lab, "--drop-foreign-syns", *OPTIONS):
        with Client(lab.client, lab.converter.addr4) as client:
            client.sock.setblocking(False)
            client.send(b"GET / HTTP/1.1\r\n\r\n")
            wait_metrics(lab.converter, lambda metrics: fates(metrics).get("foreign"), "one that is dropped")


# --- pipes --------------------------------------------------------------------------------------------------------


def fill(sock):
    """Sends until the socket is full; returns the number of bytes."""
    sent = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            sent += sock.send(bytes(1 << 20))
    return sent


def transfers_have_a_pipe(lab, server):
    """Begins eight transfers that their receivers hold up, waits until one has a pipe, and lets all end."""
    # the bytes behind a small read wait in a buffer, so some transfers may have no pipe
    transfers = [[*connected(lab, server), 0] for _ in range(8)]
    for _, sock, _ in transfers:
        sock.setblocking(False)

    def held_up(metrics):
        told = re.search(r"^ *pipes in use +[1-8]$", get(lab.converter, "/status")[2], re.MULTILINE)
        if told and metrics("convertd_relay_pipes"):
            return True
        for transfer in transfers:
            # If the kernel has denied a pipe, since other tests of this user have too many, convertd asks again only with more bytes.
            transfer[2] += fill(transfer[1]) - len(transfer[0].read(65536))
        return False
    wait_metrics(lab.converter, held_up, "a pipe, in metrics and status")
    for client, sock, left in transfers:
        sock.close()
        equal(len(client.end()[0]), left, "bytes at the client")
        client.sock.close()
    wait_metrics(lab.converter, lambda metrics: metrics("convertd_relay_pipes") == 0, "its end")


def test_pipes_in_use():
    """A transfer that its receiver holds up has a pipe until it ends."""
    with near() as lab, Server(lab, 80) as server, converter(lab, *OPTIONS):
        equal(Metrics(lab.converter)("convertd_relay_pipes"), 0, "pipes at first")
        transfers_have_a_pipe(lab, server)


# Becomes another user, and takes large pipes until the kernel denies it one: then the user can have no other.
TAKE_ALL_PIPES = """
import fcntl, os, signal, sys
os.setgroups([])
os.setgid(int(sys.argv[2]))
os.setuid(int(sys.argv[1]))
try:
    while True:
        fcntl.fcntl(os.pipe()[1], fcntl.F_SETPIPE_SZ, 256 << 10)
except PermissionError:
    print("denied", flush=True)
signal.pause()
"""


def test_pipes_that_the_kernel_denies():
    """While convertd's user has too many pipes (fs.pipe-user-pages-soft), convertd copies bytes; later it uses pipes again."""
    try:
        user = pwd.getpwnam("nobody")
    except KeyError as error:
        raise Skip("there is no user \"nobody\"") from error
    with near() as lab, Server(lab, 80) as server:
        taker = lab.converter.popen([sys.executable, "-c", TAKE_ALL_PIPES, user.pw_uid, user.pw_gid])
        taker.wait_log("denied")
        with converter(lab, "--user", "nobody", *OPTIONS):
            client, sock = connected(lab, server)
            sock.setblocking(False)
            sent = fill(sock)
            equal(Metrics(lab.converter)("convertd_relay_pipes"), 0, "pipes that the kernel denies")
            sock.close()
            equal(len(client.end()[0]), sent, "bytes at the client")
            client.sock.close()
            taker.stop()
            transfers_have_a_pipe(lab, server)


if __name__ == "__main__":
    main()
