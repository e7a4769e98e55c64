#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_supervise_forbidden.py - what a supervised program is forbidden stays forbidden: direct connections, and its own sandbox's limits"""
import os

from convertlab import check, equal, main
from convertlab.programs import c_program
from convertlab.supervised import PORT, Run, bench
from test_supervise import INHERITS

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
CLOSED = ["--fallback", "none"]


def own_syns(place, run):
    """Runs something, and returns its result with the number of SYNs that the server's network gets from the client itself."""
    with place.lab.capture(place.lab.server, "core") as capture:
        result = run()
        converted_or_not = {packet.src for packet in capture.packets() if packet.dport == int(PORT)}
    return result, converted_or_not - {"10.3.0.1"}


def as_nobody(place, *words, options=(), **env):
    """Runs a program as another user, whom root's right to look into all processes doesn't help."""
    os.chmod(place.place, 0o755)
    return Run(place.lab.client.run([*NOBODY, place.convertize, *options, *words], env=place.env(**env), check=False))


def test_closed_to_the_hidden():
    """A process that isn't dumpable makes no direct connection where none is allowed, by an inherited socket neither."""
    with bench() as place:
        server = place.lab.server.addr4
        for way in ([], ["nonblocking"], ["fastopen"]):
            run, direct = own_syns(place, lambda: as_nobody(place, place.client, server, PORT, "hidden", *way, options=CLOSED))
            check(run.status == 2 and "socket=Permission denied" in run.stdout and not direct, run.stdout + run.stderr)
            equal(run.logged("refused: this process can't be looked into"), 1, run.stderr)
            inherits = ["python3", "-c", INHERITS, place.convertize, *CLOSED, place.client, server, PORT, "inherited", "hidden", *way]
            run, direct = own_syns(place, lambda: Run(place.lab.client.run([*NOBODY, *inherits], env=place.env(), check=False)))
            check(run.status == 1 and run.lines[0]["error"] == "Permission denied" and not direct, run.stdout + run.stderr)


def test_closed_to_the_changing():
    """Nor does a program whose other thread changes the address or the socket of a call that is under way."""
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
    """Sockets of other protocols connect as ever where TCP may not go directly."""
    with bench() as place:
        run = place.run("python3", "-c", OTHERS, options=["--method", "supervise", *CLOSED])
        check("unix=True udp=192.0.2.1" in run.stdout, run.stdout + run.stderr)


if __name__ == "__main__":
    main()
