/* SPDX-License-Identifier: BSD-3-Clause */
/* user_cache.c - the cache that all of a user's processes share, opened once it is needed */
#include "config.h"

#include "client/user_cache.h"

#include "client/cache_place.h"
#include "common/clock.h"
#include "common/quiet.h"
#include "common/stack.h"

#include <errno.h>
#include <stdatomic.h>
#include <time.h>

#define PATIENCE_NS (100 * CLOCK_NS_PER_MS)
#define PAUSE_NS 100000

enum { CLOSED, OPENING, OPEN };

static const struct cache off;
static struct cache cache;
static const struct settings *settings;
static client_log *log_line;
static _Atomic int state;

void user_cache_init(const struct settings *kept, client_log *log)
{
	settings = kept;
	log_line = log;
}

static void find(void)
{
	struct cache_search search = { settings->cache, settings->runtime_dir, true };
	struct cache_place place;
	int ret = cache_find(&cache, &search, &place);

	if (place.refused)
		log_line("what is learned is not kept in %s: %s", place.refused, cache_problem(place.refusal));
	else if (ret == -ENOSYS)
		log_line("what is learned is not kept: %s", cache_problem(ret));
}

/*
 * Waits for another thread, which takes a tenth of a millisecond as a rule, and longer on a slow disk or a busy machine. A process that was made
 * by a bare clone(2) may be without that thread.
 */
static void await(void)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	const int64_t end = clock_ns() + PATIENCE_NS;

	while (atomic_load_explicit(&state, memory_order_acquire) == OPENING && clock_ns() < end)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

void user_cache_open(void)
{
	int expected = CLOSED;
	struct quiet quiet;

	if (atomic_load_explicit(&state, memory_order_acquire) == OPEN)
		return;
	quiet_all(&quiet); /* a thread that is cancelled in open(2) would leave the state OPENING for ever */
	if (atomic_compare_exchange_strong(&state, &expected, OPENING)) {
		find();
		atomic_store_explicit(&state, OPEN, memory_order_release);
	} else if (expected == OPENING) {
		await();
	}
	quiet_end(&quiet);
}

void user_cache_repair_in_child(void)
{
	int expected = OPENING;

	atomic_compare_exchange_strong(&state, &expected, CLOSED);
}

const struct cache *user_cache(void)
{
	return atomic_load_explicit(&state, memory_order_acquire) == OPEN && !stack_is_small() ? &cache : &off;
}
