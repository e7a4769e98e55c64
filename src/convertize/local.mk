# SPDX-License-Identifier: BSD-3-Clause
# launcher and doctor; what unit tests and fuzzers link is in libconvertize.la
noinst_LTLIBRARIES += libconvertize.la
libconvertize_la_SOURCES = \
	src/common/json.c src/common/json.h \
	src/convertize/library.c src/convertize/library.h \
	src/convertize/report.c src/convertize/report.h \
	src/convertize/wrapper.c src/convertize/wrapper.h
libconvertize_la_CPPFLAGS = $(AM_CPPFLAGS) -DLIBCONVERT_DIR='"$(pkglibdir)"'
libconvertize_la_LIBADD = libprogram.la

bin_PROGRAMS += convertize
convertize_SOURCES = src/convertize/main.c \
	src/convertize/check.c src/convertize/check.h \
	src/convertize/check_ask.c src/convertize/check_cache.c src/convertize/check_converter.c \
	src/convertize/check_fix.c src/convertize/check_host.c \
	src/convertize/check_measure.c src/convertize/check_paths.c \
	src/convertize/check_private.h src/convertize/check_supported.c \
	src/convertize/counters.c src/convertize/counters.h \
	src/convertize/launch.c src/convertize/launch.h \
	src/convertize/network.c src/convertize/network.h \
	src/convertize/options.c src/convertize/options.h \
	src/convertize/probe.c src/convertize/probe.h \
	src/convertize/probe_result.c src/convertize/probe_result.h \
	src/convertize/routes.c src/convertize/routes.h \
	src/convertize/transfer.c src/convertize/transfer.h \
	src/common/endpoints.c src/common/endpoints.h \
	src/common/netlink.c src/common/netlink.h src/common/sysctl.c src/common/sysctl.h
convertize_CFLAGS = $(AM_CFLAGS) $(MNL_CFLAGS)
convertize_LDADD = libconvertize.la libclient.la libcodec.la libcommon.la $(MNL_LIBS)
dist_man_MANS += man/convertize.1
EXTRA_DIST += src/convertize/README.md
