/* SPDX-License-Identifier: BSD-3-Clause */
/* test_far_clients.c - which clients are far, and for how long their SYNs may be withheld */
#include "config.h"

#include "daemon/far_clients.h"

#include "run.h"

#include <check.h>
#include <stdint.h>

#define NOW UINT64_C(5000000)
#define MS UINT32_C(1000)
#define LIFETIME_MS (FAR_CLIENTS_SECONDS * UINT64_C(1000))

/* So many milliseconds go by until the seconds of an entry come round again. */
#define ROUND_MS ((UINT64_C(1) << 20) * 1000)

static struct far_clients *clients;
static const struct in6_addr v4 = { .s6_addr = { [10] = 0xff, 0xff, 192, 0, 2, 1 } };
static const struct in6_addr neighbour4 = { .s6_addr = { [10] = 0xff, 0xff, 192, 0, 2, 2 } };
static const struct in6_addr v6 = { .s6_addr = { 0x20, 1, 0xd, 0xb8, 0, 0, 0, 1, 1 } };
static const struct in6_addr same6 = { .s6_addr = { 0x20, 1, 0xd, 0xb8, 0, 0, 0, 1, 2 } };
static const struct in6_addr neighbour6 = { .s6_addr = { 0x20, 1, 0xd, 0xb8, 0, 0, 0, 2, 1 } };

static void setup(void)
{
	clients = far_clients_create();
	ck_assert_ptr_nonnull(clients);
}

static void teardown(void)
{
	far_clients_destroy(clients);
}

static void knows(const struct in6_addr *client, uint64_t now_ms, unsigned rtt_ms)
{
	ck_assert_uint_eq(far_clients_rtt_ms(clients, client, now_ms), rtt_ms);
}

START_TEST(by_address)
{
	knows(&v4, NOW, 0);
	far_clients_note(clients, &v4, 400 * MS, NOW);
	knows(&v4, NOW, 400);
	knows(&neighbour4, NOW, 0);
	/* Both may share a place: nothing is said of the first one from here on. */
	far_clients_note(clients, &v6, 300 * MS, NOW);
	knows(&v6, NOW, 300);
	knows(&same6, NOW, 300);
	knows(&neighbour6, NOW, 0);
}
END_TEST

/* Nothing is looked up for the third ACK of a client that is near, and was when its SYN came. */
START_TEST(whom_it_concerns)
{
	ck_assert(!far_clients_concern(FAR_CLIENTS_MS * MS - 1, false));
	ck_assert(far_clients_concern(FAR_CLIENTS_MS * MS, false));
	ck_assert(far_clients_concern(1, true));
	/* The kernel has measured nothing where the SYN+ACK was sent again. */
	ck_assert(!far_clients_concern(0, true));
}
END_TEST

START_TEST(near_ones_are_not_noted)
{
	far_clients_note(clients, &v4, FAR_CLIENTS_MS * MS - 1, NOW);
	knows(&v4, NOW, 0);
	far_clients_note(clients, &v4, FAR_CLIENTS_MS * MS, NOW);
	knows(&v4, NOW, FAR_CLIENTS_MS);
}
END_TEST

/* What is farther counts at once, what is nearer by and by, until the client is near. */
START_TEST(changes)
{
	unsigned count = 0;

	far_clients_note(clients, &v4, 300 * MS, NOW);
	far_clients_note(clients, &v4, 900 * MS, NOW);
	knows(&v4, NOW, 900);
	far_clients_note(clients, &v4, 100 * MS, NOW);
	knows(&v4, NOW, 700);
	while (far_clients_rtt_ms(clients, &v4, NOW)) {
		far_clients_note(clients, &v4, 100 * MS, NOW);
		count++;
	}
	ck_assert_uint_eq(count, 9);
	/* However small the difference is, it goes. */
	far_clients_note(clients, &v4, (FAR_CLIENTS_MS + 1) * MS, NOW);
	far_clients_note(clients, &v4, FAR_CLIENTS_MS * MS, NOW);
	knows(&v4, NOW, FAR_CLIENTS_MS);
	far_clients_note(clients, &v4, UINT32_MAX, NOW);
	knows(&v4, NOW, 4095);
}
END_TEST

START_TEST(forgotten)
{
	far_clients_note(clients, &v4, 400 * MS, NOW);
	knows(&v4, NOW + LIFETIME_MS - 1000, 400);
	knows(&v4, NOW + LIFETIME_MS, 0);
	/* What is forgotten doesn't count for what is noted later. */
	far_clients_note(clients, &v4, 250 * MS, NOW + LIFETIME_MS);
	knows(&v4, NOW + LIFETIME_MS, 250);
	far_clients_note(clients, &v6, 400 * MS, ROUND_MS - 1000);
	knows(&v6, ROUND_MS + LIFETIME_MS - 2000, 400);
	knows(&v6, ROUND_MS + LIFETIME_MS - 1000, 0);
}
END_TEST

/* There are fewer places than addresses: a client never gets another one's round trip, and the last ones are known. */
START_TEST(more_than_places)
{
	const unsigned total = 100000;
	unsigned known = 0;

	for (unsigned i = 0; i < total; i++) {
		struct in6_addr client = { .s6_addr = { 0x20, 1, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i } };

		far_clients_note(clients, &client, (200 + i % 800) * MS, NOW);
		knows(&client, NOW, 200 + i % 800);
	}
	for (unsigned i = 0; i < total; i++) {
		struct in6_addr client = { .s6_addr = { 0x20, 1, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i } };
		unsigned rtt_ms = far_clients_rtt_ms(clients, &client, NOW);

		ck_assert(!rtt_ms || rtt_ms == 200 + i % 800);
		known += rtt_ms > 0;
	}
	ck_assert_uint_gt(known, total / 10);
}
END_TEST

START_TEST(hold)
{
	static const struct {
		unsigned hold_ms, rtt_ms, until_ms, expected;
	} cases[] = {
		{ 700, 0, 1000, 700 },   { 700, 150, 1000, 700 }, { 700, 177, 1000, 700 }, { 700, 200, 1000, 675 },
		{ 700, 300, 1000, 563 }, { 700, 400, 1000, 450 }, { 700, 600, 1000, 225 }, { 700, 800, 1000, 50 },
		{ 700, 4095, 1000, 50 }, { 700, 400, 900, 350 },  { 300, 400, 1000, 300 }, { 20, 800, 1000, 20 },
		{ 0, 400, 1000, 0 },     { 2900, 0, 1000, 2900 }, { 2900, 200, 1000, 675 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_uint_eq(far_clients_hold_ms(cases[i].hold_ms, cases[i].rtt_ms, cases[i].until_ms), cases[i].expected);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("far_clients");
	TCase *tc = tcase_create("far_clients");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, by_address);
	tcase_add_test(tc, whom_it_concerns);
	tcase_add_test(tc, near_ones_are_not_noted);
	tcase_add_test(tc, changes);
	tcase_add_test(tc, forgotten);
	tcase_add_test(tc, more_than_places);
	tcase_add_test(tc, hold);
	suite_add_tcase(suite, tc);
	return test_run(suite);
}
