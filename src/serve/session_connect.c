/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session_connect.c - connects to the server of a request
 *
 * session_connect() connects to the server, or takes over the socket of an attempt that began while the SYN was withheld. It returns the
 * result and leaves the session's state alone: session_states.c carries the result out.
 */
#include "config.h"

#include "serve/session_parts.h"

#include "serve/plugs.h"
#include "serve/syn_judge.h"

#include "common/tcp.h"
#include "common/clock.h"
#include "daemon/log.h"
#include "daemon/poller.h"
#include "convertd/config/settings.h"
#include "convertd/net/downstream.h"
#include "daemon/metrics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct session_connection asked = { .result = SESSION_CONNECT_ASKED };

/* Returns that this host can't send an option that the client wants in the SYN. */
static struct session_connection unsupported(uint8_t option, const char *reason)
{
	return (struct session_connection){ .result = SESSION_CONNECT_UNSUPPORTED, .option = option, .reason = reason };
}

/* Warns that we can't connect from that source address. We try no other one, as a client keeps its source address. */
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

/* Sets the deadline. If it is long enough it has two parts: at the end of the first we determine which side failed. */
static void set_connect_deadline(struct session *s, enum session_timeout timeout)
{
	s->rest = timeout == SESSION_TIMEOUT_CONNECT ? SESSION_TIMEOUT_CONNECT_REST :
						       SESSION_TIMEOUT_CONNECT_WITHHELD_REST;
	if (!s->pool->timeout_ms[SESSION_TIMEOUT_PATIENCE])
		s->rest = 0;
	session_set_deadline(s, s->rest ? SESSION_TIMEOUT_PATIENCE : timeout);
}

/*
 * Waits for the server's answer, for @timeout at most.
 * @error: the -errno of a failed connect(), or 0
 * @early, @len: the bytes behind the request, which the server hasn't got yet
 */
static struct session_connection await_server(struct session *s, int error, const uint8_t *early, size_t len,
					      enum session_timeout timeout)
{
	if (error)
		return (struct session_connection){ .result = SESSION_CONNECT_FAILED, .error = error };
	if (relay_prepend(&s->relay, RELAY_UPSTREAM, early, len) < 0)
		return (struct session_connection){ .result = SESSION_CONNECT_NO_MEMORY };
	set_connect_deadline(s, timeout);
	return asked;
}

/* Takes over the attempt that began while the SYN was withheld. */
static struct session_connection connect_withheld(struct session *s, const uint8_t *early, size_t len)
{
	struct syn_attempt *a = s->withheld;
	const struct syn_attempt found = *a;
	int error = 0;

	a->fd = -1;
	a->registration = POLLER_NONE;
	session_drop_withheld(s);
	if (found.fd < 0)
		return (struct session_connection){ .result = SESSION_CONNECT_REFUSED, .refusal = found.refusal };
	s->mptcp = s->mptcp && downstream_asks_mptcp(found.fd);
	s->syn.answered = found.reached;
	/* As a rule the server has answered already: we needn't wait for the event. */
	s->relay.side[RELAY_DOWNSTREAM].writable = true;
	if (found.registration != POLLER_NONE)
		session_adopt_downstream(s, found.fd, found.registration, found.events);
	else
		error = session_watch_downstream(s, found.fd) < 0 ? -ENOMEM : 0;
	return await_server(s, error, early, len, SESSION_TIMEOUT_CONNECT_WITHHELD);
}

/* Begins to connect to the server now. */
static struct session_connection connect_now(struct session *s, const struct request_decision *decision,
					     const uint8_t *early, size_t len)
{
	const struct settings *settings = s->pool->context.effective->settings;
	struct downstream_plan plan = {
		.server = &s->server, .data_follows = len > 0, .congestion = settings->congestion_server,
		.route = s->pool->context.route,
	};
	int fd;

	plan.mptcp = s->mptcp = decision->mptcp && !plain_servers_has(&s->server);
	s->trusted = plan.confirmed = s->confirmed;
	plan.choice = sources_choose(&settings->sources, &s->client, &s->server, &plan.source);
	fd = s->pool->context.plugs->dial.connect(&plan);
	/* Somebody has switched net.mptcp.enabled off since the start. */
	if (s->mptcp && (fd == -ENOPROTOOPT || fd == -EPROTONOSUPPORT))
		return unsupported(TCP_KIND_MPTCP, "MPTCP is off on this host");
	if (fd == -EADDRNOTAVAIL && plan.choice != SOURCES_ANY)
		tell_source(s->pool, &plan.source);
	if (fd >= 0 && session_watch_downstream(s, fd) < 0)
		fd = -ENOMEM;
	return await_server(s, fd < 0 ? fd : 0, early, len, SESSION_TIMEOUT_CONNECT);
}

struct session_connection session_connect(struct session *s, const struct request_decision *decision,
					  const uint8_t *early, size_t len)
{
	s->info = decision->info;
	s->mptcp = decision->mptcp;
	/* The request of a withheld SYN came with the SYN, and its server was asked then. */
	s->request_us = s->withheld ? 1 : session_age_us(s);
	metrics_observe_us(s->pool->context.metrics, METRIC_REQUEST_SECONDS, s->request_us);
	metrics_add(s->pool->context.metrics, METRIC_REQUESTS + s->syn.data, 1);
	return s->withheld ? connect_withheld(s, early, len) : connect_now(s, decision, early, len);
}

bool session_queue_response(struct session *s, const struct tcp_info *info)
{
	uint8_t options[DOWNSTREAM_OPTIONS_MAX], answer[CONVERT_MESSAGE_MAX];
	size_t len = downstream_options(s->relay.side[RELAY_DOWNSTREAM].fd, info, s->mptcp, options);

	len = request_write_connected(&s->pool->context.effective->features, s->info, options, len, answer);
	return session_queue_answer(s, answer, len);
}
