/* SPDX-License-Identifier: BSD-3-Clause */
/* test_handshake.c - the client's state machine: requests, responses in every piece, errors as errno */
#include "config.h"

#include "client/handshake.h"
#include "convert/convert.h"

#include "bytes.h"
#include "run.h"

#include <check.h>
#include <errno.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static const struct handshake_ask nothing;
static const struct handshake_ask secret = { .cookie = { (const uint8_t *)"secret", 6 } };
static const struct handshake_ask info = { .info = true };
static const struct handshake_ask mptcp = { .mptcp = true };
static const struct handshake_ask silent = { .silent = true };
static const struct handshake_ask blind = { .silent = true, .blind = true, .over_mptcp = true,
					    .cookie = { (const uint8_t *)"secret", 6 } };

static union sockaddr_ip address(const char *text)
{
	union sockaddr_ip addr;

	ck_assert_int_eq(sockaddr_ip_parse(&addr, text, 80), 0);
	return addr;
}

static struct handshake_step step_of_asked(const char *hex, const char *server,
					   const struct handshake_ask *ask)
{
	struct bytes bytes = bytes_hex(hex);
	union sockaddr_ip addr = address(server);
	struct handshake_step step = handshake_on_bytes(bytes.data, bytes.len, &addr, ask);

	bytes_fini(&bytes);
	return step;
}

static struct handshake_step step_of(const char *hex, const char *server)
{
	return step_of_asked(hex, server, &nothing);
}

/* Figures 13 and 17; Figure 21 for the cookie, padded with zeros. */
START_TEST(request_is_header_connect_and_cookie)
{
	uint8_t buf[CONVERT_MESSAGE_MAX];
	union sockaddr_ip v4 = address("192.0.2.1:8080"), v6 = address("[2001:db8::5]:443");
	ssize_t len;

	len = handshake_request(buf, sizeof(buf), &v4, &nothing);
	bytes_assert_hex(buf, (size_t)len, "01062263 0a051f90 00000000000000000000ffff c0000201");
	len = handshake_request(buf, sizeof(buf), &v6, &secret);
	bytes_assert_hex(buf, (size_t)len,
			 "01092263 0a0501bb 20010db8000000000000000000000005"
			 "16030000 7365637265740000");
	/* Section 7.5: kind 30 without content, padded; Figure 18 */
	len = handshake_request(buf, sizeof(buf), &v4, &mptcp);
	bytes_assert_hex(buf, (size_t)len,
			 "01072263 0a061f90 00000000000000000000ffff c0000201 1e020000");
}
END_TEST

/* doc/private-tlvs.md: another Magic Number, and the Silence TLV first */
START_TEST(silent_request_is_marked_as_one)
{
	static const struct handshake_ask over_mptcp = { .over_mptcp = true };
	uint8_t buf[CONVERT_MESSAGE_MAX];
	union sockaddr_ip server = address("192.0.2.1:8080");
	ssize_t len = handshake_request(buf, sizeof(buf), &server, &silent);

	/* padded, so that a converter may send five SYN+ACKs for it */
	bytes_assert_hex(buf, (size_t)len, "011d6c63 f2170100 00006c63 00*84 0a051f90 00000000000000000000ffff c0000201");
	len = handshake_request(buf, sizeof(buf), &server, &blind);
	bytes_assert_hex(buf, (size_t)len,
			 "01206c63 f2170103 00006c63 00*84 0a051f90 00000000000000000000ffff c0000201 16030000 7365637265740000");
	len = handshake_request(buf, sizeof(buf), &server, &over_mptcp);
	bytes_assert_hex(buf, (size_t)len, "01062263 0a051f90 00000000000000000000ffff c0000201");
}
END_TEST

/* doc/private-tlvs.md: in front of the Connect TLV, and behind the Silence TLV, which comes first */
START_TEST(request_says_how_long_its_syn_may_be_withheld)
{
	static const struct handshake_ask held = { .hold_ms = 450 }, far = { .hold_ms = UINT16_MAX + 1 };
	static const struct handshake_ask held_silently = { .hold_ms = 450, .silent = true, .blind = true, .attempt = 1 };
	uint8_t buf[CONVERT_MESSAGE_MAX];
	union sockaddr_ip server = address("192.0.2.1:8080");
	ssize_t len = handshake_request(buf, sizeof(buf), &server, &held);

	bytes_assert_hex(buf, (size_t)len, "01082263 f3020100 01c26c63 0a051f90 00000000000000000000ffff c0000201");
	len = handshake_request(buf, sizeof(buf), &server, &far);
	bytes_assert_hex(buf, (size_t)len, "01082263 f3020100 ffff6c63 0a051f90 00000000000000000000ffff c0000201");
	len = handshake_request(buf, sizeof(buf), &server, &held_silently);
	handshake_count_repeat(buf, 258);
	bytes_assert_hex(buf, (size_t)len, "01216c63 f2190101 01026c63 0000000000000001 00*84 f3020100 01c26c63 "
			 "0a051f90 00000000000000000000ffff c0000201");
}
END_TEST

/* If a cookie leaves no room for a hold time, the request is the same as without one. */
START_TEST(request_without_room_has_no_hold_time)
{
	static const uint8_t cookie[992];
	uint8_t buf[CONVERT_MESSAGE_MAX], without[CONVERT_MESSAGE_MAX];
	union sockaddr_ip server = address("192.0.2.1:8080");

	for (size_t room = 0; room <= 16; room += 4) {
		const struct handshake_ask ask = { .cookie = { cookie, sizeof(cookie) - room } };
		struct handshake_ask held = ask;
		ssize_t len = handshake_request(without, sizeof(without), &server, &ask), with;

		held.hold_ms = 450;
		with = handshake_request(buf, sizeof(buf), &server, &held);
		ck_assert_int_eq(len, CONVERT_MESSAGE_MAX - (ssize_t)room);
		ck_assert_int_eq(with, room < 8 ? len : len + 8);
		ck_assert(room >= 8 || memcmp(buf, without, (size_t)len) == 0);
	}
}
END_TEST

/* The same request as often as it is made, but for the count. */
START_TEST(repeats_are_counted)
{
	static const struct handshake_ask again = { .silent = true, .blind = true, .over_mptcp = true, .attempt = 0xfedcba9876543210 };
	uint8_t buf[CONVERT_MESSAGE_MAX];
	union sockaddr_ip server = address("192.0.2.1:8080");
	ssize_t len = handshake_request(buf, sizeof(buf), &server, &again);

	bytes_assert_hex(buf, (size_t)len,
			 "011f6c63 f2190103 00006c63 fedcba9876543210 00*84 0a051f90 00000000000000000000ffff c0000201");
	handshake_count_repeat(buf, 258);
	bytes_assert_hex(buf, (size_t)len,
			 "011f6c63 f2190103 01026c63 fedcba9876543210 00*84 0a051f90 00000000000000000000ffff c0000201");
}
END_TEST

/* Its answer, if there is one, is like any other, and its own Magic Number in an answer is a fault. */
START_TEST(silent_request_may_be_answered)
{
	ck_assert_int_eq(step_of_asked("01022263 14010000", "192.0.2.1", &silent).verdict, HANDSHAKE_DONE);
	ck_assert_int_eq(step_of_asked("01026c63 14010000", "192.0.2.1", &silent).fault, HANDSHAKE_FAULT_PROTOCOL);
}
END_TEST

START_TEST(request_refuses_what_the_rfc_forbids)
{
	uint8_t buf[CONVERT_MESSAGE_MAX];
	union sockaddr_ip loopback = address("127.0.0.1"), server = address("192.0.2.1");

	ck_assert_int_eq(handshake_request(buf, sizeof(buf), &loopback, &nothing), -EINVAL);
	ck_assert_int_eq(handshake_request(buf, 20, &server, &nothing), -ENOBUFS);
}
END_TEST

/* Responses that say "the server was reached", with data of the application behind them. */
static const char *const good[] = {
	"01012263",                                        /* a header alone */
	"01022263 14010000",                               /* an empty Extended TCP Header TLV */
	"01042263 14030000 020405b4 04020000",             /* MSS and SACK-permitted */
	"01042263 15020000 1e000000 14010000",             /* Supported TCP Extensions before it */
	"01042263 c8020000 11223344 14010000",             /* a TLV of private use is stepped over */
	"01ff2263 14fe0000 00*1012",                       /* as long as can be */
};

START_TEST(response_is_known_exactly_when_it_is_complete)
{
	struct bytes bytes = bytes_hex(good[_i]);
	union sockaddr_ip server = address("192.0.2.1");

	for (size_t len = 0; len <= bytes.len; len++) {
		struct bytes prefix = bytes_copy(bytes.data, len);
		struct handshake_step step = handshake_on_bytes(prefix.data, len, &server, &nothing);

		if (len < bytes.len) {
			ck_assert_int_eq(step.verdict, HANDSHAKE_NEED_MORE);
			ck_assert_uint_eq(step.length, len < 4 ? 4 : bytes.len);
		} else {
			ck_assert_int_eq(step.verdict, HANDSHAKE_DONE);
			ck_assert_uint_eq(step.length, bytes.len);
		}
		bytes_fini(&prefix);
	}
	bytes_fini(&bytes);
}
END_TEST

START_TEST(data_behind_the_response_is_not_touched)
{
	struct handshake_step step = step_of("01022263 14010000 01022263 1e01", "192.0.2.1");

	ck_assert_int_eq(step.verdict, HANDSHAKE_DONE);
	ck_assert_uint_eq(step.length, 8);
}
END_TEST

/* Sections 6.1, 6.2.1, 6.2.2 and 8: reset, and nothing that the server can be blamed for. */
static const char *const broken[] = {
	"48545450",                            /* "HTTP": not Convert */
	"01002263",                            /* Total Length 0 */
	"02022263 14010000",                   /* a version that we don't speak */
	"00022263 14010000",                   /* the reserved version */
	"01022263 00010000",                   /* type 0 */
	"01022263 14000000",                   /* Length 0 */
	"01022263 14020000",                   /* crosses the Total Length */
	"01032263 14010000 14010000",          /* twice */
	"01032263 1e016000 1e016000",          /* an Error TLV twice */
	"01022263 01010000",                   /* an Info TLV is for converters */
};

START_TEST(broken_response_is_the_converters_fault)
{
	struct handshake_step step = step_of(broken[_i], "192.0.2.1");

	ck_assert_int_eq(step.verdict, HANDSHAKE_FAIL);
	ck_assert_int_eq(step.fault, HANDSHAKE_FAULT_PROTOCOL);
	ck_assert_int_eq(step.error, ECONNREFUSED);
	ck_assert_ptr_nonnull(step.reason);
}
END_TEST

START_TEST(early_end_is_the_converters_fault)
{
	struct handshake_step step = handshake_on_close();

	ck_assert_int_eq(step.verdict, HANDSHAKE_FAIL);
	ck_assert_int_eq(step.fault, HANDSHAKE_FAULT_PROTOCOL);
}
END_TEST

static const struct {
	const char *response, *server;
	int error;
	enum handshake_fault fault;
	unsigned int rest; /* seconds */
} errors[] = {
	{ "01022263 1e016000", "192.0.2.1", ECONNREFUSED, HANDSHAKE_FAULT_SERVER, 0 },
	{ "01022263 1e016100", "192.0.2.1", ENETUNREACH, HANDSHAKE_FAULT_SERVER, 0 },
	{ "01022263 1e016101", "192.0.2.1", EHOSTUNREACH, HANDSHAKE_FAULT_SERVER, 0 },
	{ "01022263 1e016103", "192.0.2.1", ECONNREFUSED, HANDSHAKE_FAULT_SERVER, 0 },
	{ "01022263 1e01610d", "192.0.2.1", EHOSTUNREACH, HANDSHAKE_FAULT_SERVER, 0 },
	{ "01022263 1e0161ff", "192.0.2.1", EHOSTUNREACH, HANDSHAKE_FAULT_SERVER, 0 },
	{ "01022263 1e016101", "[::ffff:192.0.2.1]:80", EHOSTUNREACH, HANDSHAKE_FAULT_SERVER, 0 },
	{ "01022263 1e016100", "2001:db8::1", ENETUNREACH, HANDSHAKE_FAULT_SERVER, 0 },
	{ "01022263 1e016101", "2001:db8::1", EACCES, HANDSHAKE_FAULT_SERVER, 0 },
	{ "01022263 1e016103", "2001:db8::1", EHOSTUNREACH, HANDSHAKE_FAULT_SERVER, 0 },
	{ "01022263 1e016104", "2001:db8::1", ECONNREFUSED, HANDSHAKE_FAULT_SERVER, 0 },
	{ "01022263 1e016107", "2001:db8::1", EHOSTUNREACH, HANDSHAKE_FAULT_SERVER, 0 },
	{ "01022263 1e014100", "192.0.2.1", ETIMEDOUT, HANDSHAKE_FAULT_SERVER, 30 },
	{ "01022263 1e014000", "192.0.2.1", ECONNREFUSED, HANDSHAKE_FAULT_CONVERTER, 30 },
	{ "01022263 1e014005", "192.0.2.1", ECONNREFUSED, HANDSHAKE_FAULT_CONVERTER, 5 },
	{ "01022263 1e0141ff", "192.0.2.1", ETIMEDOUT, HANDSHAKE_FAULT_SERVER, 255 },
	{ "01022263 1e012000", "192.0.2.1", EHOSTUNREACH, HANDSHAKE_FAULT_REFUSED, 30 },
	{ "01032263 1e020300 aabbccdd", "192.0.2.1", EHOSTUNREACH, HANDSHAKE_FAULT_CONVERTER, 30 },
	{ "01022263 1e01211e", "192.0.2.1", ECONNREFUSED, HANDSHAKE_FAULT_CONVERTER, 30 },
	{ "01022263 1e010001", "192.0.2.1", ECONNREFUSED, HANDSHAKE_FAULT_CONVERTER, 30 },
	/* codes that nobody has assigned go by their class */
	{ "01022263 1e017f00", "192.0.2.1", EHOSTUNREACH, HANDSHAKE_FAULT_SERVER, 0 },
	{ "01022263 1e015000", "192.0.2.1", ECONNREFUSED, HANDSHAKE_FAULT_CONVERTER, 30 },
	/* an error counts even beside other TLVs */
	{ "01042263 15020000 1e000000 1e016000", "192.0.2.1", ECONNREFUSED,
	  HANDSHAKE_FAULT_SERVER, 0 },
};

START_TEST(error_is_the_errno_of_a_direct_connection)
{
	struct handshake_step step = step_of(errors[_i].response, errors[_i].server);

	ck_assert_int_eq(step.verdict, HANDSHAKE_FAIL);
	ck_assert_int_eq(step.error, errors[_i].error);
	ck_assert_int_eq(step.fault, errors[_i].fault);
	ck_assert_uint_eq(step.rest, errors[_i].rest);
	ck_assert_int_eq(step.server_mptcp, HANDSHAKE_SERVER_UNKNOWN);
}
END_TEST

START_TEST(missing_cookie_brings_its_remedy)
{
	struct handshake_step step = step_of("01022263 1e010300", "192.0.2.1");
	struct handshake_ask ask = { 0 };
	struct bytes bytes;
	union sockaddr_ip server = address("192.0.2.1");

	ck_assert_int_eq(step.remedy, HANDSHAKE_REMEDY_NONE); /* none was computed for us */
	bytes = bytes_hex("01032263 1e020300 aabbccdd");
	step = handshake_on_bytes(bytes.data, bytes.len, &server, &ask);
	ck_assert_int_eq(step.remedy, HANDSHAKE_REMEDY_COOKIE);
	bytes_assert_hex(step.cookie.data, step.cookie.len, "aabbccdd");
	bytes_fini(&bytes);
}
END_TEST

/* Only an option that we asked for can be left out. */
START_TEST(unsupported_option_brings_its_remedy)
{
	ck_assert_int_eq(step_of("01022263 1e01211e", "192.0.2.1").remedy, HANDSHAKE_REMEDY_NONE);
	ck_assert_int_eq(step_of_asked("01022263 1e01211e", "192.0.2.1", &mptcp).remedy,
			 HANDSHAKE_REMEDY_NO_OPTION);
	ck_assert_int_eq(step_of_asked("01032263 1e022122 1e000000", "192.0.2.1", &mptcp).remedy,
			 HANDSHAKE_REMEDY_NO_OPTION);
	ck_assert_int_eq(step_of_asked("01022263 1e012122", "192.0.2.1", &mptcp).remedy,
			 HANDSHAKE_REMEDY_NONE);
}
END_TEST

/* The converter at this address may be another one now, or an older version. */
START_TEST(unsupported_message_brings_its_remedy)
{
	static const struct handshake_ask held = { .hold_ms = 450 };

	ck_assert_int_eq(step_of("01022263 1e010200", "192.0.2.1").remedy, HANDSHAKE_REMEDY_NONE);
	ck_assert_int_eq(step_of_asked("01022263 1e010200", "192.0.2.1", &held).remedy, HANDSHAKE_REMEDY_NO_HOLD_TIME);
	ck_assert_int_eq(step_of_asked("01022263 1e010100", "192.0.2.1", &held).remedy, HANDSHAKE_REMEDY_NONE);
}
END_TEST

static const struct {
	const char *response;
	enum handshake_server_mptcp asked; /* what it says if Multipath TCP was asked for */
} headers[] = {
	{ "01012263", HANDSHAKE_SERVER_UNKNOWN },
	{ "01022263 14010000", HANDSHAKE_SERVER_PLAIN },
	{ "01042263 14030000 020405b4 04020000", HANDSHAKE_SERVER_PLAIN },
	{ "01042263 14030000 020405b4 1e020000", HANDSHAKE_SERVER_MPTCP },
	{ "01052263 14040000 1e0c0181 00112233 44556677", HANDSHAKE_SERVER_MPTCP },
	{ "01032263 14020000 1e000000", HANDSHAKE_SERVER_PLAIN }, /* broken options say nothing */
};

START_TEST(servers_multipath_tcp_is_known_if_asked_for)
{
	const char *response = headers[_i].response;

	ck_assert_int_eq(step_of(response, "192.0.2.1").server_mptcp, HANDSHAKE_SERVER_UNKNOWN);
	ck_assert_int_eq(step_of_asked(response, "192.0.2.1", &mptcp).server_mptcp,
			 headers[_i].asked);
}
END_TEST

START_TEST(answer_to_info_is_handed_on)
{
	struct bytes bytes = bytes_hex("01042263 15020000 1e080400 14010000");
	union sockaddr_ip server = address("192.0.2.1");
	struct handshake_step step = handshake_on_bytes(bytes.data, bytes.len, &server, &info);

	ck_assert(step.has_supported);
	bytes_assert_hex(step.supported.data, step.supported.len, "1e080400");
	bytes_fini(&bytes);
	ck_assert(!step_of_asked("01022263 14010000", "192.0.2.1", &info).has_supported);
}
END_TEST

/* doc/private-tlvs.md */
START_TEST(what_becomes_of_syns_is_handed_on)
{
	struct handshake_step step =
		step_of_asked("01052263 15020000 1e000000 f0020102 00006c63", "192.0.2.1", &info);

	ck_assert(step.withholding.corrects);
	ck_assert(!step.withholding.withheld);
	step = step_of_asked("01052263 15020000 1e000000 f0020105 07d06c63", "192.0.2.1", &info);
	ck_assert(!step.withholding.corrects);
	ck_assert_uint_eq(step.withholding.limit_ms, 2000);
	step = step_of_asked("01032263 15020000 1e000000", "192.0.2.1", &info);
	ck_assert(!step.withholding.corrects);
	ck_assert(!step.withholding.silent && !step.withholding.blind);
	step = step_of_asked("01052263 15020000 1e000000 f0020109 07d06c63", "192.0.2.1", &info);
	ck_assert(step.withholding.silent && !step.withholding.blind);
	step = step_of_asked("01052263 15020000 1e000000 f0020119 07d06c63", "192.0.2.1", &info);
	ck_assert(step.withholding.silent && step.withholding.blind && !step.withholding.repeats);
	step = step_of_asked("01052263 15020000 1e000000 f0020139 07d06c63", "192.0.2.1", &info);
	ck_assert(step.withholding.silent && step.withholding.blind && step.withholding.repeats && !step.withholding.hold_times);
	step = step_of_asked("01052263 15020000 1e000000 f0020141 07d06c63", "192.0.2.1", &info);
	ck_assert(step.withholding.hold_times && !step.withholding.silent);
}
END_TEST

START_TEST(silence_and_errors_are_the_converters_fault)
{
	ck_assert_int_eq(handshake_on_silence(false).fault, HANDSHAKE_FAULT_CONVERTER);
	ck_assert_int_eq(handshake_on_silence(false).error, ETIMEDOUT);
	ck_assert_int_eq(handshake_on_silence(true).fault, HANDSHAKE_FAULT_REFUSED);
	ck_assert_int_eq(handshake_on_silence(true).error, ETIMEDOUT);
	ck_assert_int_eq(handshake_on_error(EHOSTUNREACH, true).error, EHOSTUNREACH);
	ck_assert_int_eq(handshake_on_error(ENOTCONN, true).error, ECONNREFUSED);
	ck_assert_uint_eq(handshake_on_error(ECONNREFUSED, true).rest, HANDSHAKE_REST_SECONDS);
	ck_assert_int_eq(handshake_on_error(ECONNREFUSED, true).fault, HANDSHAKE_FAULT_CONVERTER);
	ck_assert_int_eq(handshake_on_error(ECONNRESET, true).fault, HANDSHAKE_FAULT_REFUSED);
	ck_assert_int_eq(handshake_on_error(ECONNRESET, false).fault, HANDSHAKE_FAULT_CONVERTER);
}
END_TEST

START_TEST(every_code_and_value_has_an_errno)
{
	for (int code = 0; code < 256; code++)
		for (int value = 0; value < 256; value++) {
			ck_assert_int_gt(errno_map_error((uint8_t)code, (uint8_t)value, true), 0);
			ck_assert_int_gt(errno_map_error((uint8_t)code, (uint8_t)value, false), 0);
		}
}
END_TEST

/* A time without the flag: a converter that could withhold SYNs, and doesn't. Its SYN+ACK confirms nothing. */
START_TEST(a_time_alone_withholds_nothing)
{
	struct handshake_step step =
		step_of_asked("01052263 15020000 1e000000 f0020102 07d06c63", "192.0.2.1", &info);

	ck_assert_int_eq(step.verdict, HANDSHAKE_DONE);
	ck_assert(step.withholding.corrects);
	ck_assert(!step.withholding.withheld);
}
END_TEST

/* Figure 12: an Info TLV of one word, between the Connect TLV and the cookie. */
START_TEST(a_request_asks_for_what_is_supported)
{
	static const struct handshake_ask both = { .info = true, .cookie = { (const uint8_t *)"secret", 6 } };
	uint8_t buf[CONVERT_MESSAGE_MAX];
	union sockaddr_ip server = address("192.0.2.1:8080");
	ssize_t len = handshake_request(buf, sizeof(buf), &server, &both);

	bytes_assert_hex(buf, (size_t)len,
			 "010a2263 0a051f90 00000000000000000000ffff c0000201 01010000 16030000 7365637265740000");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("handshake");
	TCase *tcase = tcase_create("handshake");

	tcase_add_test(tcase, request_is_header_connect_and_cookie);
	tcase_add_test(tcase, silent_request_is_marked_as_one);
	tcase_add_test(tcase, request_says_how_long_its_syn_may_be_withheld);
	tcase_add_test(tcase, request_without_room_has_no_hold_time);
	tcase_add_test(tcase, unsupported_message_brings_its_remedy);
	tcase_add_test(tcase, repeats_are_counted);
	tcase_add_test(tcase, silent_request_may_be_answered);
	tcase_add_test(tcase, request_refuses_what_the_rfc_forbids);
	tcase_add_loop_test(tcase, response_is_known_exactly_when_it_is_complete, 0,
			    ARRAY_SIZE(good));
	tcase_add_test(tcase, data_behind_the_response_is_not_touched);
	tcase_add_loop_test(tcase, broken_response_is_the_converters_fault, 0, ARRAY_SIZE(broken));
	tcase_add_test(tcase, early_end_is_the_converters_fault);
	tcase_add_loop_test(tcase, error_is_the_errno_of_a_direct_connection, 0,
			    ARRAY_SIZE(errors));
	tcase_add_test(tcase, missing_cookie_brings_its_remedy);
	tcase_add_test(tcase, unsupported_option_brings_its_remedy);
	tcase_add_loop_test(tcase, servers_multipath_tcp_is_known_if_asked_for, 0,
			    ARRAY_SIZE(headers));
	tcase_add_test(tcase, answer_to_info_is_handed_on);
	tcase_add_test(tcase, what_becomes_of_syns_is_handed_on);
	tcase_add_test(tcase, silence_and_errors_are_the_converters_fault);
	tcase_add_test(tcase, every_code_and_value_has_an_errno);
	tcase_add_test(tcase, a_time_alone_withholds_nothing);
	tcase_add_test(tcase, a_request_asks_for_what_is_supported);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
