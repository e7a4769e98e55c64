/* SPDX-License-Identifier: BSD-3-Clause */
/* syn_decision.h - what becomes of a SYN, and of the attempt to reach its server while it is withheld (no I/O) */
#ifndef SERVE_SYN_DECISION_H
#define SERVE_SYN_DECISION_H

#include "convertd/observe/metrics.h"
#include "convertd/policy/judgement.h"
#include "hold/hold.h"

#include <stdbool.h>
#include <stdint.h>

/* What is known of an attempt. */
struct syn_facts {
	bool silent;    /* its client wants no response where its SYN+ACK says all */
	bool blind;     /* its client can't take a response off: all but success is said as the network says it */
	bool mptcp;     /* blind: as Multipath TCP or not at all */
	bool asks;      /* its client asks whether the server speaks Multipath TCP */
	bool falls_back; /* its SYN has MP_CAPABLE: once that is sent again, its client goes without Multipath TCP */
	bool numbered;  /* blind: its client repeats the request by SYNs of other ports */
	uint16_t repeat; /* how often the request was made before */
	bool late;      /* blind: its SYN can't be released any more */
	bool answered;  /* late, and the server has answered: the client's next SYN is waited for */
	unsigned most_ms; /* its client says for how long it may be withheld, in milliseconds; UINT_MAX: it doesn't */
};

enum syn_event {
	SYN_TIME_IS_OVER,
	SYN_SERVER_ANSWERED,
	SYN_SERVER_ANSWERED_MPTCP, /* and speaks Multipath TCP */
	SYN_SERVER_FAILED,
	SYN_SERVER_TIMED_OUT,      /* the kernel has sent it all SYNs */
	SYN_ROOM_IS_NEEDED,
	SYN_NOT_GRANTED,           /* new settings don't grant it any more */
	SYN_STOPPED,               /* SYNs are withheld no more */
	SYN_REPEATED,              /* its client has made the request again: that SYN has the server's socket now */
	SYN_EVENTS
};

/* What the attempt does next. */
struct syn_step {
	enum hold_verdict verdict; /* HOLD_WITHHOLD: it waits on, for wait_ms */
	unsigned wait_ms;
	bool late, answered;       /* the facts from now on */
	bool keep;                 /* its connection finds what was done for it */
	bool tells_refusal;        /* its connection, or the network, says why the server can't be reached */
	bool resets;               /* HOLD_REFUSE: by a reset; else as prohibited, unless tells_refusal */
	enum metrics_syn counted;
	const char *why;           /* for the log */
};

struct syn_step syn_decide(const struct syn_facts *facts, enum syn_event event);

/* How the converter was set up, as far as SYNs that aren't withheld are concerned. */
struct syn_terms {
	bool drop_foreign; /* SYNs without a request are dropped */
	bool refuses;      /* the rules refuse SYNs that are marked so */
};

/*
 * syn_decide_judged() - what a request's judgement means for its SYN
 * @native: set with HOLD_REFUSE where it isn't to be what it is
 * Returns HOLD_WITHHOLD if its server can be asked.
 */
enum hold_verdict syn_decide_judged(const struct judgement *judgement, const struct syn_terms *terms, uint8_t *native);

/*
 * syn_first_wait_ms() - how long a SYN is withheld at first
 * @hold_ms: --hold-time; @rtt_ms: the round trip of a client that is known to be far, or 0
 */
unsigned syn_first_wait_ms(const struct syn_facts *facts, unsigned hold_ms, unsigned rtt_ms);

/* Does the SYN of @facts take the place of an earlier one, which has the same number and server? */
enum syn_repeat {
	SYN_REPEAT_DROP, /* it is an old one */
	SYN_REPEAT_TAKE, /* it takes over the server's socket */
	SYN_REPEAT_NEW,  /* it asks for something else */
};
enum syn_repeat syn_decide_repeat(const struct syn_facts *facts, const struct syn_facts *earlier, bool same_server);

#endif
