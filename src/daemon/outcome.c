/* SPDX-License-Identifier: BSD-3-Clause */
/* outcome.c - how a session ended: for people, and in words that programs may rely on */
#include "config.h"

#include "daemon/outcome.h"

#include <assert.h>

static const struct {
	const char *name, *text;
} outcomes[] = {
	[OUTCOME_NONE] = { "unknown", "unknown" },
	[OUTCOME_DONE] = { "done", "done" },
	[OUTCOME_INFORMATION] = { "information", "information" },
	[OUTCOME_CLIENT_LEFT] = { "client_left", "client left before its request" },
	[OUTCOME_CLIENT_LOST_REQUEST] = { "client_lost_before_request",
					  "client lost before its request" },
	[OUTCOME_CLIENT_LOST_CONNECTING] = { "client_lost_connecting",
					     "client lost while connecting" },
	[OUTCOME_CLIENT_LOST] = { "client_lost", "client lost" },
	[OUTCOME_SERVER_LOST] = { "server_lost", "server lost" },
	[OUTCOME_BYTES_MISSING] = { "bytes_missing",
				    "bytes lost by the kernel, on MPTCP that fell back to TCP" },
	[OUTCOME_NO_REQUEST] = { "no_request", "no request in time" },
	[OUTCOME_NO_HANDSHAKE] = { "no_handshake", "client never completed its handshake" },
	[OUTCOME_CLIENT_STALLED] = { "client_stalled", "client takes nothing" },
	[OUTCOME_SERVER_STALLED] = { "server_stalled", "server takes nothing" },
	[OUTCOME_HALF_CLOSED] = { "half_closed", "half-closed, and nothing moves" },
	[OUTCOME_IDLE] = { "idle", "idle" },
	[OUTCOME_NOT_CONVERT] = { "not_convert", "not the Convert Protocol" },
	[OUTCOME_NOT_SILENT] = { "not_silent", "wants silence, and can't be served in silence" },
	[OUTCOME_BAD_REQUEST] = { "bad_request", "malformed or unsupported request" },
	[OUTCOME_UNSUPPORTED_OPTION] = { "unsupported_option", "unsupported TCP option" },
	[OUTCOME_MISSING_COOKIE] = { "missing_cookie", "missing cookie" },
	[OUTCOME_NOT_AUTHORIZED] = { "not_authorized", "not authorized" },
	[OUTCOME_RESOURCES] = { "resource_exceeded", "out of resources" },
	[OUTCOME_SERVER_REFUSED] = { "server_refused", "server refused" },
	[OUTCOME_SERVER_UNREACHABLE] = { "server_unreachable", "server unreachable" },
	[OUTCOME_NETWORK_FAILURE] = { "network_failure", "network failure" },
	[OUTCOME_LACKING] = { "no_way_from_here", "this converter has no way to the server" },
	[OUTCOME_LIMIT_CLIENT_PENDING] = { "limit_client_pending",
					   "too many pending requests of this client" },
	[OUTCOME_LIMIT_CLIENT_CONNECTIONS] = { "limit_client_connections",
					       "too many connections of this client" },
	[OUTCOME_LIMIT_PENDING] = { "limit_pending", "too many pending requests" },
	[OUTCOME_LIMIT_CONNECTIONS] = { "limit_connections", "too many connections" },
	[OUTCOME_LIMIT_MEMORY] = { "limit_memory", "stands still and holds too much memory" },
	[OUTCOME_LIMIT_REFUSED] = { "limit_refused", "too many refused requests" },
	[OUTCOME_LIMIT_ERRORS] = { "limit_errors", "too many error replies" },
	[OUTCOME_STOPPED] = { "stopped", "the daemon stops" },
	[OUTCOME_OUT_OF_MEMORY] = { "out_of_memory", "out of memory" },
};
static_assert(sizeof(outcomes) / sizeof(outcomes[0]) == OUTCOME_COUNT, "words for each outcome");

const char *outcome_name(enum outcome outcome)
{
	return outcomes[outcome].name;
}

const char *outcome_text(enum outcome outcome)
{
	return outcomes[outcome].text;
}

/* ----- the states of a session, and which may follow which ----- */

#define BIT(state) (1U << (state))

const char *const session_state_names[SESSION_STATE_COUNT] = {
	[SESSION_REQUEST] = "request",
	[SESSION_CONNECTING] = "connecting",
	[SESSION_RELAY] = "relay",
	[SESSION_RESETTING] = "resetting",
	[SESSION_REFUSING] = "refusing",
	[SESSION_CLOSED] = "closed",
};

static const unsigned successors[] = {
	[SESSION_REQUEST] = BIT(SESSION_CONNECTING) | BIT(SESSION_REFUSING) | BIT(SESSION_CLOSED),
	[SESSION_CONNECTING] = BIT(SESSION_RELAY) | BIT(SESSION_REFUSING) | BIT(SESSION_CLOSED),
	[SESSION_RELAY] = BIT(SESSION_RESETTING) | BIT(SESSION_CLOSED),
	[SESSION_RESETTING] = BIT(SESSION_CLOSED),
	[SESSION_REFUSING] = BIT(SESSION_CLOSED),
	[SESSION_CLOSED] = 0,
};
static_assert(sizeof(successors) / sizeof(successors[0]) == SESSION_STATE_COUNT, "each state has successors");

bool session_state_allows(enum session_state state, enum session_state next)
{
	return successors[state] & BIT(next);
}
