/* SPDX-License-Identifier: BSD-3-Clause */
/* shared.h - the cache that all of a user's processes share, once it is needed */
#ifndef SHIM_SHARED_H
#define SHIM_SHARED_H

#include "client/cache.h"
#include "client/settings.h"

/* @settings: kept, must stay. */
void shared_init(const struct settings *settings);

/*
 * shared_open() - have the cache ready
 * Opens it at the first call, so that programs which never connect don't.
 */
void shared_open(void);

/* After fork(), whose child has none of the other threads. */
void shared_repair_in_child(void);

/* The cache; one that is off until shared_open() is done. */
const struct cache *shared_cache(void);

#endif
