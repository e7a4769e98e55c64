/* SPDX-License-Identifier: BSD-3-Clause */
/* limits_world.h - members that come and go, for the tests of limits.c */
#ifndef LIMITS_WORLD_H
#define LIMITS_WORLD_H

#include "daemon/limits.h"

#include <stdbool.h>
#include <stddef.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* A member, its owner, and whether the limits have woken that. */
struct member {
	struct limits_member member; /* first */
	struct limits_owner owner;
	bool woken;
};

/* What is tested; NULL before configure() and after finish(). */
extern struct limits *limits;

/* Creates the limits unless they are there, and gives them these settings. */
void configure(const struct limits_settings *settings);

/* Fails the test if a member or memory is left, and destroys the limits. */
void finish(void);

/* Notes that the limits have woken the member's owner: limits_owner.wake. */
void on_wake(struct limits_owner *owner);

/* Enters a new member of this class; on_wake() sets @m->woken. */
void enter_address(struct member *m, const struct in6_addr *address, enum limits_class class);

/* Enters a new member that is pending. */
void enter(struct member *m, const char *text);

void leave_at(struct member *m, uint64_t now_ms);
void leave(struct member *m);
void move(struct member *m, enum limits_class class);
enum outcome admit(struct member *m);

/* Takes all errors that its client may be sent at this time. Returns how many. */
int errors_at(struct member *m, uint64_t now_ms);

struct in6_addr address_of(const char *text);

/* Returns the @i-th of the prefixes of that length, spread over the bits above it. */
struct in6_addr spread(const char *base, unsigned bits, uint32_t i);

#endif
