/* SPDX-License-Identifier: BSD-3-Clause */
/* test_syn_decision.c - what becomes of a SYN and of the attempt to reach its server, for each kind of client and each event */
#include "config.h"

#include "serve/syn_decision.h"

#include "run.h"

#include <check.h>
#include <limits.h>
#include <string.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Kinds of clients, with what has happened to their attempts. */
#define ORDINARY { .hold_ms = UINT_MAX }
#define SILENT_ASKS { .silent = true, .asks = true }
#define SILENT { .silent = true }
#define BLIND { .silent = true, .blind = true }
#define BLIND_ASKS { .silent = true, .blind = true, .asks = true }
#define BLIND_MPTCP { .silent = true, .blind = true, .needs_mptcp = true }
#define LATE { .silent = true, .blind = true, .needs_mptcp = true, .late = true }
#define LATE_NUMBERED { .silent = true, .blind = true, .needs_mptcp = true, .numbered = true, .late = true }
#define ROUTED { .silent = true, .blind = true, .routes = true, .hold_ms = 5000 }
#define ANSWERED { .silent = true, .blind = true, .needs_mptcp = true, .numbered = true, .late = true, .server_answered = true }

static const struct {
	struct syn_facts facts;
	enum syn_event event;
	struct syn_step step; /* without its reason */
} steps[] = {
	/* a client that takes responses */
	{ ORDINARY, SYN_TIME_IS_OVER, { .verdict = HOLD_PASS_UNCONFIRMED, .keep = true, .counted = METRICS_SYN_LATE } },
	{ ORDINARY, SYN_SERVER_ANSWERED, { .verdict = HOLD_PASS_CONFIRMED, .keep = true, .counted = METRICS_SYN_ANSWERED } },
	{ ORDINARY, SYN_SERVER_ANSWERED_MPTCP, { .verdict = HOLD_PASS_CONFIRMED, .keep = true, .counted = METRICS_SYN_ANSWERED } },
	{ { .asks = true, .hold_ms = UINT_MAX }, SYN_SERVER_ANSWERED_MPTCP,
	  { .verdict = HOLD_PASS_CONFIRMED, .keep = true, .counted = METRICS_SYN_ANSWERED } },
	{ ORDINARY, SYN_SERVER_FAILED, { .verdict = HOLD_PASS_TCP, .keep = true, .tells_refusal = true, .counted = METRICS_SYN_FAILED } },
	{ ORDINARY, SYN_SERVER_TIMED_OUT, { .verdict = HOLD_PASS_TCP, .keep = true, .tells_refusal = true, .counted = METRICS_SYN_FAILED } },
	{ ORDINARY, SYN_ROOM_IS_NEEDED, { .verdict = HOLD_PASS_UNCONFIRMED, .counted = METRICS_SYN_STOPPED } },
	{ ORDINARY, SYN_NOT_GRANTED, { .verdict = HOLD_PASS_TCP, .keep = true, .counted = METRICS_SYN_NOT_GRANTED } },
	{ ORDINARY, SYN_STOPPED, { .verdict = HOLD_PASS_UNCONFIRMED, .keep = true, .counted = METRICS_SYN_STOPPED } },
	/* whether the server speaks Multipath TCP is told by a response, or by none */
	{ SILENT_ASKS, SYN_SERVER_ANSWERED_MPTCP, { .verdict = HOLD_PASS_UNCONFIRMED, .keep = true, .counted = METRICS_SYN_ANSWERED } },
	{ SILENT_ASKS, SYN_SERVER_ANSWERED, { .verdict = HOLD_PASS_CONFIRMED, .keep = true, .counted = METRICS_SYN_ANSWERED } },
	{ SILENT, SYN_SERVER_ANSWERED_MPTCP, { .verdict = HOLD_PASS_CONFIRMED, .keep = true, .counted = METRICS_SYN_ANSWERED } },
	{ SILENT, SYN_STOPPED, { .verdict = HOLD_PASS_UNCONFIRMED, .keep = true, .counted = METRICS_SYN_STOPPED } },
	{ BLIND_ASKS, SYN_SERVER_ANSWERED_MPTCP, { .verdict = HOLD_PASS_CONFIRMED, .keep = true, .counted = METRICS_SYN_ANSWERED } },
	{ ORDINARY, SYN_PASSES, { .verdict = HOLD_PASS_UNCONFIRMED, .counted = METRICS_SYN_UNCONFIRMED } },
	/* blind, over plain TCP */
	{ BLIND, SYN_PASSES, { .verdict = HOLD_PASS_UNCONFIRMED, .counted = METRICS_SYN_UNCONFIRMED } },
	{ BLIND, SYN_SERVER_ANSWERED, { .verdict = HOLD_PASS_CONFIRMED, .keep = true, .counted = METRICS_SYN_ANSWERED } },
	{ BLIND, SYN_TIME_IS_OVER, { .verdict = HOLD_DROP_UNANSWERED, .counted = METRICS_SYN_UNANSWERED } },
	{ BLIND, SYN_SERVER_TIMED_OUT, { .verdict = HOLD_DROP_UNANSWERED, .counted = METRICS_SYN_UNANSWERED } },
	{ BLIND, SYN_SERVER_FAILED, { .verdict = HOLD_REFUSE, .tells_refusal = true, .counted = METRICS_SYN_REFUSED } },
	{ BLIND, SYN_ROOM_IS_NEEDED, { .verdict = HOLD_PASS_UNCONFIRMED, .counted = METRICS_SYN_STOPPED } },
	{ BLIND, SYN_NOT_GRANTED, { .verdict = HOLD_REFUSE, .counted = METRICS_SYN_REFUSED } },
	{ BLIND, SYN_STOPPED, { .verdict = HOLD_REFUSE, .resets = true, .counted = METRICS_SYN_REFUSED } },
	/* blind, over Multipath TCP: it is late before its kernel sends the SYN again; 3.5 s behind its SYN nothing is waited for */
	{ BLIND_MPTCP, SYN_TIME_IS_OVER, { .verdict = HOLD_WITHHOLD, .late = true, .wait_ms = 2600 } },
	{ BLIND_MPTCP, SYN_SERVER_ANSWERED, { .verdict = HOLD_PASS_CONFIRMED, .keep = true, .counted = METRICS_SYN_ANSWERED } },
	{ BLIND_MPTCP, SYN_ROOM_IS_NEEDED, { .verdict = HOLD_PASS_UNCONFIRMED, .counted = METRICS_SYN_STOPPED } },
	{ LATE, SYN_TIME_IS_OVER, { .verdict = HOLD_DROP_UNANSWERED, .counted = METRICS_SYN_UNANSWERED } },
	{ LATE, SYN_SERVER_ANSWERED, { .verdict = HOLD_REFUSE, .resets = true, .counted = METRICS_SYN_REFUSED } },
	{ LATE, SYN_SERVER_FAILED, { .verdict = HOLD_REFUSE, .tells_refusal = true, .counted = METRICS_SYN_REFUSED } },
	{ LATE, SYN_ROOM_IS_NEEDED, { .verdict = HOLD_DROP_UNANSWERED, .counted = METRICS_SYN_STOPPED } },
	/* one that makes its request again: the answer is kept for the next SYN */
	{ LATE_NUMBERED, SYN_SERVER_ANSWERED, { .verdict = HOLD_WITHHOLD, .late = true, .server_answered = true, .wait_ms = 2000 } },
	{ LATE_NUMBERED, SYN_REPEATED, { .verdict = HOLD_DROP_REPEATED, .counted = METRICS_SYN_REPEATED } },
	{ ANSWERED, SYN_TIME_IS_OVER, { .verdict = HOLD_REFUSE, .resets = true, .counted = METRICS_SYN_REFUSED } },
	{ ANSWERED, SYN_SERVER_FAILED, { .verdict = HOLD_WITHHOLD, .late = true, .server_answered = true } },
	{ ANSWERED, SYN_SERVER_TIMED_OUT, { .verdict = HOLD_WITHHOLD, .late = true, .server_answered = true } },
	{ ANSWERED, SYN_SERVER_ANSWERED, { .verdict = HOLD_WITHHOLD, .late = true, .server_answered = true } },
	{ ANSWERED, SYN_REPEATED, { .verdict = HOLD_DROP_REPEATED, .counted = METRICS_SYN_REPEATED } },
	{ ANSWERED, SYN_SERVER_ANSWERED_MPTCP, { .verdict = HOLD_WITHHOLD, .late = true, .server_answered = true } },
	{ ANSWERED, SYN_PASSES, { .verdict = HOLD_PASS_UNCONFIRMED, .counted = METRICS_SYN_UNCONFIRMED } },
	{ ANSWERED, SYN_ROOM_IS_NEEDED, { .verdict = HOLD_DROP_UNANSWERED, .counted = METRICS_SYN_STOPPED } },
	/* a gateway's: the SYN goes on to its server as it came */
	{ ROUTED, SYN_NOT_GRANTED, { .verdict = HOLD_PASS_UNCONFIRMED, .counted = METRICS_SYN_NOT_GRANTED } },
	{ ROUTED, SYN_STOPPED, { .verdict = HOLD_PASS_UNCONFIRMED, .counted = METRICS_SYN_STOPPED } },
	{ ROUTED, SYN_SERVER_FAILED, { .verdict = HOLD_REFUSE, .tells_refusal = true, .counted = METRICS_SYN_REFUSED } },
};

START_TEST(each_step)
{
	struct syn_step step = syn_decide(&steps[_i].facts, steps[_i].event), want = steps[_i].step;

	ck_assert_int_eq(step.verdict, want.verdict);
	ck_assert_uint_eq(step.wait_ms, want.wait_ms);
	ck_assert_int_eq(step.late, want.late);
	ck_assert_int_eq(step.server_answered, want.server_answered);
	ck_assert_int_eq(step.keep, want.keep);
	ck_assert_int_eq(step.tells_refusal, want.tells_refusal);
	ck_assert_int_eq(step.resets, want.resets);
	if (step.verdict != HOLD_WITHHOLD)
		ck_assert_int_eq(step.counted, want.counted);
}
END_TEST

/* Whatever happens to whom: a blind client's SYN+ACK confirms, or it is sent without a promise, or there is none. */
START_TEST(blind_clients_get_no_response)
{
	for (unsigned bits = 0; bits < 32; bits++)
		for (int event = 0; event < SYN_EVENTS; event++) {
			const struct syn_facts facts = { .silent = true, .blind = true, .needs_mptcp = bits & 1, .asks = bits & 2,
							 .numbered = bits & 4, .late = bits & 8, .server_answered = bits & 16 };
			struct syn_step step = syn_decide(&facts, (enum syn_event)event);

			ck_assert_int_ne(step.verdict, HOLD_PASS);
			ck_assert_int_ne(step.verdict, HOLD_PASS_TCP);
			if (facts.late && event != SYN_PASSES)
				ck_assert(step.verdict != HOLD_PASS_CONFIRMED && step.verdict != HOLD_PASS_UNCONFIRMED);
			if (step.verdict == HOLD_PASS_UNCONFIRMED)
				ck_assert((event == SYN_ROOM_IS_NEEDED || event == SYN_PASSES) && !step.keep);
		}
}
END_TEST

/* An attempt whose server is silent has ended 3.5 s behind its SYN, by a clock that the events move. */
START_TEST(silence_ends)
{
	for (int numbered = 0; numbered < 2; numbered++)
		for (int mptcp = 0; mptcp < 2; mptcp++) {
			struct syn_facts facts = { .silent = true, .blind = true, .needs_mptcp = mptcp, .numbered = numbered, .hold_ms = UINT_MAX };
			unsigned now_ms = syn_first_wait_ms(&facts, 700);
			struct syn_step step = syn_decide(&facts, SYN_TIME_IS_OVER);

			while (step.verdict == HOLD_WITHHOLD) {
				now_ms += step.wait_ms;
				facts.late = step.late;
				ck_assert_uint_gt(step.wait_ms, 0);
				step = syn_decide(&facts, SYN_TIME_IS_OVER);
			}
			ck_assert_int_eq(step.verdict, HOLD_DROP_UNANSWERED);
			ck_assert_uint_ge(now_ms, 3300);
			ck_assert_uint_le(now_ms, 3500);
		}
}
END_TEST

static const struct {
	struct syn_facts facts;
	unsigned hold_ms, wait_ms;
} waits[] = {
	{ { .hold_ms = UINT_MAX }, 700, 700 },
	{ { .hold_ms = 300 }, 700, 300 },
	{ { .hold_ms = 900 }, 700, 700 },
	{ { .hold_ms = 0 }, 700, 0 },
	{ ORDINARY, 2000, 2000 },
	{ ROUTED, 700, 5000 },
	{ { .blind = true, .hold_ms = UINT_MAX }, 700, 3500 },
	{ { .blind = true, .hold_ms = 100 }, 700, 3500 },
	{ { .blind = true, .needs_mptcp = true, .hold_ms = UINT_MAX }, 2000, 900 },
	{ { .blind = true, .needs_mptcp = true, .hold_ms = UINT_MAX }, 500, 500 },
	{ { .blind = true, .needs_mptcp = true, .numbered = true, .hold_ms = UINT_MAX }, 2000, 700 },
	{ { .blind = true, .needs_mptcp = true, .numbered = true, .hold_ms = 250 }, 2000, 250 },
};

START_TEST(first_wait)
{
	ck_assert_uint_eq(syn_first_wait_ms(&waits[_i].facts, waits[_i].hold_ms), waits[_i].wait_ms);
}
END_TEST

START_TEST(repeats)
{
	const struct syn_facts earlier = { .repeat = 3, .needs_mptcp = true };
	struct syn_facts facts = { .repeat = 3, .needs_mptcp = true };

	ck_assert_int_eq(syn_decide_repeat(&facts, &earlier, true), SYN_REPEAT_DROP);
	facts.repeat = 2;
	ck_assert_int_eq(syn_decide_repeat(&facts, &earlier, true), SYN_REPEAT_DROP);
	facts.repeat = 4;
	ck_assert_int_eq(syn_decide_repeat(&facts, &earlier, true), SYN_REPEAT_TAKE);
	ck_assert_int_eq(syn_decide_repeat(&facts, &earlier, false), SYN_REPEAT_NEW);
	facts.needs_mptcp = false;
	ck_assert_int_eq(syn_decide_repeat(&facts, &earlier, true), SYN_REPEAT_NEW);
}
END_TEST

/* ----- a SYN that isn't withheld ----- */

enum { FOREIGN = 1, REFUSES = 2, ASKS_INFO = 4, DEMANDED = 8, WITHHOLD = 16, REFUSED = 32, IS_SILENT = 64, IS_BLIND = 128, RESETS = 256 };

static const struct {
	enum request_action action;
	unsigned how;
	enum hold_verdict verdict;
	uint8_t native;
} judged[] = {
	{ REQUEST_CONNECT, WITHHOLD, HOLD_WITHHOLD, 13 },
	{ REQUEST_CONNECT, WITHHOLD | IS_SILENT | IS_BLIND, HOLD_WITHHOLD, 13 },
	{ REQUEST_CONNECT, 0, HOLD_PASS_UNCONFIRMED, 13 },
	{ REQUEST_CONNECT, ASKS_INFO, HOLD_PASS, 13 },
	{ REQUEST_PROVE, 0, HOLD_PASS_UNCONFIRMED, 13 },
	{ REQUEST_ANSWER, DEMANDED | REFUSED, HOLD_PASS_UNCONFIRMED, 13 },
	{ REQUEST_ANSWER, REFUSED, HOLD_PASS_TCP, 13 },
	{ REQUEST_ANSWER, WITHHOLD | REFUSED, HOLD_PASS_TCP, 13 },
	{ REQUEST_ANSWER, 0, HOLD_PASS, 13 },
	{ REQUEST_IGNORE, 0, HOLD_PASS, 13 },
	{ REQUEST_IGNORE, FOREIGN, HOLD_DROP_FOREIGN, 13 },
	{ REQUEST_WAIT, FOREIGN, HOLD_PASS, 13 },
	{ REQUEST_RESET, FOREIGN, HOLD_PASS, 13 },
	/* silent */
	{ REQUEST_CONNECT, IS_SILENT | REFUSES, HOLD_PASS_UNCONFIRMED, 13 },
	{ REQUEST_PROVE, IS_SILENT | REFUSES, HOLD_PASS_UNCONFIRMED, 13 },
	{ REQUEST_ANSWER, IS_SILENT | REFUSES | REFUSED, HOLD_PASS_TCP, 13 },
	{ REQUEST_ANSWER, IS_SILENT | REFUSES | DEMANDED | REFUSED, HOLD_PASS_UNCONFIRMED, 13 },
	{ REQUEST_IGNORE, IS_SILENT | REFUSES, HOLD_PASS_UNCONFIRMED, 13 },
	{ REQUEST_WAIT, IS_SILENT | REFUSES, HOLD_REFUSE, NATIVE_RESET },
	{ REQUEST_RESET, IS_SILENT | REFUSES, HOLD_REFUSE, NATIVE_RESET },
	{ REQUEST_RESET, IS_SILENT, HOLD_PASS_UNCONFIRMED, NATIVE_RESET },
	/* blind: a client isn't refused for lack of a cookie or of room; it proves its address by its third ACK */
	{ REQUEST_CONNECT, IS_SILENT | IS_BLIND | REFUSES, HOLD_PASS_UNCONFIRMED, 13 },
	{ REQUEST_PROVE, IS_SILENT | IS_BLIND | REFUSES, HOLD_PASS_UNCONFIRMED, 13 },
	{ REQUEST_ANSWER, IS_SILENT | IS_BLIND | REFUSES | DEMANDED | REFUSED, HOLD_PASS_UNCONFIRMED, 13 },
	{ REQUEST_ANSWER, IS_SILENT | IS_BLIND | REFUSES | REFUSED, HOLD_REFUSE, 13 },
	{ REQUEST_ANSWER, IS_SILENT | IS_BLIND | REFUSED, HOLD_PASS_UNCONFIRMED, 13 },
	{ REQUEST_WAIT, IS_SILENT | IS_BLIND | REFUSES, HOLD_REFUSE, NATIVE_RESET },
	{ REQUEST_CONNECT, IS_SILENT | IS_BLIND | REFUSES | RESETS, HOLD_REFUSE, NATIVE_RESET },
};

START_TEST(each_judgement)
{
	const unsigned how = judged[_i].how;
	const struct serve_settings settings = { .drop_foreign = how & FOREIGN, .refuses_syns = how & REFUSES };
	const struct serve_verdict verdict = {
		.action = judged[_i].action,
		.withhold = how & WITHHOLD,
		.reply = how & RESETS ? JUDGEMENT_RESET : how & IS_SILENT ? JUDGEMENT_SILENT : JUDGEMENT_RESPONSE,
		.responds = how & ASKS_INFO,
		.demanded = how & DEMANDED,
		.refused = how & REFUSED,
		.silent = how & IS_SILENT,
		.blind = how & IS_BLIND,
	};
	uint8_t native = 13;

	ck_assert_int_eq(syn_decide_judged(&verdict, &settings, &native), judged[_i].verdict);
	ck_assert_uint_eq(native, judged[_i].native);
}
END_TEST

START_TEST(a_late_worker_confirms_only_to_clients_that_listen)
{
	static const struct syn_facts listen[] = { ORDINARY, BLIND, LATE, ANSWERED }, given_up = BLIND_MPTCP;

	ck_assert(syn_ends_in_time(&given_up));
	for (size_t i = 0; i < ARRAY_SIZE(listen); i++)
		ck_assert_msg(!syn_ends_in_time(&listen[i]), "%zu", i);
}
END_TEST

/* The log's reason for the end of a withheld SYN; NULL: the log has the errno of the server's failure. */
static const struct {
	struct syn_facts facts;
	enum syn_event event;
	const char *why;
} reasons[] = {
	{ ORDINARY, SYN_TIME_IS_OVER, "the server hasn't answered in time" },
	{ ANSWERED, SYN_TIME_IS_OVER, "the server has answered too late" },
	{ BLIND, SYN_TIME_IS_OVER, "nobody has said anything" },
	{ ORDINARY, SYN_SERVER_ANSWERED, "the server has answered" },
	{ LATE, SYN_SERVER_ANSWERED, "the server has answered too late" },
	{ BLIND, SYN_SERVER_TIMED_OUT, "nobody has said anything" },
	{ ORDINARY, SYN_SERVER_FAILED, NULL },
	{ BLIND, SYN_SERVER_FAILED, NULL },
	{ ORDINARY, SYN_ROOM_IS_NEEDED, "others need the room" },
	{ ORDINARY, SYN_NOT_GRANTED, "no longer granted" },
	{ BLIND, SYN_NOT_GRANTED, "no longer granted" },
	{ ORDINARY, SYN_STOPPED, "no longer withheld" },
	{ BLIND, SYN_STOPPED, "no longer withheld" },
	{ BLIND_MPTCP, SYN_REPEATED, "its client has asked again" },
	{ BLIND, SYN_PASSES, "it goes on without us" },
};

START_TEST(log_says_why_a_syn_is_withheld_no_longer)
{
	ck_assert_pstr_eq(syn_decide(&reasons[_i].facts, reasons[_i].event).why, reasons[_i].why);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("syn_decision");
	TCase *tcase = tcase_create("decisions");

	tcase_add_loop_test(tcase, each_step, 0, (int)ARRAY_SIZE(steps));
	tcase_add_test(tcase, blind_clients_get_no_response);
	tcase_add_test(tcase, silence_ends);
	tcase_add_loop_test(tcase, first_wait, 0, (int)ARRAY_SIZE(waits));
	tcase_add_test(tcase, a_late_worker_confirms_only_to_clients_that_listen);
	tcase_add_test(tcase, repeats);
	tcase_add_loop_test(tcase, each_judgement, 0, (int)ARRAY_SIZE(judged));
	tcase_add_loop_test(tcase, log_says_why_a_syn_is_withheld_no_longer, 0, (int)ARRAY_SIZE(reasons));
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
