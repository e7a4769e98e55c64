/* SPDX-License-Identifier: BSD-3-Clause */
/* test_network_policy.c - what the user and network managers say of a network, together; and the words for it */
#include "config.h"

#include "host/host_model.h"
#include "run.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The strictest setting of all sources counts. */
START_TEST(test_policy)
{
	const struct host_nm_device metered = { .metered = HOST_METERED_YES }, disabled = { .disabled = true };
	const struct in6_addr address = { .s6_addr = { [10] = 0xff, 0xff, 192, 0, 2, 2 } };
	struct path_preferences wishes = { .count = 0 };
	struct network_policy policy = { .paths = &wishes };
	uint8_t preference;

	ck_assert_ptr_null(path_preferences_add(&wishes, "wwan0=never"));
	ck_assert_ptr_null(path_preferences_add(&wishes, "192.0.2.2"));
	ck_assert_int_eq(network_policy_use(&policy, NULL, "wlan0", &address, &preference), PATH_USE_ORDERED);
	ck_assert_uint_eq(preference, 1);
	ck_assert_int_eq(network_policy_use(&policy, NULL, "wwan0", &in6addr_any, &preference), PATH_USE_NEVER);
	ck_assert_int_eq(network_policy_use(&policy, &metered, "wlan0", &address, &preference), PATH_USE_BACKUP);
	ck_assert_int_eq(network_policy_use(&policy, &disabled, "wlan0", &address, &preference), PATH_USE_NEVER);
	policy.backup = "eth*, wlan0, wwan0";
	ck_assert_int_eq(network_policy_use(&policy, NULL, "wlan0", &address, &preference), PATH_USE_BACKUP);
	ck_assert_int_eq(network_policy_use(&policy, NULL, "wwan0", &in6addr_any, &preference), PATH_USE_NEVER);
	policy.never = "wlan?";
	ck_assert_int_eq(network_policy_use(&policy, NULL, "wlan0", &address, &preference), PATH_USE_NEVER);
	policy = (struct network_policy){ .paths = NULL };
	ck_assert_int_eq(network_policy_use(&policy, NULL, "wwan0", &in6addr_any, &preference), PATH_USE_ORDERED);
	ck_assert_uint_eq(preference, PATH_PREFERENCE_NONE);
}
END_TEST

/* A pattern too long for any device's name is none of it, and doesn't hide the next one. */
START_TEST(test_long_patterns_name_nothing)
{
	char list[128];

	for (int len = 62; len <= 66; len++) {
		memset(list, '*', (size_t)len);
		strcpy(list + len, ",eth0");
		ck_assert_int_eq(name_list_has(list, "wlan0"), len < 64);
		ck_assert(name_list_has(list, "eth0"));
	}
	ck_assert(!name_list_has(NULL, "eth0"));
	ck_assert(!name_list_has("", "eth0"));
	ck_assert(!name_list_has("eth00 xeth0,", "eth0"));
	ck_assert(name_list_has(" ,  wlan0 eth0", "eth0"));
}
END_TEST

static char missing[256];

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	const size_t used = strlen(missing);
	va_list args;

	va_start(args, format);
	vsnprintf(missing + used, sizeof(missing) - used, format, args);
	va_end(args);
	strcat(missing, "\n");
}

/* networks_tell_missing() names missing networks in the user's order. The loopback addresses and device aren't missing. */
START_TEST(test_missing_networks_are_told)
{
	const char *const there[] = { "127.0.0.1", "lo" }, *const gone[] = { "203.0.113.77", "nosuch0", "2001:db8::77" };
	struct path_preferences named = { .count = 0 };

	for (size_t i = 0; i < 3; i++) {
		ck_assert_ptr_null(path_preferences_add(&named, gone[i]));
		if (i < 2)
			ck_assert_ptr_null(path_preferences_add(&named, there[i]));
	}
	for (size_t i = 0; i < 2; i++) { /* whatever failed before; and no descriptor is left open */
		const int before = i ? EADDRNOTAVAIL : ENODEV, lowest = dup(STDIN_FILENO);

		close(lowest);
		errno = before;
		missing[0] = '\0';
		networks_tell_missing(&named, say);
		ck_assert_int_eq(errno, before);
		ck_assert_int_eq(dup(STDIN_FILENO), lowest);
		close(lowest);
		ck_assert_str_eq(missing, "CONVERT_PATHS names 203.0.113.77: there is no such device or address now\n"
					  "CONVERT_PATHS names nosuch0: there is no such device or address now\n"
					  "CONVERT_PATHS names 2001:db8::77: there is no such device or address now\n");
	}
}
END_TEST

/* The doctor prints the text, and the service writes the name into its state. No two verdicts share either, and none lacks one. */
START_TEST(test_each_verdict_has_a_name_and_a_reason)
{
	for (int i = 0; i < HOST_VERDICT_COUNT; i++) {
		const char *name = host_verdict_name((enum host_verdict)i), *text = host_verdict_text((enum host_verdict)i);

		ck_assert_ptr_nonnull(name);
		ck_assert_ptr_nonnull(text);
		ck_assert_uint_ge(strlen(name), 2);
		ck_assert_ptr_null(strchr(name, ' '));
		ck_assert_ptr_nonnull(strchr(text, ' '));
		for (int j = 0; j < i; j++) {
			ck_assert_str_ne(name, host_verdict_name((enum host_verdict)j));
			ck_assert_str_ne(text, host_verdict_text((enum host_verdict)j));
		}
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("network_policy");
	TCase *tcase = tcase_create("network_policy");

	tcase_add_test(tcase, test_policy);
	tcase_add_test(tcase, test_long_patterns_name_nothing);
	tcase_add_test(tcase, test_missing_networks_are_told);
	tcase_add_test(tcase, test_each_verdict_has_a_name_and_a_reason);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
