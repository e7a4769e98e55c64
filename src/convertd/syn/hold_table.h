/* SPDX-License-Identifier: BSD-3-Clause */
/* hold_table.h - the SYNs that are withheld, and those let go whose connection isn't here yet */
#ifndef CONVERTD_HOLD_TABLE_H
#define CONVERTD_HOLD_TABLE_H

#include "common/sockaddr.h"
#include "convertd/net/downstream.h"
#include "convertd/policy/judgement.h"
#include "convertd/syn/syn_packet.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

/* SYNs in the table at most, and bytes of their packets. */
#define HOLD_TABLE_MAX 32768
#define HOLD_TABLE_BYTES_MAX (32 * 1024 * 1024)

/* A SYN that asks for a server, and what has become of that. */
struct held_syn {
	struct syn_packet_flow flow;
	uint32_t isn;
	uint32_t packet_id;  /* of the queue */
	uint8_t *packet;     /* NULL once it was let go */
	size_t packet_len;   /* bytes */
	uint64_t came_us, let_go_ms;
	struct limits_member member; /* it counts as one pending session of its client */

	struct judgement_grant grant; /* the server's family is AF_UNSPEC: none, it is to be refused */
	bool unproven;                   /* it counts as that, too (demand.h) */
	bool waiting;                    /* still withheld */
	bool taken;                      /* no longer in the table; with its lock */
	int fd;                          /* the server's socket; -1: it can't be reached, because: */
	struct downstream_error refusal;

	struct held_syn *prev, *next; /* the table's, once it was let go */
	UT_hash_handle hh;
};

struct hold_table;

/* Resets the server's socket, if there is one. */
void held_syn_close(struct held_syn *held);

/* Frees the packet, and resets the server's socket; the rest is its owner's. */
void held_syn_fini(struct held_syn *held);

/* Returns NULL without memory or a source of random numbers. */
struct hold_table *hold_table_create(void);

/* Must be empty. NULL is fine. */
void hold_table_destroy(struct hold_table *table);

/* What is known of a SYN. */
enum hold_known {
	HOLD_NEW,    /* nothing */
	HOLD_HELD,   /* one of this flow is withheld: this is the same again, or another in its place */
	HOLD_LET_GO, /* it was let go before */
};

/*
 * hold_table_look(), _add(), _let_go(), _take(), _expire(), _take_back() - all threads may call them at once
 *
 * _add():    @held, filled by its owner, is withheld from now on. Returns 0, -ENOSPC or -ENOMEM.
 * _let_go(): its packet is about to be let go; from now on it may be taken.
 * _take():   that of a connection that has been accepted leaves the table; NULL if there is none.
 * _expire(): one that was let go at @before_ms or earlier, and wasn't taken, leaves the table.
 * Who gets one from these two owns it.
 * _take_back(): that one leaves the table if it was let go; false: it is withheld, or somebody has taken it.
 */
enum hold_known hold_table_look(struct hold_table *table, const struct syn_packet_flow *flow,
				uint32_t isn);
int hold_table_add(struct hold_table *table, struct held_syn *held);
void hold_table_let_go(struct hold_table *table, struct held_syn *held, uint64_t now_ms);
struct held_syn *hold_table_take(struct hold_table *table, const struct syn_packet_flow *flow);
struct held_syn *hold_table_expire(struct hold_table *table, uint64_t before_ms);
bool hold_table_take_back(struct hold_table *table, struct held_syn *held);

/* How many it has, withheld or let go. Costs no lock. */
size_t hold_table_count(const struct hold_table *table);

#endif
