/* SPDX-License-Identifier: BSD-3-Clause */
/* test_socket_record.c - the state of sockets written as text, and read again */
#include "config.h"

#include "shim/process/socket_record.h"

#include "run.h"

#include <check.h>
#include <string.h>

static struct socket_record sample(void)
{
	struct socket_record record = {
		.numbers = { [SOCKET_RECORD_PHASE] = 4, [SOCKET_RECORD_FD] = 5, [SOCKET_RECORD_COOKIE] = UINT64_MAX,
			     [SOCKET_RECORD_RCVLOWAT] = 0x18 },
	};

	ck_assert_int_eq(sockaddr_ip_parse(&record.server, "[2001:db8::1]:1234", 0), 0);
	return record;
}

static const char sample_text[] = "4,5,ffffffffffffffff,0,0,18,0,0,6,4d2,20010db800000000,1,;";

START_TEST(writes_as_specified)
{
	struct socket_record record = sample();
	char text[1000] = "x=";

	ck_assert_uint_eq(socket_record_write(&record, text, 2, sizeof(text)),
			  2 + strlen(sample_text));
	ck_assert_str_eq(text + 2, sample_text);
}
END_TEST

START_TEST(reads_what_it_writes)
{
	struct socket_record record = sample(), got;
	char text[1000] = "";
	size_t one = socket_record_write(&record, text, 0, sizeof(text));
	const char *rest;

	record.numbers[SOCKET_RECORD_FD] = 6;
	ck_assert_uint_eq(socket_record_write(&record, text, one, sizeof(text)), 2 * one);
	rest = socket_record_read(&got, text);
	ck_assert_ptr_eq(rest, text + one);
	ck_assert_uint_eq(got.numbers[SOCKET_RECORD_FD], 5);
	rest = socket_record_read(&got, rest);
	ck_assert_ptr_eq(rest, text + 2 * one);
	ck_assert_uint_eq(got.numbers[SOCKET_RECORD_FD], 6);
	ck_assert(sockaddr_ip_equal(&got.server, &record.server));
	ck_assert_ptr_null(socket_record_read(&got, rest));
}
END_TEST

START_TEST(takes_no_more_room_than_there_is)
{
	struct socket_record record = sample();
	char text[1000];
	size_t len = socket_record_write(&record, text, 0, sizeof(text));

	for (size_t room = 1; room <= len; room++) {
		memset(text, 'x', sizeof(text));
		ck_assert_uint_eq(socket_record_write(&record, text, 0, room), 0);
		ck_assert_str_eq(text, "");
		ck_assert_int_eq(text[room], 'x');
	}
	ck_assert_uint_eq(socket_record_write(&record, text, 0, len + 1), len);
}
END_TEST

START_TEST(no_beginning_is_a_record)
{
	struct socket_record record = sample(), got;
	char text[1000];
	size_t len = socket_record_write(&record, text, 0, sizeof(text));

	while (len--) {
		text[len] = '\0';
		ck_assert_ptr_null(socket_record_read(&got, text));
	}
}
END_TEST

static const char *const wrong[] = {
	"1FFFF", "g", "-1", " 1", "", "10000000000000000", "0x1",
};

START_TEST(other_numbers_are_refused)
{
	struct socket_record got;
	char text[1000];

	strcpy(text, wrong[_i]);
	strcat(text, sample_text + 1);
	ck_assert_ptr_null(socket_record_read(&got, text));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("socket_record");
	TCase *tcase = tcase_create("record");

	tcase_add_test(tcase, writes_as_specified);
	tcase_add_test(tcase, reads_what_it_writes);
	tcase_add_test(tcase, takes_no_more_room_than_there_is);
	tcase_add_test(tcase, no_beginning_is_a_record);
	tcase_add_loop_test(tcase, other_numbers_are_refused, 0, sizeof(wrong) / sizeof(wrong[0]));
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
