/* SPDX-License-Identifier: BSD-3-Clause */
/* test_engine_surveys.c - which dial asks about paths, when, and which failed paths are tried again */
#include "config.h"

#include "client/converters.h"
#include "engine_world.h"
#include "run.h"

#include <errno.h>
#include <string.h>

/* --- what is asked, and by whom --- */

START_TEST(one_connection_asks_about_a_path)
{
	struct dial other;

	expect_on(dial_begin(false));
	kernel.now = dial.start.look_at;
	expect_on(step());
	other = dial;
	expect_on(dial_begin(false));
	kernel.now = dial.start.look_at;
	nets.looks = 0;
	expect_on(step());
	ck_assert_uint_eq(nets.looks, 0);
	ck_assert_int_eq(dial.start.look_at, kernel.now + 20 * MS);
	dial_stop(&other);
	kernel.now = dial.start.look_at;
	expect_on(step());
	ck_assert_uint_eq(nets.looks, 1);
	dial_stop(&dial);
	ck_assert_uint_eq(nets.open, 0);
	/* what that has found out */
	expect_on(dial_begin(false));
	paths_note_failure(&dial.start.path.id, CACHE_PATH_SILENT);
	list_of(6);
	nets.elsewhere = 0;
	kernel.now = dial.start.look_at;
	expect_on(step());
	ck_assert_uint_eq(nets.looks, 1);
	ck_assert_uint_eq(dial.start.path.id.source.s6_addr[15], 6);
	ck_assert_int_eq(dial.start.path.device, 7);
}
END_TEST

static bool is_somebody_waiting;

static bool is_waiting(const struct path_start *start, int64_t serial)
{
	return start->serial == serial && is_somebody_waiting;
}

/* The owner has closed its socket, or is another process's. */
START_TEST(survey_that_was_left_behind)
{
	struct dial first;

	dial_host.is_waiting = is_waiting;
	for (int i = 0; i < 2; i++) {
		expect_on(dial_begin(false));
		first = dial;
		kernel.now = first.start.look_at;
		expect_on(dial_step(&first, &end));
		ck_assert_uint_eq(nets.open, 1);
		is_somebody_waiting = true;
		expect_on(dial_begin(false));
		kernel.now = dial.start.look_at;
		expect_on(step());
		ck_assert_uint_eq(dial.start.survey, 0);
		if (i)
			path_start_repair_in_child();
		else
			is_somebody_waiting = false;
		kernel.now = dial.start.look_at;
		expect_on(step());
		ck_assert_uint_ne(dial.start.survey, 0);
		ck_assert_uint_eq(nets.open, 1);
		dial_stop(&first); /* it isn't its own any more */
		ck_assert_uint_eq(nets.open, 1);
		dial_stop(&dial);
		ck_assert_uint_eq(nets.open, 0);
	}
}
END_TEST

/* A connection whose path is looked at waits for what that finds. */
START_TEST(path_is_asked_once_at_a_time)
{
	const struct path_start_syn syn = { SURVEY_DATA, NULL, NULL };
	const struct converters_query none = { 0 };
	struct path_start start, other;
	union sockaddr_ip addr;
	uint8_t place;

	dial_host.is_waiting = is_waiting;
	is_somebody_waiting = true;
	path_start_init(&start, true, &in6addr_any);
	path_start_init(&other, true, &in6addr_any);
	ck_assert_int_eq(path_start_asked(&start), PATH_UNASKED);
	path_start_sent(&start, kernel.now);
	path_start_ask(&start, false);
	expect_said("");
	ck_assert_int_eq(path_start_asked(&start), PATH_UNKNOWN);
	/* the look has a place, and has sent no probes: they take its place */
	ck_assert_int_eq(path_start_look(&start, &none, &syn, &addr), PATHS_WAIT);
	place = start.survey;
	nets.unasked = true;
	path_start_ask(&start, false);
	expect_said("ask 0 0; ");
	ck_assert_uint_eq(start.survey, place);
	ck_assert_int_eq(path_start_asked(&start), PATH_UNASKED);
	nets.unasked = false;
	path_start_ask(&start, true);
	expect_said("ask for a response 0 0; ");
	path_start_ask(&start, true);
	expect_said("");
	ck_assert_int_eq(path_start_asked(&start), PATH_SILENT);
	nets.answer = SURVEY_PENDING;
	ck_assert_int_eq(path_start_asked(&start), PATH_UNKNOWN);
	nets.answer = SURVEY_ANSWERS;
	ck_assert_int_eq(path_start_asked(&start), PATH_ANSWERS);
	path_start_end(&start);
	/* nor does a second connection ask while the first one does */
	start.look_at = other.look_at = 0;
	path_start_ask(&start, false);
	expect_said("ask 0 0; ");
	path_start_ask(&other, false);
	expect_said("");
	ck_assert_int_eq(path_start_asked(&other), PATH_UNKNOWN);
}
END_TEST

START_TEST(path_that_is_known_is_looked_at_when_its_answer_is_due)
{
	expect_on(dial_begin(false));
	ck_assert_int_eq(dial.start.look_at, kernel.now + paths_patience(0, false) * MS);
	paths_note_answer(&dial.start.path.id, 400, true);
	expect_on(dial_begin(false));
	ck_assert_int_eq(dial.start.look_at, kernel.now + paths_patience(400, true) * MS);
	ck_assert_uint_ne(paths_patience(400, true), paths_patience(0, false));
}
END_TEST

START_TEST(look_is_told_what_waits_and_for_how_long)
{
	expect_on(dial_begin(false));
	kernel.now = dial.start.look_at;
	expect_on(step());
	ck_assert_uint_eq(nets.waiting, (dial.start.look_at - 30 * MS - dial.start.syn_at) / MS);
	ck_assert_int_eq(nets.syn, SURVEY_DATA);
	ck_assert_uint_eq(dial.start.moves, 0);
	dial_stop(&dial);
	kernel.syn_takes = -EOPNOTSUPP;
	kernel.takes = -EAGAIN;
	expect_on(dial_begin(false));
	kernel.now = dial.start.look_at;
	expect_on(step());
	ck_assert_int_eq(nets.syn, SURVEY_PLAIN);
	dial_stop(&dial);
	kernel.syn_takes = kernel.takes = 4096;
	learn(SILENCE);
	kernel.blind = true;
	expect_on(dial_begin(false));
	ck_assert(dial.attempt.ask.blind);
	kernel.now = dial.start.look_at;
	expect_on(step());
	ck_assert_int_eq(nets.syn, SURVEY_DATA_ONLY);
}
END_TEST

START_TEST(request_behind_the_handshake_is_looked_after_anew)
{
	kernel.syn_takes = -EOPNOTSUPP;
	kernel.takes = -EAGAIN;
	expect_on(dial_begin(false));
	kernel.now = dial.start.look_at;
	expect_on(step());
	ck_assert_uint_eq(nets.open, 1);
	kernel.now += 500 * MS;
	kernel.takes = 4096;
	synack(TCPI_OPT_TIMESTAMPS);
	kernel.info.tcpi_unacked = 1;
	expect_on(step());
	ck_assert_uint_eq(nets.open, 0);
	ck_assert_int_eq(dial.start.request_at, kernel.now);
	kernel.now = dial.start.look_at;
	expect_on(step());
	ck_assert_uint_eq(nets.open, 1);
	ck_assert_uint_eq(nets.waiting, (kernel.now - dial.start.request_at) / MS);
	ck_assert_uint_lt(nets.waiting, 500);
}
END_TEST

START_TEST(answer_that_comes_while_the_probes_are_looked_at_is_kept)
{
	static const enum paths_do ends[] = { PATHS_MOVE, PATHS_BEHIND };

	for (int i = 0; i < 2; i++) {
		nets.what = nets.leave = ends[i];
		nets.meanwhile = true;
		expect_on(dial_begin(false));
		kernel.now = dial.start.look_at;
		said();
		expect_on(step());
		expect_said("");
		ck_assert_uint_eq(nets.left, PATHS_WAIT); /* it wasn't left */
		ck_assert_uint_eq(dial.start.moves, 0);
		ck_assert_int_eq(dial.start.look_at, 0);
		ck_assert_uint_eq(nets.open, 0);
	}
}
END_TEST

START_TEST(path_that_loses_data_is_left_for_one_that_is_better)
{
	list_of(5);
	nets.what = PATHS_BEHIND;
	nets.leave = PATHS_MOVE;
	nets.elsewhere = 0;
	expect_on(dial_begin(false));
	said();
	kernel.now = dial.start.look_at;
	expect_on(step());
	ck_assert_int_eq(nets.left, PATHS_BEHIND);
	expect_said("end; bind 5 0; syn 2 data; ");
	ck_assert_uint_eq(dial.start.moves, 1);
}
END_TEST

static bool is_unanswered_still(void *owner)
{
	return owner == &nets;
}

START_TEST(look_that_decides_ends_the_survey)
{
	static const enum paths_do decisions[] = { PATHS_MOVE, PATHS_BEHIND, PATHS_STAY };
	const struct path_start_syn syn = { SURVEY_DATA, is_unanswered_still, &nets };
	const struct converters_query none = { 0 };
	struct path_start start;
	union sockaddr_ip addr;

	list_of(5);
	for (int i = 0; i < 3; i++) {
		path_start_init(&start, true, &in6addr_any);
		path_start_sent(&start, kernel.now);
		nets.what = PATHS_WAIT;
		nets.elsewhere = -1;
		ck_assert_int_eq(path_start_look(&start, &none, &syn, &addr), PATHS_WAIT);
		ck_assert_uint_eq(nets.open, 1);
		nets.what = nets.leave = decisions[i];
		nets.elsewhere = 0;
		ck_assert_int_eq(path_start_look(&start, &none, &syn, &addr), decisions[i]);
		ck_assert_uint_eq(nets.open, 0);
		ck_assert_int_eq(start.look_at, 0);
		ck_assert_uint_eq(start.moves, decisions[i] == PATHS_MOVE);
	}
}
END_TEST

START_TEST(converter_that_fails_takes_its_probes_along)
{
	expect_on(dial_begin(false));
	synack(TAKEN);
	answer(FULL);
	expect_on(step());
	kernel.now = dial.start.look_at;
	expect_on(step());
	ck_assert_uint_eq(nets.open, 1);
	synack(TAKEN);
	answer(FULL);
	ck_assert_int_eq(step(), DIAL_DIRECT);
	ck_assert_ptr_eq(dial.direct_reason, end.reason);
	ck_assert_uint_eq(nets.open, 0);
}
END_TEST

START_TEST(six_paths_are_asked_about_at_a_time)
{
	const struct path_start_syn syn = { SURVEY_DATA, NULL, NULL };
	const struct converters_query none = { 0 };
	struct path_start starts[7];
	union sockaddr_ip addr;

	for (int i = 0; i < 7; i++) {
		path_start_init(&starts[i], true, &in6addr_any);
		starts[i].path.id.source.s6_addr[15] = (uint8_t)(i + 1);
		path_start_sent(&starts[i], kernel.now);
		ck_assert_int_eq(path_start_look(&starts[i], &none, &syn, &addr), PATHS_WAIT);
	}
	ck_assert_uint_eq(nets.open, 6);
	ck_assert_uint_eq(nets.looks, 6);
	ck_assert_int_eq(starts[6].look_at, kernel.now + 20 * MS);
	path_start_end(&starts[2]);
	path_start_end(&starts[2]); /* it has none any more */
	ck_assert_uint_eq(nets.open, 5);
	path_start_look(&starts[6], &none, &syn, &addr);
	ck_assert_uint_eq(nets.open, 6);
	ck_assert_uint_eq(starts[6].survey, starts[2].survey + 3);
	path_start_repair_in_child();
	ck_assert_uint_eq(nets.open, 0);
	for (int i = 0; i < 7; i++)
		path_start_end(&starts[i]); /* the parent's: nothing of them is left here */
	ck_assert_uint_eq(nets.open, 0);
}
END_TEST

/* --- failed paths are asked whether they work again --- */

START_TEST(trial_holds_up_nobody)
{
	const struct path_id usual = { .converter = 0 };

	ck_assert_int_eq(path_trials_look(), 0); /* there is none */
	list_of(5);
	nets.list.paths[0].id.converter = 0;
	nets.chosen = nets.missed = 0;
	paths_note_failure(&usual, CACHE_PATH_SILENT);
	expect_on(dial_begin(false));
	expect_said("try 0 5; bind 5 0; syn 2 data; ");
	ck_assert_int_eq(path_trials_look(), kernel.now + 20 * MS);
	/* a connection on that path asks for itself */
	kernel.now = dial.start.look_at;
	nets.elsewhere = -1;
	expect_on(step());
	ck_assert_uint_eq(nets.looks, 1);
	dial_stop(&dial);
	ck_assert_int_eq(path_trials_look(), kernel.now + 20 * MS); /* the trial is still there */
	nets.trial_over = true;
	lines[0] = '\0';
	ck_assert_int_eq(path_trials_look(), 0);
	ck_assert(!is_logged("works again"));
	ck_assert_int_eq(path_trials_look(), 0);
}
END_TEST

START_TEST(trial_behind_a_connections_survey_is_looked_at)
{
	const struct path_id usual = { .converter = 0 };
	struct dial other;

	expect_on(dial_begin(false));
	kernel.now = dial.start.look_at;
	expect_on(step());
	other = dial;
	list_of(5);
	nets.list.paths[0].id.converter = 0;
	nets.chosen = nets.missed = 0;
	paths_note_failure(&usual, CACHE_PATH_SILENT);
	expect_on(dial_begin(false));
	ck_assert_int_eq(path_trials_look(), kernel.now + 20 * MS);
	nets.trial_over = true;
	ck_assert_int_eq(path_trials_look(), 0);
	dial_stop(&other);
	dial_stop(&dial);
	ck_assert_uint_eq(nets.open, 0);
}
END_TEST

static unsigned int trials;

static void trial_begins(void)
{
	trials++;
}

/* The path has failed, and was last asked three seconds ago. */
static void fail_a_while_ago(int converter)
{
	const struct cache_converter found = {
		.known = CACHE_PATH, .path = { .state = CACHE_PATH_SILENT, .doubts = 1, .asked = cache_now() - 3000 },
	};

	converters_renew_path(converter, &found);
}

START_TEST(connection_that_begins_elsewhere_tries_the_usual_path_once)
{
	const struct converters_query query = { 0 };
	struct path_start start;
	union sockaddr_ip addr;

	list_of(5);
	nets.chosen = 0;
	fail_a_while_ago(0);
	path_start_init(&start, true, &in6addr_any);
	ck_assert_int_eq(sockaddr_ip_parse(&addr, "192.0.2.1", 1234), 0);
	ck_assert_int_eq(path_start_choose(&start, &query, 0, &addr), 1);
	expect_said("try 0 0; ");
	ck_assert(start.tried_path);
	fail_a_while_ago(0);
	path_start_choose(&start, &query, 0, &addr);
	expect_said("");
	/* another one asks it again, but not at once */
	start.tried_path = false;
	path_start_choose(&start, &query, 0, &addr);
	expect_said("try 0 0; ");
	start.tried_path = false;
	path_start_choose(&start, &query, 0, &addr);
	expect_said("");
	/* a connection that begins on it is a trial itself */
	fail_a_while_ago(0);
	nets.chosen = -1;
	path_start_init(&start, true, &in6addr_any);
	ck_assert_int_eq(path_start_choose(&start, &query, 0, &addr), 0);
	expect_said("");
}
END_TEST

START_TEST(front_end_is_told_of_a_trial_that_was_sent)
{
	const struct path_id usual = { .converter = 0 };

	dial_host.trial_begins = trial_begins;
	trials = 0;
	list_of(5);
	nets.chosen = nets.missed = 0;
	paths_note_failure(&usual, CACHE_PATH_SILENT);
	nets.unasked = true;
	expect_on(dial_begin(false));
	ck_assert_uint_eq(trials, 0);
	ck_assert_int_eq(path_trials_look(), 0);
	nets.unasked = false;
	expect_on(dial_begin(false));
	ck_assert_uint_eq(trials, 1);
	ck_assert_int_eq(path_trials_look(), kernel.now + 20 * MS);
}
END_TEST

START_TEST(usual_path_that_works_again_is_told)
{
	const struct path_id usual = { .converter = 0 };

	list_of(5);
	nets.list.paths[0].id.source = in6addr_any;
	nets.chosen = nets.missed = 0;
	paths_note_failure(&usual, CACHE_PATH_SILENT);
	expect_on(dial_begin(false));
	ck_assert(is_logged("converter 192.0.2.2:1234: begins on wlan0\n")); /* its usual path */
	ck_assert(!dial.start.placed);
	nets.trial_over = nets.trial_works = true;
	ck_assert_int_eq(path_trials_look(), 0);
	ck_assert(is_logged("the usual path to the converter works again"));
}
END_TEST

/* --- the places of surveys --- */

static const struct converters_query none = { 0 };
static const struct path_start_syn unread = { SURVEY_DATA, NULL, NULL };

/* A connection on the network with this last byte of its address, whose SYN is unanswered. */
static void start_on(struct path_start *start, unsigned int source)
{
	path_start_init(start, true, &in6addr_any);
	start->path.id.source.s6_addr[15] = (uint8_t)source;
	path_start_sent(start, kernel.now);
}

static enum paths_do look_at(struct path_start *start)
{
	union sockaddr_ip addr;

	return path_start_look(start, &none, &unread, &addr);
}

/* Two connections on one network, which somebody waits for. */
static void start_both(struct path_start *one, struct path_start *other)
{
	dial_host.is_waiting = is_waiting;
	is_somebody_waiting = true;
	start_on(one, 5);
	start_on(other, 5);
}

START_TEST(survey_of_a_connection_that_began_anew_in_the_same_memory_is_left_behind)
{
	struct path_start start, other;

	start_both(&start, &other);
	look_at(&start);
	look_at(&other);
	ck_assert_uint_eq(nets.looks, 1);
	start_on(&start, 6); /* nobody has ended the first connection's survey */
	look_at(&other);
	ck_assert_uint_eq(nets.looks, 2);
	ck_assert_uint_eq(nets.open, 1);
}
END_TEST

START_TEST(survey_of_a_silent_connection_is_its_own)
{
	struct path_start start, other;

	start_both(&start, &other);
	start.look_at = other.look_at = 0;
	path_start_ask(&start, false);
	path_start_ask(&other, false);
	expect_said("ask 0 5; ");
	/* probes that it sent before are over */
	path_start_end(&start);
	look_at(&start);
	path_start_ask(&start, false);
	expect_said("ask 0 5; ");
	/* nor does the next SYN wait for what another connection has asked */
	ck_assert_int_eq(path_start_asked(&other), PATH_UNKNOWN);
	path_start_sent(&other, kernel.now);
	ck_assert_int_eq(path_start_asked(&other), PATH_UNASKED);
}
END_TEST

/* No other connection will tell whether this path works. */
START_TEST(path_is_unasked_without_room_for_a_survey)
{
	const struct path_id usual = { .converter = 0 };
	struct path_start starts[6], start;
	union sockaddr_ip addr;

	for (int i = 0; i < 6; i++) {
		start_on(&starts[i], (unsigned int)i + 1);
		look_at(&starts[i]);
	}
	start_on(&start, 7);
	start.look_at = 0;
	path_start_ask(&start, false);
	expect_said("");
	ck_assert_int_eq(path_start_asked(&start), PATH_UNASKED);
	/* nor is there room for a trial */
	list_of(5);
	nets.chosen = nets.missed = 0;
	paths_note_failure(&usual, CACHE_PATH_SILENT);
	path_start_init(&start, true, &in6addr_any);
	ck_assert_int_eq(sockaddr_ip_parse(&addr, "192.0.2.1", 1234), 0);
	ck_assert_int_eq(path_start_choose(&start, &none, 0, &addr), 1);
	expect_said("");
}
END_TEST

START_TEST(trial_is_nobodys_to_take)
{
	const struct path_id usual = { .converter = 0 };
	struct path_start starts[6];

	dial_host.is_waiting = is_waiting;
	is_somebody_waiting = false;
	list_of(5);
	nets.chosen = nets.missed = 0;
	paths_note_failure(&usual, CACHE_PATH_SILENT);
	expect_on(dial_begin(false));
	is_somebody_waiting = true;
	for (int i = 0; i < 6; i++) {
		start_on(&starts[i], (unsigned int)i + 11);
		look_at(&starts[i]);
	}
	ck_assert_uint_eq(nets.open, 5);
	ck_assert_int_gt(path_trials_look(), 0);
}
END_TEST

static struct path_start elsewhere;

static void look_elsewhere(void)
{
	ck_assert_int_eq(look_at(&elsewhere), PATHS_WAIT);
}

static void repair_and_look_elsewhere(void)
{
	path_start_repair_in_child();
	look_elsewhere();
}

START_TEST(threads_that_begin_at_once_send_the_probes_of_one)
{
	struct path_start start;

	start_on(&start, 5);
	start_on(&elsewhere, 6);
	nets.meanwhile_elsewhere = look_elsewhere;
	look_at(&start);
	ck_assert_uint_eq(elsewhere.survey, 0);
	ck_assert_uint_eq(nets.open, 1);
	path_start_end(&start);
	/* but in a child of fork() that thread isn't there */
	nets.meanwhile_elsewhere = repair_and_look_elsewhere;
	look_at(&start);
	ck_assert_uint_ne(elsewhere.survey, 0);
}
END_TEST

static void look_at_trials_elsewhere(void)
{
	ck_assert_int_gt(path_trials_look(), kernel.now);
}

START_TEST(trial_that_another_thread_looks_at_goes_on)
{
	const struct path_id usual = { .converter = 0 };

	list_of(5);
	nets.chosen = nets.missed = 0;
	paths_note_failure(&usual, CACHE_PATH_SILENT);
	expect_on(dial_begin(false));
	nets.meanwhile_elsewhere = look_at_trials_elsewhere;
	ck_assert_int_gt(path_trials_look(), kernel.now);
	ck_assert_ptr_null(nets.meanwhile_elsewhere);
}
END_TEST

/* Of two connections on a path that loses some SYNs, the second one's has more likely arrived. */
START_TEST(path_that_only_loses_syns_is_looked_at)
{
	static const enum cache_path states[] = { CACHE_PATH_LOSES, CACHE_PATH_SILENT };
	struct path_start start;

	list_of(5);
	for (int i = 0; i < 2; i++) {
		start_on(&start, 0);
		paths_note_failure(&start.path.id, states[i]);
		nets.elsewhere = i ? -1 : 0; /* nor is a silent one left for nothing */
		nets.looks = 0;
		ck_assert_int_eq(look_at(&start), PATHS_WAIT);
		ck_assert_uint_eq(nets.looks, 1);
		ck_assert_uint_eq(start.moves, 0);
		path_start_end(&start);
	}
	nets.begins = false; /* there is no other path */
	ck_assert_int_eq(look_at(&start), PATHS_STAY);
	ck_assert_uint_eq(nets.looks, 1);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		one_connection_asks_about_a_path, survey_that_was_left_behind, path_is_asked_once_at_a_time,
		path_that_is_known_is_looked_at_when_its_answer_is_due,
		look_is_told_what_waits_and_for_how_long, request_behind_the_handshake_is_looked_after_anew,
		answer_that_comes_while_the_probes_are_looked_at_is_kept, path_that_loses_data_is_left_for_one_that_is_better,
		look_that_decides_ends_the_survey, converter_that_fails_takes_its_probes_along, six_paths_are_asked_about_at_a_time,
		trial_holds_up_nobody, trial_behind_a_connections_survey_is_looked_at, connection_that_begins_elsewhere_tries_the_usual_path_once,
		front_end_is_told_of_a_trial_that_was_sent, usual_path_that_works_again_is_told,
		survey_of_a_connection_that_began_anew_in_the_same_memory_is_left_behind, survey_of_a_silent_connection_is_its_own,
		path_is_unasked_without_room_for_a_survey, trial_is_nobodys_to_take, threads_that_begin_at_once_send_the_probes_of_one,
		trial_that_another_thread_looks_at_goes_on, path_that_only_loses_syns_is_looked_at,
	};
	Suite *suite = suite_create("engine_surveys");
	TCase *tcase = tcase_create("engine_surveys");

	tcase_add_checked_fixture(tcase, setup, NULL);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(tcase, tests[i]);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
