/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_cache_damage.c - the cache's file with each byte of the header and of a record changed, and cut at each length
 *
 * Whatever is wrong with it, the worst consequence is that nothing is found; a signal would fail the test.
 */
#include "config.h"

#include "cache_fixture.h"
#include "run.h"

#include <errno.h>

/* A damaged file is replaced; processes that have the old one mapped keep that. */
START_TEST(every_byte_of_the_header)
{
	struct cache_header header;
	struct cache first = opened();
	int fd;

	cache_close(&first);
	fd = open(file, O_RDONLY);
	ck_assert_int_eq(pread(fd, &header, sizeof(header), 0), (ssize_t)sizeof(header));
	close(fd);
	for (size_t at = 0; at < sizeof(header); at++) {
		struct cache old = opened(), new;
		uint8_t byte = (uint8_t)(((uint8_t *)&header)[at] ^ (1u << (at % 8)));
		uint16_t one = (uint16_t)(3 * at), two = one + 1, three = one + 2;
		ino_t inode = file_inode();

		ck_assert_int_eq(put(&old, one), 0);
		file_write(&byte, 1, (off_t)at);
		new = opened();
		ck_assert_uint_ne(file_inode(), inode);
		ck_assert(!has(&new, one));
		ck_assert_int_eq(put(&new, two), 0);
		ck_assert(has(&new, two));
		if (old.file) {
			ck_assert(has(&old, one) && !has(&old, two));
			ck_assert_int_eq(put(&old, three), 0);
			ck_assert(has(&old, three) && !has(&new, three));
		} else { /* the file is opened each time: it is the new one */
			ck_assert(!has(&old, one) && has(&old, two));
		}
		cache_close(&old);
		cache_close(&new);
	}
	ck_assert_uint_eq(files_in_directory(), 1);
}
END_TEST

/* The file is cut at every length of the header's page; beyond that page, only its size matters. */
START_TEST(every_length_before_opening)
{
	struct cache last;

	for (off_t len = 0; len < (off_t)cache_file_size(); len += len < 4200 ? 1 : 97) {
		struct cache cache = opened();

		ck_assert_int_eq(put(&cache, 1), 0);
		cache_close(&cache);
		ck_assert_int_eq(truncate(file, len), 0);
		cache = opened();
		ck_assert(!has(&cache, 1));
		ck_assert_int_eq(put(&cache, 2), 0);
		ck_assert(has(&cache, 2));
		cache_close(&cache);
	}
	ck_assert_int_eq(truncate(file, cache_file_size() + 1), 0);
	last = opened();
	cache_close(&last);
	ck_assert_uint_eq(files_in_directory(), 1);
}
END_TEST

/* Cut while it is mapped, where a direct access would raise SIGBUS. */
START_TEST(every_length_while_mapped)
{
	union sockaddr_ip addr = address(1);
	struct cache_converter facts = { .rest.until = LATER,
					 .cookie = { .until = LATER, .len = CACHE_COOKIE_MAX } };
	struct cache cache = opened(), another;
	bool cookie = true, server = true, rest = true;

	put(&cache, 1);
	cache_converter_update(&cache, &addr, 0, CACHE_REST | CACHE_COOKIE, NOW, &facts);
	for (off_t len = cache_file_size(); len >= 0; len -= len % 8 ? 1 : 7) {
		unsigned int found;

		ck_assert_int_eq(truncate(file, len), 0);
		found = cache_converter_get(&cache, &addr, 0, CACHE_FACTS_ALL, NOW, &facts);
		/* once lost it doesn't come back */
		ck_assert(cookie || !(found & CACHE_COOKIE));
		ck_assert(rest || !(found & CACHE_REST));
		ck_assert(server || !has(&cache, 1));
		cookie = found & CACHE_COOKIE;
		rest = found & CACHE_REST;
		server = has(&cache, 1);
	}
	ck_assert(!cookie && !rest && !server);
	ck_assert_int_eq(put(&cache, 1), -EFAULT);
	ck_assert(!has(&cache, 1));
	/* a process that opens the cache later starts with an empty file */
	another = opened();
	put(&another, 2);
	cache_close(&another);
	ck_assert_int_eq(has(&cache, 2), !cache.file); /* unless this one opens the file each time */
	cache_close(&cache);
}
END_TEST

/* Returns the offset in the file of the record for @kind, which is the only one in its bucket. */
static off_t record_offset(enum cache_kind kind)
{
	union sockaddr_ip addr = address(1);
	struct cache_key key;
	off_t offset;

	ck_assert(cache_key_set(&key, kind, &addr, 0, 0));
	offset = cache_bucket_offset(&key);
	/* the facts are in one bucket, in the order in which they were noted */
	if (kind >= CACHE_KIND_REST && kind <= CACHE_KIND_INFO)
		offset += (kind - CACHE_KIND_REST) * (off_t)cache_table_of(kind)->record_size;
	else if (kind >= CACHE_KIND_MPTCP && kind <= CACHE_KIND_PATH)
		offset += (2 + (kind - CACHE_KIND_MPTCP)) * (off_t)cache_table_of(kind)->record_size;
	return offset;
}

static bool is_known(const struct cache *cache, enum cache_kind kind)
{
	static const unsigned int facts[] = { [CACHE_KIND_REST] = CACHE_REST,
					      [CACHE_KIND_INFO] = CACHE_INFO,
					      [CACHE_KIND_COOKIE] = CACHE_COOKIE,
					      [CACHE_KIND_MPTCP] = CACHE_MPTCP,
					      [CACHE_KIND_SILENCE] = CACHE_SILENCE,
					      [CACHE_KIND_PATH] = CACHE_PATH };
	union sockaddr_ip addr = address(1);
	struct cache_converter out;

	return kind == CACHE_KIND_ANSWER ?
		       has(cache, 1) :
		       cache_converter_get(cache, &addr, 0, facts[kind], NOW, &out) != 0;
}

static void note_everything(const struct cache *cache)
{
	union sockaddr_ip addr = address(1);
	struct cache_converter facts = { .rest.until = LATER,
					 .info = { .until = LATER, .count = 1, .kinds = { 30 } },
					 .cookie = { .until = LATER, .len = 16 },
					 .mptcp = { .until = LATER, .verdict = CACHE_MPTCP_LOST },
					 .silence = { .until = LATER, .destinations = 1 },
					 .path = { .until = LATER, .state = CACHE_PATH_LOSES } };

	ck_assert_int_eq(cache_converter_update(cache, &addr, 0, CACHE_FACTS_ALL, NOW, &facts), 0);
	ck_assert_int_eq(put(cache, 1), 0);
}

/* A record with any byte damaged isn't found until it is written again. */
START_TEST(every_byte_of_a_record)
{
	enum cache_kind kind = (enum cache_kind)_i;
	size_t size = cache_table_of(kind)->record_size;
	unsigned int step = kind == CACHE_KIND_COOKIE ? 51 : 1;
	struct cache cache = opened();
	int fd = open(file, O_RDWR);
	off_t offset = record_offset(kind);
	uint8_t record[2048], byte;

	note_everything(&cache);
	ck_assert_int_eq(pread(fd, record, size, offset), (ssize_t)size);
	for (size_t at = 0; at < size; at++) {
		for (unsigned int change = 1; change < 256; change += step) {
			byte = (uint8_t)(record[at] ^ change);
			ck_assert_int_eq(pwrite(fd, &byte, 1, offset + (off_t)at), 1);
			ck_assert(!is_known(&cache, kind));
		}
		note_everything(&cache);
		ck_assert(is_known(&cache, kind));
		ck_assert_int_eq(pwrite(fd, record, size, offset), (ssize_t)size);
	}
	ck_assert(is_known(&cache, kind));
	close(fd);
	cache_close(&cache);
}
END_TEST

static void tests_add(TCase *tcase, SFun setup_function)
{
	tcase_add_checked_fixture(tcase, setup_function, teardown);
	tcase_add_test(tcase, every_byte_of_the_header);
	tcase_add_test(tcase, every_length_before_opening);
	tcase_add_test(tcase, every_length_while_mapped);
	tcase_add_loop_test(tcase, every_byte_of_a_record, CACHE_KIND_REST, CACHE_KIND_NOTE);
}

int main(void)
{
	Suite *suite = suite_create("cache_damage");
	TCase *tcase = tcase_create("damage");

	tests_add(tcase, setup);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("without_rights");
	tests_add(tcase, setup_without_rights);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
