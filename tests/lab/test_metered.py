#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_metered.py - a network that the user excludes carries no byte of TCP, not even a SYN of a subflow or a probe

Both networks lead to the converter. The lab has an MPTCP endpoint on each, and a transfer uses both. A wish in CONVERT_PATHS holds for
each subflow, with any front end, and whichever program keeps the endpoints. A firewall counts the bytes.
"""
import contextlib
import json
import signal

from convertlab import Lab, Link, Veth, check, equal, long, main, wait_until
from convertlab.paths import BULK, DEVICES, OURS, Nmcli, PathManager, bare, connections_end, endpoints, ip, published, serve, stand_in

SIZE = 1500000
STANDBY = 4000  # bytes of a subflow that stands by, from its SYN to its end, both ways
NOBODY = 65534
MPTCP, TCP = "converted over MPTCP", "converted over TCP"
LTE = {"down": "link set lte down", "up": "link set lte up", "route": "route add default via 10.2.0.1 dev lte metric 200"}
COUNTERS = """add table inet metered
add counter inet metered lte
add chain inet metered out { type filter hook output priority 0; }
add chain inet metered in { type filter hook input priority 0; }
add rule inet metered out oifname lte meta l4proto tcp counter name lte
add rule inet metered in iifname lte meta l4proto tcp counter name lte
"""


# A seccomp filter: socket(AF_NETLINK, …) fails with EAFNOSUPPORT, as by systemd's RestrictAddressFamilies=.
WITHOUT_NETLINK = """
import ctypes, os, struct, sys
number = {"x86_64": 41, "aarch64": 198}[os.uname().machine]
code = [(0x20, 0, 0, 0), (0x15, 0, 3, number), (0x20, 0, 0, 16), (0x15, 0, 1, 16), (6, 0, 0, 0x50000 | 97), (6, 0, 0, 0x7fff0000)]
text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in code))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code), ctypes.addressof(text)))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
    sys.exit("prctl")
os.execvp(sys.argv[1], sys.argv[1:])
"""


@contextlib.contextmanager
def metered(lte=Link(delay_ms=10, rate_mbit=50)):
    """A lab whose default route is by wifi, with a converter and the server of the transfers."""
    with Lab(wifi=Link(delay_ms=5, rate_mbit=50), lte=lte, core=Link(delay_ms=1)) as lab:
        lab.client.run(["nft", "-f", "-"], input=COUNTERS)
        serve(lab)
        yield lab


def on_lte(lab):
    """The bytes of TCP that lte has carried, both ways."""
    listed = json.loads(lab.client.run(["nft", "-j", "list", "counters", "table", "inet", "metered"]).stdout)["nftables"]
    return next(entry["counter"]["bytes"] for entry in listed if "counter" in entry)


def command(lab, method, verb, size=SIZE):
    return [lab.build.program("convertize"), "--config", "none", "--method", method, "python3", BULK, verb, "tcp", lab.server.addr4, 6000, size]


def environment(lab, wish, **variables):
    env = lab.converted(CONVERT_CACHE="none", CONVERT_PATHS=wish, CONVERT_LOG="-", **variables)
    env["LD_PRELOAD"] = env["LD_PRELOAD"].removesuffix(lab.build.shim)
    return env


def transfer(lab, wish, method="preload", verb="get", wrapper=(), **variables):
    """Makes a transfer with this CONVERT_PATHS. Returns (the bytes that lte carried for it, the log)."""
    connections_end(lab)
    before = on_lte(lab)
    log = lab.client.run([*wrapper, *command(lab, method, verb)], env=environment(lab, wish, **variables)).stderr
    return on_lte(lab) - before, log


def doctor(lab, wish, *words):
    return lab.client.run([lab.build.program("convertize"), "check", "--config", "none", *words], check=False,
                          env={"CONVERT_ADDR": lab.converter.addr4, "CONVERT_CACHE": "none", "CONVERT_PATHS": wish})


def carries_nothing(lab, wishes, said, **options):
    """With both front ends, in both directions: no byte on lte, and the log says this of the connection."""
    for wish in wishes:
        for method in ("preload", "supervise"):
            for verb in ("get", "put"):
                count, log = transfer(lab, wish, method, verb, **options)
                equal(count, 0, "bytes on lte for %s, %s, %s, in\n%s" % (wish, method, verb, log))
                check(said in log, "%s for %s, %s, %s, in\n%s" % (said, wish, method, verb, log))


def test_endpoints_of_an_excluded_network():
    """There is an endpoint on each network: without a wish lte carries its share, and no byte if it is excluded."""
    with metered() as lab:
        # on a busy machine the second subflow may come too late for a transfer
        wait_until(lambda: transfer(lab, "")[0] > SIZE / 10, 20, "bytes on lte while nobody excludes it")
        carries_nothing(lab, ["lte=never"], TCP)


@long
def test_wishes_and_users():
    """The same for each way to write a wish, and for each user."""
    with metered() as lab:
        wait_until(lambda: transfer(lab, "wifi")[0] > SIZE / 10, 20, "bytes on lte with an order, which excludes nothing")
        carries_nothing(lab, ["lte=backup", lab.client.lte4 + "=never", "wifi lte=backup"], TCP)
        # an ordinary user's programs see as much of the endpoints
        carries_nothing(lab, ["lte=never"], TCP, wrapper=("setpriv", "--reuid", NOBODY, "--clear-groups"))


@long
def test_situations():
    """Connections use Multipath TCP exactly in those situations in which Linux can't open a subflow on lte."""
    with metered() as lab:
        lte, wifi = lab.client.lte4, lab.client.wifi4
        situations = [
            # the endpoints and limits, the wish, does the connection use Multipath TCP?
            ("no endpoint there", ["endpoint delete id %d" % number for number in (3, 4)] + ["limits set add_addr_accepted 0"], "lte=never", True),
            ("the same", [], "lte=backup", True),
            ("the same, while its device is down, with its address", ["down"], "lte=never", False),
            ("the same, without a route", ["up"], "lte=never", False),
            ("the same, and a network that isn't there", ["route"], "wwan9=never", False),
            ("the same, and a device without an address", [], "lo=never", False),
            ("addresses that a converter announces", ["limits set add_addr_accepted 2"], "lte=never", False),
            ("the same", [], "lte=backup", False),
            ("one by which addresses are announced", ["limits set add_addr_accepted 0", "endpoint add %s signal id 5" % lte], "lte=never", False),
            ("one that isn't bound to its device", ["endpoint delete id 5", "endpoint add %s subflow id 5" % lte], "lte=never", False),
            ("wifi's address by lte's device", ["endpoint flush", "endpoint add %s dev lte subflow id 5" % wifi], "lte=never", False),
            ("one for backup", ["endpoint flush", "endpoint add %s dev lte subflow backup id 5" % lte], "lte=never", False),
            ("one of the other family", ["endpoint flush", "endpoint add fd02::2 dev lte subflow id 5"], "lte=never", True),
        ]
        for name, changes, wish, multipath in situations:
            for change in changes:
                lab.client.ip(LTE[change] if change in LTE else "mptcp " + change)
            count, log = transfer(lab, wish)
            equal((count, MPTCP in log, TCP in log), (0, multipath, not multipath), "%s, %s, in\n%s" % (name, wish, log))
        # a program that manages paths may do so at any time
        lab.client.ip("mptcp endpoint flush")
        lab.client.sysctl("net.mptcp.pm_type", 1)
        count, log = transfer(lab, "lte=never")
        equal((count, TCP in log), (0, True), "a program manages paths, in\n" + log)
        check("since a program manages the paths of Multipath TCP" in log, log)


def test_without_a_carrier():
    """The network has its address and routes, and a path manager would make its endpoint as soon as it has a carrier."""
    with metered(lte=Veth()) as lab:
        lab.client.ip("mptcp endpoint delete id 3", "mptcp endpoint delete id 4", "mptcp limits set add_addr_accepted 0")
        check(MPTCP in transfer(lab, "lte=never")[1], "with a carrier")
        lab.converter.ip("link set lte down")
        wait_until(lambda: "NO-CARRIER" in lab.client.run(["ip", "link", "show", "lte"]).stdout, 10, "no carrier")
        count, log = transfer(lab, "lte=never")
        equal((count, TCP in log), (0, True), log)


@long
def test_the_doctor_knows_why():
    """check is degraded while Multipath TCP would break a wish; its printed commands cure that, and then a transfer uses Multipath TCP."""
    with metered() as lab:
        for wish, breaches in (("lte=never", 2), ("lte=backup", 2)):
            bare_endpoints = "\n".join("endpoint add %s dev %s subflow" % (address, device) for device, address in (
                ("wifi", lab.client.wifi4), ("lte", lab.client.lte4), ("lte", "fd02::2")))
            lab.client.ip("mptcp endpoint flush", "mptcp limits set subflows 2 add_addr_accepted 2",
                          *["mptcp " + line for line in bare_endpoints.splitlines()])
            for _ in range(breaches):
                check_said = json.loads(doctor(lab, wish, "--json").stdout)
                fact = next(fact for fact in check_said["facts"] if fact["name"] == "paths.word")
                check(fact["status"] == "warn" and "connections use TCP instead of Multipath TCP, since" in fact["text"], fact)
                check(doctor(lab, wish, "--fix").stdout, "commands")
                doctor(lab, wish, "--fix=run")
            fact = next(fact for fact in json.loads(doctor(lab, wish, "--json").stdout)["facts"] if fact["name"] == "paths.word")
            equal(fact["status"], "ok", "the wish in %s" % fact)
            count, log = transfer(lab, wish)
            check(count < STANDBY and MPTCP in log, "%d bytes, %s" % (count, log))


@long
def test_a_backup_takes_over():
    """With the kernel's backup flag a subflow on lte carries only its handshake until wifi fails; then the transfer goes on there."""
    with metered() as lab:
        lab.client.ip("mptcp limits set add_addr_accepted 0", "mptcp endpoint change %s backup" % lab.client.lte4)
        for verb in ("get", "put"):
            count, log = transfer(lab, "lte=backup", verb=verb)
            check(count < STANDBY and MPTCP in log, "%d bytes on lte, in\n%s" % (count, log))
        before = on_lte(lab)
        running = lab.client.popen(command(lab, "preload", "get", 10 * SIZE), name="transfer", env=environment(lab, "lte=backup"))
        wait_until(lambda: lab.wifi.stats()["b-to-a"]["out_bytes"] > 4 * SIZE, 20, "a part of the transfer")
        check(on_lte(lab) - before < STANDBY, "%d bytes on lte while wifi works" % (on_lte(lab) - before))
        lab.wifi.down()
        equal(running.wait(60), 0, "the transfer: " + running.log_text())
        check(on_lte(lab) - before > SIZE, "%d bytes on lte, which takes over" % (on_lte(lab) - before))


def test_what_network_manager_says():
    """A device that NetworkManager calls metered stands by, even with the default route. Alone, it or a disabled one carries transfers."""
    with metered() as lab:
        bare(lab)
        nm = Nmcli(lab)
        nm.says("lte", "", "yes")
        with stand_in(lab, "NetworkManager"), PathManager(lab, env=nm.env) as manager:
            wait_until(lambda: published(lab) == [("8805", "lte"), ("8807", "lte")], 10, "what programs are told")
            for routes in ((), ("route add default via 10.2.0.1 dev lte metric 50",)):
                lab.client.ip(*routes)
                for method in ("preload", "supervise"):
                    count, log = transfer(lab, "", method)
                    check(count < STANDBY and MPTCP in log, "%d bytes on lte, by %s, in\n%s" % (count, method, log))
            connections_end(lab)
            lab.client.ip("link set wifi down")
            for flags, metered_by_it in (("", "yes"), ("0x2 (disabled)", "unknown")):
                nm.says("lte", flags, metered_by_it)
                manager.process.send_signal(signal.SIGHUP)
                wait_until(lambda: (not published(lab)) == bool(flags), 10, "what programs are told of lte alone")
                for method in ("preload", "supervise"):
                    count, log = transfer(lab, "", method)
                    check(count > SIZE and MPTCP in log, "%d bytes on lte alone, by %s, in\n%s" % (count, method, log))


@long
def test_the_path_service():
    """The service keeps endpoints by its own configuration. Programs know it, and rely on it for networks that aren't there yet."""
    with metered() as lab:
        bare(lab)
        situations = [
            # the service's options, the wish, does the connection use Multipath TCP? how many bytes may lte carry?
            ((), "lte=never", False, 0),
            ((), "lte=backup", False, 0),
            (("--never-device", "l[s-z]*"), "lte=never", True, 0),
            (("--never-device", "lte"), "lte=backup", True, 0),
            (("--backup-device", "lte"), "lte=backup", True, STANDBY),
            (("--backup-device", "lte"), "lte=never", False, 0),
            (("--paths", "lte=never"), "lte=never", True, 0),
            (("--never-device", "lte", "--paths", "wwan9=backup"), "lte=never wwan9=backup", True, 0),
            (("--never-device", "lte", "--paths", "wwan9=backup"), "lte=never wwan9=never", False, 0),
            (("--never-device", "lte"), "lte=never wwan9=backup", False, 0),
        ]
        for words, wish, multipath, most in situations:
            with PathManager(lab, *DEVICES, *words) as manager:
                count, log = transfer(lab, wish)
                check(count <= most and (MPTCP in log) == multipath and (TCP in log) != multipath,
                      "%d bytes on lte for %s, %s, in\n%s" % (count, words, wish, log))
                if "--never-device" not in words and "--paths" not in words:
                    # the service will make the endpoint again in a moment, as after a silence
                    lab.client.ip("mptcp endpoint delete id %d" % endpoints(lab)[lab.client.lte4][0])
                    count, log = transfer(lab, wish)
                    check(count == 0 and "the path service uses a network that CONVERT_PATHS or a quota excludes" in log,
                          "%d, %s" % (count, log))
                connections_end(lab)
                manager.stop()
            equal([line for line in ip(lab, "rule") if OURS in line], [], "rules that are left")
        result = lab.client.run([lab.build.program("convertize"), "paths", "--once", "--config", "none", "--never-device", "lte",
                                 "--paths", "lte=backup"], check=False)
        equal((result.returncode, result.stderr), (2, "convertize: --never-device: it names lte, and paths has lte=backup; "
                                                   "keep one: paths also governs programs\n"), "a contradiction")


@long
def test_where_netlink_is_forbidden():
    """A sandbox hides networks and endpoints from the program: it connects over TCP, or not at all if the usual network is excluded."""
    with metered() as lab:
        env = lab.converted(CONVERT_CACHE="none", CONVERT_LOG="-")
        words = ["python3", "-c", WITHOUT_NETLINK, "python3", BULK, "get", "tcp", lab.server.addr4, 6000, SIZE]
        for wish, status, said in (("lte=never", 0, TCP), (lab.client.lte4 + "=never", 0, TCP), ("lte=backup", 0, TCP),
                                   ("wifi=never", 1, "allows no network"), (lab.client.wifi4 + "=never fd01::2=never", 1, "allows no network")):
            for fallback in ("direct", "none"):
                connections_end(lab)
                before = on_lte(lab)
                result = lab.client.run(words, env=dict(env, CONVERT_PATHS=wish, CONVERT_FALLBACK=fallback), check=False)
                equal((on_lte(lab) - before, result.returncode, said in result.stderr), (0, status, True), "%s: %s" % (wish, result.stderr))


@long
def test_the_usual_network_is_excluded():
    """Lte has the default route: connections by a converter, and direct ones while none answers, avoid it as long as wifi works."""
    with metered() as lab:
        lab.client.ip("route del default dev wifi", "route add default via 10.1.0.1 dev wifi metric 900")
        check(transfer(lab, "")[0] > SIZE / 10, "bytes on lte while nobody excludes it")
        carries_nothing(lab, ["lte=never", "lte=backup"], TCP)
        lab.converter.run(["nft", "add table inet refuse; add chain inet refuse in { type filter hook input priority 0; };"
                           "add rule inet refuse in tcp dport 1234 reject with tcp reset"])
        carries_nothing(lab, ["lte=never"], "directly by wifi, since the usual network ")
        # over wifi the converter refuses: the program asks it over lte before it gives it up
        count, log = transfer(lab, "lte=backup")
        check(count < STANDBY and "directly by wifi, since the usual network " in log, "%d, %s" % (count, log))


@long
def test_direct_after_an_attempt():
    """Linux refuses the SYN to a converter at once, by a rule for its port: the direct connection that follows keeps off lte, too."""
    with metered() as lab:
        lab.client.ip("route del default dev wifi", "route add default via 10.1.0.1 dev wifi metric 900", "mptcp endpoint delete id 3",
                      "mptcp endpoint delete id 4", "mptcp limits set add_addr_accepted 0")
        for family in ("-4", "-6"):
            lab.client.run(["ip", family, "rule", "add", "priority", "10", "ipproto", "tcp", "dport", "1234", "unreachable"])
        for address in (lab.converter.addr4, lab.converter.addr6):
            for method in ("preload", "supervise"):
                count, log = transfer(lab, "lte=never", method, CONVERT_ADDR=address)
                equal((count, "directly by wifi, since the usual network " in log, "asked over TCP" in log), (0, True, False),
                      "%s by %s, in\n%s" % (address, method, log))


if __name__ == "__main__":
    main()
