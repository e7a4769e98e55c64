/* SPDX-License-Identifier: BSD-3-Clause */
/* test_front_end.c - which converter a front end asks, and what it learns of it */
#include "config.h"

#include "front_end_world.h"

#include "client/exchange.h"
#include "common/clock.h"

#include "run.h"

#include <check.h>
#include <errno.h>
#include <sys/wait.h>

START_TEST(converter_is_asked_for_the_server)
{
	union sockaddr_ip server;
	struct in6_addr address;

	begin();
	expect("203.0.113.1:8080", CONVERTED, 1, 0);
	ck_assert_int_eq(sockaddr_ip_parse(&server, "203.0.113.1", 0), 0);
	address = sockaddr_ip_in6(&server);
	ck_assert_mem_eq(&asked[0].request.address, &address, sizeof(address));
	ck_assert_uint_eq(asked[0].request.port, 8080);
	ck_assert(asked[0].request.has_info);
	ck_assert_uint_eq(converters_withholds_ms(&settings, 0), 700);
	/* it is proven by that, and not asked again what it supports */
	expect("203.0.113.2", CONVERTED, 1, 0);
	ck_assert(!asked[0].request.has_info);
	expect("127.0.0.1", DIRECT, 0, 0);
	expect("192.0.2.2:22", DIRECT, 0, 0);
	ck_assert_str_eq(logged, "");
}
END_TEST

START_TEST(cookie_is_learned_and_kept)
{
	converters[0] = wants_cookie;
	begin();
	expect("203.0.113.1", CONVERTED, 2, 0);
	ck_assert_str_eq(asked[1].cookie, "biscuit");
	expect("203.0.113.2", CONVERTED, 1, 0);
	ck_assert_str_eq(asked[0].cookie, "biscuit");
}
END_TEST

START_TEST(next_converter_follows_one_that_refuses)
{
	converters[0] = refuses;
	begin();
	expect("203.0.113.1", CONVERTED, 2, 1);
	expect("203.0.113.1", CONVERTED, 1, 1);
	/* the refusal is about that server */
	converters[0] = serves;
	expect("203.0.113.2", CONVERTED, 1, 0);
}
END_TEST

START_TEST(failure_of_the_server_is_final)
{
	int error = 0;

	converters[0] = finds_server_closed;
	begin();
	ck_assert_int_eq(front_end_connect("203.0.113.1", &error), FAILED);
	ck_assert_int_eq(error, ECONNREFUSED);
	ck_assert_uint_eq(asked_count, 1);
}
END_TEST

START_TEST(silent_converters_are_left_alone)
{
	converters[0] = converters[1] = is_silent;
	begin();
	expect("203.0.113.1", DIRECT, 2, 1);
	expect("203.0.113.2", DIRECT, 0, 0);
}
END_TEST

START_TEST(fallback_none_fails)
{
	converters[0] = converters[1] = is_silent;
	fallback = "none";
	begin();
	expect("203.0.113.1", FAILED, 2, 1);
}
END_TEST

START_TEST(server_that_speaks_mptcp_is_bypassed)
{
	converters[0] = serves_mptcp_server;
	begin();
	expect("203.0.113.1", CONVERTED, 1, 0);
	ck_assert(asked[0].request.extended);
	expect("203.0.113.1", BYPASSED, 0, 0);
}
END_TEST

/* Another process of the user's finds one converter silent, and learns the other one's cookie and what it supports. */
START_TEST(processes_share_what_they_learn)
{
	int status;
	pid_t pid;

	begin();
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		converters[0] = is_silent;
		converters[1] = wants_cookie;
		expect("203.0.113.1", CONVERTED, 3, 1);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	converters[1] = wants_cookie;
	expect("203.0.113.1", CONVERTED, 1, 1);
	ck_assert_str_eq(asked[0].cookie, "biscuit");
	ck_assert(!asked[0].request.has_info);
}
END_TEST

START_TEST(log_is_told_where_nothing_is_kept)
{
	cache_setting = "/dev/null";
	begin();
	expect("203.0.113.1", CONVERTED, 1, 0);
	ck_assert_ptr_nonnull(strstr(logged, "not kept in /dev/null: "));
}
END_TEST

START_TEST(refusal_rests_for_its_own_time)
{
	const struct handshake_step why = { .fault = HANDSHAKE_FAULT_REFUSED, .rest = 30 };
	union sockaddr_ip server, addr;
	struct converters_query query = { .destination = &server, .family = AF_INET };
	enum policy_verdict verdict;
	const char *reason;

	begin();
	ck_assert_int_eq(sockaddr_ip_parse(&server, "203.0.113.1", 443), 0);
	exchange_failed(0, &server, &why);
	ck_assert_int_eq(converters_choose(&settings, &query, &addr, &verdict, &reason), 1);
	ck_assert_int_eq(sockaddr_ip_parse(&server, "203.0.113.2", 443), 0);
	ck_assert_int_eq(converters_choose(&settings, &query, &addr, &verdict, &reason), 0);
}
END_TEST

/* The host is there, so that it may be no converter: then the silence is about that server, and the converter isn't told to be dead. */
START_TEST(silence_of_a_host_that_is_alive_is_about_the_server)
{
	union sockaddr_ip server;
	struct handshake_step why;

	begin();
	ck_assert_int_eq(sockaddr_ip_parse(&server, "203.0.113.1", 443), 0);
	ck_assert(!converters_admits(0, &server));
	why = exchange_unanswered(0, &server, false);
	ck_assert(!converters_admits(0, &server));
	ck_assert_int_eq(why.fault, HANDSHAKE_FAULT_CONVERTER);
	why = exchange_unanswered(0, &server, true);
	ck_assert(converters_admits(0, &server));
	ck_assert_int_eq(why.fault, HANDSHAKE_FAULT_REFUSED);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("front_end");
	TCase *tcase = tcase_create("converters");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, converter_is_asked_for_the_server);
	tcase_add_test(tcase, cookie_is_learned_and_kept);
	tcase_add_test(tcase, next_converter_follows_one_that_refuses);
	tcase_add_test(tcase, failure_of_the_server_is_final);
	tcase_add_test(tcase, silent_converters_are_left_alone);
	tcase_add_test(tcase, fallback_none_fails);
	tcase_add_test(tcase, server_that_speaks_mptcp_is_bypassed);
	tcase_add_test(tcase, processes_share_what_they_learn);
	tcase_add_test(tcase, log_is_told_where_nothing_is_kept);
	tcase_add_test(tcase, refusal_rests_for_its_own_time);
	tcase_add_test(tcase, silence_of_a_host_that_is_alive_is_about_the_server);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
