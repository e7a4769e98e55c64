# SPDX-License-Identifier: BSD-3-Clause
# the path manager of "convertize paths"; unit tests and fuzzers link libpaths.la, which never accesses the kernel
noinst_LTLIBRARIES += libpaths.la
libpaths_la_SOURCES = \
	src/paths/difference.c src/paths/plan.h src/paths/wanted.c \
	src/paths/memory.c \
	src/paths/traffic.c src/paths/traffic.h \
	src/paths/flows.c src/paths/outage.c src/paths/outage.h \
	src/common/os.c src/common/os.h
libpaths_la_CFLAGS = $(AM_CFLAGS) $(MNL_CFLAGS)
libpaths_la_LIBADD = libhostlists.la libhost.la libclient.la

noinst_LTLIBRARIES += libpathskernel.la
libpathskernel_la_SOURCES = \
	src/paths/apply.c \
	src/paths/manage.c \
	src/paths/mend.c src/paths/mend.h \
	src/paths/traffic_keeper.c \
	src/common/netlink.c src/common/netlink.h
libpathskernel_la_CFLAGS = $(AM_CFLAGS) $(MNL_CFLAGS)
libpathskernel_la_LIBADD = libpaths.la $(MNL_LIBS)
EXTRA_DIST += src/paths/README.md
