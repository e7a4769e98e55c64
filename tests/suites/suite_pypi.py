# SPDX-License-Identifier: BSD-3-Clause
"""The tests of Python's event loops and frameworks: uvloop, gevent, Twisted, trio, Tornado, by pytest

--source is a virtual environment: pip install pytest uvloop gevent twisted[tls] trio trustme tornado aiohttp …; uvloop's tests are in its
source only: pip download --no-binary uvloop uvloop, unpacked in the virtual environment's top directory. Which loop gevent has, its own
variable tells (GEVENT_LOOP=libuv-cffi).
"""
import glob
import os
import xml.etree.ElementTree

LIMIT = 600  # seconds for a part
ENVIRONMENT = {"PYTHONDONTWRITEBYTECODE": "1"}
# trio: the peer of each end of a connection is the converter. gevent: counts on a transfer to be done within 0.1 s; EPIPE for ECONNRESET,
# as in suite_node.py
EXPLAINED = [r" \.TestTCP\.test_fullduplex$", r"Spawn\.test_server_closes_client_sockets$",
             r" \.test_(SocketType_simple_server\[.*|local_address_real|SocketListener|SocketStream_basics)$"]
PACKAGES = {
    "tests": "test_tcp test_sockets test_unix test_udp test_pipes test_process test_dns test_regr1 test_base test_aiohttp",
    "gevent.tests": "test__socket test__socket_close test__socket_errors test__socket_ex test__socket_ssl test__socket_timeout test__ssl "
                    "test__server test__server_pywsgi test__pywsgi test__select test__selectors test__greenio test__makefile_ref "
                    "test__subprocess test__core_fork test__close_backend_fd test__backdoor test__monkey_select test__threadpool",
    "twisted.internet.test": "test_tcp test_tls test_newtls test_endpoints test_socket test_fdset test_posixbase test_epollreactor "
                             "test_unix test_udp test_stdio test_process test_core test_asyncioreactor test_threads test_inlinecb",
    "twisted.test": "test_tcp test_tcp_internals test_ssl test_sslverify test_loopback test_ftp test_factories test_internet test_stdio",
    "twisted.web.test": "test_webclient test_http test_newclient test_wsgi",
    "trio._tests": "test_socket test_ssl test_highlevel_open_tcp_stream test_highlevel_open_tcp_listeners test_highlevel_socket "
                   "test_highlevel_serve_listeners test_highlevel_ssl_helpers test_subprocess test_unix_pipes",
    "trio._core._tests": "test_io",
    "tornado.test": "iostream_test httpserver_test simple_httpclient_test httpclient_test tcpclient_test tcpserver_test websocket_test "
                    "netutil_test web_test ioloop_test process_test asyncio_test",
}


def parts(source):  # pylint: disable=unused-argument
    return ["%s.%s" % (package, name) for package, names in PACKAGES.items() for name in names.split()]


def command(source, part, tests, directory):  # pylint: disable=unused-argument
    """In one process, and without the packages' own settings, which want plug-ins."""
    if part.startswith("tests."):
        where = glob.glob(os.path.join(source, "uvloop-*", part.replace(".", "/") + ".py"))
    else:
        where = ["--pyargs", part]
    trio = ["-p", "trio._tests.pytest_plugin"] if part.startswith("trio.") else []
    return [os.path.join(source, "bin/python"), "-m", "pytest", "-c", "/dev/null", "-p", "no:cacheprovider", "-p", "no:asyncio", *trio, "--import-mode=append",
            "--rootdir", directory, "--junitxml", os.path.join(directory, "outcomes.xml"), *where]


def outcomes(part, log, directory):  # pylint: disable=unused-argument
    try:
        cases = xml.etree.ElementTree.parse(os.path.join(directory, "outcomes.xml")).iter("testcase")
    except (OSError, xml.etree.ElementTree.ParseError):
        return {part: "died"}
    return {"%s.%s" % (case.get("classname"), case.get("name")): "/".join(sorted(child.tag for child in case
                                                                                if not child.tag.startswith("system"))) or "ok"
            for case in cases}
