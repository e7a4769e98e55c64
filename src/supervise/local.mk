# SPDX-License-Identifier: BSD-3-Clause
# the second front end: a supervisor by seccomp user notification, which convertize links
noinst_LTLIBRARIES += libsupervise.la
libsupervise_la_SOURCES = \
	src/supervise/advice.c src/supervise/advice.h \
	src/supervise/option_calls.c src/supervise/option_calls.h \
	src/supervise/blind_requests.c src/supervise/blind_requests.h \
	src/supervise/caller.c src/supervise/caller.h \
	src/supervise/calls.c src/supervise/calls.h \
	src/supervise/command.h \
	src/supervise/connection.c src/supervise/connection.h \
	src/supervise/ends.c src/supervise/ends.h \
	src/supervise/enquiry.c src/supervise/enquiry.h \
	src/supervise/blind_judge.c src/supervise/blind_judge.h \
	src/supervise/filter.c src/supervise/filter.h \
	src/supervise/kernel.h \
	src/supervise/listener.c src/supervise/listener.h \
	src/supervise/pause.c src/supervise/pause.h \
	src/supervise/peers.c src/supervise/peers.h \
	src/supervise/places.c src/supervise/places.h \
	src/supervise/progress.c src/supervise/progress.h \
	src/supervise/blind_retry.c src/supervise/blind_retry.h \
	src/supervise/stand_in.c src/supervise/stand_in.h \
	src/supervise/start.c src/supervise/start.h \
	src/supervise/supervise.c src/supervise/supervise.h \
	src/supervise/supervisor.c src/supervise/supervisor.h \
	src/supervise/tracee.c src/supervise/tracee.h
libsupervise_la_CFLAGS = $(AM_CFLAGS) $(MNL_CFLAGS) -pthread
EXTRA_DIST += src/supervise/README.md
