/* SPDX-License-Identifier: BSD-3-Clause */
/* test_limits.c - counters, buckets, and what is remembered of clients that have left */
#include "config.h"

#include "limits_world.h"
#include "run.h"

#include <check.h>
#include <pthread.h>
#include <stdlib.h>

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
	struct member a, b;

	configure(&settings);
	enter(&a, pairs[_i].a);
	enter(&b, pairs[_i].b);
	ck_assert_int_eq(a.member.client == b.member.client, pairs[_i].same);
	ck_assert_uint_eq(limits_clients(limits), pairs[_i].same ? 1 : 2);
	leave(&a);
	leave(&b);
	ck_assert_uint_eq(limits_clients(limits), 0);
	finish();
}
END_TEST

START_TEST(pending_of_a_client)
{
	const struct limits_settings settings = { .pending = { 2, 0 }, .prefix_v4 = 32 };
	struct member a[3], b;

	configure(&settings);
	for (int i = 0; i < 3; i++) {
		enter(&a[i], "10.0.0.1");
		ck_assert_int_eq(admit(&a[i]), i < 2 ? OUTCOME_NONE : OUTCOME_LIMIT_CLIENT_PENDING);
	}
	enter(&b, "10.0.0.2");
	ck_assert_int_eq(admit(&b), OUTCOME_NONE);
	/* A session whose server has answered isn't pending any more. */
	move(&a[0], LIMITS_OPEN);
	ck_assert_int_eq(admit(&a[2]), OUTCOME_NONE);
	for (int i = 0; i < 3; i++)
		leave(&a[i]);
	leave(&b);
	finish();
}
END_TEST

START_TEST(connections_of_a_client)
{
	const struct limits_settings settings = { .connections = { 2, 3 }, .prefix_v4 = 32 };
	struct member a[3], b[2];

	configure(&settings);
	for (int i = 0; i < 3; i++) {
		enter(&a[i], "10.0.0.1");
		ck_assert_int_eq(admit(&a[i]), i < 2 ? OUTCOME_NONE : OUTCOME_LIMIT_CLIENT_CONNECTIONS);
		if (i < 2)
			move(&a[i], LIMITS_OPEN);
	}
	/* A client that is refused takes no place. */
	move(&a[2], LIMITS_REFUSING);
	ck_assert_int_eq(admit(&a[1]), OUTCOME_NONE);
	enter(&b[0], "10.0.0.2");
	ck_assert_int_eq(admit(&b[0]), OUTCOME_NONE);
	/* Two open sessions aren't more than twice two, so a client that is served stays served. */
	enter(&b[1], "10.0.0.2");
	ck_assert_int_eq(admit(&b[1]), OUTCOME_LIMIT_CONNECTIONS);
	ck_assert_uint_eq(limits_members(limits), 5);
	for (int i = 0; i < 3; i++)
		leave(&a[i]);
	leave(&b[0]);
	leave(&b[1]);
	finish();
}
END_TEST

START_TEST(refusals_are_as_many_as_pending)
{
	const struct limits_settings settings = { .pending = { 2, 3 }, .prefix_v4 = 32 };
	struct member a[3], b, c;

	configure(&settings);
	for (int i = 0; i < 3; i++) {
		enter(&a[i], "10.0.0.1");
		ck_assert_int_eq(limits_may_refuse(limits, &a[i].member), i < 2);
		if (i < 2)
			move(&a[i], LIMITS_REFUSING);
	}
	enter(&b, "10.0.0.2");
	ck_assert(limits_may_refuse(limits, &b.member));
	move(&b, LIMITS_REFUSING);
	/* One too many in all: the greediest's oldest makes room. */
	enter(&c, "10.0.0.3");
	ck_assert(limits_may_refuse(limits, &c.member));
	ck_assert(a[0].woken && !a[1].woken && !b.woken);
	leave(&b);
	leave(&c);
	for (int i = 0; i < 3; i++)
		leave(&a[i]);
	finish();
}
END_TEST

START_TEST(no_limits)
{
	const struct limits_settings settings = { .prefix_v4 = 32 };
	static struct member m[1000];

	configure(&settings);
	for (int i = 0; i < 1000; i++) {
		enter(&m[i], "10.0.0.1");
		ck_assert_int_eq(admit(&m[i]), OUTCOME_NONE);
		ck_assert(limits_may_stay(limits, &m[i].member));
		ck_assert(limits_may_withhold(limits, &m[i].member));
		ck_assert(limits_may_refuse(limits, &m[i].member));
		ck_assert(limits_take_error(limits, &m[i].member, 1));
		limits_note_memory(limits, &m[i].member, 1ULL << 40, 1000000);
		ck_assert(!m[i].woken);
	}
	for (int i = 0; i < 1000; i++)
		leave(&m[i]);
	ck_assert_uint_eq(limits_clients(limits), 0);
	finish();
}
END_TEST

#define CENTURY_MS (UINT64_C(100) * 365 * 86400 * 1000)

START_TEST(error_buckets)
{
	const struct limits_settings settings = { .errors = { 2, 0 }, .prefix_v4 = 32 };
	struct member a, b;

	configure(&settings);
	enter(&a, "10.0.0.1");
	enter(&b, "10.0.0.2");
	/* 5 seconds' worth at once, then as time goes by. */
	ck_assert_int_eq(errors_at(&a, 1000), 10);
	ck_assert_int_eq(errors_at(&a, 1000), 0);
	ck_assert_int_eq(errors_at(&a, 1499), 0);
	ck_assert_int_eq(errors_at(&a, 1500), 1);
	ck_assert_int_eq(errors_at(&b, 1500), 10);
	ck_assert_int_eq(errors_at(&a, 2750), 2);
	ck_assert_int_eq(errors_at(&a, 3000), 1);
	ck_assert_int_eq(errors_at(&a, 3000 + 86400 * 1000), 10);
	ck_assert_int_eq(errors_at(&a, CENTURY_MS), 10);
	/* Leaving and coming back doesn't fill it, as long as anything is missing. */
	leave_at(&b, 1500);
	enter(&b, "10.0.0.2");
	ck_assert_int_eq(errors_at(&b, 2000), 1);
	leave_at(&b, 2000);
	ck_assert_uint_eq(limits_clients(limits), 2);
	enter(&b, "10.0.0.2");
	leave_at(&b, 7000);
	ck_assert_uint_eq(limits_clients(limits), 1);
	leave_at(&a, CENTURY_MS);
	finish();
}
END_TEST

START_TEST(errors_of_all)
{
	const struct limits_settings settings = { .errors = { 2, 3 }, .prefix_v4 = 32 };
	struct member a, b, c;

	configure(&settings);
	enter(&a, "10.0.0.1");
	enter(&b, "10.0.0.2");
	enter(&c, "10.0.0.3");
	ck_assert_int_eq(errors_at(&a, 1000), 10);
	ck_assert_int_eq(errors_at(&b, 1000), 5);
	ck_assert_int_eq(errors_at(&c, 1000), 0);
	ck_assert_int_eq(errors_at(&c, 2000), 3);
	/* What all have used up doesn't count against one. */
	ck_assert_int_eq(errors_at(&b, 100000), 10);
	leave_at(&a, 100000);
	leave_at(&b, 100000);
	leave_at(&c, 100000);
	finish();
}
END_TEST

/* Each request comes from an address of its own, as forged ones do; the memory of clients that have left must not grow. */
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
	for (uint32_t i = 0; i < 3 * LIMITS_IDLE_MAX; i++) {
		struct member m;

		memcpy(&address.s6_addr[4], &i, sizeof(i));
		enter_address(&m, &address, LIMITS_PENDING);
		sent += limits_take_error(limits, &m.member, 1000);
		leave_at(&m, 1000);
		ck_assert_uint_le(limits_clients(limits), LIMITS_IDLE_MAX);
	}
	/* All clients are in one /32, which may have half of all errors: one a second. */
	ck_assert_int_eq(sent, _i ? 5 : 3 * LIMITS_IDLE_MAX);
	ck_assert_uint_eq(limits_clients(limits), _i ? 5 : LIMITS_IDLE_MAX);
	finish();
}
END_TEST

/* A session is subtracted where it was added, even if the lengths of prefixes have changed since. */
START_TEST(reconfigured)
{
	struct limits_settings settings = { .pending = { 1, 0 }, .prefix_v4 = 32, .prefix_v6 = 64 };
	struct member before, after, other;

	configure(&settings);
	enter(&before, "10.0.0.1");
	settings.prefix_v4 = 24;
	configure(&settings);
	enter(&after, "10.0.0.1");
	ck_assert(before.member.client != after.member.client);
	ck_assert_int_eq(admit(&after), OUTCOME_NONE);
	leave(&before);
	enter(&other, "10.0.0.2");
	ck_assert(other.member.client == after.member.client);
	ck_assert_int_ne(admit(&other), OUTCOME_NONE);
	leave(&after);
	leave(&other);
	finish();
}
END_TEST

#define THREADS 4
#define ROUNDS 5000

/* Sessions of two clients, through all that may happen to them, each of which pushes another out now and then. */
static void *come_and_go(void *arg)
{
	bool *right = arg;

	for (int i = 0; i < ROUNDS; i++) {
		struct in6_addr address = { .s6_addr = { 0x20, [7] = (uint8_t)(i % 2) } };
		struct member m = { .member.owner = &m.owner, .owner.wake = on_wake };
		enum outcome reason;

		*right &= limits_enter(limits, &m.member, &address, LIMITS_WAITING) == 0;
		*right &= limits_members(limits) <= THREADS;
		limits_admit(limits, &m.member);
		limits_note_memory(limits, &m.member, (uint64_t)i << 10, (uint32_t)i % 3000);
		limits_take_error(limits, &m.member, (uint64_t)i + 1);
		limits_move(limits, &m.member, LIMITS_PENDING);
		limits_touch(limits, &m.member);
		if (i % 3)
			limits_move(limits, &m.member, i % 2 ? LIMITS_OPEN : LIMITS_REFUSING);
		if (i % 5 == 0)
			while (limits_next_evicted(limits, &m.owner, &reason))
				;
		limits_leave(limits, &m.member, (uint64_t)i + 1);
	}
	return NULL;
}

START_TEST(threads)
{
	const struct limits_settings settings = {
		.pending = { 0, 2 },
		.connections = { 0, 3 },
		.errors = { 1000, 1000 },
		.memory = { 1 << 20, 2 << 20 },
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

/* 256 clients of a /24 have no more of all errors than an eighth; those of another are told theirs. */
START_TEST(errors_of_a_prefix)
{
	const struct limits_settings settings = { .errors = { 20, 1000 }, .prefix_v4 = 32 };
	static struct member m[256];
	struct member other;
	int sent = 0;

	configure(&settings);
	for (uint32_t i = 0; i < ARRAY_SIZE(m); i++) {
		struct in6_addr address = spread("10.0.0.0", 128, i);

		enter_address(&m[i], &address, LIMITS_PENDING);
		sent += errors_at(&m[i], 1000);
	}
	ck_assert_int_eq(sent, 1000 / 8 * 5);
	enter(&other, "10.0.1.1");
	ck_assert_int_eq(errors_at(&other, 1000), 100);
	for (size_t i = 0; i < ARRAY_SIZE(m); i++)
		leave_at(&m[i], 100000);
	leave_at(&other, 100000);
	finish();
}
END_TEST

static uint64_t apart(const char *text)
{
	union sockaddr_ip addr;
	struct in6_addr address;

	ck_assert_msg(sockaddr_ip_parse(&addr, text, 1) == 0, "%s", text);
	address = sockaddr_ip_in6(&addr);
	return limits_pending_of_others(limits, &address);
}

/* 16 clients of a /56, two of its /48, one of its /32, one elsewhere: what each of them, and a stranger, is apart from. */
START_TEST(pending_apart)
{
	static const struct limits_settings settings = { .prefix_v4 = 32, .prefix_v6 = 64 };
	static const char *const others[] = { "2001:db8:0:100::1", "2001:db8:0:200::1", "2001:db8:1::1", "192.0.2.1" };
	struct member crowd[16], m[ARRAY_SIZE(others)];

	configure(&settings);
	ck_assert_uint_eq(apart("192.0.2.1"), 0);
	for (uint32_t i = 0; i < ARRAY_SIZE(crowd); i++) {
		struct in6_addr address = spread("2001:db8::1", 64, i);

		enter_address(&crowd[i], &address, i % 2 ? LIMITS_PENDING : LIMITS_WITHHELD);
	}
	for (size_t i = 0; i < ARRAY_SIZE(m); i++)
		enter(&m[i], others[i]);
	/* without the /32, without the /48, without the /56 */
	ck_assert_uint_eq(apart("192.0.2.1"), 1);
	ck_assert_uint_eq(apart("2001:db9::1"), 1);
	ck_assert_uint_eq(apart("2001:db8:1::2"), 2);
	ck_assert_uint_eq(apart("2001:db8:0:200::2"), 4);
	/* in it, but for the greediest client */
	ck_assert_uint_eq(apart("2001:db8:0:ff::1"), 19);
	for (size_t i = 0; i < ARRAY_SIZE(crowd); i++)
		move(&crowd[i], LIMITS_OPEN);
	ck_assert_uint_le(apart("198.51.100.1"), 3);
	for (size_t i = 0; i < ARRAY_SIZE(crowd); i++)
		leave(&crowd[i]);
	for (size_t i = 0; i < ARRAY_SIZE(m); i++)
		leave(&m[i]);
	finish();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("limits");
	TCase *tcase = tcase_create("limits");

	tcase_add_loop_test(tcase, prefixes, 0, (int)ARRAY_SIZE(pairs));
	tcase_add_test(tcase, pending_of_a_client);
	tcase_add_test(tcase, connections_of_a_client);
	tcase_add_test(tcase, refusals_are_as_many_as_pending);
	tcase_add_test(tcase, no_limits);
	tcase_add_test(tcase, error_buckets);
	tcase_add_test(tcase, errors_of_all);
	tcase_add_loop_test(tcase, flood_of_addresses, 0, 2);
	tcase_add_test(tcase, reconfigured);
	tcase_add_test(tcase, errors_of_a_prefix);
	tcase_add_test(tcase, pending_apart);
	tcase_add_test(tcase, threads);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
