/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * access_rules.h - rules that allow or deny prefixes; the longest match wins
 *
 * Of rules for the same prefix, a rule of the user wins over a built-in one, and then the one with the narrower range of
 * ports. An address that no rule matches is denied if the user has allowed anything, and
 * allowed otherwise.
 */
#ifndef CONVERTD_RULES_H
#define CONVERTD_RULES_H

#include "common/sockaddr.h"
#include "common/problems.h"

#include <stdbool.h>
#include <stddef.h>

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

/* Tells whether the address is allowed, by the rule that decides or, without one, as described above. */
bool access_rules_allow(const struct access_rules *rules, const struct in6_addr *address, uint16_t port);

void access_rules_fini(struct access_rules *rules);

#endif
