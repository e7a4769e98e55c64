/* SPDX-License-Identifier: BSD-3-Clause */
/* decide.h - what a dial does next, by what is known of it and seen of its socket (no I/O) */
#ifndef ENGINE_DECIDE_H
#define ENGINE_DECIDE_H

#include "engine/dial.h"

/* Longer than Linux tries to connect (tcp_syn_retries 6: 127 s), which is what converters do. */
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

/* What has been seen in this step. All zero at its beginning. */
struct dial_seen {
	bool looked;        /* at TCP_INFO, as is told by: */
	uint8_t state;      /* tcpi_state */
	uint8_t options;    /* tcpi_options */
	bool sent_again;    /* the SYN was sent more than once */
	int64_t heard_at;   /* CLOCK_MONOTONIC in ns, when something came from the converter's host */
	enum seen_mptcp mptcp;
	enum seen_response response;
	bool full;          /* the socket takes no output for now */
	bool broken;        /* output has failed */
	bool path_looked;   /* the path was looked at, and stays */
	bool probed;        /* keepalive was set, if it can be */
	bool proven;        /* the converter has answered others lately */
};

enum dial_do {
	/* find out more, and decide again */
	DO_LOOK,          /* at TCP_INFO */
	DO_LOOK_AT_MPTCP, /* has the socket fallen back to TCP? */
	DO_SEND,          /* the rest of the message */
	DO_READ,          /* the response */
	DO_LOOK_AT_PATH,
	DO_PROBE,         /* keepalive */
	/* the step ends */
	DO_WAIT,          /* until decision.at at the latest; 0: as long as before */
	DO_CONFIRM,       /* tell the program that it is connected; the response is to come */
	DO_REACHED,       /* take the response off */
	DO_REACHED_SILENTLY,
	DO_BEGIN_ANEW,    /* ask the same converter by decision.way */
	DO_BLIND_LOST,    /* a blind request isn't confirmed by the SYN+ACK */
	DO_JUDGE,         /* what the response says */
	DO_FAIL,          /* the socket has an error; decision.final: it is the server's */
	DO_GIVE_UP,       /* the converter has been silent for too long; decision.alive: its host is there */
	DO_COUNT
};

struct dial_decision {
	enum dial_do what;
	int64_t at;
	enum ask_way way;
	bool final, alive;
};

/* How long keepalive's interval is, and CONVERT_TIMEOUT's first look, in seconds. */
int decide_interval_seconds(unsigned int timeout_ms);

/* decide() - @timeout_ms: CONVERT_TIMEOUT; @now: CLOCK_MONOTONIC in ns */
struct dial_decision decide(const struct dial *dial, const struct dial_seen *seen, unsigned int timeout_ms, int64_t now);

#endif
