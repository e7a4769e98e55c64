# SPDX-License-Identifier: BSD-3-Clause
# launcher and doctor; unit tests and fuzzers link libconvertize.la
noinst_LTLIBRARIES += libconvertize.la
libconvertize_la_SOURCES = \
	src/common/columns.c src/common/columns.h \
	src/common/os.c src/common/os.h \
	src/common/problems.c src/common/problems.h \
	src/common/quote.c src/common/quote.h \
	src/convertize/check/report.c src/convertize/check/report.h \
	src/convertize/enable/unit_text.c src/convertize/enable/enable.h \
	src/convertize/options/command_line.c src/convertize/options/command_line.h src/convertize/options/option_rows.c \
	src/convertize/options/conf.c \
	src/convertize/run/library.c src/convertize/run/launch.h \
	src/convertize/run/wrapper.c
# the paths of the administrator's configuration, for messages, and of the library
CONVERTIZE_CPPFLAGS = $(AM_CPPFLAGS) -DCONVERTIZE_SYSCONFDIR='"$(sysconfdir)"' -DLIBCONVERT_DIR='"$(pkglibdir)"'
libconvertize_la_CPPFLAGS = $(CONVERTIZE_CPPFLAGS)
libconvertize_la_LIBADD = libprogram.la

bin_PROGRAMS += convertize
convertize_SOURCES = src/convertize/main.c \
	src/convertize/check/check.c src/convertize/check/check.h \
	src/convertize/check/check_ask.c \
	src/convertize/check/check_converter.c \
	src/convertize/check/check_host.c \
	src/convertize/check/check_measure.c \
	src/convertize/check/check_networks.c \
	src/convertize/check/check_paths.c \
	src/convertize/check/check_server.c \
	src/convertize/check/check_unanswered.c \
	src/convertize/check/converter_probe.c src/convertize/check/converter_probe.h \
	src/convertize/enable/own_files.c \
	src/convertize/enable/services.c \
	src/convertize/enable/login_session.c \
	src/convertize/paths/paths_command.c src/convertize/paths/paths_command.h \
	src/convertize/paths/paths_print.c \
	src/convertize/run/launch.c \
	src/convertize/run/own_connects.c \
	src/convertize/status/status_command.c src/convertize/status/status.h \
	src/convertize/status/status_join.c \
	src/convertize/status/status_print.c \
	src/convertize/status/status_sockets.c
convertize_CPPFLAGS = $(CONVERTIZE_CPPFLAGS)
# The objects that contain these paths. configure writes Makefile anew, so they are compiled again after it has run with other paths. The
# names are in a variable: a rule with an object's own name would replace automake's rule for it.
convertize_objects_with_paths = src/convertize/enable/convertize-login_session.$(OBJEXT) \
	src/convertize/options/libconvertize_la-conf.lo \
	src/convertize/options/libconvertize_la-option_rows.lo \
	src/convertize/run/convertize-launch.$(OBJEXT) \
	src/convertize/run/libconvertize_la-library.lo
$(convertize_objects_with_paths): Makefile
convertize_CFLAGS = $(AM_CFLAGS) $(MNL_CFLAGS)
convertize_LDFLAGS = $(AM_LDFLAGS) -pthread
convertize_LDADD = libsupervise.la libengine.la libhost.la libpathskernel.la libpaths.la libconvertize.la libclient.la libcodec.la libcommon.la $(MNL_LIBS)
dist_man_MANS += man/convertize.1 man/convertize.conf.5
EXTRA_DIST += src/convertize/README.md src/convertize/check/README.md src/convertize/enable/README.md \
	src/convertize/options/README.md src/convertize/paths/README.md src/convertize/run/README.md src/convertize/status/README.md
