# what the shim, convertize and convertd share
noinst_LTLIBRARIES += libcommon.la
libcommon_la_SOURCES = src/common/prefix.c src/common/prefix.h src/common/sockaddr.c src/common/sockaddr.h
