# SPDX-License-Identifier: BSD-3-Clause
"""harness.py - runs the test_* functions of a file as one automake test

    def test_something():
        with Lab() as lab:
            equal(lab.client.run([...]).stdout, "x", "what the server said")

    if __name__ == "__main__":
        main()

Prints a line for each test, and exits with 0 (none failed), 1 (one failed), 99 (one failed in a way that no load explains: faults.py) or 77
(all were skipped). With CONVERT_NO_SKIP=1, which CI sets, a skip counts as a failure. automake shows only one result for the whole file. So
the harness also reports each skip and each repeated test to the descriptor in CONVERT_CONSOLE (local.mk sets that to the terminal's).

"make check" runs the quick tests of each file; "make check-long" runs those marked with @long and those that measure:
CONVERT_LAB_PART is "quick" or "long". By hand, and with "make check TESTS=FILE", a file runs all of its tests.

Most tests wait for packets, so files run side by side. Those tests of a file that do nothing else, marked with @waits, also run side by
side, each as a process in a sandbox of its own. A file of tests that measure runs alone (turns.py), and contains no other tests: these
would have to wait, too. Only tests that measure may call measured() and measured_between(). The harness repeats them if only these checks
fail. While other programs use the machine, it also repeats any other test that fails, alone: a program without a CPU may have exceeded one
of the product's time limits. It never repeats a fault (faults.py). Where times mean nothing, as in an emulator, --no-measuring leaves the
tests that measure out and names them.
"""
import argparse
import concurrent.futures
import contextlib
import functools
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import traceback

from . import faults, sandbox, topology, turns
from .waiting import LabError, patience

DEFAULT_TIMEOUT = 300  # seconds, also where as many tests as there are places compute at the same time
ATTEMPTS = 3  # of a test that measures, or that fails while other programs use the machine
WAITING_AT_ONCE = 4  # tests of a file that are marked with @waits
FAULT_STATUS = 99  # automake calls it an ERROR
DESCRIPTORS = 20000  # of a test and of each program that it starts; distributions give a shell 1024

_measuring = False  # whether the test that runs is one that measures


class Skip(Exception):
    """This test can't be run here; the text says what is missing and how to get it."""


class Unsuitable(Exception):
    """This test makes no sense here, and nothing could be installed that would help; the text says why. Never a failure."""


class Disturbed(AssertionError):
    """A time or a rate isn't what it should be: either the code is wrong, or other programs have disturbed the measurement."""


class TestTimeout(BaseException):
    """Not an Exception, so that no test catches it by accident."""


def need(program, package=None):
    """Skips the test where a program is missing."""
    if not shutil.which(program):
        raise Skip("%s is missing; on Debian: apt-get install %s" % (program, package or program))


def timeout(seconds):
    """Decorates a test that may take longer than DEFAULT_TIMEOUT."""
    def decorate(function):
        function.timeout = seconds
        return function
    return decorate


def long(function):
    """Decorates a test that "make check" leaves to "make check-long": it takes much time, or much of the machine."""
    function.long = True
    return function


def waits(function):
    """Decorates a long test that computes for less than a quarter of its time: up to WAITING_AT_ONCE of a file's run side by side."""
    function.waits = True
    return function


def measures(function):
    """Decorates a test of times and rates, which other programs on the machine can disturb.

    No other lab test of this build runs meanwhile. If measured() fails, the harness repeats the test, up to ATTEMPTS runs in all; an
    error in the code fails each of them. If the machine was busy during each run (turns.py), the result is "busy": then the test proves
    nothing, and doesn't fail. Any other failure, such as a wrong byte or a time-out, fails the test at once.
    """
    function.attempts = ATTEMPTS
    return function


def measured(condition, what):
    """check() for a condition on times, on rates or on shares of these, in a test that measures."""
    if not _measuring:
        raise LabError("measured() in a test that isn't marked with @measures: it would run beside others")
    if not condition:
        raise Disturbed(what)


def measured_between(value, low, high, what):
    """between() for times, rates and shares of these, in a test that measures."""
    measured(low <= value <= high, "%s: %s, not within %s to %s" % (what, value, low, high))


def check(condition, what):
    """Fails the test with `what` unless the condition holds."""
    if not condition:
        raise AssertionError(what)


def equal(value, expected, what):
    """Fails the test unless the two are equal. Other data than expected, or the status of a crash, is a fault."""
    if value != expected:
        fault = faults.is_crash(value) or (faults.is_data(value) and faults.is_data(expected))
        raise (faults.Fault if fault else AssertionError)("%s: %r, not %r" % (what, value, expected))


def same_data(condition, what):
    """check() for a condition on transferred data, or on what a program leaves behind: nothing else may make it false."""
    if not condition:
        raise faults.Fault(what)


def between(value, low, high, what):
    """Fails the test unless low <= value <= high."""
    if not low <= value <= high:
        raise AssertionError("%s: %s, not within %s to %s" % (what, value, low, high))


def _expired(number, frame):
    raise TestTimeout()


def _where(error):
    """The line of the test file that failed."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if os.path.basename(frame.filename).startswith("test_"):
            return "%s:%d: " % (os.path.basename(frame.filename), frame.lineno)
    return ""


def _fault(error, reason):
    """Returns why this failure is a fault, "" if a busy machine may have caused it."""
    status = getattr(getattr(error, "result", None), "returncode", 0)
    if isinstance(error, faults.Fault):
        return "data, a leak or a crash"
    if faults.is_crash(status):
        return "status %d" % status
    return next(filter(None, map(faults.report_in, [reason] + topology.failure_reports)), "")


def _run(function):
    """("ok", "skip", "n/a", "disturbed", "FAIL" or "FAULT", reason)"""
    result, reason, error = _run_once(function)
    fault = _fault(error, reason) if result in ("FAIL", "disturbed") else ""
    return ("FAULT", "%s\n  never repeated: %s" % (reason, fault)) if fault else (result, reason)


def _run_once(function):
    """As _run(), with the exception that ended the test."""
    limit = patience(getattr(function, "timeout", DEFAULT_TIMEOUT))
    signal.signal(signal.SIGALRM, _expired)
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        return "ok", function() or "", None
    except Skip as skip:
        return ("FAIL" if os.environ.get("CONVERT_NO_SKIP") else "skip"), str(skip), None
    except Unsuitable as error:
        return "n/a", str(error), None
    except AssertionError as error:
        return "disturbed" if isinstance(error, Disturbed) else "FAIL", _where(error) + str(error), error
    except TestTimeout as error:
        return "FAIL", _where(error) + "no end within %gs" % limit, error
    except Exception as error:  # pylint: disable=broad-except
        return "FAIL", "%s%s: %s\n%s" % (_where(error), type(error).__name__, error, traceback.format_exc()), error
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _raise_descriptors():
    """Raises the limit of descriptors to DESCRIPTORS, or as far as the user may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, DESCRIPTORS)), hard))


def _cpu_seconds():
    """The CPU time of this process and of all processes that it has waited for."""
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def _is_measuring(function):
    return getattr(function, "attempts", 1) > 1


def _is_waiting(function):
    return getattr(function, "waits", False)


def _run_repeatedly(name, function):
    """Does as _run(), and repeats a test that was disturbed, which fails with the last attempt, or is "busy". Reports each repetition."""
    global _measuring  # pylint: disable=global-statement
    disturbed, busy, attempts = [], True, getattr(function, "attempts", 1)
    _measuring = _is_measuring(function)
    while True:
        before = turns.load()
        result, reason = _run(function)
        load, explains = turns.load_since(before)
        busy = busy and explains
        if result == "disturbed" and len(disturbed) + 1 >= attempts:
            result = "busy" if busy else "FAIL"
        if result == "busy":
            _tell_console("%s not measured, since the machine was busy: %s (%s)" % (name, reason.splitlines()[0], load))
        if result != "disturbed":
            return result, reason + "".join("\n  before: " + text for text in disturbed)
        disturbed.append("%s (%s)" % (reason.splitlines()[0], load))
        topology.failure_reports.clear()
        _tell_console("%s repeated, run %d of %d was disturbed: %s" % (name, len(disturbed), attempts, disturbed[-1]))


def _repeat_alone(name, run, reason, turn):
    """Calls run() for a test that has failed for `reason`, up to ATTEMPTS runs in all, as long as other programs use the machine.

    Returns as run(). Prints what the lab reported of each run before.
    """
    result, failed = "FAIL", []
    with turn.alone():
        while result == "FAIL" and len(failed) + 1 < ATTEMPTS:
            share = turns.share_of_others()
            if share < turns.BUSY:
                break
            failed.append("%s (other programs had %d%% of the CPUs)" % (reason.splitlines()[0], 100 * share))
            print("\n".join(["%s failed: %s" % (name, reason)] + topology.failure_reports), flush=True)
            topology.failure_reports.clear()
            _tell_console("%s repeated, since it failed on a busy machine: %s" % (name, failed[-1]))
            result, reason = run()
    return result, reason + "".join("\n  before: " + text for text in failed)


def _tell_console(text):
    """Prints a line to the console: automake shows only one result for the whole file."""
    console = os.environ.get("CONVERT_CONSOLE")
    if console:
        with contextlib.suppress(OSError, ValueError):
            os.write(int(console), ("%s: %s\n" % (os.path.basename(sys.argv[0]), text)).encode())


def _in_part(test):
    """Tells whether the test belongs to the part that CONVERT_LAB_PART names."""
    part = os.environ.get("CONVERT_LAB_PART") or "all"
    return part == "all" or (part == "long") == (getattr(test, "long", False) or _is_measuring(test))


def _run_in_process(name):
    """Runs one test in a process with a sandbox of its own. Returns (result, its output without the line of sums)."""
    console = os.environ.get("CONVERT_CONSOLE")
    process = subprocess.run([sys.executable, sys.argv[0], "--inner", name], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, errors="replace", check=False, env={**os.environ, sandbox.OUTER: ""},
                             pass_fds=[int(console)] if console else [])
    found = re.search(r"^(ok|skip|n/a|FAIL|FAULT) %s \(.*\n" % name, process.stdout, re.M)
    if not found or (process.returncode not in (0, sandbox.SKIPPED)) != (found[1] in ("FAIL", "FAULT")):
        return "FAIL", "FAIL %s (0.0s, 0.0s of CPU): its process ended with status %d\n%s" % (name, process.returncode, process.stdout)
    return found[1], process.stdout.rpartition("\n1 ")[0]


def _run_side_by_side(names, turn):
    """Runs these tests, several at once, and prints the output of each in one piece. Returns their results."""
    results, failed = [], []
    with concurrent.futures.ThreadPoolExecutor(WAITING_AT_ONCE) as pool:
        running = {pool.submit(_run_in_process, name): name for name in names}
        for future in concurrent.futures.as_completed(running):
            result, text = future.result()
            if result == "FAIL":
                failed.append((running[future], text))
                continue
            results.append(result)
            print(text, flush=True)
    for name, text in failed:
        result, text = _repeat_alone(name, functools.partial(_run_in_process, name), text, turn)
        results.append(result)
        print(text, flush=True)
    return results


def _run_in_turn(tests, turn):
    """Runs (name, test) one after the other, and prints a line for each, or more. Returns their results."""
    results = []
    for name, test in tests:
        start, computed = time.monotonic(), _cpu_seconds()
        result, reason = _run_repeatedly(name, test)
        if result == "FAIL" and turn and not _is_measuring(test):
            result, reason = _repeat_alone(name, functools.partial(_run, test), reason, turn)
        results.append(result)
        print("%s %s (%.1fs, %.1fs of CPU)%s" % (result, name, time.monotonic() - start, _cpu_seconds() - computed, ": " + reason if reason else ""),
              flush=True)
        if result == "skip":
            _tell_console("%s skipped: %s" % (name, reason))
        if result in ("FAIL", "FAULT"):
            print("\n".join(topology.failure_reports), flush=True)
        topology.failure_reports.clear()
    return results


def _tell_left_out(names):
    for name in names:
        print("left out %s: it measures times or rates" % name, flush=True)


def main():
    """Runs the tests of the program's main module and exits."""
    module = sys.modules["__main__"]
    tests = [(name, value) for name, value in vars(module).items() if name.startswith("test_") and callable(value)]
    parser = argparse.ArgumentParser(description=module.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("filter", nargs="*", help="run only tests whose name contains one of these")
    parser.add_argument("--only", action="append", default=[], metavar="TEST", help="run the tests with these very names")
    parser.add_argument("--inner", metavar="TEST", help=argparse.SUPPRESS)  # for _run_in_process(), which has the turn
    parser.add_argument("--without", action="append", default=[], metavar="TEST", help="leave out the test with this very name")
    parser.add_argument("--list", action="store_true", help="print the names of the tests")
    parser.add_argument("--no-measuring", action="store_true", help="leave out the tests that measure times and rates, and name them")
    arguments = parser.parse_args()
    alone = any(_is_measuring(test) for _, test in tests)
    if not all(_is_measuring(test) == alone for _, test in tests):
        print("FAIL: some of the tests have @measures, and some haven't: put them into two files")
        sys.exit(1)
    tests = [(name, test) for name, test in tests if not arguments.filter or any(f in name for f in arguments.filter)]
    arguments.only += [arguments.inner] if arguments.inner else []
    unknown = set(arguments.without + arguments.only) - set(name for name, _ in tests)
    if unknown:
        sys.exit("there is no test %s" % " or ".join(sorted(unknown)))
    tests = [(name, test) for name, test in tests if name not in arguments.without and (not arguments.only or name in arguments.only)]
    if not tests:
        sys.exit("no test has %s in its name" % " or ".join(arguments.filter))
    tests = [(name, test) for name, test in tests if _in_part(test)]
    if not tests:
        print("FAIL: it has no test for CONVERT_LAB_PART=%s: tests/lab/local.mk lists the files of each part" % os.environ["CONVERT_LAB_PART"])
        sys.exit(1)
    left_out = [name for name, test in tests if arguments.no_measuring and _is_measuring(test)]
    tests = [(name, test) for name, test in tests if name not in left_out]
    if arguments.list:
        print("\n".join(name for name, _ in tests))
        sys.exit(0)
    if not tests:
        _tell_left_out(left_out)
        sys.exit(sandbox.SKIPPED)
    # Background commands of a shell ignore these signals (POSIX, "Asynchronous Lists"), and programs would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    _raise_descriptors()
    try:
        turn = None if arguments.inner else turns.take(alone, all(_is_waiting(test) for _, test in tests))  # until this process ends
    except LabError as error:
        sys.exit("FAIL: %s" % error)
    sandbox.enter_or_exit()
    sandbox.use_bare_python()
    _tell_left_out(left_out)
    waiting = [name for name, test in tests if _is_waiting(test)]
    # on a slow machine these tests compute for longer, too; and a single test needs no process
    waiting = waiting if len(waiting) > 1 and patience(1) <= 1 else []
    results = _run_side_by_side(waiting, turn) + _run_in_turn([(name, test) for name, test in tests if name not in waiting], turn)
    if turn:
        turn.close()
    print(", ".join("%d %s" % (results.count(result), result) for result in ("ok", "skip", "n/a", "busy", "FAIL", "FAULT") if result in results))
    sys.exit(FAULT_STATUS if "FAULT" in results else 1 if "FAIL" in results else sandbox.SKIPPED if set(results) == {"skip"} else 0)
