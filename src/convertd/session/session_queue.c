/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session_queue.c - the sessions of a pool that are to run: in the next round, or at the end of this one
 *
 * A session that has more to do than fits into a round of the event loop waits for the next one, behind all others. A
 * session with an event waits for the end of the round, as its other socket may have an event in the same round. Both
 * are in one queue, which the pool's event "feed" empties (session_pool.c).
 */
#include "config.h"

#include "convertd/session/session_queue.h"

#include <event2/event.h>
#include <utlist.h>

void session_unqueue(struct session *s)
{
	if (s->queued)
		DL_DELETE2(s->pool->hungry, s, queue_prev, queue_next);
	s->queued = false;
}

static void enqueue(struct session *s)
{
	DL_APPEND2(s->pool->hungry, s, queue_prev, queue_next);
	s->queued = true;
}

void session_set_hungry(struct session *s)
{
	static const struct timeval now = { 0, 0 };

	if (s->queued)
		return;
	event_add(s->pool->feed, &now);
	enqueue(s);
}

void session_set_due(struct session *s)
{
	/* Behind the events that are active already. */
	event_active(s->pool->feed, EV_TIMEOUT, 0);
	if (!s->queued)
		enqueue(s);
}
