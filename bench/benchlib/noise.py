# SPDX-License-Identifier: BSD-3-Clause
"""noise.py - was the machine quiet enough for a run to be believed?

Once a second a watcher records which processes used the CPUs: the experiment (bench/run and all its descendants), the kernel's own
threads, other programs, and the hypervisor. Kernel threads move the experiment's packets of Multipath TCP, so the verdict states their
share but doesn't count it as noise. The watcher runs outside of the experiment's namespaces, which hide other processes. It can't see
processes of other containers either; these show in the user time of the whole machine, as kernel threads and interrupts have none.

The verdict depends on the constants below and on nothing else.
"""
import collections
import json
import os
import select
import signal
import socket
import time
from typing import NamedTuple

from . import processes
from .stats import quantile

EVERY = 1.0          # seconds between two looks
# All of these are shares of all CPUs together, or of the seconds of a run.
OTHERS_MAX = 0.10    # what other programs may have on average
STOLEN_MAX = 0.05    # what the hypervisor may take on average
BURST = 0.25         # a second in which both together have more than that is a burst
BURSTS_MAX = 0.10    # the share of the seconds that may be bursts
SATURATED = 0.95     # a second in which so much is used, by whomever, has no CPU left
SATURATED_MAX = 0.05  # the share of the seconds that may be so, in experiments for which CPUs matter
UNSEEN_MIN = 0.02    # less than that can be an inexact account of time as well as processes that can't be seen
NAMED = 3            # culprits that a verdict names

QUIET, NOISY, UNKNOWN = "quiet", "too noisy to believe", "unknown"
WATCHER = "BENCH_NOISE_WATCHER"  # in the environment: the descriptor that leads to the watcher


class Reading(NamedTuple):
    """What had been used so far at one moment, in CPU seconds."""

    at: float
    user: float
    busy: float
    stolen: float
    ours: float
    ours_user: float
    kernel: float
    others: float
    others_user: float
    by_process: dict  # of the others: {(number, begin): (name, seconds)}


class Second(NamedTuple):
    """Who has used the CPUs between two looks, as shares of all of them."""

    seconds: float
    busy: float
    stolen: float
    ours: float
    kernel: float
    others: float
    unseen: float     # user time of processes that can't be seen; a little more or less than 0 where there are none
    names: dict       # {name of another program: share}


def read(roots):
    """A Reading; `roots` are the experiment's first processes."""
    among, system = processes.table(), processes.system()
    ours = processes.descendants(among, roots)
    kernel = {pid for pid, process in among.items() if process.is_kernel}
    others = set(among) - ours - kernel

    def total(pids):
        return sum(among[pid].cpu for pid in pids)

    def user(pids):
        return sum(among[pid].user + among[pid].ended_user for pid in pids)

    return Reading(time.monotonic(), system.user, system.user + system.system + system.interrupts, system.stolen, total(ours), user(ours),
                   total(kernel), total(others), user(others),
                   {(pid, among[pid].begun): (among[pid].name, among[pid].user + among[pid].system) for pid in others})


def between(before, after, cpus):
    """The Second between two Readings. Processes that have ended unseen are missing in sums, which must not make less than nothing of them."""
    seconds = after.at - before.at
    whole = seconds * cpus

    def share(used):
        return max(0.0, used) / whole

    names = collections.Counter()
    for key, (name, used) in after.by_process.items():
        names[name] += max(0.0, used - before.by_process.get(key, (name, 0.0))[1]) / whole
    unseen = (after.user - before.user) - (after.ours_user - before.ours_user) - (after.others_user - before.others_user)
    return Second(seconds, share(after.busy - before.busy), share(after.stolen - before.stolen), share(after.ours - before.ours),
                  share(after.kernel - before.kernel), share(after.others - before.others), unseen / whole,
                  {name: used for name, used in names.items() if used > 0.001})


class Verdict(NamedTuple):
    """What is to be thought of a run: one of QUIET, NOISY and UNKNOWN, a sentence for people, and the figures that it follows from."""

    verdict: str
    text: str
    figures: dict

    def facts(self):
        """For results.json."""
        return dict(self.figures, verdict=self.verdict, text=self.text)


def _percent(share):
    return "%.*f%%" % (0 if share >= 0.1 else 1, 100 * share)


def _mean(seconds, of):
    return sum(of(second) * second.seconds for second in seconds) / sum(second.seconds for second in seconds)


def _share_of_time(seconds, condition):
    return _mean(seconds, lambda second: 1.0 if condition(second) else 0.0)


def _culprits(seconds):
    names = {name for second in seconds for name in second.names}
    shares = {name: _mean(seconds, lambda second, name=name: second.names.get(name, 0.0)) for name in names}
    return dict(sorted(shares.items(), key=lambda pair: -pair[1])[:NAMED])


def judge(seconds, cpu_matters=False):
    """The Verdict on a run that consists of these Seconds; with `cpu_matters` its own use of the CPUs counts, too."""
    if not seconds:
        return Verdict(UNKNOWN, "Whether the machine was quiet is not known: the run was not watched.", {})
    unseen = _mean(seconds, lambda second: second.unseen)
    unseen = unseen if unseen > UNSEEN_MIN else 0.0
    others = _mean(seconds, lambda second: second.others) + unseen
    stolen = _mean(seconds, lambda second: second.stolen)
    bursts = _share_of_time(seconds, lambda second: second.others + unseen + second.stolen > BURST)
    saturated = _share_of_time(seconds, lambda second: second.busy + second.stolen > SATURATED)
    kernel = _mean(seconds, lambda second: second.kernel)
    culprits = {name: share for name, share in _culprits(seconds).items() if share >= 0.01}
    reasons = []
    if others > OTHERS_MAX:
        reasons.append("other programs had %s of the CPUs, more than %s%s" % (_percent(others), _percent(OTHERS_MAX), " (%s)" % ", ".join(
            "%s %s" % (name, _percent(share)) for name, share in culprits.items()) if culprits else ""))
    if stolen > STOLEN_MAX:
        reasons.append("the hypervisor took %s of them, more than %s" % (_percent(stolen), _percent(STOLEN_MAX)))
    if bursts > BURSTS_MAX:
        reasons.append("in %s of the seconds, more than %s, others had more than %s of the CPUs" % (
            _percent(bursts), _percent(BURSTS_MAX), _percent(BURST)))
    if cpu_matters and saturated > SATURATED_MAX:
        reasons.append("in %s of the seconds, more than %s, no CPU was idle, so that CPUs were the limit and not links" % (
            _percent(saturated), _percent(SATURATED_MAX)))
    if reasons:
        text = "The machine was too noisy to believe these figures: %s." % "; ".join(reasons)
    else:
        text = ("The machine was quiet: other programs had %s of the CPUs, the hypervisor took %s, the kernel's own threads had %s." % (
            _percent(others), _percent(stolen), _percent(kernel)))
    return Verdict(NOISY if reasons else QUIET, text, {
        "seconds": round(sum(second.seconds for second in seconds), 1), "others": others, "of these unseen": unseen,
        "others in the busiest tenth": quantile([second.others for second in seconds], 0.9), "stolen": stolen, "kernel threads": kernel,
        "the experiment": _mean(seconds, lambda second: second.ours), "bursts": bursts, "saturated": saturated, "who": culprits,
        "limits": {"others": OTHERS_MAX, "stolen": STOLEN_MAX, "a burst": BURST, "bursts": BURSTS_MAX, "saturated": SATURATED_MAX
                   if cpu_matters else None}})


# --- the watcher, which is outside ----------------------------------------------------------------


def _watch(root, control):
    """Looks every EVERY seconds between "begin" and "end", which it answers with the Seconds; ends with the experiment."""
    cpus, watched, before = os.cpu_count(), None, None
    while True:
        ready = select.select([control], [], [], EVERY if watched is not None else None)[0]
        word = control.recv(1) if ready else b""
        if ready and word not in (b"b", b"e"):
            return
        now = read([root])
        if word == b"b":
            watched, before = [], now
            continue
        if now.at - before.at >= EVERY / 4:
            watched.append(between(before, now, cpus))
            before = now
        if word == b"e":
            control.sendall(json.dumps(watched).encode() + b"\n")
            watched = None


def start_watcher():
    """Starts the watcher; to be called before the process enters its sandbox, in which Watcher() finds it."""
    root = os.getpid()
    inside, outside = socket.socketpair()
    if os.fork():
        outside.close()
        inside.set_inheritable(True)
        os.environ[WATCHER] = str(inside.detach())
        return
    inside.close()
    # who interrupts the experiment ends it, which ends the watcher
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    try:
        _watch(root, outside)
    except OSError:
        pass
    finally:
        os._exit(0)


class Watcher:
    """The watcher, seen from the experiment."""

    def __init__(self):
        number = os.environ.pop(WATCHER, None)
        self._socket = socket.socket(fileno=int(number)) if number else None
        if self._socket:
            self._socket.set_inheritable(False)

    def begin(self):
        """It looks from now on."""
        if self._socket:
            self._socket.sendall(b"b")

    def end(self):
        """What it has seen: Seconds, none where there is no watcher."""
        if not self._socket:
            return []
        self._socket.sendall(b"e")
        with self._socket.dup().makefile("r", encoding="utf-8") as file:
            return [Second(*values) for values in json.loads(file.readline() or "[]")]
