# SPDX-License-Identifier: BSD-3-Clause
# the second front end: a supervisor by seccomp user notification, which convertize links
noinst_LTLIBRARIES += libsupervise.la
libsupervise_la_SOURCES = \
	src/common/os.c src/common/os.h \
	src/supervise/blind.h src/supervise/blind_judge.c src/supervise/blind_requests.c src/supervise/blind_retry.c \
	src/supervise/calls.c src/supervise/calls.h src/supervise/option_calls.c \
	src/supervise/connection.c src/supervise/connection.h src/supervise/caller.c src/supervise/progress.c \
	src/supervise/listener.c src/supervise/listener.h src/supervise/filter.c \
	src/supervise/permission.c src/supervise/permission.h \
	src/supervise/sockets.c src/supervise/sockets.h \
	src/supervise/stand_in.c src/supervise/stand_in.h \
	src/supervise/supervise.c src/supervise/supervise.h \
	src/supervise/supervisor.c \
	src/supervise/tracee.c src/supervise/tracee.h src/supervise/pause.c src/common/netlink.c src/common/netlink.h
libsupervise_la_CFLAGS = $(AM_CFLAGS) $(MNL_CFLAGS) -pthread
libsupervise_la_LIBADD = $(MNL_LIBS)
EXTRA_DIST += src/supervise/README.md
