#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_begin_refused.py - something on a network answers in the converter's place, or one connection of many gets no answer"""
import os
import re

from convertlab import Lab, Link, check, equal, kernel, long, main, need, wait_until, waits
from convertlab.peers import asked_to_connect
from test_begin import APPS, curl, lab_for, probe, remembering, served, unmoved
from test_supervise_begin import Supervised

REFUSES = "the path to it refuses ("
LEFT_ALONE = "left alone for 30 s"
DIRECT = "direct, the converter fails: "
PORTAL_PORT = 8081
FIREWALL = """table inet hotel { chain in { type filter hook input priority 0; iifname { %s } tcp dport 1234 reject with tcp reset; }; }"""
REDIRECTION = "table inet hotel { chain in { type nat hook prerouting priority -100; iifname { %s } tcp dport 1234 redirect to :%d; }; }"
ONE_IS_MUTE = "table inet mute { chain in { type filter hook prerouting priority -500; tcp sport 45001 tcp dport 1234 drop; }; }"


def refuses(lab, way, networks="wifi"):
    """Has these networks' router reset connections to the converter's port, or redirect them to a portal that answers in this way."""
    if way == "firewall":
        lab.converter.run(["nft", "-f", "-"], input=FIREWALL % networks)
        return
    lab.start_listening(lab.converter, ["python3", os.path.join(APPS, "portal.py"), PORTAL_PORT, way], PORTAL_PORT, name="portal")
    lab.converter.run(["nft", "-f", "-"], input=REDIRECTION % (networks, PORTAL_PORT))


def takes_lte(lab, way, ask, wanted):
    """Runs three programs, one after the other: each comes over lte, the first after wifi has refused it."""
    with lab.capture(lab.converter, "wifi", "tcp port 1234") as wifi, lab.capture(lab.converter, "lte", "tcp port 1234") as lte:
        seen = [ask() for _ in range(3)]
    log = lab.shim_log()
    equal(seen, [wanted] * 3, "%s in\n%s" % (way, log))
    equal((log.count(REFUSES), log.count(LEFT_ALONE), log.count("direct")), (1, 0, 0), "%s in\n%s" % (way, log))
    asked = asked_to_connect(lte)
    equal(len(asked), 3, "requests on lte, %s, in\n%s" % (way, log))
    # the first program's request, which it may repeat in a safer way of asking; the other programs only probe wifi
    check(len(asked_to_connect(wifi)) <= 3, "requests on wifi, %s: %s, in\n%s" % (way, asked_to_connect(wifi), log))
    check("converted over TCP" not in log, "a portal's lack of Multipath TCP was noted of the converter, %s, in\n%s" % (way, log))


def takes_lte_meanwhile(way):
    """Connections take lte while wifi refuses in this way, and wifi afterwards."""
    with lab_for() as lab:
        served(lab)
        refuses(lab, way)
        takes_lte(lab, way, lambda: curl(lab)[1], lab.client.lte4)
        lab.converter.run(["nft", "delete table inet hotel"])
        wait_until(lambda: curl(lab)[1] == lab.client.wifi4, 10, lambda: "wifi to be used again:\n" + lab.shim_log())


@kernel.needs("fastopen")
def test_firewall():
    """Wifi's router resets connections to the converter's port: connections take lte, and wifi once the port is open."""
    takes_lte_meanwhile("firewall")


@kernel.needs("fastopen")
def test_portal():
    """Wifi's router redirects all connections to a portal, which speaks HTTP: they take lte, and wifi once the user has logged in."""
    takes_lte_meanwhile("http")


@long
@waits
@kernel.needs("fastopen")
def test_each_answer_and_each_way_to_wait():
    """The program sees the same as over a connection without libconvert."""
    for way in ("firewall", "http", "tls", "close", "reset"):
        with lab_for() as lab:
            served(lab)
            ways = ("blocking", "poll", "epoll-edge", "epoll-before")
            usual = [probe(lab, each) for each in ways]
            refuses(lab, way)
            takes_lte(lab, way, lambda lab=lab: curl(lab)[1], lab.client.lte4)
            seen = [probe(lab, each, env=remembering(lab, "runtime-" + each)).replace(lab.client.lte4, lab.client.wifi4) for each in ways]
            equal(seen, usual, "what programs see by %s, %s, in\n%s" % (ways, way, lab.shim_log()))
            said = lab.client.run(["curl", "-sS", "-m", "15", "--tcp-fastopen", "-d", "x" * 1000, "http://%s/" % lab.server.addr4],
                                  env=remembering(lab, "runtime-early")).stdout
            check("bytes=1000 " in said, said + lab.shim_log())
            check("direct" not in lab.shim_log(), lab.shim_log())


@long
@waits
@kernel.needs("calls")
@kernel.needs("fastopen")
def test_supervised():
    for way in ("firewall", "http", "tls"):
        for words in ((), ("nonblocking",)):
            with lab_for() as lab:
                served(lab)
                program = Supervised(lab)
                refuses(lab, way)
                takes_lte(lab, way, lambda words=words, program=program: program.echo(*words), {lab.client.lte4})


@long
@waits
def test_both_networks_refuse():
    """Then CONVERT_FALLBACK decides: a direct connection over the usual network, or none."""
    for way in ("firewall", "http"):
        for fallback in ("direct", "none"):
            with lab_for() as lab:
                served(lab)
                refuses(lab, way, "wifi, lte")
                env = remembering(lab, CONVERT_FALLBACK=fallback)
                if fallback == "direct":
                    equal([curl(lab, env=env)[1] for _ in range(2)], [lab.client.wifi4] * 2, "addresses, in\n" + lab.shim_log())
                else:
                    said = lab.client.run(["python3", os.path.join(APPS, "connect_probe.py"), "blocking", lab.server.addr4, 7], env=env).stdout
                    check("ECONNREFUSED" in said, said + lab.shim_log())
                equal(lab.shim_log().count(LEFT_ALONE), 1, "%s, %s in\n%s" % (way, fallback, lab.shim_log()))


@kernel.needs("fastopen")
def test_one_network_that_refuses():
    """There is no other network: the request is sent once more, from another port, before all programs let the converter rest."""
    for way in ("firewall", "http"):
        with Lab(wifi=Link(delay_ms=10), lte=None, core=Link(delay_ms=5)) as lab:
            served(lab)
            refuses(lab, way)
            with lab.capture(lab.converter, "wifi", "tcp dst port 1234") as wifi:
                for _ in range(3):
                    curl(lab)
            log = lab.shim_log()
            equal((log.count("asked once more"), log.count(LEFT_ALONE)), (1, 1), "%s in\n%s" % (way, log))
            asked = asked_to_connect(wifi)
            # a portal without Multipath TCP gets requests over TCP, too
            check(len(asked) == 2 if way == "firewall" else 2 <= len(asked) <= 6, "%d requests, %s, in\n%s" % (len(asked), way, log))


def mute_one(lab):
    """Drops packets from one port of the client; returns a function that runs curl."""
    need("curl")
    lab.converter.run(["nft", "-f", "-"], input=ONE_IS_MUTE)
    return lambda *options, **how: lab.client.run(["curl", "-sS", "-m", "15", "-o", "/dev/null", "-w", "%{http_code}", *options,
                                                   "http://%s/bytes/10" % lab.server.addr4], **how).stdout


@long
@waits
@kernel.needs("fastopen")
def test_one_silent_connection():
    """Packets from one port of the client are lost: that connection goes directly, and the next program's is converted."""
    for known in (False, True):
        with Lab(wifi=Link(delay_ms=10), lte=None, core=Link(delay_ms=5)) as lab:
            served(lab)
            get = mute_one(lab)
            env = remembering(lab)
            if known:
                equal(get(env=env), "200", "the first answer")
            with lab.capture(lab.converter, "wifi", "tcp dst port 1234") as wifi:
                equal(get("--local-port", "45001", env=env), "200", "the answer, in\n" + lab.shim_log())
                equal(get(env=env), "200", "the next answer")
            log = lab.shim_log()
            check("no answer in time, but it answers others" in log and LEFT_ALONE not in log, log)
            equal(log.count("converted over MPTCP"), 1 + known, "conversions in\n" + log)
            equal({p.sport for p in wifi.packets() if p.syn and not p.ack} & {45001}, {45001}, "the mute port")
            equal(len(asked_to_connect(wifi) - {(lab.client.wifi4, 45001)}), 1, "requests of the others, in\n" + log)


@kernel.needs("fastopen")
def test_multipath_tcp_is_each_network_s_own():
    """Wifi's router strips the options of Multipath TCP: connections that begin on lte are still Multipath TCP."""
    with lab_for(wifi=Link(delay_ms=10, strip_mptcp=True)) as lab:
        served(lab)
        found, said = unmoved(lab, lambda name: [curl(lab, env=remembering(lab, name, CONVERT_PATHS=wish))[1] for wish in ("", "", "lte")])
        equal(found, [lab.client.wifi4] * 2 + [lab.client.lte4], "addresses, in\n" + said)
        equal(re.findall("converted over [A-Z]+", said), ["converted over TCP"] * 2 + ["converted over MPTCP"], "in\n" + said)


@long
@waits
@kernel.needs("fastopen")
def test_bound_program_blames_its_network():
    """A program binds its socket to a network that is dead, or whose router resets the converter's port: others are still converted."""
    for breaks in (lambda lab: lab.lte.down(), lambda lab: refuses(lab, "firewall", "lte")):
        with lab_for() as lab:
            served(lab)
            breaks(lab)
            lab.client.run(["curl", "-sS", "-m", "6", "-o", "/dev/null", "--interface", lab.client.lte4, "http://%s/bytes/10" % lab.server.addr4],
                           env=remembering(lab), check=False)
            equal(curl(lab)[1], lab.client.wifi4, "the address, in\n" + lab.shim_log())
            log = lab.shim_log()
            equal((log.count("on the network that the program has chosen"), log.count(LEFT_ALONE), log.count("converted over MPTCP")), (1, 0, 1), log)


@long
@waits
@kernel.needs("fastopen")
def test_converter_that_is_dead():
    """Nothing answers: the first program waits for CONVERT_TIMEOUT, and the next ones don't ask the converter."""
    with Lab(wifi=Link(delay_ms=10), lte=None, core=Link(delay_ms=5)) as lab:
        served(lab)
        curl(lab)
        lab.converter.run(["nft", "-f", "-"], input=ONE_IS_MUTE.replace("tcp sport 45001", ""))
        with lab.capture(lab.converter, "wifi", "tcp dst port 1234") as wifi:
            for _ in range(3):
                curl(lab)
        log = lab.shim_log()
        equal((log.count(LEFT_ALONE), log.count(DIRECT)), (1, 1), "in\n" + log)
        equal(len(asked_to_connect(wifi)), 1, "requests in\n" + log)


if __name__ == "__main__":
    main()
