/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * monitor.h - what the converter tells of itself as a whole: by HTTP, and which lines the log has
 * left out
 *
 * All of it belongs to the main thread, but for the counters and limits that it hands out.
 */
#ifndef CONVERTD_MONITOR_H
#define CONVERTD_MONITOR_H

#include "convertd/base/listen_address.h"

#include <stdbool.h>
#include <stddef.h>

struct demand;
struct event_base;
struct log_limit;
struct limits_settings;
struct metrics;
struct monitor;
struct problems;

/* Answers in @base's loop. Returns NULL without memory. */
struct monitor *monitor_create(struct event_base *base);

/* After all that counts in it. Tells what the log has left out. NULL is fine. */
void monitor_destroy(struct monitor *monitor);

/* Counters for one more thread that runs sessions, the monitor's. Returns NULL without memory. */
struct metrics *monitor_add_metrics(struct monitor *monitor);

/*
 * New settings come into force in two steps. monitor_open() listens at the @count @addresses. It returns false after
 * telling @problems, with everything as it was. Then monitor_commit(), which can't fail, stops listening at all other
 * addresses; or monitor_abandon(), if something else has failed.
 */
bool monitor_open(struct monitor *monitor, const struct metrics_address *addresses, size_t count,
		  struct problems *problems);
void monitor_abandon(struct monitor *monitor);

/*
 * @listening: the addresses and what they take, for people; copied
 * @limits: those in force
 */
void monitor_commit(struct monitor *monitor, const char *listening, size_t workers,
		    const struct limits_settings *limits);

/* Whose state is told from now on, and looked at now and then; NULL: nobody's any more. */
void monitor_watch_demand(struct monitor *monitor, struct demand *demand);

/* Counts a reload. @ok: its settings are in force */
void monitor_count_reload(struct monitor *monitor, bool ok);

/* From now on /healthz says 503, so that balancers look for another converter. */
void monitor_set_draining(struct monitor *monitor);

/* Stops listening, so that the next convertd can: nothing is answered any more. */
void monitor_close(struct monitor *monitor);

/* Rate limits of the lines about sessions, one for each of OUTCOME_COUNT outcomes, for all threads; they stay the monitor's. */
struct log_limit *monitor_log_limits(struct monitor *monitor);

#endif
