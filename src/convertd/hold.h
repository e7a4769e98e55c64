/* SPDX-License-Identifier: BSD-3-Clause */
/* hold.h - withhold SYNs until their servers have answered (RFC 8803 4.2) */
#ifndef CONVERTD_HOLD_H
#define CONVERTD_HOLD_H

#include "convertd/hold_table.h"
#include "convertd/limits.h"
#include "convertd/settings.h"
#include "convertd/terms.h"

#include <stdbool.h>

struct event_base;
struct hold;
struct metrics;

/*
 * hold_create() - nothing is withheld yet
 * @limits, @metrics: must outlive it
 * Returns NULL without memory, with errno set.
 */
struct hold *hold_create(struct event_base *base, struct limits *limits, struct metrics *metrics);

/* Lets go of all that is withheld, towards whoever listens then, and frees it. NULL is fine. */
void hold_destroy(struct hold *hold);

/*
 * hold_apply() - withhold SYNs to the addresses of @settings from now on, or none, as they say
 * Where it isn't possible, the log says why and what it costs; with "on" it is @problems that are told.
 * Returns false only with "on", with everything as it was.
 */
bool hold_apply(struct hold *hold, const struct settings *settings, struct problems *problems);

/* Withholds no more, and lets go of all SYNs; their connections still find what was done for them. */
void hold_stop(struct hold *hold);

/* Are SYNs withheld? */
bool hold_is_on(const struct hold *hold);

/* What requests are judged by from now on; takes a reference. */
void hold_configure(struct hold *hold, struct terms *terms);

/* Where accepted connections find what was done for them. */
struct hold_table *hold_get_table(struct hold *hold);

#endif
