/* SPDX-License-Identifier: BSD-3-Clause */
/* test_limits_memory.c - who gives way where the kernel's memory for sockets is short */
#include "config.h"

#include "limits_world.h"
#include "run.h"

#include <check.h>

#define MB (1ULL << 20)

static void hold(struct member *m, uint64_t bytes, uint32_t stalled_ms)
{
	limits_note_memory(limits, &m->member, bytes, stalled_ms);
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

/* A client that holds more than its part loses sessions that have stalled for 5 s, or for 2 s if it holds more than twice its part. */
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

/* A prefix may hold half of all at most: two clients of a /24, of which each stays below its own limit. */
START_TEST(prefix_has_half)
{
	const struct limits_settings settings = { .memory = { 40 * MB, 100 * MB }, .prefix_v4 = 32 };
	struct member a, b;

	configure(&settings);
	enter(&a, "10.0.0.1");
	enter(&b, "10.0.0.2");
	hold(&a, 25 * MB, 6000);
	hold(&b, 25 * MB, 6000);
	ck_assert(!a.woken && !b.woken);
	hold(&b, 26 * MB, 6000);
	ck_assert(b.woken && !a.woken);
	leave(&a);
	leave(&b);
	finish();
}
END_TEST

/* Where all hold too much, who holds less than half of the greediest may stall for ten seconds, and others for two. */
START_TEST(small_ones_have_longer)
{
	const struct limits_settings settings = { .memory = { 100 * MB, 100 * MB }, .prefix_v4 = 32 };
	struct member fast, slow;

	configure(&settings);
	enter(&fast, "10.0.0.1");
	enter(&slow, "10.1.0.1");
	hold(&slow, 3 * MB, 9999);
	hold(&fast, 99 * MB, 0);
	ck_assert(!slow.woken);
	hold(&slow, 3 * MB, 10000);
	ck_assert(slow.woken && !fast.woken);
	leave(&slow);
	enter(&slow, "10.1.0.1");
	hold(&fast, 60 * MB, 0);
	hold(&slow, 45 * MB, 1999);
	ck_assert(!slow.woken);
	hold(&slow, 45 * MB, 2000);
	ck_assert(slow.woken && !fast.woken);
	leave(&slow);
	leave(&fast);
	finish();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("limits_memory");
	TCase *tcase = tcase_create("limits_memory");

	tcase_add_test(tcase, memory_of_all);
	tcase_add_test(tcase, prefix_has_half);
	tcase_add_test(tcase, small_ones_have_longer);
	tcase_add_test(tcase, memory_of_a_client);
	tcase_add_test(tcase, memory_of_a_prefix);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
