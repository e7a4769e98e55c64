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
 * Which member of that client goes? One that is refused already; else the oldest that waits for its client's bytes.
 * Else, for room among pending ones, the oldest of these, as its server is the least likely to answer; for room among
 * connections, first the open one whose bytes haven't moved for longest. A request usually comes in the SYN and never
 * waits. So where more than half of the pending members wait, one of these goes. An open connection makes room only for
 * a prefix that has less than half as much: among equals, a client that is served stays served. With keeps_open, members
 * of LIMITS_OPEN and LIMITS_PENDING make no room; without others the newcomer is refused: a gateway routes it.
 *
 * Where all have equally much, the one that has had it for longest makes room. So a flood from more prefixes than
 * there is room for pushes itself out, and leaves a newcomer the time of one round.
 *
 * A member may belong to another thread. We evict it: from then on it isn't counted, and we wake its owner, which
 * ends it. It may also have ended by itself meanwhile.
 *
 * We know a client as long as it has a member, and afterwards until its whole burst of errors is allowed again. There are no
 * more clients with a member than members. Of those without, we remember LIMITS_IDLE_MAX, and then forget the one
 * that has left first. So a flood from forged addresses can't make the table grow. It can make us forget clients; for
 * that case prefixes, and all clients together, have bursts, too.
 *
 * One lock guards everything: a session takes it some eight times in its life, for two microseconds in all.
 */
#include "config.h"

#include "daemon/limits.h"

#include "daemon/shares.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <utlist.h>

struct limits_client {
	struct shares_node node; /* first */
	struct limits_member *members[LIMITS_CLASS_COUNT]; /* by class; the first is the first to go */
	struct heap stalled;     /* members with memory that doesn't move */
	size_t count;            /* the number of its members, including evicted ones */
	bool is_idle;            /* it is in limits->idle */
	struct limits_client *prev, *next; /* in limits->idle */
};

struct limits {
	pthread_mutex_t lock; /* guards all members below, clients and their members included */
	struct limits_settings settings;
	struct shares shares; /* its leaves are the clients */
	struct limits_client *idle; /* clients without a member, in the order in which they lost their last one */
	size_t idle_count;
	size_t members, evicted; /* the number of members, evicted ones included; the number of evicted ones */
};

/* Returns all clients' use of a share. */
static uint64_t total(const struct limits *limits, enum share share)
{
	return shares_of(&limits->shares.root, share);
}

/* Returns the greediest client, or NULL if none uses anything. */
static struct limits_client *greediest(struct limits *limits, enum share share)
{
	return (struct limits_client *)shares_most(&limits->shares.root, share);
}

static void unlock(pthread_mutex_t **held)
{
	pthread_mutex_unlock(*held);
}

/* Holds the lock from here to the end of the function. */
#define LOCK(limits)                                                          \
	pthread_mutex_t *held __attribute__((cleanup(unlock), unused)) = &(limits)->lock; \
	pthread_mutex_lock(held)

#define SHARE_BIT(share) (1U << (share))
#define PENDING_BITS (SHARE_BIT(SHARE_PENDING) | SHARE_BIT(SHARE_CONNECTIONS))

/* The class of a member that isn't counted. */
#define UNCOUNTED LIMITS_CLASS_COUNT

/* The shares in which a member of each class counts. */
static const unsigned class_shares[UNCOUNTED + 1] = {
	[LIMITS_PENDING] = PENDING_BITS,
	[LIMITS_WAITING] = PENDING_BITS | SHARE_BIT(SHARE_WAITING),
	[LIMITS_WITHHELD] = PENDING_BITS | SHARE_BIT(SHARE_WITHHELD),
	[LIMITS_REFUSED] = SHARE_BIT(SHARE_PENDING) | SHARE_BIT(SHARE_REFUSED),
	[LIMITS_OPEN] = SHARE_BIT(SHARE_CONNECTIONS),
	[LIMITS_REFUSING] = SHARE_BIT(SHARE_REFUSING),
};

struct limits *limits_create(void)
{
	struct limits *limits = sodium_init() < 0 ? NULL : calloc(1, sizeof(*limits));

	if (!limits)
		return NULL;
	pthread_mutex_init(&limits->lock, NULL);
	shares_init(&limits->shares);
	return limits;
}

void limits_destroy(struct limits *limits)
{
	if (!limits)
		return;
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

/* Counts a member in class @to instead of @from, behind the others of that class. */
static void recount(struct limits *limits, struct limits_member *member, unsigned from, unsigned to)
{
	struct limits_client *client = member->client;

	if (from != UNCOUNTED)
		DL_DELETE(client->members[from], member);
	for (int share = 0; share < SHARE_COUNT; share++)
		if ((class_shares[from] ^ class_shares[to]) & SHARE_BIT(share))
			shares_add(&limits->shares, &client->node, (enum share)share,
				   class_shares[to] & SHARE_BIT(share) ? 1 : -1);
	if (to != UNCOUNTED)
		DL_APPEND(client->members[to], member);
	else
		set_memory(limits, member, 0, 0);
}

/* Makes an evicted member an uncounted one. */
static void undo_eviction(struct limits *limits, struct limits_member *member)
{
	/* limits_next_evicted() may have removed it. */
	if (member->prev)
		DL_DELETE(member->owner->evicted, member);
	member->prev = member->next = NULL;
	member->reason = OUTCOME_NONE;
	limits->evicted--;
}

static void evict(struct limits *limits, struct limits_member *member, enum outcome reason)
{
	struct limits_owner *owner = member->owner;

	recount(limits, member, member->class, UNCOUNTED);
	member->reason = (uint8_t)reason;
	limits->evicted++;
	DL_APPEND(owner->evicted, member);
	if (owner->evicted == member)
		owner->wake(owner);
}

int limits_enter(struct limits *limits, struct limits_member *member, const struct in6_addr *address,
		 enum limits_class class)
{
	bool v4 = IN6_IS_ADDR_V4MAPPED(address);
	struct limits_client *client;

	LOCK(limits);
	client = (struct limits_client *)shares_leaf(
		&limits->shares, address,
		(uint8_t)(v4 ? 96 + limits->settings.prefix_v4 : limits->settings.prefix_v6), sizeof(*client));
	member->client = client;
	if (!client)
		return -ENOMEM;
	if (client->is_idle) {
		DL_DELETE(limits->idle, client);
		limits->idle_count--;
		client->is_idle = false;
	}
	client->count++;
	limits->members++;
	member->class = (uint8_t)class;
	recount(limits, member, UNCOUNTED, class);
	return 0;
}

void limits_move(struct limits *limits, struct limits_member *member, enum limits_class class)
{
	LOCK(limits);
	if (member->reason == OUTCOME_NONE) {
		recount(limits, member, member->class, class);
	} else if (class == LIMITS_REFUSING ||
		   (class == LIMITS_OPEN && member->reason == OUTCOME_LIMIT_PENDING)) {
		undo_eviction(limits, member);
		recount(limits, member, UNCOUNTED, class);
	}
	member->class = (uint8_t)class;
}

void limits_touch(struct limits *limits, struct limits_member *member)
{
	LOCK(limits);
	if (member->reason == OUTCOME_NONE)
		recount(limits, member, member->class, member->class);
}

/* Remembers a client without members as long as it owes errors. */
static void set_idle(struct limits *limits, struct limits_client *client, uint64_t now_ms)
{
	if (shares_owes_nothing(&client->node, now_ms)) {
		shares_forget(&limits->shares, &client->node);
		return;
	}
	DL_APPEND(limits->idle, client);
	client->is_idle = true;
	if (++limits->idle_count > LIMITS_IDLE_MAX) {
		client = limits->idle;
		DL_DELETE(limits->idle, client);
		limits->idle_count--;
		shares_forget(&limits->shares, &client->node);
	}
}

void limits_leave(struct limits *limits, struct limits_member *member, uint64_t now_ms)
{
	struct limits_client *client = member->client;

	LOCK(limits);
	if (member->reason != OUTCOME_NONE)
		undo_eviction(limits, member);
	else
		recount(limits, member, member->class, UNCOUNTED);
	member->client = NULL;
	limits->members--;
	if (!--client->count)
		set_idle(limits, client, now_ms);
}

struct limits_member *limits_next_evicted(struct limits *limits, struct limits_owner *owner, enum outcome *reason)
{
	struct limits_member *member;

	LOCK(limits);
	do {
		member = owner->evicted;
		if (!member)
			break;
		DL_DELETE(owner->evicted, member);
		member->prev = member->next = NULL;
		*reason = (enum outcome)member->reason;
	} while (member->kind && member->kind->claim && !member->kind->claim(member));
	return member;
}

/* ----- which members make room ----- */

/* The most members that make room for one newcomer. If a reload has lowered a limit by more, the newcomer is refused as well. */
#define MAKE_ROOM_MAX 16

/* The classes of members that make room, by the share that is exceeded; the first class of which the client has members. */
static const struct {
	unsigned count;
	uint8_t class[LIMITS_CLASS_COUNT];
} victims[SHARE_COUNT] = {
	[SHARE_WAITING] = { 1, { LIMITS_WAITING } },
	[SHARE_REFUSED] = { 1, { LIMITS_REFUSED } },
	[SHARE_PENDING] = { 3, { LIMITS_WAITING, LIMITS_PENDING, LIMITS_WITHHELD } },
	[SHARE_WITHHELD] = { 1, { LIMITS_WITHHELD } },
	[SHARE_CONNECTIONS] = { 4, { LIMITS_WAITING, LIMITS_OPEN, LIMITS_PENDING, LIMITS_WITHHELD } },
};

/* Chooses a member of @client that has to go for @newcomer; NULL: none has to. */
static struct limits_member *choose_of(const struct limits *limits, const struct limits_client *client, enum share share,
				       const struct limits_member *newcomer)
{
	for (unsigned i = 0; i < victims[share].count; i++) {
		enum limits_class class = (enum limits_class)victims[share].class[i];
		struct limits_member *first = client->members[class];

		/* Within its own client, a newcomer replaces only a member that hasn't asked for anything yet, or is refused. */
		if (client == newcomer->client && class != LIMITS_WAITING && class != LIMITS_REFUSED)
			return NULL;
		if (limits->settings.keeps_open && (class == LIMITS_OPEN || class == LIMITS_PENDING))
			continue;
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

static struct limits_member *choose_evicted(struct limits *limits, enum share share,
					    const struct limits_member *newcomer)
{
	struct limits_client *client;

	if (share == SHARE_PENDING && total(limits, SHARE_REFUSED))
		share = SHARE_REFUSED;
	else if (share == SHARE_PENDING && total(limits, SHARE_WAITING) > total(limits, SHARE_PENDING) / 2)
		share = SHARE_WAITING;
	client = greediest(limits, share);
	if (!client || !is_greedier(client, share, newcomer))
		return NULL;
	return choose_of(limits, client, share, newcomer);
}

/* Returns OUTCOME_NONE if there is room for the newcomer, which is counted already, else @reason. */
static enum outcome make_room(struct limits *limits, enum share share, uint64_t limit,
			      const struct limits_member *newcomer, enum outcome reason)
{
	uint64_t excess = total(limits, share) > limit ? total(limits, share) - limit : 0;

	if (!limit || !excess)
		return OUTCOME_NONE;
	for (unsigned i = 0; i < MAKE_ROOM_MAX && excess; i++, excess--) {
		struct limits_member *victim = choose_evicted(limits, share, newcomer);

		if (!victim)
			return reason;
		evict(limits, victim, reason);
	}
	return excess ? reason : OUTCOME_NONE;
}

static bool exceeds(uint64_t value, uint64_t limit)
{
	return limit && value > limit;
}

enum outcome limits_admit(struct limits *limits, struct limits_member *member)
{
	LOCK(limits);
	const struct limits_settings *settings = &limits->settings;
	const struct shares_node *node = &member->client->node;
	enum outcome reason = (enum outcome)member->reason;

	/* A member that is evicted itself is refused meanwhile. */
	if (reason != OUTCOME_NONE)
		return reason;
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
	size_t sockets = limits->members - limits->evicted - total(limits, SHARE_WITHHELD);
	struct limits_client *client;
	struct limits_member *victim;

	if (!exceeds(sockets, limits->settings.sockets))
		return true;
	client = greediest(limits, SHARE_REFUSING);
	victim = client ? client->members[LIMITS_REFUSING] :
		 choose_evicted(limits, total(limits, SHARE_REFUSED) ? SHARE_REFUSED : SHARE_CONNECTIONS, newcomer);
	if (victim)
		evict(limits, victim, OUTCOME_LIMIT_CONNECTIONS);
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
	evict(limits, client->members[LIMITS_REFUSING], OUTCOME_LIMIT_REFUSED);
	return true;
}

/* ----- errors, and memory ----- */

bool limits_take_error(struct limits *limits, struct limits_member *member, uint64_t now_ms)
{
	LOCK(limits);
	const struct limit *errors = &limits->settings.errors;

	return shares_take_error(&member->client->node, errors->per_client, errors->total, now_ms);
}

uint64_t limits_pending_of_others(struct limits *limits, const struct in6_addr *address)
{
	LOCK(limits);
	return shares_apart(&limits->shares, address, SHARE_PENDING);
}

/* Ends stalled members below @node until it holds no more than its limit. */
static void relieve(struct limits *limits, struct shares_node *node)
{
	const struct limits_memory *memory = &limits->settings.memory;
	struct limits_client *client;
	uint32_t enough_ms;

	while ((client = (struct limits_client *)shares_stalled(node, memory->per_client, memory->total, &enough_ms))) {
		struct limits_member *member = (struct limits_member *)((char *)client->stalled.first -
									offsetof(struct limits_member, stalled));

		if (member->stalled_ms < enough_ms)
			return;
		evict(limits, member, OUTCOME_LIMIT_MEMORY);
	}
}

void limits_note_memory(struct limits *limits, struct limits_member *member, uint64_t bytes,
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
	return limits->shares.leaves;
}

uint64_t limits_memory(struct limits *limits)
{
	LOCK(limits);
	return total(limits, SHARE_MEMORY);
}
