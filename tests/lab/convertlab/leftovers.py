# SPDX-License-Identifier: BSD-3-Clause
"""leftovers.py - finds processes, mounts and files that a program in a sandbox has left on the machine

A network namespace lives as long as a process is in it or holds it open, or a mount keeps it. Each process that the program
started carries a mark in its environment. So if there is no such process and no new mount, no namespace is left.
"""
import contextlib
import os

from .waiting import LabError, wait_until

MARK = "CONVERTLAB_MARK"
PLACES = ("/tmp", "/var/tmp", "/dev/shm", "/run", "/run/netns")


def _marked(mark):
    """The processes with this mark, except the calling one: ["4711 curl", …]"""
    found = []
    wanted = ("%s=%s" % (MARK, mark)).encode()
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            with open("/proc/%s/environ" % entry, "rb") as file:
                if wanted not in file.read().split(b"\0"):
                    continue
            with open("/proc/%s/comm" % entry, encoding="utf-8", errors="replace") as file:
                found.append("%s %s" % (entry, file.read().strip()))
    return found


def _namespace_mounts():
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
        return {line.split()[4] for line in file if " nsfs " in line}


def _own_files():
    """The names of this user's files in PLACES."""
    found = set()
    for place in PLACES:
        with contextlib.suppress(OSError):
            for entry in os.scandir(place):
                with contextlib.suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_uid == os.getuid():
                        found.add(entry.path)
    return found


class Leftovers:
    """Made before the program starts: it marks this process's environment, which all children inherit."""

    def __init__(self):
        self._mark = os.urandom(8).hex()
        os.environ[MARK] = self._mark
        self._mounts = _namespace_mounts()
        self._files = _own_files()

    def processes(self):
        """Processes that still run."""
        return _marked(self._mark)

    def namespaces(self):
        """New mounts of namespaces."""
        return sorted(_namespace_mounts() - self._mounts)

    def files(self, patience=2.0):
        """Returns new files that don't disappear within `patience` seconds. Another program of the same user may have made them."""
        new = _own_files() - self._files

        def gone():
            new.intersection_update(_own_files())
            return not new
        with contextlib.suppress(LabError):
            wait_until(gone, patience, "files to go", interval=0.1)
        return sorted(new)
