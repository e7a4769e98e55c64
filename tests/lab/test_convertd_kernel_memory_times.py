#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertd_kernel_memory_times.py - how fast a download is beside clients that don't read, as in test_convertd_kernel_memory.py"""
import json
import time

from convertlab import check, kernel, main, measured, measures, wait_until
from test_convertd_kernel_memory import Stalled, downloads, ended

LOAD = "bench/tools/load/load"


def goodput(lab, *options):
    """Downloads three times 1 GB with the load tool; returns bytes per second."""
    start = time.monotonic()
    out = json.loads(lab.client.run([lab.build.program(LOAD), "run", "--to", "%s:1234" % lab.converter.addr4,
                                     "--via", kernel.load_way("--mptcp" in options), "--server", "%s:6000" % lab.server.addr4,
                                     "--response", "1G", "--connections", "3", *options]).stdout)
    check(not out["failed"], out)
    return 3e9 / (time.monotonic() - start)


@measures
def test_a_fast_download_beside_them():
    """Beside stalled clients that exceed their budget, a download has at least half of its goodput alone."""
    with downloads("--max-memory", "64", "--max-memory-per-client", "16") as lab:
        lab.start_listening(lab.server, [lab.build.program(LOAD), "serve", 6000], 6000)
        ratios = []
        for protocol in ([], ["--mptcp"]):
            alone = goodput(lab, *protocol)
            with Stalled(lab, 60):
                wait_until(lambda: ended(lab) > 0, 30, "some to be ended")
                beside = goodput(lab, *protocol)
            ratios.append(beside / alone)
        text = "of the goodput alone: %s" % ", ".join("%.2f" % ratio for ratio in ratios)
        measured(min(ratios) > 0.5, text)
        return text


if __name__ == "__main__":
    main()
