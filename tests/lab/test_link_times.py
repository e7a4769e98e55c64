#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_link_times.py - are the lab's links as slow and as fast as they are set?

All other measurements rely on these links, so this file measures the links themselves.
"""
import os
import statistics

from convertlab import Lab, Link, check, equal, main, measured, measured_between, measures, need
from test_link import Datagrams, cpu_seconds, one_link

# how much later a packet may come, there and back: sanitizers slow linkem down
LATE_MS = 5 if os.environ.get("SANITIZER_PRELOAD") else 1


@measures
def test_round_trip():
    """Twice the delay, hardly more, in both families, and the sum over two links."""
    with Lab(wifi=Link(delay_ms=10), lte=Link(delay_ms=30), core=Link(delay_ms=5)) as lab:
        medians = []
        for address, expected in ((lab.converter.wifi4, 20), (lab.converter.wifi6, 20), (lab.converter.lte4, 60),
                                  (lab.converter.lte6, 60), (lab.server.addr4, 30), (lab.server.addr6, 30)):
            times = lab.client.ping(address, count=15)
            equal(len(times), 15, "answers from %s" % address)
            # ping(8) is as precise as its own scheduling lets it be
            check(min(times) >= expected, "%s answered after %g ms, before twice the delay" % (address, min(times)))
            measured_between(statistics.median(times), expected, expected + LATE_MS, "median round trip to %s in ms" % address)
            medians.append(statistics.median(times) - expected)
        return "medians %s ms above twice the delay" % " ".join("%.2f" % median for median in medians)


@measures
def test_asymmetric():
    """Directions have settings of their own, which can change."""
    with one_link(delay_ms=5, a_to_b={"delay_ms": 20}) as lab:
        measured_between(statistics.median(lab.client.ping(lab.converter.wifi4, count=9)), 25, 25 + LATE_MS, "round trip of 5 + 20 ms")
        lab.wifi.set("b-to-a", delay_ms=40)
        measured_between(statistics.median(lab.client.ping(lab.converter.wifi4, count=9)), 60, 60 + LATE_MS, "round trip of 40 + 20 ms")
        lab.wifi.set(delay_ms=1)
        measured_between(statistics.median(lab.client.ping(lab.converter.wifi4, count=9)), 2, 2 + LATE_MS, "round trip of 1 + 1 ms")


@measures
def test_hosts_with_delays_of_their_own():
    """Packets from and to a host have its delay, in both families; other hosts have the link's."""
    with one_link(delay_ms=5) as lab:
        lab.client.ip("addr add 10.1.0.77/24 dev wifi", "addr add fd01::77/64 dev wifi nodad")
        lab.wifi.host("10.1.0.77", 30)
        lab.wifi.host("fd01::77", 20)
        lab.wifi.host("fd01::77", 45, "b-to-a")
        for source, target, expected in (("10.1.0.77", lab.converter.wifi4, 60), ("fd01::77", lab.converter.wifi6, 65),
                                         (lab.client.wifi4, lab.converter.wifi4, 10), (lab.client.wifi6, lab.converter.wifi6, 10)):
            times = lab.client.ping(target, count=9, source=source)
            equal(len(times), 9, "answers to %s" % source)
            check(min(times) >= expected, "%s was answered after %g ms, before its delays" % (source, min(times)))
            measured_between(statistics.median(times), expected, expected + LATE_MS, "median round trip of %s in ms" % source)


@measures
def test_jitter_keeps_order():
    """Delays spread over the whole range; packets stay in order."""
    with one_link(delay_ms=5, a_to_b={"jitter_ms": 8}) as lab:
        times = lab.client.ping(lab.converter.wifi4, count=60, interval=0.02)
        check(min(times) >= 10, "a round trip took %g ms, less than twice the delay" % min(times))
        # Of 60 even the third and the 54th are near the limits. A busy machine delays a few, but not six.
        shortest, longest = sorted(times)[2], sorted(times)[53]
        measured_between(shortest, 10, 12 + LATE_MS, "third shortest of 60 round trips in ms")
        measured_between(longest, 15, 18 + LATE_MS, "54th shortest of 60 round trips in ms")
        with Datagrams(lab) as datagrams:
            datagrams.send(200)
            equal(datagrams.take(), list(range(200)), "the datagrams' order")


def goodput(lab, address, size, options=()):
    """Mbit/s of a transfer with curl, from its first to its last byte."""
    url = "http://%s/bytes/%d" % ("[%s]" % address if ":" in address else address, size)
    result = lab.client.run(["curl", "-sS", "-o", "/dev/null", "-w", "%{time_starttransfer} %{time_total} %{size_download}",
                             *options, url])
    first, total, got = map(float, result.stdout.split())
    equal(int(got), size, "bytes from %s" % url)
    return size * 8 / 1e6 / (total - first)


@measures
def test_rate():
    """A TCP stream fills the rate, except for headers (1448 of 1500 bytes are data, 0.965) and the start."""
    need("curl")
    found = []
    with Lab(wifi=Link(delay_ms=5, rate_mbit=50, queue=200), lte=Link(delay_ms=5, rate_mbit=20, queue=200),
             congestion="reno") as lab:
        lab.http()
        for address, device, rate, size in ((lab.server.addr4, lab.client.wifi4, 50, 12000000),
                                            (lab.server.addr6, lab.client.wifi6, 50, 12000000),
                                            (lab.server.addr4, lab.client.lte4, 20, 6000000)):
            share = goodput(lab, address, size, ["--interface", device]) / rate
            measured_between(share, 0.93, 0.98, "goodput from %s to %s as a share of %d Mbit/s" % (address, device, rate))
            found.append("%.3f" % share)
    return "%s of the rate" % " ".join(found)


@measures
def test_rate_upload():
    """The other direction has a rate of its own."""
    need("curl")
    with one_link(delay_ms=5, rate_mbit=100, queue=200, a_to_b={"rate_mbit": 10}) as lab:
        lab.http()
        body = os.path.join(lab.directory, "body")
        with open(body, "wb") as file:
            file.write(bytes(2500000))
        result = lab.client.run(["curl", "-sS", "-T", body, "-H", "Expect:", "-w", "%{time_total} %{size_upload}", "-o",
                                 "/dev/null", "http://%s/" % lab.server.addr4])
        seconds, size = map(float, result.stdout.split())
        share = size * 8 / 1e6 / seconds / 10
        measured_between(share, 0.92, 0.98, "upload as a share of 10 Mbit/s")
        return "%.3f of the rate" % share


@measures
def test_queue():
    """A burst finds room for one packet on the wire and `queue` behind it; the rest is dropped, and counted."""
    # a packet of 1500 bytes takes 24 ms: a burst is over long before the first has left
    with one_link(rate_mbit=0.5, queue=20) as lab, Datagrams(lab, 1500) as datagrams:
        datagrams.send(60)
        got, dropped = datagrams.take(), lab.wifi.stats()["a-to-b"]["queue_drop"]
        equal((got[:21], len(got) + dropped), (list(range(21)), 60), "the datagrams that got through, and the sum with the dropped ones")
        measured(dropped == 39, "%d packets dropped by the queue, not 39" % dropped)


@measures
def test_queue_delay():
    """A full queue delays by its length over the rate."""
    with one_link(rate_mbit=2, queue=50) as lab, Datagrams(lab, 1000) as datagrams:
        datagrams.send(40)
        # 40 packets of 4 ms each, then 84 bytes of ping at the same rate both ways
        measured_between(lab.client.ping(lab.converter.wifi4)[0], 150, 162, "round trip in ms behind 40 packets of 4 ms")


@measures
def test_ceiling():
    """Without limits linkem hardly matters: its share of a round trip, its rate, and its CPU time."""
    need("iperf3")
    with one_link() as lab:
        times = lab.client.ping(lab.converter.wifi4, count=100)
        measured(statistics.median(times) < LATE_MS, "linkem adds %.3f ms to a round trip" % statistics.median(times))
        lab.start_listening(lab.converter, ["iperf3", "-s"], 5201)
        pid = lab.wifi.process.pid
        before = cpu_seconds(pid)
        result = lab.client.run(["iperf3", "-c", lab.converter.wifi4, "-t", "3", "-f", "m"])
        used = (cpu_seconds(pid) - before) / 3
        rate = next(float(line.split("Bytes")[1].split()[0]) for line in result.stdout.splitlines() if "receiver" in line)
        # far below its usual 3 Gbit/s, for machines that are busy or instrumented
        measured(rate > 200, "%g Mbit/s" % rate)
        stats = lab.wifi.stats()["a-to-b"]
        equal((stats["overflow"], stats["error"]), (0, 0), "packets dropped for want of buffers or by the device")
        return "median ping %.3f ms, %d Mbit/s, %.0f%% of a CPU, %d us from read to write" % (
            statistics.median(times), rate, used * 100, stats["late_us"])


@measures
def test_cost_at_50_mbit():
    """The CPU time of a link of 50 Mbit/s."""
    need("iperf3")
    with one_link(delay_ms=10, rate_mbit=50, queue=200) as lab:
        lab.start_listening(lab.converter, ["iperf3", "-s"], 5201)
        before = cpu_seconds(lab.wifi.process.pid)
        lab.client.run(["iperf3", "-c", lab.converter.wifi4, "-t", "2"])
        used = (cpu_seconds(lab.wifi.process.pid) - before) / 2
        measured(used < 0.5, "%.0f%% of a CPU" % (used * 100))
        stats = lab.wifi.stats()["a-to-b"]
        return "%.1f%% of a CPU; packets %d us late, at most %d" % (used * 100, stats["late_us"], stats["late_max_us"])


if __name__ == "__main__":
    main()
