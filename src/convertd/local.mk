# SPDX-License-Identifier: BSD-3-Clause
# the converter; what unit tests link is in libconvertd.la
noinst_LTLIBRARIES += libconvertd.la
libconvertd_la_SOURCES = src/convertd/policy/access.c src/convertd/policy/access.h src/convertd/process/systemd.c \
	src/convertd/process/systemd.h src/convertd/policy/cookies.c src/convertd/policy/cookies.h \
	src/convertd/policy/families.c src/convertd/policy/families.h src/convertd/policy/judgement.c \
	src/convertd/policy/judgement.h src/convertd/config/option_table.c src/convertd/config/clients.c src/convertd/policy/request.c \
	src/convertd/net/route.c src/host/raw_io.c src/host/raw_io.h src/host/lookup.c \
	src/host/lookup.h src/convertd/config/convertd_settings.c src/convertd/config/convertd_settings.h \
	src/convertd/config/effective_settings.c src/convertd/config/effective_settings.h src/convertd/net/sources.c \
	src/convertd/privilege/sandbox.c src/convertd/privilege/privilege.h \
	src/convertd/process/host_checks.c src/convertd/process/service.h src/common/netlink.c src/common/netlink.h \
	src/convertd/process/converter_status.c src/convertd/process/converter.h src/convertd/process/warden_policy.c \
	src/convertd/process/warden.h

libconvertd_la_CFLAGS = $(AM_CFLAGS) $(EVENT_CFLAGS) $(MNL_CFLAGS) $(SODIUM_CFLAGS) $(SECCOMP_CFLAGS) $(QRENCODE_CFLAGS) -pthread
libconvertd_la_LIBADD = libobserve.la libserve.la libcodec.la libcommon.la $(EVENT_LIBS) $(MNL_LIBS) $(SODIUM_LIBS) $(SECCOMP_LIBS) $(QRENCODE_LIBS) $(LIBM)

sbin_PROGRAMS = convertd
convertd_SOURCES = src/convertd/convertd.c src/convertd/process/converter.c \
	src/convertd/process/blame.c src/convertd/net/downstream.c src/convertd/net/downstream.h \
	src/convertd/process/withholding.c \
	src/convertd/privilege/privileges.c src/convertd/process/service.c src/convertd/privilege/survivor.c \
	src/convertd/process/warden.c src/convertd/process/warden_calls.c
convertd_CFLAGS = $(AM_CFLAGS) $(EVENT_CFLAGS) $(MNL_CFLAGS) $(NFTNL_CFLAGS) $(NFQUEUE_CFLAGS) $(MICROHTTPD_CFLAGS) -pthread
convertd_LDFLAGS = $(AM_LDFLAGS) -pthread
convertd_LDADD = libconvertd.la $(EVENT_LIBS) $(MNL_LIBS) $(NFTNL_LIBS) $(NFQUEUE_LIBS) $(MICROHTTPD_LIBS)
dist_man_MANS += man/convertd.8
dist_man_MANS += man/convertd.conf.5
EXTRA_DIST += src/convertd/README.md \
	src/convertd/net/README.md \
	src/convertd/policy/README.md \
	src/convertd/config/README.md \
	src/convertd/privilege/README.md \
	src/convertd/process/README.md
