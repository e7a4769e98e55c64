/* SPDX-License-Identifier: BSD-3-Clause */
/* test_codec_write.c - what each writer puts on the wire, refuses, and is read back as */
#include "bytes.h"
#include "run.h"

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

static void fixture_init(struct fixture *f, size_t capacity)
{
	uint8_t rubbish[2048];

	memset(rubbish, 0xa5, sizeof(rubbish)); /* padding must be written, not found */
	f->buf = bytes_copy(rubbish, capacity);
	convert_writer_init(&f->w, f->buf.data, capacity);
}

static void fixture_expect(struct fixture *f, const char *hex)
{
	ssize_t len = convert_writer_finish(&f->w);

	ck_assert_int_gt(len, 0);
	bytes_assert_hex(f->buf.data, (size_t)len, hex);
	bytes_fini(&f->buf);
}

static void fixture_expect_error(struct fixture *f, int error)
{
	ck_assert_int_eq(convert_writer_finish(&f->w), error);
	bytes_fini(&f->buf);
}

static struct in6_addr in6(const char *text)
{
	struct in6_addr address;

	ck_assert_int_eq(inet_pton(AF_INET6, text, &address), 1);
	return address;
}

/* Each does one write, with what it needs taken from @w on. */
typedef void write_one(struct convert_writer *w);

static void info(struct convert_writer *w)
{
	convert_write_info(w);
}

static void connect_with(struct convert_writer *w, const char *address, const char *options)
{
	struct in6_addr to = in6(address);
	struct bytes bytes = bytes_hex(options);

	convert_write_connect(w, &to, 443, bytes.len > 0 ? bytes.data : NULL, bytes.len);
	bytes_fini(&bytes);
}

static void connect_v4(struct convert_writer *w)
{
	connect_with(w, "::ffff:192.0.2.1", "");
}

static void connect_v6(struct convert_writer *w)
{
	connect_with(w, "2001:db8::1", "");
}

static void connect_tfo(struct convert_writer *w)
{
	connect_with(w, "::ffff:192.0.2.1", "2206 01020304 0402 1e02");
}

static void connect_mptcp(struct convert_writer *w)
{
	connect_with(w, "::ffff:192.0.2.1", "1e02");
}

static void connect_loopback(struct convert_writer *w)
{
	connect_with(w, "::ffff:127.0.0.1", "");
}

static void connect_multicast(struct convert_writer *w)
{
	connect_with(w, "ff02::1", "");
}

static void connect_eol(struct convert_writer *w)
{
	connect_with(w, "2001:db8::1", "0402 0000");
}

static void connect_nop(struct convert_writer *w)
{
	connect_with(w, "2001:db8::1", "01 0402");
}

static void connect_cut_option(struct convert_writer *w)
{
	connect_with(w, "2001:db8::1", "2206 0102");
}

static void connect_short_option(struct convert_writer *w)
{
	connect_with(w, "2001:db8::1", "2201");
}

static void tcp_header_none(struct convert_writer *w)
{
	convert_write_tcp_header(w, NULL, 0);
}

static void tcp_header(struct convert_writer *w)
{
	convert_write_tcp_header(w, (const uint8_t[]){ 2, 4, 5, 0xb4, 1, 3, 3, 7, 4, 2 }, 10);
}

static void supported(struct convert_writer *w)
{
	convert_write_supported(w, (const uint8_t[]){ 30, 34, 4, 8, 254 }, 5);
}

static void supported_none(struct convert_writer *w)
{
	convert_write_supported(w, NULL, 0);
}

static void cookie_byte(struct convert_writer *w)
{
	convert_write_cookie(w, (const uint8_t[]){ 0xde }, 1);
}

static void cookie(struct convert_writer *w)
{
	convert_write_cookie(w, (const uint8_t[]){ 1, 2, 3, 4, 5, 6, 7, 8 }, 8);
}

static void cookie_none(struct convert_writer *w)
{
	convert_write_cookie(w, NULL, 0);
}

static void withholding(struct convert_writer *w)
{
	convert_write_withholding(w, &(struct convert_withholding){ .withheld = true, .limit_ms = 2000, .corrects = true });
}

static void withholding_uncorrected(struct convert_writer *w)
{
	convert_write_withholding(w, &(struct convert_withholding){ .withheld = true, .limit_ms = 2000 });
}

static void withholding_corrects(struct convert_writer *w)
{
	convert_write_withholding(w, &(struct convert_withholding){ .corrects = true });
}

static void withholding_silent(struct convert_writer *w)
{
	convert_write_withholding(w, &(struct convert_withholding){ .withheld = true, .limit_ms = 2000, .corrects = true,
								   .silent = true });
}

static void withholding_blind(struct convert_writer *w)
{
	convert_write_withholding(w, &(struct convert_withholding){ .withheld = true, .limit_ms = 2000, .corrects = true,
								   .silent = true, .blind = true });
}

static void withholding_repeats(struct convert_writer *w)
{
	convert_write_withholding(w, &(struct convert_withholding){ .withheld = true, .limit_ms = 2000, .corrects = true,
								   .silent = true, .blind = true, .repeats = true });
}

static void withholding_hold_times(struct convert_writer *w)
{
	convert_write_withholding(w, &(struct convert_withholding){ .withheld = true, .limit_ms = 2000, .corrects = true,
								   .hold_times = true });
}

/* Neither flag means anything without the one before it. */
static void withholding_loose(struct convert_writer *w)
{
	convert_write_withholding(w, &(struct convert_withholding){ .corrects = true, .silent = true, .blind = true,
								   .hold_times = true });
}

static void withholding_loose_blind(struct convert_writer *w)
{
	convert_write_withholding(w, &(struct convert_withholding){ .withheld = true, .limit_ms = 2000, .corrects = true,
								   .blind = true, .repeats = true });
}

static void silence(struct convert_writer *w)
{
	convert_write_silence(w, &(struct convert_silence){ 0 });
}

static void silence_blind(struct convert_writer *w)
{
	convert_write_silence(w, &(struct convert_silence){ .blind = true });
}

static void silence_mptcp(struct convert_writer *w)
{
	convert_write_silence(w, &(struct convert_silence){ .mptcp = true });
}

static void silence_attempt(struct convert_writer *w)
{
	convert_write_silence(w, &(struct convert_silence){ .blind = true, .mptcp = true, .attempt = 0x0123456789abcdef, .repeat = 258 });
}

static void silence_padded(struct convert_writer *w)
{
	convert_write_silence(w, &(struct convert_silence){ .padding = 2 });
}

static void silence_attempt_padded(struct convert_writer *w)
{
	convert_write_silence(w, &(struct convert_silence){ .blind = true, .attempt = 1, .padding = 1 });
}

static void withholding_no_way(struct convert_writer *w)
{
	convert_write_withholding(w, &(struct convert_withholding){ .no_way = true });
}

static void withholding_off(struct convert_writer *w)
{
	convert_write_withholding(w, &(struct convert_withholding){ 0 });
}

static void echo(struct convert_writer *w)
{
	convert_write_echo(w, 256);
}

static void hold_time(struct convert_writer *w)
{
	convert_write_hold_time(w, 450);
}

static void private_empty(struct convert_writer *w)
{
	convert_write_tlv(w, 192, NULL, 0);
}

static void private_three(struct convert_writer *w)
{
	convert_write_tlv(w, 255, (const uint8_t[]){ 1, 2, 3 }, 3);
}

static void type_reserved(struct convert_writer *w)
{
	convert_write_tlv(w, 0, (const uint8_t[]){ 1, 2 }, 2);
}

static void error_versions(struct convert_writer *w)
{
	convert_write_error_versions(w);
}

static void echo_malformed(struct convert_writer *w)
{
	convert_write_error_echo(w, CONVERT_ERROR_MALFORMED_MESSAGE,
				 (const uint8_t[]){ 1, 2, 0x22, 0x63, 1, 1, 0, 1 }, 8);
}

static void echo_unsupported(struct convert_writer *w)
{
	convert_write_error_echo(w, CONVERT_ERROR_UNSUPPORTED_MESSAGE,
				 (const uint8_t[]){ 1, 2, 0x22, 0x63, 0xc0 }, 5);
}

static void echo_wrong_code(struct convert_writer *w)
{
	convert_write_error_echo(w, CONVERT_ERROR_NOT_AUTHORIZED, (const uint8_t[]){ 1 }, 1);
}

static void error_cookie(struct convert_writer *w)
{
	convert_write_error_cookie(w, (const uint8_t[]){ 1, 2, 3, 4, 5, 6, 7, 8 }, 8);
}

static void error_cookie_none(struct convert_writer *w)
{
	convert_write_error_cookie(w, NULL, 0);
}

static void error_option(struct convert_writer *w)
{
	convert_write_error_options(w, (const uint8_t[]){ 29 }, 1);
}

static void error_options(struct convert_writer *w)
{
	convert_write_error_options(w, (const uint8_t[]){ 29, 34 }, 2);
}

static void error_options_none(struct convert_writer *w)
{
	convert_write_error_options(w, NULL, 0);
}

static void error_options_zero(struct convert_writer *w)
{
	convert_write_error_options(w, (const uint8_t[]){ 34, 0 }, 2);
}

/* Figures 15 to 23 */
static const struct {
	write_one *write;
	const char *hex;
} writes[] = {
	{ info, "01022263 01010000" },
	{ connect_v4, "01062263 0a0501bb " V4 },
	{ connect_v6, "01062263 0a0501bb 20010db8 00*11 01" },
	{ connect_tfo, "01092263 0a0801bb " V4 "2206 01020304 0402 1e02 0000" },
	{ connect_mptcp, "01072263 0a0601bb " V4 "1e02 0000" },
	{ tcp_header_none, "01022263 14010000" },
	{ tcp_header, "01052263 14040000 020405b4 01030307 0402 0000" },
	{ supported, "01042263 15030000 1e220408 fe000000" },
	{ supported_none, "01022263 15010000" },
	{ cookie_byte, "01032263 16020000 de000000" },
	{ cookie, "01042263 16030000 01020304 05060708" },
	{ withholding, "01032263 f0020103 07d06c63" },
	{ withholding_uncorrected, "01032263 f0020105 07d06c63" },
	{ withholding_corrects, "01032263 f0020102 00006c63" },
	{ withholding_off, "01032263 f0020100 00006c63" },
	{ withholding_no_way, "01032263 f0020180 00006c63" },
	{ withholding_silent, "01032263 f002010b 07d06c63" },
	{ withholding_blind, "01032263 f002011b 07d06c63" },
	{ withholding_repeats, "01032263 f002013b 07d06c63" },
	{ withholding_hold_times, "01032263 f0020143 07d06c63" },
	{ withholding_loose, "01032263 f0020102 00006c63" },
	{ withholding_loose_blind, "01032263 f0020103 07d06c63" },
	{ silence, "01036c63 f2020100 00006c63" },
	{ silence_blind, "01036c63 f2020101 00006c63" },
	{ silence_mptcp, "01036c63 f2020102 00006c63" },
	{ silence_attempt, "01056c63 f2040103 01026c63 0123456789abcdef" },
	{ silence_padded, "01056c63 f2040100 00006c63 00000000 00000000" },
	{ silence_attempt_padded, "01066c63 f2050101 00006c63 0000000000000001 00000000" },
	{ echo, "01032263 f1020100 01006c63" },
	{ hold_time, "01032263 f3020100 01c26c63" },
	{ private_empty, "01022263 c0010000" },
	{ private_three, "01032263 ff020102 03000000" },
	{ error_versions, "01022263 1e010001" },
	{ echo_malformed, "01042263 1e030100 01022263 01010001" },
	{ echo_unsupported, "01042263 1e030200 01022263 c0000000" },
	{ error_cookie, "01042263 1e030300 01020304 05060708" },
	{ error_option, "01022263 1e01211d" },
	{ error_options, "01032263 1e02211d 22000000" },
};

START_TEST(golden)
{
	struct bytes want = bytes_hex(writes[_i].hex);
	struct fixture f;

	fixture_init(&f, CONVERT_MESSAGE_MAX);
	writes[_i].write(&f.w);
	fixture_expect(&f, writes[_i].hex);

	/* it fits exactly, */
	fixture_init(&f, want.len);
	writes[_i].write(&f.w);
	fixture_expect(&f, writes[_i].hex);

	/* and not in less; but an echo is cut */
	for (size_t capacity = 0; capacity < want.len; capacity++) {
		bool cut = (writes[_i].write == echo_malformed ||
			    writes[_i].write == echo_unsupported) && capacity >= 8;

		fixture_init(&f, capacity);
		writes[_i].write(&f.w);
		if (cut) {
			ck_assert_int_eq(convert_writer_finish(&f.w), (int)(capacity / 4 * 4));
			bytes_fini(&f.buf);
		} else {
			fixture_expect_error(&f, -ENOBUFS);
		}
	}

	/* and not twice */
	fixture_init(&f, CONVERT_MESSAGE_MAX);
	writes[_i].write(&f.w);
	convert_write_tlv(&f.w, 200, NULL, 0);
	writes[_i].write(&f.w);
	fixture_expect_error(&f, -EEXIST);
	bytes_fini(&want);
}
END_TEST

static void silence_second(struct convert_writer *w)
{
	if (w->len == CONVERT_HEADER_LEN)
		connect_v4(w);
	silence(w);
}

static write_one *const refused[] = {
	silence_second,
	connect_loopback, connect_multicast, connect_eol,	connect_nop,
	connect_cut_option, connect_short_option, cookie_none,	type_reserved,
	echo_wrong_code, error_cookie_none, error_options_none, error_options_zero,
};

START_TEST(forbidden)
{
	struct fixture f;

	fixture_init(&f, CONVERT_MESSAGE_MAX);
	refused[_i](&f.w);
	fixture_expect_error(&f, -EINVAL);

	/* the first fault stays */
	fixture_init(&f, CONVERT_MESSAGE_MAX);
	info(&f.w);
	info(&f.w);
	refused[_i](&f.w);
	ck_assert_uint_eq(f.w.len, 8);
	fixture_expect_error(&f, -EEXIST);
}
END_TEST

/* A silent request as a client sends it; and a TLV of that type that is written as somebody else's changes no Magic Number. */
START_TEST(silent_request)
{
	struct fixture f;

	fixture_init(&f, CONVERT_MESSAGE_MAX);
	silence_blind(&f.w);
	connect_v4(&f.w);
	fixture_expect(&f, "01086c63 f2020101 00006c63 0a0501bb " V4);
	fixture_init(&f, CONVERT_MESSAGE_MAX);
	convert_write_tlv(&f.w, CONVERT_TLV_SILENCE, (const uint8_t[]){ 1, 0, 0, 0, 0x6c, 0x63 }, 6);
	fixture_expect(&f, "01032263 f2020100 00006c63");
}
END_TEST

/* Section 7: these MUST NOT be announced. */
START_TEST(supported_kinds)
{
	static const uint8_t forbidden_kinds[] = { 0, 1, 2, 3, 5, 29 };

	for (unsigned int kind = 0; kind < 256; kind++) {
		const uint8_t kinds[2] = { 30, (uint8_t)kind };
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

/* A header alone is what a converter may say to tell no more than that it reached the server. */
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

int main(void)
{
	Suite *suite = suite_create("codec_write");
	TCase *tcase = tcase_create("write");

	tcase_add_loop_test(tcase, golden, 0, (int)ARRAY_SIZE(writes));
	tcase_add_loop_test(tcase, forbidden, 0, (int)ARRAY_SIZE(refused));
	tcase_add_test(tcase, supported_kinds);
	tcase_add_test(tcase, error_codes);
	tcase_add_test(tcase, error_code_beyond_a_byte);
	tcase_add_test(tcase, silent_request);
	tcase_add_test(tcase, echo_is_cut_to_what_fits);
	tcase_add_test(tcase, echo_behind_other_tlvs);
	tcase_add_test(tcase, longest);
	tcase_add_test(tcase, absurd_lengths);
	tcase_add_test(tcase, header_alone);
	tcase_add_test(tcase, request_round_trip);
	tcase_add_test(tcase, response_round_trip);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
