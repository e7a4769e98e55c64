/* SPDX-License-Identifier: BSD-3-Clause */
/* enquiry.h - ask a converter, beside all connections, whether it takes blind requests, and the path whether it takes them in SYNs */
#ifndef SUPERVISE_ENQUIRY_H
#define SUPERVISE_ENQUIRY_H

#include "engine/path_start.h"

/*
 * enquiry_start() - ask, by the network of @start
 * What comes back is noted as if a connection had learned it. Returns whether it is being asked, or was a moment ago, with an answer by
 * which requests may be blind.
 */
bool enquiry_start(const struct path_start *start, int64_t now);

/* Looks for an answer. Returns when to look again, in nanoseconds of CLOCK_MONOTONIC; 0 for not at all. */
int64_t enquiry_look(int64_t now);

#endif
