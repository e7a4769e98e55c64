# SPDX-License-Identifier: BSD-3-Clause
"""sandbox.py - one set of namespaces around everything that the lab makes

The lab's process executes itself again by unshare(1), in new network, mount and process namespaces, and in a user namespace if
the caller isn't root. All network namespaces, devices, routes, mounts and processes of the lab live in there. The kernel removes
them when the sandbox's first process ends, for any reason: there is no clean-up to forget.
"""
import ctypes
import os
import shutil
import signal
import subprocess
import sys

OUTER = "CONVERTLAB_OUTER"  # the mount namespace outside; if it is set, we may be inside
NEW = "CONVERTLAB_NEW"      # set for the first program in a sandbox, which may itself be within another one
CLONE_NEWNS = 0x00020000     # <sched.h>
SKIPPED = 77                # automake: the test could not be run here

USERNS_REMEDY = """run it as root, or permit user namespaces to ordinary users:
  sysctl -w user.max_user_namespaces=10000
  sysctl -w kernel.unprivileged_userns_clone=1              (older Debian)
  sysctl -w kernel.apparmor_restrict_unprivileged_userns=0  (Ubuntu)"""
TUN_REMEDY = """run it as root, or give the device the mode that most distributions give it:
  modprobe tun; chmod 0666 /dev/net/tun"""


class Unavailable(Exception):
    """There can be no sandbox here; the text gives the reason and the remedy."""


def inside():
    """Is this process in a sandbox?"""
    outer = os.environ.get(OUTER)
    return bool(outer) and outer != os.readlink("/proc/self/ns/mnt")


def in_user_namespace():
    """Are we root in a user's own namespace only?"""
    with open("/proc/self/uid_map", encoding="ascii") as file:
        return int(file.read().split()[2]) == 1


def _unshare():
    command = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() != 0:
        command += ["--user", "--map-root-user"]
    return command


def _probe():
    for program in ("unshare", "nsenter", "ip", "mount"):
        if not shutil.which(program):
            raise Unavailable("%s is missing; on Debian: apt-get install util-linux iproute2" % program)
    tried = subprocess.run(_unshare() + ["true"], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False)
    if tried.returncode != 0:
        reason = tried.stderr.decode(errors="replace").strip()
        raise Unavailable("no namespaces for the lab: %s\n%s" % (reason, USERNS_REMEDY))
    try:
        os.close(os.open("/dev/net/tun", os.O_RDWR))
    except OSError as error:
        raise Unavailable("/dev/net/tun: %s\n%s" % (error.strerror, TUN_REMEDY)) from error


def enter(argv=None):
    """Returns inside a sandbox: at once, or by executing this program (or argv) again in a new one.

    Raises Unavailable where the system doesn't permit it.
    """
    if inside():
        _prepare()
        return
    # an ordinary user's PATH may lack the directories of ip, tcpdump and nft
    os.environ["PATH"] = os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"
    _probe()
    os.environ[OUTER] = os.readlink("/proc/self/ns/mnt")
    os.environ[NEW] = "1"
    sys.stdout.flush()
    sys.stderr.flush()
    command = _unshare() + (argv or [sys.executable] + sys.argv)
    os.execvp(command[0], command)


def enter_beside():
    """Gives this process, a child of one in the sandbox, a /run of its own, so that its lab can stand beside those of other processes."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "unshare: %s" % os.strerror(ctypes.get_errno()))
    os.environ[NEW] = "1"
    _prepare()


def _prepare():
    """Makes /run private, once: `ip netns` keeps its names there. Also /dev/shm, where the shim keeps its cache."""
    os.environ.setdefault("CONVERT_CONFIG", "none")  # no test depends on the machine's convertize.conf
    if not os.environ.pop(NEW, "") and os.path.exists("/run/convertlab"):
        return
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755", "none", "/run"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777", "none", "/dev/shm"], check=True)
    # as ip-netns(8) makes it for the names of network namespaces
    os.mkdir("/run/netns")
    subprocess.run(["mount", "--bind", "/run/netns", "/run/netns"], check=True)
    subprocess.run(["mount", "--make-rshared", "/run/netns"], check=True)
    os.mkdir("/run/convertlab")
    # the first process of a PID namespace has no default action for SIGTERM
    signal.signal(signal.SIGTERM, lambda number, frame: os._exit(128 + number))


PYTHON = "/run/convertlab/python"


def use_bare_python():
    """From now on "python3" is the interpreter that runs this, in an environment of its own without packages (PEP 405).

    Tests start it some thousand times. The installed one may be a script of a version manager, and its packages may make each start five
    times as long. CONVERT_PYTHON names another interpreter, to stand for an application of another platform than the lab's own.
    """
    if os.path.exists(PYTHON):
        return
    os.makedirs(PYTHON + "/bin")
    real = os.environ.get("CONVERT_PYTHON") or getattr(sys, "_base_executable", None) or sys.executable
    os.symlink(real, PYTHON + "/bin/python3")
    with open(PYTHON + "/pyvenv.cfg", "w", encoding="utf-8") as file:
        file.write("home = %s\ninclude-system-site-packages = false\n" % os.path.dirname(real))
    os.environ["PATH"] = PYTHON + "/bin:" + os.environ["PATH"]


def enter_or_exit(argv=None):
    """enter(), ending the program as a skipped test where there is no sandbox (a failure with CONVERT_NO_SKIP)."""
    try:
        enter(argv)
    except Unavailable as error:
        print("SKIP: %s" % error, file=sys.stderr)
        sys.exit(1 if os.environ.get("CONVERT_NO_SKIP") else SKIPPED)
