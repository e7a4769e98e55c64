# SPDX-License-Identifier: BSD-3-Clause
"""build.py - finds the programs under test"""
import glob
import os
import re
import shlex

from .waiting import LabError

SRCDIR = os.path.abspath(os.environ.get("CONVERT_SRCDIR") or os.path.join(os.path.dirname(__file__), "../../.."))


def _candidates():
    """Returns build directories, the likeliest first: CONVERT_BUILDDIR, else the current one, the source tree, build* in and beside it."""
    told = os.environ.get("CONVERT_BUILDDIR")
    if told:
        return [told]
    places = [os.getcwd(), SRCDIR]
    places += sorted(glob.glob(os.path.join(SRCDIR, "build*/")) + glob.glob(os.path.join(SRCDIR, "../build*/")),
                     key=os.path.getmtime, reverse=True)
    return places


def _is_ours(place):
    """Tells whether it is a build of this source tree and has linkem, the lab's own program."""
    if not os.access(os.path.join(place, "linkem"), os.X_OK):
        return False
    if os.environ.get("CONVERT_BUILDDIR"):
        return True
    try:
        with open(os.path.join(place, "Makefile"), encoding="utf-8") as makefile:
            for line in makefile:
                if line.startswith("abs_top_srcdir = "):
                    return os.path.realpath(line.split("=", 1)[1].strip()) == os.path.realpath(SRCDIR)
    except OSError:
        pass
    return False


class Build:
    """The files of one build.

    CONVERT_BUILDDIR names it. CONVERT_SHIM replaces the shim alone, and CONVERT_ with a program's name in capitals that program.
    """

    def __init__(self):
        for place in _candidates():
            if _is_ours(place):
                self.directory = os.path.abspath(place)
                return
        raise LabError("no build with linkem in it among %s; run \"make linkem\" there, or set CONVERT_BUILDDIR"
                       % ", ".join(_candidates()))

    def program(self, name):
        """The path of a program of this build."""
        path = os.environ.get("CONVERT_" + name.upper()) or os.path.join(self.directory, name)
        if not os.access(path, os.X_OK):
            raise LabError("%s is not there; run \"make %s\" in %s" % (path, name, self.directory))
        return path

    @property
    def shim(self):
        """The path of libconvert.so."""
        path = os.environ.get("CONVERT_SHIM") or os.path.join(self.directory, ".libs/libconvert.so")
        if not os.path.exists(path):
            raise LabError("%s is not there; run \"make libconvert.la\" in %s, or set CONVERT_SHIM"
                           % (path, self.directory))
        return os.path.abspath(path)

    @property
    def loader_lib(self):
        """The loader's replacement for $LIB in LD_PRELOAD, as configure has found it; "" if it knows no $LIB."""
        with open(os.path.join(self.directory, "config.h"), encoding="utf-8") as file:
            return re.search(r'^#define LIBCONVERT_LOADER_LIB "(.*)"', file.read(), re.MULTILINE)[1]

    def preloaded(self, name):
        """The LD_PRELOAD that loads a library of the tests into convertd, behind a sanitizer's library, which has to be the first."""
        library = os.path.join(self.directory, ".libs", name)
        return ":".join([*shlex.split(os.environ.get("SANITIZER_PRELOAD", "")), library])

    def shim_env(self, **variables):
        """The environment of an application under the shim, with these variables added.

        The shim forgets what it has learned when the application ends, unless XDG_RUNTIME_DIR or CONVERT_CACHE names a directory.
        SANITIZER_PRELOAD (as configure found it) goes in front: the run-time library of a sanitizer must be first.
        """
        sanitizers = shlex.split(os.environ.get("SANITIZER_PRELOAD", ""))
        env = {name: str(value) for name, value in variables.items()}
        env.setdefault("CONVERT_BESIDE_VPN", "1")  # linkem's links are TUN devices, and so are VPNs
        if "XDG_RUNTIME_DIR" not in env:
            env.setdefault("CONVERT_CACHE", "none")  # so that no application knows what the one before has learned
        if sanitizers:
            # see asan_first.c
            sanitizers.append(os.path.join(self.directory, ".libs/libasanfirst.so"))
        env["LD_PRELOAD"] = ":".join(sanitizers + [self.shim])
        if sanitizers:
            # leaks of the application are not the shim's
            env.setdefault("ASAN_OPTIONS", os.environ.get("ASAN_OPTIONS", "detect_leaks=0"))
        return env

    def on_older_linux(self, env):
        """An environment of shim_env() for a program to which tests/lab/older_linux.c shows this machine's kernel as an older one."""
        return {**env, "LD_PRELOAD": "%s:%s" % (env["LD_PRELOAD"], os.path.join(self.directory, ".libs/libolderlinux.so"))}
