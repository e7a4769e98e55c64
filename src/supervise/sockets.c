/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sockets.c - the supervisor's memory of programs' sockets: options that MPTCP refuses, and the servers behind converted connections
 *
 * Nobody tells the supervisor that a socket is closed. So each table is bounded, and knows a socket by SO_COOKIE, which the kernel never
 * uses twice.
 */
#include "config.h"

#include "supervise/sockets.h"

#include "common/socket_options.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <uthash.h>

/* --- options that MPTCP refuses --- */

/*
 * A program whose setsockopt() fails may give the connection up (gRPC does for TCP_USER_TIMEOUT). So the supervisor, like the preloaded
 * library, answers success, remembers the value, and returns it to getsockopt(). It tries each value on a TCP socket, to learn how TCP
 * itself would answer. A TCP socket that takes the place of the program's gets the remembered options. The table holds SOCKETS_MAX sockets,
 * and forgets the oldest for a new one: the oldest one's options have no effect anyway, unless it is still to be connected.
 */

#define SOCKETS_MAX 4096

_Static_assert(SOCKET_ADVICE_COUNT <= 32, "a bit for each");

struct advised {
	uint64_t cookie; /* the key */
	uint32_t set, before_connect; /* bits by socket_advice's indices; before_connect: set before then, and not to the default */
	int values[SOCKET_ADVICE_COUNT];
	UT_hash_handle hh;
};

static struct advised *table; /* the oldest first */

static struct advised *find_advised(uint64_t cookie)
{
	struct advised *found;

	HASH_FIND(hh, table, &cookie, sizeof(cookie), found);
	return found;
}

static struct advised *find_or_add(uint64_t cookie)
{
	struct advised *advised = find_advised(cookie), *oldest = table;

	if (advised)
		return advised;
	if (HASH_COUNT(table) >= SOCKETS_MAX) {
		HASH_DEL(table, oldest);
		free(oldest);
	}
	advised = calloc(1, sizeof(*advised));
	if (!advised)
		return NULL;
	advised->cookie = cookie;
	HASH_ADD(hh, table, cookie, sizeof(advised->cookie), advised);
	return advised;
}

static void set_on(const struct advised *advised, int index, int to)
{
	const struct socket_option *option = &socket_advice[index].option;

	if (advised && advised->set >> index & 1)
		kernel_set(to, option->level, option->name, advised->values[index]);
}

/* Makes a TCP socket of @fd's domain, to try options on. Returns a descriptor, or -1. */
static int tcp_like(int fd)
{
	return socket(kernel_get(fd, SOL_SOCKET, SO_DOMAIN, AF_INET), SOCK_STREAM | SOCK_CLOEXEC, 0);
}

int advice_set(int fd, int index, const void *value, socklen_t len)
{
	const struct socket_option *option = &socket_advice[index].option;
	const bool fresh = kernel_tcp_info(fd).tcpi_state == TCPINFO_CLOSE;
	struct advised *advised;
	int tcp = tcp_like(fd), error, taken;

	if (tcp < 0)
		return errno;
	error = setsockopt(tcp, option->level, option->name, value, len) == 0 ? 0 : errno;
	taken = kernel_get(tcp, option->level, option->name, 0);
	close(tcp);
	if (error)
		return error;
	advised = find_or_add(kernel_cookie(fd));
	if (!advised)
		return ENOMEM;
	advised->set |= UINT32_C(1) << index;
	advised->values[index] = taken;
	if (len == sizeof(taken))
		memcpy(&taken, value, sizeof(taken));
	if (socket_advice[index].before_connect && fresh && !socket_advice_is_default(index, taken))
		advised->before_connect |= UINT32_C(1) << index;
	else if (fresh)
		advised->before_connect &= ~(UINT32_C(1) << index);
	return 0;
}

int advice_get(int fd, int index, void *value, socklen_t *len)
{
	const struct socket_option *option = &socket_advice[index].option;
	int tcp = tcp_like(fd), error;

	if (tcp < 0)
		return errno;
	set_on(find_advised(kernel_cookie(fd)), index, tcp);
	error = getsockopt(tcp, option->level, option->name, value, len) == 0 ? 0 : errno;
	close(tcp);
	return error;
}

void advice_copy(int from, int to)
{
	const struct advised *advised = find_advised(kernel_cookie(from));

	for (int i = 0; advised && i < SOCKET_ADVICE_COUNT; i++)
		set_on(advised, i, to);
}

bool advice_allows_mptcp(int fd)
{
	const struct advised *advised = table ? find_advised(kernel_cookie(fd)) : NULL;

	return !advised || !advised->before_connect;
}

/* --- the servers behind converted connections --- */

/*
 * The kernel gives a local port to another connection to the same converter only after the previous connection is gone. So a new entry
 * replaces the one with the same addresses, in a list for each port, and the table holds no more entries than a host can have connections
 * at a time. Another network namespace may have the same addresses: SO_COOKIE tells.
 */

struct peer {
	struct peer *next;
	uint64_t cookie;
	union sockaddr_ip local, converter, server;
};

static struct peer *ports[65536];

/* Returns the list for the socket's port, and writes its address to @local. Returns NULL if it has none. */
static struct peer **list_of(int fd, union sockaddr_ip *local)
{
	return kernel_address(fd, local) ? &ports[sockaddr_ip_port(local)] : NULL;
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
