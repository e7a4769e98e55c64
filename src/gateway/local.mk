# SPDX-License-Identifier: BSD-3-Clause
# the third front end: convertgw, a transparent gateway
if HAVE_GATEWAY
noinst_LTLIBRARIES += libgateway.la
libgateway_la_SOURCES = src/gateway/gateway.h src/gateway/gateway_dialler.c src/gateway/gateway_judge.c src/gateway/gateway_rights.c \
	src/gateway/gateway_rights.h src/gateway/gateway_rules.c src/gateway/gateway_rules.h src/gateway/gateway_settings.h \
	src/gateway/gateway_socket.c
libgateway_la_CFLAGS = $(AM_CFLAGS) $(EVENT_CFLAGS) $(MNL_CFLAGS) $(NFTABLES_CFLAGS) -pthread
endif
EXTRA_DIST += src/gateway/README.md src/gateway/convertgw.c
