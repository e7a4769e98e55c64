# SPDX-License-Identifier: BSD-3-Clause
# the Convert protocol library: the same objects inside the shim and convertd (libcodec.la, hidden) and installed
noinst_LTLIBRARIES += libcodec.la
libcodec_la_SOURCES = lib/read.c lib/write.c lib/names.c lib/wire.h

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

# The manual: pages, and for each function without a page of its own a link to the page that names it.
API_PAGES = man/convertproto.3 man/convert_address_is_valid.3 man/convert_request_parse.3 man/convert_status_name.3 \
	man/convert_tlv_next.3 man/convert_write_error.3 man/convert_writer_init.3
API_LINKS = man/convert_error_name.3 man/convert_library_version.3 man/convert_message_length.3 man/convert_request_answer.3 \
	man/convert_response_answer.3 man/convert_response_parse.3 man/convert_tcp_option_next.3 man/convert_tlv_name.3 \
	man/convert_write_connect.3 man/convert_write_cookie.3 man/convert_write_echo.3 man/convert_write_error_cookie.3 \
	man/convert_write_error_echo.3 man/convert_write_error_options.3 man/convert_write_error_versions.3 man/convert_write_hold_time.3 man/convert_write_info.3 \
	man/convert_write_silence.3 man/convert_write_supported.3 man/convert_write_tcp_header.3 man/convert_write_tlv.3 \
	man/convert_write_withholding.3 man/convert_writer_finish.3
dist_man_MANS += $(API_PAGES)
nodist_man_MANS = $(API_LINKS)
CLEANFILES += $(API_LINKS)
$(API_LINKS): $(API_PAGES) Makefile
	$(AM_V_GEN)$(MKDIR_P) man && name=`basename $@ .3` && \
	page=`cd $(srcdir)/man && grep -l "^\.Nm $$name\( ,\)*$$" $(API_PAGES:man/%=%)` && \
	echo ".so man3/$$page" >$@.tmp && mv $@.tmp $@

# The loader's cache: only root can update it, and only for a directory that the loader searches (libtool makes the links, and reports
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
