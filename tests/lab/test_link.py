#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_link.py - do the lab's links behave as they are set?

Every other test in the lab relies on these links. Their delays and rates are measured in test_link_times.py.
"""
import math
import os
import re
import socket
import struct
import time

from convertlab import Lab, Link, Veth, between, check, equal, kernel, main, need, wait_until

IPPROTO_MPTCP = 262
MSG_FASTOPEN = 0x20000000
TCP_FASTOPEN, TCP_FASTOPEN_NO_COOKIE = 23, 34


def one_link(**settings):
    """A lab with one access link with these settings."""
    return Lab(wifi=Link(**settings), lte=None)


class Datagrams:
    """Numbered UDP datagrams from the client to the converter over wifi."""

    def __init__(self, lab, size=100):
        self._lab = lab
        self._size = size
        self._receiver = lab.converter.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._receiver.bind((lab.converter.wifi4, 6000))
        self._receiver.setblocking(False)
        self._sender = lab.client.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._sender.connect((lab.converter.wifi4, 6000))
        self.sent = 0
        self.received = []

    def send(self, count):
        """Sends datagrams without a pause; IP packets have the size given."""
        for _ in range(count):
            self._sender.send(struct.pack("!I", self.sent).ljust(self._size - 28, b"\0"))
            self.sent += 1

    def take(self):
        """Waits until the link is idle; returns the numbers of all datagrams that have arrived."""
        wait_until(lambda: self._lab.wifi.stats()["a-to-b"]["in"] >= self.sent, 5, "linkem to read all packets")
        self._lab.wifi.wait_idle()
        while True:
            try:
                self.received.append(struct.unpack("!I", self._receiver.recv(2048)[:4])[0])
            except BlockingIOError:
                return self.received

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._receiver.close()
        self._sender.close()


def test_jitter_with_reordering():
    """With reorder, jitter changes the order; no packet is lost or doubled."""
    with one_link(delay_ms=5, a_to_b={"jitter_ms": 8, "reorder": True}) as lab, Datagrams(lab) as datagrams:
        datagrams.send(200)
        received = datagrams.take()
        equal(sorted(received), list(range(200)), "the datagrams")
        check(received != sorted(received), "200 datagrams with up to 8 ms of jitter came in order")


def test_loss():
    """The share that is set, in one direction only, and the same packets for the same seed."""
    count, share = 4000, 0.05
    lost = {}
    for seed in (1, 1, 2):
        with one_link(a_to_b={"loss": share}, seed=seed) as lab, Datagrams(lab) as datagrams:
            for _ in range(count // 200):
                datagrams.send(200)
                datagrams.take()
            stats = lab.wifi.stats()
            missing = sorted(set(range(count)) - set(datagrams.received))
            equal(stats["a-to-b"]["lost"], len(missing), "packets counted as lost")
            equal(stats["b-to-a"]["lost"], 0, "packets lost the other way")
            spread = 5 * math.sqrt(count * share * (1 - share))
            between(len(missing), count * share - spread, count * share + spread, "lost of %d" % count)
            equal(missing, lost.setdefault(seed, missing), "what seed %d loses" % seed)
    check(lost[1] != lost[2], "seeds 1 and 2 lose the same packets")
    return "%d and %d of %d lost at 5%%" % (len(lost[1]), len(lost[2]), count)


def test_down_and_up():
    """A link that is down drops packets in both directions or in one; a transfer survives it."""
    need("curl")
    with one_link(delay_ms=2, rate_mbit=40, queue=200) as lab:
        lab.wifi.down()
        equal(lab.client.ping(lab.converter.wifi4, 2), [], "answers while the link is down")
        equal(lab.wifi.stats()["a-to-b"]["down_drop"], 2, "packets dropped because the link is down")
        lab.wifi.up()
        lab.wifi.down("b-to-a")
        equal(lab.client.ping(lab.converter.wifi6, 2), [], "answers while the way back is down")
        equal(lab.wifi.stats()["b-to-a"]["down_drop"], 2, "answers dropped because the way back is down")
        lab.wifi.up()
        equal(len(lab.client.ping(lab.converter.wifi4, 2)), 2, "answers once the link is up again")
        lab.http()
        curl = lab.client.popen(["curl", "-sS", "-o", "/dev/null", "-w", "%{size_download}",
                                 "http://%s/bytes/20000000" % lab.server.addr4])
        wait_until(lambda: lab.wifi.stats()["b-to-a"]["out_bytes"] > 1000000, 10, "a part of the transfer")
        lab.wifi.down()
        wait_until(lambda: lab.wifi.stats()["b-to-a"]["down_drop"] > 3, 10, "packets lost in mid-transfer")
        lab.wifi.up()
        equal(curl.wait(30), 0, "curl's status")
        equal(curl.log_text(), "20000000", "bytes that curl got")


def test_device_down():
    """While an administrator has a device down, linkem neither ends nor spins; then the link works again."""
    with one_link() as lab:
        lab.client.ip("link set wifi down")
        begun, used = time.monotonic(), cpu_seconds(lab.wifi.process.pid)
        check(lab.converter.run(["ping", "-n", "-c", "1", "-W", "1", lab.client.wifi4], check=False).returncode,
              "an answer from a device that is down")
        used, seconds = cpu_seconds(lab.wifi.process.pid) - used, time.monotonic() - begun
        check(used < seconds / 5, "linkem used %g s of CPU in %g s while the device was down" % (used, seconds))
        lab.client.ip("link set wifi up")
        wait_until(lambda: len(lab.client.ping(lab.converter.wifi4, 2)) == 2, 10, "two answers once the device is up again")


def test_mtu():
    """The MTU holds to the byte; the converter reports it for what it forwards."""
    with Lab(wifi=Link(mtu=1400), lte=None) as lab:
        for address, fits in ((lab.converter.wifi4, 1372), (lab.converter.wifi6, 1352)):
            ping = ["ping", "-n", "-M", "do", "-c", "1", address]
            lab.client.run([*ping, "-W", "10", "-s", fits])
            check(lab.client.run([*ping, "-W", "1", "-s", fits + 1], check=False).returncode, "%d bytes fit into 1400" % (fits + 29))
        said = lab.server.run(["ping", "-n", "-M", "do", "-c", "1", "-W", "1", "-s", "1373", lab.client.wifi4], check=False)
        check("mtu = 1400" in said.stdout or "mtu=1400" in said.stdout, "no word of the MTU:\n" + said.stdout)


def checksum_right(packet):
    """Are the IPv4 and the TCP checksums of a captured packet right?"""
    def total(data):
        words = sum(struct.unpack("!%dH" % (len(data) // 2), data[:len(data) & ~1]))
        words += data[-1] << 8 if len(data) & 1 else 0
        while words >> 16:
            words = (words & 0xffff) + (words >> 16)
        return words
    ipv4 = packet.data[0] >> 4 == 4
    header = (packet.data[0] & 15) * 4 if ipv4 else 40
    addresses = packet.data[12:20] if ipv4 else packet.data[8:40]
    segment = packet.data[header:]
    right = total(addresses + struct.pack("!HH", packet.protocol, len(segment)) + segment) == 0xffff
    return right and (not ipv4 or total(packet.data[:header]) == 0xffff)


def receive(stream, size):
    """Returns so many bytes, or fewer at the end of the stream."""
    got = b""
    while len(got) < size:
        data = stream.recv(size - len(got))
        if not data:
            break
        got += data
    return got


def mptcp_exchange(lab, address, early=b""):
    """Connects over MPTCP to the converter and sends odd amounts in each direction; returns whether it is MPTCP still."""
    if early:
        kernel.need("fastopen")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with lab.converter.socket(family, socket.SOCK_STREAM, IPPROTO_MPTCP) as listener, \
            lab.client.socket(family, socket.SOCK_STREAM, IPPROTO_MPTCP) as client:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if early:
            listener.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN, 5)
            listener.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 1)
        listener.bind((address, 7000))
        listener.listen(5)
        for one in (listener, client):
            one.settimeout(10)
        if early:
            client.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 1)
            client.sendto(early, MSG_FASTOPEN, (address, 7000))
        else:
            client.connect((address, 7000))
        accepted, _ = listener.accept()
        with accepted:
            accepted.settimeout(10)
            client.sendall(b"x" * 1001)
            check(receive(accepted, len(early) + 1001) == early + b"x" * 1001, "the converter got other bytes")
            accepted.sendall(b"y" * 333)
            check(receive(client, 333) == b"y" * 333, "the client got other bytes")
            return kernel.speaks_mptcp(client)


def by_family(lab):
    """The converter's addresses on wifi."""
    return lab.converter.wifi4, lab.converter.wifi6


def test_switch_has_the_queue():
    """A switch drops packets that don't fit into its queue, and their sender isn't told."""
    sent, size = 40, 1000
    with Lab(wifi=Veth(rate_mbit=0.1, burst="1500", limit="%d" % (10 * size), switched=True), lte=None) as lab:
        receiver = lab.converter.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sender = lab.client.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with receiver, sender:
            receiver.bind((lab.converter.wifi4, 6000))
            receiver.setblocking(False)
            received = []

            def dropped(host, dev):
                said = host.run(["tc", "-s", "qdisc", "show", "dev", dev]).stdout
                found = re.search(r"dropped (\d+)", said)
                return int(found.group(1)) if found else 0

            def all_accounted_for():
                try:
                    while True:
                        received.append(receiver.recv(2048))
                except BlockingIOError:
                    return len(received) + dropped(lab.wifi.host, "to-converter") >= sent
            for _ in range(sent):
                sender.sendto(bytes(size - 28), (lab.converter.wifi4, 6000))
            wait_until(all_accounted_for, 20, lambda: "%d datagrams, %d arrived" % (sent, len(received)))
            lost = dropped(lab.wifi.host, "to-converter")
            equal(len(received) + lost, sent, "datagrams that arrived or were lost in the switch")
            between(len(received), 9, sent - 1, "datagrams that passed: at least the queue's")
            equal(dropped(lab.client, "wifi"), 0, "lost on the client's own device")


def test_strip_mptcp():
    """Options 30 become NOPs, with right checksums, and the connection becomes TCP; without the setting the link changes nothing."""
    with one_link() as lab:
        for address in by_family(lab):
            for strip in (False, True):
                lab.wifi.set(strip_mptcp=strip)
                with lab.capture(lab.client, "wifi", "tcp") as sent, lab.capture(lab.converter, "wifi", "tcp") as got:
                    equal(mptcp_exchange(lab, address), not strip, "is it MPTCP, with strip_mptcp=%s" % strip)
                check("MP_CAPABLE" in next(p for p in sent.packets() if p.syn).mptcp, "the client's SYN has no MP_CAPABLE")
                arrived = [p for p in got.packets() if p.dst == address]
                equal(any(p.mptcp for p in arrived), not strip, "MPTCP options behind the link")
                check(all(checksum_right(p) for p in arrived), "a checksum is wrong, with strip_mptcp=%s" % strip)
        check(lab.wifi.stats()["a-to-b"]["stripped"] >= 2, "nothing was counted as stripped")


def test_strip_mptcp_behind():
    """SYN and SYN+ACK keep their MP_CAPABLE, nothing behind them has an option 30."""
    with one_link() as lab:
        lab.wifi.set(strip_mptcp_behind=True)
        with lab.capture(lab.converter, "wifi", "tcp") as got:
            mptcp_exchange(lab, lab.converter.wifi4)
        arrived = [p for p in got.packets() if p.dst == lab.converter.wifi4]
        check(all("MP_CAPABLE" in p.mptcp for p in arrived if p.syn), "a SYN has lost its MP_CAPABLE")
        check(len(arrived) > 2 and not any(p.mptcp for p in arrived if not p.syn), "an option is left behind the handshake")


def test_strip_syn_data():
    """The link cuts the payload off a SYN, with right lengths and checksums, for even and odd sizes; the data arrives all the same."""
    with one_link() as lab:
        for address in by_family(lab):
            for strip, size in ((False, 301), (True, 301), (True, 300)):
                lab.wifi.set(strip_syn_data=strip)
                with lab.capture(lab.client, "wifi", "tcp") as sent, lab.capture(lab.converter, "wifi", "tcp") as got:
                    mptcp_exchange(lab, address, os.urandom(size))
                equal(len(next(p for p in sent.packets() if p.syn).payload), size, "payload of the SYN that was sent")
                arrived = [p for p in got.packets() if p.dst == address]
                equal(len(next(p for p in arrived if p.syn).payload), 0 if strip else size,
                      "payload of the SYN that arrived, with strip_syn_data=%s" % strip)
                check(all(checksum_right(p) for p in arrived), "a checksum is wrong, with strip_syn_data=%s" % strip)


def test_bad_settings():
    """linkem quotes a wrong setting in its answer, and changes nothing."""
    with one_link(delay_ms=1) as lab:
        for command, said in ((("set", "loss", "5"), '"5"'), (("set", "speed", "1mbit"), '"speed"'),
                              (("set", "delay=9s rate=fast"), '"fast"'), (("set",), '"set"'), (("down", "c"), '"down c"'),
                              (("host", "10.1.0"), '"10.1.0"'), (("host", "x" * 300, "5ms"), "is not an IP address"),
                              (("host", lab.client.wifi4, "9000"), '"9000"'), (("host", lab.client.wifi4), '""'), (("host",), '"host"')):
            try:
                lab.wifi.command(*command)
            except Exception as error:  # pylint: disable=broad-except
                check(said in str(error), "%r answers: %s" % (command, error))
            else:
                check(False, "%r is taken" % (command,))
        # with a delay of 9 s none would come while ping waits
        check(lab.client.ping(lab.converter.wifi4, count=9), "no answer: linkem has taken a part of a wrong setting")


def test_hosts_with_delays_of_their_own():
    """A host's packets keep their order when its delay falls, and other hosts' overtake them; in the end the host has the link's delay."""
    for seconds in (2, 8, 32):
        received, took = overtaken(seconds)
        if took < seconds - 0.5:
            break
    check(took < seconds - 0.5, "this machine took %g s to send five datagrams" % took)
    equal(received[:2], [0, 1], "what came first: the datagrams of the host without a delay of its own")
    equal(sorted(received), [0, 1, 1000, 1001, 1002], "the datagrams")
    check(received.index(1000) < received.index(1001), "a host's datagram overtook another of the same host: %s" % received)
    equal(received.index(1002), 2, "the place of the datagram that was sent when the host had no delay of its own any more")


def overtaken(seconds):
    """Delays a host's first datagram by so much. Returns (the datagrams in their order, seconds until linkem had read all)."""
    with one_link(delay_ms=1) as lab, Datagrams(lab) as near:
        lab.client.ip("addr add 10.1.0.77/24 dev wifi")
        far = lab.client.socket(socket.AF_INET, socket.SOCK_DGRAM)
        far.bind(("10.1.0.77", 0))
        far.connect((lab.converter.wifi4, 6000))
        with far:
            lab.wifi.host("10.1.0.77", 1000 * seconds, "a-to-b")
            begun = time.monotonic()
            far.send(struct.pack("!I", 1000))
            wait_until(lambda: lab.wifi.stats()["a-to-b"]["in"] >= 1, 5, "linkem to read the first datagram")
            lab.wifi.host("10.1.0.77", 3)
            far.send(struct.pack("!I", 1001))
            near.send(2)
            wait_until(lambda: lab.wifi.stats()["a-to-b"]["in"] >= 4, 5, "linkem to read the first four")
            lab.wifi.host("10.1.0.77", None)
            far.send(struct.pack("!I", 1002))
            wait_until(lambda: lab.wifi.stats()["a-to-b"]["in"] >= 5, 5, "linkem to read all five")
            took = time.monotonic() - begun
            lab.wifi.wait_idle(seconds + 10)
            near.sent = 5  # in all, which take() waits for
            return near.take(), took


def cpu_seconds(pid):
    """User and system time of a process."""
    with open("/proc/%d/stat" % pid, encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
