# SPDX-License-Identifier: BSD-3-Clause
"""blocks - delay of an application's 8 KB blocks over one network and over both

After Raiciu et al. (How Hard Can It Be? Designing and Implementing a Deployable Multipath TCP, figure 7) as reproduced in
Stanford's CS 244: an application that is always sending writes blocks of 8 KB; their age is taken when the last byte has arrived.
Wifi: 8 Mbit/s, 20 ms of round trip, 80 ms of queue; 3G: 2 Mbit/s, 150 ms, 2 s of queue. A send buffer of 200 KB.
"""
import json
import os

from benchlib import quantile
from benchlib.proxies import convertd_options
from convertlab import Lab, Link

BLOCKS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tools", "blocks.py")
PORT = 6000
SECONDS, SECONDS_QUICK = 25, 2
PACKET = 1500


def _link(mbit, rtt_ms, queue_ms):
    return Link(delay_ms=rtt_ms / 2, rate_mbit=mbit, queue=max(1, round(mbit * 1e3 * queue_ms / 8 / PACKET)))


WIFI, LTE = _link(8, 20, 80), _link(2, 150, 2000)


def run(bench):
    """The experiment."""
    seconds = SECONDS_QUICK if bench.quick else SECONDS
    ages = {}
    with Lab(wifi=WIFI, lte=LTE, core=Link()) as lab:
        lab.convertd(convertd_options(lab.build))
        ways = {"TCP over wifi": (lab.client.wifi4, None), "TCP over 3G": (lab.client.lte4, None),
                "libconvert over both": ("0.0.0.0", lab.converted())}
        for name, (source, env) in ways.items():
            bench.progress(name)
            server = lab.start_listening(lab.server, ["python3", BLOCKS, "receive", PORT], PORT)
            lab.client.run(["python3", BLOCKS, "send", source, lab.server.addr4, PORT, seconds], env=env, timeout=seconds + 60)
            server.wait(timeout=60)
            ages[name] = json.loads(server.log_text())
            bench.samples("ms: " + name, ages[name])
    bench.table("Age of 8 KB blocks on arrival, ms; %d s each" % seconds,
                ["", "blocks", "median", "9 of 10", "99 of 100", "oldest"],
                [[name, len(values)] + ["%.0f" % quantile(values, share) for share in (0.5, 0.9, 0.99, 1)]
                 for name, values in ages.items()])
    bench.plot("cdf", "Age of 8 KB blocks on arrival", ages, xlabel="ms", ylabel="share of blocks", xlog=True)
