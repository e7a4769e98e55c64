/* SPDX-License-Identifier: BSD-3-Clause */
/* cache_record.c - the bytes of the cache's file: header and records, where they are */
#include "config.h"

#include "client/cache_record.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#define LAYOUT 2 /* change it, and CACHE_FILE, with anything here that changes the file */

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define SIZE_UP_TO(member)                                                                         \
	(offsetof(struct cache_record, value) +                                                    \
	 sizeof(((const union cache_value *)NULL)->member))

/* 32-bit and 64-bit processes share a file: no padding, whatever the alignment of 64 bits. */
static_assert(offsetof(struct cache_record, key) == 24, "no padding");
static_assert(offsetof(struct cache_record, value) == 56, "no padding");
static_assert(sizeof(struct cache_record) == 56 + 1000, "no padding");
static_assert(sizeof(struct cache_header) == 64, "no padding");

/* Room for 1024 servers, 256 facts about converters, 32 cookies. */
#define SERVER_SIZE 64u
#define FACT_SIZE 96u
#define COOKIE_SIZE 1056u
static_assert(SIZE_UP_TO(server) <= SERVER_SIZE, "a server fits");
static_assert(SIZE_UP_TO(info) <= FACT_SIZE && SIZE_UP_TO(mptcp) <= FACT_SIZE && SIZE_UP_TO(silence) <= FACT_SIZE &&
		      SIZE_UP_TO(path) <= FACT_SIZE,
	      "a fact fits");
static_assert(SIZE_UP_TO(cookie) <= COOKIE_SIZE, "a cookie fits");
static_assert(2 * COOKIE_SIZE <= CACHE_BUCKET_MAX, "the longest bucket");

enum { SERVERS, FACTS, COOKIES };
static const struct cache_table tables[] = {
	[SERVERS] = { CACHE_TABLES_OFFSET, 128, 8, SERVER_SIZE },
	[FACTS] = { CACHE_TABLES_OFFSET + 128 * 8 * SERVER_SIZE, 32, 8, FACT_SIZE },
	[COOKIES] = { CACHE_TABLES_OFFSET + 128 * 8 * SERVER_SIZE + 32 * 8 * FACT_SIZE, 16, 2,
		      COOKIE_SIZE },
};

static const uint8_t table_of_kind[] = {
	[CACHE_KIND_REST] = FACTS,     [CACHE_KIND_INFO] = FACTS,  [CACHE_KIND_COOKIE] = COOKIES, [CACHE_KIND_SERVER] = SERVERS,
	[CACHE_KIND_MPTCP] = FACTS,    [CACHE_KIND_SILENCE] = FACTS, [CACHE_KIND_PATH] = FACTS,
};
static_assert(ARRAY_SIZE(table_of_kind) == CACHE_KIND_COUNT, "a table for each kind");

uint32_t cache_file_size(void)
{
	const struct cache_table *last = &tables[COOKIES];

	return last->offset + last->buckets * last->ways * last->record_size;
}

void cache_header_set(struct cache_header *out, const char *boot)
{
	memset(out, 0, sizeof(*out));
	memcpy(out->magic, "libconvert cache", sizeof(out->magic));
	out->layout = LAYOUT;
	out->size = cache_file_size();
	memcpy(out->boot, boot, CACHE_BOOT_ID_LEN);
}

bool cache_key_set(struct cache_key *out, enum cache_kind kind, const union sockaddr_ip *address,
		   uint64_t path)
{
	struct in6_addr in6;

	memset(out, 0, sizeof(*out));
	if (address->sa.sa_family != AF_INET && address->sa.sa_family != AF_INET6)
		return false;
	in6 = sockaddr_ip_in6(address);
	memcpy(out->address, &in6, sizeof(out->address));
	out->port = sockaddr_ip_port(address);
	out->kind = (uint8_t)kind;
	out->path = kind == CACHE_KIND_PATH ? path : 0;
	return true;
}

const struct cache_table *cache_table_of(enum cache_kind kind)
{
	return &tables[table_of_kind[kind]];
}

/*
 * Each step is a bijection of the state, so that two inputs of one length which differ in one
 * word never have the same hash: a single damaged byte is always found.
 */
static uint64_t hash(uint64_t state, const void *data, size_t len)
{
	const uint8_t *bytes = data;
	uint64_t word;

	for (; len >= sizeof(word); bytes += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, bytes, sizeof(word));
		state = (state ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		state = (state ^ state >> 32) * UINT64_C(0xd6e8feb86659fd93);
	}
	return state;
}

uint32_t cache_bucket_offset(const struct cache_key *key)
{
	const struct cache_table *table = cache_table_of((enum cache_kind)key->kind);
	uint64_t state = hash(key->port, key->address, sizeof(key->address));
	uint32_t bucket = (uint32_t)(state >> 32) & (table->buckets - 1);

	return table->offset + bucket * table->ways * table->record_size;
}

static uint64_t checksum_of(const struct cache_record *record, const struct cache_table *table)
{
	const size_t start = sizeof(record->checksum);

	return hash(LAYOUT, (const uint8_t *)record + start, table->record_size - start);
}

void cache_record_seal(struct cache_record *record)
{
	record->checksum = checksum_of(record, cache_table_of((enum cache_kind)record->key.kind));
}

bool cache_record_is_whole(const struct cache_record *record, const struct cache_table *table)
{
	uint8_t kind = record->key.kind;

	return kind > CACHE_KIND_NONE && kind < CACHE_KIND_COUNT &&
	       cache_table_of((enum cache_kind)kind) == table &&
	       record->checksum == checksum_of(record, table);
}

static bool rest_is_valid(const union cache_value *value)
{
	(void)value;
	return true;
}

static bool info_is_valid(const union cache_value *value)
{
	return value->info.count <= CACHE_KINDS_MAX &&
	       !memchr(value->info.kinds, 0, value->info.count);
}

static bool silence_is_valid(const union cache_value *value)
{
	return value->silence.destinations > 0;
}

static bool cookie_is_valid(const union cache_value *value)
{
	return value->cookie.len > 0 && value->cookie.len <= CACHE_COOKIE_MAX;
}

static bool server_is_valid(const union cache_value *value)
{
	return value->server.verdict > CACHE_SERVER_UNKNOWN &&
	       value->server.verdict < CACHE_SERVER_VERDICT_COUNT;
}

static bool mptcp_is_valid(const union cache_value *value)
{
	return value->mptcp.verdict > CACHE_MPTCP_UNKNOWN && value->mptcp.verdict < CACHE_MPTCP_COUNT;
}

static bool path_is_valid(const union cache_value *value)
{
	return value->path.state > CACHE_PATH_UNKNOWN && value->path.state < CACHE_PATH_COUNT &&
	       value->path.asked <= INT64_MAX;
}

bool cache_value_is_valid(enum cache_kind kind, const union cache_value *value)
{
	static bool (*const checks[])(const union cache_value *) = {
		[CACHE_KIND_REST] = rest_is_valid,
		[CACHE_KIND_INFO] = info_is_valid,     [CACHE_KIND_COOKIE] = cookie_is_valid,
		[CACHE_KIND_SERVER] = server_is_valid, [CACHE_KIND_MPTCP] = mptcp_is_valid,
		[CACHE_KIND_SILENCE] = silence_is_valid, [CACHE_KIND_PATH] = path_is_valid,
	};
	static_assert(ARRAY_SIZE(checks) == CACHE_KIND_COUNT, "a check for each kind");

	return checks[kind](value);
}

bool cache_record_is_valid(const struct cache_record *record, const struct cache_table *table,
			   int64_t now)
{
	/* in this order nothing overflows, whatever the numbers are */
	return cache_record_is_whole(record, table) && record->learned > 0 &&
	       record->learned <= now + CACHE_CLOCK_SLACK && record->until > now &&
	       record->until <= record->learned + CACHE_LIFETIME_MAX &&
	       cache_value_is_valid((enum cache_kind)record->key.kind, &record->value);
}
