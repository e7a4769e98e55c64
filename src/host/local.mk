# SPDX-License-Identifier: BSD-3-Clause
# this host's networks: libhost.la runs in hooks; libhostlists.la has lists of all objects and needs libmnl
noinst_LTLIBRARIES += libhost.la libhostlists.la
libhost_la_SOURCES = \
	src/host/host_model.h \
	src/host/lookup.c src/host/lookup.h \
	src/host/more_paths.c \
	src/host/network_policy.c \
	src/host/networks.c src/host/networks.h \
	src/host/path_list.c \
	src/host/path_probe.c \
	src/host/raw_io.c src/host/raw_io.h \
	src/host/survey.c src/host/survey.h
libhostlists_la_SOURCES = src/host/host_read.c src/host/judge.c src/host/managers.c src/host/route_plan.c
libhostlists_la_CFLAGS = $(AM_CFLAGS) $(MNL_CFLAGS)
EXTRA_DIST += src/host/README.md
