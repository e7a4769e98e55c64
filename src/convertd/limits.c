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
 * One lock for everything: a session takes it some six times in its life, for less than a
 * microsecond in all.
 *
 * Buckets: a client may be sent BURST_SECONDS times its rate at once; tokens are counted in
 * thousandths, so that a millisecond gives as many as the rate is.
 */
#include "config.h"

#include "convertd/limits.h"

#include <pthread.h>
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
	pthread_mutex_t lock; /* for all that follows, clients included */
	struct limits_settings settings;
	uint8_t hash_key[crypto_shorthash_KEYBYTES];
	struct limits_client *clients;
	struct limits_client *idle; /* without a session, the first that has left first */
	size_t idle_count;
	size_t count[LIMITS_CLASS_COUNT];
	size_t leaving; /* pending ones that have been told to go, and don't count any more */
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

	if (!limits)
		return NULL;
	pthread_mutex_init(&limits->lock, NULL);
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
	pthread_mutex_destroy(&limits->lock);
	free(limits);
}

void limits_configure(struct limits *limits, const struct limits_settings *settings)
{
	pthread_mutex_lock(&limits->lock);
	limits->settings = *settings;
	pthread_mutex_unlock(&limits->lock);
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

/* The client of that key, which isn't idle any more; made if it isn't known. NULL without memory. */
static struct limits_client *client_get(struct limits *limits, const uint8_t key[static KEY_LEN])
{
	struct limits_client *client;

	HASH_FIND(hh, limits->clients, key, KEY_LEN, client);
	if (!client)
		return client_create(limits, key);
	if (!client_sessions(client)) {
		DL_DELETE(limits->idle, client);
		limits->idle_count--;
	}
	return client;
}

static struct limits_client *enter(struct limits *limits, const struct in6_addr *address)
{
	bool v4 = IN6_IS_ADDR_V4MAPPED(address);
	struct prefix prefix = prefix_of(address, (uint8_t)(v4 ? 96 + limits->settings.prefix_v4 :
								 limits->settings.prefix_v6));
	uint8_t key[KEY_LEN];
	struct limits_client *client;

	memcpy(key, &prefix.address, sizeof(prefix.address));
	key[KEY_LEN - 1] = prefix.length;
	client = client_get(limits, key);
	if (!client)
		return NULL;
	client->count[LIMITS_PENDING]++;
	limits->count[LIMITS_PENDING]++;
	return client;
}

struct limits_client *limits_enter(struct limits *limits, const struct in6_addr *address)
{
	struct limits_client *client;

	pthread_mutex_lock(&limits->lock);
	client = enter(limits, address);
	pthread_mutex_unlock(&limits->lock);
	return client;
}

void limits_move(struct limits *limits, struct limits_client *client, enum limits_class from,
		 enum limits_class to)
{
	pthread_mutex_lock(&limits->lock);
	client->count[from]--;
	limits->count[from]--;
	client->count[to]++;
	limits->count[to]++;
	pthread_mutex_unlock(&limits->lock);
}

static uint64_t bucket_size(unsigned rate)
{
	return (uint64_t)rate * BURST_SECONDS * 1000;
}

/* Fills it up to now. */
static void bucket_fill(struct bucket *bucket, unsigned rate, uint64_t now_ms)
{
	uint64_t full = bucket_size(rate);
	/* Another thread may have looked at the clock earlier and come later. */
	uint64_t elapsed = now_ms > bucket->filled_ms ? now_ms - bucket->filled_ms : 0;

	if (!bucket->filled_ms || elapsed >= BURST_SECONDS * 1000)
		bucket->tokens = full;
	else
		bucket->tokens += elapsed * rate;
	if (bucket->tokens > full)
		bucket->tokens = full;
	if (now_ms > bucket->filled_ms)
		bucket->filled_ms = now_ms;
}

static bool bucket_is_full(struct bucket *bucket, unsigned rate, uint64_t now_ms)
{
	if (!bucket->filled_ms)
		return true;
	bucket_fill(bucket, rate, now_ms);
	return bucket->tokens == bucket_size(rate);
}

static void leave(struct limits *limits, struct limits_client *client, enum limits_class from,
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

void limits_leave(struct limits *limits, struct limits_client *client, enum limits_class from,
		  uint64_t now_ms)
{
	pthread_mutex_lock(&limits->lock);
	leave(limits, client, from, now_ms);
	pthread_mutex_unlock(&limits->lock);
}

void limits_expect_leave(struct limits *limits)
{
	pthread_mutex_lock(&limits->lock);
	limits->leaving++;
	pthread_mutex_unlock(&limits->lock);
}

void limits_expect_no_leave(struct limits *limits)
{
	pthread_mutex_lock(&limits->lock);
	limits->leaving--;
	pthread_mutex_unlock(&limits->lock);
}

size_t limits_sessions(struct limits *limits)
{
	size_t count;

	pthread_mutex_lock(&limits->lock);
	count = limits->count[LIMITS_PENDING] + limits->count[LIMITS_OPEN] +
		limits->count[LIMITS_REFUSING];
	pthread_mutex_unlock(&limits->lock);
	return count;
}

size_t limits_clients(struct limits *limits)
{
	size_t count;

	pthread_mutex_lock(&limits->lock);
	count = HASH_COUNT(limits->clients);
	pthread_mutex_unlock(&limits->lock);
	return count;
}

static bool exceeds(size_t count, unsigned limit)
{
	return limit && count > limit;
}

static enum outcome client_exceeded(const struct limits *limits,
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

enum outcome limits_client_exceeded(struct limits *limits, const struct limits_client *client)
{
	enum outcome reason;

	pthread_mutex_lock(&limits->lock);
	reason = client_exceeded(limits, client);
	pthread_mutex_unlock(&limits->lock);
	return reason;
}

/* @leaving: of the pending ones, those that don't count */
static enum outcome total_exceeded(const struct limits *limits, size_t leaving)
{
	const struct limits_settings *settings = &limits->settings;
	size_t pending = limits->count[LIMITS_PENDING];

	pending -= leaving < pending ? leaving : pending;
	if (exceeds(pending, settings->pending.total))
		return OUTCOME_LIMIT_PENDING;
	if (exceeds(pending + limits->count[LIMITS_OPEN], settings->connections.total))
		return OUTCOME_LIMIT_CONNECTIONS;
	return OUTCOME_NONE;
}

enum outcome limits_total_exceeded(struct limits *limits)
{
	enum outcome reason;

	pthread_mutex_lock(&limits->lock);
	reason = total_exceeded(limits, limits->leaving);
	pthread_mutex_unlock(&limits->lock);
	return reason;
}

bool limits_leave_still_needed(struct limits *limits)
{
	bool needed;

	pthread_mutex_lock(&limits->lock);
	needed = total_exceeded(limits, limits->leaving - 1) != OUTCOME_NONE;
	pthread_mutex_unlock(&limits->lock);
	return needed;
}

bool limits_may_refuse(struct limits *limits, const struct limits_client *client)
{
	const struct limit *pending = &limits->settings.pending;
	bool may;

	pthread_mutex_lock(&limits->lock);
	may = !exceeds(client->count[LIMITS_REFUSING] + 1, pending->per_client) &&
	      !exceeds(limits->count[LIMITS_REFUSING] + 1, pending->total);
	pthread_mutex_unlock(&limits->lock);
	return may;
}

static bool take_error(struct limits *limits, struct limits_client *client, uint64_t now_ms)
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

bool limits_take_error(struct limits *limits, struct limits_client *client, uint64_t now_ms)
{
	bool taken;

	pthread_mutex_lock(&limits->lock);
	taken = take_error(limits, client, now_ms);
	pthread_mutex_unlock(&limits->lock);
	return taken;
}
