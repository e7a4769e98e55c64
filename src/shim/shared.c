/* SPDX-License-Identifier: BSD-3-Clause */
/* shared.c - the cache that all of a user's processes share, once it is needed */
#include "config.h"

#include "shim/shared.h"

#include "shim/log.h"

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

	if (atomic_load_explicit(&state, memory_order_acquire) != CLOSED ||
	    !atomic_compare_exchange_strong(&state, &expected, OPENING))
		return;
	ret = cache_open(&cache, *directory ? directory : NULL);
	if (ret < 0 && ret != -ENOENT)
		log_line("what is learned is not kept: %s", cache_problem(ret));
	atomic_store_explicit(&state, OPEN, memory_order_release);
}

const struct cache *shared_cache(void)
{
	return atomic_load_explicit(&state, memory_order_acquire) == OPEN ? &cache : &off;
}
