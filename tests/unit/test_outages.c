/* SPDX-License-Identifier: BSD-3-Clause */
/* test_outages.c - which networks are found silent, what is done about it and when, and what must stay when the path manager ends */
#include "config.h"

#include "common/clock.h"
#include "paths/outage.h"
#include "run.h"

#include <string.h>

#define LOOK_MS 200
#define MUCH 100000 /* bytes in that time */
#define PEER_PORT 1234

enum { WIFI, LTE, NETWORKS };

static const char *const texts[] = { "192.0.2.2", "198.51.100.2" };
static union sockaddr_ip addresses[NETWORKS];
static struct paths_own own[NETWORKS];
static struct paths_outages outages;
static struct paths_subflows subflows;
static struct paths_renewal renewals[PATHS_OUTAGES_MAX];
static size_t done;
static int64_t now;
static uint64_t cookies;

static union sockaddr_ip address_of(union sockaddr_ip *out, const char *text)
{
	ck_assert_int_eq(sockaddr_ip_parse(out, text, 0), 0);
	return *out;
}

static void begin(void)
{
	memset(&outages, 0, sizeof(outages));
	memset(&subflows, 0, sizeof(subflows));
	now = 1000 * CLOCK_NS_PER_S;
	for (size_t i = 0; i < NETWORKS; i++)
		own[i] = (struct paths_own){ address_of(&addresses[i], texts[i]), true };
}

/* An established subflow of the connection, which was heard just now. */
static struct paths_subflow *add_subflow(uint32_t token, int network)
{
	struct paths_subflow *subflow = &subflows.list[subflows.count++];

	*subflow = (struct paths_subflow){
		.cookie = ++cookies, .token = token, .local = addresses[network], .established = true, .rtt_ms = 20
	};
	return subflow;
}

/* Looks after some time has passed; what is heard meanwhile is the test's to say. */
static void look_after(int ms)
{
	now += ms * CLOCK_NS_PER_MS;
	for (size_t i = 0; i < subflows.count; i++)
		subflows.list[i].heard_ms += (uint32_t)ms;
	done = paths_outages_find(&outages, &subflows, own, NETWORKS, now, renewals);
}

static const struct paths_renewal *renewal_of(int network)
{
	static const struct paths_renewal nothing;

	for (size_t i = 0; i < done; i++)
		if (sockaddr_ip_equal(&renewals[i].local, &addresses[network]))
			return &renewals[i];
	return &nothing;
}

static void hear(struct paths_subflow *subflow, uint64_t bytes)
{
	subflow->heard_ms = 0;
	subflow->received += bytes;
}

/* The subflows of an endpoint that was taken away are gone; those of one that was made have sent their SYNs. */
static void renewed(struct paths_subflow *subflow)
{
	subflow->cookie = ++cookies;
	subflow->established = false;
	subflow->unanswered = subflow->incomplete = false;
	subflow->received = 0;
}

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
	ck_assert(renewal_of(WIFI)->take && !renewal_of(WIFI)->make && !renewal_of(LTE)->take);
	/* it is made when RM_ADDR has arrived over lte */
	renewed(wifi);
	subflows.count = 1;
	subflows.list[0] = *lte;
	look_after(100);
	ck_assert_uint_eq(done, 0);
	hear(&subflows.list[0], 0);
	look_after(paths_outages_interval_ms(&outages, &subflows, now));
	ck_assert(!renewal_of(WIFI)->take && renewal_of(WIFI)->make);
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
	ck_assert(renewal_of(WIFI)->take);
	ck_assert_int_lt(ms, 1500);
}
END_TEST

START_TEST(test_missing_bytes)
{
	struct paths_subflow *wifi = add_subflow(1, WIFI);

	add_subflow(1, LTE);
	/* all is quiet, and the peer has said that it sends more: nobody is left to wait for, so the SYN goes out at once */
	wifi->incomplete = true;
	look_after(1000);
	ck_assert(renewal_of(WIFI)->take && renewal_of(WIFI)->make && !renewal_of(LTE)->take);
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
		ck_assert(!renewal_of(WIFI)->take && !renewal_of(LTE)->take);
	}
	/* it has another one now; but who knows of those that there was no room for? */
	add_subflow(2, LTE);
	subflows.more = true;
	look_after(LOOK_MS);
	ck_assert(!renewal_of(WIFI)->take);
	subflows.more = false;
	look_after(LOOK_MS);
	ck_assert(renewal_of(WIFI)->take);
}
END_TEST

/* Both are silent: of two, the second is kept, and the first asks each half second. */
START_TEST(test_both)
{
	struct paths_subflow *wifi = add_subflow(1, WIFI), *lte = add_subflow(1, LTE);
	int asked = 0;

	wifi->unanswered = lte->unanswered = true;
	for (int i = 0; i < 50; i++) {
		look_after(LOOK_MS);
		ck_assert(!renewal_of(LTE)->take);
		if (!renewal_of(WIFI)->take)
			continue;
		ck_assert(renewal_of(WIFI)->make);
		renewed(wifi);
		asked++;
	}
	ck_assert_int_ge(asked, 14);
	wifi->established = true;
	hear(wifi, 0);
	look_after(0);
	ck_assert(!outages.list[WIFI].lasts);
}
END_TEST

/* Looks for so long, without an answer. Returns how often the peer of the subflow that is kept was to be asked. */
static int count_asked(int ms)
{
	int asked = 0;

	for (; ms > 0; ms -= LOOK_MS) {
		look_after(LOOK_MS);
		ck_assert(!renewal_of(LTE)->take);
		asked += renewal_of(LTE)->ask && sockaddr_ip_port(&renewal_of(LTE)->peer) == PEER_PORT;
		if (renewal_of(WIFI)->take)
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
	look_after(LOOK_MS);
	ck_assert(renewal_of(LTE)->take && renewal_of(LTE)->make);
	renewed(&subflows.list[LTE]);
	/* SYNs are hardly renewed now: the RM_ADDR would go over whichever is answered first, and end it */
	subflows.list[LTE].joined = subflows.list[WIFI].joined = true;
	for (int i = 0; i < 50; i++) {
		look_after(LOOK_MS);
		taken += renewal_of(LTE)->take;
		if (renewal_of(LTE)->take)
			renewed(&subflows.list[LTE]);
	}
	ck_assert_int_ge(taken, 2);
	ck_assert_int_le(taken, 3);
	subflows.list[LTE].established = true;
	hear(&subflows.list[LTE], MUCH);
	look_after(LOOK_MS);
	ck_assert(!outages.list[LTE].lasts && !renewal_of(LTE)->take);
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
	ck_assert(renewal_of(LTE)->take && renewal_of(LTE)->make);
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
	ck_assert(!renewal_of(LTE)->take);
	subflows.list[WIFI].established = true;
	hear(&subflows.list[WIFI], MUCH);
	look_after(LOOK_MS);
	ck_assert(renewal_of(LTE)->take && !renewal_of(LTE)->make);
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

/* Who answers at once wasn't silent; it is asked ever more seldom. */
START_TEST(test_kept_is_quiet)
{
	int asked = 0;

	begin_both();
	subflows.list[LTE].unanswered = false;
	for (int i = 0; i < 3000; i++) {
		look_after(LOOK_MS);
		ck_assert(!renewal_of(LTE)->take);
		asked += renewal_of(LTE)->ask;
		if (renewal_of(LTE)->ask)
			paths_outages_answered(&outages, &addresses[LTE], now);
		if (renewal_of(WIFI)->take)
			renewed(&subflows.list[WIFI]);
	}
	ck_assert_int_ge(asked, 3);
	ck_assert_int_le(asked, 20);
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
		if (!renewal_of(WIFI)->take)
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
	ck_assert(renewal_of(WIFI)->take);
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
		asked += renewal_of(WIFI)->take;
		ck_assert(!renewal_of(LTE)->take);
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
	ck_assert(renewal_of(WIFI)->take && renewal_of(WIFI)->announce && !renewal_of(WIFI)->make);
	look_after(100);
	ck_assert_uint_eq(done, 0);
	look_after(paths_outages_interval_ms(&outages, &subflows, now));
	ck_assert(renewal_of(WIFI)->take && !renewal_of(WIFI)->announce && !renewal_of(WIFI)->make);
	for (done = 0; !done; hear(lte, MUCH))
		look_after(paths_outages_interval_ms(&outages, &subflows, now));
	ck_assert(!renewal_of(WIFI)->take && !renewal_of(WIFI)->announce && renewal_of(WIFI)->make);
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
		ck_assert(!renewal_of(WIFI)->take);
		taken += renewal_of(LTE)->take;
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
		ck_assert(!renewal_of(LTE)->take);
	}
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
	ck_assert(renewal_of(WIFI)->take && renewal_of(WIFI)->make);
	ck_assert(renewal_of(LTE)->ask && !renewal_of(LTE)->take);
	renewed(&subflows.list[WIFI]);
	paths_outages_answered(&outages, &addresses[LTE], now);
	look_after(100);
	ck_assert(renewal_of(LTE)->take && renewal_of(LTE)->make);
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
	ck_assert(renewal_of(WIFI)->ask && !renewal_of(WIFI)->take);
	paths_outages_answered(&outages, &addresses[WIFI], now);
	done = paths_outages_find(&outages, &subflows, own, 1, now += LOOK_MS * CLOCK_NS_PER_MS, renewals);
	ck_assert(renewal_of(WIFI)->take && renewal_of(WIFI)->make);
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
	tcase_add_test(tcase, test_missing_bytes);
	tcase_add_test(tcase, test_what_speaks_against_it);
	tcase_add_test(tcase, test_last_subflow);
	tcase_add_test(tcase, test_both);
	tcase_add_test(tcase, test_kept_answers);
	tcase_add_test(tcase, test_kept_is_heard);
	tcase_add_test(tcase, test_kept_is_spared);
	tcase_add_test(tcase, test_kept_has_begun);
	tcase_add_test(tcase, test_kept_is_quiet);
	tcase_add_test(tcase, test_mistakes);
	tcase_add_test(tcase, test_joins);
	tcase_add_test(tcase, test_joins_tell);
	tcase_add_test(tcase, test_stalled);
	tcase_add_test(tcase, test_stalled_alone);
	tcase_add_test(tcase, test_gone);
	tcase_add_test(tcase, test_gone_and_one_returns);
	tcase_add_test(tcase, test_what_stays);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
