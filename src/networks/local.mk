# SPDX-License-Identifier: BSD-3-Clause
# the networks of this machine, and the paths that a connection can begin on, for every front end
noinst_LTLIBRARIES += libnetworks.la
libnetworks_la_SOURCES = \
	src/networks/io.h \
	src/networks/named.c src/networks/named.h \
	src/networks/networks.c src/networks/networks.h \
	src/networks/nl.c src/networks/nl.h \
	src/networks/path_direct.c src/networks/path_direct.h \
	src/networks/path_list.c src/networks/path_list.h \
	src/networks/path_probe.c src/networks/path_probe.h \
	src/networks/several.c src/networks/several.h \
	src/networks/survey.c src/networks/survey.h \
	src/networks/trials.c src/networks/trials.h
EXTRA_DIST += src/networks/README.md
