/* SPDX-License-Identifier: BSD-3-Clause */
/* probe.h - connections that convertd makes for itself, to see what becomes of them */
#ifndef CONVERTD_PROBE_H
#define CONVERTD_PROBE_H

#include "common/sockaddr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct downstream_plan;
struct event_base;
struct probes;

#define PROBE_MESSAGE_MAX 64

/* Those of one thread at the same time. */
#define PROBES_MAX 8

/* How long a server has to answer. */
#define PROBE_SECONDS 4

/* At the end. @error: 0 the server was reached; or the -errno with which that failed, -ETIMEDOUT with silence. */
typedef void probe_done_fn(const union sockaddr_ip *server, int error);

/* For one thread, that of @base. Returns NULL without memory. */
struct probes *probes_create(struct event_base *base);

/* Ends those that are under way. NULL is fine. */
void probes_destroy(struct probes *probes);

/*
 * probes_start() - connect, say something, and reset the connection when something has come back
 * @plan: what the SYN is to be like; its data is left out
 * @message, @len: what is said once it is connected, PROBE_MESSAGE_MAX bytes at most; 0: nothing,
 * and it is reset at once
 * @done: called once, perhaps before this returns; not at the end of all probes
 * Returns false with nothing done where there are too many, or one to that server, or no descriptor.
 */
bool probes_start(struct probes *probes, const struct downstream_plan *plan, const uint8_t *message,
		  size_t len, probe_done_fn *done);

#endif
