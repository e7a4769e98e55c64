# SPDX-License-Identifier: BSD-3-Clause
"""systemd.py - the real systemd, as process 1 of new namespaces on a host of the lab, with convertd.service as installed"""
import os
import re
import shutil

from .build import Build
from .harness import Unsuitable, need
from .hosts import CommandError
from .waiting import LabError, wait_until

# The directory of our files, in systemd's own mount namespace.
PLACE = "/mnt"

# Where administrators have units and drop-ins: empty in that namespace.
UNITS = "/etc/systemd/system"

# What units depend on by default.
TARGETS = ("lab", "sysinit", "basic", "shutdown", "network", "multi-user")

START = """
set -e
mount --make-rprivate /
mount -t cgroup2 none /sys/fs/cgroup
mount -t tmpfs -o mode=755 none /run
mount -t tmpfs -o mode=755 none %(place)s
[ ! -d %(units)s ] || mount -t tmpfs -o mode=755 none %(units)s
cp %(program)s %(place)s/convertd
chmod 755 %(place)s/convertd
for target in %(targets)s; do printf '[Unit]\\nDefaultDependencies=no\\nAllowIsolate=yes\\n' > %(place)s/$target.target; done
exec env container=lab SYSTEMD_UNIT_PATH=%(units)s:%(place)s %(systemd)s --system --unit=lab.target --log-target=console --show-status=no
"""


class Systemd:
    """Runs systemd on a host, the converter by default, with convertd.service under the user nobody; use it as a context manager."""

    def __init__(self, lab, *arguments, host=None):
        need("systemctl", "systemd")
        program = next((path for path in ("/usr/lib/systemd/systemd", "/lib/systemd/systemd") if os.access(path, os.X_OK)), None)
        if not program or not shutil.which("unshare"):
            raise Unsuitable("systemd isn't this host's")
        self._host = host or lab.converter
        self._build = Build()
        script = START % {"place": PLACE, "units": UNITS, "program": lab.build.program("convertd"), "systemd": program, "targets": " ".join(TARGETS)}
        self.process = self._host.popen(["unshare", "-fpmCiu", "--kill-child", "--mount-proc", "sh", "-c", script], name="systemd")
        try:
            wait_until(self._is_up, 20, "systemd")
        except LabError as error:
            raise Unsuitable("systemd doesn't run in namespaces here: %s\n%s" % (error, self.process.log_text())) from error
        self.configure(*arguments)
        self.write("convertd.service", self._unit())
        self.systemctl("daemon-reload")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # when systemd, their process 1, ends, the kernel ends all others
        self.process.kill()
        self.process.wait(20)

    def _unit(self):
        """convertd.service with the program under test, and a user that exists."""
        with open(os.path.join(self._build.directory, "contrib/systemd/convertd.service"), encoding="ascii") as file:
            unit = file.read()
        unit = re.sub(r"/\S*/convertd --config \S*", "%s/convertd --config %s/convertd.conf" % (PLACE, PLACE), unit)
        return unit.replace("=convertd\nGroup=convertd", "=nobody\nGroup=nogroup")

    def run(self, *command, check=True, input=None, env=None):  # pylint: disable=redefined-builtin
        """Runs a command in systemd's namespaces."""
        inside, = self.process.children()
        return self._host.run(["nsenter", "-t", str(inside), "-m", "-p", "-C", "-i", "-u", "--", *command], check=check, input=input,
                              env=env)

    def write(self, name, text):
        """Writes a file below PLACE."""
        self.run("sh", "-c", "cat > %s/%s" % (PLACE, name), input=text)

    def configure(self, *lines):
        """Writes convertd's configuration file."""
        self.write("convertd.conf", "".join(line + "\n" for line in ("allow-client ::/0", "allow-destination 10.0.0.0/8", *lines)))

    def _is_up(self):
        try:
            return self.process.children() and self.systemctl("list-units", check=False).returncode == 0
        except (CommandError, ValueError):
            return False

    def systemctl(self, *words, check=True):
        """Runs systemctl."""
        return self.run("systemctl", "--no-pager", *words, check=check)

    def show(self, name):
        """A property of convertd.service."""
        return self.systemctl("show", "-P", name, "convertd.service").stdout.strip()

    def processes(self):
        """The names of all of convertd's processes."""
        return self.run("sh", "-c", "sed 's,.*,/proc/&/comm,' /sys/fs/cgroup/system.slice/convertd.service/cgroup.procs 2>/dev/null | "
                        "xargs -r cat 2>/dev/null || true").stdout.split()

    def serving(self):
        """Returns how many of these processes serve clients."""
        return self.processes().count("convertd-serve")
