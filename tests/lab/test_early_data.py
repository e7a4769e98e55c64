#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_early_data.py - the application's first bytes in the SYN: which calls send them, how many count, and none is ever lost"""
import hashlib
import os

from convertlab import Lab, Link, check, equal, first_syns, kernel, long, main, need, servers
from convertlab.pcap import OPT_MPTCP

APPS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "apps")
SCRIPTED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scripted_converter.py")
PROBE = os.path.join(APPS, "early_probe.py")
ECHO, RETURNER = 7, 8


def near(**options):
    return Lab(wifi=Link(delay_ms=5), lte=None, core=Link(delay_ms=1), **options)


def scripted(lab, script, *response, port=1234):
    return lab.start_listening(lab.converter, ["python3", SCRIPTED, lab.converter.addr4, port, script, *response],
                               port, name="scripted-%d" % port)


def echoes(lab):
    """Starts two servers that send everything back: one at once, the other for clients that send a megabyte before they read."""
    lab.echo(ECHO)
    lab.returner(RETURNER)


def early(lab, way, *arguments, **env):
    """Runs early_probe.py; returns its output. arguments: a port, if not that of the usual server for this way."""
    arguments = arguments or (RETURNER if way in ("bulk-blocking", "bulk-fastopen") else ECHO,)
    return lab.client.run(["python3", PROBE, way, lab.server.addr4, *arguments], env=lab.converted(**env)).stdout


def unharmed(said):
    """Tells whether the stream had all bytes, for any way."""
    return said.endswith("answer b'hello'\nend b''\n") or said == "same 1000000\n"


def syn_payloads(capture):
    """The payloads of SYNs over Multipath TCP. A SYN over TCP is a probe of the path, as after a late answer of a busy machine."""
    return [p.payload for p in first_syns(capture.packets()) if p.dport == 1234 and OPT_MPTCP in dict(p.options)]


@kernel.needs("fastopen")
def test_bytes_are_in_the_syn():
    """CONVERT_EARLY_DATA, MSG_FASTOPEN by each call, TCP_FASTOPEN_CONNECT: TLVs and data in one packet; calls count only the data."""
    with near() as lab:
        lab.convertd()
        lab.echo(ECHO)
        for way, setting in (("send", "1"), ("write", "1"), ("writev", "1"), ("sendmsg", "1"), ("sendto-fastopen", "0"),
                             ("sendmsg-fastopen", "0"), ("fastopen-connect", "0"), ("nonblocking", "1"), ("epoll", "1"),
                             ("epoll-before", "1"), ("sendto-fastopen-nonblocking", "0")):
            with lab.capture(lab.client, "wifi", "tcp") as capture:
                said = early(lab, way, CONVERT_EARLY_DATA=setting, CONVERT_BYPASS_MPTCP="0")
            check(said.endswith("sent 5\nanswer b'hello'\nend b''\n"), "%s:\n%s" % (way, said))
            payloads = syn_payloads(capture)
            check(len(payloads) == 1 and payloads[0].endswith(b"\1\1\0\0hello") and len(payloads[0]) == 28 + 5,
                  "%s: SYNs with %s" % (way, payloads))
        equal(lab.shim_log().count(kernel.verdict()), 11, "conversions in\n" + lab.shim_log())


def test_server_that_speaks_first():
    """The shim holds no SYN back for ever: a call that waits for the server lets it go."""
    with near() as lab:
        lab.convertd()
        lab.greeter()
        for way in ("recv", "poll", "select", "epoll", "epoll-edge", "ioctl"):
            said = early(lab, "greeted-" + way, 25, CONVERT_EARLY_DATA="1")
            equal(said, "greeting b'220 lab ready\\r\\n'\n", way)
        equal(lab.shim_log().count(kernel.verdict()), 6, "conversions in\n" + lab.shim_log())


def test_much_more_than_a_syn():
    """A blocking send() of a megabyte returns all of it, a non-blocking one continues; a half-close at once loses nothing."""
    with near() as lab:
        lab.convertd()
        echoes(lab)
        for way in ("bulk-blocking", "bulk-nonblocking", "bulk-fastopen"):
            said = early(lab, way, CONVERT_EARLY_DATA="1")
            equal(said, "same 1000000\n", way)
        equal(lab.shim_log().count(kernel.verdict()), 3, "conversions in\n" + lab.shim_log())


@long
def test_converter_that_fails():
    """The shim sends early data again: with the cookie, to the next converter, or to the server itself."""
    refusing = "01022263" "1e014000"
    for script, response in (("cookie", "00112233445566778899aabbccddeeff"), ("whole", refusing), ("whole", "48545450"),
                             ("close", ""), ("silent", "")):
        with near() as lab:
            scripted(lab, script, *([response] if response else []))
            echoes(lab)
            for way in ("send", "nonblocking", "epoll", "sendto-fastopen", "bulk-blocking"):
                said = early(lab, way, CONVERT_EARLY_DATA="1", CONVERT_TIMEOUT="0.5", CONVERT_ADDR=lab.converter.addr4)
                check(unharmed(said), "%s, %s %s:\n%s\n%s" % (way, script, response, said, lab.shim_log()))
    with near() as lab:
        scripted(lab, "whole", refusing, port=1001)
        scripted(lab, "whole", port=1002)
        lab.echo(ECHO)
        said = early(lab, "send", CONVERT_EARLY_DATA="1",
                     CONVERT_ADDR="%s:1001,%s:1002" % (lab.converter.addr4, lab.converter.addr4))
        check(unharmed(said) and kernel.verdict() in lab.shim_log(), said + lab.shim_log())


@kernel.needs("fastopen")
def test_server_that_fails():
    """connect() has succeeded; the error comes with the first input, and at once from a blocking MSG_FASTOPEN."""
    with near() as lab:
        lab.convertd()
        for way, seen in (("send", "sent 5\nECONNREFUSED\n"), ("epoll", "sent 5\nECONNREFUSED\n"),
                          ("sendto-fastopen", "ECONNREFUSED\n")):
            said = early(lab, way, 9, CONVERT_EARLY_DATA="1")
            check(said.endswith(seen), "%s:\n%s" % (way, said))


@long
def test_without_data_in_syns():
    """Without Fast Open on the client, at the converter, or on the way, the same bytes arrive, later."""
    for lab in (near(), near(converter_fastopen=1)):
        with lab:
            lab.convertd()
            echoes(lab)
            lab.client.sysctl("net.ipv4.tcp_fastopen", 0)
            # without bit 0x1 the kernel refuses MSG_FASTOPEN
            for sysctl, ways in ((0, ("send", "nonblocking", "epoll", "bulk-blocking")),
                                 (1, ("send", "nonblocking", "epoll", "bulk-blocking", "sendto-fastopen"))):
                lab.client.sysctl("net.ipv4.tcp_fastopen", sysctl)
                for way in ways:
                    said = early(lab, way, CONVERT_EARLY_DATA="1")
                    check(unharmed(said), "%s:\n%s" % (way, said))
    with Lab(wifi=Link(delay_ms=5, strip_syn_data=True), lte=None, core=Link(delay_ms=1)) as lab:
        lab.convertd()
        echoes(lab)
        for way in ("send", "nonblocking", "epoll", "bulk-blocking"):
            said = early(lab, way, CONVERT_EARLY_DATA="1")
            check(unharmed(said), "%s:\n%s" % (way, said))


def test_applications():
    """curl and wget get every byte."""
    need("curl")
    need("wget")
    with near() as lab:
        lab.convertd()
        lab.http()
        path = os.path.join(lab.directory, "file")
        url = "http://%s/bytes/1000000" % lab.server.addr4
        for command in (["curl", "-sS", "-o", path, url], ["wget", "-q", "-O", path, url]):
            lab.client.run(command, env=lab.converted(CONVERT_EARLY_DATA="1"))
            with open(path, "rb") as file:
                equal(hashlib.sha256(file.read()).hexdigest(), hashlib.sha256(servers.pattern(1000000)).hexdigest(), command[0])
        equal(lab.shim_log().count(kernel.verdict()), 2, "conversions in\n" + lab.shim_log())


def test_many_threads():
    """Threads that wait let each other's SYNs go: a socket that claims to be connected takes output all the same."""
    with near() as lab:
        lab.convertd()
        lab.echo()
        said = lab.client.run([lab.build.program("tests/lab/apps/threads"), lab.server.addr4, ECHO, 16, 50],
                              env=lab.converted(CONVERT_EARLY_DATA="1")).stdout
        equal(said, "done 800\n", "what the program says")
        equal(lab.shim_log().count("converted over MPTCP"), 800, "conversions")


if __name__ == "__main__":
    main()
