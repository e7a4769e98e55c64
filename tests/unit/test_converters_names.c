/* SPDX-License-Identifier: BSD-3-Clause */
/* test_converters_names.c - a converter that is configured by name, whose address changes; the test moves the clock */
#include "config.h"

#include "client/converters.h"
#include "client/resolve.h"
#include "common/clock.h"

#include "run.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static struct settings settings, next_settings;
static int64_t now_ns = 1000 * CLOCK_NS_PER_S;
static unsigned int names_address; /* the last byte, which the name has now */
static const char *names_prefix = "192.0.2."; /* what is in front of that byte */
static bool replaced_meanwhile;    /* CONVERT_ADDR changes during the lookup */

int64_t clock_read_ns(clockid_t clock)
{
	(void)clock;
	return now_ns;
}

size_t resolve_converter(const char *name, uint16_t port, int timeout_ms, union sockaddr_ip *out, size_t max, const char **reason)
{
	char text[32];

	(void)name, (void)timeout_ms, (void)max, (void)reason;
	snprintf(text, sizeof(text), "%s%u", names_prefix, names_address);
	ck_assert_int_eq(sockaddr_ip_parse(out, text, port), 0);
	if (replaced_meanwhile)
		converters_replace(&next_settings);
	replaced_meanwhile = false;
	return 1;
}

bool resolve_is_running(void)
{
	return false;
}

static const char *lookup(const char *name)
{
	return strcmp(name, "CONVERT_ADDR") == 0 ? "converter.example" : strcmp(name, "CONVERT_CACHE") == 0 ? "none" : NULL;
}

static void setup(void)
{
	settings_read(&settings, lookup);
	ck_assert_msg(settings.enabled, "%s", settings.problem);
	converters_init(&settings);
}

/* Chooses a converter, and returns the last byte of its address, or 0. */
static unsigned int chosen(int *index)
{
	union sockaddr_ip destination, out = { 0 };
	const struct converters_query query = { .destination = &destination, .family = AF_INET, .any_family = true, .may_resolve = true };
	enum policy_verdict verdict = POLICY_CONVERT;
	const char *reason;

	ck_assert_int_eq(sockaddr_ip_parse(&destination, "203.0.113.1:443", 443), 0);
	*index = converters_choose(&settings, &query, &out, &verdict, &reason);
	return *index < 0 ? 0 : sockaddr_ip_in6(&out).s6_addr[15];
}

static void pass(unsigned int seconds)
{
	now_ns += seconds * CLOCK_NS_PER_S;
}

/* An address that the name doesn't have any more isn't asked again when its rest is over. */
START_TEST(the_address_changes)
{
	int before, after;

	names_address = 1;
	ck_assert_uint_eq(chosen(&before), 1);
	names_address = 2;
	ck_assert_uint_eq(chosen(&after), 1); /* it works, so the name isn't looked up */
	converters_rest(before, 30);
	pass(31);
	converters_rest(before, 30);
	ck_assert_uint_eq(chosen(&after), 2);
	pass(31);
	ck_assert_uint_eq(chosen(&after), 2);
	/* the earlier address is back */
	converters_rest(after, 30);
	names_address = 1;
	ck_assert_uint_eq(chosen(&after), 1);
	ck_assert_int_eq(after, before);
}
END_TEST

/* The name gets more addresses than the table holds. A new address doesn't inherit what we learned of an old one. */
START_TEST(the_address_changes_often)
{
	int index;

	for (names_address = 1; names_address <= 2 * CONVERTERS_MAX; names_address++) {
		ck_assert_uint_eq(chosen(&index), names_address);
		converters_note_no_mptcp(index);
		converters_rest(index, 30);
		pass(31);
		converters_rest(index, 30);
	}
	ck_assert_uint_eq(chosen(&index), names_address);
	ck_assert(converters_takes_mptcp(index));
}
END_TEST

/* A connection may still use an entry whose address has left the name just now. */
START_TEST(the_address_changes_at_each_lookup)
{
	int index;

	for (names_address = 1; names_address <= CONVERTERS_MAX; names_address++) {
		ck_assert_uint_eq(chosen(&index), names_address);
		converters_rest(index, 1000);
		pass(3);
		converters_replace(&settings); /* so the next call looks the name up */
		converters_rest(index, 1000);
	}
	ck_assert_uint_eq(chosen(&index), 0);
	pass(180);
	ck_assert_uint_eq(chosen(&index), names_address);
}
END_TEST

/* A gateway's reload changes CONVERT_ADDR during a lookup: the table drops the result, which belongs to the earlier name. */
START_TEST(the_name_changes_during_the_lookup)
{
	int index;

	next_settings = settings;
	strcpy(next_settings.converters[0].name, "other.example");
	names_address = 1;
	replaced_meanwhile = true;
	ck_assert_uint_eq(chosen(&index), 0);
	settings = next_settings;
	names_address = 2;
	ck_assert_uint_eq(chosen(&index), 2);
}
END_TEST

/* A name whose addresses are of one family isn't looked up again for sockets of the other one while they work. */
START_TEST(the_address_is_of_the_other_family)
{
	union sockaddr_ip destination, out;
	struct converters_query query = { .destination = &destination, .family = AF_INET6, .any_family = true, .may_resolve = true };
	enum policy_verdict verdict = POLICY_CONVERT;
	const char *reason;
	int index;

	ck_assert_int_eq(sockaddr_ip_parse(&destination, "[2001:db8::1]:443", 443), 0);
	names_address = 1;
	index = converters_choose(&settings, &query, &out, &verdict, &reason);
	ck_assert_int_ge(index, 0);
	pass(31);
	query.may_resolve = false;
	ck_assert_int_eq(converters_choose(&settings, &query, &out, &verdict, &reason), index);
	/* no socket takes its place: the IPv6 socket takes IPv4 addresses itself, unless it is for IPv6 only */
	query.any_family = false;
	ck_assert_int_eq(converters_choose(&settings, &query, &out, &verdict, &reason), index);
	query.v6only = true;
	ck_assert_int_eq(converters_choose(&settings, &query, &out, &verdict, &reason), CONVERTERS_UNRESOLVED);
	query.v6only = false;
	converters_rest(index, 30);
	ck_assert_int_eq(converters_choose(&settings, &query, &out, &verdict, &reason), CONVERTERS_UNRESOLVED);
}
END_TEST

/* Likewise for an IPv4 socket and a name that has only an IPv6 address. */
START_TEST(the_address_is_ipv6)
{
	int before, after;

	names_prefix = "2001:db8::";
	names_address = 1;
	ck_assert_uint_eq(chosen(&before), 1);
	names_address = 2;
	pass(31);
	ck_assert_uint_eq(chosen(&after), 1);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		the_name_changes_during_the_lookup, the_address_changes, the_address_changes_often, the_address_changes_at_each_lookup,
		the_address_is_of_the_other_family, the_address_is_ipv6,
	};
	Suite *suite = suite_create("converters_names");
	TCase *tcase = tcase_create("addresses");

	tcase_add_checked_fixture(tcase, setup, NULL);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(tcase, tests[i]);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
