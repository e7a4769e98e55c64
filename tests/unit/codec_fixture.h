/* SPDX-License-Identifier: BSD-3-Clause */
/* codec_fixture.h - a writer of messages on a buffer of a given size, and checks for each of its writes */
#ifndef TESTS_UNIT_CODEC_FIXTURE_H
#define TESTS_UNIT_CODEC_FIXTURE_H

#include "bytes.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <string.h>

#include <convert/convert.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define V4 "00*10 ffff c0000201 "

/* A writer on a heap buffer of exactly its capacity. */
struct fixture {
	struct bytes buf;
	struct convert_writer w;
};

static inline void fixture_init(struct fixture *f, size_t capacity)
{
	uint8_t rubbish[2048];

	memset(rubbish, 0xa5, sizeof(rubbish)); /* padding must be written, not found */
	f->buf = bytes_copy(rubbish, capacity);
	convert_writer_init(&f->w, f->buf.data, capacity);
}

static inline void fixture_expect(struct fixture *f, const char *hex)
{
	ssize_t len = convert_writer_finish(&f->w);

	ck_assert_int_gt(len, 0);
	bytes_assert_hex(f->buf.data, (size_t)len, hex);
	bytes_fini(&f->buf);
}

static inline void fixture_expect_error(struct fixture *f, int error)
{
	ck_assert_int_eq(convert_writer_finish(&f->w), error);
	bytes_fini(&f->buf);
}

static inline struct in6_addr in6(const char *text)
{
	struct in6_addr address;

	ck_assert_int_eq(inet_pton(AF_INET6, text, &address), 1);
	return address;
}

/* Makes one write to @w. */
typedef void write_one(struct convert_writer *w);

/* One write gives these bytes, in a buffer of that size, too; in a smaller one it fails, unless it is @cut; a second one fails. */
static inline void expect_golden(write_one *write, const char *hex, bool cut)
{
	struct bytes want = bytes_hex(hex);
	struct fixture f;

	fixture_init(&f, CONVERT_MESSAGE_MAX);
	write(&f.w);
	fixture_expect(&f, hex);
	fixture_init(&f, want.len);
	write(&f.w);
	fixture_expect(&f, hex);
	for (size_t capacity = 0; capacity < want.len; capacity++) {
		fixture_init(&f, capacity);
		write(&f.w);
		if (cut && capacity >= 8) {
			ck_assert_int_eq(convert_writer_finish(&f.w), (int)(capacity / 4 * 4));
			bytes_fini(&f.buf);
		} else {
			fixture_expect_error(&f, -ENOBUFS);
		}
	}
	fixture_init(&f, CONVERT_MESSAGE_MAX);
	write(&f.w);
	convert_write_tlv(&f.w, 200, NULL, 0);
	write(&f.w);
	fixture_expect_error(&f, -EEXIST);
	bytes_fini(&want);
}

/* One write is refused, and the first fault stays. */
static inline void expect_refused(write_one *write)
{
	struct fixture f;

	fixture_init(&f, CONVERT_MESSAGE_MAX);
	write(&f.w);
	fixture_expect_error(&f, -EINVAL);
	fixture_init(&f, CONVERT_MESSAGE_MAX);
	convert_write_info(&f.w);
	convert_write_info(&f.w);
	write(&f.w);
	ck_assert_uint_eq(f.w.len, 8);
	fixture_expect_error(&f, -EEXIST);
}

#endif
