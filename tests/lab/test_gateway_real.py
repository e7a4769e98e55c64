#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_gateway_real.py - convertgw beside the real firewalld, ufw and dockerd, in whatever order they start, reload and stop"""
import contextlib
import os
import re
import shutil
import subprocess

from convertlab import check, equal, main, wait_until
from convertlab.gateways import PORT, add_lan, connect, gateway_lab, listening, masquerade, start_gateway
from convertlab.harness import Unsuitable, long
from convertlab.hosts import Host
from test_gateway_rules import CONVERTED, REFUSED, ROUTED, tellers, way

FORBIDDEN = 81  # the port that each firewall forbids to the LAN


def real(*programs):
    """Ends the test if a program is missing. We ask nobody to install it, since it may manage this machine's network."""
    for program in programs:
        if not shutil.which(program):
            raise Unsuitable("%s isn't here" % program)


def private(mounts, *words):
    """Returns the words that run a command with directories of its own mounted over the machine's."""
    lines = "".join("mount --bind '%s' '%s' && " % pair for pair in mounts)
    return ["unshare", "--mount", "sh", "-c", lines + 'exec "$@"', "sh", *words]


BUS = """<busconfig><type>system</type><listen>unix:path=%s</listen>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>
"""
INTERNAL = '<zone><interface name="lan"/></zone>'
EXTERNAL = """<zone><interface name="wifi"/><interface name="lte"/><masquerade/><rule family="ipv6"><masquerade/></rule></zone>"""
OUT = """<policy target="ACCEPT"><ingress-zone name="internal"/><egress-zone name="external"/>
<rule family="ipv4"><port port="%d" protocol="tcp"/><reject/></rule></policy>
""" % FORBIDDEN


class Firewalld:
    """The real firewalld on the gateway's host, with a message bus and a configuration of its own: lan is internal, the rest external."""

    def __init__(self, lab):
        self.host, self.process = lab.client, None
        self.config, bus = lab.directory + "/firewalld", lab.directory + "/bus"
        self.env = {"DBUS_SYSTEM_BUS_ADDRESS": "unix:path=" + bus}
        for name in ("zones", "services", "policies", "icmptypes", "helpers", "ipsets"):
            os.makedirs(os.path.join(self.config, name))
        shutil.copy("/etc/firewalld/firewalld.conf", self.config)
        for path, text in ((bus + ".conf", BUS % bus), (self.config + "/zones/internal.xml", INTERNAL),
                           (self.config + "/zones/external.xml", EXTERNAL), (self.config + "/policies/out.xml", OUT)):
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
        self.host.popen(["dbus-daemon", "--config-file", bus + ".conf", "--nofork", "--nopidfile"])
        wait_until(lambda: os.path.exists(bus), 10, "the message bus")

    def command(self, *words, status=True):
        """Runs firewall-cmd."""
        return self.host.run(["/usr/bin/python3", "/usr/bin/firewall-cmd", *words], env=self.env, check=status).stdout.strip()

    def start(self):
        """Starts it, and waits until its rules are there."""
        os.makedirs("/run/firewalld", exist_ok=True)
        self.process = self.host.popen(["/usr/bin/python3", "/usr/sbin/firewalld", "--nofork", "--nopid", "--system-config", self.config],
                                       env=self.env, name="firewalld")
        wait_until(lambda: self.command("--state", status=False) == "running", 60, "firewalld")


def routes(lab, phone):
    """The ways of the LAN's connections, the host's, and a forbidden one."""
    return [way(lab, phone), way(lab, phone, lab.server.addr6), way(lab, lab.client), way(lab, phone, port=FORBIDDEN)]


@contextlib.contextmanager
def scene(*programs):
    """Yields (lab, phone) with a converter and its servers."""
    real(*programs)
    with gateway_lab() as lab:
        lab.convertd()
        tellers(lab, PORT, FORBIDDEN)
        phone = add_lan(lab)
        masquerade(lab)
        yield lab, phone


class Connections:
    """Connections that stay open while firewalls come and go."""

    def __init__(self, lab, hosts, listener):
        self._lab, self._hosts, self._listener, self._pairs = lab, hosts, listener, []

    def more(self):
        """Opens one from each host."""
        for host in self._hosts:
            error, client = connect(host, self._lab.server.addr4, 90)
            equal(error, 0, "errno of connect()")
            self._pairs.append((client, self._listener.accept()[0]))

    def look(self):
        """Checks that a byte passes over each, in both directions."""
        for client, server in self._pairs:
            client.sendall(b"x")
            server.settimeout(10)
            equal(server.recv(1) + (server.sendall(b"y") or client.recv(1)), b"xy", "bytes of an open connection")


FORBIDS, ALLOWS = [CONVERTED] * 3 + [REFUSED + ": ECONNREFUSED"], [CONVERTED] * 4


@long
def test_firewalld():
    """firewalld starts before and after the gateway, reloads and stops: only connections that it forbids aren't converted."""
    with scene("firewalld", "dbus-daemon") as (lab, phone), listening(lab.server, lab.server.addr4, 90) as listener:
        firewalld, open_ones = Firewalld(lab), Connections(lab, (phone, lab.client), listener)
        firewalld.start()
        equal(routes(lab, phone), [ROUTED] * 3 + [REFUSED + ": ECONNREFUSED"], "firewalld alone")
        gateway = start_gateway(lab, args=("--lan", "lan", "--host"))
        equal(routes(lab, phone), FORBIDS, "then the gateway")
        for words in ("--reload", "--complete-reload"):
            open_ones.more()
            firewalld.command(words)
            equal(routes(lab, phone), FORBIDS, words)
            open_ones.look()
        firewalld.process.stop(timeout=30)
        equal(routes(lab, phone), ALLOWS, "after its stop")
        firewalld.start()
        equal(routes(lab, phone), FORBIDS, "started after the gateway")
        open_ones.look()
        gateway.kill()
        gateway.wait()
        equal(routes(lab, phone), [ROUTED] * 3 + [REFUSED + ": ECONNREFUSED"], "after the gateway's kill")


LOAD = """import errno, socket, sys, threading
failed, threads, stop = [], [], threading.Event()
def one(address):
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as s:
        s.settimeout(30)
        try:
            s.connect((address, int(sys.argv[1]))); s.recv(1)
        except OSError as error:
            failed.append(str(error))
threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
print("begun", flush=True)
while not stop.wait(0.01):
    threads.append(threading.Thread(target=one, args=(sys.argv[2 + len(threads) % 2],)))
    threads[-1].start()
for thread in threads:
    thread.join()
print(len(threads), failed)
"""


@contextlib.contextmanager
def load(lab, *hosts):
    """Makes a hundred connections a second meanwhile, none of which may fail."""
    processes = [host.popen(["python3", "-c", LOAD, PORT, lab.server.addr4, lab.server.addr6], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            text=True) for host in hosts]
    for process in processes:
        process.stdout.readline()
    yield
    for process in processes:
        said = process.communicate("")[0]
        check(re.match(r"[1-9]\d* \[\]\n", said), "connections, and why they failed: " + said)


@long
def test_ufw():
    """ufw is enabled before and after the gateway, reloaded and disabled under load: no connection fails."""
    with scene("ufw", "iptables") as (lab, phone), listening(lab.server, lab.server.addr4, 90) as listener:
        mounts = [(lab.directory + path, path) for path in ("/etc/ufw", "/etc/default")]
        for own, path in mounts:
            shutil.copytree(path, own)

        def ufw(*words):
            lab.client.run(private(mounts, "/usr/bin/python3", "/usr/sbin/ufw", *words))
        ufw("route", "reject", "in", "on", "lan", "to", "any", "port", str(FORBIDDEN), "proto", "tcp")
        ufw("route", "allow", "in", "on", "lan")
        ufw("--force", "enable")
        start_gateway(lab, args=("--lan", "lan", "--host"))
        open_ones = Connections(lab, (phone, lab.client), listener)
        for words, ways in ((("reload",), FORBIDS), (("disable",), ALLOWS), (("--force", "enable"), FORBIDS)):
            open_ones.more()
            with load(lab, phone, lab.client):
                ufw(*words)
            equal(routes(lab, phone), ways, "after ufw %s" % " ".join(words))
            open_ones.look()


class Container(Host):
    """A running container, as a host of the lab."""

    def __init__(self, lab, docker, name, *words):  # pylint: disable=super-init-not-called
        docker("run", "-d", "--name", name, *words, "lab", "/busybox", "sleep", "1000")
        pid, self.address = docker("inspect", "-f", "{{.State.Pid}} {{.NetworkSettings.IPAddress}}", name).split()
        self.name, self.processes, self._directory, self._files = name, [], lab.directory, []
        self._netns = os.open("/proc/%s/ns/net" % pid, os.O_RDONLY | os.O_CLOEXEC)


@long
def test_dockerd():
    """dockerd starts before and after the gateway: containers are converted, published ports and other containers stay as they are."""
    with scene("dockerd", "docker", "busybox") as (lab, phone):
        if "statically" not in subprocess.run(["file", "-L", shutil.which("busybox")], stdout=subprocess.PIPE, text=True, check=False).stdout:
            raise Unsuitable("busybox isn't static, so that there is no image for a container")
        directory = lab.directory + "/docker"
        os.makedirs(directory + "/image")
        shutil.copy(shutil.which("busybox"), directory + "/image/busybox")
        lab.client.run(["tar", "-C", directory + "/image", "-cf", directory + "/image.tar", "."])
        env = {"DOCKER_HOST": "unix:///run/docker.sock", "DOCKER_CONFIG": directory}

        def docker(*words, status=True):
            return lab.client.run(["docker", *words], env=env, check=status).stdout.strip()

        def start():
            process = lab.client.popen(["unshare", "--mount", "sh", "-c", "mount -t sysfs none /sys && mount -t cgroup2 none /sys/fs/cgroup && "
                                        "exec dockerd --data-root %s/data --exec-root %s/run --pidfile %s/pid --storage-driver vfs "
                                        "--exec-opt native.cgroupdriver=cgroupfs --cgroup-parent convertlab -H unix:///run/docker.sock"
                                        % (directory, directory, directory)], name="dockerd")
            wait_until(lambda: process.poll() is not None or docker("ps", status=False).startswith("CONTAINER"), 60, "dockerd")
            if process.poll() is not None:
                raise Unsuitable("dockerd doesn't start here: " + process.log_text()[-500:])
            return process

        def look(prefix, wanted):
            one, two = Container(lab, docker, prefix + "one"), Container(lab, docker, prefix + "two", "-p", "8000:%d" % PORT)
            tellers(lab, PORT, host=two)
            equal([way(lab, one), way(lab, lab.client), way(lab, phone)], wanted, prefix + "a container, the host, and the LAN")
            for host, address, port, seen in ((one, two.address, PORT, one.address), (lab.converter, lab.client.wifi4, 8000, lab.converter.wifi4),
                                              (phone, lab.client.wifi4, 8000, phone.lan4)):
                with host.socket() as sock:
                    sock.settimeout(10)
                    sock.connect((address, port))
                    equal(sock.recv(100).decode(), seen, "%sthe client of a container, from %s" % (prefix, host.name))
            docker("rm", "-f", prefix + "one", prefix + "two")
        dockerd = start()
        docker("import", directory + "/image.tar", "lab")
        lab.client.run(["iptables", "-P", "FORWARD", "ACCEPT"])  # Docker's is DROP, which the LAN would notice
        look("alone-", [ROUTED] * 3)
        gateway = start_gateway(lab, args=("--lan", "lan", "--lan", "docker0", "--host"))
        look("gateway-", [CONVERTED] * 3)
        dockerd.stop(timeout=30)
        dockerd = start()
        look("docker-again-", [CONVERTED] * 3)
        gateway.kill()
        gateway.wait()
        look("killed-", [ROUTED] * 3)
        dockerd.stop(timeout=30)


if __name__ == "__main__":
    main()
