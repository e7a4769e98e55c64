/* SPDX-License-Identifier: BSD-3-Clause */
/* test_families.c - what silent servers and answering servers tell of their address family */
#include "config.h"

#include "convertd/policy/families.h"
#include "daemon/log.h"

#include "run.h"

#include <check.h>
#include <stdio.h>

#define AT(seconds) ((uint64_t)(seconds) * 1000)

static union sockaddr_ip server(unsigned number)
{
	union sockaddr_ip address;
	char text[64];

	snprintf(text, sizeof(text), "[2001:db8::%x]:443", number);
	ck_assert_int_eq(sockaddr_ip_parse(&address, text, 0), 0);
	return address;
}

static void answers(unsigned number, uint64_t now_ms)
{
	union sockaddr_ip address = server(number);

	families_answered(&address, now_ms);
}

/* Asked 3 s before, and silent since. */
static bool is_silent(unsigned number, uint64_t now_ms)
{
	union sockaddr_ip address = server(number);

	return families_unanswered(&address, now_ms - 3000, now_ms, true);
}

static bool refused(unsigned number, uint64_t now_ms)
{
	union sockaddr_ip address = server(number);
	struct in6_addr in6 = sockaddr_ip_in6(&address);

	return families_refuse(&in6, now_ms);
}

static void tested_in_vain(uint64_t now_ms)
{
	union sockaddr_ip address;

	ck_assert(families_take_test(FAMILY_V6, now_ms, &address));
	families_test_failed(&address, now_ms);
}

static void setup(void)
{
	families_forget();
	log_set_level(LOG_LEVEL_ERROR);
}

START_TEST(first_servers_are_silent)
{
	ck_assert(!refused(1, AT(100)));
	ck_assert(is_silent(1, AT(100)));
	ck_assert_int_eq(families_state(FAMILY_V6), FAMILY_UNKNOWN);
	/* the same one is known for some seconds, others are tried */
	ck_assert(refused(1, AT(101)));
	ck_assert(!refused(1, AT(111)));
	ck_assert(!refused(2, AT(101)));
	/* a server that was asked at the same time tells nothing more, one that was asked later does */
	ck_assert(is_silent(3, AT(102)));
	ck_assert_int_eq(families_state(FAMILY_V6), FAMILY_UNKNOWN);
	ck_assert(is_silent(2, AT(104)));
	ck_assert_int_eq(families_state(FAMILY_V6), FAMILY_SILENT);
	ck_assert(refused(4, AT(105)));
	ck_assert_int_eq(families_state(FAMILY_V4), FAMILY_UNKNOWN);
}
END_TEST

START_TEST(first_server_is_tested_once_more)
{
	union sockaddr_ip first = server(1), tested;

	ck_assert(is_silent(1, AT(100)));
	ck_assert(families_take_test(FAMILY_V6, AT(100), &tested));
	ck_assert(sockaddr_ip_equal(&first, &tested));
	ck_assert_uint_eq(families_next_test_ms(FAMILY_V6), AT(101));
	families_test_failed(&tested, AT(104));
	ck_assert_int_eq(families_state(FAMILY_V6), FAMILY_SILENT);
}
END_TEST

START_TEST(routers_say_what_they_know)
{
	union sockaddr_ip address = server(1);

	for (int i = 0; i < 10; i++)
		ck_assert(!families_unanswered(&address, AT(100 + i), AT(103 + i), false));
	ck_assert_int_eq(families_state(FAMILY_V6), FAMILY_UNKNOWN);
}
END_TEST

START_TEST(answer_heals)
{
	ck_assert(is_silent(1, AT(100)));
	ck_assert(is_silent(2, AT(110)));
	ck_assert_int_eq(families_state(FAMILY_V6), FAMILY_SILENT);
	answers(3, AT(111));
	ck_assert_int_eq(families_state(FAMILY_V6), FAMILY_WORKS);
	ck_assert(!refused(1, AT(111)));
	ck_assert_uint_eq(families_next_test_ms(FAMILY_V6), 0);
}
END_TEST

/* A silent server doesn't count if another one has answered since it was asked, nor does the same one count twice. */
START_TEST(family_that_works)
{
	answers(9, AT(100));
	for (unsigned i = 0; i < 10; i++)
		ck_assert(!is_silent(1, AT(110 + i)));
	ck_assert(!is_silent(2, AT(120)));
	ck_assert_int_eq(families_state(FAMILY_V6), FAMILY_WORKS);
	answers(9, AT(121));
	ck_assert(!is_silent(3, AT(122)));
	ck_assert(!is_silent(3, AT(130)));
	ck_assert(!is_silent(4, AT(130)));
	ck_assert_int_eq(families_state(FAMILY_V6), FAMILY_WORKS);
	ck_assert(!is_silent(5, AT(130)));
	ck_assert_int_eq(families_state(FAMILY_V6), FAMILY_DOUBTED);
	ck_assert(!refused(5, AT(130)));
}
END_TEST

/* A client that asks for dead servers doesn't choose which ones are tested. */
START_TEST(doubt_is_tested_at_good_servers)
{
	union sockaddr_ip good = server(9), tested;

	answers(9, AT(100));
	for (unsigned i = 1; i <= 3; i++)
		is_silent(i, AT(110));
	ck_assert_int_eq(families_state(FAMILY_V6), FAMILY_DOUBTED);
	ck_assert(families_take_test(FAMILY_V6, AT(110), &tested));
	ck_assert(sockaddr_ip_equal(&good, &tested));
	ck_assert(!families_take_test(FAMILY_V6, AT(110), &tested));
	families_answered(&tested, AT(110));
	ck_assert_int_eq(families_state(FAMILY_V6), FAMILY_WORKS);

	for (unsigned i = 1; i <= 3; i++)
		is_silent(i, AT(120));
	tested_in_vain(AT(120));
	ck_assert_int_eq(families_state(FAMILY_V6), FAMILY_DOUBTED);
	tested_in_vain(AT(124));
	ck_assert_int_eq(families_state(FAMILY_V6), FAMILY_SILENT);
}
END_TEST

/* Less and less often, but for who asks. */
START_TEST(tests_of_a_silent_family)
{
	union sockaddr_ip address = server(7), tested;
	unsigned tests = 0, asked = 0;

	is_silent(1, AT(100));
	is_silent(2, AT(110));
	for (uint64_t now_ms = AT(110); now_ms < AT(110 + 600); now_ms += 1000)
		tests += families_take_test(FAMILY_V6, now_ms, &tested);
	ck_assert_uint_ge(tests, 12);
	ck_assert_uint_le(tests, 16);
	families_asked(&address, AT(710));
	for (uint64_t now_ms = AT(710); now_ms < AT(713); now_ms += 10)
		if (families_take_test(FAMILY_V6, now_ms, &tested))
			asked += sockaddr_ip_equal(&tested, &address);
	ck_assert_uint_ge(asked, 1);
}
END_TEST

START_TEST(routes_come_and_go)
{
	ck_assert(families_is_routed(FAMILY_V6));
	is_silent(1, AT(100));
	is_silent(2, AT(110));
	families_set_routed(FAMILY_V6, false, true, AT(111));
	ck_assert(!families_is_routed(FAMILY_V6));
	ck_assert(families_is_routed(FAMILY_V4));
	ck_assert(!families_reach_nothing());
	families_set_routed(FAMILY_V4, false, true, AT(111));
	ck_assert(families_reach_nothing());
	families_set_routed(FAMILY_V6, true, true, AT(112));
	ck_assert(!families_reach_nothing());
	ck_assert(families_is_routed(FAMILY_V6));
	ck_assert_int_eq(families_state(FAMILY_V6), FAMILY_UNKNOWN);
	ck_assert(!refused(1, AT(112)));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("families");
	TCase *tcase = tcase_create("families");

	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, first_servers_are_silent);
	tcase_add_test(tcase, first_server_is_tested_once_more);
	tcase_add_test(tcase, routers_say_what_they_know);
	tcase_add_test(tcase, answer_heals);
	tcase_add_test(tcase, family_that_works);
	tcase_add_test(tcase, doubt_is_tested_at_good_servers);
	tcase_add_test(tcase, tests_of_a_silent_family);
	tcase_add_test(tcase, routes_come_and_go);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
