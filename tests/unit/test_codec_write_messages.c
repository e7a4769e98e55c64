/* SPDX-License-Identifier: BSD-3-Clause */
/* test_codec_write_messages.c - messages of several TLVs, of every length and error code, and what is read back of them */
#include "codec_fixture.h"
#include "run.h"

static void tcp_header_none(struct convert_writer *w)
{
	convert_write_tcp_header(w, NULL, 0);
}

static void echo_malformed(struct convert_writer *w)
{
	convert_write_error_echo(w, CONVERT_ERROR_MALFORMED_MESSAGE,
				 (const uint8_t[]){ 1, 2, 0x22, 0x63, 1, 1, 0, 1 }, 8);
}

static void tcp_header(struct convert_writer *w)
{
	convert_write_tcp_header(w, (const uint8_t[]){ 2, 4, 5, 0xb4, 1, 3, 3, 7, 4, 2 }, 10);
}

static void supported(struct convert_writer *w)
{
	convert_write_supported(w, (const uint8_t[]){ 30, 34, 4, 8, 254 }, 5);
}

static void cookie(struct convert_writer *w)
{
	convert_write_cookie(w, (const uint8_t[]){ 1, 2, 3, 4, 5, 6, 7, 8 }, 8);
}

static void private_three(struct convert_writer *w)
{
	convert_write_tlv(w, 255, (const uint8_t[]){ 1, 2, 3 }, 3);
}

static void error_cookie(struct convert_writer *w)
{
	convert_write_error_cookie(w, (const uint8_t[]){ 1, 2, 3, 4, 5, 6, 7, 8 }, 8);
}

/* Section 7: these MUST NOT be announced. A 0 would end the list. */
START_TEST(supported_kinds)
{
	static const uint8_t forbidden_kinds[] = { 0, 1, 2, 3, 5, 29 };

	for (unsigned int kind = 0; kind < 256; kind++) {
		const uint8_t kinds[2] = { (uint8_t)kind, 30 };
		struct fixture f;

		fixture_init(&f, 64);
		convert_write_supported(&f.w, kinds, 2);
		if (memchr(forbidden_kinds, (int)kind, sizeof(forbidden_kinds)))
			ck_assert_int_eq(convert_writer_finish(&f.w), -EINVAL);
		else
			ck_assert_int_eq(convert_writer_finish(&f.w), 12);
		bytes_fini(&f.buf);
	}
}
END_TEST

/* Every code by convert_write_error(): read back, or refused where its Value has another form. */
START_TEST(error_codes)
{
	for (unsigned int code = 0; code < 256; code++) {
		bool other_form = code <= 3 || code == 33, zero = code == 32 || code == 96;

		for (unsigned int value = 0; value < 256; value += 5) {
			struct convert_response response;
			struct fixture f;
			ssize_t len;

			fixture_init(&f, 8);
			convert_write_error(&f.w, (enum convert_error_code)code, (uint8_t)value);
			len = convert_writer_finish(&f.w);
			if (other_form || (zero && value != 0)) {
				ck_assert_int_eq(len, -EINVAL);
			} else {
				ck_assert_int_eq(len, 8);
				ck_assert_int_eq(convert_response_parse(f.buf.data, 8, &response),
						 CONVERT_STATUS_OK);
				ck_assert(response.has_error);
				ck_assert_uint_eq(response.error_code, code);
				ck_assert_uint_eq(response.error_value.len, 1);
				ck_assert_uint_eq(response.error_value.data[0], value);
			}
			bytes_fini(&f.buf);
		}
	}
}
END_TEST

START_TEST(error_code_beyond_a_byte)
{
	struct fixture f;

	fixture_init(&f, 64);
	convert_write_error(&f.w, (enum convert_error_code)256, 0);
	fixture_expect_error(&f, -EINVAL);
	fixture_init(&f, 64);
	convert_write_error_echo(&f.w, (enum convert_error_code)257, (const uint8_t[]){ 1 }, 1);
	fixture_expect_error(&f, -EINVAL);
}
END_TEST

/* Messages of every length echoed: whole, or their beginning in whole words. */
START_TEST(echo_is_cut_to_what_fits)
{
	uint8_t message[1100];

	for (size_t i = 0; i < sizeof(message); i++)
		message[i] = (uint8_t)(i * 7 + 1);
	for (size_t len = 0; len <= sizeof(message); len++) {
		size_t echoed = len < 1012 ? len : 1012;
		struct convert_response response;
		struct fixture f;
		ssize_t total;

		fixture_init(&f, 1500); /* more than a message may have */
		convert_write_error_echo(&f.w, CONVERT_ERROR_MALFORMED_MESSAGE, message, len);
		total = convert_writer_finish(&f.w);
		ck_assert_int_eq(total, (int)(8 + (echoed + 3) / 4 * 4));
		ck_assert_int_eq(convert_response_parse(f.buf.data, (size_t)total, &response),
				 CONVERT_STATUS_OK);
		ck_assert_uint_eq(response.error_code, 1);
		ck_assert_uint_eq(response.error_value.data[0], 0);
		if (echoed > 0)
			ck_assert_mem_eq(response.error_value.data + 1, message, echoed);
		for (size_t i = 1 + echoed; i < response.error_value.len; i++)
			ck_assert_uint_eq(response.error_value.data[i], 0);
		bytes_fini(&f.buf);
	}
}
END_TEST

START_TEST(echo_behind_other_tlvs)
{
	struct fixture f;

	fixture_init(&f, 20);
	tcp_header_none(&f.w);
	echo_malformed(&f.w);
	fixture_expect(&f, "01052263 14010000 1e030100 01022263 01010001");
	fixture_init(&f, 19);
	tcp_header_none(&f.w);
	echo_malformed(&f.w);
	fixture_expect(&f, "01042263 14010000 1e020100 01022263");
	fixture_init(&f, 8);
	tcp_header_none(&f.w);
	echo_malformed(&f.w);
	fixture_expect_error(&f, -ENOBUFS);
}
END_TEST

/* The longest of each kind, and one byte more. */
START_TEST(longest)
{
	static const struct {
		uint8_t type;
		size_t len; /* bytes behind what the type itself has in its Value */
	} tlvs[] = { { 200, 1014 }, { CONVERT_TLV_COOKIE, 1012 },
		     { CONVERT_TLV_EXTENDED_TCP_HEADER, 1012 }, { CONVERT_TLV_ERROR, 1012 } };
	uint8_t data[1100];

	memset(data, 0x55, sizeof(data));
	for (size_t i = 0; i < ARRAY_SIZE(tlvs); i++) {
		for (size_t more = 0; more < 2; more++) {
			size_t len = tlvs[i].len + more;
			struct fixture f;

			fixture_init(&f, 2000);
			if (tlvs[i].type == CONVERT_TLV_COOKIE)
				convert_write_cookie(&f.w, data, len);
			else if (tlvs[i].type == CONVERT_TLV_EXTENDED_TCP_HEADER)
				convert_write_tcp_header(&f.w, data, len);
			else if (tlvs[i].type == CONVERT_TLV_ERROR)
				convert_write_error_cookie(&f.w, data, len);
			else
				convert_write_tlv(&f.w, tlvs[i].type, data, len);
			ck_assert_int_eq(convert_writer_finish(&f.w), more ? -ENOBUFS : 1020);
			bytes_fini(&f.buf);
		}
	}
}
END_TEST

START_TEST(absurd_lengths)
{
	static const size_t lengths[] = { 1015, 65536, SIZE_MAX - 4, SIZE_MAX - 1, SIZE_MAX };
	const uint8_t byte = 0x55;

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		struct fixture f;

		fixture_init(&f, CONVERT_MESSAGE_MAX);
		convert_write_tlv(&f.w, 200, &byte, lengths[i]);
		fixture_expect_error(&f, -ENOBUFS);
		fixture_init(&f, CONVERT_MESSAGE_MAX);
		convert_write_cookie(&f.w, &byte, lengths[i]);
		fixture_expect_error(&f, -ENOBUFS);
		fixture_init(&f, CONVERT_MESSAGE_MAX);
		convert_write_error_cookie(&f.w, &byte, lengths[i]);
		fixture_expect_error(&f, -ENOBUFS);
	}
}
END_TEST

/* A converter may send a header alone, which only tells that it has reached the server. */
START_TEST(header_alone)
{
	struct fixture f;

	fixture_init(&f, 4);
	fixture_expect(&f, "01012263");
	convert_writer_init(&f.w, NULL, 0);
	convert_write_info(&f.w);
	ck_assert_int_eq(convert_writer_finish(&f.w), -ENOBUFS);
}
END_TEST

START_TEST(request_round_trip)
{
	struct in6_addr address = in6("2001:db8::1");
	struct convert_request request;
	struct fixture f;
	ssize_t len;

	fixture_init(&f, CONVERT_MESSAGE_MAX);
	convert_write_info(&f.w);
	cookie(&f.w);
	convert_write_connect(&f.w, &address, 65535, (const uint8_t[]){ 30, 2, 34, 3, 9 }, 5);
	len = convert_writer_finish(&f.w);
	ck_assert_int_eq(len, 4 + 4 + 12 + 28);
	ck_assert_int_eq(convert_request_parse(f.buf.data, (size_t)len, &request), CONVERT_STATUS_OK);
	ck_assert(request.has_info && request.has_connect && request.has_cookie);
	ck_assert(request.extended);
	ck_assert_uint_eq(request.length, (size_t)len);
	ck_assert_uint_eq(request.port, 65535);
	ck_assert_mem_eq(&request.address, &address, sizeof(address));
	bytes_assert_hex(request.tcp_options.data, request.tcp_options.len, "1e02220309 000000");
	bytes_assert_hex(request.cookie.data, request.cookie.len, "0102030405060708");
	bytes_fini(&f.buf);
}
END_TEST

START_TEST(response_round_trip)
{
	struct convert_response response;
	struct fixture f;
	ssize_t len;

	fixture_init(&f, CONVERT_MESSAGE_MAX);
	supported(&f.w);
	tcp_header(&f.w);
	private_three(&f.w);
	error_cookie(&f.w);
	len = convert_writer_finish(&f.w);
	ck_assert_int_eq(convert_response_parse(f.buf.data, (size_t)len, &response), CONVERT_STATUS_OK);
	ck_assert(response.has_supported && response.has_tcp_header && response.has_error);
	bytes_assert_hex(response.supported.data, response.supported.len, "1e220408 fe000000");
	bytes_assert_hex(response.tcp_header.data, response.tcp_header.len,
			 "020405b4 01030307 0402 0000");
	ck_assert_uint_eq(response.error_code, CONVERT_ERROR_MISSING_COOKIE);
	bytes_assert_hex(response.error_value.data, response.error_value.len, "00 0102030405060708");
	bytes_fini(&f.buf);
}
END_TEST

/* Lists of TCP options and of their kinds, as the parsers return them: with their padding, and a value that ends with 0 in front of it. */
START_TEST(lists_that_were_read)
{
	static const char request_hex[] = "01082263 0a0701bb " V4 "1e02 2205 010200 00";
	static const char response_hex[] = "01052263 15020000 1e040000 1e022122 1d000000";
	struct bytes message = bytes_hex(request_hex);
	struct convert_response response;
	struct convert_request request;
	struct fixture f;

	ck_assert_int_eq(convert_request_parse(message.data, message.len, &request), CONVERT_STATUS_OK);
	fixture_init(&f, CONVERT_MESSAGE_MAX);
	convert_write_connect(&f.w, &request.address, request.port, request.tcp_options.data, request.tcp_options.len);
	fixture_expect(&f, request_hex);
	bytes_fini(&message);
	message = bytes_hex(response_hex);
	ck_assert_int_eq(convert_response_parse(message.data, message.len, &response), CONVERT_STATUS_OK);
	fixture_init(&f, CONVERT_MESSAGE_MAX);
	convert_write_supported(&f.w, response.supported.data, response.supported.len);
	convert_write_error_options(&f.w, response.error_value.data, response.error_value.len);
	fixture_expect(&f, response_hex);
	bytes_fini(&message);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("codec_write_messages");
	TCase *tcase = tcase_create("write");

	tcase_add_test(tcase, supported_kinds);
	tcase_add_test(tcase, error_codes);
	tcase_add_test(tcase, error_code_beyond_a_byte);
	tcase_add_test(tcase, echo_is_cut_to_what_fits);
	tcase_add_test(tcase, echo_behind_other_tlvs);
	tcase_add_test(tcase, longest);
	tcase_add_test(tcase, absurd_lengths);
	tcase_add_test(tcase, header_alone);
	tcase_add_test(tcase, request_round_trip);
	tcase_add_test(tcase, response_round_trip);
	tcase_add_test(tcase, lists_that_were_read);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
