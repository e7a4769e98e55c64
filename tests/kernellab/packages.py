# SPDX-License-Identifier: BSD-3-Clause
"""packages.py - gets the kernels that Debian and Ubuntu give their users, as packages, and unpacks them without installing anything

apt works in a directory of its own for each release, with lists and settings of its own, so that neither the machine's release nor its
settings matter, and no rights are needed.
"""
import dataclasses
import glob
import json
import os
import re
import shutil
import subprocess

from . import KernelError

# What users have, and the name that the tables give it.
SUITES = {
    "bookworm": "Debian 12",
    "bookworm-backports": "Debian 12, backports",
    "trixie": "Debian 13",
    "trixie-backports": "Debian 13, backports",
    "noble": "Ubuntu 24.04",
}
DEFAULT_SUITES = ("bookworm", "trixie")
USER_MODE = "-user-mode"  # behind a suite's name: what is got, built and said of its kernel in user mode
MIRROR = "http://deb.debian.org/debian"
SECURITY = "http://deb.debian.org/debian-security"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
UBUNTU = ("noble",)
UBUNTU_MIRROR = "http://archive.ubuntu.com/ubuntu"
UBUNTU_SECURITY = "http://security.ubuntu.com/ubuntu"
# Ubuntu's keys, as Debian signs them.
UBUNTU_KEYS = ("trixie", "ubuntu-keyring", "usr/share/keyrings/ubuntu-archive-keyring.gpg")
# virtme-ng's initramfs needs a busybox that is linked statically, and the machine may have another one.
BUSYBOX = ("bookworm", "busybox-static", "bin/busybox")


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A kernel that is unpacked below `root`, as in an installed system."""

    suite: str
    release: str  # as uname -r says it
    version: str  # of Debian's package
    root: str

    @property
    def image(self):
        """The path of what is booted."""
        return os.path.join(self.root, "boot", "vmlinuz-" + self.release)

    @property
    def title(self):
        """What heads its column: "6.1.192"."""
        return upstream_version(self.version)


@dataclasses.dataclass(frozen=True)
class Source:
    """The sources of a kernel."""

    suite: str
    version: str  # of Debian's package
    place: str  # what is got and built
    tarball: str

    @property
    def title(self):
        """What heads its column: "6.1.192"."""
        return upstream_version(self.version)


def upstream_version(version):
    """The kernel's own version in that of Debian's package: "6.12.95" of "6.12.95-1~bpo12+1"."""
    return re.match(r"[\d.]*\d", version).group()


def kernel_packages(depends):
    """
    Of what `apt-cache depends` prints, the packages that are parts of a kernel: an image, and its modules where they are
    packages of their own, as Ubuntu's are, and Debian's since 7.x.
    """
    return re.findall(r"^\s*\|?Depends: (linux-(?:image|modules(?:-extra)?)-\d\S*)$", depends, re.MULTILINE)


def source_package(depends):
    """Of what `apt-cache depends` prints of "linux-source", the package that has the sources; None if there is none."""
    found = re.search(r"^\s*Depends: (linux-source-\d\S*)$", depends, re.MULTILINE)
    return found and found.group(1)


def sources(suite, keyring=KEYRING):
    """The text of a sources.list for this suite; backports have no security updates of their own."""
    if suite in UBUNTU:
        archives = [(UBUNTU_MIRROR, suite), (UBUNTU_MIRROR, suite + "-updates"), (UBUNTU_SECURITY, suite + "-security")]
    elif suite.endswith("-backports"):
        archives = [(MIRROR, suite)]
    else:
        archives = [(MIRROR, suite), (SECURITY, suite + "-security")]
    return "".join("deb [signed-by=%s] %s %s main\n" % (keyring, *archive) for archive in archives)


class Apt:
    """apt in a directory of its own, which knows one suite."""

    def __init__(self, directory, suite, keyring=KEYRING):
        self._directory = directory
        self._metapackage = "linux-image-generic" if suite in UBUNTU else "linux-image-amd64"
        for path in ("etc/apt/apt.conf.d", "etc/apt/preferences.d", "etc/apt/sources.list.d", "var/lib/apt/lists/partial", "var/lib/dpkg",
                     "var/cache/apt/archives/partial"):
            os.makedirs(os.path.join(directory, path), exist_ok=True)
        self._status = os.path.join(directory, "var/lib/dpkg/status")
        for path, text in ((self._status, ""), (os.path.join(directory, "etc/apt/sources.list"), sources(suite, keyring))):
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
        self._run("apt-get", "-q", "update")

    def _run(self, program, *words, cwd=None):
        # The indexes of applications' descriptions are larger than those of packages, and of no use here.
        settings = {"Dir": self._directory, "Dir::State::status": self._status, "APT::Architecture": "amd64", "APT::Architectures": "amd64",
                    "APT::Sandbox::User": "root", "Acquire::Languages": "none",
                    "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false"}
        command = [program] + ["-o%s=%s" % pair for pair in settings.items()] + list(words)
        try:
            result = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                    check=False)
        except FileNotFoundError as error:
            raise KernelError("%s is missing; build-tools/install-needs kernels" % program) from error
        if result.returncode != 0:
            raise KernelError("%s: status %d:\n%s" % (" ".join([program, *words]), result.returncode, result.stderr))
        return result.stdout

    def parts(self):
        """The names of the packages that are this suite's kernel."""
        parts = kernel_packages(self._run("apt-cache", "depends", self._metapackage))
        if not parts or not parts[0].startswith("linux-image-"):
            raise KernelError("%s depends on no kernel; see apt-cache show in %s" % (self._metapackage, self._directory))
        return parts + kernel_packages(self._run("apt-cache", "depends", parts[0]))

    def source(self):
        """The name of the package that has the sources of this suite's kernel."""
        found = source_package(self._run("apt-cache", "depends", "linux-source"))
        if not found:
            raise KernelError("linux-source depends on no sources; see apt-cache show in %s" % self._directory)
        return found

    def version(self, package):
        """The version of a package that would be installed."""
        return re.search(r"^Version: (\S+)", self._run("apt-cache", "show", "--no-all-versions", package), re.MULTILINE).group(1)

    def unpack(self, packages, directory):
        """Downloads packages, and unpacks them below a directory."""
        place = os.path.join(self._directory, "packages")
        shutil.rmtree(place, ignore_errors=True)
        os.makedirs(place)
        self._run("apt-get", "-q", "download", *packages, cwd=place)
        for path in sorted(glob.glob(os.path.join(place, "*.deb"))):
            subprocess.run(["dpkg-deb", "-x", path, directory], check=True)
        shutil.rmtree(place)


def _finish(kernel):
    """Does what the packages' scripts would do: their modules are found by names, below /lib as below /usr/lib."""
    if not os.path.exists(os.path.join(kernel.root, "lib")):
        os.symlink("usr/lib", os.path.join(kernel.root, "lib"))
    if not os.path.exists(kernel.image):
        moved = os.path.join(kernel.root, "lib/modules", kernel.release, "vmlinuz")
        os.makedirs(os.path.dirname(kernel.image), exist_ok=True)
        os.symlink(moved, kernel.image)
    subprocess.run(["depmod", "-b", kernel.root, kernel.release], check=True)


def fetch(suite, directory, log=print):
    """Returns the Kernel of a suite, which is got unless it is there already.

    directory: it holds all that is got. Remove what is there of a suite to have its newest kernel.
    """
    place = os.path.join(directory, "packages", suite)
    known = os.path.join(place, "kernel.json")
    if not os.path.exists(known):
        log("%s: getting its kernel from %s" % (suite, UBUNTU_MIRROR if suite in UBUNTU else MIRROR))
        shutil.rmtree(place, ignore_errors=True)
        keyring = unpacked(directory, "ubuntu-keys", UBUNTU_KEYS) if suite in UBUNTU else KEYRING
        apt = Apt(os.path.join(place, "apt"), suite, keyring)
        parts = apt.parts()
        kernel = Kernel(suite, parts[0].replace("linux-image-", ""), apt.version(parts[0]), os.path.join(place, "root"))
        apt.unpack(parts, kernel.root)
        _finish(kernel)
        with open(known, "w", encoding="ascii") as file:
            json.dump(dataclasses.asdict(kernel), file)
    with open(known, encoding="ascii") as file:
        return Kernel(**json.load(file))


def fetch_source(suite, directory, log=print):
    """Returns the Source of a suite's kernel, as fetch() does the kernel. Debian's suites only."""
    if suite in UBUNTU:
        raise KernelError("%s: in user mode there are Debian's kernels only" % suite)
    place = os.path.join(directory, "packages", suite + USER_MODE)
    known = os.path.join(place, "source.json")
    if not os.path.exists(known):
        log("%s: getting its kernel's sources from %s" % (suite, MIRROR))
        shutil.rmtree(place, ignore_errors=True)
        apt = Apt(os.path.join(place, "apt"), suite)
        package = apt.source()
        apt.unpack([package], os.path.join(place, "root"))
        source = Source(suite, apt.version(package), place, os.path.join(place, "root", "usr", "src", package + ".tar.xz"))
        with open(known, "w", encoding="ascii") as file:
            json.dump(dataclasses.asdict(source), file)
    with open(known, encoding="ascii") as file:
        return Source(**json.load(file))


def unpacked(directory, name, what):
    """
    Returns the path of one file of a package of Debian's, which is unpacked below `directory` under this name.

    what: suite, package, path
    """
    suite, package, path = what
    place = os.path.join(directory, "packages", name)
    file = os.path.join(place, "root", path)
    if not os.path.exists(file):
        shutil.rmtree(place, ignore_errors=True)
        Apt(os.path.join(place, "apt"), suite).unpack([package], os.path.join(place, "root"))
        if not os.path.exists(file):
            raise KernelError("%s of %s has no %s" % (package, suite, path))
    return file


def busybox(directory):
    """Returns the path of a busybox without libraries."""
    return unpacked(directory, "busybox", BUSYBOX)
