/* SPDX-License-Identifier: BSD-3-Clause */
/* test_hold_serve.c - withheld SYNs from the queue to the release: what becomes of each */
#include "config.h"

#include "syn_world.h"

#include "fake_events.h"
#include "run.h"

#include <errno.h>

/* The SYN of an ordinary client goes on when its server has answered, and its connection finds that. */
START_TEST(confirmed)
{
	const struct ask ask = { .server = 1 };
	uint32_t id = send_syn(1000, 1, &ask);

	ck_assert_int_eq(packets[id], WAITS);
	ck_assert_int_eq(unproven, 1);
	fake_clock_advance(699);
	server_says(-EINPROGRESS);
	ck_assert_int_eq(packets[id], WAITS);
	server_says(0);
	ck_assert_int_eq(packets[id], CHANGED);
	ck_assert_uint_eq(urgent[id], CONFIRMED);
	ck_assert_uint_eq(take(1000), 1);
	ck_assert_uint_eq(take(1000), 0);
}
END_TEST

/* After --hold-time it goes on without a mark; a connection that doesn't come leaves nothing behind. */
START_TEST(late_and_never_accepted)
{
	const struct ask ask = { .server = 1 };
	uint32_t id = send_syn(1000, 1, &ask);

	fake_clock_advance(700);
	ck_assert_int_eq(packets[id], CHANGED);
	ck_assert_uint_eq(urgent[id], 0);
	ck_assert_uint_eq(hold_table_count(table), 1);
	fake_clock_advance(7000);
	ck_assert_uint_eq(hold_table_count(table), 0);
	ck_assert_int_eq(resets, 1);
	/* the same SYN again may make another connection */
	id = send_syn(1000, 1, &ask);
	ck_assert_int_eq(packets[id], CHANGED);
	ck_assert_uint_eq(urgent[id], 0);
	ck_assert_int_eq(dials, 1);
}
END_TEST

/* Another sequence number is another connection, whoever has sent the first one, and whatever is waited for. */
START_TEST(forged_syn_of_the_same_port)
{
	const struct ask forged = { .server = 1, .flags = BLIND }, own = { .server = 2 };
	uint32_t first = send_syn(1000, 1, &forged), again = send_syn(1000, 1, NULL), second = send_syn(1000, 2, &own);

	ck_assert_int_eq(packets[first], WAITS);
	ck_assert_int_eq(packets[again], DROPPED);
	ck_assert_int_eq(packets[second], WAITS);
	ck_assert_int_eq(dials, 2);
	server_says(0);
	ck_assert_int_eq(packets[first], WAITS);
	ck_assert_int_eq(packets[second], CHANGED);
	ck_assert_uint_eq(urgent[second], CONFIRMED);
	ck_assert_uint_eq(take(1000), 1);
}
END_TEST

/*
 * A blind client whose server is silent: 3.5 s, then nothing is counted any more, and repetitions of the SYN are dropped for as long as they
 * may come.
 */
START_TEST(silence)
{
	for (int i = 0; i < 2; i++) {
		const struct ask ask = { .server = 1, .flags = (uint8_t)(BLIND | (i ? MPTCP : 0)) };
		const uint16_t port = (uint16_t)(1000 + i);
		uint32_t id = send_syn(port, 1, &ask);

		fake_clock_advance(3000);
		ck_assert_int_eq(packets[send_syn(port, 1, NULL)], DROPPED);
		ck_assert_int_eq(unproven, 1);
		ck_assert_int_eq(packets[id], WAITS);
		fake_clock_advance(500);
		ck_assert_int_eq(packets[id], DROPPED);
		ck_assert_int_eq(unproven, 0);
		ck_assert_uint_eq(hold_table_count(table), 0);
		ck_assert_int_eq(resets, 2 * i + 1); /* and one for what take() gives up */
		fake_clock_advance(120000);
		ck_assert_int_eq(packets[send_syn(port, 1, NULL)], DROPPED);
		/* the client's next connection from that port */
		id = send_syn(port, 2, &ask);
		ck_assert_int_eq(packets[id], WAITS);
		server_says(0);
		ck_assert_uint_eq(urgent[id], CONFIRMED);
		ck_assert_uint_eq(take(port), 1);
	}
}
END_TEST

/* A blind client is refused because of its server's answer, but not for lack of a cookie or of room. */
START_TEST(refusals_of_blind_clients)
{
	const struct ask ask = { .server = 1, .flags = BLIND };
	uint32_t id;

	demanded = true;
	id = send_syn(1000, 1, &ask);
	ck_assert_int_eq(packets[id], CHANGED);
	ck_assert_uint_eq(urgent[id], 0);
	demanded = has_room = false;
	id = send_syn(1001, 1, &ask);
	ck_assert_uint_eq(urgent[id], 0);
	ck_assert_int_eq(dials, 0);
	has_room = true;
	id = send_syn(1002, 1, &ask);
	server_says(-ECONNREFUSED);
	ck_assert_int_eq(packets[id], CHANGED);
	ck_assert_uint_eq(urgent[id], SYN_PACKET_REFUSED | NATIVE_RESET);
	/* the kernel limits such messages: the SYN comes again, and is refused again */
	id = send_syn(1002, 1, NULL);
	ck_assert_uint_eq(urgent[id], SYN_PACKET_REFUSED | NATIVE_RESET);
	ck_assert_int_eq(dials, 1);
}
END_TEST

/* A client that makes its request again has one connection to the server, and the answer between two SYNs is for the next one. */
START_TEST(made_again)
{
	struct ask ask = { .server = 1, .flags = BLIND | MPTCP | NUMBERED, .number = 9 };
	uint32_t first = send_syn(1000, 1, &ask), second, old;

	fake_clock_advance(900);
	ask.repeat = 1;
	second = send_syn(1001, 2, &ask);
	ck_assert_int_eq(packets[first], DROPPED);
	ck_assert_int_eq(packets[second], WAITS);
	ask.repeat = 0;
	old = send_syn(1002, 3, &ask);
	ck_assert_int_eq(packets[old], DROPPED);
	fake_clock_advance(800);
	server_says(0);
	ck_assert_int_eq(packets[second], WAITS);
	fake_clock_advance(100);
	ask.repeat = 2;
	first = send_syn(1003, 4, &ask);
	ck_assert_int_eq(packets[second], DROPPED);
	server_says(0);
	ck_assert_uint_eq(urgent[first], CONFIRMED);
	ck_assert_int_eq(dials, 1);
	ck_assert_int_eq(resets, 0);
	ck_assert_uint_eq(take(1003), 1);
}
END_TEST

/*
 * The worker is late, and learns of the server's answer when the client's time is over: a blind client has given this SYN up, and is
 * refused, or asks again.
 */
START_TEST(late_worker)
{
	const struct ask ask = { .server = 1, .flags = BLIND | MPTCP }, numbered = { .server = 1, .flags = BLIND | MPTCP | NUMBERED, .number = 9 };
	const struct ask patient = { .server = 1, .flags = BLIND };
	uint32_t id = send_syn(1000, 1, &ask);

	fake_clock_stall(901);
	server_says(0);
	ck_assert_uint_eq(urgent[id], SYN_PACKET_REFUSED | NATIVE_RESET);
	ck_assert_int_eq(resets, 1);
	server_result = -EINPROGRESS;
	id = send_syn(1001, 1, &numbered);
	fake_clock_stall(901);
	server_says(0);
	ck_assert_int_eq(packets[id], WAITS);
	fake_clock_advance(2000);
	ck_assert_uint_eq(urgent[id], SYN_PACKET_REFUSED | NATIVE_RESET);
	server_result = -EINPROGRESS;
	id = send_syn(1002, 1, &patient);
	fake_clock_stall(901);
	server_says(0);
	ck_assert_uint_eq(urgent[id], CONFIRMED);
	ck_assert_uint_eq(take(1002), 1);
}
END_TEST

/* The end of withholding: ordinary SYNs go on, blind ones are reset, and neither is counted. */
START_TEST(stopped)
{
	const struct ask ordinary = { .server = 1 }, blind = { .server = 1, .flags = BLIND };
	uint32_t first = send_syn(1000, 1, &ordinary), second = send_syn(1001, 1, &blind);

	syn_judge_stop(judge, true);
	ck_assert_int_eq(reads, 1);
	syn_judge_stop(judge, true);
	ck_assert_int_eq(reads, 1);
	ck_assert_int_eq(closes, 1);
	ck_assert_int_eq(packets[first], CHANGED);
	ck_assert_uint_eq(urgent[first], 0);
	ck_assert_uint_eq(urgent[second], SYN_PACKET_REFUSED | NATIVE_RESET);
	ck_assert_uint_eq(take(1000), 1);
	ck_assert_uint_eq(take(1001), 0);
}
END_TEST

/* New settings no longer grant the request. */
START_TEST(no_longer_granted)
{
	const struct ask ordinary = { .server = 1 }, blind = { .server = 1, .flags = BLIND };
	uint32_t first = send_syn(1000, 1, &ordinary), second = send_syn(1001, 1, &blind);

	syn_judge_again(judge);
	ck_assert_int_eq(packets[first], WAITS);
	demanded = true;
	syn_judge_again(judge);
	ck_assert_uint_eq(urgent[first], 0);
	ck_assert_uint_eq(urgent[second], SYN_PACKET_REFUSED | 13);
	ck_assert_int_eq(resets, 2);
	ck_assert_uint_eq(take(1000), 1);
}
END_TEST

static uint64_t counted(enum metrics_syn what)
{
	return metrics.values[METRIC_SYNS + what];
}

/* The window of a Multipath TCP SYN with data is corrected, but not by a gateway, which routes the SYN. */
START_TEST(windows)
{
	const struct ask ask = { .server = 1 };
	struct serve_plugs gateway = plugs;
	uint32_t id;

	with_mptcp = true;
	has_room = false;
	id = send_syn(1000, 1, &ask);
	ck_assert_uint_eq(window[id], 0xffff >> 7);
	gateway.no_request = true;
	context.plugs = &gateway;
	syn_judge_again(judge);
	id = send_syn(1001, 1, &ask);
	ck_assert_uint_eq(window[id], 0xffff);
}
END_TEST

/* What isn't a first SYN with data is nobody's business; packets that passed unseen are counted by the gap in the numbers. */
START_TEST(what_passes)
{
	const uint64_t missed = counted(METRICS_SYN_MISSED), unreadable = counted(METRICS_SYN_UNREADABLE);
	uint8_t cut[20] = { 0x45 };

	ck_assert_int_eq(packets[send_syn(1000, 1, NULL)], PASSED);
	ck_assert_uint_eq(counted(METRICS_SYN_MISSED), missed);
	last_id += 5;
	ck_assert_int_eq(packets[send_syn(1001, 1, NULL)], PASSED);
	ck_assert_uint_eq(counted(METRICS_SYN_MISSED), missed + 5);
	handler(handler_arg, ++last_id, cut, sizeof(cut), 0, 0);
	ck_assert_int_eq(packets[last_id], PASSED);
	ck_assert_uint_eq(counted(METRICS_SYN_UNREADABLE), unreadable + 1);
	ck_assert_uint_eq(counted(METRICS_SYN_MISSED), missed + 5);
	settings.drop_foreign = true;
	syn_judge_again(judge);
	ck_assert_int_eq(packets[send_syn(1002, 1, NULL)], DROPPED);
	ck_assert_int_eq(dials, 0);
}
END_TEST

/* Each fate has a counter of its own. */
START_TEST(fates_are_counted)
{
	const struct ask ordinary = { .server = 1 }, blind = { .server = 2, .flags = BLIND };
	const enum metrics_syn fates[] = { METRICS_SYN_PASSED, METRICS_SYN_UNCONFIRMED, METRICS_SYN_NOT_GRANTED, METRICS_SYN_REFUSED,
					   METRICS_SYN_REPEATED, METRICS_SYN_FOREIGN };
	uint64_t before[METRICS_SYN_COUNT];

	for (unsigned i = 0; i < METRICS_SYN_COUNT; i++)
		before[i] = counted(i);
	send_syn(1000, 1, NULL);
	has_room = false;
	send_syn(1001, 1, &ordinary);
	refuses = true;
	send_syn(1002, 1, &ordinary);
	ck_assert_uint_eq(urgent[send_syn(1003, 1, &blind)], SYN_PACKET_REFUSED | 13);
	refuses = false;
	has_room = true;
	send_syn(1004, 1, &ordinary);
	send_syn(1004, 1, NULL);
	settings.drop_foreign = true;
	syn_judge_again(judge);
	send_syn(1005, 1, NULL);
	for (size_t i = 0; i < sizeof(fates) / sizeof(fates[0]); i++)
		ck_assert_msg(counted(fates[i]) == before[fates[i]] + 1, "fate %d", (int)fates[i]);
}
END_TEST

/* The limits want the room of a SYN: withheld, or released and not yet accepted. */
START_TEST(makes_room)
{
	const struct ask ordinary = { .server = 1 }, late = { .server = 2, .flags = BLIND | MPTCP };
	uint32_t first = send_syn(1000, 1, &late), second;
	struct syn_attempt *a = judge->attempts;

	fake_clock_advance(700);
	second = send_syn(1001, 1, &ordinary);
	a->member.kind->make_room(&a->member, OUTCOME_LIMIT_PENDING);
	ck_assert_int_eq(packets[first], DROPPED);
	a = judge->attempts;
	a->member.kind->make_room(&a->member, OUTCOME_LIMIT_PENDING);
	ck_assert_int_eq(packets[second], CHANGED);
	ck_assert_uint_eq(urgent[second], 0);
	ck_assert_uint_eq(take(1001), 0);
	send_syn(1002, 1, &ordinary);
	a = judge->attempts;
	ck_assert(a->member.kind->claim(&a->member));
	fake_clock_advance(700);
	ck_assert(a->member.kind->claim(&a->member));
	a->member.kind->make_room(&a->member, OUTCOME_LIMIT_PENDING);
	ck_assert_uint_eq(take(1002), 0);
	ck_assert_int_eq(resets, 3);
}
END_TEST

/* A gateway's client is being connected once its SYN is released: the limits can't have its room, and its session finds the server. */
START_TEST(makes_no_room)
{
	const struct ask ask = { .server = 1 };
	struct serve_plugs gateway = plugs;
	struct syn_attempt *a;
	uint32_t id;

	gateway.no_request = true;
	context.plugs = &gateway;
	syn_judge_again(judge);
	id = send_syn(1000, 1, &ask);
	a = judge->attempts;
	ck_assert(a->member.kind->claim(&a->member));
	server_says(0);
	ck_assert_int_eq(packets[id], CHANGED);
	ck_assert(!a->member.kind->claim(&a->member));
	ck_assert_uint_eq(take(1000), 1);
	ck_assert_int_eq(resets, 1); /* what take() gives up */
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hold_serve");
	TCase *tcase = tcase_create("SYNs");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, confirmed);
	tcase_add_test(tcase, late_and_never_accepted);
	tcase_add_test(tcase, forged_syn_of_the_same_port);
	tcase_add_test(tcase, silence);
	tcase_add_test(tcase, refusals_of_blind_clients);
	tcase_add_test(tcase, made_again);
	tcase_add_test(tcase, late_worker);
	tcase_add_test(tcase, stopped);
	tcase_add_test(tcase, no_longer_granted);
	tcase_add_test(tcase, what_passes);
	tcase_add_test(tcase, fates_are_counted);
	tcase_add_test(tcase, windows);
	tcase_add_test(tcase, makes_room);
	tcase_add_test(tcase, makes_no_room);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
