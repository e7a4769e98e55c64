/* SPDX-License-Identifier: BSD-3-Clause */
/* test_access.c - the longest match, and who may use the converter and where to */
#include "config.h"

#include "convertd/policy/access.h"
#include "convertd/config/convertd_settings.h"

#include "run.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* "192.0.2.1" as v4-mapped, or "2001:db8::1". */
static struct in6_addr address(const char *text)
{
	union sockaddr_ip addr;

	ck_assert_msg(sockaddr_ip_parse(&addr, text, 1) == 0, "%s", text);
	return sockaddr_ip_in6(&addr);
}

/* Settings of a command line: words with blanks between them. */
static struct convertd_settings *settings_of(const char *words, struct problems *problems)
{
	static char copy[1024];
	char *argv[64] = { (char *)"convertd" };
	int argc = 1;

	ck_assert_int_lt((int)strlen(words), (int)sizeof(copy));
	strcpy(copy, words);
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	return convertd_settings_read(argc, argv, problems);
}

static struct convertd_settings *right_settings_of(const char *words)
{
	struct problems problems = { 0 };
	struct convertd_settings *settings = settings_of(words, &problems);

	ck_assert_msg(settings && !problems.count, "%s: %s", words, problems.first);
	return settings;
}

/* ----- the longest match ----- */

#define RULES 60
#define QUESTIONS 20000

static uint32_t random_state = 88032263;

static uint32_t random_below(uint32_t limit)
{
	random_state = random_state * 1664525 + 1013904223;
	return (random_state >> 8) % limit;
}

/* Makes addresses that share prefixes: few of their bits are set, and half of them are IPv4. */
static struct in6_addr random_address(void)
{
	struct in6_addr result = { 0 };

	if (random_below(2))
		result.s6_addr[10] = result.s6_addr[11] = 0xff;
	else
		result.s6_addr[0] = (uint8_t)(random_below(4) << 6);
	for (int i = result.s6_addr[10] ? 12 : 1; i < 16; i += 3)
		result.s6_addr[i] = (uint8_t)(random_below(4) << 6 | random_below(2));
	return result;
}

/* Returns what the library must find, by looking at every rule. */
static const struct access_rule *find_slowly(const struct access_rule *rules, size_t count,
				      const struct in6_addr *where, uint16_t port)
{
	const struct access_rule *best = NULL;

	for (size_t i = 0; i < count; i++) {
		const struct access_rule *rule = &rules[i];

		if (!prefix_contains(&rule->match.prefix, where) || port < rule->match.port_first ||
		    port > rule->match.port_last)
			continue;
		if (!best || rule->match.prefix.length > best->match.prefix.length)
			best = rule;
		else if (rule->match.prefix.length == best->match.prefix.length &&
			 rule->match.port_last - rule->match.port_first <
				 best->match.port_last - best->match.port_first)
			best = rule;
	}
	return best;
}

START_TEST(longest_match)
{
	struct problems problems = { 0 };
	struct access_rule rule[RULES] = { 0 };
	struct access_rules rules = { 0 };

	random_state += (uint32_t)_i;
	for (int i = 0; i < RULES; i++) {
		static const uint16_t lasts[] = { 65535, 1, 3 };
		struct in6_addr some = random_address();

		rule[i].match.prefix = prefix_of(&some, (uint8_t)random_below(129));
		rule[i].match.port_last = lasts[random_below(3)];
		rule[i].allow = random_below(2);
		ck_assert_int_eq(access_rules_add(&rules, &rule[i]), 0);
	}
	access_rules_finish(&rules, &problems);
	for (int i = 0; i < QUESTIONS; i++) {
		struct in6_addr where = random_address();
		uint16_t port = (uint16_t)random_below(5);
		const struct access_rule *found = access_rules_find(&rules, &where, port);
		const struct access_rule *expected = find_slowly(rule, RULES, &where, port);

		ck_assert((found == NULL) == (expected == NULL));
		if (!found)
			continue;
		/* Equal prefixes may be there twice. */
		ck_assert_uint_eq(found->match.prefix.length, expected->match.prefix.length);
		ck_assert_uint_eq(found->match.port_last, expected->match.port_last);
		if (!problems.count)
			ck_assert_int_eq(found->allow, expected->allow);
	}
	access_rules_fini(&rules);
}
END_TEST

/* ----- the policy ----- */

/* Tells where addresses lead in this test: those of the table as it says, all others elsewhere. */
static enum route_kind fake_route(void *arg, const struct in6_addr *where)
{
	static const struct {
		const char *text;
		enum route_kind kind;
	} routes[] = {
		{ "8.8.4.4", ROUTE_OWN },	{ "2600::1", ROUTE_OWN },
		{ "8.8.4.255", ROUTE_BROADCAST }, { "10.1.0.255", ROUTE_BROADCAST },
		{ "10.1.0.1", ROUTE_OWN },	{ "8.8.4.99", ROUTE_UNKNOWN },
	};
	struct in6_addr own;

	++*(int *)arg;
	for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
		own = address(routes[i].text);
		if (IN6_ARE_ADDR_EQUAL(&own, where))
			return routes[i].kind;
	}
	return ROUTE_ELSEWHERE;
}

#define A ACCESS_ALLOWED
#define D ACCESS_DENIED
#define ALLOW "--allow-destination "
#define DENY "--deny-destination "

static const struct {
	const char *options;
	const char *address;
	uint16_t port;
	enum access_verdict verdict;
} destinations[] = {
	/* without any rule: what is public, and all of it */
	{ "", "8.8.8.8", 80, A },
	{ "", "1.1.1.1", 80, A },
	{ "", "223.255.255.255", 80, A },
	{ "", "2600::2", 80, A },
	{ "", "2a00:1450::1", 80, A },
	{ "", "2001:200::1", 80, A },
	{ "", "10.0.0.0", 80, D },
	{ "", "10.255.255.255", 80, D },
	{ "", "9.255.255.255", 80, A },
	{ "", "11.0.0.0", 80, A },
	{ "", "172.15.255.255", 80, A },
	{ "", "172.16.0.0", 80, D },
	{ "", "172.31.255.255", 80, D },
	{ "", "172.32.0.0", 80, A },
	{ "", "192.168.0.1", 80, D },
	{ "", "100.63.255.255", 80, A },
	{ "", "100.64.0.0", 80, D },
	{ "", "100.127.255.255", 80, D },
	{ "", "100.128.0.0", 80, A },
	{ "", "169.254.169.254", 80, D },
	{ "", "192.0.0.8", 80, D },
	{ "", "192.0.2.1", 80, D },
	{ "", "192.88.99.2", 80, D },
	{ "", "198.18.0.1", 80, D },
	{ "", "198.51.100.1", 80, D },
	{ "", "203.0.113.1", 80, D },
	{ "", "240.0.0.1", 80, D },
	{ "", "fc00::1", 80, D },
	{ "", "fdff::1", 80, D },
	{ "", "fe80::1", 80, D },
	{ "", "fec0::1", 80, D },
	{ "", "2001:db8::1", 80, D },
	{ "", "3fff::1", 80, D },
	{ "", "2001::1", 80, D }, /* Teredo */
	{ "", "100::1", 80, D },
	{ "", "64:ff9b:1::1", 80, D },

	/* IPv4 inside: 6to4, NAT64, ISATAP; compatible and translated */
	{ "", "2002:808:808::1", 80, A },
	{ "", "2002:a00:1::1", 80, D },
	{ "", "2002:7f00:1::1", 80, D },
	{ "", "2002:a9fe:a9fe::", 80, D },
	{ "", "64:ff9b::808:808", 80, A },
	{ "", "64:ff9b::a00:1", 80, D },
	{ "", "64:ff9b::7f00:1", 80, D },
	{ "", "64:ff9b::6440:1", 80, D },
	{ "", "64:ff9b::e000:1", 80, D },
	{ "", "64:ff9b::808:404", 80, D },  /* our own */
	/* what a NAT translates to this host, or other converters have as well */
	{ "--own-address 198.18.0.0/15 --own-address 9.9.9.0/24 --own-address 2001:4860::/64", "9.9.9.255", 80, D },
	{ "--own-address 9.9.9.0/24", "9.9.8.1", 80, A },
	{ "--own-address 2001:4860::/64", "2001:4860::ffff", 80, D },
	{ "--own-address 2001:4860::/64", "2001:4860:0:1::1", 80, A },
	{ "--own-address 9.9.9.9", "64:ff9b::909:909", 80, D },
	{ "--shared-address 9.9.9.9", "9.9.9.9", 1234, D },
	{ "--own-address 9.9.9.9 --allow-destination 9.9.9.0/24", "9.9.9.9", 80, D },
	{ "--own-address 9.9.9.9 --allow-destination 9.9.9.9:80", "9.9.9.9", 80, A },
	{ "--own-address 9.9.9.9 --allow-destination 9.9.9.9:80", "9.9.9.9", 22, D },
	{ "", "64:ff9b::808:4ff", 80, D },  /* broadcast of our own network */
	{ "", "2600::5efe:808:808", 80, A },
	{ "", "2600::5efe:a00:1", 80, D },
	{ "", "2600::200:5efe:c0a8:1", 80, D },
	{ "", "2600::100:5efe:c0a8:1", 80, A }, /* not ISATAP */
	{ "", "::808:808", 80, D },
	{ "", "::ffff:0:a00:1", 80, D },
	{ ALLOW "::/0 " ALLOW "10.0.0.0/8", "64:ff9b::a00:1", 80, A },
	{ ALLOW "::/0 " ALLOW "64:ff9b::/96", "64:ff9b::a00:1", 80, D },
	{ ALLOW "::/0 " DENY "8.8.8.0/24", "64:ff9b::808:808", 80, D },
	{ ALLOW "64:ff9b::/96", "64:ff9b::808:808", 80, D },
	{ ALLOW "64:ff9b::/96 " ALLOW "0.0.0.0/0", "64:ff9b::808:808", 80, A },

	/* the host's own addresses, which only a rule for that address alone allows */
	{ "", "8.8.4.4", 80, D },
	{ "", "2600::1", 80, D },
	{ ALLOW "::/0", "8.8.4.4", 80, D },
	{ ALLOW "8.8.4.0/24", "8.8.4.4", 80, D },
	{ ALLOW "8.8.4.4", "8.8.4.4", 80, A },
	{ ALLOW "8.8.4.4/32:80", "8.8.4.4", 80, A },
	{ ALLOW "8.8.4.4/32:80", "8.8.4.4", 81, D },
	{ ALLOW "2600::1", "2600::1", 80, A },
	{ ALLOW "10.0.0.0/8", "10.1.0.1", 80, D },
	{ ALLOW "10.1.0.1", "10.1.0.1", 80, A },
	{ "", "8.8.4.255", 80, ACCESS_BROADCAST },
	{ ALLOW "8.8.4.255", "8.8.4.255", 80, ACCESS_BROADCAST },
	{ "", "10.1.0.255", 80, D },
	{ "", "8.8.4.99", 80, ACCESS_UNKNOWN },

	/* the user's rules */
	{ ALLOW "10.0.0.0/8", "10.2.0.1", 80, A },
	{ ALLOW "10.0.0.0/7", "10.2.0.1", 80, D },
	{ ALLOW "10.2.0.0/16", "10.2.0.1", 80, A },
	{ ALLOW "10.2.0.0/16", "10.3.0.1", 80, D },
	{ ALLOW "10.2.0.0/16 " DENY "10.2.0.1", "10.2.0.1", 80, D },
	{ ALLOW "10.2.0.0/16 " DENY "10.2.0.1", "10.2.0.2", 80, A },
	{ ALLOW "::/0", "10.2.0.1", 80, D },
	{ ALLOW "::/0", "8.8.8.8", 80, A },
	{ ALLOW "::/0 " DENY "2000::/3", "8.8.8.8", 80, A },
	{ ALLOW "::/0 " DENY "2000::/3", "2600::2", 80, D },
	{ ALLOW "::/0 " DENY "0.0.0.0/0", "8.8.8.8", 80, D },
	{ ALLOW "::/0 " DENY "0.0.0.0/0", "2600::2", 80, A },
	{ ALLOW "0.0.0.0/0", "8.8.8.8", 80, A },
	{ ALLOW "0.0.0.0/0", "2600::2", 80, D },
	{ ALLOW "fc00::/7", "fd00::1", 80, A },
	/* with one, nothing else is allowed */
	{ ALLOW "10.2.0.0/16", "8.8.8.8", 80, D },
	{ DENY "10.2.0.0/16", "8.8.8.8", 80, A },
	/* ports */
	{ DENY ":25", "8.8.8.8", 25, D },
	{ DENY ":25", "8.8.8.8", 26, A },
	{ DENY ":20-30", "2600::2", 25, D },
	{ DENY ":20-30 " ALLOW "::/0", "2600::2", 25, D },
	{ DENY ":20-30 " ALLOW ":25 " ALLOW "::/0", "2600::2", 25, A },
	{ DENY ":25 " ALLOW "8.8.8.0/24", "8.8.8.8", 25, A },
	{ ALLOW "10.0.0.0/8:443", "10.2.0.1", 443, A },
	{ ALLOW "10.0.0.0/8:443", "10.2.0.1", 80, D },
	{ ALLOW "[fd00::/8]:443", "fd00::1", 443, A },
	{ ALLOW "[fd00::/8]:443", "fd00::1", 444, D },

	/* hairpins */
	{ "--allow-client 8.8.8.0/24", "8.8.8.8", 80, A },
	{ "--no-hairpin --allow-client 8.8.8.0/24", "8.8.8.8", 80, D },
	{ "--no-hairpin --allow-client 8.8.8.0/24", "8.8.9.8", 80, A },
	{ "--no-hairpin --allow-client 8.8.8.0/24 --deny-client 8.8.8.8", "8.8.8.8", 80, A },
	{ "--no-hairpin --allow-client 8.8.8.0/24", "64:ff9b::808:808", 80, D },
	{ "--no-hairpin --allow-client 2600::/16", "2600::2", 80, D },
};

START_TEST(destination)
{
	struct convertd_settings *settings = right_settings_of(destinations[_i].options);
	struct in6_addr where = address(destinations[_i].address);
	const char *reason = NULL;
	enum access_verdict verdict;
	int asked = 0;

	verdict = access_destination(&settings->access, &where, destinations[_i].port, fake_route,
				     &asked, &reason);
	ck_assert_msg(verdict == destinations[_i].verdict, "%s to %s: %d (%s), not %d",
		      destinations[_i].options, destinations[_i].address, verdict,
		      reason ? reason : "allowed", destinations[_i].verdict);
	ck_assert((reason == NULL) == (verdict == ACCESS_ALLOWED));
	ck_assert(verdict != ACCESS_ALLOWED || asked || settings->access.host_count);
	convertd_settings_destroy(settings);
}
END_TEST

static const struct {
	const char *options;
	const char *address;
	bool allowed;
} clients[] = {
	{ "", "198.51.100.1", true },
	{ "", "10.0.0.1", true },
	{ "", "::1", true },
	{ "--deny-client 10.0.0.0/8", "10.0.0.1", false },
	{ "--deny-client 10.0.0.0/8", "11.0.0.1", true },
	{ "--allow-client 10.0.0.0/8", "10.0.0.1", true },
	{ "--allow-client 10.0.0.0/8", "11.0.0.1", false },
	{ "--allow-client 10.0.0.0/8", "2001:db8::1", false },
	{ "--allow-client 10.0.0.0/8 --deny-client 10.1.0.0/16", "10.1.0.1", false },
	{ "--allow-client 10.0.0.0/8 --deny-client 10.1.0.0/16 --allow-client 10.1.1.1", "10.1.1.1", true },
	{ "--deny-client ::/0 --allow-client 10.0.0.0/8", "11.0.0.1", false },
	{ "--deny-client ::/0 --allow-client 10.0.0.0/8", "10.0.0.1", true },
	{ "--allow-client 2001:db8::/32", "2001:db8:1::1", true },
	{ "--allow-client 2001:db8::/32", "10.0.0.1", false },
	{ "--allow-client ::/0", "10.0.0.1", true },
	{ "--allow-client 0.0.0.0/0", "::1", false },
};

START_TEST(client)
{
	struct convertd_settings *settings = right_settings_of(clients[_i].options);
	struct in6_addr where = address(clients[_i].address);

	ck_assert_msg(access_client(&settings->access, &where) == clients[_i].allowed, "%s: %s",
		      clients[_i].options, clients[_i].address);
	convertd_settings_destroy(settings);
}
END_TEST

static const struct {
	const char *options, *says[2];
} wrong[] = {
	{ "--allow-client 10.1.0.0/8", { "\"10.1.0.0/8\"", "10.0.0.0/8" } },
	{ "--allow-client 10.0.0.0/8:80", { "\"10.0.0.0/8:80\"", "198.51.100.0/24" } },
	{ "--deny-client somebody", { "--deny-client: \"somebody\"", "2001:db8::/32" } },
	{ "--allow-destination 2001:db8::1/64", { "\"2001:db8::1/64\"", "2001:db8::/64" } },
	{ "--allow-destination 10.0.0.0/8:0", { "\"10.0.0.0/8:0\"", ":25" } },
	{ "--deny-destination 10.0.0.0/33", { "\"10.0.0.0/33\"", ":25" } },
	{ "--allow-client 10.0.0.0/8 --deny-client 10.0.0.0/8", { "\"10.0.0.0/8\"", "opposite" } },
	{ "--allow-client ::ffff:10.0.0.0/104 --deny-client 10.0.0.0/8", { "\"10.0.0.0/8\"" } },
	{ "--allow-destination :80-82 --deny-destination :81-83", { "\"::/0\"", "opposite" } },
	{ "--allow-destination :80-82 --allow-destination :81-83 --deny-destination :82-84",
	  { "\"::/0\"", "opposite" } },
	{ "--own-address 192.0.2.1:22", { "\"192.0.2.1:22\"", "2001:db8::/64" } },
	{ "--own-address 192.0.2.1/24", { "\"192.0.2.1/24\"", "192.0.2.0/24" } },
	{ "--own-address ::/0", { "\"::/0\"", "can be reached" } },
	{ "--own-address 0.0.0.0/0", { "\"0.0.0.0/0\"", "can be reached" } },
	{ "--own-address x", { "--own-address: \"x\"" } },
	{ "--shared-address 192.0.2.1:80", { "\"192.0.2.1:80\"", "without a port" } },
	{ "--shared-address 192.0.2.0/24", { "\"192.0.2.0/24\"", "write 192.0.2.1" } },
	{ "--shared-address somewhere", { "--shared-address: \"somewhere\"" } },
	{ "--no-hairpin", { "--no-hairpin:", "allow-client" } },
	{ "--no-hairpin --deny-client 10.0.0.0/8", { "--no-hairpin:", "allow-client" } },
	{ "--no-hairpin --allow-client ::/0", { "--no-hairpin:", "::/0" } },
	{ "--no-hairpin --allow-client 0.0.0.0/0", { "--no-hairpin:", "0.0.0.0/0" } },
};

START_TEST(wrong_rule_is_told)
{
	struct problems problems = { 0 };

	ck_assert_msg(!settings_of(wrong[_i].options, &problems), "%s", wrong[_i].options);
	ck_assert_uint_eq(problems.count, 1);
	for (int n = 0; n < 2 && wrong[_i].says[n]; n++)
		ck_assert_msg(strstr(problems.first, wrong[_i].says[n]) != NULL, "%s",
			      problems.first);
}
END_TEST

/* A file can name ACCESS_HOST_MAX addresses of this host; one more is a problem. */
START_TEST(addresses_of_this_host_are_limited)
{
	char text[(ACCESS_HOST_MAX + 1) * sizeof("shared-address 2001:db8::1\n")], again[sizeof(text)];
	struct problems problems = { 0 };
	size_t len = 0;

	for (int i = 0; i < ACCESS_HOST_MAX; i++)
		len += (size_t)sprintf(text + len, "%s-address 2001:db8::1\n", i % 2 ? "own" : "shared");
	memcpy(again, text, len);
	settings_check_text("name", again, len, &problems);
	ck_assert_msg(!problems.count, "%s", problems.first);
	len += (size_t)sprintf(text + len, "own-address 2001:db8::1\n");
	settings_check_text("name", text, len, &problems);
	ck_assert_uint_eq(problems.count, 1);
	ck_assert_msg(strstr(problems.first, "one too many"), "%s", problems.first);
}
END_TEST

/* In a file, both lines are named. */
START_TEST(contradiction_in_a_file)
{
	char text[] = "deny-client 10.0.0.0/8\n\nallow-client 10.0.0.0/8\n";
	struct problems problems = { 0 };

	settings_check_text("name", text, sizeof(text) - 1, &problems);
	ck_assert_uint_eq(problems.count, 1);
	ck_assert_str_eq(problems.first, "name:3: allow-client: \"10.0.0.0/8\" has a rule that says "
					 "the opposite, in line 1; remove one");
}
END_TEST

/* A rule for the host's own address and its neighbour is a rule for a network: it allows the neighbour, but not the host itself. */
static const struct {
	const char *rule, *own;
} neighbours[] = {
	{ ALLOW "8.8.4.4/31", "8.8.4.4" },
	{ ALLOW "2600::/127", "2600::1" },
};

START_TEST(a_rule_for_two_addresses_is_not_for_our_own)
{
	struct convertd_settings *settings = right_settings_of(neighbours[_i].rule);
	struct in6_addr own = address(neighbours[_i].own);
	const char *reason = NULL;
	int asked = 0;

	ck_assert_int_eq(access_destination(&settings->access, &own, 80, fake_route, &asked, &reason),
			 ACCESS_DENIED);
	ck_assert_str_eq(reason, "destination is the converter");
	convertd_settings_destroy(settings);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("access");
	TCase *tcase = tcase_create("access");

	tcase_add_loop_test(tcase, longest_match, 0, 20);
	tcase_add_loop_test(tcase, destination, 0, (int)ARRAY_SIZE(destinations));
	tcase_add_loop_test(tcase, client, 0, (int)ARRAY_SIZE(clients));
	tcase_add_loop_test(tcase, wrong_rule_is_told, 0, (int)ARRAY_SIZE(wrong));
	tcase_add_test(tcase, contradiction_in_a_file);
	tcase_add_test(tcase, addresses_of_this_host_are_limited);
	tcase_add_loop_test(tcase, a_rule_for_two_addresses_is_not_for_our_own, 0, (int)ARRAY_SIZE(neighbours));
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
