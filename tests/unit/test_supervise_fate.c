/* SPDX-License-Identifier: BSD-3-Clause */
/* test_supervise_fate.c - what becomes of blind requests: when they are looked at, made again, and what is learned from their end */
#include "config.h"

#include "common/clock.h"
#include "run.h"
#include "supervise/fate.h"

#include <check.h>

#define KERNEL_REPEATS_NS CLOCK_NS_PER_S /* Linux's initial time-out of retransmission, behind which SYNs have no data */
#define LONGEST_WITHHELD_NS (700 * CLOCK_NS_PER_MS)
#define PATIENCE_NS (10 * CLOCK_NS_PER_S)
#define STARTED (INT64_C(12345) * CLOCK_NS_PER_S)

static const struct fate_seen gone = { .there = false };
static const struct fate_seen unanswered = { .there = true, .syn_sent = true };
static const struct fate_seen taken = { .there = true, .answered = true, .taken = true };
static const struct fate_seen untaken = { .there = true, .answered = true };

/* A request whose SYNs are never answered. Fills in when it was made again, and returns what it ends with, and when. */
static enum fate run_unanswered(bool repeatable, int64_t late, int64_t repeats_at[FATE_REPEATS_MAX], int *repeats, int64_t *ended)
{
	struct fate_request request = { .started = STARTED, .syn_at = STARTED, .repeatable = repeatable,
				       .withheld = LONGEST_WITHHELD_NS };
	int64_t now = fate_first_look(STARTED), next = 0;

	for (int looks = 0; looks < 1000; looks++) {
		enum fate fate = fate_judge(&request, &unanswered, now + late, PATIENCE_NS, &next);

		if (fate == FATE_OPEN) {
			ck_assert_int_gt(next, now + late);
			now = next;
			continue;
		}
		*repeats = request.repeats;
		*ended = now + late;
		if (fate != FATE_REPEAT)
			return fate;
		ck_assert_int_lt(request.repeats, FATE_REPEATS_MAX);
		repeats_at[request.repeats++] = now + late - request.syn_at;
		request.syn_at = now + late;
		now = fate_first_look(request.syn_at);
	}
	ck_abort_msg("no end");
}

START_TEST(repeats_come_between_the_converter_and_the_kernel)
{
	int64_t repeats_at[FATE_REPEATS_MAX], ended;
	int repeats;

	ck_assert_int_eq(run_unanswered(true, _i * CLOCK_NS_PER_MS, repeats_at, &repeats, &ended), FATE_SILENT);
	ck_assert_int_eq(repeats, FATE_REPEATS_MAX);
	for (int i = 0; i < repeats; i++) {
		ck_assert_int_gt(repeats_at[i], LONGEST_WITHHELD_NS);
		ck_assert_int_lt(repeats_at[i], KERNEL_REPEATS_NS);
	}
	ck_assert_int_ge(ended, STARTED + PATIENCE_NS);
}
END_TEST

START_TEST(what_cannot_be_repeated_is_left_alone)
{
	int64_t repeats_at[FATE_REPEATS_MAX], ended;
	int repeats;

	ck_assert_int_eq(run_unanswered(false, 0, repeats_at, &repeats, &ended), FATE_SILENT);
	ck_assert_int_eq(repeats, 0);
	ck_assert_int_ge(ended, STARTED + PATIENCE_NS);
	ck_assert_int_lt(ended, STARTED + 3 * PATIENCE_NS);
}
END_TEST

static enum fate judge(int repeats, const struct fate_seen *seen)
{
	struct fate_request request = {
		.started = STARTED, .syn_at = STARTED, .repeats = repeats, .repeatable = true, .withheld = LONGEST_WITHHELD_NS
	};
	int64_t next;

	return fate_judge(&request, seen, STARTED + 2 * CLOCK_NS_PER_S, PATIENCE_NS, &next);
}

START_TEST(an_answer_is_the_end)
{
	ck_assert_int_eq(judge(0, &taken), FATE_TAKEN);
	ck_assert_int_eq(judge(FATE_REPEATS_MAX, &taken), FATE_TAKEN);
	ck_assert_int_eq(judge(0, &untaken), FATE_UNTAKEN);
	ck_assert_int_eq(judge(1, &untaken), FATE_UNTAKEN);
}
END_TEST

/* The last SYN without data was answered, and all with data were not: such SYNs don't get through. */
START_TEST(a_path_that_drops_syns_with_data_is_found_out)
{
	for (int repeats = 0; repeats < FATE_REPEATS_MAX; repeats++)
		ck_assert_int_eq(judge(repeats, &gone), FATE_GONE);
	ck_assert_int_eq(judge(FATE_REPEATS_MAX, &gone), FATE_UNTAKEN);
}
END_TEST

/* A connection that is over between two looks, the first of them at @_i ms: only then is the server too slow, not when it refuses. */
START_TEST(slow_servers_are_told_from_refusals)
{
	struct fate_request request = { .started = STARTED, .syn_at = STARTED, .repeatable = true, .withheld = LONGEST_WITHHELD_NS };
	const int64_t reset_at = STARTED + _i * 10 * CLOCK_NS_PER_MS;
	int64_t now = fate_first_look(STARTED), next = 0;

	while (now < reset_at) {
		ck_assert_int_eq(fate_judge(&request, &unanswered, now, PATIENCE_NS, &next), FATE_OPEN);
		now = next;
	}
	ck_assert_int_eq(fate_judge(&request, &gone, now, PATIENCE_NS, &next), _i >= 69 ? FATE_SLOW : FATE_GONE);
}
END_TEST

/* A connection that is up, and of whose round trip nothing is known yet, isn't judged by what isn't known. */
START_TEST(no_round_trip_says_nothing)
{
	const struct fate_seen unmeasured = { .there = true };

	ck_assert_int_eq(judge(0, &unmeasured), FATE_TAKEN);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("supervise_fate");
	TCase *tcase = tcase_create("supervise_fate");

	tcase_add_loop_test(tcase, repeats_come_between_the_converter_and_the_kernel, 0, 50); /* milliseconds too late for each look */
	tcase_add_test(tcase, what_cannot_be_repeated_is_left_alone);
	tcase_add_test(tcase, an_answer_is_the_end);
	tcase_add_test(tcase, a_path_that_drops_syns_with_data_is_found_out);
	tcase_add_loop_test(tcase, slow_servers_are_told_from_refusals, 1, 90);
	tcase_add_test(tcase, no_round_trip_says_nothing);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
