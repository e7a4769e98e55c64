# SPDX-License-Identifier: BSD-3-Clause
"""libuv's own tests, each of which is a process, often several

Beside its source: mkdir build; cd build; cmake ..; make uv_run_tests. --source is that build directory.
"""
import os
import re

import tap

LIMIT = 1500  # seconds for a part
ENVIRONMENT = {"UV_RUN_AS_ROOT": "1", "UV_TEST_TIMEOUT_MULTIPLIER": "3"}
# An accepted connection's peer is the converter; urgent data ends there; the server's close takes two legs to be seen.
EXPLAINED = [" getsockname_tcp$", " poll_oob$", " tcp_try_write_error$"]


def parts(source):  # pylint: disable=unused-argument
    """All tests in one run of its runner."""
    return ["libuv"]


def command(source, part, tests, directory):  # pylint: disable=unused-argument
    """In its source directory, for its fixtures."""
    with open(os.path.join(source, "CMakeCache.txt"), encoding="utf-8") as cache:
        top = re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", cache.read(), re.M).group(1)
    runner = os.path.abspath(os.path.join(source, "uv_run_tests"))
    each = "\n".join("%s %s" % (runner, test) for test in tests) if tests else runner
    return ["sh", "-c", "cd '%s'\n%s" % (top, each)]


def outcomes(part, log, directory):  # pylint: disable=unused-argument
    return tap.outcomes(part, log)
