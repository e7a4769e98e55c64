/* SPDX-License-Identifier: BSD-3-Clause */
/* limits_private.h - what limits_count.c, limits_room.c and limits_memory.c share */
#ifndef CONVERTD_LIMITS_PRIVATE_H
#define CONVERTD_LIMITS_PRIVATE_H

#include "convertd/policy/limits.h"
#include "convertd/policy/shares.h"

#include <pthread.h>

/* Kernel memory that stands still for less than this is taken for moving. */
#define LIMITS_STALLED_MIN_MS 500

struct limits_client {
	struct shares_node node; /* first */
	struct limits_member *members[LIMITS_CLASS_COUNT]; /* of each class, the one that has to go first is the first */
	struct heap stalled;     /* members with memory that doesn't move */
	size_t count;            /* how many members it has, those that have been told to go included */
	struct limits_client *prev, *next; /* in limits->idle */
	UT_hash_handle hh;
};

struct limits {
	pthread_mutex_t lock; /* for all that follows, clients and members included */
	struct limits_settings settings;
	struct shares shares;
	struct limits_client *clients;
	struct limits_client *idle; /* those without a member; the one that lost its last member first is the first */
	size_t idle_count;
	size_t members, told; /* how many members there are; how many of them have been told to go */
};

/* How much of a share all clients have together. */
static inline uint64_t limits_total(const struct limits *limits, enum share share)
{
	return shares_of(&limits->shares.root, share);
}

/* The greediest client of all that have any; NULL if none has. */
static inline struct limits_client *limits_greediest(struct limits *limits, enum share share)
{
	return (struct limits_client *)shares_most(&limits->shares.root, share);
}

/* The callers of the functions below hold the lock. */

/* Tells a member to go, which must not have been told yet. It isn't counted from now on. */
void limits_tell(struct limits *limits, struct limits_member *member, enum outcome reason);

/* Sets how much kernel memory a member holds, and for how long that hasn't moved. */
void limits_set_memory(struct limits *limits, struct limits_member *member, uint64_t bytes,
		       uint32_t stalled_ms);

#endif
