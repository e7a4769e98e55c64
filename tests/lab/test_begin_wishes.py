#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_begin_wishes.py - connections begin on the networks that the user, a VPN and the networks' roles leave them"""
import errno
import json
import os
import re
import subprocess

from convertlab import Veth, check, equal, long, main, waits
from test_begin import SECOND_SYN_MS, curl, lab_for, remembering, served, unmoved, well


def test_backup():
    """A network marked as backup carries only connections that would fail otherwise."""
    with lab_for() as lab:
        served(lab)
        lab.client.ip("mptcp endpoint change %s backup" % lab.client.lte4)
        name = well(lab, lambda name: curl(lab, env=remembering(lab, name))[1], lab.client.wifi4)
        lab.wifi.down()
        equal([curl(lab, env=remembering(lab, name))[1] for _ in range(2)], [lab.client.lte4] * 2, "addresses, in\n" + lab.shim_log())
        check("begins on lte, which is for backup" in lab.shim_log(), lab.shim_log())


@long
@waits
def test_nothing_leaves_a_vpn():
    """
    Wifi, a TUN device, counts as a VPN that takes all traffic, and falls silent: with the library or the supervisor, connections wait for
    it, whatever CONVERT_PATHS says, and direct ones, too. They leave it if the user allows that, or if it is no VPN.
    """
    def address(lab, *method, learned="runtime", **env):
        env = remembering(lab, learned, **env)
        if method:
            env["LD_PRELOAD"] = env["LD_PRELOAD"].removesuffix(lab.build.shim)
            method = [lab.build.program("convertize"), "--method", *method]
        return lab.client.run([*method, "curl", "-sS", "-m", "5", "-o", "/dev/null", "-w", "%{local_ip}",
                               "http://%s/bytes/10" % lab.server.addr4], env=env, check=False).stdout

    with lab_for() as lab:
        served(lab)
        wifi, lte = lab.client.wifi4, lab.client.lte4
        for wish in ("", "lte", "wifi=backup"):
            equal(address(lab, CONVERT_BESIDE_VPN="0", CONVERT_PATHS=wish), wifi, "the address by \"%s\", in\n%s" % (wish, lab.shim_log()))
        lab.wifi.down()
        for method in ((), ("supervise",)):
            check(lte not in address(lab, *method, CONVERT_BESIDE_VPN="0"), "lte by %s, in\n%s" % (method, lab.shim_log()))
        equal(lab.shim_log().count("lte"), 0, "lte in\n" + lab.shim_log())
        equal(address(lab, learned="other", CONVERT_BESIDE_VPN="1"), lte, "the address where it may, in\n" + lab.shim_log())
        check(lte not in address(lab, learned="other", CONVERT_BESIDE_VPN="0"), "lte, where others have learned that wifi is silent, in\n" + lab.shim_log())
    with lab_for(wifi=Veth()) as lab:
        served(lab)
        lab.converter.run(["nft", "add table netdev mute; add chain netdev mute in { type filter hook ingress device wifi priority 0; };"
                           "add rule netdev mute in meta protocol ip drop"])
        equal(address(lab, CONVERT_BESIDE_VPN="0"), lab.client.lte4, "the address beside a wifi that is no VPN, in\n" + lab.shim_log())


def test_what_the_user_wants():
    """CONVERT_PATHS: the order of networks, backups, and networks that are never used."""
    with lab_for() as lab:
        served(lab)
        wifi, lte = lab.client.wifi4, lab.client.lte4
        wishes = {"lte": lte, "wifi lte": wifi, lte: lte, "wifi=backup": lte, "wifi=never": lte, "lte=never": wifi}
        name = well(lab, lambda name: {wish: curl(lab, env=remembering(lab, name, CONVERT_PATHS=wish))[1] for wish in wishes}, wishes)
        lab.wifi.down()
        result = lab.client.run(["curl", "-sS", "-m", "2", "-o", "/dev/null", "http://%s/bytes/10" % lab.server.addr4],
                                env=remembering(lab, name, CONVERT_PATHS="lte=never"), check=False)
        equal(result.returncode, 28, "curl's status where nothing else is allowed, in\n" + lab.shim_log())
        equal(curl(lab, env=remembering(lab, name, CONVERT_PATHS="lte=backup"))[1], lte, "the address, in\n" + lab.shim_log())


def test_never():
    """
    No connection begins on a network that is never to be used, with the library or the supervisor: not if it is the only one, because
    wifi is down; and no direct one, because the converter has failed.
    """
    for method in ("preload", "supervise"):
        with lab_for() as lab:
            converter = lab.convertd()
            lab.http()

            def seen(wishes, **env):
                env = remembering(lab, CONVERT_PATHS=wishes, **env)
                env["LD_PRELOAD"] = env["LD_PRELOAD"].removesuffix(lab.build.shim)
                said = lab.client.run([lab.build.program("convertize"), "--method", method, "curl", "-sS", "-m", "15", "-o", "/dev/null", "-w",
                                       "%{http_code} %{local_ip} %{exitcode}", "http://%s/bytes/10" % lab.server.addr4], env=env, check=False)
                return said.stdout

            works = "200 %s 0"
            equal(seen("lte=never"), works % lab.client.wifi4, "while all is well")
            lab.client.ip("link set wifi down")
            for more in ({}, {"CONVERT_FALLBACK": "none"}):
                equal(seen("lte=never", **more), "000  7", "by %s with %s, in\n%s" % (method, more, lab.shim_log()))
            equal(seen(""), works % lab.client.lte4, "where it may be used, in\n" + lab.shim_log())
            lab.client.ip("link set wifi up", "route add default via 10.1.0.1 dev wifi metric 100")
            converter.stop()
            seen("wifi=never")  # a blind request has nothing but its SYN, and fails
            equal([seen("wifi=never") for _ in range(2)], [works % lab.client.lte4] * 2, "directly by %s, in\n%s" % (method, lab.shim_log()))
            equal(seen("wifi=never lte=never"), "000  7", "directly, by no network, in\n" + lab.shim_log())


AGAIN = """
import socket, sys
server, closed = sys.argv[1:3]
with socket.socket() as sock:
    for port in (int(closed), 7):
        try:
            sock.connect((server, port))
            print(port, sock.getsockname()[0], flush=True)
        except OSError as error:
            print(port, error.errno, flush=True)
        if port != 7:
            sys.stdin.readline()
"""


def test_second_connect_of_a_socket():
    """The network of a failed connect() isn't the program's choice: the socket's next connection takes those that are left, and no other."""
    for wishes, seen in (("", None), ("lte=never", errno.ENETUNREACH)):
        with lab_for() as lab:
            served(lab)
            process = lab.client.popen(["python3", "-c", AGAIN, lab.server.addr4, "9"], env=remembering(lab, CONVERT_PATHS=wishes),
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            equal(process.stdout.readline(), "9 %d\n" % errno.ECONNREFUSED, "the first connect(), in\n" + lab.shim_log())
            lab.client.ip("link set wifi down")
            said, _ = process.communicate("\n", timeout=30)
            equal(said, "7 %s\n" % (seen or lab.client.lte4), "the second one with \"%s\", in\n%s" % (wishes, lab.shim_log()))


def told(lab, command, *words, wishes, learned="runtime"):
    """Runs a command of convertize with this CONVERT_PATHS, and with what curl() has learned under this name."""
    env = {"XDG_RUNTIME_DIR": os.path.join(lab.directory, learned), "CONVERT_ADDR": lab.converter.addr4, "CONVERT_PATHS": wishes}
    return lab.client.run([lab.build.program("convertize"), command, "--config", "none", *words], env=env, check=False)


def test_networks_that_are_not_there():
    """Devices and addresses that this machine hasn't are reported, and the others work; a word that can't be either is an error."""
    with lab_for() as lab:
        served(lab)
        wishes = "wlan9 192.0.2.99 2001:db8::99 lte wwan9=never " + lab.client.wifi4
        equal(curl(lab, env=remembering(lab, CONVERT_PATHS=wishes))[1], lab.client.lte4, "the address, in\n" + lab.shim_log())
        missing = ["wlan9", "192.0.2.99", "2001:db8::99", "wwan9"]
        equal([line.split("names ")[1].split(":  ")[0].rsplit(": there", 1)[0] for line in lab.shim_log().splitlines()
               if "CONVERT_PATHS names" in line], missing, "names in the log")
        shown = told(lab, "paths", "--device", "wifi,lte", "--json", wishes=wishes)
        equal((shown.returncode, json.loads(shown.stdout)["missing"]), (0, missing), "status and missing names of paths --json")
        shown = told(lab, "paths", "--device", "wifi,lte", wishes=wishes).stdout
        equal([name for name in missing if "CONVERT_PATHS names %s: there is no such device or address now" % name in shown], missing,
              "names in the output of paths")
        facts = [fact for fact in json.loads(told(lab, "check", "--json", wishes=wishes).stdout)["facts"]
                 if fact["name"] == "paths.missing"]
        equal([(fact["value"], fact["status"]) for fact in facts], [(name, "note" if name == "wwan9" else "warn") for name in missing],
              "facts of check")
        for wrong in ("192.0.2.300", "wlan0/24", "fe80::1%lte", "a-device-with-a-long-name", "=never", "lte=metered"):
            for command in ("paths", "check"):
                result = told(lab, command, wishes="lte " + wrong)
                check(result.returncode != 0 and 'CONVERT_PATHS: "%s" ' % wrong in result.stderr, "%s, %s: %s" % (command, wrong, result))


def test_what_is_shown_of_each_network():
    """convertize paths shows the user's wishes for each network, and what the user's programs have learned of it."""
    with lab_for() as lab:
        served(lab)

        def rows(name, wishes=""):
            shown = told(lab, "paths", "--device", "wifi,lte", "--json", wishes=wishes, learned=name)
            return {row["address"]: row for row in json.loads(shown.stdout)["networks"]}

        wifi, lte = lab.client.wifi4, lab.client.lte4
        equal([rows("nothing")[address]["learned"] for address in (wifi, lte)], [None, None], "before anything is learned")
        ((_, _), name), _ = unmoved(lab, lambda name: (curl(lab, env=remembering(lab, name)), name), lambda found: found[0][0] < SECOND_SYN_MS)
        learned = rows(name, "lte wifi")[wifi]["learned"]
        equal((learned["state"], learned["syn_data_lost"], learned["converter"]), ("works", 0, lab.converter.addr4 + ":1234"), "wifi")
        check(learned["rtt_ms"] >= 20, learned)
        equal([(row["order"], row["preferred"]) for row in map(rows(name, "lte wifi").get, (wifi, lte))], [(2, None), (1, None)], "an order")
        equal([(row["order"], row["preferred"]) for row in map(rows(name, "lte=backup wifi=never").get, (wifi, lte))],
              [(None, "never"), (None, "backup")], "uses")
        equal([(row["order"], row["preferred"]) for row in map(rows(name).get, (wifi, lte))], [(None, None)] * 2, "unnamed")
        lab.wifi.down()
        equal(curl(lab, env=remembering(lab, name))[1], lte, "the address, in\n" + lab.shim_log())
        found = rows(name)
        equal((found[wifi]["learned"]["state"], found[lte]["learned"]["state"]), ("silent", "works"), "wifi is silent")
        check(0 <= found[wifi]["learned"]["asked_seconds_ago"] <= 60, found[wifi])
        table = re.sub(r"\n +", " ", told(lab, "paths", "--device", "wifi,lte", wishes="lte wifi=backup", learned=name).stdout)
        check(re.search(r"^wifi .*, preferred: backup, learned: silent, \d+ ms, asked \d+ s ago$", table, re.MULTILINE), table)
        check(re.search(r"^lte .*, preferred: 1, learned: works, \d+ ms$", table, re.MULTILINE), table)


if __name__ == "__main__":
    main()
