/* SPDX-License-Identifier: BSD-3-Clause */
/* anycast.h - checks that this host is set up for addresses that several converters share (no I/O) */
#ifndef CONVERTD_ANYCAST_H
#define CONVERTD_ANYCAST_H

#include "common/endpoints.h"
#include "common/problems.h"

#include <stdbool.h>
#include <stddef.h>

#define ANYCAST_MAX 16

struct listen_address;
struct own_told;

/* An address at which clients reach other converters as well; its port is 0. */
struct anycast_address {
	union sockaddr_ip address;
	struct place place;
};

struct anycast {
	struct anycast_address address[ANYCAST_MAX];
	size_t count;
};

/* The state of this host, which the caller finds out. */
struct anycast_facts {
	int allow_join_initial;            /* net.mptcp.allow_join_initial_addr_port, or -errno */
	const struct endpoints *endpoints; /* the MPTCP endpoints; NULL: not known */
	const struct listen_address *listen;
	size_t listen_count;
	const struct own_told *own; /* addresses that a NAT translates to this host's; NULL: none */
	bool (*is_local)(void *arg, const struct in6_addr *address); /* tells whether an address is this host's; NULL: not known */
	void *is_local_arg;
};

/* Adds a numeric address of --shared-address. Returns false after adding the error to @problems. */
bool anycast_add(struct anycast *anycast, const char *text, const struct place *place,
		struct problems *problems);

/* Adds to @warnings whatever keeps second subflows from reaching their connections. */
void anycast_check(const struct anycast *anycast, const struct anycast_facts *facts,
		  struct problems *warnings);

#endif
