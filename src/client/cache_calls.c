/* SPDX-License-Identifier: BSD-3-Clause */
/* cache_calls.c - what a user's processes learned of converters and servers, shared between them; cache_file.c has the theory */
#include "config.h"

#include "client/cache.h"

#include "client/cache_file.h"
#include "common/clock.h"
#include "common/rawcall.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

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
	return "the system doesn't allow " CACHE_FILE " in it to be used";
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
	struct timespec now;

	clock_read(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
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
	else if (kind == CACHE_KIND_MPTCP || kind == CACHE_KIND_SERVER)
		from = (uint8_t *)&value->mptcp.zero;
	else if (kind == CACHE_KIND_SILENCE)
		from = (uint8_t *)&value->silence.zero;
	else if (kind == CACHE_KIND_PATH)
		from = &value->path.zero;
	memset(from, 0, (size_t)(end - from));
}

/* --- converters --- */

#define TIMES (2 * sizeof(int64_t)) /* @learned and @until, in front of each fact's value */
#define FACT(bit, name) { CACHE_##bit, CACHE_KIND_##bit, offsetof(struct cache_converter, name), sizeof(((struct cache_converter *)0)->name) - TIMES }
#define SAME_VALUE(name) \
	static_assert(sizeof(((struct cache_converter *)0)->name) == TIMES + sizeof(((union cache_value *)0)->name), "no padding")
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

/* --- servers --- */

enum cache_server_verdict cache_server_get(const struct cache *cache, const union sockaddr_ip *address, uint64_t source, int64_t now,
					   struct cache_server *out)
{
	struct cache_bucket bucket;
	struct cache_record record;
	struct cache_key key;

	memset(out, 0, sizeof(*out));
	if (!time_is_valid(now) || !cache_key_set(&key, CACHE_KIND_SERVER, address, atomic_load(&cache->network), source) ||
	    !cache_bucket_begin(&bucket, cache))
		return CACHE_SERVER_UNKNOWN;
	if (cache_bucket_find(&bucket, &key, now, &record)) {
		out->verdict = (enum cache_server_verdict)record.value.server.verdict;
		out->learned = record.learned;
		out->until = record.until;
	}
	cache_bucket_end(&bucket);
	return out->verdict;
}

int cache_server_put(const struct cache *cache, const union sockaddr_ip *address, uint64_t source, enum cache_server_verdict verdict,
		     int64_t now, int64_t until)
{
	struct cache_record record = { 0 };
	struct cache_bucket bucket;
	int ret;

	if (!cache_is_on(cache))
		return -ENOENT;
	if (!time_is_valid(now) || (unsigned int)verdict >= CACHE_SERVER_VERDICT_COUNT ||
	    !cache_key_set(&record.key, CACHE_KIND_SERVER, address, atomic_load(&cache->network), source))
		return -EINVAL;
	if (!cache_bucket_begin(&bucket, cache))
		return -ENOENT;
	record.value.server.verdict = verdict;
	ret = cache_bucket_put(&bucket, &record, now, verdict == CACHE_SERVER_UNKNOWN ? 0 : until);
	cache_bucket_end(&bucket);
	return ret;
}
