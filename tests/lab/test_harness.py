#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_harness.py - which failures the harness repeats, what it reports, and which tests it runs at the same time

Each test writes a small test file and runs it as make check would.
"""
import contextlib
import os
import re
import subprocess
import sys
import tempfile

from convertlab import check, equal, main, sandbox, turns, wait_until

LAB = os.path.dirname(os.path.abspath(__file__))
HEAD = """
import os, select, signal, time
from convertlab import *
from convertlab import turns

turns.share_of_others = lambda: 0  # a quiet machine

def runs(name="runs"):
    "Counts this call; returns the number of calls so far."
    with open(os.path.join(PLACE, name), "a") as file:
        file.write("x")
    return os.path.getsize(os.path.join(PLACE, name))

def there(name):
    return os.path.exists(os.path.join(PLACE, name))
"""


class Toys:
    """Test files in a directory of their own, and a build directory in which nothing was built."""

    def __init__(self, directory):
        self.directory = directory
        self.build = os.path.join(directory, "build")
        os.mkdir(self.build)
        with open(os.path.join(self.build, "linkem"), "w", encoding="ascii") as file:
            os.fchmod(file.fileno(), 0o755)

    def start(self, name, text, **env):
        """Runs a file with these functions: results on standard output, messages for the console on standard error."""
        path = os.path.join(self.directory, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write("PLACE = %r\n%s%s\nmain()\n" % (self.directory, HEAD, text))
        env = {"CONVERT_BUILDDIR": self.build, "CONVERT_CONSOLE": "2", "PYTHONPATH": LAB, "CONVERT_NO_SKIP": "", "CONVERT_LAB_PART": "", **env}
        return subprocess.Popen([sys.executable, path], env={**os.environ, **env}, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def run(self, text, **env):
        """(status, results, messages for the console, how often runs() was called)"""
        self.write("runs", "")
        process = self.start("test_toy.py", text, **env)
        said, told = process.communicate(timeout=60)
        with open(os.path.join(self.directory, "runs"), encoding="ascii") as file:
            return process.returncode, said, told, len(file.read())

    def write(self, name, text):
        with open(os.path.join(self.directory, name), "w", encoding="ascii") as file:
            file.write(text)

    def read(self, name):
        with open(os.path.join(self.directory, name), encoding="ascii") as file:
            return file.read()

    def there(self, name):
        return os.path.exists(os.path.join(self.directory, name))


@contextlib.contextmanager
def toys():
    with tempfile.TemporaryDirectory() as directory:
        yield Toys(directory)


# A failure of the first run only; what the result says of it, and whether it is a fault, which no busy machine causes.
FAULTS = (("check(got == b'right', 'wrong byte')", "wrong byte", False),
          ("same_data(got == b'right', 'wrong byte')", "wrong byte", True),
          ("equal(got, b'right', 'the byte')", "the byte: b'wrong', not b'right'", True),
          ("equal('sha256=' + '0' * 64, 'sha256=' + '1' * 64, 'what arrived')", "what arrived: ", True),
          ("equal(-signal.SIGSEGV, 0, 'status')", "status: -", True),
          ("equal(1, 0, 'status')", "status: 1, not 0", False),
          ("check(False, 'it said\\n==7==ERROR: AddressSanitizer: heap-use-after-free')", "AddressSanitizer", True),
          ("check(False, 'it said\\nx.c:1:2: runtime error: shift exponent')", "runtime error", True),
          ("between(len(got), 1, 1, 'bytes')", "bytes: 5, not within 1 to 1", False),
          ("assert got == b'right'", "", False),
          ("raise ConnectionResetError(104, 'reset')", "ConnectionResetError", False),
          ("wait_until(lambda: got == b'right', 0.1, 'the byte')", "waited 0.1s in vain for the byte", False),
          ("signal.pause()", "no end within 5s", False))


def test_what_is_wrong_is_not_repeated():
    """A wrong byte, an error, a time-out: also in a test that measures, although the next run would succeed."""
    with toys() as field:
        for mark in ("@measures\n@timeout(5)\n", "@timeout(5)\n"):
            for final in (True, False):
                faults = [(fault, said) for fault, said, is_final in FAULTS if is_final == final]
                status, results, told, runs = field.run("".join(
                    mark + "def test_%d():\n    runs()\n    got = b'wrong' if runs('%d') == 1 else b'right'\n    if got == b'wrong':\n"
                    "        %s\n" % (number, number, fault) for number, (fault, _) in enumerate(faults)))
                equal((status, runs), (99 if final else 1, len(faults)), "status and runs:\n%s" % results)
                word = "FAULT" if final else "FAIL"
                of_each = re.split(r"^(?=%s test_\d+ \()" % word, results, flags=re.M)
                check(of_each.pop(0) == "" and results.endswith("\n%d %s\n" % (len(faults), word)), results)
                equal(len(of_each), len(faults), "results:\n" + results)
                for (_, said), of_one in zip(faults, of_each):
                    check(said in of_one and ("never repeated" in of_one) == final, of_one)
                check(" repeated, run" not in told, told)
                for number in range(len(faults)):
                    field.write(str(number), "")


def test_failures_on_a_busy_machine_are_repeated():
    """Alone, while other programs use the machine; up to three runs. The result and the console tell of each. Faults are final."""
    fails = "shares = iter(%s)\nturns.share_of_others = lambda: next(shares)\n" \
        "def test_toy():\n    number = runs()\n    check(number >= %d, 'no answer to number %%d' %% number)\n"
    with toys() as field:
        for shares, needed, last in (([0.9], 2, 2), ([0.9, 0.6], 3, 3), ([0.9, 0.9], 4, 3), ([0.4], 2, 1), ([0.9, 0.1], 3, 2)):
            status, results, told, runs = field.run(fails % (shares, needed))
            equal((status, runs), (0 if last == needed else 1, last), "status and runs:\n" + results)
            check(re.search(r"^%s test_toy \(" % ("FAIL" if status else "ok"), results, re.M), results)
            equal(re.findall(r"^  before: test_toy.py:\d+: no answer to number (\d) \(other programs had \d+% of the CPUs\)$", results, re.M),
                  [str(number) for number in range(1, last)], results)
            equal(len(re.findall("^test_toy.py: test_toy repeated, since it failed on a busy machine: test_toy.py:", told, re.M)), last - 1, told)
        status, results, _, runs = field.run(fails.replace("check(", "same_data(") % ([0.9], 2))
        equal((status, runs), (99, 1), "status and runs:\n" + results)
        # one that ran beside others of its file
        beside = fails.replace("def test_toy", "@waits\ndef test_beside():\n    pass\n@waits\ndef test_toy")
        for shares, needed, last in (([0.9], 2, 2), ([0.4], 2, 1)):
            status, results, told, runs = field.run(beside % (shares, needed))
            equal((status, runs), (0 if last == needed else 1, last), "status and runs:\n" + results)
            equal(results.count("\n  before: FAIL test_toy ("), last - 1, results)
            equal(told.count("test_toy.py: test_toy repeated, since it failed on a busy machine: FAIL test_toy ("), last - 1, told)


def test_the_share_of_other_programs():
    """It is nearly all of a machine on which a program computes for each CPU, and is read while no other test of the build runs."""
    with toys() as field:
        program = "def test_toy():\n    check(runs() > 1, 'no answer')\n"
        computing = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in os.sched_getaffinity(0)]
        try:
            check(turns.share_of_others() > turns.BUSY, "no share of others")
            other = field.start("test_other.py", HOLDS % "other")
            wait_until(lambda: field.there("other"), 30, "the other test")
            alone = field.start("test_alone.py", "turns.share_of_others = lambda: 0.9\n" + program)
            wait_until(lambda: waits_for_lock(alone.pid), 30, "the one that failed to wait")
            equal(field.read("runs"), "x", "runs beside the other test")
            field.write("leave", "")
            check(other.wait(60) == 0, other.stdout.read())
            check(alone.wait(60) == 0, alone.stdout.read())
        finally:
            for process in computing:
                process.kill()
                process.wait()


def test_a_crash_is_never_repeated():
    """A test fails after a signal ended a process of the lab, or after a process printed a sanitizer's report."""
    with toys() as field:
        for program, said in (("kill -SEGV $$", "core dumped (status -11)"), ("echo 'WARNING: ThreadSanitizer: data race'", "ThreadSanitizer: data race")):
            status, results, _, _ = field.run(
                "from convertlab import links\n"
                "def test_toy():\n    runs()\n    with Lab(wifi=Veth(), lte=None, core=None) as lab:\n"
                "        lab.client.popen(['sh', '-c', %r]).wait()\n        check(False, 'no answer')\n" % program)
            check(status == 99 and results.startswith("FAULT test_toy ") and said in results, results)


def test_parts():
    """The tests of a file that "make check", "make check-long" and a developer run."""
    marked = "def test_one():\n    runs()\n@long\ndef test_two():\n    runs()\n"
    with toys() as field:
        for part, expected in (("quick", ["test_one"]), ("long", ["test_two"]), ("", ["test_one", "test_two"]), ("all", ["test_one", "test_two"])):
            status, results, _, _ = field.run(marked, CONVERT_LAB_PART=part)
            equal((status, re.findall(r"^ok (\w+) ", results, re.M)), (0, expected), "with CONVERT_LAB_PART=%s" % part)
        for part, text in (("long", "def test_one():\n    runs()\n"), ("quick", "@long\ndef test_one():\n    runs()\n"),
                           ("quick", "@measures\ndef test_one():\n    runs()\n")):
            status, results, _, runs = field.run(text, CONVERT_LAB_PART=part)
            check((status, runs) == (1, 0) and "it has no test for CONVERT_LAB_PART=" + part in results, results)
        equal(field.run("@measures\ndef test_one():\n    runs()\n", CONVERT_LAB_PART="long")[3], 1, "measurements that ran")


# The load of a machine, as turns.load() returns it: (now, seconds of waiting for a CPU, seconds of other machines) for each run's begin and end
LOADED = "loads = iter(%s)\nturns.load = lambda: next(loads)\n"
QUIET, WAITED, STOLEN = ((0, 0, 0), (10, 4, 0.1)), ((0, 0, 0), (10, 6, 0)), ((0, 0, 0), (10, 0, 0.3))


def test_disturbed_measurements_are_repeated():
    """Up to three runs; the result and the console tell of each."""
    with toys() as field:
        for needed in (1, 2, 3, 4):
            status, results, told, runs = field.run(
                LOADED % repr(list(QUIET * 3)) +
                "@measures\ndef test_toy():\n    number = runs()\n    measured_between(number, %d, 9, 'rate')\n    return 'as it should be'\n" % needed)
            last = min(needed, 3)
            equal((status, runs), (0 if needed < 4 else 1, last), "status and runs")
            check(results.startswith("ok test_toy (" if needed < 4 else "FAIL test_toy ("), results)
            check(("as it should be" in results) == (needed < 4), results)
            equal(len(re.findall(r"^  before: test_toy.py:\d+: rate: \d, not within .* tasks waited ", results, re.M)), last - 1, results)
            equal(re.findall(r"^test_toy.py: test_toy repeated, run (\d) of 3 was disturbed: test_toy.py:\d+: rate: (\d), not within", told, re.M),
                  [(str(number), str(number)) for number in range(1, last)], "messages for the console:\n" + told)


def test_a_busy_machine_proves_nothing():
    """A measurement that was wrong three times fails if the machine wasn't busy during one of them. Other failures always count."""
    wrong = "@measures\ndef test_toy():\n    runs()\n    measured(False, 'slow')\n"
    with toys() as field:
        for loads in (WAITED + STOLEN + STOLEN, QUIET + STOLEN + WAITED, WAITED + QUIET + STOLEN, WAITED + STOLEN + QUIET):
            status, results, told, runs = field.run(LOADED % repr(list(loads)) + wrong)
            equal((status, runs), (1 if QUIET[1] in loads else 0, 3), "status and runs:\n" + results)
            check(results.startswith("FAIL test_toy (" if status else "busy test_toy (") and results.endswith("\n1 %s\n" % results[:4]), results)
            equal(told.count("test_toy.py: test_toy not measured, since the machine was busy: test_toy.py:"), 1 - status, told)
        status, results, _, runs = field.run(LOADED % repr(list(WAITED)) + wrong.replace("measured", "check"))
        check((status, runs) == (1, 1) and results.startswith("FAIL test_toy ("), results)


def test_wrong_after_a_disturbance():
    with toys() as field:
        status, results, told, runs = field.run(
            "@measures\ndef test_toy():\n    measured(runs() > 1, 'slow')\n    check(False, 'wrong byte')\n")
        equal((status, runs, told.count("repeated")), (1, 2, 1), "status, runs, and messages for the console:\n" + told)
        check(results.startswith("FAIL test_toy ") and "wrong byte" in results and "before: test_toy.py" in results, results)


def test_only_those_that_measure_may():
    """In a test that isn't marked, the tests beside it would disturb measured()."""
    with toys() as field:
        status, results, _, runs = field.run("def test_toy():\n    runs()\n    measured(True, 'slow')\n")
        equal((status, runs), (1, 1), "status and runs")
        check("isn't marked with @measures" in results, results)


def test_side_by_side():
    """Two files that don't measure meet: each waits for the other one to run."""
    meet = "def test_toy():\n    open(os.path.join(PLACE, %r), 'w').close()\n    wait_until(lambda: there(%r), 30)\n"
    with toys() as field:
        running = [field.start("test_%s.py" % name, meet % (name, other)) for name, other in (("one", "two"), ("two", "one"))]
        for process in running:
            said, _ = process.communicate(timeout=60)
            check(process.returncode == 0, said)


MEETS = """@waits
def test_%s():
    with Lab(wifi=Veth(), lte=None, core=None):
        open(os.path.join(PLACE, %r), 'w').close()
        wait_until(lambda: there(%r), 30)
"""


def test_those_that_wait():
    """Tests of a file that do little but wait run at the same time, each with a lab of its own; the one that computes runs after them."""
    pair = MEETS % ("one", "one", "two") + MEETS % ("two", "two", "one") + "def test_three():\n    runs()\n"
    with toys() as field:
        status, results, _, _ = field.run(pair)
        equal((status, sorted(re.findall(r"^ok (\w+) \(", results, re.M)[:2])), (0, ["test_one", "test_two"]), results)
        check(re.search(r"^ok test_three .*\n3 ok\n\Z", results, re.M), results)
        said = {"check(False, 'no answer')": "FAIL", "same_data(False, 'wrong byte')": "FAULT", "os._exit(0)": "FAIL", "return 'well'": "ok"}
        status, results, _, runs = field.run("".join("@waits\ndef test_%d():\n    runs()\n    %s\n" % each for each in enumerate(said)))
        equal((status, runs), (99, 4), "status and runs:\n" + results)
        equal(sorted((number, word) for word, number in re.findall(r"^(\w+) test_(\d) \(", results, re.M)),
              [(str(number), word) for number, word in enumerate(said.values())], results)
        check(results.endswith("\n1 ok, 2 FAIL, 1 FAULT\n"), results)


def test_one_kind_in_a_file():
    """Tests that measure have files of their own: other tests in these would wait until no other file runs."""
    with toys() as field:
        status, results, _, runs = field.run("@measures\ndef test_first():\n    runs()\ndef test_second():\n    runs()\n")
        equal((status, runs), (1, 0), "status and runs")
        check("put them into two files" in results, results)


COMPILER = """#!/bin/sh
# compiles once two of them have begun
echo >>PLACE/begun
until [ "$(wc -l <PLACE/begun)" -ge 2 ]; do :; done
exec cc "$@"
"""


def test_one_program_of_two():
    """Two files compile the same program at the same time: each gets a whole program, though both are process 1 of their namespaces."""
    compiles = "import subprocess\nfrom convertlab import programs\n" \
        "def test_toy():\n    subprocess.run([programs.c_program('same', %r)], check=True)\n"
    with toys() as field:
        field.write("same.c", "int main(void) { return 0; }\n")
        field.write("compiler", COMPILER.replace("PLACE", field.directory))
        os.chmod(os.path.join(field.directory, "compiler"), 0o755)
        program = compiles % os.path.join(field.directory, "same.c")
        env = {"CC": os.path.join(field.directory, "compiler"), "CONVERT_NO_SKIP": "1", sandbox.OUTER: ""}
        running = [field.start("test_%d.py" % number, program, **env) for number in range(2)]
        for process in running:
            said, _ = process.communicate(timeout=60)
            check(process.returncode == 0, said)


def waits_for_lock(pid):
    """Tells whether a process waits for a lock on a file: its line has an arrow."""
    with open("/proc/locks", encoding="ascii") as file:
        return any(line.split()[1] == "->" and line.split()[5] == str(pid) for line in file)


HOLDS = "def test_toy():\n    open(os.path.join(PLACE, %r), 'w').close()\n    wait_until(lambda: there('leave'), 30)\n"


def test_alone():
    """A test that measures begins when the others have ended, and nothing begins until it has ended."""
    with toys() as field:
        other = field.start("test_other.py", HOLDS % "other")
        wait_until(lambda: field.there("other"), 30, "the other test")
        alone = field.start("test_alone.py", "@measures\n" + HOLDS % "alone")
        wait_until(lambda: waits_for_lock(alone.pid), 30, "the one that measures to wait")
        check(not field.there("alone"), "they run side by side")
        field.write("leave", "")
        check(other.wait(60) == 0, other.stdout.read())
        check(alone.wait(60) == 0, alone.stdout.read())
        os.unlink(os.path.join(field.directory, "leave"))
        os.unlink(os.path.join(field.directory, "alone"))
        alone = field.start("test_alone.py", "@measures\n" + HOLDS % "alone")
        wait_until(lambda: field.there("alone"), 30, "the one that measures")
        late = field.start("test_late.py", HOLDS % "late")
        wait_until(lambda: waits_for_lock(late.pid), 30, "the late one to wait")
        check(not field.there("late"), "they run side by side")
        field.write("leave", "")
        for process in (alone, late):
            check(process.wait(60) == 0, process.stdout.read())


def test_places():
    """At most CONVERT_LABS files run at once, however many make starts."""
    # each waits until two have run at once, and then a while, in which a third one would be seen
    program = "def two():\n    marks = open(os.path.join(PLACE, 'log')).read()\n" \
        "    return any(marks[:at].count('+') - marks[:at].count('-') >= 2 for at in range(len(marks) + 1))\n" \
        "def test_toy():\n    open(os.path.join(PLACE, 'log'), 'a').write('+')\n    wait_until(two, 30)\n" \
        "    select.select([], [], [], 0.2)\n    open(os.path.join(PLACE, 'log'), 'a').write('-')\n"
    with toys() as field:
        running = [field.start("test_%d.py" % number, program, CONVERT_LABS="2") for number in range(6)]
        for process in running:
            check(process.wait(60) == 0, process.stdout.read())
        at_once, most = 0, 0
        for mark in field.read("log"):
            at_once += 1 if mark == "+" else -1
            most = max(most, at_once)
        equal((most, len(field.read("log"))), (2, 12), "at once, and marks in the log")


if __name__ == "__main__":
    main()
