#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""one_connection.py - a connection of another architecture's curl is converted: what tests/platforms/arm64 runs of the lab, and musl --i386

FOREIGN_CURL is that curl, FOREIGN_PRELOAD what is preloaded behind libconvert.so, if anything, and FOREIGN_OVER what it is converted over.
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
        if "FOREIGN_PRELOAD" in os.environ:
            env["LD_PRELOAD"] += ":" + os.environ["FOREIGN_PRELOAD"]
        path = os.path.join(lab.directory, "download")
        lab.client.run([os.environ["FOREIGN_CURL"], "-sS", "-o", path, "http://%s/bytes/%d" % (lab.server.addr4, BYTES)], env=env, timeout=120)
        with open(path, "rb") as file:
            equal(hashlib.sha256(file.read()).digest(), hashlib.sha256(servers.pattern(BYTES)).digest(), "the bytes")
        equal(lab.shim_log().count("converted over %s" % os.environ["FOREIGN_OVER"]), 1, "conversions in\n" + lab.shim_log())


if __name__ == "__main__":
    main()
