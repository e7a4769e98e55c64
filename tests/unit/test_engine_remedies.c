/* SPDX-License-Identifier: BSD-3-Clause */
/* test_engine_remedies.c - after which failures a dial asks the same converter again, how, and what it learns from them */
#include "config.h"

#include "client/converters.h"
#include "engine/attempt.h"
#include "engine_world.h"
#include "run.h"

#include <errno.h>

static const struct path_id usual = { .converter = 0 };

/* The SYN, or the connection, is reset. */
static enum dial_state reset_by(int error)
{
	said();
	kernel.info.tcpi_state = TCPINFO_CLOSE;
	kernel.read_error = error;
	return step();
}

START_TEST(reset_of_an_unproven_converter_is_asked_about_once_more)
{
	expect_on(dial_begin(false));
	expect_on(reset_by(ECONNRESET));
	expect_said("peek; end; syn 1 data; ");
	ck_assert(is_logged("192.0.2.1:1234: Connection reset by peer, asked once more\n"));
}
END_TEST

/* A request that isn't silent any more has been made twice by then. */
START_TEST(silent_request_that_is_refused_twice_is_not_made_a_third_time)
{
	learn(SILENCE);
	expect_on(dial_begin(false));
	expect_on(reset_by(ECONNREFUSED));
	expect_said("peek; end; syn 1 data; ");
	expect_on(dial_begin(false));
	expect_on(reset_by(ECONNRESET));
	expect_said("peek; end; syn 1 data; ");
	ck_assert(!kernel.request.has_silence);
	kernel.read_error = 0;
	synack(TAKEN);
	answer(GARBAGE);
	expect_on(step());
	expect_said("peek; end; syn 2 data; ");
}
END_TEST

START_TEST(request_with_its_cookie_may_still_be_repeated)
{
	expect_on(dial_begin(false));
	synack(TAKEN);
	answer(COOKIE);
	expect_on(step());
	synack(TAKEN);
	answer(GARBAGE);
	expect_on(step());
	expect_said("peek; end; syn 1 data; ");
	ck_assert(is_logged("asked once more"));
	ck_assert(kernel.request.has_cookie);
}
END_TEST

/* A connection that is served with a cookie, which the converter has given. */
static void learn_cookie(void)
{
	expect_on(dial_begin(false));
	synack(TAKEN);
	answer(COOKIE);
	expect_on(step());
	synack(TAKEN);
	answer(WHOLE);
	ck_assert_int_eq(step(), DIAL_REACHED);
}

START_TEST(cookie_that_is_refused_is_forgotten)
{
	learn_cookie();
	expect_on(dial_begin(false));
	ck_assert(kernel.request.has_cookie);
	synack(TAKEN);
	answer(NOT_AUTHORIZED);
	expect_on(step());
	expect_said("peek; end; syn 1 data; ");
	ck_assert(!kernel.request.has_cookie);
}
END_TEST

START_TEST(cookie_is_not_forgotten_for_a_reset)
{
	learn_cookie();
	expect_on(dial_begin(false));
	expect_on(reset_by(ECONNRESET));
	expect_said("peek; end; syn 2 data; ");
	ck_assert(is_logged("Connection reset by peer, left alone for 30 s for this server\n"));
}
END_TEST

START_TEST(syn_that_was_sent_again_has_lost_its_data)
{
	expect_on(dial_begin(false));
	synack(TAKEN);
	kernel.info.tcpi_total_retrans = 1;
	expect_on(step());
	expect_said("end; connect 1; ");
	ck_assert_int_eq(dial.attempt.way, ASK_MPTCP);
}
END_TEST

START_TEST(data_that_two_syns_in_a_row_lose_goes_behind_the_handshake)
{
	for (int i = 0; i < 2; i++) {
		expect_on(dial_begin(false));
		ck_assert(dial.attempt.syn_data);
		synack(TCPI_OPT_TIMESTAMPS);
		kernel.now += S;
		expect_on(step());
	}
	ck_assert(!paths_take_syn_data(&usual));
}
END_TEST

START_TEST(request_behind_the_handshake_says_nothing_of_data_in_syns)
{
	kernel.syn_takes = -EOPNOTSUPP;
	expect_on(dial_begin(false));
	synack(TCPI_OPT_TIMESTAMPS);
	answer(WHOLE);
	ck_assert_int_eq(step(), DIAL_REACHED);
	ck_assert(!paths_syn_data_is_doubted(&usual));
}
END_TEST

START_TEST(lost_multipath_tcp_is_noted_at_once_if_the_converter_has_answered)
{
	expect_on(dial_begin(false));
	synack(TAKEN);
	answer(WHOLE);
	kernel.fell_back = true;
	expect_on(step());
	ck_assert_int_eq(paths_mptcp(&usual), CACHE_MPTCP_LOST);
}
END_TEST

/* A lost packet may be the cause of the first one. */
START_TEST(multipath_tcp_that_falls_back_twice_is_lost)
{
	learn(WHOLE);
	kernel.syn_takes = -EOPNOTSUPP;
	for (int i = 0; i < 2; i++) {
		kernel.now += S;
		expect_on(dial_begin(false));
		synack(0);
		kernel.fell_back = true;
		expect_on(step());
		ck_assert(!dial.mptcp);
		synack(0);
		answer(WHOLE);
		ck_assert_int_eq(step(), DIAL_REACHED);
		ck_assert_int_eq(paths_mptcp(&usual), i ? CACHE_MPTCP_LOST : CACHE_MPTCP_DOUBTED);
	}
}
END_TEST

START_TEST(path_that_loses_data_over_tcp_is_asked_over_tcp)
{
	kernel.no_mptcp = true;
	expect_on(dial_begin(false));
	kernel.now = dial.start.look_at;
	nets.what = nets.leave = PATHS_BEHIND;
	said();
	expect_on(step());
	ck_assert(!dial.mptcp);
	ck_assert_int_eq(dial.attempt.way, ASK_TCP);
}
END_TEST

START_TEST(move_that_fails_at_once_lets_no_converter_rest)
{
	list_of(5);
	nets.elsewhere = 0;
	expect_on(dial_begin(false));
	kernel.syn_takes = -EPERM;
	ck_assert_int_eq(dial_failed(&dial, EHOSTUNREACH, &end), DIAL_DIRECT);
	ck_assert(is_logged("converter 192.0.2.2:1234: Operation not permitted, before a packet was sent"));
	ck_assert(!converters_rests(0, clock_seconds()));
}
END_TEST

START_TEST(router_of_a_network_that_the_program_has_chosen)
{
	struct in6_addr source = { .s6_addr = { [10] = 0xff, [11] = 0xff, [15] = 9 } };

	expect_on(dial_begin(false));
	path_start_init(&dial.start, false, &source);
	expect_on(dial_failed(&dial, EHOSTUNREACH, &end)); /* to the next converter */
	ck_assert(is_logged("No route to host, on the network that the program has chosen"));
	ck_assert(!converters_rests(0, clock_seconds()));
}
END_TEST

START_TEST(connection_with_bytes_of_the_program_moves_nowhere)
{
	list_of(5);
	nets.elsewhere = 0;
	expect_on(dial_begin(false));
	dial.wrote = true;
	said();
	ck_assert_int_eq(dial_failed(&dial, EHOSTUNREACH, &end), DIAL_FAILED);
	ck_assert_int_eq(end.error, EHOSTUNREACH);
	expect_said("");
}
END_TEST

/* Something else on the path would send no Convert error. */
START_TEST(error_of_a_converter_restores_a_path_that_refused)
{
	paths_note_failure(&usual, CACHE_PATH_REFUSES);
	expect_on(dial_begin(false));
	synack(TAKEN);
	answer(COOKIE);
	expect_on(step());
	ck_assert_int_eq(paths_facts_kept(&usual).state, CACHE_PATH_WORKS);
}
END_TEST

/* Whatever is known of the path: a host that has sent a part is there. */
START_TEST(part_of_a_response_shows_that_the_host_is_there)
{
	expect_on(dial_begin(false));
	synack(TAKEN);
	answer(WHOLE);
	kernel.len = 1;
	expect_on(step());
	kernel.now = dial.attempt.ends;
	expect_on(step());
	ck_assert(is_logged("no answer in time, left alone for 30 s\n"));
}
END_TEST

START_TEST(host_that_is_alive_on_a_network_that_the_program_has_chosen)
{
	struct in6_addr source = { .s6_addr = { [10] = 0xff, [11] = 0xff, [15] = 9 } };

	expect_on(dial_begin(false));
	path_start_init(&dial.start, false, &source);
	kernel.unprobed = true;
	synack(TAKEN);
	kernel.now += 3 * S;
	expect_on(step());
	ck_assert(is_logged("no answer in time, left alone for 30 s for this server\n"));
}
END_TEST

START_TEST(server_that_was_asked_about_silently_speaks_no_multipath_tcp)
{
	learn(SILENCE);
	settings.bypass_mptcp = true;
	for (int i = 0; i < 2; i++) {
		expect_on(dial_begin(false));
		ck_assert(kernel.request.has_silence);
		ck_assert_int_eq(kernel.request.extended, i == 0);
		synack(TAKEN);
		ck_assert_int_eq(step(), DIAL_REACHED);
	}
}
END_TEST

START_TEST(request_of_the_next_attempt_is_not_behind_the_handshake)
{
	kernel.syn_takes = -EOPNOTSUPP;
	expect_on(dial_begin(false));
	synack(TCPI_OPT_TIMESTAMPS);
	expect_on(step());
	ck_assert_int_eq(attempt_syn(&dial), SURVEY_BEHIND);
	kernel.now += MS;
	ck_assert_int_eq(dial_send_rest(&dial), 0); /* nothing is left */
	ck_assert_int_eq(dial.start.request_at, kernel.now - MS);
	kernel.syn_takes = 4096;
	answer(FULL);
	expect_on(step());
	ck_assert_int_eq(attempt_syn(&dial), SURVEY_DATA);
}
END_TEST

START_TEST(round_trip_of_an_unanswered_syn_is_none)
{
	expect_on(dial_begin(false));
	kernel.info.tcpi_min_rtt = kernel.info.tcpi_rtt = 10000; /* of the attempt before */
	expect_on(step());
	ck_assert(!dial.attempt.answered);
}
END_TEST

START_TEST(resolver_that_finds_no_converter)
{
	converters_rest(0, 30);
	converters_rest(1, 30);
	ck_assert_int_eq(dial_begin(false), DIAL_REFUSED);
	ck_assert_int_eq(dial_resolved(&dial, &end), DIAL_DIRECT);
	ck_assert_int_eq(end.error, ENETUNREACH);
	ck_assert_str_eq(end.reason, "no converter answers");
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		reset_of_an_unproven_converter_is_asked_about_once_more, silent_request_that_is_refused_twice_is_not_made_a_third_time,
		request_with_its_cookie_may_still_be_repeated, cookie_that_is_refused_is_forgotten, cookie_is_not_forgotten_for_a_reset,
		syn_that_was_sent_again_has_lost_its_data, data_that_two_syns_in_a_row_lose_goes_behind_the_handshake,
		request_behind_the_handshake_says_nothing_of_data_in_syns, lost_multipath_tcp_is_noted_at_once_if_the_converter_has_answered,
		multipath_tcp_that_falls_back_twice_is_lost, path_that_loses_data_over_tcp_is_asked_over_tcp,
		move_that_fails_at_once_lets_no_converter_rest, router_of_a_network_that_the_program_has_chosen,
		connection_with_bytes_of_the_program_moves_nowhere, error_of_a_converter_restores_a_path_that_refused,
		part_of_a_response_shows_that_the_host_is_there, host_that_is_alive_on_a_network_that_the_program_has_chosen,
		server_that_was_asked_about_silently_speaks_no_multipath_tcp, request_of_the_next_attempt_is_not_behind_the_handshake,
		round_trip_of_an_unanswered_syn_is_none, resolver_that_finds_no_converter,
	};
	Suite *suite = suite_create("engine_remedies");
	TCase *tcase = tcase_create("engine_remedies");

	tcase_add_checked_fixture(tcase, setup, NULL);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(tcase, tests[i]);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
