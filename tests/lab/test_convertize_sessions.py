#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertize_sessions.py - login sessions are converted if convertize.conf says so; and they always start"""
import contextlib
import os
import re
import shutil
import stat
import subprocess

from convertlab import Lab, Link, check, equal, main
from convertlab.build import SRCDIR
from convertlab.harness import Unsuitable

NOBODY = 65534
SHELLS = (["sh", "-l"], ["bash", "-l"], ["sh", "-eul"])


class Session:
    """A home directory on the lab's client, where login shells read convertize.sh, and the administrator's convertize.conf."""

    def __init__(self, lab):
        self.lab = lab
        self.place = os.path.join("/run/convertlab", "sessions")
        os.mkdir(self.place)
        self.home = os.path.join(self.place, "home")
        os.makedirs(os.path.join(self.home, ".config"))
        # an ordinary user may not reach the build directory
        self.program = shutil.copy(lab.build.program("convertize"), self.place)
        self.library = shutil.copy(lab.build.shim, self.place)
        said = subprocess.run([self.program, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.system = re.search(r"and (/\S*/convertize\.conf)\.", said)[1]
        self.user = os.path.join(self.home, ".config/convertize.conf")
        if os.path.dirname(self.system) == "/etc":
            raise Unsuitable("this build's convertize.conf would be this host's: /etc/convertize.conf")
        os.makedirs(os.path.dirname(self.system), exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755", "none", os.path.dirname(self.system)], check=True)
        self.profile = self.install("contrib/profile.d/convertize.sh.in")
        self.generator = self.install("contrib/systemd/60-convertize.in")
        lab.client.file("/etc/profile", "[ -z \"${SKIP-}\" ] && . %s\necho profile ends\n" % self.profile)

    def close(self):
        """Removes its files and its mount."""
        subprocess.run(["umount", os.path.dirname(self.system)], check=True)
        shutil.rmtree(self.place)

    def install(self, name):
        """Installs a template of the source tree with this test's paths; returns its path."""
        with open(os.path.join(SRCDIR, name), encoding="ascii") as file:
            text = file.read()
        path = os.path.join(self.place, os.path.basename(name)[:-3])
        with open(path, "w", encoding="ascii") as file:
            file.write(text.replace("@bindir@", self.place).replace("@sysconfdir@", os.path.dirname(self.system)))
        os.chmod(path, 0o755)
        return path

    def write(self, path, *lines, mode=0o644, owner=0):
        """Writes a file of these lines; a single None removes it."""
        if lines == (None,):
            os.unlink(path)
            return
        with open(path, "w", encoding="ascii") as file:
            file.write("".join(line + "\n" for line in lines))
        os.chmod(path, mode)
        os.chown(path, owner, owner)

    def run(self, *command, uid=0, env=None, groups=()):
        """Runs a command as this user, with this home; returns the CompletedProcess."""
        user = ["setpriv", "--reuid=%d" % uid, "--regid=%d" % uid, "--groups=%s" % ",".join(map(str, groups)) if groups else "--clear-groups"]
        full = ["env", "-i", "HOME=" + self.home, "PATH=" + os.environ["PATH"], *("%s=%s" % pair for pair in (env or {}).items())]
        return self.lab.client.run([*(user if uid or groups else []), *full, *command], check=False)

    def convertize(self, *words, status=0):
        """Runs convertize, checks its status, and returns its output and errors."""
        result = self.run(self.program, *words, env={"CONVERT_LIBRARY": self.library})
        equal(result.returncode, status, "the status of %s: %s" % (words, result))
        return result.stdout + result.stderr

    def variables(self, shell=("sh", "-l"), **options):
        """Returns the library's variables in a login shell; checks that the shell starts, without a message."""
        result = self.run(*shell, "-c", "/usr/bin/env", **options)
        check(result.returncode == 0 and result.stderr == "" and result.stdout.startswith("profile ends\n"), result)
        return dict(line.split("=", 1) for line in result.stdout.splitlines() if re.match(r"(CONVERT_\w+|LD_PRELOAD)=", line))


@contextlib.contextmanager
def session():
    """A Session in a lab."""
    if os.environ.get("SANITIZER_PRELOAD"):
        raise Unsuitable("sessions would need the sanitizers' library in front of their own")
    with Lab(wifi=Link(delay_ms=1), lte=None, core=None) as lab:
        made = Session(lab)
        try:
            yield made
        finally:
            made.close()


def test_a_user_switches_it_on_and_off():
    """After enable --session, programs of a login shell are converted; after disable --session they aren't."""
    with session() as run:
        run.lab.convertd()
        run.lab.http()
        log = os.path.join(run.place, "log")
        address = run.lab.converter.addr4

        def conversions(*shell):
            fetch = "curl -s -o /dev/null http://%s/bytes/100" % run.lab.server.addr4
            result = run.run(*shell, "-c", fetch)
            equal((result.returncode, result.stderr), (0, ""), "curl in %s" % (shell,))
            if not os.path.exists(log):
                return 0
            with open(log, encoding="ascii") as file:
                text = file.read()
            os.unlink(log)
            return text.count("converted over MPTCP")
        equal(conversions("sh", "-l"), 0, "conversions before")
        said = run.convertize("enable", "--session", "--converter", address, "--log", log, "--bypass", ":22", "--early-data", "--dry-run")
        check("session yes\n" in said and not os.path.exists(run.user), said)
        said = run.convertize("enable", "--session", "--converter", address, "--log", log, "--bypass", ":22", "--cookie", "a \"b\" $c`\\")
        check(run.user in said and "are converted" in said, said)
        equal(stat.S_IMODE(os.stat(run.user).st_mode), 0o600, "the mode of a file with a cookie")
        for shell in SHELLS:
            equal(conversions(*shell), 1, "conversions in %s" % (shell,))
        equal(run.variables(), {"CONVERT_ADDR": address, "CONVERT_LOG": log, "CONVERT_BYPASS": ":22", "CONVERT_COOKIE": "a \"b\" $c`\\",
                                "LD_PRELOAD": run.library}, "variables")
        check("converted, by %s: %s" % (run.user, address) in run.convertize("list"), "the list")
        # a session with its own CONVERT_ADDR, and a shell in a session
        equal(run.variables(env={"CONVERT_ADDR": ""}), {"CONVERT_ADDR": ""}, "with an empty CONVERT_ADDR")
        inner = run.run("sh", "-l", "-c", "exec sh -l -c env").stdout
        equal(inner.count(run.library), 1, "the library in a shell in the session")
        run.convertize("disable", "--session")
        equal((conversions("sh", "-l"), os.path.exists(run.user)), (0, False), "conversions afterwards, and the file")
        run.write(run.user, "converter 192.0.2.1")
        for words in (("enable", "--session", "--converter", address), ("disable", "--session")):
            check("yourself" in run.convertize(*words, status=2), "the user's own file")


def test_the_administrator_says_who():
    """The setting "session yes" converts sessions of all users but root, or of named users and groups; a user's own file takes precedence."""
    with session() as run:
        base = ("converter 192.0.2.1", "library " + run.library)
        expected = {"CONVERT_ADDR": "192.0.2.1", "LD_PRELOAD": run.library}
        for lines, root, nobody in (((), False, False), (("session no",), False, False), (("session yes",), False, True),
                                    (("session yes", "session-user root"), True, False),
                                    (("session yes", "session-user root", "session-user nobody"), True, True),
                                    (("session yes", "session-group daemon"), False, False)):
            run.write(run.system, *base, *lines)
            equal(run.variables(), expected if root else {}, "root's variables with %s" % (lines,))
            equal(run.variables(uid=NOBODY), expected if nobody else {}, "nobody's variables with %s" % (lines,))
        equal(run.variables(uid=NOBODY, groups=(1,)), expected, "the variables of a member of the group")
        run.write(run.system, *base, "session yes", "bypass :25")
        run.write(run.user, "session no", owner=NOBODY)
        equal(run.variables(uid=NOBODY), {}, "the variables of a user with session no")
        run.write(run.user, "bypass :22", "bypass 10.0.0.0/8", owner=NOBODY)
        equal(run.variables(uid=NOBODY), {**expected, "CONVERT_BYPASS": ":22,10.0.0.0/8"}, "with a setting of the user's own")
        generated = run.run(run.generator, uid=NOBODY)
        equal(sorted(generated.stdout.splitlines()), ["CONVERT_ADDR=\"192.0.2.1\"", "CONVERT_BYPASS=\":22,10.0.0.0/8\"",
                                                      "LD_PRELOAD=\"%s\"" % run.library], "the variables for systemd")
        os.unlink(run.user)
        run.write(run.system, *base, "session yes", "session-user root")
        run.convertize("disable", "--session")
        equal(run.variables(), {}, "after disable --session where the administrator has it on")
        # the loader silently ignores the library in a set-user-ID program
        program = shutil.copy("/usr/bin/cat", os.path.join(run.place, "cat"))
        os.chmod(program, 0o4755)
        run.write(run.system, *base, "session yes")
        os.unlink(run.user)
        result = run.run("sh", "-l", "-c", "cat /proc/self/maps | grep -c libconvert; %s /proc/self/maps | grep -c libconvert" % program,
                         uid=NOBODY)
        count, secure = result.stdout.splitlines()[1:]
        check(int(count) > 0 and secure == "0" and result.stderr == "", result)


def test_sessions_start():
    """With any fault, a login shell starts unconverted, without a message; convertize list names the fault."""
    with session() as run:
        right = ("converter 192.0.2.1", "library " + run.library, "session yes", "session-user root")
        for lines, options, said in ((("nonsense",), {}, "\"nonsense\" isn't a setting"), ((*right, "port x"), {}, ":5: port: \"x\" is not a port"),
                                     (right[1:], {}, "no converter: name it"),
                                     (("converter 192.0.2.1", "library /nowhere/libconvert.so", *right[2:]), {}, "/nowhere/libconvert.so"),
                                     (right, {"mode": 0o666}, "others may write to it"), (right, {"owner": NOBODY}, "belongs to user")):
            run.write(run.system, *lines, **options)
            for shell in SHELLS:
                equal(run.variables(shell), {}, "variables with %s" % (lines,))
            for word in ("list", "environment"):
                result = run.run(run.program, word)
                check(said in result.stderr and result.returncode in (1, 2), "convertize %s with %s: %s" % (word, lines, result))
        run.write(run.system, *right)
        check(run.variables(), "no variables with the right file")
        os.rename(run.program, run.program + ".gone")
        equal(run.variables(), {}, "variables without convertize")
        run.write(run.program, "#!/bin/sh", "echo \"what is this\" >&2", "kill -SEGV $$", mode=0o755)
        equal(run.variables(), {}, "variables with a convertize that crashes")
        os.rename(run.program + ".gone", run.program)
        run.write(run.system, None)
        equal(run.variables(env={"HOME": ""}), {}, "variables without a home")


def test_all_agree_what_a_session_is():
    """enable --session, list, environment and the login shell agree in each state; statuses tell if something is wrong."""
    with session() as run:
        base = ("converter 192.0.2.1", "library " + run.library, "session yes", "session-user root")
        # lines of the administrator's file; variables from elsewhere; whether a session is converted; whether something is wrong
        for lines, env, converted, wrong in ((base, {}, True, False), ((*base, "timeout -1"), {}, False, True), (base[:2], {}, False, False),
                                             ((*base, "log x"), {}, False, True), (base[1:], {}, False, True),
                                             ((*base, "bypass \"10.0.0.0/8\""), {}, False, True),
                                             (base, {"CONVERT_ADDR": "192.0.2.9"}, False, True), (base, {"CONVERT_ADDR": ""}, False, False),
                                             (base[:2], {"CONVERT_ADDR": "192.0.2.9"}, False, False)):
            case = (lines[-1], env)
            run.write(run.system, *lines)
            found = "LD_PRELOAD" in run.variables(env=env)
            shown = run.run(run.program, "list", env=env)
            printed = run.run(run.program, "environment", env=env)
            equal(found, converted, "the login shell: %s" % (case,))
            equal("LD_PRELOAD" in printed.stdout, converted, "environment: %s" % (case,))
            equal("are converted" in shown.stdout, converted, "list: %s" % (case,))
            equal((shown.returncode != 0, shown.stderr != ""), (wrong, wrong), "list: %s: %s" % (case, shown))
            equal((printed.returncode != 0, printed.stderr != ""), (wrong, wrong), "environment: %s: %s" % (case, printed))
        # in a converted session the list is about the next one
        run.write(run.system, *base)
        said = run.run("sh", "-l", "-c", run.program + " list").stdout
        check("Login sessions of this user are converted, by %s: 192.0.2.1.\n" % run.system in said, "list in a session: " + said)
        # a variable from elsewhere overrides the files in sessions: enable --session says so, and adopts its value
        os.unlink(run.system)
        for env, warned in (({}, False), ({"CONVERT_ADDR": "192.0.2.9"}, True)):
            said = run.run(run.program, "enable", "--session", *([] if env else ["--converter", "192.0.2.9"]), "--library", run.library, env=env)
            equal(said.returncode, 0, said)
            equal("Sessions that have CONVERT_ADDR already" in said.stdout, warned, said)
        run.convertize("disable", "--session")
        run.write(run.system, *base)
        # enable --session takes no wrong value, and says so where its file alone doesn't convert sessions
        for option, value in (("--timeout", "-1"), ("--bypass", "\"10.0.0.0/8\""), ("--converter", "\"192.0.2.1\""), ("--log", "x")):
            said = run.run(run.program, "enable", "--session", "--converter", "192.0.2.1", option, value)
            check(said.returncode == 2 and option in said.stderr and not os.path.exists(run.user), said)
        other = os.path.join(run.place, "other")
        run.write(other, "converter 192.0.2.5", "library " + run.library)
        run.convertize("enable", "--session", "--config", other)
        equal(run.variables(), {"CONVERT_ADDR": "192.0.2.5", "LD_PRELOAD": run.library}, "with the settings of --config")


def test_shells_that_may_not_read_the_profile():
    """enable --session and list tell users of zsh, fish and csh what makes their sessions converted, and nobody else."""
    with session() as run:
        profile = os.path.join(os.path.dirname(run.system), "profile.d/convertize.sh")
        for shell, remedy in (("/bin/bash", None), ("/bin/sh", None), ("", None), ("/usr/bin/fish", "run \"convertize fish\""),
                              ("/bin/csh", "run \"convertize csh\""), ("/bin/tcsh", "run \"convertize tcsh\""),
                              ("/usr/bin/zsh", "add the line \"emulate sh -c '. %s'\" to ~/.zprofile" % profile)):
            run.lab.client.file("/etc/passwd", "root:x:0:0:root:/root:%s\n" % shell)
            for words in (("enable", "--session", "--converter", "192.0.2.1"), ("list",)):
                said = run.convertize(*words)
                check("are converted" in said, said)
                equal("may not read " + profile in said, remedy is not None, "%s with the shell %s: %s" % (words, shell, said))
                check((remedy or "") in said, said)
            check("may not read" not in run.convertize("enable", "--session", "--quiet", "--converter", "192.0.2.1"), "--quiet")
        if shutil.which("zsh"):
            # the remedy, with this test's own copy of the file
            run.write(os.path.join(run.home, ".zprofile"), "emulate sh -c '. %s'" % run.profile)
            said = run.run("zsh", "-l", "-c", "/usr/bin/env")
            check("LD_PRELOAD=" + run.library in said.stdout.splitlines(), said)


def test_enable_in_a_converted_shell():
    """convertize switches warnings on or off for a shell: enable --session there adopts that only if its own options say so."""
    with session() as run:
        enable = run.program + " enable --session --converter 192.0.2.1 --dry-run"
        for options, added, lines in (((), "", []), (("-q",), "", []), ((), " --warn", ["warn = yes"])):
            said = run.run(run.program, "--converter", "192.0.2.1", *options, "sh", "-c", enable + added, env={"CONVERT_LIBRARY": run.library})
            equal(said.returncode, 0, said)
            equal([line for line in said.stdout.splitlines() if line.startswith("warn")], lines, said.stdout)


def test_settings_of_the_files():
    """The command line takes precedence over the environment, that over the user's file, and that over the administrator's."""
    with session() as run:
        show = ("sh", "-c", "echo $CONVERT_ADDR,$CONVERT_BYPASS,$CONVERT_TIMEOUT,$CONVERT_EARLY_DATA")
        run.write(run.system, "converter 192.0.2.1", "bypass :1", "bypass :2", "timeout 5", "early-data", "# a comment",
                  "library = " + run.library)

        def said(*options, **env):
            result = run.run(run.program, *options, *show, env=env)
            equal((result.returncode, result.stderr), (0, ""), "convertize %s" % (options,))
            return result.stdout.strip()
        equal(said(), "192.0.2.1,:1,:2,5,1", "the administrator's")
        run.write(run.user, "converter 192.0.2.2", "early-data no")
        equal(said(), "192.0.2.2,:1,:2,5,0", "with the user's")
        equal(said(CONVERT_ADDR="192.0.2.3"), "192.0.2.3,:1,:2,5,0", "with the environment")
        equal(said("--converter", "192.0.2.4", "--bypass", ":3", CONVERT_ADDR="192.0.2.3"), "192.0.2.4,:3,5,0", "with the command line")
        other = os.path.join(run.place, "other")
        run.write(other, "converter 192.0.2.5", "library " + run.library)
        equal(said("--config", other), "192.0.2.5,,,", "with another file")
        for path, lines, message in ((run.user, ("timeout x",), "%s:1: timeout: \"x\" is not a time" % run.user),
                                     (run.user, ("", "sesion yes"), "%s:2: \"sesion\" isn't a setting; did you mean \"session\"?" % run.user),
                                     (run.user, ("log = yes",), "%s:1: log: \"yes\" would be a file" % run.user),
                                     (run.user, ("session-user me",), "%s:1: session-user: only %s has this" % (run.user, run.system)),
                                     (run.user, ("--port 5",), "%s:1: \"--port\" has dashes; in a file, write \"port\"" % run.user),
                                     (run.user, ("json",), "%s:1: \"json\" belongs on the command line" % run.user),
                                     (run.system, ("port 1", "port 2"), "%s:2: port: \"2\": line 1 has it already" % run.system)):
            run.write(path, *lines)
            result = run.run(run.program, *show)
            lines = result.stderr.splitlines()
            check(result.returncode == 125 and any(line.startswith("convertize: " + message) for line in lines), "%s: %s" % (message, result))
            run.write(run.user, "timeout 1")
        run.write(run.system, "converter 192.0.2.1", "library " + run.library)
        run.write(run.user, "converter 192.0.2.2", owner=NOBODY)
        result = run.run(run.program, *show)
        check(result.returncode == 0 and result.stdout.startswith("192.0.2.1") and "warning: %s: belongs to" % run.user in result.stderr, result)
        result = run.run(run.program, "--config", "/nowhere", *show)
        check(result.returncode == 125 and "/nowhere: No such file" in result.stderr, result)


def test_a_file_that_may_not_be_read():
    """A user who may not read the administrator's file goes without it; but the path manager doesn't open networks that it may forbid."""
    with session() as run:
        run.write(run.system, "paths lte=never", mode=0o600)
        result = run.run(run.program, "--converter", "192.0.2.1", "--library", run.library, "true", uid=NOBODY)
        check(result.returncode == 0 and "warning: not read: %s: Permission denied" % run.system in result.stderr, result)
        said = "convertize: {0}: Permission denied; chgrp convertize {0} and chmod 640 {0}\n".format(run.system)
        for word in ("--manage", "--once", "--remove"):
            result = run.run(run.program, "paths", word, uid=NOBODY)
            equal((result.returncode, result.stdout, result.stderr), (2, "", said), "paths " + word)


if __name__ == "__main__":
    main()
