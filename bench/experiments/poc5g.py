# SPDX-License-Identifier: BSD-3-Clause
"""poc5g - the proof of concept over 5G: how long until a connection is accepted, by Convert and by SOCKS5 with a password

After "0-RTT Converter PoC over Real 5G" by SungHoon Seo et al. of KT and M. Baerts et al. of Tessares (slides for the TCPM working group,
IETF 105). A phone has 5G, or WiFi and 5G with Multipath TCP. Stock curl fetches 1,000 bytes, in turns

- under libconvert.so, by way of convertd;
- under libconvert.so from a server that speaks Multipath TCP, for which the client bypasses the converter once it knows;
- untouched: nftables redirects its connection to redsocks, as on the phone of the slides, which speaks SOCKS5 with a password to
  microsocks on the converter's host; mptcpize makes both speak Multipath TCP. Over IPv6, which redsocks doesn't know, curl speaks
  SOCKS5 itself.

Packets are captured on the phone; models/poc5g.py finds in them the moments that the slides define, and derives the links from the
published figures.

The links carry little and have no limit, so that several settings are measured side by side, each in a lab and a process of its own.
"""
import concurrent.futures
import contextlib
import multiprocessing
import os
import shutil
import statistics
from typing import NamedTuple

from benchlib import machine, median
from benchlib.proxies import convertd_options
from benchlib.varying import VaryingLink
from convertlab import Lab, LabError, Link, need, sandbox
from convertlab.topology import ACCESS, CONVERT_PORT
from models import poc5g as model

DURATION = "25 minutes"
NEEDS = ("poc5g",)
PROGRAMS = ("redsocks", "microsocks", "mptcpize", "nft:nftables")

CONNECTIONS, CONNECTIONS_QUICK = 1000, 10  # of each system in each setting
SWEEP, SWEEP_QUICK = 15, 3                # of each system at each of RATIOS
RATIOS = (0, 0.25, 0.5, 1, 2)             # c / a
SEED = 105
SIDE_BY_SIDE = 4                          # settings that are measured at a time
PHONE = 2                                 # the client's number in each of its networks

OURS, BYPASS, THEIRS = "libconvert", "libconvert, bypass", "SOCKS5, password"
SYSTEMS = {OURS: model.TRIPS_CONVERT, BYPASS: model.TRIPS_CONVERT, THEIRS: model.TRIPS_SOCKS}
OF_SLIDES = (OURS, THEIRS)
HTTP_PORT, REDIRECTED_PORT = 80, 8080     # the same server; connections to the second go to redsocks
ABLE_PORT = 8081                          # a server that speaks Multipath TCP
REDSOCKS_PORT, SOCKS_PORT = 12345, 1080
USER, PASSWORD = "somebody", "secret"
REDSOCKS = """\
base { log_debug = off; log_info = off; log = stderr; daemon = off; redirector = iptables; }
redsocks {
    local_ip = 127.0.0.1; local_port = %d;
    ip = %s; port = %d; type = socks5; login = "%s"; password = "%s";
}
"""


class Setting(NamedTuple):
    """Which networks the phone has, and which of them connections begin on. `category` is its name in a plot."""

    name: str
    category: str
    wifi: bool
    first: str            # the device of the default route
    backup: bool = False  # is 5G for backup only, once a connection has WiFi as well?
    family: int = 4       # of all addresses

    def over_ipv6(self):
        """The same over IPv6."""
        return self._replace(name=self.name + "; IPv6", category=self.category + "\nIPv6", family=6)

    def address(self, host, device="addr"):
        """An address of a host of the lab: its own, or that of a device."""
        return getattr(host, "%s%d" % (device, self.family))


ONLY_5G = Setting("5G only", "5G only", False, "lte")
WIFI_FIRST = Setting("WiFi + 5G, WiFi first", "WiFi + 5G,\nWiFi first", True, "wifi")
FIRST_5G = Setting("WiFi + 5G, 5G first", "WiFi + 5G,\n5G first", True, "lte")
THEN_WIFI = Setting("WiFi + 5G, 5G first, then WiFi", "5G first,\nthen WiFi", True, "lte", True)
SETTINGS_IPV4 = (ONLY_5G, WIFI_FIRST, FIRST_5G, THEN_WIFI)
SETTINGS = SETTINGS_IPV4 + tuple(setting.over_ipv6() for setting in SETTINGS_IPV4)

# (mean, min, max) in ms, from page 5 of the slides: these are published figures, and nothing else in here is. Of SOCKS5 over both
# networks the slides say that 5G was the primary route, which both of the last two settings are.
PUBLISHED = {
    (OURS, ONLY_5G): (64.7, 49.2, 107.7),
    (OURS, WIFI_FIRST): (27.8, 5.4, 43.6),
    (THEIRS, ONLY_5G): (195.9, 160.9, 258.8),
    (THEIRS, FIRST_5G): (120.5, 97.9, 142.9),
    (THEIRS, THEN_WIFI): (120.5, 97.9, 142.9),
}
SOURCE = "KT and Tessares"
FIGURES = ("mean", "min", "max")
# those of the published figures that the links follow from
FITTED = {(OURS, ONLY_5G): ("mean", "min", "max"), (OURS, WIFI_FIRST): ("mean", "max"), (THEIRS, ONLY_5G): ("mean",)}
# The published minimum over WiFi, 5.4 ms, is less than c, so that it can't say what WiFi's least round-trip time is.
WIFI_LEAST = 2


class Links(NamedTuple):
    """The links, as models/poc5g.py derives them from the published figures; in ms of round trip."""

    c: float             # from the converter to the server
    delays: dict         # {device: Delays} from the phone to the converter

    @classmethod
    def published(cls):
        """5G: from Convert's and SOCKS5's means; WiFi: from Convert's mean, with the same c. What varies is the phone's network."""
        mean, low, high = PUBLISHED[OURS, ONLY_5G]
        a, c = model.round_trips(mean, PUBLISHED[THEIRS, ONLY_5G][0])
        wifi, _, wifi_high = PUBLISHED[OURS, WIFI_FIRST]
        return cls(c, {"lte": model.Delays.through(a, low - c, high - c, CONNECTIONS),
                       "wifi": model.Delays.through(wifi - c, WIFI_LEAST, wifi_high - c, CONNECTIONS)})


# --- the phone --------------------------------------------------------------------------------------------------


class Phone:
    """The phone in a lab, with both systems ready to be used."""

    def __init__(self, lab, setting):
        self.lab = lab
        self._devices = ["wifi", "lte"] if setting.wifi else ["lte"]
        for host in lab.hosts.values():
            host.sysctl("net.ipv4.tcp_no_metrics_save", 1)
        if setting.wifi and setting.first == "lte":
            lab.client.ip("route add default via %s dev lte metric 50" % setting.address(lab.converter, "lte"))
        if setting.backup:
            lab.client.ip("mptcp endpoint change %s backup" % setting.address(lab.client, "lte"))
        self._setting = setting
        self._converter, self._server = setting.address(lab.converter), setting.address(lab.server)
        for port in (HTTP_PORT, REDIRECTED_PORT):
            lab.http(port)
        lab.serve("mptcp-http", ABLE_PORT)
        self._start_converter()
        self._start_socks()
        for system in SYSTEMS:
            # the first one of each finds cold caches, and libconvert learns from it that SYNs are withheld, and what the server speaks
            self.connect(system)

    def _start_converter(self):
        lab = self.lab
        lab.convertd(convertd_options(lab.build))
        queues = lab.converter.run(["cat", "/proc/net/netfilter/nfnetlink_queue"], check=False)
        self.withheld = bool(queues.stdout.strip())
        runtime = os.path.join(lab.directory, "runtime")
        os.mkdir(runtime, 0o700)
        self._env = lab.converted(XDG_RUNTIME_DIR=runtime, CONVERT_ADDR=self._converter)

    def _start_socks(self):
        lab = self.lab
        lab.start_listening(lab.converter, ["mptcpize", "run", "microsocks", "-i", self._converter, "-p", SOCKS_PORT, "-u", USER,
                                            "-P", PASSWORD], SOCKS_PORT)
        if self._setting.family == 6:
            return
        path = os.path.join(lab.directory, "redsocks.conf")
        with open(path, "w", encoding="ascii") as file:
            file.write(REDSOCKS % (REDSOCKS_PORT, lab.converter.addr4, SOCKS_PORT, USER, PASSWORD))
        lab.start_listening(lab.client, ["mptcpize", "run", "redsocks", "-c", path], REDSOCKS_PORT)
        lab.client.run(["nft", "add table ip phone; add chain ip phone out { type nat hook output priority -100; }; "
                        "add rule ip phone out ip daddr %s tcp dport %d redirect to :%d"
                        % (lab.server.addr4, REDIRECTED_PORT, REDSOCKS_PORT)])

    def _command(self, system):
        """(words in front of curl, its options, the port that it asks)"""
        if system != THEIRS:
            return [], ["--noproxy", "*"], HTTP_PORT if system == OURS else ABLE_PORT
        if self._setting.family == 4:
            return [], ["--noproxy", "*"], REDIRECTED_PORT
        proxy = ["--socks5", "[%s]:%d" % (self._converter, SOCKS_PORT), "--proxy-user", "%s:%s" % (USER, PASSWORD)]
        return ["mptcpize", "run"], proxy, HTTP_PORT

    def connect(self, system):
        """Has curl fetch something."""
        wrapper, options, port = self._command(system)
        host = "[%s]" % self._server if self._setting.family == 6 else self._server
        said = self.lab.client.run([*wrapper, "curl", "-q", "-sS", *options, "-o", "/dev/null", "-w", "%{http_code}",
                                    "http://%s:%d/bytes/1000" % (host, port)], env=None if system == THEIRS else self._env)
        if said.stdout != "200":
            raise LabError("%s: the server answered %s" % (system, said.stdout))

    def measure(self, count):
        """Has each system make so many connections, in turns.

        Returns {system: [(Connection, Moments), …]}, and how many others were begun.
        """
        hosts = "tcp and (host %s or host %s)" % (self._converter, self._server)
        with contextlib.ExitStack() as stack:
            captures = [stack.enter_context(self.lab.capture(self.lab.client, device, hosts))
                        for device in self._devices]
            for _ in range(count):
                for system in SYSTEMS:
                    self.connect(system)
        packets = [packet for capture in captures for packet in capture.packets()]
        found, anew = {}, 0
        for system, address, port, moments_of in (
                (OURS, self._converter, CONVERT_PORT, lambda each: model.convert_moments(each, self.withheld)),
                (BYPASS, self._server, ABLE_PORT, model.direct_moments), (THEIRS, self._converter, SOCKS_PORT, model.socks_moments)):
            found[system], others = model.completed(model.connections(packets, address, port), moments_of)
            if len(found[system]) != count:
                raise LabError("%s: %d connections of %d have succeeded, as captured%s" % (
                    system, len(found[system]), count, "; " + others[0] if others else ""))
            anew += len(others)
            for _, moments in found[system]:
                if moments.request < moments.accepted:
                    raise LabError("%s: the request was sent %.1f ms before the connection was accepted" % (
                        system, (moments.accepted - moments.request) * model.MS))
        return found, anew


def _measure_setting(count, setting, links):
    """Of one Setting, with round-trip times that vary: (what Phone.measure() returns, whether SYNs are withheld)."""
    def access(device):
        return Link(delay_ms=links.delays[device].mean / 2, reorder=True)
    with Lab(wifi=access("wifi") if setting.wifi else None, lte=access("lte"), core=Link(delay_ms=links.c / 2)) as lab, \
            contextlib.ExitStack() as stack:
        for number, device in enumerate(["lte", "wifi"] if setting.wifi else ["lte"]):
            stack.enter_context(VaryingLink(getattr(lab, device), links.delays[device], SEED + number))
        phone = Phone(lab, setting)
        return phone.measure(count), phone.withheld


def _measure_settings(bench, links):
    """{setting: {system: [(Connection, Moments), …]}}"""
    count = bench.count(CONNECTIONS, CONNECTIONS_QUICK)
    found, begun_anew = {}, 0
    # those that take long begin first; threads won't do, since a lab's names in /run/netns are its process's
    settings = sorted(SETTINGS, key=lambda setting: setting.first == "wifi")
    with concurrent.futures.ProcessPoolExecutor(SIDE_BY_SIDE, multiprocessing.get_context("fork"), sandbox.enter_beside) as pool:
        runs = {pool.submit(_measure_setting, count, setting, links): setting for setting in settings}
        done = concurrent.futures.as_completed(runs)
        try:
            # those of a batch end nearly together
            for _ in bench.over(range(len(settings)), label=lambda number: "setting %d of %d" % (number + 1, len(settings)),
                                weight=lambda number: 0.1 if number % SIDE_BY_SIDE else 1):
                run = next(done)
                (found[runs[run]], anew), withheld = run.result()
                begun_anew += anew
                bench.setting("SYNs are withheld", "yes" if withheld else "no")
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    bench.setting("settings measured side by side", SIDE_BY_SIDE)
    bench.setting("connections begun anew, whose times count from the first SYN", begun_anew)
    return found


def _sweep(bench, a):
    """{c/a: {system: [Moments, …]}} on 5G only, with round-trip times that don't vary."""
    found = {}
    with Lab(wifi=None, lte=Link(delay_ms=a / 2), core=Link()) as lab:
        phone = Phone(lab, ONLY_5G)
        for ratio in RATIOS:
            lab.core.set(delay_ms=ratio * a / 2)
            measured, _ = phone.measure(bench.count(SWEEP, SWEEP_QUICK))
            found[ratio] = {system: [moments for _, moments in pairs] for system, pairs in measured.items()}
    return found


# --- what is found ----------------------------------------------------------------------------------------------


def _published(system, setting):
    """(mean, min, max) that the slides have of it, whose network speaks IPv6; None where they have nothing."""
    return next((figures for (name, of), figures in PUBLISHED.items() if name == system and setting in (of, of.over_ipv6())), None)


def _figures(values):
    """(mean, min, max) of some times, as the slides have them."""
    return statistics.fmean(values), min(values), max(values)


def _words(figures):
    return ["%.1f" % figure for figure in figures] if figures else [None] * 3


def _expected(time, system, setting, links):
    """The mean that the model and the links' means give; None where it depends on when WiFi is there."""
    return None if setting.backup else time(SYSTEMS[system], links.delays[setting.first].mean, links.c)


def _table_times(bench, found, links):
    """Tables of both times, with what the slides have."""
    rows, late = [], []
    for system in SYSTEMS:
        for setting in SETTINGS:
            moments = [moments for _, moments in found[setting][system]]
            ttfb, ttgtfb = [each.ttfb for each in moments], [each.ttgtfb for each in moments]
            bench.samples("ms until accepted, ms until the first byte: %s, %s" % (system, setting.name), list(zip(ttfb, ttgtfb)))
            expected = _expected(model.ttfb, system, setting, links), _expected(model.ttgtfb, system, setting, links)
            rows.append([system, setting.name, *_words(_figures(ttfb)), *_words(_published(system, setting)),
                         expected[0] and "%.1f" % expected[0]])
            late.append([system, setting.name, *_words(_figures(ttgtfb)), expected[1] and "%.1f" % expected[1]])
    bench.table("TTFB: ms from the SYN until the connection is accepted; %d connections each" % len(moments), [
        "", "networks", "mean", "min", "max", "published mean", "published min", "published max", "mean by the model"], rows, key="ttfb")
    bench.table("TTGTFB: ms from the SYN until the server's first byte", [
        "", "networks", "mean", "min", "max", "mean by the model"], late, key="ttgtfb")


def _table_figures(bench, found, links):
    """Each figure of the slides' table beside ours, and whether it is met."""
    rows, met, impossible = [], {4: 0, 6: 0}, 0
    for (system, setting), published in PUBLISHED.items():
        # no round trip is shorter than the least of a network that there is
        networks = ["lte", "wifi"] if setting.wifi else ["lte"]
        least = model.ttfb(SYSTEMS[system], min(links.delays[network].least for network in networks), links.c)
        ours = [_figures([moments.ttfb for _, moments in found[each][system]]) for each in (setting, setting.over_ipv6())]
        for number, figure in enumerate(FIGURES):
            each = [figures[number] for figures in ours]
            verdict = model.figure_verdict(figure, published[number], each, least, figure in FITTED.get((system, setting), ()))
            rows.append([system, setting.name, figure, "%.1f" % published[number], *["%.1f" % value for value in each], verdict])
            impossible += published[number] < least
            for family, value in zip(met, each):
                met[family] += model.is_near(figure, value, published[number])
    bench.table("The slides' table, figure by figure, ms: a mean is met within a tenth, an extreme, which is one connection, within a "
                "quarter. \"5G first, then WiFi\" is the same column of the slides once more", [
                    "", "networks", "", "published", "IPv4", "IPv6", "verdict"], rows, key="figures")
    bench.value("figures-met", "%d of %d over IPv4, %d over IPv6" % (met[4], len(rows), met[6]))
    bench.value("figures-impossible", impossible)


def _plot_times(bench, found):
    times = {system: [_figures([moments.ttfb for _, moments in found[setting][system]]) for setting in SETTINGS] for system in OF_SLIDES}
    bench.plot("bars", "From the SYN until the connection is accepted (TTFB): mean, min and max", times, key="times",
               categories=[setting.category for setting in SETTINGS], ylabel="ms",
               xlabel="the phone's networks, and which of them a connection begins on",
               published={"%s: %s" % (system, SOURCE): [(_published(system, setting) or [None])[0] for setting in SETTINGS]
                          for system in OF_SLIDES})


def _ratio(found, ours, theirs, attribute):
    """The ratio of the means of redsocks in one Setting and libconvert in another, with its interval."""
    return model.ratio([getattr(moments, attribute) for _, moments in found[theirs][THEIRS]],
                       [getattr(moments, attribute) for _, moments in found[ours][OURS]])


def _table_ratios(bench, found, links):
    """How many times longer SOCKS5 takes; returns the ratios of both times on 5G only."""
    rows, pairs = [], [(setting.name, setting, setting) for setting in SETTINGS]
    pairs += [("WiFi first for Convert, 5G first for SOCKS5", WIFI_FIRST, FIRST_5G),
              ("WiFi first for Convert, 5G first, then WiFi for SOCKS5", WIFI_FIRST, THEN_WIFI)]
    for name, ours, theirs in pairs:
        ttfb, ttgtfb = (_ratio(found, ours, theirs, attribute) for attribute in ("ttfb", "ttgtfb"))
        pair = _published(THEIRS, theirs), _published(OURS, ours)
        published = pair[0][0] / pair[1][0] if all(pair) else None
        expected = None if ours.backup or theirs.backup else (
            _expected(model.ttfb, THEIRS, theirs, links) / _expected(model.ttfb, OURS, ours, links))
        rows.append([name, "%.2f" % ttfb.value, "%.2f to %.2f" % (ttfb.low, ttfb.high), published and "%.2f" % published,
                     expected and "%.2f" % expected, "%.2f" % ttgtfb.value])
    bench.table("How many times longer SOCKS5 takes than Convert", [
        "networks", "TTFB", "95% of runs", "published", "by the model", "TTGTFB"], rows, key="ratios")
    return _ratio(found, ONLY_5G, ONLY_5G, "ttfb"), _ratio(found, ONLY_5G, ONLY_5G, "ttgtfb")


def _table_paths(bench, found, addresses):
    """Whether it really was Multipath TCP, and which network carried what; returns {(system, setting): share of messages on WiFi}."""
    rows, shares = [], {}
    for system in SYSTEMS:
        for setting in SETTINGS:
            pairs = found[setting][system]
            wifi, lte = (sum(connection.messages(addresses[device, setting.family], moments.first_byte) for connection, moments in pairs)
                         for device in ("wifi", "lte"))
            shares[system, setting] = wifi / (wifi + lte)
            rows.append([system, setting.name, "%d of %d" % (sum(connection.mptcp for connection, _ in pairs), len(pairs)),
                         *("%d" % sum(connection.joined_by(getattr(moments, moment)) > 1 for connection, moments in pairs)
                           for moment in ("accepted", "first_byte")), "%.0f%%" % (100 * shares[system, setting])])
    bench.table("Multipath TCP, as captured on the phone: connections on which both sides agreed on it, those with a second subflow by "
                "the time they were accepted and by the server's first byte, and the share of the packets with data until then that took "
                "WiFi", ["", "networks", "MPTCP", "2 subflows when accepted", "2 at the first byte", "data over WiFi"], rows, key="paths")
    return shares


def _report_sweep(bench, sweep, a, c):
    """The table and the plot of how the ratios depend on c/a; returns the greatest deviation from the curve, as a share."""
    rows, points, worst = [], {"TTFB": [], "TTGTFB": []}, 0
    for ratio, found in sweep.items():
        row = ["%g" % ratio]
        for name, attribute, curve in (("TTFB", "ttfb", model.ttfb_ratio), ("TTGTFB", "ttgtfb", model.ttgtfb_ratio)):
            # these links don't vary, so that a time which lies apart is the machine's
            theirs, ours = (median([getattr(moments, attribute) for moments in found[system]]) for system in (THEIRS, OURS))
            points[name].append((ratio, theirs / ours))
            row += ["%.2f" % (theirs / ours), "%.2f" % curve(ratio)]
            worst = max(worst, abs(theirs / ours / curve(ratio) - 1))
        for system in SYSTEMS:
            bench.samples("ms until accepted, ms until the first byte: %s, c/a = %g" % (system, ratio),
                          [(moments.ttfb, moments.ttgtfb) for moments in found[system]])
        rows.append(row)
    bench.table("How many times longer SOCKS5 takes than Convert on 5G only, a = %.1f ms, by how far the server is; medians of %d "
                "connections each" % (a, len(found[OURS])),
                ["c/a", "TTFB", "(4 + r)/(1 + r)", "TTGTFB", "(5 + 2r)/(2 + 2r)"], rows, key="sweep")
    steps = [step / 20 for step in range(int(max(RATIOS) * 20) + 1)]
    bench.plot("lines", "What the gain depends on: SOCKS5's time as a multiple of Convert's", {
        "libconvert": [(0, 1), (max(RATIOS), 1)], "redsocks, TTFB": points["TTFB"], "redsocks, TTGTFB": points["TTGTFB"]}, key="sweep",
               published={"redsocks, TTFB: (4 + r)/(1 + r)": [(r, model.ttfb_ratio(r)) for r in steps],
                          "redsocks, TTGTFB: (5 + 2r)/(2 + 2r)": [(r, model.ttgtfb_ratio(r)) for r in steps],
                          "redsocks, TTFB: " + SOURCE: [(c / a, PUBLISHED[THEIRS, ONLY_5G][0] / PUBLISHED[OURS, ONLY_5G][0])]},
               xlabel="r = c/a: the round trip from converter to server, in those from phone to converter",
               ylabel="times as long as with Convert", ylim=(0, 4.5))
    return worst


def _describe(bench, links):
    """Notes the links and the versions."""
    for device, name in (("lte", "5G"), ("wifi", "WiFi")):
        delays = links.delays[device]
        text = "%.1f ms + log-normal (median %.1f ms, sigma %.2f), mean %.1f ms" % (delays.least, delays.median, delays.sigma, delays.mean)
        bench.setting("round trip over " + name, text)
        bench.value("link_" + name.lower(), text)
    bench.setting("round trip converter to server", "%.1f ms" % links.c)
    bench.setting("seed of the round-trip times", SEED)
    for program in ("redsocks", "microsocks", "mptcpize"):
        bench.version(program, machine.package_version(shutil.which(program)))
    bench.version("curl", machine.version(["curl", "--version"]))


def _values(bench, found, links, ratio, late, shares, worst):
    """Figures for the page."""
    a = links.delays["lte"].mean
    theirs = PUBLISHED[THEIRS, ONLY_5G][0] / PUBLISHED[OURS, ONLY_5G][0]

    def mean(system, setting):
        return statistics.fmean(moments.ttfb for _, moments in found[setting][system])

    extremes = {system: [extreme(moments.ttfb for _, moments in found[ONLY_5G][system]) for extreme in (min, max)] for system in OF_SLIDES}
    for key, pattern, value in (
            ("connections", "%d", len(found[ONLY_5G][OURS])), ("a", "%.1f", a), ("c", "%.1f", links.c), ("c_of_a", "%.2f", links.c / a),
            ("ratio", "%.2f", ratio.value), ("ratio_low", "%.2f", ratio.low),
            ("ratio_high", "%.2f", ratio.high), ("published_ratio", "%.2f", theirs), ("late_ratio", "%.2f", late.value),
            ("late_model", "%.2f", model.ttgtfb_ratio(links.c / a)), ("saved", "%.0f", mean(THEIRS, ONLY_5G) - mean(OURS, ONLY_5G)),
            ("socks_5g_first", "%.1f", mean(THEIRS, FIRST_5G)), ("socks_then_wifi", "%.1f", mean(THEIRS, THEN_WIFI)),
            ("convert_wifi", "%.1f", mean(OURS, WIFI_FIRST)),
            ("fair_wifi", "%.2f", _ratio(found, WIFI_FIRST, WIFI_FIRST, "ttfb").value),
            ("fair_5g", "%.2f", _ratio(found, FIRST_5G, FIRST_5G, "ttfb").value),
            ("unlike", "%.2f", _ratio(found, WIFI_FIRST, FIRST_5G, "ttfb").value),
            ("wifi_share", "%.0f%%", 100 * shares[THEIRS, FIRST_5G]), ("wifi_share_then", "%.0f%%", 100 * shares[THEIRS, THEN_WIFI]),
            ("spread", "%.1f", model.spread_ratio(*extremes.values())),
            ("socks_min", "%.1f", extremes[THEIRS][0]), ("socks_max", "%.1f", extremes[THEIRS][1]), ("sweep_worst", "%.1f%%", 100 * worst),
            ("published_spread", "%.1f", model.spread_ratio(*(PUBLISHED[system, ONLY_5G][1:] for system in OF_SLIDES))),
            ("switch_model", "%.0f", 2 * a + 2 * links.delays["wifi"].mean + links.c)):
        bench.value(key, pattern % value)
    bypass = {setting.family: mean(BYPASS, setting) / mean(OURS, setting) for setting in (ONLY_5G, ONLY_5G.over_ipv6())}
    bench.value("bypass", "%.2f" % bypass[4])
    bench.value("bypass-ipv6", "%.2f" % bypass[6])
    # each connection was found at the server's address, so that none of them went through the converter
    bench.value("verdict-bypass", "confirmed" if all(abs(times - 1) < 0.1 for times in bypass.values()) else "not confirmed")
    ratio6 = _ratio(found, ONLY_5G.over_ipv6(), ONLY_5G.over_ipv6(), "ttfb")
    bench.value("ratio-ipv6", "%.2f" % ratio6.value)
    for key, each in (("verdict", ratio), ("verdict-ipv6", ratio6)):
        bench.value(key, "confirmed" if abs(each.value / theirs - 1) < 0.1 else "not confirmed")


def run(bench):
    """The experiment."""
    for program in PROGRAMS:
        need(*program.split(":"))
    links = Links.published()
    a = links.delays["lte"].mean
    _describe(bench, links)
    sweep = _sweep(bench, a)
    found = _measure_settings(bench, links)
    _table_times(bench, found, links)
    ratio, late = _table_ratios(bench, found, links)
    _table_figures(bench, found, links)
    shares = _table_paths(bench, found, {(device, family): address(PHONE) for device, access in ACCESS.items()
                                         for family, address in ((4, access.address4), (6, access.address6))})
    worst = _report_sweep(bench, sweep, a, links.c)
    _plot_times(bench, found)
    _values(bench, found, links, ratio, late, shares, worst)
