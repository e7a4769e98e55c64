/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peers.c - remembers the servers behind converted connections, for getpeername()
 *
 * Nobody tells the supervisor that a socket is closed. But the kernel gives a local port to another connection to the same converter only
 * after the previous connection is gone. So a new entry replaces the one with the same addresses, in a list for each port, and the table
 * holds no more entries than a host can have connections at a time. SO_COOKIE shows whether an entry really belongs to a socket: the kernel
 * never uses one twice, while another network namespace may have the same addresses.
 */
#include "config.h"

#include "supervise/peers.h"

#include "supervise/kernel.h"

#include <stdlib.h>

struct peer {
	struct peer *next;
	uint64_t cookie;
	union sockaddr_ip local, converter, server;
};

static struct peer *ports[65536];

/* Returns the list for the socket's port, and writes its address to @local. Returns NULL if it has none. */
static struct peer **list_of(int fd, union sockaddr_ip *local)
{
	union sockaddr_ip addr = { 0 };
	socklen_t len = sizeof(addr);

	if (getsockname(fd, &addr.sa, &len) != 0 || !sockaddr_ip_from(local, &addr.sa, len))
		return NULL;
	return &ports[sockaddr_ip_port(local)];
}

void peers_note_at(const union sockaddr_ip *local, uint64_t cookie, const union sockaddr_ip *converter, const union sockaddr_ip *server)
{
	struct peer **list = &ports[sockaddr_ip_port(local)], *peer;

	for (peer = *list; peer; peer = peer->next)
		if (sockaddr_ip_equal(&peer->local, local) && sockaddr_ip_equal(&peer->converter, converter))
			break;
	if (!peer) {
		peer = malloc(sizeof(*peer));
		if (!peer)
			return;
		peer->next = *list;
		*list = peer;
	}
	peer->cookie = cookie;
	peer->local = *local;
	peer->converter = *converter;
	peer->server = *server;
}

void peers_note(int fd, const union sockaddr_ip *converter, const union sockaddr_ip *server)
{
	union sockaddr_ip local;

	if (list_of(fd, &local))
		peers_note_at(&local, kernel_cookie(fd), converter, server);
}

const union sockaddr_ip *peers_find(int fd)
{
	union sockaddr_ip local;
	struct peer **list = list_of(fd, &local);
	uint64_t cookie;

	if (!list || !*list)
		return NULL;
	cookie = kernel_cookie(fd);
	for (struct peer *peer = *list; peer; peer = peer->next)
		if (peer->cookie == cookie)
			return &peer->server;
	return NULL;
}
