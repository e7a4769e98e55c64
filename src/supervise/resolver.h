/* SPDX-License-Identifier: BSD-3-Clause */
/* resolver.h - looks up converters' names in a thread of its own, so that no other connection waits */
#ifndef SUPERVISE_RESOLVER_H
#define SUPERVISE_RESOLVER_H

#include "client/converters.h"

/*
 * resolver_start() - look up the names that the choice @query needs
 * supervision.resolver_ready becomes readable when that is done, also if another was under way. Returns false if no thread can
 * be had.
 */
bool resolver_start(const struct converters_query *query);

#endif
