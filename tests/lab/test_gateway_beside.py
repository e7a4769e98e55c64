#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_gateway_beside.py - convertgw beside other software on its host: firewalls, NAT, bridges of containers, WireGuard, other proxies"""
import contextlib
import errno
import signal
import socket

from convertlab import Unsuitable, check, equal, long, main, wait_until, waits
from convertlab.gateways import PORT, add_lan, connect, gateway_lab, is_connected, listening, masquerade, outcome, pair, start_gateway
from convertlab.links import Cable, Veth
from test_gateway_rules import CONVERTED, REFUSED, ROUTED, scene, tellers, way


def nft(host, rules):
    host.run(["nft", "-f", "-"], input=rules)


def ways(lab, phone):
    """The ways that connections take over IPv4 and IPv6."""
    return [way(lab, phone), way(lab, phone, lab.server.addr6)]


# Like the rules of ufw and firewalld, firewalld's check of IPv6 source addresses included.
DROPPING = """table inet firewall {
 chain sources {
  type filter hook prerouting priority filter + 10; policy accept;
  icmpv6 type { nd-router-advert, nd-neighbor-solicit } accept
  meta nfproto ipv6 fib saddr . mark . iif oif missing drop
 }
 chain input {
  type filter hook input priority filter; policy drop;
  ct state established,related accept
  iifname "lo" accept
  icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert, nd-router-advert } accept
 }
 chain forward {
  type filter hook forward priority filter + 10; policy drop;
  ct state established,related accept
  ct state invalid drop
  iifname "lan" tcp dport != 81 accept
  iifname "lan" reject with icmpx admin-prohibited
 }
 chain output {
  type filter hook output priority filter + 10; policy drop;
  ct state established,related accept
  oifname "lo" accept
  tcp dport != 81 accept
  meta l4proto { icmp, icmpv6 } accept
  reject with icmpx admin-prohibited
 }
}
"""


def test_firewalls():
    """A firewall drops new connections to the host: convertgw converts clients, but no connection that the firewall forbids."""
    with scene("--host", ports=(PORT, 81)) as (lab, phone, process):
        nft(lab.client, DROPPING)
        equal(ways(lab, phone), [CONVERTED] * 2, "clients")
        equal(ways(lab, lab.client), [CONVERTED] * 2, "this host's programs")
        refused = "%s: %s" % (REFUSED, errno.errorcode[errno.EHOSTUNREACH])
        withheld = process.log_text().count("SYN of")
        equal(way(lab, phone, port=81), refused, "a client's connection that the firewall forbids")
        equal(way(lab, lab.client, port=81), refused, "a program's")
        equal(process.log_text().count("SYN of"), withheld, "withheld SYNs")


@long
@waits
def test_a_firewall_without_states():
    """A firewall drops all packets of clients to this host, those of established connections included: the log says so."""
    with scene() as (lab, phone, process):
        nft(lab.client, "table inet stateless {\n chain input { type filter hook input priority 0; iifname \"lan\" drop; }\n}\n")
        with contextlib.ExitStack() as stack:
            for _ in range(8):
                stack.enter_context(connect(phone, lab.server.addr4, PORT)[1])
            process.wait_log("has to accept established connections", timeout=20)


def test_nat_of_others():
    """Masquerading without an interface, as Docker's, changes no converted connection; connections that NAT redirects aren't converted."""
    with scene("--host", ports=(PORT, 99)) as (lab, phone, _):
        tellers(lab, 98, host=lab.client)
        nft(lab.client, """table inet docker {
 chain out {
  type nat hook postrouting priority srcnat;
  oifname != "lan" masquerade
 }
 chain in {
  type nat hook prerouting priority dstnat;
  tcp dport 97 dnat ip to %s:99
  tcp dport 96 redirect to :98
 }
 chain own {
  type nat hook output priority -100;
  meta skuid 0 tcp dport 97 dnat ip to %s:99
 }
}
""" % (lab.server.addr4, lab.server.addr4))
        equal(ways(lab, phone), [CONVERTED] * 2, "clients")
        equal(ways(lab, lab.client), [CONVERTED] * 2, "this host's programs")
        equal([way(lab, phone, "10.8.0.77", 97), way(lab, phone, port=96), way(lab, lab.client, "10.8.0.77", 97)], [ROUTED] * 3,
              "a virtual address, a proxy on this host, and a virtual address for this host's programs")


def add_container(lab, name, number):
    """Adds a host on the client's bridge docker9, whose packets netfilter sees (br_netfilter)."""
    host = lab.add_host(name)
    Cable(Veth(), "port%d" % number, lab.client, host)
    lab.client.ip("link set port%d master docker9" % number)
    host.ip("addr add 10.29.0.%d/24 dev port%d" % (number, number), "addr add fd29::%d/64 dev port%d nodad" % (number, number),
            "addr add 2001:db8:29::%d/64 dev port%d nodad" % (number, number), "route add default via 10.29.0.1", "route add default via fd29::1")
    return host


def test_a_bridge_of_containers():
    """A bridge whose packets netfilter sees, as Docker's: converted in both families; between containers nothing changes."""
    with gateway_lab() as lab:
        lab.convertd()
        tellers(lab, PORT)
        lab.client.sysctl("net.ipv4.ip_forward", 1)
        lab.client.sysctl("net.ipv6.conf.all.forwarding", 1)
        lab.client.ip("link add docker9 type bridge", "link set docker9 up", "addr add 10.29.0.1/24 dev docker9",
                      "addr add fd29::1/64 dev docker9 nodad")
        one, two = add_container(lab, "one", 2), add_container(lab, "two", 3)
        for name in ("iptables", "ip6tables"):
            if not lab.client.has_sysctl("net.bridge.bridge-nf-call-" + name):
                raise Unsuitable("this kernel has no br_netfilter")
            lab.client.sysctl("net.bridge.bridge-nf-call-" + name, 1)
        masquerade(lab)
        process = start_gateway(lab, args=("--lan", "docker9"))
        equal(ways(lab, one), [CONVERTED] * 2, "a container's connections")
        withheld = process.log_text().count("SYN of")
        for address in ("10.29.0.3", "2001:db8:29::3"):
            with listening(two, address) as listener:
                error, sock = connect(one, address, PORT)
                equal(error, 0, "errno of connect() to another container at " + address)
                with sock, listener.accept()[0]:
                    pass
        equal(process.log_text().count("SYN of"), withheld, "withheld SYNs")


def test_marks_in_lookups():
    """Converted if the kernel validates source addresses with the packet's mark (WireGuard's src_valid_mark), or connections inherit it."""
    with scene("--host") as (lab, phone, _):
        for name in ("ipv4.conf.all.src_valid_mark", "ipv4.conf.all.rp_filter", "ipv4.tcp_fwmark_accept", "ipv4.fwmark_reflect",
                     "ipv6.fwmark_reflect"):
            lab.client.sysctl("net." + name, 1)
            equal(ways(lab, phone), [CONVERTED] * 2, "clients, with " + name)
            equal(ways(lab, lab.client), [CONVERTED] * 2, "this host's programs, with " + name)


def test_syn_cookies():
    """SYN cookies leave no socket for the third ACK: converted all the same, and the host routes no packet to the server."""
    with scene("--host") as (lab, phone, _), lab.capture(lab.client, "wifi", "tcp port %d" % PORT) as wifi:
        lab.client.sysctl("net.ipv4.tcp_syncookies", 2)
        equal(ways(lab, phone), [CONVERTED] * 2, "clients")
        equal(ways(lab, lab.client), [CONVERTED] * 2, "this host's programs")
        equal([str(p) for p in wifi.packets()], [], "packets to the server")


# Other programs' rules for marks, in prerouting, output and postrouting.
MARKING = {
    "saved": ("", "", "ct mark set meta mark"),
    "saved and restored": ("meta mark set ct mark", "meta mark set ct mark", "ct mark set meta mark"),
    "set": ("meta mark set 0x2", "meta mark set 0x2", "meta mark set 0x2"),
    "added, with tables": ("meta mark set ct mark meta mark set meta mark | 0x2 ct mark set meta mark",
                           "meta mark set ct mark meta mark set meta mark | 0x2 ct mark set meta mark", ""),
}


def test_marks_of_others():
    """Whichever marks other programs set, save and restore: all is converted. Of untracked connections, only clients' are."""
    with scene("--host") as (lab, phone, _):
        for words in ((), ("-6",)):
            lab.client.run(["ip", *words, "rule", "add", "fwmark", "0x2/0x2", "lookup", "102", "pref", "2000"])
            lab.client.run(["ip", *words, "rule", "add", "lookup", "main", "suppress_prefixlength", "0", "pref", "1000"])
        with lab.capture(lab.client, "wifi", "tcp port %d" % PORT) as wifi, lab.capture(lab.client, "lte", "tcp port %d" % PORT) as lte:
            for name, rules in MARKING.items():
                nft(lab.client, """table inet marking {
 chain one { type filter hook prerouting priority mangle; %s; }
 chain two { type route hook output priority mangle; %s; }
 chain three { type filter hook postrouting priority mangle; %s; }
}""" % rules)
                equal(ways(lab, phone), [CONVERTED] * 2, "clients, with marks " + name)
                equal(ways(lab, lab.client), [CONVERTED] * 2, "this host's programs, with marks " + name)
                nft(lab.client, "delete table inet marking")
        equal([str(p) for c in (wifi, lte) for p in c.packets()], [], "packets to the server past the converter")
        nft(lab.client, """table inet untracked {
 chain one { type filter hook prerouting priority raw; iifname "lan" notrack; }
 chain two { type filter hook output priority raw; notrack; }
}""")
        equal([way(lab, phone), way(lab, lab.client)], [CONVERTED, ROUTED], "untracked connections of a client, and of a program")


def test_another_proxy():
    """Another program's transparent listener, such as Squid's, gets no packet of a routed connection to its port."""
    with scene(ports=(3129,), private=False) as (lab, phone, _):
        with lab.client.socket() as proxy:
            proxy.setsockopt(socket.IPPROTO_IP, 19, 1)  # IP_TRANSPARENT
            proxy.bind(("0.0.0.0", 3129))
            proxy.listen()
            equal(way(lab, phone, port=3129), ROUTED, "a connection to the server")


def test_a_proxy_with_its_clients_addresses():
    """--host: a proxy on this host that connects from its client's address, as haproxy does with usesrc, is routed, and gets answers."""
    with scene("--host") as (lab, phone, _):
        lab.converter.ip("route add 10.20.0.0/24 via 10.1.0.2")
        nft(lab.client, """table inet proxy {
 chain in { type filter hook prerouting priority mangle; iifname "wifi" socket transparent 1 meta mark set 1; }
}""")
        lab.client.ip("rule add fwmark 1 lookup 55 pref 300", "route add local default dev lo table 55")
        with lab.client.socket() as sock:
            sock.setsockopt(socket.IPPROTO_IP, 19, 1)  # IP_TRANSPARENT
            sock.settimeout(5)
            sock.bind((phone.lan4, 0))
            sock.connect((lab.server.addr4, PORT))
            equal(sock.recv(100).decode(), lab.client.wifi4, "the server's client")


def test_another_gateway():
    """A second gateway with a port, a table and marks of its own names the first one, and leaves it alone."""
    with scene() as (lab, phone, _):
        rules = lab.client.run(["ip", "rule"]).stdout
        for words in (("--port", "8804"), ("--port", "8804", "--table", "8804", "--mark", "0x3")):
            second = start_gateway(lab, args=("--lan", "lan", *words), wait=False)
            equal(second.wait(10), 1, "status")
            check("another convertgw runs here" in second.log_text(), second.log_text())
            equal(lab.client.run(["ip", "rule"]).stdout, rules, "policy rules")
            equal(way(lab, phone), CONVERTED, "the first one's client")


def test_policy_rules_that_others_remove():
    """convertgw restores policy rules that another program removes, as systemd-networkd does; meanwhile no released SYN leaves the host."""
    def remove():
        for words in ((), ("-6",)):
            for priority in range(87, 91):
                lab.client.run(["ip", *words, "rule", "del", "pref", priority])
    with scene("--host") as (lab, phone, process):
        equal(ways(lab, phone), [CONVERTED] * 2, "before")
        rules = lab.client.run(["ip", "rule"]).stdout
        process.send_signal(signal.SIGSTOP)
        remove()
        with lab.capture(lab.client, "wifi", "dst host " + lab.server.addr4) as wifi, lab.client.socket() as sock, \
                lab.client.socket(kind=socket.SOCK_DGRAM) as other:
            sock.setblocking(False)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, 0x0c000000)  # the mark of a released SYN
            sock.connect_ex((lab.server.addr4, PORT))
            other.sendto(b"x", (lab.server.addr4, PORT))
            wait_until(wifi.packets, 10, "a packet without the mark")
            check(not any(p.syn for p in wifi.packets()), "the SYN left this host")
        process.send_signal(signal.SIGCONT)
        wait_until(lambda: lab.client.run(["ip", "rule"]).stdout == rules, 10, "the policy rules")
        equal(ways(lab, phone), [CONVERTED] * 2, "afterwards")


def test_policy_rules_that_others_add():
    """A new policy rule for the LAN in front of the gateway's takes no packet of a converted connection: the gateway moves its rules."""
    with scene() as (lab, phone, _), listening(lab.server, lab.server.addr4, 90) as listener:
        lab.client.ip("route add unreachable default table 77")
        with phone.socket() as client:
            client.connect((lab.server.addr4, 90))
            with listener.accept()[0] as accepted:
                for words in (["ip"], ["ip", "-6"]):
                    for more in ([], ["pref", "3"]):
                        lab.client.run([*words, "rule", "add", *more, "iif", "lan", "tos", "0x10", "lookup", "77"])
                        wait_until(lambda words=words: "fwmark" in lab.client.run([*words, "rule"]).stdout.splitlines()[1], 10, "the rules' move")
                client.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 0x10)
                client.sendall(b"x")
                equal(accepted.recv(1), b"x", "a byte")
        for words in ((), ("-6",)):
            equal(lab.client.run(["ip", *words, "rule"]).stdout.count("proto 89"), 4, "policy rules of the gateway")


def test_without_a_right():
    """Without a right that it needs, convertgw names the right, changes nothing, and ends."""
    with gateway_lab() as lab:
        add_lan(lab)
        for right in ("net_admin", "net_raw"):
            words = [lab.build.program("convertgw"), "--lan", "lan", "--converter", lab.converter.addr4]
            process = lab.client.popen(["setpriv", "--bounding-set", "-" + right, "--", *words], name="convertgw")
            equal(process.wait(10), 1, "status without " + right)
            check("CAP_" + right.upper() in process.log_text(), process.log_text())
        check("convertgw" not in lab.client.run(["nft", "list", "tables"]).stdout, "tables")
        equal(lab.client.run(["ip", "rule"]).stdout.count("fwmark"), 0, "policy rules")


def test_a_port_that_is_taken():
    """convertgw names a port that another program has; and its metrics listener isn't transparent, unlike the listener for clients."""
    with scene("--metrics", "127.0.0.1:9100") as (lab, _, process):
        listeners = lab.client.run(["ss", "-tlnHO", "--inet-sockopt"], check=False).stdout
        equal(["transparent" in line for line in listeners.splitlines() if ":9100" in line], [False], listeners)
        check(any("transparent" in line for line in listeners.splitlines() if ":8803" in line), listeners)
        process.stop()
        with lab.client.socket() as other:
            other.bind(("127.0.0.1", 8803))
            other.listen()
            again = start_gateway(lab, wait=False)
            equal(again.wait(10), 1, "status")
            check("--port: another program listens on port 8803" in again.log_text(), again.log_text())


def test_left_by_a_killed_one():
    """The next start removes the rules and tables of a killed gateway with other interfaces, table and marks; its end removes its own."""
    with scene("--lan", "lan2", "--table", "77", "--mark", "0x3", "--require", "destination :81") as (lab, phone, process):
        process.kill()
        process.wait()
        check("lookup 77" in lab.client.run(["ip", "rule"]).stdout, "the first one's policy rules")
        again = start_gateway(lab)
        for words in ((), ("-6",)):
            rules = lab.client.run(["ip", *words, "rule"]).stdout
            check("lookup 77" not in rules, rules)
            equal([rules.count("fwmark 0x4000000/0xc000000 lookup 8803"), rules.count("lookup 8803"), rules.count("proto 89")], [1, 2, 4],
                  "the policy rules of the second one\n" + rules)
        equal(lab.client.run(["ip", "route", "show", "table", "all", "proto", "89"]).stdout.count("table 77"), 0, "routes that are left")
        check("convertgw_require" not in lab.client.run(["nft", "list", "tables"]).stdout, "the table of requirements is left")
        equal(way(lab, phone), CONVERTED, "a client")
        again.stop()
        left = [lab.client.run(["ip", *words, "rule"]).stdout.count("proto 89") for words in ((), ("-6",))]
        equal(left, [0, 0], "policy rules that are left")
        check("convertgw" not in lab.client.run(["nft", "list", "tables"]).stdout, "tables are left")


@long
@waits
def test_a_lost_answer():
    """The SYN+ACK to a client gets lost, and its SYN comes again: it belongs to its connection, and doesn't go to the server."""
    with scene() as (lab, phone, _), listening(lab.server, lab.server.addr4, 90) as listener:
        nft(phone, "table inet lossy {\n chain input { type filter hook input priority 0; tcp flags & (syn|ack) == syn|ack drop; }\n}\n")
        with lab.capture(lab.converter, "core", "tcp port 90") as core, lab.capture(lab.client, "lan", "tcp") as lan, \
                phone.socket() as client:
            client.setblocking(False)
            client.connect_ex((lab.server.addr4, 90))
            wait_until(lambda: sum(p.syn for p in lan.packets()) >= 2, 10, "the client's second SYN")
            phone.run(["nft", "delete table inet lossy"])
            client.settimeout(15)
            wait_until(lambda: is_connected(client), 15, "the connection")
            with listener.accept()[0] as accepted:
                accepted.sendall(b"x")
                equal(client.recv(1), b"x", "a byte")
            equal([p.src for p in core.packets() if p.syn], [lab.converter.core4], "who sent SYNs to the server")


@long
@waits
def test_a_released_syn_is_lost():
    """A firewall that reloads drops the SYN that the gateway has released: the client's next SYN makes the same connection."""
    for own in (False, True):
        with scene("--host") as (lab, phone, process), listening(lab.server, lab.server.addr4, 90) as listener:
            nft(lab.client, "table inet reload {\n chain input { type filter hook input priority 0; iifname lo tcp flags syn drop; }\n}\n")
            with lab.capture(lab.converter, "core", "tcp port 90") as core, (lab.client if own else phone).socket() as client:
                client.setblocking(False)
                client.connect_ex((lab.server.addr4, 90))
                process.wait_log("the server has answered")
                lab.client.run(["nft", "delete table inet reload"])
                with listener.accept()[0] as accepted:
                    accepted.sendall(b"x")
                    client.settimeout(15)
                    equal(client.recv(1), b"x", "a byte")
                equal([p.src for p in core.packets() if p.syn], [lab.converter.core4], "who sent SYNs to the server")


def give_up(lab, phone, count):
    """Has clients begin connections that they don't complete, and waits until the gateway has ended those, too."""
    for _ in range(count):
        with phone.socket() as sock:
            sock.setblocking(False)
            sock.connect_ex((lab.server.addr4, 90))
    made = ["ss", "-Htn", "dport = :1234"]
    wait_until(lambda: len(lab.client.run(made).stdout.splitlines()) == count, 10, "the gateway's connections")
    wait_until(lambda: not lab.client.run(made).stdout, 60, "their end")


@long
@waits
def test_clients_that_give_up():
    """Only many in a row that don't complete their connections are a sign of this host's firewall."""
    with scene() as (lab, phone, process), listening(lab.server, lab.server.addr4, 90):
        nft(phone, "table inet lost {\n chain input { type filter hook input priority 0; tcp sport 90 drop; }\n}\n")
        give_up(lab, phone, 5)
        equal(way(lab, phone), CONVERTED, "another client")
        wait_until(lambda: not lab.client.run(["ss", "-Htn", "dport = :1234"]).stdout, 10, "its end")
        give_up(lab, phone, 5)
        check("in a row" not in process.log_text(), process.log_text())
        give_up(lab, phone, 3)
        process.wait_log("8 clients in a row")


@long
@waits
def test_ports_used_again():
    """A client connects again from a port for which the gateway has a socket in TIME_WAIT: converted at once, or routed."""
    with scene() as (lab, phone, _), lab.capture(lab.client, "lan", "tcp") as lan:
        def again(port, protocol=0):
            with phone.socket(protocol=protocol) as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                client.settimeout(15)
                client.bind((phone.lan4, port))
                client.connect((lab.server.addr4, PORT))
                peer = client.recv(100).decode()
                equal(client.recv(100), b"", "the end, from the server's side first")
            if peer == lab.converter.core4:
                wait_until(lambda: "TIME-WAIT" in lab.client.run(["ss", "-tanH", "dport", "= %d" % port]).stdout, 10, "the gateway's TIME_WAIT")
            return peer
        equal([again(5555) for _ in range(3)], [lab.converter.core4] * 3, "the server's client")
        equal(sum(p.syn for p in lan.packets()), 3, "SYNs of the client")
        equal([again(5556), again(5556, 262)], [lab.converter.core4, lab.client.wifi4], "the server's client, and with Multipath TCP")
        nft(lab.converter, "table inet off {\n chain input { type filter hook input priority 0; tcp dport 1234 reject; }\n}\n")
        equal(again(5555), lab.client.wifi4, "the server's client, without a converter")


def test_other_lans():
    """From one LAN to another: routed, although the other host's address is public."""
    with scene("--lan", "lan2", private=False) as (lab, phone, process):
        other = add_lan(lab, "lan2", 21, "other")
        other.ip("addr add 11.22.33.44/32 dev lo")
        lab.client.ip("route add 11.22.33.44 via 10.21.0.2")
        tellers(lab, PORT, host=other)
        equal(way(lab, phone, "11.22.33.44"), ROUTED, "to another LAN")
        check("SYN of" not in process.log_text(), process.log_text())


def test_a_routed_connection_stays_routed():
    """A connection that was routed since no converter ran goes on after one starts, and after the gateway is killed."""
    with gateway_lab() as lab:
        phone = add_lan(lab)
        masquerade(lab)
        process = start_gateway(lab, args=("--lan", "lan", "--converter-timeout", "1"))
        with listening(lab.server, lab.server.addr4) as listener:
            with pair(phone, lab.server.addr4, listener) as (client, server, peer):
                equal(peer, lab.client.wifi4, "the server's client: the router")
                lab.convertd()
                client.sendall(b"x")
                equal(server.recv(1), b"x", "a byte once there is a converter")
                process.kill()
                process.wait()
                server.sendall(b"y")
                equal(client.recv(1), b"y", "a byte without a gateway")


def test_programs_of_this_host():
    """--host: programs get the server's refusals and errors; their packets don't loop; their marks and their choice of a device hold."""
    with gateway_lab() as lab:
        bad = lab.addresses
        cases = [(lab.server.addr4, bad.refused_port), (lab.server.addr6, bad.refused_port), (bad.unreachable4, 80), (bad.unreachable6, 80),
                 (bad.prohibited4, 80), (bad.prohibited6, 80)]
        direct = [outcome(lab.client, *case) for case in cases]
        lab.convertd()
        tellers(lab, PORT)
        process = start_gateway(lab, args=("--host",))
        equal([outcome(lab.client, *case) for case in cases], direct, "errno by errno, with the gateway as without")
        with lab.capture(lab.client, "wifi", "tcp port %d" % PORT) as wifi, lab.capture(lab.client, "lte", "tcp port %d" % PORT) as lte:
            equal(ways(lab, lab.client), [CONVERTED] * 2, "both families")
            equal(way(lab, lab.client, mark=0x20), CONVERTED, "a program that marks its packets")
            equal([str(p) for c in (wifi, lte) for p in c.packets()], [], "packets to the server past the converter")
        with listening(lab.server, lab.server.addr4, 92) as listener:
            for device, address in (("lte", lab.client.lte4), ("wifi", lab.client.wifi4)):
                with lab.client.socket() as sock:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
                    sock.settimeout(5)
                    equal(sock.connect_ex((lab.server.addr4, 92)), 0, "errno of connect() by " + device)
                    with listener.accept()[0] as accepted:
                        equal(accepted.getpeername()[0], address, "the server's client")
        check("goes on without us" not in process.log_text(), process.log_text())


if __name__ == "__main__":
    main()
