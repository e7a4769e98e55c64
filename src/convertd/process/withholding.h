/* SPDX-License-Identifier: BSD-3-Clause */
/* withholding.h - withholds SYNs until their servers have answered (RFC 8803 4.2) */
#ifndef CONVERTD_WITHHOLDING_H
#define CONVERTD_WITHHOLDING_H

#include "convertd/config/settings.h"

#include <stdbool.h>

struct withholding;
struct worker_context;
struct workers;

/*
 * withholding_create() - prepare to withhold SYNs; none is withheld yet
 * @workers: each judges its share of the SYNs; must outlive the result
 * @kept: withholding_rules_fd() of the process before this one, or -1; it stays the caller's
 * Returns NULL without memory.
 */
struct withholding *withholding_create(struct workers *workers, int kept);

/* Releases all withheld SYNs, to any socket that listens then, and frees @w. NULL is fine. */
void withholding_destroy(struct withholding *w);

/*
 * withholding_apply() - start or stop withholding SYNs to the addresses of @settings, as these say
 * If it isn't possible, the log says why and what it costs; with "on" @problems gets the error instead. Returns false
 * only with "on", and leaves everything as it was.
 */
bool withholding_apply(struct withholding *w, const struct settings *settings, struct problems *problems);

/*
 * withholding_stop() - stop withholding, and release all SYNs
 * Their connections still find the results of their judgement. Until withholding_destroy(), SYN+ACKs show that they
 * confirm nothing (doc/private-tlvs.md): clients remember for an hour that they may confirm.
 */
void withholding_stop(struct withholding *w);

/*
 * withholding_judge_again() - judge this worker's withheld SYNs by new settings
 * Call it in the worker's thread. SYNs that the new settings don't grant are released and refused, and the
 * connections to their servers are reset.
 */
void withholding_judge_again(struct withholding *w, const struct worker_context *worker);

/* Tells whether SYNs are withheld. */
bool withholding_is_on(const struct withholding *w);

/* Tells whether SYNs are withheld, and the rules refuse those that are marked so. */
bool withholding_refuses(const struct withholding *w);

/* Returns the descriptor with which the rules end; they make SYN+ACKs show that they confirm nothing. -1 without rules. */
int withholding_rules_fd(const struct withholding *w);

/*
 * windows_correct() - install the rules of syn_window.c for the addresses of @settings, or remove them
 * @wanted: true to install them, false to remove them
 * Returns whether windows are corrected. If they can't be, a warning names the consequences and the remedy.
 */
bool windows_correct(const struct settings *settings, bool wanted);

#endif
