/* SPDX-License-Identifier: BSD-3-Clause */
/* enquiry.h - asks a converter whether it takes blind requests, and tests whether the path takes data in SYNs */
#ifndef SUPERVISE_ENQUIRY_H
#define SUPERVISE_ENQUIRY_H

#include "engine/path_start.h"

/*
 * enquiry_start() - ask the converter of @start over its network
 * The answer is noted as if a connection had learned it. Returns true if the question is under way, or if the converter has answered within
 * the last second that it takes blind requests.
 */
bool enquiry_start(const struct path_start *start, int64_t now);

/* Looks for an answer. Returns when to look again, in nanoseconds of CLOCK_MONOTONIC; 0 for not at all. */
int64_t enquiry_look(int64_t now);

#endif
