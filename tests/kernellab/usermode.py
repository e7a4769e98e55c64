# SPDX-License-Identifier: BSD-3-Clause
"""usermode.py - the sources of a distribution's kernel, built as an ordinary program: Linux in user mode, its architecture "um"

It needs no emulator, since programs run on the machine's own processor; only their system calls take several times as long. It isn't the
distribution's kernel: it has what usermode.config says, one processor, and no modules. What Linux does with packets and sockets is the same.

Its time is its own ("time-travel=inf-cpu", which is Linux's CONFIG_UML_TIME_TRAVEL_SUPPORT): it passes while all programs in there wait for
something, and jumps to the next timer then. So nothing takes time in there but what is meant to, such as a link's delay: no test fails for
slowness, and nobody waits for a time-out. A program that never waits, such as one that writes into a connection without a limit for some
seconds, stops such a machine. The file of tests that has stopped it is run again with this machine's time.
"""
import os
import shutil
import subprocess

from . import KernelError
from .machine import HERE, NICENESS, Machine

# What is needed to get and to build it.
PROGRAMS = ("make", "gcc", "flex", "bison", "bc", "xz", "dpkg-deb", "apt-get", "apt-cache")
CONFIG = os.path.join(HERE, "usermode.config")


def _run(words, log, **options):
    """Runs a step of the build. Raises KernelError with its last words."""
    log.write("+ %s\n" % " ".join(words))
    log.flush()
    status = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, check=False, **options).returncode
    if status != 0:
        raise KernelError("%s: status %d; see %s" % (" ".join(words), status, log.name))


def lacking(tree):
    """What usermode.config asks for and this version of Linux hasn't got in user mode, as words of a configuration."""
    with open(CONFIG, encoding="ascii") as file:
        wanted = [line.strip() for line in file if line.startswith("CONFIG_")]
    with open(os.path.join(tree, ".config"), encoding="ascii") as file:
        has = set(file.read().splitlines())
    return [word for word in wanted if word not in has]


def build(source, log=print):
    """
    Returns the path of a Source's kernel as a program, which is built unless it is there already.

    It takes some minutes, and 3 GB that are given back.
    """
    program = os.path.join(source.place, "linux-" + source.title)
    if os.path.exists(program):
        return program
    log("%s: building Linux %s in user mode" % (source.suite, source.title))
    tree = os.path.join(source.place, "tree")
    shutil.rmtree(tree, ignore_errors=True)
    os.makedirs(tree)
    make = ["make", "-C", tree, "ARCH=um"]
    with open(os.path.join(source.place, "build.log"), "w", encoding="utf-8") as said:
        _run(["tar", "-C", tree, "--strip-components=1", "-xf", source.tarball], said)
        _run([*make, "x86_64_defconfig"], said)
        _run(["sh", "scripts/kconfig/merge_config.sh", "-m", ".config", CONFIG], said, cwd=tree)
        _run([*make, "olddefconfig"], said)
        for word in lacking(tree):
            log("%s: Linux %s in user mode has no %s" % (source.suite, source.title, word))
        _run(["nice", "-n", NICENESS, *make, "-j%d" % os.cpu_count(), "linux"], said)
    os.replace(os.path.join(tree, "linux"), program)
    shutil.rmtree(tree)
    os.unlink(source.tarball)
    return program


class UserMode(Machine):
    """Linux as a program that has this machine's files."""

    files_by = "hostfs"
    at_once = 1  # it has one processor

    def __init__(self, program, results, busybox, jumps=True, memory="4G"):
        """jumps: whether it has a time of its own, of which nothing is heard for minutes only where a program never waits"""
        super().__init__(results)
        self._program = program
        self._busybox = busybox
        self._memory = memory
        self._time = ["time-travel=inf-cpu"] if jumps else []
        self.patience = 1 if jumps else 6
        if jumps:
            self.stalled_seconds = 300

    def command(self, script):
        # It has no disk, and writes to standard output what its first process does.
        return ["nice", "-n", NICENESS, self._program, *self._time, "mem=" + self._memory, "rootfstype=hostfs", "rootflags=/", "ro", "quiet",
                "init=" + os.path.join(HERE, "usermode.sh"), "con=null", "con0=null,fd:1", "KERNELLAB_RESULTS=" + self._results,
                "KERNELLAB_SCRIPT=" + script, "KERNELLAB_BUSYBOX=" + self._busybox]
