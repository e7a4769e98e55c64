/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cache_properties.c - what must hold whatever bytes are in the cache's file
 *
 * - The cache finds in the bytes what a second, naive implementation finds in them, so all values are in range.
 * - Fields of which the bytes tell nothing are zero.
 * - Whatever the bytes are, a record can be stored, found and removed, and only its bucket changes.
 * - A file that is damaged or cut short is replaced, and the new one works.
 */
#include "config.h"

#include "cache_properties.h"

#include "../unit/cache_open.h"
#include "../unit/tempdir.h"
#include "client/cache.h"
#include "client/cache_file.h"
#include "client/notes.h"

#include <sys/mman.h>

/* In place of assert(), which NDEBUG turns off. */
#define REQUIRE(condition) ((condition) ? (void)0 : require_failed(#condition, __LINE__))
#define GUARD 64 /* bytes before and behind the bucket that must not change */

static _Noreturn void require_failed(const char *condition, int line)
{
	fprintf(stderr, "cache_properties.c:%d: does not hold: %s\n", line, condition);
	abort();
}

static char directory[PATH_MAX], other[PATH_MAX]; /* the second one is file_check()'s */
static struct cache cache;
static uint8_t *file; /* a second mapping, to be accessed directly */

static void finish(void)
{
	tempdir_remove(directory);
	tempdir_remove(other);
}

static void start(void)
{
	char path[sizeof(directory) + sizeof(CACHE_FILE) + 1];
	int fd;

	if (file)
		return;
	tempdir_make(directory);
	tempdir_make(other);
	atexit(finish);
	REQUIRE(cache_open(&cache, directory) == 0);
	snprintf(path, sizeof(path), "%s/" CACHE_FILE, directory);
	fd = open(path, O_RDWR);
	REQUIRE(fd >= 0);
	file = mmap(NULL, cache_file_size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	REQUIRE(file != MAP_FAILED);
	close(fd);
}

static int64_t integer_at(const uint8_t *bytes, size_t at)
{
	int64_t value;

	memcpy(&value, bytes + at, sizeof(value));
	return value;
}

/* Is a record valid? This reads it with offsets that are spelled out and numbers that can't overflow. */
static bool naive_is_valid(const uint8_t *record, size_t size, int64_t now)
{
	const long double learned = (long double)integer_at(record, 8);
	const long double until = (long double)integer_at(record, 16);
	const uint8_t *value = record + 56;
	struct cache_record copy = { 0 };
	uint32_t word;
	uint16_t half;

	memcpy(&copy, record, size);
	cache_record_seal(&copy);
	if (memcmp(&copy, record, 8) != 0)
		return false;
	if (learned <= 0 || learned > (long double)now + CACHE_CLOCK_SLACK ||
	    until <= (long double)now || until - learned > CACHE_LIFETIME_MAX)
		return false;
	memcpy(&word, value, sizeof(word));
	memcpy(&half, value, sizeof(half));
	switch (record[50]) {
	case CACHE_KIND_REST:
		return true;
	case CACHE_KIND_INFO:
		for (unsigned int i = 0; i < value[4] && i < CACHE_KINDS_MAX; i++)
			if (value[5 + i] == 0)
				return false;
		return value[4] <= CACHE_KINDS_MAX;
	case CACHE_KIND_COOKIE:
		return half >= 1 && half <= CACHE_COOKIE_MAX;
	case CACHE_KIND_SILENCE:
		memcpy(&word, value + 8, sizeof(word));
		return word != 0;
	case CACHE_KIND_PATH:
		memcpy(&word, value + 8, sizeof(word));
		return word >= CACHE_PATH_WORKS && word <= CACHE_PATH_SILENT && integer_at(value, 0) >= 0;
	case CACHE_KIND_MPTCP:
		return word >= CACHE_MPTCP_HOLDS && word <= CACHE_MPTCP_DOUBTED;
	default:
		return word >= CACHE_YES && word <= CACHE_NO;
	}
}

/* The youngest record of @key in the bucket at @bytes, or NULL. */
static const uint8_t *naive_find(const uint8_t *bytes, const struct cache_key *key, int64_t now)
{
	const struct cache_table *table = cache_table_of((enum cache_kind)key->kind);
	const uint8_t *found = NULL;

	for (uint32_t way = 0; way < table->ways; way++) {
		const uint8_t *record = bytes + way * table->record_size;

		if (memcmp(record + 24, key, sizeof(*key)) == 0 &&
		    naive_is_valid(record, table->record_size, now) &&
		    (!found || integer_at(record, 8) > integer_at(found, 8)))
			found = record;
	}
	return found;
}

static const unsigned int fact_of_kind[] = {
	[CACHE_KIND_REST] = CACHE_REST,
	[CACHE_KIND_INFO] = CACHE_INFO,
	[CACHE_KIND_COOKIE] = CACHE_COOKIE,
	[CACHE_KIND_MPTCP] = CACHE_MPTCP,
	[CACHE_KIND_SILENCE] = CACHE_SILENCE,
	[CACHE_KIND_PATH] = CACHE_PATH,
};

/* What cache_converter_get() must return for @record; nothing is known if that is NULL. */
static struct cache_converter naive_converter(enum cache_kind kind, const uint8_t *record)
{
	struct cache_converter out = { 0 };
	const uint8_t *value;

	if (!record)
		return out;
	value = record + 56;
	out.known = fact_of_kind[kind];
	switch (kind) {
	case CACHE_KIND_REST:
		out.rest.learned = integer_at(record, 8);
		out.rest.until = integer_at(record, 16);
		break;
	case CACHE_KIND_INFO:
		out.info.until = integer_at(record, 16);
		out.info.learned = integer_at(record, 8);
		memcpy(&out.info.flags, value, 4);
		out.info.count = value[4];
		memcpy(out.info.kinds, value + 5, value[4]);
		break;
	case CACHE_KIND_SILENCE:
		out.silence.until = integer_at(record, 16);
		out.silence.learned = integer_at(record, 8);
		memcpy(&out.silence.destination, value, 8);
		memcpy(&out.silence.destinations, value + 8, 4);
		break;
	case CACHE_KIND_PATH:
		out.path.learned = integer_at(record, 8);
		out.path.until = integer_at(record, 16);
		out.path.asked = integer_at(value, 0);
		out.path.state = (enum cache_path)value[8];
		memcpy(&out.path.rtt_ms, value + 12, 2);
		out.path.doubts = value[14];
		break;
	case CACHE_KIND_MPTCP:
		out.mptcp.learned = integer_at(record, 8);
		out.mptcp.until = integer_at(record, 16);
		out.mptcp.verdict = (enum cache_mptcp)value[0];
		break;
	default:
		out.cookie.learned = integer_at(record, 8);
		out.cookie.until = integer_at(record, 16);
		memcpy(&out.cookie.len, value, 2);
		memcpy(out.cookie.bytes, value + 2, out.cookie.len);
	}
	return out;
}

static void converter_check(const union sockaddr_ip *address, enum cache_kind kind,
			    const uint8_t *record, int64_t now)
{
	const unsigned int fact = fact_of_kind[kind];
	struct cache_converter want = naive_converter(kind, record), got;
	const struct cache_converter forget = { 0 }, all = {
		.rest.until = now + 1,
		.info = { .until = now + 1, .flags = 2, .count = 1, .kinds = { 30 } },
		.cookie = { .until = now + 1, .len = 4, .bytes = "true" },
		.mptcp = { .until = now + 1, .verdict = CACHE_MPTCP_LOST },
		.silence = { .until = now + 1, .destination = 3, .destinations = 2 },
		.path = { .until = now + 1, .asked = 5, .state = CACHE_PATH_LOSES, .rtt_ms = 6, .doubts = 7 },
	};

	REQUIRE(cache_converter_get(&cache, address, CACHE_INPUT_PATH, fact, now, &got) == want.known);
	REQUIRE(memcmp(&got, &want, sizeof(got)) == 0);
	REQUIRE(cache_converter_update(&cache, address, CACHE_INPUT_PATH, fact, now, &all) == 0);
	REQUIRE(cache_converter_get(&cache, address, CACHE_INPUT_PATH, fact, now, &got) == fact);
	want = (struct cache_converter){ .known = fact };
	switch (kind) {
	case CACHE_KIND_REST:
		want.rest = all.rest;
		want.rest.learned = now;
		break;
	case CACHE_KIND_INFO:
		want.info = all.info;
		want.info.learned = now;
		break;
	case CACHE_KIND_MPTCP:
		want.mptcp = all.mptcp;
		want.mptcp.learned = now;
		break;
	case CACHE_KIND_SILENCE:
		want.silence = all.silence;
		want.silence.learned = now;
		break;
	case CACHE_KIND_PATH:
		want.path = all.path;
		want.path.learned = now;
		break;
	default:
		want.cookie = all.cookie;
		want.cookie.learned = now;
	}
	REQUIRE(memcmp(&got, &want, sizeof(got)) == 0);
	REQUIRE(cache_converter_update(&cache, address, CACHE_INPUT_PATH, fact, now, &forget) == 0);
	REQUIRE(cache_converter_get(&cache, address, CACHE_INPUT_PATH, fact, now, &got) == 0);
}

static void answer_check(const union sockaddr_ip *address, const uint8_t *record, int64_t now)
{
	uint32_t verdict = 0;

	if (record)
		memcpy(&verdict, record + 56, sizeof(verdict));
	REQUIRE(cache_answer_get(&cache, address, 0, now) == verdict);
	REQUIRE(cache_answer_put(&cache, address, 0, CACHE_YES, now, INT64_MAX) == 0);
	REQUIRE(cache_answer_get(&cache, address, 0, now) == CACHE_YES);
	REQUIRE(cache_answer_get(&cache, address, 0, now + CACHE_LIFETIME_MAX - 1) == CACHE_YES);
	REQUIRE(cache_answer_get(&cache, address, 0, now + CACHE_LIFETIME_MAX) == CACHE_UNKNOWN);
	REQUIRE(cache_answer_put(&cache, address, 0, CACHE_UNKNOWN, now, INT64_MAX) == 0);
	REQUIRE(cache_answer_get(&cache, address, 0, now) == CACHE_UNKNOWN);
}

/* Writes right checksums into the records of @bytes that claim to be of this kind. */
static void seal(uint8_t *bytes, const struct cache_table *table, enum cache_kind kind)
{
	for (uint32_t way = 0; way < table->ways; way++) {
		struct cache_record copy = { 0 };

		memcpy(&copy, bytes + way * table->record_size, table->record_size);
		if (copy.key.kind == kind)
			cache_record_seal(&copy);
		memcpy(bytes + way * table->record_size, &copy, table->record_size);
	}
}

static void bucket_check(const uint8_t *data, size_t size, enum cache_kind kind, bool sealed,
			 int64_t now)
{
	const struct cache_table *table = cache_table_of(kind);
	size_t length = (size_t)table->ways * table->record_size;
	uint8_t before[CACHE_BUCKET_MAX] = { 0 }, guards[2][GUARD], *bucket;
	const uint8_t *record;
	union sockaddr_ip address;
	struct cache_key key;

	REQUIRE(sockaddr_ip_parse(&address, CACHE_INPUT_ADDRESS, 0) == 0);
	REQUIRE(cache_key_set(&key, kind, &address, 0, CACHE_INPUT_PATH));
	memcpy(before, data, size < length ? size : length);
	if (sealed)
		seal(before, table, kind);
	bucket = file + cache_bucket_offset(&key);
	REQUIRE(bucket - GUARD >= file && bucket + length + GUARD <= file + cache_file_size());
	memcpy(guards[0], bucket - GUARD, GUARD);
	memcpy(guards[1], bucket + length, GUARD);
	memcpy(bucket, before, length);
	record = naive_find(before, &key, now);
	if (kind == CACHE_KIND_ANSWER)
		answer_check(&address, record, now);
	else
		converter_check(&address, kind, record, now);
	REQUIRE(memcmp(guards[0], bucket - GUARD, GUARD) == 0);
	REQUIRE(memcmp(guards[1], bucket + length, GUARD) == 0);
}

/* Uses the bytes as the beginning of the file, or as all of it. */
static void file_check(const uint8_t *data, size_t size, bool cut, int64_t now)
{
	char path[sizeof(other) + sizeof(CACHE_FILE) + 1];
	union sockaddr_ip address;
	struct cache damaged;
	int fd;

	REQUIRE(cache_open(&damaged, other) == 0);
	snprintf(path, sizeof(path), "%s/" CACHE_FILE, other);
	fd = open(path, O_WRONLY);
	REQUIRE(fd >= 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
	REQUIRE(!cut || ftruncate(fd, (off_t)size) == 0);
	close(fd);
	cache_close(&damaged);
	REQUIRE(cache_open(&damaged, other) == 0);
	REQUIRE(sockaddr_ip_parse(&address, CACHE_INPUT_ADDRESS, 0) == 0);
	REQUIRE(cache_answer_put(&damaged, &address, 0, CACHE_NO, now, now + 1) == 0);
	REQUIRE(cache_answer_get(&damaged, &address, 0, now) == CACHE_NO);
	cache_close(&damaged);
}

/* Uses the bytes as notes about connections: the reason of each note that is read has an end, and a note that is put is found. */
static void note_check(const uint8_t *data, size_t size, bool sealed)
{
	static struct note notes[4096];
	const struct cache_table *table = cache_table_of(CACHE_KIND_NOTE);
	const size_t length = (size_t)table->ways * table->record_size;
	struct note ours = { .cookie = 42, .reason = "no converter" };
	char path[sizeof(directory) + sizeof(CACHE_FILE) + 1];
	uint8_t before[CACHE_BUCKET_MAX] = { 0 };
	bool found = false;
	uid_t owner;
	int count;

	memcpy(before, data, size < length ? size : length);
	if (sealed)
		seal(before, table, CACHE_KIND_NOTE);
	memcpy(file + table->offset, before, length);
	REQUIRE(sockaddr_ip_parse(&ours.server, CACHE_INPUT_ADDRESS, 0) == 0);
	note_put(&cache, &ours);
	snprintf(path, sizeof(path), "%s/" CACHE_FILE, directory);
	count = notes_read(path, atomic_load(&cache.network), notes, sizeof(notes) / sizeof(notes[0]), &owner);
	REQUIRE(count > 0 && owner == geteuid());
	for (int i = 0; i < count; i++) {
		REQUIRE(memchr(notes[i].reason, '\0', sizeof(notes[i].reason)));
		found |= notes[i].cookie == ours.cookie && sockaddr_ip_equal(&notes[i].server, &ours.server);
	}
	REQUIRE(found);
}

void cache_check(const uint8_t *data, size_t size)
{
	const enum cache_kind kind = size ? (enum cache_kind)(1 + (data[0] & 7) % (CACHE_KIND_COUNT - 1)) : CACHE_KIND_NONE;
	int64_t now;
	int16_t time;

	if (size < CACHE_INPUT_HEAD)
		return;
	start();
	memcpy(&time, data + 2, sizeof(time));
	now = CACHE_INPUT_NOW + time * (int64_t)CACHE_INPUT_UNIT;
	if (data[0] & CACHE_INPUT_FILE)
		file_check(data + CACHE_INPUT_HEAD, size - CACHE_INPUT_HEAD,
			   data[0] & CACHE_INPUT_CUT, now);
	else if (kind == CACHE_KIND_NOTE)
		note_check(data + CACHE_INPUT_HEAD, size - CACHE_INPUT_HEAD, data[0] & CACHE_INPUT_SEALED);
	else
		bucket_check(data + CACHE_INPUT_HEAD, size - CACHE_INPUT_HEAD, kind, data[0] & CACHE_INPUT_SEALED, now);
}
