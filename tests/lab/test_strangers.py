#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_strangers.py - forged SYNs, and attempts that programs have given up, do no harm to other connections"""
import contextlib
import os
import threading

from convertlab import Lab, Link, Unsuitable, check, equal, kernel, long, main, waits
from convertlab.forging import LINUX, MP_CAPABLE, Forge
from convertlab.harness import timeout
from convertlab.metrics import OPTIONS as METRICS, Metrics
from convertlab.peers import converter
from convertlab.programs import c_program
from test_silence_blind import asks
from test_supervise_moments import SILENCE, SILENT

APPS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "apps")
PORTS = range(20000, 20600)  # the client's: four of five are forged
FORGED, CONNECTIONS = 480, 150
OWN_LIMIT = ("--max-pending", "4096")  # the default: beyond an eighth of it cookies are demanded


def near(delay_ms=5):
    return Lab(wifi=Link(delay_ms=delay_ms), lte=None, core=Link(delay_ms=1))


def forge_one(lab, forge, number):
    """Forges a blind SYN from the client's own address, to a silent server; its sequence number is a guess."""
    mptcp = number % 2 == 1
    forge.syn(lab.client.wifi4, PORTS[number % FORGED], asks(lab.addresses.blackhole4, 80, mptcp), LINUX + (MP_CAPABLE if mptcp else b""),
              seq=12345 + number)


@contextlib.contextmanager
def trickle(lab, each_seconds=0.2):
    """Forges five SYNs a second meanwhile."""
    over = threading.Event()

    def send():
        number = 0
        with Forge(lab) as forge:
            while not over.wait(each_seconds):
                forge_one(lab, forge, number * 7)
                number += 1
    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def all_are_converted(lab, **env):
    """Makes many connections, one after the other: each is converted, and the converter never rests."""
    before = Metrics(lab.converter)("convertd_connections_accepted_total")
    said = lab.client.run(["python3", os.path.join(APPS, "many.py"), "poll", lab.server.addr4, 7, CONNECTIONS, 1],
                          env=lab.converted(CONVERT_ADDR=lab.converter.addr4, **env)).stdout
    equal(said.split()[:2], ["done", str(CONNECTIONS)], "what the program says")
    check(": direct" not in lab.shim_log(), "a direct connection:\n" + lab.shim_log()[-2000:])
    check("left alone" not in lab.shim_log(), "the converter rests:\n" + lab.shim_log()[-2000:])
    check(Metrics(lab.converter)("convertd_connections_accepted_total") - before >= CONNECTIONS, "connections by the converter")


@long
@waits
@kernel.needs("fastopen")
@timeout(240)
def test_forged_blind_syns():
    """480 forged blind SYNs from the client's own ports, sent once, and then five a second: all of its connections are converted."""
    with near() as lab, converter(lab, *OWN_LIMIT, *METRICS):
        lab.echo()
        lab.client.sysctl("net.ipv4.ip_local_port_range", "%d %d" % (PORTS[0], PORTS[-1]))
        for env in ({}, {"CONVERT_FALLBACK": "none"}):
            with Forge(lab) as forge:
                for number in range(FORGED):
                    forge_one(lab, forge, number)
            all_are_converted(lab, **env)
            with trickle(lab):
                all_are_converted(lab, **env)


@long
@waits
@kernel.needs("calls")
@timeout(240)
def test_dials_to_a_silent_host():
    """A supervised program gives up 12 dials a second to a silent port, each after 3 s: all its dials to another port are converted."""
    if os.environ.get("SANITIZER_PRELOAD"):
        raise Unsuitable("not under sanitizers: the program is static")
    with near(delay_ms=10) as lab:
        lab.convertd(OWN_LIMIT)
        lab.echo()
        lab.server.run(["nft", "-f", "-"], input=SILENCE)
        dials = c_program("dials-static", "static/dials.c", flags=["-static"])
        words = [dials, lab.server.addr4, str(SILENT), "12", "60", lab.server.addr4, "7", "15"]
        env = {"CONVERT_ADDR": lab.converter.addr4, "CONVERT_CACHE": lab.directory, "CONVERT_LOG": "-", "CONVERT_LIBRARY": lab.build.shim,
               "CONVERT_BESIDE_VPN": "1"}
        got = lab.client.run([lab.build.program("convertize"), "--config", "none", "--method", "supervise", "--", *words], env=env,
                             check=False, timeout=120)
        live = [line for line in got.stderr.splitlines() if "%s:7: " % lab.server.addr4 in line]
        equal(got.stdout, "live dials: 15 of 15\n", "what the program says; the log of these: " + "\n".join(live))
        equal(sum("converted" in line for line in live), 15, "\n".join(live))
        equal(sum("direct" in line for line in live), 0, "\n".join(live))


if __name__ == "__main__":
    main()
