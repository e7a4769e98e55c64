/* SPDX-License-Identifier: BSD-3-Clause */
/* test_supervise_caller.c - a supervised connection's next step: when its call ends, how its socket goes on, what its SYN+ACK leads to */
#include "config.h"

#include "common/clock.h"
#include "run.h"
#include "supervise/connection.h"

#include <check.h>
#include <errno.h>

#define NOW (INT64_C(12345) * CLOCK_NS_PER_S)
#define RESTART 512 /* any error that the kernel understands */

static enum caller_verdict judge(struct caller_view call, int *error)
{
	return caller_judge(&call, NOW, error);
}

START_TEST(call_waits_as_long_as_it_may)
{
	int error;

	ck_assert_int_eq(judge((struct caller_view){ 0 }, &error), CALLER_WAITS);
	ck_assert_int_eq(judge((struct caller_view){ .limit = NOW + 1 }, &error), CALLER_WAITS);
	ck_assert_int_eq(judge((struct caller_view){ .limit = NOW }, &error), CALLER_LEAVE);
	ck_assert_int_eq(error, EINPROGRESS);
	ck_assert_int_eq(judge((struct caller_view){ .limit = NOW, .direct = true }, &error), CALLER_LEAVE);
	ck_assert_int_eq(error, EINPROGRESS);
	ck_assert_int_eq(judge((struct caller_view){ .limit = NOW, .nonblocking = true }, &error), CALLER_OUT_OF_TIME);
	ck_assert_int_eq(judge((struct caller_view){ .limit = NOW, .nonblocking = true, .direct = true }, &error), CALLER_WAITS);
}
END_TEST

START_TEST(signal_ends_a_call_that_blocks)
{
	int error;

	ck_assert_int_eq(judge((struct caller_view){ .interruption = RESTART }, &error), CALLER_LEAVE);
	ck_assert_int_eq(error, RESTART);
	ck_assert_int_eq(judge((struct caller_view){ .interruption = EINTR }, &error), CALLER_LEAVE);
	ck_assert_int_eq(error, EINTR);
	ck_assert_int_eq(judge((struct caller_view){ .interruption = RESTART, .nonblocking = true }, &error), CALLER_WAITS);
	/* SO_SNDTIMEO: such calls return EINTR whatever the handler's flags */
	ck_assert_int_eq(judge((struct caller_view){ .interruption = RESTART, .limit = NOW + 1 }, &error), CALLER_LEAVE);
	ck_assert_int_eq(error, EINTR);
}
END_TEST

START_TEST(thread_that_has_ended_leaves_its_socket)
{
	int error;

	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(judge((struct caller_view){ .gone = true, .nonblocking = i & 1, .direct = i & 2, .limit = NOW }, &error),
				 CALLER_LEAVE);
}
END_TEST

START_TEST(socket_that_is_shut_down_ends_its_call)
{
	int error;

	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(judge((struct caller_view){ .shut = true, .nonblocking = i & 1, .direct = i & 2, .interruption = EINTR,
							     .limit = NOW }, &error), CALLER_SHUT);
	ck_assert_int_eq(judge((struct caller_view){ .shut = true, .gone = true }, &error), CALLER_LEAVE);
}
END_TEST

/* Whatever a socket goes on as, no response is to come on one that the program has. */
START_TEST(socket_goes_on_without_a_response)
{
	for (int i = 0; i < 32; i++) {
		const struct caller_left left = { .direct = i & 1, .stand_in = i & 2, .gone = i & 4, .blind = i & 8, .closed = i & 16 };
		const enum caller_way way = caller_way(&left);

		if (way == CALLER_AS_IT_IS)
			ck_assert(left.direct && !(left.gone && left.stand_in));
		if (way == CALLER_BLINDLY)
			ck_assert(left.blind && !left.direct && !(left.gone && left.stand_in));
		if (way == CALLER_DIRECTLY)
			ck_assert(!left.blind && !left.closed && !left.gone);
		if (way == CALLER_ENDED)
			ck_assert(left.gone || (left.closed && !left.blind && !left.direct));
	}
	ck_assert_int_eq(caller_way(&(struct caller_left){ 0 }), CALLER_DIRECTLY);
	ck_assert_int_eq(caller_way(&(struct caller_left){ .closed = true }), CALLER_ENDED);
	ck_assert_int_eq(caller_way(&(struct caller_left){ .closed = true, .blind = true }), CALLER_BLINDLY);
}
END_TEST

START_TEST(sooner_of_two_times)
{
	ck_assert_int_eq(caller_sooner(0, 0), 0);
	ck_assert_int_eq(caller_sooner(0, 7), 7);
	ck_assert_int_eq(caller_sooner(7, 0), 7);
	ck_assert_int_eq(caller_sooner(7, 8), 7);
	ck_assert_int_eq(caller_sooner(8, 7), 7);
	ck_assert_int_eq(caller_wait_ms(0, NOW), -1);
	ck_assert_int_eq(caller_wait_ms(NOW - 1, NOW), 1); /* it is late already: all else has its turn first */
	for (int64_t wait = 0; wait < 3 * CLOCK_NS_PER_MS; wait += 99999)
		ck_assert_int_gt(caller_wait_ms(NOW + wait, NOW) * CLOCK_NS_PER_MS, wait);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("supervise_caller");
	TCase *tcase = tcase_create("caller");

	tcase_add_test(tcase, call_waits_as_long_as_it_may);
	tcase_add_test(tcase, signal_ends_a_call_that_blocks);
	tcase_add_test(tcase, thread_that_has_ended_leaves_its_socket);
	tcase_add_test(tcase, socket_that_is_shut_down_ends_its_call);
	tcase_add_test(tcase, socket_goes_on_without_a_response);
	tcase_add_test(tcase, sooner_of_two_times);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
