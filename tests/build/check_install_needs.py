#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_install_needs.py - install-needs leaves no service running that wasn't there before

apt-get, systemctl and update-rc.d are stand-ins that print their arguments, in a namespace with empty directories of services: nothing is
installed. The stand-in for apt-get acts like packages' scripts: it adds a service, and asks policy-rc.d whether it may start it.
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lab"))

# pylint: disable=wrong-import-position
from convertlab import Unsuitable, check, equal, main
from convertlab.build import SRCDIR

PLACE = "/run/convertlab/install-needs"
POLICY = "/usr/sbin/policy-rc.d"
UNITS, SCRIPTS = "/usr/lib/systemd/system", "/etc/init.d"

PROGRAMS = {
    "apt-get": """
echo "apt-get $*"
touch {units}/fresh.service {units}/fresh.timer {scripts}/fresh
for service in fresh fresh.timer old.service asleep; do
	if {policy} --quiet $service start; then echo "started $service"; else echo "not started $service: $?"; fi
done
exit ${{APT_STATUS-0}}
""",
    "systemctl": """
case $1 in
list-units) echo "old.service loaded active running Old" ;;
is-enabled) echo enabled ;;
*) echo "systemctl $*" ;;
esac
""",
    "update-rc.d": '\necho "update-rc.d $*"\n',
}

# The directories are empty at first, and are this process's alone.
PREPARE = """
set -e
mount --make-rprivate /
for directory in {units} {scripts} /usr/sbin; do mount -t tmpfs none $directory; done
[ ! -d /etc/systemd/system ] || mount -t tmpfs none /etc/systemd/system
touch {units}/old.service {units}/asleep.service {scripts}/script
{more}
PATH={place}:$PATH
export PATH
sh {program} --install-without-services "$@" || echo "status $?"
[ -e {policy} ] && echo "policy-rc.d is there: $(cat {policy})"
"""


def install(*words, more="", env=None):
    """Runs install-needs in such a namespace; returns the lines that it and the stand-ins print."""
    for directory in (UNITS, SCRIPTS, "/usr/sbin"):
        if not os.path.isdir(directory):
            raise Unsuitable("this system has no %s: it isn't Debian" % directory)
    os.makedirs(PLACE, exist_ok=True)
    for name, text in PROGRAMS.items():
        with open(os.path.join(PLACE, name), "w", encoding="ascii") as file:
            file.write("#!/bin/sh" + text.format(units=UNITS, scripts=SCRIPTS, policy=POLICY))
        os.chmod(file.name, 0o755)
    script = PREPARE.format(units=UNITS, scripts=SCRIPTS, place=PLACE, policy=POLICY, more=more,
                            program=os.path.join(SRCDIR, "build-tools", "install-needs"))
    return subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=dict(os.environ, **env or {}), check=False).stdout.splitlines()


def test_new_services_stay_down():
    said = install("some", "packages", more="mkdir -p /run/systemd/system")
    check("apt-get -q -y --no-install-recommends install some packages" in said, said)
    for service in ("fresh", "fresh.timer"):
        check("not started %s: 101" % service in said, said)
    for service in ("fresh.service", "fresh.timer"):
        check("systemctl disable " + service in said and "systemctl stop " + service in said, said)
    equal([line for line in said if line.startswith("install-needs: ")], ["install-needs: fresh", "install-needs: fresh.service",
                                                                       "install-needs: fresh.timer"], "what was kept down")


def test_other_services_stay_as_they_are():
    said = install("some", more="mkdir -p /run/systemd/system")
    check("started old.service" in said, said)
    check("not started asleep: 101" in said, "a service that wasn't running: %s" % said)
    check(not any("disable old" in line or "disable asleep" in line or "disable script" in line for line in said), said)


def test_without_systemd():
    said = install("some", more="rm -f %s/systemctl; rm -rf /run/systemd" % PLACE)
    check("update-rc.d fresh disable" in said and not any("script" in line for line in said), said)
    check("started old.service" in said, said)


def test_policy_is_gone_afterwards():
    for status in ("0", "100"):
        said = install("some", env={"APT_STATUS": status})
        check(not any("policy-rc.d is there" in line for line in said), said)
        equal("status 100" in said, status == "100", "whether a failure is told")


def test_the_users_own_policy_stays():
    said = install("some", more="echo exit 0 >%s; chmod 755 %s" % (POLICY, POLICY))
    check("policy-rc.d is there: exit 0" in said and "started fresh" in said, said)
    check("systemctl disable fresh.service" in said, said)


if __name__ == "__main__":
    main()
