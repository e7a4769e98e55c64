/* SPDX-License-Identifier: BSD-3-Clause */
/* choice.h - which devices the path manager is to look after, and how */
#ifndef PATHS_CHOICE_H
#define PATHS_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PATHS_TABLE_FIRST 8803
#define PATHS_TABLE_LAST 8866

struct paths_choice {
	const char *device; /* names or patterns (fnmatch(3)) with commas between: these devices, of whatever kind; NULL: as judge.c says */
	const char *never;  /* the same for devices that are left alone; NULL: none */
	const char *backup; /* the same for devices that are used when nothing else is there; NULL: none */
	uint32_t table_first, table_last;
	bool beside_vpn;    /* paths beside a VPN that all traffic goes through */
};

/* Does a device's name match one of the patterns of such a list? Not if that is NULL. */
bool paths_choice_names(const char *list, const char *name);

#define PATHS_PROBLEM_MAX 256

/*
 * paths_choice_read() - take over what the settings say
 * @tables: "FIRST-LAST"; NULL: PATHS_TABLE_FIRST and _LAST
 * @beside_vpn: "1", "0" or NULL
 * The texts stay the caller's and must last. Returns false with the reason and the remedy in @problem, which begins with the
 * option's name.
 */
bool paths_choice_read(struct paths_choice *out, const char *device, const char *never, const char *backup,
		       const char *tables, const char *beside_vpn, char problem[static PATHS_PROBLEM_MAX]);

#endif
