/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plain_servers.c - servers that didn't take Multipath TCP, so that they aren't asked each time
 *
 * The connection by which one is asked falls back to TCP, and Linux may lose bytes on it (fallback.c). To connect
 * anew would cost the server a connection that it didn't ask for, and some take one only. A table by
 * hash, where the newer one makes room. Key and time are one atomic word, so that nobody sees half of a pair;
 * 40 bits of the key keep servers apart, and whoever mistakes one for another connects it by TCP.
 */
#include "config.h"

#include "convertd/net/plain_servers.h"

#include "convertd/base/clock.h"
#include "convertd/base/log.h"

#include <stdatomic.h>

#define PLACES 4096u
#define REMEMBERED_SECONDS 600 /* a server may get Multipath TCP */

#define TIME_BITS 24 /* of seconds: 194 days go around */
#define TIME_MASK ((UINT64_C(1) << TIME_BITS) - 1)

static _Atomic uint64_t places[PLACES];

/* Never 0, which is an empty place. */
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
