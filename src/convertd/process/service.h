/* SPDX-License-Identifier: BSD-3-Clause */
/* service.h - what convertd runs: workers, listeners, and the rules for SYNs */
#ifndef CONVERTD_SERVICE_H
#define CONVERTD_SERVICE_H

#include <stdbool.h>
#include <stddef.h>

struct event_base;
struct handover;
struct inherited;
struct monitor;
struct problems;
struct service;
struct settings;

/*
 * service_create() - @workers threads that serve nobody yet
 * @base: of the calling thread
 * @inherited: sockets for places that settings name; must outlive it
 * @monitor: is told what there is to tell; must outlive it
 * 0 workers: as many as there are CPUs. Returns NULL after saying why on the log.
 */
struct service *service_create(struct event_base *base, size_t workers,
			       const struct inherited *inherited, struct monitor *monitor);

/* Ends all sessions, and everything else. NULL is fine. */
void service_destroy(struct service *service);

/*
 * service_apply() - run as @settings say, from now on
 * Listeners that both the old and the new settings have are left alone, and so are all sessions.
 * @settings: the service's on success; it frees the old ones
 * Returns false after telling @problems, with everything as it was; or else the caller announces it.
 */
bool service_apply(struct service *service, struct settings *settings, struct problems *problems);

/* Tells the log, the service manager and the monitor of the settings in force. @how: "ready" or "reloaded" */
void service_announce(const struct service *service, const char *how);

/* The settings in force; NULL before service_apply(). */
const struct settings *service_settings(const struct service *service);

/*
 * service_stop_accepting() - accept nobody any more; sessions go on
 * @replaced: another process has the sockets, and who is in their queues; else those are accepted first.
 * service_apply() must not follow.
 */
void service_stop_accepting(struct service *service, bool replaced);

/*
 * service_pause() - accept nobody, and withhold no SYN, so that another process can do so with the same sockets
 * Whoever has connected is accepted first; those who come later wait in their queues. service_resume() goes on as before, or service_stop_accepting()
 * follows.
 */
void service_pause(struct service *service);
void service_resume(struct service *service);

/* Calls handover_give() for what owns the rules for SYNs and, if @listeners, each socket on which clients arrive. */
void service_give(const struct service *service, struct handover *handover, bool listeners);

/*
 * service_is_well() - has each worker's loop turned since the call before?
 * Says on the log which one has not; a standing one isn't told of again until all turn.
 */
bool service_is_well(struct service *service);

/* Sessions that there are. */
size_t service_sessions(const struct service *service);

#endif
