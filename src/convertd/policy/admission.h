/* SPDX-License-Identifier: BSD-3-Clause */
/* admission.h - is a valid request granted? */
#ifndef CONVERTD_ADMISSION_H
#define CONVERTD_ADMISSION_H

#include "common/sockaddr.h"
#include "convertd/policy/request.h"
#include "convertd/net/route.h"
#include "convertd/config/settings.h"

struct demand;

/*
 * admission_check() - may this client have what it asks for?
 * @demand: whether cookies are demanded where none are required otherwise
 * @proven: the client has proved its address otherwise
 * @message: the request
 * @decision: what request_decide() made of it, valid; left alone if it is granted, else changed to
 *            the refusal
 */
void admission_check(const struct settings *settings, struct route *route, struct demand *demand, struct limits *limits,
		     const struct request_features *features, const union sockaddr_ip *client,
		     bool proven, const uint8_t *message, struct request_decision *decision);

/*
 * admission_still_allows() - may a client be connected to @server, after something was learned of it?
 * False where it has turned out to be this host, unless a rule opens that address.
 */
bool admission_still_allows(const struct settings *settings, struct route *route,
			    const union sockaddr_ip *server);

#endif
