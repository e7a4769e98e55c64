/* SPDX-License-Identifier: BSD-3-Clause */
/* hold_table.h - the SYNs that are withheld, and released ones whose connections haven't been accepted yet */
#ifndef HOLD_HOLD_TABLE_H
#define HOLD_HOLD_TABLE_H

#include "common/sockaddr.h"
#include "convertd/net/downstream.h"
#include "hold/syn_packet.h"
#include "convertd/policy/judgement.h"
#include "convertd/policy/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

/* SYNs in the table at most, and bytes of their packets. */
#define WITHHELD_MAX 32768
#define WITHHELD_BYTES_MAX (32 * 1024 * 1024)

/* What a blind request has in common with those that repeat it (doc/private-tlvs.md). */
struct withheld_attempt {
	struct in6_addr client;
	uint64_t number; /* 0: there are none */
};

/* A SYN that asks for a server, and what has become of that. */
struct withheld_syn {
	struct syn_packet_flow flow;
	uint32_t isn;
	struct withheld_attempt attempt;
	uint32_t packet_id; /* the queue's number of the packet */
	uint8_t *packet;    /* NULL once it was released */
	size_t packet_len;  /* bytes */
	uint64_t came_us, released_ms;
	struct limits_member member; /* it counts as one pending session of its client */

	struct judgement_grant grant; /* the server's family is AF_UNSPEC where none is granted any more */
	bool unproven;                /* it counts as an unproven client, too (demand.h) */
	bool far;                     /* its client is known to be far (far_clients.h) */
	bool withheld;                /* the packet is still in the queue */
	bool taken;                   /* it is no longer in the table; guarded by the table's lock */
	int fd;                       /* the server's socket; -1: the server can't be reached, for this reason: */
	struct downstream_error refusal;
	bool answered;                /* the server has answered, and isn't this host */
	int registration;             /* of the socket with the worker's poller, or POLLER_NONE: as it is once the SYN was released, */
				      /* unless there is no other worker */
	uint32_t events;              /* what the poller has told since it was released */
	uint8_t native; /* once it was released: how the network refuses it (native_refusal.h), or NATIVE_NONE */

	struct withheld_syn *prev, *next; /* the table's, once it was released */
	UT_hash_handle hh, hh_attempt;
};

struct withheld_table;

/* Resets the connection to the server, if there is one. */
void withheld_syn_close(struct withheld_syn *syn);

/* Frees the packet, and resets the connection to the server; the rest is its owner's. */
void withheld_syn_fini(struct withheld_syn *syn);

/* Returns NULL without memory or a source of random numbers. */
struct withheld_table *withheld_create(void);

/* The table must be empty. NULL is fine. */
void withheld_destroy(struct withheld_table *table);

/* What is known of a SYN. */
enum withheld_known {
	WITHHELD_NEW,    /* nothing */
	WITHHELD_NOW,    /* one of this flow is withheld: this is the same again, or another in its place */
	WITHHELD_BEFORE, /* it was released before */
	WITHHELD_REFUSED, /* it was refused as the network does it */
};

/*
 * The functions below may be called by all threads at once.
 *
 * withheld_look() - has this SYN been seen before?
 * @native: set with WITHHELD_REFUSED: how it was refused
 */
enum withheld_known withheld_look(struct withheld_table *table, const struct syn_packet_flow *flow, uint32_t isn,
				  uint8_t *native);

/* withheld_note_refusal() - a SYN that was never withheld is refused as the network does it; the same again will be, too */
void withheld_note_refusal(struct withheld_table *table, const struct syn_packet_flow *flow, uint32_t isn, uint8_t native);

/* withheld_add() - @syn, filled in by its owner, is withheld from now on. Returns 0, -ENOSPC or -ENOMEM. */
int withheld_add(struct withheld_table *table, struct withheld_syn *syn);

/*
 * withheld_find() - the withheld SYN of this attempt, or NULL
 * @owner: the calling worker's, as in the SYN's member. Another worker's is not returned: it may be freed at any moment.
 */
struct withheld_syn *withheld_find(struct withheld_table *table, const struct withheld_attempt *attempt,
				   const struct limits_owner *owner);

/* withheld_release() - the packet of @syn is about to leave the queue; from now on its connection may take @syn. */
void withheld_release(struct withheld_table *table, struct withheld_syn *syn, uint64_t now_ms);

/*
 * withheld_take() - takes the released SYN of an accepted connection out of the table
 * Returns the SYN, which is the caller's from now on, or NULL if there is none.
 */
struct withheld_syn *withheld_take(struct withheld_table *table, const struct syn_packet_flow *flow);

/*
 * withheld_expire() - takes a SYN out of the table that was released at @before_ms or earlier, and that no connection took
 * Returns the SYN, which is the caller's from now on, or NULL if there is none (left).
 */
struct withheld_syn *withheld_expire(struct withheld_table *table, uint64_t before_ms);

/*
 * withheld_take_back() - takes @syn out of the table if it was released
 * Returns false where it is still withheld, or somebody has taken it.
 */
bool withheld_take_back(struct withheld_table *table, struct withheld_syn *syn);

/* withheld_count() - how many SYNs the table has, withheld or released; takes no lock */
size_t withheld_count(const struct withheld_table *table);

#endif
