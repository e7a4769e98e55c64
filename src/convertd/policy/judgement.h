/* SPDX-License-Identifier: BSD-3-Clause */
/* judgement.h - decides what the converter does with a request; no other place does (no I/O) */
#ifndef CONVERTD_JUDGEMENT_H
#define CONVERTD_JUDGEMENT_H

#include "common/sockaddr.h"
#include "convertd/policy/access.h"
#include "daemon/limits.h"
#include "daemon/outcome.h"
#include "convertd/policy/request.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ----- whether a client gets what its valid request asks for (no I/O of its own) ----- */

struct cookies;
struct demand;
struct limits;

/* The operator's rules about which clients may reach which servers. They never change; a reload makes new ones. */
struct admission_rules {
	unsigned number; /* differs from that of all other rules of this process */
	const struct request_features *features;
	const struct access *access;
	const struct cookies *cookies; /* NULL: none are required */
	unsigned cookie_lifetime;      /* seconds of an epoch */
	uint8_t retry_delay;           /* seconds, told to clients that exceed a limit */
};

/* What a thread needs to judge requests. */
struct admission {
	const struct admission_rules *rules; /* those in force */
	struct demand *demand;               /* tells whether cookies are demanded where none are required */
	struct limits *limits;
	access_route_fn *find_route; /* finds where this host sends packets to an address */
	void *route;                 /* its argument */
};

/* What we know of a client. */
struct admission_client {
	struct in6_addr address; /* IPv4 as v4-mapped */
	bool proven;             /* its handshake has shown that it receives packets at its address */
};

/*
 * admission_check() - decide whether a client gets what it asks for
 * @message: the request
 * @decision: the result of request_decide(), valid. Stays as it is if the request is granted, becomes an answer with
 *   an Error TLV if it isn't, and REQUEST_PROVE if a cookie is demanded and we can't give one
 */
void admission_check(const struct admission *admission, const struct admission_client *client, const uint8_t *message,
		     struct request_decision *decision);

/*
 * Tells whether clients may still be connected to @server, for which one has asked before: rules and routes may have
 * changed since.
 */
bool admission_still_allows(const struct admission *admission, const union sockaddr_ip *server);

/* Where a request was found. */
enum judgement_place {
	JUDGEMENT_STREAM,   /* in the bytes that a connection has brought so far: more may follow, and we can answer */
	JUDGEMENT_SYN,      /* in a SYN that may be withheld: there is no connection yet on which we could answer */
	JUDGEMENT_WITHHELD, /* in a SYN that is withheld, and that earlier rules have granted */
};

/* The server that we granted to a SYN, by the rules of that number. */
struct judgement_grant {
	unsigned rules;
	union sockaddr_ip server;
	bool mptcp; /* towards the server */
	const struct judgement_grant *next; /* the next grant, to another SYN with the same addresses; or NULL */
};

/* The input of judgement_make(). */
struct judgement_case {
	enum judgement_place place;
	const uint8_t *bytes; /* all bytes that have arrived, the request first */
	size_t len;
	struct admission_client client;
	const struct judgement_grant *grant; /* STREAM: the grants to withheld SYNs with its addresses; or NULL */
	/*
	 * STREAM: counted already. SYN: only its owner and kind are set; judgement_make() calls limits_enter() if the
	 * SYN is to be withheld. WITHHELD: NULL, since it is counted already.
	 */
	struct limits_member *member;
	uint64_t now_ms; /* clock_now_ms() */
	bool mptcp;      /* the client's connection uses Multipath TCP, or its SYN asks for it */
	/*
	 * STREAM: the SYN+ACK has acknowledged the SYN's data and has timestamps, which says that the server was
	 * reached. The client sees the same, so both sides know whether a silent request has a response. SYN: unused,
	 * since this is still open.
	 */
	bool confirmed;
	bool syn_data; /* STREAM: the SYN+ACK has acknowledged the SYN's data */
};

/*
 * The verdict: request.action, and the facts with which the caller carries it out.
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
 * If a client wants silence and couldn't be told the result, voice is JUDGEMENT_RESET, and the caller resets the
 * connection whatever the action is.
 */
struct judgement {
	struct request_decision request;
	enum judgement_voice voice;
	enum outcome exceeded; /* ANSWER: the limit that is exceeded, or OUTCOME_NONE */
	bool by_grant;         /* CONNECT: an earlier grant to the SYN allows it; the server was asked then. That grant: */
	const struct judgement_grant *grant;
	bool error_taken;      /* ANSWER: limits_take_error() has counted this error already */
	bool withhold;         /* CONNECT, SYN: the member is counted among the withheld SYNs. A caller that */
			       /* doesn't withhold the SYN after all calls limits_leave(). */
};

/*
 * judgement_make() - judge a request
 *
 * The order is the one that a client sees: first whether the bytes are a request, then who asks, then for what, last
 * whether there is room. A refused request uses up no limit, except the rates of errors if it gets the error that
 * demands a cookie.
 */
void judgement_make(const struct admission *admission, const struct judgement_case *c, struct judgement *judgement);

#endif
