/* SPDX-License-Identifier: BSD-3-Clause */
/* blind_memory.c - servers that have taken longer than a blind request can wait, or for which one has failed */
#include "config.h"

#include "supervise/blind_memory.h"

#include "common/clock.h"

#define SERVERS_MAX 256
#define REMEMBERED_SECONDS 600

struct server {
	struct in6_addr address;
	int64_t until; /* in seconds of CLOCK_MONOTONIC; 0: no server */
};

static struct servers {
	struct server list[SERVERS_MAX];
	int next; /* the one that has been there the longest */
} slow, failed;

static struct server *find(struct servers *servers, const struct in6_addr *address)
{
	for (int i = 0; i < SERVERS_MAX && servers->list[i].until; i++)
		if (IN6_ARE_ADDR_EQUAL(&servers->list[i].address, address))
			return &servers->list[i];
	return NULL;
}

static void note(struct servers *servers, const union sockaddr_ip *server)
{
	const struct in6_addr address = sockaddr_ip_in6(server);
	struct server *found = find(servers, &address);

	if (!found) {
		found = &servers->list[servers->next];
		servers->next = (servers->next + 1) % SERVERS_MAX;
	}
	*found = (struct server){ address, clock_seconds() + REMEMBERED_SECONDS };
}

static bool has(struct servers *servers, const union sockaddr_ip *server)
{
	const struct in6_addr address = sockaddr_ip_in6(server);
	const struct server *found = find(servers, &address);

	return found && found->until > clock_seconds();
}

void blind_memory_note_slow(const union sockaddr_ip *server)
{
	note(&slow, server);
}

bool blind_memory_is_slow(const union sockaddr_ip *server)
{
	return has(&slow, server);
}

void blind_memory_note_failed(const union sockaddr_ip *server)
{
	note(&failed, server);
}

bool blind_memory_has_failed(const union sockaddr_ip *server)
{
	return has(&failed, server);
}
