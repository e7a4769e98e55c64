/* SPDX-License-Identifier: BSD-3-Clause */
/* test_paths.c - on which path a connection begins, and when another one is tried */
#include "config.h"

#include "client/paths.h"

#include "run.h"

#include <check.h>
#include <string.h>

/* --- when another one is tried --- */

static void missing_grow(struct paths_seen *view, unsigned int ms)
{
	for (int i = 0; i < PATHS_LOST_PROBES; i++)
		view->missing[i] += view->missing[i] ? ms : 0;
}

static void missing_none(struct paths_seen *view)
{
	memset(view->missing, 0, sizeof(view->missing));
}

/* Goes on until something else than WAIT is decided, by a front end in which nothing is ever late. */
static struct paths_step decided(struct paths_seen *view)
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

static void probe_sent_as(struct paths_seen *view, enum paths_do what)
{
	ck_assert_int_eq(decided(view).what, what);
	view->probes++;
	view->last = 0;
	paths_seen_add_missing(view, 0);
}

static void probe_sent(struct paths_seen *view)
{
	probe_sent_as(view, PATHS_PROBE);
}

/* Now that the own path has left a probe unanswered: sends what survey.c does then. */
static void others_asked(struct paths_seen *view)
{
	ck_assert_int_eq(decided(view).what, PATHS_ASK_OTHERS);
	view->others_asked = true;
	for (int i = 1; i < PATHS_DATA_PROBES; i++) {
		view->probes++;
		view->last = 0;
		paths_seen_add_missing(view, 0);
	}
}

/* The first probe, and the second one, where that is due. Returns when the first one was sent, which others are together with. */
static unsigned int first_probes_sent(struct paths_seen *view)
{
	const bool two = 2 * (view->rtt + view->rtt / 8 + 25) + paths_patience(view->rtt, view->heard) > 240 && view->rtt;
	unsigned int sent;

	probe_sent_as(view, !view->rtt || view->others_far ? PATHS_PROBE_ALL : PATHS_PROBE);
	sent = view->waiting;
	if (two)
		probe_sent(view);
	return sent;
}

START_TEST(first_probe_comes_when_the_answer_is_overdue_and_no_sooner)
{
	static const struct paths_seen views[] = { { .rtt = 0 }, { .rtt = 50 }, { .rtt = 50, .heard = true }, { .rtt = 50, .others_far = true } };

	for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++) {
		const unsigned int patience = paths_patience(views[i].rtt, views[i].heard);
		struct paths_seen view = views[i];
		struct paths_step step = paths_decide(&view);

		ck_assert_int_eq(step.what, PATHS_WAIT);
		ck_assert_uint_eq(step.again, patience);
		view.waiting = patience - 1;
		step = paths_decide(&view);
		ck_assert_int_eq(step.what, PATHS_WAIT);
		ck_assert_uint_eq(step.again, 1);
		view.waiting = patience;
		ck_assert_int_eq(paths_decide(&view).what, !view.rtt || view.others_far ? PATHS_PROBE_ALL : PATHS_PROBE);
	}
}
END_TEST

/* Linux sends the request again after two round trips behind the one in which it should have been acknowledged, 200 ms at least. */
START_TEST(request_that_linux_has_sent_twice_again_is_judged)
{
	static const struct { unsigned int rtt, again; } cases[] = { { 50, 750 }, { 100, 900 }, { 150, 1350 }, { 1000, 2000 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct paths_seen view = { .rtt = cases[i].rtt, .behind = true, .probes = 1, .answered = 1, .waiting = cases[i].again - 1 };
		struct paths_step step;

		view.last = 1000;
		ck_assert_int_eq(paths_decide(&view).what, PATHS_PROBE); /* it works, and is asked on */
		view.waiting++;
		step = paths_decide(&view);
		ck_assert_int_eq(step.what, PATHS_WAIT);
		view.waiting += step.again - 1;
		ck_assert_int_eq(paths_decide(&view).what, PATHS_WAIT);
		view.waiting++;
		ck_assert_int_eq(paths_decide(&view).what, PATHS_ASK_OTHERS);
	}
}
END_TEST

START_TEST(dead_path_costs_less_than_300_ms)
{
	const unsigned int rtts[] = { 1, 10, 20, 50, 70, 100, 120, 160, 175 };

	for (size_t i = 0; i < sizeof(rtts) / sizeof(rtts[0]); i++) {
		struct paths_seen view = { .rtt = rtts[i], .syn_data = true };

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

/* A connection is moved as soon as the other path has answered, but for MOVE_MS: so that is to be asked before the own one has failed. */
START_TEST(other_path_that_is_far_is_asked_in_time)
{
	const struct {
		unsigned int rtt, far;
	} cases[] = { { 0, 260 }, { 1, 170 }, { 10, 170 }, { 30, 170 }, { 80, 170 }, { 160, 240 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct paths_seen view = { .rtt = cases[i].rtt, .others_far = true, .syn_data = true };
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
		struct paths_seen view = { .rtt = rtt, .others_far = true, .syn_data = true };

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
			struct paths_seen view = { .rtt = rtt, .other_answered = true, .syn_data = true };
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
						paths_seen_add_missing(&view, 0);
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
		struct paths_seen far = { .rtt = rtt, .others_far = true };
		struct paths_seen near = { .rtt = rtt };

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
		struct paths_seen view = { .rtt = rtt };

		first_probes_sent(&view);
		others_asked(&view);
		ck_assert_uint_gt(view.waiting, rtt);
		view.other_answered = true;
		ck_assert_int_eq(decided(&view).what, PATHS_MOVE);
		/* two probes had their time, too: one may be lost where nothing is wrong */
		ck_assert_uint_gt(view.missing[1], rtt);
		ck_assert_uint_ge(view.waiting, rtt + 120); /* and a queue that has filled up */
	}
}
END_TEST

/* Whatever the other paths have answered: as long as the own one answers, no connection is moved. */
START_TEST(slow_server_is_no_dead_path)
{
	for (unsigned int rtt = 1; rtt < 250; rtt += 3) {
		struct paths_seen view = { .rtt = rtt, .other_answered = true, .others_asked = true, .plain_answered = true, .syn_data = true };
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
static enum paths_do some_lost(struct paths_seen *view, unsigned int lost)
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
	const struct paths_seen sent = { .rtt = 20, .syn_data = true };
	struct paths_seen most = sent, some = sent, held = sent, one = sent, unknown = sent, plain = { .rtt = 20 }, plain_one = plain;

	held.held = one.held = 700;
	unknown.held = 1000;

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
	/* no server keeps a SYN without data waiting, whatever is known of the converter */
	ck_assert_int_eq(some_lost(&plain, 2), PATHS_MOVE);
	ck_assert_uint_lt(plain.waiting, 700);
	ck_assert_int_eq(some_lost(&plain_one, 1), PATHS_MOVE);
	ck_assert_uint_ge(plain_one.waiting, 1040);
}
END_TEST

START_TEST(path_that_loses_syn_data_is_kept)
{
	struct paths_seen view = { .rtt = 20, .syn_data = true };

	probe_sent(&view);
	others_asked(&view);
	view.plain_answered = view.other_answered = true;
	ck_assert_int_eq(decided(&view).what, PATHS_BEHIND);
	/* but a SYN that had none is lost by chance, and Linux sends it again */
	view.syn_data = false;
	ck_assert_int_eq(decided(&view).what, PATHS_MOVE);
	ck_assert_uint_ge(view.waiting, 1040);
	/* and where a SYN with data was answered, it is others that are lost */
	view.answered = 1;
	view.slowest = 20;
	ck_assert_int_eq(decided(&view).what, PATHS_MOVE);
}
END_TEST

/* It waits for no server, so that two probes are enough that are missing; and none is needed once Linux has sent it three times. */
START_TEST(request_behind_the_handshake_is_moved)
{
	const struct paths_seen sent = { .rtt = 20, .heard = true, .behind = true };
	struct paths_seen silent = sent, losing = sent, sound = sent, dataless = sent;

	probe_sent(&silent);
	others_asked(&silent);
	silent.other_answered = true;
	ck_assert_int_eq(decided(&silent).what, PATHS_MOVE);
	ck_assert_uint_lt(silent.waiting, 300);

	ck_assert_int_eq(some_lost(&losing, 2), PATHS_MOVE);
	ck_assert_uint_lt(losing.waiting, 700);

	probe_sent(&sound);
	for (;;) {
		sound.answered = sound.probes;
		sound.slowest = 20;
		missing_none(&sound);
		if (decided(&sound).what != PATHS_PROBE)
			break;
		sound.probes++;
		sound.last = 0;
	}
	ck_assert_int_eq(paths_decide(&sound).what, PATHS_ASK_OTHERS);
	ck_assert_uint_ge(sound.waiting, 3 * 220 + 20); /* by then the third one is answered */
	sound.others_asked = sound.other_answered = true;
	ck_assert_int_eq(decided(&sound).what, PATHS_MOVE);
	ck_assert_uint_lt(sound.waiting, 800);

	probe_sent(&dataless);
	others_asked(&dataless);
	dataless.plain_answered = dataless.other_answered = true;
	ck_assert_int_eq(decided(&dataless).what, PATHS_MOVE);
	ck_assert_uint_ge(dataless.waiting, 3 * 220 + 20);
}
END_TEST

START_TEST(nobody_answers)
{
	struct paths_seen view = { .rtt = 20 };

	probe_sent(&view);
	others_asked(&view);
	for (; view.waiting < 5000; view.waiting += 10, missing_grow(&view, 10))
		ck_assert_int_eq(paths_decide(&view).what, PATHS_WAIT);
}
END_TEST

/* --- a converter that stands still --- */

/* A front end, the two ways to a converter that stands still from some time on to another, and a server that takes longer than all this. */
struct standstill {
	unsigned int rtt, other_rtt, from, until;
	bool heard;
	unsigned int own[10], count; /* when probes were sent, in milliseconds since the SYN */
	unsigned int other;
	bool other_sent, others_asked;
};

/* When the answer comes to what is sent on a path of @rtt. */
static unsigned int answered_at(const struct standstill *still, unsigned int sent, unsigned int rtt)
{
	const unsigned int arrives = sent + rtt / 2;

	return (arrives >= still->from && arrives < still->until ? still->until : arrives) + rtt - rtt / 2;
}

static struct paths_seen view_of(const struct standstill *still, unsigned int now)
{
	struct paths_seen view = {
		.waiting = now, .rtt = still->rtt, .heard = still->heard, .others_far = still->other_rtt > PATHS_FAR_MS,
		.probes = still->count, .others_asked = still->others_asked, .syn_data = true,
	};

	for (unsigned int i = 0; i < still->count; i++) {
		const unsigned int at = answered_at(still, still->own[i], still->rtt);

		view.last = now - still->own[i];
		if (at > now) {
			paths_seen_add_missing(&view, view.last);
			continue;
		}
		view.answered++;
		view.slowest = at - still->own[i] > view.slowest ? at - still->own[i] : view.slowest;
	}
	if (still->other_sent && answered_at(still, still->other, still->other_rtt) <= now)
		paths_seen_add_answer(&view, still->other_rtt, answered_at(still, still->other, still->other_rtt) - still->other, now - still->other);
	else
		view.other_likely = still->other_sent && still->other_rtt > PATHS_FAR_MS && !paths_is_overdue(now - still->other, still->other_rtt);
	return view;
}

/* Does what is decided, as survey.c does it. */
static void probes_send(struct standstill *still, enum paths_do what, unsigned int now)
{
	const bool answered = still->other_sent && answered_at(still, still->other, still->other_rtt) <= now;

	for (unsigned int i = what == PATHS_ASK_OTHERS ? 1 : PATHS_DATA_PROBES - 1; i < PATHS_DATA_PROBES && still->count < 10; i++)
		still->own[still->count++] = now;
	still->others_asked |= what == PATHS_ASK_OTHERS;
	if (what == PATHS_PROBE || (still->other_sent && !(answered && what == PATHS_ASK_OTHERS)))
		return;
	still->other = now;
	still->other_sent = true;
}

/* Goes on for a second. Returns what is decided in the end. */
static enum paths_do standstill_go_on(struct standstill still)
{
	struct paths_step step = { PATHS_WAIT, 0 };

	for (unsigned int now = 0; now < 1000; now += step.again) {
		const struct paths_seen view = view_of(&still, now);

		step = paths_decide(&view);
		if (step.what == PATHS_MOVE || step.what == PATHS_BEHIND || step.what == PATHS_STAY)
			break;
		if (step.what != PATHS_WAIT)
			probes_send(&still, step.what, now);
	}
	return step.what;
}

/*
 * Whenever it does, and for how long: nothing but its answers is late, and those of the nearer path are there first. Where nothing was
 * heard of a path lately, two cases are left out: a long one has to be left before its answer can be told from a late one, so that a dead
 * one costs no more than 0.3 s; and another path that is far is taken before it can have answered, for the same reason.
 */
START_TEST(converter_that_stands_still_moves_nobody)
{
	static const unsigned int rtts[] = { 5, 10, 20, 50, 60, 100, 120, 160, 180, 250, 400 }, others[] = { 5, 20, 50, 100, 150, 250, 400 };

	for (size_t i = 0; i < sizeof(rtts) / sizeof(rtts[0]); i++)
		for (size_t j = 0; j < sizeof(others) / sizeof(others[0]); j++)
			for (unsigned int from = 0; from < 600; from += 15)
				for (unsigned int takes = 40; takes <= 400; takes += 40) {
					const bool skipped = (rtts[i] > 60 && rtts[i] < 180) || (others[j] > PATHS_FAR_MS && rtts[i] < 180);
					struct standstill still = { .rtt = rtts[i], .other_rtt = others[j], .from = from, .until = from + takes };

					if (!skipped)
						ck_assert_msg(standstill_go_on(still) != PATHS_MOVE, "%u, %u: from %u for %u ms", rtts[i], others[j], from, takes);
					still.heard = true;
					ck_assert_msg(standstill_go_on(still) != PATHS_MOVE, "heard, %u, %u: from %u for %u ms", rtts[i], others[j], from, takes);
				}
}
END_TEST

/* Linux's second SYN, too, is answered before the probes that are sent behind it. */
START_TEST(second_syn_is_waited_for_as_probes_are)
{
	struct paths_seen view = { .waiting = 1060, .rtt = 20, .held = 700, .probes = 7, .answered = 7, .slowest = 20, .last = 60 };

	ck_assert_int_eq(decided(&view).what, PATHS_ASK_OTHERS);
	view.others_asked = true;
	view.probes += PATHS_LOST_PROBES;
	view.last = 0;
	for (int i = 0; i < PATHS_LOST_PROBES; i++)
		paths_seen_add_missing(&view, 0);
	paths_seen_add_answer(&view, 10, 10, 10);
	for (; view.last <= 40; view.waiting++, view.last++, missing_grow(&view, 1))
		ck_assert_int_eq(paths_decide(&view).what, PATHS_WAIT);
	missing_none(&view);
	view.answered += PATHS_LOST_PROBES;
	ck_assert_int_eq(decided(&view).what, PATHS_MOVE);
}
END_TEST

/* On a dead path the wait for an answer that may follow the other path's (answer_lag) ends in time. */
START_TEST(what_is_owed_ends)
{
	for (unsigned int rtt = 1; rtt < 500; rtt += 9)
		for (unsigned int other = 10; other <= PATHS_FAR_MS; other += 15) {
			struct paths_seen view = { .rtt = rtt, .syn_data = true };
			unsigned int asked;

			first_probes_sent(&view);
			others_asked(&view);
			asked = view.waiting;
			while (view.waiting < asked + other) {
				ck_assert_int_eq(paths_decide(&view).what, PATHS_WAIT);
				view.waiting++;
				missing_grow(&view, 1);
			}
			for (;;) {
				view.answer_lag = 0;
				paths_seen_add_answer(&view, other, other, view.waiting - asked);
				if (paths_decide(&view).what == PATHS_MOVE)
					break;
				view.waiting++;
				missing_grow(&view, 1);
				ck_assert_uint_lt(view.waiting, 3 * rtt + 300);
			}
			if (rtt <= 100)
				ck_assert_uint_le(view.waiting, asked + other > 300 ? asked + other + 1 : 300);
		}
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

/* --- what the user wants --- */

START_TEST(wishes)
{
	struct path_preferences wanted = { .count = 0 };
	struct in6_addr address = { .s6_addr = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2 } }, none = { .s6_addr = { 0 } };
	uint8_t preference;

	ck_assert_int_eq(path_preferences_of(&wanted, "lte", &address, &preference), PATH_USE_ORDERED);
	ck_assert_uint_eq(preference, PATH_PREFERENCE_NONE);
	ck_assert_ptr_null(path_preferences_add(&wanted, "wlan0"));
	ck_assert(!path_preferences_restrict(&wanted));
	ck_assert_ptr_null(path_preferences_add(&wanted, "10.0.0.2=backup"));
	ck_assert(path_preferences_restrict(&wanted) && !path_preferences_forbid(&wanted));
	ck_assert_ptr_null(path_preferences_add(&wanted, "tun0=never"));
	ck_assert(path_preferences_restrict(&wanted) && path_preferences_forbid(&wanted));
	ck_assert_ptr_null(path_preferences_add(&wanted, "2001:db8::1"));
	ck_assert_int_eq(path_preferences_of(&wanted, "wlan0", &none, &preference), PATH_USE_ORDERED);
	ck_assert_uint_eq(preference, 0);
	ck_assert_int_eq(path_preferences_of(&wanted, "lte", &address, &preference), PATH_USE_BACKUP);
	ck_assert_int_eq(path_preferences_of(&wanted, "tun0", &none, &preference), PATH_USE_NEVER);
	ck_assert_int_eq(path_preferences_of(&wanted, "tun01", &none, &preference), PATH_USE_ORDERED);
	ck_assert_uint_eq(preference, PATH_PREFERENCE_NONE);
}
END_TEST

/* A network may be named by its device and by its address: whichever comes first, the strictest wish counts. */
START_TEST(strictest_wish_counts)
{
	static const char *const texts[] = { "10.0.0.2", "wwan0", "wwan0=backup", "10.0.0.2=never" };
	const struct in6_addr address = { .s6_addr = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2 } }, none = { .s6_addr = { 0 } };
	struct path_preferences wanted = { .count = 0 }, reversed = { .count = 0 };
	uint8_t preference;

	for (size_t i = 0; i < 4; i++) {
		ck_assert_ptr_null(path_preferences_add(&wanted, texts[i]));
		ck_assert_ptr_null(path_preferences_add(&reversed, texts[3 - i]));
		ck_assert_int_eq(path_preferences_of(&wanted, "wwan0", &address, &preference), i < 2 ? PATH_USE_ORDERED :
				 i < 3 ? PATH_USE_BACKUP : PATH_USE_NEVER);
		ck_assert_uint_eq(preference, i < 2 ? 0 : PATH_PREFERENCE_NONE);
		ck_assert_int_eq(path_preferences_of(&reversed, "wwan0", &address, &preference), PATH_USE_NEVER);
		ck_assert_uint_eq(preference, PATH_PREFERENCE_NONE);
	}
	ck_assert_int_eq(path_preferences_of(&wanted, "wwan0", &none, &preference), PATH_USE_BACKUP);
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
	TCase *decisions = tcase_create("decisions");

	tcase_add_test(decisions, first_probe_comes_when_the_answer_is_overdue_and_no_sooner);
	tcase_add_test(decisions, request_that_linux_has_sent_twice_again_is_judged);
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
	tcase_add_test(decisions, request_behind_the_handshake_is_moved);
	tcase_add_test(decisions, nobody_answers);
	tcase_add_test(decisions, converter_that_stands_still_moves_nobody);
	tcase_add_test(decisions, second_syn_is_waited_for_as_probes_are);
	tcase_add_test(decisions, what_is_owed_ends);
	tcase_add_test(decisions, order);
	tcase_add_test(decisions, equal_paths_keep_their_order);
	tcase_add_test(decisions, wishes);
	tcase_add_test(decisions, strictest_wish_counts);
	tcase_add_test(decisions, wrong_wishes);
	suite_add_tcase(suite, decisions);
	return test_run(suite);
}
