/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bucket.h - so many in a second: token buckets (no I/O)
 *
 * BUCKET_SECONDS times the rate may be taken at once. Tokens are counted in thousandths, so that a
 * millisecond gives as many as the rate is.
 */
#ifndef CONVERTD_BUCKET_H
#define CONVERTD_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

#define BUCKET_SECONDS 5

/* Zeros: never used, full. */
struct bucket {
	uint64_t filled_ms; /* when @tokens was right */
	uint64_t tokens;    /* thousandths */
};

/* Is there one? @rate: a second; 0: as many as one likes. Time may seem to go backwards. */
bool bucket_has(struct bucket *bucket, unsigned rate, uint64_t now_ms);

/* Takes one, which is there. */
void bucket_take(struct bucket *bucket, unsigned rate);

/* Has it as many as it can have? */
bool bucket_is_full(struct bucket *bucket, unsigned rate, uint64_t now_ms);

#endif
