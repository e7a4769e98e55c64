/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * monitor.h - what the converter tells of itself as a whole: by HTTP, and which lines the log has
 * left out
 *
 * All of it belongs to the main thread, but for the counters and limits that it hands out.
 */
#ifndef CONVERTD_MONITOR_H
#define CONVERTD_MONITOR_H

#include <stdbool.h>
#include <stddef.h>

struct event_base;
struct log_limit;
struct metrics;
struct monitor;
struct problems;
struct settings;

/* Returns NULL without memory. */
struct monitor *monitor_create(struct event_base *base);

/* After all that counts in it. Tells what the log has left out. NULL is fine. */
void monitor_destroy(struct monitor *monitor);

/* Counters for one more thread that runs sessions, the monitor's. Returns NULL without memory. */
struct metrics *monitor_add_metrics(struct monitor *monitor);

/*
 * New settings come into force in two steps. monitor_open() listens where they say; it returns
 * false after telling @problems, with everything as it was. Then monitor_commit(), which can't
 * fail, stops to listen where they don't; or monitor_abandon(), if something else has failed.
 */
bool monitor_open(struct monitor *monitor, const struct settings *settings,
		  struct problems *problems);
void monitor_abandon(struct monitor *monitor);

/*
 * @listening: the addresses and what they take, for people; copied
 * @max_connections, @max_pending: the limits in force, 0: none
 */
void monitor_commit(struct monitor *monitor, const char *listening, size_t workers,
		    unsigned max_connections, unsigned max_pending);

/* A reload was tried. */
void monitor_count_reload(struct monitor *monitor, bool ok);

/* From now on /healthz says 503, so that balancers look for another converter; or no longer. */
void monitor_set_draining(struct monitor *monitor, bool draining);

/* OUTCOME_COUNT limits of lines about sessions, for all threads; the monitor's. */
struct log_limit *monitor_log_limits(struct monitor *monitor);

#endif
