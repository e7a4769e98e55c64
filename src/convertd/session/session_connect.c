/* SPDX-License-Identifier: BSD-3-Clause */
/* session_connect.c - what the connection to the server is to be like, and what became of it */
#include "config.h"

#include "convertd/session/session_private.h"

#include "convertd/base/clock.h"
#include "convertd/base/tcp_option.h"

#include "convertd/net/downstream.h"
#include "convertd/net/fastopen.h"
#include "convertd/base/log.h"
#include "convertd/observe/metrics.h"
#include "convertd/policy/own.h"
#include "convertd/net/plain_servers.h"
#include "convertd/config/settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What the client wanted in the SYN can't be there. */
static void refuse_option(struct session *s, uint8_t kind, const char *outcome)
{
	uint8_t answer[CONVERT_MESSAGE_MAX];
	size_t len = request_write_unsupported(&s->pool->context.terms->features, s->info, &kind, 1, answer);

	session_refuse(s, answer, len, outcome);
}

/*
 * Section 7.6. The SYN will have the kernel's cookie, and the client's has to be the same: another
 * one can't be given to the kernel. Data goes with the SYN for a client that has sent a cookie,
 * as that says that the data may arrive twice (RFC 7413 2.1).
 * Returns false where the session has been refused.
 */
static bool plan_fastopen(struct session *s, const struct request_decision *decision,
			  struct downstream_plan *plan)
{
	const struct convert_span *cookie = &decision->fastopen_cookie;
	struct fastopen_cookie kernels;

	if (!decision->fastopen)
		return true;
	if (!s->pool->fastopen) {
		refuse_option(s, TCP_KIND_FASTOPEN, "Fast Open cookies aren't known");
		return false;
	}
	if (cookie->len) {
		fastopen_find(s->pool->fastopen, &plan->source, &s->server, &kernels);
		if (!fastopen_equal(&kernels, cookie->data, cookie->len)) {
			refuse_option(s, TCP_KIND_FASTOPEN, "not the server's Fast Open cookie");
			return false;
		}
	} else {
		kernels.len = 0;
		plan->len = 0;
	}
	s->fastopen = malloc(sizeof(*s->fastopen));
	if (!s->fastopen) {
		session_close(s, OUTCOME_OUT_OF_MEMORY);
		return false;
	}
	*s->fastopen = kernels;
	plan->fastopen = true;
	return true;
}

/* A client keeps its address, so another one isn't tried. */
static void tell_source(struct session_pool *pool, const union sockaddr_ip *source)
{
	struct in6_addr address = sockaddr_ip_in6(source);
	struct prefix single = prefix_of(&address, 128);
	char text[PREFIX_STRLEN];
	unsigned suppressed;

	if (log_limit_pass(&pool->shared->sources, &suppressed))
		log_warning("no connection from %s: its ports towards this server are used up, or "
			    "it is no longer this host's; add sources, or the address (%u more "
			    "since the last such line)",
			    prefix_format(&single, text), suppressed);
}

uint64_t session_age_us(const struct session *s)
{
	uint64_t age = clock_now_us() - s->started_us;

	return age ? age : 1;
}

/* In two parts, if it is long enough. */
static void set_connect_deadline(struct session *s, enum session_timeout timeout)
{
	s->rest = timeout == SESSION_TIMEOUT_CONNECT ? SESSION_TIMEOUT_CONNECT_REST :
						       SESSION_TIMEOUT_CONNECT_WITHHELD_REST;
	if (!s->pool->timeout_ms[SESSION_TIMEOUT_PATIENCE])
		s->rest = 0;
	session_set_deadline(s, s->rest ? SESSION_TIMEOUT_PATIENCE : timeout);
}

/* Waits for the answer of a server that was asked, for so long at most. @fd: its socket, or -errno */
static void await_server(struct session *s, int fd, const uint8_t *early, size_t len,
			 enum session_timeout timeout)
{
	if (fd >= 0 && session_watch_downstream(s, fd) < 0)
		fd = -ENOMEM;
	if (fd < 0) {
		session_fail_server(s, fd);
		return;
	}
	if (relay_prepend(&s->relay, RELAY_UPSTREAM, early, len) < 0) {
		session_close(s, OUTCOME_OUT_OF_MEMORY);
		return;
	}
	set_connect_deadline(s, timeout);
	session_set_state(s, SESSION_CONNECTING);
}

/* The server was asked while the SYN was withheld. */
static void connect_withheld(struct session *s, const uint8_t *early, size_t len)
{
	struct downstream_error refusal;
	int fd = session_open_withheld(s, &refusal);

	if (fd < 0) {
		session_refuse_server(s, refusal);
		return;
	}
	s->mptcp = s->mptcp && downstream_asks_mptcp(fd);
	/* As a rule it has answered already: no need to wait for its event. */
	s->relay.side[RELAY_DOWNSTREAM].writable = true;
	await_server(s, fd, early, len, SESSION_TIMEOUT_CONNECT_WITHHELD);
}

void session_connect(struct session *s, const struct request_decision *decision,
		     const uint8_t *early, size_t len)
{
	struct downstream_plan plan = {
		.server = &s->server, .data = early, .len = len,
		.data_follows = len > 0, .congestion = s->pool->context.terms->settings->congestion_server,
		.route = s->pool->context.route,
	};
	size_t taken;
	int fd;

	s->info = decision->info;
	s->mptcp = decision->mptcp;
	/* It came with the SYN, where that was withheld, and so its server was asked then. */
	s->request_us = s->withheld ? 1 : session_age_us(s);
	metrics_observe_us(s->pool->context.metrics, METRIC_REQUEST_SECONDS, s->request_us);
	metrics_add(s->pool->context.metrics, METRIC_REQUESTS + s->syn_data, 1);
	s->own_generation = own_generation();
	if (s->withheld) {
		session_look_early(s, early, len);
		connect_withheld(s, early, len);
		return;
	}
	session_look_early(s, early, len);
	plan.mptcp = s->mptcp = decision->mptcp && !plain_servers_has(&s->server);
	s->trusted = plan.confirmed = s->confirmed;
	plan.choice = sources_choose(&s->pool->context.terms->settings->sources, &s->client, &s->server,
				     &plan.source);
	if (!plan_fastopen(s, decision, &plan))
		return;
	fd = downstream_connect(&plan, &taken);
	if (s->mptcp && (fd == -ENOPROTOOPT || fd == -EPROTONOSUPPORT)) {
		/* It was switched off since the start: net.mptcp.enabled; net.ipv4.tcp_fastopen. */
		refuse_option(s, TCP_KIND_MPTCP, "MPTCP is off on this host");
		return;
	}
	if (s->fastopen && fd == -EOPNOTSUPP) {
		refuse_option(s, TCP_KIND_FASTOPEN, "Fast Open is off on this host");
		return;
	}
	if (fd == -EADDRNOTAVAIL && plan.choice != SOURCES_ANY)
		tell_source(s->pool, &plan.source);
	s->relay.flow[RELAY_UPSTREAM].bytes = taken;
	await_server(s, fd, early + taken, len - taken, SESSION_TIMEOUT_CONNECT);
}

size_t session_server_options(struct session *s, const struct tcp_info *info, uint8_t *out)
{
	int fd = s->relay.side[RELAY_DOWNSTREAM].fd;
	struct fastopen_cookie cookie = { 0 };
	union sockaddr_ip source = { 0 };
	socklen_t len = sizeof(source);

	if (s->fastopen) {
		if (getsockname(fd, &source.sa, &len) < 0)
			source.sa.sa_family = AF_UNSPEC;
		fastopen_find(s->pool->fastopen, &source, &s->server, &cookie);
		/* What the client has sent isn't in the SYN+ACK. */
		if (fastopen_equal(&cookie, s->fastopen->bytes, s->fastopen->len))
			cookie.len = 0;
		free(s->fastopen);
		s->fastopen = NULL;
	}
	return downstream_options(fd, info, s->mptcp, &cookie, out);
}
