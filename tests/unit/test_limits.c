/* SPDX-License-Identifier: BSD-3-Clause */
/* test_limits.c - counters, buckets, and what is remembered of clients that have left */
#include "config.h"

#include "convertd/policy/limits.h"

#include "run.h"

#include <check.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* A member, and whose turn it was. */
struct member {
	struct limits_member member; /* first */
	struct limits_owner owner;
	bool woken;
};

static struct limits *limits;

static void configure(const struct limits_settings *settings)
{
	if (!limits)
		limits = limits_create();
	ck_assert_ptr_nonnull(limits);
	limits_configure(limits, settings);
}

static void finish(void)
{
	ck_assert_uint_eq(limits_members(limits), 0);
	ck_assert_uint_eq(limits_memory(limits), 0);
	limits_destroy(limits);
	limits = NULL;
}

static void on_wake(struct limits_owner *owner)
{
	struct member *m = (struct member *)((char *)owner - offsetof(struct member, owner));

	m->woken = true;
}

static void enter_address(struct member *m, const struct in6_addr *address, enum limits_class class)
{
	memset(m, 0, sizeof(*m));
	m->member.owner = &m->owner;
	m->owner.wake = on_wake;
	ck_assert_int_eq(limits_enter(limits, &m->member, address, class), 0);
}

static void enter(struct member *m, const char *text)
{
	union sockaddr_ip addr;
	struct in6_addr address;

	ck_assert_msg(sockaddr_ip_parse(&addr, text, 1) == 0, "%s", text);
	address = sockaddr_ip_in6(&addr);
	enter_address(m, &address, LIMITS_PENDING);
}

static void leave_at(struct member *m, uint64_t now_ms)
{
	limits_leave(limits, &m->member, now_ms);
}

static void leave(struct member *m)
{
	leave_at(m, 1);
}

static void move(struct member *m, enum limits_class class)
{
	limits_move(limits, &m->member, class);
}

static enum outcome admit(struct member *m)
{
	return limits_admit(limits, &m->member);
}

/* Which addresses are one client. */
static const struct {
	unsigned v4, v6;
	const char *a, *b;
	bool same;
} pairs[] = {
	{ 32, 64, "10.0.0.1", "10.0.0.1", true },
	{ 32, 64, "10.0.0.1", "10.0.0.2", false },
	{ 24, 64, "10.0.0.1", "10.0.0.255", true },
	{ 24, 64, "10.0.0.1", "10.0.1.1", false },
	{ 0, 64, "10.0.0.1", "200.0.1.1", true },
	{ 0, 0, "10.0.0.1", "2001:db8::1", false },
	{ 32, 64, "2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", true },
	{ 32, 64, "2001:db8::1", "2001:db8:0:1::1", false },
	{ 32, 48, "2001:db8::1", "2001:db8:0:1::1", true },
	{ 32, 128, "2001:db8::1", "2001:db8::2", false },
};

START_TEST(prefixes)
{
	struct limits_settings settings = { .prefix_v4 = pairs[_i].v4, .prefix_v6 = pairs[_i].v6 };
	struct member a, b;

	configure(&settings);
	enter(&a, pairs[_i].a);
	enter(&b, pairs[_i].b);
	ck_assert_int_eq(a.member.client == b.member.client, pairs[_i].same);
	ck_assert_uint_eq(limits_clients(limits), pairs[_i].same ? 1 : 2);
	leave(&a);
	leave(&b);
	ck_assert_uint_eq(limits_clients(limits), 0);
	finish();
}
END_TEST

START_TEST(pending_of_a_client)
{
	const struct limits_settings settings = { .pending = { 2, 0 }, .prefix_v4 = 32 };
	struct member a[3], b;

	configure(&settings);
	for (int i = 0; i < 3; i++) {
		enter(&a[i], "10.0.0.1");
		ck_assert_int_eq(admit(&a[i]), i < 2 ? OUTCOME_NONE : OUTCOME_LIMIT_CLIENT_PENDING);
	}
	enter(&b, "10.0.0.2");
	ck_assert_int_eq(admit(&b), OUTCOME_NONE);
	/* Whose server has answered isn't pending any more. */
	move(&a[0], LIMITS_OPEN);
	ck_assert_int_eq(admit(&a[2]), OUTCOME_NONE);
	for (int i = 0; i < 3; i++)
		leave(&a[i]);
	leave(&b);
	finish();
}
END_TEST

START_TEST(connections_of_a_client)
{
	const struct limits_settings settings = { .connections = { 2, 3 }, .prefix_v4 = 32 };
	struct member a[3], b[2];

	configure(&settings);
	for (int i = 0; i < 3; i++) {
		enter(&a[i], "10.0.0.1");
		ck_assert_int_eq(admit(&a[i]), i < 2 ? OUTCOME_NONE : OUTCOME_LIMIT_CLIENT_CONNECTIONS);
		if (i < 2)
			move(&a[i], LIMITS_OPEN);
	}
	/* Who is refused takes no place. */
	move(&a[2], LIMITS_REFUSING);
	ck_assert_int_eq(admit(&a[1]), OUTCOME_NONE);
	enter(&b[0], "10.0.0.2");
	ck_assert_int_eq(admit(&b[0]), OUTCOME_NONE);
	/* Two open sessions aren't more than twice two, so a client that is served stays served. */
	enter(&b[1], "10.0.0.2");
	ck_assert_int_eq(admit(&b[1]), OUTCOME_LIMIT_CONNECTIONS);
	ck_assert_uint_eq(limits_members(limits), 5);
	for (int i = 0; i < 3; i++)
		leave(&a[i]);
	leave(&b[0]);
	leave(&b[1]);
	finish();
}
END_TEST

START_TEST(refusals_are_as_many_as_pending)
{
	const struct limits_settings settings = { .pending = { 2, 3 }, .prefix_v4 = 32 };
	struct member a[3], b, c;

	configure(&settings);
	for (int i = 0; i < 3; i++) {
		enter(&a[i], "10.0.0.1");
		ck_assert_int_eq(limits_may_refuse(limits, &a[i].member), i < 2);
		if (i < 2)
			move(&a[i], LIMITS_REFUSING);
	}
	enter(&b, "10.0.0.2");
	ck_assert(limits_may_refuse(limits, &b.member));
	move(&b, LIMITS_REFUSING);
	/* One too many in all: the greediest's oldest makes room. */
	enter(&c, "10.0.0.3");
	ck_assert(limits_may_refuse(limits, &c.member));
	ck_assert(a[0].woken && !a[1].woken && !b.woken);
	leave(&b);
	leave(&c);
	for (int i = 0; i < 3; i++)
		leave(&a[i]);
	finish();
}
END_TEST

START_TEST(no_limits)
{
	const struct limits_settings settings = { .prefix_v4 = 32 };
	static struct member m[1000];

	configure(&settings);
	for (int i = 0; i < 1000; i++) {
		enter(&m[i], "10.0.0.1");
		ck_assert_int_eq(admit(&m[i]), OUTCOME_NONE);
		ck_assert(limits_may_stay(limits, &m[i].member));
		ck_assert(limits_may_withhold(limits, &m[i].member));
		ck_assert(limits_may_refuse(limits, &m[i].member));
		ck_assert(limits_take_error(limits, &m[i].member, 1));
		limits_hold(limits, &m[i].member, 1ULL << 40, 1000000);
		ck_assert(!m[i].woken);
	}
	for (int i = 0; i < 1000; i++)
		leave(&m[i]);
	ck_assert_uint_eq(limits_clients(limits), 0);
	finish();
}
END_TEST

/* How many errors its client may be sent at a time. */
static int errors_at(struct member *m, uint64_t now_ms)
{
	int count = 0;

	while (count < 100000 && limits_take_error(limits, &m->member, now_ms))
		count++;
	return count;
}

START_TEST(error_buckets)
{
	const struct limits_settings settings = { .errors = { 2, 0 }, .prefix_v4 = 32 };
	struct member a, b;

	configure(&settings);
	enter(&a, "10.0.0.1");
	enter(&b, "10.0.0.2");
	/* 5 seconds' worth at once, then as time goes by. */
	ck_assert_int_eq(errors_at(&a, 1000), 10);
	ck_assert_int_eq(errors_at(&a, 1000), 0);
	ck_assert_int_eq(errors_at(&a, 1499), 0);
	ck_assert_int_eq(errors_at(&a, 1500), 1);
	ck_assert_int_eq(errors_at(&b, 1500), 10);
	ck_assert_int_eq(errors_at(&a, 2750), 2);
	ck_assert_int_eq(errors_at(&a, 3000), 1);
	ck_assert_int_eq(errors_at(&a, 3000 + 86400 * 1000), 10);
	ck_assert_int_eq(errors_at(&a, UINT64_MAX / 2), 10);
	/* Leaving and coming back doesn't fill it, as long as anything is missing. */
	leave_at(&b, 1500);
	enter(&b, "10.0.0.2");
	ck_assert_int_eq(errors_at(&b, 2000), 1);
	leave_at(&b, 2000);
	ck_assert_uint_eq(limits_clients(limits), 2);
	enter(&b, "10.0.0.2");
	leave_at(&b, 7000);
	ck_assert_uint_eq(limits_clients(limits), 1);
	leave_at(&a, UINT64_MAX / 2);
	finish();
}
END_TEST

START_TEST(errors_of_all)
{
	const struct limits_settings settings = { .errors = { 2, 3 }, .prefix_v4 = 32 };
	struct member a, b, c;

	configure(&settings);
	enter(&a, "10.0.0.1");
	enter(&b, "10.0.0.2");
	enter(&c, "10.0.0.3");
	ck_assert_int_eq(errors_at(&a, 1000), 10);
	ck_assert_int_eq(errors_at(&b, 1000), 5);
	ck_assert_int_eq(errors_at(&c, 1000), 0);
	ck_assert_int_eq(errors_at(&c, 2000), 3);
	/* What all have used up doesn't count against one. */
	ck_assert_int_eq(errors_at(&b, 100000), 10);
	leave_at(&a, 100000);
	leave_at(&b, 100000);
	leave_at(&c, 100000);
	finish();
}
END_TEST

/* Each request comes from an address of its own, as forged ones do; the memory of clients that have left must not grow. */
START_TEST(flood_of_addresses)
{
	const struct limits_settings settings = { .errors = { 2, _i ? 3 : 0 },
						  .prefix_v4 = 32,
						  .prefix_v6 = 64 };
	union sockaddr_ip addr;
	struct in6_addr address;
	int sent = 0;

	configure(&settings);
	ck_assert_int_eq(sockaddr_ip_parse(&addr, "2001:db8::1", 1), 0);
	address = sockaddr_ip_in6(&addr);
	for (uint32_t i = 0; i < 3 * LIMITS_IDLE_MAX; i++) {
		struct member m;

		memcpy(&address.s6_addr[4], &i, sizeof(i));
		enter_address(&m, &address, LIMITS_PENDING);
		sent += limits_take_error(limits, &m.member, 1000);
		leave_at(&m, 1000);
		ck_assert_uint_le(limits_clients(limits), LIMITS_IDLE_MAX);
	}
	/* All clients are in one /32, which may have half of all errors: one a second. */
	ck_assert_int_eq(sent, _i ? 5 : 3 * LIMITS_IDLE_MAX);
	ck_assert_uint_eq(limits_clients(limits), _i ? 5 : LIMITS_IDLE_MAX);
	finish();
}
END_TEST

/* A session is subtracted where it was added, even if the lengths of prefixes have changed since. */
START_TEST(reconfigured)
{
	struct limits_settings settings = { .pending = { 1, 0 }, .prefix_v4 = 32, .prefix_v6 = 64 };
	struct member before, after, other;

	configure(&settings);
	enter(&before, "10.0.0.1");
	settings.prefix_v4 = 24;
	configure(&settings);
	enter(&after, "10.0.0.1");
	ck_assert(before.member.client != after.member.client);
	ck_assert_int_eq(admit(&after), OUTCOME_NONE);
	leave(&before);
	enter(&other, "10.0.0.2");
	ck_assert(other.member.client == after.member.client);
	ck_assert_int_ne(admit(&other), OUTCOME_NONE);
	leave(&after);
	leave(&other);
	finish();
}
END_TEST

#define THREADS 4
#define ROUNDS 5000

/* Sessions of two clients, through all that may happen to them, each of which pushes another out now and then. */
static void *come_and_go(void *arg)
{
	bool *right = arg;

	for (int i = 0; i < ROUNDS; i++) {
		struct in6_addr address = { .s6_addr = { 0x20, [7] = (uint8_t)(i % 2) } };
		struct member m = { .member.owner = &m.owner, .owner.wake = on_wake };
		enum outcome reason;

		*right &= limits_enter(limits, &m.member, &address, LIMITS_WAITING) == 0;
		*right &= limits_members(limits) <= THREADS;
		limits_admit(limits, &m.member);
		limits_hold(limits, &m.member, (uint64_t)i << 10, (uint32_t)i % 3000);
		limits_take_error(limits, &m.member, (uint64_t)i + 1);
		limits_move(limits, &m.member, LIMITS_PENDING);
		limits_touch(limits, &m.member);
		if (i % 3)
			limits_move(limits, &m.member, i % 2 ? LIMITS_OPEN : LIMITS_REFUSING);
		if (i % 5 == 0)
			while (limits_next_told(limits, &m.owner, &reason))
				;
		limits_leave(limits, &m.member, (uint64_t)i + 1);
	}
	return NULL;
}

START_TEST(threads)
{
	const struct limits_settings settings = {
		.pending = { 0, 2 },
		.connections = { 0, 3 },
		.errors = { 1000, 1000 },
		.memory = { 1 << 20, 2 << 20 },
		.prefix_v6 = 64,
	};
	pthread_t thread[THREADS];
	bool right[THREADS];

	configure(&settings);
	for (int i = 0; i < THREADS; i++) {
		right[i] = true;
		ck_assert_int_eq(pthread_create(&thread[i], NULL, come_and_go, &right[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
		ck_assert(right[i]);
	}
	finish();
}
END_TEST

/* ----- who makes room ----- */

#define ROOM 1024

static struct in6_addr address_of(const char *text)
{
	union sockaddr_ip addr;

	ck_assert_int_eq(sockaddr_ip_parse(&addr, text, 1), 0);
	return sockaddr_ip_in6(&addr);
}

/* Returns the @i-th of @count prefixes of that length, spread over the bits above it. */
static struct in6_addr spread(const char *base, unsigned bits, uint32_t i)
{
	struct in6_addr address = address_of(base);

	for (int bit = 0; bit < 32; bit++)
		if (i >> bit & 1)
			address.s6_addr[(bits - 1 - (unsigned)bit) / 8] |=
				(uint8_t)(1U << (7 - (bits - 1 - (unsigned)bit) % 8));
	return address;
}

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

static bool told(struct member *m)
{
	enum outcome reason;

	return limits_next_told(limits, &m->owner, &reason) == &m->member;
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
	ck_assert(told(&m[1]) && !m[0].woken && !m[2].woken);
	/* Most sessions have a request again; of the greediest client, waiting sessions are given up first. */
	move(&m[2], LIMITS_PENDING);
	enter(&m[4], "10.0.0.2");
	ck_assert_int_eq(admit(&m[4]), OUTCOME_NONE);
	ck_assert(told(&m[3]) && !m[0].woken && !m[2].woken);
	/* Then the oldest of the others. */
	enter(&m[5], "10.0.0.2");
	ck_assert_int_eq(admit(&m[5]), OUTCOME_NONE);
	ck_assert(told(&m[0]) && !m[2].woken && !m[4].woken);
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
	ck_assert(told(&m[2]) && !m[0].woken && !m[1].woken && !m[3].woken);
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
	ck_assert_ptr_null(limits_next_told(limits, &a.owner, &reason));
	ck_assert_int_eq(admit(&b), OUTCOME_NONE);
	/* It goes by itself. */
	enter(&c, "10.0.0.3");
	ck_assert_int_eq(admit(&c), OUTCOME_NONE);
	ck_assert(b.woken);
	leave(&b);
	ck_assert_ptr_null(limits_next_told(limits, &b.owner, &reason));
	/* It isn't counted until it is refused. */
	enter(&b, "10.0.0.2");
	ck_assert_int_eq(admit(&b), OUTCOME_NONE);
	ck_assert_ptr_eq(limits_next_told(limits, &c.owner, &reason), &c.member);
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
	ck_assert_ptr_null(limits_next_told(limits, &a.owner, &reason));
	leave(&a);
	leave(&b);
	finish();
}
END_TEST

/* 256 clients of a /24 have no more of all errors than an eighth; those of another are told theirs. */
START_TEST(errors_of_a_prefix)
{
	const struct limits_settings settings = { .errors = { 20, 1000 }, .prefix_v4 = 32 };
	static struct member m[256];
	struct member other;
	int sent = 0;

	configure(&settings);
	for (uint32_t i = 0; i < ARRAY_SIZE(m); i++) {
		struct in6_addr address = spread("10.0.0.0", 128, i);

		enter_address(&m[i], &address, LIMITS_PENDING);
		sent += errors_at(&m[i], 1000);
	}
	ck_assert_int_eq(sent, 1000 / 8 * 5);
	enter(&other, "10.0.1.1");
	ck_assert_int_eq(errors_at(&other, 1000), 100);
	for (size_t i = 0; i < ARRAY_SIZE(m); i++)
		leave_at(&m[i], 100000);
	leave_at(&other, 100000);
	finish();
}
END_TEST

/* ----- kernel memory ----- */

#define MB (1ULL << 20)

static void hold(struct member *m, uint64_t bytes, uint32_t stalled_ms)
{
	limits_hold(limits, &m->member, bytes, stalled_ms);
}

START_TEST(memory_of_all)
{
	const struct limits_settings settings = { .memory = { 100 * MB, 100 * MB }, .prefix_v4 = 32 };
	struct member fast, still, longer, slow;

	configure(&settings);
	enter(&fast, "10.0.0.1");
	enter(&still, "10.1.0.1");
	enter(&longer, "10.2.0.1");
	enter(&slow, "10.3.0.1");
	hold(&fast, 90 * MB, 0);
	hold(&still, 4 * MB, 10000);
	hold(&longer, 4 * MB, 19000);
	hold(&slow, 2 * MB, 4000);
	ck_assert_uint_eq(limits_memory(limits), 100 * MB);
	ck_assert(!fast.woken && !still.woken && !longer.woken && !slow.woken);
	hold(&fast, 91 * MB, 0);
	ck_assert(longer.woken && !still.woken);
	ck_assert_uint_eq(limits_memory(limits), 97 * MB);
	/* What has been told to go holds nothing any more. */
	hold(&longer, 50 * MB, 19000);
	ck_assert_uint_eq(limits_memory(limits), 97 * MB);
	hold(&fast, 120 * MB, 0);
	ck_assert(still.woken);
	/* What moves is never ended. */
	hold(&fast, 180 * MB, 100);
	ck_assert(!fast.woken && !slow.woken);
	/* A session that holds by far the most, and is idle now, has less time than one that holds little. */
	hold(&fast, 180 * MB, 1999);
	ck_assert(!fast.woken && !slow.woken);
	/* It is let off when it has moved. */
	hold(&slow, 0, 0);
	ck_assert_uint_eq(limits_memory(limits), 180 * MB);
	hold(&slow, 3 * MB, 9000);
	hold(&fast, 180 * MB, 2000);
	ck_assert(fast.woken && !slow.woken);
	leave(&fast);
	leave(&still);
	leave(&longer);
	leave(&slow);
	finish();
}
END_TEST

/* Of one client, which holds more than its part: at leisure, or soon if it holds more than twice that. */
START_TEST(memory_of_a_client)
{
	const struct limits_settings settings = { .memory = { 10 * MB, 1000 * MB }, .prefix_v4 = 32 };
	struct member m[6], honest;

	configure(&settings);
	enter(&honest, "10.0.0.1");
	hold(&honest, 5 * MB, 300);
	for (int i = 0; i < 3; i++) {
		enter(&m[i], "10.0.0.1");
		hold(&m[i], 4 * MB, 4000);
	}
	ck_assert(!m[0].woken && !m[1].woken && !m[2].woken);
	hold(&m[1], 4 * MB, 5000);
	ck_assert(m[1].woken && !m[0].woken);
	for (int i = 3; i < 6; i++) {
		enter(&m[i], "10.0.0.1");
		hold(&m[i], 4 * MB, 1900);
	}
	/* 25 MB: to 20 at most at once, and no further. */
	ck_assert(m[0].woken && m[2].woken);
	ck_assert_uint_eq(limits_memory(limits), 17 * MB);
	ck_assert(!honest.woken && !m[3].woken && !m[4].woken && !m[5].woken);
	for (int i = 0; i < 6; i++)
		leave(&m[i]);
	leave(&honest);
	finish();
}
END_TEST

/* 256 clients of a /56, each within its part: the prefix has twice as much as a client, its /48 four times. */
START_TEST(memory_of_a_prefix)
{
	const struct limits_settings settings = { .memory = { 10 * MB, 1000 * MB }, .prefix_v6 = 64 };
	static struct member m[256];
	struct member neighbour;
	unsigned there = 0;

	configure(&settings);
	enter(&neighbour, "2001:db8:0:100::1");
	hold(&neighbour, 9 * MB, 6000);
	for (uint32_t i = 0; i < ARRAY_SIZE(m); i++) {
		struct in6_addr address = spread("2001:db8::1", 64, i);

		enter_address(&m[i], &address, LIMITS_PENDING);
		hold(&m[i], 1 * MB, 6000);
	}
	for (size_t i = 0; i < ARRAY_SIZE(m); i++) {
		there += !m[i].woken;
		leave(&m[i]);
	}
	ck_assert_uint_eq(there, 20);
	ck_assert(!neighbour.woken);
	leave(&neighbour);
	finish();
}
END_TEST

static uint64_t apart(const char *text)
{
	union sockaddr_ip addr;
	struct in6_addr address;

	ck_assert_msg(sockaddr_ip_parse(&addr, text, 1) == 0, "%s", text);
	address = sockaddr_ip_in6(&addr);
	return limits_pending_apart(limits, &address);
}

/* 16 clients of a /56, two of its /48, one of its /32, one elsewhere: what each of them, and a stranger, is apart from. */
START_TEST(pending_apart)
{
	static const struct limits_settings settings = { .prefix_v4 = 32, .prefix_v6 = 64 };
	static const char *const others[] = { "2001:db8:0:100::1", "2001:db8:0:200::1", "2001:db8:1::1", "192.0.2.1" };
	struct member crowd[16], m[ARRAY_SIZE(others)];

	configure(&settings);
	ck_assert_uint_eq(apart("192.0.2.1"), 0);
	for (uint32_t i = 0; i < ARRAY_SIZE(crowd); i++) {
		struct in6_addr address = spread("2001:db8::1", 64, i);

		enter_address(&crowd[i], &address, i % 2 ? LIMITS_PENDING : LIMITS_WITHHELD);
	}
	for (size_t i = 0; i < ARRAY_SIZE(m); i++)
		enter(&m[i], others[i]);
	/* without the /32, without the /48, without the /56 */
	ck_assert_uint_eq(apart("192.0.2.1"), 1);
	ck_assert_uint_eq(apart("2001:db9::1"), 1);
	ck_assert_uint_eq(apart("2001:db8:1::2"), 2);
	ck_assert_uint_eq(apart("2001:db8:0:200::2"), 4);
	/* in it, but for the greediest client */
	ck_assert_uint_eq(apart("2001:db8:0:ff::1"), 19);
	for (size_t i = 0; i < ARRAY_SIZE(crowd); i++)
		move(&crowd[i], LIMITS_OPEN);
	ck_assert_uint_le(apart("198.51.100.1"), 3);
	for (size_t i = 0; i < ARRAY_SIZE(crowd); i++)
		leave(&crowd[i]);
	for (size_t i = 0; i < ARRAY_SIZE(m); i++)
		leave(&m[i]);
	finish();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("limits");
	TCase *tcase = tcase_create("limits");

	tcase_add_loop_test(tcase, prefixes, 0, (int)ARRAY_SIZE(pairs));
	tcase_add_test(tcase, pending_of_a_client);
	tcase_add_test(tcase, connections_of_a_client);
	tcase_add_test(tcase, refusals_are_as_many_as_pending);
	tcase_add_test(tcase, no_limits);
	tcase_add_test(tcase, error_buckets);
	tcase_add_test(tcase, errors_of_all);
	tcase_add_loop_test(tcase, flood_of_addresses, 0, 2);
	tcase_add_test(tcase, reconfigured);
	tcase_add_loop_test(tcase, greedy_attackers, 0, (int)ARRAY_SIZE(attacks));
	tcase_add_test(tcase, waiting_ones_first);
	tcase_add_test(tcase, open_ones_make_room);
	tcase_add_test(tcase, withheld_ones_make_room);
	tcase_add_test(tcase, sockets_run_out);
	tcase_add_test(tcase, told_to_go);
	tcase_add_test(tcase, told_but_claimed);
	tcase_add_test(tcase, errors_of_a_prefix);
	tcase_add_test(tcase, memory_of_all);
	tcase_add_test(tcase, memory_of_a_client);
	tcase_add_test(tcase, memory_of_a_prefix);
	tcase_add_test(tcase, pending_apart);
	tcase_add_test(tcase, threads);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
