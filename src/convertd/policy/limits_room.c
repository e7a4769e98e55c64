/* SPDX-License-Identifier: BSD-3-Clause */
/* limits_room.c - who makes room where there are too many: see limits_count.c for the theory */
#include "config.h"

#include "convertd/policy/limits_private.h"

#include <string.h>

/* A newcomer has so many members make room at most: where a reload has lowered a limit by more, no others go for that. */
#define MAKE_ROOM_MAX 16

/* The part of all errors a second that a prefix may be sent: by its height, one in so many. */
static const unsigned errors_part[] = { 0, 8, 4, 2 };

/* Which members make room, by the share that there is too much of: those of the first class that the client has. */
static const struct {
	unsigned count;
	uint8_t class[LIMITS_CLASS_COUNT];
} victims[SHARE_COUNT] = {
	[SHARE_WAITING] = { 1, { LIMITS_WAITING } },
	[SHARE_PENDING] = { 3, { LIMITS_WAITING, LIMITS_PENDING, LIMITS_WITHHELD } },
	[SHARE_WITHHELD] = { 1, { LIMITS_WITHHELD } },
	[SHARE_CONNECTIONS] = { 4, { LIMITS_WAITING, LIMITS_OPEN, LIMITS_PENDING, LIMITS_WITHHELD } },
};

/* Chooses a member of @client that has to go for @newcomer; NULL if none has to. */
static struct limits_member *choose_of(const struct limits_client *client, enum share share,
				       const struct limits_member *newcomer)
{
	bool own = client == newcomer->client;

	for (unsigned i = 0; i < victims[share].count; i++) {
		enum limits_class class = (enum limits_class)victims[share].class[i];
		struct limits_member *first = client->members[class];

		/* A newcomer replaces a member of its own client only if that hasn't asked for anything yet. */
		if (own && class != LIMITS_WAITING)
			return NULL;
		if (first == newcomer)
			first = first->next;
		if (first)
			return first;
	}
	return NULL;
}

/*
 * Has the greediest client, or a prefix of it, so much more than the newcomer that one of it has to go? For the
 * sake of a pending one it needn't have more. A withheld SYN that isn't let in is served nevertheless, and
 * a forged one that is let in reaches a server: so those that are forged from everywhere don't push one another out.
 */
static bool is_greedier(const struct limits_client *client, enum share share,
			const struct limits_member *newcomer)
{
	uint64_t of_greedy, of_newcomer;

	if (client == newcomer->client || (share != SHARE_WITHHELD && share != SHARE_CONNECTIONS))
		return true;
	shares_compare(&client->node, &newcomer->client->node, share, &of_greedy, &of_newcomer);
	return of_greedy > (share == SHARE_CONNECTIONS ? 2 : 1) * of_newcomer;
}

static struct limits_member *choose(struct limits *limits, enum share share,
				    const struct limits_member *newcomer)
{
	struct limits_client *client;

	if (share == SHARE_PENDING && limits_total(limits, SHARE_WAITING) > limits_total(limits, SHARE_PENDING) / 2)
		share = SHARE_WAITING;
	client = limits_greediest(limits, share);
	if (!client || !is_greedier(client, share, newcomer))
		return NULL;
	return choose_of(client, share, newcomer);
}

/* Returns OUTCOME_NONE where there is room for the newcomer, which is counted already, else @reason. */
static enum outcome make_room(struct limits *limits, enum share share, uint64_t limit,
			      const struct limits_member *newcomer, enum outcome reason)
{
	uint64_t excess = limits_total(limits, share) > limit ? limits_total(limits, share) - limit : 0;

	if (!limit || !excess)
		return OUTCOME_NONE;
	if (excess > MAKE_ROOM_MAX)
		return reason;
	for (; excess; excess--) {
		struct limits_member *victim = choose(limits, share, newcomer);

		if (!victim)
			return reason;
		limits_tell(limits, victim, reason);
	}
	return OUTCOME_NONE;
}

static bool exceeds(uint64_t value, uint64_t limit)
{
	return limit && value > limit;
}

static enum outcome admit(struct limits *limits, const struct limits_member *member)
{
	const struct limits_settings *settings = &limits->settings;
	const struct shares_node *node = &member->client->node;
	enum outcome reason;

	if (exceeds(shares_of(node, SHARE_PENDING), settings->pending.per_client))
		return OUTCOME_LIMIT_CLIENT_PENDING;
	if (exceeds(shares_of(node, SHARE_CONNECTIONS), settings->connections.per_client))
		return OUTCOME_LIMIT_CLIENT_CONNECTIONS;
	reason = make_room(limits, SHARE_PENDING, settings->pending.total, member, OUTCOME_LIMIT_PENDING);
	if (reason != OUTCOME_NONE)
		return reason;
	return make_room(limits, SHARE_CONNECTIONS, settings->connections.total, member,
			 OUTCOME_LIMIT_CONNECTIONS);
}

enum outcome limits_admit(struct limits *limits, struct limits_member *member)
{
	enum outcome reason;

	pthread_mutex_lock(&limits->lock);
	/* A member that has been told to go itself is refused meanwhile. */
	reason = member->reason != OUTCOME_NONE ? (enum outcome)member->reason : admit(limits, member);
	pthread_mutex_unlock(&limits->lock);
	return reason;
}

bool limits_may_withhold(struct limits *limits, struct limits_member *member)
{
	uint64_t pending = limits->settings.pending.total;
	enum outcome reason;

	pthread_mutex_lock(&limits->lock);
	pending = limits->settings.pending.total;
	reason = make_room(limits, SHARE_WITHHELD,
			   (pending + LIMITS_WITHHELD_PART - 1) / LIMITS_WITHHELD_PART, member,
			   OUTCOME_LIMIT_PENDING);
	pthread_mutex_unlock(&limits->lock);
	return reason == OUTCOME_NONE;
}

/* Clients that are being refused go first: they have been told already. */
static bool may_stay(struct limits *limits, const struct limits_member *newcomer)
{
	size_t limit = limits->settings.sockets;
	size_t sockets = limits->members - limits->told - limits_total(limits, SHARE_WITHHELD);
	struct limits_client *client;
	struct limits_member *victim;

	if (!exceeds(sockets, limit))
		return true;
	client = limits_greediest(limits, SHARE_REFUSING);
	victim = client ? client->members[LIMITS_REFUSING] : choose(limits, SHARE_CONNECTIONS, newcomer);
	if (victim)
		limits_tell(limits, victim, OUTCOME_LIMIT_CONNECTIONS);
	return victim != NULL;
}

bool limits_may_stay(struct limits *limits, struct limits_member *member)
{
	bool may;

	pthread_mutex_lock(&limits->lock);
	may = may_stay(limits, member);
	pthread_mutex_unlock(&limits->lock);
	return may;
}

static bool may_refuse(struct limits *limits, const struct limits_member *member)
{
	const struct limit *pending = &limits->settings.pending;
	struct limits_client *client;

	if (exceeds(shares_of(&member->client->node, SHARE_REFUSING) + 1, pending->per_client))
		return false;
	if (!exceeds(limits_total(limits, SHARE_REFUSING) + 1, pending->total))
		return true;
	client = limits_greediest(limits, SHARE_REFUSING);
	if (!client || client == member->client)
		return false;
	limits_tell(limits, client->members[LIMITS_REFUSING], OUTCOME_LIMIT_REFUSED);
	return true;
}

bool limits_may_refuse(struct limits *limits, struct limits_member *member)
{
	bool may;

	pthread_mutex_lock(&limits->lock);
	may = may_refuse(limits, member);
	pthread_mutex_unlock(&limits->lock);
	return may;
}

/* ----- errors ----- */

static unsigned error_rate(const struct limits *limits, const struct shares_node *node)
{
	const struct limit *errors = &limits->settings.errors;

	if (!node->parent)
		return errors->total;
	if (!node->height)
		return errors->per_client;
	/* If the part comes to 0, the prefix has no limit besides those of its clients. */
	return errors->total / errors_part[node->height];
}

static bool take_error(struct limits *limits, struct shares_node *leaf, uint64_t now_ms)
{
	for (struct shares_node *node = leaf; node; node = node->parent)
		if (!bucket_has(&node->errors, error_rate(limits, node), now_ms))
			return false;
	for (struct shares_node *node = leaf; node; node = node->parent)
		bucket_take(&node->errors, error_rate(limits, node));
	return true;
}

bool limits_take_error(struct limits *limits, struct limits_member *member, uint64_t now_ms)
{
	bool taken;

	pthread_mutex_lock(&limits->lock);
	taken = take_error(limits, &member->client->node, now_ms);
	pthread_mutex_unlock(&limits->lock);
	return taken;
}

uint64_t limits_pending_apart(struct limits *limits, const struct in6_addr *address)
{
	const struct shares_node *node = &limits->shares.root;
	uint8_t key[SHARES_KEY_LEN];
	uint64_t apart;

	pthread_mutex_lock(&limits->lock);
	apart = limits_total(limits, SHARE_PENDING);
	while ((node = shares_first(node, SHARE_PENDING))) {
		shares_key(address, node->key[SHARES_KEY_LEN - 1], key);
		if (memcmp(key, node->key, SHARES_KEY_LEN) != 0) {
			apart -= shares_of(node, SHARE_PENDING);
			break;
		}
	}
	pthread_mutex_unlock(&limits->lock);
	return apart;
}
