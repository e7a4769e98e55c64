# SPDX-License-Identifier: BSD-3-Clause
"""roundtrips - how long curl waits for a connection and for the first byte

20 ms of round trip to the proxy, 40 ms from there to the server, as in what Tessares and KT measured for the TCPM working group
(IETF 105): Convert needs none of SOCKS5's additional round trips. Stock curl in all cases. "connected" is when the request may
go to the server: behind all that a proxy has to be told. With Fast Open curl's request rides in the SYN, behind the Convert
message; there is no "connected" then.
"""
import shutil

from benchlib import median, quantile
from benchlib.proxies import convertd_options
from convertlab import Lab, LabError, Link

ROUNDS, ROUNDS_QUICK = 60, 3
ACCESS, CORE = Link(delay_ms=10), Link(delay_ms=20)
SOCKS_PORT, SOCKS_USER_PORT = 1080, 1081
SOCKS_USER = "somebody:secret"
WRITE_OUT = "%{time_pretransfer} %{time_starttransfer} %{http_code}"


def _ways(lab, bench):
    """How curl gets to the server, by name: (options, environment, words before the command)."""
    ours = lab.shim_env(CONVERT_ADDR=lab.converter.addr4)
    ways = {"direct": ([], None, []),
            "libconvert": ([], ours, []),
            "libconvert, Fast Open": (["--tcp-fastopen"], ours, [])}
    if not shutil.which("microsocks"):
        bench.remark("SOCKS5 is not measured: microsocks is missing; on Debian: apt-get install microsocks")
        return ways
    user, password = SOCKS_USER.split(":")
    lab.start_listening(lab.converter, ["microsocks", "-p", SOCKS_PORT], SOCKS_PORT)
    lab.start_listening(lab.converter, ["microsocks", "-p", SOCKS_USER_PORT, "-u", user, "-P", password], SOCKS_USER_PORT)
    socks = "%s:%d" % (lab.converter.addr4, SOCKS_PORT)
    ways["SOCKS5"] = (["--socks5", socks], None, [])
    ways["SOCKS5, password"] = (["--socks5", "%s:%d" % (lab.converter.addr4, SOCKS_USER_PORT), "--proxy-user", SOCKS_USER],
                                None, [])
    if shutil.which("proxychains4"):
        path = lab.directory + "/proxychains.conf"
        with open(path, "w", encoding="ascii") as file:
            file.write("strict_chain\n[ProxyList]\nsocks5 %s %d\n" % (lab.converter.addr4, SOCKS_PORT))
        ways["SOCKS5, proxychains4"] = ([], None, ["proxychains4", "-q", "-f", path])
    return ways


def _curl(lab, way):
    options, env, words = way
    said = lab.client.run([*words, "curl", "-q", "-sS", "-o", "/dev/null", "-w", WRITE_OUT, *options,
                           "http://%s/bytes/1000" % lab.server.addr4], env=env).stdout
    connected, first_byte, status = said.split()
    if status != "200":
        raise LabError("the server answered %s" % status)
    return float(connected) * 1000, float(first_byte) * 1000


def run(bench):
    """The experiment."""
    samples = {}
    with Lab(wifi=ACCESS, lte=None, core=CORE) as lab:
        for host in lab.hosts.values():
            host.sysctl("net.ipv4.tcp_no_metrics_save", 1)
        lab.http()
        lab.convertd(convertd_options(lab.build))
        ways = _ways(lab, bench)
        for number in range((ROUNDS_QUICK if bench.quick else ROUNDS) + 1):
            for name, way in ways.items():
                found = _curl(lab, way)
                if number:  # the first one of each finds cold caches
                    samples.setdefault(name, []).append(found)
    rows = []
    base = [median(column) for column in zip(*samples["direct"])]
    for name, pairs in samples.items():
        connected, first = zip(*pairs)
        rows.append([name, None if "Fast Open" in name else "%.1f" % median(connected),
                     None if "Fast Open" in name else "%.2f" % (median(connected) / base[0]), "%.1f" % median(first),
                     "%.1f" % quantile(first, 0.9), "%.2f" % (median(first) / base[1])])
        bench.samples("connected, first byte in ms: " + name, pairs)
    bench.table("20 + 40 ms of round trip; medians of %d runs of curl, in turn" % len(samples["direct"]),
                ["", "connected ms", "of direct", "first byte ms", "9 of 10 within", "of direct"], rows)
    bench.plot("cdf", "Time to the first byte, 20 + 40 ms of round trip", {name: [first for _, first in pairs]
                                                                         for name, pairs in samples.items()},
               xlabel="ms", ylabel="share of requests")
