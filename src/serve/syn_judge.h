/* SPDX-License-Identifier: BSD-3-Clause */
/* syn_judge.h - one worker's part of withholding SYNs: judges each SYN, and connects to its server */
#ifndef SERVE_SYN_JUDGE_H
#define SERVE_SYN_JUDGE_H

#include "daemon/limits.h"
#include "hold/hold.h"
#include "serve/plugs.h"
#include "serve/syn_decision.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct syn_judge;

/*
 * syn_judge_create() - create a judge without a queue, for which hold_open() and hold_start() follow
 * @context: of its worker; must outlive it
 * Returns NULL if memory is short.
 */
struct syn_judge *syn_judge_create(struct serve_context *context);

/* Releases all withheld SYNs, frees all workers' released ones, and frees the judge. Call in the worker's thread. NULL is fine. */
void syn_judge_destroy(struct syn_judge *judge);

/* Applies new settings: ends withholding for SYNs that they don't grant (SYN_NOT_GRANTED). */
void syn_judge_again(struct syn_judge *judge);

/*
 * syn_judge_stop() - release all SYNs and give up the queue
 * @read: the queue gets no more packets: first read those that are in it
 * Call in the worker's thread, or in any thread if hold_start() wasn't called.
 */
void syn_judge_stop(struct syn_judge *judge, bool read);

/* ----- a withheld SYN, and the attempt to connect to its server: syn_attempt.c ----- */

/* One worker's part of withholding SYNs. */
struct syn_judge {
	struct serve_context *context;
	struct hold *hold;
	struct syn_attempt *attempts; /* the SYNs that this worker withholds */
};

/* The struct event of its deadline follows the struct in memory. After the release, the thread that takes it from the table owns it. */
struct syn_attempt {
	struct hold_syn hold; /* the first member, as the table points to it */
	struct syn_judge *judge;
	struct syn_facts facts;
	uint64_t came_us;
	struct limits_member member; /* it counts as one pending session of its client */
	bool unproven;               /* it counts as an unproven client, too */

	struct judgement_grant grant; /* the server's family is AF_UNSPEC if new settings have withdrawn the grant */
	struct serve_dial dial;       /* fd -1: the server can't be reached, for this reason: */
	struct serve_refusal refusal;
	uint64_t until_ms;   /* when its deadline is over */
	bool reached;        /* the server has answered, before the SYN was late */
	int registration;    /* with the worker's poller; POLLER_NONE: none, as after the release if there are several workers */
	uint32_t events;     /* before the release the latest, without EPOLLOUT; after it all */
	struct syn_attempt *prev, *next; /* judge->attempts */
};

/* Creates an attempt without a SYN and a socket, which the limits don't count yet. Returns NULL if memory is short. */
struct syn_attempt *syn_attempt_create(struct syn_judge *judge);

/*
 * syn_attempt_ask() - connect to the server, and withhold the SYN
 * @native: set with HOLD_REFUSE: how to refuse it (syn_packet.h)
 * If the connection fails at once, a blind client is refused; for others, and if descriptors are short, the session connects again and
 * tells the client the error. Unless HOLD_WITHHOLD is returned, the attempt holds nothing.
 */
enum hold_verdict syn_attempt_ask(struct syn_attempt *a, const struct hold_packet *packet, const struct serve_verdict *verdict,
				  uint8_t *native);

/* Handles an event. May free the attempt, or lose it to another worker that accepts the connection at once. */
void syn_attempt_on(struct syn_attempt *a, enum syn_event event);

/* Stops counting it: its session counts from now on, or it is gone. @context: of the calling worker, as below */
void syn_attempt_uncount(struct syn_attempt *a, struct serve_context *context);

/* Frees an attempt that was taken out of the table, and gives up the connection to the server. */
void syn_attempt_destroy(struct syn_attempt *a, struct serve_context *context);

/* Likewise for an attempt that no session has taken, which still counts. */
void syn_attempt_free(struct syn_judge *judge, struct syn_attempt *a);

#endif
