#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_tarball.py - does the release tarball work for a user without rights?

Makes the tarball, which has to have all files of a clone. As an ordinary user (nobody, if root runs this), whose PATH has no sbin and
whose system has no systemd.pc, configures it without any flag, builds, installs into a home directory, checks and uninstalls it. All
that is installed has to have a page of the manual (check_manual.py). configure is then run again, with other directories, and with flags of
the builder's own.
CONVERT_TARBALL names a tarball that is there already.
"""
import glob
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile

import check_manual

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("CONVERT_BUILDDIR") or os.path.abspath(os.path.join(HERE, "..", ".."))
# below the prefix
UNITS = ("lib/systemd/system/convertd.service", "lib/systemd/system/convertize-paths.service", "lib/sysusers.d/convertd.conf",
         "lib/systemd/system/convertgw.service", "lib/sysusers.d/convertgw.conf", "lib/sysusers.d/convertize.conf",
         "lib/sysctl.d/50-convertd.conf", "lib/systemd/user-environment-generators/60-convertize")
COMPLETIONS = tuple(place % program for program in ("convertd", "convertgw", "convertize") for place in (
    "share/bash-completion/completions/%s.bash", "share/zsh/site-functions/_%s", "share/fish/vendor_completions.d/%s.fish"))
INSTALLED = UNITS + COMPLETIONS + ("etc/convertize.conf", "etc/profile.d/convertize.sh", "bin/convertize", "sbin/convertd", "sbin/convertgw", "etc/convertgw/convertgw.conf",
                     "lib/libconvert/libconvert.so", "lib/libconvertproto.so.0", "etc/convertd/convertd.conf",
                     "include/convert/convert.h", "lib/pkgconfig/convertproto.pc", "share/doc/libconvert/examples/client.c",
                     "share/man/man3/convertproto.3", "share/man/man3/convert_tlv_next.3", "share/man/man3/convert_tcp_option_next.3",
                     "lib/wireshark/plugins/convert.lua")
# what only a clone needs
CLONE_ONLY = (".ci/", ".gitignore", "GNUmakefile", "debian/")
# in place of the user's PATH
PATH = "/usr/local/bin:/usr/bin:/bin"


class Wrong(Exception):
    """Something isn't as it should be; the text says what."""


def check(right, what):
    """Ends the test with the message @what unless @right holds."""
    if not right:
        raise Wrong(what)


class Somebody:
    """An ordinary user with a home directory of his own."""

    def __init__(self, home):
        self.home = home
        self.uid = self.gid = None
        if os.geteuid() == 0:
            entry = pwd.getpwnam("nobody")
            self.uid, self.gid = entry.pw_uid, entry.pw_gid
            os.chown(home, self.uid, self.gid)
        # the file of each library for pkg-config, but not systemd's
        self.packages = os.path.join(home, "pkgconfig")
        os.mkdir(self.packages)
        said = subprocess.run(["pkg-config", "--variable", "pc_path", "pkg-config"], stdout=subprocess.PIPE, text=True, check=True)
        for directory in reversed(said.stdout.strip().split(":")):
            for path in glob.glob(os.path.join(directory, "*.pc")):
                link = os.path.join(self.packages, os.path.basename(path))
                if os.path.basename(path) != "systemd.pc" and not os.path.lexists(link):
                    os.symlink(path, link)

    def run(self, directory, *command, check_status=True, **variables):
        """Runs a command in a directory; returns its output."""
        environment = {"PATH": PATH, "HOME": self.home, "LC_ALL": "C", "PKG_CONFIG_LIBDIR": self.packages, **variables}
        ids = {} if self.uid is None else {"user": self.uid, "group": self.gid, "extra_groups": []}
        result = subprocess.run(command, cwd=directory, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, check=False, **ids)
        if check_status:
            check(result.returncode == 0, "%s ends with %d:\n%s" % (" ".join(command), result.returncode, result.stdout[-4000:]))
        return result.stdout


def tarball(directory):
    """The path of the tarball, made from this tree if none is named."""
    if os.environ.get("CONVERT_TARBALL"):
        return os.environ["CONVERT_TARBALL"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "CONVERT_"))}
    # in a place of its own: the tree may be a tarball's itself, and "make dist" of another may be under way
    result = subprocess.run(["make", "-C", BUILD, "distdir", "distdir=" + os.path.join(directory, "dist")], env=environment,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    check(result.returncode == 0, "make distdir:\n" + result.stdout[-4000:])
    path = os.path.join(directory, "libconvert.tar")
    subprocess.run(["tar", "-C", directory, "-cf", path, "dist"], check=True)
    return path


def files_below(directory):
    """The paths of all files below a directory, relative to it."""
    return sorted(os.path.relpath(os.path.join(where, name), directory)
                  for where, _, names in os.walk(directory) for name in names)


def check_completeness(source):
    """All files that git has are in the tarball, but those that only a clone needs."""
    top = os.path.abspath(os.path.join(HERE, "..", ".."))
    if not os.path.exists(os.path.join(top, ".git")):
        print("not compared with git's files: this isn't a clone")
        return
    if not shutil.which("git"):
        check(not os.environ.get("CONVERT_NO_SKIP"), "git is missing; on Debian: apt-get install git")
        print("not compared with git's files: git is missing; on Debian: apt-get install git")
        return
    names = subprocess.run(["git", "-c", "safe.directory=*", "-C", top, "ls-files"], stdout=subprocess.PIPE, text=True, check=True).stdout
    missing = [name for name in names.splitlines() if not name.startswith(CLONE_ONLY) and not os.path.lexists(os.path.join(source, name))]
    check(not missing, "make dist leaves out %s; add them to EXTRA_DIST" % ", ".join(missing))


def is_readable(path):
    """May all users read the file, or search and read the directory?"""
    wanted = 0o555 if os.path.isdir(path) else 0o444
    return os.stat(path).st_mode & wanted == wanted


def check_installation(user, tree):
    """make install under a strict umask, installcheck, uninstall, all of them with DESTDIR as well."""
    for destination in ("", os.path.join(user.home, "dest")):
        root = destination + os.path.join(user.home, "prefix")
        variables = ["DESTDIR=" + destination] if destination else []
        said = user.run(tree, "sh", "-c", "umask 077; make install \"$@\"", "sh", *variables)
        check("ldconfig: not found" not in said and "ldconfig: command not found" not in said, "ldconfig isn't there:\n" + said[-2000:])
        missing = [name for name in INSTALLED if not os.path.exists(os.path.join(root, name))]
        check(not missing, "make install %s installs no %s; there is:\n%s" % (
            " ".join(variables), ", ".join(missing), "\n".join(files_below(root))))
        hidden = [path for where, _, names in os.walk(root) for path in (where, *(os.path.join(where, name) for name in names))
                  if not is_readable(path)]
        check(not hidden, "not all users may read %s" % ", ".join(hidden))
        missing = list(check_manual.undescribed(files_below(root), root))
        check(not missing, "the manual isn't complete:\n" + "\n".join(missing))
        if not destination:
            user.run(tree, "make", "installcheck")
            with open(os.path.join(root, UNITS[0]), encoding="ascii") as file:
                unit = file.read()
            check("ExecStart=%s/sbin/convertd --config %s/etc/" % (root, root) in unit, "the unit names other files:\n" + unit)
        user.run(tree, "make", "uninstall", *variables)
        check(not files_below(root), "make uninstall leaves %s" % " ".join(files_below(root)))


def check_summary(said):
    """What configure says at its end."""
    check("`" not in said.split("libconvert 0.")[-1] and "pkg-config --" not in said.split("libconvert 0.")[-1],
          "a command in place of its result:\n" + said[-3000:])
    for library in ("libevent_core", "libsodium", "libmnl"):
        check(re.search(r"%s [0-9]+\.[0-9]" % library, said), "no version of %s:\n%s" % (library, said[-3000:]))
    check("systemd doesn't look" in said, "no word of a prefix that systemd doesn't know:\n" + said[-3000:])


def variables_of(tree):
    """What configure has put into the Makefile."""
    with open(os.path.join(tree, "Makefile"), encoding="utf-8") as file:
        return dict(re.findall(r"^(\w+) = ?(.*)$", file.read(), re.MULTILINE))


def check_other_directories(user, source, tree):
    """After configure with other directories, make compiles again what contains their names."""
    prefix = os.path.join(user.home, "prefix")
    before = [os.path.join(prefix, "etc/convertize.conf"), os.path.join(prefix, "lib/libconvert/")]
    after = [os.path.join(prefix, "settings/convertize.conf"), os.path.join(prefix, "lib64/libconvert/")]
    user.run(tree, os.path.join(source, "configure"), "--prefix=" + prefix, "--sysconfdir=%s/settings" % prefix, "--libdir=%s/lib64" % prefix)
    user.run(tree, "make", "-j2", "convertize")
    with open(os.path.join(tree, "convertize"), "rb") as file:
        program = file.read()
    for text in after:
        check(text.encode() in program, "convertize, configured again, lacks " + text)
    for text in before:
        check(text.encode() not in program, "convertize, configured again, still has " + text)


def check_own_flags(user, source):
    """The builder's own flags win, and what he leaves out is left out."""
    def configured(name, *arguments):
        directory = os.path.join(user.home, name)
        user.run(user.home, "mkdir", directory)
        user.run(directory, os.path.join(source, "configure"), "--prefix=/usr", *arguments)
        return directory, variables_of(directory)

    _, found = configured("none", "--disable-hardening", "--without-systemdsystemunitdir", "--with-sysusersdir=/etc/sysusers.d")
    hardening = [found["HARDENING_" + name].strip() for name in ("CPPFLAGS", "CFLAGS", "LDFLAGS")]
    check(hardening == [""] * 3, "with --disable-hardening: %s" % hardening)
    check(found["systemdsystemunitdir"] == "no" and found["sysusersdir"] == "/etc/sysusers.d", "the directories for systemd: %s %s" % (
        found["systemdsystemunitdir"], found["sysusersdir"]))

    _, found = configured("slow", "CFLAGS=-g -O0")
    check("_FORTIFY_SOURCE" not in found["HARDENING_CPPFLAGS"], "_FORTIFY_SOURCE without optimization")

    directory, found = configured("own", "CFLAGS=-O2 -Wp,-U_FORTIFY_SOURCE -Wp,-D_FORTIFY_SOURCE=2 -fno-stack-protector -Werror",
                                  "LDFLAGS=-Wl,-z,lazy -no-pie")
    check("_FORTIFY_SOURCE" not in found["HARDENING_CPPFLAGS"] and "-pie" not in found["HARDENING_LDFLAGS"], "flags that were decided")
    user.run(directory, "make", "tlvdump")
    program = os.path.join(directory, "tlvdump")
    said = subprocess.run(["readelf", "-Whds", program], stdout=subprocess.PIPE, text=True, check=True).stdout
    check("EXEC (" in said and "__stack_chk_fail" not in said and "NOW" not in said, "the builder's own flags don't win")


def main():
    """Says what is wrong; returns the status."""
    with tempfile.TemporaryDirectory(prefix="convert-tarball-") as directory:
        os.chmod(directory, 0o755)
        try:
            home = os.path.join(directory, "home")
            os.mkdir(home)
            user = Somebody(home)
            shutil.copy(tarball(directory), os.path.join(directory, "release.tar"))
            os.mkdir(os.path.join(home, "source"))
            subprocess.run(["tar", "-C", os.path.join(home, "source"), "--strip-components=1", "-xf",
                            os.path.join(directory, "release.tar")], check=True)
            check_completeness(os.path.join(home, "source"))
            if user.uid is not None:
                subprocess.run(["chown", "-R", "%d:%d" % (user.uid, user.gid), home], check=True)
            source, tree = os.path.join(home, "source"), os.path.join(home, "build")
            user.run(home, "mkdir", tree)
            check_summary(user.run(tree, os.path.join(source, "configure"), "--prefix=" + os.path.join(home, "prefix")))
            user.run(tree, "make", "-j2")
            hardened = subprocess.run([sys.executable, os.path.join(source, "tests/build/check_hardening.py")], text=True, check=False,
                                      env={**os.environ, "CONVERT_BUILDDIR": tree}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            check(hardened.returncode == 0, hardened.stdout)
            check_installation(user, tree)
            check_other_directories(user, source, tree)
            check_own_flags(user, source)
        except Wrong as wrong:
            print("FAIL: %s" % wrong)
            return 1
    print("built, installed, removed by an ordinary user; %s" % hardened.stdout.strip())
    return 0


if __name__ == "__main__":
    sys.exit(main())
