/* SPDX-License-Identifier: BSD-3-Clause */
/* bucket.c - token buckets: limits of a number per second (no I/O) */
#include "config.h"

#include "convertd/base/bucket.h"

#define TOKEN 1000

static uint64_t bucket_size(unsigned rate)
{
	return (uint64_t)rate * BUCKET_SECONDS * TOKEN;
}

/* Adds the tokens of the time since the last call. */
static void bucket_fill(struct bucket *bucket, unsigned rate, uint64_t now_ms)
{
	uint64_t full = bucket_size(rate);
	/* A thread that read the clock earlier than another may get here later. */
	uint64_t elapsed = now_ms > bucket->filled_ms ? now_ms - bucket->filled_ms : 0;

	if (!bucket->filled_ms || elapsed >= BUCKET_SECONDS * 1000)
		bucket->tokens = full;
	else
		bucket->tokens += elapsed * rate;
	if (bucket->tokens > full)
		bucket->tokens = full;
	if (now_ms > bucket->filled_ms)
		bucket->filled_ms = now_ms;
}

bool bucket_has(struct bucket *bucket, unsigned rate, uint64_t now_ms)
{
	if (!rate)
		return true;
	bucket_fill(bucket, rate, now_ms);
	return bucket->tokens >= TOKEN;
}

void bucket_take(struct bucket *bucket, unsigned rate)
{
	if (rate)
		bucket->tokens -= TOKEN;
}

bool bucket_is_full(struct bucket *bucket, unsigned rate, uint64_t now_ms)
{
	if (!rate || !bucket->filled_ms)
		return true;
	bucket_fill(bucket, rate, now_ms);
	return bucket->tokens == bucket_size(rate);
}
