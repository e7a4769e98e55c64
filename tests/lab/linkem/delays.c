/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * delays.c - delays of single hosts on one direction of a link
 *
 * Phones in one mobile network are at different distances: packets from and to each of them have a delay of their own. The
 * hosts are addresses on side A, IPv4 or IPv6. Without memory for one more host, delays_set() refuses it.
 */
#include "config.h"

#define HASH_NONFATAL_OOM 1
/* The one that uthash has by default falls through its switch in ways that clang warns of. */
#define HASH_FUNCTION(key, len, hash) HASH_FNV(key, len, hash)

#include "linkem.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct delays {
	struct host_entry {
		struct host_delay delay;
		UT_hash_handle hh;
	} *hosts;
};

struct delays *delays_create(void)
{
	return calloc(1, sizeof(struct delays));
}

void delays_destroy(struct delays *delays)
{
	struct host_entry *entry, *next;

	if (!delays)
		return;
	HASH_ITER(hh, delays->hosts, entry, next) {
		HASH_DEL(delays->hosts, entry);
		free(entry);
	}
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

static struct host_entry *entry_find(const struct delays *delays, const struct host_address *address)
{
	struct host_entry *entry;

	HASH_FIND(hh, delays->hosts, address, sizeof *address, entry);
	return entry;
}

struct host_delay *delays_find(struct delays *delays, const struct host_address *address)
{
	struct host_entry *entry = entry_find(delays, address);

	return entry ? &entry->delay : NULL;
}

bool delays_set(struct delays *delays, const struct host_address *address, uint64_t delay_ns)
{
	struct host_entry *entry = entry_find(delays, address);

	if (!entry) {
		entry = calloc(1, sizeof *entry);
		if (!entry)
			return false;
		entry->delay.address = *address;
		HASH_ADD(hh, delays->hosts, delay.address, sizeof *address, entry);
		if (!entry->hh.tbl) {
			free(entry);
			return false;
		}
	}
	entry->delay.delay_ns = delay_ns;
	return true;
}

void delays_remove(struct delays *delays, const struct host_address *address)
{
	struct host_entry *entry = entry_find(delays, address);

	if (entry) {
		HASH_DEL(delays->hosts, entry);
		free(entry);
	}
}
