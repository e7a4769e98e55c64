#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertd_hold_switch.py - withholding goes on and off: at start and end, by a reload, without the capability, beside other tables"""
import os
import signal

from convertlab import Unsuitable, check, equal, kernel, main, need, wait_until
from convertlab.metrics import OPTIONS as METRICS, wait_metrics
from convertlab.peers import MPTCP, Client, Server, connect, connections, converter, error, extended_header, writable
from convertlab.withheld import DROP_FORGED, WITHHELD, WITHOUT_NET_ADMIN, far, netfilter_queues, rules, syns_to

NOT_AUTHORIZED = 0x20
SYN_SENT = "02"  # include/net/tcp_states.h
SANITIZED = bool(os.environ.get("SANITIZER_PRELOAD"))


def test_rules_go_with_the_process():
    """convertd's rules are for its own address and port, and go however it ends; a new convertd serves at once."""
    need("nft", "nftables")
    with far(core_ms=1) as lab, Server(lab, 80) as server:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
            process = lab.convertd(["--listen", "%s:1234" % lab.converter.addr4])
            process.wait_log(WITHHELD)
            listed = rules(lab)
            check("dport 1234" in listed and "daddr " + lab.converter.addr4 in listed, "the rules:\n" + listed)
            with Client(lab.client, lab.converter.addr4) as client:
                client.send(server.connect())
                server.accept().close()
                extended_header(client.answer())
            process.stop(number)
            # after SIGKILL the survivor closes the rules' socket a moment later
            wait_until(lambda: rules(lab) == "", 10, lambda number=number: "the rules to go after %s:\n%s"
                       % (signal.Signals(number).name, rules(lab)))
            with Client(lab.client, lab.converter.addr4, delivery="behind") as client:
                try:
                    client.send(b"")
                    check(False, "a process still listens")
                except ConnectionRefusedError:
                    pass


@kernel.needs("fastopen")
def test_off_without_permission():
    """Without CAP_NET_ADMIN, convertd logs one line about it, and serves; with "on" it doesn't start."""
    need("setpriv", "util-linux")
    with far(core_ms=1) as lab, Server(lab, 80) as server:
        process = lab.convertd(wrapper=WITHOUT_NET_ADMIN)
        process.wait_log("ready")
        equal(process.log_text().count("not withheld"), 1, "lines about it:\n" + process.log_text())
        check("CAP_NET_ADMIN" in process.log_text(), "no remedy in\n" + process.log_text())
        with Client(lab.client, lab.converter.addr4, MPTCP) as client:
            client.send(server.connect())
            server.accept().close()
            extended_header(client.answer())
        equal(process.stop(), 0, "its status")
        process = lab.converter.popen([*WITHOUT_NET_ADMIN, lab.build.program("convertd"), "--hold-syn", "on"], name="on")
        equal(process.wait(10), 1, "its status with on")
        check("--hold-syn: on: " in process.log_text(), "no reason in\n" + process.log_text())


def confirms(lab, server):
    """Connects a client to the server; returns whether the SYN+ACK confirmed the server (doc/private-tlvs.md)."""
    with Client(lab.client, lab.converter.addr4) as client:
        client.send(server.connect())
        server.accept().close()
        extended_header(client.answer())
        check(client.syn_data_taken(), "the data in the SYN wasn't taken")
        return client.confirmed()


@kernel.needs("fastopen")
def test_reload():
    """SIGHUP switches it off and on; convertd lets withheld SYNs go, and serves them. Clients that remember it as on aren't misled."""
    with far(core_ms=300) as lab, Server(lab, 80) as server:
        path = os.path.join(lab.directory, "convertd.conf")

        def configure(text):
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
        # the server's answer takes 600 ms, and convertd on a busy machine some more
        configure("hold-time 2900\n")
        with converter(lab, "--config", path, *METRICS) as process:
            check(confirms(lab, server), "a SYN+ACK confirms nothing")
            with Client(lab.client, lab.converter.addr4, MPTCP) as client:
                lab.core.down("b-to-a")  # the server's answer would let the SYN go
                client.send(server.connect())
                wait_until(lambda: 80 in connections(lab.converter, SYN_SENT), 5, "a SYN to the server")
                configure("hold-syn off\n")
                process.send_signal(signal.SIGHUP)
                process.wait_log("reloaded")
                wait_metrics(lab.converter, lambda metrics: "stopped" in metrics.family("convertd_syns_total", "fate"), "the SYN to be let go")
                lab.core.up()
                sock = server.accept()
                extended_header(client.answer())
                check(client.syn_data_taken(), "the SYN was dropped, not let go")
                sock.close()
            equal(netfilter_queues(lab), [], "netfilter queues")
            check(not confirms(lab, server), "a SYN+ACK confirms a server, though no SYN is withheld")
            configure("hold-syn on\nhold-time 1900\n")
            process.send_signal(signal.SIGHUP)
            process.wait_log("for 1900 ms at most")
            check(confirms(lab, server), "a SYN+ACK confirms nothing")
        equal(rules(lab), "", "rules at the end")


def refused_by_a_reload(lab, path, refused):
    """
    Reloads settings that don't grant a withheld SYN's request, and checks the answer. Returns False if the SYN was let go at the end of its
    hold time, without an answer.
    """
    def configure(text):
        with open(path, "w", encoding="ascii") as file:
            file.write("hold-time 2900\nconnect-timeout 20\n" + text)
    configure("")
    with converter(lab, "--config", path, *METRICS) as process, Client(lab.client, lab.converter.addr4, MPTCP) as client:
        client.send(connect(lab.addresses.blackhole4, 80))
        wait_until(lambda: 80 in connections(lab.converter, SYN_SENT), 5, "a SYN to the server")
        configure(refused)
        process.send_signal(signal.SIGHUP)
        fates = wait_metrics(lab.converter, lambda metrics: metrics.family("convertd_syns_total", "fate").keys() & {"not_granted", "late"},
                             "the SYN to be let go").family("convertd_syns_total", "fate")
        if "late" in fates:
            client.reset()
            return False
        equal(client.answer(), error(NOT_AUTHORIZED), "the answer")
        wait_until(lambda: 80 not in connections(lab.converter, SYN_SENT), 5, "convertd to give up to connect to the server")
    return True


@kernel.needs("fastopen")
def test_reload_judges_again():
    """A reload refuses a withheld SYN's request if the new settings don't grant it, at once, and gives the server's connection up."""
    with far() as lab:
        path = os.path.join(lab.directory, "convertd.conf")
        for refused in ("deny-destination %s\n" % lab.addresses.blackhole4, "deny-client 10.1.0.0/16\n"):
            # on a busy machine the hold time may be over before convertd has read the settings
            check(any(refused_by_a_reload(lab, path, refused) for _ in range(5)), "each time the SYN was withheld for all of the hold time")


@kernel.needs("fastopen")
def test_reload_removes_an_address():
    """In the midst of a reload, the address that it removes still has its rules: its SYN+ACK confirms no server that nobody has asked."""
    need("nft", "nftables")
    need("strace")
    if SANITIZED:
        raise Unsuitable("sanitizers don't work under strace")
    with far(core_ms=1) as lab:
        path = os.path.join(lab.directory, "convertd.conf")

        def configure(*ports):
            with open(path, "w", encoding="ascii") as file:
                file.write("".join("listen [::]:%d\n" % port for port in ports))
        configure(1234, 1235)
        process = lab.convertd(["--config", path])
        process.wait_log("ready")
        # it listens at the new address after the rules have changed, and before the old listener stops
        strace = lab.converter.popen(["strace", "-f", "-e", "trace=listen", "-e", "inject=listen:signal=SIGSTOP:when=1",
                                      "-p", str(process.serving)])
        strace.wait_log("attached")
        configure(1234, 1236)
        process.send_signal(signal.SIGHUP)
        strace.wait_log("stopped by SIGSTOP")
        with Client(lab.client, lab.converter.addr4, port=1235) as client:
            client.send(connect(lab.server.addr4, lab.addresses.refused_port))
            wait_until(lambda: any(netfilter_queues(lab)) or writable(client.sock, 0), 5, "the SYN to be withheld, or answered")
            os.kill(process.serving, signal.SIGCONT)
            check(writable(client.sock, 10), "no answer to the SYN")
            check(not client.confirmed(), "the SYN+ACK confirms a server that nobody has asked")
        process.wait_log("reloaded")
        strace.stop(signal.SIGINT)
        check("dport 1235" not in rules(lab), "rules for an address where nobody listens:\n" + rules(lab))


def test_another_table_that_goes():
    """When any chain is removed, as by a firewall's reload, the kernel drops withheld SYNs. A client is served by its next SYN."""
    need("nft", "nftables")
    with far(core_ms=400) as lab, Server(lab, 80) as server, converter(lab):
        lab.converter.run(["nft", "-f", "-"], input=DROP_FORGED)
        with lab.capture(lab.converter, "core", "tcp") as core, Client(lab.client, lab.converter.addr4) as client:
            client.send(server.connect())
            # long before the server's answer
            wait_until(lambda: syns_to(core.packets(), 80), 5, "a SYN to the server")
            lab.converter.run(["nft", "delete", "table", "inet", "forged"])
            wait_until(lambda: not any(netfilter_queues(lab)), 5, "the queues to be empty")
            server.accept().close()
            extended_header(client.answer())
        equal(len(syns_to(core.packets(), 80)), 1, "connections to the server")


@kernel.needs("fastopen")
def test_two_converters():
    """Two converters on one host have a queue each, and rules for their own ports."""
    with far(core_ms=1) as lab, Server(lab, 80) as server, converter(lab), \
            converter(lab, "--listen", "[::]:1235", port=1235):
        for port in (1234, 1235):
            with Client(lab.client, lab.converter.addr4, MPTCP, port=port) as client:
                client.send(server.connect())
                server.accept().close()
                extended_header(client.answer())
        equal(rules(lab).count("convertd_syns"), 2, "tables")


if __name__ == "__main__":
    main()
