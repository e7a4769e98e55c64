/* SPDX-License-Identifier: BSD-3-Clause */
/* cache_bucket.h - find and put records in the cache's mapping, a bucket at a time */
#ifndef CLIENT_CACHE_BUCKET_H
#define CLIENT_CACHE_BUCKET_H

#include "client/cache_record.h"

/* A copy of a bucket, so that it is read once for several of its records. */
struct cache_bucket {
	const struct cache_table *table;
	uint32_t offset; /* of the bucket in the file; 0 (the header is there): nothing has been read */
	uint8_t bytes[CACHE_BUCKET_MAX];
};

/*
 * cache_bucket_find() - the youngest record with @key that is valid at @now
 * @bucket: is read from the file, unless it has the bucket of @key already
 * Returns false, with @out undefined, if there is none or the file can't be read.
 */
bool cache_bucket_find(struct cache_bucket *bucket, uint8_t *file, const struct cache_key *key,
		       int64_t now, struct cache_record *out);

/*
 * cache_bucket_put() - note @record, or if @until has passed wipe what there is of its key
 * @record: its key and value are set; the rest is filled in here
 * Returns 0 or -errno, as cache_file_write(). @bucket is unread afterwards.
 */
int cache_bucket_put(struct cache_bucket *bucket, uint8_t *file, struct cache_record *record,
		     int64_t now, int64_t until);

#endif
