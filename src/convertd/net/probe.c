/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * probe.c - connections that convertd makes for itself, to find out whether a server can be reached
 *
 * Probes go only to servers that a client has just asked for, and a thread has at most PROBES_MAX of them, so that
 * no server is sent much more than clients send anyway. A session never waits for one.
 *
 * A probe connects, for PROBE_SECONDS at most, resets the connection and reports.
 */
#include "config.h"

#include "convertd/net/probe.h"

#include "convertd/net/downstream.h"
#include "relay/relay.h"

#include <errno.h>
#include <event2/event.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct probe {
	struct event *event; /* NULL: the place is free */
	int fd;
	union sockaddr_ip server;
	probe_done_fn *done;
};

struct probes {
	struct event_base *base;
	struct probe probe[PROBES_MAX];
};

struct probes *probes_create(struct event_base *base)
{
	struct probes *probes = calloc(1, sizeof(*probes));

	if (probes)
		probes->base = base;
	return probes;
}

static void probe_free(struct probe *probe)
{
	event_free(probe->event);
	relay_reset(probe->fd);
	close(probe->fd);
	probe->event = NULL;
}

void probes_destroy(struct probes *probes)
{
	if (!probes)
		return;
	for (size_t i = 0; i < PROBES_MAX; i++)
		if (probes->probe[i].event)
			probe_free(&probes->probe[i]);
	free(probes);
}

static void on_probe(evutil_socket_t fd, short what, void *arg)
{
	struct probe *probe = arg;
	struct tcp_info info;
	int error = what & EV_TIMEOUT ? -ETIMEDOUT : downstream_result(fd, &info);

	if (error == -EINPROGRESS)
		return;
	probe_free(probe);
	probe->done(&probe->server, error);
}

static struct probe *free_place(struct probes *probes, const union sockaddr_ip *server)
{
	struct probe *place = NULL;

	for (size_t i = 0; i < PROBES_MAX; i++) {
		if (!probes->probe[i].event)
			place = &probes->probe[i];
		else if (sockaddr_ip_equal(&probes->probe[i].server, server))
			return NULL;
	}
	return place;
}

bool probes_start(struct probes *probes, const struct downstream_plan *plan, probe_done_fn *done)
{
	static const struct timeval limit = { .tv_sec = PROBE_SECONDS };
	struct probe *probe = probes ? free_place(probes, plan->server) : NULL;
	struct downstream_plan own = *plan;

	if (!probe)
		return false;
	own.mptcp = own.data_follows = own.confirmed = false;
	memset(probe, 0, sizeof(*probe));
	probe->server = *plan->server;
	probe->done = done;
	probe->fd = downstream_connect(&own);
	if (probe->fd < 0) {
		done(plan->server, probe->fd);
		return true;
	}
	probe->event = event_new(probes->base, probe->fd, EV_WRITE | EV_PERSIST, on_probe, probe);
	if (probe->event && event_add(probe->event, &limit) == 0)
		return true;
	if (probe->event)
		event_free(probe->event);
	probe->event = NULL;
	close(probe->fd);
	return false;
}
