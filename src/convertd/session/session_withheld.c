/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session_withheld.c - sessions whose SYN was withheld: the server's socket, or the error, is there already
 *
 * What was done for a SYN counts for the connection that came of it only if the request in its stream
 * is the same. It is, unless the data of the SYN wasn't taken and somebody sends something else then.
 */
#include "config.h"

#include "convertd/base/clock.h"
#include "convertd/base/poller.h"
#include "convertd/policy/demand.h"
#include "convertd/session/withheld.h"
#include "convertd/session/session_withheld.h"

#include <stdlib.h>
#include <sys/socket.h>

void session_take_withheld(struct session *s)
{
	struct withheld_table *table = s->pool->context.withheld;
	struct syn_packet_flow flow = { .source = sockaddr_ip_in6(&s->client),
					.source_port = sockaddr_ip_port(&s->client) };
	union sockaddr_ip local = { 0 };
	socklen_t len = sizeof(local);

	if (!withheld_count(table) ||
	    getsockname(s->relay.side[RELAY_UPSTREAM].fd, &local.sa, &len) < 0)
		return;
	flow.destination = sockaddr_ip_in6(&local);
	flow.destination_port = sockaddr_ip_port(&local);
	s->withheld = withheld_take(table, &flow);
	if (!s->withheld)
		return;
	s->started_us = s->withheld->came_us;
	s->far = s->withheld->far;
	/* The SYN was counted as pending; its session is counted since it was accepted. */
	limits_leave(s->pool->context.admission.limits, &s->withheld->member, clock_now_ms());
	if (s->withheld->unproven)
		demand_leave(s->pool->context.admission.demand);
}

void session_drop_withheld(struct session *s)
{
	if (!s->withheld)
		return;
	poller_forget(s->pool->context.poller, s->withheld->registration);
	withheld_syn_fini(s->withheld);
	free(s->withheld);
	s->withheld = NULL;
}

struct session_withheld session_open_withheld(struct session *s)
{
	struct withheld_syn *syn = s->withheld;
	struct session_withheld found = {
		.fd = syn->fd, .refusal = syn->refusal, .answered = syn->answered,
		.registration = syn->registration, .events = syn->events,
	};

	syn->fd = -1;
	syn->registration = POLLER_NONE;
	session_drop_withheld(s);
	return found;
}
