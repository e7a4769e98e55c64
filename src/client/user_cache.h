/* SPDX-License-Identifier: BSD-3-Clause */
/* user_cache.h - the cache that all of a user's processes share, opened once it is needed */
#ifndef CLIENT_USER_CACHE_H
#define CLIENT_USER_CACHE_H

#include "client/cache.h"
#include "client/settings.h"

/* --- the directory that keeps what a user's processes learned --- */

/* Where to look. The strings are only read during the call, but for cache_place.path. */
struct cache_search {
	const char *wish;    /* CONVERT_CACHE: an absolute path, "none", or empty */
	const char *runtime; /* XDG_RUNTIME_DIR, or empty */
	bool make;           /* make what isn't there: the directory, the file */
};

struct cache_place {
	const char *path; /* the directory in use, or that would be; NULL: none. It, and the next, may point into @own */
	const char *refused; /* the first directory that would have been used but for @refusal; NULL: none */
	int refusal;         /* -errno, for cache_problem() */
	char own[2][sizeof("/run/user/4294967295/libconvert")];
};

/*
 * cache_open() - cache_open_at() in the directory @path, as CONVERT_CACHE and XDG_RUNTIME_DIR name one
 * Returns -ENOENT, too, if @path is NULL or no absolute path, and -EPERM if the directory isn't this user's alone.
 */
int cache_open(struct cache *cache, const char *path);

/*
 * cache_find() - map the cache in the first directory that serves
 *
 * The wish alone, if there is one. Else XDG_RUNTIME_DIR; /run/user/UID; root's /run/libconvert; and
 * libconvert-UID in /dev/shm or /tmp. The last three are made. Each must be a directory of this user, which nobody
 * else may write to; those in a directory that others may write to are no symbolic links, nobody else may enter them, and the
 * directory around them is root's, or this user's, and sticky, so that nobody can put another one in their place.
 *
 * Returns as cache_open(), with all of @place set; -ECANCELED if the wish is "none"; without search->make -ENOENT if there
 * is no file yet.
 */
int cache_find(struct cache *cache, const struct cache_search *search, struct cache_place *place);

/*
 * user_cache_init() - before the first call of any other function here
 * @settings: say where the cache is; kept, must stay. The log is told why there is no cache, or why it isn't where it should be.
 */
void user_cache_init(const struct settings *settings);

/*
 * user_cache_open() - have the cache ready for a connection
 * Opens it at the first call, so that programs which never connect don't. From any thread; one that comes while
 * another opens it waits for that, for 100 ms at most, and goes on without a cache then.
 * @fd: the connection's socket, whose network namespace is read and written from now on; -1: the one of the calls before
 * Returns whether that is another namespace than before: what this process has learned itself is forgotten then, by converters_forget().
 */
bool user_cache_open(int fd);

/* After fork(): a thread of the parent that was opening the cache isn't in the child, which opens it itself. Takes it from another user. */
void user_cache_repair_in_child(void);

/* The cache; one that is off until user_cache_open() is done, and on a stack that is too small for its records (common/thread.h). */
const struct cache *user_cache(void);

#endif
