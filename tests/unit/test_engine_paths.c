/* SPDX-License-Identifier: BSD-3-Clause */
/* test_engine_paths.c - on which network a dial begins, and when it begins anew on another one */
#include "config.h"

#include "client/converters_facts.h"
#include "engine_world.h"
#include "run.h"

#include <errno.h>
#include <string.h>

static void list_of(unsigned int source)
{
	nets.list = (struct path_list){ .count = 1, .names = { "wlan0" } };
	nets.list.paths[0] = (struct path){ .id = { .converter = 1 }, .device = 7 };
	nets.list.paths[0].id.source.s6_addr[10] = nets.list.paths[0].id.source.s6_addr[11] = 0xff;
	nets.list.paths[0].id.source.s6_addr[15] = (uint8_t)source;
	ck_assert_int_eq(sockaddr_ip_parse(&nets.list.addrs[0], "192.0.2.2", 1234), 0);
}

START_TEST(silent_path_is_left)
{
	expect_on(dial_begin(false));
	ck_assert_int_gt(dial.start.look_at, kernel.now);
	ck_assert_int_eq(kernel.wake_at, dial.start.look_at);
	kernel.now = dial.start.look_at;
	list_of(5);
	expect_on(step());
	ck_assert_uint_eq(nets.open, 1);
	ck_assert_int_eq(nets.syn, SURVEY_DATA);
	ck_assert_int_eq(dial.start.look_at, kernel.now + 30 * MS);
	expect_said("syn 1 data; ");
	kernel.now = dial.start.look_at;
	nets.what = nets.leave = PATHS_MOVE;
	nets.elsewhere = 0;
	expect_on(step());
	expect_said("end; bind 5 0; syn 2 data; ");
	ck_assert(is_logged("converter 192.0.2.1:1234: the path to it is silent, asked by wlan0"));
	ck_assert_uint_eq(nets.open, 0);
	ck_assert_uint_eq(dial.start.moves, 1);
	ck_assert_uint_eq(dial.attempt.converter, 1);
	/* the converter is silent there, too: no network is better than the usual one */
	nets.what = PATHS_STAY;
	kernel.now += 4 * S;
	ck_assert_int_eq(step(), DIAL_ON);
	ck_assert(path_is_usual(&dial.start.own.id));
}
END_TEST

START_TEST(path_that_stays)
{
	expect_on(dial_begin(false));
	kernel.now = dial.start.look_at;
	nets.what = PATHS_STAY;
	expect_on(step());
	ck_assert_int_eq(dial.start.look_at, 0);
	ck_assert_int_eq(kernel.wake_at, dial.attempt.wake_at);
	ck_assert_uint_eq(nets.open, 0);
	/* nothing to be found out */
	expect_on(dial_begin(false));
	kernel.now = dial.start.look_at;
	nets.begins = false;
	expect_on(step());
	ck_assert_int_eq(dial.start.look_at, 0);
	/* an answer that came meanwhile */
	expect_on(dial_begin(false));
	kernel.now = dial.start.look_at;
	synack(TAKEN);
	nets.looks = 0;
	expect_on(step());
	ck_assert_int_eq(dial.start.look_at, 0);
	ck_assert_uint_eq(nets.looks, 0);
	/* what was written is behind the request: it can't begin anew */
	expect_on(dial_begin(false));
	dial.wrote = true;
	kernel.now = dial.start.look_at;
	expect_on(step());
	ck_assert_uint_eq(nets.looks, 0);
}
END_TEST

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
	paths_note_failure(&dial.start.own.id, CACHE_PATH_SILENT);
	list_of(6);
	nets.elsewhere = 0;
	kernel.now = dial.start.look_at;
	expect_on(step());
	ck_assert_uint_eq(nets.looks, 1);
	ck_assert_uint_eq(dial.start.own.id.source.s6_addr[15], 6);
	ck_assert_int_eq(dial.start.own.device, 7);
}
END_TEST

static bool is_somebody_waiting;

static bool is_waiting(const struct path_start *start)
{
	(void)start;
	return is_somebody_waiting;
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

START_TEST(path_that_works_is_kept_for_the_next_converter)
{
	list_of(5);
	nets.elsewhere = 0;
	expect_on(dial_begin(false));
	expect_on(dial_failed(&dial, EHOSTUNREACH, &end));
	ck_assert(dial.start.placed);
	paths_note_answer(&dial.start.own.id, 10, true);
	nets.elsewhere = -1;
	dial.start.look_at = 0;
	kernel.now += 3 * S;
	expect_on(step());
	ck_assert_uint_eq(dial.attempt.converter, 0);
	ck_assert_uint_eq(dial.start.own.id.source.s6_addr[15], 5);
}
END_TEST

START_TEST(syns_with_data_are_lost)
{
	expect_on(dial_begin(false));
	kernel.now = dial.start.look_at;
	nets.what = nets.leave = PATHS_BEHIND;
	said();
	expect_on(step());
	expect_said("end; connect 1; ");
	ck_assert(is_logged("SYNs with data are lost on the way, asked behind the handshake"));
	/* nor does the request behind the handshake get through */
	synack(TCPI_OPT_TIMESTAMPS);
	kernel.info.tcpi_unacked = 1;
	expect_on(step());
	ck_assert_int_eq(dial.start.request_at, kernel.now);
	kernel.now = dial.start.look_at;
	nets.what = PATHS_WAIT;
	expect_on(step());
	ck_assert_int_eq(nets.syn, SURVEY_BEHIND);
	kernel.now = dial.start.look_at;
	kernel.info.tcpi_unacked = 0;
	expect_on(step());
	ck_assert_int_eq(dial.start.look_at, 0);
	ck_assert_uint_eq(nets.open, 0);
}
END_TEST

START_TEST(network_that_refuses_is_left)
{
	expect_on(dial_begin(false));
	list_of(5);
	nets.elsewhere = 0;
	said();
	expect_on(dial_failed(&dial, EHOSTUNREACH, &end));
	expect_said("end; bind 5 0; syn 2 data; ");
	ck_assert(is_logged("the path to it leads nowhere (No route to host), begins on wlan0"));
	nets.elsewhere = -1; /* there is no other one */
	ck_assert_int_eq(dial_failed(&dial, EHOSTUNREACH, &end), DIAL_ON);
	ck_assert(path_is_usual(&dial.start.own.id));
	expect_said("end; bind 0 0; syn 1 data; ");
	expect_on(dial_begin(false)); /* what is no network's word */
	expect_said("syn 1 data; ");
	nets.elsewhere = 0;
	ck_assert_int_eq(dial_failed(&dial, ECONNREFUSED, &end), DIAL_DIRECT);
	expect_said("end; ");
}
END_TEST

START_TEST(no_more_than_so_many_moves)
{
	list_of(5);
	nets.elsewhere = 0;
	expect_on(dial_begin(false));
	for (int i = 0; i < PATHS_MOVES_MAX; i++)
		expect_on(dial_failed(&dial, EHOSTUNREACH, &end));
	ck_assert_uint_eq(dial.start.moves, PATHS_MOVES_MAX);
	ck_assert_int_eq(dial.start.look_at, 0);
	dial_failed(&dial, EHOSTUNREACH, &end);
	ck_assert_uint_eq(dial.start.moves, PATHS_MOVES_MAX);
	ck_assert(path_is_usual(&dial.start.own.id));
}
END_TEST

START_TEST(connection_begins_on_a_path_that_works)
{
	const struct path_id usual = { .converter = 0 };

	list_of(5);
	nets.chosen = nets.missed = 0;
	expect_on(dial_begin(false)); /* the usual one is as good as any */
	expect_said("syn 1 data; ");
	paths_note_failure(&usual, CACHE_PATH_SILENT);
	expect_on(dial_begin(false));
	expect_said("try 1 5; bind 5 0; syn 2 data; ");
	ck_assert(is_logged("converter 192.0.2.2:1234: begins on wlan0\n"));
	ck_assert(dial.start.placed && dial.start.tried_path);
	ck_assert_int_gt(path_trials_look(), kernel.now);
	nets.trial_over = nets.trial_works = true;
	ck_assert_int_eq(path_trials_look(), 0);
	ck_assert(is_logged("the preferred path to the converter works again"));
	ck_assert_int_eq(path_trials_look(), 0);
	nets.list.paths[0].backup = nets.list.paths[0].bind_device = true;
	expect_on(dial_begin(false));
	ck_assert(is_logged("begins on wlan0, which is for backup\n"));
	ck_assert_ptr_nonnull(strstr(said(), "bind 5 7; syn 2 data; "));
	/* a program that has chosen its network stays there */
	dial_begin(false);
	said();
	dial.tried = 0;
	path_start_init(&dial.start, false, &in6addr_any);
	expect_on(dial_next(&dial, false, &end));
	expect_said("syn 1 data; ");
	ck_assert_int_eq(dial.start.look_at, 0);
}
END_TEST

START_TEST(paths_that_are_forbidden)
{
	nets.forbidden = true;
	ck_assert_int_eq(dial_begin(false), DIAL_REFUSED);
	ck_assert_int_eq(end.error, ENETUNREACH);
	ck_assert_int_eq(end.verdict, POLICY_CONVERT);
	ck_assert_str_eq(end.reason, "CONVERT_PATHS allows no network that leads to a converter");
	path_start_init(&dial.start, false, &in6addr_any);
	expect_on(dial_next(&dial, false, &end));
}
END_TEST

START_TEST(direct_connections_take_a_network_that_works)
{
	expect_on(dial_begin(false));
	said();
	ck_assert_int_eq(path_start_bind_directly(&dial.start, 3, &dial.server), 0);
	expect_said("direct 3 0 0; ");
	nets.elsewhere = 0;
	ck_assert_int_eq(path_start_bind_directly(&dial.start, 3, &dial.server), 0);
	ck_assert(is_logged("203.0.113.1:443: directly by wlan0, since the usual network is silent\n"));
	nets.refuses = true;
	ck_assert_int_eq(path_start_bind_directly(&dial.start, 3, &dial.server), -ENETUNREACH);
	ck_assert(is_logged("not directly, since CONVERT_PATHS allows no network that leads there\n"));
	nets.refuses = false;
	dial.start.placed = true; /* it was given back */
	said();
	ck_assert_int_eq(path_start_bind_directly(&dial.start, 3, &dial.server), 0);
	expect_said("bind 0 0; direct 3 1 0; ");
	list_of(5);
	dial.start.own = nets.list.paths[0]; /* it has moved, and stays there */
	said();
	ck_assert_int_eq(path_start_bind_directly(&dial.start, 3, &dial.server), 0);
	expect_said("direct 3 1 7; ");
	ck_assert_int_eq(path_start_bind(&dial.start, 99), -EADDRINUSE);
	ck_assert_int_eq(path_start_bind(&dial.start, 98), -EADDRNOTAVAIL);
	dial.start.may_move = false;
	ck_assert_int_eq(path_start_bind_directly(&dial.start, 3, &dial.server), 0);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		silent_path_is_left, path_that_stays, one_connection_asks_about_a_path, survey_that_was_left_behind,
		path_that_works_is_kept_for_the_next_converter, syns_with_data_are_lost, network_that_refuses_is_left, no_more_than_so_many_moves,
		connection_begins_on_a_path_that_works, paths_that_are_forbidden, direct_connections_take_a_network_that_works,
	};
	Suite *suite = suite_create("engine_paths");
	TCase *tcase = tcase_create("engine_paths");

	tcase_add_checked_fixture(tcase, setup, NULL);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(tcase, tests[i]);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
