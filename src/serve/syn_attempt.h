/* SPDX-License-Identifier: BSD-3-Clause */
/* syn_attempt.h - a withheld SYN, and the attempt to connect to its server */
#ifndef SERVE_SYN_ATTEMPT_H
#define SERVE_SYN_ATTEMPT_H

#include "convertd/policy/judgement.h"
#include "convertd/policy/limits.h"
#include "hold/hold.h"
#include "serve/plugs.h"
#include "serve/syn_decision.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct request_context;

/* One worker's part of withholding SYNs. */
struct syn_judge {
	struct request_context *context;
	struct hold *hold;
	struct syn_attempt *attempts; /* the SYNs that this worker withholds */
	struct syn_attempt *spare;    /* for the next SYN; NULL: none is at hand */
};

/* The struct event of its deadline follows the struct in memory. Once it was released, whoever takes it out of the table has it. */
struct syn_attempt {
	struct hold_syn hold; /* first: the table has the attempt as this */
	struct syn_judge *judge;
	struct syn_facts facts;
	uint64_t came_us;
	struct limits_member member; /* it counts as one pending session of its client */
	bool unproven;               /* it counts as an unproven client, too (cookies.h) */
	bool far;                    /* its client is known to be far (far_clients.h) */

	struct judgement_grant grant; /* the server's family is AF_UNSPEC where none is granted any more */
	int fd;                       /* the server's socket; -1: the server can't be reached, for this reason: */
	struct downstream_error refusal;
	bool reached;        /* the server has answered */
	int registration;    /* of the socket with the worker's poller, or POLLER_NONE: as it is once the SYN was released, */
			     /* unless there is no other worker */
	uint32_t events;     /* what the poller has told since it was released */
	struct syn_attempt *prev, *next; /* judge->attempts */
};

/* An attempt without a SYN and a socket, counted by nobody yet; NULL without memory. */
struct syn_attempt *syn_attempt_create(struct syn_judge *judge);

/*
 * syn_attempt_ask() - connects to the server, and withholds the SYN
 * @native: set with HOLD_REFUSE: how it is refused (syn_packet.h)
 * Where the connection fails at once, the session makes it again and tells the client what is wrong; a blind client is
 * refused. Unless HOLD_WITHHOLD is returned, the attempt is as if nothing had happened.
 */
enum hold_verdict syn_attempt_ask(struct syn_attempt *a, const struct hold_packet *packet, const struct request_decision *request,
				  uint8_t *native);

/* Something has happened; the attempt may be gone afterwards, as another worker may have accepted the connection already. */
void syn_attempt_on(struct syn_attempt *a, enum syn_event event);

/* Resets the connection to the server, if there is one. */
void syn_attempt_close(struct syn_attempt *a);

/* Frees an attempt that somebody has taken out of the table, and resets the connection to the server. */
void syn_attempt_destroy(struct syn_attempt *a);

/* The same for one that nobody has taken: the limits still count it. */
void syn_attempt_free(struct syn_judge *judge, struct syn_attempt *a);

#endif
