/* SPDX-License-Identifier: BSD-3-Clause */
/* test_srv.c - SRV records: what a name server's response says, and the order of targets */
#include "config.h"

#include "client/resolve.h"

#include "bytes.h"
#include "run.h"
#include "../fuzz/srv_properties.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define LIST_MAX 16

/* The response to a question for SRV_CHECK_OWNER, which is at 0x0c, its "example" at 0x1a. */
#define HEADER(flags, answers) "4a1d " flags " 0001 " answers " 0000 0000 "
#define EXAMPLE "07 6578616d706c65 00 "
#define NAME "08 5f636f6e76657274 04 5f746370 " EXAMPLE
#define QUESTION NAME "0021 0001 "
#define ASKED(answers) HEADER("8580", answers) QUESTION
#define OWNER "c00c "
#define IN_SRV "0021 0001 0000003c "
#define IN_CNAME "0005 0001 0000003c "
#define IN_EXAMPLE "c01a " /* behind a label: "….example" */
/* priority 10, weight 0, port 1234 */
#define RECORD(len) OWNER IN_SRV len " 000a 0000 04d2 "
#define DATA_A IN_SRV "000a 000a 0000 04d2 01 61 " IN_EXAMPLE
#define SRV_A OWNER DATA_A
#define SRV_B OWNER IN_SRV "000a 0014 0000 04d2 01 62 " IN_EXAMPLE
#define A "a.example:1234 10 0 "
#define B "b.example:1234 20 0 "

static const struct {
	const char *title, *hex;
	int ret;
	const char *targets; /* "name:port priority weight " each */
} responses[] = {
	{ "two", ASKED("0002") SRV_A SRV_B, 2, A B },
	{ "no question", "4a1d 8580 0000 0001 0000 0000 " NAME IN_SRV
			 "0011 ffff fffe fffd 01 61 " EXAMPLE, 1, "a.example:65533 65535 65534 " },
	{ "case", ASKED("0001") "08 5f434f4e76657274 04 5f544370 07 4558616d706c65 00 " IN_SRV
				"000a 000a 0000 04d2 01 41 " IN_EXAMPLE, 1, A },
	{ "root", ASKED("0001") OWNER IN_SRV "0007 0000 0000 0000 00", 0, "" },
	{ "port 0", ASKED("0002") OWNER IN_SRV "000a 0000 0000 0000 01 61 " IN_EXAMPLE SRV_B, 1, B },
	{ "a blank in a label", ASKED("0001") RECORD("000b") "02 61 20 " IN_EXAMPLE, 0, "" },
	{ "a dot in a label", ASKED("0001") RECORD("000b") "02 61 2e " IN_EXAMPLE, 0, "" },
	{ "a hyphen first", ASKED("0001") RECORD("000b") "02 2d 61 " IN_EXAMPLE, 0, "" },
	{ "another owner", ASKED("0001") "01 78 " IN_EXAMPLE DATA_A, -ENOENT, "" },
	{ "another class", ASKED("0001") OWNER "0021 0003 0000003c "
			   "000a 000a 0000 04d2 01 61 " IN_EXAMPLE, -ENOENT, "" },
	{ "another type", ASKED("0002") OWNER "0010 0001 0000003c 0003 026162 " SRV_A, 1, A },
	{ "alias", ASKED("0002") OWNER IN_CNAME "0004 01 78 " IN_EXAMPLE
		   "01 78 " IN_EXAMPLE DATA_A, 1, A },
	{ "alias behind its record", ASKED("0002") "01 78 " IN_EXAMPLE DATA_A
				     OWNER IN_CNAME "0004 01 78 " IN_EXAMPLE, 1, A },
	{ "alias of itself", ASKED("0001") OWNER IN_CNAME "0002 c00c", -ENOENT, "" },
	{ "aliases in a circle", ASKED("0002") OWNER IN_CNAME "0004 01 78 " IN_EXAMPLE
				 "01 78 " IN_EXAMPLE IN_CNAME "0002 c00c", -ENOENT, "" },
	{ "no such name", HEADER("8583", "0000") QUESTION, -ENOENT, "" },
	{ "server failure", HEADER("8182", "0000") QUESTION, -EAGAIN, "" },
	{ "refused", HEADER("8185", "0000") QUESTION, -EAGAIN, "" },
	{ "nothing", ASKED("0000"), -ENOENT, "" },
	{ "a question", HEADER("0100", "0000") QUESTION, -EBADMSG, "" },
	{ "behind the answers", ASKED("0001") SRV_A "ffff", 1, A },
	{ "fewer than counted", ASKED("0002") SRV_A, -EBADMSG, "" },
	{ "cut, and said to be", HEADER("8780", "0002") QUESTION SRV_A "c00c 0021 00", 1, A },
	{ "cut in front of all", HEADER("8780", "0002") QUESTION, -ENOENT, "" },
	{ "longer than the message", ASKED("0001") RECORD("000b") "01 61 " IN_EXAMPLE, -EBADMSG, "" },
	{ "longer than the target", ASKED("0001") RECORD("000b") "01 61 " IN_EXAMPLE "00", -EBADMSG, "" },
	{ "shorter than the target", ASKED("0001") RECORD("0008") "01 61 " IN_EXAMPLE, -EBADMSG, "" },
	{ "without a target", ASKED("0001") RECORD("0006"), -EBADMSG, "" },
	{ "too short", ASKED("0001") OWNER IN_SRV "0005 000a 0000 04", -EBADMSG, "" },
	{ "a pointer to itself", ASKED("0001") RECORD("0008") "c039", -EBADMSG, "" },
	{ "a pointer to its name", ASKED("0001") RECORD("000a") "01 61 c039", -EBADMSG, "" },
	{ "a pointer forwards", ASKED("0001") "c02a " DATA_A, -EBADMSG, "" },
	{ "a pointer outside", ASKED("0001") "ffff " DATA_A, -EBADMSG, "" },
	{ "half a pointer", ASKED("0001") "c0", -EBADMSG, "" },
	{ "a label of another kind", ASKED("0001") RECORD("000a") "41 61 " IN_EXAMPLE, -EBADMSG, "" },
	{ "a name of 256 bytes", ASKED("0001") RECORD("0106")
				 "3e 61*62 3e 61*62 3e 61*62 3f 61*63 01 61 00", -EBADMSG, "" },
	{ "half a question", "4a1d 8580 0001 0000 0000 0000 01 61 00 0021 00", -EBADMSG, "" },
	{ "half a header", "4a1d 8580 0001 0000 0000 00", -EBADMSG, "" },
};

static int parse_hex(const char *hex, const char *owner, struct srv_target *list, size_t max)
{
	struct bytes response = bytes_hex(hex);
	int ret = srv_parse(response.data, response.len, owner, list, max);

	bytes_fini(&response);
	return ret;
}

START_TEST(response_says_what_it_says)
{
	struct srv_target list[LIST_MAX];
	char text[1024] = "";
	int ret = parse_hex(responses[_i].hex, SRV_CHECK_OWNER, list, LIST_MAX);

	ck_assert_msg(ret == responses[_i].ret, "%s: %d", responses[_i].title, ret);
	for (int i = 0; i < ret; i++) {
		size_t used = strlen(text);

		snprintf(text + used, sizeof(text) - used, "%.100s:%u %u %u ", list[i].name,
			 list[i].port, list[i].priority, list[i].weight);
	}
	ck_assert_msg(strcmp(text, responses[_i].targets) == 0, "%s: %s", responses[_i].title, text);
}
END_TEST

/* 255 bytes on the wire, 253 as text. */
START_TEST(longest_name)
{
	static const char hex[] =
		ASKED("0001") RECORD("0105") "3e 61*62 3e 61*62 3f 61*63 3f 61*63 00";
	struct srv_target list[1];

	ck_assert_int_eq(parse_hex(hex, SRV_CHECK_OWNER, list, 1), 1);
	ck_assert_uint_eq(strlen(list[0].name), 253);
}
END_TEST

START_TEST(owner_may_be_written_in_other_ways)
{
	static const char two[] = ASKED("0002") SRV_A SRV_B;
	char long_owner[400];
	struct srv_target list[2];

	ck_assert_int_eq(parse_hex(two, "_CONVERT._tcp.Example", list, 2), 2);
	ck_assert_int_eq(parse_hex(two, "_convert._tcp.example.", list, 2), 2);
	ck_assert_int_eq(parse_hex(two, "_convert._tcp.other", list, 2), -ENOENT);
	ck_assert_int_eq(parse_hex(two, "", list, 2), -ENOENT);
	memset(long_owner, 'a', sizeof(long_owner));
	long_owner[sizeof(long_owner) - 1] = '\0';
	ck_assert_int_eq(parse_hex(two, long_owner, list, 2), -ENOENT);
}
END_TEST

START_TEST(best_are_kept)
{
	struct srv_target list[1];

	ck_assert_int_eq(parse_hex(ASKED("0002") SRV_A SRV_B, SRV_CHECK_OWNER, list, 1), 1);
	ck_assert_str_eq(list[0].name, "a.example");
	ck_assert_int_eq(parse_hex(ASKED("0002") SRV_B SRV_A, SRV_CHECK_OWNER, list, 1), 1);
	ck_assert_str_eq(list[0].name, "a.example");
}
END_TEST

/* The properties abort, which Check reports as a signal. */
START_TEST(every_truncation)
{
	struct bytes response = bytes_hex(responses[_i].hex);

	for (size_t len = 0; len <= response.len; len++) {
		struct bytes part = bytes_copy(response.data, len);

		srv_check(part.data, part.len);
		/* ... and as a server cuts it */
		if (len >= 12) {
			part.data[2] |= 0x02;
			srv_check(part.data, part.len);
		}
		bytes_fini(&part);
	}
	bytes_fini(&response);
}
END_TEST

START_TEST(every_byte)
{
	struct bytes response = bytes_hex(responses[_i].hex);

	for (size_t at = 0; at < response.len; at++) {
		uint8_t original = response.data[at];

		for (unsigned int change = 1; change < 256; change++) {
			response.data[at] = (uint8_t)(original + change);
			srv_check(response.data, response.len);
		}
		response.data[at] = original;
	}
	bytes_fini(&response);
}
END_TEST

static void put16(uint8_t *at, size_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

/* Makes 60 kB of records whose owners have the largest number of labels and pointers. */
START_TEST(costly_response_is_read_soon)
{
	enum { RECORDS = 5000, NAMES = 126, FIRST = 23, DATA_LEN = 4 * NAMES };
	static uint8_t response[FIRST + DATA_LEN + RECORDS * 12];
	struct srv_target list[1];
	size_t at = FIRST;

	memcpy(response, "\x4a\x1d\x85\x80\0\0", 6);
	put16(response + 6, 1 + RECORDS);
	/* of the root, an unknown type, class IN */
	memcpy(response + 12, "\0\xff\0\0\1\0\0\0\0", 9);
	put16(response + FIRST - 2, DATA_LEN);
	/*
	 * its data: names of one label, each behind it a pointer to the name in front; the
	 * first ends there
	 */
	for (; at < FIRST + DATA_LEN; at += 4) {
		memcpy(response + at, "\1a", 2);
		if (at > FIRST)
			put16(response + at + 2, 0xc000 | (at - 4));
	}
	for (; at < sizeof(response); at += 12) {
		put16(response + at, 0xc000 | (FIRST + DATA_LEN - 4));
		memcpy(response + at + 2, "\0\x21\0\1", 4);
	}
	ck_assert_int_eq(srv_parse(response, sizeof(response), SRV_CHECK_OWNER, list, 1), -ENOENT);
	/* which isn't because of an end before the last record */
	ck_assert_int_eq(srv_parse(response, sizeof(response) - 1, SRV_CHECK_OWNER, list, 1), -EBADMSG);
}
END_TEST

/* Makes a record whose owner is a chain of so many pointers to the root. */
static int parse_chain(size_t pointers)
{
	uint8_t response[600] = "\x4a\x1d\x85\x80\0\0\0\2";
	struct srv_target list[1];
	size_t at = 24;

	memcpy(response + 12, "\0\xff\0\0\1\0\0\0\0", 9);
	put16(response + 21, 1 + 2 * (pointers - 1));
	for (size_t i = 0; i < pointers; i++, at += 2)
		put16(response + at, 0xc000 | (i ? at - 2 : 23));
	return srv_parse(response, at + 10, SRV_CHECK_OWNER, list, 1);
}

START_TEST(pointers_are_counted)
{
	ck_assert_int_eq(parse_chain(1), -ENOENT);
	ck_assert_int_eq(parse_chain(127), -ENOENT);
	ck_assert_int_eq(parse_chain(128), -EBADMSG);
	ck_assert_int_eq(parse_chain(250), -EBADMSG);
}
END_TEST

START_TEST(service_names)
{
	static const struct {
		const char *name;
		bool is;
	} names[] = {
		{ "_convert._tcp.example", true }, { "_CONVERT._Tcp.e", true },
		{ "_convert._tcp.a.b.", true },	   { "_convert._tcp.", false },
		{ "_convert._tcp..", false },	   { "_convert._tcp", false },
		{ "_convert._udp.example", false }, { "_convert-_tcp.example", false },
		{ "_convert", false },		   { "convert._tcp.example", false },
		{ "", false },			   { "a_convert._tcp.example", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		ck_assert_msg(srv_is_service(names[i].name) == names[i].is, "\"%s\"", names[i].name);
}
END_TEST

/* The numbers that scripted() returns one after the other, and the limits that it was called with. */
struct script {
	uint32_t numbers[8], limits[8];
	size_t calls;
};

static uint32_t scripted(void *arg, uint32_t limit)
{
	struct script *script = arg;

	script->limits[script->calls] = limit;
	return script->numbers[script->calls++];
}

static struct srv_target target(const char *name, unsigned int priority, unsigned int weight)
{
	struct srv_target made = { .port = 1,
				   .priority = (uint16_t)priority,
				   .weight = (uint16_t)weight };

	strcpy(made.name, name);
	return made;
}

/* RFC 2782: weight 0 first; the first whose running sum reaches the number; again without it. */
static const struct {
	uint32_t numbers[3];
	const char *order;
} chances[] = {
	{ { 0, 0, 0 }, "zabc" },
	{ { 1, 0, 0 }, "azbc" },
	{ { 3, 0, 0 }, "bzac" },
	{ { 4, 3, 0 }, "cbza" },
	{ { 6, 1, 2 }, "cabz" },
	{ { 6, 3, 1 }, "cbaz" },
};

START_TEST(order_goes_by_weight)
{
	struct srv_target list[] = { target("a", 5, 1), target("z", 5, 0), target("b", 5, 2),
				     target("c", 5, 3) };
	struct script script = { .calls = 0 };
	char order[5] = "";

	memcpy(script.numbers, chances[_i].numbers, sizeof(chances[_i].numbers));
	srv_order(list, 4, scripted, &script);
	for (int i = 0; i < 4; i++)
		order[i] = list[i].name[0];
	ck_assert_str_eq(order, chances[_i].order);
	ck_assert_uint_eq(script.calls, 3);
	ck_assert_uint_eq(script.limits[0], 7);
}
END_TEST

START_TEST(order_goes_by_priority_first)
{
	struct srv_target list[] = { target("d", 65535, 65535), target("b", 1, 0), target("c", 2, 9),
				     target("a", 0, 1) };
	struct script script = { .calls = 0 };

	srv_order(list, 4, scripted, &script);
	ck_assert_str_eq(list[0].name, "a");
	ck_assert_str_eq(list[1].name, "b");
	ck_assert_str_eq(list[2].name, "c");
	ck_assert_str_eq(list[3].name, "d");
	ck_assert_uint_eq(script.calls, 0);
	srv_order(list, 1, scripted, &script);
	srv_order(list, 0, scripted, &script);
	ck_assert_uint_eq(script.calls, 0);
}
END_TEST

static uint32_t pseudo_random(void *arg, uint32_t limit)
{
	uint32_t *state = arg;

	*state = *state * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)*state * limit >> 32);
}

/* Weights 1 and 3: the second is first in three of four cases. */
START_TEST(weights_are_shares)
{
	uint32_t state = 1;
	int first = 0;

	for (int i = 0; i < 10000; i++) {
		struct srv_target list[] = { target("a", 0, 100), target("b", 0, 300) };

		srv_order(list, 2, pseudo_random, &state);
		first += list[0].name[0] == 'b';
	}
	ck_assert_int_gt(first, 7300);
	ck_assert_int_lt(first, 7700);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("srv");
	TCase *tcase = tcase_create("srv");

	tcase_add_loop_test(tcase, response_says_what_it_says, 0, ARRAY_SIZE(responses));
	tcase_add_test(tcase, longest_name);
	tcase_add_test(tcase, owner_may_be_written_in_other_ways);
	tcase_add_test(tcase, best_are_kept);
	tcase_add_loop_test(tcase, every_truncation, 0, ARRAY_SIZE(responses));
	tcase_add_loop_test(tcase, every_byte, 0, ARRAY_SIZE(responses));
	tcase_add_test(tcase, costly_response_is_read_soon);
	tcase_add_test(tcase, pointers_are_counted);
	tcase_add_test(tcase, service_names);
	tcase_add_loop_test(tcase, order_goes_by_weight, 0, ARRAY_SIZE(chances));
	tcase_add_test(tcase, order_goes_by_priority_first);
	tcase_add_test(tcase, weights_are_shares);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
