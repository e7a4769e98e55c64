/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hold.h - withholds SYNs in a netfilter queue until their owner gives a verdict on them
 *
 * Each worker has a struct hold of its own; all share the table. The owner of a SYN understands its request; this
 * folder doesn't.
 */
#ifndef HOLD_HOLD_H
#define HOLD_HOLD_H

#include "hold/hold_table.h"
#include "hold/syn_packet.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_base;
struct hold;
struct metrics;

/* A verdict on a SYN. */
enum hold_verdict {
	HOLD_WITHHOLD,
	HOLD_DROP_REPEATED,
	HOLD_DROP_FOREIGN,
	HOLD_DROP_UNANSWERED,  /* dropped for good: nobody answers for it */
	HOLD_PASS,             /* it asks for nothing that a SYN+ACK could confirm; one with data gets the mark */
	HOLD_PASS_CONFIRMED,   /* with a mark, so that its SYN+ACK confirms */
	HOLD_PASS_UNCONFIRMED, /* unchanged, so that its SYN+ACK confirms nothing */
	HOLD_PASS_TCP,         /* without MP_CAPABLE: an error follows its SYN+ACK at once */
	HOLD_REFUSE,           /* with a mark for the rules, which refuse it */
	HOLD_VERDICTS
};

/* A packet that waits in the queue. */
struct hold_packet {
	uint32_t id;
	const uint8_t *bytes;
	size_t len;
	struct syn_packet syn;
	struct hold_flow flow;
	unsigned in, out; /* indexes of the devices at which it arrived and by which it is to leave; 0: none yet */
};

/* Calls to the owner; @arg is that of hold_create(). */
struct hold_calls {
	/*
	 * Returns the verdict on a new SYN with data (without_data: on any) that isn't a join; HOLD_WITHHOLD only after hold_withhold().
	 * @native: set with HOLD_REFUSE: how the network refuses the SYN (syn_packet.h)
	 */
	enum hold_verdict (*on_syn)(void *arg, const struct hold_packet *packet, uint8_t *native);
	/* Hands back a released SYN that no connection has taken in time; the owner frees it. */
	void (*on_expired)(void *arg, struct hold_syn *syn);
};

/* Returns NULL without memory. All SYNs pass until hold_configure(). @metrics: counts the SYNs that aren't withheld */
struct hold *hold_create(struct event_base *base, struct hold_table *table, struct metrics *metrics, const struct hold_calls *calls,
			 void *arg);

/* Frees @hold, which must have no queue any more, and hands all workers' released SYNs to on_expired(). NULL is fine. */
void hold_destroy(struct hold *hold);

/*
 * @drop_foreign: drop SYNs without data
 * @without_data: withhold SYNs without data, too, and correct no windows (syn_packet.h), as a gateway doesn't change SYNs that it routes
 */
void hold_configure(struct hold *hold, bool drop_foreign, bool without_data);

/*
 * Takes over queue number @index of those that the main process owns. Any thread may call it before hold_start().
 * Returns 0 or -errno.
 */
int hold_open(struct hold *hold, size_t index);

/* Begins to read the queue, in the worker's thread. Returns 0 or -ENOMEM. */
int hold_start(struct hold *hold);

bool hold_is_open(const struct hold *hold);

/* Reads all packets that wait in the queue. */
void hold_read_all(struct hold *hold);

/* Sends the verdicts and gives up the queue; the owner has released all SYNs before. */
void hold_close(struct hold *hold);

/* Withholds the SYN of @packet, which is that of @syn->flow; call it from on_syn(). Returns 0, -ENOSPC or -ENOMEM. */
int hold_withhold(struct hold *hold, struct hold_syn *syn, const struct hold_packet *packet);

/*
 * hold_release() - give the verdict on a withheld SYN
 * @keep: from now on @syn isn't the caller's: its connection, in any worker, may take it. Otherwise @syn is the caller's.
 */
void hold_release(struct hold *hold, struct hold_syn *syn, enum hold_verdict verdict, bool keep, uint64_t now_ms);

/*
 * How long a released SYN waits for its connection, in ms: if the kernel didn't take the SYN's data, the connection
 * takes one more round trip, and may lose a packet.
 */
#define HOLD_EXPECT_MS 5000

#endif
