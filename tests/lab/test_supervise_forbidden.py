#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_supervise_forbidden.py - a supervised program bypasses no prohibition: of direct connections, or of its own sandbox"""
import os

from convertlab import Unsuitable, check, equal, main, wait_until
from convertlab.programs import c_program
from convertlab.supervised import MPTCP, PORT, TCP, Run, bench
from test_supervise import INHERITS
from test_without_fastopen import removed

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
CLOSED = ["--fallback", "none"]


def own_syns(place, run):
    """Calls run(); returns its result, and the addresses other than the converter's that have sent the server a SYN."""
    with place.lab.capture(place.lab.server, "core") as capture:
        result = run()
        clients = {packet.src for packet in capture.packets() if packet.syn and packet.dport == int(PORT)}
    return result, clients - {"10.3.0.1"}


def as_nobody(place, *words, options=(), **env):
    """Runs a program as another user, who lacks root's right to look into all processes."""
    os.chmod(place.place, 0o755)
    return Run(place.lab.client.run([*NOBODY, place.convertize, *options, *words], env=place.env(**env), check=False))


def test_closed_to_the_hidden():
    """A process that isn't dumpable makes no direct connection if none is allowed, not even with an inherited socket."""
    with bench() as place:
        server = place.lab.server.addr4
        for way in ([], ["nonblocking"], ["fastopen"]):
            run, direct = own_syns(place, lambda: as_nobody(place, place.client, server, PORT, "hidden", *way, options=CLOSED))
            check(run.status == 2 and "socket=Permission denied" in run.stdout and not direct, run.stdout + run.stderr)
            equal(run.logged("refused: this process can't be examined"), 1, run.stderr)
            inherits = ["python3", "-c", INHERITS, place.convertize, *CLOSED, place.client, server, PORT, "inherited", "hidden", *way]
            run, direct = own_syns(place, lambda: Run(place.lab.client.run([*NOBODY, *inherits], env=place.env(), check=False)))
            check(run.status == 1 and run.lines[0]["error"] == "Permission denied" and not direct, run.stdout + run.stderr)


def test_closed_to_the_changing():
    """Nor does a program whose second thread changes the address or the socket during a call."""
    program = c_program("changing", "changing.c", flags=["-static"])
    with bench() as place:
        for way, count in (("address", 60), ("output", 60), ("descriptor", 60)):
            run, direct = own_syns(place, lambda: place.run(program, place.lab.server.addr4, PORT, place.lab.converter.addr4, "1234", way, str(count),
                                                            options=CLOSED))
            check(run.status == 0 and not direct, "%s: SYNs from %s: %s" % (way, direct, run.stdout + run.stderr[-2000:]))
            check(int(run.lines[0]["made"]) > (0 if way == "descriptor" else count // 2), run.stdout + run.stderr[-2000:])


OTHERS = """
import os, socket, threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
place = os.path.join("/run/convertlab", "socket")
listener = socket.socket(socket.AF_UNIX)
listener.bind(place)
listener.listen()
unix = socket.socket(socket.AF_UNIX)
unix.connect(place)
os.unlink(place)
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.connect(("192.0.2.1", 7))
print("unix=%s udp=%s" % (listener.accept()[0] is not None, udp.getpeername()[0]))
"""


def test_closed_leaves_others():
    """If direct TCP connections are forbidden, sockets of other protocols still connect."""
    with bench() as place:
        run = place.run("python3", "-c", OTHERS, options=["--method", "supervise", *CLOSED])
        check("unix=True udp=192.0.2.1" in run.stdout, run.stdout + run.stderr)


# --- prohibitions of the kernel for a program's identity ---

# Each program begins with these lines of Python; LIBC makes raw system calls.
BEGINNING = """
import ctypes, os, socket, struct, sys
LIBC = ctypes.CDLL(None, use_errno=True)
def call(*args):
    result = LIBC.syscall(*(ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
def landlock(*ports):
    rules = call(444, ctypes.create_string_buffer(struct.pack("=QQ", 0, 2)), 16, 0)  # LANDLOCK_ACCESS_NET_CONNECT_TCP
    for port in ports:
        call(445, rules, 2, ctypes.create_string_buffer(struct.pack("=QQ", 2, port)), 0)
    LIBC.prctl(38, 1, 0, 0, 0)
    call(446, rules, 0)
def seccomp(protocol):
    steps = ((0x20, 0, 0, 0), (0x15, 0, 3, SOCKET), (0x20, 0, 0, 32), (0x15, 0, 1, protocol), (6, 0, 0, 0x50001), (6, 0, 0, 0x7fff0000))
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    LIBC.prctl(38, 1, 0, 0, 0)
    call(SECCOMP, 1, 0, ctypes.create_string_buffer(struct.pack("@HP", len(steps), ctypes.addressof(code))))
SOCKET, SECCOMP = (41, 317) if os.uname().machine == "x86_64" else (198, 277)
def connect(sock):
    try:
        sock.connect((sys.argv[1], int(sys.argv[2])))
        return "connected protocol=%d" % sock.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL)
    except OSError as error:
        return os.strerror(error.errno)
def child(*forks):
    reading, writing = os.pipe()
    if os.fork() == 0:
        for fork in forks:
            middle = os.getpid()
            if os.fork():
                os._exit(0)
            while os.getppid() == middle:
                pass
        os.write(writing, b"child " + connect(socket.socket()).encode())
        os._exit(0)
    os.close(writing)
    while text := os.read(reading, 100):
        print(text.decode())
"""


def act(place, script, port=PORT, options=(), before=(), supervised=True):
    """Runs a program under convertize, or without it."""
    front = [place.convertize, "--method", "supervise", *options] if supervised else []
    return Run(place.lab.client.run([*before, *front, "python3", "-c", BEGINNING + script, place.lab.server.addr4, port],
                                    env=place.env(), check=False))


def test_owner_rules():
    """Firewall rules for users and groups, and policy rules for users, hold for a program that becomes such a user under a supervisor."""
    become = "os.setgroups([%d]); os.setresgid(%d, %d, %d); os.setresuid(%d, %d, %d)\n"
    nobody = become % (65533, 65534, 65534, 65534, 65534, 65534, 65534)
    with bench() as place:
        converter = place.lab.converter.addr4
        place.lab.client.run(["nft", "add table inet owner; add chain inet owner out { type filter hook output priority 0; }"])
        action, own = " meta l4proto tcp reject with tcp reset", "print(connect(socket.socket()))"
        for begin, end in ((["nft", "add rule inet owner out meta skuid 65534" + action], ["nft", "flush chain inet owner out"]),
                           (["nft", "add rule inet owner out meta skgid 65534" + action], ["nft", "flush chain inet owner out"]),
                           (["ip", "rule", "add", "uidrange", "65534-65534", "prohibit"],
                            ["ip", "rule", "del", "uidrange", "65534-65534", "prohibit"])):
            check("connected protocol=%s" % MPTCP in act(place, nobody + own).stdout, "without a rule")
            place.lab.client.run(begin)
            for options in ([], CLOSED):
                ours, direct = (act(place, nobody + own, supervised=way, options=options) for way in (True, False))
                equal(ours.stdout, direct.stdout, "%s %s: %s" % (begin, options, ours.stderr))
                check("connected" not in direct.stdout, direct.stdout)
            check("connected" in act(place, own).stdout, "root's own")
            place.lab.client.run(end)
        # a stand-in, for a direct connection without a converter, belongs to the user as well
        place.lab.client.run(["nft", "add rule inet owner out meta skuid 65534 tcp dport %s reject with tcp reset" % PORT])
        place.lab.client.run(["nft", "add rule inet owner out ip daddr %s tcp dport 1234 reject with tcp reset" % converter])
        ours = act(place, nobody + "print(connect(socket.socket()))")
        check("connected" not in ours.stdout and "direct, the converter fails" in ours.stderr, ours.stdout + ours.stderr)


RESTRICTED = (
    # the restriction, the program's next step, and its outcome
    ("sock = socket.socket(); landlock(443)", "print(connect(sock))", "Permission denied"),
    ("landlock(443)", "print(connect(socket.socket()))", "Permission denied"),
    ("landlock(443)", "child()", "child Permission denied"),
    ("landlock(443)", "child(1)", "child Permission denied"),  # an orphan
    ("LIBC.prctl(36, 1, 0, 0, 0); os.fork() and os.wait() and os._exit(0); landlock(443)", "child(1)", "child Permission denied"),
    ("landlock(int(sys.argv[2]))", "print(connect(socket.socket()))", "connected protocol=" + TCP),
    ("seccomp(262)", "print(connect(socket.socket()))", "connected protocol=" + TCP),
    ("seccomp(262)", "child()", "child connected protocol=" + TCP),
)


def test_sandboxes():
    """Prohibitions by a program's own Landlock rules or seccomp filter hold for it and its children, and one line says that it connects
    directly; if direct connections are forbidden, it doesn't connect."""
    with bench() as place:
        for restrict, then, expected in RESTRICTED:
            ours, direct = (act(place, restrict + "\n" + then, supervised=way) for way in (True, False))
            equal(ours.stdout, direct.stdout, "%s: %s: as directly\n%s" % (restrict, then, ours.stderr))
            equal(ours.stdout.strip(), expected, "%s: %s\n%s" % (restrict, then, ours.stderr))
            equal(ours.logged("left to the kernel: "), 1, ours.stderr)
            closed, syns = own_syns(place, lambda: act(place, restrict + "\n" + then, options=CLOSED))
            check("Permission denied" in closed.stdout and not syns, "%s: %s, %s" % (restrict, then, closed.stdout + closed.stderr))
        ours = act(place, "os.fork() or (landlock(443), os._exit(0)); os.wait(); print(connect(socket.socket())); child(); child(1)")
        equal(ours.stdout.split("\n")[:2], ["connected protocol=" + MPTCP, "child connected protocol=" + MPTCP],
              "only another child has restricted itself: " + ours.stdout + ours.stderr)


def test_control_groups():
    """A program in another control group makes its sockets itself, so that rules for that group hold."""
    directory = "/sys/fs/cgroup/unified" if os.path.isdir("/sys/fs/cgroup/unified") else "/sys/fs/cgroup"
    group = os.path.join(directory, "convertlab-%d" % os.getpid())
    try:
        os.mkdir(group)
    except OSError as error:
        raise Unsuitable("no control groups can be made here: %s" % error) from error
    try:
        with bench() as place:
            move = "open(%r, 'w').write(str(os.getpid()))\n" % os.path.join(group, "cgroup.procs")
            run = act(place, move + "print(connect(socket.socket()))")
            equal(run.stdout.strip(), "connected protocol=" + TCP, run.stderr)
            equal(run.logged("left to the kernel: it is in another control group"), 1, run.stderr)
            run = act(place, "sock = socket.socket()\n" + move + "print(connect(sock))")
            equal(run.stdout.strip(), "connected protocol=" + MPTCP, "a socket stays in the group in which it was made: " + run.stderr)
    finally:
        wait_until(lambda: removed(group), what="the processes of %s to end" % group)


if __name__ == "__main__":
    main()
