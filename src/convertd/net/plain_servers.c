/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plain_servers.c - remembers servers that didn't take Multipath TCP, so that they aren't asked each time
 *
 * The problem: a connection that asks for Multipath TCP in vain falls back to TCP, and Linux may lose bytes on it
 * (fallback.c). To repeat it as plain TCP would cost the server another connection, and some servers take only one.
 *
 * The table is indexed by a hash of the server's address and port; a new entry replaces the old one in its place. A
 * place is one atomic word of key and time, so that all threads use it without a lock. The upper 40 bits of the hash tell
 * servers apart; if two are mistaken for each other, the connection is made by plain TCP, which always works.
 */
#include "config.h"

#include "convertd/net/plain_servers.h"

#include "convertd/base/clock.h"
#include "convertd/base/log.h"

#include <stdatomic.h>

#define PLACES 4096u
#define REMEMBERED_SECONDS 600 /* not for ever, as a server may be upgraded to Multipath TCP */

#define TIME_BITS 24 /* for seconds, which wrap around after 194 days */
#define TIME_MASK ((UINT64_C(1) << TIME_BITS) - 1)

static _Atomic uint64_t places[PLACES];

/* Returns the time in seconds, as it is stored. */
static uint64_t now_seconds(void)
{
	return (clock_now_ms() / 1000 + 1) & TIME_MASK;
}

bool plain_servers_has(const union sockaddr_ip *server)
{
	uint64_t key = sockaddr_ip_hash(server), found = atomic_load(&places[key % PLACES]);

	return found && found >> TIME_BITS == key >> TIME_BITS &&
	       ((now_seconds() - found) & TIME_MASK) < REMEMBERED_SECONDS;
}

void plain_servers_note(const union sockaddr_ip *server)
{
	uint64_t key = sockaddr_ip_hash(server);

	atomic_store(&places[key % PLACES], (key & ~TIME_MASK) | now_seconds());
}
