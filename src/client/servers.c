/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * servers.c - which servers are known to speak Multipath TCP themselves
 *
 * This process's knowledge is in a small table by hash, where the newer of two servers with the same place replaces the older.
 * Key and value are one atomic word, so that no reader sees half of an entry. The cache has what the user's other processes
 * have learned.
 */
#include "config.h"

#include "client/servers.h"

#include "client/user_cache.h"
#include "common/clock.h"

#include <stdatomic.h>

#define PLACES 256u
#define FRESH_SECONDS 3600 /* a server may lose its Multipath TCP, or get it */

/* 40 bits of the key, 22 of the time in seconds (48 days go around), 2 of the value. */
static _Atomic uint64_t places[PLACES];

#define KEY_SHIFT 24
#define TIME_SHIFT 2
#define TIME_MASK 0x3fffffu

static enum handshake_server_mptcp table_find(const union sockaddr_ip *server)
{
	uint64_t key = sockaddr_ip_hash(server), entry = atomic_load(&places[key % PLACES]);
	uint32_t age = ((uint32_t)clock_seconds() - (uint32_t)(entry >> TIME_SHIFT)) & TIME_MASK;

	if (!entry || entry >> KEY_SHIFT != key >> KEY_SHIFT || age > FRESH_SECONDS)
		return HANDSHAKE_SERVER_UNKNOWN;
	return (enum handshake_server_mptcp)(entry & 3);
}

static void table_note(const union sockaddr_ip *server, enum handshake_server_mptcp mptcp)
{
	uint64_t key = sockaddr_ip_hash(server);

	atomic_store(&places[key % PLACES],
		     (key >> KEY_SHIFT) << KEY_SHIFT |
			     (uint64_t)((uint32_t)clock_seconds() & TIME_MASK) << TIME_SHIFT | mptcp);
}

static void cache_note(const union sockaddr_ip *server, enum cache_server_verdict verdict)
{
	cache_server_put(user_cache(), server, verdict, cache_now(), cache_in(FRESH_SECONDS));
}

enum handshake_server_mptcp servers_mptcp(const union sockaddr_ip *server)
{
	enum handshake_server_mptcp known = table_find(server);
	struct cache_server found;

	if (known != HANDSHAKE_SERVER_UNKNOWN)
		return known;
	switch (cache_server_get(user_cache(), server, cache_now(), &found)) {
	case CACHE_SERVER_MPTCP:
		return HANDSHAKE_SERVER_MPTCP;
	case CACHE_SERVER_PLAIN:
	case CACHE_SERVER_NO_BYPASS:
		return HANDSHAKE_SERVER_PLAIN;
	default:
		return HANDSHAKE_SERVER_UNKNOWN;
	}
}

void servers_note_mptcp(const union sockaddr_ip *server, enum handshake_server_mptcp mptcp)
{
	table_note(server, mptcp);
	cache_note(server, mptcp == HANDSHAKE_SERVER_MPTCP ? CACHE_SERVER_MPTCP :
							     CACHE_SERVER_PLAIN);
}

void servers_note_no_bypass(const union sockaddr_ip *server)
{
	table_note(server, HANDSHAKE_SERVER_PLAIN);
	cache_note(server, CACHE_SERVER_NO_BYPASS);
}
