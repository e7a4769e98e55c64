# SPDX-License-Identifier: BSD-3-Clause
"""The tests of Perl's socket modules, run by the installed Perl

--source is Perl's source, unpacked; of the same version, as "apt-get source perl" gets it.
"""
import glob
import os

import tap

LIMIT = 300  # seconds for a part
ENVIRONMENT = {"PERL_CORE": "", "LC_ALL": "C"}
# sockname and peername of two ends of a connection that is two connections
EXPLAINED = [r"/01local-client-v4.t (7|11)$", r"/02local-server-v4.t (12|15)$", r"/04local-client-v6.t (6|11)$",
             r"/05local-server-v6.t (11|14)$", r"/0[36]local-cross-v[46].t (2|4)$"]
DIRECTORIES = ("cpan/Socket", "cpan/IO-Socket-IP", "dist/IO", "cpan/libnet", "cpan/HTTP-Tiny", "dist/Net-Ping")
CORE = ("t/io/socket.t", "t/io/socketpair.t")


def parts(source):
    """A part is a file, named from the top of the source."""
    found = [name for directory in DIRECTORIES
             for name in sorted(glob.glob(os.path.join(source, directory, "t", "*.t")))]
    return [os.path.relpath(name, source) for name in found] + [name for name in CORE
                                                                if os.path.exists(os.path.join(source, name))]


def command(source, part, tests, directory):  # pylint: disable=unused-argument
    """In the module's directory; the core's tests in t/, where they look for their tools."""
    if part in CORE:
        return ["sh", "-c", "cd '%s/t' && exec perl -I../lib '%s'" % (source, os.path.relpath(part, "t"))]
    top, name = part.split("/t/")
    return ["sh", "-c", "cd '%s' && exec perl -It/lib -I. 't/%s'" % (os.path.join(source, top), name)]


def outcomes(part, log, directory):  # pylint: disable=unused-argument
    return tap.outcomes(part, log, numbered=True)
