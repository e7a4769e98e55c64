/* SPDX-License-Identifier: BSD-3-Clause */
/* test_paths.c - on which path a connection begins, when another one is tried, and what is kept of each */
#include "config.h"

#include "client/cache_place.h"
#include "client/converters.h"
#include "client/paths.h"
#include "client/user_cache.h"
#include "common/clock.h"

#include "run.h"
#include "tempdir.h"

#include <check.h>
#include <string.h>

static char directory[PATH_MAX];
static struct cache cache;
static struct settings settings;

/* In place of user_cache.c's: not the user's own. */
const struct cache *user_cache(void)
{
	return &cache;
}

static const char *lookup(const char *name)
{
	return strcmp(name, "CONVERT_ADDR") == 0 ? "192.0.2.1,192.0.2.2" : NULL;
}

static void setup(void)
{
	tempdir_make(directory);
	ck_assert_int_eq(cache_open(&cache, directory), 0);
	settings_read(&settings, lookup);
	converters_init(&settings);
}

static void teardown(void)
{
	cache_close(&cache);
	tempdir_remove(directory);
}

/* --- when another one is tried --- */

static void missing_grow(struct paths_view *view, unsigned int ms)
{
	for (int i = 0; i < PATHS_LOST_PROBES; i++)
		view->missing[i] += view->missing[i] ? ms : 0;
}

static void missing_none(struct paths_view *view)
{
	memset(view->missing, 0, sizeof(view->missing));
}

/* Goes on until something else than WAIT is decided, by a front end in which nothing is ever late. */
static struct paths_step decided(struct paths_view *view)
{
	for (;;) {
		struct paths_step step = paths_decide(view);

		if (step.what != PATHS_WAIT)
			return step;
		ck_assert_uint_gt(step.again, 0);
		view->waiting += step.again;
		view->last += step.again;
		missing_grow(view, step.again);
		ck_assert_uint_lt(view->waiting, 10000);
	}
}

static void probe_sent_as(struct paths_view *view, enum paths_do what)
{
	ck_assert_int_eq(decided(view).what, what);
	view->probes++;
	view->last = 0;
	paths_view_add_missing(view, 0);
}

static void probe_sent(struct paths_view *view)
{
	probe_sent_as(view, PATHS_PROBE);
}

/* Now that the own path has left a probe unanswered: sends what survey.c does then. */
static void others_asked(struct paths_view *view)
{
	ck_assert_int_eq(decided(view).what, PATHS_ASK_OTHERS);
	view->others_asked = true;
	for (int i = 1; i < PATHS_DATA_PROBES; i++) {
		view->probes++;
		view->last = 0;
		paths_view_add_missing(view, 0);
	}
}

/* The first probe, and the second one, where that is due. Returns when the first one was sent, which others are together with. */
static unsigned int first_probes_sent(struct paths_view *view)
{
	const bool two = 2 * (view->rtt + view->rtt / 8 + 25) + paths_patience(view->rtt, view->heard) > 240 && view->rtt;
	unsigned int sent;

	probe_sent_as(view, !view->rtt || view->others_far ? PATHS_PROBE_ALL : PATHS_PROBE);
	sent = view->waiting;
	if (two)
		probe_sent(view);
	return sent;
}

START_TEST(dead_path_costs_less_than_300_ms)
{
	const unsigned int rtts[] = { 1, 10, 20, 50, 70, 100, 120, 160, 175 };

	for (size_t i = 0; i < sizeof(rtts) / sizeof(rtts[0]); i++) {
		struct paths_view view = { .rtt = rtts[i], .syn_data = true };

		first_probes_sent(&view);
		others_asked(&view);
		ck_assert_uint_le(view.waiting, 250);
		view.other_answered = true;
		ck_assert_int_eq(decided(&view).what, PATHS_MOVE);
		ck_assert_uint_ge(view.waiting, 240);
		ck_assert_uint_lt(view.waiting, 300);
	}
}
END_TEST

/* No connection that is answered when it is due makes a probe beside its SYN. */
/* A connection is moved as soon as the other path has answered, but for MOVE_MS: so that is to be asked before the own one has failed. */
START_TEST(other_path_that_is_far_is_asked_in_time)
{
	const struct {
		unsigned int rtt, far;
	} cases[] = { { 0, 260 }, { 1, 170 }, { 10, 170 }, { 30, 170 }, { 80, 170 }, { 160, 240 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct paths_view view = { .rtt = cases[i].rtt, .others_far = true, .syn_data = true };
		unsigned int asked;

		asked = first_probes_sent(&view);
		others_asked(&view);
		while (view.waiting < asked + cases[i].far) {
			struct paths_step step = paths_decide(&view);

			ck_assert_int_eq(step.what, PATHS_WAIT);
			view.waiting += step.again;
			missing_grow(&view, step.again);
		}
		view.other_answered = true;
		ck_assert_int_eq(decided(&view).what, PATHS_MOVE);
		ck_assert_uint_le(view.waiting, 300);
	}
}
END_TEST

/* One that is too far to have answered is taken all the same where it is the only one, but for where nothing is known of either. */
START_TEST(other_path_that_is_farther_is_taken_unanswered)
{
	for (unsigned int rtt = 1; rtt <= 150; rtt++) {
		struct paths_view view = { .rtt = rtt, .others_far = true, .syn_data = true };

		first_probes_sent(&view);
		others_asked(&view);
		view.other_likely = true;
		ck_assert_int_eq(decided(&view).what, PATHS_MOVE);
		ck_assert_uint_ge(view.waiting, 270); /* those of up to 150 ms have answered by then */
		ck_assert_uint_le(view.waiting, 290);
	}
}
END_TEST

/* A probe is lost, the path works, and the server is slow: whichever probe it is. */
START_TEST(lost_probe_moves_nobody)
{
	for (unsigned int rtt = 1; rtt < 440; rtt++)
		for (unsigned int lost = 1; lost <= PATHS_LOST_PROBES; lost++) {
			struct paths_view view = { .rtt = rtt, .other_answered = true, .syn_data = true };
			enum paths_do what;

			do {
				struct paths_step step = paths_decide(&view);

				what = step.what;
				if (what == PATHS_WAIT || what == PATHS_STAY) {
					view.waiting += step.again;
					view.last += step.again;
					missing_grow(&view, step.again);
				} else {
					ck_assert_int_ne(what, PATHS_MOVE);
					ck_assert_int_ne(what, PATHS_BEHIND);
					view.others_asked |= what == PATHS_ASK_OTHERS;
					view.last = 0;
					if (++view.probes == lost)
						paths_view_add_missing(&view, 0);
				}
				/* all others are answered when that is due */
				if (view.probes > (view.missing[0] != 0) && view.waiting > paths_patience(rtt, false) + rtt + 30)
					view.answered = view.probes - (view.missing[0] != 0), view.slowest = rtt;
			} while (what != PATHS_STAY);
			ck_assert_uint_ge(view.waiting, 1000);
		}
}
END_TEST

/* Where a path works no other one is asked sooner than a probe is due, and none at all where their round trips are known to be short. */
START_TEST(others_are_asked_only_where_they_are_far)
{
	for (unsigned int rtt = 1; rtt < 500; rtt++) {
		struct paths_view far = { .rtt = rtt, .others_far = true };
		struct paths_view near = { .rtt = rtt };

		probe_sent_as(&far, PATHS_PROBE_ALL);
		probe_sent(&near);
		ck_assert_uint_eq(far.waiting, near.waiting);
	}
}
END_TEST

START_TEST(path_that_was_heard_just_now_has_its_round_trip)
{
	for (unsigned int rtt = 1; rtt < 3000; rtt += 7) {
		ck_assert_uint_gt(paths_patience(rtt, true), rtt);
		ck_assert_uint_ge(paths_patience(rtt, true), paths_patience(rtt, false));
	}
	ck_assert_uint_lt(paths_patience(160, false), 160);
}
END_TEST

START_TEST(path_whose_round_trip_explains_it_is_waited_for)
{
	for (unsigned int rtt = 1; rtt < 3000; rtt += 7) {
		struct paths_view view = { .rtt = rtt };

		first_probes_sent(&view);
		others_asked(&view);
		ck_assert_uint_gt(view.waiting, rtt);
		view.other_answered = true;
		ck_assert_int_eq(decided(&view).what, PATHS_MOVE);
		ck_assert_uint_gt(view.missing[1], rtt); /* the probes had their time, too: two of them, as one may be lost where nothing is wrong */
		ck_assert_uint_ge(view.waiting, rtt + 120); /* and a queue that has filled up */
	}
}
END_TEST

/* Whatever the other paths have answered: as long as the own one answers, no connection is moved. */
START_TEST(slow_server_is_no_dead_path)
{
	for (unsigned int rtt = 1; rtt < 250; rtt += 3) {
		struct paths_view view = { .rtt = rtt, .other_answered = true, .others_asked = true, .plain_answered = true };
		struct paths_step step;

		do {
			probe_sent(&view);
			view.waiting += rtt;
			view.last += rtt;
			view.slowest = rtt;
			view.answered++;
			missing_none(&view);
			step = decided(&view);
			ck_assert(step.what == PATHS_PROBE || step.what == PATHS_STAY);
		} while (step.what == PATHS_PROBE);
		ck_assert_uint_le(view.probes, 7);
		ck_assert_uint_ge(view.waiting, 1000);
	}
}
END_TEST

/* The first probe is answered, and of those that are sent once another one is missing all but @lost. Returns what is done about it. */
static enum paths_do some_lost(struct paths_view *view, unsigned int lost)
{
	probe_sent(view);
	view->answered = 1;
	view->slowest = 20;
	missing_none(view);
	probe_sent(view);
	others_asked(view);
	ck_assert_uint_ge(view->missing[0], 150); /* not as soon as a probe is a little late */
	view->other_answered = true;
	view->answered += PATHS_DATA_PROBES - lost;
	for (unsigned int i = lost; i < PATHS_LOST_PROBES; i++)
		view->missing[i] = 0;
	for (;;) {
		enum paths_do what = decided(view).what;

		if (what != PATHS_PROBE)
			return what;
		view->last = 0;
		view->probes++;
		view->answered++;
	}
}

START_TEST(path_that_loses_is_left)
{
	struct paths_view most = { .rtt = 20 }, some = { .rtt = 20 }, held = { .rtt = 20, .held = 700 }, one = { .rtt = 20, .held = 700 },
			  unknown = { .rtt = 20, .held = 1000 };

	ck_assert_int_eq(some_lost(&most, 3), PATHS_MOVE);
	ck_assert_uint_ge(most.missing[2], 150);
	ck_assert_uint_lt(most.waiting, 700);
	/* two of some may be chance, as long as the server may be slow */
	ck_assert_int_eq(some_lost(&some, 2), PATHS_MOVE);
	ck_assert_uint_ge(some.waiting, 1000);
	ck_assert_int_eq(some_lost(&held, 2), PATHS_MOVE);
	ck_assert_uint_ge(held.waiting, 740);
	ck_assert_uint_lt(held.waiting, 770);
	/* and one, or none, once Linux's second SYN is unanswered, too */
	ck_assert_int_eq(some_lost(&one, 1), PATHS_MOVE);
	ck_assert_uint_ge(one.waiting, 1040);
	ck_assert_int_eq(some_lost(&unknown, 1), PATHS_STAY);
}
END_TEST

START_TEST(path_that_loses_syn_data_is_kept)
{
	struct paths_view view = { .rtt = 20, .syn_data = true };

	probe_sent(&view);
	others_asked(&view);
	view.plain_answered = view.other_answered = true;
	ck_assert_int_eq(decided(&view).what, PATHS_BEHIND);
	/* but a SYN that had none has arrived */
	view.syn_data = false;
	ck_assert_int_eq(decided(&view).what, PATHS_STAY);
	/* and where a SYN with data was answered, it is others that are lost */
	view.answered = 1;
	view.slowest = 20;
	ck_assert_int_eq(decided(&view).what, PATHS_MOVE);
}
END_TEST

START_TEST(nobody_answers)
{
	struct paths_view view = { .rtt = 20 };

	probe_sent(&view);
	others_asked(&view);
	for (; view.waiting < 5000; view.waiting += 10, missing_grow(&view, 10))
		ck_assert_int_eq(paths_decide(&view).what, PATHS_WAIT);
}
END_TEST

/* --- which one --- */

static struct path path_of(enum cache_path state, unsigned int rtt, bool backup, uint8_t preference)
{
	return (struct path){ .facts = { state, rtt }, .backup = backup, .preference = preference };
}

START_TEST(order)
{
	/* each is better than all behind it */
	const struct path best_first[] = {
		path_of(CACHE_PATH_WORKS, 100, false, 0),    path_of(CACHE_PATH_UNKNOWN, 0, false, 0),
		path_of(CACHE_PATH_WORKS, 10, false, 255),   path_of(CACHE_PATH_WORKS, 30, false, 255),
		path_of(CACHE_PATH_DATALESS, 30, false, 255), path_of(CACHE_PATH_UNKNOWN, 0, false, 255),
		path_of(CACHE_PATH_LOSES, 10, false, 0),
		path_of(CACHE_PATH_WORKS, 10, true, 255),    path_of(CACHE_PATH_SILENT, 10, false, 0),
		path_of(CACHE_PATH_SILENT, 10, true, 0),
	};
	const size_t count = sizeof(best_first) / sizeof(best_first[0]);
	struct path mixed[sizeof(best_first) / sizeof(best_first[0])];

	for (size_t i = 0; i < count; i++) {
		for (size_t j = i; j < count; j++) /* reversed, and rotated */
			mixed[(2 * count - j + i) % (count - i)] = best_first[j];
		ck_assert_mem_eq(&mixed[paths_best(mixed, count - i, 0)], &best_first[i], sizeof(struct path));
	}
	ck_assert_int_eq(paths_best(best_first, count, 0x3), 2);
	ck_assert_int_eq(paths_best(best_first, count, ~0u), -1);
	ck_assert_int_eq(paths_best(NULL, 0, 0), -1);
}
END_TEST

START_TEST(equal_paths_keep_their_order)
{
	const struct path paths[] = { path_of(CACHE_PATH_UNKNOWN, 0, false, 255), path_of(CACHE_PATH_UNKNOWN, 0, false, 255) };
	const struct path dataless = path_of(CACHE_PATH_DATALESS, 20, false, 255);
	const struct path nearly[] = { dataless, path_of(CACHE_PATH_WORKS, 29, false, 255) };
	const struct path slower[] = { dataless, path_of(CACHE_PATH_WORKS, 30, false, 255) };
	const struct path shorter[] = { path_of(CACHE_PATH_WORKS, 40, false, 255), dataless };
	const struct path similar[] = { path_of(CACHE_PATH_WORKS, 38, false, 255), path_of(CACHE_PATH_WORKS, 20, false, 255) };

	ck_assert_int_eq(paths_best(paths, 2, 0), 0);
	ck_assert_int_eq(paths_best(paths, 2, 1), 1);
	ck_assert_int_eq(paths_best(similar, 2, 0), 0);
	/* a path that takes no data in SYNs costs three round trips where another one costs two */
	ck_assert_int_eq(paths_best(nearly, 2, 0), 1);
	ck_assert_int_eq(paths_best(slower, 2, 0), 0);
	ck_assert_int_eq(paths_best(shorter, 2, 0), 0);
}
END_TEST

/* --- what is kept --- */

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
	paths_note_syn_data(&usual, false, after(0));
	ck_assert(paths_take_syn_data(&usual));
	paths_note_syn_data(&usual, false, after(1));
	ck_assert(!paths_take_syn_data(&usual));
	/* on this path alone */
	ck_assert(paths_take_syn_data(&other));
	ck_assert(paths_take_syn_data(&(struct path_id){ .converter = 1 }));
	ck_assert(!paths_is_trial_due(&usual)); /* by their size, perhaps, which a trial wouldn't show */
	paths_note_syn_data(&usual, true, after(0));
	ck_assert(paths_take_syn_data(&usual));
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
	const struct cache_converter one = { .path = { cache_in(60), cache_now(), CACHE_PATH_WORKS, 0, 1 } };
	const struct cache_converter ahead = { .path = { cache_in(60), INT64_MAX, CACHE_PATH_WORKS, 0, 1 } };

	ck_assert_int_eq(cache_converter_update(&cache, converters_address(0), 0, CACHE_PATH, cache_now(), &one), 0);
	paths_note_syn_data(&usual, false, after(-300));
	ck_assert(paths_take_syn_data(&usual));
	paths_note_syn_data(&usual, false, after(1));
	ck_assert(!paths_take_syn_data(&usual));
	ck_assert_int_eq(cache_converter_update(&cache, converters_address(1), 0, CACHE_PATH, cache_now(), &ahead), 0);
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
	struct cache_converter note = { .path = { cache_in(60), then, CACHE_PATH_SILENT, 0, 1 } };

	ck_assert(!paths_is_trial_due(&usual)); /* nothing is wrong with it */
	paths_note_failure(&usual, CACHE_PATH_SILENT);
	ck_assert(!paths_is_trial_due(&usual)); /* it was silent a moment ago */
	ck_assert_int_eq(cache_converter_update(&cache, address, 0, CACHE_PATH, cache_now(), &note), 0);
	ck_assert(paths_is_trial_due(&usual));
	ck_assert(!paths_is_trial_due(&usual));
	note.path.asked = INT64_MAX; /* which a damaged file may have */
	ck_assert_int_eq(cache_converter_update(&cache, address, 0, CACHE_PATH, cache_now(), &note), 0);
	ck_assert(paths_is_trial_due(&usual));
	ck_assert(!paths_is_trial_due(&usual));
}
END_TEST

START_TEST(what_others_learned_counts)
{
	const struct cache_converter note = { .path = { cache_in(60), 1, CACHE_PATH_SILENT, 77, 1 } };
	struct cache_converter found;

	ck_assert_int_eq(cache_converter_update(&cache, converters_address(0), 0, CACHE_PATH, cache_now(), &note), 0);
	ck_assert_int_eq(paths_facts_usual(0).state, CACHE_PATH_UNKNOWN); /* not looked for yet */
	converters_noted(0, CACHE_FACTS_ALL, &found);
	converters_renew_path(0, &found);
	ck_assert_int_eq(paths_facts_usual(0).state, CACHE_PATH_SILENT);
	ck_assert_uint_eq(paths_facts_usual(0).rtt_ms, 77);
	/* and without a cache, what this process has learned */
	cache_close(&cache);
	paths_note_failure(&other, CACHE_PATH_LOSES);
	ck_assert_int_eq(paths_facts(&other).state, CACHE_PATH_LOSES);
}
END_TEST

/* --- what the user wants --- */

START_TEST(wishes)
{
	struct path_preferences wanted = { .count = 0 };
	struct in6_addr address = other.source, none = { .s6_addr = { 0 } };
	uint8_t preference;

	ck_assert_int_eq(path_preferences_of(&wanted, "lte", &address, &preference), PATH_USE_ORDERED);
	ck_assert_uint_eq(preference, PATH_PREFERENCE_NONE);
	ck_assert_ptr_null(path_preferences_add(&wanted, "wlan0"));
	ck_assert_ptr_null(path_preferences_add(&wanted, "10.0.0.2=backup"));
	ck_assert_ptr_null(path_preferences_add(&wanted, "tun0=never"));
	ck_assert_ptr_null(path_preferences_add(&wanted, "2001:db8::1"));
	ck_assert_int_eq(path_preferences_of(&wanted, "wlan0", &none, &preference), PATH_USE_ORDERED);
	ck_assert_uint_eq(preference, 0);
	ck_assert_int_eq(path_preferences_of(&wanted, "lte", &address, &preference), PATH_USE_BACKUP);
	ck_assert_int_eq(path_preferences_of(&wanted, "tun0", &none, &preference), PATH_USE_NEVER);
	ck_assert_int_eq(path_preferences_of(&wanted, "tun01", &none, &preference), PATH_USE_ORDERED);
	ck_assert_uint_eq(preference, PATH_PREFERENCE_NONE);
}
END_TEST

START_TEST(wrong_wishes)
{
	static const char *const wrong[] = { "", "=never", "wlan0=", "wlan0=sometimes", "192.0.2", "a/b", "fe80::1%eth0", ".", "..",
					     "192.0.2.1:80", "averyveryverylongname", "wlan0=never=never" };
	struct path_preferences wanted = { .count = 0 };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ck_assert_msg(path_preferences_add(&wanted, wrong[i]) != NULL, "\"%s\"", wrong[i]);
	ck_assert_uint_eq(wanted.count, 0);
	for (size_t i = 0; i < PATH_PREFERENCES_MAX; i++)
		ck_assert_ptr_null(path_preferences_add(&wanted, "wlan0"));
	ck_assert_ptr_nonnull(path_preferences_add(&wanted, "wlan0"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("paths");
	TCase *decisions = tcase_create("decisions"), *kept = tcase_create("kept");

	tcase_add_test(decisions, dead_path_costs_less_than_300_ms);
	tcase_add_test(decisions, other_path_that_is_far_is_asked_in_time);
	tcase_add_test(decisions, other_path_that_is_farther_is_taken_unanswered);
	tcase_add_test(decisions, lost_probe_moves_nobody);
	tcase_add_test(decisions, others_are_asked_only_where_they_are_far);
	tcase_add_test(decisions, path_that_was_heard_just_now_has_its_round_trip);
	tcase_add_test(decisions, path_whose_round_trip_explains_it_is_waited_for);
	tcase_add_test(decisions, slow_server_is_no_dead_path);
	tcase_add_test(decisions, path_that_loses_is_left);
	tcase_add_test(decisions, path_that_loses_syn_data_is_kept);
	tcase_add_test(decisions, nobody_answers);
	tcase_add_test(decisions, order);
	tcase_add_test(decisions, equal_paths_keep_their_order);
	tcase_add_test(decisions, wishes);
	tcase_add_test(decisions, wrong_wishes);
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
	suite_add_tcase(suite, decisions);
	suite_add_tcase(suite, kept);
	return test_run(suite);
}
