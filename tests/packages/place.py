# SPDX-License-Identifier: BSD-3-Clause
"""place.py - what the commands that build packages and images share: a place for what they make, and the way to their tests

Such a command runs twice. The outer process has the machine's network, and builds into a directory of its own, the place. The inner one
is the same program, with that directory in its environment, and runs the tests in the lab. Then the outer one removes the directory.
LayeredRoot is where such tests install packages, and convert_download() uses what is there as README's first example does.
"""
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

from convertlab import Lab, Link, check, equal

SIZE = 5000000
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


def libraries_of(program):
    """The names of the libraries that a program is linked with, such as "libm"."""
    said = subprocess.run(["readelf", "-d", program], stdout=subprocess.PIPE, text=True, check=True).stdout
    return set(re.findall(r"NEEDED.*\[(.*?)[.]", said))


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


class LayeredRoot:
    """A root with a layer of its own above a directory, which stays as it is. All of it goes with the lab's sandbox."""

    def __init__(self, name, lower):
        self.path = "/run/convertlab/%s-root" % name
        layer = "/run/convertlab/%s-layer" % name
        for directory in (layer, self.path):
            os.mkdir(directory)
        subprocess.run(["mount", "-t", "tmpfs", "none", layer], check=True)
        for part in ("changes", "work", "lower"):
            os.mkdir(os.path.join(layer, part))
        self.changes = layer + "/changes"
        # of the file system itself, without what is mounted on it
        subprocess.run(["mount", "--bind", lower, layer + "/lower"], check=True)
        layers = "lowerdir=%s/lower,upperdir=%s,workdir=%s/work" % (layer, self.changes, layer)
        subprocess.run(["mount", "-t", "overlay", "-o", layers, "none", self.path], check=True)
        for directory in ("/dev", "/proc", "/sys", "/run"):
            subprocess.run(["mount", "--rbind", directory, self.path + directory], check=True)

    def files(self):
        """What differs from the directory below it."""
        return sorted("/" + os.path.relpath(os.path.join(where, name), self.changes)
                      for where, _, names in os.walk(self.changes) for name in names)

    def inside(self, *words):
        """The command that runs words in this root."""
        return ["chroot", self.path, *words]


def convert_download(root, convertd, library):
    """curl's download is converted by a root's programs, over two subflows; only the converter's networks are added to its configuration.

    convertd, library: where the packages have them
    """
    with Lab(wifi=Link(delay_ms=5, rate_mbit=50), lte=Link(delay_ms=10, rate_mbit=30)) as lab:
        lab.http()
        with open(root.path + "/etc/convertd/convertd.conf", "a", encoding="ascii") as file:
            file.write("allow-client 10.0.0.0/8\nallow-destination 10.0.0.0/8\n")
        os.makedirs("/run/convertd", exist_ok=True)
        serving = lab.start_listening(lab.converter, root.inside(convertd, "--config", "/etc/convertd/convertd.conf"), 1234)
        serving.wait_log("ready")
        log = os.path.join(lab.directory, "convertize.log")
        url = "http://%s/bytes/%d" % (lab.server.addr4, SIZE)
        result = lab.client.run(root.inside("convertize", "--converter", lab.converter.addr4, "--fallback", "none", "--cache", "none",
                                            "--log", log, "curl", "-sS", "-o", "/dev/null", "-w", "%{size_download}", url))
        equal(result.stdout, str(SIZE), "bytes that arrived")
        with open(log, encoding="utf-8") as file:
            check("converted over MPTCP" in file.read(), "convertize's log")
        serving.wait_log("MPTCP with 2 subflows")
        checked = lab.client.run(root.inside("convertize", "check", "--converter", lab.converter.addr4), check=False)
        check(library in checked.stdout and checked.returncode in (0, 3), checked.stdout + checked.stderr)
        equal(serving.stop(), 0, "convertd's status")
