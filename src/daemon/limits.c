/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * limits.c - limits how much of the converter one client prefix, and all of them, may take (no I/O)
 *
 * The problem. A fixed number for each client is too large or too small: a thousand users behind one address are one
 * client, and one user with a /56 is 256. So, unless the operator says otherwise, a client may have all that nobody
 * else needs. When everything is taken, the greediest client makes room for the newcomer: it is the greediest of the
 * largest prefixes, in it the greediest of the next ones, and so on down to a client (shares.h). If that is the
 * newcomer itself, it is refused.
 *
 * Which member of that client goes? The oldest that waits for its client's bytes; else the oldest pending one, as its
 * server is the least likely to answer; else the open one whose bytes haven't moved for longest. A request usually
 * comes in the SYN and never waits. So where more than half of the pending members wait, one of these goes. An open
 * connection makes room only for a prefix that has less than half as much: among equals, a client that is served
 * stays served.
 *
 * Where all have equally much, the one that has had it for longest makes room. So a flood from more prefixes than
 * there is room for pushes itself out, and leaves a newcomer the time of one round.
 *
 * A member may belong to another thread. We tell it to go: from then on it isn't counted, and we wake its owner,
 * which ends it. It may also have ended by itself meanwhile.
 *
 * We know a client as long as it has a member, and afterwards until its bucket of errors is full again. There are no
 * more clients with a member than members. Of those without, we remember LIMITS_IDLE_MAX, and then forget the one
 * that has left first. So a flood from forged addresses can't make the table grow. It can make us forget clients; for
 * that case prefixes, and all clients together, have buckets too.
 *
 * Memory. If a peer takes no bytes, the kernel keeps all that its socket, and the socket on the other side, can hold:
 * megabytes each, as buffers grow with the speed that the connection once had. We can't take these bytes back, as
 * they have been acknowledged. Nor can we bound the buffers beforehand: they would no longer grow with the
 * connection, and fast ones would pay for the stalled ones. So we measure the memory (src/relay), and end members
 * where it is too much. The weight of a member is its memory times how long that hasn't moved. The prefix with the
 * greatest weight goes first, and in it the member with the greatest weight. A member that moves has no weight, and
 * is never ended.
 *
 * There are three budgets: of all clients, of a client, and of the prefixes above it, which may have twice, four
 * times as much and so on, half of all at most. A stalled member has some seconds to move again: two where all hold
 * too much, five where only a prefix does. Honest peers may stall that long: a receiver opens its window when a
 * sixteenth of its buffer is free, and radios pause.
 *
 * The tables are hashed with a secret key (SipHash), so that a client can't choose its place in them by its address.
 * One lock guards everything: a session takes it some eight times in its life, for two microseconds in all.
 */
#include "config.h"

#include "daemon/limits.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* Before uthash.h, which the header includes. */
#define HASH_NONFATAL_OOM 1
#define HASH_FUNCTION(key, len, hash) ((hash) = shares_hash(&limits->shares, (key), (len)))
#include "daemon/shares.h"

/* Kernel memory whose bytes haven't moved for less than this counts as moving. */
#define STALLED_MIN_MS 500

struct limits_client {
	struct shares_node node; /* first */
	struct limits_member *members[LIMITS_CLASS_COUNT]; /* by class; the first is the first to go */
	struct heap stalled;     /* members with memory that doesn't move */
	size_t count;            /* the number of its members, including those that have to go */
	struct limits_client *prev, *next; /* in limits->idle */
	UT_hash_handle hh;
};

struct limits {
	pthread_mutex_t lock; /* guards all members below, clients and their members included */
	struct limits_settings settings;
	struct shares shares;
	struct limits_client *clients;
	struct limits_client *idle; /* clients without a member; the one that lost its last member first is the first */
	size_t idle_count;
	size_t members, told; /* the number of members, and of those that have to go */
};

/* Returns what all clients use of a share. */
static uint64_t total(const struct limits *limits, enum share share)
{
	return shares_of(&limits->shares.root, share);
}

/* Returns the greediest client, or NULL if none uses anything. */
static struct limits_client *greediest(struct limits *limits, enum share share)
{
	return (struct limits_client *)shares_most(&limits->shares.root, share);
}

static pthread_mutex_t *lock(struct limits *limits)
{
	pthread_mutex_lock(&limits->lock);
	return &limits->lock;
}

static void unlock(pthread_mutex_t **held)
{
	pthread_mutex_unlock(*held);
}

/* Holds the lock from here to the end of the function. */
#define LOCK(limits) pthread_mutex_t *held __attribute__((cleanup(unlock), unused)) = lock(limits)

#define SHARE_BIT(share) (1U << (share))

/* The shares in which a member of each class counts. */
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
	LOCK(limits);
	limits->settings = *settings;
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

/* Returns the client of a key, which it creates if need be and takes off the idle list; NULL without memory. */
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

static void set_memory(struct limits *limits, struct limits_member *member, uint64_t bytes,
		       uint32_t stalled_ms)
{
	struct limits_client *client = member->client;
	uint64_t before = member->stalled.weight;
	uint64_t weight = stalled_ms < STALLED_MIN_MS ? 0 : (bytes >> 10) * stalled_ms / STALLED_MIN_MS;

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
	set_memory(limits, member, 0, 0);
}

/* Removes a member from those that have to go. */
static void untell(struct limits *limits, struct limits_member *member)
{
	/* limits_next_told() may have removed it. */
	if (member->prev)
		DL_DELETE(member->owner->told, member);
	member->prev = member->next = NULL;
	member->reason = OUTCOME_NONE;
	limits->told--;
}

static void tell_to_go(struct limits *limits, struct limits_member *member, enum outcome reason)
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

	LOCK(limits);
	shares_key(address, (uint8_t)(v4 ? 96 + limits->settings.prefix_v4 : limits->settings.prefix_v6), key);
	member->client = client_get(limits, key);
	if (member->client) {
		member->client->count++;
		limits->members++;
		count(limits, member, class);
	}
	return member->client ? 0 : -ENOMEM;
}

void limits_move(struct limits *limits, struct limits_member *member, enum limits_class class)
{
	LOCK(limits);
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

void limits_touch(struct limits *limits, struct limits_member *member)
{
	LOCK(limits);
	if (member->reason == OUTCOME_NONE) {
		DL_DELETE(member->client->members[member->class], member);
		DL_APPEND(member->client->members[member->class], member);
	}
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

	LOCK(limits);
	if (member->reason != OUTCOME_NONE)
		untell(limits, member);
	else
		uncount(limits, member);
	member->client = NULL;
	limits->members--;
	if (!--client->count)
		set_idle(limits, client, now_ms);
}

struct limits_member *limits_next_told(struct limits *limits, struct limits_owner *owner,
				       enum outcome *reason)
{
	struct limits_member *member;

	LOCK(limits);
	do {
		member = owner->told;
		if (!member)
			break;
		DL_DELETE(owner->told, member);
		member->prev = member->next = NULL;
		*reason = (enum outcome)member->reason;
	} while (member->kind && member->kind->claim && !member->kind->claim(member));
	return member;
}

/* ----- which members make room ----- */

/* The most members that make room for one newcomer. If a reload has lowered a limit by more, the newcomer is refused instead. */
#define MAKE_ROOM_MAX 16

/* The part of the total rate of errors that a prefix may have: one in this many, by its height. */
static const unsigned errors_part[] = { 0, 8, 4, 2 };

/* The classes of members that make room, by the share that is exceeded; the first class of which the client has members. */
static const struct {
	unsigned count;
	uint8_t class[LIMITS_CLASS_COUNT];
} victims[SHARE_COUNT] = {
	[SHARE_WAITING] = { 1, { LIMITS_WAITING } },
	[SHARE_PENDING] = { 3, { LIMITS_WAITING, LIMITS_PENDING, LIMITS_WITHHELD } },
	[SHARE_WITHHELD] = { 1, { LIMITS_WITHHELD } },
	[SHARE_CONNECTIONS] = { 4, { LIMITS_WAITING, LIMITS_OPEN, LIMITS_PENDING, LIMITS_WITHHELD } },
};

/* Chooses a member of @client that has to go for @newcomer; NULL: none has to. */
static struct limits_member *choose_of(const struct limits_client *client, enum share share,
				       const struct limits_member *newcomer)
{
	bool own = client == newcomer->client;

	for (unsigned i = 0; i < victims[share].count; i++) {
		enum limits_class class = (enum limits_class)victims[share].class[i];
		struct limits_member *first = client->members[class];

		/* Within its own client, a newcomer replaces only a member that hasn't asked for anything yet. */
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
 * Tells whether the greediest client, or a prefix of it, has so much more than the newcomer that one of its members
 * has to go. For a pending newcomer it needn't have more. A withheld SYN has to be compared: if it isn't admitted it
 * is served nevertheless, but a forged one that is admitted reaches a server. So SYNs that are forged from everywhere
 * don't push one another out.
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

	if (share == SHARE_PENDING && total(limits, SHARE_WAITING) > total(limits, SHARE_PENDING) / 2)
		share = SHARE_WAITING;
	client = greediest(limits, share);
	if (!client || !is_greedier(client, share, newcomer))
		return NULL;
	return choose_of(client, share, newcomer);
}

/* Returns OUTCOME_NONE if there is room for the newcomer, which is counted already, else @reason. */
static enum outcome make_room(struct limits *limits, enum share share, uint64_t limit,
			      const struct limits_member *newcomer, enum outcome reason)
{
	uint64_t excess = total(limits, share) > limit ? total(limits, share) - limit : 0;

	if (!limit || !excess)
		return OUTCOME_NONE;
	if (excess > MAKE_ROOM_MAX)
		return reason;
	for (; excess; excess--) {
		struct limits_member *victim = choose(limits, share, newcomer);

		if (!victim)
			return reason;
		tell_to_go(limits, victim, reason);
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
	LOCK(limits);

	/* A member that has to go itself is refused meanwhile. */
	return member->reason != OUTCOME_NONE ? (enum outcome)member->reason : admit(limits, member);
}

bool limits_may_withhold(struct limits *limits, struct limits_member *member)
{
	LOCK(limits);
	uint64_t most = ((uint64_t)limits->settings.pending.total + LIMITS_WITHHELD_PART - 1) / LIMITS_WITHHELD_PART;

	return make_room(limits, SHARE_WITHHELD, most, member, OUTCOME_LIMIT_PENDING) == OUTCOME_NONE;
}

/* Sessions that wait for their refusal to arrive go first: they have sent it already. */
bool limits_may_stay(struct limits *limits, struct limits_member *newcomer)
{
	LOCK(limits);
	size_t limit = limits->settings.sockets;
	size_t sockets = limits->members - limits->told - total(limits, SHARE_WITHHELD);
	struct limits_client *client;
	struct limits_member *victim;

	if (!exceeds(sockets, limit))
		return true;
	client = greediest(limits, SHARE_REFUSING);
	victim = client ? client->members[LIMITS_REFUSING] : choose(limits, SHARE_CONNECTIONS, newcomer);
	if (victim)
		tell_to_go(limits, victim, OUTCOME_LIMIT_CONNECTIONS);
	return victim != NULL;
}

bool limits_may_refuse(struct limits *limits, struct limits_member *member)
{
	LOCK(limits);
	const struct limit *pending = &limits->settings.pending;
	struct limits_client *client;

	if (exceeds(shares_of(&member->client->node, SHARE_REFUSING) + 1, pending->per_client))
		return false;
	if (!exceeds(total(limits, SHARE_REFUSING) + 1, pending->total))
		return true;
	client = greediest(limits, SHARE_REFUSING);
	if (!client || client == member->client)
		return false;
	tell_to_go(limits, client->members[LIMITS_REFUSING], OUTCOME_LIMIT_REFUSED);
	return true;
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

bool limits_take_error(struct limits *limits, struct limits_member *member, uint64_t now_ms)
{
	LOCK(limits);
	struct shares_node *leaf = &member->client->node;

	for (struct shares_node *node = leaf; node; node = node->parent)
		if (!bucket_has(&node->errors, error_rate(limits, node), now_ms))
			return false;
	for (struct shares_node *node = leaf; node; node = node->parent)
		bucket_take(&node->errors, error_rate(limits, node));
	return true;
}

uint64_t limits_pending_apart(struct limits *limits, const struct in6_addr *address)
{
	const struct shares_node *node = &limits->shares.root;
	uint8_t key[SHARES_KEY_LEN];
	uint64_t apart;

	LOCK(limits);
	apart = total(limits, SHARE_PENDING);
	while ((node = shares_first(node, SHARE_PENDING))) {
		shares_key(address, node->key[SHARES_KEY_LEN - 1], key);
		if (memcmp(key, node->key, SHARES_KEY_LEN) != 0) {
			apart -= shares_of(node, SHARE_PENDING);
			break;
		}
	}
	return apart;
}

/* ----- memory ----- */

/* A prefix above a client may have twice, four times … as much as the client, and half of the total at most. */
#define PREFIX_PART_MIN 2

/*
 * A member has to have stalled for at least this long before we end it: where a prefix holds too much; where all do;
 * where either holds more than twice its limit; and, where all hold too much, in a prefix that holds much less than
 * the greediest one, which may have begun to stall only now.
 */
#define STALLED_PREFIX_MS 5000
#define STALLED_TOTAL_MS 2000
#define STALLED_GREEDY_MS 2000
#define STALLED_SMALL_MS 10000

/* Returns the memory that a prefix may hold: the limit of a client, doubled for each level above it. */
static uint64_t memory_limit(const struct limits *limits, const struct shares_node *node)
{
	const struct limits_memory *memory = &limits->settings.memory;
	uint64_t limit = memory->per_client << node->height, half = memory->total / PREFIX_PART_MIN;

	if (!node->parent)
		return memory->total;
	return node->height && half && limit > half ? half : limit;
}

/* Returns for how long a member must have stalled to be ended, if one has to go; 0: none has. */
static uint32_t stalled_enough(const struct limits *limits, const struct shares_node *node)
{
	uint64_t limit = memory_limit(limits, node), memory = shares_of(node, SHARE_MEMORY);

	if (!limit || memory <= limit)
		return 0;
	if (!node->parent)
		return memory > 2 * limit ? STALLED_MIN_MS : STALLED_TOTAL_MS;
	return memory > 2 * limit ? STALLED_GREEDY_MS : STALLED_PREFIX_MS;
}

/* Tells whether another prefix below @node than @client's holds the most, and at least twice as much as that. */
static bool others_hold_more(struct shares_node *node, const struct limits_client *client)
{
	const struct shares_node *most = shares_most(node, SHARE_MEMORY);
	uint64_t of_most, of_client;

	if (!most || most == &client->node)
		return false;
	shares_compare(most, &client->node, SHARE_MEMORY, &of_most, &of_client);
	return of_most > 2 * of_client;
}

/* Returns the next member below @node that has to be ended; NULL: none yet. */
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

/* Ends stalled members below @node until it holds no more than its limit. */
static void relieve(struct limits *limits, struct shares_node *node)
{
	struct limits_member *member;

	while ((member = next_to_end(limits, node)))
		tell_to_go(limits, member, OUTCOME_LIMIT_MEMORY);
}

void limits_hold(struct limits *limits, struct limits_member *member, uint64_t bytes,
		 uint32_t stalled_ms)
{
	LOCK(limits);
	if (member->reason == OUTCOME_NONE) {
		struct shares_node *node = &member->client->node;

		set_memory(limits, member, bytes, stalled_ms);
		for (; node; node = node->parent)
			relieve(limits, node);
	}
}

/* ----- counts ----- */

size_t limits_members(struct limits *limits)
{
	LOCK(limits);
	return limits->members;
}

size_t limits_members_of(struct limits *limits, const struct limits_member *member)
{
	LOCK(limits);
	return member->client->count;
}

size_t limits_clients(struct limits *limits)
{
	LOCK(limits);
	return HASH_COUNT(limits->clients);
}

uint64_t limits_memory(struct limits *limits)
{
	LOCK(limits);
	return total(limits, SHARE_MEMORY);
}
