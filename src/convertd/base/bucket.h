/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bucket.h - token buckets: limits of a number per second (no I/O)
 *
 * A full bucket holds BUCKET_SECONDS times the rate, which may be taken at once. Tokens are counted in thousandths, so
 * that each millisecond adds as many thousandths as the rate has tokens per second. A bucket has no lock of its own.
 */
#ifndef CONVERTD_BUCKET_H
#define CONVERTD_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

#define BUCKET_SECONDS 5

/* A zeroed bucket was never used, and is full. */
struct bucket {
	uint64_t filled_ms; /* the time at which @tokens was computed; 0: never */
	uint64_t tokens;    /* in thousandths of a token */
};

/*
 * Tells whether there is a token. @rate: tokens per second; 0: no limit. @now_ms may be earlier than in the call before,
 * as threads may come in another order than they read the clock.
 */
bool bucket_has(struct bucket *bucket, unsigned rate, uint64_t now_ms);

/* Takes a token; bucket_has() has just said that there is one. */
void bucket_take(struct bucket *bucket, unsigned rate);

/* Tells whether the bucket is full, so that it may be forgotten: a new one would be the same. */
bool bucket_is_full(struct bucket *bucket, unsigned rate, uint64_t now_ms);

#endif
