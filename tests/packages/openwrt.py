#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""openwrt.py - the feed for OpenWrt: what becomes of its configuration, and what its packages contain

OpenWrt's own programs aren't there: openwrt_stubs.sh stands for its shell functions, and a few lines of make for its rules.mk and
package.mk.
The service's script is run by each of dash and BusyBox that is there, and convertd itself reads what it has made.
"""
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lab"))

# pylint: disable=wrong-import-position
from convertlab import Skip, Unsuitable, check, equal, main
from convertlab.build import SRCDIR, Build
from place import libraries_of

FEED = os.path.join(SRCDIR, "contrib/openwrt/libconvert")
INIT, CONFIG, GATEWAY_CONFIG = (FEED + "/files/" + name for name in ("convert.init", "convertd.config", "convertgw.config"))
PLACE = "/run/convertlab/openwrt"

EVERYTHING = """
config other 'first'
	option enabled '1'
	option listen 'not for us'

config convertd 'main'
	option enabled '1'
	list listen '[::]:1234'
	list listen '127.0.0.1:4321'
	list allow_client '198.51.100.0/24'
	list deny_destination ':25'
	option hold_syn 'auto'
	option cookie_demand '0'
	option no_hairpin '1'
	option no_landlock '0'
	option max_connections_per_client '20'
"""
TRANSLATED = ["listen [::]:1234", "listen 127.0.0.1:4321", "allow-client 198.51.100.0/24", "deny-destination :25", "hold-syn auto",
              "cookie-demand 0", "no-hairpin", "max-connections-per-client 20"]

GATEWAY = """
config convertgw 'main'
	option enabled '1'
	list converter '192.0.2.1'
	list converter 'converter.example:443'
	list lan 'br-lan'
	option host '0'
	option refuse_quic '1'
	list rule 'route client 192.168.1.20'
	list rule 'convert all'
	option converter_timeout '2'
"""
GATEWAY_TRANSLATED = ["converter 192.0.2.1", "converter converter.example:443", "lan br-lan", "refuse-quic", "route client 192.168.1.20",
                      "convert all", "converter-timeout 2", "cache %s/run" % PLACE, "metrics unix:%s/run/metrics.sock" % PLACE]

MAKE = """
INSTALL_DIR=mkdir -p
INSTALL_BIN=install -m 755
INSTALL_CONF=install -m 600
INSTALL_DATA=install -m 644
define BuildPackage
all:: install-$(1)
install-$(1): ; $$(call Package/$(1)/install,$(TO)/$(1))
$$(info package $(1): $$(DEPENDS))
endef
all::
"""


def shells():
    """The shells that are there; the system's own is dash on Debian."""
    found = [[path] for path in (shutil.which("dash"),) if path]
    found += [[path, "ash"] for path in (shutil.which("busybox"),) if path]
    if not found:
        raise Skip("neither dash nor BusyBox is here; on Debian: apt-get install dash busybox-static")
    return found


class Service:
    """A daemon's script, run by one shell for one configuration."""

    def __init__(self, shell, text, jailer="/nonexistent", program="convertd"):
        shutil.rmtree(PLACE, ignore_errors=True)
        os.makedirs(PLACE)
        self.uci, self.made = PLACE + "/config", PLACE + "/etc/%s.conf" % program
        # as the package installs it, and as it is started at boot
        self._shell, self._init, installed = shell, PLACE + "/S95" + program, PLACE + "/" + program
        shutil.copy(INIT, installed)
        os.symlink(installed, self._init)
        # "nobody" is a user that every machine has; the script's own needs OpenWrt's package
        self.environment = {**os.environ, "UCI_FILE": self.uci, "CONVERT_PROGRAM": Build().program(program), "CONVERT_JAILER": jailer,
                            "CONVERT_DIRECTORY": PLACE + "/etc", "CONVERT_STATE": PLACE + "/run", "initscript": self._init}
        self.write(text)

    def write(self, text):
        """Puts a configuration there."""
        with open(self.uci, "w", encoding="ascii") as file:
            file.write(text)

    def run(self, action, status=0, **environment):
        """Does what rc.common does for an action; returns the lines that it said."""
        result = subprocess.run([*self._shell, "-c", '. "$1"; . "$2"; "$3"', "sh", os.path.join(HERE, "openwrt_stubs.sh"), self._init, action],
                                env={**self.environment, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                check=False)
        equal(result.returncode, status, "status of %s by %s: %s" % (action, self._shell, result.stdout))
        return result.stdout.splitlines()

    def lines(self):
        """The configuration that it has made, without comments."""
        if not os.path.exists(self.made):
            return None
        with open(self.made, encoding="ascii") as file:
            return [line for line in file.read().splitlines() if line[0] != "#"]


def with_user(text):
    """The configuration with a user whom this machine has."""
    return text + "\toption user 'nobody'\n"


def test_translation():
    """Options, lists and flags become lines of convertd.conf, other sections don't, and convertd takes them."""
    for shell in shells():
        service = Service(shell, with_user(EVERYTHING))
        said = service.run("start_service")
        equal(service.lines(), [*TRANSLATED, "user nobody", "metrics unix:%s/run/metrics.sock" % PLACE], "what %s has made" % shell)
        for line in ("set_param command %s --config %s" % (Build().program("convertd"), service.made), "set_param respawn 3600 1 0",
                     "chown convertd:convertd %s/run" % PLACE, "open_instance ", "close_instance "):
            check(line in said, "no \"%s\" among what was said to procd:\n%s" % (line, "\n".join(said)))
        check(not any("jail" in line for line in said), "a jail that isn't there")
        equal(service.run("service_triggers"), ["add_reload_trigger convertd"], "triggers")


def test_user_is_convertd():
    """Without a user in the configuration it is convertd; in a jail procd sets it."""
    for shell in shells():
        service = Service(shell, EVERYTHING)
        program = PLACE + "/check"
        with open(program, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\nexit 0\n")
        os.chmod(program, 0o755)
        service.environment["CONVERT_PROGRAM"] = program  # this machine may have no user of that name
        service.run("start_service")
        check("user convertd" in service.lines(), "it would run as root: %s" % service.lines())
        service.write(EVERYTHING + "\toption jail '1'\n")
        service.run("start_service")
        check("user convertd" in service.lines(), "without a jailer it would run as root: %s" % service.lines())
        said = service.run("start_service", CONVERT_JAILER="/bin/sh")
        check("set_param user convertd" in said and "set_param no_new_privs 1" in said and "user convertd" not in service.lines(), said)


def test_faults_change_nothing():
    """A configuration with faults is named in the log, the one in force stays, and procd hears nothing."""
    faults = {"\toption alow_client '::/0'\n": "alow-client", "\toption hold_syn 'perhaps'\n": "perhaps",
              "\toption no_hairpin 'maybe'\n": "no_hairpin 'maybe'"}
    for shell in shells():
        service = Service(shell, with_user(EVERYTHING))
        service.run("start_service")
        before = service.lines()
        for fault, word in faults.items():
            rest = EVERYTHING.replace("\toption hold_syn 'auto'\n", "").replace("\toption no_hairpin '1'\n", "")
            service.write(with_user(rest + fault))
            said = service.run("start_service", status=1)
            check(any(line.startswith("log: -t convertd -p daemon.err") and word in line for line in said),
                  "no word of %s: %s" % (word, said))
            check(not any("instance" in line for line in said), said)
            equal(service.lines(), before, "the configuration in force")
            said = service.run("check", status=1)
            check(any(word in line for line in said), said)
        service.write(with_user(EVERYTHING))
        check("the configuration is right" in service.run("check"), "check")


def test_reload():
    """One that runs reads its file again, one that doesn't is started, and one that is disabled is neither."""
    for shell in shells():
        service = Service(shell, with_user(EVERYTHING))
        equal([line for line in service.run("reload_service", RUNNING="1") if line.startswith(("open", "send"))],
              ["open_instance ", "send_signal convertd"], "a service that runs")
        check("send_signal convertd" not in service.run("reload_service"), "a signal for a service that doesn't run")
        service.write(with_user(EVERYTHING.replace("enabled '1'", "enabled '0'")))
        check(not any(line.startswith(("open", "send")) for line in service.run("reload_service", RUNNING="1")),
              "a service that is disabled")


def test_shipped_configuration():
    """It is right with all of its comments as well, starts nothing, and the firewall's rule is for its port."""
    with open(CONFIG, encoding="ascii") as file:
        text = file.read()
    everything = re.sub(r"^\t#(list|option)", r"\t\1", text, flags=re.MULTILINE)
    everything = re.sub(r"^.*cookie_key.*\n", "", everything, flags=re.MULTILINE)  # a file that isn't there
    check("option cookie_key" not in everything and "option no_hairpin" in everything, everything)
    with open(FEED + "/files/convertd.firewall", encoding="ascii") as file:
        port = re.search(r"dest_port '(\d+)'", file.read())[1]
    for shell in shells():
        service = Service(shell, with_user(text))
        said = service.run("start_service")
        check(any("not started" in line for line in said) and not any("instance" in line for line in said), said)
        check("listen [::]:" + port in service.lines(), service.lines())
        service.write(with_user(everything))
        service.run("check")


def test_every_option_is_known():
    """No option of convertd is lost: the flags of its help are those that the script writes without a value."""
    said = subprocess.run([Build().program("convertd"), "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
    flags = re.findall(r"^  --([a-z0-9-]+)(?! [A-Z])(?: {2,}|$)", said, re.MULTILINE)
    flags = sorted(set(flags) - {"check-config", "help", "version"})
    text = re.sub(r"^\toption (no|hold)_.*\n", "", EVERYTHING, flags=re.MULTILINE)
    for shell in shells():
        service = Service(shell, with_user(text + "".join("\toption %s '1'\n" % flag.replace("-", "_") for flag in flags)))
        service.run("check")
        equal([flag for flag in flags if flag not in service.lines()], [], "flags that are not written as such")
    check("no-hairpin" in flags and "drop-foreign-syns" in flags and "listen" not in flags, flags)


def test_gateway():
    """convertgw: settings, flags and rules in their order; faults; a reload; the configuration that is installed."""
    if not os.path.exists(os.path.join(Build().directory, "convertgw")):
        raise Unsuitable("convertgw isn't built, since libnftables or libnetfilter_queue is missing")
    with open(GATEWAY_CONFIG, encoding="ascii") as file:
        shipped = file.read()
    everything = re.sub(r"^.*cookie_file.*\n", "", re.sub(r"^\t#(list|option)", r"\t\1", shipped, flags=re.MULTILINE), flags=re.MULTILINE)
    for shell in shells():
        service = Service(shell, GATEWAY, program="convertgw")
        said = service.run("start_service")
        equal(service.lines(), GATEWAY_TRANSLATED, "what %s has made" % shell)
        check(os.path.isdir(PLACE + "/run"), "no directory for the socket of metrics")
        check("set_param command %s --config %s" % (Build().program("convertgw"), service.made) in said, said)
        equal(service.run("service_triggers"), ["add_reload_trigger convertgw"], "triggers")
        check("send_signal convertgw" in service.run("reload_service", RUNNING="1"), "no signal for a service that runs")
        for fault in ("\tlist rule 'route nowhere'\n", "\toption refuse_quic 'perhaps'\n", "\toption cookei 'x'\n"):
            service.write(GATEWAY + fault)
            said = service.run("start_service", status=1)
            check(any(line.startswith("log: -t convertgw -p daemon.err") for line in said) and not any("instance" in line for line in said), said)
            equal(service.lines(), GATEWAY_TRANSLATED, "the configuration in force")
        for text in (shipped, everything):
            service.write(text)
            said = service.run("check")
            check("the configuration is right" in said and any("br-lan" in line for line in said), said)
        check(any("not started" in line for line in service.run("start_service")), "it starts by itself")


# None: OpenWrt has it anyway, or its build does without
PACKAGES = {"libc": None, "libm": None, "libqrencode": None, "libasan": None, "libubsan": None, "libtsan": None,
            "libevent_core-2": "libevent2-core", "libnetfilter_queue": "libnetfilter-queue", "libmicrohttpd": "libmicrohttpd-no-ssl",
            "libnftables": "nftables"}


def test_dependencies():
    """Each package depends on the libraries that its program is linked with: OpenWrt's build refuses it otherwise."""
    with open(FEED + "/Makefile", encoding="ascii") as file:
        makefile = file.read().replace("\\\n", " ")
    for name in ("convertd", "convertgw", "convertize"):
        program = Build().program(name)
        program = os.path.join(os.path.dirname(program), ".libs", name) if open(program, "rb").read(2) == b"#!" else program
        depends = re.search(r"define Package/%s\n.*?DEPENDS:=(.*?)\n" % name, makefile, re.DOTALL)[1].split()
        wanted = {PACKAGES.get(library, library) for library in libraries_of(program)} - {None}
        equal(sorted(wanted - {word.lstrip("+") for word in depends}), [], "libraries that %s lacks among %s" % (name, depends))


def test_packages():
    """GNU make reads the Makefile, and its recipes find what they install."""
    os.makedirs(PLACE, exist_ok=True)
    installed = PLACE + "/installed"
    for path in ("usr/lib/libconvert/libconvert.so", "usr/bin/convertize", "usr/sbin/convertd", "usr/sbin/convertgw",
                 "etc/sysctl.d/50-convertd.conf", "etc/convertize.conf"):
        os.makedirs(os.path.dirname(os.path.join(installed, path)), exist_ok=True)
        open(os.path.join(installed, path), "w", encoding="ascii").close()
    for name, text in (("rules.mk", MAKE), ("package.mk", "")):
        with open(os.path.join(PLACE, name), "w", encoding="ascii") as file:
            file.write(text)
    command = ["make", "-C", FEED, "TOPDIR=" + PLACE, "INCLUDE_DIR=" + PLACE, "PKG_INSTALL_DIR=" + installed, "TO=" + PLACE + "/to"]
    result = subprocess.run(command, env={name: value for name, value in os.environ.items() if not name.startswith("MAKE")},
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    equal(result.returncode, 0, "make's status: " + result.stdout)
    found = sorted(os.path.relpath(os.path.join(where, name), PLACE + "/to")
                   for where, _, names in os.walk(PLACE + "/to") for name in names)
    equal(found, ["convertd/etc/capabilities/convertd.json", "convertd/etc/config/convertd", "convertd/etc/init.d/convertd",
                  "convertd/etc/sysctl.d/50-convertd.conf", "convertd/usr/sbin/convertd", "convertd/usr/share/convertd/firewall",
                  "convertgw/etc/config/convertgw", "convertgw/etc/init.d/convertgw", "convertgw/usr/sbin/convertgw",
                  "convertize/etc/convertize.conf", "convertize/usr/bin/convertize", "libconvert/usr/lib/libconvert/libconvert.so"], "files of the packages")
    check(os.access(PLACE + "/to/convertd/etc/init.d/convertd", os.X_OK), "the script can't be executed")
    with open(FEED + "/Makefile", encoding="ascii") as file, open(os.path.join(SRCDIR, "configure.ac"), encoding="utf-8") as configure:
        version = re.search(r"^PKG_VERSION:=(\S+)$", file.read(), re.MULTILINE)[1]
        check("AC_INIT([libconvert], [%s]" % version in configure.read(), "PKG_VERSION is %s" % version)


if __name__ == "__main__":
    main()
