/* SPDX-License-Identifier: BSD-3-Clause */
/* test_client_settings.c - the environment of a client, and which destinations it converts */
#include "config.h"

#include "client/settings.h"

#include "run.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* The environment of a test; whatever is asked for beyond it fails the test. */
static const char *env_addr, *env_port, *env_cookie, *env_log, *env_bypass, *env_fallback;
static const char *env_runtime_dir, *env_timeout, *env_early_data, *env_bypass_mptcp, *env_beside_vpn, *env_withholding, *env_warn, *env_cache,
	*env_silence, *env_paths;

static const struct {
	const char *name, **value;
} variables[] = {
	{ "CONVERT_ADDR", &env_addr },
	{ "CONVERT_PORT", &env_port },
	{ "CONVERT_COOKIE", &env_cookie },
	{ "CONVERT_LOG", &env_log },
	{ "XDG_RUNTIME_DIR", &env_runtime_dir },
	{ "CONVERT_BYPASS", &env_bypass },
	{ "CONVERT_FALLBACK", &env_fallback },
	{ "CONVERT_TIMEOUT", &env_timeout },
	{ "CONVERT_EARLY_DATA", &env_early_data },
	{ "CONVERT_WARN", &env_warn },
	{ "CONVERT_BYPASS_MPTCP", &env_bypass_mptcp },
	{ "CONVERT_BESIDE_VPN", &env_beside_vpn },
	{ "CONVERT_WITHHOLDING", &env_withholding },
	{ "CONVERT_SILENCE", &env_silence },
	{ "CONVERT_CACHE", &env_cache },
	{ "CONVERT_PATHS", &env_paths },
};

static const char *lookup(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(variables); i++)
		if (!strcmp(name, variables[i].name))
			return *variables[i].value;
	ck_abort_msg("unexpected variable %s", name);
	return NULL;
}

static struct settings read_env(const char *addr, const char *port, const char *cookie)
{
	struct settings settings = { 0 };

	env_addr = addr;
	env_port = port;
	env_cookie = cookie;
	settings_read(&settings, lookup);
	return settings;
}

static void assert_converter(const struct settings_converter *got, const char *expected)
{
	char text[SOCKADDR_STRLEN];

	if (got->name[0])
		snprintf(text, sizeof(text), "%.60s:%u", got->name, got->port);
	else
		sockaddr_ip_format(&got->addr, text);
	ck_assert_str_eq(text, expected);
}

static const struct {
	const char *addr, *port, *converters[4];
} good[] = {
	{ "192.0.2.1", NULL, { "192.0.2.1:1234" } },
	{ "192.0.2.1", "", { "192.0.2.1:1234" } },
	{ "192.0.2.1", "5678", { "192.0.2.1:5678" } },
	{ "192.0.2.1:99", "5678", { "192.0.2.1:99" } },
	{ "2001:db8::1", NULL, { "[2001:db8::1]:1234" } },
	{ "[2001:db8::1]:99", NULL, { "[2001:db8::1]:99" } },
	{ "converter.example", "99", { "converter.example:99" } },
	{ "converter.example:7", "99", { "converter.example:7" } },
	{ "_convert._tcp.example", "99", { "_convert._tcp.example:0" } },
	{ "_Convert._TCP.example.,a_b.example", NULL, { "_Convert._TCP.example.:0", "a_b.example:1234" } },
	{ " 192.0.2.1,2001:db8::1 , localhost ", NULL,
	  { "192.0.2.1:1234", "[2001:db8::1]:1234", "localhost:1234" } },
};

START_TEST(converters_are_read)
{
	struct settings settings = read_env(good[_i].addr, good[_i].port, NULL);
	size_t n = 0;

	ck_assert_msg(settings.enabled, "%s", settings.problem);
	for (; n < 4 && good[_i].converters[n]; n++)
		assert_converter(&settings.converters[n], good[_i].converters[n]);
	ck_assert_uint_eq(settings.converter_count, n);
	ck_assert_str_eq(settings.problem, "");
}
END_TEST

/* The problem names the variable, and quotes what was wrong. */
static const struct {
	const char *addr, *port, *problem[2];
} bad[] = {
	{ NULL, NULL, { "CONVERT_ADDR is not set", "" } },
	{ "", NULL, { "CONVERT_ADDR is empty", "" } },
	{ " , ", NULL, { "CONVERT_ADDR is empty", "" } },
	{ "192.0.2", NULL, { "CONVERT_ADDR", "\"192.0.2\"" } },
	{ "192.0.2.300", NULL, { "CONVERT_ADDR", "\"192.0.2.300\"" } },
	{ "192.0.2.1:0", NULL, { "CONVERT_ADDR", "\"192.0.2.1:0\"" } },
	{ "a.example,b_/", NULL, { "CONVERT_ADDR", "\"b_/\"" } },
	{ "a.example:x", NULL, { "CONVERT_ADDR", "\"a.example:x\"" } },
	{ "-x", NULL, { "CONVERT_ADDR", "\"-x\"" } },
	{ "[::1", NULL, { "CONVERT_ADDR", "\"[::1\"" } },
	{ "a,b,c,d,e,f,g,h,i", NULL, { "CONVERT_ADDR", "more than 8" } },
	{ "_convert._tcp.example:1234", NULL, { "\"_convert._tcp.example:1234\" is a service", "without" } },
	{ "_convert._tcp.example:", NULL, { "\"_convert._tcp.example:\" is a service", "without" } },
	{ "_convert._udp.example", NULL, { "\"_convert._udp.example\" is no service", "say _convert._tcp." } },
	{ "_convert._tcp", NULL, { "\"_convert._tcp\"", "say _convert._tcp.example" } },
	{ "_convert._tcp.", NULL, { "\"_convert._tcp.\"", "say _convert._tcp.example" } },
	{ "_convert._tcp..", NULL, { "\"_convert._tcp..\"", "say _convert._tcp.example" } },
	{ "_convert._tcp.a/b", NULL, { "\"_convert._tcp.a/b\"", "say _convert._tcp.example" } },
	{ "192.0.2.1", "0", { "CONVERT_PORT", "\"0\"" } },
	{ "192.0.2.1", "65536", { "CONVERT_PORT", "\"65536\"" } },
	{ "192.0.2.1", "http", { "CONVERT_PORT", "\"http\"" } },
	{ "192.0.2.1", "12x", { "CONVERT_PORT", "\"12x\"" } },
};

START_TEST(wrong_input_disables_and_is_named)
{
	struct settings settings = read_env(bad[_i].addr, bad[_i].port, NULL);

	ck_assert(!settings.enabled);
	ck_assert_msg(strstr(settings.problem, bad[_i].problem[0]) &&
			      strstr(settings.problem, bad[_i].problem[1]),
		      "%s", settings.problem);
}
END_TEST

START_TEST(cookie_is_taken_as_it_is)
{
	struct settings settings = read_env("192.0.2.1", NULL, "abc");
	char *long_cookie = malloc(SETTINGS_COOKIE_MAX + 2);

	ck_assert_uint_eq(settings.cookie_len, 3);
	ck_assert_mem_eq(settings.cookie, "abc", 3);
	memset(long_cookie, 'x', SETTINGS_COOKIE_MAX + 1);
	long_cookie[SETTINGS_COOKIE_MAX + 1] = '\0';
	settings = read_env("192.0.2.1", NULL, long_cookie);
	ck_assert(!settings.enabled);
	ck_assert_ptr_nonnull(strstr(settings.problem, "CONVERT_COOKIE"));
	long_cookie[SETTINGS_COOKIE_MAX] = '\0';
	settings = read_env("192.0.2.1", NULL, long_cookie);
	ck_assert_uint_eq(settings.cookie_len, SETTINGS_COOKIE_MAX);
	free(long_cookie);
}
END_TEST

START_TEST(log_is_optional)
{
	struct settings settings;

	env_log = "";
	settings = read_env("192.0.2.1", NULL, NULL);
	ck_assert_str_eq(settings.log, "");
	env_log = "-";
	settings = read_env(NULL, NULL, NULL);
	ck_assert_str_eq(settings.log, "-");
	env_log = NULL;
}
END_TEST

/* Chromium, postgres and others write their title over their environment. */
START_TEST(nothing_points_into_the_environment)
{
	char addr[] = "converter.example", log[] = "/tmp/log", cookie[] = "abc";
	struct settings settings;

	env_log = log;
	settings = read_env(addr, NULL, cookie);
	memset(addr, 'x', strlen(addr));
	memset(log, 'x', strlen(log));
	memset(cookie, 'x', strlen(cookie));
	ck_assert_str_eq(settings.converters[0].name, "converter.example");
	ck_assert_str_eq(settings.log, "/tmp/log");
	ck_assert_mem_eq(settings.cookie, "abc", 3);
	env_log = NULL;
}
END_TEST

static const struct {
	const char *text;
	int ms; /* 0: refused */
} timeouts[] = {
	{ NULL, SETTINGS_TIMEOUT_DEFAULT_MS },
	{ "", SETTINGS_TIMEOUT_DEFAULT_MS },
	{ "1", 1000 },
	{ "0.5", 500 },
	{ "2.25", 2250 },
	{ "0.001", 1 },
	{ "1.2345", 1234 },
	{ "3600", 3600000 },
	{ "3600.1", 3600100 },
	{ "3601", 0 },
	{ "0", 0 },
	{ "0.0001", 0 },
	{ "-1", 0 },
	{ "+1", 0 },
	{ " 1", 0 },
	{ "1s", 0 },
	{ "1,5", 0 },
	{ "99999999999999999999", 0 },
};

START_TEST(timeout_is_in_seconds)
{
	struct settings settings;

	env_timeout = timeouts[_i].text;
	settings = read_env("192.0.2.1", NULL, NULL);
	ck_assert_int_eq(settings.enabled, timeouts[_i].ms != 0);
	if (settings.enabled)
		ck_assert_int_eq(settings.timeout_ms, timeouts[_i].ms);
	else
		ck_assert_ptr_nonnull(strstr(settings.problem, timeouts[_i].text));
	env_timeout = NULL;
}
END_TEST

START_TEST(switches_are_0_or_1)
{
	struct settings settings = read_env("192.0.2.1", NULL, NULL);

	ck_assert(!settings.early_data && settings.bypass_mptcp && !settings.beside_vpn && !settings.warn);
	env_early_data = "1";
	env_bypass_mptcp = "0";
	env_beside_vpn = "1";
	env_warn = "1";
	settings = read_env("192.0.2.1", NULL, NULL);
	ck_assert(settings.enabled && settings.early_data && !settings.bypass_mptcp && settings.beside_vpn && settings.warn);
	env_early_data = "yes";
	settings = read_env("192.0.2.1", NULL, NULL);
	ck_assert(!settings.enabled);
	ck_assert_str_eq(settings.problem, "CONVERT_EARLY_DATA: \"yes\" is neither 0 nor 1");
	env_early_data = env_bypass_mptcp = env_beside_vpn = env_warn = NULL;
}
END_TEST

START_TEST(withholding_is_in_milliseconds)
{
	static const struct {
		const char *text;
		bool enabled;
		int ms;
	} cases[] = { { NULL, true, SETTINGS_WITHHELD_LEARNED },
		      { "", true, SETTINGS_WITHHELD_LEARNED },
		      { "0", true, 0 },
		      { "2000", true, 2000 },
		      { "65535", true, 65535 },
		      { "65536", false, 0 },
		      { "-1", false, 0 },
		      { "2s", false, 0 },
		      { "99999999999999999999", false, 0 } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct settings settings;

		env_withholding = cases[i].text;
		settings = read_env("192.0.2.1", NULL, NULL);
		ck_assert_int_eq(settings.enabled, cases[i].enabled);
		if (settings.enabled)
			ck_assert_int_eq(settings.withheld_ms, cases[i].ms);
		else
			ck_assert_ptr_nonnull(strstr(settings.problem, cases[i].text));
	}
	env_withholding = NULL;
}
END_TEST

START_TEST(silence_is_auto_or_never)
{
	static const char *const autos[] = { NULL, "", "auto" };
	struct settings settings;

	for (size_t i = 0; i < ARRAY_SIZE(autos); i++) {
		env_silence = autos[i];
		settings = read_env("192.0.2.1", NULL, NULL);
		ck_assert(settings.enabled && settings.silence);
	}
	env_silence = "never";
	settings = read_env("192.0.2.1", NULL, NULL);
	ck_assert(settings.enabled && !settings.silence);
	env_silence = "1";
	settings = read_env("192.0.2.1", NULL, NULL);
	ck_assert(!settings.enabled);
	ck_assert_str_eq(settings.problem, "CONVERT_SILENCE: \"1\" is neither never nor auto");
	env_silence = NULL;
}
END_TEST

START_TEST(cache_is_a_path_or_none)
{
	static const char *const good_ones[] = { NULL, "", "none", "/var/cache/some where" };
	static const char *const bad_ones[] = { "None", "cache", "./cache", "~/cache" };
	struct settings settings;

	for (size_t i = 0; i < ARRAY_SIZE(good_ones); i++) {
		env_cache = good_ones[i];
		settings = read_env("192.0.2.1", NULL, NULL);
		ck_assert(settings.enabled);
		ck_assert_str_eq(settings.cache, env_cache ? env_cache : "");
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad_ones); i++) {
		env_cache = bad_ones[i];
		settings = read_env("192.0.2.1", NULL, NULL);
		ck_assert(!settings.enabled);
		ck_assert_ptr_nonnull(strstr(settings.problem, bad_ones[i]));
	}
	env_cache = NULL;
}
END_TEST

START_TEST(fallback_is_direct_or_none)
{
	static const struct {
		const char *text;
		bool enabled, fail_closed;
	} cases[] = { { NULL, true, false },
		      { "", true, false },
		      { "direct", true, false },
		      { "none", true, true },
		      { "never", false, false } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct settings settings;

		env_fallback = cases[i].text;
		settings = read_env("192.0.2.1", NULL, NULL);
		ck_assert_int_eq(settings.enabled, cases[i].enabled);
		ck_assert_int_eq(settings.fail_closed, cases[i].fail_closed);
	}
	env_fallback = NULL;
}
END_TEST

START_TEST(bypass_leaves_destinations_alone)
{
	static const struct {
		const char *destination;
		bool bypassed;
	} cases[] = {
		{ "10.1.2.3:80", true },	 { "11.1.2.3:80", false },
		{ "192.0.2.7:443", true },	 { "192.0.2.7:80", false },
		{ "[2001:db8::5]:80", true },	 { "[2001:db9::5]:80", false },
		{ "[2001:db9::5]:8500", true },	 { "198.51.100.1:8000", true },
		{ "198.51.100.1:9000", false },	 { "[::ffff:10.0.0.1]:80", true },
	};
	union sockaddr_ip destination;
	struct settings settings;

	env_bypass = "10.0.0.0/8, 192.0.2.7:443 2001:db8::/32 :8000-8999";
	settings = read_env("203.0.113.1", NULL, NULL);
	ck_assert_msg(settings.enabled, "%s", settings.problem);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		ck_assert_int_eq(sockaddr_ip_parse(&destination, cases[i].destination, 1), 0);
		ck_assert_int_eq(policy_decide(&settings, &destination),
				 cases[i].bypassed ? POLICY_DIRECT_BYPASS : POLICY_CONVERT);
	}
	env_bypass = "10.0.0.0/8, 10.1.0.0/8";
	settings = read_env("203.0.113.1", NULL, NULL);
	ck_assert(!settings.enabled);
	ck_assert_ptr_nonnull(strstr(settings.problem, "CONVERT_BYPASS: \"10.1.0.0/8\""));
	env_bypass = NULL;
}
END_TEST

START_TEST(paths_are_devices_and_addresses)
{
	struct settings settings;

	env_paths = "wlan0, 10.2.0.2=backup tun0=never";
	settings = read_env("203.0.113.1", NULL, NULL);
	ck_assert_msg(settings.enabled, "%s", settings.problem);
	ck_assert_uint_eq(settings.paths.count, 3);
	ck_assert_int_eq(settings.paths.wishes[1].use, PATH_USE_BACKUP);
	env_paths = "wlan0 wwan0=metered";
	settings = read_env("203.0.113.1", NULL, NULL);
	ck_assert(!settings.enabled);
	ck_assert_ptr_nonnull(strstr(settings.problem, "CONVERT_PATHS: \"wwan0=metered\" has neither backup nor never after the ="));
	env_paths = "backup=wwan0";
	settings = read_env("203.0.113.1", NULL, NULL);
	ck_assert(!settings.enabled);
	ck_assert_ptr_nonnull(strstr(settings.problem, "write the network first: wwan0=backup"));
	env_paths = NULL;
}
END_TEST

static const struct {
	const char *destination;
	enum policy_verdict verdict;
} destinations[] = {
	{ "192.0.2.9", POLICY_CONVERT },
	{ "10.1.2.3", POLICY_CONVERT },
	{ "[2001:db8::9]:443", POLICY_CONVERT },
	{ "fd00::1", POLICY_CONVERT },
	{ "127.0.0.1", POLICY_DIRECT_LOCAL },
	{ "127.255.255.254", POLICY_DIRECT_LOCAL },
	{ "0.0.0.0", POLICY_DIRECT_LOCAL },
	{ "::", POLICY_DIRECT_LOCAL },
	{ "::1", POLICY_DIRECT_LOCAL },
	{ "::ffff:127.0.0.1", POLICY_DIRECT_LOCAL },
	{ "169.254.1.1", POLICY_DIRECT_LINK },
	{ "fe80::1", POLICY_DIRECT_LINK },
	{ "::ffff:169.254.1.1", POLICY_DIRECT_LINK },
	{ "224.0.0.1", POLICY_DIRECT_GROUP },
	{ "239.255.255.255", POLICY_DIRECT_GROUP },
	{ "255.255.255.255", POLICY_DIRECT_GROUP },
	{ "ff02::1", POLICY_DIRECT_GROUP },
	{ "192.0.2.1", POLICY_DIRECT_CONVERTER },
	{ "192.0.2.1:22", POLICY_DIRECT_CONVERTER },
	{ "::ffff:192.0.2.1", POLICY_DIRECT_CONVERTER },
	{ "2001:db8::1", POLICY_DIRECT_CONVERTER },
};

START_TEST(policy_knows_what_a_converter_can_reach)
{
	struct settings settings = read_env("192.0.2.1 name.example 2001:db8::1", NULL, NULL);
	union sockaddr_ip destination;

	ck_assert_int_eq(sockaddr_ip_parse(&destination, destinations[_i].destination, 80), 0);
	ck_assert_int_eq(policy_decide(&settings, &destination), destinations[_i].verdict);
	ck_assert_ptr_nonnull(policy_reason(destinations[_i].verdict));
	settings.enabled = false;
	ck_assert_int_eq(policy_decide(&settings, &destination), POLICY_DIRECT_DISABLED);
}
END_TEST

/* What stands beside the addresses that a converter can't reach is as any other, and each reason has words for the log. */
static const struct {
	const char *last, *next_one;
	enum policy_verdict verdict;
} edges[] = {
	{ "127.0.0.0", "126.255.255.255", POLICY_DIRECT_LOCAL },
	{ "127.255.255.255", "128.0.0.0", POLICY_DIRECT_LOCAL },
	{ "0.255.255.255", "1.0.0.0", POLICY_DIRECT_LOCAL },
	{ "169.254.0.0", "169.253.255.255", POLICY_DIRECT_LINK },
	{ "169.254.255.255", "169.255.0.0", POLICY_DIRECT_LINK },
	{ "224.0.0.0", "223.255.255.255", POLICY_DIRECT_GROUP },
	{ "239.255.255.255", "240.0.0.0", POLICY_DIRECT_GROUP },
	{ "255.255.255.255", "255.255.255.254", POLICY_DIRECT_GROUP },
	{ "fe80::", "fe7f:ffff::", POLICY_DIRECT_LINK },
	{ "febf:ffff::", "fec0::", POLICY_DIRECT_LINK },
	{ "ff00::", "feff:ffff::", POLICY_DIRECT_GROUP },
	{ "::1", "::2", POLICY_DIRECT_LOCAL },
};

START_TEST(policy_has_edges)
{
	struct settings settings = read_env("192.0.2.1", NULL, NULL);
	union sockaddr_ip destination;

	ck_assert_int_eq(sockaddr_ip_parse(&destination, edges[_i].last, 80), 0);
	ck_assert_int_eq(policy_decide(&settings, &destination), edges[_i].verdict);
	ck_assert_str_ne(policy_reason(edges[_i].verdict), "");
	ck_assert_int_eq(sockaddr_ip_parse(&destination, edges[_i].next_one, 80), 0);
	ck_assert_int_eq(policy_decide(&settings, &destination), POLICY_CONVERT);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("client settings and policy");
	TCase *tcase = tcase_create("all");

	tcase_add_loop_test(tcase, converters_are_read, 0, ARRAY_SIZE(good));
	tcase_add_loop_test(tcase, wrong_input_disables_and_is_named, 0, ARRAY_SIZE(bad));
	tcase_add_test(tcase, cookie_is_taken_as_it_is);
	tcase_add_test(tcase, log_is_optional);
	tcase_add_test(tcase, nothing_points_into_the_environment);
	tcase_add_test(tcase, withholding_is_in_milliseconds);
	tcase_add_test(tcase, silence_is_auto_or_never);
	tcase_add_test(tcase, cache_is_a_path_or_none);
	tcase_add_test(tcase, fallback_is_direct_or_none);
	tcase_add_loop_test(tcase, timeout_is_in_seconds, 0, ARRAY_SIZE(timeouts));
	tcase_add_test(tcase, switches_are_0_or_1);
	tcase_add_test(tcase, bypass_leaves_destinations_alone);
	tcase_add_test(tcase, paths_are_devices_and_addresses);
	tcase_add_loop_test(tcase, policy_knows_what_a_converter_can_reach, 0,
			    ARRAY_SIZE(destinations));
	tcase_add_loop_test(tcase, policy_has_edges, 0, ARRAY_SIZE(edges));
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
