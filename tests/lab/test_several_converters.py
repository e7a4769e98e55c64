#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_several_converters.py - several converters behind one address, or one name (doc/several-converters.md)"""
import os
import pwd
import re
import signal

try:
    import yaml
except ImportError:
    yaml = None

from convertlab import Lab, Link, Skip, Unsuitable, check, equal, kernel, long, main, metrics, need, sandbox, servers, wait_until, waits
from convertlab.build import SRCDIR
from convertlab.nodes import Nodes, converse, lost
from convertlab.peers import MPTCP, PORT, TCP, Client, connect, connect_tlv, extended_header, message, octets

COUNT = 120  # connections
NEW = 30     # and later ones
ECHO = 7
SAID = servers.pattern(20000)


def near():
    """A lab with two networks and fast links."""
    return Lab(wifi=Link(delay_ms=2), lte=Link(delay_ms=4), core=None)


@long
@waits
def test_behind_one_address():
    """Each further subflow reaches its node. A drained node loses no connection, a killed one only its own."""
    with near() as lab:
        lab.echo(port=ECHO)
        nodes = Nodes(lab)
        for node in nodes.nodes:
            node.start("--shared-address", Nodes.ADDR4, "--shared-address", Nodes.ADDR6)
        drained, killed, left = nodes.nodes
        conversations = converse(lab, ECHO, COUNT)
        short = [each for each in conversations if each.subflows() < 2]
        equal(len(short), 0, "connections without their two further subflows")
        equal(nodes.counters("MPTcpExtMPJoinNoTokenFound"), 0, "joins that reached another node")
        of_node = {node.name: node.client_ports() for node in nodes.nodes}
        equal(sum(map(len, of_node.values())), COUNT, "connections at all nodes")
        check(all(of_node.values()), "a node without connections: %s" % of_node)

        # drained: the router withdraws its route, and the node goes on
        nodes.route(killed, left)
        equal(len(lost(conversations, SAID)), 0, "connections lost with a route")
        conversations += converse(lab, ECHO, NEW)
        check(drained.client_ports() <= of_node[drained.name], "new connections at a drained node")
        equal(len(lost(conversations, SAID)), 0, "connections lost later")

        # killed: only its own connections are lost
        at_killed = {each for each in conversations if each.port in killed.client_ports() | of_node[killed.name]}
        killed.process.send_signal(signal.SIGKILL)
        nodes.route(left)
        gone = lost(conversations, SAID)
        check(gone and set(gone) <= at_killed, "%d connections lost, %d were at the node" % (len(gone), len(at_killed)))
        more = converse(lab, ECHO, NEW)
        equal(len(lost(more, SAID)), 0, "connections lost after that")
        for each in conversations + more:
            each.close()
        return "%s connections at the nodes; none lost by the drain, %d by the kill" % (
            ", ".join(str(len(ports)) for ports in of_node.values()), len(gone))


def test_behind_one_address_ipv6():
    """The same for IPv6, in short."""
    with near() as lab:
        lab.echo(port=ECHO)
        nodes = Nodes(lab)
        for node in nodes.nodes:
            node.start()
        conversations = converse(lab, ECHO, NEW, address=Nodes.ADDR6)
        equal([each for each in conversations if each.subflows() < 2], [], "connections without their subflows")
        equal(nodes.counters("MPTcpExtMPJoinNoTokenFound"), 0, "joins that reached another node")
        nodes.route(*nodes.nodes[1:])
        equal(lost(conversations, SAID), [], "connections lost")
        for each in conversations:
            each.close()


def manifests():
    """Our manifests for Kubernetes, by kind."""
    if not yaml:
        raise Skip("Python's yaml module is missing; on Debian: apt-get install python3-yaml")
    with open(os.path.join(SRCDIR, "contrib", "kubernetes", "convertd.yaml"), encoding="utf-8") as file:
        return {each["kind"]: each for each in yaml.safe_load_all(file)}


def test_kubernetes():
    """The manifests agree with one another, their configuration is right, and their script sets nodes up correctly."""
    kinds = manifests()
    config, pods = kinds["ConfigMap"]["data"], kinds["DaemonSet"]["spec"]["template"]
    pod, service = pods["spec"], kinds["Service"]["spec"]
    convertd, setup = pod["containers"][0], pod["initContainers"][0]
    equal((pod["hostNetwork"], service["clusterIP"]), (True, "None"), "the network, and a headless service")
    equal([kinds["DaemonSet"]["spec"]["selector"]["matchLabels"], service["selector"]], [pods["metadata"]["labels"]] * 2, "selectors")
    equal([each["securityContext"]["runAsUser"] for each in (setup, convertd)], [0, 0], "users: the image has another one")
    port = convertd["ports"][0]
    equal((port["name"], port["containerPort"], service["ports"][0]["name"]), ("convert", PORT, "convert"), "RFC 8803 10.1's name")
    names = {volume["name"] for volume in pod["volumes"]}
    check({mount["name"] for mount in convertd["volumeMounts"]} == names, "volumes that aren't mounted, or the other way round")
    with near() as lab:
        lab.echo(port=ECHO)
        keys = os.path.join(lab.directory, "keys")
        path = os.path.join(lab.directory, "convertd.conf")
        program = lab.build.program("convertd")
        lab.converter.run([program, "--make-key", keys])
        secret = next(mount["mountPath"] for mount in convertd["volumeMounts"] if mount["name"] == "keys") + "/keys"
        check(secret in config["convertd.conf"], "the configuration doesn't name " + secret)
        with open(path, "w", encoding="utf-8") as file:
            file.write(config["convertd.conf"].replace(secret, keys))
        lab.converter.run([program, "--config", path, "--check-config"])
        nodes = Nodes(lab, c_flag=False, announces=False)
        for node in nodes.nodes:
            for shared in ("", Nodes.ADDR4, Nodes.ADDR4):  # without, with, and again
                node.host.run(setup["command"] + setup["args"], env={"NODE_ADDRESS": node.addr4, "SHARED_ADDRESS": shared})
                equal(node.host.sysctl("net.mptcp.allow_join_initial_addr_port"), "0" if shared else "1", "the C flag")
            process = node.start("--shared-address", Nodes.ADDR4)
            # here convertd has no other user to become, and perhaps an old kernel
            known = ["runs as root", "this kernel has no Landlock"] + ["no Fast Open"] * (not kernel.has("fastopen"))
            warnings = [line for line in process.log_text().splitlines() if "warning" in line and not any(text in line for text in known)]
            equal(warnings, [], "warnings")
        conversations = converse(lab, ECHO, NEW)
        equal([each for each in conversations if each.subflows() < 2], [], "connections without their subflows")
        for each in conversations:
            each.close()


def test_kubernetes_container():
    """With a container's rights convertd answers the probe, and reads a changed mounted file at the document's command."""
    if sandbox.in_user_namespace():
        raise Unsuitable("in a user namespace of an ordinary user there is only one user; run it as root")
    need("setpriv", "util-linux")
    kinds = manifests()
    pod = kinds["DaemonSet"]["spec"]["template"]["spec"]["containers"][0]
    mounts = {mount["name"]: mount for mount in pod["volumeMounts"]}
    check("subPath" not in mounts["config"], "Kubernetes never changes what is mounted by a subPath")
    mounted = mounts["config"]["mountPath"] + "/convertd.conf"
    check(mounted in pod["args"][0], "convertd isn't told of " + mounted)
    with open(os.path.join(SRCDIR, "doc", "several-converters.md"), encoding="utf-8") as file:
        command, = re.findall(r"kubectl -n convert exec POD -- (?:sh -c )?'?(kill -HUP) 1\b", file.read())
    capabilities = ",".join(["-all"] + ["+" + name.lower() for name in pod["securityContext"]["capabilities"]["add"]])
    container = ["setpriv", "--no-new-privs", "--bounding-set", capabilities, "--inh-caps", capabilities]
    with Lab(wifi=Link(), lte=None) as lab:
        os.chmod(lab.directory, 0o755)
        keys, path = os.path.join(lab.directory, "keys"), os.path.join(lab.directory, "convertd.conf")
        lab.converter.run([lab.build.program("convertd"), "--make-key", keys])
        os.chown(keys, 0, pwd.getpwnam("nobody").pw_gid)
        os.chmod(keys, kinds["DaemonSet"]["spec"]["template"]["spec"]["volumes"][1]["secret"]["defaultMode"])
        with open(path, "w", encoding="utf-8") as file:
            file.write(re.sub(r"^cookie-key .*$", "cookie-key " + keys, kinds["ConfigMap"]["data"]["convertd.conf"], flags=re.MULTILINE))
        script = pod["args"][0].replace(mounted, path).replace("exec convertd", "exec " + lab.build.program("convertd"))
        process = lab.start_listening(lab.converter, [*container, *pod["command"], script], PORT, env={"SHARED_ADDRESS": Nodes.ADDR4})
        process.wait_log("ready")
        with Client(lab.client, lab.converter.addr4, TCP) as client:
            client.send(connect(Nodes.ADDR4, 80))
            equal(client.answer()[4:8].hex(), "1e050300", "the answer: a cookie is missing")
        probe = pod["readinessProbe"]["httpGet"]
        check("metrics %s:%d\n" % (probe["host"], probe["port"]) in kinds["ConfigMap"]["data"]["convertd.conf"], "nobody answers the probe")
        status, _, said = metrics.get(lab.converter, probe["path"], port=probe["port"])
        equal((status, said.strip()), (200, "ok"), "the readiness probe")
        with open(path, "a", encoding="utf-8") as file:
            file.write("listen [::]:4321\n")
        lab.converter.run([*container, "sh", "-c", "%s %d" % (command, process.pid)])
        process.wait_log("reloaded")
        check(lab.converter.listening(4321), "the change was not read: " + process.log_text())
        equal(process.stop(), 0, "convertd's status")


def test_behind_one_name():
    """SRV, and a key file that all share: a cookie of one converter is good for another; clients skip dead ones."""
    with near() as lab:
        lab.http()
        nodes = Nodes(lab)
        path = os.path.join(lab.directory, "keys")
        lab.converter.run([lab.build.program("convertd"), "--make-key", path])
        for node in nodes.nodes:
            node.start("--cookie-key", path)
        first, second, _ = nodes.nodes
        with Client(lab.client, first.addr4, TCP) as client:
            answer = client.send(connect(lab.server.addr4, 80)).answer()
            equal(answer[4:8].hex(), "1e050300", "Missing Cookie")
            cookie = octets("16050000") + answer[8:]
        with Client(lab.client, second.addr4, MPTCP) as client:
            extended_header(client.send(message(connect_tlv(lab.server.addr4, 80), cookie)).answer())

        lab.names(*("_convert._tcp.example. SRV 10 1 1234 %s.example." % node.name for node in nodes.nodes),
                  *("%s.example. A %s" % (node.name, node.addr4) for node in nodes.nodes))
        curl = ["curl", "-q", "-sS", "--http1.0", "-o", "/dev/null", "http://%s/bytes/1000" % lab.server.addr4]
        env = lab.converted(CONVERT_ADDR="_convert._tcp.example")
        for dead in (None, first, second):
            if dead:
                equal(dead.process.stop(), 0, "convertd's status")
            before = lab.shim_log().count("converted over MPTCP")
            for _ in range(6):
                lab.client.run(curl, env=env)
            wait_until(lambda: lab.shim_log().count("converted over MPTCP") == before + 6, 5,  # pylint: disable=W0640
                       lambda: "six conversions: " + lab.shim_log())


if __name__ == "__main__":
    main()
