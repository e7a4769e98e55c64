# SPDX-License-Identifier: BSD-3-Clause
# the converter; what unit tests link is in libconvertd.la
noinst_LTLIBRARIES += libconvertd.la
libconvertd_la_SOURCES = src/convertd/access.c src/convertd/access.h \
	src/convertd/blocks.c src/convertd/blocks.h \
	src/convertd/bucket.c src/convertd/bucket.h \
	src/convertd/congestion.c src/convertd/congestion.h \
	src/convertd/cookies.c src/convertd/cookies.h \
	src/convertd/demand.c src/convertd/demand.h \
	src/convertd/families.c src/convertd/families.h \
	src/convertd/fastopen.h \
	src/convertd/heap.c src/convertd/heap.h \
	src/convertd/limits.c src/convertd/limits.h src/convertd/limits_private.h \
	src/convertd/limits_memory.c src/convertd/limits_room.c \
	src/convertd/log.c src/convertd/log.h \
	src/convertd/memory_budget.c src/convertd/memory_budget.h \
	src/convertd/metrics.c src/convertd/metrics.h \
	src/convertd/notices.c src/convertd/notices.h \
	src/convertd/options.c src/convertd/options.h \
	src/convertd/outcome.c src/convertd/outcome.h \
	src/convertd/own.c src/convertd/own.h \
	src/convertd/problems.c src/convertd/problems.h \
	src/convertd/proof.c src/convertd/proof.h \
	src/convertd/process.h \
	src/convertd/record.c src/convertd/record.h \
	src/convertd/relay.c src/convertd/relay.h src/convertd/fallback.c src/convertd/fallback.h \
	src/convertd/relay_memory.c src/convertd/relay_memory.h \
	src/convertd/relay_pipe.c src/convertd/relay_pipe.h \
	src/convertd/relay_watch.c src/convertd/relay_watch.h \
	src/convertd/request.c src/convertd/request.h \
	src/convertd/route.h \
	src/convertd/rules.c src/convertd/rules.h \
	src/convertd/settings.c src/convertd/settings.h \
	src/convertd/shared.c src/convertd/shared.h \
	src/convertd/shares.c src/convertd/shares.h \
	src/convertd/sources.c src/convertd/sources.h \
	src/convertd/status.c src/convertd/status.h src/convertd/status_metrics.c \
	src/convertd/syn_packet.c src/convertd/syn_packet.h \
	src/convertd/syscall_filter.c src/convertd/syscall_filter.h \
	src/convertd/sysctls.c src/convertd/sysctls.h \
	src/convertd/textfile.c src/convertd/textfile.h \
	src/convertd/user.c src/convertd/user.h \
	src/convertd/rights.c src/convertd/rights.h \
	src/convertd/warden_message.c src/convertd/warden_message.h \
	src/convertd/warden_policy.c src/convertd/warden_policy.h \
	src/common/json.c src/common/json.h
libconvertd_la_CFLAGS = $(AM_CFLAGS) $(MNL_CFLAGS) $(SODIUM_CFLAGS) $(SECCOMP_CFLAGS) -pthread
libconvertd_la_LIBADD = libcodec.la libcommon.la $(SODIUM_LIBS) $(SECCOMP_LIBS) $(LIBM)

sbin_PROGRAMS = convertd
convertd_SOURCES = src/convertd/main.c \
	src/convertd/acceptor.c src/convertd/acceptor.h \
	src/convertd/admission.c src/convertd/admission.h \
	src/convertd/ask.c src/convertd/ask.h \
	src/convertd/blame.c src/convertd/blame.h \
	src/convertd/capabilities.c src/convertd/capabilities.h \
	src/convertd/drain.c src/convertd/drain.h \
	src/convertd/downstream.c src/convertd/downstream.h src/convertd/plain_servers.c src/convertd/plain_servers.h \
	src/convertd/endpoint.c src/convertd/endpoint.h \
	src/convertd/handover.c src/convertd/handover.h \
	src/convertd/fastopen.c \
	src/convertd/hold_table.c src/convertd/hold_table.h src/convertd/hold.h \
	src/convertd/inherit.c src/convertd/inherit.h \
	src/convertd/listener.c src/convertd/listener.h \
	src/convertd/memory.c src/convertd/memory.h \
	src/convertd/monitor.c src/convertd/monitor.h \
	src/convertd/notify.c src/convertd/notify.h \
	src/convertd/own_look.c src/convertd/own_look.h \
	src/convertd/privileges.c src/convertd/privileges.h \
	src/convertd/probe.c src/convertd/probe.h \
	src/convertd/process.c \
	src/convertd/route.c \
	src/convertd/sandbox.c src/convertd/sandbox.h \
	src/convertd/service.c src/convertd/service.h \
	src/convertd/session.c src/convertd/session.h src/convertd/session_private.h \
	src/convertd/session_connect.c src/convertd/session_echo.c src/convertd/session_held.c \
	src/convertd/session_memory.c src/convertd/session_place.c \
	src/convertd/session_pool.c src/convertd/session_proof.c \
	src/convertd/session_report.c \
	src/convertd/session_states.c \
	src/convertd/shortage.c src/convertd/shortage.h \
	src/convertd/source_bind.c src/convertd/source_bind.h \
	src/convertd/surroundings.c src/convertd/surroundings.h \
	src/convertd/survivor.c src/convertd/survivor.h \
	src/convertd/syn_window.c src/convertd/syn_window.h \
	src/convertd/terms.c src/convertd/terms.h \
	src/convertd/uplink.c src/convertd/uplink.h \
	src/convertd/ward.c src/convertd/ward.h src/convertd/warden.c src/convertd/warden.h \
	src/convertd/warden_calls.c src/convertd/warden_calls.h src/convertd/warden_syns.h \
	src/convertd/windows.c src/convertd/windows.h \
	src/convertd/worker.c src/convertd/worker.h \
	src/common/endpoints.c src/common/endpoints.h \
	src/common/netlink.c src/common/netlink.h \
	src/common/sysctl.c src/common/sysctl.h
if HAVE_NETFILTER_QUEUE
convertd_SOURCES += src/convertd/hold.c src/convertd/holder.c src/convertd/holder.h \
	src/convertd/syn_queue.c src/convertd/syn_queue.h src/convertd/syn_rules.c src/convertd/syn_rules.h \
	src/convertd/queue_owner.c src/convertd/queue_owner.h src/convertd/warden_syns.c
else
convertd_SOURCES += src/convertd/hold_none.c src/convertd/warden_syns_none.c
endif
convertd_CFLAGS = $(AM_CFLAGS) $(EVENT_CFLAGS) $(MNL_CFLAGS) $(NFTABLES_CFLAGS) $(NFQUEUE_CFLAGS) $(CAP_NG_CFLAGS) $(MICROHTTPD_CFLAGS) -pthread
convertd_LDFLAGS = $(AM_LDFLAGS) -pthread
convertd_LDADD = libconvertd.la $(EVENT_LIBS) $(MNL_LIBS) $(NFTABLES_LIBS) $(NFQUEUE_LIBS) $(CAP_NG_LIBS) $(MICROHTTPD_LIBS)
dist_man_MANS += man/convertd.8
