#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_quota.py - a network's quota: what the service counts, and how programs use the network at 80%, at 100% and at the limit

Each network is a device of its own, whose bytes a firewall counts, too. A plain program uses up lte; then programs through the converter,
preloaded and supervised, and open connections avoid it.
"""
import contextlib
import json
import os
import re

from convertlab import Lab, Link, check, equal, long, main, wait_until
from convertlab.paths import BULK, DEVICES, PathManager, arrives, bare, connections_end, endpoints, published, serve

QUOTA = ("--quota", "lte=2M:4M/day")
COUNTERS = """add table inet bytes_of
add counter inet bytes_of lte
add counter inet bytes_of wifi
add chain inet bytes_of out { type filter hook output priority 0; }
add chain inet bytes_of in { type filter hook input priority 0; }
add rule inet bytes_of out oifname lte counter name lte
add rule inet bytes_of in iifname lte counter name lte
add rule inet bytes_of out oifname wifi counter name wifi
add rule inet bytes_of in iifname wifi counter name wifi
"""


@contextlib.contextmanager
def two_networks():
    with Lab(wifi=Link(delay_ms=5, rate_mbit=50), lte=Link(delay_ms=10, rate_mbit=50), core=Link(delay_ms=1)) as lab:
        bare(lab)
        lab.client.run(["nft", "-f", "-"], input=COUNTERS)
        serve(lab)
        lab.state = os.path.join(lab.directory, "state")
        os.mkdir(lab.state)
        yield lab


def manager_of(lab, *words):
    return PathManager(lab, *DEVICES, *words, env={"STATE_DIRECTORY": lab.state})


def sums_kept(lab):
    """The service's file."""
    with contextlib.suppress(FileNotFoundError), open(os.path.join(lab.state, "traffic"), encoding="ascii") as file:
        return file.read()
    return ""


def bytes_on(lab, name):
    """The bytes that the firewall has counted on a network, in both directions."""
    listed = json.loads(lab.client.run(["nft", "-j", "list", "counters", "table", "inet", "bytes_of"]).stdout)["nftables"]
    return next(entry["counter"]["bytes"] for entry in listed if entry.get("counter", {}).get("name") == name)


def status(lab):
    return json.loads(lab.client.run([lab.build.program("convertize"), "status", "--config", "none", "--json"],
                                     env={"STATE_DIRECTORY": lab.state, "CONVERTIZE_QUOTA": QUOTA[1]}).stdout)


def use_up(lab, size):
    """A plain program downloads so many bytes over lte."""
    lab.client.run(["ip", "route", "add", lab.server.addr4, "via", "10.2.0.1", "dev", "lte"])
    lab.client.run(["python3", BULK, "get", "tcp", lab.server.addr4, 6000, size])
    lab.client.run(["ip", "route", "del", lab.server.addr4])
    connections_end(lab)


def transfer(lab, method, size=1500000, wishes=""):
    """Makes a transfer through the converter, with this CONVERT_PATHS. Returns (the bytes on lte meanwhile, the log)."""
    connections_end(lab)
    before = bytes_on(lab, "lte")
    env = {**lab.converted(CONVERT_CACHE="none", CONVERT_LOG="-", CONVERT_PATHS=wishes), "LD_PRELOAD": ""}
    log = lab.client.run([lab.build.program("convertize"), "--config", "none", "--method", method, "python3", BULK, "get", "tcp",
                          lab.server.addr4, 6000, size], env=env).stderr
    connections_end(lab)
    return bytes_on(lab, "lte") - before, log


@long
def test_from_warning_to_never():
    """At 80% the service warns, at 100% lte becomes a backup, at the limit its use ends; a new day gives it back."""
    with two_networks() as lab, manager_of(lab, *QUOTA) as manager:
        use_up(lab, 1650000)
        manager.said(" MB of 2.0 MB today, nearly used up")
        equal(published(lab), [], "published at 80%")
        use_up(lab, 400000)
        manager.said("used up: only for backup")
        wait_until(lambda: published(lab) == [("8805", "lte"), ("8807", "lte")], 10, "what is published at 100%")
        wait_until(lambda: "backup" in endpoints(lab)[lab.client.lte4][1], 10, "the flag of its endpoint")
        for method in ("preload", "supervise"):
            count, log = transfer(lab, method)
            check(count < 6000, "%d bytes on a backup, by %s\n%s" % (count, method, log))
            count, log = transfer(lab, method, wishes=lab.client.lte4 + "=never")
            equal(count, 0, "bytes on a backup that the user never wants to use, by %s, in\n%s" % (method, log))
        use_up(lab, 2100000)
        manager.said("its limit is reached: not used until the period ends")
        wait_until(lambda: published(lab) == [("8804", "lte"), ("8806", "lte")] and lab.client.lte4 not in endpoints(lab), 10, "never")
        for method in ("preload", "supervise"):
            equal(transfer(lab, method)[0], 0, "bytes on lte, by " + method)
        quota, = status(lab)["quotas"]
        equal((quota["device"], quota["state"], quota["bytes"], quota["limit"]), ("lte", "never", 2000000, 4000000), "what status says")
        # a new day: the file has the sums of another one
        manager.stop()
        equal(published(lab), [], "published after the end")
        text = sums_kept(lab)
        with open(os.path.join(lab.state, "traffic"), "w", encoding="ascii") as file:
            file.write(re.sub(r"^day \d+", "day 20261001", text, flags=re.MULTILINE))
        manager.start()
        wait_until(lambda: lab.client.lte4 in endpoints(lab), 10, "its endpoint")
        equal(published(lab), [], "published on a new day")
        check(transfer(lab, "preload", 3000000)[0] > 100000, "lte carries its share again")


def test_programs_keep_off_the_usual_network():
    """
    The network with the default route reaches its limit: connections begin on the other one, also if the user prefers the first one, and
    names as many networks as there may be.
    """
    with two_networks() as lab:
        lab.client.ip("route del default dev lte", "route add default via 10.2.0.1 dev lte metric 50")
        with manager_of(lab, *QUOTA) as manager:
            use_up(lab, 4200000)
            manager.said("its limit is reached")
            wait_until(lambda: ("8806", "lte") in published(lab), 10, "what is published")
            for method, wishes in (("preload", ""), ("supervise", ""), ("preload", "lte wwan1 wwan2 wwan3 wwan4 wwan5 wwan6 wwan7")):
                count, log = transfer(lab, method, wishes=wishes)
                equal(count, 0, "bytes on lte, by %s, in\n%s" % (method, log))
                check("converted over MPTCP" in log and "begins on wifi" in log, log)


def test_the_doctor_keeps_off():
    """At the limit it sends nothing there either: it asks over the other network, and fails if there is none."""
    with two_networks() as lab:
        lab.http()
        lab.client.ip("route del default dev lte", "route add default via 10.2.0.1 dev lte metric 50")
        command = [lab.build.program("convertize"), "check", "--config", "none", "--json", lab.server.addr4 + ":80"]
        env = {"CONVERT_ADDR": lab.converter.addr4, "CONVERT_CACHE": "none", "CONVERT_BESIDE_VPN": "1"}
        with manager_of(lab, *QUOTA) as manager:
            use_up(lab, 4200000)
            manager.said("its limit is reached")
            wait_until(lambda: ("8806", "lte") in published(lab), 10, "what is published")
            for alone in (False, True):
                if alone:
                    lab.client.ip("link set wifi down")
                connections_end(lab)
                before = bytes_on(lab, "lte")
                said = json.loads(lab.client.run(command, env=env, check=False).stdout)
                connections_end(lab)
                equal(bytes_on(lab, "lte") - before, 0, "bytes on lte, alone: %s, for %s" % (alone, said))
                faults = [fact["name"] for fact in said["facts"] if fact["status"] == "fail"]
                equal(faults, ["network.interfaces"] * alone, "faults in %s" % said)
                equal(said["result"] == "failed", alone, said)
                values = {fact["name"]: fact.get("value") for fact in said["facts"]}
                equal((values["converter"], values.get("server")), ("local", None) if alone else ("answered", True), said)
                if alone:
                    check("CONVERT_PATHS or a quota allows no network" in str(said), said)


@long
def test_open_connections_leave():
    """A transfer that began on lte, and uses wifi, too, sends no byte over lte once the limit is reached."""
    with two_networks() as lab:
        lab.client.ip("route del default dev lte", "route add default via 10.2.0.1 dev lte metric 50")
        with manager_of(lab, "--quota", "lte=4M:4M/day") as manager:
            running = lab.client.popen(["python3", BULK, "get", "tcp", lab.server.addr4, 6000, 60000000], name="download",
                                       env=lab.converted(CONVERT_CACHE="none"))
            wait_until(lambda: bytes_on(lab, "lte") > 500000, 20, "bytes on lte")
            manager.said("its limit is reached")
            wait_until(lambda: lab.client.lte4 not in endpoints(lab), 10, "the end of its endpoint")
            wait_until(lambda: not lab.client.run(["ss", "-Htn", "state", "connected", "exclude", "time-wait", "src", lab.client.lte4]).stdout, 10,
                       "the end of its subflows")
            before, wifi = bytes_on(lab, "lte"), bytes_on(lab, "wifi")
            arrives(running)
            equal(bytes_on(lab, "lte") - before, 0, "bytes on lte since")
            check(bytes_on(lab, "wifi") - wifi > 1000000, "wifi carries the rest")
            check(before < 20000000, "%d bytes on lte until then" % before)


def test_sums_cannot_be_read():
    """The service doesn't change a file that it can't read, and uses its sums as soon as it can."""
    with two_networks() as lab, manager_of(lab, *QUOTA) as manager:
        use_up(lab, 2100000)
        manager.said("used up: only for backup")
        manager.stop()
        file, kept = os.path.join(lab.state, "traffic"), os.path.join(lab.state, "kept")
        os.rename(file, kept)
        os.symlink("traffic", file)  # a loop, as root can read all files
        manager.start()
        manager.said("can't be read: Too many levels of symbolic links")
        manager.stop()
        check(os.path.islink(file), "the file is left alone")
        manager.start()
        os.rename(kept, file)
        manager.said("used up: only for backup")
        wait_until(lambda: ("8807", "lte") in published(lab), 10, "what is published")
        manager.stop()
        check("day" in sums_kept(lab), sums_kept(lab))


def test_counts_are_exact():
    """The sums are those of the firewall, to the byte, also over a kill and a restart."""
    with two_networks() as lab, manager_of(lab) as manager:
        wait_until(lambda: "counter wifi" in sums_kept(lab), 10, "the first look")
        start = {name: bytes_on(lab, name) for name in ("wifi", "lte")}
        first = {entry["device"]: entry["received"] + entry["sent"] for entry in status(lab)["today"]}
        transfer(lab, "preload")
        manager.process.kill()
        manager.process.wait()
        transfer(lab, "preload")
        manager.start()
        transfer(lab, "preload")
        manager.stop()

        def agree():
            before = {name: bytes_on(lab, name) for name in start}
            found = {entry["device"]: entry["received"] + entry["sent"] for entry in status(lab)["today"]}
            return all(found[name] - first.get(name, 0) == before[name] - start[name] for name in start)
        wait_until(agree, 10, lambda: "the same sums: %s, %s of %s" % (status(lab)["today"], {name: bytes_on(lab, name) for name in start}, start))
        check(bytes_on(lab, "wifi") > 1500000, "bytes that were counted")


def test_in_a_container():
    """In a container, whose network namespace isn't the first one, status finds the directory in which a unit's service keeps its sums."""
    with two_networks() as lab:
        with manager_of(lab):
            use_up(lab, 100000)
        script = "mount -t tmpfs none /var/lib; ln -s %s /var/lib/convertize; %s status --config none" % (
            lab.state, lab.build.program("convertize"))
        text = lab.client.run(["unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", script]).stdout
        check("Today, all traffic of each network" in text, text)


def test_what_is_wrong_is_named():
    with two_networks() as lab:
        result = lab.client.run([lab.build.program("convertize"), "paths", "--config", "none", "--once", "--quota", "lte=5G"], check=False)
        equal((result.returncode, result.stderr), (2, "convertize: --quota: \"lte=5G\" doesn't end with /day or /month\n"), "a wrong quota")


if __name__ == "__main__":
    main()
