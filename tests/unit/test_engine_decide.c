/* SPDX-License-Identifier: BSD-3-Clause */
/* test_engine_decide.c - what a dial does next, for each thing that can be known of it and seen of its socket */
#include "config.h"

#include "engine/decide.h"
#include "run.h"

#include <check.h>
#include <linux/tcp.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define S CLOCK_NS_PER_S
#define MS CLOCK_NS_PER_MS
#define STARTED (INT64_C(12345) * S)
#define TIMEOUT_MS 3000u
#define ENDS (STARTED + 3 * S)
#define TAKEN (TCPI_OPT_SYN_DATA | TCPI_OPT_TIMESTAMPS)

/* A request behind the handshake, or one of which nothing in the SYN+ACK matters. */
static struct dial dial_asked(void)
{
	return (struct dial){
		.started = STARTED,
		.mptcp = true,
		.may_confirm = true,
		.attempt = { .ends = ENDS, .wake_at = STARTED + S, .path_asked = true },
	};
}

/* A connection whose SYN+ACK has come, and from which something was heard at @heard. */
static struct dial_seen established(int64_t heard)
{
	return (struct dial_seen){ .looked = true, .state = TCPINFO_ESTABLISHED, .options = TAKEN, .heard_at = heard, .proven = true };
}

static struct dial_decision at(const struct dial *dial, const struct dial_seen *seen, int64_t after)
{
	return decide(dial, seen, TIMEOUT_MS, STARTED + after);
}

#define expect(dial, seen, after, expected) ck_assert_int_eq(at(&(dial), &(seen), (after)).what, (expected))

static void expect_wait(const struct dial *dial, const struct dial_seen *seen, int64_t after, int64_t until)
{
	const struct dial_decision decision = at(dial, seen, after);

	ck_assert_int_eq(decision.what, DO_WAIT);
	ck_assert_int_eq(decision.at, until ? STARTED + until : 0);
}

static void expect_anew(const struct dial *dial, const struct dial_seen *seen, enum ask_way way)
{
	const struct dial_decision decision = at(dial, seen, 0);

	ck_assert_int_eq(decision.what, DO_BEGIN_ANEW);
	ck_assert_int_eq(decision.way, way);
}

static void expect_give_up(const struct dial *dial, const struct dial_seen *seen, int64_t after, bool alive)
{
	const struct dial_decision decision = at(dial, seen, after);

	ck_assert_int_eq(decision.what, DO_GIVE_UP);
	ck_assert_int_eq(decision.alive, alive);
}

/* --- the SYN+ACK --- */

START_TEST(synack_is_looked_at_where_it_matters_only)
{
	struct dial dial = dial_asked();
	struct dial_seen seen = { 0 };

	expect(dial, seen, 0, DO_READ);
	dial.attempt.synack_due = true;
	expect(dial, seen, 0, DO_LOOK);
	dial.attempt.synack_due = false;
	dial.attempt.confirmable = true;
	expect(dial, seen, 0, DO_LOOK);
	dial.attempt.confirmable = false;
	dial.attempt.silence_due = true;
	expect(dial, seen, 0, DO_LOOK);
}
END_TEST

/* As long as the SYN is unanswered nothing is read, and the rest of the message is offered once. */
START_TEST(unanswered_syn_is_waited_for)
{
	struct dial dial = dial_asked();
	struct dial_seen seen = { .looked = true, .state = TCPINFO_SYN_SENT };

	for (int due = 0; due < 3; due++) {
		dial.attempt.synack_due = due == 0;
		dial.attempt.confirmable = due == 1;
		dial.attempt.silence_due = due == 2;
		expect_wait(&dial, &seen, 0, 0);
		expect_wait(&dial, &seen, S - 1, 0);
		expect_wait(&dial, &seen, S, 2 * S);
	}
	dial.attempt.silence_due = false;
	dial.attempt.synack_due = true;
	dial.attempt.want_output = true;
	expect(dial, seen, 0, DO_SEND);
	seen.full = true;
	expect_wait(&dial, &seen, 0, 0);
	dial.attempt.silence_due = true;
	seen.full = false;
	expect_wait(&dial, &seen, 0, 0);
}
END_TEST

START_TEST(silence_before_the_synack_is_the_converters)
{
	struct dial dial = dial_asked();
	struct dial_seen seen = { .looked = true, .state = TCPINFO_SYN_SENT, .response = RESPONSE_NOTHING, .proven = true };

	expect_wait(&dial, &seen, 5 * S / 2, 3 * S);
	expect_wait(&dial, &seen, 3 * S - 1, 3 * S);
	expect_give_up(&dial, &seen, 3 * S, false);
}
END_TEST

/* The answer has half of CONVERT_TIMEOUT, or an interval. */
START_TEST(path_is_asked_before_a_silent_converter_is_blamed)
{
	struct dial dial = dial_asked();
	struct dial_seen seen = { .looked = true, .state = TCPINFO_SYN_SENT, .response = RESPONSE_NOTHING, .proven = true };

	dial.attempt.path_asked = false;
	ck_assert_int_eq(decide_ask_at(&dial.attempt, TIMEOUT_MS), STARTED + 3 * S / 2);
	expect_wait(&dial, &seen, S, 3 * S / 2);
	expect(dial, seen, 3 * S / 2, DO_ASK_PATH);
	expect(dial, seen, 3 * S - 1, DO_ASK_PATH);
	expect_give_up(&dial, &seen, 3 * S, false);
	seen = established(STARTED + 10 * MS);
	seen.response = RESPONSE_NOTHING;
	seen.keepalive_set = true;
	dial.attempt.keepalive_since = STARTED + S;
	expect_wait(&dial, &seen, 1010 * MS, 1260 * MS);
	expect(dial, seen, 1260 * MS, DO_ASK_PATH);
	expect_give_up(&dial, &seen, 3 * S, false);
	/* no answer would come in time at the very end */
	seen.heard_at = STARTED + 500 * MS;
	expect(dial, seen, 3 * S - 1, DO_ASK_PATH);
	expect_give_up(&dial, &seen, 3 * S, false);
	seen.heard_at = STARTED + 10 * MS;
	dial.attempt.keepalive_since = 0; /* it can't be probed, and counts as alive */
	expect_wait(&dial, &seen, 2 * S, 2250 * MS);
}
END_TEST

START_TEST(lost_multipath_tcp_begins_anew)
{
	struct dial dial = dial_asked();
	struct dial_seen seen = established(STARTED);

	dial.attempt.synack_due = true;
	expect(dial, seen, 0, DO_LOOK_AT_MPTCP);
	seen.mptcp = MPTCP_LOST;
	expect_anew(&dial, &seen, ASK_TCP);
	seen.mptcp = MPTCP_HOLDS;
	expect(dial, seen, 0, DO_READ);
	/* data in the SYN: that it was taken says it all */
	dial.attempt.syn_data = true;
	seen.mptcp = MPTCP_UNSEEN;
	expect(dial, seen, 0, DO_READ);
	seen.sent_again = true;
	expect_anew(&dial, &seen, ASK_MPTCP);
	seen.sent_again = false;
	seen.options = TCPI_OPT_TIMESTAMPS;
	expect_anew(&dial, &seen, ASK_MPTCP);
	/* a connection that was refused tells nothing; nor is it looked at twice */
	seen.state = TCPINFO_CLOSE;
	expect(dial, seen, 0, DO_READ);
	seen.state = TCPINFO_ESTABLISHED;
	dial.attempt.synack_due = false;
	expect(dial, seen, 0, DO_READ);
}
END_TEST

START_TEST(silent_request_needs_no_response)
{
	struct dial dial = dial_asked();
	struct dial_seen seen = established(STARTED);

	dial.attempt.silence_due = true;
	expect(dial, seen, 0, DO_LOOK_AT_MPTCP);
	seen.mptcp = MPTCP_LOST;
	expect_anew(&dial, &seen, ASK_TCP);
	seen.mptcp = MPTCP_HOLDS;
	expect(dial, seen, 0, DO_REACHED_SILENTLY);
	dial.mptcp = false;
	seen.mptcp = MPTCP_UNSEEN;
	expect(dial, seen, 0, DO_REACHED_SILENTLY);
	/* one that was accepted and has been closed since */
	seen.state = TCPINFO_CLOSE;
	expect(dial, seen, 0, DO_REACHED_SILENTLY);
	seen.state = TCPINFO_ESTABLISHED;
	/* early data */
	dial.attempt.want_output = true;
	expect(dial, seen, 0, DO_SEND);
	seen.full = true;
	expect_wait(&dial, &seen, 2 * S, 0);
	seen.full = false;
	seen.broken = true;
	ck_assert_int_eq(at(&dial, &seen, 0).what, DO_FAIL);
	ck_assert(at(&dial, &seen, 0).final);
}
END_TEST

START_TEST(silence_takes_both_facts)
{
	static const uint8_t options[] = { 0, TCPI_OPT_SYN_DATA, TCPI_OPT_TIMESTAMPS };
	struct dial dial = dial_asked();
	struct dial_seen seen = established(STARTED);

	dial.attempt.silence_due = true;
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		seen.options = options[i];
		expect(dial, seen, 0, DO_READ);
	}
	seen.state = TCPINFO_UNKNOWN; /* the kernel doesn't say, yet */
	expect_wait(&dial, &seen, 0, 0);
}
END_TEST

START_TEST(blind_request_is_lost_without_both_facts)
{
	struct dial dial = dial_asked();
	struct dial_seen seen = established(STARTED);

	dial.attempt.silence_due = dial.attempt.ask.blind = true;
	seen.mptcp = MPTCP_HOLDS;
	expect(dial, seen, 0, DO_REACHED_SILENTLY);
	seen.options = TCPI_OPT_TIMESTAMPS;
	expect(dial, seen, 0, DO_BLIND_LOST);
	seen.state = TCPINFO_CLOSE; /* the error tells more */
	expect(dial, seen, 0, DO_READ);
	seen.state = TCPINFO_SYN_SENT;
	expect_wait(&dial, &seen, 0, 0);
	dial.attempt.silence_due = false;
	seen = (struct dial_seen){ 0 };
	expect(dial, seen, 0, DO_BLIND_LOST);
}
END_TEST

START_TEST(synack_confirms_in_time)
{
	struct dial dial = dial_asked();
	struct dial_seen seen = established(STARTED);

	dial.attempt.confirmable = true;
	dial.attempt.withheld_ms = 700;
	expect(dial, seen, 0, DO_READ); /* a response that is there is better */
	seen.response = RESPONSE_NOTHING;
	expect(dial, seen, 0, DO_LOOK_AT_MPTCP);
	seen.mptcp = MPTCP_HOLDS;
	expect(dial, seen, 700 * MS - 1, DO_CONFIRM);
	expect_wait(&dial, &seen, 700 * MS, 0);
	seen.heard_at = STARTED + 700 * MS; /* it came after the step had begun */
	expect_wait(&dial, &seen, 0, 0);
	seen.heard_at = STARTED;
	seen.mptcp = MPTCP_LOST;
	expect_wait(&dial, &seen, 0, 0);
	dial.mptcp = false;
	seen.mptcp = MPTCP_UNSEEN;
	expect(dial, seen, 0, DO_CONFIRM);
	dial.may_confirm = false;
	expect_wait(&dial, &seen, 0, 0);
	dial.may_confirm = true;
	for (int i = 0; i < 2; i++) {
		seen.state = i ? TCPINFO_UNKNOWN : TCPINFO_CLOSE;
		expect_wait(&dial, &seen, 0, 0);
	}
	seen.state = TCPINFO_ESTABLISHED;
	seen.options = TCPI_OPT_SYN_DATA;
	expect_wait(&dial, &seen, 0, 0);
	seen.options = TAKEN;
	dial.attempt.confirmable = false;
	expect_wait(&dial, &seen, 0, 0);
}
END_TEST

/* --- the response --- */

START_TEST(message_is_sent_before_anything_is_read)
{
	struct dial dial = dial_asked();
	struct dial_seen seen = { 0 };

	dial.attempt.want_output = true;
	expect(dial, seen, 0, DO_SEND);
	seen.full = true;
	expect_wait(&dial, &seen, 0, 0);
	seen.full = false;
	seen.broken = true;
	expect(dial, seen, 0, DO_FAIL);
	ck_assert(!at(&dial, &seen, 0).final);
}
END_TEST

START_TEST(what_a_response_leads_to)
{
	struct dial dial = dial_asked();
	struct dial_seen seen = { .response = RESPONSE_WHOLE };

	expect(dial, seen, 0, DO_LOOK_AT_MPTCP);
	seen.mptcp = MPTCP_HOLDS;
	expect(dial, seen, 0, DO_REACHED);
	seen.mptcp = MPTCP_LOST;
	expect_anew(&dial, &seen, ASK_TCP);
	dial.mptcp = false;
	seen.mptcp = MPTCP_UNSEEN;
	expect(dial, seen, 0, DO_REACHED);
	seen.response = RESPONSE_ERROR;
	expect(dial, seen, 0, DO_JUDGE);
	seen.response = RESPONSE_BROKEN;
	expect(dial, seen, 0, DO_FAIL);
	ck_assert(!at(&dial, &seen, 0).final);
}
END_TEST

/* However it dribbles, and whether or not the converter's host acknowledges what it is sent. */
START_TEST(part_of_a_response_has_its_time)
{
	struct dial dial = dial_asked();
	struct dial_seen seen = established(STARTED + 3 * S);

	seen.response = RESPONSE_PART;
	expect_wait(&dial, &seen, 0, 3 * S);
	expect_wait(&dial, &seen, 3 * S - 1, 3 * S);
	expect_give_up(&dial, &seen, 3 * S, false);
	dial.confirmed = true; /* it's the server's connection by now */
	expect_wait(&dial, &seen, 100 * S, 0);
	seen.response = RESPONSE_NOTHING;
	expect_wait(&dial, &seen, 100 * S, 0);
}
END_TEST

/* --- nothing has come --- */

START_TEST(converter_is_looked_at_when_it_is_time)
{
	struct dial dial = dial_asked();
	struct dial_seen seen = { .response = RESPONSE_NOTHING };

	expect_wait(&dial, &seen, S - 1, 0);
	expect(dial, seen, S, DO_LOOK);
	dial.attempt.wake_at = 0; /* a blind request's silence is the server's */
	expect_wait(&dial, &seen, 100 * S, 0);
	dial.attempt.wake_at = STARTED + S;
	seen = established(STARTED);
	seen.response = RESPONSE_NOTHING;
	expect(dial, seen, S, DO_KEEPALIVE);
	for (int i = 0; i < 2; i++) {
		seen.state = i ? TCPINFO_CLOSE : TCPINFO_UNKNOWN; /* it has reset the connection, which nobody was told */
		expect(dial, seen, S, DO_FAIL);
		ck_assert(!at(&dial, &seen, S).final);
	}
}
END_TEST

START_TEST(path_comes_before_the_converter)
{
	struct dial dial = dial_asked();
	struct dial_seen seen = { .response = RESPONSE_NOTHING };

	dial.start.look_at = STARTED + 240 * MS;
	expect_wait(&dial, &seen, 240 * MS - 1, 0);
	expect(dial, seen, 240 * MS, DO_LOOK);
	seen.looked = true;
	seen.state = TCPINFO_SYN_SENT;
	expect(dial, seen, 240 * MS, DO_LOOK_AT_PATH);
	expect(dial, seen, 10 * S, DO_LOOK_AT_PATH);
	seen.path_looked = true;
	expect_wait(&dial, &seen, 240 * MS, 0);
	expect_give_up(&dial, &seen, 10 * S, false);
	dial.attempt.wake_at = 0;
	seen.path_looked = false;
	expect(dial, seen, 240 * MS, DO_LOOK_AT_PATH);
	dial.confirmed = true;
	expect_wait(&dial, &seen, 240 * MS, 0);
}
END_TEST

/* Keepalive is on since a second after the start; what has come last came at @heard. */
static struct dial_seen probed(int64_t heard)
{
	struct dial_seen seen = established(STARTED + heard);

	seen.response = RESPONSE_NOTHING;
	seen.keepalive_set = true;
	return seen;
}

START_TEST(probes_are_sent_until_the_end)
{
	struct dial dial = dial_asked();
	struct dial_seen seen = probed(10 * MS);

	dial.attempt.keepalive_since = STARTED + S;
	/* a probe is due an interval after what was heard, and each look behind that sends one more: four in an interval */
	expect_wait(&dial, &seen, S, 1260 * MS);
	expect_wait(&dial, &seen, 2 * S, 2250 * MS);
	expect_wait(&dial, &seen, 2900 * MS, 3 * S);
	/* the first one isn't due before the converter was asked */
	dial.attempt.keepalive_since = STARTED + 2 * S;
	expect_wait(&dial, &seen, 1500 * MS, 2250 * MS);
}
END_TEST

START_TEST(dead_host_is_given_up)
{
	struct dial dial = dial_asked();
	struct dial_seen seen = probed(10 * MS);

	dial.attempt.keepalive_since = STARTED + S;
	/* an interval and a half behind the first unanswered probe, which is at 1.01 s */
	expect_wait(&dial, &seen, 3 * S - 1, 3 * S);
	expect_give_up(&dial, &seen, 3 * S, false);
	seen.heard_at = STARTED + 510 * MS;
	expect_wait(&dial, &seen, 3 * S, 3010 * MS);
	expect_give_up(&dial, &seen, 3010 * MS, false);
}
END_TEST

START_TEST(host_that_answers_is_waited_for_as_linux_would)
{
	struct dial dial = dial_asked();
	struct dial_seen seen;

	dial.attempt.keepalive_since = STARTED + S;
	for (int64_t after = 3 * S; after < 150 * S; after += S) {
		seen = probed(after - 500 * MS);
		expect_wait(&dial, &seen, after, after == 149 * S + 500 * MS ? 150 * S : after + 750 * MS);
	}
	seen = probed(149 * S);
	expect_wait(&dial, &seen, 149900 * MS, 150 * S);
	expect_give_up(&dial, &seen, 150 * S, true);
	/* one that has proved nothing may be no converter */
	seen = probed(2500 * MS);
	seen.proven = false;
	expect_wait(&dial, &seen, 3 * S - 1, 3 * S);
	expect_give_up(&dial, &seen, 3 * S, true);
}
END_TEST

/* MPTCP sockets have keepalive since Linux 6.10. */
START_TEST(host_that_cannot_be_asked_counts_as_alive)
{
	struct dial dial = dial_asked();
	struct dial_seen seen = probed(0);

	expect_wait(&dial, &seen, 2 * S, 2250 * MS);
	expect_wait(&dial, &seen, 3 * S, 150 * S);
	expect_give_up(&dial, &seen, 150 * S, true);
	seen.proven = false;
	expect_give_up(&dial, &seen, 3 * S, true);
}
END_TEST

static const struct {
	unsigned int timeout_ms;
	int interval;
	int64_t grace; /* behind the first unanswered probe */
} timeouts[] = {
	{ 1, 1, S / 2 }, { 2499, 1, S / 2 }, { 2500, 1, 3 * S / 2 }, { 5999, 1, 3 * S / 2 }, { 6000, 2, 3 * S },
	{ 30000, 10, 15 * S }, { 3600000, 1200, 1800 * S },
};

START_TEST(interval_is_a_third_of_the_timeout)
{
	const int64_t interval = timeouts[_i].interval * S, timeout = timeouts[_i].timeout_ms * MS, probe = timeout + interval;
	struct dial dial = dial_asked();
	struct dial_seen seen = probed(timeout);
	struct dial_decision decision;

	ck_assert_int_eq(decide_interval_seconds(timeouts[_i].timeout_ms), timeouts[_i].interval);
	dial.attempt.ends = STARTED + timeout;
	dial.attempt.keepalive_since = STARTED + 1;
	seen.proven = true;
	decision = decide(&dial, &seen, timeouts[_i].timeout_ms, STARTED + probe + timeouts[_i].grace);
	ck_assert_int_eq(decision.what, DO_GIVE_UP);
	ck_assert(!decision.alive);
	decision = decide(&dial, &seen, timeouts[_i].timeout_ms, STARTED + probe + timeouts[_i].grace - 1);
	ck_assert(decision.what == DO_WAIT || decision.alive);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("engine_decide");
	TCase *tcase = tcase_create("decide");

	tcase_add_test(tcase, synack_is_looked_at_where_it_matters_only);
	tcase_add_test(tcase, unanswered_syn_is_waited_for);
	tcase_add_test(tcase, silence_before_the_synack_is_the_converters);
	tcase_add_test(tcase, path_is_asked_before_a_silent_converter_is_blamed);
	tcase_add_test(tcase, lost_multipath_tcp_begins_anew);
	tcase_add_test(tcase, silent_request_needs_no_response);
	tcase_add_test(tcase, silence_takes_both_facts);
	tcase_add_test(tcase, blind_request_is_lost_without_both_facts);
	tcase_add_test(tcase, synack_confirms_in_time);
	tcase_add_test(tcase, message_is_sent_before_anything_is_read);
	tcase_add_test(tcase, what_a_response_leads_to);
	tcase_add_test(tcase, part_of_a_response_has_its_time);
	tcase_add_test(tcase, converter_is_looked_at_when_it_is_time);
	tcase_add_test(tcase, path_comes_before_the_converter);
	tcase_add_test(tcase, probes_are_sent_until_the_end);
	tcase_add_test(tcase, dead_host_is_given_up);
	tcase_add_test(tcase, host_that_answers_is_waited_for_as_linux_would);
	tcase_add_test(tcase, host_that_cannot_be_asked_counts_as_alive);
	tcase_add_loop_test(tcase, interval_is_a_third_of_the_timeout, 0, ARRAY_SIZE(timeouts));
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
