/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * monitor.h - what the converter tells of itself as a whole: counters, and the lines that the log
 * has left out
 *
 * All of it belongs to the main thread, but for the counters and limits that it hands out.
 */
#ifndef CONVERTD_MONITOR_H
#define CONVERTD_MONITOR_H

#include <stdbool.h>

struct event_base;
struct log_limit;
struct metrics;
struct monitor;

/* Returns NULL without memory. */
struct monitor *monitor_create(struct event_base *base);

/* After all that counts in it. Tells what the log has left out. NULL is fine. */
void monitor_destroy(struct monitor *monitor);

/* Counters for one more thread that runs sessions, the monitor's. Returns NULL without memory. */
struct metrics *monitor_add_metrics(struct monitor *monitor);

/* OUTCOME_COUNT limits of lines about sessions, for all threads; the monitor's. */
struct log_limit *monitor_log_limits(struct monitor *monitor);

#endif
