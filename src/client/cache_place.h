/* SPDX-License-Identifier: BSD-3-Clause */
/* cache_place.h - the directory that keeps what a user's processes learned */
#ifndef CLIENT_CACHE_PLACE_H
#define CLIENT_CACHE_PLACE_H

#include "client/cache.h"

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

#endif
