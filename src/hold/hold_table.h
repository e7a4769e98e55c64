/* SPDX-License-Identifier: BSD-3-Clause */
/* hold_table.h - finds withheld SYNs, and released ones whose connections haven't been accepted yet */
#ifndef HOLD_HOLD_TABLE_H
#define HOLD_HOLD_TABLE_H

#include "hold/syn_packet.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

/* The most SYNs in the table, and the most bytes of their packets. */
#define HOLD_SYNS_MAX 32768
#define HOLD_BYTES_MAX (32 * 1024 * 1024)

/* A connection attempt: another initial sequence number is another attempt, though its addresses are the same. */
struct hold_flow {
	struct syn_packet_flow addresses;
	uint32_t isn; /* host byte order */
};

/* The key by which the owner finds a SYN again when its client repeats the attempt from another port. */
struct hold_attempt {
	struct in6_addr client;
	uint64_t number; /* 0: there is none */
};

/* A SYN in the table; part of its owner's struct, which fills in the first four members. */
struct hold_syn {
	struct hold_flow flow;
	struct hold_attempt attempt;
	const void *owner; /* the worker that withholds it */
	uint8_t native;    /* how the network refuses it once it is released (syn_packet.h), or NATIVE_NONE */

	/* hold.c and the table set these. The owner may read them, and change the links of a list that it has taken: */
	uint32_t packet_id; /* the queue's number of the packet */
	uint8_t *packet;    /* NULL once it was released */
	size_t packet_len;  /* bytes */
	uint64_t released_ms;
	bool withheld;      /* the packet is still in the queue */
	bool taken;         /* it is no longer in the table; guarded by the table's lock */
	struct hold_syn *prev, *next; /* in the list of released ones, the oldest first; or in a list from hold_table_take() */
	UT_hash_handle hh, hh_attempt, hh_released;
};

struct hold_table;

/* Returns NULL without memory or a source of random numbers. */
struct hold_table *hold_table_create(void);

/* The table must be empty. NULL is fine. */
void hold_table_destroy(struct hold_table *table);

/* A SYN's state in the table. */
enum hold_known {
	HOLD_NEW,          /* nothing */
	HOLD_IS_WITHHELD,  /* it is withheld: this is a repetition */
	HOLD_IS_RELEASED,  /* it was released, and nobody has taken its connection yet */
	HOLD_WAS_RELEASED, /* it was released before, or passed */
	HOLD_WAS_REFUSED,  /* the network has refused it */
	HOLD_WAS_DROPPED,  /* it was dropped for good: nobody answers for it */
};

/*
 * All threads may call the functions below at once.
 *
 * hold_table_look() - look up a SYN that has come
 * @now_ms: a released SYN waits for its connection anew from this time on
 * @native: set with HOLD_WAS_REFUSED: how it was refused
 */
enum hold_known hold_table_look(struct hold_table *table, const struct hold_flow *flow, uint64_t now_ms, uint8_t *native);

/* Forgets a SYN that isn't in the table: a repetition is new. */
void hold_table_forget(struct hold_table *table, const struct hold_flow *flow);

/* Notes for repetitions how the network refuses a SYN that was never withheld; NATIVE_NONE: it passes. */
void hold_table_note(struct hold_table *table, const struct hold_flow *flow, uint8_t native);

/* Adds @syn, which is withheld from now on. Returns 0, -ENOSPC or -ENOMEM. */
int hold_table_add(struct hold_table *table, struct hold_syn *syn);

/* Returns the withheld SYN of this attempt, or NULL. It doesn't return another owner's, which may be freed at any moment. */
struct hold_syn *hold_table_find(struct hold_table *table, const struct hold_attempt *attempt, const void *owner);

/*
 * hold_table_release() - note that the packet of @syn is about to leave the queue
 * @keep: from now on its connection may take @syn; otherwise @syn leaves the table here and now, and is the caller's
 * @dropped: the packet is dropped, and so are its repetitions
 */
void hold_table_release(struct hold_table *table, struct hold_syn *syn, bool keep, bool dropped, uint64_t now_ms);

/*
 * hold_table_take() - take the released SYNs of an accepted connection out of the table
 * We don't know the sequence number of an accepted connection, and somebody may have forged a SYN with the same
 * addresses: so there may be several. Returns a list by @next, the latest first, which the caller owns from now on,
 * or NULL.
 */
struct hold_syn *hold_table_take(struct hold_table *table, const struct syn_packet_flow *addresses);

/*
 * Takes a SYN that was released at @before_ms or earlier out of the table. Returns it, which the caller owns then, or
 * NULL if there is none.
 */
struct hold_syn *hold_table_expire(struct hold_table *table, uint64_t before_ms);

/* Takes @syn out of the table if it was released. Returns false if it is still withheld, or somebody has taken it. */
bool hold_table_take_back(struct hold_table *table, struct hold_syn *syn);

/* Returns the number of SYNs in the table, withheld or released; takes no lock. */
size_t hold_table_count(const struct hold_table *table);

#endif
