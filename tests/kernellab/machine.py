# SPDX-License-Identifier: BSD-3-Clause
"""machine.py - boots a kernel in an emulator, which runs the lab's tests in there

virtme-ng boots the kernel with the machine's own files as its root, so that the tests find what is installed, the sources and the build where they
are. Nothing is written outside of the results' directory (guest.sh).
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
VIRTME = "virtme-ng==1.42"  # the version that this was written with
# What a mitigation protects a processor from, an emulated one doesn't have; they make it slower by a tenth.
KERNEL_OPTIONS = ("mitigations=off", "apparmor=0")
# An emulated machine takes some twenty times as long as a real one, with several tests at once; most limits are generous already.
PATIENCE = {True: 2, False: 10}
# Where virtme-ng mounts file systems of its own, so that nothing of this machine is found in there.
HIDDEN = ("/run", "/tmp", "/var/cache", "/var/lib/apt", "/var/lib/machines", "/var/lib/portables", "/var/lib/private", "/var/lib/snapd/cookie",
          "/var/lib/sudo", "/var/log", "/var/spool/rsyslog", "/var/tmp")
FILE_SECONDS = 3600  # the most that a file of tests may take, of the emulated machine's time
STALLED_SECONDS = 2700  # a machine of which nothing was heard for so long is taken for dead
NICENESS = "15"


def has_kvm():
    """Tells whether virtual machines run at the processor's own speed here. A KVM that the processor doesn't help with boots no such kernel."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        flags = set(file.read().split())
    return os.access("/dev/kvm", os.R_OK | os.W_OK) and bool(flags & {"vmx", "svm"})


def must_be_seen(*paths):
    """Raises KernelError if the machine wouldn't find one of these."""
    for path in paths:
        for hidden in HIDDEN:
            if os.path.commonpath([hidden, os.path.realpath(path)]) == hidden:
                raise KernelError("%s: the emulated machine has a %s of its own, so that it can't be below that" % (path, hidden))


def find_programs(more="/usr/sbin:/sbin"):
    """Raises KernelError unless all is there that the emulator needs; virtme-ng is find_virtme()'s.

    more: directories that a user's PATH may lack; they are added to it.
    """
    os.environ["PATH"] = os.environ.get("PATH", "") + ":" + more
    needed = ("qemu-system-x86_64", "depmod", "dpkg-deb", "apt-get", "apt-cache")
    missing = [name for name in needed if not shutil.which(name)]
    if missing:
        raise KernelError("missing: %s; build-tools/install-needs kernels" % ", ".join(missing))


def find_virtme(directory, log=print):
    """Returns the path of virtme-ng's vng: the machine's, or one that pip puts below `directory`, since Debian 12 has no package of it."""
    found = shutil.which("vng") or os.path.join(directory, "virtme", "bin", "vng")
    if os.path.exists(found):
        return found
    if os.environ.get("CONVERT_INSTALL") == "no":
        raise KernelError("vng is missing, and CONVERT_INSTALL=no; on Debian 13: apt-get install virtme-ng; elsewhere: pip install virtme-ng")
    place = os.path.join(directory, "virtme")
    log("getting %s from PyPI, into %s" % (VIRTME, place))
    for command in ([sys.executable, "-m", "venv", place], [os.path.join(place, "bin", "pip"), "-q", "install", VIRTME]):
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if result.returncode != 0:
            shutil.rmtree(place, ignore_errors=True)
            raise KernelError("%s: status %d:\n%sWithout PyPI: on Debian 13 apt-get install virtme-ng" % (
                " ".join(command), result.returncode, result.stdout))
    return found


def _quoted(words):
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
    """An emulated machine with a kernel, which runs files of tests and leaves their logs in `results`."""

    def __init__(self, kernel, results, virtme, busybox, cpus=2, memory="3G"):
        self._kernel = kernel
        self._results = results
        self._virtme = virtme
        self._busybox = busybox
        self._size = ["--cpus", str(cpus), "--memory", memory]

    def write_script(self, tests, build, at_once):
        """Writes what the machine runs; returns its path. A kernel's command line, of 2048 bytes, has no room for it."""
        environment = ["env", "CONVERT_PATIENCE=%d" % PATIENCE[has_kvm()], "CONVERT_LABS=%d" % at_once, "CONVERT_BUILDDIR=" + build,
                       "PYTHONDONTWRITEBYTECODE=1", "HOME=/root", "TMPDIR=/var/tmp", "PATH=" + os.environ["PATH"]]
        inside = _quoted(["sh", os.path.join(HERE, "guest.sh"), self._results, *environment, sys.executable, os.path.join(HERE, "guest.py"),
                          self._results, str(FILE_SECONDS), str(at_once), *tests])
        path = os.path.join(self._results, "start.sh")
        with open(path, "w", encoding="utf-8") as file:
            file.write("%s >%s 2>&1\ndmesg >%s\n" % (inside, *(_quoted([os.path.join(self._results, name)]) for name in ("machine.out", "dmesg.txt"))))
        return path

    def command(self, script):
        """The command line that boots it and runs a script."""
        words = ["nice", "-n", NICENESS, self._virtme, "--verbose", "--force-9p", "--disable-microvm", "--busybox", self._busybox,
                 "-r", self._kernel.image, "--rwdir", self._results, "--user", "root", *self._size]
        words += [] if has_kvm() else ["--disable-kvm"]
        for option in KERNEL_OPTIONS:
            words += ["--append", option]
        words.append("--qemu-opts=-fsdev local,id=kernellab,path=/,security_model=none,multidevs=remap,readonly=on "
                     "-device virtio-9p-pci,fsdev=kernellab,mount_tag=kernellab")
        return words + ["--", "sh %s" % _quoted([script])]

    def run(self, tests, build, at_once, heard=lambda: None):
        """Boots it, has it run the files and waits for its end; calls heard() now and then. Returns whether it came to an end by itself."""
        path = os.path.join(self._results, "console.txt")
        # vng looks for its own helpers on the PATH
        environment = dict(os.environ, PATH=os.path.dirname(self._virtme) + ":" + os.environ["PATH"])
        with open(path, "w", encoding="utf-8") as console:
            process = subprocess.Popen(self.command(self.write_script(tests, build, at_once)), stdin=subprocess.DEVNULL, stdout=console,
                                       stderr=subprocess.STDOUT, start_new_session=True, cwd=self._results, env=environment)
        be_nice(process.pid)
        try:
            while _goes_on(process, 1):
                heard()
                if time.time() - self._last_heard() > STALLED_SECONDS:
                    return False
            return os.path.exists(os.path.join(self._results, "machine.out"))
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                process.wait()

    def _last_heard(self):
        """When any file of its results was changed."""
        return max(entry.stat().st_mtime for entry in os.scandir(self._results))
