/* SPDX-License-Identifier: BSD-3-Clause */
/* test_engine_dial.c - what a dial does for each order of events on its socket */
#include "config.h"

#include "client/converters.h"
#include "engine_world.h"
#include "run.h"

#include <errno.h>
#include <string.h>

/* --- what a converter says --- */

START_TEST(response_reaches_the_server)
{
	settings.withheld_ms = 700;
	expect_on(dial_begin(false));
	expect_said("syn 1 data; ");
	ck_assert(dial_wants_output(&dial));
	expect_on(step());
	expect_said("");
	ck_assert(dial_wants_output(&dial));
	synack(TAKEN & ~TCPI_OPT_TIMESTAMPS);
	expect_on(step());
	expect_said("peek; ");
	ck_assert(!dial_wants_output(&dial));
	ck_assert_uint_ge(kernel.watched, 2);
	kernel.info.tcpi_rtt = 50000; /* its round trip is noted already */
	answer(WHOLE);
	ck_assert_int_eq(step(), DIAL_REACHED);
	expect_said("peek; take 8; ");
	ck_assert(is_logged("203.0.113.1:443: converted over MPTCP, request taken in the SYN after "));
	ck_assert_uint_eq(paths_facts_kept(&dial.start.path.id).rtt_ms, 11);
}
END_TEST

START_TEST(round_trip_of_an_unknown_connection_is_none)
{
	expect_on(dial_begin(false));
	kernel.info = (struct tcp_info){ .tcpi_state = TCPINFO_UNKNOWN, .tcpi_rtt = 99000 };
	step();
	ck_assert_uint_eq(paths_facts_kept(&dial.start.path.id).rtt_ms, 0);
	expect_on(dial_begin(false));
	synack(TAKEN);
	kernel.info.tcpi_rtt = 0;
	step();
	ck_assert_uint_eq(paths_facts_kept(&dial.start.path.id).rtt_ms, 0);
}
END_TEST

START_TEST(converter_is_asked_over_tcp)
{
	kernel.no_mptcp = true;
	expect_on(dial_begin(false));
	ck_assert_int_eq(dial.attempt.way, ASK_TCP);
	ck_assert(!dial.attempt.synack_due);
	expect_said("syn 1 data; ");
	synack(TAKEN);
	answer(WHOLE);
	ck_assert_int_eq(step(), DIAL_REACHED);
	expect_said("peek; take 8; ");
}
END_TEST

/* The user excludes a network, and an endpoint is there: no attempt at any converter uses Multipath TCP. */
START_TEST(policy_of_the_user_is_kept_over_tcp)
{
	nets.policy_breach = "an endpoint is there";
	expect_on(dial_begin(false));
	ck_assert_int_eq(dial.attempt.way, ASK_TCP);
	ck_assert(!dial.mptcp && is_logged("asked over TCP, since an endpoint is there"));
	nets.policy_breach = NULL;
	expect_on(dial_begin(false));
	ck_assert_int_eq(dial.attempt.way, ASK_MPTCP_SYN);
	kernel.no_mptcp = true;
	nets.policy_breach = "nobody asks";
	expect_on(dial_begin(false));
	ck_assert(!is_logged("nobody asks"));
}
END_TEST

START_TEST(response_comes_in_pieces)
{
	expect_on(dial_begin(false));
	synack(TAKEN);
	answer(WHOLE);
	for (size_t i = 1; i < 8; i++) {
		kernel.len = i;
		expect_on(step());
		expect_said("peek; peek; ");
		ck_assert_uint_eq(dial.attempt.awaited, i < 4 ? 4 : 8);
		ck_assert_int_eq(dial.attempt.woke_early, i != 1 && i != 4);
		ck_assert_int_eq(kernel.wake_at, dial.attempt.ends);
	}
	/* what MSG_PEEK hasn't shown at first */
	kernel.len = 8;
	kernel.shown = 5;
	ck_assert_int_eq(step(), DIAL_REACHED);
	expect_said("peek; peek; take 8; ");
}
END_TEST

START_TEST(dribbling_ends_with_the_timeout)
{
	expect_on(dial_begin(false));
	synack(TAKEN);
	answer(WHOLE);
	kernel.len = 1;
	kernel.now += 2 * S;
	expect_on(step());
	kernel.len = 2;
	kernel.now += S - 1;
	expect_on(step());
	kernel.len = 3;
	kernel.now++;
	expect_on(step());
	ck_assert(is_logged("converter 192.0.2.1:1234: no answer in time, left alone for 30 s"));
	expect_said("peek; peek; peek; peek; peek; peek; end; syn 2 data; ");
}
END_TEST

/* The converter was waiting for the server. */
START_TEST(late_response_has_a_timeout_of_its_own)
{
	learn(WHOLE);
	expect_on(dial_begin(false));
	synack(TAKEN);
	kernel.now += 10 * S;
	kernel.info.tcpi_last_ack_recv = kernel.info.tcpi_last_data_recv = 100;
	expect_on(step());
	answer(WHOLE);
	kernel.len = 1;
	expect_on(step());
	ck_assert_int_eq(kernel.wake_at, kernel.now + 3 * S);
	kernel.len = 2;
	kernel.now += 3 * S - 1;
	expect_on(step());
	ck_assert_int_eq(kernel.wake_at, kernel.now + 1);
	kernel.now++;
	expect_on(step());
	ck_assert(is_logged("no answer in time"));
}
END_TEST

START_TEST(stream_that_ends_early_is_no_response)
{
	expect_on(dial_begin(false));
	synack(TAKEN);
	answer(WHOLE);
	kernel.len = 5;
	kernel.shut = true;
	expect_on(step());
	expect_said("peek; peek; end; syn 1 data; ");
	ck_assert(is_logged("192.0.2.1:1234: closed without a response, asked once more\n"));
	kernel.shut = true;
	synack(TAKEN);
	expect_on(step());
	expect_said("peek; end; syn 2 data; ");
	ck_assert(is_logged("192.0.2.1:1234: closed without a response, left alone for 30 s\n"));
	kernel.shut = true; /* and without a byte */
	synack(TAKEN);
	expect_on(step());
	kernel.shut = true;
	synack(TAKEN);
	ck_assert_int_eq(step(), DIAL_DIRECT);
	ck_assert_str_eq(end.reason, "closed without a response");
	ck_assert(is_logged("203.0.113.1:443: direct, the converter fails: closed without a response after "));
}
END_TEST

START_TEST(servers_failure_is_final)
{
	expect_on(dial_begin(false));
	synack(TAKEN);
	answer(REFUSED);
	ck_assert_int_eq(step(), DIAL_FAILED);
	ck_assert_int_eq(end.error, ECONNREFUSED);
	ck_assert(end.told);
	expect_said("peek; ");
	ck_assert(converters_is_proven(0));
	ck_assert(converters_admits(0, &dial.server)); /* it has tried */
}
END_TEST

START_TEST(refusal_is_about_one_server)
{
	expect_on(dial_begin(false));
	synack(TAKEN);
	answer(NOT_AUTHORIZED);
	expect_on(step());
	ck_assert(is_logged("left alone for 30 s for this server\n"));
	synack(TAKEN);
	answer(FULL);
	ck_assert_int_eq(step(), DIAL_DIRECT);
	ck_assert(is_logged("192.0.2.2:1234: Resource Exceeded, left alone for 7 s\n"));
	ck_assert(!end.told);
	/* both are left alone */
	ck_assert_int_eq(dial_begin(false), DIAL_REFUSED);
	ck_assert_int_eq(dial_refused(&dial, &end), DIAL_DIRECT);
	ck_assert(is_logged("203.0.113.1:443: direct: "));
}
END_TEST

START_TEST(nothing_goes_directly_where_it_must_not)
{
	settings.fail_closed = true;
	expect_on(dial_begin(false));
	for (int i = 0; i < 2; i++) {
		synack(TAKEN);
		answer(FULL);
		ck_assert_int_eq(step(), (i ? DIAL_FAILED : DIAL_IN_PROGRESS));
	}
	ck_assert_int_eq(end.error, ECONNREFUSED);
	end = (struct dial_end){ .verdict = POLICY_CONVERT, .reason = "all of them rest" };
	ck_assert_int_eq(dial_refused(&dial, &end), DIAL_FAILED);
	ck_assert(is_logged("203.0.113.1:443: failed: all of them rest, and CONVERT_FALLBACK is none\n"));
	end = (struct dial_end){ .verdict = POLICY_DIRECT_LOCAL, .reason = "it is local" };
	ck_assert_int_eq(dial_refused(&dial, &end), DIAL_DIRECT);
}
END_TEST

START_TEST(cookie_is_given_once)
{
	expect_on(dial_begin(false));
	synack(TAKEN);
	answer(COOKIE);
	expect_on(step());
	expect_said("peek; end; syn 1 data; ");
	ck_assert(kernel.request.has_cookie);
	synack(TAKEN);
	answer(COOKIE);
	expect_on(step());
	expect_said("peek; end; syn 2 data; ");
}
END_TEST

START_TEST(option_that_is_refused_is_left_out)
{
	settings.bypass_mptcp = true;
	expect_on(dial_begin(false));
	ck_assert(kernel.request.extended);
	synack(TAKEN);
	answer(OPTION);
	expect_on(step());
	expect_said("peek; end; syn 1 data; ");
	ck_assert(!kernel.request.extended);
}
END_TEST

/* The kernel knows nothing of the SYN any more. */
START_TEST(connection_that_was_reset_since)
{
	for (int i = 0; i < 4; i++) {
		expect_on(dial_begin(false));
		synack(TCPI_OPT_TIMESTAMPS);
		kernel.info.tcpi_state = TCPINFO_CLOSE;
		answer(WHOLE);
		ck_assert_int_eq(step(), DIAL_REACHED);
		ck_assert(is_logged("converted over MPTCP, reset since"));
		ck_assert(paths_take_syn_data(&dial.start.path.id));
		kernel.now += S;
	}
}
END_TEST

START_TEST(response_that_cannot_be_taken_fails)
{
	expect_on(dial_begin(false));
	synack(TAKEN);
	answer(WHOLE);
	kernel.lost_bytes = true;
	ck_assert_int_eq(step(), DIAL_FAILED);
	ck_assert_int_eq(end.error, ECONNRESET);
}
END_TEST

/* --- ways of asking --- */

START_TEST(each_way_of_asking_is_safer)
{
	expect_on(dial_begin(false));
	synack(TCPI_OPT_TIMESTAMPS);
	expect_on(step());
	expect_said("end; connect 1; ");
	ck_assert(is_logged("data in the SYN was not taken, asked behind the handshake"));
	ck_assert_int_eq(dial.attempt.way, ASK_MPTCP);
	ck_assert(dial.attempt.want_output && !dial.attempt.syn_data);
	synack(TCPI_OPT_TIMESTAMPS);
	kernel.fell_back = true;
	expect_on(step());
	expect_said("end; syn 1 data; ");
	ck_assert(is_logged("Multipath TCP is lost on the way, asked over TCP"));
	ck_assert(!dial.mptcp);
	synack(TAKEN);
	answer(WHOLE);
	ck_assert_int_eq(step(), DIAL_REACHED);
	ck_assert(is_logged("converted over TCP, request taken in the SYN"));
	ck_assert_int_eq(paths_mptcp(&(struct path_id){ .converter = 0 }), CACHE_MPTCP_LOST);
	/* the next one knows */
	expect_on(dial_begin(false));
	ck_assert(!dial.mptcp);
}
END_TEST

START_TEST(multipath_tcp_may_be_lost_behind_the_handshake)
{
	expect_on(dial_begin(false));
	synack(TAKEN);
	answer(WHOLE);
	kernel.fell_back = true;
	expect_on(step());
	expect_said("peek; end; syn 1 data; ");
	synack(TAKEN);
	answer(WHOLE);
	ck_assert_int_eq(step(), DIAL_REACHED);
}
END_TEST

/* CONVERT_TIMEOUT goes on, but half of it is left. */
START_TEST(timeout_goes_on_when_it_is_asked_again)
{
	int64_t ends;

	expect_on(dial_begin(false));
	ends = dial.attempt.ends;
	ck_assert_int_eq(ends, kernel.now + 3 * S);
	ck_assert_int_eq(dial.attempt.wake_at, kernel.now + S);
	kernel.now += S;
	synack(TCPI_OPT_TIMESTAMPS);
	expect_on(step());
	ck_assert_int_eq(dial.attempt.ends, ends);
	kernel.now += S;
	synack(TCPI_OPT_TIMESTAMPS);
	kernel.fell_back = true;
	expect_on(step());
	ck_assert_int_eq(dial.attempt.ends, kernel.now + 3 * S / 2);
}
END_TEST

START_TEST(what_was_written_cannot_be_asked_again)
{
	expect_on(dial_begin(false));
	dial.wrote = true;
	synack(TCPI_OPT_TIMESTAMPS);
	ck_assert_int_eq(step(), DIAL_FAILED);
	ck_assert_int_eq(end.error, ECONNRESET);
	expect_said("");
	expect_on(dial_begin(false));
	dial.wrote = true;
	synack(TAKEN);
	answer(COOKIE);
	ck_assert_int_eq(step(), DIAL_FAILED);
	expect_on(dial_begin(false));
	expect_said("syn 2 data; ");
	dial.wrote = true;
	kernel.info.tcpi_state = TCPINFO_CLOSE;
	kernel.read_error = ECONNREFUSED;
	ck_assert_int_eq(step(), DIAL_FAILED);
	ck_assert_int_eq(end.error, ECONNREFUSED);
}
END_TEST

/* --- output --- */

START_TEST(request_follows_a_syn_that_takes_no_data)
{
	kernel.syn_takes = -EOPNOTSUPP;
	kernel.takes = -EAGAIN;
	expect_on(dial_begin(false));
	expect_said("syn 1 data; connect 1; ");
	expect_on(step()); /* unanswered */
	synack(TCPI_OPT_TIMESTAMPS);
	kernel.takes = 4096;
	expect_on(step());
	expect_said("send 28; peek; ");
	ck_assert_int_eq(dial.start.request_at, kernel.now);
	ck_assert_int_gt(dial.start.look_at, kernel.now);
	ck_assert_int_eq(kernel.wake_at, dial.start.look_at);
	ck_assert_uint_eq(paths_facts_kept(&dial.start.path.id).rtt_ms, 11);
	ck_assert(kernel.request.has_info);
	answer(WHOLE);
	ck_assert_int_eq(step(), DIAL_REACHED);
	ck_assert(is_logged("request behind the handshake"));
}
END_TEST

START_TEST(early_data_follows_the_request)
{
	dial = (struct dial){ .ops = &ops, .started = kernel.now, .early = (const uint8_t *)"early data", .early_len = 10 };
	sockaddr_ip_parse(&dial.server, "203.0.113.1", 443);
	path_start_init(&dial.start, true, &in6addr_any);
	kernel.syn_takes = 32;
	expect_on(dial_next(&dial, false, &end));
	ck_assert_uint_eq(dial.attempt.sent, 32);
	ck_assert_uint_eq(dial.attempt.request_len, 28);
	ck_assert_mem_eq(kernel.message + 28, "earl", 4);
	said();
	synack(TAKEN);
	kernel.takes = 5;
	expect_on(step());
	expect_said("send 5; ");
	ck_assert_mem_eq(kernel.message, "y dat", 5);
	expect_on(step());
	expect_said("send 1; peek; ");
	ck_assert_mem_eq(kernel.message, "a", 1);
	ck_assert_int_eq(dial.start.request_at, 0); /* the request went with the SYN */
	kernel.len = (size_t)dial_message(&dial, kernel.stream, sizeof(kernel.stream));
	ck_assert_uint_eq(kernel.len, 38);
	ck_assert_mem_eq(kernel.stream + 28, "early data", 10);
	ck_assert_int_eq(dial_message(&dial, kernel.stream, 37), -ENOBUFS);
}
END_TEST

START_TEST(deferred_syn_waits)
{
	ck_assert_int_eq(dial_begin(true), DIAL_DEFERRED);
	expect_said("defer 1; ");
	ck_assert_int_eq(dial.attempt.ends, 0);
	dial.early = (const uint8_t *)"hello";
	dial.early_len = 5;
	kernel.now += 10 * S;
	ck_assert_int_eq(dial_send_deferred(&dial), 0);
	expect_said("send 33; ");
	ck_assert(dial.attempt.syn_data && dial.attempt.synack_due);
	ck_assert_int_eq(dial.attempt.ends, kernel.now + 3 * S);
	ck_assert_int_eq(dial.start.syn_at, kernel.now);
	synack(TAKEN);
	answer(WHOLE);
	ck_assert_int_eq(step(), DIAL_REACHED);
	kernel.takes = -EHOSTUNREACH;
	ck_assert_int_eq(dial_begin(true), DIAL_DEFERRED);
	ck_assert_int_eq(dial_send_deferred(&dial), -EHOSTUNREACH);
}
END_TEST

START_TEST(syn_that_cannot_be_deferred_goes)
{
	kernel.holds = 1;
	expect_on(dial_begin(true));
	expect_said("defer 1; syn 1 data; ");
	kernel.holds = -EINPROGRESS;
	expect_on(dial_begin(true));
	expect_said("defer 1; ");
	ck_assert(dial.attempt.want_output && !dial.attempt.syn_data && !dial.attempt.ask.silent);
	ck_assert_int_eq(dial.attempt.ends, kernel.now + 3 * S);
	ck_assert_int_eq(dial.start.syn_at, kernel.now);
	kernel.holds = -ENETUNREACH;
	ck_assert_int_eq(dial_begin(true), DIAL_REFUSED);
	expect_said("defer 1; defer 2; ");
}
END_TEST

/* --- errors of the kernel --- */

START_TEST(converter_that_cannot_be_reached_is_passed_over)
{
	kernel.syn_takes = -ENETUNREACH;
	ck_assert_int_eq(dial_begin(false), DIAL_REFUSED);
	expect_said("syn 1 data; syn 2 data; ");
	ck_assert_int_eq(end.error, ENETUNREACH);
	ck_assert_str_eq(end.reason, "Network is unreachable");
	ck_assert(is_logged("converter 192.0.2.1:1234: Network is unreachable\n"));
	kernel.syn_takes = 4096;
	kernel.binds = -EADDRNOTAVAIL;
	ck_assert_int_eq(dial_begin(false), DIAL_REFUSED);
	ck_assert_int_eq(end.error, EADDRNOTAVAIL);
	kernel.binds = 0;
	kernel.fits = -EAFNOSUPPORT;
	ck_assert_int_eq(dial_begin(false), DIAL_REFUSED);
	expect_said("");
	kernel.fits = 0;
	expect_on(dial_begin(false)); /* none of these is a reason to rest */
}
END_TEST

START_TEST(reset_of_a_converter)
{
	expect_on(dial_begin(false));
	kernel.info.tcpi_state = TCPINFO_CLOSE;
	kernel.read_error = ECONNRESET;
	kernel.error = ECONNREFUSED; /* says more */
	expect_on(step());
	expect_said("syn 1 data; peek; end; syn 1 data; ");
	ck_assert(is_logged("192.0.2.1:1234: Connection refused, asked once more\n"));
	ck_assert(!converters_rests(0, clock_seconds()));
	kernel.info.tcpi_state = TCPINFO_CLOSE;
	kernel.read_error = ECONNRESET;
	kernel.error = ECONNREFUSED;
	expect_on(step());
	expect_said("peek; end; syn 2 data; ");
	ck_assert(is_logged("192.0.2.1:1234: Connection refused, left alone for 30 s\n"));
	kernel.read_error = 0;
	synack(TAKEN);
	answer(WHOLE);
	ck_assert_int_eq(step(), DIAL_REACHED);
	/* one that has answered others refuses this request */
	expect_on(dial_begin(false));
	kernel.info.tcpi_state = TCPINFO_CLOSE;
	kernel.read_error = ECONNRESET;
	ck_assert_int_eq(step(), DIAL_DIRECT);
	ck_assert(is_logged("Connection reset by peer, left alone for 30 s for this server\n"));
}
END_TEST

START_TEST(name_has_to_be_resolved)
{
	ck_assert_int_eq(dial_begin(false), DIAL_RESOLVING);
	expect_said("");
	ck_assert_int_eq(dial_resolved(&dial, &end), DIAL_RESOLVING);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		response_reaches_the_server, round_trip_of_an_unknown_connection_is_none, converter_is_asked_over_tcp, policy_of_the_user_is_kept_over_tcp,
		response_comes_in_pieces, dribbling_ends_with_the_timeout, late_response_has_a_timeout_of_its_own,
		stream_that_ends_early_is_no_response, servers_failure_is_final, refusal_is_about_one_server,
		nothing_goes_directly_where_it_must_not, cookie_is_given_once, option_that_is_refused_is_left_out,
		connection_that_was_reset_since, response_that_cannot_be_taken_fails, each_way_of_asking_is_safer,
		multipath_tcp_may_be_lost_behind_the_handshake, timeout_goes_on_when_it_is_asked_again, what_was_written_cannot_be_asked_again,
		request_follows_a_syn_that_takes_no_data, early_data_follows_the_request, deferred_syn_waits, syn_that_cannot_be_deferred_goes,
		converter_that_cannot_be_reached_is_passed_over, reset_of_a_converter,
	};
	Suite *suite = suite_create("engine_dial");
	TCase *tcase = tcase_create("engine_dial");
	TCase *named = tcase_create("named");

	tcase_add_checked_fixture(named, setup_named, NULL);
	tcase_add_test(named, name_has_to_be_resolved);
	suite_add_tcase(suite, named);
	tcase_add_checked_fixture(tcase, setup, NULL);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(tcase, tests[i]);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
