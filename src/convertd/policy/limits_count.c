/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * limits_count.c - how much of the converter one client prefix, and all of them, may take (no I/O)
 *
 * The problem. A number for each client is too large or too small: a thousand users behind one address are
 * one client, and one user with a /56 is 256. So, unless the operator says otherwise, a client may have all
 * that nobody else needs, and where all is taken whoever has most makes room for whoever comes: the
 * greediest of the largest prefixes, in it the greediest of the next ones, down to a client (shares.h).
 * If that is the newcomer itself, it is refused.
 *
 * Which member of that client? The oldest that waits for its client's bytes; else the oldest that is pending, as its
 * server is the least likely to answer; else the open one on which nothing has moved for longest. Requests come in the
 * SYN as a rule and never wait, so where more than half of what is pending waits, one of the waiting makes room. An open
 * connection makes room only for a prefix that has less than half as much: who is served stays served, among equals.
 *
 * Where all have as much as each other, the one that has had it for longest makes room. So a flood from
 * more prefixes than there is room for pushes itself out, and leaves a newcomer the time of one round.
 *
 * A member may be another thread's. It is told to go: it isn't counted from then on, and its owner
 * is woken to end it. If it has gone by itself meanwhile, all the better.
 *
 * A client is known as long as it has a member, and afterwards until its bucket of errors is full
 * again. There are no more of the former than members, and of the latter LIMITS_IDLE_MAX: then
 * the one that has left first is forgotten. So a flood from forged addresses can't make the table
 * grow; what it can do is to make it forget, and for that case there are the buckets that prefixes,
 * and all clients, share.
 *
 * The tables are hashed with a secret key (SipHash): whoever chooses a client's address can't choose
 * its place in them. One lock for everything: a session takes it some eight times in its life, for two
 * microseconds in all.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* Before uthash.h, which the header includes. */
#define HASH_NONFATAL_OOM 1
#define HASH_FUNCTION(key, len, hash) ((hash) = shares_hash(&limits->shares, (key), (len)))
#include "convertd/policy/limits_private.h"

#define SHARE_BIT(share) (1U << (share))

/* Which shares a member of each class counts in. */
static const unsigned class_shares[] = {
	[LIMITS_PENDING] = SHARE_BIT(SHARE_PENDING) | SHARE_BIT(SHARE_CONNECTIONS),
	[LIMITS_WAITING] = SHARE_BIT(SHARE_WAITING) | SHARE_BIT(SHARE_PENDING) |
			   SHARE_BIT(SHARE_CONNECTIONS),
	[LIMITS_WITHHELD] = SHARE_BIT(SHARE_WITHHELD) | SHARE_BIT(SHARE_PENDING) |
			    SHARE_BIT(SHARE_CONNECTIONS),
	[LIMITS_OPEN] = SHARE_BIT(SHARE_CONNECTIONS),
	[LIMITS_REFUSING] = SHARE_BIT(SHARE_REFUSING),
};
static_assert(sizeof(class_shares) / sizeof(class_shares[0]) == LIMITS_CLASS_COUNT, "shares of each");

struct limits *limits_create(void)
{
	struct limits *limits = sodium_init() < 0 ? NULL : calloc(1, sizeof(*limits));

	if (!limits)
		return NULL;
	pthread_mutex_init(&limits->lock, NULL);
	shares_init(&limits->shares);
	return limits;
}

static void forget(struct limits *limits, struct limits_client *client)
{
	shares_detach(&limits->shares, &client->node);
	HASH_DELETE(hh, limits->clients, client);
	free(client);
}

void limits_destroy(struct limits *limits)
{
	struct limits_client *client, *next;

	if (!limits)
		return;
	HASH_ITER(hh, limits->clients, client, next)
		forget(limits, client);
	shares_fini(&limits->shares);
	pthread_mutex_destroy(&limits->lock);
	free(limits);
}

void limits_configure(struct limits *limits, const struct limits_settings *settings)
{
	pthread_mutex_lock(&limits->lock);
	limits->settings = *settings;
	pthread_mutex_unlock(&limits->lock);
}

/* ----- members and clients ----- */

static struct limits_client *client_create(struct limits *limits, const uint8_t key[static SHARES_KEY_LEN])
{
	struct limits_client *client = calloc(1, sizeof(*client));

	if (!client)
		return NULL;
	memcpy(client->node.key, key, SHARES_KEY_LEN);
	if (shares_attach(&limits->shares, &client->node) < 0) {
		free(client);
		return NULL;
	}
	HASH_ADD(hh, limits->clients, node.key, SHARES_KEY_LEN, client);
	if (client->hh.tbl)
		return client;
	shares_detach(&limits->shares, &client->node);
	free(client);
	return NULL;
}

/* Returns the client of that key, made if it isn't known, and no longer among the idle ones; NULL without memory. */
static struct limits_client *client_get(struct limits *limits, const uint8_t key[static SHARES_KEY_LEN])
{
	struct limits_client *client;

	HASH_FIND(hh, limits->clients, key, SHARES_KEY_LEN, client);
	if (!client)
		return client_create(limits, key);
	if (!client->count) {
		DL_DELETE(limits->idle, client);
		limits->idle_count--;
	}
	return client;
}

/* Adds @by, 1 or -1, to each of the shares in the set @shares for the member's client and the prefixes above. */
static void add_shares(struct limits *limits, const struct limits_member *member, unsigned shares, int by)
{
	for (int share = 0; share < SHARE_COUNT; share++)
		if (shares & SHARE_BIT(share))
			shares_add(&limits->shares, &member->client->node, (enum share)share, by);
}

static void count(struct limits *limits, struct limits_member *member, enum limits_class class)
{
	member->class = (uint8_t)class;
	DL_APPEND(member->client->members[class], member);
	add_shares(limits, member, class_shares[class], 1);
}

void limits_set_memory(struct limits *limits, struct limits_member *member, uint64_t bytes,
		       uint32_t stalled_ms)
{
	struct limits_client *client = member->client;
	uint64_t before = member->stalled.weight;
	uint64_t weight = stalled_ms < LIMITS_STALLED_MIN_MS ? 0 : (bytes >> 10) * stalled_ms / LIMITS_STALLED_MIN_MS;

	if (bytes != member->memory)
		shares_add(&limits->shares, &client->node, SHARE_MEMORY,
			   (int64_t)(bytes - member->memory));
	member->memory = bytes;
	member->stalled_ms = stalled_ms;
	if (weight == before)
		return;
	heap_set(&client->stalled, &member->stalled, weight, ++limits->shares.turn);
	shares_add(&limits->shares, &client->node, SHARE_STALLED, (int64_t)(weight - before));
}

static void uncount(struct limits *limits, struct limits_member *member)
{
	DL_DELETE(member->client->members[member->class], member);
	add_shares(limits, member, class_shares[member->class], -1);
	limits_set_memory(limits, member, 0, 0);
}

/* Takes a member out of those that have been told to go. */
static void untell(struct limits *limits, struct limits_member *member)
{
	/* limits_next_told() may have taken it out. */
	if (member->prev)
		DL_DELETE(member->owner->told, member);
	member->prev = member->next = NULL;
	member->reason = OUTCOME_NONE;
	limits->told--;
}

void limits_tell(struct limits *limits, struct limits_member *member, enum outcome reason)
{
	struct limits_owner *owner = member->owner;

	uncount(limits, member);
	member->reason = (uint8_t)reason;
	limits->told++;
	DL_APPEND(owner->told, member);
	if (owner->told == member)
		owner->wake(owner);
}

int limits_enter(struct limits *limits, struct limits_member *member, const struct in6_addr *address,
		 enum limits_class class)
{
	uint8_t key[SHARES_KEY_LEN];
	bool v4 = IN6_IS_ADDR_V4MAPPED(address);

	pthread_mutex_lock(&limits->lock);
	shares_key(address, (uint8_t)(v4 ? 96 + limits->settings.prefix_v4 : limits->settings.prefix_v6), key);
	member->client = client_get(limits, key);
	if (member->client) {
		member->client->count++;
		limits->members++;
		count(limits, member, class);
	}
	pthread_mutex_unlock(&limits->lock);
	return member->client ? 0 : -ENOMEM;
}

static void move(struct limits *limits, struct limits_member *member, enum limits_class class)
{
	unsigned before = class_shares[member->class], after = class_shares[class];

	if (member->reason == OUTCOME_NONE) {
		DL_DELETE(member->client->members[member->class], member);
		add_shares(limits, member, before & ~after, -1);
		add_shares(limits, member, after & ~before, 1);
		DL_APPEND(member->client->members[class], member);
	} else if (class == LIMITS_REFUSING ||
		   (class == LIMITS_OPEN && member->reason == OUTCOME_LIMIT_PENDING)) {
		untell(limits, member);
		count(limits, member, class);
	}
	member->class = (uint8_t)class;
}

void limits_move(struct limits *limits, struct limits_member *member, enum limits_class class)
{
	pthread_mutex_lock(&limits->lock);
	move(limits, member, class);
	pthread_mutex_unlock(&limits->lock);
}

void limits_touch(struct limits *limits, struct limits_member *member)
{
	pthread_mutex_lock(&limits->lock);
	if (member->reason == OUTCOME_NONE) {
		DL_DELETE(member->client->members[member->class], member);
		DL_APPEND(member->client->members[member->class], member);
	}
	pthread_mutex_unlock(&limits->lock);
}

static void set_idle(struct limits *limits, struct limits_client *client, uint64_t now_ms)
{
	if (bucket_is_full(&client->node.errors, limits->settings.errors.per_client, now_ms)) {
		forget(limits, client);
		return;
	}
	DL_APPEND(limits->idle, client);
	if (++limits->idle_count > LIMITS_IDLE_MAX) {
		client = limits->idle;
		DL_DELETE(limits->idle, client);
		limits->idle_count--;
		forget(limits, client);
	}
}

void limits_leave(struct limits *limits, struct limits_member *member, uint64_t now_ms)
{
	struct limits_client *client = member->client;

	pthread_mutex_lock(&limits->lock);
	if (member->reason != OUTCOME_NONE)
		untell(limits, member);
	else
		uncount(limits, member);
	member->client = NULL;
	limits->members--;
	if (!--client->count)
		set_idle(limits, client, now_ms);
	pthread_mutex_unlock(&limits->lock);
}

struct limits_member *limits_next_told(struct limits *limits, struct limits_owner *owner,
				       enum outcome *reason)
{
	struct limits_member *member;

	pthread_mutex_lock(&limits->lock);
	do {
		member = owner->told;
		if (!member)
			break;
		DL_DELETE(owner->told, member);
		member->prev = member->next = NULL;
		*reason = (enum outcome)member->reason;
	} while (member->kind && member->kind->claim && !member->kind->claim(member));
	pthread_mutex_unlock(&limits->lock);
	return member;
}

/* ----- how many there are ----- */

size_t limits_members(struct limits *limits)
{
	size_t members;

	pthread_mutex_lock(&limits->lock);
	members = limits->members;
	pthread_mutex_unlock(&limits->lock);
	return members;
}

size_t limits_members_of(struct limits *limits, const struct limits_member *member)
{
	size_t members;

	pthread_mutex_lock(&limits->lock);
	members = member->client->count;
	pthread_mutex_unlock(&limits->lock);
	return members;
}

size_t limits_clients(struct limits *limits)
{
	size_t clients;

	pthread_mutex_lock(&limits->lock);
	clients = HASH_COUNT(limits->clients);
	pthread_mutex_unlock(&limits->lock);
	return clients;
}

uint64_t limits_memory(struct limits *limits)
{
	uint64_t bytes;

	pthread_mutex_lock(&limits->lock);
	bytes = limits_total(limits, SHARE_MEMORY);
	pthread_mutex_unlock(&limits->lock);
	return bytes;
}
