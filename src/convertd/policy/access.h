/* SPDX-License-Identifier: BSD-3-Clause */
/* access.h - decides which clients may use the converter, and which destinations they may reach */
#ifndef CONVERTD_ACCESS_H
#define CONVERTD_ACCESS_H

#include "convertd/net/route.h"
#include "convertd/policy/access_rules.h"

#include <stdbool.h>
#include <stddef.h>

#define ACCESS_HOST_MAX 64

struct access {
	struct access_rules clients;
	struct access_rules destinations;
	bool no_hairpin; /* clients may not connect to each other */
	struct place no_hairpin_place;
	struct prefix host[ACCESS_HOST_MAX]; /* addresses of this host that no interface has: --own-address, --shared-address */
	size_t host_count;
};

enum access_verdict {
	ACCESS_ALLOWED,
	ACCESS_DENIED,    /* the error is Not Authorized */
	ACCESS_BROADCAST, /* a broadcast address of our networks: the error is Malformed (RFC 8803 6.2.5) */
	ACCESS_UNKNOWN,   /* the kernel couldn't tell whether the address is our own */
};

/*
 * access_finish() - complete the rules, after those of the user have been added
 * It adds the built-in rules, and errors to @problems for rules that contradict each other. Returns 0 or -ENOMEM.
 */
int access_finish(struct access *access, struct problems *problems);

/* Adds a prefix of this host's addresses, which destinations may not have. Returns false if there are ACCESS_HOST_MAX already. */
bool access_add_host(struct access *access, const struct prefix *prefix);

/* Frees the rules. */
void access_fini(struct access *access);

/* Tells whether this client (IPv4 as v4-mapped) may use the converter. */
bool access_client(const struct access *access, const struct in6_addr *client);

/* Returns where an address leads, as route_find() does. */
typedef enum route_kind access_route_fn(void *arg, const struct in6_addr *address);

/*
 * access_destination() - decide whether a client may connect to a server
 * @address, @port: the server's, as in a valid Connect TLV; IPv4 as v4-mapped
 * @route: called with @arg for addresses that the rules allow and that aren't in @access->host
 * @reason: set to a constant for the log unless ACCESS_ALLOWED is returned
 */
enum access_verdict access_destination(const struct access *access, const struct in6_addr *address,
				       uint16_t port, access_route_fn *route, void *arg,
				       const char **reason);

#endif
