# SPDX-License-Identifier: BSD-3-Clause
"""topology.py - the lab: three hosts, their links, addresses and routes

               wifi  10.1.0.0/24 fd01::/64
       client ============================ converter ---------------------- server
         .2    lte   10.2.0.0/24 fd02::/64    .1      core 10.3.0.0/24 fd03::/64  .2
                                          service address:                 service address:
                                          10.9.0.1 fd09::1                 10.8.0.1 fd08::1

The converter forwards, so the client also reaches the server directly, over wifi by default. An application that binds to the
client's lte address uses lte. All hosts have IPv4 and IPv6. Behind the server are addresses that fail in several ways (Addresses).
"""
import collections
import dataclasses
import os
import shutil
import signal
import tempfile
from typing import Union

from . import faults
from .build import SRCDIR, Build
from .capture import Capture
from .hosts import IFF_MULTICAST, Host
from .links import Cable, Link, RunningLink, Switch, Veth
from .names import program as names_program
from .servers import program as server_program
from .waiting import LabError, wait_until

CONVERT_PORT = 1234  # the default; RFC 8803 Section 10.1 assigns none

# The lab's addresses are private, so convertd's defaults refuse them as destinations. All clients of the lab share one address.
# When convertd ends, it ends all sessions at once.
CONVERTD_OPEN = ("--allow-client", "::/0", "--allow-destination", "::/0", "--allow-destination", "10.0.0.0/8",
                 "--allow-destination", "fd00::/8", "--max-connections-per-client", "0", "--max-pending", "0",
                 "--max-pending-per-client", "0", "--max-errors", "0", "--max-errors-per-client", "0",
                 "--drain-timeout", "0", "--log-rate", "0")

# Logs of labs that failed; the harness prints and empties this list.
failure_reports = []


@dataclasses.dataclass(frozen=True)
class Addresses:
    """Destinations that can't be reached. The errors are those of connect() on the converter and, directly, on the client."""

    unreachable4: str = "10.8.0.66"  # ICMP host unreachable from the server: EHOSTUNREACH
    unreachable6: str = "fd08::66"   # ICMPv6 no route to destination: ENETUNREACH
    prohibited4: str = "10.8.0.67"   # ICMP communication administratively prohibited: EHOSTUNREACH
    prohibited6: str = "fd08::67"    # ICMPv6 the same: EACCES
    blackhole4: str = "10.8.0.68"    # swallows everything: ETIMEDOUT
    blackhole6: str = "fd08::68"
    noroute4: str = "10.7.0.1"       # the converter has no route: ENETUNREACH there; ICMP says it to the client
    noroute6: str = "fd07::1"
    refused_port: int = 9            # nothing listens there, on any host: ECONNREFUSED


@dataclasses.dataclass(frozen=True)
class _Access:
    """An access link of the client."""

    name: str
    number: int

    @property
    def metric(self):
        return 100 * self.number

    @property
    def table(self):
        return 100 + self.number

    def address4(self, host):
        return "10.%d.0.%d" % (self.number, host)

    def address6(self, host):
        return "fd0%d::%d" % (self.number, host)


ACCESS = {"wifi": _Access("wifi", 1), "lte": _Access("lte", 2)}
CORE = _Access("core", 3)


class Lab:
    """The lab, running inside `with`. Hosts are client, converter and server; links are wifi, lte and core.

    wifi, lte: a Link or a Veth; lte may be None for a client with one link.
    core: a Link or a Veth; None is a Veth. That is faster than any network: the answer to a SYN arrives while connect() still holds the
        socket, and Linux then puts an ICMPv6 error off until it retransmits the SYN.
    congestion: the congestion control of all hosts; None: the kernel's default.
    converter_fastopen: net.ipv4.tcp_fastopen of the converter; the kernel's own default is 1, which refuses data in SYNs.
    """

    def __init__(self, wifi=Link(delay_ms=10, rate_mbit=50, queue=200), lte=Link(delay_ms=25, rate_mbit=30, queue=200),
                 core: Union[Link, Veth, None] = Link(), congestion=None, converter_fastopen=3):
        self.build = Build()
        self.addresses = Addresses()
        self.directory = None
        self.client = self.converter = self.server = None
        self.wifi = self.lte = self.core = None
        self._options = {"wifi": wifi, "lte": lte, "core": core or Veth()}
        self._congestion = congestion
        self._converter_fastopen = converter_fastopen
        self._lines = collections.defaultdict(list)  # commands of ip(8) for each host, which one process runs
        self._closers = []
        self.every_host = []

    def __enter__(self):
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind, error, trace):
        if error:
            failure_reports.append(self.log_tails() + self._crashes())
        self.close()

    # --- making it ------------------------------------------------------------

    def _start(self):
        self.directory = tempfile.mkdtemp(prefix="lab-", dir="/run/convertlab")
        self._closers.append(self._close_directory)
        for name in ("client", "converter", "server"):
            setattr(self, name, self.add_host(name))
        for access in [access for access in ACCESS.values() if self._options[access.name]]:
            self._join(access, self.client, self.converter)
        self._join(CORE, self.converter, self.server)
        self._client_setup()
        self._converter_setup()
        self._server_setup()

    def add_host(self, name):
        """One more host, which ends with the lab; its links and addresses are the caller's."""
        host = Host(name, self.directory)
        self._closers.append(host.close)
        self.every_host.append(host)
        self._defaults(host)
        return host

    def _defaults(self, host):
        # keeps router solicitations and multicast reports out of captures and counters
        host.sysctl("net.ipv6.conf.default.addr_gen_mode", 1)
        if self._congestion:
            host.sysctl("net.ipv4.tcp_congestion_control", self._congestion)

    def _join(self, access, side_a, side_b):
        """Makes the link between two hosts, with host number 1 on the converter's side."""
        options = self._options[access.name]
        if isinstance(options, Link):
            link = RunningLink(self.build.program("linkem"), options, access.name, side_a, side_b, self.directory)
            for host in (side_a, side_b):
                # at once, before the host becomes a router: routers send multicast reports
                host.set_flags(access.name, off=IFF_MULTICAST)
                # the device's queue while linkem waits for a CPU
                self._lines[host].append("link set dev %s txqueuelen 2000" % access.name)
        elif options.switched:
            link = Switch(options, access.name, side_a, side_b, self.add_host("switch-" + access.name))
        else:
            link = Cable(options, access.name, side_a, side_b)
        self._closers.append(link.close)
        setattr(self, access.name, link)
        for host in (side_a, side_b):
            number = 1 if host is self.converter else 2
            setattr(host, access.name + "4", access.address4(number))
            setattr(host, access.name + "6", access.address6(number))
            self._lines[host] += ["addr add %s/24 dev %s" % (access.address4(number), access.name),
                                  "addr add %s/64 dev %s nodad" % (access.address6(number), access.name)]

    def _client_setup(self):
        """Routes by source address, as a host with two providers has them, and an MPTCP endpoint for each family."""
        lines, rules6 = self._lines[self.client], []
        present = [access for access in ACCESS.values() if self._options[access.name]]
        for access in present:
            for address, rules in ((access.address4, lines), (access.address6, rules6)):
                via = "default via %s dev %s" % (address(1), access.name)
                lines += ["route add %s metric %d" % (via, access.metric),
                          "route add %s table %d" % (via, access.table),
                          "mptcp endpoint add %s dev %s subflow" % (address(2), access.name)]
                rules.append("rule add from %s table %d" % (address(2), access.table))
        # with one network the client keeps Linux's default, which accepts no announced address
        lines.append("mptcp limits set subflows %d add_addr_accepted %d" % (len(present), len(present) if len(present) > 1 else 0))
        self.client.ip(*lines)
        # one batch can't have rules of both families: ip(8) reads the family only from its command line
        if rules6:
            self.client.run(["ip", "-6", "-batch", "-"], input="".join(line + "\n" for line in rules6))

    def _service(self, host, number):
        host.addr4, host.addr6 = "10.%d.0.1" % number, "fd0%d::1" % number
        self._lines[host] += ["addr add %s/32 dev lo" % host.addr4, "addr add %s/128 dev lo nodad" % host.addr6]
        host.sysctl("net.ipv4.ip_forward", 1)
        host.sysctl("net.ipv6.conf.all.forwarding", 1)
        # the host answers every error, not one a second
        host.sysctl("net.ipv4.icmp_ratelimit", 0)
        host.sysctl("net.ipv6.icmp.ratelimit", 0)

    def _converter_setup(self):
        self._service(self.converter, 9)
        self._converter_sysctls()
        self.converter.sysctl("net.ipv4.tcp_fastopen", self._converter_fastopen)
        self.converter.ip(*self._lines[self.converter], "route add 10.8.0.0/24 via %s" % CORE.address4(2),
                          "route add fd08::/64 via %s" % CORE.address6(2))

    def _converter_sysctls(self):
        """Applies convertd's file for /usr/lib/sysctl.d, except settings that don't exist here.

        Some kernels lack some of them, and ordinary users' namespaces have no net.core.somaxconn.
        """
        with open(os.path.join(SRCDIR, "contrib/sysctl.d/50-convertd.conf"), encoding="ascii") as file:
            for line in file:
                name, equals, value = line.partition(" = ")
                name = name.lstrip("-")
                if equals and name[0] != "#" and self.converter.has_sysctl(name):
                    self.converter.sysctl(name, value.strip())

    def _server_setup(self):
        self._service(self.server, 8)
        failing = self.addresses
        self.server.ip(*self._lines[self.server], "route add default via %s" % CORE.address4(1), "route add default via %s" % CORE.address6(1),
                       "route add unreachable %s" % failing.unreachable4,
                       "route add unreachable %s" % failing.unreachable6,
                       "route add prohibit %s" % failing.prohibited4, "route add prohibit %s" % failing.prohibited6,
                       "route add blackhole %s" % failing.blackhole4, "route add blackhole %s" % failing.blackhole6)

    # --- what runs in it --------------------------------------------------------

    @property
    def hosts(self):
        """The hosts by name."""
        return {host.name: host for host in (self.client, self.converter, self.server)}

    def start_listening(self, host, cmd, port, env=None, name=None, timeout=10):
        """Starts cmd in a host and returns its Process once something listens on the port."""
        if host.listening(port):
            raise LabError("on %s something listens on port %d already" % (host.name, port))
        process = host.popen(cmd, env=env, name=name)

        def ready():
            if process.poll() is not None:
                raise LabError("%s ended with %d before it listened:\n%s"
                               % (process.title, process.returncode, process.log_text()))
            return host.listening(port)
        wait_until(ready, timeout, lambda: "%s to listen on port %d:\n%s" % (process.title, port, process.log_text()))
        return process

    def convertd(self, args=(), port=CONVERT_PORT, env=None, wrapper=(), timeout=10, defaults=CONVERTD_OPEN):
        """Starts convertd with args on the converter; returns its Process once it listens on the port.

        wrapper: words in front of the command, such as ["strace", "-f", "-o", file].
        defaults: options that let everybody reach everything in the lab, without limits; () for convertd's own defaults.
        """
        return self.start_listening(self.converter, [*wrapper, self.build.program("convertd"), *defaults, *args], port,
                                    env=env, name="convertd", timeout=timeout)

    def shim_env(self, **variables):
        """The environment of an application under the shim, for env= of run() and popen()."""
        return self.build.shim_env(**variables)

    def converted(self, **variables):
        """shim_env() with the lab's converter, both of its addresses, and a log that shim_log() reads."""
        variables.setdefault("CONVERT_ADDR", "%s,%s" % (self.converter.addr4, self.converter.addr6))
        variables.setdefault("CONVERT_LOG", self._shim_log)
        return self.shim_env(**variables)

    def remembering(self, name="runtime", **variables):
        """converted() of programs that share what they learn, in a directory of this name, which starts empty in each lab."""
        directory = os.path.join(self.directory, name)
        os.makedirs(directory, mode=0o700, exist_ok=True)
        return self.converted(XDG_RUNTIME_DIR=directory, **variables)

    @property
    def _shim_log(self):
        return os.path.join(self.directory, "shim.log")

    def shim_log(self):
        """What applications under converted() have logged."""
        if not os.path.exists(self._shim_log):
            return ""
        with open(self._shim_log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def serve(self, kind, port, host=None):
        """Starts one of the small servers of servers.py (plain TCP) on a host, by default the server."""
        return self.start_listening(host or self.server, server_program(kind, port), port, name=kind)

    def http(self, port=80, host=None):
        """GET /bytes/N answers N deterministic bytes; PUT and POST answer what they got: "bytes=N sha256=…"."""
        return self.serve("http", port, host)

    def greeter(self, port=25, host=None):
        """Speaks first: "220 lab ready", then answers each line by "250 " and the line."""
        return self.serve("greeter", port, host)

    def resetter(self, port=7777, host=None):
        """Accepts, then resets."""
        return self.serve("resetter", port, host)

    def echo(self, port=7, host=None):
        """Sends back what comes until the peer's FIN, then sends its own; logs "bytes=N" for each connection."""
        return self.serve("echo", port, host)

    def returner(self, port=8, host=None):
        """Sends back what has come, but only after the peer's FIN."""
        return self.serve("returner", port, host)

    def chorus(self, port=1900, host=None):
        """Sends each byte from 0x80 to 0xff once, then its FIN."""
        return self.serve("chorus", port, host)

    def name_server(self, *records, address=None, options=()):
        """Starts names.py on the converter, at its IPv4 address or another of its own; returns its Process."""
        address = address or self.converter.addr4
        process = self.converter.popen(names_program(*options, address, *records), name="names-" + address)
        # several name servers listen on the same port, so only the log shows that this one is ready
        process.wait_log("ready")
        return process

    def names(self, *records, options=(), resolv_conf="", hosts="", sources="files dns"):
        """Starts a name server with these records, and makes it the client's; returns its Process.

        records: such as "near.example A 10.9.0.1"; options: those of names.py; resolv_conf, hosts: more lines for
        these files; sources: for hosts in nsswitch.conf. For what is started on the client from now on.
        """
        process = self.name_server(*records, options=options)
        self.client.file("/etc/resolv.conf", "nameserver %s\n%s\n" % (self.converter.addr4, resolv_conf))
        self.client.file("/etc/hosts", "127.0.0.1 localhost\n" + hosts)
        if os.path.exists("/etc/nsswitch.conf"):
            self.client.file("/etc/nsswitch.conf", "hosts: %s\n" % sources)
        return process

    def capture(self, host, dev, filter=""):  # pylint: disable=redefined-builtin
        """A context in which tcpdump records a device of a host; see capture.py."""
        link = self._options.get(dev)
        # on other devices TCP hands over packets larger than the MTU
        return Capture(host, dev, filter, self.directory, link.mtu + 64 if isinstance(link, Link) else 65600)

    # --- the end ------------------------------------------------------------------

    def log_tails(self, lines=15):
        """The last lines of every log, for a failed test."""
        found = []
        for name in sorted(os.listdir(self.directory)) if self.directory else ():
            if not name.endswith(".log"):
                continue
            with open(os.path.join(self.directory, name), encoding="utf-8", errors="replace") as file:
                tail = file.read().splitlines()[-lines:]
            if tail:
                found.append("--- %s\n%s" % (name, "\n".join(tail)))
        return "\n".join(found)

    def _crashes(self):
        """A line for each process of the lab that a fault has ended, as faults.report_in() finds them; and the sanitizers' reports."""
        found = ["%s: core dumped (status %d)" % (process.title, process.poll()) for host in self.every_host for process in host.processes
                 if faults.is_crash(process.poll())]
        for name in sorted(os.listdir(self.directory)) if self.directory else ():
            if name.endswith(".log"):
                with open(os.path.join(self.directory, name), encoding="utf-8", errors="replace") as file:
                    found.append(faults.report_in(file.read()))
        return "".join("\n" + line for line in found if line)

    def _close_directory(self):
        keep = os.environ.get("CONVERT_LAB_KEEP")
        if keep:
            shutil.copytree(self.directory, os.path.join(keep, os.path.basename(self.directory)),
                            ignore=lambda path, names: [name for name in names if name.endswith(".control")])
        shutil.rmtree(self.directory)

    def close(self):
        """Ends the lab; what was made last is removed first."""
        # a second Ctrl-C would leave namespaces behind, and a later lab in this sandbox would fail
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            while self._closers:
                self._closers.pop()()
        finally:
            signal.signal(signal.SIGINT, handler)
