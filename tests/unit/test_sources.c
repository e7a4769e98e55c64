/* SPDX-License-Identifier: BSD-3-Clause */
/* test_sources.c - which address servers see a client come from */
#include "run.h"

#include "convertd/net/downstream.h"

#include <arpa/inet.h>
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct place here = { .name = "source" };

static struct sources *set_of(const char *const *texts, const char *secret)
{
	struct sources *sources = calloc(1, sizeof(*sources));
	struct problems problems = { 0 };

	ck_assert_ptr_nonnull(sources);
	sources_set_key(sources, secret);
	for (; *texts; texts++)
		ck_assert_msg(sources_add(sources, *texts, &here, &problems), "%s: %s", *texts,
			      problems.first);
	return sources;
}

static union sockaddr_ip address(const char *text)
{
	union sockaddr_ip out;

	ck_assert_int_eq(sockaddr_ip_parse(&out, text, 443), 0);
	return out;
}

/* Returns the source address of a client's connections to a server, as text without a port. */
static const char *source_of(const struct sources *sources, const char *client, const char *server)
{
	static char text[INET6_ADDRSTRLEN];
	union sockaddr_ip from = address(client), to = address(server), out;

	if (sources_choose(sources, &from, &to, &out) == SOURCES_ANY) {
		ck_assert_int_eq(out.sa.sa_family, AF_UNSPEC);
		return "";
	}
	ck_assert_int_eq(out.sa.sa_family, to.sa.sa_family);
	if (out.sa.sa_family == AF_INET)
		inet_ntop(AF_INET, &out.in.sin_addr, text, sizeof(text));
	else
		inet_ntop(AF_INET6, &out.in6.sin6_addr, text, sizeof(text));
	return text;
}

/* Returns the index of a client's source among the addresses 192.0.2.0 to 192.0.2.255. */
static int host_of(const struct sources *sources, unsigned client)
{
	char text[32];
	const char *source;

	snprintf(text, sizeof(text), "10.%u.%u.%u", client >> 16 & 255, client >> 8 & 255,
		 client & 255);
	source = source_of(sources, text, "203.0.113.1");
	ck_assert_msg(strncmp(source, "192.0.2.", 8) == 0, "%s", source);
	return atoi(source + 8);
}

START_TEST(kept)
{
	static const char *const texts[] = { "192.0.2.1", "192.0.2.16/28", "2001:db8::/64",
					     "2001:db8:1::1", NULL };
	struct sources *sources = set_of(texts, "secret"), *again = set_of(texts, "secret");
	char first[INET6_ADDRSTRLEN];

	for (unsigned i = 0; i < 100; i++) {
		char client[64];

		snprintf(client, sizeof(client), "198.51.100.%u", i);
		strcpy(first, source_of(sources, client, "203.0.113.1"));
		/* The source is the same for any server and any port of the client, and in another process. */
		ck_assert_str_eq(source_of(sources, client, "203.0.113.99:80"), first);
		ck_assert_str_eq(source_of(again, client, "203.0.113.1"), first);
		strcat(client, ":40000");
		ck_assert_str_eq(source_of(sources, client, "203.0.113.1"), first);
	}
	/* An IPv6 client is its /64. */
	strcpy(first, source_of(sources, "2001:db8:5::1", "2001:db8:9::1"));
	ck_assert_str_eq(source_of(sources, "2001:db8:5::ffff:1", "2001:db8:9::2"), first);
	/* An IPv4 client is the same as a v4-mapped one. */
	strcpy(first, source_of(sources, "198.51.100.7", "203.0.113.1"));
	ck_assert_str_eq(source_of(sources, "::ffff:198.51.100.7", "203.0.113.1"), first);
	free(sources);
	free(again);
}
END_TEST

/* Each address of the set has its share, however it is written. */
START_TEST(shares)
{
	static const char *const texts[] = { "192.0.2.1", "192.0.2.2/31", "192.0.2.4/30", "192.0.2.8/29",
					     NULL };
	struct sources *sources = set_of(texts, "secret");
	unsigned counts[256] = { 0 };

	for (unsigned i = 0; i < 15000; i++)
		counts[host_of(sources, i)]++;
	for (unsigned i = 0; i < 256; i++) {
		/* 1000 are expected; five standard deviations are 153. */
		if (i >= 1 && i <= 15)
			ck_assert_msg(counts[i] > 840 && counts[i] < 1160, "%u: %u", i, counts[i]);
		else
			ck_assert_uint_eq(counts[i], 0);
	}
	free(sources);
}
END_TEST

/* A client keeps its source unless that is removed, or a new one takes its place. */
START_TEST(changes)
{
	static const char *const before[] = { "192.0.2.1", "192.0.2.2", "192.0.2.4/30", NULL };
	static const char *const after[] = { "192.0.2.4/30", "192.0.2.9", "192.0.2.1", NULL };
	struct sources *old = set_of(before, "secret"), *new = set_of(after, "secret");
	unsigned moved = 0;

	for (unsigned i = 0; i < 6000; i++) {
		int from = host_of(old, i), to = host_of(new, i);

		if (from == to)
			continue;
		moved++;
		ck_assert_msg(from == 2 || to == 9, "from %d to %d", from, to);
	}
	/* A sixth goes because its address went, and a sixth of the others comes to the new one. */
	ck_assert_uint_gt(moved, 1500);
	ck_assert_uint_lt(moved, 2100);
	free(old);
	free(new);
}
END_TEST

START_TEST(keyed)
{
	static const char *const texts[] = { "192.0.2.0/24", NULL };
	struct sources *one = set_of(texts, "one"), *other = set_of(texts, "other");
	unsigned same = 0;

	for (unsigned i = 0; i < 1000; i++)
		same += host_of(one, i) == host_of(other, i);
	ck_assert_uint_lt(same, 50);
	free(one);
	free(other);
}
END_TEST

/* The server's family selects the sources, whatever the client's family is. */
START_TEST(families)
{
	static const char *const v4[] = { "192.0.2.1", NULL };
	static const char *const v6[] = { "2001:db8::1", NULL };
	struct sources *sources = set_of(v4, ""), *others = set_of(v6, "");

	ck_assert_str_eq(source_of(sources, "2001:db8:5::1", "203.0.113.1"), "192.0.2.1");
	ck_assert_str_eq(source_of(sources, "198.51.100.1", "2001:db8:9::1"), "");
	ck_assert_str_eq(source_of(others, "198.51.100.1", "2001:db8:9::1"), "2001:db8::1");
	ck_assert_str_eq(source_of(others, "198.51.100.1", "203.0.113.1"), "");
	free(sources);
	free(others);
}
END_TEST

START_TEST(preserved)
{
	static const char *const texts[] = { "192.0.2.1", NULL };
	struct sources *sources = set_of(texts, "");
	union sockaddr_ip client = address("198.51.100.1:4711"), mapped, server, out;

	sources->preserve = true;
	server = address("203.0.113.1");
	ck_assert_int_eq(sources_choose(sources, &client, &server, &out), SOURCES_CLIENT);
	ck_assert(sockaddr_ip_equal(&out, &client));
	mapped = address("[::ffff:198.51.100.1]:4711");
	ck_assert_int_eq(sources_choose(sources, &mapped, &server, &out), SOURCES_CLIENT);
	ck_assert_int_eq(out.sa.sa_family, AF_INET);
	ck_assert(sockaddr_ip_equal(&out, &client));
	/* These have another family, or are usable on one link or on this host only. */
	server = address("2001:db8:9::1");
	ck_assert_int_eq(sources_choose(sources, &client, &server, &out), SOURCES_ANY);
	ck_assert_str_eq(source_of(sources, "2001:db8:5::1", "203.0.113.1"), "192.0.2.1");
	ck_assert_str_eq(source_of(sources, "fe80::1", "2001:db8:9::1"), "");
	ck_assert_str_eq(source_of(sources, "::1", "2001:db8:9::1"), "");
	ck_assert_str_eq(source_of(sources, "127.0.0.1", "203.0.113.1"), "192.0.2.1");
	ck_assert_str_eq(source_of(sources, "2001:db8:5::1", "2001:db8:9::1"), "2001:db8:5::1");
	free(sources);
}
END_TEST

START_TEST(wrong_source_is_told)
{
	static const struct {
		const char *text, *told;
	} wrong[] = {
		{ "192.0.2.1/24", "write 192.0.2.0/24 if that is meant" },
		{ "192.0.2.1:80", "isn't an address" },
		{ "", "isn't an address" },
		{ "host.example", "isn't an address" },
		{ "0.0.0.0/0", "isn't an address" },
		{ "::/0", "isn't an address" },
		{ "127.0.0.1", "isn't an address" },
		{ "::1", "isn't an address" },
		{ "fe80::1", "isn't an address" },
		{ "239.1.1.1", "isn't an address" },
		{ "ff0e::1", "isn't an address" },
	};
	struct sources sources = { 0 };
	struct problems problems = { 0 };
	char text[32];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		memset(&problems, 0, sizeof(problems));
		ck_assert(!sources_add(&sources, wrong[i].text, &here, &problems));
		ck_assert_msg(strstr(problems.first, wrong[i].told), "%s", problems.first);
	}
	for (unsigned i = 0; i < SOURCES_MAX; i++) {
		snprintf(text, sizeof(text), "192.0.2.%u", i);
		ck_assert(sources_add(&sources, text, &here, &problems));
	}
	memset(&problems, 0, sizeof(problems));
	ck_assert(!sources_add(&sources, "192.0.2.200", &here, &problems));
	ck_assert_ptr_nonnull(strstr(problems.first, "one too many"));
}
END_TEST

START_TEST(ranges)
{
	static const char *const texts[] = { "192.0.2.16/28", "192.0.2.1", "2001:db8::/64",
					     "2001:db8::4/126", NULL };
	static const struct {
		const char *first, *last;
		size_t count;
	} expected[] = {
		{ "::ffff:192.0.2.16", "::ffff:192.0.2.31", 16 },
		{ "::ffff:192.0.2.1", "::ffff:192.0.2.1", 1 },
		{ "2001:db8::", "2001:db8::ffff:ffff:ffff:ffff", SIZE_MAX },
		{ "2001:db8::4", "2001:db8::7", 4 },
	};
	struct sources *sources = set_of(texts, "");

	for (size_t i = 0; i < sources->count; i++) {
		struct in6_addr first, last;
		char text[INET6_ADDRSTRLEN];

		ck_assert_uint_eq(source_range(&sources->source[i], &first, &last),
				  expected[i].count);
		ck_assert_str_eq(inet_ntop(AF_INET6, &first, text, sizeof(text)), expected[i].first);
		ck_assert_str_eq(inet_ntop(AF_INET6, &last, text, sizeof(text)), expected[i].last);
	}
	free(sources);
}
END_TEST

static Suite *suite(void)
{
	Suite *suite = suite_create("sources");
	TCase *tcase = tcase_create("sources");

	tcase_add_test(tcase, kept);
	tcase_add_test(tcase, shares);
	tcase_add_test(tcase, changes);
	tcase_add_test(tcase, keyed);
	tcase_add_test(tcase, families);
	tcase_add_test(tcase, preserved);
	tcase_add_test(tcase, wrong_source_is_told);
	tcase_add_test(tcase, ranges);
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(void)
{
	return test_run(suite());
}
