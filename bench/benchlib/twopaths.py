# SPDX-License-Identifier: BSD-3-Clause
"""twopaths.py - transfers of files over one path or two: each alone by TCP, all by libconvert, all by plain MPTCP"""
import contextlib
import dataclasses
import json
import os

from convertlab import Lab, LabError, Link, Veth

from .field import LOAD
from .proxies import SERVER_PORT, convertd_options

# the ways of a file; plain MPTCP goes to an MPTCP server in the converter's place
BETTER, WORSE = "direct TCP, better path", "direct TCP, worse path"
OURS, OURS_WORSE_FIRST = "libconvert", "libconvert, worse path first"
OURS_ANSWERED = "libconvert, with responses"  # CONVERT_SILENCE=never, or a converter of another make
PLAIN = "plain MPTCP"

QUEUE_MIN = 20  # packets; less holds no burst of a kernel that sends 64 KB at once
PACKET = 1500   # bytes
FEW = 1000      # bytes of a transfer that isn't counted


def link(mbit, round_trip_ms, queue_ms):
    """A link whose queue takes so long to send."""
    return Link(delay_ms=round_trip_ms / 2, rate_mbit=mbit, queue=max(QUEUE_MIN, round(mbit * 1e3 * queue_ms / 8 / PACKET)))


def allowed_congestion_controls(names):
    """Those of these congestion controls that hosts of the lab may use: the machine's net.ipv4.tcp_allowed_congestion_control decides."""
    found = []
    with Lab(wifi=Veth(), lte=None, core=None) as lab:
        for name in names:
            with contextlib.suppress(OSError):
                lab.client.sysctl("net.ipv4.tcp_congestion_control", name)
                found.append(name)
    return found


@dataclasses.dataclass(frozen=True)
class Transfer:
    """One file: seconds from connect() until the connection is there and until the last byte, and the worse path's share of the bytes."""

    size: int
    connected: float
    whole: float
    share: float

    @property
    def mbit(self):
        """Its goodput."""
        return self.size * 8e-6 / (self.whole - self.connected)


class Paths:
    """The transfers of files over the networks of a lab, of which wifi is the better path, and lte may be missing.

    direction: "download" or "upload"; options: more of convertd's; no_delay: application and server set TCP_NODELAY.
    """

    def __init__(self, lab, direction="download", options=(), no_delay=False):
        self._lab = lab
        self._direction = direction
        self._options = ["--no-delay"] if no_delay else []
        self._load = lab.build.program(LOAD)
        self._converted = 0
        lab.convertd([*convertd_options(lab.build), *options])
        serve = [self._load, "serve", *self._options]
        lab.start_listening(lab.server, [*serve, SERVER_PORT], SERVER_PORT)
        lab.start_listening(lab.converter, [*serve, "--mptcp", SERVER_PORT], SERVER_PORT)
        for host in lab.hosts.values():
            host.sysctl("net.ipv4.tcp_no_metrics_save", 1)
        # what one application has learned of the converter the next one knows, as in any session of a user
        runtime = os.path.join(lab.directory, "runtime")
        os.makedirs(runtime, mode=0o700)
        self._env = lab.converted(XDG_RUNTIME_DIR=runtime, CONVERT_ADDR=lab.converter.addr4)
        for way in (BETTER, *([WORSE] if lab.lte else []), OURS):
            self.transfer(way, FEW)  # so that neighbours are resolved, and the converter is known

    @contextlib.contextmanager
    def _default_route(self, way):
        """Has the default route lead over the worse path meanwhile, for the way that begins there."""
        if way != OURS_WORSE_FIRST:
            yield
            return
        route = "default via %s dev lte metric 1" % self._lab.converter.lte4
        self._lab.client.ip("route add " + route)
        yield
        self._lab.client.ip("route del " + route)

    def _command(self, way, size):
        host = self._lab.converter if way == PLAIN else self._lab.server
        more = {BETTER: ["--from", self._lab.client.wifi4], PLAIN: ["--mptcp"]}
        if self._lab.lte:
            more[WORSE] = ["--from", self._lab.client.lte4]
        size_option = "--request" if self._direction == "upload" else "--response"
        return [self._load, "run", "--to", "%s:%d" % (host.addr4, SERVER_PORT), size_option, size, "--connections", 1,
                *self._options, *more.get(way, ())]

    def _carried(self):
        """The bytes that have come through each path in the direction of the file."""
        direction = "a-to-b" if self._direction == "upload" else "b-to-a"
        return [path.stats()[direction]["out_bytes"] if path else 0 for path in (self._lab.wifi, self._lab.lte)]

    def transfer(self, way, size):
        """Transfers one file; returns a Transfer."""
        env = self._env if way in (OURS, OURS_WORSE_FIRST, OURS_ANSWERED) else None
        if way == OURS_ANSWERED:
            env = {**env, "CONVERT_SILENCE": "never"}
        with self._default_route(way):
            before = self._carried()
            said = self._lab.client.run(self._command(way, size), env=env).stdout
            first, second = (after - earlier for earlier, after in zip(before, self._carried()))
        found = json.loads(said)
        if found["latency"]["count"] != 1:
            raise LabError("%s: a file of %d bytes has not arrived: %s" % (way, size, said))
        self._converted += env is not None
        return Transfer(size, found["connected"]["p50"] * 1e-6, found["latency"]["p50"] * 1e-6, second / (first + second))

    def check(self):
        """What ought to have gone through the converter has, by Multipath TCP."""
        count = self._lab.shim_log().count("converted over MPTCP")
        if count != self._converted:
            raise LabError("%d of %d connections were converted\n%s" % (count, self._converted, self._lab.shim_log()))
