/* SPDX-License-Identifier: BSD-3-Clause */
/* test_supervise_blind.c - what becomes of blind requests: when they are looked at, made again, and what is learned from their end */
#include "config.h"

#include "common/clock.h"
#include "run.h"
#include "supervise/blind.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#define KERNEL_REPEATS_NS CLOCK_NS_PER_S /* Linux's initial time-out of retransmission, behind which SYNs have no data */
#define LONGEST_WITHHELD_NS (700 * CLOCK_NS_PER_MS)
#define PATIENCE_NS (10 * CLOCK_NS_PER_S)
#define STARTED (INT64_C(12345) * CLOCK_NS_PER_S)

static const struct blind_seen gone = { .exists = false };
static const struct blind_seen unanswered = { .exists = true, .syn_sent = true };
static const struct blind_seen taken = { .exists = true, .answered = true, .taken = true };
static const struct blind_seen untaken = { .exists = true, .answered = true };

/* A request whose SYNs are never answered: when it is repeated, when its converter is asked whether it is there, and when it ends. */
struct unanswered_run {
	int repeats;
	int64_t repeats_at[BLIND_REPEATS_KNOWN_MAX]; /* since the SYN before */
	int silent;
	int64_t silent_at, ended;
};

static struct unanswered_run run_unanswered(bool repeatable, int repeats_max, int64_t late)
{
	struct blind_request request = { .started = STARTED, .syn_at = STARTED, .repeatable = repeatable, .repeats_max = repeats_max,
				       .repeat_after = blind_repeat_after(LONGEST_WITHHELD_NS, 0), .withheld = LONGEST_WITHHELD_NS };
	int64_t now = blind_first_look(STARTED), next = 0;
	struct unanswered_run run = { 0 };

	for (int looks = 0; looks < 1000; looks++) {
		enum blind_verdict fate = blind_judge(&request, &unanswered, now + late, PATIENCE_NS, &next);

		if (fate == BLIND_SILENT) {
			run.silent++;
			run.silent_at = now + late;
		}
		if (fate == BLIND_OPEN || fate == BLIND_SILENT) {
			ck_assert_int_gt(next, now + late);
			now = next;
			continue;
		}
		run.repeats = request.repeats;
		run.ended = now + late;
		if (fate == BLIND_TO_KERNEL)
			return run;
		ck_assert_int_eq(fate, BLIND_REPEAT);
		ck_assert_int_lt(request.repeats, repeats_max);
		run.repeats_at[request.repeats++] = now + late - request.syn_at;
		request.syn_at = now + late;
		now = blind_first_look(request.syn_at);
	}
	ck_abort_msg("no end");
}

/* The converter is asked once whether it is there, and has its time to answer. */
static void expect_silence_once(const struct unanswered_run *run)
{
	ck_assert_int_eq(run->silent, 1);
	ck_assert_int_ge(run->silent_at, STARTED + PATIENCE_NS);
	ck_assert_int_lt(run->silent_at, STARTED + 3 * PATIENCE_NS);
	ck_assert_int_ge(run->ended, run->silent_at + BLIND_PROBE_MS * CLOCK_NS_PER_MS);
}

START_TEST(repeats_come_between_the_converter_and_the_kernel)
{
	static const int most[] = { BLIND_REPEATS_MAX, BLIND_REPEATS_KNOWN_MAX };

	for (size_t i = 0; i < 2; i++) {
		const struct unanswered_run run = run_unanswered(true, most[i], _i * CLOCK_NS_PER_MS);

		ck_assert_int_eq(run.repeats, most[i]);
		for (int j = 0; j < run.repeats; j++) {
			ck_assert_int_gt(run.repeats_at[j], LONGEST_WITHHELD_NS);
			ck_assert_int_lt(run.repeats_at[j], KERNEL_REPEATS_NS);
		}
		expect_silence_once(&run);
	}
}
END_TEST

/* A repeat waits for the answer to a SYN that was released at the last moment, if that can come within the kernel's second. */
START_TEST(the_round_trip_says_when)
{
	const int64_t unknown = blind_repeat_after(LONGEST_WITHHELD_NS, 0);

	ck_assert_int_eq(unknown, BLIND_REPEAT_MS * CLOCK_NS_PER_MS);
	for (int64_t rtt = CLOCK_NS_PER_MS; rtt < CLOCK_NS_PER_S; rtt += CLOCK_NS_PER_MS) {
		const int64_t after = blind_repeat_after(LONGEST_WITHHELD_NS, rtt);

		ck_assert_int_le(after, unknown);
		ck_assert(after == unknown || after > LONGEST_WITHHELD_NS + rtt);
	}
	ck_assert_int_lt(blind_repeat_after(LONGEST_WITHHELD_NS, 50 * CLOCK_NS_PER_MS), unknown);
	/* a near client, which lets its SYN be withheld for 599 ms (exchange_hold_ms()), repeats its request for 11 s, too */
	ck_assert_int_ge((BLIND_REPEATS_KNOWN_MAX + 1) * blind_repeat_after(599 * CLOCK_NS_PER_MS, CLOCK_NS_PER_MS), 11 * CLOCK_NS_PER_S);
}
END_TEST

START_TEST(what_cannot_be_repeated_is_left_alone)
{
	const struct unanswered_run run = run_unanswered(false, BLIND_REPEATS_MAX, 0);

	ck_assert_int_eq(run.repeats, 0);
	expect_silence_once(&run);
	ck_assert_int_lt(run.ended, STARTED + 3 * PATIENCE_NS);
}
END_TEST

static enum blind_verdict judge(int repeats, const struct blind_seen *seen)
{
	struct blind_request request = {
		.started = STARTED, .syn_at = STARTED, .repeats = repeats, .repeats_max = BLIND_REPEATS_MAX, .repeatable = true,
		.repeat_after = blind_repeat_after(LONGEST_WITHHELD_NS, 0), .withheld = LONGEST_WITHHELD_NS
	};
	int64_t next;

	return blind_judge(&request, seen, STARTED + 2 * CLOCK_NS_PER_S, PATIENCE_NS, &next);
}

START_TEST(an_answer_is_the_end)
{
	ck_assert_int_eq(judge(0, &taken), BLIND_TAKEN);
	ck_assert_int_eq(judge(BLIND_REPEATS_MAX, &taken), BLIND_TAKEN);
	ck_assert_int_eq(judge(0, &untaken), BLIND_UNTAKEN);
	ck_assert_int_eq(judge(1, &untaken), BLIND_UNTAKEN);
}
END_TEST

/* The supervisor was late, and what was answered or reset is the kernel's SYN without data: neither the path nor the server is at fault. */
START_TEST(the_kernels_own_syn_says_nothing)
{
	static const int most[] = { BLIND_REPEATS_MAX, BLIND_REPEATS_KNOWN_MAX };
	const struct blind_seen again = { .exists = true, .answered = true, .syn_repeated = true };

	ck_assert_int_eq(judge(0, &again), BLIND_GONE);
	for (size_t i = 0; i < 2; i++) {
		struct blind_request request = {
			.started = STARTED, .syn_at = STARTED, .repeatable = true, .repeats_max = most[i], .withheld = LONGEST_WITHHELD_NS,
			.repeat_after = blind_repeat_after(LONGEST_WITHHELD_NS, 0), .waiting_at = STARTED + 850 * CLOCK_NS_PER_MS
		};
		int64_t next;

		ck_assert_int_eq(blind_judge(&request, &gone, STARTED + 1144 * CLOCK_NS_PER_MS, PATIENCE_NS, &next), BLIND_GONE);
	}
}
END_TEST

/* The last SYN without data was answered, and all with data were not: such SYNs don't get through. */
START_TEST(a_path_that_drops_syns_with_data_is_found_out)
{
	for (int repeats = 0; repeats < BLIND_REPEATS_MAX; repeats++)
		ck_assert_int_eq(judge(repeats, &gone), BLIND_GONE);
	ck_assert_int_eq(judge(BLIND_REPEATS_MAX, &gone), BLIND_UNTAKEN);
}
END_TEST

/* A connection that ends at @_i * 10 ms, as the next look finds: the server has refused, or is too slow from 690 ms on. */
START_TEST(slow_servers_are_told_from_refusals)
{
	struct blind_request request = { .started = STARTED, .syn_at = STARTED, .repeatable = true, .repeats_max = BLIND_REPEATS_MAX,
				       .repeat_after = blind_repeat_after(LONGEST_WITHHELD_NS, 0), .withheld = LONGEST_WITHHELD_NS };
	const int64_t reset_at = STARTED + _i * 10 * CLOCK_NS_PER_MS;
	int64_t now = blind_first_look(STARTED), next = 0;

	while (now < reset_at) {
		ck_assert_int_eq(blind_judge(&request, &unanswered, now, PATIENCE_NS, &next), BLIND_OPEN);
		now = next;
	}
	ck_assert_int_eq(blind_judge(&request, &gone, now, PATIENCE_NS, &next), _i >= 69 ? BLIND_SLOW : BLIND_GONE);
}
END_TEST

/* A connection that is up counts as taken also while its round trip isn't known yet. */
START_TEST(no_round_trip_says_nothing)
{
	const struct blind_seen unmeasured = { .exists = true };

	ck_assert_int_eq(judge(0, &unmeasured), BLIND_TAKEN);
}
END_TEST

/* Each look comes when as much time again has gone by; one comes shortly before the converter gives the server up. */
START_TEST(looks_double_and_one_precedes_the_converters_end)
{
	struct blind_request request = { .started = STARTED, .syn_at = STARTED, .repeats_max = BLIND_REPEATS_MAX,
				       .repeat_after = blind_repeat_after(LONGEST_WITHHELD_NS, 0), .withheld = LONGEST_WITHHELD_NS };
	const int64_t first = blind_first_look(STARTED) - STARTED, last = LONGEST_WITHHELD_NS - 20 * CLOCK_NS_PER_MS;
	int64_t after = first, next = 0;

	while (after < last) {
		ck_assert_int_eq(blind_judge(&request, &unanswered, STARTED + after, PATIENCE_NS, &next), BLIND_OPEN);
		after = 2 * after < last ? 2 * after : last;
		ck_assert_int_eq(next, STARTED + after);
	}
	/* behind that they double again */
	ck_assert_int_eq(blind_judge(&request, &unanswered, STARTED + last, PATIENCE_NS, &next), BLIND_OPEN);
	ck_assert_int_eq(next, STARTED + 2 * last);
}
END_TEST

/* A SYN of the kernel's own may be out from its second on. */
START_TEST(reset_within_the_kernels_second_may_be_a_slow_server)
{
	struct blind_request request = { .started = STARTED, .syn_at = STARTED, .repeats_max = BLIND_REPEATS_MAX,
				       .withheld = LONGEST_WITHHELD_NS, .waiting_at = STARTED + 680 * CLOCK_NS_PER_MS };
	int64_t next;

	ck_assert_int_eq(blind_judge(&request, &gone, STARTED + KERNEL_REPEATS_NS - 1, PATIENCE_NS, &next), BLIND_SLOW);
	ck_assert_int_eq(blind_judge(&request, &gone, STARTED + KERNEL_REPEATS_NS, PATIENCE_NS, &next), BLIND_GONE);
	request.waiting_at--;
	ck_assert_int_eq(blind_judge(&request, &gone, STARTED + KERNEL_REPEATS_NS - 1, PATIENCE_NS, &next), BLIND_GONE);
}
END_TEST

/* The @number-th server of a test. */
static union sockaddr_ip server(unsigned int number, uint16_t port)
{
	union sockaddr_ip address;
	char text[32];

	snprintf(text, sizeof(text), "203.0.%u.%u", number / 256, number % 256);
	ck_assert_int_eq(sockaddr_ip_parse(&address, text, port), 0);
	return address;
}

static size_t place_of(int number)
{
	const union sockaddr_ip address = server((unsigned int)number, 0);

	return sockaddr_ip_hash(&address) % BLIND_MEMORY_PLACES;
}

START_TEST(slow_servers_and_failed_ones_are_remembered_apart)
{
	const union sockaddr_ip slow = server(1, 443), same = server(1, 80), failed = server(2, 443);

	ck_assert(!blind_memory_has(&slow, BLIND_TROUBLE_SLOW) && !blind_memory_has(&failed, BLIND_TROUBLE_FAILED));
	blind_memory_note(&slow, BLIND_TROUBLE_SLOW);
	ck_assert(blind_memory_has(&slow, BLIND_TROUBLE_SLOW) && blind_memory_has(&same, BLIND_TROUBLE_SLOW)); /* on any port */
	ck_assert(!blind_memory_has(&slow, BLIND_TROUBLE_FAILED) && !blind_memory_has(&failed, BLIND_TROUBLE_SLOW));
	blind_memory_note(&failed, BLIND_TROUBLE_FAILED);
	ck_assert(blind_memory_has(&failed, BLIND_TROUBLE_FAILED));
	ck_assert(!blind_memory_has(&slow, BLIND_TROUBLE_FAILED) && !blind_memory_has(&failed, BLIND_TROUBLE_SLOW));
	blind_memory_note(&slow, BLIND_TROUBLE_FAILED);
	ck_assert(blind_memory_has(&slow, BLIND_TROUBLE_SLOW) && blind_memory_has(&slow, BLIND_TROUBLE_FAILED));
}
END_TEST

/* Each server is remembered until one with the same place comes, and none that wasn't noted. */
START_TEST(hundreds_of_servers_are_remembered)
{
	int latest[BLIND_MEMORY_PLACES], forgotten = 0;

	memset(latest, -1, sizeof(latest));
	for (int i = 0; i < 256; i++) {
		const union sockaddr_ip one = server((unsigned int)i, 443);

		blind_memory_note(&one, BLIND_TROUBLE_SLOW);
		ck_assert(blind_memory_has(&one, BLIND_TROUBLE_SLOW));
		latest[place_of(i)] = i;
	}
	for (int i = 0; i < 512; i++) {
		const union sockaddr_ip one = server((unsigned int)i, 443);

		ck_assert_int_eq(blind_memory_has(&one, BLIND_TROUBLE_SLOW), latest[place_of(i)] == i);
		forgotten += i < 256 && latest[place_of(i)] != i;
	}
	ck_assert_int_gt(forgotten, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("supervise_blind");
	TCase *tcase = tcase_create("supervise_blind");

	tcase_add_loop_test(tcase, repeats_come_between_the_converter_and_the_kernel, 0, 50); /* milliseconds too late for each look */
	tcase_add_test(tcase, the_round_trip_says_when);
	tcase_add_test(tcase, what_cannot_be_repeated_is_left_alone);
	tcase_add_test(tcase, an_answer_is_the_end);
	tcase_add_test(tcase, the_kernels_own_syn_says_nothing);
	tcase_add_test(tcase, a_path_that_drops_syns_with_data_is_found_out);
	tcase_add_loop_test(tcase, slow_servers_are_told_from_refusals, 1, 90);
	tcase_add_test(tcase, no_round_trip_says_nothing);
	tcase_add_test(tcase, looks_double_and_one_precedes_the_converters_end);
	tcase_add_test(tcase, reset_within_the_kernels_second_may_be_a_slow_server);
	tcase_add_test(tcase, slow_servers_and_failed_ones_are_remembered_apart);
	tcase_add_test(tcase, hundreds_of_servers_are_remembered);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
