/* SPDX-License-Identifier: BSD-3-Clause */
/* relay_watch.h - does anything still move on a relay? */
#ifndef CONVERTD_RELAY_WATCH_H
#define CONVERTD_RELAY_WATCH_H

#include "convertd/relay/relay.h"

#include <stdint.h>

/* Which of its limits a relay has passed. */
enum relay_watch_verdict {
	RELAY_WATCH_NONE,
	RELAY_WATCH_CLIENT_STALLED, /* the peer at RELAY_UPSTREAM takes nothing */
	RELAY_WATCH_SERVER_STALLED, /* the peer at RELAY_DOWNSTREAM takes nothing */
	RELAY_WATCH_HALF_CLOSED,
	RELAY_WATCH_IDLE,
	RELAY_WATCH_COUNT
};

/* Milliseconds, 0: no limit. */
struct relay_watch_settings {
	uint64_t stall_ms;      /* a peer has had something to take and takes nothing */
	uint64_t half_close_ms; /* one direction has ended, and nothing moves in the other */
	uint64_t idle_ms;       /* nothing moves */
};

/* What was seen when it was looked at last. */
struct relay_watch {
	uint64_t moved_ms;            /* when bytes were seen to have moved */
	uint64_t bytes;               /* of both directions, until then */
	uint64_t took_ms[RELAY_ENDS]; /* when a peer was seen to have taken bytes, or to have */
				      /* something to take for the first time */
	uint64_t taken[RELAY_ENDS];   /* bytes that it had acknowledged */
	bool waits[RELAY_ENDS];       /* there was something for it to take */
};

/*
 * relay_watch_waits() - is there anything that the peer at @end hasn't taken?
 * @taken: set to the bytes that it has acknowledged
 */
bool relay_watch_waits(const struct relay *relay, enum relay_end end, uint64_t *taken);

void relay_watch_start(struct relay_watch *watch, uint64_t now_ms);

/*
 * relay_watch_look() - has one of the limits passed?
 * To be called now and then: what happens in between is taken as having happened at the next look.
 * Returns which, the first of those above that has, or RELAY_WATCH_NONE.
 */
enum relay_watch_verdict relay_watch_look(struct relay_watch *watch, const struct relay *relay,
					  const struct relay_watch_settings *settings,
					  uint64_t now_ms);

#endif
