# SPDX-License-Identifier: BSD-3-Clause
"""hosts.py - a host is a network namespace: processes, sysctls and sockets in it"""
import contextlib
import ctypes
import fcntl
import os
import signal
import socket
import struct
import subprocess

from .waiting import LabError, patience, wait_until

CLONE_NEWNET = 0x40000000
MS_BIND, MNT_DETACH = 0x1000, 2
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP, IFF_MULTICAST = 0x8913, 0x8914, 1, 0x1000
TCP_LISTEN = 10
NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY = 4, 20
NLM_F_REQUEST, NLM_F_DUMP, NLMSG_ERROR, NLMSG_DONE = 1, 0x300, 2, 3

_libc = ctypes.CDLL(None, use_errno=True)


def _system(name, *arguments):
    """Calls a function of the C library that returns 0, or -1 and errno."""
    if getattr(_libc, name)(*arguments) != 0:
        raise OSError(ctypes.get_errno(), "%s: %s" % (name, os.strerror(ctypes.get_errno())))


@contextlib.contextmanager
def _back_afterwards():
    """Returns the calling thread to its own network namespace at the end of this context."""
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield
    finally:
        _system("setns", own, CLONE_NEWNET)
        os.close(own)


def _make_namespace(path):
    """Makes a network namespace with this name, as ip-netns(8) does."""
    with open(path, "wb"):
        pass
    with _back_afterwards():
        _system("unshare", CLONE_NEWNET)
        _system("mount", b"/proc/thread-self/ns/net", path.encode(), None, MS_BIND, None)


def _remove_namespace(path):
    """Removes its name; the namespace ends with its last process, socket or descriptor."""
    _system("umount2", path.encode(), MNT_DETACH)
    os.unlink(path)


def is_alive(number):
    """Tells whether there is a process with this ID that isn't a zombie."""
    try:
        with open("/proc/%d/stat" % number, encoding="utf-8", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class CommandError(LabError):
    """A command failed or took too long. `result` is its CompletedProcess, None after a time-out."""

    def __init__(self, text, result=None):
        super().__init__(text)
        self.result = result


class Process(subprocess.Popen):
    """A process in a host. What it prints goes to the file `log`, unless popen() was told otherwise."""

    log = None
    title = ""

    def log_text(self):
        """What it has printed so far."""
        if not self.log:
            return ""
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def wait_log(self, text, timeout=10):
        """Waits until the process has printed `text`; an early end is an error."""
        def printed():
            ended = self.poll() is not None  # before the log is read, since the process may print and end in between
            if text in self.log_text():
                return True
            if ended:
                raise LabError("%s ended with %d before printing \"%s\":\n%s"
                               % (self.title, self.returncode, text, self.log_text()))
            return False
        wait_until(printed, timeout, "\"%s\" from %s" % (text, self.title))

    def wait(self, timeout=None):
        """Does as Popen.wait() with patience(timeout)."""
        return super().wait(patience(timeout))

    def children(self):
        """Returns the IDs of its children, without their children."""
        try:
            with open("/proc/%d/task/%d/children" % (self.pid, self.pid), encoding="ascii") as file:
                return [int(number) for number in file.read().split()]
        except OSError:
            return []

    @property
    def serving(self):
        """Returns the ID of the process of convertd that serves clients: its child convertd-serve, or itself without one."""
        for number in self.children():
            with open("/proc/%d/comm" % number, encoding="ascii") as file:
                if file.read() == "convertd-serve\n":
                    return number
        return self.pid

    def cpu_seconds(self):
        """User and system time of the process and its running children so far, without children that have ended."""
        used = 0
        for number in [self.pid, *self.children()]:
            with open("/proc/%d/stat" % number, encoding="utf-8") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            used += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return used

    def stop(self, number=signal.SIGTERM, timeout=10):
        """Sends a signal to the process, waits for its end and returns its status (as in Popen.returncode)."""
        if self.poll() is None:
            self.send_signal(number)
            try:
                self.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
                self.wait()
                raise LabError("%s: no end within %gs of %s" % (self.title, patience(timeout), signal.Signals(number).name))
        return self.returncode


class Host:
    """One host. Its addresses are attributes, such as client.wifi4 or server.addr6; see topology.py for which."""

    def __init__(self, name, directory):
        self.name = name
        self.path = "/run/netns/" + name
        self.processes = []
        self._directory = directory
        self._files = []
        _make_namespace(self.path)
        self._netns = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        self.set_flags("lo", on=IFF_UP)

    # --- the inside ---------------------------------------------------------

    @contextlib.contextmanager
    def entered(self):
        """Within this context the calling thread is in the host: sockets that it makes belong there for good."""
        with _back_afterwards():
            _system("setns", self._netns, CLONE_NEWNET)
            yield self

    def set_flags(self, device, on=0, off=0):
        """Sets and clears flags of a device, as netdevice(7) has them; ip-link(8) would be one more process."""
        with self.socket(kind=socket.SOCK_DGRAM) as sock:
            flags, = struct.unpack_from("16xH", fcntl.ioctl(sock, SIOCGIFFLAGS, struct.pack("16sH14x", device.encode(), 0)))
            fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sH14x", device.encode(), (flags | on) & ~off))

    def socket(self, family=socket.AF_INET, kind=socket.SOCK_STREAM, protocol=0):
        """A socket of this host."""
        with self.entered():
            return socket.socket(family, kind, protocol)

    def sysctl(self, name, value=None):
        """Reads net.… as a string, or sets it."""
        path = "/proc/sys/" + name.replace(".", "/")
        with self.entered():
            if value is None:
                with open(path, encoding="ascii") as file:
                    return file.read().strip()
            with open(path, "w", encoding="ascii") as file:
                file.write(str(value))
        return None

    def has_sysctl(self, name):
        """Tells whether this kernel has that setting."""
        with self.entered():
            return os.path.exists("/proc/sys/" + name.replace(".", "/"))

    def _listeners(self, port):
        """The lengths of the accept queues of the sockets, MPTCP's included, that listen on this TCP port.

        We ask sock_diag(7): for /proc/net/tcp the kernel walks through its table of all connections, which takes a millisecond.
        """
        found = []
        for family in (socket.AF_INET, socket.AF_INET6):
            request = struct.pack("=IHHII", 16 + 56, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, 0, 0)
            request += struct.pack("=BBBxI48x", family, socket.IPPROTO_TCP, 0, 1 << TCP_LISTEN)
            with self.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as diag:
                diag.send(request)
                found += [queued for number, queued in _diag_answers(diag) if number == port]
        return found

    def listening(self, port):
        """Tells whether a process listens on this TCP port."""
        return bool(self._listeners(port))

    def queued(self, port):
        """Returns how many connections to this TCP port wait to be accepted."""
        return sum(self._listeners(port))

    def counters(self):
        """The kernel's counters of this host: /proc/net/netstat and snmp as {"MPTcpExtMPCapableSYNRX": 1, …}."""
        found = {}
        with self.entered():
            for table in ("snmp", "netstat"):
                with open("/proc/thread-self/net/" + table, encoding="ascii") as file:
                    lines = file.readlines()
                for names, values in zip(lines[::2], lines[1::2]):
                    prefix, names = names.split(":")
                    found.update(zip((prefix + name for name in names.split()), map(int, values.split()[1:])))
        return found

    def file(self, path, text):
        """Processes that this host starts from now on see a file with this text at path.

        A file must exist there already: ours is mounted over it, anew for each process.
        """
        real = os.path.realpath(path)
        if not os.path.exists(real) and real.startswith("/run/"):
            # a link into /run, which is empty in the sandbox
            os.makedirs(os.path.dirname(real), exist_ok=True)
            with open(real, "w", encoding="utf-8"):
                pass
        if not os.path.exists(real):
            raise LabError("%s is not there, so nothing can be mounted over it; make it: touch %s" % (path, real))
        source = os.path.join(self._directory, "%s%s" % (self.name, path.replace("/", "-")))
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        if (source, real) not in self._files:
            self._files.append((source, real))

    # --- processes ----------------------------------------------------------

    def _mounted(self):
        """Returns the words in front of a command that mount the host's own files for it."""
        if not self._files:
            return []
        mounts = "".join("mount --bind '%s' '%s' && " % pair for pair in self._files)
        return ["unshare", "--mount", "sh", "-c", mounts + 'exec "$@"', "sh"]

    def _started(self, start, cmd, env, **options):
        """Calls start(command line, env=…, **options) in the host's network namespace, which the process inherits.

        That spares each process an nsenter(1). LD_… of env must not reach the commands that mount the host's files: env(1) sets them later.
        """
        cmd = [str(word) for word in cmd]
        full = {**os.environ, **{name: str(value) for name, value in (env or {}).items()}}
        mounted = self._mounted()
        if mounted:
            late = ["%s=%s" % (name, full.pop(name)) for name in list(full) if name.startswith("LD_")]
            cmd = mounted + (["env"] + late if late else []) + cmd
        with self.entered():
            return start(cmd, env=full, **options)

    def popen(self, cmd, env=None, name=None, **options):
        """Starts cmd (a list) with env added to this environment; returns a Process.

        It runs in a session of its own. Without stdout and stderr among the options, both go to its log. The end of the lab
        ends it.
        """
        title = name or os.path.basename(str(cmd[0]))
        log = None
        if "stdout" not in options and "stderr" not in options:
            log = os.path.join(self._directory, "%02d-%s-%s.log" % (len(os.listdir(self._directory)), self.name, title))
            options["stdout"] = open(log, "wb")
            options["stderr"] = subprocess.STDOUT
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("start_new_session", True)
        try:
            process = self._started(Process, cmd, env, **options)
        finally:
            if log:
                options["stdout"].close()
        process.title = "%s on %s" % (title, self.name)
        process.log = log
        self.processes.append(process)
        return process

    # pylint: disable=redefined-builtin
    def run(self, cmd, env=None, timeout=120, check=True, input=None, text=True):
        """Runs cmd (a list) and returns its CompletedProcess with stdout and stderr.

        A status other than 0 raises CommandError, unless check is False; so does a time-out, always.
        """
        try:
            process = self._started(subprocess.Popen, cmd, env, text=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    stdin=subprocess.DEVNULL if input is None else subprocess.PIPE)
            result = _completed(process, input, patience(timeout))
        except subprocess.TimeoutExpired as late:
            raise CommandError("on %s: %s: no end within %gs\n%s%s" % (
                self.name, " ".join(map(str, cmd)), patience(timeout), _text(late.stdout), _text(late.stderr))) from late
        if check and result.returncode != 0:
            raise CommandError("on %s: %s: status %d\n%s%s" % (
                self.name, " ".join(map(str, cmd)), result.returncode, _text(result.stdout), _text(result.stderr)),
                result)
        return result

    def ip(self, *lines):
        """Runs ip(8) commands, given without the leading "ip", in one process."""
        self.run(["ip", "-batch", "-"], input="".join(line + "\n" for line in lines))

    def ping(self, address, count=1, interval=0.01, size=56, timeout=10, source=None):
        """Pings, from an address of this host; returns the round-trip times in ms of those answered, in order."""
        words = ["ping", "-n", "-c", count, "-i", interval, "-s", size, "-W", "2", *(["-I", source] if source else []), address]
        result = self.run(words, check=False, timeout=timeout + count * interval)
        return [float(line.split("time=")[1].split()[0]) for line in result.stdout.splitlines() if "time=" in line]

    def pids(self):
        """The IDs of all processes in this host's network namespace."""
        own = os.fstat(self._netns).st_ino
        found = []
        for entry in os.listdir("/proc"):
            with contextlib.suppress(OSError):
                if entry.isdigit() and os.stat("/proc/%s/ns/net" % entry).st_ino == own:
                    found.append(int(entry))
        return found

    def close(self):
        """Kills the host's processes and removes the host."""
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in self.processes:
            process.kill()
            process.wait()
        os.close(self._netns)
        _remove_namespace(self.path)


def _completed(process, data, limit):
    """Hands a process its input and returns its CompletedProcess; kills it after `limit` seconds."""
    with process:
        try:
            out, err = process.communicate(data, timeout=limit)
        except BaseException:
            process.kill()
            raise
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def _diag_answers(diag):
    """(port, bytes or connections in its queue) of each socket in the answer."""
    while True:
        data = diag.recv(1 << 16)
        while data:
            size, kind = struct.unpack_from("=IH", data)
            if kind == NLMSG_DONE:
                return
            if kind == NLMSG_ERROR:
                raise LabError("sock_diag: %s" % os.strerror(-struct.unpack_from("=i", data, 16)[0]))
            # struct inet_diag_msg: the port behind four bytes, the queue behind the socket's identity and a timer
            yield struct.unpack_from("!H", data, 16 + 4)[0], struct.unpack_from("=I", data, 16 + 56)[0]
            data = data[(size + 3) & ~3:]


def _text(output):
    return output.decode(errors="replace") if isinstance(output, bytes) else output or ""
