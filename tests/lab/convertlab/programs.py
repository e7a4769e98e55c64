# SPDX-License-Identifier: BSD-3-Clause
"""programs.py - compiles applications when a test needs them, in the build's directory, independently of this package's build

Each function returns the path of the program, and skips the test if a compiler or a library is missing.
"""
import functools
import glob
import os
import shlex
import shutil
import subprocess
import tempfile

from .build import SRCDIR, Build
from .harness import Skip, need

APPS = os.path.join(SRCDIR, "tests/lab/apps")
REGISTRY = "/usr/share/cargo/registry"  # Debian's and Fedora's packaged crates


def _compiled(path, *command, **options):
    """Runs a compiler, with "-o FILE" in place of "-o", and moves the finished file to `path`, where others may run it."""
    place = command.index("-o") + 1
    # a directory of its own: in the lab's PID namespaces many tests have the same process ID
    with tempfile.TemporaryDirectory(dir=os.path.dirname(path)) as directory:
        unfinished = os.path.join(directory, os.path.basename(path))
        said = subprocess.run([*command[:place], unfinished, *command[place:]], stderr=subprocess.PIPE,
                              text=True, check=False, **options)
        if said.returncode:
            raise Skip("%s can't make %s: %s" % (command[0], os.path.basename(path), said.stderr))
        os.replace(unfinished, path)
    return path


def _directory(name):
    directory = os.path.join(Build().directory, "tests/lab/apps/build", name)
    os.makedirs(directory, exist_ok=True)
    return directory


# --- C -----------------------------------------------------------------------------------------------------------


def _compiler():
    return shlex.split(os.environ.get("CC", "cc"))


@functools.lru_cache
def library(words, probe, package):
    """The compiler's flags for a library: those of pkg-config for `probe`, or `words` if `probe` is a header."""
    need("pkg-config")
    if probe.endswith(".h"):
        found = subprocess.run([*_compiler(), "-E", "-x", "c", "-"], input="#include <%s>\n" % probe, text=True, check=False,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
        flags = words.split()
    else:
        asked = subprocess.run(["pkg-config", "--cflags", "--libs", probe], text=True, check=False, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
        found, flags = asked.returncode == 0, shlex.split(asked.stdout)
    if not found:
        raise Skip("%s is missing; on Debian: apt-get install %s" % (probe, package))
    return flags


def c_program(name, *sources, flags=(), compiler=None, package="gcc"):
    """NAME from sources below apps/, without this package's sanitizers; `package` contains `compiler`."""
    compiler = [compiler] if compiler else _compiler()
    need(compiler[0], package)
    warnings = ["-Wall", "-Wextra"] + (["-Werror"] if os.environ.get("CONVERT_NO_SKIP") else [])
    return _compiled(os.path.join(_directory("c"), name), *compiler, "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-pthread",
                     *warnings, "-o", *(os.path.join(APPS, source) for source in sources), *flags)


# --- Go ----------------------------------------------------------------------------------------------------------


def go_program(name, *sources, cgo=False, **env):
    """NAME from sources in apps/go, with Go's own library alone; without cgo it is static. env: such as GOARCH."""
    need("go", "golang-go")
    # ignores this user's own configuration, and downloads nothing
    env = dict(os.environ, GOENV="off", GO111MODULE="off", GOTOOLCHAIN="local", GOFLAGS="", CGO_ENABLED=str(int(cgo)), **env)
    return _compiled(os.path.join(_directory("go"), name), "go", "build", "-o",
                     *(os.path.join(APPS, "go", source) for source in sources), env=env)


# --- Rust --------------------------------------------------------------------------------------------------------


def tokio_program(static=False):
    """The client in apps/tokio, built from the distribution's crates alone; static: with the C library in it, too."""
    need("cargo")
    if not glob.glob(REGISTRY + "/tokio-1.*"):
        raise Skip("no packaged tokio in %s; on Debian: apt-get install librust-tokio-dev" % REGISTRY)
    directory = _directory("tokio-static" if static else "tokio")
    shutil.copytree(os.path.join(APPS, "tokio"), directory, dirs_exist_ok=True)
    # overrides the user's own configuration of registries
    os.makedirs(os.path.join(directory, ".cargo"), exist_ok=True)
    with open(os.path.join(directory, ".cargo/config.toml"), "w", encoding="ascii") as file:
        file.write('[source.crates-io]\nreplace-with = "packaged"\n[source.packaged]\ndirectory = "%s"\n' % REGISTRY)
        if static:
            file.write('[build]\nrustflags = ["-C", "target-feature=+crt-static"]\n')
    subprocess.run(["cargo", "build", "--quiet", "--offline"], cwd=directory, check=True)
    return os.path.join(directory, "target/debug/runtime_client")
