/* SPDX-License-Identifier: BSD-3-Clause */
/* survivor.h - a process that resets the connections of a convertd that was killed */
#ifndef CONVERTD_SURVIVOR_H
#define CONVERTD_SURVIVOR_H

#include <stdbool.h>

struct event;
struct event_base;
struct settings;

/* The survivor ends at most this many milliseconds after convertd, unless the host is very busy. */
#define SURVIVOR_MAX_MS 3000

/*
 * survivor_start() - start the survivor
 * Call it before there are threads, and with the rights that convertd keeps. The sandbox must not be in force yet, as
 * it forbids new processes; the survivor enters it by itself. Returns a pidfd, readable once the survivor has ended,
 * which the caller owns, or -errno.
 */
int survivor_start(const struct settings *settings);

/*
 * Tells whether the survivor runs: it resets the connections that this process still has when it ends, so that the
 * process needn't do so itself. Any thread may ask.
 */
bool survivor_is_there(void);

/*
 * survivor_watch() - warn if the survivor ends before convertd does
 * @fd: as returned by survivor_start()
 * Returns the event, which the caller frees, or NULL without memory.
 */
struct event *survivor_watch(struct event_base *base, int fd);

#endif
