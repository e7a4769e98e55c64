# SPDX-License-Identifier: BSD-3-Clause
"""paths.py - "convertize paths --manage" on the lab's client, which has two networks as DHCP sets them up

Each network has an address and a default route, with different metrics. The lab's links are TUN devices or ends of veth pairs. The path
manager uses neither by default, so --device names them."""
import contextlib
import os
import re
import shutil
import socket
import tempfile

from .harness import equal
from .waiting import wait_until

LAB = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BULK = os.path.join(LAB, "apps", "bulk.py")
STANDINS = os.path.join(LAB, "standins", "networks")
OURS = "proto 88"
DEVICES = ("--device", "wifi,lte")


def ip(lab, *words):
    """The lines that an ip command prints on the client, without the blanks around them."""
    return [line.strip() for line in lab.client.run(["ip", *words]).stdout.splitlines()]


def _is_settled(lab):
    """Tells whether Linux has made the local route of each IPv6 address, which it does after the command that adds the address."""
    local = "\n".join(ip(lab, "-6", "route", "show", "table", "local"))
    return all("local %s dev" % line.split()[3].split("/")[0] in local for line in ip(lab, "-6", "-o", "address"))


def bare(lab):
    """Removes the lab's rules, tables and endpoints from its client, but not its addresses and default routes."""
    wait_until(lambda: _is_settled(lab), 10, "the local routes of all addresses")
    for family in ("-4", "-6"):
        for rule in ip(lab, family, "rule"):
            if " lookup 10" in rule:
                lab.client.run(["ip", family, "rule", "del", "priority", rule.split(":")[0]])
        for table in (101, 102):
            lab.client.run(["ip", family, "route", "flush", "table", str(table)], check=False)
    lab.client.ip("mptcp endpoint flush", "mptcp limits set subflows 0 add_addr_accepted 0")


def state(lab):
    """All that the path manager might have changed on the client."""
    # lifetimes change by themselves
    return [ip(lab, "-4", "rule"), ip(lab, "-6", "rule"), ip(lab, "-4", "route", "show", "table", "all"),
            [re.sub(r" expires \d+sec", "", line) for line in ip(lab, "-6", "route", "show", "table", "all")],
            ip(lab, "mptcp", "endpoint"), ip(lab, "mptcp", "limits")]


def endpoints(lab):
    """{address: (ID, flags and device)}."""
    found = {}
    for line in ip(lab, "mptcp", "endpoint"):
        address, _, number, rest = line.split(None, 3)
        found[address] = (int(number), rest)
    return found


def published(lab):
    """The devices that the service tells programs to avoid: [(the rule's priority, device)]."""
    return sorted(re.findall(r"^(880[4-7]):.* oif (\S+)", "\n".join(ip(lab, "rule")), re.MULTILINE))


@contextlib.contextmanager
def stand_in(lab, name, sockets=True):
    """A process of that name on the client, with a netlink socket like the real one's. NetworkManager also needs Nmcli."""
    text = ("import ctypes, os, socket, time\n"
            "ctypes.CDLL(None).prctl(15, b%r, 0, 0, 0)\n"
            "sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) if %r else None\n"
            "if sock: sock.bind((os.getpid(), 0))\n"
            "print('ready', flush=True)\n"
            "time.sleep(1000)\n") % (name, sockets)
    process = lab.client.popen(["python3", "-c", text], name=name)
    process.wait_log("ready")
    try:
        yield process
    finally:
        process.kill()
        process.wait()


class Nmcli:
    """The answers of nmcli; env puts its stand-in in front of PATH."""

    def __init__(self, lab):
        self._facts = os.path.join(lab.directory, "nm")
        os.makedirs(self._facts)
        self.env = {"PATH": STANDINS + ":" + os.environ["PATH"], "LAB_NM": self._facts}

    def says(self, device, flags, metered="unknown"):
        """flags: connection.mptcp-flags; "" as a NetworkManager before 1.40 answers."""
        with open(os.path.join(self._facts, device), "w", encoding="ascii") as file:
            file.write("%s\n%s\n" % (flags, metered))

    def first(self, commands):
        """Shell commands that it runs before it answers, such as "exit 8": NetworkManager isn't on D-Bus yet."""
        with open(self._facts + ".first", "w", encoding="ascii") as file:
            file.write(commands + "\n")


class PathManager:
    """convertize paths --manage, started as a service manager does; inside `with` it is ready."""

    def __init__(self, lab, *words, env=None, wrapper=()):
        self._lab = lab
        self._command = [*wrapper, lab.build.program("convertize"), "paths", "--manage", "--config", "none", *(words or DEVICES)]
        self._env = env or {}
        self.process = None
        self._directory = tempfile.mkdtemp(prefix="p-", dir="/run")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(os.path.join(self._directory, "notify"))
        self._socket.settimeout(30)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._socket.close()
        shutil.rmtree(self._directory)

    def hears(self, text):
        """Waits for a message to the service manager."""
        while text not in self._socket.recv(4096).decode():
            pass

    def start(self):
        """Starts it, or starts it again."""
        self.process = self._lab.client.popen(self._command, name="paths", env={
            "NOTIFY_SOCKET": os.path.join(self._directory, "notify"), **self._env})
        self.hears("READY=1")

    def stop(self):
        """Ends it as systemd does."""
        equal(self.process.stop(), 0, "the status: " + self.process.log_text())

    def said(self, text):
        """Waits until its log contains the text."""
        self.process.wait_log(text)

    def done(self):
        """Its changes so far, as the ip commands that it logs."""
        return [line.split("+ ", 1)[1] for line in self.process.log_text().splitlines() if "convertize: paths: + " in line]


def serve(lab):
    """Starts a converter, and the server of the transfers."""
    lab.convertd()
    lab.start_listening(lab.server, ["python3", BULK, "serve", "tcp", 6000], 6000)


def download(lab, size):
    """Starts a download through the converter, which fails if bytes are missing or wrong."""
    return lab.client.popen(["python3", BULK, "get", "tcp", lab.server.addr4, 6000, size], name="download",
                            env=lab.converted(CONVERT_CACHE="none"))


def subflow_ports(lab, address):
    """The local ports of the client's connections to the converter from an address."""
    lines = lab.client.run(["ss", "-Htn", "state", "established", "src", address, "dport", "=", ":1234"]).stdout.splitlines()
    return sorted(line.split()[2].rsplit(":", 1)[1] for line in lines)


def subflows(lab, address):
    """How many connections the client has to the converter from an address."""
    return len(subflow_ports(lab, address))


def connections_end(lab):
    """Waits for the last packets of the client's earlier connections."""
    wait_until(lambda: not lab.client.run(["ss", "-Htn", "state", "connected", "exclude", "time-wait"]).stdout, 20, "the end of connections")


def arrives(process):
    """Waits for the end of a transfer."""
    equal(process.wait(60), 0, "the transfer: " + process.log_text())


def carried(lab):
    """Bytes that each link has carried towards the client."""
    return {name: getattr(lab, name).stats()["b-to-a"]["out_bytes"] for name in ("wifi", "lte")}
