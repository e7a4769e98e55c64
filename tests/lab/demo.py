#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""demo.py - what libconvert does, measured before your eyes: "make demo"

Three hosts in network namespaces: a client with two links (wifi and lte), a converter, and a web server that speaks plain TCP
only. Stock curl, under LD_PRELOAD=libconvert.so, downloads a file; what left the client is read from captured packets. Then
the same curl measures direct TCP, the shim and a SOCKS5 server with a password against each other, and connects while wifi is silent; and
a phone behind the client downloads with plain curl through convertgw. The machine's own network isn't touched. Ends with 1 if anything
measured is not as it should be.
"""
import hashlib
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import time

# a demonstration leaves nothing behind, not even __pycache__
sys.dont_write_bytecode = True
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"

# pylint: disable=wrong-import-position
from convertlab import Lab, LabError, Link, mptcp_subflows, sandbox
from convertlab.gateways import NOT_BUILT, add_lan, is_built, start_gateway
from convertlab.leftovers import Leftovers
from convertlab.pcap import OPT_FASTOPEN, OPT_MPTCP
from convertlab.report import Report
from convertlab.topology import CONVERT_PORT

WIFI = Link(delay_ms=10, rate_mbit=50, queue=200)
LTE = Link(delay_ms=25, rate_mbit=30, queue=200)
CORE = Link(delay_ms=20)
RATE_MBIT = WIFI.rate_mbit + LTE.rate_mbit

FILE_SIZE = 32000000
MEDIUM_SIZE = 8000000
SMALL_SIZE = 1000
ROUNDS = 9
BEGIN_MS = 900  # before a SYN would be sent again
SOCKS_PORT = 1080
SOCKS_USER = "demo:secret"

OPT_EXPERIMENTS = (253, 254)      # RFC 6994; Fast Open was experiment F989 before RFC 7413 gave it kind 34
FASTOPEN_EXPERIMENT = b"\xf9\x89"
OPTION_NAMES = {2: "MSS", 3: "window scale", 4: "SACK permitted", 8: "timestamps", 34: "Fast Open"}

# what would send stock curl elsewhere
PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")

# with a SOCKS proxy, time_connect is when the proxy was reached; time_pretransfer is when the request may go to the server
WRITE_OUT = "%{time_pretransfer} %{time_starttransfer} %{time_total} %{size_download} %{http_code}"


class Result:
    """What curl measured: times in ms; goodput in Mbit/s over all of curl's time, the connection's set-up included."""

    def __init__(self, words):
        connected, first_byte, total, size, status = words.split()
        if status != "200":
            raise LabError("the web server answered %s" % status)
        self.connected = float(connected) * 1000
        self.first_byte = float(first_byte) * 1000
        self.goodput = float(size) * 8 / float(total) / 1e6


class Demo:
    """The lab with everything running in it, and the report."""

    def __init__(self, lab, report):
        self.lab = lab
        self.report = report
        self.content = os.path.join(lab.directory, "www")
        self.url = "http://%s/" % lab.server.addr4
        os.mkdir(self.content)
        for name, size in (("file", FILE_SIZE), ("medium", MEDIUM_SIZE), ("small", SMALL_SIZE)):
            with open(os.path.join(self.content, name), "wb") as file:
                file.write(os.urandom(size))
        for host in lab.hosts.values():
            # each connection starts without what the kernel has learnt from those before
            host.sysctl("net.ipv4.tcp_no_metrics_save", 1)
        lab.convertd()
        lab.start_listening(lab.server, [sys.executable, "-m", "http.server", "80", "--directory", self.content], 80,
                            name="www")
        self.has_socks = bool(shutil.which("microsocks"))
        if self.has_socks:
            user, password = SOCKS_USER.split(":")
            lab.start_listening(lab.converter, ["microsocks", "-p", SOCKS_PORT, "-u", user, "-P", password], SOCKS_PORT)

    def curl(self, name, *options, env=None, output="/dev/null", host=None):
        """Runs stock curl on a host, by default the client, without anybody's ~/.curlrc."""
        command = ["curl", "-q", "-sS", "-o", output, "-w", WRITE_OUT, *options, self.url + name]
        return Result((host or self.lab.client).run(command, env=env).stdout)

    def ours(self):
        """The environment for LD_PRELOAD=libconvert.so; there is no other setting than the converter's address.

        In the directory, as in a user's session, programs keep what they have learned.
        """
        runtime = os.path.join(self.lab.directory, "runtime")
        os.makedirs(runtime, mode=0o700, exist_ok=True)
        return self.lab.shim_env(CONVERT_ADDR=self.lab.converter.addr4, XDG_RUNTIME_DIR=runtime)

    # --- the network ----------------------------------------------------------------

    def rtt(self, host, address, *options):
        """The least round-trip time of a few pings, in ms."""
        said = host.run(["ping", "-n", "-q", "-c", "5", "-i", "0.05", *options, address]).stdout
        return float(said.rsplit("=", 1)[1].split("/")[0])

    def show_network(self):
        """The three hosts, with round-trip times as ping finds them."""
        lab, report = self.lab, self.report
        wifi = self.rtt(lab.client, lab.converter.addr4, "-I", lab.client.wifi4)
        lte = self.rtt(lab.client, lab.converter.addr4, "-I", lab.client.lte4)
        core = self.rtt(lab.converter, lab.server.addr4)
        congestion = lab.server.sysctl("net.ipv4.tcp_congestion_control")
        link = report.sign("link")
        report.line(report.style("bold", "libconvert") + " - TCP applications over several networks, by RFC 8803")
        report.line(report.style("dim", "Linux %s, %s; three hosts in network namespaces; RTT by ping"
                                 % (platform.release().split("-")[0], congestion)))
        report.line()
        report.line("  client  %s wifi %d Mbit/s, %2.0f ms %s  converter  %s %.0f ms %s  web server"
                    % (link * 2, WIFI.rate_mbit, wifi, link * 2, link * 2, core, link * 2))
        report.line("   curl   %s lte  %d Mbit/s, %2.0f ms %s  convertd                plain TCP"
                    % (link * 2, LTE.rate_mbit, lte, link * 2))

    # --- one download, and what was on the wire -----------------------------------------

    def download(self):
        """The download that everything else is about; returns its Result and the packets by link."""
        lab = self.lab
        got = os.path.join(lab.directory, "got")
        captures = {}
        expression = "tcp port %d" % CONVERT_PORT
        # the day's first connection asks the converter what it supports, behind the handshake; this is any other one
        self.curl("small", env=self.ours())
        with lab.capture(lab.client, "wifi", expression) as captures["wifi"], \
                lab.capture(lab.client, "lte", expression) as captures["lte"]:
            result = self.curl("file", env=self.ours(), output=got)
        sums = [_sha256(path) for path in (os.path.join(self.content, "file"), got)]
        version = lab.client.run(["curl", "--version"]).stdout.split()[1]
        report = self.report
        report.heading("One file, %.0f MB" % (FILE_SIZE / 1e6),
                       "LD_PRELOAD=libconvert.so curl (stock curl %s)" % version)
        report.verdict(sums[0] == sums[1], "arrived whole: sha256 %s... as on the server" % sums[1][:32],
                       "sha256 is %s..., on the server %s..." % (sums[1][:16], sums[0][:16]))
        os.unlink(got)
        return result, {name: capture.packets() for name, capture in captures.items()}

    def show_syn(self, packets):
        """The first packet that left the client."""
        report = self.report
        syns = [packet for packet in packets["wifi"] if packet.syn and packet.dport == CONVERT_PORT]
        report.heading("The first packet", "the SYN as captured on the client's wifi")
        if not syns:
            report.verdict(False, "no SYN went to the converter")
            return
        syn = syns[0]
        report.line("    %s:%d %s %s:%d" % (syn.src, syn.sport, report.sign("arrow"), syn.dst, syn.dport))
        report.verdict("MP_CAPABLE" in syn.mptcp, "asks for Multipath TCP: MP_CAPABLE",
                       "doesn't ask for Multipath TCP: no MP_CAPABLE")
        if report.verdict(bool(syn.payload), "brings the request along: %d bytes of Convert TLVs" % len(syn.payload),
                          "has no data: the request was not in the SYN"):
            self.show_tlvs(syn.payload)
        self.show_answer(syn, [packet for packet in packets["wifi"] if packet.synack and packet.dport == syn.sport])
        fast_open = [kind for kind, value in syn.options if kind == OPT_FASTOPEN
                     or kind in OPT_EXPERIMENTS and value.startswith(FASTOPEN_EXPERIMENT)]
        report.verdict(not fast_open, "no Fast Open option (neither kind 34 nor experiment F989)",
                       "a Fast Open option, kind %s" % ", ".join(map(str, fast_open)))
        names = ["MPTCP " + "+".join(syn.mptcp) if kind == OPT_MPTCP else OPTION_NAMES.get(kind, "kind %d" % kind)
                 for kind, _ in syn.options]
        report.line(report.style("dim", "    options: " + ", ".join(names)))

    def show_answer(self, syn, answers):
        """Whether the SYN+ACK takes what the SYN offered."""
        multipath = any("MP_CAPABLE" in answer.mptcp for answer in answers)
        taken = syn.payload and any(answer.ack == (syn.seq + 1 + len(syn.payload)) % 2**32 for answer in answers)
        faults = ["has no MP_CAPABLE"] * (not multipath) + ["doesn't acknowledge these bytes"] * (not taken)
        self.report.verdict(not faults, "the converter's SYN+ACK has MP_CAPABLE and acknowledges these bytes",
                            "the converter's SYN+ACK " + " and ".join(faults))

    def show_tlvs(self, payload):
        """The SYN's payload as bytes and as libconvert's own parser reads it."""
        report, digits = self.report, payload.hex()
        words = [digits[at:at + 8] for at in range(0, len(digits), 8)]
        for at in range(0, len(words), 8):
            report.line(report.style("dim", "    " + " ".join(words[at:at + 8])))
        decoded = subprocess.run([self.lab.build.program("tlvdump")], input=digits, text=True, stdout=subprocess.PIPE,
                                 check=False)
        lines = [line.split("\t", 1) for line in decoded.stdout.splitlines()]
        for name, value in lines:
            report.line("    %-16s %s" % (name, report.style("ours", value)))
        server = "%s:80" % self.lab.server.addr4
        asked = [value.split(",")[0] for name, value in lines if name == "Connect TLV"]
        report.verdict(decoded.returncode == 0 and asked == [server], "a valid request for the web server's address",
                       "not a request for %s" % server)

    def show_paths(self, packets):
        """Which bytes came over which subflow."""
        report = self.report
        report.heading("Two networks, one connection", "TCP payload that arrived, by the client's captures")
        carried = {name: _arrived(packets[name]) for name in ("wifi", "lte")}
        total = sum(carried.values()) or 1
        for name, size in carried.items():
            for kind, source, port, target, _ in mptcp_subflows(packets[name])[:1] or [("no subflow", "-", 0, "-", 0)]:
                route = "%s:%d %s %s" % (source, port, report.sign("arrow"), target)
                report.line("  %-5s %-10s  %-28s %5.1f MB %3.0f%%  %s" % (
                    name, kind, route, size / 1e6, 100 * size / total, report.bar(size / total, 16, "ours")))
        report.verdict(min(carried.values()) > total / 20, "both networks carried the download",
                       "not both networks carried the download")

    # --- times ------------------------------------------------------------------------------

    def ways(self):
        """How a connection is made, by name: (options of curl, environment)."""
        ways = {"direct TCP": ([], None), "libconvert": ([], self.ours())}
        if self.has_socks:
            ways["SOCKS5 + password"] = (["--socks5", "%s:%d" % (self.lab.converter.addr4, SOCKS_PORT),
                                          "--proxy-user", SOCKS_USER], None)
        return ways

    def show_times(self):
        """Time to connect and to the first byte, medians of interleaved runs."""
        report, ways = self.report, self.ways()
        results = {name: [] for name in ways}
        for number in range(ROUNDS + 1):
            for name, (options, env) in ways.items():
                result = self.curl("small", *options, env=env)
                # the first one of each finds cold caches
                if number:
                    results[name].append(result)
        report.heading("Waiting", "by curl; medians of %d runs each, interleaved" % ROUNDS)
        report.line(report.style("dim", "  %-20s%-13s%-14s%-15s%s" % (
            "", "  connected", "of direct", " first byte", "of direct")))
        medians = {}
        for name, runs in results.items():
            medians[name] = [statistics.median(run.connected for run in runs),
                             statistics.median(run.first_byte for run in runs)]
            ratios = [value / base for value, base in zip(medians[name], medians["direct TCP"])]
            text = "  %-20s%8.1f ms%8.2f%s %14.1f ms%8.2f%s" % (
                name, medians[name][0], ratios[0], report.sign("times"), medians[name][1], ratios[1],
                report.sign("times"))
            report.line(report.style("ours", text) if name == "libconvert" else text)
        ours = medians["libconvert"]
        if not self.has_socks:
            report.line(report.style("dim", "  SOCKS5: not measured, microsocks is missing (apt-get install microsocks)"))
        else:
            socks = medians["SOCKS5 + password"]
            report.verdict(ours[1] < socks[1], "%.0f ms sooner than SOCKS5 through the same host" % (socks[1] - ours[1]),
                           "not sooner than SOCKS5 through the same host")

    # --- speed ------------------------------------------------------------------------------

    def show_goodput(self, ours):
        """The download against plain TCP over each network alone."""
        report, lab = self.report, self.lab
        alone = {"direct, wifi alone": self.curl("file", "--interface", lab.client.wifi4).goodput,
                 "direct, lte alone": self.curl("file", "--interface", lab.client.lte4).goodput}
        better = max(alone.values())
        report.heading("Speed", "%.0f MB each, from curl's start to its last byte" % (FILE_SIZE / 1e6))
        for name, goodput in list(alone.items()) + [("libconvert, both", ours.goodput)]:
            style = "ours" if name.startswith("libconvert") else "dim"
            report.line("  %-20s%6.1f Mbit/s  %s" % (name, goodput, report.bar(goodput / RATE_MBIT, 40, style)))
        report.verdict(ours.goodput > better, "%.2f%s the better network alone; %.0f%% of the two links' %d Mbit/s" % (
            ours.goodput / better, report.sign("times"), 100 * ours.goodput / RATE_MBIT, RATE_MBIT),
                       "not faster than the better network alone (%.2f%s)" % (ours.goodput / better, report.sign("times")))

    def show_begin(self):
        """New connections while wifi, which has the default route, swallows everything."""
        report, lab = self.report, self.lab
        lab.wifi.down()
        try:
            times = [self.curl("small", env=self.ours()).connected for _ in range(2)]
        finally:
            lab.wifi.up()
        report.heading("Wifi falls silent", "a new curl, and another one, while the default route leads nowhere")
        report.verdict(max(times) < BEGIN_MS, "connected over lte all the same: after %.0f ms, the next one after %.0f" % tuple(times),
                       "connected after %.0f and %.0f ms only" % tuple(times))

    def show_gateway(self):
        """A phone in the client's LAN, and convertgw on the client."""
        report, lab, captures = self.report, self.lab, {}
        report.heading("A gateway", "convertgw on the client; behind it a phone with stock curl and no setting at all")
        if not is_built(lab):
            report.line(report.style("dim", "  not shown: " + NOT_BUILT))
            return
        phone = add_lan(lab)
        try:
            start_gateway(lab)
        except LabError as error:
            report.line(report.style("dim", "  not shown: " + str(error).strip().splitlines()[-1]))
            return
        self.curl("small", host=phone)
        with lab.capture(lab.client, "wifi", "tcp") as captures["wifi"], lab.capture(lab.client, "lte", "tcp") as captures["lte"]:
            result = self.curl("medium", host=phone)
        wifi, lte = (_arrived(captures[name].packets()) for name in ("wifi", "lte"))
        total = wifi + lte or 1
        report.verdict(min(wifi, lte) > total / 20,
                       "%.0f MB at %.0f Mbit/s, %.0f%% of it over wifi and %.0f%% over lte; connected to the server after %.0f ms" % (
                           MEDIUM_SIZE / 1e6, result.goodput, 100 * wifi / total, 100 * lte / total, result.connected),
                       "not both networks carried the phone's download: wifi %.1f MB, lte %.1f MB" % (wifi / 1e6, lte / 1e6))

    def show_server(self):
        """What the server has seen of all this."""
        self.report.heading("Afterwards")
        counters = self.lab.server.counters()
        opened, multipath = counters["TcpPassiveOpens"], counters.get("MPTcpExtMPCapableSYNRX", 0)
        self.report.verdict(multipath == 0, "the web server accepted %d connections, all of them plain TCP" % opened,
                            "the web server was asked for Multipath TCP %d times" % multipath)


def _sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _arrived(packets):
    """Bytes of the converter's stream that arrived on a subflow; what arrived twice is counted once."""
    starts = {packet.dport: packet.seq + 1 for packet in packets if packet.synack and packet.sport == CONVERT_PORT}
    total = 0
    for port, start in starts.items():
        pieces = sorted(((packet.seq - start) % 2**32, len(packet.payload)) for packet in packets
                        if packet.dport == port and packet.sport == CONVERT_PORT and packet.payload)
        end = 0
        for at, size in pieces:
            total += max(0, at + size - max(at, end))
            end = max(end, at + size)
    return total


def _kernel_version():
    return tuple(int(number) for number in re.findall(r"\d+", platform.release())[:2])


def _inside(report):
    """The demonstration; returns the exit status."""
    if not os.path.exists("/proc/sys/net/mptcp/enabled"):
        raise LabError("this kernel (%s) has no Multipath TCP: it needs CONFIG_MPTCP, and Linux 6.2 or newer"
                       % platform.release())
    for name in PROXY_VARIABLES:
        os.environ.pop(name, None)
        os.environ.pop(name.upper(), None)
    with Lab(wifi=WIFI, lte=LTE, core=CORE) as lab:
        demo = Demo(lab, report)
        demo.show_network()
        result, packets = demo.download()
        demo.show_syn(packets)
        demo.show_paths(packets)
        demo.show_times()
        demo.show_goodput(result)
        demo.show_begin()
        demo.show_gateway()
        demo.show_server()
    return 1 if report.problems else 0


def _guarded(report):
    sandbox.enter()
    try:
        return _inside(report)
    except LabError as error:
        print("demo: %s" % error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _outside(report):
    """Runs this program again in a sandbox, and looks for what that leaves."""
    start = time.monotonic()
    leftovers = Leftovers()
    child = os.fork()
    if child == 0:
        try:
            sandbox.enter()
        except sandbox.Unavailable as error:
            print("demo: %s" % error, file=sys.stderr)
        os._exit(1)
    while True:
        try:
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            break
        except KeyboardInterrupt:
            # the sandbox has had the signal too
            continue
    processes, namespaces, files = leftovers.processes(), leftovers.namespaces(), leftovers.files()
    report.verdict(not processes and not namespaces, "nothing left behind: no process, no network namespace%s"
                   % ("" if files else ", no file in /tmp"), "left behind: " + ", ".join(processes + namespaces))
    if files:
        report.line(report.style("dim", "    new files, if by no other program: " + " ".join(files)))
    if status == 0 and not report.problems:
        report.line()
        report.line("All of this was measured just now, in %.0f seconds." % (time.monotonic() - start))
        return 0
    report.line()
    if report.problems or status == 1:
        report.line(report.style("bad", "Not everything was as it should be: see above."))
        if _kernel_version() < (6, 2):
            report.line("Linux %s sends no data in the SYN of a Multipath TCP connection: that came with 6.2."
                        % platform.release())
    return status if status > 0 else 1


def main():
    """The program."""
    report = Report()
    sys.exit(_guarded(report) if sandbox.inside() else _outside(report))


if __name__ == "__main__":
    main()
