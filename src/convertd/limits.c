/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * limits.c - how much of the converter one client prefix, and all of them, may take (no I/O)
 *
 * A client is known as long as it has a session, and afterwards until its bucket of errors is full
 * again. There are no more of the former than sessions, and of the latter LIMITS_IDLE_MAX: then
 * the one that has left first is forgotten. So a flood from forged addresses can't make the table
 * grow; what it can do is to make it forget, and for that case there is the bucket that all
 * clients share.
 *
 * The table is hashed with a secret key (SipHash): whoever chooses a client's address can't choose
 * its place in the table.
 *
 * Buckets: a client may be sent BURST_SECONDS times its rate at once; tokens are counted in
 * thousandths, so that a millisecond gives as many as the rate is.
 */
#include "config.h"

#include "convertd/limits.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define HASH_NONFATAL_OOM 1
#define HASH_FUNCTION(key, len, hash) ((hash) = hash_prefix(limits, (key), (len)))
#include <uthash.h>

#define BURST_SECONDS 5

/* An address and a length, without the padding that struct prefix has. */
#define KEY_LEN 17

struct bucket {
	uint64_t filled_ms; /* when @tokens was right; 0: never used, full */
	uint64_t tokens;    /* thousandths of an error */
};

struct limits_client {
	uint8_t key[KEY_LEN]; /* the prefix */
	unsigned count[LIMITS_CLASS_COUNT];
	struct bucket errors;
	struct limits_client *prev, *next; /* in limits->idle */
	UT_hash_handle hh;
};

struct limits {
	struct limits_settings settings;
	uint8_t hash_key[crypto_shorthash_KEYBYTES];
	struct limits_client *clients;
	struct limits_client *idle; /* without a session, the first that has left first */
	size_t idle_count;
	size_t count[LIMITS_CLASS_COUNT];
	struct bucket errors;
};

static unsigned hash_prefix(const struct limits *limits, const void *key, size_t len)
{
	uint8_t hash[crypto_shorthash_BYTES];
	unsigned result;

	crypto_shorthash(hash, key, len, limits->hash_key);
	memcpy(&result, hash, sizeof(result));
	return result;
}

struct limits *limits_create(void)
{
	struct limits *limits = sodium_init() < 0 ? NULL : calloc(1, sizeof(*limits));

	if (limits)
		crypto_shorthash_keygen(limits->hash_key);
	return limits;
}

static void forget(struct limits *limits, struct limits_client *client)
{
	HASH_DELETE(hh, limits->clients, client);
	free(client);
}

void limits_destroy(struct limits *limits)
{
	struct limits_client *client, *next;

	if (!limits)
		return;
	HASH_ITER(hh, limits->clients, client, next)
		forget(limits, client);
	free(limits);
}

void limits_configure(struct limits *limits, const struct limits_settings *settings)
{
	limits->settings = *settings;
}

static struct limits_client *client_create(struct limits *limits, const uint8_t key[static KEY_LEN])
{
	struct limits_client *client = calloc(1, sizeof(*client));

	if (!client)
		return NULL;
	memcpy(client->key, key, KEY_LEN);
	HASH_ADD(hh, limits->clients, key, KEY_LEN, client);
	if (client->hh.tbl)
		return client;
	free(client);
	return NULL;
}

static unsigned client_sessions(const struct limits_client *client)
{
	return client->count[LIMITS_PENDING] + client->count[LIMITS_OPEN] +
	       client->count[LIMITS_REFUSING];
}

struct limits_client *limits_enter(struct limits *limits, const struct in6_addr *address)
{
	bool v4 = IN6_IS_ADDR_V4MAPPED(address);
	struct prefix prefix = prefix_of(address, (uint8_t)(v4 ? 96 + limits->settings.prefix_v4 :
								 limits->settings.prefix_v6));
	uint8_t key[KEY_LEN];
	struct limits_client *client;

	memcpy(key, &prefix.address, sizeof(prefix.address));
	key[KEY_LEN - 1] = prefix.length;
	HASH_FIND(hh, limits->clients, key, KEY_LEN, client);
	if (!client) {
		client = client_create(limits, key);
		if (!client)
			return NULL;
	} else if (!client_sessions(client)) {
		DL_DELETE(limits->idle, client);
		limits->idle_count--;
	}
	client->count[LIMITS_PENDING]++;
	limits->count[LIMITS_PENDING]++;
	return client;
}

void limits_move(struct limits *limits, struct limits_client *client, enum limits_class from,
		 enum limits_class to)
{
	client->count[from]--;
	limits->count[from]--;
	client->count[to]++;
	limits->count[to]++;
}

static uint64_t bucket_size(unsigned rate)
{
	return (uint64_t)rate * BURST_SECONDS * 1000;
}

/* Fills it up to now. */
static void bucket_fill(struct bucket *bucket, unsigned rate, uint64_t now_ms)
{
	uint64_t full = bucket_size(rate);
	uint64_t elapsed = now_ms - bucket->filled_ms;

	if (!bucket->filled_ms || elapsed >= BURST_SECONDS * 1000)
		bucket->tokens = full;
	else
		bucket->tokens += elapsed * rate;
	if (bucket->tokens > full)
		bucket->tokens = full;
	bucket->filled_ms = now_ms;
}

static bool bucket_is_full(struct bucket *bucket, unsigned rate, uint64_t now_ms)
{
	if (!bucket->filled_ms)
		return true;
	bucket_fill(bucket, rate, now_ms);
	return bucket->tokens == bucket_size(rate);
}

void limits_leave(struct limits *limits, struct limits_client *client, enum limits_class from,
		  uint64_t now_ms)
{
	unsigned rate = limits->settings.errors.per_client;

	client->count[from]--;
	limits->count[from]--;
	if (client_sessions(client))
		return;
	if (bucket_is_full(&client->errors, rate, now_ms)) {
		forget(limits, client);
		return;
	}
	DL_APPEND(limits->idle, client);
	if (++limits->idle_count > LIMITS_IDLE_MAX) {
		client = limits->idle;
		DL_DELETE(limits->idle, client);
		limits->idle_count--;
		forget(limits, client);
	}
}

size_t limits_sessions(const struct limits *limits)
{
	return limits->count[LIMITS_PENDING] + limits->count[LIMITS_OPEN] +
	       limits->count[LIMITS_REFUSING];
}

size_t limits_clients(const struct limits *limits)
{
	return HASH_COUNT(limits->clients);
}

static bool exceeds(size_t count, unsigned limit)
{
	return limit && count > limit;
}

enum outcome limits_client_exceeded(const struct limits *limits,
				    const struct limits_client *client)
{
	const struct limits_settings *settings = &limits->settings;

	if (exceeds(client->count[LIMITS_PENDING], settings->pending.per_client))
		return OUTCOME_LIMIT_CLIENT_PENDING;
	if (exceeds(client->count[LIMITS_PENDING] + client->count[LIMITS_OPEN],
		    settings->connections.per_client))
		return OUTCOME_LIMIT_CLIENT_CONNECTIONS;
	return OUTCOME_NONE;
}

enum outcome limits_total_exceeded(const struct limits *limits)
{
	const struct limits_settings *settings = &limits->settings;

	if (exceeds(limits->count[LIMITS_PENDING], settings->pending.total))
		return OUTCOME_LIMIT_PENDING;
	if (exceeds(limits->count[LIMITS_PENDING] + limits->count[LIMITS_OPEN],
		    settings->connections.total))
		return OUTCOME_LIMIT_CONNECTIONS;
	return OUTCOME_NONE;
}

bool limits_may_refuse(const struct limits *limits, const struct limits_client *client)
{
	const struct limit *pending = &limits->settings.pending;

	return !exceeds(client->count[LIMITS_REFUSING] + 1, pending->per_client) &&
	       !exceeds(limits->count[LIMITS_REFUSING] + 1, pending->total);
}

bool limits_take_error(struct limits *limits, struct limits_client *client, uint64_t now_ms)
{
	const struct limit *rate = &limits->settings.errors;

	bucket_fill(&client->errors, rate->per_client, now_ms);
	bucket_fill(&limits->errors, rate->total, now_ms);
	if ((rate->per_client && client->errors.tokens < 1000) ||
	    (rate->total && limits->errors.tokens < 1000))
		return false;
	if (rate->per_client)
		client->errors.tokens -= 1000;
	if (rate->total)
		limits->errors.tokens -= 1000;
	return true;
}
