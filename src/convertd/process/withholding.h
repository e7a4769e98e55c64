/* SPDX-License-Identifier: BSD-3-Clause */
/* withholding.h - withhold SYNs until their servers have answered (RFC 8803 4.2) */
#ifndef CONVERTD_WITHHOLDING_H
#define CONVERTD_WITHHOLDING_H

#include "convertd/config/settings.h"

#include <stdbool.h>

struct withholding;
struct worker_context;
struct workers;

/*
 * withholding_create() - nothing is withheld yet
 * @workers: each looks at its share of the SYNs; must outlive it
 * @kept: withholding_rules_fd() of the process before this one, or -1; it stays the caller's
 * Returns NULL without memory.
 */
struct withholding *withholding_create(struct workers *workers, int kept);

/* Releases all withheld SYNs, towards whoever listens then, and frees it. NULL is fine. */
void withholding_destroy(struct withholding *w);

/*
 * withholding_apply() - withhold SYNs to the addresses of @settings from now on, or none, as they say
 * Where it isn't possible, the log says why and what it costs; with "on" @problems are told instead.
 * Returns false only with "on", with everything as it was.
 */
bool withholding_apply(struct withholding *w, const struct settings *settings, struct problems *problems);

/*
 * withholding_stop() - withhold no more, and release all SYNs
 * Their connections still find what was done for them. Until withholding_destroy(), SYN+ACKs from now on show
 * that they confirm nothing (doc/private-tlvs.md): clients remember for an hour what they were told.
 */
void withholding_stop(struct withholding *w);

/*
 * withholding_judge_again() - the settings have changed: judges this worker's withheld SYNs by the new ones
 * Called in the worker's thread. SYNs that the new settings don't grant are released and refused, and the connections to
 * their servers are reset.
 */
void withholding_judge_again(struct withholding *w, const struct worker_context *worker);

/* Are SYNs withheld? */
bool withholding_is_on(const struct withholding *w);

/* Are SYNs withheld, and those refused by the rules that are marked so? */
bool withholding_refuses(const struct withholding *w);

/* The descriptor that the rules last as long as: SYN+ACKs show that they confirm nothing. -1 if there are no rules. */
int withholding_rules_fd(const struct withholding *w);

/*
 * windows_correct() - install the rules of syn_window.c for the addresses of @settings, or remove them
 * @wanted: true to install them, false to remove them
 * Returns whether windows are corrected. If they can't be, a warning names the consequences and the remedy.
 */
bool windows_correct(const struct settings *settings, bool wanted);

#endif
