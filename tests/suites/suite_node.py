# SPDX-License-Identifier: BSD-3-Clause
"""Node's own tests of all that has to do with sockets, and of its processes

On Debian: apt-get install nodejs; --source is its source, unpacked; of the same version, as "apt-get source nodejs" gets it.
The node of $PATH is tested.
"""
import os
import shutil

import tap

LIMIT = 1800  # seconds for a part
# An accepted connection's peer is the converter. A server closes a connection while the client's first bytes are on their way to it, as it
# would with any delay: its end comes before its reset then, which Linux calls EPIPE (instead of ECONNRESET). net-error-twice: Linux takes
# data for a closed Multipath TCP socket for a minute (net.mptcp.close_timeout) before it resets.
EXPLAINED = [" parallel/test-net-socket-local-address$", " parallel/test-https?-localaddress$", " parallel/test-http-conn-reset$",
             " parallel/test-net-server-max-connections-close-makes-more-available$", " parallel/test-tls-psk-errors$",
             " parallel/test-http2-(client-destroy|server-shutdown-options-errors|server-stream-session-destroy|zero-length-header)$",
             " parallel/test-http2-connect-options$", " parallel/test-net-error-twice$"]
# The names of test files, up to the first "*"; sequential ones need their ports for themselves.
PARTS = {"net": ["parallel/test-net-*"], "http": ["parallel/test-http-*"], "https": ["parallel/test-https-*"],
         "http2": ["parallel/test-http2-*"], "tls": ["parallel/test-tls-*"], "dgram": ["parallel/test-dgram-*"],
         "dns": ["parallel/test-dns-*"], "cluster": ["parallel/test-cluster-*"], "child": ["parallel/test-child-*"],
         "pipe": ["parallel/test-%s*" % word for word in ("pipe", "stdin", "stdout", "stdio", "socket", "stream-")],
         "worker": ["parallel/test-worker*"], "async": ["parallel/test-async*", "async-hooks/*"],
         "sequential": ["sequential/*"]}
ENVIRONMENT = {}


def parts(source):  # pylint: disable=unused-argument
    return list(PARTS)


def command(source, part, tests, directory):
    return ["env", "NODE_TEST_DIR=" + directory, "python3", os.path.join(source, "tools/test.py"), "--progress", "tap", "-t", "40",
            "-j", "1" if part == "sequential" else "2", "--shell", shutil.which("node"), *(tests or PARTS[part])]


def outcomes(part, log, directory):  # pylint: disable=unused-argument
    return tap.outcomes(part, log)
