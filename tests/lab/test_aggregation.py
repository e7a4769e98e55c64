#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_aggregation.py - two paths through the converter give what two paths give without it

A ratio to a plain MPTCP connect, without data in the SYN, over the same links: what is lost between the two is lost to the Convert
protocol. Transfers of both kinds alternate, so that what disturbs one kind disturbs the other; each is compared with its neighbour,
and the median of ROUNDS such ratios must be ENOUGH. The client's sysctls are the kernel's. Where the window of a SYN with data
isn't put right, the ratio of a download is between 0.02 and 0.5 (doc/decisions.md): there no data goes into the SYN.
"""
import os
import statistics

from convertlab import Lab, Link, check, equal, main, measured, measures, need

BULK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "apps", "bulk.py")
SCRIPTED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scripted_converter.py")
BYTES = 12000000
BYTES_UNCORRECTED = 5000000, 12000000
ENOUGH = 0.97
ENOUGH_UNCORRECTED = 0.9  # and where neighbours of the same kind differ as much
TAKEN = "converted over MPTCP, request taken in the SYN"
BEHIND = "converted over MPTCP, request behind the handshake"
ROUNDS = 3  # of a transfer of each kind


def remembering(lab):
    """An application's environment: what one learns of the converter the next one knows."""
    directory = os.path.join(lab.directory, "runtime")
    os.makedirs(directory, mode=0o700, exist_ok=True)
    return lab.converted(XDG_RUNTIME_DIR=directory)


def mbit(lab, verb, env, size=BYTES, hours=0):
    """The goodput of a transfer; env: an application's under the shim, None for plain MPTCP to the converter's host.

    hours: so much later, by the clocks that the application sees.
    """
    later = ["unshare", "--time", "--fork", "--boottime", hours * 3600, "--monotonic", hours * 3600] if hours else []
    command = [verb, "tcp", lab.server.addr4] if env else [verb, "mptcp", lab.converter.addr4]
    said = lab.client.run([*later, "python3", BULK, *command, 6000, size], env=env).stdout
    return size * 8e-6 / float(said)


class Comparison:
    """ROUNDS transfers of plain MPTCP, and as many under the shim in each of these environments, a list of them; in turn."""

    def __init__(self, lab, verb, environments, size=BYTES):
        self._rounds = [[mbit(lab, verb, env, size) for env in (None, *environments)] for _ in range(ROUNDS)]

    def share(self, number=0):
        """(the median share of plain MPTCP's goodput that there is in this environment, all for people to read)"""
        share = statistics.median(found[1 + number] / found[0] for found in self._rounds)
        plain, shim = (statistics.median(found[kind] for found in self._rounds) for kind in (0, 1 + number))
        return share, "%.1f of %.1f Mbit/s = %.3f" % (shim, plain, share)


def serve(lab):
    """What the transfers go to, with the converter and without."""
    lab.start_listening(lab.converter, ["python3", BULK, "serve", "mptcp", 6000], 6000)
    lab.start_listening(lab.server, ["python3", BULK, "serve", "tcp", 6000], 6000)


def compare(near, far, queue, congestion, enough=ENOUGH):
    with Lab(wifi=Link(delay_ms=near, rate_mbit=50, queue=queue), lte=Link(delay_ms=far, rate_mbit=30, queue=queue),
             core=Link(delay_ms=1), congestion=congestion) as lab:
        lab.convertd()
        serve(lab)
        found = {verb: Comparison(lab, verb, [remembering(lab)]).share() for verb in ("get", "put")}
        # the first one doesn't know yet that the converter corrects windows
        equal((lab.shim_log().count(TAKEN), lab.shim_log().count(BEHIND)), (2 * ROUNDS - 1, 1),
              "with the request in the SYN, and before it is told in\n" + lab.shim_log())
        for verb, (share, text) in found.items():
            measured(share >= enough, "%s: %s, less than %.2f of a plain MPTCP connect" % (verb, text, enough))
        return "; ".join("%s %s" % (verb, text) for verb, (_, text) in found.items())


@measures
def test_near_reno():
    return compare(1, 3, 200, "reno")


@measures
def test_short_queue_reno():
    return compare(10, 10, 60, "reno")


@measures
def test_far_long_queue_reno():
    """A transfer is over before the queue is full, or just behind that: of the same size one is a tenth faster than the other."""
    return compare(10, 25, 1000, "reno", ENOUGH_UNCORRECTED)


@measures
def test_near_bbr():
    return compare(1, 3, 200, "bbr")


@measures
def test_far_bbr():
    return compare(10, 25, 200, "bbr")


@measures
def test_both_paths_carry_data():
    """Read from the packets: each path has a share of the download that its rate can explain."""
    with Lab(wifi=Link(delay_ms=10, rate_mbit=50, queue=200), lte=Link(delay_ms=25, rate_mbit=30, queue=200),
             core=Link(delay_ms=1)) as lab:
        lab.convertd()
        lab.start_listening(lab.server, ["python3", BULK, "serve", "tcp", 6000], 6000)
        shares = {}
        with lab.capture(lab.client, "wifi", "tcp") as wifi, lab.capture(lab.client, "lte", "tcp") as lte:
            mbit(lab, "get", lab.converted())
        for name, capture in (("wifi", wifi), ("lte", lte)):
            shares[name] = sum(p.size for p in capture.packets() if p.sport == 1234)
        total = sum(shares.values())
        check(total > BYTES, "%d bytes of packets for %d of data" % (total, BYTES))
        measured(shares["lte"] > 0.2 * total and shares["wifi"] > 0.4 * total, "bytes by path: %s" % shares)
        return ", ".join("%s %.0f%%" % (name, 100 * share / total) for name, share in shares.items())


def uncorrected(start, **options):
    """Nobody puts the windows of SYNs right: the first connection, and those of who has been told all that there is to tell."""
    report = []
    with Lab(wifi=Link(delay_ms=10, rate_mbit=50, queue=200), lte=Link(delay_ms=25, rate_mbit=30, queue=200),
             core=Link(delay_ms=1)) as lab:
        start(lab)
        serve(lab)
        for size in BYTES_UNCORRECTED:
            compared = Comparison(lab, "get", [lab.converted(**options), {**remembering(lab), **options}], size)
            report += [("%s of %d MB" % (name, size // 1000000), *compared.share(number))
                       for number, name in enumerate(("first", "later"))]
        equal((lab.shim_log().count(TAKEN), lab.shim_log().count(BEHIND)), (0, 2 * ROUNDS * len(BYTES_UNCORRECTED)),
              "requests in the SYN, and behind the handshake in\n" + lab.shim_log())
        for name, share, text in report:
            measured(share >= ENOUGH_UNCORRECTED, "%s: %s, less than %.2f of plain MPTCP" % (name, text, ENOUGH_UNCORRECTED))
    return "; ".join("%s: %s" % (name, text) for name, _, text in report)


@measures
def test_converter_without_rights():
    need("setpriv", "util-linux")
    return uncorrected(lambda lab: lab.convertd(wrapper=["setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin"]))


@measures
def test_converter_that_is_told_not_to():
    return uncorrected(lambda lab: lab.convertd(["--hold-syn", "off", "--no-syn-window-fix"]))


@measures
def test_converter_of_another_make():
    """It supports MPTCP, and says nothing else."""
    def start(lab):
        lab.start_listening(lab.converter, ["python3", SCRIPTED, lab.converter.addr4, 1234, "whole", "01042263" "15021e00" "00000000"
                                            "14010000"], 1234, name="scripted")
    return uncorrected(start, CONVERT_ADDR="10.9.0.1")


@measures
def test_converter_that_announces_an_address():
    """To a client with one network, which takes what is announced: two paths, too."""
    with Lab(wifi=Link(delay_ms=10, rate_mbit=50, queue=200), lte=None, core=Link(delay_ms=1)) as lab:
        lab.client.ip("mptcp limits set subflows 2 add_addr_accepted 2")
        lab.converter.ip("mptcp endpoint add %s dev wifi signal" % lab.converter.wifi4)
        lab.convertd(["--hold-syn", "off", "--no-syn-window-fix"])
        serve(lab)
        share, text = Comparison(lab, "get", [lab.converted()], 5000000).share()
        measured(share >= ENOUGH_UNCORRECTED, "%s, less than %.2f of plain MPTCP" % (text, ENOUGH_UNCORRECTED))
        return text


if __name__ == "__main__":
    main()
