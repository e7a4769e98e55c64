# SPDX-License-Identifier: BSD-3-Clause
# what the shim, convertize and convertd share
noinst_LTLIBRARIES += libcommon.la
# sysctl.c is not in here: the shim has no use for it
libcommon_la_SOURCES = src/common/errors.h src/common/prefix.c src/common/prefix.h src/common/sockaddr.c src/common/sockaddr.h
