#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_aggregation.py - a transfer through the converter uses both paths, and no host receives more than its window allows

bench/ (parity, grid) measures how much of the goodput of two paths is left through the converter. These tests check a condition of that
in the kernels' counters and on the links: data goes into the SYN only if the converter corrects the window of such a SYN. With an
uncorrected one, Linux believes the window to be 2^scale times as large, the faster path overruns the client's buffer, and a download
gets 0.02 to 0.5 of its goodput (doc/decisions.md): MPTcpExtNoDSSInWindow then counts hundreds of segments, and otherwise none.
The client has the kernel's default sysctls.
"""
import os

from convertlab import Lab, Link, check, equal, main, measured, measures, need

BULK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "apps", "bulk.py")
SCRIPTED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scripted_converter.py")
BYTES = 12000000
SHARE_MIN = 0.1  # of the bytes, on each path; by its rate the slower one could carry 0.38
TAKEN = "converted over MPTCP, request taken in the SYN"
BEHIND = "converted over MPTCP, request behind the handshake"
PAST_THE_WINDOW = "MPTcpExtNoDSSInWindow"  # segments outside their connection's window, which this host has dropped


def transfer(lab, verb, env, size=BYTES, hours=0):
    """Makes a whole transfer with an application under the shim, which fails if a byte is missing or wrong.

    hours: the application's clocks are ahead by so much.
    """
    later = ["unshare", "--time", "--fork", "--boottime", hours * 3600, "--monotonic", hours * 3600] if hours else []
    lab.client.run([*later, "python3", BULK, verb, "tcp", lab.server.addr4, 6000, size], env=env)


def serve(lab):
    """Starts the server of the transfers."""
    lab.start_listening(lab.server, ["python3", BULK, "serve", "tcp", 6000], 6000)


def shares(lab, verb, env):
    """Makes a transfer and returns {path: its share of the bytes that arrived in the direction of the transfer}."""
    direction = "b-to-a" if verb == "get" else "a-to-b"

    def arrived():
        return {name: link.stats()[direction]["out_bytes"] for name, link in (("wifi", lab.wifi), ("lte", lab.lte)) if link}

    before = arrived()
    transfer(lab, verb, env)
    carried = {name: after - before[name] for name, after in arrived().items()}
    total = sum(carried.values())
    check(total > BYTES, "the links have carried %d bytes of packets for %d of data" % (total, BYTES))
    return {name: count / total for name, count in carried.items()}


def uses_both(lab, verb, env):
    """Makes a transfer, which has to use both paths; returns the shares as text."""
    found = shares(lab, verb, env)
    text = verb + " " + " ".join("%s %.0f%%" % (name, 100 * share) for name, share in found.items())
    check(min(found.values()) >= SHARE_MIN, "a path has less than %.0f%%: %s" % (100 * SHARE_MIN, text))
    return text


def none_past_the_window(lab):
    """Fails the test if a kernel has dropped segments beyond a connection's window.

    This is measured(), because the window of an application that gets no CPU closes, too, and its kernel drops segments: in one of 40
    transfers of plain MPTCP on a machine under four times its load.
    """
    for host in (lab.client, lab.converter):
        count = host.counters().get(PAST_THE_WINDOW, 0)
        measured(count == 0, "%d segments past the window of the %s" % (count, host.name))


def requests(lab, taken, behind):
    """Fails the test unless this many requests went in the SYN, and this many behind the handshake."""
    equal((lab.shim_log().count(TAKEN), lab.shim_log().count(BEHIND)), (taken, behind),
          "requests in the SYN, and behind the handshake in\n" + lab.shim_log())


def two_paths(near, far, queue, congestion):
    """The converter corrects windows: the first request, before that is known, goes behind the handshake, later ones in the SYN."""
    with Lab(wifi=Link(delay_ms=near, rate_mbit=50, queue=queue), lte=Link(delay_ms=far, rate_mbit=30, queue=queue),
             core=Link(delay_ms=1), congestion=congestion) as lab:
        lab.convertd()
        serve(lab)
        told = [uses_both(lab, verb, lab.remembering()) for verb in ("get", "get", "put")]
        requests(lab, taken=2, behind=1)
        none_past_the_window(lab)
        return ", ".join(told)


@measures
def test_near_reno():
    return two_paths(1, 3, 200, "reno")


@measures
def test_short_queue_reno():
    return two_paths(10, 10, 60, "reno")


@measures
def test_far_long_queue_reno():
    return two_paths(10, 25, 1000, "reno")


@measures
def test_near_bbr():
    return two_paths(1, 3, 200, "bbr")


@measures
def test_far_bbr():
    return two_paths(10, 25, 200, "bbr")


def uncorrected(start, **options):
    """The converter doesn't correct windows: all requests go behind the handshake, those of applications that know the converter, too."""
    with Lab(wifi=Link(delay_ms=10, rate_mbit=50, queue=200), lte=Link(delay_ms=25, rate_mbit=30, queue=200),
             core=Link(delay_ms=1)) as lab:
        start(lab)
        serve(lab)
        told = [uses_both(lab, "get", {**env, **options}) for env in (lab.converted(), lab.remembering(), lab.remembering())]
        requests(lab, taken=0, behind=3)
        none_past_the_window(lab)
        return ", ".join(told)


@measures
def test_converter_without_rights():
    need("setpriv", "util-linux")
    return uncorrected(lambda lab: lab.convertd(wrapper=["setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin"]))


@measures
def test_converter_that_withholds_no_syns():
    return uncorrected(lambda lab: lab.convertd(["--hold-syn", "off"]))


@measures
def test_converter_of_another_make():
    """It announces Multipath TCP alone."""
    def start(lab):
        lab.start_listening(lab.converter, ["python3", SCRIPTED, lab.converter.addr4, 1234, "whole", "01042263" "15021e00" "00000000"
                                            "14010000"], 1234, name="scripted")
    return uncorrected(start, CONVERT_ADDR="10.9.0.1")


@measures
def test_converter_that_announces_an_address():
    """A client with one network accepts the address: two subflows, and no segment past a window."""
    with Lab(wifi=Link(delay_ms=10, rate_mbit=50, queue=200), lte=None, core=Link(delay_ms=1)) as lab:
        lab.client.ip("mptcp limits set subflows 2 add_addr_accepted 2")
        lab.converter.ip("mptcp endpoint add %s dev wifi signal" % lab.converter.wifi4)
        lab.convertd(["--hold-syn", "off"])
        serve(lab)
        transfer(lab, "get", lab.converted())
        check(lab.client.counters()["MPTcpExtMPJoinSynAckRx"] == 1, "no second subflow")
        requests(lab, taken=0, behind=1)
        none_past_the_window(lab)


if __name__ == "__main__":
    main()
