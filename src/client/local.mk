# SPDX-License-Identifier: BSD-3-Clause
# the client's side of the protocol, for every front end; its only I/O is the user's cache and the resolver
noinst_LTLIBRARIES += libclient.la
libclient_la_SOURCES = \
	src/client/user_cache.c src/client/cache.h src/client/cache_file.c src/client/cache_file.h \
	src/client/client_log.c src/client/client_log.h \
	src/client/converters.c src/client/converters.h src/client/converters_destinations.c src/client/converters_facts.c \
	src/client/exchange.c src/client/exchange.h \
	src/client/handshake.c src/client/handshake.h \
	src/client/notes.c src/client/notes.h \
	src/client/paths.c src/client/paths.h src/client/paths_facts.c \
	src/client/resolve.c src/client/resolve.h src/client/srv.c \
	src/client/settings.c src/client/settings.h
libclient_la_LIBADD = $(RESOLV_LIBS)
EXTRA_DIST += src/client/README.md
