/* SPDX-License-Identifier: BSD-3-Clause */
/* admission.h - is a valid request granted to this client? (no I/O of its own) */
#ifndef CONVERTD_ADMISSION_H
#define CONVERTD_ADMISSION_H

#include "common/sockaddr.h"
#include "convertd/policy/access.h"
#include "convertd/policy/request.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cookies;
struct demand;
struct limits;

/* What the operator has said about who may have what. It never changes; a reload makes new ones. */
struct admission_terms {
	unsigned number; /* no other terms of this process have the same */
	const struct request_features *features;
	const struct access *access;
	const struct cookies *cookies; /* NULL: none are required */
	unsigned cookie_lifetime;      /* seconds of an epoch */
	uint8_t retry_delay;           /* seconds, told to those who exceed a limit */
};

/* What one thread judges requests by. */
struct admission {
	const struct admission_terms *terms; /* those in force */
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

#endif
