#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_shim_policy.py - which converter the shim asks, for how long, and how it connects without one"""
import errno
import os

from convertlab import Lab, Link, Unsuitable, check, equal, kernel, long, main, patience, side_by_side, waits
from convertlab.peers import requests

APPS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "apps")
SCRIPTED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scripted_converter.py")
WAYS = ("blocking", "poll", "select", "epoll-edge", "epoll-before")
ANSWERED = "answer b'hello'\nend b''\n"
EMPTY_HEADER = "01022263" "14010000"
SILENT = "no answer in time, left alone for 30 s"


def error(code, value=0):
    return "01022263" "1e01%02x%02x" % (code, value)


def near(delay_ms=5, **options):
    return Lab(wifi=Link(delay_ms=delay_ms), lte=None, core=Link(delay_ms=1), **options)


def scripted(lab, script, *response, address=None, port=1234):
    return lab.start_listening(lab.converter, ["python3", SCRIPTED, address or lab.converter.addr4, port, script, *response],
                               port, name="scripted-%d" % port)


def run_probe(lab, way, **env):
    return lab.client.run(["python3", os.path.join(APPS, "connect_probe.py"), way, lab.server.addr4, 7], env=lab.converted(**env))


def probe(lab, way, **env):
    return run_probe(lab, way, **env).stdout


def several(lab, count, **env):
    """Makes so many connections in one process, one after the other."""
    lab.client.run(["python3", os.path.join(APPS, "many.py"), "poll", lab.server.addr4, 7, count, 1], env=lab.converted(**env))


def drop(host, port):
    """Drops packets to that port."""
    host.run(["nft", "add table inet drops; add chain inet drops input { type filter hook input priority 0; };"
              "add rule inet drops input tcp dport %d drop" % port])


def test_unreachable_converter():
    """It answers no SYN: the shim connects directly after CONVERT_TIMEOUT, and the next ones at once."""
    with near() as lab:
        lab.echo()
        drop(lab.converter, 1234)
        results = side_by_side(lambda way: run_probe(lab, way, CONVERT_ADDR=lab.converter.addr4, CONVERT_TIMEOUT="4"), WAYS,
                               at_once=len(WAYS))
        for way, result in zip(WAYS, results):
            check(ANSWERED in result.stdout, "%s:\n%s" % (way, result.stdout))
            ms = float(result.stderr.split()[-1])  # until connect() was answered
            # at least: the default is 3 s; at most: CONVERT_TIMEOUT would have passed several times
            check(4000 <= ms < patience(20000), "%s took %.0f ms" % (way, ms))
        equal(lab.shim_log().count(SILENT), len(WAYS), "time-outs in\n" + lab.shim_log())
        # of five connections the first one waits
        several(lab, 5, CONVERT_ADDR=lab.converter.addr4, CONVERT_TIMEOUT="0.5")
        equal(lab.shim_log().count(SILENT), len(WAYS) + 1, "time-outs in\n" + lab.shim_log())
        equal(lab.shim_log().count("direct: the converter is left alone for a while"), 4, "direct in\n" + lab.shim_log())
        said = probe(lab, "blocking", CONVERT_ADDR=lab.converter.addr4, CONVERT_TIMEOUT="0.2", CONVERT_FALLBACK="none")
        check("connect ETIMEDOUT" in said, said)


@long
@waits
def test_converter_without_a_route():
    """A router reports that the converter can't be reached: the application must not see that error on its direct connection.

    Linux always puts such an error into the error queue of a TCP socket, and poll() and epoll report it until it is read.
    """
    with near() as lab:
        lab.echo()
        for multipath in (1, 0):
            lab.client.sysctl("net.mptcp.enabled", multipath)
            for way in WAYS + ("epoll", "epoll-past"):
                direct = lab.client.run(["python3", os.path.join(APPS, "connect_probe.py"), way, lab.server.addr4, 7]).stdout
                equal(probe(lab, way, CONVERT_ADDR=lab.addresses.unreachable4), direct, "%s, net.mptcp.enabled=%d" % (way, multipath))
        equal(lab.shim_log().count("direct, the converter fails: "), 2 * (len(WAYS) + 2), "direct in\n" + lab.shim_log())


def test_silent_converter():
    """It accepts connections and never answers: it isn't a converter, or a middlebox drops responses (RFC 8803, Section 8)."""
    with near() as lab:
        lab.echo()
        scripted(lab, "silent")
        for way in WAYS:
            said = probe(lab, way, CONVERT_ADDR=lab.converter.addr4, CONVERT_TIMEOUT="0.5")
            check(ANSWERED in said, "%s:\n%s" % (way, said))
        equal(lab.shim_log().count(SILENT), len(WAYS), "time-outs in\n" + lab.shim_log())


@long
@waits
def test_patience_with_a_proven_converter():
    """Once a converter has answered, the shim blames the server for silence, which may take longer than CONVERT_TIMEOUT."""
    with Lab(wifi=Link(delay_ms=5), lte=None, core=Link(delay_ms=300)) as lab:
        lab.convertd()
        lab.echo()
        # 600 ms to the server: the shim gives the first connection's converter up too early, and connects directly
        said = probe(lab, "poll", CONVERT_TIMEOUT="0.3")
        check(ANSWERED in said and SILENT in lab.shim_log(), said + lab.shim_log())
        program = """
import socket, sys
def one(address, port):
    try:
        socket.create_connection((address, port)).close()
        return "connected"
    except OSError as error:
        return error.errno
print(one(%r, 7), one(%r, 9))
""" % (lab.server.addr4, lab.server.addr4)
        said = lab.client.run(["python3", "-c", program], env=lab.converted(CONVERT_TIMEOUT="5")).stdout
        equal(said, "connected 111\n", "what the application saw")
    with near() as lab:
        # convertd withholds SYNs for less than the shim waits for a converter that doesn't answer at all
        lab.convertd(["--hold-time", "100"])
        lab.echo()
        drop(lab.server, 77)
        # the first connection proves the converter, so the shim waits for the second one, whose server never answers
        program = """
import select, socket, sys
socket.create_connection((%(server)r, 7)).close()
slow = socket.socket()
slow.setblocking(False)
assert slow.connect_ex((%(server)r, 77)) == 115
poll = select.poll()
poll.register(slow, select.POLLOUT)
print(poll.poll(1500), slow.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
""" % {"server": lab.server.addr4}
        said = lab.client.run(["python3", "-c", program], env=lab.converted(CONVERT_TIMEOUT="0.3")).stdout
        equal(said, "[] 0\n", "what the application saw")
        check(SILENT not in lab.shim_log(), lab.shim_log())


@long
@waits
def test_refusals():
    """After an error of the converter the shim connects directly; it passes errors of the server on to the application."""
    for code, value, seen, delay in ((64, 0, "Resource Exceeded", 30), (64, 7, "Resource Exceeded", 7),
                                     (0, 1, "Unsupported Version", 30), (1, 0, "Malformed Message", 30),
                                     (2, 0, "Unsupported Message", 30), (33, 30, "Unsupported TCP Option", 30),
                                     (32, 0, "Not Authorized", 30)):
        with near() as lab:
            lab.echo()
            converter = scripted(lab, "whole", error(code, value))
            several(lab, 3, CONVERT_ADDR=lab.converter.addr4)
            log = lab.shim_log()
            check("%s, left alone for %d s" % (seen, delay) in log, "%d:\n%s" % (code, log))
            equal(log.count("direct"), 3, "%d: direct connections in\n%s" % (code, log))
            # a second request leaves out the option that the first one asked for
            equal(len(requests(converter)), 2 if code == 33 else 1, "%d: requests" % code)
    for code, value, seen in ((96, 0, "ECONNREFUSED"), (97, 0, "ENETUNREACH"), (65, 0, "ETIMEDOUT")):
        with near() as lab:
            lab.echo()
            scripted(lab, "whole", error(code, value))
            said = probe(lab, "blocking", CONVERT_ADDR=lab.converter.addr4)
            check(said.startswith("connect %s\nSO_ERROR 0\n" % seen), "code %d: %s" % (code, said))


SIGNED = """
import socket, struct, sys
address = sys.argv[1]
peer = struct.pack("=HH4s120x", socket.AF_INET, 0, socket.inet_aton(address))
with socket.socket() as sock:
    sock.setsockopt(socket.IPPROTO_TCP, 14, peer + struct.pack("=BBHi80s", 0, 0, 3, 0, b"key"))
    sock.settimeout(0.5)
    print(sock.connect_ex((address, 7)))
"""


def test_sessions_with_a_key_for_the_server():
    """A program that has set a key for its server's address (TCP_MD5SIG), as BGP does, connects to the server itself."""
    with near() as lab:
        lab.convertd()
        lab.echo()
        with lab.capture(lab.client, "wifi", "tcp") as capture:
            direct = lab.client.run(["python3", "-c", SIGNED, lab.server.addr4], check=False)
            if "Errno" in direct.stderr:
                raise Unsuitable("this kernel has no TCP_MD5SIG: " + direct.stderr[-100:])
            said = lab.client.run(["python3", "-c", SIGNED, lab.server.addr4], env=lab.converted()).stdout
            equal(said, direct.stdout, "errno, as directly")
        syns = [(packet.dst, 19 in [kind for kind, _ in packet.options]) for packet in capture.packets() if packet.syn and not packet.ack]
        equal(set(syns), {(lab.server.addr4, True)}, "SYNs, and whether they are signed")
        with lab.capture(lab.client, "wifi", "tcp") as capture:
            said = lab.client.run(["python3", "-c", SIGNED, lab.server.addr4], env=lab.converted(CONVERT_FALLBACK="none")).stdout
        equal((said, capture.packets()), ("%d\n" % errno.ENETUNREACH, []), "errno and packets with CONVERT_FALLBACK=none")


def test_resets():
    """After an Error TLV or a broken message the client resets (Sections 6.1, 6.2.1, 6.2.2 and 6.2.8)."""
    responses = {"an Error TLV": error(96), "Total Length 0": "01002263", "a TLV twice": "01032263" + "14010000" * 2,
                 "type 0": "01022263" "00010000", "a TLV past the end": "01022263" "14020000"}
    with near() as lab:
        lab.echo()
        with lab.capture(lab.client, "wifi", "tcp portrange 1300-1310") as capture:
            for port, response in enumerate(responses.values(), 1300):
                scripted(lab, "whole", response, port=port)
                probe(lab, "blocking", CONVERT_ADDR="%s:%d" % (lab.converter.addr4, port))
        for port, what in enumerate(responses, 1300):
            sent = [packet for packet in capture.packets() if packet.dport == port]
            check(any(packet.rst for packet in sent), "no RST after " + what)
            check(not any(packet.fin for packet in sent), "a FIN after " + what)


def test_refused_destination_only():
    """Not Authorized counts for one destination; after several of a family in a row, for that family. The shim still asks for the other."""
    with near() as lab:
        converter = scripted(lab, "whole", error(32))
        lab.echo()
        lab.echo(port=8)
        lab.echo(port=9)
        lab.echo(port=10)
        program = """
import socket
for port in (7, 7, 8, 9, 10):
    socket.create_connection((%r, port)).close()
""" % lab.server.addr4
        cache = os.path.join(lab.directory, "cache")
        os.mkdir(cache, 0o700)
        env = lab.converted(CONVERT_ADDR=lab.converter.addr4, CONVERT_CACHE=cache)
        lab.client.run(["python3", "-c", program], env=env)
        equal(len(requests(converter)), 3, "requests in\n" + lab.shim_log())
        equal(lab.shim_log().count("the converter has refused this destination"), 1, "in\n" + lab.shim_log())
        equal(lab.shim_log().count("the converter has refused several destinations of this address family"), 1, "in\n" + lab.shim_log())
        # another process knows it, and still asks for IPv6
        for address, count in ((lab.server.addr4, 3), (lab.server.addr6, 4)):
            lab.client.run(["python3", "-c", "import socket; socket.create_connection((%r, 10)).close()" % address], env=env)
            equal(len(requests(converter)), count, "requests in\n" + lab.shim_log())


def test_several_converters():
    """In order: the first is unreachable, the second silent, the third refuses; the fourth converts."""
    with near() as lab:
        lab.echo()
        drop(lab.converter, 1001)
        scripted(lab, "silent", port=1002)
        scripted(lab, "whole", error(64, 9), port=1003)
        good = scripted(lab, "whole", EMPTY_HEADER, port=1004)
        addresses = ",".join("%s:%d" % (lab.converter.addr4, port) for port in (1001, 1002, 1003, 1004))
        # enough for those that answer, on a busy machine
        outputs = side_by_side(lambda way: probe(lab, way, CONVERT_ADDR=addresses, CONVERT_TIMEOUT="4"), WAYS, at_once=len(WAYS))
        for way, said in zip(WAYS, outputs):
            check(ANSWERED in said, "%s:\n%s%s" % (way, said, lab.shim_log()))
        equal(lab.shim_log().count(kernel.verdict()), len(WAYS), "conversions in\n" + lab.shim_log())
        equal(len(requests(good)), len(WAYS), "requests")
        several(lab, 4, CONVERT_ADDR=addresses, CONVERT_TIMEOUT="4")
        equal(len(requests(good)), len(WAYS) + 4, "requests")
        equal(lab.shim_log().count(":1002: " + SILENT), len(WAYS) + 1, "time-outs in\n" + lab.shim_log())


def test_ipv6_destination_prefers_ipv6_converter():
    """An IPv6 socket that has tried a v4-mapped address can't connect over IPv6 any more: Linux loses the SYN."""
    with near() as lab:
        lab.convertd()
        lab.echo()
        said = lab.client.run(["python3", os.path.join(APPS, "connect_probe.py"), "poll", lab.server.addr6, 7],
                              env=lab.converted()).stdout
        check(ANSWERED in said, said)
        with lab.capture(lab.client, "wifi", "tcp") as capture:
            lab.client.run(["python3", os.path.join(APPS, "connect_probe.py"), "poll", lab.server.addr6, 7],
                           env=lab.converted())
        connects = bytes.fromhex("22630a")  # a busy machine also probes the IPv4 address, without a Connect TLV
        equal({":" in p.dst for p in capture.packets() if p.syn and connects in p.payload}, {True}, "requests to connect over IPv6 only")


@long
@waits
def test_converter_of_the_other_family():
    """IPv4 applications through a converter that has only IPv6, and the other way round: each sees its own family."""
    ways = WAYS + ("epoll", "epoll-dup", "connect")
    with near(delay_ms=120) as lab:  # the answer comes after all that the probe does at once
        lab.convertd()
        lab.echo()
        for address, converter in ((lab.server.addr4, lab.converter.addr6), (lab.server.addr6, lab.converter.addr4)):
            commands = [["python3", os.path.join(APPS, "connect_probe.py"), way, address, port]
                        for port, way in [(7, way) for way in ways] + [(9, "blocking"), (9, "poll"), (9, "epoll-edge")]]
            env = lab.converted(CONVERT_ADDR="[%s]" % converter)
            direct, converted = (side_by_side(lambda command, env=env: lab.client.run(command, env=env).stdout, commands) for env in (None, env))
            for command, there, here in zip(commands, direct, converted):
                equal(here, there, "%s by %s" % (command, converter))
        equal(lab.shim_log().count(kernel.verdict()), 2 * len(ways), "conversions in\n" + lab.shim_log())


@long
@waits
def test_back_from_the_other_family():
    """A converter of the other family fails: the next one, or the server itself, is of the application's family again."""
    with near() as lab:
        scripted(lab, "whole", error(64), port=1001)
        scripted(lab, "whole", error(64), address=lab.converter.addr6, port=1002)
        good = scripted(lab, "whole", EMPTY_HEADER, port=1003)
        lab.echo()
        addresses = {"4": "%s:1001" % lab.converter.addr4, "6": "[%s]:1002" % lab.converter.addr6,
                     "good": "%s:1003" % lab.converter.addr4}
        for server in (lab.server.addr4, lab.server.addr6):
            for order in ("4", "6", "4 6", "6 4", "6 good", "4 6 good"):
                for way in ("blocking", "poll", "epoll-before", "epoll-edge"):
                    env = lab.converted(CONVERT_ADDR=",".join(addresses[name] for name in order.split()))
                    said = lab.client.run(["python3", os.path.join(APPS, "connect_probe.py"), way, server, 7], env=env).stdout
                    check(ANSWERED in said, "%s to %s by %s:\n%s\n%s" % (way, server, order, said, lab.shim_log()))
        equal(len(requests(good)), 16, "requests to the good one")


def test_service_name():
    """RFC 8803, Section 10.1: two converters behind one name, by priority; the first is dead, later the second as well."""
    with near() as lab:
        lab.echo()
        lab.names("_convert._tcp.example. SRV 10 0 1001 dead.example.", "_convert._tcp.example. SRV 20 0 1002 good.example.",
                  "dead.example. A %s" % lab.converter.addr4, "good.example. A %s" % lab.converter.addr4)
        good = scripted(lab, "whole", EMPTY_HEADER, port=1002)
        for way in WAYS:
            said = probe(lab, way, CONVERT_ADDR="_convert._tcp.example")
            check(ANSWERED in said, "%s:\n%s%s" % (way, said, lab.shim_log()))
        equal(lab.shim_log().count(kernel.verdict()), len(WAYS), "conversions in\n" + lab.shim_log())
        equal(lab.shim_log().count(":1001: Connection refused, left alone for 30 s"), len(WAYS), "refusals in\n" + lab.shim_log())
        good.stop()
        said = probe(lab, "poll", CONVERT_ADDR="_convert._tcp.example")
        check(ANSWERED in said and "direct, the converter fails" in lab.shim_log(), said + lab.shim_log())


def test_name_behind_a_dead_address():
    """The second part of CONVERT_ADDR is a name, which the shim resolves when the first part fails."""
    with near() as lab:
        lab.echo()
        lab.names("good.example. A %s" % lab.converter.addr4)
        lab.convertd()
        for way in WAYS:
            said = probe(lab, way, CONVERT_ADDR="%s:999,good.example" % lab.converter.addr4)
            check(ANSWERED in said, "%s:\n%s%s" % (way, said, lab.shim_log()))
        equal(lab.shim_log().count(kernel.verdict()), len(WAYS), "conversions in\n" + lab.shim_log())


def test_unsupported_option_is_left_out():
    with near() as lab:
        converter = lab.start_listening(lab.converter, ["python3", SCRIPTED, lab.converter.addr4, 1234, "option"], 1234,
                                        name="scripted")
        lab.echo()
        for way in WAYS:
            said = probe(lab, way, CONVERT_ADDR=lab.converter.addr4)
            check(ANSWERED in said, "%s:\n%s" % (way, said))
        equal(lab.shim_log().count(kernel.verdict()), len(WAYS), "conversions in\n" + lab.shim_log())
        several(lab, 3, CONVERT_ADDR=lab.converter.addr4)
        equal(len(requests(converter)), 2 * len(WAYS) + 4, "requests: a process asks for the option once")


if __name__ == "__main__":
    main()
