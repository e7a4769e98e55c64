/* SPDX-License-Identifier: BSD-3-Clause */
/* cache_open.h - opens the cache in the directory that a test names, as CONVERT_CACHE names one */
#ifndef TESTS_UNIT_CACHE_OPEN_H
#define TESTS_UNIT_CACHE_OPEN_H

#include "client/cache.h"

/* Returns as cache_find(). The network is 0, whatever namespace the test runs in. */
static inline int cache_open(struct cache *cache, const char *path)
{
	const struct cache_search search = { .wish = path, .runtime = "", .make = true };
	struct cache_place place;
	const int ret = cache_find(cache, &search, &place);

	atomic_store(&cache->network, 0);
	return ret;
}

#endif
