/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * admission.c - is a valid request granted?
 *
 * What is asked first decides. Whoever may not use the converter at all is told nothing else: not
 * what it supports, nor what is wrong with the options or the server of the request.
 */
#include "config.h"

#include "convertd/policy/admission.h"

#include "convertd/base/clock.h"
#include "convertd/policy/cookies.h"
#include "convertd/policy/demand.h"
#include "convertd/policy/families.h"
#include "convertd/base/log.h"

#include <time.h>

static enum access_verdict judge_destination(const struct admission *admission, const struct in6_addr *address,
					     uint16_t port, const char **reason)
{
	return access_destination(admission->terms->access, address, port, admission->find_route, admission->route,
				  reason);
}

bool admission_still_allows(const struct admission *admission, const union sockaddr_ip *server)
{
	struct in6_addr address = sockaddr_ip_in6(server);
	const char *reason;

	/* What can't be known now was known before. */
	switch (judge_destination(admission, &address, sockaddr_ip_port(server), &reason)) {
	case ACCESS_ALLOWED:
	case ACCESS_UNKNOWN:
		return true;
	case ACCESS_DENIED:
	case ACCESS_BROADCAST:
		break;
	}
	return false;
}

/* Where a family doesn't work here, the client had better connect directly. */
static void check_family(const struct request_features *features, struct request_decision *decision)
{
	bool v4 = IN6_IS_ADDR_V4MAPPED(&decision->address);

	if (!families_refuse(&decision->address, clock_now_ms()))
		return;
	request_refuse(features, decision->info, CONVERT_ERROR_NOT_AUTHORIZED, 0,
		       v4 ? "IPv4 doesn't work here" : "IPv6 doesn't work here", decision);
	decision->lacking = true;
}

static void check_destination(const struct admission *admission, const uint8_t *message,
			      struct request_decision *decision)
{
	const struct request_features *features = admission->terms->features;
	const char *reason = NULL;

	switch (judge_destination(admission, &decision->address, decision->port, &reason)) {
	case ACCESS_ALLOWED:
		check_family(features, decision);
		return;
	case ACCESS_DENIED:
		request_refuse(features, decision->info, CONVERT_ERROR_NOT_AUTHORIZED, 0, reason,
			       decision);
		return;
	case ACCESS_BROADCAST:
		request_refuse_malformed(message, reason, decision);
		return;
	case ACCESS_UNKNOWN:
		request_refuse(features, decision->info, CONVERT_ERROR_RESOURCE_EXCEEDED,
			       admission->terms->retry_delay, reason, decision);
		return;
	}
}

/* Section 6.2.7, where cookies are required of all. Returns whether there is nothing to object to. */
static bool check_required(const struct admission_terms *terms, const struct in6_addr *client,
			   struct request_decision *decision)
{
	uint64_t epoch = (uint64_t)time(NULL) / terms->cookie_lifetime;
	const struct convert_span *cookie = &decision->cookie;
	uint8_t computed[COOKIES_LEN];

	if (decision->has_cookie)
		decision->proven = cookies_prove(terms->cookies, client, epoch, cookie->data, cookie->len);
	if (decision->proven ||
	    (decision->has_cookie && cookies_check(terms->cookies, client, epoch, cookie->data, cookie->len)))
		return true;
	if (decision->has_cookie)
		request_refuse(terms->features, false, CONVERT_ERROR_NOT_AUTHORIZED, 0, "invalid cookie",
			       decision);
	else if (cookies_make(terms->cookies, client, epoch, computed))
		request_refuse_cookie(computed, sizeof(computed), "missing cookie", decision);
	else
		request_refuse(terms->features, false, CONVERT_ERROR_NOT_AUTHORIZED, 0, "missing cookie",
			       decision);
	return false;
}

/* Likewise, where one is demanded for now. */
static void demand_cookie(const struct admission *admission, const struct in6_addr *client,
			  struct request_decision *decision)
{
	const uint8_t *cookie = decision->has_cookie ? decision->cookie.data : NULL;
	uint8_t computed[COOKIES_LEN];

	/* A request has room for one cookie, and that is a fixed one. */
	if (admission->terms->cookies ||
	    !demand_make(admission->demand, client, cookie, decision->cookie.len, computed)) {
		decision->action = REQUEST_PROVE;
		return;
	}
	request_refuse_cookie(computed, sizeof(computed), "missing cookie", decision);
	decision->demanded = true;
}

/* Returns whether there is nothing to object to. */
static bool check_cookie(const struct admission *admission, const struct admission_client *client,
			 struct request_decision *decision)
{
	const struct admission_terms *terms = admission->terms;

	if (terms->cookies && !check_required(terms, &client->address, decision))
		return false;
	if (!terms->cookies && decision->has_cookie)
		decision->proven = demand_check(admission->demand, &client->address, decision->cookie.data,
						decision->cookie.len);
	if (client->proven || decision->proven ||
	    !demand_is_for(admission->demand, admission->limits, &client->address))
		return true;
	demand_cookie(admission, &client->address, decision);
	return false;
}

void admission_check(const struct admission *admission, const struct admission_client *client, const uint8_t *message,
		     struct request_decision *decision)
{
	const struct admission_terms *terms = admission->terms;

	if (!access_client(terms->access, &client->address)) {
		request_refuse(terms->features, false, CONVERT_ERROR_NOT_AUTHORIZED, 0, "client denied",
			       decision);
		return;
	}
	if (check_cookie(admission, client, decision) && decision->connect)
		check_destination(admission, message, decision);
}
