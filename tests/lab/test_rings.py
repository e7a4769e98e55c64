#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_rings.py - programs with an io_uring whose connect() doesn't block, and whose SYN is lost (shim/connect/ring_use.c)

The program is apps/rings.c, which explains its ways of waiting. test_silence_shim.py checks that rings read no byte of the converter.
"""
import contextlib
import re

from convertlab import Lab, Link, between, check, equal, kernel, long, main, need, patience, side_by_side, timeout, waits
from test_silence_shim import SILENTLY, learn

RESET = "failed: Connection reset by peer"
REFUSED = "failed: Connection refused"
AGAIN = "asked again for an application that waits"
BLIND = "meta length > 110"  # other requests are shorter, and so are SYNs without any
ASKING = ("waiting", "polling", "epolling", "together")


def rings(lab, way, env, count, port=7, how="raw"):
    """Runs apps/rings.c; returns (the outcome of each connection, how many connect() calls have waited for theirs)."""
    program = lab.build.program("tests/lab/apps/rings")
    result = lab.client.run([program, way, how, "first", lab.server.addr4, port, count], env=env, check=False, timeout=500)
    if result.returncode == 77:
        need("io_uring")
    equal(result.returncode, 0, "status of %s" % result.args)
    return result.stdout.splitlines(), int(re.search(r"(\d+) of \d+ connect\(\) have waited", result.stderr)[1])


@contextlib.contextmanager
def only(lab, syns, then, which=""):
    """Lets so many SYNs that match `which` reach the converter, and applies the verdict `then` to later ones."""
    lab.converter.run(["nft", "-f", "-"], input="table inet requests {\n chain arrivals {\n  type filter hook prerouting priority -1000;\n"
                      "  tcp dport 1234 tcp flags & (syn | ack) == syn %s limit rate over 1/day burst %d packets %s\n }\n}\n"
                      % (which, syns, then))
    try:
        yield
    finally:
        lab.converter.run(["nft", "delete", "table", "inet", "requests"])


@contextlib.contextmanager
def learned(loss=0, core_ms=20):
    """(lab, env) of a client that knows that its converter takes blind requests."""
    with Lab(wifi=Link(delay_ms=10, loss=loss), lte=None, core=Link(delay_ms=core_ms)) as lab:
        lab.convertd()
        lab.echo()
        env = lab.remembering()
        learn(lab, env)
        yield lab, env


@long
@waits
@kernel.needs("fastopen")
@timeout(300)
def test_lost_syn_of_a_program_that_asks():
    """The SYN that the kernel repeats has no request. But a program that asks, or waits by a hook, gets its connection, over MPTCP."""
    need("nft", "nftables")
    for way in ASKING:
        with learned() as (lab, env), only(lab, 2, "drop", BLIND):
            said, _ = rings(lab, way, env, 3)
            equal(said, ["right"] * 3, way)
            log = lab.shim_log()
            equal(log.count(AGAIN) + log.count("SYNs with data are lost"), 1, "%s: requests made again in\n%s" % (way, log))
            equal(log.count(SILENTLY), 2, "silent connections in\n" + log)
            equal(log.count("converted over MPTCP"), 4, "connections by way of the converter in\n" + log)


NODE = ("const net = require('net'); let left = 4; function one() { if (!left--) return; const s = net.connect(7, process.argv[1]);"
        " s.on('connect', () => s.write('hello')); s.on('data', d => { console.log('got ' + d); s.end(); });"
        " s.on('error', e => console.log(e.code)); s.on('close', one); } one();")


@kernel.needs("fastopen")
def test_lost_syn_of_node():
    """A ring registers Node's sockets in an epoll instance, where no hook sees it."""
    need("nft", "nftables")
    need("node", "nodejs")
    with learned() as (lab, env), only(lab, 2, "drop", BLIND):
        said = lab.client.run(["node", "-e", NODE, lab.server.addr4], env=dict(env, UV_USE_IO_URING="1"), timeout=60).stdout
        equal(said, "got hello\n" * 4, "what it says")


@kernel.needs("fastopen")
def test_lost_syn_of_a_registered_file():
    """The ring holds the socket, so that no other one can take its place: it is connected directly."""
    need("nft", "nftables")
    with learned() as (lab, env), only(lab, 2, "drop", BLIND):
        said, _ = rings(lab, "waiting", env, 3, how="files")
        equal(said, ["right"] * 3, "the outcomes in\n" + lab.shim_log())
        equal(lab.shim_log().count("direct, the converter fails"), 1, lab.shim_log())


@long
@waits
@kernel.needs("fastopen")
def test_slow_servers():
    """The answer comes after the kernel's second SYN, when a blind request is lost: the program gets its connection, or the refusal."""
    with learned(core_ms=550) as (lab, env):
        for port, becomes in ((7, "right"), (9, REFUSED)):
            for way, (said, _) in zip(ASKING, side_by_side(lambda way, port=port: rings(lab, way, env, 3, port=port), ASKING)):
                equal(said, [becomes] * 3, "%s, port %d" % (way, port))


@kernel.needs("fastopen")
def test_lost_syn_of_a_program_that_never_asks():
    """connect() waits for the connection if the program uses connections without asking for their state."""
    need("nft", "nftables")
    for way in ("sending", "late"):
        with learned() as (lab, env), only(lab, 2, "drop", BLIND):
            said, _ = rings(lab, way, env, 3)
            equal(said, ["right"] * 3, way)
            log = lab.shim_log()
            equal(log.count("converted over MPTCP"), 4, "connections by way of the converter in\n" + log)


@kernel.needs("fastopen")
def test_no_byte_is_lost():
    """A program that asked before now sends first: the shim can't send these bytes again, so the connection fails."""
    need("nft", "nftables")
    with learned() as (lab, env), only(lab, 3, "drop", BLIND):
        said, _ = rings(lab, "changing", env, 4)
        equal(said, ["right"] * 3 + [RESET], "what became of them in\n" + lab.shim_log())
        check(AGAIN not in lab.shim_log(), lab.shim_log())


@long
@waits
@kernel.needs("fastopen")
def test_event_loops_go_on():
    """Only the first connect() waits, until the program has asked once; and few wait if it begins many before it uses one."""
    with learned(core_ms=patience(20)) as (lab, env):
        for way, count in (("waiting", 20), ("together", 100)):
            said, waited = rings(lab, way, env, count)
            equal(said, ["right"] * count, way)
            between(waited, 1, count * 0.8, "%s: how many connect() of %d have waited" % (way, count))


@long
@waits
@kernel.needs("fastopen")
@timeout(300)
def test_converter_that_refuses():
    """If the converter refuses, the shim connects directly. If the server refuses, the errno is that of a direct connection."""
    need("nft", "nftables")
    for way in ASKING:
        with learned() as (lab, env), only(lab, 2, "reject with tcp reset"):
            equal(rings(lab, way, env, 4)[0], ["right"] * 4, way)
            check("direct, the converter fails" in lab.shim_log(), lab.shim_log())
    for way in ASKING:
        with learned() as (lab, env):
            equal(rings(lab, way, env, 4, port=9)[0], [REFUSED] * 4, way)


@long
@waits
@kernel.needs("fastopen")
@timeout(600)
def test_many_losses():
    """At 5% loss all connections succeed, as they would directly."""
    ways = (*ASKING, "sending")
    with learned(loss=0.05) as (lab, env):
        for way, (said, _) in zip(ways, side_by_side(lambda way: rings(lab, way, env, 20), ways)):
            equal(said, ["right"] * 20, "%s in\n%s" % (way, lab.shim_log()))


if __name__ == "__main__":
    main()
