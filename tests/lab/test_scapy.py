#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_scapy.py - the Scapy layers in contrib/scapy: their own tests, and the codec's test messages, dissected and rebuilt"""
import os
import re
import subprocess
import sys

from convertlab import Skip, check, equal, main
from convertlab.build import SRCDIR
from convertlab.golden import Library, golden, source, vectors

PLACE = os.path.join(SRCDIR, "contrib", "scapy")


def run(*arguments, text=None):
    """Runs an interpreter that has Scapy, with our package as if installed; returns (stdout, stderr)."""
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, (PLACE, os.environ.get("PYTHONPATH")))), PYTHONDONTWRITEBYTECODE="1")
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import scapy"], stderr=subprocess.DEVNULL, env=env, check=False).returncode == 0:
            done = subprocess.run([python, *arguments], input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env,
                                  check=False)
            check(done.returncode == 0, "%s ended with %d:\n%s" % (" ".join(arguments), done.returncode, done.stdout + done.stderr))
            return done.stdout, done.stderr
    raise Skip("Scapy is missing; on Debian: apt-get install python3-scapy")


def test_version():
    """The package has the version of the project."""
    version = re.search(r"^AC_INIT\(\[libconvert\], \[([^]]+)\]", source("configure.ac"), re.MULTILINE).group(1)
    check('\nversion = "%s"\n' % version in source("contrib/scapy/pyproject.toml"), "contrib/scapy/pyproject.toml hasn't version " + version)


def test_of_their_own():
    """The layers' own tests: the RFC's figures, cut messages, wrong ones."""
    _, said = run(os.path.join(PLACE, "tests", "test_convert_scapy.py"))
    check("Ran 7 tests" in said and said.endswith("OK\n"), said)


def test_messages_of_the_codec():
    """The layers rebuild each message that the library accepts from its fields, unchanged, and know which bytes aren't a message."""
    library = Library()
    messages = {data: library.judge(data, from_client) for data, from_client in [*vectors(), *golden()] if len(data) >= 4}
    messages = {data: status for data, status in messages.items() if status in ("OK", "BAD_MAGIC")}
    check(list(messages.values()).count("OK") > 40 and "BAD_MAGIC" in messages.values(), messages)
    said = run("-m", "convert_scapy", "--rebuild", text="".join(data.hex() + "\n" for data in messages))[0].splitlines()
    equal(len(said), len(messages), "lines of the layers")
    for (data, status), line in zip(messages.items(), said):
        rebuilt, _, names = line.partition(" ")
        equal(rebuilt, data.hex(), line)
        equal(names == "no message", status == "BAD_MAGIC", line)


if __name__ == "__main__":
    main()
