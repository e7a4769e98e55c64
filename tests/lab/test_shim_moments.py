#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_shim_moments.py - what goes past the hooks, or comes at a bad moment

The C library's own calls, ends of a process, small stacks, privileges, standard descriptors that are closed: apps/hook_probe.c.
"""
import os

from convertlab import Lab, Link, check, equal, main
from convertlab.waiting import wait_until


def lab_for(**options):
    return Lab(wifi=Link(delay_ms=5), lte=None, core=Link(delay_ms=10), **options)


def modes(lab):
    """What the SYN+ACK confirms, early data, and neither."""
    return {"plain": lab.converted(), "confirmed": lab.converted(CONVERT_WITHHOLDING=2000),
            "early": lab.converted(CONVERT_EARLY_DATA=1)}


def probe(lab, case, port, env=None):
    program = lab.build.program("tests/lab/apps/hook_probe")
    result = lab.client.run([program, case, lab.server.addr4, port], env=env, check=False)
    return "%sended with %d\n%s" % (result.stdout, result.returncode, result.stderr)


def test_stdio():
    """It reads and writes past all hooks: no byte of the response, nothing in front of the request."""
    with lab_for() as lab:
        lab.convertd(["--hold-syn", "off"])
        lab.greeter()
        lab.echo()
        for case, port in (("stdio", 25), ("stdio-first", 7), ("dprintf-first", 7)):
            direct = probe(lab, case, port)
            check("ended with 0\n" in direct, direct)
            for mode, env in modes(lab).items():
                equal(probe(lab, case, port, env), direct, "%s, %s" % (case, mode))


def test_leaving_at_once():
    """What was written arrives, though the response hasn't come yet."""
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


if __name__ == "__main__":
    main()
