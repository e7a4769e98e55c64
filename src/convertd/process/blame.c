/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blame.c - decides who is to blame when a server isn't reached: the server, or this converter
 *
 * If the server, or a router on the way to it, reports an error, the client gets that error as Section 6.2.8 has it,
 * and its application gets the errno of a direct connection. But if this host has no route, or its own router or its
 * whole IPv6 is silent, a direct connection may well succeed. Then we send Not Authorized, with which the client goes
 * on without us. Network Failure would fit as well, but its delay keeps clients from sending any request (Section
 * 6.2.8), even for the family that works.
 *
 * A prohibit route is the administrator's decision: the client gets the error that a router would send.
 *
 * Servers are tested (families.h) in the worker that has noticed the failure.
 */
#include "config.h"

#include "convertd/process/blame.h"

#include "common/clock.h"
#include "convertd/policy/judgement.h"
#include "convertd/policy/families.h"
#include "daemon/log.h"
#include "convertd/net/probe.h"
#include "convertd/net/route.h"
#include "convertd/config/effective_settings.h"
#include "serve/plugs.h"
#include "convertd/config/settings.h"

#include <errno.h>
#include <event2/event.h>
#include <string.h>

struct downstream_error blame_ourselves(void)
{
	return (struct downstream_error){ .code = CONVERT_ERROR_NOT_AUTHORIZED, .ours = true };
}

static void on_tested(const union sockaddr_ip *server, int error)
{
	if (!error || error == -ECONNREFUSED)
		families_answered(server, clock_now_ms());
	else
		families_tested_in_vain(server, clock_now_ms());
}

static void test(struct request_context *context, const union sockaddr_ip *server)
{
	const struct settings *settings = context->effective->settings;
	struct downstream_plan plan = { .server = server, .route = context->route, .congestion = "" };

	/* Rules may have changed since a client asked for it. */
	if (!admission_still_allows(&context->admission, server))
		return;
	/* There is no client whose address could be kept. */
	plan.choice = settings->sources.preserve ?
			      SOURCES_ANY :
			      sources_choose(&settings->sources, server, server, &plan.source);
	probes_start(context->probes, &plan, on_tested);
}

/* Starts the tests that are due, and sets the timer for the next. */
static void run_tests(struct request_context *context)
{
	uint64_t now_ms = clock_now_ms(), next_ms = 0;

	for (int family = 0; family < FAMILY_COUNT; family++) {
		union sockaddr_ip server;
		uint64_t next;

		if (families_take_test((enum family)family, now_ms, &server))
			test(context, &server);
		next = families_next_test_ms((enum family)family);
		if (next && (!next_ms || next < next_ms))
			next_ms = next;
	}
	if (next_ms) {
		uint64_t wait_ms = next_ms > now_ms ? next_ms - now_ms : 1;
		struct timeval wait = { .tv_sec = (time_t)(wait_ms / 1000),
					.tv_usec = (suseconds_t)(wait_ms % 1000 * 1000) };

		event_add(context->tests, &wait);
	}
}

static void on_tests(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	run_tests(arg);
}

int blame_init(struct request_context *context)
{
	context->tests = event_new(context->base, -1, 0, on_tests, context);
	return context->tests ? 0 : -ENOMEM;
}

void blame_fini(struct request_context *context)
{
	if (context->tests)
		event_free(context->tests);
}

static void tell_unrouted(struct request_context *context, const union sockaddr_ip *server, int error)
{
	char text[SOCKADDR_STRLEN];
	unsigned suppressed;

	/* If the family has no route at all, the log has that already. */
	if (families_is_routed(families_of(server)) &&
	    log_limit_pass(context->unrouted, &suppressed))
		log_warning("this host has no way to %s (%s): clients are told to connect directly; add "
			    "a route (%u more since the last such line)",
			    sockaddr_ip_format(server, text), strerror(-error), suppressed);
}

/* Tells whether this host itself has refused to connect, before it sent any packet. */
static bool is_unrouted(int fd, int error)
{
	return fd < 0 && (error == -ENETUNREACH || error == -EHOSTUNREACH || error == -EINVAL ||
			  error == -EAFNOSUPPORT);
}

/* Tells whether the router on the way to the server is gone. A missing server on this host's own network looks the same. */
static bool is_router_gone(struct request_context *context, const struct downstream_error *refusal,
			   const union sockaddr_ip *server)
{
	struct in6_addr address = sockaddr_ip_in6(server), router;

	return refusal->said_here && route_gateway(context->route, &address, &router);
}

struct downstream_error blame_refusal(struct request_context *context, int fd,
				      const union sockaddr_ip *server, uint64_t asked_ms, int error)
{
	struct downstream_error refusal = downstream_refusal(fd, server, error);
	bool ours = false;
	uint64_t now_ms = clock_now_ms();
	bool silent = error == -ETIMEDOUT;

	if (is_unrouted(fd, error)) {
		tell_unrouted(context, server, error);
		ours = true;
	} else if (error == -ECONNREFUSED) {
		families_answered(server, now_ms);
	} else if (fd >= 0 && is_router_gone(context, &refusal, server)) {
		families_unanswered(server, asked_ms, now_ms, true);
		ours = true;
	} else if (silent ? now_ms - asked_ms >= FAMILIES_PATIENCE_MS :
			    refusal.code == CONVERT_ERROR_DESTINATION_UNREACHABLE) {
		ours = families_unanswered(server, asked_ms, now_ms, silent);
	}
	run_tests(context);
	return ours ? blame_ourselves() : refusal;
}

bool blame_silence(struct request_context *context, const union sockaddr_ip *server, uint64_t asked_ms)
{
	bool ours = families_unanswered(server, asked_ms, clock_now_ms(), true);

	run_tests(context);
	return ours;
}

void blame_nobody(const union sockaddr_ip *server)
{
	families_answered(server, clock_now_ms());
}

void blame_again(struct request_context *context, const union sockaddr_ip *server)
{
	families_asked(server, clock_now_ms());
	run_tests(context);
}
