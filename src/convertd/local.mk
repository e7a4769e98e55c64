# SPDX-License-Identifier: BSD-3-Clause
# the converter; what unit tests link is in libconvertd.la
noinst_LTLIBRARIES += libconvertd.la
libconvertd_la_SOURCES = src/convertd/policy/access.c src/convertd/policy/access.h \
	src/daemon/blocks.c src/daemon/blocks.h \
	src/daemon/heap.c src/daemon/heap.h \
	src/daemon/listen_address.c src/daemon/listen_address.h \
	src/convertd/process/systemd.c src/convertd/process/systemd.h \
	src/convertd/policy/cookies.c src/convertd/policy/cookies.h \
	src/convertd/policy/families.c src/convertd/policy/families.h \
	src/daemon/far_clients.c src/daemon/far_clients.h \
	src/convertd/policy/judgement.c src/convertd/policy/judgement.h \
	src/daemon/limits.c src/daemon/limits.h \
	src/daemon/log.c src/daemon/log.h \
	src/daemon/metrics.c src/daemon/metrics.h \
	src/convertd/config/option_table.c \
	src/daemon/outcome.c src/daemon/outcome.h \
	src/common/problems.c src/common/problems.h \
	src/daemon/proof.c src/daemon/proof.h \
	src/relay/relay.c src/relay/relay.h src/relay/fallback.c \
	src/relay/relay_look.c src/relay/relay_look.h \
	src/relay/relay_pipe.c \
	src/convertd/policy/request.c \
	src/convertd/net/route.c src/convertd/net/route.h src/host/raw_io.c src/host/raw_io.h src/host/lookup.c src/host/lookup.h \
	src/convertd/config/convertd_settings.c src/convertd/config/convertd_settings.h \
	src/convertd/config/effective_settings.c src/convertd/config/effective_settings.h src/common/os.c src/common/os.h \
	src/daemon/shares.c src/daemon/shares.h \
	src/convertd/net/sources.c src/convertd/net/sources.h \
	src/convertd/privilege/sandbox.c src/convertd/privilege/privilege.h \
	src/convertd/process/host_checks.c src/convertd/process/service.h src/common/netlink.c src/common/netlink.h \
	src/convertd/observe/status.c src/convertd/observe/monitor.h \
	src/hold/syn_packet.c src/hold/syn_packet.h src/serve/session_decision.c src/serve/session_decision.h src/serve/syn_decision.c src/serve/syn_decision.h \
	src/daemon/textfile.c src/daemon/textfile.h \
	src/daemon/rights.c src/daemon/rights.h \
	src/daemon/warden_message.c src/daemon/warden_message.h \
	src/convertd/process/warden_policy.c src/convertd/process/warden.h \
	src/common/quote.c src/common/quote.h

libconvertd_la_CFLAGS = $(AM_CFLAGS) $(EVENT_CFLAGS) $(MNL_CFLAGS) $(SODIUM_CFLAGS) $(SECCOMP_CFLAGS) -pthread
libconvertd_la_LIBADD = libcodec.la libcommon.la $(EVENT_LIBS) $(MNL_LIBS) $(SODIUM_LIBS) $(SECCOMP_LIBS) $(LIBM)

sbin_PROGRAMS = convertd
convertd_SOURCES = src/convertd/convertd.c \
	src/serve/listening.c src/serve/listening.h \
	src/convertd/process/converter.c src/convertd/process/converter.h src/convertd/process/blame.c \
	src/convertd/net/downstream.c src/convertd/net/downstream.h \
	src/convertd/observe/endpoint.c \
	src/hold/hold_table.c src/hold/hold_table.h src/serve/plugs.h \
	src/convertd/process/withholding.c \
	src/convertd/observe/monitor.c \
	src/convertd/privilege/privileges.c \
	src/daemon/poller.c src/daemon/poller.h \
	src/convertd/process/service.c \
	src/hold/hold.c src/hold/hold.h src/hold/hold_queue.c src/hold/hold_queue.h \
	src/serve/syn_attempt.c src/serve/syn_judge.c src/serve/syn_judge.h src/serve/session.h src/serve/session_parts.h src/serve/session_life.c src/serve/session_pool.c \
	src/serve/session_report.c src/serve/session_request.c src/serve/session_socket.c src/serve/session_states.c \
	src/convertd/privilege/survivor.c \
	src/hold/syn_window.c \
	src/convertd/process/warden.c \
	src/convertd/process/warden_calls.c \
	src/serve/worker.c src/serve/worker.h
if HAVE_NFTNL
convertd_SOURCES += src/hold/nft.c src/hold/nft.h
endif
if HAVE_NETFILTER_QUEUE
convertd_SOURCES += src/hold/hold_rules.c src/hold/hold_rules.h src/hold/queue_owner.c
endif
convertd_CFLAGS = $(AM_CFLAGS) $(EVENT_CFLAGS) $(MNL_CFLAGS) $(NFTNL_CFLAGS) $(NFQUEUE_CFLAGS) $(CAP_NG_CFLAGS) $(MICROHTTPD_CFLAGS) -pthread
convertd_LDFLAGS = $(AM_LDFLAGS) -pthread
convertd_LDADD = libconvertd.la $(EVENT_LIBS) $(MNL_LIBS) $(NFTNL_LIBS) $(NFQUEUE_LIBS) $(CAP_NG_LIBS) $(MICROHTTPD_LIBS)
dist_man_MANS += man/convertd.8
dist_man_MANS += man/convertd.conf.5
EXTRA_DIST += src/convertd/README.md \
	src/daemon/README.md \
	src/convertd/net/README.md \
	src/convertd/policy/README.md \
	src/convertd/config/README.md \
	src/convertd/privilege/README.md \
	src/convertd/observe/README.md \
	src/hold/README.md src/relay/README.md src/serve/README.md \
	src/convertd/process/README.md
