/* SPDX-License-Identifier: BSD-3-Clause */
/* access.h - who may use the converter, and where to: the policy over access_rules.h */
#ifndef CONVERTD_ACCESS_H
#define CONVERTD_ACCESS_H

#include "convertd/net/route.h"
#include "convertd/policy/access_rules.h"

#include <stdbool.h>

struct access {
	struct access_rules clients;
	struct access_rules destinations;
	bool no_hairpin; /* a client is no destination for another */
	struct place no_hairpin_place;
};

enum access_verdict {
	ACCESS_ALLOWED,
	ACCESS_DENIED,    /* Not Authorized */
	ACCESS_BROADCAST, /* one of our networks': Malformed, as Section 6.2.5 has it */
	ACCESS_UNKNOWN,   /* the kernel couldn't say whether the address is our own */
};

/*
 * access_finish() - after the user's rules have been added
 * Adds the built-in ones and tells @problems what can't be meant. Returns 0 or -ENOMEM.
 */
int access_finish(struct access *access, struct problems *problems);

void access_fini(struct access *access);

/* May this client (IPv4 as v4-mapped) use the converter? */
bool access_client(const struct access *access, const struct in6_addr *client);

/* Where an address leads; see route_find(). */
typedef enum route_kind access_route_fn(void *arg, const struct in6_addr *address);

/*
 * access_destination() - may a client connect there?
 * @address: the server's, as in a valid Connect TLV
 * @route, @arg: asked only about what the rules allow
 * @reason: set to a constant for the log unless it is allowed
 */
enum access_verdict access_destination(const struct access *access, const struct in6_addr *address,
				       uint16_t port, access_route_fn *route, void *arg,
				       const char **reason);

#endif
