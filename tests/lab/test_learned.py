#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_learned.py - what one process learns another one knows, and a server that speaks Multipath TCP is reached directly"""
import os

from convertlab import Lab, Link, check, equal, main, need

APPS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "apps")
SCRIPTED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scripted_converter.py")
TAKEN = "converted over MPTCP, request taken in the SYN"
DIRECT = "direct: the server speaks Multipath TCP itself"
CACHE = "libconvert-cache-1"


def near(**options):
    return Lab(wifi=Link(delay_ms=5), lte=None, core=Link(delay_ms=1), **options)


def remembering(lab, **env):
    """An application's environment with a directory where things are kept."""
    directory = os.path.join(lab.directory, "runtime")
    os.makedirs(directory, mode=0o700, exist_ok=True)
    return lab.converted(XDG_RUNTIME_DIR=directory, **env)


def scripted(lab, script, *response):
    return lab.start_listening(lab.converter, ["python3", SCRIPTED, lab.converter.addr4, 1234, script, *response], 1234,
                               name="scripted")


def hello(lab, port=7, **env):
    """One short-lived process, one connection."""
    said = lab.client.run(["python3", os.path.join(APPS, "connect_probe.py"), "poll", lab.server.addr4, port],
                          env=remembering(lab, **env)).stdout
    check("answer b'hello'\nend b''\n" in said, said + lab.shim_log())


def get(lab, **env):
    need("curl")
    lab.client.run(["curl", "-sS", "-o", "/dev/null", "http://%s/bytes/100000" % lab.server.addr4], env=remembering(lab, **env))


def mptcp_syns(lab, capture):
    """Who was sent a SYN with MP_CAPABLE."""
    return [p.dst for p in capture.packets() if p.syn and not p.ack and 30 in [kind for kind, _ in p.options]]


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


def test_plain_server_is_always_converted():
    """It is asked for Multipath TCP once an hour."""
    with near() as lab:
        lab.convertd()
        lab.http()
        with lab.capture(lab.converter, "core", "tcp") as capture:
            for _ in range(3):
                get(lab)
        equal(lab.shim_log().count(TAKEN), 3, "conversions in\n" + lab.shim_log())
        equal(len(mptcp_syns(lab, capture)), 1, "MP_CAPABLE SYNs to the server")


def test_mptcp_that_fails_on_the_direct_way():
    """A middlebox takes the option away behind the converter: after one try the converter is used again."""
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
        equal(converter.log_text().count("request"), 5, "requests in\n" + converter.log_text())
    with near() as lab:
        converter = scripted(lab, "whole", "01042263" "15020000" "08000000" "14010000")
        lab.echo()
        for _ in range(3):
            hello(lab)
        requests = [line.split()[1] for line in converter.log_text().splitlines() if line.startswith("request")]
        equal([("01010000" in r, "1e020000" in r) for r in requests], [(True, True), (False, False), (False, False)],
              "(Info, Multipath TCP) asked for: not of a converter that doesn't announce it")


def test_cookie_that_is_stale():
    """The converter has a new key: the old cookie is refused, forgotten, and a new one learned, within one connection."""
    with near() as lab:
        converter = scripted(lab, "cookie", "00112233")
        lab.echo()
        hello(lab)
        converter.stop()
        converter = scripted(lab, "cookie", "44556677")
        for _ in range(3):
            hello(lab)
        equal(converter.log_text().count("request"), 5, "requests in\n" + converter.log_text())
        check("left alone" not in lab.shim_log(), lab.shim_log())


def test_rest_and_syn_data_outlive_the_process():
    with near() as lab:
        converter = scripted(lab, "whole", "01022263" "1e01401e")
        lab.echo()
        for _ in range(3):
            hello(lab, CONVERT_ADDR=lab.converter.addr4)
        equal(converter.log_text().count("request"), 1, "requests in\n" + lab.shim_log())
        check("left alone for 30 s" in lab.shim_log(), lab.shim_log())
    with Lab(wifi=Link(delay_ms=5, strip_syn_data=True), lte=None, core=Link(delay_ms=1)) as lab:
        lab.convertd()
        lab.echo()
        for _ in range(4):
            hello(lab)
        equal((lab.shim_log().count("request not taken in the SYN"), lab.shim_log().count("converted over MPTCP, request behind")),
              (2, 2), "connections in\n" + lab.shim_log())


def test_without_the_file_all_goes_on():
    """No directory, a directory of others, a damaged or a cut file: connections are converted as ever."""
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


if __name__ == "__main__":
    main()
