#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_gateway_rules.py - convertgw: the operator's rules, limits, findings of --check-config, and what must not change"""
import collections
import contextlib
import ctypes
import errno
import fcntl
import os
import resource
import signal
import socket
import struct

from convertlab import check, equal, long, main, wait_until, waits
from convertlab.gateways import PORT, ConfiguredGateway, add_lan, connect, gateway_lab, is_connected, listening, masquerade, outcome, pair, \
    start_gateway
from convertlab.metrics import OPTIONS as METRICS, Metrics, wait_metrics
from convertlab.programs import c_program
from test_convertd_counts import fill

CONVERTED, ROUTED, REFUSED = "converted", "routed", "refused"


def way(lab, phone, address=None, port=PORT, tos=0, mark=0):
    """Tells which way a connection to a server of tellers() takes."""
    address = address or lab.server.addr4
    sock = phone.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    with sock:
        sock.settimeout(15)
        if tos:
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
        if mark:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, mark)
        error = sock.connect_ex((address, port))
        if error:
            return "%s: %s" % (REFUSED, errno.errorcode[error])
        return CONVERTED if sock.recv(100).decode() in (lab.converter.core4, lab.converter.core6) else ROUTED


TELLER = """import socket, sys, threading
def serve(port):
    s = socket.socket(socket.AF_INET6); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0); s.bind(("::", port)); s.listen(4096)
    while True:
        c, a = s.accept(); c.sendall(a[0].replace("::ffff:", "").encode()); c.close()
for port in map(int, sys.argv[1:]):
    threading.Thread(target=serve, args=(port,)).start()
"""


def tellers(lab, *ports, host=None):
    """Servers that tell each client the address that they see."""
    lab.start_listening(host or lab.server, ["python3", "-c", TELLER, *ports], ports[-1], name="tellers")


@contextlib.contextmanager
def scene(*args, ports=(PORT,), lan=True, private=True):
    """Yields (lab, phone, process) with a converter, tellers and a gateway."""
    with gateway_lab() as lab:
        lab.convertd()
        tellers(lab, *ports)
        phone = add_lan(lab)
        masquerade(lab)
        yield lab, phone, start_gateway(lab, args=(*(("--lan", "lan") if lan else ()), *args), private=private)


def test_rules():
    """The first rule that matches decides: clients, destinations, ports, devices, DSCP, marks; DNS and private networks are routed."""
    with scene("--route", "destination 10.8.0.1:81", "--route", "client 10.21.0.0/24 destination :82", "--convert", "destination :53",
               "--route", "dscp 46", "--route", "client 10.20.0.2 dscp 8", "--convert", "client 10.20.0.0/24", "--convert", "device lan2", "--convert", "client fd20::/64",
               "--lan", "lan2", ports=(81, 82, 83, 53, 853), private=False) as (lab, phone, _):
        other = add_lan(lab, "lan2", 21, "tablet")
        equal(way(lab, phone, port=81), ROUTED, "a destination and a port")
        equal(way(lab, phone, port=82), CONVERTED, "another client's port")
        equal(way(lab, other, port=82), ROUTED, "that client's port")
        equal(way(lab, other, port=83), CONVERTED, "that client's device")
        equal(way(lab, phone, port=53), CONVERTED, "DNS, which a rule names")
        equal(way(lab, phone, port=83, tos=46 << 2), ROUTED, "a DSCP")
        equal([way(lab, host, port=83, tos=8 << 2) for host in (phone, other)], [ROUTED, CONVERTED], "one client's DSCP")
        equal(way(lab, phone, lab.server.addr6, port=83), CONVERTED, "a client by IPv6")
        equal(way(lab, other, lab.server.addr6, port=83), CONVERTED, "a device by IPv6")


def test_dns_is_routed():
    """Without a rule for them, connections to the ports of DNS and to private networks are routed."""
    with scene(ports=(PORT, 53, 853), private=False) as (lab, phone, process):
        # the lab's servers get public addresses
        lab.server.ip("addr add 11.22.33.44/32 dev lo", "addr add 198.18.0.1/32 dev lo")
        lab.converter.ip("route add 11.22.33.0/24 via %s" % lab.server.core4, "route add 198.18.0.0/15 via %s" % lab.server.core4)
        equal([way(lab, phone, "11.22.33.44", port) for port in (PORT, 53, 853)], [CONVERTED, ROUTED, ROUTED], "a public server")
        equal([way(lab, phone), way(lab, phone, "198.18.0.1")], [ROUTED] * 2, "a private one, and one of a proxy that answers DNS")
        check("198.18" not in process.log_text(), "its SYN was withheld")


def test_require():
    """--require: refused without a converter, and also after kill -9 and a failed start; none bypasses it. An orderly stop ends that."""
    with scene("--require", "destination :81", ports=(PORT, 81)) as (lab, phone, process):
        equal(way(lab, phone, port=81), CONVERTED, "with a converter")
        lab.converter.run(["nft", "add table inet off; add chain inet off in { type filter hook input priority 0; }; "
                           "add rule inet off in tcp dport 1234 reject with tcp reset"])
        with lab.capture(lab.converter, "core", "tcp port 81") as core:
            check(way(lab, phone, port=81).startswith(REFUSED), "it wasn't refused without a converter")
            equal(way(lab, phone), ROUTED, "what isn't required")
            process.kill()
            process.wait()
            check(way(lab, phone, port=81).startswith(REFUSED), "it wasn't refused without a gateway")
            # the converter withholds SYNs before its firewall sees them, and has asked the server by then
            equal({p.src for p in core.packets() if p.syn} - {lab.converter.core4}, set(), "who sent SYNs past the converter")
        equal(way(lab, phone), ROUTED, "what isn't required, without a gateway")
        foreign = "chain inet convertgw_require lan { type filter hook input priority 45; }"  # nftables refuses the gateway's chain then
        lab.client.run(["nft", "delete chain inet convertgw_require lan; add " + foreign])
        failed = start_gateway(lab, args=("--lan", "lan", "--require", "destination :81"), wait=False)
        equal(failed.wait(10), 1, "status of a start that fails")
        lab.client.run(["nft", "delete chain inet convertgw_require lan"])  # fails if the table is gone
        start_gateway(lab, args=("--lan", "lan", "--require", "destination :81")).stop()
        equal(way(lab, phone, port=81), ROUTED, "after an orderly stop")


def test_require_all():
    """--require all: connections from outside to this host or a LAN client work; outgoing ones are converted or refused."""
    with scene("--host", "--require", "all", private=False) as (lab, phone, _):
        lab.converter.ip("route add 10.20.0.0/24 via 10.1.0.2")
        tellers(lab, 99, host=lab.client)
        tellers(lab, 99, host=phone)
        for client, address in ((lab.converter, lab.client.wifi4), (phone, "10.20.0.1"), (lab.converter, phone.lan4)):
            equal(outcome(client, address, 99, 5), "", "a connection from %s to %s" % (client.name, address))
        equal([way(lab, host) for host in (phone, lab.client)], [CONVERTED] * 2, "what leaves")
        nft = "table inet off {\n chain input { type filter hook input priority -450; tcp dport 1234 reject; }\n}\n"
        lab.converter.run(["nft", "-f", "-"], input=nft)
        check(all(way(lab, host).startswith(REFUSED) for host in (phone, lab.client)), "it wasn't refused without a converter")


def test_refuse_quic():
    """--refuse-quic answers UDP to port 443 by ICMP, and leaves other UDP alone."""
    with scene("--refuse-quic") as (lab, phone, process):
        with phone.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock, lab.server.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
            server.bind((lab.server.addr4, 444))
            server.settimeout(10)
            sock.connect((lab.server.addr4, 444))
            sock.send(b"x")
            equal(server.recvfrom(10)[0], b"x", "another port")
            sock.connect((lab.server.addr4, 443))
            sock.settimeout(10)
            sock.send(b"x")
            with contextlib.suppress(ConnectionRefusedError):
                raise AssertionError("an answer: %r" % sock.recv(10))
        equal(process.stop(), 0, "status")


def test_port_forwards():
    """A port forward from outside, with its hairpin, stays as it is."""
    with scene("--convert", "all") as (lab, phone, _):
        lab.client.run(["nft", "add table ip forward; add chain ip forward in { type nat hook prerouting priority dstnat; }; "
                        "add rule ip forward in ip daddr 10.1.0.2 tcp dport 2222 dnat to 10.20.0.2:22; "
                        "add chain ip forward out { type nat hook postrouting priority srcnat; }; "
                        "add rule ip forward out ip saddr 10.20.0.0/24 ip daddr 10.20.0.2 masquerade"])
        with listening(phone, phone.lan4, 22) as listener:
            for host in (lab.converter, phone):
                error, sock = connect(host, lab.client.wifi4, 2222)
                equal(error, 0, "connect() from %s" % host.name)
                with sock, listener.accept()[0] as accepted:
                    accepted.sendall(b"x")
                    equal(sock.recv(1), b"x", "a byte")


def test_flushed():
    """Another program flushes the whole ruleset: the gateway owns its tables, and they stay."""
    with scene() as (lab, phone, process):
        lab.client.run(["nft", "flush ruleset"])
        masquerade(lab)
        equal(way(lab, phone), CONVERTED, "after a flush by another program")
        equal(process.poll(), None, "the gateway's end")


@contextlib.contextmanager
def limited(*args):
    """Yields (lab, phone, tablet, connected) with a gateway of these limits; connected(host) yields as pair(), and the connection stays."""
    with gateway_lab() as lab:
        lab.convertd()
        phone, tablet = add_lan(lab), add_lan(lab, "lan2", 21, "tablet")
        masquerade(lab)
        process = start_gateway(lab, args=("--lan", "lan", "--lan", "lan2", *args))
        with listening(lab.server, lab.server.addr4) as listener, contextlib.ExitStack() as stack:
            def relayed():
                return process.log_text().count("connecting -> relay")

            def connected(host):
                before = relayed()
                client, server, peer = stack.enter_context(pair(host, lab.server.addr4, listener))
                # while its session begins, a converted connection counts twice: once for its SYN
                wait_until(lambda: peer != lab.converter.core4 or relayed() > before, 5, process.log_text)
                return client, server, peer
            yield lab, phone, tablet, connected
        equal(process.stop(), 0, "convertgw's status")


def test_limits():
    """Further connections of a client at its limit are routed; those of other clients are converted."""
    with limited("--max-connections-per-client", "2") as (lab, phone, tablet, connected):
        for number in (1, 2):
            equal(connected(phone)[2], lab.converter.core4, "who connects to the server, connection %d" % number)
        equal(connected(phone)[2], lab.client.wifi4, "who connects to the server at the limit")
        equal(connected(tablet)[2], lab.converter.core4, "who connects for another client")


def test_open_connections_stay():
    """One client has all of --max-connections: another's connection is routed, and none of the open ones ends for it."""
    with limited("--max-connections", "3") as (lab, phone, tablet, connected):
        pairs = [connected(phone) for _ in range(3)]
        equal([peer for _, _, peer in pairs], [lab.converter.core4] * 3, "who connects to the server")
        equal(connected(tablet)[2], lab.client.wifi4, "who connects for another client")
        for client, server, _ in pairs:
            client.sendall(b"x")
            equal(server.recv(1), b"x", "a byte on an open connection")


@waits
def test_a_routed_syn_comes_again():
    """A SYN that was routed at a limit comes again when there is room: it takes the same way, counts once, and the client is connected."""
    with gateway_lab() as lab:
        lab.convertd()
        phone = add_lan(lab)
        masquerade(lab)
        process = start_gateway(lab, args=("--lan", "lan", "--max-connections-per-client", "2", *METRICS))
        with listening(lab.server, lab.server.addr4) as listener, phone.socket() as client, \
                lab.capture(lab.client, "wifi", "tcp port %d" % PORT) as wifi:
            def routed():
                return sum(p.syn for p in wifi.packets())
            with contextlib.ExitStack() as stack:
                for number in (1, 2):
                    stack.enter_context(pair(phone, lab.server.addr4, listener))
                    wait_until(lambda: process.log_text().count("connecting -> relay") == number, 5, process.log_text)  # pylint: disable=W0640
                lab.server.run(["nft", "add table inet deaf; add chain inet deaf in { type filter hook input priority 0; }; "
                                "add rule inet deaf in ip saddr %s drop" % lab.client.wifi4])
                client.setblocking(False)
                client.connect_ex((lab.server.addr4, PORT))
                wait_until(routed, 10, "the SYN at the limit to be routed")
            wait_until(lambda: process.log_text().count("-> closed") == 2, 10, "room for another connection")
            before = routed()
            wait_until(lambda: routed() > before, 10, "the client's next SYN to be routed")
            lab.server.run(["nft", "delete table inet deaf"])
            accepted, peer = listener.accept()
            with accepted:
                equal(peer[0], lab.client.wifi4, "who connects to the server")
                accepted.sendall(b"x")
                client.settimeout(15)
                equal(client.recv(1), b"x", "what the client gets")
        equal(list(Metrics(lab.client).family("convertgw_routed_total", "reason").values()), [1], "routed connections")


def test_max_pending():
    """All of --max-pending may wait for a silent server; connections beyond it are routed."""
    with scene("--max-pending", "8", *METRICS) as (lab, phone, _), contextlib.ExitStack() as stack:
        def ask_silent_server(count):
            for _ in range(count):
                sock = stack.enter_context(phone.socket())
                sock.setblocking(False)
                sock.connect_ex((lab.addresses.blackhole4, 80))

        def routed(metrics):
            return metrics.family("convertgw_routed_total", "reason")
        equal(way(lab, phone), CONVERTED, "a connection that shows the converter that its network works")
        ask_silent_server(6)
        metrics = wait_metrics(lab.client, lambda metrics: metrics("convertgw_withheld_syns") == 6, "six withheld SYNs")
        equal(routed(metrics), {}, "what was routed")
        ask_silent_server(3)
        metrics = wait_metrics(lab.client, lambda metrics: metrics("convertgw_withheld_syns") == 8 and routed(metrics), "the ninth to be routed")
        equal(list(routed(metrics)), ["the client, or all clients, have too many connections"], "why it was routed")


def test_pipes_of_one_worker():
    """A gateway with one worker carries uploads, which their servers hold up, through pipes."""
    with limited("--workers", "1", *METRICS) as (lab, phone, _, connected):
        uploads = [connected(phone) for _ in range(4)]
        equal(Metrics(lab.client)("convertgw_relay_pipes"), 0, "pipes at first")
        for client, _, _ in uploads:
            client.setblocking(False)

        def has_pipe(metrics):
            if metrics("convertgw_relay_pipes"):
                return True
            for client, server, _ in uploads:
                # what is held up behind a read that was no bulk is in a buffer; a pipe is asked for again with more bytes only
                fill(client)
                server.recv(65536)
            return False
        wait_metrics(lab.client, has_pipe, "a pipe")


def test_few_descriptors():
    """More connections than the gateway has descriptors for: the others are routed, and each client hears its server."""
    with scene() as (lab, phone, process), contextlib.ExitStack() as stack:
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (160, 160))
        socks = [stack.enter_context(phone.socket()) for _ in range(100)]
        for sock in socks:
            sock.setblocking(False)
            sock.connect_ex((lab.server.addr4, PORT))
        told = collections.Counter()
        for sock in socks:
            sock.settimeout(15)
            told[sock.recv(100).decode()] += 1
        equal(sum(told.values()), 100, "connections")
        check(told[lab.converter.core4] > 20 and len(told) == 2, told)
        check("connections are routed: Too many open files" in process.log_text(), process.log_text())


def test_converters():
    """A converter by name, with a cookie from a file; a reload replaces it, and connections are converted again."""
    with gateway_lab() as lab:
        cookies, mine = (lab.directory + "/" + name for name in ("cookies", "cookie"))
        for path, text in ((cookies, "secret\n"), (mine, "secret\n")):
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
            os.chmod(path, 0o600)
        lab.convertd(["--cookie-list", cookies])
        tellers(lab, PORT)
        lab.names("near.example A 10.9.0.1", "_convert._tcp.example SRV 1 1 1234 near.example")
        phone = add_lan(lab)
        masquerade(lab)
        lines = ("lan lan", "cookie-file " + mine)
        configured = ConfiguredGateway(lab, *lines, "converter near.example")
        equal(way(lab, phone), CONVERTED, "by name")
        for converter in ("_convert._tcp.example", lab.converter.addr6):
            configured.reload(*lines, "converter " + converter)
            wait_until(lambda: way(lab, phone) == CONVERTED, 10, "a connection through " + converter)  # once its name is resolved
        configured.process.wait_log("from [%s]" % lab.client.wifi6)


def test_what_is_wrong_with_the_host():
    """--check-config names each setting of this host that keeps a gateway from working. Each printed remedy cures it as it stands."""
    with gateway_lab() as lab:
        add_lan(lab)
        masquerade(lab)
        words = [lab.build.program("convertgw"), "--check-config", "--lan", "lan", "--converter", lab.converter.addr4]

        def found(*more):
            return lab.client.run([*words, *more]).stderr

        def cured(text, start="sysctl -w ", end="\n"):
            said = found()
            check(text in said, "no \"%s\": %s" % (text, said))
            lab.client.run(["sh", "-c", start + said.split(start)[1].split(end)[0]])
            equal(found(), "", "findings after the remedy for: " + text)
        equal(found(), "", "a host as it should be")
        for name in ("net.ipv4.ip_forward", "net.ipv4.conf.lan.forwarding", "net.mptcp.enabled", "net.ipv4.tcp_fastopen",
                     "net.ipv6.conf.all.forwarding"):
            lab.client.sysctl(name, 0)
            cured("sysctl -w %s=1" % name if "ipv6" not in name else name + "=1")
        lab.client.run(["ip", "-6", "route", "replace", "default", "via", lab.converter.wifi6, "dev", "wifi", "metric", "1"])
        lab.client.sysctl("net.ipv6.conf.all.forwarding", 0)
        lab.client.sysctl("net.ipv6.conf.wifi.accept_ra", 1)
        cured("net.ipv6.conf.wifi.accept_ra=2 ")
        lab.client.ip("link set dev lan down")
        cured("lan is down, and its hosts reach nothing", "ip link set ")
        lab.client.run(["nft", "flush ruleset"])
        cured("no rule translates the private addresses of lan", "nft '")
        lab.client.run(["nft", "add table inet drops; add chain inet drops input { type filter hook input priority 0; policy drop; }"])
        check("a firewall drops new connections from lo" in found(), found())
        lab.client.run(["nft", "add rule inet drops input iifname \"lo\" accept"])
        equal(found(), "", "with the firewall's exception for lo")
        lab.client.ip("link add br9 type bridge", "link add port9 type veth peer name peer9", "link set port9 master br9")
        for more, text in (("--lan", "nosuch0"), "no interface nosuch0"), (("--lan", "port*"), "port9 is a port of br9"), (("--converter", "10.20.0.2"), "10.20.0.2:1234 is reached by lan"), \
                (("--converter", "10.20.0.2"), "all.send_redirects=0 net.ipv4.conf.lan.send_redirects=0"), \
                (("--convert", "device lan9"), "the rule for device lan9 matches nothing; add: --lan lan9"), \
                (("--route", "all", "--convert", "client 10.20.0.2"), "behind \"route all\" never decide"):
            check(text in found(*more), found(*more))


def test_what_is_wrong_at_the_start():
    """The log at the start names a missing masquerading rule, in spite of convertgw's own rules. Without rights they can't be read."""
    with gateway_lab() as lab:
        add_lan(lab)
        words = ["setpriv", "--reuid", "65534", "--clear-groups", "--bounding-set", "-all", "--inh-caps", "-all",
                 lab.build.program("convertgw"), "--check-config", "--lan", "lan", "--converter", lab.converter.addr4]
        check("rules for NAT can't be read: Operation not permitted; check as root" in lab.client.run(words).stderr, "a user without rights")
        start_gateway(lab).wait_log("warning: no rule translates the private addresses of lan")


def checked(lab, *words, env=None):
    """Returns what --check-config finds: (facts, faults)."""
    result = lab.client.run([lab.build.program("convertgw"), "--check-config", *words], env=env)
    return result.stdout, result.stderr


def test_nat_of_others():
    """--check-config reports as facts which networks another router translates, and which client may hide many hosts behind its address."""
    with gateway_lab() as lab:
        phone = add_lan(lab)
        masquerade(lab)
        for converter in ("203.0.113.1", "converter.example"):
            facts, faults = checked(lab, "--lan", "lan", "--converter", converter)
            equal([line.split(" (double NAT)")[0] for line in facts.splitlines()],
                  ["convertgw: another router translates %s, the address of %s" % pair for pair in
                   ((lab.client.wifi4, "wifi"), (lab.client.lte4, "lte"))], "facts with %s; faults: %s" % (converter, faults))
            check(facts.count("admit this host by a cookie, not by its address, and counts all hosts") == 2, facts)
        facts = checked(lab, "--lan", "lan", "--converter", "203.0.113.1", "--cookie", "secret", "--paths", "lte=never")[0]
        check("wifi" in facts and "lte" not in facts and "admit" not in facts, facts)
        for converter in (lab.converter.addr4, "2001:db8::1"):
            equal(checked(lab, "--lan", "lan", "--converter", converter)[0], "", "facts with " + converter)
        phone.sysctl("net.ipv6.conf.all.forwarding", 1)
        lab.client.run(["ping", "-c1", phone.lan6])
        equal(checked(lab, "--host", "--converter", lab.converter.addr4)[0], "", "facts without a LAN")
        wait_until(lambda: "%s at lan is a router: if it translates addresses (double NAT), all hosts behind it are one client" % phone.lan6 in
                   checked(lab, "--lan", "lan", "--converter", lab.converter.addr4)[0], 10, "the router among the clients")


def set_gro(host, device, value):
    """Does as "ethtool -K DEVICE gro on|off", which isn't installed everywhere."""
    with host.socket() as sock:
        command = ctypes.create_string_buffer(struct.pack("II", 0x2c, value))  # ETHTOOL_SGRO
        fcntl.ioctl(sock, 0x8946, struct.pack("16sP", device.encode(), ctypes.addressof(command)))  # SIOCETHTOOL


def test_offloads():
    """--check-config names devices without GRO, and those with LRO: of clients, of networks, and ports of their bridges."""
    with gateway_lab() as lab:
        add_lan(lab)
        masquerade(lab)
        lab.client.ip("link add name vx type vxlan id 5 dstport 4789 local %s" % lab.client.wifi4, "addr add 10.21.0.1/24 dev vx", "link set dev vx up",
                      "link add name br type bridge", "addr add 10.22.0.1/24 dev br", "link set dev br up")
        words = ("--lan", "lan", "--converter", lab.converter.addr4)
        equal(checked(lab, *words, "--lan", "vx", "--lan", "br")[1], "", "faults with GRO")
        set_gro(lab.client, "vx", 0)
        equal(checked(lab, *words)[1], "", "faults without GRO on a device that the gateway doesn't use")
        check("switch it on with: ethtool -K vx gro on" in checked(lab, *words, "--lan", "vx")[1], "the device of clients")
        lab.client.ip("link set dev vx master br")
        check("switch it on with: ethtool -K vx gro on" in checked(lab, *words, "--lan", "br")[1], "a port of the clients' bridge")
        set_gro(lab.client, "vx", 1)
        equal(checked(lab, *words, "--lan", "br")[1], "", "after the remedy")
        lro = {"LD_PRELOAD": c_program("lro.so", "lro.c", flags=("-shared", "-fPIC")), "ASAN_OPTIONS": "verify_asan_link_order=0"}
        equal(checked(lab, "--host", "--converter", lab.converter.addr4, env=lro)[1], "", "LRO of a host that forwards nothing")
        faults = checked(lab, *words, env=lro)[1]
        check("switch it off with: ethtool -K lte lro off" in faults and faults.count("\n") == 1, faults)


def test_two_gateways():
    """A second gateway on the host says so and changes nothing."""
    with scene() as (lab, phone, _):
        second = start_gateway(lab, wait=False)
        wait_until(lambda: second.poll() is not None, 10, "the second gateway's end")
        check("another convertgw" in second.log_text(), second.log_text())
        equal(way(lab, phone), CONVERTED, "the first one's client")


@long
def test_overloaded():
    """The gateway stands still: once its queue is full, SYNs are routed at once; afterwards it converts again."""
    with scene("--workers", "1") as (lab, phone, process):
        equal(way(lab, phone), CONVERTED, "before")
        process.send_signal(signal.SIGSTOP)
        socks = []

        def routed():
            for _ in range(200):
                socks.append(phone.socket())
                socks[-1].setblocking(False)
                socks[-1].connect_ex((lab.server.addr4, PORT))
            return any(map(is_connected, socks))
        try:
            wait_until(routed, 60, "a connection that is routed")
        finally:
            process.send_signal(signal.SIGCONT)
            for sock in socks:
                sock.close()
        wait_until(lambda: way(lab, phone) == CONVERTED, 30, "the gateway to convert again")


if __name__ == "__main__":
    main()
