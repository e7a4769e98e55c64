/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blame.c - determines which side failed when a server isn't reached: the server's, or this converter's
 *
 * If the server, or a router on the way to it, reports an error, the client gets that error as Section 6.2.8 has it,
 * and its application gets the errno of a direct connection. But if this host has no route, or its own router or its
 * whole IPv6 is silent, a direct connection may well succeed. Then we send Not Authorized, with which the client goes
 * on without us. Network Failure would fit as well, but its delay keeps clients from sending any request (Section
 * 6.2.8), even for the family that works.
 *
 * A prohibit route is the administrator's decision: the client gets the error that a router would send.
 *
 * The worker that has noticed a failure tests servers of that family (families.h). It tests only servers that a client
 * has just asked for, or that have answered before, and PROBES_MAX of them at a time, so that no server is sent much
 * more than clients send anyway. A probe connects, for PROBE_SECONDS at most, and resets the connection. No session
 * waits for one.
 */
#include "config.h"

#include "convertd/process/converter.h"

#include "common/clock.h"
#include "convertd/policy/families.h"
#include "daemon/log.h"
#include "convertd/net/downstream.h"
#include "convertd/config/effective_settings.h"
#include "relay/relay.h"
#include "convertd/config/convertd_settings.h"

#include <errno.h>
#include <event2/event.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The probes that a worker may have under way, and the seconds that a server has to answer. */
#define PROBES_MAX 8
#define PROBE_SECONDS 4

struct probe {
	struct event *event; /* NULL: the place is free */
	int fd;
	union sockaddr_ip server;
};

/* A worker's tests of servers. */
struct blame {
	struct event *timer; /* the next test of an address family that doesn't work */
	struct probe probe[PROBES_MAX];
};

/* @error: 0 if the server was reached, or the -errno of connecting, -ETIMEDOUT if it was silent */
static void note_result(const union sockaddr_ip *server, int error)
{
	if (!error || error == -ECONNREFUSED)
		families_answered(server, clock_now_ms());
	else
		families_test_failed(server, clock_now_ms());
}

static void probe_end(struct probe *probe)
{
	event_free(probe->event);
	relay_reset(probe->fd);
	close(probe->fd);
	probe->event = NULL;
}

static void on_probe(evutil_socket_t fd, short what, void *arg)
{
	struct probe *probe = arg;
	struct tcp_info info;
	int error = what & EV_TIMEOUT ? -ETIMEDOUT : downstream_result(fd, &info);

	if (error == -EINPROGRESS)
		return;
	probe_end(probe);
	note_result(&probe->server, error);
}

/* Connects to a server. Does nothing if there are too many probes, or one to that server, or no memory, descriptor or port. */
static void probe_start(struct converter *converter, const struct downstream_plan *plan)
{
	static const struct timeval limit = { .tv_sec = PROBE_SECONDS };
	struct probe *probe = NULL;
	int fd;

	for (size_t i = 0; i < PROBES_MAX; i++) {
		struct probe *place = &converter->blame->probe[i];

		if (place->event && sockaddr_ip_equal(&place->server, plan->server))
			return;
		if (!place->event)
			probe = place;
	}
	if (!probe)
		return;
	fd = downstream_connect(plan);
	if (fd < 0) {
		if (downstream_refusal(-1, plan->server, fd).code != CONVERT_ERROR_RESOURCE_EXCEEDED)
			note_result(plan->server, fd);
		return;
	}
	*probe = (struct probe){ .fd = fd, .server = *plan->server };
	probe->event = event_new(converter->context->base, fd, EV_WRITE | EV_PERSIST, on_probe, probe);
	if (probe->event && event_add(probe->event, &limit) == 0)
		return;
	if (probe->event)
		event_free(probe->event);
	probe->event = NULL;
	close(fd);
}

static void test_server(struct converter *converter, const union sockaddr_ip *server)
{
	const struct convertd_settings *settings = converter->effective->settings;
	struct downstream_plan plan = { .server = server, .route = converter->route, .congestion = "" };

	/* Rules may have changed since a client asked for it. */
	if (!admission_still_allows(&converter->admission, server))
		return;
	/* There is no client whose address could be kept. */
	plan.choice = settings->sources.preserve ?
			      SOURCES_ANY :
			      sources_choose(&settings->sources, server, server, &plan.source);
	probe_start(converter, &plan);
}

/* Starts the tests that are due, and sets the timer for the next. */
static void run_tests(struct converter *converter)
{
	uint64_t now_ms = clock_now_ms(), next_ms = 0;

	for (int family = 0; family < FAMILY_COUNT; family++) {
		union sockaddr_ip server;
		uint64_t next;

		if (families_take_test((enum family)family, now_ms, &server))
			test_server(converter, &server);
		next = families_next_test_ms((enum family)family);
		if (next && (!next_ms || next < next_ms))
			next_ms = next;
	}
	if (next_ms) {
		uint64_t wait_ms = next_ms > now_ms ? next_ms - now_ms : 1;
		struct timeval wait = { .tv_sec = (time_t)(wait_ms / 1000),
					.tv_usec = (suseconds_t)(wait_ms % 1000 * 1000) };

		event_add(converter->blame->timer, &wait);
	}
}

static void on_tests(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	run_tests(arg);
}

int blame_init(struct converter *converter)
{
	converter->blame = calloc(1, sizeof(*converter->blame));
	if (converter->blame)
		converter->blame->timer = event_new(converter->context->base, -1, 0, on_tests, converter);
	return converter->blame && converter->blame->timer ? 0 : -ENOMEM;
}

void blame_fini(struct converter *converter)
{
	struct blame *blame = converter->blame;

	for (size_t i = 0; blame && i < PROBES_MAX; i++)
		if (blame->probe[i].event)
			probe_end(&blame->probe[i]);
	if (blame && blame->timer)
		event_free(blame->timer);
	free(blame);
	converter->blame = NULL;
}

static void tell_unrouted(struct converter *converter, const union sockaddr_ip *server, int error)
{
	char text[SOCKADDR_STRLEN];
	unsigned suppressed;

	/* If the family has no route at all, the log has that already. */
	if (families_is_routed(families_of(server)) &&
	    log_limit_pass(&converter->shared->unrouted, &suppressed))
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

/* Tells whether the router on the way to the server is gone. A missing server on this host's own network has no router. */
static bool is_router_gone(struct converter *converter, const struct downstream_error *refusal,
			   const union sockaddr_ip *server)
{
	struct in6_addr address = sockaddr_ip_in6(server), router;

	return refusal->said_here && route_gateway(converter->route, &address, &router);
}

struct downstream_error blame_refusal(struct converter *converter, int fd,
				      const union sockaddr_ip *server, uint64_t asked_ms, int error)
{
	struct downstream_error refusal = downstream_refusal(fd, server, error);
	bool ours = false;
	uint64_t now_ms = clock_now_ms();
	bool silent = error == -ETIMEDOUT;

	if (is_unrouted(fd, error)) {
		tell_unrouted(converter, server, error);
		ours = true;
	} else if (error == -ECONNREFUSED) {
		families_answered(server, now_ms);
	} else if (fd >= 0 && is_router_gone(converter, &refusal, server)) {
		families_unanswered(server, asked_ms, now_ms, true);
		ours = true;
	} else if (silent ? now_ms - asked_ms >= FAMILIES_PATIENCE_MS :
			    refusal.code == CONVERT_ERROR_DESTINATION_UNREACHABLE) {
		ours = families_unanswered(server, asked_ms, now_ms, silent);
	}
	run_tests(converter);
	return ours ? (struct downstream_error){ .code = CONVERT_ERROR_NOT_AUTHORIZED, .ours = true } : refusal;
}

bool blame_silence(struct converter *converter, const union sockaddr_ip *server, uint64_t asked_ms)
{
	bool ours = families_unanswered(server, asked_ms, clock_now_ms(), true);

	run_tests(converter);
	return ours;
}

void blame_again(struct converter *converter, const union sockaddr_ip *server)
{
	families_asked(server, clock_now_ms());
	run_tests(converter);
}
