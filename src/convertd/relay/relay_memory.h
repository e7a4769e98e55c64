/* SPDX-License-Identifier: BSD-3-Clause */
/* relay_memory.h - what a relay holds of the kernel's memory, and whether that moves */
#ifndef CONVERTD_RELAY_MEMORY_H
#define CONVERTD_RELAY_MEMORY_H

#include "convertd/relay/relay.h"

#include <stdint.h>

/* What was seen of it; zeros at first. */
struct relay_memory {
	uint64_t taken[RELAY_ENDS];    /* bytes that a peer had acknowledged, */
	uint64_t since_ms[RELAY_ENDS]; /* and when; 0: there was nothing for it to take */
	uint64_t bytes;                /* in sockets, pipes and in our own buffers */
	uint32_t stalled_ms;           /* for so long a peer has taken next to nothing of them */
};

/* May it hold much? Cheap: to be asked after each relay_run(). */
bool relay_memory_may_grow(const struct relay *relay);

/* relay_memory_look() - measure it, with four system calls */
void relay_memory_look(struct relay_memory *memory, const struct relay *relay, uint64_t now_ms);

/* The most bytes that one of the two peers hasn't acknowledged yet. */
uint64_t relay_memory_unsent(const struct relay *relay);

#endif
