/* SPDX-License-Identifier: BSD-3-Clause */
/* session_state.c - the states of a session, and which may follow which */
#include "config.h"

#include "convertd/policy/session_state.h"

#include <assert.h>

#define BIT(state) (1U << (state))

static const char *const names[] = {
	[SESSION_REQUEST] = "REQUEST",
	[SESSION_CONNECTING] = "CONNECTING",
	[SESSION_RELAY] = "RELAY",
	[SESSION_RESETTING] = "RESETTING",
	[SESSION_REFUSING] = "REFUSING",
	[SESSION_CLOSED] = "CLOSED",
};
static_assert(sizeof(names) / sizeof(names[0]) == SESSION_STATE_COUNT, "each state has a name");

static const unsigned successors[] = {
	[SESSION_REQUEST] = BIT(SESSION_CONNECTING) | BIT(SESSION_REFUSING) | BIT(SESSION_CLOSED),
	[SESSION_CONNECTING] = BIT(SESSION_RELAY) | BIT(SESSION_REFUSING) | BIT(SESSION_CLOSED),
	[SESSION_RELAY] = BIT(SESSION_RESETTING) | BIT(SESSION_CLOSED),
	[SESSION_RESETTING] = BIT(SESSION_CLOSED),
	[SESSION_REFUSING] = BIT(SESSION_CLOSED),
	[SESSION_CLOSED] = 0,
};
static_assert(sizeof(successors) / sizeof(successors[0]) == SESSION_STATE_COUNT, "each state has successors");

const char *session_state_name(enum session_state state)
{
	return names[state];
}

bool session_state_allows(enum session_state state, enum session_state next)
{
	return successors[state] & BIT(next);
}
