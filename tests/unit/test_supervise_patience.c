/* SPDX-License-Identifier: BSD-3-Clause */
/* test_supervise_patience.c - how long a supervised connection waits for its converter's response */
#include "config.h"

#include "common/clock.h"
#include "run.h"
#include "supervise/patience.h"

#include <check.h>

#define S CLOCK_NS_PER_S
#define STARTED (INT64_C(12345) * S)
#define TIMEOUT (3 * S)
#define FRESH 1000u  /* of an acknowledgement, in milliseconds */
#define STALE 2600u

static const struct patience_view synack_is_there = { .started = STARTED, .ends = STARTED + TIMEOUT, .heard_ms = FRESH, .proven = true };

static enum patience judge(struct patience_view view, int64_t after, int64_t *look_at)
{
	return patience_judge(&view, STARTED + after, look_at);
}

START_TEST(silence_before_the_synack_is_the_converters)
{
	struct patience_view view = synack_is_there;
	int64_t at;

	view.syn_sent = true;
	ck_assert_int_eq(judge(view, 0, &at), PATIENCE_WAIT);
	ck_assert_int_eq(at, STARTED + S);
	ck_assert_int_eq(judge(view, S, &at), PATIENCE_WAIT); /* there is nobody whom keepalive could ask */
	ck_assert_int_eq(at, STARTED + TIMEOUT);
	ck_assert_int_eq(judge(view, TIMEOUT - 1, &at), PATIENCE_WAIT);
	ck_assert_int_eq(judge(view, TIMEOUT, &at), PATIENCE_DEAD);
}
END_TEST

START_TEST(keepalive_asks_before_the_end)
{
	struct patience_view view = synack_is_there;
	int64_t at;

	ck_assert_int_eq(judge(view, S - 1, &at), PATIENCE_WAIT);
	ck_assert_int_eq(at, STARTED + S);
	ck_assert_int_eq(judge(view, S, &at), PATIENCE_PROBE);
	ck_assert_int_eq(at, STARTED + TIMEOUT);
	view.probing = true;
	ck_assert_int_eq(judge(view, S, &at), PATIENCE_WAIT);
	ck_assert_int_eq(at, STARTED + TIMEOUT);
}
END_TEST

START_TEST(server_is_waited_for_as_linux_would)
{
	struct patience_view view = synack_is_there;
	int64_t at;

	ck_assert_int_eq(judge(view, TIMEOUT, &at), PATIENCE_PROBE); /* nobody has looked in time */
	view.probing = true;
	for (int64_t after = TIMEOUT; after < 150 * S; after += S) {
		ck_assert_int_eq(judge(view, after, &at), PATIENCE_WAIT);
		ck_assert_int_eq(at, STARTED + after + S);
	}
	ck_assert_int_eq(judge(view, 150 * S, &at), PATIENCE_ALIVE);
}
END_TEST

START_TEST(who_has_proved_nothing_may_be_no_converter)
{
	struct patience_view view = synack_is_there;
	int64_t at;

	view.probing = true;
	view.proven = false;
	ck_assert_int_eq(judge(view, TIMEOUT - 1, &at), PATIENCE_WAIT);
	ck_assert_int_eq(judge(view, TIMEOUT, &at), PATIENCE_ALIVE);
	view.heard_ms = STALE;
	ck_assert_int_eq(judge(view, TIMEOUT, &at), PATIENCE_DEAD);
}
END_TEST

START_TEST(host_that_acknowledges_nothing_is_dead)
{
	struct patience_view view = synack_is_there;
	int64_t at;

	view.probing = true;
	view.heard_ms = STALE;
	ck_assert_int_eq(judge(view, TIMEOUT - 1, &at), PATIENCE_WAIT);
	ck_assert_int_eq(judge(view, TIMEOUT, &at), PATIENCE_DEAD);
	view.heard_ms = FRESH;
	ck_assert_int_eq(judge(view, TIMEOUT, &at), PATIENCE_WAIT);
}
END_TEST

START_TEST(error_ends_it_at_any_time)
{
	struct patience_view view = synack_is_there;
	int64_t at;

	view.closed = true;
	for (int64_t after = 0; after < 200 * S; after += S)
		ck_assert_int_eq(judge(view, after, &at), PATIENCE_ERROR);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("supervise_patience");
	TCase *tcase = tcase_create("patience");

	tcase_add_test(tcase, silence_before_the_synack_is_the_converters);
	tcase_add_test(tcase, keepalive_asks_before_the_end);
	tcase_add_test(tcase, server_is_waited_for_as_linux_would);
	tcase_add_test(tcase, who_has_proved_nothing_may_be_no_converter);
	tcase_add_test(tcase, host_that_acknowledges_nothing_is_dead);
	tcase_add_test(tcase, error_ends_it_at_any_time);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
