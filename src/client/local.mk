# SPDX-License-Identifier: BSD-3-Clause
# the client's side of the protocol, for every front end; its only I/O is the user's cache and the resolver
noinst_LTLIBRARIES += libclient.la
libclient_la_SOURCES = \
	src/client/cache.h src/client/cache_calls.c \
	src/client/client_log.c src/client/client_log.h \
	src/client/cache_file.c src/client/cache_file.h \
	src/client/converters.c src/client/converters.h src/client/converters_choice.c \
	src/client/converters_facts.c src/client/converters_facts.h \
	src/client/converters_destinations.c src/client/converters_destinations.h \
	src/client/errno_map.c src/client/errno_map.h \
	src/client/exchange.c src/client/exchange.h \
	src/client/handshake.c src/client/handshake.h \
	src/client/paths.c src/client/paths.h \
	src/client/paths_facts.c src/client/paths_facts.h \
	src/client/resolve.c src/client/resolve.h \
	src/client/ask_way.c src/client/ask_way.h \
	src/client/settings.c src/client/settings.h \
	src/client/srv.c src/client/srv.h \
	src/client/user_cache.c src/client/user_cache.h
libclient_la_LIBADD = $(RESOLV_LIBS)
EXTRA_DIST += src/client/README.md
