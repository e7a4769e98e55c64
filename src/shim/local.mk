# libconvert.so, the preload library
lib_LTLIBRARIES += libconvert.la
libconvert_la_SOURCES = \
	src/shim/conn.c src/shim/conn.h \
	src/shim/conversion.c src/shim/conversion.h \
	src/shim/converters.c src/shim/converters.h \
	src/shim/deadline.h src/shim/hook.h \
	src/shim/hooks_epoll.c src/shim/hooks_io.c src/shim/hooks_poll.c src/shim/hooks_socket.c \
	src/shim/init.c \
	src/shim/log.c src/shim/log.h \
	src/shim/next.c src/shim/next.h \
	src/shim/watch.c src/shim/watch.h
# It lives in other people's processes: hidden but for the hooks, bound at once, static TLS, never unloaded.
libconvert_la_CFLAGS = $(AM_CFLAGS) -U_FORTIFY_SOURCE -fvisibility=hidden -ftls-model=initial-exec
libconvert_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -no-undefined \
	-export-symbols $(srcdir)/src/shim/libconvert.sym -Wl,-z,now -Wl,-z,nodelete
libconvert_la_LIBADD = libclient.la libcodec.la libcommon.la -ldl
libconvert_la_DEPENDENCIES = libclient.la libcodec.la libcommon.la $(srcdir)/src/shim/libconvert.sym
EXTRA_DIST += src/shim/libconvert.sym
dist_man_MANS += man/libconvert.so.7
