/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session_pool.c - the sessions of one worker: their time-outs, the ones that have to go, and the kernel memory that they hold
 *
 * A pool belongs to one thread. But limits count over all pools, and the session that has to make room for a newcomer may be another
 * worker's (limits.c), which we can't touch. So an eventfd wakes that worker's pool, which asks the limits for its members that have to go.
 * The limits no longer count these, so for a moment there may be more than they allow.
 *
 * We watch the kernel memory only of sessions that have carried much at once, or of which one side didn't take all bytes: four times a
 * second while they hold enough. Sessions with small messages are never watched. The results go to the limits (limits.c), which choose the
 * sessions that have to go.
 *
 * If many bytes are under way when both directions of a session have ended, we close it only after they have arrived: the kernel would keep
 * the buffers of a closed socket as well, for minutes, and we couldn't tell whose they are.
 */
#include "config.h"

#include "serve/session_parts.h"

#include "serve/plugs.h"

#include "common/clock.h"
#include "daemon/metrics.h"

#include <errno.h>
#include <event2/event.h>
#include <linux/mptcp.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

/* Runs the queued sessions. Sessions that are queued meanwhile wait for the next round. */
static void on_run(evutil_socket_t fd, short what, void *arg)
{
	struct session_pool *pool = arg;
	struct session *last = pool->runnable ? pool->runnable->queue_prev : NULL;
	bool more = last != NULL;

	(void)fd;
	(void)what;
	while (more) {
		struct session *s = pool->runnable;

		more = s != last;
		session_unqueue(s);
		session_advance(s);
	}
}

/* ----- the kernel memory that the sessions of one worker hold ----- */

/* The interval between looks, and the sessions looked at in one of them: the others have their turn before these come again. */
static const struct timeval look_interval = { .tv_usec = 250 * 1000 };
#define LOOKS_MAX 1024

/* The longest time that a session stays for bytes that its peer doesn't take. */
#define LINGER_MS 120000

/* We don't watch a session that holds fewer bytes: an idle connection's buffers may take as much. */
#define WORTH_MIN (64 * 1024)

/* Reports the session's memory to the metrics and the limits. */
static void report_memory(struct session *s)
{
	const struct relay_memory *memory = &s->memory.seen;

	metrics_add(s->pool->context.metrics, METRIC_MEMORY, memory->bytes - s->memory.reported);
	s->memory.reported = memory->bytes;
	limits_note_memory(s->pool->context.limits, &s->member, memory->bytes, memory->stalled_ms);
}

static void look_no_more(struct session *s)
{
	DL_DELETE2(s->pool->heavy, s, memory.prev, memory.next);
	s->memory.heavy = false;
	s->memory.seen = (struct relay_memory){ 0 };
	report_memory(s);
}

void session_memory_note(struct session *s)
{
	if (s->memory.heavy || !relay_memory_may_grow(&s->relay))
		return;
	if (!s->pool->heavy)
		event_add(s->pool->look, &look_interval);
	DL_APPEND2(s->pool->heavy, s, memory.prev, memory.next);
	s->memory.heavy = true;
}

void session_memory_forget(struct session *s)
{
	if (s->memory.heavy)
		look_no_more(s);
}

/* Returns whether the kernel has given the connection up. For Multipath TCP with one subflow it reports that only a minute later. */
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

bool session_linger(struct session *s)
{
	const struct relay_side *side = s->relay.side;

	if (!s->memory.heavy || s->memory.seen.stalled_ms > LINGER_MS || relay_memory_unsent(&s->relay) < WORTH_MIN ||
	    is_given_up(side[RELAY_UPSTREAM].fd) || is_given_up(side[RELAY_DOWNSTREAM].fd))
		return false;
	/* Sends the FIN, as close() would have done. */
	for (int end = 0; end < RELAY_ENDS; end++)
		shutdown(s->relay.side[end].fd, SHUT_WR);
	return true;
}

static void look_at(struct session *s)
{
	relay_memory_look(&s->memory.seen, &s->relay, clock_now_ms());
	if (s->memory.seen.bytes < WORTH_MIN)
		look_no_more(s);
	else
		report_memory(s);
	/* The last bytes may have arrived. */
	if (s->state == SESSION_RELAY && s->relay.flow[RELAY_UPSTREAM].shut &&
	    s->relay.flow[RELAY_DOWNSTREAM].shut)
		session_run_soon(s);
}

static void on_look(evutil_socket_t fd, short what, void *arg)
{
	struct session_pool *pool = arg;
	struct session *last = pool->heavy ? pool->heavy->memory.prev : NULL;
	bool more = last != NULL;

	(void)fd;
	(void)what;
	for (int i = 0; more && i < LOOKS_MAX; i++) {
		struct session *s = pool->heavy;

		more = s != last;
		/* Moves to the end of the list, so that the others have their turn. */
		DL_DELETE2(pool->heavy, s, memory.prev, memory.next);
		DL_APPEND2(pool->heavy, s, memory.prev, memory.next);
		look_at(s);
	}
	if (pool->heavy)
		event_add(pool->look, &look_interval);
}

/* ----- evicted sessions ----- */

static void wake(struct limits_owner *owner)
{
	struct session_pool *pool = (struct session_pool *)((char *)owner - offsetof(struct session_pool, context.owner));

	/* The write fails only if the eventfd's counter is full, and then the worker is awake already. */
	eventfd_write(pool->evictions_fd, 1);
}

static void on_evictions(evutil_socket_t fd, short what, void *arg)
{
	struct session_pool *pool = arg;
	struct limits_member *member;
	enum outcome reason;
	eventfd_t count;

	(void)what;
	if (eventfd_read(fd, &count) < 0)
		return;
	while ((member = limits_next_evicted(pool->context.limits, &pool->context.owner, &reason)))
		member->kind->make_room(member, reason);
}

/* ----- the pool itself ----- */

static int watch_evictions(struct session_pool *pool)
{
	pool->context.owner.wake = wake;
	pool->evictions_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (pool->evictions_fd < 0)
		return -errno;
	pool->evictions = event_new(pool->context.base, pool->evictions_fd, EV_READ | EV_PERSIST, on_evictions, pool);
	return pool->evictions && event_add(pool->evictions, NULL) == 0 ? 0 : -ENOMEM;
}

int session_pool_init(struct session_pool *pool, struct event_base *base,
		      struct session_shared *shared)
{
	int error;

	memset(pool, 0, sizeof(*pool));
	pool->context = (struct serve_context){
		.base = base, .plugs = shared->plugs, .limits = shared->limits, .withheld = shared->withheld,
	};
	pool->shared = shared;
	error = watch_evictions(pool);
	pool->look = event_new(base, -1, 0, on_look, pool);
	pool->run = event_new(base, -1, 0, on_run, pool);
	pool->scratch = malloc(RELAY_SCRATCH_SIZE);
	blocks_init(&pool->blocks, sizeof(struct session) + event_get_struct_event_size());
	relay_pipes_init(&pool->pipes);
	if (!error && (!pool->look || !pool->run || !pool->scratch))
		error = -ENOMEM;
	if (!error)
		pool->context.poller = poller_create(base);
	if (!error && !pool->context.poller)
		error = -errno;
	if (!error)
		error = shared->plugs->start(&pool->context, shared->plugs->arg);
	if (error)
		session_pool_fini(pool);
	else
		pool->pipes.in_use = &pool->context.metrics->values[METRIC_PIPES];
	return error;
}

void session_pool_configure(struct session_pool *pool, const struct serve_settings *settings)
{
	struct session *s;

	session_decide_timeouts(settings, pool->timeout_ms);
	if (pool->context.plugs->configure)
		pool->context.plugs->configure(&pool->context, settings);
	pool->context.settings = settings;
	pool->context.single_worker = pool->shared->pool_count == 1;
	/* One pipe counts among the worker's own descriptors. */
	pool->pipes.max = 1 + settings->pipes_max / pool->shared->pool_count;
	DL_FOREACH(pool->sessions, s)
		if (s->state == SESSION_RELAY && s->answered && !relay_has_failed(&s->relay))
			session_set_deadline(s, SESSION_TIMEOUT_LOOK);
}

void session_pool_fini(struct session_pool *pool)
{
	struct session *s, *next;

	DL_FOREACH_SAFE(pool->sessions, s, next)
	{
		if (s->state != SESSION_REFUSING || !s->answered)
			session_cut(s);
		session_close(s, OUTCOME_STOPPED);
		session_advance(s);
	}
	if (pool->context.plugs->stop)
		pool->context.plugs->stop(&pool->context);
	poller_destroy(pool->context.poller);
	if (pool->run)
		event_free(pool->run);
	if (pool->look)
		event_free(pool->look);
	if (pool->evictions)
		event_free(pool->evictions);
	if (pool->evictions_fd >= 0)
		close(pool->evictions_fd);
	free(pool->scratch);
	blocks_fini(&pool->blocks);
	relay_pipes_fini(&pool->pipes);
}
