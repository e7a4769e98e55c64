/* SPDX-License-Identifier: BSD-3-Clause */
/* monitor.c - what the converter tells of itself as a whole */
#include "config.h"

#include "convertd/monitor.h"

#include "convertd/log.h"
#include "convertd/metrics.h"
#include "convertd/outcome.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

/* How often it looks what has changed. */
#define TICK_SECONDS 10

struct shard {
	struct metrics metrics; /* first: it is aligned */
	struct shard *next;
};

struct monitor {
	struct event *tick;
	struct shard *shards;
	struct log_limit log_limits[OUTCOME_COUNT];
};

static void tell_left_out(struct monitor *monitor)
{
	for (int i = 0; i < OUTCOME_COUNT; i++) {
		uint64_t count = atomic_exchange_explicit(&monitor->log_limits[i].left_out, 0,
							  memory_order_relaxed);

		if (count)
			log_info("%llu more connections ended: %s (--log-rate left their lines out)",
				 (unsigned long long)count, outcome_text((enum outcome)i));
	}
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct monitor *monitor = arg;

	(void)fd;
	(void)what;
	tell_left_out(monitor);
}

struct monitor *monitor_create(struct event_base *base)
{
	static const struct timeval tick = { .tv_sec = TICK_SECONDS };
	struct monitor *monitor = calloc(1, sizeof(*monitor));

	if (!monitor)
		return NULL;
	monitor->tick = event_new(base, -1, EV_PERSIST, on_tick, monitor);
	if (monitor->tick && event_add(monitor->tick, &tick) == 0)
		return monitor;
	monitor_destroy(monitor);
	return NULL;
}

void monitor_destroy(struct monitor *monitor)
{
	if (!monitor)
		return;
	tell_left_out(monitor);
	if (monitor->tick)
		event_free(monitor->tick);
	while (monitor->shards) {
		struct shard *shard = monitor->shards;

		monitor->shards = shard->next;
		free(shard);
	}
	free(monitor);
}

struct metrics *monitor_add_metrics(struct monitor *monitor)
{
	struct shard *shard = aligned_alloc(_Alignof(struct shard), sizeof(*shard));

	if (!shard)
		return NULL;
	memset(shard, 0, sizeof(*shard));
	shard->next = monitor->shards;
	monitor->shards = shard;
	return &shard->metrics;
}

struct log_limit *monitor_log_limits(struct monitor *monitor)
{
	return monitor->log_limits;
}
