/* SPDX-License-Identifier: BSD-3-Clause */
/* test_prefix.c - prefixes and ports: what is one, and what it matches */
#include "config.h"

#include "common/sockaddr.h"

#include "run.h"

#include <check.h>
#include <errno.h>
#include <string.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static const struct {
	const char *rule, *in[3], *out[3];
} rules[] = {
	{ "10.0.0.0/8", { "10.0.0.0:1", "10.255.255.255:65535" }, { "9.255.255.255:1", "11.0.0.0:1", "[a00::]:1" } },
	{ "10.0.0.0/9", { "10.127.0.1:1" }, { "10.128.0.0:1" } },
	{ "192.0.2.1", { "192.0.2.1:5" }, { "192.0.2.0:5", "192.0.2.2:5" } },
	{ "192.0.2.1/32", { "192.0.2.1:5" }, { "192.0.2.0:5" } },
	{ "0.0.0.0/0", { "0.0.0.0:1", "255.255.255.255:1" }, { "[::1]:1" } },
	{ "::/0", { "[::]:1", "[ffff::]:1", "192.0.2.1:1" }, { NULL } },
	{ "2001:db8::/33", { "[2001:db8:7fff::]:1" }, { "[2001:db8:8000::]:1" } },
	{ "2001:db8::1", { "[2001:db8::1]:1" }, { "[2001:db8::2]:1" } },
	{ ":22", { "192.0.2.1:22", "[::1]:22" }, { "192.0.2.1:23", "[::1]:21" } },
	{ ":8000-8001", { "192.0.2.1:8000", "[::1]:8001" }, { "192.0.2.1:7999", "192.0.2.1:8002" } },
	{ "10.0.0.0/8:443", { "10.1.1.1:443" }, { "10.1.1.1:442", "11.1.1.1:443" } },
	{ "[2001:db8::/32]:1-2", { "[2001:db8::1]:2" }, { "[2001:db8::1]:3", "[2001:db9::1]:2" } },
	{ "[2001:db8::/32]", { "[2001:db8::1]:3" }, { "[2001:db9::1]:2" } },
};

static union sockaddr_ip address(const char *text)
{
	union sockaddr_ip addr;

	ck_assert_msg(sockaddr_ip_parse(&addr, text, 1) == 0, "%s", text);
	return addr;
}

START_TEST(rule_matches_what_it_says)
{
	struct prefix_rule rule;

	ck_assert_int_eq(prefix_rule_parse(&rule, rules[_i].rule), 0);
	for (int n = 0; n < 3; n++) {
		union sockaddr_ip addr;

		if (rules[_i].in[n]) {
			addr = address(rules[_i].in[n]);
			ck_assert_msg(prefix_rule_matches(&rule, &addr), "%s", rules[_i].in[n]);
		}
		if (rules[_i].out[n]) {
			addr = address(rules[_i].out[n]);
			ck_assert_msg(!prefix_rule_matches(&rule, &addr), "%s", rules[_i].out[n]);
		}
	}
}
END_TEST

static const char *const wrong[] = {
	"",		 "/",		  "/8",		     ":",	       ":0",
	":65536",	 ":80-",	  ":80-79",	     ":-80",	       ":80x",
	":http",	 "10.0.0.0/",	  "10.0.0.0/33",     "10.0.0.0/x",     "10.0.0.0/8x",
	"10.0.0/8",	 "2001:db8::/129", "2001:db8::/32:80x",
	"[2001:db8::]/3", "[10.0.0.0/8", "10.0.0.0/8]",	     "[]:80",	       "[10.0.0.0/8]80",
	"10.0.0.0/8:",	 "10.0.0.0/8:0", "name.example",     "10.0.0.0/000000008",
	"10.0.0.0/-8",	 "10.0.0.0/+8",
};

START_TEST(wrong_rule_is_refused)
{
	struct prefix_rule rule;

	ck_assert_msg(prefix_rule_parse(&rule, wrong[_i]) == -EINVAL, "\"%s\"", wrong[_i]);
}
END_TEST

static const struct {
	const char *text, *meant; /* the same: nothing is wrong */
} formats[] = {
	{ "10.0.0.0/8", "10.0.0.0/8" },
	{ "10.0.0.1/8", "10.0.0.0/8" },
	{ "10.255.0.0/9", "10.128.0.0/9" },
	{ "0.0.0.0/0", "0.0.0.0/0" },
	{ "192.0.2.1", "192.0.2.1" },
	{ "::/0", "::/0" },
	{ "2001:db8::/32", "2001:db8::/32" },
	{ "2001:db8::1/64", "2001:db8::/64" },
	{ "2001:db8:ffff::/33", "2001:db8:8000::/33" },
	{ "2001:db8::1", "2001:db8::1" },
	{ "2001:db8::1/127", "2001:db8::/127" },
};

START_TEST(prefix_that_was_meant)
{
	bool right = strcmp(formats[_i].text, formats[_i].meant) == 0;
	struct prefix prefix, cut;
	struct in6_addr inside;
	char text[PREFIX_STRLEN];

	ck_assert_int_eq(prefix_parse(&prefix, formats[_i].text, strlen(formats[_i].text)),
			 right ? 0 : -ERANGE);
	ck_assert_str_eq(prefix_format(&prefix, text), formats[_i].meant);
	inside = prefix.address;
	if (prefix.length < 128)
		inside.s6_addr[15] |= 1;
	cut = prefix_of(&inside, prefix.length);
	ck_assert(cut.length == prefix.length && IN6_ARE_ADDR_EQUAL(&cut.address, &prefix.address));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("prefix");
	TCase *tcase = tcase_create("prefix");

	tcase_add_loop_test(tcase, rule_matches_what_it_says, 0, ARRAY_SIZE(rules));
	tcase_add_loop_test(tcase, wrong_rule_is_refused, 0, ARRAY_SIZE(wrong));
	tcase_add_loop_test(tcase, prefix_that_was_meant, 0, ARRAY_SIZE(formats));
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
