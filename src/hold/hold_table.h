/* SPDX-License-Identifier: BSD-3-Clause */
/* hold_table.h - the SYNs that are withheld, and released ones whose connections haven't been accepted yet */
#ifndef HOLD_HOLD_TABLE_H
#define HOLD_HOLD_TABLE_H

#include "hold/syn_packet.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

/* SYNs in the table at most, and bytes of their packets. */
#define HOLD_SYNS_MAX 32768
#define HOLD_BYTES_MAX (32 * 1024 * 1024)

/* A connection attempt: another initial sequence number is another attempt, though its addresses are the same. */
struct hold_flow {
	struct syn_packet_flow addresses;
	uint32_t isn; /* host byte order */
};

/* By what the owner of a SYN finds it again when its client repeats the attempt by a SYN of another port. */
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

	/* hold.c's and the table's: */
	uint32_t packet_id; /* the queue's number of the packet */
	uint8_t *packet;    /* NULL once it was released */
	size_t packet_len;  /* bytes */
	uint64_t released_ms;
	bool withheld;      /* the packet is still in the queue */
	bool taken;         /* it is no longer in the table; guarded by the table's lock */
	struct hold_syn *prev, *next; /* released ones, the oldest first; or what hold_table_take() has returned */
	UT_hash_handle hh, hh_attempt, hh_released;
};

struct hold_table;

/* Returns NULL without memory or a source of random numbers. */
struct hold_table *hold_table_create(void);

/* The table must be empty. NULL is fine. */
void hold_table_destroy(struct hold_table *table);

/* What is known of a SYN. */
enum hold_known {
	HOLD_NEW,          /* nothing */
	HOLD_IS_WITHHELD,  /* it is withheld: this is a repetition */
	HOLD_WAS_RELEASED, /* it was released before */
	HOLD_WAS_REFUSED,  /* the network has refused it */
	HOLD_WAS_DROPPED,  /* it was dropped for good: nobody has anything to say about it */
};

/*
 * The functions below may be called by all threads at once.
 *
 * hold_table_look() - has this SYN been seen before?
 * @native: set with HOLD_WAS_REFUSED: how it was refused
 */
enum hold_known hold_table_look(struct hold_table *table, const struct hold_flow *flow, uint8_t *native);

/* hold_table_note_refusal() - the network refuses a SYN that was never withheld; it will refuse repetitions, too */
void hold_table_note_refusal(struct hold_table *table, const struct hold_flow *flow, uint8_t native);

/* hold_table_add() - @syn is withheld from now on. Returns 0, -ENOSPC or -ENOMEM. */
int hold_table_add(struct hold_table *table, struct hold_syn *syn);

/* Returns the withheld SYN of this attempt, or NULL. Another owner's isn't returned: it may be freed at any moment. */
struct hold_syn *hold_table_find(struct hold_table *table, const struct hold_attempt *attempt, const void *owner);

/*
 * hold_table_release() - the packet of @syn is about to leave the queue; from now on its connection may take @syn
 * @dropped: the packet is dropped, and so are its repetitions
 */
void hold_table_release(struct hold_table *table, struct hold_syn *syn, bool dropped, uint64_t now_ms);

/*
 * hold_table_take() - takes the released SYNs of an accepted connection out of the table
 * The sequence number of an accepted connection isn't known, and somebody may have forged a SYN of the same addresses: so there may be
 * several. Returns a list by @next, the latest first, which is the caller's from now on, or NULL.
 */
struct hold_syn *hold_table_take(struct hold_table *table, const struct syn_packet_flow *addresses);

/* Takes a SYN out of the table that was released at @before_ms or earlier. Returns it, the caller's, or NULL if there is none (left). */
struct hold_syn *hold_table_expire(struct hold_table *table, uint64_t before_ms);

/* Takes @syn out of the table if it was released. Returns false where it is still withheld, or somebody has taken it. */
bool hold_table_take_back(struct hold_table *table, struct hold_syn *syn);

/* How many SYNs the table has, withheld or released; takes no lock. */
size_t hold_table_count(const struct hold_table *table);

#endif
