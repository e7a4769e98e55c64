/* SPDX-License-Identifier: BSD-3-Clause */
/* host.h - what all dials of a process share */
#ifndef ENGINE_HOST_H
#define ENGINE_HOST_H

#include "client/settings.h"
#include "common/clock.h"

#include <stdbool.h>
#include <stdint.h>

struct path_start;

struct dial_host {
	const struct settings *settings;
	void (*log)(const char *format, ...) __attribute__((format(printf, 1, 2)));
	int64_t (*clock)(void);                              /* CLOCK_MONOTONIC in ns */
	bool (*is_waiting)(const struct path_start *start);  /* does its connection still wait? NULL: path_start_end() is always called */
	void (*trial_begins)(void);                          /* call path_trials_look() now and then; NULL: the front end does so anyway */
};
extern struct dial_host dial_host;

/* Call it before all other functions of the engine. The settings must stay. */
void dial_init(const struct dial_host *host);

#endif
