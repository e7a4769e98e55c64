/* SPDX-License-Identifier: BSD-3-Clause */
/* judgement.h - the one place where it is decided what becomes of a request (no I/O) */
#ifndef CONVERTD_JUDGEMENT_H
#define CONVERTD_JUDGEMENT_H

#include "common/sockaddr.h"
#include "convertd/policy/access.h"
#include "convertd/policy/limits.h"
#include "convertd/policy/outcome.h"
#include "convertd/policy/request.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ----- is a valid request granted to this client? (no I/O of its own) ----- */

struct cookies;
struct demand;
struct limits;

/* What the operator has said about who may have what. It never changes; a reload makes new ones. */
struct admission_rules {
	unsigned number; /* no other rules of this process have the same */
	const struct request_features *features;
	const struct access *access;
	const struct cookies *cookies; /* NULL: none are required */
	unsigned cookie_lifetime;      /* seconds of an epoch */
	uint8_t retry_delay;           /* seconds, told to those who exceed a limit */
};

/* What one thread judges requests by. */
struct admission {
	const struct admission_rules *rules; /* those in force */
	struct demand *demand;               /* are cookies demanded where none are required? */
	struct limits *limits;
	access_route_fn *find_route; /* where does the host send what goes to an address? */
	void *route;                 /* its argument */
};

/* What is known of a client. */
struct admission_client {
	struct in6_addr address; /* IPv4 as v4-mapped */
	bool proven;             /* its handshake has shown that it gets what is sent to its address */
};

/*
 * admission_check() - may this client have what it asks for?
 * @message: the request
 * @decision: what request_decide() made of it, valid. Stays as it is if the request is granted, becomes an
 *            answer with an Error TLV if it isn't, and REQUEST_PROVE where a cookie is demanded and none can be given
 */
void admission_check(const struct admission *admission, const struct admission_client *client, const uint8_t *message,
		     struct request_decision *decision);

/*
 * admission_still_allows() - tells whether clients may be connected to @server, which one has asked for earlier
 * Rules and routes may have changed since.
 */
bool admission_still_allows(const struct admission *admission, const union sockaddr_ip *server);

/* Where a request was found. */
enum judgement_place {
	JUDGEMENT_STREAM,   /* in what a connection has brought so far: more may follow, and it can be answered */
	JUDGEMENT_SYN,      /* in a SYN that may be withheld: there is no connection yet that could be answered */
	JUDGEMENT_WITHHELD, /* in a SYN that is withheld already, and granted by rules that have changed since */
};

/* A server that was granted to a SYN, by the rules of that number. */
struct judgement_grant {
	unsigned rules;
	union sockaddr_ip server;
	bool mptcp; /* towards the server */
	const struct judgement_grant *next; /* another one, of a SYN of the same addresses; or NULL */
};

/* How a client hears what has become of its request (doc/private-tlvs.md). */
enum judgement_voice {
	JUDGEMENT_RESPONSE, /* by the protocol's messages */
	JUDGEMENT_SILENT,   /* by nothing but the server's bytes, or a reset */
	JUDGEMENT_RESET,    /* it can't be told at all: its connection is reset, its SYN refused */
	JUDGEMENT_VOICES
};

/* What is judged. */
struct judgement_case {
	enum judgement_place place;
	const uint8_t *bytes; /* all that has arrived, the request first */
	size_t len;
	struct admission_client client;
	const struct judgement_grant *grant; /* STREAM: what SYNs of its addresses were granted, if they were withheld; or NULL */
	/*
	 * STREAM: counted already. SYN: limits_enter() has not been called for it, and is called if the SYN is
	 * to be withheld; only its owner and kind are set. WITHHELD: NULL, as it has its room.
	 */
	struct limits_member *member;
	uint64_t now_ms; /* clock_now_ms() */
	bool mptcp;      /* the client's connection is one of Multipath TCP, or its SYN asks for that */
	/*
	 * STREAM: the SYN+ACK has acknowledged the SYN's data and has timestamps, which says that the server was reached. The
	 * client sees the same, so that both know whether a silent request has a response. SYN: not used, as that is still open.
	 */
	bool confirmed;
	bool syn_data; /* STREAM: the SYN+ACK has acknowledged the SYN's data */
};

/*
 * The verdict: request.action, and what its caller has to know to carry it out.
 *
 *     action           STREAM                                   SYN
 *     REQUEST_WAIT     reads on                                 passes the SYN on: it asks for nothing yet
 *     REQUEST_PROVE    judges again after the third ACK         passes it on: its connection is judged
 *     REQUEST_CONNECT  asks the server, or takes what was       asks the server and withholds the SYN if
 *                      done for the SYN (by_grant)              withhold says so, else passes it on
 *     REQUEST_ANSWER   answers                                  passes it on: its connection is answered
 *     REQUEST_IGNORE   closes without a word                    passes or drops it, as the operator says
 *     REQUEST_RESET    resets the connection                    passes it on: its connection is reset
 *
 * What can't be told to a client that wants silence ends in a reset, whatever the action is: voice says so.
 */
struct judgement {
	struct request_decision request;
	enum judgement_voice voice;
	enum outcome exceeded; /* ANSWER: the limit that is exceeded, or OUTCOME_NONE */
	bool by_grant;         /* CONNECT: by what was granted to the SYN, whose server was asked then: */
	const struct judgement_grant *grant;
	bool error_taken;      /* ANSWER: limits_take_error() has counted this error already */
	bool withhold;         /* CONNECT, SYN: the member has room among those that are withheld. Whoever doesn't */
			       /* withhold the SYN after all gives it back by limits_leave(). */
};

/*
 * judgement_make() - what becomes of a request
 *
 * The order is what a client sees: first whether these bytes are a request, then who asks, then for what (judgement.h),
 * last whether there is room. Nothing is taken from the limits for what is refused, but an error's place in the
 * rates where a cookie is demanded in a stream.
 */
void judgement_make(const struct admission *admission, const struct judgement_case *c, struct judgement *judgement);

#endif
