# SPDX-License-Identifier: BSD-3-Clause
"""manager.py - a service manager for convertd: sd_listen_fds(3), sd_notify(3) and a store of descriptors, as systemd has them"""
import os
import shutil
import signal
import socket
import tempfile

from .harness import check, equal

# The names of the descriptors that convertd stores with its manager.
LISTENERS, RULES = "convertd-listen", "convertd-rules"


class Manager:
    """A service manager: it has the sockets of socket units, keeps descriptors for convertd, and receives its messages."""

    def __init__(self, lab, *sockets, keeps=True):
        self._lab = lab
        self._keeps = keeps  # whether FileDescriptorStoreMax= isn't 0
        self.sockets = sockets
        self.kept = []  # stored listening sockets
        self.rules = []  # stored descriptors of the process that owns the nftables rules for SYNs
        self._stores = {LISTENERS: self.kept, RULES: self.rules}
        self._directory = tempfile.mkdtemp(prefix="m-", dir="/run")  # a path for a Unix socket must be short
        self.path = os.path.join(self._directory, "notify")
        self._messages = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._messages.bind(self.path)
        self.heard = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._messages.close()
        shutil.rmtree(self._directory)
        for sock in self.sockets:
            sock.close()
        self.forget()

    def forget(self):
        """Closes all stored descriptors, as when convertd is stopped for good."""
        for store in self._stores.values():
            self._drop(store)

    @staticmethod
    def _drop(numbers):
        for number in numbers:
            os.close(number)
        numbers.clear()

    def start(self, *arguments, env=None):
        """Starts convertd with the sockets; returns its Process."""
        passed = [sock.fileno() for sock in self.sockets]
        names = ["unit.socket"] * len(passed)
        for name, store in self._stores.items():
            passed += store
            names += [name] * len(store)
        # a shell duplicates the sockets to 3 and up and executes convertd, so that LISTEN_PID is its process ID
        first = 1 + max([100, *passed])
        moves = "".join("exec %d<&%d-; " % (3 + i, first + i) for i in range(len(passed)))
        script = "%sexport LISTEN_PID=$$ LISTEN_FDS=%d; exec \"$@\"" % (moves, len(passed))
        numbers = [os.dup2(number, first + i) for i, number in enumerate(passed)]
        process = self._lab.converter.popen(
            ["bash", "-c", script, "sh", self._lab.build.program("convertd"), "--allow-client", "::/0",
             "--allow-destination", "10.0.0.0/8", *arguments], name="convertd", pass_fds=numbers,
            env={"NOTIFY_SOCKET": self.path, "LISTEN_FDNAMES": ":".join(names), **({"FDSTORE": 512} if self._keeps else {}), **(env or {})})
        for number in numbers:
            os.close(number)
        return process

    def _take(self, text, numbers):
        """Stores or drops descriptors as a message says."""
        lines = text.splitlines()
        store = next((store for name, store in self._stores.items() if "FDNAME=" + name in lines), None)
        check(store is not None and "FDSTORE=1" in lines or not numbers, "descriptors with the message " + text)
        if store is None:
            return
        if "FDSTOREREMOVE=1" in lines:
            self._drop(store)
        if not self._keeps:
            self._drop(numbers)
        store += numbers

    def wait(self, *assignments, seconds=30):
        """Waits for a message with these assignments and returns it as {name: value}; skips earlier messages."""
        self._messages.settimeout(seconds)
        while True:
            data, numbers, _, _ = socket.recv_fds(self._messages, 65536, 8)
            text = data.decode()
            self.heard.append(text)
            self._take(text, numbers)
            lines = text.splitlines()
            if all(line in lines for line in assignments):
                return dict(line.split("=", 1) for line in lines)

    def restart(self, process, *arguments, **options):
        """As systemctl restart with KillMode=process: the main process ends, then another one is started. Returns its Process."""
        process.send_signal(signal.SIGTERM)
        equal(process.wait(40), 0, "the status of the main process: " + process.log_text())
        return self.start(*arguments, **options)
