# what the shim, convertize and convertd share
noinst_LTLIBRARIES += libcommon.la
libcommon_la_SOURCES = src/common/sockaddr.c src/common/sockaddr.h
