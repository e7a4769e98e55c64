/* SPDX-License-Identifier: BSD-3-Clause */
/* test_sysctls.c - the settings that convertd checks are those of the file that is installed */
#include "config.h"

#include "common/os.h"
#include "convertd/process/service.h"

#include "run.h"

#include <stdio.h>
#include <string.h>

#define FILE_NAME SRCDIR "/contrib/sysctl.d/50-convertd.conf"

static int find(const char *name)
{
	for (int i = 0; sysctl_wishes[i].name; i++)
		if (strcmp(sysctl_wishes[i].name, name) == 0)
			return i;
	return -1;
}

START_TEST(the_file_has_the_same)
{
	FILE *file = fopen(FILE_NAME, "r");
	char line[256], name[128];
	unsigned seen = 0, wished = 0;
	int value, end, index;

	ck_assert_msg(file, "%s", FILE_NAME);
	while (fgets(line, sizeof(line), file)) {
		if (line[0] == '#' || line[0] == '\n')
			continue;
		/* sysctl.d(5): a dash in front means that it may be missing. */
		end = 0;
		ck_assert_msg(sscanf(line, "%*[-]%127[a-z0-9._] = %d\n%n", name, &value, &end) == 2 ||
				      sscanf(line, "%127[a-z0-9._] = %d\n%n", name, &value, &end) == 2,
			      "%s", line);
		ck_assert_msg(end == (int)strlen(line), "%s", line);
		index = find(name);
		ck_assert_msg(index >= 0, "%s is in the file and not checked", name);
		ck_assert_msg(!(seen & 1U << index), "%s is in the file twice", name);
		seen |= 1U << index;
		ck_assert_msg(sysctl_wish_met(&sysctl_wishes[index], value), "%s", line);
	}
	fclose(file);
	for (int i = 0; sysctl_wishes[i].name; i++)
		wished |= 1U << i;
	ck_assert_uint_eq(seen, wished);
}
END_TEST

/* sysctl(8) takes a VLAN's dot for a slash. */
START_TEST(sysctls_of_devices_with_dots)
{
	char name[SYSCTL_NAME_MAX];

	sysctl_of_device(name, 6, "eth0.100", "accept_ra");
	ck_assert_str_eq(name, "net.ipv6.conf.eth0/100.accept_ra");
	sysctl_of_device(name, 4, "lo", "rp_filter");
	ck_assert_int_ge(sysctl_read(name), 0);
}
END_TEST

START_TEST(remedies_are_remedies)
{
	for (const struct sysctl_wish *wish = sysctl_wishes; wish->name; wish++)
		for (int value = 0; value < 5000; value++)
			ck_assert(sysctl_wish_met(wish, sysctl_wish_remedy(wish, value)));
}
END_TEST

static const struct {
	enum sysctl_rule rule;
	int wanted, value, remedy;
	bool met;
} cases[] = {
	{ SYSCTL_IS, 1, 1, 1, true },	    { SYSCTL_IS, 1, 0, 1, false },
	{ SYSCTL_IS, 1, 2, 1, false },	    { SYSCTL_LEAST, 4, 4, 4, true },
	{ SYSCTL_LEAST, 4, 5, 4, true },    { SYSCTL_LEAST, 4, 3, 4, false },
	{ SYSCTL_MOST, 4, 4, 4, true },	    { SYSCTL_MOST, 4, 5, 4, false },
	{ SYSCTL_MOST, 4, 3, 4, true },
	{ SYSCTL_BITS, 2, 3, 3, true },	    { SYSCTL_BITS, 2, 1, 3, false },
	{ SYSCTL_BITS, 2, 0x400, 0x402, false },
};

START_TEST(rules)
{
	const struct sysctl_wish wish = { .rule = cases[_i].rule, .value = cases[_i].wanted };

	ck_assert_int_eq(sysctl_wish_met(&wish, cases[_i].value), cases[_i].met);
	ck_assert_int_eq(sysctl_wish_remedy(&wish, cases[_i].value), cases[_i].remedy);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sysctls");
	TCase *tcase = tcase_create("sysctls");

	tcase_add_test(tcase, the_file_has_the_same);
	tcase_add_test(tcase, sysctls_of_devices_with_dots);
	tcase_add_test(tcase, remedies_are_remedies);
	tcase_add_loop_test(tcase, rules, 0, (int)(sizeof(cases) / sizeof(cases[0])));
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
