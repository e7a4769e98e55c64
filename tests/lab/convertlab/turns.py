# SPDX-License-Identifier: BSD-3-Clause
"""turns.py - which lab tests of a build may run at the same time

Most tests wait for packets and time-outs: many of them run side by side, PER_CPU for each CPU, however many jobs make starts. A
test that measures times or rates runs alone. Both hold a lock on the build directory, shared or exclusive; since tests that share
it come and go, one that measures waits until they are all done. (local.mk starts files in which everything measures last, and
what else make runs is over by then.) The kernel gives locks and places back, however a process ends.
"""
import errno
import fcntl
import os
import socket
import time

from .build import Build

PER_CPU = 4
INHERITED = "CONVERTLAB_TURN"  # the descriptors, for this program once it is executed again in the sandbox


def _places():
    """How many tests may run at once."""
    return int(os.environ.get("CONVERT_LABS") or PER_CPU * len(os.sched_getaffinity(0)))


class Turn:
    """The descriptors of the locks that this process holds, none at first. unshare(1) inherits the place, which is kept until it ends."""

    def __init__(self):
        directory = Build().directory
        self._inode = os.stat(directory).st_ino
        self._alone = None
        self._place = None
        if not self._inherit():
            self._lock = os.open(directory, os.O_RDONLY)
            os.set_inheritable(self._lock, True)

    def _inherit(self):
        """Takes over the locks that the process had before it entered the sandbox; False if there are none, or another build's."""
        fields = os.environ.pop(INHERITED, "").split()
        try:
            if not fields or os.fstat(int(fields[0])).st_ino != self._inode:
                return False
            self._lock = int(fields[0])
            self._place = socket.socket(fileno=int(fields[1])) if len(fields) > 1 else None
        except OSError:
            return False
        self._alone = self._place is None  # what it is before the first test
        return True

    def take(self, alone):
        """Waits until it may run: alone, or with others that don't measure."""
        if alone == self._alone:
            return
        if not alone and not self._place:
            self._take_place()
        # nobody who has the lock waits for a place; who changes the kind of lock gives the old one up first, says flock(2)
        fcntl.flock(self._lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        self._alone = alone
        os.environ[INHERITED] = " ".join(str(number) for number in [self._lock] + ([self._place.fileno()] if self._place else []))

    def _take_place(self):
        """A place is a name of a Unix socket that only one process can have; no file is left of it."""
        while True:
            for number in range(_places()):
                place = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                try:
                    place.bind("\0convertlab %d %d" % (self._inode, number))
                    place.set_inheritable(True)
                    self._place = place
                    return
                except OSError as error:
                    place.close()
                    if error.errno != errno.EADDRINUSE:
                        raise
            time.sleep(0.1)


# --- was a measurement disturbed? ----------------------------------------------------------------------------------------


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
    """Describes what has disturbed a measurement since then, for people to judge."""
    now = load()
    seconds, waited, stolen = (new - old for new, old in zip(now, before))
    return "in %.1f s tasks waited %.1f s for a CPU, and %.1f s were other machines'" % (seconds, waited, stolen)
