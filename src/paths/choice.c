/* SPDX-License-Identifier: BSD-3-Clause */
/* choice.c - reads the user's choice of the devices that the path manager uses, and how */
#include "config.h"

#include "paths/plan.h"

#include "common/problems.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The kernel's own tables (RT_TABLE_COMPAT to RT_TABLE_LOCAL), which we never use. */
#define KERNEL_TABLE_FIRST 252
#define KERNEL_TABLE_LAST 255

#define PATTERN_MAX 64 /* room for a pattern with brackets, for a name of IF_NAMESIZE - 1 bytes */

/* Copies the next pattern of a list; returns the rest of the list, or NULL at its end. */
static const char *next_pattern(const char *list, char pattern[static PATTERN_MAX], size_t *len)
{
	list += strspn(list, ", ");
	*len = strcspn(list, ", ");
	if (!*len)
		return NULL;
	snprintf(pattern, PATTERN_MAX, "%.*s", (int)(*len < PATTERN_MAX ? *len : PATTERN_MAX - 1), list);
	return list + *len;
}

/* Rejects names that no device can have. A pattern without special characters is a name. */
static bool check_list(const char *option, const char *list, char problem[static PATHS_PROBLEM_MAX])
{
	char pattern[PATTERN_MAX], quote[PROBLEM_QUOTE_MAX];
	size_t len;

	while (list && (list = next_pattern(list, pattern, &len))) {
		if (len >= PATTERN_MAX || (len >= IF_NAMESIZE && !strpbrk(pattern, "*?["))) {
			snprintf(problem, PATHS_PROBLEM_MAX,
				 "%s: %s is longer than a device's name, %d characters; \"ip link\" shows the names",
				 option, problems_quote(pattern, quote), IF_NAMESIZE - 1);
			return false;
		}
		if (strchr(pattern, '/')) {
			snprintf(problem, PATHS_PROBLEM_MAX, "%s: %s is no device's name; \"ip link\" shows the names",
				 option, problems_quote(pattern, quote));
			return false;
		}
	}
	return true;
}

static bool read_number(const char **text, uint32_t *out)
{
	char *end;
	unsigned long value;

	if (**text < '0' || **text > '9')
		return false;
	errno = 0;
	value = strtoul(*text, &end, 10);
	if (errno || value == 0 || value > UINT32_MAX)
		return false;
	*text = end;
	*out = (uint32_t)value;
	return true;
}

static bool read_tables(struct paths_choice *out, const char *text, char problem[static PATHS_PROBLEM_MAX])
{
	char quote[PROBLEM_QUOTE_MAX];
	const char *at = text;

	if (!read_number(&at, &out->table_first) || *at++ != '-' || !read_number(&at, &out->table_last) || *at ||
	    out->table_last < out->table_first) {
		snprintf(problem, PATHS_PROBLEM_MAX, "tables: %s is no range of routing tables; write it as in %d-%d",
			 problems_quote(text, quote), PATHS_TABLE_FIRST, PATHS_TABLE_LAST);
		return false;
	}
	if (out->table_first <= KERNEL_TABLE_LAST && out->table_last >= KERNEL_TABLE_FIRST) {
		snprintf(problem, PATHS_PROBLEM_MAX,
			 "tables: %s has tables that are the kernel's, %d to %d; choose a range without them",
			 problems_quote(text, quote), KERNEL_TABLE_FIRST, KERNEL_TABLE_LAST);
		return false;
	}
	return true;
}

bool paths_choice_read(struct paths_choice *out, const char *device, const char *never, const char *backup,
		       const char *tables, const char *beside_vpn, char problem[static PATHS_PROBLEM_MAX])
{
	char quote[PROBLEM_QUOTE_MAX];

	*out = (struct paths_choice){
		.word = { .device = device && *device ? device : NULL, .never = never, .backup = backup,
			  .beside_vpn = beside_vpn && strcmp(beside_vpn, "1") == 0 },
		.table_first = PATHS_TABLE_FIRST,
		.table_last = PATHS_TABLE_LAST,
	};
	if (beside_vpn && strcmp(beside_vpn, "1") != 0 && strcmp(beside_vpn, "0") != 0) {
		snprintf(problem, PATHS_PROBLEM_MAX, "beside-vpn: %s is neither 0 nor 1", problems_quote(beside_vpn, quote));
		return false;
	}
	return check_list("device", device, problem) && check_list("never-device", never, problem) &&
	       check_list("backup-device", backup, problem) && (!tables || read_tables(out, tables, problem));
}
