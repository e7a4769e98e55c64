#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_kernels.py - tests/kernels without kernels: how it reads tests' logs, also of a machine that ended too early, and apt's output

Nothing is downloaded or booted.
"""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lab"))

# pylint: disable=wrong-import-position
from convertlab import check, equal, main
from convertlab.build import SRCDIR

sys.path.insert(0, os.path.join(SRCDIR, "tests"))
from kernellab import KernelError, emulator, machine, packages, results, usermode
from kernellab.results import Result

LAB = os.path.join(SRCDIR, "tests", "lab")
KERNELS = os.path.join(SRCDIR, "tests", "kernels")

LOG = """left out test_rate: it measures times or rates
ok test_small (1.7s, 0.2s of CPU)
ok test_large (12.0s, 3.0s of CPU): 30 bytes | more
skip test_tool (0.0s, 0.0s of CPU): nft is missing
n/a test_new (0.1s, 0.0s of CPU): Linux 6.1 has no such thing
FAULT test_wrong (3.0s, 0.1s of CPU): test_x.py:7: 1, not 2
--- 04-converter-convertd.log
ok then, says the converter
FAIL no test of ours
2 ok, 1 skip, 1 n/a, 1 FAULT
status 99 after 20 s
"""
TESTS = {"test_rate": Result("left out", "it measures times or rates"), "test_small": Result("ok", ""),
         "test_large": Result("ok", "30 bytes | more"), "test_tool": Result("skip", "nft is missing"),
         "test_new": Result("n/a", "Linux 6.1 has no such thing"), "test_wrong": Result("FAIL", "test_x.py:7: 1, not 2")}


def test_log():
    """It finds each test's line among the lines that explain failures; a log without a status was cut off."""
    equal(results.parse_log(LOG), ("99", TESTS), "the log")
    equal(results.parse_log(LOG.rpartition("status")[0])[0], "none: it was cut off", "the status of a log that was cut off")
    equal(results.parse_log("")[1], {}, "an empty log")


def test_what_harness_prints():
    """results.parse_log() understands the lines that harness.py prints, with --no-measuring, too."""
    with tempfile.TemporaryDirectory() as directory:
        with open(os.path.join(directory, "linkem"), "w", encoding="ascii") as file:
            os.fchmod(file.fileno(), 0o755)

        def run(tests):
            path = os.path.join(directory, "test_toy.py")
            with open(path, "w", encoding="ascii") as file:
                file.write("from convertlab import *\n\n%s\n\nmain()\n" % tests)
            return subprocess.run([sys.executable, path, "--no-measuring"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                                  check=False, env=dict(os.environ, CONVERT_BUILDDIR=directory, PYTHONPATH=LAB, CONVERTLAB_OUTER="", CONVERT_LAB_PART="",
                                                        CONVERTLAB_TURN=""))

        said = run("def test_good():\n    return 'all well'\n\ndef test_bad():\n    equal(1, 2, 'one')\n\n"
                   "def test_old():\n    raise Unsuitable('too old')")
        timed = run("@measures\ndef test_timed():\n    raise RuntimeError('it runs all the same')")
    equal(results.parse_log(said.stdout)[1], {
        "test_good": Result("ok", "all well"), "test_bad": Result("FAIL", "test_toy.py:7: one: 1, not 2"),
        "test_old": Result("n/a", "too old")}, said.stdout)
    equal(said.returncode, 1, "its status")
    equal(results.parse_log(timed.stdout)[1], {"test_timed": Result("left out", "it measures times or rates")}, timed.stdout)


def test_tables():
    """Files are counted, tests that didn't pass somewhere are named, and what wasn't run isn't taken for passed."""
    columns = {"6.1": {"test_x": ("1", TESTS), "test_hangs": ("none: no end within 9 s", {"test_a": Result("ok", "")})},
               "6.12": {"test_x": ("0", {"test_small": Result("ok", ""), "test_wrong": Result("ok", "")})}}
    text = results.file_table(columns, ["test_hangs", "test_x", "test_nobody_ran"])
    equal(text.splitlines(), [
        "| file | 6.1 | 6.12 |", "|---|---|---|",
        "| test_hangs | 1 passed, then no end within 9 s | not run |",
        "| test_x | 2 passed, 1 failed, 1 n/a, 1 skipped, 1 left out | 2 passed |",
        "| all | 3 passed, 1 failed, 1 n/a, 1 skipped, 1 left out | 2 passed |"], "files")
    text = results.test_table(columns, ["test_hangs", "test_x"])
    equal(text.splitlines()[2:], [
        "| test_x: test_tool | skipped: nft is missing | not run |",
        "| test_x: test_new | n/a: Linux 6.1 has no such thing | not run |",
        "| test_x: test_wrong | failed: test_x.py:7: 1, not 2 | passed |"], "tests")
    equal(results.test_table({"6.12": {"test_x": ("0", {"test_small": Result("ok", "")})}}, ["test_x"]), "", "nothing to tell")
    check("30 bytes \\| more" in results.table(["a"], [["30 bytes | more"]]), "a bar ends a cell")


def test_kernel_log():
    log = "[1.0] Linux version 6.1\n[2.0] WARNING: CPU: 0 PID: 7 at net/mptcp/protocol.c:1\n[3.0] BUG: unable to handle\n[4.0] debug: fine\n"
    equal(results.parse_kernel_log(log), log.splitlines()[1:3], "complaints")


def test_fine():
    check(results.is_fine("0", {"test_a": Result("ok", ""), "test_b": Result("n/a", "old")}), "nothing failed")
    check(results.is_fine("77", {}), "nothing could be run")
    check(not results.is_fine("1", TESTS), "a test failed")
    check(not results.is_fine("none: it was cut off", {}), "no end")


DEPENDS = """linux-image-amd64
  Depends: linux-base-amd64
  Depends: linux-image-7.3.4+deb13-amd64
 |Depends: linux-initramfs-tool
  Depends: linux-modules-amd64
  Suggests: linux-doc-7.3
"""


def test_packages():
    """The image and, where they are a package of their own, the modules of one version; no metapackages."""
    equal(packages.kernel_packages(DEPENDS), ["linux-image-7.3.4+deb13-amd64"], "of the metapackage")
    equal(packages.kernel_packages("x\n  Depends: linux-modules-7.3.4+deb13-amd64\n  Depends: kmod\n"), ["linux-modules-7.3.4+deb13-amd64"],
          "of the image")
    ubuntu = ["linux-image-6.8.0-9-generic", "linux-modules-extra-6.8.0-9-generic"]
    equal(packages.kernel_packages("linux-image-generic\n  Depends: %s\n  Depends: %s\n  Depends: linux-firmware\n" % (*ubuntu,)), ubuntu,
          "of Ubuntu's metapackage")
    equal(packages.source_package("linux-source\n  Depends: linux-source-6.12\n"), "linux-source-6.12", "of the sources' metapackage")
    equal(packages.source_package("linux-source\n"), None, "of one that depends on nothing")
    for version, title in (("6.8.0-151.151", "6.8.0"), ("6.1.192-2", "6.1.192"), ("6.12.95-1~bpo12+1", "6.12.95"), ("7.3.4-1~bpo13+1", "7.3.4"), ("6.1-1", "6.1")):
        equal(packages.upstream_version(version), title, version)
    check("trixie-security" in packages.sources("trixie"), "updates are left out")
    check("security" not in packages.sources("trixie-backports"), "backports have no such suite")
    check("debian" not in packages.sources("noble", "/keys"), "Ubuntu's archives and keys are others")


def test_command_line():
    """The command line is far shorter than the 2048 bytes that the kernel takes: the tests' names are in a script."""
    with tempfile.TemporaryDirectory() as directory:
        kernel = packages.Kernel("bookworm", "6.1.0-1-amd64", "6.1.1-1", directory)
        emulated = emulator.Emulated(kernel, directory, "/usr/bin/vng", "/bin/busybox")
        words = emulated.command(emulated.write_script(["/lab/test_it's.py"] * 70, "/build", 3))
        check(len(words[-1]) < 300, "too long: " + words[-1])
        equal(words[words.index("-r") + 1], os.path.join(directory, "boot/vmlinuz-6.1.0-1-amd64"), "what is booted")
        script = words[-1].split("'")[1]
        subprocess.run(["sh", "-n", script], check=True)
        with open(script, encoding="utf-8") as file:
            text = file.read()
        equal(text.count("/lab/test_it"), 70, "files of tests")


def test_user_mode():
    """The command line is short, and the script names the files; the configuration has one option a line, each once."""
    with tempfile.TemporaryDirectory() as directory:
        booted = usermode.UserMode("/srv/linux-6.1.1", directory, "/bin/busybox")
        words = booted.command(booted.write_script(["/lab/test_a.py"] * 70, "/build", 3))
        check(len(" ".join(words)) < 1500, "too long: %s" % words)
        with open(os.path.join(directory, machine.SCRIPT), encoding="utf-8") as file:
            equal(file.read().count("/lab/test_a.py"), 70, "files of tests")
        check("time-travel=inf-cpu" in words, "it has no time of its own: %s" % words)
    with open(usermode.CONFIG, encoding="ascii") as file:
        lines = [line.strip() for line in file if not line.startswith("#")]
    check(all(re.fullmatch(r"CONFIG_\w+=(y|\d+|\"[\w,]*\")", line) for line in lines), lines)
    equal(len(lines), len(set(lines)), "lines that are there once")
    try:
        packages.fetch_source("noble", "/nowhere")
        check(False, "there is a kernel of Ubuntu's in user mode")
    except KernelError as error:
        check("noble: " in str(error), str(error))


def test_errors_name_their_cause():
    """The command says which argument, directory or missing program is wrong."""
    for words, said in ((["sarge"], "\"sarge\" is none of bookworm, "), (["--directory", "/tmp/a b", "trixie"], "/tmp/a b: ")):
        result = subprocess.run([sys.executable, KERNELS, *words], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        equal(result.returncode, 2, "status of %s" % words)
        check(said in result.stderr, result.stderr)
    machine.must_be_seen("/srv/kernels", "/var/lib", "/tmpx/kernels")
    for path in ("/var/tmp/kernels", "/srv/../tmp", "/run", "/var/cache/kernels", "/var/lib/apt"):
        try:
            machine.must_be_seen("/srv", path)
            check(False, "%s is said to be seen" % path)
        except KernelError as error:
            check(path + ": " in str(error), str(error))
    path, os.environ["PATH"] = os.environ["PATH"], "/nowhere"
    try:
        machine.find_programs(emulator.PROGRAMS, "/nowhere")
        check(False, "nothing is missing in an empty PATH")
    except KernelError as error:
        check("qemu-system-x86_64" in str(error) and "install-needs kernels" in str(error), str(error))
    finally:
        os.environ["PATH"] = path


def test_order():
    """tests/kernels runs each file of tests that LEFT_OUT doesn't name, and test_platform first."""
    listed = subprocess.run([sys.executable, KERNELS, "--list"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    with open(KERNELS, encoding="utf-8") as file:
        left_out = re.findall(r"\"(test_\w+)\"", re.search(r"^LEFT_OUT = \((.*)\)$", file.read(), re.MULTILINE).group(1))
    there = {name[:-3] for name in os.listdir(LAB) if name.startswith("test_") and name.endswith(".py")}
    equal(sorted(listed), sorted(there - set(left_out)), "files")
    equal(listed[0], "test_platform", "the first")
    check(set(left_out) <= there, "a file is left out that isn't there: %s" % left_out)


if __name__ == "__main__":
    main()
