#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_without_fastopen.py - Multipath TCP sockets without Fast Open, as on Debian 12's Linux 6.1, and the alternatives

On a newer kernel a BPF program refuses the same options as 6.1 (apps/no_fastopen.c), on the client and the converter; the tests are the
same on 6.1 itself. So this machine tests the behaviour of Debian 12 at its own speed, without an emulator (doc/kernels.md).
"""
import contextlib
import errno
import os
import signal
import subprocess

from convertlab import Lab, Link, check, equal, kernel, main, wait_until
from convertlab.harness import Unsuitable
from convertlab.programs import APPS, c_program
from convertlab.supervised import TCP, Bench
from convertlab.peers import Client, message, octets, tlvs
from test_convertize_check import DEGRADED, NEWER_KERNEL, Report

NOT_ALLOWED = 77
INFO = octets("01010000")
WITHHOLDING = 0xf0  # doc/private-tlvs.md
WARNED = "no Fast Open without cookies"
PROBE = """
import errno, socket
for protocol in (socket.IPPROTO_TCP, 262):
    for option in (23, 30, 34, 43): # TCP_FASTOPEN, TCP_FASTOPEN_CONNECT, TCP_FASTOPEN_NO_COOKIE, TCP_IS_MPTCP
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol) as sock:
            try:
                if option == 43:
                    sock.getsockopt(socket.IPPROTO_TCP, option)
                else:
                    sock.setsockopt(socket.IPPROTO_TCP, option, 1)
                print("taken")
            except OSError as error:
                print("refused" if error.errno in (errno.EOPNOTSUPP, errno.ENOPROTOOPT) else error)
"""


def removed(group):
    """Tries to remove the control group; returns False while processes that were just killed are still in it."""
    try:
        os.rmdir(group)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        return False
    return True


@contextlib.contextmanager
def old_kernel():
    """Yields the words in front of a command that take Fast Open from its Multipath TCP sockets. Removes its control group at the end."""
    program = c_program("no_fastopen", "no_fastopen.c")
    place = "/run/convertlab/cgroups"
    os.makedirs(place, exist_ok=True)
    mounted = subprocess.run(["mount", "-t", "cgroup2", "none", place], stderr=subprocess.PIPE, text=True, check=False)
    if mounted.returncode:
        raise Unsuitable("no cgroup2 file system here: " + mounted.stderr)
    group = os.path.join(place, "convertlab-%x" % os.stat("/proc/self/ns/mnt").st_ino)
    try:
        os.mkdir(group)
    except OSError as error:
        raise Unsuitable("no control group can be made here: %s" % error) from error
    try:
        words = [program, group]
        tried = subprocess.run([*words, "true"], stderr=subprocess.PIPE, text=True, check=False)
        if tried.returncode == NOT_ALLOWED:
            raise Unsuitable("no BPF program may refuse options here, which takes root's rights: " + tried.stderr)
        equal(tried.returncode, 0, tried.stderr)
        yield words
    finally:
        try:
            wait_until(lambda: removed(group), what="the processes of %s end" % group)
        finally:
            subprocess.run(["umount", place], check=True)


@contextlib.contextmanager
def old(**options):
    """Yields (lab, the words of old_kernel()): one network, and a converter on such a kernel."""
    with old_kernel() as words, Lab(wifi=Link(delay_ms=20), lte=None, core=Link(delay_ms=1), **options) as lab:
        process = lab.convertd(wrapper=words)
        check(WARNED in process.log_text(), "convertd says nothing at its start: " + process.log_text())
        lab.echo()
        yield lab, words


def test_what_is_refused():
    """The stand-in refuses what 6.1 does, and to sockets of Multipath TCP alone; TCP_IS_MPTCP, which 6.1 hasn't got, to all."""
    with old_kernel() as words:
        said = subprocess.run([*words, "python3", "-c", PROBE], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    equal(said, ["taken"] * 3 + ["refused"] * 5, "options of TCP, then of Multipath TCP")


def test_preloaded_programs():
    """The shim converts their connections over Multipath TCP, with no data in the SYN; the programs see the same as without it."""
    with old() as (lab, words):
        for way in ("blocking", "poll", "select", "epoll-edge", "epoll-before"):
            for port in (7, lab.addresses.refused_port):
                command = ["python3", os.path.join(APPS, "connect_probe.py"), way, lab.server.addr4, port]
                with lab.capture(lab.client, "wifi", "tcp port 1234") as capture:
                    converted = lab.client.run([*words, *command], env=lab.converted()).stdout
                equal(converted, lab.client.run(command).stdout, "%s, port %d" % (way, port))
                # SYNs over TCP, if there are any, are probes
                syns = [packet for packet in capture.packets() if packet.syn and packet.dport == 1234 and packet.mptcp]
                equal({packet.payload for packet in syns}, {b""}, "what the SYNs of Multipath TCP carry, %s" % way)
        equal(lab.shim_log().count(kernel.BEHIND), 5, "conversions in\n" + lab.shim_log())


def test_supervised_programs():
    """Their connections are converted over TCP: without those options the supervisor can't use MPTCP sockets."""
    if os.environ.get("SANITIZER_PRELOAD"):
        raise Unsuitable("not under sanitizers: the program is static")
    with old() as (lab, words):
        place = Bench(lab)
        learned = os.path.join(lab.directory, "learned")
        os.mkdir(learned)
        env = place.env(CONVERT_CACHE="", XDG_RUNTIME_DIR=learned)
        for way in ("blocking", "nonblocking", "nonblocking", "nonblocking"):  # from the second on with what the first has learned
            result = lab.client.run([*words, place.convertize, place.client, lab.server.addr4, 7, way], env=env, check=False)
            check("answer=hello" in result.stdout and "protocol=" + TCP in result.stdout, "%s: %s" % (way, result))
            equal(result.stderr.count("converted over TCP"), 1, result.stderr)


def test_silence_is_not_offered():
    """The converter's listener takes no data in SYNs, and would reset a client that relied on silence."""
    with old() as (lab, _), Client(lab.client, lab.converter.addr4) as client:
        client.send(message(INFO))
        equal(dict(tlvs(client.answer()))[WITHHOLDING], octets("0103 02bc 6c63"), "the Withholding TLV without silence")


def test_the_converter_warns_once():
    """convertd warns once, however many places it listens at and a reload adds, since its kernel doesn't change."""
    with old_kernel() as words, Lab(wifi=Link(delay_ms=1), lte=None, core=Link(delay_ms=1)) as lab:
        path = os.path.join(lab.directory, "convertd.conf")
        places = ["listen [::]:%d\n" % port for port in (1234, 1235, 1236)]
        with open(path, "w", encoding="ascii") as file:
            file.writelines(places[:2])
        process = lab.convertd(["--config", path], wrapper=words)
        with open(path, "w", encoding="ascii") as file:
            file.writelines(places)
        process.send_signal(signal.SIGHUP)
        process.wait_log("reloaded: [::]:1234 (MPTCP), [::]:1235 (MPTCP), [::]:1236 (MPTCP); ")
        equal(process.log_text().count(WARNED), 1, "lines that say so in\n" + process.log_text())


def test_the_doctor():
    """convertize check names the lacking feature, its cost, and the version that has it, on either side, and finds no other fault."""
    with old() as (lab, words):
        report = Report(lab, wrapper=words)
        equal(report.exit_status, DEGRADED, report.facts)
        equal([fact for fact in report.bad() if fact[0] != "kernel.syn_data"], [], "what else isn't as it should be")
        lacks = report.one("kernel.syn_data")
        check("each connection" in lacks["text"], lacks)
        equal((lacks["status"], lacks["remedy"]), ("warn", NEWER_KERNEL), lacks)
        if kernel.has("fastopen"):  # as a client sees the converter whose kernel can
            report = Report(lab)
            equal((report.status, report.bad()), (DEGRADED, [("converter.syn_data", "warn")]), "of the converter: %s" % report.facts)
            check("Linux 6.2 or newer" in report.remedies()[0], report.remedies())


if __name__ == "__main__":
    main()
