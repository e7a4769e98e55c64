/* SPDX-License-Identifier: BSD-3-Clause */
/* test_engine_silence.c - a dial judges silence: of a converter, of a silent request, behind a SYN+ACK that confirms, of a blind one */
#include "config.h"

#include "client/converters.h"
#include "engine_world.h"
#include "run.h"

#include <errno.h>
#include <string.h>

/* --- a converter that is silent --- */

START_TEST(no_synack_is_the_converters_fault)
{
	learn(WHOLE);
	expect_on(dial_begin(false));
	expect_said("syn 1 data; ");
	dial.start.look_at = 0;
	kernel.now = dial.started + S;
	expect_on(step());
	ck_assert_int_eq(kernel.wake_at, kernel.now + S / 2);
	expect_said("");
	for (int i = 3; i < 6; i += 2) {
		kernel.now = dial.started + i * S / 2;
		expect_on(step());
		ck_assert_int_eq(kernel.wake_at, i == 3 ? kernel.now + S : dial.started + 3 * S);
	}
	kernel.now = dial.started + 3 * S;
	expect_on(step());
	expect_said("ask 0 0; end; syn 2 data; ");
	ck_assert(is_logged("no answer in time, left alone for 30 s\n"));
	ck_assert(!converters_is_proven(0));
	ck_assert(converters_rests(0, clock_seconds()));
	ck_assert_uint_eq(nets.open, 0);
}
END_TEST

/* The process isn't scheduled between its look and the end of the SYN's time: what has come since counts. */
START_TEST(answer_behind_the_last_look)
{
	learn(WHOLE);
	expect_on(dial_begin(false));
	dial.start.look_at = 0;
	kernel.now = dial.started + 2 * S;
	expect_on(step());
	said();
	kernel.now = dial.started + 3 * S - 1;
	kernel.look_takes = 10 * S;
	dial.attempt.wake_at = kernel.now;
	expect_on(step());
	expect_said("");
	kernel.look_takes = 0;
	synack(TAKEN);
	answer(WHOLE);
	ck_assert_int_eq(step(), DIAL_REACHED);
}
END_TEST

/* A request that leaves only when CONVERT_TIMEOUT is over, as the process wasn't scheduled, has that time again: it asks the server. */
START_TEST(late_request)
{
	kernel.syn_takes = -EOPNOTSUPP;
	expect_on(dial_begin(false));
	dial.start.look_at = 0;
	kernel.now = dial.started + 10 * S;
	synack(TCPI_OPT_TIMESTAMPS);
	said();
	expect_on(step());
	ck_assert(!dial.attempt.want_output);
	ck_assert_int_eq(dial.attempt.ends, dial.started + 13 * S);
	answer(WHOLE);
	ck_assert_int_eq(step(), DIAL_REACHED);
}
END_TEST

/* Takes a dial to the end of its SYN's time. */
static void be_silent(void)
{
	dial.start.look_at = 0;
	kernel.now = dial.started + 2 * S;
	expect_on(step());
	kernel.now = dial.started + 3 * S;
	expect_on(step());
}

/* Others get through: nobody else leaves the converter alone. */
START_TEST(silence_of_one_connection_blames_nobody)
{
	learn(WHOLE);
	for (int asked = 0; asked < 3; asked++) {
		expect_on(dial_begin(false));
		nets.answer = asked == 0 ? SURVEY_ANSWERS : SURVEY_PENDING;
		said();
		be_silent();
		expect_said("ask 0 0; end; syn 2 data; ");
		ck_assert(is_logged(asked == 0 ? "no answer in time, but it answers others\n" : "no answer in time, another connection asks"));
		ck_assert(converters_is_proven(0));
		ck_assert(!converters_rests(0, clock_seconds()));
		dial_stop(&dial);
	}
	ck_assert_uint_eq(nets.open, 0);
}
END_TEST

/* A front end that ends the attempt by itself judges silence like the engine, and blames nobody for a SYN that it sent only lately. */
START_TEST(silence_when_the_front_end_is_out_of_time)
{
	static const enum survey_answer answers[] = { SURVEY_ANSWERS, SURVEY_PENDING, SURVEY_SILENT, SURVEY_SILENT };

	for (int i = 0; i < 4; i++) {
		learn(WHOLE);
		expect_on(dial_begin(false));
		nets.answer = answers[i];
		dial.start.look_at = 0;
		kernel.now = dial.started + 2 * S;
		expect_on(step());
		/* in the last half of CONVERT_TIMEOUT, or somewhat earlier */
		if (i >= 2)
			dial.start.syn_at = i == 2 ? kernel.now : dial.started + S;
		kernel.now = dial.started + 3 * S;
		dial_blame_silence(&dial);
		ck_assert_int_eq(converters_is_proven(0), i < 3);
		ck_assert_int_eq(converters_rests(0, clock_seconds()), i == 3);
		dial_stop(&dial);
	}
	ck_assert(is_logged("no answer in time, left alone for 30 s\n"));
}
END_TEST

/* A program that has bound its socket to a dead network takes the converter away from nobody. */
START_TEST(silence_on_a_network_that_the_program_has_chosen)
{
	struct in6_addr source = { .s6_addr = { [10] = 0xff, [11] = 0xff, [15] = 9 } };

	learn(WHOLE);
	for (int refuses = 0; refuses < 2; refuses++) {
		expect_on(dial_begin(false));
		path_start_init(&dial.start, false, &source);
		dial.start.path.id.converter = 0;
		said();
		if (refuses) {
			expect_on(dial_failed(&dial, ECONNREFUSED, &end));
			expect_said("end; syn 1 data; ");
			expect_on(dial_failed(&dial, ECONNREFUSED, &end));
			expect_said("end; syn 2 data; ");
		} else {
			be_silent();
			expect_said("ask 0 9; end; syn 2 data; ");
		}
		ck_assert(is_logged(", on the network that the program has chosen\n"));
		ck_assert(converters_is_proven(0));
		ck_assert(!converters_rests(0, clock_seconds()));
	}
}
END_TEST

/* Where the program has chosen nothing, or only the usual network, silence is the converter's. */
START_TEST(silence_on_a_network_that_nobody_has_chosen)
{
	for (int placed = 0; placed < 2; placed++) {
		const int converter = placed ? 1 : 0;

		learn(WHOLE);
		expect_on(dial_begin(false));
		path_start_init(&dial.start, false, &in6addr_any);
		if (placed) {
			list_of(5);
			nets.elsewhere = 0;
			path_start_init(&dial.start, true, &in6addr_any);
			expect_on(dial_failed(&dial, EHOSTUNREACH, &end));
			nets.elsewhere = -1;
			ck_assert(dial.start.placed);
			dial.attempt.path_asked = true; /* with the answer SURVEY_SILENT */
			path_start_end(&dial.start);
			path_start_ask(&dial.start, false);
		}
		said();
		be_silent();
		ck_assert(!is_logged("on the network that the program has chosen"));
		ck_assert(is_logged("no answer in time, left alone for 30 s"));
		ck_assert(converters_rests(converter, clock_seconds()));
		dial_stop(&dial);
		converters_forget();
	}
}
END_TEST

/* Each process may find out for itself where the path can't be asked: the cache says nothing. */
START_TEST(silence_on_a_path_that_cannot_be_asked)
{
	learn(WHOLE);
	nets.unasked = true;
	expect_on(dial_begin(false));
	said();
	be_silent();
	expect_said("ask 0 0; end; syn 2 data; ");
	ck_assert(is_logged("no answer in time, left alone for 30 s by this process\n"));
	ck_assert(converters_is_proven(0));
	ck_assert(converters_rests(0, clock_seconds()));
	ck_assert(!converters_rests(0, clock_seconds() + 31));
}
END_TEST

/* One of two connections asks; the other one doesn't say anything about the converter. */
START_TEST(two_silent_connections_ask_once)
{
	struct dial first;

	learn(WHOLE);
	expect_on(dial_begin(false));
	dial.start.look_at = 0;
	kernel.now = dial.started + 2 * S;
	expect_on(step());
	expect_said("syn 1 data; ask 0 0; ");
	first = dial;
	expect_on(dial_begin(false));
	said();
	be_silent();
	expect_said("end; syn 2 data; ");
	ck_assert(is_logged("no answer in time, another connection asks whether it answers\n"));
	ck_assert(!converters_rests(0, clock_seconds()));
	dial_stop(&dial);
	dial = first;
	expect_on(step());
	ck_assert(converters_rests(0, clock_seconds()));
	ck_assert_uint_eq(nets.open, 0);
}
END_TEST

START_TEST(host_is_asked_behind_the_synack)
{
	learn(WHOLE);
	expect_on(dial_begin(false));
	synack(TAKEN);
	expect_on(step());
	said();
	for (int64_t after = S; after < 20 * S; after += 250 * MS) {
		kernel.now = dial.started + after;
		kernel.info.tcpi_last_ack_recv = kernel.info.tcpi_last_data_recv = 300;
		expect_on(step());
		ck_assert(!dial.attempt.path_asked);
	}
	ck_assert_int_eq(dial.attempt.keepalive_since, dial.started + S);
	ck_assert_ptr_nonnull(strstr(said(), "peek; probe 1; "));
	kernel.info.tcpi_last_ack_recv = kernel.info.tcpi_last_data_recv = 1500; /* it has died since */
	kernel.now += S;
	expect_on(step());
	ck_assert(dial.attempt.path_asked);
	ck_assert_ptr_nonnull(strstr(said(), "ask for a response 0 0; "));
	kernel.info.tcpi_last_ack_recv = kernel.info.tcpi_last_data_recv = 9000;
	kernel.now += S;
	expect_on(step());
	ck_assert(is_logged("no answer in time, left alone for 30 s\n"));
	ck_assert(!converters_is_proven(0));
}
END_TEST

START_TEST(host_that_has_proved_nothing)
{
	kernel.unprobed = true; /* it can't even be asked */
	expect_on(dial_begin(false));
	synack(TAKEN);
	kernel.now += 3 * S - 1;
	expect_on(step());
	ck_assert_int_eq(dial.attempt.keepalive_since, 0);
	kernel.now++;
	expect_on(step());
	ck_assert(is_logged("no answer in time, left alone for 30 s for this server\n"));
}
END_TEST

/* A Multipath TCP socket waits for another subflow: neither reading nor SO_ERROR tells of the reset. */
START_TEST(reset_that_the_socket_does_not_report)
{
	expect_on(dial_begin(false));
	synack(TAKEN);
	expect_on(step());
	kernel.info.tcpi_state = TCPINFO_CLOSE;
	expect_on(step());
	ck_assert(!dial_wants_output(&dial)); /* the socket takes output all the time */
	kernel.now = dial.started + S;
	said();
	expect_on(step());
	ck_assert(is_logged("converter 192.0.2.1:1234: Connection reset by peer, asked once more\n"));
	expect_said("peek; end; syn 1 data; ");
	/* nor does it matter whether the SYN+ACK was seen before */
	synack(TAKEN);
	kernel.info.tcpi_state = TCPINFO_CLOSE;
	expect_on(step());
	ck_assert(!dial_wants_output(&dial));
}
END_TEST

START_TEST(silent_request)
{
	learn(SILENCE);
	expect_on(dial_begin(false));
	ck_assert(kernel.request.has_silence && !kernel.request.has_info);
	ck_assert_uint_eq(dial.attempt.ask.attempt, 0); /* it isn't blind */
	synack(TAKEN);
	said();
	ck_assert_int_eq(step(), DIAL_REACHED);
	expect_said("");
	ck_assert(is_logged("request taken in the SYN, server confirmed by the SYN+ACK, silently"));
	ck_assert_int_eq(dial.start.look_at, 0);
	/* the facts aren't there: the response is */
	expect_on(dial_begin(false));
	synack(TCPI_OPT_SYN_DATA);
	expect_on(step());
	ck_assert(!dial.attempt.silence_due && !dial_wants_output(&dial));
	answer(WHOLE);
	ck_assert_int_eq(step(), DIAL_REACHED);
	expect_said("peek; peek; take 8; ");
	/* something else is in its place */
	expect_on(dial_begin(false));
	synack(TCPI_OPT_SYN_DATA);
	answer(GARBAGE);
	expect_on(step());
	expect_said("peek; end; syn 1 data; ");
	ck_assert(!kernel.request.has_silence);
}
END_TEST

START_TEST(silent_request_that_is_reset_is_made_again)
{
	learn(SILENCE);
	expect_on(dial_begin(false));
	kernel.info.tcpi_state = TCPINFO_CLOSE;
	kernel.read_error = ECONNRESET;
	expect_on(step());
	expect_said("syn 1 data; peek; end; syn 1 data; ");
	ck_assert(!kernel.request.has_silence);
}
END_TEST

/* --- confirmation --- */

static void confirm(void)
{
	learn(SUPPORTED);
	kernel.now += MS;
	expect_on(dial_begin(false));
	ck_assert(dial.attempt.confirmable);
	synack(TAKEN);
	ck_assert_int_eq(step(), DIAL_CONFIRMED);
	ck_assert(is_logged(", server confirmed by the SYN+ACK after"));
	ck_assert_int_eq(kernel.wake_at, 0);
	ck_assert(!dial_wants_output(&dial));
	kernel.now += 100 * S;
	expect_on(step());
	said();
}

START_TEST(synack_confirms_the_server)
{
	confirm();
	lines[0] = '\0';
	answer(WHOLE);
	ck_assert_int_eq(step(), DIAL_REACHED);
	expect_said("peek; take 8; ");
	ck_assert_str_eq(lines, "");
}
END_TEST

START_TEST(synack_that_lied)
{
	confirm();
	answer(REFUSED);
	ck_assert_int_eq(step(), DIAL_FAILED);
	ck_assert_int_eq(end.error, ECONNRESET);
	ck_assert(is_logged("its SYN+ACK confirmed a server that it has not reached"));
	ck_assert_uint_eq(converters_withholds_ms(&settings, 0), 0);
	expect_said("peek; ");
}
END_TEST

START_TEST(confirmed_connection_that_ends)
{
	confirm();
	kernel.read_error = ECONNRESET;
	ck_assert_int_eq(step(), DIAL_FAILED);
	expect_said("peek; ");
	kernel.read_error = 0;
	confirm();
	kernel.shut = true;
	ck_assert_int_eq(step(), DIAL_FAILED);
	ck_assert_uint_eq(converters_withholds_ms(&settings, 0), 700);
	confirm();
	answer(WHOLE);
	kernel.fell_back = true;
	ck_assert_int_eq(step(), DIAL_FAILED);
	ck_assert_str_eq(end.reason, "Multipath TCP to the converter was lost behind the handshake");
}
END_TEST

static const struct {
	const char *what;
	bool holds;
} confirmables[] = {
	{ "all is well", true }, { "may not", false }, { "early data is left", false }, { "unproven", false }, { "fell back lately", false },
	{ "data stayed out", false }, { "it withholds nothing", false }, { "the request asks what it supports", false },
	{ "TCP, of which nobody has said that it stays Multipath TCP", true },
};

START_TEST(what_a_synack_may_confirm)
{
	static const uint8_t early[4096];

	kernel.no_mptcp = _i == 8;
	if (_i == 3)
		settings.withheld_ms = 0; /* known, but not proven */
	else
		learn(_i == 6 ? WHOLE : SUPPORTED);
	if (_i == 7)
		converters_doubt(0);
	if (_i == 4)
		paths_note_fallback(&(struct path_id){ .converter = 0 }, clock_ns() + MS);
	if (_i == 5)
		kernel.syn_takes = -EOPNOTSUPP;
	if (_i == 2)
		kernel.syn_takes = 100;
	dial = (struct dial){ .ops = &ops, .started = kernel.now, .may_confirm = _i != 1, .early = early, .early_len = _i == 2 ? 4096 : 0 };
	ck_assert_int_eq(sockaddr_ip_parse(&dial.server, "203.0.113.1", 443), 0);
	path_start_init(&dial.start, true, &in6addr_any);
	expect_on(dial_next(&dial, false, &end));
	ck_assert_msg(dial.attempt.confirmable == confirmables[_i].holds, "%s", confirmables[_i].what);
}
END_TEST

/* --- blind requests --- */

START_TEST(blind_request)
{
	learn(SILENCE);
	kernel.blind = true;
	expect_on(dial_begin(false));
	ck_assert(dial.attempt.ask.blind && kernel.request.silence.blind);
	ck_assert_uint_eq(dial.attempt.ask.attempt, 77);
	ck_assert_int_eq(dial.attempt.wake_at, 0);
	synack(TCPI_OPT_TIMESTAMPS | TCPI_OPT_SYN_DATA);
	ck_assert_int_eq(step(), DIAL_REACHED);
	expect_on(dial_begin(false));
	synack(TCPI_OPT_SYN_DATA);
	ck_assert_int_eq(step(), DIAL_BLIND);
	ck_assert_int_eq(end.error, ECONNRESET);
	ck_assert_str_eq(end.reason, "the SYN+ACK doesn't confirm the server");
	expect_on(dial_begin(false));
	kernel.error = ETIMEDOUT;
	ck_assert_int_eq(dial_failed(&dial, ECONNRESET, &end), DIAL_BLIND);
	ck_assert_int_eq(end.error, ETIMEDOUT);
	ck_assert_int_eq(end.way, ASK_MPTCP_SYN);
	/* data that isn't taken */
	expect_on(dial_begin(false));
	synack(TCPI_OPT_TIMESTAMPS);
	ck_assert_int_eq(step(), DIAL_BLIND);
	ck_assert_int_eq(end.way, ASK_MPTCP);
	dial.attempt.ask.blind = dial.attempt.ask.silent = false;
	said();
	expect_on(dial_anew(&dial, end.way, &end));
	expect_said("connect 1; ");
}
END_TEST

/* The front end makes it again, and the engine then doesn't know why: what is lost is noted at once. */
START_TEST(blind_request_on_a_path_that_loses_it)
{
	const struct path_id usual = { .converter = 0 };

	learn(SILENCE);
	kernel.blind = true;
	expect_on(dial_begin(false));
	kernel.now = dial.start.look_at;
	nets.what = nets.leave = PATHS_BEHIND;
	said();
	ck_assert_int_eq(step(), DIAL_BLIND);
	expect_said("");
	ck_assert_int_eq(end.way, ASK_MPTCP);
	dial_stop(&dial);
	expect_on(dial_begin(false));
	synack(TAKEN);
	kernel.fell_back = true;
	ck_assert_int_eq(step(), DIAL_BLIND);
	expect_said("");
	ck_assert_int_eq(end.way, ASK_TCP);
	ck_assert_int_eq(end.error, ECONNRESET);
	ck_assert_int_eq(paths_mptcp(&usual), CACHE_MPTCP_DOUBTED);
}
END_TEST

START_TEST(blind_request_behind_another)
{
	learn(SILENCE);
	expect_on(dial_begin(false));
	said();
	ck_assert(!dial_blindly(&dial)); /* it may not be */
	expect_said("");
	kernel.blind = true;
	ck_assert(dial_blindly(&dial));
	expect_said("syn 1 data; ");
	ck_assert(dial.attempt.ask.blind);
	kernel.syn_takes = -EHOSTUNREACH;
	ck_assert(!dial_blindly(&dial));
	expect_said("syn 1 data; end; ");
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		no_synack_is_the_converters_fault, answer_behind_the_last_look, late_request, silence_of_one_connection_blames_nobody,
		silence_when_the_front_end_is_out_of_time, silence_on_a_network_that_the_program_has_chosen,
		silence_on_a_network_that_nobody_has_chosen, silence_on_a_path_that_cannot_be_asked,
		two_silent_connections_ask_once, host_is_asked_behind_the_synack, host_that_has_proved_nothing, silent_request,
		silent_request_that_is_reset_is_made_again, synack_confirms_the_server, synack_that_lied, confirmed_connection_that_ends,
		blind_request, blind_request_on_a_path_that_loses_it, blind_request_behind_another,
		reset_that_the_socket_does_not_report,
	};
	Suite *suite = suite_create("engine_silence");
	TCase *tcase = tcase_create("engine_silence");

	tcase_add_checked_fixture(tcase, setup, NULL);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(tcase, tests[i]);
	tcase_add_loop_test(tcase, what_a_synack_may_confirm, 0, sizeof(confirmables) / sizeof(confirmables[0]));
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
