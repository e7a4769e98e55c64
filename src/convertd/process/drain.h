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
 * @reason: why convertd stops, for the log
 * After --drain-timeout the loop ends with sessions left, which service_destroy() resets.
 * Returns NULL, having ended the loop, where there is no session to wait for, or no time to wait.
 */
struct drain *drain_start(struct event_base *base, struct service *service, const char *reason);

/* Ends the loop now, whatever sessions are left. */
void drain_cut(struct drain *drain, const char *reason);

/* NULL is fine. */
void drain_destroy(struct drain *drain);

#endif
