# SPDX-License-Identifier: BSD-3-Clause
# the Convert protocol library: the same objects inside the shim and convertd (libcodec.la, hidden) and installed
noinst_LTLIBRARIES += libcodec.la
libcodec_la_SOURCES = lib/message.c lib/read.c lib/write.c lib/names.c lib/wire.h

lib_LTLIBRARIES += libconvertproto.la
libconvertproto_la_SOURCES =
libconvertproto_la_LIBADD = libcodec.la
libconvertproto_la_LDFLAGS = $(AM_LDFLAGS) -version-info $(CONVERTPROTO_VERSION_INFO) -no-undefined \
	-Wl,--version-script=$(srcdir)/lib/convertproto.map
libconvertproto_la_DEPENDENCIES = libcodec.la $(srcdir)/lib/convertproto.map
EXTRA_DIST += lib/convertproto.map

convertdir = $(includedir)/convert
convert_HEADERS = lib/convert/convert.h
pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = lib/convertproto.pc

# The loader's cache: root's affair, and of use only for a directory that the loader looks in (libtool makes the links, and tells of
# other directories). An ordinary user's PATH has no ldconfig, a package's own script calls it, and other C libraries have no cache.
loader_cache = PATH="$$PATH:/usr/sbin:/sbin"; \
	if test -z "$(DESTDIR)" && test "`id -u`" = 0 && ldconfig -NXv 2>/dev/null | grep '^$(libdir):' >/dev/null; then \
		echo ' ldconfig'; ldconfig || echo 'libconvert: ldconfig failed: programs may not find libconvertproto' >&2; \
	fi
install-exec-hook:
	@$(loader_cache)
uninstall-hook:
	@$(loader_cache)
EXTRA_DIST += lib/README.md \
	lib/convert/README.md
