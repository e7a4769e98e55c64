/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session_held.c - sessions whose SYN was withheld: the server's socket, or the error, is there already
 *
 * What was done for a SYN counts for the connection that came of it only if the request in its stream
 * is the same. It is, unless the data of the SYN wasn't taken and somebody sends something else then.
 */
#include "config.h"

#include "convertd/policy/demand.h"
#include "convertd/base/clock.h"
#include "convertd/syn/hold_table.h"
#include "convertd/session/session_private.h"

#include <stdlib.h>
#include <sys/socket.h>

void session_take_held(struct session *s)
{
	struct hold_table *table = s->pool->shared->held;
	struct syn_packet_flow flow = { .source = sockaddr_ip_in6(&s->client),
					.source_port = sockaddr_ip_port(&s->client) };
	union sockaddr_ip local = { 0 };
	socklen_t len = sizeof(local);

	if (!hold_table_count(table) ||
	    getsockname(s->relay.side[RELAY_UPSTREAM].fd, &local.sa, &len) < 0)
		return;
	flow.destination = sockaddr_ip_in6(&local);
	flow.destination_port = sockaddr_ip_port(&local);
	s->held = hold_table_take(table, &flow);
	if (!s->held)
		return;
	s->started_us = s->held->came_us;
	/* It was counted as pending; the session is as well. */
	limits_leave(s->pool->shared->limits, &s->held->member, clock_now_ms());
	if (s->held->unproven)
		demand_leave(s->pool->shared->demand);
}

void session_drop_held(struct session *s)
{
	if (!s->held)
		return;
	held_syn_fini(s->held);
	free(s->held);
	s->held = NULL;
}

int session_open_held(struct session *s, struct downstream_error *refusal)
{
	int fd = s->held->fd;

	*refusal = s->held->refusal;
	s->held->fd = -1;
	session_drop_held(s);
	return fd;
}
