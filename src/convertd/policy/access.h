/* SPDX-License-Identifier: BSD-3-Clause */
/* access.h - decides which clients may use the converter, and which destinations they may reach */
#ifndef CONVERTD_ACCESS_H
#define CONVERTD_ACCESS_H

#include "common/problems.h"
#include "common/sockaddr.h"
#include "convertd/net/downstream.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * ----- rules that allow or deny prefixes; the longest match wins -----
 *
 * Of rules for the same prefix, a rule of the user wins over a built-in one, and then the one with the narrower range of
 * ports. An address that no rule matches is denied if the user has allowed anything, and
 * allowed otherwise.
 */

struct access_rule {
	struct prefix_rule match;
	bool allow;
	bool builtin;
	struct place place; /* where the user has written the rule */
};

/* A set of rules; all zeros are a valid, empty one. */
struct access_rules {
	struct access_rule *rule;
	size_t count, room;
	bool closed; /* the user has allowed something */
};

/* Adds a copy of @rule. Returns 0 or -ENOMEM. */
int access_rules_add(struct access_rules *rules, const struct access_rule *rule);

/* Completes the set, after the last access_rules_add(). Adds an error to @problems for rules that contradict each other. */
void access_rules_finish(struct access_rules *rules, struct problems *problems);

/* Returns the rule that decides on an address (IPv4 as v4-mapped), or NULL. */
const struct access_rule *access_rules_find(const struct access_rules *rules, const struct in6_addr *address,
			      uint16_t port);

/* Tells whether the rules allow the address; access_rules_find() says by which rule. */
bool access_rules_allow(const struct access_rules *rules, const struct in6_addr *address, uint16_t port);

void access_rules_fini(struct access_rules *rules);

/* ----- which clients may use the converter, and which destinations they may reach ----- */

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
