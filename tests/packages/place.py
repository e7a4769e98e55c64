# SPDX-License-Identifier: BSD-3-Clause
"""place.py - what the commands that build packages and images share: a place for what they make, and the way to their tests

Such a command runs twice. The outer process has the machine's network, and builds into a directory of its own, the place. The inner one
is the same program, with that directory in its environment, and runs the tests in the lab. Then the outer one removes the directory.
"""
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77  # automake: the test could not be run here
VARIABLE = "CONVERT_PACKAGES_PLACE"
PLACE = os.environ.get(VARIABLE)  # set in the inner process


def loud(command, **options):
    """Runs it and returns what it said, or ends the program with that if it fails."""
    result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                            errors="replace", **options)
    if result.returncode != 0:
        sys.exit("FAIL: %s: status %d\n%s" % (" ".join(command), result.returncode, result.stdout[-6000:]))
    return result.stdout


def require(*needs):
    """Ends the program as a skipped test unless root runs it and each program of the pairs (program, Debian's package) is there."""
    reason = None if os.geteuid() == 0 else "run it as root: it makes namespaces and mounts"
    for program, package in needs:
        if not shutil.which(program):
            reason = "%s is missing; on Debian: apt-get install --no-install-recommends %s" % (program, package)
    if reason:
        print("SKIP: " + reason, file=sys.stderr)
        sys.exit(1 if os.environ.get("CONVERT_NO_SKIP") else SKIPPED)


@contextlib.contextmanager
def new_place(name):
    """A directory that every user can enter, removed at the end."""
    place = tempfile.mkdtemp(prefix="convert-%s-" % name, dir=os.environ.get("TMPDIR", "/var/tmp"))
    os.chmod(place, 0o755)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def run_tests(program, words, place):
    """Runs the program again as the inner process; returns its status."""
    return subprocess.run([sys.executable, program, *words], env=dict(os.environ, **{VARIABLE: place}), check=False).returncode
