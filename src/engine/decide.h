/* SPDX-License-Identifier: BSD-3-Clause */
/* decide.h - decides the next action of a dial from its state and the facts seen on its socket (no I/O) */
#ifndef ENGINE_DECIDE_H
#define ENGINE_DECIDE_H

#include "engine/dial.h"

/* Longer than converters try to connect to a server: 127 s on Linux (tcp_syn_retries 6). */
#define DECIDE_SERVER_PATIENCE_NS (150 * CLOCK_NS_PER_S)

enum seen_mptcp { MPTCP_UNSEEN, MPTCP_HOLDS, MPTCP_LOST };

enum seen_response {
	RESPONSE_UNREAD,
	RESPONSE_NOTHING, /* no byte is there */
	RESPONSE_PART,
	RESPONSE_WHOLE,   /* the server was reached */
	RESPONSE_ERROR,   /* an error, no Convert message, or the end of the stream */
	RESPONSE_BROKEN,  /* the kernel reports an error */
};

/* The facts seen in this step. All zero at its beginning. */
struct dial_seen {
	int64_t now;        /* when the step began, CLOCK_MONOTONIC in ns: deadlines are compared with this time, not with a later one */
	bool looked;        /* TCP_INFO was read, which gave: */
	uint8_t state;      /* tcpi_state */
	uint8_t options;    /* tcpi_options */
	bool sent_again;    /* the SYN was sent more than once */
	int64_t heard_at;   /* when the last packet came from the converter's host: CLOCK_MONOTONIC in ns */
	enum seen_mptcp mptcp;
	enum seen_response response;
	bool full;          /* the socket takes no output for now */
	bool broken;        /* output has failed */
	bool path_looked;   /* the path was checked, and the connection stays on it */
	bool keepalive_set; /* keepalive was set, if possible */
	bool proven;        /* the converter has answered other requests lately */
};

enum dial_do {
	/* find out more, and decide again */
	DO_LOOK,          /* read TCP_INFO */
	DO_LOOK_AT_MPTCP, /* check whether the socket has fallen back to TCP */
	DO_SEND,          /* send the rest of the message */
	DO_READ,          /* read the response */
	DO_LOOK_AT_PATH,
	DO_KEEPALIVE,     /* set keepalive */
	DO_ASK_PATH,      /* ask whether the path works, before the converter is blamed for its silence */
	/* the step ends */
	DO_WAIT,          /* until decision.at at the latest; 0: until the time set before */
	DO_CONFIRM,       /* report the connection to the program; the response is still to come */
	DO_REACHED,       /* take the response off */
	DO_REACHED_SILENTLY,
	DO_BEGIN_ANEW,    /* ask the same converter by decision.way */
	DO_BLIND_LOST,    /* the SYN+ACK doesn't confirm a blind request */
	DO_JUDGE,         /* handle the error in the response */
	DO_FAIL,          /* the socket has an error; decision.final: the server caused it */
	DO_GIVE_UP,       /* the converter has been silent for too long; decision.alive: its host still answers */
};

struct dial_decision {
	enum dial_do what;
	int64_t at;
	enum ask_way way;
	bool final, alive;
};

/* Returns the time at which an attempt without a SYN+ACK asks its path. The answer has half of CONVERT_TIMEOUT. */
int64_t decide_ask_at(const struct attempt *attempt, unsigned int timeout_ms);

/* Returns keepalive's interval in seconds: the time to the first look, unless half of CONVERT_TIMEOUT is shorter. */
int decide_interval_seconds(unsigned int timeout_ms);

/* Returns the next action. @timeout_ms: CONVERT_TIMEOUT; @now: CLOCK_MONOTONIC in ns */
struct dial_decision decide(const struct dial *dial, const struct dial_seen *seen, unsigned int timeout_ms, int64_t now);

#endif
