# SPDX-License-Identifier: BSD-3-Clause
"""scenes.py - the networks of the documents, with their names and addresses, so that commands run exactly as printed

    laptop, router   wlan0 192.0.2.7      ═══╗           ╔═══ converter     eth0 203.0.113.10, node1 .11, node2 .12, admin .5
                     wwan0 198.51.100.9   ═══╩═ internet ╩═══ www           eth0 20.0.0.80

The internet is one router, whose addresses end in .1, with a name server at 203.0.113.53. All addresses are from RFC 5737 except
the web server's, since convertd refuses documentation addresses as destinations.

Each host of a scene has its own files: /etc, with the files of "make install", the directories for systemd's companions, and
/run/convertd. Its PATH contains the programs of this build, and stand-ins for programs that need an init (tests/lab/standins).
"""
import os
import shlex

from .build import SRCDIR, Build
from .hosts import CommandError, Host
from .links import Link, RunningLink
from .names import program as names_program
from .sandbox import in_user_namespace
from .waiting import wait_until

HOSTS = """127.0.0.1 localhost
203.0.113.10 converter.example
203.0.113.11 node1.example
203.0.113.12 node2.example
203.0.113.5 admin.example
20.0.0.80 www.example
"""
RECORDS = ["_convert._tcp.example SRV 10 50 1234 node1.example", "_convert._tcp.example SRV 10 50 1234 node2.example",
           "node1.example A 203.0.113.11", "node2.example A 203.0.113.12"]
FILE_SIZE = 3000000  # of http://www.example/file

# Runs in a host's own mount namespace: files that are written there belong to the host alone, and end with it.
MOUNTS = """
mount -t tmpfs none /mnt
mkdir /mnt/etc /mnt/convertd
cp -a /etc/. /mnt/etc 2>/dev/null
rm -rf /mnt/etc/sysctl.d /mnt/etc/sysctl.conf /mnt/etc/systemd/system /mnt/etc/convertize.conf
mkdir -p /mnt/etc/sysctl.d /mnt/etc/systemd/system /mnt/etc/convertd /mnt/etc/convertgw
cp {source}/contrib/convertd.conf /mnt/etc/convertd
printf '%s' {hosts} >/mnt/etc/hosts
rm -f /mnt/etc/resolv.conf
echo "nameserver 203.0.113.53" >/mnt/etc/resolv.conf
echo "{name}" >/mnt/etc/hostname
mount --bind /mnt/etc /etc
mkdir -p /run/convertd /run/systemd
mount -t sysfs -o ro none /sys
mount -t tmpfs none /run/systemd
mkdir -p -m 777 /run/systemd/netif /run/systemd/netif/links /run/systemd/netif/leases /run/systemd/netif/lldp
mount --bind /mnt/convertd /run/convertd
for directory in sysctl.d sysusers.d; do
	[ -d /usr/lib/$directory ] || continue
	mount -t tmpfs none /usr/lib/$directory
	cp {source}/contrib/$directory/*.conf /usr/lib/$directory
done
echo ready
exec sleep 100000
"""


class SceneHost(Host):
    """A host with files of its own, in the mount namespace of a process that does nothing else, the holder."""

    _holder = None

    def __init__(self, name, directory, units):
        super().__init__(name, directory)
        self.home = os.path.join(directory, "hosts", name)
        os.makedirs(self.home)
        self._units = units
        script = MOUNTS.format(source=shlex.quote(SRCDIR), hosts=shlex.quote(HOSTS), name=name)
        holder = self.popen(["unshare", "--mount", "--propagation", "private", "sh", "-c", script], name="holder")
        holder.wait_log("ready")
        self._holder = holder.pid
        with open(os.path.join(self.home, "holder"), "w", encoding="ascii") as file:
            file.write("%d\n" % holder.pid)

    def _mounted(self):
        """Returns the words in front of a command that show it the host's files."""
        return ["nsenter", "--mount=/proc/%d/ns/mnt" % self._holder, "--"] if self._holder else []

    def ip(self, *lines):
        """As Host.ip(), in the lab's own mount namespace: the host's lacks the names of hosts that were made later."""
        holder, self._holder = self._holder, None
        try:
            super().ip(*lines)
        finally:
            self._holder = holder

    def shell(self, text, background=False, **options):
        """Runs a script as root's shell on the host: returns its CompletedProcess, or in the background its Process."""
        env = {"HOME": self.home, "XDG_RUNTIME_DIR": self.home, "LAB_HOST": self.home, "LAB_UNITS": self._units, "LC_ALL": "C.UTF-8",
               # the scene's links are TUN devices, which the path manager uses only if they are named
               "CONVERT_LIBRARY": Build().shim, "CONVERTIZE_DEVICE": "wlan0,wwan0"}
        # convertize of this build reads the file below its own prefix
        words = ["sh", "-c", "cd %s; [ ! -e /etc/convertize.conf ] || export CONVERT_CONFIG=/etc/convertize.conf; set -e\n%s" % (
            shlex.quote(self.home), text)]
        if background:
            return self.popen(words, env=env, name="background")
        return self.run(words, env=env, check=False, timeout=60, **options)


class Scene:
    """A network of the documents, inside `with`. hosts: by name; links: wlan0 and wwan0 of the client."""

    def __init__(self, name, directory):
        self.name = name
        self.directory = directory
        self.hosts, self.links = {}, {}
        self._build = Build()
        self._closers = []

    def __enter__(self):
        try:
            self._programs()
            self._internet()
            SCENES[self.name](self)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends it; what was made last is removed first."""
        while self._closers:
            self._closers.pop()()

    # --- making it ------------------------------------------------------------

    def _programs(self):
        """A directory in front of PATH with this build's programs and the stand-ins."""
        place = os.path.join(self.directory, "bin")
        os.makedirs(place)
        for name in ("convertize", "convertd", "convertgw"):
            os.symlink(os.path.join(self._build.directory, name), os.path.join(place, name))
        standins = os.path.join(SRCDIR, "tests/lab/standins")
        for name in os.listdir(standins):
            os.symlink(os.path.join(standins, name), os.path.join(place, name))
        if in_user_namespace():
            # there is only one user, who owns everything
            os.symlink("/bin/true", os.path.join(place, "chown"))
        path = os.environ["PATH"]
        os.environ["PATH"] = place + ":" + path
        self._closers.append(lambda: os.environ.update(PATH=path))

    def _host(self, name):
        host = SceneHost(name, self.directory, os.path.join(self._build.directory, "contrib/systemd"))
        self._closers.append(host.close)
        self.hosts[name] = host
        return host

    def _internet(self):
        """The router, its name server and the web server behind it."""
        internet = self._host("internet")
        internet.sysctl("net.ipv4.ip_forward", 1)
        internet.ip("addr add 203.0.113.53/32 dev lo", "link add net type bridge", "addr add 203.0.113.1/24 dev net", "link set net up")
        self._names = internet.popen(names_program("203.0.113.53", *RECORDS), name="names")
        self._names.wait_log("ready")
        www = self._host("www")
        self._cable(www, "20.0.0.80/24", "20.0.0.1/24")
        with open(os.path.join(www.home, "file"), "wb") as file:
            file.write(b"libconvert\n" * (FILE_SIZE // 11))
        www.popen(["python3", "-m", "http.server", "80", "--directory", www.home], name="www")
        wait_until(lambda: www.listening(80), 30, "the web server")

    def _cable(self, host, address, router=None, device="eth0"):
        """Joins a host to the internet: to its bridge for 203.0.113.0/24, or to a device of the router's own."""
        far = "to-" + host.name
        internet = self.hosts["internet"]
        host.ip("link add %s type veth peer name %s netns internet" % (device, far), "link set %s up" % device,
                "addr add %s dev %s" % (address, device))
        internet.ip("link set %s up" % far, "addr add %s dev %s" % (router, far) if router else "link set %s master net" % far)
        host.ip("route add default via %s dev %s" % ((router or "203.0.113.1/24").split("/")[0], device))

    def _access(self, host):
        """The two networks of the client, with the routes that it gets from DHCP."""
        internet = self.hosts["internet"]
        for name, network, number, delay, metric in (("wlan0", "192.0.2", 7, 3, 600), ("wwan0", "198.51.100", 9, 6, 700)):
            link = RunningLink(self._build.program("linkem"), Link(delay_ms=delay), name, host, internet, self.directory)
            self._closers.append(link.close)
            self.links[name] = link
            for side in (host, internet):
                side.ip("link set dev %s multicast off txqueuelen 2000" % name)
            host.ip("addr add %s.%d/24 dev %s" % (network, number, name),
                    "route add default via %s.1 dev %s metric %d" % (network, name, metric))
            internet.ip("addr add %s.1/24 dev %s" % (network, name))

    def laptop(self):
        """A client with two networks, and a converter."""
        self._access(self._host("client"))
        self._cable(self._host("converter"), "203.0.113.10/24")

    def router(self):
        """The client is a router, with a tablet behind it."""
        router, tablet = self._host("router"), self._host("tablet")
        self._access(router)
        self._cable(self._host("converter"), "203.0.113.10/24")
        router.ip("link add lan type veth peer name eth0 netns tablet", "link set lan up", "addr add 192.168.1.1/24 dev lan")
        tablet.ip("link set eth0 up", "addr add 192.168.1.20/24 dev eth0", "route add default via 192.168.1.1")

    def fleet(self):
        """Two converters, their administrator's host, and a client that has its endpoints already."""
        client = self._host("client")
        self._access(client)
        client.ip("mptcp endpoint add 192.0.2.7 dev wlan0 subflow", "mptcp endpoint add 198.51.100.9 dev wwan0 subflow",
                  "mptcp limits set subflows 2")
        for name, number in (("node1", 11), ("node2", 12), ("admin", 5)):
            self._cable(self._host(name), "203.0.113.%d/24" % number)

    def works(self):
        """The laptop's scene, set up as the deployment guide says."""
        self.laptop()
        client, converter = self.hosts["client"], self.hosts["converter"]
        client.ip("mptcp endpoint add 192.0.2.7 dev wlan0 subflow", "mptcp endpoint add 198.51.100.9 dev wwan0 subflow",
                  "mptcp limits set subflows 2")
        done = converter.shell("systemd-sysusers; sysctl -q --system\n"
                               "printf 'allow-client %s\\n' 192.0.2.7 198.51.100.0/24 >>/etc/convertd/convertd.conf\n"
                               "systemctl enable --now convertd")
        if done.returncode:
            raise CommandError("the converter of the scene: %s%s" % (done.stdout, done.stderr))


SCENES = {name: getattr(Scene, name) for name in ("laptop", "router", "fleet", "works")}
