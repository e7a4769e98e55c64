/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rules.h - prefixes that are allowed or denied; the longest match wins
 *
 * Of rules for the same prefix, the one with the narrower range of ports wins, and one of the
 * user's over a built-in one. What no rule matches is denied if the user has allowed anything, and
 * allowed otherwise.
 */
#ifndef CONVERTD_RULES_H
#define CONVERTD_RULES_H

#include "common/prefix.h"
#include "convertd/base/problems.h"

#include <stdbool.h>
#include <stddef.h>

struct access_rule {
	struct prefix_rule match;
	bool allow;
	bool builtin;
	struct place place; /* of the user's */
};

/* Zero is a valid set, in which nothing is. */
struct access_rules {
	struct access_rule *rule;
	size_t count, room;
	bool closed; /* the user has allowed something */
};

/* Returns 0 or -ENOMEM. */
int access_rules_add(struct access_rules *rules, const struct access_rule *rule);

/* To be called once behind the last access_rules_add(). Tells @problems which contradict each other. */
void access_rules_finish(struct access_rules *rules, struct problems *problems);

/* The rule that decides on an address (IPv4 as v4-mapped), or NULL. */
const struct access_rule *access_rules_find(const struct access_rules *rules, const struct in6_addr *address,
			      uint16_t port);

/* What that rule says; without one, what holds then. */
bool access_rules_allow(const struct access_rules *rules, const struct in6_addr *address, uint16_t port);

void access_rules_fini(struct access_rules *rules);

#endif
