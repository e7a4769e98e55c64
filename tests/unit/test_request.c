/* SPDX-License-Identifier: BSD-3-Clause */
/* test_request.c - what convertd does about each request, and the bytes that it answers */
#include "bytes.h"
#include "run.h"

#include "common/tcp.h"
#include "convertd/policy/judgement.h"

#include <arpa/inet.h>
#include <check.h>
#include <stdio.h>
#include <string.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Connect TLVs: port 80 and then an address, base or with 4 or 8 bytes of options. */
#define V4 "00*10 ffff c0000201 "
#define CONNECT "0a05 0050 " V4
#define CONNECT_4 "0a06 0050 " V4
#define CONNECT_8 "0a07 0050 " V4
#define SILENCE "f202 0100 0000 6c63 "
#define BLIND "f202 0101 0000 6c63 "
#define HOLD_TIME "f302 0100 01c2 6c63 "

static const struct request_features all = {
	.sack = true, .timestamps = true, .mptcp = true
};
static const struct request_features none;
static const struct request_features mptcp_only = { .mptcp = true };
static const struct request_features withholding = { .mptcp = true,
						     .withholding = { .withheld = true, .limit_ms = 2000,
								      .corrects = true } };
static const struct request_features silent = {
	.mptcp = true, .withholding = { .withheld = true, .limit_ms = 2000, .corrects = true, .silent = true }
};
static const struct request_features blind = {
	.mptcp = true, .withholding = { .withheld = true, .limit_ms = 2000, .corrects = true, .silent = true, .blind = true }
};
static const struct request_features holding = {
	.mptcp = true, .withholding = { .withheld = true, .limit_ms = 2000, .corrects = true, .hold_times = true }
};
static const struct request_features correcting = { .mptcp = true,
						    .withholding = { .corrects = true } };

static const struct {
	const char *name;
	const struct request_features *features;
	const char *request;
	enum request_action action;
	const char *answer; /* for REQUEST_ANSWER */
	bool mptcp;         /* for REQUEST_CONNECT */
	bool info;          /* there is a Connect TLV and an Info TLV */
} cases[] = {
	{ "nothing yet", &all, "", REQUEST_WAIT, NULL, false, false },
	{ "part of the header", &all, "01 06", REQUEST_WAIT, NULL, false, false },
	{ "part of a TLV", &all, "0106 2263 0a05 0050", REQUEST_WAIT, NULL, false, false },

	{ "connect", &all, "0106 2263" CONNECT, REQUEST_CONNECT, NULL, false, false },
	{ "connect and data", &all, "0106 2263" CONNECT "0102", REQUEST_CONNECT, NULL, false, false },
	{ "connect and info", &all, "0107 2263 0101 0000" CONNECT, REQUEST_CONNECT, NULL, false, true },
	{ "connect and a cookie", &all, "0108 2263" CONNECT "1602 0000 01020304", REQUEST_CONNECT, NULL,
	  false, false },

	{ "not Convert", &all, "4745 5420", REQUEST_IGNORE, NULL, false, false },
	{ "Total Length 0", &all, "0100 2263", REQUEST_RESET, NULL, false, false },
	{ "Total Length 0 of another version", &all, "0200 2263", REQUEST_RESET, NULL, false, false },
	{ "another version", &all, "0206 2263", REQUEST_ANSWER, "0102 2263 1e01 0001", false, false },
	{ "version 0", &all, "0006 2263", REQUEST_ANSWER, "0102 2263 1e01 0001", false, false },

	{ "header alone", &all, "0101 2263", REQUEST_ANSWER, "0103 2263 1e02 0100 0101 2263", false,
	  false },
	{ "cookie alone", &all, "0103 2263 1602 0000 01020304", REQUEST_ANSWER,
	  "0105 2263 1e04 0100 0103 2263 1602 0000 01020304", false, false },
	{ "data isn't echoed", &all, "0103 2263 1602 0000 01020304 0506", REQUEST_ANSWER,
	  "0105 2263 1e04 0100 0103 2263 1602 0000 01020304", false, false },
	{ "TLV twice", &all, "0103 2263 0101 0000 0101 0000", REQUEST_ANSWER,
	  "0105 2263 1e04 0100 0103 2263 0101 0000 0101 0000", false, false },
	{ "type 0", &all, "0102 2263 0001 0000", REQUEST_ANSWER,
	  "0104 2263 1e03 0200 0102 2263 0001 0000", false, false },
	{ "unknown type", &all, "0102 2263 6301 0000", REQUEST_ANSWER,
	  "0104 2263 1e03 0200 0102 2263 6301 0000", false, false },
	{ "somebody else's TLV of type 240", &all, "0103 2263 f002 0103 07d0 6c64", REQUEST_ANSWER,
	  "0105 2263 1e04 0200 0103 2263 f002 0103 07d0 6c64", false, false },
	{ "loopback", &all, "0106 2263 0a05 0050 00*10 ffff 7f000001", REQUEST_ANSWER,
	  "0108 2263 1e07 0100 0106 2263 0a05 0050 00*10 ffff 7f000001", false, false },

	{ "info", &all, "0102 2263 0101 0000", REQUEST_ANSWER, "0103 2263 1502 0000 04 08 1e 00", false,
	  false },
	{ "info, MPTCP alone", &mptcp_only, "0102 2263 0101 0000", REQUEST_ANSWER,
	  "0103 2263 1502 0000 1e 000000", false, false },
	{ "info, SYNs are withheld", &withholding, "0102 2263 0101 0000", REQUEST_ANSWER,
	  "0105 2263 1502 0000 1e 000000 f002 0103 07d0 6c63", false, false },
	{ "info, and an echo", &mptcp_only, "0104 2263 0101 0000 f102 0100 0000 6c63", REQUEST_ANSWER,
	  "0105 2263 1502 0000 1e 000000 f102 0100 0100 6c63", false, false },
	{ "info, SYNs are corrected", &correcting, "0102 2263 0101 0000", REQUEST_ANSWER,
	  "0105 2263 1502 0000 1e 000000 f002 0102 0000 6c63", false, false },
	{ "info, nothing", &none, "0102 2263 0101 0000", REQUEST_ANSWER, "0102 2263 1501 0000", false,
	  false },

	{ "info, silence", &silent, "0102 2263 0101 0000", REQUEST_ANSWER,
	  "0105 2263 1502 0000 1e 000000 f002 010b 07d0 6c63", false, false },
	{ "info, silence and blind clients", &blind, "0102 2263 0101 0000", REQUEST_ANSWER,
	  "0105 2263 1502 0000 1e 000000 f002 011b 07d0 6c63", false, false },
	{ "info, hold times", &holding, "0102 2263 0101 0000", REQUEST_ANSWER,
	  "0105 2263 1502 0000 1e 000000 f002 0143 07d0 6c63", false, false },
	{ "hold time", &holding, "0108 2263" HOLD_TIME CONNECT, REQUEST_CONNECT, NULL, false, false },
	{ "hold time, no longer offered", &none, "0108 2263" HOLD_TIME CONNECT, REQUEST_CONNECT, NULL, false, false },
	{ "hold time of another version", &holding, "0108 2263 f302 0000 01c2 6c63" CONNECT, REQUEST_ANSWER,
	  "010a 2263 1e09 0200 0108 2263 f302 0000 01c2 6c63" CONNECT, false, false },
	{ "hold time, and silence", &silent, "010a 6c63" SILENCE HOLD_TIME CONNECT, REQUEST_CONNECT, NULL, false, false },
	{ "hold time alone", &holding, "0103 2263" HOLD_TIME, REQUEST_ANSWER, "0105 2263 1e04 0100 0103 2263" HOLD_TIME, false, false },
	{ "silent, not offered", &withholding, "0108 6c63" SILENCE CONNECT, REQUEST_RESET, NULL, false, false },
	{ "part of it, not offered", &withholding, "0108 6c63 f2", REQUEST_RESET, NULL, false, false },
	{ "silent", &silent, "0108 6c63" SILENCE CONNECT, REQUEST_CONNECT, NULL, false, false },
	{ "silent, to MPTCP", &silent, "0109 6c63" SILENCE CONNECT_4 "1e02 0000", REQUEST_CONNECT, NULL, true, false },
	{ "part of it", &silent, "0108 6c63 f2", REQUEST_WAIT, NULL, false, false },
	{ "blind, not offered", &silent, "0108 6c63" BLIND CONNECT, REQUEST_RESET, NULL, false, false },
	{ "blind", &blind, "0108 6c63" BLIND CONNECT, REQUEST_CONNECT, NULL, false, false },
	{ "silent, and info", &blind, "0109 6c63" SILENCE "0101 0000" CONNECT, REQUEST_RESET, NULL, false, false },
	{ "silence alone", &blind, "0103 6c63" SILENCE, REQUEST_RESET, NULL, false, false },
	{ "silence with the other Magic Number", &blind, "0108 2263" SILENCE CONNECT, REQUEST_ANSWER,
	  "010a 2263 1e09 0200 0108 2263" SILENCE CONNECT, false, false },

	{ "MPTCP", &all, "0107 2263" CONNECT_4 "1e02 0000", REQUEST_CONNECT, NULL, true, false },
	{ "SACK, timestamps, MPTCP", &all, "0108 2263" CONNECT_8 "0402 0802 1e02 0000", REQUEST_CONNECT,
	  NULL, true, false },
	{ "MPTCP not supported", &none, "0107 2263" CONNECT_4 "1e02 0000", REQUEST_ANSWER,
	  "0102 2263 1e01 21 1e", false, false },
	{ "ignored: NOP, MSS, SACK", &all, "0108 2263" CONNECT_8 "01 01 0204 05b4 0502", REQUEST_CONNECT,
	  NULL, false, false },
	{ "ignored: window scale", &none, "0107 2263" CONNECT_4 "0303 07 00", REQUEST_CONNECT, NULL,
	  false, false },
	{ "SACK with a value", &all, "0107 2263" CONNECT_4 "0403 07 00", REQUEST_ANSWER,
	  "0102 2263 1e01 21 04", false, false },
	{ "TCP-AO, TFO, 99 twice", &all, "0108 2263" CONNECT_8 "1d02 2202 6302 6302",
	  REQUEST_ANSWER, "0103 2263 1e02 21 1d 22 63 0000", false, false },
	{ "unsupported, and info", &all, "0108 2263 0101 0000" CONNECT_4 "1302 0000", REQUEST_ANSWER,
	  "0104 2263 1502 0000 04 08 1e 00 1e01 21 13", false, true },
	{ "TFO: a cookie of 3 bytes", &all, "0108 2263" CONNECT_8 "2205 010203 000000",
	  REQUEST_ANSWER, "0102 2263 1e01 21 22", false, false },
	{ "TFO: a cookie of 5 bytes", &all, "0108 2263" CONNECT_8 "2207 0102030405 00",
	  REQUEST_ANSWER, "0102 2263 1e01 21 22", false, false },
	{ "an option past the end", &all, "0107 2263" CONNECT_4 "0405 0000", REQUEST_ANSWER,
	  "0109 2263 1e08 0100 0107 2263" CONNECT_4 "0405 0000", false, false },

	{ "private and link-local addresses are for others to judge", &all,
	  "0106 2263 0a05 0050 00*10 ffff a9fea9fe", REQUEST_CONNECT, NULL, false, false },
};

START_TEST(decisions)
{
	struct bytes request = bytes_hex(cases[_i].request);
	struct convert_response response = { 0 };
	struct request_decision decision;

	memset(&decision, 0xa5, sizeof(decision));
	request_decide(cases[_i].features, request.data, request.len, &decision);
	ck_assert_msg(decision.verdict.action == cases[_i].action, "%s: action %d, not %d", cases[_i].name,
		      decision.verdict.action, cases[_i].action);
	ck_assert_msg(decision.verdict.mptcp == cases[_i].mptcp && decision.verdict.responds == cases[_i].info, "%s",
		      cases[_i].name);
	ck_assert_msg((decision.verdict.reason != NULL) == (decision.verdict.action != REQUEST_WAIT &&
						    decision.verdict.action != REQUEST_CONNECT),
		      "%s: a reason for the log", cases[_i].name);
	if (cases[_i].answer)
		bytes_assert_hex(decision.answer, decision.answer_len, cases[_i].answer);
	else
		ck_assert_uint_eq(decision.answer_len, 0);
	convert_response_parse(decision.answer, decision.answer_len, &response);
	ck_assert_msg(decision.verdict.refused == response.has_error, "%s", cases[_i].name);
	bytes_fini(&request);
}
END_TEST

START_TEST(connect_fields)
{
	struct bytes request = bytes_hex("0107 2263 0101 0000" CONNECT "0102");
	struct request_decision decision;
	char text[SOCKADDR_STRLEN];

	request_decide(&all, request.data, request.len, &decision);
	ck_assert_uint_eq(decision.verdict.length, 28);
	ck_assert_str_eq(sockaddr_ip_format(&decision.verdict.server, text), "192.0.2.1:80");
	bytes_fini(&request);
}
END_TEST

START_TEST(cookie_of_a_request)
{
	struct bytes request = bytes_hex("0108 2263" CONNECT "1602 0000 01020304");
	struct request_decision decision;

	request_decide(&all, request.data, request.len, &decision);
	ck_assert(decision.has_cookie);
	bytes_assert_hex(decision.cookie.data, decision.cookie.len, "01020304");
	bytes_fini(&request);
	request = bytes_hex("0106 2263" CONNECT);
	request_decide(&all, request.data, request.len, &decision);
	ck_assert(!decision.has_cookie);
	bytes_fini(&request);
}
END_TEST

START_TEST(hold_time_of_a_request)
{
	static const struct {
		const char *hex;
		unsigned hold_ms; /* UINT_MAX: it doesn't say */
	} requests[] = {
		{ "0108 2263" HOLD_TIME CONNECT, 450 },
		{ "010a 6c63" SILENCE HOLD_TIME CONNECT, 450 },
		{ "0108 2263 f302 0100 0000 6c63" CONNECT, 0 },
		{ "0106 2263" CONNECT, UINT_MAX },
		{ "0108 2263 f302 0200 01c2 6c63" CONNECT, UINT_MAX },
	};

	for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
		struct bytes request = bytes_hex(requests[i].hex);
		struct request_decision decision;

		memset(&decision, 0xa5, sizeof(decision));
		request_decide(&silent, request.data, request.len, &decision);
		ck_assert_uint_eq(decision.verdict.hold_ms, requests[i].hold_ms);
		bytes_fini(&request);
	}
}
END_TEST

/* A request is not decided before its last byte, whatever has arrived. */
START_TEST(every_truncation)
{
	struct bytes request = bytes_hex("0109 2263 0101 0000" CONNECT_8 "0402 0802 1e02 0000");
	struct request_decision decision;

	for (size_t len = 0; len < request.len; len++) {
		struct bytes part = bytes_copy(request.data, len);

		request_decide(&all, part.data, part.len, &decision);
		ck_assert_int_eq(decision.verdict.action, REQUEST_WAIT);
		bytes_fini(&part);
	}
	request_decide(&all, request.data, request.len, &decision);
	ck_assert_int_eq(decision.verdict.action, REQUEST_CONNECT);
	ck_assert_uint_eq(decision.verdict.length, request.len);
	bytes_fini(&request);
}
END_TEST

/* The list of unsupported kinds is as long as there are kinds in the longest request. */
START_TEST(all_kinds_at_once)
{
	uint8_t message[CONVERT_MESSAGE_MAX] = { 1, 255, 0x22, 0x63, 10, 254, 0, 80 };
	struct request_decision decision;
	size_t len = 4 + CONVERT_CONNECT_LEN;

	message[18] = message[19] = 0xff;
	message[20] = 192;
	for (unsigned kind = 2; kind < 256; kind++) {
		message[len++] = (uint8_t)kind;
		message[len++] = 2;
	}
	/* The rest is padding: kind 0. */
	request_decide(&none, message, sizeof(message), &decision);
	ck_assert_int_eq(decision.verdict.action, REQUEST_ANSWER);
	/* 256 kinds without 0, 1, 2, 3 and 5; they start behind header, type, length and code. */
	ck_assert_uint_ge(decision.answer_len, 7 + 251);
	ck_assert_uint_le(decision.answer_len, 7 + 251 + 3);
	ck_assert_uint_eq(decision.answer[7], 4);
	ck_assert_uint_eq(decision.answer[8], 6);
	ck_assert_uint_eq(decision.answer[7 + 250], 255);
}
END_TEST

/* Valid is what asks for something, whether or not it can be had. */
START_TEST(valid_requests)
{
	static const struct {
		const char *request;
		bool valid;
	} requests[] = {
		{ "0106 2263" CONNECT, true },
		{ "0102 2263 0101 0000", true },
		{ "0108 2263 0101 0000" CONNECT_4 "2202 0000", true },
		{ "0106 2263 0a05 0050 00*10 ffff 7f000001", false },
		{ "0103 2263 1602 0000 01020304", false },
		{ "0101 2263", false },
		{ "0106 2263", false },
		{ "4745 5420", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
		struct bytes request = bytes_hex(requests[i].request);
		struct request_decision decision;

		request_decide(&all, request.data, request.len, &decision);
		ck_assert_msg(decision.valid == requests[i].valid, "%s", requests[i].request);
		bytes_fini(&request);
	}
}
END_TEST

START_TEST(refusals)
{
	struct bytes request = bytes_hex("0107 2263 0101 0000" CONNECT "0102");
	struct request_decision decision;

	request_decide(&all, request.data, request.len, &decision);
	request_refuse(&all, false, CONVERT_ERROR_NOT_AUTHORIZED, 0, "reason", &decision);
	ck_assert_int_eq(decision.verdict.action, REQUEST_ANSWER);
	ck_assert_str_eq(decision.verdict.reason, "reason");
	bytes_assert_hex(decision.answer, decision.answer_len, "0102 2263 1e01 20 00");
	request_refuse(&all, true, CONVERT_ERROR_RESOURCE_EXCEEDED, 7, "reason", &decision);
	bytes_assert_hex(decision.answer, decision.answer_len, "0104 2263 1502 0000 04 08 1e 00 1e01 40 07");
	request_refuse_cookie((const uint8_t *)"12345678", 8, "reason", &decision);
	bytes_assert_hex(decision.answer, decision.answer_len, "0104 2263 1e03 03 00 3132333435363738");
	request_refuse_malformed(request.data, "reason", &decision);
	bytes_assert_hex(decision.answer, decision.answer_len,
			 "0109 2263 1e08 0100 0107 2263 0101 0000" CONNECT);
	bytes_fini(&request);
}
END_TEST

START_TEST(answers)
{
	static const uint8_t options[] = { 2, 4, 5, 0xb4, 4, 2 };
	uint8_t out[CONVERT_MESSAGE_MAX];
	size_t len;

	len = request_write_connected(&all, false, options, sizeof(options), out);
	bytes_assert_hex(out, len, "0104 2263 1403 0000 0204 05b4 0402 0000");
	len = request_write_connected(&all, true, options, 0, out);
	bytes_assert_hex(out, len, "0104 2263 1502 0000 04 08 1e 00 1401 0000");
	len = request_write_error(&all, false, CONVERT_ERROR_DESTINATION_UNREACHABLE, 13, out);
	bytes_assert_hex(out, len, "0102 2263 1e01 61 0d");
	len = request_write_error(&all, true, CONVERT_ERROR_CONNECTION_RESET, 0, out);
	bytes_assert_hex(out, len, "0104 2263 1502 0000 04 08 1e 00 1e01 60 00");
	len = request_write_error(&all, false, CONVERT_ERROR_UNSUPPORTED_TCP_OPTION, TCP_KIND_MPTCP, out);
	bytes_assert_hex(out, len, "0102 2263 1e01 21 1e");
}
END_TEST

/* Each way to refuse has its caller's words in the log. */
START_TEST(reasons_are_the_callers)
{
	struct bytes request = bytes_hex("0102 2263 0101 0000");
	struct request_decision decision;

	request_decide(&all, request.data, request.len, &decision);
	request_refuse_malformed(request.data, "one", &decision);
	ck_assert_str_eq(decision.verdict.reason, "one");
	request_refuse_cookie((const uint8_t *)"12345678", 8, "two", &decision);
	ck_assert_str_eq(decision.verdict.reason, "two");
	request_refuse(&all, false, CONVERT_ERROR_NOT_AUTHORIZED, 0, "three", &decision);
	ck_assert_str_eq(decision.verdict.reason, "three");
	bytes_fini(&request);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("request");
	TCase *tcase = tcase_create("request");

	tcase_add_loop_test(tcase, decisions, 0, (int)ARRAY_SIZE(cases));
	tcase_add_test(tcase, connect_fields);
	tcase_add_test(tcase, cookie_of_a_request);
	tcase_add_test(tcase, hold_time_of_a_request);
	tcase_add_test(tcase, every_truncation);
	tcase_add_test(tcase, all_kinds_at_once);
	tcase_add_test(tcase, valid_requests);
	tcase_add_test(tcase, refusals);
	tcase_add_test(tcase, answers);
	tcase_add_test(tcase, reasons_are_the_callers);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
