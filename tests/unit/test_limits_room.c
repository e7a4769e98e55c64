/* SPDX-License-Identifier: BSD-3-Clause */
/* test_limits_room.c - who makes room for whom where all places are taken */
#include "config.h"

#include "limits_world.h"
#include "run.h"

#include <check.h>

#define ROOM 1024

/* Attackers that take turns in so many prefixes of that length, and a stranger to all of them. */
static const struct {
	const char *base;
	unsigned bits, count;
	const char *stranger;
} attacks[] = {
	{ "2001:db8::1", 64, 1, "2001:db8:0:1::1" },       /* next door, in the same /56 */
	{ "2001:db8::1", 64, 16, "2001:db8:0:100::1" },    /* in the same /48 */
	{ "2001:db8::1", 64, 256, "2001:db8:0:ffff::1" },
	{ "2001:db8::1", 64, 256, "10.0.0.1" },
	{ "2001:db8::1", 64, 65536, "2001:db8:1::1" },     /* in the same /32 */
	{ "2001:db8::1", 56, 65536, "2001:dba::1" },
	{ "2001:db8::1", 48, 65536, "2001:db9::1" },
	{ "2001:db8::1", 128, 65536, "2001:db8:0:1::1" },
	{ "192.0.2.1", 128, 1, "192.0.2.2" },
	{ "10.9.8.0", 128, 128, "10.9.9.1" },
	{ "10.9.0.0", 128, 65536, "10.8.0.1" },
	{ "10.0.0.1", 120, 65536, "11.0.0.1" },
	{ "10.0.0.1", 120, 65536, "2001:db8::1" },
};

/* More than there is room for, all of which wait for servers; then one comes who isn't one of them. */
START_TEST(greedy_attackers)
{
	const struct limits_settings settings = { .pending.total = ROOM, .prefix_v4 = 32, .prefix_v6 = 64 };
	static struct member flood[3 * ROOM];
	struct member stranger[2];
	size_t count = 0, there = 0;

	configure(&settings);
	for (uint32_t i = 0; i < 3 * ROOM; i++) {
		struct in6_addr address = spread(attacks[_i].base, attacks[_i].bits,
						 i * 2654435761U % attacks[_i].count);

		enter_address(&flood[count], &address, LIMITS_PENDING);
		if (admit(&flood[count]) == OUTCOME_NONE)
			count++;
		else
			leave(&flood[count]);
		/* In the midst of them comes the first, and then others. */
		if (i % (3 * ROOM / ARRAY_SIZE(stranger)) == 0) {
			struct member *s = &stranger[there++];

			enter(s, attacks[_i].stranger);
			ck_assert_int_eq(admit(s), OUTCOME_NONE);
		}
	}
	for (size_t i = 0; i < there; i++) {
		ck_assert_msg(!stranger[i].woken, "stranger %zu had to go", i);
		leave(&stranger[i]);
	}
	for (size_t i = 0; i < count; i++)
		leave(&flood[i]);
	finish();
}
END_TEST

static bool is_evicted(struct member *m)
{
	enum outcome reason;

	return limits_next_evicted(limits, &m->owner, &reason) == &m->member;
}

START_TEST(waiting_ones_first)
{
	const struct limits_settings settings = { .pending.total = 3, .prefix_v4 = 32 };
	struct member m[6];

	configure(&settings);
	enter(&m[0], "10.0.0.1"); /* has a request */
	for (int i = 1; i < 4; i++) {
		enter(&m[i], "10.0.0.1");
		move(&m[i], LIMITS_WAITING);
		ck_assert_int_eq(admit(&m[i]), OUTCOME_NONE);
	}
	/* The oldest waiting session is given up, even if it belongs to the newcomer's own client. */
	ck_assert(is_evicted(&m[1]) && !m[0].woken && !m[2].woken);
	/* Most sessions have a request again; of the greediest client, waiting sessions are given up first. */
	move(&m[2], LIMITS_PENDING);
	enter(&m[4], "10.0.0.2");
	ck_assert_int_eq(admit(&m[4]), OUTCOME_NONE);
	ck_assert(is_evicted(&m[3]) && !m[0].woken && !m[2].woken);
	/* Then the oldest of the others. */
	enter(&m[5], "10.0.0.2");
	ck_assert_int_eq(admit(&m[5]), OUTCOME_NONE);
	ck_assert(is_evicted(&m[0]) && !m[2].woken && !m[4].woken);
	for (int i = 0; i < 6; i++)
		leave(&m[i]);
	finish();
}
END_TEST

START_TEST(open_ones_make_room)
{
	const struct limits_settings settings = { .connections.total = 5, .prefix_v4 = 32 };
	struct member m[5], n[3];

	configure(&settings);
	for (int i = 0; i < 5; i++) {
		enter(&m[i], i ? "10.0.0.1" : "10.0.1.2");
		ck_assert_int_eq(admit(&m[i]), OUTCOME_NONE);
		move(&m[i], LIMITS_OPEN);
	}
	/* Its own client has most: refused. */
	enter(&n[0], "10.0.0.1");
	ck_assert_int_eq(admit(&n[0]), OUTCOME_LIMIT_CONNECTIONS);
	leave(&n[0]);
	/* For a newcomer from elsewhere, the session that has been idle for longest is given up. */
	limits_touch(limits, &m[1].member);
	enter(&n[0], "10.1.0.1");
	ck_assert_int_eq(admit(&n[0]), OUTCOME_NONE);
	ck_assert(is_evicted(&m[2]) && !m[0].woken && !m[1].woken && !m[3].woken);
	/* 4 of 10.0/16 are no more than twice the 2 of 10.1/16. */
	enter(&n[1], "10.1.0.2");
	ck_assert_int_eq(admit(&n[1]), OUTCOME_LIMIT_CONNECTIONS);
	leave(&n[1]);
	for (int i = 0; i < 5; i++)
		leave(&m[i]);
	leave(&n[0]);
	finish();
}
END_TEST

/* A gateway routes the newcomer, and connections go on, though their client has more than twice as many. Withheld SYNs make room. */
START_TEST(open_ones_stay)
{
	const struct limits_settings settings = { .connections.total = 3, .prefix_v4 = 32, .keeps_open = true };
	struct member m[3], n[2];

	configure(&settings);
	for (int i = 0; i < 3; i++) {
		enter(&m[i], "10.0.0.1");
		ck_assert_int_eq(admit(&m[i]), OUTCOME_NONE);
		if (i)
			move(&m[i], LIMITS_OPEN);
	}
	enter(&n[0], "10.1.0.1");
	move(&n[0], LIMITS_WITHHELD);
	ck_assert_int_eq(admit(&n[0]), OUTCOME_LIMIT_CONNECTIONS);
	ck_assert(!m[0].woken && !m[1].woken && !m[2].woken);
	leave(&n[0]);
	move(&m[2], LIMITS_WITHHELD);
	enter(&n[1], "10.1.0.1");
	move(&n[1], LIMITS_WITHHELD);
	ck_assert_int_eq(admit(&n[1]), OUTCOME_NONE);
	ck_assert(m[2].woken && !m[0].woken && !m[1].woken);
	for (int i = 0; i < 3; i++)
		leave(&m[i]);
	leave(&n[1]);
	finish();
}
END_TEST

/* A refused member whose client hasn't proved its address takes no connection's place. It makes room before all others. */
START_TEST(refused_ones_take_no_place)
{
	const struct limits_settings settings = { .pending.total = 11, .connections.total = 40, .sockets = 50, .prefix_v4 = 32 };
	struct member open[40], refused[10], b[2], c;
	int evicted = 0;

	configure(&settings);
	for (int i = 0; i < 40; i++) {
		enter(&open[i], "10.0.0.1");
		ck_assert_int_eq(admit(&open[i]), OUTCOME_NONE);
		move(&open[i], LIMITS_OPEN);
	}
	for (int i = 0; i < 10; i++) {
		enter(&refused[i], "10.0.0.1");
		ck_assert_int_eq(admit(&refused[i]), OUTCOME_LIMIT_CONNECTIONS);
		move(&refused[i], LIMITS_REFUSED);
	}
	enter(&b[0], "10.1.0.1");
	ck_assert_int_eq(admit(&b[0]), OUTCOME_NONE);
	for (int i = 0; i < 40; i++)
		evicted += open[i].woken;
	ck_assert_int_eq(evicted, 1);
	/* One socket and then one request too many. */
	enter(&c, "10.2.0.1");
	ck_assert(limits_may_stay(limits, &c.member));
	ck_assert(refused[0].woken && !refused[1].woken);
	move(&c, LIMITS_WAITING);
	enter(&b[1], "10.1.0.1");
	ck_assert_int_eq(admit(&b[1]), OUTCOME_NONE);
	ck_assert(refused[1].woken && !b[0].woken && !c.woken);
	for (int i = 0; i < 40; i++)
		leave(&open[i]);
	for (int i = 0; i < 10; i++)
		leave(&refused[i]);
	leave(&b[0]);
	leave(&b[1]);
	leave(&c);
	finish();
}
END_TEST

/* A reload has lowered the limit by 20: one newcomer pushes out 16 and is refused, so that the next ones find room. */
START_TEST(lowered_limits)
{
	struct limits_settings settings = { .connections.total = 60, .prefix_v4 = 32 };
	struct member open[60], b;
	int evicted = 0;

	configure(&settings);
	for (int i = 0; i < 60; i++) {
		enter(&open[i], "10.0.0.1");
		move(&open[i], LIMITS_OPEN);
	}
	settings.connections.total = 40;
	configure(&settings);
	enter(&b, "10.1.0.1");
	ck_assert_int_eq(admit(&b), OUTCOME_LIMIT_CONNECTIONS);
	leave(&b);
	enter(&b, "10.1.0.1");
	ck_assert_int_eq(admit(&b), OUTCOME_NONE);
	for (int i = 0; i < 60; i++) {
		evicted += open[i].woken;
		leave(&open[i]);
	}
	ck_assert_int_eq(evicted, 21);
	leave(&b);
	finish();
}
END_TEST

START_TEST(withheld_ones_make_room)
{
	const struct limits_settings settings = { .pending.total = 8, .prefix_v4 = 32 };
	struct in6_addr greedy = address_of("10.0.0.1"), other = address_of("10.1.0.1");
	struct member m[3], n;

	configure(&settings);
	for (int i = 0; i < 3; i++) {
		enter_address(&m[i], &greedy, LIMITS_WITHHELD);
		ck_assert_int_eq(limits_may_withhold(limits, &m[i].member), i < 2);
	}
	leave(&m[2]);
	enter_address(&n, &other, LIMITS_WITHHELD);
	ck_assert(limits_may_withhold(limits, &n.member));
	ck_assert(m[0].woken && !m[1].woken);
	/* Both have one: a third is let in by neither. */
	leave(&m[0]);
	enter(&m[0], "10.2.0.1");
	move(&m[0], LIMITS_WITHHELD);
	ck_assert(!limits_may_withhold(limits, &m[0].member));
	leave(&m[0]);
	leave(&m[1]);
	leave(&n);
	finish();
}
END_TEST

START_TEST(sockets_run_out)
{
	const struct limits_settings settings = { .connections.total = 2, .sockets = 3, .prefix_v4 = 32 };
	struct member m[3], n[2];

	configure(&settings);
	for (int i = 0; i < 3; i++) {
		enter(&m[i], "10.0.0.1");
		ck_assert(limits_may_stay(limits, &m[i].member));
		move(&m[i], i < 2 ? LIMITS_OPEN : LIMITS_REFUSING);
	}
	/* A refusal first; then an open one, as long as its prefix has more than twice as many. */
	enter(&n[0], "10.1.0.1");
	ck_assert(limits_may_stay(limits, &n[0].member));
	ck_assert(m[2].woken && !m[0].woken);
	enter(&n[1], "10.1.0.2");
	ck_assert(!limits_may_stay(limits, &n[1].member));
	for (int i = 0; i < 3; i++)
		leave(&m[i]);
	leave(&n[0]);
	leave(&n[1]);
	finish();
}
END_TEST

/* A session that was told to end may change its state by itself before it does. */
START_TEST(told_to_go)
{
	const struct limits_settings settings = { .pending.total = 1, .prefix_v4 = 32 };
	struct member a, b, c;
	enum outcome reason;

	configure(&settings);
	enter(&a, "10.0.0.1");
	enter(&b, "10.0.0.2");
	ck_assert_int_eq(admit(&b), OUTCOME_NONE);
	ck_assert(a.woken);
	/* Its server has answered: that makes room as well. */
	move(&a, LIMITS_OPEN);
	ck_assert_ptr_null(limits_next_evicted(limits, &a.owner, &reason));
	ck_assert_int_eq(admit(&b), OUTCOME_NONE);
	/* It goes by itself. */
	enter(&c, "10.0.0.3");
	ck_assert_int_eq(admit(&c), OUTCOME_NONE);
	ck_assert(b.woken);
	leave(&b);
	ck_assert_ptr_null(limits_next_evicted(limits, &b.owner, &reason));
	/* It isn't counted until it is refused. */
	enter(&b, "10.0.0.2");
	ck_assert_int_eq(admit(&b), OUTCOME_NONE);
	ck_assert_ptr_eq(limits_next_evicted(limits, &c.owner, &reason), &c.member);
	ck_assert_int_eq(reason, OUTCOME_LIMIT_PENDING);
	ck_assert_int_eq(admit(&c), OUTCOME_LIMIT_PENDING);
	move(&c, LIMITS_REFUSING);
	ck_assert_int_eq(admit(&b), OUTCOME_NONE);
	leave(&a);
	leave(&b);
	leave(&c);
	finish();
}
END_TEST

static bool claimed_by_another(struct limits_member *member)
{
	(void)member;
	return false;
}

START_TEST(told_but_claimed)
{
	static const struct limits_member_kind kind = { .claim = claimed_by_another };
	const struct limits_settings settings = { .pending.total = 1, .prefix_v4 = 32 };
	struct member a, b;
	enum outcome reason;

	configure(&settings);
	enter(&a, "10.0.0.1");
	a.member.kind = &kind;
	enter(&b, "10.0.0.2");
	ck_assert_int_eq(admit(&b), OUTCOME_NONE);
	ck_assert(a.woken);
	ck_assert_ptr_null(limits_next_evicted(limits, &a.owner, &reason));
	leave(&a);
	leave(&b);
	finish();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("limits_room");
	TCase *tcase = tcase_create("limits_room");

	tcase_add_loop_test(tcase, greedy_attackers, 0, (int)ARRAY_SIZE(attacks));
	tcase_add_test(tcase, waiting_ones_first);
	tcase_add_test(tcase, open_ones_make_room);
	tcase_add_test(tcase, open_ones_stay);
	tcase_add_test(tcase, refused_ones_take_no_place);
	tcase_add_test(tcase, lowered_limits);
	tcase_add_test(tcase, withheld_ones_make_room);
	tcase_add_test(tcase, sockets_run_out);
	tcase_add_test(tcase, told_to_go);
	tcase_add_test(tcase, told_but_claimed);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
