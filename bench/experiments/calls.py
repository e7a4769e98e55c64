# SPDX-License-Identifier: BSD-3-Clause
"""calls - instructions that the shim adds to an I/O call

A small program (tools/calls.c) makes each call with and without libconvert.so in front of the C library. The experiment single-steps
it, so the figures are exact, and no other process can disturb them. In one run nothing in the process waits for a converter's
answer; in another, a connection elsewhere in the process, to a server that never answers, does.
"""
from benchlib import machine
from convertlab import Lab, LabError, Link

PORT = 7


def _rows(text):
    """{(pending connections, descriptor, call): (instructions, system calls)} of what tools/calls.c prints."""
    found = {}
    for line in text.splitlines():
        pending, kind, call, instructions, system_calls = line.split("\t")
        found[int(pending), kind, call] = int(instructions), int(system_calls)
    return found


def _measure():
    """The counts without and with the shim."""
    with Lab(wifi=Link(delay_ms=1), lte=None) as lab:
        lab.convertd()
        lab.echo(PORT)
        # core4 is an address of the server that the shim is told to leave alone
        command = [lab.build.program("bench/tools/calls"), lab.server.core4, lab.server.addr4, PORT,
                   lab.addresses.blackhole4]
        plain = _rows(lab.client.run(command, timeout=60).stdout)
        shim = _rows(lab.client.run(command, env=lab.converted(CONVERT_BYPASS=lab.server.core4), timeout=60).stdout)
        for expected in ("%s:%d: converted over MPTCP" % (lab.server.addr4, PORT),
                         "%s:%d: direct: CONVERT_BYPASS" % (lab.server.core4, PORT)):
            if expected not in lab.shim_log():
                raise LabError("the shim's log lacks \"%s\":\n%s" % (expected, lab.shim_log()))
    return plain, shim


def run(bench):
    """The experiment."""
    plain, shim = _measure()
    bench.version("libc", machine.facts()["libc"])
    bench.samples("instructions, system calls of the C library", [list(key + value) for key, value in plain.items()])
    bench.samples("instructions, system calls with libconvert.so", [list(key + value) for key, value in shim.items()])
    rows = []
    for pending, kind, call in plain:
        if pending:
            continue
        alone, beside = (pending, kind, call), (1, kind, call)
        rows.append([call, kind, plain[alone][0], shim[alone][0], "+%d" % (shim[alone][0] - plain[alone][0]),
                     "+%d" % (shim[alone][1] - plain[alone][1]), "+%d" % (shim[beside][0] - plain[beside][0]),
                     "+%d" % (shim[beside][1] - plain[beside][1])])
    rows.sort(key=lambda row: [call for _, _, call in plain].index(row[0]))
    bench.table("User-space instructions of one call, and what the shim adds",
                ["call", "descriptor", "libc", "with shim", "more", "system calls", "more, one pending elsewhere",
                 "system calls, one pending"], rows)
    calls = list(dict.fromkeys(row[0] for row in rows if row[1] == "converted socket"))
    series = {"C library": [plain[0, "converted socket", call][0] for call in calls],
              "with libconvert.so": [shim[0, "converted socket", call][0] for call in calls]}
    bench.plot("bars", "One call on an established, converted connection", series, categories=calls,
               ylabel="user-space instructions")
