#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_convertd_config.py - convertd's configuration file, --check-config, and what SIGHUP changes and leaves alone"""
import os
import re
import signal

from convertlab import Lab, Link, Skip, check, equal, main, need, wait_until
from convertlab.build import SRCDIR
from convertlab.peers import MPTCP, TCP, Client, Server, connect, converter, descriptors, extended_header, octets


def near(**options):
    """Returns a lab whose links are too fast to matter."""
    return Lab(wifi=Link(delay_ms=0.5), lte=None, core=Link(delay_ms=0.1), **options)


def write(lab, *lines, name="convertd.conf"):
    """Writes a file of these lines; returns its path."""
    path = os.path.join(lab.directory, name)
    with open(path, "w", encoding="ascii") as file:
        file.write("".join(line + "\n" for line in lines))
    return path


def reload(process, outcome="reloaded:"):
    """Sends SIGHUP; returns the one line that convertd prints upon it."""
    before = process.log_text()
    process.send_signal(signal.SIGHUP)
    wait_until(lambda: outcome in process.log_text()[len(before):], 5,
               lambda: "\"%s\" from convertd: %s" % (outcome, process.log_text()[len(before):]))
    # a session may end just then
    lines = [line for line in process.log_text()[len(before):].splitlines() if " bytes up, " not in line]
    equal(len(lines), 1, "lines of a reload: %s" % lines)
    return lines[0]


def test_check_config():
    """A right configuration: status 0. A wrong one: status 2, and a line for each fault, with its place and the remedy."""
    with near() as lab:
        program = lab.build.program("convertd")
        path = write(lab, "# ours", "listen 10.9.0.1:1234", "log-level = debug", "drop-foreign-syns")
        result = lab.converter.run([program, "--config", path, "--check-config"])
        equal((result.stdout, result.stderr), ("convertd: the configuration is right\n", ""), "what it says of a file")
        # a right command line says nothing about a file that it doesn't name
        result = lab.converter.run([program, "--listen", "10.9.0.1:1234", "--check-config"])
        check("no configuration file was read" in result.stdout and "--config FILE" in result.stdout and not result.stderr, result)
        path = write(lab, "", "listen 10.9.0.1", "log-level loud", "lisen [::]:1", "--listen [::]:1")
        for words in (["--check-config"], []):
            result = lab.converter.run([program, "--config", path, *words], check=False)
            equal((result.returncode, result.stdout), (2, ""), "status and standard output")
            lines = result.stderr.splitlines()
            for number, (line, quoted, remedy) in enumerate(zip(
                    lines, ("\"10.9.0.1\"", "\"loud\"", "\"lisen\"", "\"--listen\""),
                    ("10.9.0.1:1234", "warning", "did you mean \"listen\"?", "write \"listen\"")), 2):
                check(line.startswith("convertd: %s:%d: " % (path, number)) and quoted in line and remedy in line, line)
            equal(len(lines), 4, "lines")
        for words, said in ((["--allow-clients", "::/0"], "did you mean --allow-client?"), (["statsu"], "did you mean \"status\"?"),
                            (["check-config"], "did you mean --check-config?"), (["--listen", "::1:1234"], "write [::1]:1234"),
                            (["--allow-client", "::/0", "-V"], "see convertd --help"), (["nonsense"], "addresses go behind --listen"),
                            *((["--allow-destination", prefix, "--check-config"], "can't be allowed") for prefix in (
                                "127.0.0.1", "127.0.0.0/8:80", "[::1]:80", "::1/128", "224.0.0.0/4", "ff02::/16")),
                            (["--config", write(lab, "hold_time 5"), "--check-config"], "did you mean \"hold-time\"?")):
            result = lab.converter.run([program, *words], check=False)
            check(result.returncode == 2 and said in result.stderr and result.stderr.count("\n") == 1, (words, result))
        for prefix in ("0.0.0.0/0", "::/0", "0.0.0.0/1", "10.0.0.0/8", "192.0.2.1", "[2001:db8::/32]:443", ":25"):
            lab.converter.run([program, "--allow-destination", prefix, "--check-config"])
        result = lab.converter.run([program, "--config", "/nonexistent", "--check-config"], check=False)
        check(result.returncode == 2 and "\"/nonexistent\"" in result.stderr, result)


# Options that no configuration file may have (OPTION_COMMAND_LINE).
COMMAND_LINE = {"config", "check-config", "make-key", "new-client", "remove-client", "help", "version"}


def test_manual_has_every_option():
    """--help and the manual list the same options and names for values: settings are in convertd.conf(5), others in convertd(8)."""
    with near() as lab:
        said = lab.converter.run([lab.build.program("convertd"), "--help"]).stdout
    options = re.findall(r"^  --([a-z0-9-]+)(?: ([A-Z]\S*))?", said, re.MULTILINE)
    with open(os.path.join(SRCDIR, "man/convertd.8"), encoding="ascii") as file:
        described = re.findall(r"^\.It Fl Fl ([a-z0-9-]+)(?: Ar (\S+))?$", file.read(), re.MULTILINE)
    equal(sorted(described), sorted(option for option in options if option[0] in COMMAND_LINE), "options in convertd(8), as in --help")
    with open(os.path.join(SRCDIR, "man/convertd.conf.5"), encoding="ascii") as file:
        manual = file.read()
    described = re.findall(r"^\.It Ic ([a-z0-9-]+)(?: Ar (\S+))?$", manual, re.MULTILINE)
    equal(sorted(described), sorted(option for option in options if option[0] not in COMMAND_LINE),
          "settings in convertd.conf(5), and options of --help")
    defaults = 0
    for block in re.split(r"^  --", said, flags=re.MULTILINE)[1:]:
        default = re.search(r"\(default (\d+)\)", block)
        if default:
            name = block.split()[0]
            text = manual.split(".It Ic %s " % name)[1].split("\n.It ")[0]
            check(re.search(r"default is %s\b" % default[1], " ".join(text.split())), "convertd.conf(5): no default of %s" % name)
            defaults += 1
    check(defaults >= 2, "options with defaults: %d" % defaults)


def test_reload_keeps_sessions():
    """Sessions in each state go on, of listeners that stay and of one that goes; new settings are in force at once."""
    with near() as lab, Server(lab, 80) as server:
        path = write(lab, "listen 10.9.0.1:1234", "listen [fd09::1]:1235", "connect-timeout 60")
        with converter(lab, "--config", path) as process:
            pairs, waiting, at_start = [], [], descriptors(process)
            for address, port in ((lab.converter.addr4, 1234), (lab.converter.addr6, 1235)):
                for protocol in (TCP, MPTCP):
                    client = Client(lab.client, address, protocol, port=port)
                    client.send(server.connect())
                    extended_header(client.answer())
                    pairs.append((client, server.accept()))
                    # half a request; a server that doesn't answer
                    waiting.append(Client(lab.client, address, protocol, "behind", port).send(server.connect()[:7]))
                    unanswered = Client(lab.client, address, protocol, port=port)
                    pairs.append((unanswered.send(connect(lab.addresses.blackhole4, 80)), None))
            wait_until(lambda: descriptors(process) == at_start + 4 * 2 + 4 + 4 * 2, 5, "all sessions")
            write(lab, "listen 10.9.0.1:1234", "listen [fd09::1]:1236", "connect-timeout 1")
            line = reload(process)
            check("10.9.0.1:1234" in line and "[fd09::1]:1236" in line and ":1235" not in line, line)
            for client, sock in pairs:
                if sock:
                    client.sock.sendall(b"up")
                    sock.sendall(b"down")
                    equal((sock.recv(10), client.read(4)), (b"up", b"down"), "after the reload (%s)" % client.name)
                    sock.close()
                    client.sock.close()
            for client in waiting:
                client.sock.sendall(server.connect()[7:])
                extended_header(client.answer())
                server.accept().close()
                client.sock.close()
            # at the new place the new time-out is in force
            with Client(lab.client, lab.converter.addr6, port=1236) as client:
                client.send(connect(lab.addresses.blackhole4, 80))
                equal(client.answer()[4:7].hex(), "1e0141", "the answer after a second")
            with Client(lab.client, lab.converter.addr6, port=1235, delivery="behind") as client:
                try:
                    client.send(server.connect())
                    check(False, "a place that is no longer configured still answers")
                except ConnectionRefusedError:
                    pass
            for client, sock in pairs:
                if not sock:
                    client.reset()


def test_reload_of_a_wrong_file():
    """convertd logs one line that says where the fault is; all of the old configuration stays in force."""
    with near() as lab, Server(lab, 80) as server:
        path = write(lab, "listen 10.9.0.1:1234")
        with converter(lab, "--config", path) as process:
            before = descriptors(process)
            for lines, words in ((["listen 10.9.0.1:1234", "conect-timeout 1"], (":2:", "\"conect-timeout\"")),
                                 (["listen x", "listen y"], (":1:", "\"x\"", "--check-config")),
                                 # faults that only bind(2) finds
                                 (["listen 10.9.0.1:1236", "listen 10.99.0.1:1"], ("10.99.0.1:1", "Cannot assign")),
                                 (["listen 10.9.0.1:1234", "listen [::]%nosuch:1"], ("[::]%nosuch:1", "ip link")),
                                 (["listen 10.9.0.1:1236", "listen 0.0.0.0:1234"], ("0.0.0.0:1234", "in use")),
                                 (["listen 10.9.0.1:1234", "listen 10.9.0.1:1234"], ("10.9.0.1:1234", "in use"))):
                write(lab, *lines)
                line = reload(process, "not reloaded")
                check(all(word in line for word in words), line)
                wait_until(lambda: descriptors(process) == before, 5, "as many descriptors as before")
                with Client(lab.client, lab.converter.addr4) as client:
                    extended_header(client.send(server.connect()).answer())
                    server.accept().close()
            os.unlink(path)
            check("No such file" in reload(process, "not reloaded"), process.log_text())
            write(lab, "listen 10.9.0.1:1234")
            reload(process)


def test_reload_moves_the_syn_rules():
    """There is one table, with the current addresses. If convertd has never withheld SYNs, there is none.

    After it stops withholding them, the rule that removes timestamps from SYNs stays, since clients remember that it withheld them.
    """
    need("nft", "nftables")
    with near() as lab:
        def tables():
            # nft can't show some kernels' rules with queues, and says so on stderr
            return lab.converter.run(["nft", "list", "ruleset"]).stdout

        def handles():
            return re.findall(r"^\s*(?:table|chain) .*# handle \d+", lab.converter.run(["nft", "-a", "list", "ruleset"]).stdout, re.MULTILINE)
        path = write(lab, "listen 10.9.0.1:1234", "hold-syn on")
        with converter(lab, "--config", path) as process:
            check("10.9.0.1" in tables(), "no rule for the address")
            before = handles()
            write(lab, "listen 10.9.0.1:1235", "listen [::]%wifi:1236", "hold-syn on")
            reload(process)
            rules = tables()
            check("1235" in rules and "iifname \"wifi\"" in rules and "tcp dport 1234" not in rules, rules)
            equal(rules.count("table inet convertd_"), 1, "tables")
            equal(handles(), before, "table and chains: when one goes, the kernel drops all withheld SYNs, another convertd's, too")
            write(lab, "listen 10.9.0.1:1235", "hold-syn = off")
            reload(process)
            check("chain unconfirmed" in tables() and "wifi" not in tables(), tables())
        equal(tables(), "", "tables at the end")
        with converter(lab, "--hold-syn", "off"):
            equal(tables(), "", "tables where no SYN was ever withheld")


def test_reload_many_times():
    """300 reloads, each with other time-outs: descriptors and sessions stay as they are, and the last time-out is in force."""
    with near() as lab, Server(lab, 80) as server:
        path = write(lab, "connect-timeout 1000")
        with converter(lab, "--config", path) as process, Client(lab.client, lab.converter.addr4, MPTCP) as client:
            extended_header(client.send(server.connect()).answer())
            sock = server.accept()
            before = descriptors(process)
            for number in range(300):
                write(lab, "connect-timeout %d" % (1001 + number), "request-timeout %d" % (2001 + number))
                reload(process)
            equal(descriptors(process), before, "descriptors")
            write(lab, "connect-timeout 1")
            reload(process)
            with Client(lab.client, lab.converter.addr4) as other:
                other.send(connect(lab.addresses.blackhole4, 80))
                equal(other.answer()[4:7].hex(), "1e0141", "the answer after a second")
            sock.sendall(b"still here")
            equal(client.read(10), b"still here", "the old session")
            sock.close()


def test_listening_on_an_interface():
    """convertd takes only clients that connect over this interface; an error names an interface that isn't there."""
    with Lab(wifi=Link(delay_ms=0.5), lte=Link(delay_ms=0.5), core=Link(delay_ms=0.1)) as lab, Server(lab, 80) as server:
        with converter(lab, "--listen", "[::]%wifi:1234"):
            for protocol in (TCP, MPTCP):
                for address in (lab.converter.addr4, lab.converter.addr6):
                    with Client(lab.client, address, protocol) as client:
                        extended_header(client.send(server.connect()).answer())
                        server.accept().close()
                for source in (lab.client.lte4, lab.client.lte6):
                    address = lab.converter.addr6 if ":" in source else lab.converter.addr4
                    with Client(lab.client, address, protocol, "behind") as client:
                        client.sock.bind((source, 0))
                        try:
                            client.send(server.connect())
                            check(False, "%s was accepted" % source)
                        except ConnectionRefusedError:
                            pass
        result = lab.converter.run([lab.build.program("convertd"), "--listen", "[::]%nosuch:1234"], check=False)
        check(result.returncode == 1 and "[::]%nosuch:1234" in result.stderr and "ip link" in result.stderr, result)


# --- congestion control -----------------------------------------------------------------------------------------------


def congestion(lab, port):
    """Returns the set of congestion controls of the converter's connections with that port."""
    lines = lab.converter.run(["ss", "-Htin", "state", "established", "( sport = :%d or dport = :%d )" % (port, port)]).stdout
    return {line.split()[0] for line in lines.splitlines() if line[:1] in " \t" and "cwnd" in line}


def test_congestion_control():
    """Towards clients and servers, over TCP and MPTCP; a reload changes it for new connections; the error about a wrong name lists all."""
    need("ss", "iproute2")
    with near() as lab, Server(lab, 80) as server, Server(lab, 81, MPTCP) as mptcp_server:
        names = lab.converter.sysctl("net.ipv4.tcp_available_congestion_control").split()
        if len(names) < 2:
            raise Skip("this kernel has no congestion control but %s; try: modprobe tcp_bbr" % names)
        preset, other = "reno", next(name for name in names if name != "reno")
        lab.converter.sysctl("net.ipv4.tcp_congestion_control", preset)
        path = write(lab)
        with converter(lab, "--config", path) as process:
            for lines, client_side, server_side in (([], preset, preset), (["congestion-client " + other], other, preset),
                                                    (["congestion-server " + other], preset, other)):
                write(lab, *lines)
                reload(process)
                for protocol in (TCP, MPTCP):
                    for target, options in ((server, b""), (mptcp_server, octets("1e02"))):
                        with Client(lab.client, lab.converter.addr4, protocol) as client:
                            extended_header(client.send(target.connect(options=options)).answer())
                            with target.accept():
                                equal(congestion(lab, 1234), {client_side}, "towards the client, with %s" % lines)
                                equal(congestion(lab, target.port), {server_side}, "towards the server, with %s" % lines)
                            client.end()
        result = lab.converter.run([lab.build.program("convertd"), "--check-config", "--congestion-server", "no-such"], check=False)
        equal((result.returncode, result.stdout), (2, ""), "status and standard output")
        check("--congestion-server: \"no-such\"" in result.stderr and all(name in result.stderr for name in names), result.stderr)


if __name__ == "__main__":
    main()
