# SPDX-License-Identifier: BSD-3-Clause
"""The tests of Ruby's socket classes and of what it builds on them, run by the installed Ruby

On Debian: apt-get install ruby3.1; --source is its source, unpacked; of the same version, as "apt-get source ruby3.1" gets it.
"""
import os
import re

LIMIT = 600  # seconds for a part
ENVIRONMENT = {"LC_ALL": "C.UTF-8"}
# The peer of each end of a connection is the converter; active FTP tells the server an address of the client's. A server that closes
# at once has done so before the client's request comes, as it would with any delay: Linux calls that EPIPE instead of ECONNRESET.
EXPLAINED = [r" TestSocket#test_(accept_loop|accept_loop_multi_port|sysaccept|tcp)$",
             r" TestSocketAddrinfo#test_(basicsocket_remote_address|connect|connect_from|connect_to|listen|socket_\w*accept\w*)$",
             r" TestSocketNonblock#test_(accept_nonblock|connect_nonblock|connect_nonblock_no_exception)$",
             r" TestNetHTTPLocalBind#test_bind_to_local_port$", r" TestOpenURI#test_ftp_active$",
             r" TestNetHTTPKeepAlive#test_keep_alive_server_close$"]
PARTS = ("socket", "net", "open-uri", "drb", "rinda", "io", "fiber", "openssl", "webrick", "resolv", "test_open3.rb", "test_timeout.rb",
         "ruby/test_io.rb", "ruby/test_io_m17n.rb", "ruby/test_process.rb", "ruby/test_thread.rb")
TEST = re.compile(r"^\[ *\d+/\d+\] (\S+) = ", re.M)
FAILED = re.compile(r"^ +\d+\) (Failure|Error|Skipped):\n(\S+?)[: ]", re.M)


def parts(source):
    return [part for part in PARTS if os.path.exists(os.path.join(source, "test", part))]


def command(source, part, tests, directory):  # pylint: disable=unused-argument
    return ["ruby", "-W0", "-I" + os.path.join(source, "tool/lib"), os.path.join(source, "test/runner.rb"), "--tty=no", "--color=never",
            "--show-skip", "--test-order=alpha", "-v", os.path.join(source, "test", part)]


def outcomes(part, log, directory):  # pylint: disable=unused-argument
    found = {test: "ok" for test in TEST.findall(log)}
    found.update((test, kind) for kind, test in FAILED.findall(log))
    if found and "Finished tests in" not in log:
        found[part] = "no end"
    return found
