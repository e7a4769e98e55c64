#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_completions.py - the completions of convertize, convertd and convertgw: bash and zsh at a terminal, fish asked by a command"""
import contextlib
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import threading

from convertlab import Unsuitable, check, equal, long, main, need, waits
from convertlab.build import SRCDIR, Build

COMPLETIONS = os.path.join(SRCDIR, "contrib/completions")
# Each command of convertize, "" to run a program, with words that are too few or too many: so convertize does nothing.
COMMANDS = {"": (), "check": ("a", "b"), "enable": (), "disable": (), "list": ("a",), "environment": ("a",), "paths": ("a",),
            "status": ("a",), "top": ("a",)}
UNITS = ("apache.service", "nginx.service", "postfix@.service")
OPTION = re.compile(r"--[a-z][a-z0-9-]*")


class Terminal:
    """A shell at a terminal of its own, with a wide screen and a home directory without files.

    After each key that completes, the shell writes the matches to the file "matches", and a line to the pipe "done".
    """

    def __init__(self, home, path, setup, *command):
        self._home = home
        done = os.path.join(home, "done")
        os.mkfifo(done)
        self._done = os.open(done, os.O_RDWR | os.O_CLOEXEC)
        pid, self._fd = pty.fork()
        if pid == 0:
            try:
                os.execvpe(command[0], command, {"HOME": home, "PATH": path, "TERM": "dumb", "LC_ALL": "C"})
            finally:
                os._exit(127)
        self._pid = pid
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", 1000, 300, 0, 0))
        self._shown = b""
        # if nobody read the terminal, a shell that writes much would block
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        with open(os.path.join(home, "setup"), "w", encoding="ascii") as file:
            file.write(setup)
        os.write(self._fd, (". %s/setup\n" % home).encode())
        self._wait()

    def _read(self):
        with contextlib.suppress(OSError):
            while True:
                data = os.read(self._fd, 65536)
                if not data:
                    break
                self._shown += data

    def _wait(self, seconds=60):
        ready, _, _ = select.select([self._done], [], [], seconds)
        check(ready, "the shell hasn't completed anything; it shows: %s" % self._shown[-2000:].decode(errors="replace"))
        os.read(self._done, 100)

    def close(self):
        """Ends the shell."""
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        self._reader.join(20)
        os.close(self._fd)
        os.close(self._done)

    def ask(self, line, key="\t"):
        """Types a line, in place of the previous one, and the key that completes it. Returns the matches."""
        os.write(self._fd, ("\x15%s%s" % (line, key)).encode())
        self._wait()
        with open(os.path.join(self._home, "matches"), encoding="utf-8", errors="replace") as file:
            return file.read()


BASH = r"""
PS1='> '
bind 'set completion-query-items 0' 'set page-completions off' 'set bell-style none'
complete -W 'alpha beta' inner
_command_offset() {
	COMP_WORDS=("${COMP_WORDS[@]:$1}")
	[[ ${COMP_WORDS[0]} == inner ]] && mapfile -t COMPREPLY < <(compgen -W 'alpha beta' -- "$cur")
}
. %(completions)s/%(program)s.bash
capture() {
	COMPREPLY=()
	_%(program)s "$@"
	printf '%%s\n' "${COMPREPLY[@]}" >%(home)s/matches
	echo done >%(home)s/done
}
complete -F capture %(program)s
echo done >%(home)s/done
"""


class Bash:
    """bash; the matches are those of its completion function, for the words as bash splits them."""
    name = "bash"

    def __init__(self, program, home, path):
        need("bash")
        self._terminal = Terminal(home, path, BASH % {"completions": COMPLETIONS, "home": home, "program": program},
                                  "bash", "--norc", "--noprofile", "-i")
        self.ask, self.close = self._terminal.ask, self._terminal.close


ZSH = r"""
PS1='> '
LISTMAX=100000
autoload -Uz compinit
fpath=(%(completions)s $fpath)
compinit -u -d %(home)s/dump
_inner() { compadd alpha beta }
compdef _inner inner
compadd() {
	local -a hits
	if [[ ${@[1,(i)(-|--)]} != *-(O|A|D)\ * ]]; then
		builtin compadd -A hits "$@"
		print -rl -- $hits >>%(home)s/matches
	fi
	builtin compadd "$@"
}
capture() {
	: >%(home)s/matches
	zle list-choices
	print done >%(home)s/done
}
zle -N capture
bindkey '^X' capture
print done >%(home)s/done
"""


class Zsh:
    """zsh; the matches are those that its completion functions add."""
    name = "zsh"

    def __init__(self, _program, home, path):
        need("zsh")
        self._terminal = Terminal(home, path, ZSH % {"completions": COMPLETIONS, "home": home}, "zsh", "-f", "-i")
        self.close = self._terminal.close

    def ask(self, line):
        """Returns the matches for the line."""
        return self._terminal.ask(line, "\x18")


class Fish:
    """fish, which prints its completions."""
    name = "fish"

    def __init__(self, program, home, path):
        need("fish")
        self._program = program
        self._env = {"HOME": home, "PATH": path, "LC_ALL": "C"}

    def ask(self, line):
        """Returns the matches for the line."""
        script = "complete -c inner -f -a 'alpha beta'; source %s/%s.fish; complete -C '%s'" % (
            COMPLETIONS, self._program, line)
        said = subprocess.run(["fish", "-N", "-c", script], env=self._env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              check=True)
        equal(said.stderr, "", "fish's errors")
        # without the descriptions
        return "".join(row.split("\t")[0] + "\n" for row in said.stdout.splitlines())

    def close(self):
        """Nothing runs."""


@contextlib.contextmanager
def shell(kind, program):
    """A shell with the program's completions, a program "inner" that has its own, and a systemctl that knows UNITS."""
    with tempfile.TemporaryDirectory(dir="/run/convertlab") as home:
        programs = os.path.join(home, "programs")
        os.mkdir(programs)
        for name, script in (("inner", "exit 0"), ("systemctl", "case $* in *list-unit-files*) printf '%%s enabled enabled\\n' %s ;; esac"
                                                   % " ".join(UNITS))):
            with open(os.path.join(programs, name), "w", encoding="ascii") as file:
                file.write("#!/bin/sh\n%s\n" % script.replace("%%", "%"))
            os.chmod(os.path.join(programs, name), 0o755)
        place = os.path.join(home, "root/etc/systemd/system/nginx.service.d")
        os.makedirs(place)
        with open(os.path.join(place, "zz-convertize.conf"), "w", encoding="ascii") as file:
            file.write("# Made by convertize\n")
        shutil.copytree(os.path.join(home, "root/etc/systemd/system"), os.path.join(home, ".config/systemd/user"))
        running = kind(program, home, programs + ":/usr/bin:/bin")
        running.home = home
        try:
            yield running
        finally:
            running.close()


def permitted():
    """Returns {command: options that convertize permits with it}."""
    program = Build().program("convertize")
    said = subprocess.run([program, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
    options = dict(re.findall(r"^  (--[a-z-]+)(?: (\S+))?", said, re.MULTILINE))
    check(len(options) > 20, "options in --help: %s" % options)
    found = {}
    for command, words in COMMANDS.items():
        found[command] = set()
        for option, value in options.items():
            result = subprocess.run([program, option, *([{"--method": "preload"}.get(option, "x")] if value else []),
                                     *([command] if command else []), *words],
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
            if "has no meaning" not in result.stderr and "belongs to" not in result.stderr:
                found[command].add(option)
    return found


def offers_options(run, line, options):
    """Checks that behind this line the shell offers these options, and no others."""
    equal(sorted(set(OPTION.findall(run.ask(line)))), sorted(options), "options that %s offers behind %r" % (run.name, line))


def offers_words(run, cases):
    """Checks for each (line, words, other words) that the shell offers these words, and none of the others."""
    for line, wanted, unwanted in cases:
        said = run.ask(line)
        for word in wanted:
            check(word in said, "%s offers no %s behind %r, but %s" % (run.name, word, line, said))
        for word in unwanted:
            check(not re.search(r"(?<![\w-])%s(?![\w-])" % word, said),
                  "%s offers %s behind %r: %s" % (run.name, word, line, said))


def offers_of_convertize(kind):
    """Checks that a shell offers the options and commands that convertize takes."""
    with shell(kind, "convertize") as run:
        for command, options in permitted().items():
            offers_options(run, "convertize %s--" % (command + " " if command else ""), options)
        offers_words(run, (
            ("convertize en", ("enable", "environment"), ("disable", "alpha")), ("convertize inn", ("inner",), ("list",)),
            ("convertize check inn", ("inner",), ()), ("convertize --fallback ", ("direct", "none"), ("check", "inner")),
            ("convertize --port 5 --fallback n", ("none",), ("direct",)), ("convertize check --fix=", ("run",), ("inner",)),
            ("convertize enable ", UNITS, ("inner",)), ("convertize enable --user ng", ("nginx.service",), ("apache",)),
            ("convertize disable --user ", ("nginx.service",), ("apache",)),
            ("convertize inner ", ("alpha", "beta"), ("check", "enable")),
            ("convertize --converter 192.0.2.1:1234 --warn inner al", ("alpha",), ("beta",)),
            ("convertize --converter [2001:db8::1]:5 li", ("list",), ("alpha",))))


def offers_of_convertd(kind):
    """Checks that a shell offers the options and values that convertd takes."""
    said = subprocess.run([Build().program("convertd"), "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
    options = re.findall(r"^  (--[a-z0-9-]+)", said, re.MULTILINE)
    check(len(options) > 40, "options in --help: %s" % options)
    with open("/proc/sys/net/ipv4/tcp_available_congestion_control", encoding="ascii") as file:
        congestion = file.read().split()
    with shell(kind, "convertd") as run:
        with open(os.path.join(run.home, "cookie.keys"), "w", encoding="ascii"):
            pass
        offers_options(run, "convertd --", options)
        offers_options(run, "convertd --workers 2 --", set(options) - {"--workers"} if run.name == "zsh" else options)
        offers_options(run, "convertd status --", ("--config", "--metrics"))
        offers_words(run, (
            ("convertd st", ("status",), ("--stall-timeout",)), ("convertd --workers 2 st", (), ("status",)),
            ("convertd status ", (), ("status", "--listen")), ("convertd --log-level ", ("error", "debug"), ("json", "status")),
            ("convertd --log-format j", ("json",), ("text",)), ("convertd --log-level=w", ("warning",), ("error",)),
            ("convertd --workers 1 --hold-syn=", ("auto", "on", "off"), ("status",)),
            ("convertd --congestion-client ", congestion, ("status",)), ("convertd --congestion-server=", congestion, ()),
            ("convertd --user nob", ("nobody",), ("daemon",)), ("convertd --workers ", (), ("status", "auto")),
            ("convertd --listen 192.0.2.1:1", (), ("status",)),
            ("convertd --cookie-key %s/cook" % run.home, ("cookie.keys",), ()),
            ("convertd status --config %s/cook" % run.home, ("cookie.keys",), ())))


def offers_of_convertgw(kind):
    """Checks that a shell offers the options and values that convertgw takes."""
    if not os.path.exists(os.path.join(Build().directory, "convertgw")):
        raise Unsuitable("convertgw isn't built, since libnftables or libnetfilter_queue is missing")
    said = subprocess.run([Build().program("convertgw"), "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
    options = re.findall(r"^  (--[a-z0-9-]+)", said, re.MULTILINE)
    check(len(options) > 30, "options in --help: %s" % options)
    with shell(kind, "convertgw") as run:
        with open(os.path.join(run.home, "cookie.text"), "w", encoding="ascii"):
            pass
        offers_options(run, "convertgw --", options)
        offers_options(run, "convertgw --workers 2 --", set(options) - {"--workers"} if run.name == "zsh" else options)
        offers_words(run, (
            ("convertgw st", ("status",), ("--stall-timeout",)), ("convertgw --lan ", ("lo",), ("all",)), ("convertgw --host --log-level ", ("error", "debug"), ("json",)),
            ("convertgw --log-format j", ("json",), ("text",)), ("convertgw --log-level=w", ("warning",), ("error",)),
            ("convertgw --lan br0 --route d", ("destination", "device", "dscp"), ("all",)),
            ("convertgw --converter ", (), ("--lan", "all")), ("convertgw --cookie-file %s/cook" % run.home, ("cookie.text",), ())))


def test_bash():
    """bash, at a terminal."""
    offers_of_convertize(Bash)
    offers_of_convertd(Bash)


def test_bash_and_the_gateway():
    """The same, for convertgw."""
    offers_of_convertgw(Bash)


@long
@waits
def test_zsh():
    """zsh, at a terminal."""
    offers_of_convertize(Zsh)
    offers_of_convertd(Zsh)


@long
@waits
def test_zsh_and_the_gateway():
    """The same, for convertgw."""
    offers_of_convertgw(Zsh)


def test_fish():
    """fish."""
    offers_of_convertize(Fish)
    offers_of_convertd(Fish)


def test_fish_and_the_gateway():
    """The same, for convertgw."""
    offers_of_convertgw(Fish)


if __name__ == "__main__":
    main()
