/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_codec_private.c - this project's private TLVs (doc/private-tlvs.md), spelled byte by byte, read
 */
#include "bytes.h"
#include "run.h"

#include <check.h>
#include <stdio.h>

#include <convert/convert.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* 192.0.2.1 as v4-mapped, port 443 */
#define CONNECT_V4 "0a05 01bb 00*10 ffff c0000201"

/* The message with this Magic Number that has these TLVs, with the Total Length that they take; the caller frees it. */
static struct bytes message_of(const char *magic, const char *tlv, const char *more)
{
	struct bytes message;
	char hex[128];

	snprintf(hex, sizeof(hex), "01ff%s %s %s", magic, tlv, more);
	message = bytes_hex(hex);
	message.data[1] = (uint8_t)(message.len / 4);
	return message;
}

static const struct {
	const char *tlv;
	bool has, withheld;
	uint16_t limit_ms;
	bool corrects, silent, blind, repeats, hold_times, no_way;
} withholdings[] = {
	{ "f002 0103 07d0 6c63", true, true, 2000, true, false, false, false, false, false },
	{ "f002 0101 07d0 6c63", true, true, 2000, true, false, false, false, false, false }, /* of a first version */
	{ "f002 0105 07d0 6c63", true, true, 2000, false, false, false, false, false, false },
	{ "f002 0107 07d0 6c63", true, true, 2000, true, false, false, false, false, false },
	{ "f002 0102 0000 6c63", true, false, 0, true, false, false, false, false, false },
	{ "f002 0104 0000 6c63", true, false, 0, false, false, false, false, false, false },
	{ "f002 0100 07d0 6c63", true, false, 0, false, false, false, false, false, false }, /* a limit, and not withheld */
	{ "f002 010b 07d0 6c63", true, true, 2000, true, true, false, false, false, false },
	{ "f002 011b 07d0 6c63", true, true, 2000, true, true, true, false, false, false },
	{ "f002 013b 07d0 6c63", true, true, 2000, true, true, true, true, false, false },
	{ "f002 0143 07d0 6c63", true, true, 2000, true, false, false, false, true, false },
	{ "f002 0142 07d0 6c63", true, false, 0, true, false, false, false, false, false }, /* hold times, and not withheld */
	{ "f002 012b 07d0 6c63", true, true, 2000, true, true, false, false, false, false }, /* repeats, and not blind */
	{ "f002 0113 07d0 6c63", true, true, 2000, true, false, false, false, false, false }, /* blind, and not silent */
	{ "f002 01f8 ffff 6c63", true, false, 0, false, false, false, false, false, true },   /* silent, and not withheld */
	{ "f002 0101 ffff 6c63", true, true, 65535, true, false, false, false, false, false },
	{ "f003 01ff 0001 6c63 12345678", true, true, 1, true, true, true, true, true, true }, /* fields to come */
	{ "f002 0203 07d0 6c63", false, false, 0, false, false, false, false, false, false },	/* a version to come */
	{ "f002 0103 07d0 0000", false, false, 0, false, false, false, false, false, false },	/* somebody else's */
	{ "f001 0103 1501 0000", false, false, 0, false, false, false, false, false, false },
	{ "ff02 0103 07d0 6c63", false, false, 0, false, false, false, false, false, false },
};

START_TEST(response_withholding)
{
	struct bytes message = message_of("2263", withholdings[_i].tlv, "");
	struct convert_response response;

	ck_assert_int_eq(convert_response_parse(message.data, message.len, &response), CONVERT_STATUS_OK);
	ck_assert_int_eq(response.has_withholding, withholdings[_i].has);
	ck_assert_int_eq(response.withholding.withheld, withholdings[_i].withheld);
	ck_assert_uint_eq(response.withholding.limit_ms, withholdings[_i].limit_ms);
	ck_assert_int_eq(response.withholding.corrects, withholdings[_i].corrects);
	ck_assert_int_eq(response.withholding.silent, withholdings[_i].silent);
	ck_assert_int_eq(response.withholding.blind, withholdings[_i].blind);
	ck_assert_int_eq(response.withholding.repeats, withholdings[_i].repeats);
	ck_assert_int_eq(response.withholding.hold_times, withholdings[_i].hold_times);
	ck_assert_int_eq(response.withholding.no_way, withholdings[_i].no_way);
	bytes_fini(&message);
}
END_TEST

/* In a request it is the converter's with the mark, and unknown without it. */
static const struct {
	const char *tlv;
	enum convert_status status;
} withholdings_asked[] = {
	{ "f002 0103 07d0 6c63", CONVERT_STATUS_TLV_WRONG_DIRECTION },
	{ "f003 0100 0000 6c63 12345678", CONVERT_STATUS_TLV_WRONG_DIRECTION },
	{ "f002 0203 07d0 6c63", CONVERT_STATUS_TLV_UNKNOWN },
	{ "f002 0103 07d0 6c64", CONVERT_STATUS_TLV_UNKNOWN },
	{ "f001 0103", CONVERT_STATUS_TLV_UNKNOWN },
	{ "f000 0103", CONVERT_STATUS_TLV_ZERO_LENGTH },
	{ "f003 0103 07d0 6c63", CONVERT_STATUS_TLV_PAST_END },
};

START_TEST(request_withholding)
{
	struct bytes message = message_of("2263", "01010000", withholdings_asked[_i].tlv);
	struct convert_request request;

	ck_assert_int_eq(convert_request_parse(message.data, message.len, &request), withholdings_asked[_i].status);
	ck_assert(!request.has_info && !request.tlvs.data);
	bytes_fini(&message);
}
END_TEST

/* A Silence TLV with these flags, and what may follow in the future. */
static const struct {
	const char *tlv;
	bool blind, mptcp;
	uint64_t attempt;
	uint16_t repeat;
} silences[] = {
	{ "f202 0100 0000 6c63", false, false, 0, 0 },
	{ "f202 0101 0000 6c63", true, false, 0, 0 },
	{ "f202 0102 0000 6c63", false, true, 0, 0 },
	{ "f203 01ff ffff 6c63 12345678", true, true, 0, 0 }, /* too short for an attempt */
	{ "f204 0101 0102 6c63 0123456789abcdef", true, false, 0x0123456789abcdef, 258 },
	{ "f204 0101 0102 6c63 0000000000000000", true, false, 0, 0 },
	{ "f206 0103 0000 6c63 fedcba9876543210 00000000 12345678", true, true, 0xfedcba9876543210, 0 },
};

START_TEST(request_silence)
{
	struct bytes message = message_of("6c63", silences[_i].tlv, CONNECT_V4);
	struct convert_request request;
	struct convert_response response;

	ck_assert_int_eq(convert_request_parse(message.data, message.len, &request), CONVERT_STATUS_OK);
	ck_assert(request.has_silence && request.has_connect && !request.has_info);
	ck_assert_uint_eq(request.port, 443);
	ck_assert_int_eq(request.silence.blind, silences[_i].blind);
	ck_assert_int_eq(request.silence.mptcp, silences[_i].mptcp);
	ck_assert_uint_eq(request.silence.attempt, silences[_i].attempt);
	ck_assert_uint_eq(request.silence.repeat, silences[_i].repeat);
	ck_assert_uint_eq(request.silence.padding, 0);
	ck_assert(request.tlvs.data == message.data + 4 && request.tlvs.len == message.len - 4);
	/* No response has this Magic Number, and in one with the RFC's the TLV is passed over. */
	ck_assert_int_eq(convert_response_parse(message.data, message.len, &response), CONVERT_STATUS_BAD_MAGIC);
	bytes_fini(&message);
	message = message_of("2263", silences[_i].tlv, "");
	ck_assert_int_eq(convert_response_parse(message.data, message.len, &response), CONVERT_STATUS_OK);
	bytes_fini(&message);
}
END_TEST

/* An incomplete message already tells whether it is a silent request, whose client may get no answer. */
static const struct {
	const char *hex;
	enum convert_status status;
	bool silent;
	size_t length;
} silent_headers[] = {
	{ "01 02 6c", CONVERT_STATUS_NEED_MORE, false, 0 },
	{ "01 02 6c 63", CONVERT_STATUS_NEED_MORE, true, 8 },
	{ "01 02 6c 63 f2", CONVERT_STATUS_NEED_MORE, true, 8 },
	{ "01 02 6c 64", CONVERT_STATUS_BAD_MAGIC, false, 0 },
	{ "01 02 6d", CONVERT_STATUS_BAD_MAGIC, false, 0 },
	{ "02 02 6c 63", CONVERT_STATUS_BAD_SILENCE, true, 8 },
	{ "01 00 6c 63", CONVERT_STATUS_BAD_SILENCE, true, 0 },
};

START_TEST(silent_header)
{
	struct bytes message = bytes_hex(silent_headers[_i].hex);
	struct convert_request request;
	size_t length = 1;

	ck_assert_int_eq(convert_request_parse(message.data, message.len, &request), silent_headers[_i].status);
	ck_assert_int_eq(request.has_silence, silent_headers[_i].silent);
	ck_assert_uint_eq(request.length, silent_headers[_i].length);
	ck_assert(!request.has_connect && !request.tlvs.data);
	ck_assert_int_eq(convert_message_length(message.data, message.len, &length), CONVERT_STATUS_BAD_MAGIC);
	bytes_fini(&message);
}
END_TEST

/* The same of an Echo TLV, in both directions. */
static const struct {
	const char *tlv;
	bool has;
	uint16_t limit_kib;
	enum convert_status asked; /* by a request */
} echoes[] = {
	{ "f102 0100 0100 6c63", true, 256, CONVERT_STATUS_OK },
	{ "f102 01ff 0000 6c63", true, 0, CONVERT_STATUS_OK },
	{ "f103 0100 ffff 6c63 12345678", true, 65535, CONVERT_STATUS_OK },
	{ "f102 0200 0100 6c63", false, 0, CONVERT_STATUS_TLV_UNKNOWN },
	{ "f102 0100 0100 6c64", false, 0, CONVERT_STATUS_TLV_UNKNOWN },
	{ "f101 0100 1501 0000", false, 0, CONVERT_STATUS_TLV_UNKNOWN },
};

START_TEST(response_echo)
{
	struct bytes message = message_of("2263", echoes[_i].tlv, "");
	struct convert_response response;
	struct convert_request request;

	ck_assert_int_eq(convert_response_parse(message.data, message.len, &response), CONVERT_STATUS_OK);
	ck_assert_int_eq(response.has_echo, echoes[_i].has);
	ck_assert_uint_eq(response.echo_kib, echoes[_i].limit_kib);
	bytes_fini(&message);
	message = message_of("2263", "01010000", echoes[_i].tlv);
	ck_assert_int_eq(convert_request_parse(message.data, message.len, &request), echoes[_i].asked);
	ck_assert_int_eq(request.has_echo, echoes[_i].has);
	bytes_fini(&message);
}
END_TEST

/* A Hold Time TLV in front of a Connect TLV, which only clients send. */
static const struct {
	const char *tlv;
	bool has;
	uint16_t hold_ms;
} hold_times[] = {
	{ "f302 0100 01c2 6c63", true, 450 },
	{ "f302 01ff 0000 6c63", true, 0 }, /* flags to come; let go at once */
	{ "f302 0100 ffff 6c63", true, 65535 },
	{ "f303 0100 01c2 6c63 12345678", true, 450 }, /* fields to come */
	{ "f302 0000 01c2 6c63", false, 0 }, /* no version, and one to come */
	{ "f302 0200 01c2 6c63", false, 0 },
	{ "f302 0100 01c2 6c64", false, 0 }, /* somebody else's */
	{ "f301 0100", false, 0 },
};

START_TEST(request_hold_time)
{
	struct bytes message = message_of("2263", hold_times[_i].tlv, CONNECT_V4);
	const enum convert_status status = hold_times[_i].has ? CONVERT_STATUS_OK : CONVERT_STATUS_TLV_UNKNOWN;
	struct convert_request request;
	struct convert_response response;

	ck_assert_int_eq(convert_request_parse(message.data, message.len, &request), status);
	ck_assert_int_eq(request.has_hold_time, hold_times[_i].has);
	ck_assert_uint_eq(request.hold_ms, hold_times[_i].hold_ms);
	ck_assert_int_eq(request.has_connect, hold_times[_i].has);
	bytes_fini(&message);
	/* a silent request needs a Silence TLV in front, and a Connect TLV */
	message = message_of("6c63", "f2020100 00006c63", hold_times[_i].tlv);
	ck_assert_int_eq(convert_request_parse(message.data, message.len, &request), CONVERT_STATUS_BAD_SILENCE);
	bytes_fini(&message);
	message = message_of("6c63", hold_times[_i].tlv, CONNECT_V4);
	ck_assert_int_eq(convert_request_parse(message.data, message.len, &request), CONVERT_STATUS_BAD_SILENCE);
	bytes_fini(&message);
	/* in a response it is passed over */
	message = message_of("2263", hold_times[_i].tlv, "14010000");
	ck_assert_int_eq(convert_response_parse(message.data, message.len, &response), CONVERT_STATUS_OK);
	ck_assert(response.has_tcp_header);
	bytes_fini(&message);
}
END_TEST

START_TEST(silent_request_hold_time)
{
	static const char *const lengths[] = { "f300 0100 01c2 6c63", "f3ff 0100 01c2 6c63" };
	struct bytes message = message_of("6c63", "f2020101 00006c63 f3020100 01c26c63", CONNECT_V4);
	struct convert_request request;

	ck_assert_int_eq(convert_request_parse(message.data, message.len, &request), CONVERT_STATUS_OK);
	ck_assert(request.has_silence && request.silence.blind && request.has_hold_time && request.has_connect);
	ck_assert_uint_eq(request.hold_ms, 450);
	bytes_fini(&message);
	message = message_of("2263", "f3020100 01c26c63 f3020100 01c26c63", CONNECT_V4);
	ck_assert_int_eq(convert_request_parse(message.data, message.len, &request), CONVERT_STATUS_TLV_TWICE);
	bytes_fini(&message);
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		message = message_of("2263", lengths[i], CONNECT_V4);
		ck_assert_int_eq(convert_request_parse(message.data, message.len, &request),
				 i ? CONVERT_STATUS_TLV_PAST_END : CONVERT_STATUS_TLV_ZERO_LENGTH);
		ck_assert(!request.has_hold_time && !request.hold_ms);
		bytes_fini(&message);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("codec_private");
	TCase *tcase = tcase_create("read");

	tcase_add_loop_test(tcase, response_withholding, 0, (int)ARRAY_SIZE(withholdings));
	tcase_add_loop_test(tcase, request_withholding, 0, (int)ARRAY_SIZE(withholdings_asked));
	tcase_add_loop_test(tcase, request_silence, 0, (int)ARRAY_SIZE(silences));
	tcase_add_loop_test(tcase, silent_header, 0, (int)ARRAY_SIZE(silent_headers));
	tcase_add_loop_test(tcase, response_echo, 0, (int)ARRAY_SIZE(echoes));
	tcase_add_loop_test(tcase, request_hold_time, 0, (int)ARRAY_SIZE(hold_times));
	tcase_add_test(tcase, silent_request_hold_time);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
