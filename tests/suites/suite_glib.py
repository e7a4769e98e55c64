# SPDX-License-Identifier: BSD-3-Clause
"""GIO's installed tests that have to do with sockets, and GLib's main loop

On Debian: apt-get install libglib2.0-tests.
"""
import os

import tap

LIMIT = 300  # seconds for a part
ENVIRONMENT = {"G_TEST_SRCDIR": "/usr/libexec/installed-tests/glib", "G_TEST_BUILDDIR": "/usr/libexec/installed-tests/glib"}
EXPLAINED = []
PROGRAMS = """socket socket-address socket-listener socket-service gsocketclient-slow network-address network-monitor
    network-monitor-race proxy-test resolver-parsing tls-bindings tls-certificate tls-interaction
    unix-fd unix-streams pollable sleepy-stream converter-stream cancellable gsubprocess io-stream
    gdbus-addresses gdbus-auth gdbus-bz627724 gdbus-connection gdbus-connection-flush gdbus-connection-loss
    gdbus-connection-slow gdbus-close-pending gdbus-exit-on-close gdbus-non-socket gdbus-overflow gdbus-peer
    gdbus-server-auth gdbus-threading mainloop unix spawn-singlethread spawn-multithreaded""".split()


def parts(source):  # pylint: disable=unused-argument
    return [name for name in PROGRAMS if os.path.exists(_path(name))]


def _path(name):
    return os.path.join(ENVIRONMENT["G_TEST_SRCDIR"], name)


def command(source, part, tests, directory):  # pylint: disable=unused-argument
    """A message bus of its own, as the tests make it, needs a home."""
    return ["env", "HOME=" + directory, _path(part), "--tap"]


def outcomes(part, log, directory):  # pylint: disable=unused-argument
    return {"%s %s" % (part, name): outcome for name, outcome in tap.outcomes(part, log).items()}
