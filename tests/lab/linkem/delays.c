/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * delays.c - delays of single hosts on one direction of a link
 *
 * Phones in one mobile network are at different distances: packets from and to each of them have a delay of their own. The
 * hosts are addresses on side A, IPv4 or IPv6, in a hash table with linear probing. Nothing is ever taken out of it, so
 * that a search may end at the first free entry; a host whose delay was removed keeps its entry without being in force.
 */
#include "config.h"

#include "linkem.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#define DELAYS_TABLE 8192u /* entries, a power of two */
#define DELAYS_MOST 6000u  /* hosts: the table stays sparse enough for short searches */

struct delays {
	uint32_t count;
	struct host_delay table[DELAYS_TABLE];
};

struct delays *delays_create(void)
{
	return calloc(1, sizeof(struct delays));
}

void delays_destroy(struct delays *delays)
{
	free(delays);
}

bool host_parse(const char *text, struct host_address *address)
{
	struct in_addr ipv4;

	memset(address, 0, sizeof *address);
	if (inet_pton(AF_INET, text, &ipv4) == 1) {
		address->family = 4;
		memcpy(address->bytes, &ipv4, sizeof ipv4);
		return true;
	}
	address->family = 6;
	return inet_pton(AF_INET6, text, address->bytes) == 1;
}

bool host_of_packet(const uint8_t *packet, size_t size, bool source, struct host_address *address)
{
	unsigned version = size ? packet[0] >> 4 : 0;

	memset(address, 0, sizeof *address);
	address->family = (uint8_t)version;
	if (version == 4 && size >= 20)
		memcpy(address->bytes, packet + (source ? 12 : 16), 4);
	else if (version == 6 && size >= 40)
		memcpy(address->bytes, packet + (source ? 8 : 24), 16);
	else
		return false;
	return true;
}

/* FNV-1a */
static uint32_t host_hash(const struct host_address *address)
{
	const uint8_t *bytes = (const uint8_t *)address;
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < sizeof *address; i++)
		hash = (hash ^ bytes[i]) * 16777619u;
	return hash;
}

/* Returns the host's entry, or the free one where it would be. */
static struct host_delay *entry_find(struct delays *delays, const struct host_address *address)
{
	uint32_t at = host_hash(address) % DELAYS_TABLE;

	while (delays->table[at].address.family && memcmp(&delays->table[at].address, address, sizeof *address) != 0)
		at = (at + 1) % DELAYS_TABLE;
	return &delays->table[at];
}

struct host_delay *delays_find(struct delays *delays, const struct host_address *address)
{
	struct host_delay *entry = delays->count ? entry_find(delays, address) : NULL;

	return entry && entry->in_force ? entry : NULL;
}

bool delays_set(struct delays *delays, const struct host_address *address, uint64_t delay_ns)
{
	struct host_delay *entry = entry_find(delays, address);

	if (!entry->address.family) {
		if (delays->count == DELAYS_MOST)
			return false;
		delays->count++;
		entry->address = *address;
	}
	entry->delay_ns = delay_ns;
	entry->in_force = true;
	return true;
}

void delays_remove(struct delays *delays, const struct host_address *address)
{
	entry_find(delays, address)->in_force = false;
}
