/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hold_table.c - the SYNs that are withheld, and those let go whose connection isn't here yet
 *
 * The worker that withholds a SYN puts it in; whichever worker accepts its connection takes it
 * out, or time does. Found by the connection's four addresses, hashed with a secret key: whoever
 * forges SYNs can't choose their places.
 *
 * A SYN that comes again must not make the converter ask the server again (RFC 8803 9.3). As long as
 * the first is in the table it is found there; afterwards by a hash of its addresses and sequence
 * number, of which the last RECENT_MAX or so are remembered. One that was forgotten, or a
 * forged one that looks the same (2^-64), is a connection more or less, no more.
 */
#include "config.h"

/* Before uthash.h, which the header includes. */
#define HASH_NONFATAL_OOM 1
#define HASH_FUNCTION(key, len, hash) ((hash) = hash_flow(table, (key), (len)))

#include "convertd/syn/hold_table.h"

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

struct hold_table {
	pthread_mutex_t lock; /* for all below */
	uint8_t hash_key[crypto_shorthash_KEYBYTES];
	struct held_syn *syns;
	struct held_syn *let_go; /* the first that was let go first */
	size_t bytes;                      /* of packets */
	atomic_size_t count;               /* read without the lock */
	uint64_t recent[RECENT_MAX];
};

static_assert(crypto_shorthash_BYTES == sizeof(uint64_t), "a hash is a number");
static_assert(sizeof(struct syn_packet_flow) == 36, "no padding in a key");

static unsigned hash_flow(const struct hold_table *table, const void *key, size_t len)
{
	uint64_t hash;

	crypto_shorthash((uint8_t *)&hash, key, len, table->hash_key);
	return (unsigned)hash;
}

static uint64_t hash_syn(const struct hold_table *table, const struct syn_packet_flow *flow,
			 uint32_t isn)
{
	uint8_t key[sizeof(*flow) + sizeof(isn)];
	uint64_t hash;

	memcpy(key, flow, sizeof(*flow));
	memcpy(key + sizeof(*flow), &isn, sizeof(isn));
	crypto_shorthash((uint8_t *)&hash, key, sizeof(key), table->hash_key);
	return hash;
}

void held_syn_close(struct held_syn *held)
{
	if (held->fd < 0)
		return;
	downstream_reset(held->fd);
	close(held->fd);
	held->fd = -1;
}

void held_syn_fini(struct held_syn *held)
{
	free(held->packet);
	held_syn_close(held);
}

struct hold_table *hold_table_create(void)
{
	struct hold_table *table = sodium_init() < 0 ? NULL : calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	pthread_mutex_init(&table->lock, NULL);
	crypto_shorthash_keygen(table->hash_key);
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

static struct held_syn *find(struct hold_table *table, const struct syn_packet_flow *flow)
{
	struct held_syn *held;

	HASH_FIND(hh, table->syns, flow, sizeof(*flow), held);
	return held;
}

enum hold_known hold_table_look(struct hold_table *table, const struct syn_packet_flow *flow,
				uint32_t isn)
{
	uint64_t hash = hash_syn(table, flow, isn);
	enum hold_known known = HOLD_NEW;
	const struct held_syn *held;

	pthread_mutex_lock(&table->lock);
	held = find(table, flow);
	if (held)
		known = held->waiting ? HOLD_HELD : HOLD_LET_GO;
	else if (table->recent[hash % RECENT_MAX] == hash)
		known = HOLD_LET_GO;
	pthread_mutex_unlock(&table->lock);
	return known;
}

int hold_table_add(struct hold_table *table, struct held_syn *held)
{
	int error = -ENOSPC;

	pthread_mutex_lock(&table->lock);
	if (atomic_load(&table->count) < HOLD_TABLE_MAX &&
	    table->bytes + held->packet_len <= HOLD_TABLE_BYTES_MAX) {
		held->waiting = true;
		HASH_ADD(hh, table->syns, flow, sizeof(held->flow), held);
		error = held->hh.tbl ? 0 : -ENOMEM;
	}
	if (!error) {
		table->bytes += held->packet_len;
		atomic_fetch_add(&table->count, 1);
	}
	pthread_mutex_unlock(&table->lock);
	return error;
}

void hold_table_let_go(struct hold_table *table, struct held_syn *held, uint64_t now_ms)
{
	uint64_t hash = hash_syn(table, &held->flow, held->isn);

	pthread_mutex_lock(&table->lock);
	DL_APPEND(table->let_go, held);
	held->waiting = false;
	held->let_go_ms = now_ms;
	table->bytes -= held->packet_len;
	table->recent[hash % RECENT_MAX] = hash;
	pthread_mutex_unlock(&table->lock);
}

/* One that was let go. With the lock. Returns @held. */
static struct held_syn *leave(struct hold_table *table, struct held_syn *held)
{
	DL_DELETE(table->let_go, held);
	HASH_DELETE(hh, table->syns, held);
	held->taken = true;
	atomic_fetch_sub(&table->count, 1);
	return held;
}

struct held_syn *hold_table_take(struct hold_table *table, const struct syn_packet_flow *flow)
{
	struct held_syn *held;

	if (!hold_table_count(table))
		return NULL;
	pthread_mutex_lock(&table->lock);
	held = find(table, flow);
	if (held)
		held = held->waiting ? NULL : leave(table, held);
	pthread_mutex_unlock(&table->lock);
	return held;
}

bool hold_table_take_back(struct hold_table *table, struct held_syn *held)
{
	bool mine;

	pthread_mutex_lock(&table->lock);
	mine = !held->waiting && !held->taken;
	if (mine)
		leave(table, held);
	pthread_mutex_unlock(&table->lock);
	return mine;
}

struct held_syn *hold_table_expire(struct hold_table *table, uint64_t before_ms)
{
	struct held_syn *held;

	pthread_mutex_lock(&table->lock);
	held = table->let_go;
	if (held)
		held = held->let_go_ms > before_ms ? NULL : leave(table, held);
	pthread_mutex_unlock(&table->lock);
	return held;
}
