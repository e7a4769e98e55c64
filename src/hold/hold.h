/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hold.h - withholds SYNs in a netfilter queue until their owner says what becomes of them
 *
 * Each worker has a struct hold of its own; all share the table. What a SYN asks for is its owner's business.
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

/* What becomes of a SYN. */
enum hold_verdict {
	HOLD_WITHHOLD,
	HOLD_DROP_REPEATED,
	HOLD_DROP_FOREIGN,
	HOLD_DROP_SILENT,      /* nobody has anything to say about it */
	HOLD_PASS,             /* as it is: it asks for nothing that a SYN+ACK could confirm */
	HOLD_PASS_CONFIRMED,   /* with a mark: its SYN+ACK confirms */
	HOLD_PASS_UNCONFIRMED, /* as it is, and its SYN+ACK confirms nothing */
	HOLD_PASS_PLAIN,       /* without MP_CAPABLE: an error follows its SYN+ACK at once */
	HOLD_REFUSE,           /* with a mark: the network refuses it */
	HOLD_VERDICTS
};

/* A packet that waits in the queue. */
struct hold_packet {
	uint32_t id;
	const uint8_t *bytes;
	size_t len;
	struct syn_packet syn;
	struct hold_flow flow;
};

/* What the owner is asked and told; @arg is that of hold_create(). */
struct hold_calls {
	/*
	 * What becomes of a SYN with data of which nothing is known? HOLD_WITHHOLD: hold_withhold() was called.
	 * @native: set with HOLD_REFUSE: how the network refuses it (syn_packet.h)
	 */
	enum hold_verdict (*on_syn)(void *arg, const struct hold_packet *packet, uint8_t *native);
	/* A released SYN that no connection has taken in time; the owner frees it. */
	void (*on_expired)(void *arg, struct hold_syn *syn);
	/* A SYN that wasn't withheld has got this verdict. */
	void (*on_verdict)(void *arg, enum hold_verdict verdict);
	/* So many packets passed since the queue was full; one passed that isn't a SYN that can be read. */
	void (*on_missed)(void *arg, uint32_t count);
	void (*on_unreadable)(void *arg);
};

struct hold_settings {
	bool shift_windows; /* corrects the windows of SYNs with MP_CAPABLE and data (syn_window.c) */
	bool drop_foreign;  /* drops SYNs without data */
};

/* Returns NULL without memory. SYNs pass until hold_configure() was called. */
struct hold *hold_create(struct event_base *base, struct hold_table *table, const struct hold_calls *calls, void *arg);

/* There must be no queue; forgets what was released. NULL is fine. */
void hold_destroy(struct hold *hold);

void hold_configure(struct hold *hold, const struct hold_settings *settings);

/* Takes over queue number @index of those that the main process owns. Any thread may call it before hold_start(). Returns 0 or -errno. */
int hold_open(struct hold *hold, size_t index);

/* Begins to read the queue, in the worker's thread. Returns 0 or -ENOMEM. */
int hold_start(struct hold *hold);

bool hold_is_open(const struct hold *hold);

/* Reads all that waits in the queue. */
void hold_read_all(struct hold *hold);

/* Sends the verdicts and gives up the queue; the owner has released all SYNs before. */
void hold_close(struct hold *hold);

/* Looks at a packet of the queue. @bytes may be changed. */
void hold_on_packet(struct hold *hold, uint32_t id, uint8_t *bytes, size_t len);

/* Withholds the SYN of @packet, which hold_calls' on_syn() was asked about. Returns 0, -ENOSPC or -ENOMEM. */
int hold_withhold(struct hold *hold, struct hold_syn *syn, const struct hold_packet *packet);

/*
 * hold_release() - gives the verdict on a withheld SYN
 * @keep: its connection may take @syn from now on, by any worker. Returns false if nobody has and @keep is false: then @syn is the
 * caller's. Else it isn't any more.
 */
bool hold_release(struct hold *hold, struct hold_syn *syn, enum hold_verdict verdict, bool keep, uint64_t now_ms);

/* Has on_expired() called for released SYNs that nobody has taken, all workers': those of @before_ms or earlier. */
void hold_expire(struct hold *hold, uint64_t before_ms);

/* How long the connection of a released SYN is waited for, in ms: without its data it takes a round trip more, and may lose a packet. */
#define HOLD_EXPECT_MS 5000

#endif
