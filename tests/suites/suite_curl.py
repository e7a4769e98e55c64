# SPDX-License-Identifier: BSD-3-Clause
"""curl's own tests: curl and libcurl against the servers that it brings

In its source: ./configure --enable-debug --disable-shared --with-openssl; make; make -C tests.
--source is the build directory.
"""
import os
import re

LIMIT = 2400  # seconds for a part
ENVIRONMENT = {}
# The client's own address is one towards the converter (active FTP over IPv6 in 253 and 255, "local ip" in 435). 492: its server confuses
# two connections if the end of one is seen after the beginning of the next, which no network promises; it waits for ever then.
EXPLAINED = [" test (253|255|435|492)$"]
SIZE = 250    # tests in a part
LAST = 3100
TEST = re.compile(r"^test (\d{4})\.\.\.(.*?)(?=^test \d{4}\.\.\.|^TESTDONE|^TESTFAIL|\Z)", re.M | re.S)
# valgrind and the event-based run are others' work; "flaky" is curl's own word
OPTIONS = ["-a", "-n", "!flaky", "!492"]


def parts(source):  # pylint: disable=unused-argument
    return ["%d to %d" % (first, min(first + SIZE - 1, LAST)) for first in range(1, LAST, SIZE)]


def command(source, part, tests, directory):  # pylint: disable=unused-argument
    wanted = [test.split()[-1] for test in tests] if tests else part.split()
    return ["sh", "-c", "cd '%s' && exec perl -I. ./runtests.pl %s %s"
            % (os.path.join(source, "tests"), " ".join(OPTIONS), " ".join(wanted))]


def outcomes(part, log, directory):  # pylint: disable=unused-argument
    found = {}
    for number, text in TEST.findall(log):
        found["test %d" % int(number)] = "ok" if re.search(r"^\S+ ?OK ", text, re.M) else \
            "skip" if "SKIPPED" in text else "FAILED"
    return found
