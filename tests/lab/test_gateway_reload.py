#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_gateway_reload.py - convertgw reads its settings again: for the next connections, without harm to the open ones"""
import os
import signal

from convertlab import check, equal, main, wait_until
from convertlab.gateways import ConfiguredGateway, add_lan, gateway, gateway_lab, listening, masquerade, pair
from test_gateway import fetch


def test_reload():
    """SIGHUP during a connection: it goes on, and the new rules hold for the next one; wrong settings change nothing."""
    with gateway_lab() as lab:
        phone = add_lan(lab)
        masquerade(lab)
        lab.convertd()
        lines = ("converter " + lab.converter.addr4, "lan lan")
        configured = ConfiguredGateway(lab, *lines)
        with listening(lab.server, lab.server.addr4) as listener, \
                pair(phone, lab.server.addr4, listener) as (client, server, peer):
            equal(peer, lab.converter.core4, "the server's client")
            configured.reload(*lines, "route destination 10.8.0.1")
            with pair(phone, lab.server.addr4, listener) as (_, _, peer):
                equal(peer, lab.client.wifi4, "the server's client: the router")
            configured.fail_to_reload(*lines, "nonsense")
            with pair(phone, lab.server.addr4, listener) as (_, _, peer):
                equal(peer, lab.client.wifi4, "the server's client: the rules before are in force")
            client.sendall(b"x")
            equal(server.recv(1), b"x", "a byte on the open connection")


def test_reload_without_some_clients():
    """A reload without "host", and one without the LAN: their open connections go on both ways, their next ones are routed."""
    with gateway_lab() as lab:
        phone = add_lan(lab)
        masquerade(lab)
        lab.convertd()
        converter = "converter " + lab.converter.addr4
        configured = ConfiguredGateway(lab, converter, "lan lan", "host")

        def exchange(client, server):
            for one, other in ((client, server), (server, client)) * 3:
                one.sendall(b"x")
                equal(other.recv(1), b"x", "a byte on the open connection")

        with listening(lab.server, lab.server.addr4) as listener, \
                pair(phone, lab.server.addr4, listener) as (client, server, peer), \
                pair(lab.client, lab.server.addr4, listener) as (program, program_server, program_peer):
            client.settimeout(15)
            program.settimeout(15)
            equal((peer, program_peer), (lab.converter.core4, lab.converter.core4), "the server's clients")
            exchange(client, server)
            exchange(program, program_server)
            for host, line in ((lab.client, "lan lan"), (phone, "host"), (phone, "lan wifi")):
                configured.reload(converter, line)
                exchange(client, server)
                exchange(program, program_server)
                with pair(host, lab.server.addr4, listener) as (_, _, peer):
                    equal(peer, lab.client.wifi4, "the server's client with \"%s\" alone: the router" % line)


def test_reloads_during_a_lookup():
    """The name server is silent during two reloads, which free the settings that the lookup began with: convertgw goes on, and converts."""
    with gateway_lab() as lab:
        names = lab.names("near.example A 10.9.0.1")
        phone = add_lan(lab)
        masquerade(lab)
        lab.convertd()
        lab.http()
        configured = ConfiguredGateway(lab, "lan lan", "converter " + lab.converter.addr6)
        names.send_signal(signal.SIGSTOP)
        with lab.capture(lab.client, "wifi", "udp port 53") as queries:
            configured.reload("lan lan", "converter far.example")
            wait_until(queries.packets, 10, "a question for the first name")
            configured.reload("lan lan", "converter farther.example")
            configured.reload("lan lan", "converter near.example")
            names.send_signal(signal.SIGCONT)
        log_text = configured.process.log_text
        wait_until(lambda: fetch(phone, lab.server.addr4, 1000) and "converted over MPTCP" in log_text(), 20, log_text)
        equal(configured.process.poll(), None, "convertgw")


def test_a_cache_for_the_next_settings():
    """A reload with another cache directory makes it, and keeps there what it learns."""
    with gateway_lab() as lab:
        phone = add_lan(lab)
        masquerade(lab)
        lab.convertd()
        lab.http()
        caches = [lab.directory + "/first-cache", lab.directory + "/next-cache"]
        lines = ("lan lan", "converter " + lab.converter.addr4)
        configured = ConfiguredGateway(lab, *lines, "cache " + caches[0], cache=False)
        configured.reload(*lines, "cache " + caches[1])
        fetch(phone, lab.server.addr4, 1000)
        check(os.listdir(caches[1]), "nothing in " + caches[1])


def test_no_cache():
    """With "cache none", neither the start nor a reload makes a directory of that name."""
    with gateway_lab() as lab:
        add_lan(lab)
        lines = ("lan lan", "converter " + lab.converter.addr4, "cache none")
        ConfiguredGateway(lab, *lines, cache=False, cwd=lab.directory).reload(*lines)
        check("none" not in os.listdir(lab.directory), os.listdir(lab.directory))


def test_reloads_before_the_first_connection():
    """The first connection opens the cache by the settings in force: the second reload has freed the first ones."""
    with gateway_lab() as lab, gateway(lab) as (phone, process):
        lab.convertd()
        lab.http()
        for number in (1, 2):
            process.send_signal(signal.SIGHUP)
            wait_until(lambda number=number: process.log_text().count("info: reloaded") == number, 10, process.log_text)
        equal(fetch(phone, lab.server.addr4, 1000), lab.server.addr4, "the client's server")
        check("converted over MPTCP" in process.log_text(), process.log_text())


if __name__ == "__main__":
    main()
