/* SPDX-License-Identifier: BSD-3-Clause */
/* counters.c - the kernel's network counters */
#include "config.h"

#include "convertize/check/counters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Finds the value of the counter @wanted in two lines, "Group: NAME …" and "Group: NUMBER …"; 0 if it isn't there. */
static uint64_t find(char *names, char *values, const char *wanted)
{
	char *names_left, *values_left;
	char *group = strtok_r(names, ": \n", &names_left);
	size_t len = group ? strlen(group) : 0;
	char *value = strtok_r(values, " \n", &values_left);

	if (!group || strncmp(wanted, group, len) != 0)
		return 0;
	while (value) {
		char *name = strtok_r(NULL, " :\n", &names_left);

		value = strtok_r(NULL, " \n", &values_left);
		if (name && value && strcmp(name, wanted + len) == 0)
			return strtoull(value, NULL, 10);
	}
	return 0;
}

uint64_t counters_read(const char *name)
{
	FILE *file = fopen("/proc/net/netstat", "re");
	char *names = NULL, *values = NULL;
	size_t names_size = 0, values_size = 0;
	uint64_t value = 0;

	if (!file)
		return 0;
	while (!value && getline(&names, &names_size, file) > 0 &&
	       getline(&values, &values_size, file) > 0)
		value = find(names, values, name);
	free(names);
	free(values);
	fclose(file);
	return value;
}
