# SPDX-License-Identifier: BSD-3-Clause
# what the shim, convertize and convertd share
noinst_LTLIBRARIES += libcommon.la
# without os.c, quote.c, problems.c and netlink.c, which the shim doesn't need
libcommon_la_SOURCES = src/common/clock.c src/common/clock.h src/common/kernel_socket.h src/common/rawcall.h \
	src/common/file_limit.h src/common/sockaddr.c src/common/sockaddr.h src/common/socket_options.c src/common/socket_options.h \
	src/common/tcp.h \
	src/common/thread.c src/common/thread.h

# inspects a program before convertize or the shim starts it: does preloading reach it?
noinst_LTLIBRARIES += libprogram.la
libprogram_la_SOURCES = src/common/elf.c src/common/preload.c \
	src/common/program.c src/common/program.h
EXTRA_DIST += src/common/README.md
