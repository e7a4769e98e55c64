/* SPDX-License-Identifier: BSD-3-Clause */
/* test_limits.c - counters, buckets, and what is remembered of clients that have left */
#include "config.h"

#include "convertd/limits.h"

#include "run.h"

#include <check.h>
#include <pthread.h>
#include <string.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static struct limits *limits;

static void configure(const struct limits_settings *settings)
{
	if (!limits)
		limits = limits_create();
	ck_assert_ptr_nonnull(limits);
	limits_configure(limits, settings);
}

static void finish(void)
{
	ck_assert_uint_eq(limits_sessions(limits), 0);
	limits_destroy(limits);
	limits = NULL;
}

static struct limits_client *enter(const char *text)
{
	union sockaddr_ip addr;
	struct in6_addr address;
	struct limits_client *client;

	ck_assert_msg(sockaddr_ip_parse(&addr, text, 1) == 0, "%s", text);
	address = sockaddr_ip_in6(&addr);
	client = limits_enter(limits, &address);
	ck_assert_ptr_nonnull(client);
	return client;
}

/* Which addresses are one client. */
static const struct {
	unsigned v4, v6;
	const char *a, *b;
	bool same;
} pairs[] = {
	{ 32, 64, "10.0.0.1", "10.0.0.1", true },
	{ 32, 64, "10.0.0.1", "10.0.0.2", false },
	{ 24, 64, "10.0.0.1", "10.0.0.255", true },
	{ 24, 64, "10.0.0.1", "10.0.1.1", false },
	{ 0, 64, "10.0.0.1", "200.0.1.1", true },
	{ 0, 0, "10.0.0.1", "2001:db8::1", false },
	{ 32, 64, "2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", true },
	{ 32, 64, "2001:db8::1", "2001:db8:0:1::1", false },
	{ 32, 48, "2001:db8::1", "2001:db8:0:1::1", true },
	{ 32, 128, "2001:db8::1", "2001:db8::2", false },
};

START_TEST(prefixes)
{
	struct limits_settings settings = { .prefix_v4 = pairs[_i].v4, .prefix_v6 = pairs[_i].v6 };
	struct limits_client *a, *b;

	configure(&settings);
	a = enter(pairs[_i].a);
	b = enter(pairs[_i].b);
	ck_assert_int_eq(a == b, pairs[_i].same);
	ck_assert_uint_eq(limits_clients(limits), pairs[_i].same ? 1 : 2);
	limits_leave(limits, a, LIMITS_PENDING, 1);
	limits_leave(limits, b, LIMITS_PENDING, 1);
	ck_assert_uint_eq(limits_clients(limits), 0);
	finish();
}
END_TEST

START_TEST(pending)
{
	const struct limits_settings settings = { .pending = { 2, 3 }, .prefix_v4 = 32 };
	struct limits_client *a, *b;

	configure(&settings);
	a = enter("10.0.0.1");
	enter("10.0.0.1");
	ck_assert_int_eq(limits_client_exceeded(limits, a), OUTCOME_NONE);
	enter("10.0.0.1");
	ck_assert_int_eq(limits_client_exceeded(limits, a),
			 OUTCOME_LIMIT_CLIENT_PENDING);
	ck_assert_int_eq(limits_total_exceeded(limits), OUTCOME_NONE);
	b = enter("10.0.0.2");
	ck_assert_int_eq(limits_client_exceeded(limits, b), OUTCOME_NONE);
	ck_assert_int_eq(limits_total_exceeded(limits), OUTCOME_LIMIT_PENDING);
	/* Whose server has answered isn't pending any more. */
	limits_move(limits, a, LIMITS_PENDING, LIMITS_OPEN);
	ck_assert_int_eq(limits_client_exceeded(limits, a), OUTCOME_NONE);
	ck_assert_int_eq(limits_total_exceeded(limits), OUTCOME_NONE);
	limits_leave(limits, a, LIMITS_OPEN, 1);
	limits_leave(limits, a, LIMITS_PENDING, 1);
	limits_leave(limits, a, LIMITS_PENDING, 1);
	limits_leave(limits, b, LIMITS_PENDING, 1);
	finish();
}
END_TEST

START_TEST(connections)
{
	const struct limits_settings settings = { .connections = { 2, 3 }, .prefix_v4 = 32 };
	struct limits_client *a, *b;

	configure(&settings);
	a = enter("10.0.0.1");
	limits_move(limits, a, LIMITS_PENDING, LIMITS_OPEN);
	enter("10.0.0.1");
	ck_assert_int_eq(limits_client_exceeded(limits, a), OUTCOME_NONE);
	enter("10.0.0.1");
	ck_assert_int_eq(limits_client_exceeded(limits, a), OUTCOME_LIMIT_CLIENT_CONNECTIONS);
	/* Who is refused takes no place. */
	limits_move(limits, a, LIMITS_PENDING, LIMITS_REFUSING);
	ck_assert_int_eq(limits_client_exceeded(limits, a), OUTCOME_NONE);
	b = enter("10.0.0.2");
	ck_assert_int_eq(limits_total_exceeded(limits), OUTCOME_NONE);
	enter("10.0.0.2");
	ck_assert_int_eq(limits_total_exceeded(limits), OUTCOME_LIMIT_CONNECTIONS);
	ck_assert_uint_eq(limits_sessions(limits), 5);
	limits_leave(limits, b, LIMITS_PENDING, 1);
	limits_leave(limits, b, LIMITS_PENDING, 1);
	limits_leave(limits, a, LIMITS_OPEN, 1);
	limits_leave(limits, a, LIMITS_REFUSING, 1);
	limits_leave(limits, a, LIMITS_PENDING, 1);
	finish();
}
END_TEST

START_TEST(refusals_are_as_many_as_pending)
{
	const struct limits_settings settings = { .pending = { 2, 3 }, .prefix_v4 = 32 };
	struct limits_client *a, *b;

	configure(&settings);
	a = enter("10.0.0.1");
	for (int i = 0; i < 2; i++) {
		enter("10.0.0.1");
		ck_assert(limits_may_refuse(limits, a));
		limits_move(limits, a, LIMITS_PENDING, LIMITS_REFUSING);
	}
	ck_assert(!limits_may_refuse(limits, a));
	b = enter("10.0.0.2");
	ck_assert(limits_may_refuse(limits, b));
	limits_move(limits, b, LIMITS_PENDING, LIMITS_REFUSING);
	enter("10.0.0.2");
	ck_assert(!limits_may_refuse(limits, b));
	limits_leave(limits, b, LIMITS_REFUSING, 1);
	limits_leave(limits, b, LIMITS_PENDING, 1);
	limits_leave(limits, a, LIMITS_REFUSING, 1);
	limits_leave(limits, a, LIMITS_REFUSING, 1);
	limits_leave(limits, a, LIMITS_PENDING, 1);
	finish();
}
END_TEST

START_TEST(no_limits)
{
	const struct limits_settings settings = { .prefix_v4 = 32 };
	struct limits_client *a = NULL;

	configure(&settings);
	for (int i = 0; i < 1000; i++) {
		a = enter("10.0.0.1");
		ck_assert_int_eq(limits_client_exceeded(limits, a), OUTCOME_NONE);
		ck_assert_int_eq(limits_total_exceeded(limits), OUTCOME_NONE);
		ck_assert(limits_may_refuse(limits, a));
		ck_assert(limits_take_error(limits, a, 1));
	}
	for (int i = 0; i < 1000; i++)
		limits_leave(limits, a, LIMITS_PENDING, 1);
	ck_assert_uint_eq(limits_clients(limits), 0);
	finish();
}
END_TEST

/* How many errors @client may be sent at a time. */
static int errors_at(struct limits_client *client, uint64_t now_ms)
{
	int count = 0;

	while (count < 100000 && limits_take_error(limits, client, now_ms))
		count++;
	return count;
}

START_TEST(error_buckets)
{
	const struct limits_settings settings = { .errors = { 2, 0 }, .prefix_v4 = 32 };
	struct limits_client *a, *b;

	configure(&settings);
	a = enter("10.0.0.1");
	b = enter("10.0.0.2");
	/* 5 seconds' worth at once, then as time goes by. */
	ck_assert_int_eq(errors_at(a, 1000), 10);
	ck_assert_int_eq(errors_at(a, 1000), 0);
	ck_assert_int_eq(errors_at(a, 1499), 0);
	ck_assert_int_eq(errors_at(a, 1500), 1);
	ck_assert_int_eq(errors_at(b, 1500), 10);
	ck_assert_int_eq(errors_at(a, 2750), 2);
	ck_assert_int_eq(errors_at(a, 3000), 1);
	ck_assert_int_eq(errors_at(a, 3000 + 86400 * 1000), 10);
	ck_assert_int_eq(errors_at(a, UINT64_MAX / 2), 10);
	/* Leaving and coming back doesn't fill it, as long as anything is missing. */
	limits_leave(limits, b, LIMITS_PENDING, 1500);
	b = enter("10.0.0.2");
	ck_assert_int_eq(errors_at(b, 2000), 1);
	limits_leave(limits, b, LIMITS_PENDING, 2000);
	ck_assert_uint_eq(limits_clients(limits), 2);
	b = enter("10.0.0.2");
	limits_leave(limits, b, LIMITS_PENDING, 7000);
	ck_assert_uint_eq(limits_clients(limits), 1);
	limits_leave(limits, a, LIMITS_PENDING, UINT64_MAX / 2);
	finish();
}
END_TEST

START_TEST(errors_of_all)
{
	const struct limits_settings settings = { .errors = { 2, 3 }, .prefix_v4 = 32 };
	struct limits_client *a, *b, *c;

	configure(&settings);
	a = enter("10.0.0.1");
	b = enter("10.0.0.2");
	c = enter("10.0.0.3");
	ck_assert_int_eq(errors_at(a, 1000), 10);
	ck_assert_int_eq(errors_at(b, 1000), 5);
	ck_assert_int_eq(errors_at(c, 1000), 0);
	ck_assert_int_eq(errors_at(c, 2000), 3);
	/* What all have used up doesn't count against one. */
	ck_assert_int_eq(errors_at(b, 100000), 10);
	limits_leave(limits, a, LIMITS_PENDING, 100000);
	limits_leave(limits, b, LIMITS_PENDING, 100000);
	limits_leave(limits, c, LIMITS_PENDING, 100000);
	finish();
}
END_TEST

/* Each from an address of its own, as forged ones are: what is remembered doesn't grow. */
START_TEST(flood_of_addresses)
{
	const struct limits_settings settings = { .errors = { 2, _i ? 3 : 0 },
						  .prefix_v4 = 32,
						  .prefix_v6 = 64 };
	union sockaddr_ip addr;
	struct in6_addr address;
	int sent = 0;

	configure(&settings);
	ck_assert_int_eq(sockaddr_ip_parse(&addr, "2001:db8::1", 1), 0);
	address = sockaddr_ip_in6(&addr);
	for (uint32_t i = 0; i < 10 * LIMITS_IDLE_MAX; i++) {
		struct limits_client *client;

		memcpy(&address.s6_addr[4], &i, sizeof(i));
		client = limits_enter(limits, &address);
		ck_assert_ptr_nonnull(client);
		sent += limits_take_error(limits, client, 1000);
		limits_leave(limits, client, LIMITS_PENDING, 1000);
		ck_assert_uint_le(limits_clients(limits), LIMITS_IDLE_MAX);
	}
	ck_assert_int_eq(sent, _i ? 15 : 10 * LIMITS_IDLE_MAX);
	ck_assert_uint_eq(limits_clients(limits), _i ? 15 : LIMITS_IDLE_MAX);
	finish();
}
END_TEST

/* Counters go by who a session was counted for, also when prefixes become others. */
START_TEST(reconfigured)
{
	struct limits_settings settings = { .pending = { 1, 0 }, .prefix_v4 = 32, .prefix_v6 = 64 };
	struct limits_client *before, *after;

	configure(&settings);
	before = enter("10.0.0.1");
	settings.prefix_v4 = 24;
	configure(&settings);
	after = enter("10.0.0.1");
	ck_assert(before != after);
	ck_assert_int_eq(limits_client_exceeded(limits, after), OUTCOME_NONE);
	limits_leave(limits, before, LIMITS_PENDING, 1);
	ck_assert(enter("10.0.0.2") == after);
	ck_assert_int_ne(limits_client_exceeded(limits, after), OUTCOME_NONE);
	limits_leave(limits, after, LIMITS_PENDING, 1);
	limits_leave(limits, after, LIMITS_PENDING, 1);
	finish();
}
END_TEST

#define THREADS 4
#define ROUNDS 5000

/* Sessions of two clients, through all that may happen to them. */
static void *come_and_go(void *arg)
{
	bool *right = arg;

	for (int i = 0; i < ROUNDS; i++) {
		struct in6_addr address = { .s6_addr = { 0x20, [7] = (uint8_t)(i % 2) } };
		struct limits_client *client = limits_enter(limits, &address);

		*right &= client && limits_sessions(limits) <= THREADS;
		limits_expect_leave(limits);
		*right &= !limits_total_exceeded(limits);
		limits_expect_no_leave(limits);
		limits_take_error(limits, client, (uint64_t)i + 1);
		limits_move(limits, client, LIMITS_PENDING, LIMITS_OPEN);
		*right &= !limits_client_exceeded(limits, client);
		limits_leave(limits, client, LIMITS_OPEN, (uint64_t)i + 1);
	}
	return NULL;
}

START_TEST(threads)
{
	const struct limits_settings settings = {
		.pending = { THREADS, THREADS },
		.connections = { THREADS, THREADS },
		.errors = { 1000, 1000 },
		.prefix_v6 = 64,
	};
	pthread_t thread[THREADS];
	bool right[THREADS];

	configure(&settings);
	for (int i = 0; i < THREADS; i++) {
		right[i] = true;
		ck_assert_int_eq(pthread_create(&thread[i], NULL, come_and_go, &right[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
		ck_assert(right[i]);
	}
	finish();
}
END_TEST

/* One that has been told to go makes room for one, until it turns out to stay. */
START_TEST(leaving)
{
	const struct limits_settings settings = { .pending.total = 2, .prefix_v4 = 32 };
	struct limits_client *client[3];

	configure(&settings);
	for (int i = 0; i < 3; i++)
		client[i] = enter("10.0.0.1");
	ck_assert_int_ne(limits_total_exceeded(limits), OUTCOME_NONE);
	limits_expect_leave(limits);
	ck_assert_int_eq(limits_total_exceeded(limits), OUTCOME_NONE);
	ck_assert(limits_leave_still_needed(limits));
	limits_expect_no_leave(limits);
	ck_assert_int_ne(limits_total_exceeded(limits), OUTCOME_NONE);
	limits_expect_leave(limits);
	limits_leave(limits, client[0], LIMITS_PENDING, 1);
	ck_assert(!limits_leave_still_needed(limits));
	limits_expect_no_leave(limits);
	ck_assert_int_eq(limits_total_exceeded(limits), OUTCOME_NONE);
	limits_leave(limits, client[1], LIMITS_PENDING, 1);
	limits_leave(limits, client[2], LIMITS_PENDING, 1);
	finish();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("limits");
	TCase *tcase = tcase_create("limits");

	tcase_add_loop_test(tcase, prefixes, 0, (int)ARRAY_SIZE(pairs));
	tcase_add_test(tcase, pending);
	tcase_add_test(tcase, connections);
	tcase_add_test(tcase, refusals_are_as_many_as_pending);
	tcase_add_test(tcase, no_limits);
	tcase_add_test(tcase, error_buckets);
	tcase_add_test(tcase, errors_of_all);
	tcase_add_loop_test(tcase, flood_of_addresses, 0, 2);
	tcase_add_test(tcase, reconfigured);
	tcase_add_test(tcase, leaving);
	tcase_add_test(tcase, threads);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
