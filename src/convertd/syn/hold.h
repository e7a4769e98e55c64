/* SPDX-License-Identifier: BSD-3-Clause */
/* hold.h - withhold SYNs until their servers have answered (RFC 8803 4.2) */
#ifndef CONVERTD_HOLD_H
#define CONVERTD_HOLD_H

#include "convertd/config/settings.h"

#include <stdbool.h>

struct hold;
struct worker_context;
struct workers;

/*
 * hold_create() - nothing is withheld yet
 * @workers: each looks at its share of the SYNs; must outlive it
 * @kept: hold_rules_fd() of the process before this one, or -1; it stays the caller's
 * Returns NULL without memory.
 */
struct hold *hold_create(struct workers *workers, int kept);

/* Lets go of all that is withheld, towards whoever listens then, and frees it. NULL is fine. */
void hold_destroy(struct hold *hold);

/*
 * hold_apply() - withhold SYNs to the addresses of @settings from now on, or none, as they say
 * Where it isn't possible, the log says why and what it costs; with "on" it is @problems that are told.
 * Returns false only with "on", with everything as it was.
 */
bool hold_apply(struct hold *hold, const struct settings *settings, struct problems *problems);

/*
 * hold_stop() - withhold no more, and let go of all SYNs
 * Their connections still find what was done for them. Until hold_destroy(), SYN+ACKs from now on show
 * that they confirm nothing (doc/private-tlvs.md): clients remember for an hour what they were told.
 */
void hold_stop(struct hold *hold);

/*
 * hold_judge_again() - the terms of this worker, whose thread it is, are others now
 * Its SYNs that these don't grant any more are let go and refused; their servers see a reset.
 */
void hold_judge_again(struct hold *hold, const struct worker_context *worker);

/* Forgets what was done for SYNs that were let go: their connections are another process's. None is withheld. */
void hold_forget(struct hold *hold);

/* Are SYNs withheld? */
bool hold_is_on(const struct hold *hold);

/* As long as somebody has this descriptor, SYN+ACKs show that they confirm nothing; -1 if none is needed. */
int hold_rules_fd(const struct hold *hold);

#endif
