# SPDX-License-Identifier: BSD-3-Clause
# examples of programs that use libconvertproto: installed as source code, built and run by the tests (which see nothing of src/)
nobase_dist_doc_DATA += examples/README.md examples/client.c examples/converter.c examples/relay.h

check_PROGRAMS += examples/client examples/converter
examples_client_SOURCES = examples/client.c examples/relay.h
examples_client_CPPFLAGS = -I$(top_srcdir)/lib $(HARDENING_CPPFLAGS)
examples_client_LDADD = libconvertproto.la
examples_client_LDFLAGS = $(AM_LDFLAGS) -no-install
examples_converter_SOURCES = examples/converter.c examples/relay.h
examples_converter_CPPFLAGS = -I$(top_srcdir)/lib $(HARDENING_CPPFLAGS)
examples_converter_LDADD = libconvertproto.la
examples_converter_LDFLAGS = $(AM_LDFLAGS) -no-install
