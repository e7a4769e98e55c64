/* SPDX-License-Identifier: BSD-3-Clause */
/* relay_memory.h - measures the kernel memory that a relay holds, and how long its bytes haven't moved */
#ifndef CONVERTD_RELAY_MEMORY_H
#define CONVERTD_RELAY_MEMORY_H

#include "convertd/relay/relay.h"

#include <stdint.h>

/* What was seen at the last look; a zeroed one is ready for the first. */
struct relay_memory {
	uint64_t taken[RELAY_ENDS];    /* bytes that a peer had acknowledged when it was last seen to move, */
	uint64_t since_ms[RELAY_ENDS]; /* and when that was; 0: there was nothing for it to take */
	uint64_t bytes;                /* memory of sockets, pipes and our own buffers */
	uint32_t stalled_ms;           /* for this long a peer has taken next to nothing of them */
};

/* Tells whether the relay may hold much memory. It makes no system call, and is to be asked after each relay_run(). */
bool relay_memory_may_grow(const struct relay *relay);

/* Measures the memory, with four system calls, and how long it hasn't moved. @now_ms: clock_now_ms() */
void relay_memory_look(struct relay_memory *memory, const struct relay *relay, uint64_t now_ms);

/* Returns the bytes that a peer hasn't acknowledged yet, those of the peer with more of them. */
uint64_t relay_memory_unsent(const struct relay *relay);

#endif
