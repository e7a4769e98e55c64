/* SPDX-License-Identifier: BSD-3-Clause */
/* flows.h - what each subflow has done since the last look (no I/O) */
#ifndef PATHS_FLOWS_H
#define PATHS_FLOWS_H

#include "paths/subflows.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is remembered of a subflow from one look to the next. */
struct paths_flow {
	uint64_t cookie;
	uint64_t received;
	uint64_t rate;    /* bytes a second, smoothed, as long as something came */
	uint64_t current; /* bytes a second since the last look */
	bool waits;       /* its connection waits for its peer, though no subflow does */
	bool stalled;     /* and did so at the last look */
	bool confirmed;   /* its peer knows that it is established */
	bool fresh;       /* which it didn't at the last look */
	bool may_return;  /* its connection has had a subflow that joined it: its peer takes such ones, and the paths let them pass */
};

struct paths_flows {
	struct paths_flow list[PATHS_SUBFLOWS_MAX]; /* in the order of the subflows of the last look */
	size_t count;
	int64_t looked; /* when that was, by CLOCK_MONOTONIC in nanoseconds */
};

/* Compares them with what they were at the last look, and notes what they are now. Those that have gone are forgotten. */
void paths_flows_note(struct paths_flows *flows, const struct paths_subflows *subflows, int64_t now);

/* What follows is about the subflows of which the flows were noted last. */

/* Did the subflow bring much, brings nothing any more, and another one of its connection brings much meanwhile? */
bool paths_flows_has_paused(const struct paths_flows *flows, const struct paths_subflows *subflows, size_t at);

/* Is a connection with an established subflow from the address stalled: paths_subflows_are_stalled(), since the look before? */
bool paths_flows_have_stalled(const struct paths_flows *flows, const struct paths_subflows *subflows, const union sockaddr_ip *local);

/* Do the peers of new subflows from the address know, since this look, that they are established? */
bool paths_flows_are_fresh(const struct paths_flows *flows, const struct paths_subflows *subflows, const union sockaddr_ip *local);

/* Would all connections with a subflow from the address get another one, as far as is known? One that they began with proves nothing. */
bool paths_flows_may_return(const struct paths_flows *flows, const struct paths_subflows *subflows, const union sockaddr_ip *local);

#endif
