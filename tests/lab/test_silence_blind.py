#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_silence_blind.py - convertd refuses blind clients as the network would (doc/private-tlvs.md)

For each destination they must get the same as a direct connection of the same host.
"""
import collections
import contextlib
import errno
import os
import socket
import time

from convertlab import Lab, Link, check, equal, kernel, long, main, need, patience, side_by_side, wait_until, waits
from convertlab.forging import LINUX, MP_CAPABLE, Forge, route_back, victim
from convertlab.metrics import OPTIONS as METRICS, Metrics
from convertlab.peers import MPTCP, TCP, Client, Server, connect, connect_tlv, converter, extended_header, octets, silent
from test_silence import box

BLACKHOLE = ("MPTcpExtBlackhole", "MPTcpExtMPCapableSYNTXDisabled")


def far(core_ms=10, lte=None, **options):
    """A client whose packets take a while: the kernel ignores an ICMP message that comes during the call of connect()."""
    return Lab(wifi=Link(delay_ms=10), lte=lte, core=Link(delay_ms=core_ms), **options)


def asks(address, port, mptcp, options=b""):
    """A blind request."""
    return silent(connect_tlv(address, port, options), blind=True, mptcp=mptcp)


def outcome(sock, begin, seconds):
    """(errno, "time-out" or "N bytes"; seconds since `begin`) of a pending connection."""
    sock.settimeout(seconds)
    try:
        data = sock.recv(100)
        return "%d bytes" % len(data), time.monotonic() - begin
    except OSError as error:
        return error.errno or "time-out", time.monotonic() - begin


def directly(lab, address, port, seconds=10):
    """The outcome of a direct connection."""
    with lab.client.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM, TCP) as sock:
        sock.settimeout(seconds)
        begin = time.monotonic()
        try:
            sock.connect((address, port))
        except OSError as error:
            return error.errno or "time-out", time.monotonic() - begin
        return outcome(sock, begin, seconds)


def blindly(lab, address, port, protocol=TCP, v6=None, seconds=10, options=b""):
    """The outcome of a blind request. v6: to the converter's IPv6 address; None: to that of the server's family."""
    v6 = ":" in address if v6 is None else v6
    with Client(lab.client, lab.converter.addr6 if v6 else lab.converter.addr4, protocol) as client:
        begin = time.monotonic()
        try:
            client.send(asks(address, port, protocol == MPTCP, options))
        except OSError as error:
            return error.errno, time.monotonic() - begin
        return outcome(client.sock, begin, seconds)


def no_bytes(packets):
    """Fails if the converter has sent a byte, or a SYN+ACK."""
    wrong = [str(p) for p in packets if p.sport == 1234 and (p.payload or p.synack)]
    equal(wrong, [], "what the converter has sent")


@kernel.needs("fastopen")
def test_refusals():
    """The errors of direct connections: port closed, host or network unreachable, prohibited; no byte, no SYN+ACK."""
    with far() as lab, lab.capture(lab.client, "wifi", "tcp port 1234") as capture, converter(lab):
        there = lab.addresses
        for address, port in ((lab.server.addr4, there.refused_port), (lab.server.addr6, there.refused_port), (there.unreachable4, 80),
                              (there.unreachable6, 80), (there.prohibited4, 80), (there.prohibited6, 80)):
            want, _ = directly(lab, address, port)
            for protocol in (TCP, MPTCP):
                got, _ = blindly(lab, address, port, protocol)
                equal(errno.errorcode.get(got, got), errno.errorcode.get(want, want), "errno for %s:%d (%d)" % (address, port, protocol))
        no_bytes(capture.packets())


REJECTS = (("ip", "net-unreachable"), ("ip", "host-unreachable"), ("ip", "prot-unreachable"), ("ip", "port-unreachable"),
           ("ip", "net-prohibited"), ("ip", "host-prohibited"), ("ip", "admin-prohibited"), ("ip6", "no-route"),
           ("ip6", "admin-prohibited"), ("ip6", "addr-unreachable"), ("ip6", "port-unreachable"), ("ip6", "policy-fail"), ("ip6", "reject-route"))


@kernel.needs("fastopen")
def test_each_icmp_code():
    """The server's firewall rejects with each ICMP code: the errno is a direct connection's; over the other family it is any error."""
    need("nft", "nftables")
    with far() as lab, converter(lab):
        lab.server.sysctl("net.ipv4.icmp_ratelimit", 0)
        lab.server.sysctl("net.ipv6.icmp.ratelimit", 0)
        for host in (lab.converter, lab.server):
            host.sysctl("net.ipv4.icmp_ratelimit", 0)
            host.sysctl("net.ipv6.icmp.ratelimit", 0)
        for family, code in REJECTS:
            address = lab.server.addr6 if family == "ip6" else lab.server.addr4
            lab.server.run(["nft", "-f", "-"], input="table inet box {\n chain packets {\n  type filter hook input priority filter\n"
                           "  tcp dport 80 meta nfproto %s reject with %s type %s\n }\n}\n"
                           % ("ipv6" if family == "ip6" else "ipv4", "icmpv6" if family == "ip6" else "icmp", code))
            want, _ = directly(lab, address, 80)
            for protocol in (TCP, MPTCP):
                got, _ = blindly(lab, address, 80, protocol)
                equal(errno.errorcode.get(got, got), errno.errorcode.get(want, want), "errno for %s (%d)" % (code, protocol))
            # a client of the other family has an error, too
            got, _ = blindly(lab, address, 80, v6=family == "ip")
            check(isinstance(got, int) and got != 0, "%s from the other family: %s" % (code, got))
            lab.server.run(["nft", "delete", "table", "inet", "box"])


@kernel.needs("fastopen")
def test_the_converters_own_refusals():
    """A client without access or without a cookie, a forbidden server, an unknown option: "prohibited"."""
    with far() as lab:
        path = os.path.join(lab.directory, "cookies")
        with open(path, "w", encoding="ascii") as file:
            file.write("hex:00112233\n")
        os.chmod(path, 0o600)
        for arguments, options in ((("--deny-client", "10.1.0.0/16", "--deny-client", "fd01::/16"), b""), (("--cookie-list", path), b""),
                                   (("--deny-destination", lab.server.addr4, "--deny-destination", lab.server.addr6), b""),
                                   ((), octets("1d040000"))):
            with converter(lab, *arguments), lab.capture(lab.client, "wifi", "tcp port 1234") as capture:
                for address, want in ((lab.server.addr4, errno.EHOSTUNREACH), (lab.server.addr6, errno.EACCES)):
                    for protocol in (TCP, MPTCP):
                        equal(blindly(lab, address, 80, protocol, options=options)[0], want, "errno with %s" % (arguments,))
            no_bytes(capture.packets())


@kernel.needs("fastopen")
def test_cookie():
    """convertd serves a blind client that has one."""
    with far() as lab, Server(lab, 80) as server:
        path = os.path.join(lab.directory, "cookies")
        with open(path, "w", encoding="ascii") as file:
            file.write("hex:00112233\n")
        os.chmod(path, 0o600)
        with converter(lab, "--cookie-list", path), Client(lab.client, lab.converter.addr4, MPTCP) as client:
            client.send(silent(connect_tlv(lab.server.addr4, 80), octets("16020000 00112233"), blind=True, mptcp=True))
            sock = server.accept()
            sock.sendall(b"answer")
            sock.close()
            equal(client.end(), (b"answer", "closed"), "what came")


@long
@waits
@kernel.needs("fastopen")
def test_many_refusals():
    """A host sends few ICMP messages a second: the other clients' kernels repeat their SYNs, without data, and convertd refuses those."""
    with far() as lab, converter(lab, "--deny-destination", lab.server.addr4), \
            lab.capture(lab.client, "wifi", "tcp port 1234") as capture, contextlib.ExitStack() as stack:
        lab.converter.sysctl("net.ipv4.icmp_ratelimit", 400)
        begin, waiting = time.monotonic(), []
        for _ in range(20):
            client = stack.enter_context(Client(lab.client, lab.converter.addr4, MPTCP))
            client.sock.setblocking(False)
            client.send(asks(lab.server.addr4, 80, True))
            waiting.append(client)
        for client in waiting:
            client.sock.settimeout(30)
            equal(outcome(client.sock, begin, 60)[0], errno.EHOSTUNREACH, "errno")
        no_bytes(capture.packets())
    return "after %.1f s" % (time.monotonic() - begin)


@long
@waits
@kernel.needs("fastopen")
def test_silence_for_silence():
    """A silent server: a time-out after as many SYNs as of a direct connection, and the kernel keeps Multipath TCP on."""
    with far() as lab, converter(lab):
        lab.client.sysctl("net.ipv4.tcp_syn_retries", 2)
        before = [lab.client.counters().get(name, 0) for name in BLACKHOLE]
        silent_servers = (lab.addresses.blackhole4, lab.addresses.blackhole6)
        with lab.capture(lab.client, "wifi", "tcp port 1234 or tcp port 80") as capture:
            found = side_by_side(lambda connects: connects()[0], [
                lambda connects=connects, address=address, more=more: connects(lab, address, 80, *more, seconds=30)
                for address in silent_servers for connects, more in ((directly, ()), (blindly, (TCP,)), (blindly, (MPTCP,)))], at_once=6)
        equal(found, [errno.ETIMEDOUT] * 6, "errnos: directly, over TCP and Multipath TCP, by family")
        no_bytes(capture.packets())
        syns = collections.Counter((p.dport, p.sport) for p in capture.packets() if p.syn and p.dport in (80, 1234))
        equal((sorted(dport for dport, _ in syns), len(set(syns.values()))), ([80] * 2 + [1234] * 4, 1), "as many SYNs of each connection: %s" % syns)
        equal([lab.client.counters().get(name, 0) for name in BLACKHOLE], before, "counters of Multipath TCP")
        with Server(lab, 80) as server, Client(lab.client, lab.converter.addr4, MPTCP) as client:
            client.send(connect(lab.server.addr4, 80))
            server.accept().close()
            extended_header(client.answer())


@kernel.needs("fastopen")
def test_late_answers():
    """Once a Linux client has repeated its SYN, Multipath TCP is lost: convertd resets both ends. Over TCP the answer isn't too late."""
    with far(core_ms=550) as lab, Server(lab, 80) as server, converter(lab), lab.capture(lab.converter, "core", "tcp") as core, \
            lab.capture(lab.client, "wifi", "tcp port 1234") as capture, \
            Client(lab.client, lab.converter.addr4, MPTCP) as multipath, Client(lab.client, lab.converter.addr4, TCP) as single:
        for client, mptcp in ((multipath, True), (single, False)):
            client.sock.setblocking(False)
            client.send(asks(lab.server.addr4, 80, mptcp))
            client.sock.settimeout(20)
        equal(outcome(multipath.sock, 0, 20)[0], errno.ECONNREFUSED, "errno over Multipath TCP")
        for _ in range(2):
            with server.accept() as sock, contextlib.suppress(OSError):
                sock.sendall(b"answer")
        equal(single.read(6), b"answer", "over TCP")
        check(single.confirmed(), "over TCP, the SYN+ACK confirms nothing")
        no_bytes([p for p in capture.packets() if p.dport == multipath.port])
        wait_until(lambda: any(p.rst and p.dport == 80 for p in core.packets()), 10, "a reset for the server")


def begin(lab, attempt, repeat=0, port=80):
    """Sends a blind request over Multipath TCP with this Attempt and Repeat; returns the client, without waiting."""
    client = Client(lab.client, lab.converter.addr4, MPTCP)
    client.sock.setblocking(False)
    client.send(silent(connect_tlv(lab.server.addr4, port), blind=True, mptcp=True, attempt=attempt, repeat=repeat))
    client.sock.settimeout(20)
    return client


def asked(packets):
    """The converter's ports from which SYNs have gone to the server."""
    return {p.sport for p in packets if p.syn and not p.synack and p.dport == 80}


def withheld(lab):
    """How many SYNs are withheld now."""
    return Metrics(lab.converter)("convertd_withheld_syns")


def refused(lab):
    """How many SYNs were refused as the network refuses."""
    return Metrics(lab.converter)("convertd_syns_total", fate="refused")


@kernel.needs("fastopen")
def test_made_again():
    """convertd lets the last SYN of an attempt go, whatever happens to earlier ones, and connects to the server once for each attempt."""
    with far(core_ms=1050) as lab, Server(lab, 80) as server, converter(lab, *METRICS), \
            lab.capture(lab.converter, "core", "tcp") as core:
        with begin(lab, 7), begin(lab, 7, 1):
            wait_until(lambda: withheld(lab) == 1, 5, "one SYN that is withheld")
        with begin(lab, 7, 3) as third, begin(lab, 7, 2) as older, begin(lab, 7, 3) as same, begin(lab, 8) as other:
            for _ in range(2):
                with server.accept() as sock:
                    sock.sendall(b"answer")
            with begin(lab, 7, 4) as last:
                equal(last.read(6), b"answer", "to the last repeat")
            equal(outcome(other.sock, 0, 10)[0], errno.ECONNREFUSED, "errno of another attempt, whose answer came too late")
            # their kernel has repeated their SYNs, without data, for which convertd resets a blind client
            for client in (third, older, same):
                equal(outcome(client.sock, 0, 10)[0], errno.ECONNRESET, "errno of an earlier SYN")
        equal(len(asked(core.packets())), 2, "connections to the server")


@kernel.needs("fastopen")
def test_answer_between_two_syns():
    """An answer after Limit waits for the next SYN; without one, convertd resets both ends."""
    for again in (True, False):
        with far(core_ms=410) as lab, Server(lab, 80) as server, converter(lab, *METRICS), begin(lab, 9) as first, \
                server.accept() as sock, lab.capture(lab.converter, "core", "tcp") as core:
            # accept() has returned: the converter's third ACK has come, so it has the server's answer
            if again:
                first.sock.close()
                with begin(lab, 9, 1) as second:
                    sock.sendall(b"answer")
                    equal(second.read(6), b"answer", "to the repeat")
            else:
                equal(outcome(first.sock, 0, 10)[0], errno.ECONNREFUSED, "errno")
                wait_until(lambda: any(p.rst and p.dport == 80 for p in core.packets()), 10, "a reset for the server")
            equal(withheld(lab), 0, "SYNs that are withheld")


@kernel.needs("fastopen")
def test_another_clients_number():
    """Requests with the same Attempt from another address are another attempt, with a connection of their own."""
    with far(core_ms=100, lte=Link(delay_ms=10)) as lab, Server(lab, 80) as server, converter(lab, *METRICS):
        with begin(lab, 7) as mine, Client(lab.client, lab.converter.addr4, MPTCP) as foreign:
            foreign.sock.bind((lab.client.lte4, 0))
            foreign.sock.setblocking(False)
            foreign.send(silent(connect_tlv(lab.server.addr4, 80), blind=True, mptcp=True, attempt=7, repeat=1))
            foreign.sock.settimeout(10)
            for _ in range(2):
                server.accept().close()
            for client in (mine, foreign):
                equal(client.end(), (b"", "closed"), "what came")


@long
@waits
@kernel.needs("fastopen")
def test_too_late():
    """The server answers after convertd and the client have given up: the client gets nothing, the server a reset."""
    with far(core_ms=1900) as lab, Server(lab, 80), converter(lab), lab.capture(lab.converter, "core", "tcp") as core, \
            lab.capture(lab.client, "wifi", "tcp port 1234") as capture:
        lab.client.sysctl("net.ipv4.tcp_syn_retries", 2)
        for protocol in (TCP, MPTCP):
            equal(blindly(lab, lab.server.addr4, 80, protocol, seconds=20)[0], errno.ETIMEDOUT, "errno")
        no_bytes(capture.packets())
        equal(len({p.sport for p in core.packets() if p.rst and p.dport == 80}), 2, "connections of the server that were reset")


@kernel.needs("fastopen")
def test_no_room():
    """There is room to withhold only one of two SYNs: convertd serves the other one's client after its third ACK."""
    with far(core_ms=300) as lab, Server(lab, 80) as server, converter(lab, "--max-pending", "4"), \
            contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(lab.client, lab.converter.addr4)) for _ in range(2)]
        for client in clients:
            client.sock.setblocking(False)
            client.send(asks(lab.server.addr4, 80, False))
            client.sock.settimeout(20)
        for _ in clients:
            with server.accept() as sock:
                sock.sendall(b"answer")
        equal([client.end() for client in clients], [(b"answer", "closed")] * 2, "what came")
        equal(sorted(client.confirmed() for client in clients), [False, True], "SYN+ACKs that have confirmed the server")


@kernel.needs("fastopen")
def test_forged_syn_of_the_same_port():
    """A forged blind SYN, to a silent server or a refusing one: convertd confirms the client's own connection from that port at once."""
    with far() as lab, Server(lab, 80) as server, converter(lab, *METRICS), Forge(lab) as forge:
        # the SYN to a refusing server is in the table, released and not accepted, when the client's own SYN comes
        for number, target in enumerate((lab.addresses.blackhole4, lab.server.addr4)):
            for protocol in (TCP, MPTCP):
                port = 20000 + 10 * number + protocol % 7
                options = LINUX + MP_CAPABLE if protocol == MPTCP else LINUX
                before = refused(lab)
                forge.syn(lab.client.wifi4, port, asks(target, 80 + number, protocol == MPTCP), options)
                if number:
                    wait_until(lambda: refused(lab) > before, 5, "the forged SYN to be refused")  # pylint: disable=W0640
                    # The RST is here before the client asks: in the middle of an attempt Linux would send its SYN again because of it.
                    check(lab.client.ping(lab.converter.addr4), "no answer to a ping behind the RST")
                else:
                    wait_until(lambda: withheld(lab), 5, "the forged SYN to be withheld")
                for request in (asks(lab.server.addr4, 80, protocol == MPTCP), connect(lab.server.addr4, 80)):
                    with Client(lab.client, lab.converter.addr4, protocol) as client:
                        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                        client.sock.bind((lab.client.wifi4, port + (request[2] == 0x22)))
                        begun = time.monotonic()
                        client.send(request)
                        with server.accept() as sock:
                            sock.sendall(b"answer")
                        check(client.end()[0].endswith(b"answer"), "what came")
                        check(client.confirmed(), "its SYN+ACK confirms nothing")
                        seconds = time.monotonic() - begun
                        # convertd forgets the forged SYN after that
                        check(seconds < patience(3.5), "%.1f s" % seconds)


@kernel.needs("fastopen")
def test_given_up():
    """An attempt that a client has given up doesn't hinder its next connection from the same port."""
    with far() as lab, Server(lab, 80) as server, converter(lab, *METRICS):
        for protocol in (TCP, MPTCP):
            with Client(lab.client, lab.converter.addr4, protocol) as client:
                client.sock.setblocking(False)
                client.send(asks(lab.addresses.blackhole4, 80, protocol == MPTCP))
                wait_until(lambda: withheld(lab), 5, "the SYN to be withheld")
                port = client.port
            with Client(lab.client, lab.converter.addr4, protocol) as client:
                client.sock.bind((lab.client.wifi4, port))
                client.send(asks(lab.server.addr4, 80, protocol == MPTCP))
                with server.accept() as sock:
                    sock.sendall(b"answer")
                equal(client.end(), (b"answer", "closed"), "what came")
                check(client.confirmed(), "its SYN+ACK confirms nothing")
        # convertd stops counting them when its kernel stops asking the server
        wait_until(lambda: withheld(lab) == 0, 10, "the SYNs to be given up")
        equal(Metrics(lab.converter)("convertd_unproven_clients"), 0, "unproven clients")


@kernel.needs("fastopen")
def test_demanded_cookie():
    """While convertd demands cookies, it serves a blind client without one after its third ACK; no forged SYN reaches a server."""
    with far() as lab, Server(lab, 80) as server, \
            converter(lab, "--max-pending", "400", "--max-pending-per-client", "0", *METRICS), Forge(lab) as forge:
        route_back(lab)
        for number in range(96):
            forge.syn(victim(number), 30000, asks(lab.addresses.blackhole4, 80, False), LINUX)
            forge.syn(victim(number, True), 30000, asks(lab.addresses.blackhole4, 80, False), LINUX)
        wait_until(lambda: Metrics(lab.converter)("convertd_cookies_demanded") == 1, 5, "cookies to be demanded")
        with lab.capture(lab.converter, "core", "tcp") as core:
            for protocol in (TCP, MPTCP):
                with Client(lab.client, lab.converter.addr4, protocol) as client:
                    client.send(asks(lab.server.addr4, 80, protocol == MPTCP))
                    with server.accept() as sock:
                        sock.sendall(b"answer")
                    equal(client.end(), (b"answer", "closed"), "what came")
                    check(not client.confirmed(), "its SYN+ACK confirms the server")
            forge.syn(victim(200), 30000, asks(lab.server.addr4, 80, False), LINUX)
            with Client(lab.client, lab.converter.addr4, TCP) as client:
                client.send(asks(lab.server.addr4, lab.addresses.refused_port, False))
                equal(outcome(client.sock, 0, 10)[0], errno.ECONNRESET, "errno for a port that is closed")
            # the SYNs of forged requests from before the demand go to another host
            equal(len(asked(p for p in core.packets() if p.dst == lab.server.addr4)), 2, "connections to the server")


@kernel.needs("fastopen")
def test_without_mp_capable():
    """A middlebox removes it from the SYN of a client that insists on it: convertd refuses."""
    need("nft", "nftables")
    with far() as lab, converter(lab), box(lab.client, "output", "tcp flags & syn == syn reset tcp option 30"), \
            lab.capture(lab.client, "wifi", "tcp port 1234") as capture:
        equal(blindly(lab, lab.server.addr4, 80, MPTCP)[0], errno.ECONNREFUSED, "errno")
        no_bytes(capture.packets())


if __name__ == "__main__":
    main()
