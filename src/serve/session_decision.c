/* SPDX-License-Identifier: BSD-3-Clause */
/* session_decision.c - decides what a session does next (no I/O, no clock) */
#include "config.h"

#include "serve/session_decision.h"

#include <errno.h>

/* The longest interval between two looks at a relay. */
#define LOOK_MAX_MS 60000

/* The kernel gives up a handshake after 3 s if it may repeat the SYN+ACK once. */
#define NO_RESET_MS 4000

/* Returns the interval between looks at a relay: an eighth of the shortest time-out, so that none is later than that; a minute at most. */
static unsigned look_ms(const struct relay_watch_settings *watch)
{
	const uint64_t timeouts[] = { watch->stall_ms, watch->half_close_ms, watch->idle_ms };
	uint64_t shortest = 0;

	for (size_t i = 0; i < sizeof(timeouts) / sizeof(timeouts[0]); i++)
		if (timeouts[i] && (!shortest || timeouts[i] < shortest))
			shortest = timeouts[i];
	return shortest < LOOK_MAX_MS * 8 ? (unsigned)shortest / 8 : LOOK_MAX_MS;
}

void session_decide_timeouts(const struct serve_settings *settings, unsigned ms[static SESSION_TIMEOUT_COUNT])
{
	const unsigned connect = settings->connect_ms;
	/* The time that is left if the server was silent for all of hold_ms. */
	const unsigned withheld = connect > settings->hold_ms ? connect - settings->hold_ms : 1;
	/* When we determine which side failed; 0: the time to connect is too short for that. */
	const unsigned patience = withheld > settings->patience_ms ? settings->patience_ms : 0;

	ms[SESSION_TIMEOUT_REQUEST] = settings->request_ms;
	ms[SESSION_TIMEOUT_CONNECT] = connect;
	ms[SESSION_TIMEOUT_CONNECT_WITHHELD] = withheld;
	ms[SESSION_TIMEOUT_PATIENCE] = patience;
	ms[SESSION_TIMEOUT_CONNECT_REST] = connect - patience;
	ms[SESSION_TIMEOUT_CONNECT_WITHHELD_REST] = withheld - patience;
	ms[SESSION_TIMEOUT_LINGER] = LINGER_SECONDS * 1000;
	ms[SESSION_TIMEOUT_RESET_POLL] = RESET_POLL_MS;
	ms[SESSION_TIMEOUT_LOOK] = look_ms(&settings->watch);
}

struct session_deadline session_decide_deadline(unsigned ms, uint64_t prove_by_us, bool no_reset, uint64_t now_us)
{
	const uint64_t us = ms * UINT64_C(1000), left_us = prove_by_us > now_us ? prove_by_us - now_us : 1;

	if (prove_by_us && (!us || us > left_us))
		return (struct session_deadline){ .us = left_us, .for_proof = true };
	if (no_reset && us && ms < NO_RESET_MS)
		return (struct session_deadline){ .us = NO_RESET_MS * UINT64_C(1000), .for_proof = true };
	return (struct session_deadline){ .us = us };
}

enum session_way session_decide_room(enum session_state state, bool answered, bool handshake_done)
{
	if (state == SESSION_RELAY && answered)
		return SESSION_WAY_ABORT;
	return state == SESSION_CONNECTING && handshake_done ? SESSION_WAY_REFUSE : SESSION_WAY_DROP;
}

enum session_patience session_decide_patience(int error, bool rest, bool ours)
{
	if (!error)
		return SESSION_HAS_CONNECTED;
	if (error != -EINPROGRESS || !rest)
		return SESSION_FAILS;
	return ours ? SESSION_BLAMES_US : SESSION_WAITS_REST;
}

bool session_ends_in_order(enum relay_end end, enum outcome outcome, bool answered)
{
	return outcome == OUTCOME_DONE || (end == RELAY_UPSTREAM && (answered || outcome == OUTCOME_CLIENT_LEFT));
}

enum outcome session_decide_lost(enum relay_end end, bool garbled, bool handshake_done)
{
	if (garbled)
		return OUTCOME_BYTES_MISSING;
	if (end == RELAY_DOWNSTREAM)
		return OUTCOME_SERVER_LOST;
	return handshake_done ? OUTCOME_CLIENT_LOST : OUTCOME_NO_HANDSHAKE;
}

const char *session_decide_unserved(const struct serve_verdict *verdict, bool confirmed)
{
	if (!verdict->silent || verdict->action == REQUEST_RESET)
		return NULL;
	/* A SYN+ACK that confirms the server, as both ends see it, answers only a whole request. */
	if (verdict->action == REQUEST_WAIT)
		return confirmed ? "a part of a request in the SYN of a silent client" : NULL;
	if (verdict->reply != JUDGEMENT_RESET)
		return NULL;
	return confirmed ? "not Multipath TCP, which a silent client needs" : "a blind client whose SYN+ACK has confirmed nothing";
}
