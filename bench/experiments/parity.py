# SPDX-License-Identifier: BSD-3-Clause
"""parity - two paths through a converter give what two paths give without it

Transfers from connect() to the last byte, of an application under libconvert.so through the converter to a plain TCP server, as a
share of plain MPTCP: a connect() without data in the SYN to an MPTCP server in the converter's place, over the same links. The
difference is the Convert protocol's loss. Both kinds alternate, so a disturbance affects both. Each
transfer is compared with its neighbour, and the median of these ratios counts. The client's sysctls are the kernel's defaults.

Converters that don't correct the windows of SYNs (doc/decisions.md) get no data in the SYN, from applications that know nothing of the
converter yet ("first") and from later ones.
"""
import os

from benchlib import median
from benchlib.proxies import convertd_options
from convertlab import Lab, LabError, Link
from convertlab.build import SRCDIR

DURATION = "7 minutes"

BULK = os.path.join(SRCDIR, "tests", "lab", "apps", "bulk.py")
SCRIPTED = os.path.join(SRCDIR, "tests", "lab", "scripted_converter.py")
PORT, CONVERT_PORT = 6000, 1234
BYTES, BYTES_QUICK = 12000000, 1000000
ROUNDS, ROUNDS_QUICK = 5, 1
WIFI_MBIT, LTE_MBIT = 50, 30
# what is measured: the name, delays of wifi and lte in ms, their queues in packets, the congestion control of all hosts
NETWORKS = (
    ("near, Reno", 1, 3, 200, "reno"),
    ("short queues, Reno", 10, 10, 60, "reno"),
    ("far, long queues, Reno", 10, 25, 1000, "reno"),
    ("near, BBR", 1, 3, 200, "bbr"),
    ("far, BBR", 10, 25, 200, "bbr"),
)
# an answer that supports Multipath TCP and says nothing else: RFC 8803, Section 6.2.3
OTHER_MAKE = "01042263" "15021e00" "00000000" "14010000"
TAKEN, BEHIND = "converted over MPTCP, request taken in the SYN", "converted over MPTCP, request behind the handshake"


def _links(near, far, queue):
    return {"wifi": Link(delay_ms=near, rate_mbit=WIFI_MBIT, queue=queue), "lte": Link(delay_ms=far, rate_mbit=LTE_MBIT, queue=queue),
            "core": Link(delay_ms=1)}


def _remembering(lab):
    """An application's environment: what one learns of the converter the next one knows."""
    directory = os.path.join(lab.directory, "runtime")
    os.makedirs(directory, mode=0o700, exist_ok=True)
    return lab.converted(XDG_RUNTIME_DIR=directory)


def _mbit(bench, lab, verb, env):
    """The goodput of a transfer; env: an application's under the shim, None for plain MPTCP to the converter's host."""
    size = BYTES_QUICK if bench.quick else BYTES
    to = ["tcp", lab.server.addr4] if env else ["mptcp", lab.converter.addr4]
    return size * 8e-6 / float(lab.client.run(["python3", BULK, verb, *to, PORT, size], env=env).stdout)


class _Comparison:
    """Transfers of plain MPTCP, and as many under the shim in each of these environments, in turn."""

    def __init__(self, bench, lab, what, verb, environments):
        self._rounds = []
        for _ in range(ROUNDS_QUICK if bench.quick else ROUNDS):
            self._rounds.append([_mbit(bench, lab, verb, env) for env in (None, *environments)])
        bench.samples("%s, %s: Mbit/s of plain MPTCP, then under the shim" % (what, verb), self._rounds)

    def row(self, number):
        """[Mbit/s of the shim, of plain MPTCP, and the median share]"""
        return ["%.1f" % median([found[1 + number] for found in self._rounds]), "%.1f" % median([found[0] for found in self._rounds]),
                "%.3f" % self.share(number)]

    def share(self, number):
        """Returns the median of the shares of plain MPTCP's goodput in the environment of this number."""
        return median([found[1 + number] / found[0] for found in self._rounds])


def _serve(lab):
    lab.start_listening(lab.converter, ["python3", BULK, "serve", "mptcp", PORT], PORT)
    lab.start_listening(lab.server, ["python3", BULK, "serve", "tcp", PORT], PORT)


def _requests(lab, taken, behind):
    """Ends the experiment unless requests went as they have to."""
    found = lab.shim_log().count(TAKEN), lab.shim_log().count(BEHIND)
    if found != (taken, behind):
        raise LabError("requests in the SYN and behind the handshake: %d and %d, not %d and %d\n%s" % (
            *found, taken, behind, lab.shim_log()))


def _network(bench, name, near, far, queue, congestion):
    with Lab(**_links(near, far, queue), congestion=congestion) as lab:
        lab.convertd(convertd_options(lab.build))
        _serve(lab)
        found = {verb: _Comparison(bench, lab, name, verb, [_remembering(lab)]) for verb in ("get", "put")}
        rounds = ROUNDS_QUICK if bench.quick else ROUNDS
        _requests(lab, taken=2 * rounds - 1, behind=1)  # the first one doesn't know yet that the converter corrects windows
        return found


def _without_rights(lab):
    lab.convertd(convertd_options(lab.build), wrapper=["setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin"])
    return {}


def _told_not_to(lab):
    lab.convertd([*convertd_options(lab.build), "--hold-syn", "off"])
    return {}


def _other_make(lab):
    lab.start_listening(lab.converter, ["python3", SCRIPTED, lab.converter.addr4, CONVERT_PORT, "whole", OTHER_MAKE], CONVERT_PORT,
                        name="scripted")
    return {"CONVERT_ADDR": lab.converter.addr4}


UNCORRECTED = (("convertd without CAP_NET_ADMIN", _without_rights), ("convertd --hold-syn off", _told_not_to),
               ("a converter of another make", _other_make))


def _uncorrected(bench, name, start):
    with Lab(**_links(10, 25, 200)) as lab:
        options = start(lab)
        _serve(lab)
        found = _Comparison(bench, lab, name, "get", [lab.converted(**options), {**_remembering(lab), **options}])
        _requests(lab, taken=0, behind=2 * (ROUNDS_QUICK if bench.quick else ROUNDS))
        return found


def run(bench):
    """The experiment."""
    bench.cpu_matters = True
    rows, series = [], {"downloads": [], "uploads": []}
    for network in bench.over(NETWORKS, label=lambda network: network[0]):
        found = _network(bench, *network)
        for verb, direction in (("get", "downloads"), ("put", "uploads")):
            rows.append([network[0], direction, *found[verb].row(0)])
            series[direction].append(found[verb].share(0))
    bench.table("Over %d + %d Mbit/s, %g MB in Mbit/s" % (WIFI_MBIT, LTE_MBIT, (BYTES_QUICK if bench.quick else BYTES) / 1e6),
                ["network", "", "libconvert", "plain MPTCP", "of plain MPTCP"], rows)
    rows = []
    for name, start in bench.over(UNCORRECTED, label=lambda pair: pair[0]):
        found = _uncorrected(bench, name, start)
        rows += [[name, application, *found.row(number)] for number, application in enumerate(("first", "later"))]
    bench.table("Downloads where nobody corrects the windows of SYNs", ["converter", "application", "libconvert", "plain MPTCP",
                                                                        "of plain MPTCP"], rows)
    bench.plot("bars", "Goodput over two paths, of plain MPTCP", series, ylabel="share of plain MPTCP",
               categories=[network[0] for network in NETWORKS])
