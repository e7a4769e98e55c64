# SPDX-License-Identifier: BSD-3-Clause
# the Convert protocol library: the same objects inside the shim and convertd (libcodec.la, hidden) and installed
noinst_LTLIBRARIES += libcodec.la
libcodec_la_SOURCES = lib/message.c lib/read.c lib/write.c lib/names.c lib/wire.h

lib_LTLIBRARIES += libconvertproto.la
libconvertproto_la_SOURCES =
libconvertproto_la_LIBADD = libcodec.la
libconvertproto_la_LDFLAGS = $(AM_LDFLAGS) -version-info $(CONVERTPROTO_VERSION_INFO) -export-symbols-regex '^convert_' -no-undefined

convertdir = $(includedir)/convert
convert_HEADERS = lib/convert/convert.h
pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = lib/convertproto.pc
