# SPDX-License-Identifier: BSD-3-Clause
# launcher and doctor; what unit tests and fuzzers link is in libconvertize.la
noinst_LTLIBRARIES += libconvertize.la
libconvertize_la_SOURCES = \
	src/common/json.c src/common/json.h \
	src/common/lines.c src/common/lines.h \
	src/common/problems.c src/common/problems.h \
	src/convertize/conf.c src/convertize/conf.h \
	src/convertize/library.c src/convertize/library.h \
	src/convertize/option_table.c src/convertize/option_table.h \
	src/convertize/unit_dropin.c src/convertize/unit_dropin.h \
	src/convertize/unit_file.c src/convertize/unit_file.h \
	src/convertize/unit_judge.c src/convertize/unit_judge.h \
	src/convertize/unit_name.c src/convertize/unit_name.h \
	src/convertize/unit_properties.c src/convertize/unit_properties.h \
	src/convertize/session_decide.c src/convertize/session.h \
	src/convertize/report.c src/convertize/report.h \
	src/convertize/wrapper.c src/convertize/wrapper.h
# the administrator's configuration, which messages name, and the library
CONVERTIZE_CPPFLAGS = $(AM_CPPFLAGS) -DCONVERTIZE_SYSCONFDIR='"$(sysconfdir)"' -DLIBCONVERT_DIR='"$(pkglibdir)"'
libconvertize_la_CPPFLAGS = $(CONVERTIZE_CPPFLAGS)
libconvertize_la_LIBADD = libprogram.la

bin_PROGRAMS += convertize
convertize_SOURCES = src/convertize/main.c \
	src/convertize/check.c src/convertize/check.h \
	src/convertize/check_ask.c src/convertize/check_cache.c src/convertize/check_converter.c \
	src/convertize/check_fix.c src/convertize/check_host.c \
	src/convertize/check_measure.c src/convertize/check_paths.c \
	src/convertize/check_private.h src/convertize/check_supported.c \
	src/convertize/conf_load.c \
	src/convertize/converter_addresses.c src/convertize/converter_addresses.h \
	src/convertize/counters.c src/convertize/counters.h \
	src/convertize/launch.c src/convertize/launch.h \
	src/convertize/network.c src/convertize/network.h \
	src/convertize/options.c src/convertize/options.h \
	src/convertize/paths.c src/convertize/paths.h src/convertize/paths_look.c src/convertize/paths_print.c \
	src/convertize/probe.c src/convertize/probe.h \
	src/convertize/probe_result.c src/convertize/probe_result.h \
	src/convertize/routes.c src/convertize/routes.h \
	src/convertize/session.c \
	src/convertize/subflows.c src/convertize/subflows.h \
	src/convertize/systemctl.c src/convertize/systemctl.h \
	src/convertize/transfer.c src/convertize/transfer.h \
	src/convertize/unit_place.c src/convertize/unit_place.h \
	src/convertize/unit_programs.c src/convertize/unit_programs.h \
	src/convertize/unit_query.c src/convertize/unit_query.h \
	src/convertize/unit_search.c src/convertize/unit_search.h \
	src/convertize/units.c src/convertize/units.h src/convertize/units_list.c
convertize_CPPFLAGS = $(CONVERTIZE_CPPFLAGS)
convertize_CFLAGS = $(AM_CFLAGS) $(MNL_CFLAGS)
convertize_LDFLAGS = $(AM_LDFLAGS) -pthread
convertize_LDADD = libsupervise.la libnetworks.la libpathskernel.la libpaths.la libconvertize.la libclient.la libcodec.la libcommon.la $(MNL_LIBS)
dist_man_MANS += man/convertize.1 man/convertize.conf.5
EXTRA_DIST += src/convertize/README.md
