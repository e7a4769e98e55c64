# SPDX-License-Identifier: BSD-3-Clause
"""ttfb - time to first byte, Convert against SOCKS5: what Tessares measured, over links as mobile networks have them

After the blog post "Performance analysis - MPTCP deployment options" of Tessares. Phones at many distances from the proxy
(models/mobile_rtts.py) ask a server: directly, by libconvert, by libconvert with the request in the SYN, by SOCKS5 without and with a
password, by shadowsocks. Each phone does it in all six ways, in an order of its own. The application is an ordinary program
(tools/first_byte.c), which is the same in all of them; what it waits for is timed there. A second set of phones has WiFi and a mobile
network, and all proxies are asked by Multipath TCP over both.

Then stock curl does the same once in each way over links of great length, packets are captured at both ends of them, and the round
trips that led to the request and to the first byte of the response are counted (models/round_trips.py).
"""
import collections
import dataclasses
import os
import shutil

from benchlib import median, quantile
from benchlib.field import LOAD, SYSCTLS
from benchlib.phones import Application, address, ask_in_turn, make_hosts
from benchlib.proxies import SERVER_PORT, Microsocks, MicrosocksPassword, Shadowsocks, convertd_options
from convertlab import Lab, LabError, Link, Skip
from models import mobile_rtts, round_trips

DURATION, NEEDS = "17 minutes", ("bench-peers",)
PHONES, PHONES_QUICK = 30000, 200  # of each set, six connections each
PLACES = 72                       # phones that ask at a time
CORE_MS = 10                      # the round trip from the converter to the server
SEED = 1
HOLD_MS = 700                     # convertd's --hold-time; libconvert takes a SYN+ACK that is later for no answer of the server
FAR_ACCESS_MS, FAR_CORE_MS = 200, 70  # round trips of the captured connections, of which no few add up to the same

MPTCPIZE = ("mptcpize", "run")    # programs that don't know of Multipath TCP speak it

DIRECT, CONVERT, EARLY = "direct TCP", "libconvert", "libconvert, early data"
SOCKS, PASSWORD, SHADOWSOCKS = "SOCKS5", "SOCKS5, password", "shadowsocks"
# what each is called where values have a name
WORDS = {DIRECT: "direct", CONVERT: "libconvert", EARLY: "early", SOCKS: "socks", PASSWORD: "password", SHADOWSOCKS: "shadowsocks"}
# Of these, round trips are counted and nothing else: a user's first connection through a converter, one of a client without Multipath TCP.
NEW, EARLY_TCP = "libconvert (its first connection)", "libconvert, early data (over plain TCP)"
WORDS_COUNTED = dict(WORDS, **{NEW: "new", EARLY_TCP: "early-tcp"})
KNOWING = DIRECT, CONVERT, SOCKS, PASSWORD  # where the application knows that the server is connected before it asks

# What the blog post says: the last 15% (5%) of the connections have round trips above 50 ms, so that SOCKS5's commands, three round
# trips, delay them by 150 ms (450 ms) at least.
PUBLISHED_DELAYS = (150, 0.85), (450, 0.95)
# It counts one round trip until Convert is connected, and four with SOCKS5.
PUBLISHED_CONVERT = (50, 0.85), (150, 0.95)
PUBLISHED_SOCKS = (200, 0.85), (600, 0.95)
PUBLISHED_TRIPS = {CONVERT: 1, PASSWORD: 4, SHADOWSOCKS: 2}
GOOGLE_MS = 200  # "According to Google, the server response time should be less than 200ms"

DELAYED_MIN = 0.95  # of the phones that the blog post calls delayed, how many have to be for this to be called confirmed
FAILED_MAX = 0.01  # the share of connections that may fail; more of them are no measurement
TOLERANCE = 0.1  # how far a ratio may be from what the blog post says
CURVE = 500  # points of a plotted distribution
WITH_CORE = "\n(of these, ours have %d ms between proxy and server, and the blog post's have none)" % CORE_MS
SINCE, SHARE = "ms since the application called connect()", "share of connections"
DELAY_LIMITS = 10, 3000  # ms, of an axis: delays are two or three round trips, which are 6 to 800 ms long
TCP, CONNECTED, FIRST = range(3)  # of the times of first_byte


# --- what is common to both parts ---------------------------------------------------------------------------------------------


def _ways(bench):
    """The ways that can be measured here, in order."""
    for program in ("microsocks", "curl", "tcpdump"):
        if not shutil.which(program):
            raise Skip("%s is missing; on Debian: apt-get install %s" % (program, program))
    bench.version(Microsocks.name, Microsocks(None).version())
    if Shadowsocks.is_there():
        bench.version(Shadowsocks.name, Shadowsocks(None).version())
        return list(WORDS)
    bench.remark("shadowsocks is not measured: it is missing; on Debian: apt-get install --no-install-recommends %s" % Shadowsocks.package)
    return [way for way in WORDS if way != SHADOWSOCKS]


def _start_proxies(lab, ways, wrapper=()):
    """Starts all that runs on the converter, and gives all hosts the sysctls of busy ones. wrapper: words in front of SOCKS servers."""
    for host in lab.hosts.values():
        for name, value in SYSCTLS.items():
            host.sysctl(name, value)
    lab.convertd(convertd_options(lab.build))
    for kind in (Microsocks, MicrosocksPassword):
        proxy = kind(lab)
        proxy.wrapper = wrapper
        proxy.start()
    if SHADOWSOCKS in ways:
        lab.start_listening(lab.converter, [*wrapper, "ss-server", "-s", "0.0.0.0", "-p", Shadowsocks.port, "-n", 20000, "-t", 3600,
                                            *Shadowsocks.options], Shadowsocks.port)


def _start_ss_local(lab, host, server, port, wrapper=()):
    lab.start_listening(host, [*wrapper, "ss-local", "-s", server, "-p", Shadowsocks.port, "-b", "127.0.0.1", "-l", port, "-n", 20000,
                                     "-t", 3600, *Shadowsocks.options], port)


# --- many phones --------------------------------------------------------------------------------------------------------------


def _applications(lab, ways, hosts, wrapper):
    """Starts one for each way. hosts: those of the places; wrapper: words in front of what asks a proxy."""
    converted = lab.shim_env(CONVERT_ADDR=lab.converter.addr4)

    def to(host, port):
        return lambda place: (address(place), host, port)

    def to_ss_local(_):
        return "127.0.0.1", "127.0.0.1", Shadowsocks.local_port
    server = to(lab.server.addr4, SERVER_PORT)
    arguments = {
        DIRECT: (server,), CONVERT: (server, (), converted), EARLY: (server, ["--fast-open"], converted),
        SOCKS: (to(lab.converter.addr4, Microsocks.port), ["--socks5"], None, wrapper),
        PASSWORD: (to(lab.converter.addr4, MicrosocksPassword.port), ["--socks5", "--user", ":".join(MicrosocksPassword.user)], None,
                   wrapper),
        SHADOWSOCKS: (to_ss_local, ["--socks5"])}
    return [Application(lab, way, hosts, *arguments[way]) for way in ways]


class _Counters:
    """The kernel's counters of several hosts together, since it was made."""

    def __init__(self, hosts):
        self._hosts = list(dict.fromkeys(hosts))
        self._before = self._now()

    def _now(self):
        return sum((collections.Counter(host.counters()) for host in self._hosts), collections.Counter())

    def changes(self):
        now = self._now()
        return {name: count - self._before[name] for name, count in now.items()}


@dataclasses.dataclass
class _Set:
    """Phones with these networks, and what was found of them: [(the round trip to the proxy on the first network, {way: times})] in ms."""

    networks: tuple
    key: str       # what keys of tables, plots and values end with
    caption: str   # and their captions
    found: list = None


ONE, TWO = (("wifi",), "", ""), (("wifi", "lte"), "-two", "; WiFi and a mobile network, Multipath TCP to all proxies")


def _start_phones(lab, ways, phones):
    """Starts all programs; returns (the hosts of the places, the applications)."""
    wrapper = MPTCPIZE if len(phones.networks) > 1 else ()
    hosts = make_hosts(lab, PLACES, phones.networks)
    lab.start_listening(lab.server, [lab.build.program(LOAD), "serve", "--verify", SERVER_PORT], SERVER_PORT)
    _start_proxies(lab, ways, wrapper)
    for host in hosts if SHADOWSOCKS in ways else ():
        _start_ss_local(lab, host, lab.converter.addr4, Shadowsocks.local_port, wrapper)
    return hosts, _applications(lab, ways, hosts, wrapper)


def _measure(bench, ways, phones):
    """Measures a _Set; phones of which a connection failed are left out."""
    count = bench.count(PHONES, PHONES_QUICK)
    # the first phone at each place finds cold caches, and isn't measured
    round_trips = {network: [mobile_rtts.rtt_ms(0.5)] * PLACES + mobile_rtts.draw(count, SEED + number)
                   for number, network in enumerate(phones.networks)}
    found, failed = [None] * (PLACES + count), []
    with Lab(wifi=Link(), lte=Link() if "lte" in phones.networks else None, core=Link(delay_ms=CORE_MS / 2)) as lab:
        hosts, applications = _start_phones(lab, ways, phones)
        client, converter = _Counters(hosts), _Counters([lab.converter])
        answers = ask_in_turn(lab, applications, round_trips, PLACES, SEED)
        for _ in bench.over(range(len(found)), label=lambda done: "phone %d" % (done + 1)):
            number, times, reasons = next(answers)
            found[number] = None if reasons else (round_trips["wifi"][number], times)
            failed += reasons
        if len(failed) > FAILED_MAX * len(ways) * len(found):
            raise LabError("%d connections failed, such as %s" % (len(failed), failed[0]))
        # a connection of libconvert's that fell back would be another one; over both networks all but direct ones are Multipath TCP
        expected = (2 if len(phones.networks) == 1 else len(ways) - 1) * len(found) - len(failed)
        asked, joined = client.changes(), converter.changes().get("MPTcpExtMPJoinAckRx", 0)
        if asked.get("MPTcpExtMPCapableSYNACKRX", 0) < expected:
            raise LabError("only %d of %d connections were Multipath TCP" % (asked.get("MPTcpExtMPCapableSYNACKRX", 0), expected))
        late = {way: stats["late_us"] for way, stats in lab.wifi.stats().items()}
        for application in applications:
            application.close()
    phones.found = [phone for phone in found[PLACES:] if phone]
    bench.setting("phones" + phones.caption, count)
    bench.setting("failed connections, whose phones are left out" + phones.caption, len(failed))
    for name, value in (("phones", len(phones.found)), ("connections", len(phones.found) * len(ways))):
        bench.value(name + phones.key, "{:,}".format(value))
    bench.value("joined" + phones.key, "%.0f%%" % (100 * joined / expected))
    bench.remark("%d phones%s: their hosts sent %d segments again. The emulated link passed packets on %d µs (from the phones) and %d µs "
                 "(to them) too late, on average. The second network joined %d of %d Multipath TCP connections." % (
                     count, phones.caption, asked.get("TcpRetransSegs", 0), late["a-to-b"], late["b-to-a"], joined, expected))


# --- tables and plots of the phones -------------------------------------------------------------------------------------------


def _curve(values):
    """The distribution of many values by fewer."""
    return [round(quantile(values, number / CURVE), 1) for number in range(CURVE + 1)]


def _verdict(holds):
    return "confirmed" if holds else "not confirmed"


def _column(found, way, which):
    return [times[way][which] for _, times in found]


def _of_direct(found, way, which):
    """The median of the ratios to direct TCP, phone by phone."""
    return median([times[way][which] / times[DIRECT][which] for _, times in found])


def _within(values, limit):
    return sum(value < limit for value in values) / len(values)


def _tell_connected(bench, phones):
    """Figure 3: how long it takes until the server is connected."""
    found, rows, series = phones.found, [], {}
    for way in KNOWING:
        values = _column(found, way, CONNECTED)
        series[way] = _curve(values)
        ratio = "%.2f" % _of_direct(found, way, CONNECTED)
        bench.value("connected-of-direct-" + WORDS[way] + phones.key, ratio)
        bench.value("connected-median-" + WORDS[way] + phones.key, "%.0f" % median(values))
        rows.append([way, *["%.1f" % quantile(values, share) for share in (0.5, 0.85, 0.95)], ratio,
                     "%.1f%%" % (100 * _within(values, GOOGLE_MS))])
    bench.table("Until the application knows that the server is connected, %d phones%s" % (len(found), phones.caption), [
        "", "median ms", "85% within", "95% within", "of direct, phone by phone", "within %d ms" % GOOGLE_MS], rows,
                key="connected" + phones.key)
    far = [phone for phone in found if phone[0] + CORE_MS > HOLD_MS]
    bench.value("share-above-hold-time" + phones.key, "%.1f%%" % (100 * len(far) / len(found)))
    bench.value("connected-of-direct-above-hold-time" + phones.key, "%.2f" % _of_direct(far, CONVERT, CONNECTED) if far else "not measured")
    bench.value("verdict-as-direct" + phones.key, _verdict(abs(_of_direct(found, CONVERT, CONNECTED) - 1) < TOLERANCE))
    bench.plot("cdf", "Time to connect to the server (the blog post's figure 3)" + phones.caption, series, key="fig3" + phones.key,
               xlog=True, xlabel=SINCE + WITH_CORE, ylabel=SHARE,
               published={CONVERT + " (blog post)": PUBLISHED_CONVERT, PASSWORD + " (blog post)": PUBLISHED_SOCKS})


def _tell_commands(bench, phones):
    """Figure 4: what SOCKS5's commands take, and by how much they delay a phone's connection."""
    found = phones.found
    commands = {way: [times[way][CONNECTED] - times[way][TCP] for _, times in found] for way in (SOCKS, PASSWORD)}
    delays = {way: [times[way][CONNECTED] - times[CONVERT][CONNECTED] for _, times in found] for way in (SOCKS, PASSWORD)}
    rows = []
    for way, values in delays.items():
        # in round trips of the phone that waits: the median isn't moved by what disturbs some
        trips = median([delay / round_trip for delay, (round_trip, _) in zip(values, found)])
        shares = [100 * (1 - _within(values, limit)) for limit, _ in PUBLISHED_DELAYS]
        rows.append([way, "%.1f" % median(commands[way]), "%.1f" % median(values), "%.2f" % trips,
                     *["%.1f%%" % share for share in shares]])
        bench.value("delay-in-round-trips-" + WORDS[way] + phones.key, "%.2f" % trips)
        for (limit, _), share in zip(PUBLISHED_DELAYS, shares):
            bench.value("share-delayed-%d-%s%s" % (limit, WORDS[way], phones.key), "%.1f%%" % share)
    rows.append(["the blog post: SOCKS5, authentication", None, None, "3",
                 *["%.0f%%" % (100 * (1 - share)) for _, share in PUBLISHED_DELAYS]])
    bench.table("SOCKS5's commands, and how much later than by libconvert the same phone is connected" + phones.caption, [
        "", "commands, median ms", "later, median ms", "later, in round trips of the phone",
        *["%d ms later or more" % limit for limit, _ in PUBLISHED_DELAYS]], rows, key="delays" + phones.key)
    for limit, share in PUBLISHED_DELAYS:
        # a delay of three round trips is at least `limit` for the phones whose round trip is at least a third of it
        last = [delay for delay, (round_trip, _) in zip(delays[PASSWORD], found) if 3 * round_trip >= limit]
        delayed = 1 - _within(last, limit)
        percent = "%.0f%s" % (100 * (1 - share), phones.key)
        bench.value("delayed-of-last-" + percent, "%.1f%%" % (100 * delayed))
        bench.value("least-delay-last-" + percent, "%.0f ms" % quantile(delays[PASSWORD], share))
        bench.value("verdict-%d%s" % (limit, phones.key), _verdict(delayed > DELAYED_MIN))
    bench.plot("cdf", "Time that SOCKS5's commands take (the blog post's figure 4)" + phones.caption,
               {way: _curve(values) for way, values in commands.items()}, key="fig4" + phones.key, xlog=True, ylabel=SHARE,
               xlabel="ms from TCP's connection to the proxy's last answer" + WITH_CORE,
               published={PASSWORD + " (blog post)": PUBLISHED_DELAYS})
    bench.plot("cdf", "How much later a phone is connected by SOCKS5 than by libconvert" + phones.caption,
               {way: _curve(values) for way, values in delays.items()}, key="delay" + phones.key, xlog=True, xlim=DELAY_LIMITS,
               xlabel="ms later", ylabel=SHARE, published={PASSWORD + " (blog post)": PUBLISHED_DELAYS})


def _tell_first_byte(bench, phones, trips):
    """What the user waits for; and, where one network counts, what the machine adds to the links' own time: was it disturbed?"""
    found, rows, series, added_rows = phones.found, [], {}, []
    for way in trips:
        values = _column(found, way, FIRST)
        series[way] = _curve(values)
        ratio = "%.2f" % _of_direct(found, way, FIRST)
        bench.value("first-byte-of-direct-" + WORDS[way] + phones.key, ratio)
        rows.append([way, *["%.1f" % quantile(values, share) for share in (0.5, 0.85, 0.95)], ratio,
                     "%.1f%%" % (100 * _within(values, GOOGLE_MS))])
        counted = trips[way]
        added = [times[way][FIRST] - counted.get("access", 0) * round_trip - counted.get("core", 0) * CORE_MS
                 for round_trip, times in found]
        added_rows.append([way, *["%.2f" % quantile(added, share) for share in (0.05, 0.5, 0.95, 0.99)]])
    bench.table("Until the first byte of the response is there, %d phones%s" % (len(found), phones.caption), [
        "", "median ms", "85% within", "95% within", "of direct, phone by phone", "within %d ms" % GOOGLE_MS], rows,
                key="first_byte" + phones.key)
    bench.plot("cdf", "Time to the first byte of the response" + phones.caption, series, key="first_byte" + phones.key, xlog=True,
               xlabel=SINCE, ylabel=SHARE)
    if len(phones.networks) > 1:
        return
    bench.table("First byte: ms beyond the round trips that were counted, of the links as they were set", [
        "", "5% within", "median", "95% within", "99% within"], added_rows, key="added")


# --- counting round trips -----------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class _Curl:
    """How curl goes one way. request, response: bytes that show them in packets; None where all is encrypted."""

    options: list = dataclasses.field(default_factory=list)
    env: dict = None
    request: bytes = b"GET /"
    response: bytes = b"HTTP/1."
    mptcp: bool = True  # whether the client's kernel has it


def _curls(lab, ways):
    """How curl goes each of the ways, and those that are only counted, by name."""
    # What one curl learns of the converter, such as that it withholds SYNs, the next one knows, as with any user.
    learned = os.path.join(lab.directory, "learned")
    os.mkdir(learned, 0o700)
    converted = lab.shim_env(CONVERT_ADDR=lab.converter.addr4, CONVERT_CACHE=learned)
    socks, password = ("%s:%d" % (lab.converter.addr4, kind.port) for kind in (Microsocks, MicrosocksPassword))
    curls = {DIRECT: _Curl(), NEW: _Curl(env=converted), CONVERT: _Curl(env=converted), EARLY: _Curl(["--tcp-fastopen"], converted),
             EARLY_TCP: _Curl(["--tcp-fastopen"], converted, mptcp=False), SOCKS: _Curl(["--socks5", socks]),
             PASSWORD: _Curl(["--socks5", password, "--proxy-user", ":".join(MicrosocksPassword.user)]),
             SHADOWSOCKS: _Curl(["--socks5", "127.0.0.1:%d" % Shadowsocks.local_port], None, None, None)}
    return {name: curl for name, curl in curls.items() if name in ways or name not in WORDS}


def _captured(lab, curl):
    """Runs curl while all links are captured; returns (its time to the first byte in ms, the hops)."""
    lab.client.sysctl("net.mptcp.enabled", int(curl.mptcp))
    ends = (lab.client, "wifi"), (lab.converter, "wifi"), (lab.converter, "core"), (lab.server, "core")
    captures = [lab.capture(host, device, "tcp") for host, device in ends]
    with captures[0], captures[1], captures[2], captures[3]:
        said = lab.client.run(["curl", "-q", "-sS", "-o", "/dev/null", "-w", "%{time_starttransfer} %{http_code}", *curl.options,
                               "http://%s/bytes/1000" % lab.server.addr4], env=curl.env).stdout
        for link in (lab.wifi, lab.core):
            link.wait_idle()
    first, status = said.split()
    if status != "200":
        raise LabError("the server answered %s" % status)
    packets = [capture.packets() for capture in captures]
    return float(first) * 1000, (round_trips.hops("access", "client", packets[0], "converter", packets[1]) +
                                 round_trips.hops("core", "converter", packets[2], "server", packets[3]))


def _count(bench, ways):
    """Returns {way: {link: round trips until the first byte of the response}}."""
    rows, counted, asked = [], {}, {}
    with Lab(wifi=Link(delay_ms=FAR_ACCESS_MS / 2), lte=None, core=Link(delay_ms=FAR_CORE_MS / 2)) as lab:
        lab.http()
        _start_proxies(lab, ways)
        if SHADOWSOCKS in ways:
            _start_ss_local(lab, lab.client, lab.converter.addr4, Shadowsocks.local_port)
        for name, curl in bench.over(_curls(lab, ways).items(), label=lambda item: "curl, captured: " + item[0]):
            first, found = _captured(lab, curl)
            request = round_trips.critical_path(found, round_trips.first_hop(found, "access", "client", curl.request))
            response = round_trips.critical_path(found, round_trips.first_hop(found, "access", "converter", curl.response))
            before, counted[name] = round_trips.count(request[:-1]), round_trips.count(response)
            asked[name] = before.get("access", 0)
            rows.append([name, *["%g" % trips.get(link, 0) for trips in (before, counted[name]) for link in ("access", "core")],
                         "%.0f" % first, "%.0f%%" % (100 * round_trips.explained(response)), str(PUBLISHED_TRIPS.get(name, "-"))])
            for link in ("access", "core"):
                bench.value("before-request-%s-%s" % (link, WORDS_COUNTED[name]), "%g" % before.get(link, 0))
                bench.value("until-first-byte-%s-%s" % (link, WORDS_COUNTED[name]), "%g" % counted[name].get(link, 0))
    bench.table("Round trips that stock curl needs, counted from captured packets: between client and converter (access, %d ms each) and "
                "between converter and server (core, %d ms each)" % (FAR_ACCESS_MS, FAR_CORE_MS), [
                    "", "before the request: access", "core", "until the first byte: access", "core", "first byte, ms",
                    "of which on links", "the blog post: access"], rows, key="roundtrips")
    bench.value("verdict-trips", _verdict(all(asked[way] == PUBLISHED_TRIPS[way] for way in (CONVERT, PASSWORD))))
    # "if you remove the authentication steps of the SOCKSv5 protocol, you get the same flow as the ShadowSocks proxy"
    bench.value("verdict-trips-socks", _verdict(asked[SOCKS] == PUBLISHED_TRIPS[SHADOWSOCKS]))
    bench.remark("The blog post counts round trips to the proxy until the proxy knows the server's address (shadowsocks) or says that it is "
                 "connected (Convert, SOCKS5 with authentication): for the latter two that is before the request.")
    return {way: counted[way] for way in ways}


def run(bench):
    """The experiment."""
    bench.cpu_matters = True
    ways = _ways(bench)
    trips = _count(bench, ways)
    bench.setting("phones at a time", PLACES)
    bench.setting("round trip from the converter to the server", "%d ms" % CORE_MS)
    bench.setting("round trips from the phones to the converter", "%s; in between their logarithm grows linearly with the share" % ", ".join(
        "%g%% up to %g ms" % (100 * share, rtt) for share, rtt in mobile_rtts.QUANTILES))
    bench.setting("seed", SEED)
    for key, value in (("places", PLACES), ("core-ms", CORE_MS), ("hold-time", HOLD_MS)):
        bench.value(key, value)
    for phones in [_Set(*ONE)] + ([_Set(*TWO)] if shutil.which(MPTCPIZE[0]) else []):
        _measure(bench, ways, phones)
        bench.samples("ms of round trip from the phone to the converter" + phones.caption,
                      [round(round_trip, 1) for round_trip, _ in phones.found])
        for way in ways:
            for which, name in ((TCP, "TCP is connected"), (CONNECTED, "the server is connected"), (FIRST, "the first byte")):
                if which == FIRST or way in KNOWING and (which == CONNECTED or "SOCKS5" in way):
                    bench.samples("ms until %s: %s%s" % (name, way, phones.caption),
                                  [round(times[way][which], 1) for _, times in phones.found])
        _tell_connected(bench, phones)
        _tell_commands(bench, phones)
        _tell_first_byte(bench, phones, trips)
