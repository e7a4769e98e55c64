/* SPDX-License-Identifier: BSD-3-Clause */
/* syn_decision.h - decides about a SYN, and about the attempt to reach its server while we withhold it (no I/O) */
#ifndef SERVE_SYN_DECISION_H
#define SERVE_SYN_DECISION_H

#include "daemon/metrics.h"
#include "hold/hold.h"
#include "serve/plugs.h"

#include <stdbool.h>
#include <stdint.h>

/* The facts about an attempt. */
struct syn_facts {
	bool silent;    /* the client wants no response if the SYN+ACK says it all */
	bool blind;     /* the client can't take a response off: the network's own means report all errors */
	bool needs_mptcp; /* blind: the client needs Multipath TCP */
	bool asks;      /* the client asks whether the server speaks Multipath TCP */
	bool numbered;  /* blind: the client repeats the request by SYNs from other ports */
	uint16_t repeat; /* how often the request was made before */
	bool late;      /* blind: we can't release the SYN any more */
	bool server_answered; /* but late: we wait for the client's next SYN */
	bool routes;    /* blind, of a gateway: the SYN is another host's, and goes on as it came where we can't answer it */
	unsigned hold_ms; /* how long the client lets us withhold the SYN, in milliseconds; UINT_MAX: it doesn't say */
};

enum syn_event {
	SYN_TIME_IS_OVER,
	SYN_SERVER_ANSWERED,
	SYN_SERVER_ANSWERED_MPTCP, /* and speaks Multipath TCP */
	SYN_SERVER_FAILED,
	SYN_SERVER_TIMED_OUT,      /* the kernel has sent its last SYN to the server in vain */
	SYN_PASSES,                /* the dialler has failed, and the SYN goes on without us */
	SYN_ROOM_IS_NEEDED,
	SYN_NOT_GRANTED,           /* new settings have withdrawn the grant */
	SYN_STOPPED,               /* the worker withholds no more SYNs */
	SYN_REPEATED,              /* the client has made the request again, and the new SYN has the server's socket now */
	SYN_EVENTS
};

/* The attempt's next step. */
struct syn_step {
	enum hold_verdict verdict; /* HOLD_WITHHOLD: the SYN goes on waiting, for wait_ms */
	unsigned wait_ms;          /* 0: until the time set before */
	bool late, server_answered; /* the facts from now on */
	bool keep;                 /* keep the attempt in the table for the session */
	bool tells_refusal;        /* the session, or the network, reports why the server can't be reached */
	bool resets;               /* HOLD_REFUSE: by a reset; otherwise as prohibited, unless tells_refusal */
	enum metrics_syn counted;
	const char *why;           /* for the log */
};

struct syn_step syn_decide(const struct syn_facts *facts, enum syn_event event);

/*
 * syn_decide_judged() - decide about a SYN by the verdict on its request
 * @native: how to refuse the SYN; changed with HOLD_REFUSE if another way is needed
 * Returns HOLD_WITHHOLD if we can ask its server.
 */
enum hold_verdict syn_decide_judged(const struct serve_verdict *verdict, const struct serve_settings *settings, uint8_t *native);

/*
 * Returns whether the end of the SYN's time comes first if a busy worker finds that and the server's answer together: a blind client that
 * needs Multipath TCP has given the SYN up by then, and ignores a SYN+ACK.
 */
bool syn_ends_in_time(const struct syn_facts *facts);

/* Returns how long to withhold a SYN at first. @hold_ms: that of the settings */
unsigned syn_first_wait_ms(const struct syn_facts *facts, unsigned hold_ms);

/* What to do with the SYN of @facts if there is an earlier one with the same number. */
enum syn_repeat {
	SYN_REPEAT_DROP, /* drop it: it is older */
	SYN_REPEAT_TAKE, /* it takes over the server's socket */
	SYN_REPEAT_NEW,  /* treat it as new: it asks for something else */
};
enum syn_repeat syn_decide_repeat(const struct syn_facts *facts, const struct syn_facts *earlier, bool same_server);

#endif
