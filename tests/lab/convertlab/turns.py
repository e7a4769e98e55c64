# SPDX-License-Identifier: BSD-3-Clause
"""turns.py - decides which lab tests of a build may run at the same time

Most tests wait for packets and time-outs. So their files run side by side, PER_CPU for each CPU, even if make starts more jobs; of the
files of "make check-long", one for each CPU, and one more whose tests do little but wait (@waits in harness.py). A file of tests that
measure times or rates runs alone. All files lock the build directory, shared or exclusively. Tests with a shared lock come and go, so a
file that measures waits until they are all done. (local.mk starts these files last, when make's other jobs are over.) The kernel releases
locks and places when a process ends, for any reason.
"""
import contextlib
import errno
import fcntl
import os
import socket
import time

from .build import Build

PER_CPU, LONG_PER_CPU = 4, 1
INHERITED = "CONVERTLAB_TURN"  # the descriptors, which this program needs after it has executed itself again in the sandbox


def _places():
    """How many tests may run at once."""
    per_cpu = LONG_PER_CPU if os.environ.get("CONVERT_LAB_PART") == "long" else PER_CPU
    return int(os.environ.get("CONVERT_LABS") or per_cpu * len(os.sched_getaffinity(0)))


def _take_place(inode, kind):
    """Takes a place: an abstract name of a Unix socket, which only one process can have. unshare(1) inherits the socket."""
    while True:
        for number in range(_places()):
            place = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                place.bind("\0convertlab %d %s %d" % (inode, kind, number))
                place.set_inheritable(True)
                return place
            except OSError as error:
                place.close()
                if error.errno != errno.EADDRINUSE:
                    raise
        time.sleep(0.1)


class Turn:
    """The right to run, which its process has until close() or its end; `_lock` is a descriptor, `_place` a socket or None."""

    def __init__(self, lock, place):
        self._lock, self._place = lock, place

    @contextlib.contextmanager
    def alone(self):
        """Waits until the other tests have ended; none begins inside `with`."""
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_SH)

    def close(self):
        """Gives the turn up."""
        os.close(self._lock)
        if self._place:
            self._place.close()


def _inherited(inode):
    """The turn that the process had before it entered the sandbox; None if there is none, or another build's."""
    fields = os.environ.pop(INHERITED, "").split()
    try:
        if fields and os.fstat(int(fields[0])).st_ino == inode:
            return Turn(int(fields[0]), socket.socket(fileno=int(fields[1])) if len(fields) > 1 else None)
    except OSError:
        pass
    return None


def take(alone, waits=False):
    """Waits until this process may run: alone, or with others that don't measure. Returns its Turn.

    waits: its tests do little but wait. In "make check-long" these have places of their own.
    """
    directory = Build().directory
    inode = os.stat(directory).st_ino
    turn = _inherited(inode)
    if turn:
        return turn
    place = None if alone else _take_place(inode, "waits" if waits and os.environ.get("CONVERT_LAB_PART") == "long" else "computes")
    lock = os.open(directory, os.O_RDONLY)
    os.set_inheritable(lock, True)
    # A process that holds the lock never waits for a place.
    fcntl.flock(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
    os.environ[INHERITED] = " ".join(str(number) for number in [lock] + ([place.fileno()] if place else []))
    return Turn(lock, place)


# --- was a measurement disturbed? ----------------------------------------------------------------------------------------

STOLEN, WAITED = 0.02, 0.5  # shares of the time


def _total(path, first, field):
    """Returns a field of the line that begins with this word, 0 where there is no such file."""
    try:
        with open(path, encoding="ascii") as file:
            for line in file:
                if line.startswith(first + " "):
                    return float(line.split()[field].rpartition("=")[2])
    except OSError:
        pass
    return 0


def load():
    """(now, seconds in which some task had to wait for a CPU, seconds of CPU that the hypervisor gave to others)"""
    return (time.monotonic(), _total("/proc/pressure/cpu", "some", 4) / 1e6,
            _total("/proc/stat", "cpu", 8) / os.sysconf("SC_CLK_TCK"))


def load_since(before):
    """(what has disturbed a measurement since then, whether it explains a wrong result)

    It does if other machines had the CPU for more than STOLEN of the time, or tasks waited for one for more than WAITED of it. Tests that
    compute much themselves have waited for up to a third of their time.
    """
    now = load()
    seconds, waited, stolen = (new - old for new, old in zip(now, before))
    return ("in %.1f s tasks waited %.1f s for a CPU, and %.1f s were other machines'" % (seconds, waited, stolen),
            stolen > STOLEN * seconds or waited > WAITED * seconds)


# --- do other programs use the machine? ----------------------------------------------------------------------------------

BUSY = 0.5  # share of the CPUs' time


def _cpu_time():
    """(the CPUs' time since the boot, how much of it they computed, for this machine or others)"""
    with open("/proc/stat", encoding="ascii") as file:
        times = [int(field) for field in file.readline().split()[1:9]]
    return sum(times), sum(times) - times[3] - times[4]  # idle, iowait


def share_of_others():
    """The share of the CPUs' time that other programs take, from 0 to 1: looks for a second, in which the caller and its tests wait."""
    before = _cpu_time()
    time.sleep(1)
    passed, computed = (new - old for new, old in zip(_cpu_time(), before))
    return computed / max(passed, 1)
