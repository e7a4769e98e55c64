/* SPDX-License-Identifier: BSD-3-Clause */
/* test_outages.c - which network is found silent while another one works, what is done about it, and what stays in the end */
#include "config.h"

#include "outages_world.h"

START_TEST(test_nothing_is_wrong)
{
	struct paths_subflow *wifi = add_subflow(1, WIFI), *lte = add_subflow(1, LTE);

	for (int i = 0; i < 100; i++) {
		look_after(LOOK_MS);
		ck_assert_uint_eq(done, 0);
		hear(wifi, MUCH);
		hear(lte, MUCH);
	}
	/* a connection that is idle, for an hour, is no sign of anything */
	for (int i = 0; i < 100; i++) {
		look_after(36000);
		ck_assert_uint_eq(done, 0);
	}
	ck_assert_int_gt(paths_outages_interval_ms(&outages, &subflows, now), LOOK_MS);
	/* one that never used lte, as a scheduler may have it, either */
	for (int i = 0; i < 100; i++) {
		look_after(LOOK_MS);
		ck_assert_uint_eq(done, 0);
		hear(wifi, MUCH);
	}
}
END_TEST

START_TEST(test_upload)
{
	struct paths_subflow *wifi = add_subflow(1, WIFI), *lte = add_subflow(1, LTE);

	wifi->unanswered = true;
	for (int ms = 0; ms < 600; ms += LOOK_MS, hear(lte, 0)) {
		look_after(LOOK_MS);
		ck_assert_uint_eq(done, 0);
	}
	look_after(LOOK_MS);
	ck_assert(renewal_of(WIFI)->remove && !renewal_of(WIFI)->add && !renewal_of(LTE)->remove);
	/* it is made when RM_ADDR has arrived over lte */
	renewed(wifi);
	subflows.count = 1;
	subflows.list[0] = *lte;
	look_after(100);
	ck_assert_uint_eq(done, 0);
	hear(&subflows.list[0], 0);
	look_after(paths_outages_interval_ms(&outages, &subflows, now));
	ck_assert(!renewal_of(WIFI)->remove && renewal_of(WIFI)->add);
}
END_TEST

START_TEST(test_download)
{
	struct paths_subflow *wifi = add_subflow(1, WIFI), *lte = add_subflow(1, LTE);
	int ms = 0;

	for (int i = 0; i < 5; i++, hear(wifi, MUCH), hear(lte, MUCH))
		look_after(LOOK_MS);
	for (done = 0; !done && ms < 5000; ms += LOOK_MS) {
		look_after(LOOK_MS);
		if (!done)
			hear(lte, MUCH);
	}
	ck_assert(renewal_of(WIFI)->remove);
	ck_assert_int_lt(ms, 1500);
}
END_TEST

/* The next look comes when a network may be found silent, and no later. */
START_TEST(test_when_to_look)
{
	struct paths_subflow *wifi = add_subflow(1, WIFI), *lte = add_subflow(1, LTE);
	int ms = 0;

	wifi->unanswered = true;
	for (done = 0; !done; hear(lte, MUCH)) {
		int next = paths_outages_interval_ms(&outages, &subflows, now);

		ck_assert_int_le(next, LOOK_MS);
		look_after(next);
		ms += next;
	}
	ck_assert(renewal_of(WIFI)->remove);
	ck_assert_int_lt(ms, 750);
	ck_assert_uint_eq(paths_subflow_quiet_in_ms(wifi), 0);
	wifi->heard_ms -= 30;
	ck_assert(!paths_subflow_is_quiet(wifi));
}
END_TEST

/* Looks for so long, while only lte is heard. Returns how often wifi's endpoint was taken away. */
static int count_renewals(int ms, int *asked)
{
	int taken = 0;

	for (; ms > 0; ms -= LOOK_MS) {
		hear(&subflows.list[LTE], MUCH);
		look_after(LOOK_MS);
		taken += renewal_of(WIFI)->remove;
		*asked += renewal_of(WIFI)->ask && sockaddr_ip_port(&renewal_of(WIFI)->peer) == PEER_PORT;
		if (renewal_of(WIFI)->remove)
			renewed(&subflows.list[WIFI]);
	}
	return taken;
}

/* While another network works, a waiting SYN is closed only if its peer answers another one: closing makes Linux send all data again. */
START_TEST(test_asks_beside_others)
{
	struct paths_subflow *wifi = add_subflow(1, WIFI);
	int asked = 0;

	add_subflow(1, LTE);
	wifi->peer = addresses[LTE];
	sockaddr_ip_set_port(&wifi->peer, PEER_PORT);
	wifi->unanswered = true;
	ck_assert_int_eq(count_renewals(2000, &asked), 1);
	ck_assert_int_eq(count_renewals(40000, &asked), 0);
	ck_assert_int_ge(asked, 15);
	ck_assert_int_le(asked, 21);
	/* it is back, and has its own SYN answered as well, or not */
	paths_outages_answered(&outages, &addresses[WIFI], now);
	ck_assert_int_eq(count_renewals(800, &asked), 0);
	ck_assert_int_eq(count_renewals(400, &asked), 1);
	/* a peer that answers such SYNs and no other ones isn't worth as much */
	paths_outages_answered(&outages, &addresses[WIFI], now);
	ck_assert_int_eq(count_renewals(10000, &asked), 0);
	ck_assert_int_eq(count_renewals(4000, &asked), 1);
	wifi->established = true;
	hear(wifi, 0);
	ck_assert_int_eq(count_renewals(400, &asked), 0);
	ck_assert(!outages.list[WIFI].silent);
}
END_TEST

START_TEST(test_missing_bytes)
{
	struct paths_subflow *wifi = add_subflow(1, WIFI);

	add_subflow(1, LTE);
	/* all is quiet, and the peer has said that it sends more: nobody is left to wait for, so the SYN goes out at once */
	wifi->incomplete = true;
	look_after(1000);
	ck_assert(renewal_of(WIFI)->remove && renewal_of(WIFI)->add && !renewal_of(LTE)->remove);
}
END_TEST

START_TEST(test_what_speaks_against_it)
{
	struct paths_subflow *wifi = add_subflow(1, WIFI), *other;

	add_subflow(1, LTE);
	wifi->unanswered = true;
	other = add_subflow(2, WIFI);
	add_subflow(2, LTE);
	for (int i = 0; i < 20; i++, hear(other, 0)) {
		look_after(LOOK_MS);
		ck_assert_uint_eq(done, 0);
	}
}
END_TEST

START_TEST(test_last_subflow)
{
	struct paths_subflow *wifi = add_subflow(1, WIFI);

	add_subflow(1, LTE);
	wifi->unanswered = true;
	add_subflow(2, WIFI);
	for (int i = 0; i < 20; i++) {
		look_after(LOOK_MS);
		ck_assert(!renewal_of(WIFI)->remove && !renewal_of(LTE)->remove);
	}
	/* it has another one now, but there may be connections that the list has no room for */
	add_subflow(2, LTE);
	subflows.more = true;
	look_after(LOOK_MS);
	ck_assert(!renewal_of(WIFI)->remove);
	subflows.more = false;
	look_after(LOOK_MS);
	ck_assert(renewal_of(WIFI)->remove);
}
END_TEST

/* Where another network works all the time, acknowledgements go over that. */
START_TEST(test_no_prompt)
{
	struct paths_subflow *wifi = add_subflow(1, WIFI), *lte = add_subflow(1, LTE);

	wifi->joined = wifi->unanswered = true;
	for (done = 0; !renewal_of(WIFI)->add; hear(lte, MUCH)) {
		look_after(LOOK_MS);
		if (renewal_of(WIFI)->remove)
			renewed(wifi);
	}
	wifi->established = wifi->confirmed = true;
	hear(wifi, 0);
	look_after(20);
	ck_assert(!outages.list[WIFI].silent && !renewal_of(WIFI)->prompt);
}
END_TEST

START_TEST(test_mistakes)
{
	struct paths_subflow *wifi = add_subflow(1, WIFI);
	int asked[2] = { 0 };

	add_subflow(1, LTE);
	/* a reader that lets the window close, again and again; the renewal is answered at once each time */
	for (int i = 0; i < 3000; i++) {
		wifi->incomplete = true;
		wifi->heard_ms = 1000;
		look_after(LOOK_MS);
		if (!renewal_of(WIFI)->remove)
			continue;
		asked[i >= 1500]++;
		hear(wifi, 0);
		look_after(LOOK_MS);
	}
	ck_assert_int_ge(asked[0], 2);
	ck_assert_int_lt(asked[0], 8);
	ck_assert_int_le(asked[1], 1);
	/* an expired time-out is no pause */
	wifi->unanswered = true;
	wifi->heard_ms = 1000;
	look_after(LOOK_MS);
	ck_assert(renewal_of(WIFI)->remove);
}
END_TEST

/* A peer that refuses is asked some times, and then no more. */
START_TEST(test_joins)
{
	struct paths_subflow *lte = add_subflow(1, LTE);
	int asked = 0;

	for (int i = 0; i < 1000; i++) {
		hear(lte, MUCH);
		look_after(LOOK_MS);
		asked += renewal_of(WIFI)->remove;
		ck_assert(!renewal_of(LTE)->remove);
	}
	ck_assert_int_ge(asked, 3);
	ck_assert_int_le(asked, 8);
}
END_TEST

/* A peer that may know subflows that have gone is told of them before it is asked again: the address is announced, and taken back. */
START_TEST(test_joins_tell)
{
	struct paths_subflow *lte;

	add_subflow(1, WIFI);
	add_subflow(1, LTE);
	look_after(0);
	subflows.list[0] = subflows.list[1];
	subflows.count = 1;
	lte = &subflows.list[0];
	for (done = 0; !done; hear(lte, MUCH))
		look_after(LOOK_MS);
	ck_assert(renewal_of(WIFI)->remove && renewal_of(WIFI)->announce && !renewal_of(WIFI)->add);
	look_after(100);
	ck_assert_uint_eq(done, 0);
	look_after(paths_outages_interval_ms(&outages, &subflows, now));
	ck_assert(renewal_of(WIFI)->remove && !renewal_of(WIFI)->announce && !renewal_of(WIFI)->add);
	for (done = 0; !done; hear(lte, MUCH))
		look_after(paths_outages_interval_ms(&outages, &subflows, now));
	ck_assert(!renewal_of(WIFI)->remove && !renewal_of(WIFI)->announce && renewal_of(WIFI)->add);
}
END_TEST

/* Looks for so long, while both are heard. Returns how often one of them was taken away. */
static int count_taken(int ms)
{
	int taken = 0;

	for (; ms > 0; ms -= LOOK_MS) {
		for (size_t i = 0; i < subflows.count; i++)
			hear(&subflows.list[i], 0);
		look_after(LOOK_MS);
		ck_assert(!renewal_of(WIFI)->remove);
		taken += renewal_of(LTE)->remove;
	}
	return taken;
}

/* A connection whose peer lacks bytes, though its subflows have delivered all: they are sent again where a subflow is closed. */
START_TEST(test_stalled)
{
	struct paths_subflow *wifi = add_subflow(1, WIFI), *lte = add_subflow(1, LTE);

	/* an application that is slow to send, an acknowledgement that was lost, a transfer that runs */
	wifi->drained = lte->drained = true;
	ck_assert_int_eq(count_taken(2000), 0);
	wifi->owed = lte->owed = 1000;
	ck_assert_int_eq(count_taken(2000), 0);
	wifi->owed = lte->owed = 1000000;
	wifi->drained = false;
	ck_assert_int_eq(count_taken(2000), 0);
	/* for a moment */
	for (int i = 0; i < 10; i++) {
		wifi->drained = !wifi->drained;
		ck_assert_int_eq(count_taken(LOOK_MS), 0);
	}
	wifi->drained = true;
	ck_assert_int_eq(count_taken(2 * LOOK_MS), 1);
	/* it takes its time to have an effect */
	ck_assert_int_eq(count_taken(2000), 0);
	ck_assert_int_eq(count_taken(2000), 1);
}
END_TEST

/* The only one that there is can't be closed for that. */
START_TEST(test_stalled_alone)
{
	struct paths_subflow *lte = add_subflow(1, LTE);

	lte->drained = true;
	lte->owed = 1000000;
	outages.list[WIFI].joins = 100;
	for (int i = 0; i < 20; i++, hear(lte, 0)) {
		look_after(LOOK_MS);
		ck_assert(!renewal_of(LTE)->remove);
	}
}
END_TEST

START_TEST(test_what_stays)
{
	bool needed[NETWORKS];

	ck_assert_uint_eq(paths_needed_find(&subflows, addresses, NETWORKS, needed), 0);
	add_subflow(1, WIFI);
	add_subflow(1, LTE);
	add_subflow(2, LTE);
	add_subflow(2, WIFI);
	ck_assert_uint_eq(paths_needed_find(&subflows, addresses, NETWORKS, needed), 1);
	ck_assert(needed[WIFI] && !needed[LTE]);
	/* one that has only lte, and one that asks on wifi */
	add_subflow(3, LTE);
	add_subflow(3, WIFI)->established = false;
	ck_assert_uint_eq(paths_needed_find(&subflows, addresses, NETWORKS, needed), 2);
	ck_assert(needed[WIFI] && needed[LTE]);
	subflows.count = 0;
	add_subflow(4, WIFI)->local = (union sockaddr_ip){ .sa.sa_family = AF_INET };
	ck_assert_uint_eq(paths_needed_find(&subflows, addresses, NETWORKS, needed), 0);
	add_subflow(5, LTE)->established = false;
	ck_assert_uint_eq(paths_needed_find(&subflows, addresses, NETWORKS, needed), 1);
	ck_assert(!needed[WIFI] && needed[LTE]);
	subflows.more = true;
	ck_assert_uint_eq(paths_needed_find(&subflows, addresses, NETWORKS, needed), 2);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("outages");
	TCase *tcase = tcase_create("outages");

	tcase_add_checked_fixture(tcase, begin, NULL);
	tcase_add_test(tcase, test_nothing_is_wrong);
	tcase_add_test(tcase, test_upload);
	tcase_add_test(tcase, test_download);
	tcase_add_test(tcase, test_when_to_look);
	tcase_add_test(tcase, test_asks_beside_others);
	tcase_add_test(tcase, test_missing_bytes);
	tcase_add_test(tcase, test_what_speaks_against_it);
	tcase_add_test(tcase, test_last_subflow);
	tcase_add_test(tcase, test_no_prompt);
	tcase_add_test(tcase, test_mistakes);
	tcase_add_test(tcase, test_joins);
	tcase_add_test(tcase, test_joins_tell);
	tcase_add_test(tcase, test_stalled);
	tcase_add_test(tcase, test_stalled_alone);
	tcase_add_test(tcase, test_what_stays);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
