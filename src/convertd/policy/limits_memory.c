/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * limits_memory.c - what clients hold of the kernel's memory, and who of them is ended for it
 *
 * A peer that takes nothing has the kernel keep all that its socket, and the socket that its bytes come
 * from, can hold: megabytes each, as buffers grow with the speed that there once was. What is in them can't be
 * taken back: it has been acknowledged. And buffers that are bounded beforehand no longer grow with the
 * connection: fast ones would pay for the stalled ones. So what is held is measured (relay_memory.c),
 * and where it is too much some are ended: of the prefix that holds most, weighed by how long it stands
 * still, the one that holds most, weighed likewise. What moves has no weight, and is never ended.
 *
 * Three budgets: what all may hold; what a client may, and prefixes above it twice, four times as much and so on, half of
 * all at most. What stands still has some seconds to move again: two where all hold too much, five where only a
 * prefix does. Honest ones may stand still as long: a receiver opens its window when a sixteenth of its
 * buffer is free, and radios pause.
 */
#include "config.h"

#include "convertd/policy/limits_private.h"

#include <stddef.h>

/* Prefixes above a client may have twice, four times … as much as it may, and half of all at most. */
#define PREFIX_PART_MIN 2

/*
 * Who is ended must have stood still for so long: where a prefix holds too much; where all do; where
 * either holds more than twice what it may; and, where all hold too much, in a prefix that holds much less than
 * the greediest one, which may have begun to stand still only now.
 */
#define STALLED_PREFIX_MS 5000
#define STALLED_TOTAL_MS 2000
#define STALLED_GREEDY_MS 2000
#define STALLED_SMALL_MS 10000

/* What a prefix may hold: the share of a client, doubled for each prefix above it. */
static uint64_t memory_limit(const struct limits *limits, const struct shares_node *node)
{
	const struct limits_memory *memory = &limits->settings.memory;
	uint64_t limit = memory->per_client << node->height, half = memory->total / PREFIX_PART_MIN;

	if (!node->parent)
		return memory->total;
	return node->height && half && limit > half ? half : limit;
}

/* For how long the one that goes must have stood still, if one has to go; 0: none has. */
static uint32_t stalled_enough(const struct limits *limits, const struct shares_node *node)
{
	uint64_t limit = memory_limit(limits, node), memory = shares_of(node, SHARE_MEMORY);

	if (!limit || memory <= limit)
		return 0;
	if (!node->parent)
		return memory > 2 * limit ? LIMITS_STALLED_MIN_MS : STALLED_TOTAL_MS;
	return memory > 2 * limit ? STALLED_GREEDY_MS : STALLED_PREFIX_MS;
}

/* Is it another prefix than @client's that holds most below @node, twice as much at least? */
static bool others_hold_more(struct shares_node *node, const struct limits_client *client)
{
	const struct shares_node *most = shares_most(node, SHARE_MEMORY);
	uint64_t of_most, of_client;

	if (!most || most == &client->node)
		return false;
	shares_compare(most, &client->node, SHARE_MEMORY, &of_most, &of_client);
	return of_most > 2 * of_client;
}

/* The next one below @node to be ended; NULL if there is none yet. */
static struct limits_member *next_to_end(struct limits *limits, struct shares_node *node)
{
	uint32_t enough = stalled_enough(limits, node);
	struct limits_client *client = (struct limits_client *)shares_most(node, SHARE_STALLED);
	struct limits_member *member;

	if (!enough || !client)
		return NULL;
	member = (struct limits_member *)((char *)client->stalled.first -
					  offsetof(struct limits_member, stalled));
	if (enough < STALLED_SMALL_MS && others_hold_more(node, client))
		enough = STALLED_SMALL_MS;
	return member->stalled_ms < enough ? NULL : member;
}

/* Ends what stands still below @node until that holds no more than it may. */
static void relieve(struct limits *limits, struct shares_node *node)
{
	struct limits_member *member;

	while ((member = next_to_end(limits, node)))
		limits_tell(limits, member, OUTCOME_LIMIT_MEMORY);
}

void limits_hold(struct limits *limits, struct limits_member *member, uint64_t bytes,
		 uint32_t stalled_ms)
{
	pthread_mutex_lock(&limits->lock);
	if (member->reason == OUTCOME_NONE) {
		struct shares_node *node = &member->client->node;

		limits_set_memory(limits, member, bytes, stalled_ms);
		for (; node; node = node->parent)
			relieve(limits, node);
	}
	pthread_mutex_unlock(&limits->lock);
}
