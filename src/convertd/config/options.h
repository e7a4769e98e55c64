/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.h - the options of the command line and of the configuration file
 *
 * One table describes each option completely: the function that reads its value, its default, its help. The command
 * line writes "--name value" or "--name=value", the file "name value" or "name = value".
 */
#ifndef CONVERTD_OPTIONS_H
#define CONVERTD_OPTIONS_H

#include "common/problems.h"

#include <stdbool.h>
#include <stddef.h>

struct settings;

/* Flags of an option: where it is allowed, and how often. */
#define OPTION_REPEATS 0x1      /* each one adds a value; without this flag, the command line's replaces the file's */
#define OPTION_COMMAND_LINE 0x2 /* not allowed in a file */
#define OPTION_LAST 0x4         /* the arguments behind it are ignored */

struct option_spec;

/* One option as it was written. */
struct option_value {
	const struct option_spec *spec;
	struct settings *settings; /* the settings that it changes */
	const char *text;          /* NULL: no argument */
	const struct place *place;
	struct problems *problems;
};

struct option_spec {
	const char *group; /* heading of this option and those behind it; NULL: no new one */
	const char *name;
	const char *argument; /* NULL: takes no argument */
	const char *help;     /* lines of text; don't repeat the default of a number */
	/* Stores the value in the settings. Returns false after adding the error to its problems. */
	bool (*apply)(const struct option_value *value);
	size_t offset; /* of the member that stores the value */
	const char *unit;
	unsigned min, max, fallback; /* of a number; @fallback is its default */
	unsigned flags;
};

/* The table ends with an option without a name. */
extern const struct option_spec options_table[];

/* Returns the index in options_table of the option with this name (without dashes), or -1. */
int options_find(const char *name);

/* Sets all defaults that aren't zero. */
void options_set_defaults(struct settings *settings);

/* Prints the summary for --help to standard output. */
void options_print_help(void);

#endif
