#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertd_sources.py - the source addresses that servers see: a shared set, or the clients' own (RFC 8803 4.3, 4.4)"""
import contextlib
import signal
import socket

from convertlab import Lab, Link, Unsuitable, check, equal, main, need, sandbox, wait_until
from convertlab.pcap import mptcp_subflows
from convertlab.peers import (MPTCP, TCP, Client, Server, connect, converter, error, extended_header, read_exactly)

# the converter's further addresses: single ones, and a whole prefix of each family
POOL = ("10.3.7.1", "10.3.7.2", "10.3.8.0/28", "fd03:7::1", "fd03:8::/64")
CLIENTS = range(10, 22)


def near(lte=None):
    """Returns a lab whose links are too fast to matter."""
    return Lab(wifi=Link(delay_ms=0.5), lte=lte, core=Link(delay_ms=0.1))


@contextlib.contextmanager
def pool_lab():
    """Yields a lab whose converter has the addresses of POOL, and whose client has many."""
    with near() as lab:
        lab.converter.ip("addr add 10.3.7.1/32 dev lo", "addr add 10.3.7.2/32 dev lo", "route add local 10.3.8.0/28 dev lo",
                         "addr add fd03:7::1/128 dev lo nodad")
        lab.converter.run(["ip", "-6", "route", "add", "local", "fd03:8::/64", "dev", "lo"])
        lab.client.ip(*("addr add 10.1.0.%d/24 dev wifi" % number for number in CLIENTS))
        yield lab


def sources(addresses=POOL):
    """Returns the options for these source addresses."""
    return [word for address in addresses for word in ("--source", address)]


def seen_from(lab, server, client_address, v6=False, port=0, protocol=TCP, to=None):
    """Connects as this client; returns the address and port that the server sees, and the client's port."""
    with Client(lab.client, to or lab.converter.addr4, protocol) as client:
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        client.sock.bind((client_address, port))
        client.send(server.connect(v6=v6) + b"question")
        with server.accept() as sock:
            extended_header(client.answer())
            equal(read_exactly(sock, 8), b"question", "the server's bytes")
            sock.sendall(b"answer")
            equal(client.read(6), b"answer", "the client's bytes")
            address, peer_port = sock.getpeername()[:2]
            return address.replace("::ffff:", ""), peer_port, client.sock.getsockname()[1]


def test_clients_keep_their_address():
    """RFC 6888 REQ-2: for all servers and protocols, and after a reload or a restart; several clients use several addresses of the set."""
    with pool_lab() as lab, Server(lab, 80) as server, Server(lab, 81) as other:
        kept = {}

        def ask(moment):
            for number in CLIENTS:
                client = "10.1.0.%d" % number
                for v6 in (False, True):
                    for at, protocol in ((server, TCP), (other, MPTCP)):
                        source = seen_from(lab, at, client, v6, protocol=protocol)[0]
                        equal(source, kept.setdefault((client, v6), source), "%s, %s" % (client, moment))
        with converter(lab, *sources()) as process:
            ask("at first")
            process.send_signal(signal.SIGHUP)
            process.wait_log("reloaded")
            ask("after a reload")
        with converter(lab, *sources(reversed(POOL))):
            ask("after a restart")
        v4 = {source for (_, v6), source in kept.items() if not v6}
        v6 = {source for (_, v6), source in kept.items() if v6}
        check(all(source.startswith(("10.3.7.", "10.3.8.")) for source in v4) and len(v4) > 3, v4)
        check(all(source.startswith(("fd03:7::1", "fd03:8::")) for source in v6) and len(v6) > 3, v6)


def test_ports_are_used_up():
    """A client keeps its address even if it has no ports left: convertd has it wait; towards another server there are ports."""
    with pool_lab() as lab, Server(lab, 80) as server, Server(lab, 81) as other:
        lab.converter.sysctl("net.ipv4.ip_local_port_range", "40000 40003")
        with converter(lab, "--source", "10.3.7.1", "--retry-delay", "7") as process:
            held = []
            for _ in range(4):
                client = Client(lab.client, lab.converter.addr4).send(server.connect())
                extended_header(client.answer())
                held += [client.sock, server.accept()]
            with Client(lab.client, lab.converter.addr4) as client:
                equal(client.send(server.connect()).answer(), error(0x40, 7), "the answer to the fifth")
            check("no connection from 10.3.7.1:" in process.log_text(), process.log_text())
            equal(seen_from(lab, other, "10.1.0.10")[0], "10.3.7.1", "the source towards another server")
            for sock in held:
                sock.close()


def test_address_that_is_not_ours():
    """convertd refuses at its start a source that isn't the host's, with a remedy that works; it logs when one vanishes later."""
    with near() as lab, Server(lab, 80) as server:
        program = lab.build.program("convertd")
        for source, family in (("10.3.7.1", []), ("10.3.9.0/24", []), ("10.3.10.0/22", []), ("fd03:9::/64", ["-6"])):
            command = [program, "--allow-client", "::/0", "--source", source]
            if source == "10.3.10.0/22":
                result = lab.converter.run(command, check=False)
                check(result.returncode == 2 and "10.3.8.0/22" in result.stderr, result.stderr)
                continue
            result = lab.converter.run(command, check=False)
            equal(result.returncode, 1, "the status: " + result.stderr)
            check("--source" in result.stderr and "isn't an address of this host" in result.stderr, result.stderr)
            remedy = [part for part in result.stderr.split('"') if part.startswith("ip route")][-1]
            lab.converter.run(["ip", *family, *remedy.split()[1:]])
            with converter(lab, "--source", source):
                check(seen_from(lab, server, lab.client.wifi4, v6=bool(family))[0].startswith(source[:6]), source)
        for source, family in (("10.3.7.1", []), ("fd03:9::/64", ["-6"])):
            with converter(lab, "--source", source) as process:
                lab.converter.run(["ip", *family, "route", "del", "local", source, "dev", "lo"])
                with Client(lab.client, lab.converter.addr4) as client:
                    equal(client.send(server.connect(v6=bool(family))).answer(), error(0x40, 10), "the answer without " + source)
                process.wait_log("no connection from " + source.split("/", maxsplit=1)[0])


def preserving(lab):
    """Routes the servers' packets as convertd(8) says for --preserve-client-address."""
    need("nft", "nftables")
    lab.converter.run(["nft", "-f", "-"], input="""
table inet convertd_preserve {
    chain divert {
        type filter hook prerouting priority mangle; policy accept;
        socket transparent 1 meta mark set 1
    }
}
""")
    for family in ("-4", "-6"):
        lab.converter.run(["ip", family, "rule", "add", "fwmark", "1", "lookup", "100"])
        lab.converter.run(["ip", family, "route", "add", "local", "default", "dev", "lo", "table", "100"])


def test_client_address_is_preserved():
    """Section 4.4.1: the server sees the client's address and port, of each family, and so do captures; the host still forwards others."""
    with near() as lab, Server(lab, 80) as server:
        preserving(lab)
        with converter(lab, "--preserve-client-address"), lab.capture(lab.server, "core", "tcp port 80") as capture:
            for protocol in (TCP, MPTCP):
                for v6, client, to in ((False, lab.client.wifi4, lab.converter.addr4), (True, lab.client.wifi6, lab.converter.addr6)):
                    address, port, own = seen_from(lab, server, client, v6, protocol=protocol, to=to)
                    equal((address, port), (client, own), "the address and port at the server")
            # a connection that isn't the converter's is forwarded
            with lab.client.socket() as direct:
                direct.connect((lab.server.addr4, 80))
                with server.accept() as sock:
                    sock.sendall(b"answer")
                    equal(direct.recv(6), b"answer", "over a direct connection")
            # the client has no address of the server's family: the converter's own
            equal(seen_from(lab, server, lab.client.wifi4, True)[0], lab.converter.core6, "from IPv4 to IPv6")
            for address, answer in ((lab.addresses.unreachable4, error(0x61, 1)), (lab.addresses.noroute4, error(0x20))):
                with Client(lab.client, lab.converter.addr4) as client:
                    equal(client.send(connect(address, 80)).answer(), answer, "the answer about " + address)
        equal({packet.src for packet in capture.packets() if packet.dport == 80},
              {lab.client.wifi4, lab.client.wifi6, lab.converter.core6}, "sources on the wire")


def test_first_subflow_counts():
    """The server sees the address of the first subflow, though bytes also take the second one."""
    size = 1000000
    with near(lte=Link(delay_ms=0.5, rate_mbit=20)) as lab, Server(lab, 80) as server:
        lab.wifi.set(rate_mbit=20)
        preserving(lab)
        with converter(lab, "--preserve-client-address"):
            for address, other in ((lab.client.wifi4, lab.client.lte4), (lab.client.lte4, lab.client.wifi4)):
                second = ["ss", "-HtnO", "state", "established", "src", other, "dst", lab.converter.addr4]
                with lab.capture(lab.converter, "lte" if address == lab.client.wifi4 else "wifi", "tcp") as capture, \
                        lab.capture(lab.server, "core", "tcp port 80") as behind, \
                        Client(lab.client, lab.converter.addr4, MPTCP) as client:
                    client.sock.bind((address, 0))
                    client.send(server.connect())
                    with server.accept() as sock:
                        extended_header(client.answer())
                        equal(sock.getpeername()[0], "::ffff:" + address, "the peer")
                        wait_until(lambda second=second: lab.client.run(second).stdout, 20, "the second subflow")
                        sock.sendall(bytes(size))
                        equal(len(client.read(size)), size, "bytes")
                check(any(flow[0] == "MP_JOIN" for flow in mptcp_subflows(capture.packets())), "no second subflow")
                check(sum(len(packet.payload) for packet in capture.packets()) > size // 10, "nothing over the second subflow")
                equal({packet.src for packet in behind.packets() if packet.dport == 80}, {address}, "sources on the wire")


def test_ports_that_collide():
    """If the client's port is in use towards this server, or listened on, the server sees another port, and the same address."""
    with near() as lab, Server(lab, 80) as server, Server(lab, 81) as other:
        preserving(lab)
        with converter(lab, "--preserve-client-address"):
            client, port = lab.client.wifi4, 5555
            with Client(lab.client, lab.converter.addr4) as first:
                first.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                first.sock.bind((client, port))
                extended_header(first.send(server.connect()).answer())
                with server.accept() as sock:
                    equal(sock.getpeername()[:2], ("::ffff:" + client, port), "the first")
                    equal(seen_from(lab, other, client, port=port, to=lab.converter.wifi4)[:2], (client, port), "to another server")
                    address, got, _ = seen_from(lab, server, client, port=port, to=lab.converter.core4)
                    check(address == client and got != port, "to the same server: %s %d" % (address, got))
            # convertd itself listens there
            address, got, _ = seen_from(lab, server, client, port=1234)
            check(address == client and got != 1234, "from a port that is taken: %s %d" % (address, got))


def test_preserving_needs_a_capability():
    """Without it, convertd doesn't start, and names it."""
    need("setpriv", "util-linux")
    with near() as lab:
        result = lab.converter.run(["setpriv", "--bounding-set", "-net_admin,-net_raw", lab.build.program("convertd"),
                                    "--allow-client", "::/0", "--preserve-client-address"], check=False)
        check(result.returncode == 1 and "CAP_NET_ADMIN" in result.stderr and "--preserve-client-address" in result.stderr,
              "%d: %s" % (result.returncode, result.stderr))


def test_preserving_as_another_user():
    """With --user, convertd keeps this capability, so that addresses are preserved, after a reload, too."""
    if sandbox.in_user_namespace():
        raise Unsuitable("in a user namespace of an ordinary user there is only one user; run it as root")
    with near() as lab, Server(lab, 80) as server:
        preserving(lab)
        with converter(lab, "--preserve-client-address", "--user", "nobody") as process:
            equal(seen_from(lab, server, lab.client.wifi4)[0], lab.client.wifi4, "the address at the server")
            process.send_signal(signal.SIGHUP)
            process.wait_log("reloaded")
            equal(seen_from(lab, server, lab.client.wifi4)[0], lab.client.wifi4, "after a reload")


if __name__ == "__main__":
    main()
