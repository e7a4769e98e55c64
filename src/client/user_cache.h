/* SPDX-License-Identifier: BSD-3-Clause */
/* user_cache.h - the cache that all of a user's processes share, opened once it is needed */
#ifndef CLIENT_USER_CACHE_H
#define CLIENT_USER_CACHE_H

#include "client/cache.h"
#include "client/settings.h"

/* Writes a line to the front end's log; called with signals blocked and cancellation disabled. */
typedef void client_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * user_cache_init() - before the first call of any other function here
 * @settings: say where the cache is; kept, must stay
 * @log: told why there is no cache, or why it isn't where it should be
 */
void user_cache_init(const struct settings *settings, client_log *log);

/*
 * user_cache_open() - have the cache ready
 * Opens it at the first call, so that programs which never connect don't. From any thread; one that comes while
 * another opens it waits for that, for 100 ms at most, and goes on without a cache then.
 */
void user_cache_open(void);

/* After fork(): a thread of the parent that was opening the cache isn't in the child, which opens it itself. */
void user_cache_repair_in_child(void);

/* The cache; one that is off until user_cache_open() is done, and on a stack that is too small for its records (common/stack.h). */
const struct cache *user_cache(void);

#endif
