# SPDX-License-Identifier: BSD-3-Clause
"""machine.py - boots a kernel, in an emulator (emulator.py) or in user mode (usermode.py), which runs the lab's tests in there

The machine's own files are the root in there, so that the tests find what is installed, the sources and the build where they are. Nothing is
written outside of the results' directory (guest.sh).
"""
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time

from . import KernelError

HERE = os.path.dirname(os.path.abspath(__file__))
# Where virtme-ng and guest.sh mount file systems of their own, so that nothing of this machine is found in there.
HIDDEN = ("/run", "/tmp", "/var/cache", "/var/lib/apt", "/var/lib/machines", "/var/lib/portables", "/var/lib/private", "/var/lib/snapd/cookie",
          "/var/lib/sudo", "/var/log", "/var/spool/rsyslog", "/var/tmp")
FILE_SECONDS = 3600  # the most that a file of tests may take, of the emulated machine's time
NICENESS = "15"
SCRIPT = "start.sh"  # below the results, what the machine runs


def must_be_seen(*paths):
    """Raises KernelError if the machine wouldn't find one of these."""
    for path in paths:
        for hidden in HIDDEN:
            if os.path.commonpath([hidden, os.path.realpath(path)]) == hidden:
                raise KernelError("%s: the emulated machine has a %s of its own, so that it can't be below that" % (path, hidden))


def find_programs(needed, more="/usr/sbin:/sbin"):
    """Raises KernelError unless these programs are there.

    more: directories that a user's PATH may lack; they are added to it.
    """
    os.environ["PATH"] = os.environ.get("PATH", "") + ":" + more
    missing = [name for name in needed if not shutil.which(name)]
    if missing:
        raise KernelError("missing: %s; build-tools/install-needs kernels" % ", ".join(missing))


def quoted(words):
    return " ".join("'%s'" % word.replace("'", "'\\''") for word in words)


def be_nice(leader):
    """Has a session yield to others as well, which sched(7)'s autogroups take for equal whatever the niceness of what is in them."""
    with contextlib.suppress(OSError):
        with open("/proc/%d/autogroup" % leader, "w", encoding="ascii") as file:
            file.write(NICENESS)


def _goes_on(process, seconds):
    """Waits for a process's end for so long at most. Returns whether it hasn't ended."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    return process.returncode is None


class Machine:
    """A machine with another kernel, which runs files of tests and leaves their logs in `results`. Those that follow know how it is booted."""

    patience = 2  # how many times as long as on this machine tests wait for something
    at_once = 3  # how many files of tests run at the same time, unless somebody says another number
    stalled_seconds = 2700  # a machine of which nothing was heard for so long is taken for dead
    files_by = ""  # how guest.sh gets at this machine's files

    def __init__(self, results):
        self._results = results

    def command(self, script):
        """The command line that boots it and runs a script."""
        raise NotImplementedError

    def environment(self):
        """The environment of that command."""
        return dict(os.environ)

    def write_script(self, tests, build, at_once):
        """Writes what the machine runs; returns its path. A kernel's command line, of 2048 bytes, has no room for it."""
        environment = ["env", "CONVERT_PATIENCE=%d" % self.patience, "CONVERT_LABS=%d" % at_once, "CONVERT_BUILDDIR=" + build,
                       "PYTHONDONTWRITEBYTECODE=1", "HOME=/root", "TMPDIR=/var/tmp", "PATH=" + os.environ["PATH"]]
        inside = quoted(["sh", os.path.join(HERE, "guest.sh"), self.files_by, self._results, *environment, sys.executable,
                          os.path.join(HERE, "guest.py"), self._results, str(FILE_SECONDS), str(at_once), *tests])
        path = os.path.join(self._results, SCRIPT)
        with open(path, "w", encoding="utf-8") as file:
            file.write("%s >%s 2>&1\ndmesg >%s\n" % (inside, *(quoted([os.path.join(self._results, name)]) for name in ("machine.out", "dmesg.txt"))))
        return path

    def run(self, tests, build, at_once, heard=lambda: None):
        """Boots it, has it run the files and waits for its end; calls heard() now and then. Returns whether it came to an end by itself."""
        path = os.path.join(self._results, "console.txt")
        with open(path, "w", encoding="utf-8") as console:
            process = subprocess.Popen(self.command(self.write_script(tests, build, at_once)), stdin=subprocess.DEVNULL, stdout=console,
                                       stderr=subprocess.STDOUT, start_new_session=True, cwd=self._results, env=self.environment())
        be_nice(process.pid)
        try:
            while _goes_on(process, 1):
                heard()
                if time.time() - self._last_heard() > self.stalled_seconds:
                    return False
            return os.path.exists(os.path.join(self._results, "machine.out"))
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                process.wait()

    def _last_heard(self):
        """When any file of its results was changed. One that the machine has just given another name is found when it is looked for next."""
        times = [0]
        for entry in os.scandir(self._results):
            with contextlib.suppress(FileNotFoundError):
                times.append(entry.stat().st_mtime)
        return max(times)
