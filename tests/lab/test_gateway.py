#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_gateway.py - convertgw: stock clients on the LAN behind it, whose connections are converted, refused or routed"""
import contextlib
import errno
import json
import os
import pwd
import re
import shutil
import socket
import struct
import subprocess

from convertlab import Link, check, equal, first_syns, long, main, wait_until, waits
from convertlab.build import SRCDIR
from convertlab.gateways import PORT, add_lan, connect, gateway, gateway_lab, is_connected, listening, masquerade, outcome, pair, \
    start_gateway
from convertlab.links import Cable, Veth
from convertlab.manager import Manager
from convertlab.topology import CONVERTD_OPEN


def fetch(host, address, size=100000, timeout=60):
    """Downloads from the lab's HTTP server; returns the address to which curl connected."""
    url = "http://%s/bytes/%d" % ("[%s]" % address if ":" in address else address, size)
    words = ["curl", "-sS", "-m", timeout, "-o", "/dev/null", "-w", "%{size_download} %{remote_ip}", url]
    got, peer = host.run(words).stdout.split()
    equal(int(got), size, "bytes")
    return peer


def test_converted():
    """A LAN client's connection is converted, by IPv4 and IPv6: the server sees the converter, the client the server; one SYN to the server."""
    with gateway_lab() as lab, gateway(lab) as (phone, process):
        lab.convertd()
        for address, source in ((lab.server.addr4, lab.converter.core4), (lab.server.addr6, lab.converter.core6)):
            with listening(lab.server, address) as listener, lab.capture(lab.converter, "core", "tcp") as core, \
                    lab.capture(lab.client, "lan", "tcp") as lan, pair(phone, address, listener) as (client, server, peer):
                equal(peer, source, "the server's client")
                equal(client.getpeername()[0], address, "the client's server")
                client.sendall(b"question")
                equal(server.recv(100), b"question", "what the server gets")
                server.sendall(b"answer")
                equal(client.recv(100), b"answer", "what the client gets")
                syns = [p for p in first_syns(core.packets()) if p.dport == PORT]
                equal(len(syns), 1, "SYNs to the server")
                answered = min(p.time for p in core.packets() if p.synack and p.sport == PORT)
                check(min(p.time for p in lan.packets() if p.synack) > answered, "the client's SYN+ACK came before the server's")
        check("converted over MPTCP" in process.log_text(), process.log_text())


def test_both_networks():
    """A download by a LAN client takes both networks."""
    with gateway_lab(wifi=Link(delay_ms=10, rate_mbit=20, queue=100), lte=Link(delay_ms=15, rate_mbit=20, queue=100)) as lab, \
            gateway(lab) as (phone, _):
        lab.convertd()
        lab.http()
        fetch(phone, lab.server.addr4, 1000)
        with lab.capture(lab.client, "wifi", "tcp") as wifi, lab.capture(lab.client, "lte", "tcp") as lte:
            fetch(phone, lab.server.addr4, 5000000)
            for capture in (wifi, lte):
                check(sum(p.size for p in capture.packets() if p.sport == 1234) > 500000, "one network carried too little")


def test_errors_are_the_servers():
    """Refused, unreachable, prohibited, too many hops: the same errno as by plain routing, in both families, and no SYN+ACK."""
    with gateway_lab() as lab:
        phone = add_lan(lab)
        masquerade(lab)
        bad = lab.addresses
        cases = [(lab.server.addr4, bad.refused_port), (lab.server.addr6, bad.refused_port), (bad.unreachable4, 80), (bad.unreachable6, 80),
                 (bad.prohibited4, 80), (bad.prohibited6, 80), (lab.server.addr4, 91),
                 *((address, bad.refused_port, 15, 2) for address in (lab.server.addr4, lab.server.addr6))]
        lab.server.run(["nft", "-f", "-"], input="""table inet odd {
 chain input { type filter hook input priority 0; tcp dport 91 reject with icmp type prot-unreachable; }
}""")
        plain = [outcome(phone, *case) for case in cases]
        lab.convertd()
        process = start_gateway(lab)
        with lab.capture(lab.client, "lan", "tcp") as lan:
            equal([outcome(phone, *case) for case in cases], plain, "errno by errno, with the gateway as by routing")
            check(not any(p.synack for p in lan.packets()), "a SYN+ACK")
        equal(process.log_text().count("goes on without us"), 0, "routed connections\n" + process.log_text())


@waits
def test_a_silent_server():
    """A server that doesn't answer: the client gets no answer, and SYNs that it sends again make no second connection."""
    with gateway_lab() as lab, gateway(lab) as (phone, process), listening(lab.server, lab.server.addr4) as listener:
        lab.convertd()
        with pair(phone, lab.server.addr4, listener):
            pass  # so that the converter knows that its network works
        silent = lab.addresses.blackhole4
        with lab.capture(lab.client, "lan", "tcp") as lan, lab.capture(lab.converter, "core", "tcp port 80") as core:
            error, sock = connect(phone, silent, 80, timeout=4)
            equal(error, errno.EAGAIN, "connect() has no result")
            wait_until(lambda: sum(p.syn for p in lan.packets()) >= 2, 10, "the client's second SYN")
            sock.close()
            check(not any(p.synack or p.rst for p in lan.packets() if p.sport == 80), "an answer")
            equal(len({p.sport for p in core.packets() if p.syn}), 1, "connections to the server\n" + process.log_text())


@waits
def test_a_server_that_answers_late():
    """The server begins to answer after the converter has given it up: the client's next SYN asks anew, and the client is connected."""
    with gateway_lab() as lab, gateway(lab) as (phone, process), listening(lab.server, lab.server.addr4) as listener:
        lab.convertd(["--connect-timeout", "1"])
        with pair(phone, lab.server.addr4, listener):
            pass  # so the converter knows that its network works
        # The set has room for one port: the server drops each SYN of the converter's first connection, and accepts the next one.
        lab.server.run(["nft", "-f", "-"], input="""table inet deaf {
 set first { type inet_service; size 1; flags dynamic; }
 chain input { type filter hook input priority 0; tcp dport %d tcp flags & (syn | ack) == syn add @first { tcp sport } drop; }
}""" % PORT)
        listener.setblocking(False)
        accepted = []

        def is_served():
            with contextlib.suppress(BlockingIOError):
                while True:
                    accepted.append(listener.accept())
                    accepted[-1][0].sendall(b"x")
            with contextlib.suppress(BlockingIOError):
                return client.recv(1) == b"x"

        with phone.socket() as client, contextlib.ExitStack() as sockets:
            client.setblocking(False)
            client.connect_ex((lab.server.addr4, PORT))
            wait_until(is_served, 15, "a byte from the server\n" + process.log_text())
            for sock, peer in accepted:
                sockets.enter_context(sock)
                equal(peer[0], lab.converter.core4, "the server's client")
        check("nobody has said anything" in process.log_text(), "the gateway never gave the silent server up")


def test_notes_for_convertize_status():
    """"convertize status" shows each connection of the gateway: its LAN client or program of this host, its server and converter."""
    connects = """import socket, sys
sock = socket.create_connection((sys.argv[1], int(sys.argv[2])))
print("connected", flush=True)
sys.stdin.readline()"""
    with gateway_lab() as lab, gateway(lab, args=("--lan", "lan", "--host")) as (phone, _), listening(lab.server, lab.server.addr4) as listener:
        lab.convertd()

        def ask(*words):
            return lab.client.run([lab.build.program("convertize"), "--config", "none", "status", *words]).stdout
        with pair(phone, lab.server.addr4, listener) as (client, _, _):
            said = ask("--json")
            equal([(c["program"], c["client"], c["client_program"], c["server"], c["converter"]) for c in json.loads(said)["connections"]],
                  [("convertgw", "%s:%d" % client.getsockname(), None, "%s:%d" % (lab.server.addr4, PORT), lab.converter.addr4 + ":1234")], said)
        wait_until(lambda: not json.loads(ask("--json"))["connections"], 10, "the connection's end")
        program = lab.client.popen(["setpriv", "--reuid", "65534", "--clear-groups", "python3", "-c", connects, lab.server.addr4, PORT],
                                   name="program", stdin=-1)
        with listener.accept()[0]:
            program.wait_log("connected")
            found, = json.loads(ask("--json"))["connections"]
            equal((found["program"], found["client_program"], found["client_pid"], found["client_user"], found["client"].split(":")[0]),
                  ("convertgw", "python3", program.pid, "nobody", lab.client.wifi4), found)
            text = ask()
            check("] of root for python3[%d] of nobody to %s:%d" % (program.pid, lab.server.addr4, PORT) in text, text)


def test_the_doctor_notes_a_gateway():
    """"convertize check" says that a gateway runs, since the gateway converts its direct connections as well."""
    with gateway_lab() as lab:
        lab.convertd()

        def notes():
            said = lab.client.run([lab.build.program("convertize"), "--config", "none", "--converter", lab.converter.addr4, "check"]).stdout
            return [line for line in said.splitlines() if "a gateway runs here" in line]
        equal(notes(), [], "before")
        start_gateway(lab, args=("--host",))
        check(notes()[0].startswith("note  ") and "convertgw --config /etc/convertgw/convertgw.conf --check-config" in notes()[0], notes())


def test_data_in_the_syn():
    """A client's data in its SYN (Fast Open) arrives once, over a converted connection and over a routed one."""
    for private in (True, False):
        with gateway_lab() as lab, gateway(lab, private=private) as (phone, _), listening(lab.server, lab.server.addr4) as listener:
            lab.convertd()
            lab.server.sysctl("net.ipv4.tcp_fastopen", 3)
            for _ in range(2):
                with phone.socket() as client:
                    client.settimeout(15)
                    client.setsockopt(socket.IPPROTO_TCP, 34, 1)  # TCP_FASTOPEN_NO_COOKIE
                    client.sendto(b"early", socket.MSG_FASTOPEN, (lab.server.addr4, PORT))
                    client.sendall(b"late")
                    client.shutdown(socket.SHUT_WR)
                    with listener.accept()[0] as server:
                        got = b""
                        while (data := server.recv(100)):
                            got += data
                        equal(got, b"earlylate", "what the server gets")


def test_ends():
    """Each side may end first; a reset stays a reset; a server may speak first."""
    with gateway_lab() as lab, gateway(lab) as (phone, _), listening(lab.server, lab.server.addr4) as listener:
        lab.convertd()

        def connected():
            return pair(phone, lab.server.addr4, listener)
        with connected() as (client, server, _):
            server.sendall(b"greeting")
            equal(client.recv(100), b"greeting", "from a server that speaks first")
            client.shutdown(socket.SHUT_WR)
            equal(server.recv(1), b"", "the client's end")
            server.sendall(b"more")
            equal(client.recv(100), b"more", "after the client's end")
        with connected() as (client, server, _):
            server.shutdown(socket.SHUT_WR)
            equal(client.recv(1), b"", "the server's end")
            client.sendall(b"rest")
            equal(server.recv(100), b"rest", "after the server's end")
        for early in (False, True):
            with connected() as (client, server, _):
                if early:
                    server.sendall(b"x")
                    equal(client.recv(1), b"x", "a byte")
                server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                server.close()
                with check_raises(ConnectionResetError):
                    client.recv(1)
            with connected() as (client, server, _):
                client.sendall(b"y")
                equal(server.recv(1), b"y", "a byte")
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                client.close()
                with check_raises(ConnectionResetError):
                    server.recv(1)


@contextlib.contextmanager
def check_raises(kind):
    try:
        yield
    except kind:
        return
    raise AssertionError("no %s" % kind.__name__)


@waits
def test_routed_without_a_converter():
    """No converter answers: convertgw routes a client's first connection, and the next one."""
    with gateway_lab() as lab, gateway(lab) as (phone, process), listening(lab.server, lab.server.addr4) as listener, \
            lab.capture(lab.client, "wifi", "tcp port %d" % PORT) as wifi:
        for _ in range(2):
            with pair(phone, lab.server.addr4, listener) as (client, server, peer):
                equal(peer, lab.client.wifi4, "the server's client: the router")
                client.sendall(b"x")
                equal(server.recv(1), b"x", "a byte")
        check("direct" in process.log_text(), process.log_text())
        equal({p.data[38:40] for p in wifi.packets() if p.syn}, {b"\0\0"}, "the urgent pointers of routed SYNs that a rule matches")


def test_a_converter_that_refuses():
    """convertgw routes a connection to a server that the converter refuses."""
    with gateway_lab() as lab, gateway(lab) as (phone, _), listening(lab.server, lab.server.addr4) as listener:
        lab.convertd(["--deny-destination", "10.8.0.1"])
        with pair(phone, lab.server.addr4, listener) as (_, _, peer):
            equal(peer, lab.client.wifi4, "the server's client: the router")


def test_two_converters_that_fail_at_once():
    """The first converter refuses, and there is no route to the second: the server's greeting arrives through the third."""
    with gateway_lab() as lab:
        lab.convertd()
        lab.client.ip("route add unreachable 10.9.0.77/32")
        phone = add_lan(lab)
        masquerade(lab)
        converters = [word for address in (lab.converter.addr4 + ":1", "10.9.0.77", lab.converter.addr4) for word in ("--converter", address)]
        process = start_gateway(lab, args=("--lan", "lan", "--workers", 1, *converters), converter=False)
        with listening(lab.server, lab.server.addr4) as listener, pair(phone, lab.server.addr4, listener) as (client, server, peer):
            equal(peer, lab.converter.core4, "the server's client")
            server.sendall(b"greeting")
            equal(client.recv(100), b"greeting", process.log_text())
        check("converter 10.9.0.77:1234: it isn't used" in process.log_text(), process.log_text())


def test_private_destinations_are_routed():
    """Without a rule, the kernel forwards packets to private networks: no SYN comes to the gateway."""
    with gateway_lab() as lab, gateway(lab, private=False) as (phone, process), listening(lab.server, lab.server.addr4) as listener:
        lab.convertd()
        with pair(phone, lab.server.addr4, listener) as (_, _, peer):
            equal(peer, lab.client.wifi4, "the server's client: the router")
        check("SYN of" not in process.log_text(), process.log_text())


def test_a_client_with_multipath_tcp():
    """convertgw routes a LAN client that speaks Multipath TCP itself, and leaves it its options."""
    with gateway_lab() as lab, gateway(lab) as (phone, _):
        lab.convertd()
        with lab.capture(lab.converter, "core", "tcp port %d" % PORT) as core, listening(lab.server, lab.server.addr4) as listener:
            with phone.socket(protocol=262) as client:
                client.settimeout(15)
                client.connect((lab.server.addr4, PORT))
                with listener.accept()[0]:
                    syn = next(p for p in core.packets() if p.syn)
                    equal(syn.src, lab.client.wifi4, "who connects to the server")
                    check(syn.option(30), "Multipath TCP was stripped")


def test_a_smaller_mtu_before_the_client():
    """A router between the client and the gateway reports by ICMP that packets are too large: the gateway sends smaller ones."""
    with gateway_lab() as lab, gateway(lab) as (router, _), listening(lab.server, lab.server.addr4) as listener, \
            listening(lab.server, lab.server.addr6) as listener6:
        lab.convertd()
        client = lab.add_host("deep")
        Cable(Veth(), "inner", router, client)
        router.ip("link set inner mtu 1300", "addr add 10.21.0.1/24 dev inner", "addr add fd21::1/64 dev inner nodad")
        client.ip("addr add 10.21.0.2/24 dev inner", "addr add fd21::2/64 dev inner nodad", "route add default via 10.21.0.1",
                  "route add default via fd21::1")
        router.sysctl("net.ipv4.ip_forward", 1)
        router.sysctl("net.ipv6.conf.all.forwarding", 1)
        lab.client.ip("route add 10.21.0.0/24 via 10.20.0.2", "route add fd21::/64 via fd20::2")
        for address, listens in ((lab.server.addr4, listener), (lab.server.addr6, listener6)):
            with pair(client, address, listens) as (sock, server, _):
                server.sendall(bytes(20000))
                left = 20000
                while left:
                    left -= len(sock.recv(left))


def test_killed():
    """kill -9 resets open connections; the next one is routed at once, and no table is left. The next start converts again."""
    with gateway_lab() as lab, gateway(lab) as (phone, process), listening(lab.server, lab.server.addr4) as listener:
        lab.convertd()
        with pair(phone, lab.server.addr4, listener) as (client, server, peer):
            equal(peer, lab.converter.core4, "the server's client before")
            server.sendall(b"x")
            equal(client.recv(1), b"x", "a byte")
            process.kill()
            process.wait()
            for end in (client, server):
                with check_raises(ConnectionResetError):
                    equal(end.recv(1), "a reset", "what one end receives")
        check("convertgw" not in lab.client.run(["nft", "list", "tables"]).stdout, "tables are left")
        with pair(phone, lab.server.addr4, listener) as (_, _, peer):
            equal(peer, lab.client.wifi4, "the server's client: the router")
        again = start_gateway(lab)
        with pair(phone, lab.server.addr4, listener) as (_, _, peer):
            equal(peer, lab.converter.core4, "the server's client afterwards")
        again.stop()
        equal(lab.client.run(["ip", "rule", "show"]).stdout.count("fwmark"), 0, "policy rules that are left")


def test_rights():
    """Root's gateway keeps CAP_NET_ADMIN and CAP_NET_RAW, in each of its threads."""
    with gateway_lab() as lab, gateway(lab) as (_, process):
        held = set()
        for task in os.listdir("/proc/%d/task" % process.pid):
            with open("/proc/%d/task/%s/status" % (process.pid, task), encoding="ascii") as file:
                held |= {line.split()[1] for line in file if line.startswith(("CapEff", "CapPrm"))}
        equal({int(caps, 16) for caps in held}, {1 << 12 | 1 << 13}, "capabilities")


def test_drain():
    """After SIGTERM open connections go on, new ones are routed, and the gateway ends with the last open one."""
    with gateway_lab() as lab, gateway(lab, args=("--lan", "lan", "--drain-timeout", "60")) as (phone, process), \
            listening(lab.server, lab.server.addr4) as listener:
        lab.convertd()
        with pair(phone, lab.server.addr4, listener) as (client, server, _):
            process.terminate()
            process.wait_log("stopping")
            with pair(phone, lab.server.addr4, listener) as (_, _, peer):
                equal(peer, lab.client.wifi4, "a new connection's client: the router")
            client.sendall(b"x")
            equal(server.recv(1), b"x", "a byte on the open one")
            check(process.poll() is None, "the gateway has ended too early")
        equal(process.wait(10), 0, "status")


def test_message_of_the_end():
    """The service manager gets STOPPING=1 with the time that the drain may take."""
    with gateway_lab() as lab, Manager(lab) as manager:
        add_lan(lab)
        process = start_gateway(lab, args=("--lan", "lan", "--drain-timeout", "100"), env={"NOTIFY_SOCKET": manager.path})
        manager.wait("READY=1")
        process.terminate()
        said = manager.wait("STOPPING=1")
        check(int(said["EXTEND_TIMEOUT_USEC"]) > 100000000, said)
        equal(process.wait(30), 0, "the status")


def test_drain_before_the_third_ack():
    """After SIGTERM a connection whose third ACK is still on its way goes on as well."""
    with gateway_lab() as lab, gateway(lab, args=("--lan", "lan", "--drain-timeout", "60")) as (phone, process), \
            listening(lab.server, lab.server.addr4) as listener:
        lab.convertd()
        phone.run(["nft", "-f", "-"], input="table inet late {\n chain output { type filter hook output priority 0; "
                                            "tcp dport %d tcp flags & (syn | ack) == ack drop; }\n}\n" % PORT)
        with pair(phone, lab.server.addr4, listener) as (client, server, peer):
            equal(peer, lab.converter.core4, "the server's client")
            process.terminate()
            process.wait_log("stopping")
            phone.run(["nft", "delete table inet late"])
            client.sendall(b"x")
            equal(server.recv(1), b"x", "a byte")
        equal(process.wait(20), 0, "status")


def test_this_host():
    """--host: convertgw converts this host's programs, once, and doesn't divert its own packets; this host's servers stay reachable."""
    with gateway_lab() as lab:
        lab.convertd()
        process = start_gateway(lab, args=("--host",))
        with listening(lab.server, lab.server.addr4) as listener, listening(lab.client, lab.client.wifi4, 99) as own:
            with pair(lab.client, lab.server.addr4, listener) as (client, server, peer):
                equal(peer, lab.converter.core4, "the server's client")
                client.sendall(b"x")
                equal(server.recv(1), b"x", "a byte")
                server.sendall(b"y")
                equal(client.recv(1), b"y", "a byte back")
            error, sock = connect(lab.client, lab.client.wifi4, 99)
            equal(error, 0, "a connection to this host itself")
            sock.close()
            error, sock = connect(lab.converter, lab.client.wifi4, 99)
            equal(error, 0, "a connection from outside")
            equal(own.accept()[0].getsockname()[0], lab.client.wifi4, "where it came")
            sock.close()
        lab.http()
        lab.client.run(["curl", "-sS", "-o", "/dev/null", "http://%s/bytes/1000" % lab.server.addr4], env=lab.converted())
        # a SYN that a busy machine repeats is the same client's
        withheld = set(re.findall(r"SYN of (\S+) to", process.log_text()))
        equal(len(withheld), 1, "clients whose SYNs the gateway withheld\n" + process.log_text())


def test_a_converter_of_this_host():
    """With --host and a converter on the same host, no connection is converted in a loop: one SYN to the server."""
    with gateway_lab() as lab, gateway(lab, args=("--lan", "lan", "--host"), converter="10.1.0.2") as (phone, _), \
            listening(lab.server, lab.server.addr4) as listener:
        lab.start_listening(lab.client, [lab.build.program("convertd"), *CONVERTD_OPEN], 1234, name="convertd")
        with lab.capture(lab.converter, "core", "tcp port %d" % PORT) as core:
            for number, host in enumerate((phone, lab.client), 1):
                with pair(host, lab.server.addr4, listener) as (client, server, _):
                    client.sendall(b"x")
                    equal(server.recv(1), b"x", "a byte")
                equal(len(first_syns(core.packets())), number, "SYNs to the server")


def test_a_crowd_and_a_flood():
    """convertgw converts 200 clients at once, while another one floods it with SYNs to a server that doesn't answer."""
    with gateway_lab() as lab, gateway(lab) as (phone, process):
        lab.convertd()
        clients = ["10.20.0.%d" % number for number in range(10, 210)]
        phone.ip(*("addr add %s/24 dev lan" % address for address in clients), "addr add 10.20.0.250/24 dev lan")
        flood = []
        with listening(lab.server, lab.server.addr4) as listener, contextlib.ExitStack() as stack:
            with pair(phone, lab.server.addr4, listener):
                pass  # so that the converter knows that its network works
            for _ in range(3000):
                flood.append(stack.enter_context(phone.socket()))
                flood[-1].setblocking(False)
                flood[-1].bind(("10.20.0.250", 0))
                flood[-1].connect_ex((lab.addresses.blackhole4, 80))
            socks = []
            for address in clients:
                socks.append(stack.enter_context(phone.socket()))
                socks[-1].bind((address, 0))
                socks[-1].setblocking(False)
                socks[-1].connect_ex((lab.server.addr4, PORT))
            peers = []
            for _ in clients:
                try:
                    accepted, peer = listener.accept()
                except TimeoutError:
                    wait = [address + ":" for address, sock in zip(clients, socks) if not is_connected(sock)]
                    log = process.log_text().splitlines()
                    check(False, "%d accepted, %s wait\n%s" % (len(peers), wait, "\n".join(line for line in log if any(each in line for each in wait))))
                stack.enter_context(accepted)
                accepted.sendall(b"x")
                peers.append(peer[0])
            equal(set(peers), {lab.converter.core4}, "who connects to the server")
            for sock in socks:
                sock.settimeout(15)
                equal(sock.recv(1), b"x", "what a client gets")
        equal(process.poll(), None, "the gateway's end")


def test_as_the_unit_starts_it():
    """An ordinary user with only CAP_NET_ADMIN and CAP_NET_RAW runs convertgw, and checks the example with all settings uncommented."""
    user = pwd.getpwnam("nobody")
    with gateway_lab() as lab:
        lab.convertd()
        phone = add_lan(lab)
        masquerade(lab)
        with open(os.path.join(SRCDIR, "contrib/convertgw.conf"), encoding="ascii") as file:
            text = re.sub(r"^#([a-z])", r"\1", file.read(), flags=re.MULTILINE)
        place = os.path.join(lab.directory, "gw")
        os.mkdir(place)
        os.chmod(lab.directory, 0o711)
        shutil.copy(lab.build.program("convertgw"), place)  # other users may be unable to enter the build directory
        for name, content in (("cookie", "abc\n"), ("example.conf", text.replace("/etc/convertgw", place)),
                              ("convertgw.conf", "lan lan\nhost\nconverter %s\nconvert destination 10.8.0.0/24\ncache %s/cache\n" % (
                                  lab.converter.addr4, place))):
            with open(os.path.join(place, name), "w", encoding="ascii") as file:
                file.write(content)
            os.chmod(os.path.join(place, name), 0o600)
        for path in (place, *(os.path.join(place, name) for name in os.listdir(place))):
            os.chown(path, user.pw_uid, user.pw_gid)
        words = ["setpriv", "--reuid", user.pw_uid, "--regid", user.pw_gid, "--clear-groups", "--inh-caps", "-all,+net_admin,+net_raw", "--bounding-set",
                 "-all,+net_admin,+net_raw", "--ambient-caps", "-all,+net_admin,+net_raw", "--no-new-privs", place + "/convertgw", "--config"]
        lab.client.run([*words, place + "/example.conf", "--check-config"])
        process = lab.client.popen([*words, place + "/convertgw.conf"], name="convertgw")
        process.wait_log("ready")
        with listening(lab.server, lab.server.addr4) as listener, pair(phone, lab.server.addr4, listener) as (_, _, peer):
            equal(peer, lab.converter.core4, "the server's client")
        equal(process.stop(), 0, "the status")


def test_status():
    """Metrics, the page, text and JSON show converted connections by network, and routed ones with the reason; a reload opens addresses."""
    with gateway_lab() as lab:
        config = os.path.join(lab.directory, "convertgw.conf")
        path = os.path.join(lab.directory, "metrics.sock")

        def get(page):
            return lab.client.run(["curl", "-sS", "--unix-socket", path, "http://localhost" + page]).stdout

        def sent():
            return int(re.search(r"network_bytes_total{network=\"%s\",direction=\"sent\"} (\d+)" % re.escape(lab.client.wifi4), get("/metrics"))[1])

        def write(text):
            with open(config, "w", encoding="ascii") as file:
                file.write("lan lan\nconvert destination 10.8.0.0/24\n" + text)
        write("")
        lab.convertd()
        with gateway(lab, args=("--config", config), converter=lab.converter.addr4, private=False) as (phone, process), \
                listening(lab.server, lab.server.addr4) as listener:
            write("metrics unix:%s\n" % path)
            process.send_signal(1)
            process.wait_log("reloaded")
            with pair(phone, lab.server.addr4, listener) as (client, server, peer):
                equal(peer, lab.converter.core4, "the server's client")
                client.sendall(b"x" * 1000)
                equal(len(server.recv(1000, socket.MSG_WAITALL)), 1000, "bytes at the server")
                wait_until(lambda: "bytes from clients                         1000" in get("/status"), 10, "bytes")
                tables = json.loads(get("/status.json"))
                equal((tables["Gateway"]["state"], tables["Gateway"]["listening on"], tables["Connections now"]["relay"]), ("serving", "lan", "1"),
                      "JSON")
                check(tables["Networks, and connections that began there"][lab.client.wifi4].startswith("1, round trip "), tables)
                wait_until(lambda: sent() >= 1000, 10, "bytes of an open connection, which the converter has acknowledged")
                check("<h1>convertgw" in get("/") and "</html>" in get("/"), "the page")
                check("\nconvertgw_outlived_connections 0\n" in get("/metrics") and "outlived" not in get("/status"), get("/metrics"))
                wait_until(lambda: "subflows:1" in lab.client.run(["ss", "-Mni"]).stdout, 10, "the second subflow")
                joined = json.loads(get("/status.json"))["Networks, and connections that began there"][lab.client.lte4]
                check(joined.startswith("0, ") and "round trip" not in joined, "a network where none began: " + joined)
                check("round_trip_seconds{network=\"%s\"" % lab.client.lte4 not in get("/metrics"), get("/metrics"))
                lab.client.ip("mptcp endpoint delete id 0 " + lab.client.wifi4)
                wait_until(lambda: "\nconvertgw_outlived_connections 1\n" in get("/metrics"), 10, "the first subflow's end")
                check("1 open connection has outlived the network on which it began" in get("/status"), get("/status"))
            wait_until(lambda: "  relay                                      0\n" in get("/status"), 10, "the end")
            wait_until(lambda: sent() >= 1000, 5, "bytes of a connection that has ended")
            lab.converter.run(["nft", "add table inet off; add chain inet off in { type filter hook input priority -400; }; "
                               "add rule inet off in tcp dport 1234 reject with tcp reset"])
            with pair(phone, lab.server.addr4, listener) as (_, _, peer):
                equal(peer, lab.client.wifi4, "the server's client: the router")
            text = get("/metrics")
            check(re.search(r"^convertgw_routed_total{reason=\"[^\"]+\"} 1$", text, re.MULTILINE), text)
            check(re.search(r"^convertgw_network_connections_total{network=\"%s\"} 1$" % re.escape(lab.client.wifi4), text, re.MULTILINE), text)
            metric = r"^convertgw_network_round_trip_seconds{network=\"%s\"} ([\d.]+)$" % re.escape(lab.client.wifi4)
            round_trip = re.search(metric, text, re.MULTILINE)
            check(round_trip and float(round_trip[1]) >= 0.01, text)
            check('convertgw_reloads_total{result="ok"} 1\n' in text and "convertgw_draining 0\n" in text, text)
            said = lab.client.run([lab.build.program("convertgw"), "status", "--config", config]).stdout
            check(said.startswith("convertgw ") and "Routed instead of converted" in said, said)
            equal(process.stop(), 0, "the status")
            check(not os.path.exists(path), "the socket is left behind")


@long
def test_a_network_dies():
    """A download by a LAN client outlives the network that it began on."""
    with gateway_lab(wifi=Link(delay_ms=10, rate_mbit=20, queue=100), lte=Link(delay_ms=15, rate_mbit=20, queue=100)) as lab, \
            gateway(lab) as (phone, _):
        lab.convertd()
        lab.http()
        fetch(phone, lab.server.addr4, 1000)
        words = ["curl", "-sS", "-m", "60", "-o", "/dev/null", "-w", "%{size_download}", "http://%s/bytes/10000000" % lab.server.addr4]
        download = phone.popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        with lab.capture(lab.client, "wifi", "tcp") as wifi:
            wait_until(lambda: sum(p.size for p in wifi.packets()) > 1000000, 30, "a megabyte over wifi")
        lab.wifi.set(loss=1)
        equal(download.communicate(timeout=90)[0], "10000000", "bytes")


if __name__ == "__main__":
    main()
