# SPDX-License-Identifier: BSD-3-Clause
"""platform_tools.py - what the commands for other platforms share: a cache, packages of other architectures, a build, its tests"""
import argparse
import contextlib
import copy
import glob
import os
import re
import shlex
import shutil
import subprocess
import sys

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
LAB = os.path.join(TOP, "tests", "lab")
UTHASH = ("uthash.h", "utlist.h", "utarray.h", "utstring.h")
INSIDE = "CONVERT_PLATFORM_INSIDE"  # set in the namespaces in which the platform's files are where programs look for them

# Files of tests/lab that start programs under the library or talk to the converter, and don't measure. What needs applications of
# its own (test_applications_*), valgrind, systemd or the host's kernel alone is left to "make check".
LAB_TESTS = ("test_transfers", "test_shim_surface", "test_shim_semantics", "test_shim_policy", "test_shim_processes",
             "test_shim_moments", "test_shim_names", "test_early_data", "test_learned", "test_confirmation", "test_fallback",
             "test_resolve", "test_convertize", "test_convertize_check", "test_convertd_messages", "test_convertd_relay",
             "test_convertd_ends", "test_convertd_process", "test_convertd_config", "test_convertd_hold",
             "test_convertd_hold_switch", "test_convertd_cookies", "test_convertd_access", "test_convertd_restart",
             "test_convertd_privileges", "test_convertd_workers", "test_convertd_observe", "test_convertd_fallback")


class Failed(Exception):
    """Something went wrong; the text says what, and what helps."""


def say(text):
    """Tells what is done next."""
    print("== " + text, flush=True)


def run(command, log=None, **options):
    """Runs a command; its output goes to the file `log`, whose end is shown if it fails."""
    if log is None:
        if subprocess.run(command, check=False, **options).returncode != 0:
            raise Failed("it failed: " + shlex.join(command))
        return
    with open(log, "ab") as file:
        status = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, check=False, **options).returncode
    if status != 0:
        with open(log, encoding="utf-8", errors="replace") as file:
            print("".join(file.readlines()[-25:]), end="")
        raise Failed("it failed: %s (all of its output: %s)" % (shlex.join(command), log))


def fresh(directory):
    """Makes an empty directory of this name; returns the name."""
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    return directory


def kernel_headers(directory, gnu):
    """
    Has `directory` find the kernel's headers, which are any C library's, and uthash's, which call for none.

    A compiler for another C library is given it by -idirafter. gnu: the name that Debian gives the architecture, x86_64-linux-gnu
    """
    found = {name: "/usr/include/" + name for name in ("linux", "asm-generic", "mtd", "rdma", *UTHASH)}
    found["asm"] = next((place for place in ("/usr/include/%s/asm" % gnu, "/usr/include/asm") if os.path.exists(place)), "")
    for name, target in found.items():
        if os.path.exists(target) and not os.path.lexists(os.path.join(directory, name)):
            os.symlink(target, os.path.join(directory, name))


def arguments(description, platform, options=(), flags=()):
    """Parses the command line; `options` are (name, help) of paths, `flags` of choices, besides those that all platforms have."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    parser.add_argument("--cache", metavar="DIR", default=os.path.join(cache, "libconvert", "platforms", platform),
                        help="where packages and builds are kept (%(default)s); it may be removed at any time")
    parser.add_argument("--no-lab", action="store_true", help="build and run the unit tests, but no test of the lab")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many compilers run at once (%(default)s)")
    for name, text in options:
        parser.add_argument(name, metavar="DIR", help=text)
    for name, text in flags:
        parser.add_argument(name, action="store_true", help=text)
    parser.add_argument("tests", nargs="*", metavar="TEST", help="files of tests/lab, such as test_transfers; without any, all that suit")
    found = parser.parse_args()
    found.cache = os.path.abspath(found.cache)
    os.makedirs(found.cache, exist_ok=True)
    return found


def needs(*programs):
    """Installs what is missing, as build-tools/install-needs may (see there), and says what is missing still."""
    run([os.path.join(TOP, "build-tools", "install-needs"), "build", "test", "platforms"])
    missing = [program for program in programs if not shutil.which(program)]
    if missing:
        raise Failed("%s missing: build-tools/install-needs platforms" % ", ".join(missing))


def needs_configured_tree():
    """A build outside the tree needs configure, and no build in the tree."""
    if not os.path.exists(os.path.join(TOP, "configure")):
        raise Failed("there is no configure yet: autoreconf -fi")
    if os.path.exists(os.path.join(TOP, "config.status")):
        raise Failed("the tree itself is configured, so that nothing can be built outside of it: make distclean")


class Apt:
    """Debian's packages for another architecture, or their sources, without any change to this system.

    apt-get keeps its lists and packages below `directory`, and takes nothing for installed.
    """

    def __init__(self, directory, architecture=None, sources=False):
        self.directory = directory
        self._log = os.path.join(directory, "apt.log")
        for part in ("state/lists/partial", "cache/archives/partial"):
            os.makedirs(os.path.join(directory, part), exist_ok=True)
        status = os.path.join(directory, "status")
        with open(status, "w", encoding="utf-8"):
            pass
        lines = ['Dir::State "%s/state";' % directory, 'Dir::State::status "%s";' % status, 'Dir::Cache "%s/cache";' % directory,
                 'APT::Install-Recommends "false";', 'APT::Sandbox::User "";']
        if architecture:
            lines += ['APT::Architecture "%s";' % architecture, 'APT::Architectures { "%s"; };' % architecture]
        if sources:
            lines += ['Dir::Etc::sourcelist "%s";' % self._write("sources.list", self._source_lines()), 'Dir::Etc::sourceparts "/dev/null";']
        self._environment = dict(os.environ, APT_CONFIG=self._write("apt.conf", "\n".join(lines) + "\n"), DEBIAN_FRONTEND="noninteractive")

    def _write(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    @staticmethod
    def _source_lines():
        """The archives that this system has packages from, as archives of sources."""
        listed = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages"],
                                stdout=subprocess.PIPE, universal_newlines=True, check=True).stdout
        return "".join(sorted("deb-src %s\n" % line for line in set(listed.splitlines())))

    def update(self):
        """Asks the archives what they have. One of several may not answer; what is missing then is said by what needs it."""
        with contextlib.suppress(Failed):
            run(["apt-get", "-q", "update"], log=self._log, env=self._environment)

    def unpack(self, packages, root):
        """Downloads packages and what they depend on, and unpacks all of it below `root`, which has /usr alone, as Debian has it now."""
        run(["apt-get", "-qy", "--download-only", "install", *packages], log=self._log, env=self._environment)
        fresh(root)
        for name in ("bin", "sbin", "lib"):
            os.makedirs(os.path.join(root, "usr", name))
            os.symlink("usr/" + name, os.path.join(root, name))
        for package in glob.glob(os.path.join(self.directory, "cache", "archives", "*.deb")):
            with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as archive:
                run(["tar", "-x", "--keep-directory-symlink", "--no-same-owner", "-C", root], stdin=archive.stdout)

    def source(self, name, place):
        """Unpacks a source package in `place`; returns its directory, None where no archive has it.

        Each archive is asked by itself, that with updates first: a mirror may list one whose files it hasn't got.
        """
        for number, line in enumerate(sorted(self._source_lines().splitlines(), key=lambda line: "-security" not in line)):
            fresh(place)
            alone = "Dir::Etc::sourcelist=" + self._write("sources-%d.list" % number, line + "\n")
            with open(self._log, "ab") as log:
                status = subprocess.run(["apt-get", "-q", "-o", alone, "source", "--only-source", name], stdout=log, stderr=subprocess.STDOUT,
                                        env=self._environment, cwd=place, check=False).returncode
            if status == 0:
                return [entry.path for entry in os.scandir(place) if entry.is_dir()][0]
        return None


def exported(library):
    """The names of the functions that a shared library has for others."""
    lines = subprocess.run(["nm", "-D", "--defined-only", library], stdout=subprocess.PIPE, universal_newlines=True, check=True).stdout
    return {line.split()[2].split("@")[0] for line in lines.splitlines() if line.split()[1] in "TWi"}


class Build:
    """A build of the tree in a directory of its own, for another platform."""

    def __init__(self, directory, jobs, environment=None, wrapper=()):
        self.directory = directory
        self._jobs = jobs
        self._environment = dict(os.environ, CONVERT_SRCDIR=TOP, CONVERT_BUILDDIR=directory, CONVERT_INSTALL="no",
                                 PYTHONDONTWRITEBYTECODE="1", CK_DEFAULT_TIMEOUT="600", **(environment or {}))
        self._wrapper = list(wrapper)

    def make(self, *flags):
        """Configures and builds all, with the programs of the tests. Warnings are errors. What is built already stays, as with make."""
        say("building in %s" % self.directory)
        command = [os.path.join(TOP, "configure"), "--enable-werror", *flags]
        told, log = os.path.join(self.directory, "configured-by"), os.path.join(self.directory, "make.log")
        if not os.path.exists(told) or open(told, encoding="utf-8").read() != shlex.join(command):
            fresh(self.directory)
            run(command, log=log, cwd=self.directory, env=self._environment)
            with open(told, "w", encoding="utf-8") as file:
                file.write(shlex.join(command))
        run(["make", "-j%d" % self._jobs], log=log, cwd=self.directory, env=self._environment)
        run(["make", "-j%d" % self._jobs, "check", "TESTS="], log=log, cwd=self.directory, env=self._environment)

    def under(self, other):
        """This build's programs, to be run under the library of another."""
        found = copy.copy(self)
        found._environment = dict(self._environment, CONVERT_SHIM=os.path.join(other.directory, ".libs", "libconvert.so"))
        return found

    def names_missing(self, libc):
        """Prints the C library's names for 64-bit times and sizes that libconvert.so lacks though it hooks them without; returns how many."""
        ours = exported(os.path.join(self.directory, ".libs", "libconvert.so"))
        with open(os.path.join(TOP, "src", "shim", "libconvert.sym"), encoding="ascii") as file:
            hooked = set(file.read().split())
        theirs = {name: re.sub(r"^__(?!libc)|(_time)?64(?=$|_chk$)", "", name) for name in exported(libc) if "64" in name}
        others = {name: base for name, base in theirs.items() if base in hooked}
        if not others:
            raise Failed("the C library has no such names at all: the test doesn't look where it should")
        missing = sorted(name for name in others if name not in ours)
        for name in missing:
            print("FAIL %s isn't in libconvert.so, which hooks %s" % (name, others[name]))
        print("names for times and sizes of 64 bits: %d hooked, %d missing" % (len(others) - len(missing), len(missing)), flush=True)
        return len(missing)

    def unit_tests(self, left_out=None):
        """Runs the unit tests, with the Check library, but for what `left_out` says, {name: why}; returns how many programs failed."""
        left_out = left_out or {}
        programs = sorted(path for path in glob.glob(os.path.join(self.directory, "tests", "unit", "test_*"))
                          if os.access(path, os.X_OK) and "." not in os.path.basename(path))
        if not programs:
            raise Failed("no unit test was built: configure has found no Check (%s/config.log)" % self.directory)
        failed = []
        for name, why in left_out.items():
            print("  left out: %s: %s" % (name, why))
        programs = [path for path in programs if os.path.basename(path) not in left_out]
        for path in programs:
            with open(path + ".out", "wb") as out:
                status = subprocess.run([*self._wrapper, path], stdout=out, stderr=subprocess.STDOUT, env=self._environment,
                                        cwd=self.directory, check=False).returncode
            if status:
                failed.append(path)
                with open(path + ".out", encoding="utf-8", errors="replace") as out:
                    print("FAIL %s\n%s" % (path, out.read()))
        print("unit tests: %d programs passed, %d failed" % (len(programs) - len(failed), len(failed)), flush=True)
        return len(failed)

    def lab_tests(self, files, left_out, told=()):
        """
        Runs files of tests but for what `left_out` says, {"file.function": why}; returns how many tests failed.

        files: names of tests/lab, or paths without ".py"
        """
        counts = {"ok": 0, "FAIL": 0, "skip": 0, "n/a": 0}
        for file in told or files:
            name = os.path.basename(file)
            why = {key.split(".")[1]: reason for key, reason in left_out.items() if key.split(".")[0] == name}
            options = ["--without=" + function for function in why]
            output = subprocess.run([sys.executable, os.path.join(LAB, file + ".py"), *options],
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, errors="replace",
                                    env=self._environment, cwd=self.directory, check=False).stdout
            output = re.sub("^FAULT ", "FAIL ", output, flags=re.MULTILINE)
            results = [line.split(" ", 1)[0] for line in output.splitlines() if line.split(" ", 1)[0] in counts]
            for result in results:
                counts[result] += 1
            if not results:
                counts["FAIL"] += 1
            print("%s: %s" % (name, ", ".join("%d %s" % (results.count(word), word) for word in counts if word in results) or "no result"))
            for function, reason in sorted(why.items()):
                print("  left out: %s: %s" % (function, reason))
            if not results or "FAIL" in results or "skip" in results:
                print("\n".join(line for line in output.splitlines() if line.startswith(("FAIL", "skip"))) or output, flush=True)
            with open(os.path.join(self.directory, name + ".log"), "w", encoding="utf-8") as log:
                log.write(output)
        print("lab: " + ", ".join("%d %s" % (count, word) for word, count in counts.items()), flush=True)
        return counts["FAIL"]


def enter(root, binfmt=None):
    """Executes the command again where /usr/lib and /usr/include have the files below `root` as well; returns once it is there.

    That is in a mount namespace, so that the system itself stays as it is; for users other than root, and where the
    kernel is to be told of an interpreter (`binfmt`, a line for its register), in a user namespace, too.
    """
    if os.environ.get(INSIDE):
        return
    commands = ["mount -t overlay -o lowerdir=%s/usr/%s:/usr/%s overlay /usr/%s" % (root, name, name, name) for name in ("lib", "include")]
    command = ["unshare", "--mount"]
    if os.geteuid() != 0 or binfmt:
        command += ["--user", "--map-root-user"]
    if binfmt:
        # since Linux 6.7 each user namespace has interpreters of its own
        commands += ["mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc", "printf '%%s' '%s' > /proc/sys/fs/binfmt_misc/register" % binfmt]
    commands.append('exec "$@"')
    os.environ[INSIDE] = "1"
    os.execvp(command[0], [*command, "sh", "-ec", "\n".join(commands), "sh", sys.executable, *sys.argv])


def links(directory, programs):
    """Makes a directory with these programs, {name: file}, to be put in front of PATH; returns it."""
    fresh(directory)
    for name, target in programs.items():
        os.symlink(target, os.path.join(directory, name))
    return directory


def main(function):
    """Runs a command's function, which returns how much failed, and ends as it did."""
    try:
        failures = function()
    except Failed as error:
        print("%s: %s" % (os.path.basename(sys.argv[0]), error), file=sys.stderr)
        sys.exit(1)
    print("all passed" if not failures else "%d failed" % failures)
    sys.exit(1 if failures else 0)
