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
#include "convertd/policy/access.h"
#include "convertd/policy/cookies.h"
#include "convertd/policy/demand.h"
#include "convertd/policy/families.h"
#include "convertd/base/log.h"
#include "convertd/policy/own.h"
#include "convertd/config/shared.h"

#include <time.h>

struct place_finder {
	const struct settings *settings;
	struct route *route;
	uint16_t port; /* of the server that is asked for */
};

/* What a NAT in front of this host leads to it is as much its own as what the routes say is. */
static enum route_kind find_route(void *arg, const struct in6_addr *address)
{
	const struct place_finder *finder = arg;

	if (own_is_told(&finder->settings->own, address) ||
	    shared_has(&finder->settings->shared, address) ||
	    own_is_learned(address, finder->port, clock_now_ms()))
		return ROUTE_OWN;
	return route_find(finder->route, address);
}

static enum access_verdict judge_destination(const struct settings *settings, struct route *route,
					     const struct in6_addr *address, uint16_t port,
					     const char **reason)
{
	struct place_finder finder = { settings, route, port };

	return access_destination(&settings->access, address, port, find_route, &finder, reason);
}

bool admission_still_allows(const struct settings *settings, struct route *route,
			    const union sockaddr_ip *server)
{
	struct in6_addr address = sockaddr_ip_in6(server);
	const char *reason;

	/* What can't be known now was known before. */
	switch (judge_destination(settings, route, &address, sockaddr_ip_port(server), &reason)) {
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

static void check_destination(const struct settings *settings, struct route *route,
			      const struct request_features *features, const uint8_t *message,
			      struct request_decision *decision)
{
	const char *reason = NULL;

	switch (judge_destination(settings, route, &decision->address, decision->port, &reason)) {
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
			       (uint8_t)settings->retry_delay, reason, decision);
		return;
	}
}

/* Section 6.2.7, where cookies are required of all. Returns whether there is nothing to object to. */
static bool check_required(const struct settings *settings, const struct request_features *features,
			   const struct in6_addr *client, struct request_decision *decision)
{
	uint64_t epoch = (uint64_t)time(NULL) / settings->cookie_lifetime;
	const struct convert_span *cookie = &decision->cookie;
	uint8_t computed[COOKIES_LEN];

	if (decision->has_cookie)
		decision->proven = cookies_prove(settings->cookies, client, epoch, cookie->data,
						 cookie->len);
	if (decision->proven || (decision->has_cookie &&
				 cookies_check(settings->cookies, client, epoch, cookie->data,
					       cookie->len)))
		return true;
	if (decision->has_cookie)
		request_refuse(features, false, CONVERT_ERROR_NOT_AUTHORIZED, 0, "invalid cookie",
			       decision);
	else if (cookies_make(settings->cookies, client, epoch, computed))
		request_refuse_cookie(computed, sizeof(computed), "missing cookie", decision);
	else
		request_refuse(features, false, CONVERT_ERROR_NOT_AUTHORIZED, 0, "missing cookie",
			       decision);
	return false;
}

/* Likewise, where one is demanded for now. */
static void demand_cookie(const struct settings *settings, struct demand *demand,
			  const struct in6_addr *client, struct request_decision *decision)
{
	const uint8_t *cookie = decision->has_cookie ? decision->cookie.data : NULL;
	uint8_t computed[COOKIES_LEN];

	/* A request has room for one cookie, and that is a fixed one. */
	if (settings->cookies || !demand_make(demand, client, cookie, decision->cookie.len, computed)) {
		decision->action = REQUEST_PROVE;
		return;
	}
	request_refuse_cookie(computed, sizeof(computed), "missing cookie", decision);
	decision->demanded = true;
}

/* Returns whether there is nothing to object to. */
static bool check_cookie(const struct settings *settings, struct demand *demand, struct limits *limits,
			 const struct request_features *features, const struct in6_addr *client,
			 bool proven, struct request_decision *decision)
{
	if (settings->cookies && !check_required(settings, features, client, decision))
		return false;
	if (!settings->cookies && decision->has_cookie)
		decision->proven = demand_check(demand, client, decision->cookie.data,
						decision->cookie.len);
	if (proven || decision->proven || !demand_is_for(demand, limits, client))
		return true;
	demand_cookie(settings, demand, client, decision);
	return false;
}

/* A probe of ours that has come back to us: its server is this host. */
static bool is_own_probe(const struct request_decision *decision)
{
	union sockaddr_ip server;
	struct in6_addr address;

	if (!decision->has_cookie || decision->connect ||
	    !own_read_token(decision->cookie.data, decision->cookie.len, &server))
		return false;
	address = sockaddr_ip_in6(&server);
	own_learn(&address, sockaddr_ip_port(&server), clock_now_ms());
	return true;
}

void admission_check(const struct settings *settings, struct route *route, struct demand *demand, struct limits *limits,
		     const struct request_features *features, const union sockaddr_ip *client,
		     bool proven, const uint8_t *message, struct request_decision *decision)
{
	struct in6_addr address = sockaddr_ip_in6(client);

	if (is_own_probe(decision)) {
		request_refuse(features, false, CONVERT_ERROR_NOT_AUTHORIZED, 0,
			       "the request comes from this converter", decision);
		return;
	}
	if (!access_client(&settings->access, &address)) {
		request_refuse(features, false, CONVERT_ERROR_NOT_AUTHORIZED, 0, "client denied",
			       decision);
		return;
	}
	if (check_cookie(settings, demand, limits, features, &address, proven, decision) &&
	    decision->connect)
		check_destination(settings, route, features, message, decision);
}
