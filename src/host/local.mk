# SPDX-License-Identifier: BSD-3-Clause
# this host's networks: libhost.la runs in hooks; libhostlists.la has lists of all objects and needs libmnl
noinst_LTLIBRARIES += libhost.la libhostlists.la
libhost_la_SOURCES = \
	src/host/endpoints.c src/host/endpoints.h \
	src/host/host.h \
	src/host/networks.c src/host/networks.h \
	src/host/nl.c src/host/nl.h \
	src/host/path_list.c src/host/path_list.h \
	src/host/path_probe.c src/host/path_probe.h \
	src/host/raw_io.h \
	src/host/survey.c src/host/survey.h \
	src/host/trials.c \
	src/host/vpn.c \
	src/host/way.c src/host/way.h \
	src/host/word.c src/host/word.h
libhostlists_la_SOURCES = src/host/host.c src/host/judge.c src/host/managers.c src/host/read.c \
	src/host/route_plan.c src/host/route_plan.h
libhostlists_la_CFLAGS = $(AM_CFLAGS) $(MNL_CFLAGS)
EXTRA_DIST += src/host/README.md
