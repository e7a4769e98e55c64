# SPDX-License-Identifier: BSD-3-Clause
"""kernel.py - probes the features of this machine's Linux, mainly of Multipath TCP, for tests that expect less of an older kernel

libconvert supports kernels from 6.1 on (doc/kernels.md). A test of a feature that an older kernel lacks can't run there: need(). If the
application still works without the feature, the test expects the library's alternative: has(), and verdict().

We test the kernel itself for a feature, since distributions add features to older versions, and remove some.
"""
import dataclasses
import errno
import functools
import os
import re
import socket
import struct
import subprocess
from typing import Callable

from .harness import Unsuitable

IPPROTO_MPTCP = 262
TCP_FASTOPEN_NO_COOKIE = 34
SOL_MPTCP, MPTCP_INFO = 284, 1
MPTCP_INFO_FLAG_FALLBACK = 1


@functools.lru_cache
def _takes_data_in_syns():
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP) as sock:
            sock.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 1)
    except OSError:
        return False
    return True


def _is_6_12():
    return tuple(int(number) for number in re.findall(r"\d+", os.uname().release)[:2]) >= (6, 12)


@dataclasses.dataclass(frozen=True)
class _Feature:
    since: str  # the version of Linux; "": no version, since it depends on how the kernel was built
    what: str
    probe: Callable


FEATURES = {
    # One patch series in 6.2 gave MPTCP sockets MSG_FASTOPEN, TCP_FASTOPEN and TCP_FASTOPEN_NO_COOKIE.
    "fastopen": _Feature("6.2", "Fast Open on MPTCP sockets", _takes_data_in_syns),
    # The kernel switches Multipath TCP off for a while if SYNs with its option get lost.
    "blackhole": _Feature("6.12", "detection of black holes for MPTCP", lambda: os.path.exists("/proc/sys/net/mptcp/blackhole_timeout")),
    # 6.1 accepts the option and ignores it. We go by the version, since only a connection would show that.
    "rcvlowat": _Feature("6.12 or a version before it", "SO_RCVLOWAT that MPTCP sockets heed", _is_6_12),
    "calls": _Feature("", "/proc/PID/syscall, which shows where a thread waits", lambda: os.path.exists("/proc/self/syscall")),
    "time": _Feature("", "time namespaces, in which hours pass at once", lambda: os.path.exists("/proc/self/ns/time")),
}
# Without Fast Open on MPTCP sockets the request is the first data behind the handshake.
TAKEN, BEHIND = "converted over MPTCP, request taken in the SYN", "converted over MPTCP, request behind the handshake"


def has(name):
    """Tells whether the kernel has this one of FEATURES."""
    return FEATURES[name].probe()


def need(name):
    """Ends a test that makes no sense without one of FEATURES."""
    if not has(name):
        since = FEATURES[name].since
        raise Unsuitable("Linux %s has no %s%s" % (os.uname().release, FEATURES[name].what, since and ", which came with " + since))


def needs(name):
    """Decorates a test that makes no sense without one of FEATURES."""
    def decorate(function):
        @functools.wraps(function)
        def tested():
            need(name)
            return function()
        return tested
    return decorate


def must_run(program):
    """Ends a test whose program is for an architecture that the kernel doesn't run, usually i386."""
    try:
        with subprocess.Popen([program], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as started:
            started.kill()
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
        raise Unsuitable("this kernel runs no programs like %s" % os.path.basename(program)) from error


def protocols_with_fastopen():
    """The protocols whose SYNs carry data."""
    return (IPPROTO_MPTCP, socket.IPPROTO_TCP) if has("fastopen") else (socket.IPPROTO_TCP,)


def load_way(mptcp):
    """The load tool's way (--via) through a converter: with requests in SYNs, if the kernel sends data in SYNs."""
    return "convert-syn" if has("fastopen") or not mptcp else "convert-behind"


def verdict():
    """The shim's log line for the best conversion that this kernel allows."""
    return TAKEN if has("fastopen") else BEHIND


def supervised_verdict():
    """The beginning of the log line for a supervised program's connection: without Fast Open it isn't over Multipath TCP."""
    return "converted over " + ("MPTCP" if has("fastopen") else "TCP")


def speaks_mptcp(sock):
    """Tells whether a connected socket speaks Multipath TCP, and hasn't fallen back. TCP_IS_MPTCP would do, but 6.1 hasn't got it."""
    try:
        flags, = struct.unpack_from("8xI", sock.getsockopt(SOL_MPTCP, MPTCP_INFO, 100))
    except OSError:
        return False
    return not flags & MPTCP_INFO_FLAG_FALLBACK
