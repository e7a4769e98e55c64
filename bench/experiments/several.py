# SPDX-License-Identifier: BSD-3-Clause
"""several - three converters behind one address, spread by ECMP; one is drained, one is killed

A client with two networks has many connections through the address that the three share. We find which of them got a subflow over the
second network: a node refuses a subflow of another node's connection. Then the route to one node
is withdrawn while it stays up, and the process of another is killed. Each time the client sends over all connections, and those
without an echo within some seconds are lost. doc/several-converters.md describes the set-ups.
"""
import re
import signal

from convertlab import Lab, Link
from convertlab.nodes import Nodes, converse, lost
from convertlab.peers import MPTCP, TCP

COUNT, COUNT_QUICK = 300, 30
SETTLE, SETTLE_QUICK = 5, 2  # seconds that subflows have to come up
SECONDS = 10                 # and that an echo may take
ECHO = 7
SAID = bytes(range(256)) * 40
SETUPS = {  # C flag, own address announced, the client's endpoints, its protocol
    "plain TCP": (False, False, "subflow", TCP),
    "nothing done": (False, False, "subflow", MPTCP),
    "C flag": (True, False, "subflow", MPTCP),
    "own address; subflow fullmesh": (False, True, "subflow fullmesh", MPTCP),
    "C flag, own address; subflow": (True, True, "subflow", MPTCP),
    "C flag, own address; subflow fullmesh": (True, True, "subflow fullmesh", MPTCP),
}


def _with_second_network(lab):
    """Connections of which a subflow over lte is established: their tokens."""
    said = lab.client.run(["ss", "-Htin", "state", "established", "src", lab.client.lte4]).stdout
    return len(set(re.findall(r"token:\w+\(id:\d+\)/(\w+)", said)))


def _measure(bench, setup):
    c_flag, announces, endpoints, protocol = setup
    count = COUNT_QUICK if bench.quick else COUNT
    settle = SETTLE_QUICK if bench.quick else SETTLE
    with Lab(wifi=Link(delay_ms=2), lte=Link(delay_ms=4), core=None) as lab:
        lab.echo(port=ECHO)
        nodes = Nodes(lab, 3, c_flag, announces, endpoints)
        for node in nodes.nodes:
            node.start()
        drained, killed, left = nodes.nodes
        # more subflows than there can be: waits for its time
        conversations = converse(lab, ECHO, count, 1 if protocol == TCP else 3, seconds=0 if protocol == TCP else settle,
                                 protocol=protocol)
        second, misled = _with_second_network(lab), nodes.counters("MPTcpExtMPJoinNoTokenFound")
        of_drained, of_killed = (len(node.client_ports()) for node in (drained, killed))
        nodes.route(killed, left)
        lost_to_drain = lost(conversations, SAID, SECONDS)
        conversations = [each for each in conversations if each not in lost_to_drain]
        killed.process.send_signal(signal.SIGKILL)
        nodes.route(left)
        lost_to_kill = lost(conversations, SAID, SECONDS)
        for each in conversations + lost_to_drain:
            each.close()
    return [count, second, misled, of_drained, len(lost_to_drain), of_killed, len(lost_to_kill)]


def run(bench):
    """The experiment."""
    rows = []
    for name, setup in SETUPS.items():
        bench.progress(name)
        found = _measure(bench, setup)
        bench.samples(name, [found])
        rows.append([name] + found)
    bench.setting("seconds until an answer counts as lost", SECONDS)
    bench.table("Three nodes", ["", "connections", "with the second network", "joins at a wrong node", "at the drained node",
                                "lost by the drain", "at the killed node", "lost by the kill"], rows)
    bench.remark("When a route is withdrawn the router also spreads the connections of other nodes anew (hash threshold): more may be "
                 "lost than the node had. A resilient nexthop group (ip-nexthop(8)) moves fewer of them.")
    bench.plot("bars", "Of %d connections" % rows[0][1], {
        "with the second network": [row[2] for row in rows], "lost by the drain": [row[5] for row in rows],
        "lost by the kill": [row[7] for row in rows]}, categories=[row[0] for row in rows], ylabel="connections")
