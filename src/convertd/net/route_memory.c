/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * route_memory.c - remembers where addresses lead, for as long as the kernel tells of no change
 *
 * The problem: the question about a route takes two system calls and a lookup that allocates a message, a tenth of the CPU time of
 * a short connection. Its answer is the same for all connections to a server, and yet it mustn't be out of date: an address that
 * this host gets must not be reached by clients from that moment on.
 *
 * So the kernel tells a netlink socket of all that changes an answer, and this socket is looked at before each use of
 * what is remembered, by one system call that finds it empty as a rule. The kernel puts its message into the socket's queue within the
 * call that makes the change, behind the change itself. So who has added an address, and asks for it then, is refused. These changes
 * are told:
 *
 *     routes of all tables, the table "local" included    RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE
 *     rules                                               RTNLGRP_IPV4_RULE, RTNLGRP_IPV6_RULE
 *     addresses                                           RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR
 *     devices, whose IPv4 routes go without a word        RTNLGRP_LINK
 *     next hops that routes refer to                      RTNLGRP_NEXTHOP (Linux 5.3)
 *
 * tests/lab/test_convertd_routes.py makes such changes. Nothing is remembered for longer than MOST_MS: that bounds what a kernel
 * may fail to tell, and costs one question a second for each server.
 *
 * Any message at all empties the memory, and none is read for what it says. The socket's buffer is as small as the kernel
 * allows: of a thousand changes, some messages are there to be thrown away, and the others are one error (ENOBUFS), which
 * empties the memory as well. The kernel tells nothing more while messages of such an overflow wait, but then the next look finds
 * these.
 *
 * The table has one place for each hash, and the newer address takes it. Whoever chooses addresses that collide has the kernel
 * asked as often as without any memory.
 */
#include "config.h"

#include "convertd/net/route_memory.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A power of 2. */
#define PLACES 1024u

#define MOST_MS 1000

/* Messages that are read in one look; the buffer has room for fewer. */
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
	uint64_t until_ms; /* 0: the place is free */
	unsigned age;      /* of the memory when it was noted */
	enum route_kind kind;
};

struct route_memory {
	int fd;
	unsigned age; /* counts how often the memory was emptied */
	struct noted noted[PLACES];
};

struct route_memory *route_memory_create(void)
{
	static const struct sockaddr_nl groups = {
		.nl_family = AF_NETLINK,
		.nl_groups = GROUP(RTNLGRP_IPV4_ROUTE) | GROUP(RTNLGRP_IPV6_ROUTE) | GROUP(RTNLGRP_IPV4_RULE) |
			     GROUP(RTNLGRP_IPV6_RULE) | GROUP(RTNLGRP_IPV4_IFADDR) | GROUP(RTNLGRP_IPV6_IFADDR) |
			     GROUP(RTNLGRP_LINK) | NEXTHOPS,
	};
	static const int smallest = 1;
	struct route_memory *memory = calloc(1, sizeof(*memory));
	int error;

	if (!memory)
		return NULL;
	memory->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	if (memory->fd >= 0 &&
	    setsockopt(memory->fd, SOL_SOCKET, SO_RCVBUF, &smallest, sizeof(smallest)) == 0 &&
	    bind(memory->fd, (const struct sockaddr *)&groups, sizeof(groups)) == 0)
		return memory;
	error = errno;
	route_memory_destroy(memory);
	errno = error;
	return NULL;
}

void route_memory_destroy(struct route_memory *memory)
{
	if (!memory)
		return;
	if (memory->fd >= 0)
		close(memory->fd);
	free(memory);
}

/*
 * Empties the memory if anything has been told, or if that can't be known. Where messages come faster than they are read, the next
 * look finds the rest, and empties it again.
 */
static void look(struct route_memory *memory)
{
	char byte;

	for (int i = 0; i < READS_MAX; i++) {
		if (recv(memory->fd, &byte, sizeof(byte), MSG_DONTWAIT) < 0 && errno == EAGAIN)
			return;
		memory->age++;
	}
}

static struct noted *place_of(struct route_memory *memory, const struct in6_addr *address)
{
	uint64_t words[2];

	memcpy(words, address, sizeof(words));
	return &memory->noted[((words[0] ^ words[1]) * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (PLACES - 1)];
}

bool route_memory_find(struct route_memory *memory, const struct in6_addr *address, uint64_t now_ms, enum route_kind *kind)
{
	const struct noted *noted = place_of(memory, address);

	look(memory);
	if (noted->age != memory->age || noted->until_ms <= now_ms || !IN6_ARE_ADDR_EQUAL(&noted->address, address))
		return false;
	*kind = noted->kind;
	return true;
}

void route_memory_note(struct route_memory *memory, const struct in6_addr *address, uint64_t now_ms, enum route_kind kind)
{
	*place_of(memory, address) = (struct noted){
		.address = *address, .until_ms = now_ms + MOST_MS, .age = memory->age, .kind = kind,
	};
}
