/* SPDX-License-Identifier: BSD-3-Clause */
/* test_engine_paths.c - on which network a dial begins, and when it begins anew on another one */
#include "config.h"

#include "client/converters.h"
#include "client/exchange.h"
#include "engine_world.h"
#include "run.h"

#include <errno.h>
#include <string.h>

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
	ck_assert_int_eq(step(), DIAL_IN_PROGRESS);
	ck_assert(path_is_usual(&dial.start.path.id));
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

START_TEST(path_that_works_is_kept_for_the_next_converter)
{
	list_of(5);
	nets.elsewhere = 0;
	expect_on(dial_begin(false));
	expect_on(dial_failed(&dial, EHOSTUNREACH, &end));
	ck_assert(dial.start.placed);
	paths_note_answer(&dial.start.path.id, 10, true);
	nets.elsewhere = -1;
	dial.start.look_at = 0;
	kernel.now += 3 * S;
	expect_on(step());
	ck_assert_uint_eq(dial.attempt.converter, 0);
	ck_assert_uint_eq(dial.start.path.id.source.s6_addr[15], 5);
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
	ck_assert_uint_eq(nets.tried, 0); /* any converter */
	nets.elsewhere = -1; /* there is no other one */
	ck_assert_int_eq(dial_failed(&dial, EHOSTUNREACH, &end), DIAL_IN_PROGRESS);
	ck_assert(path_is_usual(&dial.start.path.id));
	expect_said("end; bind 0 0; syn 1 data; ");
	ck_assert_int_eq(nets.refused, CACHE_PATH_SILENT);
}
END_TEST

/* A reset, or bytes that are no response, are the path's fault until another path says the same. */
START_TEST(path_that_refuses_is_left)
{
	const struct path_id usual = { .converter = 0 };

	for (int bytes = 0; bytes < 2; bytes++) {
		converters_forget();
		nets.tried = 0;
		expect_on(dial_begin(false));
		list_of(5);
		nets.list.paths[0].id.converter = 0;
		nets.list.addrs[0] = *converters_address(0);
		nets.elsewhere = 0;
		said();
		if (bytes) {
			synack(0);
			kernel.fell_back = true;
			expect_on(step()); /* over TCP: whoever has answered doesn't speak Multipath TCP */
			kernel.fell_back = false;
			synack(0);
			answer(GARBAGE);
			said();
			expect_on(step());
		} else {
			expect_on(dial_failed(&dial, ECONNREFUSED, &end));
		}
		ck_assert_int_eq(nets.refused, CACHE_PATH_REFUSES);
		ck_assert_uint_eq(nets.tried, ~1u); /* the same converter by another path */
		ck_assert_int_eq(paths_facts_kept(&usual).state, CACHE_PATH_REFUSES);
		ck_assert(is_logged("the path to it refuses ("));
		ck_assert(!converters_rests(0, clock_seconds()));
		/* as for a converter that nobody has asked */
		ck_assert_int_eq(paths_mptcp(&(struct path_id){ .converter = 0 }), CACHE_MPTCP_UNKNOWN);
		expect_said(bytes ? "send 28; peek; try 0 0; end; bind 5 0; syn 1 data; " : "try 0 0; end; bind 5 0; syn 1 data; ");
		ck_assert(dial.mptcp);
		nets.elsewhere = -1; /* the other path confirms it */
		ck_assert_int_eq(dial_failed(&dial, ECONNREFUSED, &end), DIAL_IN_PROGRESS);
		ck_assert(converters_rests(0, clock_seconds()));
		expect_said("end; bind 0 0; syn 2 data; ");
		dial_stop(&dial);
	}
}
END_TEST

/* Something on the path may accept connections: only a response restores it. */
START_TEST(response_restores_a_path_that_refused)
{
	const struct path_id usual = { .converter = 0 };

	paths_note_failure(&usual, CACHE_PATH_REFUSES);
	expect_on(dial_begin(false));
	synack(TAKEN);
	kernel.info.tcpi_rtt = 10000;
	expect_on(step());
	ck_assert_int_eq(paths_facts_kept(&usual).state, CACHE_PATH_REFUSES);
	answer(WHOLE);
	ck_assert_int_eq(step(), DIAL_REACHED);
	ck_assert_int_eq(paths_facts_kept(&usual).state, CACHE_PATH_WORKS);
}
END_TEST

/* So does a SYN+ACK that confirms the server of a silent request, but neither says anything about a path that was silent. */
START_TEST(silent_answer_restores_a_path_that_refused)
{
	const struct path_id usual = { .converter = 0 };
	struct path_start start;

	learn(SILENCE);
	paths_note_failure(&usual, CACHE_PATH_REFUSES);
	expect_on(dial_begin(false));
	synack(TAKEN);
	ck_assert_int_eq(step(), DIAL_REACHED);
	ck_assert_int_eq(paths_facts_kept(&usual).state, CACHE_PATH_WORKS);
	list_of(5);
	path_start_init(&start, true, &nets.list.paths[0].id.source);
	paths_note_failure(&start.path.id, CACHE_PATH_SILENT);
	path_start_served(&start);
	ck_assert_int_eq(paths_facts_kept(&start.path.id).state, CACHE_PATH_SILENT);
}
END_TEST

/* A direct connection would use the usual path: better one that refuses only the converter than one that is silent. */
START_TEST(refusal_elsewhere_gives_back_what_only_refuses)
{
	static const enum cache_path states[] = { CACHE_PATH_SILENT, CACHE_PATH_REFUSES };
	const struct path_id usual = { .converter = 1 };
	const struct converters_query query = { 0 };
	struct path_start start;
	union sockaddr_ip addr;

	list_of(5);
	for (int i = 0; i < 2; i++) {
		converters_forget();
		paths_note_failure(&usual, states[i]);
		path_start_init(&start, true, &in6addr_any);
		start.path = nets.list.paths[0];
		start.placed = true;
		ck_assert(!path_start_refused(&start, &query, CACHE_PATH_REFUSES, "why", &addr));
		ck_assert_int_eq(path_is_usual(&start.path.id), states[i] == CACHE_PATH_REFUSES);
	}
}
END_TEST

/* The next converter is asked on the network on which this one has answered with an error. */
START_TEST(network_of_a_converter_that_answers_is_kept)
{
	list_of(5);
	nets.elsewhere = 0;
	expect_on(dial_begin(false));
	expect_on(dial_failed(&dial, EHOSTUNREACH, &end));
	nets.elsewhere = -1;
	synack(TAKEN);
	kernel.info.tcpi_rtt = 0; /* nothing is known of the path */
	answer(FULL);
	expect_on(step());
	ck_assert_ptr_nonnull(strstr(said(), "end; bind 5 0; syn 1 data; "));
	ck_assert_uint_eq(dial.start.path.id.source.s6_addr[15], 5);
}
END_TEST

START_TEST(cookie_is_asked_for_once_on_all_paths)
{
	list_of(5);
	nets.elsewhere = 0;
	nets.list.paths[0].id.converter = 0;
	nets.list.addrs[0] = *converters_address(0);
	expect_on(dial_begin(false));
	synack(TAKEN);
	answer(COOKIE);
	expect_on(step());
	ck_assert(dial.attempt.cookie_asked);
	expect_on(dial_failed(&dial, EHOSTUNREACH, &end));
	ck_assert(dial.start.placed);
	ck_assert(dial.attempt.cookie_asked);
}
END_TEST

START_TEST(loss_of_multipath_tcp_is_noted_when_a_converter_has_answered)
{
	const struct path_id usual = { .converter = 0 };

	kernel.syn_takes = -EOPNOTSUPP;
	expect_on(dial_begin(false));
	synack(0);
	kernel.fell_back = true;
	expect_on(step());
	ck_assert(!dial.mptcp);
	ck_assert_int_eq(paths_mptcp(&usual), CACHE_MPTCP_UNKNOWN);
	synack(0);
	answer(WHOLE);
	ck_assert_int_eq(step(), DIAL_REACHED);
	ck_assert_int_eq(paths_mptcp(&usual), CACHE_MPTCP_LOST);
	/* data that isn't taken is another loss */
	converters_forget();
	kernel.syn_takes = 4096;
	expect_on(dial_begin(false));
	synack(TCPI_OPT_TIMESTAMPS);
	expect_on(step());
	synack(TCPI_OPT_TIMESTAMPS);
	answer(WHOLE);
	ck_assert_int_eq(step(), DIAL_REACHED);
	ck_assert(dial.mptcp);
	ck_assert_int_ne(paths_mptcp(&usual), CACHE_MPTCP_LOST);
	ck_assert(exchange_keeps_mptcp(&settings, &usual));
}
END_TEST

/* A converter that refuses this client has answered: it isn't something else in its place. */
START_TEST(converter_that_refuses_has_answered)
{
	expect_on(dial_begin(false));
	list_of(5);
	nets.elsewhere = 0;
	synack(TAKEN);
	answer(NOT_AUTHORIZED);
	expect_on(step());
	ck_assert(converters_is_proven(0));
	ck_assert(!is_logged("asked once more") && !is_logged("the path to it refuses"));
	expect_said("peek; end; syn 2 data; ");
}
END_TEST

START_TEST(subflows_that_would_break_the_policy_keep_it_on_tcp)
{
	expect_on(dial_begin(false));
	ck_assert(dial.mptcp);
	ck_assert(!is_logged("asked over TCP"));
	dial_stop(&dial);
	nets.policy_breach = "wlan0 may have none";
	expect_on(dial_begin(false));
	ck_assert(!dial.mptcp);
	ck_assert(is_logged("converter 192.0.2.1:1234: asked over TCP, since wlan0 may have none\n"));
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
	ck_assert(path_is_usual(&dial.start.path.id));
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
	ck_assert_str_eq(end.reason, "CONVERT_PATHS or a quota allows no network that leads to a converter");
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
	ck_assert(!is_logged("directly by"));
	nets.elsewhere = 0;
	ck_assert_int_eq(path_start_bind_directly(&dial.start, 3, &dial.server), 0);
	ck_assert(is_logged("203.0.113.1:443: directly by wlan0, since the usual network is silent\n"));
	nets.refuses = true;
	ck_assert_int_eq(path_start_bind_directly(&dial.start, 3, &dial.server), -ENETUNREACH);
	ck_assert(is_logged("not directly, since CONVERT_PATHS or a quota allows no network that leads there\n"));
	nets.refuses = false;
	dial.start.placed = true; /* it was given back */
	said();
	ck_assert_int_eq(path_start_bind_directly(&dial.start, 3, &dial.server), 0);
	expect_said("bind 0 0; direct 3 1 0; ");
	list_of(5);
	dial.start.path = nets.list.paths[0]; /* it has moved, and stays there */
	said();
	ck_assert_int_eq(path_start_bind_directly(&dial.start, 3, &dial.server), 0);
	expect_said("direct 3 1 7; ");
	ck_assert_int_eq(path_start_bind(&dial.start, 99), -EADDRINUSE);
	ck_assert_int_eq(path_start_bind(&dial.start, 98), -EADDRNOTAVAIL);
	dial.start.may_move = false;
	said();
	ck_assert_int_eq(path_start_bind_directly(&dial.start, 3, &dial.server), 0);
	expect_said("");
}
END_TEST

/* --- which path --- */

START_TEST(networks_that_the_user_has_named_are_looked_for)
{
	list_of(5);
	nets.chosen = 0;
	settings.paths.count = 1;
	expect_on(dial_begin(false));
	expect_said("bind 5 0; syn 2 data; ");
	/* the usual path of the same converter is nothing to tell */
	nets.list.paths[0].id = (struct path_id){ .converter = 0 };
	expect_on(dial_begin(false));
	ck_assert(!is_logged("begins on"));
	/* where none of them leads there the connection begins as if nothing were known */
	nets.chosen = -1;
	expect_on(dial_begin(false));
	expect_said("syn 1 data; ");
}
END_TEST

START_TEST(network_is_kept_for_addresses_of_its_family)
{
	const struct path_id usual = { .converter = 0 };
	const struct converters_query query = { 0 };
	struct path_start start;
	union sockaddr_ip addr;

	paths_note_failure(&usual, CACHE_PATH_SILENT);
	list_of(5);
	nets.chosen = 0;
	path_start_init(&start, true, &in6addr_any);
	ck_assert_int_eq(sockaddr_ip_parse(&addr, "2001:db8::1", 1234), 0);
	ck_assert_int_eq(path_start_choose(&start, &query, 0, &addr), 1);
	ck_assert(start.placed);
	ck_assert(sockaddr_ip_equal(&addr, &nets.list.addrs[0]));
	/* IPv4, as its source is */
	nets.list.paths[0].id.source.s6_addr[15] = 6;
	ck_assert_int_eq(path_start_choose(&start, &query, 0, &addr), 0);
	ck_assert_uint_eq(start.path.id.source.s6_addr[15], 5);
	ck_assert_int_eq(start.path.id.converter, 0);
	/* IPv6 needs another one */
	ck_assert_int_eq(sockaddr_ip_parse(&addr, "2001:db8::1", 1234), 0);
	ck_assert_int_eq(path_start_choose(&start, &query, 0, &addr), 1);
	ck_assert_uint_eq(start.path.id.source.s6_addr[15], 6);
	/* and so does IPv4 where the source is of IPv6 */
	start.path.id.source = (struct in6_addr){ .s6_addr = { 0xfd, [15] = 9 } };
	ck_assert_int_eq(sockaddr_ip_parse(&addr, "192.0.2.1", 1234), 0);
	ck_assert_int_eq(path_start_choose(&start, &query, 0, &addr), 1);
	ck_assert_uint_eq(start.path.id.source.s6_addr[15], 6);
}
END_TEST

START_TEST(program_that_has_chosen_its_network_is_told_of_no_other)
{
	const struct converters_query query = { 0 };
	struct path_start start;
	union sockaddr_ip addr;

	list_of(5);
	nets.elsewhere = 0;
	path_start_init(&start, false, &nets.list.paths[0].id.source);
	ck_assert(!path_start_refused(&start, &query, CACHE_PATH_SILENT, "why", &addr));
	ck_assert_uint_eq(start.moves, 0);
	path_start_answered(&start, 10, true);
	ck_assert_uint_eq(paths_facts_kept(&start.path.id).rtt_ms, 0);
	path_start_init(&start, true, &in6addr_any);
	ck_assert(path_start_refused(&start, &query, CACHE_PATH_SILENT, "why", &addr));
	ck_assert_uint_eq(start.moves, 1);
}
END_TEST

START_TEST(answer_on_the_usual_path_restores_it)
{
	const struct path_id usual = { .converter = 0 };
	struct path_start start;

	paths_note_failure(&usual, CACHE_PATH_SILENT);
	path_start_init(&start, true, &in6addr_any);
	path_start_answered(&start, 10, true);
	ck_assert_int_eq(paths_facts_usual(0).state, CACHE_PATH_WORKS);
	ck_assert_uint_eq(paths_facts_usual(0).rtt_ms, 10);
	/* an answer elsewhere says nothing of it */
	paths_note_failure(&usual, CACHE_PATH_SILENT);
	list_of(5);
	path_start_init(&start, true, &nets.list.paths[0].id.source);
	paths_note_failure(&start.path.id, CACHE_PATH_SILENT);
	path_start_answered(&start, 10, true);
	ck_assert_int_eq(paths_facts_usual(0).state, CACHE_PATH_SILENT);
	ck_assert_int_eq(paths_facts_kept(&start.path.id).state, CACHE_PATH_SILENT); /* that takes a trial */
}
END_TEST

START_TEST(answer_that_waited_for_its_server_tells_no_longer_round_trip)
{
	expect_on(dial_begin(false));
	synack(TAKEN);
	expect_on(step());
	ck_assert_uint_eq(paths_facts_kept(&dial.start.path.id).rtt_ms, 11);
	settings.withheld_ms = 700;
	expect_on(dial_begin(false));
	synack(TAKEN & ~TCPI_OPT_TIMESTAMPS);
	kernel.info.tcpi_rtt = 500000;
	expect_on(step());
	ck_assert_uint_eq(paths_facts_kept(&dial.start.path.id).rtt_ms, 11);
	settings.withheld_ms = 0;
	kernel.no_mptcp = true;
	expect_on(dial_begin(false));
	synack(TAKEN);
	kernel.info.tcpi_rtt = 500000;
	kernel.now += S;
	expect_on(step());
	ck_assert_uint_gt(paths_facts_kept(&dial.start.path.id).rtt_ms, 11);
}
END_TEST

/* A program's socket on a network of the list. */
static void start_on_list(struct path_start *start)
{
	path_start_init(start, true, &in6addr_any);
	list_of(5);
	start->path = nets.list.paths[0];
}

START_TEST(move_that_did_not_help_is_given_back)
{
	const struct converters_query query = { 0 };
	struct path_start start;
	union sockaddr_ip addr;

	start_on_list(&start);
	path_start_give_back(&start); /* the program's own, which wasn't moved */
	ck_assert(!path_is_usual(&start.path.id));
	start.placed = true;
	path_start_give_back(&start);
	ck_assert(path_is_usual(&start.path.id));
	ck_assert_int_eq(start.path.id.converter, 1);
	ck_assert(start.placed);
	/* nor is there a network behind the one that refuses */
	start.path = nets.list.paths[0];
	ck_assert(!path_start_refused(&start, &query, CACHE_PATH_SILENT, "why", &addr));
	ck_assert(path_is_usual(&start.path.id));
}
END_TEST

/* An IPv4 source would be no use to an IPv6 address, even if its usual path works. */
START_TEST(network_of_another_family_is_given_back)
{
	const struct converters_query query = { 0 };
	struct path_start start;
	union sockaddr_ip addr;

	start_on_list(&start);
	start.placed = true;
	ck_assert_int_eq(sockaddr_ip_parse(&addr, "2001:db8::1", 1234), 0);
	ck_assert_int_eq(path_start_choose(&start, &query, 0, &addr), 0);
	ck_assert(path_is_usual(&start.path.id));
	ck_assert_int_eq(start.path.device, 0);
	ck_assert_int_eq(path_start_bind(&start, 3), 0); /* away from the network before */
	expect_said("bind 0 0; ");
	/* and so it is where the list has the usual path of another converter */
	start.path = nets.list.paths[0];
	nets.list.paths[0].id.source = in6addr_any;
	nets.chosen = 0;
	ck_assert_int_eq(path_start_choose(&start, &query, 0, &addr), 1);
	ck_assert_int_eq(path_start_bind(&start, 3), 0);
	expect_said("bind 0 0; ");
	/* a socket that is bound to a device can't be bound to none, or to another one */
	ck_assert(!path_start_needs_socket(&start, 3));
	ck_assert(path_start_needs_socket(&start, 97));
	start.path.device = 5;
	ck_assert(path_start_needs_socket(&start, 97)); /* an address is enough for this path */
	start.path.bind_device = true;
	ck_assert(!path_start_needs_socket(&start, 97));
	start.path.device = 6;
	ck_assert(path_start_needs_socket(&start, 97));
	start.placed = false; /* the program has bound it */
	ck_assert(!path_start_needs_socket(&start, 97));
}
END_TEST

START_TEST(connection_tries_one_failed_path)
{
	const struct converters_query query = { 0 };
	struct path_start start;
	union sockaddr_ip addr;

	list_of(5);
	nets.chosen = nets.missed = 0;
	paths_note_failure(&(struct path_id){ .converter = 0 }, CACHE_PATH_SILENT);
	path_start_init(&start, true, &in6addr_any);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(sockaddr_ip_parse(&addr, "2001:db8::1", 1234), 0);
		ck_assert_int_eq(path_start_choose(&start, &query, 0, &addr), 1);
		expect_said(i ? "" : "try 1 5; ");
	}
}
END_TEST

/* That is the path's data, which a SYN without data doesn't show. */
START_TEST(answer_restores_no_path_that_takes_no_data)
{
	struct path_start start;

	path_start_init(&start, true, &in6addr_any);
	paths_note_failure(&start.path.id, CACHE_PATH_DATALESS);
	path_start_answered(&start, 10, true);
	ck_assert_int_eq(paths_facts_usual(0).state, CACHE_PATH_DATALESS);
}
END_TEST

START_TEST(program_that_has_chosen_its_network_learns_from_other_processes)
{
	const struct cache_converter note = { .path = { .state = CACHE_PATH_SILENT, .doubts = 1, .until = cache_in(60) } };
	const struct converters_query query = { 0 };
	struct path_start start;
	union sockaddr_ip addr;

	list_of(5);
	path_start_init(&start, false, &nets.list.paths[0].id.source);
	ck_assert_int_eq(cache_converter_update(user_cache(), converters_address(0), path_fingerprint(&start.path.id.source), CACHE_PATH,
						cache_now(), &note), 0);
	ck_assert_int_eq(path_start_choose(&start, &query, 0, &addr), 0);
	ck_assert_int_eq(paths_facts_kept(&start.path.id).state, CACHE_PATH_SILENT);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		silent_path_is_left, path_that_stays, path_that_works_is_kept_for_the_next_converter, syns_with_data_are_lost,
		network_that_refuses_is_left, path_that_refuses_is_left, response_restores_a_path_that_refused,
		silent_answer_restores_a_path_that_refused, refusal_elsewhere_gives_back_what_only_refuses,
		network_of_a_converter_that_answers_is_kept, cookie_is_asked_for_once_on_all_paths,
		loss_of_multipath_tcp_is_noted_when_a_converter_has_answered, converter_that_refuses_has_answered,
		subflows_that_would_break_the_policy_keep_it_on_tcp, no_more_than_so_many_moves, connection_begins_on_a_path_that_works, paths_that_are_forbidden,
		direct_connections_take_a_network_that_works, networks_that_the_user_has_named_are_looked_for,
		network_is_kept_for_addresses_of_its_family, program_that_has_chosen_its_network_is_told_of_no_other,
		answer_on_the_usual_path_restores_it, answer_that_waited_for_its_server_tells_no_longer_round_trip,
		move_that_did_not_help_is_given_back, network_of_another_family_is_given_back, connection_tries_one_failed_path,
		answer_restores_no_path_that_takes_no_data,
	};
	Suite *suite = suite_create("engine_paths");
	TCase *tcase = tcase_create("engine_paths");
	TCase *cached = tcase_create("cached");

	tcase_add_checked_fixture(tcase, setup, NULL);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(tcase, tests[i]);
	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(cached, setup_cached, teardown_cached);
	tcase_add_test(cached, program_that_has_chosen_its_network_learns_from_other_processes);
	suite_add_tcase(suite, cached);
	return test_run(suite);
}
