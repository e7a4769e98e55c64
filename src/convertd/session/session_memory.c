/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session_memory.c - the kernel memory that sessions of one worker hold: who is looked at, and when
 *
 * Only sessions on which much has gone at once, or whose one side didn't take all, are looked at, four times a
 * second as long as they hold something worth it: those that carry small messages never are. What is seen
 * goes to the limits (limits_memory.c), which know who has to go.
 *
 * A session in which both directions have ended is closed when its bytes have arrived, if they are many: the kernel
 * would keep the buffers of a closed socket as well, for minutes, and nobody could say whose they are.
 */
#include "config.h"

#include "convertd/session/session_memory.h"

#include "convertd/base/clock.h"
#include "convertd/observe/metrics.h"
#include "convertd/session/session_queue.h"

#include <event2/event.h>
#include <linux/mptcp.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <utlist.h>

/* How often sessions are looked at, and how many at a time: the rest have their turn before these come again. */
#define LOOK_US (250 * 1000)
#define LOOKS_MAX 1024

/* For so long at most a session stays for bytes that nobody takes. */
#define LINGER_MS 120000

/* A session that holds fewer bytes isn't looked at: an idle connection's buffers may take as much. */
#define WORTH_MIN (64 * 1024)

/* Tells the metrics and the limits what the session holds. */
static void tell(struct session *s)
{
	const struct relay_memory *memory = &s->memory;

	metrics_add(s->pool->context.metrics, METRIC_MEMORY, memory->bytes - s->memory_told);
	s->memory_told = memory->bytes;
	limits_hold(s->pool->context.admission.limits, &s->member, memory->bytes, memory->stalled_ms);
}

static void look_no_more(struct session *s)
{
	DL_DELETE2(s->pool->heavy, s, heavy_prev, heavy_next);
	s->heavy = false;
	s->memory = (struct relay_memory){ 0 };
	tell(s);
}

void session_memory_note(struct session *s)
{
	static const struct timeval look = { .tv_usec = LOOK_US };

	if (s->heavy || !relay_memory_may_grow(&s->relay))
		return;
	if (!s->pool->heavy)
		event_add(s->pool->look, &look);
	DL_APPEND2(s->pool->heavy, s, heavy_prev, heavy_next);
	s->heavy = true;
}

void session_memory_forget(struct session *s)
{
	if (s->heavy)
		look_no_more(s);
}

/* Has the kernel given the connection up? Of Multipath TCP, with one subflow, it says so only a minute later. */
static bool is_given_up(int fd)
{
	struct tcp_info info = { 0 };
	struct mptcp_info mptcp = { 0 };
	socklen_t len = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0 || info.tcpi_state != TCP_CLOSE)
		return false;
	len = sizeof(mptcp);
	return getsockopt(fd, SOL_MPTCP, MPTCP_INFO, &mptcp, &len) < 0 || !mptcp.mptcpi_subflows;
}

bool session_memory_lingers(struct session *s)
{
	const struct relay_side *side = s->relay.side;

	if (!s->heavy || s->memory.stalled_ms > LINGER_MS || relay_memory_unsent(&s->relay) < WORTH_MIN ||
	    is_given_up(side[RELAY_UPSTREAM].fd) || is_given_up(side[RELAY_DOWNSTREAM].fd))
		return false;
	/* The last FIN would have been close()'s. */
	for (int end = 0; end < RELAY_ENDS; end++)
		shutdown(s->relay.side[end].fd, SHUT_WR);
	return true;
}

static void look_at(struct session *s)
{
	relay_memory_look(&s->memory, &s->relay, clock_now_ms());
	if (s->memory.bytes < WORTH_MIN)
		look_no_more(s);
	else
		tell(s);
	/* What has ended may have arrived. */
	if (s->state == SESSION_RELAY && s->relay.flow[RELAY_UPSTREAM].shut &&
	    s->relay.flow[RELAY_DOWNSTREAM].shut)
		session_set_due(s);
}

static void on_look(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval again = { .tv_usec = LOOK_US };
	struct session_pool *pool = arg;
	struct session *last = pool->heavy ? pool->heavy->heavy_prev : NULL;
	bool more = last != NULL;

	(void)fd;
	(void)what;
	for (int i = 0; more && i < LOOKS_MAX; i++) {
		struct session *s = pool->heavy;

		more = s != last;
		/* To the end: others have their turn. */
		DL_DELETE2(pool->heavy, s, heavy_prev, heavy_next);
		DL_APPEND2(pool->heavy, s, heavy_prev, heavy_next);
		look_at(s);
	}
	if (pool->heavy)
		event_add(pool->look, &again);
}

int session_memory_init(struct session_pool *pool)
{
	pool->look = event_new(pool->context.base, -1, 0, on_look, pool);
	return pool->look ? 0 : -1;
}

void session_memory_fini(struct session_pool *pool)
{
	if (pool->look)
		event_free(pool->look);
}
