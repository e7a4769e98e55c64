# SPDX-License-Identifier: BSD-3-Clause
"""processes.py - what a process and its descendants have used: CPU time and memory, as /proc knows it"""
import contextlib
import glob
import os
import resource
import time
from typing import NamedTuple

LOOK = 0.05   # seconds: how long to look whether the machine is idle
IDLE = 0.85   # of its CPUs

SETTLE = 2        # seconds that the kernel may take to free what has ended, at most
SETTLED_KB = 100  # its memory has settled when it changes by no more than that while we look

TICK = os.sysconf("SC_CLK_TCK")


KERNEL_THREAD = 0x00200000  # PF_KTHREAD among a task's flags


class Process(NamedTuple):
    """What /proc says of one process; times are in seconds, `ended` are those of its children that have ended and were waited for."""

    parent: int
    name: str
    begun: int
    is_kernel: bool
    user: float
    system: float
    ended_user: float
    ended_system: float

    @property
    def cpu(self):
        """All the time that it is charged with."""
        return self.user + self.system + self.ended_user + self.ended_system


def _process(pid):
    with open("/proc/%s/stat" % pid, encoding="utf-8", errors="replace") as file:
        before, _, after = file.read().rpartition(")")
    fields = after.split()
    times = [int(field) / TICK for field in fields[11:15]]
    return Process(int(fields[1]), before.partition("(")[2], int(fields[19]), bool(int(fields[6]) & KERNEL_THREAD), *times)


def table():
    """{process number: Process} of all that this process can see."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                found[int(entry)] = _process(entry)
    return found


def descendants(among, roots):
    """The roots and all that they have started, of the processes of such a table."""
    children = {}
    for pid, process in among.items():
        children.setdefault(process.parent, []).append(pid)
    found, more = set(), set(roots) & set(among)
    while more:
        found |= more
        more = {child for pid in more for child in children.get(pid, ())} - found
    return found


def tree(roots):
    """The processes with these numbers and all that they have started."""
    return sorted(descendants(table(), roots))


def cpu_seconds(roots):
    """User and system time of the tree, with that of those in it that have ended and were waited for."""
    among = table()
    return sum(among[pid].cpu for pid in descendants(among, roots))


def memory_kb(roots):
    """What the tree occupies in user space; pages that several share are divided among them (Pss)."""
    total = 0
    for pid in tree(roots):
        with contextlib.suppress(OSError), open("/proc/%d/smaps_rollup" % pid, encoding="ascii") as file:
            total += sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    return total


class System(NamedTuple):
    """CPU time of the whole machine, in seconds: what runs in interrupts belongs to no process; what the hypervisor gave to others is stolen."""

    user: float
    system: float
    interrupts: float
    stolen: float


def system():
    """What the whole machine has used so far."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, kernel, _, _, irq, softirq, steal = (int(field) / TICK for field in file.readline().split()[1:9])
    return System(user + nice, kernel, irq + softirq, steal)


def system_cpu_seconds():
    """CPU time of the whole machine that was not idle."""
    return sum(system())


def wait_for_quiet(at_most):
    """Waits until the machine is idle, at most so many seconds. Returns how many it has waited."""
    start = time.monotonic()
    while True:
        before, begin = system_cpu_seconds(), time.monotonic()
        time.sleep(LOOK)
        busy = (system_cpu_seconds() - before) / ((time.monotonic() - begin) * os.cpu_count())
        if busy <= 1 - IDLE or time.monotonic() - start > at_most:
            return time.monotonic() - start


def kernel_memory_kb():
    """Memory of the kernel's own, for all that runs: its objects (sockets are among them), stacks of threads, page tables.

    What the machine has less of free memory afterwards is no measure: tens of MB of it move all the time for other reasons.
    """
    with open("/proc/meminfo", encoding="ascii") as file:
        found = {name: int(value.split()[0]) for name, value in (line.split(":") for line in file)}
    return found["Slab"] + found["KernelStack"] + found["PageTables"]


def settle_kernel_memory():
    """Has the kernel give back what it keeps for later, and waits until it frees no more of what has ended just now, two seconds at most."""
    for path in glob.glob("/sys/kernel/slab/*/shrink"):
        with contextlib.suppress(OSError), open(path, "w", encoding="ascii") as file:
            file.write("1")
    until, before = time.monotonic() + SETTLE, kernel_memory_kb()
    while time.monotonic() < until:
        time.sleep(LOOK)
        now = kernel_memory_kb()
        if abs(now - before) <= SETTLED_KB:
            return
        before = now


def room_for_descriptors(wanted):
    """Lets this process and those that it starts open so many descriptors, if the system permits; returns how many they may."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, most))
    return allowed
