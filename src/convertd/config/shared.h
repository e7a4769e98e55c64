/* SPDX-License-Identifier: BSD-3-Clause */
/* shared.h - several converters behind one address: is this node set up for it? (no I/O) */
#ifndef CONVERTD_SHARED_H
#define CONVERTD_SHARED_H

#include "common/endpoints.h"
#include "convertd/base/problems.h"

#include <stdbool.h>
#include <stddef.h>

#define SHARED_MAX 16

struct listen_address;
struct own_told;

/* An address at which clients reach other converters as well; its port is 0. */
struct shared_address {
	union sockaddr_ip address;
	struct place place;
};

struct shared {
	struct shared_address address[SHARED_MAX];
	size_t count;
};

/* What this host says. */
struct shared_facts {
	int allow_join_initial;            /* net.mptcp.allow_join_initial_addr_port, or -errno */
	const struct endpoints *endpoints; /* NULL: not known */
	const struct listen_address *listen;
	size_t listen_count;
	const struct own_told *own; /* addresses that a NAT translates to this host's; NULL: none */
	bool (*is_local)(void *arg, const struct in6_addr *address); /* NULL: not known */
	void *is_local_arg;
};

/* shared_add() - @text: a numeric address. Returns false after telling @problems. */
bool shared_add(struct shared *shared, const char *text, const struct place *place,
		struct problems *problems);

/* Is it one of them? */
bool shared_has(const struct shared *shared, const struct in6_addr *address);

/* Tells @warnings what will keep second subflows from the connections that they belong to. */
void shared_check(const struct shared *shared, const struct shared_facts *facts,
		  struct problems *warnings);

#endif
