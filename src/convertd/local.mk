# the converter; what unit tests link is in libconvertd.la
noinst_LTLIBRARIES += libconvertd.la
libconvertd_la_SOURCES = src/convertd/relay.c src/convertd/relay.h \
	src/convertd/request.c src/convertd/request.h
libconvertd_la_LIBADD = libcodec.la

sbin_PROGRAMS = convertd
convertd_SOURCES = src/convertd/main.c \
	src/convertd/downstream.c src/convertd/downstream.h \
	src/convertd/listener.c src/convertd/listener.h \
	src/convertd/log.c src/convertd/log.h \
	src/convertd/options.c src/convertd/options.h \
	src/convertd/session.c src/convertd/session.h src/convertd/session_private.h \
	src/convertd/session_states.c \
	src/convertd/syn_window.c src/convertd/syn_window.h \
	src/convertd/sysctl.c src/convertd/sysctl.h
convertd_CFLAGS = $(AM_CFLAGS) $(EVENT_CFLAGS) $(NFTABLES_CFLAGS)
convertd_LDADD = libconvertd.la libcommon.la $(EVENT_LIBS) $(NFTABLES_LIBS)
dist_man_MANS += man/convertd.8
