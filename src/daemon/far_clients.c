/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * far_clients.c - knows which clients are far, and for how long their SYNs may be withheld
 *
 * The problem (common/tcp.h): the time for which a SYN is withheld and the round trip to its client must together be
 * shorter than a second. The usual setting leaves 300 ms for the round trip. Clients that know their round trip say
 * for how long their SYNs may be withheld (doc/private-tlvs.md). This table is for clients that don't know it, or
 * don't know that TLV.
 *
 * We know the round trip from the client's earlier connections: each third ACK shows it. The table notes far clients
 * by address; of an IPv6 address only the first 64 bits count, as its host changes the others at will.
 *
 * The table has one word for each place, so that threads need no lock:
 *
 *     63                           32 31        20 19                   0
 *     +------------------------------+------------+---------------------+
 *     |  a part of the hash          | rtt in ms  | seconds             |
 *     +------------------------------+------------+---------------------+
 *
 * Other bits of the same hash choose the place. Its key is random, so nobody can aim at another client's place. Of
 * two clients that share a place, the one noted last has it. An entry may be lost that way, or when two threads write
 * at once, or may reappear when the seconds wrap after twelve days. This does no harm, as an entry is only a hint.
 */
#include "config.h"

#include "daemon/far_clients.h"

#include "common/tcp.h"

#include <assert.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define PLACES 16384

#define SECONDS_BITS 20
#define SECONDS_MASK ((UINT64_C(1) << SECONDS_BITS) - 1)
#define RTT_MAX_MS 4095

static_assert(PLACES && !(PLACES & (PLACES - 1)), "a place is chosen by some bits");
static_assert(crypto_shorthash_BYTES == sizeof(uint64_t), "a hash is a number");
static_assert(FAR_CLIENTS_SECONDS < SECONDS_MASK, "the age of an entry is known");

struct far_clients {
	uint8_t key[crypto_shorthash_KEYBYTES];
	_Atomic uint64_t places[PLACES];
};

struct far_clients *far_clients_create(void)
{
	struct far_clients *clients = sodium_init() < 0 ? NULL : calloc(1, sizeof(*clients));

	if (clients)
		crypto_shorthash_keygen(clients->key);
	return clients;
}

void far_clients_destroy(struct far_clients *clients)
{
	free(clients);
}

static uint64_t hash_of(const struct far_clients *clients, const struct in6_addr *client)
{
	uint8_t key[sizeof(*client)] = { 0 };
	uint64_t hash;

	memcpy(key, client, IN6_IS_ADDR_V4MAPPED(client) ? sizeof(*client) : sizeof(*client) / 2);
	crypto_shorthash((uint8_t *)&hash, key, sizeof(key), clients->key);
	return hash;
}

static uint64_t seconds_of(uint64_t now_ms)
{
	return now_ms / 1000 & SECONDS_MASK;
}

/* Returns the round trip in the word of a place, or 0 if the word is another client's or has expired. */
static unsigned rtt_in(uint64_t word, uint64_t hash, uint64_t now_ms)
{
	uint64_t age = (seconds_of(now_ms) - word) & SECONDS_MASK;

	if (word >> 32 != hash >> 32 || age >= FAR_CLIENTS_SECONDS)
		return 0;
	return word >> SECONDS_BITS & RTT_MAX_MS;
}

unsigned far_clients_rtt_ms(const struct far_clients *clients, const struct in6_addr *client, uint64_t now_ms)
{
	uint64_t hash = hash_of(clients, client);

	return rtt_in(atomic_load_explicit(&clients->places[hash % PLACES], memory_order_relaxed), hash, now_ms);
}

void far_clients_note(struct far_clients *clients, const struct in6_addr *client, uint32_t rtt_us, uint64_t now_ms)
{
	uint64_t hash = hash_of(clients, client), word;
	_Atomic uint64_t *place = &clients->places[hash % PLACES];
	unsigned known = rtt_in(atomic_load_explicit(place, memory_order_relaxed), hash, now_ms);
	unsigned rtt = rtt_us / 1000 < RTT_MAX_MS ? rtt_us / 1000 : RTT_MAX_MS;

	if (rtt < known)
		rtt = known - (known - rtt + 3) / 4;
	if (!known && rtt < FAR_CLIENTS_MS)
		return;
	word = rtt < FAR_CLIENTS_MS ? 0 : hash >> 32 << 32 | (uint64_t)rtt << SECONDS_BITS | seconds_of(now_ms);
	atomic_store_explicit(place, word, memory_order_relaxed);
}

unsigned far_clients_hold_ms(unsigned hold_ms, unsigned rtt_ms, unsigned until_ms)
{
	unsigned most_ms = hold_time_left_ms(rtt_ms, until_ms);

	return rtt_ms && most_ms < hold_ms ? most_ms : hold_ms;
}
