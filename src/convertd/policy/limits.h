/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * limits.h - how much of the converter one client prefix, and all of them, may take (no I/O)
 *
 * A client here is all addresses of one prefix. What sessions, and SYNs that are withheld, are to this file
 * is a struct limits_member. Where there are too many, one of whoever has most has to make room: see
 * limits.c. Nothing is looked at but counters and times that are handed in. All threads may use one
 * struct limits at once; a member is its owner's, one thread's.
 */
#ifndef CONVERTD_LIMITS_H
#define CONVERTD_LIMITS_H

#include "common/prefix.h"
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

/* Bytes of kernel memory; a client's share, and what all may have. 0 in total: no limit. */
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
	LIMITS_WAITING,  /* the same, and it waits for its client's bytes */
	LIMITS_WITHHELD, /* the same, a SYN that is withheld, or let go and not accepted yet */
	LIMITS_OPEN,     /* from then on */
	LIMITS_REFUSING, /* until its refusal has arrived */
	LIMITS_CLASS_COUNT
};

struct limits;
struct limits_client;
struct limits_member;

/* A thread that has members. */
struct limits_owner {
	struct limits_member *told; /* those that have been told to go, by whomever */
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
	/* From here on it is limits.c's. */
	struct limits_client *client;
	struct limits_member *prev, *next;
	struct heap_node stalled;
	uint64_t memory;     /* bytes */
	uint32_t stalled_ms;
	uint8_t class;       /* enum limits_class */
	uint8_t reason;      /* enum outcome: it has been told to go, and isn't counted any more */
};

/* Nothing is limited yet. Returns NULL without memory or a source of random numbers. */
struct limits *limits_create(void);

/* No member may be counted any more. NULL is fine. */
void limits_destroy(struct limits *limits);

/* In force for all that is asked from now on; who is whose client stays as it was counted. */
void limits_configure(struct limits *limits, const struct limits_settings *settings);

/*
 * limits_enter() - a session, or a withheld SYN, of the client at @address (IPv4 as v4-mapped) begins
 * Returns 0, or -ENOMEM and it isn't counted.
 */
int limits_enter(struct limits *limits, struct limits_member *member, const struct in6_addr *address,
		 enum limits_class class);

/* It is counted as something else from now on. */
void limits_move(struct limits *limits, struct limits_member *member, enum limits_class class);

/* Something has moved on it: it is the last of its client's to be taken for idle. */
void limits_touch(struct limits *limits, struct limits_member *member);

/* It has ended. */
void limits_leave(struct limits *limits, struct limits_member *member, uint64_t now_ms);

/*
 * limits_admit() - may this pending member go on with its request?
 * It is counted already. Where it is one too many in all, another makes room if one has to.
 * Returns OUTCOME_NONE, or of what it is one too many.
 */
enum outcome limits_admit(struct limits *limits, struct limits_member *member);

/* limits_may_withhold() - the same of a SYN, by the share of what may be pending that these have */
bool limits_may_withhold(struct limits *limits, struct limits_member *member);

/* limits_may_stay() - the same of a client's socket, whatever it has to say */
bool limits_may_stay(struct limits *limits, struct limits_member *member);

/*
 * limits_may_refuse() - may one more session of this client wait for its refusal to arrive?
 * As many may as may be pending.
 */
bool limits_may_refuse(struct limits *limits, struct limits_member *member);

/* limits_take_error() - may an error be sent to this client now? If so it is counted as sent. */
bool limits_take_error(struct limits *limits, struct limits_member *member, uint64_t now_ms);

/*
 * limits_pending_apart() - pending requests that are not those of the greediest prefix that @address isn't in
 * That prefix is looked for as whoever has to make room is. For a client without neighbours who have
 * much, this is what is pending besides those who may be one attacker.
 */
uint64_t limits_pending_apart(struct limits *limits, const struct in6_addr *address);

/*
 * limits_hold() - so much kernel memory does this member hold, and for so long hasn't it moved
 * Where its client, a prefix above or all hold too much, one that doesn't move is told to go.
 */
void limits_hold(struct limits *limits, struct limits_member *member, uint64_t bytes,
		 uint32_t stalled_ms);

/*
 * limits_next_told() - the next of this owner's members that has been told to go; NULL if there is none
 * It is the owner's to end, by limits_leave(), or limits_move() to LIMITS_REFUSING. A pending one
 * that gets open before it is asked for here has made room, and stays.
 */
struct limits_member *limits_next_told(struct limits *limits, struct limits_owner *owner,
				       enum outcome *reason);

/* The members of all clients, those that have been told to go included; the clients that are known. */
size_t limits_members(struct limits *limits);
size_t limits_members_of(struct limits *limits, const struct limits_member *member); /* of its client */
size_t limits_clients(struct limits *limits);

/* Bytes of kernel memory that are known of. */
uint64_t limits_memory(struct limits *limits);

/* Clients without a member that are known at most. */
#define LIMITS_IDLE_MAX 8192

/* One in so many of what may be pending may be a SYN that is withheld. */
#define LIMITS_WITHHELD_PART 4

#endif
