/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hold_table.c - finds withheld SYNs, and released ones whose connections haven't been accepted yet
 *
 * The problem. One worker withholds a SYN and connects to its server; another worker may accept the connection that
 * the SYN makes in the end, and needs the server's socket. And a repeated SYN must not make anybody connect again
 * (RFC 8803 9.3).
 *
 * All workers share one table with one lock. An entry has one of these states:
 *
 *     withheld   hold_table_add(): the packet is in the queue; only its worker may touch the entry
 *     released   hold_table_release(): the packet goes on; its next owner takes the entry out: the worker that accepts the connection
 *                (hold_table_take()), time (hold_table_expire()), or the worker that has withheld it and needs its room
 *                (hold_table_take_back())
 *     taken      out of the table
 *
 * The key of an entry is its addresses, ports and initial sequence number. So neither a forged SYN nor an abandoned
 * attempt blocks another attempt from the same port: an attacker who can't see the client's packets doesn't know its
 * sequence number. Keys are hashed with a secret, so that nobody can choose the places of forged SYNs.
 *
 * We recognize a repeated SYN as long as the first one is in the table; afterwards by a hash of the same key. The table remembers the last
 * RECENT_MAX hashes or so, each with the fate of its SYN. If it has forgotten a SYN, the repetition is judged anew, which may cost one
 * more connection to the server. A new SYN with a remembered hash (2^-56) counts as a repetition.
 *
 * If a client repeats its attempt from another port, we find the earlier SYN by the attempt's number as long as it is
 * withheld.
 *
 * Limits: HOLD_SYNS_MAX entries and HOLD_BYTES_MAX bytes of packets. The table is empty when it is destroyed.
 */
#include "config.h"

/* Before uthash.h, which the header includes. */
#define HASH_NONFATAL_OOM 1
#define HASH_FUNCTION(key, len, hash) ((hash) = hash_key(table, (key), (len)))

#include "hold/hold_table.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <utlist.h>

/* A power of 2. */
#define RECENT_MAX 65536

/* The byte of a hash that we replace by the fate of its SYN: how it was refused, NATIVE_NONE, or DROPPED. */
#define FATE_MASK UINT64_C(0xff)
#define DROPPED 0xfe

struct hold_table {
	uint8_t secret[crypto_shorthash_KEYBYTES];
	pthread_mutex_t lock; /* guards all members below */
	struct hold_syn *entries;
	struct hold_syn *attempts;     /* the withheld entries that have an attempt */
	struct hold_syn *by_addresses; /* the released entries */
	struct hold_syn *released;     /* the released entries as a list, the oldest first */
	size_t bytes;                  /* of packets */
	atomic_size_t count;           /* read without the lock */
	uint64_t recent[RECENT_MAX];   /* hashes, whose last byte is the fate of the SYN */
};

static_assert(crypto_shorthash_BYTES == sizeof(uint64_t), "a hash is a number");
static_assert(sizeof(struct syn_packet_flow) == 36 && sizeof(struct hold_flow) == 40, "no padding in a key");
static_assert(sizeof(struct hold_attempt) == 24, "no padding in a key");
static_assert(DROPPED != NATIVE_NONE && DROPPED != NATIVE_RESET && DROPPED >= NATIVE_CODES, "a fate of its own");

static unsigned hash_key(const struct hold_table *table, const void *key, size_t len)
{
	uint64_t hash;

	crypto_shorthash((uint8_t *)&hash, key, len, table->secret);
	return (unsigned)hash;
}

static uint64_t hash_flow(const struct hold_table *table, const struct hold_flow *flow)
{
	uint64_t hash;

	crypto_shorthash((uint8_t *)&hash, (const uint8_t *)flow, sizeof(*flow), table->secret);
	return hash & ~FATE_MASK;
}

/* The caller holds the lock. */
static uint64_t *recent_place(struct hold_table *table, uint64_t hash)
{
	return &table->recent[hash / (FATE_MASK + 1) % RECENT_MAX];
}

struct hold_table *hold_table_create(void)
{
	struct hold_table *table = sodium_init() < 0 ? NULL : calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	pthread_mutex_init(&table->lock, NULL);
	crypto_shorthash_keygen(table->secret);
	return table;
}

void hold_table_destroy(struct hold_table *table)
{
	if (!table)
		return;
	pthread_mutex_destroy(&table->lock);
	free(table);
}

size_t hold_table_count(const struct hold_table *table)
{
	return atomic_load_explicit(&table->count, memory_order_acquire);
}

static enum hold_known known_by_fate(uint8_t fate)
{
	switch (fate) {
	case NATIVE_NONE:
		return HOLD_WAS_RELEASED;
	case DROPPED:
		return HOLD_WAS_DROPPED;
	default:
		return HOLD_WAS_REFUSED;
	}
}

enum hold_known hold_table_look(struct hold_table *table, const struct hold_flow *flow, uint64_t now_ms, uint8_t *native)
{
	uint64_t hash = hash_flow(table, flow), recent;
	enum hold_known known = HOLD_NEW;
	struct hold_syn *syn;

	pthread_mutex_lock(&table->lock);
	HASH_FIND(hh, table->entries, flow, sizeof(*flow), syn);
	recent = *recent_place(table, hash);
	*native = (uint8_t)(recent & FATE_MASK);
	if (syn)
		known = syn->withheld ? HOLD_IS_WITHHELD : HOLD_IS_RELEASED;
	else if ((recent & ~FATE_MASK) == hash)
		known = known_by_fate(*native);
	/* The client still waits for the SYN+ACK. */
	if (known == HOLD_IS_RELEASED) {
		syn->released_ms = now_ms;
		DL_DELETE(table->released, syn);
		DL_APPEND(table->released, syn);
	}
	pthread_mutex_unlock(&table->lock);
	return known;
}

/* The caller holds the lock. */
static struct hold_syn *find_attempt(struct hold_table *table, const struct hold_attempt *attempt)
{
	struct hold_syn *syn;

	HASH_FIND(hh_attempt, table->attempts, attempt, sizeof(*attempt), syn);
	return syn;
}

struct hold_syn *hold_table_find(struct hold_table *table, const struct hold_attempt *attempt, const void *owner)
{
	struct hold_syn *syn;

	pthread_mutex_lock(&table->lock);
	syn = find_attempt(table, attempt);
	if (syn && syn->owner != owner)
		syn = NULL;
	pthread_mutex_unlock(&table->lock);
	return syn;
}

/* Enters the SYN by its attempt, unless there is no memory or another one has the same. The caller holds the lock. */
static void attempt_enter(struct hold_table *table, struct hold_syn *syn)
{
	if (syn->attempt.number && !find_attempt(table, &syn->attempt))
		HASH_ADD(hh_attempt, table->attempts, attempt, sizeof(syn->attempt), syn);
}

static void attempt_leave(struct hold_table *table, struct hold_syn *syn)
{
	if (syn->hh_attempt.tbl)
		HASH_DELETE(hh_attempt, table->attempts, syn);
}

int hold_table_add(struct hold_table *table, struct hold_syn *syn)
{
	int error = -ENOSPC;

	pthread_mutex_lock(&table->lock);
	if (atomic_load(&table->count) < HOLD_SYNS_MAX && table->bytes + syn->packet_len <= HOLD_BYTES_MAX) {
		syn->withheld = true;
		syn->taken = false;
		syn->hh_attempt.tbl = syn->hh_released.tbl = NULL;
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

void hold_table_release(struct hold_table *table, struct hold_syn *syn, bool keep, bool dropped, uint64_t now_ms)
{
	uint64_t hash = hash_flow(table, &syn->flow);

	pthread_mutex_lock(&table->lock);
	attempt_leave(table, syn);
	table->bytes -= syn->packet_len;
	syn->withheld = false;
	if (keep) {
		DL_APPEND(table->released, syn);
		/* Without memory, the connection doesn't find the SYN, and the SYN expires. */
		HASH_ADD(hh_released, table->by_addresses, flow.addresses, sizeof(syn->flow.addresses), syn);
		syn->released_ms = now_ms;
	} else {
		HASH_DELETE(hh, table->entries, syn);
		syn->taken = true;
		atomic_fetch_sub(&table->count, 1);
	}
	*recent_place(table, hash) = hash | (dropped ? DROPPED : syn->native);
	pthread_mutex_unlock(&table->lock);
}

static void note_fate(struct hold_table *table, uint64_t hash, uint64_t value)
{
	pthread_mutex_lock(&table->lock);
	*recent_place(table, hash) = value;
	pthread_mutex_unlock(&table->lock);
}

void hold_table_forget(struct hold_table *table, const struct hold_flow *flow)
{
	note_fate(table, hash_flow(table, flow), 0);
}

void hold_table_note(struct hold_table *table, const struct hold_flow *flow, uint8_t native)
{
	const uint64_t hash = hash_flow(table, flow);

	note_fate(table, hash, hash | native);
}

/* Removes a released entry, and returns it. The caller holds the lock. */
static struct hold_syn *leave(struct hold_table *table, struct hold_syn *syn)
{
	DL_DELETE(table->released, syn);
	HASH_DELETE(hh, table->entries, syn);
	if (syn->hh_released.tbl)
		HASH_DELETE(hh_released, table->by_addresses, syn);
	syn->taken = true;
	syn->next = NULL;
	atomic_fetch_sub(&table->count, 1);
	return syn;
}

/* Inserts @syn into a list, the latest first. */
static void insert_latest(struct hold_syn **list, struct hold_syn *syn)
{
	while (*list && (*list)->released_ms > syn->released_ms)
		list = &(*list)->next;
	syn->next = *list;
	*list = syn;
}

struct hold_syn *hold_table_take(struct hold_table *table, const struct syn_packet_flow *addresses)
{
	struct hold_syn *list = NULL, *syn;

	if (!hold_table_count(table))
		return NULL;
	pthread_mutex_lock(&table->lock);
	for (;;) {
		HASH_FIND(hh_released, table->by_addresses, addresses, sizeof(*addresses), syn);
		if (!syn)
			break;
		insert_latest(&list, leave(table, syn));
	}
	pthread_mutex_unlock(&table->lock);
	return list;
}

bool hold_table_take_back(struct hold_table *table, struct hold_syn *syn)
{
	bool mine;

	pthread_mutex_lock(&table->lock);
	mine = !syn->withheld && !syn->taken;
	if (mine)
		leave(table, syn);
	pthread_mutex_unlock(&table->lock);
	return mine;
}

struct hold_syn *hold_table_expire(struct hold_table *table, uint64_t before_ms)
{
	struct hold_syn *syn;

	pthread_mutex_lock(&table->lock);
	syn = table->released;
	if (syn)
		syn = syn->released_ms > before_ms ? NULL : leave(table, syn);
	pthread_mutex_unlock(&table->lock);
	return syn;
}
