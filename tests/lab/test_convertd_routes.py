#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertd_routes.py - convertd's memory of routes is never out of date: it refuses an address as soon as that is the host's own"""
import json
import os
import re
import signal
import time
from typing import NamedTuple

from convertlab import Lab, Link, Unsuitable, check, equal, main, wait_until
from convertlab.harness import need
from convertlab.peers import Client, Server, connect, converter, error, extended_header

SANITIZED = bool(os.environ.get("SANITIZER_PRELOAD"))
NOT_AUTHORIZED = error(0x20)
ADDRESSES = {4: "10.8.0.20", 6: "fd08::20"}  # of the server, and then of the converter's host as well
TABLE, PREFERENCE = 77, 5


class Change(NamedTuple):
    """Commands of ip(8) by which the address becomes this host's own, and no longer is."""

    name: str
    prepared: tuple  # commands beforehand
    make: tuple
    undo: tuple


CHANGES = (
    Change("address", (), ("addr add %(address)s dev lo %(nodad)s",), ("addr del %(address)s dev lo",)),
    Change("local route", (), ("route add local %(address)s dev lo",), ("route del local %(address)s dev lo",)),
    Change("local route in another table", ("rule add to %(address)s lookup %(table)s pref %(preference)s",),
           ("route add local %(address)s dev lo table %(table)s",), ("route flush table %(table)s",)),
    Change("rule", ("route add local %(address)s dev lo table %(table)s",),
           ("rule add to %(address)s lookup %(table)s pref %(preference)s",), ("rule del pref %(preference)s",)),
    # more messages than the netlink socket has room for; the last one matters
    Change("one of many", (), tuple("route add blackhole %%(other)s%d table 78" % number for number in range(1, 2000)) +
           ("addr add %(address)s dev lo %(nodad)s",), ("addr del %(address)s dev lo",)),
)


def near():
    """Returns a lab whose links are too fast to matter."""
    return Lab(wifi=Link(delay_ms=0.5), core=Link(delay_ms=0.1), lte=None)


def ip(host, family, commands):
    """Runs commands of ip(8) for this family at one go."""
    words = {"address": "%s/%d" % (ADDRESSES[family], 32 if family == 4 else 128), "nodad": "nodad" if family == 6 else "",
             "table": TABLE, "preference": PREFERENCE, "other": "198.18.0.0/32 metric " if family == 4 else "fd99::1 metric "}
    host.run(["ip", "-%d" % family, "-batch", "-"], input="".join(command % words + "\n" for command in commands))


def is_own(host, family):
    """Tells whether the kernel takes the address as the host's own."""
    found = host.run(["ip", "-json", "-%d" % family, "route", "get", ADDRESSES[family]])
    return json.loads(found.stdout)[0].get("type") == "local"


def ask(lab, family, delivery):
    """Returns the converter's answer to a request for the address."""
    with Client(lab.client, lab.converter.addr4, delivery=delivery) as client:
        return client.send(connect(ADDRESSES[family], 80)).answer()


def is_reached(lab, server, family, delivery, what):
    """Checks that a client is connected to the address."""
    answer = ask(lab, family, delivery)
    check(answer != NOT_AUTHORIZED, "refused (%s, %s)" % (what, delivery))
    extended_header(answer)
    server.accept().close()


def run_change(lab, server, family, change):
    """Makes the change while convertd remembers the route, and undoes it."""
    what = "%s, IPv%d" % (change.name, family)
    ip(lab.converter, family, change.prepared)
    wait_until(lambda: not is_own(lab.converter, family), 10, lambda: "the address not to be the host's own (%s)" % what)
    for delivery in ("syn", "behind"):
        is_reached(lab, server, family, "syn", "before " + what)
        ip(lab.converter, family, change.make)
        # the kernel takes a moment for an IPv6 address of a device that comes up
        wait_until(lambda: is_own(lab.converter, family), 10, lambda: "the kernel to know the address as its own (%s)" % what)
        equal(ask(lab, family, delivery), NOT_AUTHORIZED, "the answer after the change (%s, %s)" % (what, delivery))
        ip(lab.converter, family, change.undo)
        wait_until(lambda: not is_own(lab.converter, family), 10, lambda: "the kernel to forget the address (%s)" % what)
        is_reached(lab, server, family, delivery, "after the end of " + what)
        if change.name == "one of many":
            ip(lab.converter, family, ("route flush table 78",))


def run_changes(family):
    """Runs each change in a new lab."""
    for change in CHANGES:
        with near() as lab, Server(lab, 80) as server:
            lab.server.ip("addr add %s dev lo%s" % (ADDRESSES[family], " nodad" if family == 6 else ""))
            with converter(lab, "--workers", "1"):
                run_change(lab, server, family, change)


def test_changes_v4():
    """By each kind of change, an address becomes the host's own: convertd refuses the very next request, and grants one afterwards."""
    run_changes(4)


def test_changes_v6():
    """The same for IPv6."""
    run_changes(6)


def test_device_that_goes():
    """A device that goes takes its routes along, those of IPv4 without a netlink message: routes that they hid count at once."""
    for family in (4, 6):
        with near() as lab, converter(lab, "--workers", "1"):
            ip(lab.converter, family, (
                "link add own0 type veth peer name own1", "link set own1 up", "link set own0 up",
                "route add %(address)s dev own0 table %(table)s", "rule add to %(address)s lookup %(table)s pref %(preference)s",
                "route add local %(address)s dev lo table 79", "rule add to %(address)s lookup 79 pref 6"))
            check(not is_own(lab.converter, family), "the address leads elsewhere")
            with Client(lab.client, lab.converter.addr4) as client:
                client.send(connect(ADDRESSES[family], 80))
                # no host has the address: the kernel asks for a neighbour
                wait_until(lambda: ADDRESSES[family] in lab.converter.run(["ip", "-%d" % family, "neigh", "show", "dev", "own0"]).stdout,
                           10, "a connection to the address")
                ip(lab.converter, family, ("link set own0 down",))
                check(is_own(lab.converter, family), "the address is the host's own")
                equal(ask(lab, family, "syn"), NOT_AUTHORIZED, "the answer after the change, IPv%d" % family)


def test_routes_are_remembered():
    """For many connections to a server, convertd asks for the route about once a second."""
    need("strace")
    if SANITIZED:
        raise Unsuitable("sanitizers don't work under strace")
    count = 40
    with near() as lab, Server(lab, 80) as server, converter(lab, "--workers", "1") as process:
        trace = lab.directory + "/trace"
        strace = lab.converter.popen(["strace", "-f", "-o", trace, "-e", "trace=sendto", "-p", str(process.serving)])
        strace.wait_log("attached")
        begin = time.monotonic()
        for _ in range(count):
            with Client(lab.client, lab.converter.addr4) as client:
                extended_header(client.send(server.connect()).answer())
                server.accept().close()
        seconds = time.monotonic() - begin
        strace.stop(signal.SIGINT)
        with open(trace, encoding="utf-8") as file:
            asked = len(re.findall("RTM_GETROUTE", file.read()))
        check(1 <= asked <= seconds + 2, "%d questions in %.1f s" % (asked, seconds))


if __name__ == "__main__":
    main()
