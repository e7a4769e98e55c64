#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertd_observe.py - convertd's log, metrics and status; requests for them disturb no client"""
import contextlib
import html.parser
import json
import os
import re
import signal
import socket
import threading
import time

from convertlab import Lab, Link, Unsuitable, check, equal, kernel, main, need, wait_until
from convertlab.metrics import OPTIONS, PORT, Metrics, ask, get, json_lines, wait_metrics
from convertlab.peers import (MPTCP, TCP, Client, Server, connect, connected, converter, descriptor_targets, descriptors, extended_header, message,
                              octets, read_exactly, reset)

INFO = message(octets("01010000"))
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
DENIED = "10.8.0.1:25"  # of the server
SANITIZED = bool(os.environ.get("SANITIZER_PRELOAD"))
LEVELS = ("error", "warning", "info", "debug")


def near(**options):
    """Returns a lab whose links are too fast to matter."""
    options.setdefault("lte", None)
    return Lab(wifi=Link(delay_ms=0.5), core=Link(delay_ms=0.1), **options)


@contextlib.contextmanager
def json_converter(lab, *arguments):
    """Starts a convertd that logs JSON; at its end, checks that each line is an object with the members common to all."""
    process = lab.convertd(["--log-format", "json", *arguments])
    process.wait_log("ready")
    yield process
    equal(process.stop(), 0, "convertd's status")
    for line in json_lines(process):
        check(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"]), line)
        check(line["level"] in LEVELS and line["message"], line)


def connections(process):
    """Returns the log's objects about connections."""
    return [line for line in json_lines(process) if line.get("event") == "connection"]


def transfer(lab, server, protocol, delivery, up, down):
    """Makes a connection that carries this many bytes each way and ends in order; returns the client's port."""
    with Client(lab.client, lab.converter.addr4, protocol, delivery) as client:
        client.send(server.connect())
        with server.accept() as sock:
            extended_header(client.answer())
            client.sock.sendall(bytes(up))
            client.shutdown()
            equal(len(read_exactly(sock, up + 1)), up, "bytes at the server")
            # a thread: more bytes than the buffers on the way hold
            sender = threading.Thread(target=sock.sendall, args=[bytes(down)])
            sender.start()
            equal(len(client.read(down)), down, "bytes at the client")
            sender.join()
        equal(client.read(1), b"", "more bytes at the client")
        return client.sock.getsockname()[1]


def refused(lab, request, protocol=TCP):
    """Makes a connection that the converter ends, with an answer or without; returns the client's port."""
    with Client(lab.client, lab.converter.addr4, protocol) as client:
        client.send(request)
        client.end()
        return client.sock.getsockname()[1]


# --- the log ------------------------------------------------------------------------------------------------------


def test_json_lines():
    """One object for each connection, with the values that its peers see."""
    with near() as lab, Server(lab, 80) as server, json_converter(lab, "--deny-destination", DENIED) as process:
        expected = {}
        for protocol, delivery, up, down in ((TCP, "syn", 1000, 0), (TCP, "behind", 0, 10000000), (MPTCP, "syn", 70000, 300000),
                                             (MPTCP, "behind", 1, 1)):
            port = transfer(lab, server, protocol, delivery, up, down)
            expected[port] = {"outcome": "done", "reason": "done", "bytes_up": up, "bytes_down": down,
                              "transport": "mptcp" if protocol == MPTCP else "tcp", "syn_data": delivery == "syn" and kernel.has("fastopen"),
                              "destination": lab.server.addr4, "destination_port": 80, "client": lab.client.wifi4}
        port = refused(lab, connect(lab.server.addr6, lab.addresses.refused_port))
        expected[port] = {"outcome": "server_refused", "error_code": 96, "destination": lab.server.addr6,
                          "destination_port": lab.addresses.refused_port, "bytes_down": 0}
        expected[refused(lab, connect(lab.server.addr4, 25))] = {"outcome": "not_authorized", "error_code": 32,
                                                                 "reason": "destination denied"}
        expected[refused(lab, b"GET / HTTP/1.1\r\n\"\\\r\n\r\n")] = {"outcome": "not_convert"}
        expected[refused(lab, octets("01002263"))] = {"outcome": "bad_request", "reason": "Total Length is 0", "syn_data": kernel.has("fastopen")}
        expected[refused(lab, octets("01022263 00010000"))] = {"outcome": "bad_request", "error_code": 2}
        expected[refused(lab, INFO, MPTCP)] = {"outcome": "information", "transport": "mptcp"}
        wait_until(lambda: len(connections(process)) == len(expected), 10, "%d lines" % len(expected))
        for line in connections(process):
            for name, value in expected[line["client_port"]].items():
                equal(line[name], value, "%s of %s" % (name, line))
            equal("destination" in line, line["outcome"] in ("done", "server_refused", "not_authorized"), line)
            equal("error_code" in line, "error_code" in expected[line["client_port"]], line)
            equal("connect_seconds" in line, line["outcome"] == "done", line)
            check(0 <= line.get("connect_seconds", 0) <= line["duration_seconds"] < 30, line)
            equal(line.get("subflows_max"), 1 if line["transport"] == "mptcp" else None, line)
            check(" to " in line["message"] and line["reason"] in line["message"], line)
        equal(len({line["id"] for line in connections(process)}), len(expected), "ids")


def test_subflows_and_fallback():
    """The log and the metrics have the number of subflows, and Multipath TCP that fell back to TCP."""
    need("nft", "nftables")
    with Lab(wifi=Link(delay_ms=2, rate_mbit=50), lte=Link(delay_ms=2, rate_mbit=50), core=Link(delay_ms=0.1)) as lab, \
            Server(lab, 80) as server, json_converter(lab, *OPTIONS) as process:
        with Client(lab.client, lab.converter.addr4, MPTCP) as client:
            client.send(server.connect())
            with server.accept() as sock:
                extended_header(client.answer())
                # a subflow is only opened once data has gone both ways
                for _ in range(2):
                    client.sock.sendall(b"x")
                    sock.sendall(read_exactly(sock, 1))
                    client.read(1)
                wait_until(lambda: lab.client.counters()["MPTcpExtMPJoinSynAckRx"] > 0, 10, "the second subflow")
                client.sock.sendall(bytes(1000))
                equal(len(read_exactly(sock, 1000)), 1000, "bytes")
        wait_until(lambda: connections(process), 10, "a line")
        # packets behind the SYN lose their options, among them the first DSS, which ends MPTCP (RFC 8684 3.7)
        lab.client.run(["nft", "add table inet strip; add chain inet strip out { type filter hook output priority 0; }; "
                        "add rule inet strip out tcp dport 1234 tcp flags & (syn|ack) == ack reset tcp option 30"])
        transfer(lab, server, MPTCP, "syn", 1000, 1000)
        wait_until(lambda: len(connections(process)) == 2, 10, "the other line")
        two, fallen = connections(process)
        equal((two["transport"], two["subflows_max"]), ("mptcp", 2), two)
        # without data in the SYN, the first such packet is the third ACK, so that there is no MPTCP from the start
        transport = "fallback" if kernel.has("fastopen") else "tcp"
        equal((fallen["transport"], fallen["outcome"], "subflows_max" in fallen), (transport, "done", False), fallen)
        metrics = Metrics(lab.converter)
        equal(metrics.family("convertd_client_transports_total", "transport"), {"mptcp": 1, transport: 1}, "transports")
        equal((metrics("convertd_connection_subflows_bucket", le="1"), metrics("convertd_connection_subflows_bucket", le="2"),
               metrics("convertd_connection_subflows_sum")), (0, 1, 2), "subflows")


def source(address):
    """Returns (address, port) of a socket's address, without the prefix of v4-mapped ones."""
    return address[0].replace("::ffff:", ""), address[1]


def test_source_address():
    """A line has the address and port that the server sees, however the connection ends; without a server's connection it has none."""
    with near() as lab, Server(lab, 80) as server, json_converter(lab, "--deny-destination", DENIED) as process:
        expected = {}
        for v6 in (False, True):
            for protocol in (TCP, MPTCP):
                for ends in (lambda client, sock: client.sock.close(), lambda client, sock: client.reset(),
                             lambda client, sock: reset(sock)):
                    client, sock = connected(lab, server, protocol, request=server.connect(v6))
                    expected[client.port] = source(sock.getpeername())
                    ends(client, sock)
                    client.sock.close()
                    sock.close()
        equal(len(expected), 12, "connections")
        expected[refused(lab, connect(lab.server.addr4, 25))] = None
        wait_until(lambda: len(connections(process)) == len(expected), 10, "%d lines" % len(expected))
        for line in connections(process):
            port = expected[line["client_port"]]
            equal((line.get("source"), line.get("source_port")), port or (None, None), line)
            check(not port or ", from %s" % port[0] in line["message"].replace("[", ""), line)


def test_no_line_no_getsockname():
    """If the log level leaves the line about a connection out, convertd doesn't ask the kernel for the address that only this line has."""
    need("strace")
    if SANITIZED:
        raise Unsuitable("sanitizers don't work under strace")
    for level, asked in (("info", True), ("warning", False)):
        with near() as lab, Server(lab, 80) as server:
            trace = os.path.join(lab.directory, "trace")
            process = lab.convertd(["--log-level", level, *OPTIONS], wrapper=["strace", "-f", "-o", trace, "-e", "getsockname"])
            transfer(lab, server, TCP, "syn", 1000, 1000)
            wait_metrics(lab.converter, lambda metrics: metrics("convertd_connections_ended_total", outcome="done"), "its end")
            with open("/proc/%d/task/%d/children" % (process.pid, process.pid), encoding="ascii") as file:
                os.kill(int(file.read().split()[0]), signal.SIGTERM)
            equal(process.wait(20), 0, "the status")
            with open(trace, encoding="ascii") as file:
                equal("10.3.0.1" in file.read(), asked, "getsockname() of the socket towards the server, with %s" % level)


def test_log_rate():
    """Beyond --log-rate, convertd leaves out lines of that outcome alone, and counts them."""
    with near() as lab, json_converter(lab, "--log-rate", "2", *OPTIONS) as process:
        for _ in range(60):
            refused(lab, INFO)
        refused(lab, connect(lab.server.addr4, lab.addresses.refused_port))
        metrics = wait_metrics(lab.converter, lambda metrics: metrics("convertd_connections_ended_total", outcome="server_refused"),
                               "the end of the last")
        equal(metrics("convertd_connections_ended_total", outcome="information"), 60, "counted")
        process.stop()
        told = [line["outcome"] for line in connections(process)]
        # ten seconds' worth at once, and more as time passes
        check(20 <= told.count("information") < 60, "%d lines" % told.count("information"))
        equal(told.count("server_refused"), 1, "lines of another outcome")
        left_out = sum(int(line["message"].split()[0]) for line in json_lines(process) if "left their lines out" in line["message"])
        equal(told.count("information") + left_out, 60, "lines, logged and left out")
        equal(metrics("convertd_log_lines_left_out_total"), left_out, "the metric")


def test_journal():
    """If standard error is the journal's socket, lines begin with their level for the journal, otherwise not."""
    with near() as lab:
        for journal in (True, False):
            ends = socket.socketpair()
            with ends[0], ends[1]:
                stat = os.fstat(ends[1].fileno())
                stream = "%d:%d" % (stat.st_dev, stat.st_ino + (not journal))
                process = lab.converter.popen([lab.build.program("convertd")], stdout=ends[1], stderr=ends[1],
                                              env={"JOURNAL_STREAM": stream})
                ends[1].close()
                ends[0].settimeout(10)
                text = b""
                while b"ready" not in text:
                    text += ends[0].recv(65536)
                process.stop()
                for line in text.decode().splitlines():
                    check(re.match(r"<[3467]>convertd: " if journal else r"convertd: ", line), line)


# --- metrics ------------------------------------------------------------------------------------------------------


def await_open_files(lab, process):
    """Waits until the metric counts convertd's descriptors, and one for the connection that asks, which may be open when we count, too."""
    wait_metrics(lab.converter, lambda metrics: metrics("process_open_fds") == len(descriptor_targets(process)) + 1, "the descriptors to agree")


def test_open_files_on_older_kernels():
    """If Linux doesn't tell how many descriptors a process has, convertd counts them, in its sandbox, and with connections, too."""
    with near() as lab, Server(lab, 80) as server, \
            converter(lab, *OPTIONS, env={"LD_PRELOAD": lab.build.preloaded("libolderlinux.so")}) as process:
        await_open_files(lab, process)
        client, sock = connected(lab, server)
        with client, sock:
            await_open_files(lab, process)


def test_counts():
    """100 connections: the metrics count each kind exactly, and the open ones while they last."""
    with near() as lab, Server(lab, 80) as server, \
            converter(lab, "--deny-destination", DENIED, "--hold-syn", "off", *OPTIONS) as process:
        # without withholding: a client that is refused while its SYN is withheld counts as TCP
        before = Metrics(lab.converter)
        equal(before("convertd_connections_accepted_total"), 0, "at first")
        up = down = 0
        for i in range(20):
            transfer(lab, server, (TCP, MPTCP)[i % 2], ("syn", "behind")[i // 10], i * 10, i * 1000)
            up, down = up + i * 10, down + i * 1000
        for i in range(40):
            refused(lab, connect(lab.server.addr4, lab.addresses.refused_port), (TCP, MPTCP)[i % 2])
        for i in range(20):
            refused(lab, connect(lab.server.addr4, 25))
        for i in range(10):
            refused(lab, b"GET / HTTP/1.1\r\n\r\n")
        with contextlib.ExitStack() as stack:
            for _ in range(5):
                client = stack.enter_context(Client(lab.client, lab.converter.addr4, TCP)).send(server.connect() + b"12345")
                sock = stack.enter_context(server.accept())
                extended_header(client.answer())
                equal(read_exactly(sock, 5), b"12345", "the server's bytes")
            for _ in range(5):
                stack.enter_context(Client(lab.client, lab.converter.addr4, TCP)).send(connect(lab.addresses.blackhole4, 80)[:12])
            during = wait_metrics(lab.converter, lambda metrics: metrics.family("convertd_connections", "state") ==
                                  {"relay": 5, "request": 5}, "ten open connections")
            equal(during("convertd_pending_requests"), 5, "pending requests")
            # open connections count, too
            equal(during("convertd_relayed_bytes_total", direction="up"), up + 25, "bytes up")
        # the metrics aren't a snapshot: a session may end between the two numbers
        wait_metrics(lab.converter, lambda metrics: not metrics.family("convertd_connections", "state") and
                     sum(metrics.family("convertd_connections_ended_total", "outcome").values()) == 100, "all to end, and to be counted")
        metrics = Metrics(lab.converter)
        equal(metrics.family("convertd_connections_ended_total", "outcome"),
              {"done": 25, "server_refused": 40, "not_authorized": 20, "not_convert": 10, "client_left": 5}, "outcomes")
        equal(metrics.family("convertd_errors_sent_total", "code"), {"96": 40, "32": 20}, "errors")
        equal(metrics("convertd_connections_accepted_total"), 100, "accepted")
        equal(metrics("convertd_pending_requests"), 0, "pending requests")
        equal(metrics("convertd_relayed_bytes_total", direction="up"), up + 25, "bytes up")
        equal(metrics("convertd_relayed_bytes_total", direction="down"), down, "bytes down")
        equal((metrics("convertd_requests_total", syn_data="yes"), metrics("convertd_requests_total", syn_data="no")),
              (55, 10) if kernel.has("fastopen") else (0, 65), "requests")
        equal(metrics.family("convertd_client_transports_total", "transport"), {"tcp": 70, "mptcp": 30}, "transports")
        equal(metrics("convertd_connect_duration_seconds_count"), 25, "connected")
        check(metrics("convertd_client_round_trip_seconds_count") >= 65, "round trips of clients")
        equal(metrics("convertd_request_duration_seconds_count"), 65, "requests that were granted")
        check(0 < metrics("convertd_connect_duration_seconds_sum") < 25 * 5, "%g s" % metrics("convertd_connect_duration_seconds_sum"))
        await_open_files(lab, process)
        check(before("process_cpu_seconds_total") < metrics("process_cpu_seconds_total"), "no processor time is counted")
        check(abs(metrics("process_start_time_seconds") - time.time()) < 60, "it began at another time")
        check(metrics("process_resident_memory_bytes") > 1e6, "no memory")
        equal(before.names(), metrics.names(), "names, from the first question on")


def test_reference_has_each_metric():
    """doc/metrics.md lists all metrics, fates of SYNs and outcomes, and no others."""
    with near() as lab, converter(lab, *OPTIONS):
        metrics = Metrics(lab.converter)
    families = {re.sub("_(bucket|sum|count)$", "", name) for name in metrics.names()}
    families.add("convertd_client_connections_total")  # without a sample: no cookie has a name here
    with open(os.path.join(SOURCE, "doc/metrics.md"), encoding="utf-8") as file:
        sections = dict(re.findall(r"^##+ ([^\n]+)\n(.*?)(?=^##|\Z)", file.read(), re.MULTILINE | re.DOTALL))

    def rows(section):
        return sorted(re.findall(r"^\| `(\w+)` \|", sections[section], re.MULTILINE))

    def labels(family, label):
        return sorted(dict(labels)[label] for name, labels in metrics.values if name == family)
    equal(rows("Metrics"), sorted(families), "metrics in doc/metrics.md")
    equal(rows("SYNs"), labels("convertd_syns_total", "fate"), "fates of SYNs in doc/metrics.md")
    equal(rows("Outcomes"), labels("convertd_connections_ended_total", "outcome"), "outcomes in doc/metrics.md")


def test_promtool():
    """Prometheus's own checker has no complaints."""
    need("promtool", "prometheus")
    with near() as lab, converter(lab, *OPTIONS):
        _, _, text = get(lab.converter)
        result = lab.converter.run(["promtool", "check", "metrics"], input=text)
        equal(result.stdout + result.stderr, "", "promtool")


def dashboard_expressions():
    """Yields the expressions of the Grafana dashboard's panels and annotations; checks the panels' places and texts."""
    with open(os.path.join(SOURCE, "contrib/grafana/convertd.json"), encoding="utf-8") as file:
        dashboard = json.load(file)
    places, ids = set(), set()
    for panel in dashboard["panels"]:
        where = panel["gridPos"]
        taken = {(x, y) for x in range(where["x"], where["x"] + where["w"]) for y in range(where["y"], where["y"] + where["h"])}
        check(where["x"] + where["w"] <= 24 and not taken & places and panel["id"] not in ids, "%s overlaps" % panel["title"])
        places |= taken
        ids.add(panel["id"])
        check(panel["type"] == "row" or panel["targets"] and panel["description"], "%s is empty" % panel["title"])
        yield from (target["expr"] for target in panel.get("targets", []))
    yield from (annotation["expr"] for annotation in dashboard["annotations"]["list"])


def alert_expressions():
    """Yields the expressions of the alerts, found by their lines: a YAML parser may be missing."""
    with open(os.path.join(SOURCE, "contrib/prometheus/alerts.yml"), encoding="utf-8") as file:
        lines = file.read().split("- alert:")[1:]
    yield from (re.search(r"expr:(.*?)\n {8}\w", rule, re.DOTALL)[1] for rule in lines)


def test_dashboard_and_alerts_match_the_metrics():
    """The metrics have each name and label value in them, and they use all metrics but a few."""
    with near() as lab:
        cookies = os.path.join(lab.directory, "cookies")
        with open(cookies, "w", encoding="ascii", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write("secret # laptop\n")
        with converter(lab, "--cookie-list", cookies, *OPTIONS):
            metrics = Metrics(lab.converter)
            equal(metrics("convertd_client_connections_total", client="laptop"), 0, "connections of the client with a name")
            check("laptop" in Page(get(lab.converter, "/")[2]).cells, "the client isn't on the page")
    labels = {label for _, pairs in metrics.values for label in pairs}
    expressions = [*dashboard_expressions(), *alert_expressions()]
    check(len(expressions) >= 40, "%d expressions" % len(expressions))
    asked = set()
    for expression in expressions:
        names = set(re.findall(r"\b((?:convertd|process)_\w+)\b", expression))
        check(names or "up{" in expression, "nothing of convertd's in " + expression)
        asked |= names
        for label, values in re.findall(r'(\w+)=~?"([\w.*|+]+)"', expression):
            for value in values.split("|") if label != "job" else ():
                check(any(own == label and re.fullmatch(value, text) for own, text in labels), "%s=%s" % (label, value))
    equal(asked - metrics.names(), set(), "unknown metrics")
    check({re.sub("_(bucket|sum|count)$", "", name) for name in metrics.names()} -
          {re.sub("_(bucket|sum|count)$", "", name) for name in asked} <=
          {"convertd_build_info", "convertd_reloads_total", "convertd_max_pending_requests", "process_start_time_seconds",
           "process_virtual_memory_bytes", "convertd_workers"}, "unused metrics: %s" % (metrics.names() - asked))


def test_prometheus_takes_them():
    """promtool's tests of the alerts pass, and the dashboard's expressions are PromQL."""
    need("promtool", "prometheus")
    with near() as lab:
        for arguments in (["check", "config", "scrape.yml"], ["test", "rules", "alerts_test.yml"]):
            arguments[-1] = os.path.join(SOURCE, "contrib/prometheus", arguments[-1])
            lab.client.run(["promtool", *arguments])
        rules = os.path.join(lab.directory, "rules.yml")
        with open(rules, "w", encoding="utf-8") as file:
            # JSON is YAML
            json.dump({"groups": [{"name": "dashboard", "rules": [
                {"record": "expression%d" % i, "expr": re.sub(r"\$__\w+", "1m", expression)}
                for i, expression in enumerate(dashboard_expressions())]}]}, file)
        lab.client.run(["promtool", "check", "rules", rules])


# --- bad and slow HTTP clients ------------------------------------------------------------------------------------


def test_bad_requests():
    """Bad requests get an error, or the end of the connection."""
    with near() as lab, converter(lab, *OPTIONS):
        for request, statuses in ((b"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n", (404,)),
                                  (b"GET /metrics/../status HTTP/1.1\r\nHost: x\r\n\r\n", (404,)),
                                  (b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n", (405,)),
                                  (b"DELETE / HTTP/1.1\r\nHost: x\r\n\r\n", (405,)),
                                  (b"GET /metrics HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 20000 + b"\r\n\r\n", (413, 414, 431, None)),
                                  (b"GET /" + b"x" * 20000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", (413, 414, 431, None)),
                                  (b"nonsense\r\n\r\n", (400, None))):
            try:
                status = ask(lab.converter, request)[0]
            except (ConnectionResetError, BrokenPipeError, AssertionError):
                # closed without an answer
                status = None
            check(status in statuses, "%s is answered by %s" % (request[:40], status))
        equal(ask(lab.converter, b"HEAD / HTTP/1.0\r\n\r\n")[2], "", "the body of HEAD")
        status, headers, _ = get(lab.converter, "/")
        equal((status, headers["connection"], headers["cache-control"]), (200, "close", "no-store"), "headers")
        equal(headers["content-security-policy"], "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
              "frame-ancestors 'none'", "what a browser may load")


def test_slow_http_clients():
    """HTTP clients that trickle, or read nothing, hold few descriptors and don't slow convertd down; others get answers."""
    with near() as lab, Server(lab, 80) as server, converter(lab, *OPTIONS) as process, contextlib.ExitStack() as stack:
        at_start = descriptors(process)
        slow = []
        for i in range(40):
            sock = stack.enter_context(lab.converter.socket())
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            sock.settimeout(20)
            sock.connect(("127.0.0.1", PORT))
            # a part of a request, or many requests, whose answers the client doesn't read
            sock.sendall(b"GET /metrics HTTP/1.1\r\nHo" if i % 2 else b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 50)
            slow.append(sock)
        start = time.monotonic()
        for i in range(50):
            transfer(lab, server, (TCP, MPTCP)[i % 2], "syn", 1000, 1000)
        check(descriptors(process) <= at_start + 20, "%d descriptors more" % (descriptors(process) - at_start))
        # five seconds for each of those that trickle; transfer() itself fails if nothing arrives for ten
        took = time.monotonic() - start
        check(took < 100, "50 connections took %.1f s, as if they waited for the HTTP clients" % took)

        # each has 5 s in all, even if it sends a byte now and then
        wait_until(lambda: is_over(slow[1]), 20, "the end of one that trickles", interval=0.2)
        for sock in slow:
            sock.close()
        equal(wait_until(lambda: Metrics(lab.converter), 10, "an answer")("convertd_connections_accepted_total"), 50, "connections")


def test_many_slow_http_clients():
    """However many HTTP clients are slow, silent or busy, one that sends its request in one piece gets its answer soon."""
    with near() as lab, converter(lab, *OPTIONS) as process:
        at_start = descriptors(process)

        def slowest_beside(count, words):
            took = []
            with contextlib.ExitStack() as stack:
                for _ in range(count):
                    sock = stack.enter_context(lab.converter.socket())
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
                    sock.connect(("127.0.0.1", PORT))
                    sock.send(words)
                for path in ("/healthz", "/metrics", "/healthz"):
                    start = time.monotonic()
                    equal(get(lab.converter, path)[0], 200, path)
                    took.append(time.monotonic() - start)
                check(descriptors(process) <= at_start + 20, "%d descriptors more" % (descriptors(process) - at_start))
            return max(took)
        for count, words in ((16, b""), (17, b"GET /healthz HT"), (500, b"GET /metrics HTTP/1.1\r\nHo"), (100, FLOOD)):
            # slow clients have five seconds; on a busy machine an answer may take long by itself, but not each time
            check(any(slowest_beside(count, words) < 4 for _ in range(3)), "%d slow clients hold others up (%r)" % (count, words[:30]))


FLOOD = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 50


def is_over(sock):
    """Sends one more byte; tells whether the connection is over."""
    try:
        sock.send(b"x", socket.MSG_DONTWAIT)
        return sock.recv(1, socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


# --- status -------------------------------------------------------------------------------------------------------


class Page(html.parser.HTMLParser):
    """Parses a page: its tags must match, and there must be no script."""

    VOID = ("meta", "link", "br")

    def __init__(self, text):
        super().__init__()
        self.open, self.cells = [], []
        self.feed(text)
        self.close()
        equal(self.open, [], "tags that are left open")

    def handle_starttag(self, tag, attrs):
        check(tag != "script" and not any(name.startswith("on") or name == "src" for name, _ in attrs), "%s %s" % (tag, attrs))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        equal(self.open.pop(), tag, "the tag that is closed")

    def handle_data(self, data):
        if self.open and self.open[-1] in ("th", "td", "h1"):
            self.cells.append(data)


def status(lab, *arguments):
    """Returns (exit status, output, errors) of "convertd status"."""
    result = lab.converter.run([lab.build.program("convertd"), "status", *arguments], check=False)
    return result.returncode, result.stdout, result.stderr


def test_status():
    """convertd status, by address, socket or configuration file, the page for browsers, and JSON have the same figures."""
    with near() as lab, Server(lab, 80) as server:
        path = os.path.join(lab.directory, "metrics.sock")
        config = os.path.join(lab.directory, "convertd.conf")
        with open(config, "w", encoding="utf-8") as file:
            # there is no such key: status doesn't need it
            file.write("metrics unix:%s\nmetrics 127.0.0.1:%d\ncookie-key /nowhere\n" % (path, PORT))
        equal(status(lab, "--config", config)[0], 1, "the status without a converter")
        check("is convertd running, with --metrics unix:%s?" % path in status(lab, "--config", config)[2], "no remedy")
        check("unix:/run/convertd/metrics.sock: No such file or directory" in status(lab)[2], "no usual place")
        refusal = lab.converter.run([lab.build.program("convertd"), "--metrics", "unix:%s/nowhere/x" % lab.directory], check=False)
        check(refusal.returncode == 1 and "there is no such directory" in refusal.stderr, refusal.stderr)
        # convertd replaces a socket that another one has left behind
        with lab.converter.socket(socket.AF_UNIX) as stale:
            stale.bind(path)
        with converter(lab, "--metrics", "unix:" + path, *OPTIONS) as process:
            lab.converter.sysctl("net.ipv4.tcp_fastopen", 1)
            process.send_signal(signal.SIGHUP)
            process.wait_log("reloaded")
            transfer(lab, server, TCP, "behind", 5, 7)
            wait_metrics(lab.converter, lambda metrics: metrics("convertd_connections_ended_total", outcome="done"), "the end")
            refusal = lab.converter.run(["setpriv", "--reuid", "65534", "--clear-groups", lab.build.program("convertd"), "status", "--metrics",
                                         "unix:" + path], check=False)
            check("Permission denied; ask as root, or as the user of convertd" in refusal.stderr, refusal.stderr)
            for how in (("--config", config), ("--metrics", "unix:" + path), OPTIONS):
                code, text, errors = status(lab, *how)
                equal((code, errors), (0, ""), "convertd status")
                for line in (r"convertd \S+: serving", r"  listening on +\[::\]:1234 \(MPTCP\)", r"  reloads +1, and 0 that failed",
                             r"  all +0 of \d+", r"  connections accepted +1", r"  bytes to clients +7 \(.*\)", r"  done +1",
                             r"  \S+ \S+( no\. \d+)? +net.ipv4.tcp_fastopen is 1: .*"):
                    check(re.search("^%s$" % line, text, re.MULTILINE), "no %s in\n%s" % (line, text))
            cells = Page(get(lab.converter, "/")[2]).cells
            equal(cells[cells.index("bytes from clients") + 1], "5 (0.0 kB)", "a row of the page")
            equal(ask(lab.converter, b"GET /healthz HTTP/1.0\r\n\r\n", path=path)[::2], (200, "ok\n"), "health")
            tables = json.loads(get(lab.converter, "/status.json")[2])
            equal((tables["Converter"]["state"], tables["Connections now"]["pending"]), ("serving", "0"), "the same as JSON")
        check(not os.path.exists(path), "the socket is left behind")


def test_draining():
    """/healthz tells load balancers at once, and metrics and status are there until the last connection has ended."""
    with near() as lab, Server(lab, 80) as server:
        process = lab.convertd(["--drain-timeout", "60", *OPTIONS])
        process.wait_log("ready")
        equal(get(lab.converter, "/healthz")[::2], (200, "ok\n"), "health before")
        with Client(lab.client, lab.converter.addr4) as client:
            client.send(server.connect())
            with server.accept() as sock:
                extended_header(client.answer())
                process.send_signal(signal.SIGTERM)
                process.wait_log("no new clients")
                equal(get(lab.converter, "/healthz")[::2], (503, "draining\n"), "health")
                metrics = Metrics(lab.converter)
                equal((metrics("convertd_draining"), metrics("convertd_connections", state="relay")), (1, 1), "metrics")
                check(": draining" in status(lab, *OPTIONS)[1], "convertd status")
        equal(process.wait(10), 0, "convertd's status")


def test_reload():
    """A reload adds and removes addresses; one that can't be had changes nothing."""
    with near() as lab:
        config = os.path.join(lab.directory, "convertd.conf")

        def write(text):
            with open(config, "w", encoding="utf-8") as file:
                file.write(text)

        def reload(process, text, told):
            count = process.log_text().count(told)
            write(text)
            process.send_signal(signal.SIGHUP)
            wait_until(lambda: process.log_text().count(told) > count, 10, told)

        write("metrics 127.0.0.1:9104\n")
        with converter(lab, "--config", config, *OPTIONS) as process:
            for port in (PORT, 9104):
                equal(Metrics(lab.converter, port=port)("convertd_reloads_total", result="ok"), 0, "reloads")
            reload(process, "metrics 127.0.0.1:9105\n", "reloaded: ")
            check(not lab.converter.listening(9104), "it still listens at the old address")
            equal(Metrics(lab.converter, port=9105)("convertd_reloads_total", result="ok"), 1, "reloads")
            with lab.converter.socket() as taken:
                taken.bind(("127.0.0.1", 9106))
                taken.listen()
                reload(process, "metrics 127.0.0.1:9106\n", "not reloaded")
            check("--metrics: 127.0.0.1:9106: Address already in use" in process.log_text(), process.log_text())
            metrics = Metrics(lab.converter, port=9105)
            equal((metrics("convertd_reloads_total", result="failed"), metrics("convertd_notices")), (1, 1), "failed reloads")
            reload(process, "", "reloaded: ")
            check(not lab.converter.listening(9105) and lab.converter.listening(PORT), "where it listens")
            equal(Metrics(lab.converter)("convertd_notices"), 0, "warnings, which are over")


if __name__ == "__main__":
    main()
