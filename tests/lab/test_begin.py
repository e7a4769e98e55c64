#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_begin.py - connections begin on a path that works"""
import contextlib
import os
import select
import sys
import time

from convertlab import Lab, Link, check, equal, kernel, long, main, need, timeout, wait_until, waits
from convertlab.links import RunningLink
from convertlab.peers import asked_to_connect

APPS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "apps")
MOVED = "the path to it is silent, asked by "
BEGINS = "begins on lte"
NOWHERE = "the path to it leads nowhere ("
DIRECT_BY = "directly by lte, since the usual network is silent"
# a server so far away that programs on a busy machine, too, look at their sockets before it answers
FAR = Link(delay_ms=40)


def lab_for(**options):
    """Wifi has the default route; either network leads to the converter."""
    options.setdefault("wifi", Link(delay_ms=10))
    options.setdefault("lte", Link(delay_ms=25))
    options.setdefault("core", Link(delay_ms=5))
    return Lab(**options)


def remembering(lab, name="runtime", **env):
    """As Lab.remembering(), with the converter's IPv4 address alone."""
    return lab.remembering(name, **{"CONVERT_ADDR": lab.converter.addr4, **env})


def curl(lab, *options, env=None, size=10):
    """Runs curl once. Returns (milliseconds until its first byte, local address)."""
    need("curl")
    said = lab.client.run(["curl", "-sS", "-m", "15", "-o", "/dev/null", "-w", "%{time_starttransfer} %{local_ip}", *options,
                           "http://%s/bytes/%d" % (lab.server.addr4, size)], env=remembering(lab) if env is None else env).stdout.split()
    return float(said[0]) * 1000, said[1]


def served(lab):
    lab.convertd()
    lab.http()
    lab.echo()


@contextlib.contextmanager
def one_more_network(lab):
    """A network that is plugged in now, dsl, where the client has the address 10.4.0.2."""
    with contextlib.closing(RunningLink(lab.build.program("linkem"), Link(delay_ms=15), "dsl", lab.client, lab.converter, lab.directory)):
        lab.converter.ip("addr add 10.4.0.1/24 dev dsl")
        lab.client.ip("addr add 10.4.0.2/24 dev dsl", "route add default via 10.4.0.1 dev dsl metric 300",
                      "route add default via 10.4.0.1 dev dsl table 104", "rule add from 10.4.0.2 table 104")
        yield


def test_two_dead_networks_of_three():
    """Wifi and lte fall silent at once, and one connection finds out about both: later ones begin on the third network."""
    with lab_for() as lab:
        served(lab)
        with one_more_network(lab):
            curl(lab)
            curl(lab, env=remembering(lab, CONVERT_PATHS="lte"))
            lab.wifi.down()
            lab.lte.down()
            equal([curl(lab)[1] for _ in range(4)], ["10.4.0.2"] * 4, "addresses, in\n" + lab.shim_log())
            equal(lab.shim_log().count(MOVED), 1, "moved, in\n" + lab.shim_log())


def test_many_bridges():
    """Containers' bridges, up and down, lead nowhere: connections move to a network that is plugged in behind them, and begin there by order."""
    with lab_for(lte=None) as lab:
        served(lab)
        for number in range(9):
            lab.client.ip("link add br%d type bridge" % number, "addr add 172.20.%d.1/24 dev br%d" % (number, number),
                          *["link set br%d up" % number] * (number % 2))
        with one_more_network(lab):
            equal(curl(lab, env=remembering(lab, "ordered", CONVERT_PATHS="dsl"))[1], "10.4.0.2", "the address by order, in\n" + lab.shim_log())
            curl(lab)
            lab.wifi.down()
            equal([curl(lab)[1] for _ in range(2)], ["10.4.0.2"] * 2, "addresses, in\n" + lab.shim_log())


def test_path_that_is_back():
    """Wifi works again: a connection finds that out, and a later one takes it, within 10 s."""
    with lab_for() as lab:
        served(lab)
        lab.wifi.down()
        equal([curl(lab)[1] for _ in range(2)], [lab.client.lte4] * 2, "addresses, in\n" + lab.shim_log())
        lab.wifi.up()
        back = time.monotonic()
        wait_until(lambda: curl(lab)[1] == lab.client.wifi4, 10, lambda: "wifi to be used again:\n" + lab.shim_log())
        return "after %.1f s" % (time.monotonic() - back)


@long
@waits
@kernel.needs("calls")
def test_preferred_network_that_is_back():
    """The same for lte, which the user prefers to the usual network; with a program that lasts for a second, and short ones."""
    with lab_for() as lab:
        served(lab)
        env = remembering(lab, CONVERT_PATHS="lte wifi")
        launched = dict(env, LD_PRELOAD=env["LD_PRELOAD"].removesuffix(lab.build.shim))
        url = "http://%s/bytes/100000" % lab.server.addr4

        def address(*method):
            if not method:
                return curl(lab, "--limit-rate", "100K", size=100000, env=env)[1]
            return lab.client.run([lab.build.program("convertize"), "--method", *method, "curl", "-sS", "-m", "15", "-o", "/dev/null", "-w",
                                   "%{local_ip}", url], env=launched).stdout
        for method in ((), ("preload",), ("supervise",)):
            equal(address(*method), lab.client.lte4, "the address by %s, in\n%s" % (method, lab.shim_log()))
            lab.lte.down()
            equal([address(*method) for _ in range(2)], [lab.client.wifi4] * 2, "addresses by %s, in\n%s" % (method, lab.shim_log()))
            lab.lte.up()
            wait_until(lambda method=method: address(*method) == lab.client.lte4, 10, lambda: "lte to be used again:\n" + lab.shim_log()[-2000:])


def test_long_path_that_is_back():
    """The same, if the usual path's answer comes only when the connection over the other one is made: the process still hears it."""
    with lab_for(wifi=Link(delay_ms=120), lte=Link(delay_ms=10)) as lab:
        served(lab)
        lab.wifi.down()
        equal([curl(lab)[1] for _ in range(2)], [lab.client.lte4] * 2, "addresses, in\n" + lab.shim_log())
        lab.wifi.up()
        wait_until(lambda: curl(lab, "--limit-rate", "100K", size=100000)[1] == lab.client.wifi4, 10,
                   lambda: "wifi to be used again:\n" + lab.shim_log()[-2000:])


@long
@waits
def test_short_programs_find_a_long_path_that_is_back():
    """The same with programs that end before that path can answer: convertize, which launched them, hears the answer."""
    for method in ("preload", "supervise"):
        with lab_for(wifi=Link(delay_ms=120), lte=Link(delay_ms=10)) as lab:
            served(lab)
            env = remembering(lab)
            env["LD_PRELOAD"] = env["LD_PRELOAD"].removesuffix(lab.build.shim)  # a sanitizer's library stays: it has to be the first
            command = [lab.build.program("convertize"), "--method", method, "curl", "-sS", "-m", "15", "-o", "/dev/null", "-w",
                       "%{local_ip}", "http://%s/bytes/10" % lab.server.addr4]

            def address():
                return lab.client.run(command, env=env).stdout
            lab.wifi.down()
            equal([address() for _ in range(2)], [lab.client.lte4] * 2, "addresses, in\n" + lab.shim_log())
            lab.wifi.up()
            wait_until(lambda: address() == lab.client.wifi4, 10, lambda: "wifi to be used again:\n" + lab.shim_log()[-2000:])


@long
@waits
@timeout(200)
def test_slow_servers():
    """Servers that answer after 0.1 to 5 s: no connection is moved, and the converter sees each once."""
    count = 0
    with lab_for() as lab:
        served(lab)
        with lab.capture(lab.converter, "wifi", "tcp port 1234") as wifi, lab.capture(lab.converter, "lte", "tcp port 1234") as lte:
            for delay in (0.1, 0.2, 0.4, 0.65, 0.75, 1.5, 5.0):
                lab.core.set(delay_ms=delay * 500)
                running = [lab.client.popen(["curl", "-sS", "-m", "25", "-o", "/dev/null", "-w", "%{http_code}",
                                             "http://%s/bytes/10" % lab.server.addr4], env=remembering(lab), name="slow-%g-%d" % (delay, i))
                           for i in range(3)]
                count += len(running)
                for process in running:
                    process.wait(40)
                equal([process.log_text() for process in running], ["200"] * 3, "answers after %g s, in\n%s" % (delay, lab.shim_log()))
        equal(lab.shim_log().count(MOVED), 0, "moved, in\n" + lab.shim_log())
        equal((len(asked_to_connect(wifi)), len(asked_to_connect(lte))), (count, 0), "requests, in\n" + lab.shim_log())


PROBES_LOST = """add table netdev lost; add chain netdev lost in { type filter hook ingress device wifi priority 0; };
add rule netdev lost in tcp dport 1234 tcp flags & (syn | ack) == syn tcp option mptcp missing numgen inc mod 8 0 drop"""


@long
@waits
def test_lost_probes_and_slow_servers():
    """One probe of eight is lost on wifi, and the server answers after 1.2 s: no connection is moved, and the server sees each once."""
    for place in ("far", "near"):
        with lab_for(wifi=Link(delay_ms=90 if place == "far" else 10)) as lab:
            served(lab)
            for _ in range(2):
                curl(lab)
            curl(lab, env=remembering(lab, CONVERT_PATHS="lte"))
            lab.core.set(delay_ms=600)
            lab.converter.run(["nft", "-f", "-"], input=PROBES_LOST)
            with lab.capture(lab.server, "core", "tcp dst port 80 and tcp[tcpflags] == tcp-syn") as core:
                found = [curl(lab)[1] for _ in range(4)]
            equal(found, [lab.client.wifi4] * 4, "addresses, in\n" + lab.shim_log())
            equal(len({p.sport for p in core.packets()}), 4, "connections to the server, in\n" + lab.shim_log())


def probe(lab, way, program="connect_probe.py", env=None):
    """Returns what an application saw of one connection to the echo server."""
    return lab.client.run(["python3", os.path.join(APPS, program), way, lab.server.addr4, 7], env=env).stdout


def in_each_way(lab, dies):
    """In each way to wait, a program sees the same as over plain TCP: the first one, which meets the dead path, and the next one."""
    for way in ("blocking", "poll", "select", "epoll", "epoll-edge", "epoll-before", "epoll-dup", "epoll-past", "connect"):
        lab.wifi.up()
        usual = probe(lab, way)
        directory = os.path.join(lab.directory, "runtime-" + way)
        os.makedirs(directory, mode=0o700)
        env = lab.converted(CONVERT_ADDR=lab.converter.addr4, XDG_RUNTIME_DIR=directory)
        dies()
        before = lab.shim_log().count(MOVED)
        seen = [probe(lab, way, env=env).replace(lab.client.lte4, lab.client.wifi4) for _ in range(2)]
        equal(seen, [usual] * 2, "what a program sees by %s, in\n%s" % (way, lab.shim_log()[-3000:]))
        equal(lab.shim_log().count(MOVED), before + 1, "moved by %s, in\n%s" % (way, lab.shim_log()[-3000:]))


@long
@waits
@timeout(200)
def test_each_way_to_wait():
    with lab_for(core=FAR) as lab:
        served(lab)
        in_each_way(lab, lab.wifi.down)


@long
@waits
@timeout(200)
def test_each_way_to_wait_without_multipath_tcp():
    with lab_for(core=FAR) as lab:
        lab.client.sysctl("net.mptcp.enabled", 0)
        served(lab)
        in_each_way(lab, lab.wifi.down)


def test_early_data():
    """The data that the application sent with its SYN go with the SYN on lte, once."""
    with lab_for() as lab:
        served(lab)
        curl(lab)
        lab.wifi.down()
        for _ in range(2):
            said = lab.client.run(["curl", "-sS", "-m", "15", "--tcp-fastopen", "-d", "x" * 1000, "http://%s/" % lab.server.addr4],
                                  env=remembering(lab)).stdout
            check("bytes=1000 " in said, said + lab.shim_log())
        equal(lab.shim_log().count(MOVED), 1, "moved, in\n" + lab.shim_log())


def user_without_rules(lab, **env):
    """Removes the policy rule that sends packets from lte's address by lte, so that sockets are bound to devices.

    Returns a function that runs curl as an ordinary user, who remembers what was learned under a name, and returns its local address and the
    library's log.
    """
    lab.client.ip("rule del from %s table 102" % lab.client.lte4)
    lab.client.run(["ip", "mptcp", "endpoint", "flush"])
    os.chmod(lab.directory, 0o755)
    env = lab.shim_env(CONVERT_ADDR=lab.converter.addr4, CONVERT_LOG="-", **env)
    command = ["setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all",
               "curl", "-sS", "-m", "15", "-o", "/dev/null", "-w", "%{local_ip}", "http://%s/bytes/10" % lab.server.addr4]

    def run(name):
        directory = os.path.join(lab.directory, name)
        os.makedirs(directory, mode=0o700, exist_ok=True)
        os.chown(directory, 1000, 1000)
        result = lab.client.run(command, env={**env, "CONVERT_CACHE": directory})
        return result.stdout, result.stderr
    return run


def user_well(lab, run, address):
    """As well(), for the function that user_without_rules() returns."""
    (found, _, name), _ = unmoved(lab, lambda name: (*run(name), name), lambda found: MOVED not in found[1])
    equal(found, address, "the address while all is well")
    return name


def test_ordinary_user_returns_to_the_usual_network():
    """A connection that began on lte goes on over wifi: Linux doesn't let an ordinary user's socket leave the device that it is bound to."""
    with lab_for() as lab:
        served(lab)
        run = user_without_rules(lab, CONVERT_PATHS="lte wifi")
        name = user_well(lab, run, lab.client.lte4)
        lab.lte.down()
        address, log = run(name)
        equal((address, log.count("converted over"), "direct" in log), (lab.client.wifi4, 1, False), log)


def test_ordinary_user():
    """Without privileges, and without policy rules for lte's address: lte's default route is enough, though its metric is higher."""
    with lab_for() as lab:
        served(lab)
        run = user_without_rules(lab)
        name = user_well(lab, run, lab.client.wifi4)
        lab.wifi.down()
        for _ in range(2):
            equal(run(name)[0], lab.client.lte4, "the address")


def test_bound_socket_stays():
    """A socket bound to an address or a device stays on wifi, though it is dead: the application has chosen."""
    with lab_for() as lab:
        served(lab)
        curl(lab)
        lab.wifi.down()
        for interface in (lab.client.wifi4, "if!wifi"):
            result = lab.client.run(["curl", "-sS", "-m", "2", "--interface", interface, "-o", "/dev/null",
                                     "http://%s/bytes/10" % lab.server.addr4], env=remembering(lab), check=False)
            equal(result.returncode, 28, "curl's status, in\n" + lab.shim_log())
        equal(lab.shim_log().count("lte"), 0, "lte in\n" + lab.shim_log())


def test_path_that_loses():
    """Wifi loses 30% of all packets: once programs know that, most connections take lte."""
    with lab_for() as lab:
        served(lab)
        curl(lab)
        lab.wifi.set(loss=0.3)
        wait_until(lambda: curl(lab)[1] == lab.client.lte4, 60, lambda: "lte to be taken:\n" + lab.shim_log())
        found = [curl(lab) for _ in range(15)]
        check(sum(address == lab.client.lte4 for _, address in found) >= 12, "%s in\n%s" % (found, lab.shim_log()))


def test_path_that_loses_the_syn_again():
    """Wifi loses a connection's SYN and its first retransmission, but no probe: the connection takes lte before the next retransmission."""
    with lab_for() as lab:
        served(lab)

        def connect(name):
            lab.wifi.set("a-to-b", drop_mptcp_syn=False)
            for _ in range(2):
                curl(lab, env=remembering(lab, name))
            lab.wifi.set("a-to-b", drop_mptcp_syn=True)
            return [curl(lab, env=remembering(lab, name)) for _ in range(2)]
        found, said = before_the_kernel(lab, connect, THIRD_SYN_MS)
        equal([address for _, address in found], [lab.client.lte4] * 2, "addresses, in\n" + said)


# The kernel sends a SYN again after so long; less what a connection takes otherwise.
SECOND_SYN_MS, THIRD_SYN_MS = 900, 2900


def before_the_kernel(lab, connect, limit_ms):
    """
    Calls connect(name for remembering()), which returns results of curl(), until none took so long that its SYN had been sent again: on a
    busy machine each may. connect() may also return None, if the machine has moved a connection that the network hasn't. Returns the results,
    and what the shim has logged meanwhile.
    """
    for number in range(5):
        before = len(lab.shim_log())
        found = connect("quick-%d" % number)
        if found and max(ms for ms, _ in found) < limit_ms:
            return found, lab.shim_log()[before:]
    raise AssertionError("each time moved, or as slow as if a SYN had been sent again: %s ms, in\n%s" % (found, lab.shim_log()))


def unmoved(lab, connect, judge=lambda found: True, moves=0):
    """
    Calls connect(name for remembering()) until no more connections than `moves` were moved, and judge(its result) is true: on a busy machine
    an answer may come too late.

    Returns its result and what the shim has logged of it.
    """
    for number in range(5):
        before = len(lab.shim_log())
        found = connect("runtime-%d" % number)
        said = lab.shim_log()[before:]
        if said.count(MOVED) <= moves and judge(found):
            return found, said
    raise AssertionError("moved each time, or too slow: %s, in\n%s" % (found, lab.shim_log()))


def well(lab, connect, address):
    """Checks the address of a connection while all is well. Returns the name for remembering() of what the connection has learned."""
    (found, name), said = unmoved(lab, lambda name: (connect(name), name))
    equal(found, address, "the address while all is well, in\n" + said)
    return name


TAKEN, BEHIND, DATA_LOST = "request taken in the SYN", "request behind the handshake", "SYNs with data are lost on the way"


@kernel.needs("fastopen")
def test_path_that_loses_data_in_syns():
    """SYNs with data vanish on wifi: there the request follows the handshake."""
    with lab_for(wifi=Link(delay_ms=10, a_to_b={"max_syn": 66})) as lab:
        served(lab)
        # in less time than the kernel takes to send a SYN again, without data then
        found, said = unmoved(lab, lambda name: [curl(lab, env=remembering(lab, name)) for _ in range(3)],
                              lambda found: max(ms for ms, _ in found) < SECOND_SYN_MS)
        equal([address for _, address in found], [lab.client.wifi4] * 3, "addresses, in\n" + said)
        equal(said.count(DATA_LOST), 1, "found out, in\n" + said)


@kernel.needs("fastopen")
def test_data_in_syns_is_each_path_s_own():
    """Wifi loses data in SYNs: requests on lte still go in the SYN."""
    with lab_for(wifi=Link(delay_ms=10, a_to_b={"max_syn": 66})) as lab:
        served(lab)

        def connect(name):
            first = [curl(lab, env=remembering(lab, name))[1] for _ in range(2)]
            before = lab.shim_log().count(BEHIND)
            for _ in range(3):
                curl(lab, env=remembering(lab, name, CONVERT_PATHS="lte"))
            return first, lab.shim_log().count(BEHIND) - before

        (addresses, behind), said = unmoved(lab, connect)
        equal(addresses, [lab.client.wifi4] * 2, "addresses, in\n" + said)
        equal((behind, said.count(TAKEN)), (0, 3), "requests, in\n" + said)


AT_ONCE = """
import socket, sys, threading
def connect():
    with socket.create_connection((sys.argv[1], 7)):
        pass
threads = [threading.Thread(target=connect) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


@kernel.needs("fastopen")
def test_data_lost_at_once_is_one_miss():
    """Wifi cuts the data off the SYNs that threads send at the same time, and off no later ones: the next request is in its SYN."""
    with lab_for(wifi=Link(delay_ms=100)) as lab:
        served(lab)
        for name in ("one", "two", "three", "four", "five"):  # until several SYNs had data at once: on a busy machine it may be one
            env = remembering(lab, name)
            curl(lab, env=env)
            before = lab.shim_log().count("data in the SYN was not taken")
            lab.wifi.set(strip_syn_data=True)
            lab.client.run(["python3", "-c", AT_ONCE, lab.server.addr4], env=env)
            lab.wifi.set(strip_syn_data=False)
            misses = lab.shim_log().count("data in the SYN was not taken") - before
            if misses > 1:
                break
        check(misses > 1, "one miss at most:\n" + lab.shim_log())
        before = lab.shim_log().count(TAKEN)
        curl(lab, env=env)
        equal(lab.shim_log().count(TAKEN), before + 1, "taken in\n" + lab.shim_log())


def test_second_path_that_loses_data_in_syns():
    """Wifi is dead, and lte loses SYNs with data: one connection finds out about both."""
    with lab_for(lte=Link(delay_ms=25, a_to_b={"max_syn": 66})) as lab:
        served(lab)

        def connect(name):
            lab.wifi.up()
            before = lab.shim_log().count(MOVED)
            curl(lab, env=remembering(lab, name))
            moved_too_soon = lab.shim_log().count(MOVED) > before
            lab.wifi.down()
            found = [curl(lab, env=remembering(lab, name))]
            before = lab.shim_log().count(MOVED)
            found += [curl(lab, env=remembering(lab, name)) for _ in range(2)]
            return None if moved_too_soon or lab.shim_log().count(MOVED) > before else found
        found, said = before_the_kernel(lab, connect, SECOND_SYN_MS)
        equal([address for _, address in found], [lab.client.lte4] * 3, "addresses, in\n" + said)
        equal((said.count(MOVED), said.count(DATA_LOST), said.count("direct")), (1, 0, 0), "moved, in\n" + said)


# A thread sleeps in epoll_wait() before another one connects and registers the socket there. Prints whether the first one heard of the
# socket alone, and how many descriptors are left besides the socket.
ASLEEP = """
import os, select, socket, sys, threading
waiting, other = select.epoll(), socket.socketpair()
waiting.register(other[0], select.EPOLLIN)
heard = []
thread = threading.Thread(target=lambda: heard.extend(waiting.poll(20)))
thread.start()
while open("/proc/self/task/%d/syscall" % thread.native_id).read().split()[1:2] != [hex(waiting.fileno())]:
    pass
descriptors = len(os.listdir("/proc/self/fd"))
sock = socket.socket()
sock.setblocking(False)
assert sock.connect_ex((sys.argv[1], 7)) == 115
waiting.register(sock, int(sys.argv[2]))
thread.join()
print(heard == [(sock.fileno(), select.EPOLLOUT)], len(os.listdir("/proc/self/fd")) - descriptors - 1)
"""


def test_thread_that_sleeps_already():
    """As in tokio's multi-threaded runtime: the thread that sleeps in epoll_wait() also wakes up for the deadlines of a silent network."""
    for events in (select.EPOLLIN | select.EPOLLOUT, select.EPOLLOUT | select.EPOLLET, select.EPOLLOUT | select.EPOLLONESHOT):
        with lab_for() as lab:
            served(lab)
            curl(lab)
            lab.wifi.down()
            said = lab.client.run(["python3", "-c", ASLEEP, lab.server.addr4, events], env=remembering(lab)).stdout.split()
            equal(said, ["True", "0"], "the thread that sleeps, in\n" + lab.shim_log())
            equal(lab.shim_log().count(MOVED), 1, "moved, in\n" + lab.shim_log())


def test_ipv6_that_leads_nowhere():
    """The converter's first address is of IPv6, whose packets vanish on both networks."""
    with lab_for() as lab:
        served(lab)
        for device in ("wifi", "lte"):
            lab.converter.run(["nft", "add table netdev %s; add chain netdev %s in { type filter hook ingress device %s priority 0; };"
                               "add rule netdev %s in meta protocol ip6 drop" % (device, device, device, device)])

        def connect(name):
            env = remembering(lab, name, CONVERT_ADDR="%s,%s" % (lab.converter.addr6, lab.converter.addr4))
            for _ in range(3):
                said = lab.client.run(["curl", "-sS", "-m", "15", "-g", "http://[%s]/bytes/10" % lab.server.addr6], env=env).stdout
                equal(len(said), 10, "bytes, in\n" + lab.shim_log())
        _, said = unmoved(lab, connect, moves=1)
        equal((said.count(MOVED), said.count("direct")), (1, 0), "moved, in\n" + said)
        check("begins on wifi" in said, said)


def test_dead_address_of_two():
    """The converter has two addresses, and no host is at the first one."""
    with lab_for() as lab:
        served(lab)
        lab.converter.ip("route add blackhole 10.9.0.66")

        def connect(name):
            env = remembering(lab, name, CONVERT_ADDR="10.9.0.66,%s" % lab.converter.addr4)
            return [curl(lab, env=env)[1] for _ in range(3)]
        found, said = unmoved(lab, connect, moves=1)
        equal(found, [lab.client.wifi4] * 3, "addresses, in\n" + said)
        equal((said.count(MOVED), said.count("direct")), (1, 0), "moved, in\n" + said)


def test_direct_takes_a_path_that_works():
    """The converter refuses on lte, wifi is dead: the direct connection goes over lte."""
    with lab_for() as lab:
        lab.http()
        converter = lab.convertd()
        lab.wifi.down()
        equal(curl(lab)[1], lab.client.lte4, "the address, in\n" + lab.shim_log())
        converter.stop()
        for _ in range(2):
            equal(curl(lab)[1], lab.client.lte4, "the address, in\n" + lab.shim_log())
        check(lab.shim_log().count(DIRECT_BY) == 2, lab.shim_log())


ROUTER_SAYS = """table inet router { chain in { type filter hook input priority 0; iifname "wifi" meta l4proto tcp reject with icmpx type %s; };
chain through { type filter hook forward priority 0; iifname "wifi" meta l4proto tcp reject with icmpx type %s; }; }"""


def router_says(lab, error):
    """Has wifi's router answer all TCP packets with this ICMP error, as if the network behind it were gone."""
    lab.converter.run(["nft", "-f", "-"], input=ROUTER_SAYS % (error, error))


@long
@waits
def test_path_that_leads_nowhere():
    """Wifi's router answers with ICMP errors: connections take lte at once, in each way to wait, and wifi again once it works."""
    for error in ("host-unreachable", "no-route", "admin-prohibited"):
        with lab_for(core=FAR) as lab:
            served(lab)
            env = remembering(lab, well(lab, lambda name, lab=lab: curl(lab, env=remembering(lab, name))[1], lab.client.wifi4))
            ways = ("blocking", "poll", "epoll-edge")
            usual = [probe(lab, way) for way in ways]
            router_says(lab, error)
            equal([curl(lab, env=env)[1] for _ in range(3)], [lab.client.lte4] * 3, "addresses, in\n" + lab.shim_log())
            equal((lab.shim_log().count(NOWHERE), lab.shim_log().count("direct")), (1, 0), "%s in\n%s" % (error, lab.shim_log()))
            seen = [probe(lab, way, env=remembering(lab, "runtime-" + way)).replace(lab.client.lte4, lab.client.wifi4) for way in ways]
            equal(seen, usual, "what programs see by %s" % (ways,))
            said = lab.client.run(["curl", "-sS", "-m", "15", "--tcp-fastopen", "-d", "x" * 1000, "http://%s/" % lab.server.addr4],
                                  env=remembering(lab, "runtime-early")).stdout
            check("bytes=1000 " in said, said + lab.shim_log())
            lab.converter.run(["nft", "delete table inet router"])
            wait_until(lambda: curl(lab, env=env)[1] == lab.client.wifi4, 10, lambda: "wifi to be used again:\n" + lab.shim_log())


def test_converter_that_no_path_leads_to():
    """Both networks say that the converter can't be reached: the direct connection takes the usual network."""
    with lab_for() as lab:
        lab.http()
        lab.converter.ip("route add unreachable 10.9.0.66")
        for _ in range(2):
            equal(curl(lab, env=remembering(lab, CONVERT_ADDR="10.9.0.66"))[1], lab.client.wifi4, "the address, in\n" + lab.shim_log())
        equal((lab.shim_log().count(NOWHERE), lab.shim_log().count("direct, the converter fails")), (1, 1), "in\n" + lab.shim_log())


@long
@waits
def test_direct_takes_the_usual_path_where_no_other_is_known_to_work():
    """The converter is silent on both networks, and nothing is known of lte: the direct connection goes over wifi."""
    for method in ("preload", "supervise"):
        with lab_for() as lab:
            served(lab)
            curl(lab)
            lab.converter.run(["nft", "-f", "-"], input="table inet mute { chain in { type filter hook prerouting priority -500; tcp dport 1234 drop; }; }")
            env = remembering(lab)
            env["LD_PRELOAD"] = env["LD_PRELOAD"].removesuffix(lab.build.shim)  # a sanitizer's library stays: it has to be the first
            probes = [sys.executable, os.path.join(APPS, "connect_probe.py"), "blocking", lab.server.addr4, "7"]
            seen = lab.client.run([lab.build.program("convertize"), "--method", method, *probes], env=env).stdout
            check("asked by lte" in lab.shim_log(), "it was not moved, in\n" + lab.shim_log())
            check(lab.client.wifi4 in seen and lab.client.lte4 not in seen, "%s by %s, in\n%s" % (seen, method, lab.shim_log()))


if __name__ == "__main__":
    main()
