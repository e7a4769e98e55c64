/* SPDX-License-Identifier: BSD-3-Clause */
/* tally.h - what has come of the load so far, and the JSON object that tells it */
#ifndef LOAD_TALLY_H
#define LOAD_TALLY_H

#include "samples.h"

#include <stdbool.h>

#define TALLY_ERRNO_MAX 256

struct tally {
	int64_t start, from, to; /* of the load, and of the time that is measured; by loop_now() */
	int64_t last_progress;
	uint64_t connections, requests, failed;
	uint64_t bytes, bytes_all; /* both directions, within the measured time and in all */
	uint64_t errors[TALLY_ERRNO_MAX];
	int64_t timeline_ns; /* of an interval */
	uint64_t *timeline;  /* bytes of each interval; NULL: not wanted */
	size_t timeline_len;
	struct samples connected, first_byte, latency;
};

/* Gets the memory for a timeline with such intervals; 0: there is to be none. Ends the program where there is no memory. */
void tally_init(struct tally *tally, int64_t timeline_ns);

/* Begins the load now: it is measured for @duration_ns behind @warmup_ns; without end if that is 0. Forgets what was counted. */
void tally_begin(struct tally *tally, int64_t warmup_ns, int64_t duration_ns);

/* Is what lasted from one time to the other within the measured time? */
bool tally_measures(const struct tally *tally, int64_t from, int64_t to);

/* Counts bytes that went either way just now. */
void tally_bytes(struct tally *tally, size_t bytes);

/* Counts a connection that has failed with this errno, or with another reason, 0. */
void tally_failure(struct tally *tally, int error);

/*
 * Prints all of it as a line. @end: when the load has ended; @opened, @unfinished: connections, in all and still running. Its "start"
 * is on CLOCK_MONOTONIC, for whoever wants to know what else happened when.
 */
void tally_print(struct tally *tally, int64_t end, uint64_t opened, uint64_t unfinished);

#endif
