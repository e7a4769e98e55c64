/* SPDX-License-Identifier: BSD-3-Clause */
/* slow.c - servers that have taken longer than a blind request can wait */
#include "config.h"

#include "supervise/slow.h"

#include "common/clock.h"

#define SERVERS_MAX 256
#define REMEMBERED_SECONDS 600

static struct server {
	struct in6_addr address;
	int64_t until; /* in seconds of CLOCK_MONOTONIC; 0: no server */
} servers[SERVERS_MAX];
static int next; /* the one that has been there the longest */

static struct server *find(const struct in6_addr *address)
{
	for (int i = 0; i < SERVERS_MAX && servers[i].until; i++)
		if (IN6_ARE_ADDR_EQUAL(&servers[i].address, address))
			return &servers[i];
	return NULL;
}

void slow_note(const union sockaddr_ip *server)
{
	const struct in6_addr address = sockaddr_ip_in6(server);
	struct server *found = find(&address);

	if (!found) {
		found = &servers[next];
		next = (next + 1) % SERVERS_MAX;
	}
	*found = (struct server){ address, clock_seconds() + REMEMBERED_SECONDS };
}

bool slow_is(const union sockaddr_ip *server)
{
	const struct in6_addr address = sockaddr_ip_in6(server);
	const struct server *found = find(&address);

	return found && found->until > clock_seconds();
}
