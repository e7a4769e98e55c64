#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertd_units.py - the systemd units of convertd and convertgw have no faults, and restrict the daemons as far as possible"""
import os
import re
import shutil
import tempfile

from convertlab import Lab, Skip, check, equal, main, need
from convertlab.build import SRCDIR

# systemd counts as exposure: the host's network, two capabilities, /proc/sys, addresses without limits (convertd limits clients itself), and
# capset(), a call of @privileged, by which the serving process gives up its capabilities
EXPOSURE_MAX = {252: 1.7}  # convertgw has one capability and no call of @privileged
EXPOSURE_MAX_ELSEWHERE = 2.0  # each systemd weighs a little differently

SYSTEMD = os.path.join(SRCDIR, "contrib/systemd")


def daemons(lab):
    """Returns the daemons that are built."""
    return [name for name in ("convertd", "convertgw") if os.path.exists(os.path.join(lab.build.directory, name))]


def systemd_analyze(lab, *words):
    """Runs systemd-analyze on copies of the units that name this build's daemons; returns its CompletedProcess."""
    need("systemd-analyze", "systemd")
    with tempfile.TemporaryDirectory(dir=lab.directory) as directory:
        shutil.copy(os.path.join(SYSTEMD, "convertd.socket"), directory)
        for name in daemons(lab):
            with open(os.path.join(lab.build.directory, "contrib/systemd/%s.service" % name), encoding="ascii") as file:
                unit = file.read()
            unit = re.sub(r"/\S*/%s --config" % name, lab.build.program(name) + " --config", unit)
            with open(os.path.join(directory, name + ".service"), "w", encoding="ascii") as file:
                file.write(unit)
        result = lab.converter.run(["sh", "-c", "cd %s && exec systemd-analyze --no-pager \"$@\"" % directory, "sh", *words],
                                   check=False)
    return result


def version(lab):
    """Returns systemd's version."""
    need("systemd-analyze", "systemd")
    return int(re.match(r"systemd (\d+)", lab.converter.run(["systemd-analyze", "--version"]).stdout)[1])


def test_units_are_understood():
    """systemd-analyze verify has no complaints, except that an older systemd doesn't know MPTCP."""
    with Lab(lte=None) as lab:
        result = systemd_analyze(lab, "verify", "--man=no", "./convertd.socket", *("./%s.service" % name for name in daemons(lab)))
        said = [line for line in (result.stdout + result.stderr).splitlines() if "convertd" in line or "convertgw" in line]
        if version(lab) < 257:
            said = [line for line in said if "SocketProtocol" not in line and "socket protocol" not in line]
        equal(said, [], "complaints of systemd-analyze verify")


def test_exposure():
    """systemd-analyze security finds no more exposure than the daemons need."""
    with Lab(lte=None) as lab:
        if version(lab) < 250:
            raise Skip("systemd-analyze security --offline needs systemd 250")
        most = EXPOSURE_MAX.get(version(lab), EXPOSURE_MAX_ELSEWHERE)
        found = {}
        for name in daemons(lab):
            result = systemd_analyze(lab, "security", "--offline=true", "--threshold=%d" % (most * 10), "./%s.service" % name)
            exposure = re.search(r"Overall exposure level for %s.service: ([0-9.]+)" % name, result.stdout)
            check(exposure, "no exposure level:\n" + result.stdout + result.stderr)
            check(result.returncode == 0 and float(exposure[1]) <= most, result.stdout)
            found[name] = exposure[1]
        return "exposure %s" % found


def test_the_configuration_that_is_installed():
    """The installed configuration is valid, and admits only this host; it is still valid with all settings that are comments in it."""
    with Lab(lte=None) as lab:
        program = lab.build.program("convertd")
        path = os.path.join(SRCDIR, "contrib/convertd.conf")
        check("right" in lab.converter.run([program, "--config", path, "--check-config"]).stdout, "--check-config")
        # as RuntimeDirectory= does, in the sandbox's own /run
        os.makedirs("/run/convertd", exist_ok=True)
        process = lab.convertd(["--config", path], defaults=())
        process.wait_log("ready")
        check("serving" in lab.converter.run([program, "status"]).stdout, "convertd status")
        check("everybody may use" not in process.log_text(), process.log_text())
        equal(process.stop(), 0, "the status")
        keys = os.path.join(lab.directory, "keys")
        lab.converter.run([program, "--make-key", keys])
        with open(path, encoding="ascii") as file:
            text = re.sub(r"^#([a-z])", r"\1", file.read(), flags=re.MULTILINE).replace("/etc/convertd/keys\n", keys + "\n")
        everything = os.path.join(lab.directory, "everything.conf")
        with open(everything, "w", encoding="ascii") as file:
            file.write(text)
        result = lab.converter.run([program, "--config", everything, "--check-config"], check=False)
        equal(result.returncode, 0, "the status with all options of the example: " + result.stderr)
        check("cookie-key " + keys in text and "drain-timeout" in text, "the example has lost its options")


if __name__ == "__main__":
    main()
