/* SPDX-License-Identifier: BSD-3-Clause */
/* shared.c - the cache that all of a user's processes share, once it is needed */
#include "config.h"

#include "shim/shared.h"

#include "shim/log.h"
#include "shim/quiet.h"

#include <errno.h>
#include <stdatomic.h>

enum { CLOSED, OPENING, OPEN };

static const struct cache off;
static struct cache cache;
static const char *directory;
static _Atomic int state;

void shared_init(const char *kept)
{
	directory = kept;
}

void shared_open(void)
{
	int expected = CLOSED, ret;
	struct quiet quiet;

	if (atomic_load_explicit(&state, memory_order_acquire) != CLOSED)
		return;
	quiet_all(&quiet); /* a thread that is cancelled in open(2) would leave it OPENING */
	if (atomic_compare_exchange_strong(&state, &expected, OPENING)) {
		ret = cache_open(&cache, *directory ? directory : NULL);
		if (ret < 0 && ret != -ENOENT)
			log_line("what is learned is not kept: %s", cache_problem(ret));
		atomic_store_explicit(&state, OPEN, memory_order_release);
	}
	quiet_end(&quiet);
}

void shared_repair_in_child(void)
{
	int expected = OPENING;

	atomic_compare_exchange_strong(&state, &expected, CLOSED);
}

const struct cache *shared_cache(void)
{
	return atomic_load_explicit(&state, memory_order_acquire) == OPEN ? &cache : &off;
}
