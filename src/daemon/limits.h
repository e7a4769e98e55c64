/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * limits.h - limits how much of the converter one client prefix, and all of them, may take (no I/O)
 *
 * Here a client is all addresses of one prefix, and a member (struct limits_member) is a session or a withheld SYN.
 * If there are too many members, the client with the most has to end one: limits.c has the theory. The only inputs
 * are counters and times from the caller. All threads may use one struct limits at once; a member belongs to its
 * owner, which is one thread.
 */
#ifndef DAEMON_LIMITS_H
#define DAEMON_LIMITS_H

#include "common/sockaddr.h"
#include "daemon/heap.h"
#include "daemon/outcome.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A limit; 0: none. */
struct limit {
	unsigned per_client;
	unsigned total;
};

/* Bytes of kernel memory that one client and all of them may hold; 0: no limit. */
struct limits_memory {
	uint64_t per_client;
	uint64_t total;
};

struct limits_settings {
	struct limit pending;
	struct limit connections;
	struct limit errors;           /* per second */
	struct limits_memory memory;
	unsigned prefix_v4, prefix_v6; /* length of the prefix that makes a client */
	size_t sockets;                /* the most sockets of all clients; 0: no limit */
	bool keeps_open;               /* no member of LIMITS_OPEN or LIMITS_PENDING makes room for a newcomer */
};

/* How a member is counted. */
enum limits_class {
	LIMITS_PENDING,  /* until the server has answered and the client knows */
	LIMITS_WAITING,  /* pending, and it waits for its client's bytes */
	LIMITS_WITHHELD, /* pending: a SYN that is withheld, or released and not accepted yet */
	LIMITS_REFUSED,  /* refused before its client has proved its address: counts as pending, and not as a connection */
	LIMITS_OPEN,     /* the server has answered and the client knows */
	LIMITS_REFUSING, /* until the refusal has reached its client */
	LIMITS_CLASS_COUNT
};

struct limits;
struct limits_client;
struct limits_member;

/* The owner of members: a thread. */
struct limits_owner {
	struct limits_member *evicted; /* its members that it has to end */
	/* Makes that thread call limits_next_evicted() soon. Any thread may call this, with a lock held. */
	void (*wake)(struct limits_owner *owner);
};

/* The kind of object that a member is part of. */
struct limits_member_kind {
	/* Tells whether the owner may still end it. The owner's thread calls this with a lock held; NULL: always. */
	bool (*claim)(struct limits_member *member);
	/* Ends a member that limits_next_evicted() has returned. The owner calls this, limits.c doesn't. */
	void (*make_room)(struct limits_member *member, enum outcome reason);
};

/* Embedded in each object that is counted. All but the first two members are zero before limits_enter(). */
struct limits_member {
	struct limits_owner *owner;
	const struct limits_member_kind *kind; /* NULL: the owner can always end it */
	/* The following is private to limits.c. */
	struct limits_client *client;
	struct limits_member *prev, *next;
	struct heap_node stalled;
	uint64_t memory;     /* bytes */
	uint32_t stalled_ms;
	uint8_t class;       /* enum limits_class */
	uint8_t reason;      /* enum outcome: why it is evicted, and no longer counted; OUTCOME_NONE: it isn't */
};

/* Makes limits that limit nothing yet. Returns NULL without memory or a source of random numbers. */
struct limits *limits_create(void);

/* Frees the limits, when no member is counted any more. NULL is fine. */
void limits_destroy(struct limits *limits);

/* Puts settings in force for all later calls. Members stay with the clients that they were counted for. */
void limits_configure(struct limits *limits, const struct limits_settings *settings);

/*
 * limits_enter() - count a member, a session or a withheld SYN, of the client at @address (IPv4 as v4-mapped)
 * Returns 0, or -ENOMEM without counting it.
 */
int limits_enter(struct limits *limits, struct limits_member *member, const struct in6_addr *address,
		 enum limits_class class);

/* Counts a member as another class from now on. */
void limits_move(struct limits *limits, struct limits_member *member, enum limits_class class);

/* Notes that bytes have moved on a member, so that all other members of its client are taken for idle before it. */
void limits_touch(struct limits *limits, struct limits_member *member);

/* Stops counting a member, which has ended or is given back. */
void limits_leave(struct limits *limits, struct limits_member *member, uint64_t now_ms);

/*
 * limits_admit() - decide whether a pending member, which is counted already, may go on with its request
 * If there is one too many in all, another member has to make room, or this one is refused. Returns OUTCOME_NONE, or
 * the limit that it exceeds.
 */
enum outcome limits_admit(struct limits *limits, struct limits_member *member);

/* limits_may_withhold() - likewise for a SYN: of the pending requests, one in LIMITS_WITHHELD_PART may be a withheld SYN */
bool limits_may_withhold(struct limits *limits, struct limits_member *member);

/* limits_may_stay() - likewise for a client's socket, before its request is known */
bool limits_may_stay(struct limits *limits, struct limits_member *member);

/*
 * limits_may_refuse() - tell whether one more session of this client may wait until its refusal has arrived
 * As many sessions may as may be pending.
 */
bool limits_may_refuse(struct limits *limits, struct limits_member *member);

/* Tells whether an error may be sent to this client now, and counts it if so. */
bool limits_take_error(struct limits *limits, struct limits_member *member, uint64_t now_ms);

/*
 * limits_pending_of_others() - count the pending requests outside the greediest prefix that doesn't contain @address
 * That prefix is found in the same way as the client that has to make room. If the client's neighbours have few
 * requests, this leaves out the requests of one possible attacker.
 */
uint64_t limits_pending_of_others(struct limits *limits, const struct in6_addr *address);

/*
 * limits_note_memory() - note how much kernel memory a member holds, and for how long its bytes haven't moved
 * If its client, a prefix above it, or all clients hold too much, this evicts a member whose bytes don't move.
 */
void limits_note_memory(struct limits *limits, struct limits_member *member, uint64_t bytes,
		 uint32_t stalled_ms);

/*
 * limits_next_evicted() - return the next of this owner's members that it has to end; NULL if there is none
 * The owner ends it by limits_leave(), or by limits_move() to LIMITS_REFUSING. If a pending member became open before
 * this call, it has made room that way, and stays.
 */
struct limits_member *limits_next_evicted(struct limits *limits, struct limits_owner *owner, enum outcome *reason);

/* The number of members, including evicted ones; the number of its client's; the number of known clients. */
size_t limits_members(struct limits *limits);
size_t limits_members_of(struct limits *limits, const struct limits_member *member);
size_t limits_clients(struct limits *limits);

/* The bytes of kernel memory of all members, as last noted by limits_note_memory(). */
uint64_t limits_memory(struct limits *limits);

/* The most clients without a member that are remembered. */
#define LIMITS_IDLE_MAX 8192

/* The part of the pending requests that may be withheld SYNs: one in this many. */
#define LIMITS_WITHHELD_PART 4

#endif
