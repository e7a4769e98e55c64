/* SPDX-License-Identifier: BSD-3-Clause */
/* user_cache.h - the cache that all of a user's processes share, opened at its first use */
#ifndef CLIENT_USER_CACHE_H
#define CLIENT_USER_CACHE_H

#include "client/cache.h"
#include "client/settings.h"

/* --- the directory of the cache --- */

/* Where to look. The strings are read only during the call, except for cache_place.path. */
struct cache_search {
	const char *wish;    /* CONVERT_CACHE: an absolute path, "none", or empty */
	const char *runtime; /* XDG_RUNTIME_DIR, or empty */
	bool make;           /* create the directory and the file if they are missing */
};

struct cache_place {
	const char *path; /* the directory in use, or the candidate; NULL: none. It, and the next, may point into @own */
	const char *refused; /* the first candidate that failed, for @refusal; NULL: none */
	int refusal;         /* -errno, for cache_problem() */
	char own[2][sizeof("/run/user/4294967295/libconvert")];
};

/*
 * cache_open() - cache_open_at() in the directory @path, as CONVERT_CACHE and XDG_RUNTIME_DIR name one
 * Returns also -ENOENT if @path is NULL or no absolute path, and -EPERM if other users may write to the directory, or own it.
 */
int cache_open(struct cache *cache, const char *path);

/*
 * cache_find() - map the cache in the first suitable directory
 *
 * Tries only the wish, if there is one. Else XDG_RUNTIME_DIR; /run/user/UID; root's /run/libconvert; and libconvert-UID in /dev/shm or
 * /tmp. Creates the last three if they are missing. This user must own the directory, and nobody else may write to it. In a directory where
 * others may write it must also not be a symbolic link, and nobody else may enter it; the directory around it must belong to root or this
 * user, and be sticky, so that nobody can put another one in its place.
 *
 * Returns as cache_open(), with all of @place set; -ECANCELED if the wish is "none"; without search->make -ENOENT if there is no file yet.
 */
int cache_find(struct cache *cache, const struct cache_search *search, struct cache_place *place);

/*
 * user_cache_init() - prepare this module; call it before any other function here
 * @settings: say where the cache is; not copied, so they must stay. Logs why there is no cache, or why it isn't in its usual place.
 */
void user_cache_init(const struct settings *settings);

/*
 * user_cache_open() - open the cache for a connection
 * Opens it at the first call, so that programs which never connect don't open it. Any thread may call it. While another thread opens the
 * cache, it waits for 100 ms at most, and then goes on without a cache.
 * @fd: the connection's socket, whose network namespace the cache uses from now on; -1: keep the present one
 * Returns whether the namespace has changed: then it has forgotten the facts that this process has learned, by converters_forget().
 */
bool user_cache_open(int fd);

/*
 * After fork(): recovers from a thread of the parent that was opening the cache, as the child lacks it; the child opens the cache itself.
 * Closes it for another user.
 */
void user_cache_repair_in_child(void);

/* Returns the cache. It is off until user_cache_open() is done, and if the stack is too small for its records (common/thread.h). */
const struct cache *user_cache(void);

#endif
