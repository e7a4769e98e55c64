/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * admission.c - is a valid request granted?
 *
 * What is asked first decides. Whoever may not use the converter at all is told nothing else: not
 * what it supports, nor what is wrong with the options or the server of the request.
 */
#include "config.h"

#include "convertd/admission.h"

#include "convertd/access.h"
#include "convertd/cookies.h"

#include <time.h>

static enum route_kind find_route(void *route, const struct in6_addr *address)
{
	return route_find(route, address);
}

static void check_destination(const struct settings *settings, struct route *route,
			      const struct request_features *features, const uint8_t *message,
			      struct request_decision *decision)
{
	const char *reason = NULL;

	switch (access_destination(&settings->access, &decision->address, decision->port,
				   find_route, route, &reason)) {
	case ACCESS_ALLOWED:
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

/* Section 6.2.7. Returns whether there is nothing to object to. */
static bool check_cookie(const struct settings *settings, const struct request_features *features,
			 const struct in6_addr *client, struct request_decision *decision)
{
	uint64_t epoch = (uint64_t)time(NULL) / settings->cookie_lifetime;
	const struct convert_span *cookie = &decision->cookie;
	uint8_t computed[COOKIES_LEN];

	if (!settings->cookies)
		return true;
	if (decision->has_cookie &&
	    cookies_check(settings->cookies, client, epoch, cookie->data, cookie->len))
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

void admission_check(const struct settings *settings, struct route *route,
		     const struct request_features *features, const union sockaddr_ip *client,
		     const uint8_t *message, struct request_decision *decision)
{
	struct in6_addr address = sockaddr_ip_in6(client);

	if (!access_client(&settings->access, &address)) {
		request_refuse(features, false, CONVERT_ERROR_NOT_AUTHORIZED, 0, "client denied",
			       decision);
		return;
	}
	if (check_cookie(settings, features, &address, decision) && decision->connect)
		check_destination(settings, route, features, message, decision);
}
