# SPDX-License-Identifier: BSD-3-Clause
# the third front end: convertgw, a transparent gateway
if HAVE_GATEWAY
noinst_LTLIBRARIES += libgateway.la
libgateway_la_SOURCES = src/gateway/gateway.h src/gateway/gateway_checks.c src/gateway/gateway_dialler.c src/gateway/gateway_judge.c \
	src/gateway/gateway_policies.c src/gateway/gateway_rights.c src/gateway/gateway_rules.c src/gateway/gateway_rules.h \
	src/gateway/gateway_settings.c src/gateway/gateway_settings.h src/gateway/gateway_socket.c src/gateway/gateway_status.c \
	src/common/netlink.c src/common/netlink.h
libgateway_la_CFLAGS = $(AM_CFLAGS) $(EVENT_CFLAGS) $(MNL_CFLAGS) $(NFTABLES_CFLAGS) -pthread
sbin_PROGRAMS += convertgw
dist_man_MANS += man/convertgw.8
convertgw_SOURCES = src/gateway/convertgw.c
convertgw_CFLAGS = $(AM_CFLAGS) $(EVENT_CFLAGS) -pthread
convertgw_LDFLAGS = $(AM_LDFLAGS) -pthread
convertgw_LDADD = libgateway.la libobserve.la libserve.la libengine.la libhostlists.la libhost.la libclient.la libcodec.la libcommon.la \
	$(EVENT_LIBS) $(MNL_LIBS) $(NFTNL_LIBS) $(NFQUEUE_LIBS) $(NFTABLES_LIBS)
endif
EXTRA_DIST += src/gateway/README.md
