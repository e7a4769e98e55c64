# SPDX-License-Identifier: BSD-3-Clause
"""tokio's own tests of its sockets, its driver and its runtime

--source is its crate, unpacked (cargo fetch gets it), after "cargo test --no-run --features full" there.
"""
import glob
import os
import re

LIMIT = 300  # seconds for a part
ENVIRONMENT = {}
# Waits for urgent data, for ever: it ends at the converter.
LEFT_OUT = "priority_event_on_oob_data"
# The peer of each end of a connection is the converter.
EXPLAINED = [" tcp_accept (host_str|ip_port_tuple|ip_str|socket_addr|str_port_tuple)$", " tcp_connect connect_v[46]$"]
PARTS = "tcp_* net_* io_driver* io_async_fd buffered uds_* udp io_copy_bidirectional rt_common rt_threaded io_split process_smoke".split()
TEST = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. (\w+)", re.M)


def _program(source, part):
    """The newest that cargo made of this file; its name ends in a hash."""
    found = [name for name in glob.glob(os.path.join(source, "target/debug/deps", part + "-*")) if os.access(name, os.X_OK)]
    return max(found, key=os.path.getmtime, default=None)


def parts(source):
    names = sorted(os.path.basename(name)[:-3] for part in PARTS for name in glob.glob(os.path.join(source, "tests", part + ".rs")))
    return [name for name in names if _program(source, name)]


def command(source, part, tests, directory):  # pylint: disable=unused-argument
    """One test at a time, so that their lines aren't mixed."""
    names = [test.split(" ", 1)[1] for test in tests or ()]
    return [_program(source, part), "--test-threads=1", "--skip", LEFT_OUT, *(["--exact", *names] if names else [])]


def outcomes(part, log, directory):  # pylint: disable=unused-argument
    return {"%s %s" % (part, name): outcome for name, outcome in TEST.findall(log)}
