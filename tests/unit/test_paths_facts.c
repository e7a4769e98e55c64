/* SPDX-License-Identifier: BSD-3-Clause */
/* test_paths_facts.c - what is kept of each path */
#include "config.h"

#include "client/cache.h"
#include "client/converters.h"
#include "client/paths.h"
#include "common/clock.h"

#include "run.h"
#include "tempdir.h"

#include <check.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static char directory[PATH_MAX];
static struct settings settings;

static const char *lookup(const char *name)
{
	if (strcmp(name, "CONVERT_CACHE") == 0)
		return directory;
	return strcmp(name, "CONVERT_ADDR") == 0 ? "192.0.2.1,192.0.2.2" : NULL;
}

static void setup(void)
{
	tempdir_make(directory);
	settings_read(&settings, lookup);
	user_cache_init(&settings);
	user_cache_open(-1);
	ck_assert(cache_is_on(user_cache()));
	converters_init(&settings);
}

static void teardown(void)
{
	tempdir_remove(directory);
}

static const struct path_id usual = { .converter = 0 };
static const struct path_id other = { .converter = 0, .source.s6_addr = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2 } };

START_TEST(paths_have_facts_of_their_own)
{
	ck_assert_int_eq(paths_facts(&usual).state, CACHE_PATH_UNKNOWN);
	paths_note_failure(&usual, CACHE_PATH_SILENT);
	ck_assert_int_eq(paths_facts(&usual).state, CACHE_PATH_SILENT);
	ck_assert_int_eq(paths_facts_usual(0).state, CACHE_PATH_SILENT);
	ck_assert_int_eq(paths_facts(&other).state, CACHE_PATH_UNKNOWN);
	ck_assert_int_eq(paths_facts(&(struct path_id){ .converter = 1 }).state, CACHE_PATH_UNKNOWN);
	paths_note_answer(&other, 50, true);
	ck_assert_int_eq(paths_facts(&other).state, CACHE_PATH_WORKS);
	ck_assert_uint_eq(paths_facts(&other).rtt_ms, 50);
	ck_assert(paths_facts(&other).heard && paths_facts_kept(&other).heard);
	ck_assert(!paths_facts_usual(0).heard);
}
END_TEST

START_TEST(round_trips)
{
	paths_note_answer(&usual, 500, false); /* a server's share is in it */
	ck_assert_uint_eq(paths_facts(&usual).rtt_ms, 500);
	paths_note_answer(&usual, 40, false);
	paths_note_answer(&usual, 900, false);
	ck_assert_uint_eq(paths_facts(&usual).rtt_ms, 40);
	for (int i = 0; i < 30; i++)
		paths_note_answer(&usual, 200, true); /* the path itself has become longer */
	ck_assert_uint_gt(paths_facts(&usual).rtt_ms, 100);
	paths_note_answer(&usual, 0, true);
	ck_assert_uint_eq(paths_facts(&usual).rtt_ms, 1); /* 0 is for what isn't known */
	paths_note_answer(&other, UINT_MAX, true);
	ck_assert_uint_eq(paths_facts(&other).rtt_ms, UINT16_MAX);
}
END_TEST

START_TEST(silent_path_is_restored_by_one_trial)
{
	paths_note_failure(&usual, CACHE_PATH_SILENT);
	paths_note_answer(&usual, 20, true); /* one answer of several */
	ck_assert_int_eq(paths_facts(&usual).state, CACHE_PATH_SILENT);
	ck_assert(!paths_note_trial(&usual, false));
	ck_assert(paths_note_trial(&usual, true));
	ck_assert_int_eq(paths_facts(&usual).state, CACHE_PATH_WORKS);
}
END_TEST

START_TEST(path_that_loses_is_restored_by_three_in_a_row)
{
	paths_note_failure(&usual, CACHE_PATH_LOSES);
	ck_assert(!paths_note_trial(&usual, true));
	ck_assert(!paths_note_trial(&usual, true));
	ck_assert(!paths_note_trial(&usual, false));
	ck_assert(!paths_note_trial(&usual, true));
	ck_assert(!paths_note_trial(&usual, true));
	ck_assert(paths_note_trial(&usual, true));
}
END_TEST

/* A SYN's time, so many milliseconds from now. */
static int64_t after(int64_t ms)
{
	return clock_ns() + ms * CLOCK_NS_PER_MS;
}

START_TEST(data_in_syns_is_given_up_after_two)
{
	ck_assert(paths_take_syn_data(&usual));
	ck_assert(!paths_syn_data_is_doubted(&usual));
	paths_note_syn_data(&usual, false, after(0));
	ck_assert(paths_take_syn_data(&usual) && paths_syn_data_is_doubted(&usual));
	paths_note_syn_data(&usual, false, after(1));
	ck_assert(!paths_take_syn_data(&usual) && paths_syn_data_is_doubted(&usual));
	/* on this path alone */
	ck_assert(paths_take_syn_data(&other));
	ck_assert(paths_take_syn_data(&(struct path_id){ .converter = 1 }));
	ck_assert(!paths_is_trial_due(&usual)); /* by their size, perhaps, which a trial wouldn't show */
	paths_note_syn_data(&usual, true, after(0));
	ck_assert(paths_take_syn_data(&usual) && !paths_syn_data_is_doubted(&usual));
}
END_TEST

START_TEST(data_that_was_lost_at_once_is_one_miss)
{
	const int64_t syn_at = after(-300);

	for (int i = 0; i < 10; i++)
		paths_note_syn_data(&usual, false, syn_at + i);
	ck_assert(paths_take_syn_data(&usual));
	paths_note_syn_data(&usual, true, syn_at);
	paths_note_syn_data(&usual, false, after(1)); /* not in a row */
	ck_assert(paths_take_syn_data(&usual));
	paths_note_syn_data(&usual, false, after(1));
	ck_assert(!paths_take_syn_data(&usual));
}
END_TEST

START_TEST(misses_of_all_processes_are_in_a_row)
{
	const struct cache_converter one = { .path = { 0, cache_in(60), cache_now(), CACHE_PATH_WORKS, 0, 1 } };
	const struct cache_converter ahead = { .path = { 0, cache_in(60), INT64_MAX, CACHE_PATH_WORKS, 0, 1 } };

	ck_assert_int_eq(cache_converter_update(user_cache(), converters_address(0), 0, CACHE_PATH, cache_now(), &one), 0);
	paths_note_syn_data(&usual, false, after(-300));
	ck_assert(paths_take_syn_data(&usual));
	paths_note_syn_data(&usual, false, after(1));
	ck_assert(!paths_take_syn_data(&usual));
	ck_assert_int_eq(cache_converter_update(user_cache(), converters_address(1), 0, CACHE_PATH, cache_now(), &ahead), 0);
	paths_note_syn_data(&(struct path_id){ .converter = 1 }, false, after(0)); /* a damaged hint */
	ck_assert(!paths_take_syn_data(&(struct path_id){ .converter = 1 }));
}
END_TEST

/* What several SYNs have shown, and of a path that works otherwise. */
START_TEST(path_without_data_is_restored_by_one_trial)
{
	paths_note_failure(&other, CACHE_PATH_DATALESS);
	ck_assert(!paths_take_syn_data(&other));
	ck_assert(path_works(paths_facts(&other).state));
	paths_note_syn_data(&other, false, after(1)); /* of a connection that had begun before */
	ck_assert(!paths_note_trial(&other, false));
	ck_assert(paths_note_trial(&other, true));
	ck_assert(paths_take_syn_data(&other));
	/* one that is silent is silent, whatever becomes of data */
	paths_note_failure(&other, CACHE_PATH_SILENT);
	for (int i = 0; i < 3; i++)
		paths_note_syn_data(&other, i == 1, after(1));
	ck_assert_int_eq(paths_facts(&other).state, CACHE_PATH_SILENT);
}
END_TEST

START_TEST(one_process_asks)
{
	const int64_t then = cache_now() - PATHS_TRIAL_MS;
	const union sockaddr_ip *address = converters_address(0);
	struct cache_converter note = { .path = { 0, cache_in(60), then, CACHE_PATH_SILENT, 0, 1 } };

	ck_assert(!paths_is_trial_due(&usual)); /* nothing is wrong with it */
	paths_note_failure(&usual, CACHE_PATH_SILENT);
	ck_assert(!paths_is_trial_due(&usual)); /* it was silent a moment ago */
	ck_assert_int_eq(cache_converter_update(user_cache(), address, 0, CACHE_PATH, cache_now(), &note), 0);
	ck_assert(paths_is_trial_due(&usual));
	ck_assert(!paths_is_trial_due(&usual));
	note.path.asked = INT64_MAX; /* which a damaged file may have */
	ck_assert_int_eq(cache_converter_update(user_cache(), address, 0, CACHE_PATH, cache_now(), &note), 0);
	ck_assert(paths_is_trial_due(&usual));
	ck_assert(!paths_is_trial_due(&usual));
}
END_TEST

START_TEST(what_others_learned_counts)
{
	const struct cache_converter note = { .path = { 0, cache_in(60), 1, CACHE_PATH_SILENT, 77, 1 } };
	struct cache_converter found;

	ck_assert_int_eq(cache_converter_update(user_cache(), converters_address(0), 0, CACHE_PATH, cache_now(), &note), 0);
	ck_assert_int_eq(paths_facts_usual(0).state, CACHE_PATH_UNKNOWN); /* not looked for yet */
	converters_noted(0, CACHE_FACTS_ALL, &found);
	converters_renew_path(0, &found);
	ck_assert_int_eq(paths_facts_usual(0).state, CACHE_PATH_SILENT);
	ck_assert_uint_eq(paths_facts_usual(0).rtt_ms, 77);
	/* and without a cache, what this process has learned */
	cache_close((struct cache *)(uintptr_t)user_cache());
	paths_note_failure(&other, CACHE_PATH_LOSES);
	ck_assert_int_eq(paths_facts(&other).state, CACHE_PATH_LOSES);
}
END_TEST

/* A network that takes the options away says nothing about others; one that leaves them gives hope for those of which nothing is known. */
START_TEST(multipath_tcp_is_each_path_s_own)
{
	paths_note_fallback(&usual, clock_ns());
	ck_assert_int_eq(paths_mptcp(&usual), CACHE_MPTCP_LOST);
	ck_assert_int_eq(paths_mptcp(&other), CACHE_MPTCP_UNKNOWN);
	paths_note_mptcp(&other);
	ck_assert_int_eq(paths_mptcp(&usual), CACHE_MPTCP_LOST);
	ck_assert_int_eq(paths_mptcp(&other), CACHE_MPTCP_HOLDS);
	paths_facts_forget(); /* as another process finds it */
	(void)paths_facts(&usual);
	(void)paths_facts(&other);
	ck_assert_int_eq(paths_mptcp(&usual), CACHE_MPTCP_LOST);
	ck_assert_int_eq(paths_mptcp(&other), CACHE_MPTCP_HOLDS);
	paths_note_mptcp(&usual);
	paths_note_fallback(&other, clock_ns());
	paths_note_fallback(&other, clock_ns() + CLOCK_NS_PER_MS);
	ck_assert_int_eq(paths_mptcp(&usual), CACHE_MPTCP_HOLDS);
	ck_assert_int_eq(paths_mptcp(&other), CACHE_MPTCP_LOST);
	paths_facts_forget();
	(void)paths_facts(&usual);
	ck_assert_int_eq(paths_mptcp(&other), CACHE_MPTCP_HOLDS);
	paths_forget_mptcp(&other);
	ck_assert_int_eq(paths_mptcp(&other), CACHE_MPTCP_UNKNOWN);
}
END_TEST

static int64_t asleep_s;

/* Takes the place of the C library's function, and adds the time that the machine has slept. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	long time[2];
	const int ret = (int)syscall(SYS_clock_gettime, clock, time);

	*now = (struct timespec){ (time_t)(time[0] + (clock == CLOCK_BOOTTIME ? asleep_s : 0)), time[1] };
	return ret;
}

/* The time of a suspend counts: the machine may have moved, and other programs share these facts. */
START_TEST(facts_end_during_a_suspend)
{
	clock_use_library();
	paths_note_fallback(&usual, clock_ns());
	paths_note_mptcp(&other);
	converters_rest(0, 60);
	ck_assert_int_eq(paths_mptcp(&usual), CACHE_MPTCP_LOST);
	ck_assert(converters_rests(0, clock_seconds()));
	asleep_s = 7200;
	ck_assert_int_eq(paths_mptcp(&usual), CACHE_MPTCP_UNKNOWN);
	ck_assert_int_eq(paths_mptcp(&other), CACHE_MPTCP_UNKNOWN);
	ck_assert(!converters_rests(0, clock_seconds()));
}
END_TEST

/* This process knows for an hour that Multipath TCP holds. Another one then finds it lost: ten minutes later it is unknown here. */
START_TEST(multipath_tcp_that_another_process_lost)
{
	const struct cache_converter lost = { .mptcp = { .until = cache_in(600), .verdict = CACHE_MPTCP_LOST } };

	clock_use_library();
	paths_note_mptcp(&usual);
	ck_assert_int_eq(paths_mptcp(&usual), CACHE_MPTCP_HOLDS);
	ck_assert_int_eq(cache_converter_update(user_cache(), converters_address(0), 0, CACHE_MPTCP, cache_now(), &lost), 0);
	(void)paths_facts(&usual);
	ck_assert_int_eq(paths_mptcp(&usual), CACHE_MPTCP_LOST);
	asleep_s = 601;
	(void)paths_facts(&usual);
	ck_assert_int_eq(paths_mptcp(&usual), CACHE_MPTCP_UNKNOWN);
}
END_TEST

/* The stored times wrap after 48 days. An answer that has ended stays ended, whether somebody looks meanwhile (0) or not (1). */
START_TEST(answers_end_once)
{
	union sockaddr_ip server;

	clock_use_library();
	ck_assert_int_eq(sockaddr_ip_parse(&server, "203.0.113.1", 443), 0);
	converters_admitted(0, &server);
	ck_assert(converters_admits(0, &server));
	asleep_s = 601;
	ck_assert(_i || !converters_admits(0, &server));
	asleep_s = (INT64_C(1) << 22) - (_i ? 7200 : 60);
	ck_assert(!converters_admits(0, &server));
}
END_TEST

/* Three refusals in a row end a family only if they are about several destinations, also when those before are over. */
START_TEST(refusals_of_one_destination)
{
	union sockaddr_ip server, another;

	clock_use_library();
	ck_assert_int_eq(sockaddr_ip_parse(&server, "203.0.113.1", 443), 0);
	ck_assert_int_eq(sockaddr_ip_parse(&another, "203.0.113.2", 443), 0);
	for (int i = 0; i < 5; i++, asleep_s += 60) {
		ck_assert_ptr_null(converters_refusal(0, &server));
		converters_refused(0, &server, 30);
		ck_assert_ptr_nonnull(converters_refusal(0, &server));
		ck_assert_ptr_null(converters_refusal(0, &another));
	}
}
END_TEST

/* No trial restores it, so it ends in time, in the process that found it and for the others, whatever was noted meanwhile. */
START_TEST(path_without_data_is_forgotten)
{
	clock_use_library();
	for (int i = 0; i < 2; i++)
		paths_note_syn_data(&usual, false, after(i));
	asleep_s = 500;
	paths_note_answer(&usual, 50, true);
	ck_assert(!paths_take_syn_data(&usual));
	asleep_s = 700;
	ck_assert(paths_take_syn_data(&usual) && !paths_syn_data_is_doubted(&usual));
	ck_assert_uint_eq(paths_facts(&usual).rtt_ms, 50);
	paths_facts_forget(); /* as another process finds it */
	ck_assert_int_eq(paths_facts(&usual).state, CACHE_PATH_UNKNOWN);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("paths_facts");
	TCase *kept = tcase_create("kept");

	tcase_add_checked_fixture(kept, setup, teardown);
	tcase_add_test(kept, paths_have_facts_of_their_own);
	tcase_add_test(kept, round_trips);
	tcase_add_test(kept, silent_path_is_restored_by_one_trial);
	tcase_add_test(kept, path_that_loses_is_restored_by_three_in_a_row);
	tcase_add_test(kept, data_in_syns_is_given_up_after_two);
	tcase_add_test(kept, data_that_was_lost_at_once_is_one_miss);
	tcase_add_test(kept, misses_of_all_processes_are_in_a_row);
	tcase_add_test(kept, path_without_data_is_restored_by_one_trial);
	tcase_add_test(kept, one_process_asks);
	tcase_add_test(kept, what_others_learned_counts);
	tcase_add_test(kept, multipath_tcp_is_each_path_s_own);
	tcase_add_test(kept, facts_end_during_a_suspend);
	tcase_add_test(kept, multipath_tcp_that_another_process_lost);
	tcase_add_loop_test(kept, answers_end_once, 0, 2);
	tcase_add_test(kept, refusals_of_one_destination);
	tcase_add_test(kept, path_without_data_is_forgotten);
	suite_add_tcase(suite, kept);
	return test_run(suite);
}
