/* SPDX-License-Identifier: BSD-3-Clause */
/* phase.c - the phases of a connection, and which of them may follow which */
#include "config.h"

#include "shim/socket/phase.h"

#include <assert.h>

static const char *const names[] = {
	[CONN_FREE] = "FREE",
	[CONN_IDLE] = "IDLE",
	[CONN_STARTING] = "STARTING",
	[CONN_HELD] = "HELD",
	[CONN_RESOLVING] = "RESOLVING",
	[CONN_SYN_SENT] = "SYN_SENT",
	[CONN_ASKED] = "ASKED",
	[CONN_CONFIRMED] = "CONFIRMED",
	[CONN_BYPASS] = "BYPASS",
	[CONN_BYPASSED] = "BYPASSED",
	[CONN_EARLY_DIRECT] = "EARLY_DIRECT",
	[CONN_DIRECT] = "DIRECT",
	[CONN_DONE] = "DONE",
	[CONN_FAILED] = "FAILED",
	[CONN_DISSOLVED] = "DISSOLVED",
};
static_assert(sizeof(names) / sizeof(names[0]) == CONN_PHASE_COUNT, "a name for each phase");
static_assert(CONN_PHASE_COUNT <= 32, "a bit for each phase in a set");

/* After a converter has failed: the next one, or none. */
#define ASKED_ON (PHASE(RESOLVING) | PHASE(SYN_SENT) | PHASE(ASKED) | PHASE(EARLY_DIRECT))
#define GIVEN_UP (PHASE(FAILED) | PHASE(DISSOLVED) | PHASE(FREE))

/* By the phase before. */
static const uint32_t followers[] = {
	[CONN_FREE] = PHASE(IDLE),
	[CONN_IDLE] = PHASE(STARTING) | PHASE(DIRECT) | PHASE(FREE) |
		      /* exec(): the phase in the program before */
		      PHASE(SYN_SENT) | PHASE(DONE) | PHASE(FAILED) | PHASE(DISSOLVED),
	[CONN_STARTING] = PHASE(HELD) | PHASE(RESOLVING) | PHASE(SYN_SENT) | PHASE(ASKED) | PHASE(BYPASS) | PHASE(IDLE),
	[CONN_HELD] = ASKED_ON | GIVEN_UP,
	[CONN_RESOLVING] = ASKED_ON | PHASE(DIRECT) | GIVEN_UP,
	[CONN_SYN_SENT] = ASKED_ON | PHASE(CONFIRMED) | PHASE(DIRECT) | PHASE(DONE) | GIVEN_UP,
	[CONN_ASKED] = ASKED_ON | PHASE(DIRECT) | PHASE(DONE) | GIVEN_UP,
	[CONN_CONFIRMED] = PHASE(DONE) | GIVEN_UP,
	[CONN_BYPASS] = PHASE(BYPASSED) | PHASE(DIRECT) | GIVEN_UP,
	[CONN_BYPASSED] = PHASE(DIRECT) | GIVEN_UP,
	[CONN_EARLY_DIRECT] = PHASE(DIRECT) | GIVEN_UP,
	[CONN_DIRECT] = PHASE(IDLE) | PHASE(DISSOLVED) | PHASE(FREE),
	[CONN_DONE] = PHASE(IDLE) | PHASE(DISSOLVED) | PHASE(FREE),
	[CONN_FAILED] = PHASE(IDLE) | PHASE(DISSOLVED) | PHASE(FREE),
	[CONN_DISSOLVED] = PHASE(IDLE) | PHASE(FREE),
};
static_assert(sizeof(followers) / sizeof(followers[0]) == CONN_PHASE_COUNT, "the followers of each phase");

const char *phase_name(enum conn_phase phase)
{
	return phase < CONN_PHASE_COUNT ? names[phase] : "none";
}

bool phase_may_follow(enum conn_phase from, enum conn_phase to)
{
	return from < CONN_PHASE_COUNT && to < CONN_PHASE_COUNT && phase_in(to, followers[from]);
}
