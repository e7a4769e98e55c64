/* SPDX-License-Identifier: BSD-3-Clause */
/* drain.h - the end of the process: no new clients, and some time for those that are served */
#ifndef CONVERTD_DRAIN_H
#define CONVERTD_DRAIN_H

#include <stdbool.h>

struct drain;
struct event_base;
struct service;

/*
 * drain_start() - accept nobody any more, and end the loop of @base once no session is left
 * Clients in the listeners' queues are accepted first, unless @replaced: then another convertd has the
 * listeners. After --drain-timeout the loop ends with
 * sessions left, which service_destroy() cuts.
 * @reason: what for, in the log
 * Returns NULL, with the loop at its end, where there is nothing to wait for.
 */
struct drain *drain_start(struct event_base *base, struct service *service, bool replaced,
			  const char *reason);

/* The loop ends now, whatever is left. */
void drain_cut(struct drain *drain, const char *reason);

/* NULL is fine. */
void drain_destroy(struct drain *drain);

#endif
