/* SPDX-License-Identifier: BSD-3-Clause */
/* test_session_decision.c - what a session does next: its deadlines, its end, who makes room, what a silent server means */
#include "config.h"

#include "serve/session_decision.h"

#include "run.h"

#include <check.h>
#include <errno.h>
#include <string.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

START_TEST(timeouts)
{
	struct serve_settings settings = { .request_ms = 10000, .connect_ms = 30000, .patience_ms = 2800, .hold_ms = 700,
					   .watch = { .stall_ms = 300000, .idle_ms = 16000 } };
	unsigned ms[SESSION_TIMEOUT_COUNT];

	session_decide_timeouts(&settings, ms);
	ck_assert_uint_eq(ms[SESSION_TIMEOUT_REQUEST], 10000);
	ck_assert_uint_eq(ms[SESSION_TIMEOUT_CONNECT], 30000);
	ck_assert_uint_eq(ms[SESSION_TIMEOUT_CONNECT_WITHHELD], 29300);
	ck_assert_uint_eq(ms[SESSION_TIMEOUT_PATIENCE], 2800);
	ck_assert_uint_eq(ms[SESSION_TIMEOUT_CONNECT_REST], 27200);
	ck_assert_uint_eq(ms[SESSION_TIMEOUT_CONNECT_WITHHELD_REST], 26500);
	ck_assert_uint_eq(ms[SESSION_TIMEOUT_LINGER], 5000);
	ck_assert_uint_eq(ms[SESSION_TIMEOUT_RESET_POLL], 50);
	ck_assert_uint_eq(ms[SESSION_TIMEOUT_LOOK], 2000); /* an eighth of the shortest */
	/* too short for two parts; and shorter than --hold-time */
	settings.connect_ms = 3000;
	session_decide_timeouts(&settings, ms);
	ck_assert_uint_eq(ms[SESSION_TIMEOUT_PATIENCE], 0);
	ck_assert_uint_eq(ms[SESSION_TIMEOUT_CONNECT_REST], 3000);
	settings.connect_ms = 4000;
	settings.hold_ms = 1200;
	session_decide_timeouts(&settings, ms);
	ck_assert_uint_eq(ms[SESSION_TIMEOUT_PATIENCE], 0);
	settings.hold_ms = 1199;
	session_decide_timeouts(&settings, ms);
	ck_assert_uint_eq(ms[SESSION_TIMEOUT_PATIENCE], 2800);
	ck_assert_uint_eq(ms[SESSION_TIMEOUT_CONNECT_WITHHELD_REST], 1);
	settings.connect_ms = 1000;
	settings.hold_ms = 1000;
	session_decide_timeouts(&settings, ms);
	ck_assert_uint_eq(ms[SESSION_TIMEOUT_CONNECT_WITHHELD], 1);
	/* once a minute, or never */
	settings.watch.stall_ms = settings.watch.idle_ms = 480000;
	session_decide_timeouts(&settings, ms);
	ck_assert_uint_eq(ms[SESSION_TIMEOUT_LOOK], 60000);
	settings.watch.stall_ms = settings.watch.idle_ms = 500000;
	session_decide_timeouts(&settings, ms);
	ck_assert_uint_eq(ms[SESSION_TIMEOUT_LOOK], 60000);
	settings.watch.half_close_ms = 100000;
	session_decide_timeouts(&settings, ms);
	ck_assert_uint_eq(ms[SESSION_TIMEOUT_LOOK], 12500);
	settings.watch = (struct relay_watch_settings){ 0 };
	session_decide_timeouts(&settings, ms);
	ck_assert_uint_eq(ms[SESSION_TIMEOUT_LOOK], 0);
}
END_TEST

/* Times in ms; the clock stands at 1000 ms. */
static const struct {
	unsigned ms;
	uint64_t prove_by_ms;
	bool no_reset;
	uint64_t want_ms;
	bool for_proof;
} deadlines[] = {
	{ 5000, 0, false, 5000, false },
	{ 0, 0, false, 0, false },
	/* the proof comes first, or the state's deadline does */
	{ 5000, 3000, false, 2000, true },
	{ 2000, 3000, false, 2000, false },
	{ 1999, 3000, false, 1999, false },
	{ 2001, 3000, false, 2000, true },
	{ 0, 3000, false, 2000, true },
	/* what a reset would exceed is left to the kernel, which takes 3 s */
	{ 3999, 0, true, 4000, true },
	{ 4000, 0, true, 4000, false },
	{ 50, 0, true, 4000, true },
	{ 0, 0, true, 0, false },
	{ 5000, 3000, true, 2000, true },
};

START_TEST(deadline)
{
	const struct session_deadline got =
		session_decide_deadline(deadlines[_i].ms, deadlines[_i].prove_by_ms * 1000, deadlines[_i].no_reset, 1000000);

	ck_assert_uint_eq(got.us, deadlines[_i].want_ms * 1000);
	ck_assert_int_eq(got.for_proof, deadlines[_i].for_proof);
}
END_TEST

/* The moment has passed: at once, but not never. */
START_TEST(deadline_that_has_passed)
{
	for (uint64_t by_us = 999999; by_us <= 1000000; by_us++) {
		const struct session_deadline got = session_decide_deadline(5000, by_us, false, 1000000);

		ck_assert_uint_eq(got.us, 1);
		ck_assert(got.for_proof);
	}
}
END_TEST

START_TEST(room)
{
	for (int state = 0; state < SESSION_STATE_COUNT; state++)
		for (int answered = 0; answered < 2; answered++)
			for (int confirmed = 0; confirmed < 2; confirmed++) {
				enum session_way want = SESSION_WAY_DROP;

				if (state == SESSION_RELAY && answered)
					want = SESSION_WAY_ABORT;
				if (state == SESSION_CONNECTING && confirmed)
					want = SESSION_WAY_REFUSE;
				ck_assert_int_eq(session_decide_room((enum session_state)state, answered, confirmed), want);
			}
}
END_TEST

static const struct {
	int error;
	bool rest, ours;
	enum session_patience want;
} patience[] = {
	{ 0, true, true, SESSION_HAS_CONNECTED },
	{ -ECONNREFUSED, true, false, SESSION_FAILS },
	{ -ESTALE, false, false, SESSION_FAILS }, /* an errno above it */
	{ -EINPROGRESS, true, true, SESSION_BLAMES_US },
	{ -EINPROGRESS, true, false, SESSION_WAITS_REST },
	{ -EINPROGRESS, false, false, SESSION_FAILS },
	{ -EINPROGRESS, false, true, SESSION_FAILS },
};

START_TEST(silent_server)
{
	ck_assert_int_eq(session_decide_patience(patience[_i].error, patience[_i].rest, patience[_i].ours), patience[_i].want);
}
END_TEST

/* These ends are in order: both directions have ended; the converter's last word to a client; a client that has left by itself. */
START_TEST(ends)
{
	for (int outcome = 0; outcome < OUTCOME_COUNT; outcome++)
		for (int answered = 0; answered < 2; answered++) {
			bool done = outcome == OUTCOME_DONE;

			ck_assert_int_eq(session_ends_in_order(RELAY_DOWNSTREAM, (enum outcome)outcome, answered), done);
			ck_assert_int_eq(session_ends_in_order(RELAY_UPSTREAM, (enum outcome)outcome, answered),
					 done || answered || outcome == OUTCOME_CLIENT_LEFT);
		}
}
END_TEST

START_TEST(lost)
{
	ck_assert_int_eq(session_decide_lost(RELAY_UPSTREAM, false, true), OUTCOME_CLIENT_LOST);
	ck_assert_int_eq(session_decide_lost(RELAY_UPSTREAM, false, false), OUTCOME_NO_HANDSHAKE);
	ck_assert_int_eq(session_decide_lost(RELAY_DOWNSTREAM, false, true), OUTCOME_SERVER_LOST);
	ck_assert_int_eq(session_decide_lost(RELAY_DOWNSTREAM, false, false), OUTCOME_SERVER_LOST);
	ck_assert_int_eq(session_decide_lost(RELAY_UPSTREAM, true, false), OUTCOME_BYTES_MISSING);
	ck_assert_int_eq(session_decide_lost(RELAY_DOWNSTREAM, true, true), OUTCOME_BYTES_MISSING);
}
END_TEST

static const struct {
	bool silent;
	enum request_action action;
	enum judgement_reply reply;
	bool confirmed;
	const char *unserved; /* why, or NULL */
} silences[] = {
	{ false, REQUEST_CONNECT, JUDGEMENT_RESET, true, NULL },
	{ true, REQUEST_RESET, JUDGEMENT_RESET, true, NULL },
	{ true, REQUEST_CONNECT, JUDGEMENT_SILENT, true, NULL },
	{ true, REQUEST_CONNECT, JUDGEMENT_RESPONSE, false, NULL },
	{ true, REQUEST_PROVE, JUDGEMENT_SILENT, false, NULL },
	{ true, REQUEST_CONNECT, JUDGEMENT_RESET, true, "not Multipath TCP, which a silent client needs" },
	{ true, REQUEST_ANSWER, JUDGEMENT_RESET, false, "a blind client whose SYN+ACK has confirmed nothing" },
	{ true, REQUEST_WAIT, JUDGEMENT_SILENT, true, "a part of a request in the SYN of a silent client" },
	{ true, REQUEST_WAIT, JUDGEMENT_RESET, false, NULL },
};

START_TEST(unserved)
{
	const struct serve_verdict verdict = { .silent = silences[_i].silent, .action = silences[_i].action, .reply = silences[_i].reply };

	ck_assert_pstr_eq(session_decide_unserved(&verdict, silences[_i].confirmed), silences[_i].unserved);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("session_decision");
	TCase *tcase = tcase_create("decisions");

	tcase_add_test(tcase, timeouts);
	tcase_add_loop_test(tcase, deadline, 0, (int)ARRAY_SIZE(deadlines));
	tcase_add_test(tcase, deadline_that_has_passed);
	tcase_add_test(tcase, room);
	tcase_add_loop_test(tcase, silent_server, 0, (int)ARRAY_SIZE(patience));
	tcase_add_test(tcase, ends);
	tcase_add_test(tcase, lost);
	tcase_add_loop_test(tcase, unserved, 0, (int)ARRAY_SIZE(silences));
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
