/* SPDX-License-Identifier: BSD-3-Clause */
/* test_codec_write.c - what the writer of each TLV puts on the wire, and refuses */
#include "codec_fixture.h"
#include "run.h"

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

/* A parser returns the padding behind the last option, too. The writer must not count it as that option's value. */
static void connect_padded(struct convert_writer *w)
{
	connect_with(w, "::ffff:192.0.2.1", "0402 1e02 0000 0000");
}

static void connect_zeros_in_the_value(struct convert_writer *w)
{
	connect_with(w, "::ffff:192.0.2.1", "2206 01020000");
}

static void connect_padding_alone(struct convert_writer *w)
{
	connect_with(w, "::ffff:192.0.2.1", "00000000");
}

static void connect_eol(struct convert_writer *w)
{
	connect_with(w, "2001:db8::1", "0402 0000 1e02");
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

static void supported_padded(struct convert_writer *w)
{
	convert_write_supported(w, (const uint8_t[]){ 30, 4, 0, 0 }, 4);
}

static void supported_padding_alone(struct convert_writer *w)
{
	convert_write_supported(w, (const uint8_t[]){ 0, 0, 0, 0 }, 4);
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

static void error_options_padded(struct convert_writer *w)
{
	convert_write_error_options(w, (const uint8_t[]){ 34, 0, 0, 0, 0 }, 5);
}

static void error_options_padding_alone(struct convert_writer *w)
{
	convert_write_error_options(w, (const uint8_t[]){ 0 }, 1);
}

static void error_options_none(struct convert_writer *w)
{
	convert_write_error_options(w, NULL, 0);
}

static void error_options_zero(struct convert_writer *w)
{
	convert_write_error_options(w, (const uint8_t[]){ 0, 34 }, 2);
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
	{ connect_padded, "01072263 0a0601bb " V4 "0402 1e02" },
	{ connect_zeros_in_the_value, "01082263 0a0701bb " V4 "2206 01020000 0000" },
	{ connect_padding_alone, "01062263 0a0501bb " V4 },
	{ tcp_header_none, "01022263 14010000" },
	{ tcp_header, "01052263 14040000 020405b4 01030307 0402 0000" },
	{ supported, "01042263 15030000 1e220408 fe000000" },
	{ supported_none, "01022263 15010000" },
	{ supported_padded, "01032263 15020000 1e040000" },
	{ supported_padding_alone, "01022263 15010000" },
	{ cookie_byte, "01032263 16020000 de000000" },
	{ cookie, "01042263 16030000 01020304 05060708" },
	{ error_versions, "01022263 1e010001" },
	{ echo_malformed, "01042263 1e030100 01022263 01010001" },
	{ echo_unsupported, "01042263 1e030200 01022263 c0000000" },
	{ error_cookie, "01042263 1e030300 01020304 05060708" },
	{ error_option, "01022263 1e01211d" },
	{ error_options, "01032263 1e02211d 22000000" },
	{ error_options_padded, "01022263 1e012122" },
};

START_TEST(golden)
{
	write_one *const write = writes[_i].write;

	expect_golden(write, writes[_i].hex, write == echo_malformed || write == echo_unsupported);
}
END_TEST

static write_one *const refused[] = {
	connect_loopback, connect_multicast, connect_eol, connect_nop, connect_cut_option, connect_short_option, cookie_none, type_reserved,
	echo_wrong_code, error_cookie_none, error_options_none, error_options_zero, error_options_padding_alone,
};

START_TEST(forbidden)
{
	expect_refused(refused[_i]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("codec_write");
	TCase *tcase = tcase_create("write");

	tcase_add_loop_test(tcase, golden, 0, (int)ARRAY_SIZE(writes));
	tcase_add_loop_test(tcase, forbidden, 0, (int)ARRAY_SIZE(refused));
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
