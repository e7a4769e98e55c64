#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_resolve.py - converters by name: their addresses, and that the application's resolver stays as it is

apps/resolve_probe.c calls resolve_converter() in applications of several kinds; names.py answers.
"""
import contextlib
import os
import re

from convertlab import Lab, Link, Skip, between, check, equal, long, main, patience, waits

SERVICE = "_convert._tcp.lab.example"
OWN = "10.9.0.53"  # the name server of resolve_probe's customised application

RECORDS = [
    SERVICE + " SRV 20 0 1234 far.lab.example", SERVICE + " SRV 10 0 5678 near.lab.example",
    "near.lab.example A 10.9.0.1", "near.lab.example AAAA fd09::1",
    "far.lab.example A 10.8.0.1", "far.lab.example AAAA fd08::1",
    "alias.example CNAME near.lab.example", "_convert._tcp.alias.example CNAME " + SERVICE,
    "_convert._tcp.none.example SRV 0 0 0 .", "_convert._tcp.bare.example A 10.9.0.1",
    "blocked.example A 0.0.0.0", "blocked.example AAAA ::",
]
NEAR = ["10.9.0.1:5678", "[fd09::1]:5678"]
FAR = ["10.8.0.1:1234", "[fd08::1]:1234"]


class NameClient:
    """The lab's client with a name server."""

    def __init__(self, lab, *records, **options):
        self._lab = lab
        self._probe = os.path.join(lab.build.directory, "tests/lab/apps/resolve_probe")
        self._server = lab.names(*RECORDS, *records, **options)

    def second_server(self, *records):
        """The name server at OWN."""
        self._lab.converter.ip("addr add %s/32 dev lo" % OWN)
        return self._lab.name_server(*records, address=OWN)

    def lose_server(self):
        """Gives the client a resolv.conf whose name server doesn't answer."""
        self._lab.client.file("/etc/resolv.conf", "nameserver 127.0.0.1\n")

    def run(self, case, name, *arguments, env=None):
        """Runs resolve_probe; returns (its output as lines, milliseconds)."""
        result = self._lab.client.run([self._probe, case, name, *arguments], env=env)
        took = re.findall(r"(\d+) ms", result.stderr)
        return result.stdout.splitlines(), int(took[-1]) if took else None

    def need_state(self):
        """Skips the test if the C library's resolver has no state that an application or the shim could change."""
        if "customised" not in self._lab.client.run([self._probe, "list"]).stdout.split():
            raise Skip("this C library's resolver has no state")

    def addresses(self, name, *arguments, case="fresh"):
        """The addresses of a name; nothing may change in the application."""
        lines, _ = self.run(case, name, *arguments)
        check(all(line.startswith("address ") for line in lines), "%s: %s" % (name, lines))
        return [line.split()[1] for line in lines]

    def reason(self, name):
        """"none: " and why a name has no address."""
        (line,), _ = self.run("fresh", name)
        return line

    def asked(self):
        """The questions to the name server, such as "udp SRV name"."""
        return self._server.log_text().splitlines()[1:]

    @property
    def nss_directory(self):
        """Where nss_nested.c's module is."""
        return os.path.join(self._lab.build.directory, ".libs")


@contextlib.contextmanager
def name_lab(*records, **options):
    """A lab whose client has a name server with RECORDS and these records; the options are those of Lab.names()."""
    with Lab(wifi=Link(), lte=None, core=Link()) as lab:
        yield NameClient(lab, *records, **options)


def test_host_names():
    """A and AAAA, /etc/hosts, the search list, aliases; no address that can't be a converter's."""
    with name_lab("mixed.example A 10.9.0.1", "mixed.example A 224.0.0.1", "mixed.example A 255.255.255.255",
                  hosts="10.9.0.7 fixed.example\n", resolv_conf="search lab.example") as names:
        both = ["10.9.0.1:1234", "[fd09::1]:1234"]
        for name in ("near.lab.example", "near.lab.example.", "near", "NEAR.LAB.EXAMPLE", "alias.example"):
            equal(sorted(names.addresses(name)), both, name)
        equal(sorted(names.addresses("near.lab.example", 99)), ["10.9.0.1:99", "[fd09::1]:99"], "another port")
        equal(names.addresses("fixed.example"), ["10.9.0.7:1234"], "a name in hosts")
        equal(names.addresses("mixed.example"), ["10.9.0.1:1234"], "multicast and broadcast")
        equal(names.addresses("localhost"), ["127.0.0.1:1234"], "a converter on the same host")
        equal(names.reason("blocked.example"), "none: no address of the converter's name can be used", "0.0.0.0")
        equal(names.reason("nosuch.example"), "none: the converter's name has no address", "a name that isn't there")


def test_services():
    """SRV records by priority, with their ports; /etc/hosts may have the targets' addresses."""
    with name_lab("_convert._tcp.fixed.example SRV 0 0 1 fixed.example",
                  "_convert._tcp.half.example SRV 1 0 1 nosuch.example",
                  "_convert._tcp.half.example SRV 2 0 2 near.lab.example",
                  "_convert._tcp.lost.example SRV 1 0 1 lost.example", hosts="10.9.0.7 fixed.example\n") as names:
        for name in (SERVICE, SERVICE.upper(), SERVICE + ".", "_convert._tcp.alias.example"):
            found = names.addresses(name)
            equal((sorted(found[:2]), sorted(found[2:])), (NEAR, FAR), name)
        equal(names.addresses("_convert._tcp.fixed.example"), ["10.9.0.7:1"], "a target in hosts")
        equal(sorted(names.addresses("_convert._tcp.half.example")), ["10.9.0.1:2", "[fd09::1]:2"],
              "the first target has no address")
        for name, reason in (("_convert._tcp.none.example", "the SRV records name no converter that can be used"),
                             ("_convert._tcp.bare.example", "the converter's name has no SRV record"),
                             ("_convert._tcp.nosuch.example", "the converter's name has no SRV record"),
                             ("_convert._tcp.lost.example", "the converter's name has no address")):
            equal(names.reason(name), "none: " + reason, name)


def test_services_are_absolute():
    """No domain of the search list is appended, neither to the service nor to its targets."""
    with name_lab("near.lab.example.lab.example A 10.9.0.9", "_convert._tcp.lost.example SRV 1 0 1 lost.example",
                  "lost.example.lab.example A 10.9.0.9", resolv_conf="search lab.example\noptions ndots:5") as names:
        names.need_state()
        equal(sorted(names.addresses(SERVICE)[:2]), NEAR, "the first target")
        equal(names.reason("_convert._tcp.lost.example"), "none: the converter's name has no address", "a target")
        check(not [line for line in names.asked() if "example.lab" in line], "searched for: %s" % names.asked())


def test_weights():
    """The order of targets with one priority is random, by weight: of 40 lookups some begin with each."""
    with name_lab("_convert._tcp.two.example SRV 1 1 1 near.lab.example",
                  "_convert._tcp.two.example SRV 1 1 2 near.lab.example") as names:
        first = [names.addresses("_convert._tcp.two.example")[0][-1] for _ in range(40)]
        equal(set(first), {"1", "2"}, "first targets")


def test_room_is_shared():
    """Many addresses of one target leave room for the others, and those of one family for the other."""
    many = ["many.example A 10.9.1.%d" % number for number in range(8)]
    many += ["many.example AAAA fd09::1:%d" % number for number in range(8)]
    with name_lab(*many, "_convert._tcp.many.example SRV 1 0 1 many.example",
                  "_convert._tcp.many.example SRV 2 0 2 far.lab.example",
                  "_convert._tcp.many.example SRV 3 0 3 near.lab.example") as names:
        found = names.addresses("_convert._tcp.many.example", 0, 10)
        equal([address[-2:] for address in found], [":1"] * 6 + [":2"] * 2 + [":3"] * 2, "targets in 10 places")
        equal(len([address for address in found[:6] if address[0] == "["]), 3, "IPv6 among the first target's")
        equal(len(names.addresses("_convert._tcp.many.example", 0, 64)), 20, "addresses where there is room for all")
        equal(len(names.addresses("many.example", 0, 5)), 5, "addresses of a host in 5 places")
        equal([address[-2:] for address in names.addresses("_convert._tcp.many.example", 0, 1)], [":1"], "one place")


def test_large_answers_come_over_tcp():
    """Of 100 targets the best 16 are taken."""
    targets = ["_convert._tcp.large.example SRV %d 0 %d near.lab.example" % (number, number) for number in range(100, 0, -1)]
    with name_lab(*targets, options=["--truncate"]) as names:
        names.need_state()  # musl asks over TCP since 1.2.4
        found = names.addresses("_convert._tcp.large.example", 0, 64)
        equal([int(address.rsplit(":", 1)[1]) for address in found], [number // 2 for number in range(2, 34)], "ports")
        check("tcp SRV _convert._tcp.large.example" in names.asked(), names.asked())


@long
@waits
def test_silence_is_bounded():
    """A silent name server costs the time-out, not resolv.conf's; if it is silent only about one target, time is left for the others."""
    silent = ["--silent", "dark.example", "--silent", "_convert._tcp.dark.example"]
    with name_lab("_convert._tcp.dim.example SRV 1 0 1 dark.example",
                  "_convert._tcp.dim.example SRV 2 0 2 far.lab.example", options=silent, resolv_conf="options timeout:30") as names:
        names.need_state()
        for name in ("dark.example", "_convert._tcp.dark.example"):
            (line,), ms = names.run("fresh", name, 1234, 16, 2000)
            check(line.startswith("none: no name server answers"), line)
            between(ms, 900, patience(25000), "ms until %s was given up" % name)
        lines, _ = names.run("fresh", "_convert._tcp.dim.example", 1234, 16, 5000)
        equal(sorted(lines), ["address 10.8.0.1:2", "address [fd08::1]:2"], "the target that is known")


def test_no_name_server():
    with name_lab() as names:
        names.lose_server()
        for name in (SERVICE, "near.lab.example"):
            check(names.reason(name).startswith("none: no name server answers"), name)


def test_resolver_of_the_application_stays():
    """_res, errno, h_errno, the signal mask, cancellation and open files are the same afterwards."""
    with name_lab() as names:
        for case in ("fresh", "initialised", "thread"):
            for name in ("near.lab.example", SERVICE):
                found = names.addresses(name, case=case)
                check(found[0] in NEAR + ["10.9.0.1:1234", "[fd09::1]:1234"], found)
        equal(names.run("fresh", "nosuch.example")[0], ["none: the converter's name has no address"], "no address")


def test_nothing_is_left_behind():
    """Memory in use after 200 calls is the same as after 10. A name server with an IPv6 address takes memory of its own."""
    with name_lab(resolv_conf="nameserver fd09::53") as names:
        for name in ("near.lab.example", SERVICE):
            equal(names.run("often", name)[0], [], name)


def test_resolver_with_plans_of_its_own():
    """The application asks a name server of its own, over a connection that stays open; the shim asks the system's."""
    with name_lab() as names:
        names.need_state()
        own = names.second_server("near.lab.example A 192.0.2.77")
        lines, _ = names.run("customised", "near.lab.example")
        equal((lines[0], sorted(lines[1:-1]), lines[-1]),
              ("own: 192.0.2.77", ["address 10.9.0.1:1234", "address [fd09::1]:1234"], "own: 192.0.2.77"), "answers")
        equal(own.log_text().splitlines()[1:], ["tcp A near.lab.example"] * 2, "what its server was asked")


def test_resolv_conf_changes():
    """The shim asks the name server that resolv.conf names now, and keeps the options that the application has set."""
    with name_lab() as names:
        names.need_state()
        names.second_server("near.lab.example A 192.0.2.77")
        lines, _ = names.run("reload", "near.lab.example")
        equal(lines, ["address 192.0.2.77:1234"], "answer")


def test_handlers_that_jump():
    """When a SIGALRM handler leaves by siglongjmp(), the resolver is restored."""
    with name_lab(options=["--silent", "dark.example"]) as names:
        lines, _ = names.run("alarm", "dark.example", 1234, 16, 1000)
        equal(lines, ["jumped, the resolver is free"], "after the jump")


def test_cancellation_waits():
    with name_lab() as names:
        lines, _ = names.run("cancelled", "near.lab.example")
        equal(lines[-1:], ["cancelled: afterwards"], lines)


def test_within_a_lookup_of_the_application():
    """A module of nsswitch.conf connects while the application looks a name up: neither lookup disturbs the other."""
    with name_lab("application.example A 192.0.2.80", sources="nested dns") as names:
        if not os.path.exists(os.path.join(names.nss_directory, "libnss_nested.so.2")):
            raise Skip("this C library has no modules for nsswitch.conf")
        if not os.path.exists("/etc/nsswitch.conf"):
            raise Skip("there is no /etc/nsswitch.conf to be replaced; make one: touch /etc/nsswitch.conf")
        for wanted, found in (("near.lab.example", ["10.9.0.1:1234", "[fd09::1]:1234"]), (SERVICE, NEAR + FAR)):
            lines, _ = names.run("nested", "application.example",
                                 env={"LD_LIBRARY_PATH": names.nss_directory, "NESTED_NAME": wanted})
            equal(lines[-1], "application: 192.0.2.80", "the application's lookup")
            # the nested lookup asks the module in its turn, once for each host
            again = "nested none: the converter's name is being resolved"
            equal(sorted(line for line in lines[:-1] if line != again), sorted("nested " + address for address in found),
                  "the nested lookup")
            equal(lines.count(again), len(found) // 2, "lookups within it")


if __name__ == "__main__":
    main()
