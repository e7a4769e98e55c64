# SPDX-License-Identifier: BSD-3-Clause
"""processes.py - what a process and its descendants have used: CPU time and memory, as /proc knows it"""
import contextlib
import os
import resource
import time

LOOK = 0.05   # seconds: how long to look whether the machine is idle
IDLE = 0.85   # of its CPUs

TICK = os.sysconf("SC_CLK_TCK")


def _stat(pid):
    with open("/proc/%s/stat" % pid, encoding="utf-8", errors="replace") as file:
        return file.read().rsplit(")", 1)[1].split()


def tree(roots):
    """The processes with these numbers and all that they have started."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                parents[int(entry)] = int(_stat(entry)[1])
    found, more = set(), set(roots)
    while more:
        found |= more
        more = {pid for pid, parent in parents.items() if parent in found} - found
    return sorted(pid for pid in found if pid in parents)


def cpu_seconds(roots):
    """User and system time of the tree, with that of those in it that have ended and were waited for."""
    total = 0
    for pid in tree(roots):
        with contextlib.suppress(OSError):
            total += sum(map(int, _stat(pid)[11:15]))
    return total / TICK


def memory_kb(roots):
    """What the tree occupies in user space; pages that several share are divided among them (Pss)."""
    total = 0
    for pid in tree(roots):
        with contextlib.suppress(OSError), open("/proc/%d/smaps_rollup" % pid, encoding="ascii") as file:
            total += sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    return total


def system_cpu_seconds():
    """CPU time of the whole machine that was not idle: what runs in interrupts belongs to no process."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICK


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


def room_for_descriptors(wanted):
    """Lets this process and those that it starts open so many descriptors, if the system permits; returns how many they may."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, most))
    return allowed
