# SPDX-License-Identifier: BSD-3-Clause
"""interpreter.py - finds the Python that has Debian's modules

Distributions package matplotlib and tqdm for their own Python. Where PATH leads to another one first, as version managers arrange
it, that one lacks them although they are installed. A program of bench/ then executes itself again with the system's Python.
"""
import importlib.util
import os
import subprocess
import sys

SYSTEM_PYTHON = "/usr/bin/python3"
TRIED = "BENCH_SYSTEM_PYTHON"  # in the environment: this program was executed again already


def _lacks(modules):
    return [name for name in modules if importlib.util.find_spec(name) is None]


def _system_python_has(modules):
    try:
        return subprocess.run([SYSTEM_PYTHON, "-c", "import sys; assert sys.version_info >= (3, 9); import " + ", ".join(modules)],
                              stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0
    except OSError:
        return False


def prefer(*modules):
    """Executes this program again with the system's Python if this one lacks one of the modules and that one has all of them."""
    if TRIED in os.environ or not _lacks(modules) or not _system_python_has(modules):
        return
    os.environ[TRIED] = "1"
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON] + sys.argv)
