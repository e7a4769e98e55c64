/* SPDX-License-Identifier: BSD-3-Clause */
/* test_own.c - addresses by which this host is reached, although no interface has them */
#include "config.h"

#include "convertd/base/log.h"
#include "convertd/policy/own.h"

#include "run.h"

#include <check.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#define NOW UINT64_C(1000000)
#define LATER (NOW + OWN_LEARNED_SECONDS * UINT64_C(1000))

static const struct place here = { .name = "own-address" };

static struct in6_addr in6(const char *text)
{
	union sockaddr_ip address;

	ck_assert_int_eq(sockaddr_ip_parse(&address, text, 0), 0);
	return sockaddr_ip_in6(&address);
}

static void setup(void)
{
	ck_assert_int_ge(sodium_init(), 0);
	own_init();
	log_set_level(LOG_LEVEL_ERROR);
}

START_TEST(told)
{
	static const char *const right[] = { "192.0.2.1", "198.51.100.0/24", "2001:db8::/64" };
	static const char *const wrong[] = { "", "192.0.2.1:22", "192.0.2.1/24", "::/0", "0.0.0.0/0", "x" };
	struct problems problems = { 0 };
	struct own_told own = { 0 };

	for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++)
		ck_assert(own_add(&own, right[i], &here, &problems));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ck_assert_msg(!own_add(&own, wrong[i], &here, &problems), "%s", wrong[i]);
	ck_assert_uint_eq(problems.count, sizeof(wrong) / sizeof(wrong[0]));
	for (unsigned i = 0; i < 5; i++) {
		static const char *const addresses[] = { "192.0.2.1", "198.51.100.255", "2001:db8::ffff",
							 "192.0.2.2", "2001:db8:0:1::1" };
		struct in6_addr address = in6(addresses[i]);

		ck_assert_msg(own_is_told(&own, &address) == (i < 3), "%s", addresses[i]);
	}
	while (own.count < OWN_TOLD_MAX)
		ck_assert(own_add(&own, "192.0.2.1", &here, &problems));
	ck_assert(!own_add(&own, "192.0.2.1", &here, &problems));
}
END_TEST

START_TEST(learned)
{
	struct own_learned known[OWN_LEARNED_MAX];
	struct in6_addr whole = in6("192.0.2.1"), port = in6("2001:db8::1");
	unsigned before = own_generation();

	ck_assert(!own_is_learned(&whole, 22, NOW));
	own_learn(&whole, 0, NOW);
	own_learn(&port, 80, NOW);
	ck_assert_uint_eq(own_generation(), before + 2);
	ck_assert(own_is_learned(&whole, 22, NOW));
	ck_assert(own_is_learned(&port, 80, NOW));
	ck_assert(!own_is_learned(&port, 81, NOW));
	ck_assert_uint_eq(own_copy(known, NOW), 2);
	/* What is known already changes nothing but its end. */
	own_learn(&port, 80, NOW + 1);
	ck_assert_uint_eq(own_generation(), before + 2);
	ck_assert(own_is_learned(&whole, 22, LATER - 1));
	ck_assert(!own_is_learned(&whole, 22, LATER));
	ck_assert(own_is_learned(&port, 80, LATER));
	ck_assert_uint_eq(own_copy(known, LATER), 1);
	own_learn(&whole, 0, LATER);
	ck_assert_uint_eq(own_generation(), before + 3);
	/* However many there are, the latest are known. */
	for (unsigned i = 0; i < 10 * OWN_LEARNED_MAX; i++) {
		own_learn(&port, (uint16_t)(1000 + i), LATER + i);
		ck_assert(own_is_learned(&port, (uint16_t)(1000 + i), LATER + i));
	}
	ck_assert_uint_eq(own_copy(known, LATER), OWN_LEARNED_MAX);
}
END_TEST

START_TEST(tokens)
{
	uint8_t token[OWN_TOKEN_LEN], other[OWN_TOKEN_LEN];
	union sockaddr_ip server, read;

	ck_assert_int_eq(sockaddr_ip_parse(&server, "192.0.2.1:4321", 0), 0);
	own_make_token(&server, token);
	ck_assert(own_read_token(token, sizeof(token), &read));
	ck_assert(sockaddr_ip_equal(&server, &read));
	/* No byte of it may be another. */
	for (size_t i = 0; i < sizeof(token); i++) {
		memcpy(other, token, sizeof(other));
		other[i] ^= 1;
		ck_assert_msg(!own_read_token(other, sizeof(other), &read), "byte %zu", i);
	}
	for (size_t len = 0; len < sizeof(token); len++)
		ck_assert(!own_read_token(token, len, &read));
	/* That of another process isn't ours. */
	own_init();
	ck_assert(!own_read_token(token, sizeof(token), &read));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("own");
	TCase *tcase = tcase_create("own");

	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, told);
	tcase_add_test(tcase, learned);
	tcase_add_test(tcase, tokens);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
