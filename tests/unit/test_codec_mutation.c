/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_codec_mutation.c - each byte of good messages set to each other value; each truncation
 *
 * The properties (tests/fuzz/properties.c) abort, which Check reports as a signal.
 */
#include "bytes.h"
#include "run.h"
#include "../fuzz/properties.h"

#include <check.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define V4 "00*10 ffff c0000201 "

static const struct {
	void (*check)(const uint8_t *data, size_t size);
	const char *hex;
} messages[] = {
	{ request_check, "01022263 01010000" },
	{ request_check, "01062263 0a0501bb " V4 },
	{ request_check, "01062263 0a0501bb 20010db8 00*11 01 47455420" },
	{ request_check, "01092263 0a0801bb " V4 "220a0011 22334455 66770402" },
	{ request_check, "010a2263 01010000 0a0601bb " V4 "1e020101 16020000 deadbeef" },
	{ response_check, "01012263" },
	{ response_check, "01032263 14020000 020405b4" },
	{ response_check, "01052263 15020000 1e220000 14020000 03030700 48545450" },
	{ response_check, "01022263 1e010001" },
	{ response_check, "01062263 1e050100 01042263 c0010000 00*8" },
	{ response_check, "01042263 1e030300 01234567 89abcdef" },
	{ response_check, "01032263 1e022122 1d000000" },
	{ response_check, "01052263 c0020000 00000001 14010000 1e01600a" },
};

START_TEST(every_byte)
{
	struct bytes message = bytes_hex(messages[_i].hex);

	messages[_i].check(message.data, message.len);
	for (size_t at = 0; at < message.len; at++) {
		uint8_t original = message.data[at];

		for (unsigned int change = 1; change < 256; change++) {
			message.data[at] = (uint8_t)(original + change);
			messages[_i].check(message.data, message.len);
		}
		message.data[at] = original;
	}
	bytes_fini(&message);
}
END_TEST

START_TEST(every_truncation)
{
	struct bytes message = bytes_hex(messages[_i].hex);

	for (size_t len = 0; len <= message.len; len++) {
		struct bytes part = bytes_copy(message.data, len);

		messages[_i].check(part.data, part.len);
		/* ... and with a header that calls it whole */
		if (len >= 4) {
			part.data[1] = (uint8_t)(len / 4);
			messages[_i].check(part.data, part.len);
		}
		bytes_fini(&part);
	}
	bytes_fini(&message);
}
END_TEST

/* Every type and length that the first TLV can have. */
START_TEST(every_type_and_length)
{
	struct bytes message = bytes_hex(messages[_i].hex);

	for (unsigned int both = 0; message.len >= 6 && both < 65536; both++) {
		message.data[4] = (uint8_t)(both >> 8);
		message.data[5] = (uint8_t)both;
		messages[_i].check(message.data, message.len);
	}
	bytes_fini(&message);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("codec_mutation");
	TCase *tcase = tcase_create("mutation");

	tcase_add_loop_test(tcase, every_byte, 0, (int)ARRAY_SIZE(messages));
	tcase_add_loop_test(tcase, every_truncation, 0, (int)ARRAY_SIZE(messages));
	tcase_add_loop_test(tcase, every_type_and_length, 0, (int)ARRAY_SIZE(messages));
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
