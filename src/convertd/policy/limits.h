/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * limits.h - how much of the converter one client prefix, and all of them, may take (no I/O)
 *
 * A client here is all addresses of one prefix. A session, or a SYN that is withheld, is a struct limits_member here.
 * Where there are too many, a member of the client that has most has to make room: limits.c has the theory. The
 * only inputs are counters and times that the caller hands in. All threads may use one struct limits at once; a
 * member belongs to its owner, which is one thread.
 */
#ifndef CONVERTD_LIMITS_H
#define CONVERTD_LIMITS_H

#include "common/sockaddr.h"
#include "convertd/base/heap.h"
#include "convertd/policy/outcome.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A limit; 0 stands for none in each. */
struct limit {
	unsigned per_client;
	unsigned total;
};

/* Bytes of kernel memory that one client and all of them may hold. 0 in total: no limit. */
struct limits_memory {
	uint64_t per_client;
	uint64_t total;
};

struct limits_settings {
	struct limit pending;
	struct limit connections;
	struct limit errors;           /* a second */
	struct limits_memory memory;
	unsigned prefix_v4, prefix_v6; /* bits of an address that make a client */
	size_t sockets;                /* clients' sockets that there may be in all; 0: no limit */
};

/* What a member is counted as. */
enum limits_class {
	LIMITS_PENDING,  /* until the server has answered and the client has been told */
	LIMITS_WAITING,  /* pending, and it waits for its client's bytes */
	LIMITS_WITHHELD, /* pending, and it is a SYN that is withheld, or released and not accepted yet */
	LIMITS_OPEN,     /* the server has answered and the client has been told */
	LIMITS_REFUSING, /* until its client has the refusal */
	LIMITS_CLASS_COUNT
};

struct limits;
struct limits_client;
struct limits_member;

/* The owner of members: a thread. */
struct limits_owner {
	struct limits_member *told; /* its members that have been told to go */
	/* Has that thread call limits_next_told() soon. Called by any thread, with a lock held. */
	void (*wake)(struct limits_owner *owner);
};

/* What a member is part of. */
struct limits_member_kind {
	/* May the owner still end it? Called with a lock held, by the owner's thread; NULL: always. */
	bool (*claim)(struct limits_member *member);
	/* Ends a member that limits_next_told() has returned. Called by the owner; limits.c doesn't. */
	void (*make_room)(struct limits_member *member, enum outcome reason);
};

/* Part of what is counted. Zeros, but for the first two, before limits_enter(). */
struct limits_member {
	struct limits_owner *owner;
	const struct limits_member_kind *kind; /* NULL: it can always be ended */
	/* What follows is private to limits.c. */
	struct limits_client *client;
	struct limits_member *prev, *next;
	struct heap_node stalled;
	uint64_t memory;     /* bytes */
	uint32_t stalled_ms;
	uint8_t class;       /* enum limits_class */
	uint8_t reason;      /* enum outcome: why it has been told to go, and isn't counted any more; or OUTCOME_NONE */
};

/* Makes limits that limit nothing yet. Returns NULL without memory or a source of random numbers. */
struct limits *limits_create(void);

/* Frees the limits, which must not count any member any more. NULL is fine. */
void limits_destroy(struct limits *limits);

/* Puts settings in force for all later calls. Members stay with the clients that they were counted for. */
void limits_configure(struct limits *limits, const struct limits_settings *settings);

/*
 * limits_enter() - counts a member: a session, or a withheld SYN, of the client at @address (IPv4 as v4-mapped)
 * Returns 0, or -ENOMEM and it isn't counted.
 */
int limits_enter(struct limits *limits, struct limits_member *member, const struct in6_addr *address,
		 enum limits_class class);

/* Counts a member as another class from now on. */
void limits_move(struct limits *limits, struct limits_member *member, enum limits_class class);

/* Something has moved on a member: it is the last of its client's members to be taken for idle. */
void limits_touch(struct limits *limits, struct limits_member *member);

/* Counts a member no more, as it has ended or is given back. */
void limits_leave(struct limits *limits, struct limits_member *member, uint64_t now_ms);

/*
 * limits_admit() - may this pending member go on with its request?
 * It is counted already. Where it is one too many in all, another member makes room if one has to.
 * Returns OUTCOME_NONE, or the limit that it exceeds.
 */
enum outcome limits_admit(struct limits *limits, struct limits_member *member);

/* limits_may_withhold() - the same for a SYN, by the part of what may be pending that may be withheld */
bool limits_may_withhold(struct limits *limits, struct limits_member *member);

/* limits_may_stay() - the same for the socket of a client, whatever its request will be */
bool limits_may_stay(struct limits *limits, struct limits_member *member);

/*
 * limits_may_refuse() - may one more session of this client wait for its refusal to arrive?
 * As many may as may be pending.
 */
bool limits_may_refuse(struct limits *limits, struct limits_member *member);

/* limits_take_error() - may an error be sent to this client now? If so it is counted as sent. */
bool limits_take_error(struct limits *limits, struct limits_member *member, uint64_t now_ms);

/*
 * limits_pending_apart() - how many requests are pending apart from those of the greediest prefix that @address isn't in
 * That prefix is found as the client that has to make room is. For a client whose neighbours have little, this is what
 * is pending besides what may be one attacker's.
 */
uint64_t limits_pending_apart(struct limits *limits, const struct in6_addr *address);

/*
 * limits_hold() - notes how much kernel memory a member holds, and for how long that hasn't moved
 * Where its client, a prefix above or all hold too much, one that doesn't move is told to go.
 */
void limits_hold(struct limits *limits, struct limits_member *member, uint64_t bytes,
		 uint32_t stalled_ms);

/*
 * limits_next_told() - the next of this owner's members that has been told to go; NULL if there is none
 * The owner ends it, by limits_leave(), or limits_move() to LIMITS_REFUSING. A pending member that became open before
 * this call has made room that way, and stays.
 */
struct limits_member *limits_next_told(struct limits *limits, struct limits_owner *owner,
				       enum outcome *reason);

/* How many members there are, those that have been told to go included; how many of its client; how many clients are known. */
size_t limits_members(struct limits *limits);
size_t limits_members_of(struct limits *limits, const struct limits_member *member); /* of its client */
size_t limits_clients(struct limits *limits);

/* Bytes of kernel memory that all members hold, as limits_hold() was told. */
uint64_t limits_memory(struct limits *limits);

/* How many clients without a member are remembered at most. */
#define LIMITS_IDLE_MAX 8192

/* One in so many of what may be pending may be a SYN that is withheld. */
#define LIMITS_WITHHELD_PART 4

#endif
