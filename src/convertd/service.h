/* SPDX-License-Identifier: BSD-3-Clause */
/* service.h - what convertd runs: workers, listeners, and the rules for SYNs */
#ifndef CONVERTD_SERVICE_H
#define CONVERTD_SERVICE_H

#include <stdbool.h>
#include <stddef.h>

struct inherited;
struct monitor;
struct problems;
struct service;
struct settings;

/*
 * service_create() - @workers threads that serve nobody yet
 * @inherited: sockets for places that settings name; must outlive it
 * @monitor: is told what there is to tell; must outlive it
 * 0 workers: as many as there are CPUs. Returns NULL after saying why on the log.
 */
struct service *service_create(size_t workers, const struct inherited *inherited,
			       struct monitor *monitor);

/* Ends all sessions, and everything else. NULL is fine. */
void service_destroy(struct service *service);

/*
 * service_apply() - run as @settings say, from now on
 * Listeners that both the old and the new settings have are left alone, and so are all sessions.
 * @settings: the service's on success; it frees the old ones
 * Returns false after telling @problems, with everything as it was.
 */
bool service_apply(struct service *service, struct settings *settings, struct problems *problems);

/* The settings in force; NULL before service_apply(). */
const struct settings *service_settings(const struct service *service);

/*
 * Accepts the clients that have connected already, and then nobody any more; sessions go on.
 * service_apply() must not follow.
 */
void service_stop_accepting(struct service *service);

/* Sessions that there are. */
size_t service_sessions(const struct service *service);

#endif
