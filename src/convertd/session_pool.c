/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session_pool.c - the sessions of one worker: their queues, their time-outs, who has to go
 *
 * A pool belongs to one thread. Limits count over all pools, and where pending sessions are too
 * many in all, the one that has waited longest for its client's bytes gives way, whichever pool it
 * is in. Another worker's session can't be touched: its pool is told by an eventfd how many have
 * to go, and the limits take them for gone meanwhile. What that pool finds may have changed by
 * then; the limit may be exceeded by as many for that moment.
 */
#include "config.h"

#include "convertd/session_private.h"

#include "convertd/fastopen.h"
#include "convertd/metrics.h"
#include "convertd/monitor.h"
#include "convertd/route.h"
#include "convertd/settings.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utlist.h>

/* libevent's limit, MAX_COMMON_TIMEOUTS. */
#define COMMON_TIMEOUTS_MAX 256

/* A relay is looked at so often at least. */
#define LOOK_MAX_SECONDS 60

#define NOBODY_WAITS UINT64_MAX

/* ----- queues ----- */

static void note_waiting(struct session_pool *pool)
{
	uint64_t since = pool->waiting ? pool->waiting->started_us / 1000 : NOBODY_WAITS;

	atomic_store_explicit(&pool->waiting_since_ms, since, memory_order_relaxed);
}

void session_unqueue(struct session *s)
{
	struct session_pool *pool = s->pool;

	if (s->queue == SESSION_QUEUE_WAITING) {
		DL_DELETE2(pool->waiting, s, queue_prev, queue_next);
		note_waiting(pool);
	} else if (s->queue == SESSION_QUEUE_HUNGRY) {
		DL_DELETE2(pool->hungry, s, queue_prev, queue_next);
	}
	s->queue = SESSION_QUEUE_NONE;
}

void session_set_waiting(struct session *s)
{
	if (s->queue != SESSION_QUEUE_NONE)
		return;
	DL_APPEND2(s->pool->waiting, s, queue_prev, queue_next);
	s->queue = SESSION_QUEUE_WAITING;
	note_waiting(s->pool);
}

void session_set_hungry(struct session *s)
{
	static const struct timeval now = { 0, 0 };

	if (s->queue != SESSION_QUEUE_NONE)
		return;
	event_add(s->pool->feed, &now);
	DL_APPEND2(s->pool->hungry, s, queue_prev, queue_next);
	s->queue = SESSION_QUEUE_HUNGRY;
}

void session_set_due(struct session *s)
{
	/* Behind the events that are active already. */
	event_active(s->pool->feed, EV_TIMEOUT, 0);
	if (s->queue != SESSION_QUEUE_NONE)
		return;
	DL_APPEND2(s->pool->hungry, s, queue_prev, queue_next);
	s->queue = SESSION_QUEUE_HUNGRY;
}

/* Sessions that get hungry again meanwhile wait for the next round. */
static void on_feed(evutil_socket_t fd, short what, void *arg)
{
	struct session_pool *pool = arg;
	struct session *last = pool->hungry ? pool->hungry->queue_prev : NULL;
	bool more = last != NULL;

	(void)fd;
	(void)what;
	while (more) {
		struct session *s = pool->hungry;

		more = s != last;
		session_unqueue(s);
		session_advance(s);
	}
}

/* ----- who has to go ----- */

static void drop_first_waiting(struct session_pool *pool)
{
	struct session *s = pool->waiting;

	session_drop(s, OUTCOME_LIMIT_PENDING);
	session_advance(s);
}

/* Another pool needs room. */
static void on_evict(evutil_socket_t fd, short what, void *arg)
{
	struct session_pool *pool = arg;
	eventfd_t count = 0;

	(void)what;
	if (eventfd_read(fd, &count) < 0)
		return;
	for (; count; count--) {
		if (pool->waiting && limits_leave_still_needed(pool->shared->limits))
			drop_first_waiting(pool);
		limits_expect_no_leave(pool->shared->limits);
	}
}

/* The pool whose first has waited longest; NULL if none waits anywhere. */
static struct session_pool *longest_waiting(const struct session_shared *shared)
{
	struct session_pool *longest = NULL;
	uint64_t since = NOBODY_WAITS;

	for (size_t i = 0; i < shared->pool_count; i++) {
		uint64_t its = atomic_load_explicit(&shared->pools[i]->waiting_since_ms,
						    memory_order_relaxed);

		if (its < since) {
			longest = shared->pools[i];
			since = its;
		}
	}
	return longest;
}

void session_pool_make_room(struct session_pool *pool, const struct session *newcomer)
{
	struct limits *limits = pool->shared->limits;
	struct session_pool *from;

	if (limits_client_exceeded(limits, newcomer->account) != OUTCOME_NONE ||
	    limits_total_exceeded(limits) == OUTCOME_NONE)
		return;
	from = longest_waiting(pool->shared);
	if (from == pool) {
		drop_first_waiting(pool);
	} else if (from) {
		limits_expect_leave(limits);
		if (eventfd_write(from->evict_fd, 1) < 0)
			limits_expect_no_leave(limits);
	}
}

/* ----- the pool itself ----- */

/*
 * Many timers of one duration are cheaper in a queue of their own. libevent has 256 of these and
 * never frees one: where reloads have used them up, timers are the ordinary ones.
 */
static void set_timeout(struct session_pool *pool, enum session_timeout which, unsigned ms)
{
	struct timeval timeout = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
	const struct timeval *common = NULL;

	if (pool->timeout_ms[which] == ms)
		return;
	if (pool->common_timeouts < COMMON_TIMEOUTS_MAX) {
		pool->common_timeouts++;
		common = event_base_init_common_timeout(pool->base, &timeout);
	}
	pool->timeouts[which] = common ? *common : timeout;
	pool->timeout_ms[which] = ms;
}

/* An eighth of the shortest time-out of relays: none is late by more. Once a minute at least. */
static unsigned look_ms(const struct settings *settings)
{
	const unsigned timeouts[] = { settings->stall_timeout, settings->half_close_timeout,
				      settings->idle_timeout };
	unsigned shortest = 0;

	for (size_t i = 0; i < sizeof(timeouts) / sizeof(timeouts[0]); i++)
		if (timeouts[i] && (!shortest || timeouts[i] < shortest))
			shortest = timeouts[i];
	return shortest < LOOK_MAX_SECONDS * 8 ? shortest * 1000 / 8 : LOOK_MAX_SECONDS * 1000;
}

/* Of a server that was silent for all of the hold time, there is the rest to wait for. */
static unsigned connect_held_ms(const struct settings *settings)
{
	unsigned ms = settings->connect_timeout * 1000;

	return ms > settings->hold_time ? ms - settings->hold_time : 1;
}

static int watch_evictions(struct session_pool *pool)
{
	pool->evict_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (pool->evict_fd < 0)
		return -errno;
	pool->evict = event_new(pool->base, pool->evict_fd, EV_READ | EV_PERSIST, on_evict, pool);
	return pool->evict && event_add(pool->evict, NULL) == 0 ? 0 : -ENOMEM;
}

int session_pool_init(struct session_pool *pool, struct event_base *base,
		      struct session_shared *shared)
{
	int error;

	memset(pool, 0, sizeof(*pool));
	pool->base = base;
	pool->shared = shared;
	pool->metrics = monitor_add_metrics(shared->monitor);
	pool->log_limits = monitor_log_limits(shared->monitor);
	pool->waiting_since_ms = NOBODY_WAITS;
	error = watch_evictions(pool);
	pool->feed = event_new(base, -1, 0, on_feed, pool);
	pool->scratch = malloc(RELAY_SCRATCH_SIZE);
	blocks_init(&pool->blocks, sizeof(struct session) + SESSION_EVENT_COUNT *
							    event_get_struct_event_size());
	relay_pipes_init(&pool->pipes);
	if (pool->metrics)
		pool->pipes.in_use = &pool->metrics->values[METRIC_PIPES];
	if (!error && (!pool->metrics || !pool->feed || !pool->scratch))
		error = -ENOMEM;
	if (!error)
		pool->route = route_create();
	if (!error && !pool->route)
		error = -errno;
	if (!error)
		pool->fastopen = fastopen_create();
	if (error)
		session_pool_fini(pool);
	return error;
}

void session_pool_configure(struct session_pool *pool, struct terms *terms)
{
	const struct settings *settings = terms->settings;
	const unsigned ms[] = {
		[SESSION_TIMEOUT_REQUEST] = settings->request_timeout * 1000,
		[SESSION_TIMEOUT_CONNECT] = settings->connect_timeout * 1000,
		[SESSION_TIMEOUT_CONNECT_HELD] = connect_held_ms(settings),
		[SESSION_TIMEOUT_LINGER] = LINGER_SECONDS * 1000,
		[SESSION_TIMEOUT_RESET_POLL] = RESET_POLL_MS,
		[SESSION_TIMEOUT_LOOK] = look_ms(settings),
	};
	static_assert(sizeof(ms) / sizeof(ms[0]) == SESSION_TIMEOUT_COUNT, "each has a duration");
	struct session *s;

	terms_unref(pool->terms);
	pool->terms = terms_ref(terms);
	/* The one that is at hand is among the worker's own descriptors. */
	pool->pipes.max = 1 + terms->pipes_max / pool->shared->pool_count;
	for (int i = 0; i < SESSION_TIMEOUT_COUNT; i++)
		set_timeout(pool, (enum session_timeout)i, ms[i]);
	DL_FOREACH(pool->sessions, s)
		if (s->state == SESSION_RELAY && s->answered)
			session_set_deadline(s, SESSION_TIMEOUT_LOOK);
}

void session_pool_fini(struct session_pool *pool)
{
	struct session *s, *next;

	DL_FOREACH_SAFE(pool->sessions, s, next)
	{
		if (s->state == SESSION_RELAY || s->state == SESSION_RESETTING || !s->established) {
			session_reset_socket(s, RELAY_UPSTREAM);
			session_reset_socket(s, RELAY_DOWNSTREAM);
		}
		session_close(s, OUTCOME_STOPPED);
		session_advance(s);
	}
	if (pool->feed)
		event_free(pool->feed);
	if (pool->evict)
		event_free(pool->evict);
	if (pool->evict_fd >= 0)
		close(pool->evict_fd);
	free(pool->scratch);
	blocks_fini(&pool->blocks);
	relay_pipes_fini(&pool->pipes);
	route_destroy(pool->route);
	fastopen_destroy(pool->fastopen);
	terms_unref(pool->terms);
}
