/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cache.c - what a user's processes learned of converters and servers, shared between them
 *
 * The problem: this runs inside other people's programs, on any of their threads and in their
 * signal handlers, and any process of the user may at any moment be killed, write the same record,
 * or cut the file. So there is nothing that could be left locked, and the mapping is never accessed
 * by the program's own instructions: process_vm_readv(2) and process_vm_writev(2), with the own
 * process as the other one, have the kernel copy from and to it. Where a page is gone (the file was
 * cut) or can't be had (its file system is full) they say EFAULT, and there is no SIGBUS. The
 * kernel asks no permission for the own memory, however ptrace(2) is restricted.
 *
 * Measured with Linux 6.18 on x86-64 and tmpfs, in µs; a connect() has a few of them at most:
 *
 *	a bucket read, or a record written, in this way                       1.3
 *	the mapping read directly; SIGBUS in the application                  0.02
 *	open, fstat, pread, close at each access                              3.3
 *	open, fstat, lock, pread, pwrite, unlock, close for a change          6.1
 *
 * Opening at each access has no SIGBUS either. But it has a descriptor, which an application that
 * closes one twice takes away and opens as something of its own, for our write to damage; and it
 * needs the path, which a process that changed its root or sealed itself off no longer has.
 *
 * A place in the file is free, or has a whole record, or has neither (a writer in the middle of it, two writers at
 * once, a writer killed between two pages, foreign bytes). The checksum of 64 bits shows that: a reader looks again, in
 * case it is the first, and then the place counts as free. It stands for a lock and a sequence counter: a record is written by one
 * copy of all of it and doesn't depend on what was there before. Each fact is a record of its own,
 * so that processes which learn different things of one converter don't undo each other's; of
 * those that learn the same thing, one wins.
 *
 * A record may be in any place of its bucket. It is written where its key already is, or else to a
 * place that is free or whose record has ended, or else over the oldest. What is lost if two
 * writers choose the same place is a hint. If two write a new key to two places, the younger
 * is read, and the next write wipes the other.
 *
 * Limits: a mapping outlives a change of user or root, as descriptors do; the network namespaces of
 * a user share what they learn; a process whose file was cut has no cache until it ends. Any file
 * system serves, but ext4 should be of Linux 5.18 or a stable kernel since: older ones
 * don't expect that mapped pages are written in this way.
 */
#include "config.h"

#include "client/cache.h"

#include "client/cache_bucket.h"
#include "client/cache_file.h"
#include "common/clock.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

int cache_open_at(struct cache *cache, int directory)
{
	struct cache_header header;
	int ret;

	cache->file = NULL;
	ret = cache_file_map(directory, &cache->file);
	if (ret < 0)
		return ret;
	if (cache_file_read(cache->file, 0, &header, sizeof(header)) == 0 &&
	    cache_file_write(cache->file, 0, &header, sizeof(header)) == 0)
		return 0;
	cache_close(cache);
	return -ENOSYS;
}

void cache_close(struct cache *cache)
{
	if (cache->file)
		cache_file_unmap(cache->file);
	cache->file = NULL;
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

int64_t cache_now(void)
{
	struct timespec now;

	clock_read(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Is @now a time to which our constants can be added without overflow? */
static bool time_is_valid(int64_t now)
{
	return now > 0 && now < INT64_MAX / 2;
}

/* --- converters --- */

static void rest_get(const struct cache_record *record, struct cache_converter *out)
{
	out->rest.until = record->until;
}

static int64_t rest_put(const struct cache_converter *in, union cache_value *value)
{
	(void)value;
	return in->rest.until;
}

static void info_get(const struct cache_record *record, struct cache_converter *out)
{
	out->info.until = record->until;
	out->info.learned = record->learned;
	out->info.flags = record->value.info.flags;
	out->info.count = record->value.info.count;
	memcpy(out->info.kinds, record->value.info.kinds, out->info.count);
}

static int64_t info_put(const struct cache_converter *in, union cache_value *value)
{
	value->info.flags = in->info.flags;
	value->info.count = in->info.count;
	if (in->info.count <= CACHE_KINDS_MAX)
		memcpy(value->info.kinds, in->info.kinds, in->info.count);
	return in->info.until;
}

static void mptcp_get(const struct cache_record *record, struct cache_converter *out)
{
	out->mptcp.until = record->until;
	out->mptcp.verdict = (enum cache_mptcp)record->value.mptcp.verdict;
}

static int64_t mptcp_put(const struct cache_converter *in, union cache_value *value)
{
	value->mptcp.verdict = (uint32_t)in->mptcp.verdict;
	return in->mptcp.until;
}

static void cookie_get(const struct cache_record *record, struct cache_converter *out)
{
	out->cookie.until = record->until;
	out->cookie.len = record->value.cookie.len;
	memcpy(out->cookie.bytes, record->value.cookie.bytes, out->cookie.len);
}

static int64_t cookie_put(const struct cache_converter *in, union cache_value *value)
{
	value->cookie.len = in->cookie.len;
	if (in->cookie.len <= CACHE_COOKIE_MAX)
		memcpy(value->cookie.bytes, in->cookie.bytes, in->cookie.len);
	return in->cookie.until;
}

static void silence_get(const struct cache_record *record, struct cache_converter *out)
{
	out->silence.until = record->until;
	out->silence.learned = record->learned;
	out->silence.destination = record->value.silence.destination;
	out->silence.destinations = record->value.silence.destinations;
}

static int64_t silence_put(const struct cache_converter *in, union cache_value *value)
{
	value->silence.destination = in->silence.destination;
	value->silence.destinations = in->silence.destinations;
	return in->silence.until;
}

static void path_get(const struct cache_record *record, struct cache_converter *out)
{
	out->path.until = record->until;
	out->path.asked = (int64_t)record->value.path.asked;
	out->path.state = (enum cache_path)record->value.path.state;
	out->path.rtt_ms = record->value.path.rtt_ms;
	out->path.doubts = record->value.path.doubts;
}

static int64_t path_put(const struct cache_converter *in, union cache_value *value)
{
	value->path.asked = (uint64_t)in->path.asked;
	value->path.state = (uint32_t)in->path.state;
	value->path.rtt_ms = in->path.rtt_ms;
	value->path.doubts = in->path.doubts;
	return in->path.until;
}

/* The facts of a converter. All but the last, the cookie, are in one bucket, which is read once. */
static const struct {
	enum cache_fact fact;
	enum cache_kind kind;
	void (*get)(const struct cache_record *record, struct cache_converter *out);
	int64_t (*put)(const struct cache_converter *in, union cache_value *value); /* returns until when */
} facts_known[] = {
	{ CACHE_REST, CACHE_KIND_REST, rest_get, rest_put },
	{ CACHE_INFO, CACHE_KIND_INFO, info_get, info_put },
	{ CACHE_MPTCP, CACHE_KIND_MPTCP, mptcp_get, mptcp_put },
	{ CACHE_SILENCE, CACHE_KIND_SILENCE, silence_get, silence_put },
	{ CACHE_PATH, CACHE_KIND_PATH, path_get, path_put },
	{ CACHE_COOKIE, CACHE_KIND_COOKIE, cookie_get, cookie_put },
};

unsigned int cache_converter_get(const struct cache *cache, const union sockaddr_ip *address,
				 uint64_t path, unsigned int facts, int64_t now,
				 struct cache_converter *out)
{
	struct cache_bucket bucket = { .offset = 0 };
	struct cache_record record;
	struct cache_key key;

	memset(out, 0, sizeof(*out));
	if (!cache->file || !time_is_valid(now))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(facts_known); i++) {
		if (!(facts & facts_known[i].fact))
			continue;
		if (!cache_key_set(&key, facts_known[i].kind, address, path) ||
		    !cache_bucket_find(&bucket, cache->file, &key, now, &record))
			continue;
		facts_known[i].get(&record, out);
		out->known |= facts_known[i].fact;
	}
	return out->known;
}

/* Makes the record for fact number @i of @in, with its end in @until. Returns false if its value is out of range. */
static bool fact_prepare(size_t i, const struct cache_converter *in, int64_t now,
			 struct cache_record *record, int64_t *until)
{
	memset(&record->value, 0, sizeof(record->value));
	*until = facts_known[i].put(in, &record->value);
	return *until <= now || cache_value_is_valid(facts_known[i].kind, &record->value);
}

int cache_converter_update(const struct cache *cache, const union sockaddr_ip *address,
			   uint64_t path, unsigned int facts, int64_t now,
			   const struct cache_converter *in)
{
	struct cache_bucket bucket = { .offset = 0 };
	struct cache_record record = { 0 };
	int64_t until;
	int ret = 0;

	if (!cache->file)
		return -ENOENT;
	if (!time_is_valid(now) || (facts & ~(unsigned int)CACHE_FACTS_ALL) ||
	    !cache_key_set(&record.key, CACHE_KIND_REST, address, path))
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(facts_known); i++)
		if ((facts & facts_known[i].fact) &&
		    !fact_prepare(i, in, now, &record, &until))
			return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(facts_known) && ret == 0; i++) {
		if (!(facts & facts_known[i].fact))
			continue;
		fact_prepare(i, in, now, &record, &until);
		cache_key_set(&record.key, facts_known[i].kind, address, path);
		ret = cache_bucket_put(&bucket, cache->file, &record, now, until);
	}
	return ret;
}

/* --- servers --- */

enum cache_server_verdict cache_server_get(const struct cache *cache,
					   const union sockaddr_ip *address, int64_t now,
					   struct cache_server *out)
{
	struct cache_bucket bucket = { .offset = 0 };
	struct cache_record record;
	struct cache_key key;

	memset(out, 0, sizeof(*out));
	if (!cache->file || !time_is_valid(now) ||
	    !cache_key_set(&key, CACHE_KIND_SERVER, address, 0) ||
	    !cache_bucket_find(&bucket, cache->file, &key, now, &record))
		return CACHE_SERVER_UNKNOWN;
	out->verdict = (enum cache_server_verdict)record.value.server.verdict;
	out->learned = record.learned;
	out->until = record.until;
	return out->verdict;
}

int cache_server_put(const struct cache *cache, const union sockaddr_ip *address,
		     enum cache_server_verdict verdict, int64_t now, int64_t until)
{
	struct cache_bucket bucket = { .offset = 0 };
	struct cache_record record = { 0 };

	if (!cache->file)
		return -ENOENT;
	if (!time_is_valid(now) || (unsigned int)verdict >= CACHE_SERVER_VERDICT_COUNT ||
	    !cache_key_set(&record.key, CACHE_KIND_SERVER, address, 0))
		return -EINVAL;
	record.value.server.verdict = verdict;
	return cache_bucket_put(&bucket, cache->file, &record, now,
			  verdict == CACHE_SERVER_UNKNOWN ? 0 : until);
}
