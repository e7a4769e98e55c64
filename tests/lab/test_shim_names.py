#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_shim_names.py - applications whose converter is configured by the name of a host or of a service"""
import os

from convertlab import Lab, Link, check, equal, main

APPS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "apps")
ANSWERED = "answer b'hello'\nend b''\n"
CONVERTED = "converted over MPTCP"  # in the SYN or behind it: a busy machine may send a SYN again, without data
SERVICE = "_convert._tcp.lab.example"
OWN = "10.9.0.53"  # the name server of resolve_probe's customised application

CONVERTER = ["converter.lab.example A 10.9.0.1", "converter.lab.example AAAA fd09::1"]


def near():
    return Lab(wifi=Link(delay_ms=5), lte=None, core=Link(delay_ms=1))


def run_probe(lab, address, way="blocking", **env):
    return lab.client.run(["python3", os.path.join(APPS, "connect_probe.py"), way, address, 7], env=lab.converted(**env))


def probe(lab, address, way="blocking", **env):
    return run_probe(lab, address, way, **env).stdout


def check_converted(lab, name, ways=("blocking", "poll", "epoll-before")):
    """Connects to both of the server's addresses, in each of the ways."""
    before = lab.shim_log().count(CONVERTED)
    for address in (lab.server.addr4, lab.server.addr6):
        for way in ways:
            said = probe(lab, address, way, CONVERT_ADDR=name)
            check(ANSWERED in said, "%s, %s to %s:\n%s" % (name, way, address, said))
    equal(lab.shim_log().count(CONVERTED) - before, 2 * len(ways), "conversions in\n" + lab.shim_log())


def test_host_names():
    """A name with addresses of both families, for servers of both; with and without a port."""
    with near() as lab:
        lab.names(*CONVERTER)
        lab.convertd()
        lab.echo()
        for name in ("converter.lab.example", "converter.lab.example:1234"):
            check_converted(lab, name)


def test_services():
    """The port is the record's; the shim skips records that it can't use: a target without an address, and the root."""
    with near() as lab:
        lab.names(*CONVERTER, SERVICE + " SRV 1 0 9 nosuch.lab.example", SERVICE + " SRV 2 0 0 .",
                  SERVICE + " SRV 3 0 5678 converter.lab.example")
        lab.convertd(["--listen", "[::]:5678"], port=5678)
        lab.echo()
        check_converted(lab, SERVICE)


def test_domain_without_converters():
    """Its record says so, or it has none: the shim connects directly, and the log says why."""
    with near() as lab:
        lab.names(SERVICE + " SRV 0 0 0 .")
        lab.echo()
        for name, reason in ((SERVICE, "the SRV records name no converter that can be used"),
                             ("_convert._tcp.other.example", "the converter's name has no SRV record"),
                             ("converter.other.example", "the converter's name has no address")):
            check(ANSWERED in probe(lab, lab.server.addr4, CONVERT_ADDR=name), name)
            check("direct: " + reason in lab.shim_log(), "%s: %s" % (name, lab.shim_log()))
        said = probe(lab, lab.server.addr4, CONVERT_ADDR=SERVICE + ":1234")
        check(ANSWERED in said and "say it without one" in lab.shim_log(), lab.shim_log())


def test_silent_name_server():
    """After CONVERT_TIMEOUT the shim connects directly."""
    with near() as lab:
        lab.names(options=["--silent", "dark.example"])
        lab.echo()
        result = run_probe(lab, lab.server.addr4, CONVERT_ADDR="dark.example", CONVERT_TIMEOUT="4")
        check(ANSWERED in result.stdout, result.stdout)
        # the resolver takes whole seconds, half of the time for each of two questions: with the default of 3 s it would end after 2
        ms = float(result.stderr.split()[-1])
        check(ms >= 3000, "%.0f ms: CONVERT_TIMEOUT isn't the resolver's limit" % ms)
        check("direct: no name server answers for the converter's name" in lab.shim_log(), lab.shim_log())


def test_resolver_of_the_application_stays():
    """The application has set its resolver up when its first connection looks for the converter."""
    with near() as lab:
        lab.names(*CONVERTER, SERVICE + " SRV 1 0 1234 converter.lab.example")
        lab.converter.ip("addr add %s/32 dev lo" % OWN)
        lab.name_server("own.example A 192.0.2.77", address=OWN)
        lab.convertd()
        lab.echo()
        for name in ("converter.lab.example", SERVICE):
            program = os.path.join(lab.build.directory, "tests/lab/apps/resolve_probe")
            said = lab.client.run([program, "connect", lab.server.addr4, 7], env=lab.converted(CONVERT_ADDR=name)).stdout
            equal(said.splitlines(), ["own: 192.0.2.77", "connect: 0", "own: 192.0.2.77"], name)
        equal(lab.shim_log().count(CONVERTED), 2, "conversions in\n" + lab.shim_log())


if __name__ == "__main__":
    main()
