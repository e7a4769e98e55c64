/* SPDX-License-Identifier: BSD-3-Clause */
/* judgement.h - decides what the converter does with a request; no other place does (no I/O) */
#ifndef CONVERTD_JUDGEMENT_H
#define CONVERTD_JUDGEMENT_H

#include "common/sockaddr.h"
#include "convertd/policy/access.h"
#include "daemon/limits.h"
#include "daemon/outcome.h"
#include "convertd/policy/request.h"
#include "serve/plugs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ----- whether a client gets what its valid request asks for (no I/O of its own) ----- */

struct cookies;
struct demand;
struct limits;

/* The operator's rules about which clients may reach which servers. They never change; a reload makes new ones. */
struct admission_rules {
	unsigned number; /* differs from that of all other rules of this process: serve_settings.number */
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

/*
 * admission_check() - decide whether a client gets what it asks for
 * @message: the request
 * @decision: the result of request_decide(), valid. Stays as it is if the request is granted, becomes an answer with
 *   an Error TLV if it isn't, and REQUEST_PROVE if a cookie is demanded and we can't give one
 */
void admission_check(const struct admission *admission, const struct judgement_client *client, const uint8_t *message,
		     struct request_decision *decision);

/*
 * Tells whether clients may still be connected to @server, for which one has asked before: rules and routes may have
 * changed since.
 */
bool admission_still_allows(const struct admission *admission, const union sockaddr_ip *server);

/* The verdict; serve/plugs.h explains its actions, and all members but the first. */
struct judgement {
	struct request_decision request;
	enum judgement_voice voice;
	enum outcome exceeded; /* ANSWER: the limit that is exceeded, or OUTCOME_NONE */
	bool by_grant;         /* CONNECT: an earlier grant to the SYN allows it; the server was asked then. That grant: */
	const struct judgement_grant *grant;
	bool error_taken;      /* ANSWER: limits_take_error() has counted this error already */
	bool withhold;         /* CONNECT, SYN: the member is counted among the withheld SYNs */
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
