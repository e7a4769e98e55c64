/* SPDX-License-Identifier: BSD-3-Clause */
/* probe.h - connections that convertd makes for itself, to find out whether a server can be reached */
#ifndef CONVERTD_PROBE_H
#define CONVERTD_PROBE_H

#include "common/sockaddr.h"

#include <stdbool.h>

struct downstream_plan;
struct event_base;
struct probes;

/* The number of probes that a thread may have under way. */
#define PROBES_MAX 8

/* How long a server has to answer. */
#define PROBE_SECONDS 4

/* Called at a probe's end. @error: 0: the server was reached; or the -errno of connecting, -ETIMEDOUT if it was silent. */
typedef void probe_done_fn(const union sockaddr_ip *server, int error);

/* Makes the probes of one thread, that of @base. Returns them, for probes_destroy(), or NULL without memory. */
struct probes *probes_create(struct event_base *base);

/* Resets the probes that are under way, without calling their @done. NULL is fine. */
void probes_destroy(struct probes *probes);

/*
 * probes_start() - connect to a server, and reset the connection once it is made
 * @plan: the SYN's properties; Multipath TCP is left out
 * @done: called once, perhaps before this returns, but not if probes_destroy() ends the probe
 * Returns false and does nothing if there are too many probes, or one to that server, or no memory.
 */
bool probes_start(struct probes *probes, const struct downstream_plan *plan, probe_done_fn *done);

#endif
