/* SPDX-License-Identifier: BSD-3-Clause */
/* session_decision.h - decides what a session does next (no I/O, no clock) */
#ifndef SERVE_SESSION_DECISION_H
#define SERVE_SESSION_DECISION_H

#include "daemon/outcome.h"
#include "relay/relay.h"
#include "serve/session.h"

#include <stdbool.h>
#include <stdint.h>

/* Seconds that a peer has to take our answer or the last bytes, before we close or reset the socket. */
#define LINGER_SECONDS 5

/* The interval at which RESETTING looks whether the bytes have arrived, and the number of looks. */
#define RESET_POLL_MS 50
#define RESET_POLLS (LINGER_SECONDS * 1000 / RESET_POLL_MS)

/* Computes each time-out in milliseconds; 0: none. */
void session_decide_timeouts(const struct serve_settings *settings, unsigned ms[static SESSION_TIMEOUT_COUNT]);

/* The deadline of a session whose client hasn't proved its address. */
struct session_deadline {
	uint64_t us;    /* from now on; 0: none */
	bool for_proof; /* the client's proof, or the RST, is due: session_handle_no_proof() handles that; otherwise the state's time is over */
};

/*
 * session_decide_deadline() - choose the state's deadline, or another: an earlier one for the client's proof, a later one with @no_reset
 * @ms: the state's; 0: it has none
 * @prove_by_us, @now_us: when the client must have proved its address; 0: it needn't, or the kernel ends the connection by itself
 * @no_reset: an RST would exceed what we may send the client: the session waits until the kernel has ended the connection without one
 */
struct session_deadline session_decide_deadline(unsigned ms, uint64_t prove_by_us, bool no_reset, uint64_t now_us);

/* How to end a session that has to make room. */
enum session_way {
	SESSION_WAY_ABORT,  /* reset both sockets */
	SESSION_WAY_REFUSE, /* send the client an error */
	SESSION_WAY_DROP,   /* reset, without an answer and without a line in the log */
};
enum session_way session_decide_room(enum session_state state, bool answered, bool handshake_done);

/* What to do when the time to connect is over. */
enum session_patience {
	SESSION_HAS_CONNECTED,  /* nothing: the event of the connection is on its way */
	SESSION_BLAMES_US,      /* tell the client that this host can't reach the server */
	SESSION_WAITS_REST,     /* begin the second part of the time */
	SESSION_FAILS,          /* fail: the server has failed, or has been silent for all of the time */
};

/*
 * session_decide_patience() - decide what to do about a server that hasn't answered in time
 * @error: of the server's socket: 0, -EINPROGRESS or -errno
 * @rest: there is a second part; @ours: the silence is more likely this host's fault
 */
enum session_patience session_decide_patience(int error, bool rest, bool ours);

/*
 * Returns whether to close the socket at @end when the session ends; otherwise it is reset. We close it if the peer has got all that it can
 * get: both directions have ended, or the client has no server and we have nothing more to send to it.
 */
bool session_ends_in_order(enum relay_end end, enum outcome outcome, bool answered);

/* Returns the outcome of a session whose socket at @end has failed. */
enum outcome session_decide_lost(enum relay_end end, bool garbled, bool handshake_done);

/*
 * session_decide_unserved() - see whether a silent client can neither be served without a response nor be told so
 * @confirmed: its SYN+ACK has confirmed the server, as both ends see it
 * Returns the reason, a constant for the log; NULL if the client can be served or told, or wants a response.
 */
const char *session_decide_unserved(const struct serve_verdict *verdict, bool confirmed);

#endif
