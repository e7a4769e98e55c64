/* SPDX-License-Identifier: BSD-3-Clause */
/* relay_look.h - tells whether a relay still moves, and how much kernel memory it holds */
#ifndef RELAY_RELAY_LOOK_H
#define RELAY_RELAY_LOOK_H

#include "relay/relay.h"

#include <stdint.h>

/* ----- finds relays on which no bytes move any more ----- */

/* The limit that a relay has passed. */
enum relay_watch_verdict {
	RELAY_WATCH_NONE,
	RELAY_WATCH_CLIENT_STALLED, /* the peer at RELAY_UPSTREAM takes nothing */
	RELAY_WATCH_SERVER_STALLED, /* the peer at RELAY_DOWNSTREAM takes nothing */
	RELAY_WATCH_HALF_CLOSED,    /* one direction has ended, and nothing moves in the other */
	RELAY_WATCH_IDLE,           /* nothing moves */
	RELAY_WATCH_COUNT
};

/* Limits in milliseconds; 0: no limit. */
struct relay_watch_settings {
	uint64_t stall_ms;      /* for how long a peer may take none of the bytes that wait for it */
	uint64_t half_close_ms; /* for how long nothing may move after one direction has ended */
	uint64_t idle_ms;       /* for how long nothing may move */
};

/* The state at the last look. */
struct relay_watch {
	uint64_t moved_ms;            /* when bytes were last seen to have moved */
	uint64_t bytes;               /* the number of bytes written, of both directions */
	uint64_t took_ms[RELAY_ENDS]; /* when a peer was last seen to have taken bytes, or to have had */
				      /* nothing to take */
	uint64_t taken[RELAY_ENDS];   /* the bytes that the peer had acknowledged */
	bool waits[RELAY_ENDS];       /* there was something for the peer to take */
};

/* Starts to watch: all limits begin at @now_ms. */
void relay_watch_start(struct relay_watch *watch, uint64_t now_ms);

/*
 * relay_watch_look() - tell whether the relay has passed a limit
 * Call it now and then: events since the last look count as happening at this one.
 * @now_ms: clock_now_ms()
 * Returns the first limit in the order of the enum that has passed, or RELAY_WATCH_NONE.
 */
enum relay_watch_verdict relay_watch_look(struct relay_watch *watch, const struct relay *relay,
					  const struct relay_watch_settings *settings,
					  uint64_t now_ms);

/* ----- measures the kernel memory that a relay holds, and how long its bytes haven't moved ----- */

/* The state at the last look; a zeroed one is ready for the first. */
struct relay_memory {
	uint64_t taken[RELAY_ENDS];    /* bytes that a peer had acknowledged when it was last seen to move, */
	uint64_t since_ms[RELAY_ENDS]; /* and when that was; 0: there was nothing for it to take */
	uint64_t bytes;                /* memory of sockets, pipes and our own buffers */
	uint32_t stalled_ms;           /* for this long a peer has taken next to nothing of them */
};

/* Tells whether the relay may hold much memory. It makes no system call; ask it after each relay_run(). */
bool relay_memory_may_grow(const struct relay *relay);

/* Measures the memory, with four system calls, and how long it hasn't moved. @now_ms: clock_now_ms() */
void relay_memory_look(struct relay_memory *memory, const struct relay *relay, uint64_t now_ms);

/* Returns the bytes that a peer hasn't acknowledged yet, of the peer with more of them. */
uint64_t relay_memory_unsent(const struct relay *relay);

#endif
