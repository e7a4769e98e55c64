# SPDX-License-Identifier: BSD-3-Clause
"""proxies.py - convertd and its peers, each set up for speed: no log of connections, THREADS threads where it has the choice

Each runs on the lab's converter. `direct` stands for no proxy at all. A proxy that is told its target by the client knows SOCKS5
or Convert; the others are told beforehand.
"""
import os
import shutil
import socket

from convertlab import LabError, Skip, wait_until

from . import machine, processes

MPTCP = 262
SERVER_PORT = 6000        # plain TCP
SERVER_PORT_MPTCP = 6001
THREADS = int(os.environ.get("BENCH_THREADS", 1))  # of convertd, haproxy and nginx; the load takes two CPUs
CONNECTIONS = 9900        # of one proxy: it has two descriptors for each, of the usual 20,000


def convertd_options(build, threads=THREADS):
    """convertd's command line: as the peers, it is silent about single connections, and may connect to the lab's servers."""
    options, known = ["--log-level", "warning"], machine.output([build.program("convertd"), "--help"])
    for name, value in (("--allow-destination", "10.0.0.0/8"), ("--workers", str(threads)), ("--drain-timeout", "0")):
        if name in known:
            options += [name, value]
    return options


class Proxy:
    """A proxy. `mptcp`: clients speak Multipath TCP to it. `threads`: how many it has, where it can be told."""

    name = ""
    program = ""
    package = ""
    speaks_mptcp = True  # it can be given an MPTCP listener
    has_threads = False  # it can be told how many

    def __init__(self, lab, mptcp=False, threads=THREADS):
        self.lab = lab
        self.mptcp = mptcp
        self.threads = threads
        self.roots = []  # processes

    @property
    def host(self):
        """The host that the load runs on."""
        return self.lab.client

    @classmethod
    def is_there(cls):
        """Tells whether its program is installed."""
        return not cls.program or bool(shutil.which(cls.program))

    def version(self):
        """Its version."""
        return machine.package_version(shutil.which(self.program)) if self.program else ""

    def start(self):
        """Starts it; returns it."""

    def arguments(self):
        """The options of load that go through it to the server."""
        raise NotImplementedError

    def to(self, host, port):
        """The option for a connection to a port of a host."""
        del self
        return ["--to", "%s:%d" % (host, port)]

    @property
    def _target(self):
        return "%s:%d" % (self.lab.server.addr4, SERVER_PORT)

    def _run(self, command, port, **options):
        process = self.lab.start_listening(self.lab.converter, command, port, **options)
        self.roots.append(process.pid)

    def _file(self, name, text):
        path = os.path.join(self.lab.directory, name)
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        return path

    def _listening_socket(self, port):
        """An MPTCP listener for a program that takes over a descriptor."""
        listener = self.lab.converter.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("0.0.0.0", port))
        listener.listen(65535)
        listener.set_inheritable(True)
        return listener

    def _take_over(self, command, listener, text, **options):
        """Starts a program that has the listener; it has begun when it has printed, or listens for us, `text`."""
        process = self.lab.converter.popen(command, pass_fds=(listener.fileno(),), **options)
        listener.close()
        self.roots.append(process.pid)
        wait_until(lambda: text in process.log_text() or _fail(process), 10,
                   lambda: "%s:\n%s" % (process.title, process.log_text()))

    def stop(self):
        """Ends it."""
        for process in self.lab.converter.processes + self.lab.client.processes:
            if process.pid in self.roots:
                process.stop()
        self.roots = []

    def cpu_seconds(self):
        """CPU time used so far."""
        return processes.cpu_seconds(self.roots)

    def memory_kb(self):
        """User-space memory."""
        return processes.memory_kb(self.roots)


def _fail(process):
    if process.poll() is not None:
        raise LabError("%s ended with %d:\n%s" % (process.title, process.returncode, process.log_text()))
    return False


class Direct(Proxy):
    """The client connects to the server, by TCP or by MPTCP."""

    name = "direct"

    def arguments(self):
        return self.to(self.lab.server.addr4, SERVER_PORT_MPTCP if self.mptcp else SERVER_PORT)


class Convertd(Proxy):
    """convertd, with the request in the SYN, silent where the SYN is withheld, and the application's bytes once the server is
    confirmed, as under libconvert.so.
    """

    name = "convertd"
    has_threads = True
    withholds = False  # SYNs
    port = 1234
    more = ()          # options

    def version(self):
        return machine.version([self.lab.build.program("convertd"), "--version"])

    def start(self):
        process = self.lab.convertd([*convertd_options(self.lab.build, self.threads), *self.more], self.port)
        self.roots.append(process.pid)
        self._look()
        return self

    def _look(self):
        queues = self.lab.converter.run(["cat", "/proc/net/netfilter/nfnetlink_queue"], check=False)
        self.withholds = bool(queues.stdout.strip())

    def _via(self):
        return ["convert-silent"] if self.withholds else ["convert-syn"]

    def arguments(self):
        return self.to(self.lab.converter.addr4, self.port) + ["--server", self._target, "--via", *self._via()]


class ConvertdAgain(Convertd):
    """The convertd that was started before, asked in another way."""

    def version(self):
        return ""

    def start(self):
        self.roots = [process.pid for process in self.lab.converter.processes if process.title.startswith("convertd ")][:1]
        if not self.roots:
            raise LabError("%s: Convertd is to be started before it" % self.name)
        self._look()
        return self


class ConvertdResponse(ConvertdAgain):
    """It answers each request by a response, as RFC 8803 has it, which the client takes off the stream."""

    name = "convertd, response"

    def _via(self):
        return ["convert-syn"] + (["--withheld"] if self.withholds else [])


class ConvertdEarly(ConvertdAgain):
    """The application's request is in the SYN as well, as for applications that ask for Fast Open."""

    name = "convertd, early data"

    def arguments(self):
        return super().arguments() + ["--early"]


class ConvertdOff(Convertd):
    """A convertd of its own that withholds no SYN: each client waits for its response."""

    name = "convertd, hold-syn off"
    port = 1235
    more = ("--hold-syn", "off", "--listen", "0.0.0.0:%d" % port)

    def version(self):
        return ""

    def _look(self):
        """A queue would be the other convertd's."""


class Haproxy(Proxy):
    """haproxy, mode tcp."""

    name = "haproxy"
    program = package = "haproxy"
    port = 2001
    options = ""
    has_threads = True
    connections = CONNECTIONS

    def start(self):
        text = ("global\n  nbthread {threads}\n  maxconn {max}\n"
                "defaults\n  mode tcp\n  {options}\n  timeout connect 10s\n  timeout client 1h\n  timeout server 1h\n"
                "listen front\n  bind {bind} maxconn {max} backlog 65535\n  server back {target}\n")
        if self.mptcp:
            listener = self._listening_socket(self.port)
            text = text.format(threads=self.threads, max=self.connections, options=self.options, bind="fd@%d" % listener.fileno(), target=self._target)
            self._take_over(["haproxy", "-db", "-V", "-f", self._file(self.name + ".cfg", text)], listener, "polling")
        else:
            text = text.format(threads=self.threads, max=self.connections, options=self.options, bind="0.0.0.0:%d" % self.port, target=self._target)
            self._run(["haproxy", "-db", "-f", self._file(self.name + ".cfg", text)], self.port)
        return self

    def arguments(self):
        return self.to(self.lab.converter.addr4, self.port)


class HaproxySplice(Haproxy):
    """haproxy with splicing."""

    name = "haproxy-splice"
    port = 2011
    options = "option splice-auto"
    connections = 4000  # there are pipes, too


NGINX_MODULES = ("/usr/lib/nginx/modules/ngx_stream_module.so", "/usr/lib64/nginx/modules/ngx_stream_module.so",
                 "/var/lib/nginx/modules/ngx_stream_module.so")


class Nginx(Proxy):
    """nginx, stream module."""

    name = "nginx"
    program = "nginx"
    package = "libnginx-mod-stream"
    port = 2002
    has_threads = True

    @classmethod
    def is_there(cls):
        return bool(shutil.which(cls.program)) and any(map(os.path.exists, NGINX_MODULES))

    def start(self):
        module = [path for path in NGINX_MODULES if os.path.exists(path)][0]
        text = ("load_module %s;\nuser root;\nworker_processes %d;\nworker_rlimit_nofile 20000;\ndaemon off;\n"
                "pid %s/nginx.pid;\nerror_log stderr notice;\nevents { worker_connections 20000; }\n"
                "stream {\n  access_log off;\n  server {\n    listen 0.0.0.0:%d backlog=65535;\n    proxy_pass %s;\n"
                "    proxy_timeout 1h;\n  }\n}\n" % (module, self.threads, self.lab.directory, self.port, self._target))
        command = ["nginx", "-e", "stderr", "-c", self._file("nginx.conf", text)]
        if self.mptcp:
            listener = self._listening_socket(self.port)
            self._take_over(command, listener, "start worker process ", env={"NGINX": "%d;" % listener.fileno()})
        else:
            self._run(command, self.port)
        return self

    def arguments(self):
        return self.to(self.lab.converter.addr4, self.port)


class Microsocks(Proxy):
    """microsocks: a thread a connection."""

    name = program = package = "microsocks"
    port = 1080
    speaks_mptcp = False
    options = []
    wrapper = ()  # words in front of the command

    def start(self):
        # it logs each connection, and can't be told not to
        with open(os.devnull, "wb") as null:
            self._run_silent([*self.wrapper, "microsocks", "-p", self.port, *self.options], null)
        return self

    def _run_silent(self, command, null):
        process = self.lab.converter.popen(command, stdout=null, stderr=null)
        self.roots.append(process.pid)
        wait_until(lambda: self.lab.converter.listening(self.port) or _fail(process), 10, self.name)

    def arguments(self):
        return self.to(self.lab.converter.addr4, self.port) + ["--via", "socks5", "--server", self._target]


class MicrosocksPassword(Microsocks):
    """The same, which wants to know a name and a password."""

    name = "SOCKS5, password"
    port = 1090
    user = "somebody", "secret"
    options = ["-u", user[0], "-P", user[1]]

    def arguments(self):
        return super().arguments() + ["--user", ":".join(self.user)]


class Dante(Proxy):
    """dante: several processes."""

    name = "dante"
    program = "danted" if shutil.which("danted") else "sockd"  # as Debian calls it, and as others do
    package = "dante-server"
    port = 1081
    speaks_mptcp = False

    def start(self):
        text = ("logoutput: /dev/null\ninternal: 0.0.0.0 port = {port}\nexternal: {external}\nsocksmethod: none\n"
                "clientmethod: none\nuser.privileged: root\nuser.unprivileged: root\n"
                "client pass {{ from: 0.0.0.0/0 to: 0.0.0.0/0 }}\nsocks pass {{ from: 0.0.0.0/0 to: 0.0.0.0/0 }}\n")
        text = text.format(port=self.port, external=self.lab.converter.core4)
        self._run([self.program, "-f", self._file("danted.conf", text), "-p", self.lab.directory + "/danted.pid"], self.port)
        return self

    def arguments(self):
        return self.to(self.lab.converter.addr4, self.port) + ["--via", "socks5", "--server", self._target]


class Shadowsocks(Proxy):
    """ss-local on the client and ss-server on the converter; both count, since both are needed."""

    name = "shadowsocks"
    program = "ss-server"
    package = "shadowsocks-libev"
    port, local_port = 8388, 1082
    speaks_mptcp = False
    # without --no-delay, Nagle's algorithm makes each response wait for 40 ms
    options = ["-k", "benchmark", "-m", "aes-128-gcm", "--no-delay"]

    def start(self):
        self._run(["ss-server", "-s", "0.0.0.0", "-p", self.port, "-n", 20000, "-t", 3600, *self.options], self.port)
        process = self.lab.start_listening(self.lab.client, [
            "ss-local", "-s", self.lab.converter.addr4, "-p", self.port, "-b", "127.0.0.1", "-l", self.local_port,
            "-n", 20000, "-t", 3600, *self.options], self.local_port)
        self.roots.append(process.pid)
        return self

    def arguments(self):
        return self.to("127.0.0.1", self.local_port) + ["--via", "socks5", "--server", self._target]


class Socat(Proxy):
    """socat with a large buffer: a process a connection, but the best of all in bulk transfers."""

    name = "socat 256K"
    program = package = "socat"
    port = 2003

    def start(self):
        listen = "TCP4-LISTEN:%d,fork,reuseaddr,backlog=65535" % self.port
        if self.mptcp:
            # as TCP4-LISTEN, with the protocol of the socket said
            listen = "SOCKET-LISTEN:2:%d:x%04x00000000x0000000000000000,fork,reuseaddr,backlog=65535" % (MPTCP, self.port)
        self._run(["socat", "-b", 262144, listen, "TCP4:%s" % self._target], self.port)
        return self

    def arguments(self):
        return self.to(self.lab.converter.addr4, self.port)


ALL = (Direct, Convertd, ConvertdEarly, Haproxy, HaproxySplice, Nginx, Microsocks, Dante, Shadowsocks, Socat)


def available(bench, among=ALL, mptcp=False):
    """Those of `among` that are installed, and that can speak MPTCP where that is asked for; others are remarked upon."""
    found = []
    for proxy in among:
        if mptcp and not proxy.speaks_mptcp:
            continue
        if proxy.is_there():
            found.append(proxy)
        else:
            bench.remark("%s is not measured: it is missing%s" % (
                proxy.name, "; on Debian: apt-get install " + proxy.package if proxy.package else ""))
    if len(found) < 2:
        raise Skip("nothing to compare with")
    return found
