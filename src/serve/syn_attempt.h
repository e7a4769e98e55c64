/* SPDX-License-Identifier: BSD-3-Clause */
/* syn_attempt.h - a withheld SYN, and the attempt to connect to its server; for syn_judge.c alone */
#ifndef SERVE_SYN_ATTEMPT_H
#define SERVE_SYN_ATTEMPT_H

#include "hold/syn_packet.h"
#include "convertd/observe/metrics.h"
#include "convertd/policy/judgement.h"
#include "hold/hold_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event;
struct request_context;
struct syn_attempt;
struct syn_queue;

/* How often released SYNs are searched for those whose time is over. */
#define SYN_ATTEMPT_EXPIRE_SECONDS 1

/* What becomes of a SYN. */
enum syn_verdict {
	SYN_WITHHOLD,
	SYN_DROP_REPEATED,
	SYN_DROP_FOREIGN,
	SYN_DROP_SILENT,      /* nobody has said anything about its server */
	SYN_PASS,             /* as it is: it asks for nothing that a SYN+ACK could confirm */
	SYN_PASS_CONFIRMED,   /* with a mark: its SYN+ACK confirms */
	SYN_PASS_UNCONFIRMED, /* as it is, and its SYN+ACK confirms nothing */
	SYN_PASS_REFUSED,     /* without MP_CAPABLE: an Error TLV comes behind its SYN+ACK */
	SYN_REFUSE,           /* with a mark: it is refused as the network does it */
	SYN_VERDICT_COUNT
};

struct syn_judge {
	struct request_context *context;
	struct withheld_table *table;
	struct syn_queue *queue; /* NULL: off */
	struct event *readable;
	struct event *flush;  /* active: verdicts wait for the end of this round of the loop */
	struct event *expire; /* pending: connections of released SYNs are waited for */
	uint32_t next_id;     /* what the next packet's number is unless some were missed; 0: none has come yet */
	struct syn_attempt *attempts; /* the SYNs that this worker withholds */
	struct syn_attempt *spare;    /* for the next SYN; NULL: none is at hand */
};

/* A withheld SYN, and the attempt to connect to its server. The struct event follows the struct in memory. */
struct syn_attempt {
	struct withheld_syn syn; /* first: others know and free the attempt as this */
	struct syn_judge *judge;
	bool silent; /* its client wants no response where its SYN+ACK says all */
	bool blind;  /* its client can't take a response off: what isn't success is said as the network says it */
	bool mptcp;  /* blind: as Multipath TCP or not at all */
	bool falls_back; /* its SYN has MP_CAPABLE: once that is sent again, its client goes without Multipath TCP */
	bool late;   /* blind: it can't be let go any more */
	bool answered; /* late, and the server has answered: the client's next SYN is waited for */
	uint16_t repeat; /* how often its request was made before */
	unsigned most_ms; /* its client says for how long it may be withheld, in milliseconds; UINT_MAX: it doesn't */
	struct syn_attempt *prev, *next; /* judge->attempts */
};

/* An attempt without a SYN and a socket, counted by nobody yet; NULL without memory. */
struct syn_attempt *syn_attempt_create(struct syn_judge *judge);

/*
 * syn_attempt_ask() - ask the server, and withhold the SYN
 * @native: set with SYN_REFUSE: how it is refused (native_refusal.h)
 * Where the connection fails at once, the session makes it again and tells the client what is wrong; a blind one is
 * refused. Unless SYN_WITHHOLD is returned, the attempt is as if nothing had happened.
 */
enum syn_verdict syn_attempt_ask(struct syn_attempt *a, const uint8_t *packet, size_t len, const struct syn_packet *syn,
				 const struct request_decision *request, uint8_t *native);

/*
 * syn_attempt_release() - let go what is withheld
 * @verdict: one of SYN_PASS_…, not for a blind one unless it is SYN_PASS_CONFIRMED
 * @counted: how the metrics count it
 * @keep: its connection finds what was done for it; else that is undone, as if it had never been withheld
 * The attempt may be gone afterwards, as another worker may have accepted the connection already.
 */
void syn_attempt_release(struct syn_attempt *a, enum syn_verdict verdict, enum metrics_syn counted, bool keep,
			 const char *why);

/* Refuses a blind one, and resets the connection to the server. The attempt is gone. */
void syn_attempt_refuse(struct syn_attempt *a, uint8_t native, const char *why);

/* The server isn't to be connected to any more: nothing that was done is found by the session. */
void syn_attempt_forbid(struct syn_attempt *a, const char *why);

/* The end of withholding: all go on, and the blind ones are refused. */
void syn_attempts_stop(struct syn_judge *judge);

/* Changes a packet so that it has the effect that the verdict names. @native: for SYN_REFUSE */
void syn_attempt_change(uint8_t *packet, struct syn_packet *syn, enum syn_verdict verdict, uint8_t native);

/* Frees what no connection has taken. */
void syn_attempt_free(struct syn_judge *judge, struct withheld_syn *syn);

#endif
