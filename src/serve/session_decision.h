/* SPDX-License-Identifier: BSD-3-Clause */
/* session_decision.h - what a session does next, by what is known of it (no I/O, no clock) */
#ifndef SERVE_SESSION_DECISION_H
#define SERVE_SESSION_DECISION_H

#include "convertd/policy/judgement.h"
#include "convertd/policy/outcome.h"
#include "relay/relay.h"
#include "serve/session.h"

#include <stdbool.h>
#include <stdint.h>

struct settings;

/* Seconds that a peer has to take the converter's last word before the socket is closed or reset. */
#define LINGER_SECONDS 5

/* How often RESETTING looks whether the bytes have arrived, and how many times. */
#define RESET_POLL_MS 50
#define RESET_POLLS (LINGER_SECONDS * 1000 / RESET_POLL_MS)

/* How long each deadline is, in milliseconds; 0: there is none. */
void session_decide_timeouts(const struct settings *settings, unsigned ms[static SESSION_TIMEOUT_COUNT]);

/* The deadline of a session whose client hasn't proved its address. */
struct session_deadline {
	uint64_t us;  /* from now on; 0: none */
	bool hurried; /* it is for the client's proof */
};

/*
 * session_decide_deadline() - the state's deadline, or an earlier one for the client's proof
 * @ms: the state's; 0: it has none
 * @prove_by_us, @now_us: when the client must have proved its address; 0: it needn't, or the kernel ends the connection by itself
 * @no_reset: a reset would be too much for the client: the session outlives what the kernel ends without one
 */
struct session_deadline session_decide_deadline(unsigned ms, uint64_t prove_by_us, bool no_reset, uint64_t now_us);

/* How a session ends that has to make room. */
enum session_way {
	SESSION_WAY_ABORT,  /* both sockets are reset */
	SESSION_WAY_REFUSE, /* the client is told */
	SESSION_WAY_DROP,   /* a reset without a word, and without a line in the log */
};
enum session_way session_decide_room(enum session_state state, bool answered, bool confirmed);

/* The time to connect is over. */
enum session_patience {
	SESSION_HAS_CONNECTED,  /* an event tells */
	SESSION_BLAMES_US,      /* the client is told that this host can't reach the server */
	SESSION_WAITS_REST,     /* the second part of the time begins */
	SESSION_WAITS_FAR,      /* the SYN of a far client was withheld for less: time is left */
	SESSION_FAILS,          /* the server has failed, or has been silent for all of the time */
};

/*
 * session_decide_patience() - what a silent server means
 * @error: of the server's socket: 0, -EINPROGRESS or -errno
 * @rest: there is a second part; @ours: the silence is more likely this host's fault
 * @far: the client is far; @taken_ms, @may_ms: the time that connecting has taken, and that it may
 */
enum session_patience session_decide_patience(int error, bool rest, bool ours, bool far, uint64_t taken_ms, uint64_t may_ms);

/*
 * The socket that is left at the end is closed if that is the end of what goes to its peer: both directions have
 * ended, or the converter itself has nothing more to say to a client that has no server. All else is a reset.
 */
bool session_ends_in_order(enum relay_end end, enum outcome outcome, bool answered);

/* What the end of a session is called whose socket at @end has failed. */
enum outcome session_decide_lost(enum relay_end end, bool garbled, bool confirmed);

/*
 * session_decide_unserved() - can't a client that wants no response be served without one, nor be told so?
 * @confirmed: its SYN+ACK has confirmed the server, as both ends see it
 * Returns why, a constant for the log; NULL: it can, or wants a response.
 */
const char *session_decide_unserved(const struct judgement *judgement, bool confirmed);

#endif
