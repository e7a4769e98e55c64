# SPDX-License-Identifier: BSD-3-Clause
# what programs share that serve clients: workers and sessions, withheld SYNs, the relay, and src/daemon
noinst_LTLIBRARIES += libserve.la
libserve_la_SOURCES = src/common/os.c src/common/os.h src/common/problems.c src/common/problems.h src/common/quote.c \
	src/common/quote.h src/daemon/blocks.c src/daemon/blocks.h src/daemon/daemon_options.c src/daemon/daemon_options.h \
	src/daemon/heap.c src/daemon/heap.h src/daemon/limits.c src/daemon/limits.h src/daemon/listen_address.c \
	src/daemon/listen_address.h src/daemon/log.c src/daemon/log.h src/daemon/metrics.c src/daemon/metrics.h \
	src/daemon/outcome.c src/daemon/outcome.h src/daemon/poller.c src/daemon/poller.h src/daemon/proof.c src/daemon/proof.h \
	src/daemon/shares.c src/daemon/shares.h src/daemon/warden_ask.c src/daemon/warden_message.c src/daemon/warden_message.h src/hold/hold.c src/hold/hold.h \
	src/hold/hold_queue.c src/hold/hold_queue.h src/hold/hold_rules.c src/hold/hold_rules.h src/hold/nft.c src/hold/nft.h \
	src/hold/queue_owner.c src/hold/hold_table.c src/hold/hold_table.h src/hold/syn_packet.c \
	src/hold/syn_packet.h src/relay/fallback.c src/relay/relay.c src/relay/relay.h \
	src/relay/relay_look.c src/relay/relay_pipe.c src/relay/relay_steer.c src/relay/relay_window.c src/serve/listening.c src/serve/listening.h \
	src/serve/plugs.h src/serve/session.h src/serve/session_decision.c src/serve/session_decision.h \
	src/serve/session_life.c src/serve/session_parts.h src/serve/session_pool.c src/serve/session_report.c \
	src/serve/session_request.c src/serve/session_socket.c src/serve/session_states.c src/serve/syn_attempt.c \
	src/serve/syn_decision.c src/serve/syn_decision.h src/serve/syn_judge.c src/serve/syn_judge.h src/serve/worker.c \
	src/serve/worker.h
libserve_la_CFLAGS = $(AM_CFLAGS) $(EVENT_CFLAGS) $(MNL_CFLAGS) $(NFTNL_CFLAGS) $(NFQUEUE_CFLAGS) $(SODIUM_CFLAGS) -pthread
libserve_la_LIBADD = libcodec.la libcommon.la $(EVENT_LIBS) $(MNL_LIBS) $(NFTNL_LIBS) $(NFQUEUE_LIBS) $(SODIUM_LIBS) $(LIBM)
EXTRA_DIST += src/daemon/README.md src/hold/README.md src/relay/README.md src/serve/README.md

# how a daemon tells its status
noinst_LTLIBRARIES += libobserve.la
libobserve_la_SOURCES = src/observe/endpoint.c src/observe/monitor.c src/observe/monitor.h src/observe/status_page.c \
	src/observe/status_write.c
libobserve_la_CFLAGS = $(AM_CFLAGS) $(EVENT_CFLAGS) $(MICROHTTPD_CFLAGS) -pthread
libobserve_la_LIBADD = libserve.la $(MICROHTTPD_LIBS) $(LIBM)
EXTRA_DIST += src/observe/README.md
