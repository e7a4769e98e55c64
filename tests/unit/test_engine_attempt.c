/* SPDX-License-Identifier: BSD-3-Clause */
/* test_engine_attempt.c - what one attempt keeps of the one before, when it is looked at, and how it ends if it can't begin */
#include "config.h"

#include "client/converters.h"
#include "engine/attempt.h"
#include "engine_world.h"
#include "run.h"

#include <errno.h>
#include <string.h>

static void server_is(const char *text)
{
	dial = (struct dial){ .ops = &ops, .started = kernel.now, .may_confirm = true };
	ck_assert_int_eq(sockaddr_ip_parse(&dial.server, text, 443), 0);
	path_start_init(&dial.start, true, &in6addr_any);
	lines[0] = kernel.done[0] = '\0';
}

START_TEST(request_that_the_rfc_forbids_is_never_sent)
{
	uint8_t message[64];

	server_is("127.0.0.1");
	ck_assert_int_eq(dial_next(&dial, false, &end), DIAL_REFUSED);
	ck_assert_int_eq(end.error, EINVAL);
	expect_said("");
	ck_assert_int_eq(dial_message(&dial, message, sizeof(message)), -EINVAL);
	dial.early = (const uint8_t *)"early";
	dial.early_len = 5;
	ck_assert_int_eq(dial_message(&dial, message, sizeof(message)), -EINVAL);
	server_is("203.0.113.1");
	expect_on(dial_next(&dial, false, &end));
	ck_assert_int_eq(dial_message(&dial, message, sizeof(message)), dial.attempt.request_len);
}
END_TEST

START_TEST(safer_way_that_fails_at_once_lets_no_converter_rest)
{
	expect_on(dial_begin(false));
	kernel.connects = -EPERM;
	said();
	expect_on(dial_anew(&dial, ASK_MPTCP, &end));
	ck_assert(is_logged("converter 192.0.2.1:1234: Operation not permitted, before a packet was sent"));
	ck_assert(!converters_rests(0, clock_seconds()));
	expect_said("connect 1; end; syn 2 data; ");
	/* and one that succeeds is none */
	kernel.connects = 0;
	expect_on(dial_anew(&dial, ASK_MPTCP, &end));
	expect_said("connect 2; ");
	ck_assert_int_eq(dial.attempt.way, ASK_MPTCP);
}
END_TEST

START_TEST(first_look_leaves_time_to_ask_the_path)
{
	settings.timeout_ms = 1500;
	expect_on(dial_begin(false));
	ck_assert_int_eq(dial.attempt.ends, kernel.now + 1500 * MS);
	ck_assert_int_eq(dial.attempt.wake_at, kernel.now + 750 * MS);
	settings.timeout_ms = 2000; /* as long as an interval */
	expect_on(dial_begin(false));
	ck_assert_int_eq(dial.attempt.wake_at, kernel.now + S);
	settings.timeout_ms = 9000;
	expect_on(dial_begin(false));
	ck_assert_int_eq(dial.attempt.wake_at, kernel.now + 3 * S);
}
END_TEST

START_TEST(front_end_wakes_for_the_earlier_of_converter_and_path)
{
	expect_on(dial_begin(false));
	dial.attempt.wake_at = kernel.now + 5;
	dial.start.look_at = kernel.now + 6;
	attempt_wake(&dial);
	ck_assert_int_eq(kernel.wake_at, kernel.now + 5);
	dial.start.look_at = kernel.now + 4;
	attempt_wake(&dial);
	ck_assert_int_eq(kernel.wake_at, kernel.now + 4);
	dial.start.look_at = 0;
	attempt_wake(&dial);
	ck_assert_int_eq(kernel.wake_at, kernel.now + 5);
	dial.attempt.wake_at = 0;
	attempt_wake(&dial);
	ck_assert_int_eq(kernel.wake_at, 0);
	dial.start.look_at = kernel.now + 4;
	attempt_wake(&dial);
	ck_assert_int_eq(kernel.wake_at, kernel.now + 4);
}
END_TEST

/* The number of surveys is small: one that nobody needs any more must be free for others. */
START_TEST(survey_of_the_attempt_before_ends)
{
	list_of(9);
	expect_on(dial_begin(false));
	kernel.now = dial.start.look_at;
	expect_on(step());
	ck_assert_uint_eq(nets.open, 1);
	kernel.takes = -EAGAIN; /* as before a SYN+ACK */
	expect_on(dial_anew(&dial, ASK_MPTCP, &end));
	ck_assert_uint_eq(nets.open, 0);
	kernel.now = dial.start.look_at;
	expect_on(step());
	ck_assert_uint_eq(nets.open, 1);
	dial_stop(&dial);
	ck_assert_uint_eq(nets.open, 0);
}
END_TEST

START_TEST(blind_request_forgets_the_attempt_before)
{
	learn(SILENCE);
	kernel.blind = true;
	expect_on(dial_begin(false));
	dial.attempt.repeated = dial.attempt.cookie_asked = true;
	dial.attempt.fallback_syn_at = 1;
	said();
	ck_assert(dial_blindly(&dial));
	expect_said("syn 1 data; ");
	ck_assert(dial.attempt.ask.blind && !dial.attempt.repeated && !dial.attempt.cookie_asked);
	ck_assert_int_eq(dial.attempt.fallback_syn_at, 0);
	ck_assert_uint_eq(dial.attempt.ask.attempt, 77);
	ck_assert_int_eq(dial.attempt.wake_at, 0); /* silence is the server's */
	/* a converter that no longer takes them */
	converters_forget_silence(0);
	ck_assert(!dial_blindly(&dial));
	expect_said("");
}
END_TEST

START_TEST(other_ways_keep_what_was_learned)
{
	expect_on(dial_begin(false));
	dial.attempt.repeated = dial.attempt.cookie_asked = dial.attempt.path_asked = true;
	dial.attempt.fallback_syn_at = 1;
	ck_assert_int_eq(attempt_again(&dial), 0);
	ck_assert(dial.attempt.repeated && dial.attempt.cookie_asked && !dial.attempt.path_asked);
	ck_assert_int_eq(dial.attempt.fallback_syn_at, 1);
	ck_assert_int_eq(dial.attempt.way, ASK_MPTCP_SYN);
}
END_TEST

START_TEST(deferred_syn_carries_the_learned_cookie)
{
	expect_on(dial_begin(false));
	synack(TAKEN);
	answer(COOKIE);
	expect_on(step());
	dial_stop(&dial);
	ck_assert_int_eq(dial_begin(true), DIAL_DEFERRED);
	ck_assert_int_eq(dial_send_deferred(&dial), 0);
	ck_assert(kernel.request.has_cookie);
}
END_TEST

/* A converter that offers all that there is. */
static const struct convert_withholding all = {
	.withheld = true, .limit_ms = 2000, .corrects = true, .silent = true, .blind = true, .repeats = true, .hold_times = true,
};

START_TEST(numbered_request_is_answered_before_it_is_repeated)
{
	kernel.offers = &all;
	learn(SUPPORTED);
	expect_on(dial_begin(false));
	ck_assert(kernel.request.silence.mptcp);
	ck_assert_uint_eq(kernel.request.silence.attempt, 0);
	ck_assert_uint_eq(kernel.request.hold_ms, 888);
	kernel.blind = true;
	expect_on(dial_begin(false));
	ck_assert(kernel.request.silence.blind);
	ck_assert_uint_eq(kernel.request.silence.attempt, 77);
	ck_assert_uint_eq(kernel.request.hold_ms, 588);
}
END_TEST

START_TEST(request_over_tcp_says_so)
{
	kernel.offers = &all;
	kernel.no_mptcp = settings.bypass_mptcp = true;
	learn(SUPPORTED);
	kernel.blind = true;
	expect_on(dial_begin(false));
	ck_assert(kernel.request.has_silence && kernel.request.silence.blind && !kernel.request.silence.mptcp);
	ck_assert_uint_eq(kernel.request.silence.attempt, 0); /* nobody repeats it */
	ck_assert(!kernel.request.has_hold_time);             /* a SYN that is sent again does no harm */
	kernel.blind = false;
	expect_on(dial_begin(false));
	ck_assert(!kernel.request.extended); /* the server's Multipath TCP would be of no use */
}
END_TEST

/* From now on the converter offers this, as it answers at once. */
static void offer(const struct convert_withholding *offers)
{
	kernel.offers = offers;
	learn(SUPPORTED);
}

START_TEST(blind_request_has_no_repeat_key_if_the_converter_ignores_repeats)
{
	struct convert_withholding offers = all;

	offers.repeats = false;
	offer(&offers);
	kernel.blind = true;
	expect_on(dial_begin(false));
	ck_assert(kernel.request.silence.blind);
	ck_assert_uint_eq(dial.attempt.ask.attempt, 0);
}
END_TEST

START_TEST(blind_request_that_may_not_be_in_the_syn_is_not_begun)
{
	struct convert_withholding offers = all;

	offers.corrects = false;
	offer(&offers);
	expect_on(dial_begin(false));
	kernel.blind = kernel.several = true;
	said();
	ck_assert(!dial_blindly(&dial));
	expect_said("");
	kernel.several = false;
	ck_assert(dial_blindly(&dial));
}
END_TEST

START_TEST(remedy_has_all_of_the_timeout)
{
	expect_on(dial_begin(false));
	kernel.now += S;
	synack(TAKEN);
	answer(COOKIE);
	expect_on(step());
	ck_assert_int_eq(dial.attempt.ends, kernel.now + 3 * S);
}
END_TEST

START_TEST(socket_that_cannot_have_multipath_tcp_is_asked_over_tcp)
{
	expect_on(dial_begin(false));
	kernel.only_tcp = true;
	expect_on(dial_anew(&dial, ASK_MPTCP, &end));
	ck_assert(!dial.mptcp);
	ck_assert_int_eq(dial.attempt.way, ASK_TCP);
}
END_TEST

START_TEST(front_end_that_holds_no_syn_sends_it)
{
	struct dial_ops impatient = ops;

	impatient.defer = NULL;
	server_is("203.0.113.1");
	dial.ops = &impatient;
	expect_on(dial_next(&dial, true, &end));
	expect_said("syn 1 data; ");
}
END_TEST

START_TEST(syn_or_request_is_unanswered_but_not_what_follows)
{
	expect_on(dial_begin(false));
	ck_assert(attempt_is_unanswered(&dial));
	synack(TAKEN);
	kernel.info.tcpi_unacked = 1; /* early data */
	ck_assert(!attempt_is_unanswered(&dial));
	dial.start.request_at = kernel.now;
	ck_assert(attempt_is_unanswered(&dial));
	kernel.info.tcpi_state = 8; /* TCP_CLOSE_WAIT */
	ck_assert(!attempt_is_unanswered(&dial));
}
END_TEST

/* A converter withholds no SYN without a request, so its answer tells the round trip. */
START_TEST(answer_to_a_syn_without_a_request_waited_for_nothing)
{
	settings.withheld_ms = 700;
	kernel.syn_takes = -EOPNOTSUPP;
	for (int i = 0; i < 2; i++) {
		expect_on(dial_begin(false));
		synack(TCPI_OPT_TIMESTAMPS);
		kernel.info.tcpi_rtt = i ? 500000 : 10000;
		expect_on(step());
	}
	ck_assert_uint_gt(paths_facts_kept(&dial.start.path.id).rtt_ms, 11);
}
END_TEST

/* The least round trip that a socket has seen may be that of the path before: connect(AF_UNSPEC) leaves it. */
START_TEST(round_trip_is_this_connections)
{
	expect_on(dial_begin(false));
	synack(TAKEN);
	answer(FULL);
	expect_on(step());
	synack(TAKEN);
	kernel.info.tcpi_min_rtt = 10000;
	kernel.info.tcpi_rtt = 200000;
	expect_on(step());
	ck_assert_uint_eq(dial.start.path.id.converter, 1);
	ck_assert_uint_eq(paths_facts_kept(&dial.start.path.id).rtt_ms, 201);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		request_that_the_rfc_forbids_is_never_sent, safer_way_that_fails_at_once_lets_no_converter_rest, first_look_leaves_time_to_ask_the_path,
		front_end_wakes_for_the_earlier_of_converter_and_path, survey_of_the_attempt_before_ends, blind_request_forgets_the_attempt_before,
		other_ways_keep_what_was_learned, deferred_syn_carries_the_learned_cookie, numbered_request_is_answered_before_it_is_repeated,
		request_over_tcp_says_so, blind_request_has_no_repeat_key_if_the_converter_ignores_repeats,
		blind_request_that_may_not_be_in_the_syn_is_not_begun, remedy_has_all_of_the_timeout,
		socket_that_cannot_have_multipath_tcp_is_asked_over_tcp, front_end_that_holds_no_syn_sends_it,
		syn_or_request_is_unanswered_but_not_what_follows, answer_to_a_syn_without_a_request_waited_for_nothing,
		round_trip_is_this_connections,
	};
	Suite *suite = suite_create("engine_attempt");
	TCase *tcase = tcase_create("engine_attempt");

	tcase_add_checked_fixture(tcase, setup, NULL);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(tcase, tests[i]);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
