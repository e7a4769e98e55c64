# SPDX-License-Identifier: BSD-3-Clause
"""emulator.py - a kernel of a distribution as it is, which virtme-ng boots on qemu"""
import os
import shutil
import subprocess
import sys

from . import KernelError
from .machine import NICENESS, Machine, quoted

# What is needed beside virtme-ng, which is find_virtme()'s.
PROGRAMS = ("qemu-system-x86_64", "depmod", "dpkg-deb", "apt-get", "apt-cache")
VIRTME = "virtme-ng==1.42"  # the version that this was written with
# What a mitigation protects a processor from, an emulated one doesn't have; they make it slower by a tenth.
KERNEL_OPTIONS = ("mitigations=off", "apparmor=0")
# An emulated machine takes some twenty times as long as a real one, with several tests at once; most limits are generous already.
PATIENCE = {True: 2, False: 10}


def has_kvm():
    """Tells whether virtual machines run at the processor's own speed here. A KVM that the processor doesn't help with boots no such kernel."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        flags = set(file.read().split())
    return os.access("/dev/kvm", os.R_OK | os.W_OK) and bool(flags & {"vmx", "svm"})


def find_virtme(directory, log=print):
    """Returns the path of virtme-ng's vng: the machine's, or one that pip puts below `directory`, since Debian 12 has no package of it."""
    found = shutil.which("vng") or os.path.join(directory, "virtme", "bin", "vng")
    if os.path.exists(found):
        return found
    if os.environ.get("CONVERT_INSTALL") == "no":
        raise KernelError("vng is missing, and CONVERT_INSTALL=no; on Debian 13: apt-get install virtme-ng; elsewhere: pip install virtme-ng")
    place = os.path.join(directory, "virtme")
    log("getting %s from PyPI, into %s" % (VIRTME, place))
    for command in ([sys.executable, "-m", "venv", place], [os.path.join(place, "bin", "pip"), "-q", "install", VIRTME]):
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if result.returncode != 0:
            shutil.rmtree(place, ignore_errors=True)
            raise KernelError("%s: status %d:\n%sWithout PyPI: on Debian 13 apt-get install virtme-ng" % (
                " ".join(command), result.returncode, result.stdout))
    return found


class Emulated(Machine):
    """An emulated machine."""

    files_by = "9p"

    def __init__(self, kernel, results, virtme, busybox, cpus=2, memory="3G"):
        super().__init__(results)
        self.patience = PATIENCE[has_kvm()]
        self._kernel = kernel
        self._virtme = virtme
        self._busybox = busybox
        self._size = ["--cpus", str(cpus), "--memory", memory]

    def command(self, script):
        words = ["nice", "-n", NICENESS, self._virtme, "--verbose", "--force-9p", "--disable-microvm", "--busybox", self._busybox,
                 "-r", self._kernel.image, "--rwdir", self._results, "--user", "root", *self._size]
        words += [] if has_kvm() else ["--disable-kvm"]
        for option in KERNEL_OPTIONS:
            words += ["--append", option]
        words.append("--qemu-opts=-fsdev local,id=kernellab,path=/,security_model=none,multidevs=remap,readonly=on "
                     "-device virtio-9p-pci,fsdev=kernellab,mount_tag=kernellab")
        return words + ["--", "sh %s" % quoted([script])]

    def environment(self):
        # vng looks for its own helpers on the PATH
        return dict(os.environ, PATH=os.path.dirname(self._virtme) + ":" + os.environ["PATH"])
