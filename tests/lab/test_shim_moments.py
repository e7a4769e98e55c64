#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_shim_moments.py - calls that bypass the hooks, and events at bad moments

The C library's own calls, ends of a process, small stacks, privileges, closed standard descriptors: apps/hook_probe.c.
"""
import contextlib
import os
import shutil
import subprocess

from convertlab import Lab, Link, Skip, Unsuitable, check, equal, kernel, long, main, side_by_side, waits
from convertlab.programs import c_program
from convertlab.waiting import wait_until

PROBE_SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "apps", "hook_probe.c")


def lab_for(**options):
    """A lab whose server answers later than a program waits for a CPU."""
    return Lab(wifi=Link(delay_ms=60), lte=None, core=Link(delay_ms=60), **options)


def modes(lab, **variables):
    """Environments: a SYN+ACK that confirms the server, early data, and neither."""
    return {"plain": lab.converted(**variables), "confirmed": lab.converted(CONVERT_WITHHOLDING=2000, **variables),
            "early": lab.converted(CONVERT_EARLY_DATA=1, **variables)}


def probe(lab, case, port, env=None, to=None):
    program = lab.build.program("tests/lab/apps/hook_probe")
    result = lab.client.run([program, case, to or lab.server.addr4, port], env=env, check=False)
    return "%sended with %d\n%s" % (result.stdout, result.returncode, result.stderr)


def same_in_all_modes(lab, case, port, **variables):
    direct = probe(lab, case, port)
    check("ended with 0\n" in direct, direct)
    environments = modes(lab, **variables)
    for mode, said in zip(environments, side_by_side(lambda env: probe(lab, case, port, env), environments.values())):
        equal(said, direct, "%s, %s" % (case, mode))


def test_stdio():
    """stdio reads and writes past all hooks: it gets no byte of the response, and sends nothing in front of the request."""
    with lab_for() as lab:
        lab.convertd(["--hold-syn", "off"])
        lab.greeter()
        lab.echo()
        for case, port in (("stdio", 25), ("stdio-first", 7), ("dprintf-first", 7)):
            same_in_all_modes(lab, case, port)


@long
@waits
def test_leaving_at_once():
    """The program's bytes arrive, although it leaves before the response."""
    with lab_for() as lab:
        lab.convertd(["--hold-syn", "off"])
        echo = lab.echo()
        for case in ("fclose", "close", "exit", "exec"):
            for mode, env in {"direct": None, **modes(lab)}.items():
                before = echo.log_text().count("bytes=5")
                said = probe(lab, case, 7, env)
                check("ended with 0\n" in said, said)
                wait_until(lambda: echo.log_text().count("bytes=5") > before, 5,  # pylint: disable=cell-var-from-loop
                           "five bytes at the server: %s, %s" % (case, mode))


@long
@waits
def test_little_stack():
    """Threads with the smallest stack that is allowed, and handlers on a stack of the recommended size."""
    if os.environ.get("SANITIZER_PRELOAD"):
        raise Unsuitable("not under sanitizers: they need more stack")
    with lab_for() as lab:
        lab.convertd(["--hold-syn", "off"])
        lab.echo()
        runtime = os.path.join(lab.directory, "runtime")
        os.mkdir(runtime, 0o700)
        for variables in ({}, {"XDG_RUNTIME_DIR": runtime}):
            for case in ("small-stacks", "signal-stack"):
                same_in_all_modes(lab, case, 7, **variables)


@kernel.needs("calls")
def test_closed_while_connecting():
    """Another thread closes the descriptor on which connect() waits: the call ends, and another descriptor keeps the connection."""
    program = c_program("again", "static/again.c")
    with Lab(wifi=Link(delay_ms=60), lte=None, core=Link(delay_ms=250)) as lab:  # the answer comes long after the other thread has run
        lab.convertd()
        lab.echo()
        runtime = os.path.join(lab.directory, "runtime")
        os.mkdir(runtime, 0o700)
        for env in (lab.converted(), lab.converted(XDG_RUNTIME_DIR=runtime), lab.converted(XDG_RUNTIME_DIR=runtime)):
            said = lab.client.run([program, lab.server.addr4, 7, 9, "close"], env=env, timeout=60).stdout
            equal(said, "connect: Bad file descriptor\nsocket: error 0, peer %s\necho: hello\n" % lab.server.addr4, lab.shim_log())


@long
@waits
def test_standard_error():
    """The log takes no descriptor, blocks no program, ends no process, and writes into no file of the application."""
    with lab_for() as lab:
        lab.convertd(["--hold-syn", "off"])
        lab.echo()
        for case in ("stderr-another", "stderr-closed", "stderr-broken", "stderr-full"):
            direct = probe(lab, case, 7)
            check("ended with 0\n" in direct, direct)
            for env in (lab.converted(CONVERT_LOG="-"), lab.converted()):
                equal(probe(lab, case, 7, env), direct, "%s, log %s" % (case, env["CONVERT_LOG"]))
        equal(lab.shim_log().count("converted over MPTCP"), 4, "conversions in\n" + lab.shim_log())


def test_cancelled_in_the_first_connect():
    """A cancelled thread doesn't keep the shim from opening what it opens once, for all threads."""
    if os.environ.get("SANITIZER_PRELOAD"):
        raise Unsuitable("not under sanitizers: AddressSanitizer takes the stack of a cancelled thread for poisoned")
    with lab_for() as lab:
        lab.convertd(["--hold-syn", "off"])
        lab.echo()
        runtime = os.path.join(lab.directory, "runtime")
        os.mkdir(runtime, 0o700)
        direct = probe(lab, "cancelled-first", 7)
        equal(probe(lab, "cancelled-first", 7, lab.converted(XDG_RUNTIME_DIR=runtime)), direct, "what the threads see")
        equal(os.listdir(runtime), ["libconvert-cache-3"], "what is in the cache's directory")


def test_handlers_that_jump():
    """Handlers leave any call at any moment by siglongjmp(), as wget's time-outs do."""
    with Lab(wifi=Link(delay_ms=0.2), lte=None, core=Link(delay_ms=0.2)) as lab:
        lab.convertd(["--hold-syn", "off"])
        lab.echo()
        same_in_all_modes(lab, "jumps", 7)


def test_signals_that_are_blocked():
    """While a connection is pending, blocked signals are kept, even those that would be ignored."""
    with lab_for() as lab:
        lab.convertd(["--hold-syn", "off"])
        to = lab.addresses.blackhole4
        equal(probe(lab, "blocked-signals", 9, lab.converted(), to), probe(lab, "blocked-signals", 9, to=to), "what is said")


@contextlib.contextmanager
def place_for_everybody():
    """A directory that an ordinary user can enter, unlike perhaps the build's."""
    place = "/run/convertlab/moments"
    os.mkdir(place)
    try:
        yield place
    finally:
        shutil.rmtree(place)


def test_set_user_id():
    """A user without its rights sets its environment, and must not make it write a log file."""
    if os.environ.get("SANITIZER_PRELOAD"):
        raise Unsuitable("not under sanitizers: their run-time library would have to be preloaded")
    with lab_for() as lab, place_for_everybody() as place:
        lab.convertd()
        lab.echo()
        library = shutil.copy(lab.build.shim, place)
        program = os.path.join(place, "program")
        log = os.path.join(place, "log")
        # linked with it, since the loader preloads nothing into such a program
        build = subprocess.run(["cc", "-o", program, "-I" + lab.build.directory, "-D_GNU_SOURCE", PROBE_SOURCE, library, "-pthread",
                                "-Wl,-rpath," + place],
                               stderr=subprocess.PIPE, text=True, check=False)
        if build.returncode:
            raise Skip("cc: %s" % build.stderr)
        user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        env = {"CONVERT_ADDR": lab.converter.addr4, "CONVERT_LOG": log, "CONVERT_CACHE": "none"}
        for mode, converted in ((0o755, True), (0o4755, False)):
            os.chmod(program, mode)
            os.chmod(place, 0o777)
            said = lab.client.run([*user, program, "conversation", lab.server.addr4, 7], env=env).stdout
            check("converse(NULL) = 5" in said, said)
            equal(os.path.exists(log), converted, "a log, mode %o" % mode)
            if converted:
                os.unlink(log)


if __name__ == "__main__":
    main()
