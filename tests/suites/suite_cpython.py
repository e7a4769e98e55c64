# SPDX-License-Identifier: BSD-3-Clause
"""Python's own tests: all modules that use sockets

On Debian: apt-get install libpython3.11-testsuite. --source is the interpreter, /usr/bin/python3 unless it is given.
"""
import json
import os

MODULES = """test_socket test_asyncio test_ssl test_selectors test_httplib test_httpservers test_urllib2_localnet test_ftplib
    test_smtplib test_smtpd test_telnetlib test_poplib test_imaplib test_nntplib test_socketserver test_asyncore test_asynchat test_epoll
    test_poll test_select test_os test_subprocess test_docxmlrpc test_xmlrpc test_xmlrpc_net test_wsgiref test_logging
    test_signal test_threading test_multiprocessing_spawn test_multiprocessing_fork test_multiprocessing_forkserver
    test_concurrent_futures test_fcntl test_ioctl test_robotparser test_stat test_file_eintr test_pty test_posix""".split()
LIMIT = 900  # seconds for a module
ENVIRONMENT = {"PYTHONDONTWRITEBYTECODE": "1"}
# An accepted connection's peer is the converter. A refusal is told late where the SYN+ACK of a converter that withholds nothing is
# taken for the server's. Active FTP over IPv6 tells the server an address of the client's, which is one of IPv4 as the converter's.
EXPLAINED = [r"EventLoopTests\.test_sock_accept$", r"\.test_ssl\.ThreadedTests\.test_server_accept$",
             r"TestIPv6Environment\.test_(makeport|transfer)$",
             r"^confirmed .*EventLoopTests\.test_(server_close|create_connection_local_addr_skip_different_family)$"]

# What runs in the interpreter under test: one module, the outcome of each test into a file.
RUNNER = r"""
import json, sys, unittest
from test import support
support.use_resources = []
support.verbose = 0
outcomes = {}
class Result(unittest.TextTestResult):
    def note(self, test, outcome):
        name = test.id()
        if outcomes.get(name) not in ("FAIL", "ERROR"):
            outcomes[name] = outcome
    def addSuccess(self, test):
        super().addSuccess(test); self.note(test, "ok")
    def addError(self, test, err):
        super().addError(test, err); self.note(test, "ERROR")
    def addFailure(self, test, err):
        super().addFailure(test, err); self.note(test, "FAIL")
    def addSkip(self, test, reason):
        super().addSkip(test, reason); self.note(test, "skip: " + reason)
    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err); self.note(test, "expected failure")
    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test); self.note(test, "unexpected success")
    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err: self.note(test, "FAIL")
def without_vsock(suite):  # waits for a hypervisor that may not be there
    return unittest.TestSuite(without_vsock(t) if isinstance(t, unittest.TestSuite) else t for t in suite
                              if "VSOCK" not in str(t))
try:
    suite = without_vsock(unittest.defaultTestLoader.loadTestsFromName("test." + sys.argv[1]))
    unittest.TextTestRunner(resultclass=Result, verbosity=2).run(suite)
except unittest.SkipTest as skip:
    outcomes[sys.argv[1]] = "skip: %s" % skip
json.dump(outcomes, open(sys.argv[2], "w"))
"""


def parts(source):  # pylint: disable=unused-argument
    return MODULES


def command(source, part, tests, directory):  # pylint: disable=unused-argument
    return [source or "/usr/bin/python3", "-c", RUNNER, part, os.path.join(directory, "outcomes")]


def outcomes(part, log, directory):  # pylint: disable=unused-argument
    try:
        with open(os.path.join(directory, "outcomes"), encoding="utf-8") as found:
            return json.load(found)
    except OSError:
        return {part: "died"}
