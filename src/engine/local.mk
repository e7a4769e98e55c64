# SPDX-License-Identifier: BSD-3-Clause
# one connection by way of a converter, for all front ends; makes no system call
noinst_LTLIBRARIES += libengine.la
libengine_la_SOURCES = \
	src/engine/attempt.c src/engine/attempt.h \
	src/engine/decide.c src/engine/decide.h \
	src/engine/dial.h src/engine/dial_socket.h \
	src/engine/path_start.c src/engine/path_start.h \
	src/engine/steps.c
EXTRA_DIST += src/engine/README.md
