#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""one_connection.py - a connection of another architecture's curl is converted: what tests/platforms/arm64 runs of the lab

FOREIGN_CURL is that curl, FOREIGN_PRELOAD what is preloaded behind libconvert.so, which CONVERT_SHIM names. All else is this machine's.
"""
import hashlib
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lab"))

# pylint: disable=wrong-import-position
from convertlab import Lab, Link, check, equal, main, servers

BYTES = 300_000


def test_one_connection():
    with Lab(wifi=Link(delay_ms=10), lte=None, core=Link(delay_ms=20)) as lab:
        lab.convertd()
        lab.http()
        env = lab.converted()
        env["LD_PRELOAD"] += ":" + os.environ["FOREIGN_PRELOAD"]
        path = os.path.join(lab.directory, "download")
        lab.client.run([os.environ["FOREIGN_CURL"], "-sS", "-o", path, "http://%s/bytes/%d" % (lab.server.addr4, BYTES)], env=env, timeout=120)
        with open(path, "rb") as file:
            equal(hashlib.sha256(file.read()).digest(), hashlib.sha256(servers.pattern(BYTES)).digest(), "the bytes")
        # qemu passes no MPTCP_INFO on, so that the library takes Multipath TCP for lost
        equal(lab.shim_log().count("converted over TCP"), 1, "conversions in\n" + lab.shim_log())


if __name__ == "__main__":
    main()
