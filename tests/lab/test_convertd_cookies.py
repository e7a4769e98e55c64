#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertd_cookies.py - cookies, RFC 8803 Section 6.2.7: computed, fixed, shared, rotated, forged, and learned by the shim"""
import hashlib
import ipaddress
import os
import re
import signal
import struct
import time

from convertlab import Lab, Link, check, equal, main, sandbox, wait_until
from convertlab.metrics import OPTIONS, Metrics
from convertlab.peers import (MPTCP, TCP, WITHHOLDING, Client, Forger, Server, clients, connect_tlv, converter, cookie_tlv,
                              echo, error, extended_header, message, missing_cookie, octets)

INFO = octets("01010000")
SUPPORTED = octets("15020000 04081e00") + WITHHOLDING
NOT_AUTHORIZED = error(0x20)
DAY = 86400


def near(**options):
    """Returns a lab with both of the client's links, which are too fast to matter."""
    options.setdefault("lte", Link(delay_ms=0.5))
    return Lab(wifi=Link(delay_ms=0.5), core=Link(delay_ms=0.1), **options)


def write(lab, name, *lines, mode=0o600):
    """Writes a file of these lines; returns its path."""
    path = os.path.join(lab.directory, name)
    with open(path, "w", encoding="ascii") as file:
        file.write("".join(line + "\n" for line in lines))
    os.chmod(path, mode)
    return path


def new_key():
    """Returns a line of a key file with a new key."""
    return os.urandom(32).hex()


def computed(key, address, epoch):
    """Computes a cookie as convertd(8) describes it."""
    ip = ipaddress.ip_address(address)
    bound = bytes(10) + b"\xff\xff" + ip.packed if ip.version == 4 else ip.packed[:8] + bytes(8)
    return hashlib.blake2b(b"convert cookie 1" + bound + struct.pack("!Q", epoch), digest_size=16,
                           key=bytes.fromhex(key)).digest()


def ask(client, request):
    """Sends the request; returns the answer, after which the stream must end."""
    answer = client.send(request).answer()
    equal(client.end(), (b"", "closed"), "the end behind %s (%s)" % (answer.hex(), client.name))
    return answer


def served(client, server, request):
    """Checks that the client is connected to the server."""
    extended_header(client.send(request).answer())
    server.accept().close()


def reload(process, outcome="reloaded:"):
    """Sends SIGHUP, and waits until convertd has logged the outcome."""
    count = process.log_text().count(outcome)
    process.send_signal(signal.SIGHUP)
    wait_until(lambda: process.log_text().count(outcome) > count, 5, outcome)


def source_of(client):
    """Returns the client's address as the converter sees it."""
    return client.sock.getsockname()[0]


# --- computed cookies ---------------------------------------------------------------------------------------------


def test_computed():
    """Without a cookie: Missing Cookie with the cookie for this address. With it: the server. With any other: Not Authorized."""
    key = new_key()
    with near() as lab, Server(lab, 80) as server, converter(lab, "--cookie-key", write(lab, "keys", key)):
        target = connect_tlv(lab.server.addr4, 80)
        cookies = {}
        for request in (message(target), message(INFO), message(INFO, target),
                        message(connect_tlv(lab.server.addr4, 80, octets("2202")))):
            with lab.capture(lab.converter, "core", "tcp") as capture:
                for client in clients(lab):
                    cookie = missing_cookie(ask(client, request))
                    epoch = int(time.time() / DAY)
                    check(cookie in [computed(key, source_of(client), epoch - i) for i in (0, 1)],
                          "the cookie for %s is %s" % (source_of(client), cookie.hex()))
                    cookies[":" in source_of(client)] = cookie
            check(not capture.packets(), "packets to the server: %s" % capture.packets()[:3])
        for client in clients(lab):
            cookie = cookie_tlv(cookies[":" in client.name])
            served(client, server, message(*((target, cookie), (cookie, target))["MPTCP" in client.name]))
        for client in clients(lab, deliveries=["syn"]):
            equal(ask(client, message(cookie_tlv(cookies[":" in client.name]), INFO)), message(SUPPORTED), "Info")
        for wrong in (bytes(16), cookies[True][:-1] + bytes([cookies[True][-1] ^ 1]), b"x", cookies[True] + bytes(4),
                      cookies[False][:12], bytes(900)):
            for client in clients(lab, deliveries=["syn", "behind"]):
                equal(ask(client, message(INFO, target, cookie_tlv(wrong))), NOT_AUTHORIZED, "a wrong cookie")
        # a malformed message has its own answer, without a cookie, too
        request = message(connect_tlv("127.0.0.1", 80))
        for client in clients(lab, deliveries=["syn"]):
            equal(ask(client, request), echo(1, request), "malformed")


def test_bound_to_the_address():
    """Another IPv4 address, another /64: invalid. Another address of the same /64: valid."""
    with near() as lab, Server(lab, 80) as server, converter(lab, "--cookie-key", write(lab, "keys", new_key())):
        lab.client.run(["ip", "addr", "add", "fd01::77/64", "dev", "wifi", "nodad"])
        for address, others in ((lab.converter.addr4, ((lab.client.lte4, False),)),
                                (lab.converter.addr6, ((lab.client.lte6, False), ("fd01::77", True)))):
            with Client(lab.client, address) as client:
                request = message(connect_tlv(lab.server.addr4, 80), cookie_tlv(missing_cookie(ask(client, message(INFO)))))
            for source, valid in others:
                for protocol in (TCP, MPTCP):
                    with Client(lab.client, address, protocol) as client:
                        client.sock.bind((source, 0))
                        if valid:
                            served(client, server, request)
                        else:
                            equal(ask(client, request), NOT_AUTHORIZED, "the cookie of another")


def test_lifetime():
    """A cookie is valid in its epoch and the next one."""
    key = new_key()
    with near() as lab, Server(lab, 80) as server, \
            converter(lab, "--cookie-key", write(lab, "keys", key), "--cookie-lifetime", "2"):
        for _ in range(5):
            with Client(lab.client, lab.converter.addr4) as client:
                cookie = missing_cookie(ask(client, message(INFO)))
                now = int(time.time() / 2)
                epoch = next(epoch for epoch in range(now, now - 5, -1) if computed(key, source_of(client), epoch) == cookie)
            request = message(connect_tlv(lab.server.addr4, 80), cookie_tlv(cookie))
            # time(2) may be a tick behind
            wait_until(lambda: time.time() / 2 >= epoch + 1.05, 5, "the next epoch")  # pylint: disable=W0640
            with Client(lab.client, lab.converter.addr4) as client:
                answer = client.send(request).answer()
                if time.time() / 2 < epoch + 2 or answer != NOT_AUTHORIZED:
                    extended_header(answer)
                    server.accept().close()
                    break
        check(answer != NOT_AUTHORIZED, "each time this busy machine was too late for the next epoch")
        wait_until(lambda: time.time() / 2 >= epoch + 2.05, 5, "the epoch after that")
        with Client(lab.client, lab.converter.addr4) as client:
            equal(ask(client, request), NOT_AUTHORIZED, "an old cookie")


def test_rotation():
    """Two converters share a file: a key is added, then signs, then the old one is removed, without a restart or a refused client."""
    old, new = new_key(), new_key()
    with near() as lab, Server(lab, 80) as server:
        path = write(lab, "keys", old)
        with converter(lab, "--cookie-key", path, "--listen", "[::]:1234") as first, \
                converter(lab, "--cookie-key", path, "--listen", "[::]:1235", port=1235) as second:
            def cookie(port):
                with Client(lab.client, lab.converter.addr4, port=port) as client:
                    return missing_cookie(ask(client, message(INFO)))

            def valid(value, port):
                with Client(lab.client, lab.converter.addr4, MPTCP, port=port) as client:
                    request = message(connect_tlv(lab.server.addr4, 80), cookie_tlv(value))
                    answer = client.send(request).answer()
                    if answer == NOT_AUTHORIZED:
                        return False
                    extended_header(answer)
                    server.accept().close()
                    return True
            of_old = cookie(1234)
            equal(cookie(1235), of_old, "the other converter's cookie")
            for lines in ((old, new), (new, old)):
                write(lab, "keys", "# %d keys" % len(lines), *lines)
                for process in (first, second):
                    # the converters reload one after the other: each accepts the other's cookies
                    reload(process)
                    for giver in (1234, 1235):
                        value = cookie(giver)
                        check(valid(value, 1234) and valid(value, 1235) and valid(of_old, giver), "a refused client")
            of_new = cookie(1234)
            check(of_new != of_old, "the new key doesn't sign")
            write(lab, "keys", new)
            for process in (first, second):
                reload(process)
            equal([valid(of_new, 1234), valid(of_new, 1235), valid(of_old, 1234), valid(of_old, 1235)],
                  [True, True, False, False], "cookies of the new key and of the old one")
            # a file that convertd can't use leaves the keys in force
            write(lab, "keys", new, mode=0o644)
            reload(first, "not reloaded")
            check("chmod 600" in first.log_text(), first.log_text())
            write(lab, "keys", "# none")
            reload(first, "not reloaded")
            check(valid(of_new, 1234), "the keys are gone")


# --- fixed cookies ------------------------------------------------------------------------------------------------


def test_fixed():
    """Any cookie of the list is valid, from any address; a client without one gets Not Authorized, since convertd gives none out."""
    with near() as lab, Server(lab, 80) as server, \
            converter(lab, "--cookie-list", write(lab, "list", "# ours", "of seven", "three", "hex:00ff")) as process:
        target = connect_tlv(lab.server.addr4, 80)
        for client in clients(lab, deliveries=["syn", "behind"]):
            equal(ask(client, message(target)), NOT_AUTHORIZED, "no cookie")
        for wrong in (b"thre", b"Three", b"of sevenn", bytes(4), b"\0\xff\0\1", b"# ours"):
            for client in clients(lab, deliveries=["syn"]):
                equal(ask(client, message(target, cookie_tlv(wrong))), NOT_AUTHORIZED, "%s" % wrong)
        for right in (b"of seven", b"three", b"\0\xff"):
            for client in clients(lab, deliveries=["syn", "bytewise"]):
                served(client, server, message(target, cookie_tlv(right)))
        write(lab, "list", "another")
        reload(process)
        with Client(lab.client, lab.converter.addr4) as client:
            equal(ask(client, message(target, cookie_tlv(b"three"))), NOT_AUTHORIZED, "a cookie of the old list")
        with Client(lab.client, lab.converter.addr4) as client:
            served(client, server, message(target, cookie_tlv(b"another")))


def test_both():
    """A cookie of either kind is valid; a client without one gets a computed one."""
    with near() as lab, Server(lab, 80) as server, \
            converter(lab, "--cookie-list", write(lab, "list", "three"), "--cookie-key", write(lab, "keys", new_key())):
        target = connect_tlv(lab.server.addr4, 80)
        with Client(lab.client, lab.converter.addr4) as client:
            cookie = missing_cookie(ask(client, message(target)))
        for value in (cookie, b"three"):
            with Client(lab.client, lab.converter.addr4, MPTCP) as client:
                served(client, server, message(target, cookie_tlv(value)))


# --- files --------------------------------------------------------------------------------------------------------


def hidden(path):
    """Tells whether only the owner can use the file, and the group read it: on a machine with the group convertd, that."""
    return os.stat(path).st_mode & 0o7737 == 0o600


# Runs a command that sees an /etc with the group convertd, and the file $1 as convertd.conf.
INSTALLED = """
mount -t tmpfs none /mnt && mkdir /mnt/convertd && cp "$1" /mnt/convertd/convertd.conf || exit
cp /etc/ld.so.cache /etc/nsswitch.conf /etc/passwd /mnt 2>/dev/null
{ grep -v ^convertd: /etc/group; echo convertd:x:%d:; } >/mnt/group
mount --bind /mnt /etc && shift && exec "$@"
"""
GROUP = 4711


def installed(lab, *lines):
    """Returns the words in front of a command on a host where convertd is installed. lines: of convertd.conf"""
    return ["unshare", "--mount", "sh", "-c", INSTALLED % GROUP, "sh", write(lab, "installed.conf", *lines)]


def test_files_of_the_service():
    """A key file, or a list of cookies, that root makes can be read by the group convertd, if there is one, and by no others."""
    with near() as lab:
        program = lab.build.program("convertd")
        # an ordinary user's namespace lacks the group
        wanted = (0o600, 0) if sandbox.in_user_namespace() else (0o640, GROUP)
        keys, listed = (os.path.join(lab.directory, name) for name in ("keys", "list"))
        lab.converter.run([*installed(lab), program, "--make-key", keys])
        lab.converter.run([*installed(lab), program, "--cookie-list", listed, "--new-client", "phone"])
        for path in (keys, listed):
            found = os.stat(path)
            equal((found.st_mode & 0o7777, found.st_gid), wanted, "rights and group of " + path)


def test_files():
    """--make-key makes a file that --cookie-key takes, and overwrites none; convertd refuses files that others can read, and short keys."""
    with near() as lab:
        program = lab.build.program("convertd")
        path = os.path.join(lab.directory, "made")
        lab.converter.run([program, "--make-key", path])
        check(hidden(path), "others can read it")
        lab.converter.run([program, "--cookie-key", path, "--check-config"])
        with open(path, encoding="ascii") as file:
            before = file.read()
        result = lab.converter.run([program, "--make-key", path], check=False)
        check(result.returncode == 1 and path in result.stderr and "exists" in result.stderr, result)
        with open(path, encoding="ascii") as file:
            equal(file.read(), before, "the file")
        cases = [(0o644, 0, "--cookie-key", ("0644", "chmod 600")), (0o660, 0, "--cookie-list", ("0660", "chmod 600"))]
        if not sandbox.in_user_namespace():
            # in a user namespace there are no other users
            cases.append((0o600, 65534, "--cookie-key", ("65534", "chown")))
        for mode, owner, option, words in cases:
            os.chmod(path, mode)
            os.chown(path, owner, owner)
            for last in ("--check-config", "--no-silence"):
                result = lab.converter.run([program, option, path, last], check=False)
                check(result.returncode == 2 and all(word in result.stderr for word in (option, path[:40]) + words), result)
        path = write(lab, "keys", new_key(), "0011")
        result = lab.converter.run([program, "--cookie-key", path, "--check-config"], check=False)
        check(result.returncode == 2 and path + ":2: " in result.stderr and "--make-key" in result.stderr, result)


# --- floods and programs ------------------------------------------------------------------------------------------


def test_forged_addresses():
    """Forged SYNs with no cookie or another address's reach no server."""
    with near() as lab, Server(lab, 80, backlog=4096) as server:
        lab.converter.ip("route add 10.50.0.0/16 via %s" % lab.client.wifi4)
        with converter(lab, "--cookie-key", write(lab, "keys", new_key()), "--request-timeout", "1"):
            with Client(lab.client, lab.converter.addr4) as client:
                cookie = cookie_tlv(missing_cookie(ask(client, message(INFO))))
            target = connect_tlv(lab.server.addr4, 80)
            with lab.capture(lab.converter, "core", "tcp") as capture, Forger(lab.client, lab.converter.addr4) as forger:
                for i in range(500):
                    forger.syn("10.50.%d.%d" % (i // 250, i % 250 + 1), 1024 + i,
                               message(target) if i % 2 else message(target, cookie))
                with Client(lab.client, lab.converter.addr4) as client:
                    served(client, server, message(target, cookie))
            equal(len([packet for packet in capture.packets() if packet.syn]), 1, "SYNs to the server")


def test_the_shim():
    """The shim learns a cookie by its first connection and sends it with later ones; or it sends the user's."""
    with near() as lab:
        lab.http()
        curl = ["curl", "-q", "-sS", "--http1.0", "-w", "%{size_download} "]
        curl += ["-o", "/dev/null", "http://%s/bytes/1000" % lab.server.addr4] * 5
        with converter(lab, "--cookie-key", write(lab, "keys", new_key())) as process:
            result = lab.client.run(curl, env=lab.converted())
            equal(result.stdout, "1000 " * 5, "bytes")
            # with any outcome: curl may send a request on a connection that the server closes just then, and repeat it on another one
            def sessions():
                """The lines of sessions, without the probes of a path that a busy machine may cause."""
                return [line for line in process.log_text().splitlines() if "bytes up" in line and " to nowhere: " not in line]

            wait_until(lambda: len(sessions()) >= 6, 5, "five sessions, and one without a cookie")
            equal(sum("missing cookie" in line for line in sessions()), 1, "connections without a cookie")
            equal(lab.shim_log().count("converted over MPTCP"), 5, "converted connections: " + lab.shim_log())
        with converter(lab, "--cookie-list", write(lab, "list", "one of ours")) as process:
            result = lab.client.run(curl, env=lab.converted(CONVERT_COOKIE="one of ours"))
            equal(result.stdout, "1000 " * 5, "bytes")
            check(not re.search("(missing|invalid) cookie", process.log_text()), process.log_text())
            result = lab.client.run(curl, env=lab.converted(CONVERT_COOKIE="none of yours", CONVERT_FALLBACK="none"),
                                    check=False)
            equal(result.returncode, 7, "curl's status with another cookie")
            wait_until(lambda: "invalid cookie" in process.log_text(), 5, "the converter's line")  # pylint: disable=W0640


def test_a_new_client():
    """--new-client prints a line that admits a client, whose name log and metrics have; --remove-client ends that."""
    with near() as lab:
        lab.http()
        path = write(lab, "list", "another # of before", mode=0o640)
        os.chown(path, 0, 1)
        command = [lab.build.program("convertd"), "--cookie-list", path, "--listen", "%s:1234" % lab.converter.addr4]
        curl = ["curl", "-q", "-sS", "--http1.0", "-o", "/dev/null", "http://%s/bytes/1000" % lab.server.addr4]

        def converted(line):
            """Runs a client with this line of a shell; returns its status."""
            variables = dict(word.split("=", 1) for word in line.split()[1:])
            return lab.client.run(curl, env=lab.converted(**variables, CONVERT_FALLBACK="none"), check=False).returncode

        with converter(lab, "--cookie-list", path, *OPTIONS) as process:
            result = lab.converter.run([*command, "--new-client", "laptop"])
            line, = re.findall("^export .*$", result.stderr, re.MULTILINE)
            cookie, = re.findall("CONVERT_COOKIE=([-_A-Za-z0-9]{24})$", line)
            equal(result.stdout, "converter %s:1234\ncookie %s\n" % (lab.converter.addr4, cookie), "the configuration file")
            status = os.stat(path)
            equal((status.st_mode & 0o7777, status.st_uid, status.st_gid), (0o640, 0, 1), "rights and owner")
            equal(os.listdir(lab.directory).count("list"), 1, "files")
            equal(converted(line), 7, "curl's status before the reload")
            reload(process)
            equal(converted(line), 0, "curl's status with the cookie")
            check(converted("export CONVERT_COOKIE=none-of-ours") != 0, "another cookie is taken")
            wait_until(lambda: "client laptop" in process.log_text(), 5, "the client's name in the log")
            metrics = Metrics(lab.converter)
            equal(metrics("convertd_client_connections_total", client="laptop"), 1, "connections of the client")
            again = lab.converter.run([*command, "--new-client", "laptop"], check=False)
            equal((again.returncode, again.stdout), (1, ""), "a second cookie for the same name")
            lab.converter.run([*command, "--remove-client", "laptop"])
            reload(process)
            equal(converted(line), 7, "curl's status after the withdrawal")
            equal(metrics("convertd_client_connections_total", client="laptop"), 1, "connections of the client")
            with open(path, encoding="ascii") as file:
                equal(file.read(), "another # of before\n", "the rest of the list")
            gone = lab.converter.run([*command, "--remove-client", "laptop"], check=False)
            equal(gone.returncode, 1, "a client that isn't there")


def test_settings_of_a_new_client():
    """The client's address is that of /etc/convertd/convertd.conf, also if the command line names the list; or of --config's file."""
    with near() as lab:
        program = lab.build.program("convertd")
        words = [*installed(lab, "own-address 192.0.2.9", "listen [::]:444", "cookie-list /nonexistent/list"), program, "--cookie-list",
                 os.path.join(lab.directory, "list")]
        other = write(lab, "other.conf", "own-address 192.0.2.8")
        for name, options, address in (("laptop", (), "192.0.2.9:444"), ("phone", ("--config", other), "192.0.2.8:1234"),
                                       ("tablet", ("--listen", "192.0.2.7:445"), "192.0.2.9:445")):
            said = lab.converter.run([*words, *options, "--new-client", name]).stdout
            equal(said.splitlines()[0], "converter " + address, "the first line for the " + name)


def test_the_last_client():
    """A list without clients is valid and admits nobody; others can't read a new list."""
    with near() as lab, Server(lab, 80):
        path = os.path.join(lab.directory, "new")
        command = [lab.build.program("convertd"), "--cookie-list", path]
        lab.converter.run([*command, "--new-client", "phone"])
        check(hidden(path), "others can read it")
        with open(path, encoding="ascii") as file:
            cookie = file.read().split()[0].encode()
        with converter(lab, "--cookie-list", path) as process:
            lab.converter.run([*command, "--remove-client", "phone"])
            reload(process)
            for client in clients(lab, deliveries=["syn"]):
                equal(ask(client, message(connect_tlv(lab.server.addr4, 80), cookie_tlv(cookie))), NOT_AUTHORIZED, "the cookie")


if __name__ == "__main__":
    main()
