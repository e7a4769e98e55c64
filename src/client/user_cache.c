/* SPDX-License-Identifier: BSD-3-Clause */
/* user_cache.c - facts about converters and servers that all of a user's processes share; cache_file.c explains the file */
#include "config.h"

#include "client/cache.h"

#include "client/cache_file.h"
#include "client/client_log.h"
#include "common/clock.h"
#include "common/rawcall.h"
#include "common/thread.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

int cache_open_at(struct cache *cache, int directory, const char *path)
{
	struct cache_bucket bucket;
	struct cache_header header;
	int saved_errno = errno, ret;

	memset(cache, 0, sizeof(*cache));
	ret = cache_file_open(cache, directory, path);
	if (ret == 0 && cache_bucket_begin(&bucket, cache)) {
		if (cache_bucket_read(&bucket, 0, &header, sizeof(header)) < 0 || cache_bucket_write(&bucket, 0, &header, sizeof(header)) < 0)
			ret = -ENOSYS;
		cache_bucket_end(&bucket);
	} else if (ret == 0) {
		ret = -ENOENT; /* @path isn't the directory's */
	}
	if (ret < 0)
		cache_close(cache);
	errno = saved_errno;
	return ret;
}

void cache_close(struct cache *cache)
{
	int saved_errno = errno;

	if (cache->file)
		munmap(cache->file, cache_file_size());
	if (cache->kept_fd)
		RAWCALL(SYS_close, cache->kept_fd);
	memset(cache, 0, sizeof(*cache));
	errno = saved_errno;
}

const char *cache_problem(int error)
{
	static const struct {
		int error;
		const char *text;
	} problems[] = {
		{ ENOENT, "there is no such directory" },
		{ EPERM, "it, or " CACHE_FILE " in it, belongs to another user or is open to others, or this "
			 "program is privileged; chmod go-rwx may help" },
		{ EACCES, "it, or " CACHE_FILE " in it, may not be written" },
		{ EROFS, "it is read-only" },
		{ EEXIST, "something that isn't a directory has its name, or something that isn't a file is called "
			  CACHE_FILE " in it; remove it" },
		{ ENOSPC, "its file system is full" },
		{ ENOSYS, "the kernel (CONFIG_CROSS_MEMORY_ATTACH) or a sandbox doesn't let a process "
			  "copy its own memory by process_vm_readv(2)" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(problems); i++)
		if (problems[i].error == -error)
			return problems[i].text;
	return error_text(-error);
}

/* Makes system calls directly, since it runs inside the shim's hooks. */
uint64_t cache_network(int fd)
{
	const int saved_errno = errno, socket = fd < 0 ? (int)RAWCALL(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) : fd;
	uint64_t network = 0;
	socklen_t len = sizeof(network);
	struct stat st;

	if (RAWCALL(SYS_getsockopt, socket, SOL_SOCKET, SO_NETNS_COOKIE, &network, &len) < 0) {
		network = 0;
		if (errno == ENOPROTOOPT && stat("/proc/self/ns/net", &st) == 0)
			network = st.st_ino;
	}
	if (fd < 0 && socket >= 0)
		RAWCALL(SYS_close, socket);
	errno = saved_errno;
	return network;
}

int64_t cache_now(void)
{
	return clock_read_ns(CLOCK_BOOTTIME) / CLOCK_NS_PER_MS;
}

/* Can our constants be added to @now without overflow? */
static bool time_is_valid(int64_t now)
{
	return now > 0 && now < INT64_MAX / 2;
}

/* Zeroes the bytes behind a valid value, which the caller or another process may have left there. */
static void value_trim(enum cache_kind kind, union cache_value *value)
{
	uint8_t *end = (uint8_t *)(value + 1), *from = end;

	if (kind == CACHE_KIND_INFO)
		from = value->info.kinds + value->info.count;
	else if (kind == CACHE_KIND_COOKIE)
		from = value->cookie.bytes + value->cookie.len;
	else if (kind == CACHE_KIND_MPTCP || kind == CACHE_KIND_ANSWER)
		from = (uint8_t *)&value->mptcp.zero;
	else if (kind == CACHE_KIND_SILENCE)
		from = (uint8_t *)&value->silence.zero;
	else if (kind == CACHE_KIND_PATH)
		from = &value->path.zero;
	memset(from, 0, (size_t)(end - from));
}

/* --- converters --- */

#define TIMES (2 * sizeof(int64_t)) /* @learned and @until, in front of each fact's value */
#define SIZE_OF(name) sizeof(((struct cache_converter *)0)->name)
#define FACT(bit, name) { CACHE_##bit, CACHE_KIND_##bit, offsetof(struct cache_converter, name), SIZE_OF(name) - TIMES }
#define SAME_VALUE(name) \
	static_assert(SIZE_OF(name) == TIMES + sizeof(((union cache_value *)0)->name), "no padding")
SAME_VALUE(info);
SAME_VALUE(cookie);
SAME_VALUE(mptcp);
SAME_VALUE(silence);
SAME_VALUE(path);

/* The facts about a converter. All but the last, the cookie, are in one bucket, which is read once. */
static const struct {
	enum cache_fact fact;
	enum cache_kind kind;
	size_t offset, len; /* of the fact in struct cache_converter, and the bytes of its value */
} facts_known[] = {
	FACT(REST, rest), FACT(INFO, info), FACT(MPTCP, mptcp),
	FACT(SILENCE, silence), FACT(PATH, path), FACT(COOKIE, cookie),
};

unsigned int cache_converter_get(const struct cache *cache, const union sockaddr_ip *address,
				 uint64_t path, unsigned int facts, int64_t now,
				 struct cache_converter *out)
{
	struct cache_bucket bucket;
	struct cache_record record;
	struct cache_key key;

	memset(out, 0, sizeof(*out));
	if (!time_is_valid(now) || !cache_bucket_begin(&bucket, cache))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(facts_known); i++) {
		uint8_t *fact = (uint8_t *)out + facts_known[i].offset;

		if (!(facts & facts_known[i].fact) || !cache_key_set(&key, facts_known[i].kind, address, atomic_load(&cache->network), path) ||
		    !cache_bucket_find(&bucket, &key, now, &record))
			continue;
		value_trim(facts_known[i].kind, &record.value);
		memcpy(fact, &record.learned, TIMES);
		memcpy(fact + TIMES, &record.value, facts_known[i].len);
		out->known |= facts_known[i].fact;
	}
	cache_bucket_end(&bucket);
	return out->known;
}

/* Makes the record for fact number @i of @in, with its end in @until. Returns false if its value is out of range. */
static bool fact_prepare(size_t i, const struct cache_converter *in, int64_t now,
			 struct cache_record *record, int64_t *until)
{
	const uint8_t *fact = (const uint8_t *)in + facts_known[i].offset;

	memset(&record->value, 0, sizeof(record->value));
	memcpy(until, fact + sizeof(int64_t), sizeof(*until));
	if (*until <= now)
		return true;
	memcpy(&record->value, fact + TIMES, facts_known[i].len);
	if (!cache_value_is_valid(facts_known[i].kind, &record->value))
		return false;
	value_trim(facts_known[i].kind, &record->value);
	return true;
}

int cache_converter_update(const struct cache *cache, const union sockaddr_ip *address,
			   uint64_t path, unsigned int facts, int64_t now,
			   const struct cache_converter *in)
{
	const uint64_t network = atomic_load(&cache->network);
	struct cache_record record = { 0 };
	struct cache_bucket bucket;
	int64_t until;
	int ret = 0;

	if (!cache_is_on(cache))
		return -ENOENT;
	if (!time_is_valid(now) || (facts & ~(unsigned int)CACHE_FACTS_ALL) ||
	    !cache_key_set(&record.key, CACHE_KIND_REST, address, network, path))
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(facts_known); i++)
		if ((facts & facts_known[i].fact) && !fact_prepare(i, in, now, &record, &until))
			return -EINVAL;
	if (!cache_bucket_begin(&bucket, cache))
		return -ENOENT;
	for (size_t i = 0; i < ARRAY_SIZE(facts_known) && ret == 0; i++) {
		if (!(facts & facts_known[i].fact))
			continue;
		fact_prepare(i, in, now, &record, &until);
		cache_key_set(&record.key, facts_known[i].kind, address, network, path);
		ret = cache_bucket_put(&bucket, &record, now, until);
	}
	cache_bucket_end(&bucket);
	return ret;
}

/* --- answers to questions about a destination --- */

enum cache_answer cache_answer_get(const struct cache *cache, const union sockaddr_ip *address, uint64_t source, int64_t now)
{
	enum cache_answer answer = CACHE_UNKNOWN;
	struct cache_bucket bucket;
	struct cache_record record;
	struct cache_key key;

	if (!time_is_valid(now) || !cache_key_set(&key, CACHE_KIND_ANSWER, address, atomic_load(&cache->network), source) ||
	    !cache_bucket_begin(&bucket, cache))
		return CACHE_UNKNOWN;
	if (cache_bucket_find(&bucket, &key, now, &record))
		answer = (enum cache_answer)record.value.answer.verdict;
	cache_bucket_end(&bucket);
	return answer;
}

int cache_answer_put(const struct cache *cache, const union sockaddr_ip *address, uint64_t source, enum cache_answer answer, int64_t now,
		     int64_t until)
{
	struct cache_record record = { .value.answer.verdict = answer };
	struct cache_bucket bucket;
	int ret;

	if (!cache_is_on(cache))
		return -ENOENT;
	if (!time_is_valid(now) || (unsigned int)answer >= CACHE_ANSWER_COUNT ||
	    !cache_key_set(&record.key, CACHE_KIND_ANSWER, address, atomic_load(&cache->network), source))
		return -EINVAL;
	if (!cache_bucket_begin(&bucket, cache))
		return -ENOENT;
	ret = cache_bucket_put(&bucket, &record, now, answer == CACHE_UNKNOWN ? 0 : until);
	cache_bucket_end(&bucket);
	return ret;
}

/*
 * The directory of the cache
 *
 * A session has a runtime directory of its own; services, cron jobs, containers and programs started by sudo have none. In /dev/shm and
 * /tmp anybody may have created anything under our name before us. So we judge an object by its descriptor. Once it is ours nobody else can
 * take it away, as the directory around it is sticky. We report a refused directory and try the next: other users can keep us from having a
 * cache, and can do no more harm.
 */

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

/* Takes ownership of @fd. Returns it if this user owns the directory and others have none of the rights @mode; else -errno. */
static int directory_judge(int fd, mode_t mode)
{
	struct stat st;
	int ret;

	if (fd < 0)
		return -errno;
	ret = fstat(fd, &st) < 0 ? -errno : st.st_uid != geteuid() || (st.st_mode & mode) ? -EPERM : fd;
	if (ret < 0)
		RAWCALL(SYS_close, fd);
	return ret;
}

/* Returns a descriptor (O_PATH) or -errno. */
static int named_open(const char *path)
{
	/* the XDG Base Directory Specification says to ignore relative paths */
	if (path[0] != '/')
		return -ENOENT;
	return directory_judge(open(path, O_PATH | O_DIRECTORY | O_CLOEXEC), OTHERS_WRITE);
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
		RAWCALL(SYS_close, fd);
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
	RAWCALL(SYS_close, fd);
	return ret;
}

/* Tries the directory @fd, of place_open(). Returns whether the search is over, with its result in *@ret. */
static bool judge(struct cache *cache, const struct cache_search *search, struct cache_place *place, const char *path,
		  int fd, int *ret)
{
	*ret = fd;
	if (fd >= 0) {
		*ret = search->make || faccessat(fd, CACHE_FILE, F_OK, 0) == 0 ? cache_open_at(cache, fd, path) : PLACE_TO_BE;
		RAWCALL(SYS_close, fd);
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
