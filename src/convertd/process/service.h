/* SPDX-License-Identifier: BSD-3-Clause */
/* service.h - runs workers, listeners and the rules for SYNs as the settings say; for the main thread */
#ifndef CONVERTD_SERVICE_H
#define CONVERTD_SERVICE_H

#include <stdbool.h>
#include <stddef.h>

struct event_base;
struct inherited;
struct monitor;
struct problems;
struct service;
struct settings;

/*
 * service_create() - start workers, which serve no client yet
 * @base: the event loop of the calling thread
 * @workers: the number of threads; 0: one for each CPU
 * @inherited: sockets to use for addresses that settings name; must outlive the service
 * @monitor: gets the metrics and the status; must outlive the service
 * Returns NULL after logging why.
 */
struct service *service_create(struct event_base *base, size_t workers,
			       const struct inherited *inherited, struct monitor *monitor);

/* Ends all sessions and frees everything. NULL is fine. */
void service_destroy(struct service *service);

/*
 * service_apply() - put @settings in force
 * Listeners that both the old and the new settings have are kept, and so are all sessions.
 * @settings: belong to the service on success, and it frees the old ones
 * Returns false after adding the error to @problems, with the old settings in force. After true, the caller calls
 * service_announce().
 */
bool service_apply(struct service *service, struct settings *settings, struct problems *problems);

/* Tells the log, the service manager and the monitor of the settings in force. @how: "ready" or "reloaded" */
void service_announce(const struct service *service, const char *how);

/* Returns the settings in force, or NULL before service_apply(). */
const struct settings *service_settings(const struct service *service);

/* Accepts the clients that are in the listeners' queues, and none that come later; sessions go on. service_apply() must not follow. */
void service_stop_accepting(struct service *service);

/*
 * service_is_well() - tell whether each worker's loop has turned since the call before
 * The first time that one has not, it is logged, and then not again until all have.
 */
bool service_is_well(struct service *service);

/* Returns the number of sessions. */
size_t service_sessions(const struct service *service);

#endif
