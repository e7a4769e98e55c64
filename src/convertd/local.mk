# SPDX-License-Identifier: BSD-3-Clause
# the converter; what unit tests link is in libconvertd.la
noinst_LTLIBRARIES += libconvertd.la
libconvertd_la_SOURCES = src/convertd/policy/access.c src/convertd/policy/access.h \
	src/convertd/policy/admission.c src/convertd/policy/admission.h \
	src/convertd/base/blocks.c src/convertd/base/blocks.h \
	src/convertd/base/bucket.c src/convertd/base/bucket.h \
	src/convertd/base/clock.c src/convertd/base/clock.h \
	src/convertd/base/fdpass.c src/convertd/base/fdpass.h \
	src/convertd/base/listen_address.c src/convertd/base/listen_address.h \
	src/convertd/base/metrics_address.c src/convertd/base/metrics_address.h \
	src/convertd/process/notify_message.c src/convertd/process/notify_message.h \
	src/convertd/net/congestion.c src/convertd/net/congestion.h \
	src/convertd/policy/cookies.c src/convertd/policy/cookies.h \
	src/convertd/policy/demand.c src/convertd/policy/demand.h \
	src/convertd/policy/families.c src/convertd/policy/families.h \
	src/convertd/policy/far_clients.c src/convertd/policy/far_clients.h \
	src/convertd/net/fastopen.h \
	src/convertd/base/heap.c src/convertd/base/heap.h \
	src/convertd/policy/judgement.c src/convertd/policy/judgement.h \
	src/convertd/policy/limits_count.c src/convertd/policy/limits.h src/convertd/policy/limits_private.h \
	src/convertd/policy/limits_memory.c src/convertd/policy/limits_room.c \
	src/convertd/base/log.c src/convertd/base/log.h \
	src/convertd/policy/memory_budget.c src/convertd/policy/memory_budget.h \
	src/convertd/observe/metrics.c src/convertd/observe/metrics.h \
	src/convertd/base/notices.c src/convertd/base/notices.h \
	src/convertd/config/options.c src/convertd/config/options.h \
	src/convertd/policy/outcome.c src/convertd/policy/outcome.h \
	src/common/problems.c src/common/problems.h \
	src/convertd/policy/proof.c src/convertd/policy/proof.h \
	src/convertd/observe/resource_usage.h \
	src/convertd/observe/record.c src/convertd/observe/record.h \
	src/convertd/relay/relay.c src/convertd/relay/relay.h src/convertd/relay/fallback.c src/convertd/relay/fallback.h \
	src/convertd/relay/relay_memory.c src/convertd/relay/relay_memory.h \
	src/convertd/relay/relay_pipe.c src/convertd/relay/relay_pipe.h \
	src/convertd/relay/relay_watch.c src/convertd/relay/relay_watch.h \
	src/convertd/policy/request.c src/convertd/policy/request.h \
	src/convertd/net/route.h src/convertd/net/route_kind.h \
	src/convertd/policy/access_rules.c src/convertd/policy/access_rules.h \
	src/convertd/config/settings.c src/convertd/config/settings.h \
	src/convertd/config/settings_read.c src/convertd/config/settings_read.h \
	src/convertd/policy/session_state.c src/convertd/policy/session_state.h \
	src/convertd/policy/shares.c src/convertd/policy/shares.h \
	src/convertd/net/sources.c src/convertd/net/sources.h \
	src/convertd/observe/status.c src/convertd/observe/status.h src/convertd/observe/status_metrics.c \
	src/convertd/net/native_refusal.c src/convertd/net/native_refusal.h \
	src/convertd/net/syn_packet.c src/convertd/net/syn_packet.h \
	src/convertd/privilege/syscall_filter.c src/convertd/privilege/syscall_filter.h \
	src/convertd/process/sysctls.c src/convertd/process/sysctls.h \
	src/convertd/base/textfile.c src/convertd/base/textfile.h \
	src/convertd/config/user.c src/convertd/config/user.h \
	src/convertd/rights/rights.c src/convertd/rights/rights.h \
	src/convertd/rights/warden_message.c src/convertd/rights/warden_message.h \
	src/convertd/privilege/warden_policy.c src/convertd/privilege/warden_policy.h \
	src/common/json.c src/common/json.h \
	src/common/lines.c src/common/lines.h
libconvertd_la_CFLAGS = $(AM_CFLAGS) $(MNL_CFLAGS) $(SODIUM_CFLAGS) $(SECCOMP_CFLAGS) -pthread
libconvertd_la_LIBADD = libcodec.la libcommon.la $(SODIUM_LIBS) $(SECCOMP_LIBS) $(LIBM)

sbin_PROGRAMS = convertd
convertd_SOURCES = src/convertd/main.c \
	src/convertd/process/acceptor.c src/convertd/process/acceptor.h \
	src/convertd/observe/ask.c src/convertd/observe/ask.h \
	src/convertd/session/blame.c src/convertd/session/blame.h \
	src/convertd/privilege/capabilities.c src/convertd/privilege/capabilities.h \
	src/convertd/process/drain.c src/convertd/process/drain.h \
	src/convertd/net/downstream.c src/convertd/net/downstream.h src/convertd/net/plain_servers.c src/convertd/net/plain_servers.h \
	src/convertd/observe/endpoint.c src/convertd/observe/endpoint.h \
	src/convertd/process/handover.c src/convertd/process/handover.h \
	src/convertd/net/fastopen.c \
	src/convertd/session/withheld.c src/convertd/session/withheld.h src/convertd/session/request_context.h \
	src/convertd/process/withholding.h \
	src/convertd/process/inherit.c src/convertd/process/inherit.h \
	src/convertd/net/listener.c src/convertd/net/listener.h \
	src/convertd/observe/monitor.c src/convertd/observe/monitor.h \
	src/convertd/process/notify.c src/convertd/process/notify.h \
	src/convertd/privilege/privileges.c src/convertd/privilege/privileges.h \
	src/convertd/net/probe.c src/convertd/net/probe.h \
	src/convertd/observe/resource_usage.c \
	src/convertd/net/route.c \
	src/convertd/base/poller.c src/convertd/base/poller.h \
	src/convertd/net/route_memory.c src/convertd/net/route_memory.h \
	src/convertd/privilege/sandbox.c src/convertd/privilege/sandbox.h \
	src/convertd/process/service.c src/convertd/process/service.h \
	src/convertd/session/session.h src/convertd/session/session_private.h src/convertd/session/session_pool.c \
	src/convertd/session/session_answer.c src/convertd/session/session_answer.h \
	src/convertd/session/session_connect.c src/convertd/session/session_connect.h \
	src/convertd/session/session_count.c src/convertd/session/session_count.h \
	src/convertd/session/session_echo.c src/convertd/session/session_echo.h \
	src/convertd/session/session_life.c src/convertd/session/session_life.h \
	src/convertd/session/session_memory.c src/convertd/session/session_memory.h \
	src/convertd/session/session_proof.c src/convertd/session/session_proof.h \
	src/convertd/session/session_queue.c src/convertd/session/session_queue.h \
	src/convertd/session/session_relay.c src/convertd/session/session_relay.h \
	src/convertd/session/session_report.c src/convertd/session/session_report.h \
	src/convertd/session/session_request.c src/convertd/session/session_request.h \
	src/convertd/session/session_silence.c src/convertd/session/session_silence.h src/convertd/session/session_socket.c src/convertd/session/session_socket.h \
	src/convertd/session/session_states.c src/convertd/session/session_states.h \
	src/convertd/session/session_withheld.c src/convertd/session/session_withheld.h \
	src/convertd/observe/shortage.c src/convertd/observe/shortage.h \
	src/convertd/net/source_bind.c src/convertd/net/source_bind.h \
	src/convertd/process/family_routes.c src/convertd/process/family_routes.h \
	src/convertd/privilege/survivor.c src/convertd/privilege/survivor.h \
	src/convertd/syn/syn_window.h \
	src/convertd/config/terms.c src/convertd/config/terms.h \
	src/convertd/process/ward.c src/convertd/process/ward.h src/convertd/process/warden.c src/convertd/process/warden.h \
	src/convertd/process/warden_calls.c src/convertd/process/warden_calls.h src/convertd/syn/warden_syns.h \
	src/convertd/syn/windows.c src/convertd/syn/windows.h \
	src/convertd/process/worker.c src/convertd/process/worker.h \
	src/common/netlink.c src/common/netlink.h \
	src/common/service_manager.c src/common/service_manager.h \
	src/common/sysctl.c src/common/sysctl.h
if HAVE_NFTNL
convertd_SOURCES += src/convertd/syn/nft_rule.c src/convertd/syn/nft_rule.h \
	src/convertd/syn/nft_table.c src/convertd/syn/nft_table.h src/convertd/syn/syn_window.c
else
convertd_SOURCES += src/convertd/syn/syn_window_none.c
endif
if HAVE_NETFILTER_QUEUE
convertd_SOURCES += src/convertd/process/withholding.c src/convertd/syn/syn_attempt.c src/convertd/syn/syn_attempt.h src/convertd/syn/syn_judge.c src/convertd/syn/syn_judge.h \
	src/convertd/syn/syn_queue.c src/convertd/syn/syn_queue.h src/convertd/syn/syn_rules.c src/convertd/syn/syn_rules.h \
	src/convertd/syn/queue_owner.c src/convertd/syn/queue_owner.h src/convertd/syn/warden_syns.c
else
convertd_SOURCES += src/convertd/process/withholding_none.c src/convertd/syn/warden_syns_none.c
endif
convertd_CFLAGS = $(AM_CFLAGS) $(EVENT_CFLAGS) $(MNL_CFLAGS) $(NFTNL_CFLAGS) $(NFQUEUE_CFLAGS) $(CAP_NG_CFLAGS) $(MICROHTTPD_CFLAGS) -pthread
convertd_LDFLAGS = $(AM_LDFLAGS) -pthread
convertd_LDADD = libconvertd.la $(EVENT_LIBS) $(MNL_LIBS) $(NFTNL_LIBS) $(NFQUEUE_LIBS) $(CAP_NG_LIBS) $(MICROHTTPD_LIBS)
dist_man_MANS += man/convertd.8
dist_man_MANS += man/convertd.conf.5
EXTRA_DIST += src/convertd/README.md \
	src/convertd/base/README.md \
	src/convertd/net/README.md \
	src/convertd/policy/README.md \
	src/convertd/config/README.md \
	src/convertd/privilege/README.md \
	src/convertd/rights/README.md \
	src/convertd/relay/README.md \
	src/convertd/observe/README.md \
	src/convertd/session/README.md \
	src/convertd/syn/README.md \
	src/convertd/process/README.md
