#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_bench.py - the programs of bench/ get every byte right, count every connection, and report failures by their errno

These tests measure nothing. Odd sizes cut reads and writes everywhere.
"""
import json
import os
import subprocess
import sys
import tempfile

from convertlab import CommandError, Lab, Link, Veth, check, equal, long, main, need
from convertlab.build import SRCDIR

sys.path.insert(0, os.path.join(SRCDIR, "bench"))
# pylint: disable=wrong-import-position
from benchlib import phones

FIRST_BYTE = "bench/tools/first_byte"
LOAD = "bench/tools/load/load"
PORT, PORT_MPTCP = 6000, 6001
CONVERT_PORT = 1234
SOCKS_PORT, SOCKS_USER_PORT = 1080, 1081
CLOSED_PORT = 9


def load(lab, *options, env=None):
    said = lab.client.run([lab.build.program(LOAD), "run", *options], env=env)
    return json.loads(said.stdout)


def field(link=Veth()):
    return Lab(wifi=link, lte=None, core=link)


def serve(lab, *options, port=PORT):
    return lab.start_listening(lab.server, [lab.build.program(LOAD), "serve", "--verify", *options, port], port)


def address(host, port):
    return "%s:%d" % (host, port)


def ways(lab):
    """The options for each way to the server; every proxy is on the converter."""
    server = ["--server", address(lab.server.addr4, PORT)]
    convertd = ["--to", address(lab.converter.addr4, CONVERT_PORT), *server]
    yield ["--to", address(lab.server.addr4, PORT)]
    yield ["--to", address("[%s]" % lab.server.addr6, PORT)]
    yield ["--to", address(lab.server.addr4, PORT_MPTCP), "--mptcp"]
    for delivery in ("convert-syn", "convert-behind"):
        for more in ([], ["--mptcp"]):
            yield [*convertd, "--via", delivery, *more]
    for more in ([], ["--mptcp"]):
        yield [*convertd, "--via", "convert-syn", "--withheld", *more]
        yield [*convertd, "--via", "convert-silent", *more]
    yield ["--to", address(lab.converter.addr4, SOCKS_PORT), "--via", "socks5", *server]
    yield ["--to", address(lab.converter.addr4, SOCKS_USER_PORT), "--via", "socks5", "--user", "somebody:secret", *server]


def start_proxies(lab):
    need("microsocks")
    lab.convertd(["--log-level", "warning"])
    lab.start_listening(lab.converter, ["microsocks", "-p", SOCKS_PORT], SOCKS_PORT)
    lab.start_listening(lab.converter, ["microsocks", "-p", SOCKS_USER_PORT, "-u", "somebody", "-P", "secret"], SOCKS_USER_PORT)
    return serve(lab), serve(lab, "--mptcp", port=PORT_MPTCP)


@long
def test_every_way_every_byte():
    """Small and large, up and down, one and several requests a connection: all bytes arrive, and are right."""
    sizes = (["--request", 24, "--response", 1], ["--request", 3001, "--response", 700001],
             ["--request", 900007, "--response", 13, "--requests", 3], ["--response", 0])
    with field() as lab:
        servers = start_proxies(lab)
        for way in ways(lab):
            for size in sizes:
                found = load(lab, *way, *size, "--connections", 40, "--concurrency", 7, "--verify")
                what = " ".join(map(str, way + size))
                requests = 40 * (3 if "--requests" in size else 1)
                equal((found["connections"], found["requests"], found["failed"], found["unfinished"], found["errors"]),
                      (40, requests, 0, 0, {}), what)
                equal(found["latency"]["count"], requests, what)
                equal(found["connected"]["count"], 40, what)
                sent = requests * 900007 if 900007 in size else 0  # the tool doesn't count requests that fit into one write
                equal(found["bytes"], requests * size[size.index("--response") + 1] + sent, what)
        for server in servers:
            equal(server.poll(), None, "the server has ended, as after a wrong byte: " + server.log_text())


def test_request_with_the_first_packet():
    with field() as lab:
        start_proxies(lab)
        for way in ways(lab):
            if not any(str(word).startswith("convert-") for word in way):
                continue
            for size in (24, 300):
                found = load(lab, *way, "--request", size, "--response", 5000, "--connections", 20, "--concurrency", 3, "--verify",
                             "--early")
                equal((found["connections"], found["bytes"], found["errors"]), (20, 100000, {}), " ".join(map(str, way)))


def test_replies_in_pieces():
    """A SOCKS5 server that answers a byte at a time."""
    program = ("import socket\n"
               "listener = socket.create_server(('', %d))\n"
               "sock, _ = listener.accept()\n"
               "sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)\n"
               "def say(reply):\n"
               "    for byte in reply: sock.sendall(bytes([byte]))\n"
               "sock.recv(3); say(b'\\5\\0')\n"
               "sock.recv(10); say(b'\\5\\0\\0\\1' + bytes(6))\n"
               "sock.recv(24); say(bytes(range(9)))\n" % SOCKS_PORT)
    with field(Link(delay_ms=1)) as lab:
        lab.start_listening(lab.converter, [sys.executable, "-c", program], SOCKS_PORT)
        found = load(lab, "--to", address(lab.converter.addr4, SOCKS_PORT), "--via", "socks5",
                     "--server", address(lab.server.addr4, PORT), "--connections", 1, "--response", 9, "--verify")
        equal((found["connections"], found["errors"]), (1, {}), "result")


def test_connections_at_their_own_times():
    """With --over, connections begin at even intervals, though no earlier one is over: the server answers after the last has come."""
    program = ("import socket, threading\n"
               "listener = socket.create_server(('', %d))\n"
               "socks = []\n"
               "for number in range(4):\n"
               "    socks.append(listener.accept()[0])\n"
               "    socks[-1].recv(24)\n"
               "for sock in socks: sock.sendall(bytes(1)); sock.close()\n" % PORT)
    with field() as lab:
        lab.start_listening(lab.server, [sys.executable, "-c", program], PORT)
        found = load(lab, "--to", address(lab.server.addr4, PORT), "--connections", 4, "--over", 0.2)
        equal((found["connections"], found["errors"]), (4, {}), "result")
        check(found["seconds_all"] >= 0.15, "the last one began after %g s" % found["seconds_all"])


def test_failures_have_their_errno():
    with field() as lab:
        start_proxies(lab)
        lab.resetter(7777)
        convertd = ["--to", address(lab.converter.addr4, CONVERT_PORT), "--via", "convert-syn", "--server"]
        for way, errnos in ((["--to", address(lab.server.addr4, CLOSED_PORT)], {"ECONNREFUSED"}),
                            ([*convertd, address(lab.server.addr4, CLOSED_PORT)], {"ECONNREFUSED"}),
                            (["--to", address(lab.server.addr4, 7777)], {"ECONNRESET"}),
                            # the reset may come before convertd has seen that the server accepted
                            ([*convertd, address(lab.server.addr4, 7777)], {"ECONNRESET", "ECONNREFUSED"})):
            found = load(lab, *way, "--connections", 5, "--concurrency", 2)
            equal((found["connections"], found["failed"], sum(found["errors"].values())), (0, 5, 5), " ".join(way))
            check(set(found["errors"]) <= errnos, "%s: %s" % (" ".join(way), found["errors"]))
        found = load(lab, "--to", address(lab.converter.addr4, SOCKS_PORT), "--via", "socks5",
                     "--server", address(lab.server.addr4, CLOSED_PORT), "--connections", 3)
        equal(found["errors"], {"ECONNREFUSED": 3}, "errors by SOCKS5")


def test_wrong_bytes_are_noticed():
    with field() as lab:
        lab.greeter(25)
        try:
            load(lab, "--to", address(lab.server.addr4, 25), "--connections", 1, "--response", 100, "--verify")
            check(False, "a greeting was taken for a response")
        except CommandError as error:
            check("wrong bytes in a response" in str(error), str(error))


def test_held_connections_stay():
    with field() as lab:
        start_proxies(lab)
        for way in ways(lab):
            command = [lab.build.program(LOAD), "run", *way, "--connections", 300, "--concurrency", 20, "--hold"]
            with lab.client.popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
                equal(process.stdout.readline(), b"held 300\n", " ".join(map(str, way)))
                process.stdin.close()
                found = json.loads(process.stdout.read())
            equal((found["failed"], found["unfinished"]), (0, 300), " ".join(map(str, way)))


@long
def test_held_connections_are_busy_when_told():
    """Twice, all connections repeat their requests for a while, and then idle; each result covers one busy time."""
    with field() as lab:
        start_proxies(lab)
        for way in ways(lab):
            what = " ".join(map(str, way))
            command = [lab.build.program(LOAD), "run", *way, "--connections", 60, "--concurrency", 20, "--hold", "--seconds", 0.4,
                       "--request", 100, "--response", 3001, "--verify"]
            with lab.client.popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
                equal(process.stdout.readline(), b"held 60\n", what)
                for _ in range(2):
                    process.stdin.write(b"\n")
                    process.stdin.flush()
                    found = json.loads(process.stdout.readline())
                    equal((found["failed"], found["errors"]), (0, {}), what)
                    check(found["requests"] > 60, "%s: %d requests: no connection has repeated its own" % (what, found["requests"]))
                    # all responses are complete, but each connection's last one may end after the measured time
                    equal(found["bytes_all"] % 3001, 0, what)
                    check(found["requests"] * 3001 <= found["bytes_all"] <= (found["requests"] + 60) * 3001, "%s: %s" % (what, found))
                process.stdin.close()
                process.wait()
            equal(process.returncode, 0, what)


def test_under_the_shim():
    """The generator's event loop is edge-triggered, which tests the shim, too."""
    with field() as lab:
        start_proxies(lab)
        found = load(lab, "--to", address(lab.server.addr4, PORT), "--connections", 200, "--concurrency", 10, "--verify",
                     "--response", 3000, env=lab.converted())
        equal((found["connections"], found["bytes"], found["errors"]), (200, 600000, {}), "result")
        equal(lab.shim_log().count("converted over MPTCP"), 200, "conversions")


def first_byte(lab, *options, host=None, port=PORT, jobs=12, env=None):
    """Has first_byte make connections, four at a time; returns the last parts of its lines, in the order in which connections ended."""
    line = "%s %s %d " % (lab.client.wifi4, host or lab.server.addr4, port)
    said = lab.client.run([lab.build.program(FIRST_BYTE), *options, lab.server.addr4, PORT, 4], input=(line + "\n") * jobs, env=env).stdout
    found = said.splitlines()
    check(all(one.startswith(line) for one in found), "lines other than \"%s…\": %s" % (line, said))
    equal(len(found), jobs, "lines")
    return [one[len(line):] for one in found]


def test_application_in_every_way():
    """The times are in order; SOCKS5 tells when the server is connected; with Fast Open no such time is known; the shim converts."""
    converter, password = {"host": "10.9.0.1", "port": SOCKS_PORT}, {"host": "10.9.0.1", "port": SOCKS_USER_PORT}
    with field(Link(delay_ms=1)) as lab:
        start_proxies(lab)
        for options, target, shim in (([], {}, False), ([], {}, True), (["--fast-open"], {}, True), (["--socks5"], converter, False),
                                      (["--socks5", "--user", "somebody:secret"], password, False)):
            for line in first_byte(lab, *options, **target, env=lab.converted() if shim else None):
                tcp, connected, first, everything = map(float, line.split())
                if "--fast-open" in options:
                    equal((tcp, connected), (0, 0), "times that aren't known")
                else:
                    # a round trip of two links is 4 ms, one of the access link 2 ms; SOCKS5 has a command or two more
                    check(tcp >= (2000 if target else 4000), "TCP was connected after %g us" % tcp)
                    check(connected >= tcp + (0 if not target else 6000 if "--user" not in options else 8000),
                          "%s: connected after %g us, TCP after %g" % (options, connected, tcp))
                check(max(connected, 4000) <= first <= everything, "%s: %s" % (options, line))
        equal(lab.shim_log().count("converted over MPTCP"), 24, "conversions")


def test_application_that_fails():
    with field() as lab:
        start_proxies(lab)
        lab.greeter(25)
        for options, target, reason in (
                ([], {"port": CLOSED_PORT}, "Connection refused"), ([], {"port": 25}, "the response isn't the server's"),
                (["--socks5"], {"host": lab.converter.addr4, "port": SOCKS_USER_PORT}, "the proxy refuses the method of authentication"),
                (["--socks5", "--user", "somebody:else"], {"host": lab.converter.addr4, "port": SOCKS_USER_PORT}, "the proxy refuses the password"),
                (["--socks5"], {"host": lab.server.addr4, "port": 25}, "the proxy refuses the method of authentication")):
            equal(first_byte(lab, *options, **target, jobs=1), ["failed: " + reason], "%s %s" % (options, target))


def ask_by_phones(round_trips):
    """Returns the results of phones with these round trips, by network, that ask in turn at two places."""
    with Lab(wifi=Link(), lte=Link() if "lte" in round_trips else None, core=Link()) as lab:
        start_proxies(lab)
        hosts = phones.make_hosts(lab, 2, tuple(round_trips))
        applications = [phones.Application(lab, name, hosts, lambda place, host=host, port=port, network=network: (
            phones.address(place, network), host, port), options) for name, host, port, options, network in (
                ("direct", lab.server.addr4, PORT, [], "wifi"), ("last", lab.server.addr4, PORT, [], list(round_trips)[-1]),
                ("socks", lab.converter.addr4, SOCKS_PORT, ["--socks5"], "wifi"), ("closed", lab.server.addr4, CLOSED_PORT, [], "wifi"))]
        found = list(phones.ask_in_turn(lab, applications, round_trips, 2, 1))
        for application in applications:
            application.close()
    return found


def test_phones_in_turn():
    """Every phone asks once by each application, with its own round trips, though phones share places. The application "closed" fails."""
    for networks in ({"wifi": [40, 10, 80, 20, 60]}, {"wifi": [40, 10, 80, 20, 60], "lte": [50, 90, 30, 70, 40]}):
        check_phones(ask_by_phones(networks), networks["wifi"], list(networks.values())[-1])


def check_phones(found, round_trips, last):
    """Checks the phones' results against their round trips on the first network and on the last."""
    equal(sorted(number for number, _, _ in found), [0, 1, 2, 3, 4], "the phones")
    for number, times, reasons in found:
        round_trip = round_trips[number]
        equal(sorted(times), ["closed", "direct", "last", "socks"], "the applications of phone %d" % number)
        equal((times["closed"], reasons), (None, ["closed: failed: Connection refused"]), "failures")
        for name, each, least in (("direct", round_trip, (1, 1, 2)), ("last", last[number], (1, 1, 2)), ("socks", round_trip, (1, 3, 4))):
            check(all(time >= trips * each for time, trips in zip(times[name], least)),
                  "%s, %d ms of round trip: %s" % (name, each, times[name]))


@long
def test_an_experiment():
    """From the command line to its files: nothing failed, and convertd is in the table."""
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([sys.executable, os.path.join(SRCDIR, "bench", "run"), "--quick", "--output", directory, "connections"],
                       check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with open(os.path.join(directory, "connections", "results.json"), encoding="utf-8") as file:
            results = json.load(file)
        with open(os.path.join(directory, "connections", "table.md"), encoding="utf-8") as file:
            check("| convertd " in file.read(), "no row for convertd in table.md")
    tables = [found for found in results["findings"] if "rows" in found]
    equal(len(tables), 4, "tables: TCP and MPTCP, 1 and 64 at a time")
    for table in tables:
        rows = {row[0]: dict(zip(table["columns"], row)) for row in table["rows"]}
        for name in ("direct", "convertd"):
            equal(rows[name]["failed"], 0, "%s, %s: failed" % (table["caption"], name))
            check(int(rows[name]["connections/s"]) > 0, "%s, %s: no connections" % (table["caption"], name))


if __name__ == "__main__":
    main()
