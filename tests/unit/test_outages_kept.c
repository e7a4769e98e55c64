/* SPDX-License-Identifier: BSD-3-Clause */
/* test_outages_kept.c - what is done about a network while none works, and when it works again */
#include "config.h"

#include "outages_world.h"

/* Both are silent: of two, the second is kept, and the first asks each half second. */
START_TEST(test_both)
{
	struct paths_subflow *wifi = add_subflow(1, WIFI), *lte = add_subflow(1, LTE);
	int asked = 0;

	wifi->unanswered = lte->unanswered = true;
	for (int i = 0; i < 50; i++) {
		look_after(LOOK_MS);
		ck_assert(!renewal_of(LTE)->remove);
		if (!renewal_of(WIFI)->remove)
			continue;
		ck_assert(renewal_of(WIFI)->add);
		renewed(wifi);
		asked++;
	}
	ck_assert_int_ge(asked, 14);
	wifi->established = true;
	hear(wifi, 0);
	look_after(0);
	ck_assert(!outages.list[WIFI].silent);
}
END_TEST

/* Looks for so long, without an answer. Returns how often the peer of the subflow that is kept was to be asked. */
static int count_asked(int ms)
{
	int asked = 0;

	for (; ms > 0; ms -= LOOK_MS) {
		look_after(LOOK_MS);
		ck_assert(!renewal_of(LTE)->remove);
		asked += renewal_of(LTE)->ask && sockaddr_ip_port(&renewal_of(LTE)->peer) == PEER_PORT;
		if (renewal_of(WIFI)->remove)
			renewed(&subflows.list[WIFI]);
	}
	return asked;
}

/* Both are silent, and a connection's last subflow is one that has joined it. */
static void begin_both(void)
{
	begin();
	add_subflow(1, WIFI)->unanswered = true;
	add_subflow(1, LTE)->unanswered = true;
	subflows.list[LTE].joined = true;
	subflows.list[LTE].peer = addresses[WIFI];
	sockaddr_ip_set_port(&subflows.list[LTE].peer, PEER_PORT);
}

/* The one that is kept is asked, too, and made anew once it has answered. */
START_TEST(test_kept_answers)
{
	int taken = 0;

	begin_both();
	ck_assert_int_ge(count_asked(10000), 20);
	paths_outages_answered(&outages, &addresses[LTE], now);
	ck_assert_int_le(paths_outages_interval_ms(&outages, &subflows, now), 50);
	look_after(LOOK_MS);
	ck_assert(renewal_of(LTE)->remove && renewal_of(LTE)->add);
	/* before that goes, the peer is told by it that wifi's subflows have gone; whose SYN is to come when that has arrived */
	ck_assert(renewal_of(WIFI)->remove && !renewal_of(WIFI)->add);
	ck_assert(renewal_of(WIFI) < renewal_of(LTE));
	renewed(&subflows.list[LTE]);
	subflows.list[WIFI] = subflows.list[LTE];
	subflows.count = 1;
	look_after(100);
	ck_assert_uint_eq(done, 0);
	look_after(LOOK_MS);
	ck_assert(!renewal_of(WIFI)->remove && renewal_of(WIFI)->add);
	subflows.count = 2;
	renewed(put_subflow(WIFI, 1, WIFI));
	renewed(put_subflow(LTE, 1, LTE));
	/* SYNs are hardly renewed now: the RM_ADDR would go over whichever is answered first, and end it */
	subflows.list[LTE].joined = subflows.list[WIFI].joined = true;
	for (int i = 0; i < 50; i++) {
		look_after(LOOK_MS);
		taken += renewal_of(LTE)->remove;
		if (renewal_of(LTE)->remove)
			renewed(&subflows.list[LTE]);
	}
	ck_assert_int_ge(taken, 2);
	ck_assert_int_le(taken, 3);
	subflows.list[LTE].established = true;
	hear(&subflows.list[LTE], MUCH);
	look_after(LOOK_MS);
	ck_assert(!outages.list[LTE].silent && !renewal_of(LTE)->remove);
}
END_TEST

/* A new subflow that is the only one is prompted, once its peer knows of it: whoever only receives would send nothing. */
START_TEST(test_prompt)
{
	begin_both();
	count_asked(10000);
	paths_outages_answered(&outages, &addresses[LTE], now);
	look_after(0);
	ck_assert(renewal_of(LTE)->remove && !renewal_of(LTE)->prompt);
	subflows.count = 1;
	renewed(put_subflow(0, 1, LTE));
	subflows.list[0].joined = true;
	look_after(20);
	ck_assert_uint_eq(done, 0);
	subflows.list[0].established = true;
	hear(&subflows.list[0], 0);
	look_after(20);
	ck_assert_uint_eq(done, 0);
	subflows.list[0].confirmed = true;
	look_after(20);
	ck_assert(renewal_of(LTE)->prompt && !renewal_of(LTE)->remove);
	/* once, and so is one of another connection that comes later */
	look_after(20);
	ck_assert(!renewal_of(LTE)->prompt);
	put_subflow(1, 2, LTE)->joined = true;
	subflows.list[1].confirmed = true;
	subflows.count = 2;
	look_after(20);
	ck_assert(renewal_of(LTE)->prompt);
}
END_TEST

/* Its own time-out is an answer as well; what TCP makes of that may be worse than before. */
START_TEST(test_kept_is_heard)
{
	begin_both();
	count_asked(10000);
	hear(&subflows.list[LTE], 0);
	subflows.list[LTE].unanswered = false;
	look_after(LOOK_MS);
	ck_assert(renewal_of(LTE)->remove && renewal_of(LTE)->add);
}
END_TEST

/* Another network has answered: the one that was kept can be spared, even if it was heard, and RM_ADDR has a way to go over. */
START_TEST(test_kept_is_spared)
{
	begin_both();
	subflows.list[LTE].joined = false;
	count_asked(10000);
	hear(&subflows.list[LTE], 0);
	look_after(LOOK_MS);
	ck_assert(!renewal_of(LTE)->remove);
	subflows.list[WIFI].established = true;
	hear(&subflows.list[WIFI], MUCH);
	look_after(LOOK_MS);
	ck_assert(renewal_of(LTE)->remove && !renewal_of(LTE)->add);
}
END_TEST

/* Nobody knows whether a peer takes other subflows than the one that the connection has begun with, so that one is left to itself. */
START_TEST(test_kept_has_begun)
{
	begin_both();
	subflows.list[LTE].joined = false;
	count_asked(10000);
	paths_outages_answered(&outages, &addresses[LTE], now);
	count_asked(10000);
}
END_TEST

/* But where another one had joined the connection it is known that the peer does, though that one has gone since. */
START_TEST(test_kept_has_begun_and_others_joined)
{
	begin_both();
	subflows.list[LTE].joined = false;
	subflows.list[WIFI].joined = true;
	count_asked(10000);
	ck_assert(!subflows.list[WIFI].established);
	paths_outages_answered(&outages, &addresses[LTE], now);
	look_after(LOOK_MS);
	ck_assert(renewal_of(LTE)->remove && renewal_of(LTE)->add);
}
END_TEST

/* A network that answers at once wasn't silent; it is asked ever less often. */
START_TEST(test_kept_is_quiet)
{
	int asked = 0;

	begin_both();
	subflows.list[LTE].unanswered = false;
	for (int i = 0; i < 3000; i++) {
		look_after(LOOK_MS);
		ck_assert(!renewal_of(LTE)->remove);
		asked += renewal_of(LTE)->ask;
		if (renewal_of(LTE)->ask)
			paths_outages_answered(&outages, &addresses[LTE], now);
		if (renewal_of(WIFI)->remove)
			renewed(&subflows.list[WIFI]);
	}
	ck_assert_int_ge(asked, 3);
	ck_assert_int_le(asked, 20);
}
END_TEST

/* All networks go, with their addresses or without, and come back: subflows are kept meanwhile, and made anew then, at once. */
START_TEST(test_gone)
{
	begin_both();
	subflows.list[WIFI].unanswered = subflows.list[LTE].unanswered = false;
	look_after(0);
	own[WIFI].usable = own[LTE].usable = false;
	subflows.list[WIFI].unanswered = subflows.list[LTE].unanswered = true;
	for (int i = 0; i < 50; i++) {
		look_after(LOOK_MS);
		ck_assert_uint_eq(done, 0);
	}
	own[WIFI].usable = own[LTE].usable = true;
	look_after(0);
	ck_assert(renewal_of(WIFI)->remove && renewal_of(WIFI)->add);
	ck_assert(renewal_of(LTE)->ask && !renewal_of(LTE)->remove);
	renewed(&subflows.list[WIFI]);
	paths_outages_answered(&outages, &addresses[LTE], now);
	look_after(100);
	ck_assert(renewal_of(LTE)->remove && renewal_of(LTE)->add);
}
END_TEST

/* One of them comes back alone, the connection's first: that its peer takes others was seen before. */
START_TEST(test_gone_and_one_returns)
{
	begin_both();
	look_after(0);
	own[WIFI].usable = own[LTE].usable = false;
	for (int i = 0; i < 50; i++)
		look_after(LOOK_MS);
	own[WIFI].usable = true;
	/* lte's endpoint goes, now that there is a network to tell of it */
	subflows.count = 1;
	subflows.list[WIFI].peer = subflows.list[LTE].peer;
	done = paths_outages_find(&outages, &subflows, own, 1, now += LOOK_MS * CLOCK_NS_PER_MS, renewals);
	ck_assert(renewal_of(WIFI)->ask && !renewal_of(WIFI)->remove);
	paths_outages_answered(&outages, &addresses[WIFI], now);
	done = paths_outages_find(&outages, &subflows, own, 1, now += LOOK_MS * CLOCK_NS_PER_MS, renewals);
	ck_assert(renewal_of(WIFI)->remove && renewal_of(WIFI)->add);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("outages_kept");
	TCase *tcase = tcase_create("kept");

	tcase_add_checked_fixture(tcase, begin, NULL);
	tcase_add_test(tcase, test_both);
	tcase_add_test(tcase, test_kept_answers);
	tcase_add_test(tcase, test_prompt);
	tcase_add_test(tcase, test_kept_is_heard);
	tcase_add_test(tcase, test_kept_is_spared);
	tcase_add_test(tcase, test_kept_has_begun);
	tcase_add_test(tcase, test_kept_has_begun_and_others_joined);
	tcase_add_test(tcase, test_kept_is_quiet);
	tcase_add_test(tcase, test_gone);
	tcase_add_test(tcase, test_gone_and_one_returns);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
