#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_begin_times.py - how soon connections begin on a path that works"""
import statistics

from convertlab import Link, check, equal, main, measured, measures, wait_until
from test_begin import MOVED, TAKEN, curl, lab_for, remembering, served


def direct_ms(lab, source):
    return min(curl(lab, "--interface", source, env={})[0] for _ in range(3))


@measures
def test_dead_default_path():
    """Wifi swallows everything: the first connection takes at most 0.3 s longer than over lte alone, later ones no longer than that."""
    with lab_for() as lab:
        served(lab)
        equal(curl(lab)[1], lab.client.wifi4, "the address while all is well, in\n" + lab.shim_log())
        alone = direct_ms(lab, lab.client.lte4)
        lab.wifi.down()
        first = curl(lab)
        later = [curl(lab) for _ in range(5)]
        equal({address for _, address in [first, *later]}, {lab.client.lte4}, "addresses, in\n" + lab.shim_log())
        equal((lab.shim_log().count(MOVED), lab.shim_log().count("direct")), (1, 0), "moved, in\n" + lab.shim_log())
        measured(first[0] < alone + 300, "the first took %.0f ms, lte alone %.0f:\n%s" % (first[0], alone, lab.shim_log()))
        measured(min(ms for ms, _ in later) < 1.05 * alone, "later ones took %s ms, lte alone %.0f" % (later, alone))
        return "lte alone %.0f ms, the first %.0f, later %s" % (alone, first[0], " ".join("%.0f" % ms for ms, _ in later))


@measures
def test_dead_default_path_and_one_far():
    """
    The first connection, if lte is far and nothing is known of it: with nothing known of wifi (lte's round trip is 240 ms), and after wifi
    has worked (160 and 300 ms). The very first connection to a converter takes one more round trip, on a path that works, too.
    """
    said = []
    for known, delay_ms in ((False, 115), (True, 75), (True, 145)):
        with lab_for(lte=Link(delay_ms=delay_ms)) as lab:
            served(lab)
            if known:
                alone = direct_ms(lab, lab.client.lte4)
                equal(curl(lab)[1], lab.client.wifi4, "the address while all is well, in\n" + lab.shim_log())
            else:
                alone = curl(lab, "--interface", lab.client.lte4, env=remembering(lab, "runtime-lte"))[0]
            lab.wifi.down()
            took, address = curl(lab)
            equal(address, lab.client.lte4, "the address, in\n" + lab.shim_log())
            equal(lab.shim_log().count(MOVED), 1, "moved, in\n" + lab.shim_log())
            measured(took < alone + 300, "%.0f ms, lte alone %.0f:\n%s" % (took, alone, lab.shim_log()))
            said.append("wifi %s: %.0f ms, lte alone %.0f" % ("known" if known else "unknown", took, alone))
    return ", ".join(said)


TIMES_AT_ONCE = """
import os, socket, sys, threading, time
def connect():
    begun = time.monotonic()
    with socket.create_connection((sys.argv[1], 7)):
        os.write(1, b"%.0f\\n" % ((time.monotonic() - begun) * 1000))  # a whole line, though all threads write
threads = [threading.Thread(target=connect) for _ in range(int(sys.argv[2]))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


@measures
def test_several_at_once_and_one_far():
    """Wifi falls silent, lte is far: four connections that begin at once all move, and take at most 0.3 s more than a later one."""
    with lab_for(lte=Link(delay_ms=100)) as lab:
        served(lab)

        def times(count):
            command = ["python3", "-c", TIMES_AT_ONCE, lab.server.addr4, count]
            return [int(ms) for ms in lab.client.run(command, env=remembering(lab)).stdout.split()]

        times(1)
        lab.wifi.down()
        first, later = times(4), times(1)[0]
        equal(lab.shim_log().count(MOVED), 4, "moved, in\n" + lab.shim_log())
        measured(max(first) < later + 300, "%s ms, and %d later" % (first, later))
        return "%s ms, and %d later" % (first, later)


@measures
def test_default_path_that_loses_data_in_syns():
    """SYNs with data vanish on wifi, and lte is hardly slower: connections take lte, and wifi again once data get through."""
    with lab_for(wifi=Link(delay_ms=15), lte=Link(delay_ms=16), core=Link(delay_ms=1)) as lab:
        served(lab)
        curl(lab)
        curl(lab, env=remembering(lab, CONVERT_PATHS="lte"))
        lab.wifi.set("a-to-b", max_syn=66)
        first = curl(lab)
        pairs = [(curl(lab), curl(lab, "--interface", lab.client.lte4, env={})) for _ in range(7)]
        later = [converted for converted, _ in pairs]
        equal({address for _, address in [first, *later]}, {lab.client.lte4}, "addresses, in\n" + lab.shim_log())
        equal(lab.shim_log().count("the path to it loses SYNs with data, asked by lte"), 1, "moved, in\n" + lab.shim_log())
        lab.wifi.set("a-to-b", max_syn=0)
        wait_until(lambda: curl(lab)[1] == lab.client.wifi4, 10, lambda: "wifi to be used again:\n" + lab.shim_log())
        curl(lab)
        check(TAKEN in lab.shim_log().splitlines()[-1], lab.shim_log())
        after, alone = (statistics.median(ms for ms, _ in each) for each in (later, [direct for _, direct in pairs]))
        measured(first[0] < alone + 300, "the first took %.0f ms, lte alone %.0f:\n%s" % (first[0], alone, lab.shim_log()))
        measured(after < 1.05 * alone, "later ones took %.0f ms, lte alone %.0f: %s" % (after, alone, pairs))
        return "lte alone %.0f ms, the first %.0f, later ones %.0f" % (alone, first[0], after)


if __name__ == "__main__":
    main()
