# SPDX-License-Identifier: BSD-3-Clause
"""machine.py - describes the machine of a measurement and its time, so that figures of different machines aren't compared by mistake"""
import os
import platform
import re
import subprocess
import time


def _read(path, pattern, default=""):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            found = re.search(pattern, file.read(), re.MULTILINE)
    except OSError:
        return default
    return found.group(1).strip() if found else default


def load():
    """Returns the load average of the last minute, which tells what else happened on this machine."""
    return os.getloadavg()[0]


def facts():
    """The machine and its system, by name."""
    memory = int(_read("/proc/meminfo", r"^MemTotal: *(\d+)", "0"))
    return {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "processor": _read("/proc/cpuinfo", r"^model name\s*:(.*)$", platform.machine()) or platform.machine(),
        "cores": os.cpu_count(),
        "memory": "%.0f GiB" % (memory / 2**20),
        "virtual": bool(re.search(r"\bhypervisor\b", _read("/proc/cpuinfo", r"^flags\s*:(.*)$"))),
        "kernel": platform.release(),
        "system": _read("/etc/os-release", r'^PRETTY_NAME="?([^"\n]*)'),
        "libc": " ".join(platform.libc_ver()),
        "congestion control": _read("/proc/sys/net/ipv4/tcp_congestion_control", r"(.*)"),
    }


def output(command):
    """What a program prints, "" where it can't be run."""
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                              timeout=10, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def version(command, pattern=r"(\d+\.\d[\w.+-]*)"):
    """The version that a program prints of itself, "" where it prints none."""
    found = re.search(pattern, output(command))
    return found.group(1) if found else ""


def package_version(path):
    """The version of the package that a file belongs to, where dpkg knows it."""
    try:
        owner = subprocess.run(["dpkg-query", "--search", os.path.realpath(path)], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True, check=False).stdout.split(":")[0]
        return subprocess.run(["dpkg-query", "--show", "--showformat=${Version}", owner], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, check=False).stdout if owner else ""
    except OSError:
        return ""
