/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * monitor.h - reports about the converter as a whole: by HTTP, and by the log about lines that it has left out
 *
 * The main thread owns all of it, except the counters and limits that it hands out.
 */
#ifndef CONVERTD_MONITOR_H
#define CONVERTD_MONITOR_H

#include "daemon/listen_address.h"

#include <stdbool.h>
#include <stddef.h>

struct demand;
struct event_base;
struct log_limit;
struct limits_settings;
struct metrics;
struct monitor;
struct problems;

/* Returns a monitor, which answers in @base's loop, or NULL without memory. */
struct monitor *monitor_create(struct event_base *base);

/* Call it after all that counts in the monitor. Logs the number of lines left out. NULL is fine. */
void monitor_destroy(struct monitor *monitor);

/* Returns counters for one more thread that runs sessions; the monitor owns them. Returns NULL without memory. */
struct metrics *monitor_add_metrics(struct monitor *monitor);

/*
 * New settings come into force in two steps. monitor_open() listens at the @count @addresses. It returns false after
 * adding an error to @problems, with everything as it was. Then monitor_commit(), which can't fail, stops listening
 * at all other addresses; or the caller calls monitor_abandon(), if something else has failed.
 */
bool monitor_open(struct monitor *monitor, const struct metrics_address *addresses, size_t count,
		  struct problems *problems);
void monitor_abandon(struct monitor *monitor);

/*
 * @listening: the addresses and the protocols there, for people; copied
 * @limits: those in force
 */
void monitor_commit(struct monitor *monitor, const char *listening, size_t workers,
		    const struct limits_settings *limits);

/* Reports the state of @demand from now on, and checks it now and then; NULL: no longer. */
void monitor_watch_demand(struct monitor *monitor, struct demand *demand);

/* Counts a reload. @ok: its settings are in force */
void monitor_count_reload(struct monitor *monitor, bool ok);

/* Makes /healthz answer 503 from now on, so that balancers look for another converter. */
void monitor_set_draining(struct monitor *monitor);

/* Stops listening and answering, so that the next convertd can listen. */
void monitor_close(struct monitor *monitor);

/*
 * Returns rate limits of the lines about sessions, one for each of OUTCOME_COUNT outcomes, for all threads; the
 * monitor owns them.
 */
struct log_limit *monitor_log_limits(struct monitor *monitor);

#endif
