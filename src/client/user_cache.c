/* SPDX-License-Identifier: BSD-3-Clause */
/* user_cache.c - the cache that all of a user's processes share, opened at its first use */
#include "config.h"

#include "client/user_cache.h"

#include "client/client_log.h"
#include "common/clock.h"
#include "common/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * The directory of the cache
 *
 * A session has a runtime directory of its own; services, cron jobs, containers and programs started by sudo have none. In /dev/shm and
 * /tmp anybody may have created anything under our name before us. So we judge an object by its descriptor. Once it is ours nobody else can
 * take it away, as the directory around it is sticky. We report a refused directory and try the next: other users can keep us from having a
 * cache, and can do no more harm.
 */

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define PLACE_TO_BE INT_MIN /* no error, and not there yet */
#define OTHERS_WRITE (S_IWGRP | S_IWOTH)
#define OTHERS_ANYTHING (S_IRWXG | S_IRWXO)

/* Our own candidates, in the order in which we try them. */
static const struct {
	const char *parent;
	const char *name; /* followed by the user's number, unless only root uses it */
	bool made;        /* we create it; else the parent's administrator does */
	bool root_only;
} places[] = {
	{ "/run/user", "", false, false },
	{ "/run", "libconvert", true, true },
	{ "/dev/shm", "libconvert-", true, false },
	{ "/tmp", "libconvert-", true, false },
};

/* In the shim close() is a hook, and it is a cancellation point. */
static void fd_close(int fd)
{
	syscall(SYS_close, fd);
}

/* Takes ownership of @fd. Returns it if this user owns the directory and others have none of the rights @mode; else -errno. */
static int directory_judge(int fd, mode_t mode)
{
	struct stat st;
	int ret;

	if (fd < 0)
		return -errno;
	ret = fstat(fd, &st) < 0 ? -errno : st.st_uid != geteuid() || (st.st_mode & mode) ? -EPERM : fd;
	if (ret < 0)
		fd_close(fd);
	return ret;
}

/* Returns a descriptor (O_PATH) or -errno. */
static int named_open(const char *path)
{
	/* the XDG Base Directory Specification says to ignore relative paths */
	if (!path || path[0] != '/')
		return -ENOENT;
	return directory_judge(open(path, O_PATH | O_DIRECTORY | O_CLOEXEC), OTHERS_WRITE);
}

int cache_open(struct cache *cache, const char *path)
{
	int saved = errno, fd = named_open(path), ret = fd;

	memset(cache, 0, sizeof(*cache));
	if (fd >= 0) {
		ret = cache_open_at(cache, fd, path);
		fd_close(fd);
	}
	errno = saved;
	return ret;
}

/* Opens a directory from which others can't remove our entries. Returns a descriptor or -errno. */
static int parent_open(const char *path)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC), ret = fd;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		ret = -errno;
	else if ((st.st_uid != 0 && st.st_uid != geteuid()) || ((st.st_mode & OTHERS_WRITE) && !(st.st_mode & S_ISVTX)))
		ret = -EPERM;
	if (ret < 0)
		fd_close(fd);
	return ret;
}

/* Returns a descriptor or -errno. */
static int entry_open(int parent, const char *name, bool make, bool made)
{
	int fd;

	/* whatever the umask is */
	if (make && made && mkdirat(parent, name, S_IRWXU) == 0 && fchmodat(parent, name, S_IRWXU, 0) < 0)
		return -errno;
	fd = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOTDIR)
		return -EEXIST; /* a symbolic link as well */
	return directory_judge(fd, made ? OTHERS_ANYTHING : OTHERS_WRITE);
}

/* Opens candidate number @i, and writes its path. Returns a descriptor, PLACE_TO_BE or -errno. */
static int place_open(size_t i, bool make, char path[])
{
	const char *parent = places[i].parent;
	char name[sizeof("libconvert-4294967295")];
	int fd, ret;

	if (!places[i].root_only)
		snprintf(name, sizeof(name), "%s%u", places[i].name, (unsigned int)geteuid());
	else if (geteuid() == 0)
		snprintf(name, sizeof(name), "%s", places[i].name);
	else
		return -ENOENT;
	snprintf(path, sizeof(((struct cache_place *)NULL)->own[0]), "%s/%s", parent, name);
	fd = parent_open(parent);
	if (fd < 0)
		return fd;
	ret = entry_open(fd, name, make, places[i].made);
	/* without @make the missing directory that we would create is the place */
	if (ret == -ENOENT && !make && places[i].made && faccessat(fd, ".", W_OK, 0) == 0)
		ret = PLACE_TO_BE;
	fd_close(fd);
	return ret;
}

/* Tries the directory @fd, of place_open(). Returns whether the search is over, with its result in *@ret. */
static bool judge(struct cache *cache, const struct cache_search *search, struct cache_place *place, const char *path,
		  int fd, int *ret)
{
	*ret = fd;
	if (fd >= 0) {
		*ret = search->make || faccessat(fd, CACHE_FILE, F_OK, 0) == 0 ? cache_open_at(cache, fd, path) : PLACE_TO_BE;
		fd_close(fd);
	}
	if (*ret == 0 || *ret == PLACE_TO_BE) {
		place->path = path;
		*ret = *ret == 0 ? 0 : -ENOENT;
		return true;
	}
	/* don't report a missing place, or one where this user may create nothing */
	if (!place->refused && *ret != -ENOENT && *ret != -EACCES && *ret != -EROFS) {
		place->refused = path;
		place->refusal = *ret;
	}
	return *ret == -ENOSYS; /* the kernel's refusal holds for all places */
}

static int find(struct cache *cache, const struct cache_search *search, struct cache_place *place)
{
	int ret;

	if (strcmp(search->wish, "none") == 0)
		return -ECANCELED;
	if (getauxval(AT_SECURE))
		return -EPERM;
	if (*search->wish || *search->runtime) {
		const char *named = *search->wish ? search->wish : search->runtime;

		if (judge(cache, search, place, named, named_open(named), &ret))
			return ret;
		place->refused = named; /* always report a directory that the user has named */
		place->refusal = ret;
		if (*search->wish)
			return ret;
	}
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		char *path = place->own[place->refused == place->own[0]];

		if (judge(cache, search, place, path, place_open(i, search->make, path), &ret))
			return ret;
	}
	return -ENOENT;
}

int cache_find(struct cache *cache, const struct cache_search *search, struct cache_place *place)
{
	int saved = errno, ret;

	memset(cache, 0, sizeof(*cache));
	place->path = place->refused = NULL;
	place->refusal = 0;
	ret = find(cache, search, place);
	if (ret == 0)
		atomic_store(&cache->network, cache_network(-1));
	errno = saved;
	return ret;
}

#define OPENING_NS (100 * CLOCK_NS_PER_MS)
#define PAUSE_NS 100000

enum { CLOSED, OPENING, OPEN };

static const struct cache off;
static struct cache cache;
static const struct settings *settings;
static _Atomic int state;

void user_cache_init(const struct settings *kept)
{
	settings = kept;
}

static void open_for_user(void)
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
 * Waits for the thread that opens the cache: usually a tenth of a millisecond, longer on a slow disk or a busy machine. A process made by a
 * bare clone(2) may lack that thread.
 */
static void await(void)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	const int64_t end = clock_ns() + OPENING_NS;

	while (atomic_load_explicit(&state, memory_order_acquire) == OPENING && clock_ns() < end)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

/* Switches the cache to the network namespace of the socket @fd. Returns whether it has changed. */
static bool enter_network(int fd)
{
	const uint64_t network = cache_network(fd), before = network ? atomic_exchange(&cache.network, network) : 0;

	return before && before != network;
}

bool user_cache_open(int fd)
{
	int expected = CLOSED;
	struct quiet quiet;

	if (atomic_load_explicit(&state, memory_order_acquire) == OPEN)
		return fd >= 0 && enter_network(fd);
	quiet_all(&quiet); /* a thread that is cancelled in open(2) would leave the state OPENING for ever */
	if (atomic_compare_exchange_strong(&state, &expected, OPENING)) {
		open_for_user();
		atomic_store_explicit(&state, OPEN, memory_order_release);
	} else if (expected == OPENING) {
		await();
	}
	quiet_end(&quiet);
	return fd >= 0 && enter_network(fd);
}

void user_cache_repair_in_child(void)
{
	int expected = OPENING;

	atomic_compare_exchange_strong(&state, &expected, CLOSED);
	cache_check_identity(&cache);
}

const struct cache *user_cache(void)
{
	return atomic_load_explicit(&state, memory_order_acquire) == OPEN && !stack_is_small() ? &cache : &off;
}
