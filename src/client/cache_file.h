/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cache_file.h - the bytes of the cache's file: their layout, and how a bucket is read and written
 *
 * For user_cache.c and its tests. The file:
 *
 *	struct cache_header, then from CACHE_TABLES_OFFSET on the tables one after the other;
 *	a table is an array of buckets, a bucket an array of `ways` records.
 *
 * The key of a record determines its bucket; any place in the bucket will do. A record's checksum covers all its bytes. Integers are in the
 * machine's byte order, as the file never leaves the machine.
 */
#ifndef CLIENT_CACHE_FILE_H
#define CLIENT_CACHE_FILE_H

#include "client/cache.h"
#include "common/thread.h"

#define CACHE_TABLES_OFFSET 4096
#define CACHE_BUCKET_MAX 2112 /* bytes of the longest bucket */
#define CACHE_REASON_MAX 52   /* bytes of a note's reason, with the NUL */
#define CACHE_BOOT_ID_LEN 36  /* a UUID in text, /proc/sys/kernel/random/boot_id */

/* Tolerance for records of other processes that look younger than now: a process reads the clock before it calls. */
#define CACHE_CLOCK_SLACK 60000 /* ms */

/* The header of the file. A process uses a file only if it would write the same header, byte for byte. */
struct cache_header {
	char magic[16];
	uint32_t layout; /* the number in the file's name */
	uint32_t size;   /* bytes of the file */
	char boot[40];   /* the boot that CLOCK_BOOTTIME counts from */
};

enum cache_kind {
	CACHE_KIND_NONE, /* never written: a record of zeros is a free one */
	CACHE_KIND_REST,
	CACHE_KIND_INFO,
	CACHE_KIND_COOKIE,
	CACHE_KIND_ANSWER,
	CACHE_KIND_MPTCP,
	CACHE_KIND_SILENCE,
	CACHE_KIND_PATH,
	CACHE_KIND_NOTE, /* of a connection: notes.c */
	CACHE_KIND_COUNT
};

/* The subject of a record, and the kind of fact. */
struct cache_key {
	uint64_t origin; /* the path of CACHE_KIND_PATH and CACHE_KIND_MPTCP, the source of CACHE_KIND_ANSWER; else 0 */
	uint8_t address[16]; /* of CACHE_KIND_NOTE: the socket's SO_COOKIE */
	uint16_t port; /* host byte order */
	uint8_t kind;  /* enum cache_kind */
	uint8_t zero;
	uint32_t network; /* of the namespace where it was learned: cache_network(), folded */
};

union cache_value {
	struct {
		uint32_t flags;
		uint8_t count, kinds[CACHE_KINDS_MAX], zero[3];
	} info;
	struct {
		uint16_t len;
		uint8_t bytes[CACHE_COOKIE_MAX], zero[6];
	} cookie;
	struct {
		uint32_t verdict, zero;
	} answer, mptcp;
	struct {
		uint64_t destination;
		uint32_t destinations, zero;
	} silence;
	struct {
		uint64_t asked;
		uint32_t state;
		uint16_t rtt_ms;
		uint8_t doubts, zero;
	} path;
	struct {
		uint8_t server[16], converter[16], client[16]; /* IPv4 as v4-mapped; ::: none */
		uint16_t server_port, converter_port, client_port, flags;
		uint32_t connect_ms;
		char reason[CACHE_REASON_MAX];
	} note;
};

/* A record. Its first table->record_size bytes are in the file. */
struct cache_record {
	uint64_t checksum;
	int64_t learned, until; /* ms of CLOCK_BOOTTIME */
	struct cache_key key;
	union cache_value value;
};

struct cache_table {
	uint32_t offset;      /* bytes from the beginning of the file */
	uint32_t buckets;     /* a power of two */
	uint32_t ways;        /* records in a bucket */
	uint32_t record_size; /* bytes, a multiple of 8 */
};

/* Bytes of the whole file. */
uint32_t cache_file_size(void);

/* Sets all of @out. Most kinds ignore @origin, see above. Returns false if @address is neither IPv4 nor IPv6. */
bool cache_key_set(struct cache_key *out, enum cache_kind kind, const union sockaddr_ip *address, uint64_t network, uint64_t origin);

/* Returns the table for records of @kind, which isn't CACHE_KIND_NONE. */
const struct cache_table *cache_table_of(enum cache_kind kind);

/* Returns the offset in the file of the bucket for @key. The kind chooses the table. Neither kind nor origin chooses the bucket in it. */
uint32_t cache_bucket_offset(const struct cache_key *key);

/* May a record of @kind have this value? */
bool cache_value_is_valid(enum cache_kind kind, const union cache_value *value);

/* Fills in the checksum. Call it last; unused bytes of the record are 0. */
void cache_record_seal(struct cache_record *record);

/* Is the record intact: does its kind belong to @table, and is its checksum right? */
bool cache_record_is_whole(const struct cache_record *record, const struct cache_table *table);

/* A call on the cache, with a copy of a bucket, so that several of its records cost one read. */
struct cache_bucket {
	const struct cache *cache;
	int fd; /* of the file, until the end of the call; -1: it is mapped */
	struct quiet quiet;
	const struct cache_table *table;
	uint32_t offset; /* of the bucket in the file; 0 (the header's place): nothing read yet */
	uint8_t bytes[CACHE_BUCKET_MAX];
};

/* Begins a call. Returns false if the cache is off for this process with its present identity; then don't call cache_bucket_end(). */
bool cache_bucket_begin(struct cache_bucket *bucket, const struct cache *cache);
void cache_bucket_end(struct cache_bucket *bucket);

/*
 * cache_bucket_find() - find the youngest record with @key that is valid at @now
 * Reads @bucket from the file, unless it already holds the bucket of @key.
 * Returns false, with @out undefined, if there is none or the file can't be read.
 */
bool cache_bucket_find(struct cache_bucket *bucket, const struct cache_key *key, int64_t now, struct cache_record *out);

/*
 * cache_bucket_put() - note @record, or, if @until has passed, erase all records of its key
 * @record: the caller sets key and value; this function fills in the rest
 * Returns 0 or -errno, as cache_converter_update(). Discards the copy in @bucket.
 */
int cache_bucket_put(struct cache_bucket *bucket, struct cache_record *record, int64_t now, int64_t until);

/*
 * cache_bucket_read(), cache_bucket_write() - copy @len bytes of the file, at @offset
 * Returns 0, -EFAULT if the file has become shorter or its file system is full, or another -errno. It may have copied a part then.
 */
int cache_bucket_read(const struct cache_bucket *bucket, uint32_t offset, void *buf, size_t len);
int cache_bucket_write(const struct cache_bucket *bucket, uint32_t offset, const void *buf, size_t len);

/*
 * cache_file_peek() - open the file at @path, of any user, to read it
 * Returns a descriptor if it is a file of this boot and layout, with its owner in @owner; or -errno.
 */
int cache_file_peek(const char *path, uid_t *owner);

/* Creates or finds the file in @directory, and maps it or notes its path: cache_open_at(). */
int cache_file_open(struct cache *cache, int directory, const char *path);

#endif
