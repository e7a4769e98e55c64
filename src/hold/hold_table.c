/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hold_table.c - the SYNs that are withheld, and released ones whose connections haven't been accepted yet
 *
 * The problem. One worker withholds a SYN and asks the server; another may accept the connection that the SYN makes in
 * the end, and needs the server's socket. And a SYN that comes again must not make the converter ask the server again
 * (RFC 8803 9.3).
 *
 * One table, with one lock, is shared by all workers. An entry is in one of these states:
 *
 *     withheld   withheld_add(): the packet is in the queue; only its worker may touch the entry
 *     released   withheld_release(): the packet goes on; whoever takes the entry out owns it: the worker that accepts the
 *                connection (withheld_take()), time (withheld_expire()), or the worker that has withheld it and
 *                needs its room (withheld_take_back())
 *     taken      out of the table
 *
 * Entries are found by the connection's addresses and ports, hashed with a secret key: whoever forges SYNs can't
 * choose their places. A SYN that comes again is found as long as the first one is in the table; afterwards by a hash of
 * its addresses and sequence number, of which the last RECENT_MAX or so are remembered. A forgotten one, or a forged
 * one with the same hash (2^-56), costs one more connection to the server, no more.
 *
 * A client that makes its request again does so by a SYN of other ports: as long as the earlier one is withheld, that is found by
 * the attempt's number, too.
 *
 * Limits: WITHHELD_MAX entries and WITHHELD_BYTES_MAX bytes of packets. What the entries own is freed by those who
 * take them; the table is empty when it is destroyed.
 */
#include "config.h"

/* Before uthash.h, which the header includes. */
#define HASH_NONFATAL_OOM 1
#define HASH_FUNCTION(key, len, hash) ((hash) = hash_flow(table, (key), (len)))

#include "hold/hold_table.h"

#include "hold/syn_packet.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

/* A power of 2. */
#define RECENT_MAX 16384

/* The byte of a hash that makes room for how its SYN was refused. */
#define NATIVE_MASK UINT64_C(0xff)

struct withheld_table {
	pthread_mutex_t lock; /* for all below */
	uint8_t hash_key[crypto_shorthash_KEYBYTES];
	struct withheld_syn *entries;
	struct withheld_syn *attempts; /* those of the entries that are withheld, and have an attempt */
	struct withheld_syn *released; /* the one that was released first is the first */
	size_t bytes;                      /* of packets */
	atomic_size_t count;               /* read without the lock */
	uint64_t recent[RECENT_MAX];       /* hashes, whose last byte says how the SYN was refused, or NATIVE_NONE */
};

static_assert(crypto_shorthash_BYTES == sizeof(uint64_t), "a hash is a number");
static_assert(sizeof(struct syn_packet_flow) == 36, "no padding in a key");
static_assert(sizeof(struct withheld_attempt) == 24, "no padding in a key");

static unsigned hash_flow(const struct withheld_table *table, const void *key, size_t len)
{
	uint64_t hash;

	crypto_shorthash((uint8_t *)&hash, key, len, table->hash_key);
	return (unsigned)hash;
}

static uint64_t hash_syn(const struct withheld_table *table, const struct syn_packet_flow *flow,
			 uint32_t isn)
{
	uint8_t key[sizeof(*flow) + sizeof(isn)];
	uint64_t hash;

	memcpy(key, flow, sizeof(*flow));
	memcpy(key + sizeof(*flow), &isn, sizeof(isn));
	crypto_shorthash((uint8_t *)&hash, key, sizeof(key), table->hash_key);
	return hash & ~NATIVE_MASK;
}

/* The caller holds the lock. */
static uint64_t *recent_place(struct withheld_table *table, uint64_t hash)
{
	return &table->recent[hash / (NATIVE_MASK + 1) % RECENT_MAX];
}

void withheld_syn_close(struct withheld_syn *syn)
{
	if (syn->fd < 0)
		return;
	downstream_reset(syn->fd);
	close(syn->fd);
	syn->fd = -1;
}

void withheld_syn_fini(struct withheld_syn *syn)
{
	free(syn->packet);
	withheld_syn_close(syn);
}

struct withheld_table *withheld_create(void)
{
	struct withheld_table *table = sodium_init() < 0 ? NULL : calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	pthread_mutex_init(&table->lock, NULL);
	crypto_shorthash_keygen(table->hash_key);
	return table;
}

void withheld_destroy(struct withheld_table *table)
{
	if (!table)
		return;
	pthread_mutex_destroy(&table->lock);
	free(table);
}

size_t withheld_count(const struct withheld_table *table)
{
	return atomic_load_explicit(&table->count, memory_order_acquire);
}

static struct withheld_syn *find(struct withheld_table *table, const struct syn_packet_flow *flow)
{
	struct withheld_syn *syn;

	HASH_FIND(hh, table->entries, flow, sizeof(*flow), syn);
	return syn;
}

enum withheld_known withheld_look(struct withheld_table *table, const struct syn_packet_flow *flow,
				uint32_t isn, uint8_t *native)
{
	uint64_t hash = hash_syn(table, flow, isn), recent;
	enum withheld_known known = WITHHELD_NEW;
	const struct withheld_syn *syn;

	pthread_mutex_lock(&table->lock);
	syn = find(table, flow);
	recent = *recent_place(table, hash);
	*native = (uint8_t)(recent & NATIVE_MASK);
	if (syn)
		known = syn->withheld ? WITHHELD_NOW : WITHHELD_BEFORE;
	else if ((recent & ~NATIVE_MASK) == hash)
		known = *native == NATIVE_NONE ? WITHHELD_BEFORE : WITHHELD_REFUSED;
	pthread_mutex_unlock(&table->lock);
	return known;
}

/* The caller holds the lock. */
static struct withheld_syn *find_attempt(struct withheld_table *table, const struct withheld_attempt *attempt)
{
	struct withheld_syn *syn;

	HASH_FIND(hh_attempt, table->attempts, attempt, sizeof(*attempt), syn);
	return syn;
}

struct withheld_syn *withheld_find(struct withheld_table *table, const struct withheld_attempt *attempt,
				   const struct limits_owner *owner)
{
	struct withheld_syn *syn;

	pthread_mutex_lock(&table->lock);
	syn = find_attempt(table, attempt);
	if (syn && syn->member.owner != owner)
		syn = NULL;
	pthread_mutex_unlock(&table->lock);
	return syn;
}

/* Has the entry be found by its attempt. Without memory, or if another one has the same, it isn't. The caller holds the lock. */
static void attempt_enter(struct withheld_table *table, struct withheld_syn *syn)
{
	if (syn->attempt.number && !find_attempt(table, &syn->attempt))
		HASH_ADD(hh_attempt, table->attempts, attempt, sizeof(syn->attempt), syn);
}

static void attempt_leave(struct withheld_table *table, struct withheld_syn *syn)
{
	if (syn->hh_attempt.tbl)
		HASH_DELETE(hh_attempt, table->attempts, syn);
	syn->hh_attempt.tbl = NULL;
}

int withheld_add(struct withheld_table *table, struct withheld_syn *syn)
{
	int error = -ENOSPC;

	pthread_mutex_lock(&table->lock);
	if (atomic_load(&table->count) < WITHHELD_MAX &&
	    table->bytes + syn->packet_len <= WITHHELD_BYTES_MAX) {
		syn->withheld = true;
		HASH_ADD(hh, table->entries, flow, sizeof(syn->flow), syn);
		error = syn->hh.tbl ? 0 : -ENOMEM;
	}
	if (!error) {
		table->bytes += syn->packet_len;
		atomic_fetch_add(&table->count, 1);
		attempt_enter(table, syn);
	}
	pthread_mutex_unlock(&table->lock);
	return error;
}

void withheld_release(struct withheld_table *table, struct withheld_syn *syn, uint64_t now_ms)
{
	uint64_t hash = hash_syn(table, &syn->flow, syn->isn);

	pthread_mutex_lock(&table->lock);
	attempt_leave(table, syn);
	DL_APPEND(table->released, syn);
	syn->withheld = false;
	syn->released_ms = now_ms;
	table->bytes -= syn->packet_len;
	*recent_place(table, hash) = hash | syn->native;
	pthread_mutex_unlock(&table->lock);
}

void withheld_note_refusal(struct withheld_table *table, const struct syn_packet_flow *flow, uint32_t isn, uint8_t native)
{
	uint64_t hash = hash_syn(table, flow, isn);

	pthread_mutex_lock(&table->lock);
	*recent_place(table, hash) = hash | native;
	pthread_mutex_unlock(&table->lock);
}

/* Removes a released entry, which is returned; the caller holds the lock. */
static struct withheld_syn *leave(struct withheld_table *table, struct withheld_syn *syn)
{
	DL_DELETE(table->released, syn);
	HASH_DELETE(hh, table->entries, syn);
	syn->taken = true;
	atomic_fetch_sub(&table->count, 1);
	return syn;
}

struct withheld_syn *withheld_take(struct withheld_table *table, const struct syn_packet_flow *flow)
{
	struct withheld_syn *syn;

	if (!withheld_count(table))
		return NULL;
	pthread_mutex_lock(&table->lock);
	syn = find(table, flow);
	if (syn)
		syn = syn->withheld ? NULL : leave(table, syn);
	pthread_mutex_unlock(&table->lock);
	return syn;
}

bool withheld_take_back(struct withheld_table *table, struct withheld_syn *syn)
{
	bool mine;

	pthread_mutex_lock(&table->lock);
	mine = !syn->withheld && !syn->taken;
	if (mine)
		leave(table, syn);
	pthread_mutex_unlock(&table->lock);
	return mine;
}

struct withheld_syn *withheld_expire(struct withheld_table *table, uint64_t before_ms)
{
	struct withheld_syn *syn;

	pthread_mutex_lock(&table->lock);
	syn = table->released;
	if (syn)
		syn = syn->released_ms > before_ms ? NULL : leave(table, syn);
	pthread_mutex_unlock(&table->lock);
	return syn;
}
