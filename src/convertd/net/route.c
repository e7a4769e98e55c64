/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * route.c - asks the kernel where an address leads, and remembers it for as long as the kernel tells of no change
 *
 * Clients must not reach this host through the converter unless rules allow it. So we look up each destination in the
 * kernel's own tables (host/lookup.c) before connect(). A copy of all addresses, secondary ones, broadcasts and local
 * prefixes would be out of date whenever something changes; the kernel's answer is some microseconds old when
 * connect() follows, and only a route that changes within that time is missed.
 *
 * The problem: the question about a route takes two system calls and a lookup that allocates a message, a tenth of
 * the CPU time of a short connection. Its answer is the same for all connections to a server, but it must not be out
 * of date: when this host gets an address, clients must not reach it from that moment on.
 *
 * So the kernel tells a netlink socket of each change that can affect an answer. Before each use of a remembered
 * answer, one system call checks this socket, which is usually empty. The kernel puts its message into the socket's
 * queue within the call that makes the change, behind the change itself. So a client that asks for a newly added
 * address is refused. The kernel tells of these changes:
 *
 *     routes of all tables, the table "local" included    RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE
 *     rules                                               RTNLGRP_IPV4_RULE, RTNLGRP_IPV6_RULE
 *     addresses                                           RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR
 *     devices, whose IPv4 routes go without a message     RTNLGRP_LINK
 *     next hops that routes refer to                      RTNLGRP_NEXTHOP (Linux 5.3)
 *
 * tests/lab/test_convertd_routes.py makes such changes. An answer is remembered for at most MOST_MS: this bounds the
 * effect of a change that a kernel fails to tell, and costs one question a second for each server.
 *
 * Any message empties the memory, whatever its contents. The socket's buffer is as small as the kernel allows: of a
 * thousand changes, some messages arrive and are discarded, and the others become one error (ENOBUFS), which empties
 * the memory as well. While messages of such an overflow wait, the kernel tells nothing more, but the next look finds
 * them.
 *
 * The table has one place for each hash, and the newer address takes it. With addresses chosen to collide, we ask the
 * kernel as often as without any memory.
 */
#include "config.h"

#include "convertd/net/downstream.h"

#include "common/clock.h"
#include "host/lookup.h"
#include "host/raw_io.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A power of 2. */
#define PLACES 1024u

#define MOST_MS 1000

/* The most messages that one look reads; the buffer has room for fewer. */
#define READS_MAX 16

/* A group's bit in the address that is bound. */
#define GROUP(number) (UINT32_C(1) << ((number) - 1))

#ifdef RTNLGRP_NEXTHOP
#define NEXTHOPS GROUP(RTNLGRP_NEXTHOP)
#else
#define NEXTHOPS GROUP(32)
#endif

struct noted {
	struct in6_addr address;
	uint64_t until_ms;   /* 0: the place is free */
	unsigned generation; /* of the route's memory when it was noted */
	enum route_kind kind;
};

struct route {
	int fd;      /* for questions */
	int changes; /* receives changes; -1: the kernel doesn't tell of them, so we ask it each time */
	unsigned generation; /* counts how often the memory was emptied */
	struct noted noted[PLACES];
};

/* Returns a socket that receives changes, or -1. */
static int open_changes(void)
{
	static const struct sockaddr_nl groups = {
		.nl_family = AF_NETLINK,
		.nl_groups = GROUP(RTNLGRP_IPV4_ROUTE) | GROUP(RTNLGRP_IPV6_ROUTE) | GROUP(RTNLGRP_IPV4_RULE) |
			     GROUP(RTNLGRP_IPV6_RULE) | GROUP(RTNLGRP_IPV4_IFADDR) | GROUP(RTNLGRP_IPV6_IFADDR) |
			     GROUP(RTNLGRP_LINK) | NEXTHOPS,
	};
	static const int smallest = 1;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd < 0 || (setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &smallest, sizeof(smallest)) == 0 &&
		       bind(fd, (const struct sockaddr *)&groups, sizeof(groups)) == 0))
		return fd;
	close(fd);
	return -1;
}

struct route *route_create(void)
{
	static const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct route *route = calloc(1, sizeof(*route));
	int error;

	if (!route)
		return NULL;
	route->fd = nl_open(NETLINK_ROUTE);
	route->changes = -1;
	/* a connected netlink socket takes messages from the kernel alone */
	if (route->fd >= 0 && connect(route->fd, (const struct sockaddr *)&kernel, sizeof(kernel)) == 0) {
		route->changes = open_changes();
		return route;
	}
	error = errno;
	route_destroy(route);
	errno = error;
	return NULL;
}

void route_destroy(struct route *route)
{
	if (!route)
		return;
	if (route->changes >= 0)
		close(route->changes);
	if (route->fd >= 0)
		close(route->fd);
	free(route);
}

/*
 * Empties the memory if there was a message, or if we can't know whether there was. If messages come faster than we
 * read them, the next look finds the rest, and empties it again.
 */
static void forget_if_changed(struct route *route)
{
	char byte;

	for (int i = 0; i < READS_MAX; i++) {
		if (recv(route->changes, &byte, sizeof(byte), MSG_DONTWAIT) < 0 && errno == EAGAIN)
			return;
		route->generation++;
	}
}

static struct noted *place_of(struct route *route, const struct in6_addr *address)
{
	uint64_t words[2];

	memcpy(words, address, sizeof(words));
	return &route->noted[((words[0] ^ words[1]) * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (PLACES - 1)];
}

static void ask(const struct route *route, const struct in6_addr *address, struct host_way *way)
{
	union sockaddr_ip to = { 0 };

	sockaddr_ip_set(&to, AF_INET6, address, 0);
	host_way_ask(route->fd, &to, NULL, 0, way);
}

static enum route_kind ask_kind(const struct route *route, const struct in6_addr *address)
{
	struct host_way way;

	ask(route, address, &way);
	switch (way.error) {
	case 0:
		break;
	case ENETUNREACH:  /* no route, a throw route */
	case EHOSTUNREACH: /* an unreachable route */
	case EACCES:       /* a prohibit route */
	case EINVAL:       /* a blackhole */
		return ROUTE_ELSEWHERE;
	default:
		return ROUTE_UNKNOWN;
	}
	switch (way.type) {
	case RTN_LOCAL:
	case RTN_ANYCAST:
		return ROUTE_OWN;
	case RTN_BROADCAST:
	case RTN_MULTICAST:
		return ROUTE_BROADCAST;
	default:
		return ROUTE_ELSEWHERE;
	}
}

enum route_kind route_find(struct route *route, const struct in6_addr *address)
{
	struct noted *noted = place_of(route, address);
	const uint64_t now_ms = clock_now_ms();
	enum route_kind kind;

	if (route->changes < 0)
		return ask_kind(route, address);
	forget_if_changed(route);
	if (noted->generation == route->generation && noted->until_ms > now_ms && IN6_ARE_ADDR_EQUAL(&noted->address, address))
		return noted->kind;
	kind = ask_kind(route, address);
	if (kind != ROUTE_UNKNOWN)
		*noted = (struct noted){ .address = *address, .until_ms = now_ms + MOST_MS, .generation = route->generation, .kind = kind };
	return kind;
}

bool route_gateway(struct route *route, const struct in6_addr *address, struct in6_addr *gateway)
{
	struct host_way way;

	ask(route, address, &way);
	if (way.error || way.gateway.sa.sa_family == AF_UNSPEC)
		return false;
	*gateway = sockaddr_ip_in6(&way.gateway);
	return true;
}

bool route_has_source(struct route *route, const struct in6_addr *address)
{
	struct host_way way;

	ask(route, address, &way);
	return !way.error && way.has_source;
}
