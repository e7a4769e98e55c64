#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_examples.py - the programs of examples/, with each other and with the project's own programs"""
import hashlib
import os

from convertlab import Lab, Link, check, equal, kernel, main, need, same_data, servers
from convertlab.peers import PORT, Server, clients, connect_tlv, echo, hold_time_tlv, message, octets, silent

SIZE = 2000000
# longer than all buffers on its way together, so that it comes back while the client still sends
LONG = 8000000


def near():
    """Fast links, since these tests are about the logic."""
    return Lab(wifi=Link(delay_ms=5), lte=None, core=Link(delay_ms=1))


def client(lab, converter, server, port, data=b"", **options):
    """Runs the example client on the lab's client; returns its CompletedProcess."""
    return lab.client.run([lab.build.program("examples/client"), converter, PORT, server, port], input=data, text=False, **options)


def converter(lab):
    """Starts the example converter in place of convertd; returns its Process."""
    return lab.start_listening(lab.converter, [lab.build.program("examples/converter"), PORT], PORT, name="example converter")


def addresses(lab):
    """(converter, server): both IPv4, both IPv6, and an IPv4 converter for an IPv6 server."""
    return ((lab.converter.addr4, lab.server.addr4), (lab.converter.addr6, lab.server.addr6),
            (lab.converter.addr4, lab.server.addr6))


def gets(lab):
    """The example client fetches a file through the converter that runs."""
    request = b"GET /bytes/%d HTTP/1.1\r\nHost: server\r\nConnection: close\r\n\r\n" % SIZE
    for through, server in addresses(lab):
        body = client(lab, through, server, 80, request).stdout.partition(b"\r\n\r\n")[2]
        equal(hashlib.sha256(body).hexdigest(), hashlib.sha256(servers.pattern(SIZE)).hexdigest(),
              "%s through %s, %d bytes" % (server, through, len(body)))


def echoes(lab):
    """Both directions at once, and the half-close: the echo server ends its direction after the client's FIN."""
    data = servers.pattern(LONG)
    said = client(lab, lab.converter.addr4, lab.server.addr4, 7, data).stdout
    same_data(said == data, "%d of %d bytes came back" % (len(said), len(data)))


def fails(lab, server, port, message):
    """The example client reports the converter's error."""
    for through in (lab.converter.addr4, lab.converter.addr6):
        done = client(lab, through, server, port, check=False)
        equal(done.returncode, 1, "status of " + server)
        equal(done.stderr.decode(), "client: %s\n" % message, "standard error for %s port %s" % (server, port))


def errors(lab):
    """Refused and unreachable servers, by Error TLVs."""
    fails(lab, lab.server.addr4, lab.addresses.refused_port, "the converter reports error 96 (Connection Reset), value 0")
    fails(lab, lab.server.addr6, lab.addresses.refused_port, "the converter reports error 96 (Connection Reset), value 0")
    fails(lab, lab.addresses.unreachable4, 80, "the converter reports error 97 (Destination Unreachable), value 1")


def test_client_through_convertd():
    with near() as lab:
        lab.convertd()
        lab.http()
        lab.echo()
        gets(lab)
        echoes(lab)
        errors(lab)


def test_client_through_the_example_converter():
    with near() as lab:
        converter(lab)
        lab.http()
        lab.echo()
        gets(lab)
        echoes(lab)
        errors(lab)
        fails(lab, lab.addresses.noroute4, 80, "the converter reports error 97 (Destination Unreachable), value 0")
        fails(lab, lab.addresses.noroute6, 80, "the converter reports error 97 (Destination Unreachable), value 0")


def test_private_tlvs_of_the_example_converter():
    """doc/private-tlvs.md: it offers none. A silent request, also the beginning of one, gets a reset and no byte."""
    with near() as lab:
        converter(lab)
        to = connect_tlv(lab.server.addr4, 80)
        for request in (silent(to), silent(to)[:8], silent()):
            for peer in clients(lab, deliveries=["behind"]):
                equal(peer.send(request).end(), (b"", "reset"), "the end of %s (%s)" % (request.hex(), peer.name))
        for request in (message(octets("01010000 f1020100 00006c63")), message(hold_time_tlv(500), to)):
            for peer in clients(lab, deliveries=["behind"]):
                equal(peer.send(request).answer().hex(), echo(2, request).hex(), "the answer to %s (%s)" % (request.hex(), peer.name))
                equal(peer.end(), (b"", "closed"), "the end behind it (%s)" % peer.name)


def test_tcp_options_of_the_example_converter():
    """Sections 7.1 to 7.3: kinds 0, 1, 2, 3 and 5 are ignored. Section 6.2.6: each Extended Connect TLV gets a list of options."""
    with near() as lab, Server(lab, 80) as server:
        converter(lab)
        for options, answer in (("", message()), ("00000000", message(octets("14010000"))),
                                ("01 0204 05b4 0303 07 0502", message(octets("14010000")))):
            for peer in clients(lab, deliveries=["behind"]):
                peer.send(server.connect(options=octets(options)))
                equal(peer.answer().hex(), answer.hex(), "the answer to options %s (%s)" % (options, peer.name))
                server.accept().close()
        for peer in clients(lab, deliveries=["behind"]):
            peer.send(server.connect(options=octets("0204 05b4 0402 1e02")))
            equal(peer.answer().hex(), "01032263" "1e022104" "1e000000", "the answer to options that it doesn't support (%s)" % peer.name)


def test_shim_through_the_example_converter():
    """curl notices nothing, and the request was in the SYN."""
    need("curl")
    with near() as lab:
        converter(lab)
        lab.http()
        path = os.path.join(lab.directory, "file")
        for host in (lab.server.addr4, "[%s]" % lab.server.addr6):
            lab.client.run(["curl", "-sS", "-o", path, "http://%s/bytes/%d" % (host, SIZE)], env=lab.converted())
            with open(path, "rb") as file:
                equal(file.read(), servers.pattern(SIZE), host)
        equal(lab.shim_log().count(kernel.verdict()), 2, "conversions in\n" + lab.shim_log())
        refused = lab.client.run(["curl", "-sS", "http://%s:%d/" % (lab.server.addr4, lab.addresses.refused_port)],
                                 env=lab.converted(), check=False)
        equal(refused.returncode, 7, "curl's status: couldn't connect")
        check("Connection refused" in refused.stderr or "Couldn't connect" in refused.stderr
              or "Could not connect" in refused.stderr, refused.stderr)

def test_address_that_the_rfc_forbids():
    """The client sends nothing: the library refuses to write the request."""
    with near() as lab:
        for server in ("127.0.0.1", "::1", "224.0.0.1", "255.255.255.255"):
            done = client(lab, lab.converter.addr4, server, 80, check=False)
            equal((done.returncode, done.stderr.decode()), (1, "client: %s: Invalid argument\n" % server), "answer")

def test_no_converter():
    """A server that isn't a converter answers, or none does."""
    with near() as lab:
        lab.greeter(PORT, host=lab.converter)
        fails(lab, lab.server.addr4, 80, "response of the converter: wrong magic number")
    with near() as lab:
        fails(lab, lab.server.addr4, 80, "%s to the converter: Connection refused" % ("request" if kernel.has("fastopen") else "connect"))

if __name__ == "__main__":
    main()
