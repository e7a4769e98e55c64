#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_learned.py - processes share what they learn, and the shim reaches a server that speaks Multipath TCP directly"""
import contextlib
import json
import os
import shutil
import socket
import subprocess

from convertlab import Lab, Link, Unsuitable, check, equal, first_syns, kernel, main, need, sandbox
from convertlab.peers import requests
from test_aggregation import BEHIND, TAKEN, serve, transfer

APPS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "apps")
SCRIPTED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scripted_converter.py")
DIRECT = "direct: the server speaks Multipath TCP itself"
CACHE = "libconvert-cache-3"
INFO = bytes.fromhex("01010000")  # an Info TLV


def near(**options):
    return Lab(wifi=Link(delay_ms=5), lte=None, core=Link(delay_ms=1), **options)


def scripted(lab, script, *response):
    return lab.start_listening(lab.converter, ["python3", SCRIPTED, lab.converter.addr4, 1234, script, *response], 1234,
                               name="scripted")


def hello(lab, port=7, **env):
    """One short-lived process, one connection."""
    said = lab.client.run(["python3", os.path.join(APPS, "connect_probe.py"), "poll", lab.server.addr4, port],
                          env=lab.remembering(**env)).stdout
    check("answer b'hello'\nend b''\n" in said, said + lab.shim_log())


def get(lab, **env):
    need("curl")
    lab.client.run(["curl", "-sS", "-o", "/dev/null", "http://%s/bytes/100000" % lab.server.addr4], env=lab.remembering(**env))


def mptcp_syns(lab, capture):
    """The destinations of SYNs with MP_CAPABLE."""
    return [p.dst for p in first_syns(capture.packets()) if 30 in [kind for kind, _ in p.options]]


def test_limit_of_file_sizes():
    """Programs that may write no file, or only a short one, work; SIGXFSZ would end them. They learn nothing, and log nothing."""
    need("curl")
    with near() as lab:
        lab.convertd()
        lab.http()
        for limit in ("0", "1000", "51200"):
            env = lab.remembering("limited-" + limit)
            lab.client.run(["prlimit", "--fsize=" + limit, "curl", "-sS", "-o", "/dev/null", "http://%s/bytes/10" % lab.server.addr4], env=env)
        equal(lab.shim_log().count("converted over"), 2, "connections that the log has room for, in\n" + lab.shim_log())


@kernel.needs("fastopen")
def test_server_that_speaks_mptcp_is_reached_directly():
    """RFC 8803, Section 5.1, Figure 11: through the converter once, then without it, over Multipath TCP."""
    with near() as lab:
        lab.convertd()
        lab.serve("mptcp-http", 80)
        with lab.capture(lab.client, "wifi", "tcp") as capture:
            for _ in range(3):
                get(lab)
        equal(mptcp_syns(lab, capture), [lab.converter.addr4, lab.server.addr4, lab.server.addr4], "MP_CAPABLE SYNs")
        equal((lab.shim_log().count(TAKEN), lab.shim_log().count(DIRECT)), (1, 2), "connections in\n" + lab.shim_log())
        # and not if the user doesn't want it
        get(lab, CONVERT_BYPASS_MPTCP="0")
        equal(lab.shim_log().count(TAKEN), 2, "conversions in\n" + lab.shim_log())
        # nor if nothing may go directly, nor on another converter's word
        get(lab, CONVERT_FALLBACK="none")
        equal(lab.shim_log().count(TAKEN), 3, "conversions with CONVERT_FALLBACK=none in\n" + lab.shim_log())
        get(lab, CONVERT_ADDR="[%s]" % lab.converter.addr6)
        equal(lab.shim_log().count(TAKEN), 4, "conversions by a converter that has said nothing in\n" + lab.shim_log())
        get(lab)
        equal(lab.shim_log().count(DIRECT), 3, "direct connections in\n" + lab.shim_log())


@kernel.needs("fastopen")
def test_plain_server_is_always_converted():
    """The converter asks it for Multipath TCP only once, as the shim remembers the answer for an hour."""
    with near() as lab:
        lab.convertd()
        lab.http()
        with lab.capture(lab.converter, "core", "tcp") as capture:
            for _ in range(3):
                get(lab)
        equal(lab.shim_log().count(TAKEN), 3, "conversions in\n" + lab.shim_log())
        equal(len(mptcp_syns(lab, capture)), 1, "MP_CAPABLE SYNs to the server")


@kernel.needs("fastopen")
def test_mptcp_that_fails_on_the_direct_way():
    """A middlebox behind the converter removes the option: after one try the shim uses the converter again."""
    with near() as lab:
        lab.convertd()
        lab.serve("mptcp-echo", 7)
        hello(lab)
        lab.converter.run(["nft", "add table inet strip; add chain inet strip forward { type filter hook forward priority 0; };"
                           "add rule inet strip forward tcp flags syn reset tcp option mptcp"])
        for _ in range(3):
            hello(lab)
        equal((lab.shim_log().count(TAKEN), lab.shim_log().count(DIRECT)), (3, 1), "connections in\n" + lab.shim_log())


def test_cookie_and_info_outlive_the_process():
    with near() as lab:
        cookie = "00112233445566778899aabbccddeeff"
        converter = scripted(lab, "cookie", cookie)
        lab.echo()
        for _ in range(4):
            hello(lab)
        equal(len(requests(converter)), 5, "requests in\n" + converter.log_text())
    with near() as lab:
        converter = scripted(lab, "whole", "01042263" "15020000" "08000000" "14010000")
        lab.echo()
        for _ in range(3):
            hello(lab)
        equal([("01010000" in r, "1e020000" in r) for r in requests(converter)], [(True, True), (False, False), (False, False)],
              "(Info, Multipath TCP) asked for: not of a converter that doesn't announce it")


def test_cookie_that_is_stale():
    """The converter has a new key: within one connection the shim forgets the old cookie, which is refused, and learns a new one."""
    with near() as lab:
        converter = scripted(lab, "cookie", "00112233")
        lab.echo()
        hello(lab)
        converter.stop()
        converter = scripted(lab, "cookie", "44556677")
        for _ in range(3):
            hello(lab)
        equal(len(requests(converter)), 5, "requests in\n" + converter.log_text())
        check("left alone" not in lab.shim_log(), lab.shim_log())


@kernel.needs("fastopen")
def test_rest_and_syn_data_outlive_the_process():
    with near() as lab:
        converter = scripted(lab, "whole", "01022263" "1e01401e")
        lab.echo()
        for _ in range(3):
            hello(lab, CONVERT_ADDR=lab.converter.addr4)
        equal(len(requests(converter)), 1, "requests in\n" + lab.shim_log())
        check("left alone for 30 s" in lab.shim_log(), lab.shim_log())
    with Lab(wifi=Link(delay_ms=5, strip_syn_data=True), lte=None, core=Link(delay_ms=1)) as lab:
        lab.convertd()
        lab.echo()
        for _ in range(4):
            hello(lab)
        equal((lab.shim_log().count("data in the SYN was not taken"), lab.shim_log().count("converted over MPTCP, request behind")),
              (2, 4), "connections in\n" + lab.shim_log())


@kernel.needs("fastopen")
def test_without_the_file_all_goes_on():
    """No directory, a directory of others, a damaged or a cut file: connections are converted all the same."""
    with near() as lab:
        lab.convertd()
        lab.echo()
        directory = os.path.join(lab.directory, "runtime")
        hello(lab)
        path = os.path.join(directory, CACHE)
        size = os.path.getsize(path)
        for damage in (lambda: os.truncate(path, 0), lambda: os.truncate(path, size - 1),
                       lambda: open(path, "wb").write(os.urandom(size)) and None, lambda: os.unlink(path) or os.mkdir(path),
                       lambda: os.rmdir(path) or os.symlink("/etc/passwd", path),
                       lambda: os.unlink(path) or os.chmod(directory, 0o777), lambda: os.chmod(directory, 0o500),
                       lambda: os.rename(directory, directory + "-gone")):
            damage()
            said = lab.client.run(["python3", os.path.join(APPS, "connect_probe.py"), "epoll-edge", lab.server.addr4, 7],
                                  env=lab.converted(XDG_RUNTIME_DIR=directory)).stdout
            check("answer b'hello'\nend b''\n" in said, said)
        equal(lab.shim_log().count(TAKEN), 9, "conversions in\n" + lab.shim_log())


@kernel.needs("fastopen")
def test_what_a_container_learns_stays_there():
    """In a network namespace where the converter's port is closed it rests; the host's programs use it all the same."""
    need("unshare", "util-linux")
    with near() as lab:
        lab.convertd()
        lab.echo()
        inside = "ip link set lo up && ip address add %s/32 dev lo && exec python3 %s poll %s 7" % (
            lab.converter.addr4, os.path.join(APPS, "connect_probe.py"), lab.server.addr4)
        for count in (1, 2):
            lab.client.run(["unshare", "-n", "sh", "-c", inside], env=lab.remembering(), check=False)
            equal(lab.shim_log().count("left alone for 30 s"), count, "refusals in\n" + lab.shim_log())
            hello(lab)
            equal(lab.shim_log().count(TAKEN), count, "conversions on the host in\n" + lab.shim_log())


DROPS = """
import ctypes, os, platform, socket, sys
def talk():
    with socket.create_connection((sys.argv[1], 7)) as sock:
        sock.sendall(b"hello")
        print(sock.recv(5).decode(), flush=True)
talk()
print("mapped" if "libconvert-cache" in open("/proc/self/maps").read() else "not mapped", flush=True)
assert ctypes.CDLL(None).syscall({"x86_64": 117, "aarch64": 147}[platform.machine()], 65534, 65534, 65534) == 0
talk()
"""


@kernel.needs("fastopen")
def test_a_daemon_that_drops_its_rights():
    """A process has no cache of root's in its memory once it becomes another user's, by a system call that no hook sees."""
    if sandbox.in_user_namespace():
        raise Unsuitable("in a user namespace of an ordinary user there is only one user; run it as root")
    with near() as lab:
        os.chmod(lab.directory, 0o777)
        lab.convertd()
        lab.echo()
        with open(os.path.join(lab.directory, "shim.log"), "wb") as log:
            os.fchmod(log.fileno(), 0o666)
        for _ in range(2):
            said = lab.client.run(["python3", "-c", DROPS, lab.server.addr4], env=lab.remembering()).stdout
            equal(said, "hello\nnot mapped\nhello\n", "what was said, and is in memory")
        check(kept(os.path.join(lab.directory, "runtime")), "nothing was kept")
        equal(lab.shim_log().count(TAKEN), 4, "conversions in\n" + lab.shim_log())


USER, OTHER = 65534, 65533
CONNECT = """
import os, socket, sys
os.umask(0o777)
sock = socket.create_connection((sys.argv[1], 7))
sock.sendall(b"hello")
print(sock.recv(5).decode())
"""


def without_a_session(lab, uid, runtime=None):
    """Makes one connection from a service's process: no XDG_RUNTIME_DIR, or another user's."""
    variable = ["XDG_RUNTIME_DIR=" + runtime] if runtime else ["-u", "XDG_RUNTIME_DIR"]
    command = ["env", *variable, "python3", "-c", CONNECT, lab.server.addr4]
    user = ["setpriv", "--reuid=%d" % uid, "--regid=%d" % uid, "--clear-groups"] if uid else []
    equal(lab.client.run(user + command, env=lab.converted(CONVERT_CACHE="")).stdout, "hello\n", "what the server says")


@contextlib.contextmanager
def services():
    """Yields a lab whose directory all users may enter, with an empty /dev/shm; removes caches in /tmp at the end."""
    if sandbox.in_user_namespace():
        raise Unsuitable("in a user namespace of an ordinary user there is only one user; run it as root")
    need("setpriv", "util-linux")
    with near() as lab:
        os.chmod(lab.directory, 0o777)
        lab.convertd()
        lab.echo()
        with open(os.path.join(lab.directory, "shim.log"), "wb") as log:
            os.fchmod(log.fileno(), 0o666)
        shutil.rmtree("/run/libconvert", ignore_errors=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777", "none", "/dev/shm"], check=True)
        try:
            yield lab
        finally:
            subprocess.run(["umount", "/dev/shm"], check=True)
            shutil.rmtree("/tmp/libconvert-%d" % USER, ignore_errors=True)


def kept(path):
    """Tells whether a cache is there that only its user can read."""
    file = os.path.join(path, CACHE)
    return os.path.exists(file) and [os.lstat(each).st_mode & 0o7777 for each in (path, file)] == [0o700, 0o600]


def where(lab, uid):
    """The facts of convertize check about the cache: [(name, status, place), …]"""
    user = ["setpriv", "--reuid=%d" % uid, "--regid=%d" % uid, "--clear-groups"] if uid else []
    result = lab.client.run([*user, "env", "-u", "XDG_RUNTIME_DIR", lab.build.program("convertize"), "check", "--json"], check=False)
    return [(fact["name"], fact["status"], fact.get("value")) for fact in json.loads(result.stdout)["facts"] if fact["name"].startswith("cache")]


@kernel.needs("fastopen")
def test_without_a_session():
    """Services, cron jobs, sudo, containers: root and other users have places of their own, and each learns but once."""
    with services() as lab:
        server = socket.inet_aton(lab.server.addr4)
        for uid, place in ((0, "/run/libconvert"), (USER, "/dev/shm/libconvert-%d" % USER), (OTHER, "/dev/shm/libconvert-%d" % OTHER)):
            equal(where(lab, uid), [("cache", "ok", place)], "what is said before there is any")
            check(not os.path.exists(place), "a check has made %s" % place)
            for first in (True, False):
                with lab.capture(lab.client, "wifi", "tcp port 1234") as capture:
                    without_a_session(lab, uid)
                # only requests to connect: after late answers on a busy machine there are probes of paths, too, with an Info TLV
                asked = [packet.payload for packet in capture.packets() if packet.syn and server in packet.payload]
                equal({INFO in request for request in asked}, {first}, "the first process asks what the converter supports, the second doesn't")
            check(kept(place), place)
            equal(where(lab, uid), [("cache", "ok", place)], "what is said")
        # a session's own directory takes precedence
        os.makedirs("/run/user/%d" % USER, mode=0o700)
        os.chown("/run/user/%d" % USER, USER, USER)
        without_a_session(lab, USER)
        check(os.path.exists("/run/user/%d/%s" % (USER, CACHE)), "nothing in a directory that is there")
        shutil.rmtree("/run/user/%d" % USER)
        check("not kept" not in lab.shim_log(), lab.shim_log())
        # sudo -E
        shutil.rmtree("/run/libconvert")
        without_a_session(lab, 0, runtime="/dev/shm/libconvert-%d" % USER)
        check(kept("/run/libconvert"), "no cache of root's own, with another user's runtime directory")
        check("what is learned is not kept in /dev/shm/libconvert-%d: " % USER in lab.shim_log(), lab.shim_log())


def test_what_others_have_planted():
    """The shim refuses, by name, a cache directory that another user made or could replace; connections are converted all the same."""
    place = "/dev/shm/libconvert-%d" % USER

    def directory(uid, mode):
        os.mkdir(place)
        os.chown(place, uid, uid)
        os.chmod(place, mode)

    def link():
        os.mkdir("/dev/shm/mine", 0o700)
        os.chown("/dev/shm/mine", USER, USER)
        os.symlink("mine", place)

    def file():
        open(place, "w", encoding="ascii").close()
    plants = {"another user's directory": lambda: directory(OTHER, 0o777), "root's": lambda: directory(0, 0o777),
              "one that others may enter": lambda: directory(USER, 0o711), "one that others may write to": lambda: directory(USER, 0o770),
              "a symbolic link to a directory of this user's": link, "a file": file,
              "one that anybody can replace": lambda: os.chmod("/dev/shm", 0o777)}
    with services() as lab:
        for name, plant in plants.items():
            plant()
            without_a_session(lab, USER)
            check("what is learned is not kept in %s: " % place in lab.shim_log(), "%s: %s" % (name, lab.shim_log()))
            equal([fact[:2] for fact in where(lab, USER)][0], ("cache.refused", "warn"), name)
            for root, _, files in os.walk("/dev/shm"):
                check(CACHE not in files, "%s: a cache in %s" % (name, root))
            equal(lab.shim_log().count("converted over MPTCP"), 1, "%s: %s" % (name, lab.shim_log()))
            open(os.path.join(lab.directory, "shim.log"), "w", encoding="ascii").close()
            os.chmod("/dev/shm", 0o1777)
            for each in os.listdir("/dev/shm"):
                path = os.path.join("/dev/shm", each)
                shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)  # pylint: disable=W0106


@kernel.needs("fastopen")
def test_one_network():
    """Without a second path the request goes into the first SYN to any converter; over plain TCP also with several paths."""
    for options, verdict in (({"lte": None}, TAKEN), ({"wifi": Link(delay_ms=5, strip_mptcp=True)}, TAKEN.replace("MPTCP", "TCP"))):
        with Lab(**{"wifi": Link(delay_ms=5), "core": Link(delay_ms=1), **options}) as lab:
            lab.convertd(["--hold-syn", "off"])
            serve(lab)
            transfer(lab, "get", lab.converted(), 100000)
            equal(lab.shim_log().count(verdict), 1, lab.shim_log())


@kernel.needs("fastopen")
@kernel.needs("time")
def test_what_is_remembered():
    """The shim remembers for a day that windows are corrected; after an hour it asks the converter again, and the new answer counts."""
    need("unshare", "util-linux")
    correcting, other = ["--no-silence"], ["--hold-syn", "off"]
    with Lab(wifi=Link(delay_ms=5), lte=Link(delay_ms=5), core=Link(delay_ms=1)) as lab:
        serve(lab)
        for arguments, verdicts in ((correcting, [(0, BEHIND), (0, TAKEN), (2, TAKEN), (27, BEHIND), (27, TAKEN)]),
                                    (other, [(27, TAKEN), (29, TAKEN), (29, BEHIND)])):
            process = lab.convertd(arguments)
            for hours, verdict in verdicts:
                transfer(lab, "get", lab.remembering(), 100000, hours)
                check(verdict in lab.shim_log().splitlines()[-1], "not \"%s\" after %d h in\n%s" % (verdict, hours, lab.shim_log()))
            process.stop()


if __name__ == "__main__":
    main()
