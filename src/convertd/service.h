/* SPDX-License-Identifier: BSD-3-Clause */
/* service.h - what convertd runs: listeners, sessions, and the rules for SYNs */
#ifndef CONVERTD_SERVICE_H
#define CONVERTD_SERVICE_H

#include <stdbool.h>

struct event_base;
struct monitor;
struct problems;
struct service;
struct settings;

/* Nothing runs yet. @base and @monitor must outlive it. Returns NULL after saying why on the log. */
struct service *service_create(struct event_base *base, struct monitor *monitor);

/* Ends all sessions, and everything else. NULL is fine. */
void service_destroy(struct service *service);

/*
 * service_apply() - run as @settings say, from now on
 * Listeners that both the old and the new settings have are left alone, and so are all sessions.
 * @settings: the service's on success; it frees the old ones
 * Returns false after telling @problems, with everything as it was.
 */
bool service_apply(struct service *service, struct settings *settings, struct problems *problems);

#endif
