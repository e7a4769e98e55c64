#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_transfers.py - unmodified applications through shim and converter get every byte, on all paths, whatever fails"""
import hashlib
import os

from convertlab import Lab, Link, check, equal, first_syns, kernel, long, main, need, patience, repetitions, servers, side_by_side, wait_until, waits
from convertlab.pcap import OPT_MPTCP
from convertlab.peers import requests

APPS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "apps")
SCRIPTED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scripted_converter.py")


def near(delay_ms=5, **options):
    """Fast links, since these tests are about the logic."""
    return Lab(wifi=Link(delay_ms=delay_ms), lte=None, core=Link(delay_ms=1), **options)


def app(name, *arguments):
    return ["python3", os.path.join(APPS, name), *arguments]


def http(verb, url, path):
    """The command that gets the URL into a file, or puts the file there."""
    need("curl")
    return ["curl", "-sS", "-o" if verb == "get" else "-T", path, url]


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def scripted(lab, script, *response):
    """scripted_converter.py on the converter's IPv4 address, at the default port."""
    return lab.start_listening(lab.converter, ["python3", SCRIPTED, lab.converter.addr4, 1234, script, *response], 1234,
                               name="scripted")


def test_curl_and_wget():
    need("wget")
    with near() as lab:
        lab.convertd()
        lab.http()
        expected = hashlib.sha256(servers.pattern(3000000)).hexdigest()
        path = os.path.join(lab.directory, "file")
        for host in (lab.server.addr4, "[%s]" % lab.server.addr6):
            url = "http://%s/bytes/3000000" % host
            for command in (http("get", url, path), ["wget", "-q", "-O", path, url]):
                lab.client.run(command, env=lab.converted())
                equal(digest(path), expected, " ".join(command))
        equal(lab.shim_log().count(kernel.verdict()), 4, "conversions in\n" + lab.shim_log())


def test_upload():
    with near() as lab:
        lab.convertd()
        lab.http()
        path = os.path.join(lab.directory, "upload")
        with open(path, "wb") as file:
            file.write(servers.pattern(2000000))
        said = lab.client.run(http("put", "http://%s/x" % lab.server.addr4, path), env=lab.converted()).stdout
        equal(said.split()[1], "sha256=" + digest(path), "what the server got")
        check(kernel.verdict() in lab.shim_log(), lab.shim_log())


GREETED = """
import socket, sys
sock = socket.create_connection((sys.argv[1], 25), timeout=10)
print(sock.recv(15).decode().strip())
sock.sendall(b"helo\\r\\n")
print(sock.recv(100).decode().strip())
"""


def test_server_that_speaks_first():
    with near() as lab:
        lab.convertd()
        lab.greeter()
        for address in (lab.server.addr4, lab.server.addr6):
            said = lab.client.run(["python3", "-c", GREETED, address], env=lab.converted()).stdout
            equal(said, "220 lab ready\n250 helo\n", "the conversation")
        equal(lab.shim_log().count(kernel.verdict()), 2, "conversions in\n" + lab.shim_log())


RESET = """
import socket, sys
sock = socket.create_connection((sys.argv[1], 7777))
try:
    print(sock.recv(10))
except ConnectionResetError:
    print("reset")
"""


def test_server_that_resets():
    """A reset of the server arrives as a reset, not as a regular end."""
    with near() as lab:
        lab.convertd()
        lab.resetter()
        said = lab.client.run(["python3", "-c", RESET, lab.server.addr4], env=lab.converted()).stdout
        equal(said, "reset\n", "what the application saw")
        check("converted over MPTCP" in lab.shim_log(), lab.shim_log())


# Extended TCP Header TLV with MSS, SACK-permitted, timestamps and window scale
LONG_RESPONSE = "01072263" "14060000" "020405b4" "0402080a" "00000000" "00000000" "03030a00"


@long
def test_response_in_pieces():
    for script in ("bytewise", "split:1", "split:4", "split:8", "split:27", "whole"):
        with near() as lab:
            scripted(lab, script, LONG_RESPONSE)
            lab.echo()
            ways = ("blocking", "poll", "select", "epoll", "epoll-edge", "epoll-before")
            for way, said in zip(ways, side_by_side(lambda way, lab=lab: lab.client.run(
                    app("connect_probe.py", way, lab.server.addr4, 7), env=lab.converted()).stdout, ways)):
                check("answer b'hello'\nend b''\n" in said, "%s, %s:\n%s" % (script, way, said))
            equal(lab.shim_log().count(kernel.verdict()), 6, "conversions in\n" + lab.shim_log())


@kernel.needs("rcvlowat")
def test_response_in_pieces_does_not_spin():
    """To wait for the rest of a response takes hardly any CPU: a wake-up for each piece, and a few calls for each wake-up."""
    need("strace")
    with near() as lab:
        scripted(lab, "bytewise", LONG_RESPONSE)
        lab.echo()
        trace = os.path.join(lab.directory, "trace")
        for way in ("blocking", "poll", "epoll-edge"):
            lab.client.run(["strace", "-f", "-o", trace, "-e", "trace=network,poll,ppoll,epoll_wait,epoll_pwait",
                            *app("connect_probe.py", way, lab.server.addr4, 7)], env=lab.converted())
            with open(trace, encoding="utf-8", errors="replace") as file:
                calls = len([line for line in file if "(" in line])
            check(calls < 28 * 12, "%s: %d system calls for a response of 28 pieces" % (way, calls))


def cpu_seconds(lab, env, way):
    """Has a program connect in this way; returns its seconds of CPU time, and the seconds that it waited for the response."""
    before, lines = os.times(), lab.shim_log().count("\n")
    said = lab.client.run(app("connect_probe.py", way, lab.server.addr4, 7), env=env).stdout
    after = os.times()
    check("answer b'hello'\nend b''\n" in said, "%s:\n%s" % (way, said))
    line, = lab.shim_log().splitlines()[lines:]
    return after[2] + after[3] - before[2] - before[3], float(line.split(" after ")[1].split()[0]) / 1000


@long
@waits
def test_response_in_pieces_to_a_kernel_that_is_deaf():
    """Linux 6.1 accepts SO_RCVLOWAT and ignores it: the shim looks for the rest of a response now and then, not all the time."""
    with near(delay_ms=15) as lab:
        scripted(lab, "bytewise", LONG_RESPONSE)
        lab.echo()
        env = lab.converted()
        deaf = lab.build.on_older_linux(env)
        lab.client.run(app("connect_probe.py", "poll", lab.server.addr4, 7))  # loads the program's files into memory
        for way in ("blocking", "poll", "select", "epoll", "epoll-edge", "epoll-before"):
            usual, _ = cpu_seconds(lab, env, way)
            spent, waited = cpu_seconds(lab, deaf, way)
            check(waited > 0.7, "the response came within %.3f s, which shows nothing" % waited)
            check(spent - usual < waited / 3, "%s: %.3f s of CPU time in %.3f s, and %.3f with SO_RCVLOWAT" % (way, spent, waited, usual))


@long
@waits
def test_response_in_crumbs():
    """The bytes of a response arrive one by one, for more than a second: all have to arrive within CONVERT_TIMEOUT."""
    long = "01102263" "14010000" "150e0000" + "00" * 4 * 13  # 64 bytes
    for protocol in ("MPTCP", "TCP"):
        for seconds in (patience(1), patience(10)):
            with near(delay_ms=patience(5)) as lab:
                if protocol == "TCP":
                    lab.client.sysctl("net.mptcp.enabled", 0)
                scripted(lab, "bytewise", long)
                lab.echo()
                env = lab.converted(CONVERT_TIMEOUT=seconds)
                said = lab.client.run(app("connect_probe.py", "blocking", lab.server.addr4, 7), env=env).stdout
                check("answer b'hello'\nend b''\n" in said, said)
                verdict = "converted over " + protocol if seconds > patience(1) else "no answer in time"
                check(verdict in lab.shim_log(), "%s, %d s:\n%s" % (protocol, seconds, lab.shim_log()))
                ms = float(lab.shim_log().split(" after ")[1].split()[0])
                check(ms > patience(1) * 1000, "it ended within %.0f ms, which shows nothing" % ms)


@long
@waits
def test_broken_converters():
    """After anything but a Convert response the shim connects directly, and resets the converter's connection."""
    for script, response in (("whole", "48545450"), ("whole", "01002263"), ("whole", "0103226314010000" "14010000"),
                             ("truncate:1", LONG_RESPONSE), ("truncate:5", LONG_RESPONSE),
                             ("truncate:27", LONG_RESPONSE), ("close", ""), ("reset", "")):
        with near() as lab:
            converter = scripted(lab, script, *([response] if response else []))
            lab.echo()
            for way in ("blocking", "epoll-edge"):
                said = lab.client.run(app("connect_probe.py", way, lab.server.addr4, 7), env=lab.converted()).stdout
                check("answer b'hello'\nend b''\n" in said, "%s %s, %s:\n%s" % (script, response, way, said))
            equal(lab.shim_log().count("direct, the converter fails"), 2, "fall-backs in\n" + lab.shim_log())
            if response in ("48545450", "01002263"):
                converter.wait_log("reset")


@long
@waits
def test_cookie_is_learned():
    """RFC 8803 6.2.7: a reset, then the request again with the cookie; later requests have the cookie at once."""
    cookie = "00112233445566778899aabbccddeeff"
    for way in ("blocking", "poll", "select", "epoll", "epoll-edge", "epoll-before"):
        with near() as lab:
            converter = scripted(lab, "cookie", cookie)
            lab.echo()
            said = lab.client.run(app("connect_probe.py", way, lab.server.addr4, 7), env=lab.converted()).stdout
            check("answer b'hello'\nend b''\n" in said, "%s:\n%s" % (way, said))
            converter.wait_log("reset")
    with near() as lab:
        converter = scripted(lab, "cookie", cookie)
        lab.echo()
        hellos(lab, 5)
        equal(lab.shim_log().count(kernel.verdict()), 5, "conversions in\n" + lab.shim_log())
        equal(len(requests(converter)), 6, "requests in\n" + converter.log_text())
        equal(converter.log_text().count(cookie), 5, "requests with the cookie")


def test_cookie_that_is_configured():
    with near() as lab:
        converter = scripted(lab, "cookie", b"opensesame!!".hex())
        lab.echo()
        said = lab.client.run(app("connect_probe.py", "poll", lab.server.addr4, 7),
                              env=lab.converted(CONVERT_COOKIE="opensesame!!")).stdout
        check("answer b'hello'" in said, said)
        equal(len(requests(converter)), 1, "requests in\n" + converter.log_text())


@long
@waits
def test_cookie_that_does_not_help():
    """If the converter asks for a cookie again, the shim doesn't try forever: it does without the converter."""
    for response, count in (("01022263" "1e010300", 1), ("01032263" "1e020300" "aabbccdd", 2)):
        for fallback, seen in (("direct", "answer b'hello'"), ("none", "connect EHOSTUNREACH")):
            with near() as lab:
                converter = scripted(lab, "whole", response)
                lab.echo()
                said = lab.client.run(app("connect_probe.py", "blocking", lab.server.addr4, 7),
                                      env=lab.converted(CONVERT_ADDR=lab.converter.addr4, CONVERT_FALLBACK=fallback)).stdout
                check(seen in said, said)
                equal(len(requests(converter)), count, "requests")


def test_bypass_and_fallback():
    with near() as lab:
        lab.convertd()
        lab.echo()
        for rule in (":7", "10.8.0.0/16", "10.8.0.1:7"):
            lab.client.run(app("connect_probe.py", "poll", lab.server.addr4, 7), env=lab.converted(CONVERT_BYPASS=rule))
        equal(lab.shim_log().count("direct: CONVERT_BYPASS says so"), 3, "bypassed in\n" + lab.shim_log())
    with near() as lab:
        lab.echo()
        for way in ("blocking", "poll", "epoll-edge"):
            said = lab.client.run(app("connect_probe.py", way, lab.server.addr4, 7),
                                  env=lab.converted(CONVERT_FALLBACK="none")).stdout
            check("ECONNREFUSED" in said and "answer" not in said, "%s, converter dead:\n%s" % (way, said))


def test_100_mib_both_ways_at_once():
    with near() as lab:
        lab.convertd()
        lab.echo()
        size = repetitions(100) << 20
        said = lab.client.run(app("duplex.py", lab.server.addr4, 7, size), env=lab.converted()).stdout
        equal(said, "same %d\n" % size, "what came back")
        check(kernel.verdict() in lab.shim_log(), lab.shim_log())


def cut_in_mid_transfer(cut, size):
    """Downloads a file of this size, and cuts a path after 3 MB. Returns whether that was before the end."""
    with Lab(wifi=Link(delay_ms=10, rate_mbit=50, queue=200), lte=Link(delay_ms=25, rate_mbit=30, queue=200)) as lab:
        lab.convertd()
        lab.http()
        target = os.path.join(lab.directory, "file")
        download = lab.client.popen(http("get", "http://%s/bytes/%d" % (lab.server.addr4, size), target),
                                    env=lab.converted())
        wait_until(lambda: os.path.exists(target) and os.path.getsize(target) > 3000000, 20, "a part of the file")
        getattr(lab, cut).down()
        in_time = os.path.getsize(target) < size
        equal(download.wait(100), 0, "the download's status; it says " + download.log_text())
        equal(digest(target), hashlib.sha256(servers.pattern(size)).hexdigest(), "the file")
        return in_time


@long
@waits
def test_a_path_cut_in_mid_transfer():
    """The file is whole, as the transfer goes on over the other path."""
    for cut in ("wifi", "lte"):
        check(any(cut_in_mid_transfer(cut, size) for size in (12000000, 50000000)), "the link was cut too late to matter")


def slowest_of(lab, way, count, at_once):
    """Makes these connections; returns how many seconds the slowest one took."""
    said = lab.client.run(app("many.py", way, lab.server.addr4, 7, count, at_once), env=lab.converted()).stdout
    return float(said.split()[-1])


@long
def test_1000_connections_at_once():
    with near() as lab:
        lab.convertd()
        lab.echo()
        for way in ("poll", "epoll", "epoll-edge", "select"):
            count = repetitions(900 if way == "select" else 1000)  # FD_SETSIZE
            slowest = slowest_of(lab, way, count, count)
            # the kernel gives a connection up only later
            check(slowest < patience(60), "%s: the slowest took %.1f s" % (way, slowest))
        equal(lab.shim_log().count("converted over MPTCP"), 3 * repetitions(1000) + repetitions(900), "conversions")


@long
def test_many_threads():
    """Event loops in threads: none may take a step of another one's handshake."""
    with Lab(wifi=Link(delay_ms=1), lte=None, core=None) as lab:
        lab.convertd()
        lab.echo()
        program = lab.build.program("tests/lab/apps/threads")
        each = repetitions(300)
        said = lab.client.run([program, lab.server.addr4, 7, 32, each], env=lab.converted()).stdout
        equal(said, "done %d\n" % (32 * each), "what the threads did")
        equal(lab.shim_log().count("converted over MPTCP"), 32 * each, "conversions")


def test_two_threads_on_one_socket():
    """While one takes the response off the stream, the other one sees neither the response nor the converter."""
    with Lab(wifi=Link(delay_ms=1), lte=None, core=None) as lab:
        lab.convertd()
        lab.echo()
        said = lab.client.run(app("shared_probe.py", lab.server.addr4, 7, repetitions(100)), env=lab.converted()).stdout
        equal(said, "clean %d\n" % repetitions(100), "what the second thread saw")


def hellos(lab, count):
    """Makes so many connections in one process, one after the other."""
    return lab.client.run(app("many.py", "epoll", lab.server.addr4, 7, count, 1), env=lab.converted()).stdout


def test_converter_without_fast_open():
    """The SYN's data isn't taken, which would end MPTCP: the shim asks again behind the handshake, from the third connection on at once."""
    with near(converter_fastopen=1) as lab:
        lab.convertd()
        lab.echo()
        hellos(lab, 5)
        verdicts = [line.split(": ", 3)[3].split(" after")[0] for line in lab.shim_log().splitlines()]
        anew, done = "data in the SYN was not taken, asked behind the handshake", "converted over MPTCP, request behind the handshake"
        # without Fast Open on MPTCP sockets the shim puts no data into SYNs
        equal(verdicts, [anew, done] * 2 + [done] * 3 if kernel.has("fastopen") else [done] * 5, "the log's verdicts")


def test_syn_payload_stripped_on_the_way():
    with Lab(wifi=Link(delay_ms=5, strip_syn_data=True), lte=None, core=Link(delay_ms=1)) as lab:
        lab.convertd()
        lab.echo()
        hellos(lab, 4)
        equal(lab.shim_log().count("data in the SYN was not taken"), 2 if kernel.has("fastopen") else 0, "misses in\n" + lab.shim_log())
        equal(lab.shim_log().count("converted over MPTCP, request behind"), 4, "MPTCP kept in\n" + lab.shim_log())


def test_middlebox_that_strips_mptcp():
    with Lab(wifi=Link(delay_ms=5, strip_mptcp=True), lte=None, core=Link(delay_ms=1)) as lab:
        lab.convertd()
        lab.echo()
        for way in ("blocking", "epoll-edge"):
            said = lab.client.run(app("connect_probe.py", way, lab.server.addr4, 7), env=lab.converted()).stdout
            check("answer b'hello'\nend b''\n" in said, said)
        equal(lab.shim_log().count("converted over TCP, request %staken in the SYN" % ("" if kernel.has("fastopen") else "not ")), 2, "conversions in\n" + lab.shim_log())


def test_client_without_mptcp_or_fast_open():
    """If the client's kernel refuses, the shim uses TCP, or sends the request behind the handshake.

    The converter's kernel, here the same, may take no data in SYNs on its MPTCP socket.
    """
    for sysctl, verdict in (("net.mptcp.enabled", "taken in the SYN"),
                            ("net.ipv4.tcp_fastopen", "request behind the handshake")):
        with near() as lab:
            lab.convertd()
            lab.echo()
            lab.client.sysctl(sysctl, 0)
            for way in ("blocking", "poll", "epoll-edge", "epoll-before", "select"):
                said = lab.client.run(app("connect_probe.py", way, lab.server.addr4, 7), env=lab.converted()).stdout
                check("answer b'hello'\nend b''\n" in said, "%s, %s:\n%s" % (sysctl, way, said))
            equal(lab.shim_log().count(verdict), 5, "conversions in\n" + lab.shim_log())


def test_the_syn_on_the_wire():
    """The packet that leaves the client has MP_CAPABLE, the TLVs, and no Fast Open option."""
    with near() as lab:
        lab.convertd()
        lab.http()
        with lab.capture(lab.client, "wifi", "tcp") as capture:
            lab.client.run(http("get", "http://%s/bytes/10" % lab.server.addr4, os.path.join(lab.directory, "file")),
                           env=lab.converted())
        sent = [p for p in capture.packets() if p.dport == 1234]
        # after a late answer, as on a slow machine, there is also a probe over TCP
        syns = [p for p in first_syns(sent) if OPT_MPTCP in dict(p.options)]
        equal(len(syns), 1, "SYNs with MP_CAPABLE to the converter, of %d packets" % len(sent))
        syn = syns[0]
        first = next(p for p in sent if p.payload)
        # without Fast Open on MPTCP sockets the message is the first data behind the handshake
        equal(first is syn, kernel.has("fastopen"), "whether the SYN has data")
        equal(first.payload.hex(), "01082263" "0a060050" "00000000000000000000ffff" "0a080001" "1e020000" "01010000",
              "the first payload: a Connect TLV that asks for Multipath TCP, too, and an Info TLV")
        kinds = [kind for kind, _ in syn.options]
        check(34 not in kinds and 254 not in kinds, "a Fast Open option among %s" % kinds)


if __name__ == "__main__":
    main()
