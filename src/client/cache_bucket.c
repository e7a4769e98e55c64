/* SPDX-License-Identifier: BSD-3-Clause */
/* cache_bucket.c - find and put records in the cache's mapping, a bucket at a time */
#include "config.h"

#include "client/cache_bucket.h"

#include "client/cache_file.h"

#include <stddef.h>
#include <string.h>

#define READS_MAX 4 /* of a record that isn't whole */

/* Returns 0 or -errno. */
static int bucket_read(struct cache_bucket *bucket, uint8_t *file, const struct cache_key *key)
{
	const struct cache_table *table = cache_table_of((enum cache_kind)key->kind);
	uint32_t offset = cache_bucket_offset(key);
	int ret;

	if (bucket->offset == offset)
		return 0;
	bucket->offset = 0;
	bucket->table = table;
	ret = cache_file_read(file, offset, bucket->bytes, (size_t)table->ways * table->record_size);
	if (ret == 0)
		bucket->offset = offset;
	return ret;
}

static void record_at(const struct cache_bucket *bucket, uint32_t way, struct cache_record *out)
{
	size_t size = bucket->table->record_size;

	memcpy(out, bucket->bytes + way * size, size);
}

/* Writes @record, or zeros for NULL. */
static int record_write(const struct cache_bucket *bucket, uint8_t *file, uint32_t way,
			const struct cache_record *record)
{
	static const struct cache_record nothing;
	size_t size = bucket->table->record_size;

	return cache_file_write(file, bucket->offset + way * (uint32_t)size,
				record ? record : &nothing, size);
}

static bool has_key(const struct cache_bucket *bucket, uint32_t way, const struct cache_key *key)
{
	const uint8_t *record = bucket->bytes + way * bucket->table->record_size;

	return memcmp(record + offsetof(struct cache_record, key), key, sizeof(*key)) == 0;
}

/* What a look into the copy of a bucket has found. */
enum look { LOOK_NOTHING, LOOK_TORN, LOOK_FOUND };

static enum look look_for(const struct cache_bucket *bucket, const struct cache_key *key, int64_t now, struct cache_record *out)
{
	enum look look = LOOK_NOTHING;
	struct cache_record record;

	for (uint32_t way = 0; way < bucket->table->ways; way++) {
		if (!has_key(bucket, way, key))
			continue;
		record_at(bucket, way, &record);
		if (look != LOOK_FOUND && !cache_record_is_whole(&record, bucket->table))
			look = LOOK_TORN;
		if (!cache_record_is_valid(&record, bucket->table, now) ||
		    (look == LOOK_FOUND && record.learned <= out->learned))
			continue;
		memcpy(out, &record, bucket->table->record_size);
		look = LOOK_FOUND;
	}
	return look;
}

/*
 * A record that isn't whole is being written at this moment, as a rule by a process that notes the same fact anew: it is read again. Where a
 * writer was killed in the middle it stays so, until somebody writes the next one.
 */
bool cache_bucket_find(struct cache_bucket *bucket, uint8_t *file, const struct cache_key *key,
		       int64_t now, struct cache_record *out)
{
	enum look look = LOOK_TORN;

	for (int i = 0; i < READS_MAX && look == LOOK_TORN; i++) {
		if (i)
			bucket->offset = 0; /* the copy is out of date */
		if (bucket_read(bucket, file, key) < 0)
			return false;
		look = look_for(bucket, key, now, out);
	}
	return look == LOOK_FOUND;
}

/* The place for a record whose key has none in the bucket: one that is free or has ended, else that of the oldest. */
static uint32_t victim(const struct cache_bucket *bucket, int64_t now)
{
	int64_t oldest = INT64_MAX;
	struct cache_record record;
	uint32_t found = 0;

	for (uint32_t way = 0; way < bucket->table->ways; way++) {
		record_at(bucket, way, &record);
		if (!cache_record_is_valid(&record, bucket->table, now))
			return way;
		if (record.learned < oldest) {
			oldest = record.learned;
			found = way;
		}
	}
	return found;
}

int cache_bucket_put(struct cache_bucket *bucket, uint8_t *file, struct cache_record *record,
		     int64_t now, int64_t until)
{
	bool done = until <= now;
	int ret;

	record->learned = now;
	record->until = until < now + CACHE_LIFETIME_MAX ? until : now + CACHE_LIFETIME_MAX;
	cache_record_seal(record);
	ret = bucket_read(bucket, file, &record->key);
	for (uint32_t way = 0; ret == 0 && way < bucket->table->ways; way++) {
		if (!has_key(bucket, way, &record->key))
			continue;
		ret = record_write(bucket, file, way, done ? NULL : record); /* a second record of the key is wiped */
		done = true;
	}
	if (ret == 0 && !done)
		ret = record_write(bucket, file, victim(bucket, now), record);
	bucket->offset = 0; /* the copy is out of date */
	return ret;
}
