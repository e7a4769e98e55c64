#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""guest.py - in the emulated machine: runs files of tests, several at a time, and leaves what each has said

  guest.py RESULTS SECONDS AT_ONCE FILE...

RESULTS/NAME.running is what a file has said so far. When it has ended this is renamed NAME.log, with its status in the last line: what has
no .log hasn't been run to its end, so that another machine can go on where this one was when it ended.
"""
import concurrent.futures
import os
import signal
import subprocess
import sys
import time


def run(path, results, seconds):
    """Runs a file of tests with a limit, and leaves its log."""
    base = os.path.join(results, os.path.basename(path)[:-3])
    start = time.monotonic()
    with open(base + ".running", "w", encoding="utf-8") as log:
        process = subprocess.Popen([sys.executable, path, "--no-measuring"], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                   start_new_session=True)
        try:
            status = str(process.wait(seconds))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            status = "none: no end within %d s" % seconds
        log.write("status %s after %.0f s\n" % (status, time.monotonic() - start))
    os.replace(base + ".running", base + ".log")


def main():
    results, seconds, at_once = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        for done in [pool.submit(run, path, results, seconds) for path in sys.argv[4:]]:
            done.result()


if __name__ == "__main__":
    main()
