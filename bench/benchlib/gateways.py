# SPDX-License-Identifier: BSD-3-Clause
"""gateways.py - ways in which a router with two networks takes its LAN's connections to servers

Each way has a LAN of its own behind the lab's client, with one stock host (Way.host), so that all are measured in one lab, in turn.
The router masquerades what it routes. Its `roots` are the processes on the router; a proxy at the converter's place isn't among them.
"""
import os
import shutil

from convertlab import LabError, Skip, wait_until
from convertlab.gateways import NOT_BUILT, add_lan, is_built, masquerade, start_gateway

from . import machine
from .field import LOAD, SYSCTLS
from .proxies import SERVER_PORT, SERVER_PORT_MPTCP, THREADS, Direct, Microsocks, Proxy, Shadowsocks, convertd_options

FIRST_NETWORK = 20  # 10.20.0.0/24 is the first way's LAN
TPROXY_MARK, TPROXY_TABLE = 1, 300
MPTCPIZE = ("mptcpize", "run")
REDSOCKS = """\
base {
    log_debug = off; log_info = off; log = "file:/dev/null"; daemon = off; redirector = iptables;
    rlimit_nofile = 20000; redsocks_conn_max = 6000;
}
redsocks { local_ip = 0.0.0.0; local_port = %d; listenq = 4096; ip = %s; port = %d; type = socks5; }
"""
HEV = """\
main: {workers: %d}
socks5: {port: %d, address: %s}
tcp: {port: %d, address: '::'}
misc: {log-level: error}
"""
REDIRECT = """\
table ip %s {
 chain pre { type nat hook prerouting priority dstnat; iifname "%s" meta l4proto tcp redirect to :%d; }
}
"""
TPROXY = """\
table ip %s {
 chain pre { type filter hook prerouting priority mangle; iifname "%s" meta l4proto tcp meta mark set %d tproxy to :%d accept; }
}
"""


class Way(Proxy):
    """A way, with its own LAN. `nth`: its place among all; `wrapper`: words in front of the commands of both ends."""

    nth = 0
    wrapper = ()
    others = ()  # programs that it needs as well

    @classmethod
    def is_there(cls):
        return all(shutil.which(program) for program in (cls.program, *cls.others, *cls.wrapper[:1]) if program)

    def __init__(self, lab, mptcp=False, threads=THREADS):
        super().__init__(lab, mptcp, threads)
        self.device = "lan%d" % self.nth
        self._phone = add_lan(lab, self.device, FIRST_NETWORK + self.nth, "phone%d" % self.nth)
        for name, value in SYSCTLS.items():
            self._phone.sysctl(name, value)

    @property
    def host(self):
        return self._phone

    def arguments(self):
        return self.to(self.lab.server.addr4, SERVER_PORT)

    def _on_router(self, command, port):
        self.roots.append(self.lab.start_listening(self.lab.client, [*self.wrapper, *command], port).pid)

    def _rules(self, text):
        self.lab.client.run(["nft", "-f", "-"], input=text)

    def _redirect(self, port):
        self._rules(REDIRECT % (self.device, self.device, port))

    def _tproxy(self, port):
        self._rules(TPROXY % (self.device, self.device, TPROXY_MARK, port))


class Routing(Way):
    """The router forwards, and masquerades."""

    name = "plain routing"


class Convertgw(Way):
    """convertgw, with convertd."""

    name = "convertgw"
    nth = 1

    def version(self):
        return machine.version([self.lab.build.program("convertgw"), "--version"])

    def start(self):
        self.lab.convertd(convertd_options(self.lab.build, self.threads))
        process = start_gateway(self.lab, ("--lan", self.device, "--workers", str(self.threads)), wait=False, log_level="warning")
        self.roots = [process.pid]
        wait_until(lambda: "table inet convertgw\n" in self.lab.client.run(["nft", "list", "tables"]).stdout or _ended(process), 10,
                   "convertgw's rules")
        return self


def _ended(process):
    if process.poll() is not None:
        raise LabError("%s ended with %d:\n%s" % (process.title, process.returncode, process.log_text()))
    return False


class Redsocks(Way):
    """redsocks (REDIRECT), with microsocks."""

    name = "redsocks"
    program = package = "redsocks"
    others = (Microsocks.program,)
    nth = 2
    port, socks_port = 12345, 1080

    def _start_socks(self):
        if self.lab.converter.listening(self.socks_port):
            return
        with open(os.devnull, "wb") as null:  # it logs each connection, and can't be told not to
            socks = self.lab.converter.popen([*self.wrapper, Microsocks.program, "-p", self.socks_port], stdout=null, stderr=null)
        wait_until(lambda: self.lab.converter.listening(self.socks_port) or _ended(socks), 10, Microsocks.name)

    def start(self):
        self._start_socks()
        path = self._file(self.device + ".conf", REDSOCKS % (self.port, self.lab.converter.addr4, self.socks_port))
        self._on_router([self.program, "-c", path], self.port)
        self._redirect(self.port)
        return self


class RedsocksMptcp(Redsocks):
    """The same, both under mptcpize."""

    name = "redsocks, MPTCP"
    package = "redsocks mptcpize"
    nth = 3
    wrapper = MPTCPIZE
    port, socks_port = 12346, 1085


class SsRedir(Way):
    """ss-redir (TPROXY), with ss-server; they encrypt, and can't be told not to."""

    name = "ss-redir"
    program = "ss-redir"
    package = Shadowsocks.package
    others = (Shadowsocks.program,)
    nth = 4
    port, server_port = 12347, 8388

    def start(self):
        options = ["-n", 20000, "-t", 3600, *Shadowsocks.options]
        self.lab.start_listening(self.lab.converter, [*self.wrapper, "ss-server", "-s", "0.0.0.0", "-p", self.server_port, *options],
                                 self.server_port)
        self._on_router(["ss-redir", "-T", "-s", self.lab.converter.addr4, "-p", self.server_port, "-b", "0.0.0.0", "-l", self.port,
                         *options], self.port)
        self._tproxy(self.port)
        return self


class SsRedirMptcp(SsRedir):
    """The same, both under mptcpize: OpenMPTCProuter's way."""

    name = "ss-redir, MPTCP"
    package = Shadowsocks.package + " mptcpize"
    nth = 5
    wrapper = MPTCPIZE
    port, server_port = 12348, 8389


class Hev(Redsocks):
    """hev-socks5-tproxy (TPROXY), with the microsocks of redsocks."""

    name = program = "hev-socks5-tproxy"
    package = ""
    nth = 6
    port = 12349

    def start(self):
        self._start_socks()
        path = self._file("hev.yml", HEV % (self.threads, self.socks_port, self.lab.converter.addr4, self.port))
        self._on_router([self.program, path], self.port)
        self._tproxy(self.port)
        return self


WAYS = (Routing, Convertgw, Redsocks, RedsocksMptcp, SsRedir, SsRedirMptcp, Hev)


class PlainMptcp(Direct):
    """No gateway: a program of the router's own speaks Multipath TCP to a server in the converter's place."""

    name = "plain MPTCP"

    def __init__(self, lab):
        super().__init__(lab, mptcp=True)

    def start(self):
        self.lab.start_listening(self.lab.converter, [self.lab.build.program(LOAD), "serve", "--mptcp", SERVER_PORT_MPTCP],
                                 SERVER_PORT_MPTCP)
        return self

    def arguments(self):
        return self.to(self.lab.converter.addr4, SERVER_PORT_MPTCP)


def start_ways(lab, kinds):
    """Makes the lab's client a router, and starts these ways on it; returns them by name."""
    if not is_built(lab):
        raise Skip(NOT_BUILT)
    masquerade(lab)
    lab.client.ip("rule add fwmark %d lookup %d" % (TPROXY_MARK, TPROXY_TABLE), "route add local default dev lo table %d" % TPROXY_TABLE)
    # a masqueraded connection that is over keeps its port; thousands a second would use them up
    lab.client.sysctl("net.netfilter.nf_conntrack_tcp_timeout_time_wait", 1)
    ways = {kind.name: kind(lab) for kind in kinds}
    for way in ways.values():
        way.start()
        # so that neighbours are known, and the first connection shows the way's own beginning
        way.host.ping(lab.server.addr4)
    return ways
