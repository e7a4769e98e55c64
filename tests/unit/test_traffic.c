/* SPDX-License-Identifier: BSD-3-Clause */
/* test_traffic.c - bytes by date from counters that begin anew, and what quotas make of them */
#include "config.h"

#include "paths/traffic.h"

#include "run.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TODAY 20261128u
#define GB UINT64_C(1000000000)

static struct traffic traffic;
static struct host_link links[3];
static struct host_network networks[3];
static struct traffic_choice choice;

static void setup(void)
{
	memset(&traffic, 0, sizeof(traffic));
	memset(links, 0, sizeof(links));
	choice = (struct traffic_choice){ networks, 3, NULL };
	links[0] = (struct host_link){ .index = 1, .name = "lo", .loopback = true, .received = 1 << 20 };
	links[1] = (struct host_link){ .index = 2, .name = "wlan0", .received = 1000, .sent = 100 };
	links[2] = (struct host_link){ .index = 3, .name = "wwan0", .received = 5000, .sent = 500 };
}

static void look(const char *boot, size_t count, unsigned int date)
{
	for (size_t i = 0; i < 3; i++)
		networks[i] = (struct host_network){ .link = links[i], .has_route = true };
	traffic_count(&traffic, &choice, boot, links, count, date);
}

static uint64_t sum_of(const char *device, unsigned int first, unsigned int last)
{
	uint64_t received, sent;

	traffic_sum(&traffic, device, first, last, &received, &sent);
	return received * 1000000 + sent;
}

/* What was there before the first look doesn't count; the difference does, on the day of the look. */
START_TEST(test_differences)
{
	look("a", 3, TODAY);
	ck_assert_uint_eq(traffic.record_count, 0);
	links[2].received += 7;
	links[2].sent += 3;
	look("a", 3, TODAY);
	look("a", 3, TODAY);
	links[2].received += 1;
	look("a", 3, TODAY + 1);
	ck_assert_uint_eq(sum_of("wwan0", TODAY, TODAY), 7000003);
	ck_assert_uint_eq(sum_of("wwan0", TODAY + 1, TODAY + 1), 1000000);
	ck_assert_uint_eq(sum_of("wwan0", TODAY / 100 * 100, TODAY + 1), 8000003);
	ck_assert_uint_eq(sum_of("wlan0", 0, UINT32_MAX), 0);
	ck_assert_uint_eq(sum_of("lo", 0, UINT32_MAX), 0);
}
END_TEST

/* A device that was made since the last look, a reboot, and counters that went back: all of their bytes are new. */
START_TEST(test_counters_begin_anew)
{
	look("a", 2, TODAY);
	look("a", 3, TODAY); /* plugged in: it has a higher index */
	ck_assert_uint_eq(sum_of("wwan0", TODAY, TODAY), 5000000500);
	look("a", 2, TODAY); /* unplugged, and back */
	links[2] = (struct host_link){ .index = 9, .name = "wwan0", .received = 10 };
	look("a", 3, TODAY);
	ck_assert_uint_eq(sum_of("wwan0", TODAY, TODAY), 5010000500);
	links[2].received = 4; /* its driver has begun anew */
	look("a", 3, TODAY);
	ck_assert_uint_eq(sum_of("wwan0", TODAY, TODAY), 5014000500);
	look("b", 3, TODAY); /* another boot */
	ck_assert_uint_eq(sum_of("wwan0", TODAY, TODAY), 5018000500);
	ck_assert_uint_eq(sum_of("wlan0", TODAY, TODAY), 1000000100);
	/* an older device that is seen for the first time, such as one that was renamed, has no bytes of today */
	strcpy(links[1].name, "wlan9");
	look("b", 3, TODAY);
	ck_assert_uint_eq(sum_of("wlan9", TODAY, TODAY), 0);
}
END_TEST

/* Only devices with a route, a quota or a record have a place; one that gets a route later begins at zero then. */
START_TEST(test_which_devices)
{
	char problem[QUOTA_PROBLEM_MAX];
	struct quotas quotas;

	choice.network_count = 0;
	look("a", 3, TODAY);
	links[1].received += 9;
	links[2].received += 9;
	look("a", 3, TODAY);
	ck_assert_uint_eq(traffic.record_count + traffic.counter_count, 0);
	ck_assert(quotas_read(&quotas, "wwan0=5G/month", problem));
	choice.quotas = &quotas;
	look("a", 3, TODAY);
	links[1].received += 9;
	links[2].received += 9;
	look("a", 3, TODAY);
	choice.quotas = NULL;
	links[2].received += 9;
	look("a", 3, TODAY);
	ck_assert_uint_eq(sum_of("wwan0", TODAY, TODAY), 18000000);
	ck_assert_uint_eq(sum_of("wlan0", TODAY, TODAY), 0);
}
END_TEST

/* A clock that isn't set yet doesn't make the bytes those of 1970; months before the last one are forgotten. */
START_TEST(test_dates)
{
	look("a", 3, 20260930);
	links[2].received++;
	look("a", 3, 20260930);
	links[2].received++;
	look("a", 3, 19700101);
	ck_assert_uint_eq(sum_of("wwan0", 20260930, 20260930), 2000000);
	links[2].received++;
	look("a", 3, 20261231);
	ck_assert_uint_eq(traffic.record_count, 1);
	links[2].received++;
	look("a", 3, 20270101);
	ck_assert_uint_eq(traffic.record_count, 2);
	for (unsigned int i = 0; i < 3 * TRAFFIC_RECORDS_MAX; i++) {
		snprintf(links[2].name, sizeof(links[2].name), "w%u", i);
		links[2].index = i + 10;
		look("a", 3, 20270102);
	}
	ck_assert_uint_eq(traffic.record_count, TRAFFIC_RECORDS_MAX);
}
END_TEST

START_TEST(test_file)
{
	static struct traffic before;
	char text[4096], rubbish[] = "day x\nboot\ncounter wlan0 -\n\n# day 1 a 2 3\nday 20261128 wlan0 1 2\nday 20261127 wlan0 1 2\n";
	ssize_t len;

	look("0e1a", 3, TODAY);
	links[1].received += 11;
	look("0e1a", 3, TODAY);
	before = traffic;
	len = traffic_format(&traffic, text, sizeof(text));
	ck_assert_int_gt(len, 0);
	ck_assert_uint_eq(strlen(text), (size_t)len);
	traffic_parse(&traffic, text);
	ck_assert_mem_eq(&traffic, &before, sizeof(traffic));
	ck_assert_int_lt(traffic_format(&traffic, text, 20), 0);
	traffic_parse(&traffic, rubbish);
	ck_assert_uint_eq(traffic.record_count, 2);
	ck_assert_uint_eq(traffic.records[0].date, 20261127);
	ck_assert_uint_eq(traffic.counter_count, 0);
}
END_TEST

/* Connections that have outlived a network count on their day, also after a restart. */
START_TEST(test_outlived)
{
	char text[4096];

	look("a", 3, TODAY);
	ck_assert_uint_eq(traffic_outlived(&traffic, TODAY), 0);
	traffic_add_outlived(&traffic, 2, TODAY);
	traffic_add_outlived(&traffic, 1, TODAY);
	ck_assert_int_gt(traffic_format(&traffic, text, sizeof(text)), 0);
	traffic_parse(&traffic, text);
	ck_assert_uint_eq(traffic_outlived(&traffic, TODAY), 3);
	traffic_add_outlived(&traffic, 1, TODAY + 1);
	ck_assert_uint_eq(traffic_outlived(&traffic, TODAY + 1), 1);
	ck_assert_uint_eq(traffic_outlived(&traffic, TODAY), 0);
}
END_TEST

START_TEST(test_quotas_are_read)
{
	static const struct {
		const char *text, *problem;
	} wrong[] = {
		{ "wwan0", "quota: \"wwan0\" doesn't begin with a device" },
		{ "=5G/day", "doesn't begin with a device" },
		{ "wwan0=/day", "has no number of bytes" },
		{ "wwan0=0/day", "has no number of bytes" },
		{ "wwan0=-5G/day", "has no number of bytes" },
		{ "wwan0=nan/day", "has no number of bytes" },
		{ "wwan0=5X/day", "doesn't end with /day or /month" },
		{ "wwan0=5G", "doesn't end with /day or /month" },
		{ "wwan0=5G/week", "doesn't end with /day or /month" },
		{ "wwan0=5G:x/day", "has no number of bytes" },
		{ "wwan0=5G:4G/day", "has a limit below the quota" },
		{ "wwan0=5G/day wwan0=6G/day", "is the second one" },
		{ "a=1/day,b=1/day,c=1/day,d=1/day,e=1/day,f=1/day,g=1/day,h=1/day,i=1/day", "is one quota too many" },
		{ "a-name-of-16-bytes=1/day", "doesn't begin with a device" },
	};
	char problem[QUOTA_PROBLEM_MAX];
	struct quotas quotas;

	ck_assert(quotas_read(&quotas, NULL, problem) && quotas_read(&quotas, " ,", problem));
	ck_assert_uint_eq(quotas.count, 0);
	ck_assert(quotas_read(&quotas, "wwan0=5G:6.5G/month,usb0=200M/day wwan0=1k/day", problem));
	ck_assert_uint_eq(quotas.count, 3);
	ck_assert_str_eq(quotas.list[0].device, "wwan0");
	ck_assert_uint_eq(quotas.list[0].bytes, 5 * GB);
	ck_assert_uint_eq(quotas.list[0].limit, 6500000000);
	ck_assert_int_eq(quotas.list[0].period, QUOTA_MONTH);
	ck_assert_uint_eq(quotas.list[1].bytes, 200000000);
	ck_assert_uint_eq(quotas.list[1].limit, 0);
	ck_assert_uint_eq(quotas.list[2].bytes, 1000);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		ck_assert_msg(!quotas_read(&quotas, wrong[i].text, problem), "%s", wrong[i].text);
		ck_assert_msg(strstr(problem, wrong[i].problem), "%s: %s", wrong[i].text, problem);
	}
}
END_TEST

/* 80%, 100%, the limit; and a new day or month. */
START_TEST(test_quotas_decide)
{
	static const struct {
		uint64_t used;
		enum quota_state state;
	} uses[] = { { 0, QUOTA_FREE }, { 4 * GB - 1, QUOTA_FREE }, { 4 * GB, QUOTA_NEAR }, { 5 * GB - 1, QUOTA_NEAR }, { 5 * GB, QUOTA_BACKUP },
		     { 6 * GB - 1, QUOTA_BACKUP }, { 6 * GB, QUOTA_NEVER }, { UINT64_MAX, QUOTA_NEVER } };
	char problem[QUOTA_PROBLEM_MAX], text[QUOTA_TEXT_MAX];
	struct quotas quotas;

	ck_assert(quotas_read(&quotas, "wwan0=5G:6G/month wlan0=1G/day", problem));
	for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++)
		ck_assert_int_eq(quota_judge(&quotas.list[0], uses[i].used), uses[i].state);
	look("a", 3, TODAY);
	links[1].received += GB;
	links[2].received += 4 * GB;
	links[2].sent += 2 * GB;
	look("a", 3, TODAY);
	ck_assert_int_eq(quota_judge(&quotas.list[0], quota_used(&quotas.list[0], &traffic, TODAY)), QUOTA_NEVER);
	ck_assert_int_eq(quota_judge(&quotas.list[1], quota_used(&quotas.list[1], &traffic, TODAY)), QUOTA_BACKUP);
	ck_assert_str_eq(quota_text(&quotas.list[0], quota_used(&quotas.list[0], &traffic, TODAY), text),
			 "6.00 GB of 5.00 GB this month, its limit is reached: not used until the period ends");
	ck_assert_int_eq(quota_judge(&quotas.list[0], quota_used(&quotas.list[0], &traffic, TODAY + 1)), QUOTA_NEVER);
	ck_assert_int_eq(quota_judge(&quotas.list[1], quota_used(&quotas.list[1], &traffic, TODAY + 1)), QUOTA_FREE);
	ck_assert_int_eq(quota_judge(&quotas.list[0], quota_used(&quotas.list[0], &traffic, 20261201)), QUOTA_FREE);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("traffic");
	Suite *suite = suite_create("traffic");

	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, test_differences);
	tcase_add_test(tcase, test_counters_begin_anew);
	tcase_add_test(tcase, test_which_devices);
	tcase_add_test(tcase, test_dates);
	tcase_add_test(tcase, test_file);
	tcase_add_test(tcase, test_outlived);
	tcase_add_test(tcase, test_quotas_are_read);
	tcase_add_test(tcase, test_quotas_decide);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
