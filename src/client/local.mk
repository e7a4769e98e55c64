# the client's side of the protocol without any I/O, for every front end
noinst_LTLIBRARIES += libclient.la
libclient_la_SOURCES = \
	src/client/errno_map.c src/client/errno_map.h \
	src/client/handshake.c src/client/handshake.h \
	src/client/policy.c src/client/policy.h \
	src/client/settings.c src/client/settings.h
