/* SPDX-License-Identifier: BSD-3-Clause */
/* trials.h - asks paths that have failed whether they work again, beside a program that is about to start */
#ifndef NETWORKS_TRIALS_H
#define NETWORKS_TRIALS_H

#include "client/settings.h"

/*
 * trials_start() - ask them, if it is time to, in a process of their own
 * For a launcher, before it becomes the program. That process is nobody's child, has no descriptor of the caller's, and ends after a second
 * at most; what it finds out is in the user's cache. Converters whose names nobody has looked up yet are left out. Does nothing where
 * orphans are this process's own (PR_SET_CHILD_SUBREAPER).
 */
void trials_start(const struct settings *settings);

#endif
