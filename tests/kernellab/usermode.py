# SPDX-License-Identifier: BSD-3-Clause
"""usermode.py - the sources of a distribution's kernel, built as an ordinary program: Linux in user mode, its architecture "um"

It needs no emulator, since programs run on the machine's own processor; only their system calls take several times as long. It isn't the
distribution's kernel: it has what usermode.config says, one processor, and no modules. What Linux does with packets and sockets is the same.

Its time is its own ("time-travel=inf-cpu", which is Linux's CONFIG_UML_TIME_TRAVEL_SUPPORT): it passes while all programs in there wait for
something, and jumps to the next timer then. So nothing takes time in there but what is meant to, such as a link's delay: no test fails for
slowness, and nobody waits for a time-out. A program that never waits, such as one that writes into a connection without a limit for some
seconds, stops such a machine, and the file of tests that started it is given up.
"""
import os
import re
import shutil
import subprocess
import tempfile

from . import KernelError
from .machine import HERE, NICENESS, Machine

# What is needed to get and to build it.
PROGRAMS = ("make", "gcc", "flex", "bison", "bc", "xz", "dpkg-deb", "apt-get", "apt-cache")
CONFIG = os.path.join(HERE, "usermode.config")
# Each page of a program in there can take a memory mapping out here. Go's compiler needs more of them than the
# 65530 that Linux allows by default.
MAPPINGS = "/proc/sys/vm/max_map_count", 1 << 20


# Prints how many bytes this machine's processor saves of its registers beyond the general ones (CPUID, leaf 13).
STATE_SIZE = """#include <cpuid.h>
#include <stdio.h>
int main(void)
{
	unsigned int largest, size, all, rest;

	__cpuid_count(13, 0, largest, size, all, rest);
	return printf("%u", size) < 0;
}
"""


def state_size():
    """
    How many bytes the processor's registers beyond the general ones take here, of AVX, AMX and the like.

    Linux in user mode has this as a constant, 2696 bytes (6.1 and 6.12), and runs only where it is that, since PTRACE_SETREGSET wants it
    exactly. As it has them on its stacks, usermode.config asks for larger ones.
    """
    with tempfile.TemporaryDirectory() as directory:
        program = os.path.join(directory, "state_size")
        subprocess.run(["gcc", "-o", program, "-x", "c", "-"], input=STATE_SIZE, encoding="ascii", check=True)
        return int(subprocess.run([program], stdout=subprocess.PIPE, encoding="ascii", check=True).stdout)


def _set_state_size(tree, size):
    """Puts the size into the sources, where they have it as a constant."""
    path = os.path.join(tree, "arch", "x86", "um", "user-offsets.c")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(re.sub(r"(DEFINE_LONGS\(HOST_FP_SIZE, )\d+\)", r"\g<1>%d)" % size, text))


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

    It takes some minutes, and 3 GB that are given back. The program is for processors with registers of this size.
    """
    with open(MAPPINGS[0], encoding="ascii") as file:
        if int(file.read()) < MAPPINGS[1]:
            log("Large programs, such as Go's compiler, are killed in user mode here. Allow them more memory mappings: sysctl -w vm.max_map_count=%d"
                % MAPPINGS[1])
    size = state_size()
    program = os.path.join(source.place, "linux-%s-%d" % (source.title, size))
    if os.path.exists(program):
        return program
    log("%s: building Linux %s in user mode" % (source.suite, source.title))
    tree = os.path.join(source.place, "tree")
    shutil.rmtree(tree, ignore_errors=True)
    os.makedirs(tree)
    make = ["make", "-C", tree, "ARCH=um"]
    with open(os.path.join(source.place, "build.log"), "w", encoding="utf-8") as said:
        _run(["tar", "-C", tree, "--strip-components=1", "-xf", source.tarball], said)
        _set_state_size(tree, size)
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
    patience = 1
    stalled_seconds = 300  # nothing is heard of it for minutes only where a program never waits

    def __init__(self, program, results, busybox, memory="4G"):
        super().__init__(results)
        self._program = program
        self._busybox = busybox
        self._memory = memory

    def command(self, script):
        # It has no disk, and writes to standard output what its first process does.
        return ["nice", "-n", NICENESS, self._program, "time-travel=inf-cpu", "mem=" + self._memory, "rootfstype=hostfs", "rootflags=/", "ro", "quiet",
                "init=" + os.path.join(HERE, "usermode.sh"), "con=null", "con0=null,fd:1", "KERNELLAB_RESULTS=" + self._results,
                "KERNELLAB_SCRIPT=" + script, "KERNELLAB_BUSYBOX=" + self._busybox]
