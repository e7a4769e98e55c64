/* SPDX-License-Identifier: BSD-3-Clause */
/* test_demand.c - when cookies are demanded by themselves, and which are valid then */
#include "config.h"

#include "convertd/policy/cookies.h"
#include "daemon/log.h"

#include "run.h"

#include <check.h>
#include <string.h>
#include <time.h>

#define LIFETIME 86400 /* of an epoch, in seconds */

static struct demand *demand;
static time_t now = 20000 * LIFETIME;
static const struct in6_addr one = { .s6_addr = { 0x20, 1, 0xd, 0xb8, 0, 0, 0, 1, 1 } };
static const struct in6_addr other = { .s6_addr = { 0x20, 1, 0xd, 0xb8, 0, 0, 0, 2, 1 } };

/* Takes the place of the C library's function. */
time_t time(time_t *out)
{
	if (out)
		*out = now;
	return now;
}

static void configure(unsigned most, unsigned errors, bool shared)
{
	struct demand_settings settings = {
		.most = most, .errors = errors, .lifetime = LIFETIME, .shared = shared
	};

	demand_configure(demand, &settings);
}

static void setup(void)
{
	log_set_level(LOG_LEVEL_ERROR);
	demand = demand_create();
	ck_assert_ptr_nonnull(demand);
	configure(8, 0, false);
}

static void teardown(void)
{
	demand_destroy(demand);
}

static void enter(unsigned count)
{
	while (count--)
		demand_enter(demand);
}

static void leave(unsigned count)
{
	while (count--)
		demand_leave(demand);
}

START_TEST(begins_at_the_share)
{
	enter(7);
	ck_assert(!demand_in_force(demand));
	enter(1);
	ck_assert(demand_in_force(demand));
}
END_TEST

/* The demand goes on when the unproven connections are fewer than the share, and doesn't end at once when they are below half of it. */
START_TEST(does_not_end_at_once)
{
	struct demand_facts facts;

	enter(8);
	leave(3);
	ck_assert(demand_in_force(demand));
	leave(5);
	ck_assert(demand_in_force(demand));
	demand_read(demand, &facts);
	ck_assert(facts.in_force);
	ck_assert_uint_eq(facts.unproven, 0);
	ck_assert_uint_eq(facts.most, 8);
	ck_assert_uint_eq(facts.begun, 1);
}
END_TEST

START_TEST(off)
{
	configure(0, 0, false);
	enter(1000);
	ck_assert(!demand_in_force(demand));
}
END_TEST

/* What is switched off while it is in force ends at once. */
START_TEST(switched_off)
{
	enter(8);
	ck_assert(demand_in_force(demand));
	configure(0, 0, false);
	ck_assert(!demand_in_force(demand));
}
END_TEST

START_TEST(errors_are_few)
{
	unsigned taken = 0;

	while (taken < 1000 && demand_take_error(demand))
		taken++;
	ck_assert_uint_eq(taken, 1000);
	configure(8, 5, false);
	for (taken = 0; taken < 1000 && demand_take_error(demand);)
		taken++;
	ck_assert_uint_ge(taken, 5);
	ck_assert_uint_le(taken, 7);
}
END_TEST

START_TEST(cookies)
{
	uint8_t cookie[COOKIES_LEN], again[COOKIES_LEN], wrong[COOKIES_LEN] = { 0 };

	ck_assert(!demand_check(demand, &one, wrong, sizeof(wrong)));
	ck_assert(demand_make(demand, &one, NULL, 0, cookie));
	ck_assert(demand_check(demand, &one, cookie, sizeof(cookie)));
	ck_assert(!demand_check(demand, &other, cookie, sizeof(cookie)));
	ck_assert(!demand_check(demand, &one, cookie, sizeof(cookie) - 4));
	/* The settings change, the key doesn't. */
	configure(100, 0, true);
	ck_assert(demand_make(demand, &one, NULL, 0, again));
	ck_assert_mem_eq(again, cookie, sizeof(cookie));
}
END_TEST

/* A cookie that this converter may have made earlier is replaced, unless another converter may have made it. */
START_TEST(others_cookies)
{
	uint8_t cookie[COOKIES_LEN], wrong[COOKIES_LEN + 4] = { 0 };

	ck_assert(demand_make(demand, &one, wrong, COOKIES_LEN, cookie));
	ck_assert(!demand_make(demand, &one, wrong, COOKIES_LEN + 4, cookie));
	configure(8, 0, true);
	ck_assert(!demand_make(demand, &one, wrong, COOKIES_LEN, cookie));
	ck_assert(demand_make(demand, &one, NULL, 0, cookie));
}
END_TEST

/* In the next epoch another key signs, and the cookies of the one before are still valid. In the epoch after that they aren't. */
START_TEST(keys_change)
{
	uint8_t cookie[COOKIES_LEN], next[COOKIES_LEN], last[COOKIES_LEN];

	ck_assert(demand_make(demand, &one, NULL, 0, cookie));
	now += LIFETIME - 1;
	ck_assert(demand_make(demand, &one, NULL, 0, next));
	ck_assert_mem_eq(next, cookie, sizeof(cookie));
	now++;
	ck_assert(demand_make(demand, &one, NULL, 0, next));
	ck_assert_mem_ne(next, cookie, sizeof(cookie));
	ck_assert(demand_check(demand, &one, cookie, sizeof(cookie)));
	ck_assert(demand_check(demand, &one, next, sizeof(next)));
	now += LIFETIME;
	ck_assert(demand_make(demand, &one, NULL, 0, last));
	ck_assert(!demand_check(demand, &one, cookie, sizeof(cookie)));
	ck_assert(demand_check(demand, &one, next, sizeof(next)));
	ck_assert(demand_check(demand, &one, last, sizeof(last)));
}
END_TEST

/* An epoch in which nobody asked for a cookie counts. */
START_TEST(an_epoch_is_left_out)
{
	uint8_t cookie[COOKIES_LEN];

	ck_assert(demand_make(demand, &one, NULL, 0, cookie));
	now += 2 * LIFETIME;
	ck_assert(!demand_check(demand, &one, cookie, sizeof(cookie)));
}
END_TEST

/* With another lifetime another epoch begins. */
START_TEST(lifetime_changes)
{
	struct demand_settings settings = { .most = 8, .lifetime = LIFETIME / 2 };
	uint8_t cookie[COOKIES_LEN], next[COOKIES_LEN];

	ck_assert(demand_make(demand, &one, NULL, 0, cookie));
	demand_configure(demand, &settings);
	ck_assert(demand_make(demand, &one, NULL, 0, next));
	ck_assert_mem_ne(next, cookie, sizeof(cookie));
	ck_assert(demand_check(demand, &one, next, sizeof(next)));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("demand");
	TCase *tcase = tcase_create("demand");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, begins_at_the_share);
	tcase_add_test(tcase, does_not_end_at_once);
	tcase_add_test(tcase, off);
	tcase_add_test(tcase, switched_off);
	tcase_add_test(tcase, errors_are_few);
	tcase_add_test(tcase, cookies);
	tcase_add_test(tcase, others_cookies);
	tcase_add_test(tcase, keys_change);
	tcase_add_test(tcase, an_epoch_is_left_out);
	tcase_add_test(tcase, lifetime_changes);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
