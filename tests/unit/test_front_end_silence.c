/* SPDX-License-Identifier: BSD-3-Clause */
/* test_front_end_silence.c - requests that get no response, and for how long their SYNs may be withheld */
#include "config.h"

#include "front_end_world.h"

#include "client/exchange.h"
#include "common/clock.h"

#include "run.h"

#include <check.h>
#include <errno.h>
#include <linux/tcp.h>

#define MS INT64_C(1000000)

START_TEST(requests_are_silent_once_the_converter_is_known)
{
	converters[0] = offers_silence;
	begin();
	expect("203.0.113.1", CONVERTED, 1, 0);
	ck_assert(asked[0].request.has_info && !asked[0].request.has_silence);
	expect("203.0.113.2", CONVERTED, 1, 0); /* does that server speak Multipath TCP? */
	ck_assert(asked[0].request.extended && asked[0].request.has_silence);
	expect("203.0.113.2", CONVERTED, 1, 0);
	ck_assert(!asked[0].request.extended);
	ck_assert(asked[0].request.has_silence && asked[0].request.silence.mptcp && !asked[0].request.silence.blind);
	/* After a fallback, by a lost packet perhaps, one connection has to keep Multipath TCP under the eyes of the front end. */
	paths_note_fallback(&(struct path_id){ .converter = 0 }, clock_ns());
	expect("203.0.113.2", CONVERTED, 1, 0);
	ck_assert(!asked[0].request.has_silence);
	expect("203.0.113.2", CONVERTED, 1, 0);
	ck_assert(asked[0].request.has_silence);
	for (int i = 0; i < 2; i++)
		paths_note_fallback(&(struct path_id){ .converter = 0 }, clock_ns() + CLOCK_NS_PER_MS);
	expect("203.0.113.2", CONVERTED, 1, 0);
	ck_assert(!asked[0].request.has_silence);
}
END_TEST

/* Silence tells a client that has asked that the server doesn't speak Multipath TCP. */
START_TEST(silence_is_an_answer)
{
	union sockaddr_ip server;

	converters[0] = offers_silence;
	begin();
	expect("203.0.113.1", CONVERTED, 1, 0);
	ck_assert_int_eq(sockaddr_ip_parse(&server, "203.0.113.2", 443), 0);
	exchange_done_silently(0, &server, false);
	ck_assert(exchange_ask(&settings, &(struct path_id){ .converter = 0 }, &server, true).mptcp);
	exchange_done_silently(0, &server, true);
	ck_assert(!exchange_ask(&settings, &(struct path_id){ .converter = 0 }, &server, true).mptcp);
	ck_assert(!exchange_bypasses(&settings, &server));
}
END_TEST

START_TEST(blind_requests_ask_for_nothing)
{
	union sockaddr_ip server;
	struct handshake_ask ask;

	converters[0] = offers_silence;
	begin();
	ck_assert_int_eq(sockaddr_ip_parse(&server, "203.0.113.2", 443), 0);
	ask = exchange_ask(&settings, &(struct path_id){ .converter = 0 }, &server, true);
	ck_assert(!exchange_ask_blindly(&settings, &(struct path_id){ .converter = 0 }, &ask));
	ck_assert(ask.info && ask.mptcp && !ask.silent && !ask.blind);
	expect("203.0.113.1", CONVERTED, 1, 0);
	ask = exchange_ask(&settings, &(struct path_id){ .converter = 0 }, &server, true);
	ck_assert(ask.mptcp && ask.silent && !ask.blind);
	ck_assert(exchange_ask_blindly(&settings, &(struct path_id){ .converter = 0 }, &ask));
	ck_assert(!ask.mptcp && !ask.info && ask.silent && ask.blind && ask.over_mptcp);
	settings.silence = false;
	ask = exchange_ask(&settings, &(struct path_id){ .converter = 0 }, &server, true);
	ck_assert(!exchange_ask_blindly(&settings, &(struct path_id){ .converter = 0 }, &ask));
}
END_TEST

START_TEST(converter_that_knows_no_silence_is_asked_without)
{
	converters[0] = offers_silence;
	begin();
	expect("203.0.113.1", CONVERTED, 1, 0);
	converters[0] = knows_no_silence;
	expect("203.0.113.1", CONVERTED, 2, 0);
	ck_assert(asked[0].request.has_silence && !asked[1].request.has_silence);
	expect("203.0.113.1", CONVERTED, 1, 0);
	ck_assert(!asked[0].request.has_silence);
}
END_TEST

/* What is left of the second after which a SYN is sent again, where that is less than the converter's limit. */
START_TEST(far_clients_say_for_how_long)
{
	static const struct {
		unsigned int rtt_ms, hold_ms, numbered_ms;
	} cases[] = {
		{ 20, 0, 578 }, { 88, 0, 501 }, { 90, 0, 499 }, { 177, 0, 401 }, { 180, 698, 398 }, { 400, 450, 150 },
		{ 490, 349, 50 }, { 700, 113, 50 }, { 760, 50, 50 }, { 2000, 50, 50 },
	};

	converters[0] = offers_hold_times;
	begin();
	expect("203.0.113.1", CONVERTED, 1, 0);
	ck_assert(asked[0].request.has_info && !asked[0].request.has_hold_time);
	expect("203.0.113.1", CONVERTED, 1, 0); /* its round trip isn't known */
	ck_assert(!asked[0].request.has_hold_time);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct path_id path = { .source = { .s6_addr = { 0xfd, [15] = (uint8_t)(i + 1) } } };

		ck_assert_uint_eq(exchange_hold_ms(&settings, &path, true, false), 0);
		paths_note_answer(&path, cases[i].rtt_ms, true);
		ck_assert_uint_eq(exchange_hold_ms(&settings, &path, true, false), cases[i].hold_ms);
		ck_assert_uint_eq(exchange_hold_ms(&settings, &path, true, true), cases[i].numbered_ms);
		/* Without Multipath TCP a SYN may be sent again. */
		ck_assert_uint_eq(exchange_hold_ms(&settings, &path, false, false), 0);
	}
	settings.withheld_ms = 0;
	ck_assert_uint_eq(exchange_hold_ms(&settings, &(struct path_id){ .source = { .s6_addr = { 0xfd, [15] = 6 } } }, true, false), 0);
}
END_TEST

START_TEST(converter_that_knows_no_hold_times_is_asked_without)
{
	converters[0] = offers_hold_times;
	begin();
	expect("203.0.113.1", CONVERTED, 1, 0);
	paths_note_answer(&(struct path_id){ .converter = 0 }, 400, true);
	expect("203.0.113.1", CONVERTED, 1, 0);
	ck_assert(asked[0].request.has_hold_time);
	ck_assert_uint_eq(asked[0].request.hold_ms, 450);
	converters[0] = knows_no_hold_times;
	expect("203.0.113.1", CONVERTED, 2, 0);
	ck_assert(asked[0].request.has_hold_time && !asked[1].request.has_hold_time);
	expect("203.0.113.1", CONVERTED, 1, 0);
	ck_assert(!asked[0].request.has_hold_time);
}
END_TEST

/* Only an end or a reset in place of a response has the remedy of asking without silence, and only after a silent request. */
START_TEST(end_or_reset_is_asked_again_without_silence)
{
	const struct {
		struct handshake_step step;
		bool remedy;
	} steps[] = {
		{ handshake_on_close(), true },
		{ handshake_on_error(ECONNRESET, true), true },
		{ handshake_on_error(ECONNRESET, false), true },
		{ handshake_on_error(ECONNREFUSED, true), false },
		{ handshake_on_silence(false), false },
		{ { .verdict = HANDSHAKE_FAIL, .fault = HANDSHAKE_FAULT_SERVER, .error = ECONNRESET }, false },
	};

	begin();
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		bool cookie_asked = false, ask_mptcp = false, silent = false;

		ck_assert(!exchange_take_remedy(0, 0, &steps[i].step, &cookie_asked, &ask_mptcp, &silent));
		silent = true;
		ck_assert_int_eq(exchange_take_remedy(0, 0, &steps[i].step, &cookie_asked, &ask_mptcp, &silent), steps[i].remedy);
		ck_assert_int_eq(silent, !steps[i].remedy);
	}
}
END_TEST

/* Most causes of a reset pass, so the client asks again what the converter offers. An end in place of a response ends silence. */
START_TEST(silence_after_a_reset)
{
	const struct path_id path = { .converter = 0 };
	struct handshake_step reset = handshake_on_error(ECONNRESET, true), closed = handshake_on_close();
	bool not_asked = false, silent = true;

	converters[0] = offers_silence;
	begin();
	for (int i = 0; i < 2; i++) {
		expect("203.0.113.1", CONVERTED, 1, 0);
		ck_assert(asked[0].request.has_info);
		ck_assert_int_eq(converters_silence(&settings, 0), CONVERTERS_BLIND);
		if (i == 0)
			exchange_reset_silently(&path);
		else
			ck_assert(exchange_take_remedy(0, 0, &reset, &not_asked, &not_asked, &silent));
		ck_assert_int_eq(converters_silence(&settings, 0), CONVERTERS_OUTDATED);
	}
	silent = true;
	expect("203.0.113.1", CONVERTED, 1, 0);
	ck_assert(exchange_take_remedy(0, 0, &closed, &not_asked, &not_asked, &silent));
	ck_assert_int_eq(converters_silence(&settings, 0), CONVERTERS_ANSWERS);
}
END_TEST

START_TEST(both_ends_know_when_there_is_no_response)
{
	const uint8_t both = TCPI_OPT_SYN_DATA | TCPI_OPT_TIMESTAMPS;

	ck_assert(synack_is_silent(both | TCPI_OPT_SACK));
	ck_assert(!synack_is_silent(TCPI_OPT_SYN_DATA));
	ck_assert(!synack_is_silent(TCPI_OPT_TIMESTAMPS));
}
END_TEST

START_TEST(multipath_tcp_has_to_hold_for_silence_over_it_alone)
{
	struct handshake_ask ask;
	union sockaddr_ip server;

	converters[0] = offers_silence;
	begin();
	ck_assert_int_eq(sockaddr_ip_parse(&server, "203.0.113.1", 443), 0);
	expect("203.0.113.1", CONVERTED, 1, 0);
	paths_note_fallback(&(struct path_id){ .converter = 0 }, clock_ns() + CLOCK_NS_PER_MS);
	ck_assert(!exchange_ask(&settings, &(struct path_id){ .converter = 0 }, &server, true).silent);
	ask = exchange_ask(&settings, &(struct path_id){ .converter = 0 }, &server, true);
	ck_assert(!exchange_ask_blindly(&settings, &(struct path_id){ .converter = 0 }, &ask));
	ck_assert(!ask.silent && !ask.blind);
	/* TCP has nothing to lose */
	ask = exchange_ask(&settings, &(struct path_id){ .converter = 0 }, &server, false);
	ck_assert(ask.silent);
	ck_assert(exchange_ask_blindly(&settings, &(struct path_id){ .converter = 0 }, &ask));
	/* a user who sets that converters withhold SYNs lets us rely on Multipath TCP */
	settings.withheld_ms = 700;
	ck_assert(exchange_keeps_mptcp(&settings, &(struct path_id){ .converter = 0 }));
	settings.withheld_ms = 0;
	ck_assert(!exchange_keeps_mptcp(&settings, &(struct path_id){ .converter = 0 }));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("front_end_silence");
	TCase *tcase = tcase_create("silence");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, requests_are_silent_once_the_converter_is_known);
	tcase_add_test(tcase, silence_is_an_answer);
	tcase_add_test(tcase, blind_requests_ask_for_nothing);
	tcase_add_test(tcase, converter_that_knows_no_silence_is_asked_without);
	tcase_add_test(tcase, silence_after_a_reset);
	tcase_add_test(tcase, far_clients_say_for_how_long);
	tcase_add_test(tcase, converter_that_knows_no_hold_times_is_asked_without);
	tcase_add_test(tcase, end_or_reset_is_asked_again_without_silence);
	tcase_add_test(tcase, both_ends_know_when_there_is_no_response);
	tcase_add_test(tcase, multipath_tcp_has_to_hold_for_silence_over_it_alone);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
