#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""process_probe.py - connections that begin in one process and go on in another, or in another program

  process_probe.py start MOMENT HOW WAY ADDRESS PORT   connects, and at MOMENT another program takes the socket over by HOW
  process_probe.py taken WAY FD                        that program: waits in WAY, then talks
  process_probe.py pair WAY ADDRESS PORT               forks while connecting; parent and child talk in turn
  process_probe.py pass MOMENT MODE ADDRESS PORT       sends the socket over a Unix socket, blocking or nonblocking, at MOMENT
  process_probe.py heir WAY ADDRESS PORT               forks while connecting; the parent is gone when the child goes on
  process_probe.py bare HOW ADDRESS PORT               head(1) gets the socket as its standard input, without the shim or from a
                                                       shell
  process_probe.py many COUNT ADDRESS PORT             forks with so many pending; each process reads from every second one
  process_probe.py unanswered ADDRESS PORT             forks while connecting, and looks at once
  process_probe.py late ADDRESS PORT                   true(1) gets the socket and doesn't use it, twice

MOMENT is pending (at once), connected (the program has seen it), or failed (the error is there, but the program hasn't asked for it). The
server is servers.py's greeter. The transcript must be the same with the shim and without.
"""
import array
import contextlib
import ctypes
import errno
import os
import select
import signal
import socket
import subprocess
import sys

LIMIT_MS = 10000
AT_FDCWD = -100
SYS_CLONE = {"x86_64": 56, "aarch64": 220}

libc = ctypes.CDLL(None, use_errno=True)


def say(*words):
    print(*words, flush=True)


def name(number):
    return errno.errorcode.get(number, str(number))


def wait_writable(sock, way):
    """Waits for the connection in one of several ways; "blocking" and "error" don't wait."""
    if way in ("poll", "epoll", "epoll-edge"):
        poller = select.poll() if way == "poll" else select.epoll()
        poller.register(sock, select.POLLOUT | (select.EPOLLET if way == "epoll-edge" else 0))
        found = poller.poll(LIMIT_MS if way == "poll" else LIMIT_MS / 1000)
        return "writable" if found and found[0][1] & select.POLLOUT else "nothing"
    if way == "select":
        return "writable" if select.select([], [sock], [], LIMIT_MS / 1000)[1] else "nothing"
    if way == "blocking":
        sock.setblocking(True)
    return "not asked"


def peer(sock):
    try:
        return "%s %d" % sock.getpeername()
    except OSError as error:
        return name(error.errno)


def receive(sock):
    """Returns the bytes that one recv() gets, or its error."""
    try:
        return repr(sock.recv(100))
    except OSError as error:
        return name(error.errno)


def look(sock, way):
    say(wait_writable(sock, way), name(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)))


def talk(sock, way):
    """Talks over a connection from another process."""
    look(sock, way)
    if way != "blocking":
        sock.setblocking(True)
    say("greeting", receive(sock))
    say("peer", peer(sock))
    try:
        sock.sendall(b"helo\n")
        say("answer", receive(sock))
    except OSError as error:
        say("send", name(error.errno))
    say("protocol", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL))


def begin(address, port, moment):
    """Returns a socket that connects."""
    sock = socket.socket()
    sock.setblocking(False)
    sock.connect_ex((address, int(port)))
    if moment == "connected":
        look(sock, "poll")
    if moment == "failed":
        poller = select.poll()
        poller.register(sock, select.POLLOUT)
        poller.poll(LIMIT_MS)
    return sock


# --- another program -----------------------------------------------------------------------


def strings(words):
    array_of = (ctypes.c_char_p * (len(words) + 1))()
    array_of[:-1] = [word.encode() for word in words]
    return array_of


def environment():
    return strings(["%s=%s" % pair for pair in os.environ.items()])


def spawn(how, words, fd):
    """Starts the program in a child, with the socket as its descriptor 0."""
    actions = [(os.POSIX_SPAWN_DUP2, fd, 0)]
    function = os.posix_spawn if how == "posix_spawn" else os.posix_spawnp
    return os.waitpid(function(words[0], words, os.environ, file_actions=actions), 0)[1]


def start_by(how, words, fd):
    """Starts the program; returns the child's status, or not at all for the functions of exec()'s family."""
    vector, encoded = strings(words), [word.encode() for word in words]
    path = encoded[0]
    if how == "execve":
        libc.execve(path, vector, environment())
    elif how == "execv":
        libc.execv(path, vector)
    elif how == "execvp":
        libc.execvp(os.path.basename(path), vector)
    elif how == "execvpe":
        libc.execvpe(os.path.basename(path), vector, environment())
    elif how == "execl":
        libc.execl(path, *encoded, None)
    elif how == "execlp":
        libc.execlp(os.path.basename(path), *encoded, None)
    elif how == "execle":
        libc.execle(path, *encoded, None, environment())
    elif how == "fexecve":
        libc.fexecve(os.open(path, os.O_RDONLY), vector, environment())
    elif how == "execveat":
        libc.execveat(AT_FDCWD, path, vector, environment(), 0)
    elif how == "fork":
        pid = os.fork()
        if pid == 0:
            libc.execve(path, vector, environment())
            os._exit(127)
        return os.waitpid(pid, 0)[1]
    elif how == "subprocess":  # vfork(), and close() of everything else
        return subprocess.run(words, stdin=fd, check=False).returncode
    elif how == "inherited":
        return subprocess.run(words, pass_fds=[fd], check=False).returncode
    elif how in ("posix_spawn", "posix_spawnp"):
        return spawn(how, words, fd)
    sys.exit("%s: %s" % (how, name(ctypes.get_errno())))


def start(moment, how, way, address, port):
    sock = begin(address, port, moment)
    at_0 = how in ("subprocess", "posix_spawn", "posix_spawnp")
    if not at_0:
        sock.set_inheritable(True)
    words = [os.path.realpath(sys.executable), os.path.abspath(__file__), "taken", way, "0" if at_0 else str(sock.fileno())]
    os.environ["PATH"] = os.path.dirname(words[0]) + ":" + os.environ["PATH"]
    say("status", start_by(how, words, sock.fileno()))
    sock.close()


def taken(way, fd):
    strange = [variable for variable in os.environ if "SOCKETS" in variable]
    say("variables", strange)
    talk(socket.socket(fileno=int(fd)), way)


# --- another process ------------------------------------------------------------------------


def in_turn(*parts):
    """Runs each part in a child of its own, one after the other; all children are forked first."""
    children = []
    for part in parts:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.read(reader, 1)
            part()
            os._exit(0)
        children.append((pid, writer))
    for pid, writer in children:
        os.write(writer, b"x")
        say("status", os.waitpid(pid, 0)[1])


def pair(way, address, port):
    sock = begin(address, port, "pending")

    def greeted():
        look(sock, way)
        sock.setblocking(True)
        say("greeting", receive(sock), "peer", peer(sock))

    def speaking():
        look(sock, way)
        sock.setblocking(True)
        sock.sendall(b"helo\n")
        say("answer", receive(sock), "peer", peer(sock))

    in_turn(greeted, speaking, speaking)
    speaking()


def heir(way, address, port):
    sock = begin(address, port, "pending")
    reader, writer = os.pipe()
    if os.fork():
        os._exit(0)
    os.close(writer)
    os.read(reader, 1)
    talk(sock, way)


def bare(how, address, port):
    """The socket becomes the standard input of head(1), started in one of several ways, most without the shim."""
    sock = begin(address, port, "pending")
    sock.setblocking(True)
    if how == "vfork":
        subprocess.run(["head", "-n1"], stdin=sock, env={"PATH": os.environ["PATH"]}, check=False)
        sock.setblocking(False)
        say("left", sock.getpeername()[0] == address)
        return
    if how == "clone":
        if libc.syscall(SYS_CLONE[os.uname().machine], signal.SIGCHLD, 0, 0, 0, 0) == 0:
            os.dup2(sock.fileno(), 0)
            libc.execve(b"/usr/bin/head", strings(["head", "-n1"]), strings(["PATH=" + os.environ["PATH"]]))
            os._exit(127)
        os.wait()
        wait_writable(sock, "poll")
        say("left", peer(sock).startswith(address))
        return
    if how in ("system", "popen"):
        os.set_inheritable(sock.fileno(), True)
        command = b"exec head -n1 <&%d" % sock.fileno()
        if how == "system":
            say("status", libc.system(command))
        else:
            libc.popen.restype = ctypes.c_void_p
            say("status", libc.pclose(ctypes.c_void_p(libc.popen(command, b"w"))))
        return
    if how == "spawn":
        actions = [(os.POSIX_SPAWN_DUP2, sock.fileno(), 0)]
        say("status", os.waitpid(os.posix_spawn("/usr/bin/head", ["head", "-n1"], {}, file_actions=actions), 0)[1])
        return
    os.dup2(sock.fileno(), 0)
    os.environ.pop("LD_PRELOAD", None)
    libc.execve(b"/usr/bin/head", strings(["head", "-n1"]), environment())


def many(count, address, port):
    """Reads from all sockets, each in one of the two processes, in their order."""
    socks = [begin(address, port, "pending") for _ in range(int(count))]
    reader, writer = os.pipe()
    pid = os.fork()
    for sock in socks[pid == 0::2]:
        wait_writable(sock, "poll")
        sock.setblocking(True)
        if sock.recv(100) != b"220 lab ready\r\n":
            say("other bytes")
    if pid == 0:
        os._exit(0)
    os.close(writer)
    os.read(reader, 1)
    say("status", os.waitpid(pid, 0)[1])


def unanswered(address, port):
    sock = begin(address, port, "pending")
    pid = os.fork()
    if pid == 0:
        say("child", wait_writable(sock, "poll"), name(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)), receive(sock))
        os._exit(0)
    os.waitpid(pid, 0)
    say("parent", "writable" if select.select([], [sock], [], 0)[1] else "nothing",
        name(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)))


def late(address, port):
    """A program inherits a connection that gets no answer, and doesn't use it."""
    sock = begin(address, port, "pending")
    sock.set_inheritable(True)
    say("true ended with", subprocess.run(["true"], pass_fds=[sock.fileno()], check=False).returncode)
    libc.execvp(b"true", strings(["true"]))


def pass_on(moment, mode, address, port):
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        _, ancillary, _, _ = theirs.recvmsg(1, socket.CMSG_SPACE(4))
        sock = socket.socket(fileno=array.array("i", ancillary[0][2])[0])
        look(sock, "poll")
        sock.setblocking(True)
        say("greeting", receive(sock))
        sock.sendall(b"helo\n")
        say("answer", receive(sock))
        os._exit(0)
    ours.setblocking(mode == "blocking")
    sock = begin(address, port, moment)
    ours.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [sock.fileno()]))])
    sock.close()
    say("status", os.waitpid(pid, 0)[1])


def main():
    cases = {"start": start, "taken": taken, "pair": pair, "pass": pass_on, "heir": heir, "bare": bare, "many": many,
             "unanswered": unanswered, "late": late}
    cases[sys.argv[1]](*sys.argv[2:])


if __name__ == "__main__":
    # a high priority, since the events that it looks for don't wait for it; ordinary users lack the right
    with contextlib.suppress(OSError):
        os.nice(-19)
    main()
